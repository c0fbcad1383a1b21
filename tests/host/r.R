# R's posterior and loo on the files of draws NAME_1.csv, ...: the numbers of gmc's summary and loo, as lines `what name value`.
#
#   Rscript r.R NAME

suppressMessages({ library(posterior); library(loo) })
name <- commandArgs(TRUE)[1]
files <- Sys.glob(paste0(name, "_[0-9].csv"))
chains <- lapply(files, read.csv, comment.char = "#", check.names = FALSE)
columns <- names(chains[[1]])
x <- array(unlist(lapply(chains, as.matrix)), c(nrow(chains[[1]]), length(columns), length(chains)))
x <- aperm(x, c(1, 3, 2))
dimnames(x) <- list(NULL, NULL, columns)
draws <- as_draws_array(x[, , !grepl("^log_lik_|__$", columns), drop = FALSE])
said <- function(what, who, value) cat(what, who, format(value, digits = 15), "\n")
for (v in variables(draws)) {
  one <- extract_variable_matrix(draws, v)
  said("mean", v, mean(one))
  said("rhat", v, rhat(one))
  said("ess_bulk", v, ess_bulk(one))
  said("ess_tail", v, ess_tail(one))
  said("mcse", v, mcse_mean(one))
}
log_lik <- x[, , grepl("^log_lik_y", columns), drop = FALSE]
result <- loo(log_lik, r_eff = relative_eff(exp(log_lik)))
said("elpd_loo", "y", result$estimates["elpd_loo", "Estimate"])
said("p_loo", "y", result$estimates["p_loo", "Estimate"])
said("se", "y", result$estimates["elpd_loo", "SE"])
