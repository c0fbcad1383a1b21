data { int N; vector[N] partyid7, real_ideo, race_adj, educ1, gender, income; array[N] int age_discrete; }
transformed data {
  matrix[N, 9] X;
  for (n in 1:N)
    X[n] = [1, real_ideo[n], race_adj[n], age_discrete[n] == 2, age_discrete[n] == 3, age_discrete[n] == 4, educ1[n], gender[n], income[n]];
}
parameters { vector[9] beta; real<lower=0> sigma; }
model { partyid7 ~ normal_id_glm(X, 0, beta, sigma); }
