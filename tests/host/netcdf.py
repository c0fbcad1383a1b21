"""The NetCDF file of a run beside its CSV files, as ArviZ reads both.

    netcdf.py GMC FOLDER"""
import glob
import importlib.util
import os
import random
import signal
import subprocess
import sys
import time
import warnings

import numpy as np

warnings.simplefilter("ignore")
import arviz as az  # noqa: E402
import xarray  # noqa: E402
from programs import by_chain, check, failures, program, sizes_once  # noqa: E402

sizes_once()
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


def fit(of, *arguments, env=None):
    command = [of, "--seed", "1", "-q", "--no-summary", "--overwrite", *arguments]
    return subprocess.run(command, stderr=subprocess.PIPE, env=env and {**os.environ, **env})


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
table, tree = by_chain("draws"), az.from_netcdf("draws.nc")
check(sorted(tree.groups()) == ["constant_data", "log_likelihood", "observed_data", "posterior", "posterior_predictive", "sample_stats"],
      "groups", tree.groups())
zarr = xarray.open_datatree("draws.nc", engine="h5netcdf")
if importlib.util.find_spec("zarr"):  # the store of docs/fit.md; without the package zarr, the file as it would be read for one
    zarr.to_zarr("draws.zarr", mode="w")
    zarr = xarray.open_datatree("draws.zarr", engine="zarr")
zarr = az.InferenceData.from_datatree(zarr)
check(sorted(zarr.groups()) == sorted(tree.groups()) and all(zarr[g].equals(tree[g]) for g in tree.groups()), "Zarr", zarr.groups())
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
later, told = by_chain("later"), az.from_netcdf("later.nc")
check(said.returncode == 0 and sorted(told.groups()) == ["predictions", "predictions_constant_data", "predictions_log_density"], "groups",
      told.groups())
check(np.array_equal(told.predictions.y.values, of_array(later, "y_rep", (3,))) and told.predictions.k.dtype == np.int32, "predictions")
density = of_array(later, "log_lik_y", (3,))
check(np.array_equal(told.predictions_log_density.y.values, density[:, :, [0, 2]]) and np.isnan(density[:, :, 1]).all() and
      np.isfinite(density[:, :, [0, 2]]).all(), "densities of what is not missing")
for group, pattern in (("log_likelihood", "log_lik_%s"), ("posterior_predictive", "%s_rep")):
    for name in ("y", "k"):
        mine, wanted = tree[group][name], of_array(table, pattern % name, (40,))
        if (group, name) == ("log_likelihood", "y"):   # missing values have none, and loo wants numbers
            seen = [i for i in range(40) if i not in (3, 17)]
            check(mine.dims == ("chain", "draw", "y_observed") and list(mine.y_observed.values) == [i + 1 for i in seen] and np.array_equal(
                mine.values, wanted[..., seen]), "log-likelihoods of what is observed", mine.dims)
        else: check(mine.dims == ("chain", "draw", "N") and np.array_equal(mine.values, wanted, equal_nan=True), group, name)
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
loo = az.loo(tree, var_name="y")
check(np.isfinite(loo.elpd_loo) and loo.n_data_points == 38, "az.loo of a response with missing values", loo)
mine, theirs = (az.loo(t, var_name="k", reff=0.9) for t in (tree, csv))   # else of all unknowns
check(mine.elpd_loo == theirs.elpd_loo and mine.p_loo == theirs.p_loo, "az.loo is the same", mine, theirs)
size = sum(os.path.getsize(f) for f in glob.glob("draws_?.csv"))
check(os.path.getsize("draws.nc") <= 0.45 * size, "size", os.path.getsize("draws.nc") / size)

# The log density of the unknowns.
fit(radon, "names.csv", "-o", "prior", "--format", "both", "--log-prior", "--samples", "100")
tree, table = az.from_netcdf("prior.nc"), by_chain("prior")
check(np.array_equal(tree.sample_stats.lprior.values, table["lprior"]) and "lprior" not in tree.posterior, "the log prior")
terms = ["mu", "b", "tau", "s", "a", "w", "r", "y"]  # two values of y are missing
check(sorted(tree.log_prior.data_vars) == sorted(terms) and
      all(np.array_equal(tree.log_prior[v].values, table["lprior_" + v]) for v in terms), "group log_prior", tree.log_prior)
check(np.allclose(sum(tree.log_prior[v].values for v in terms), table["lprior"], rtol=0, atol=1e-12), "its terms make the total")
likelihood = sum(np.nansum(tree.log_likelihood[v].values, -1) for v in ("y", "k"))
check(np.allclose(tree.sample_stats.lprior.values + likelihood, tree.sample_stats.lp.values, rtol=0, atol=1e-10),
      "lprior and log_lik make lp__")


# Sensitivity to the prior by ArviZ, of both forms of the draws: large where prior and data are at odds, small where they agree.
CONFLICT = "data { int N; vector[N] y; }\nprior { mu ~ normal(0, 1); }\nlikelihood { for (i in 1:N) y[i] ~ normal(mu, 1); }\n"
conflict = program("conflict", CONFLICT)
with open("far.json", "w") as f: f.write('{"y": [4.1, 3.7, 4.4]}')
with open("near.json", "w") as f: f.write('{"y": [0.1, -0.2, 0.0]}')
sensitive = {}
for name in ("far", "near"):
    fit(conflict, name + ".json", "-o", name, "--format", "both", "--log-prior", "--samples", "4000")
    tree, table = az.from_netcdf(name + ".nc"), by_chain(name)
    sensitive[name] = float(az.psens(tree, component="prior").mu)
    of_tables = az.from_dict(posterior={"mu": table["mu"]})
    of_tables.add_groups({"log_prior": {"lprior": table["lprior"]}})
    again = float(az.psens(of_tables, component="prior").mu)
    check(np.isclose(sensitive[name], again, rtol=1e-12), "az.psens of lprior in the tables", name)
check(sensitive["far"] > 0.15 > 0.05 > sensitive["near"], "az.psens sees the prior that is at odds with the data", sensitive)


def normal(x, m, s): return -0.5 * ((x - m) / s)**2 - np.log(s) - 0.5 * np.log(2 * np.pi)


whole = program("whole", RADON.replace("predict { int c = a[1] > a[2]; }", ""))
with open("whole.csv", "w") as f: f.write(open("names.csv").read().replace("NA", "0.5"))
fit(whole, "whole.csv", "-o", "whole.nc", "--log-prior", "--samples", "50", "--chains", "2")
tree = az.from_netcdf("whole.nc")
q = {v: tree.posterior[v].values for v in tree.posterior.data_vars}
by_hand = (normal(q["mu"], 0, 10) + normal(q["b"], 0, 10).sum(-1) + normal(q["tau"], 0, 5) + normal(q["s"], 0, 5) + 2 * np.log(2) +
           normal(q["a"], q["mu"][..., None], q["tau"][..., None]).sum(-1) + normal(q["w"], 0, 1).sum((-1, -2)) - q["r"])
check(np.allclose(tree.sample_stats.lprior.values, by_hand, rtol=0, atol=1e-9), "lprior is the density by hand",
      np.max(np.abs(tree.sample_stats.lprior.values - by_hand)))
probit = program("probit", "data { int N; int<lower=0, upper=1> z[N]; }\nprior { m ~ normal(0, 1); }\n"
                 "likelihood { for (i in 1:N) z[i] ~ bernoulli(Phi(m)); }\n")
with open("z.csv", "w") as f: f.write("z\n1\n0\n1\n")
fit(probit, "z.csv", "-o", "augmented.nc", "--log-prior", "--samples", "50")
tree = az.from_netcdf("augmented.nc")
check(list(tree.log_prior.data_vars) == ["m"] and np.allclose(tree.log_prior.m.values, normal(tree.posterior.m.values, 0, 1), rtol=1e-12),
      "auxiliaries have no prior", tree.log_prior)

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
stats, table = az.from_netcdf("nuts.nc").sample_stats, by_chain("nuts")
for name, column in (("lp", "lp"), ("acceptance_rate", "accept_stat"), ("step_size", "stepsize"), ("tree_depth", "treedepth"),
                     ("n_steps", "n_leapfrog"), ("diverging", "divergent"), ("energy", "energy")):
    check(np.array_equal(stats[name].values, table[column + "__"]), "sample_stats", name)
check(stats.diverging.dtype == bool and list(stats.chain.values) == [3, 4], "types of NUTS, and chains", stats)

# Sweeps of warm-up: groups of their own beside those of the draws, of as many blocks as there are.
for warmup, more in ((300, []), (2500, ["--thin", "2", "--log-lik", "--predict", "--log-prior"]), (2048, ["--threads", "1"])):
    fit(radon, "names.csv", "-o", "early", "--format", "both", "--save-warmup", "--warmup", str(warmup), "--samples", "40", *more)
    tree, table = az.from_netcdf("early.nc"), by_chain("early_warmup")
    early, many = tree.warmup_posterior, warmup // (2 if more[:1] == ["--thin"] else 1)
    check(dict(early.sizes) == {**tree.posterior.sizes, "draw": many} and list(early.draw.values) == list(range(1, many + 1)),
          "sweeps of warm-up", warmup, early.sizes)
    check(all(np.array_equal(early[v].values, table[v]) for v in ("mu", "tau", "s", "c")) and np.array_equal(
        early.w.values, of_array(table, "w", (4, 3))), "as in the tables")
    check(np.array_equal(tree.warmup_sample_stats.lp.values, table["lp__"]), "lp, too")
    check(np.array_equal(tree.posterior.mu.values, by_chain("early")["mu"]), "the draws are as without them")
    whole = az.summary(az.from_netcdf("draws.nc"), var_names=list(tree.posterior.data_vars))
    check(len(az.summary(tree)) == len(whole), "are in no summary")
    if "--log-lik" in more:
        check(np.array_equal(tree.warmup_log_likelihood.k.values, of_array(table, "log_lik_k", (40,))) and np.array_equal(
            tree.warmup_posterior_predictive.k.values, of_array(table, "k_rep", (40,))) and np.array_equal(
            tree.warmup_log_prior.mu.values, table["lprior_mu"]), "what is asked for besides is there, too")
told = [subprocess.run([gmc, "summary", "early.nc"] if k else [gmc, "summary", *sorted(glob.glob("early_?.csv"))],
                       stdout=subprocess.PIPE).stdout for k in range(2)]
check(told[0] == told[1] and b"mu" in told[0], "commands about stored draws pass them over")
fit(radon, "names.csv", "-o", "alone.nc", "--save-warmup", "--warmup", "50", "--samples", "20")
left = sorted(glob.glob("alone*"))
check(left == ["alone.nc", "alone_levels.json", "alone_run.json"], "NAME.nc alone writes no tables", left)
again = subprocess.run([radon, "names.csv", "-q", "-o", "alone.nc", "--save-warmup"], stderr=subprocess.PIPE)
check(again.returncode == 2 and again.stderr.count(b"\n") == 1, "nor does it look for them", again)
fit(funnel, "-o", "early", "--format", "both", "--save-warmup", "--samples", "40", "--warmup", "200")
stats, table = az.from_netcdf("early.nc").warmup_sample_stats, by_chain("early_warmup")
check(stats.diverging.dtype == bool and np.array_equal(stats.energy.values, table["energy__"]), "diagnostics of warm-up")
on = ["--format", "both", "--save-warmup", "--warmup", "1500", "-o", "gone"]
subprocess.run([radon, "names.csv", "--seed", "1", "-q", "--no-summary", "--samples", "10", *on, "--checkpoint"])
subprocess.run([radon, "names.csv", "-q", "--no-summary", *on, "--append", "10"])
tree = az.from_netcdf("gone.nc")
check(tree.posterior.sizes["draw"] == 20 and np.array_equal(tree.warmup_posterior.mu.values, by_chain("gone_warmup")["mu"]),
      "a run that goes on has its warm-up")


def ends_early(name, sign):
    """A run that gets a signal in warm-up: its process, when the file is there."""
    run = subprocess.Popen([radon, "names.csv", "--seed", "1", "-q", "--no-summary", "--warmup", "100000000", "--save-warmup", "-o", name,
                            "--overwrite"], stderr=subprocess.PIPE)
    while not os.path.exists(name + ".part"): time.sleep(0.05)
    run.send_signal(sign)
    run.communicate()
    return run


ends_early("cut.nc", signal.SIGINT)
check(set(az.from_netcdf("cut.nc").groups()) == {"warmup_posterior", "warmup_sample_stats"}, "one that is interrupted in it leaves it")
ends_early("lost.nc", signal.SIGKILL)
for _ in range(100):
    try: tree = az.from_netcdf("lost.nc.part", engine="h5netcdf")
    except (OSError, ValueError): time.sleep(0.05)
    else: break
whole = az.from_netcdf("cut.nc").warmup_posterior.mu.values
many = min(whole.shape[1], tree.warmup_posterior.sizes["draw"])
check(many > 0 and np.array_equal(tree.warmup_posterior.mu.values[:, :many], whole[:, :many]), "as does one that is killed", many)
said = subprocess.run([gmc, "summary", "cut.nc"], stderr=subprocess.PIPE)
check(said.returncode == 2 and said.stderr.count(b"\n") == 1, "which has no draws", said)

# A square matrix: each of its dimensions has a name of its own, as readers want it.
square = program("square", "data { int K; cov_matrix[K] V; }\nprior { S ~ inv_wishart(K + 4, V); }\n")
with open("square.json", "w") as f: f.write('{"K": 3, "V": [[1, 0.2, 0], [0.2, 1, 0], [0, 0, 2]]}')
fit(square, "square.json", "-o", "square.nc", "--samples", "100")
dims = az.from_netcdf("square.nc").posterior.S.dims
check(dims == ("chain", "draw", "K", "S_dim_1") and len(az.summary(az.from_netcdf("square.nc"))) == 9, "a square matrix", dims)

# Names of dimensions that unknowns or data have: the dimensions have others.
CLASH = """data { int N; vector[N] y; real y_observed; }
prior { vector[2] a ~ normal(0, 1); vector[2] a_dim_0 ~ normal(0, 1); y_missing ~ normal(0, 1); }
likelihood { for (i in 1:N) y[i] ~ normal(a[1] + a_dim_0[1], 1); }
"""
clash = program("clash", CLASH)
with open("clash.json", "w") as f: f.write('{"y": [1, null, 2], "y_observed": 3}')
done = fit(clash, "clash.json", "-o", "clash", "--format", "both", "--params", "all", "--log-lik", "--samples", "50")
tree, table = az.from_netcdf("clash.nc"), by_chain("clash")
p = tree.posterior
check(done.returncode == 0 and p.a.dims[2] == "a_dim_0_" and p.a_dim_0.dims[2] == "a_dim_0_dim_0" and p.y.dims[2] == "y_missing_"
      and np.array_equal(p.a_dim_0.values, of_array(table, "a_dim_0", (2,))) and np.array_equal(p.y_missing.values, table["y_missing"])
      and tree.log_likelihood.y.dims[2] == "y_observed_", "names that dimensions would have", done, p)
check(len(az.summary(tree)) == 6, "which ArviZ reads", az.summary(tree))

# A file in many blocks is that of the tables, whatever the options; it takes no more memory with more draws.
blocks = ["--seed", "1", "-q", "--no-summary", "--overwrite", "--chains", "3", "--warmup", "100"]
for samples, more in ((5000, []), (2049, ["--thin", "3"]), (1500, ["--threads", "1"]), (1024, ["--summary", "1"]), (7, [])):
    given = [a for a in blocks if a != "--no-summary" or "--summary" not in more]
    subprocess.run([radon, "names.csv", *given, "--samples", str(samples), *more, "-o", "blocks", "--format", "both"], check=True,
                   stdout=subprocess.DEVNULL)
    p, table = az.from_netcdf("blocks.nc").posterior, by_chain("blocks")
    check(p.sizes["draw"] == samples and list(p.draw.values) == list(range(1, samples + 1)) and all(
        np.array_equal(p[v].values, table[v]) for v in ("mu", "tau", "c")) and np.array_equal(p.w.values, of_array(table, "w", (4, 3))),
          "%d draws" % samples, *more)
    part = os.path.getsize("blocks.nc") / sum(os.path.getsize(f) for f in glob.glob("blocks_?.csv"))
    check(part <= 0.45 or samples < 100, "their size", part)


def memory(samples):
    import resource
    run = subprocess.Popen([radon, "names.csv", *blocks, "--samples", str(samples), "-o", "large.nc"])
    return os.wait4(run.pid, 0)[2].ru_maxrss / 1024


small, large = memory(3000), memory(60000)
check(large - small < 12, "60000 draws take no more memory than 3000: %.0f and %.0f MB" % (large, small))   # all of them are 32 MB
check(az.from_netcdf("large.nc").posterior.sizes["draw"] == 60000, "and are there")


def gone_on(name, first, *more):
    """MB of a run that goes on after so many draws, with a file that has those, too."""
    both = [radon, "names.csv", *[b for b in blocks if b != "--overwrite"], "--format", "both", "-o", name, *more]
    subprocess.run([*both, "--samples", str(first), "--checkpoint"], check=True)
    run = subprocess.Popen([*both, "--samples", str(first + 100), "--resume"])
    pid, status, used = os.wait4(run.pid, 0)
    file, table = az.from_netcdf(name + ".nc"), by_chain(name)
    check(status == 0 and all(np.array_equal(file.posterior[v].values, table[v]) for v in ("mu", "tau", "c")),
          "a run that goes on after %d draws has them all" % first, *more)
    if more:
        early = by_chain(name + "_warmup")
        check(all(np.array_equal(file.warmup_posterior[v].values, early[v]) for v in ("mu", "tau", "c")), "those of warm-up, too")
    return used.ru_maxrss / 1024


small, large = gone_on("on_small", 3000), gone_on("on_large", 60000)
check(large - small < 12, "to go on after 60000 draws takes no more memory than after 3000: %.0f and %.0f MB" % (large, small))
gone_on("on_early", 1500, "--save-warmup")

# A run that ends early, one that is killed, and what is refused.
long = ["--seed", "1", "--no-summary", "--samples", "200000", "--thin", "100", "--warmup", "10", "--chains", "2", "--refresh", "1000"]
with subprocess.Popen([funnel, *long, "-o", "ended.nc"], stderr=subprocess.PIPE) as run:
    for line in run.stderr:
        if b"sweep 1000" in line: break
    run.send_signal(signal.SIGINT)
    run.stderr.read()
left = glob.glob("ended*")
check(sorted(left) == ["ended.nc", "ended_run.json"] and az.from_netcdf("ended.nc").posterior.sizes["draw"] > 0,
      "an interrupted run has its draws", left)
whole = ["--seed", "1", "-q", "--no-summary", "--samples", "100000000", "--warmup", "50", "--chains", "2", "--overwrite"]
subprocess.run([funnel, *["20000" if a == "100000000" else a for a in whole], "-o", "never.nc"])
never, kills, lost = az.from_netcdf("never.nc").posterior, 0, 0
for n in range(20):
    began = time.time()
    run = subprocess.Popen([funnel, *whole, "-o", "killed.nc"], stderr=subprocess.PIPE)
    while not (os.path.exists("killed.nc.part") and os.path.getmtime("killed.nc.part") >= began): time.sleep(0.01)
    time.sleep(random.uniform(0.3, 0.9))
    run.kill()
    run.communicate()
    kills += run.returncode == -signal.SIGKILL
    for _ in range(100):    # the process that writes it ends by itself
        try: tree = az.from_netcdf("killed.nc.part", engine="h5netcdf")
        except (OSError, ValueError): time.sleep(0.05)
        else: break
    else:
        check(False, "a killed run's file cannot be read", os.listdir("."))
        break
    p, many = tree.posterior, min(20000, tree.posterior.sizes["draw"])
    good = many > 100 and set(tree.groups()) == {"posterior", "sample_stats"} and tree.sample_stats.sizes["draw"] == p.sizes["draw"]
    good = good and np.array_equal(p.x.values[:, :many], never.x.values[:, :many]) and not np.isnan(p.x.values).any()
    lost += not good
    tree.close()
check(kills == 20 and lost == 0, "20 runs that were killed leave their draws", kills, lost)
said = subprocess.run([funnel, "--seed", "1", "-q", "-o", "killed.nc"], stderr=subprocess.PIPE)
check(said.returncode == 2 and b"killed.nc.part is there already, of a run that was killed" in said.stderr, "which are not replaced", said)
done = fit(funnel, "-o", "killed.nc")
check(done.returncode == 0 and sorted(glob.glob("killed*")) == ["killed.nc", "killed_run.json"], "but with --overwrite", done,
      glob.glob("killed*"))
subprocess.run([funnel, *long[:3], "--samples", "100", "--warmup", "10", "-q", "-o", "on", "--format", "both", "--checkpoint"])
subprocess.run([funnel, "-q", "--no-summary", "--warmup", "10", "-o", "on", "--format", "both", "--append", "2000"])
p, table = az.from_netcdf("on.nc").posterior, by_chain("on")
check(p.sizes["draw"] == 2100 and np.array_equal(p.v.values, table["v"]), "a run that has gone on has all draws", p.sizes)


def limited():
    import resource
    resource.setrlimit(resource.RLIMIT_FSIZE, (100000, 100000))


said = subprocess.run([funnel, "--seed", "1", "-q", "--no-summary", "--samples", "20000", "-o", "full.nc"], stderr=subprocess.PIPE,
                      preexec_fn=limited)
check(said.returncode == 4 and b"full.nc: cannot be written: " in said.stderr and not glob.glob("full*"), "a disk that is full", said)
said = fit(funnel, "-o", "none.nc", env={"GM_NETCDF": "/nowhere/libnetcdf.so"})
check(said.returncode == 2 and b"apt-get install libnetcdf19" in said.stderr and said.stderr.count(b"\n") == 1, "without the library", said)
said = fit(program("named", "prior { draw ~ normal(0, 1); }\n"), "-o", "none.nc")
check(said.returncode == 2 and b"`draw` is the name of a dimension" in said.stderr, "an unknown called draw", said)
said = fit(funnel, "-o", "none.nc", "--format", "csv")
check(said.returncode == 2 and not glob.glob("none*"), "another format than the name has", said)
sys.exit(failures() > 0)
