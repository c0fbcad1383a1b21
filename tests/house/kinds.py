"""How many files of compiler/ speak of a kind of node: its row of kernel.def, what makes it, what prints it, and special cases.

    kinds.py ROOT [-v]        -v: the files of all kinds

A file speaks of a kind if it has NODE_kind outside of comments, or has the function emit_... or count_... that its rows name. What passes
ask of a kind is said in these rows, so that a new one is no case of theirs. Not counted is kernel.h, where the members of a kind are
declared.
MOST has the number for some kinds that are rare; where it is more than three, the reason. A smaller number is to be written down there."""
import os
import re
import sys

MOST = {
    "ORDER": 3, "WEIGHTS": 3, "ELLIPSE": 3, "COPY": 3, "TRANSFORM": 3, "WHITENED": 3, "METROPOLIS": 3, "ROUTINE": 3,
    "DRAW_ARRAY": 4, "DRAW_STATES": 4, "CONSTRAINED": 4,      # cost_body.c: a function for what a routine of the runtime does
    "FILL": 4,           # waits.c: the wait after it becomes its own
    "SLICE": 4,          # made by density.c and whiten.c
    "CALL": 4,           # placement.c: its kernel uses the arrays of the part
    "SAMPLE": 5,         # check.c, outside.c: it has a scope of its own
    "DRAW_NORMAL": 5, "DRAW_BAND": 5,    # cost_body.c, as above; scales.c reads what it was made of
    "SOLVE": 5,          # cost_body.c: the steps of a solver; forms.c: whether an array keeps its derivatives is known after the passes
    "RATIO": 5,          # alike.c looks for it; emit/elements.c: it is one line
}


def rows(root):
    with open(os.path.join(root, "compiler/kernel/kernel.def")) as f:
        return dict(re.findall(r'^NODE\((\w+),\s*"[^"]*",\s*(\w+),', f.read(), flags=re.M))


def counted_by(root):
    """kind -> the word of its function in cost_body.c"""
    with open(os.path.join(root, "compiler/kernel/kernel.def")) as f:
        return dict(re.findall(r'^SPENDS\((\w+), COUNTED\((\w+)\)\)', f.read(), flags=re.M))


def sources(root):
    """file -> its text without comments"""
    out = {}
    for folder, _, names in os.walk(os.path.join(root, "compiler")):
        for name in names:
            if name.endswith((".c", ".h", ".def")):
                with open(os.path.join(folder, name)) as f:
                    out[os.path.relpath(os.path.join(folder, name), root)] = re.sub(r"//.*", "", f.read())
    return out


def spoken_of(text):
    """What a text has of NODE_kind, NODE(kind, void emit_word( and static void count_word("""
    return set(re.findall(r"\bNODE_\w+\b|^NODE\(\w+,|^void emit_\w+\(|^static void count_\w+\(", text, flags=re.M))


def main():
    root = sys.argv[1]
    kinds, counted, words, wrong = rows(root), counted_by(root), {f: spoken_of(text) for f, text in sources(root).items()}, 0
    for kind, most in MOST.items():
        if kind not in kinds:
            print("kernel.def has no NODE(%s, ...)" % kind)
            wrong += 1
    for kind, word in kinds.items():
        files = sorted(f for f, found in words.items() if found & {"NODE_" + kind, "NODE(%s," % kind, "void emit_%s(" % word,
                                                                  "static void count_%s(" % counted.get(kind)})
        if "-v" in sys.argv:
            print("%2d %-12s %s" % (len(files), kind, " ".join(f.removeprefix("compiler/") for f in files)))
        most = MOST.get(kind, len(files))
        if len(files) > most:
            print("%d files speak of NODE_%s, and %d may: %s. What a pass asks of a kind is a part of its row (kernel.def, PARTS)"
                  % (len(files), kind, most, " ".join(files)))
        elif len(files) < most:
            print("%d files speak of NODE_%s, no longer %d: MOST of tests/house/kinds.py has the number" % (len(files), kind, most))
        wrong += len(files) != most
    print("%d kinds of nodes, %d of them counted" % (len(kinds), len(MOST)))
    return 1 if wrong else 0


sys.exit(main())
