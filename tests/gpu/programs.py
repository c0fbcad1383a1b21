"""Tests in CUDA C++ (tests/gpu/*.cu) by nvcc, and compute-sanitizer over them, over the samplers and over some models.

    programs.py build FOLDER [ARCH]   where nvcc is installed; a line `// nvcc: OPTIONS` at the top of a .cu asks for a program built with
                                      these options
    programs.py run FOLDER            each program as it is: exit status 0 and no line that begins with `failed`
    programs.py sanitize FOLDER       memcheck and racecheck, on small sizes: the programs with the argument `quick`, the samplers of
                                      laws.py with 512
                                      draws, and those of MODELS that devices.py has built in FOLDER

A tool that is not installed is said in a line, and is no failure.
"""
import glob
import os
import re
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import toolkit

HERE = os.path.dirname(os.path.abspath(__file__))

# What a sweep is made of: row passes, weighted products of columns, an arrow of intercepts and slopes with a team for each chain, colours
# of a time series with missing values, rows fewer than columns, a series computed in the sweep, a mixture's indicators, thresholds on one
# team, joint draws beyond one block, NUTS.
MODELS = ["probit", "logistic", "hierarchical_normal", "ar1_missing", "lasso", "rows_horseshoe", "series_garch", "mixture",
          "ordinal_probit", "wide", "moves"]
TOOLS = ("memcheck", "racecheck")
AT_ONCE = 6


def wanted():
    """[(program, source, options)] of every line `// nvcc:` at the top of tests/gpu/*.cu."""
    found = []
    for source in sorted(glob.glob(os.path.join(HERE, "*.cu"))):
        stem = os.path.basename(source)[:-3]
        with open(source) as f:
            lines = re.findall(r"^// nvcc:(.*)$", f.read(4000), re.M)
        found += [("test_%s_%d" % (stem, k), source, options.split()) for k, options in enumerate(lines or [""])]
    return found


def build(folder, arch="native"):
    nvcc = toolkit.tool("nvcc")
    if not nvcc:
        print("programs: skipped: nvcc is not installed (it is part of the CUDA Toolkit)")
        return 0
    os.makedirs(folder, exist_ok=True)

    def one(program):
        name, source, options = program
        command = [nvcc, "-O3", "-std=c++17", "-arch=" + arch, *options, "-o", os.path.join(folder, name), source]
        return subprocess.run(command, cwd=os.path.dirname(os.path.dirname(HERE)), capture_output=True, text=True)

    failed = 0
    with ThreadPoolExecutor(os.cpu_count() or 2) as pool:
        for (name, _, options), ran in zip(wanted(), pool.map(one, wanted())):
            failed += ran.returncode != 0
            if ran.returncode != 0:
                print("FAIL %s %s: nvcc gave %d\n%s" % (name, " ".join(options), ran.returncode, (ran.stdout + ran.stderr)[-3000:]))
    return 1 if failed else 0


def launch(folder, command, seconds):
    try:
        return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=seconds)
    except subprocess.TimeoutExpired as late:
        text = late.stdout or b""
        return subprocess.CompletedProcess(command, 124, text.decode() if isinstance(text, bytes) else text, "no end after %d s" % seconds)


def run(folder):
    programs = [name for name, _, _ in wanted() if os.path.exists(os.path.join(folder, name))]
    if not programs:
        print("programs: skipped: none is built here (nvcc builds them)")
        return 0
    failed = 0
    for name in programs:
        began = time.monotonic()
        ran = launch(folder, ["./" + name], 180)
        lines = ran.stdout.splitlines()
        bad = [line for line in lines if line.startswith(("failed", "FAIL"))]
        good = ran.returncode == 0 and not bad and lines
        failed += not good
        print("%s %s: %s (%d lines, %.0f s)" % ("ok  " if good else "FAIL", name,
                                                lines[-1] if good else "status %d; %s %s" % (ran.returncode, "; ".join(bad[:20]),
                                                        ran.stderr[-500:]),
                                               len(lines), time.monotonic() - began))
    print("programs: %d passed, %d failed" % (len(programs) - failed, failed))
    return 1 if failed else 0


def sanitize(folder):
    import json
    sanitizer = toolkit.tool("compute-sanitizer")
    if not sanitizer:
        print("sanitize: skipped: compute-sanitizer is not installed (it is part of the CUDA Toolkit)")
        return 0
    jobs = [(name, ["./" + name, "quick"]) for name, _, _ in wanted() if os.path.exists(os.path.join(folder, name))]
    if os.path.exists(os.path.join(folder, "laws.json")):
        jobs.append(("samplers", [sys.executable, os.path.join(HERE, "laws.py"), "run", ".", "512"]))
    if os.path.exists(os.path.join(folder, "runs.json")):
        with open(os.path.join(folder, "runs.json")) as f:
            built = json.load(f)
        short = ["--device", "gpu", "--chains", "2", "--warmup", "2", "--samples", "2", "--seed", "1", "--no-summary", "-q"]
        for name in MODELS:
            inputs = [built["examples"][name]] if name in built["examples"] else [[i] for i in built["compare"].get(name, [])]
            jobs += [("%s %s" % (name, " ".join(i)), ["./" + name, *i, *short]) for i in inputs]
    jobs = [("%s: %s" % (check, what), [sanitizer, "--tool", check, "--error-exitcode", "99", "--print-limit", "5", *command])
            for check in TOOLS for what, command in jobs]
    failed = 0
    with ThreadPoolExecutor(AT_ONCE) as pool:
        for (what, _), ran in zip(jobs, pool.map(lambda job: launch(folder, job[1], 240), jobs)):
            text = ran.stdout + ran.stderr
            good = ran.returncode == 0 and re.search(r"SUMMARY: 0 (errors|hazards)", text) is not None
            failed += not good
            said = re.findall(r"SUMMARY: (.*)", text)
            print("%s %s: %s" % ("ok  " if good else "FAIL", what, said[-1] if said else "status %d" % ran.returncode))
            if not good:
                print("\n".join("     " + line for line in text.splitlines()[-60:]))
    print("sanitize: %d passed, %d failed" % (len(jobs) - failed, failed))
    return 1 if failed else 0


def main():
    if sys.argv[1:2] == ["build"] and len(sys.argv) > 2:
        sys.exit(build(*sys.argv[2:4]))
    elif sys.argv[1:2] == ["run"] and len(sys.argv) > 2:
        sys.exit(run(sys.argv[2]))
    elif sys.argv[1:2] == ["sanitize"] and len(sys.argv) > 2:
        sys.exit(sanitize(sys.argv[2]))
    else:
        print(__doc__)
        sys.exit(2)


if __name__ == "__main__":
    main()
