"""Files of draws for tests, read by build/tests/columns (columns.c)."""
import os
import subprocess

import numpy as np

COLUMNS = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "build", "tests", "columns")


def read(files):
    """For each file its names, its draws as an array [column, draw], and the comments below the names."""
    rest = memoryview(subprocess.run([COLUMNS, *files], stdout=subprocess.PIPE, check=True).stdout)
    for _ in files:
        head = bytes(rest[:1 << 20]).split(b"\n", 2)
        while len(head) < 3:
            head = bytes(rest).split(b"\n", 2)
        names, (rows, comments) = head[0].decode().split(","), map(int, head[1].split())
        rest = rest[len(head[0]) + len(head[1]) + 2:]
        said, rest = bytes(rest[:comments]).decode(), rest[comments:]
        yield names, np.frombuffer(rest, count=len(names) * rows).reshape(len(names), rows), said
        rest = rest[8 * len(names) * rows:]
