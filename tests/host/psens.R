# psens.R NAME VARIABLE ... -- sensitivity to prior and likelihood by power scaling (Kallioinen, Paananen, Buerkner and Vehtari 2024),
# written out on the columns lprior and log_lik_* of NAME_1.csv, ...: lines `name prior likelihood`. Weights are those of loo's psis.
suppressMessages({ library(posterior); library(loo) })
arguments <- commandArgs(TRUE)
chains <- lapply(Sys.glob(paste0(arguments[1], "_[0-9].csv")), read.csv, comment.char = "#", check.names = FALSE)
draws <- do.call(rbind, chains)
log_lik <- rowSums(draws[, grepl("^log_lik_", names(draws)), drop = FALSE])

# Cumulative Jensen-Shannon distance of a sample and of the same with weights; relative to its bound.
one_way <- function(x, weights) {
  places <- order(x)
  step <- diff(x[places])
  p <- head(seq_along(x) / length(x), -1)
  q <- head(cumsum(weights[places]) / sum(weights), -1)
  divergence <- function(p, q) sum(step * (p * ifelse(p == 0, 0, log2(p / ((p + q) / 2))) + (q - p) / (2 * log(2))))
  sqrt(max(0, (divergence(p, q) + divergence(q, p)) / sum(step * (p + q))))
}
distance <- function(x, weights) max(one_way(x, weights), one_way(-x, weights))
sensitivity <- function(x, component, delta = 0.01) {
  at <- function(power) {
    smoothed <- suppressWarnings(psis((power - 1) * component, r_eff = 1))
    distance(x, weights(smoothed, log = FALSE)[, 1])
  }
  (at(1 + delta) + at(1 / (1 + delta))) / (2 * log2(1 + delta))
}
for (v in arguments[-1])
  cat(v, format(sensitivity(draws[[v]], draws$lprior), digits = 12), format(sensitivity(draws[[v]], log_lik), digits = 12), "\n")
