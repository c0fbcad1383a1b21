data { int N, p, K; matrix[N, p] X; array[N] int y; }
parameters { vector[p] beta; ordered[K - 1] c; }
model {
  beta ~ normal(0, 2.5);
  c ~ normal(0, 5);
  y ~ ordered_logistic_glm(X, beta, c);
}
