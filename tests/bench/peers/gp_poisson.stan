data { int N; array[N] real x; array[N] int k; }
parameters { real<lower=0> rho, alpha; vector[N] z; }
transformed parameters { vector[N] f = cholesky_decompose(add_diag(gp_exp_quad_cov(x, alpha, rho), 1e-10)) * z; }
model {
  rho ~ gamma(25, 4);
  alpha ~ normal(0, 2);
  z ~ std_normal();
  k ~ poisson_log(f);
}
