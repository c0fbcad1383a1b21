data { int N, p; matrix[N, p] X; array[N] int y; }
transformed data { vector[N] s = 2 * to_vector(y) - 1; }
parameters { real<lower=0> tau; vector<lower=0>[p] lambda; vector[p] z; }
transformed parameters { vector[p] beta = tau * lambda .* z; }
model {
  tau ~ cauchy(0, 1);
  lambda ~ cauchy(0, 1);
  z ~ std_normal();
  target += std_normal_lcdf(s .* (X * beta));
}
