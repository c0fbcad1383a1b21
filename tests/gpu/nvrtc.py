"""Compiles the device half of every model of the tests and examples, in mixed precision, for compute capability 8.0 or 9.0 (the argument: 80, 90),
to PTX. (tests/gpu/compiles.test goes on to machine code for some.) Needs NVRTC; no GPU."""
import ctypes
import glob
import os
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
GMC = os.environ.get("GMC") or os.path.join(ROOT, "build", "gmc")
PLACES = ["/usr/local/cuda*/lib*/libnvrtc.so.1*", "/usr/lib/x86_64-linux-gnu/libnvrtc.so.1*", os.path.join(sys.prefix, "lib/python3*/site-packages/nvidia/*/lib/libnvrtc.so.1*")]


def library():
    for place in [os.environ.get("GMC_NVRTC", "")] + sorted(f for p in PLACES for f in glob.glob(p)):
        if os.path.isfile(place):
            return ctypes.CDLL(place)
    print("skipped: NVRTC is not installed (pip install nvidia-cuda-nvrtc)")
    sys.exit(0)


def compile_text(nvrtc, text, name, options):
    program = ctypes.c_void_p()
    nvrtc.nvrtcCreateProgram(ctypes.byref(program), text.encode(), name.encode(), 0, None, None)
    status = nvrtc.nvrtcCompileProgram(program, len(options), (ctypes.c_char_p * len(options))(*[o.encode() for o in options]))
    size = ctypes.c_size_t()
    nvrtc.nvrtcGetProgramLogSize(program, ctypes.byref(size))
    log = ctypes.create_string_buffer(size.value)
    nvrtc.nvrtcGetProgramLog(program, log)
    nvrtc.nvrtcDestroyProgram(ctypes.byref(program))
    return status, log.value.decode()


def main():
    nvrtc, passed, failed = library(), 0, 0
    options = ["-I" + os.path.join(ROOT, "runtime/device"), "--gpu-architecture=compute_" + sys.argv[1], "--std=c++17", "--disable-warnings", "-DGM_PRECISION=float", "-DGM_CALLS", "-DGM_ROWS_WIDTH=50"]
    for where in ("tests/golden/*/model.gm", "tests/graph/*.gm", "examples/*/*.gm", "tests/bench/*.gm"):
        for source in sorted(glob.glob(os.path.join(ROOT, where))):
            emitted = subprocess.run([GMC, "-q", source, "--emit=cuda"], capture_output=True, text=True)
            if emitted.returncode != 0:          # a model that is refused: other tests see to it
                continue
            status, log = compile_text(nvrtc, emitted.stdout, os.path.basename(source), options)
            passed += status == 0
            failed += status != 0
            if status != 0:
                print("FAIL %s\n%s" % (source, log))
    print("%d passed, %d failed" % (passed, failed))
    return 1 if failed or not passed else 0


sys.exit(main())
