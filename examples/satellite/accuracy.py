"""accuracy.py draws_new.csv test.csv -- of the classes with the largest posterior mean of their probability."""
import csv
import sys

best = {}
with open(sys.argv[1]) as f:
    for row in csv.DictReader(f):
        name, *at = row["variable"].split(".")
        if name == "probability":
            best[int(at[0])] = max(best.get(int(at[0]), (-1, 0)), (float(row["mean"]), int(at[1]) - 1))
with open(sys.argv[2]) as f:
    right = [int(row["y"]) for row in csv.DictReader(f)]
hits = sum(best[i + 1][1] == y for i, y in enumerate(right))
print("%d of %d: accuracy %.4f" % (hits, len(right), hits / len(right)))
