"""Labels on a lattice, labels on a graph, effects of groups by slices, counts without an upper bound: milliseconds a sweep of one chain on
one core.

    python3 tests/bench/fields.py [build/gmc]
"""
import json, os, random, re, subprocess, sys, tempfile

gmc = os.path.abspath(sys.argv[1] if len(sys.argv) > 1 else "build/gmc")
rng = random.Random(1)
side = 100
nodes = side * side
edges = [(i * side + j + 1, i * side + j + 1 + step) for i in range(side) for j in range(side) for step in (1, side)
         if (j < side - 1 if step == 1 else i < side - 1)]
y = [round(rng.gauss(1 + (i > nodes // 2), 1), 3) for i in range(nodes)]
rows, groups = 100000, 1000

CASES = [
    ("labels on a lattice of 100 x 100, 3 values", """data { int R, C; matrix[R, C] y; real beta; }
latent { for (i in 1:R, j in 1:C) s[i, j] ~ categorical([1 / 3.0, 1 / 3.0, 1 / 3.0]); }
likelihood {
  for (i in 1:R, j in 1:C) y[i, j] ~ normal(s[i, j], 1);
  for (i in 1:R - 1, j in 1:C) target += beta * (s[i, j] == s[i + 1, j]);
  for (i in 1:R, j in 1:C - 1) target += beta * (s[i, j] == s[i, j + 1]);
}""", {"R": side, "C": side, "y": [y[i * side:(i + 1) * side] for i in range(side)], "beta": 0.8}),
    ("the same as a graph of 10,000 nodes and 19,800 edges", """data { int V, E; int a[E], b[E]; vector[V] y; real beta; }
latent { for (i in 1:V) s[i] ~ categorical([1 / 3.0, 1 / 3.0, 1 / 3.0]); }
likelihood {
  for (i in 1:V) y[i] ~ normal(s[i], 1);
  for (e in 1:E) target += beta * (s[a[e]] == s[b[e]]);
}""", {"V": nodes, "E": len(edges), "a": [e[0] for e in edges], "b": [e[1] for e in edges], "y": y, "beta": 0.8}),
    ("1000 effects of groups, sliced, 100,000 rows", """data { int N, K; int g[N]; vector[N] y; }
prior { for (k in 1:K) u[k] ~ student_t(4, 0, 1); }
likelihood { for (i in 1:N) y[i] ~ student_t(5, u[g[i]], 1); }
augment { y by none; u by none; }
infer { u by slice; }""", {"N": rows, "K": groups, "g": [rng.randrange(groups) + 1 for _ in range(rows)],
                           "y": [round(rng.gauss(0, 2), 3) for _ in range(rows)]}),
    ("200 counts without an upper bound, 3 visits", """data { int N, T; int<lower=0> y[N, T]; real lambda, p; }
latent { for (i in 1:N) n[i] ~ poisson(lambda); }
likelihood { for (i in 1:N, t in 1:T) y[i, t] ~ binomial(n[i], p); }""", {"N": 200, "T": 3, "lambda": 10, "p": 0.4,
                                                                          "y": [[min(9, int(rng.gammavariate(4, 1))) for _ in range(3)]
                                                                              for _ in range(200)]}),
]

with tempfile.TemporaryDirectory() as folder:
    for name, model, data in CASES:
        with open(f"{folder}/model.gm", "w") as f:
            f.write(model + "\n")
        with open(f"{folder}/data.json", "w") as f:
            json.dump(data, f)
        subprocess.run([gmc, "-q", f"{folder}/model.gm", "-o", f"{folder}/fit"], check=True, stderr=subprocess.DEVNULL)
        best = None
        for _ in range(3):
            r = subprocess.run([f"{folder}/fit", f"{folder}/data.json", "--device", "cpu", "--chains", "1", "--threads", "1", "--warmup",
                                "30", "--samples", "50", "--seed", "1", "--params", "lp__", "--overwrite", "-o", f"{folder}/draws"],
                               capture_output=True, text=True)
            ms = re.search(r"([0-9.e+-]+) ms each", r.stdout + r.stderr)
            if not ms:
                sys.exit(r.stdout + r.stderr)
            best = float(ms[1]) if best is None else min(best, float(ms[1]))
        print(f"| {name} | {best:.3g} |", flush=True)
