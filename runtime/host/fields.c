// fields.c -- what is asked of a field of the model: its shape, how many elements, what one of them is called, which data it stands for,
// whether an HMC update draws it.
#include "fields.h"
#include "messages.h"

#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

GmShape gm_field_shape(const GmField *field, int f, void (*more)(int, const void *, GmShape *), const void *data)
{
    GmShape s = {
        .rank = field->rank, .lower = field->bounded ? field->lower : -INFINITY, .upper = field->bounded ? field->upper : INFINITY};
    if (more) more(f + 1, data, &s);
    return s;
}

long gm_size_of(int rank, const long *dim)
{
    long size = 1;
    bool any = true;
    for (int k = 0; k < rank; k++) {
        any &= dim[k] != 0;
        if (__builtin_mul_overflow(size, dim[k] ? dim[k] : 1, &size)) size = LONG_MAX;
    }
    return any ? size : 0;
}

long gm_shape_size(const GmShape *s) { return gm_size_of(s->rank, s->dim); }

char *gm_shape_text(int rank, const long *dim)
{
    char text[GM_MAX_RANK * 24] = "1";
    size_t n = 0;
    for (int k = 0; k < rank; k++) n += (size_t)snprintf(text + n, sizeof text - n, k ? " x %ld" : "%ld", dim[k]);
    return gm_copy_text(text);
}

// ---- rows of different lengths ----

typedef struct Rows {
    char *name;
    long n, *before;  // elements before each row, and before the end
} Rows;

static struct {
    Rows *of;
    int n;
} rows;

void gm_rows_set(const char *name, const int32_t *length, long n)
{
    Rows *r = NULL;
    for (int k = 0; k < rows.n; k++)
        if (strcmp(rows.of[k].name, name) == 0) r = &rows.of[k];
    if (!r) {
        rows.of = gm_grow(rows.of, (size_t)rows.n + 1, sizeof *rows.of);
        r = &rows.of[rows.n++];
        *r = (Rows){.name = gm_copy_text(name)};
    }
    free(r->before);
    r->n = n;
    r->before = gm_alloc((size_t)n + 1, sizeof *r->before);
    for (long g = 0; g < n; g++) r->before[g + 1] = r->before[g] + (length[g] > 0 ? length[g] : 0);
}

// The row of a place, from 0, and the place within it; -1: the name has no rows.
static long row_of(const char *name, long *place)
{
    const Rows *r = NULL;
    for (int k = 0; k < rows.n; k++)
        if (strcmp(rows.of[k].name, name) == 0) r = &rows.of[k];
    if (!r || *place < 0 || *place >= r->before[r->n]) return -1;
    long low = 0, high = r->n;  // before[low] <= place < before[high]
    while (high - low > 1) {
        const long middle = low + (high - low) / 2;
        if (r->before[middle] <= *place) low = middle;
        else high = middle;
    }
    *place -= r->before[low];
    return low;
}

bool gm_has_rows(const char *name)
{
    for (int k = 0; k < rows.n; k++)
        if (strcmp(rows.of[k].name, name) == 0) return true;
    return false;
}

long gm_place_in_rows(const char *name, long row, long place)
{
    for (int k = 0; k < rows.n; k++) {
        const Rows *r = &rows.of[k];
        if (strcmp(r->name, name) == 0)
            return row < 1 || row > r->n || place < 1 || place > r->before[row] - r->before[row - 1] ? -1 : r->before[row - 1] + place - 1;
    }
    return -1;
}

char *gm_element_name(const char *name, int rank, const long *dim, long linear)
{
    long index[GM_MAX_RANK];
    for (int k = rank - 1; k >= 0; k--) {
        const long size = dim[k] > 0 ? dim[k] : 1;
        index[k] = linear % size;
        linear /= size;
    }
    char text[(GM_MAX_RANK + 1) * 24] = "";
    size_t n = 0;
    const long row = rank ? row_of(name, index) : -1;
    if (row >= 0) n = (size_t)snprintf(text, sizeof text, "%ld, ", row + 1);
    for (int k = 0; k < rank; k++) n += (size_t)snprintf(text + n, sizeof text - n, k ? ", %ld" : "%ld", index[k] + 1);
    return rank ? gm_format("%s[%s]", name, text) : gm_copy_text(name);
}

char *gm_dotted(char *name)
{
    char *to = name;
    for (const char *from = name; *from; from++)
        if (*from != ']' && *from != ' ') *to++ = *from == '[' || *from == ',' ? '.' : *from;
    *to = 0;
    return name;
}

char *gm_declared_text(const GmField *f, const GmShape *s)
{
    if (f->declared) return gm_copy_text(f->declared);
    char bounds[80] = "";
    if (s && isfinite(s->lower) && isfinite(s->upper)) snprintf(bounds, sizeof bounds, "<lower=%g, upper=%g>", s->lower, s->upper);
    else if (s && isfinite(s->lower)) snprintf(bounds, sizeof bounds, "<lower=%g>", s->lower);
    else if (s && isfinite(s->upper)) snprintf(bounds, sizeof bounds, "<upper=%g>", s->upper);
    static const char *const constrained[] = {
        [GM_SIMPLEX] = "simplex",         [GM_UNIT_VECTOR] = "unit_vector",           [GM_SUM_TO_ZERO] = "sum_to_zero_vector",
        [GM_ORDERED] = "ordered",         [GM_POSITIVE_ORDERED] = "positive_ordered", [GM_COVARIANCE] = "cov_matrix",
        [GM_CORRELATION] = "corr_matrix", [GM_CHOLESKY_COV] = "cholesky_factor_cov",  [GM_CHOLESKY_CORR] = "cholesky_factor_corr"};
    const char *type = f->type == GM_INT ? "int" : "real";
    if (f->constraint != GM_ANY) {
        type = constrained[f->constraint];
        *bounds = 0;  // they follow from the type
    }
    if (!s || s->rank == 0) return gm_format("%s%s %s%s", type, bounds, f->name, f->rank ? "[...]" : "");
    char *shape = gm_shape_text(s->rank, s->dim);
    char *text = gm_format("%s%s %s[%s]", type, bounds, f->name, shape);
    free(shape);
    return text;
}

bool gm_is_unknown(GmRole role)
{
    switch (role) {
    case GM_PARAMETER:
    case GM_LATENT:
    case GM_AUXILIARY: return true;
    case GM_DATA:
    case GM_IMPUTED:
    case GM_DERIVED:
    case GM_PREDICTED:
    case GM_DIAGNOSTIC:
    case GM_SUM: return false;
    }
    return false;
}

int gm_data_of_imputed(const GmModel *model, int state_field)
{
    for (int f = 0; f < model->n_data; f++)
        if (model->data[f].imputed_field == state_field + 1) return f;
    return -1;
}

static bool names(const char *list, const char *name)
{
    const size_t n = strlen(name);
    for (const char *at = list; (at = strstr(at, name)); at += n)
        if ((at == list || at[-1] == ' ') && (at[n] == 0 || at[n] == ',')) return true;
    return false;
}

bool gm_is_moved_by(const GmModel *model, const GmField *field, const char *moved, const char *summed)
{
    const char *name = field->part_of ? model->state[field->part_of - 1].name : field->name;
    return names(moved, name) || names(moved, field->name) || (summed && names(summed, field->name));
}

bool gm_is_computed(const GmField *f, int requests)
{
    return f->on_request ? (f->on_request & requests) != 0 : f->role == GM_DERIVED || f->role == GM_PREDICTED;
}
