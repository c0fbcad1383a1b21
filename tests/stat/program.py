"""Compiles models with gmc, makes small random data for them, runs the programs and reads their draws."""
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

import numpy as np

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "tests"))
import draws
GMC = os.environ.get("GMC") or os.path.join(ROOT, "build", "gmc")


class Failed(Exception):
    pass


class Workplace:
    """A folder for programs, data and draws, removed at the end (`with Workplace() as w:`)."""

    def __enter__(self):
        self.folder = tempfile.mkdtemp(prefix="gmc_stat_")
        return self

    def __exit__(self, *ignored):
        shutil.rmtree(self.folder)

    def path(self, name):
        return os.path.join(self.folder, name)

    def compile(self, name, model, flags=(), compiler=None):
        """Compiles the text of a model, or the file of one, for a CPU, with these flags of gmc. Gives the path of the program.
        `compiler`: of this folder, in place of what CC names (cc_quick, where a program of cc_brief would run for longer than that
        compiles)."""
        source = model
        if "\n" in model or "{" in model:
            source = self.path(name + ".gm")
            with open(source, "w") as f:
                f.write(model)
        program = self.path(name)
        environment = {**os.environ, "CC": os.path.join(ROOT, "tests", "stat", compiler)} if compiler else None
        command = [GMC, "-q", "--no-device", *flags, source, "-o", program]
        ran = subprocess.run(command, capture_output=True, text=True, env=environment)
        if ran.returncode != 0:
            raise Failed("gmc refused it:\n" + ran.stdout + ran.stderr)
        return program

    def data(self, name, values):
        path = self.path(name + ".json")
        with open(path, "w") as f:
            json.dump(values, f, default=lambda v: v.tolist())
        return path

    def draws(self, program, data, samples, seed=1, chains=4, warmup=1000, params="all,auxiliaries", thin=1):
        """Runs the program. Gives a dictionary from a column of the draws (`theta.1`) to an array [chain, draw]; `said` has the comments
        below the names of the columns, by chain."""
        out = program + "_draws"
        ran = subprocess.run([program, data, "--samples", str(samples), "--warmup", str(warmup), "--chains", str(chains), "--thin",
                              str(thin),
                              "--seed", str(seed), "--overwrite", "-o", out, "--no-summary", "--params", params, "--threads", "1", "-q"],
                              capture_output=True, text=True)
        if ran.returncode != 0:
            raise Failed("the program stopped with exit status %d:\n%s%s" % (ran.returncode, ran.stdout, ran.stderr))
        files = ["%s_%d.csv" % (out, k) for k in range(1, chains + 1)]
        tables = list(draws.read(files))
        for path in files:
            os.remove(path)
        self.said = [said.split("# Adaptation terminated")[0].split("# \n#  Elapsed")[0] for _, _, said in tables]
        together = np.stack([values for _, values, _ in tables])
        return {name: together[:, i] for i, name in enumerate(tables[0][0])}


def in_stages(judge, samples, many=False):
    """A row of the report from judge(samples, part), `part` being that of its bound. A quarter of the draws within 0.6 of the bound is
    enough: a bias 1.2 times as large as the bound is found in half of all runs so, one as large as the bound in 27 of 100 (in 50 with
    all draws at once). Else all are drawn, and the whole bound counts. With `many` moments, some of which would lie beyond 0.6 of the
    bound by chance, half of the draws within 0.75 are enough: half of all runs find a bias 1.06 times as large as the bound."""
    row = judge(samples // 2, 0.75) if many else judge(samples // 4, 0.6)
    return row if row[0] else judge(samples, 1)


def log_normal(x, mean, sd):
    """A fiftieth of the time of scipy's, and less of that of its frozen distributions."""
    return -0.5 * ((x - mean) / sd) ** 2 - np.log(sd) - 0.5 * np.log(2 * np.pi)


def log_poisson(k, rate):
    """The logarithm of the probability of a count, in a twentieth of the time of scipy's."""
    from scipy.special import gammaln, xlogy
    return xlogy(k, rate) - rate - gammaln(np.add(k, 1))


def mcse(x):
    """Monte Carlo error of the mean of x [chain, draw], from the means of 25 batches of each chain (Geyer 1992)."""
    chains, n = x.shape
    batches = 25
    means = x[:, :n - n % batches].reshape(chains * batches, -1).mean(axis=1)
    return means.std(ddof=1) / np.sqrt(len(means))


# ---- random data for a model, from its declarations ----

def declarations(text):
    """What the data blocks declare: [(base type, constraint, lower, upper, name, sizes, default)], in order."""
    text = re.sub(r"#.*|//.*", "", text)
    found = []
    for block in re.findall(r"\bdata\s*\{((?:[^{}])*)\}", text):
        for statement in block.split(";"):
            statement = " ".join(statement.split())
            m = re.match(r"(array\s*\[[^\]]*\]\s*)?(\w+)\s*(<[^>]*>)?\s*(\[[^\]]*\])?\s+(\w.*)$", statement)
            if not m:
                continue
            outer, base, bounds, inner, rest = m.groups()
            bound = dict(re.findall(r"(lower|upper)\s*=\s*([^,>]+)", bounds or ""))
            for one in split_commas(rest):
                one, _, default = one.partition("=")
                n = re.match(r"(\w+)\s*((\[[^\]]*\])*)$", one.strip())
                sizes = []
                for part in [n.group(2), outer or "", inner or ""]:
                    for group in re.findall(r"\[([^\]]*)\]", part):
                        sizes += split_commas(group)
                if base.startswith(("cov_", "corr_", "cholesky_")):
                    sizes.append(sizes[-1])
                found.append((base, bound.get("lower"), bound.get("upper"), n.group(1), sizes, default.strip() or None))
    return found


def split_commas(text):
    parts, depth = [""], 0
    for c in text:
        depth += (c in "([") - (c in ")]")
        if c == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += c
    return [p.strip() for p in parts if p.strip()]


def takes_random_data(text):
    """Models that fault with most data say so in a line of their own."""
    return "\n# Not with random data" not in text


def random_data(text, seed, chosen=None):
    """Small data that fit the declarations: sizes from 3 to 6, integers within their bounds (up to 5 above an open one), reals
    normal, or shifted exponentials where there is a lower bound only, simplexes, covariances. `chosen` overrides some by name."""
    rng = np.random.default_rng(seed)
    values = {}

    def number(expression, otherwise):
        if expression is None:
            return otherwise
        return float(eval(expression, {"infinity": lambda: np.inf}, dict(values)))

    for base, lower, upper, name, sizes, default in declarations(text):
        if chosen and name in chosen:
            values[name] = chosen[name]
            continue
        if default:
            values[name] = int(number(default, 0)) if base == "int" else number(default, 0)
            continue
        shape = [int(eval(s, {}, dict(values))) for s in sizes]
        least, most = number(lower, -np.inf), number(upper, np.inf)
        if base == "int":
            if not sizes:
                least = max(least, 3) if not np.isfinite(most) else least
                values[name] = int(rng.integers(least, min(most, least + 3) + 1))
            else:
                least = least if np.isfinite(least) else 0
                values[name] = rng.integers(least, min(most, least + 5) + 1, size=shape).tolist()
        elif base in ("cov_matrix", "corr_matrix") or base.startswith("cholesky"):
            def one():
                n = shape[-1]
                a = rng.normal(size=(n, n + 3))
                s = a @ a.T / n
                if "corr" in base:
                    s = s / np.sqrt(np.outer(np.diag(s), np.diag(s)))
                return np.linalg.cholesky(s) if base.startswith("cholesky") else s
            count = int(np.prod(shape[:-2]))
            values[name] = np.array([one() for _ in range(count)]).reshape(shape).tolist()
        elif base == "simplex":
            values[name] = rng.dirichlet(np.ones(shape[-1]), size=shape[:-1] or None).tolist()
        else:
            x = rng.normal(size=shape)
            if base.endswith("ordered"):
                x = np.sort(np.abs(x) if base.startswith("pos") else x)
            elif base == "sum_to_zero_vector":
                x = x - x.mean(axis=-1, keepdims=True)
            elif np.isfinite(least) and np.isfinite(most):
                x = least + (most - least) * rng.uniform(0.05, 0.95, size=shape)
            elif np.isfinite(least):
                x = least + 0.1 + rng.exponential(size=shape)
            elif np.isfinite(most):
                x = most - 0.1 - rng.exponential(size=shape)
            values[name] = x.tolist() if sizes else float(x)
    return values


def report(rows):
    """Prints the rows [(good, text)] and exits 1 if one is not good."""
    bad = 0
    for good, text in rows:
        print(("ok      " if good else "FAILED  ") + text)
        bad += not good
    print("%d checks, %d failed" % (len(rows), bad))
    sys.exit(1 if bad else 0)
