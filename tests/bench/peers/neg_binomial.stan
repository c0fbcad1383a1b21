data { int N, p; matrix[N, p] X; array[N] int y; }
parameters { real alpha; vector[p] beta; real<lower=0> phi; }
model {
  alpha ~ normal(0, 2.5);
  beta ~ normal(0, 2.5);
  phi ~ exponential(1);
  y ~ neg_binomial_2_log_glm(X, alpha, beta, phi);
}
