// requirements.c -- one requirement of data: what data must satisfy in every run, in each iteration of loops and for all values of
// unknowns.
//
//   before   not K < c[i] at each i in 1:N, c an unknown of values 1 to M
//   after    not K < c, at each i in 1:N, c in 1:M
//
// Needs: the ranges of discrete unknowns.     Gives: g->requirements, without what follows from loops, conditions and declared bounds
// (prover.c); Var.wild.
#include <math.h>
#include <string.h>
#include "requirements.h"
#include "../terms/var.h"
#include "../terms/prover.h"
#include "../terms/reads.h"

// ---- what every run satisfies ----

// Does a requirement that no condition and no loop restricts say so?
static bool required_always(const Graph *g, Expr *e)
{
    for (const Requirement *k = g->requirements; k; k = k->next) {
        if (k->loops.n || k->loops.guard) continue;
        for (int i = 0; i < k->nparts; i++)
            if (k->part[i] && prove_length(ex_sub(e, k->part[i]))) return true;
    }
    return false;
}

// Numbers and data that no loop changes.
static bool is_fixed(const Expr *e)
{
    if (e->kind == EX_INDEX || e->loose || (e->kind == EX_REF && e->var->kind != VAR_DATA)) return false;
    for (int i = 0; i < e->nargs; i++)
        if (!is_fixed(e->args[i])) return false;
    return true;
}

Expr *subscript_inside(const Graph *g, Expr *s, Expr *dim)
{
    if (!is_fixed(s)) return NULL;
    Expr *const part[] = {ex_plus(s, -1), ex_sub(dim, s)}, *const holds[] = {ex_call2("<=", ex_num(1), s), ex_call2("<=", s, dim)};
    Expr *all = NULL;
    for (int i = 0; i < 2; i++)
        if (!prove_length(part[i]) && !required_always(g, part[i])) all = ex_both(all, holds[i]);
    return all;
}

typedef struct RequirementReads {
    const Graph *g;
    Expr *inside, **asked;
    int n, size;
} RequirementReads;

// Of a choice, and of a sum over a range, only what decides is always read: it is looked at next.
static Look test_read(const Expr *e, void *with)
{
    RequirementReads *r = with;
    const bool chooses = e->kind == EX_CALL && (e->fn == FN_if_else || e->fn == FN_AND || e->fn == FN_OR);
    for (int k = 0; k < e->nargs && e->kind == EX_REF; k++)
        r->inside = ex_both(r->inside, subscript_inside(r->g, e->args[k], e->var->dim[k]));
    for (int k = 0; k < (chooses ? 1 : e->kind == EX_REDUCE ? 2 : 0); k++) {
        ROOM(r->g->arena, r->asked, r->n, r->size);
        r->asked[r->n++] = e->args[k];
    }
    return chooses || e->kind == EX_REDUCE ? SKIP : LOOK;
}

Expr *reads_inside(const Graph *g, const Expr *e)
{
    RequirementReads r = {.g = g};
    ex_find(e, test_read, &r);
    for (int i = 0; i < r.n; i++) ex_find(r.asked[i], test_read, &r);
    return r.inside;
}

// ---- requirements ----

static bool test_wild(const Var *v, void *with)
{
    (void)with;
    return var_unknown(v) || v->kind == VAR_SERIES || v->kind == VAR_PREDICTED;
}

// References to responses that were seen to. Each splits a requirement in two, where it is missing and where not: beyond MOST_SPLITS there
// is one requirement for where none is missing, and emitted code looks at the others each time.
enum { MOST_SPLITS = 4 };
typedef struct AskedRequirement {
    Expr **atom;
    int natoms, size;
} AskedRequirement;

// The first reference to an unknown, or to a response that is a whole number; innermost first. NULL: none. `free`: it stands in no sum.
static Expr *first_varying(Expr *e, const AskedRequirement *done, bool inside_sum, bool *free)
{
    const bool binds = e->kind == EX_REDUCE || e->kind == EX_ARRAY;
    if (ex_is_call(e, FN_MISSING)) return NULL;  // asks for what was read
    for (int i = 0; i < e->nargs; i++) {
        Expr *r = first_varying(e->args[i], done, inside_sum || (binds && i == e->nargs - 1), free);
        if (r) return r;
    }
    if (e->kind != EX_REF) return NULL;
    for (int i = 0; i < done->natoms; i++)
        if (done->atom[i] == e) return NULL;
    if (!test_wild(e->var, NULL) && !(e->var->kind == VAR_DATA && e->var->response && e->var->base == BASE_INT)) return NULL;
    *free = !inside_sum && e->nargs == e->var->rank;
    return e;
}

static bool mark_wild(const Var *v, void *with)
{
    (void)with;
    if (test_wild(v, NULL)) ((Var *)v)->known.wild = true;
    return false;
}

// The range of the values that missing elements of a response take: that of the statements that draw it, if they agree on one.
static bool missing_range(const Graph *g, const Var *v, Expr **lo, Expr **hi)
{
    *lo = *hi = NULL;
    bool any = false;
    for (const Factor *f = g->factors; f; f = f->next) {
        if (f->original || !f->dist || !f->value || f->value->kind != EX_REF || f->value->var != v) continue;
        Expr *end[2] = {f->least, f->most};
        for (int k = 0; k < 2; k++) {
            if (!end[k] || ex_unknown(end[k])) return false;
            for (int i = 0; i < f->plates.n; i++)
                if (ex_mentions_index(end[k], f->plates.index[i])) return false;
        }
        *lo = !any || *lo == end[0] ? end[0] : ex_call2("fmin", *lo, end[0]);
        *hi = !any || *hi == end[1] ? end[1] : ex_call2("fmax", *hi, end[1]);
        any = true;
    }
    return any;
}

static Expr *replace(Expr *e, Expr *from, Expr *to) { return e ? ex_replace(e, from, to) : NULL; }

static void let_vary(Requirement *k, Expr *r, Expr *value)
{
    for (int i = 0; i < k->nparts; i++) {
        k->part[i] = replace(k->part[i], r, value);
        k->fails[i] = replace(k->fails[i], r, value);
    }
    for (int i = 0; i < k->nnumbers; i++) k->number[i] = replace(k->number[i], r, value);
    k->loops.guard = replace(k->loops.guard, r, value);
}

static bool same_requirement(const Requirement *a, const Requirement *b)
{
    bool same = a->name == b->name && a->nparts == b->nparts && a->loops.n == b->loops.n && a->loops.guard == b->loops.guard;
    for (int i = 0; i < a->nparts && same; i++) same = a->fails[i] == b->fails[i];
    for (int i = 0; i < a->loops.n && same; i++) same = a->loops.index[i] == b->loops.index[i];
    return same;
}

static bool require_mentions(const Requirement *k, const Index *i, int before)
{
    bool yes = k->loops.guard && ex_mentions_index(k->loops.guard, i);
    for (int p = 0; p < k->nparts; p++) yes |= ex_mentions_index(k->fails[p], i);
    for (int p = 0; p < k->nnumbers; p++) yes |= ex_mentions_index(k->number[p], i);
    for (int p = before + 1; p < k->loops.n; p++)
        yes |= ex_mentions_index(k->loops.index[p]->lo, i) || ex_mentions_index(k->loops.index[p]->hi, i);
    return yes;
}

static void keep(Requirements *c, Requirement k);

static bool reads_element(const Expr *e)
{
    bool yes = e->kind == EX_REF && e->nargs > 0;
    for (int i = 0; i < e->nargs; i++) yes |= reads_element(e->args[i]);
    return yes;
}

// By how much a part grows with a loop's index: a number; NAN: it is none.
static double slope(Expr *part, Index *x)
{
    Expr *d = part ? ex_sub(ex_replace_index(part, x, ex_plus(ex_index(x), 1)), part) : NULL;
    return d && d->kind == EX_NUM ? d->number : NAN;
}

// A loop between elements of data, k in start[i]:end[i], which may be of any length: a part that is linear in its index is least at one of
// the ends.
static bool at_ends(Requirements *c, const Requirement *k)
{
    Index *x = k->loops.n ? k->loops.index[k->loops.n - 1] : NULL;
    if (!x || !(reads_element(x->lo) || reads_element(x->hi)) || (k->loops.guard && ex_mentions_index(k->loops.guard, x))) return false;
    for (int i = 0; i < k->nparts; i++)
        if (isnan(slope(k->part[i], x))) return false;
    for (int end = 0; end < 2; end++) {
        Requirement one = *k;
        one.nparts = 0;
        one.loops.n--;
        one.loops.guard = ex_both(k->loops.guard, ex_call2("<=", x->lo, x->hi));
        Expr *at = end ? x->hi : x->lo;
        for (int i = 0; i < k->nparts; i++) {
            if ((slope(k->part[i], x) < 0) != end) continue;
            one.fails[one.nparts] = ex_replace_index(k->fails[i], x, at);
            one.part[one.nparts++] = ex_replace_index(k->part[i], x, at);
        }
        for (int i = 0; i < k->nnumbers; i++) one.number[i] = ex_replace_index(k->number[i], x, at);
        if (one.nparts) keep(c, one);
    }
    return true;
}

// What is left to check when the data are there, kept once.
static void keep(Requirements *c, Requirement k)
{
    int left = 0;
    for (int i = 0; i < k.nparts; i++) {
        if (k.part[i] && prove_nonneg(&k.loops, k.part[i])) continue;
        k.part[left] = k.part[i];
        k.fails[left++] = k.fails[i];
    }
    if (!left || (k.loops.guard && ex_is_num(k.loops.guard, 0))) return;
    k.nparts = left;
    for (int i = k.loops.n - 1; i >= 0; i--) {  // a loop that changes nothing is a condition: its range is not empty
        Index *x = k.loops.index[i];
        if (require_mentions(&k, x, i)) continue;
        memmove(&k.loops.index[i], &k.loops.index[i + 1], sizeof *k.loops.index * (size_t)(k.loops.n - i - 1));
        k.loops.n--;
        if (!prove_nonneg(&(Loops){0}, ex_sub(x->hi, x->lo))) k.loops.guard = ex_both(k.loops.guard, ex_call2("<=", x->lo, x->hi));
    }
    if (at_ends(c, &k)) return;
    for (const Requirement *o = c->g->requirements; o; o = o->next)
        if (same_requirement(o, &k)) return;
    Requirement *kept = NEW(c->g->arena, Requirement);
    *kept = k;
    *c->last = kept;
    c->last = &kept->next;
    if (c->defining) c->defining->known.unsure = true;
}

static void add_loop(Requirement *k, Index *i) { k->loops.index[k->loops.n++] = i; }

// A comparison with an unknown r, at the end of r's range where it is met first: t > tau may be met where t is above the least value of
// tau. NULL: it may be met anywhere.
static Expr *met_first(Expr *one, const Expr *r, bool holds)
{
    if (ex_is_call(one, FN_NOT)) return met_first(one->args[0], r, !holds);
    if (!ex_is_call(one, FN_LT) && !ex_is_call(one, FN_LE)) return NULL;
    const Var *v = r->var;
    const bool strict = ex_is_call(one, FN_LT) == holds;
    Expr *small = one->args[holds ? 0 : 1], *large = one->args[holds ? 1 : 0];  // small < large, or <=
    const bool below = small == r;
    if (!(below || large == r) || ex_mentions(below ? large : small, v)) return NULL;
    Expr *end = below                       ? (isfinite(v->lower_number) ? ex_num(v->lower_number) : v->lower)
                : isfinite(v->upper_number) ? ex_num(v->upper_number)
                                            : v->upper;
    if (!end || !ex_data_only(end)) return NULL;
    return ex_call2(strict ? "<" : "<=", below ? end : small, below ? large : end);
}

// Conditions that mention the variable of r are met or `unless` holds; NULL: they may be met wherever values of r meet them.
static Expr *where_met(Expr *guard, const Expr *r, Expr *unless)
{
    Expr *kept = NULL;
    for (Expr *rest = guard; rest;) {
        Expr *one = ex_is_call(rest, FN_AND) ? rest->args[1] : rest;
        rest = ex_is_call(rest, FN_AND) ? rest->args[0] : NULL;
        if (ex_mentions(one, r->var)) {
            one = unless ? ex_call2("||", unless, one) : met_first(one, r, true);
            if (!one) continue;
        }
        kept = kept ? ex_call2("&&", one, kept) : one;
    }
    return kept;
}

// 1 if no element of the data was read as missing.
static Expr *none_missing(Graph *g, Var *v)
{
    Index *element[MAX_RANK];
    Expr *n = ex_call1("missing", var_element(g, v, element));
    for (int k = v->rank - 1; k >= 0; k--) n = ex_reduce("sum", element[k], ex_num(1), v->dim[k], n);
    return ex_call2("<", n, ex_num(1));
}

// Unknowns and missing values take the values of their ranges in turn, here or in the conditions; then the requirement is about data.
static void settle(Requirements *c, Requirement k, AskedRequirement done)
{
    bool free = true;
    Expr *r = NULL;
    for (int i = 0; i < k.nparts && !r; i++) r = first_varying(k.fails[i], &done, false, &free);
    const bool counts = r != NULL;  // in a condition it only decides whether the element is read
    if (!r && k.loops.guard) r = first_varying(k.loops.guard, &done, false, &free);
    if (!r) {
        keep(c, k);
        return;
    }
    Var *v = r->var;
    Expr *lo = v->lower, *hi = v->upper;
    bool ranged = v->base == BASE_INT && v->discrete && lo && hi && !ex_unknown(lo) && !ex_unknown(hi);
    if (v->kind == VAR_DATA) {
        const bool splits = done.natoms < MOST_SPLITS && k.loops.n < MAX_LOOPS;
        ROOM(c->g->arena, done.atom, done.natoms, done.size);
        done.atom[done.natoms++] = r;
        ranged = splits && free && missing_range(c->g, v, &lo, &hi);
        Expr *gap = ex_num(GM_MISSING_INT), *was = k.loops.guard;
        Requirement given = k;
        if (counts && !(ranged && free)) v->known.wild = true;
        if (!free && counts) given.loops.guard = ex_both(given.loops.guard, none_missing(c->g, v));
        else if (counts || ranged) given.loops.guard = ex_both(given.loops.guard, ex_call2("!=", r, gap));
        else
            given.loops.guard =
                where_met(k.loops.guard, r, free ? ex_call2("==", r, gap) : ex_call2("<", none_missing(c->g, v), ex_num(1)));
        settle(c, given, done);
        if (!ranged) return;
        Index *i = index_new(v->name, lo, hi);
        let_vary(&k, r, ex_index(i));
        add_loop(&k, i);
        k.loops.guard = was ? ex_call2("&&", ex_replace(was, r, ex_index(i)), ex_call2("==", r, gap)) : ex_call2("==", r, gap);
        settle(c, k, done);
        return;
    }
    if (ranged && free && k.loops.n < MAX_LOOPS) {
        Index *i = index_new(v->name, lo, hi);
        let_vary(&k, r, ex_index(i));
        add_loop(&k, i);
        settle(c, k, done);
        return;
    }
    if (counts) {
        for (int i = 0; i < k.nparts; i++) ex_any_var(k.fails[i], mark_wild, NULL);
        return;
    }
    k.loops.guard = where_met(k.loops.guard, r, NULL);
    settle(c, k, done);
}

void require(Requirements *c, Requirement k)
{
    bool sure = true;  // most are, as they stand
    for (int i = 0; i < k.nparts; i++) sure &= k.part[i] && k.part[i]->kind == EX_NUM && k.part[i]->number >= 0;
    if (!sure) settle(c, k, (AskedRequirement){0});
}

const char *requirements_line(Graph *g, Span s) { return span_place(g->arena, s); }
