"""words.py draws_relabelled -- the words of each topic by their posterior mean, and the texts' shares."""
import csv
import glob
import sys

total, n = {}, 0
for path in sorted(glob.glob(sys.argv[1] + "_[0-9]*.csv")):
    with open(path) as f:
        for row in csv.DictReader(line for line in f if line[0] != "#"):
            n += 1
            for name, x in row.items():
                if name.startswith(("phi.", "theta.")):
                    total[name] = total.get(name, 0.0) + float(x)
with open("words.txt") as f:
    words = f.read().split()
K = max(int(name.split(".")[1]) for name in total if name.startswith("phi."))
for k in range(1, K + 1):
    share = sorted(((total["phi.%d.%d" % (k, v + 1)] / n, w) for v, w in enumerate(words)), reverse=True)
    print("topic %d:" % k, ", ".join("%s %.2f" % (w, p) for p, w in share[:8]))
D = max(int(name.split(".")[1]) for name in total if name.startswith("theta."))
for d in (1, 11, 21, D - 2, D - 1, D):
    print("text %d:" % d, " ".join("%.2f" % (total["theta.%d.%d" % (d, k)] / n) for k in range(1, K + 1)))
