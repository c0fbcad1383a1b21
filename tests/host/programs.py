"""What tests of whole programs share: checks that are counted, models that become programs, commands, and the files of draws.

A script makes checks and ends with `sys.exit(failures() > 0)`: the status is 1 if one of them was false."""
import csv
import glob
import subprocess
import sys

failed = 0


def check(good, what, *seen):
    """Counts what is false, and prints what was seen then."""
    global failed
    failed += not good
    print("%-7s" % ("ok" if good else "FAILED"), what, *(() if good else seen), flush=True)


def failures():
    print("%d failed" % failed)
    return failed


def write(path, content):
    """The path, of a file of this text, or of these bytes."""
    with open(path, "wb") as f: f.write(content if isinstance(content, bytes) else content.encode())
    return path


def read(path):
    with open(path) as f: return f.read()


def sizes_once():
    """h5netcdf looks for the size of a dimension without an end among all variables that have it, again for each of them. After this it
    does so once for a file that is read."""
    from h5netcdf.dimensions import Dimension
    look = Dimension.size.fget

    def size(self):
        if self._root._writable: return look(self)
        if "size_found" not in self.__dict__: self.__dict__["size_found"] = look(self)
        return self.__dict__["size_found"]
    Dimension.size = property(size)


def compiled(name, model, *flags):
    """The path of a program, made by the compiler that the command line of the test names first."""
    write(name + ".gm", model)
    subprocess.run([sys.argv[1], "-q", *flags, name + ".gm", "-o", name], check=True)
    return "./" + name


def program(name, model, *flags):
    """The same, without a program for GPUs."""
    return compiled(name, model, "--no-device", *flags)


def run(*command, status=0, **more):
    """The command, which is to end with this status."""
    done = subprocess.run(command, capture_output=True, text=True, **more)
    check(done.returncode == status, " ".join(command), "status %d\n" % done.returncode, done.stdout[-900:], done.stderr[-900:])
    return done


def said_by(*command, status=0):
    """All that it prints."""
    done = run(*command, status=status)
    return done.stdout + done.stderr


def ending(*command, **more):
    """Its status, whichever, and what it says on standard error."""
    done = subprocess.run(command, capture_output=True, text=True, **more)
    return done.returncode, (done.stderr or "").strip()


def rows_of_draws(path):
    """The lines of a file of draws that are no comments: names, and draws."""
    with open(path) as f: return [line for line in f if line[0] != "#"]


def pooled(name):
    """Column -> the draws of all chains, one after the other."""
    columns = {}
    for path in sorted(glob.glob(glob.escape(name) + "_[0-9].csv")):
        for row in csv.DictReader(rows_of_draws(path)):
            for key, x in row.items(): columns.setdefault(key, []).append(float(x))
    return columns


def by_chain(name):
    """Column -> [chain][draw]."""
    import numpy as np
    chains = []
    for path in sorted(glob.glob(glob.escape(name) + "_[0-9].csv")):
        names, *rows = [line.strip().split(",") for line in rows_of_draws(path)]
        chains.append((names, np.array(rows, float)))
    return {label: np.array([rows[:, k] for _, rows in chains]) for k, label in enumerate(chains[0][0])}
