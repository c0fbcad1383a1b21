// fill.c -- a lower bound of the fill of a sparse factor (fill.h).
//
//   leaves   elements of few neighbours, none beside another: they are eliminated first, which joins the neighbours of each to a clique
//            (Rose 1972)
//   hubs     those of the rest that have most neighbours; their graph is kept as bits
//
// The k-core of a graph is what remains when elements of fewer than k neighbours are removed again and again (Seidman 1983). Where the
// hubs' graph has a k-core its treewidth is k at least, so that each order of what remains meets a clique of k + 1 elements (Bodlaender and
// Koster 2011). Leaves are eliminated some at a time. The bound is looked at in between, and once it reaches what was asked for that is
// enough.
#include "fill.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_HUBS = 20000, WORD = 64 };                    // 50 MB of bits
static const double MOST_PAIRS = 2e9, FIRST_PAIRS = 5e7;  // pairs of neighbours that are listed: about 1 ns each

typedef struct Fill {
    long n, *begin, hubs, words;
    int *neighbour, *order, *hub;  // order: by degree; hub: its number, -1: none
    char *leaf;
    uint64_t *bits;                    // hubs x words
    int *degree, *queue, *start, *at;  // of the search for a core
} Fill;

static long degree_of(const Fill *f, long i) { return f->begin[i + 1] - f->begin[i]; }

static int make_neighbours(Fill *f, const int *first, const int *row)
{
    const long n = f->n;
    f->begin = calloc((size_t)n + 2, sizeof *f->begin);
    f->neighbour = malloc(sizeof *f->neighbour * (2 * (size_t)first[n] + 1));
    if (!f->begin || !f->neighbour) return 0;
    long *const next = f->begin + 1;  // moves up by one place while it is filled
    for (long j = 0; j < n; j++)
        for (long e = first[j]; e < first[j + 1]; e++)
            if (row[e] != j) {
                f->begin[j + 2]++;
                f->begin[row[e] + 2]++;
            }
    for (long i = 2; i <= n; i++) f->begin[i] += f->begin[i - 1];
    for (long j = 0; j < n; j++)
        for (long e = first[j]; e < first[j + 1]; e++)
            if (row[e] != j) {
                f->neighbour[next[j]++] = row[e];
                f->neighbour[next[row[e]]++] = (int)j;
            }
    return 1;
}

// By degree, equal ones as they come.
static int make_order(Fill *f)
{
    long *const count = calloc((size_t)f->n + 1, sizeof *count);
    f->order = malloc(sizeof *f->order * (size_t)(f->n + 1));
    if (count && f->order) {
        for (long i = 0; i < f->n; i++) count[degree_of(f, i) + 1]++;
        for (long k = 1; k <= f->n; k++) count[k] += count[k - 1];
        for (long i = 0; i < f->n; i++) f->order[count[degree_of(f, i)]++] = (int)i;
    }
    free(count);
    return count && f->order;
}

static int choose_leaves(Fill *f)
{
    enum { OPEN, LEAF, REST };
    f->leaf = calloc((size_t)f->n + 1, 1);
    f->hub = malloc(sizeof *f->hub * (size_t)(f->n + 1));
    if (!f->leaf || !f->hub) return 0;
    for (long k = 0; k < f->n; k++) {
        const long i = f->order[k];
        f->hub[i] = -1;
        if (f->leaf[i] != OPEN) continue;
        f->leaf[i] = LEAF;
        for (long e = f->begin[i]; e < f->begin[i + 1]; e++) f->leaf[f->neighbour[e]] = REST;
    }
    for (long k = f->n - 1; k >= 0 && f->hubs < MOST_HUBS; k--)
        if (f->leaf[f->order[k]] == REST) f->hub[f->order[k]] = (int)f->hubs++;
    for (long i = 0; i < f->n; i++) f->leaf[i] = f->leaf[i] == LEAF;
    f->words = (f->hubs + WORD - 1) / WORD;
    f->bits = calloc((size_t)(f->hubs * f->words) + 1, sizeof *f->bits);
    f->degree = malloc(sizeof(int) * (size_t)(4 * f->hubs + 4));
    if (!f->bits || !f->degree) return 0;
    f->queue = f->degree + f->hubs + 1;
    f->at = f->queue + f->hubs + 1;
    f->start = f->at + f->hubs + 1;
    return 1;
}

static void join(Fill *f, long a, long b) { f->bits[a * f->words + b / WORD] |= (uint64_t)1 << b % WORD; }

static void join_hubs(Fill *f)
{
    for (long i = 0; i < f->n; i++)
        for (long e = f->begin[i]; f->hub[i] >= 0 && e < f->begin[i + 1]; e++)
            if (f->hub[f->neighbour[e]] >= 0) join(f, f->hub[i], f->hub[f->neighbour[e]]);
}

// The neighbours of a leaf become a clique. How many pairs that are.
static double eliminate(Fill *f, long leaf, int *list)
{
    long n = 0;
    for (long e = f->begin[leaf]; e < f->begin[leaf + 1]; e++)
        if (f->hub[f->neighbour[e]] >= 0) list[n++] = f->hub[f->neighbour[e]];
    for (long a = 0; a < n; a++)
        for (long b = 0; b < n; b++) join(f, list[a], list[b]);
    return (double)n * (double)n;
}

static void count_degrees(Fill *f)
{
    for (long i = 0; i < f->hubs; i++) {
        int degree = 0;
        for (long w = 0; w < f->words; w++) degree += __builtin_popcountll(f->bits[i * f->words + w]);
        f->degree[i] = degree - (int)(f->bits[i * f->words + i / WORD] >> i % WORD & 1);
    }
}

// Whether the hubs' graph has a core of elements with k neighbours or more: the others are removed, one after the other.
static int has_core(Fill *f, long k)
{
    long queued = 0;
    count_degrees(f);
    for (long i = 0; i < f->hubs; i++)
        if ((f->at[i] = f->degree[i] < k)) f->queue[queued++] = (int)i;
    for (long next = 0; next < queued && f->hubs - queued > k; next++)
        for (long w = 0; w < f->words; w++)
            for (uint64_t rest = f->bits[f->queue[next] * f->words + w]; rest; rest &= rest - 1) {
                const long i = w * WORD + __builtin_ctzll(rest);
                if (f->at[i] || --f->degree[i] >= k) continue;
                f->at[i] = 1;
                f->queue[queued++] = (int)i;
            }
    return f->hubs - queued > k;
}

static int reaches(Fill *f, long block)
{
    int *const list = f->start;
    double listed = 0, next = FIRST_PAIRS;
    join_hubs(f);
    for (long k = 0; k < f->n && listed < MOST_PAIRS; k++) {
        if (!f->leaf[f->order[k]]) continue;
        listed += eliminate(f, f->order[k], list);
        if (listed < next) continue;
        if (has_core(f, block - 1)) return 1;
        next *= 2;
    }
    return has_core(f, block - 1);
}

int gm_fill_reaches(long n, const int *first, const int *row, long block)
{
    Fill f = {.n = n};
    const int found =
        block <= n && make_neighbours(&f, first, row) && make_order(&f) && choose_leaves(&f) && f.hubs >= block && reaches(&f, block);
    free(f.begin);
    free(f.neighbour);
    free(f.order);
    free(f.hub);
    free(f.leaf);
    free(f.bits);
    free(f.degree);
    return found;
}
