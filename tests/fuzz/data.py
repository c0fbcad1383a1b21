#!/usr/bin/env python3
"""Damages data at random and runs a program with sanitizers on them: JSON, tables, .npy, .npz, names on the command line, and files of
--init.

    data.py [--seconds N] [--seed N] [--jobs N] [--only N]

Whatever the data are, the program has to end within SECONDS, with draws or with a message of its own; a report of a sanitizer, a signal, a
status that is none of its own or a hang is a finding: what provoked it is kept in build/fuzz, with the command. Trial N of a seed is the
same in every run; --only N repeats it. The last line counts. Exit status 1 if anything was found. `make fuzz` builds what this needs,
build/asan/gmc, and runs all of tests/fuzz.
"""
import argparse
import collections
import concurrent.futures
import io
import itertools
import os
import random
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import time
import zipfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, os.path.join(ROOT, "tests", "asan"))
import run as asan                        # how programs with sanitizers are made, and what they say

SEEDS = os.path.join(HERE, "seeds")
KEPT = os.path.join(ROOT, "build", "fuzz")
SECONDS = 30                              # one run
STATUSES = {0, 2, 4, 6}                   # of GmExit: those that data may lead to
ENVIRONMENT = {**asan.ENVIRONMENT, "ASAN_OPTIONS": asan.ENVIRONMENT["ASAN_OPTIONS"] + ":soft_rss_limit_mb=2000", "OMP_NUM_THREADS": "1"}

NUMBERS = ["0", "-0", "1", "-1", "2", "3", "0.5", "2.5", "1e308", "-1e308", "1e400", "1e-320", "2147483647", "2147483648", "-2147483648",
           "-2147483649", "4294967296", "9007199254740993",
           "9223372036854775807", "9223372036854775808", "-9223372036854775808", "99999999999999999999999", "16777217", "NaN", "Inf",
           "-Infinity", "nan", "null", "NA", "", ".", "-", "1e", "0x10", "1.", ".5", "+1", "01"]
PIECES = {
    "json": ["[", "]", "{", "}", "[]", "[[]]", "{}", '"', ",", ":", "null", "true", '"NA"', '"Inf"', "\\u0000", "\\ud800", "\x00",
             "\xef\xbb\xbf", "\xff\xfe", "[" * 3000, '{"a":' * 1000, "\x1b[31m"],
    "csv": [",", ";", "\t", '"', '""', "\n", "\r", "\r\n", "\n\n", "#", "# 1,2", ".", "X.3", "X.0", "X.-1", "X[2]", "X[1,2]",
            "X.9223372036854775808", "y", "\x00", "\xef\xbb\xbf", "\xff\xfe", "," * 5000, "x" * 70000, "\x1b[31m"],
}
SHAPES = ["()", "(5,)", "(5, 2)", "(2, 5)", "(0,)", "(0, 2)", "(5, 0)", "(1, 5)", "(5, 1)", "(5, 2, 1)", "(10,)", "(-5, 2)", "(5L, 2L)",
          "(4611686018427387904, 4611686018427387904, 0)", "(0, 9223372036854775807, 9223372036854775807)",
          "(9223372036854775807,)", "(2147483648, 2147483648)", "(99999999999999999999,)", "(5, 2", "5, 2", "(,)", "(1, 1, 1, 1, 1, 1, 1)",
          "(3037000500, 3037000500)"]
TYPES = ["<f8", "<f4", "<i8", "<i4", "<i2", "|i1", "<u8", "<u4", "<u2", "|u1", "|b1", ">f8", "<c16", "|O", "<U3", "|S3", "<f16", "<f2", ""]


# ---- files of NumPy and SciPy ----

def npy(numbers, kind="<f8", shape=None, order="False", version=1):
    code = {"<f8": "d", "<i8": "q", "<i4": "i", "|u1": "B"}.get(kind, "f" if kind == "<f4" and max(map(abs, numbers), default=0) < 1e38
                                                                else "d")
    body = b"".join(struct.pack("<" + code, int(x) if code in "qiB" else x) for x in numbers)
    header = "{'descr': '%s', 'fortran_order': %s, 'shape': %s, }" % (kind, order, shape or "(%d,)" % len(numbers))
    begin = 10 if version == 1 else 12
    header = header.encode("latin-1") + b" " * (-(begin + len(header) + 1) % 64) + b"\n"
    return b"\x93NUMPY" + bytes([version, 0]) + struct.pack("<H" if version == 1 else "<I", len(header)) + header + body


def npz(members, compressed=False):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED if compressed else zipfile.ZIP_STORED) as z:
        for name, data in members.items():
            z.writestr(zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0)), data, zipfile.ZIP_DEFLATED if compressed else zipfile.ZIP_STORED)
    return out.getvalue()


def text_npy(text):
    header = b"{'descr': '|S3', 'fortran_order': False, 'shape': (), }"
    header += b" " * (-(10 + len(header) + 1) % 64) + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + text


ROWS, COLUMNS, ENDS, VALUES = [0, 1, 2, 3, 4], [0, 1, 1, 0, 1], [0, 1, 2, 3, 4, 5], [1, 2.5, -3, 4, 1e10]
MEMBERS = {
    "csr": {"indices.npy": npy(COLUMNS, "<i4"), "indptr.npy": npy(ENDS, "<i4"), "format.npy": text_npy(b"csr"),
            "shape.npy": npy([5, 2], "<i8"), "data.npy": npy(VALUES)},
    "csc": {"indices.npy": npy([0, 3, 1, 2, 4], "<i8"), "indptr.npy": npy([0, 2, 5], "<i8"), "format.npy": text_npy(b"csc"),
            "shape.npy": npy([5, 2], "<i8"), "data.npy": npy(VALUES)},
    "coo": {"row.npy": npy(ROWS, "<i4"), "col.npy": npy(COLUMNS, "<i4"), "format.npy": text_npy(b"coo"), "shape.npy": npy([5, 2], "<i8"),
            "data.npy": npy(VALUES, "<f4")},
}


def damaged_npy(r):
    numbers = [float(r.choice([0, 1, 2, 3, -1, 2.5, 1e308, 1e10, 2147483648.0, float("nan"), float("inf")]))
               for _ in range(r.choice([0, 5, 9, 10, 10, 10, 11]))]
    kind = r.choice(TYPES) if r.random() < 0.5 else "<f8"
    if kind in ("<i8", "<i4", "|u1"):
        numbers = [r.choice([0, 1, 2, 3, 255]) for _ in numbers]
    return npy(numbers, kind, r.choice(SHAPES), r.choice(["False", "True", "0", ""]), r.choice([1, 1, 1, 2, 3, 9]))


def damaged_npz(r):
    members = dict(MEMBERS[r.choice(sorted(MEMBERS))])
    for _ in range(r.randint(1, 2)):
        name = r.choice(sorted(members))
        how = r.random()
        if how < 0.15:
            del members[name]
        elif how < 0.3:
            members[name] = damaged_npy(r)
        elif how < 0.45:
            members[name] = text_npy(r.choice([b"csr", b"csc", b"coo", b"dia", b"", b"\x00"]))
        elif how < 0.8:                       # numbers that lead out of the matrix
            large = r.random() < 0.3
            members[name] = npy([r.choice([-1, 0, 1, 2, 3, 4, 5, 6, 7] + ([2147483647, 9007199254740993, 9223372036854775807,
                                                                           -9223372036854775808] if large else []))
                                 for _ in range(r.choice([0, 2, 3, 5, 6]))], "<i8")
        else:
            members[name] = damaged_bytes(members[name], r, ["\x00", "\xff"])
        if not members:
            break
    file = npz(members, r.random() < 0.5)
    return damaged_bytes(file, r, ["PK\x01\x02", "PK\x05\x06", "\x00", "\xff\xff\xff\xff"]) if r.random() < 0.3 else file


# ---- damage ----

def damaged_bytes(data, r, pieces):
    for _ in range(r.randint(1, 3)):
        at = r.randrange(len(data) + 1)
        to = min(len(data), at + r.randint(1, 12))
        how = r.randrange(6)
        if how == 0:
            data = data[:at] + bytes([r.randrange(256)]) + data[at + 1:]
        elif how == 1:
            data = data[:at] + data[to:]
        elif how == 2:
            data = data[:at] + r.choice(pieces).encode("latin-1") + data[at:]
        elif how == 3:
            data = data[:at]
        elif how == 4:
            data = data[:to] + data[at:]
        else:
            data = data[:at] + bytes(b ^ 1 << r.randrange(8) for b in data[at:at + 1]) + data[at + 1:]
    return data


def damaged_text(data, r, kind):
    """Numbers are exchanged, lines and parts doubled, left out and moved, or bytes damaged."""
    text = data.decode("latin-1")
    for _ in range(r.randint(1, 2)):
        how = r.random()
        numbers = list(re.finditer(r"-?\d+(\.\d+)?(e\d+)?", text))
        if how < 0.45 and numbers:
            m = r.choice(numbers)
            text = text[:m.start()] + r.choice(NUMBERS) + text[m.end():]
        elif how < 0.6:
            lines = text.split("\n")
            k = r.randrange(len(lines))
            lines[k:k + 1] = r.choice([[], lines[k:k + 1] * 2, lines[k:k + 1] * 300, ["#" + lines[k]],
                                       [lines[k] + r.choice([",", "\r", " ", ",1"])]])
            text = "\n".join(lines)
        elif how < 0.7:
            text = text.replace("\n", r.choice(["\r\n", "\r", "\n\n", " "]))
        elif how < 0.75:
            text = r.choice(["\xef\xbb\xbf", "\xff\xfe", "\xef", "#x\n", "\n", " "]) + text
        else:
            return damaged_bytes(text.encode("latin-1"), r, PIECES[kind] + NUMBERS)
    return text.encode("latin-1")


def seed(name):
    with open(os.path.join(SEEDS, name), "rb") as f:
        return f.read()


TABLE = ["table.csv", "rest.json", "P=2", "K=2"]
WHOLE = ["data.json"]
# Arguments, and the file that is damaged.
FORMS = [
    (WHOLE, "data.json"), (WHOLE, "data.json"), (WHOLE + ["--new", "new.json", "--predict"], "new.json"), (TABLE, "table.csv"),
    (TABLE, "table.csv"), (TABLE, "rest.json"), (["table.tsv"] + TABLE[1:], "table.tsv"),
    (["few.json", "X=columns.csv:u,v"], "columns.csv"), (["few.json", "X=columns.csv:u-v"], "columns.csv"),
    (["few.json", "X=columns.csv"], "columns.csv"),
    (["few.json", "X=X.npy"], "X.npy"), (["few.json", "X=X.npy"], "X.npy"), (["few.json", "X=X.npz"], "X.npz"),
    (["few.json", "X=X.npz"], "X.npz"), (["fewer.json", "X=X.npy", "c=c.npy"], "c.npy"),
    (WHOLE + ["--init", "init.json"], "init.json"), (WHOLE + ["--init", "draws.csv"], "draws.csv"),
    (WHOLE + ["--init", "draws.csv"], "draws.csv"),
]


def without(names):
    """data.json without some of its members."""
    text = seed("data.json").decode()
    for name in names:
        text = re.sub(r'"%s": (\[\[.*?\]\]|\[.*?\]|[^,]*),' % name, "", text, flags=re.S)
    return text.encode()


def file_of(name, r=None):
    """The seed; damaged, if there is a source of chance."""
    kind = name.rsplit(".", 1)[1]
    if kind == "npy":
        whole = npy([0, 3, 2, 1, 1], "<i4") if name[0] == "c" else npy(range(10), "<f8", "(5, 2)")
        return whole if not r else damaged_npy(r) if r.random() < 0.7 else damaged_bytes(whole, r, SHAPES + TYPES)
    if kind == "npz":
        return damaged_npz(r) if r else npz(MEMBERS["csr"])
    whole = without(["X"]) if name == "few.json" else without(["X", "c"]) if name == "fewer.json" else seed(name)
    return damaged_text(whole, r, "csv" if kind in ("csv", "tsv") else "json") if r else whole


def damaged_words(words, r):
    """One argument, less often than its file: a name, columns, a number."""
    k = r.randrange(len(words))
    word = words[k]
    change = [lambda: word + r.choice(["=", ":", ":u", ":u-w", ":w-u", ":u,u", ":9", "=1", " "]), lambda: word[:r.randrange(len(word) + 1)],
              lambda: r.choice(["N", "P", "K", "sigma", "y", "X", "zz", ""]) + "=" + r.choice(NUMBERS),
              lambda: word.replace("X", r.choice(["Y", "y", "N", "X X", "X.1", "\x1b[31mX"])),
              lambda: "X=" + r.choice(["data.json", "table.csv", ".", "", "none.npy", "table.csv:X.1-X.2", "table.csv:g,y"])]
    return words[:k] + [r.choice(change)()] + words[k + 1:]


def write_trial(number, first, folder):
    """Writes the files; the arguments."""
    r = random.Random("%d %d" % (first, number))
    words, target = r.choice(FORMS)
    for name in {w.split("=")[-1].split(":")[0] for w in words if "." in w} | {target}:
        with open(os.path.join(folder, name), "wb") as f:
            f.write(file_of(name, r if name == target and r.random() < 0.95 else None))
    return damaged_words(words, r) if r.random() < 0.1 else words


# ---- runs ----

def wrong_with(status, said):
    if status is None:
        return "does not end within %d s" % SECONDS
    wrong = asan.found(status, said)
    if wrong or status in STATUSES:
        return wrong or (None if status == 0 or said.strip() else "ends with %d and without a word"
                         % status) or ("control characters go to the terminal" if re.search("[\x00-\x08\x0b-\x1f\x7f]", said) else None)
    return "ends with %d: %s" % (status, said[-200:])


def try_one(number, first, program):
    folder = tempfile.mkdtemp(prefix="gmc_fuzz_")
    words = [w for w in write_trial(number, first, folder) if "\x00" not in w]
    command = [program] + words + ["--samples", "2", "--warmup", "2", "--chains", "1", "--threads", "1", "--seed", "1", "--device", "cpu",
                                   "--overwrite", "-o", "draws"]
    try:
        ran = subprocess.run(command, cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                             env=ENVIRONMENT, timeout=SECONDS)
        status, said = ran.returncode, ran.stderr.decode("latin-1")
    except subprocess.TimeoutExpired:
        status, said = None, ""
    wrong = wrong_with(status, said)
    kept = os.path.join(KEPT, "data_%d_%d" % (first, number))
    if wrong:
        shutil.rmtree(kept, ignore_errors=True)
        shutil.copytree(folder, kept)
        with open(os.path.join(kept, "command.txt"), "w") as f:
            f.write("%s\n%s\n%s\n" % (" ".join(map(repr, command)), wrong, said[-4000:]))
    shutil.rmtree(folder)
    return status, wrong, kept


def build():
    program = os.path.join(KEPT, "fit")
    os.makedirs(KEPT, exist_ok=True)
    status, said = asan.call([asan.GMC, "-q", "--no-device", os.path.join(SEEDS, "model.gm"), "-o", program], seconds=600)
    if status != 0:
        sys.exit("fuzz: the program for data was not made: %s" % said[-500:])
    return program


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=300)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--only", type=int)
    given = parser.parse_args()
    program = build()
    end = time.monotonic() + given.seconds
    numbers = iter([given.only]) if given.only is not None else itertools.count()
    statuses, found = collections.Counter(), 0
    with concurrent.futures.ThreadPoolExecutor(given.jobs) as pool:
        while len(running := [pool.submit(try_one, n, given.seed, program) for n in itertools.islice(numbers, 20 * given.jobs)]) > 0:
            for status, wrong, kept in (f.result() for f in running):
                statuses[status] += 1
                if wrong:
                    found += 1
                    print("FOUND  %s\n       kept in %s" % (wrong, os.path.relpath(kept, ROOT)), flush=True)
            if time.monotonic() > end or found >= 50:
                break
    print("data: %d trials (%s), %d found" % (sum(statuses.values()), ", ".join("%d with status %s" % (k, s) for s,
            k in sorted(statuses.items(), key=str)), found))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
