"""fit why: a sweep that is made again gives the draws of the file, with any method; laws that it prints are those that
follow from data and draws; and what cannot be asked for is refused with one line.

    why.py GMC DIRECTORY

Laws are compared with conjugate formulas, joint normals by 25 draws about their means: sums of squares of standard normals, whose
bounds are passed by chance 1 time in 10^6 (and the seeds are fixed)."""
import json
import os
import random
import re
import subprocess
import sys

from programs import check, failures

gmc, work = sys.argv[1:3]
CONJUGATE = """
data { int<lower=0> N; int<lower=1> p; matrix[N, p] X; real y[N]; int<lower=0> n[N]; int<lower=0, upper=1> z[N]; }
prior {
  for (j in 1:p) beta[j] ~ normal(0, 10);
  s2 ~ inv_gamma(2, 3);
  rate ~ gamma(1.5, 0.5);
  q ~ beta(2, 3);
}
likelihood { for (i in 1:N) { y[i] ~ normal(X[i] * beta, sqrt(s2)); n[i] ~ poisson(rate); z[i] ~ bernoulli(q); } }
predict { twice = 2 * rate; }
"""
SCHOOLS = """
data { int<lower=0> J; real y[J]; real<lower=0> sigma[J]; }
prior { mu ~ normal(0, 5); tau ~ half_cauchy(0, 5); for (j in 1:J) theta[j] ~ normal(mu, tau); }
likelihood { for (j in 1:J) y[j] ~ normal(theta[j], sigma[j]); }
"""
LINES = """
data { int<lower=0> N, T; matrix[N, T] Y; }
prior {
  a ~ normal(0, 10); b ~ normal(0, 10); s ~ half_cauchy(0, 5); ta ~ half_cauchy(0, 5); tb ~ half_cauchy(0, 5);
  for (i in 1:N) { alpha[i] ~ normal(a, ta); beta[i] ~ normal(b, tb); }
}
likelihood { for (i in 1:N, t in 1:T) Y[i, t] ~ normal(alpha[i] + beta[i] * (t - 2), s); }
"""
GROUPS = """
data { int<lower=0> N, J; int<lower=1, upper=J> g[N]; real y[N]; real<lower=0> s; }
prior { for (j in 1:J) theta[j] ~ normal(0, 10); }
likelihood { for (i in 1:N) y[i] ~ normal(theta[g[i]], s); }
"""
MIXTURE = """
data { int<lower=1> K; int<lower=0> N; real y[N]; }
prior { w ~ dirichlet(rep_vector(2, K)); for (k in 1:K) mu[k] ~ normal(0, 10); s ~ half_cauchy(0, 2); }
latent { for (i in 1:N) c[i] ~ categorical(w); }
likelihood { for (i in 1:N) y[i] ~ normal(mu[c[i]], s); }
"""


def program(name, model, data):
    with open(os.path.join(work, name + ".gm"), "w") as f:
        f.write(model)
    with open(os.path.join(work, name + ".json"), "w") as f:
        json.dump(data, f)
    said = subprocess.run([gmc, "-q", name + ".gm", "-o", name], cwd=work, capture_output=True, text=True)
    check(said.returncode == 0, name, "becomes a program", said.stderr)


def call(name, *args):
    return subprocess.run([os.path.join(work, name), *args], capture_output=True, text=True, cwd=work)


def draw_files(name, *args):
    done = call(name, name + ".json", "-q", "--no-summary", "--overwrite", "-o", name, *args)
    check(done.returncode == 0, name, "runs", done.stderr)


def why(name, unknown, chain, draw, *args, status=0):
    done = call(name, "why", unknown, "--chain", str(chain), "--draw", str(draw), "-q", name + ".json", *args)
    if done.returncode != status:
        check(False, "why", unknown, chain, draw, args, "ended with", done.returncode, done.stderr)
    return done.stdout


def rows(name, chain):
    with open(os.path.join(work, "%s_%d.csv" % (name, chain))) as f:
        lines = [l.strip() for l in f if not l.startswith("#")]
    header = lines[0].split(",")
    return [dict(zip(header, map(float, l.split(",")))) for l in lines[1:]]


def number(said, what):
    found = re.search(r"^ *%s +(\S+)" % re.escape(what), said, re.M)
    return float(found.group(1)) if found else float("nan")


def near(a, b):
    return abs(a - b) <= 1e-9 * max(abs(a), abs(b), 1)


def laws():
    rng = random.Random(3)
    X = [[1, rng.gauss(0, 1), rng.gauss(0, 1)] for _ in range(40)]
    data = {"N": 40, "p": 3, "X": X, "y": [x[0] + 2 * x[1] - x[2] + rng.gauss(0, 1) for x in X], 
            "n": [rng.randrange(5) for _ in X], "z": [rng.randrange(2) for _ in X]}
    program("conjugate", CONJUGATE, data)
    draw_files("conjugate", "--seed", "9", "--warmup", "50", "--samples", "60", "--thin", "2", "--method", "gibbs")
    more = ("--draws", "conjugate", "--method", "gibbs")
    draws = {c: rows("conjugate", c) for c in (1, 4)}
    for chain, draw in ((1, 1), (4, 60)):
        row = draws[chain][draw - 1]
        said = why("conjugate", "s2", chain, draw, *more)
        beta = row["beta.1"], row["beta.2"], row["beta.3"]
        squares = sum((y - sum(b * x for b, x in zip(beta, xs))) ** 2 for xs, y in zip(X, data["y"]))
        check(near(number(said, "shape"), 22) and near(number(said, "rate"), 3 + squares / 2), "the law of s2 is inverse gamma", said)
        sweep = "sweep %d of seed 9" % (50 + 2 * draw)
        check(number(said, "after the sweep") == row["s2"] and "the same" in said and sweep in said, "its draw is that of the file")
        uniform = [float(u) for u in re.search(r"element 1\):(.*)", said).group(1).split() if u != "..."]
        check(uniform and all(0 < u < 1 for u in uniform), "its random numbers are uniform")
        check("3 + 1/2*sum(i in 1:N, (y[i] - sum(j in 1:p, beta[j]*X[i, j]))^2)" in said, "the rate of s2 has its formula", said)
        said = why("conjugate", "rate", chain, draw, *more)
        check(near(number(said, "sum_n"), sum(data["n"])) and "sum of n[i] over i" in said, "its statistic has a name and a value", said)
        good = near(number(said, "shape"), 1.5 + sum(data["n"])) and near(number(said, "rate"), 40.5)
        check(good and number(said, "value") == row["rate"], "the law of rate is gamma", said)
        said = why("conjugate", "q", chain, draw, *more)
        good = near(number(said, "shape1"), 2 + sum(data["z"])) and near(number(said, "shape2"), 43 - sum(data["z"]))
        check(good and number(said, "value") == row["q"], "the law of q is beta", said)
        said = why("conjugate", "beta[2]", chain, draw, *more)
        check(number(said, "after the sweep") == row["beta.2"] and "joint normal of 3 numbers" in said, "beta is drawn jointly")
    program("groups", GROUPS, {"J": 3, "g": [1, 2, 2, 3, 3, 3], "y": [1, 2, 4, 8, 16, 32], "s": 1.5})
    draw_files("groups", "--seed", "9", "--samples", "5", "--method", "gibbs")
    said = why("groups", "theta[2]", 1, 3, "--draws", "groups", "--method", "gibbs")
    good = number(said, "sum_y_by_g[2]") == 6 and number(said, "count_by_g[2]") == 2 and "the same" in said
    check(good and "sum of y[i] over i with g[i] = j" in said, "sums of the group that an element belongs to", said)
    program("groups", GROUPS, {"J": 3, "g": ["u", "v", "v", "w", "w", "w"], "y": [1, 2, 4, 8, 16, 32], "s": 1.5})
    draw_files("groups", "--seed", "9", "--samples", "5", "--method", "gibbs")
    said = why("groups", "theta[2]", 1, 3, "--draws", "groups", "--method", "gibbs")
    check("the same" in said, "levels have names in the table, and numbers here", said)
    a, b = why("conjugate", "beta[3]", 4, 60, *more), why("conjugate", "beta.3", 4, 60, *more)
    check(a == b and "the same" in a, "an element is named as in the model or as in the file")
    said = why("conjugate", "s2", 1, 1, "--seed", "9", "--warmup", "50", "--thin", "2", "--method", "gibbs")
    check("in the file" not in said and number(said, "after the sweep") == draws[1][0]["s2"], "without a file nothing is compared")
    return data


def joints():
    """The draw less its mean over its sd, in 25 draws: a standard normal each."""
    rng = random.Random(4)
    program("schools", SCHOOLS, {"J": 8, "y": [28, 8, -3, 7, -1, 1, 18, 12], "sigma": [15, 10, 16, 11, 9, 11, 10, 18]})
    draw_files("schools", "--seed", "2", "--warmup", "20", "--samples", "40", "--method", "gibbs")
    program("lines", LINES, {"N": 12, "T": 3, "Y": [[5 + rng.gauss(0, 2) + t * 2 + rng.gauss(0, 1) for t in range(3)] for _ in range(12)]})
    draw_files("lines", "--seed", "2", "--warmup", "20", "--samples", "40", "--method", "gibbs")
    for name, unknowns in (("conjugate", ["beta[1]"]), ("schools", ["mu", "theta[3]"]), ("lines", ["a", "alpha[3]", "beta[12]"])):
        for unknown in unknowns:
            z, same = [], 0
            for draw in range(1, 26):
                said = why(name, unknown, 1 + draw % 4, draw, "--draws", name, "--method", "gibbs")
                joint = said[said.index("joint normal"):] if "joint normal" in said else ""
                z.append((number(joint, "value") - number(joint, "mean")) / number(joint, "sd"))
                same += "the same" in said
            squares = sum(v * v for v in z)
            check(same == 25 and 5 < squares < 75 and abs(sum(z)) < 25, unknown, "of", name, "is about its mean: squares",
                  round(squares, 1), "sum", round(sum(z), 1))


def methods():
    for method in ("nuts", "both", "auto"):
        draw_files("schools", "--seed", "5", "--warmup", "300", "--samples", "20", "--method", method)
        for unknown in ("tau", "theta[8]"):
            said = why("schools", unknown, 3, 20, "--draws", "schools", "--method", method)
            check("the same" in said, unknown, "with --method", method)
            if method == "nuts":
                step = rows("schools", 3)[19]["stepsize__"]
                check("NUTS" in said and number(said, "step size") == step and number(said, "divergent") in (0, 1),
                      "the trajectory is described")
    rng = random.Random(6)
    data = {"K": 2, "N": 30, "y": [rng.gauss(4 * (i % 2), 1) for i in range(29)] + [None]}
    program("mixture", MIXTURE, data)
    draw_files("mixture", "--seed", "1", "--warmup", "40", "--samples", "10", "--params", "all")
    for unknown in ("c[4]", "w[2]", "mu[1]", "s", "y[30]"):
        check("the same" in why("mixture", unknown, 2, 7, "--draws", "mixture_2.csv", "--params", "all"), unknown, "of a mixture")


def levels():
    """An element by the name of its level, as the summary has it."""
    program("groups", GROUPS, {"N": 6, "J": 3, "g": [1, 2, 3, 1, 2, 3], "y": [1, 2, 3, 2, 3, 4], "s": 1})
    with open(os.path.join(work, "levels.json"), "w") as f:
        json.dump({"g": ["Aitkin", "Blue, East", "7 Mile"] * 2, "y": [1, 2, 3, 2, 3, 4], "s": 1}, f)
    done = call("groups", "levels.json", "-o", "levels", "--seed", "2", "-q", "--levels", "g=Aitkin,\"Blue, East\",7 Mile", "--overwrite")
    check(done.returncode == 0, "levels by name", done.stderr)
    at = ("--chain", "2", "--draw", "4", "--draws", "levels", "levels.json", "-q", "--levels", "g=Aitkin,\"Blue, East\",7 Mile")
    for label, number in (("theta[Aitkin]", "theta[1]"), ("theta['Blue,  East']", "theta.2"), ("theta[7 Mile]", "theta[3]")):
        named, numbered = call("groups", "why", label, *at).stdout, call("groups", "why", number, *at).stdout
        check("the same" in named and named == numbered, "one element by name and by number:", label, named, numbered)


def errors():
    def refused(what, says, *args, status=2, name="conjugate"):
        done = call(name, *args)
        lines = done.stderr.strip().split("\n")
        good = done.returncode == status and says in done.stderr and len(lines) == 1
        check(good, "refused:", what, *([] if good else lines))
    more = ("conjugate.json", "-q")
    at = ("--chain", "1", "--draw", "1", "--seed", "9")
    refused("no name", "the name of an unknown is missing", "why", *at)
    refused("no chain", "--chain is missing", "why", "s2", "--draw", "1", *more)
    refused("no draw", "--draw is missing", "why", "s2", "--chain", "1", *more)
    refused("no seed", "--draws DRAWS is missing, or --seed N", "why", "s2", *at[:4], *more)
    refused("draws of another model", "these are no draws of this program's model", "why", "s2", *at, *more, "--draws", "mixture")
    refused("no such unknown", "the model has no unknown `sigma`", "why", "sigma", *at, *more)
    refused("a definition", "twice is computed from unknowns", "why", "twice", *at, *more)
    refused("no such element", "beta has size 3: it has no element `beta[4]`", "why", "beta[4]", *at, *more)
    refused("all elements", "of which element? 'beta[1]'", "why", "beta", *at, *more)
    refused("an element of a number", "s2 is one number", "why", "s2[1]", *at, *more)
    refused("no name at all", "is no name of an unknown", "why", "beta[", *at, *more)
    refused("a name where there are no levels", "it has no element `beta[x]`; the first is 'beta[1]'", "why", "beta[x]", *at, *more)
    refused("a level that is not there", "it has no element `theta[Benton]`; the first is 'theta[7 Mile]'", "why", "theta[Benton]",
            "levels.json", "-q", *at, name="groups")
    refused("a chain that is not there", "--chain 9 is none of them", "why", "s2", "--chain", "9", "--draw", "1", "--seed", "9",
            *more)
    beyond, first = ("--chain", "1", "--draw", "61"), ("--chain", "1", "--draw", "1")
    refused("a draw that is not there", "has 60 draws: --draw 61 is none of them", "why", "s2", *beyond, "--draws", "conjugate", *more)
    refused("another chain's file", "has the draws of chain 2, not of chain 1", "why", "s2", *first, "--draws", "conjugate_2.csv", *more)
    refused("no file", "cannot be read", "why", "s2", "--chain", "1", "--draw", "1", "--draws", "nowhere.csv", *more)
    refused("--check", "it goes with none of --check", "why", "s2", "--check", *at, *more)
    refused("options of why alone", "--draw is for one draw", "--draw", "1", *more)
    refused("an observed value", "y[1] was observed", "why", "y[1]", *at, "mixture.json", "-q", name="mixture")
    other = ("--draws", "conjugate", "--seed", "10", "--method", "gibbs")
    refused("another seed", "has another draw", "why", "s2", *first, *other, *more, status=1)


laws()
joints()
methods()
levels()
errors()
sys.exit(failures() > 0)
