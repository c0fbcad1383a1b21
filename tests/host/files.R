# files.R GMC DRAWS_1.csv ... -- files of NUTS in R, by the rules by which cmdstanr reads those of CmdStan (manual of read_cmdstan_csv):
# settings are the lines `# name = value`; the sampler's own columns end with __, lp__ apart; what follows `Step size =` and the line after
# `inverse mass matrix` is the adaptation; `Elapsed Time` has the times; beta.1.2 is beta[1,2]. Then posterior's summary must be that of
# `gmc summary` to ten digits: both are the same sums of doubles in another order.
suppressPackageStartupMessages({library(posterior); library(jsonlite)})
arguments <- commandArgs(trailingOnly = TRUE)
gmc <- arguments[1]
files <- arguments[-1]
checks <- 0
failed <- 0
check <- function(holds, what) {
    checks <<- checks + 1
    if (!isTRUE(holds)) {
        failed <<- failed + 1
        cat("failed:", what, "\n")
    }
}
nearly <- function(a, b, error) length(a) == length(b) && all(is.na(a) == is.na(b)) && all(abs(a - b) <= error * pmax(abs(b), 1), na.rm = TRUE)

one_file <- function(path) {
    lines <- readLines(path)
    said <- sub("^# *", "", lines[startsWith(lines, "#")])
    pairs <- regmatches(said, regexec("^([a-z_]+) = (.+)$", said))
    pairs <- pairs[lengths(pairs) == 3]
    settings <- setNames(lapply(pairs, `[`, 3), sapply(pairs, `[`, 2))
    x <- as.matrix(read.csv(path, comment.char = "#", check.names = FALSE))
    matrix_at <- grep("inverse mass matrix", said)
    list(settings = settings, x = x, stepsize = as.numeric(sub("Step size = ", "", grep("^Step size = ", said, value = TRUE))),
         metric = if (length(matrix_at) == 1) as.numeric(strsplit(said[matrix_at + 1], ",")[[1]]),
         seconds = as.numeric(sub(".*?([0-9.]+) seconds.*", "\\1", grep("seconds \\((Warm-up|Sampling|Total)\\)", said, value = TRUE))))
}
in_r <- function(name) sapply(strsplit(name, ".", fixed = TRUE),
                              function(p) if (length(p) > 1) sprintf("%s[%s]", p[1], paste(p[-1], collapse = ",")) else p)

read <- lapply(files, one_file)
own <- colnames(read[[1]]$x)
sampler <- grepl("__$", own) & own != "lp__"
for (r in read) {
    s <- r$settings
    check(identical(colnames(r$x), own), "all chains have the same columns")
    check(as.integer(s$num_samples) / as.integer(s$thin) == nrow(r$x), "num_samples of the header are there")
    check(s$method == "sample" && s$algorithm == "hmc" && s$engine == "nuts" && s$metric %in% c("diag_e", "dense_e"), "the settings are those of NUTS")
    check(r$stepsize > 0 && nearly(r$x[, "stepsize__"], rep(r$stepsize, nrow(r$x)), 1e-12), "the step size is that of the draws")
    check(length(r$metric) > 0 && all(r$metric > 0), "the inverse metric is there, and positive")
    check(length(r$seconds) == 3 && all(r$seconds > 0) && abs(r$seconds[1] + r$seconds[2] - r$seconds[3]) < 0.01, "three times are there")
}
check(setequal(own[sampler], c("accept_stat__", "stepsize__", "treedepth__", "n_leapfrog__", "divergent__", "energy__")),
      "the sampler's columns are those of CmdStan")
x <- array(NA, c(nrow(read[[1]]$x), length(read), length(own)), list(NULL, NULL, in_r(own)))
for (k in seq_along(read)) x[, k, ] <- read[[k]]$x
draws <- as_draws_array(x[, , !sampler])
check(identical(dim(draws)[1:2], c(1000L, 4L)), "4 x 1000 draws")

said <- fromJSON(paste(system2(gmc, c("summary", files, "--summary", "json"), stdout = TRUE, stderr = FALSE), collapse = "\n"))
ours <- said$variables
names <- gsub(" ", "", ours$variable, fixed = TRUE)
of <- summarise_draws(subset_draws(draws, variable = names), "mean", "sd", "rhat", "ess_bulk", "ess_tail", mcse = posterior::mcse_mean,
                      ~quantile2(.x, c(0.05, 0.5, 0.95)))
check(nrow(of) == length(names) && length(names) > 50, "all quantities of gmc summary are there by R's names")
for (what in c("mean", "sd", "rhat", "ess_bulk", "ess_tail", "mcse")) check(nearly(of[[what]], ours[[what]], 1e-10), paste(what, "by posterior"))
for (q in c(5, 50, 95)) check(nearly(of[[paste0("q", q)]], ours$quantiles[[paste0(q, "%")]], 1e-10), paste0("quantile ", q, " by posterior"))

cat(checks, "checks,", failed, "failed\n")
quit(status = as.integer(failed > 0))
