// device_linalg.c -- joint normal draws and products with data on a GPU, for all chains of a launch (linalg.h has the mathematics).
//
// Up to 16 elements a joint normal is drawn by one block; above, by a flow of tiles between blocks (dense_tiles.h), which is bound by
// latency; and where arithmetic is what takes time, by cuSOLVER and cuBLAS if there is cuSOLVER. X'X is a product of cuBLAS. Chains have
// streams of their own in these libraries, which leave the main stream and come back to it; none waits for the host. Both are column-major:
// the upper triangle there is the lower one of a row-major matrix.
#include "device_inside.h"
#include "../device/dense_plan.h"
#include "../device/products_plan.h"
#include "../device/row_plan.h"

#include <stdlib.h>
#include <string.h>

enum {        // scratch memory
    AT_BLAS,  // one for each side stream
    AT_SOLVER = AT_BLAS + GM_SIDES,
    AT_INFO = AT_SOLVER + GM_SIDES,
    AT_PRODUCTS,
    AT_WIDE,
    AT_PART,
    AT_DENSE,
    AT_OUTPUTS,  // and GM_AT_ASKS
};

enum {
    BLAS_WORK = 32 << 20,
    WIDENED = 16 << 20,
    WEIGHED = 16 << 20,
    MOST_SMALL = 16,
    MOST_TILES = 5120,
    CHUNK = 2048,
    MOST_CHUNKS = 4096,
    MOST_TILED = 128
};

static const double one = 1, zero = 0;
static const float one_f = 1, zero_f = 0;

// A call of a library; a rehearsal leaves it out.
#define blas_good(d, call, what) blas_checked(d, (d)->rehearsing ? 0 : (call), what)

static bool blas_checked(GmDevice *d, int result, const char *what)
{
    if (result != 0 && !d->failed) {
        char text[200];
        const char *meaning = result == 1                  ? " (it does not start: it may be newer than the driver allows)"
                              : result == 3 || result == 2 ? " (out of memory)"
                                                           : "";
        snprintf(text, sizeof text, "%s gave status %d%s", what, result, meaning);
        gm_device_refuse(d, text);
    }
    return !d->failed;
}

static bool libraries(GmDevice *d)
{
    if (d->failed || d->libraries) return !d->failed;
    if (d->rehearsing) {
        for (int k = 0; k < GM_SIDES; k++) gm_device_scratch(d, AT_BLAS + k, BLAS_WORK);
        d->needs_libraries = true;
        return true;
    }
    const char *why;
    if (!gm_cuda_libraries(&why)) {
        gm_device_refuse(d, why);
        return false;
    }
    for (int k = 0; k < GM_SIDES && !d->failed; k++) {
        if (!blas_good(d, gm_cuda.cublasCreate(&d->blas[k]), "cublasCreate")) break;
        gm_cuda.cublasSetStream(d->blas[k], d->side[k]);
        // Work space of our own: graphs must not allocate. Setting the stream resets it, so the stream comes first.
        const CUdeviceptr work = gm_device_scratch(d, AT_BLAS + k, BLAS_WORK);
        if (work) gm_cuda.cublasSetWorkspace(d->blas[k], (void *)(uintptr_t)work, BLAS_WORK);
    }
    d->libraries = !d->failed;
    return d->libraries;
}

bool gm_device_libraries(GmDevice *d) { return libraries(d); }

// The side streams begin where the main one stands, and it goes on when they are done.
static void fork_sides(GmDevice *d, int sides)
{
    gm_device_good(d, gm_cuda.cuEventRecord(d->fork, d->stream), "an event");
    for (int k = 0; k < sides; k++) gm_device_good(d, gm_cuda.cuStreamWaitEvent(d->side[k], d->fork, 0), "an event");
}

static void join_sides(GmDevice *d, int sides)
{
    for (int k = 0; k < sides; k++) {
        gm_device_good(d, gm_cuda.cuEventRecord(d->join[k], d->side[k]), "an event");
        gm_device_good(d, gm_cuda.cuStreamWaitEvent(d->stream, d->join[k], 0), "an event");
    }
}

static void *array_of(const GmDevice *d, int chain, size_t offset)
{
    void *at;
    memcpy(&at, d->state + (size_t)chain * d->model->state_size + offset, sizeof at);
    return at;
}

static int sides_of(const GmDevice *d) { return d->chains < GM_SIDES ? d->chains : GM_SIDES; }

static long blocks_for(const GmDevice *d, long n)
{
    const long blocks = (n + GM_THREADS - 1) / GM_THREADS, most = 32L * d->processors;
    return blocks < 1 ? 1 : blocks > most ? most : blocks;
}

// ---- joint normals ----

static void small(GmDevice *d, uint32_t var, CUdeviceptr name, long n, size_t J, size_t h, size_t x, size_t scale)
{
    uint64_t at_J = J, at_h = h, at_x = x, at_scale = scale;
    void *parameters[] = {&d->states, &d->place, &var, &name, &n, &at_J, &at_h, &at_x, &at_scale};
    gm_device_launch(d, d->stream, "gm_dense_small",
                     (GmGrid){.x = 1, .y = d->chains, .shared = sizeof(double) * (size_t)((n + 1) * (n | 1) + n)}, parameters);
}

// n by n, n >= 1. Gives the scratch memory that holds the draw. rows.p = 0: dense.
static CUdeviceptr tiles(GmDevice *d, uint32_t var, CUdeviceptr name, long n, uint64_t J, uint64_t h, uint64_t x, uint64_t scale,
                         DenseRows rows)
{
    const bool wider = rows.p > 0 && d->precision == GM_SINGLE;
    const size_t bytes = (size_t)DENSE_BYTES(n, (long)d->chains, (long)(wider ? sizeof(double) : gm_device_element(d, GM_SOLVE)));
    CUdeviceptr scratch = gm_device_scratch(d, AT_DENSE, bytes);
    if (d->failed) return 0;
    if (!d->rehearsing) gm_device_fill(d, scratch, 255, bytes, "clearing work space");
    void *parameters[] = {&d->states, &d->place, &var, &name, &n, &d->chains, &J, &h, &x, &scale, &scratch, &rows};
    gm_device_launch(d, d->stream, wider ? "gm_rows_tiles" : "gm_dense_tiles",
                     (GmGrid){.x = dense_blocks(n, d->chains, d->processors), .threads = DENSE_THREADS}, parameters);
    return scratch;
}

// ---- joint normals of many elements, by libraries ----

static bool solver(GmDevice *d)
{
    if (!libraries(d) || d->rehearsing) return !d->failed;
    for (int k = 0; k < GM_SIDES && !d->solver[k]; k++) {
        if (!blas_good(d, gm_cuda.cusolverDnCreate(&d->solver[k]), "cusolverDnCreate")) break;
        gm_cuda.cusolverDnSetStream(d->solver[k], d->side[k]);
    }
    return !d->failed;
}

static void factor(GmDevice *d, int chain, long n, void *J, CUdeviceptr info)
{
    const int side = chain % GM_SIDES;
    const bool single = d->precision == GM_SINGLE;
    int *info_of = (int *)(uintptr_t)info + chain, size = d->rehearsing ? (int)n * 256 : 0;
    blas_good(d,
              single ? gm_cuda.cusolverDnSpotrf_bufferSize(d->solver[side], CUBLAS_UPPER, (int)n, J, (int)n, &size)
                     : gm_cuda.cusolverDnDpotrf_bufferSize(d->solver[side], CUBLAS_UPPER, (int)n, J, (int)n, &size),
              "cusolverDnpotrf_bufferSize");
    void *work = (void *)(uintptr_t)gm_device_scratch(d, AT_SOLVER + side, gm_device_element(d, GM_SOLVE) * (size_t)(size + 1));
    if (d->failed) return;
    blas_good(d,
              single ? gm_cuda.cusolverDnSpotrf(d->solver[side], CUBLAS_UPPER, (int)n, J, (int)n, work, size, info_of)
                     : gm_cuda.cusolverDnDpotrf(d->solver[side], CUBLAS_UPPER, (int)n, J, (int)n, work, size, info_of),
              "cusolverDnpotrf");
}

// h = L^-1 h, or L'^-1 h for CUBLAS_AS_IS.
static void triangular(GmDevice *d, int chain, int operation, long n, const void *J, void *h)
{
    const Cublas blas = d->blas[chain % GM_SIDES];
    if (d->failed) return;
    blas_good(d,
              d->precision == GM_SINGLE ? gm_cuda.cublasStrsv(blas, CUBLAS_UPPER, operation, CUBLAS_NON_UNIT, (int)n, J, (int)n, h, 1)
                                        : gm_cuda.cublasDtrsv(blas, CUBLAS_UPPER, operation, CUBLAS_NON_UNIT, (int)n, J, (int)n, h, 1),
              "cublastrsv");
}

static void large(GmDevice *d, uint32_t var, CUdeviceptr name, long n, size_t J, size_t h, size_t x, size_t scale)
{
    if (!solver(d)) return;
    const int sides = sides_of(d);
    const CUdeviceptr info = gm_device_scratch(d, AT_INFO, sizeof(int) * (size_t)d->chains);
    int timing = gm_device_time_from(d, "cuSOLVER potrf, cuBLAS trsv", d->stream);
    fork_sides(d, sides);
    for (int c = 0; c < d->chains && !d->failed; c++) {
        factor(d, c, n, array_of(d, c, J), info);
        triangular(d, c, CUBLAS_TRANSPOSED, n, array_of(d, c, J), array_of(d, c, h));
    }
    join_sides(d, sides);
    gm_device_time_to(d, timing, d->stream);
    uint64_t at_h = h, at_x = x, at_scale = scale;
    void *noise[] = {&d->states, &d->place, &var, &n, &at_h, &at_scale};
    gm_device_launch(d, d->stream, "gm_dense_noise", (GmGrid){.x = 1, .y = d->chains}, noise);
    timing = gm_device_time_from(d, "cuBLAS trsv", d->stream);
    fork_sides(d, sides);
    for (int c = 0; c < d->chains && !d->failed; c++) triangular(d, c, CUBLAS_AS_IS, n, array_of(d, c, J), array_of(d, c, h));
    join_sides(d, sides);
    gm_device_time_to(d, timing, d->stream);
    void *place[] = {&d->states, &d->place, &name, &n, &at_h, &at_x, (void *)&info};
    gm_device_launch(d, d->stream, "gm_dense_place", (GmGrid){.x = blocks_for(d, n), .y = d->chains}, place);
}

void gm_device_normal_dense(GmRun *run, uint32_t var, const char *name, long n, size_t J, size_t h, size_t x, size_t scale)
{
    GmDevice *d = run->device;
    if (n <= 0 || d->failed) return;
    const CUdeviceptr text = gm_device_text(d, name);
    if (n <= MOST_SMALL) small(d, var, text, n, J, h, x, scale);
    else if (n > MOST_TILES && gm_cuda_solver(NULL)) large(d, var, text, n, J, h, x, scale);
    else tiles(d, var, text, n, J, h, x, scale, (DenseRows){0});
}

void gm_device_normal_arrow(GmRun *run, uint32_t var, const char *name, long n, size_t J, size_t h, size_t x, long m, size_t D, size_t E,
                            size_t k, size_t u, size_t scale)
{
    GmDevice *d = run->device;
    if (d->failed) return;
    const CUdeviceptr text = gm_device_text(d, name);
    uint64_t at_J = J, at_h = h, at_x = x, at_D = D, at_E = E, at_k = k, at_u = u, at_scale = scale;
    if (m > 0) {
        const long even = (m + MOST_CHUNKS - 1) / MOST_CHUNKS, pairs = (n + 1) * (n + 2) / 2;
        long chunk = even > 64 ? even : 64, chunks = (m + chunk - 1) / chunk;
        const CUdeviceptr part = gm_device_scratch(d, AT_PRODUCTS, sizeof(double) * (size_t)(pairs * chunks * d->chains));
        void *rows[] = {&d->states, &d->place, (void *)&text, &n, &m, &at_D, &at_E, &at_k};
        gm_device_launch(d, d->stream, "gm_arrow_rows", (GmGrid){.x = blocks_for(d, m), .y = d->chains}, rows);
        void *products[] = {&d->states, &n, &m, &chunk, &at_E, &at_k, (void *)&part};
        gm_device_launch(d, d->stream, "gm_arrow_products", (GmGrid){.x = chunks, .y = d->chains}, products);
        void *reduce[] = {&d->states, &n, &chunks, (void *)&part, &at_J, &at_h, &at_scale};
        gm_device_launch(d, d->stream, "gm_arrow_reduce", (GmGrid){.x = (pairs + 3) / 4, .y = d->chains}, reduce);
    }
    if (n > 0) gm_device_normal_dense(run, var, name, n, J, h, x, scale);
    else if (scale != GM_NO_FIELD) {
        void *alone[] = {&d->states, &d->place, &var, &at_scale};
        gm_device_launch(d, d->stream, "gm_arrow_scale", (GmGrid){.x = 1, .y = d->chains, .threads = 32}, alone);
    }
    if (m > 0) {
        void *effects[] = {&d->states, &d->place, &var, (void *)&text, &n, &m, &at_D, &at_E, &at_k, &at_x, &at_u, &at_scale};
        gm_device_launch(d, d->stream, "gm_arrow_effects", (GmGrid){.x = blocks_for(d, m), .y = d->chains}, effects);
    }
}

void gm_device_normal_rows(GmRun *run, uint32_t var, const char *name, long n, long p, size_t D, size_t h, size_t rows, size_t y, size_t M,
                           size_t x, size_t scale)
{
    GmDevice *d = run->device;
    if (p <= 0 || d->failed) return;
    const CUdeviceptr text = gm_device_text(d, name);
    DenseRows r = dense_rows(n, p, (long)gm_device_element(d, GM_SOLVE));
    r.D = D;
    r.h = h;
    r.rows = rows;
    r.y = y;
    r.scratch = (unsigned char *)(uintptr_t)gm_device_scratch(d, AT_PRODUCTS, (size_t)r.chain * (size_t)d->chains);
    uint64_t at_x = x, at_scale = scale;
    CUdeviceptr solved = 0;
    void *prior[] = {&d->states, &d->place, &var, (void *)&text, &r};
    gm_device_launch(d, d->stream, "gm_rows_prior", (GmGrid){.x = blocks_for(d, p), .y = d->chains}, prior);
    if (n > 0) {
        void *products[] = {&d->states, &d->place, &var, &r};
        gm_device_launch(d, d->stream, "gm_rows_products", (GmGrid){.x = n + r.chunks * DENSE_PAIRS(DENSE_TILES(n)), .y = d->chains},
                         products);
        solved = tiles(d, var, text, n, M, GM_NO_FIELD, GM_NO_FIELD, scale, r);
    } else if (scale != GM_NO_FIELD) {
        void *alone[] = {&d->states, &d->place, &var, &at_scale, &r};
        gm_device_launch(d, d->stream, "gm_rows_scale", (GmGrid){.x = 1, .y = d->chains}, alone);
    }
    void *place[] = {&d->states, &d->place, (void *)&text, &at_x, &at_scale, &solved, &r};
    gm_device_launch(d, d->stream, "gm_rows_place", (GmGrid){.x = (p + DENSE_TILE - 1) / DENSE_TILE, .y = d->chains}, place);
}

// ---- products with data ----

// In double whatever the type of X: it is made once, and everything after it rests on it. By chunks, in which X that is not double is
// widened.
void gm_device_gram(GmRun *run, long n, long p, double scale, const void *X, void *out)
{
    GmDevice *d = run->device;
    if (p <= 0 || !libraries(d)) return;
    const size_t element = gm_device_element(d, GM_REAL);
    const long fit = WIDENED / (8 * p), rows = n < fit ? n : fit > 1 ? fit : 1;
    const CUdeviceptr wide = element == 8 ? 0 : gm_device_scratch(d, AT_WIDE, sizeof(double) * (size_t)(rows * p + 1));
    const int timing = gm_device_time_from(d, "cuBLAS syrk", d->stream);
    double factor = scale;
    GmPieces piece = gm_device_pieces(d, X, n, (size_t)p * element, rows);
    while (gm_device_piece(d, &piece))
        for (long first = piece.first; (first < piece.first + piece.rows || n == 0) && !d->failed; first += rows) {
            const long some = n - first < rows ? n - first : rows;
            const char *from = piece.X + (size_t)(first * p) * element;
            if (element != 8) {
                long elements = some * p;
                void *widen[] = {&elements, &from, (void *)&wide};
                if (elements > 0) gm_device_launch(d, d->stream, "gm_widen", (GmGrid){.x = blocks_for(d, elements)}, widen);
                from = (const char *)(uintptr_t)wide;
            }
            fork_sides(d, 1);
            if (!d->failed)
                blas_good(d,
                          gm_cuda.cublasDsyrk(d->blas[0], CUBLAS_UPPER, CUBLAS_AS_IS, (int)p, (int)some, &factor,
                                              (const double *)(uintptr_t)from, (int)p, first ? &one : &zero, out, (int)p),
                          "cublasDsyrk");
            join_sides(d, 1);
            if (n == 0) break;
        }
    gm_device_time_to(d, timing, d->stream);
    void *mirror[] = {&p, &out};
    gm_device_launch(d, d->stream, "gm_mirror", (GmGrid){.x = blocks_for(d, p * p)}, mirror);
}

// By a kernel of tiles kept in shared memory; 33 to 64 columns of single precision by tensor cores, where there are such.
static void weighted_gram_small(GmDevice *d, long n, long p, const void *X, size_t w, size_t out)
{
    // Chunks in even rounds of two or three blocks for each multiprocessor of an H100 or H200, of some 1024 or 2048 rows, unless they would
    // be too many to keep.
    enum { PROCESSORS = 132 };
    const bool cores = p > 32 && p <= 64 && d->capability >= 80 && gm_device_element(d, GM_REAL) == sizeof(float);
    const long T = p <= 16 ? 16 : p <= 32 ? 32 : 64, side = (p + T - 1) / T, round = (cores ? 3 : 2) * PROCESSORS;
    const long wanted = (n / (cores ? 2048 : 1024) + round) / round * round, rounds = wanted < 16 * PROCESSORS ? wanted : 16 * PROCESSORS,
               even = (n + rounds - 1) / rounds;
    long tile = T, tiles = side * (side + 1) / 2, chunk = even > 256 ? even : 256, chunks = n > 0 ? (n + chunk - 1) / chunk : 0;
    const CUdeviceptr part = gm_device_scratch(d, AT_PART, sizeof(double) * (size_t)(d->chains * chunks * tiles * T * T + 1));
    uint64_t at_w = w, at_out = out;
    GmPieces piece = gm_device_pieces(d, X, n, (size_t)p * gm_device_element(d, GM_REAL), chunk);
    long before;
    void *products[] = {&d->states, &n, &p, &chunk, &before, &chunks, &piece.X, &at_w, (void *)&part};
    const char *kernel = cores     ? "gm_weighted_products_cores"
                         : T == 16 ? "gm_weighted_products_16"
                         : T == 32 ? "gm_weighted_products_32"
                                   : "gm_weighted_products_64";
    while (chunks > 0 && gm_device_piece(d, &piece)) {
        before = piece.first / chunk;
        gm_device_launch(d, d->stream, kernel,
                         (GmGrid){.x = tiles, .y = (piece.rows + chunk - 1) / chunk, .z = d->chains, .threads = cores ? 128 : 256},
                         products);
    }
    void *add[] = {&d->states, &p, &tile, &tiles, &chunks, (void *)&part, &at_out};
    gm_device_launch(d, d->stream, "gm_weighted_products_add", (GmGrid){.x = tiles * T * T / 32, .y = d->chains}, add);
}

// Rows times their weights by chunks, then X' times them: single precision within a chunk, double between chunks.
void gm_device_weighted_gram(GmRun *run, long n, long p, const void *X, size_t w, size_t out)
{
    GmDevice *d = run->device;
    if (p > 0 && p <= MOST_TILED) weighted_gram_small(d, n, p, X, w, out);
    if (p <= MOST_TILED || !libraries(d)) return;
    const size_t element = gm_device_element(d, GM_REAL);
    const long fit = WEIGHED / ((long)element * p);
    const long rows = n < fit ? n : fit > 1 ? fit : 1;
    const int sides = sides_of(d);
    const size_t one_chunk = element * (size_t)(rows * p + 1), one_product = element * (size_t)(p * p);
    const CUdeviceptr weighed = gm_device_scratch(d, AT_WIDE, one_chunk * (size_t)sides),
                      product = gm_device_scratch(d, AT_PART, one_product * (size_t)sides);
    uint64_t at_w = w, at_out = out;
    const int timing = gm_device_time_from(d, "cuBLAS gemm", d->stream);
    GmPieces piece = gm_device_pieces(d, X, n, element * (size_t)p, rows);
    while (gm_device_piece(d, &piece)) {
        fork_sides(d, sides);
        for (int c = 0; c < d->chains; c++) {
            const int side = c % GM_SIDES;
            const CUdeviceptr mine = weighed + one_chunk * (size_t)side, sum = product + one_product * (size_t)side;
            for (long first = piece.first; (first < piece.first + piece.rows || n == 0) && !d->failed; first += rows > 0 ? rows : 1) {
                long some = n - first < rows ? n - first : rows, elements = p * p;
                int begin = first == 0;
                void *weigh[] = {&d->states, &c, &at_w, &first, &some, &p, &piece.X, (void *)&mine};
                if (some > 0) gm_device_launch(d, d->side[side], "gm_weigh", (GmGrid){.x = blocks_for(d, some * p)}, weigh);
                const char *from = piece.X + (size_t)(first * p) * element;
                if (d->failed) break;
                if (element == 8)
                    blas_good(d,
                              gm_cuda.cublasDgemm(d->blas[side], CUBLAS_AS_IS, CUBLAS_TRANSPOSED, (int)p, (int)p, (int)some, &one,
                                                  (const double *)(uintptr_t)from, (int)p, (const double *)(uintptr_t)mine, (int)p,
                                                  begin ? &zero : &one, array_of(d, c, out), (int)p),
                              "cublasDgemm");
                else {
                    blas_good(d,
                              gm_cuda.cublasSgemm(d->blas[side], CUBLAS_AS_IS, CUBLAS_TRANSPOSED, (int)p, (int)p, (int)some, &one_f,
                                                  (const float *)(uintptr_t)from, (int)p, (const float *)(uintptr_t)mine, (int)p, &zero_f,
                                                  (float *)(uintptr_t)sum, (int)p),
                              "cublasSgemm");
                    void *add[] = {&d->states, &c, &at_out, &elements, (void *)&sum, &begin};
                    gm_device_launch(d, d->side[side], "gm_add_real", (GmGrid){.x = blocks_for(d, elements)}, add);
                }
                if (n == 0) break;
            }
        }
        join_sides(d, sides);
    }
    gm_device_time_to(d, timing, d->stream);
}

void gm_device_row_sums(GmRun *run, long n, long p, const void *X, size_t w, size_t out)
{
    GmDevice *d = run->device;
    if (p <= 0) return;
    // Some 100 numbers a thread, but no more chunks than keep a GPU busy: each has p sums.
    const long most = p < 100 ? 4096 : 1024, even = (n + most - 1) / most, least = p < 25 ? 1024 : p < 100 ? 256 : 128;
    long chunk = even > least ? even : least, chunks = n > 0 ? (n + chunk - 1) / chunk : 0;
    uint64_t at_w = w, at_out = out;
    const CUdeviceptr part = gm_device_scratch(d, AT_PART, sizeof(double) * (size_t)(chunks * p * d->chains + 1));
    GmPieces piece = gm_device_pieces(d, X, n, (size_t)p * gm_device_element(d, GM_REAL), chunk);
    long before;
    const int fours = d->chains / 4, rest = d->chains % 4;
    int first_chain;
    void *sums[] = {&d->states, &d->place, &first_chain, &n, &p, &chunk, &before, &chunks, &piece.X, &at_w, (void *)&part};
    while (chunks > 0 && gm_device_piece(d, &piece)) {
        before = piece.first / chunk;
        GmGrid grid = {.x = (p + 255) / 256, .y = (piece.rows + chunk - 1) / chunk, .z = fours};
        first_chain = 0;
        if (fours > 0) gm_device_launch(d, d->stream, "gm_row_sums_4", grid, sums);
        first_chain = 4 * fours;
        grid.z = rest;
        if (rest > 0) gm_device_launch(d, d->stream, "gm_row_sums_1", grid, sums);
    }
    void *add[] = {&d->states, &d->place, &p, &chunks, (void *)&part, &at_out};
    gm_device_launch(d, d->stream, "gm_row_sums_add", (GmGrid){.x = p < 32768 ? (p + 7) / 8 : 4096, .y = d->chains}, add);
}

// C[rows, columns] (+)= A B or A B', all column-major, of type real.
static void multiply(GmDevice *d, bool transposed, long rows, long columns, long inner, const void *A, const void *B, bool adds, void *C)
{
    const int b = transposed ? CUBLAS_TRANSPOSED : CUBLAS_AS_IS, ldb = (int)(transposed ? columns : inner);
    if (d->failed || rows <= 0 || columns <= 0) return;
    fork_sides(d, 1);
    if (gm_device_element(d, GM_REAL) == 8)
        blas_good(d,
                  gm_cuda.cublasDgemm(d->blas[0], CUBLAS_AS_IS, b, (int)rows, (int)columns, (int)inner, &one, A, (int)rows, B, ldb,
                                      adds ? &one : &zero, C, (int)rows),
                  "cublasDgemm");
    else
        blas_good(d,
                  gm_cuda.cublasSgemm(d->blas[0], CUBLAS_AS_IS, b, (int)rows, (int)columns, (int)inner, &one_f, A, (int)rows, B, ldb,
                                      adds ? &one_f : &zero_f, C, (int)rows),
                  "cublasSgemm");
    join_sides(d, 1);
}

// The outputs of all chains are side by side, so that X is read once for all of them: q = k * chains of a row. In a product that is not
// followed by a kernel (log_joint and the like, once for a draw) a thread makes one output.
static void outputs(GmDevice *d, long n, const GmProduct *r, const void *coefficients, void *joint)
{
    long k = r->k, p = r->p, q = k * d->chains;
    const size_t element = gm_device_element(d, GM_REAL);
    GmPieces piece = gm_device_pieces(d, r->X, n, (size_t)p * element, 1);
    while (gm_device_piece(d, &piece))
        multiply(d, false, q, piece.rows, p, coefficients, piece.X, false, (char *)joint + (size_t)(piece.first * q) * element);
}

static void plain_outputs(GmDevice *d, long n, const GmProduct *r)
{
    long k = r->k, p = r->p;
    int transposed = r->transposed;
    uint64_t at_B = r->coefficients, at_eta = r->eta;
    GmPieces piece = gm_device_pieces(d, r->X, n, (size_t)p * gm_device_element(d, GM_REAL), 1);
    void *parameters[] = {&d->states, &piece.first, &piece.rows, &p, &k, &transposed, &piece.X, &at_B, &at_eta};
    while (gm_device_piece(d, &piece))
        gm_device_launch(d, d->stream, "gm_product", (GmGrid){.x = blocks_for(d, piece.rows * k), .y = d->chains}, parameters);
}

// In one reading of the matrix, by kernels of the program (products_pass.h). false: they do not serve here.
static bool products_together(GmDevice *d, const char *kernel, long n, size_t totals, long ntotals, const GmProduct *list, int count)
{
    ProductsPlan plan;
    ProductsPass *const pass = &plan.pass;
    long width = 0;
    if (d->rows_any || d->capability < 80 || gm_device_element(d, GM_REAL) != sizeof(float) || count > PRODUCTS_MOST) return false;
    for (int e = 0; e < count; e++) {
        if (list[e].X != list[0].X || list[e].p != list[0].p) return false;
        width += list[e].k;
    }
    if (!products_plan(n, list[0].p, width, d->chains, (int)ntotals, d->shared_most, &plan)) return false;
    for (pass->count = 0; pass->count < count; pass->count++) {
        const GmProduct *r = &list[pass->count];
        pass->of[pass->count] = (ProductsOf){.eta = r->eta,
                                             .weight = r->weight,
                                             .coefficients = r->coefficients,
                                             .out = r->out,
                                             .sums = r->sums == GM_NO_FIELD ? PRODUCTS_NO_FIELD : r->sums,
                                             .k = r->k,
                                             .transposed = r->transposed};
    }
    if (d->moved.steps > 0 || d->moved.together) pass->narrow = 0;  // chains end together
    pass->total = totals;
    pass->pieces = (float *)(uintptr_t)gm_device_scratch(d, AT_WIDE, sizeof(float) * (size_t)(plan.pieces + 1));
    pass->part = (float *)(uintptr_t)gm_device_scratch(d, AT_PART, sizeof(float) * (size_t)(plan.part + 1));
    pass->part_totals = (double *)(uintptr_t)gm_device_scratch(d, AT_PRODUCTS, sizeof(double) * (size_t)(plan.part_totals + 1));
    GmPieces piece = gm_device_pieces(d, list[0].X, n, sizeof(float) * (size_t)pass->p, pass->rows);
    if (piece.away) products_plan_even(&plan);
    void *parameters[] = {&d->states, &d->place, pass}, *with_rows[] = {d->data, &d->states, &d->place, pass};
    gm_device_launch(d, d->stream, "gm_products_pieces", (GmGrid){.x = plan.piece_blocks}, parameters);
    char name[2][300];
    const int names = pass->narrow ? 2 : 1;
    for (int k = 0; k < names; k++) {
        snprintf(name[k], sizeof name[k], "%s%s", kernel, k ? plan.narrow : plan.kernel);
        GmKernelEntry *e = gm_device_kernel(d, name[k]);
        if (e && plan.shared > 48 << 10)
            gm_device_good(d, gm_cuda.cuFuncSetAttribute(e->function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, plan.shared),
                           "shared memory");
    }
    while (gm_device_piece(d, &piece)) {
        pass->X = (const float *)(const void *)piece.X;
        pass->first_chunk = piece.first / pass->rows;
        const long chunks = piece.away ? (piece.rows + pass->rows - 1) / pass->rows : pass->chunks;
        for (int k = 0; k < names && chunks > 0; k++)
            gm_device_launch(d, d->stream, name[k],
                             (GmGrid){.x = chunks * pass->batches, .threads = PRODUCTS_THREADS, .shared = (size_t)plan.shared}, with_rows);
    }
    gm_device_launch(d, d->stream, "gm_products_sums", (GmGrid){.x = plan.sum_blocks}, parameters);
    return true;
}

void gm_device_products(GmRun *run, const char *kernel, long n, size_t totals, long ntotals, const GmProduct *list, int count)
{
    GmDevice *d = run->device;
    for (int e = 0; e < count && !kernel; e++) plain_outputs(d, n, &list[e]);
    if (!kernel || products_together(d, kernel, n, totals, ntotals, list, count) || !libraries(d)) return;
    const size_t element = gm_device_element(d, GM_REAL);
    size_t coefficients = 0, joints = 0;
    for (int e = 0; e < count; e++) {
        const size_t q = (size_t)(list[e].k * d->chains);
        coefficients = q * (size_t)list[e].p > coefficients ? q * (size_t)list[e].p : coefficients;
        joints = q * (size_t)n > joints ? q * (size_t)n : joints;
    }
    void *const B = (void *)(uintptr_t)gm_device_scratch(d, AT_PART, element * (coefficients + 1));
    void *const joint = d->chains == 1 ? NULL : (void *)(uintptr_t)gm_device_scratch(d, AT_OUTPUTS, element * (joints + 1));
    long width = 0;
    for (int e = 0; e < count; e++) {
        const GmProduct *r = &list[e];
        long k = r->k, p = r->p, elements = p * k * d->chains, rows = n;
        int chains = d->chains, transposed = r->transposed;
        uint64_t at_B = r->coefficients, at_eta = r->eta;
        width += k;
        void *gather[] = {&d->states, &p, &k, &chains, &transposed, &at_B, (void *)&B};
        gm_device_launch(d, d->stream, "gm_products_coefficients", (GmGrid){.x = blocks_for(d, elements)}, gather);
        outputs(d, n, r, B, joint ? joint : array_of(d, 0, r->eta));
        void *scatter[] = {&d->states, &rows, &k, &chains, (void *)&joint, &at_eta};
        if (joint && n > 0) gm_device_launch(d, d->stream, "gm_products_apart", (GmGrid){.x = blocks_for(d, rows * k * chains)}, scatter);
    }
    gm_device_team(run, kernel, 8 * n * width);  // what is done for a row is more than one sum
    for (int e = 0; e < count; e++) {
        const GmProduct *r = &list[e];
        long k = r->k, p = r->p, q = k * d->chains, elements = p * q, rows = n;
        int chains = d->chains, transposed = r->transposed;
        uint64_t at_w = r->weight, at_out = r->out;
        void *gather[] = {&d->states, &rows, &k, &chains, &at_w, (void *)&joint};
        if (joint && n > 0) gm_device_launch(d, d->stream, "gm_products_together", (GmGrid){.x = blocks_for(d, rows * k * chains)}, gather);
        const char *weights = joint ? joint : array_of(d, 0, r->weight);
        GmPieces piece = gm_device_pieces(d, r->X, n, (size_t)p * element, 1);
        bool adds = false;
        for (; gm_device_piece(d, &piece); adds = true)
            multiply(d, true, q, p, piece.rows, weights + (size_t)(piece.first * q) * element, piece.X, adds, B);
        void *out[] = {&d->states, &p, &k, &chains, &transposed, (void *)&B, &at_out};
        gm_device_launch(d, d->stream, "gm_products_back", (GmGrid){.x = blocks_for(d, elements)}, out);
        if (r->sums == GM_NO_FIELD) continue;
        const long even = (n + MOST_CHUNKS - 1) / MOST_CHUNKS;
        long chunk = even > 256 ? even : 256, chunks = (n + chunk - 1) / chunk;
        uint64_t at_sums = r->sums;
        const CUdeviceptr part = gm_device_scratch(d, AT_WIDE, sizeof(double) * (size_t)(q * chunks + 1));
        void *columns[] = {&d->states, &rows, &k, &chunk, &chunks, &at_w, (void *)&part};
        if (n > 0) gm_device_launch(d, d->stream, "gm_products_columns", (GmGrid){.x = chunks, .y = d->chains}, columns);
        void *add[] = {&d->states, &k, &chunks, (void *)&part, &at_sums};
        gm_device_launch(d, d->stream, "gm_products_columns_add", (GmGrid){.x = k, .y = d->chains, .threads = 32}, add);
    }
}

static long common_multiple(long a, long b)
{
    long x = a, y = b;
    while (y) {
        const long rest = x % y;
        x = y;
        y = rest;
    }
    return a / x * b;
}

// Chains are taken up to four at a time; a matrix that comes piece by piece is read once for all of them.
void gm_device_rows(GmRun *run, const char *kernel, long n, long p, const void *X, size_t beta, size_t out, size_t total)
{
    GmDevice *d = run->device;
    const bool adds = out != GM_NO_FIELD && (p > 0 || total != GM_NO_FIELD);
    const int element = (int)gm_device_element(d, GM_REAL);
    RowPlan *plan = gm_alloc((size_t)d->chains, sizeof *plan);
    int groups = 0;
    long partial = 0, step = 1;
    for (int chain = 0; chain < d->chains; chain += plan[groups++].pass.chains) {
        RowPlan *g = &plan[groups];
        *g = row_plan(n, p, d->chains - chain, element, d->rows_any ? 0 : d->shared_most);
        g->pass.beta = beta == GM_NO_FIELD ? ROW_NO_FIELD : beta;
        g->pass.out = adds ? out : ROW_NO_FIELD;
        g->pass.total = total == GM_NO_FIELD ? ROW_NO_FIELD : total;
        g->pass.chain = chain;
        if (!adds) row_plan_without_sums(g);
        partial += g->partial;
        step = common_multiple(step, g->pass.rows);
    }
    const CUdeviceptr sums = adds ? gm_device_scratch(d, AT_PART, sizeof(double) * (size_t)(partial + 1)) : 0;
    partial = 0;
    for (int k = 0; k < groups; k++) {
        plan[k].pass.partial = adds ? (double *)(uintptr_t)sums + partial : NULL;
        partial += plan[k].partial;
    }
    char name[300];
    GmPieces piece = gm_device_pieces(d, X, n, (size_t)(p * element), step);
    while (gm_device_piece(d, &piece))
        for (int k = 0; k < groups && piece.rows > 0; k++) {
            RowPass *pass = &plan[k].pass;
            pass->X = piece.X;
            pass->first_chunk = piece.first / pass->rows;
            snprintf(name, sizeof name, "%s%s", kernel, plan[k].kernel);
            GmKernelEntry *e = gm_device_kernel(d, name);
            if (e && plan[k].shared > 48 << 10)
                gm_device_good(d, gm_cuda.cuFuncSetAttribute(e->function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, plan[k].shared),
                               "shared memory");
            void *parameters[] = {d->data, &d->states, &d->place, pass};
            gm_device_launch(
                d, d->stream, name,
                (GmGrid){.x = (piece.rows + pass->rows - 1) / pass->rows, .threads = plan[k].threads, .shared = (size_t)plan[k].shared},
                parameters);
        }
    for (int k = 0; k < groups && adds; k++) {
        void *parameters[] = {d->data, &d->states, &d->place, &plan[k].pass};
        gm_device_launch(d, d->stream, "gm_row_pass_sums", (GmGrid){.x = plan[k].sum_blocks, .threads = ROW_SUM_THREADS}, parameters);
    }
    free(plan);
}
