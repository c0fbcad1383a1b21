"""`gmc --info` against the schema of docs/pages.md, and against the program: the names that it needs, and the columns that it writes.

    info.py ROOT GMC FOLDER"""
import json
import os
import re
import subprocess
import sys

root, gmc, work = sys.argv[1:4]
os.makedirs(work, exist_ok=True)
failed = 0
with open(os.path.join(root, "docs/pages.md")) as f:
    KEYS = {name: set(re.findall(r"^\| `(\w+)` \|", table, re.M))
            for name, table in re.findall(r"^### (\w+)\n(.*?)(?=^#|\Z)", f.read(), re.M | re.S)}
WORDS = {"type": {"int", "real", "simplex", "ordered", "positive_ordered", "unit_vector", "sum_to_zero_vector", "cov_matrix", "corr_matrix",
                  "cholesky_factor_cov", "cholesky_factor_corr"},
         "kind": {"parameter", "latent", "auxiliary", "definition", "prediction", "missing", "log_lik", "replicate", "log_prior"}}
NAMED = """data { int N, J; int<lower=1, upper=J> county[N]; vector<lower=-9, upper=9>[N] y; real s0 = 2.5; }
prior { mu ~ normal(0, s0); tau ~ half_normal(0, 5); for (j in 1:J) a[j] ~ normal(mu, tau); w ~ dirichlet([1, 1]); }
likelihood { for (i in 1:N) y[i] ~ normal(a[county[i]], 1); }
predict { real far = mu + 10; }
"""


def check(good, *what):
    global failed
    failed += not good
    print("ok  " if good else "FAIL", *what)


def is_expression(x): return x is None or isinstance(x, (int, float, str))


def columns(path):
    with open(path) as f: header = next(line for line in f if line[0] != "#")
    return {name.split(".")[0] for name in header.strip().split(",") if not name.endswith("__")}


def look(model, data):
    info = json.loads(subprocess.run([gmc, "-q", "--info", model], capture_output=True, text=True, check=True).stdout)
    good = set(info) == KEYS["program"] and info["format"] == "gmc-info-1"
    for part, kind in (("inputs", "input"), ("unknowns", "drawn"), ("outputs", "output"), ("methods", "method")):
        for one in info[part]:
            good &= set(one) == KEYS[kind] and all(one.get(k) in words for k, words in WORDS.items() if k in one)
            good &= all(is_expression(one.get(k)) for k in ("lower", "upper", "default"))
    check(good, model, "has the keys that docs/pages.md lists")
    program = os.path.join(work, "program")
    subprocess.run([gmc, "-q", "--no-device", "--method", "gibbs", model, "-o", program], check=True)
    template = json.loads(subprocess.run([program, "--data-template", "-q"], capture_output=True, text=True, check=True).stdout)
    needed = {x["name"] for x in info["inputs"] if x["default"] is None and not x["size"]}
    check(set(template) == needed and all(re.search(r"\b%s\b" % k, v) for k, v in template.items()), "its --data-template:", template)
    if not data: return info
    run = [program, *data, "--seed", "1", "-q", "--no-summary", "--overwrite", "--samples", "5", "--warmup", "5", "--chains", "1"]
    of_gibbs = json.loads(subprocess.run([gmc, "-q", "--info", "--method", "gibbs", model], capture_output=True, text=True).stdout)
    for options in ([], ["--log-lik"], ["--predict"], ["--params", "all"]):
        out = os.path.join(work, "draws")
        subprocess.run([*run, *options, "-o", out], check=True)
        asked = {"--params all"} if options[:1] == ["--params"] else set(options)
        wanted = {o["name"] for o in of_gibbs["outputs"] if o["option"] is None or o["option"] in asked}
        there = columns(out + "_1.csv")
        maybe = {o["name"] for o in of_gibbs["outputs"] if o["kind"] in ("missing", "auxiliary")}  # where values are; where NUTS has none
        check(wanted - maybe <= there <= wanted | maybe, "its columns with", *options, sorted(wanted ^ there))
    return info


with open(os.path.join(work, "named.gm"), "w") as f: f.write(NAMED)
with open(os.path.join(work, "named.csv"), "w") as f: f.write("county,y\nb,1\na,2\nb,NA\n")
named = look(os.path.join(work, "named.gm"), [os.path.join(work, "named.csv")])
inputs = {x["name"]: x for x in named["inputs"]}
check((inputs["county"]["lower"], inputs["county"]["upper"], inputs["county"]["names"], inputs["county"]["dims"]) == (1, "J", True, ["N"])
      and inputs["J"]["size"] and inputs["N"]["size"] and inputs["s0"]["default"] == 2.5 and not inputs["s0"]["size"]
      and (inputs["y"]["lower"], inputs["y"]["upper"], inputs["y"]["response"], inputs["y"]["missing"]) == (-9, 9, True, True),
      "bounds, names, sizes, defaults", inputs)
drawn = {x["name"]: x for x in named["unknowns"]}
check(drawn["tau"]["lower"] == 0 and drawn["w"]["type"] == "simplex" and drawn["a"]["dims"] == ["J"], "unknowns", drawn)
check({x["name"]: (x["kind"], x["of"]) for x in named["outputs"] if x["of"] == "y" and x["kind"] != "log_prior"} ==
      {"log_lik_y": ("log_lik", "y"), "y_rep": ("replicate", "y"), "y": ("missing", "y")}, "outputs of a response")
check({x["name"]: (x["of"], x["option"]) for x in named["outputs"] if x["kind"] == "log_prior"} ==
      {"lprior_" + v: (v, "--log-prior") for v in [*drawn, "y"]}, "the log prior of each unknown", named["outputs"])
check(any("a" in m["draws"] for m in named["methods"]), "methods", named["methods"])
for name, data in (("poisson_gamma", "pumps.json"), ("occupancy", "sites.json"), ("probit", None), ("mnist", None)):
    folder = os.path.join(root, "examples", name)
    look(os.path.join(folder, name + ".gm"), [os.path.join(folder, data)] if data else None)
sys.exit(failed > 0)
