"""cost.py GMC: compiles generated models (without the C compiler), each within 1 GB of address space (half of it is the stack) and 20 s of
processor time."""
import resource, subprocess, sys, tempfile, os

MEMORY, SECONDS = 3 << 29, 20        # the compiler's stack is 512 MB of address space; what is touched is far less


def model(prior, likelihood, data="real y;"):
    return "data { %s }\nprior {\n%s\n}\nlikelihood {\n%s\n}\n" % (data, "\n".join(prior), "\n".join(likelihood))


def normals(n, name="m"):
    return ["  %s%d ~ normal(0, 1);" % (name, i) for i in range(1, n + 1)]


MODELS = {
    "1000 scalars": model(normals(1000), ["  y ~ normal(m1, 1);"]),
    "1000 scalars, each observed": model(normals(1000), ["  y[%d] ~ normal(m%d, 1);" % (i, i) for i in range(1, 1001)], "vector[1000] y;"),
    "1000 statements that share an unknown": model(normals(1), ["  y[%d] ~ normal(%sm1, 1);" % (i, "-" * (i % 2)) for i in range(1, 1001)],
                                                   "vector[1000] y;"),
    "1000 unknowns around one": model(["  c ~ normal(0, 1);"] + ["  m%d ~ normal(c, 1);" % i for i in range(1, 1001)],
                                      ["  y[%d] ~ normal(m%d, 1);" % (i, i) for i in range(1, 1001)], "vector[1000] y;"),
    "60 nested calls": model(normals(1), ["  y ~ normal(%sm1%s, 1);" % ("sin(" * 60, ")" * 60)]),
    "a sum of 1500 terms": model(normals(1), ["  y ~ normal(%s, 1);" % " + ".join("sin(%d*m1)" % i for i in range(1, 1501))]),
    "1000 parentheses": model(normals(1), ["  y ~ normal(%sm1%s, 1);" % ("(" * 1000, ")" * 1000)]),
    "a chain of 60 definitions, each used twice": model(normals(1) + ["  d0 = m1;"] + ["  d%d = 0.5 * d%d + sin(d%d);" % (i, i - 1, i - 1)
            for i in range(1, 61)],
                                                        ["  y ~ normal(d60, 1);"]),
    "a chain of 60 products": model(normals(1) + ["  d0 = m1;"] + ["  d%d = x * d%d + sin(d%d);" % (i, i - 1, i - 1) for i in range(1, 61)],
                                    ["  y ~ normal(d60, 1);"], "real x; real y;"),
    "a matrix of 900 numbers": model(["  vector[30] b ~ normal(0, 1);", "  A = [%s];"
                                      % ", ".join("[%s]" % ", ".join("%d.5" % ((7 * i + 3 * k) % 11) for k in range(30))
                                                  for i in range(30))],
                                     ["  y ~ normal(A * b, 1);"], "vector[30] y;"),
    "300 definitions of vectors": model(normals(1) + ["  e0 = x * m1;"] + ["  e%d = x * m1 + e%d * 0.5;" % (i, i - 1)
                                                                           for i in range(1, 301)],
                                        ["  y ~ normal(e300, 1);"], "int N; vector[N] x; vector[N] y;"),
}


# which no few steps of a proof bring to a number: without that, 2 s each
def sum_of_labels(i):
    return " + ".join("%d * k[1]" % i if j == 1 else "k[%d]" % j for j in range(1, 13))


MODELS["12 subscripts, each the sum of 12 labels"] = model(
    ["  for (j in 1:J) u[j] ~ normal(0, 1);"], ["  k ~ categorical([0.5, 0.5]);"] +
    ["  y[%d] ~ normal(u[%s], 1);" % (i, sum_of_labels(i)) for i in range(1, 13)],
    "int J; int<lower=1, upper=2> k[12]; vector[12] y;")


def limits():
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))


failed = 0
with tempfile.TemporaryDirectory() as folder:
    path = os.path.join(folder, "model.gm")
    for name, text in MODELS.items():
        with open(path, "w") as f: f.write(text)
        run = subprocess.run([sys.argv[1], "-q", "--emit=cuda", path], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
                             preexec_fn=limits)
        if run.returncode != 0:
            print("%s: ended with %d: %s" % (name, run.returncode, run.stderr[:200]))
            failed = 1
sys.exit(failed)
