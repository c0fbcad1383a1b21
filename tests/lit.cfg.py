# lit.cfg.py -- how the tests are run. A .gm or .test file holds RUN lines; FileCheck reads CHECK lines.
import glob
import hashlib
import os
import shutil
import subprocess
import sys

root = os.environ.get("GMC_ROOT") or os.path.abspath(os.path.join(os.path.dirname(__file__), ".."))
sys.path.insert(0, os.path.join(root, "tests"))
import timed
config.name = "gmc"
config.test_format = timed.Timed(os.path.join(root, "build", "seconds"))
config.suffixes = [".gm", ".test"]
config.excludes = ["Inputs", "seeds", "oracles", "golden", "bench", "posteriors", "idioms"]
config.test_source_root = os.path.join(root, "tests")
config.test_exec_root = os.path.join(root, "build", "lit")
filecheck = next((p for p in ("/usr/lib/llvm-14/bin", "/usr/lib/llvm-15/bin", "/usr/lib/llvm-16/bin") if os.path.exists(p + "/FileCheck")),
                 "")
config.environment["PATH"] = os.pathsep.join([filecheck, os.environ["PATH"]])
config.environment["OMP_WAIT_POLICY"] = "passive"      # two chains on one core must not wait for each other by spinning
config.environment["OPENBLAS_NUM_THREADS"] = "1"       # numpy's threads spin while it is imported (programs set it by themselves)
config.environment["CC"] = os.path.join(root, "tests", "cc")
with open("/proc/cpuinfo") as f:
    processor = next((line for line in f if line.startswith("flags")), "")
config.environment["COMPILERS"] = "".join(subprocess.run([c, "--version"], capture_output=True, text=True).stdout for c in ("cc", "clang")
                                          if shutil.which(c)) + processor
sums = hashlib.sha256()
for folder in ("device", "host", "backends"):
    for header in sorted(glob.glob(os.path.join(root, "runtime", folder, "*.h"))):
        with open(header, "rb") as f:
            sums.update(f.read())
config.environment["HEADERS"] = sums.hexdigest()
for name in ("CUDA_HOME", "HOME"):
    if name in os.environ:
        config.environment[name] = os.environ[name]
# Long lines of programs as one: those that end with a comma, and those that go on with an operator.
config.substitutions += [("%joined", r"sed -z -E 's/,\n +/, /g; s/\n +([-+*\/?:] )/ \1/g'")]
config.substitutions += [("%gmc", os.path.join(root, "build", "gmc") + " --check-passes"), ("%root", root),
                         ("%python", os.path.join(root, "build", "venv", "bin", "python"))]
