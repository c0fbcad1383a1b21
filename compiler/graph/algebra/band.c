// band.c -- joint normals along a chain: elements that share terms are at fixed distances along one subscript, so the precision is a band.
//
//   before   terms of x, mu:   x[t]*x[t - 1]: phi/s^2   x[t]^2: ...   x[t]*mu: 1/q^2   mu^2: ...
//   after    chain x along t, lag 1, border mu
//
// The subscripts of a variable of the chain are of three kinds. Along: in every term of two elements of the chain their difference is a
// number, at most MOST_LAG, or runs between such numbers: of x[t - j]*x[t - k], j and k in 1:3. Panel: it is the same in both, so that
// there is a chain for each value. Inner: any other; elements with the same subscripts along and of the panel are a node. With w elements a
// node and the lag l the precision is a band of (l + 1)*w - 1 places below the diagonal, and so is its Cholesky factor (Rue 2001).
// Variables without such a subscript are the border, which is dense: they are drawn by the Schur complement.
//
// Conditions, each tested here: variables of the chain have the same extents along and over the panel, since an offset between them would
// have to be data. Differences are numbers, or lie between numbers, for all terms, also of two variables. Listed elements, x[1] and x[T],
// are a number apart; otherwise there is no band. Lags are numbers. Conditions, gathers (x[g[i]]), missing responses and elements without a
// statement need no test: they are in the coefficients and loops of the terms.
#include <math.h>
#include "band.h"

enum { MOST_LAG = 16, SMALL_NODE = 8 };

typedef enum { PANEL, ALONG, INNER } Kind;
typedef struct Kinds {
    Kind of[MAX_RANK];
} Kinds;

static int place_in(Var *const *block, int n, const Var *v)
{
    for (int i = 0; i < n; i++)
        if (block[i] == v) return i;
    return -1;
}

static bool coupled_pair(const BlockTerm *t) { return t->degree == 2 && t->ref[0] != t->ref[1]; }

// Between which numbers e lies, where its indices run between numbers.
static bool between(const Expr *e, double *least, double *most)
{
    double lo, hi;
    switch (e->kind) {
    case EX_NUM: *least = *most = e->number; return true;
    case EX_INDEX:
        if (!e->index->lo || !e->index->hi || e->index->lo->kind != EX_NUM || e->index->hi->kind != EX_NUM) return false;
        *least = e->index->lo->number;
        *most = e->index->hi->number;
        return true;
    case EX_ADD:
        *least = *most = 0;
        for (int i = 0; i < e->nargs; i++) {
            if (!between(e->args[i], &lo, &hi)) return false;
            *least += lo;
            *most += hi;
        }
        return true;
    case EX_MUL:
        if (e->nargs != 2 || e->args[0]->kind != EX_NUM || !between(e->args[1], &lo, &hi)) return false;
        *least = e->args[0]->number * (e->args[0]->number < 0 ? hi : lo);
        *most = e->args[0]->number * (e->args[0]->number < 0 ? lo : hi);
        return true;
    case EX_REF:
    case EX_POW:
    case EX_CALL:
    case EX_REDUCE:
    case EX_ARRAY:
    case EX_AT: return false;
    }
    return false;
}

bool band_apart(Expr *a, Expr *b, int *least, int *most)
{
    Expr *apart = ex_sub(a, b);
    double lo, hi, first, last;
    if (!between(apart, &lo, &hi) || (lo < hi && between(a, &first, &last)) || !(lo >= -MOST_LAG && hi <= MOST_LAG) || lo != floor(lo) ||
        hi != floor(hi) || !ex_is_whole(apart))
        return false;
    *least = (int)lo;
    *most = (int)hi;
    return true;
}

static bool are_near(Expr *a, Expr *b)
{
    int least, most;
    return band_apart(a, b, &least, &most);
}

// Of the first variable: from the terms of two of its elements.
static bool kinds_of_first(const Var *v, const BlockTerm *terms, Kind *kind)
{
    bool apart[MAX_RANK] = {false}, other[MAX_RANK] = {false};
    for (const BlockTerm *t = terms; t; t = t->next) {
        if (!coupled_pair(t) || t->ref[0]->var != v || t->ref[1]->var != v) continue;
        for (int d = 0; d < v->rank; d++) {
            if (t->ref[0]->args[d] == t->ref[1]->args[d]) continue;
            if (are_near(t->ref[0]->args[d], t->ref[1]->args[d])) apart[d] = true;
            else other[d] = true;
        }
    }
    int at = -1;
    for (int d = 0; d < v->rank; d++) {
        const bool small = v->dim[d]->kind == EX_NUM && v->dim[d]->number <= SMALL_NODE;
        kind[d] = other[d] ? INNER : !apart[d] ? PANEL : small ? INNER : ALONG;
        if (kind[d] != ALONG) continue;
        if (at >= 0) return false;
        at = d;
    }
    return at >= 0;
}

// Of another one: from its terms with variables that are known.
static bool kinds_of_next(Var *const *block, int known, Var *v, const BlockTerm *terms, const Kinds *kinds, Kind *kind)
{
    for (const BlockTerm *t = terms; t; t = t->next) {
        if (t->degree != 2) continue;
        const int mine = t->ref[0]->var == v ? 0 : 1, i = t->ref[mine]->var == v ? place_in(block, known, t->ref[!mine]->var) : -1;
        if (i < 0) continue;
        const Expr *own = t->ref[mine], *other = t->ref[!mine];
        bool used[MAX_RANK] = {false};
        for (int d = 0; d < v->rank; d++) kind[d] = INNER;
        bool all = true;
        for (int k = 0; k < other->nargs; k++) {
            if (kinds[i].of[k] == INNER) continue;
            int at = -1;
            for (int d = 0; d < v->rank && at < 0; d++)
                if (!used[d] && v->dim[d] == other->var->dim[k] &&
                    (kinds[i].of[k] == PANEL ? own->args[d] == other->args[k] : are_near(own->args[d], other->args[k])))
                    at = d;
            if (at < 0) {
                all = false;
                break;
            }
            used[at] = true;
            kind[at] = kinds[i].of[k];
        }
        return all;
    }
    return false;
}

// The subscripts of each chain by what they are: of panels, along, inner; and where each begins. False: lengths or panels differ.
static bool place_chains(Band *b, Var *const *block, const Kinds *kinds)
{
    const Var *first = block[0];
    for (int i = 0; i < b->nchain; i++) {
        ChainVar *c = &b->chain[i];
        const Var *v = block[i];
        Expr *size = ex_num(1);
        for (int d = 0; d < v->rank; d++) {
            if (kinds[i].of[d] == PANEL) c->panel[c->npanel++] = d;
            else if (kinds[i].of[d] == ALONG) c->along = d;
            else {
                c->inner[c->ninner++] = d;
                size = ex_mul2(size, v->dim[d]);
            }
        }
        if (c->npanel != b->chain[0].npanel || v->dim[c->along] != first->dim[b->chain[0].along]) return false;
        b->offset[i] = b->width;
        b->width = ex_add2(b->width, size);
    }
    return true;
}

// Panels in the order of the first variable's.
static bool order_panels(ChainVar *c, const Var *v, const ChainVar *first, const Var *of_first)
{
    bool used[MAX_RANK] = {false};
    int order[MAX_RANK];
    for (int k = 0; k < first->npanel; k++) {
        int to = -1;
        for (int m = 0; m < c->npanel && to < 0; m++)
            if (!used[m] && v->dim[c->panel[m]] == of_first->dim[first->panel[k]]) to = m;
        if (to < 0) return false;
        used[to] = true;
        order[k] = c->panel[to];
    }
    for (int k = 0; k < first->npanel; k++) c->panel[k] = order[k];
    return true;
}

// Variables behind the chains.
static bool place_border(Band *b, Var *const *block, int nblock)
{
    for (int i = b->nchain; i < nblock; i++) {
        if (block[i]->rank > 1 || block[i]->constraint != CONSTRAINT_NONE) return false;
        b->offset[i] = b->border;
        b->border = ex_add2(b->border, block[i]->rank ? block[i]->dim[0] : ex_num(1));
    }
    return true;
}

// How far apart elements along the chains lie that a term has together.
static bool find_lag(Band *b, const BlockTerm *terms)
{
    for (const BlockTerm *t = terms; t; t = t->next) {
        if (t->degree != 2) continue;
        const int i = place_in(b->var, b->nchain, t->ref[0]->var), k = place_in(b->var, b->nchain, t->ref[1]->var);
        if (i < 0 || k < 0) continue;
        const ChainVar *c = &b->chain[i], *e = &b->chain[k];
        for (int m = 0; m < c->npanel; m++)
            if (t->ref[0]->args[c->panel[m]] != t->ref[1]->args[e->panel[m]]) return false;
        int least, most;
        if (!band_apart(t->ref[0]->args[c->along], t->ref[1]->args[e->along], &least, &most)) return false;
        // whether it is the same element must not change with the distance
        for (int m = 0; m < c->ninner && least < most && i == k; m++)
            if (t->ref[0]->args[c->inner[m]] != t->ref[1]->args[c->inner[m]]) return false;
        if (-least > b->lag) b->lag = -least;
        if (most > b->lag) b->lag = most;
    }
    return true;
}

Band *band_of(Graph *g, Var *const *block, int nblock, int nchain, const BlockTerm *terms)
{
    Kinds *kinds = NEW_N(g->arena, Kinds, nchain + 1);
    for (int i = 0; i < nchain; i++) {
        if (block[i]->rank == 0 || block[i]->constraint != CONSTRAINT_NONE) return NULL;
        if (!(i ? kinds_of_next(block, i, block[i], terms, kinds, kinds[i].of) : kinds_of_first(block[0], terms, kinds[0].of))) return NULL;
    }
    Band *b = NEW(g->arena, Band);
    b->nchain = nchain;
    b->var = arena_copy(g->arena, block, sizeof *block * (size_t)nblock);
    b->chain = NEW_N(g->arena, ChainVar, nchain);
    b->width = b->border = ex_num(0);
    b->offset = NEW_N(g->arena, Expr *, nblock);
    if (!place_chains(b, block, kinds)) return NULL;
    for (int i = 1; i < nchain; i++)
        if (!order_panels(&b->chain[i], block[i], &b->chain[0], block[0])) return NULL;
    if (!place_border(b, block, nblock) || !find_lag(b, terms)) return NULL;
    b->length = block[0]->dim[b->chain[0].along];
    b->panels = ex_num(1);
    for (int m = 0; m < b->chain[0].npanel; m++) b->panels = ex_mul2(b->panels, block[0]->dim[b->chain[0].panel[m]]);
    b->in_place = nchain == 1;  // panels, along, inner: the order of the draw
    for (int m = 0; m < b->chain[0].npanel; m++) b->in_place &= b->chain[0].panel[m] < b->chain[0].along;
    for (int m = 0; m < b->chain[0].ninner; m++) b->in_place &= b->chain[0].inner[m] > b->chain[0].along;
    return b->lag ? b : NULL;
}
