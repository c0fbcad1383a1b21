// last_draw.c -- `--init draws_2.csv`, or draws.nc: the last draw of a chain as initial values, name by name, as a JSON file would give
// them.
//
//   before   mu,x.1,x.2,...  1.5,0.2,-1      after   mu = 1.5, x = [0.2, -1]
//
// Columns are found by their names, so the order does not matter. What is no variable of the model (lp__, definitions, quantities of the
// predict block, missing values of data, which are drawn first in each sweep) is passed over. An unknown of which no column is there starts
// at random, which is said; one of which some are missing is refused.
#include "chains.h"
#include "fields.h"
#include "messages.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

// "x.2.3" -> field and element (row-major); -1: nothing of the model.
static int column_of(const GmModel *model, const GmMemory *m, const char *name, long *element)
{
    const size_t base = strcspn(name, ".");
    for (int f = 0; f < model->n_state; f++) {
        if (strncmp(model->state[f].name, name, base) != 0 || model->state[f].name[base]) continue;
        const GmShape *s = &m->shape[f];
        const char *at = name + base;
        const bool in_rows = gm_has_rows(model->state[f].name);
        *element = 0;
        for (int k = 0; k < s->rank; k++) {
            char *end;
            if (*at != '.') return -1;
            long i = strtol(at + 1, &end, 10);
            if (k == 0 && in_rows) {  // y.2.1: a row, and a place in it
                at = end;
                if (*at != '.') return -1;
                i = gm_place_in_rows(model->state[f].name, i, strtol(at + 1, &end, 10)) + 1;
            }
            if (end == at + 1 || i < 1 || i > s->dim[k])  // beyond a long: the largest one
                return -1;
            *element = *element * s->dim[k] + i - 1;
            at = end;
        }
        return *at ? -1 : f;
    }
    return -1;
}

static bool is_start(const GmField *f) { return gm_is_unknown(f->role); }

// The names and the last line with numbers; both are the caller's. False after a message.
static bool first_and_last(const char *path, char **names, char **numbers)
{
    gm_file_is_read(path);
    GmLines in;
    *names = *numbers = NULL;
    bool good = gm_lines_open(&in, path);
    for (char *text; good && (text = gm_lines_next(&in));) {
        if (!*text || *text == '#') continue;
        char **to = *names ? numbers : names;
        free(*to);
        *to = gm_copy_text(text);
    }
    good = good && !in.failed;
    gm_lines_close(&in);
    if (good && !*numbers) gm_error("%s: there are no draws in it", path);
    return good && *numbers;
}

// The same of a chain of a NetCDF file.
static bool of_netcdf(const char *path, long chain, char **names, char **numbers)
{
    GmNetcdfIn in;
    *names = *numbers = NULL;
    bool good = gm_netcdf_in_open(&in, path);
    const int at = good ? gm_netcdf_in_chain(&in, chain) : -1;
    double *x = gm_alloc((size_t)in.n_columns + 1, sizeof *x);
    good = at >= 0 && gm_netcdf_in_rows(&in, at, in.draws - 1, 1, x);
    if (good) {
        *names = gm_copy_text(in.header);
        *numbers = gm_alloc((size_t)in.n_columns * (GM_NUMBER_ROOM + 1) + 1, 1);
        char *to = *numbers;
        for (long c = 0; c < in.n_columns; c++) {
            to += gm_print_number(to, x[c], 0);
            *to++ = c + 1 < in.n_columns ? ',' : 0;
        }
    }
    free(x);
    gm_netcdf_in_close(&in);
    return good;
}

static bool read_line(const GmModel *model, const GmMemory *m, const char *path, char *names, char *numbers, double **x, bool **seen)
{
    long place = 0;
    for (char *name = strtok_r(names, ",", &names), *cell; name; name = strtok_r(NULL, ",", &names)) {
        place++;
        cell = strsep(&numbers, ",");
        if (!cell || !*cell) {
            gm_error("%s: its last line ends before the column of %s: the file was cut off", path, name);
            return false;
        }
        long e;
        const int f = column_of(model, m, name, &e);
        if (f < 0 || !is_start(&model->state[f])) continue;
        const long size = gm_shape_size(&m->shape[f]);
        if (!x[f]) {
            x[f] = gm_alloc((size_t)size, sizeof **x);
            seen[f] = gm_alloc((size_t)size, sizeof **seen);
        }
        const char *why;
        if (strcmp(cell, "nan") == 0 || strcmp(cell, "NaN") == 0 || strcmp(cell, "NA") == 0) x[f][e] = NAN;
        else if (!gm_parse_number(cell, &x[f][e], &why)) {
            gm_error("%s: column %ld, %s, of the last line: `%.60s` %s", path, place, name, cell, why);
            return false;
        }
        seen[f][e] = true;
    }
    if (numbers) {
        gm_error("%s: its last line has more numbers than there are columns", path);
        return false;
    }
    return true;
}

// All elements of field f, as the file has them; those that no statement draws stay what they are.
static bool add_value(const GmModel *model, GmMemory *m, const char *path, int f, const double *x, const bool *seen, GmValues *out)
{
    const GmField *field = &model->state[f];
    const GmShape *s = &m->shape[f];
    const long size = gm_shape_size(s);
    const void *now = gm_state_array(model, m, 0, f);
    GmValue *v = gm_values_add(out, field->name, path);
    if (!v) return false;
    v->type = field->type;
    v->rank = s->rank;
    memcpy(v->dim, s->dim, sizeof *v->dim * (size_t)s->rank);
    v->elements = gm_alloc((size_t)size, gm_size_of_element(field->type));
    for (long e = 0; e < size; e++) {
        if (!seen[e]) {
            char *name = gm_element_name(field->name, s->rank, s->dim, e);
            gm_error("%s: it has no column of %s, but of others of %s: these are not all draws of a run with these data", path, name,
                     field->name);
            free(name);
            return false;
        }
        const char *why = NULL;
        if (field->partial && isnan(x[e])) {  // an element that does not exist
            if (field->type == GM_INT) ((int32_t *)v->elements)[e] = ((const int32_t *)now)[e];
            else ((double *)v->elements)[e] = ((const double *)now)[e];
        } else if (!gm_store(field->type, v->elements, e, x[e], &why)) {
            char *name = gm_element_name(field->name, s->rank, s->dim, e);
            gm_error("%s: %s = %.17g %s", path, name, x[e], why);
            free(name);
            return false;
        }
    }
    return true;
}

bool gm_last_draw(const GmModel *model, GmMemory *m, const char *path, long chain, GmValues *out)
{
    char *names, *numbers;
    bool good = gm_is_netcdf(path) ? of_netcdf(path, chain, &names, &numbers) : first_and_last(path, &names, &numbers);
    double **x = gm_alloc((size_t)model->n_state + 1, sizeof *x);
    bool **seen = gm_alloc((size_t)model->n_state + 1, sizeof *seen), any = false;
    good = good && read_line(model, m, path, names, numbers, x, seen);
    for (int f = 0; f < model->n_state && good; f++) {
        const GmField *field = &model->state[f];
        if (x[f]) {
            good = add_value(model, m, path, f, x[f], seen[f], out);
            any = true;
        } else if (field->role != GM_AUXILIARY && is_start(field) && gm_shape_size(&m->shape[f]) > 0)
            gm_error("%s: there are no draws of %s in it (--params all keeps all): it starts at random", path, field->name);
    }
    if (good && !any) {
        gm_error("%s: none of its columns is an unknown of this model", path);
        good = false;
    }
    for (int f = 0; f < model->n_state; f++) {
        free(x[f]);
        free(seen[f]);
    }
    free(x);
    free(seen);
    free(names);
    free(numbers);
    return good;
}
