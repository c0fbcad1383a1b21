data { int N, T; vector[T] x; matrix[N, T] Y; }
transformed data { vector[T] z = x - mean(x); }
parameters { real alpha_c, beta_c; real<lower=0> tau_c, tau_alpha, tau_beta; vector[N] alpha, beta; }
model {
  alpha_c ~ normal(0, 100);
  beta_c ~ normal(0, 100);
  tau_c ~ gamma(0.001, 0.001);
  tau_alpha ~ gamma(0.001, 0.001);
  tau_beta ~ gamma(0.001, 0.001);
  alpha ~ normal(alpha_c, inv_sqrt(tau_alpha));
  beta ~ normal(beta_c, inv_sqrt(tau_beta));
  for (j in 1:T) Y[, j] ~ normal(alpha + beta * z[j], inv_sqrt(tau_c));
}
