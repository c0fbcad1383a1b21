"""Models whose modes are found by expectation-maximisation: against densities written down in em.py, and on a GPU against the CPU in
tests/gpu/modes.py."""
NORMALS = """data { int<lower=0> N; int<lower=1> K; vector[N] y; }
prior { w ~ dirichlet(rep_vector(2, K)); for (k in 1:K) { mu[k] ~ normal(0, 10); s[k] ~ root_inv_gamma(2, 1); } }
latent { for (i in 1:N) c[i] ~ categorical(w); }
likelihood { for (i in 1:N) y[i] ~ normal(mu[c[i]], s[c[i]]); }
"""
CLASSES = """data { int<lower=0> N; int<lower=1> K, J; int<lower=1, upper=3> y[N, J]; int<lower=0> n[N]; }
prior { w ~ dirichlet(rep_vector(2, K)); for (k in 1:K) { lambda[k] ~ gamma(2, 1);
  for (j in 1:J) theta[k, j] ~ dirichlet(rep_vector(1.5, 3)); } }
latent { for (i in 1:N) c[i] ~ categorical(w); }
likelihood { for (i in 1:N) { n[i] ~ poisson(lambda[c[i]]); for (j in 1:J) y[i, j] ~ categorical(theta[c[i], j]); } }
"""
BINARY = """data { int<lower=0> N, p; matrix[N, p] X; int<lower=0, upper=1> y[N], z[N]; }
prior { for (j in 1:p) { b[j] ~ normal(0, 2); a[j] ~ normal(0, 2); } }
likelihood { for (i in 1:N) { y[i] ~ bernoulli_logit(X[i] * b); z[i] ~ bernoulli(Phi(X[i] * a)); } }
"""
ROBUST = """data { int<lower=0> N, p; matrix[N, p] X; vector[N] y; }
prior { for (j in 1:p) b[j] ~ normal(0, 10); s ~ half_cauchy(0, 5); }
likelihood { for (i in 1:N) y[i] ~ student_t(4, X[i] * b, s); }
"""
NUMERICAL = """data { int<lower=0> N; vector[N] y; }
prior { p ~ beta(2, 2); for (k in 1:2) mu[k] ~ normal(0, 10); s ~ gamma(3, 1); }
latent { for (i in 1:N) c[i] ~ bernoulli(p); }
likelihood { for (i in 1:N) y[i] ~ student_t(4, mu[c[i] + 1], s); }
"""
