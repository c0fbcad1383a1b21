"""Compiles the device half of models in mixed precision for compute capability 8.0 (the argument 80: models of the tests) or 9.0 (90:
golden programs, examples and benchmarks), to PTX, without optimisation where NVRTC can (12.8 on). What differs between the two is the
runtime.

For 8.0 19 in 20 models, by their names, and for 9.0 two in three, end after NVRTC's front end (13 on), which refuses what is no CUDA: the
code that it would make of them is that of the runtime's headers and of the same few kinds of loops. Golden programs do not end there, nor
the first with each choice of parts of the runtime; and for 8.0 the examples and benchmarks that do are left out, being in 90. What ends
there reads the headers, kernels.h among them, precompiled: with no fields in Data and State, of which no header knows any.
(tests/gpu/compiles.test goes on to optimised machine code for some.) Golden programs go through the front end in double and single
precision too. Needs NVRTC; no GPU."""
import glob
import os
import re
import subprocess
import sys
import tempfile
import zlib

import toolkit

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "tests"))
import emitted
GMC = os.environ.get("GMC") or os.path.join(ROOT, "build", "gmc")


# By --method em: probabilities of values, those of a multivariate mixture, expectations of Polya-Gamma and scale mixtures, a numerical
# maximum.
EXPECTED = ("tests/bench/mixtures/normals.gm", "tests/bench/mixtures/multivariate.gm", "examples/logistic/logistic.gm",
            "examples/robust/robust.gm", "tests/bench/mixture.gm")


OF_90 = ("tests/golden/*/model.gm", "examples/*/*.gm", "tests/bench/*.gm")


def directives(text):
    """What the program defines for kernels.h: which parts of the runtime it has."""
    return re.findall(r"^#define (GM_\w+)", text.partition('#include "kernels.h"')[0], re.M)


def all_of_it(source, text, parts):
    """Not the front end alone. `parts`: sets of directives that programs had before."""
    one_in = 3 if sys.argv[1] == "90" else 20
    new = str(directives(text)) not in parts
    parts.add(str(directives(text)))
    return new or "golden" in source or zlib.crc32(os.path.relpath(source, ROOT).encode()) % one_in == 0


def headers_first(text, folder):
    """The program, after a header that NVRTC precompiles: it includes kernels.h as the program does, with what this defines before."""
    defined = directives(text)
    name = os.path.join(folder, "_".join(["headers", *defined]) + ".h")
    if not os.path.exists(name):
        with open(name, "w") as f:
            f.write('#include "gm.h"\nstruct NoData {};\nstruct NoState {};\n#define Data NoData\n#define State NoState\n'
                    + "".join("#define %s\n" % d for d in defined) + '#include "kernels.h"\n#undef Data\n#undef State\n')
    return '#include "%s"\n' % name + text


def main():
    with tempfile.TemporaryDirectory() as folder:
        return compile_all(folder)


def compile_all(folder):
    nvrtc, passed, failed, parts = toolkit.nvrtc(), 0, 0, set()
    if nvrtc is None:
        print("skipped: NVRTC is not installed (pip install nvidia-cuda-nvrtc)")
        return 0
    options = ["-I" + os.path.join(ROOT, "runtime/device"), "--gpu-architecture=compute_" + sys.argv[1], "--std=c++17",
               "--disable-warnings", "-DGM_PRECISION=float", "-DGM_CALLS", "-DGM_ROWS_WIDTH=50"]
    if toolkit.version(nvrtc) >= (12, 8):
        options += ["--Ofast-compile=max", "--pch", "--pch-dir=" + folder]
    front = ["--fdevice-syntax-only"] if toolkit.version(nvrtc) >= (13, 0) else []
    for where in OF_90 + (("tests/graph/*.gm", "tests/posteriors/*/model.gm") if sys.argv[1] == "80" else ()):
        for source in sorted(glob.glob(os.path.join(ROOT, where))):
            status, text, _ = emitted.program(source, GMC)
            text = text.decode()
            # a model that is refused, or one for the CPU: other tests see to it
            if status != 0 or ".cpu_only" in text:
                continue
            whole = all_of_it(source, text, parts)
            if not whole and front and sys.argv[1] == "80" and where in OF_90:
                continue
            ways = [options + ([] if whole else front)]
            if "golden" in source and sys.argv[1] == "90":
                ways += [[o for o in options if o != "-DGM_PRECISION=float"] + front, options + ["-DGM_SOLVE_PRECISION=float"] + front]
            for way in ways:
                given = headers_first(text, folder) if front and front[0] in way else text
                import time; t0=time.process_time(); status, log, _ = toolkit.compile_text(nvrtc, given, os.path.basename(source), way); print('T', 'front' if front and front[0] in way else 'whole', round(time.process_time()-t0,3), len(given), os.path.relpath(source, ROOT), flush=True)
                passed += status == 0
                failed += status != 0
                if status != 0:
                    print("FAIL %s\n%s" % (source, log))
    for source in EXPECTED:
        ran = subprocess.run([GMC, "-q", "--method", "em", os.path.join(ROOT, source), "--emit=cuda"], capture_output=True, text=True)
        status, log = 1, ran.stderr
        if ran.returncode == 0:
            status, log, _ = toolkit.compile_text(nvrtc, ran.stdout, os.path.basename(source), options)
        passed += status == 0
        failed += status != 0
        if status != 0:
            print("FAIL --method em %s\n%s" % (source, log))
    print("%d passed, %d failed" % (passed, failed))
    return 1 if failed or not passed else 0


sys.exit(main())
