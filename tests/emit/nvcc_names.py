"""What the host part of an emitted program names of the runtime is there for nvcc, too: under __CUDACC__ the headers leave out what only a
CPU runs. Needs no nvcc: names are looked up in what gcc's preprocessor leaves of the headers, for the settings that the program makes.

    nvcc_names.py [FOLDER]      FOLDER: headers in place of runtime/device

Programs are those of all models of tests/ and examples/ (emitted.py), where they are kept."""
import glob
import os
import re
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "tests"))
import emitted                                                                      # noqa: E402

OUTSIDE = ["cuda_runtime.h", "cuda_fp16.h", "cuda_bf16.h", "cuda_pipeline.h", "cooperative_groups.h", "mma.h"]      # the CUDA Toolkit's
HOST = re.compile(r"^#ifndef __CUDACC_RTC__.*?^#endif", re.M | re.S)
NO_CODE = re.compile(r"/\*.*?\*/|//[^\n]*|\"(?:\\.|[^\"\\\n])*\"", re.S)
# a macro, a function or a type of the runtime: not a member
NAME = re.compile(r"(?<![\w.])(?<!->)(?:gm_\w+|Gm\w+|GM_\w+|[A-Z][A-Z_]+[A-Z])\b")
SETTINGS = re.compile(r"^#(?:define|include) .*$", re.M)
ENUM = re.compile(r"\benum \{(.*?)\}", re.S)
MADE = re.compile(r"\bGM_FOR_DRAWS\((\w+)\)")                  # which makes gm_NAME
FEWEST = 20


def defined(settings, folder, stubs):
    """All words of the headers, and of the definitions of macros, under __CUDACC__."""
    ran = subprocess.run(["gcc", "-E", "-dD", "-P", "-x", "c++", "-D__CUDACC__", "-D__NVCC__", "-I", folder, "-I", stubs, "-"],
                         input="typedef struct Data Data;\ntypedef struct State State;\n%s\n" % settings, capture_output=True, text=True)
    if ran.returncode:
        sys.exit(ran.stderr[-2000:])
    return set(re.findall(r"\w+", ran.stdout))


def programs():
    """file, host part, all else; one where no programs are kept"""
    kept = sorted(glob.glob(os.path.join(emitted.KEPT, "*.gm")))
    for path in kept:
        with open(path, "rb") as f:
            status, length = (int(n) for n in f.readline().split()[1:])
            f.read(length)
            text = f.read().decode()
        if status == 0:
            yield os.path.basename(path), text
    if len(kept) < FEWEST:
        for model in sorted(glob.glob(os.path.join(ROOT, "examples/*/*.gm"))) + [os.path.join(ROOT, "tests/bench/ar2.gm")]:
            yield model, emitted.program(model)[1].decode()


def main():
    folder = sys.argv[1] if len(sys.argv) > 1 else os.path.join(ROOT, "runtime/device")
    known, wrong, n = {}, {}, 0
    with tempfile.TemporaryDirectory() as stubs:
        for name in OUTSIDE:
            open(os.path.join(stubs, name), "w").close()
        for file, text in programs():
            n += 1
            settings = "\n".join(re.sub(r" *//.*", "", s) for s in SETTINGS.findall(text))
            if settings not in known:
                known[settings] = defined(settings, folder, stubs)
            code = NO_CODE.sub(" ", text)
            own = set(re.findall(r"\w+", HOST.sub(" ", code)))
            host = " ".join(HOST.findall(code))
            own |= set(re.findall(r"\w+", " ".join(ENUM.findall(host)))) | {"gm_" + stage for stage in MADE.findall(host)}
            for name in set(NAME.findall(host)) - own - known[settings]:
                wrong.setdefault(name, file)
    for name, file in sorted(wrong.items()):
        print("%s, which the host part of %s names, is not there where nvcc compiles it" % (name, file))
    print("%d programs, %d names that nvcc would not find" % (n, len(wrong)))
    return 1 if wrong or n < FEWEST else 0


if __name__ == "__main__":
    sys.exit(main())
