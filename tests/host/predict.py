"""`fit predict`: equal to what --new gives in the run; new levels, new rows and missing responses from their laws; known predictive laws;
log densities; refusals, each with one line and status 2.

Laws are tested by Kolmogorov and Smirnov's statistic, of counts with uniform numbers between the steps. Each false alarm has probability
1e-6 before the seeds are chosen.

    predict.py GMC FOLDER"""
import csv
import glob
import json
import math
import os
import random
import subprocess
import sys

from programs import check, failures, pooled, program, write

gmc, work = sys.argv[1:3]
os.chdir(work)
LIMIT = math.sqrt(-math.log(0.5e-6) / 2)  # of sqrt(n) D: P(it is more) is 2 exp(-2 limit^2)


def run(*command):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=300)
    return done.returncode, done.stdout.decode(), done.stderr.decode()


def fit(of, *arguments, name="d", samples=2000):
    for old in glob.glob(name + "_*"): os.remove(old)
    code, out, err = run(of, *arguments, "--seed", "3", "--samples", str(samples), "--chains", "2", "--no-summary", "-q", "-o", name)
    assert code == 0, err
    return pooled(name)


def predict(of, *arguments, name="d", to="p"):
    for old in glob.glob(to + "_*"): os.remove(old)
    code, out, err = run(of, "predict", name, *arguments, "-o", to, "-q")
    assert code == 0, err
    return pooled(to), out


def table(name):
    with open(name + "_new.csv") as f: return {row["variable"]: row for row in csv.DictReader(f)}


def ks(u):
    """sqrt(n) D of numbers that should be uniform."""
    u, n = sorted(u), len(u)
    return math.sqrt(n) * max(max((i + 1) / n - x, x - i / n) for i, x in enumerate(u))


def uniform(what, u):
    d = ks(u)
    check(d < LIMIT, what, "sqrt(n) D = %.3f, bound %.3f" % (d, LIMIT))


def phi(z): return 0.5 * math.erfc(-z / math.sqrt(2))


def between(mass, x):
    """F(x - 1) + u P(x) for counts x, by the masses of 0, 1, ...: uniform if x has them."""
    below = [0.0]
    for m in mass: below.append(below[-1] + m)
    return [below[int(k)] + random.random() * mass[int(k)] for k in x]


def refused(what, of, words, *arguments, name="d"):
    code, out, err = run(of, "predict", name, *arguments)
    check(code == 2 and words in err, what, (code, err))


def lgamma_choose(n, k): return math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1)


random.seed(11)

# ---- a factor by name: old rows, a county that was held out ----

RADON = """data { int N, J; int<lower=1, upper=J> county[N]; vector[N] x; vector[N] y; }
prior { g ~ normal(0, 10); b ~ normal(0, 10); tau ~ half_normal(0, 5); s ~ half_normal(0, 5); for (j in 1:J) a[j] ~ normal(g, tau); }
likelihood { for (i in 1:N) { mu[i] = a[county[i]] + b * x[i]; y[i] ~ normal(mu[i], s); } }
"""
radon = program("radon", RADON)
names = ["Aitkin", "Anoka", "Becker", "Cass", "Dodge", "Elk", "Grant", "Isanti"]
effect = {n: random.gauss(1, 0.7) for n in names}


def rows(n):
    return [(c, round(x, 3), round(effect[c] + 0.5 * x + random.gauss(0, 0.8), 3))
            for c, x in ((random.choice(names), random.random()) for _ in range(n))]


def text(rows, header="county,x,y"): return header + "\n" + "".join(",".join(str(x) for x in row) + "\n" for row in rows)


all_rows = rows(160)
write("train.csv", text([r for r in all_rows if r[0] != "Cass"]))
write("held.csv", text([r for r in all_rows if r[0] == "Cass"]))
old = [r for r in rows(30) if r[0] != "Cass"]
write("old.csv", text(old))
write("without.csv", text([r[:2] for r in old], "county,x"))
stored = fit(radon, "train.csv", "--new", "old.csv", "--predict", "--log-lik")
within = table("d")
later, said = predict(radon, "--new", "old.csv")
now = table("p")
check(set(now) == set(within) and max(abs(float(now[k]["mean"]) - float(within[k]["mean"])) for k in now) < 1e-12,
     "the same means as --new in the run")
levels = json.load(open("d_levels.json"))["county"]
mu = [[stored["a.%d" % (levels.index(r[0]) + 1)][d] + stored["b"][d] * r[1] for d in range(len(stored["b"]))] for r in old]
check(all(abs(later["mu.%d" % (i + 1)][d] - mu[i][d]) < 1e-12 for i in range(len(old)) for d in range(0, 4000, 97)),
     "mu is computed from the stored draws, by names")
log_lik = [[-0.5 * math.log(2 * math.pi) - math.log(stored["s"][d]) - 0.5 * ((old[i][2] - mu[i][d]) / stored["s"][d])**2
            for d in range(4000)] for i in range(len(old))]
lpd = [math.log(sum(math.exp(x) for x in row) / 4000) for row in log_lik]
check(all(abs(float(now["log_lik_y.%d" % (i + 1)]["log_mean_exp"]) - lpd[i]) < 1e-9 for i in range(len(old))),
     "log predictive densities by the formula")
check("elpd %.6g," % sum(lpd) in said, "their sum is printed", said)
uniform("replicates are normal about mu", [phi((later["y_rep.4"][d] - mu[3][d]) / stored["s"][d]) for d in range(4000)])
quantile = sorted(later["y_rep.1"])
check(abs(float(now["y_rep.1"]["q50"]) - 0.5 * (quantile[1999] + quantile[2000])) < 1e-12, "quantiles are in the table")
other, said = predict(radon, "--new", "without.csv")
check(other["y_rep.1"] == later["y_rep.1"] and "log_lik_y.1" not in other, "a response may be left out")
reversed_rows = list(reversed(old))
write("reversed.csv", text(reversed_rows))
other, _ = predict(radon, "--new", "reversed.csv")
check(other["mu.1"] == later["mu.%d" % len(old)], "levels are matched by name, whichever are there and in any order")
several, _ = predict(radon, "--new", "old.csv", "--quantiles", "2.5,97.5", "--params", "y_rep", "--digits", "6")  # and what is asked for
check(set(k.split(".")[0] for k in several) == {"y_rep", "log_lik_y"} and "q97.5" in table("p")["y_rep.1"],
     "--params, --quantiles, --digits")
again, _ = predict(radon, "--new", "old.csv", "--seed", "8")
check(again["mu.1"] == later["mu.1"] and again["y_rep.1"] != later["y_rep.1"], "--seed gives other replicates")
one, _ = predict(radon, "--new", "old.csv", "--threads", "1")
check(one == later, "threads do not matter")

held, said = predict(radon, "--new", "held.csv", "--new-levels", "draw", "--params", "all")
a = held["a.8"]
uniform("effects of a new level have the law of the plate", [phi((a[d] - stored["g"][d]) / stored["tau"][d]) for d in range(4000)])
check(all(held["a.%d" % j] == stored["a.%d" % j] for j in range(1, 8)), "old levels keep their effects")
n = len(a)
mean_g, mean_a = sum(stored["g"]) / n, sum(a) / n
expected = sum((x - mean_g)**2 for x in stored["g"]) / n + sum(t * t for t in stored["tau"]) / n
square = [(x - mean_a)**2 for x in a]
observed = sum(square) / n
# the squares differ from tau^2 z^2 + ... by draws of z alone; the bound has 6 sd of their mean, autocorrelation of tau aside
error = math.sqrt(sum((q - observed)**2 for q in square) / n / n)
check(abs(observed - expected) < 6 * error, "the variance of a new effect is tau^2 and what g adds", (observed, expected, error))
y_sd = [held["y_rep.1"][d] - held["mu.1"][d] for d in range(n)]
uniform("so are responses of a new level about its effect", [phi(y_sd[d] / stored["s"][d]) for d in range(n)])
refused("a level that the fit does not have", radon, 'county[1] = "Cass" is none of the 7 levels of the fit: with --new-levels draw',
        "--new", "held.csv")
write("codes.csv", "county,x\n3,0.1\n")
refused("numbers beside names", radon, "county is given by number, and was given by name", "--new", "codes.csv")
os.rename("d_levels.json", "away.json")
refused("names without the levels of the fit", radon, "NAME_levels.json beside the draws does not have its levels", "--new", "old.csv")
os.rename("away.json", "d_levels.json")
refused("no new data", radon, "there are no new data: predict DRAWS --new DATA")
refused("a mistyped option", radon, "is --new-levels meant?", "--new", "old.csv", "--new-lvels=draw")
refused("no draws of that name", radon, "there are no draws e_1.csv", "--new", "old.csv", name="e")
write("part.csv", "county\nElk\n")
refused("a covariate that is missing", radon, "1 of the names that radon needs is not in the new data", "--new", "part.csv")
refused("files that are there", radon, "p_levels.json is there already: --overwrite", "--new", "old.csv", "-o", "p")
fit(radon, "train.csv", "--params", "g,b,tau,a", name="few")
refused("an unknown that was not kept", radon, "s is not in the draws: the run must keep it", "--new", "old.csv", name="few")

# ---- by number: levels of two crossed groupings, one nested in the other ----

CROSSED = """data { int N, J, K, R; int<lower=1, upper=J> j[N]; int<lower=1, upper=K> k[N]; int<lower=1, upper=R> region[J]; vector[N] y; }
prior { for (r in 1:R) c[r] ~ normal(0, 2); ta ~ half_normal(0, 1); tb ~ half_normal(0, 1); s ~ half_normal(0, 1);
  for (q in 1:J) a[q] ~ normal(c[region[q]], ta); for (q in 1:K) b[q] ~ normal(0, tb); }
likelihood { for (i in 1:N) y[i] ~ normal(a[j[i]] + b[k[i]], s); }
"""
crossed = program("crossed", CROSSED)
region = [1 + q % 3 for q in range(9)]
where = [(1 + i % 9, 1 + (i // 9) % 5) for i in range(180)]
write("crossed.json", json.dumps({"N": 180, "j": [w[0] for w in where], "k": [w[1] for w in where], "region": region, "R": 3, "J": 9,
                                "K": 5, "y": [0.3 * w[0] - 0.5 * w[1] + random.gauss(0, 0.7) for w in where]}))
stored = fit(crossed, "crossed.json", name="c")
# row 1: old and old; 2: a new level of k; 3: a new j of an old region; 4: a new j of a new region, with a new k
write("new.json", json.dumps({"j": [2, 2, 10, 11], "k": [4, 6, 4, 6], "region": region + [2, 4]}))
later, _ = predict(crossed, "--new", "new.json", "--new-levels", "draw", "--params", "all", name="c")
check(later["a.2"] == stored["a.2"] and later["b.4"] == stored["b.4"] and later["c.3"] == stored["c.3"], "old levels of crossed groupings")
uniform("a new level of one grouping", [phi(later["b.6"][d] / stored["tb"][d]) for d in range(4000)])
uniform("a new level within an old one", [phi((later["a.10"][d] - stored["c.2"][d]) / stored["ta"][d]) for d in range(4000)])
uniform("a new level of the outer grouping", [phi(later["c.4"][d] / 2) for d in range(4000)])
uniform("a new level within it", [phi((later["a.11"][d] - later["c.4"][d]) / stored["ta"][d]) for d in range(4000)])
uniform("a response of new levels of both", [phi((later["y_rep.4"][d] - later["a.11"][d] - later["b.6"][d]) / stored["s"][d])
                                           for d in range(4000)])
write("one.json", json.dumps({"j": [2], "k": [6], "region": region}))
refused("a number beyond those of the fit", crossed, "k[1] = 6 is a level that the fit does not have, whose K is 5: --new-levels draw",
        "--new", "one.json", name="c")
write("fewer.json", json.dumps({"N": 1, "J": 9, "K": 2, "j": [2], "k": [1], "region": region}))
refused("fewer levels than the fit has", crossed, "K is 2, and 5 in the fit", "--new", "fewer.json", name="c")
write("two.json", json.dumps({"j": [2], "k": [5]}))
refused("data of levels that are left out", crossed, "--data DATA gives those of the run", "--new", "two.json", name="c")
filled, _ = predict(crossed, "--new", "two.json", "--data", "crossed.json", name="c")
check("y_rep.1" in filled and "y_rep.2" not in filled and "log_lik_y.1" not in filled, "--data gives them, and no responses")

# ---- effects that are vectors ----

VECTORS = """data { int N, J; int<lower=1, upper=J> j[N]; vector[N] x; vector[N] y; cov_matrix[2] S; }
prior { vector[2] m ~ normal(0, 5); s ~ half_normal(0, 1); for (q in 1:J) vector[2] a[q] ~ multi_normal(m, S); }
likelihood { for (i in 1:N) y[i] ~ normal(a[j[i], 1] + a[j[i], 2] * x[i], s); }
"""
vectors = program("vectors", VECTORS)
xs = [random.random() for _ in range(60)]
S = [[1.0, 0.6], [0.6, 0.8]]
write("vectors.json", json.dumps({"N": 60, "J": 6, "j": [1 + i % 6 for i in range(60)], "x": xs, "S": S,
                                "y": [0.2 * (i % 6) + x + random.gauss(0, 0.5) for i, x in enumerate(xs)]}))
stored = fit(vectors, "vectors.json", name="v")
write("vector.json", json.dumps({"j": [7], "x": [0.5], "S": S}))
later, _ = predict(vectors, "--new", "vector.json", "--new-levels", "draw", "--params", "all", name="v")
first = [later["a.7.1"][d] - stored["m.1"][d] for d in range(4000)]
second = [later["a.7.2"][d] - stored["m.2"][d] for d in range(4000)]
uniform("a new level's vector: its first element", [phi(x) for x in first])
uniform("its second, given the first", [phi((y - 0.6 * x) / math.sqrt(0.8 - 0.36)) for x, y in zip(first, second)])
check(later["a.6.2"] == stored["a.6.2"], "vectors of old levels")

# ---- known predictive laws ----

binomial = program("binomial", """data { int N; int<lower=0> n[N]; int<lower=0> y[N]; }
prior { p ~ beta(2, 3); } likelihood { for (i in 1:N) y[i] ~ binomial(n[i], p); }""")
write("binomial.json", json.dumps({"n": [10] * 6, "y": [3, 4, 2, 6, 3, 5]}))
fit(binomial, "binomial.json", name="b")
write("twelve.json", json.dumps({"n": [12, 12], "y": [5, 12]}))
later, _ = predict(binomial, "--new", "twelve.json", name="b")
A, B = 2 + 23, 3 + 37
mass = [math.exp(lgamma_choose(12, k) + math.lgamma(A + k) + math.lgamma(B + 12 - k) - math.lgamma(A + B + 12)
                 - math.lgamma(A) - math.lgamma(B) + math.lgamma(A + B)) for k in range(13)]
uniform("beta-binomial", between(mass, later["y_rep.1"]))
found = float(table("p")["log_lik_y.1"]["log_mean_exp"])
density = [math.exp(x) for x in later["log_lik_y.1"]]
error = math.sqrt(sum((x - mass[5])**2 for x in density)) / 4000 / mass[5]
check(abs(found - math.log(mass[5])) < 6 * error, "its log density", (found, math.log(mass[5]), error))

student = program("student", """data { int N; vector[N] y; }
prior { v ~ inv_gamma(3, 4); m ~ normal(1, sqrt(v / 2)); } likelihood { y ~ normal(m, sqrt(v)); }""")
ys = [random.gauss(2, 1.5) for _ in range(12)]
write("student.json", json.dumps({"y": ys}))
fit(student, "student.json", "--thin", "5", name="s")
write("student_new.json", json.dumps({"y": [1.5, 4.0]}))
later, _ = predict(student, "--new", "student_new.json", name="s")
n, mean = len(ys), sum(ys) / len(ys)
k_n, a_n = 2 + n, 3 + n / 2
m_n = (2 * 1 + n * mean) / k_n
b_n = 4 + 0.5 * sum((y - mean)**2 for y in ys) + 0.5 * 2 * n * (mean - 1)**2 / k_n
scale, nu = math.sqrt(b_n / a_n * (1 + 1 / k_n)), 2 * a_n


def t_density(z):
    log = math.lgamma((nu + 1) / 2) - math.lgamma(nu / 2) - 0.5 * math.log(nu * math.pi)
    return math.exp(log - (nu + 1) / 2 * math.log1p(z * z / nu))


def t_below(z, steps=400):
    """Simpson's rule from 0."""
    h = z / steps
    return 0.5 + h / 3 * sum((1 if i in (0, steps) else 4 if i % 2 else 2) * t_density(i * h) for i in range(steps + 1))


uniform("a normal with unknown mean and variance: t", [t_below((y - m_n) / scale) for y in later["y_rep.1"]])
for i, y in enumerate([1.5, 4.0]):
    exact = math.log(t_density((y - m_n) / scale) / scale)
    density = [math.exp(x) for x in later["log_lik_y.%d" % (i + 1)]]
    error = math.sqrt(sum((x - math.exp(exact))**2 for x in density)) / 4000 / math.exp(exact)
    found = float(table("p")["log_lik_y.%d" % (i + 1)]["log_mean_exp"])
    check(abs(found - exact) < 6 * error, "the log density of t at %g" % y, (found, exact, error))

poisson = program("poisson", """data { int N; int<lower=0> y[N]; }
prior { r ~ gamma(2, 1); } likelihood { for (i in 1:N) y[i] ~ poisson(r); }""")
write("poisson.json", json.dumps({"y": [3, 1, 4, 2, 5]}))
fit(poisson, "poisson.json", name="n")
later, _ = predict(poisson, "--new", "N=3", name="n")
shape, rate = 17, 6
mass = [math.exp(math.lgamma(shape + k) - math.lgamma(shape) - math.lgamma(k + 1)
                 + shape * math.log(rate / (rate + 1)) - k * math.log(rate + 1))
        for k in range(60)]
uniform("negative binomial", between(mass, later["y_rep.2"]))

# ---- unknowns of rows ----

rates = program("rates", """data { int N; vector<lower=0>[N] t; int<lower=0> y[N]; }
prior { b ~ gamma(2, 1); } latent { for (i in 1:N) l[i] ~ gamma(3, b); } likelihood { for (i in 1:N) y[i] ~ poisson(l[i] * t[i]); }""")
write("rates.json", json.dumps({"t": [1, 2, 3, 4], "y": [2, 3, 9, 7]}))
stored = fit(rates, "rates.json", "--params", "all", name="r")
write("rate.json", json.dumps({"t": [1.5, 1, 1, 1]}))
later, _ = predict(rates, "--new", "rate.json", "--params", "all", name="r")
check(later["l.2"] != stored["l.2"], "a latent of a new row is not that of an old one")


def below(x, shape=3):
    """Of gamma(3, 1)."""
    return 1 - math.exp(-x) * sum(x**k / math.factorial(k) for k in range(shape))


uniform("it has its own law", [below(l * b) for l, b in zip(later["l.1"], stored["b"])])
u = []
for y, b in zip(later["y_rep.1"], stored["b"]):  # negative binomial given b
    q = 1.5 / (1.5 + b)
    mass = [(k + 1) * (k + 2) / 2 * (1 - q)**3 * q**k for k in range(int(y) + 1)]
    u.append(sum(mass[:-1]) + random.random() * mass[-1])
uniform("and so has the response", u)

fit(rates, "rates.json", name="r0")
check("y_rep.1" in predict(rates, "--new", "rate.json", name="r0")[0], "latents of rows need not be stored")

probit = program("probit", """data { int N; vector[N] x; int<lower=0, upper=1> y[N]; }
prior { a ~ normal(0, 2); b ~ normal(0, 2); } likelihood { for (i in 1:N) y[i] ~ bernoulli(normal_cdf(a + b * x[i], 0, 1)); }""")
px = [random.gauss(0, 1) for _ in range(60)]
write("probit.json", json.dumps({"x": px, "y": [int(0.3 + x + random.gauss(0, 1) > 0) for x in px]}))
stored = fit(probit, "probit.json", name="q")
write("probits.json", json.dumps({"x": [0.4, -1.0], "y": [1, 0]}))
later, _ = predict(probit, "--new", "probits.json", name="q")
p = [phi(a + 0.4 * b) for a, b in zip(stored["a"], stored["b"])]
check(all(abs(math.exp(l) - x) < 1e-9 for l, x in zip(later["log_lik_y.1"], p)), "auxiliaries of rows are integrated out of densities")
z = (sum(later["y_rep.1"]) - sum(p)) / math.sqrt(sum(x * (1 - x) for x in p))
check(abs(z) < 5, "and of replicates", z)

schools = program("schools", """data { int J; vector[J] y; vector<lower=0>[J] sigma; }
prior { mu ~ normal(0, 5); tau ~ half_normal(0, 5); for (j in 1:J) theta[j] ~ normal(mu, tau); }
likelihood { for (j in 1:J) y[j] ~ normal(theta[j], sigma[j]); }""")
write("schools.json", json.dumps({"y": [28, 8, -3, 7, -1, 1, 18, 12], "sigma": [15, 10, 16, 11, 9, 11, 10, 18]}))
stored = fit(schools, "schools.json", name="e8")
write("school.json", json.dumps({"sigma": [10] * 8}))
refused("unknowns of rows, without saying what they are", schools, "theta has elements for the rows that J counts, and those of "
        "the new data are new: --new-levels draw", "--new", "school.json", name="e8")
later, _ = predict(schools, "--new", "school.json", "--new-levels", "draw", "--params", "all", name="e8")
uniform("new schools", [phi((later["theta.3"][d] - stored["mu"][d]) / stored["tau"][d]) for d in range(4000)])
later, _ = predict(schools, "--new", "school.json", "--same-rows", "--params", "all", name="e8")
check(later["theta.3"] == stored["theta.3"], "--same-rows keeps what rows have")
uniform("and predicts them again", [phi((later["y_rep.3"][d] - stored["theta.3"][d]) / 10) for d in range(4000)])

# ---- missing responses: those of a series ----

series = program("series", """data { int T; vector[T] y; }
prior { f ~ uniform(-1, 1); s ~ half_normal(0, 2); }
likelihood { y[1] ~ normal(0, 1); for (t in 2:T) y[t] ~ normal(f * y[t-1], s); }""")
ys = [0.5]
for _ in range(39): ys.append(0.7 * ys[-1] + random.gauss(0, 0.5))
write("series.json", json.dumps({"y": ys}))
stored = fit(series, "series.json", name="ar")
write("tail.json", json.dumps({"y": ys[-2:] + [None] * 3}))
later, _ = predict(series, "--new", "tail.json", name="ar")
f, s = stored["f"], stored["s"]
uniform("the first missing value follows the last one", [phi((later["y_rep.3"][d] - f[d] * ys[-1]) / s[d]) for d in range(4000)])
uniform("the second one follows it", [phi((later["y_rep.4"][d] - f[d] * later["y_rep.3"][d]) / s[d]) for d in range(4000)])
uniform("the third one the second", [phi((later["y_rep.5"][d] - f[d] * later["y_rep.4"][d]) / s[d]) for d in range(4000)])
check(set(k for k in later if k[:3] == "log" and not math.isnan(later[k][0])) == {"log_lik_y.1", "log_lik_y.2"},
     "only what is there has a log density")
write("gap.json", json.dumps({"y": [0.2, None, 0.4]}))
later, said = predict(series, "--new", "gap.json", name="ar")
exact = [math.log(sum(math.exp(-0.5 * (0.4 - f[d]**2 * 0.2)**2 / v) / math.sqrt(2 * math.pi * v)
                      for d in range(4000) for v in [s[d]**2 * (1 + f[d]**2)]) / 4000)]
found = float(table("p")["log_lik_y.3"]["log_mean_exp"])
density = [math.exp(x) for x in later["log_lik_y.3"]]
error = math.sqrt(sum((x - math.exp(found))**2 for x in density)) / 4000 / math.exp(found)
check(abs(found - exact[0]) < 6 * error, "a density beyond a gap", (found, exact[0], error))
later, _ = predict(series, "--new", "T=4", name="ar")
uniform("a whole series", [phi((later["y_rep.4"][d] - f[d] * later["y_rep.3"][d]) / s[d]) for d in range(4000)])

walk = program("walk", """data { int T; vector[T] y; }
prior { w ~ half_normal(0, 1); s ~ half_normal(0, 1); h[1] ~ normal(0, 1); for (t in 2:T) h[t] ~ normal(h[t-1], w); }
likelihood { for (t in 1:T) y[t] ~ normal(h[t], s); }""")
stored = fit(walk, "series.json", name="w")
write("ahead.json", json.dumps({"y": ys + [None] * 2}))
later, _ = predict(walk, "--new", "ahead.json", "--same-rows", "--new-levels", "draw", "--params", "all", name="w")
check(later["h.40"] == stored["h.40"], "states of a series that goes on")
uniform("the next state", [phi((later["h.41"][d] - stored["h.40"][d]) / stored["w"][d]) for d in range(4000)])
uniform("and the one after it", [phi((later["h.42"][d] - later["h.41"][d]) / stored["w"][d]) for d in range(4000)])

# ---- rows that are not on their own ----

standardised = program("standardised", """data { int N; vector[N] x; vector[N] y; }
let { for (i in 1:N) z[i] = (x[i] - mean(x)) / sd(x); }
prior { a ~ normal(0, 10); b ~ normal(0, 10); s ~ half_normal(0, 5); } likelihood { for (i in 1:N) y[i] ~ normal(a + b * z[i], s); }
predict { R2 = 1 - square(s) / variance(x); }""")
write("xy.json", json.dumps({"x": [1, 2, 3, 4, 6], "y": [1.1, 1.9, 3.2, 3.9, 6.1]}))
write("x.json", json.dumps({"x": [5, 7]}))
stored = fit(standardised, "xy.json", name="z")
refused("a mean over rows, for a row", standardised, "reads a sum over all rows, such as a mean", "--new", "x.json", name="z")
later, _ = predict(standardised, "--new", "x.json", "--new-sums", "--params", "all", name="z")
check(abs(later["R2"][7] - 1 + stored["s"][7]**2 / 2) < 1e-9, "--new-sums takes those of the new rows")
process = program("process", """data { int N; vector[N] x; vector[N] y; }
prior { a ~ half_normal(0, 2); }
likelihood { y ~ multi_normal(rep_vector(0, N), gp_exp_quad_cov(x, a, 1) + diag_matrix(rep_vector(0.1 * square(a), N))); }""")
stored = fit(process, "xy.json", name="gp", samples=200)
refused("rows of one law", process, "y has one law for all rows that N counts", "--new", "x.json", name="gp")
later, _ = predict(process, "--new", "x.json", "--new-levels", "draw", name="gp")
uniform("others of that law", [phi(later["y_rep.1"][d] / stored["a"][d] / math.sqrt(1.1)) for d in range(400)])

# ---- rows of different lengths, and levels in an order of their own ----

ragged = program("ragged", """data { int G, J; int<lower=0> n[G]; int<lower=1, upper=J> g[G]; vector[n] y[G]; vector[n] t[G]; vector[J] w; }
prior { mu ~ normal(0, 5); vector[n] e[G]; tau ~ lognormal(0, 0.3); s ~ lognormal(0, 0.3); b ~ normal(0, 1);
  for (j in 1:J) a[j] ~ normal(mu, tau); for (i in 1:G) theta[i] ~ normal(a[g[i]], 1); for (i in 1:G) e[i] ~ normal(0, 0.5); }
likelihood { for (i in 1:G) for (k in 1:n[i]) y[i, k] ~ normal(theta[i] + e[i, k] + b * t[i, k] + w[g[i]], s); }
predict { for (i in 1:G) top[i] = n[i] > 0 ? theta[i] + b * max(t[i]) : theta[i]; }""")
visits = {"g": ["u", "v", "u", "w"], "y": [[1, 2], [0.5], [], [0.3, None, 1]], "t": [[1, 2], [0.5], [], [0.3, 2, 1]], "w": [5, 6, 7]}
write("visits.json", json.dumps(visits))
stored = fit(ragged, "visits.json", "--levels", "g=w,u,v", "--params", "all", name="rg")
write("people.json", json.dumps({"g": ["w", "z", "u"], "y": [[1, 2, 3], [None], []], "t": [[1, 2, 3], [0.5], []], "w": [5, 6, 7, 8]}))
refused("new rows", ragged, 'g[2] = "z" is none of the 3 levels of the fit', "--new", "people.json", name="rg")
write("known.json", json.dumps({"g": ["w", "u"], "t": [[1, 2], [0.5]], "w": [5, 6, 7]}))
refused("new rows of old levels", ragged, "e has elements for the rows that n counts", "--new", "known.json", name="rg")
refused("--levels", ragged, "the levels are those of the fit, in their order", "--new", "known.json", "--levels", "g=w,u,v", name="rg")
later, _ = predict(ragged, "--new", "people.json", "--new-levels", "draw", "--params", "all", name="rg")
check(later["a.1"] == stored["a.1"] and later["a.3"] == stored["a.3"] and json.load(open("p_levels.json"))["g"] == ["w", "u", "v", "z"],
      "effects of old levels, in the order that was given")
draws = range(len(later["b"]))
uniform("a new level's effect", [phi((later["a.4"][d] - stored["mu"][d]) / stored["tau"][d]) for d in draws])
for i, level in ((1, 1), (2, 4), (3, 2)):
    uniform("the effect of new row %d" % i, [phi(later["theta.%d" % i][d] - later["a.%d" % level][d]) for d in draws])
for i, k, t, w in ((1, 1, 1, 5), (1, 3, 3, 5), (2, 1, 0.5, 8)):
    uniform("e[%d, %d]" % (i, k), [phi(later["e.%d.%d" % (i, k)][d] / 0.5) for d in draws])
    uniform("y[%d, %d]" % (i, k), [phi((later["y_rep.%d.%d" % (i, k)][d] - later["theta.%d" % i][d] - later["e.%d.%d" % (i, k)][d] -
                                        stored["b"][d] * t - w) / stored["s"][d]) for d in draws])
check("y_rep.3.1" not in later and later["top.3"] == later["theta.3"], "a row of no elements")
visits["g"].append("v"), visits["y"].append([2, 3]), visits["t"].append([1, 1]), visits["y"][1].append(1), visits["t"][1].append(1)
write("more.json", json.dumps(visits))
later, _ = predict(ragged, "--new", "more.json", "--same-rows", "--new-levels", "draw", "--params", "all", name="rg")
check(all(later[c] == stored[c] for c in ("e.1.1", "e.1.2", "e.2.1", "e.4.3", "theta.4")), "--same-rows keeps places of rows")
uniform("a new place of an old row", [phi(later["e.2.2"][d] / 0.5) for d in draws])
uniform("a place of a new row", [phi(later["e.5.1"][d] / 0.5) for d in draws])
uniform("the effect of a row that follows", [phi(later["theta.5"][d] - stored["a.3"][d]) for d in draws])
write("short.json", json.dumps({"g": ["w", "u"], "t": [[1, 2], [0.5]]}))
again, _ = predict(ragged, "--new", "short.json", "--data", "visits.json", "--new-levels", "draw", "--params", "all", name="rg")
whole, _ = predict(ragged, "--new", "known.json", "--new-levels", "draw", "--params", "all", name="rg")
check(all(again[c] == whole[c] for c in ("theta.2", "y_rep.1.2", "a.3")), "--data is read by the levels of the run")
write("least.json", json.dumps({"g": ["w", "u"], "y": [[1, 2], [0.5]]}))
refused("covariates of other rows", ragged, "t", "--new", "least.json", "--data", "visits.json", "--new-levels", "draw", name="rg")

# ---- what has no law of its own ----

flat = program("flat", """data { int N, J; int<lower=1, upper=J> j[N]; vector[N] y; }
prior { m ~ flat(); for (q in 1:J) a[q] ~ normal(m, 1); } likelihood { for (i in 1:N) y[i] ~ normal(a[j[i]], 1); }""")
write("flat.json", json.dumps({"J": 3, "j": [1, 2, 3, 1, 2, 3], "y": [1, 2, 3, 1.5, 2.5, 3.5]}))
stored = fit(flat, "flat.json", name="f")
write("four.json", json.dumps({"j": [4]}))
later, _ = predict(flat, "--new", "four.json", "--new-levels", "draw", "--params", "all", name="f")
uniform("a flat prior of a stored unknown does not matter", [phi(later["a.4"][d] - stored["m"][d]) for d in range(4000)])
soft = program("soft", """data { int N, J; int<lower=1, upper=J> j[N]; vector[N] y; }
prior { s ~ half_normal(0, 1); for (q in 1:J) a[q] ~ normal(0, 1); sum(a) ~ normal(0, 0.01); }
likelihood { for (i in 1:N) y[i] ~ normal(a[j[i]], s); }""")
fit(soft, "flat.json", name="so")
refused("a statement about all levels", soft, "a cannot be drawn from its law: `target +=`, or a law of a function of unknowns",
        "--new", "four.json", "--new-levels", "draw", name="so")
refused("draws of another model", soft, "these are no draws of this program's model", "--new", "four.json", name="f")

sys.exit(failures() > 0)
