#!/usr/bin/env python3
"""What --emit=gradient prints, in doubles, against differences of the log density, in 50 digits: every distribution of the stdlib by its
value and by each real argument, also far out in its tails, and the models below.

    gradient.py GMC [NAME ...]        needs numpy, scipy and mpmath

The log density is that of the factors which --emit=graph prints, by the formulas of the stdlib's .gm files, which gmlib.py reads. Central
differences with h = 1e-14 of the argument's size lose h^2 = 1e-28 of the size of the third derivative, and 1e-50/h: nothing that 1e-6 of
the derivative could hide. Nothing here is random but the points, which are the same in every run.
"""
import math
import os
import re
import subprocess
import sys
import tempfile

import mpmath
import numpy as np
from mpmath import mpf

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import gmlib          # noqa: E402
import prove          # noqa: E402
from gmlib import Reader          # noqa: E402

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
TOLERANCE = 1e-6
mpmath.mp.dps = 50

# ---------------------------------------------------------------- values


def matrix(f):
    return lambda a: f(mpmath.matrix(a)).tolist()


def log_determinant(a):
    return mpmath.log(abs(mpmath.det(mpmath.matrix(a))))


def mp_log_sum_exp(a, b=None):
    terms = a if b is None else [a, b]
    top = max(terms)
    return top if top == -mpmath.inf else top + mpmath.log(sum(mpmath.exp(t - top) for t in terms))


def log1m_exp(a):
    return mpmath.log(-mpmath.expm1(a))


def inc_beta(a, b, x):
    return mpmath.betainc(a, b, 0, x, regularized=True)


def mp_student_t_lcdf(z, nu):
    half = inc_beta(nu / 2, mpf(1) / 2, nu / (nu + z * z)) / 2
    return mpmath.log(half if z < 0 else 1 - half)


def lbeta(a, b):
    return mpmath.loggamma(a) + mpmath.loggamma(b) - mpmath.loggamma(a + b)


def log_phi(x):
    return mpmath.log(mpmath.erfc(-x / mpmath.sqrt(2)) / 2) if x < 0 else mpmath.log1p(-mpmath.erfc(x / mpmath.sqrt(2)) / 2)


EXACT = dict(
    exp=mpmath.exp, log=lambda a: mpmath.log(a) if a else -mpmath.inf, log1p=mpmath.log1p, expm1=mpmath.expm1, sqrt=mpmath.sqrt,
    square=lambda a: a * a, inv=lambda a: 1 / mpf(a),
    inv_sqrt=lambda a: 1 / mpmath.sqrt(a), inv_square=lambda a: 1 / mpf(a) ** 2, abs=abs, fabs=abs, floor=mpmath.floor, ceil=mpmath.ceil,
    round=mpmath.nint, sin=mpmath.sin,
    cos=mpmath.cos, tan=mpmath.tan, atan=mpmath.atan, tanh=mpmath.tanh, cbrt=mpmath.cbrt, pow=mpmath.power, fmax=max, fmin=min,
    atan2=mpmath.atan2, hypot=mpmath.hypot,
    lgamma=mpmath.loggamma, digamma=lambda a: mpmath.psi(0, a), lgamma_rise=lambda a, n: mpmath.loggamma(a + n) - mpmath.loggamma(a),
    digamma_rise=lambda a, n: mpmath.psi(0, a + n) - mpmath.psi(0, a), lbeta=lbeta, erf=mpmath.erf, erfc=mpmath.erfc, Phi=mpmath.ncdf,
    log_Phi=log_phi, std_normal_lcdf=log_phi,
    inv_logit=lambda a: 1 / (1 + mpmath.exp(-a)), log_inv_logit=lambda a: -mpmath.log1p(mpmath.exp(-a)),
    log1m_inv_logit=lambda a: -mpmath.log1p(mpmath.exp(a)),
    logit=lambda a: mpmath.log(a / (1 - a)), log1m=lambda a: mpmath.log1p(-a) if a != 1 else -mpmath.inf,
    log1p_exp=lambda a: mpmath.log1p(mpmath.exp(a)), log1m_exp=log1m_exp,
    log_diff_exp=lambda a, b: a + log1m_exp(b - a), lchoose=lambda n, k: -mpmath.log(n + 1) - lbeta(n - k + 1, k + 1),
    log_sum_exp=mp_log_sum_exp, log_sum_exp2=mp_log_sum_exp,
    inv_cloglog=lambda a: -mpmath.expm1(-mpmath.exp(a)), inv_Phi=lambda a: mpmath.sqrt(2) * mpmath.erfinv(2 * a - 1),
    Phi_approx=lambda a: 1 / (1 + mpmath.exp(-mpf(0.07056) * a ** 3 - mpf(1.5976) * a)),
    log_bessel_i0=lambda a: mpmath.log(mpmath.besseli(0, a)), log_bessel_k=lambda p, a: mpmath.log(mpmath.besselk(p, a)),
    gamma_p=lambda a, x: mpmath.gammainc(a, 0, x, regularized=True), gamma_q=lambda a, x: mpmath.gammainc(a, x, regularized=True),
    inc_beta=inc_beta,
    log_gamma_p=lambda a, x: mpmath.log(mpmath.gammainc(a, 0, x, regularized=True)), log_gamma_q=lambda a,
    x: mpmath.log(mpmath.gammainc(a, x, regularized=True)),
    log_inc_beta=lambda a, b, x: mpmath.log(inc_beta(a, b, x)), std_student_t_lcdf=mp_student_t_lcdf,
    rep_vector=lambda a, n: [a] * int(n),
    identity_matrix=lambda n: [[mpf(i == j) for j in range(int(n))] for i in range(int(n))],
    log_Phi_dx=lambda x: mpmath.npdf(x) / mpmath.ncdf(x),
    pi=lambda: +mpmath.pi, infinity=lambda: mpmath.inf, rows=len, sum=sum, same=lambda a, b: int(a == b),
    inverse=matrix(lambda a: a ** -1), log_determinant=log_determinant, tcrossprod=matrix(lambda a: a * a.T),
    cholesky_decompose=matrix(mpmath.cholesky))
DOUBLE = dict(gmlib.FUNCTIONS, rep_vector=lambda a, n: [a] * int(n), identity_matrix=lambda n: np.eye(int(n)).tolist(),
              same=lambda a, b: int(a == b),
              inverse=lambda a: np.linalg.inv(np.array(a, float)).tolist(),
              log_determinant=lambda a: np.linalg.slogdet(np.array(a, float))[1],
              cholesky_decompose=lambda a: np.linalg.cholesky(np.array(a, float)).tolist())


class Values:
    """Trees as Reader makes them, by scalars and nested lists; a branch that is not taken is not evaluated."""

    def __init__(self, exact, printed):
        self.functions, self.number = (EXACT, mpf) if exact else (DOUBLE, float)
        self.printed = printed                             # printed by the compiler: 1/2 is a half

    def of(self, e, env):
        kind = e[0]
        if kind == "number":
            return e[1] if isinstance(e[1], int) and not self.printed else self.number(e[1])
        if kind == "name":
            return {"inf": self.number(math.inf)}[e[1]] if e[1] not in env else env[e[1]]
        if kind == "neg":
            return -self.of(e[1], env)
        if kind == "not":
            return not self.of(e[1], env)
        if kind == "cond" or (kind == "call" and e[1] == "if_else"):
            c, a, b = e[1:] if kind == "cond" else e[2]
            return self.of(a if self.of(c, env) else b, env)
        if kind == "call":
            return self.functions[e[1]](*[self.of(a, env) for a in e[2]])
        if kind == "loops":
            terms = list(self.terms(e[2], e[3], e[4], env))
            if e[1] in ("log_sum_exp", "max", "min"):
                return {"max": max, "min": min}.get(e[1], self.functions["log_sum_exp"])(terms)
            total = self.number(e[1] == "prod")
            for t in terms:
                total = total * t if e[1] == "prod" else total + t
            return total
        if kind == "comprehension":
            return list(self.terms([e[1:4]], None, e[4], env))
        if kind == "reduce":
            return self.of(("loops", e[1], [e[2:5]], None, e[5]), env)
        if kind == "index":
            out = self.of(e[1], env)
            for i in e[2]:
                at = int(self.of(i, env))
                if not 1 <= at <= len(out):
                    raise IndexError(f"{at} in {e}")
                out = out[at - 1]
            return out
        if kind == "array":
            return [self.of(i, env) for i in e[1]]
        if kind in ("&&", "||"):
            a = self.of(e[1], env)
            return (a and self.of(e[2], env)) if kind == "&&" else (a or self.of(e[2], env))
        a, b = self.of(e[1], env), self.of(e[2], env)
        if kind == "/":
            if isinstance(a, int) and isinstance(b, int):
                return a // b
            return a / b if b else self.number(a) * self.number(math.inf)
        if kind == "^":
            return self.number(a) ** b
        if kind == "*" and not self.printed and (a == 0 or b == 0):
            return 0 * self.number(1)                      # 0 log 0 = 0 in a density; its derivative must not count on it
        return {"+": lambda: a + b, "-": lambda: a - b, "*": lambda: a * b, "==": lambda: a == b, "!=": lambda: a != b, "<": lambda: a < b,
                "<=": lambda: a <= b,
                ">": lambda: a > b, ">=": lambda: a >= b}[kind]()

    def terms(self, loops, guard, body, env):
        if not loops:
            if guard is None or self.of(guard, env):
                yield self.of(body, env)
            return
        name, lo, hi = loops[0]
        for k in range(int(self.of(lo, env)), int(self.of(hi, env)) + 1):
            yield from self.terms(loops[1:], guard, body, {**env, name: k})


class Printed(Reader):
    """What the compiler prints: sums over several loops with a condition, and arrays, beside the language."""

    def loops(self):
        loops = []
        while self.words[self.i + 1] == "in":
            name = self.take()
            self.take("in")
            lo = self.binary(4)
            self.take(":")
            loops.append((name, lo, self.binary(4)))
            if self.peek() != ",":
                break
            if self.words[self.i + 2] != "in":
                break
            self.take(",")
        return loops, self.expression() if self.accept("where") else None

    def primary(self):
        if self.peek() == "[" and self.words[self.i + 2] == "in":
            self.take()
            (loop,), _ = self.loops()
            self.take(",")
            body = self.expression()
            self.take("]")
            return ("comprehension", *loop, body)
        if self.words[self.i + 1] == "(" and self.words[self.i + 3:self.i + 4] == ["in"]:
            name = self.take()
            self.take("(")
            loops, guard = self.loops()
            self.take(",")
            body = self.expression()
            self.take(")")
            return ("loops", name, loops, guard, body)
        return super().primary()

    def call(self):
        name = self.take()
        self.take("(")
        return name, self.list_until(")")


# ---------------------------------------------------------------- what the compiler prints

class Factor:
    def __init__(self, text):
        text, _, over = text.partition(" over ")
        self.loops, self.guard = [], None
        if over:
            self.loops, self.guard = Printed(over, "factor").loops()
        elif " where " in text:
            text, _, guard = text.partition(" where ")
            self.guard = Printed(guard, "factor").expression()
        m = re.match(r"(\w+)\((.*)\)$", text)
        self.name = m and m[1] if " | " in text or text.endswith("()") or m and m[1] in library else None
        if self.name is None:
            self.value = Printed(text, "factor").expression()
            return
        value, _, args = m[2].partition(" | ")
        self.value = Printed(value, "factor").expression()
        r = Printed(args, "factor")
        self.args, self.components, self.plate = [], [], None
        while r.peek() is not None:
            e = r.expression()
            if r.accept(":"):
                self.components.append((e, *r.call()))
                if r.accept("for"):
                    name = r.take()
                    r.take("in")
                    r.take()
                    r.take(":")
                    self.plate = (name, r.expression())
            else:
                self.args.append(e)
            r.accept(",")

    def density(self, name, args, env, x):
        d = library[name]
        values = {p[0]: v for p, v in zip(d["params"], args)}
        return Values(True, False).of(d["log_density"], {**values, "x": x})

    def log_density(self, env):
        v = Values(True, True)
        total = mpf(0)
        for at in self.turns(v, self.loops, env):
            if self.name is None:
                total += 0 if self.value[0] == "call" and self.value[1] == "within" else v.of(self.value, at)
                continue
            x = v.of(self.value, at)
            if self.name != "mixture":
                total += self.density(self.name, [v.of(a, at) for a in self.args], at, x)
                continue
            turns = [{**at, self.plate[0]: k} for k in range(1, int(v.of(self.plate[1], at)) + 1)] if self.plate else [at]
            total += mp_log_sum_exp([mpmath.log(v.of(w, t)) + (self.density(name, [v.of(a, t) for a in args], t, x)
                                                               if self.possible(name, args, x, t) else -mpmath.inf)
                                     for t in turns for w, name, args in self.components])
        return total

    def possible(self, name, args, x, at):
        support, ends = library[name]["support"]
        env = {p[0]: Values(True, True).of(a, at) for p, a in zip(library[name]["params"], args)}
        lo, hi = [Values(True, False).of(e, env) for e in ends] if len(ends) == 2 else {"positive": (0, math.inf),
                "unit": (0, 1)}.get(support, (-math.inf, math.inf))
        return lo <= x <= hi

    def turns(self, v, loops, env):
        if not loops:
            if self.guard is None or v.of(self.guard, env):
                yield env
            return
        name, lo, hi = loops[0]
        for k in range(int(v.of(lo, env)), int(v.of(hi, env)) + 1):
            yield from self.turns(v, loops[1:], {**env, name: k})


def gmc(stage, path):
    run = subprocess.run([sys.argv[1], "-q", "--emit=" + stage, path], capture_output=True, text=True)
    if run.returncode:
        raise SystemExit(f"gmc fails on {open(path).read()}\n{run.stderr}")
    return run.stdout


def read_gradient(text):
    """{unknown: (element's indices, [terms])}, and {unknown: why not}"""
    known, unknown = {}, {}
    for line in text.splitlines():
        m = re.match(r"d log p / d (\w+)(?:\[(.*)\])? =(.*)", line)
        if m and m[3]:
            unknown[m[1]] = m[3].split("#")[0].strip()
        elif m:
            terms = known.setdefault(m[1], (m[2].split(", ") if m[2] else [], []))[1]
        else:
            line = line.split("    # ")[0].strip()
            sign, line = (line[0], line[1:]) if line[0] in "+-" else ("+", line)
            terms.append(Printed(("-" if sign == "-" else "") + line, "gradient").expression())
    return known, unknown


# ---------------------------------------------------------------- comparison

failed = checked = 0


def fail(*words):
    global failed
    failed += 1
    print("FAILED", *words)


def exact(v):
    return [exact(x) for x in v] if isinstance(v, list) else mpf(v) if isinstance(v, float) else v


def positions(v, at=()):
    if not isinstance(v, list):
        yield at
    else:
        for k, x in enumerate(v):
            yield from positions(x, at + (k,))


def moved(v, at, by):
    if not at:
        return v + by
    v = list(v)
    v[at[0]] = moved(v[at[0]], at[1:], by)
    return v


def picked(v, at):
    for k in at:
        v = v[k]
    return v


class Model:
    def __init__(self, text):
        with tempfile.NamedTemporaryFile("w", suffix=".gm") as f:
            f.write(text)
            f.flush()
            graph, gradient = gmc("graph", f.name), gmc("gradient", f.name)
        self.factors = [Factor(line[len("factor "):]) for line in graph.splitlines() if line.startswith("factor ")]
        self.known, self.unknown = read_gradient(gradient)

    def check(self, name, env, not_known=()):
        """Every element of every continuous unknown at these values."""
        global checked
        if set(self.unknown) != set(not_known):
            fail(name, "derivatives that are not known:", self.unknown, "expected:", not_known)
        high = {k: exact(v) for k, v in env.items()}
        for v, (indices, terms) in self.known.items():
            for at in positions(env[v]):
                x = picked(high[v], at)
                h = mpf(10) ** -14 * (abs(x) or 1)
                sides = [sum(f.log_density({**high, v: moved(high[v], at, s * h)}) for f in self.factors) for s in (-1, 1)]
                slope = (sides[1] - sides[0]) / (2 * h)
                element = {i: k + 1 for i, k in zip(indices, at)}
                with np.errstate(all="ignore"):
                    parts = [float(Values(False, True).of(t, {**env, **element})) for t in terms]
                ours = sum(parts)
                # y - inv_logit(40) and what cancels between factors: to 1e-15
                size = abs(float(slope)) + 1e-9 * max([abs(p) for p in parts] + [1])
                checked += 1
                if not abs(ours - float(slope)) <= TOLERANCE * size:
                    fail(name, f"d log p / d {v}{list(k + 1 for k in at) if at else ''}: {ours:.12g}, by differences "
                               f"{mpmath.nstr(slope, 12)}", {k: v for k, v in env.items() if not isinstance(v, list)})


# ---------------------------------------------------------------- every distribution

def prior_of(name, kind, bounds):
    lo, hi = bounds.get("lower"), bounds.get("upper")
    if hi is not None:
        return f"{name} ~ uniform(0, 1);"
    return f"{name} ~ half_flat();" if lo == ("number", 0) else f"{name} ~ flat();"


# Of arguments that are no scalars: declaration of sizes, prior, values.
ARRAYS = {
    "simplex": (lambda n: f"{n} ~ dirichlet(rep_vector(1, 3));", [0.2, 0.5, 0.3]),
    "vector": (lambda n: f"for (k in 1:3) {n}[k] ~ flat();", [0.3, -1.1, 1.4]),
    "ordered": (lambda n: f"ordered[3] {n} ~ normal(0, 5);", [-1.0, 0.4, 1.7]),
    "cov_matrix": (lambda n: f"{n} ~ wishart(5, identity_matrix(3));", [[1.5, 0.3, -0.2], [0.3, 0.9, 0.1], [-0.2, 0.1, 2.0]]),
    "cholesky_factor_cov": (lambda n: f"cholesky_factor_corr[3] {n} ~ lkj_corr_cholesky(2);",
                            [[1.0, 0.0, 0.0], [0.6, 0.8, 0.0], [-0.2, 0.3, 0.9]])}
VALUES = {1: [[0.3, -1.0, 2.0]], 2: [[[1.2, 0.1, 0.2], [0.1, 0.7, -0.3], [0.2, -0.3, 2.2]]]}
OTHERWISE = {"flat": "0", "half_flat": "0", "polya_gamma": "its density is a series", "discrete_range": "of integers alone",
             "hypergeometric": "of integers alone"}


def model_of(d):
    data, prior, args = [], [], []
    for name, kind, bounds in d["params"]:
        args.append(name)
        if kind == "int":
            data.append(f"int {name};")
        elif kind == "array of int":
            data.append(f"int {name}[3];")
        elif kind == "real":
            prior.append(prior_of(name, kind, bounds))
        elif kind == "vector" and bounds:
            prior.append(f"for (k in 1:3) {name}[k] ~ half_flat();")
        else:
            prior.append(ARRAYS[kind][0](name))
    call = f"{d['name']}({', '.join(args)})"
    support = d["support"][0]
    if support in ("integer", "counts"):
        data.append("int x[3];" if support == "counts" else "int x;")
        return f"data {{ {' '.join(data)} }}\nprior {{ {' '.join(prior)} }}\nlikelihood {{ x ~ {call}; }}\n"
    declared = {"correlation": "corr_matrix[3] ", "cholesky_correlation": "cholesky_factor_corr[3] "}.get(support, "")
    where = "x ~ " if support != "vector" else "x[1:3] ~ "
    return f"data {{ {' '.join(data)} }}\nprior {{ {' '.join(prior)} {declared}{where}{call}; }}\n".replace("data {  }\n", "")


def points_of(d, env):
    """Values of x: in the bulk, and 30 scales away."""
    name, support = d["name"], d["support"][0]
    scale = env.get("sigma", env.get("omega", max([abs(env[p[0]]) for p in d["params"] if p[1] == "real"] + [1.0])))
    if support in ("simplex",):
        return [[0.2, 0.3, 0.5], [1e-6, 0.999, 1e-3]]
    if support == "counts":
        return [[3, 0, 4], [0, 0, 9]]
    if support == "vector":
        return [[0.3, -1.0, 2.0], [30.0, -20.0, 5.0]]
    if support == "covariance":
        return VALUES[2]
    if support == "correlation":
        return [[[1.0, 0.4, -0.3], [0.4, 1.0, 0.2], [-0.3, 0.2, 1.0]]]
    if support == "cholesky_correlation":
        return [[[1.0, 0.0, 0.0], [0.6, 0.8, 0.0], [-0.2, 0.3, math.sqrt(0.87)]]]
    ends = {"unit": (0, 1), "positive": (0, math.inf), "circle": (-math.pi, math.pi), "real": (-math.inf, math.inf)}.get(support)
    if ends is None:
        both = {k: v if not isinstance(v, float) else mpf(v) for k, v in env.items()}
        ends = [float(Values(True, False).of(e, both)) for e in d["support"][1]]
    lo, hi = ends
    if support == "integer":
        return sorted({int(max(lo, min(hi, k))) for k in (lo if math.isfinite(lo) else 0, 1, 2, 7, hi if math.isfinite(hi) else 300)})
    if math.isfinite(lo) and math.isfinite(hi):
        return [lo + (hi - lo) * f for f in (1e-7, 0.3, 0.8, 1 - 1e-7)]
    if math.isfinite(lo):
        return [lo + scale * f for f in (1e-3, 0.4, 1.3, 30.0)]
    centre = env.get("mu", env.get("xi", 0.0))
    return [centre + scale * f for f in (-30.0, -1.3, 0.4, 2.1, 30.0)]


def cases_of(name, d):
    table = {**prove.UNIVARIATE, **prove.DISCRETE}
    if name in table:
        values = [list(v) for v in table[name][0]]
        extreme = {"bernoulli": [(1e-7,), (1 - 1e-7,)], "bernoulli_logit": [(-40.,), (40.,)],
                   "bernoulli_probit": [(-9.,), (9.,)], "binomial": [(12, 1e-7), (12, 1 - 1e-7)],
                   "binomial_logit": [(12, -40.), (12, 40.)],
                   "poisson_log": [(-30.,), (20.,)], "ordered_logistic": [(-40., [-1.0, 0.5, 2.0]), (40., [-1.0, 0.5, 2.0])],
                   "ordered_probit": [(-30., [-1.0, 0.5, 2.0]), (25., [-1.0, 0.5, 2.0])], "skew_normal": [(1., 0.1, 30.)],
                   "exp_mod_normal": [(0., 0.1, 0.3)]}.get(name, [])
        return [[v.tolist() if isinstance(v, np.ndarray) else v for v in case] for case in values + [list(e) for e in extreme]]
    values = {"neighbours": [2.0, 2.0, 2.0], "lambda": [1.0, -0.5, -0.5], "node1": [1, 2, 1], "node2": [2, 3, 3], "phi": 0.7,
              "gamma": 0.4, "islands": 1}
    if name in ("icar", "car_normal", "car_proper", "ar1"):
        return [[values[p] if p in values else [0.5, 2.0, 3.0] if kind == "vector" else 4.5 for p, kind, _ in d["params"]]]
    return [[ARRAYS[kind][1] if kind in ARRAYS and not bounds else [0.5, 2.0, 3.0] if kind == "vector" else 4.5 for _, kind,
             bounds in d["params"]]]


def three(v):
    """Vectors of another length than the model's are left out."""
    return not isinstance(v, list) or len(v) == 3


def check_distribution(name, d):
    model = Model(model_of(d))
    for case in cases_of(name, d):
        if not all(three(v) for v in case):
            continue
        env = dict(zip((p[0] for p in d["params"]), case))
        for x in points_of(d, env):
            model.check(name, {**env, "x": x})


# ---------------------------------------------------------------- models

rng = np.random.default_rng(3)


def normal(*shape):
    return rng.normal(size=shape).tolist()


def positive(*shape):
    return np.exp(rng.normal(size=shape)).tolist()


X, Y, G, Z = normal(7, 3), normal(7), [1, 2, 1, 3, 3, 1, 2], [0.0, 0.5, 1.2, 0.0, 2.0, 0.3, 0.7]
COVARIANCE = [[1.5, 0.3, -0.2], [0.3, 0.9, 0.1], [-0.2, 0.1, 2.0]]

# name: (model, values, unknowns without a derivative)
MODELS = {
    "predictor": ("""
data { int N, p, J; matrix[N, p] X; int<lower=0, upper=1> y[N]; int<lower=1, upper=J> g[N]; int<lower=0> n[N]; vector[N] v; }
prior { alpha ~ normal(0, 5); beta[1:p] ~ normal(0, 2.5); tau ~ half_cauchy(0, 1); for (j in 1:J) u[j] ~ normal(0, tau); phi ~ gamma(2, 1);
  s ~ half_normal(0, 1); }
likelihood {
  eta = alpha + X * beta + u[g];
  y ~ bernoulli_logit(eta);
  n ~ neg_binomial_2_log(eta, phi);
  y ~ bernoulli(Phi(eta));
  v ~ student_t(4, alpha - 2 * beta[1] * (X * beta), s);
}""", dict(N=7, p=3, J=3, X=X, y=[0, 1, 1, 0, 1, 0, 0], g=G, n=[0, 3, 12, 0, 1, 5, 2], v=Y, alpha=0.3, beta=[0.5, -1.2, 0.1], tau=0.7,
           u=[0.2, -0.4, 0.9], phi=1.4, s=0.8), ()),
    "softmax": ("""
data { int N, p, K; matrix[N, p] X; int<lower=1, upper=K> y[N]; vector[K] w; vector[N] v; }
prior { for (j in 1:p, k in 1:K) B[j, k] ~ cauchy(0, 2.5); for (k in 1:K) a[k] ~ normal(0, 1); }
likelihood {
  for (i in 1:N) y[i] ~ categorical_logit(X[i] * B);
  for (k in 1:K) w[k] ~ normal(softmax(a)[k] + log_softmax(2 * a)[k], 1);
  for (i in 1:N) v[i] ~ normal(log_sum_exp(X[i] * B), 1);
}""", dict(N=7, p=3, K=3, X=X, y=G, w=[0.2, 0.1, 0.7], v=Y, B=normal(3, 3), a=[40.0, 0.3, -1.0]), ()),
    "choice": ("""
data { int N; vector<lower=0>[N] x; vector[N] y; int<lower=0> n[N]; int K; matrix<lower=0>[N, K] M; }
prior { a ~ half_normal(0, 1); r ~ half_normal(0, 1); s ~ half_normal(0, 1); t ~ normal(0, 1); for (k in 1:K) b[k] ~ half_normal(0, 1); }
likelihood {
  for (i in 1:N) y[i] ~ normal(x[i] > 0 ? log(a * x[i]) : 2 * a, 1);
  for (i in 1:N) n[i] ~ poisson(r * x[i] + s * x[i]);
  for (i in 1:N) if (x[i] > 0.4) y[i] ~ normal(fmax(t, 0.2) + abs(t - 1) * x[i], x[i]); else y[i] ~ normal(t > 0 ? exp(t) : a, 1);
  for (i in 1:N) y[i] ~ normal(x[i] > 0 ? sum(k in 1:K, log(x[i] * b[k])) : x[i] < 5 ? 1 / (a + t) : 0, 1);
  for (i in 1:N) y[i] ~ normal(fmax(fmin(x[i] * t, 0.6), sqrt(b[1] * b[2])), 1);
}""", dict(N=7, x=Z, y=Y, n=[0, 1, 2, 0, 4, 1, 0], K=3, M=positive(7, 3), a=0.7, r=0.4, s=1.1, t=0.45, b=[0.5, 1.3, 0.2]), ()),
    "cases": ("""
data { int N; vector[N] y, x; int c[N]; vector<lower=0>[2] d; }
prior { a ~ normal(0, 1); b ~ normal(0, 1); }
likelihood {
  for (i in 1:N) x0[i] = a + b * x[i];
""" + "".join(f"  for (i in 1:N) x{k}[i] = y[i] > d[{k}] ? sin(x{k - 1}[i]) : x[i] > d[{k}] ? log(x{k - 1}[i] + b) / x[i] : {k};\n"
              for k in range(1, 3)) + """
  for (i in 1:N) y[i] ~ normal(x2[i], 1);
  for (i in 1:N) y[i] ~ normal([a, b, exp(a * b), log(b), exp(-a)][c[i]] * square(a), 1);
}""", dict(N=7, y=Y, x=[0.0, 0.5, 0.0, 1.1, 0.0, 2.0, 0.4], c=[1, 5, 3, 4, 5, 2, 2], d=[0.0, 0.3], a=0.8, b=2.1), ()),
    "network": ("""
data { int N, p, H; matrix[N, p] X; vector[N] y; int<lower=1> last[H]; }
prior { for (j in 1:H, l in 1:p) W1[j, l] ~ normal(0, 1); for (k in 1:H, j in 1:H) W2[k, j] ~ normal(0, 1);
  for (k in 1:H) v[k] ~ normal(0, 1); b ~ normal(0, 1); }
likelihood {
  for (i in 1:N) y[i] ~ normal(sum(k in 1:H, v[k] * tanh(sum(j in 1:H, W2[k, j] * tanh(b + sum(l in 1:p, W1[j, l] * X[i, l]))))), exp(b));
  for (i in 1:N) y[i] ~ normal(sum(k in 1:H, exp(b * v[k]) * sum(j in 1:last[k], W2[k, j] * square(v[j])
  * sum(l in j:p, W1[k, l] * v[j]))), 1);
}""", dict(N=3, p=3, H=3, X=X[:3], y=Y[:3], last=[2, 3, 1], W1=normal(3, 3), W2=normal(3, 3), v=normal(3), b=0.3), ()),
    "mixtures": ("""
data { int N, K; vector[N] y; int<lower=0> n[N]; }
prior {
  theta ~ beta(5, 5); for (k in 1:2) mu[k] ~ normal(0, 2); for (k in 1:2) sigma[k] ~ half_normal(0, 2); w ~ dirichlet(rep_vector(1, K));
  for (k in 1:K) m[k] ~ normal(0, 3);
  p ~ beta(1, 1); lambda ~ gamma(2, 1); b ~ mixture(0.3, normal(0, 0.1), normal(0, 5));
}
likelihood {
  for (i in 1:N) y[i] ~ mixture(theta, normal(mu[1], sigma[1]), normal(mu[2], sigma[2]));
  for (i in 1:N) y[i] ~ mixture(w, normal(m, 1));
  n ~ mixture(p, poisson(lambda), discrete_range(0, 0));
  y ~ mixture([0.2, 0.8], normal(b, 1), student_t(4, b, 3));
  y ~ mixture([0.1, 0.6, 0.3], normal(b, 1), normal(-b, lambda), cauchy(m[1], 1));
  target += log_sum_exp(log(theta) + normal_lpdf(y[1] | b, 1), log1m(theta) + normal_lpdf(y[1] | b, 0.001));
}""", dict(N=7, K=3, y=Y, n=[0, 1, 2, 0, 4, 1, 0], theta=0.3, mu=[-1.0, 30.0], sigma=[0.4, 1.3], w=[0.2, 0.7, 0.1], m=[-2.0, 0.1, 1.5],
           p=0.4, lambda_=None, b=0.2), ()),
    "products": ("""
data { int N, K; int<lower=1, upper=K> y[N]; vector[N] z; vector[K] d; }
prior { for (k in 1:K - 1) v[k] ~ beta(1, 2); for (k in 1:K) c[k] ~ normal(0, 1); for (k in 1:K) r[k] ~ half_normal(0, 1); }
likelihood {
  for (i in 1:N) y[i] ~ categorical(stick_breaking(v));
  for (i in 1:N) z[i] ~ normal(prod(c), 1);
  for (i in 1:N) z[i] ~ normal(0, prod(r));
  for (i in 1:N) z[i] ~ normal(sum(k in 1:K, prod(j in 1:k, c[j] - d[j])), 1);
  target += log(prod(k in 1:K, 1 + square(c[k])));
}""", dict(N=7, K=3, y=G, z=Y, d=[0.0, 0.3, -0.1], v=[0.3, 0.6], c=[0.7, 0.0, -1.1], r=[0.4, 1.2, 2.0]), ()),
    "covariances": ("""
data { int N, K; vector[K] z[N]; vector[K] x; matrix[K, K] R; }
prior {
  S ~ inv_wishart(K + 1, identity_matrix(K)); for (k in 1:K) m[k] ~ normal(0, 1); amplitude ~ half_normal(0, 1); rho ~ inv_gamma(3, 1);
  noise ~ half_normal(0, 1);
  for (k in 1:K) f[k] ~ normal(0, 1); for (k in 1:K) tau[k] ~ half_cauchy(0, 1); corr_matrix[K] C ~ lkj_corr(2); nu ~ gamma(2, 0.1);
}
likelihood {
  for (i in 1:N) z[i] ~ multi_normal(m, S);
  for (i in 1:N) z[i] ~ multi_normal(rep_vector(0, K), gp_exp_quad_cov(x, amplitude, rho) + diag_matrix(rep_vector(square(noise), K)));
  for (i in 1:N) z[i] ~ multi_normal(f, quad_form_diag(C, tau));
  for (i in 1:N) z[i] ~ multi_normal_prec(f, tcrossprod(R) + noise * S);
  for (i in 1:N) z[i] ~ multi_student_t(nu, f, (1 + noise) * S);
  target += quad_form(inverse(S + R), f) + determinant(S) + trace(inverse(S));
}""", dict(N=4, K=3, z=normal(4, 3), x=[0.1, 0.9, 2.0], R=normal(3, 3), S=COVARIANCE, m=[0.2, -0.5, 1.0], amplitude=1.2, rho=0.8, noise=0.3,
           f=[0.1, 0.4, -0.2], tau=[0.5, 1.5, 0.8],
           C=[[1.0, 0.4, -0.3], [0.4, 1.0, 0.2], [-0.3, 0.2, 1.0]], nu=6.0), ()),
    "time": ("""
data { int T; vector[T] y; int J; int first[J]; int last[J]; }
prior { x[1] ~ normal(0, 3); for (t in 2:T) x[t] ~ normal(phi * x[t - 1], s); phi ~ uniform(-1, 1); s ~ half_normal(0, 1);
  for (j in 1:J) h[j] ~ normal(0, 1); k ~ half_normal(0, 1); }
likelihood {
  for (t in 1:T) y[t] ~ normal(x[t], exp(x[T - t + 1] / 2));
  for (t in 3:T) y[t] ~ normal(x[t] - 2 * x[t - 1] + x[t - 2], k);
  for (j in 1:J, t in first[j]:last[j]) y[t] ~ normal(h[j] * k, s);
  for (t in 1:T) y[t] ~ normal(cumulative_sum(x)[t] + sum(j in 1:J, sum(l in first[j]:last[j], x[l] * h[j] * x[t])), 1);
  for (t in 1:T) y[t] ~ normal(mean(x), sd(x) + norm2(h) + variance(h));
  target += -squared_distance(x, y) - sum(t in 2:T, pow(abs(x[t] - x[t - 1]) + k, 1 + k));
}""", dict(T=7, y=Y, J=3, first=[1, 3, 6], last=[2, 5, 7], x=normal(7), phi=0.4, s=0.6, h=[0.3, -0.8, 0.5], k=0.9), ()),
    "truncated": ("""
data { int N; vector[N] z; }
prior { a ~ normal(0, 1); s ~ half_normal(0, 1); c ~ normal(0, 1); nu ~ gamma(2, 0.1); }
likelihood {
  for (i in 1:N) target += normal_lpdf(z[i] | a, s) - normal_lccdf(0.1 | a, s) + log(1 + student_t_cdf(z[i] | 3, c, s));
  for (i in 1:N) target += gamma_lcdf(1 + square(z[i]) | 2, s) + log_inv_logit(a * 40) - log1p_exp(-c * 50) + log1m_exp(-square(a) - 0.01)
  + log_diff_exp(s + 1, c);
  for (i in 1:N) target += student_t_lcdf(z[i] - 1 | nu, c, s) + student_t_lccdf(z[i] | nu, c, s) + log1m(gamma_cdf(1 + z[i] | nu, s))
  + gamma_lccdf(8 + z[i] | nu, s);
  for (i in 1:N) target += beta_lcdf(0.4 + z[i] / 20 | nu, s) + log(inc_beta(s, nu, 0.6)) + log(gamma_p(s, 3) + gamma_q(nu, 0.5))
  + log_gamma_p(nu, 0.01) + digamma(nu);
}""", dict(N=7, z=Y, a=0.6, s=0.9, c=-0.7, nu=2.3), ()),
}
MODELS["mixtures"][1]["lambda"] = MODELS["mixtures"][1].pop("lambda_") or 1.7


def main():
    asked = sys.argv[2:]
    for name, d in library.items():
        if name not in OTHERWISE and (not asked or name in asked):
            before = checked
            check_distribution(name, d)
            if checked == before:
                fail(name, "was not looked at")
    for name, (text, env, unknown) in MODELS.items():
        if not asked or name in asked:
            Model(text).check(name, env, unknown)
    print(checked, "derivatives,", failed, "failed")
    return failed > 0


library = gmlib.read_library([os.path.join(ROOT, "stdlib")])["distribution"]
if __name__ == "__main__":
    sys.exit(main())
