#!/usr/bin/env python3
"""Of a table that `fit --new` writes: how often the class of the largest posterior probability is the right one.

    accuracy.py draws_new.csv test_y.npy
"""
import csv
import struct
import sys

with open(sys.argv[2], "rb") as f:
    data = f.read()
size = struct.unpack("<H", data[8:10])[0]
right = struct.unpack("<%di" % ((len(data) - 10 - size) // 4), data[10 + size:])
best = {}
with open(sys.argv[1]) as f:
    for row in csv.DictReader(f):
        name, *at = row["variable"].split(".")
        if name == "p":
            best[int(at[0])] = max(best.get(int(at[0]), (-1, 0)), (float(row["mean"]), int(at[1])))
hits = sum(best[i + 1][1] == k for i, k in enumerate(right))
print("%d of %d: accuracy %.4f" % (hits, len(right), hits / len(right)))
