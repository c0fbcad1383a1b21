"""What a program does about a GPU that is not there, is too old, has too little memory, or fails. No GPU is needed: stub_cuda.c stands for
the driver and the libraries.

    failures.py              all parts
    failures.py NAME...      some: statuses, cache, auto, sizes, pieces, memory, wheels

statuses   one line that names what is wrong and what helps; its exit status; whether --device auto goes on with the CPU; the draws kept
           after a failure
cache      a cache of compiled kernels that is damaged, cannot be read or cannot be written is done without
auto       a run is made on the device that ends it sooner: by costs, or measured, the stub's launches taking no time or a millisecond; with
           the same draws as if it had been asked for
sizes      no rows, no columns and warm-ups of any length run: a driver refuses memory of no bytes, launches of no blocks and work on no
           address
pieces     a matrix that stays with the host is seen by row passes whole, in order, the same bits, whatever the limit
memory     bytes a row and chain beside the data, p by p arrays a chain
wheels     NVRTC, cuBLAS and cuSOLVER are found in wheels of PyPI and opened, with what they need; skipped where there are none (some 500
           MB)
"""
import ctypes
import glob
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
GMC = os.environ.get("GMC") or os.path.join(ROOT, "build", "gmc")
LIBRARY = os.path.join(os.path.dirname(GMC), "libgmhost.a")

MODELS = {
    "normal": """
model normal
data { int N; vector[N] y; }
prior { mu ~ normal(0, 10); sigma ~ half_cauchy(0, 1); }
likelihood { for (i in 1:N) y[i] ~ normal(mu, sigma); }
""",
    "probit": """
model probit
data { int N, p; matrix[N, p] X; int<lower=0, upper=1> y[N]; }
prior { for (j in 1:p) beta[j] ~ normal(0, 10); }
likelihood { for (i in 1:N) y[i] ~ bernoulli(Phi(X[i] * beta)); }
""",
    "logistic": """
model logistic
data { int N, p; matrix[N, p] X; int<lower=0, upper=1> y[N]; }
prior { for (j in 1:p) beta[j] ~ normal(0, 10); }
likelihood { for (i in 1:N) y[i] ~ bernoulli_logit(X[i] * beta); }
""",
    "robust": """
model robust
data { int N, p; matrix[N, p] X; vector[N] y; }
prior { sigma ~ half_cauchy(0, 1); for (j in 1:p) beta[j] ~ normal(0, 10); }
likelihood { for (i in 1:N) y[i] ~ student_t(4, X[i] * beta, sigma); }
""",
    "horseshoe": """
model horseshoe
data { int N, p; matrix[N, p] X; int<lower=0, upper=1> y[N]; }
prior {
  tau ~ half_cauchy(0, 1);
  for (j in 1:p) { lambda[j] ~ half_cauchy(0, 1); beta[j] ~ normal(0, lambda[j] * tau); }
}
likelihood { for (i in 1:N) y[i] ~ bernoulli(Phi(X[i] * beta)); }
""",
    "lasso": """
model lasso
data { int N, p; matrix[N, p] X; vector[N] y; }
prior { sigma ~ half_cauchy(0, 1); for (j in 1:p) beta[j] ~ double_exponential(0, sigma); }
likelihood { for (i in 1:N) y[i] ~ normal(X[i] * beta, sigma); }
""",
    "groups": """
model groups
data { int N, p, G; int<lower=1, upper=G> g[N]; matrix[N, p] X; int<lower=0, upper=1> y[N]; }
prior {
  tau ~ half_cauchy(0, 1);
  for (j in 1:p) beta[j] ~ normal(0, 2);
  for (k in 1:G) u[k] ~ normal(0, tau);
}
likelihood { for (i in 1:N) y[i] ~ bernoulli_logit(X[i] * beta + u[g[i]]); }
""",
    "mixture": """
model mixture
data { int N; vector[N] y; }
prior {
  w ~ beta(1, 1);
  for (k in 1:2) { mu[k] ~ normal(0, 10); s[k] ~ half_cauchy(0, 1); }
}
likelihood { for (i in 1:N) y[i] ~ mixture(w, normal(mu[1], s[1]), normal(mu[2], s[2])); }
""",
    "choosing": """
model choosing
data { int N, p; matrix[N, p] X; vector[N] y; }
prior { a ~ normal(0, 1); b ~ normal(0, 1); for (j in 1:p) beta[j] ~ normal(0, 1); }
likelihood { for (i in 1:N) y[i] ~ normal(X[i] * beta, exp(a + b * y[i])); }
""",
    "moves": """
model moves
data { int N, p; matrix[N, p] X; int<lower=0, upper=1> y[N]; }
prior { for (j in 1:p) beta[j] ~ normal(0, 10); }
likelihood { for (i in 1:N) y[i] ~ bernoulli_logit(X[i] * beta); }
infer { beta by nuts; }
""",
}
REAL = ("robust", "lasso", "mixture", "normal", "choosing")

results = []


def report(good, text):
    results.append(bool(good))
    print("ok  " if good else "FAIL", text, flush=True)


# The stub fills all memory that it gives: in pages of 4 KiB that is most of the time of a run.
LARGE_PAGES = {"GLIBC_TUNABLES": "glibc.malloc.hugetlb=1"}


class Place:
    """A folder with the stub, programs and data; each is made when first asked for."""

    def __init__(self, folder):
        self.folder = folder
        self.made = set()
        for name, options in (("stub.so", []), ("old.so", ["-DSTUB_OLD"])):
            subprocess.run([os.environ.get("CC", "cc"), "-std=gnu11", "-shared", "-fPIC", "-O1", *options, "-o", self.at(name),
                            os.path.join(HERE, "stub_cuda.c")], check=True)

    def at(self, name):
        return os.path.join(self.folder, name)

    def program(self, model, *options):
        name = model + "".join(options).replace("-", "_")
        if name not in self.made:
            with open(self.at(model + ".gm"), "w") as f:
                f.write(MODELS[model])
            ran = subprocess.run([GMC, "-q", self.at(model + ".gm"), "-o", self.at(name), *options],
                                 env={**os.environ, "CUDA_VISIBLE_DEVICES": ""}, capture_output=True, text=True)
            if ran.returncode != 0:
                sys.exit("gmc: %s %s" % (name, ran.stderr))
            self.made.add(name)
        return self.at(name)

    def data(self, model, n, p):
        name = "%d_%d_%d" % (model in REAL, n, p)
        if name not in self.made:
            r = np.random.default_rng(1)
            np.save(self.at("X_%s.npy" % name), r.normal(size=(n, p)))
            np.save(self.at("y_%s.npy" % name), r.normal(size=n) if model in REAL else (r.uniform(size=n) < 0.5).astype(np.int32))
            self.made.add(name)
        return ["y=y_%s.npy" % name] + (["X=X_%s.npy" % name] if "X[" in MODELS[model] else [])

    def fit(self, model, inputs, *options, made=(), cache="cache", **environment):
        libraries = {v: self.at("stub.so") for v in ("GMC_CUDA", "GMC_NVRTC", "GMC_CUBLAS", "GMC_CUSOLVER")}
        # --device auto: the GPU if there is one
        common = {"XDG_CACHE_HOME": self.at(cache), "STUB_LOG": self.at("log"), "OMP_NUM_THREADS": "1", "GMC_DEVICE": "gpu", **LARGE_PAGES}
        os.makedirs(self.at(cache), exist_ok=True)
        if os.path.exists(self.at("log")):
            os.remove(self.at("log"))
        environment = {k: v for k, v in {**os.environ, **libraries, **common, **environment}.items() if v is not None}
        return subprocess.run([self.program(model, *made), *inputs, "--seed", "1", "--no-summary", *options], cwd=self.folder,
                              env=environment, capture_output=True, text=True, timeout=120)

    def asked(self, function, **environment):
        """What a function of runtime/backends/cuda.h that looks for libraries says: found, or why not."""
        if function not in self.made:
            with open(self.at(function + ".c"), "w") as f:
                f.write('#include "cuda.h"\n#include <stdio.h>\nint main(void) { const char *why = ""; puts(%s(&why) ? "found" : why); }\n'
                        % function)
            subprocess.run([os.environ.get("CC", "cc"), "-std=gnu11", "-I" + os.path.join(ROOT, "runtime/backends"), "-o",
                            self.at(function), self.at(function + ".c"), LIBRARY, "-ldl"], check=True)
            self.made.add(function)
        libraries = {v: self.at("stub.so") for v in ("GMC_CUDA", "GMC_CUBLAS", "GMC_CUSOLVER")}
        environment = {k: v for k, v in {**os.environ, **libraries, **environment}.items() if v is not None}
        return subprocess.run([self.at(function)], env=environment, capture_output=True, text=True).stdout.strip()

    def log(self):
        with open(self.at("log")) as f:
            return f.read()


# ---- statuses ----

SHORT = ["--warmup", "5", "--samples", "5"]


def expect(place, what, status, words, *options, model="normal", auto="falls back", made=(), **environment):
    """With --device gpu one line with `words` and the status; with --device auto the CPU's draws and a note, or the same end."""
    inputs = place.data(model, 1000, 3)
    gpu = place.fit(model, inputs, "--device", "gpu", *SHORT, *options, made=made, **environment)
    lines = [line for line in gpu.stderr.splitlines() if "from the size of" not in line
             and not line.startswith(("stopped after", model + ":"))]
    named = len(lines) == 1 and all(w in lines[0] for w in words)
    report(gpu.returncode == status and named, "%s: status %d%s" % (what, gpu.returncode, "" if named else ", not named: " + gpu.stderr))
    default = place.fit(model, inputs, *SHORT, *options, made=made, **environment)
    if auto == "ends":
        good = default.returncode == status and words[0] in default.stderr
    else:
        noted = "on the CPU: " in default.stderr and all(w in default.stderr for w in words)
        good = default.returncode == 0 and (noted if auto == "falls back" else "on the CPU" not in default.stderr)
    report(good, "%s, auto: %s%s" % (what, auto, "" if good else ", but status %d: %s" % (default.returncode, default.stderr)))


def statuses(place):
    nowhere = place.at("nowhere")
    try:
        ctypes.CDLL("libcuda.so.1")
    except OSError:
        expect(place, "no driver", 5, ["libcuda.so.1", "GMC_CUDA"], auto="silent", GMC_CUDA=None)
    expect(place, "a driver that is no library", 5, ["cannot be loaded (GMC_CUDA)", "nowhere"], GMC_CUDA=nowhere)
    expect(place, "a driver too old", 5, ["too old", "11.0", "11.4 or later", "newer"], STUB_DRIVER="11000")
    expect(place, "a driver that lacks a function", 5, ["too old", "cuGraphInstantiateWithFlags"], GMC_CUDA=place.at("old.so"))
    expect(place, "a driver that does not start", 5, ["does not start", "CUDA_ERROR_803", "not restarted"], STUB_FAIL="cuInit=803@1")
    expect(place, "no GPU visible", 5, ["CUDA_VISIBLE_DEVICES is ``"], auto="silent", STUB_DEVICES="0", CUDA_VISIBLE_DEVICES="")
    expect(place, "a GPU that others hold", 5, ["GPU 0 (Stub 0)", "CUDA_ERROR_46", "nvidia-smi"], STUB_FAIL="cuDevicePrimaryCtxRetain=46@1")
    expect(place, "a GPU too old", 5, ["compute capability is 6.1", "7.0"], STUB_CAPABILITY="61")
    expect(place, "NVRTC that does not know it", 5, ["no architecture up to", "sm_75"], STUB_CAPABILITY="70")
    expect(place, "no NVRTC", 5, ["NVRTC is not installed", "pip install", "GMC_NVRTC"], GMC_NVRTC=nowhere)
    expect(place, "NVRTC too old", 5, ["older than CUDA 11.2", "nvrtcGetCUBIN"], cache="cache_old", GMC_NVRTC=place.at("old.so"))
    expect(place, "NVRTC that fails", 5, ["NVRTC does not compile"], cache="cache_none", STUB_FAIL="nvrtcCompileProgram=6@1")
    expect(place, "a program without device code", 5, ["--no-device"], made=("--no-device",))
    # cuBLAS: missed before anything is drawn, by models that need them only.
    wide = ["--params", "beta", "--no-lp"]
    inputs = place.data("horseshoe", 400, 150)
    for what, words, environment in (("no cuBLAS", ["need cuBLAS", "pip install"], {"GMC_CUBLAS": nowhere}),
                                     ("cuBLAS too old", ["too old", "cublasSgemm"], {"GMC_CUBLAS": place.at("old.so")})):
        ran = place.fit("horseshoe", inputs, "--device", "gpu", *SHORT, *wide, **environment)
        report(ran.returncode == 5 and all(w in ran.stderr for w in words) and "stopped" not in ran.stderr,
               "%s: status %d" % (what, ran.returncode))
        ran = place.fit("horseshoe", inputs, *SHORT, *wide, **environment)
        report(ran.returncode == 0 and "on the CPU: " in ran.stderr, "%s, auto: status %d" % (what, ran.returncode))
    ran = place.fit("normal", place.data("normal", 1000, 3), "--device", "gpu", *SHORT, GMC_CUBLAS=nowhere)
    report(ran.returncode == 0, "a model that needs no cuBLAS: status %d" % ran.returncode)
    # cuSOLVER: done without.
    for what, environment in (("cuSOLVER", {}), ("no cuSOLVER", {"GMC_CUSOLVER": nowhere}),
                              ("cuSOLVER too old", {"GMC_CUSOLVER": place.at("old.so")}), ("no cuBLAS for it", {"GMC_CUBLAS": nowhere})):
        said = place.asked("gm_cuda_solver", **environment)
        report({"cuSOLVER": "found", "no cuSOLVER": "pip install nvidia-cusolver", "cuSOLVER too old": "cusolverDnSpotrf"}.get(what,
                "need cuBLAS") in said, "%s: %s" % (what, said))
    ran = place.fit("normal", place.data("normal", 1000, 3), "--device", "gpu:2", *SHORT, STUB_DEVICES="2")
    report(ran.returncode == 5 and "there is no GPU 2; they are numbered from 0 to 1" in ran.stderr,
           "gpu:2 of two: status %d" % ran.returncode)
    ran = place.fit("normal", place.data("normal", 1000, 3), "--device", "gpu:1", *SHORT, STUB_DEVICES="2")
    report(ran.returncode == 0 and "GPU 1 (Stub 1" in ran.stderr, "gpu:1 of two: status %d" % ran.returncode)
    # HMC, by a driver without loops in graphs: the host asks after each round.
    inputs = place.data("moves", 1000, 3)
    ran = place.fit("moves", inputs, "--device", "gpu", "--profile", *SHORT)
    launches = dict(re.findall(r"^(\w+) +(\d+) ", ran.stdout, re.M))
    report(ran.returncode == 0 and launches.get("gm_hmc") == "40" and launches.get("density_beta") == "30",
           "moves: status %d, %s and %s launches" % (ran.returncode, launches.get("gm_hmc"), launches.get("density_beta")))
    ran = place.fit("moves", inputs, "--device", "gpu", *SHORT)
    report(ran.returncode == 0, "moves without --profile: status %d %s" % (ran.returncode, ran.stderr if ran.returncode else ""))
    # What has method selection is drawn by Gibbs updates up to a quarter of warm-up, then by NUTS and Gibbs updates. The stub's rows say
    # that no density was finite, so Gibbs updates win after the first 20 sweeps, at the next meeting. Rows are of sweeps 33 to 119, and 10
    # draws.
    ran = place.fit("logistic", place.data("logistic", 1000, 3), "--device", "gpu", "--profile", "--chains", "2", "--warmup", "400",
                    "--samples", "10")
    launches = dict(re.findall(r"^(\w+) +(\d+) ", ran.stdout, re.M))
    report(ran.returncode == 0 and launches.get("gm_hmc") == "80" and launches.get("density_beta") == "60"
           and launches.get("collect_beta") == "410" and launches.get("gm_gather") == "97",
           "methods that compete: status %d, launches %s" % (ran.returncode, [launches.get(k) for k in ("gm_hmc", "density_beta",
                   "collect_beta", "gm_gather")]))
    ran = place.fit("moves", inputs, "--device", "gpu", "--warmup", "0", "--samples", "1000", STUB_FAIL="cuStreamSynchronize=700@99")
    report(ran.returncode == 7 and "bug of gmc" in ran.stderr, "a move that fails: status %d" % ran.returncode)
    # The stub computes nothing: what it leaves differs from the CPU's draws, log densities and gradients.
    ran = place.fit("moves", inputs, "--compare-devices", "--chains", "2")
    differ = re.findall(r"^  its density and derivatives +(\S+)  FAILED: (\w+)", ran.stdout, re.M)
    report(ran.returncode == 1 and len(differ) == 3 and all(float(x) > 1e-6 for x, _ in differ),
           "derivatives that differ: status %d, %s" % (ran.returncode, differ))
    # Memory.
    expect(place, "too little memory", 6, ["needs ", " MB and 0.984 MB are free", "fewer --chains", "--device cpu"], STUB_MEMORY="1e6")
    expect(place, "a limit too low", 6, ["under --device-memory", "a larger limit"], "--device-memory", "1MB")
    expect(place, "memory that is gone meanwhile", 6, ["the run needs ", "free"], STUB_FAIL="cuMemAlloc=2@1")
    expect(place, "no memory to lock", 6, ["host does not have", "--device cpu"], STUB_FAIL="cuMemAllocHost=2@1")
    expect(place, "out of memory when sampling begins", 6, ["the draws", "needs "], auto="ends", STUB_FAIL="cuMemAlloc=2@5")
    expect(place, "a GPU that fails in setup", 5, ["CUDA_ERROR_214", "reset"], STUB_FAIL="cuMemsetD8Async=214@1")
    for bad in ("12", "2Q", "-1GB", "GB", "1e99GB", "0.0000001 B"):
        ran = place.fit("normal", place.data("normal", 1000, 3), "--device-memory", bad)
        report(ran.returncode == 2 and "--device-memory: `%s`" % bad in ran.stderr, "--device-memory %s: status %d" % (bad, ran.returncode))
    # Lost while it sweeps: what came before is kept, and counted.
    for error, words in ((999, "Xid"), (700, "bug of gmc"), (719, "system's log")):
        for name in glob.glob(place.at("lost_*.csv*")):
            os.remove(name)
        ran = place.fit("normal", place.data("normal", 1000, 3), "--overwrite", "-o", "lost", "--warmup", "0", "--samples", "100000",
                        STUB_FAIL="cuEventSynchronize=%d@9" % error)
        said = re.search(r"stopped after (\d+) sweeps; (\d+) draws per chain are kept", ran.stderr)
        kept = [sum(line[0] != "#" for line in open(name)) - 1 for name in sorted(glob.glob(place.at("lost_*.csv")))]
        good = (ran.returncode == 7 and said and int(said.group(2)) > 100 and kept == 4 * [int(said.group(2))] and words in ran.stderr
                and "CUDA_ERROR_%d" % error in ran.stderr)
        report(good, "lost with error %d: status %d, %s draws kept%s" % (error, ran.returncode, said and said.group(2),
                                                                         "" if good else " " + ran.stderr))


# ---- cache ----

def cache(place):
    inputs = place.data("normal", 1000, 3)

    def run(what, compiled, folder="kept", **environment):
        ran = place.fit("normal", inputs, "--device", "gpu", *SHORT, cache=folder, **environment)
        times = place.log().count("compile\n") if os.path.exists(place.at("log")) else 0
        report(ran.returncode == 0 and times == compiled, "%s: status %d, compiled %d times %s" % (what, ran.returncode, times,
                ran.stderr if ran.returncode else ""))

    run("an empty cache", 1)
    run("a cache that holds the program", 0)
    (file,) = glob.glob(place.at("kept/gmc/*"))
    whole = open(file, "rb").read()
    at = whole.index(b"\n") + 1
    for what, content in (("a truncated file", whole[:-3]), ("an empty file", b""), ("a file of an older kind", b"gmc1" + whole[4:]),
                          ("a file with a changed byte", whole[:at] + b"X" + whole[at + 1:]),
                          ("a file with a tail", whole + b"x"), ("a file of nonsense", os.urandom(300))):
        with open(file, "wb") as f:
            f.write(content)
        run(what, 1)
        report(open(file, "rb").read() == whole, what + " is replaced")
    run("a file that the driver does not take", 1, STUB_FAIL="cuModuleLoadDataEx=200@1")
    os.remove(file)
    os.mkdir(file)
    run("a folder in its place", 1)
    os.rmdir(file)
    shutil.rmtree(place.at("kept"))
    with open(place.at("kept"), "w"):
        pass
    os.makedirs(place.at("home/.cache"))
    run("a cache that is a file", 1, folder="other", XDG_CACHE_HOME=place.at("kept"))
    run("no home", 1, folder="other", XDG_CACHE_HOME=None, HOME=None)
    run("a home that is not there", 1, folder="other", XDG_CACHE_HOME=None, HOME=place.at("nowhere"))
    if os.geteuid() != 0:                                # root writes everywhere
        os.chmod(place.at("home/.cache"), 0o500)
        run("a home that cannot be written", 1, folder="other", XDG_CACHE_HOME=None, HOME=place.at("home"))
        os.chmod(place.at("home/.cache"), 0o700)


# ---- auto ----

def auto(place):
    inputs, large = place.data("logistic", 300, 3), place.data("logistic", 5000, 3)

    def ran(what, device, *options, inputs=inputs, **environment):
        """Runs it; the line about the device is to begin with `device`, or not to be there."""
        for name in glob.glob(place.at("auto_*.csv")):
            os.remove(name)
        r = place.fit("logistic", inputs,
                      "--overwrite", "-o", "auto", *options, **{"GMC_DEVICE": None, "CUDA_VISIBLE_DEVICES": None, **environment})
        said = [line for line in r.stderr.splitlines() if line.startswith(("CPU: ", "GPU: ", "on the CPU: "))]
        on_gpu = " on GPU 0 " in r.stderr
        good = r.returncode == 0 and [line[:len(device)] for line in said] == [device] * (device != "") and on_gpu == (device == "GPU: ")
        report(good, "%s: status %d, %s" % (what, r.returncode, said[0] if said and good else r.stderr))
        opened = place.log().count("compile") if os.path.exists(place.at("log")) else None
        with open(place.at("auto_1.csv")) as f:
            return opened, [line for line in f if line[0] != "#"]

    def same(what, one, *options, **environment):
        report(one[1] == ran(what, "", *options, **environment)[1], what + ": the same draws")

    # Costs decide, and nothing of a GPU is loaded.
    short = ran("a short run", "CPU: ", *SHORT)
    report(short[0] is None, "a short run: no driver")
    ran("GMC_DEVICE=cpu", "", *SHORT, GMC_DEVICE="cpu")
    ran("no GPU is visible", "", *SHORT, CUDA_VISIBLE_DEVICES="", STUB_DEVICES="0")
    # Two seconds on the CPU, of which a GPU takes a tenth, but for kernels that have to be compiled.
    some = ["--chains", "1", "--warmup", "100", "--samples", "3200", "--method", "gibbs", "--no-lp"]
    opened, _ = ran("kernels that are not compiled yet", "CPU: ", *some, inputs=large, cache="auto_empty")
    report(not opened, "kernels that are not compiled yet: they are not")
    place.fit("logistic", large, "--device", "gpu", *SHORT, cache="auto")
    opened, _ = ran("kernels that are compiled", "GPU: ", *some, inputs=large, cache="auto")
    # Both are measured.
    slow = ran("a slow GPU", "CPU: ", *SHORT, cache="auto", GMC_DEVICE="measure", STUB_LAUNCH="0.005")
    same("the CPU, asked for", slow, "--device", "cpu", *SHORT)
    fast = ran("a fast GPU", "GPU: ", "--chains", "16", *SHORT, inputs=large, cache="auto", GMC_DEVICE="measure")
    same_gpu = place.fit("logistic", large, "--overwrite", "-o", "auto", "--device", "gpu", "--chains", "16", *SHORT, cache="auto")
    with open(place.at("auto_1.csv")) as f:
        report(same_gpu.returncode == 0 and fast[1] == [line for line in f if line[0] != "#"], "the GPU, asked for: the same draws")
    for model in ("moves", "robust", "mixture"):
        for device in ("cpu", "measure"):
            place.fit(model, place.data(model, 300, 3),
                      "--overwrite", "-o", device, *SHORT, cache="auto", GMC_DEVICE=device, STUB_LAUNCH="0.005")
        one, other = ([line for line in open(place.at(device + "_1.csv")) if line[0] != "#"] for device in ("cpu", "measure"))
        report(one == other and len(one) > 5, model + ", measured or not: the same draws")
    for what, environment in (("too little memory", {"STUB_MEMORY": "1e6"}), ("a GPU that fails while it is measured",
                                                                              {"STUB_FAIL": "cuStreamSynchronize=700@9"}),
                              ("a GPU that others hold", {"STUB_FAIL": "cuDevicePrimaryCtxRetain=46@1"})):
        ran(what, "on the CPU: ", *SHORT, cache="auto", GMC_DEVICE="measure", **environment)


# ---- pieces ----

def needed(place, model, inputs, *options):
    """Bytes without which the program does not run on the GPU."""
    ran = place.fit(model, inputs, "--device", "gpu", "--device-memory", "1MB", *SHORT, *options)
    found = re.search(r"needs ([0-9.]+) ([MG])B", ran.stderr)
    return float(found.group(1)) * {"M": 1e6, "G": 1e9}[found.group(2)] * 1.006


def pieces(place):
    for model, n, p, chains in (("probit", 100_003, 50, 4), ("logistic", 125_003, 7, 6), ("logistic", 15_013, 80, 5),
                                ("robust", 25_003, 33, 1), ("horseshoe", 20_011, 300, 2)):
        inputs = place.data(model, n, p)
        options = ["--chains", str(chains), "--params", "beta", "--no-lp"]
        least = needed(place, model, inputs, *options)
        seen, all_of_it = {}, None
        for part in (None, 0, 0.2, 0.6):
            limit = 0 if part is None else least + part * max(0, all_of_it - least)
            ran = place.fit(model, inputs, "--device", "gpu", *SHORT, *options, *(["--device-memory", "%.0f" % limit] if limit else []))
            log = place.log()
            most = int(re.search(r"most (\d+)", log).group(1))
            all_of_it = all_of_it or most
            away = re.search(r"X \([0-9.]+ MB\) stays in the memory of the host", ran.stderr)
            seen[limit] = sorted(line for line in log.splitlines() if line.startswith("pass "))
            good = ran.returncode == 0 and seen[limit] == seen[0] and len(seen[0]) > 0 and (not limit or (away and most <= limit))
            report(good, "%s %d x %d, %d chains, limit %.1f MB: %s%s" % (model, n, p, chains, limit / 1e6,
                                                                         "the same rows" if good
                                                                         else "status %d, most %d, %s" % (ran.returncode, most, ran.stderr),
                                                                      ", away" if away else ""))


# ---- sizes of 0 ----

def sizes(place):
    for model, n, p in (("choosing", 100, 2), ("choosing", 0, 2), ("choosing", 5, 0), ("probit", 0, 3), ("mixture", 0, 0),
                        ("horseshoe", 0, 4)):
        inputs = place.data(model, n, p)
        for warmup in (0, 299, 400) if model == "choosing" else (5,):
            ran = place.fit(model, inputs, "--device", "gpu", "--warmup", str(warmup), "--samples", "5")
            report(ran.returncode == 0, "%s %d x %d, warm-up of %d%s" % (model, n, p, warmup, "" if ran.returncode == 0
                                                                         else ": status %d: %s" % (ran.returncode, ran.stderr)))


# ---- memory ----

def memory(place):
    def most(model, n, p, chains):
        ran = place.fit(model, place.data(model, n, p), "--device", "gpu", "--warmup", "1", "--samples", "1", "--chains", str(chains),
                        "--params", "beta" if "X[" in MODELS[model] else "mu", "--no-lp")
        if ran.returncode != 0:
            sys.exit(ran.stderr)
        # without the ring of draws, which follows a count of 8 bytes: it is at most 32 MB, whatever the model
        log = place.log()
        return int(re.search(r"most (\d+)", log).group(1)) - int(re.search(r"alloc 8\nalloc (\d+)", log).group(1))

    # A row and chain: the second difference in rows and chains leaves nothing else.
    for model, p in (("probit", 8), ("horseshoe", 8), ("logistic", 8), ("robust", 8), ("lasso", 8), ("mixture", 1)):
        n = 400_000 if model in ("probit", "horseshoe", "lasso") else 100_000
        row = (most(model, 2 * n, p, 4) - most(model, 2 * n, p, 2) - most(model, n, p, 4) + most(model, n, p, 2)) / (2 * n)
        data = (most(model, 2 * n, p, 2) - most(model, n, p, 2)) / n - 2 * row
        held = 4 * p * ("X[" in MODELS[model]) + 4
        report(row <= 64 and data <= held + 1, "%s: %.1f bytes a row and chain (at most 64), %.1f a row for all (data %d)" % (model, row,
                data, held))
    # p by p arrays of doubles: a chain's, and those of all chains.
    for model in ("probit", "horseshoe", "logistic", "robust", "lasso"):
        def at(p, chains):
            return most(model, 2000, p, chains)
        square = (at(600, 3) - at(600, 2) - 2 * (at(400, 3) - at(400, 2)) + (at(200, 3) - at(200, 2))) / (8 * 2 * 200 * 200)
        report(square <= 3, "%s: %.2f p by p arrays a chain (at most 3)" % (model, square))


# ---- wheels ----

def wheels(place):
    environments = [e for e in os.environ.get("GMC_TEST_WHEELS", sys.prefix).split(":")
                    if glob.glob(e + "/lib/python3*/site-packages/nvidia/c*/lib/libcublas.so.1*")]
    if not environments:
        print("skipped: there is no libcublas in %s (pip install nvidia-cuda-nvrtc nvidia-cublas; GMC_TEST_WHEELS names other environments)"
              % sys.prefix)
    for e in environments:
        # The libraries are found and opened; then cuBLAS finds no GPU, the driver being a stub.
        ran = place.fit("horseshoe", place.data("horseshoe", 400, 150), "--device", "gpu", *SHORT, GMC_CUBLAS=None, VIRTUAL_ENV=e,
                        CONDA_PREFIX=None, CUDA_HOME=None)
        report(ran.returncode == 5 and "cublasCreate" in ran.stderr and "not installed" not in ran.stderr,
               "%s: cuBLAS, status %d %s" % (e, ran.returncode, ran.stderr.strip().splitlines()[-1]))
        if glob.glob(e + "/lib/python3*/site-packages/nvidia/c*/lib/libcusolver.so.1*"):
            said = place.asked("gm_cuda_solver", GMC_CUBLAS=None, GMC_CUSOLVER=None, VIRTUAL_ENV=e, CONDA_PREFIX=None, CUDA_HOME=None)
            report(said == "found", "%s: cuSOLVER, %s" % (e, said))
        ran = place.fit("normal", place.data("normal", 1000, 3), "--device", "gpu", *SHORT, cache="wheels", GMC_NVRTC=None, VIRTUAL_ENV=e,
                        CONDA_PREFIX=None, CUDA_HOME=None)
        report("its code cannot be loaded" in ran.stderr, "%s: NVRTC compiles, status %d %s" % (e, ran.returncode,
                ran.stderr.strip().splitlines()[-1]))


def main():
    parts = {f.__name__: f for f in (statuses, cache, auto, sizes, pieces, memory, wheels)}
    with tempfile.TemporaryDirectory() as folder:
        place = Place(folder)
        for name in sys.argv[1:] or parts:
            parts[name](place)
    print("%d passed, %d failed" % (sum(results), len(results) - sum(results)))
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
