"""Sparse matrices of scipy.sparse.save_npz: the draws of a program are those from the same matrix as a dense .npy file, whatever format,
order and compression the file has; and every file that is not right is refused in one line that says what is wrong, also after random
damage.

    npz.py GMC DIRECTORY"""
import json
import os
import random
import subprocess
import sys

import numpy as np
import scipy.sparse as sp

from programs import check, compiled, failures

gmc, work = sys.argv[1:3]
MODEL = """data { int N, p; matrix[N, p] X; vector[N] y; }
prior { vector[p] beta ~ normal(0, 2); s ~ half_cauchy(0, 1); }
likelihood { y ~ normal(X * beta, s); }"""
WHOLE = ("data { int N, p; int X[N, p]; vector[N] y; }\nprior { m ~ normal(0, 1); }\nlikelihood { for (i in 1:N) y[i] ~ normal(m + X[i, "
         "1], 1); }")
os.makedirs(work, exist_ok=True)
os.chdir(work)


def run(file, program="./lines", n=30):
    ran = subprocess.run([program, "y.json", "X=" + file, "--samples", str(n), "--warmup", "5", "--chains", "1", "--seed", "3",
                          "--no-summary", "-q",
                          "--overwrite", "-o", "draws", "--threads", "1"], capture_output=True, text=True, errors="replace")
    if ran.returncode == 0:
        with open("draws_1.csv") as f: text = f.read().split("# \n#  Elapsed")[0]        # times and files differ
        return 0, "".join(l for l in text.splitlines(True) if not l.startswith(("# start_datetime", "# data file")))
    return ran.returncode, ran.stderr.strip()


def saved(M, name="x.npz", **how):
    sp.save_npz(name, M, **how)
    return name


def refused(file, says, program="./lines"):
    status, text = run(file, program)
    check(status == 2 and says in text and text.count("\n") == 0, "%s: %s" % (file, text[:200]))


rng = np.random.default_rng(1)
N, p = 300, 200
X = sp.random(N, p, density=0.02, random_state=1, format="csr")
compiled("lines", MODEL)
compiled("whole", WHOLE)
with open("y.json", "w") as f: json.dump({"y": (np.asarray(X.sum(axis=1)).ravel() + rng.normal(size=N)).tolist()}, f)
np.save("dense.npy", X.toarray())
status, expected = run("dense.npy")
check(status == 0, "a dense .npy file")
for M in (X, X.tocsc(), X.tocoo(), sp.csr_array(X)):
    for packed in (True, False): check(run(saved(M, compressed=packed)) == (0, expected),
                                       "%s %s" % (M.format, "compressed" if packed else "as it is"))
c, order = X.tocoo(), rng.permutation(X.nnz)
def twice(a): return np.concatenate([a[order], a])

check(run(saved(sp.coo_matrix((twice(c.data / 2), (twice(c.row), twice(c.col))), shape=(N, p)))) == (0, expected),
      "entries in any order, two of each place")
empty = sp.csr_matrix((N, p))
np.save("zeros.npy", np.zeros((N, p)))
check(run(saved(empty)) == run("zeros.npy"), "no entries")
np.save("whole.npy", np.round(10 * X.toarray()).astype("<i4"))
check(run(saved((X * 10).rint().astype(np.int64)), "./whole") == run("whole.npy", "./whole"), "whole numbers")
refused(saved(X.tobsr(), "bsr.npz"), "in the format `bsr` is not read")
refused(saved(X.astype(complex), "complex.npz"), "element type <c16 is not read")
refused(saved(X[:299], "rows.npz"), "should have")
for value, says in ((np.nan, "X[2, 76] is missing"), (np.inf, "X[2, 76] = inf is infinite")):
    M = X.copy()
    M.data[5] = value
    refused(saved(M, "value.npz"), says)
np.savez("arrays.npz", X=X.toarray())
refused("arrays.npz", "holds no matrix of scipy.sparse.save_npz")
with open("text.npz", "wb") as f: f.write(b"no archive " * 10)
refused("text.npz", "is not a .npz file")
whole = open(saved(X, "packed.npz"), "rb").read()
plain = open(saved(X, "plain.npz", compressed=False), "rb").read()
with open("cut.npz", "wb") as f: f.write(whole[:len(whole) // 2])
refused("cut.npz", "is not a .npz file, or not all of one")
with open("flipped.npz", "wb") as f: f.write(plain[:300] + bytes([plain[300] ^ 1]) + plain[301:])
refused("flipped.npz", "damaged")
parts = dict(format=np.array(b"csr"), shape=np.array([N, p]), indptr=X.indptr, indices=X.indices, data=X.data)
high = X.indptr.copy()
high[4] = 100000
for name, change, says in (("column", {"indices": np.where(np.arange(X.nnz) == 3, p, X.indices)},
                            "entry 3 is in column 200, but columns are 0 to 199"),
                            ("ends", {"indptr": X.indptr[:-1]}, "indptr.npy: has 300 elements, but should have 301"),
                           ("high", {"indptr": high}, "element 4 is 100000"), ("few", {"data": X.data[:-3]},
                                   "element 300 is 1200: it should begin with 0, and go up to 1197"),
                                   ("real", {"indices": X.indices.astype(float)}, "no list of whole numbers"),
                           ("shape", {"shape": np.array([N, -1])}, "-1 is no size"),
                           ("huge", {"shape": np.array([10 ** 9, 10 ** 9])}, "more than there is room for"),
                           ("rank", {"data": X.data[:, None]}, "no list of numbers"),
                           ("lacks", {"indices": None}, "it has no indices.npy")):
    np.savez(name + ".npz", **{k: v for k, v in {**parts, **change}.items() if v is not None})
    refused(name + ".npz", says)
random.seed(1)
crashed = 0
for _ in range(40):
    b = bytearray(random.choice((whole, plain)))
    for _ in range(random.choice((1, 3, 20))): b[random.randrange(len(b))] = random.randrange(256)
    with open("damaged.npz", "wb") as f: f.write(b[:random.randrange(len(b))] if random.random() < 0.2 else b)
    status, text = run("damaged.npz", n=2)
    crashed += status not in (0, 2) or (status == 2 and not text)
check(crashed == 0, "40 files with random damage are read or refused")
sys.exit(failures() > 0)
