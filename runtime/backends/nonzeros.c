// nonzeros.c -- nonzeros.h: matrices are few, and looked up one after the other.
#include "nonzeros.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct {
    GmNonzeros *at;
    int n, size;
} kept;

static void *room(size_t n)
{
    void *p = malloc(n ? n : 1);
    if (!p) {
        fprintf(stderr, "no memory is left for the elements of a matrix that are not 0\n");
        exit(6);  // GM_EXIT_MEMORY
    }
    return p;
}

void gm_nonzeros_open(const double *X, long n, long p)
{
    enum { LEAST = 4096 };  // elements: with fewer a pass is short either way
    if (n <= 0 || p <= 0 || n > (long)(~0ul >> 2) / p || n * p < LEAST || p > 2147483647) return;
    const double most = (0.5 * 0.25 * (double)n * (double)p - 2 * (double)n) / 1.2;
    double all = 0;
    for (long i = 0; i < n && all <= most; i++) {
        long some = 0;
        for (long j = 0; j < p; j++) some += X[i * p + j] != 0;
        all += (double)some;
    }
    if (all > most) return;
    GmNonzeros m = {.X = X,
                    .n = n,
                    .p = p,
                    .first = room(sizeof(long) * (size_t)(n + 1)),
                    .column = room(sizeof(int) * (size_t)all),
                    .value = room(sizeof(double) * (size_t)all)};
    long k = 0;
    for (long i = 0; i < n; i++) {
        m.first[i] = k;
        for (long j = 0; j < p; j++) {
            if (X[i * p + j] == 0) continue;
            m.column[k] = (int)j;
            m.value[k++] = X[i * p + j];
        }
    }
    m.first[n] = k;
    if (kept.n == kept.size) {
        kept.size = kept.size ? 2 * kept.size : 8;
        GmNonzeros *more = room(sizeof *more * (size_t)kept.size);
        if (kept.n) memcpy(more, kept.at, sizeof *more * (size_t)kept.n);
        free(kept.at);
        kept.at = more;
    }
    kept.at[kept.n++] = m;
}

void gm_nonzeros_close(const double *X)
{
    for (int i = 0; i < kept.n; i++) {
        if (kept.at[i].X != X) continue;
        free(kept.at[i].first);
        free(kept.at[i].column);
        free(kept.at[i].value);
        kept.at[i] = kept.at[--kept.n];
        return;
    }
}

const GmNonzeros *gm_nonzeros_of(const double *x, long p, long *row)
{
    for (int i = 0; i < kept.n; i++) {
        const GmNonzeros *m = &kept.at[i];
        if (m->p != p || x < m->X || x >= m->X + m->n * p || (x - m->X) % p != 0) continue;
        *row = (x - m->X) / p;
        return m;
    }
    return NULL;
}

void gm_nonzeros_times(const GmNonzeros *m, long row, long n, long k, const double *B, int transposed, double *eta)
{
    const long along = transposed ? 1 : k, across = transposed ? m->p : 1;
    for (long i = 0; i < n; i++)
        for (long c = 0; c < k; c++) {
            double sum = 0;
            for (long e = m->first[row + i]; e < m->first[row + i + 1]; e++) sum += m->value[e] * B[m->column[e] * along + c * across];
            eta[i * k + c] = sum;
        }
}

void gm_nonzeros_added(const GmNonzeros *m, long row, long n, long k, const double *W, int transposed, double *out)
{
    const long along = transposed ? 1 : k, across = transposed ? m->p : 1;
    for (long i = 0; i < n; i++)
        for (long c = 0; c < k; c++) {
            const double w = W[i * k + c];
            for (long e = m->first[row + i]; e < m->first[row + i + 1]; e++) out[m->column[e] * along + c * across] += w * m->value[e];
        }
}

void gm_nonzeros_gram(const GmNonzeros *m, long row, long n, double scale, const double *w, double *out)
{
    for (long i = 0; i < n; i++) {
        const double c = w ? w[i] : scale;
        for (long e = m->first[row + i]; e < m->first[row + i + 1]; e++) {
            const double x = c * m->value[e];
            double *to = out + m->column[e] * m->p;
            for (long f = m->first[row + i]; f <= e; f++) to[m->column[f]] += x * m->value[f];
        }
    }
}
