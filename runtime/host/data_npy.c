// data_npy.c -- NumPy's .npy files: a magic string, a header that is a Python dictionary, then the elements.
//
//   \x93NUMPY 1 0 <length> {'descr': '<f8', 'fortran_order': False, 'shape': (3, 2), } <elements>
//
// Elements already in the layout that the model wants (C order, <f8 for real, <i4 for int) are mapped and never copied; others are
// converted once. Format: NumPy Enhancement Proposal 1, versions 1.0, 2.0 and 3.0.
#include "fields.h"
#include "inputs.h"
#include "messages.h"
#include "npy.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const struct {
    const char *descr;
    size_t size;
} npy_types[] = {
    [NPY_F8] = {"<f8", 8}, [NPY_F4] = {"<f4", 4}, [NPY_I8] = {"<i8", 8}, [NPY_I4] = {"<i4", 4}, [NPY_I2] = {"<i2", 2},
    [NPY_I1] = {"|i1", 1}, [NPY_U4] = {"<u4", 4}, [NPY_U2] = {"<u2", 2}, [NPY_U1] = {"|u1", 1}, [NPY_B1] = {"|b1", 1},
};

// The text after 'key': in the header, or NULL.
static const char *entry(const char *header, const char *key)
{
    const char *at = strstr(header, key);
    if (!at) return NULL;
    at += strlen(key);
    return at + strspn(at, "'\": ");
}

// Where a dimension is 0 the others may not be beyond all sizes either, as in NumPy: strides are products of them.
static bool read_shape(const char *text, Npy *npy)
{
    long room = 1;
    if (!text || *text++ != '(') return false;
    for (;;) {
        text += strspn(text, " ,");
        if (*text == ')') return true;
        char *end;
        errno = 0;
        const long n = strtol(text, &end, 10);
        if (end == text || n < 0 || errno || npy->rank == GM_MAX_RANK || __builtin_mul_overflow(room, n ? n : 1, &room)) return false;
        npy->dim[npy->rank++] = n;
        text = end + (*end == 'L');
    }
}

bool gm_npy_header(Npy *npy, const char *path)
{
    const unsigned char *b = npy->bytes;
    if (npy->size < 10 || memcmp(b, "\x93NUMPY", 6) != 0) {
        gm_error("%s: is not a .npy file", path);
        return false;
    }
    const bool wide = b[6] >= 2;
    if (b[6] < 1 || b[6] > 3 || (wide && npy->size < 12)) {
        gm_error("%s: version %d of the .npy format is not known", path, b[6]);
        return false;
    }
    const size_t start = wide ? 12 : 10;
    const size_t length = wide ? b[8] | (size_t)b[9] << 8 | (size_t)b[10] << 16 | (size_t)b[11] << 24 : b[8] | (size_t)b[9] << 8;
    if (length > npy->size - start) {
        gm_error("%s: the file ends inside its header", path);
        return false;
    }
    npy->begin = start + length;
    char *header = gm_alloc(length + 1, 1);
    memcpy(header, b + start, length);
    const char *descr = entry(header, "'descr'");
    const char *order = entry(header, "'fortran_order'");
    bool good = descr && order && read_shape(entry(header, "'shape'"), npy);
    if (!good) {
        gm_error("%s: the header is not understood (structured arrays, sizes beyond a long and more than %d dimensions are not read)", path,
                 GM_MAX_RANK);
    } else {
        npy->fortran = *order == 'T';
        const size_t n = sizeof npy_types / sizeof *npy_types;
        size_t k = 0;
        while (k < n && strncmp(descr, npy_types[k].descr, 3) != 0) k++;
        npy->type = (NpyType)k;
        good = k < n && (descr[3] == '\'' || descr[3] == '"');
        if (!good)
            gm_error("%s: element type %.*s is not read; save it with .astype(\"<f8\") or .astype(\"<i4\")", path,
                     (int)strcspn(descr, "',\"}"), descr);
    }
    free(header);
    return good;
}

double gm_npy_element(const Npy *npy, size_t at)
{
    const unsigned char *p = npy->bytes + npy->begin + at * npy_types[npy->type].size;
#define READ(T)                  \
    do {                         \
        T x;                     \
        memcpy(&x, p, sizeof x); \
        return (double)x;        \
    } while (0)
    switch (npy->type) {
    case NPY_F8: READ(double);
    case NPY_F4: READ(float);
    case NPY_I8: READ(int64_t);
    case NPY_I4: READ(int32_t);
    case NPY_I2: READ(int16_t);
    case NPY_I1: READ(int8_t);
    case NPY_U4: READ(uint32_t);
    case NPY_U2: READ(uint16_t);
    case NPY_U1: READ(uint8_t);
    case NPY_B1: READ(uint8_t);
    }
#undef READ
    return NAN;
}

// Copies all elements into v->elements, row-major, whatever their type and order in the file.
static bool copy(const Npy *npy, GmValue *v)
{
    const long size = gm_value_size(v);
    v->elements = gm_alloc((size_t)size, v->type == GM_INT ? sizeof(int32_t) : sizeof(double));
    long at[GM_MAX_RANK] = {0}, stride[GM_MAX_RANK];
    long product = 1;
    for (int k = 0; k < npy->rank; k++) {
        const int d = npy->fortran ? k : npy->rank - 1 - k;
        stride[d] = product;
        product *= npy->dim[d];
    }
    for (long i = 0; i < size; i++) {
        long from = 0;
        for (int k = 0; k < npy->rank; k++) from += at[k] * stride[k];
        const double x = gm_npy_element(npy, (size_t)from);
        const char *why = NULL;
        if (!gm_store(v->type, v->elements, i, x, &why)) {
            char *name = gm_element_name(v->name, v->rank, v->dim, i);
            gm_error("%s: %s = %.17g %s", v->source, name, x, why);
            free(name);
            return false;
        }
        for (int k = npy->rank - 1; k >= 0 && ++at[k] == npy->dim[k]; k--) at[k] = 0;
    }
    return true;
}

static size_t bytes_of(const Npy *npy)
{
    size_t bytes = npy_types[npy->type].size;
    for (int k = 0; k < npy->rank; k++)
        if (__builtin_mul_overflow(bytes, (size_t)npy->dim[k], &bytes)) bytes = SIZE_MAX;
    return bytes;
}

bool gm_npy_whole(const Npy *npy, const char *path)
{
    const size_t bytes = bytes_of(npy);
    if (bytes <= npy->size - npy->begin) return true;
    char *shape = gm_shape_text(npy->rank, npy->dim);
    gm_error("%s: the file is too short: %s elements need %zu bytes, there are %zu", path, shape, bytes, npy->size - npy->begin);
    free(shape);
    return false;
}

static bool take(Npy *npy, GmValue *v, void *map)
{
    if (!gm_npy_header(npy, v->source) || !gm_npy_whole(npy, v->source)) return false;
    const size_t bytes = bytes_of(npy);
    v->rank = npy->rank;
    memcpy(v->dim, npy->dim, sizeof v->dim);
    const bool same_type = (v->type != GM_INT && npy->type == NPY_F8) || (v->type == GM_INT && npy->type == NPY_I4);
    const bool row_major = !npy->fortran || npy->rank < 2;
    if (bytes == 0 || !same_type || !row_major || npy->begin % npy_types[npy->type].size != 0) return copy(npy, v);
    v->elements = (char *)map + npy->begin;
    v->map = map;
    v->map_size = npy->size;
    return true;
}

bool gm_npy_read(GmValues *values, const char *path, const char *name)
{
    const GmField *field = gm_values_wanted(values, name);
    if (!field) {
        gm_error("%s=%s: the model's data has no %s", name, path, name);
        return false;
    }
    size_t size;
    void *map = gm_map_file(path, &size);
    if (!map) return false;
    GmValue *v = gm_values_add(values, name, path);
    bool good = false;
    if (v) {
        v->type = field->type;
        Npy npy = {.bytes = map, .size = size};
        good = take(&npy, v, map);
    }
    if (!v || !v->map) gm_unmap(map, size);
    return good;
}
