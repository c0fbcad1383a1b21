"""Chains that begin again (runtime/host/restarts.c). m has two modes, 12 and -12, of standard deviation 1, that of m > 0 with exp(w) times
the probability of the other; the D numbers x are normal with a standard deviation of 1 where m < 0 and of exp(k) where m > 0, so log
densities differ by w - k D, and probabilities know nothing of k. A chain starts near m = 0 and stays in the mode that it reaches first.

Printed for each case: in how many of six runs no chain began again, or, where the probability of one mode is next to none, all chains were
in the other at the end; and whether the runs are informative: chains that began again, or that stayed in both modes, in half of them or
more. Seeds are fixed. With entropies left out of the bounds by hand, `narrow` and `broad` fail.
"""
import subprocess

from program import Workplace

MODEL = """data { int D; real w, k; }
prior { m ~ flat(); for (d in 1:D) x[d] ~ flat(); }
likelihood {
  s = inv_logit(4 * (m - 6));
  target += w * s - square(square(m) - 144) / (2 * square(24));
  for (d in 1:D) target += -k * s - square(x[d] * exp(-k * s)) / 2;
}
"""
# D, w, k, whether chains begin again. In `broad` the mode of next to no probability has the higher density, by exp(40).
CASES = {"alone": (5, 40, 0, True), "alike": (5, 0, 0, False), "a little less": (5, 5, 0, False), "narrow": (25, 0, -4, False),
         "broad": (20, 40, 4, True), "missing": (5, 40, 0, False), "discrete": (5, 40, 0, False)}

with Workplace() as w:
    program = w.compile("modes", MODEL, flags=("--method", "nuts"))
    stepped = w.compile("stepped", MODEL.replace("int D;", "int D; real z;").replace("target += w", "z ~ normal(m, 1000); target += w"),
                        flags=("--method", "nuts"))
    counting = w.compile("counting", MODEL.replace("m ~ flat();", "m ~ flat(); n ~ poisson(3);").replace("target += w",
            "c ~ binomial(n + 4, 0.5); target += w").replace("int D;", "int D, c;"), flags=("--method", "nuts"))
    for name, (D, tilt, k, restarts) in CASES.items():
        values = {"D": D, "w": tilt, "k": k}
        data = w.data(name.replace(" ", "_"), {**values, "z": None, "c": 4})
        good, both = 0, 0
        for seed in range(1, 7):
            draws = w.draws({"missing": stepped, "discrete": counting}.get(name, program), data, 20, seed=seed, params="m,x")
            above = draws["m"].mean(1) > 0
            again = ["began again" in said for said in w.said]
            ended, right = above.all() or not above.any(), above == (tilt > 0)
            both += any(again) if restarts else not ended
            # where the right mode was not reached, nothing is known
            good += right.all() or not (right.any() or any(again)) if restarts else not any(again)
        print("%s: %d of 6 as they should be, %s" % (name, good, "in most some began again" if restarts and both >= 3
                                                     else "in most both modes stay" if not restarts and both >= 3
                                                     else "%d of 6 tell" % both))
    many = w.compile("many", "data { int D; }\nprior { for (d in 1:D) x[d] ~ normal(0, d * d); }\n",
                     flags=("--method", "nuts"))
    w.draws(many, w.data("many", {"D": 100}), 20, chains=32, warmup=300)
    print("32 chains that have seen little of scales from 1 to 10,000: %d began again" % sum("began again" in said for said in w.said))
    files = []
    for threads in ("1", "4"):
        subprocess.run([program, w.path("alone.json"), "--seed", "2", "--samples", "20", "--threads", threads,
                        "--overwrite", "-o", program + "_draws",
                        "-q", "--no-summary"], check=True)
        files.append(["".join(line for line in open("%s_draws_%d.csv" % (program, c)) if "_datetime" not in line).split("# \n#  Elapsed")[0]
                      for c in (1, 2, 3, 4)])
    print("the same with any number of threads" if files[0] == files[1] and any("began again" in text for text in files[0])
          else "other draws")
