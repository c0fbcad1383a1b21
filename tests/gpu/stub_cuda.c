// stub_cuda.c -- a driver, an NVRTC, a cuBLAS and a cuSOLVER for tests on machines without a GPU: one shared library, which GMC_CUDA,
// GMC_NVRTC, GMC_CUBLAS and GMC_CUSOLVER name. Device memory is memory of the host; copies are made, and checked against the ends of what
// they touch. Kernels do nothing, but those that count sweeps and draws, trajectories of three evaluations, and row passes, which are
// recorded.
//
//   STUB_FAIL="cuMemAlloc=2@3,cuEventSynchronize=999@20"   the third call of cuMemAlloc gives 2, ...; after a result that a GPU does
//                                                          not survive (214, from 700 on) all later calls give it too
//   STUB_DRIVER=12000  STUB_DEVICES=1  STUB_CAPABILITY=90  STUB_MEMORY=1e9          what there is
//   STUB_ELEMENT=4     bytes of an element of a matrix
//   STUB_LAUNCH=0.001  seconds that a launch takes (0)
//   STUB_LOG=FILE      gets a line for each allocation ("alloc BYTES", "host BYTES") and at the end: the most bytes taken, bytes copied
//                      from the host while kernels ran, and of each row pass the rows that it saw: how many, a hash of their bits, in
//                      the order of the rows
//
// As a driver does it refuses memory of no bytes, launches of no blocks and work on no address.
// With -DSTUB_OLD it lacks what came last: cuGraphInstantiateWithFlags, nvrtcGetCUBIN, cublasSgemm_v2, cusolverDnSpotrf.
#include "../../runtime/backends/cuda.h"
#include "../../runtime/device/row_plan.h"
#include "../../runtime/host/model.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#ifdef STUB_NUTS
void stub_move(const char *states, const GmPlace *place, const GmHmc *of, int chain);
#endif

enum { MOST = 10000, INVALID_VALUE = 1 };

static struct { char *at; size_t bytes; int host; } block[MOST];
static int blocks, lost;
static size_t used, most_used, fed;
static struct { char name[200]; int chain; long rows, next; unsigned long long hash; } seen[100];
static int passes;
static FILE *record;

static double setting(const char *name, double otherwise)
{
    const char *text = getenv(name);
    return text && *text ? atof(text) : otherwise;
}

// The result that STUB_FAIL has for this call of `name`, or 0.
static int fails(const char *name)
{
    static struct { char name[60]; long calls; } count[100];
    static int names;
    int k = 0;
    while (k < names && strcmp(count[k].name, name) != 0) k++;
    if (k == names) snprintf(count[names++].name, sizeof count->name, "%s", name);
    count[k].calls++;
    if (lost) return lost;
    for (const char *at = getenv("STUB_FAIL"); at && *at; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL) {
        char wanted[60];
        int result;
        long call;
        if (sscanf(at, "%59[^=]=%d@%ld", wanted, &result, &call) == 3 && strcmp(wanted, name) == 0 && call == count[k].calls) {
            if (result == CUDA_ERROR_ECC_UNCORRECTABLE || result >= CUDA_ERROR_ILLEGAL_ADDRESS) lost = result;
            return result;
        }
    }
    return 0;
}

#define CALL(name) do { const int result = fails(#name); if (result) return result; } while (0)

static void finish(void)
{
    if (!record) return;
    fprintf(record, "most %zu\nfed %zu\n", most_used, fed);
    for (int k = 0; k < passes; k++) fprintf(record, "pass %s rows %ld hash %016llx\n", seen[k].name, seen[k].rows, seen[k].hash);
    fclose(record);
}

static void check(const void *at, size_t bytes, const char *what)
{
    for (int k = 0; k < blocks; k++)
        if ((const char *)at >= block[k].at && (const char *)at + bytes <= block[k].at + block[k].bytes) return;
    fprintf(stderr, "stub: %s of %zu bytes outside of what was allocated\n", what, bytes);
    abort();
}

static int add(void **to, size_t bytes, int host)
{
    const size_t all = (size_t)setting("STUB_MEMORY", 1e9);
    if (!host && used + bytes > all) return CUDA_ERROR_OUT_OF_MEMORY;
    if (blocks == MOST || posix_memalign(to, 4096, bytes + 1)) return CUDA_ERROR_OUT_OF_MEMORY;
    memset(*to, 0xa5, bytes);
    block[blocks].at = *to;
    block[blocks].bytes = bytes;
    block[blocks++].host = host;
    if (!host) used += bytes;
    if (used > most_used) most_used = used;
    if (record) fprintf(record, "%s %zu\n", host ? "host" : "alloc", bytes);
    return 0;
}

static int drop(void *at)
{
    for (int k = 0; k < blocks; k++)
        if (block[k].at == at) {
            if (!block[k].host) used -= block[k].bytes;
            free(at);
            block[k] = block[--blocks];
            return 0;
        }
    fprintf(stderr, "stub: memory is given back that was not taken\n");
    abort();
}

// ---- the driver ----

int cuInit(unsigned flags)
{
    (void)flags;
    CALL(cuInit);
    if (!record && getenv("STUB_LOG") && (record = fopen(getenv("STUB_LOG"), "w"))) atexit(finish);
    return setting("STUB_DEVICES", 1) > 0 ? 0 : CUDA_ERROR_NO_DEVICE;
}

int cuDriverGetVersion(int *version)
{
    *version = (int)setting("STUB_DRIVER", 12040);
    return 0;
}

int cuGetErrorName(int result, const char **name)
{
    static char text[40];
    snprintf(text, sizeof text, "CUDA_ERROR_%d", result);
    *name = text;
    return 0;
}

int cuGetErrorString(int result, const char **words)
{
    *words = result == CUDA_ERROR_OUT_OF_MEMORY ? "out of memory" : "an error of the stub";
    return 0;
}

int cuDeviceGetCount(int *n)
{
    *n = (int)setting("STUB_DEVICES", 1);
    return 0;
}

int cuDeviceGet(CUdevice *d, int n)
{
    CALL(cuDeviceGet);
    *d = n;
    return 0;
}

int cuDeviceGetName(char *to, int room, CUdevice d)
{
    snprintf(to, (size_t)room, "Stub %d", d);
    return 0;
}

int cuDeviceGetAttribute(int *to, int attribute, CUdevice d)
{
    (void)d;
    const int capability = (int)setting("STUB_CAPABILITY", 90);
    *to = attribute == CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT                ? 132
          : attribute == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR          ? capability / 10
          : attribute == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR          ? capability % 10
          : attribute == CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN ? 232448
                                                                               : 1;
    return 0;
}

int cuDevicePrimaryCtxRetain(CUcontext *c, CUdevice d)
{
    (void)d;
    CALL(cuDevicePrimaryCtxRetain);
    *c = (CUcontext)block;
    return 0;
}

int cuModuleLoadDataEx(CUmodule *m, const void *image, unsigned n, int *names, void **values)
{
    (void)n, (void)names, (void)values;
    CALL(cuModuleLoadDataEx);
    if (strncmp(image, "stub", 4) != 0) return 200;      // what the NVRTC below makes
    *m = (CUmodule)block;
    return 0;
}

int cuModuleGetFunction(CUfunction *f, CUmodule m, const char *name)
{
    (void)m;
    CALL(cuModuleGetFunction);
    *f = (CUfunction)strdup(name);
    return 0;
}

int cuMemGetInfo_v2(size_t *there, size_t *all)
{
    *all = (size_t)setting("STUB_MEMORY", 1e9);
    *there = *all - used;
    return 0;
}

int cuMemAlloc_v2(CUdeviceptr *to, size_t bytes)
{
    CALL(cuMemAlloc);
    if (bytes == 0) return INVALID_VALUE;
    return add((void **)(uintptr_t)to, bytes, 0);
}

int cuMemFree_v2(CUdeviceptr at) { return drop((void *)(uintptr_t)at); }

int cuMemAllocHost_v2(void **to, size_t bytes)
{
    CALL(cuMemAllocHost);
    if (bytes == 0) return INVALID_VALUE;
    return add(to, bytes, 1);
}

int cuMemFreeHost(void *at) { return drop(at); }

static int copy(void *to, const void *from, size_t bytes, const void *on_device)
{
    check(on_device, bytes, "a copy");
    memmove(to, from, bytes);
    return 0;
}

int cuMemcpyHtoD_v2(CUdeviceptr to, const void *from, size_t bytes)
{
    return copy((void *)(uintptr_t)to, from, bytes, (void *)(uintptr_t)to);
}

int cuMemcpyDtoH_v2(void *to, CUdeviceptr from, size_t bytes) { return copy(to, (void *)(uintptr_t)from, bytes, (void *)(uintptr_t)from); }

int cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void *from, size_t bytes, CUstream s)
{
    (void)s;
    CALL(cuMemcpyHtoDAsync);
    for (int k = 0; k < blocks; k++)                     // from memory of ours: a piece of data
        if (block[k].host && (const char *)from >= block[k].at && (const char *)from < block[k].at + block[k].bytes) fed += bytes;
    return copy((void *)(uintptr_t)to, from, bytes, (void *)(uintptr_t)to);
}

int cuMemcpyDtoHAsync_v2(void *to, CUdeviceptr from, size_t bytes, CUstream s)
{
    (void)s;
    CALL(cuMemcpyDtoHAsync);
    return copy(to, (void *)(uintptr_t)from, bytes, (void *)(uintptr_t)from);
}

int cuMemsetD8Async(CUdeviceptr to, unsigned char value, size_t bytes, CUstream s)
{
    (void)s;
    CALL(cuMemsetD8Async);
    if (to == 0) return INVALID_VALUE;
    check((void *)(uintptr_t)to, bytes, "a memset");
    memset((void *)(uintptr_t)to, value, bytes);
    return 0;
}

// No graphs: sweeps stay plain.
int cuStreamBeginCapture_v2(CUstream s, int mode)
{
    (void)s, (void)mode;
    return 801;
}

#define HANDLE(name, type) int name(type *to, unsigned flags) { (void)flags; CALL(name); *to = (type)block; return 0; }
HANDLE(cuStreamCreate, CUstream)
HANDLE(cuEventCreate, CUevent)

#define QUIET(name, as, ...) int name(__VA_ARGS__) { CALL(as); return 0; }
QUIET(cuDevicePrimaryCtxRelease_v2, cuDevicePrimaryCtxRelease, CUdevice d __attribute__((unused)))
QUIET(cuCtxSetCurrent, cuCtxSetCurrent, CUcontext c __attribute__((unused)))
QUIET(cuCtxSetLimit, cuCtxSetLimit, int a __attribute__((unused)), size_t b __attribute__((unused)))
QUIET(cuModuleUnload, cuModuleUnload, CUmodule m __attribute__((unused)))
QUIET(cuFuncSetAttribute, cuFuncSetAttribute, CUfunction f __attribute__((unused)), int a __attribute__((unused)),
      int b __attribute__((unused)))
QUIET(cuStreamDestroy_v2, cuStreamDestroy, CUstream s __attribute__((unused)))
QUIET(cuStreamSynchronize, cuStreamSynchronize, CUstream s __attribute__((unused)))
QUIET(cuStreamWaitEvent, cuStreamWaitEvent, CUstream s __attribute__((unused)), CUevent e __attribute__((unused)),
      unsigned flags __attribute__((unused)))
QUIET(cuStreamEndCapture, cuStreamEndCapture, CUstream s __attribute__((unused)), CUgraph *g __attribute__((unused)))
#ifndef STUB_OLD
QUIET(cuGraphInstantiateWithFlags, cuGraphInstantiate, CUgraphExec *e __attribute__((unused)), CUgraph g __attribute__((unused)),
      unsigned long long f __attribute__((unused)))
#endif
QUIET(cuGraphLaunch, cuGraphLaunch, CUgraphExec e __attribute__((unused)), CUstream s __attribute__((unused)))
QUIET(cuGraphExecDestroy, cuGraphExecDestroy, CUgraphExec e __attribute__((unused)))
QUIET(cuGraphDestroy, cuGraphDestroy, CUgraph g __attribute__((unused)))
QUIET(cuEventDestroy_v2, cuEventDestroy, CUevent e __attribute__((unused)))
QUIET(cuEventRecord, cuEventRecord, CUevent e __attribute__((unused)), CUstream s __attribute__((unused)))
QUIET(cuEventSynchronize, cuEventSynchronize, CUevent e __attribute__((unused)))

int cuEventElapsedTime(float *ms, CUevent a, CUevent b)
{
    (void)a, (void)b;
    *ms = 0;
    return 0;
}

int cuOccupancyMaxActiveBlocksPerMultiprocessor(int *n, CUfunction f, int threads, size_t shared)
{
    (void)f, (void)threads, (void)shared;
    *n = 2;
    return 0;
}

// name_rows_SHAPE_CHAINS
static int is_pass(const char *name)
{
    const char *at = strrchr(name, '_');
    if (at && at > name)
        for (at--; at > name && *at != '_'; at--) { }
    return at && at - name >= 5 && strncmp(at - 5, "_rows", 5) == 0 && strncmp(name, "gm_", 3) != 0 &&
           (at[1] == 'n' || at[1] == 'w' || at[1] == 'a');
}

// A row pass: its rows are hashed, in order.
static void pass_over(const char *name, const RowPass *pass, unsigned blocks_x)
{
    int k = 0;
    while (k < passes && (strcmp(seen[k].name, name) != 0 || seen[k].chain != pass->chain)) k++;
    if (k == passes) {
        snprintf(seen[passes].name, sizeof seen->name, "%s", name);
        seen[passes++].chain = pass->chain;
    }
    const long first = pass->first_chunk * pass->rows, end = first + (long)blocks_x * pass->rows, last = end < pass->n ? end : pass->n;
    const size_t row = (size_t)pass->p * (size_t)setting("STUB_ELEMENT", 4);
    if (first != (first == 0 ? 0 : seen[k].next)) {
        fprintf(stderr, "stub: %s begins at row %ld after row %ld\n", name, first, seen[k].next);
        abort();
    }
    check((const char *)pass->X + (size_t)first * row, (size_t)(last - first) * row, "a row pass");
    // A number at a time, of 4 bytes or more: bytes one by one would be most of what a run takes.
    const unsigned *x = (const unsigned *)((const char *)pass->X + (size_t)first * row);
    for (size_t i = 0; i < (size_t)(last - first) * row / sizeof *x; i++) seen[k].hash = (seen[k].hash ^ x[i]) * 0x100000001b3u;
    seen[k].rows += last - first;
    seen[k].next = last;
}

int cuLaunchKernel(CUfunction f, unsigned x, unsigned y, unsigned z, unsigned a, unsigned b, unsigned c, unsigned shared, CUstream s,
                   void **parameters, void **extra)
{
    (void)shared, (void)s, (void)extra;
    CALL(cuLaunchKernel);
    const double takes = setting("STUB_LAUNCH", 0);
    if (takes > 0) usleep((useconds_t)(1e6 * takes));
    if (!x || !y || !z || !a || !b || !c) return INVALID_VALUE;
    const char *name = (const char *)f;
    if (strcmp(name, "gm_next_sweep") == 0) (*(GmPlace **)parameters[0])->sweep++;
    else if (strcmp(name, "gm_gathered") == 0) ++**(uint64_t **)parameters[1];
#ifdef STUB_NUTS
    else if (strcmp(name, "gm_hmc") == 0) {             // made as a whole when it begins
        const GmPlace *place = *(GmPlace **)parameters[1];
        for (int chain = *(int *)parameters[4]; *(int *)parameters[3] && chain < *(int *)parameters[4] + (int)y; chain++)
            stub_move(*(const char **)parameters[0], place, parameters[2], chain);
        if (*(uint32_t **)parameters[7]) **(uint32_t **)parameters[7] = 0;
    }
#endif
    else if (strcmp(name, "gm_hmc") == 0) {             // a trajectory has three evaluations
        static int rounds;
        rounds = *(int *)parameters[3] ? 0 : rounds + 1;
        if (*(uint32_t **)parameters[7]) **(uint32_t **)parameters[7] = rounds < 3;
    } else if (is_pass(name)) pass_over(name, parameters[3], x);
    return 0;
}

int cuLaunchCooperativeKernel(CUfunction f, unsigned x, unsigned y, unsigned z, unsigned a, unsigned b, unsigned c, unsigned shared,
                              CUstream s, void **parameters)
{
    return cuLaunchKernel(f, x, y, z, a, b, c, shared, s, parameters, NULL);
}

// ---- NVRTC: device code is the word "stub" ----

typedef void *Program;

int nvrtcVersion(int *major, int *minor)
{
    *major = 13;
    *minor = 9;                                          // a version of its own in the cache
    return 0;
}

static const int archs[] = { 75, 80, 90 };

int nvrtcGetNumSupportedArchs(int *n) { return *n = 3, 0; }
int nvrtcGetSupportedArchs(int *list) { return memcpy(list, archs, sizeof archs), 0; }

int nvrtcCreateProgram(Program *p, const char *text, const char *name, int n, const char *const *a, const char *const *b)
{
    (void)text, (void)name, (void)n, (void)a, (void)b;
    *p = (Program)block;
    if (record) fprintf(record, "compile\n");
    return 0;
}

int nvrtcDestroyProgram(Program *p) { return *p = NULL, 0; }

int nvrtcCompileProgram(Program p, int n, const char *const *options)
{
    (void)p, (void)n, (void)options;
    return lost ? 0 : fails("nvrtcCompileProgram");
}

int nvrtcGetPTXSize(Program p, size_t *n) { return (void)p, *n = 5, 0; }
int nvrtcGetPTX(Program p, char *to) { return (void)p, memcpy(to, "stub", 5), 0; }
int nvrtcGetCUBINSize(Program p, size_t *n) { return (void)p, *n = 5, 0; }
#ifndef STUB_OLD
int nvrtcGetCUBIN(Program p, char *to) { return (void)p, memcpy(to, "stub", 5), 0; }
#endif
int nvrtcGetProgramLogSize(Program p, size_t *n) { return (void)p, *n = 1, 0; }
int nvrtcGetProgramLog(Program p, char *to) { return (void)p, *to = 0, 0; }
const char *nvrtcGetErrorString(int e) { return (void)e, "an error of the stub"; }

// ---- cuBLAS and cuSOLVER: whatever the arguments ----

#define ANYTHING(name) int name() { CALL(name); return 0; }
ANYTHING(cublasDestroy_v2) ANYTHING(cublasSetStream_v2) ANYTHING(cublasSetWorkspace_v2) ANYTHING(cublasDsyrk_v2) ANYTHING(cublasDgemm_v2)
ANYTHING(cublasDtrsv_v2) ANYTHING(cublasStrsv_v2) ANYTHING(cusolverDnDestroy) ANYTHING(cusolverDnSetStream) ANYTHING(cusolverDnDpotrf)
ANYTHING(cusolverDnDpotrf_bufferSize) ANYTHING(cusolverDnSpotrf_bufferSize)
#ifndef STUB_OLD
ANYTHING(cublasSgemm_v2) ANYTHING(cusolverDnSpotrf)
#endif

int cublasCreate_v2(void **to)
{
    CALL(cublasCreate);
    return *to = block, 0;
}

int cusolverDnCreate(void **to)
{
    CALL(cusolverDnCreate);
    return *to = block, 0;
}
