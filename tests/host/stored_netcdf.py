"""Commands about stored draws read NAME.nc: they answer as for the CSV files of the same run, to the last byte. Files of other programs in
ArviZ's layout are read, too, and what holds no draws is refused with one line.

    stored_netcdf.py GMC FOLDER"""
import glob
import os
import random
import shutil
import signal
import subprocess
import sys
import time
import warnings

import numpy as np

warnings.simplefilter("ignore")
import arviz as az  # noqa: E402
import xarray as xr  # noqa: E402
from programs import check, failures, program, read, run, sizes_once, write  # noqa: E402

sizes_once()
gmc, work = os.path.abspath(sys.argv[1]), sys.argv[2]
sys.argv[1] = gmc
os.chdir(work)
MODELS = {   # name: model, data, options of gmc, options of the run
    "levels": ("""model radon
data { int N, J; int<lower=1, upper=J> county[N]; vector[N] x; vector[N] y; int<lower=0> k[N]; }
prior { mu ~ normal(0, 10); vector[2] b ~ normal(0, 10); tau ~ half_normal(0, 5); s ~ half_normal(0, 5);
        for (j in 1:J) a[j] ~ normal(mu, tau); for (j in 1:J, l in 1:3) w[j, l] ~ normal(0, 1); r ~ gamma(1, 1); }
likelihood { for (i in 1:N) y[i] ~ normal(a[county[i]] + b[1] * x[i], s); for (i in 1:N) k[i] ~ poisson(r); }
predict { int c = a[1] > a[2]; }
""", "names.csv", [], ["--log-lik", "--predict", "--params", "all"]),
    "ragged": ("""data { int G; int<lower=0> n[G]; vector[n] y[G]; }
prior { mu ~ normal(0, 5); tau ~ half_normal(0, 2); s ~ half_normal(0, 2); }
latent { for (g in 1:G) theta[g] ~ normal(mu, tau); vector[n] e[G]; for (g in 1:G) e[g] ~ normal(0, 0.5); }
likelihood { for (g in 1:G) for (i in 1:n[g]) y[g, i] ~ normal(theta[g] + e[g, i], s); }
predict { for (g in 1:G) q[g] = n[g] > 0 ? theta[g] : mu; }
""", '{"y": [[1, 2], [0.5], [], [0.3, null, 1]]}', [], ["--log-lik", "--predict", "--params", "all"]),
    "nuts": ("prior { v ~ normal(0, 3); for (i in 1:9) x[i] ~ normal(0, exp(v / 2)); u ~ normal(0, 1); log_lik_y ~ normal(0, 1); }\n"
             "data { real y[3]; }\nlikelihood { for (i in 1:3) y[i] ~ normal(u, 1); }\n", '{"y": [1, 2, 0.5]}', ["--method", "nuts"],
             ["--log-lik", "--first-chain", "3", "--chains", "2"]),   # a name that a log-likelihood would have
    "mixture": ("""data { int N, J; int<lower=1, upper=J> g[N]; real y[N]; }
prior { for (j in 1:J) a[j] ~ normal(0, 1);
        for (k in 1:2) mu[k] ~ normal(0, 10); for (k in 1:2) s[k] ~ half_normal(0, 2); w ~ dirichlet([1, 1]); }
latent { for (i in 1:N) z[i] ~ categorical(w); }
likelihood { for (i in 1:N) y[i] ~ normal(mu[z[i]] + a[g[i]], s[z[i]]); }
""", None, ["--method", "gibbs"], ["--params", "all", "--log-prior"]),
    "matrix": ("data { int K; cov_matrix[K] V; }\nprior { S ~ inv_wishart(K + 4, V); m ~ normal(0, 1); real t[2, 3, 2]; "
               "for (i in 1:2, j in 1:3, k in 1:2) t[i, j, k] ~ normal(m, i + j); }\n",
               '{"K": 3, "V": [[1, 0.2, 0], [0.2, 1, 0], [0, 0, 2]]}', [], ["--thin", "2"]),
}
random.seed(5)
NAMES = ["Anoka", "Aitkin", "Ödön", "Yellow Medicine"]
write("names.csv", "county,x,y,k\n" + "".join("%s,%r,%s,%d\n" % (NAMES[i % 4], random.gauss(0, 1), "NA" if i in (3, 17) else
                                                                 repr(random.gauss(0, 1)), random.randrange(5)) for i in range(40)))
values = ", ".join(repr(random.gauss(6 * (i % 2), 1)) for i in range(30))
MODELS["mixture"] = (MODELS["mixture"][0], '{"y": [%s], "g": [%s]}' % (values, ", ".join(['"u", "v"'] * 15)), *MODELS["mixture"][2:])
with_data = {}
for name, (model, data, flags, options) in MODELS.items():
    fit = os.path.abspath(program(name, model, *flags))
    with_data[name] = data if data.endswith(".csv") else write(name + ".json", data)
    run(fit, with_data[name], "--seed", "1", "-q", "--no-summary", "--samples", "300", "-o", name, "--format", "both", *options)
    for folder, pattern in (("tables", name + "_[0-9].csv"), ("netcdf", name + ".nc")):
        os.makedirs(folder, exist_ok=True)
        for path in glob.glob(pattern): shutil.move(path, folder)
        for path in glob.glob(name + "_*.json"): shutil.copy(path, folder)


def both(what, *command, files=(), of=None):
    """The command in both folders: what it prints, and what it writes. of: of the files, the lines that are compared."""
    done = [subprocess.run(command, cwd=folder, capture_output=True) for folder in ("tables", "netcdf")]
    same = all(getattr(done[0], part) == getattr(done[1], part) for part in ("returncode", "stdout", "stderr"))
    check(same and done[0].returncode == 0 and done[0].stdout + done[0].stderr != b"" or (same and files), what, *done)
    for path in files:
        lines = [list(filter(of, read(os.path.join(folder, path)).splitlines())) for folder in ("tables", "netcdf")]
        check(lines[0] == lines[1] and len(lines[0]) > 1, what + ": " + path)
    return done[1].stdout.decode()


def no_comment(line): return not line.startswith("#")


for name, (_, _, _, options) in MODELS.items():
    fit = os.path.abspath(name)
    for program_ in (gmc, fit):
        for command in (["summary", name], ["summary", "--summary", "json", name], ["summary", "--summary", "csv", name],
                        ["summary", "--summary", "all", "--quantiles", "2.5,50", name], ["diagnose", name]):
            both("%s: %s" % (os.path.basename(program_), " ".join(command)), program_, *command)
    if "--log-lik" in options or "--log-prior" in options:
        chosen = ["--log-lik", "log_lik_y_2"] if name == "nuts" else []
        both("loo " + name, gmc, "loo", name, *chosen, "--pointwise", "loo.csv", files=["loo.csv"])
        if name != "nuts": both("loo by r_eff of each", gmc, "loo", name, "--r-eff", "each")
    both("report " + name, fit, "report", "-q", "-o", name + ".html", name, files=[name + ".html"])
check("a[Aitkin]" in both("levels", gmc, "summary", "levels"), "names of levels")
check("e[4, 3]" in both("rows", gmc, "summary", "ragged"), "names of ragged rows")
run(os.path.abspath("levels"), with_data["levels"], "--seed", "2", "-q", "--no-summary", "--samples", "300", "-o", "other", "--format",
    "both", *MODELS["levels"][3])
for folder, pattern in (("tables", "other_[0-9].csv"), ("netcdf", "other.nc")):
    for path in glob.glob(pattern): shutil.move(path, folder)
    for path in glob.glob("other_*.json"): shutil.copy(path, folder)
both("compare", gmc, "compare", "levels", "other", "--log-lik", "k")
said = both("relabel", os.path.abspath("mixture"), "relabel", "-q", "mixture",
            files=["mixture_relabelled_%d.csv" % c for c in (1, 2, 3, 4)], of=no_comment)
check("a[v]" in said and "a[2]" not in said, "relabel has the names of levels", said)
for name, element in (("levels", "mu"), ("nuts", "x[3]")):
    said = both("why", os.path.abspath(name), "why", element, "--chain", "4", "--draw", "17", "--draws", name, "../" + with_data[name],
                *MODELS[name][3], "--samples", "300")
    check("in the file" in said and ": the same" in said, "a draw of chain 4 again", said)

# Predictions later, of known and of new levels, and of missing responses.
write("later.csv", "county,x,y,k\nAitkin,0.5,1.5,2\nÖdön,-1,NA,0\nZürich,0,1,1\n")
both("predict", os.path.abspath("levels"), "predict", "levels", "--new", "../later.csv", "--new-levels", "draw", "-o", "later", "-q",
     "--overwrite", files=["later_%d.csv" % c for c in (1, 2, 3, 4)] + ["later_new.csv", "later_levels.json"], of=no_comment)
os.remove("netcdf/later_1.csv")
run(os.path.abspath("levels"), "predict", "levels.nc", "--new", "../later.csv", "--new-levels", "draw", "-o", "again", "--format", "both",
    "-q", cwd="netcdf")
written = run(gmc, "summary", "--summary", "csv", "again.nc", cwd="netcdf").stdout
tables = run(gmc, "summary", "--summary", "csv", *("again_%d.csv" % c for c in (1, 2, 3, 4)), cwd="netcdf").stdout
check([row.split(",")[1:] for row in written.splitlines()] == [row.split(",")[1:] for row in tables.splitlines()],
      "stored predictions are read, too")

# Chains go on where those of the file have ended; of one chain all do.
go_on = ["--seed", "2", "--samples", "50", "--warmup", "0", "-q", "--no-summary", "--overwrite"]
for name, chains in (("levels", "4"), ("ragged", "4"), ("mixture", "3"), ("matrix", "4"), ("nuts", "2")):
    more = ["--first-chain", "3"] if name == "nuts" else []
    both("--init " + name, os.path.abspath(name), "../" + with_data[name], *go_on, *more, "--chains", chains, "--init", name, "-o",
         "on_" + name, files=["on_%s_%d.csv" % (name, c) for c in range(3 if more else 1, 5 if more else 1 + int(chains))], of=no_comment)
fit = os.path.abspath("matrix")
run(fit, "matrix.json", "--seed", "4", "-q", "--no-summary", "--chains", "1", "--first-chain", "2", "--samples", "20", "-o", "one",
    "--format", "both")
for start in ("one_2.csv", "one.nc"): run(fit, "matrix.json", *go_on, "--init", start, "-o", "from_" + start[:4])
for c in (1, 2, 3, 4):
    check([*filter(no_comment, read("from_one__%d.csv" % c).splitlines())] ==
          [*filter(no_comment, read("from_one._%d.csv" % c).splitlines())], "all chains begin at the one there is")

# A run that ends early has no warning of it, one that is killed leaves a file that is read.
funnel = os.path.abspath("nuts")
many = ["--samples", "2000000", "--warmup", "100", "--chains", "2", "--seed", "1", "--no-summary", "--overwrite"]
with subprocess.Popen([funnel, "nuts.json", *many, "--refresh", "1000", "-o", "ended.nc"], stderr=subprocess.PIPE) as ended:
    for line in ended.stderr:
        if b"sweep 3000" in line: break
    ended.send_signal(signal.SIGINT)
    ended.stderr.read()
said = run(gmc, "summary", "ended")
check("where its header says" not in said.stderr and "2 chains, " in said.stdout, "an interrupted run is whole", said.stderr)
with subprocess.Popen([funnel, "nuts.json", *many, "-q", "-o", "killed.nc"]) as killed:
    time.sleep(2.5)
    killed.kill()
for _ in range(100):
    said = subprocess.run([gmc, "summary", "killed.nc.part"], capture_output=True, text=True)
    if said.returncode == 0: break
    time.sleep(0.1)
check("2 chains, " in said.stdout and "where its header says 2000000" in said.stderr, "a killed run leaves its draws", said)

# What another program writes in ArviZ's layout; missing draws of ints; and gmc's own file rewritten by ArviZ.
draws = np.random.default_rng(3).normal(size=(3, 200, 2, 4))
other = az.from_dict(posterior={"beta": draws, "k": np.arange(600).reshape(3, 200) % 7}, log_likelihood={"y": draws[:, :, 0] - 1},
                     sample_stats={"lp": draws[..., 0, 0], "diverging": draws[..., 0, 0] > 5, "other": draws[..., 0, 0]},
                     coords={"side": ["left", "right"]}, dims={"beta": ["side", "four"]}, prior={"beta": draws + 9})
other.to_netcdf("other.nc")
rows = [line.split(",") for line in run(gmc, "summary", "--summary", "csv", "other.nc").stdout.splitlines()]
table = az.summary(other, round_to="none")
names = [",".join(r[:len(r) - len(rows[0]) + 1]).strip('"') for r in rows[1:]]
check(sorted(names) == sorted(["lp__", "k"] + ["beta[%s, %d]" % (s, i) for s in ("left", "right") for i in (1, 2, 3, 4)]), "its names",
      names)
for name, row in zip(names, rows[1:]):
    if name in ("lp__", "k"): continue
    side, i = name[5:-1].split(", ")
    wanted, mine = table.loc["beta[%s, %d]" % (side, int(i) - 1)], row[len(row) - len(rows[0]) + 1:]
    theirs = [wanted[what] for what in ("mean", "mcse_mean", "sd", "ess_bulk", "ess_tail", "r_hat")]
    check(np.allclose([float(x) for x in mine[:3] + mine[6:9]], theirs, rtol=1e-8), "numbers of " + name, mine, wanted)
loo = az.loo(other, pointwise=False)
said = run(gmc, "loo", "other.nc").stdout
check(abs(float(said.split("elpd_loo")[1].split()[0]) - loo.elpd_loo) < 0.006, "loo of it", said, loo.elpd_loo)
tree = az.from_netcdf("netcdf/levels.nc")
tree.to_netcdf("rewritten.nc")
mine, theirs = (run(gmc, "summary", "--summary", "csv", path).stdout.splitlines() for path in ("netcdf/levels.nc", "rewritten.nc"))
check(set(mine) == set(theirs), "gmc's draws that ArviZ has written", set(mine) ^ set(theirs))
# As xarray may write them: dimensions in another order; packed numbers; a mark for what is missing; times, which are no draws.
plain = xr.Dataset({"a": (("chain", "draw"), draws[..., 0, 0].round(3)), "m": (("chain", "draw", "i", "j"), draws.round(3)),
                    "k": (("chain", "draw"), np.arange(600).reshape(3, 200) % 7)})
plain.to_netcdf("plain.nc", group="posterior")
odd = plain.transpose("i", "draw", "j", "chain")
odd["when"] = (("chain", "draw"), np.full((3, 200), np.datetime64("2020-01-01", "ns")))
odd.to_netcdf("odd.nc", group="posterior", encoding={"a": {"dtype": "i2", "scale_factor": 0.001, "add_offset": 1.0, "_FillValue": -32768},
                                                     "k": {"dtype": "i1"}})
alike = [run(gmc, "summary", "--summary", "csv", path).stdout for path in ("plain.nc", "odd.nc")]
first, second = ({line.rsplit(",", 9)[0]: [float(x) for x in line.rsplit(",", 9)[1:]] for line in text.splitlines()[1:]} for text in alike)
near = {name: 6 if name == "a" else 9 for name in first}   # ranks of equal numbers are others when these are rounded
check(first.keys() == second.keys() and all(np.allclose(first[n][:near[n]], second[n][:near[n]], rtol=1e-9) for n in first),
      "packed numbers in another order of dimensions", *alike)
holes = plain[["a"]].where(plain["draw" if "draw" in plain.coords else "k"] != 3)
holes.to_netcdf("holes.nc", group="posterior", encoding={"a": {"_FillValue": -9999.0}})
said = run(gmc, "diagnose", "holes.nc").stdout
check("not finite" in said, "what is missing by _FillValue is no number", said)


def refused(what, said, *command, env=None):
    done = subprocess.run([*command], capture_output=True, text=True, env={**os.environ, **(env or {})})
    check(done.returncode == 2 and said in done.stderr and done.stderr.count("\n") == 1 and not done.stdout, what, done)


write("text.nc", "lp__,a\n1,2\n")
write("empty.nc", "")
whole = open("netcdf/levels.nc", "rb").read()
write("cut.nc", whole[:len(whole) // 2])
xr.Dataset({"x": ("draw", [1.0, 2.0])}).to_netcdf("bare.nc", group="posterior")
az.from_dict(posterior={"a": draws[..., 0, 0]}, log_likelihood={"y": draws[:, :100, 0]}).to_netcdf("uneven.nc")
for command in ("summary", "diagnose", "loo"):
    refused(command + ": no NetCDF", "text.nc: cannot be read as a NetCDF file", gmc, command, "text.nc")
    refused(command + ": an empty file", "empty.nc: cannot be read as a NetCDF file", gmc, command, "empty.nc")
    refused(command + ": a file that was cut off", "cut.nc: cannot be read as a NetCDF file", gmc, command, "cut.nc")
    refused(command + ": no draws", "bare.nc: there are no draws in it", gmc, command, "bare.nc")
    refused(command + ": other draws", "chains of 100 draws, and what comes before", gmc, command, "uneven.nc")
    refused(command + ": no file", "no.nc: cannot be read: No such file", gmc, command, "no.nc")
    refused(command + ": no library", "levels.nc: the library of NetCDF is not found (apt-get install libnetcdf19)", gmc, command,
            "netcdf/levels.nc", env={"GM_NETCDF": "/nowhere/libnetcdf.so"})
refused("of two models", "these are draws of the model", gmc, "summary", "netcdf/levels.nc", "netcdf/matrix.nc")
refused("of one run twice", "a chain is given twice", gmc, "summary", "netcdf/levels.nc", "netcdf/levels.nc")
refused("predict: of another model", "these are no draws of this program's model", os.path.abspath("ragged"), "predict", "netcdf/levels.nc",
        "--new", "ragged.json")

# predict takes the unknowns of another program's file by their names, if they are all there and values of the model.
line = program("line", "data { int N, J; int<lower=1, upper=J> g[N]; vector[N] x; vector[N] y; }\n"
               "prior { vector[J] a ~ normal(0, 1); s ~ half_normal(0, 1); }\n"
               "likelihood { for (i in 1:N) y[i] ~ normal(a[g[i]] * x[i], s); }\npredict { for (i in 1:N) e[i] = a[g[i]] * x[i]; }\n")
rng = np.random.default_rng(4)
foreign = {"a": rng.normal(size=(2, 20, 3)), "s": rng.gamma(2, size=(2, 20)), "of_its_own": rng.normal(size=(2, 20))}
write("new_line.json", '{"g": [3, 1], "x": [2, -1]}')
az.from_dict(posterior=foreign).to_netcdf("foreign.nc")
run(line, "predict", "foreign.nc", "--new", "new_line.json", "-o", "of_foreign.nc", "-q", "--overwrite")
e = az.from_netcdf("of_foreign.nc").predictions.e.values
check(np.array_equal(e, foreign["a"][..., [2, 0]] * [2, -1]), "predict of another program's draws", e[0, 0])
for what, change, said in (("an unknown is not there", {"s": None}, "s is not in the draws"),
                           ("out of bounds", {"s": -foreign["s"]}, "out of its bounds"),
                           ("not a number", {"a": foreign["a"] * np.nan}, "not a number"),
                           ("no unknown", {"a": None, "s": None}, "these are no draws of this program's model")):
    az.from_dict(posterior={k: v for k, v in (foreign | change).items() if v is not None}).to_netcdf("changed.nc")
    refused("predict: " + what, said, line, "predict", "changed.nc", "--new", "new_line.json", "-o", "changed", "-q")
az.from_dict(posterior={"b": np.array([[0.2, 1.0], [0.3, 0.999]])}).to_netcdf("few.nc")
said = run(gmc, "diagnose", "few.nc").stdout
check("gather" not in said and "fewer than 8 draws" in said, "diagnose has no verdict on two draws", said)
refused("relabel: of two files", "one NetCDF file has all chains", os.path.abspath("mixture"), "relabel", "netcdf/mixture.nc",
        "tables/mixture_1.csv")
for what, start, said in (("a chain that is not there", "netcdf/mixture.nc", "it has no chain 5: there are 1 to 4"),
                          ("no NetCDF", "text.nc", "text.nc: cannot be read as a NetCDF file"), ("no file", "no.nc", "No such file"),
                          ("of another model", "other.nc", "none of its columns is an unknown of this model")):
    done = subprocess.run(["./mixture", "mixture.json", "-q", "--chains", "5", "--init", start], capture_output=True, text=True)
    check(done.returncode == 2 and said in done.stderr and not done.stdout, "--init: " + what, done)
sys.exit(failures() > 0)
