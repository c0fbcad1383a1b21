"""The NetCDF file of a run beside its CSV files, as ArviZ reads both.

    netcdf.py GMC FOLDER"""
import glob
import os
import random
import signal
import subprocess
import sys
import warnings

import numpy as np

warnings.simplefilter("ignore")
import arviz as az  # noqa: E402

gmc, work = sys.argv[1:3]
os.chdir(work)
for old in filter(os.path.isfile, glob.glob("*")):  # draws of an earlier run are not replaced
    os.remove(old)
RADON = """model radon
data { int N, J; int<lower=1, upper=J> county[N]; vector[N] x; vector[N] y; int<lower=0> k[N]; }
prior { mu ~ normal(0, 10); vector[2] b ~ normal(0, 10); tau ~ half_normal(0, 5); s ~ half_normal(0, 5);
        for (j in 1:J) a[j] ~ normal(mu, tau); for (j in 1:J, l in 1:3) w[j, l] ~ normal(0, 1); r ~ gamma(1, 1); }
likelihood { for (i in 1:N) y[i] ~ normal(a[county[i]] + b[1] * x[i], s); for (i in 1:N) k[i] ~ poisson(r); }
predict { int c = a[1] > a[2]; }
"""
FUNNEL = "prior { v ~ normal(0, 3); for (i in 1:9) x[i] ~ normal(0, exp(v / 2)); }\n"
failed = 0


def check(good, what, *more):
    global failed
    failed += not good
    print("%-7s" % ("ok" if good else "FAILED"), what, *(more if not good else ()))


def program(name, text, *flags):
    with open(name + ".gm", "w") as f: f.write(text)
    subprocess.run([gmc, "-q", "--no-device", *flags, name + ".gm", "-o", name], check=True)
    return "./" + name


def fit(of, *arguments, env=None):
    command = [of, "--seed", "1", "-q", "--no-summary", "--overwrite", *arguments]
    return subprocess.run(command, stderr=subprocess.PIPE, env=env and {**os.environ, **env})


def columns(name):
    """Column -> [chain][draw], of the files of draws."""
    chains = []
    for path in sorted(glob.glob(name + "_?.csv")):
        lines = [line.strip().split(",") for line in open(path) if line[0] != "#"]
        chains.append((lines[0], np.array(lines[1:], float)))
    return {label: np.array([rows[:, k] for _, rows in chains]) for k, label in enumerate(chains[0][0])}


def of_array(table, name, shape):
    """[chain][draw][...] of an array's columns."""
    return np.stack([table[".".join([name, *(str(i + 1) for i in at)])] for at in np.ndindex(*shape)], -1).reshape(
        *next(iter(table.values())).shape, *shape)


random.seed(2)
NAMES = ["Anoka", "Aitkin", "Ödön", "Yellow Medicine"]
rows = [(NAMES[i % 4], random.gauss(0, 1), random.gauss(0, 1), random.randrange(5)) for i in range(40)]
with open("names.csv", "w") as f:
    f.write("county,x,y,k\n" + "".join("%s,%r,%s,%d\n" % (c, x, "NA" if i in (3, 17) else repr(y), k)
                                       for i, (c, x, y, k) in enumerate(rows)))
radon = program("radon", RADON)
done = fit(radon, "names.csv", "-o", "draws", "--format", "both", "--log-lik", "--predict", "--params", "all", "--samples", "300")
check(done.returncode == 0, "both formats", done)
table, tree = columns("draws"), az.from_netcdf("draws.nc")
check(sorted(tree.groups()) == ["constant_data", "log_likelihood", "observed_data", "posterior", "posterior_predictive", "sample_stats"],
      "groups", tree.groups())
p = tree.posterior
check(list(p.J.values) == sorted(NAMES) and p.a.dims == ("chain", "draw", "J") and p.w.dims == ("chain", "draw", "J", "w_dim_1"),
      "dimensions", p)
check(p.b.dims[2] == "b_dim_0" and list(p.b_dim_0.values) == [1, 2] and list(p.chain.values) == [1, 2, 3, 4], "dimensions without names")
for name in ("mu", "tau", "s", "r", "c"): check(np.array_equal(p[name].values, table[name]), name)
for name, shape in (("a", (4,)), ("b", (2,)), ("w", (4, 3))): check(np.array_equal(p[name].values, of_array(table, name, shape)), name)
check(p.c.dtype == np.int32 and p.mu.dtype == np.float64, "types")
check(list(p.y_missing.values) == [4, 18] and np.array_equal(p.y.values, np.stack([table["y.4"], table["y.18"]], -1)), "missing values")
check(np.array_equal(tree.sample_stats.lp.values, table["lp__"]), "lp")

# Predictions later, from these draws, of which some are of missing values.
with open("later.csv", "w") as f: f.write("county,x,y,k\nAitkin,0.5,1.5,2\nÖdön,-1,NA,0\nZürich,0,1,1\n")
said = subprocess.run([radon, "predict", "draws", "--new", "later.csv", "--new-levels", "draw", "-o", "later", "--format", "both", "-q",
                       "--overwrite"], stdout=subprocess.PIPE)
later, told = columns("later"), az.from_netcdf("later.nc")
check(said.returncode == 0 and sorted(told.groups()) == ["predictions", "predictions_constant_data", "predictions_log_density"], "groups",
      told.groups())
check(np.array_equal(told.predictions.y.values, of_array(later, "y_rep", (3,))) and told.predictions.k.dtype == np.int32, "predictions")
density = of_array(later, "log_lik_y", (3,))
check(np.array_equal(told.predictions_log_density.y.values, density, equal_nan=True) and np.isnan(density[:, :, 1]).all() and
      np.isfinite(density[:, :, [0, 2]]).all(), "densities of what is not missing")
for group, pattern in (("log_likelihood", "log_lik_%s"), ("posterior_predictive", "%s_rep")):
    for name in ("y", "k"):
        mine = tree[group][name]
        check(mine.dims == ("chain", "draw", "N") and np.array_equal(mine.values, of_array(table, pattern % name, (40,)), equal_nan=True),
              group, name)
y = tree.observed_data.y.values
check(np.isnan(y[[3, 17]]).all() and all(y[i] == rows[i][2] for i in range(40) if i not in (3, 17)), "observed data", y)
check(list(tree.observed_data.k.values) == [r[3] for r in rows] and tree.observed_data.k.dtype == np.int32, "observed counts")
codes = [1 + sorted(NAMES).index(r[0]) for r in rows]
check(list(tree.constant_data.county.values) == codes and list(tree.constant_data.x) == [r[1] for r in rows], "other data")
for what in ("created_at", "inference_library", "inference_library_version"): check(p.attrs.get(what), "attribute", what)
check(p.attrs["seed"] == "1" and p.attrs["tuning_steps"] == 1000, "settings", p.attrs)

# What ArviZ makes of both.
csv = az.from_cmdstan(sorted(glob.glob("draws_?.csv")), log_likelihood={"k": "log_lik_k"})
mine, theirs = (az.summary(t, var_names=["mu", "tau", "a", "w", "r"], round_to="none").values for t in (tree, csv))
check(np.array_equal(mine, theirs), "az.summary is the same")
mine, theirs = (az.loo(t, var_name="k", reff=0.9) for t in (tree, csv))   # else of all unknowns
check(mine.elpd_loo == theirs.elpd_loo and mine.p_loo == theirs.p_loo, "az.loo is the same", mine, theirs)
size = sum(os.path.getsize(f) for f in glob.glob("draws_?.csv"))
check(os.path.getsize("draws.nc") <= 0.45 * size, "size", os.path.getsize("draws.nc") / size)

# The log density of the unknowns.
fit(radon, "names.csv", "-o", "prior", "--format", "both", "--log-prior", "--samples", "100")
tree, table = az.from_netcdf("prior.nc"), columns("prior")
check(np.array_equal(tree.log_prior.lprior.values, table["lprior"]) and "lprior" not in tree.posterior, "group log_prior")
likelihood = sum(np.nansum(tree.log_likelihood[v].values, -1) for v in ("y", "k"))
check(np.allclose(tree.log_prior.lprior.values + likelihood, tree.sample_stats.lp.values, rtol=0, atol=1e-10),
      "lprior and log_lik make lp__")


def normal(x, m, s): return -0.5 * ((x - m) / s)**2 - np.log(s) - 0.5 * np.log(2 * np.pi)


whole = program("whole", RADON.replace("predict { int c = a[1] > a[2]; }", ""))
with open("whole.csv", "w") as f: f.write(open("names.csv").read().replace("NA", "0.5"))
fit(whole, "whole.csv", "-o", "whole.nc", "--log-prior", "--samples", "50", "--chains", "2")
tree = az.from_netcdf("whole.nc")
q = {v: tree.posterior[v].values for v in tree.posterior.data_vars}
by_hand = (normal(q["mu"], 0, 10) + normal(q["b"], 0, 10).sum(-1) + normal(q["tau"], 0, 5) + normal(q["s"], 0, 5) + 2 * np.log(2) +
           normal(q["a"], q["mu"][..., None], q["tau"][..., None]).sum(-1) + normal(q["w"], 0, 1).sum((-1, -2)) - q["r"])
check(np.allclose(tree.log_prior.lprior.values, by_hand, rtol=0, atol=1e-9), "lprior is the density by hand",
      np.max(np.abs(tree.log_prior.lprior.values - by_hand)))
probit = program("probit", "data { int N; int<lower=0, upper=1> z[N]; }\nprior { m ~ normal(0, 1); }\n"
                 "likelihood { for (i in 1:N) z[i] ~ bernoulli(Phi(m)); }\n")
with open("z.csv", "w") as f: f.write("z\n1\n0\n1\n")
said = fit(probit, "z.csv", "-o", "none", "--log-prior")
check(said.returncode == 2 and b"an augmentation brought in" in said.stderr, "augmentations are refused", said)

# Fewer digits.
for digits, type in ((6, np.float32), (10, np.float64)):
    fit(radon, "names.csv", "-o", "few.nc", "--digits", str(digits), "--params", "all", "--samples", "300", "--log-lik", "--predict")
    few = az.from_netcdf("few.nc")
    worst = max(float(np.max(np.abs(few.posterior[v].values / p[v].values - 1))) for v in ("a", "w", "s"))
    check(few.posterior.a.dtype == type and 0 < worst <= 10.0**-digits, "%d digits" % digits, few.posterior.a.dtype, worst)
    check(os.path.getsize("few.nc") < 0.75 * os.path.getsize("draws.nc"), "are shorter", os.path.getsize("few.nc"))
    check(not glob.glob("few_?.csv"), "-o NAME.nc writes no tables")

# NUTS.
funnel = program("funnel", FUNNEL, "--method", "nuts")
fit(funnel, "-o", "nuts", "--format", "both", "--samples", "200", "--chains", "2", "--first-chain", "3")
stats, table = az.from_netcdf("nuts.nc").sample_stats, columns("nuts")
for name, column in (("lp", "lp"), ("acceptance_rate", "accept_stat"), ("step_size", "stepsize"), ("tree_depth", "treedepth"),
                     ("n_steps", "n_leapfrog"), ("diverging", "divergent"), ("energy", "energy")):
    check(np.array_equal(stats[name].values, table[column + "__"]), "sample_stats", name)
check(stats.diverging.dtype == bool and list(stats.chain.values) == [3, 4], "types of NUTS, and chains", stats)

# A square matrix: each of its dimensions has a name of its own, as readers want it.
square = program("square", "data { int K; cov_matrix[K] V; }\nprior { S ~ inv_wishart(K + 4, V); }\n")
with open("square.json", "w") as f: f.write('{"K": 3, "V": [[1, 0.2, 0], [0.2, 1, 0], [0, 0, 2]]}')
fit(square, "square.json", "-o", "square.nc", "--samples", "100")
dims = az.from_netcdf("square.nc").posterior.S.dims
check(dims == ("chain", "draw", "K", "S_dim_1") and len(az.summary(az.from_netcdf("square.nc"))) == 9, "a square matrix", dims)

# A run that ends early, one that is killed, and what is refused.
long = ["--seed", "1", "--no-summary", "--samples", "200000", "--thin", "100", "--warmup", "10", "--chains", "2", "--refresh", "1000"]
for how, name in ((signal.SIGINT, "ended"), (signal.SIGKILL, "killed")):
    with subprocess.Popen([funnel, *long, "-o", name + ".nc"], stderr=subprocess.PIPE) as run:
        for line in run.stderr:
            if b"sweep 1000" in line: break
        run.send_signal(how)
        run.stderr.read()
    left = glob.glob(name + "*")
    if how == signal.SIGKILL: check(not left, "a run that is killed leaves no file", left)
    else: check(sorted(left) == ["ended.nc", "ended_run.json"] and az.from_netcdf("ended.nc").posterior.sizes["draw"] > 0,
                "an interrupted run has its draws", left)
said = fit(funnel, "-o", "none.nc", env={"GM_NETCDF": "/nowhere/libnetcdf.so"})
check(said.returncode == 2 and b"apt-get install libnetcdf19" in said.stderr and said.stderr.count(b"\n") == 1, "without the library", said)
said = fit(program("named", "prior { draw ~ normal(0, 1); }\n"), "-o", "none.nc")
check(said.returncode == 2 and b"`draw` is the name of a dimension" in said.stderr, "an unknown called draw", said)
said = fit(funnel, "-o", "none.nc", "--format", "csv")
check(said.returncode == 2 and not glob.glob("none*"), "another format than the name has", said)
sys.exit(failed > 0)
