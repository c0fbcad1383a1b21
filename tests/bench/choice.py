"""Effective draws a second of processor time of what mixes worst: steps, moves along gradients, and what a program chooses by itself in its warm-up (docs/performance.md), of programs of tests/oracles.

    choice.py NAME ...               4 chains of 1000 sweeps of warm-up and 5000 draws, one seed, one core; time of the better of two runs, warm-up included
"""
import os
import resource
import subprocess
import sys
import tempfile

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../..")
SETTINGS = ["--chains", "4", "--warmup", "1000", "--samples", "5000", "--seed", "20240229", "--threads", "1"]


def least(summary):
    sizes = []
    for cells in map(str.split, summary.splitlines()):
        if len(cells) >= 10 and cells[0] not in ("mean", "lp__") and cells[-3].replace(".", "").isdigit():
            sizes.append(float(cells[-3]))
    return min(sizes)


def seconds(command):
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    subprocess.run(command, check=True, capture_output=True)
    return resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before


print("| program | steps | moves | default | taken | default/best |\n| --- | --- | --- | --- | --- | --- |")
with tempfile.TemporaryDirectory() as folder:
    for name in sys.argv[1:]:
        oracle, rate = os.path.join(ROOT, "tests/oracles", name), {}
        for method in ("gibbs", "nuts", "default"):
            program = os.path.join(folder, method)
            subprocess.run([os.path.join(ROOT, "build/gmc"), "-q", *(["--method", method] if method != "default" else []), os.path.join(oracle, "model.gm"), "-o", program], check=True)
            run = [program, os.path.join(oracle, "data.json"), *SETTINGS]
            text = subprocess.run(run + ["--summary", "all"], check=True, capture_output=True, text=True).stdout
            rate[method] = least(text) / min(seconds(run + ["--no-summary"]) for _ in range(2))
        print("| %s | %.3g | %.3g | %.3g | %s | %.2f |" % (name, rate["gibbs"], rate["nuts"], rate["default"], "moves" if "moved together" in text else "steps", rate["default"] / max(rate["gibbs"], rate["nuts"])), flush=True)
