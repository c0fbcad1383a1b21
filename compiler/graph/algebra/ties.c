// ties.c -- discrete unknowns that determine each other: drawn one by one, they could never change.
//
//   a ~ bernoulli(0.3); b ~ bernoulli(a)
//   (0, 0) and (1, 1) are possible, and no change of a alone or of b alone leads from one to the other
//
// The density of a factor is evaluated for each combination of values of its discrete unknowns, as far as these decide whether it is 0. The
// possible combinations are the nodes of a graph, two of which are neighbours if they differ in one unknown. If it is not connected, a
// chain that draws one unknown at a time is not irreducible (Roberts and Smith 1994).
#include <math.h>
#include <string.h>
#include "ties.h"
#include "../terms/var.h"
#include "../terms/supports.h"
#include "../terms/factor.h"
#include "../terms/reads.h"
#include "afresh.h"

enum { MOST_COMBINATIONS = 1024 };

typedef struct Corner {
    Expr *ref[MOST_TIED];
    double value[MOST_TIED];
    int n;
} Corner;

static double truth(bool holds) { return holds ? 1 : 0; }

// A number, or NAN: other things decide.
static double value_at(const Expr *e, const Corner *at)
{
    double x[3] = {NAN, NAN, NAN};
    switch (e->kind) {
    case EX_NUM: return e->number;
    case EX_REF:
        for (int i = 0; i < at->n; i++)
            if (at->ref[i] == e) return at->value[i];
        return NAN;
    case EX_ADD: {
        double sum = 0;
        for (int i = 0; i < e->nargs; i++) {
            const double term = value_at(e->args[i], at);
            if (term == -INFINITY) return term;
            sum += term;
        }
        return sum;
    }
    case EX_MUL: {
        double product = 1;
        for (int i = 0; i < e->nargs; i++) {
            const double factor = value_at(e->args[i], at);
            if (factor == 0) return 0;  // 0 log 0 = 0
            product *= factor;
        }
        return product;
    }
    case EX_POW: return pow(value_at(e->args[0], at), e->number);
    case EX_CALL: break;
    case EX_INDEX:
    case EX_REDUCE:
    case EX_ARRAY:
    case EX_AT: return NAN;
    }
    for (int i = 0; i < e->nargs && i < 3; i++) x[i] = value_at(e->args[i], at);
    switch (e->fn) {
    case FN_if_else: return isnan(x[0]) ? NAN : x[0] != 0 ? x[1] : x[2];
    case FN_log_sum_exp2: return x[0] == -INFINITY && x[1] == -INFINITY ? -INFINITY : NAN;
    case FN_WITHIN: return x[0] < x[1] || x[0] > x[2] ? -INFINITY : isnan(x[0] + x[1] + x[2]) ? NAN : 0;
    case FN_NOT: return isnan(x[0]) ? NAN : truth(x[0] == 0);
    case FN_AND: return x[0] == 0 || x[1] == 0 ? 0 : isnan(x[0] + x[1]) ? NAN : 1;
    case FN_OR: return (x[0] == x[0] && x[0] != 0) || (x[1] == x[1] && x[1] != 0) ? 1 : isnan(x[0] + x[1]) ? NAN : 0;
    default: break;
    }
    for (int i = 0; i < e->nargs; i++)
        if (i > 2 || isnan(x[i])) return NAN;
    switch (e->fn) {
    case FN_EQ: return truth(x[0] == x[1]);
    case FN_NE: return truth(x[0] != x[1]);
    case FN_LT: return truth(x[0] < x[1]);
    case FN_LE: return truth(x[0] <= x[1]);
    case FN_log: return log(x[0]);
    case FN_log1p: return log1p(x[0]);
    case FN_log1m: return log1p(-x[0]);
    case FN_exp: return exp(x[0]);
    case FN_square: return x[0] * x[0];
    case FN_fabs: return fabs(x[0]);
    case FN_fmin: return fmin(x[0], x[1]);
    case FN_fmax: return fmax(x[0], x[1]);
    default: return NAN;
    }
}

double number_at(const Expr *e, int n, Expr *const *ref, const double *value)
{
    Corner at = {.n = n};
    for (int i = 0; i < n; i++) {
        at.ref[i] = ref[i];
        at.value[i] = value[i];
    }
    return value_at(e, &at);
}

// The discrete unknowns of a factor that are drawn one by one and have few values, each in one element.
typedef struct FoundTies {
    Corner *at;
    const Var *v;
    bool many;
} FoundTies;

static void note_reference(Expr *ref, void *with)
{
    FoundTies *f = with;
    if (f->at->n == MOST_TIED || (f->at->n && f->at->ref[f->at->n - 1]->var == f->v)) f->many = true;
    else f->at->ref[f->at->n++] = ref;
}

// Responses are drawn so where they are missing: with `missing` these count.
static bool unknowns_of(Graph *g, const Factor *f, bool missing, Corner *at, long *combinations)
{
    *combinations = 1;
    at->n = 0;
    for (int i = 0; i < g->nvars; i++) {
        const Var *v = g->vars[i];
        if (!(var_unknown(v) || (missing && v->response && !needed_for(g, v))) || (v->kind != VAR_DATA && !v->discrete) ||
            v->base != BASE_INT || v->summing.summed || v->kind == VAR_AUXILIARY || !factor_mentions(f, v))
            continue;
        const Expr *lo = end_of_summed(v, 0), *hi = end_of_summed(v, 1);
        if (!lo || !hi || lo->kind != EX_NUM || hi->kind != EX_NUM || hi->number - lo->number >= MOST_COMBINATIONS) continue;
        FoundTies found = {at, v, false};
        const int before = at->n;
        ex_references(f->log_density, v, note_reference, &found);
        if (found.many) return false;
        if (at->n > before) *combinations *= (long)(hi->number - lo->number) + 1;
        if (*combinations > MOST_COMBINATIONS) return false;
    }
    return at->n > 1;
}

static int root_of(const int *group, int i)
{
    while (group[i] != i) i = group[i];
    return i;
}

// Whether the possible combinations fall apart.
static bool falls_apart(const Factor *f, Corner *at, int combinations)
{
    int group[MOST_COMBINATIONS], roots = 0;
    for (int k = 0; k < combinations; k++) {
        int rest = k, stride = 1;
        for (int i = 0; i < at->n; i++) {
            const int lo = (int)end_of_summed(at->ref[i]->var, 0)->number, n = (int)end_of_summed(at->ref[i]->var, 1)->number - lo + 1;
            at->value[i] = lo + rest % n;
            rest /= n;
        }
        group[k] = value_at(f->log_density, at) == -INFINITY ? -1 : k;
        for (int i = 0; i < at->n && group[k] >= 0; i++) {  // neighbours that came before
            const int lo = (int)end_of_summed(at->ref[i]->var, 0)->number, n = (int)end_of_summed(at->ref[i]->var, 1)->number - lo + 1;
            for (int back = (int)at->value[i] - lo, other = k - stride; back > 0; back--, other -= stride)
                if (group[other] >= 0) group[root_of(group, other)] = root_of(group, k);
            stride *= n;
        }
    }
    for (int k = 0; k < combinations; k++) roots += group[k] == k;
    return roots > 1;
}

int tied_in(Graph *g, const Factor *f, bool missing, Var **tied)
{
    Corner at;
    long combinations;
    if (!factor_counts_at(f, g->nsums, true) || !unknowns_of(g, f, missing, &at, &combinations) || !falls_apart(f, &at, (int)combinations))
        return 0;
    for (int i = 0; i < at.n; i++) tied[i] = at.ref[i]->var;
    return at.n;
}
