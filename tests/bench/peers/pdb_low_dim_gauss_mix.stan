data { int N; vector[N] y; }
parameters { real<lower=0, upper=1> theta; ordered[2] mu; vector<lower=0>[2] sigma; }
model {
  theta ~ beta(5, 5);
  mu ~ normal(0, 2);
  sigma ~ normal(0, 2);
  for (n in 1:N) target += log_mix(theta, normal_lpdf(y[n] | mu[1], sigma[1]), normal_lpdf(y[n] | mu[2], sigma[2]));
}
