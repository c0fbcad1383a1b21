"""What stanc --warn-pedantic looks for, as models: each is refused, or warned of, or has one meaning here and is compiled in silence.

    pedantic.py GMC FOLDER

No false alarms: nothing is random."""
import os
import re
import subprocess
import sys

gmc, work = sys.argv[1:3]
DATA, LIKELIHOOD = "data { int N; vector[N] y; }\n", "likelihood { y ~ normal(%s, %s); }\n"
# what is looked for -> the statements of the priors, mean and sd of y, and the code of the message: E refuses, W warns, "" says nothing
MODELS = {
    "an argument outside of its domain": ("mu ~ normal(0, -1);", "mu", "1", "E0403"),
    "an argument at the end of its domain": ("mu ~ normal(0, 0);", "mu", "1", "E0403"),
    "no prior": ("real mu;", "mu", "1", "W0905"),
    "no prior of a scale": ("mu ~ normal(0, 1); real<lower=0> s;", "mu", "s", "W0905"),
    "two distributions": ("mu ~ normal(0, 1); mu ~ normal(0, 2);", "mu", "1", "E0202"),
    "a number that is no scale of anything": ("mu ~ normal(0, 100000);", "mu", "1", "W0903"),
    "gamma with small equal arguments": ("t ~ gamma(0.01, 0.01);", "0", "1 / sqrt(t)", "W0901"),
    "inverse gamma with small equal arguments": ("v ~ inv_gamma(0.001, 0.001);", "0", "sqrt(v)", "W0901"),
    "a uniform standard deviation": ("s ~ uniform(0, 1000);", "0", "s", "W0902"),
    "a function of an unknown on the left": ("s ~ lognormal(0, 1); log(s) ~ normal(0, 1);", "0", "s", "E0108"),
    "a name that is not there": ("mu ~ normal(m, 1);", "mu", "1", "E0203"),
    "a real with a distribution of integers": ("real k; k ~ poisson(3);", "k", "1", "E0405"),
    "an int with a distribution of reals": ("int k; k ~ normal(0, 1);", "k", "1", "E0406"),
    # bounds and support: a density is 0 outside of either, so the intersection is meant
    "bounds wider than the support": ("real r; r ~ gamma(2, 2);", "r", "1", ""),
    "one bound of two": ("real<lower=0> q; q ~ beta(2, 2);", "q", "1", ""),
    "bounds beyond those of uniform": ("real<lower=0> r; r ~ uniform(0, 1);", "r", "1", ""),
    "a scale without a bound": ("real s; s ~ normal(0, 1);", "0", "s", ""),
    "two bounds inside the support": ("real<lower=-3, upper=5> mu; mu ~ normal(0, 1);", "mu", "1", ""),
    "a choice by an unknown": ("mu ~ normal(0, 1);", "(mu > 0 ? mu : 0)", "1", ""),
}


def main():
    os.chdir(work)
    failed = 0
    for what, (priors, mean, sd, code) in MODELS.items():
        with open("m.gm", "w") as f: f.write(DATA + "prior { %s }\n" % priors + LIKELIHOOD % (mean, sd))
        done = subprocess.run([gmc, "m.gm"], capture_output=True, text=True)
        found = re.findall(r"(?:error|warning)\[([EW]\d+)\]", done.stderr)
        good = set(found) == ({code} if code else set()) and done.returncode == (code[:1] == "E")
        failed += not good
        print("%-7s" % ("ok" if good else "FAILED"), what, "" if good else "%s: %s\n%s" % (code, found, done.stderr))
    return failed > 0


sys.exit(main())
