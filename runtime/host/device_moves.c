// device_moves.c -- HMC updates on a GPU: rounds of launches, for all chains together, until none needs another evaluation.
//
//   gm_hmc (begins)   ->  density(run)  ->  gm_hmc  ->  density(run)  ->  gm_hmc  -> ...         (runtime_cuda.h)
//
// In a sweep that is captured a round is the body of a loop within the graph, so that the host has nothing to do with how long trajectories
// are; a kernel decides after each round whether there is another. Where the driver knows no such loops (before CUDA 12.4), and in sweeps
// that are launched plainly, the host looks after each round.
#include "device_inside.h"
#include "../device/nuts.h"

#include <string.h>

enum {
    AT_ASKS = GM_SCRATCHES - 1,
    ASK = 2,
    ASKS_BYTES = 16,  // scratch; the place of `ask` in struct GmAsks of runtime_cuda.h
    MOST_BLOCKS = 16
};  // as nuts.h has it

// cudaGraphSetConditional(handle, *ask): a function that only kernels have. As text, since drivers without it could not load a program that
// names it.
static const char condition[] = ".version 7.0\n.target sm_70\n.address_size 64\n"
                                ".extern .func cudaGraphSetConditional(.param .b64 handle, .param .b32 value);\n"
                                ".visible .entry gm_condition(.param .u64 handle, .param .u64 ask)\n"
                                "{\n"
                                "    .reg .b32 %r<2>;\n"
                                "    .reg .b64 %rd<4>;\n"
                                "    ld.param.u64 %rd1, [handle];\n"
                                "    ld.param.u64 %rd2, [ask];\n"
                                "    cvta.to.global.u64 %rd3, %rd2;\n"
                                "    ld.global.u32 %r1, [%rd3];\n"
                                "    {\n"
                                "        .param .b64 handle_given;\n"
                                "        st.param.b64 [handle_given], %rd1;\n"
                                "        .param .b32 value_given;\n"
                                "        st.param.b32 [value_given], %r1;\n"
                                "        call.uni cudaGraphSetConditional, (handle_given, value_given);\n"
                                "    }\n"
                                "    ret;\n"
                                "}\n";

// ---- loops within graphs ----

// Ends a round: whether there is another.
static int put_condition(GmDevice *d, CUgraphConditionalHandle handle, CUdeviceptr asks)
{
    CUdeviceptr ask = asks + ASK * sizeof(uint32_t);
    void *parameters[] = {&handle, &ask};
    return gm_cuda.cuLaunchKernel(d->loop_kernel, 1, 1, 1, 1, 1, 1, 0, d->loop_stream, parameters, NULL);
}

// Begins a loop in a graph that d->stream is captured into: until end_loop, d->loop_stream is captured into its body. A result of the
// driver.
static int begin_loop(GmDevice *d, CUgraphConditionalHandle *handle)
{
    int status;
    unsigned long long id;
    CUgraph graph = NULL;
    const CUgraphNode *before = NULL;
    CUgraphNode node = NULL;
    size_t n = 0;
    CUgraphNodeParams loop = {.type = CU_GRAPH_NODE_TYPE_CONDITIONAL};
    int result = gm_cuda.cuStreamGetCaptureInfo(d->stream, &status, &id, &graph, &before, &n);
    if (result == 0) result = gm_cuda.cuGraphConditionalHandleCreate(handle, graph, d->context, 1, CU_GRAPH_COND_ASSIGN_DEFAULT);
    loop.conditional.handle = *handle;
    loop.conditional.type = CU_GRAPH_COND_TYPE_WHILE;
    loop.conditional.size = 1;
    loop.conditional.ctx = d->context;
    if (result == 0) result = gm_cuda.cuGraphAddNode(&node, graph, before, n, &loop);
    if (result == 0) result = gm_cuda.cuStreamUpdateCaptureDependencies(d->stream, &node, 1, CU_STREAM_SET_CAPTURE_DEPENDENCIES);
    return result == 0 ? gm_cuda.cuStreamBeginCaptureToGraph(d->loop_stream, loop.conditional.phGraph_out[0], NULL, NULL, 0,
                                                             CU_STREAM_CAPTURE_MODE_THREAD_LOCAL)
                       : result;
}

static int end_loop(GmDevice *d)
{
    CUgraph body;
    return gm_cuda.cuStreamEndCapture(d->loop_stream, &body);
}

// A graph that holds a loop of one round, launched: whether all of that works here.
static bool loop_works(GmDevice *d, CUdeviceptr asks)
{
    CUgraph graph = NULL;
    CUgraphExec ready = NULL;
    CUgraphConditionalHandle handle = 0;
    int names[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
    char log[200] = "";
    void *values[] = {log, (void *)(uintptr_t)sizeof log};
    if (!gm_cuda_loops() || gm_cuda.cuModuleLoadDataEx(&d->loop_module, condition, 2, names, values) != 0) return false;
    int result = gm_cuda.cuModuleGetFunction(&d->loop_kernel, d->loop_module, "gm_condition");
    if (result == 0) result = gm_cuda.cuStreamCreate(&d->loop_stream, CU_STREAM_NON_BLOCKING);
    if (result == 0) result = gm_cuda.cuStreamBeginCapture(d->stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
    if (result != 0) return false;
    if ((result = begin_loop(d, &handle)) == 0) {
        result = put_condition(d, handle, asks);
        const int ended = end_loop(d);
        if (result == 0) result = ended;
    }
    const int ended = gm_cuda.cuStreamEndCapture(d->stream, &graph);
    if (result == 0) result = ended;
    if (result == 0) result = gm_cuda.cuGraphInstantiate(&ready, graph, 0);
    if (result == 0) result = gm_cuda.cuGraphLaunch(ready, d->stream);
    if (result == 0) result = gm_cuda.cuStreamSynchronize(d->stream);
    if (ready) gm_cuda.cuGraphExecDestroy(ready);
    if (graph) gm_cuda.cuGraphDestroy(graph);
    return result == 0;
}

// ---- HMC updates ----

// A chain's threads are a function of its coordinates alone, as its sums depend on them: four coordinates a thread, by one block; from some
// thousands on by several, which run at once. Chains whose blocks do not fit together are launched one after the other.
static void put_move(GmDevice *d, const GmHmc *of, int begins, CUdeviceptr asks)
{
    CUdeviceptr asking = d->capturing ? 0 : (CUdeviceptr)(uintptr_t)d->asking;
    GmHmc move = *of;
    int first = 0, group = d->chains;
    const long warps = (of->coordinates + 127) / 128, blocks = warps <= 16 ? 1 : warps / 8 < MOST_BLOCKS ? warps / 8 : MOST_BLOCKS;
    void *parameters[] = {&d->states, &d->place, &move, &begins, &first, &d->chains, &asks, &asking};
    GmKernelEntry *e = gm_device_kernel(d, "gm_hmc");
    if (!e) return;
    if (blocks > 1 && !d->rehearsing) {
        if (!e->resident && gm_cuda.cuOccupancyMaxActiveBlocksPerMultiprocessor(&e->resident, e->function, GM_THREADS, 0) != 0)
            e->resident = 1;
        const long together = (long)e->resident * d->processors / blocks;
        group = together < 1 ? 1 : together < d->chains ? (int)together : d->chains;
    }
    for (; first < d->chains; first += group)
        gm_device_launch(d, d->stream, "gm_hmc",
                         (GmGrid){.x = blocks,
                                  .y = d->chains - first < group ? d->chains - first : group,
                                  .threads = blocks > 1 ? GM_THREADS : 32 * (int)(warps < 1 ? 1 : warps),
                                  .cooperative = blocks > 1},
                         parameters);
}

// Chains that adapt together: after their HMC update, two launches that do nothing once warm-up is over.
static void put_adaptation(GmDevice *d, const GmHmc *of)
{
    enum { MOST_COORDINATE_BLOCKS = 1024 };
    const long blocks = (of->coordinates + GM_THREADS - 1) / GM_THREADS, some = blocks < 1                        ? 1
                                                                                : blocks < MOST_COORDINATE_BLOCKS ? blocks
                                                                                                                  : MOST_COORDINATE_BLOCKS;
    int warps = (int)some * GM_THREADS / 32;
    GmHmc move = *of;
    void *coordinates[] = {&d->states, &d->place, &move, &d->chains}, *adapts[] = {&d->states, &d->place, &move, &d->chains, &warps};
    if (!of->together) return;
    gm_device_launch(d, d->stream, "gm_together_coordinates", (GmGrid){.x = some}, coordinates);
    gm_device_launch(d, d->stream, "gm_together_adapts", (GmGrid){.x = 1, .threads = 1024}, adapts);
}

// What they have learned, once warm-up is over.
void gm_device_learned(GmDevice *d, GmRun *run)
{
    for (int k = 0; k < run->n_together && !d->failed; k++) {
        GmTogether *t = &run->together[k];
        Nuts m;
        if (!t->made) continue;
        const CUdeviceptr machine = (CUdeviceptr)(uintptr_t) * (void *const *)(d->state + t->of.machine);
        if (gm_device_good(d, gm_device_get(d, &m, machine, sizeof m), "fetching what chains have learned"))
            gm_together_learned(t, m.step, m.length.log_time);
    }
}

void gm_device_hmc(GmRun *run, const GmHmc *of, void (*density)(GmRun *))
{
    GmDevice *d = run->device;
    GmHmc move = d->moved = *of;
    if (run->instead && run->instead(run, of, density)) return;
    move.state_size = d->model->state_size;
    move.name = (const char *)(uintptr_t)gm_device_text(d, of->name);
    const CUdeviceptr asks = gm_device_scratch(d, AT_ASKS, ASKS_BYTES);
    gm_device_metrics_open(d, run, of);
    if (d->rehearsing) {
        put_move(d, &move, 1, asks);
        density(run);
        put_adaptation(d, &move);
        return;
    }
    if (!gm_device_hmc_image(d)) return;
    if (!d->asking && gm_device_have_host(d, (void **)&d->asking, sizeof *d->asking, "a count")) {
        gm_device_fill(d, asks, 0, ASKS_BYTES, "clearing work space");
        d->loops = !d->plain && d->piece_size == 0 && loop_works(d, asks) ? 1 : -1;
        if (d->loops < 0) d->plain = true;
    }
    if (d->failed) return;
    *d->asking = 0;
    put_move(d, &move, 1, asks);
    if (!d->capturing) {
        while (gm_device_good(d, gm_cuda.cuStreamSynchronize(d->stream), "an HMC update") && *(volatile uint32_t *)d->asking) {
            density(run);
            *d->asking = 0;
            put_move(d, &move, 0, asks);
        }
        put_adaptation(d, &move);
        return;
    }
    CUgraphConditionalHandle handle = 0;
    if (!gm_device_good(d, begin_loop(d, &handle), "a loop within a graph")) return;
    const CUstream outer = d->stream, inner = d->loop_stream;
    d->stream = inner;
    density(run);
    put_move(d, &move, 0, asks);
    d->stream = outer;
    gm_device_good(d, put_condition(d, handle, asks), "a loop within a graph");
    gm_device_good(d, end_loop(d), "a loop within a graph");
    put_adaptation(d, &move);
}

void gm_device_hmc_close(GmDevice *d)
{
    gm_device_metrics_close(d);
    if (d->loop_stream) gm_cuda.cuStreamDestroy(d->loop_stream);
    if (d->loop_module) gm_cuda.cuModuleUnload(d->loop_module);
    if (d->asking) gm_cuda.cuMemFreeHost(d->asking);
}
