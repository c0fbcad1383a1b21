#!/usr/bin/env python3
"""Compiles what gmc emits for every test model with warnings on, as far as the C compiler checks the text. What is emitted may leave alone
a parameter (a kernel has the same ones whatever it reads), and nothing else: a variable that nobody reads, a comparison of other types or a
missing return is a mistake of the emitter. So is a float, or a real that becomes a whole number unsaid: `x ? n : INFINITY` of an int n is a
float in C, where INFINITY is one, and rounds counts above 2^24.

    check_warnings.py [FILE.gm ...]
"""
import concurrent.futures
import glob
import os
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "tests"))
import emitted
GMC = os.environ.get("GMC") or os.path.join(ROOT, "build", "gmc")
FOLDERS = ("graph", "driver", "bench", "posteriors/*", "oracles/*", "golden/*")
RUNTIME = os.path.join(ROOT, "runtime", "device")
CC = [os.environ.get("CC") or "cc", "-std=gnu11", "-fopenmp", "-O1", "-Wall", "-Wextra", "-Wfloat-conversion", "-Wdouble-promotion",
      "-Werror", "-Wno-error=float-conversion", "-Wno-unused-parameter", "-DGM_ANY_STATE"]
AT_ONCE = 20                     # programs for a run of the driver
HEADERS = '#include "gm.h"\ntypedef struct Data Data;\ntypedef struct State State;\n#include "kernels.h"\n'


def check(sources, folder):
    """-> what the C compiler says of these files, by one run of its driver."""
    ran = subprocess.run(CC + ["-fsyntax-only", "-I" + folder, "-I" + RUNTIME, *sources], capture_output=True,
                         env={**os.environ, "LC_ALL": "C"})
    said = ran.stderr.decode()
    # a sum of counts is handed to routines that take a long
    changed = [line for line in said.splitlines() if "float-conversion" in line and "to 'long int'" not in line]
    return said if ran.returncode or changed else ""


def compiles(files, folder):
    """-> of each file: (was anything emitted?, what is wrong)"""
    results, sources = {}, {}
    for file in files:
        status, text, said = emitted.program(file, GMC)
        results[file] = status > 2, said.decode()        # models that are refused have tests of their own
        if status == 0:
            sources[file] = os.path.join(folder, os.path.relpath(file, ROOT).replace(os.sep, ".") + ".c")
            results[file] = True, ""
            with open(sources[file], "wb") as f:
                f.write(text)
    if sources and check(sources.values(), folder):
        results.update({file: (True, check([source], folder)) for file, source in sources.items()})
    return [results[file] for file in files]


def header(folder):
    """The headers that all include, for Data and State of any fields, read once for all of them: gcc takes gm.h.gch in place of gm.h.
    -> what the C compiler says of them"""
    whole = os.path.join(folder, "headers.h")
    with open(whole, "w") as f:
        f.write(HEADERS)
    return subprocess.run(CC + ["-x", "c-header", "-I" + RUNTIME, whole, "-o", os.path.join(folder, "gm.h.gch")],
                          capture_output=True, text=True, env={**os.environ, "LC_ALL": "C"})


def random_files(folder):
    sys.path.insert(0, os.path.join(ROOT, "tests", "stat"))
    from random_models import random_model
    for seed in range(1, 11):
        file = os.path.join(folder, "random_%d.gm" % seed)
        with open(file, "w") as f:
            f.write(random_model(seed))
        yield file


def main():
    given = [os.path.abspath(f) for f in sys.argv[1:]]
    models = sorted(f for k in FOLDERS for f in glob.glob(os.path.join(ROOT, "tests", k, "*.gm"))) + sorted(
        glob.glob(os.path.join(ROOT, "examples", "*", "*.gm")))
    with tempfile.TemporaryDirectory() as folder, concurrent.futures.ThreadPoolExecutor(2) as pool:
        files = given or models + list(random_files(folder))
        read = header(folder)
        shares = [files[i:i + AT_ONCE] for i in range(0, len(files), AT_ONCE)]
        results = [result for share in pool.map(lambda share: compiles(share, folder), shares) for result in share]
    bad = 0
    if read.returncode or read.stderr:
        bad += 1
        print("gm.h, kernels.h\n%s" % read.stderr[:600])
    for file, (emitted, said) in zip(files, results):
        if emitted and said:
            bad += 1
            print("%s\n%s" % (os.path.relpath(file, ROOT), said[:600]))
    total = sum(emitted for emitted, _ in results)
    print("%d programs, %d with warnings" % (total, bad))
    return 1 if bad or total < 3 * len(files) // 4 else 0


sys.exit(main())
