#!/usr/bin/env python3
"""Method selection against the better of its two methods: effective draws a second of processor time by Gibbs, by NUTS, and by what
programs choose for themselves (docs/performance.md).

    selection.py [NAME ...] [--seeds 10] [--jobs 2] [--methods auto,gibbs,nuts] [--results FILE] [--long] [--report]

A NAME is a part of the name of a folder of tests/bench/selection, an example or an oracle; without one all are run, in some 2 hours of a
core. 4 chains of 1000 sweeps of warm-up and 2000 draws, one thread. Of a run: what was taken, the share of divergent transitions, the
smaller of bulk and tail effective sizes of the slowest of all columns but lp__ (Vehtari et al. 2021), R-hat, and what NAME_run.json says of
its work. A method that does not end in time counts as one with no effective draws.

Times of one and the same run differ by a factor of up to 1.6 on shared machines, so a run is not timed. Its time is what it has done, which
a seed decides, times what that takes: the start of the program, a Gibbs sweep, an evaluation of the density by NUTS. These three are
timed (`units`): runs of each method by turns, the best of --times, the median of two seeds. Where NUTS does not end in time its evaluations
are timed in a default run. At the end stands by how much the times of the default's runs differ from it.
--long adds a run of 20,000 draws a chain by the method that mixes better. Where its R-hat is below 1.005, and that of a default run below
1.02, their means must agree to 4.5 Monte Carlo errors: of 2500 means one or two in a hundred reports ring falsely. Results are kept in FILE
(build/selection.json), so that methods and seeds can be added; a run there is not repeated. Models whose chains may be in different modes
of labels or signs stand apart. Exit status 1 if a condition at the end is not met, or a program failed. Python 3 standard library only.
"""
import argparse
import concurrent.futures
import json
import math
import os
import queue
import re
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
RUN = ["--device", "cpu", "--chains", "4", "--warmup", "1000", "--samples", "2000", "--threads", "1"]
MODES = {"mix2_close", "mix3", "factor1", "product", "ex_faithful", "ex_galaxies"}
EXAMPLES = {                                 # data files, as the README of each has them
    "ar1_missing": ["series.json"], "hierarchical_normal": ["rats.json"], "poisson_gamma": ["pumps.json"], "occupancy": ["sites.json"],
    "lasso": ["diabetes.csv"], "linear": ["diabetes.csv"],
    "logistic": ["pima.csv"], "probit": ["pima.csv"], "robust": ["pima.csv"], "spike_slab": ["diabetes.csv"],
    "faithful": ["y=faithful.csv"], "galaxies": ["galaxies.csv"],
    "horseshoe_probit": ["emails.csv", "X=emails.csv:make-capitalTotal"],
}
ORACLES = ["bugs_blocker", "bugs_seeds", "bugs_leuk", "bugs_dugongs", "bugs_epil2", "bugs_salm", "bugs_stacks_c_t4",
           "bugs_stacks_e_dexp_ridge", "bugs_surgical", "bugs_dyes", "bugs_beetles_logit", "bugs_lsat",
           "ref_robust_t", "ref_logit_pima", "ref_lasso_diabetes", "ref_tobit", "pdb_low_dim_gauss_mix", "pdb_eight_schools_centered",
           "pdb_gp_regr"]


def models():
    for name in sorted(os.listdir(os.path.join(HERE, "selection"))):
        folder = os.path.join(HERE, "selection", name)
        if os.path.exists(os.path.join(folder, "model.gm")):
            yield name, folder, os.path.join(folder, "model.gm"), ["data.json"]
    for name, data in sorted(EXAMPLES.items()):
        folder = os.path.join(ROOT, "examples", name)
        yield "ex_" + name, folder, os.path.join(folder, name + ".gm"), data_of(folder, name, data)
    for name in ORACLES:
        folder = os.path.join(ROOT, "tests/oracles", name)
        yield "or_" + name, folder, os.path.join(folder, "model.gm"), ["data.json"]


def data_of(folder, name, data):
    """The arguments of the command line in the README of an example, if there is one with its data."""
    with open(os.path.join(folder, "README.md")) as f:
        for line in f.read().splitlines():
            words = line.split()
            if words and words[0].startswith("./") and any(os.path.basename(data[0]) == os.path.basename(w) for w in words):
                out = []
                for w in words[1:]:
                    if w.startswith("-"):
                        break
                    out.append(re.sub(r"examples/%s/" % name, "", w))
                return out
    return data


def cores():
    """One processor of each core: two that share a core slow each other down."""
    found = {}
    for c in sorted(os.sched_getaffinity(0)):
        try:
            with open("/sys/devices/system/cpu/cpu%d/topology/thread_siblings_list" % c) as f:
                found.setdefault(f.read().strip(), c)
        except OSError:
            found[str(c)] = c
    return list(found.values())


FREE = queue.Queue()       # cores without a run


def call(command, folder, timeout):
    """-> user seconds, standard output"""
    core = FREE.get()
    try:
        return call_on(core, command, folder, timeout)
    finally:
        FREE.put(core)


def call_on(core, command, folder, timeout):
    with tempfile.TemporaryFile("w+") as out:
        child = subprocess.Popen(command, cwd=folder, stdout=out, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
                                 env={**os.environ, "OPENBLAS_NUM_THREADS": "1"}, preexec_fn=lambda: os.sched_setaffinity(0, {core}))
        try:
            for _ in range(int(timeout * 100)):
                pid, status, use = os.wait4(child.pid, os.WNOHANG)
                if pid:
                    break
                time.sleep(0.01)
            else:
                child.kill()
                os.wait4(child.pid, 0)
                raise TimeoutError("more than %g s" % timeout)
        finally:
            child.returncode = 0
        out.seek(0)
        text = out.read()
        if status:
            raise RuntimeError(text.strip().splitlines()[-1] if text.strip() else "status %d" % status)
        return use.ru_utime, text


def rows_of(summary):
    """name -> mean, its Monte Carlo error, bulk, tail, rhat"""
    found = {}
    for line in summary.splitlines():
        cells = line.split()
        if len(cells) < 10 or cells[0] in ("mean", "lp__"):
            continue
        try:
            found[" ".join(cells[:-9])] = [float(cells[-9]), float(cells[-8]), float(cells[-3]), float(cells[-2]), float(cells[-1])]
        except ValueError:
            continue
    return found


def command_of(program, data, method, seed):
    return [program, *data, *RUN, "--seed", str(seed), "--method", method]


def measure(program, folder, data, method, seed, timeout):
    with tempfile.TemporaryDirectory() as place:
        try:
            seconds, text = call(command_of(program, data, method, seed) + ["--summary", "all", "-q", "-o", place + "/x"], folder, timeout)
        except TimeoutError:
            return {"late": timeout, "least": 0.0, "rhat": 9.0, "taken": "-", "divergent": 0.0, "said": [], "means": {}, "work": [0, 0]}
        with open(place + "/x_run.json") as f:
            work = json.load(f)["work"]
    rows = rows_of(text)
    said = [l for l in text.splitlines() if l.startswith("Sampler:")]
    diverged = re.search(r"Warning: (\d+) of (\d+) ", text)
    taken = "".join("B" if "after each" in l else "M" if l.startswith("Sampler: NUTS") else "S" for l in said) or "S"
    least = min((min(r[2], r[3]), n) for n, r in rows.items())
    return {"least": least[0], "of": least[1], "rhat": max(r[4] for r in rows.values()), "taken": taken,
            "divergent": int(diverged.group(1)) / int(diverged.group(2)) if diverged else 0.0, "said": said,
            "means": {n: r[:2] for n, r in rows.items()},
            "work": [sum(w["gibbs_sweeps"] for w in work), sum(w["evaluations"] for w in work)]}


def units(program, folder, data, runs, times, timeout):
    """Seconds of the start, a Gibbs sweep, an evaluation; and those of the default's first run, by the clock."""
    quiet = ["--no-summary", "-q"]
    start = min(call([program, *data, "--device", "cpu", "--warmup", "0", "--samples", "1", "--threads", "1", *quiet], folder, timeout)[0]
                for _ in range(5))
    found = {"gibbs": [], "nuts": [], "auto": []}
    for seed in (1, 2):
        least = {}
        for _ in range(times):
            for method in found:
                if "late" not in runs["%s %d" % (method, seed)] and (method != "auto" or seed == 1):
                    seconds = call(command_of(program, data, method, seed) + quiet, folder, 3 * timeout)[0]
                    least[method] = min(seconds, least.get(method, seconds))
        for method, seconds in least.items():
            found[method].append((max(seconds - start, 1e-4), runs["%s %d" % (method, seed)]["work"]))
    sweep = median([t / work[0] for t, work in found["gibbs"]])
    evaluations = [max(t - work[0] * sweep, 0.1 * t) / work[1] for t, work in found["nuts"] or found["auto"] if work[1]]
    evaluation = median(evaluations) if evaluations else 0.0
    return {"start": start, "sweep": sweep, "evaluation": evaluation, "auto": start + found["auto"][0][0] if found["auto"] else 0.0}


def seconds_of(run, unit):
    return run["late"] if "late" in run else unit["start"] + run["work"][0] * unit["sweep"] + run["work"][1] * unit["evaluation"]


def long_run(program, folder, data, runs, seeds, timeout):
    """By the method that mixes better: its R-hat and means."""
    def rate(method):
        return median([runs["%s %d" % (method, s)]["least"] / seconds_of(runs["%s %d" % (method, s)], runs["units"]) for s in seeds])
    method = max(("gibbs", "nuts"), key=rate)
    _, text = call([program, *data, *RUN, "--samples", "20000", "--seed", "99", "--method", method, "--summary", "all", "-q"], folder,
                   10 * timeout)
    rows = rows_of(text)
    return {"rhat": max(r[4] for r in rows.values()), "means": {n: r[:2] for n, r in rows.items()}}


def disagreement(run, known):
    """The largest |z| of the means of a run against a long one."""
    return max((abs(m - known["means"][n][0]) / math.hypot(e, known["means"][n][1]) for n, (m, e) in run["means"].items()
                if n in known["means"] and e > 0), default=0.0)


def compile_one(gmc, model, program):
    subprocess.run([gmc, "-q", model, "-o", program], check=True, capture_output=True, text=True)


def median(x):
    x = sorted(x)
    return 0.5 * (x[(len(x) - 1) // 2] + x[len(x) // 2])


def geometric(x):
    return math.exp(sum(math.log(max(v, 1e-3)) for v in x) / len(x)) if x else float("nan")


def report(kept, seeds):
    print("| model | taken | Gibbs, NUTS: effective draws a second | default / best: median, worst | divergent, worst | time / Gibbs, "
          "worst | |\n| --- | --- | --- | --- | --- | --- | --- |")
    middle, worst, bad = [], [], []
    alone = []          # of the better method itself: its worst seed relative to its median
    timed = []          # of the default's first run: by the clock, relative to what its work says
    right = []          # of seeds that took the better method: relative to its median
    for name in sorted(kept):
        runs = kept[name]
        of = {m: [runs.get("%s %d" % (m, s)) for s in seeds] for m in ("auto", "gibbs", "nuts")}
        of = {m: [r for r in v if r and "least" in r] for m, v in of.items()}
        if not all(of.values()) or "units" not in runs:
            failed = [r["failed"] for r in runs.values() if r and "failed" in r]
            print("| %s | %s |" % (name, failed[0][:100] if failed else "not run"))
            bad += [name + ": not run"] * bool(failed)
            continue
        for v in of.values():
            for r in v: r["seconds"] = seconds_of(r, runs["units"])
        rate = {m: [r["least"] / r["seconds"] for r in v] for m, v in of.items()}
        gibbs, nuts = median(rate["gibbs"]), median(rate["nuts"])
        best = max(gibbs, nuts, 1e-9)
        time_ratio = max(r["seconds"] for r in of["auto"]) / median([r["seconds"] for r in of["gibbs"]])
        least, mid = min(rate["auto"]) / best, median(rate["auto"]) / best
        share, flags = max(r["divergent"] for r in of["auto"]), []
        taken = "".join(r["taken"][:1] for r in of["auto"])
        if runs["units"]["auto"] and of["auto"][0]["least"]: timed.append(runs["units"]["auto"] / of["auto"][0]["seconds"])
        if name not in MODES:
            middle.append(mid)
            worst.append(least)
            better = "gibbs" if gibbs >= nuts else "nuts"
            alone.append(min(rate[better]) / best)
            right += [v / best for r, v in zip(of["auto"], rate["auto"]) if (r["taken"][:1] == "S") == (better == "gibbs")]
            if least < 0.5: flags.append("SLOW")
            if len(set(taken)) > 1 and max(rate["auto"]) > 2 * min(rate["auto"]): flags.append("FLIP")
            if share > 0.005 and gibbs > max(rate["auto"]) / 3: flags.append("DIVERGES")
            if time_ratio > 2 and mid * best < gibbs and max(r["seconds"] for r in of["auto"]) > 0.1: flags.append("TIME")
            if runs.get("long", {}).get("rhat", 9) < 1.005 and max([disagreement(r, runs["long"]) for r in of["auto"] if r["rhat"] < 1.02],
                                                                   default=0) > 4.5: flags.append("DISAGREES")
        bad += ["%s: %s" % (name, f) for f in flags]
        print("| %s | %s | %.3g, %.3g | %.2f, %.2f | %.2f %% | %.1f | %s |" % (name, taken, gibbs, nuts, mid, least, 100 * share,
                time_ratio, " ".join(flags)))
    print("%d models: geometric mean of the median seed %.2f (wanted 0.90), of the worst %.2f (0.80); %d below 0.5" % (len(middle),
            geometric(middle), geometric(worst), sum(w < 0.5 for w in worst)))
    print("The better method, always taken and without a trial: the worst seed has %.2f, %d models below 0.5. Where it was taken after a "
          "trial (%d runs), the geometric mean is %.2f." % (geometric(alone), sum(a < 0.5 for a in alone), len(right), geometric(right)))
    print("Times of the default by the clock, relative to what its work says: %.2f in the geometric mean, %.2f to %.2f." % (
        geometric(timed), min(timed, default=0), max(timed, default=0)))
    return bad, middle and geometric(middle) >= 0.9 and geometric(worst) >= 0.8


def main():
    p = argparse.ArgumentParser()
    p.add_argument("names", nargs="*")
    p.add_argument("--seeds", type=int, default=10)
    p.add_argument("--jobs", type=int, default=1)
    p.add_argument("--methods", default="auto,gibbs,nuts")
    p.add_argument("--results", default=os.path.join(ROOT, "build/selection.json"))
    p.add_argument("--gmc", default=os.path.join(ROOT, "build/gmc"))
    p.add_argument("--nuts-timeout", type=float, default=60, help="of runs by NUTS alone")
    p.add_argument("--times", type=int, default=3)
    p.add_argument("--timeout", type=float, default=200)
    p.add_argument("--again", default="", help="methods whose kept results are forgotten")
    p.add_argument("--long", action="store_true")
    p.add_argument("--report", action="store_true", help="of what is kept")
    o = p.parse_args()
    seeds = range(1, o.seeds + 1)
    kept = json.load(open(o.results)) if os.path.exists(o.results) else {}
    for core in cores()[:o.jobs]: FREE.put(core)
    folder = os.path.join(os.path.dirname(o.results), "selection")
    os.makedirs(folder, exist_ok=True)
    wanted = [m for m in models() if not o.names or any(n in m[0] for n in o.names)]

    def build(model):
        try:
            compile_one(o.gmc, model[2], os.path.join(folder, model[0]))
        except subprocess.CalledProcessError as e:
            return model[0], "failed", {"failed": (e.stderr or str(e)).strip()}
        return None

    def one(work):
        (name, where, _, data), key = work
        program = os.path.join(folder, name)
        try:
            if key == "units": return name, key, units(program, where, data, kept[name], o.times, o.timeout)
            if key == "long":
                return name, key, long_run(program, where, data, kept[name], seeds, o.timeout)
            method, seed = key.split()
            return name, key, measure(program, where, data, method, int(seed), o.timeout if method != "nuts" else o.nuts_timeout)
        except (RuntimeError, TimeoutError) as e:
            return name, "failed", {"failed": str(e)}
        except KeyError:                    # a run that its units need is not kept
            return None

    def keep(results):
        for done in concurrent.futures.as_completed(results):
            if done.result() is None: continue
            name, key, run = done.result()
            kept.setdefault(name, {})[key] = run
            with open(o.results + ".part", "w") as f:
                json.dump(kept, f)
            os.replace(o.results + ".part", o.results)

    if not o.report:
        for runs in kept.values():
            for key in list(runs):
                if key.split()[0] in o.again.split(",") or key == "failed": del runs[key]
        # seed by seed, so that what is kept of a run that ended early has some of all models
        with concurrent.futures.ThreadPoolExecutor(o.jobs) as pool:
            keep([pool.submit(build, m) for m in wanted])
            keep([pool.submit(one, (m, "%s %d" % (method, s))) for s in seeds for m in wanted for method in o.methods.split(",")
                  if "failed" not in kept.get(m[0], {}) and "%s %d" % (method, s) not in kept.get(m[0], {})])
        with concurrent.futures.ThreadPoolExecutor(max(1, o.jobs // 2)) as pool:
            keep([pool.submit(one, (m, "units")) for m in wanted if "failed" not in kept[m[0]] and "units" not in kept[m[0]]])
            if o.long:
                keep([pool.submit(one, (m, "long")) for m in wanted if "failed" not in kept[m[0]] and "long" not in kept[m[0]]])
    bad, good = report({n: r for n, r in kept.items() if any(n == m[0] for m in wanted)}, seeds)
    for line in bad: print("not met: " + line)
    return 0 if good and not bad else 1


sys.exit(main())
