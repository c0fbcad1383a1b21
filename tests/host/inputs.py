"""Ways to give the same data: draws are the same to the last bit, and what is wrong gets one line and status 2.

    inputs.py GMC FOLDER"""
import gzip
import json
import os
import subprocess
import sys

from programs import check, failures, program

gmc, work = sys.argv[1:3]
MODEL = """data { int N, J; int<lower=0, upper=1> z[N]; int<lower=1> g[N]; vector[N] y; }
prior { for (j in 1:J) mu[j] ~ normal(0, 10); b ~ normal(0, 1); s ~ half_normal(0, 5); }
likelihood { for (i in 1:N) y[i] ~ normal(mu[g[i]] + b * z[i], s); }
"""
ROWS = """data { int G, K; int<lower=0> n[G]; vector<lower=0> y[g in 1:G][n[g]]; int<lower=1, upper=K> f[g in 1:G][n[g]]; }
prior { m ~ normal(K, 1); }
likelihood { y ~ normal(m, 1); for (g in 1:G) for (i in 1:n[g]) f[g, i] ~ categorical(rep_vector(1.0 / K, K)); }
"""
DATA = {"N": 4, "J": 2, "z": [1, 0, 1, 0], "g": [1, 2, 2, 1], "y": [0.5, None, -2e-3, 1.25]}


def path(name, content=None):
    where = os.path.join(work, name)
    if content is not None:
        with open(where, "wb") as f:
            f.write(content if isinstance(content, bytes) else content.encode())
    return where


def fit(arguments, given=b"", shell=None, quiet=False):
    command = [path("fit")] + arguments + ["--seed", "3", "--samples", "20", "--warmup", "20", "--chains", "1",
                                           "--overwrite", "-o", path("draws")]
    command += ["-q"] if quiet else []
    if shell:
        command = ["bash", "-c", '%s "$@" %s' % (path("fit"), shell), "-"] + command[1:]
    return subprocess.run(command, input=given, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=120)


def draws_of(what, arguments, given=b"", shell=None):
    if os.path.exists(path("draws_1.csv")):
        os.remove(path("draws_1.csv"))
    done = fit(arguments, given, shell)
    if done.returncode:
        check(False, what, done.stderr.decode())
        return None, ""
    with open(path("draws_1.csv")) as f:
        return [line for line in f if line[0] != "#"], done.stderr.decode()


def rows():
    """The template of rows of different lengths asks for what nothing else gives, in the words of the model."""
    subprocess.run([gmc, "-q", "--no-device", path("rows.gm", ROWS), "-o", path("rows")], check=True)
    done = subprocess.run([path("rows"), "--data-template"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=True)
    asked = {"K": "int K", "y": "real<lower=0> y[G, n]", "f": "int<lower=1, upper=K> f[G, n]"}
    check(json.loads(done.stdout) == asked, "a template of rows", done.stdout.decode())
    check(b"n may be left out: it follows from the rows of the other data" in done.stderr, "what rows give is said", done.stderr.decode())
    below = {"K": 2, "y": [[1, 2], [], [3, -1, 5]], "f": [[1, 2], [], [1, 1, 1]]}
    for data, says in ((below, "y[3, 2] = -1 is below its lower bound 0 (declared real<lower=0> y[G, n], rows.gm:1)"),
                       (dict(below, f=[[1, 2], [1], [1, 1]]), "row 2 of f has 1 element, and n[2] is 0"),
                       ({k: below[k] for k in "yf"}, "it bounds f, whose largest value is 2: K=2 on the command line")):
        done = subprocess.run([path("rows"), path("rows.json", json.dumps(data))], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        check(done.returncode == 2 and says in done.stderr.decode(), says, done.stderr.decode())


def main():
    subprocess.run([gmc, "-q", "--no-device", path("model.gm", MODEL), "-o", path("fit")], check=True)
    text = json.dumps(DATA)
    plain, said = draws_of("an object", [path("data.json", text)])
    check("1 of 4 values of y is missing, and is drawn" in said, "what is missing is said", said)
    table = "z,g,y\n1,1,0.5\n0,2,\n1,2,-0.002\n0,1,1.25\n"
    same = {"standard input": (["-"], text.encode(), None), "a table from standard input": (["-", "J=2"], table.encode(), None),
            "a pipe": ([], b"", "<(cat %s)" % path("data.json")), "a packed object": ([path("data.json.gz", gzip.compress(text.encode()))],
                                                                                     b"", None),
            "a packed table": ([path("data.csv.gz", gzip.compress(table.encode())), "J=2"], b"", None),
            "a packed object from standard input": (["-"], gzip.compress(text.encode()), None),
            "a packed table from a pipe": (["J=2"], b"", "<(gzip -c %s)" % path("table.csv", table)),
            "a packed object that its name does not call packed": ([path("unnamed.json", gzip.compress(text.encode()))], b"", None),
            "NaN of Python": ([path("nan.json", text.replace("null", "NaN"))], b"", None),
            "truth values": ([path("true.json", text.replace("[1, 0, 1, 0]", "[true, false, true, false]"))], b"", None),
            "truth values of R": ([path("true.csv", table.replace("\n1,", "\nTRUE,").replace("\n0,", "\nFALSE,")), "J=2"], b"", None),
            "#N/A at the begin of a row": ([path("na.csv", "y,z,g\n0.5,1,1\n#N/A,0,2\n-0.002,1,2\n1.25,0,1\n"), "J=2"], b"", None)}
    for what, given in same.items():
        check(draws_of(what, *given)[0] == plain, what, "other draws")
    more = dict(DATA, size=3, note='NaN -Infinity \\" NaN')
    done = fit([path("more.json", json.dumps(more))])
    check(done.returncode == 0 and b"size is not in the model's data, and is not read" in done.stderr, "what is not read is said")
    wrong = {"an infinite response": ([path("inf.json", text.replace("0.5", "-Infinity"))], b"", "y[1] = -inf is infinite"),
             "a word that JSON has not": ([path("word.json", text.replace("0.5", "nan"))], b"", "word.json:1:64: invalid token near 'nan'"),
             "a truth value for a real": ([path("real.json", text.replace("0.5", "true"))], b"", "y[1] = true is not a number"),
             "a packed file that is cut": ([path("cut.json.gz", gzip.compress(text.encode())[:40])], b"", "cut.json.gz: is damaged"),
             "a packed file with something behind it": ([path("more.json.gz", gzip.compress(text.encode()) + b"more")], b"",
                                                        "more.json.gz: is packed, and something else stands behind what is packed"),
             "a file that is packed twice": ([path("twice.json.gz", gzip.compress(gzip.compress(text.encode())))], b"",
                                             "twice.json.gz: is packed more than once"),
             "standard input that is packed and cut": (["-"], gzip.compress(text.encode())[:40], "-: is damaged"),
             "standard input twice": (["-", "-"], text.encode(), "-: standard input can be read once"),
             "a date without --dates": ([path("date.json", text.replace("0.5", '"2024-03-01"'))], b"",
                                        'y[1] = "2024-03-01" is a date: --dates DAY reads dates as numbers, days from DAY on'),
             "a time of day": (["J=2", path("time.csv", table.replace("0.5", "2024-03-01T12:30:00Z"))], b"",
                               "`2024-03-01T12:30:00Z` is a date: --dates DAY reads dates as numbers"),
             "a comma in a number": (["J=2", path("comma.csv", table.replace(",", ";").replace("0.5", "0,5"))], b"",
                                     "`0,5` is not a number: decimals have a point"),
             "names without an upper bound": ([path("names.json", text.replace("[1, 2, 2, 1]", '["a", "b", "b", "a"]'))], b"",
                                              'g[1] = "a" is not a number; names are read where both bounds are declared'),
             "nothing": (["-"], b"", "-: is empty"),
             "a lookup beyond its table": ([path("up.json", text.replace("[1, 2, 2, 1]", "[1, 2, 3, 1]"))], b"",
                                           "mu[3] does not exist: g[3] is 3, and its subscript goes from 1 to 2"),
             "another ending": ([path("data.yaml", "N: 3")], b"", "data files end in")}
    for what, (arguments, given, says) in wrong.items():
        done = fit(arguments, given, quiet=True)
        said = done.stderr.decode()
        check(done.returncode == 2 and says in said and said.count("\n") == 1, what, "status %d, %s" % (done.returncode, said))
    rows()
    covariates()
    zero_variances()
    return failures() > 0


# Covariates, and what draws those that are missing.
LAWS = [("vector[N]", "x", "x[i]", [0.5, None, 2], "x ~ normal(m_x, s_x)", "m_x ~ normal(0, 1); s_x ~ half_normal(0, 1);"),
        ("vector<lower=0>[N]", "dose", "dose[i]", [0.5, None, 2], "dose ~ lognormal(m_dose, s_dose)",
         "m_dose ~ normal(0, 1); s_dose ~ half_normal(0, 1);"),
        ("vector<lower=0, upper=1>[N]", "q", "q[i]", [0.5, None, 0.2], "q ~ beta(a_q, b_q)", "a_q ~ gamma(2, 1); b_q ~ gamma(2, 1);"),
        ("matrix[N, 2]", "X", "X[i, 1] + X[i, 2]", [[0.5, 1], [2, None], [1, 1]], "X[i, j] ~ normal(m_X[j], s_X[j])",
         "for (j in 1:2) { m_X[j] ~ normal(0, 1); s_X[j] ~ half_normal(0, 1); }"),
        ("array[N] int<lower=0, upper=1>", "z", "z[i]", [1, None, 0], "z ~ bernoulli(p_z)", "p_z ~ beta(1, 1);"),
        ("array[N] int<lower=1, upper=3>", "g", "g[i]", [3, None, 2], "g ~ categorical(w_g)", "w_g ~ dirichlet(rep_vector(1, 3));"),
        ("array[N] int<lower=0>", "k", "k[i]", [4, None, 0], "k ~ poisson(r_k)", "r_k ~ gamma(1, 1);")]


def covariates():
    os.chdir(work)
    for kind, name, term, values, law, priors in LAWS:
        kind, size = (kind.split("] ")[1], "[N]") if kind.startswith("array") else (kind, "")
        model = "data { int N; %s %s%s; vector[N] y; }\nprior { a ~ normal(0, 1); %%s }\nlikelihood { %%sy ~ %s; }\n"
        model = model % (kind, name, size, "normal(a, 1)")
        model = model.replace("y ~ normal(a, 1)", "for (i in 1:N) y[i] ~ normal(a + %s, 1)" % term)
        with open("x.json", "w") as f: json.dump({"N": 3, name: values, "y": [1, 2, 3]}, f)
        run = [program("covariate", model % ("", "")), "x.json", "--seed", "1", "-q", "--samples", "20", "--warmup", "20"]
        done = subprocess.run(run, capture_output=True, text=True)
        check(done.returncode == 2 and done.stderr.count("\n") == 1 and "`%s;` there" % law in done.stderr, name, done.stderr)
        statement = "for (i in 1:N, j in 1:2) %s; " % law if "[i, j]" in law else law + "; "
        program("covariate", model % (priors, statement))
        done = subprocess.run(run, capture_output=True, text=True)
        check(done.returncode == 0, "which does it", done.stderr[-300:])


def zero_variances():
    """Standard deviations of one replicate: as data, as a definition of data, as a term, by the data themselves."""
    os.chdir(work)
    sources = """data { int K, P; matrix[K, P] m; matrix[K, P] sd; vector[P] y; }
let { for (k in 1:K, j in 1:P) twice[k, j] = 2 * sd[k, j]; }
prior { p ~ dirichlet(rep_vector(1, K)); for (k in 1:K, j in 1:P) mu[k, j] ~ normal(m[k, j], %s); }
likelihood { for (j in 1:P) y[j] ~ normal(dot_product(p, mu[, j]), 1); }
"""
    data = {"K": 3, "P": 2, "m": [[1, 2], [3, 4], [5, 6]], "sd": [[1, 1], [1, 0], [1, 1]], "y": [2, 3]}
    with open("sources.json", "w") as f: json.dump(data, f)
    for scale, says in (("sd[k, j]", "sd[2, 2] = 0, the `sigma` of normal, must be above 0"),
                        ("twice[k, j]", "twice[2, 2] = 0, the `sigma` of normal, must be above 0"),
                        ("sd[k, j] - 1", "sd[1, 1] = 1: sd[k, j] - 1, the `sigma` of normal, must be above 0")):
        done = subprocess.run([program("sources", sources % scale), "sources.json", "-q"], capture_output=True, text=True)
        check(done.returncode == 2 and says in done.stderr and done.stderr.count("\n") == 1, scale, done.stderr)
        check(("One replicate" in done.stderr) == (" = 0" in says), "what it often comes from", done.stderr)
    precisions = program("precisions", """data { int N; vector[N] y, t; }
prior { mu ~ normal(0, 1); }
likelihood { for (i in 1:N) y[i] ~ normal(mu, 1 / sqrt(t[i])); }
""")
    with open("precisions.json", "w") as f: json.dump({"y": [1, 2], "t": [1, 0]}, f)
    done = subprocess.run([precisions, "precisions.json", "-q"], capture_output=True, text=True)
    check(done.returncode == 2 and "t[2] = 0: 1/sqrt(t[i]), the `sigma` of normal, must be finite" in done.stderr and
          "One replicate" not in done.stderr, "a precision of 0 is something else", done.stderr)
    variances = program("variances", """data { int N; int<lower=1> J; int<lower=1, upper=J> g[N]; vector[N] v; vector[J] m; }
let { for (j in 1:J) { n[j] = sum(i in 1:N, g[i] == j ? 1 : 0); mean_v[j] = sum(i in 1:N, (g[i] == j ? 1 : 0) * v[i]) / n[j];
      var_v[j] = sum(i in 1:N, (g[i] == j ? 1 : 0) * (v[i] - mean_v[j])^2) / n[j]; } }
prior { mu ~ normal(0, 1); }
likelihood { for (j in 1:J) m[j] ~ normal(mu, sqrt(var_v[j])); }
""")
    for v, status in (([1, 2, 3, 4, 5], 2), ([1, 2, 3, 4, 5, 6], 0)):
        with open("variances.json", "w") as f: json.dump({"J": 3, "g": [1, 1, 2, 3, 3, 2][:len(v)], "v": v, "m": [1, 2, 3]}, f)
        done = subprocess.run([variances, "variances.json", "-q", "--samples", "20"], capture_output=True, text=True)
        check(done.returncode == status and ("var_v[2] = 0: sqrt(var_v[j]), the" in done.stderr) == (status == 2), v, done.stderr)


sys.exit(main())
