"""Draws without data, data from given parameters, and calibration, of programs, beside laws that are known.

    forward.py GMC FOLDER

Each comparison with a law is a test at 1e-5: of 40 of them a right program fails one in some 2500 runs with other seeds. Here the seed is
fixed. Calibrations say by themselves how often a right program fails them (1 %)."""
import csv
import json
import math
import os
import re
import sys

import numpy as np
from scipy import stats

from programs import check, failures, program, run, said_by

gmc, work = sys.argv[1:3]
os.chdir(work)
LEVEL = 1e-5


def give(name, **values):
    with open(name, "w") as f: json.dump(values, f)
    return name


def prior(fit, *arguments, samples=20000):
    run(fit, "prior", *arguments, "--seed", "1", "--chains", "1", "--samples", str(samples), "-o", "p", "--overwrite", "-q", "--no-summary",
        "--params", "all")
    with open("p_1.csv") as f: lines = [line for line in f if line[0] != "#"]
    names = lines[0].strip().split(",")
    rows = np.loadtxt(lines[1:], delimiter=",", ndmin=2)
    return {name: rows[:, k] for k, name in enumerate(names)}


def follows(x, law, what):
    p = stats.kstest(x, law.cdf).pvalue
    check(p > LEVEL, what + " by Kolmogorov and Smirnov", p)


def counts(x, law, what):
    """Chi-square of whole numbers, where at least 20 are expected."""
    low, high = int(x.min()), int(x.max()) + 1
    cuts, edges, sum_ = [], [], 0.0
    for k in range(min(low, 0), high + 1):
        sum_ += law.pmf(k) * len(x)
        if sum_ >= 20:
            cuts.append(sum_)
            edges.append(k)
            sum_ = 0.0
    edges[-1] = 10**9
    cuts[-1] += len(x) - sum(cuts)
    seen = np.bincount(np.searchsorted(edges, x), minlength=len(edges))
    p = stats.chisquare(seen, cuts).pvalue
    check(p > LEVEL, what + " by chi-square", p)


# ---- marginal laws of conjugate pairs, constrained unknowns, truncation, mixtures, discrete unknowns, series ----

fit = program("pairs", """data { int N, n, K; int<lower=0> a[N], b[N]; vector[N] c; int<lower=1, upper=3> d[n]; int e; vector[N] g; }
prior {
  p ~ beta(2, 3);
  rate ~ gamma(3, 0.5);
  mu ~ normal(1, 2);
  simplex[3] theta ~ dirichlet([1, 2, 3]);
  corr_matrix[3] R ~ lkj_corr(2);
  cov_matrix[2] W ~ wishart(5, [[1, 0.5], [0.5, 2]]);
  real<lower=0> t ~ normal(mu, 1);
  ordered[3] o ~ normal(0, 1);
  real<lower=1, upper=2> u ~ normal(0, 3);
  m ~ mixture(0.3, normal(-2, 1), normal(2, 0.5));
  k ~ poisson(4);
  real sigma2 ~ inv_gamma(3, 2);
  x[1] ~ normal(0, 1);
  for (i in 2:K) x[i] ~ normal(0.6 * x[i - 1], 0.8);
}
likelihood {
  for (i in 1:N) a[i] ~ binomial(10, p);
  for (i in 1:N) b[i] ~ poisson(rate);
  for (i in 1:N) c[i] ~ normal(mu, 1.5);
  for (i in 1:n) d[i] ~ categorical(theta);
  e ~ binomial(k, 0.25);
  for (i in 1:N) g[i] ~ normal(0, sqrt(sigma2));
}
predict { product = p * rate; }
""")
sizes = give("sizes.json", N=1, n=6, K=5)
x = prior(fit, sizes)
follows(x["p"], stats.beta(2, 3), "beta")
counts(x["a_rep.1"], stats.betabinom(10, 2, 3), "beta and binomial")
counts(x["b_rep.1"], stats.nbinom(3, 0.5 / 1.5), "gamma and Poisson")
follows(x["c_rep.1"], stats.norm(1, 2.5), "normal and normal")
counts(sum(x["d_rep.%d" % i] == 3 for i in range(1, 7)), stats.betabinom(6, 3, 3), "Dirichlet and six categories")
counts(x["e_rep"], stats.poisson(1), "Poisson and binomial")
follows(x["g_rep.1"], stats.t(6, scale=np.sqrt(2 / 3)), "inverse gamma and normal")
for i, j in ((2, 1), (3, 1), (3, 2)):
    follows((x["R.%d.%d" % (i, j)] + 1) / 2, stats.beta(2.5, 2.5), "LKJ(2) in three dimensions")
follows(x["W.1.1"], stats.chi2(5), "Wishart")
follows(x["W.2.2"] / 2, stats.chi2(5), "Wishart")
z = x["mu"]
follows((stats.norm.cdf(x["t"] - z) - stats.norm.cdf(-z)) / stats.norm.cdf(z), stats.uniform, "normal above 0, given its mean")
follows(x["mu"], stats.norm(1, 2), "a mean whose law truncation of others leaves alone")
follows(x["o.1"], type("Least", (), {"cdf": staticmethod(lambda v: 1 - stats.norm.sf(v)**3)}), "the least of three")
follows(x["o.2"], type("Middle", (), {"cdf": staticmethod(lambda v: stats.beta(2, 2).cdf(stats.norm.cdf(v)))}), "the middle of three")
check(((x["o.1"] < x["o.2"]) & (x["o.2"] < x["o.3"])).all(), "ordered")
follows(x["u"], stats.truncnorm(1 / 3, 2 / 3, scale=3), "normal between declared bounds")
mixed = type("Mixture", (), {"cdf": staticmethod(lambda v: 0.3 * stats.norm(-2).cdf(v) + 0.7 * stats.norm(2, 0.5).cdf(v))})
follows(x["m"], mixed, "a mixture")
for i in (1, 5): follows(x["x.%d" % i], stats.norm, "a chain, stationary, at %d" % i)
r = np.arctanh(np.corrcoef(x["x.1"], x["x.5"])[0, 1]) - np.arctanh(0.6**4)
check(abs(r) * np.sqrt(20000) < 4.5, "its correlation over four steps", r)
check(np.allclose(x["product"], x["p"] * x["rate"], rtol=1e-12), "definitions are those of the draw")

# A response that follows from itself, given or not, and one whose law reads another response
AR = """data { int T; vector[T] y, w; }
prior { mu ~ normal(0, 1); }
likelihood {
  y[1] ~ normal(mu, 1);
  for (t in 2:T) y[t] ~ normal(0.5 * y[t - 1], 1);
  for (t in 1:T) w[t] ~ normal(2 * y[t], 0.1);
}
predict { last = y[T]; }
"""
fit = program("series", AR)
x = prior(fit, give("four.json", T=4))
law = stats.norm(0, np.sqrt(1 + 0.25 + 0.0625 + 2 / 64))
follows(x["y_rep.4"], law, "the fourth of a series")
check(np.abs(x["w_rep.4"] - 2 * x["y_rep.4"]).max() < 1, "what reads a response reads its draw")
check((x["last"] == x["y_rep.4"]).all(), "so do definitions")
given = prior(fit, give("given.json", T=4, y=[100.0, 100.0, 100.0, 100.0], w=[0.0] * 4))
check(all((given[k] == x[k]).all() for k in x), "responses that are given change nothing")

# ---- what is refused ----

for name, text, words in (
        ("flat", "data { int N; vector[N] y; }\nprior { mu ~ flat(); s ~ half_normal(0, 1); }\nlikelihood { y ~ normal(mu, s); }\n",
         "mu: .*flat.*flat.gm:2"),
        ("none", "data { vector[3] y; }\nprior { real<lower=0, upper=1> mu; s ~ half_normal(0, 1); }\nlikelihood { y ~ normal(mu, s); }\n",
         "no distribution.*none.gm:2"),
        ("target", "data { vector[3] y; }\nprior { mu ~ normal(0, 1); target += -abs(mu); }\nlikelihood { y ~ normal(mu, 1); }\n",
         r"target \+=.*target.gm:2"),
        ("soft", "data { vector[3] y; }\nprior { vector[3] u ~ normal(0, 1); sum(u) ~ normal(0, 0.01); }\n"
         "likelihood { y ~ normal(u, 1); }\n",
         "law of a function of unknowns.*soft.gm:2"),
        ("out", "data { int y[3]; }\nprior { a ~ normal(0, 1); b ~ normal(0, 1); }\nlikelihood { y ~ poisson(a + b); }\n", None)):
    fit = program(name, text)
    said = said_by(fit, "prior", "N=3", "-q", status=2) if name == "flat" else said_by(fit, "prior", "-q", status=2)
    check(words is None or re.search(words, said.replace("\n", " ")), name + " is refused by name", said)
    said = said_by(fit, "calibrate", *(("N=3",) if name == "flat" else ()), status=2)
run("./flat", "simulate", "mu=2", "s=0.5", "N=3", "-o", "flat_data", "-q", "--seed", "1", "--overwrite")
run("./flat", "flat_data_1.json", "-q", "--no-summary", "--seed", "1", "--samples", "50", "-o", "flat_draws", "--overwrite")
run("./flat", "simulate", "mu=2", "N=3", "--from", "prior", "-o", "flat_none", status=2)

# ---- data from given parameters ----

SCHOOLS = """data { int<lower=0> J; vector[J] y; vector<lower=0>[J] sigma; }
prior { mu ~ normal(0, 5); tau ~ half_cauchy(0, 5); }
latent { for (j in 1:J) theta[j] ~ normal(mu, tau); }
likelihood { for (j in 1:J) y[j] ~ normal(theta[j], sigma[j]); }
"""
schools = program("schools", SCHOOLS)
data = give("schools.json", J=8, y=[28, 8, -3, 7, -1, 1, 18, 12], sigma=[15, 10, 16, 11, 9, 11, 10, 18])
run(schools, "simulate", "mu=3", "tau=2", data, "--sets", "400", "--seed", "4", "-o", "s", "--overwrite", "-q")
sets = [json.load(open("s_%d.json" % k)) for k in range(1, 401)]
truth = [json.load(open("s_%d_truth.json" % k)) for k in range(1, 401)]
check(all(t["mu"] == 3 and t["tau"] == 2 for t in truth), "parameters are as given")
follows(np.array([s["y"][0] for s in sets]), stats.norm(3, np.sqrt(4 + 225)), "data of the first school")
follows(np.array([t["theta"][7] for t in truth]), stats.norm(3, 2), "effects from their law")
run(schools, "simulate", "s_1_truth.json", data, "--seed", "4", "-o", "same", "--overwrite", "-q")
check(json.load(open("same_1_truth.json")) == truth[0], "a file of parameters gives all of them")
check(json.load(open("same_1.json"))["y"] == sets[0]["y"], "and the same data for the same seed")
run(schools, "s_1.json", "-q", "--no-summary", "--samples", "10", "--seed", "1")
run(schools, "simulate", "mu=3", data, "-o", "less", status=2)
run(schools, "simulate", "mu=3", "tau=-2", data, "-o", "less", status=2)
# Effects that the model as written draws are computed where others are drawn in their place: passed over, they would be others.
raw = program("raw", SCHOOLS.replace("theta[j] ~ normal(mu, tau)", "{ z[j] ~ normal(0, 1); theta[j] = mu + tau * z[j]; }"))
said = said_by(raw, "simulate", "mu=3", "tau=2", give("raw.json", z=[0] * 8), data, "-o", "less", status=2)
check("raw.json: z is computed from other unknowns" in said, "given values of a definition are refused", said)
for k in (1, 2): run(schools, "simulate", data, "--from", "prior", "--sets", "2", "--seed", "7", "-o", "again%d" % k, "--overwrite", "-q")
check(open("again1_2.json").read() == open("again2_2.json").read(), "the same seed gives the same data")
check(json.load(open("again1_1_truth.json")) != json.load(open("again1_2_truth.json")), "each set has parameters of its own")
hole = give("hole.json", J=8, y=[28, None, -3, 7, -1, 1, 18, 12], sigma=[15, 10, 16, 11, 9, 11, 10, 18])
run(schools, "simulate", hole, "--from", "prior", "--seed", "7", "-o", "hole_data", "--overwrite", "-q")
check([v is None for v in json.load(open("hole_data_1.json"))["y"]] == [k == 1 for k in range(8)], "what is missing is missing again")

# ---- calibration ----


def ranks(name):
    with open(name + "_ranks.csv") as f: return list(csv.reader(f))


said = said_by(schools, "calibrate", data, "--sims", "300", "--seed", "2", "--threads", "1", "-o", "one", "--overwrite", "--report",
           "page.html")
for other, why in ((data, "it is a file that is read"), (give("other.json", a=1), "is there already, and is something else")):
    check(why in said_by(schools, "calibrate", data, "--report", other, status=2) and open(other).read().startswith("{"),
          "no page is written in the place of another file", other)
check("calibration passed" in said and "of its sds" in said, "eight schools pass, and the power is said", said)
run(schools, "calibrate", data, "--sims", "300", "--seed", "2", "--threads", "2", "-o", "two", "--overwrite", "-q")
check(ranks("one") == ranks("two"), "ranks do not depend on how many simulations run at once")
few = said_by(schools, "calibrate", data, "--sims", "40", "--seed", "2", "--threads", "2", "-o", "few", "--overwrite", "-q")
check(ranks("few") == ranks("one")[:41], "nor on how many there are")
check(len(ranks("one")) == 301 and all(0 <= int(v) <= 99 for row in ranks("one")[1:] for v in row), "ranks are from 0 to 99")
page = open("page.html").read()
check(page.count("<svg") == len(ranks("one")[0]) and "theta[8]" in page, "a page with a figure for each quantity")
check("theta.8" in ranks("one")[0] and "lp__" in ranks("one")[0], "effects and the log density have ranks")
run(schools, "calibrate", hole, "--sims", "60", "--seed", "2", "-q")

# A series begins with a value that no statement draws: simulated data keep it. Were it lost, the ranks of s would lie at 0.16.
series = program("begun", "data { int T; vector[T] y; }\nprior { a ~ uniform(-1, 1); s ~ half_normal(0, 1); }\n"
                 "likelihood { for (t in 2:T) y[t] ~ normal(a * y[t - 1], s); }\n")
run(series, "calibrate", give("begun.json", y=[5, 2, 3]), "--sims", "400", "--seed", "3", "-q")
# A definition of data is made before anything is drawn.
fixed = program("mean", "data { int N; vector[N] y; }\nlet { m = mean(y); }\nprior { mu ~ normal(0, 1); }\n"
                "likelihood { y ~ normal(mu, 1); }\npredict { d = mu - m; }\n")
said = said_by(fixed, "calibrate", give("mean.json", y=[1, 2, 3]), "--sims", "20", "-q", status=2)
check("m is computed from a response" in said, "a definition of responses is refused", said)
# Where a missing value lies between bounds it tells something of the unknowns, which simulated data would not.
bounds = program("bounds", "data { int N; vector<lower=0>[N] t; }\nprior { mu ~ normal(0, 1); }\nlikelihood { t ~ normal(mu, 1); }\n")
said = said_by(bounds, "calibrate", give("bounds.json", t=[1, None, 2]), "--sims", "20", "-q", status=2)
check("t has missing values and bounds" in said, "missing values between bounds are refused", said)
# Which values are censored, and between which ends, is not part of the model; what they are before is.
ends = program("ends", "data { int N; vector[N] y, lo, hi; }\nprior { mu ~ normal(0, 1); }\n"
               "likelihood { for (i in 1:N) y[i] ~ normal(mu, 1) C[lo[i], hi[i]]; }\n")
censored = give("ends.json", y=[1, None], lo=[0, 2], hi=[3, 9])
for command in (("calibrate",), ("simulate", "mu=1", "-o", "ends")):
    said = said_by(ends, *command, censored, status=2)
    check("y: which of its values are censored" in said, "%s of censored values is refused" % command[0], said)
run(ends, "prior", censored, "-o", "ends_prior", "--overwrite", "-q", "--no-summary")
# A response is an argument, and an end of the support, of another: with the data of both.
pairs = program("caught", "data { int N; int<lower=0> n[N], k[N]; }\nprior { lambda ~ gamma(2, 0.5); p ~ beta(2, 2); }\n"
                "likelihood { for (i in 1:N) { n[i] ~ poisson(lambda); k[i] ~ binomial(n[i], p); } }\n")
caught = give("caught.json", n=[5, 3, 4], k=[2, 1, 4])
run(pairs, "prior", caught, "-o", "caught_prior", "--overwrite", "-q", "--no-summary")
run(pairs, "simulate", "lambda=5", "p=0.4", caught, "-o", "caught", "--overwrite")
drawn = json.load(open("caught_1.json"))
check(all(k <= n for n, k in zip(drawn["n"], drawn["k"])), "k is drawn of the n that was drawn", str(drawn))
run(pairs, "calibrate", caught, "--sims", "200", "--seed", "4", "-q")
# Declared bounds of data do not truncate: what is drawn beyond them would be refused by a run. What is missing is not written.
few = program("few", "data { int N; int<lower=0, upper=5> y[N]; }\nprior { l ~ gamma(4, 2); }\n"
              "likelihood { for (i in 1:N) y[i] ~ poisson(l); }\n")
beyond = give("few.json", y=[1, 2, 0])
said = said_by(few, "simulate", "l=50", beyond, "-o", "few", "--overwrite", status=4)
check(re.search(r"y\[1\] = \d+ was drawn, above its declared bound 5", said), "draws above a declared bound are refused", said)
said = said_by(few, "calibrate", beyond, "--sims", "100", "--seed", "1", status=4)
check("simulations gave no draws" in said and "above its declared bound 5" in said, "so they are in a calibration", said)
said = run(few, "prior", beyond, "-o", "few_prior", "--overwrite", "-q", "--no-summary").stderr
check("beyond their declared bounds" in said, "the prior has them, and says so", said)
cut = program("cut", "data { int N; int<lower=0, upper=5> y[N]; }\nprior { l ~ gamma(4, 2); }\n"
              "likelihood { for (i in 1:N) y[i] ~ poisson(l) T[, 5]; }\n")
run(cut, "simulate", "l=50", beyond, "-o", "cut", "--overwrite")
check(max(json.load(open("cut_1.json"))["y"]) <= 5, "a truncated law keeps within them")
# A right program whose draws depend on each other: a calibration that fails says so, and which --thin makes it pass.
slow = program("slow", "data { int N; vector[N] x; vector[N] y; }\nprior { a ~ normal(0, 1); b ~ normal(0, 1); }\n"
               "likelihood { for (i in 1:N) y[i] ~ student_t(4, a + b * x[i], 1); }\ninfer { a by slice; b by slice; }\n")
near = give("near.json", x=[10, 10.1, 10.2, 10.1, 10, 9.9, 10, 10.1])
for flags in ((), ("--as-chains",)):
    said = said_by(slow, "calibrate", near, "--sims", "300", "--seed", "1", "--thin", "1", "-q", *flags, status=14)
    found = re.search(r"in a simulation are worth (\d+) independent ones: .* Take --thin (\d+), or leave it out,", said)
    check(found and int(found.group(1)) < 30 and 10 < int(found.group(2)) < 60, "dependent draws are said to be", said)
run(slow, "calibrate", near, "--sims", "300", "--seed", "1", "--thin", found.group(2), "-q")
# Components have no order: only what does not depend on it has ranks. With an order they all have.
two = "data { int N; real y[N]; }\nprior { %s w ~ dirichlet([2, 2]); s ~ gamma(4, 4); }\n" \
    "likelihood { for (i in 1:N) y[i] ~ mixture(w, normal(mu, s)); }\n"
shown = give("two.json", y=[-2, -1, -2.5, 2, 1, 2.5, 3, -1.5])
for name, prior, ranked in (("apart", "for (k in 1:2) mu[k] ~ normal(0, 3);", False), ("order", "ordered[2] mu ~ normal(0, 3);", True)):
    fit = program(name, two % prior)
    done = run(fit, "calibrate", shown, "--sims", "200", "--seed", "3")
    check(("no ranks of mu, w" in done.stderr) != ranked and ("mu[1]" in done.stdout) == ranked and "s " in done.stdout,
          "ranks of components: %s" % ranked, done.stderr + done.stdout)
said = said_by(schools, "prior", data, "--device", "gpu", status=2)
check("on the CPU" in said, "a GPU is refused by prior", said)

# Simulations as chains of one run have data of their own. With Gibbs updates, they are those of the processes to the last bit.
rows = program("rows", "data { int N, p; matrix[N, p] X; vector[N] y, w; int g[N]; int<lower=1> G; }\nprior { vector[p] b ~ normal(0, 2); "
               "s ~ half_normal(0, 1); a ~ normal(0, 3); q ~ dirichlet(rep_vector(1, G)); }\nlikelihood { for (i in 1:N) { "
               "y[i] ~ normal(a + X[i] * b, s); w[i] ~ normal(y[i], 1); g[i] ~ categorical(q); } }\n")
regression = give("rows.json", X=[[math.sin(3 * i), math.cos(5 * i)] for i in range(12)],
                  y=[0.3 * i if i != 4 else None for i in range(12)], w=[0.2] * 12, g=[1, 2, 3] * 4, G=3)
for fit, given in ((schools, data), (schools, hole), (series, "begun.json"), (pairs, caught), (rows, regression), ("./order", shown)):
    common = (fit, "calibrate", given, "--method", "gibbs", "--sims", "60", "--seed", "5", "--overwrite", "-q")
    run(*common, "-o", "apart")
    run(*common, "-o", "chains", "--as-chains")
    check(len(ranks("apart")) == 61 and ranks("chains") == ranks("apart"), "%s: as chains of one run" % fit)
run(schools, "calibrate", data, "--as-chains", "--method", "nuts", "--sims", "300", "--seed", "2", "-q")
said = said_by(few, "calibrate", beyond, "--as-chains", "--sims", "100", "--seed", "1", status=4)
check("simulations gave no draws" in said and "above its declared bound 5" in said, "a simulation without data has no chain", said)
said = said_by(schools, data, "--as-chains", status=2)
check("is for `./schools calibrate`" in said, "--as-chains of a run", said)


def wrong(name, text, change, data, what, sims="400"):
    """The program with a change in its text has to fail."""
    with open(name + ".gm", "w") as f: f.write(text)
    run(gmc, "-q", "--no-device", "--method", "gibbs", "--keep", name + ".gm", "-o", name)
    said = said_by(gmc, "-v", "-q", "--no-device", "--method", "gibbs", name + ".gm", "-o", name)
    libraries = re.search(r"(\S*libgmhost\.a.*)$", said, re.M).group(1).split()
    include = re.search(r"-I(\S+)", said).group(1)
    with open(name + ".cu") as f: code = f.read()
    check(change[0] in code, "the text is there", code[:200])
    with open(name + "_wrong.cu", "w") as f: f.write(code.replace(*change, 1))
    run("cc", "-x", "c", "-std=gnu11", "-O1", "-fopenmp", "-w", "-I" + include, name + "_wrong.cu", "-x", "none", *libraries, "-o",
        name + "_wrong")
    run("./" + name, "calibrate", data, "--sims", sims, "--seed", "3", "-q")
    said = said_by("./" + name + "_wrong", "calibrate", data, "--sims", sims, "--seed", "3", "-q", status=14)
    check("calibration FAILED" in said and what in said, name + ": " + what, said)
    check("independent ones" not in said, name + ": it is not for draws that depend on each other", said)


NORMAL = """data { int N; vector[N] y; }
prior { mu ~ normal(0, 2); }
likelihood { for (i in 1:N) y[i] ~ normal(mu, 1); }
"""
five = give("five.json", N=5)
wrong("narrow", NORMAL, ("(mu, 0, NORMAL(mean, precision)", "(mu, 0, NORMAL(mean, 2 * precision)"), five, "draws too narrow")
wrong("moved", NORMAL, ("(mu, 0, NORMAL(mean, precision)", "(mu, 0, NORMAL(mean + 0.2, precision)"), five, "draws too large")
# one that draws from the prior: its ranks of mu are uniform, and the log density tells
wrong("blind", NORMAL, ("(mu, 0, NORMAL(mean, precision)", "(mu, 0, NORMAL(0, 0.25)"), five, "lp__")
sys.exit(failures() > 0)
