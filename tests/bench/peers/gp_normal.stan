data { int N; array[N] real x; vector[N] y; }
parameters { real<lower=0> rho, alpha, sigma; }
model {
  matrix[N, N] L = cholesky_decompose(add_diag(gp_exp_quad_cov(x, alpha, rho), square(sigma)));
  rho ~ inv_gamma(5, 5);
  alpha ~ normal(0, 2);
  sigma ~ std_normal();
  y ~ multi_normal_cholesky(rep_vector(0, N), L);
}
