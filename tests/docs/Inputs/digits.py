"""Writes images of ten classes, 6 x 6 pixels with noise, in the format of MNIST: digits.py FOLDER."""
import gzip
import os
import random
import struct
import sys

random.seed(5)
folder = sys.argv[1]
classes = [[random.random() < 0.5 for _ in range(36)] for _ in range(10)]
for part, n in (("train", 400), ("t10k", 200)):
    digits = [k % 10 for k in range(n)]
    images = bytes(min(255, max(0, int(random.gauss(180 if on else 60, 70)))) for k in digits for on in classes[k])
    with gzip.open(os.path.join(folder, part + "-images-idx3-ubyte.gz"), "wb") as f:
        f.write(struct.pack(">4B3I", 0, 0, 8, 3, n, 6, 6) + images)
    with open(os.path.join(folder, part + "-labels-idx1-ubyte"), "wb") as f:
        f.write(struct.pack(">4BI", 0, 0, 8, 1, n) + bytes(digits))
