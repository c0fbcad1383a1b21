"""The pages that gmc writes of models: what a browser, a reader with a screen reader, and a program that reads the data need of them.

    check.py GMC FOLDER MODEL...        where there is pdflatex, documents go through it, too

Of each page: ids are there once, links lead to them, figures have names, formulas are well-formed MathML, nothing is loaded; no two nodes
of the diagram overlap, and each plate holds what it holds. Of the data: the keys are those that docs/pages.md lists. Laws that are normal
or gamma are compared with the terms that were collected for them, in numbers."""
import html.parser
import json
import math
import os
import random
import re
import shutil
import subprocess
import sys
import warnings
import xml.etree.ElementTree

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
VOID = {"meta", "wbr", "br", "hr", "img", "link", "input"}
KIDS = {"mfrac": 2, "msup": 2, "msub": 2, "munder": 2, "msubsup": 3, "munderover": 3}
MATH = set(KIDS) | {"math", "mrow", "mi", "mn", "mo", "mtext", "mspace", "msqrt", "mtable", "mtr", "mtd"}
TOLD = []


def wrong(where, what):
    TOLD.append("%s: %s" % (where, what))


class Page(html.parser.HTMLParser):
    """Elements as they open and close, and what of them is checked."""

    def __init__(self, where):
        super().__init__()
        self.where, self.open, self.ids, self.links, self.named, self.names = where, [], [], [], [], {}
        self.shapes, self.plates, self.figures = [], [], 0

    def handle_starttag(self, tag, attributes):
        a = dict(attributes)
        if "id" in a:
            self.ids.append(a["id"])
        if "href" in a:
            self.links.append(a["href"])
        if tag in ("script", "link", "img", "iframe", "object", "video", "audio") or "src" in a or any(k.startswith("on") for k in a):
            wrong(self.where, "<%s> loads or runs something" % tag)
        if tag in ("svg", "figure"):
            self.figures += 1
            if not a.get("aria-labelledby") and not a.get("aria-label"):
                wrong(self.where, "a <%s> has no name" % tag)
            self.named += a.get("aria-labelledby", "").split()
        if tag == "rect" and a.get("class") == "plate":
            self.plates.append([float(a[k]) for k in ("x", "y", "width", "height")])
        elif tag == "rect":
            self.shapes.append([float(a[k]) for k in ("x", "y", "width", "height")])
        elif tag == "ellipse" and a.get("class") != "inner":  # the second outline of a definition
            x, y, rx, ry = (float(a[k]) for k in ("cx", "cy", "rx", "ry"))
            self.shapes.append([x - rx, y - ry, 2 * rx, 2 * ry])
        if tag not in VOID:
            self.open.append((tag, a.get("id")))

    def handle_startendtag(self, tag, attributes):
        self.handle_starttag(tag, attributes)
        if tag not in VOID:
            self.open.pop()

    def handle_endtag(self, tag):
        if not self.open or self.open.pop()[0] != tag:
            wrong(self.where, "</%s> closes another element, line %d" % (tag, self.getpos()[0]))

    def handle_data(self, data):
        if self.open and self.open[-1][1]:
            self.names[self.open[-1][1]] = self.names.get(self.open[-1][1], "") + data


def apart(a, b):
    return a[0] + a[2] <= b[0] or b[0] + b[2] <= a[0] or a[1] + a[3] <= b[1] or b[1] + b[3] <= a[1]


def inside(a, b):
    return a[0] >= b[0] and a[1] >= b[1] and a[0] + a[2] <= b[0] + b[2] and a[1] + a[3] <= b[1] + b[3]


def points(path, steps=24):
    """Of an edge: where it goes, piece by piece a cubic or a straight line."""
    out, at = [], None
    for kind, numbers in re.findall(r"([MCL])([-0-9. ]+)", path):
        p = [float(v) for v in numbers.split()]
        to = p[-2:]
        if kind == "C":
            c = [at, p[:2], p[2:4], to]
            out += [[sum(w * q[k] for w, q in zip(((1 - t) ** 3, 3 * t * (1 - t) ** 2, 3 * t * t * (1 - t), t ** 3), c)) for k in (0, 1)]
                    for t in (i / steps for i in range(steps + 1))]
        elif kind == "L":
            out += [[at[k] + (to[k] - at[k]) * i / steps for k in (0, 1)] for i in range(steps + 1)]
        at = to
    return out


def check_labels(where, text):
    """No edge that leads down crosses the label of a plate, whose letters are some 6 wide."""
    labels = [(float(x), float(y), len(name))
              for x, y, name in re.findall(r'<text class="plate-label" x="([-\d.]+)" y="([-\d.]+)">([^<]*)<', text)]
    for path in re.findall(r'<path class="edge"[^>]* d="([^"]*)"', text):
        for x, y in points(path) if "L" not in path else []:
            for end, foot, n in labels:
                if end - 6 * n < x < end and foot - 9 < y < foot + 2:
                    wrong(where, "an edge crosses the label of a plate, at %.0f, %.0f" % (x, y))
                    return


def check_math(where, text):
    for one in re.findall(r"<math.*?</math>", text, re.S):
        try:
            tree = xml.etree.ElementTree.fromstring(one.replace("&nbsp;", " "))
        except xml.etree.ElementTree.ParseError as e:
            wrong(where, "MathML: %s: %s" % (e, one[:200]))
            continue
        for e in tree.iter():
            if e.tag not in MATH:
                wrong(where, "<%s> is no element of MathML Core" % e.tag)
            if e.tag in KIDS and len(e) != KIDS[e.tag]:
                wrong(where, "<%s> has %d parts" % (e.tag, len(e)))


def check_html(where, text, data):
    page = Page(where)
    page.feed(text)
    page.close()
    if page.open:
        wrong(where, "not closed: %s" % page.open[-3:])
    ids = set(page.ids)
    for i in ids:
        if page.ids.count(i) > 1:
            wrong(where, "two elements have the id %s" % i)
    for link in page.links:
        if not link.startswith("#"):
            wrong(where, "a link leaves the page: %s" % link)
        elif link[1:] not in ids:
            wrong(where, "no element has the id of the link %s" % link)
    for name in page.named:
        if not page.names.get(name, "").strip():
            wrong(where, "the name %s of a figure is empty" % name)
    if re.search(r"https?:|@import|url\((?!#)", re.sub(r"<pre.*?</pre>", "", text, flags=re.S)):
        wrong(where, "it loads something")
    for a in range(len(page.shapes)):
        for b in range(a):
            if not apart(page.shapes[a], page.shapes[b]):
                wrong(where, "two nodes of the diagram overlap: %s, %s" % (page.shapes[a], page.shapes[b]))
        for p in page.plates:
            if not apart(page.shapes[a], p) and not inside(page.shapes[a], p):
                wrong(where, "a node lies across the edge of a plate: %s, %s" % (page.shapes[a], p))
    for a in page.plates:
        for b in page.plates:
            if a is not b and not apart(a, b) and not inside(a, b) and not inside(b, a):
                wrong(where, "two plates cross: %s, %s" % (a, b))
    if data["diagram"]["laid_out"] and len(page.shapes) != len(data["diagram"]["nodes"]):
        wrong(where, "%d shapes, %d nodes" % (len(page.shapes), len(data["diagram"]["nodes"])))
    for k in range(len(data["model"]["lines"])):
        if "L%d" % (k + 1) not in ids:
            wrong(where, "line %d of the model has no anchor" % (k + 1))
    for u in data["updates"]:
        card = re.search(r'<article class="card" id="%s">.*?</article>' % u["id"], text, re.S)
        if not card:
            wrong(where, "%s is not shown" % u["id"])
            continue
        if u["line"] and ("#L%d" % u["line"] not in card.group() or "#%s" % u["id"] not in page.links):
            wrong(where, "%s and line %d do not link to each other" % (u["id"], u["line"]))
        for k in u["kernels"]:
            if 'id="kernel-%s"' % k["name"] not in card.group():
                wrong(where, "%s is not beside %s" % (k["name"], u["id"]))
    check_math(where, text)
    check_labels(where, text)


# ---- data: docs/pages.md lists the keys of each object ----

def schema():
    with open(os.path.join(ROOT, "docs/pages.md")) as f:
        return {name: set(re.findall(r"^\| `(\w+)` \|", table, re.M)) for name, table in re.findall(r"^### (\w+)\n(.*?)(?=^#|\Z)", f.read(),
                re.M | re.S)}


def check_keys(where, keys, name, value):
    if not isinstance(value, dict) or set(value) != keys[name]:
        wrong(where, "%s has the keys %s, docs/pages.md %s" % (name, sorted(value), sorted(keys[name])))


def check_rows(where, keys, rows):
    for r in rows:
        check_keys(where, keys, "row", r)
        for f in (r["formula"], r["over"]):
            if f is not None:
                check_keys(where, keys, "formula", f)
        if r["formula"] is None and not r["words"]:
            wrong(where, "a row says nothing")


def check_data(where, keys, data):
    check_keys(where, keys, "document", data)
    check_keys(where, keys, "model", data["model"])
    check_keys(where, keys, "diagram", data["diagram"])
    for n in data["diagram"]["nodes"]:
        check_keys(where, keys, "node", n)
    for p in data["diagram"]["plates"]:
        check_keys(where, keys, "plate", p)
    for e in data["diagram"]["edges"]:
        check_keys(where, keys, "edge", e)
        if not all(0 <= e[k] < len(data["diagram"]["nodes"]) for k in e):
            wrong(where, "an edge between no nodes")
    ids = [u["id"] for u in data["updates"]]
    for u in data["unknowns"]:
        check_keys(where, keys, "unknown", u)
        check_rows(where, keys, u["terms"])
        if not u["updates"] or any(i not in ids for i in u["updates"]):
            wrong(where, "%s is drawn by %s" % (u["name"], u["updates"]))
    for u in data["updates"]:
        check_keys(where, keys, "update", u)
        if u["law"] is None or not u["method"]:
            wrong(where, "%s has no law or no method" % u["id"])
        for s in u["steps"]:
            check_keys(where, keys, "step", s)
            check_rows(where, keys, s["rows"])
        for k in u["kernels"]:
            check_keys(where, keys, "kernel", k)


def check_names(where, data):
    """Each sum that a kernel reads is defined somewhere, once."""
    defined = []
    for u in data["updates"]:
        for step in u["steps"]:
            if step["title"] == "Names":
                defined += [m.group(1) for r in step["rows"] for m in [re.match(r"`(\w+)[^`]* = ", r["words"] or "")] if m]
    for name in set(defined):
        if defined.count(name) > 1:
            wrong(where, "%s is defined %d times" % (name, defined.count(name)))
    for u in data["updates"]:
        for k in u["kernels"]:
            made = k["name"].startswith(("sums_of_", "statistics_", "definitions"))
            for name in set(re.findall(r"s->((?:sum|count)_\w+)", k["text"])) - set(defined):
                if not made and any(re.search(r"%s(\[[^=]*\])? [+]?= " % name, o["text"]) for v in data["updates"] for o in v["kernels"]):
                    continue
                if not made:
                    wrong(where, "%s, which %s reads, is not defined" % (name, k["name"]))


# ---- laws against the terms collected for them ----

class Unknowns(dict):
    """A number for each name, one for each element of an array, positive and never the same."""

    def __missing__(self, name):
        self[name] = Elements(1 + random.random())
        return self[name]


class Elements(float):
    def __new__(cls, v):
        self = super().__new__(cls, v)
        self.at = {}
        return self

    def __getitem__(self, k):
        return self.at.setdefault(k, random.random() + 0.5)


def python(text):
    """sum(j in 1:J, e) as Python has it"""
    while True:
        m = re.search(r"\bsum\((\w+) in (\w+):(\w+|\([^()]*\)), ", text)
        if not m:
            return re.sub(r"\blambda\b", "lambda_", text.replace("^", "**"))
        depth, end = 1, m.end()
        while depth:
            depth += {"(": 1, ")": -1}.get(text[end], 0)
            end += 1
        text = "%ssumOf((%s) for %s in range(int(%s), int(%s) + 1))%s" % (text[:m.start()], text[m.end():end - 1], m.group(1), m.group(2),
                                                                          m.group(3), text[end:])


FUNCTIONS = {"sumOf": math.fsum, "range": range, "int": int, "log": math.log, "sqrt": math.sqrt, "Gamma": math.gamma, "exp": math.exp}


def number(text, values):
    return eval(python(text), values)


def compare_law(where, u, known):
    """How many laws were compared: 0 or 1."""
    m = re.fullmatch(r"(\w+)(\[[\w, ]+\])?(?:\^\(?(-?[\d/]+)\)?)? \| rest ~ (normal|gamma)\(.*?\)(?:, truncated)?", u["law"]["text"])
    steps = {s["title"]: s["rows"] for s in u["steps"]}
    if not m or "Collect" not in steps or u["subject"].endswith("missing"):
        return 0
    name, at, power, law = m.group(1), m.group(2), float(m.group(3) or 1), m.group(4)
    collected = [r["formula"]["text"] for r in steps["Collect"]]
    given = [r["formula"]["text"] for r in steps["Recognise"][1:] if r["formula"]]
    values = Unknowns(known, **FUNCTIONS)
    for index in re.findall(r"\w+", at or ""):
        values[index] = 2

    def densities(x):
        if at:
            key = tuple(values[i] for i in re.findall(r"\w+", at))
            values[python(name)].at[key if len(key) > 1 else key[0]] = x
        else:
            values[python(name)] = x
        for line in given:
            left, _, right = line.partition(" = ")
            if left in ("precision", "mean", "shape", "rate"):
                values[left] = number(right, values)
        terms = math.fsum(number(t, values) for t in collected)
        if law == "normal":
            return terms, -values["precision"] / 2 * (x - values["mean"]) ** 2
        return terms, (values["shape"] * power - 1) * math.log(x) - values["rate"] * x ** power
    a, b = densities(0.7), densities(1.9)
    if abs((a[0] - b[0]) - (a[1] - b[1])) > 1e-9 * (1 + abs(a[0]) + abs(b[0])):
        wrong(where, "%s: the terms collected change by %.12g, the law by %.12g" % (u["id"], a[0] - b[0], a[1] - b[1]))
    return 1


# ---- text ----

def check_graphs(where, dot, mermaid, data):
    nodes, edges = len(data["diagram"]["nodes"]), len(data["diagram"]["edges"]) + sum(n["to_itself"] for n in data["diagram"]["nodes"])
    for name, text, node, edge in (("dot", dot, r"^ *n\d+ \[label=", r"^ *n\d+ -> n\d+;"),
                                   ("mermaid", mermaid, r'^ *n\d+\(?\["', r"^ *n\d+ --> n\d+$")):
        if len(re.findall(node, text, re.M)) != nodes or len(re.findall(edge, text, re.M)) != edges:
            wrong(where, "--emit=%s has other nodes or edges than the data" % name)
    if dot.count("{") != dot.count("}") or mermaid.count("subgraph ") != len(re.findall(r"^ *end$", mermaid, re.M)):
        wrong(where, "a plate of --emit=dot or mermaid does not end")


def check_picture(where, text, data):
    """The file of --emit=svg: it is whole, has the nodes and plates of the data, plates inside each other, and no links."""
    if len(data["diagram"]["nodes"]) > 40: return
    root = xml.etree.ElementTree.fromstring(text)
    of = "{http://www.w3.org/2000/svg}"
    nodes, plates = root.findall(of + "g"), root.findall(of + "rect[@class='plate']")
    names = sorted(n.get("data-s") for n in nodes)
    if names != sorted(n["name"] for n in data["diagram"]["nodes"]): wrong(where, "--emit=svg has other nodes than the data: %s" % names)
    if root.tag != of + "svg" or root.findall(".//" + of + "a") or "var(" in text: wrong(where, "--emit=svg is no picture by itself")
    boxes = [[float(p.get(k)) for k in ("x", "y", "width", "height")] for p in plates]
    for a in boxes:
        for b in boxes:
            across = a[0] < b[0] + b[2] and b[0] < a[0] + a[2] and a[1] < b[1] + b[3] and b[1] < a[1] + a[3]
            within = [p[0] >= q[0] and p[1] >= q[1] and p[0] + p[2] <= q[0] + q[2] and p[1] + p[3] <= q[1] + q[3]
                      for p, q in ((a, b), (b, a))]
            if a is not b and across and not any(within): wrong(where, "plates of --emit=svg cross")


def check_latex(where, text, folder, compile_it):
    depth = 0
    for c in re.sub(r"\\.", "", text):
        depth += {"{": 1, "}": -1}.get(c, 0)
        if depth < 0:
            break
    if depth:
        wrong(where, "braces of the document do not match")
    if not compile_it:
        return
    with open(os.path.join(folder, "page.tex"), "w") as f:
        f.write(text)
    done = subprocess.run(["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "page.tex"], cwd=folder, capture_output=True,
                          text=True, errors="replace")
    if done.returncode:
        wrong(where, "pdflatex: %s" % "\n".join([line for line in done.stdout.splitlines() if line.startswith("!")]
                                                + done.stdout.splitlines()[-12:]))


def check_indices(where, text, data):
    """One index never names two things: behind `over` no two loops have one name, and none has that of an unknown."""
    unknowns = {u["name"] for u in data["unknowns"]}
    for line in text.splitlines():
        names = re.findall(r"(\w+) in ", line.partition("   over ")[2].partition(" where ")[0])
        if len(set(names)) < len(names) or unknowns & set(names):
            wrong(where, "an index names two things: " + line.strip())


def main():
    gmc, folder, models = sys.argv[1], sys.argv[2], sys.argv[3:]
    latex = shutil.which("pdflatex") is not None and len(models) < 100
    os.makedirs(folder, exist_ok=True)
    keys, laws = schema(), 0
    warnings.simplefilter("ignore")
    random.seed(29)
    for model in models:
        said = {}
        for form in ("--explain=html", "--explain=json", "--explain=latex", "--emit=dot", "--emit=mermaid", "--emit=svg"):
            done = subprocess.run([gmc, "-q", model, form], capture_output=True, text=True)
            said[form] = done.stdout
            if done.returncode:
                wrong(model, "%s ended with %d: %s" % (form, done.returncode, done.stderr[-300:]))
        if any(t.startswith(model + ":") and " ended with " in t for t in TOLD):
            continue
        data = json.loads(said["--explain=json"])
        check_indices(model, subprocess.run([gmc, "-q", model, "--explain=full"], capture_output=True, text=True).stdout, data)
        check_data(model, keys, data)
        check_names(model, data)
        check_html(model, said["--explain=html"], data)
        check_graphs(model, said["--emit=dot"], said["--emit=mermaid"], data)
        check_picture(model, said["--emit=svg"], data)
        check_latex(model, said["--explain=latex"], folder, latex)
        for u in data["updates"]:
            try:
                laws += compare_law(model, u, {"N": 3, "J": 4, "T": 5, "p": 3, "K": 3})
            # formulas beyond numbers, sums and powers; logarithms of what is below 0
            except (ArithmeticError, AttributeError, SyntaxError, TypeError, ValueError):
                pass
    print("\n".join(TOLD) or "%d models, %d laws compared with the terms collected for them" % (len(models), laws))
    return 1 if TOLD or (len(models) > 10 and laws < 35) else 0


if __name__ == "__main__":
    sys.exit(main())
