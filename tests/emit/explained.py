"""Words in capitals that a program has are explained in it, and no others: those of four programs and their tables that a student reads.

    explained.py GMC DIRECTORY

What needs no explanation: INFINITY and the like, numbers of fields and streams, constants of tables, and macros whose first word one
sentence is about; nor what ends with _SCALED, as one sentence says."""
import os
import re
import subprocess
import sys

gmc, work = sys.argv[1:3]
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
MODELS = ["tests/golden/eight_schools/model.gm", "examples/linear/linear.gm", "examples/hierarchical_normal/hierarchical_normal.gm",
          "examples/horseshoe_probit/horseshoe_probit.gm"]
COMMENT = re.compile(r"//[^\n]*")
STRING = re.compile(r'"[^"\n]*"')
CAPITALS = re.compile(r"\b[A-Z][A-Z0-9_]{2,}\b")
PLAIN = re.compile(r"(GM|VAR|DATA|STATE|LAUNCH|UPDATE)_|(UPDATE|LAUNCH|INFINITY|NULL|ANY_MISSING|IS_NAN|IS_MISSING|BOUNDED|"
                   r"INTEGER_DRAWN)$")


def unexplained(text, said):
    code = STRING.sub("", COMMENT.sub("", text))
    words = (w for w in set(CAPITALS.findall(code)) if not PLAIN.match(w))
    return sorted(w for w in words if not re.search(r"\b%s\b" % w.removesuffix("_SCALED"), said))


# In sentences, and no words of the program: a placeholder, devices, compilers, ends of names.
OTHERS = re.compile(r"(LAW|CPU|GPU|NVRTC|CUDA|IEEE|HMC|NUTS|WITHOUT|DATA_x|VAR_x|WITH_GRADIENTS|[A-Z_]+_|_[A-Z]+)$")


def absent(text, said):
    code = STRING.sub("", COMMENT.sub("", text))
    return sorted(w for w in set(CAPITALS.findall(said)) if not OTHERS.match(w) and not re.search(r"\b%s(_SCALED)?\b" % w, code))


def main():
    failed = 0
    for model in MODELS:
        stem = os.path.join(work, os.path.basename(model)[:-3])
        subprocess.run([gmc, "-q", os.path.join(ROOT, model), "--emit=cuda", "-o", stem + ".cu"], check=True)
        program, tables = (open(stem + end).read() for end in (".cu", "_tables.h"))
        said = " ".join(COMMENT.findall(program))
        extra = absent(program + tables, " ".join(COMMENT.findall(program + tables)))
        failed += bool(extra)
        print("%-7s %s: %s" % ("FAILED" if extra else "ok", model, ", ".join(extra) or "no other words are explained"))
        for name, text, there in (("program", program, said), ("tables", tables, said + " ".join(COMMENT.findall(tables)))):
            found = unexplained(text, there)
            failed += bool(found)
            print("%-7s %s, %s: %s" % ("FAILED" if found else "ok", model, name, ", ".join(found) or "all words are explained"))
    return failed > 0


sys.exit(main())
