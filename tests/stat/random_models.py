"""Random well-typed models. Each is put together from parts that have nothing to do with each other: scales with priors of all
families, location terms (plates, gathers, linear predictors, shifts), definitions shared by several likelihoods, truncations,
indicators, covariance matrices. Nothing here knows what gmc recognises."""
import random


class Builder:
    def __init__(self, seed):
        self.rng = random.Random(seed)
        self.data = ["int<lower=3> N;", "int<lower=2> J, p;"]
        self.prior, self.latent, self.likelihood = [], [], []
        self.count = 0
        self.columns = {}

    def name(self, stem):
        self.count += 1
        return stem + str(self.count)

    def pick(self, *choices):
        return self.rng.choice(choices)

    def column(self, kind):
        """A data array over N: x a real, w positive, g a group of J, h a group of J."""
        if kind not in self.columns:
            declare = {"x": "vector[N] %s;", "w": "vector<lower=0>[N] %s;", "g": "int<lower=1, upper=J> %s[N];", "X": "matrix[N, p] %s;"}
            self.columns[kind] = kind.lower() + "_" if kind == "X" else kind
            self.data.append(declare[kind] % self.columns[kind])
        return self.columns[kind]

    # ---- scales ----

    def scale(self):
        """A positive expression of unknowns, used as a standard deviation."""
        s = self.name("s")
        form = self.rng.randrange(12)
        if form == 0:
            self.prior.append("%s ~ half_cauchy(0, 2);" % s)
        elif form == 1:
            self.prior.append("%s ~ uniform(0.1, 10);" % s)
        elif form == 2:
            self.prior.append("%s ~ half_normal(0, 2);" % s)
        elif form == 3:
            self.prior.append("%s ~ half_student_t(3, 0, 2);" % s)
        elif form == 4:
            self.prior.append("real<lower=0> %s ~ normal(1, 2);" % s)
        elif form == 5:
            self.prior.append("%s ~ exponential(1);" % s)
        elif form == 6:
            self.prior.append("%s ~ inv_gamma(3, 2);" % s)
            return "sqrt(%s)" % s
        elif form == 7:
            self.prior.append("%s ~ gamma(2, 1);" % s)
            return self.pick("1 / sqrt(%s)", "pow(%s, -0.5)", "inv_sqrt(%s)") % s
        elif form == 8:
            self.prior.append("%s ~ lognormal(0, 0.5);" % s)
        elif form == 9:
            self.prior.append("%s ~ gamma(2, 1) T[0.2, 5];" % s)
            return "sqrt(1 / %s)" % s
        elif form == 10:
            t = self.name("s")
            self.prior.append("%s ~ half_cauchy(0, 1); %s ~ half_cauchy(0, %s);" % (s, t, s))
            return t
        else:
            self.prior.append("%s ~ scaled_inv_chi_square(4, 1);" % s)
            return "sqrt(%s)" % s
        return s

    def scale_at(self, i):
        """A scale inside a plate over N: shared, per group, weighted, or a product."""
        form = self.rng.randrange(5)
        if form == 0:
            u = self.name("v")
            self.prior.append("for (j in 1:J) %s[j] ~ inv_gamma(2, 1);" % u)
            return "sqrt(%s[%s[%s]])" % (u, self.column("g"), i)
        if form == 1:
            return "%s / sqrt(%s[%s])" % (self.scale(), self.column("w"), i)
        if form == 2:
            return "(%s) * (%s)" % (self.scale(), self.scale())
        return self.scale()

    # ---- locations ----

    def location_prior(self, v):
        form = self.rng.randrange(8)
        if form == 0:
            return "%s ~ normal(0, %s);" % (v, self.scale())
        if form == 1:
            return "%s ~ double_exponential(0, 2);" % v
        if form == 2:
            return "%s ~ student_t(4, 0, 2);" % v
        if form == 3:
            return "%s ~ normal(0, 2) T[-3, ];" % v
        if form == 4:
            return "%s ~ uniform(-5, 5);" % v
        if form == 5:
            return "%s ~ cauchy(0, 1);" % v
        return "%s ~ normal(%s, 3);" % (v, self.pick("0", "1", "-0.5"))

    def term(self, i):
        form = self.rng.randrange(8)
        b = self.name("b")
        if form == 0:
            self.prior.append(self.location_prior(b))
            return b
        if form == 1:
            self.prior.append(self.location_prior(b))
            return "%s * %s[%s]" % (b, self.column("x"), i)
        if form == 2:
            self.prior.append("for (j in 1:J) %s" % self.location_prior(b + "[j]"))
            return "%s[%s[%s]]" % (b, self.column("g"), i)
        if form == 3:
            m = self.name("m")
            self.prior.append(self.location_prior(m))
            self.prior.append("for (j in 1:J) %s[j] ~ normal(%s, %s);" % (b, m, self.scale()))
            return "%s[%s[%s]]" % (b, self.column("g"), i)
        if form == 4:
            self.prior.append("for (k in 1:p) %s" % self.location_prior(b + "[k]"))
            return "%s[%s] * %s" % (self.column("X"), i, b)
        if form == 5:
            self.prior.append("for (j in 1:J, k in 1:p) %s[j, k] ~ normal(0, 1);" % b)
            return "%s[%s] * %s[%s[%s]]" % (self.column("X"), i, b, self.column("g"), i)
        if form == 6:
            s = self.scale()
            self.latent.append("%s[1] ~ normal(0, 2); for (t in 2:N) %s[t] ~ normal(%s%s[t - 1], %s);" % (b, b, self.pick("", "0.7 * "), b,
                    s))
            return "%s[%s]" % (b, i)
        c = self.name("c")
        q = self.name("q")
        if self.rng.random() < 0.5:
            self.prior.append("%s ~ beta(2, 2);" % q)
            self.latent.append("for (i in 1:N) %s[i] ~ bernoulli(%s);" % (c, q))
            self.prior.append("%s ~ normal(0, 2);" % b)
            return "%s * %s[%s]" % (b, c, i)
        self.prior.append("%s ~ dirichlet(rep_vector(1.5, 3));" % q)
        self.latent.append("for (i in 1:N) %s[i] ~ categorical(%s);" % (c, q))
        self.prior.append("for (k in 1:3) %s[k] ~ normal(k - 2, 2);" % b)
        return "%s[%s[%s]]" % (b, c, i)

    def predictor(self, i, most=3):
        terms = [self.term(i) for _ in range(self.rng.randint(1, most))]
        text = terms[0]
        for t in terms[1:]:
            text += self.pick(" + ", " - ") + t
        return text

    # ---- likelihoods ----

    def real_response(self):
        y = self.name("y")
        eta = self.predictor("i")
        kind = self.rng.randrange(8)
        if kind == 5:
            self.data.append("vector<lower=0>[N] %s;" % y)
            form = self.pick("%s[i] ~ lognormal(%s, %s);", "log(%s[i]) ~ normal(%s, %s);")
            self.likelihood.append("for (i in 1:N) " + form % (y, eta, self.scale_at("i")))
            return
        self.data.append("vector[N] %s;" % y)
        if kind == 0:
            self.likelihood.append("for (i in 1:N) %s[i] ~ student_t(4, %s, %s);" % (y, eta, self.scale_at("i")))
        elif kind == 1:
            self.likelihood.append("for (i in 1:N) %s[i] ~ double_exponential(%s, %s);" % (y, eta, self.scale_at("i")))
        elif kind == 2:
            self.likelihood.append("for (i in 1:N) %s[i] ~ asymmetric_laplace(%s, %s, 0.3);" % (y, eta, self.scale_at("i")))
        elif kind == 3:
            m, z = self.name("mean"), self.name("y")
            self.data.append("vector[N] %s;" % z)
            s = self.scale_at("i")
            self.likelihood.append("for (i in 1:N) { %s[i] = %s; %s[i] ~ normal(%s[i], %s); %s[i] ~ normal(2 * %s[i] - 1, %s); }"
                                   % (m, eta, y, m, s, z, m, self.pick(s, self.scale_at("i"))))
        elif kind == 4:
            self.data[-1] = "vector<lower=0>[N] %s;" % y
            self.likelihood.append("for (i in 1:N) %s[i] ~ normal(%s, %s) T[0, ];" % (y, eta, self.scale_at("i")))
        else:
            self.likelihood.append("for (i in 1:N) %s[i] ~ normal(%s, %s);" % (y, eta, self.scale_at("i")))

    def count_response(self):
        y = self.name("y")
        kind = self.rng.randrange(8)
        if kind <= 3:
            self.data.append("int<lower=0, upper=1> %s[N];" % y)
            form = ["bernoulli(Phi(%s))", "bernoulli_logit(%s)", "bernoulli(inv_logit(%s))", "bernoulli(inv_cloglog(%s))"][kind]
            self.likelihood.append("for (i in 1:N) %s[i] ~ %s;" % (y, form % self.predictor("i")))
        elif kind == 4:
            self.data.append("int<lower=0, upper=4> %s[N];" % y)
            self.likelihood.append("for (i in 1:N) %s[i] ~ binomial_logit(4, %s);" % (y, self.predictor("i")))
        elif kind == 5:
            self.data.append("int<lower=0> %s[N];" % y)
            self.likelihood.append("for (i in 1:N) %s[i] ~ neg_binomial_2_log(%s, 3);" % (y, self.predictor("i")))
        elif kind == 6:
            self.data.append("int<lower=0> %s[N];" % y)
            self.likelihood.append("for (i in 1:N) %s[i] ~ poisson_log(%s);" % (y, self.predictor("i", 2)))
        else:
            r, a = self.name("r"), self.name("a")
            self.data.append("int<lower=0> %s[N];" % y)
            self.prior.append("%s ~ gamma(2, 1); for (i in 1:N) %s[i] ~ gamma(%s, %s);" % (a, r, self.pick("2", a), self.pick("1", a)))
            self.likelihood.append("for (i in 1:N) %s[i] ~ poisson(%s[i] * %s[i]);" % (y, r, self.column("w")))

    def vector_response(self):
        y, mu, S = self.name("y"), self.name("mu"), self.name("S")
        self.data.append("vector[p] %s[N];" % y)
        if self.rng.random() < 0.5:
            self.prior.append("%s ~ wishart(p + 2, identity_matrix(p));" % S)
            likelihood = "multi_normal_prec"
        else:
            self.prior.append("%s ~ inv_wishart(p + 2, identity_matrix(p));" % S)
            likelihood = "multi_normal"
        if self.rng.random() < 0.5:
            self.prior.append("for (k in 1:p) %s[k] ~ normal(0, 2);" % mu)
            self.likelihood.append("for (i in 1:N) %s[i] ~ %s(%s, %s);" % (y, likelihood, mu, S))
        else:
            self.prior.append("for (j in 1:J) %s[j] ~ multi_normal_prec(rep_vector(0, p), identity_matrix(p));" % mu)
            self.likelihood.append("for (i in 1:N) %s[i] ~ %s(%s[%s[i]], %s);" % (y, likelihood, mu, self.column("g"), S))

    def text(self):
        def block(name, lines):
            return "%s {\n%s}\n" % (name, "".join("  %s\n" % l for l in lines)) if lines else ""
        return block("data", self.data) + block("prior", self.prior) + block("latent", self.latent) + block("likelihood", self.likelihood)


def random_model(seed):
    b = Builder(seed)
    for _ in range(b.rng.randint(1, 2)):
        form = b.rng.random()
        if form < 0.5:
            b.real_response()
        elif form < 0.82:
            b.count_response()
        else:
            b.vector_response()
    return b.text()


if __name__ == "__main__":
    import sys
    print(random_model(int(sys.argv[1])), end="")
