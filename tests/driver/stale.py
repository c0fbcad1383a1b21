"""tests/freeze.py in a tree of its own: a copy of the compiler's sources and of what they were built into, with one model.

What it says of the model is compared as long as build/gmc is what its sources make, and a model that changed is named. Where a source is
newer, is new, or make fails, nothing is compared, and no hash is renewed."""
import os
import shutil
import subprocess
import sys
import tempfile

ROOT = sys.argv[1]
MODEL = "tests/golden/eight_schools/model.gm"


def tree(top):
    """Copies keep the times of their files, which make goes by. .d files name sources from the root."""
    for folder in ("compiler", "build/obj", "build/gen"):
        shutil.copytree(os.path.join(ROOT, folder), os.path.join(top, folder))
    for file in ("Makefile", "build/gmc", "build/libgmhost.a", "tests/freeze.py", "tests/emitted.py", "tests/freeze.txt", MODEL):
        os.makedirs(os.path.dirname(os.path.join(top, file)), exist_ok=True)
        shutil.copy2(os.path.join(ROOT, file), os.path.join(top, file))
    for folder in ("stdlib", "runtime"):
        os.symlink(os.path.join(ROOT, folder), os.path.join(top, folder))


def freeze(top, *options):
    """Exit status, whether the message about an older gmc is all that is printed, and what else is."""
    ran = subprocess.run([sys.executable, "tests/freeze.py", *options, MODEL], cwd=top, capture_output=True, text=True)
    return ran.returncode, not ran.stdout and ran.stderr.startswith("build/gmc is older than its sources"), ran.stdout


def contents(file):
    with open(file) as f:
        return f.read()


def refuses(top, what, *options):
    """Neither compares nor, with --renew, renews."""
    before = contents(os.path.join(top, "tests/freeze.txt"))
    status, older, text = freeze(top, *options)
    assert status == 2 and older, "%s, %s: exit status %d\n%s" % (what, options, status, text)
    assert contents(os.path.join(top, "tests/freeze.txt")) == before, "%s: hashes are renewed" % what


def main(top):
    tree(top)
    status, _, text = freeze(top)
    assert status == 0 and text.endswith("1 models, 0 changed\n"), "as it is built: exit status %d\n%s" % (status, text)

    for source, *options in (("compiler/base/arena.h",), ("compiler/base/arena.h", "--renew"), ("compiler/front/grammar.y",)):
        before = os.stat(os.path.join(top, source))
        os.utime(os.path.join(top, source))
        refuses(top, source + " is newer", *options)
        os.utime(os.path.join(top, source), ns=(before.st_atime_ns, before.st_mtime_ns))

    added = os.path.join(top, "compiler", "base", "added.c")
    shutil.copy2(os.path.join(top, "compiler/base/arena.c"), added)
    refuses(top, "a source is new")
    os.remove(added)

    with open(os.path.join(top, "Makefile"), "a") as f:
        f.write("$(error of the test)\n")
    refuses(top, "make fails")
    shutil.copy2(os.path.join(ROOT, "Makefile"), os.path.join(top, "Makefile"))

    model = contents(os.path.join(top, MODEL))
    with open(os.path.join(top, MODEL), "w") as f:
        f.write(model.replace("tau", "tau_of_test"))
    status, _, text = freeze(top)
    named = text.startswith(MODEL + ": ") and "1 models, 1 changed" in text
    assert status == 1 and named, "another model: exit status %d\n%s" % (status, text)
    print("ok")


with tempfile.TemporaryDirectory() as folder:
    main(folder)
