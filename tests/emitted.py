"""Programs of the models of tests/ and examples/, emitted once for all tests that read them: freeze.py, which has gmc print all of each
model, keeps them in build/emitted; emit/check_warnings.py and gpu/nvrtc.py read them there.

A program is kept under its model's name with a hash of what it may be made from: gmc, the stdlib, and all models, which may include each
other. Where the hash is another one, gmc is asked."""
import functools
import hashlib
import os
import subprocess

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
KEPT = os.path.join(ROOT, "build", "emitted")
GMC = os.path.join(ROOT, "build", "gmc")


@functools.cache
def made_from():
    """A hash of gmc, the stdlib and all models, with their paths."""
    sums = hashlib.sha256()
    tops = [os.path.join(ROOT, top) for top in ("stdlib", "tests", "examples")]
    models = (os.path.join(folder, f) for top in tops for folder, _, files in os.walk(top) for f in files if f.endswith(".gm"))
    for path in [GMC] + sorted(models):
        with open(path, "rb") as f:
            sums.update(b"%s\0%s" % (os.path.relpath(path, ROOT).encode(), hashlib.sha256(f.read()).digest()))
    return sums.hexdigest().encode()


def place(model):
    return os.path.join(KEPT, os.path.relpath(model, ROOT).replace(os.sep, "."))


def keep(model, status, text, said):
    """What gmc has emitted: its exit status, the program, and what it said, in bytes."""
    os.makedirs(KEPT, exist_ok=True)
    part = "%s.%d" % (place(model), os.getpid())
    with open(part, "wb") as f:
        f.write(b"%s %d %d\n%s%s" % (made_from(), status, len(said), said, text))
    os.replace(part, place(model))


def program(model, gmc=GMC):
    """-> gmc's exit status, the program, and what gmc said, in bytes."""
    try:
        with open(place(model), "rb") as f:
            made, status, length = f.readline().split()
            if gmc == GMC and made == made_from():
                said = f.read(int(length))
                return int(status), f.read(), said
    except (OSError, ValueError):
        pass
    ran = subprocess.run([gmc, "-q", "--emit=cuda", model], capture_output=True)
    return ran.returncode, ran.stdout, ran.stderr
