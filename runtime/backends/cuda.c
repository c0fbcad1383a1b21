// cuda.c -- NVIDIA's driver and libraries by dlopen.
#include "cuda.h"
#include "library.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

GmCuda gm_cuda;

enum {
    OLDEST_DRIVER = 11040,  // cuGraphInstantiateWithFlags; graphs that hold cooperative launches
    LOOPS = 12040
};  // loops within graphs

typedef struct Symbol {
    const char *name;
    void *to;
} Symbol;

static const char *fill(void *library, const Symbol *symbols, size_t n)  // NULL, or the name of the first that is lacking
{
    for (size_t k = 0; k < n; k++)
        if (!gm_library_symbol(library, symbols[k].name, symbols[k].to)) return symbols[k].name;
    return NULL;
}

#define GM_SYMBOL(name, symbol, parameters) {#symbol, &gm_cuda.name},

static bool driver_absent, driver_loops;
static char driver_missing[600], libraries_missing[700], solver_missing[700];

static bool load_driver(void)
{
    static const Symbol symbols[] = {GM_CUDA_FUNCTIONS(GM_SYMBOL)};
    const char *named = getenv("GMC_CUDA");
    void *library = dlopen(named && *named ? named : "libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        driver_absent = !(named && *named);
        if (named && *named)
            snprintf(driver_missing, sizeof driver_missing, "the NVIDIA driver cannot be loaded (GMC_CUDA): %.400s", dlerror());
        else
            snprintf(driver_missing, sizeof driver_missing,
                     "the NVIDIA driver is not installed: there is no libcuda.so.1 on the library path (GMC_CUDA can name it)");
        return false;
    }
    int (*version)(int *) = NULL;
    if (gm_library_symbol(library, "cuDriverGetVersion", &version)) version(&gm_cuda.driver);
    if (gm_cuda.driver < OLDEST_DRIVER) {
        snprintf(driver_missing, sizeof driver_missing,
                 "the NVIDIA driver is too old: it offers CUDA %d.%d, and 11.4 or later is needed (install a newer one)",
                 gm_cuda.driver / 1000, gm_cuda.driver % 1000 / 10);
        return false;
    }
    const char *lacking = fill(library, symbols, sizeof symbols / sizeof *symbols);
    if (lacking) {
        snprintf(driver_missing, sizeof driver_missing, "the NVIDIA driver (CUDA %d.%d) is too old: it lacks %s (install a newer one)",
                 gm_cuda.driver / 1000, gm_cuda.driver % 1000 / 10, lacking);
        return false;
    }
    static const Symbol loops[] = {GM_LOOP_FUNCTIONS(GM_SYMBOL)};
    driver_loops = gm_cuda.driver >= LOOPS && !fill(library, loops, sizeof loops / sizeof *loops);
    const int started = gm_cuda.cuInit(0);
    if (started != 0 && started != CUDA_ERROR_NO_DEVICE) {
        snprintf(driver_missing, sizeof driver_missing, "the NVIDIA driver does not start: %s; %s", gm_cuda_error(started),
                 gm_cuda_remedy(started));
        return false;
    }
    if (started != 0 || gm_cuda.cuDeviceGetCount(&gm_cuda.devices) != 0 || gm_cuda.devices == 0) {
        const char *visible = getenv("CUDA_VISIBLE_DEVICES");
        driver_absent = true;
        if (visible)
            snprintf(driver_missing, sizeof driver_missing,
                     "there is no NVIDIA GPU here that the driver can see: CUDA_VISIBLE_DEVICES is `%.100s`", visible);
        else snprintf(driver_missing, sizeof driver_missing, "there is no NVIDIA GPU here that the driver can see");
        return false;
    }
    return true;
}

bool gm_cuda_absent(void) { return !gm_cuda_driver(NULL) && driver_absent; }

bool gm_cuda_loops(void) { return gm_cuda_driver(NULL) && driver_loops; }

bool gm_cuda_driver(const char **why)
{
    static int loaded = -1;
    if (loaded < 0) loaded = load_driver();
    if (!loaded && why) *why = driver_missing;
    return loaded;
}

static bool load_libraries(void)
{
    static const Symbol symbols[] = {GM_CUBLAS_FUNCTIONS(GM_SYMBOL)};
    static const char *const names[] = {"libcublas.so.13", "libcublas.so.12", "libcublas.so.11", "libcublas.so", NULL};
    static const char *const helpers[] = {"libcublasLt.so.1*", NULL};
    char why[400];
    void *blas = gm_library_open(names, helpers, "GMC_CUBLAS", "cublas", why, sizeof why);
    if (!blas) {
        snprintf(libraries_missing, sizeof libraries_missing,
                 "products of the data with themselves need cuBLAS on a GPU, which is not installed: %s (install the CUDA Toolkit, or: pip "
                 "install nvidia-cublas)",
                 why);
        return false;
    }
    const char *lacking = fill(blas, symbols, sizeof symbols / sizeof *symbols);
    if (lacking) snprintf(libraries_missing, sizeof libraries_missing, "the cuBLAS found here is too old: it lacks %s", lacking);
    return !lacking;
}

bool gm_cuda_libraries(const char **why)
{
    static int loaded = -1;
    if (loaded < 0) loaded = load_libraries();
    if (!loaded && why) *why = libraries_missing;
    return loaded;
}

static bool load_solver(void)
{
    static const Symbol symbols[] = {GM_CUSOLVER_FUNCTIONS(GM_SYMBOL)};
    static const char *const names[] = {"libcusolver.so.12", "libcusolver.so.11", "libcusolver.so", NULL};
    static const char *const helpers[] = {"libnvJitLink.so.1*",
                                          "../../nvjitlink/lib/libnvJitLink.so.1*",
                                          "libcublasLt.so.1*",
                                          "../../cublas/lib/libcublasLt.so.1*",
                                          "libcublas.so.1*",
                                          "../../cublas/lib/libcublas.so.1*",
                                          "libcusparse.so.1*",
                                          "../../cusparse/lib/libcusparse.so.1*",
                                          NULL};
    char why[400];
    void *solver = gm_library_open(names, helpers, "GMC_CUSOLVER", "cusolver", why, sizeof why);
    const char *lacking = solver ? fill(solver, symbols, sizeof symbols / sizeof *symbols) : NULL;
    if (!solver)
        snprintf(solver_missing, sizeof solver_missing,
                 "cuSOLVER is not installed: %s (install the CUDA Toolkit, or: pip install nvidia-cusolver)", why);
    if (lacking) snprintf(solver_missing, sizeof solver_missing, "the cuSOLVER found here is too old: it lacks %s", lacking);
    return solver && !lacking;
}

bool gm_cuda_solver(const char **why)
{
    static int loaded = -1;
    if (!gm_cuda_libraries(why)) return false;
    if (loaded < 0) loaded = load_solver();
    if (!loaded && why) *why = solver_missing;
    return loaded;
}

const char *gm_cuda_error(int result)
{
    static char text[300];
    const char *name = NULL, *words = NULL;
    if (gm_cuda.cuGetErrorName) gm_cuda.cuGetErrorName(result, &name);
    if (gm_cuda.cuGetErrorString) gm_cuda.cuGetErrorString(result, &words);
    if (name && words) snprintf(text, sizeof text, "%s (%s)", words, name);
    else snprintf(text, sizeof text, "error %d", result);
    return text;
}

const char *gm_cuda_remedy(int result)
{
    switch (result) {
    case CUDA_ERROR_OUT_OF_MEMORY: return "fewer --chains or --device cpu help";
    case CUDA_ERROR_DEVICE_UNAVAILABLE:
        return "another program holds the GPU for itself, or it is in a mode that shuts programs out (nvidia-smi shows it)";
    case CUDA_ERROR_SYSTEM_NOT_READY: return "a service of the driver is not running (nvidia-fabricmanager, on servers with NVSwitch)";
    case CUDA_ERROR_SYSTEM_DRIVER_MISMATCH: return "the driver was updated and the machine not restarted since";
    case CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE:
        return "libcuda.so.1 is of a compatibility package that this GPU does not take: take it off the library path";
    case CUDA_ERROR_LAUNCH_TIMEOUT: return "this GPU also drives a display, which ends long kernels: --device gpu:N names another";
    case CUDA_ERROR_ECC_UNCORRECTABLE: return "its memory is damaged: it needs a reset, or to be replaced";
    }
    if (result >= CUDA_ERROR_HARDWARE_STACK_ERROR && result <= CUDA_ERROR_INVALID_PC) result = CUDA_ERROR_ILLEGAL_ADDRESS;
    if (result == CUDA_ERROR_ILLEGAL_ADDRESS || result == CUDA_ERROR_ASSERT)
        return "this is a bug of gmc: please report it with the model (--device cpu does without the GPU)";
    return "the GPU or its driver failed: nvidia-smi and the system's log (NVRM, Xid) may say why; --device cpu does without";
}

int gm_cuda_capability(int device)
{
    CUdevice d;
    int major = 0, minor = 0;
    if (!gm_cuda_driver(NULL) || gm_cuda.cuDeviceGet(&d, device) != 0) return 0;
    if (gm_cuda.cuDeviceGetAttribute(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, d) != 0) return 0;
    gm_cuda.cuDeviceGetAttribute(&minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, d);
    return 10 * major + minor;
}
