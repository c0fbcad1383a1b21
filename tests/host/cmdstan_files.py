"""The layout of files of draws, line by line as CmdStan writes it, and what CmdStanPy makes of them where it is installed.

    cmdstan_files.py GMC DIRECTORY"""
import glob
import json
import os
import re
import shutil
import subprocess
import sys

from programs import check, failures

gmc, work = sys.argv[1:3]
FUNNEL = "prior { v ~ normal(0, 3); for (i in 1:9) x[i] ~ normal(0, exp(v / 2)); }\n"
NECK = "prior { v ~ normal(0, 3); vector[5] x ~ normal(0, 1000); }\nlikelihood { target += -sum(square(x)) / (2 * exp(v)) - 2.5 * v; }\n"
METHOD = ["lp__", "accept_stat__", "stepsize__", "treedepth__", "n_leapfrog__", "divergent__", "energy__"]
shutil.rmtree(work, ignore_errors=True)
os.makedirs(work)
os.chdir(work)


def fit(name, model, *flags, seed=1, method=(), chains=2):
    with open(name + ".gm", "w") as f: f.write(model)
    if not os.path.exists(name): subprocess.run([gmc, "-q", "--no-device", *method, name + ".gm", "-o", name], check=True)
    subprocess.run(["./" + name, "--seed", str(seed), "--chains", str(chains), "--no-summary", "-q",
                    "--overwrite", "-o", name, *flags], check=True)
    return [open("%s_%d.csv" % (name, c + 1)).read().splitlines() for c in range(chains)]


def parts(lines):
    """Settings, names, the block below the names, rows, the last lines."""
    at = next(i for i, line in enumerate(lines) if line[0] != "#")
    row = next(i for i in range(at + 1, len(lines)) if lines[i][0] != "#")
    end = next(i for i in range(row, len(lines)) if lines[i][0] == "#")
    settings = dict(line.lstrip("# ").split(" = ") for line in lines[:at] if " = " in line)
    return settings, lines[at].split(","), lines[at + 1:row], [line.split(",") for line in lines[row:end]], lines[end:]


def layout(what, lines, samples, coordinates):
    settings, names, block, rows, times = parts(lines)
    check(len(rows) == samples and all(len(r) == len(names) and r[0][0] != "#" for r in rows), what, "has %d rows" % samples)
    check(times[0] == "# " and times[4:] == ["# "] and all(re.fullmatch(r"#  (Elapsed Time:|             ) [0-9.]+ seconds \(%s\)" % k, t)
                                                           for k, t in zip(("Warm-up", "Sampling", "Total"), times[1:4])), what,
                                                           "ends with the times")
    if not coordinates:
        check(settings["algorithm"] == "fixed_param" and not any("Adaptation" in b for b in block), what, "has no adaptation")
        return names, rows
    check(settings["algorithm"] == "hmc" and settings["engine"] == "nuts" and settings["metric"] == "diag_e"
          and int(settings["max_depth"]) > 0, what, "names the sampler", settings)
    check(names[:7] == METHOD, what, "has CmdStan's columns first")
    check(block[-4:-1][0] == "# Adaptation terminated" and block[-3].startswith("# Step size = ")
          and block[-2] == "# Diagonal elements of inverse mass matrix:", what, "says what was adapted", block[-4:])
    step, metric = float(block[-3].split(" = ")[1]), [float(x) for x in block[-1][2:].split(", ")]
    used = {float(r[2]) for r in rows}
    check(used == {step} and len(metric) == coordinates and all(m > 0 for m in metric), what,
          "tells the step size of its draws, and a metric:", step, len(metric))
    return names, rows


funnel = fit("funnel", FUNNEL, "--samples", "200", "--warmup", "300", method=("--method", "nuts"))
for c, lines in enumerate(funnel): names, rows = layout("NUTS, chain %d" % (c + 1), lines, 200, 10)
layout("no warm-up", fit("funnel", FUNNEL, "--samples", "20", "--warmup", "0", chains=1)[0], 20, 10)
layout("shallow trees", fit("shallow", FUNNEL + "infer { (v, x) by nuts(depth = 3); }\n", "--samples", "20", chains=1)[0], 20, 10)
check(parts(open("shallow_1.csv").read().splitlines())[0]["max_depth"] == "3", "the greatest depth is that of the model")
layout("thinned", fit("funnel", FUNNEL, "--samples", "50", "--thin", "3", "--warmup", "100", chains=1)[0], 50, 10)
layout("chains that adapt together", fit("funnel", FUNNEL, "--samples", "50", "--warmup", "200", "--moves", "chees", chains=4)[3], 50, 10)
two = "prior { v ~ normal(0, 3); x ~ normal(0, exp(v / 2)); vector[3] y ~ normal(0, 1); }\ninfer { (v, x) by nuts; y by nuts; }\n"
layout("two blocks", fit("two", two, "--samples", "50", "--warmup", "100", chains=1)[0], 50, 5)
layout("Gibbs updates", fit("gibbs", "prior { m ~ normal(0, 1); }\n", "--samples", "50", chains=1)[0], 50, 0)
both = "prior { a ~ normal(0, 5); s ~ half_cauchy(0, 1); y ~ student_t(4, a, s); }\n"
_, names, _, _, _ = parts(fit("both", both, "--samples", "50", "--warmup", "300", chains=1)[0])
if "stepsize__" in names: layout("what warm-up decides", open("both_1.csv").read().splitlines(), 50, 3)


def said(name, chain=1):
    """By what the file, and the record of the run, say that transitions were made; what diagnose advises against divergent ones."""
    head = parts(open("%s_%d.csv" % (name, chain)).read().splitlines())[0]
    lines = {k[len("transitions of "):]: v for k, v in head.items() if k.startswith("transitions of ")}
    record = {t["of"]: t["by"] + ", chosen" * t["chosen"] for t in json.load(open(name + "_run.json"))["transitions"]}
    check(record == lines, name, "has the methods in its record", lines, record)
    return list(lines.values())


def advice(name, *files):
    done = subprocess.run(["./" + name, "diagnose", *files], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    text = done.stdout.split("Divergent transitions", 1)[-1].split("\n\n")[0]
    return "Give hmc a smaller step" in text, "--adapt-delta" in text, "--method gibbs" in text


fit("given", NECK + "infer { (v, x) by hmc(steps = 10, step = 60); }\n", "--samples", "100", "--warmup", "50", "--format", "both")
check(said("given") == ["HMC of a given step"], "HMC of a given step is said", said("given"))
check(advice("given", "given_1.csv", "given_2.csv") == (True, False, False), "a given step is answered with a smaller one")
check(advice("given", "given.nc") == (True, False, False), "also by the file for ArviZ")
old = [open("given_%d.csv" % c).read().replace("# transitions of", "# nothing of") for c in (1, 2)]
for c in (1, 2): open("older_%d.csv" % c, "w").write(old[c - 1])
check(advice("given", "older_1.csv", "older_2.csv") == (False, True, True), "files that do not say it get advice for all")
fit("steps", NECK + "infer { (v, x) by hmc(steps = 10); }\n", "--samples", "20", "--warmup", "50")
check(said("steps") == ["HMC"], "HMC whose step adapts is said", said("steps"))
check(said("two") == ["NUTS", "NUTS"], "two blocks are said", said("two"))
fit("funnel", FUNNEL, "--samples", "50", "--warmup", "200", "--moves", "chees", chains=4)
check(said("funnel", 3) == ["ChEES"], "ChEES is said", said("funnel"))
fit("neck", NECK, "--samples", "300", "--warmup", "300", method=("--method", "nuts"))
check(said("neck") == ["NUTS"], "NUTS alone is said", said("neck"))
if any(r[5] != "0" for c in (1, 2) for r in parts(open("neck_%d.csv" % c).read().splitlines())[3]):
    check(advice("neck", "neck_1.csv", "neck_2.csv") == (False, True, False), "NUTS alone is not answered with Gibbs updates")
fit("chosen", both, "--samples", "20", "--warmup", "300", "--method", "nuts", chains=1)
check(said("chosen") == ["NUTS, chosen"], "what could be drawn by Gibbs updates is said", said("chosen"))
try:
    import cmdstanpy
except ImportError:
    print("skipped CmdStanPy is not installed: what it reads is not compared")
else:
    import logging
    cmdstanpy.utils.get_logger().setLevel(logging.ERROR)
    for seed in range(1, 20):                    # until there are divergent transitions
        rows = [parts(lines)[3] for lines in fit("neck", NECK, "--samples", "400", "--warmup", "200", seed=seed,
                                                 method=("--method", "nuts"))]
        divergent = [sum(int(r[5]) for r in chain) for chain in rows]
        if sum(divergent): break
    read = cmdstanpy.from_csv(sorted(glob.glob("neck_[12].csv")))
    check(list(read.divergences) == divergent and sum(divergent) > 0, "CmdStanPy counts divergent transitions:", read.divergences,
          divergent)
    check(read.draws_pd().shape[0] == 800 and read.inv_metric.shape == (2, 6) and list(read.step_size) == [float(chain[0][2])
            for chain in rows], "and has draws, metric and step sizes")
    check(abs(float(read.draws_pd()["x[5]"].iloc[-1]) - float(rows[1][-1][-1])) < 1e-12, "and numbers under their names")
    for name in ("gibbs_1", "two_1", "shallow_1"): check(len(cmdstanpy.from_csv([name + ".csv"]).draws_pd()) > 0, "CmdStanPy reads", name)
sys.exit(failures() > 0)
