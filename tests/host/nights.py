"""Runs that go on for a night: what they refuse before they begin, what they keep besides the draws, and what is left of them when they are
killed.

    nights.py GMC DIRECTORY"""
import hashlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time

import arviz as az
import numpy as np

from programs import check, ending, failures, program, read, run, write

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
""",
    "neck": """prior { v ~ normal(0, 3); x ~ normal(0, 1); target += -0.5 * x * x * exp(-v) * 100 - 0.5 * v; }
"""}
FLAGS = {"nuts": ["--method", "nuts"], "neck": ["--method", "nuts"]}
shutil.rmtree(work, ignore_errors=True)
os.makedirs(work)
os.chdir(work)


def fit(name, *args, **more): return ending("./" + name, data, "--no-summary", "-q", "--seed", "1", *args, **more)


def draws(path):
    """The lines of numbers."""
    return [line for line in read(path).split("\n") if line and line[0] not in "#l"]


def there():
    return sorted((f, os.lstat(f).st_ino, os.lstat(f).st_size) for f in os.listdir("."))


def refused(what, says, name, *args):
    before = there()
    status, text = fit(name, *args)
    check(status == 2 and says in text and "\n" not in text and there() == before, what + ":", status, text)


table = data = write("data.json", json.dumps({"y": [0.1, 0.3, 2.0, 2.2, -0.5]}))
for name in MODELS: program(name, MODELS[name], *FLAGS.get(name, []))
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
status, text = ending("./nuts", data, "-q", "--no-summary", *few)
check(status == 0 and "nothing of this run" in text, "a run in vain is said to be one:", text)

# ---- settings of NUTS ----

MODELS["seeded"] = "data { int seed; vector[seed] y; }\nprior { m ~ normal(0, 5); }\nlikelihood { y ~ normal(m, 1); }\n"
program("seeded", MODELS["seeded"])
check(ending("./seeded", "seed=5", data, "-q", "--no-summary", *few, "-o", "seeded")[0] == 0, "data may have the name of an option")
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
refused("--save-warmup without a name", "without -o NAME", "gibbs", *few, "--save-warmup")
refused("--save-warmup without warm-up", "no sweep of warm-up", "gibbs", "--warmup", "0", "--save-warmup", "-o", "none")

# ---- runs that are killed ----

rng = random.Random(20)
table = write("long.json", json.dumps({"y": [rng.gauss(3 * (i % 2), 1) for i in range(600)]}))


def digest(name, chain):
    return hashlib.sha256("\n".join(draws("%s_%d.csv" % (name, chain))).encode()).hexdigest()


def same(a, b, chains=2):
    return all(digest(a, c) == digest(b, c) for c in range(1, chains + 1))


def work(name):
    return json.loads(read(name + "_run.json"))["work"]


def begun(program, out, *args):
    return subprocess.Popen(["./" + program, table, "--no-summary", "-q", "--seed", "1", "--chains", "2", "-o", out, *args],
                            stderr=subprocess.PIPE, text=True)


def ended(*args):
    p = begun(*args)
    text = p.communicate(timeout=300)[1].strip()
    return p.returncode, text


def killed_until_done(program, out, seconds, interval, *args):
    """Kills a run at random moments, on average after so many seconds, until one of them ends: how often, and the greatest age of a
    checkpoint at a kill, in seconds, beyond its interval."""
    kills, late = 0, 0
    while kills < 200:
        p, started = begun(program, out, "--resume", "--checkpoint=%g" % interval, *args), time.time()
        try:
            p.wait(timeout=rng.uniform(0.5, 1.5) * seconds)
            return kills, late, p.returncode, p.stderr.read().strip()
        except subprocess.TimeoutExpired:
            p.kill()
        p.communicate()
        kills += 1
        if os.path.exists(out + ".checkpoint"):
            last = max(started, os.stat(out + ".checkpoint").st_mtime)
            late = max(late, time.time() - last - interval)
    return kills, late, None, "never done"


MANY = 12000
for name, args in (("gibbs", ["--params", "all"]), ("nuts", []), ("nuts", ["--save-warmup", "--thin", "3"])):
    samples = str(MANY // (60 if name == "gibbs" else 4))
    out = name + "_" + ("early" if "--thin" in args else "night")
    started = time.time()
    ended(name, out + "_whole", "--samples", samples, *args)
    whole = time.time() - started
    kills, late, status, text = killed_until_done(name, out, max(whole, 1) / 6, 0.05, "--samples", samples, *args)
    left = [f for f in os.listdir(".") if f.endswith(".part")]
    check(status == 0 and same(out, out + "_whole") and not left and late < 5, "%s: killed %d times, %.2f s late:" % (out, kills, late),
          status, text, left)
    check(work(out) == work(out + "_whole"), "what it has done, too:", work(out), work(out + "_whole"))
    if "--thin" in args: check(same(out + "_warmup", out + "_whole_warmup"), "its sweeps of warm-up, too")

write("nuts_night.checkpoint.part", "of a run that was killed while it wrote its last checkpoint")
status, text = ended("nuts", "nuts_night", "--resume", "--checkpoint", "--samples", str(MANY // 4))
check(status == 0 and not os.path.exists("nuts_night.checkpoint.part"), "all draws are there, nothing half written stays:", status, text)

kills = 0
ended("gibbs", "twenty_whole", "--samples", "1500", "--warmup", "500", "--params", "all")
for n in range(20):
    p = begun("gibbs", "twenty", "--resume", "--checkpoint=0", "--samples", "1500", "--warmup", "500", "--params", "all")
    time.sleep(rng.uniform(0.01, 0.25))
    p.kill()
    kills += p.wait() == -signal.SIGKILL
    p.stderr.close()
status, text = ended("gibbs", "twenty", "--resume", "--samples", "1500", "--warmup", "500", "--params", "all")
check(status == 0 and same("twenty", "twenty_whole") and kills > 5, "20 moments, %d of which have killed a run:" % kills, status, text)

ended("nuts", "two", "--samples", "1000", "--checkpoint")
ended("nuts", "once", "--samples", "2000")
status, text = ended("nuts", "two", "--samples", "2000", "--resume")
check(status == 0 and same("two", "once") and "num_samples = 2000" in read("two_1.csv"), "1000 draws, and 1000 more:", status, text)
status, text = ended("nuts", "two", "--append", "500")
ended("nuts", "more", "--samples", "2500")
check(status == 0 and same("two", "more"), "--append 500:", status, text)
p = begun("nuts", "stop", "--samples", "100000000", "--checkpoint=0")
while not os.path.exists("stop.checkpoint") or not os.path.exists("stop_2.csv.part") or os.path.getsize("stop_2.csv.part") < 100000:
    time.sleep(0.01)
p.send_signal(signal.SIGINT)
p.communicate(timeout=60)
some = len(draws("stop_1.csv"))
status, text = ended("nuts", "stop", "--samples", str(some + 500), "--resume")
ended("nuts", "never", "--samples", str(some + 500))
check(p.returncode == 130 and status == 0 and some > 0 and same("stop", "never"), "Ctrl-C after %d draws, and on:" % some, status, text)
summaries = [subprocess.run(["./nuts", table, "-q", "--seed", "1", "--chains", "2", *args], capture_output=True, text=True).stdout
             for args in (["--samples", "900", "-o", "table"], ["--samples", "500", "--checkpoint", "-o", "tables"],
                          ["--samples", "900", "--resume", "-o", "tables"])]
check(summaries[0] == summaries[2] != summaries[1], "the summary of a run that has gone on is that of one that was never interrupted")
p = begun("nuts", "both", "--samples", "100000000", "--checkpoint=0")
while not (os.path.exists("both_2.csv.part") and os.path.exists("both.checkpoint")): time.sleep(0.01)
status, text = ended("nuts", "both", "--samples", "100000000", "--resume")
check(status == 2 and "another run writes it" in text, "two runs at a time:", status, text)
for more in ([], ["--checkpoint"]):
    status, text = ended("nuts", "both", "--overwrite", *more)
    check(status == 2 and "another run writes it" in text and os.path.exists("both.checkpoint") and p.poll() is None,
          "--overwrite beside a run that goes on:", more, status, text)
p.kill()
p.communicate()
shutil.copy("both.checkpoint", "left.checkpoint")
for c in (1, 2): shutil.copy("both_%d.csv.part" % c, "left_%d.csv.part" % c)
status, text = ended("nuts", "left", "--overwrite", "--chains", "1")
check(status == 0 and sorted(f for f in os.listdir(".") if f.startswith("left")) == ["left_1.csv", "left_run.json"],
      "--overwrite clears what a killed run has left:", [f for f in os.listdir(".") if f.startswith("left")], text)
p = begun("nuts", "gone", "--status", "--samples", "100000000")
while not os.path.exists("gone_2.csv.part"): time.sleep(0.01)
p.kill()
p.communicate()
status, text = ended("nuts", "gone", "--status")
check(status == 2 and "gone_1.csv.part is there already, of a run that was killed" in text, "its draws are not lost:", status, text)

# ---- files that come into being meanwhile, and links ----

p = begun("nuts", "late", "--samples", "100000000", "--overwrite")
q = begun("nuts", "new", "--samples", "100000000")
time.sleep(1)
for name in ("late_2.csv", "new_2.csv", "new_run.json"): write(name, "mine\n")
for run_of in (p, q): run_of.send_signal(signal.SIGINT)
said = [run_of.communicate(timeout=60)[1] for run_of in (p, q)]
parts = [f for f in os.listdir(".") if f.startswith("new_2.csv.") and f.endswith(".part")]
check(p.returncode == 130 and read("late_2.csv") != "mine\n", "--overwrite replaces them", p.returncode, said[0])
check(q.returncode == 4 and read("new_2.csv") == read("new_run.json") == "mine\n" and len(parts) == 1 and len(draws(parts[0])) == len(
    draws("new_1.csv")) and "new_2.csv: cannot be written: another program has made it meanwhile" in said[1], "without it they stay:",
      q.returncode, parts, said[1])
os.makedirs("disk")
for name in ("linked.checkpoint", "linked.status.json"): os.symlink("disk/" + name, name), write("disk/" + name, "")
status, text = ended("nuts", "linked", "--checkpoint", "--status", "--overwrite")
check(status == 0 and all(os.path.islink(n) for n in ("linked.checkpoint", "linked.status.json")) and os.path.getsize(
    "disk/linked.checkpoint") > 1000 and json.loads(read("disk/linked.status.json"))["phase"] == "done", "links stay links", text)
check(ended("nuts", "linked", "--resume", "--samples", "1100")[0] == 0 and os.path.islink("linked.checkpoint"), "and are gone on with")
os.makedirs("folder.checkpoint")
status, text = ended("nuts", "folder", "--resume")
check(status == 2 and "\n" not in text and "folder.checkpoint" in text, "a folder is no checkpoint:", status, text)

# ---- a start for each chain ----

status, text = ended("nuts", "two_starts", "--init", "two", "--warmup", "0", "--samples", "1", "--no-summary")
first = ended("nuts", "one_start", "--init", "two_2.csv", "--warmup", "0", "--samples", "1")[0]
check(status == first == 0 and draws("two_starts_2.csv") == draws("one_start_2.csv") and draws("two_starts_1.csv") != draws(
    "one_start_1.csv"), "--init NAME: each chain where its own ended:", status, text)
write("low.json", json.dumps({"m": -5.0, "s": 1.0})), write("high.json", json.dumps({"m": 5.0, "s": 1.0}))
status, text = ended("nuts", "listed", "--init", "low.json,high.json", "--warmup", "0", "--samples", "1")
low = ended("nuts", "listed_low", "--init", "low.json", "--warmup", "0", "--samples", "1")[0]
check(status == low == 0 and draws("listed_1.csv") == draws("listed_low_1.csv") and draws("listed_2.csv") != draws("listed_low_2.csv"),
      "--init A,B:", status, text)
check("# model = nuts\n" in read("listed_1.csv"), "a model without a name is called by its file")
record = json.loads(read("listed_run.json"))
check([d["file"] for d in record["data"]] == ["long.json", "low.json", "high.json"], "the record has both", record["data"])
write("half.json", json.dumps({"m": 5.0})), write("pair_1.json", json.dumps({"m": 5.0}))
for given, says in (("low.json,high.json,low.json", "3 files, and 2 chains"), (",low.json", "file 1 has no name"),
                    ("low.json,half.json", "half.json has no s, and low.json has"),
                    ("pair", "there is no pair_2.json, and there is pair_1.json"), ("low.json,none.json", "none.json")):
    status, text = ended("nuts", "none", "--init", given)
    check(status == 2 and says in text and "\n" not in text, "--init %s:" % given, status, text)


def not_resumed(what, says, program, out, *args):
    before = there()
    status, text = ended(program, out, *args)
    check(status == 2 and says in text and "\n" not in text and there() == before, what + ":", status, text)


not_resumed("a checkpoint without --resume", "two.checkpoint is there already", "nuts", "two", "--samples", "2000")
not_resumed("another warm-up", "another --warmup: 1000 there, 500 here", "nuts", "two", "--resume", "--warmup", "500")
not_resumed("another seed", "another --seed: 1 there, 2 here", "nuts", "two", "--resume", "--seed", "2")
not_resumed("fewer draws", "has 2500 draws per chain", "nuts", "two", "--resume", "--samples", "100")
not_resumed("another program", "of another program", "gibbs", "two", "--resume")
table = data
not_resumed("other data", "of a run with other data", "nuts", "two", "--resume")
table = "long.json"
not_resumed("nothing to append to", "there is no nothing.checkpoint", "nuts", "nothing", "--append", "5")
not_resumed("a run that has not ended", "has not ended", "nuts", "both", "--append", "5")
not_resumed("a GPU", "--device cpu", "nuts", "gpu", "--checkpoint", "--device", "gpu")
with open("two.checkpoint", "rb") as f: whole = f.read()
for what, content in (("cut off", whole[:len(whole) // 2]), ("changed", whole[:500] + bytes([whole[500] ^ 1]) + whole[501:]),
                      ("empty", b"")):
    with open("two.checkpoint", "wb") as f: f.write(content)
    not_resumed("a checkpoint that is " + what, "is not whole", "nuts", "two", "--resume")
with open("two.checkpoint", "wb") as f: f.write(whole)
shutil.copy("two_2.csv", "kept.csv")
lines = read("two_2.csv").split("\n")
write("two_2.csv", "\n".join(lines[:400]) + "\n")
not_resumed("a file that was cut off", "are needed to go on", "nuts", "two", "--resume")
lines[300] = lines[301]
write("two_2.csv", "\n".join(lines))
not_resumed("a file of which a row was changed", "the file was changed", "nuts", "two", "--resume")
shutil.copy("two_1.csv", "two_2.csv")
not_resumed("a file of another chain", "is not that of the checkpoint", "nuts", "two", "--resume")
os.rename("kept.csv", "two_2.csv")
check(ended("nuts", "two", "--resume")[0] == 0 and same("two", "more"), "as it was, it goes on")
check(ended("nuts", "two", "--resume", "--adapt-delta", "0.8", "--max-treedepth", "10")[0] == 0, "so it does with what was the default")
not_resumed("another acceptance", "another --adapt-delta: 0.8 there, 0.9 here", "nuts", "two", "--resume",
            "--adapt-delta", "0.9")

# ---- runs that end before all their draws ----


def columns(path):
    names = next(line for line in read(path).split("\n") if line.startswith("lp__")).split(",")
    return dict(zip(names, zip(*([float(x) for x in line.split(",")] for line in draws(path)))))


def summary(program, *args):
    done = subprocess.run(["./" + program, table, "--chains", "2", "-q", "--overwrite", "-o", "end", "--summary", "json", *args],
                          capture_output=True, text=True)
    lengths = {len(draws("end_%d.csv" % c)) for c in (1, 2)} if os.path.exists("end_1.csv") else {0}
    settings = int(read("end_1.csv").split("num_samples = ")[1].split("\n")[0]) if lengths != {0} else 0
    whole = len(lengths) == 1 and settings == max(lengths) and not [f for f in os.listdir(".") if f.startswith("end") and "part" in f]
    return done.returncode, json.loads(done.stdout)["variables"] if done.stdout else [], lengths, whole, done.stderr.split("\n")[0]


reached = counts = 0
for seed in range(1, 21):
    status, all_of, lengths, whole, text = summary("nuts", "--seed", str(seed), "--until-ess", "400", "--warmup", "400")
    reached += status == 0 and whole and min(min(v["ess_bulk"], v["ess_tail"]) for v in all_of) >= 400
    counts += max(lengths) < 2000
check(reached == counts == 20, "--until-ess 400: reached with %d of 20 seeds, %d of them in less than 2000 draws" % (reached, counts))
first, second = (summary("nuts", "--seed", "5", "--until-ess", "400", "--threads", t)[2] for t in ("1", "2"))
check(first == second, "the same seed takes the same number of draws:", first, second)
rule = ["--chains", "2", "-q", "--no-summary", "--seed", "5", "--until-ess", "400", "--checkpoint", "-o", "ruled"]
subprocess.run(["./nuts", table, *rule])
kept = len(draws("ruled_1.csv"))
again = subprocess.run(["./nuts", table, *rule, "--resume"]).returncode
check(again == 0 and len(draws("ruled_1.csv")) == kept, "a rule that has ended a run holds when it goes on:", kept)
subprocess.run(["./nuts", table, *[a if a != "400" else "800" for a in rule], "--resume"])
longer, kept = len(draws("ruled_1.csv")) > kept, len(draws("ruled_1.csv"))
check(longer, "a higher number makes it go on:", kept)
more = subprocess.run(["./nuts", table, "--chains", "2", "-q", "--no-summary", "--append", "30", "-o", "ruled"]).returncode
check(more == 0 and len(draws("ruled_1.csv")) == kept + 30, "and draws are added to it:", kept, len(draws("ruled_1.csv")))
status, all_of, lengths, whole, text = summary("nuts", "--seed", "1", "--until-rhat", "1.01")
check(status == 0 and whole and max(v["rhat"] for v in all_of) <= 1.01, "--until-rhat 1.01:", status, lengths, text)
status, all_of, lengths, whole, text = summary("nuts", "--seed", "1", "--until-ess", "400", "--until-rhat", "1.01")
check(status == 0 and whole and max(v["rhat"] for v in all_of) <= 1.01 and min(v["ess_bulk"] for v in all_of) >= 400, "both:",
      lengths)
for args, wanted, says in ((["--until-ess", "1e6", "--samples", "300"], 12, "--until-ess 1e+06"),
                           (["--until-rhat", "1", "--samples", "300"], 13, "--until-rhat 1"),
                           (["--until-ess", "1e6", "--samples", "50"], 12, "after 50 draws")):
    status, all_of, lengths, whole, text = summary("nuts", "--seed", "1", *args)
    check(status == wanted and whole and says in text, " ".join(args) + ":", status, lengths, text)
started = time.time()
status, all_of, lengths, whole, text = summary("nuts", "--seed", "1", "--max-time", "1", "--samples", "100000000", "--no-summary")
check(status == 10 and whole and time.time() - started < 10 and max(lengths) > 100, "--max-time 1: %.2f s," % (time.time() - started),
      status, lengths, text)
# Labels that change within chains: what runs over components counts with these in order, here by mu. No chance: the seed is fixed.
program("labels", "data { int N; vector[N] y; }\n"
        "prior { w ~ dirichlet([1, 1]); for (k in 1:2) mu[k] ~ normal(0, 10); s ~ half_normal(0, 2); }\n"
        "latent { for (i in 1:N) c[i] ~ categorical(w); }\nlikelihood { for (i in 1:N) y[i] ~ normal(mu[c[i]], s); }\n")
mixed = write("labels.json", json.dumps({"y": [random.Random(i).gauss(3 * (i % 2), 1) for i in range(200)]}))
done = subprocess.run(["./labels", mixed, "--seed", "1", "--until-ess", "800", "--no-summary", "--overwrite", "-o", "labels"],
                      capture_output=True, text=True)
check(done.returncode == 0 and "with the components of each draw in order" in done.stderr, "labels may change", done.returncode,
      done.stderr)
chains = [columns("labels_%d.csv" % c) for c in (1, 2, 3, 4)]
for which in (min, max):
    ess = az.ess(np.array([[which(pair) for pair in zip(c["mu.1"], c["mu.2"])] for c in chains]))
    check(ess >= 800, "effective draws of mu in order", which, ess)
# Large files: what they take at the end is foreseen, half a second and more. Other work may slow the last part: one of five is in time.
program("wide", "data { int N; vector[N] y; }\nprior { m ~ normal(0, 1); s ~ half_normal(0, 1); for (i in 1:N) a[i] ~ normal(m, s); }\n"
        "likelihood { for (i in 1:N) y[i] ~ normal(a[i], 1); }\n")
wide = write("wide.json", json.dumps({"y": [rng.gauss(0, 1) for _ in range(20000)]}))
for form, bound in (("csv", 0.3), ("netcdf", 1)):  # seconds; packing takes as many processors as there are
    spare = []
    for attempt in range(5):
        started = time.time()
        run("./wide", wide, "--seed", "1", "-q", "--max-time", "2.5", "--samples", "100000000", "--warmup", "20", "--params", "all",
             "--no-summary", "--overwrite", "-o", "wide", "--format", form, status=10)
        spare.append(time.time() - started - 2.5)
        if spare[-1] < bound: break
    check(min(spare) < bound, "files are written by the end of --max-time, --format", form, spare)
for f in os.listdir("."):
    if f.startswith("end") or f.startswith("wide_") or f == "wide.nc": os.remove(f)
status, all_of, lengths, whole, text = summary("nuts", "--max-time", "0.2", "--warmup", "100000000", "--no-summary")
check(status == 10 and lengths == {0} and not [f for f in os.listdir(".") if f.startswith("end")], "in warm-up no file is left:",
      status, text)
found = 0
for seed in range(1, 6):
    args = ["./neck", "--seed", str(seed), "--chains", "2", "--adapt-delta", "0.6", "-q", "--no-summary", "--samples", "3000",
            "--overwrite"]
    status, text = ending(*args, "--stop-on-divergence", "-o", "neck")
    ending(*args, "-o", "all")
    diverged = [columns("all_%d.csv" % c)["divergent__"] for c in (1, 2)]
    first = min((d.index(1) + 1 for d in diverged if 1 in d), default=None)
    length = [len(draws("neck_%d.csv" % c)) for c in (1, 2)]
    good = (status == 11 and length == [first, first] and "diverged in sweep %d " % first in text) if first else status == 0
    found += first is not None
    if not good: check(False, "--stop-on-divergence:", status, length, first, text)
check(found >= 3, "--stop-on-divergence: %d of 5 seeds end at the first one" % found)
refused("--until-rhat with a chain", "there is one", "nuts", "--until-rhat", "1.01", "--chains", "1")
for args in (["--until-ess", "0"], ["--until-rhat", "x"], ["--max-time", "-1"]): refused(args[0], "is not a number", "nuts", *args)

# ---- how far a run is ----

p = begun("nuts", "live", "--status", "--samples", "100000000")
seen, looks, broken = [], 0, 0
started = time.time()
while time.time() - started < 100 and (time.time() - started < 4.5 or seen[-1]["sweep"] <= 1000):
    if not os.path.exists("live.status.json"): continue
    try: now = json.loads(read("live.status.json"))
    except ValueError: broken += 1
    else:
        looks += 1
        if not seen or now != seen[-1]: seen.append(now)
p.send_signal(signal.SIGINT)
text = p.communicate(timeout=60)[1]
last = json.loads(read("live.status.json"))
sweeps = [s["sweep"] for s in seen]
check(broken == 0 and looks > 1000 and 3 <= len(seen) <= time.time() - started + 2 and sweeps == sorted(sweeps) and sweeps[-1] > 1000
      and seen[-1]["phase"] == "sampling" and seen[-1]["sweeps"] == 100001000 and seen[-1]["seconds_left"] > 0
      and seen[0]["phase"] == "warm-up",
      "--status: read %d times, %d of them no JSON, %d states:" % (looks, broken, len(seen)), sweeps)
check(last["phase"] == "interrupted" and last["exit_status"] == 130 and last["draws"] == len(draws("live_1.csv"))
      and not [f for f in os.listdir(".") if f.startswith("live") and "part" in f], "and at the end:", last)
done = subprocess.run(["./nuts", table, "--seed", "1", "--chains", "2", "-q", "--status", "-o", "worst", "--max-time", "2.5", "--samples",
                       "1000000"], capture_output=True, text=True)
last = json.loads(read("worst.status.json"))
check(done.returncode == 10 and last["phase"] == "stopped" and 1 <= last["max_rhat"] < 1.1 and last["min_ess"] > 100
      and {last["max_rhat_of"], last["min_ess_of"]} <= {"lp__", "m", "s", "far"} and last["divergences"] >= 0,
      "R-hat and effective sizes:", last)

for ends in (["--samples", "900"], ["--samples", "100000000", "--max-time", "1.2"]):
    ending("./neck", "--seed", "2", "--chains", "2", "--adapt-delta", "0.6", "-q", "--no-summary", "--overwrite", "--thin", "3", "--status",
        "-o", "count", *ends)
    last = json.loads(read("count.status.json"))
    table = [columns("count_%d.csv" % c)["divergent__"] for c in (1, 2)]
    check(last["divergences"] == sum(map(sum, table)) > 0 and last["draws"] == len(table[0]), "what the status counts is in the files:",
          ends, last["divergences"], last["draws"])

# ---- the same run again ----

table = "long.json"


def rerun(program, *args):
    return ending("./" + program, "rerun", *args)


def file_hash(path):
    with open(path, "rb") as f: return hashlib.sha256(f.read()).hexdigest()


def numbers_hash(path):
    return hashlib.sha256("".join(line + "\n" for line in read(path).split("\n") if line and line[0] != "#").encode()).hexdigest()


cases = (("nuts", "plain", []), ("gibbs", "more", ["--thin", "3", "--params", "all", "--digits", "6", "--no-lp", "--first-chain", "3"]),
         ("nuts", "early", ["--until-ess", "300", "--adapt-delta", "0.9", "--max-treedepth", "6", "--log-lik", "--predict"]),
         ("nuts", "hmc", ["--moves", "chees", "--chains", "4", "--init", "0.3", "N=600"]), ("nuts", "warm", ["--save-warmup"]))
for program, name, args in cases:
    out = "r_" + name
    command = ["./" + program, table, "-q", "--no-summary", "--chains", "2", *args, "-o", out]
    done = subprocess.run(command, capture_output=True, text=True)
    record = json.loads(read(out + "_run.json"))
    first = 3 if "--first-chain" in args else 1
    chains = 4 if "--chains" in args else 2
    check(done.returncode == 0 and record["command"] == command and record["data"] == [
        {"file": table, "bytes": os.path.getsize(table), "sha256": file_hash(table)}]
          and [d["sha256"] for d in record["draws"]] == [numbers_hash("%s_%d.csv" % (out, c)) for c in range(first, first + chains)]
          and record["program_sha256"] == file_hash(program) and record["cpu"], out + ": its record", done.stderr.strip())
    when = record["begun"].replace("T", " ").replace("Z", " UTC")
    for c in range(first, first + chains):
        head = read("%s_%d.csv" % (out, c)).split("lp__,")[0]
        wanted = "# start_datetime = %s\n# data file = %s, %d bytes, SHA-256 %s\n"
        check(wanted % (when, table, os.path.getsize(table), file_hash(table)) in head, out + ": the head of its files", head)
    status, text = rerun(program, out + "_run.json", "--no-summary", "--threads", "1")
    again = json.loads(read(out + "_rerun_run.json"))
    check(status == 0 and "the draws are those of the run" in text and [d["sha256"] for d in again["draws"]] ==
          [d["sha256"] for d in record["draws"]] and again["arguments"] == record["arguments"], out + ": again", status)
status, text = rerun("nuts", "r_plain_run.json", "-q", "--no-summary", "-o", "r_other", "--seed", "77")
check(status == 1 and "2 of 2 chains are others" in text, "other draws are told:", status, text)


status, text = rerun("nuts", "r_plain", "-q", "--no-summary", "-o", "r_by_name")
check(status == 0, "a run by its NAME", status, text)


def not_again(what, says, *args):
    before = there()
    status, text = rerun("nuts", *args)
    check(status == 2 and says in text and "\n" not in text and there() == before, what + ":", status, text)


not_again("draws that are there", "is there already", "r_plain_run.json", "-q")
not_again("no record", "which run?")
not_again("no file", "cannot be read", "nothing_run.json")
not_again("another file", "it is no record", table)
shutil.copy(table, "kept.json")
write(table, read(table) + "\n")
write("named.json", read("r_plain_run.json").replace('"model": "', '"model": "other_'))
not_again("a run of another model", "this program is of", "named.json", "-o", "r_named")
not_again("data that have changed", "it is not the file that the run has read", "r_plain_run.json", "-o", "r_changed")
os.remove(table)
not_again("data that are not there", "cannot be read", "r_plain_run.json", "-o", "r_changed")
os.rename("kept.json", table)
with open(table) as f: subprocess.run(["./nuts", "-", "-q", "--no-summary", "--samples", "20", "-o", "r_pipe"], stdin=f)
not_again("data from standard input", "which was no file", "r_pipe_run.json")
p = begun("nuts", "r_stop", "--samples", "100000000", "--checkpoint=0")
while not os.path.exists("r_stop_2.csv.part") or os.path.getsize("r_stop_2.csv.part") < 50000: time.sleep(0.01)
p.send_signal(signal.SIGINT)
p.communicate(timeout=60)
status, text = rerun("nuts", "r_stop_run.json", "--no-summary")
check(status == 0 and same("r_stop", "r_stop_rerun"), "a run that was interrupted, up to there:", status)
subprocess.run(["./nuts", table, "-q", "--no-summary", "--chains", "2", "--log-lik", "--first-chain", "3", "-o", "r_one.nc"], check=True)
record = json.loads(read("r_one_run.json"))
status, text = rerun("nuts", "r_one_run.json", "--no-summary")
again = json.loads(read("r_one_rerun_run.json"))
check(status == 0 and "the draws are those of the run" in text and [d["chain"] for d in record["draws"]] == [3, 4] and
      len({d["sha256"] for d in record["draws"]}) == 2 and [d["sha256"] for d in again["draws"]] == [d["sha256"] for d in record["draws"]],
      "a run that wrote NetCDF alone, again", status, text)
status, text = rerun("nuts", "r_one_run.json", "-q", "--no-summary", "-o", "r_two.nc", "--seed", "77")
check(status == 1 and "2 of 2 chains are others" in text, "other draws in NetCDF are told:", status, text)

# ---- the log prior, in a night that is killed ----

quiet = ended("nuts", "prior_quiet", "--samples", "3000", "--log-prior")
p, kills = begun("nuts", "prior_night", "--samples", "3000", "--log-prior", "--checkpoint=0"), 0
for part in range(3):
    while p.poll() is None and not (os.path.exists("prior_night_2.csv.part") and
                                    os.path.getsize("prior_night_2.csv.part") > 20000 * (part + 1)): time.sleep(0.005)
    kills += p.poll() is None
    p.kill()
    p.communicate()
    p = begun("nuts", "prior_night", "--samples", "3000", "--log-prior", "--checkpoint=0", "--resume")
text = p.communicate(timeout=300)[1]
names = next(line for line in read("prior_night_1.csv").split("\n") if line.startswith("lp__")).split(",")
check(quiet[0] == p.returncode == 0 and kills > 0 and same("prior_quiet", "prior_night") and
      {"lprior", "lprior_m", "lprior_s"} <= set(names), "a night with the log prior is a quiet one:", kills, names, text)
sys.exit(failures() > 0)
