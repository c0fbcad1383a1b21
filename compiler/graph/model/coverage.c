// coverage.c -- which elements of a variable its statements name: each of an unknown that is read, and none twice.
//
//   before   x[1] ~ ...;   x[t] ~ ... over t in 2:T                       boxes 1:1 and 2:T, together 1:T: every element once
//   before   z[i] ~ ... over i in 1:N where k[i] == 1                     z[i] may be read where k[i] == 1; elsewhere data decide
//   after    named_z[i] = sum of 1 over i, where k[i] == 1                counted at load, for the requirements that need it
//
// Needs: factors, and sites of what is computed.     Gives: Var.holes; errors E0201, E0202 and E0209; requirements that count, also of flat
// elements that nothing holds.     Keeps: everything else. Statements are compared as boxes, a range of each subscript and a condition. Two
// boxes with a condition and its opposite are one, and so are two that lie side by side. What boxes do not decide is counted, by one sum of
// data for each statement.
#include <math.h>
#include <string.h>
#include "coverage.h"
#include "../sum.h"
#include "../terms/var.h"
#include "../terms/prover.h"
#include "../terms/reads.h"

typedef struct Naming {  // the elements that one statement draws or defines
    Span span;
    const Loops *plates;
    Expr *at[MAX_RANK];
    Expr *what;                                 // it draws this function of the element at the coordinates; NULL: the element
    bool defines;                               // else it draws
    bool once;                                  // it names none twice
    bool box;                                   // then
    Expr *lo[MAX_RANK], *hi[MAX_RANK], *guard;  // in terms of the coordinates
} Naming;

struct Coverage {
    int rank;  // subscripts that statements give
    Index *coordinate[MAX_RANK];
    int n, nmerged;
    Naming *naming, *merged;  // as written; those that are boxes, joined
    bool complete;
    bool overlaid;   // an element may have distributions of several functions of it
    Expr *total[2];  // how often the element at the coordinates is named, and drawn; NULL: not asked
};

// ---- boxes ----

static bool negates(const Expr *a, const Expr *b)
{
    if (ex_is_call(a, FN_NOT) && a->args[0] == b) return true;
    const bool equal = ex_is_call(a, FN_NE) && ex_is_call(b, FN_EQ), order = ex_is_call(a, FN_LE) && ex_is_call(b, FN_LT);
    if (equal && a->args[0] == b->args[0] && a->args[1] == b->args[1]) return true;
    return (equal || order) && a->args[0] == b->args[1] && a->args[1] == b->args[0];
}

// Is one condition true exactly where the other is not?
static bool opposite(const Expr *a, const Expr *b) { return negates(a, b) || negates(b, a); }

static Expr *slope(Expr *e, Index *i) { return ex_sub(ex_replace_index(e, i, ex_add2(ex_index(i), ex_num(1))), e); }

static void find_box(const Coverage *c, Naming *a)
{
    const Loops *p = a->plates;
    a->once = a->box = true;
    a->guard = p->guard;
    Index *solved[MAX_RANK] = {NULL};
    for (int i = 0; i < p->n; i++) {
        Index *plate = p->index[i];
        int places = 0, alone = 0;
        for (int k = 0; k < c->rank; k++) {
            if (!ex_mentions_index(a->at[k], plate)) continue;
            places++;
            const Expr *step = slope(a->at[k], plate);
            bool only = step->kind == EX_NUM && step->number != 0;
            for (int j = 0; j < p->n; j++) only &= j == i || !ex_mentions_index(a->at[k], p->index[j]);
            if (!only) continue;
            alone++;
            if (step->number == 1 || step->number == -1) solved[k] = plate;
        }
        bool fixed = true;
        for (int j = 0; j < p->n; j++) fixed &= !ex_mentions_index(plate->lo, p->index[j]) && !ex_mentions_index(plate->hi, p->index[j]);
        a->once &= alone > 0;
        a->box &= places == 1 && alone == 1 && fixed;
    }
    for (int k = 0; k < c->rank; k++) {
        a->lo[k] = a->hi[k] = a->at[k];
        bool varies = false;
        for (int i = 0; i < p->n; i++) varies |= ex_mentions_index(a->at[k], p->index[i]);
        if (!varies) continue;
        if (!solved[k]) {
            a->box = false;
            continue;
        }
        Expr *ends[2] = {ex_replace_index(a->at[k], solved[k], solved[k]->lo), ex_replace_index(a->at[k], solved[k], solved[k]->hi)};
        const bool forward = slope(a->at[k], solved[k])->number > 0;
        a->lo[k] = ends[!forward];
        a->hi[k] = ends[forward];
        Expr *zero = ex_replace_index(a->at[k], solved[k], ex_num(0)), *apart = ex_sub(ex_index(c->coordinate[k]), zero);
        if (a->guard) a->guard = ex_replace_index(a->guard, solved[k], forward ? apart : ex_neg(apart));
    }
}

static bool same_ends(const Naming *a, const Naming *b, int k) { return a->lo[k] == b->lo[k] && a->hi[k] == b->hi[k]; }

static Expr *common_part(Expr *a, Expr *b, bool *opposed)  // of P && x and P && !x; NULL: nothing
{
    Expr *first[2] = {ex_is_call(a, FN_AND) ? a->args[0] : NULL, ex_is_call(b, FN_AND) ? b->args[0] : NULL};
    *opposed = opposite(a, b);
    if (*opposed) return NULL;
    *opposed = first[0] && first[0] == first[1] && opposite(a->args[1], b->args[1]);
    if (*opposed) return first[0];
    return NULL;
}

// Two boxes that are one: a condition and its opposite, or side by side.
static bool join(const Coverage *c, const Naming *a, const Naming *b, Naming *out)
{
    int apart = -1, different = 0;
    for (int k = 0; k < c->rank; k++)
        if (!same_ends(a, b, k)) {
            apart = k;
            different++;
        }
    *out = *a;
    if (different == 0 && a->guard == b->guard) return true;
    if (different == 0 && a->guard && b->guard) {
        bool opposed;
        out->guard = common_part(a->guard, b->guard, &opposed);
        return opposed;
    }
    if (different != 1 || a->guard != b->guard || !ex_is_num(ex_sub(b->lo[apart], a->hi[apart]), 1)) return false;
    out->hi[apart] = b->hi[apart];
    return true;
}

static void join_all(Coverage *c)
{
    for (bool progress = true; progress;) {
        progress = false;
        for (int i = 0; i < c->nmerged; i++)
            for (int j = 0; j < c->nmerged; j++) {
                Naming one;
                if (i == j || !join(c, &c->merged[i], &c->merged[j], &one)) continue;
                c->merged[i] = one;
                c->merged[j] = c->merged[--c->nmerged];
                progress = true;
                i = j = c->nmerged;
            }
    }
}

// Are these two conditions never true at once?
static bool exclusive(Expr *a, Expr *b)
{
    if (ex_is_call(a, FN_AND)) return exclusive(a->args[0], b) || exclusive(a->args[1], b);
    if (ex_is_call(b, FN_AND)) return exclusive(a, b->args[0]) || exclusive(a, b->args[1]);
    return opposite(a, b) || prove_never(&(Loops){.guard = ex_call2("&&", a, b)});
}

static bool disjoint(const Coverage *c, const Naming *a, const Naming *b)
{
    if (a->guard && b->guard && exclusive(a->guard, b->guard)) return true;
    Loops l = {.guard = a->guard && b->guard ? ex_call2("&&", a->guard, b->guard) : a->guard ? a->guard : b->guard};
    for (int k = 0; k < c->rank; k++) {
        if (prove_nonneg(&l, ex_add2(ex_sub(b->lo[k], a->hi[k]), ex_num(-1))) ||
            prove_nonneg(&l, ex_add2(ex_sub(a->lo[k], b->hi[k]), ex_num(-1))))
            return true;
    }
    return false;
}

// Do they share an element, whatever the data are? Single elements exist, and ranges are not empty.
static bool overlap(const Coverage *c, const Var *v, const Naming *a, const Naming *b)
{
    if (a->guard || b->guard) return false;
    Loops l = {0};
    for (int k = 0; k < c->rank; k++) {
        Expr *one[2] = {a->hi[k], b->hi[k]};
        for (int s = 0; s < 2; s++)
            if (one[s]->kind == EX_NUM)
                l.guard = l.guard ? ex_call2("&&", l.guard, ex_call2("<=", one[s], v->dim[k])) : ex_call2("<=", one[s], v->dim[k]);
    }
    for (int k = 0; k < c->rank; k++)
        if (!same_ends(a, b, k) && !(prove_nonneg(&l, ex_sub(b->hi[k], a->lo[k])) && prove_nonneg(&l, ex_sub(a->hi[k], b->lo[k]))))
            return false;
    return true;
}

// ---- what is counted ----

static Expr *total(Graph *g, Var *v, Coverage *c, bool drawn)
{
    if (c->total[drawn]) return c->total[drawn];
    Sum **last = &g->sums;
    while (*last) last = &(*last)->next;
    Expr *all = ex_num(0);
    for (int i = 0; i < c->n; i++) {
        const Naming *a = &c->naming[i];
        if (drawn && a->defines) continue;
        Sum *s = NEW(g->arena, Sum);
        *s = (Sum){.var = var_unique(g, arena_printf(g->arena, "named_%s", v->name), VAR_SUM),
                   .n = c->rank,
                   .value = ex_num(1),
                   .data_only = true,
                   .purpose = arena_printf(g->arena, "how often a statement names an element of %s", v->name),
                   .loops = {.guard = a->plates->guard}};
        for (int k = 0; k < a->plates->n && k < (int)(sizeof s->loops.index / sizeof *s->loops.index); k++)
            s->loops.index[s->loops.n++] = a->plates->index[k];
        s->var->rank = c->rank;
        s->var->sum = s;
        Expr *at[MAX_RANK];
        for (int k = 0; k < c->rank; k++) {
            s->target[k] = a->at[k];
            s->var->dim[k] = v->dim[k];
            at[k] = ex_index(c->coordinate[k]);
        }
        *last = s;
        last = &s->next;
        all = ex_add2(all, ex_ref(s->var, c->rank, at));
    }
    return c->total[drawn] = all;
}

Expr *element_exists(Graph *g, Var *v, Index *const *element)
{
    const bool computed = var_unknown(v) && v->sites;  // where it is not drawn
    if (!v->known.holes && !computed) return NULL;
    Expr *count = total(g, v, v->known.coverage, computed);
    for (int k = 0; k < v->known.coverage->rank; k++)
        count = ex_replace_index(count, v->known.coverage->coordinate[k], ex_index(element[k]));
    return ex_call2("!=", count, ex_num(0));
}

static const char *list_of_lines(Graph *g, const Coverage *c)
{
    const char *list = "";
    for (int i = 0; i < c->n; i++) {
        if (i == 4 && c->n > 5) return arena_printf(g->arena, "%s, ...", list);
        list = arena_printf(g->arena, "%s%s%s", list, !i ? "" : i + 1 == c->n ? " and " : ", ", requirements_line(g, c->naming[i].span));
    }
    return list;
}

static const char *element_text(Graph *g, const Var *v, int n)
{
    const char *t = v->name;
    for (int k = 0; k < n; k++) t = arena_printf(g->arena, "%s%s#", t, k ? ", " : "[");
    return n ? arena_printf(g->arena, "%s]", t) : t;
}

static bool is_definition(const Var *v) { return v->decl && v->decl->kind == DECL_DEFINITION; }

// ---- none twice ----

static const char *beside(Graph *g, Expr *e, int by)
{
    if (e->kind == EX_NUM) return ex_text(g->arena, ex_add2(e, ex_num(by)));
    return arena_printf(g->arena, "%s %c 1", ex_text(g->arena, e), by < 0 ? '-' : '+');
}

// alpha[1] = 0; with a loop from 1 over alpha[j] ~ ...: if the element is the first or the last of the loop, it is said what the loop
// should be.
static void drawn_and_defined(Graph *g, const Coverage *c, const Var *v, const Naming *a, const Naming *b)
{
    const Naming *draws = a->defines ? b : a, *defines = a->defines ? a : b;
    Diag *m = diag(g->diags, b->span, DIAG_E0209, v->name);
    diag_help(
        m, "the other statement is about line %d, and both are about the same elements; each is either drawn with `~` or computed with `=`",
        span_line(a->span));
    for (int k = 0; k < c->rank; k++) {
        const Index *i = NULL;
        for (int j = 0; j < draws->plates->n; j++)
            if (draws->at[k] == ex_index(draws->plates->index[j])) i = draws->plates->index[j];
        if (!i || defines->lo[k] != defines->hi[k]) continue;
        const bool first = defines->lo[k] == i->lo, last = defines->lo[k] == i->hi;
        if (!first && !last) continue;
        diag_help(m, "the loop leaves the element out: for (%s in %s:%s)", i->name, first ? beside(g, i->lo, 1) : ex_text(g->arena, i->lo),
                  first ? ex_text(g->arena, i->hi) : beside(g, i->hi, -1));
        return;
    }
}

static bool check_once(Requirements *requirements, Var *v, Coverage *c)
{
    Graph *g = requirements->g;
    bool sure = true, defined = true, drawn = true;
    for (int i = 0; i < c->n; i++) {
        defined &= c->naming[i].defines;
        drawn &= !c->naming[i].defines;
    }
    for (int i = 0; i < c->n; i++) {
        sure &= c->naming[i].once;
        for (int j = 0; j < i; j++) {
            const Naming *a = &c->naming[j], *b = &c->naming[i];
            if (a->box && b->box && disjoint(c, a, b)) continue;
            sure = false;
            if (!a->box || !b->box || !overlap(c, v, a, b)) continue;
            if (a->defines != b->defines) {
                drawn_and_defined(g, c, v, a, b);
                return false;
            }
            Diag *m = diag(g->diags, b->span, a->defines ? DIAG_E0201 : DIAG_E0202, v->name);
            diag_help(m, "the first is on line %d; both are about the same elements", span_line(a->span));
            if (!a->defines) diag_help(m, "another factor of the joint density is written target += ...;");
            return false;
        }
    }
    if (sure) return true;
    Requirement k = {.span = c->naming[c->n - 1].span, .name = v->name, .nparts = 1, .counted = true};
    for (int d = 0; d < c->rank; d++) {
        k.loops.index[k.loops.n++] = c->coordinate[d];
        k.number[k.nnumbers++] = ex_index(c->coordinate[d]);
    }
    k.fails[0] = ex_call2("<", ex_num(1), total(g, v, c, false));
    k.says = arena_printf(g->arena,
                          defined ? "%s is defined twice (%s)"
                          : drawn ? "%s has two distributions (%s)"
                                  : "%s has more than one distribution or definition (%s)",
                          element_text(g, v, c->rank), list_of_lines(g, c));
    require(requirements, k);
    return true;
}

// Distributions of different functions of an element, as of y[i] == 0 and of y[i], are no repetition: each is looked at with its like.
static bool check_each_once(Requirements *requirements, Var *v, Coverage *c)
{
    Graph *g = requirements->g;
    bool good = true, same = true;
    for (int i = 1; i < c->n; i++) same &= c->naming[i].what == c->naming[0].what;
    if (same) return check_once(requirements, v, c);
    for (int i = 0; i < c->n; i++) {
        bool first = true;
        for (int j = 0; j < i; j++) {
            first &= c->naming[j].what != c->naming[i].what;
            c->overlaid |= c->naming[j].what != c->naming[i].what &&
                           !(c->naming[i].box && c->naming[j].box && disjoint(c, &c->naming[i], &c->naming[j]));
        }
        if (!first) continue;
        Coverage *alike = NEW(g->arena, Coverage);
        *alike = *c;
        alike->naming = NEW_N(g->arena, Naming, c->n);
        alike->n = 0;
        for (int j = i; j < c->n; j++)
            if (c->naming[j].what == c->naming[i].what) alike->naming[alike->n++] = c->naming[j];
        good &= check_once(requirements, v, alike);
    }
    return good;
}

bool coverage_overlaid(const Var *v) { return v->known.coverage && v->known.coverage->overlaid; }

static void add_naming(Graph *g, Coverage *c, const Var *v, Span span, const Loops *plates, bool defines, int n, Expr *const *at)
{
    Naming *more = NEW_N(g->arena, Naming, c->n + 1);
    if (c->n) memcpy(more, c->naming, sizeof *more * (size_t)c->n);
    c->naming = more;
    Naming *a = &more[c->n++];
    *a = (Naming){.span = span, .plates = plates, .defines = defines};
    for (int k = 0; k < n; k++) a->at[k] = at[k];
    if (n == c->rank) return;
    Loops *all = NEW(g->arena, Loops);  // subscripts that others give: all of them
    *all = (Loops){.n = plates->n + c->rank - n, .guard = plates->guard};
    for (int i = 0; i < plates->n; i++) all->index[i] = plates->index[i];
    for (int k = n; k < c->rank; k++) a->at[k] = ex_index(all->index[plates->n + k - n] = index_new(intern("k"), ex_num(1), v->dim[k]));
    a->plates = all;
}

// The only reference in e, a function of one element of data; *several: there are others.
static const Expr *only_reference(const Expr *e, bool *several)
{
    if (e->kind == EX_REF) return e;
    const Expr *found = NULL;
    *several |= e->kind == EX_REDUCE || e->kind == EX_ARRAY;
    for (int i = 0; i < e->nargs; i++) {
        const Expr *r = only_reference(e->args[i], several);
        *several |= r && found && r != found;
        if (r) found = r;
    }
    return found;
}

// log(y[i]) ~ ... is about y[i].
const Expr *drawn_by(const Factor *f)
{
    if (f->original || !f->dist || !f->value) return NULL;
    bool several = false;
    const Expr *r = only_reference(f->value, &several);
    return several || !r || (r != f->value && r->var->kind != VAR_DATA) ? NULL : r;
}

static bool names(const Factor *f, const Var *v)
{
    const Expr *r = drawn_by(f);
    return r && r->var == v;
}

// log(y[i]) as log(y[k]), k being the coordinate, so that statements with loops of their own are compared.
static Expr *function_drawn(const Coverage *c, const Factor *f)
{
    const Expr *r = drawn_by(f);
    if (r == f->value) return NULL;
    Expr *at[MAX_RANK], *what = f->value;
    for (int k = 0; k < r->nargs; k++) at[k] = ex_index(c->coordinate[k]);
    what = ex_replace(what, (Expr *)r, ex_ref(r->var, r->nargs, at));
    for (int k = 0; k < r->nargs; k++)
        if (r->args[k]->kind == EX_INDEX) what = ex_replace_index(what, r->args[k]->index, at[k]);
    return what;
}

static void join_boxes(Arena *arena, Coverage *c, const Var *v)
{
    c->merged = NEW_N(arena, Naming, c->n);
    for (int i = 0; i < c->n; i++) {
        find_box(c, &c->naming[i]);
        if (c->naming[i].box) c->merged[c->nmerged++] = c->naming[i];
    }
    join_all(c);
    for (int i = 0; i < c->nmerged; i++) {
        bool all = !c->merged[i].guard;
        for (int k = 0; k < c->rank; k++)
            all &= prove_nonneg(&(Loops){0}, ex_sub(ex_num(1), c->merged[i].lo[k])) &&
                   prove_nonneg(&(Loops){0}, ex_sub(c->merged[i].hi[k], v->dim[k]));
        c->complete |= all;
    }
}

// By its distributions, its definitions, or both. A definition of data has its elements by the latter alone.
static Coverage *coverage_of(Graph *g, Var *v, bool drawn, bool defined)
{
    Coverage *c = NEW(g->arena, Coverage);
    int most = 0;
    for (const Factor *f = drawn ? g->factors : NULL; f; f = f->next)
        if (names(f, v) && drawn_by(f)->nargs > most) most = drawn_by(f)->nargs;
    for (const Site *t = defined ? v->sites : NULL; t; t = t->next)
        if (t->n > most) most = t->n;
    c->rank = most;
    for (int k = 0; k < most; k++) c->coordinate[k] = index_new(intern(k == 0 ? "k" : k == 1 ? "l" : "m"), ex_num(1), v->dim[k]);
    for (const Factor *f = drawn ? g->factors : NULL; f; f = f->next)
        if (names(f, v)) {
            add_naming(g, c, v, f->span, &f->plates, false, drawn_by(f)->nargs, drawn_by(f)->args);
            c->naming[c->n - 1].what = function_drawn(c, f);
        }
    for (const Site *t = defined ? v->sites : NULL; t; t = t->next)
        if (!t->again) add_naming(g, c, v, t->span, &t->plates, true, t->n, t->subscript);
    if (!c->n) return NULL;  // flat, or data that no statement is about
    join_boxes(g->arena, c, v);
    return c;
}

static bool test_may_miss(const Var *v, void *with)
{
    (void)with;
    return v->kind == VAR_DATA && v->response;
}

// The elements of responses that a condition reads are missing (any of them), and what it asks of other data.
static void split_condition(Expr *e, Expr **missing, Expr **known)
{
    if (ex_is_call(e, FN_AND)) {
        split_condition(e->args[0], missing, known);
        split_condition(e->args[1], missing, known);
        return;
    }
    if (!ex_any_var(e, test_may_miss, NULL)) {
        *known = *known ? ex_call2("&&", *known, e) : e;
        return;
    }
    if (e->kind == EX_REF && e->nargs == e->var->rank && test_may_miss(e->var, NULL)) {
        Expr *m = ex_call1("missing", e);
        *missing = *missing ? ex_call2("||", *missing, m) : m;
        return;
    }
    for (int i = 0; i < e->nargs && e->kind != EX_REDUCE && e->kind != EX_ARRAY; i++)
        if (ex_any_var(e->args[i], test_may_miss, NULL)) {
            Expr *more = NULL;
            split_condition(e->args[i], missing, &more);
        }
}

// A missing value exists whatever other missing values are: a condition on these that leaves it without a distribution for some of them
// would make the number of unknowns one.
static void require_existence(Requirements *requirements, const Var *v, const Coverage *c)
{
    for (int i = 0; i < c->nmerged; i++) {
        const Naming *a = &c->merged[i];
        Expr *missing = NULL, *known = NULL, *at[MAX_RANK];
        if (a->guard) split_condition(a->guard, &missing, &known);
        if (!missing) continue;
        Requirement k = {.span = a->span, .name = v->name, .nparts = 1};
        Expr *fails = missing;
        for (int d = 0; d < c->rank; d++) {
            Index *one = index_new(c->coordinate[d]->name, a->lo[d], a->hi[d]);
            k.loops.index[k.loops.n++] = one;
            k.number[k.nnumbers++] = at[d] = ex_index(one);
            fails = ex_replace_index(fails, c->coordinate[d], at[d]);
            if (known) known = ex_replace_index(known, c->coordinate[d], at[d]);
        }
        k.loops.guard = known;
        k.fails[0] = ex_call2("&&", ex_call1("missing", ex_ref((Var *)v, c->rank, at)), fails);
        k.says = arena_printf(requirements->g->arena, "%s is missing, and so is what decides whether it has a distribution (%s)",
                              element_text(requirements->g, v, c->rank), requirements_line(requirements->g, a->span));
        require(requirements, k);
    }
}

// A missing value is drawn by statements about it, not by those about functions of it: these say nothing of its own density.
static void require_not_missing(Requirements *requirements, const Var *v)
{
    Graph *g = requirements->g;
    for (const Factor *f = g->factors; f; f = f->next) {
        const Expr *r = names(f, v) ? drawn_by(f) : NULL;
        if (!r || r == f->value || r->nargs != v->rank || f->plates.n > MAX_LOOPS) continue;
        Requirement k = {.span = f->span, .name = v->name, .loops = {.guard = f->plates.guard}, .nparts = 1};
        for (int i = 0; i < f->plates.n; i++) k.loops.index[k.loops.n++] = f->plates.index[i];
        for (int d = 0; d < r->nargs; d++) k.number[k.nnumbers++] = r->args[d];
        k.fails[0] = ex_call1("missing", (Expr *)r);
        k.says = arena_printf(g->arena, "%s is missing, and a function of it has a distribution (%s)", element_text(g, v, r->nargs),
                              requirements_line(g, f->span));
        require(requirements, k);
    }
}

// ---- flat elements ----

enum { MOST_READINGS = 100 };

typedef struct Readings {
    Graph *g;
    Coverage *c;
    Var *v;
    const Factor *f;
    bool failed;
} Readings;

// The loops that decide which element is read: others have iterations, or the data no rows at all.
static const Loops *loops_that_decide(Graph *g, const Loops *p, const Expr *ref)
{
    Loops *few = NEW(g->arena, Loops);
    *few = (Loops){.guard = p->guard};
    for (int i = p->n - 1; i >= 0; i--) {  // what ends of inner loops depend on counts
        bool counts = p->guard && ex_mentions_index(p->guard, p->index[i]);
        for (int k = 0; k < ref->nargs; k++) counts |= ex_mentions_index(ref->args[k], p->index[i]);
        for (int k = 0; k < few->n; k++)
            counts |= ex_mentions_index(few->index[k]->lo, p->index[i]) || ex_mentions_index(few->index[k]->hi, p->index[i]);
        if (counts) few->index[few->n++] = p->index[i];
    }
    for (int i = 0; 2 * i + 1 < few->n; i++) {
        Index *other = few->index[i];
        few->index[i] = few->index[few->n - 1 - i];
        few->index[few->n - 1 - i] = other;
    }
    return few;
}

static bool same_expressions(Expr *const *a, Expr *const *b, int n) { return n == 0 || memcmp(a, b, sizeof *a * (size_t)n) == 0; }

// Every element that e may read of v, with the loops around it. What follows from unknowns, or from data that may be missing, is not
// counted.
static void add_readings(Readings *r, const Loops *p, Expr *e)
{
    if (r->failed || !ex_mentions(e, r->v)) return;
    if (e->kind == EX_REF && e->var == r->v) {
        for (int k = 0; k < e->nargs; k++) r->failed |= ex_unknown(e->args[k]) || ex_any_var(e->args[k], test_may_miss, NULL);
        p = loops_that_decide(r->g, p, e);
        for (int i = 0; i < r->c->n; i++)
            if (r->c->naming[i].plates->guard == p->guard && same_expressions(r->c->naming[i].at, e->args, e->nargs)) return;
        r->failed |= r->c->n == MOST_READINGS || p->n + r->c->rank - e->nargs > MAX_LOOPS;
        if (!r->failed) add_naming(r->g, r->c, r->v, r->f->span, p, false, e->nargs, e->args);
        return;
    }
    for (int i = 0; i < e->nargs; i++) {
        const bool body = (e->kind == EX_REDUCE || e->kind == EX_ARRAY) && i == e->nargs - 1;
        if (!body) {
            add_readings(r, p, e->args[i]);
            continue;
        }
        Loops *more = NEW(r->g->arena, Loops);
        *more = (Loops){.n = p->n + 1, .guard = p->guard};
        for (int k = 0; k < p->n; k++) more->index[k] = p->index[k];
        Index *j = more->index[p->n] = index_new(e->index->name, e->kind == EX_ARRAY ? ex_num(1) : e->args[0], e->args[e->nargs - 2]);
        add_readings(r, more, ex_open(e, j));
    }
}

// A flat element is known by the factors that hold it: one that none holds has no distribution. Data decide which those are: groups
// of an effect without a row.
static void require_held(Requirements *requirements, Var *v)
{
    Graph *g = requirements->g;
    const bool closed = (isfinite(v->lower_number) || v->lower) && (isfinite(v->upper_number) || v->upper);
    if (!v->rank || closed || v->base != BASE_REAL || v->constraint != CONSTRAINT_NONE ||
        !(v->kind == VAR_PARAMETER || v->kind == VAR_LATENT) || v->sites)
        return;
    for (const Series *e = g->series; e; e = e->next)
        if (series_reads(e, v)) return;
    Coverage c = {.rank = v->rank};
    for (int k = 0; k < c.rank; k++) c.coordinate[k] = index_new(intern(k == 0 ? "k" : k == 1 ? "l" : "m"), ex_num(1), v->dim[k]);
    Readings r = {.g = g, .c = &c, .v = v};
    for (const Factor *f = g->factors; f && !r.failed; f = f->next) {
        if (f->original || !ex_mentions(f->log_density, v)) continue;
        r.f = f;
        const Expr *guard = f->plates.guard;
        r.failed |= guard && (ex_unknown(guard) || ex_any_var(guard, test_may_miss, NULL));
        add_readings(&r, &f->plates, f->log_density);
    }
    if (r.failed || !c.n) return;
    join_boxes(g->arena, &c, v);
    if (c.complete) return;
    Requirement k = {.span = v->span, .name = v->name, .nparts = 1, .counted = true};
    for (int d = 0; d < c.rank; d++) {
        k.loops.index[k.loops.n++] = c.coordinate[d];
        k.number[k.nnumbers++] = ex_index(c.coordinate[d]);
    }
    k.fails[0] = ex_call2("==", total(g, v, &c, false), ex_num(0));
    k.says = arena_printf(g->arena, "%s has neither a distribution nor two bounds, and nothing depends on it (%s)",
                          element_text(g, v, c.rank), requirements_line(g, v->span));
    require(requirements, k);
}

bool find_coverage(Requirements *requirements)
{
    Graph *g = requirements->g;
    const int n = g->nvars;
    bool good = true;
    for (int i = 0; i < n; i++) {
        Var *v = g->vars[i];
        if (!v->decl) continue;  // of augmentations, and what the compiler made
        const bool let = v->kind == VAR_LET;
        Coverage *c = v->known.coverage = coverage_of(g, v, !let, true), *drawn = let ? coverage_of(g, v, true, false) : NULL;
        if (drawn) good &= check_each_once(requirements, v, drawn);
        if (!c) {
            require_held(requirements, v);
            continue;
        }
        v->known.holes = !c->complete && (v->kind != VAR_DATA || v->response);
        good &= check_each_once(requirements, v, c);
        if (v->kind == VAR_DATA && v->response) require_not_missing(requirements, v);
        if (v->kind == VAR_DATA && v->known.holes && v->rank == c->rank) require_existence(requirements, v, c);
    }
    return good;
}

// ---- each that is read ----

static bool test_unranged(const Var *v, void *with)
{
    (void)with;
    if (v->kind == VAR_SERIES || v->kind == VAR_PREDICTED) return true;
    return var_unknown(v) && !(v->discrete && v->lower && v->upper && !ex_unknown(v->lower) && !ex_unknown(v->upper));
}

static bool implied(Expr *condition, Expr *guard)
{
    if (ex_is_call(condition, FN_AND)) return implied(condition->args[0], guard) && implied(condition->args[1], guard);
    return guard == condition || (ex_is_call(guard, FN_AND) && (implied(condition, guard->args[0]) || implied(condition, guard->args[1])));
}

static bool lies_in(const Coverage *c, const Naming *a, const Loops *l, Expr *const *at)
{
    for (int k = 0; k < c->rank; k++)
        if (!prove_nonneg(l, ex_sub(at[k], a->lo[k])) || !prove_nonneg(l, ex_sub(a->hi[k], at[k]))) return false;
    Expr *condition = a->guard;
    for (int k = 0; k < c->rank && condition; k++) condition = ex_replace_index(condition, c->coordinate[k], at[k]);
    return !condition || (l->guard && implied(condition, l->guard));
}

// The element is not in one of the boxes, which are all that there is; NULL: they are not.
static Expr *outside_boxes(const Coverage *c, Expr *const *at)
{
    Expr *out = NULL;
    for (int i = 0; i < c->n; i++)
        if (!c->naming[i].box) return NULL;
    for (int i = 0; i < c->nmerged; i++) {
        const Naming *a = &c->merged[i];
        Expr *in = a->guard;
        if (in && ex_any_var(in, test_may_miss, NULL)) return NULL;
        for (int k = 0; k < c->rank && in; k++) in = ex_replace_index(in, c->coordinate[k], at[k]);
        for (int k = c->rank; k-- > 0;) {  // the box is asked before the condition
            Expr *here = ex_call2("&&", ex_call2("<=", a->lo[k], at[k]), ex_call2("<=", at[k], a->hi[k]));
            in = in ? ex_call2("&&", here, in) : here;
        }
        if (!in) return NULL;
        out = out ? ex_call2("&&", out, ex_call1("!", in)) : ex_call1("!", in);
    }
    return out;
}

// A missing value that is read has a statement which draws it.
static void require_drawn(Requirements *requirements, Var *v, const Coverage *c, const Loops *l, Span span, Expr *const *at)
{
    Graph *g = requirements->g;
    if (v->rank != c->rank) return;
    Expr *element = ex_ref(v, c->rank, at), *outside = outside_boxes(c, at);
    for (int d = 0; d < c->rank; d++)
        if (ex_any_var(at[d], test_unranged, NULL) || ex_any_var(at[d], test_may_miss, NULL)) return;
    if (!outside || (l->guard && ex_any_var(l->guard, test_may_miss, NULL))) return;
    Requirement k = {.span = span, .name = v->name, .loops = *l, .nparts = 1};
    for (int d = 0; d < c->rank; d++) k.number[k.nnumbers++] = at[d];
    k.fails[0] = ex_call2("&&", ex_call1("missing", element), outside);
    k.says = arena_printf(g->arena, "%s is missing, is read (%s) and has no distribution (%s)", element_text(g, v, c->rank),
                          requirements_line(g, span), list_of_lines(g, c));
    require(requirements, k);
}

void require_named(Requirements *requirements, Var *v, const Loops *l, Span span, int n, Expr *const *subscript)
{
    Coverage *c = v->known.coverage;
    if (!c || !v->known.holes || n < c->rank) return;
    for (int i = 0; i < c->nmerged; i++)
        if (lies_in(c, &c->merged[i], l, subscript)) return;
    if (v->kind == VAR_DATA) {
        require_drawn(requirements, v, c, l, span, subscript);
        return;
    }
    Graph *g = requirements->g;
    Requirement k = {.span = span, .name = v->name, .loops = *l, .nparts = 1, .counted = true};
    Expr *count = total(g, v, c, false);
    bool known = true;
    for (int d = 0; d < c->rank; d++) known &= !ex_any_var(subscript[d], test_unranged, NULL);
    if (!known) k.loops = (Loops){0};  // any of them may be read
    for (int d = 0; d < c->rank; d++) {
        if (!known) k.loops.index[k.loops.n++] = c->coordinate[d];
        k.number[k.nnumbers++] = known ? subscript[d] : ex_index(c->coordinate[d]);
    }
    for (int d = 0; d < c->rank && known; d++) count = ex_replace_index(count, c->coordinate[d], subscript[d]);
    k.fails[0] = ex_call2("==", count, ex_num(0));
    k.says =
        arena_printf(g->arena, is_definition(v) ? "%s is read (%s) and not defined (%s)" : "%s is read (%s) and has no distribution (%s)",
                     element_text(g, v, c->rank), requirements_line(g, span), list_of_lines(g, c));
    require(requirements, k);
}

// The order holds for all elements: one without a density of its own would keep its neighbours from where they belong.
void require_whole(Requirements *requirements, Var *v)
{
    const Coverage *c = v->known.coverage;
    if (!c || !v->known.holes || c->rank != v->rank) return;
    Graph *g = requirements->g;
    Requirement k = {.span = v->span, .name = v->name, .nparts = 1, .counted = true};
    for (int d = 0; d < c->rank; d++) {
        k.loops.index[k.loops.n++] = c->coordinate[d];
        k.number[k.nnumbers++] = ex_index(c->coordinate[d]);
    }
    Expr *here = element_exists(g, v, c->coordinate), *first = ex_replace_index(here, c->coordinate[c->rank - 1], ex_num(1));
    if (here == first) return;
    k.fails[0] = ex_call2("!=", here, first);
    k.says = arena_printf(g->arena, "%s and the first element of its %s: one has a distribution, the other has none (%s)",
                          element_text(g, v, c->rank), v->constraint == CONSTRAINT_SUM_TO_ZERO ? "vector whose sum is 0" : "ordered vector",
                          list_of_lines(g, c));
    require(requirements, k);
}
