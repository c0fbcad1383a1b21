data { int T; vector[T] y; real sigma1; }
parameters { real mu; real<lower=0> alpha0; real<lower=0, upper=1> alpha1; real<lower=0, upper=1 - alpha1> beta1; }
model {
  vector[T] v;
  v[1] = square(sigma1);
  for (t in 2:T) v[t] = alpha0 + alpha1 * square(y[t - 1] - mu) + beta1 * v[t - 1];
  mu ~ normal(0, 5);
  alpha0 ~ normal(0, 5);
  beta1 ~ uniform(0, 1 - alpha1);
  y ~ normal(mu, sqrt(v));
}
