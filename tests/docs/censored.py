"""The table of docs/language.md of distributions whose censored values can be marginalised: gmc takes these, and no others.

    censored.py GMC ROOT FOLDER"""
import glob
import os
import re
import subprocess
import sys

gmc, root, work = sys.argv[1:4]
with open(os.path.join(root, "docs/language.md")) as f: row = re.search(r"^\| yes \| (.*) \|$", f.read(), re.M).group(1)
said, taken = row.split(", "), []
for path in sorted(glob.glob(os.path.join(root, "stdlib/distributions/*.gm"))):
    with open(path) as f: text = f.read()
    head = re.search(r"^distribution (\w+)\(([^{]+)\)\s*{", text, re.M)
    if not head or not re.search("log_cc?df", text) or re.search("vector|matrix|array", head.group(2)): continue
    declared = re.sub("<[^>]*>", "", head.group(2)).split(",")
    unknown = next(k for k, p in enumerate(declared) if "int" not in p)
    arguments = ["t" if k == unknown else "3" if "int" in p else "0.7" for k, p in enumerate(declared)]
    base = "int" if "support integer" in text else "real"
    with open(os.path.join(work, "model.gm"), "w") as f:
        f.write("data { int N; %s y[N]; vector[N] lo; vector[N] hi; }\nprior { real<lower=0, upper=1> t; t ~ beta(2, 2); }\n"
                "likelihood { for (i in 1:N) y[i] ~ %s(%s) C[lo[i], hi[i]]; }\ninfer { y by marginal; }\n" %
                (base, head.group(1), ", ".join(arguments)))
    done = subprocess.run([gmc, "-q", "--emit=schedule", os.path.join(work, "model.gm")], capture_output=True, text=True)
    assert done.returncode == 0 or "cannot be summed out" in done.stderr, done.stderr
    if done.returncode == 0: taken.append(head.group(1))
print("the page:", ", ".join(said))
print("gmc:     ", ", ".join(taken))
sys.exit(said != taken)
