#!/usr/bin/env python3
"""Whether gmc says of every model what it said before: tests/freeze.txt holds a hash of each dump, of `--explain`, of the emitted program
and of the messages.

    freeze.py            compares; names the models, and the kinds of text, that changed. Exit status 1 if any did
    freeze.py --renew    writes tests/freeze.txt anew (`make freeze`)
    freeze.py FILE.gm    compares some models

Exit status 2 where build/gmc is older than its sources: nothing is compared, nor renewed.

A change of gmc that should leave all as it is, code that goes elsewhere or has a new name, is done when this says so.
"""
import base64
import concurrent.futures
import hashlib
import os
import re
import subprocess
import sys

import emitted

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
KEPT = os.path.join(ROOT, "tests", "freeze.txt")
NO_MODELS = re.compile(r"tests/errors/|tests/fuzz/|.*/rules/")         # meant to be refused, damaged, libraries for -I
MOST_NAMED = 40
# the emitted programs of examples, and of a tenth of all models
METHODS = (["--method", "nuts"], ["--method", "gibbs"], ["--method", "em"], ["--no-augment"])
ALONE = "messages"                                                     # of a model that is refused: nothing else is there


def all_models():
    paths = (os.path.relpath(os.path.join(folder, f), ROOT) for top in ("examples", "tests") for folder, _,
             files in os.walk(os.path.join(ROOT, top)) for f in files if f.endswith(".gm"))
    return sorted(p for p in paths if not NO_MODELS.match(p))


def short(text):
    return base64.b64encode(hashlib.sha256(text).digest())[:4].decode()


def runs_by_methods(model):
    return model.startswith("examples/") or hashlib.sha256(model.encode()).digest()[0] % 10 == 0


def printed(model, *options):
    """From the root, so that gmc names models alike wherever the tree lies."""
    ran = subprocess.run(["build/gmc", *options, model], cwd=ROOT, env={"LC_ALL": "C"}, capture_output=True)
    if ran.returncode not in (0, 1):
        sys.exit("%s: gmc ended with %d\n%s" % (model, ran.returncode, ran.stderr.decode(errors="replace")))
    return ran


def hashes(model):
    """kind of text -> hash."""
    ran = printed(model, "--dump=all", "--explain=full")
    parts = re.split(rb"^==== (\w+)\n", ran.stdout, flags=re.M)
    texts = dict(zip((k.decode() for k in parts[1::2]), parts[2::2])) if ran.returncode == 0 else {}
    emitted.keep(os.path.join(ROOT, model), ran.returncode, texts.get("emit", b""), ran.stderr)
    found = {ALONE: short(ran.stderr), **{k: short(text) for k, text in texts.items()}}
    if ran.returncode == 0 and runs_by_methods(model):
        by = [printed(model, "--emit=cuda", *options) for options in METHODS]
        found["methods"] = short(b"\0".join(r.stdout + r.stderr for r in by))
    return found


def read():
    with open(KEPT) as f:
        kinds, *rows = (line.split() for line in f if not line.startswith("#"))
    return {row[0]: dict(zip(kinds[1:], row[1:])) for row in rows}


def write(new):
    kinds = max(new.values(), key=len)
    with open(KEPT, "w") as f:
        f.write("# What gmc says of each model, as hashes: tests/freeze.py compares them, make freeze renews them. A model that is refused "
                "has a message alone.\n")
        for name, row in [("model", {k: k for k in kinds}), *new.items()]:
            f.write(" ".join([name, *(row[k] for k in kinds if k in row)]) + "\n")


def differences(old, new):
    for model in sorted(old.keys() | new.keys()):
        before, now = old.get(model), new.get(model)
        if before is None or now is None:
            yield "%s: %s" % (model, "is new" if before is None else "is gone")
        elif before != now:
            yield "%s: %s" % (model, " ".join(k for k in {**now, **before} if before.get(k) != now.get(k)))


def as_built():
    """Whether build/gmc is what its sources make. An older one would print what it always has."""
    clean = {k: v for k, v in os.environ.items() if k not in ("MAKEFLAGS", "MFLAGS", "MAKELEVEL")}
    return subprocess.run(["make", "-q", "build/gmc"], cwd=ROOT, env=clean, capture_output=True).returncode == 0


def main():
    if not as_built():
        print("build/gmc is older than its sources, or make does not build it: nothing is compared. Run make first", file=sys.stderr)
        return 2
    given = [a for a in sys.argv[1:] if a != "--renew"]
    models = [os.path.relpath(os.path.abspath(a), ROOT) for a in given] or all_models()
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        new = dict(zip(models, pool.map(hashes, models)))
    old = read() if os.path.exists(KEPT) else {}
    changed = list(differences({m: k for m, k in old.items() if m in new or not given}, new))
    print("\n".join(changed[:MOST_NAMED] + ["and %d more" % (len(changed) - MOST_NAMED)] * (len(changed) > MOST_NAMED)))
    if "--renew" in sys.argv[1:]:
        write({**old, **new} if given else new)
        print("%d models, %d changed: tests/freeze.txt is renewed" % (len(models), len(changed)))
        return 0
    print("%d models, %d changed%s" % (len(models), len(changed), ". make freeze renews them if that was meant" if changed else ""))
    return 1 if changed else 0


sys.exit(main())
