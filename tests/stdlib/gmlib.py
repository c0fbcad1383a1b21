"""A reader and evaluator of stdlib files, independent of the compiler: small, slow, numpy.

    library = read_library(["stdlib"])         -> {"distribution": {...}, "family": {...}, "augmentation": {...}}
    evaluate(tree, {"x": 1.5, "mu": 0.0})      trees are nested tuples; indices count from 1

An expression in x may be given an array of x: scalar functions work elementwise, a ternary takes both branches.
"""
import functools
import glob
import math
import os
import re

import mpmath
import numpy as np
from scipy import special

# ---------------------------------------------------------------- words

TOKEN = re.compile(r'(?:\s|#[^\n]*|//[^\n]*)*(?:(\d+\.?\d*(?:[eE][+-]?\d+)?|\.\d+)|([A-Za-z_]\w*)|("[^"]*")'
                   r'|(\+=|==|!=|<=|>=|&&|\|\||\.\*|\./|[-+*/^%<>=!?:;,~(){}\[\]\']))')
LEVELS = [["||"], ["&&"], ["==", "!="], ["<", "<=", ">", ">="], ["+", "-"], ["*", "/", ".*", "./", "%"]]


class Reader:
    def __init__(self, text, path):
        self.path, self.words, at = path, [], 0
        text = text.rstrip() + "\n"
        while True:
            m = TOKEN.match(text, at)
            if not m:
                rest = re.sub(r"#[^\n]*|//[^\n]*", "", text[at:]).strip()
                if rest:
                    raise SyntaxError(f"{path}: cannot read {rest[:30]!r}")
                break
            self.words.append(m.group(m.lastindex))
            at = m.end()
        self.words.append(None)
        self.i = 0

    def peek(self):
        return self.words[self.i]

    def take(self, want=None):
        w = self.words[self.i]
        if want is not None and w != want:
            raise SyntaxError(f"{self.path}: {want!r} expected, found {w!r} after {' '.join(map(str, self.words[self.i-6:self.i]))}")
        self.i += 1
        return w

    def accept(self, word):
        if self.peek() == word:
            self.i += 1
            return True
        return False

    # ------------------------------------------------------------ expressions

    def expression(self):
        cond = self.binary(0)
        if self.accept("?"):
            yes = self.expression()
            self.take(":")
            return ("cond", cond, yes, self.expression())
        return cond

    def binary(self, level):
        if level == len(LEVELS):
            return self.unary()
        left = self.binary(level + 1)
        while self.peek() in LEVELS[level]:
            left = (self.take(), left, self.binary(level + 1))
        return left

    def unary(self):
        if self.accept("-"):
            return ("neg", self.unary())
        if self.accept("!"):
            return ("not", self.unary())
        base = self.postfix()
        return ("^", base, self.unary()) if self.accept("^") else base

    def postfix(self):
        e = self.primary()
        while self.peek() in ("[", "'"):
            if self.accept("'"):
                e = ("transpose", e)
            else:
                self.take("[")
                e = ("index", e, self.list_until("]"))
        return e

    def list_until(self, end):
        items = []
        while not self.accept(end):
            items.append(self.expression())
            if self.peek() != end:
                self.take(",")
        return items

    def primary(self):
        w = self.take()
        if w == "(":
            e = self.expression()
            self.take(")")
            return e
        if w == "[":
            return ("array", self.list_until("]"))
        if re.match(r"[\d.]", w):
            return ("number", float(w) if re.search(r"[.eE]", w) else int(w))
        if not re.match(r"[A-Za-z_]", w):
            raise SyntaxError(f"{self.path}: {w!r} does not begin an expression")
        if not self.accept("("):
            return ("name", w)
        if self.words[self.i + 1] == "in":                # sum(k in lo:hi, e)
            index = self.take()
            self.take("in")
            lo = self.expression()
            self.take(":")
            hi = self.expression()
            self.take(",")
            body = self.expression()
            self.take(")")
            return ("reduce", w, index, lo, hi, body)
        return ("call", w, self.list_until(")"))

    # ------------------------------------------------------------ stdlib files

    def bounds(self):
        b = {}
        if self.accept("<"):
            while True:
                key = self.take()
                self.take("=")
                b[key] = self.binary(4)                    # above the comparisons, which own `>`
                if not self.accept(","):
                    break
            self.take(">")
        return b

    def parameters(self):
        params = []
        if self.accept("("):
            while not self.accept(")"):
                kind = self.take()
                if self.peek() in (")", ","):              # family power_gamma(k)
                    kind, bounds, name = "exponent", {}, kind
                else:
                    if kind == "array":                    # array[E] int<lower=1> node
                        self.take("[")
                        self.list_until("]")
                        kind += " of " + self.take()
                    bounds = self.bounds()
                    if self.accept("["):                   # a size of its own, vector[P]
                        self.list_until("]")
                    name = self.take()
                params.append((name, kind, bounds))
                self.accept(",")
        return params

    def tilde(self, left):
        dist = self.take()
        self.take("(")
        args, cut = self.list_until(")"), None
        if self.peek() == "T":
            self.take()
            self.take("[")
            lo = None if self.peek() == "," else self.expression()
            self.take(",")
            hi = None if self.peek() == "]" else self.expression()
            self.take("]")
            cut = (lo, hi)
        self.take(";")
        return ("~", left, dist, args, cut)

    def statement(self):
        if self.accept("target"):
            self.take("+=")
            e = self.expression()
            self.take(";")
            return ("target", e)
        left = self.take()
        if self.accept("~"):
            return self.tilde(left)
        self.take("=")
        e = self.expression()
        self.take(";")
        return ("=", left, e)

    def item(self):
        kind, name = self.take(), self.take()
        out = dict(kind=kind, name=name, path=self.path, params=self.parameters(), match=[], replace=[], natural=[])
        self.take("{")
        while not self.accept("}"):
            key = self.take()
            if key in ("reference", "meaning"):
                out[key] = self.take()
            elif key == "support":
                support = self.take()
                out[key] = (support, self.list_until(")") if self.accept("(") else [])
            elif key == "match":
                left = self.take()
                self.take("~")
                out[key].append(self.tilde(left))
                continue
            elif key == "synonyms":
                self.take("{")
                while not self.accept("}"):
                    word = self.take()
                    self.take("=")
                    out.setdefault(key, []).append((word, self.take()))
                    self.take(";")
                continue
            elif key in ("replace", "natural"):
                self.take("{")
                while not self.accept("}"):
                    if key == "replace":
                        out[key].append(self.statement())
                    else:
                        symbol = self.take()
                        self.take("on")
                        out[key].append((symbol, self.expression()))
                        self.take(";")
                continue
            elif key == "law":
                of = self.expression()
                self.take("~")
                dist, parameters = self.take(), []
                self.take("(")
                args = self.list_until(")")
                self.take("{")
                while not self.accept("}"):
                    symbol = self.take()
                    self.take("=")
                    parameters.append((symbol, self.expression()))
                    self.take(";")
                out[key] = (of, dist, args, parameters)
                continue
            elif key in ("where", "base"):
                out[key] = self.expression()
            else:
                self.take("=")
                out[key] = self.expression()
            self.take(";")
        return out


def read_library(folders):
    found = dict(distribution={}, family={}, augmentation={})
    for folder in folders:
        for path in sorted(glob.glob(os.path.join(folder, "**", "*.gm"), recursive=True)):
            with open(path) as f:
                r = Reader(f.read(), path)
            while r.peek() is not None:
                if r.peek() == "function":  # values of these are compared by tests/docs/idioms/functions
                    while r.take() != ";":
                        pass
                    continue
                item = r.item()
                if item["name"] in found[item["kind"]]:
                    raise SyntaxError(f"{path}: {item['kind']} {item['name']} is defined twice")
                found[item["kind"]][item["name"]] = item
    return found


# ---------------------------------------------------------------- values

def log1m_exp(a):
    return np.where(a > -math.log(2), np.log(-np.expm1(a)), np.log1p(-np.exp(np.minimum(a, 0))))


def inc_beta(a, b, x):
    """With a = 0 the point 0, with b = 0 the point 1."""
    a, b, x = np.broadcast_arrays(*map(np.asarray, (a, b, x)))
    inside = (a > 0) & (b > 0)
    return np.where(inside, special.betainc(np.where(inside, a, 1), np.where(inside, b, 1), x), np.where(a > 0, x >= 1, 1.0))


def slope(f, k):
    """The derivative of a function of mpmath by its argument k, from differences in twice the digits of a double."""
    def by(*args):
        with mpmath.workdps(32):
            at = [mpmath.mpf(float(a)) for a in args]
            return float(mpmath.diff(lambda t: f(*at[:k], t, *at[k + 1:]), at[k]))
    return np.vectorize(by)


def mp_log_inc_beta(a, b, x):
    return mpmath.log(mpmath.betainc(a, b, 0, x, regularized=True))


def mp_student_t_lcdf(z, nu):
    half = mpmath.betainc(nu / 2, 0.5, 0, nu / (nu + z * z), regularized=True) / 2
    return mpmath.log(half if z < 0 else 1 - half)


FUNCTIONS = dict(
    exp=np.exp, log=np.log, log1p=np.log1p, sqrt=np.sqrt, square=np.square, abs=np.abs, floor=np.floor, sin=np.sin, cos=np.cos,
    atan2=np.arctan2, fmax=np.maximum, fmin=np.minimum, lgamma=special.gammaln, digamma=special.digamma, lgamma_rise=lambda x,
    n: special.gammaln(np.asarray(x) + n) - special.gammaln(x),
    digamma_rise=lambda x, n: special.digamma(np.asarray(x) + n) - special.digamma(x), lbeta=special.betaln,
    erf=special.erf, Phi=special.ndtr, log_Phi=special.log_ndtr, inv_logit=special.expit, log_inv_logit=special.log_expit,
    log1m_inv_logit=lambda a: special.log_expit(-np.asarray(a)), log1m=lambda a: np.log1p(-np.asarray(a)),
    log1p_exp=lambda a: np.logaddexp(0, a), log1m_exp=log1m_exp, log_diff_exp=lambda a, b: a + log1m_exp(np.asarray(b) - a),
    lchoose=lambda n, k: special.gammaln(n + 1) - special.gammaln(np.asarray(k) + 1) - special.gammaln(n - np.asarray(k) + 1),
    log_sum_exp=lambda a, b=None: special.logsumexp(a) if b is None else np.logaddexp(a, b),
    log_bessel_i0=lambda a: np.log(special.ive(0, a)) + np.abs(a), log_bessel_k=lambda p, a: np.log(special.kve(p, a)) - a,
    gamma_p=special.gammainc, gamma_q=special.gammaincc, inc_beta=special.betainc,
    log_gamma_p=lambda a, x: np.log(special.gammainc(a, x)), log_gamma_q=lambda a, x: np.log(special.gammaincc(a, x)),
    log_inc_beta=lambda a, b, x: np.log(inc_beta(a, b, x)), std_student_t_lcdf=lambda z, nu: np.log(special.stdtr(nu, z)),
    expm1=np.expm1, cbrt=np.cbrt, inv=lambda a: 1 / np.asarray(a, float), inv_sqrt=lambda a: 1 / np.sqrt(a),
    inv_square=lambda a: np.asarray(a, float) ** -2.0,
    fabs=np.abs, ceil=np.ceil, round=np.round, tan=np.tan, asin=np.arcsin, acos=np.arccos, atan=np.arctan, sinh=np.sinh, cosh=np.cosh,
    tanh=np.tanh,
    Phi_approx=lambda a: special.expit(0.07056 * np.power(a, 3.0) + 1.5976 * a), inv_Phi=special.ndtri, std_normal_lcdf=special.log_ndtr,
    logit=special.logit,
    cloglog=lambda a: np.log(-np.log1p(-np.asarray(a))), inv_cloglog=lambda a: -np.expm1(-np.exp(a)), erfc=special.erfc,
    step=lambda a: np.greater_equal(a, 0) * 1, int_step=lambda a: np.greater(a, 0) * 1, choose=special.binom, pow=np.float_power,
    hypot=np.hypot,
    min=np.minimum, max=np.maximum, fma=lambda a, b, c: a * b + c, if_else=lambda c, a, b: np.where(np.asarray(c) != 0, a, b),
    log_sum_exp2=np.logaddexp,
    log_Phi_dx=lambda a: math.sqrt(2 / math.pi) / special.erfcx(-np.asarray(a) / math.sqrt(2)), trigamma=lambda a: special.polygamma(1, a),
    log_bessel_i0_dx=lambda a: np.where(np.isinf(a), np.sign(a), special.i1e(a) / special.i0e(a)),
    log_bessel_k_dp=slope(lambda p, x: mpmath.log(mpmath.besselk(p, x)), 0),
    log_gamma_p_da=slope(lambda a, x: mpmath.log(mpmath.gammainc(a, 0, x, regularized=True)), 0),
    log_gamma_q_da=slope(lambda a, x: mpmath.log(mpmath.gammainc(a, x, regularized=True)), 0),
    log_inc_beta_da=slope(mp_log_inc_beta, 0), log_inc_beta_db=slope(mp_log_inc_beta, 1),
    std_student_t_lcdf_dnu=slope(mp_student_t_lcdf, 1),
    pi=lambda: math.pi, infinity=lambda: math.inf, rows=len, sum=np.sum,
    inverse=np.linalg.inv, log_determinant=lambda a: np.linalg.slogdet(a)[1], tcrossprod=lambda a: a @ a.T)

BINARY = {"+": np.add, "-": np.subtract, "*": np.multiply, "^": np.power, "/": np.true_divide, "==": np.equal, "<": np.less,
          "<=": np.less_equal, ">": np.greater, ">=": np.greater_equal, "&&": np.logical_and, "!=": np.not_equal}


def evaluate(e, env):
    """The value of a tree.  A name that nobody defined is a KeyError: files may use only what they declare."""
    kind = e[0]
    sub = functools.partial(evaluate, env=env)
    if kind == "number":
        return e[1]
    if kind == "name":
        return env[e[1]]
    if kind == "neg":
        return -np.asarray(sub(e[1])) * 1
    if kind == "cond":
        c = np.asarray(sub(e[1]))
        return (sub(e[2]) if c else sub(e[3])) if c.ndim == 0 else np.where(c, sub(e[2]), sub(e[3]))
    if kind == "call":
        return FUNCTIONS[e[1]](*map(sub, e[2]))
    if kind == "reduce":
        terms = [evaluate(e[5], env | {e[2]: k}) for k in range(int(sub(e[3])), int(sub(e[4])) + 1)]
        return sum(terms) if e[1] == "sum" else functools.reduce(dict(max=np.maximum, min=np.minimum, prod=np.multiply)[e[1]], terms)
    if kind == "index":
        at = [np.asarray(sub(i)).astype(int) - 1 for i in e[2]]
        if any((i < 0).any() for i in at):
            raise IndexError(f"index below 1 in {e}")
        return np.asarray(sub(e[1]))[tuple(at)]
    if kind == "array":
        return np.array([sub(i) for i in e[1]])
    if kind == "/":                                        # whole numbers divide as whole numbers, as in the language
        a, b = sub(e[1]), sub(e[2])
        if np.asarray(a).dtype.kind in "iu" and np.asarray(b).dtype.kind in "iu":
            return np.asarray(a) // np.asarray(b)
        return np.true_divide(a, b)
    a, b = np.asarray(sub(e[1])), np.asarray(sub(e[2]))
    if kind == "^":
        return np.power(a.astype(float), b)
    return BINARY[kind](a * 1, b * 1)
