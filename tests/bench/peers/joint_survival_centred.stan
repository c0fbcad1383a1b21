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
  array[N] vector[2] b;
  real g0, g1, a;
}
model {
  vector[N] b1 = to_vector(b[, 1]), b2 = to_vector(b[, 2]), fixed = log(shape) + g0 + g1 * x + a * b1, slope = a * b2;
  mu ~ normal(0, 5);
  s ~ normal(0, 2);
  L ~ lkj_corr_cholesky(2);
  sigma ~ normal(0, 2);
  b ~ multi_normal_cholesky(mu, diag_pre_multiply(s, L));
  shape ~ lognormal(0, 0.5);
  g0 ~ normal(0, 5);
  g1 ~ normal(0, 2);
  a ~ normal(0, 2);
  y ~ normal(b1[id] + b2[id] .* time, sigma);
  target += dot_product(died, fixed + (shape - 1) * log_stop + slope .* stop)
            - dot_product(stop, exp((shape - 1) * log_at + rep_matrix(fixed, Q) + diag_pre_multiply(slope, at)) * weight);
}
generated quantities { real cor = L[2, 1]; }
