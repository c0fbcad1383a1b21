// edges.c -- graphs of data: no pair of nodes is joined twice, no node is joined to itself, and there are as many parts as the law says.
//
//   u ~ icar(a, b, tau)     edge e joins a[e] and b[e]; 1 and 2, then 2 and 1, would count as two neighbours; a graph of two parts
//                           has a power of tau that is one too high
//
// Parts are found by trees of nodes whose roots are joined edge by edge (Galler and Fischer 1964), pairs that stand twice by sorting:
// E log E for E edges. What lies outside of the nodes is left to the requirements that the program checks itself, and what the texts of
// edges do not determine is left alone.
#include "messages.h"
#include "factors.h"

#include <stdlib.h>

typedef struct Edge {
    long low, high, number;
} Edge;

typedef struct Joined {
    const GmEdges *of;
    Formula to, nodes, parts;
    long around[2 * GM_MAX_RANK];  // the indices around the edges that are being collected
    Edge *edge;
    long n, size, n_nodes, n_parts;  // n_parts: -1 if any number will do, or it is not known
    bool refused, ends;              // an edge is wrong; no more edges are looked at
} Joined;

static int by_nodes(const void *a, const void *b)
{
    const Edge *x = a, *y = b;
    if (x->low != y->low) return x->low < y->low ? -1 : 1;
    if (x->high != y->high) return x->high < y->high ? -1 : 1;
    return x->number < y->number ? -1 : 1;
}

static bool pairs_stand_once(Joined *j)
{
    qsort(j->edge, (size_t)j->n, sizeof *j->edge, by_nodes);
    for (long k = 0; k < j->n; k++) {
        const Edge *e = &j->edge[k], *before = e - 1;
        if (e->low == e->high) {
            gm_error("edge %ld of the graph of %s joins node %ld to itself (%s); leave it out", e->number, j->of->law, e->low,
                     j->of->where);
            return false;
        }
        if (k == 0 || e->low != before->low || e->high != before->high) continue;
        gm_error("nodes %ld and %ld of the graph of %s are joined twice, by edges %ld and %ld, and would count as two neighbours (%s); "
                 "list each pair of neighbours once",
                 e->low, e->high, j->of->law, before->number, e->number, j->of->where);
        return false;
    }
    return true;
}

static long root(long *above, long node)
{
    while (above[node] != node) node = above[node] = above[above[node]];
    return node;
}

static bool parts_are_as_said(const Joined *j)
{
    long *above = gm_alloc((size_t)j->n_nodes + 1, sizeof *above), found = j->n_nodes, other = 0;
    for (long i = 1; i <= j->n_nodes; i++) above[i] = i;
    for (long k = 0; k < j->n; k++) {
        const long a = root(above, j->edge[k].low), b = root(above, j->edge[k].high);
        found -= a != b;
        above[a > b ? a : b] = a > b ? b : a;
    }
    for (long i = 2; i <= j->n_nodes && !other; i++)
        if (root(above, i) != 1) other = i;
    free(above);
    if (found == j->n_parts) return true;
    const char *s = j->n_parts == 1 ? "" : "s";
    if (found > j->n_parts)
        gm_error("the graph of %s has %ld parts without edges between them, and the law is that of %ld part%s (%s); nodes 1 and %ld lie in "
                 "two of them: join them by edges, or take a law of as many parts",
                 j->of->law, found, j->n_parts, s, j->of->where, other);
    else
        gm_error("the graph of %s has %ld part%s, and the law is that of %ld part%s (%s): give the number of its parts", j->of->law, found,
                 found == 1 ? "" : "s", j->n_parts, s, j->of->where);
    return false;
}

// All edges of one graph are there.
static void look(Joined *j)
{
    if (j->n && !j->ends) j->refused = !pairs_stand_once(j) || (j->n_parts >= 0 && !parts_are_as_said(j));
    j->ends |= j->refused;
    j->n = 0;
}

// A whole number from lo to hi; -1: it is none, or not known.
static long whole(const Formula *f, Box *b, long lo, long hi)
{
    if (!f->value) return -1;
    const Range r = formula_range(f, b);
    return !b->impossible && r.lo == r.hi && r.lo >= (double)lo && r.lo <= (double)hi ? (long)r.lo : -1;
}

static bool collect(const Formula *from, Box *b, void *with)
{
    Joined *j = with;
    bool another = j->n == 0;
    for (int k = 0; k + 1 < from->n; k++) another |= j->around[k] != b->index[k];
    if (another) {
        look(j);
        for (int k = 0; k + 1 < from->n; k++) j->around[k] = b->index[k];
        j->n_nodes = whole(&j->nodes, b, 0, INT32_MAX);
        j->n_parts = whole(&j->parts, b, 0, INT32_MAX);
    }
    const long x = whole(from, b, 1, j->n_nodes), y = whole(&j->to, b, 1, j->n_nodes);
    j->ends |= x < 0 || y < 0;  // outside of the nodes, which the program says itself, or not known
    if (j->ends) return false;
    if (j->n == j->size) {
        j->size = 2 * j->size + 64;
        j->edge = gm_grow(j->edge, (size_t)j->size, sizeof *j->edge);
    }
    j->edge[j->n++] = (Edge){x < y ? x : y, x < y ? y : x, b->index[from->n - 1]};
    return true;
}

bool gm_edges_good(const GmModel *model, const GmMemory *m, const GmData *d)
{
    if (!model->edges) return true;
    Factors all;
    bool good = true;
    factors_open(&all, model, m, d, false);
    Box b = {.model = model, .memory = m, .data = d};
    b.lo = gm_alloc((size_t)model->n_state + 1, sizeof *b.lo);
    b.hi = gm_alloc((size_t)model->n_state + 1, sizeof *b.hi);
    for (const GmEdges *e = model->edges; e->law && good; e++) {
        const Formula from = formula_read(&all, e->over, e->guard, e->from);
        Joined j = {.of = e};
        j.to = formula_read(&all, e->over, NULL, e->to);
        j.nodes = formula_read(&all, e->over, NULL, e->nodes);
        if (e->parts) j.parts = formula_read(&all, e->over, NULL, e->parts);
        formula_visit(&from, &b, collect, &j);
        look(&j);
        good = !j.refused;
        free(j.edge);
    }
    free(b.lo);
    free(b.hi);
    factors_close(&all);
    return good;
}
