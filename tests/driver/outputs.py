"""What gmc writes, and what it leaves alone: an output never takes the place of what is read, of a device, a pipe or a folder; programs
made at once under one name are whole; a signal, a compiler that fails and a full disk leave nothing behind but what a message names.

    outputs.py GMC CC DIRECTORY"""
import os
import resource
import shutil
import signal
import stat
import subprocess
import sys
import time

# ignored where a shell began this in the background, and what is begun here would ignore it, too
signal.signal(signal.SIGINT, signal.default_int_handler)
gmc, cc, work = sys.argv[1:4]
MODEL = "prior { m ~ normal(%d, 1); }\n"
failed = 0
shutil.rmtree(work, ignore_errors=True)
os.makedirs(work)
os.chdir(work)
os.environ["CC"] = cc


def check(good, *what):
    global failed
    print("%-7s" % ("ok" if good else "FAILED"), *what)
    failed += not good


def write(path, text, mode=0o644):
    with open(path, "w") as f: f.write(text)
    os.chmod(path, mode)
    return path


def read(path):
    with open(path) as f: return f.read()


def compiled(*args, **more):
    done = subprocess.run([gmc, "-q", "--no-device", *args], capture_output=True, text=True, errors="replace", **more)
    return done.returncode, done.stderr.strip()


def runs(program):
    return subprocess.run([os.path.abspath(program), "--samples", "5", "--warmup", "5", "--seed", "1", "-q"], capture_output=True,
                          text=True)


def left():
    return [f for f in os.listdir(".") if "part" in f]


def refused(what, says, *args):
    before = sorted((f, os.lstat(f).st_ino, os.lstat(f).st_size) for f in os.listdir("."))
    status, text = compiled(*args)
    check(status == 2 and says in text and sorted((f, os.lstat(f).st_ino, os.lstat(f).st_size) for f in os.listdir(".")) == before,
          what + ":", status, text)


# ---- what is read, and what is no file ----

write("m.gm", MODEL % 0)
os.link("m.gm", "hard")
os.symlink("m.gm", "soft")
os.symlink("/dev/null", "null")
os.symlink("nowhere", "dangling")
os.mkfifo("pipe")
os.mkdir("folder")
os.mkdir("lib")
write("lib/own.gm", "distribution own(real m) { support real; log_density = -square(x - m) / 2; }\n")
write("k.cu", MODEL % 0)
refused("the model", "it is a file that is read", "m.gm", "-o", "m.gm")
refused("the model by another path", "it is a file that is read", "m.gm", "-o", os.path.join(os.path.abspath("folder"), "..", "m.gm"))
refused("the model by a hard link", "it is a file that is read", "m.gm", "-o", "hard")
refused("the model by a symbolic link", "it is a file that is read", "m.gm", "-o", "soft")
refused("a file of a library", "it is a file that is read", "m.gm", "-I", "lib", "-o", "lib/own.gm")
refused("gmc itself", "it is a file that is read", "m.gm", "-o", gmc)
refused("the model as what --keep writes", "it is a file that is read", "k.cu", "--keep", "-o", "k")
refused("a device", "device", "m.gm", "-o", "null")
refused("a pipe", "pipe", "m.gm", "-o", "pipe")
refused("a folder", "folder", "m.gm", "-o", "folder")
refused("a link that leads nowhere", "leads nowhere", "m.gm", "-o", "dangling")
refused("a folder that is not there", "No such file", "m.gm", "-o", "none/m")

# ---- temporary files ----

write("victim", "mine\n")
write("old", "old\n")
os.symlink("old", "link")
for name in ("f.part", "f.part.cu", "f.part.o"): os.symlink("victim", name)
status, text = compiled("m.gm", "-o", "f")
check(status == 0 and read("victim") == "mine\n" and runs("f").returncode == 0, "links at names of temporary files are not followed:", text)
for name in ("f.part", "f.part.cu", "f.part.o"): os.remove(name)
shutil.copy("m.gm", "g.part.cu")
status, text = compiled("g.part.cu", "-o", "g")
check(status == 0 and read("g.part.cu") == MODEL % 0, "a model that is called g.part.cu stays")
os.remove("g.part.cu")
status, text = compiled("m.gm", "-o", "link")
check(status == 0 and os.path.islink("link") and runs("old").returncode == 0, "an output that is a link is written where it leads")
write("mine.cu", "mine\n")
write("two.gm", MODEL % 1000)
two = [subprocess.Popen([gmc, "-q", "--no-device", "m.gm" if k % 2 else "two.gm", "-o", "same"], stderr=subprocess.PIPE, text=True)
       for k in range(4)]
said = [p.communicate()[1] for p in two]
mean = runs("same").stdout.split()
check(all(p.returncode == 0 for p in two) and not left() and mean, "four at once under one name:", *said)

# ---- signals, and compilers that fail ----

write("slow", "#!/bin/sh\n: > program.o\nexec sleep 60\n", 0o755)
for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
    # a test in the background has some ignored
    p = subprocess.Popen([gmc, "-q", "--no-device", "m.gm", "-o", "stopped"], env={**os.environ, "CC": "./slow"},
                         preexec_fn=lambda: signal.signal(number, signal.SIG_DFL))
    for _ in range(600):
        if any(os.path.exists(os.path.join(f, "program.o")) for f in left()): break
        time.sleep(0.05)
    p.send_signal(number)
    status = p.wait(timeout=20)
    check(status == -number and not left() and not os.path.exists("stopped"), "signal", number.name, status, left())
write("fails", "#!/bin/sh\necho it fails >&2\nexit 1\n", 0o755)
os.environ["CC"] = "./fails"
status, text = compiled("m.gm", "-o", "bad")
kept = [f for f in os.listdir(".") if f.startswith("bad.") and f.endswith(".cu")]
check(status == 4 and len(kept) == 1 and kept[0] in text and "KERNEL" in read(kept[0]) and not left(),
      "a compiler that fails: its input stays under a name of its own:", text)
status, text = compiled("m.gm", "-o", "bad", "--keep")
check(status == 4 and "bad.cu" in text and os.path.exists("bad.cu") and not left(), "and under PROGRAM.cu with --keep:", text)
os.environ["CC"] = "true"
status, text = compiled("m.gm", "-o", "bad")
check(status == 4 and "has not written" in text and not left(), "CC=true:", text)
os.environ["CC"] = "no_such_compiler"
status, text = compiled("m.gm", "-o", "bad")
check(status == 4 and "cannot run the C compiler" in text and not left(), "CC that is not there:", text)
os.mkdir("with blank")
write("with blank/cc", "#!/bin/sh\nexec '%s' \"$@\"\n" % cc, 0o755)
for words in ("cc -O0", " cc  -O0 ", os.path.relpath(cc), "with blank/cc", "env " + os.path.relpath(cc)):
    os.environ["CC"] = words
    status, text = compiled("m.gm", "-o", "words")
    check(status == 0 and runs("words").returncode == 0, "CC=`%s`:" % words, text)
os.environ["CC"] = cc
write("long.gm", "# " + "x" * 3000 + "\n" + "prior { " + " ".join("m%d ~ normal(0, 1);" % k for k in range(40)) + " }\n")
status, text = compiled("long.gm", "-o", "limited", preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096)))
check(status == 2 and "cannot write" in text and not left(), "files that may not grow:", status, text)

os.makedirs("library")
os.mkfifo("library/pipe.gm")
try:
    status, text = compiled("-I", "library", "m.gm", "-o", "piped", timeout=20)
except subprocess.TimeoutExpired:
    status, text = None, "it waits"
check(status == 2 and "library/pipe.gm: not a file" in text, "a pipe in a library:", status, text)

# ---- names ----

for name in ('q"uote', "back\\slash", "back\\", "new\nline", "a'b", "$(touch x)", "50%d", "-o2x", "-Wl,--version", "*/ x"):
    if "/" in name: os.makedirs(os.path.dirname("./" + name), exist_ok=True)
    source = write("./" + name + ".gm", MODEL % 3)
    status, text = compiled(source, "-o", name)
    done = runs("./" + name) if status == 0 else None
    check(status == 0 and done.returncode == 0 and not os.path.exists("x") and not left(), "the name %r:" % name, text)

# ---- standard streams ----

for flag in ("--emit=cuda", "--explain=full", "--dump=schedule", "--help", "--version"):
    with open("/dev/full", "w") as full:
        done = subprocess.run([gmc, "-q", "m.gm", flag], stdout=full, stderr=subprocess.PIPE, text=True)
    check(done.returncode == 2 and "No space left" in done.stderr, flag, "on a full disk:", done.stderr.strip())
write("warned.gm", "prior { m ~ normal(0, 1) }\n")
status = subprocess.run('"%s" warned.gm -o closed 0<&- 1>&- 2>&-; test $? = 1 && "%s" m.gm --no-device -o closed 0<&- 1>&- 2>&-' % (gmc,
        gmc), shell=True).returncode
check(status == 0 and runs("closed").returncode == 0, "closed descriptors")
done = subprocess.run([gmc, "-q", "--no-device", "m.gm", "-o", "explained", "--explain=full"], capture_output=True, text=True)
check(done.returncode == 0 and "normal" in done.stdout and runs("explained").returncode == 0,
      "--explain=full with -o explains and writes the program")
print("%d failed" % failed)
sys.exit(failed > 0)
