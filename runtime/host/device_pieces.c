// device_pieces.c -- matrices of data that stay in the memory of the host, read piece by piece.
//
//   copies     piece 0 -> buffer 0   piece 1 -> buffer 1   (free 0)  piece 2 -> buffer 0   ...      a stream of its own
//   kernels                          piece 0               piece 1               piece 2   ...      the main stream
//
// A piece is a number of whole chunks of the launch that reads it, and kernels count chunks and rows from the beginning of the matrix. So
// they make the same sums in the same order, and the draws are the same bit for bit. The first rows of a matrix lie on the card, as many as
// there is room for: they are the first piece, worked on while others are on their way.
#include "device_inside.h"

enum { ALIGNED = 256, PIECE = 64 << 20 };

static GmArray *array_of(GmDevice *d, const void *X)
{
    const CUdeviceptr at = (CUdeviceptr)(uintptr_t)X;
    for (int f = 0; f < d->n_arrays; f++) {
        GmArray *a = &d->array[f];
        if (a->bytes && at >= a->at && at < a->at + a->bytes) return a;
    }
    return NULL;
}

// ---- heads ----

// Room for pieces, and up to `spare` bytes of heads: the array that is read most first. Heads are filled when all is computed that is
// computed once.
void gm_device_pieces_open(GmDevice *d, size_t spare)
{
    if (d->failed || d->piece_size == 0) return;
    const size_t even = spare / 8 < PIECE ? spare / 8 / ALIGNED * ALIGNED : PIECE;
    if (even > d->piece_size) {
        spare -= 2 * (even - d->piece_size);
        d->piece_size = even;
    }
    gm_device_good(d, gm_cuda.cuStreamCreate(&d->feed, CU_STREAM_NON_BLOCKING), "a stream");
    for (int k = 0; k < 2 && !d->failed; k++) {
        gm_device_good(d, gm_cuda.cuEventCreate(&d->fed[k], CU_EVENT_DISABLE_TIMING), "an event");
        gm_device_good(d, gm_cuda.cuEventCreate(&d->eaten[k], CU_EVENT_DISABLE_TIMING), "an event");
        gm_device_have(d, &d->piece[k], d->piece_size, "pieces of data");
    }
    for (;;) {
        GmArray *most = NULL;
        for (int f = 0; f < d->n_arrays; f++) {
            GmArray *a = &d->array[f];
            if (a->away && a->read && !a->head && (!most || a->read > most->read)) most = a;
        }
        if (!most || d->failed || spare < 64 * ALIGNED) return;
        const size_t whole = most->bytes + ALIGNED < spare ? most->bytes : (spare - ALIGNED) / ALIGNED * ALIGNED;
        if (gm_device_take(d, &most->head, whole + ALIGNED) != 0) return;  // without, it is slower, but the same
        d->head_taken = true;
        most->head_bytes = whole;
        spare -= whole + ALIGNED;
    }
}

void gm_device_heads_fill(GmDevice *d)
{
    for (int f = 0; f < d->n_arrays && !d->failed; f++) {
        GmArray *a = &d->array[f];
        if (a->head) gm_device_good(d, gm_device_put(d, a->head, a->host, a->head_bytes), "sending data");
        a->head_filled = a->head != 0;
    }
}

void gm_device_pieces_close(GmDevice *d)
{
    gm_device_heads_drop(d);
    for (int k = 0; k < 2; k++) {
        gm_device_give(d, &d->piece[k], d->piece_size);
        if (d->fed[k]) gm_cuda.cuEventDestroy(d->fed[k]);
        if (d->eaten[k]) gm_cuda.cuEventDestroy(d->eaten[k]);
    }
    if (d->feed) gm_cuda.cuStreamDestroy(d->feed);
    for (int f = 0; f < d->n_arrays; f++)
        if (d->array[f].host) gm_cuda.cuMemFreeHost(d->array[f].host);
}

// ---- a reading ----

GmPieces gm_device_pieces(GmDevice *d, const void *X, long n, size_t row_bytes, long step)
{
    GmPieces p = {.X = X, .whole = X, .n = n, .row_bytes = row_bytes, .number = -1};
    GmArray *a = array_of(d, X);
    if (d->rehearsing && a) {
        const size_t least = row_bytes * (size_t)(step < n ? step : n);
        a->read += row_bytes * (size_t)n;
        if (least > a->step) a->step = least;
    }
    if (!a || !a->away || d->rehearsing || n == 0 || row_bytes == 0) return p;
    const size_t before = (size_t)((const char *)X - (const char *)a->host);
    const long fit = (long)((d->piece_size - GM_PIECE_MARGIN) / row_bytes) / step;
    p.away = a;
    p.step = (fit > 1 ? fit : 1) * step;
    if (!a->head_filled) return p;
    p.head = a->head_bytes > before ? (long)((a->head_bytes - before) / row_bytes) / step * step : 0;
    if (p.head > n || before + (size_t)n * row_bytes <= a->head_bytes) p.head = n;
    return p;
}

// Orders piece k of those that come from the host; none after the last.
static void order(GmDevice *d, const GmPieces *p, long k)
{
    const long first = p->head + k * p->step, rows = p->n - first < p->step ? p->n - first : p->step;
    if (rows <= 0 || d->failed) return;
    const char *from = p->whole + (size_t)first * p->row_bytes;
    const CUdeviceptr to = d->piece[k % 2] + (uintptr_t)from % ALIGNED;  // aligned as it was: libraries look
    gm_device_good(d, gm_cuda.cuMemcpyHtoDAsync(to, from, (size_t)rows * p->row_bytes, d->feed), "data from the host");
    gm_device_good(d, gm_cuda.cuEventRecord(d->fed[k % 2], d->feed), "an event");
}

bool gm_device_piece(GmDevice *d, GmPieces *p)
{
    if (d->failed) return false;
    p->number++;
    if (!p->away) {
        p->rows = p->n;
        return p->number == 0;
    }
    const long k = p->number - (p->head > 0);  // of those that come from the host
    if (p->number == 0 && p->head < p->n) {    // what was launched before may be at work on the buffers
        gm_device_good(d, gm_cuda.cuEventRecord(d->eaten[0], d->stream), "an event");
        gm_device_good(d, gm_cuda.cuStreamWaitEvent(d->feed, d->eaten[0], 0), "an event");
        order(d, p, 0);
        order(d, p, 1);
    } else if (k > 0 && p->head + (k + 1) * p->step < p->n) {
        gm_device_good(d, gm_cuda.cuEventRecord(d->eaten[(k - 1) % 2], d->stream), "an event");
        gm_device_good(d, gm_cuda.cuStreamWaitEvent(d->feed, d->eaten[(k - 1) % 2], 0), "an event");
        order(d, p, k + 1);
    }
    if (k < 0) {
        p->first = 0;
        p->rows = p->head;
        p->X = (const char *)(uintptr_t)(p->away->head + (CUdeviceptr)(p->whole - (const char *)p->away->host));
        return true;
    }
    p->first = p->head + k * p->step;
    if (p->first >= p->n || d->failed) return false;
    p->rows = p->n - p->first < p->step ? p->n - p->first : p->step;
    const uintptr_t at = (uintptr_t)d->piece[k % 2] + ((uintptr_t)p->whole + (uintptr_t)p->first * p->row_bytes) % ALIGNED;
    p->X = (const char *)(at - (uintptr_t)p->first * p->row_bytes);  // of row 0, which is not there
    const int timing = gm_device_time_from(d, "data from the host", d->stream);
    gm_device_good(d, gm_cuda.cuStreamWaitEvent(d->stream, d->fed[k % 2], 0), "an event");
    gm_device_time_to(d, timing, d->stream);
    return true;
}
