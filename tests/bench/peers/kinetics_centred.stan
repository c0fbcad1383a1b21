functions {
  vector slope(real t, vector a, real ka, real ke) { return [-ka * a[1], ka * a[1] - ke * a[2]]'; }
}
data { int J, M; array[J] int first, last; array[M] real time; vector[M] conc; array[J] real dose; }
parameters { vector[3] mu; vector<lower=0>[3] s; real<lower=0> sigma; matrix[J, 3] u; }
model {
  vector[M] m;
  for (j in 1:J) {
    real ke = exp(u[j, 2] - u[j, 3]);
    array[last[j] - first[j] + 1] vector[2] z = ode_rk45(slope, [dose[j], 0]', 0, time[first[j]:last[j]], ke + exp(u[j, 1]), ke);
    m[first[j]:last[j]] = to_vector(z[, 2]) * exp(-u[j, 3]);
  }
  mu ~ normal([0.5, -3, -0.8]', 1);
  s ~ normal(0, 0.5);
  sigma ~ std_normal();
  for (k in 1:3) u[, k] ~ normal(mu[k], s[k]);
  conc ~ normal(m, sigma);
}
