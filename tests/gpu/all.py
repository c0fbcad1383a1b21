"""All tests that need a GPU: make test-gpu.

    all.py                          builds in a folder that is removed, and runs; one line and exit status 3 if there is no GPU
    all.py build FOLDER [ARCH]      on a machine without a GPU, for one of the architecture ARCH (sm_90)
    all.py run FOLDER [PART...]     there: with the NVIDIA driver, NVRTC and NumPy, and what of the CUDA Toolkit the parts ask for

Parts: laws (the law of every sampler: laws.py), programs (tests/gpu/*.cu, by nvcc), models (the CPU against the GPU: devices.py), modes
(the same of programs for modes: modes.py), oracles (posteriors against reference draws: oracles.py), sanitize (compute-sanitizer over
programs and over ten oracles). A part that lacks a tool says so and is no failure. The last line counts the parts that failed.
"""
import os
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
PARTS = ("laws", "programs", "models", "modes", "oracles", "sanitize")


def call(script, *arguments):
    return subprocess.run([sys.executable, os.path.join(HERE, script), *arguments]).returncode


def build(folder, arch=None):
    chosen = [arch] if arch else []
    return [name for name, status in (("laws", call("laws.py", "build", folder, *chosen)),
                                      ("programs", call("programs.py", "build", folder, *chosen)),
                                      ("models", call("devices.py", "build", folder)), ("modes", call("modes.py", "build", folder)),
                                      ("oracles", call("oracles.py", "build", folder))) if status != 0]


def sanitize(folder):
    """Both; without the tool both say so."""
    return max(call("programs.py", "sanitize", folder), call("oracles.py", "sanitize", folder))


def run(folder, parts):
    failed = []
    for part in parts:
        began = time.monotonic()
        status = {"laws": lambda: call("laws.py", "run", folder), "programs": lambda: call("programs.py", "run", folder),
                  "models": lambda: call("devices.py", "run", folder), "modes": lambda: call("modes.py", "run", folder),
                  "oracles": lambda: call("oracles.py", "run", folder), "sanitize": lambda: sanitize(folder)}[part]()
        if status == 3:
            return 3
        if status != 0:
            failed.append(part)
        print("     %s: %.0f s" % (part, time.monotonic() - began), flush=True)
    return failed


def finish(failed):
    if failed == 3:
        return 3
    print("test-gpu: %s" % ("failed: " + " ".join(failed) if failed else "passed"))
    return 1 if failed else 0


def here():
    gmc = os.environ.get("GMC") or os.path.join(ROOT, "build", "gmc")
    example = os.path.join(ROOT, "examples", "poisson_gamma")
    with tempfile.TemporaryDirectory() as folder:
        first = os.path.join(folder, "first")
        subprocess.run([gmc, "-q", os.path.join(example, "poisson_gamma.gm"), "-o", first], check=True)
        probe = subprocess.run([first, os.path.join(example, "pumps.json"), "--device", "gpu", "--warmup", "0", "--samples", "1",
                                "--no-summary"], capture_output=True, text=True)
        if probe.returncode != 0:
            print("test-gpu: it cannot run here: " + (probe.stderr.strip().splitlines() or ["status %d" % probe.returncode])[-1])
            return 3
        failed = build(folder)
        ran = run(folder, PARTS)
        return finish(ran if ran == 3 else failed + ran)


def main():
    if not sys.argv[1:]:
        sys.exit(here())
    elif sys.argv[1] == "build" and len(sys.argv) > 2:
        sys.exit(finish(build(*sys.argv[2:4])))
    elif sys.argv[1] == "run" and len(sys.argv) > 2:
        sys.exit(finish(run(sys.argv[2], sys.argv[3:] or PARTS)))
    else:
        print(__doc__)
        sys.exit(2)


main()
