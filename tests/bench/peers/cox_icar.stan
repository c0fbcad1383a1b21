data { int N, E; array[E] int one, other; array[N] int k; real area; }
parameters { real beta; real<lower=0> sigma; vector[N] phi; }
model {
  beta ~ normal(0, 5);
  sigma ~ std_normal();
  target += -0.5 * dot_self(phi[one] - phi[other]);
  sum(phi) ~ normal(0, 0.001 * N);
  k ~ poisson_log(log(area) + beta + sigma * phi);
}
