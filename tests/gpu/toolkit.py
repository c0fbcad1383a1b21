"""What the tests use of the CUDA Toolkit, where it is installed: its programs, and NVRTC through ctypes."""
import ctypes
import glob
import os
import shutil
import sys

PLACES = ["/usr/local/cuda*/lib*/libnvrtc.so.1*", "/usr/lib/x86_64-linux-gnu/libnvrtc.so.1*",
          os.path.join(sys.prefix, "lib/python3*/site-packages/nvidia/*/lib/libnvrtc.so.1*")]


def tool(name):
    """Where nvcc or another program of the toolkit is, or None."""
    homes = [os.environ.get("CUDA_HOME", "")] + sorted(glob.glob("/usr/local/cuda*"), reverse=True)
    return shutil.which(name) or next((p for home in homes if home for p in [os.path.join(home, "bin", name)] if os.path.exists(p)), None)


def nvrtc():
    """The library, or None."""
    for place in [os.environ.get("GMC_NVRTC", "")] + sorted(f for p in PLACES for f in glob.glob(p)):
        if os.path.isfile(place):
            return ctypes.CDLL(place)
    return None


def version(library):
    """NVRTC's (major, minor)."""
    major, minor = ctypes.c_int(), ctypes.c_int()
    library.nvrtcVersion(ctypes.byref(major), ctypes.byref(minor))
    return major.value, minor.value


def compile_text(library, text, name, options, code=False):
    """(status, NVRTC's log, machine code if `code`)."""
    program, size, cubin = ctypes.c_void_p(), ctypes.c_size_t(), None
    library.nvrtcCreateProgram(ctypes.byref(program), text.encode(), name.encode(), 0, None, None)
    status = library.nvrtcCompileProgram(program, len(options), (ctypes.c_char_p * len(options))(*[o.encode() for o in options]))
    library.nvrtcGetProgramLogSize(program, ctypes.byref(size))
    log = ctypes.create_string_buffer(size.value)
    library.nvrtcGetProgramLog(program, log)
    if status == 0 and code:
        library.nvrtcGetCUBINSize(program, ctypes.byref(size))
        cubin = ctypes.create_string_buffer(size.value)
        library.nvrtcGetCUBIN(program, cubin)
    library.nvrtcDestroyProgram(ctypes.byref(program))
    return status, log.value.decode(), cubin and cubin.raw
