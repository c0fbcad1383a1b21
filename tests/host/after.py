"""Commands about stored draws: the table of `summary` is that of the run, `diagnose` names causes alone, `loo` is ArviZ's, `compare` takes
differences of pairs, and what does not go together is refused with one line.

    after.py GMC DIRECTORY"""
import csv
import glob
import json
import os
import random
import shutil
import sys
import warnings

import numpy as np

warnings.simplefilter("ignore")
import arviz as az  # noqa: E402
from programs import check, failures  # noqa: E402
import programs  # noqa: E402

gmc, work = os.path.abspath(sys.argv[1]), sys.argv[2]
LINE = """data { int N; vector[N] y; vector[N] u; vector[N] x; }
prior { a ~ normal(0, 5); b ~ normal(0, 5); s ~ half_normal(0, 2); }
likelihood { for (i in 1:N) y[i] ~ normal(a + b * x[i], s); for (i in 1:N) u[i] ~ normal(a, 1); }
"""
LEVEL = """data { int N; vector[N] y; vector[N] u; }
prior { a ~ normal(0, 5); s ~ half_normal(0, 2); }
likelihood { for (i in 1:N) y[i] ~ normal(a, s); for (i in 1:N) u[i] ~ normal(a, 1); }
"""
MIXTURE = """data { int N; real y[N]; }
prior { for (k in 1:2) mu[k] ~ normal(0, 10); for (k in 1:2) s[k] ~ half_normal(0, 2); w ~ dirichlet([1, 1]); }
latent { for (i in 1:N) z[i] ~ categorical(w); }
likelihood { for (i in 1:N) y[i] ~ normal(mu[z[i]], s[z[i]]); }
"""
SEPARATED = """data { int N; int<lower=0, upper=1> y[N]; vector[N] x; }
prior { real a ~ flat(); real b ~ flat(); }
likelihood { for (i in 1:N) y[i] ~ bernoulli_logit(a + b * x[i]); }
"""


def run(*args, status=0): return programs.run(*args, status=status, cwd=work)


def refused(*args, said):
    done = run(gmc, *args, status=2)
    check(said in done.stderr and done.stderr.count("\n") == 1 and not done.stdout, "refused:", " ".join(args), done.stderr.strip())


def make(name, model, data, *options, method=("--method", "gibbs")):
    with open(os.path.join(work, name + ".gm"), "w") as f:
        f.write(model)
    with open(os.path.join(work, name + ".json"), "w") as f:
        json.dump(data, f)
    run(gmc, "-q", "--no-device", *method, name + ".gm", "-o", name)
    return run("./" + name, name + ".json", "--seed", "1", "-q", "--overwrite", "-o", name, *options).stdout


def pointwise(path):
    with open(os.path.join(work, path)) as f:
        rows = list(csv.DictReader(f))
    return [r["observation"] for r in rows], {k: np.array([float(r[k]) for r in rows]) for k in ("elpd_loo", "p_loo", "pareto_k")}


def by_arviz(name, responses, reff=None):
    """ArviZ's loo of the files of a run, without values that are missing; log-likelihoods of several responses are added"""
    data = az.from_cmdstan(sorted(glob.glob(os.path.join(work, name + "_[0-9].csv"))), log_likelihood=["log_lik_y", "log_lik_u"])
    parts = [data.log_likelihood[r].values for r in responses]
    parts = [np.where(np.isnan(p).all(axis=(0, 1)), 0, p) for p in parts] if len(parts) > 1 else parts
    total = sum(parts)
    total = total[:, :, ~np.isnan(total).all(axis=(0, 1))]
    whole = az.from_dict(posterior={v: data.posterior[v].values for v in data.posterior}, log_likelihood={"y": total})
    return az.loo(whole, pointwise=True, reff=reff)


def same(said, loo, what):
    got = {k: float(line.split()[i]) for line in said.splitlines() if line.startswith(("elpd_loo", "p_loo"))
           for k, i in ((line.split()[0], 1), (line.split()[0] + " se", 2))}
    n = len(loo.loo_i)  # ArviZ 0.23 divides by n in the variance; ArviZ 1, and loo in R, by n - 1
    check(abs(got["elpd_loo"] - loo.elpd_loo) < 0.006 and abs(got["elpd_loo se"] - loo.se * np.sqrt(n / (n - 1))) < 0.006 and
          abs(got["p_loo"] - loo.p_loo) < 0.006, what, got, loo.elpd_loo, loo.se, loo.p_loo)


def cross_validation(random_numbers):
    x = [random_numbers.gauss(0, 1) for _ in range(60)]
    y = [0.5 + 1.2 * v + random_numbers.gauss(0, 1) for v in x]
    y[7], y[30] = 9.0, None
    u = [0.5 + random_numbers.gauss(0, 1) for _ in x]
    data = {"y": y, "u": u, "x": x}
    said = make("line", LINE, data, "--log-lik", "--summary", "all")
    make("level", LEVEL, {"y": y, "u": u}, "--log-lik", "--no-summary")
    table = run(gmc, "summary", "line", "--summary", "all").stdout
    check(table.splitlines()[:6] == said.splitlines()[:6] and len(table.splitlines()[3].split()) == 10, "summary is the run's table", table)
    check(run("./line", "summary", "line", "--summary", "all").stdout == table, "a program has it, too")
    rows = list(csv.reader(run(gmc, "summary", "line", "--summary", "csv", "--quantiles", "2.5,97.5").stdout.splitlines()))
    check(rows[0][4:6] == ["2.5%", "97.5%"] and [r[0] for r in rows] == ["variable", "lp__", "a", "b", "s"], "as data", rows)
    check(json.loads(run(gmc, "summary", "line", "--summary", "json").stdout)["draws"] == 1000, "as an object")
    check("No warnings" in run(gmc, "diagnose", "line").stdout, "nothing is wrong with it")
    run(gmc, "report", "line", "-o", "line.html")

    for options, responses, reff in ((["--log-lik", "y"], ["log_lik_y"], None), (["--log-lik", "log_lik_u"], ["log_lik_u"], None),
                                     (["--log-lik", "y", "--r-eff", "0.4"], ["log_lik_y"], 0.4), ([], ["log_lik_y", "log_lik_u"], None)):
        said = run(gmc, "loo", "line", "--pointwise", "point.csv", *options).stdout
        loo = by_arviz("line", responses, reff)
        names, got = pointwise("point.csv")
        check(len(names) == len(loo.loo_i) == (59 if responses == ["log_lik_y"] else 60), options, len(names), "observations")
        # sums are added in another order
        check(np.abs(got["elpd_loo"] - loo.loo_i.values).max() < 1e-10, options, "elpd of each",
              np.abs(got["elpd_loo"] - loo.loo_i.values).max())
        check(np.abs(got["pareto_k"] - loo.pareto_k.values).max() < 1e-8, options, "k of each")
        check(abs(got["elpd_loo"].sum() - loo.elpd_loo) < 1e-8 and abs(got["p_loo"].sum() - loo.p_loo) < 1e-8, options, "sums")
        same(said, loo, options)
        check(" + ".join(responses) in said, "it says of which responses", said.splitlines()[0])
        if responses == ["log_lik_y"]:
            check("above it for %d," % (loo.pareto_k > loo.good_k).sum() in said and "log_lik_y[8]" in said, "the outlier", said)
    # the efficiency of an observation's likelihood is that of ArviZ, too
    data = az.from_cmdstan(sorted(glob.glob(os.path.join(work, "line_[0-9].csv"))), log_likelihood=["log_lik_y", "log_lik_u"])
    likelihood = data.log_likelihood["log_lik_u"].values
    run(gmc, "loo", "line", "--log-lik", "u", "--r-eff", "each", "--pointwise", "point.csv")
    _, got = pointwise("point.csv")
    for i in (0, 20, 40):
        reff = az.ess(np.exp(likelihood[:, :, i]), method="mean") / likelihood[:, :, i].size
        smooth, k = az.psislw(-likelihood[:, :, i].reshape(1, -1), reff)
        check(abs(got["pareto_k"][i] - k) < 1e-8, "efficiency of observation", i, got["pareto_k"][i], k)

    lines = [line.split() for line in run(gmc, "compare", "level", "line", "--log-lik", "y").stdout.splitlines()]
    rows = {line[0]: [float(v) for v in line[1:]] for line in lines if line and line[0] in ("line", "level")}
    a, b = by_arviz("line", ["log_lik_y"]), by_arviz("level", ["log_lik_y"])
    difference = b.loo_i.values - a.loo_i.values
    check(list(rows) == ["line", "level"] and rows["line"][:2] == [0, 0], "the best is first", rows)
    check(abs(rows["level"][0] - difference.sum()) < 0.006 and
          abs(rows["level"][1] - np.sqrt(len(difference) * np.var(difference, ddof=1))) < 0.006, "a difference of pairs", rows)


def separation():
    x = [-3, -2, -1, -0.5, 0.5, 1, 2, 3]
    for name, y, separated in (("apart", [0, 0, 0, 0, 1, 1, 1, 1], True), ("over", [0, 0, 1, 0, 1, 0, 1, 1], False)):
        said = make(name, SEPARATED, {"x": x, "y": y}, "--log-lik")
        cause = "every observed value of y has a probability above 0.99" in said
        check(cause == separated and not (cause and "Run longer" in said), "separation by Gibbs updates:", name, said.split("\n\n")[-1])
        said = run(gmc, "diagnose", name).stdout
        check(("separates the outcomes" in said) == separated and not (separated and "\n2." in said), "diagnose", name, said)


def causes(random_numbers):
    z = [random_numbers.gauss(-2 if random_numbers.random() < 0.5 else 2, 1) for _ in range(100)]
    for seed in ("3", "4", "5", "6"):                            # until chains number components differently
        make("mixture", MIXTURE, {"y": z}, "--params", "all", "--seed", seed, "--no-summary")
        said = run(gmc, "diagnose", "mixture").stdout
        if "Label" in said:
            break
    check("\n1. Label switching" in said and "\n2." not in said, "labels alone explain it", said)
    said = run(gmc, "summary", "mixture").stdout
    check(said.count("Warning:") == 1 and "ascending order" in said, "and a line says so", said[-400:])
    # a fault besides: an unknown that has nothing to do with labels
    for chain in range(1, 5):
        with open(os.path.join(work, "mixture_%d.csv" % chain)) as f:
            lines = f.read().splitlines()
        shifted = [line if line[0] == "#" else line + (",other" if line.startswith("lp__") else ",%g" % random_numbers.gauss(chain, 1))
                   for line in lines]
        with open(os.path.join(work, "faulty_%d.csv" % chain), "w") as f:
            f.write("\n".join(shifted) + "\n")
    said = run(gmc, "diagnose", "faulty").stdout
    check("1. Label switching" in said and "R-hat is above 1.01 for 1 of" in said and "worst: other" in said,
          "what labels do not explain", said)
    x = [random_numbers.gauss(0, 1) for _ in range(40)]
    make("separated", SEPARATED, {"x": x, "y": [int(v > 0.1) for v in x]}, "--no-summary", method=())
    said = run(gmc, "diagnose", "separated").stdout
    check("\n1. Draws that go to infinity" in said and "\n2." not in said, "separation alone", said)
    growing = {c: [random_numbers.gauss(0, 1) + 0.02 * c * i for i in range(1000)] for c in (1, 2)}
    settled = {c: [random_numbers.gauss(0, 1) + 20 * c * (1 - 0.99 ** i) for i in range(1000)] for c in (1, 2)}
    for name, drift in (("growing", growing), ("settled", settled)):
        for chain in (1, 2):
            with open(os.path.join(work, "%s_%d.csv" % (name, chain)), "w") as f:
                f.write("lp__,q\n" + "".join("-1,%g\n" % v for v in drift[chain]))
        said = run(gmc, "diagnose", name).stdout
        check(("Draws that go to infinity" in said) == (name == "growing"), "draws that are", name, said)
    slow = [random_numbers.gauss(0, 1)]
    for _ in range(1999):
        slow.append(0.98 * slow[-1] + 0.2 * random_numbers.gauss(0, 1))
    for chain in (1, 2):
        with open(os.path.join(work, "slow_%d.csv" % chain), "w") as f:
            f.write("lp__,q,divergent__\n" + "".join("-1,%g,%d\n" % (v, v > 2) for v in slow[1000 * (chain - 1):1000 * chain]))
    said = run(gmc, "diagnose", "slow").stdout
    check("Draws that go to infinity" not in said and "effective sample size is below" in said, "too few draws", said)


def misuse():
    text = {name: open(os.path.join(work, name)).read() for name in ("line_1.csv", "line_2.csv")}

    def changed(name, change, source="line_1.csv"):
        with open(os.path.join(work, name), "w") as f:
            f.write(change(text[source]))

    def with_cell(value):
        lines = text["line_1.csv"].splitlines()
        rows = [i for i, line in enumerate(lines) if line[0] != "#"]
        cells, titles = lines[rows[5]].split(","), lines[rows[0]].split(",")
        cells[titles.index("log_lik_y.3")] = value
        lines[rows[5]] = ",".join(cells)
        return "\n".join(lines) + "\n"

    changed("nan_1.csv", lambda _: with_cell("NaN"))
    changed("zero_1.csv", lambda _: with_cell("-inf"))
    changed("two_1.csv", lambda t: t)
    changed("two_2.csv", lambda t: "\n".join(t.splitlines()[:-10]).replace("num_samples = 1000", "num_samples = 900") + "\n",
            "line_2.csv")
    changed("cut_1.csv", lambda t: t[:5000])
    changed("few_1.csv", lambda t: "\n".join(line for line in t.splitlines() if line[0] != "#").split("\n", 8)[0] + "\n" +
            "\n".join([line for line in t.splitlines() if line[0] != "#"][1:6]) + "\n")
    changed("ends_1.csv", lambda t: "\n".join(t.splitlines()[:-40]) + "\n")
    for c in (1, 2, 3, 4):                                  # of four chains one file ends early; and all of them
        with open(os.path.join(work, "line_%d.csv" % c)) as f: lines = f.read().splitlines()
        draws = [i for i, line in enumerate(lines) if line[0] != "#"]
        for name, most in (("short", 705 if c == 3 else 1000), ("ended", 705)):
            with open(os.path.join(work, "%s_%d.csv" % (name, c)), "w") as f: f.write("\n".join(lines[:draws[most] + 1]) + "\n")
    done = run(gmc, "summary", "short")
    said = "short_3.csv: it has 705 draws, and short_1.csv has 1000"
    check(said in done.stderr and "The first 705 of each chain are taken" in done.stderr and done.stderr.count("\n") == 1 and
          "4 chains, 705 draws each" in done.stdout, "a chain that is shorter", done.stderr)
    check(run(gmc, "summary", "ended").stdout == done.stdout, "draws that all chains have")
    said = run(gmc, "summary", "ends").stderr
    check("where its header says" in said, "a file that is cut off between two lines is said to be so", said)
    with open(os.path.join(work, "warm_1.csv"), "w") as f:      # as CmdStan writes it, where the draws of warm-up were not all written
        f.write("# model = m\n# method = sample\n#     num_samples = 20\n#     num_warmup = 30\n#     save_warmup = true\n#     thin = 1\n"
                "#     algorithm = hmc\nlp__,a\n" + "".join("%d,%d\n" % (-k % 7, k * k % 11) for k in range(25)))
    said = run(gmc, "summary", "warm").stderr
    check("ends within the draws of warm-up" in said, "so is one that ends in warm-up", said)
    said = run(gmc, "summary", "line_1.csv").stderr
    check("where its header says" not in said, "a whole file is not", said)
    rows = LEVEL.replace("for (i in 1:N) u", "for (i in 1:N - 1) u")
    make("shorter", rows, {"y": [1.0, 2.0, 0.5, 3.0], "u": [1.0, 2.0, 0.5, 3.0]}, "--log-lik", "--no-summary")
    refused("loo", "mixture", said="have no log-likelihoods")
    refused("compare", "line", "mixture", said="compare: mixture: the draws have no log-likelihoods")
    os.makedirs(os.path.join(work, "gap"), exist_ok=True)
    for k in (1, 3): shutil.copy(os.path.join(work, "line_%d.csv" % k), os.path.join(work, "gap"))
    for command in ("loo", "summary", "diagnose"):
        refused(command, "gap/line", said="gap/line_2.csv is missing, and gap/line_3.csv is there")
        refused(command, "line", "level", said="line is the NAME of a run: give one NAME, or files")
    for command, option in (("loo", "--pointwise"), ("report", "-o")):
        refused(command, "line", option, "two_1.csv", said="two_1.csv is there already, and is something else")
    refused("loo", "nosuch", said="there are no draws nosuch_1.csv")
    refused("loo", said="no draws are given")
    for command in ("loo", "summary", "diagnose"):
        refused(command, "two", said="chains of one run have equally many")
        refused(command, "cut", said="cut off")
        refused(command, "line_1.csv", "mixture_1.csv", said="these are draws of the model")
    refused("loo", "nan", "--log-lik", "y", said="log_lik_y[3] is NaN, not a number, in draw 5 of chain 1")
    refused("loo", "zero", "--log-lik", "y", said="log_lik_y[3] is -infinite")
    refused("loo", "few", said="at least 8 a chain")
    refused("loo", "line", "--log-lik", "q", said="no columns q")
    refused("loo", "line", "--log-lik", "y,y", said="named twice")
    refused("loo", "line", "--r-eff", "0", said="no number above 0")
    refused("loo", "line", "--pointwise", "line_1.csv", said="it is a file that is read")
    refused("compare", "line", said="one model is given")
    refused("compare", "line", "level", "line", "--log-lik", "y", said="line is given twice")
    os.symlink("line_1.csv", os.path.join(work, "linked_1.csv"))
    for again in ("./line", os.path.join(work, "line"), "line_1.csv", "linked_1.csv"):
        refused("compare", "level", "line", again, "--log-lik", "y", said="line and %s are the same files" % again)
    for k in range(1, 5): shutil.copy(os.path.join(work, "line_%d.csv" % k), os.path.join(work, "copied_%d.csv" % k))
    refused("compare", "line", "copied", "--log-lik", "y", said="have the same log-likelihoods, number by number")
    make("single", "data { vector[1] y; }\nprior { m ~ normal(0, 1); }\nlikelihood { y ~ normal(m, 1); }\n", {"y": [1.0]},
         "--log-lik", "--no-summary")
    made = [line.split() for line in run(gmc, "loo", "single").stdout.splitlines() if line.startswith(("elpd_loo", "p_loo"))]
    check([row[2] for row in made] == ["-", "-"], "one observation has no standard error", made)
    refused("compare", "line", "shorter", "--log-lik", "y", said="has 4 observations, and line has 59")
    refused("compare", "line", "level", "two", said="chains of one run have equally many")
    with open(os.path.join(work, "line.json")) as f: data = json.load(f)
    data["y"][4] += 1e-9
    make("nearly", LEVEL, data, "--log-lik", "--no-summary")
    refused("compare", "line", "nearly", "--log-lik", "y", said="the values of log_lik_y are not the same")
    same = run(gmc, "compare", "line", "nearly", "--log-lik", "u")
    check("not known" not in same.stderr, "other responses are the same", same.stderr)
    for c in range(1, 5):
        with open(os.path.join(work, "nearly_%d.csv" % c)) as f: silent = [line for line in f if "# data of" not in line]
        with open(os.path.join(work, "silent_%d.csv" % c), "w") as f: f.writelines(silent)
    said = run(gmc, "compare", "line", "silent", "--log-lik", "y").stderr
    check("whether line and silent are of the same data is not known" in said or "silent and line" in said, "files that say nothing", said)
    with open(os.path.join(work, "renamed_1.csv"), "w") as f:
        f.write(text["line_1.csv"].replace("log_lik_y.", "log_lik_v."))
    refused("compare", "line", "renamed_1.csv", "--log-lik", "u,q", said="no columns q")
    made = run(gmc, "loo", "line_1.csv").stdout
    check("1 chain, 1000 draws" in made, "one chain", made)
    # Missing values of y have columns of that name; elements that no statement draws are no draws that are not finite.
    make("holes", "data { int N; vector[N] y; }\nprior { m ~ normal(0, 1); for (t in 2:N) v[t] ~ normal(m, 1); }\n"
         "likelihood { y ~ normal(m, 1); }\n", {"N": 4, "y": [1, None, 0.5, 2]}, "--log-lik", "--params", "all", "--no-summary")
    made = run(gmc, "loo", "holes").stdout
    check("3 observations" in made and run(gmc, "loo", "holes", "--log-lik", "y").stdout == made, "--log-lik y: y has columns, too", made)
    made = run(gmc, "diagnose", "holes").stdout
    check("not finite" not in made, "v[1] is not there", made)
    refused("summary", "line", "--summary", "xml", said="nor all, csv or json")
    check(not os.path.exists(os.path.join(work, "report.html")), "nothing else is written")


def main():
    random_numbers = random.Random(3)
    cross_validation(random_numbers)
    causes(random_numbers)
    separation()
    misuse()
    return failures() > 0


sys.exit(main())
