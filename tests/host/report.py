"""fit report: the page is whole HTML that asks nothing of a network; its numbers are the summary's, its lines the draws', its warnings
those that the draws give reason for; and files that do not go together are refused with one line and nothing written.

    report.py GMC DIRECTORY

Draws are made here, with known faults, beside those of a run."""
import html.parser
import json
import math
import os
import random
import re
import subprocess
import sys

from programs import check, failures

gmc, work = sys.argv[1:3]
VOID = {"meta", "link", "br", "hr", "img", "input"}
MODEL = """
data { int<lower=0> J; real y[J]; real<lower=0> sigma[J]; int<lower=0> K; int<lower=0> n[K]; }
prior { mu ~ normal(0, 5); tau ~ half_cauchy(0, 5); rate ~ gamma(1, 1); for (j in 1:J) theta[j] ~ normal(mu, tau); }
likelihood { for (j in 1:J) y[j] ~ normal(theta[j], sigma[j]); for (k in 1:K) n[k] ~ poisson(rate); }
"""
DATA = {"J": 8, "y": [28, 8, -3, 7, -1, 1, 18, 12], "sigma": [15, 10, 16, 11, 9, 11, 10, 18], "K": 12,
        "n": [0, 1, 3, 2, 0, 1, 1, 4, 2, 0, 1, 2]}


def run(*args, program="fit", status=0):
    done = subprocess.run([os.path.join(work, program), *args], capture_output=True, text=True, cwd=work)
    if done.returncode != status:
        check(False, args, "ended with", done.returncode, done.stderr)
    return done


class Page(html.parser.HTMLParser):
    """Elements with their attributes and texts; whether tags close in order."""

    def __init__(self, path):
        super().__init__(convert_charrefs=True)
        self.open, self.nested, self.elements, self.ids, self.declared = [], True, [], [], False
        with open(path, encoding="utf-8") as f:
            self.source = f.read()
        self.feed(self.source)
        self.close()

    def handle_decl(self, decl):
        self.declared |= decl.lower() == "doctype html"

    def handle_starttag(self, tag, attributes):
        element = {"tag": tag, "text": "", "in": [e["tag"] for e in self.open], **dict(attributes)}
        self.elements.append(element)
        self.ids += [v for k, v in attributes if k == "id"]
        if tag not in VOID:
            self.open.append(element)

    def handle_startendtag(self, tag, attributes):
        self.elements.append({"tag": tag, "text": "", "in": [e["tag"] for e in self.open], **dict(attributes)})
        self.ids += [v for k, v in attributes if k == "id"]

    def handle_endtag(self, tag):
        self.nested &= bool(self.open) and self.open[-1]["tag"] == tag
        if self.open:
            self.open.pop()

    def handle_data(self, data):
        for e in self.open:
            e["text"] += data

    def all(self, tag, **wanted):
        return [e for e in self.elements if e["tag"] == tag and all(e.get(k.rstrip("_")) == v for k, v in wanted.items())]

    def warnings(self):
        return [e["id"].removeprefix("warning-") for e in self.all("li") if e.get("id", "").startswith("warning-")]

    def text(self):
        return " ".join(self.all("body")[0]["text"].split())

    def figure(self, title):
        """The svg with this title: its elements"""
        at = next((i for i, e in enumerate(self.elements) if e["tag"] == "title" and "svg" in e["in"] and e["text"] == title), None)
        if at is None:
            return []
        end = next((i for i in range(at, len(self.elements)) if self.elements[i]["tag"] == "figcaption"), len(self.elements))
        return self.elements[at:end]

    def rows(self):
        rows, out = False, {}
        for e in self.elements:
            if e["tag"] == "th" and e.get("scope") == "row":
                rows = out.setdefault(e["text"], [])
            elif e["tag"] == "td":
                rows.append(e["text"])
        return out


def whole(name, page):
    check(page.declared and page.nested and not page.open, name, "tags close in order")
    check(len(set(page.ids)) == len(page.ids), name, "ids are unique")
    links = [e["href"] for e in page.all("a")]
    check(links and all(l.startswith("#") and l[1:] in page.ids for l in links), name, "links lead to places of the page")
    asked = [e for e in page.elements if e["tag"] in ("script", "link", "img", "iframe", "object", "use", "image") or "src" in e
             or any(k.startswith("on") for k in e)]
    check(not asked and "url(" not in page.source and "@import" not in page.source and "://" not in page.source, name,
          "asks for nothing else")
    svgs = page.all("svg")
    named = [e for e in svgs if e.get("role") == "img" and all(i in page.ids for i in e.get("aria-labelledby", "none").split())]
    check(len(named) == len(svgs) > 0, name, "has", len(svgs), "figures with accessible names")
    check(len({t["text"] for t in page.all("title") if "svg" in t["in"]}) == len(svgs), name, "names of figures differ")
    check(all(e["text"].strip() for e in page.all("desc")) and len(page.all("desc")) == len(svgs), name, "figures are described")
    check(len(page.all("html")) == 1 and page.all("html")[0].get("lang") == "en" and page.all("meta", name="viewport"), name,
          "language and viewport")
    check("prefers-color-scheme:dark" in page.source, name, "has dark colours")
    numbers = re.findall(r"[ \"](nan|inf|-nan|-inf)[ \"VhMz]", " ".join(e.get("d", "") + " " for e in page.elements))
    check(not numbers, name, "coordinates are numbers")


def write(name, chains, header, settings=(), seed=1, ids=None, before=None):
    """Files NAME_1.csv, ... in CmdStan's layout; before: draws of warm-up"""
    for c, rows in enumerate(chains):
        with open(os.path.join(work, "%s_%d.csv" % (name, c + 1)), "w") as f:
            f.write("# stan_version_major = 2\n# model = %s_model\n# method = sample (Default)\n#     num_warmup = 1000 (Default)\n#     "
                    "thin = 1 (Default)\n" % name)
            f.write("".join("# %s\n" % s for s in settings) + "# id = %d\n#   seed = %d\n" % (ids[c] if ids else c + 1,
                    seed) + ",".join(header) + "\n")
            for r in before or []:
                f.write(",".join(map(repr, r)) + "\n")
            f.write("# Adaptation terminated\n# Step size = 0.5\n# Diagonal elements of inverse mass matrix:\n# 1, 1\n")
            for r in rows:
                f.write(",".join(map(repr, r)) + "\n")
            f.write("# \n#  Elapsed Time: 0.1 seconds (Warm-up)\n# \n")


def report(*args, **more):
    run("report", "-q", *args, "-o", "page.html", **more)
    return Page(os.path.join(work, "page.html"))


def refused(what, says, *args):
    target = os.path.join(work, "refused.html")
    done = subprocess.run([os.path.join(work, "fit"), "report", *args, "-o", "refused.html"], capture_output=True, text=True, cwd=work)
    left = [n for n in os.listdir(work) if "refused.html" in n]
    check(done.returncode == 2 and says in done.stderr and len(done.stderr.strip().split("\n")) == 1 and not left
          and not os.path.exists(target), "refused:", what,
          "--", done.stderr.strip() if says not in done.stderr else "")


def path_points(d):
    numbers = [float(x) for x in re.findall(r"-?\d+\.?\d*", d)]
    return list(zip(numbers[::2], numbers[1::2]))


def a_run():
    with open(os.path.join(work, "model.gm"), "w") as f:
        f.write(MODEL)
    with open(os.path.join(work, "data.json"), "w") as f:
        json.dump(DATA, f)
    said = subprocess.run([gmc, "-q", "model.gm", "-o", "fit"], cwd=work, capture_output=True, text=True)
    check(said.returncode == 0, "the model becomes a program", said.stderr)
    summary = run("data.json", "--seed", "1", "--warmup", "300", "--samples", "300", "--predict", "--log-lik",
                  "--overwrite", "-o", "draws", "-q").stdout
    page = report("draws", "--data", "data.json")
    whole("a run", page)
    table = {}
    for line in summary.split("\n"):
        cells = line.split("  ")
        cells = [c.strip() for c in cells if c.strip()]
        if len(cells) == 10:
            table[cells[0]] = cells[1:]
    rows = page.rows()
    check(len(table) == 12 and rows == table, "the table is that of the summary", set(table) ^ set(rows))
    check("4 chains of 300 draws" in page.text() and "seed 1" in page.text() and "Sampler:" in page.text(), "the run is described")
    titles = {t["text"] for t in page.all("title")}
    for what in ("Trace of tau", "Rank histograms of mu", "Density of theta[3]", "Autocorrelation of rate", "Replicates of y",
                 "Replicates of n", "Statistics of n and of its replicates",
                 "Each value of y and its replicates"):
        check(what in titles, "there is a figure:", what)
    check(len(page.all("circle", class_="obs")) + len([e for e in page.all("circle", class_="div")]) >= 20, "what was observed is marked")
    few = report("draws", "--figures", "2", "--summary", "5")
    check(len(few.rows()) == 5 and "7 are not shown" in few.text() and "10 are not shown" in few.text(), "what is not shown is counted")
    check(len([e for e in few.all("article")]) == 4, "two quantities and two responses have figures")
    check("with --data FILE" in few.text(), "without data replicates stand alone")
    order = {k: v for k, v in table.items()}
    bad = lambda v: max((float(v[8]) - 1) / 0.01, 400 / min(float(v[6]), float(v[7])))
    shown = list(few.rows())
    check(min(bad(order[k]) for k in shown) >= max(bad(order[k]) for k in order if k not in shown) - 0.06, "the worst are shown")
    done = run("report", "draws_1.csv", "draws_2.csv", "draws_3.csv", "draws_4.csv", "-o", "page.html")
    check("report: page.html" in done.stderr, "files may be given one by one")
    check(not [n for n in os.listdir(work) if n.endswith(".part")], "no temporary file is left")


def coordinates():
    """The lines of a trace pass through the draws: scaled by the axes, whose ticks say where numbers lie."""
    chains = [[[-float(i), 0.5 * i * (c + 1)] for i in range(10)] for c in range(2)]
    write("small", chains, ["lp__", "a"])
    page = report("small")
    whole("a small case", page)
    figure = page.figure("Trace of a")
    ticks = [(float(e["y"]) - 3.5, float(e["text"])) for e in figure if e["tag"] == "text" and e.get("class") == "end"]
    (y0, v0), (y1, v1) = ticks[0], ticks[-1]
    lines = [e for e in figure if e["tag"] == "path" and "thin" in e.get("class", "")]
    check(len(lines) == 2 and [e["class"].split()[-1] for e in lines] == ["s1", "s2"], "a line for each chain")
    for c, e in enumerate(lines):
        points = path_points(e["d"])
        values = [v0 + (y - y0) * (v1 - v0) / (y1 - y0) for _, y in points]
        steps = [points[i + 1][0] - points[i][0] for i in range(len(points) - 1)]
        scale = abs((v1 - v0) / (y1 - y0))
        check(len(points) == 10 and max(abs(v - r[1]) for v, r in zip(values, chains[c])) < 0.15 * scale, "chain", c + 1,
              "passes through its draws")
        check(max(steps) - min(steps) < 0.11, "chain", c + 1, "has its draws at equal distances")


def ranks():
    """A chain whose draws are all above those of the other has its ranks in the upper half."""
    rng = random.Random(5)
    write("split", [[[0.0, rng.gauss(0, 1) + 20 * c] for _ in range(200)] for c in range(2)], ["lp__", "a"])
    page = report("split")
    bars = [e for e in page.figure("Rank histograms of a") if e["tag"] == "path" and "bar" in e.get("class", "")]
    heights = [[float(h) - float(v) for h, v in re.findall(r"M[\d.]+ ([\d.]+)V([\d.]+)h", e["d"])] for e in bars]
    check(len(heights) == 2 and all(len(h) == 20 for h in heights), "20 bins for each chain")
    check(max(heights[0][10:]) == 0 == max(heights[1][:10]) and min(heights[0][:10]) > 0 and min(heights[1][10:]) > 0,
          "ranks lie where the chain does")


HMC = ["lp__", "accept_stat__", "stepsize__", "treedepth__", "n_leapfrog__", "divergent__", "energy__"]


def hmc(rng, lp=0.0, divergent=0, energy=None, depth=3):
    return [lp, 0.9, 0.5, depth, 7, divergent, rng.gauss(0, 1) if energy is None else energy]


def faults():
    rng = random.Random(7)
    good = [[hmc(rng) + [rng.gauss(0, 1)] for _ in range(400)] for _ in range(4)]
    write("good", good, HMC + ["a"], before=[hmc(rng) + [100.0]] * 5)
    page = report("good")
    whole("CmdStan's files", page)
    check(page.warnings() == [] and "No warnings" in page.text(), "good draws have no warnings", page.warnings())
    check("4 chains of 400 draws" in page.text() and "left out" in page.text() and "Energy and its transitions" in page.source,
          "warm-up is left out")

    funnel = []
    for _ in range(4):
        rows = []
        for _ in range(400):
            tau = math.exp(rng.gauss(0, 1.5))
            rows.append(hmc(rng, divergent=int(tau < 0.1)) + [tau, rng.gauss(0, tau), rng.gauss(0, 1)])
        funnel.append(rows)
    write("funnel", funnel, HMC + ["tau", "theta.1", "z"])
    page = report("funnel")
    check(page.warnings()[:1] == ["divergent"] and "small values of tau" in page.text() and "#pairs" in page.source,
          "divergences come first, with what they go with", page.warnings())
    marked = sum(r[5] for rows in funnel for r in rows)
    groups = page.figure("Where transitions diverge")
    dots = [e for e in groups if e["tag"] == "circle"]
    check(0 < marked <= 300 and len(dots) > 3 * 300 and "tau, log scale" in page.source,
          "divergent draws are marked, a scale of many magnitudes by its logarithm")

    write("all", [[r[:5] + [1] + r[6:] for r in rows] for rows in funnel], HMC + ["tau", "theta.1", "z"])
    check("1600 of 1600 transitions (100 %) were divergent" in report("all").text(), "all of them are 100 %")

    modes = [[hmc(rng) + [m + rng.gauss(0, 0.3) for m in order] for _ in range(200)] for order in ([-3, 0, 4], [4, 0, -3], [0, -3, 4],
            [-3, 0, 4])]
    write("labels", modes, HMC + ["mu.1", "mu.2", "mu.3"])
    page = report("labels")
    check(page.warnings() == ["labels"], "label switching explains R-hat", page.warnings())

    odd = [[hmc(rng, lp=rng.gauss(-50 if c == 2 else 0, 1)) + [rng.gauss(9 if c == 2 else 0, 1)] for _ in range(200)] for c in range(4)]
    write("odd", odd, HMC + ["a"])
    page = report("odd")
    check(page.warnings()[0] == "stuck" and "Without chain 3" in page.text() and "minor mode" in page.text(), "a chain elsewhere is named",
          page.warnings())

    still = [[hmc(rng, lp=-5.0 if c == 1 else rng.gauss(0, 1)) + [2.0 if c == 1 else rng.gauss(0, 1)] for _ in range(200)]
             for c in range(4)]
    write("still", still, HMC + ["a"])
    page = report("still")
    check(page.warnings()[0] == "stuck" and "All draws of chain 2 are the same" in page.text(), "a chain that never changes is named",
          page.warnings())

    two = [[hmc(rng) + [rng.gauss(5 if c % 2 else -5, 1)] for _ in range(200)] for c in range(4)]
    write("two", two, HMC + ["a"])
    page = report("two")
    check(page.warnings()[0] == "rhat" and "chains 1 and 3" in page.text() and "chains 2 and 4" in page.text(),
          "two groups of chains are named", page.warnings())

    walk = []
    for _ in range(4):
        e, rows = rng.gauss(0, 10), []
        for _ in range(400):
            e = 0.99 * e + rng.gauss(0, 1)
            rows.append(hmc(rng, energy=e, depth=10) + [rng.gauss(0, 1)])
        walk.append(rows)
    write("walk", walk, HMC + ["a"])
    page = report("walk")
    check(page.warnings() == ["energy", "depth"] and "E-BFMI is below 0.3 in chains 1, 2, 3 and 4" in page.text(),
          "energy and length of trajectories", page.warnings())

    slow = []
    for _ in range(4):
        x, rows = rng.gauss(0, 1), []
        for _ in range(4000):
            x = 0.97 * x + math.sqrt(1 - 0.97 ** 2) * rng.gauss(0, 1)
            rows.append([0.0, x, rng.gauss(0, 1) ** 8])
        slow.append(rows)
    write("slow", slow, ["lp__", "a", "edge"])
    page = report("slow")
    check("ess" in page.warnings() and "boundary" in page.warnings() and "Draws of edge gather at their bound" in page.text(),
          "few effective draws, and a boundary", page.warnings())

    write("broken", [[[0.0, float("inf") if i == 3 else rng.gauss(0, 1), float(i), 1.5] for i in range(20)] for _ in range(2)],
          ["lp__", "a<b>", "c\"d", "e&f"])
    page = report("broken")
    whole("odd names", page)
    check(page.warnings()[0] == "not-finite" and {"a<b>", "c\"d", "e&f"} <= set(page.rows()) and "constant" in page.warnings(),
          "names are escaped", page.warnings())

    many = [[[0.0] + [rng.gauss(3 if c == 11 else 0, 1)] for _ in range(20)] for c in range(12)]
    write("many", many, ["lp__", "a"])
    page = report("many")
    whole("many chains", page)
    check("of 12, those that differ most" in page.text() and " and 12 of 12" in page.text(), "of many chains those that differ are shown")

    one = [[[float(i % 3), rng.gauss(0, 1)] for i in range(5)]]
    write("one", one, ["lp__", "a"])
    page = report("one_1.csv")
    whole("one chain of five draws", page)
    check("few" in page.warnings(), "too few draws")

    skewed = [[[0.0, rng.gauss(0, 1)] + [rng.gauss(0, 1) for _ in range(3)] for _ in range(100)] for _ in range(4)]
    write("rep", skewed, ["lp__", "a", "y_rep.1", "y_rep.2", "y_rep.3"])
    with open(os.path.join(work, "far.json"), "w") as f:
        json.dump({"y": [0, 50, None], "other": 1}, f)
    page = report("rep", "--data", "far.json")
    whole("replicates of CmdStan", page)
    check("2 observed values; 50 % lie" in page.text() and "predictive-1" in page.warnings(), "observed values beside replicates",
          page.warnings())


def errors():
    rng = random.Random(11)
    rows = lambda n: [[rng.gauss(0, 1), rng.gauss(0, 1)] for _ in range(n)]
    write("short", [rows(20), rows(19)], ["lp__", "a"])
    refused("chains of other lengths", "it has 19 draws, and short_1.csv has 20", "short")
    write("named", [rows(20)], ["lp__", "b"])
    write("base", [rows(20)], ["lp__", "a"])
    refused("another model", "of the model named_model, and those of base_1.csv are of base_model", "base_1.csv", "named_1.csv")
    with open(os.path.join(work, "named_1.csv")) as f:
        text = f.read()
    with open(os.path.join(work, "other.csv"), "w") as f:
        f.write(text.replace("named_model", "base_model"))
    refused("other columns", "other.csv: its columns are not those of base_1.csv: column 2 is b, and a there", "base_1.csv", "other.csv")
    with open(os.path.join(work, "wider.csv"), "w") as f:
        f.write(re.sub(r"^(-?[\d.e-]+),(-?[\d.e-]+)$", r"\1,\2,0", text, flags=re.M).replace("named_model", "base_model").replace("lp__,b",
                "lp__,a,b"))
    refused("more columns", "it has 3 columns, and base_1.csv has 2", "base_1.csv", "wider.csv")
    write("gap", [rows(20), rows(20)], ["lp__", "a"], ids=[1, 3])
    refused("a chain that is missing", "chain 2 of this run is missing, between gap_1.csv and gap_2.csv", "gap")
    refused("a chain given twice", "it holds the same draws as base_1.csv", "base_1.csv", "./base_1.csv")
    refused("no such file", "there are no draws nothing_1.csv", "nothing")
    refused("no such csv", "nothing.csv: cannot be read", "nothing.csv")
    refused("nothing given", "no draws are given")
    refused("a folder", "is a directory", "folder.csv")
    for name, text, says in (("table", "x,y\n1,2\n", "this is no file of draws"), ("empty", "", "this is no file of draws"),
                             ("bare", "lp__,a\n", "there are no draws in it"),
                             ("cut", "lp__,a\n1,2\n3,4", "line 3 is not whole: the file was cut off"),
                             ("fewer", "lp__,a\n1,2\n3\n", "line 3 has fewer numbers than there are columns (2)"),
                             ("more", "lp__,a\n1,2,3\n", "line 2 has more numbers than there are columns (2)"),
                             ("words", "lp__,a\n1,two\n", "line 2, column 2: `two` is not a number"),
                             ("optimum", "# method = optimize\nlp__,a\n1,2\n", "its method is optimize")):
        with open(os.path.join(work, name + ".csv"), "w") as f:
            f.write(text)
        refused(name, says, name + ".csv")
    with open(os.path.join(work, "wrong.json"), "w") as f:
        json.dump({**DATA, "y": [1, 2, 3], "J": 3, "sigma": [1, 1, 1]}, f)
    refused("data of another size", "these are not the data of the draws", "draws", "--data", "wrong.json")
    refused("no data", "cannot be read", "draws", "--data", "nowhere.json")
    refused("figures", "--figures: `none` is not a whole number", "draws", "--figures", "none")
    refused("an option", "no such option", "draws", "--nonsense")
    done = subprocess.run([os.path.join(work, "fit"), "report", "base_1.csv", "-o", "base_1.csv"], capture_output=True, text=True, cwd=work)
    check(done.returncode == 2 and "cannot be written" in done.stderr, "a page does not replace draws that it reads")
    done = subprocess.run([os.path.join(work, "fit"), "report", "base_1.csv", "-o", "base_1.csv/page.html"], capture_output=True, text=True,
                          cwd=work)
    check(done.returncode == 2 and "cannot be written" in done.stderr, "a page needs a folder that is there")


os.makedirs(os.path.join(work, "folder.csv"), exist_ok=True)
a_run()
coordinates()
ranks()
faults()
errors()
sys.exit(failures() > 0)
