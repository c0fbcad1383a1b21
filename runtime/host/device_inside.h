// device_inside.h -- a run on a GPU, as the runtime's own files see it. device.h is what emitted programs see.
//
//   device_calls.c    the driver: errors, copies, launches, times
//   device_image.c    compiled code
//   device_memory.c   memory taken and given back
//   device.c          the launches of an emitted program
//   device_pieces.c   matrices that stay in the memory of the host, read piece by piece
//   device_linalg.c   joint normal draws and products with data, over kernels of runtime_cuda.h, cuBLAS and cuSOLVER
//   device_sparse.c   joint normals whose precision has few entries
//   device_plan.c     where Data and State lie; what stays in the memory of the host
//   device_modes.c    starts of `map` that share the State of one chain
//   device_metrics.c  metrics of HMC that are not diagonal: what chains note goes to the host, the new metrics come back
//   device_moves.c    HMC updates: rounds of launches until every chain has its draw
//   device_run.c      the sweep loop: graphs, draws on their way out, faults; --profile; --compare-devices
//   device_open.c     opens and closes the device
//   device_auto.c     whether a run is made on it, with --device auto
//
// Each calls those above it only.
#ifndef GM_DEVICE_INSIDE_H
#define GM_DEVICE_INSIDE_H

#include "../backends/cuda.h"
#include "../backends/nvrtc.h"
#include "device.h"
#include "device_code.h"
#include "draws.h"
#include "messages.h"

enum { GM_SIDES = 4, GM_THREADS = 256, GM_SCRATCHES = 16, GM_MOST_KERNELS = 1024, GM_MOST_PACES = 256 };

typedef struct GmKernelEntry {
    char *name;
    CUfunction function;
    int resident;    // blocks of GM_THREADS threads that fit a multiprocessor; 0: not asked yet
    double seconds;  // --profile
    long launches;
} GmKernelEntry;

// Sweeps of one form are the same launches; a graph for each kind: plain ones, those whose draw is kept, those that are watched
// (selection.c).
typedef enum { GM_PLAIN_SWEEP, GM_KEPT_SWEEP, GM_WATCHED_SWEEP, GM_SWEEPS } GmSweepKind;
enum { GM_MOST_FORMS = 16 };  // whose graphs are kept
typedef struct GmForm {
    uint64_t number;
    CUgraphExec graph[GM_SWEEPS];
    long made[GM_SWEEPS];  // so far
} GmForm;

typedef struct GmTiming {
    int entry;
    CUevent from, to;
} GmTiming;

// An array of Data, or one that setup computes of data for all chains, as the device has it. On the card, or away: then `host` is all of
// it, and `head` its first bytes on the card.
typedef struct GmArray {
    CUdeviceptr at;  // where kernels read it; of an array that is away, an address of the host's
    size_t bytes;    // 0: a scalar
    bool away;
    void *host;  // page-locked
    CUdeviceptr head;
    size_t head_bytes;
    bool head_filled;
    size_t read, in_sweep;  // bytes read of it as a matrix: by a sweep and what keeps its draw; by a sweep
    size_t step;            // the most bytes that a piece of it has to have
} GmArray;

// bytes of a buffer for pieces that no piece fills: for its alignment, and reading to a multiple of 16
enum { GM_PIECE_MARGIN = 512 };

// An HMC update whose chains may have metrics that are not diagonal.
typedef struct GmDeviceMetric {
    GmHmc of;
    size_t first, apart;  // in the work space: bytes before the first chain's part; of a chain
    bool opened;
    struct Metric **chain;  // the host's; NULL: diagonal, for good
    bool *closed;           // the last change of this warm-up is made
} GmDeviceMetric;

typedef struct GmDevice {
    int ordinal, capability, processors, shared_most;
    char name[128];
    GmPrecision precision;
    const GmModel *model;
    int chains;
    bool rows_any;  // the image has row passes of any width only: NVRTC is not here to compile the right one
    bool failed;    // a call of the driver or of a library failed: a line was printed, the run ends
    GmExit status;  // that it ends with
    char *why;      // while the device is opened: where the line goes instead
    size_t why_room;
    CUcontext context;
    CUmodule module, moves_module;
    bool moves_apart;  // the kernels of HMC are in moves_module, once there is an HMC update
    CUstream stream, copies, side[GM_SIDES];
    CUevent fork, join[GM_SIDES];
    size_t limit, used;  // bytes of the card: --device-memory or 0, and those taken by now
    CUdeviceptr block;   // all arrays, State, GmPlace
    size_t block_size;
    bool rehearsing;       // nothing is launched: gm_device_allocate asks what the model needs
    bool needs_libraries;  // cuBLAS
    GmArray *array;        // by data field, then by field of State
    int n_arrays;
    CUstream feed;  // pieces on their way
    CUdeviceptr piece[2];
    size_t piece_size;         // 0: no array is away
    bool head_taken;           // some array has a head
    CUevent fed[2], eaten[2];  // a piece is there; its kernels are done
    CUdeviceptr states, place;
    char *data, *state;                  // host copies of Data and State whose pointers lie in device memory
    const char *host_data, *host_state;  // those of the CPU
    GmKernelEntry kernel[GM_MOST_KERNELS];
    int n_kernels;
    CUdeviceptr scratch[GM_SCRATCHES];
    size_t scratch_size[GM_SCRATCHES];
    char **text;  // strings copied to the device, and where
    CUdeviceptr *text_at;
    int n_texts;
    Cublas blas[GM_SIDES];
    Cusolver solver[GM_SIDES];  // NULL before the first large factorisation
    bool libraries;
    // device_run.c
    GmForm form[GM_MOST_FORMS];
    int n_forms;
    bool plain;  // no graphs: --profile, or capturing failed
    bool capturing, no_result;
    int loops;             // within graphs: 1 there are, -1 there are none, 0 not tried yet
    CUmodule loop_module;  // the kernel that decides whether one goes on
    CUfunction loop_kernel;
    CUstream loop_stream;    // in which the body of one is captured
    uint32_t *asking;        // how many chains ask; pinned
    GmHmc moved;             // the last HMC update
    GmDeviceMetric *metric;  // of HMC updates that may have others than diagonal ones
    int n_metrics;
    struct GmDeviceSparses *sparse;  // NULL: there are none
    size_t metric_bytes;             // of all
    const GmOptions *keeping;        // NULL: no draw leaves
    bool derive, log_joint;
    long columns, slots;
    double pace[GM_MOST_PACES];  // ms a sweep of the last batches, of pace_sweeps sweeps or nearly as many
    long paces, pace_sweeps;
    CUdeviceptr column, kept, ring;
    GmTrials *selected;             // NULL: no methods to select from
    long watched_columns, watched;  // numbers of a chain in a row; rows since the last meeting
    CUdeviceptr watched_column, watched_kept, watched_ring;
    bool profile;
    GmTiming timing[512];
    int n_timings;
} GmDevice;

// ---- device_calls.c ----

// Reports a result of the driver that is not 0, in one line, and marks the device as failed. Returns whether all is well.
bool gm_device_good(GmDevice *d, int result, const char *what);
void gm_device_refuse(GmDevice *d, const char *what);  // the same, in words of one's own
void gm_device_end(GmDevice *d, GmExit status, const char *format, ...) __attribute__((format(printf, 3, 4)));

// Copies in the main stream, after everything launched before them; they return when done. A result of the driver.
int gm_device_put(GmDevice *d, CUdeviceptr to, const void *from, size_t bytes);
int gm_device_get(GmDevice *d, void *to, CUdeviceptr from, size_t bytes);

// Sets every byte to `value`, in the main stream.
void gm_device_fill(GmDevice *d, CUdeviceptr at, unsigned char value, size_t bytes, const char *what);

// Blocks of a launch, in three directions (0 counts as 1); threads of a block (0: GM_THREADS); bytes of shared memory that it asks for;
// whether all blocks must run at once.
typedef struct GmGrid {
    long x, y, z;
    int threads;
    size_t shared;
    bool cooperative;
} GmGrid;

// A launch of a kernel of the image on a stream; parameters as cuLaunchKernel takes them.
void gm_device_launch(GmDevice *d, CUstream stream, const char *kernel, GmGrid grid, void **parameters);
GmKernelEntry *gm_device_kernel(GmDevice *d, const char *name);  // NULL after a message: the image lacks it

// --profile: marks in the stream around what is called `name`.
int gm_device_time_from(GmDevice *d, const char *name, CUstream stream);
void gm_device_time_to(GmDevice *d, int timing, CUstream stream);
void gm_device_time_collect(GmDevice *d);

// Graphs are captured again.
void gm_device_graphs_drop(GmDevice *d);

// ---- device_image.c ----

bool gm_device_image(GmDevice *d, char *why, size_t room);  // loads the program's code; false: `why` says what is missing
// How many programs NVRTC would have to compile first: they are neither put in nor cached. moves: some HMC updates may be made.
int gm_device_to_compile(const GmModel *model, const void *data, int capability, GmPrecision precision, bool moves);
bool gm_device_hmc_image(GmDevice *d);  // that of HMC, if it is not there yet; false after a message

// ---- device_memory.c ----

// Memory of the card, under the limit of --device-memory; a result of the driver. What is taken is given back with the same size.
int gm_device_take(GmDevice *d, CUdeviceptr *to, size_t bytes);
void gm_device_give(GmDevice *d, CUdeviceptr *at, size_t bytes);

// The same, and page-locked memory of the host, which the card reads and writes at the same address; for `what`, which a message names.
// false after it.
bool gm_device_have(GmDevice *d, CUdeviceptr *to, size_t bytes, const char *what);
bool gm_device_have_host(GmDevice *d, void **to, size_t bytes, const char *what);

void gm_device_heads_drop(GmDevice *d);                                     // gives the memory of heads back
size_t gm_device_available(const GmDevice *d);                              // bytes that can be had
void gm_device_lacks_memory(GmDevice *d, const char *what, double needed);  // the message
const char *gm_device_size_text(char to[32], double bytes);                 // "1.5 GB"

// Bytes of an element on the device.
size_t gm_device_element(const GmDevice *d, GmType type);

// Work space number `which`, of at least `bytes`; grows outside graphs only, and what a rehearsal asked for is there from the start. 0
// after a message.
CUdeviceptr gm_device_scratch(GmDevice *d, int which, size_t bytes);
CUdeviceptr gm_device_text(GmDevice *d, const char *text);  // the string in device memory

// ---- device_pieces.c ----

// One reading of a matrix of data X[n, ...] with rows of `row_bytes`, in pieces that begin at multiples of `step` rows:
//
//     GmPieces piece = gm_device_pieces(d, X, n, row_bytes, step);
//     while (gm_device_piece(d, &piece)) launch in d->stream what reads rows piece.first .. piece.first + piece.rows - 1 at piece.X
//
// A matrix on the card is one piece, and so is one of no rows.
typedef struct GmPieces {
    const char *X;  // row i of the matrix lies at X + i * row_bytes, if it is of the piece
    long first, rows;
    // of the reading
    const char *whole;
    long n, step, head, number;  // rows of a piece; rows that lie on the card
    size_t row_bytes;
    GmArray *away;  // NULL: on the card
} GmPieces;

GmPieces gm_device_pieces(GmDevice *d, const void *X, long n, size_t row_bytes, long step);
bool gm_device_piece(GmDevice *d, GmPieces *p);

void gm_device_pieces_open(GmDevice *d, size_t spare);
void gm_device_heads_fill(GmDevice *d);  // after setup
void gm_device_pieces_close(GmDevice *d);

// ---- device_linalg.c ----

// Starts cuBLAS, once. false after a message.
bool gm_device_libraries(GmDevice *d);

// ---- device_sparse.c ----

// Joint normals whose precision has few entries: what they hold is given back.
void gm_device_sparse_close(GmDevice *d);

// ---- device_plan.c ----

// Plans what goes where, takes memory and fills it. `ring`: bytes through which draws will leave. false after a message.
bool gm_device_allocate(GmDevice *d, const GmData *data, const GmMemory *memory, const GmRun *run, size_t ring);
void gm_device_note_memory(const GmDevice *d);  // a line for each array that stays in the memory of the host

// one array of the first chain, from double or int32_t
void gm_device_send_field(GmDevice *d, const GmMemory *memory, int field, const void *x);

// State of all chains, between the CPU's arrays and the device's.
void gm_device_upload(GmDevice *d, const GmMemory *memory);
// one array, as int32_t or double
void gm_device_download(GmDevice *d, const GmMemory *memory, int chain, int field, void *to);

// ---- device_modes.c ----

// The start and its sweep that launches are for from now on; what was found amiss before is forgotten.
void gm_device_turn(GmDevice *d, int start, long sweep);
bool gm_device_stumbled(GmDevice *d);    // whether a fault was found since; waits for all that was launched
bool gm_device_lost(const GmDevice *d);  // a call of the driver has failed, which a message has said

// ---- device_metrics.c ----

// Before an HMC update: reserves, or opens, what its chains need for metrics that are not diagonal. Not where a graph is captured.
void gm_device_metrics_open(GmDevice *d, GmRun *run, const GmHmc *of);

// Whether the host is to look after run->sweep sweeps, which wait for it: METRIC_ROWS apart, while warm-up lasts. And after how many of a
// batch at most.
bool gm_device_metrics_due(const GmDevice *d, const GmRun *run);
long gm_device_metrics_until(const GmDevice *d, const GmRun *run, long batch);
void gm_device_metrics_adapt(GmDevice *d, GmRun *run);
void gm_device_metrics_close(GmDevice *d);

// ---- device_moves.c ----

// HMC: its memory is freed.
void gm_device_hmc_close(GmDevice *d);

// chains that adapt together: step size and length of their trajectories, after warm-up
void gm_device_learned(GmDevice *d, GmRun *run);

// ---- device_run.c ----

// Bytes of the ring through which draws leave.
size_t gm_device_ring_size(const GmDevice *d, const GmDraws *draws);

// The fault that the device has found, if any, handed to gm_fault. false: there is none.
bool gm_device_fault(GmDevice *d, GmRun *run, const GmPlace *place);

// Waits until everything launched has been done; a fault found by the device is handed to gm_fault. false after a message: a call failed.
bool gm_device_settled(GmDevice *d, GmRun *run);

// All sweeps of a run; draws are stored as they come. The status as of gm_fit_sample (fit_sample.c); *sweeps: how many were made.
int gm_device_sample(GmDevice *d, GmRun *run, GmDraws *draws, const GmOptions *o, GmTrials *selected, GmProgress *progress, long *sweeps);
// Milliseconds a sweep of all chains between two events: the median of the last batches of sweeps. 0: none was timed.
double gm_device_pace(const GmDevice *d);

void gm_device_profile_print(GmDevice *d, FILE *to, long sweeps);

// --compare-devices: every update from the same state on both devices; prints a table. GM_EXIT_OK, GM_EXIT_CHECK or GM_EXIT_FAULT.
int gm_device_compare(GmDevice *d, const GmModel *model, GmRun *on_gpu, GmRun *on_cpu, const GmMemory *m);

// ---- device_open.c ----

// Opens a device for the run: finds driver, GPU and image, uploads Data and State (with their initial values) and points run->data,
// run->state and run->device at them. NULL: `why` says in one line what is missing.
//       *status: GM_EXIT_DEVICE or GM_EXIT_MEMORY. `draws`: what will be kept, or NULL.
GmDevice *gm_device_open(const GmModel *model, const GmData *data, const GmMemory *memory, const GmOptions *o, const GmDraws *draws,
                         GmRun *run, GmExit *status, char *why, size_t room);
void gm_device_close(GmDevice *d);

#endif
