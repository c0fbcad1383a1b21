"""ArviZ 1, which needs a Python of its own (3.12 or later), reads the NetCDF files of gmc unedited. Says so where there is none.

    arviz1.py GMC FOLDER          finds a Python with ArviZ 1, and runs itself there
    arviz1.py GMC FOLDER there    the checks

False alarms: none, since data and seeds are fixed."""
import glob
import json
import os
import random
import shutil
import subprocess
import sys

from programs import by_chain, check, failures, program, read, run, write

gmc, work = sys.argv[1:3]
root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
ASKED = "import arviz, sys; sys.exit(int(arviz.__version__.split('.')[0]) < 1)"
HOMES = """model homes
data { int N, J; int<lower=1, upper=J> county[N]; vector[N] x; vector[N] y; int<lower=0> k[N]; }
prior { mu ~ normal(0, 2); vector[2] b ~ normal(0, 2); tau ~ half_normal(0, 2); s ~ half_normal(0, 2); r ~ gamma(1, 1);
        for (j in 1:J) a[j] ~ normal(mu, tau); }
likelihood { for (i in 1:N) y[i] ~ normal(a[county[i]] + b[1] * x[i] + b[2] * x[i]^2, s); for (i in 1:N) k[i] ~ poisson(r); }
"""
COUNTIES = ["Aitkin", "Anoka", "Ödön", "Yellow Medicine"]


def python_with_arviz():
    """A Python with ArviZ 1, or None; and one of 3.12 or later, or None."""
    found = [os.path.join(root, "build", "arviz1", "bin", "python")]
    found += [shutil.which("python3.%d" % k) for k in range(20, 11, -1)]
    versions = os.path.expanduser(os.environ.get("PYENV_ROOT", "~/.pyenv"))
    found += sorted(glob.glob(os.path.join(versions, "versions", "3.1[2-9]*", "bin", "python")), reverse=True)
    here = [p for p in found if p and os.path.exists(p)]
    return next((p for p in here if not subprocess.run([p, "-c", ASKED], capture_output=True).returncode), None), here[0] if here else None


def make():
    """Programs and files of draws, by the Python of the other tests."""
    random.seed(4)
    table = ["%s,%r,%s,%d" % (COUNTIES[i % 4], random.gauss(0, 1), "NA" if i == 7 else repr(random.gauss(1, 1)), random.randrange(5))
             for i in range(40)]
    for name, lines in (("gap", table), ("whole", [t for t in table if "NA" not in t])):
        write(name + ".csv", "county,x,y,k\n" + "\n".join(lines) + "\n")
    homes = program("homes", HOMES)
    fit = ["--seed", "1", "-q", "--no-summary", "--overwrite", "--format", "both", "--log-lik", "--predict", "--log-prior", "--params",
           "all"]
    for name in ("gap", "whole"): run(homes, name + ".csv", *fit, "-o", name, "--method", "nuts")
    run(homes, "prior", "whole.csv", "--seed", "1", "-q", "-o", "prior.nc", "--overwrite")
    run(homes, "predict", "whole", "--new", "gap.csv", "-q", "-o", "later.nc", "--overwrite")
    write("draws.json", json.dumps({name: {column: x.tolist() for column, x in by_chain(name).items()} for name in ("gap", "whole")}))
    for name in ("gap", "whole"):
        told = run(gmc, "loo", name, "--log-lik", "log_lik_y", "--pointwise", name + "_y.csv", "--r-eff", "0.9").stdout
        write(name + "_loo.txt", told)
    run(homes, "whole.csv", *fit, "-o", "warm", "--save-warmup", "--warmup", "300", "--samples", "10")
    write("warm.json", json.dumps({column: x.tolist() for column, x in by_chain("warm_warmup").items()}))


def main():
    os.makedirs(work, exist_ok=True)
    os.chdir(work)
    python, other = python_with_arviz()
    if not python:
        print("not run: a Python with ArviZ 1 is not here (%s -m venv build/arviz1 && build/arviz1/bin/pip install arviz h5netcdf h5py "
              "matplotlib)" % (os.path.basename(other) if other else "python3.13"))
        return 0
    make()
    return max(failures() > 0, subprocess.run([python, os.path.abspath(__file__), gmc, ".", "there"]).returncode)


# ---- with ArviZ 1 ----


def same_numbers(tree, table):
    import numpy as np
    p = tree.posterior
    check(list(p.J.values) == sorted(COUNTIES) and p.a.dims == ("chain", "draw", "J"), "coordinates are the names of counties")
    for name in ("mu", "tau", "s", "r"): check(np.array_equal(p[name].values, table[name]), name)
    a = np.stack([table["a.%d" % (j + 1)] for j in range(4)], -1)
    check(np.array_equal(p.a.values, a) and np.array_equal(tree.sample_stats.lp.values, table["lp__"]), "arrays, and lp")
    check(tree.sample_stats.diverging.dtype == bool and int(tree.sample_stats.diverging.sum()) == int(np.sum(table["divergent__"])),
          "as many divergent transitions")


def numbers_of_arviz(az, name, tree):
    """Its cross-validation is that of gmc, and its diagnostics find every unknown."""
    import csv

    import numpy as np
    check(len(az.summary(tree)) == 4 + 2 + 4 + (name == "gap"), name, "az.summary has a row for each unknown")
    with open(name + "_y.csv") as f: mine = np.array([float(r["elpd_loo"]) for r in csv.DictReader(f)])
    theirs = az.loo(tree, var_name="y", pointwise=True, reff=0.9)
    fitted = np.isfinite(theirs.pareto_k.values)   # ArviZ has none where a quarter of the tail is one draw that is repeated
    check(theirs.n_data_points == 39 == len(mine) and fitted.sum() > 35 and
          np.allclose(theirs.elpd_i.values[fitted], mine[fitted], rtol=1e-8), name,
          "az.loo of each value that is observed is gmc's", theirs.elpd, mine.sum(), fitted)
    printed = [float(x) for line in read(name + "_loo.txt").splitlines() for x in line.split()[1:3] if line.startswith("elpd_loo")]
    se = np.sqrt(len(mine) * np.var(mine, ddof=1))
    check(abs(printed[1] - se) < 0.006 and (not fitted.all() or abs(theirs.se - se) < 1e-8), name, "its standard error", printed, theirs.se)
    check(np.isfinite(az.loo(tree, var_name="k").elpd), name, "az.loo of another response")


def there():
    import warnings
    warnings.simplefilter("ignore")
    import matplotlib
    matplotlib.use("agg")
    import arviz as az
    import numpy as np
    import xarray as xr
    from arviz_stats import psense_summary
    draws = json.loads(read("draws.json"))
    for name in ("gap", "whole"):
        tree, table = az.from_netcdf(name + ".nc"), {k: np.array(v) for k, v in draws[name].items()}
        groups = ["/constant_data", "/log_likelihood", "/log_prior", "/observed_data", "/posterior", "/posterior_predictive",
                  "/sample_stats"]
        check(sorted(tree.groups) == ["/", *groups] and sorted(xr.open_datatree(name + ".nc").groups) == ["/", *groups], name, "groups")
        same_numbers(tree, table)
        numbers_of_arviz(az, name, tree)
    tree, prior = az.from_netcdf("whole.nc"), az.from_netcdf("prior.nc")
    check(list(psense_summary(tree, var_names=["mu", "tau"]).index) == ["mu", "tau"], "sensitivity to priors and likelihoods")
    check({"/prior", "/prior_predictive"} <= set(prior.groups) and prior.prior_predictive.y.dims == ("chain", "draw", "N"), "prior")
    early, table = az.from_netcdf("warm.nc").warmup_posterior, {k: np.array(v) for k, v in json.loads(read("warm.json")).items()}
    check(early.sizes["draw"] == 300 and np.array_equal(early.mu.values, table["mu"]) and early.a.dims == ("chain", "draw", "J"),
          "sweeps of warm-up")
    check("/predictions" in az.from_netcdf("later.nc").groups, "predictions")
    tree["prior"] = prior["prior"]
    tree["prior_predictive"] = prior["prior_predictive"]
    few = {"var_names": ["mu", "tau"]}
    for what, more in (("trace", few), ("rank", few), ("forest", few), ("dist", few), ("pair", few), ("ess", few), ("mcse", few),
                       ("autocorr", few), ("energy", {}), ("psense_dist", few), ("prior_posterior", few),
                       ("ppc_dist", {"var_names": ["y"]}), ("loo_pit", {"var_names": ["y"]}), ("khat", {})):
        try:
            of = az.loo(tree, var_name="y", pointwise=True) if what == "khat" else tree
            getattr(az, "plot_" + what)(of, **more).savefig(what + ".png")
            check(os.path.getsize(what + ".png") > 1000, "plot_" + what)
        except Exception as why: check(False, "plot_" + what, repr(why)[:300])
    return failures() > 0


if __name__ == "__main__":
    if len(sys.argv) > 3: os.chdir(work)
    sys.exit(there() if len(sys.argv) > 3 else main())
