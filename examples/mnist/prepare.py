#!/usr/bin/env python3
"""Makes train_X.npy, train_y.npy, test_X.npy and test_y.npy of the MNIST digits: pixels in [0, 1], a row for an image, and labels 1 .. 10
(digit + 1).

    prepare.py [FOLDER] [--rows N] [--out FOLDER]

FOLDER holds the four files as they are published (train-images-idx3-ubyte.gz, ...), or as .npy, gzipped or not. Without it they are
downloaded. --rows: the first N training images alone. Python 3 standard library only.
"""
import argparse
import gzip
import os
import struct
import sys
import urllib.request

URL = "https://ossci-datasets.s3.amazonaws.com/mnist/"
IDX = {"train": ("train-images-idx3-ubyte", "train-labels-idx1-ubyte"), "test": ("t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte")}


def find(folder, part, which):
    """The bytes of a file, and its name."""
    names = [IDX[part][which], "%s-%s.npy" % (part, ("images", "labels")[which])]
    for name in [n + end for n in names for end in ("", ".gz")]:
        path = os.path.join(folder, name)
        if os.path.exists(path):
            with open(path, "rb") as f:
                return f.read(), path
    sys.exit("prepare.py: there is neither %s nor %s in %s" % (names[0], names[1], folder))


def download(part, which):
    name = IDX[part][which] + ".gz"
    print("fetching", URL + name)
    with urllib.request.urlopen(URL + name) as f:
        return f.read(), name


def elements(data, name):
    """Shape and bytes of an IDX or .npy file of bytes."""
    if data[:2] == b"\x1f\x8b":
        data = gzip.decompress(data)
    if data[:6] == b"\x93NUMPY":
        size = struct.unpack("<H", data[8:10])[0]
        header = eval(data[10:10 + size], {"__builtins__": {}}, {"True": True, "False": False})
        if header["descr"] != "|u1" or header["fortran_order"]:
            sys.exit("prepare.py: %s does not hold bytes in C order" % name)
        shape, at = header["shape"], 10 + size
    elif data[:3] == b"\0\0\x08":
        at = 4 + 4 * data[3]
        shape = struct.unpack(">%dI" % data[3], data[4:at])
    else:
        sys.exit("prepare.py: %s is neither an IDX file of bytes nor .npy" % name)
    n = 1
    for k in shape:
        n *= k
    if len(data) != at + n:
        sys.exit("prepare.py: %s has %d bytes of data instead of %d" % (name, len(data) - at, n))
    return shape, data[at:]


def write(path, descr, shape, table, data):
    """An array whose elements are table[byte]."""
    header = str({"descr": descr, "fortran_order": False, "shape": shape})
    header += " " * (-(len(header) + 11) % 64) + "\n"
    with open(path, "wb") as f:
        f.write(b"\x93NUMPY\x01\0" + struct.pack("<H", len(header)) + header.encode())
        for k in range(0, len(data), 1 << 20):
            f.write(b"".join([table[b] for b in data[k:k + (1 << 20)]]))


def main():
    args = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    args.add_argument("folder", nargs="?")
    args.add_argument("--rows", type=int)
    args.add_argument("--out", default=".")
    given = args.parse_args()
    pixels = [struct.pack("<d", b / 255) for b in range(256)]
    labels = [struct.pack("<i", b + 1) for b in range(256)]
    for part in ("train", "test"):
        get = (lambda which: find(given.folder, part, which)) if given.folder else (lambda which: download(part, which))
        (shape, images), (_, digits) = elements(*get(0)), elements(*get(1))
        n = shape[0] if part == "test" or not given.rows else min(given.rows, shape[0])
        columns = len(images) // shape[0]
        write(os.path.join(given.out, part + "_X.npy"), "<f8", (n, columns), pixels, images[:n * columns])
        write(os.path.join(given.out, part + "_y.npy"), "<i4", (n,), labels, digits[:n])
        print("%s: %d images of %d pixels" % (part, n, columns))


main()
