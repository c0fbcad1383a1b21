// simplicial.c -- simplicial.h.
#include "simplicial.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

void gm_simplicial_close(GmSimplicial *s)
{
    if (!s) return;
    free(s->order);
    free(s->first);
    free(s->row);
    free(s->first_left);
    free(s->left);
    free(s->at);
    free(s->first_of);
    free(s->column);
    free(s->value);
    free(s);
}

static int by_number(const void *a, const void *b) { return *(const int *)a - *(const int *)b; }

// The matrix by rows, in the order of the places.
static bool take_rows(GmSimplicial *s, const int *first, const int *row)
{
    const long n = s->n;
    int *place = malloc(sizeof *place * (size_t)n);
    s->column = malloc(sizeof *s->column * (size_t)(first[n] + 1));
    s->value = malloc(sizeof *s->value * (size_t)(first[n] + 1));
    s->first_of = calloc((size_t)n + 2, sizeof *s->first_of);
    if (!place || !s->column || !s->value || !s->first_of) {
        free(place);
        return false;
    }
    for (long k = 0; k < n; k++) place[s->order[k]] = (int)k;
    for (int filling = 0; filling < 2; filling++) {
        for (long j = 0; j < n; j++)
            for (long k = first[j]; k < first[j + 1]; k++) {
                const int a = place[j], b = place[row[k]], i = a > b ? a : b;
                if (filling) {
                    s->column[s->first_of[i + 1]] = a < b ? a : b;
                    s->value[s->first_of[i + 1]] = (int)k;
                }
                s->first_of[filling ? i + 1 : i + 2]++;
            }
        for (long i = 0; i <= n && !filling; i++) s->first_of[i + 1] += s->first_of[i];
    }
    free(place);
    return true;
}

// Row i of L has the entries of the matrix, and what is above them in the tree of eliminations, up to i.
static bool find_rows(GmSimplicial *s)
{
    const long n = s->n;
    long room = s->first_of[n] + 1;
    int *parent = malloc(sizeof *parent * (size_t)(2 * n)), *seen = parent + n;
    s->left = malloc(sizeof *s->left * (size_t)room);
    s->first_left = calloc((size_t)n + 1, sizeof *s->first_left);
    bool good = parent && s->left && s->first_left;
    for (long i = 0; i < n && good; i++) {
        long end = s->first_left[i];
        parent[i] = -1;
        seen[i] = (int)i;
        for (long k = s->first_of[i]; k < s->first_of[i + 1] && good; k++)
            for (int j = s->column[k]; seen[j] != (int)i; j = parent[j]) {
                seen[j] = (int)i;
                if (parent[j] < 0) parent[j] = (int)i;
                if (end == room) {
                    int *more = realloc(s->left, sizeof *more * (size_t)(room *= 2));
                    if (!more) {
                        good = false;
                        break;
                    }
                    s->left = more;
                }
                s->left[end++] = j;
            }
        qsort(s->left + s->first_left[i], (size_t)(end - s->first_left[i]), sizeof *s->left, by_number);
        s->first_left[i + 1] = end;
    }
    free(parent);
    return good;
}

static bool find_columns(GmSimplicial *s)
{
    const long n = s->n, left = s->first_left[n];
    s->entries = left + n;
    s->first = calloc((size_t)n + 1, sizeof *s->first);
    s->row = malloc(sizeof *s->row * (size_t)s->entries);
    s->at = malloc(sizeof *s->at * (size_t)(left + 1));
    long *end = malloc(sizeof *end * (size_t)n);
    const bool good = s->first && s->row && s->at && end;
    if (good) {
        for (long k = 0; k < left; k++) s->first[s->left[k] + 1]++;
        for (long j = 0; j < n; j++) {
            s->first[j + 1] += s->first[j] + 1;
            s->row[s->first[j]] = (int)j;
            end[j] = s->first[j] + 1;
        }
        for (long i = 0; i < n; i++)
            for (long k = s->first_left[i]; k < s->first_left[i + 1]; k++) {
                s->at[k] = end[s->left[k]]++;
                s->row[s->at[k]] = (int)i;
            }
    }
    free(end);
    return good;
}

GmSimplicial *gm_simplicial_open(long n, const int *first, const int *row, const int *order)
{
    GmSimplicial *s = calloc(1, sizeof *s);
    if (!s) return NULL;
    s->n = n;
    s->order = malloc(sizeof *s->order * (size_t)n);
    if (s->order) memcpy(s->order, order, sizeof *order * (size_t)n);
    if (s->order && take_rows(s, first, row) && find_rows(s) && find_columns(s)) return s;
    gm_simplicial_close(s);
    return NULL;
}

long gm_simplicial_factor(const GmSimplicial *s, const double *value, double *L, double *work)
{
    for (long i = 0; i < s->n; i++) {
        for (long k = s->first_of[i]; k < s->first_of[i + 1]; k++) work[s->column[k]] = value[s->value[k]];
        double pivot = work[i];
        work[i] = 0;
        for (long k = s->first_left[i]; k < s->first_left[i + 1]; k++) {
            const long j = s->left[k], from = s->first[j], at = s->at[k];
            const double l = work[j] / L[from];
            work[j] = 0;
            for (long e = from + 1; e < at; e++) work[s->row[e]] -= L[e] * l;
            pivot -= l * l;
            L[at] = l;
        }
        if (!(pivot > 0)) return i + 1;
        L[s->first[i]] = sqrt(pivot);
    }
    return 0;
}

void gm_simplicial_solve(const GmSimplicial *s, const double *L, double *x)
{
    for (long j = 0; j < s->n; j++) {
        const double v = x[j] /= L[s->first[j]];
        for (long e = s->first[j] + 1; e < s->first[j + 1]; e++) x[s->row[e]] -= L[e] * v;
    }
}

void gm_simplicial_solve_transposed(const GmSimplicial *s, const double *L, double *x)
{
    for (long j = s->n - 1; j >= 0; j--) {
        double v = x[j];
        for (long e = s->first[j] + 1; e < s->first[j + 1]; e++) v -= L[e] * x[s->row[e]];
        x[j] = v / L[s->first[j]];
    }
}
