#!/usr/bin/env python3
"""No index of a law names two things.

    index_names.py GMC MODEL...

Of each line that --explain prints of a law: a sum is over an index that no loop of the line has ("over j in 1:J"), nor a sum around
it, nor a variable of the model."""
import re
import subprocess
import sys

gmc, models = sys.argv[1], sys.argv[2:]
wrong = checked = 0


def names_of(model):
    done = subprocess.run([gmc, "-q", "--emit=ast", model], capture_output=True, text=True)
    return set(re.findall(r"^  (?:data|variable|definition) (\w+):", done.stdout, re.M))


def sums(text):
    """(index, depth) of each sum, those around it before it"""
    around = []
    for m in re.finditer(r"(?:sum|prod|min|max)\((\w+) in |[(\[]|[)\]]", text):
        if m[1]:
            yield m[1], [x for x in around if x]
            around.append(m[1])
        elif m[0] in "([":
            around.append("")
        elif around:
            around.pop()


for model in models:
    variables = names_of(model)
    done = subprocess.run([gmc, "-q", "--explain", model], capture_output=True, text=True)
    for line in done.stdout.splitlines():
        if not line.startswith("            "):
            continue
        over = re.findall(r"(\w+) in ", line.split("   over ", 1)[1]) if "   over " in line else []
        for index, around in sums(line.split("   over ", 1)[0]):
            checked += 1
            if index in over or index in around or index in variables:
                wrong += 1
                print("%s: `%s` names two things: %s" % (model, index, line.strip()))
print(len(models), "models,", checked, "sums,", wrong, "wrong")
sys.exit(wrong > 0 or checked < 30)
