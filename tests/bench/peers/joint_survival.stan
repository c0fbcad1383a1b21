data {
  int N, M, Q;
  array[M] int id;
  vector[M] time, y;
  vector[N] stop, died, x;
  vector[Q] node, weight;
}
transformed data {
  matrix[N, Q] at = stop * node', log_at = log(at);
  vector[N] log_stop = log(stop);
}
parameters {
  vector[2] mu;
  vector<lower=0>[2] s;
  cholesky_factor_corr[2] L;
  real<lower=0> sigma, shape;
  matrix[2, N] z;
  real g0, g1, a;
}
transformed parameters { matrix[N, 2] b = (rep_matrix(mu, N) + diag_pre_multiply(s, L) * z)'; }
model {
  vector[N] fixed = log(shape) + g0 + g1 * x + a * b[, 1], slope = a * b[, 2];
  mu ~ normal(0, 5);
  s ~ normal(0, 2);
  L ~ lkj_corr_cholesky(2);
  sigma ~ normal(0, 2);
  to_vector(z) ~ std_normal();
  shape ~ lognormal(0, 0.5);
  g0 ~ normal(0, 5);
  g1 ~ normal(0, 2);
  a ~ normal(0, 2);
  y ~ normal(b[id, 1] + b[id, 2] .* time, sigma);
  target += dot_product(died, fixed + (shape - 1) * log_stop + slope .* stop)
            - dot_product(stop, exp((shape - 1) * log_at + rep_matrix(fixed, Q) + diag_pre_multiply(slope, at)) * weight);
}
generated quantities { real cor = L[2, 1]; }
