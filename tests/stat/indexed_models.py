"""Random models in which indices of loops are numbers: in means, scales, weights, bounds and subscripts. A model is put together from
pieces that are text of the language and a Python function at once, so its log joint is known without gmc (joint)."""
import math
import random


class E:
    """An expression: its text, whether it must be put in brackets as a factor or behind a minus, and its value in an environment."""
    def __init__(self, text, value, loose=False):
        self.text, self.value, self.loose = text, value, loose

    def tight(self):
        return "(%s)" % self.text if self.loose else self.text


def number(c):
    return E("%g" % c if c >= 0 else "(%g)" % c, lambda e: c)


def plus(a, b):
    return E(a.text + " + " + b.text, lambda e: a.value(e) + b.value(e), True)


def minus(a, b):
    return E(a.text + " - " + b.tight(), lambda e: a.value(e) - b.value(e), True)


def times(a, b):
    return E(a.tight() + " * " + b.tight(), lambda e: a.value(e) * b.value(e), True)


def over(a, b):
    return E(a.tight() + " / " + b.tight(), lambda e: a.value(e) / b.value(e), True)


def negative(a):
    return E("-" + a.tight(), lambda e: -a.value(e), True)


def call(name, f, *args):
    return E("%s(%s)" % (name, ", ".join(a.text for a in args)), lambda e: f(*(a.value(e) for a in args)))


def index(name):
    return E(name, lambda e: e[name])


def element(array, *places):
    def value(e):
        v = e[array]
        for p in places:
            v = v[p.value(e) - 1]
        return v
    return E("%s[%s]" % (array, ", ".join(p.text for p in places)), value)


def log_normal(y, m, s):
    return -0.5 * ((y - m) / s) ** 2 - math.log(s)


def log_student(y, nu, m, s):
    return -0.5 * (nu + 1) * math.log1p(((y - m) / s) ** 2 / nu) - math.log(s)


def log_laplace(y, m, s):
    return -abs(y - m) / s - math.log(s)


def log_logistic(y, m, s):
    z = abs((y - m) / s)
    return -z - math.log(s) - 2 * math.log1p(math.exp(-z))


def log_poisson_log(y, eta):
    return y * eta - math.exp(eta)


def log_bernoulli_logit(y, eta):
    return -(math.log1p(math.exp(-abs(eta))) + max(0, -eta if y else eta))


def log_binomial_logit(y, n, eta):
    return y * log_bernoulli_logit(1, eta) + (n - y) * log_bernoulli_logit(0, eta)


def log_normal_above(y, m, s, low):
    return log_normal(y, m, s) - math.log(0.5 * math.erfc((low - m) / s / math.sqrt(2)))


def log_gamma_density(y, a, b):
    return a * math.log(b) - math.lgamma(a) + (a - 1) * math.log(y) - b * y


N, J, P = 7, 3, 2


class Model:
    def __init__(self, seed):
        self.rng = r = random.Random(seed)
        self.declared = ["int<lower=1> N, J, P;", "vector[N] x;", "vector<lower=0>[N] w;", "int<lower=1, upper=J> g[N];", "matrix[N, J] Z;"]
        self.data = {"N": N, "J": J, "P": P, "x": [round(r.gauss(0, 1), 2) for _ in range(N)],
                     "w": [round(r.uniform(0.5, 2), 2) for _ in range(N)], "g": [r.randint(1, J) for _ in range(N)],
                     "Z": [[round(r.gauss(0, 1), 2) for _ in range(J)] for _ in range(N)]}
        self.lines = {"prior": [], "latent": [], "likelihood": []}
        self.terms = []            # functions of an environment
        self.shapes = {}           # unknown -> sizes
        self.count = 0
        for _ in range(r.randint(1, 2)):
            self.response()
        if r.random() < 0.3:
            self.response()

    def name(self, stem):
        self.count += 1
        return stem + str(self.count)

    def pick(self, *choices):
        return self.rng.choice(choices)

    # ---- numbers made of indices ----

    def whole(self, indices):
        """An integer expression of loop indices and constants."""
        r, i = self.rng, index(self.rng.choice(indices))
        form = r.randrange(9)
        if form < 3: return i
        if form == 3: return plus(i, number(r.randint(1, 3)))
        if form == 4: return minus(i, number(r.randint(1, 3)))
        if form == 5: return minus(number(r.randint(0, 4)), i)
        if form == 6: return times(number(r.randint(2, 3)), i)
        if form == 7: return minus(index(r.choice(["N", "J"])), self.whole(indices))
        return minus(i, self.whole(indices))

    def known(self, indices):
        """A real number of data and indices."""
        r = self.rng
        form = r.randrange(8)
        if form < 3: return self.whole(indices)
        if form == 3: return times(number(r.choice([0.5, 0.25, 1.5])), self.whole(indices))
        if form == 4 and "i" in indices: return element("x", index("i"))
        if form == 5: return minus(number(r.choice([0.5, 1, 2])), self.known(indices))
        if form == 6: return negative(self.known(indices))
        return number(r.choice([1, 2, 0.5, -1]))

    def positive(self, indices):
        r, i = self.rng, index(self.rng.choice(indices))
        form = r.randrange(6)
        if form == 0: return i
        if form == 1: return plus(i, number(r.choice([0.5, 1])))
        if form == 2: return call("sqrt", math.sqrt, i)
        if form == 3 and "i" in indices: return element("w", index("i"))
        if form == 4: return plus(number(1), times(number(0.25), i))
        return number(r.choice([0.5, 1, 2]))

    def place(self, indices):
        """A subscript from 1 to J."""
        r, name = self.rng, self.rng.choice(indices)
        i, big = index(name), name == "i"
        form = r.randrange(6)
        if big and form < 3: return element("g", i)
        if form == 3: return call("max", max, number(1), minus(i, number(N - J if big else 1)))
        if form == 4: return call("min", min, index("J"), plus(i, number(1)))
        if big: return call("min", min, index("J"), i)
        if form == 5: return minus(plus(index("J"), number(1)), i)
        return i

    # ---- unknowns ----

    def scale(self):
        s, r = self.name("s"), self.rng
        form = r.randrange(5)
        at = lambda e: e[s]
        if form == 0:
            self.unknown(s, (), "%s ~ half_cauchy(0, 2);" % s, lambda e: -math.log1p((at(e) / 2) ** 2))
        elif form == 1:
            self.unknown(s, (), "%s ~ exponential(0.5);" % s, lambda e: -0.5 * at(e))
        elif form == 2:
            self.unknown(s, (), "%s ~ inv_gamma(3, 2);" % s, lambda e: -4 * math.log(at(e)) - 2 / at(e))
            return call("sqrt", math.sqrt, E(s, at))
        elif form == 3:
            self.unknown(s, (), "%s ~ gamma(2, 1);" % s, lambda e: math.log(at(e)) - at(e))
            return call("inv_sqrt", lambda v: 1 / math.sqrt(v), E(s, at))
        else:
            self.unknown(s, (), "%s ~ lognormal(0, 0.5);" % s, lambda e: -math.log(at(e)) - 2 * math.log(at(e)) ** 2)
        return E(s, at)

    def scale_at(self, indices):
        form = self.rng.randrange(5)
        if form == 0: return times(self.scale(), self.positive(indices))
        if form == 1: return over(self.scale(), self.positive(indices))
        if form == 2:
            s, at = self.name("v"), self.place(indices)
            u = times(self.positive(["j"]), number(1))
            self.plate(s, "gamma(2, %s)" % u.text, lambda e, v: log_gamma_density(v, 2, u.value(e)))
            return call("sqrt", math.sqrt, element(s, at))
        if form == 3: return number(self.pick(0.5, 1, 2))
        return self.scale()

    def unknown(self, name, shape, line, log_density, block="prior"):
        self.shapes[name] = shape
        self.lines[block].append(line)
        self.terms.append(log_density)

    def plate(self, name, law, log_density, block="prior"):
        """name[j] ~ law; log_density(environment with j, element)"""
        self.unknown(name, (J,), "for (j in 1:J) %s[j] ~ %s;" % (name, law),
                     lambda e: sum(log_density({**e, "j": j}, e[name][j - 1]) for j in range(1, J + 1)), block)

    def coefficient(self):
        b, r = self.name("b"), self.rng
        form = r.randrange(4)
        c = r.choice([0, 1, -0.5])
        if form == 0:
            self.unknown(b, (), "%s ~ student_t(4, %g, 2);" % (b, c), lambda e: log_student(e[b], 4, c, 2))
        elif form == 1:
            self.unknown(b, (), "%s ~ double_exponential(%g, 2);" % (b, c), lambda e: log_laplace(e[b], c, 2))
        else:
            self.unknown(b, (), "%s ~ normal(%g, 2);" % (b, c), lambda e: log_normal(e[b], c, 2))
        return E(b, lambda e: e[b])

    def group(self, depth):
        """A plate of J unknowns whose mean is a location of j; its name."""
        b, r = self.name("u"), self.rng
        m, s = self.location(["j"], depth - 1, 2), self.scale_at(["j"])
        form = r.randrange(6)
        if form == 0:
            self.plate(b, "student_t(4, %s, %s)" % (m.text, s.text), lambda e, v: log_student(v, 4, m.value(e), s.value(e)))
        elif form == 1:
            self.plate(b, "double_exponential(%s, %s)" % (m.text, s.text), lambda e, v: log_laplace(v, m.value(e), s.value(e)))
        else:
            self.plate(b, "normal(%s, %s)" % (m.text, s.text), lambda e, v: log_normal(v, m.value(e), s.value(e)))
        return b

    def walk(self):
        """A chain over j with numbers of its index."""
        b, s, k = self.name("h"), self.scale(), self.known(["j"])
        rho = self.pick(1, 0.7)
        drift = times(number(0.5), k)
        def log_density(e):
            v = e[b]
            return log_normal(v[0], 0, 2) + sum(log_normal(v[j - 1], rho * v[j - 2] + drift.value({**e, "j": j}), s.value(e))
                                                for j in range(2, J + 1))
        self.unknown(b, (J,), "%s[1] ~ normal(0, 2); for (j in 2:J) %s[j] ~ normal(%s%s[j - 1] + %s, %s);"
                     % (b, b, "" if rho == 1 else "0.7 * ", b, drift.text, s.text), log_density, "latent")
        return b

    # ---- locations ----

    def term(self, indices, depth):
        r = self.rng
        form = r.randrange(10)
        if form == 0: return self.coefficient()
        if form == 1: return times(self.coefficient(), self.known(indices))
        if form == 2: return times(self.known(indices), self.coefficient())
        if form in (3, 4) and depth > 0: return element(self.group(depth), self.place(indices))
        if form == 5 and depth > 0: return times(element(self.group(depth), self.place(indices)), self.known(indices))
        if form == 6 and depth > 0: return element(self.walk(), self.place(indices))
        if form == 7 and depth > 0:
            u, c, top = self.group(depth), self.whole(["k"]), self.place(indices)
            inner = times(element(u, index("k")), c)
            return E("sum(k in 1:%s, %s)" % (top.text, inner.text),
                     lambda e: sum(inner.value({**e, "k": k}) for k in range(1, top.value(e) + 1)))
        if form == 8: return over(self.coefficient(), self.positive(indices))
        return self.known(indices)

    def location(self, indices, depth, most=3):
        r = self.rng
        out = self.term(indices, depth)
        for _ in range(r.randint(0, most - 1)):
            t = self.term(indices, depth)
            out = plus(out, t) if r.random() < 0.5 else minus(out, t)
            if r.random() < 0.15: out = negative(out)
            if r.random() < 0.15: out = times(number(r.choice([0.5, 2])), out)
        return out

    # ---- responses ----

    def response(self):
        r, y = self.rng, self.name("y")
        form = r.randrange(10)
        two = form in (0, 1)
        indices = ["i", "j"] if two else ["i"]
        eta = self.location(indices, 2)
        if r.random() < 0.25:
            d, inner = self.name("d"), eta
            if not two:
                self.lines["likelihood"].append("for (i in 1:N) %s[i] = %s;" % (d, inner.text))
                eta = E("%s[i]" % d, inner.value)
        cells = [(i, j) for i in range(1, N + 1) for j in range(1, J + 1)] if two else [(i, 0) for i in range(1, N + 1)]
        skip = None
        if r.random() < 0.25: skip = self.pick(("i > 2", lambda i, j: i > 2), ("i % 2 == 0", lambda i, j: i % 2 == 0),
                                               ("x[i] > -0.5", lambda i, j: self.data["x"][i - 1] > -0.5))
        if skip: cells = [c for c in cells if skip[1](*c)]
        kind = self.pick("normal", "normal", "normal", "student", "laplace", "logistic", "poisson", "bernoulli", "binomial", "above")
        s = self.scale_at(indices) if kind in ("normal", "student", "laplace", "logistic", "above") else None
        if kind == "normal": law, f = "normal(%s, %s)" % (eta.text, s.text), lambda e, v: log_normal(v, eta.value(e), s.value(e))
        elif kind == "student":
            law, f = "student_t(4, %s, %s)" % (eta.text, s.text), lambda e, v: log_student(v, 4, eta.value(e), s.value(e))
        elif kind == "laplace":
            law, f = "double_exponential(%s, %s)" % (eta.text, s.text), lambda e, v: log_laplace(v, eta.value(e), s.value(e))
        elif kind == "logistic": law, f = "logistic(%s, %s)" % (eta.text, s.text), lambda e, v: log_logistic(v, eta.value(e), s.value(e))
        elif kind == "above":
            law, f = "normal(%s, %s) T[-5, ]" % (eta.text, s.text), lambda e, v: log_normal_above(v, eta.value(e), s.value(e), -5)
        elif kind == "poisson":
            e1 = times(number(0.25), eta)
            law, f = "poisson_log(%s)" % e1.text, lambda e, v: log_poisson_log(v, e1.value(e))
        elif kind == "bernoulli": law, f = "bernoulli_logit(%s)" % eta.text, lambda e, v: log_bernoulli_logit(v, eta.value(e))
        else:
            n = plus(index("i"), number(2))
            law, f = "binomial_logit(%s, %s)" % (n.text, eta.text), lambda e, v: log_binomial_logit(v, n.value(e), eta.value(e))
        real = s is not None
        draw = lambda i: round(r.gauss(0, 2), 2) if real and kind != "above" else round(abs(r.gauss(0, 2)), 2) if real else \
            r.randint(0, 1) if kind == "bernoulli" else r.randint(0, i + 2) if kind == "binomial" else r.randint(0, 6)
        bound = "<lower=-5>" if kind == "above" else ""
        if two:
            self.declared.append("matrix%s[N, J] %s;" % (bound, y) if real else "int<lower=0> %s[N, J];" % y)
            self.data[y] = [[draw(i) for _ in range(J)] for i in range(1, N + 1)]
            head, of = "for (i in 1:N, j in 1:J) ", "%s[i, j]" % y
        else:
            self.declared.append("vector%s[N] %s;" % (bound, y) if real else "int<lower=0> %s[N];" % y)
            self.data[y] = [draw(i) for i in range(1, N + 1)]
            head, of = "for (i in 1:N) ", "%s[i]" % y
        self.lines["likelihood"].append("%s%s%s ~ %s;" % (head, "if (%s) " % skip[0] if skip else "", of, law))
        at = lambda i, j: self.data[y][i - 1][j - 1] if two else self.data[y][i - 1]
        self.terms.append(lambda e: sum(f({**e, "i": i, "j": j}, at(i, j)) for i, j in cells))

    def text(self):
        def block(name, lines):
            return "%s {\n%s}\n" % (name, "".join("  %s\n" % l for l in lines)) if lines else ""
        return block("data", self.declared) + "".join(block(b, self.lines[b]) for b in ("prior", "latent", "likelihood"))

    def joint(self, unknowns):
        """Up to a constant."""
        e = {**self.data, **unknowns}
        return sum(t(e) for t in self.terms)


if __name__ == "__main__":
    import json
    import sys
    m = Model(int(sys.argv[1]))
    print(m.text(), end="")
    if sys.argv[2:]:
        with open(sys.argv[2], "w") as f:
            json.dump(m.data, f)
