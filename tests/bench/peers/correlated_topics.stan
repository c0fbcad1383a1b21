data { int K, V, D, N; array[N] int doc, word; }
parameters {
  vector[K] mu;
  vector<lower=0>[K] sigma;
  cholesky_factor_corr[K] L;
  array[K] simplex[V] phi;
  array[D] vector[K] x;
}
transformed parameters {
  array[D] vector[K] log_theta;
  {
    matrix[K, K] S = diag_pre_multiply(sigma, L);
    for (d in 1:D) log_theta[d] = log_softmax(mu + S * x[d]);
  }
}
model {
  array[V] vector[K] log_phi;
  for (k in 1:K) {
    vector[V] l = log(phi[k]);
    for (v in 1:V) log_phi[v, k] = l[v];
    phi[k] ~ dirichlet(rep_vector(0.2, V));
  }
  mu ~ std_normal();
  sigma ~ std_normal();
  L ~ lkj_corr_cholesky(2);
  for (d in 1:D) x[d] ~ std_normal();
  for (n in 1:N) target += log_sum_exp(log_theta[doc[n]] + log_phi[word[n]]);
}
generated quantities {
  real fit = 0, words = 0, topics = 0, spread = mean(sigma);
  for (n in 1:N) {
    real p = 0;
    for (k in 1:K) p += exp(log_theta[doc[n], k]) * phi[k, word[n]];
    fit += log(p);
  }
  for (k in 1:K) words += dot_self(phi[k]);
  for (d in 1:D) topics += dot_self(exp(log_theta[d])) / D;
}
