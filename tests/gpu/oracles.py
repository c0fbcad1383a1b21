"""Posteriors from a GPU in mixed precision against the reference draws of tests/oracles.

    oracles.py build FOLDER            compiles every oracle, and copies its data and reference
    oracles.py run FOLDER [NAME...]    there: runs them, as many at a time as there are cores, and compares as tests/oracles/run.py does
    oracles.py sanitize FOLDER         compute-sanitizer's memcheck over ten of them, a few sweeps each

One line an oracle, its seconds and the worst z; a run that does not end in 120 s fails, and what is known to take longer is left out and
named. Exit status 0 if nothing failed; without compute-sanitizer it says so.
"""
import os
import shlex
import shutil
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
ORACLES = os.path.join(ROOT, "tests", "oracles")
GMC = os.environ.get("GMC") or os.path.join(ROOT, "build", "gmc")
sys.path[:0] = [HERE, ORACLES]
import toolkit
import run as oracles

MOST_SECONDS = 120
LEFT_OUT = {"pdb_accel_gp": "its sweeps take a GPU longer than that"}
# Of each kind of kernel: sums by group, joint normals by blocks and by tiles, slices, NUTS, chains of states, weighted cross products, rows
# of matrices.
SANITIZED = ("bugs_rats", "bugs_schools", "bugs_seeds", "bugs_pump", "bugs_birats2", "pdb_hmm_example", "pdb_eight_schools_noncentered",
             "pdb_gp_regr", "ref_lasso_diabetes", "ref_multinomial_iris")


def names_of(folder):
    return sorted(d[len("oracle_"):] for d in os.listdir(folder) if d.startswith("oracle_"))


def at_once(work, names):
    with ThreadPoolExecutor(os.cpu_count() or 2) as pool:
        return list(pool.map(work, names))


def build(folder):
    def one(name):
        there, here = os.path.join(folder, "oracle_" + name), os.path.join(ORACLES, name)
        os.makedirs(there, exist_ok=True)
        for file in ("data.json", "reference.json"):
            shutil.copy(os.path.join(here, file), there)
        with open(os.path.join(there, "settings"), "w") as f:
            f.write((oracles.text_of(os.path.join(here, "settings")) or oracles.FEWER))
        made = subprocess.run([GMC, "-q", os.path.join(here, "model.gm"), "-o", os.path.join(there, "fit")],
                              env={**os.environ, "CUDA_VISIBLE_DEVICES": ""}, capture_output=True, text=True)
        if made.returncode:
            print("FAIL %s: gmc: %s" % (name, made.stderr.strip()), flush=True)
        return made.returncode == 0
    for name, why in LEFT_OUT.items():
        print("left out: %s, %s" % (name, why))
    names = [n for n in sorted(os.listdir(ORACLES)) if os.path.exists(os.path.join(ORACLES, n, "model.gm")) and n not in LEFT_OUT
             and not os.path.exists(os.path.join(ORACLES, n, "skip"))]
    return 0 if all(at_once(one, names)) else 1


def fitted(there, settings, before=()):
    log = os.path.join(there, "run.log")
    status, seconds = oracles.run_step([*before, os.path.join(there, "fit"), os.path.join(there, "data.json"), "--device", "gpu", "--quiet",
                                        "--no-summary", "--seed", oracles.SEED,
                                        "--overwrite", "-o", os.path.join(there, "draws"), *settings], log, MOST_SECONDS)
    return seconds, "" if status == 0 else oracles.reason(log, status, "run", MOST_SECONDS)


def compared(there, chains):
    log, numbers = os.path.join(there, "compare.log"), os.path.join(there, "compare.json")
    status, _ = oracles.run_step([sys.executable, os.path.join(ORACLES, "compare.py"), os.path.join(there, "reference.json"),
                                  *[os.path.join(there, "draws_%d.csv" % c) for c in range(1, chains + 1)], "--json", numbers], log,
                                  MOST_SECONDS)
    if status not in (0, 1) or oracles.text_of(numbers) is None:
        return None, oracles.reason(log, status, "compare", MOST_SECONDS)
    report = oracles.json.loads(oracles.text_of(numbers))
    return oracles.worst_z(report), "" if status == 0 else oracles.disagreements(report)


def run(folder, wanted):
    def one(name):
        there = os.path.join(folder, "oracle_" + name)
        # more draws where these are too few to compare
        for settings in (oracles.text_of(os.path.join(there, "settings")), oracles.DEFAULT):
            options = shlex.split(settings)
            seconds, wrong = fitted(there, options)
            z, differs = (None, "") if wrong else compared(there, int(options[options.index("--chains") + 1]))
            wrong = wrong or differs
            if "ESS below" not in wrong:
                break
        print("%s %-34s %6.1f s  worst z %s%s" % ("FAIL" if wrong else "ok  ", name, seconds, "-" if z is None else "%.2f" % z,
                                                  ": " + wrong if wrong else ""), flush=True)
        return not wrong
    return 0 if all(at_once(one, [n for n in names_of(folder) if not wanted or any(w in n for w in wanted)])) else 1


def sanitize(folder):
    tool = toolkit.tool("compute-sanitizer")
    if not tool:
        print("no compute-sanitizer (it is part of the CUDA Toolkit): oracles are not looked at")
        return 0

    def one(name):
        there = os.path.join(folder, "oracle_" + name)
        seconds, wrong = fitted(there, ["--chains", "2", "--warmup", "5", "--samples", "3"],
                                [tool, "--tool", "memcheck", "--report-api-errors", "no", "--error-exitcode", "9"])
        print("%s %-34s %6.1f s  memcheck%s" % ("FAIL" if wrong else "ok  ", name, seconds, ": " + wrong if wrong else ""), flush=True)
        return not wrong
    return 0 if all(at_once(one, [n for n in SANITIZED if os.path.exists(os.path.join(folder, "oracle_" + n))])) else 1


def main():
    began = time.monotonic()
    part = sys.argv[1] if len(sys.argv) > 2 else ""
    status = (build(sys.argv[2]) if part == "build" else run(sys.argv[2], sys.argv[3:]) if part == "run" else sanitize(sys.argv[2])
              if part == "sanitize" else 2)
    print(__doc__ if status == 2 else "oracles, %s: %.0f s" % (part, time.monotonic() - began))
    return status


if __name__ == "__main__":
    sys.exit(main())
