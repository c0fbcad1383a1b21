"""Golden programs, one drawn by NUTS and one with costs of scales, both halves, through nvcc as they stand, without optimisation where
nvcc can (12.8 on)."""
import os
import re
import subprocess
import sys
import tempfile

import toolkit

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
nvcc = toolkit.tool("nvcc")
if not nvcc:
    print("skipped: nvcc is not installed")
    sys.exit(0)
told = re.search(r"release (\d+)\.(\d+)", subprocess.run([nvcc, "--version"], capture_output=True, text=True).stdout)
unoptimised = ["--Ofast-compile=max"] if told and (int(told[1]), int(told[2])) >= (12, 8) else []      # a sixth of the time
with tempfile.TemporaryDirectory() as folder:
    programs = {name: os.path.join(ROOT, "tests/golden", name, "expected.cu") for name in ("ar1", "pump", "probit")}
    for name, model in (("moves", "tests/graph/request_nuts.gm"), ("scales", "tests/bench/ar2.gm")):
        programs[name] = os.path.join(folder, name + ".cu")
        with open(programs[name], "w") as f:
            subprocess.run([os.environ.get("GMC") or os.path.join(ROOT, "build", "gmc"), "-q", "--emit=cuda", os.path.join(ROOT, model)],
                           stdout=f, check=True)
    for name, source in programs.items():
        # The row passes of probit for one width of rows: all widths take a quarter of a minute.
        ran = subprocess.run([nvcc, *unoptimised,
                              "-arch=native" if os.path.exists("/dev/nvidia0") else "-arch=sm_80", "-DGM_ROWS_WIDTH=8", "-I",
                              os.path.join(ROOT, "runtime/device"), "-c",
                              source, "-o", os.path.join(folder, name + ".o")], capture_output=True, text=True)
        print(name, ran.returncode, ran.stdout, ran.stderr)
        if ran.returncode != 0:
            sys.exit(1)
