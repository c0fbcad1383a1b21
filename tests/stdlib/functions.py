#!/usr/bin/env python3
"""The rows of runtime/device/functions.def: derivatives, signs, domains and ends, against the functions of gmlib.py. With a compiler as
argument, also that every derivative is an expression of the language.

Derivatives by central differences of fourth order, step h = 1e-3 of the argument's size: the error is about h^4 = 1e-12 of a fifth
derivative's size and 1e-16 / h of the value's; 1e-7 of the derivative leaves room for both in the tails, too.
"""
import os
import re
import subprocess
import sys
import tempfile

import numpy as np

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from gmlib import FUNCTIONS, Reader, evaluate          # noqa: E402

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
ROW = (r'^(?:ELEMENT\((\w+), *|INTERNAL\(\w+, *"([^"]+)", *(?:"[^"]*"|NULL), *)"(\w+)", *(?:[A-Z]\w*, *)??([A-Z_]+), *([A-Z_ |0]+?), '
       r'*"([-rpnbu]+)",\s*'
       r'(?:[A-Z_]+(?:\([^)]*\))?,\s*)?"([^"]*)",\s*"([^"]*)",\s*"([^"]*)"\)')
rows = [(m[1] or m[2], len(m[3]), m[4], set(m[5].split(" | ")) - {"0"}, m[6], (m[7], m[8], m[9]))
        for m in re.finditer(ROW, open(os.path.join(ROOT, "runtime/device/functions.def")).read(), re.M)]

functions = dict(FUNCTIONS, **{"==": np.equal, "!=": np.not_equal, "<": np.less, "<=": np.less_equal, "&&": np.logical_and,
                               "||": np.logical_or,
                               "!": np.logical_not, "same": np.equal})
NOT_TRIED = {"%": "of integers", "missing": "asks for what was read", "at end": "== of ends", "within": "a bound: 0 or minus infinity",
             "in tail": "a comparison", "polya_gamma_base": "a series that nothing evaluates"}
UNKNOWN = {("polya_gamma_base", 0): "not tried", ("polya_gamma_base", 1): "not tried"}      # and second derivatives:
UNKNOWN |= {(name, k): "" for name in ("trigamma", "log_bessel_i0_dx", "log_gamma_p_da", "log_gamma_q_da", "log_inc_beta_da",
                                       "log_inc_beta_db", "std_student_t_lcdf_dnu", "log_bessel_k_dp")
            for k in range(3)}
# LOG_END
END = {"log": (0.0,), "log1p": (-1.0,), "inv_Phi": (0.0,), "logit": (1.0,), "log1m": (1.0,), "log1m_exp": (0.0,),
       "log_diff_exp": (2.0, 2.0)}
TAILS = {"log_Phi": [(-1e4,), (-30.0,), (-8.0,), (6.0,)], "std_normal_lcdf": [(-30.0,), (6.0,)], "log_inv_logit": [(-50.0,), (30.0,)],
         "log1m_inv_logit": [(-30.0,), (50.0,)],
         "log1p_exp": [(-30.0,), (50.0,)], "log1m_exp": [(-30.0,), (-1e-3,)], "log_diff_exp": [(40.0, 2.0), (2.001, 2.0)],
         "inv_logit": [(-30.0,)], "Phi": [(-20.0,)],
         "log_sum_exp": [(40.0, 0.0), (0.0, 40.0)], "exp": [(-50.0,), (50.0,)], "log": [(1e-8,), (1e8,)], "inv_Phi": [(1e-9,)],
         "lgamma": [(1e-3,), (1e4,)],
         "std_student_t_lcdf": [(-50.0, 3.0), (20.0, 3.0)], "log_gamma_q": [(2.0, 40.0)], "log_gamma_p": [(20.0, 0.5)],
         "log_inc_beta": [(20.0, 3.0, 0.01)], "erfc": [(5.0,)]}

rng = np.random.default_rng(1)
DRAW = {"r": lambda: rng.normal(0, 2), "p": lambda: np.exp(rng.normal()), "n": lambda: np.exp(rng.normal()),
        "b": lambda: 1 - np.exp(rng.normal()), "u": lambda: rng.uniform(0.02, 0.98)}


def point(name, domain):
    """Random arguments at which the function has a value."""
    if name in ("asin", "acos"):
        return (rng.uniform(-0.95, 0.95),)
    if name in ("floor", "ceil", "round"):                # away from their jumps
        return (rng.integers(-5, 5) + rng.uniform(0.1, 0.4),)
    if name in ("tan", "inv_cloglog"):
        return (rng.uniform(-1.2, 1.2),)
    if name == "log1m_exp":
        return (-np.exp(rng.normal()),)
    if name == "log_diff_exp":
        y = rng.normal()
        return (y + np.exp(rng.normal()), y)
    if name in ("==", "!=", "<", "<="):                   # away from where the two are equal
        y = rng.normal()
        return (y + rng.choice([-1, 1]) * np.exp(rng.normal()), y)
    if name in ("choose", "lchoose"):
        n = rng.uniform(3, 9)
        return (n, rng.uniform(0.2, 0.9) * n)
    if name.startswith("std_student_t_lcdf"):
        return (rng.normal(0, 2), np.exp(rng.normal(1, 0.5)))
    if re.search("gamma_[pq]", name):
        return (np.exp(rng.normal()), np.exp(rng.normal()))
    if "inc_beta" in name:
        return (np.exp(rng.normal()), np.exp(rng.normal()), rng.uniform(0.05, 0.95))
    return tuple(DRAW[d if d != "-" else "r"]() for d in domain)


# in gmlib.py logs of what is rounded near 1
ROUNDED = [functions[name] for name in ("log_gamma_p", "log_gamma_q", "log_inc_beta", "std_student_t_lcdf")]


def slope(f, at, k):
    """The derivative by argument k, and the size of its rounding."""
    h = 1e-3 * min(1.0, abs(at[k]) or 1.0)
    if len(at) == 1 and 0.5 < at[0] < 1:                  # ends at 0 and 1
        h = 1e-3 * (1 - at[0])
    if f is functions["log_diff_exp"]:
        h = min(h, 1e-2 * (at[0] - at[1]))
    value = [float(f(*at[:k], at[k] + s * h, *at[k + 1:])) for s in (-2, -1, 1, 2)]
    size = max(map(abs, value)) if f not in ROUNDED else 1
    return (value[0] - 8 * value[1] + 8 * value[2] - value[3]) / (12 * h), 4e-16 * size / h


failed = checked = 0


def fail(*words):
    global failed
    failed += 1
    print(*words)


SIGN = {"ANY": lambda v: True, "POSITIVE": lambda v: v > 0, "UNIT": lambda v: 0 < v < 1, "NOT_NEGATIVE": lambda v: v >= 0,
        "NOT_POSITIVE": lambda v: v <= 0}
lines = []
for name, nargs, sign, traits, domain, derivative in rows:
    if len(domain) != nargs:
        fail(name, "has", nargs, "arguments, and a domain of", len(domain))
    for k in range(nargs):
        if derivative[k] == "?" and (name, k) not in UNKNOWN:
            fail(name, "lacks a derivative by argument", k + 1)
    if any(derivative[nargs:]):
        fail(name, "has a derivative by an argument that it has not")
    if name in NOT_TRIED:
        continue
    if name not in functions:
        fail(name, "has no implementation in gmlib.py")
        continue
    f = functions[name]
    if ("LOG_END" in traits) != (name in END):
        fail(name, "and LOG_END: this test knows otherwise")
    with np.errstate(all="ignore"):
        if name in END and not np.isinf(f(*END[name])):
            fail(name, "is finite at", END[name])
        if ("BOUNDED" in traits or sign == "UNIT") and not set(domain) & {"-"}:
            for at in np.array(np.meshgrid(*[[-np.inf, -1, 0, 2, np.inf]] * nargs)).reshape(nargs, -1).T:
                if not np.isfinite(float(f(*at))):
                    fail(name, "is not bounded at", at)
    points = [point(name, domain) for _ in range(40)]
    for at in points:
        value = float(f(*at))
        if not np.isfinite(value) or not SIGN[sign](value) or ("YES_NO" in traits and value not in (0, 1)):
            fail(name, "at", at, "is", value, "and not", sign)
    for k in range(nargs):
        if derivative[k] == "?":
            continue
        tree = Reader(derivative[k] or "0", name).expression()
        lines.append("d%d = %s;" % (len(lines), derivative[k] or "0"))
        for at in points[:12] + TAILS.get(name, []):
            ours = float(evaluate(tree, dict(zip("xyz", at))))
            exact, rounding = slope(f, at, k)
            checked += 1
            if not abs(ours - exact) <= 1e-7 * abs(exact) + 50 * rounding:
                fail("%s by argument %d at %s: %.10g, by differences %.10g" % (name, k + 1, at, ours, exact))

count = len(re.findall(r"^(?:ELEMENT|INTERNAL)\(\w+, ", open(os.path.join(ROOT, "runtime/device/functions.def")).read(), re.M))
if len(rows) != count or checked < 1000:
    fail("only", checked, "checks:", len(rows), "of", count, "rows of functions.def were read")
if len(sys.argv) > 1:
    model = "data { real x; real y; real z; }\nlet {\n%s\n}\nprior { mu ~ normal(%s, 1); }\n" % (
        "\n".join(lines), " + ".join("d%d" % i for i in range(len(lines))))
    with tempfile.NamedTemporaryFile("w", suffix=".gm") as file:
        file.write(model)
        file.flush()
        done = subprocess.run([sys.argv[1], "-q", "--emit=graph", file.name], capture_output=True, text=True)
    if done.returncode:
        fail("the compiler refuses a derivative:", done.stderr[:2000])
print(checked, "derivatives,", len(rows), "rows,", failed, "failed")
sys.exit(failed > 0)
