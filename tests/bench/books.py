"""Models as books have them, written the plain way, on simulated data: what mixes worst under default settings.

    books.py [GMC [NAME...]]        a NAME is a part of a model's name

4 chains of 1000 sweeps of warm-up and 5000 draws, one seed, every unknown that the model names (--params all): the least bulk effective
size of 20,000 (rank-normalised; Vehtari et al. 2021), seconds of processor time. Closed capture with heterogeneity, survival, multistate
and occupancy models follow Kery and Schaub (2012), binomial mixtures Royle (2004), communities Dorazio and Royle (2005), tumours Gelman et
al. (2013, chapter 5), ideal points Clinton, Jackman and Rivers (2004); their data are drawn here with fixed seeds, so effective sizes
depend on the seed of the run alone.
"""

import json
import os
import resource
import subprocess
import sys
import tempfile

import numpy as np

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../oracles"))
from effective import least, taken

GMC = sys.argv[1] if len(sys.argv) > 1 else os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../build/gmc")
MODELS = {}
R = np.random.default_rng


def model(name, text, data):
    MODELS[name] = (text, data)


def inv(x):
    return 1 / (1 + np.exp(-x))


def plain(o):
    """What JSON can hold; NaN is missing."""
    if isinstance(o, np.ndarray):
        return plain(o.tolist())
    if isinstance(o, (list, tuple)):
        return [plain(x) for x in o]
    if isinstance(o, (np.integer, np.bool_)):
        return int(o)
    if isinstance(o, (float, np.floating)):
        return None if np.isnan(o) else float(o)
    return o


r = R(1)
ns, ny, no = 40, 9, 30
obs = r.integers(1, no + 1, (ns, ny))
first = (r.random((ns, ny)) < 0.2).astype(int)
a = r.normal(0, 0.8, ns)
e = r.normal(0, 0.2, ny)
g = r.normal(0, 0.3, no)
yr = np.linspace(-1, 1, ny)
C = r.poisson(np.exp(2 + 0.1 * yr[None] - 0.2 * first + a[:, None] + e[None] + g[obs - 1])).astype(float)
C[r.random((ns, ny)) < 0.08] = np.nan
model(
    "counts, effects of sites, years and observers",
    """data { int nsite, nyear, nobs; int<lower=0> C[nsite, nyear]; int obs[nsite, nyear]; int first[nsite, nyear]; vector[nyear] year; }
prior { mu ~ normal(0, 10); beta1 ~ normal(0, 10); beta2 ~ normal(0, 10); sd_alpha ~ uniform(0, 3); sd_eps ~ uniform(0, 1);
  sd_gamma ~ uniform(0, 1);
 for (i in 1:nsite) alpha[i] ~ normal(0, sd_alpha); for (j in 1:nyear) eps[j] ~ normal(0, sd_eps);
 for (k in 1:nobs) gamma[k] ~ normal(0, sd_gamma); }
likelihood { for (i in 1:nsite, j in 1:nyear) C[i, j] ~ poisson(exp(mu + beta1 * year[j] + beta2 * first[i, j] + alpha[i] + eps[j]
  + gamma[obs[i, j]])); }
""",
    dict(nsite=ns, nyear=ny, nobs=no, C=C, obs=obs, first=first, year=yr),
)
r = R(2)
Mx, T = 200, 5
z = r.random(Mx) < 0.4
p = inv(r.normal(-0.8, 1, Mx))
y = r.binomial(T, p * z)
model(
    "closed capture, individuals differ",
    """data { int M, T; int<lower=0> y[M]; }
prior { omega ~ uniform(0, 1); mean_p ~ uniform(0, 1); sigma ~ uniform(0, 5); }
latent { for (i in 1:M) { z[i] ~ bernoulli(omega); eps[i] ~ normal(logit(mean_p), sigma); } }
likelihood { for (i in 1:M) y[i] ~ binomial(T, z[i] * inv_logit(eps[i])); }
predict { N = sum(z); }
""",
    dict(M=Mx, T=T, y=y),
)
r = R(3)
mt = np.array([0.3, 0.2, 0.4, 0.25, 0.35])
lp = np.log(mt / (1 - mt))
e = r.normal(0, 1, Mx)
z = r.random(Mx) < 0.4
Y = (r.random((Mx, T)) < inv(lp[None] + e[:, None]) * z[:, None]).astype(int)
model(
    "closed capture, individuals and times differ",
    """data { int M, T; int<lower=0, upper=1> y[M, T]; }
prior { omega ~ uniform(0, 1); for (j in 1:T) mean_p[j] ~ uniform(0, 1); sigma ~ uniform(0, 5); }
latent { for (i in 1:M) { z[i] ~ bernoulli(omega); eps[i] ~ normal(0, sigma); } }
likelihood { for (i in 1:M, j in 1:T) y[i, j] ~ bernoulli(z[i] * inv_logit(logit(mean_p[j]) + eps[i])); }
predict { N = sum(z); }
""",
    dict(M=Mx, T=T, y=Y),
)
r = R(4)
bs = r.normal(0, 1, Mx)
z = r.random(Mx) < 0.4
Y = r.binomial(T, inv(-0.5 + 0.8 * bs) * z)
size = bs.copy()
size[Y == 0] = np.nan
model(
    "closed capture by size, missing for the unseen",
    """data { int M, T; int<lower=0> y[M]; vector[M] size; }
prior { omega ~ uniform(0, 1); a ~ normal(0, 2); b ~ normal(0, 2); mu_size ~ normal(0, 10); sd_size ~ uniform(0, 10); }
latent { for (i in 1:M) z[i] ~ bernoulli(omega); }
likelihood { for (i in 1:M) { size[i] ~ normal(mu_size, sd_size); y[i] ~ binomial(T, z[i] * inv_logit(a + b * size[i])); } }
predict { N = sum(z); }
""",
    dict(M=Mx, T=T, y=Y, size=size),
)


def cjs(r, n, T, phi, p):
    y = np.zeros((n, T), int)
    f = np.zeros(n, int)
    for i in range(n):
        f[i] = r.integers(1, T)
        y[i, f[i] - 1] = 1
        alive = True
        for t in range(f[i], T):
            alive = alive and r.random() < phi(i, t)
            y[i, t] = alive and r.random() < p(i, t)
    return y, f


r = R(5)
n, T = 150, 8
ep = r.normal(0, 0.6, T)
y, f = cjs(r, n, T, lambda i, t: inv(0.6 + ep[t]), lambda i, t: 0.5)
model(
    "survival, effects of years",
    """data { int n, T; int<lower=0, upper=1> y[n, T]; int f[n]; }
prior { mean_phi ~ uniform(0, 1); sigma ~ uniform(0, 10); mean_p ~ uniform(0, 1); mu = logit(mean_phi);
 for (t in 1:(T - 1)) { epsilon[t] ~ normal(0, sigma); logit(phi[t]) = mu + epsilon[t]; } }
latent { for (i in 1:n) for (t in (f[i] + 1):T) { if (t == f[i] + 1) z[i, t] ~ bernoulli(phi[t - 1]);
  else z[i, t] ~ bernoulli(phi[t - 1] * z[i, t - 1]); } }
likelihood { for (i in 1:n) for (t in (f[i] + 1):T) y[i, t] ~ bernoulli(mean_p * z[i, t]); }
""",
    dict(n=n, T=T, y=y, f=f),
)
r = R(6)
ei = r.normal(0, 0.7, n)
y, f = cjs(r, n, T, lambda i, t: inv(0.6 + ei[i]), lambda i, t: 0.5)
model(
    "survival, effects of individuals",
    """data { int n, T; int<lower=0, upper=1> y[n, T]; int f[n]; }
prior { mean_phi ~ uniform(0, 1); sigma ~ uniform(0, 5); mean_p ~ uniform(0, 1); mu = logit(mean_phi);
  for (i in 1:n) epsilon[i] ~ normal(0, sigma); }
latent { for (i in 1:n) for (t in (f[i] + 1):T) { if (t == f[i] + 1) z[i, t] ~ bernoulli(inv_logit(mu + epsilon[i]));
  else z[i, t] ~ bernoulli(inv_logit(mu + epsilon[i]) * z[i, t - 1]); } }
likelihood { for (i in 1:n) for (t in (f[i] + 1):T) y[i, t] ~ bernoulli(mean_p * z[i, t]); }
""",
    dict(n=n, T=T, y=y, f=f),
)
r = R(8)
n, T = 120, 7
ps = np.array([[0.6, 0.2, 0.2], [0.15, 0.65, 0.2], [0, 0, 1]])
po = np.array([[0.6, 0, 0.4], [0, 0.5, 0.5], [0, 0, 1]])
Y = np.zeros((n, T), int)
f = np.zeros(n, int)
for i in range(n):
    f[i] = r.integers(1, T)
    s = r.integers(0, 2)
    Y[i, f[i] - 1] = s + 1
    for t in range(f[i], T):
        s = r.choice(3, p=ps[s])
        Y[i, t] = r.choice(3, p=po[s]) + 1
Y[Y == 0] = 3
model(
    "multistate",
    """data { int n, T; int<lower=1, upper=3> y[n, T]; int f[n]; }
prior { phiA ~ uniform(0, 1); phiB ~ uniform(0, 1); psiAB ~ uniform(0, 1); psiBA ~ uniform(0, 1); pA ~ uniform(0, 1); pB ~ uniform(0, 1);
 matrix[3, 3] ps; matrix[3, 3] po;
 ps[1, 1] = phiA * (1 - psiAB); ps[1, 2] = phiA * psiAB; ps[1, 3] = 1 - phiA;
 ps[2, 1] = phiB * psiBA; ps[2, 2] = phiB * (1 - psiBA); ps[2, 3] = 1 - phiB;
 ps[3, 1] = 0; ps[3, 2] = 0; ps[3, 3] = 1;
 po[1, 1] = pA; po[1, 2] = 0; po[1, 3] = 1 - pA; po[2, 1] = 0; po[2, 2] = pB; po[2, 3] = 1 - pB; po[3, 1] = 0; po[3, 2] = 0; po[3, 3] = 1; }
latent { for (i in 1:n) for (t in (f[i] + 1):T) { if (t == f[i] + 1) z[i, t] ~ categorical(ps[y[i, f[i]]]);
  else z[i, t] ~ categorical(ps[z[i, t - 1]]); } }
likelihood { for (i in 1:n) for (t in (f[i] + 1):T) y[i, t] ~ categorical(po[z[i, t]]); }
""",
    dict(n=n, T=T, y=Y, f=f),
)
r = R(9)
n, J, T = 100, 3, 6
z = np.zeros((n, T), int)
z[:, 0] = r.random(n) < 0.5
for t in range(1, T):
    z[:, t] = r.random(n) < np.where(z[:, t - 1] == 1, 0.8, 0.2)
y = (r.random((n, J, T)) < 0.4 * z[:, None, :]).astype(int)
model(
    "occupancy over years",
    """data { int n, J, T; int<lower=0, upper=1> y[n, J, T]; }
prior { psi1 ~ uniform(0, 1); for (t in 1:(T - 1)) { phi[t] ~ uniform(0, 1); gamma[t] ~ uniform(0, 1); }
  for (t in 1:T) p[t] ~ uniform(0, 1); }
latent { for (i in 1:n) { z[i, 1] ~ bernoulli(psi1); for (t in 2:T) z[i, t] ~ bernoulli(z[i, t - 1] * phi[t - 1] + (1 - z[i, t - 1])
  * gamma[t - 1]); } }
likelihood { for (i in 1:n, j in 1:J, t in 1:T) y[i, j, t] ~ bernoulli(z[i, t] * p[t]); }
predict { for (t in 1:T) nocc[t] = sum(i in 1:n, z[i, t]); }
""",
    dict(n=n, J=J, T=T, y=y),
)
r = R(10)
n, J = 60, 3
X = r.normal(size=n)
lam = np.exp(1 + 0.5 * X + r.normal(0, 0.4, n))
N = r.poisson(lam)
y = r.binomial(N[:, None], inv(0.2 - 0.5 * r.normal(size=(n, J)) + 0 * 1))
model(
    "binomial mixture, effects of sites",
    """data { int n, J; vector[n] X; int<lower=0> y[n, J]; }
prior { a0 ~ normal(0, 3); a1 ~ normal(0, 3); sd_lam ~ uniform(0, 3); p ~ uniform(0, 1); for (i in 1:n) eps[i] ~ normal(0, sd_lam); }
latent { for (i in 1:n) int<lower=0> N[i] ~ poisson(exp(a0 + a1 * X[i] + eps[i])); }
likelihood { for (i in 1:n, j in 1:J) y[i, j] ~ binomial(N[i], p); }
predict { totalN = sum(N); }
""",
    dict(n=n, J=J, X=X, y=y),
)
r = R(11)
S, n, J = 40, 50, 4
w = r.random(S) < 0.6
lpsi = r.normal(-0.5, 1, S)
lp = r.normal(-0.7, 0.8, S)
z = (r.random((S, n)) < inv(lpsi)[:, None]) * w[:, None]
y = r.binomial(J, inv(lp)[:, None] * z)
model(
    "community of species",
    """data { int S, n, J; int<lower=0> y[S, n]; }
prior { omega ~ uniform(0, 1); mu_psi ~ normal(0, 2); sd_psi ~ half_cauchy(0, 1); mu_p ~ normal(0, 2); sd_p ~ half_cauchy(0, 1);
 for (k in 1:S) { lpsi[k] ~ normal(mu_psi, sd_psi); lp[k] ~ normal(mu_p, sd_p); } }
latent { for (k in 1:S) { w[k] ~ bernoulli(omega); for (i in 1:n) z[k, i] ~ bernoulli(w[k] * inv_logit(lpsi[k])); } }
likelihood { for (k in 1:S, i in 1:n) y[k, i] ~ binomial(J, z[k, i] * inv_logit(lp[k])); }
predict { richness = sum(w); }
""",
    dict(S=S, n=n, J=J, y=y),
)
r = R(13)
J, N = 60, 600
cty = r.integers(1, J + 1, N)
fl = r.integers(0, 2, N)
B = r.multivariate_normal([1.4, -0.6], [[0.1, -0.03], [-0.03, 0.08]], J)
y = r.normal(B[cty - 1, 0] + B[cty - 1, 1] * fl, 0.7)
model(
    "intercepts and slopes, correlated",
    """data { int N, J; int county[N]; vector[N] x, y; }
prior { mu_a ~ normal(0, 10); mu_b ~ normal(0, 10); sa ~ half_cauchy(0, 2.5); sb ~ half_cauchy(0, 2.5); rho ~ uniform(-1, 1);
  s ~ half_cauchy(0, 2.5);
 matrix[2, 2] S; S[1, 1] = sa * sa; S[1, 2] = rho * sa * sb; S[2, 1] = S[1, 2]; S[2, 2] = sb * sb; vector[2] m; m[1] = mu_a; m[2] = mu_b;
 for (j in 1:J) vector[2] b[j] ~ multi_normal(m, S); }
likelihood { for (i in 1:N) y[i] ~ normal(b[county[i], 1] + b[county[i], 2] * x[i], s); }
""",
    dict(N=N, J=J, county=cty, x=fl.astype(float), y=y),
)
r = R(14)
P, I = 150, 15
th = r.normal(size=P)
al = np.exp(r.normal(0, 0.3, I))
be = r.normal(0, 1, I)
y = (r.random((P, I)) < inv(al[None] * (th[:, None] - be[None]))).astype(int)
model(
    "item response, 2 parameters",
    """data { int P, I; int<lower=0, upper=1> y[P, I]; }
prior { mu_b ~ normal(0, 5); sb ~ half_cauchy(0, 2); sa ~ half_cauchy(0, 2); for (i in 1:I) { a[i] ~ lognormal(0, sa);
  b[i] ~ normal(mu_b, sb); } }
latent { for (p in 1:P) theta[p] ~ normal(0, 1); }
likelihood { for (p in 1:P, i in 1:I) y[p, i] ~ bernoulli_logit(a[i] * (theta[p] - b[i])); }
""",
    dict(P=P, I=I, y=y),
)
r = R(15)
T = 200
h = np.zeros(T)
h[0] = r.normal(-1, 0.6)
for t in range(1, T):
    h[t] = -1 + 0.95 * (h[t - 1] + 1) + 0.25 * r.normal()
y = r.normal(size=T) * np.exp(h / 2)
model(
    "stochastic volatility",
    """data { int T; vector[T] y; }
prior { mu ~ cauchy(0, 10); phi ~ uniform(-1, 1); sigma ~ half_cauchy(0, 5); }
latent { h[1] ~ normal(mu, sigma / sqrt(1 - phi * phi)); for (t in 2:T) h[t] ~ normal(mu + phi * (h[t - 1] - mu), sigma); }
likelihood { for (t in 1:T) y[t] ~ normal(0, exp(h[t] / 2)); }
""",
    dict(T=T, y=y),
)
r = R(16)
T = 150
x = np.zeros(T)
x[0] = r.normal(0, 0.8)
for t in range(1, T):
    x[t] = 0.85 * x[t - 1] + 0.4 * r.normal()
model(
    "counts about an autoregression",
    """data { int T; int<lower=0> y[T]; }
prior { mu ~ normal(0, 5); rho ~ uniform(-1, 1); s ~ half_cauchy(0, 1); }
latent { x[1] ~ normal(0, s / sqrt(1 - rho ^ 2)); for (t in 2:T) x[t] ~ normal(rho * x[t - 1], s); }
likelihood { for (t in 1:T) y[t] ~ poisson(exp(mu + x[t])); }
""",
    dict(T=T, y=r.poisson(np.exp(1 + x))),
)
r = R(18)
n = 70
N = r.integers(10, 50, n)
y = r.binomial(N, r.beta(2.4, 14, n))
model(
    "tumours",
    """data { int n; int<lower=0> N[n], y[n]; }
prior { real<lower=0> a; real<lower=0> b; target += -2.5 * log(a + b); for (i in 1:n) theta[i] ~ beta(a, b); }
likelihood { for (i in 1:n) y[i] ~ binomial(N[i], theta[i]); }
""",
    dict(n=n, N=N, y=y),
)
r = R(20)
n = 200
g = r.integers(1, 41, n)
w = r.gamma(2, 0.5, 40)
x = r.normal(size=n)
t = (-np.log(r.random(n)) / (0.1 * w[g - 1] * np.exp(0.5 * x))) ** (1 / 1.3)
cens = np.minimum(t, 6)
d = (t <= 6).astype(int)
model(
    "Weibull survival with frailties",
    """data { int n, G; int g[n]; vector[n] t, x; int d[n]; }
prior { a ~ gamma(1, 0.1); lambda ~ gamma(0.1, 0.1); beta ~ normal(0, 5); k ~ gamma(1, 0.1); for (j in 1:G) w[j] ~ gamma(k, k); }
likelihood { for (i in 1:n) target += d[i] * (log(a) + log(lambda) + (a - 1) * log(t[i]) + beta * x[i] + log(w[g[i]]))
  - lambda * w[g[i]] * exp(beta * x[i]) * t[i] ^ a; }
""",
    dict(n=n, G=40, g=g, t=cens, x=x, d=d),
)
r = R(23)
n = 400
Jd = 20
It = 30
j = r.integers(1, Jd + 1, n)
i = r.integers(1, It + 1, n)
l = r.normal(0, 0.5, Jd)[j - 1] + r.normal(0, 1, It)[i - 1] + r.normal(size=n)
y = 1 + (l > -1).astype(int) + (l > 0) + (l > 1.2)
model(
    "ordinal ratings, judges and items",
    """data { int n, J, I; int j[n], i[n]; int<lower=1, upper=4> y[n]; }
prior { sj ~ half_cauchy(0, 1); si ~ half_cauchy(0, 1); ordered[3] c; for (k in 1:3) c[k] ~ normal(0, 5);
  for (k in 1:J) u[k] ~ normal(0, sj); for (k in 1:I) v[k] ~ normal(0, si); }
likelihood { for (k in 1:n) y[k] ~ ordered_logistic(u[j[k]] + v[i[k]], c); }
""",
    dict(n=n, J=Jd, I=It, j=j, i=i, y=y),
)
r = R(24)
n = 500
J = 30
g = r.integers(1, J + 1, n)
u = r.normal(0, 0.6, J)
x = r.normal(size=n)
y = r.negative_binomial(2, 2 / (2 + np.exp(1 + 0.3 * x + u[g - 1])))
model(
    "negative binomial, groups",
    """data { int n, J; int g[n]; vector[n] x; int<lower=0> y[n]; }
prior { mu ~ normal(0, 5); b ~ normal(0, 5); s ~ half_cauchy(0, 1); phi ~ gamma(1, 0.1); for (k in 1:J) u[k] ~ normal(mu, s); }
likelihood { for (i in 1:n) y[i] ~ neg_binomial_2(exp(u[g[i]] + b * x[i]), phi); }
""",
    dict(n=n, J=J, g=g, x=x, y=y),
)
r = R(25)
T = 40
N = np.zeros(T)
N[0] = 4
for t in range(1, T):
    N[t] = N[t - 1] + 0.02 + 0.15 * r.normal()
y = r.poisson(np.exp(N)).astype(float)
y[[7, 8, 20]] = np.nan
model(
    "counts about a walk with drift, missing",
    """data { int T; int<lower=0> y[T]; }
prior { m ~ normal(0, 1); s ~ uniform(0, 1); }
latent { x[1] ~ normal(4, 2); for (t in 2:T) x[t] ~ normal(x[t - 1] + m, s); }
likelihood { for (t in 1:T) y[t] ~ poisson(exp(x[t])); }
""",
    dict(T=T, y=y),
)
r = R(26)
n, p, K = 150, 8, 2
L = r.normal(size=(p, K))
F = r.normal(size=(n, K))
Y = F @ L.T + 0.6 * r.normal(size=(n, p))
model(
    "two factors, triangular loadings",
    """data { int n, p; matrix[n, p] y; }
prior { for (j in 1:p) s[j] ~ half_cauchy(0, 1); real<lower=0> l11 ~ normal(0, 1); real<lower=0> l22 ~ normal(0, 1);
 for (j in 1:p) for (k in 1:2) if (j > k) l[j, k] ~ normal(0, 1);
 matrix[p, 2] Lam; for (j in 1:p) for (k in 1:2) Lam[j, k] = j > k ? l[j, k] : (j < k ? 0 : (j == 1 ? l11 : l22)); }
latent { for (i in 1:n) for (k in 1:2) f[i, k] ~ normal(0, 1); }
likelihood { for (i in 1:n, j in 1:p) y[i, j] ~ normal(Lam[j, 1] * f[i, 1] + Lam[j, 2] * f[i, 2], s[j]); }
""",
    dict(n=n, p=p, y=Y),
)
r = R(27)
A, B = 8, 6
n = A * B * 5
a = np.repeat(np.arange(1, A + 1), B * 5)
b = np.repeat(np.arange(1, A * B + 1), 5)
ua = r.normal(0, 0.5, A)
ub = r.normal(0, 0.7, A * B)
y = r.binomial(10, inv(-0.3 + ua[a - 1] + ub[b - 1]))
model(
    "binomial, groups in groups",
    """data { int n, A, B; int a[n], b[n]; int<lower=0> y[n]; }
prior { mu ~ normal(0, 5); sa ~ half_cauchy(0, 1); sb ~ half_cauchy(0, 1); for (i in 1:A) u[i] ~ normal(0, sa);
  for (i in 1:B) v[i] ~ normal(0, sb); }
likelihood { for (i in 1:n) y[i] ~ binomial_logit(10, mu + u[a[i]] + v[b[i]]); }
""",
    dict(n=n, A=A, B=A * B, a=a, b=b, y=y),
)
r = R(28)
n = 60
x = np.linspace(0, 5, n)
K = np.exp(-0.5 * (x[:, None] - x) ** 2) + 1e-6 * np.eye(n)
ff = np.linalg.cholesky(K) @ r.normal(size=n)
y = r.poisson(np.exp(1 + ff))
model(
    "counts about a Gaussian process",
    """data { int n; vector[n] x; int<lower=0> y[n]; }
prior { mu ~ normal(0, 3); s ~ half_normal(0, 1); l ~ inv_gamma(5, 5);
 matrix[n, n] K; for (i in 1:n) for (j in 1:n) K[i, j] = s ^ 2 * exp(-0.5 * square((x[i] - x[j]) / l)) + (i == j ? 1e-6 : 0);
 vector[n] zero; for (i in 1:n) zero[i] = 0;
 vector[n] f ~ multi_normal(zero, K); }
likelihood { for (i in 1:n) y[i] ~ poisson(exp(mu + f[i])); }
""",
    dict(n=n, x=x, y=y),
)
r = R(29)
n = 25
se = r.uniform(0.1, 0.5, n)
x = r.normal(size=n)
th = 0.3 + 0.2 * x + r.standard_t(4, n) * 0.2
y = r.normal(th, se)
model(
    "meta-analysis, Student effects",
    """data { int n; vector[n] y, se, x; }
prior { mu ~ normal(0, 5); b ~ normal(0, 5); tau ~ half_cauchy(0, 1); nu ~ gamma(2, 0.1);
  for (i in 1:n) theta[i] ~ student_t(nu, mu + b * x[i], tau); }
likelihood { for (i in 1:n) y[i] ~ normal(theta[i], se[i]); }
""",
    dict(n=n, y=y, se=se, x=x),
)

r = R(119)
n = 80
r.normal(0, 1, n)
V = 60
ip = r.normal(size=n)
bb = r.normal(size=V)
aa = r.normal(size=V)
model(
    "ideal points",
    """data { int n, V; int<lower=0,upper=1> y[n, V]; }
prior { for (i in 1:n) x[i] ~ normal(0, 1); for (v in 1:V) a[v] ~ normal(0, 2); b[1] ~ normal(0, 2) T[0, ];
  for (v in 2:V) b[v] ~ normal(0, 2); }
likelihood { for (i in 1:n, v in 1:V) y[i, v] ~ bernoulli_logit(x[i] * b[v] - a[v]); }
""",
    dict(n=n, V=V, y=(r.random((n, V)) < inv(ip[:, None] * bb[None] - aa[None])).astype(int)),
)

r = R(110)
S = 40
n = 9
t = np.array([0.5, 1, 2, 3, 4, 6, 8, 10, 12])
ka = np.exp(0.3 + 0.3 * r.normal(size=S))
ke = np.exp(-1.8 + 0.25 * r.normal(size=S))
v = np.exp(1 + 0.2 * r.normal(size=S))
c = 10 / v[:, None] * ka[:, None] / (ka - ke)[:, None] * (np.exp(-ke[:, None] * t) - np.exp(-ka[:, None] * t))
model(
    "one compartment, subjects",
    """data { int S, n; vector[n] t; matrix[S, n] y; }
prior { mka ~ normal(0, 1); mke ~ normal(-2, 1); mv ~ normal(0, 2); ska ~ half_normal(0, 1); ske ~ half_normal(0, 1);
  sv ~ half_normal(0, 1); s ~ half_normal(0, 1);
 for (i in 1:S) { lka[i] ~ normal(mka, ska); lke[i] ~ normal(mke, ske); lv[i] ~ normal(mv, sv); } }
likelihood { for (i in 1:S, j in 1:n) y[i, j] ~ normal(log(10 * exp(-lv[i]) * exp(lka[i]) / (exp(lka[i]) - exp(lke[i])) * (exp(-exp(lke[i])
  * t[j]) - exp(-exp(lka[i]) * t[j]))), s); }
""",
    dict(S=S, n=n, t=t, y=np.log(c) + r.normal(0, 0.1, (S, n))),
)
r = R(34)
A, C = 13, 11
age, coh = np.repeat(np.arange(A), 6), (np.tile(np.arange(6), A) + A - 1 - np.repeat(np.arange(A), 6)) * (C - 1) // (A + 4)
off = r.uniform(8, 10, A * 6)
model(
    "age and cohort, second-order walk",
    """data { int N, A, C; int age[N], coh[N]; vector[N] off; int<lower=0> y[N]; }
prior { mu ~ normal(0, 10); s ~ uniform(0, 1); al[1] = 0; for (k in 2:A) al[k] ~ normal(0, 10);
 be[1] ~ normal(0, 1); be[2] ~ normal(be[1], 1); for (k in 3:C) be[k] ~ normal(2 * be[k-1] - be[k-2], s); }
likelihood { for (i in 1:N) y[i] ~ poisson(exp(off[i] + mu + al[age[i]] + be[coh[i]])); }
""",
    dict(N=A * 6, A=A, C=C, age=age + 1, coh=coh + 1, off=off, y=r.poisson(np.exp(off - 7 + 0.3 * age - 0.01 * age**2 + 0.1 * coh))),
)
r = R(35)
n, p, q = 100, 7, 2
L = np.tril(r.normal(0, 1, (p, q)))
L[[0, 1], [0, 1]] = np.abs(L[[0, 1], [0, 1]]) + 0.3
model(
    "factors, a triangle in plates",
    """data { int n, p, q; matrix[n, p] y; }
prior { for (i in 1:p, k in 1:q) if (k < i) L[i, k] ~ normal(0, 1); else if (k == i) L[i, k] ~ half_normal(0, 1); else L[i, k] = 0;
 for (i in 1:p) { s[i] ~ half_cauchy(0, 1); m[i] ~ normal(0, 5); } }
latent { for (i in 1:n, k in 1:q) f[i, k] ~ normal(0, 1); }
likelihood { for (i in 1:n, j in 1:p) y[i, j] ~ normal(m[j] + L[j] * f[i], s[j]); }
""",
    dict(n=n, p=p, q=q, y=r.normal(0, 1, p) + r.normal(size=(n, q)) @ L.T + 0.5 * r.normal(size=(n, p))),
)
r = R(36)
G, n = 2, 16
size = r.integers(5, 14, (G, n))
model(
    "litters of two groups",
    """data { int G, n; int size[G, n], y[G, n]; }
prior { for (g in 1:G) { a[g] ~ gamma(1, 0.001); b[g] ~ gamma(1, 0.001); } }
latent { for (g in 1:G, i in 1:n) p[g, i] ~ beta(a[g], b[g]); }
likelihood { for (g in 1:G, i in 1:n) y[g, i] ~ binomial(size[g, i], p[g, i]); }
""",
    dict(G=G, n=n, size=size, y=r.binomial(size, r.beta([[9], [2]], [[1], [0.7]], (G, n)))),
)


def main():
    few = 0
    print("| model | least effective | of | by | s |")
    print("| --- | --- | --- | --- | --- |")
    with tempfile.TemporaryDirectory() as folder:
        at = os.path.join(folder, "model")
        for name, (text, data) in MODELS.items():
            if len(sys.argv) > 2 and not any(n in name for n in sys.argv[2:]):
                continue
            with open(at + ".gm", "w") as f:
                f.write(text)
            with open(at + ".json", "w") as f:
                json.dump({k: plain(v) for k, v in data.items()}, f)
            subprocess.run([GMC, "-q", at + ".gm", "-o", at], check=True)
            began = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
            ran = subprocess.run(
                [at, at + ".json", "--seed", "1", "--warmup", "1000", "--samples", "5000", "--threads", "1", "--params", "all", "--summary",
                 "all"],
                check=True,
                capture_output=True,
                text=True,
            )
            size, worst = least(ran.stdout)
            by = taken(ran.stdout + ran.stderr)
            few += size < 1000
            print("| %s | %.0f | %s | %s | %.1f |" % (name, size, worst, by, resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - began),
                  flush=True)
    print("%d with fewer than 1000" % few)


main()
