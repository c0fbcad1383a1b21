"""Names as data: the same draws as the same data coded by hand; what could be meant in two ways gets one line and status 2.

    levels.py GMC FOLDER"""
import csv
import glob
import io
import json
import os
import random
import subprocess
import sys

from programs import check, failures, program, write

gmc, work = sys.argv[1:3]
os.chdir(work)
RADON = """data { int N, J; int<lower=1, upper=J> county[N]; vector[N] x; vector[N] y; }
prior { mu ~ normal(0, 10); b ~ normal(0, 10); tau ~ half_normal(0, 5); s ~ half_normal(0, 5); for (j in 1:J) a[j] ~ normal(mu, tau); }
likelihood { for (i in 1:N) y[i] ~ normal(a[county[i]] + b * x[i], s); }
"""
GAMES = """data { int N, T; int<lower=1, upper=T> home[N]; int<lower=1, upper=T> away[N]; int<lower=0> z[N]; vector[N] y; }
prior { for (t in 1:T) skill[t] ~ normal(0, 3); s ~ half_normal(0, 5); }
likelihood { for (i in 1:N) y[i] ~ normal(skill[home[i]] - skill[away[i]] + 0 * z[i], s); }
"""
PLACE = """data { int N, J; int<lower=1, upper=J> county[N]; vector[J] u; vector[N] y; }
prior { b ~ normal(0, 10); s ~ half_normal(0, 5); for (j in 1:J) a[j] ~ normal(b * u[j], 1); }
likelihood { for (i in 1:N) y[i] ~ normal(a[county[i]], s); }
"""
KINDS = """data { int N; int<lower=1, upper=3> kind[N]; vector[N] y; }
prior { for (k in 1:3) m[k] ~ normal(0, 10); s ~ half_normal(0, 5); }
likelihood { for (i in 1:N) y[i] ~ normal(m[kind[i]], s); }
"""


def fit(of, *arguments):
    for old in glob.glob("draws_*"): os.remove(old)
    done = subprocess.run([of, *arguments, "--seed", "3", "--samples", "20", "--warmup", "20", "--chains", "2", "-o", "draws"],
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=120)
    return done.returncode, done.stdout.decode(), done.stderr.decode(errors="replace")


def draws():
    return [line for line in open("draws_2.csv") if line[0] != "#"]


def table(head, rows):
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows([head, *rows])
    return out.getvalue()


def refused(what, words, of, *arguments):
    status, _, said = fit(of, "-q", *arguments)
    check(status == 2 and len(said.splitlines()) == 1 and words in said and not glob.glob("draws_*"), what + " is refused", said)


def same(what, of, arguments, coded):
    status, out, said = fit(of, *arguments)
    if status: return check(False, what, said)
    mine = draws()
    check(fit(of, *coded)[0] == 0 and draws() == mine, what + ": the draws of the same data coded by hand")
    return out, said


random.seed(1)
NAMES = ["Yellow Medicine", "Anoka", "Aitkin", "Ödön", 'St. "Louis"', "Doe, John", "zeta"]
ORDER = sorted(NAMES)
rows = [(NAMES[i % 7] if i < 7 else random.choice(NAMES), round(random.gauss(0, 1), 3), round(random.gauss(0, 1), 3)) for i in range(60)]
coded = [(ORDER.index(c) + 1, x, y) for c, x, y in rows]
radon = program("radon", RADON)
write("names.csv", table(("county", "x", "y"), rows))
write("codes.csv", table(("county", "x", "y"), coded))
write("names.json", json.dumps({"county": [r[0] for r in rows], "x": [r[1] for r in rows], "y": [r[2] for r in rows]}))
for path in ("names.csv", "names.json"):
    out, said = same(path, radon, [path], ["codes.csv", "J=7"])
    check("J: 7, the levels of county, from Aitkin to Ödön" in said, "what was coded is said in one line", said)
    labels = [line[:line.index("]") + 1] for line in out.splitlines() if line.startswith("a[")]
    check(labels == ["a[%s]" % ("'%s'" % n if set(n) & set(',"') else n) for n in ORDER], "the summary has the names", labels)
    check(len({line.index("  ") <= 22 and len(line) for line in out.splitlines() if line.startswith(("a[", "mu"))}) == 1,
         "its columns are aligned", out)
fit(radon, "names.csv")
check(json.load(open("draws_levels.json")) == {"county": ORDER}, "draws_levels.json has the levels in their order")
check("# J: 7, from the levels of county\n" in open("draws_1.csv").readlines(), "the files of draws say where J is from")
for command in ([radon], [gmc]):
    run_of = subprocess.run([*command, "summary", "draws", "--summary", "csv"], stdout=subprocess.PIPE, text=True).stdout
    check([r[0] for r in csv.reader(io.StringIO(run_of)) if r[0].startswith("a[")] == labels, "so has the summary of stored draws", run_of)
record = open("draws_run.json").read()
write("draws_run.json", record.replace('"seed": %d' % json.loads(record)["seed"], '"seed": 12345'))
run_of = subprocess.run([gmc, "summary", "draws", "--summary", "csv"], stdout=subprocess.PIPE, text=True).stdout
check("a[1]" in run_of, "the record of another run names nothing", run_of)
write("draws_run.json", record)
out = subprocess.run([radon, "names.csv", "--seed", "1", "-q", "--summary", "csv"], stdout=subprocess.PIPE).stdout
check([r[0] for r in csv.reader(io.StringIO(out.decode()))][6:] == [
    "a[%s]" % ("'%s'" % n if set(n) & set(',"') else n) for n in ORDER], "the summary as a table has them, quoted")
_, _, said = fit(radon, "codes.csv")
check("J = 7, from the largest value of county" in said, "without J and names it is the largest code", said)
check(not os.path.exists("draws_levels.json"), "codes have no names, and no file of them")

# The order that is asked for.
mine = ["zeta", "Anoka", "Ödön", "Aitkin", "Yellow Medicine", 'St. "Louis"', "Doe, John", "nobody"]
write("mine.csv", table(("county", "x", "y"), [(mine.index(c) + 1, x, y) for c, x, y in rows]))
asked = "county=" + ",".join('"%s"' % n.replace('"', '""') if set(n) & set(',"') else n for n in mine)
same("--levels", radon, ["names.csv", "--levels", asked], ["mine.csv", "J=8"])
same("--levels for codes", radon, ["mine.csv", "--levels", asked], ["mine.csv", "J=8"])
fit(radon, "mine.csv", "--levels", asked)
check(json.load(open("draws_levels.json")) == {"county": mine}, "codes have the names that --levels gives")
write("years.csv", table(("county", "x", "y"), [(2000 + ORDER.index(c), x, y) for c, x, y in rows]))
same("--levels of numbers", radon, ["years.csv", "--levels", "county=2000,2001,2002,2003,2004,2005,2006"], ["codes.csv", "J=7"])
refused("a name that --levels does not have", 'county[1] = "Yellow Medicine" is none of the 2 levels', radon, "names.csv", "--levels",
        "county=Aitkin,Anoka")
refused("a level that is given twice", "Aitkin is there twice", radon, "names.csv", "--levels", "county=Aitkin,Aitkin")
refused("--levels of a real", "x has no levels", radon, "names.csv", "--levels", "x=a,b")
refused("--levels of nothing", "has no nowhere", radon, "names.csv", "--levels", "nowhere=a,b")
refused("a level without a name", "a level has no name", radon, "names.csv", "--levels", "county=a,,b")
refused("another J", "county has 7 levels, and J 9", radon, "names.csv", "J=9")

# What is not understood.
def one(cell, at=5):
    changed = [list(r) for r in rows]
    changed[at][0] = cell
    return changed


refused("a number among names", "`12` is a number, and names stand above it", radon,
        write("bad.csv", table(("county", "x", "y"), one("12"))))
refused("names among numbers", "is a name, and numbers stand above it", radon, write("bad.csv", table(("county", "x", "y"), one("3", 0))))
for other in ("true", "false", "1e9", "0e0", "2.0"):  # what JSON writes as no string is no name, and no code beside names
    mixed = '{"county": [%s], "x": [1, 2, 3], "y": [1, 2, 3]}'
    refused(other + " above names", "numbers stand above it", radon, write("bad.json", mixed % (other + ', "b", "a"')))
    refused(other + " below names", "names stand above it", radon, write("bad.json", mixed % ('"b", "a", ' + other)))
refused("a date among names", "is a date, and names stand above it", radon, "--dates", "2024-01-01",
        write("bad.csv", table(("county", "x", "y"), one("2024-01-02"))))
refused("a name that is missing", "county[6] is missing", radon, write("bad.csv", table(("county", "x", "y"), one("NA"))))
refused("an empty name", "county[6] is missing", radon, write("bad.csv", table(("county", "x", "y"), one(""))))
refused("an empty string", "county[6] is missing", radon, write("bad.json", open("names.json").read().replace('"Doe, John"', '""', 1)))
refused("another encoding", "is not UTF-8", radon, write("bad.csv", table(("county", "x", "y"), rows).encode("latin-1")))
refused("a line break in a name", "control character", radon, write("bad.json", open("names.json").read().replace("Anoka", "An\\noka")))
write("spaces.csv", table(("county", "x", "y"), [(" " + c + "  ", x, y) for c, x, y in rows]))
same("spaces around names", radon, ["spaces.csv"], ["codes.csv", "J=7"])
_, _, said = fit(radon, write("each.csv", table(("county", "x", "y"), [("c%02d" % i, x, y) for i, (_, x, y) in enumerate(rows)])))
check("60 different names in 60 places: is it a factor?" in said, "names that hardly occur again are said", said)
_, _, said = fit(radon, write("single.csv", table(("county", "x", "y"), [("Anoka", x, y) for _, x, y in rows[:1]])))
check("J: 1, the one level of county, Anoka" in said and "is it a factor" not in said, "a single level is said", said)

# Several variables with the same levels; arrays by place.
games = program("games", GAMES)
pairs = [("b", "a", 1, 0.5), ("c", "b", 0, -1.0), ("a", "d", 2, 2.0), ("c", "a", 1, 0.1)]
head = ("home", "away", "z", "y")
write("coded.csv", table(head, [("abcd".index(h) + 1, "abcd".index(g) + 1, z, y) for h, g, z, y in pairs]))
_, said = same("two variables, neither of which has all levels", games, [write("g.csv", table(head, pairs))], ["coded.csv", "T=4"])
check("T: 4, the levels of home, away, from a to d" in said, "both are said", said)
mixed = write("mixed.csv", table(head, [(h, "abcd".index(g) + 1, z, y) for h, g, z, y in pairs]))
refused("one by name, the other by number", "away is given by number, and home by name", games, mixed)
same("one by number, in an order that is given", games, [mixed, "--levels", "home=a,b,c,d"], ["coded.csv", "T=4"])
refused("levels of both", "have the same levels", games, "g.csv", "--levels", "home=a,b,c,d", "--levels", "away=a,b,c,d")
refused("a name where none may be", "`x` is not a number", games, write("bad.csv", table(head, [("b", "a", "x", 0.5)])))
place = program("place", PLACE)
write("p.json", json.dumps({"county": ["b", "a", "b"], "u": [1.0, 2.0], "y": [0, 1, 2]}))
write("q.json", json.dumps({"county": [1, 2, 1], "u": [1.0, 2.0], "y": [0, 1, 2]}))
refused("an array by place", "u is given by number, and county by name", place, "p.json")
same("an array by place, in an order that is given", place, ["p.json", "--levels", "county=b,a"], ["q.json"])
kinds = program("kinds", KINDS)
write("k.json", json.dumps({"kind": ["q", "r", "p", "q"], "y": [1, 2, 3, 4]}))
write("l.json", json.dumps({"kind": [2, 3, 1, 2], "y": [1, 2, 3, 4]}))
same("a bound that is a number", kinds, ["k.json"], ["l.json"])
refused("fewer levels than a bound that is a number", "kind has 2 levels, and its upper bound is 3", kinds,
        write("bad.json", json.dumps({"kind": ["q", "r"], "y": [1, 2]})))

# Other data are coded by the levels of the run; dates.
PREDICTS = RADON + "predict { for (i in 1:N) m[i] = a[county[i]]; }\n"
predicts = program("predicts", PREDICTS)
write("new.csv", table(("county", "x", "y"), [("Ödön", 0, 0), ("Aitkin", 0, 0)]))
write("newcodes.csv", table(("county", "x", "y"), [(7, 0, 0), (1, 0, 0)]))
fit(predicts, "names.csv", "--new", "new.csv")
mine = open("draws_new.csv").read()
fit(predicts, "codes.csv", "J=7", "--new", "newcodes.csv")
check(mine == open("draws_new.csv").read(), "new data are coded by the levels of the run")
refused("a level that the run does not have", 'county[1] = "Nowhere" is none of the 7 levels of the run', predicts, "names.csv",
        "--new", write("bad.csv", table(("county", "x", "y"), [("Nowhere", 0, 0)])))
refused("names for what were numbers", "was given by number in the run", predicts, "codes.csv", "J=7", "--new", "new.csv")
Y = (0.1, 0.9, -0.4, 0.3)           # equal ones would leave a residual of rounding
days = ["2024-02-28", "2024-03-01", "1999-12-31", "2100-03-01"]
write("d.csv", table(("county", "x", "y"), [(1, d, y) for d, y in zip(days, Y)]))
write("e.csv", table(("county", "x", "y"), [(1, n, y) for n, y in zip((-1, 1, -8826, 27759), Y)]))
same("dates", radon, ["d.csv", "--dates", "2024-02-29"], ["e.csv"])
refused("a date without --dates", "`2024-02-28` is a date: --dates DAY reads dates as numbers", radon, "d.csv")

# A time of day is a part of a day, of any of its forms; what it is not is refused, and so are truth values and names where none are read.
head, when = "county,x,y", ["2024-03-01", "2024-03-01 06:00", "2024-03-02T12:00:00", "2024-02-29T18:00:00.000Z"]
write("t.csv", table(["county", "x", "y"], [(c, x, y) for c, x, y in zip("abab", when, Y)]))
write("u.csv", table(["county", "x", "y"], [(c, x, y) for c, x, y in zip("abab", (1, 1.25, 2.5, 0.75), Y)]))
same("times of day", radon, ["t.csv", "--dates", "2024-02-29"], ["u.csv"])
for text, words in (("2024-03-01 24:00", "has no time of day"), ("2024-03-01T10", "has no time of day"),
                    ("2024-03-01 10:61", "has no time of day"),
                    ("2024-03-01T10:00+02:00", "has a time zone"), ("1/3/2024", "dates are read as 2024-03-01"),
                    ("2024-02-30 10:00", "is no day of the calendar")):
    refused(text, words, radon, "--dates", "2024-01-01", write("bad.csv", table(["county", "x", "y"], [("a", text, 1)])))
refused("a time where whole numbers are wanted", "is not a whole number", games, "--dates", "2024-01-01",
        write("bad.csv", table(["home", "away", "z", "y"], [("a", "b", "2024-03-01 12:00", 1)])))
refused("yes for 1", "truth values are written true and false", games,
        write("bad.csv", table(["home", "away", "z", "y"], [("a", "b", "yes", 1)])))
refused("a name of no level", "names are read where both bounds are declared", games,
        write("bad.csv", table(["home", "away", "z", "y"], [("a", "b", "many", 1)])))
refused("a control character in the name of a column", "the name of column 3 holds a control character (1) behind `y`", radon,
        write("bad.csv", "county,x,y\x01\na,1,2\n"))

# A lower bound of 1 goes without saying; what has none is told how the size would follow.
bare = program("bare", RADON.replace("<lower=1, upper=J>", "<upper=J>"))
write("n.csv", table(["county", "x", "y"], [("b", 1, 0.5), ("a", 2, 1.5)]))
same("no lower bound", bare, ["n.csv"], [write("c.csv", table(["county", "x", "y"], [(2, 1, 0.5), (1, 2, 1.5)])), "J=2"])
same("no lower bound, by number", bare, ["c.csv"], ["c.csv", "J=2"])
none = program("none", RADON.replace("<lower=1, upper=J>", ""))
check("follow from what it bounds, as in int<lower=1, upper=J> g[N]" in fit(none, "c.csv")[2], "how a size would follow is said")
for first, then in (("7", "2024-03-01"), ("2024-03-01", "7")):
    refused("a number and dates", "`%s` is a %s, and %s stand above it: all are dates, or none" % (
        (then,) + (("date", "numbers") if first == "7" else ("number", "dates"))), radon, "--dates", "2024-01-01",
        write("mixed.csv", table(["county", "x", "y"], [("a", first, 1), ("b", then, 2)])))
refused("a number below dates in an object", "x[2] = 4 is a number, and dates stand above it", radon, "--dates", "2024-01-01",
        write("mixed.json", '{"county": ["a", "b"], "x": ["2024-01-03", 4], "y": [1, 2]}'))
refused("a date that is none", "`2023-02-29` is no day of the calendar", radon, "--dates", "2024-01-01",
        write("bad.csv", table(("county", "x", "y"), [(1, "2023-02-29", 1)])))
ALIKE = (("Caf\u00e9", "Cafe\u0301"), ("Vi\u1ec7t", "Vie\u0323\u0302t"))
APART = (("Cafe", "Cafe\u0301"), ("Caf\u00e9", "Cafe"), ("\u00e9a", "\u00e9b"), ("Cafe\u0301", "Cafe\u0300"), ("Cafe\u0301s", "Caf\u00e9"))
for one, other in ALIKE + APART:
    alike = (one, other) in ALIKE
    status, _, said = fit(radon, write("alike.csv", table(["county", "x", "y"], [(one, 1, 1), (other, 2, 2), (one, 3, 1), (other, 0, 1)])))
    named = any("%s and %s are two levels" % pair in said for pair in ((one, other), (other, one)))
    check(status == 0 and ("may be one name" in said) == alike == named, "one name, or two: %s and %s," % (ascii(one), ascii(other)), said)
# So are levels of new data: the fit has one of the two ways, as one letter.
one, other = ALIKE[0]
rows = write("fitted.csv", table(["county", "x", "y"], [(one, 1, 1), ("b", 2, 2), (one, 3, 1), ("b", 0, 1)]))
subprocess.run([radon, rows, "-o", "fitted", "--overwrite", "-q", "--no-summary", "--params", "all"], check=True)
for name, alike in ((other, True), ("c", False)):
    write("later.csv", table(["county", "x"], [(name, 1)]))
    for more, status in (([], 2), (["--new-levels", "draw"], 0)):
        done = subprocess.run([radon, "predict", "fitted", "--new", "later.csv", "-o", "later", "--overwrite", *more],
                              capture_output=True, text=True)
        words = "may be the same name in another way" if status else "may be one name"
        check(done.returncode == status and (words in done.stderr) == alike, "a level of new data: %s" % ascii(name), done.stderr)
refused("a level called NA", "a level that is called NA is named by --levels county=A,NA,...", radon,
        write("bad.csv", table(["county", "x", "y"], [("a", 1, 1), ("NA", 2, 1)])))
refused("a text with a NUL", "\\u0000 stands in a text, which may not hold it", radon,
        write("bad.json", '{"county": ["a\\u0000b", "c"], "x": [1, 2], "y": [1, 2]}'))
sys.exit(failures() > 0)
