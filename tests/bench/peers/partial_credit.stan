data { int N, I, K; array[N, I] int y; }
parameters { real<lower=0> sigma; vector[N] theta; array[I] vector[K - 1] beta; }
model {
  sigma ~ normal(0, 2);
  theta ~ normal(0, sigma);
  for (i in 1:I) {
    beta[i] ~ normal(0, 2);
    for (n in 1:N) y[n, i] ~ categorical_logit(cumulative_sum(append_row(0, theta[n] - beta[i])));
  }
}
