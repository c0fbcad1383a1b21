data { int S, T; array[S, T] int choice, reward; }
parameters { real mu_rate, mu_temp; real<lower=0> sd_rate, sd_temp; vector[S] zr, zb; }
transformed parameters { vector[S] rate = inv_logit(mu_rate + sd_rate * zr), temp = exp(mu_temp + sd_temp * zb); }
model {
  mu_rate ~ normal(0, 1.5);
  mu_temp ~ normal(0, 1);
  sd_rate ~ std_normal();
  sd_temp ~ std_normal();
  zr ~ std_normal();
  zb ~ std_normal();
  for (s in 1:S) {
    vector[2] q = rep_vector(0.5, 2);
    vector[T] d;
    for (t in 1:T) {
      int k = choice[s, t] + 1;
      d[t] = q[2] - q[1];
      q[k] += rate[s] * (reward[s, t] - q[k]);
    }
    choice[s] ~ bernoulli_logit(temp[s] * d);
  }
}
