"""Runs that go on for a night: what they refuse before they begin, what they keep besides the draws, and what is left of them when they are
killed.

    nights.py GMC DIRECTORY"""
import json
import os
import shutil
import subprocess
import sys

gmc, work = sys.argv[1:3]
MODELS = {
    "gibbs": """data { int N; vector[N] y; }
prior { m ~ normal(0, 5); p ~ dirichlet([1, 1]); for (k in 1:2) mu[k] ~ normal(0, 5); }
latent { for (i in 1:N) c[i] ~ categorical(p); }
likelihood { for (i in 1:N) y[i] ~ normal(m + mu[c[i]], 1); }
""",
    "nuts": """data { int N; vector[N] y; }
prior { m ~ normal(0, 5); s ~ half_cauchy(0, 1); }
likelihood { y ~ student_t(4, m, s); }
predict { far = m + 10; }
"""}
FLAGS = {"nuts": ["--method", "nuts"]}
failed = 0
shutil.rmtree(work, ignore_errors=True)
os.makedirs(work)
os.chdir(work)


def check(good, *what):
    global failed
    print("%-7s" % ("ok" if good else "FAILED"), *what)
    failed += not good


def write(path, text):
    with open(path, "w") as f: f.write(text)
    return path


def read(path):
    with open(path) as f: return f.read()


def compiled(name, *flags):
    write(name + ".gm", MODELS[name])
    subprocess.run([gmc, "-q", "--no-device", *flags, name + ".gm", "-o", name], check=True)


def run(*args, **more):
    done = subprocess.run(args, capture_output=True, text=True, **more)
    return done.returncode, done.stderr.strip()


def fit(name, *args, **more): return run("./" + name, data, "--no-summary", "-q", "--seed", "1", *args, **more)


def draws(path):
    """The lines of numbers."""
    return [line for line in read(path).split("\n") if line and line[0] not in "#l"]


def there():
    return sorted((f, os.lstat(f).st_ino, os.lstat(f).st_size) for f in os.listdir("."))


def refused(what, says, name, *args):
    before = there()
    status, text = fit(name, *args)
    check(status == 2 and says in text and "\n" not in text and there() == before, what + ":", status, text)


data = write("data.json", json.dumps({"y": [0.1, 0.3, 2.0, 2.2, -0.5]}))
for name in MODELS: compiled(name, *FLAGS.get(name, []))
few = ["--samples", "20", "--warmup", "40", "--chains", "2"]

# ---- what is refused before the first sweep ----

status, text = fit("nuts", *few, "-o", "out/of/run")
check(status == 0 and len(draws("out/of/run_2.csv")) == 20, "folders of -o are made:", status, text)
refused("draws that are there", "out/of/run_1.csv is there already", "nuts", *few, "-o", "out/of/run")
write("part_2.csv", "older\n")
refused("one file that is there", "part_2.csv is there already", "nuts", *few, "-o", "part")
check(fit("nuts", *few, "--overwrite", "-o", "part")[0] == 0 and len(draws("part_2.csv")) == 20, "--overwrite replaces it")
for given, says in (("--smaples", "is --samples meant?"), ("--adapt-detla=0.9", "is --adapt-delta meant?"),
                    ("--num_samples=4", "here it is --samples N"), ("--iter-warmup", "here it is --warmup N"),
                    ("--iter_sampling", "here it is --samples N"), ("--max_depth=4", "here it is --max-treedepth N"),
                    ("--adapt_delta=0.9", "here it is --adapt-delta D"), ("num_samples=4", "as an option it is --samples N"),
                    ("delta=0.9", "as an option it is --adapt-delta D"), ("seed=3", "as an option it is --seed N"),
                    ("sample", "a word of CmdStan's"), ("--adapt-delta=1", "is not a number above 0"),
                    ("--max-treedepth=11", "from 1 to 10"), ("--nonsense", "no such option; try --help")):
    refused(given, says, "nuts", *few, "-o", "typo", given)
status, text = run("./nuts", data, "-q", "--no-summary", *few)
check(status == 0 and "nothing of this run" in text, "a run in vain is said to be one:", text)

# ---- settings of NUTS ----

MODELS["seeded"] = "data { int seed; vector[seed] y; }\nprior { m ~ normal(0, 5); }\nlikelihood { y ~ normal(m, 1); }\n"
compiled("seeded")
check(run("./seeded", "seed=5", data, "-q", "--no-summary", *few, "-o", "seeded")[0] == 0, "data may have the name of an option")
accepted, steps = [], []
for delta in ("0.5", "0.8", "0.99"):
    fit("nuts", "--warmup", "500", "--adapt-delta", delta, "--overwrite", "-o", "delta")
    rows = [[float(x) for x in line.split(",")] for line in draws("delta_1.csv")]
    accepted.append(sum(r[1] for r in rows) / len(rows))
    steps.append(rows[0][2])
check(all(abs(a - d) < 0.12 for a, d in zip(accepted, (0.5, 0.8, 0.99))) and steps[0] > steps[1] > steps[2],
      "--adapt-delta: mean acceptance", accepted, "step sizes", steps)
fit("nuts", "--warmup", "500", "--adapt-delta", "0.99", "--max-treedepth", "2", "--overwrite", "-o", "depth")
depths = {float(line.split(",")[3]) for line in draws("depth_1.csv")}
check(max(depths) == 2 and "max_depth = 2\n" in read("depth_1.csv"), "--max-treedepth 2: depths", depths)

# ---- warm-up ----

status, text = fit("gibbs", *few, "--save-warmup", "--thin", "2", "--params", "all", "-o", "early")
check(status == 0 and len(draws("early_1.csv")) == 20 and len(draws("early_warmup_2.csv")) == 20, "--save-warmup --thin 2:", status, text)
fit("gibbs", "--samples", "40", "--warmup", "0", "--chains", "2", "--params", "all", "-o", "plain")
check(draws("early_warmup_1.csv")[:3] == draws("plain_1.csv")[1:7:2] and fit("gibbs", *few, "--thin", "2", "--params", "all", "-o",
                                                                             "late")[0] == 0
      and draws("late_2.csv") == draws("early_2.csv"), "they are those sweeps, and change no draw")
refused("--save-warmup without a name", "-o NAME", "gibbs", *few, "--save-warmup")
refused("--save-warmup without warm-up", "no sweep of warm-up", "gibbs", "--warmup", "0", "--save-warmup", "-o", "none")
print("%d failed" % failed)
sys.exit(failed > 0)
