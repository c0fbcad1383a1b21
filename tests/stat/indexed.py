"""Models in which indices of loops are numbers (indexed_models.py), against log joints that gmc has no part in.

    indexed.py               the models of SEEDS
    indexed.py print SEED    one of them
    indexed.py SEED ...      these

Each is compiled and runs twice. --check compares updates with the program's log joint (check_all.py). Of 20 draws lp__ differs from that of
the first by as much as the log joint of the model, computed here: to 1e-9 of its size, since rounding is 1e-13 and a wrong index 1e-2. No
check is random: seeds are fixed. 17 and 57 are models that fail where a sum is turned about without brackets: mu - (k + 1) to mu - k + 1.
"""
import json
import os
import subprocess
import sys

from indexed_models import J, Model
from program import Failed, Workplace, draws, report

SEEDS = (3, 17, 30, 42, 57, 66)
TO = 1e-9


def run(program, data, *more):
    ran = subprocess.run([program, data, "--seed", "1", "--threads", "1", "--device", "cpu", "-q", *more], capture_output=True, text=True)
    if ran.returncode != 0:
        raise Failed("%s: exit status %d:\n%s%s" % (" ".join(more), ran.returncode, ran.stdout, ran.stderr))


def unknowns(model, names, row):
    at = {n: row[k] for k, n in enumerate(names)}
    return {u: [at["%s.%d" % (u, j)] for j in range(1, J + 1)] if shape else at[u] for u, shape in model.shapes.items()}, at["lp__"]


def check(w, seed):
    model, name = Model(seed), "indexed_%d" % seed
    try:
        program, data = w.compile(name, model.text()), w.data(name, model.data)
        run(program, data, "--check", "--chains", "2")
        run(program, data, "--chains", "1", "--warmup", "20", "--samples", "20", "--no-summary", "--digits", "17", "--params", "all", "-o",
            w.path(name))
    except Failed as e:
        return False, "%s: %s\n%s" % (name, e, model.text())
    names, columns, _ = next(iter(draws.read([w.path(name + "_1.csv")])))
    found = [unknowns(model, names, row) for row in columns.T]
    (first, lp), at_first = found[0], model.joint(found[0][0])
    worst = max(abs((l - lp) - (model.joint(u) - at_first)) / (1 + abs(l) + abs(lp)) for u, l in found)
    good = len(found) == 20 and worst < TO
    return good, "%s: lp__ of %d draws to %.0e%s" % (name, len(found), worst, "" if good else "\n" + model.text())


def main():
    given = sys.argv[1:]
    if given[:1] == ["print"]:
        print(Model(int(given[1])).text(), end="")
        print(json.dumps(Model(int(given[1])).data))
        return
    with Workplace() as w:
        report([check(w, s) for s in (map(int, given) if given else SEEDS)])


main()
