data { int N, I, J; array[N] int a, b; vector[N] y; }
parameters { real mu; real<lower=0> s, su, sv; vector[I] u; vector[J] v; }
model {
  mu ~ normal(0, 10);
  s ~ cauchy(0, 1);
  su ~ cauchy(0, 1);
  sv ~ cauchy(0, 1);
  u ~ normal(0, su);
  v ~ normal(0, sv);
  y ~ normal(mu + u[a] + v[b], s);
}
