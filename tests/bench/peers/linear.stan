data { int N, p; matrix[N, p] X; vector[N] y; }
parameters { real alpha; vector[p] beta; real<lower=0> sigma; }
model {
  alpha ~ student_t(3, 0, 10);
  beta ~ std_normal();
  sigma ~ student_t(3, 0, 10);
  y ~ normal_id_glm(X, alpha, beta, sigma);
}
