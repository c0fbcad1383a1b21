"""Models in short forms of the language and the same written out: their draws, and lp__, are the same numbers.

    written_out.py GMC FOLDER

Rows of different lengths as slices of one vector; distributions of the library for fields and series as `target +=` of their formulas."""
import json
import os
import subprocess
import sys

ROWS = ({"y": [[1, 2], [], [3, 4, None]], "t": [[0, 1], [], [2, 0.5, -1]]},
        {"G": 3, "n": [2, 0, 3], "y": [1, 2, 3, 4, None], "t": [0, 1, 2, 0.5, -1]})
EDGES = {"N": 5, "E": 5, "node1": [1, 2, 3, 4, 1], "node2": [2, 3, 4, 5, 3], "z": [0.5, 1.6, 1.2, -0.9, -1.4]}
SERIES = {"N": 6, "z": [0.5, 1.6, 1.2, -0.9, -1.4, 0.2]}
FIELD = "data { int N, E; int<lower=1, upper=N> node1[E], node2[E]; vector[N] z; }\nprior { tau ~ gamma(2, 2); b ~ normal(0, 2); }\n"
CURVE = "data { int N; vector[N] z; }\nprior { s ~ half_normal(0, 1); f ~ uniform(-1, 1); }\n"
SEEN = "likelihood { z ~ normal(u, 0.5); }\n"
HALF = "(log(s) + log(2 * pi()) / 2)"

# what it is, data and model in short, data and model written out
PAIRS = [
    ("rows, element by element", ROWS[0], """
data { int G; int<lower=0> n[G]; vector[n] y[G]; array[G] vector[n] t; }
prior { mu ~ normal(0, 1); s ~ half_normal(0, 1); b ~ normal(0, 1); for (g in 1:G) theta[g] ~ normal(mu, 1); }
likelihood { for (g in 1:G) for (i in 1:n[g]) y[g, i] ~ normal(theta[g] + b * t[g, i], s); }
""", ROWS[1], """
data { int G; int<lower=0> n[G]; vector[sum(n)] y, t; }
let { for (g in 1:G) last[g] = (g > 1 ? last[g - 1] : 0) + n[g]; for (g in 1:G) first[g] = last[g] - n[g] + 1; }
prior { mu ~ normal(0, 1); s ~ half_normal(0, 1); b ~ normal(0, 1); for (g in 1:G) theta[g] ~ normal(mu, 1); }
likelihood { for (g in 1:G) for (i in first[g]:last[g]) y[i] ~ normal(theta[g] + b * t[i], s); }
"""),
    ("rows as vectors, unknown rows, differences within rows", ROWS[0], """
data { int G; int<lower=0> n[G]; vector[n] y[G], t[G]; }
prior { s ~ half_normal(0, 1); real u[G, n]; for (g in 1:G) u[g] ~ normal(0, 1); }
likelihood {
  for (g in 1:G) y[g] ~ normal(u[g] + t[g], s);
  for (g in 1:G) for (i in 2:n[g]) target += -square(u[g][i] - u[g, i - 1]);
}
predict { for (g in 1:G) { m[g] = sum(i in 1:n[g], u[g, i] * t[g, i]); v[g] = sum(u[g, 1:n[g]]); } }
""", ROWS[1], """
data { int G; int<lower=0> n[G]; vector[sum(n)] y, t; }
let { for (g in 1:G) last[g] = (g > 1 ? last[g - 1] : 0) + n[g]; for (g in 1:G) first[g] = last[g] - n[g] + 1; }
prior { s ~ half_normal(0, 1); vector[sum(n)] u; for (g in 1:G) u[first[g]:last[g]] ~ normal(0, 1); }
likelihood {
  for (g in 1:G) y[first[g]:last[g]] ~ normal(u[first[g]:last[g]] + t[first[g]:last[g]], s);
  for (g in 1:G) for (i in (first[g] + 1):last[g]) target += -square(u[i] - u[i - 1]);
}
predict { for (g in 1:G) { m[g] = sum(i in first[g]:last[g], u[i] * t[i]); v[g] = sum(u[first[g]:last[g]]); } }
"""),
    ("icar", EDGES, FIELD + "latent { sum_to_zero_vector[N] u ~ icar(node1, node2, tau); }\nlikelihood { z ~ normal(b + u, 0.5); }\n",
     EDGES, FIELD + "latent { sum_to_zero_vector[N] u; }\nlikelihood { z ~ normal(b + u, 0.5);\n"
     "  target += (N - 1) * (log(tau) - log(2 * pi())) / 2 - tau * sum(e in 1:E, square(u[node1[e]] - u[node2[e]])) / 2; }\n"),
    ("ar1", SERIES, CURVE + "latent { vector[N] u ~ ar1(f, s); }\n" + SEEN,
     SERIES, CURVE + "latent { vector[N] u; }\n" + SEEN
     + "likelihood { target += (N > 0 ? log1m(square(f)) / 2 - (1 - square(f)) * square(u[1]) / (2 * square(s)) : 0)\n"
     "  - N * " + HALF + " - sum(t in 2:N, square(u[t] - f * u[t - 1])) / (2 * square(s)); }\n"),
    ("rw1", SERIES, CURVE + "latent { vector[N] u ~ rw1(s); }\n" + SEEN,
     SERIES, CURVE + "latent { vector[N] u; }\n" + SEEN + "likelihood { target += -fmax(N - 1, 0) * " + HALF
     + " - sum(t in 2:N, square(u[t] - u[t - 1])) / (2 * square(s)); }\n"),
    ("rw2", SERIES, CURVE + "latent { vector[N] u ~ rw2(s); }\n" + SEEN,
     SERIES, CURVE + "latent { vector[N] u; }\n" + SEEN + "likelihood { target += -fmax(N - 2, 0) * " + HALF
     + " - sum(t in 3:N, square(u[t] - 2 * u[t - 1] + u[t - 2])) / (2 * square(s)); }\n"),
]


def draws(gmc, folder, name, data, model):
    path = os.path.join(folder, name)
    with open(path + ".gm", "w") as f:
        f.write(model)
    with open(path + ".json", "w") as f:
        json.dump(data, f)
    subprocess.run([gmc, path + ".gm", "-o", path, "--no-device", "-q"], check=True)
    subprocess.run([path, path + ".json", "--chains", "1", "--warmup", "200", "--samples", "200", "--seed", "1", "--params", "all",
                    "-o", path, "--overwrite", "--no-summary"], check=True, capture_output=True)
    with open(path + "_1.csv") as f:
        lines = [line.strip().split(",") for line in f if not line.startswith("#")]
    return lines[0], [[float(x) for x in line] for line in lines[1:]]


def main():
    gmc, folder = sys.argv[1:]
    os.makedirs(folder, exist_ok=True)
    wrong = 0
    for k, (what, short_data, short, long_data, long) in enumerate(PAIRS):
        head, one = draws(gmc, folder, "short%d" % k, short_data, short)
        _, other = draws(gmc, folder, "long%d" % k, long_data, long)
        same = len(one) == len(other) == 200 and all(
            len(x) == len(y) and all(abs(a - b) <= 1e-10 * max(1, abs(a)) or (a != a and b != b) for a, b in zip(x, y))
            for x, y in zip(one, other))
        if "rows as" in what and not {"u.1.1", "u.1.2", "u.3.1", "u.3.3", "y.3.3"} <= set(head):
            same = False
        wrong += not same
        print("%-60s %s" % (what, "same" if same else "DIFFERENT"))
    return 1 if wrong else 0


sys.exit(main())
