#!/usr/bin/env python3
"""Compiler, runtime and programs under the address and undefined-behaviour sanitizers, and the writer of draws under the thread sanitizer.

    run.py [NAME...]     all models (`make asan` builds what this needs), or those whose name or folder holds a NAME

1. gmc, with sanitizers, reads every model here, those of the errors too: none may make it read or write where it should not.
2. Every model that has data, or for which random data can be made (tests/graph, examples), becomes a program with sanitizers. It runs a few
sweeps with chains
   side by side and with a team of threads for one chain, then --check.
3. The same program on damaged data: values at the ends of their types, missing, of another shape. It must refuse them or run.
4. C tests of tests/host, tests/front and tests/graph with sanitizers; tests/host/draws with the thread sanitizer.

A line for each that fails, with the sanitizer's first words; the last line counts. What a run says of the model (a check that fails, a
fault) is no matter here.
"""
import concurrent.futures
import copy
import glob
import json
import os
import random
import re
import resource
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
BUILD = os.path.join(ROOT, "build", "asan")
GMC = os.path.join(BUILD, "gmc")
sys.path[:0] = [os.path.join(ROOT, "tests", "stat"), os.path.join(ROOT, "tests", "gpu")]

FOUND = 99                                # exit status of a program in which a sanitizer found something
# Leaks: a compilation frees nothing before its end. BLAS has threads of its own, which are of no interest here.
ENVIRONMENT = {**os.environ, "CC": os.path.join(HERE, "cc"), "GMC_ASAN_CC": os.environ.get("CC") or "cc", "OMP_WAIT_POLICY": "passive",
               "OPENBLAS_NUM_THREADS": "1",
               "GMC_ASAN_FLAGS": "-O0 -g1 -fsanitize=address,undefined,float-cast-overflow -fno-sanitize-recover=all "
                                 "-fno-omit-frame-pointer",
               "ASAN_OPTIONS": "detect_leaks=0:allocator_may_return_null=1:exitcode=%d:handle_segv=2:handle_sigfpe=2:handle_abort=2:"
                               "detect_stack_use_after_return=1" % FOUND,
               "UBSAN_OPTIONS": "print_stacktrace=1:exitcode=%d" % FOUND, "TSAN_OPTIONS": "exitcode=%d" % FOUND}
TIMES = 3                                 # damaged data for each model
SECONDS = 120


def call(command, cwd=None, seconds=SECONDS):
    """exit status (None: too long), text"""
    try:
        ran = subprocess.run(command, cwd=cwd, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=ENVIRONMENT,
                             timeout=seconds)
        return ran.returncode, ran.stdout.decode(errors="replace")
    except subprocess.TimeoutExpired:
        return None, ""


def found(status, text):
    """What a sanitizer (or a crash) said, or None."""
    said = re.search(r".*(runtime error:|ERROR: AddressSanitizer|WARNING: ThreadSanitizer|AddressSanitizer:|internal error).*", text)
    if said:
        after = text[said.start():].split("\n")
        place = next((l.strip() for l in after[1:12] if re.search(r"#\d+ .* in (?!__|memcpy|memset|strlen)", l)), "")
        return "%s %s" % (said.group(0).strip()[:250], place[:150])
    if status is not None and (status < 0 or status == FOUND):
        return "exit status %d: %s" % (status, text[-200:])
    return None


# ---- damage ----

ODD = [0, -1, 1, 2, 0.5, -2147483648, 2147483647, 1e9, 1e308, -1e308, 1e-320, None, "NaN", "Inf", [], [[]], "text"]


def places(value, path=()):
    """Paths of all numbers and arrays below."""
    yield path
    if isinstance(value, list):
        for k in {0, len(value) // 2, len(value) - 1} & set(range(len(value))):
            yield from places(value[k], path + (k,))


def damaged(values, r):
    values = copy.deepcopy(values)
    for _ in range(r.randint(1, 2)):
        name = r.choice(list(values) or [""])
        if not name:
            continue
        if r.random() < 0.1:
            del values[name]
            continue
        path = r.choice(list(places(values[name])))
        holder, key = values, name
        for k in path:
            holder, key = holder[key], k
        if isinstance(holder[key], list) and holder[key] and r.random() < 0.6:
            holder[key] = holder[key][:-1] if r.random() < 0.7 else holder[key] + holder[key][-1:]
        else:
            holder[key] = r.choice(ODD)
    return values


# ---- one model ----

class Model:
    def __init__(self, file, text, runs):
        self.file, self.text, self.runs = file, text, runs        # runs: [(arguments of the program, folder, values or None)]
        self.name = os.path.relpath(file, ROOT) if os.path.isabs(file) else file


def try_model(m, folder):
    """What is wrong with it, or None; and whether it ran."""
    source = os.path.join(folder, "model.gm")
    with open(source, "w") as f:
        f.write(m.text)
    for stage in ("--explain=full", "--emit=cuda"):
        status, text = call([GMC, "-q", "-I", os.path.dirname(m.file), source, stage] if m.name.startswith("tests/docs")
                            else [GMC, "-q", source, stage])
        wrong = "more than %d s" % SECONDS if status is None else found(status, text)
        if wrong:
            return "gmc %s: %s" % (stage, wrong), False
    if status != 0 or not m.runs:
        return None, False
    program = os.path.join(folder, "fit")
    status, text = call([GMC, "-q", "--no-device", source, "-o", program], seconds=300)
    if status != 0:
        return "gmc -o: %s" % (found(status, text) or text[-300:]), False
    some = False
    r = random.Random(m.name)
    for k, (arguments, where, values) in enumerate(m.runs):
        if values is not None:
            arguments = [os.path.join(folder, "data.json")] + arguments
            with open(arguments[0], "w") as f:
                json.dump(values, f)
        short = ["--samples", "9", "--warmup", "9", "--seed", "1", "-q", "--params", "all,auxiliaries",
                 "--overwrite", "-o", os.path.join(folder, "draws")]
        for more in (["--chains", "2", "--threads", "2"] + short, ["--chains", "1", "--threads", "2", "--init", "0"] + short,
                     ["--check", "--chains", "2", "--threads", "1", "-q"]):
            status, text = call([program] + arguments + more, where)
            wrong = found(status, text)
            if wrong:
                return "run %d %s: %s" % (k + 1, " ".join(more[:4]), wrong), True
            some = some or status == 0
        for t in range(TIMES if isinstance(values, dict) else 0):
            bad = damaged(values, r)
            with open(arguments[0], "w") as f:
                json.dump(bad, f)
            status, text = call([program] + arguments + ["--chains", "1", "--threads", "1"] + short, where, 20)
            wrong = found(status, text)
            if wrong:
                with open(os.path.join(BUILD, "damaged.json"), "w") as f:
                    json.dump(bad, f)
                return "damaged data %d (build/asan/damaged.json): %s" % (t + 1, wrong), True
    return None, some


def models():
    from devices import examples
    from program import Failed, random_data
    from random_models import random_model
    few = {"N": 4, "p": 9, "T": 2}            # joint draws by few rows
    shown = examples()
    for file in sorted(glob.glob(os.path.join(ROOT, "tests/**/*.gm"), recursive=True) + glob.glob(os.path.join(ROOT, "examples/*/*.gm"))):
        folder, name = os.path.split(file)
        with open(file, errors="replace") as f:
            text = f.read()
        runs = []
        if os.path.exists(os.path.join(folder, "data.json")):
            with open(os.path.join(folder, "data.json")) as f:
                runs.append(([], None, json.load(f)))
        elif "/tests/graph/" in file or "/examples/" in file:
            for chosen in (None, few):
                try:
                    runs.append(([], None, json.loads(json.dumps(random_data(text, 1, chosen), default=lambda v: v.tolist()))))
                except Exception:              # sizes that do not fit each other
                    pass
            if "/examples/" in file and name[:-3] in shown:
                runs.append((shown[name[:-3]][0], folder, None))
        yield Model(file, text, runs)
    for seed in range(1, 16):
        text = random_model(seed)
        yield Model("random_%d" % seed, text, [([], None, json.loads(json.dumps(random_data(text, 1), default=lambda v: v.tolist())))])


def main():
    given = sys.argv[1:]
    chosen = [m for m in models() if not given or any(g in m.name for g in given)]
    if not given:
        chosen.sort(key=lambda m: -len(m.runs))
    failed, ran, passed = [], 0, 0

    def one(m):
        folder = tempfile.mkdtemp(prefix="gmc_asan_")
        try:
            return m, try_model(m, folder)
        finally:
            shutil.rmtree(folder)

    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        for m, (wrong, some) in pool.map(one, chosen):
            ran += some
            if wrong:
                failed.append(m.name)
                print("FAIL  %s: %s" % (m.name, wrong), flush=True)
            else:
                passed += 1
    programs = [] if given else sorted(p for k in ("asan/tests/host/*", "asan/tests/front/*", "asan/tests/graph/*", "tsan/tests/host/draws")
                                       for p in glob.glob(os.path.join(ROOT, "build", k)) if os.access(p, os.X_OK)
                                       and not p.endswith("front_dump"))
    # nested as deep as is allowed: gmc has a stack of its own for that
    resource.setrlimit(resource.RLIMIT_STACK, (resource.getrlimit(resource.RLIMIT_STACK)[1],) * 2)
    for p in programs:
        status, text = call([p], ROOT, 600)
        if status != 0:
            failed.append(p)
            print("FAIL  %s: %s" % (os.path.relpath(p, ROOT), found(status, text) or text[-300:]))
        else:
            passed += 1
    print("%d models were read, %d of them ran" % (len(chosen), ran))
    print("%d passed, %d failed" % (passed, len(failed)))
    return 1 if failed or passed == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
