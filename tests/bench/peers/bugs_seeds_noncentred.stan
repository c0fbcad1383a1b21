data { int N; array[N] int r, n; vector[N] x1, x2; }
transformed data { vector[N] x12 = x1 .* x2; }
parameters { real alpha0, alpha1, alpha2, alpha12; real<lower=0> tau; vector[N] z; }
transformed parameters { vector[N] b = z * inv_sqrt(tau); }
model {
  alpha0 ~ normal(0, 1000);
  alpha1 ~ normal(0, 1000);
  alpha2 ~ normal(0, 1000);
  alpha12 ~ normal(0, 1000);
  tau ~ gamma(0.001, 0.001);
  z ~ std_normal();
  r ~ binomial_logit(n, alpha0 + alpha1 * x1 + alpha2 * x2 + alpha12 * x12 + b);
}
