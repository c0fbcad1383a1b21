"""fit relabel: permutations are the best of all K!, whatever labels the draws had to begin with; and files that are no draws are refused.

    relabel.py GMC DIRECTORY

Draws are made here, with known labels, and permuted at random. No false alarms but for ties: the numbers are real and fixed by a seed."""
import itertools
import json
import os
import subprocess
import sys

import numpy as np

from programs import by_chain, check, failures, program

gmc, work = sys.argv[1:3]
MODEL = """
data { int<lower=1> K; int<lower=0> N; real y[N]; }
prior {
  w ~ dirichlet(rep_vector(1, K));
  for (k in 1:K) { mu[k] ~ normal(0, 10); A[k] ~ dirichlet(rep_vector(1, K)); }
  s ~ half_cauchy(0, 1);
}
latent {
  c[1] ~ categorical(w);
  for (i in 2:N) c[i] ~ categorical(A[c[i - 1]]);
}
likelihood { for (i in 1:N) y[i] ~ normal(mu[c[i]], s); }
predict { first = mu[1]; spread = max(mu) - min(mu); }
"""


def run(*args):
    return subprocess.run([os.path.join(work, "fit"), *args], capture_output=True, text=True, cwd=work)


def header(K, N):
    matrix = ["A.%d.%d" % (i + 1, j + 1) for j in range(K) for i in range(K)]
    return ["lp__"] + ["w.%d" % (k + 1) for k in range(K)] + ["mu.%d" % (k + 1) for k in range(K)] + matrix + ["s"] + ["c.%d" % (i + 1)
            for i in range(N)] + ["first", "spread"]


def rows_of(draw):
    return [draw["lp"], *draw["w"], *draw["mu"], *draw["A"].T.ravel(), draw["s"], *(draw["c"] + 1), draw["mu"][0], np.ptp(draw["mu"])]


def write(name, draws, chains):
    each = len(draws) // chains
    K, N = len(draws[0]["mu"]), len(draws[0]["c"])
    for c in range(chains):
        with open(os.path.join(work, "%s_%d.csv" % (name, c + 1)), "w") as f:
            f.write("# a model\n" + ",".join(header(K, N)) + "\n# adapted\n")
            for d in draws[c * each:(c + 1) * each]:
                f.write(",".join(repr(float(x)) if not float(x).is_integer() else str(int(x)) for x in rows_of(d)) + "\n")


def read(name, chains, K, N):
    out = []
    for c in range(chains):
        lines = [l.strip() for l in open(os.path.join(work, "%s_%d.csv" % (name, c + 1))) if l[0] != "#"]
        assert lines[0] == ",".join(header(K, N))
        out += [np.array([float(x) for x in l.split(",")]) for l in lines[1:]]
    return np.array(out)


def permuted(draw, to):
    """label k becomes to[k]"""
    back = np.argsort(to)
    return dict(draw, w=draw["w"][back], mu=draw["mu"][back], A=draw["A"][np.ix_(back, back)], c=to[draw["c"]])


def make(rng, K, N, S, noise, empty):
    truth = rng.integers(0, K - empty, N)
    centre = 3.0 * np.arange(K)
    draws = []
    for _ in range(S):
        c = np.where(rng.random(N) < noise, rng.integers(0, K - empty, N), truth)
        draws.append(dict(lp=rng.normal(), w=rng.dirichlet(np.ones(K)), mu=centre + rng.normal(0, 0.7, K),
                          A=np.array([rng.dirichlet(np.ones(K)) for _ in range(K)]), s=rng.random() + 0.1, c=c))
    return draws


def main():
    os.makedirs(work, exist_ok=True)
    with open(os.path.join(work, "m.gm"), "w") as f:
        f.write(MODEL)
    made = subprocess.run([gmc, "-q", os.path.join(work, "m.gm"), "-o", os.path.join(work, "fit")], capture_output=True, text=True)
    assert made.returncode == 0, made.stderr
    rng = np.random.default_rng(7)
    for K, N, noise, empty in [(1, 4, 0, 0), (2, 5, 0.3, 0), (3, 12, 0.3, 0), (4, 20, 0.4, 1), (5, 15, 0.2, 0), (6, 25, 0.3, 2)]:
        draws = make(rng, K, N, 60, noise, empty)
        mixed = [permuted(d, rng.permutation(K)) for d in draws]
        write("a", mixed, 2)
        done = run("relabel", "a", "--by", "c", "-q", "--no-summary")
        check(done.returncode == 0, "K", K, "by c:", done.stderr or "done")
        after = read("a_relabelled", 2, K, N)
        allocations = after[:, -N - 2:-2].astype(int) - 1
        # every draw is a permutation of what it was
        good, best = True, True
        # the labels that most draws give, from which no draw could be nearer
        count = np.array([(allocations == k).sum(0) for k in range(K)])
        for d, row, z in zip(mixed, after, allocations):
            tos = [np.array(p) for p in itertools.permutations(range(K)) if np.allclose(rows_of(permuted(d, np.array(p)))[:-2], row[:-2],
                    rtol=0, atol=0)]
            good &= len(tos) == 1 and row[-1] == np.ptp(d["mu"]) and row[-2] == d["mu"][0]
        modal = count.max(0)
        reference = np.array([[k for k in range(K) if count[k, i] == modal[i]] for i in range(N)], dtype=object)
        unique = np.array([len(r) == 1 for r in reference])
        for d, z in zip(mixed, allocations):
            off = lambda z: sum(z[i] != reference[i][0] for i in range(N) if unique[i])
            ties = (~unique).sum()
            best &= off(z) <= min(off(np.array(p)[d["c"]]) for p in itertools.permutations(range(K))) + ties
        check(good, "K", K, "all columns of a draw are permuted together, and nothing else changes")
        check(best, "K", K, "no permutation of a draw disagrees less with the labels of most draws, of all",
              len(list(itertools.permutations(range(K)))))
        again = [permuted(d, rng.permutation(K)) for d in mixed]
        write("b", again, 2)
        run("relabel", "b", "--by", "c", "-q", "--no-summary")
        other = read("b_relabelled", 2, K, N)
        z = other[:, -N - 2:-2].astype(int) - 1
        same = [p for p in itertools.permutations(range(K)) if (np.array(p)[allocations] == z).all()
                and np.array_equal(after[:, 1 + K:1 + 2 * K], other[:, 1 + K:1 + 2 * K][:, list(p)])]
        check(len(same) == 1, "K", K, "other labels to begin with: the same up to one permutation of all")
        run("relabel", "a", "--by", "mu", "-q", "--no-summary", "-o", "p")
        mu = read("p", 2, K, N)[:, 1 + K:1 + 2 * K]
        scale = mu.std() ** 2
        mean = mu.mean(0)
        best = all(((m - mean) ** 2).sum() <= min(((m[list(p)] - mean) ** 2).sum() for p in itertools.permutations(range(K))) + 1e-9 * scale
                   for m in mu)
        check(best, "K", K, "by mu: no permutation of a draw is nearer to the mean")
    # what is said
    write("a", mixed, 2)
    out = run("relabel", "a", "--by", "c", "--cocluster", "co.csv", "--partition", "part.csv")
    check("left out below: first, which depends on the labels" in out.stdout, "a definition that depends on labels is named")
    check("first" not in out.stdout.split("mean")[1] and "spread" in out.stdout,
          "it is not summarised, and what does not depend on labels is")
    co = np.loadtxt(os.path.join(work, "co.csv"), delimiter=",")
    z = np.array([d["c"] for d in mixed])
    expected = (z[:, :, None] == z[:, None, :]).mean(0)
    check(np.abs(co - expected).max() < 1e-4, "co-clustering: fractions of the draws")
    part = np.loadtxt(os.path.join(work, "part.csv"), delimiter=",", skiprows=1)[:, 1]
    square = lambda z: ((((z[:, None] == z[None, :]) - expected)[np.tril_indices(len(z), -1)]) ** 2).sum()
    check(abs(square(part) - min(square(x) for x in z)) < 1e-9, "the partition is the nearest of all draws by squares")
    # elements that do not exist: the others are permuted as they would be without them
    def absent(cells, at):
        return ",".join(cells[:-2 - at] + ["nan"] + cells[-1 - at:])
    K, N = 6, 25
    for c in (1, 2):
        rows = open(os.path.join(work, "a_%d.csv" % c)).read().splitlines()
        with open(os.path.join(work, "n_%d.csv" % c), "w") as f:
            f.writelines((r if r[0] in "#l" else absent(r.split(","), 2)) + "\n" for r in rows)
    out = run("relabel", "n", "--by", "c", "--cocluster", "con.csv", "--partition", "partn.csv", "-q", "--no-summary")
    few = read("n_relabelled", 2, K, N)
    check(out.returncode == 0 and "1 of 25 elements of c do not exist" in out.stdout and np.isnan(few[:, -4]).all()
          and np.isnan(few).sum() == len(few), "what does not exist stays nan", out.stderr)
    check(np.allclose(np.loadtxt(os.path.join(work, "con.csv"), delimiter=","), np.delete(np.delete(expected, N - 2, 0), N - 2, 1),
                      atol=1e-4), "co-clustering of the others")
    check([int(r.split(",")[0]) for r in open(os.path.join(work, "partn.csv")).read().split()[1:]] == [i + 1 for i in range(N)
            if i != N - 2], "the partition names the elements that exist")
    for name, change, says in [
        ("cut", lambda t: t[:-20], "was cut off"),
        ("line", lambda t: t[:t[:-1].rindex("\n") + 1] + "1,2,3\n", "fewer cells"),
        ("other", lambda t: t.replace("mu.1", "nu.1"), "no variable of m.gm"),
        ("word", lambda t: t[:t[:-1].rindex("\n") + 1] + "x" + t[t[:-1].rindex("\n") + 1:], "is not a number"),
        ("gone", lambda t: t.replace("mu.2", "s").replace(",s,", ",s,", 1), "mu[2] is missing"),
        ("hole", lambda t: t[:t[:-1].rindex("\n") + 1] + absent(t[t[:-1].rindex("\n") + 1:-1].split(","), 2) + "\n", "is nan in 1 of"),
        ("label", lambda t: t[:-1].rsplit(",", 3)[0] + ",9," + ",".join(t[:-1].rsplit(",", 2)[1:]) + "\n", "labels are 1 to 6"),
    ]:
        text = open(os.path.join(work, "a_1.csv")).read()
        with open(os.path.join(work, name + "_1.csv"), "w") as f:
            f.write(change(text))
        done = run("relabel", name, "--by", "c")
        check(done.returncode == 2 and says in done.stderr and not os.path.exists(os.path.join(work, name + "_relabelled_1.csv")),
              name + ":", done.stderr.strip())
    for args, says in [(["a", "--by", "s"], "not all of these"), (["none"], "no draws none_1.csv"),
                       (["a", "--by", "A"], "two of its dimensions"), (["a", "--by", "first"], "depends on the labels"),
                       (["a_1.csv", "cut_1.csv"], "cut off"), ([], "no draws are given")]:
        done = run("relabel", *args)
        check(done.returncode == 2 and says in done.stderr, *args, done.stderr.strip())
    of_runs()
    return failures() > 0


# Components by a mixture, whose allocations are auxiliaries, and by latent ones; a definition that depends on labels.
BY_MIXTURE = """data { int N; vector[N] y; }
prior { w ~ dirichlet(rep_vector(1, 2)); for (k in 1:2) { mu[k] ~ normal(0, 5); s[k] ~ half_normal(0, 2); } }
likelihood { for (i in 1:N) y[i] ~ mixture(w, normal(mu[1], s[1]), normal(mu[2], s[2])); }
"""
BY_LATENT = """data { int N; vector[N] y; }
latent { int<lower=1, upper=2> c[N]; }
prior { w ~ dirichlet(rep_vector(1, 2)); for (k in 1:2) { mu[k] ~ normal(0, 5); s[k] ~ half_normal(0, 2); }
        for (i in 1:N) c[i] ~ categorical(w); }
likelihood { for (i in 1:N) y[i] ~ normal(mu[c[i]], s[c[i]]); }
predict { first = mu[1]; }
"""
ORDERED = BY_MIXTURE.replace("prior { w", "prior { ordered[2] mu ~ normal(0, 5); w").replace("{ mu[k] ~ normal(0, 5); s[k]", "{ s[k]")


def of_runs():
    """Warnings at the end of a run whose labels switch, and --relabel. Data and seeds are fixed."""
    os.chdir(work)
    random = np.random.default_rng(4)
    for name, apart in (("apart", 7), ("near", 3)):
        with open(name + ".json", "w") as f: json.dump({"y": (random.normal(size=100) + apart * (random.random(100) < 0.5)).tolist()}, f)
    fits = {name: program(name, text) for name, text in (("mixture", BY_MIXTURE), ("latent", BY_LATENT), ("ordered", ORDERED))}

    def fit(name, *args):
        return subprocess.run([fits[name], "--seed", "1", "-q", "--overwrite", *args], capture_output=True, text=True)

    def warnings(out): return [line for line in out.stdout.splitlines() if line.startswith("Warning")]

    for name, by in (("mixture", "w,mu,s"), ("latent", "c")):
        for more in ([], ["--params", "all"]):
            told = warnings(fit(name, "apart.json", *more))
            check(len(told) == 1 and "components have no order" in told[0] and "chains agree" in told[0], "labels alone", name, told)
        told = warnings(fit(name, "apart.json", "-o", name, "--relabel"))
        table = by_chain(name + "_relabelled")
        check(len(told) == 1 and "Below draws are relabelled" in told[0], "--relabel", name, told)
        means = np.concatenate([table["mu.1"].mean(1), table["mu.2"].mean(1)])
        check(np.ptp(means[:4]) < 0.1 and np.ptp(means[4:]) < 0.1 and abs(means[0] - means[4]) > 5, "makes chains agree", name, means)
        here = {"mu": by_chain(name)["mu.1"].mean(1)}["mu"]
        check(np.ptp(here) > 5, "whose labels differ in the files of the run", here)
        again = subprocess.run([fits[name], "relabel", name, "--by", by, "-o", "again", "-q", "--no-summary"], capture_output=True)
        same = by_chain("again")
        check(again.returncode == 0 and all(np.array_equal(same[c], table[c], equal_nan=True) for c in table), "as `relabel` does", again)
        told = warnings(fit(name, "near.json"))
        check(len(told) == 3 and all("with components in order" in t for t in told[:2]) and "chains agree" not in told[2],
              "chains that mix badly whatever labels are", name, told)
    check("--params all" not in warnings(fit("mixture", "apart.json"))[0], "what is said to do can be done: by parameters")
    fit("latent", "apart.json", "-o", "one.nc", "--relabel", "--params", "mu,c", "--first-chain", "2", "--chains", "2")
    check(set(os.listdir()) >= {"one.nc", "one_relabelled_2.csv", "one_relabelled_3.csv"}, "of NAME.nc", sorted(os.listdir()))
    for name, args, says in [("latent", ["--relabel"], "without -o NAME"), ("ordered", ["-o", "x", "--relabel"], "identifies the labels"),
                             ("latent", ["-o", "x", "--relabel=s,c1"], "not all of these"),
                             ("latent", ["-o", "x", "--relabel", "--params", "mu"], "--params mu,c keeps it"),
                             ("latent", ["-o", "x", "--relabel", "--check"], "draws of the posterior")]:
        told = fit(name, "apart.json", *args)
        check(told.returncode == 2 and says in told.stderr and not os.path.exists("x_1.csv"), *args, told.stderr)


sys.exit(main())
