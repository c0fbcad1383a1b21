#!/usr/bin/env python3
"""--device auto against the better of the CPU and a GPU, in seconds of whole runs (runtime/host/device_auto.c).

    device_auto.py                              builds in a folder that is removed, and runs
    device_auto.py build FOLDER [ARCH] [DIR...] compiles only; ARCH (sm_90) for a machine without a GPU. A DIR has model.gm and data.json:
                                                4 chains of 2000 sweeps, --method gibbs
    device_auto.py run FOLDER [NAME...]         runs what was built: NumPy, the NVIDIA driver and NVRTC; a NAME is a part of a model's name

Each model makes a fixed number of sweeps by --device cpu, by --device gpu and by auto. A run that lasts more than LIMIT seconds is ended
there; what does not end on either device in that time is not counted. Kernels are compiled before. Of auto: what it took, its seconds
beside those of the better device, and what it said. A sweep: microseconds of all chains, as the line at the end of a run has them, and in
brackets what costs predict. Exit status 1 if auto is more than 1.5 times as slow as the better one (0.1 s are forgiven: a program's start
varies by as much). Without a GPU: the CPU alone.
"""
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np

import gpu

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
GMC = os.environ.get("GMC") or os.path.join(ROOT, "build", "gmc")
LIMIT, BOUND, FORGIVEN = 3.5, 1.5, 0.1
BUDGET = 140                         # seconds of all runs; models that are left are named
FEW = 50                             # sweeps of warm-up, too short for method selection: the same draws on both devices


def example(name):
    return os.path.join(ROOT, "examples", name, name + ".gm")


def bench(name):
    return os.path.join(HERE, name + ".gm")


def oracle(name):
    return os.path.join(ROOT, "tests", "oracles", name, "model.gm")


def process(n):
    """A Gaussian process regression of n points."""
    def make(folder):
        r = np.random.default_rng(1)
        x = np.sort(r.uniform(-10, 10, n))
        with open(os.path.join(folder, "data.json"), "w") as f:
            json.dump({"N": n, "x": x.tolist(), "y": (np.sin(x) + 0.3 * r.standard_normal(n)).tolist()}, f)
        return ["data.json"]
    return make


def poisson(n, p, groups):
    def make(folder):
        r = np.random.default_rng(1)
        X, g = r.standard_normal((n, p)), r.integers(1, groups + 1, n)
        np.save(os.path.join(folder, "X.npy"), X)
        np.save(os.path.join(folder, "g.npy"), g.astype("<i4"))
        np.save(os.path.join(folder, "y.npy"), r.poisson(np.exp(0.3 * X[:, 0] + 0.5 * r.standard_normal(groups)[g - 1])).astype("<i4"))
        return ["X=X.npy", "g=g.npy", "y=y.npy", "G=%d" % groups]
    return make


def drawn(model, n, p):
    return lambda folder: gpu.data(folder, model, n, p)[0]



#  name, model, {option of gmc}, files to copy, data, chains, sweeps
MODELS = [
    ("eight schools", oracle("pdb_eight_schools_noncentered"), ["--method", "gibbs"], ["data.json"], ["data.json"], 4, 60000),
    ("eight schools, 4000 chains", oracle("pdb_eight_schools_noncentered"), ["--method", "gibbs"], ["data.json"], ["data.json"], 4000,
     3000),
    ("rats", example("hierarchical_normal"), [], ["rats.json"], ["rats.json"], 4, 20000),
    ("rats, a short run", example("hierarchical_normal"), [], ["rats.json"], ["rats.json"], 4, 1000),
    ("galaxies", example("galaxies"), [], ["galaxies.csv"], ["galaxies.csv"], 4, 10000),
    ("logistic, 768 x 8", example("logistic"), [], ["pima.csv"], ["pima.csv", "X=pima.csv:pregnant-age"], 4, 8000),
    ("horseshoe probit, 4210 x 57", example("horseshoe_probit"), [], ["emails.csv"], ["emails.csv", "X=emails.csv:make-capitalTotal"], 4,
     2000),
    ("Gaussian process, 11 points", oracle("pdb_gp_regr"), [], ["data.json"], ["data.json"], 4, 8000),
    ("Gaussian process, 80 points", oracle("pdb_gp_regr"), [], [], process(80), 4, 250),
    ("Gaussian process, 80 points, NUTS", oracle("pdb_gp_regr"), ["--method", "nuts"], [], process(80), 4, 300),
    ("topics, 800 words", example("topics"), [], ["corpus.json"], ["corpus.json"], 4, 4000),
    ("probit, 10^4 x 8", bench("probit"), [], [], drawn("probit", 10_000, 8), 4, 2000),
    ("probit, 2 10^6 x 8", bench("probit"), [], [], drawn("probit", 2_000_000, 8), 4, 200),
    ("horseshoe probit, 10^5 x 100", bench("horseshoe"), [], [], drawn("horseshoe", 100_000, 100), 4, 500),
    ("Lasso, 425 x 1000", example("lasso"), [], [], drawn("lasso", 425, 1000), 4, 150),
    ("random intercepts, 10^6 rows, 10^3 groups", bench("intercepts"), [], [], drawn("intercepts", 1_000_000, 1000), 4, 2000),
    ("logistic, 20,000 x 20, 200 groups", bench("grouped"), [], [], drawn("grouped", 20_000, 20), 4, 300),
    ("crossed effects, 10^5 rows", bench("crossed"), [], [], drawn("crossed", 100_000, 1000), 4, 200),
    ("state space, 10^5 places", bench("walk"), [], [], drawn("walk", 100_000, 4), 4, 100),
    ("hidden Markov, 3000 times", bench("hmm"), [], [], drawn("hmm", 3000, 4), 4, 700),
    ("field, 40 x 40", bench("field"), [], [], drawn("field", 1600, 23), 4, 500),
    ("Poisson regression, 2000 x 5, NUTS", bench("nuts_poisson"), [], [], poisson(2000, 5, 50), 4, 1500),
    ("Poisson regression, 10^5 x 20, NUTS", bench("nuts_poisson"), [], [], poisson(100_000, 20, 1000), 4, 100),
]


def build(folder, arch=None, given=()):
    """programs.json: name, program, folder of data, inputs (or None: made when it runs), chains, sweeps."""
    os.makedirs(folder, exist_ok=True)
    models = MODELS + [(os.path.basename(os.path.normpath(d)), os.path.join(d, "model.gm"), ["--method", "gibbs"],
                        [os.path.abspath(os.path.join(d, "data.json"))], ["data.json"], 4, 2000) for d in given]
    made, listed = {}, []

    def compile(key):
        source, options = key
        program = os.path.join(folder, "%s_%d" % (os.path.basename(os.path.dirname(source)) + "_" + os.path.basename(source)[:-3],
                                                  len(options)))
        ran = subprocess.run([GMC, "-q", source, "-o", program, *options, *(["--arch", arch] if arch else [])], capture_output=True,
                             text=True)
        if ran.returncode != 0:
            sys.exit("%s: %s" % (source, ran.stderr))
        if shutil.which("strip"):                        # less to carry to another machine
            subprocess.run(["strip", program])
        return os.path.basename(program)
    keys = list(dict.fromkeys((m[1], tuple(m[2])) for m in models))
    with ThreadPoolExecutor(os.cpu_count() or 2) as pool:
        made = dict(zip(keys, pool.map(compile, keys)))
    for k, (name, source, options, files, data, chains, sweeps) in enumerate(models):
        place = os.path.join(folder, "data_%d" % k)
        os.makedirs(place, exist_ok=True)
        for file in files:
            with open(os.path.join(os.path.dirname(source), file), "rb") as f, open(os.path.join(place, os.path.basename(file)),
                    "wb") as to:
                to.write(f.read())
        listed.append([name, made[source, tuple(options)], "data_%d" % k, None if callable(data) else data, chains, sweeps])
    with open(os.path.join(folder, "programs.json"), "w") as f:
        json.dump(listed, f)


def fit(folder, program, place, inputs, device, chains, warmup, samples, *more, limit=LIMIT):
    """Seconds, or None if it had to be ended; and the run."""
    command = [os.path.join("..", program), *inputs, "--device", device, "--chains", str(chains), "--warmup", str(warmup),
               "--samples", str(samples), "--no-summary", "--no-lp", "--seed", "1", *more]
    before = time.monotonic()
    try:
        ran = subprocess.run(command, cwd=os.path.join(folder, place), capture_output=True, text=True, timeout=limit)
    except subprocess.TimeoutExpired as late:
        return None, subprocess.CompletedProcess(command, 124, "", (late.stderr or b"").decode())
    if ran.returncode != 0:
        return float("nan"), ran
    return time.monotonic() - before, ran


def pace(ran):
    """Microseconds a sweep, as the run says."""
    said = re.search(r", ([0-9.e+-]+) ms each", ran.stderr)
    return 1000 * float(said.group(1)) if said else None


def cell(x, form="%.2f", limit=LIMIT):
    return "> %g" % limit if x is None else form % x


def run(folder, only):
    folder, began = os.path.abspath(folder), time.monotonic()
    with open(os.path.join(folder, "programs.json")) as f:
        chosen = [m for m in json.load(f) if not only or any(o in m[0] for o in only)]
    made = {name: data for name, _, _, _, data, _, _ in MODELS}
    inputs = {name: files if files is not None else made[name](os.path.join(folder, place)) for name, _, place, files, _, _ in chosen}
    first = chosen[0]
    _, probe = fit(folder, first[1], first[2], inputs[first[0]], "gpu", 1, 0, 1)
    there = probe.returncode != 5
    if not there:
        print("there is no GPU here: " + (probe.stderr.strip().splitlines() or [""])[-1])
    else:                                                # kernels, for their data
        with ThreadPoolExecutor(os.cpu_count() or 2) as pool:
            list(pool.map(lambda m: fit(folder, m[1], m[2], inputs[m[0]], "gpu", 1, 0, 1, limit=100), chosen))
    print("| model | chains | sweeps | CPU, s | GPU, s | auto, s | taken | auto/better | CPU, us a sweep (predicted) | GPU, us a sweep "
          "(predicted) |\n"
          "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |")
    worst, failed, counted, left = 0, [], 0, []
    for name, program, place, _, chains, sweeps in chosen:
        if time.monotonic() - began > BUDGET:
            left.append(name)
            continue
        args = folder, program, place, inputs[name]
        rest = chains, FEW, sweeps - FEW
        cpu, on_cpu = fit(*args, "cpu", *rest)
        gpu_, on_gpu = fit(*args, "gpu", *rest) if there else (None, on_cpu)
        auto, by_auto = fit(*args, "auto", *rest, limit=2 * LIMIT) if there else (cpu, on_cpu)
        profile = fit(*args, "cpu", chains, 0, 1, "--profile")[1].stdout
        predicted = re.search(r"^predicted: ([0-9.e+-]+) us a sweep on the CPU, ([0-9.e+-]+) on a GPU", profile, re.M)
        predicted = [float(predicted.group(k)) for k in (1, 2)] if predicted else [float("nan")] * 2
        ended = [s for s in (cpu, gpu_) if s is not None and s == s]
        ratio = (2 * LIMIT if auto is None else auto) / (min(ended) + FORGIVEN) if ended else None
        if ended:
            counted += 1
            worst = max(worst, ratio)
            if not ratio <= BOUND or auto is None:
                failed.append(name)
        taken = "" if auto is None and not by_auto.stderr else "GPU" if " on GPU " in by_auto.stderr else "CPU"
        most = 1e6 * LIMIT / sweeps
        print("| %s | %d | %d | %s | %s | %s | %s | %s | %s (%.3g) | %s (%.3g) |" % (
            name, chains, sweeps, cell(cpu), cell(gpu_), cell(auto, limit=2 * LIMIT), taken, "" if ratio is None else "%.2f" % ratio,
            cell(pace(on_cpu), "%.3g", most), predicted[0], cell(pace(on_gpu) if there else None, "%.3g", most), predicted[1]), flush=True)
        for ran in (on_gpu, by_auto):
            if ran.returncode not in (0, 124):
                print("    status %d: %s" % (ran.returncode, (ran.stderr.strip().splitlines() or [""])[-1]), flush=True)
        for line in by_auto.stderr.splitlines():
            if line.startswith(("CPU: ", "GPU: ", "on the CPU")):
                print("    " + line, flush=True)
    if left:
        print("no time for: " + ", ".join(left))
    print("device_auto: %.0f s; %d models, auto is at most %.2f times as slow as the better device (bound %g)%s" % (
        time.monotonic() - began, counted, worst, BOUND, "; slower: " + ", ".join(failed) if failed else ""))
    return 1 if failed else 0


def main():
    a = sys.argv[1:]
    if not a:
        with tempfile.TemporaryDirectory() as folder:
            build(folder)
            return run(folder, [])
    if a[0] == "build" and len(a) > 1:
        arch = a[2] if len(a) > 2 and re.match(r"(sm|compute)_\d+$", a[2]) else None
        build(a[1], arch, a[3 if arch else 2:])
        return 0
    if a[0] == "run" and len(a) > 1:
        return run(a[1], a[2:])
    print(__doc__)
    return 2


if __name__ == "__main__":
    sys.exit(main())
