# far_and_near.py PROGRAM C NAMES: runs PROGRAM on data near zero and on the same data plus C, with one seed, and compares the means of all
# quantities but NAMES, which begin at 0 and at C. Data are whole multiples of 2^-12: adding C rounds nothing.
#
# The chains are those of one posterior, with rounding apart. Means that differ by 0.3 sd are called different. These runs have 500
# effective draws or more: where rounding sets chains apart, that happens less than once in 10^5 comparisons.
import csv
import json
import math
import subprocess
import sys

program, far, names = sys.argv[1], float(sys.argv[2]), sys.argv[3:]
N = 60


def noise(k):
    return round(4096 * 1.6 * math.sin(97 * k * k + k)) / 4096


def data(c):
    x = [noise(k) for k in range(N)]
    z = [0.0]
    for k in range(1, N):
        z.append(round(4096 * (0.6 * z[-1] + noise(k + 1000))) / 4096)
    y = [2 * x[k] + noise(k + 500) for k in range(N)]
    return {"N": N, "c": c, "k": [k % 3 for k in range(N)], "x": x, "y": [c + v for v in y], "z": [c + v for v in z]}


def summary(c):
    stem = f"{program}.{'near' if c == 0 else 'far'}"
    with open(f"{stem}.json", "w") as f:
        json.dump(data(c), f)
    with open(f"{stem}.init.json", "w") as f:
        json.dump({name: c for name in names}, f)
    run = [program, f"{stem}.json", "--seed", "5", "-q", "--method", "gibbs", "--init", f"{stem}.init.json", "--summary", "csv", "--no-lp"]
    out = subprocess.run(run, check=True, stdout=subprocess.PIPE, universal_newlines=True).stdout
    return {row[0]: (float(row[1]), float(row[3])) for row in list(csv.reader(out.splitlines()))[1:]}


near, there = summary(0), summary(far)
for name, (mean, sd) in near.items():
    if name in names:
        continue
    other, spread = there[name]
    same = abs(other - mean) < 0.3 * sd and 0.7 < spread / sd < 1.4
    print(f"{name}: {'the same' if same else f'{mean} ({sd}), and far from zero {other} ({spread})'}")
