"""If this fails, `fit --log-lik` does not give the log-likelihood of what is observed, or `fit --predict` does not draw it as the model
says.

    observed.py            needs numpy, scipy and arviz < 1

Log-likelihoods are compared with SciPy's at each draw, relative 1e-9. A replicate's distribution function given the unknowns of its draw
(for integers at a point drawn at random within the step, for vectors of whitened elements) is uniform, and so are all of a variable
together: sqrt(n) times the largest distance is above 3 once in 3*10^7 variables.
"""
import json
import os
import re
import subprocess
import sys
import warnings

import numpy as np
from scipy import special, stats

import program

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    import arviz

rng = np.random.default_rng(3)
rows, compiled = [], set()
w = program.Workplace()
NAN = None

MODEL = """data {
  int<lower=0> N, G, K, J, L;
  matrix[N, 2] X;
  int<lower=0, upper=1> b[N], pr[N];
  real a[N], t[N], m[N], v[N], lg[N], pm[N];
  real series[N];
  int<lower=0> c[N], q[N], size[N], tc[N];
  int kind[N];
  matrix[G, 2] V;
  int<lower=1> first[K], len[K];
  real r[L];
  int<lower=1, upper=3> grade[N], level[N];
  int counts[J, 3];
  real one;
  int g[N, 2];
}
let { half = 0.5; }
prior {
  alpha ~ normal(0, 1);
  beta[1] ~ normal(0, 1);
  beta[2] ~ normal(0, 1);
  sigma ~ exponential(1);
  mu[1] ~ normal(-1, 1);
  mu[2] ~ normal(1, 1);
  theta ~ dirichlet([1, 2, 3]);
  rho ~ uniform(-1, 1);
  S ~ inv_wishart(6, [[1, 0.2], [0.2, 2]]);
  e[1] ~ normal(-0.5, 0.2);
  e[2] ~ normal(1, 0.2);
  y_rep ~ normal(0, 1);
}
likelihood {
  b ~ bernoulli_logit(alpha + X * beta);
  pr ~ bernoulli(Phi(alpha + X * beta));
  a ~ normal(alpha + X * beta, sigma);
  c ~ poisson(exp(0.5 * alpha));
  for (i in 1:N) q[i] ~ binomial(size[i], inv_logit(alpha));
  for (i in 1:N) tc[i] ~ poisson(2 + sigma) T[1, 6];
  for (k in 1:G) V[k] ~ multi_normal(mu, S);
  t ~ normal(alpha, 1 + sigma) T[-1, 2];
  m ~ mixture(theta, normal(-2, 1), normal(mu[1], 2), student_t(5, 3, 1));
  pm ~ mixture([0.3, 0.7], normal(mu, sigma));
  for (i in 1:N) {
    if (kind[i] == 1) v[i] ~ normal(alpha, sigma);
    else if (kind[i] == 2) v[i] ~ student_t(4, alpha, 2);
  }
  for (k in 1:K, j in 1:len[k]) r[first[k] + j - 1] ~ normal(alpha + k, sigma);
  grade ~ ordered_logistic(alpha, e);
  level ~ ordered_probit(alpha, [-0.4, 0.6]);
  for (i in 2:N) series[i] ~ normal(rho * series[i - 1], sigma);
  for (i in 1:N) log(lg[i]) ~ normal(alpha, sigma);
  for (j in 1:J) counts[j] ~ multinomial(theta);
  one ~ normal(alpha, 2);
  g ~ neg_binomial(3, 1 + sigma);
  target += -0.5 * square(alpha - one);
}
"""

N, G, K, J = 12, 5, 3, 4
first, length = [1, 5, 7], [3, 2, 4]
DATA = dict(N=N, G=G, K=K, J=J, L=10, X=np.round(rng.normal(size=(N, 2)), 2), b=rng.integers(0, 2, N), pr=rng.integers(0, 2, N),
            a=np.round(rng.normal(size=N), 2), t=np.round(rng.uniform(-1, 2, N), 2),
            m=np.round(rng.normal(size=N), 2), pm=np.round(rng.normal(size=N), 2), v=np.round(rng.normal(size=N), 2),
            lg=np.round(rng.exponential(size=N) + 0.1, 2), series=np.round(rng.normal(size=N), 2),
            c=rng.integers(0, 4, N), q=rng.integers(0, 3, N), size=rng.integers(3, 6, N), tc=rng.integers(1, 7, N),
            kind=np.arange(N) % 3 + 1, V=np.round(rng.normal(size=(G, 2)), 2), first=first, len=length,
            r=np.round(rng.normal(size=10), 2), grade=rng.integers(1, 4, N), level=rng.integers(1, 4, N), counts=rng.integers(0, 4, (J, 3)),
            one=0.3, g=rng.integers(0, 5, (N, 2)))
SCALARS = ["a", "b", "pr", "c", "q", "tc", "t", "m", "pm", "v", "r", "grade", "level", "series", "g", "one"]


def run(name, data, *options, model=MODEL, compiler=()):
    """Compiles and runs; gives the draws by column, over all chains, and what was said."""
    source, built = w.path(name + ".gm"), w.path(name)
    if name not in compiled:
        with open(source, "w") as f:
            f.write(model)
        made = subprocess.run([program.GMC, "-q", "--check-passes", "--no-device", source, "-o", built, *compiler], capture_output=True,
                              text=True)
        if made.returncode:
            raise program.Failed(made.stdout + made.stderr)
        compiled.add(name)
    ran = subprocess.run([built, w.data(name, data), "--samples", "400", "--warmup", "200", "--chains", "2", "--seed", "5",
                          "--overwrite", "-o",
                          built + "_draws", "--no-summary", "--threads", "1", *options],
                         capture_output=True, text=True)
    if ran.returncode:
        return None, ran.stderr
    tables = list(program.draws.read(["%s_draws_%d.csv" % (built, k) for k in (1, 2)]))
    return dict(zip(tables[0][0], np.concatenate([values for _, values, _ in tables], axis=1))), ran.stderr


def check(good, text):
    rows.append((bool(good), text))


def array(d, name):
    """[draw, ...] of a variable."""
    at = [(c, [int(k) - 1 for k in c.split(".")[1:]]) for c in d if c.split(".")[0] == name]
    if not at:
        return None
    out = np.full([len(d[at[0][0]])] + [max(i) + 1 for i in zip(*[k for _, k in at])], np.inf)
    for c, k in at:
        out[(slice(None), *k)] = d[c]
    return out


# scipy makes an object, with its documentation, for each draw: half of the time of this script.

def log_multi_normal(x, mean, S):
    """Of the last dimensions, [draw, row]; a row with a missing number has none."""
    apart = (x - mean)[..., None]
    square = (apart * np.linalg.solve(S, apart)).sum(axis=(-2, -1))
    return -0.5 * (square + np.linalg.slogdet(S)[1] + x.shape[-1] * np.log(2 * np.pi))


def log_multinomial(k, p):
    return special.gammaln(k.sum(axis=-1) + 1) + (special.xlogy(k, p) - special.gammaln(k + 1)).sum(axis=-1)


def laws(d, data):
    """By variable: log-likelihood [draw, ...], and the distribution function as F(y) -> [draw, ...], with F(y - 1) for integers."""
    col = lambda n: array(d, n)[:, None]
    alpha, sigma, rho, mu, theta = col("alpha"), col("sigma"), col("rho"), array(d, "mu"), array(d, "theta")
    eta = alpha + array(d, "beta") @ np.asarray(data["X"]).T
    e = array(d, "e")
    y = {n: np.array([[np.nan if k is None else k for k in np.ravel(row)] for row in np.atleast_1d(np.array(data[n], dtype=object))], float)
         for n in data}
    y = {n: (v if n in ("V", "g", "counts", "X") else v.ravel()) for n, v in y.items()}
    k = np.array(data["kind"])
    group = np.zeros(10) + np.nan
    for i in range(K):
        group[first[i] - 1:first[i] - 1 + length[i]] = i + 1
    # what is missing was imputed: it is a column of the draws
    full = np.repeat(y["series"][None], len(alpha), 0)
    for i in range(N):
        if "series.%d" % (i + 1) in d:
            full[:, i] = d["series.%d" % (i + 1)]
    previous = np.hstack([np.full((len(full), 1), np.nan), full[:, :-1]])
    cut = lambda D, lo, hi: (lambda z: D.logpdf(z) - np.log(D.cdf(hi) - D.cdf(lo)),
                             lambda z: (D.cdf(z) - D.cdf(lo)) / (D.cdf(hi) - D.cdf(lo)))
    both = lambda D: (D.logpdf, D.cdf)
    whole = lambda D: (D.logpmf, D.cdf)

    def mixed(weights, parts):
        return (lambda z: special.logsumexp([np.log(p) + D.logpdf(z) for p, D in zip(weights, parts)], axis=0),
                lambda z: sum(p * D.cdf(z) for p, D in zip(weights, parts)))

    def ordered(F, cuts):
        up = [F(cuts[0] - alpha), F(cuts[1] - alpha), 1 + 0 * alpha]
        p = np.hstack([up[0], up[1] - up[0], 1 - up[1]])
        pick = lambda table, z: np.take_along_axis(table, np.clip(z.astype(int) - 1, 0, 2), 1)
        z2 = lambda z: np.broadcast_to(z, (len(alpha), np.shape(z)[-1]))
        return (lambda z: np.log(pick(p, z2(z))), lambda z: np.where(z2(z) < 1, 0, pick(np.cumsum(p, 1), z2(z))))

    pois = stats.poisson(2 + sigma)
    one = (lambda z: pois.logpmf(z) - np.log(pois.cdf(6) - pois.cdf(0)), lambda z: (pois.cdf(z) - pois.cdf(0))
           / (pois.cdf(6) - pois.cdf(0)))
    v = (stats.norm(alpha, sigma), stats.t(4, alpha, 2))
    part = lambda f, g: (lambda z: np.where(k == 1, f(z), np.where(k == 2, g(z), np.nan)))
    by = {"b": whole(stats.bernoulli(special.expit(eta))), "pr": whole(stats.bernoulli(special.ndtr(eta))),
          "a": both(stats.norm(eta, sigma)), "c": whole(stats.poisson(np.exp(0.5 * alpha))),
          "q": whole(stats.binom(np.array(data["size"]), special.expit(alpha))), "tc": one, "t": cut(stats.norm(alpha, 1 + sigma), -1, 2),
          "m": mixed(theta.T[:, :, None], (stats.norm(-2, 1), stats.norm(mu[:, :1], 2), stats.t(5, 3, 1))),
          "pm": mixed((0.3, 0.7), (stats.norm(mu[:, :1], sigma), stats.norm(mu[:, 1:], sigma))),
          "v": (part(v[0].logpdf, v[1].logpdf), part(v[0].cdf, v[1].cdf)),
          "r": both(stats.norm(alpha + group, sigma)), "grade": ordered(special.expit, (e[:, :1], e[:, 1:])),
          "level": ordered(special.ndtr, (-0.4 + 0 * alpha, 0.6 + 0 * alpha)),
          "series": both(stats.norm(rho * previous, sigma)), "one": both(stats.norm(alpha, 2)),
          "g": whole(stats.nbinom(3, (1 + sigma) / (2 + sigma)))}
    log_lik = {n: by[n][0](y[n]) for n in SCALARS if n != "g"}
    log_lik["g"] = np.stack([by["g"][0](y["g"][:, j]) for j in range(2)], -1)
    log_lik["one"] = log_lik["one"][:, 0]
    log_lik["lg"] = stats.norm(alpha, sigma).logpdf(np.log(y["lg"]))
    S = array(d, "S")
    log_lik["V"] = log_multi_normal(y["V"], mu[:, None], S[:, None])
    log_lik["counts"] = log_multinomial(y["counts"], (theta / theta.sum(axis=1, keepdims=True))[:, None])
    return log_lik, by, y


def compare(what, d, data):
    """Columns log_lik_*; the replicates if they are there. Gives the sum of the log-likelihoods."""
    log_lik, by, y = laws(d, data)
    total = 0
    for n, known in log_lik.items():
        got = array(d, "log_lik_" + n)
        if got is None:
            check(False, "%s: log_lik_%s is not there" % (what, n))
            continue
        known = np.broadcast_to(known, got.shape)
        missing = np.isnan(y[n]) if n != "V" else np.isnan(y[n]).any(1)
        known = np.where(missing if n not in ("counts", "one") else False, np.nan, known)
        same = np.isnan(got) == np.isnan(known)
        worst = np.nanmax(np.abs(got - known) / (1 + np.abs(known)))
        check(same.all() and worst < 1e-9, "%s: log_lik_%s, relative difference %.1g < 1e-9, NaN where there is none: %s" % (what, n, worst,
                same.all()))
        total = total + np.nansum(got.reshape(len(got), -1), 1)
    for n in by:
        rep = array(d, n + "_rep")
        if rep is None:
            continue
        F = by[n][1]
        draws = rep if n == "g" else rep.reshape(len(rep), -1)
        with np.errstate(invalid="ignore"):
            if n in ("b", "pr", "c", "q", "tc", "grade", "level", "g"):
                pieces = [draws] if n != "g" else [draws[:, :, 0], draws[:, :, 1]]
                u = np.concatenate([(F(z - 1) + rng.uniform(size=z.shape) * (F(z) - F(z - 1))).ravel() for z in pieces])
            else:
                u = F(draws).ravel()
        uniform("%s: %s_rep" % (what, n), u, np.isnan(draws).ravel().sum(), np.isnan(u).sum())
    rep = array(d, "V_rep")
    if rep is not None:
        S, mu = array(d, "S"), array(d, "mu")
        z = np.concatenate([np.linalg.solve(np.linalg.cholesky(S[i]), (rep[i] - mu[i]).T).ravel() for i in range(len(S))])
        uniform("%s: V_rep" % what, special.ndtr(z), 0, 0)
    return total


def uniform(what, u, none, nan):
    u = np.sort(u[~np.isnan(u)])
    n = len(u)
    distance = np.sqrt(n) * max(np.max(u - np.arange(n) / n), np.max(np.arange(1, n + 1) / n - u))
    check(distance < 3 and none == nan and n > 0, "%s: uniform, %.2f < 3 (%d values)" % (what, distance, n))


def main():
    with w:
        d, said = run("all", DATA, "--log-lik", "--predict", "--params", "all")
        compare("augmented", d, DATA)
        check("counts_rep.1.1" not in d and "no replicates of counts: there is no routine that draws from multinomial (all.gm:" in said,
              "multinomial: no replicates, said with its line")
        check("no replicates of lg: what has a distribution is a function of it" in said, "log(lg[i]) ~: no replicates, said")
        check("reads data `one` and does not name the values whose density it is" in said, "target +=: said")
        check("y_rep_2" not in said and "y_rep" in d, "a variable of the model keeps its name")
        # As written: the draws of a program without augmentations hold the log density of the model itself.
        plain, _ = run("plain", DATA, "--log-lik", "--params", "all", compiler=("--no-augment",))
        total = compare("as written", plain, DATA)
        col = lambda n: plain[n]
        prior = stats.norm(0, 1).logpdf([col("alpha"), col("beta.1"), col("beta.2"), col("y_rep")]).sum(0) - col("sigma") + stats.norm(-1,
                1).logpdf(col("mu.1")) + stats.norm(1, 1).logpdf(col("mu.2"))
        prior += np.log(60 * col("theta.2") * col("theta.3") ** 2) - np.log(2) + stats.norm(-0.5, 0.2).logpdf(col("e.1")) + stats.norm(1,
                0.2).logpdf(col("e.2"))
        prior += [stats.invwishart(6, [[1, 0.2], [0.2, 2]]).logpdf(s) for s in array(plain, "S")] - 0.5 * (col("alpha") - DATA["one"]) ** 2
        worst = np.max(np.abs(total + prior - col("lp__")) / (1 + np.abs(col("lp__"))))
        check(worst < 1e-9, "log-likelihoods and log prior add up to lp__: relative difference %.1g < 1e-9" % worst)
        # Missing values: NaN there, and of vectors with one; what depends on them is taken at the values drawn.
        holes = {n: np.array(DATA[n], dtype=object) for n in ("a", "c", "series", "V", "m")}
        holes["a"][[1, 4]] = holes["c"][0] = holes["series"][5] = holes["m"][3] = holes["V"][2, 1] = None
        holes = {**DATA, **{n: v.tolist() for n, v in holes.items()}}
        d, said = run("all", holes, "--log-lik", "--predict", "--params", "all")
        compare("missing", d, holes)
        check("log_lik_a is NaN where a is missing (2 values)" in said, "missing values: said")
        # Without the options there is nothing, with --params they are kept all the same.
        d, _ = run("all", DATA)
        check(not any(n.startswith("log_lik") or re.match(r"\w+_rep\b", n) and not n.startswith("y_rep") for n in d),
              "nothing of it unless it is asked for")
        d, _ = run("all", DATA, "--log-lik", "--params", "alpha")
        check(set(n.split(".")[0] for n in d) >= {"lp__", "alpha", "log_lik_a", "log_lik_one"} and "sigma" not in d,
              "--params chooses among the others")
        d, said = run("all", DATA, "--params", "alpha,log_lik_a")
        check(d is None and "log_lik_a is there with --log-lik only" in said, "--params names the option that a log-likelihood needs")
        named = ("data { int N; vector[N] y; }\nprior { m ~ normal(0, 1); y_rep ~ normal(m, 1); log_lik_y ~ normal(m, 1); }\nlikelihood { "
                 "y ~ normal(m, 1); }\n")
        d, said = run("named", dict(N=2, y=[0.5, 1]), "--log-lik", "--predict", model=named)
        check("y_rep_2.1" in d and "log_lik_y_2.2" in d and "y_rep_2, since the model has a y_rep of its own" in said,
              "names that the model has: another one, said")
        d, said = run("none", dict(y=0.5), "--predict",
                      model="data { real y; }\nprior { m ~ normal(0, 1); }\nlikelihood { target += -square(m - y); }\n")
        check(d is None and "no data of the model have a distribution of which there are replicates" in said, "nothing to predict: refused")
        # ArviZ reads it, and loo is what the definition says where the weights are flat.
        folder = os.path.join(program.ROOT, "examples", "poisson_gamma")
        with open(os.path.join(folder, "pumps.json")) as f:
            pumps = json.load(f)
        d, _ = run("pumps", pumps, "--log-lik", "--predict", model=open(os.path.join(folder, "poisson_gamma.gm")).read())
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            read = arviz.from_cmdstan([w.path("pumps_draws_%d.csv" % k) for k in (1, 2)], log_likelihood={"x": "log_lik_x"},
                                      posterior_predictive="x_rep")
            waic, loo = arviz.waic(read), arviz.loo(read)
        each = array(d, "log_lik_x")
        by_hand = np.sum(special.logsumexp(each, axis=0) - np.log(len(each)) - each.var(axis=0))
        check(read.log_likelihood["x"].shape == (2, 400, 10) and read.posterior_predictive["x_rep"].shape == (2, 400, 10),
              "ArviZ: log_likelihood and posterior_predictive have the shape of x")
        check(abs(waic.elpd_waic - by_hand) < 1e-6 * abs(by_hand) and loo.n_data_points == 10 and np.isfinite(loo.elpd_loo),
              "ArviZ: waic %.6g, known %.6g; loo of 10 points" % (waic.elpd_waic, by_hand))
    program.report(rows)


if __name__ == "__main__":
    sys.exit(main())
