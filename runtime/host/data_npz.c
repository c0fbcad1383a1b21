// data_npz.c -- sparse matrices of scipy.sparse.save_npz: a zip file of .npy arrays.
//
//   format 'csr', shape (n, p), indptr[n + 1], indices[m], data[m]        row i has data[k] in column indices[k], indptr[i] <= k < indptr[i
//                                                                         + 1]; counted from 0
//   format 'csc'                                                          the same by columns
//   format 'coo', shape, row[m], col[m], data[m]
//
// In any order; entries of one place are added up, as SciPy does. The matrix becomes the array that the model declares: zeros, of which the
// system keeps the pages that are written. What is compressed is inflated by zlib, found when a file asks for it. Formats: PKWARE's .ZIP
// File Format Specification (with 64-bit sizes), RFC 1951, SciPy's documentation of save_npz.
#define _DEFAULT_SOURCE
#include "fields.h"
#include "inputs.h"
#include "messages.h"
#include "npy.h"

#include <ctype.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include "../backends/library.h"
#if defined(__has_include)
#if __has_include(<zlib.h>)
#include <zlib.h>
#define HAS_ZLIB 1
#endif
#endif

typedef struct Npz {
    const char *path;
    const unsigned char *bytes;
    size_t size, directory;  // where the central directory begins
    unsigned long entries;
} Npz;

static uint64_t number(const unsigned char *p, int bytes)
{
    uint64_t x = 0;
    for (int k = bytes; k-- > 0;) x = x << 8 | p[k];
    return x;
}

// ---- the zip file ----

static bool find_directory(Npz *z)
{
    enum { END = 22, END_64 = 56, LOCATOR = 20, LONGEST_COMMENT = 65535 };
    for (size_t back = END; back <= z->size && back <= END + LONGEST_COMMENT; back++) {
        const unsigned char *end = z->bytes + z->size - back;
        if (memcmp(end, "PK\5\6", 4) != 0) continue;
        z->entries = number(end + 10, 2);
        z->directory = number(end + 16, 4);
        if (back + LOCATOR <= z->size && memcmp(end - LOCATOR, "PK\6\7", 4) == 0) {
            const uint64_t at = number(end - LOCATOR + 8, 8);
            if (at <= z->size && z->size - at >= END_64 && memcmp(z->bytes + at, "PK\6\6", 4) == 0) {
                z->entries = number(z->bytes + at + 32, 8);
                z->directory = number(z->bytes + at + 48, 8);
            }
        }
        return z->directory <= z->size;
    }
    return false;
}

#ifdef HAS_ZLIB
static struct {
    int (*inflateInit2_)(z_stream *, int, const char *, int);
    int (*inflate)(z_stream *, int);
    int (*inflateEnd)(z_stream *);
} zlib;
#endif

// out[n] from `from`, `size` bytes of a deflated stream; or why not.
static const char *inflated(const unsigned char *from, size_t size, unsigned char *out, size_t n)
{
#ifdef HAS_ZLIB
    if (!zlib.inflate) {
        static const char *const sonames[] = {"libz.so.1", "libz.so", NULL};
        static char why[400];
        void *library = gm_library_open(sonames, NULL, "GM_ZLIB", "", why, sizeof why);
        if (!library || !gm_library_symbol(library, "inflateInit2_", &zlib.inflateInit2_) ||
            !gm_library_symbol(library, "inflateEnd", &zlib.inflateEnd) || !gm_library_symbol(library, "inflate", &zlib.inflate))
            return "it is compressed, and zlib is not found (apt-get install zlib1g, or save_npz(..., compressed=False))";
    }
    z_stream s = {0};
    if (zlib.inflateInit2_(&s, -15, ZLIB_VERSION, (int)sizeof s) != Z_OK) return "zlib cannot begin";
    size_t read = 0, written = 0;
    int status = Z_OK;
    while (status == Z_OK) {
        const size_t some = size - read < UINT_MAX ? size - read : UINT_MAX, room = n - written < UINT_MAX ? n - written : UINT_MAX;
        s.next_in = (unsigned char *)(uintptr_t)from + read;
        s.avail_in = (unsigned)some;
        s.next_out = out + written;
        s.avail_out = (unsigned)room;
        status = zlib.inflate(&s, Z_NO_FLUSH);
        read += some - s.avail_in;
        written += room - s.avail_out;
        if (status == Z_OK && some == s.avail_in && room == s.avail_out) break;
    }
    zlib.inflateEnd(&s);
    return status == Z_STREAM_END && written == n ? NULL : "its compressed bytes are damaged";
#else
    (void)from, (void)size, (void)out, (void)n;
    return "it is compressed, and this program was made without zlib (apt-get install zlib1g-dev, then build gmc again; or save_npz(..., "
           "compressed=False))";
#endif
}

// The cyclic redundancy check of zip files, by half bytes.
static uint32_t check_sum(const unsigned char *bytes, size_t n)
{
    uint32_t table[16], sum = 0xffffffff;
    for (uint32_t k = 0; k < 16; k++) {
        table[k] = k;
        for (int bit = 0; bit < 4; bit++) table[k] = table[k] >> 1 ^ (table[k] & 1 ? 0xedb88320 : 0);
    }
    for (size_t k = 0; k < n; k++) {
        sum ^= bytes[k];
        sum = sum >> 4 ^ table[sum & 15];
        sum = sum >> 4 ^ table[sum & 15];
    }
    return ~sum;
}

// The bytes of `name`.npy, in *room if they had to be inflated. false: there is none (*size 0), or it cannot be read, which is said (*size
// 1).
static bool member(const Npz *z, const char *name, const unsigned char **bytes, size_t *size, unsigned char **room)
{
    enum { HEADER = 46, LOCAL = 30 };
    const char *why = "its directory is damaged";
    const size_t length = strlen(name);
    size_t at = z->directory;
    *size = 0;
    for (unsigned long k = 0; k < z->entries; k++) {
        if (z->size - at < HEADER || memcmp(z->bytes + at, "PK\1\2", 4) != 0) goto damaged;
        const unsigned char *e = z->bytes + at;
        const size_t named = number(e + 28, 2), extra = number(e + 30, 2), comment = number(e + 32, 2);
        if (named + extra + comment > z->size - at - HEADER) goto damaged;
        at += HEADER + named + extra + comment;
        if (named != length + 4 || memcmp(e + HEADER, name, length) != 0 || memcmp(e + HEADER + length, ".npy", 4) != 0) continue;
        uint64_t packed = number(e + 20, 4), whole = number(e + 24, 4), local = number(e + 42, 4);
        for (const unsigned char *x = e + HEADER + named, *end = x + extra; end - x >= 4;) {
            const size_t tag = number(x, 2), n = number(x + 2, 2);
            const unsigned char *v = x + 4;
            if (n > (size_t)(end - v)) break;
            const unsigned char *const after = v + n;
            uint64_t *const wide[] = {&whole, &packed, &local};
            for (int w = 0; tag == 1 && w < 3; w++)
                if (*wide[w] == 0xffffffff && after - v >= 8) {
                    *wide[w] = number(v, 8);
                    v += 8;
                }
            x = after;
        }
        const unsigned method = (unsigned)number(e + 10, 2);
        if (local > z->size || z->size - local < LOCAL || memcmp(z->bytes + local, "PK\3\4", 4) != 0) goto damaged;
        const size_t begin = local + LOCAL + number(z->bytes + local + 26, 2) + number(z->bytes + local + 28, 2);
        if (begin > z->size || packed > z->size - begin) goto damaged;
        *bytes = z->bytes + begin;
        *size = whole;
        if (method == 0 && packed == whole) {
            why = "its bytes are damaged";
            if (check_sum(*bytes, whole) != number(e + 16, 4)) goto damaged;
            return true;
        }
        if (method != 8 || whole / 1040 > packed) {  // deflating makes nothing a thousand times as short
            why = "its compression is not known";
            goto damaged;
        }
        *room = gm_alloc(whole + 1, 1);
        why = inflated(z->bytes + begin, packed, *room, whole);
        *bytes = *room;
        if (!why && check_sum(*room, whole) != number(e + 16, 4)) why = "its compressed bytes are damaged";
        if (why) goto damaged;
        return true;
    }
    return false;
damaged:
    gm_error("%s: %s.npy in it cannot be read: %s", z->path, name, why);
    *size = 1;
    return false;
}

// ---- the matrix ----

typedef struct Array {
    Npy npy;
    unsigned char *room;
    long n;
} Array;

// One dimension of numbers, whole ones if `whole`; `length` of them unless that is negative.
static bool array(const Npz *z, const char *name, bool whole, long length, Array *a)
{
    *a = (Array){0};
    if (!member(z, name, &a->npy.bytes, &a->npy.size, &a->room)) {
        if (!a->npy.size) gm_error("%s: it has no %s.npy: scipy.sparse.save_npz writes it", z->path, name);
        return false;
    }
    char *path = gm_format("%s: %s.npy", z->path, name);
    bool good = gm_npy_header(&a->npy, path) && gm_npy_whole(&a->npy, path);
    if (good && (a->npy.rank != 1 || (whole && (a->npy.type == NPY_F8 || a->npy.type == NPY_F4 || a->npy.type == NPY_B1)))) {
        gm_error("%s: is no list of %snumbers", path, whole ? "whole " : "");
        good = false;
    }
    a->n = good ? a->npy.dim[0] : 0;
    if (good && length >= 0 && a->n != length) {
        gm_error("%s: has %ld elements, but should have %ld", path, a->n, length);
        good = false;
    }
    free(path);
    return good;
}

// The format's name: an array of no dimension, '|S3' or '<U3'.
static bool format_of(const Npz *z, char name[8])
{
    const unsigned char *bytes;
    size_t size;
    unsigned char *room = NULL;
    if (!member(z, "format", &bytes, &size, &room)) {
        if (!size) gm_error("%s: holds no matrix of scipy.sparse.save_npz; a dense array is saved by numpy.save, as FILE.npy", z->path);
        free(room);
        return false;
    }
    const size_t start = size > 10 ? 10 + number(bytes + 8, 2) : size;
    int n = 0;
    for (size_t k = start; k < size && n < 7; k++)
        if (bytes[k]) name[n++] = isalnum(bytes[k]) ? (char)bytes[k] : '?';
    name[n] = 0;
    free(room);
    return true;
}

static bool is_inside(const Npz *z, const char *what, long k, double at, long n)
{
    if (at >= 0 && at < (double)n) return true;
    gm_error("%s: entry %ld is in %s %.0f, but %ss are 0 to %ld", z->path, k, what, at, what, n - 1);
    return false;
}

// The ends of rows, or columns: from 0 up to `entries`.
static bool are_ends(const Npz *z, const Array *ends, long entries)
{
    double before = 0;
    for (long i = 0; i < ends->n; i++) {
        const double x = gm_npy_element(&ends->npy, (size_t)i);
        if (x < before || x > (double)entries || (i == 0 && x != 0)) {
            gm_error("%s: indptr.npy: element %ld is %.0f: it should begin with 0, and go up to %ld", z->path, i, x, entries);
            return false;
        }
        before = x;
    }
    return true;
}

static bool add(const Npz *z, GmValue *v, double *sums, long i, long j, double x)
{
    const long at = i * v->dim[1] + j;
    if (v->type != GM_INT) {
        ((double *)v->elements)[at] += x;
        return true;
    }
    sums[0] = ((int32_t *)v->elements)[at];
    const char *why = NULL;
    if (gm_store(GM_INT, v->elements, at, sums[0] + x, &why)) return true;
    char *name = gm_element_name(v->name, 2, v->dim, at);
    gm_error("%s: %s = %.17g %s", z->path, name, sums[0] + x, why);
    free(name);
    return false;
}

static bool fill(const Npz *z, GmValue *v, const char *format)
{
    const bool by_rows = strcmp(format, "csr") == 0, triples = strcmp(format, "coo") == 0;
    const long outer = by_rows ? v->dim[0] : v->dim[1], inner = by_rows ? v->dim[1] : v->dim[0];
    Array data = {0}, one = {0}, other = {0};
    double sum;
    bool good = array(z, "data", false, -1, &data) && array(z, triples ? "row" : "indptr", true, triples ? data.n : outer + 1, &one) &&
                array(z, triples ? "col" : "indices", true, triples ? data.n : -1, &other);
    if (good && other.n < data.n) {
        gm_error("%s: data.npy has %ld elements, and indices.npy %ld", z->path, data.n, other.n);
        good = false;
    }
    for (long k = 0; triples && good && k < data.n; k++) {
        const double i = gm_npy_element(&one.npy, (size_t)k), j = gm_npy_element(&other.npy, (size_t)k);
        good = is_inside(z, "row", k, i, v->dim[0]) && is_inside(z, "column", k, j, v->dim[1]) &&
               add(z, v, &sum, (long)i, (long)j, gm_npy_element(&data.npy, (size_t)k));
    }
    good = good && (triples || are_ends(z, &one, data.n));
    for (long i = 0; !triples && good && i < outer; i++)
        for (long k = (long)gm_npy_element(&one.npy, (size_t)i); good && k < (long)gm_npy_element(&one.npy, (size_t)i + 1); k++) {
            const double j = gm_npy_element(&other.npy, (size_t)k);
            good = is_inside(z, by_rows ? "column" : "row", k, j, inner) &&
                   add(z, v, &sum, by_rows ? i : (long)j, by_rows ? (long)j : i, gm_npy_element(&data.npy, (size_t)k));
        }
    free(data.room);
    free(one.room);
    free(other.room);
    return good;
}

static bool read_matrix(const Npz *z, GmValue *v)
{
    char format[8];
    Array shape = {0};
    if (!format_of(z, format)) return false;
    if (strcmp(format, "csr") != 0 && strcmp(format, "csc") != 0 && strcmp(format, "coo") != 0) {
        gm_error("%s: a matrix in the format `%s` is not read; scipy.sparse.save_npz(FILE, X.tocsr()) writes one that is", z->path, format);
        return false;
    }
    bool good = array(z, "shape", true, 2, &shape);
    for (int k = 0; k < 2 && good; k++) {
        const double n = gm_npy_element(&shape.npy, (size_t)k);
        good = n >= 0 && n < 9e15;
        if (!good) gm_error("%s: shape.npy: %.0f is no size", z->path, n);
        else v->dim[k] = (long)n;
    }
    free(shape.room);
    if (!good) return false;
    v->rank = 2;
    size_t bytes = v->type == GM_INT ? sizeof(int32_t) : sizeof(double);
    for (int k = 0; k < 2; k++)
        if (__builtin_mul_overflow(bytes, (size_t)v->dim[k], &bytes)) bytes = SIZE_MAX;
    void *map = bytes < SIZE_MAX / 4 ? mmap(NULL, bytes + 1, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0)
                                     : MAP_FAILED;
    if (map == MAP_FAILED) {
        gm_error("%s: %ld by %ld elements are more than there is room for; lists of columns and values for each row need no such array "
                 "(docs/language.md)",
                 z->path, v->dim[0], v->dim[1]);
        return false;
    }
    madvise(map, bytes + 1, MADV_NOHUGEPAGE);  // pages that are not written stay away
    v->elements = v->map = map;
    v->map_size = bytes + 1;
    return fill(z, v, format);
}

bool gm_npz_read(GmValues *values, const char *path, const char *name)
{
    const GmField *field = gm_values_wanted(values, name);
    if (!field) {
        gm_error("%s=%s: the model's data has no %s", name, path, name);
        return false;
    }
    size_t size;
    void *map = gm_map_file(path, &size);
    if (!map) return false;
    Npz z = {.path = path, .bytes = map, .size = size};
    GmValue *v = NULL;
    bool good = find_directory(&z);
    if (!good) gm_error("%s: is not a .npz file, or not all of one", path);
    else if ((v = gm_values_add(values, name, path))) v->type = field->type;
    good = v && read_matrix(&z, v);
    gm_unmap(map, size);
    return good;
}
