"""The log prior, term by term: as a sum, against SciPy, in ArviZ, and as weights under another prior.

    priors.py GMC FOLDER"""
import glob
import json
import os
import sys
import warnings
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from scipy import stats

warnings.simplefilter("ignore")
import arviz as az  # noqa: E402
from programs import by_chain, check, compiled, ending, failures, program, read, run, write  # noqa: E402

gmc, work = sys.argv[1:3]
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
os.chdir(work)
for old in filter(os.path.isfile, glob.glob("*")): os.remove(old)

# ---- the sum ----

MODELS = ["examples/" + n for n in "ar1_missing galaxies hierarchical_normal occupancy poisson_gamma topics".split()] + [
    "tests/posteriors/" + n for n in """
    absent_auxiliary absent_element_of_choice angle_support band_elements_looked_up bound_in_loop bound_of_data capture_recapture
    censored censored_marginal chain_two_coupled choice_of_effects collapsed_weights compile_100_coefficients corner_constraint
    diagonal_drawn dirichlet_plates_share domain_missing_y ends_cholesky_correlation ends_ordered_probit ends_sticks
    field_intrinsic holes_rows index_named_lp innovations_by_zero latent_two_supports marginal_chain matrix_of_unknowns_precision
    missing_group_vague""".split()]


def add_up(folder):
    """Whether the terms make lprior, and lprior and the log-likelihoods lp__, which without augmentations is that of the model."""
    model, name = glob.glob(os.path.join(ROOT, folder, "*.gm"))[0], os.path.basename(folder)
    data = [f for f in glob.glob(os.path.join(ROOT, folder, "*.json")) + glob.glob(os.path.join(ROOT, folder, "*.csv"))
            if not f.endswith("expect.json")][:1]
    program("of_" + name, read(model), "--no-augment")
    status, said = ending("./of_" + name, *data, "--log-prior", "-q", "--no-summary", "--chains", "1", "--warmup", "30", "--samples", "5",
                          "--seed", "1", "-o", "sum_" + name)
    if status: return name, False, said
    d = by_chain("sum_" + name)
    terms = np.sum([d[c] for c in d if c.startswith("lprior_")], 0)
    seen = [d[c] for c in d if c.startswith("log_lik_")]
    scale = 1 + np.abs(d["lprior"]) + np.nansum(np.abs(seen), 0)
    worst = [np.max(np.abs(x) / scale) for x in (terms - d["lprior"], d["lprior"] + np.nansum(seen, 0) - d["lp__"])]
    os.remove("of_" + name)
    return name, max(worst) < 1e-12, worst


with ThreadPoolExecutor(2) as pool:
    for name, good, seen in pool.map(add_up, MODELS): check(good, "%s: the sum of all terms" % name, seen)

# ---- each term ----


def fit(of, data, name, *more):
    write(name + ".json", json.dumps(data))
    run(of, name + ".json", "--log-prior", "-q", "--no-summary", "--overwrite", "--chains", "2", "--warmup", "100", "--seed", "2",
        "-o", name, "--params", "all", "--format", "both", *more)
    return by_chain(name), az.from_netcdf(name + ".nc")


def compare(what, tree, expected):
    """Each term of the file is what SciPy says, and there is no other."""
    check(sorted(tree.log_prior.data_vars) == sorted(expected), what + ": names", list(tree.log_prior.data_vars))
    for name, e in expected.items():
        worst = np.max(np.abs(tree.log_prior[name].values - e) / (1 + np.abs(e)))
        check(worst < 1e-10, "%s: the term of %s" % (what, name), worst)


random = np.random.default_rng(1)
hierarchical = program("hierarchical", """
data { int N, J; int<lower=1, upper=J> g[N]; vector[N] y; }
prior { mu ~ normal(0, 10); tau ~ half_cauchy(0, 5); s ~ half_normal(0, 5); for (j in 1:J) a[j] ~ normal(mu, tau); }
likelihood { for (i in 1:N) y[i] ~ normal(a[g[i]], s); }
""")
y = random.normal(0, 1, 12).tolist()
y[4] = y[7] = None
d, t = fit(hierarchical, {"J": 4, "g": [1 + i % 4 for i in range(12)], "y": y}, "hierarchical", "--samples", "50")
p = t.posterior
at = {i: p.a.values[..., i % 4] for i in (4, 7)}
compare("hierarchical", t, {
    "mu": stats.norm(0, 10).logpdf(p.mu), "tau": stats.halfcauchy(0, 5).logpdf(p.tau), "s": stats.halfnorm(0, 5).logpdf(p.s),
    "a": stats.norm(p.mu.values[..., None], p.tau.values[..., None]).logpdf(p.a).sum(-1),
    "y": sum(stats.norm(at[i], p.s).logpdf(d["y.%d" % (i + 1)]) for i in (4, 7))})
check(np.isnan(d["log_lik_y.5"]).all() and np.array_equal(d["lprior"], t.sample_stats.lprior.values), "missing values; the total")
check(all(np.array_equal(d["lprior_" + v], t.log_prior[v].values) for v in t.log_prior.data_vars), "both formats are the same")

mixture = program("mixture", """
data { int N; vector[N] y; vector[2] alpha; }
prior { simplex[2] w ~ dirichlet(alpha); m[1] ~ normal(-2, 1); m[2] ~ normal(2, 1); s ~ gamma(2, 2);
        for (i in 1:N) c[i] ~ categorical(w); }
likelihood { for (i in 1:N) y[i] ~ normal(m[c[i]], s); }
""")
d, t = fit(mixture, {"y": random.normal(0, 2, 9).tolist(), "alpha": [2, 3]}, "mixture", "--samples", "50")
p = t.posterior
compare("mixture", t, {
    "w": np.log(12) + np.log(p.w.values[..., 0]) + 2 * np.log(p.w.values[..., 1]),
    "m": stats.norm(-2, 1).logpdf(p.m.values[..., 0]) + stats.norm(2, 1).logpdf(p.m.values[..., 1]),
    "s": stats.gamma(2, scale=0.5).logpdf(p.s),
    "c": sum(np.log(np.where(p.c.values[..., i] == 1, p.w.values[..., 0], p.w.values[..., 1])) for i in range(9))})

covariance = program("covariance", """
data { int N; vector[2] y[N]; }
prior { vector[2] m ~ multi_normal(rep_vector(0, 2), diag_matrix(rep_vector(4, 2)));
        cov_matrix[2] S ~ inv_wishart(5, diag_matrix(rep_vector(1, 2))); }
likelihood { for (i in 1:N) y[i] ~ multi_normal(m, S); }
""")
d, t = fit(covariance, {"y": random.normal(0, 1, (8, 2)).tolist()}, "covariance", "--samples", "20")
p = t.posterior
S = p.S.values.reshape(-1, 2, 2)
compare("covariance", t, {"m": stats.norm(0, 2).logpdf(p.m).sum(-1),
                          "S": np.array([stats.invwishart(5, np.eye(2)).logpdf(x) for x in S]).reshape(2, -1)})

truncated = program("truncated", """
data { int N; vector[N] y; }
prior { m ~ normal(0, 1) T[0.5, 3]; s ~ half_normal(0, 1); r ~ normal(m, 1); q ~ normal(0, 1); target += -r^2 / 8; r - q ~ normal(0, 2); }
likelihood { for (i in 1:N) y[i] ~ normal(m + r + q, s); }
""")
d, t = fit(truncated, {"y": random.normal(1, 1, 5).tolist()}, "truncated", "--samples", "50")
p = t.posterior
compare("truncated", t, {
    "m": stats.truncnorm(0.5, 3).logpdf(p.m), "s": stats.halfnorm(0, 1).logpdf(p.s), "r": stats.norm(p.m, 1).logpdf(p.r),
    "q": stats.norm(0, 1).logpdf(p.q), "other": -p.r.values**2 / 8 + stats.norm(0, 2).logpdf(p.r.values - p.q.values)})

probit = program("probit", """
data { int N; vector[N] x; int<lower=0, upper=1> z[N]; }
prior { a ~ normal(0, 2); b ~ normal(0, 1); }
likelihood { for (i in 1:N) z[i] ~ bernoulli(Phi(a + b * x[i])); }
""")
d, t = fit(probit, {"x": [-1, 0, 1, 2, 3], "z": [0, 0, 1, 0, 1]}, "probit", "--samples", "50")
p = t.posterior
compare("augmented probit", t, {"a": stats.norm(0, 2).logpdf(p.a), "b": stats.norm(0, 1).logpdf(p.b)})

# Statements about unknowns alone, of arrays whose length is data: the length is no datum about anything.
lengths = program("lengths", """
data { int N, K; int<lower=0> k[K]; vector[N] y; }
prior { s ~ half_normal(0, 1); vector[N] v ~ normal(0, 2); sum(v) ~ normal(0, 0.5 * N); mean(v) ~ normal(1, 1); target += -(N - 1) * log(s);
        for (j in 2:K) target += -v[j]^2 / K; }
likelihood { y ~ normal(v, s); k ~ poisson(exp(v[1])); }
""")
d, t = fit(lengths, {"y": random.normal(1, 1, 6).tolist(), "k": [1, 0, 2]}, "lengths", "--samples", "50")
p = t.posterior
v, s = p.v.values, p.s.values
compare("lengths", t, {
    "s": stats.halfnorm(0, 1).logpdf(s), "v": stats.norm(0, 2).logpdf(v).sum(-1),
    "other": stats.norm(0, 3).logpdf(v.sum(-1)) + stats.norm(1, 1).logpdf(v.mean(-1)) - 5 * np.log(s) - (v[..., 1:3]**2).sum(-1) / 3})

# The centred form of a model that is written non-centred; names that the model has already.
centred = program("centred", """
data { int N; vector[N] y; }
prior { mu ~ normal(0, 1); tau ~ half_normal(0, 1); other ~ normal(0, 1); lprior_mu ~ normal(0, 3); for (i in 1:N) z[i] ~ normal(0, 1);
        for (i in 1:N) theta[i] = mu + tau * z[i]; target += -other^2; }
likelihood { for (i in 1:N) y[i] ~ normal(theta[i] + other + lprior_mu, 1); }
""")
d, t = fit(centred, {"y": random.normal(1, 1, 5).tolist()}, "centred", "--samples", "50")
p = t.posterior
z = (p.theta.values - p.mu.values[..., None]) / p.tau.values[..., None]
compare("centred", t, {
    "mu": stats.norm(0, 1).logpdf(p.mu), "tau": stats.halfnorm(0, 1).logpdf(p.tau), "other": stats.norm(0, 1).logpdf(p.other),
    "lprior_mu": stats.norm(0, 3).logpdf(p.lprior_mu), "z": stats.norm(0, 1).logpdf(z).sum(-1), "other_2": -p.other.values**2})
check(np.array_equal(d["lprior_mu_2"], t.log_prior.mu.values), "a model with an lprior_mu of its own")

# ---- what cannot be ----

for what, model, words in (
        ("target += of data", "data { real y; }\nprior { m ~ normal(0, 1); }\nlikelihood { target += -(y - m)^2; y ~ normal(m, 1); }\n",
         "it is not known what is prior: the term of refused.gm:3 reads data `y` and does not name the values whose density it is"),
        # sums of data are data, and so is what a definition makes of them; of the two statements both are refused
        *(("a sum of unknowns that are multiplied by data: " + line,
           "data { int N; vector[N] x; real y; }\nprior { vector[N] v ~ normal(0, 1); z = x - mean(x); %s }\n"
           "likelihood { y ~ normal(v[1], 1); }\n" % line, "the term of refused.gm:2 reads data `x`")
          for line in ("sum(x) * v[1] ~ normal(0, 1);", "x[1] * v[1] - v[2] ~ normal(0, 1);", "target += -(z[1] - v[1])^2;")),
        # likelihood in disguise, by a condition or a subscript
        ("a condition", "data { int<lower=0, upper=1> k; real y; }\nprior { p ~ beta(2, 2); if (k == 1) target += log(p); }\n"
         "likelihood { y ~ normal(p, 1); }\n", "reads data `k`"),
        ("a subscript", "data { int<lower=1, upper=2> k; real y; }\nprior { simplex[2] p ~ dirichlet([2, 2]); target += log(p[k]); }\n"
         "likelihood { y ~ normal(p[1], 1); }\n", "reads data `k`"),
        ("an lprior of its own", "data { real y; }\nprior { lprior ~ normal(0, 1); }\nlikelihood { y ~ normal(lprior, 1); }\n",
         "an lprior of its own")):
    of = program("refused", model)
    status, said = ending(of, write("refused.json", '{"y": 1, "x": [1, 2], "k": 1}'), "--log-prior", "-q", "-o", "refused")
    check(status == 2 and words in said and not glob.glob("refused_*.csv"), what + " is refused", status, said)

# ---- ArviZ, and another prior ----

# mu ~ normal(m0, s0), y[i] ~ normal(mu, 1): with the density of mu to the power a, mu is normal again, with precision a/s0^2 + n.
conjugate = program("conjugate", """
data { int N; vector[N] y; }
prior { mu ~ normal(1, 0.5); nu ~ normal(0, 1); }
likelihood { for (i in 1:N) y[i] ~ normal(mu, 1); }
""")
y = [2.1, 1.4, 2.6, 1.9]
d, t = fit(conjugate, {"y": y}, "conjugate", "--samples", "20000")
for of in (None, ["mu"], ["nu"]):
    s = az.psens(t, component="prior", component_var_names=of) if of else az.psens(t, component="prior")
    check(np.isfinite(float(s.mu)) and (float(s.mu) > 0.05) == (of != ["nu"]), "az.psens of %s" % (of or "all"), s)
for a in (0.8, 1.25):
    w, mu = np.exp((a - 1) * d["lprior_mu"].ravel()), d["mu"].ravel()
    exact = (a * 1 / 0.25 + sum(y)) / (a / 0.25 + len(y))
    mean = np.sum(w * mu) / np.sum(w)
    error = np.sqrt(np.sum(w**2 * (mu - mean)**2)) / np.sum(w)  # draws are independent: mu has a Gibbs update of its own
    check(abs(mean - exact) < 5 * error, "prior to the power %g: |z| < 5 rings falsely 6 times in 10^7" % a, (mean - exact) / error)
    shifted = np.mean(mu)
    check(abs(shifted - exact) > 5 * error, "prior to the power %g is another posterior" % a, (shifted - exact) / error)

# ---- runs that go on, and draws that are read again ----

common = ["conjugate.json", "--log-prior", "-q", "--no-summary", "--chains", "2", "--warmup", "50", "--seed", "3"]
run(conjugate, *common, "--samples", "200", "-o", "whole")
run(conjugate, *common, "--samples", "100", "-o", "begun", "--checkpoint=0")
run(conjugate, *common, "--append", "100", "-o", "begun")
whole, begun = by_chain("whole"), by_chain("begun")
check(all(np.array_equal(whole[c], begun[c]) for c in whole) and "lprior_nu" in whole, "--append with --log-prior")
write("new.json", '{"y": [0.5, 1.5]}')
run(conjugate, "predict", "whole", "--new", "new.json", "-o", "predicted", "-q")
run(conjugate, "report", "whole", "-o", "report.html")
said = run(gmc, "summary", "whole").stdout
check("lprior_mu" not in read("report.html") and "lprior_mu" not in said and "lprior" in said, "terms are in no table", said)

sys.exit(failures() > 0)
