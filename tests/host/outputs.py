"""What a run writes, and what it leaves alone: no output of any command takes the place of a file that is read, of a device, a pipe or a
folder; signals, full disks and names that cannot be taken lose no draws, and leave no temporary files but those that a message names.

    outputs.py GMC DIRECTORY"""
import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import time

from programs import check, failures, ending, program, read, write

gmc, work = sys.argv[1:3]
MODEL = """data { int N; vector[N] y; }
prior { m ~ normal(0, 5); p ~ dirichlet([1, 1]); for (k in 1:2) mu[k] ~ normal(0, 5); }
latent { for (i in 1:N) c[i] ~ categorical(p); }
likelihood { for (i in 1:N) y[i] ~ normal(m + mu[c[i]], 1); }
"""
shutil.rmtree(work, ignore_errors=True)
os.makedirs(work)
os.chdir(work)


def fit(*args, **more): return ending("./fit", *args, "--no-summary", "-q", "--warmup", "20", "--threads", "1", **more)


def there():
    return sorted((f, os.lstat(f).st_ino, os.lstat(f).st_size) for f in os.listdir("."))


def left():
    return [f for f in os.listdir(".") if f.endswith(".part")]


def rows(path):
    return sum(line[0] not in "#l" for line in open(path))


def refused(what, says, *args):
    before = there()
    status, text = ending(*args)
    check(status == 2 and says in text and there() == before, what + ":", status, text)


program("fit", MODEL)
program("mode", "data { int N; vector[N] y; }\nprior { m ~ normal(0, 5); s ~ half_cauchy(0, 1); }\nlikelihood { y ~ student_t(4, m, s); "
                 "}\npredict { far = m + 10; }\n", "--method", "nuts")
program("trace", MODEL, "--method", "em")
data = write("data.json", json.dumps({"y": [0.1, 0.3, 2.0, 2.2, -0.5]}))

# ---- what is read, and what is no file ----

READ, few = "it is a file that is read", ["--samples", "20", "-q", "--no-summary"]
table = write("y_1.csv", "y\n1\n2\n3\n4\n")
shutil.copy(table, "y.csv")
shutil.copy(data, "y.json")
shutil.copy(data, "y_new.csv")
shutil.copy(data, "y_trace.csv")
os.link("y_1.csv", "h_2.csv")
os.symlink("y_1.csv", "s_3.csv")
os.mkfifo("p_1.csv")
os.symlink("/dev/null", "d_4.csv")
os.mkdir("f_1.csv")
refused("its data", READ, "./fit", "y_1.csv", "-o", "y", *few)
refused("its data as a matrix", READ, "./fit", "y=y_1.csv:y", "-o", "./y", *few)
refused("its data by a hard link", READ, "./fit", "y_1.csv", "-o", "h", *few)
refused("its data by a symbolic link", READ, "./fit", "y_1.csv", "-o", "s", *few)
refused("other data", READ, "./mode", data, "--new", "y_1.csv", "-o", "y", *few)
refused("a column of other data", READ, "./mode", "y.csv", "--new", "y=y_1.csv:y", "-o", os.path.abspath("./y"), *few)
refused("values to start from", READ, "./fit", data, "--init", write("i_1.csv", "m,p.1,p.2,mu.1,mu.2\n0,0.5,0.5,0,0\n"), "-o", "i", *few)
refused("the mode's table", READ, "./mode", "map", "y.csv", "-o", "y", "-q")
refused("the mode's file", READ, "./mode", "map", "y.json", "-o", "y", "-q")
os.rename("y_new.csv", "z_new.json")
os.symlink("z_new.json", "z_new.csv")
refused("the table of --new", READ, "./mode", data, "--new", "z_new.json", "-o", "z", *few)
for name, says in (("p", "a pipe"), ("d", "a device"), ("f", "it is a folder")): refused(says, says, "./fit", data, "-o", name, *few)
fit(data, "--params", "all", "--samples", "20", "--chains", "2", "-o", "draws")
refused("relabel: the draws", READ, "./fit", "relabel", "draws", "-o", "draws")
refused("relabel: the draws by --cocluster", READ, "./fit", "relabel", "draws", "--cocluster", "draws_2.csv")
refused("relabel: the program", READ, "./fit", "relabel", "draws", "--partition", "fit")
points = write("pts_2.csv", "a,b\n" + "1,2\n" * 5)
refused("relabel: the points", READ, "./fit", "relabel", "draws", "-o", "pts", "--svg", "x.svg", "--points", "pts_2.csv:a,b")
refused("relabel: a pipe", "a pipe", "./fit", "relabel", "draws", "--partition", "p_1.csv")
status, text = ending("./fit", "relabel", "draws", "-q", "--partition", "x.csv", "--cocluster", "x.csv")
check(status == 2 and "written already" in text, "relabel: one name for two outputs:", text)
os.symlink("nowhere", "victim_1.csv")
refused("a link that leads nowhere", "leads nowhere", "./fit", data, "-o", "victim", *few)

# ---- names that cannot be taken, full disks ----

write("go_1.csv", "older\n")
p = subprocess.Popen(["./fit", data, "--samples", "100000000", "--refresh", "1000", "--chains", "2", "--no-summary", "--overwrite", "-o",
                      "go"], stderr=subprocess.PIPE, text=True)
for line in p.stderr:
    if "(sampling)" in line: break
os.mkdir("go_2.csv")
p.send_signal(signal.SIGTERM)
text = p.communicate(timeout=60)[1]
names = left()
check(p.returncode == 4 and len(names) == 1 and names[0] in text and rows(names[0]) == rows("go_1.csv") > 0,
      "a name that is taken in the meantime: its draws stay, and it is said where:", text.strip().replace("\n", " / "))
for name in names: os.remove(name)


def small(size):
    return lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))


status, text = fit(data, "--samples", "3000", "--chains", "2", "-o", "full", preexec_fn=small(60000))
check(status == 4 and "File too large" in text and rows("full_1.csv") == rows("full_2.csv") > 100 and not left(),
      "files that may not grow: draws are kept:", text.split("\n")[0])
for what, file, args in (("the mode's table", "m.csv", ["./mode", "map", data, "--overwrite", "-o", "m", "-q"]),
                         ("co-clustering", "x.csv", ["./fit", "relabel", "draws", "-q", "--no-summary", "-o", "again", "--cocluster",
                                                     "x.csv"]),
                         ("iterations", "m_trace.csv", ["./trace", "map", data, "--overwrite", "-o", "m", "-q"]),
                         ("draws", "n_1.csv", ["./fit", data, "--overwrite", "-o", "n", "-q", "--samples", "1", "--warmup", "1"])):
    write(file, "older\n")
    status, text = ending(*args, preexec_fn=small(1))
    check(status in (2, 4) and read(file) == "older\n" and not left(), what + ": the older file stays:", status, text.replace("\n", " / "))

# ---- signals ----


def as_usual():
    for number in (signal.SIGINT, signal.SIGHUP): signal.signal(number, signal.SIG_DFL)      # a test in the background has some ignored


def started(name, *more):
    """A run that has draws."""
    p = subprocess.Popen(["./fit", data, "--samples", "100000000", "--warmup", "20", "--chains", "2", "--refresh", "1000", "--no-summary",
                          "--overwrite", "-o", name, *more], stderr=subprocess.PIPE, text=True, preexec_fn=as_usual)
    for line in p.stderr:
        if "sweep 3000" in line: return p


for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGXCPU):
    p = started("sig")
    p.send_signal(number)
    p.stderr.read()
    status = p.wait(timeout=60)
    check(status == 130 and rows("sig_1.csv") == rows("sig_2.csv") > 1000 and not left(), number.name + ":", status)
    os.remove("sig_1.csv"), os.remove("sig_2.csv")
p = started("sig")
p.stderr.close()
status = p.wait(timeout=60)
check(status == 130 and rows("sig_1.csv") == rows("sig_2.csv") > 1000 and not left(), "a reader of messages that has gone:", status)
p = subprocess.Popen(["./fit", data, "--warmup", "100000000", "-o", "early", "--no-summary", "--refresh", "1000"], stderr=subprocess.PIPE,
                     text=True)
for line in p.stderr:
    if "sweep 3000" in line: break
p.send_signal(signal.SIGTERM)
p.stderr.read()
status = p.wait(timeout=60)
check(status == 130 and not left() and not os.path.exists("early_1.csv"), "in warm-up nothing is left:", status)
p = subprocess.Popen(["./fit", data, "--samples", "20000", "--no-summary", "-q", "-o", "hup"],
                     preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN))
while p.poll() is None and not any(f.startswith("hup") for f in left()): time.sleep(0.01)
p.send_signal(signal.SIGHUP)
check(p.wait(timeout=60) == 0 and rows("hup_1.csv") == 20000, "as under nohup, a hang-up that is ignored stays so")

# ---- standard streams, threads, progress ----

status = subprocess.run("./fit %s --refresh 10 --samples 50 --warmup 20 -o closed 0<&- 1>&- 2>&-" % data, shell=True).returncode
check(rows("closed_1.csv") == 50 and "model:" not in read("closed_1.csv") and read("closed_1.csv").startswith("# stan"),
      "closed descriptors: no message is among the draws:", status)
for args in (["--help"], [data, "-q", "--samples", "20"], ["relabel", "draws", "-q"]):
    with open("/dev/full", "w") as full: done = subprocess.run(["./fit", *args], stdout=full, stderr=subprocess.PIPE, text=True)
    check(done.returncode == 4 and "standard output cannot be written" in done.stderr, "a full standard output:", done.returncode,
          done.stderr.strip())
status, text = ending("./fit", data, "-q", "--no-summary", env={**os.environ, "OMP_NUM_THREADS": "100000"})
check(status == 2 and "OMP_NUM_THREADS" in text and "4096" in text, "OMP_NUM_THREADS=100000:", text)
text = ending("./fit", data, "--no-summary", "--warmup", "250", "--samples", "450", "--refresh", "100")[1]
told = [int(line.split()[1]) for line in text.split("\n") if line.startswith("sweep ")]
check(told == [100, 200, 300, 400, 500, 600, 700], "--refresh 100:", told)
few = ("--no-summary", "--samples", "20", "--overwrite", "-o", "fewer")
ending("./fit", data, *few)
text = ending("./fit", data, *few, "--chains", "2")[1]
check("replaced: fewer_3.csv, fewer_4.csv" in text and not os.path.exists("fewer_3.csv"), "fewer chains:", text)
ending("./fit", data, *few, "--chains", "1", "--first-chain", "3")
ending("./fit", data, *few, "--chains", "1")
check(os.path.exists("fewer_3.csv"), "chains of another run of that name stay")
with open("both", "w") as both: subprocess.run(["./fit", data, "--samples", "50"], stdout=both, stderr=both)
text = read("both")
check(0 < text.find("R-hat") < text.find("\nthe draws are not written"), "one file for both: the table before what is said after it:", text)
sys.exit(failures() > 0)
