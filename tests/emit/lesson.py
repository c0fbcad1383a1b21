"""Programs by `gmc --lesson`: their length, and their draws beside those of the full program.

    lesson.py GMC DIRECTORY

The draws of both are made from the same streams. Sums are made in another order, so draws differ by rounding: 1e-6 of their size after 60
sweeps, which is far above it and far below any change of a law. A model that is refused has the status 2 and the one line that says why."""
import csv
import os
import subprocess
import sys

gmc, work = sys.argv[1:3]
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
MOST = {"tests/golden/eight_schools/model.gm": 80, "examples/hierarchical_normal/hierarchical_normal.gm": 160}
# exact draws, latents, truncation, labels, simplexes, slices, rows by group, joint normals (dense, arrow, each its own), counts, predictions
SAME = ["tests/golden/eight_schools/model.gm", "examples/hierarchical_normal/hierarchical_normal.gm", "examples/cookbook/regression/regression.gm",
        "examples/cookbook/mixture/mixture.gm", "examples/cookbook/lda/lda.gm", "examples/cookbook/ordinal/ordinal.gm",
        "examples/cookbook/logistic/logistic.gm", "examples/cookbook/correlated_effects/correlated_effects.gm",
        "examples/cookbook/change_point/change_point.gm", "examples/cookbook/survival/survival.gm", "examples/cookbook/ar/ar.gm",
        "examples/cookbook/variable_selection/variable_selection.gm", "examples/cookbook/occupancy/occupancy.gm"]
REFUSED = {"examples/cookbook/hmm/hmm.gm": "recursion", "examples/cookbook/multinomial/multinomial.gm": "category by category"}
SWEEPS = ["--warmup", "20", "--samples", "40"]


def run(command, status=0, **more):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **more)
    if done.returncode != status:
        sys.exit("%s: exit status %d, not %d\n%s" % (" ".join(command), done.returncode, status, done.stderr))
    return done


def draws(text):
    return list(csv.DictReader(line for line in text.splitlines() if line and line[0] != "#"))


def data_of(model):
    folder = os.path.dirname(model)
    return [os.path.join(folder, f) for f in sorted(os.listdir(folder)) if f.endswith(".json") and f != "expect.json"][:1]


def differs(lesson, full):
    """The first draw that differs, or None."""
    if not lesson or len(lesson) != len(full):
        return "%d draws beside %d" % (len(lesson), len(full))
    shared = [name for name in lesson[0] if name in full[0]]
    if not shared:
        return "no column is in both"
    for i, (a, b) in enumerate(zip(lesson, full)):
        for name in shared:
            x, y = float(a[name]), float(b[name])
            if not abs(x - y) <= 1e-6 * (1e-3 + max(abs(x), abs(y))):
                return "draw %d of %s is %r beside %r" % (i + 1, name, x, y)
    return None


def lesson_of(model, name):
    text = os.path.join(work, name + ".c")
    run([gmc, "-q", "--lesson", os.path.join(ROOT, model), "-o", text])
    return text


def main():
    failed = 0
    flags = run([gmc, "--lesson-flags"]).stdout.split()
    for model in SAME:
        name = os.path.splitext(os.path.basename(model))[0]
        text, path, data = lesson_of(model, name), os.path.join(work, name), data_of(os.path.join(ROOT, model))
        lines = open(text).read().count("\n")
        run(["cc", "-O1", "-Wall", "-Wno-unused"] + [f for f in flags if f != "-w"][:1] + ["-fopenmp", "-fsyntax-only", text])
        run(["cc", "-O1", text] + flags + ["-o", path])
        run([gmc, "-q", "--no-device", "--method", "gibbs", os.path.join(ROOT, model), "-o", path + "_full"])
        mine = draws(run([path] + data + ["--seed", "5"] + SWEEPS).stdout)
        run([path + "_full"] + data + ["--seed", "5", "--chains", "1", "-q", "-o", path] + SWEEPS,
            env={**os.environ, "GM_JOINT": "separate", "OMP_NUM_THREADS": "1"})
        wrong = differs(mine, draws(open(path + "_1.csv").read()))
        if not wrong and lines > MOST.get(model, 400):
            wrong = "%d lines, at most %d" % (lines, MOST[model])
        failed += wrong is not None
        print("%-7s %s: %s" % ("FAILED" if wrong else "ok", model, wrong or "%d lines, %d draws" % (lines, len(mine))))
    for model, why in REFUSED.items():
        done = run([gmc, "-q", "--lesson", os.path.join(ROOT, model)], status=2)
        good = why in done.stderr and done.stderr.count("\n") == 1 and not done.stdout
        failed += not good
        print("%-7s %s is refused: %s" % ("ok" if good else "FAILED", model, done.stderr.strip()))
    return failed > 0


sys.exit(main())
