#!/usr/bin/env python3
"""Compile every oracle model, run it on its data, and compare its draws with the reference posterior.

    run.py [NAME ...] [--gmc build/gmc] [--build build/oracles] [--timeout 600] [--list]

A NAME is a folder here, or part of its name; without one all are run.  A folder holds

    model.gm, data.json   what is compiled and run
    reference.json        what compare.py compares the draws with
    settings              optional: command line of the program, in place of the default below
    skip                  optional: one line that says why the model is left out
    infer                 optional: other ways to draw from it, the content of an `infer` block a line; each is run as well, against the
                          same reference

Exit status: 0 if nothing failed, else 1.  Python 3 standard library only.
"""
import argparse
import json
import os
import shlex
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))

# 4 chains of 5000 draws: a bias of 0.05 posterior sd shows when draws are nearly independent (z = 0.05*sqrt(20000) = 7).
DEFAULT = "--chains 4 --warmup 1000 --samples 5000 --threads 1"   # the models are small: more threads only wait for each other
FEWER = DEFAULT.replace("5000", "2000")
SEED = "20240229"                     # fixed, so that a failure comes back when it is run again


def text_of(path):
    try:
        with open(path) as f:
            return f.read().strip()
    except FileNotFoundError:
        return None


def run_step(command, log, timeout):
    """-> (exit status or None when out of time, seconds).  Output of the command goes to the file `log`."""
    start = time.monotonic()
    with open(log, "w") as out:
        try:
            status = subprocess.run(command, stdout=out, stderr=subprocess.STDOUT, timeout=timeout).returncode
        except subprocess.TimeoutExpired:
            status = None
        except OSError as e:
            out.write(f"{command[0]}: {e.strerror}\n")
            status = 127
    return status, time.monotonic() - start


def reason(log, status, step, timeout):
    """A line about a command that went wrong: its first error, or its last line of output."""
    if status is None:
        return f"{step}: more than {timeout:g} s"
    lines = [s.strip() for s in (text_of(log) or "").splitlines() if s.strip()]
    said = next((s for s in lines if "error" in s), lines[-1] if lines else "")
    return f"{step}: exit status {status}: {said}"[:200]


def worst_z(report):
    zs = [abs(p[k]) for p in report["parameters"].values() for k in ("z", "z_sd") if p.get(k) is not None]
    return max(zs, default=None)


def disagreements(report):
    bad = [f"{n} ({', '.join(p['why'])})" for n, p in report["parameters"].items() if p["why"]]
    return "; ".join(bad[:3]) + (f"; and {len(bad) - 3} more" if len(bad) > 3 else "")


def ways_of(name):
    """Requests in place of the model's own choice: "" for none, then the lines of `infer`."""
    return [""] + (text_of(os.path.join(HERE, name, "infer")) or "").splitlines()


def run_one(name, way, opt):
    """-> dict(compile, run, verdict, z, why)"""
    here, there = os.path.join(HERE, name), os.path.join(opt.build, f"{name}_{ways_of(name).index(way)}")
    row = dict(compile=None, run=None, z=None, why="")
    if text_of(os.path.join(here, "skip")) is not None:
        return row | dict(verdict="skipped", why=text_of(os.path.join(here, "skip")))
    os.makedirs(there, exist_ok=True)
    fit, draws = os.path.join(there, "fit"), os.path.join(there, "draws")
    chains = [f"{draws}_{c}.csv" for c in range(1, 65)]
    for path in chains + [fit, os.path.join(there, "compare.json")]:
        if os.path.exists(path):
            os.remove(path)                # nothing of an earlier run can pass for this one

    log = os.path.join(there, "compile.log")
    model = os.path.join(there, "model.gm")
    with open(model, "w") as f:
        f.write(text_of(os.path.join(here, "model.gm")) + (f"\ninfer {{ {way} }}\n" if way else "\n"))
    status, row["compile"] = run_step([opt.gmc, model, "-o", fit], log, opt.timeout)
    if status != 0:
        return row | dict(verdict="FAILED", why=reason(log, status, "compile", opt.timeout))

    log = os.path.join(there, "run.log")
    settings = shlex.split(FEWER if way else text_of(os.path.join(here, "settings")) or DEFAULT)
    status, row["run"] = run_step([fit, os.path.join(here, "data.json"), "--quiet", "--no-summary", "--seed", SEED,
                                   "--overwrite", "-o", draws] + settings, log, opt.timeout)
    if status != 0:
        return row | dict(verdict="FAILED", why=reason(log, status, "run", opt.timeout))

    log, numbers = os.path.join(there, "compare.log"), os.path.join(there, "compare.json")
    status, _ = run_step([sys.executable, os.path.join(HERE, "compare.py"), os.path.join(here, "reference.json")]
                         + [p for p in chains if os.path.exists(p)] + ["--json", numbers], log, opt.timeout)
    if status not in (0, 1) or text_of(numbers) is None:
        return row | dict(verdict="FAILED", why=reason(log, status, "compare", opt.timeout))
    report = json.loads(text_of(numbers))
    row["z"] = worst_z(report)
    return row | (dict(verdict="passed") if status == 0 else dict(verdict="FAILED", why=disagreements(report)))


def number(v, width, form):
    return f"{'-':>{width}}" if v is None else f"{v:>{width}{form}}"


def main():
    ap = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    ap.add_argument("names", nargs="*", help="folders to run, or parts of their names (default: all)")
    ap.add_argument("--gmc", default=os.path.join(ROOT, "build", "gmc"), help="the compiler (default: build/gmc)")
    ap.add_argument("--build", default=os.path.join(ROOT, "build", "oracles"), help="where programs and draws go")
    ap.add_argument("--timeout", type=float, default=600, help="seconds for one step of one model (default 600)")
    ap.add_argument("--list", action="store_true", help="print the names and stop")
    opt = ap.parse_args()

    every = sorted(d for d in os.listdir(HERE) if os.path.exists(os.path.join(HERE, d, "model.gm")))
    names = [d for d in every if not opt.names or any(n in d for n in opt.names)]
    if opt.list or not names:
        print("\n".join(names) if names else "no oracle has such a name")
        return 0 if names else 2

    count = dict(passed=0, FAILED=0, skipped=0)
    print(f"{'name':<32} {'compile s':>9} {'run s':>8} {'worst z':>8}  verdict")
    for name, way in [(name, way) for name in names for way in ways_of(name)]:
        r = run_one(name, way, opt)
        count[r["verdict"]] += 1
        print(f"{'  infer ' + way if way else name:<32} {number(r['compile'], 9, '.1f')} {number(r['run'], 8, '.1f')} "
              f"{number(r['z'], 8, '.2f')}  "
              f"{r['verdict']}{': ' + r['why'] if r['why'] else ''}", flush=True)
    print(f"{count['passed']} passed, {count['FAILED']} failed, {count['skipped']} skipped")
    return 1 if count["FAILED"] else 0


if __name__ == "__main__":
    sys.exit(main())
