#!/usr/bin/env python3
"""Models that are long in one way each: gmc must read and write them in a time that grows with their length. Limits are ten times what they
take.

    tests/driver/compile_time.py GMC
"""
import subprocess
import sys
import tempfile
import time

HEAD = ("data { int<lower=0> N; int g[N]; real x[N]; real z[N]; real y[N]; }\nprior { mu ~ normal(0, 1); a ~ normal(0, 1); k ~ normal(0, "
        "1); s ~ exponential(1); }\n")


def rows(mean, more=""):
    return HEAD + "likelihood { %s for (i in 1:N) y[i] ~ normal(%s, s); }\n" % (more, mean)


def over(n, form, between=""):
    return between.join(form % {"k": k, "next": k + 1} for k in range(n))


# what is long, the model, seconds at most
MODELS = [
    ("200 conditions, any of which", rows(over(200, "g[i] == %(k)d", " || ") + " ? mu : a"), 4),
    ("200 conditions, all of them", rows(over(200, "g[i] != %(k)d", " && ") + " ? mu : a"), 4),
    ("a chain of 200 choices", rows(over(200, "g[i] == %(k)d ? %(next)d * mu : ") + "a"), 5),
    ("200 choices one in the other", rows(over(200, "g[i] > %(k)d ? ") + "a" + over(200, " : %(next)d * mu")), 5),
    ("30 conditions, any of which", rows(over(30, "g[i] == %(k)d", " || ") + " ? mu : a"), 2),
    ("1000 functions one in the other", rows("sin(" * 1000 + "mu" + ")" * 1000), 3),
    ("1000 squares one in the other", rows("square(" * 1000 + "mu + x[i]" + ")" * 1000), 2),
    ("10 squares with something added", rows("b10", "b0 = mu; " + over(10, "b%(next)d = b%(k)d * b%(k)d + x[1]; ")), 2),
    ("a product of 24 sums", rows(over(24, "(mu + %(next)d * k * x[i] + z[i])", " * ")), 3),
    ("600 scalars with data of their own", "data { real y[600]; }\nprior { s ~ exponential(1); " + over(600, "b%(k)d ~ normal(0, 1); ")
     + "}\nlikelihood { " + over(600, "y[%(next)d] ~ normal(b%(k)d, s); ") + "}\n", 15),
]


def main():
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        for what, model, limit in MODELS:
            with open(folder + "/model.gm", "w") as f:
                f.write(model)
            begin = time.monotonic()
            try:
                status = subprocess.run([sys.argv[1], "-q", folder + "/model.gm", "--emit=cuda"], stdout=subprocess.DEVNULL,
                                        timeout=limit).returncode
            except subprocess.TimeoutExpired:
                status = None
            wrong = "took more than %d s" % limit if status is None else "ended with %d" % status if status else ""
            print("%s: %s" % (what, wrong or "%.2f s" % (time.monotonic() - begin)))
            failed += wrong != ""
    return 1 if failed else 0


sys.exit(main())
