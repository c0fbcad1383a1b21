data { int N, I, K; array[N, I] int y; }
parameters { vector[N] theta; vector<lower=0>[I] alpha; array[I] vector[K - 1] beta; }
model {
  theta ~ std_normal();
  alpha ~ lognormal(0, 0.5);
  for (i in 1:I) {
    beta[i] ~ normal(0, 2);
    for (n in 1:N) y[n, i] ~ categorical_logit(cumulative_sum(append_row(0, alpha[i] * theta[n] - beta[i])));
  }
}
