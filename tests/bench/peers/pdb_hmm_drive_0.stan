data { int N, K; array[N] real u, v; matrix[K, K] alpha; }
parameters { simplex[K] theta1, theta2; positive_ordered[K] phi, lambda; }
model {
  matrix[K, K] theta;
  matrix[K, N] log_p;
  theta[1] = theta1';
  theta[2] = theta2';
  theta1 ~ dirichlet(alpha[1]');
  theta2 ~ dirichlet(alpha[2]');
  phi[1] ~ normal(0, 1);
  phi[2] ~ normal(3, 1);
  lambda[1] ~ normal(0, 1);
  lambda[2] ~ normal(3, 1);
  for (t in 1:N) for (k in 1:K) log_p[k, t] = exponential_lpdf(u[t] | phi[k]) + exponential_lpdf(v[t] | lambda[k]);
  target += hmm_marginal(log_p, theta, rep_vector(1.0 / K, K));
}
