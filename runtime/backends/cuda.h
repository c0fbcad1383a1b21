// cuda.h -- the CUDA driver, cuBLAS and cuSOLVER, found while the program runs. Prototypes are written out here, so that no header of
// CUDA is needed; names are the libraries' own. Every function returns 0 for success.
#ifndef GM_CUDA_H
#define GM_CUDA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef unsigned long long CUdeviceptr;
typedef int CUdevice;
typedef struct CUctx_st *CUcontext;
typedef struct CUmod_st *CUmodule;
typedef struct CUfunc_st *CUfunction;
typedef struct CUstream_st *CUstream;
typedef struct CUevent_st *CUevent;
typedef struct CUgraph_st *CUgraph;
typedef struct CUgraphExec_st *CUgraphExec;
typedef struct CUgraphNode_st *CUgraphNode;
typedef unsigned long long CUgraphConditionalHandle;

typedef struct CUgraphNodeParams {  // of a conditional node
    int type, reserved0[3];
    union {
        long long reserved1[29];
        struct {
            CUgraphConditionalHandle handle;
            int type;
            unsigned size;
            CUgraph *phGraph_out;
            CUcontext ctx;
        } conditional;
    };
    long long reserved2;
} CUgraphNodeParams;

enum {  // results and constants of cuda.h that are used
    CUDA_ERROR_OUT_OF_MEMORY = 2,
    CUDA_ERROR_DEVICE_UNAVAILABLE = 46,
    CUDA_ERROR_NO_DEVICE = 100,
    CUDA_ERROR_ECC_UNCORRECTABLE = 214,
    CUDA_ERROR_NOT_FOUND = 500,
    CUDA_ERROR_ILLEGAL_ADDRESS = 700,
    CUDA_ERROR_LAUNCH_TIMEOUT = 702,
    CUDA_ERROR_ASSERT = 710,
    CUDA_ERROR_HARDWARE_STACK_ERROR = 714,
    CUDA_ERROR_INVALID_PC = 718,
    CUDA_ERROR_SYSTEM_NOT_READY = 802,
    CUDA_ERROR_SYSTEM_DRIVER_MISMATCH = 803,
    CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE = 804,
    CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT = 16,
    CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR = 75,
    CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR = 76,
    CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH = 95,
    CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN = 97,
    CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES = 8,
    CU_STREAM_NON_BLOCKING = 1,
    CU_EVENT_DEFAULT = 0,
    CU_EVENT_DISABLE_TIMING = 2,
    CU_STREAM_CAPTURE_MODE_THREAD_LOCAL = 1,
    CU_LIMIT_MALLOC_HEAP_SIZE = 2,
    CU_STREAM_SET_CAPTURE_DEPENDENCIES = 1,
    CU_GRAPH_NODE_TYPE_CONDITIONAL = 13,
    CU_GRAPH_COND_TYPE_WHILE = 1,
    CU_GRAPH_COND_ASSIGN_DEFAULT = 1,
    CU_JIT_ERROR_LOG_BUFFER = 5,
    CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES = 6,
};

#define GM_CUDA_FUNCTIONS(F)                                                                                          \
    F(cuInit, cuInit, (unsigned))                                                                                     \
    F(cuDriverGetVersion, cuDriverGetVersion, (int *))                                                                \
    F(cuGetErrorName, cuGetErrorName, (int, const char **))                                                           \
    F(cuGetErrorString, cuGetErrorString, (int, const char **))                                                       \
    F(cuDeviceGetCount, cuDeviceGetCount, (int *))                                                                    \
    F(cuDeviceGet, cuDeviceGet, (CUdevice *, int))                                                                    \
    F(cuDeviceGetName, cuDeviceGetName, (char *, int, CUdevice))                                                      \
    F(cuDeviceGetAttribute, cuDeviceGetAttribute, (int *, int, CUdevice))                                             \
    F(cuDevicePrimaryCtxRetain, cuDevicePrimaryCtxRetain, (CUcontext *, CUdevice))                                    \
    F(cuDevicePrimaryCtxRelease, cuDevicePrimaryCtxRelease_v2, (CUdevice))                                            \
    F(cuCtxSetCurrent, cuCtxSetCurrent, (CUcontext))                                                                  \
    F(cuCtxSetLimit, cuCtxSetLimit, (int, size_t))                                                                    \
    F(cuModuleLoadDataEx, cuModuleLoadDataEx, (CUmodule *, const void *, unsigned, int *, void **))                   \
    F(cuModuleUnload, cuModuleUnload, (CUmodule))                                                                     \
    F(cuModuleGetFunction, cuModuleGetFunction, (CUfunction *, CUmodule, const char *))                               \
    F(cuFuncSetAttribute, cuFuncSetAttribute, (CUfunction, int, int))                                                 \
    F(cuMemGetInfo, cuMemGetInfo_v2, (size_t *, size_t *))                                                            \
    F(cuMemAlloc, cuMemAlloc_v2, (CUdeviceptr *, size_t))                                                             \
    F(cuMemFree, cuMemFree_v2, (CUdeviceptr))                                                                         \
    F(cuMemAllocHost, cuMemAllocHost_v2, (void **, size_t))                                                           \
    F(cuMemFreeHost, cuMemFreeHost, (void *))                                                                         \
    F(cuMemcpyHtoD, cuMemcpyHtoD_v2, (CUdeviceptr, const void *, size_t))                                             \
    F(cuMemcpyDtoH, cuMemcpyDtoH_v2, (void *, CUdeviceptr, size_t))                                                   \
    F(cuMemcpyHtoDAsync, cuMemcpyHtoDAsync_v2, (CUdeviceptr, const void *, size_t, CUstream))                         \
    F(cuMemcpyDtoHAsync, cuMemcpyDtoHAsync_v2, (void *, CUdeviceptr, size_t, CUstream))                               \
    F(cuMemsetD8Async, cuMemsetD8Async, (CUdeviceptr, unsigned char, size_t, CUstream))                               \
    F(cuStreamCreate, cuStreamCreate, (CUstream *, unsigned))                                                         \
    F(cuStreamDestroy, cuStreamDestroy_v2, (CUstream))                                                                \
    F(cuStreamSynchronize, cuStreamSynchronize, (CUstream))                                                           \
    F(cuStreamWaitEvent, cuStreamWaitEvent, (CUstream, CUevent, unsigned))                                            \
    F(cuStreamBeginCapture, cuStreamBeginCapture_v2, (CUstream, int))                                                 \
    F(cuStreamEndCapture, cuStreamEndCapture, (CUstream, CUgraph *))                                                  \
    F(cuGraphInstantiate, cuGraphInstantiateWithFlags, (CUgraphExec *, CUgraph, unsigned long long))                  \
    F(cuGraphLaunch, cuGraphLaunch, (CUgraphExec, CUstream))                                                          \
    F(cuGraphExecDestroy, cuGraphExecDestroy, (CUgraphExec))                                                          \
    F(cuGraphDestroy, cuGraphDestroy, (CUgraph))                                                                      \
    F(cuEventCreate, cuEventCreate, (CUevent *, unsigned))                                                            \
    F(cuEventDestroy, cuEventDestroy_v2, (CUevent))                                                                   \
    F(cuEventRecord, cuEventRecord, (CUevent, CUstream))                                                              \
    F(cuEventSynchronize, cuEventSynchronize, (CUevent))                                                              \
    F(cuEventElapsedTime, cuEventElapsedTime, (float *, CUevent, CUevent))                                            \
    F(cuLaunchKernel, cuLaunchKernel,                                                                                 \
      (CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, CUstream, void **, void **)) \
    F(cuLaunchCooperativeKernel, cuLaunchCooperativeKernel,                                                           \
      (CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, CUstream, void **))          \
    F(cuOccupancyMaxActiveBlocksPerMultiprocessor, cuOccupancyMaxActiveBlocksPerMultiprocessor, (int *, CUfunction, int, size_t))

// Loops within graphs: drivers of CUDA 12.4 and later have them.
#define GM_LOOP_FUNCTIONS(F)                                                                                                         \
    F(cuStreamGetCaptureInfo, cuStreamGetCaptureInfo_v2,                                                                             \
      (CUstream, int *, unsigned long long *, CUgraph *, const CUgraphNode **, size_t *))                                            \
    F(cuStreamUpdateCaptureDependencies, cuStreamUpdateCaptureDependencies, (CUstream, CUgraphNode *, size_t, unsigned))             \
    F(cuStreamBeginCaptureToGraph, cuStreamBeginCaptureToGraph, (CUstream, CUgraph, const CUgraphNode *, const void *, size_t, int)) \
    F(cuGraphConditionalHandleCreate, cuGraphConditionalHandleCreate,                                                                \
      (CUgraphConditionalHandle *, CUgraph, CUcontext, unsigned, unsigned))                                                          \
    F(cuGraphAddNode, cuGraphAddNode, (CUgraphNode *, CUgraph, const CUgraphNode *, size_t, CUgraphNodeParams *))

// Matrices are column-major in both libraries. Enumerations: fill 0 lower, 1 upper; operation 0 none, 1 transposed; diagonal 0 as stored.
typedef struct cublasContext *Cublas;
typedef struct cusolverDnContext *Cusolver;
enum { CUBLAS_LOWER = 0, CUBLAS_UPPER = 1, CUBLAS_AS_IS = 0, CUBLAS_TRANSPOSED = 1, CUBLAS_NON_UNIT = 0 };

#define GM_CUBLAS_FUNCTIONS(F)                                                                                                       \
    F(cublasCreate, cublasCreate_v2, (Cublas *))                                                                                     \
    F(cublasDestroy, cublasDestroy_v2, (Cublas))                                                                                     \
    F(cublasSetStream, cublasSetStream_v2, (Cublas, CUstream))                                                                       \
    F(cublasSetWorkspace, cublasSetWorkspace_v2, (Cublas, void *, size_t))                                                           \
    F(cublasDsyrk, cublasDsyrk_v2, (Cublas, int, int, int, int, const double *, const double *, int, const double *, double *, int)) \
    F(cublasDgemm, cublasDgemm_v2,                                                                                                   \
      (Cublas, int, int, int, int, int, const double *, const double *, int, const double *, int, const double *, double *, int))    \
    F(cublasSgemm, cublasSgemm_v2,                                                                                                   \
      (Cublas, int, int, int, int, int, const float *, const float *, int, const float *, int, const float *, float *, int))         \
    F(cublasDtrsv, cublasDtrsv_v2, (Cublas, int, int, int, int, const double *, int, double *, int))                                 \
    F(cublasStrsv, cublasStrsv_v2, (Cublas, int, int, int, int, const float *, int, float *, int))

#define GM_CUSOLVER_FUNCTIONS(F)                                                                            \
    F(cusolverDnCreate, cusolverDnCreate, (Cusolver *))                                                     \
    F(cusolverDnDestroy, cusolverDnDestroy, (Cusolver))                                                     \
    F(cusolverDnSetStream, cusolverDnSetStream, (Cusolver, CUstream))                                       \
    F(cusolverDnDpotrf_bufferSize, cusolverDnDpotrf_bufferSize, (Cusolver, int, int, double *, int, int *)) \
    F(cusolverDnDpotrf, cusolverDnDpotrf, (Cusolver, int, int, double *, int, double *, int, int *))        \
    F(cusolverDnSpotrf_bufferSize, cusolverDnSpotrf_bufferSize, (Cusolver, int, int, float *, int, int *))  \
    F(cusolverDnSpotrf, cusolverDnSpotrf, (Cusolver, int, int, float *, int, float *, int, int *))

typedef struct GmCuda {  // the function tables; a table is all there or not there
#define GM_MEMBER(name, symbol, parameters) int(*name) parameters;
    GM_CUDA_FUNCTIONS(GM_MEMBER)
    GM_LOOP_FUNCTIONS(GM_MEMBER)
    GM_CUBLAS_FUNCTIONS(GM_MEMBER)
    GM_CUSOLVER_FUNCTIONS(GM_MEMBER)
#undef GM_MEMBER
    int driver;  // version, 1000 * major + 10 * minor
    int devices;
} GmCuda;

extern GmCuda gm_cuda;

// The driver, libcuda.so.1 or the file that GMC_CUDA names: loaded and started once. false: *why says in one line what is missing (no
// driver, one that is too old, no GPU).
bool gm_cuda_driver(const char **why);

// Does the driver know loops within graphs (GM_LOOP_FUNCTIONS)?
bool gm_cuda_loops(void);

// Is there no sign of a GPU at all: no driver, or one that sees none? Not so if it is there and does not work.
bool gm_cuda_absent(void);

// cuBLAS: loaded once, when first asked for. Needs a current context. false: *why, as above.
bool gm_cuda_libraries(const char **why);

// cuSOLVER, and cuBLAS with it: likewise. It makes large factorisations faster, nothing depends on it.
bool gm_cuda_solver(const char **why);

// "out of memory (CUDA_ERROR_OUT_OF_MEMORY)"; of a result of the driver. The text lives until the next call.
const char *gm_cuda_error(int result);

// What helps against a result of the driver, or what it means for the user; a clause without a full stop.
const char *gm_cuda_remedy(int result);

// Compute capability of a device as 10 * major + minor, 0 if there is none.
int gm_cuda_capability(int device);

#endif
