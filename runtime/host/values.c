// values.c -- named arrays out of files, before anything is known of their declarations.
#include "fields.h"
#include "inputs.h"
#include "messages.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

GmValue *gm_values_find(const GmValues *v, const char *name)
{
    for (int i = 0; i < v->n; i++)
        if (strcmp(v->value[i].name, name) == 0) return &v->value[i];
    return NULL;
}

GmValue *gm_values_add(GmValues *v, const char *name, const char *source)
{
    const GmValue *before = gm_values_find(v, name);
    if (before) {
        gm_error("%s: %s is given twice, also in %s", source, name, before->source);
        return NULL;
    }
    v->value = gm_grow(v->value, (size_t)v->n + 1, sizeof *v->value);
    GmValue *value = &v->value[v->n++];
    *value = (GmValue){.name = gm_copy_text(name), .source = gm_copy_text(source)};
    return value;
}

const GmField *gm_values_wanted(GmValues *v, const char *name)
{
    for (int i = 0; i < v->n_fields; i++)
        if (strcmp(v->fields[i].name, name) == 0) return &v->fields[i];
    enum { REMEMBERED = 1000 };  // hints need no more, and a table may have 10^5 columns
    if (v->n_unknown < REMEMBERED) {
        v->unknown = gm_grow(v->unknown, (size_t)v->n_unknown + 1, sizeof *v->unknown);
        v->unknown[v->n_unknown++] = gm_copy_text(name);
    }
    return NULL;
}

static void close_names(GmNames *n)
{
    if (!n) return;
    for (long k = 0; k < n->n; k++) free(n->name[k]);
    free(n->name);
    free(n->slot);
    free(n);
}

void gm_values_close(GmValues *v)
{
    for (int i = 0; i < v->n; i++) {
        GmValue *value = &v->value[i];
        if (value->map) gm_unmap(value->map, value->map_size);
        else free(value->elements);
        close_names(value->names);
        free(value->name);
        free(value->source);
        free(value->row);
    }
    for (int i = 0; i < v->n_unknown; i++) free(v->unknown[i]);
    free(v->value);
    free(v->unknown);
    *v = (GmValues){0};
}

long gm_value_size(const GmValue *v) { return gm_size_of(v->rank, v->dim); }

// ---- numbers ----

bool gm_parse_number(const char *text, double *out, const char **why)
{
    while (*text == ' ' || *text == '\t') text++;
    size_t n = strlen(text);
    while (n > 0 && (text[n - 1] == ' ' || text[n - 1] == '\t' || text[n - 1] == '\r')) n--;
    static const char *const missing[] = {"", "NA", "NaN", "null", ".", "#N/A"};
    for (size_t i = 0; i < sizeof missing / sizeof *missing; i++)
        if (strlen(missing[i]) == n && strncasecmp(missing[i], text, n) == 0) {
            *out = NAN;
            return true;
        }
    static const char *const infinite[] = {"Inf", "Infinity", "+Inf", "+Infinity", "-Inf", "-Infinity"};
    for (size_t i = 0; i < sizeof infinite / sizeof *infinite; i++)
        if (strlen(infinite[i]) == n && strncasecmp(infinite[i], text, n) == 0) {
            *out = *infinite[i] == '-' ? -INFINITY : INFINITY;
            return true;
        }
    *why = "is not a number";
    if (strspn(text, "+-.0123456789eE") < n)  // strtod would take hexadecimal and "nan(...)" too
        return false;
    char *end;
    errno = 0;
    const double x = strtod(text, &end);
    if (end != text + n) return false;
    if (errno == ERANGE && isinf(x)) {
        *why = "is too large for a double";
        return false;
    }
    *out = x;
    return true;
}

bool gm_store(GmType t, void *elements, long at, double x, const char **why)
{
    switch (t) {
    case GM_REAL:
    case GM_WIDE:
    case GM_SOLVE: ((double *)elements)[at] = x; return true;
    case GM_INT:
        if (isnan(x)) {
            ((int32_t *)elements)[at] = GM_MISSING_INT;
            return true;
        }
        if (x != floor(x)) {
            *why = "is not a whole number";
            return false;
        }
        if (!(fabs(x) <= INT32_MAX)) {
            *why = "does not fit an int of 32 bits";
            return false;
        }
        ((int32_t *)elements)[at] = (int32_t)x;
        return true;
    }
    return false;
}
