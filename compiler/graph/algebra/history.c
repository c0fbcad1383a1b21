// history.c -- states of a chain whose factors read the whole past, by summaries of finitely many values.
//
//   before   z[i,t] ~ bernoulli(phi*z[i,t-1] + gamma[t]*prod(k in 1:t-1, 1 - z[i,k]))
//   after    z[i,t] ~ bernoulli(phi*z[i,t-1] + gamma[t]*history_z[i,t])
//            history_z[i,1] = 1,   history_z[i,t+1] = history_z[i,t]*(1 - z[i,t])
//
// Needs: augment done, ranges of discrete unknowns known.     Gives: the conditional of an element in terms of summaries of the past, and
// the states of the chain: pairs of a value and the summaries after it.
//
// An element and the summaries after it depend on the past only through the previous such pair. So the pairs are a chain (messages.c),
// whose states are the pairs that can be reached: here 0 that never was 1, 1, and 0 that was. A summary is a sum, a product, a minimum or a
// maximum over all previous elements, of terms in one element alone. Or it is a recursive definition: h[t] in terms of h[t-1] and z[t-1]
// (a summary before element t), or of h[t-1] and z[t] (a summary up to element t). It may also read other such definitions at the same
// place. Or it is an earlier element, z[t-2]. A sum of terms that are not negative, and that is only compared with numbers, counts up to
// the largest of these and one more. A factor that reads a definition and no element belongs to the element before which, or after which,
// the definition is computed. Conditions: an element has few values, which are numbers. Summaries are numbers that follow from these values
// alone (they are evaluated), and there are finitely many. Each factor reads them as they are before its last element.
#include <math.h>
#include <string.h>
#include "history.h"
#include "../conditional.h"
#include "../terms/var.h"
#include "../terms/ranges.h"
#include "../terms/supports.h"
#include "../terms/factor.h"
#include "../terms/reads.h"
#include "../model/series.h"
#include "../model/closed.h"
#include "conditionals.h"
#include "ties.h"

enum { MOST_SUMMARIES = MOST_TIED - 1, MOST_STATES = 32, MOST_PAIRS = 128 };

typedef enum { BY_REDUCTION, BY_RECURSION, BY_DISTANCE } SummaryKind;

typedef struct Summary {
    SummaryKind kind;
    FunctionId fn;  // of a reduction
    Expr *next;     // what an element adds to a reduction; the definition of a recursion: in the marks
    const Var *series;
    bool with;            // of a recursion: element t of it has element t of the chain in it
    int distance;         // 2: the element before the one before
    double before, most;  // before the first element; a sum counts no further
    Expr *mark;           // stands for the summary before an element in definitions
    Var *stand;
} Summary;

// value: mark for an element; here: the last element that a factor holds
typedef struct Reader {
    Graph *g;
    Var *v;
    int along, n;
    Summary s[MOST_SUMMARIES];
    Expr *value, *here;
    bool failed;
} Reader;

// ---- what a factor reads ----

static Expr *stands_for(Reader *r, const Summary *s) { return ex_ref(s->stand, r->v->rank, r->here->args); }

static Summary *summary_like(Reader *r, Summary like)
{
    for (int i = 0; i < r->n; i++) {
        Summary *s = &r->s[i];
        if (s->kind == like.kind && s->fn == like.fn && s->next == like.next && s->series == like.series && s->distance == like.distance &&
            isfinite(s->most) == isfinite(like.most)) {
            s->most = fmax(s->most, like.most);
            return s;
        }
    }
    if (r->n == MOST_SUMMARIES) {
        r->failed = true;
        return NULL;
    }
    Summary *s = &r->s[r->n++];
    *s = like;
    s->stand = var_unique(r->g, arena_printf(r->g->arena, "history_%s", r->v->name), VAR_ELEMENT);
    s->stand->rank = r->v->rank;
    memcpy(s->stand->dim, r->v->dim, sizeof s->stand->dim);
    return s;
}

// How far from the element `here` one with these subscripts is; 1000: not along the chain.
enum { ELSEWHERE = 1000 };
static int apart_from(const Reader *r, Expr *const *args, int n)
{
    if (n != r->v->rank) return ELSEWHERE;
    int by = 0;
    for (int k = 0; k < n; k++) {
        const Expr *d = ex_sub(args[k], r->here->args[k]);
        if (d->kind != EX_NUM || (k != r->along && d->number != 0) || fabs(d->number) >= ELSEWHERE) return ELSEWHERE;
        if (k == r->along) by = (int)d->number;
    }
    return by;
}

static double of_none(FunctionId fn)
{
    switch (fn) {
    case FN_sum: return 0;
    case FN_prod: return 1;
    case FN_min: return INFINITY;
    case FN_max: return -INFINITY;
    default: return NAN;
    }
}

static Expr *joined(FunctionId fn, Expr *a, Expr *b)
{
    return fn == FN_sum ? ex_add2(a, b) : fn == FN_prod ? ex_mul2(a, b) : ex_call2(fn == FN_min ? "fmin" : "fmax", a, b);
}

// A reduction over all elements before the one at hand, or with it; counting up to `most`.
static Expr *read_reduction(Reader *r, Expr *e, double most)
{
    Expr *from[MAX_RANK];
    Index *k = index_new(intern("k"), e->args[0], e->args[1]);
    memcpy(from, r->here->args, sizeof *from * (size_t)r->v->rank);
    from[r->along] = ex_index(k);
    Expr *element = ex_ref(r->v, r->v->rank, from), *body = ex_replace(ex_open(e, k), element, r->value);
    const Expr *behind = ex_sub(e->args[1], r->here->args[r->along]);
    const bool with = ex_is_num(behind, 0);
    if (isnan(of_none(e->fn)) || !ex_is_num(e->args[0], 1) || !(with || ex_is_num(behind, -1)) || (with && isfinite(most)) ||
        ex_mentions(body, r->v) || ex_mentions_index(body, k))
        return NULL;
    const Summary *s = summary_like(r, (Summary){.kind = BY_REDUCTION, .fn = e->fn, .next = body, .before = of_none(e->fn), .most = most});
    if (!s) return NULL;
    return with ? joined(e->fn, stands_for(r, s), ex_replace(body, r->value, r->here)) : stands_for(r, s);
}

// The numbers that a definition depends on: an element, and the summaries before it.
static double number_after(const Reader *r, const Expr *e, double z, const double *summary)
{
    Expr *mark[MOST_TIED];
    double at[MOST_TIED];
    int n = 0;
    mark[n] = r->value;
    at[n++] = z;
    for (int q = 0; q < r->n; q++) {
        if (!r->s[q].mark) continue;
        mark[n] = r->s[q].mark;
        at[n++] = summary ? summary[q] : r->s[q].before;
    }
    return number_at(e, n, mark, at);
}

// What stands before the first element, if the definition of the first is that of the others with this before it; NAN: nothing that is
// tried.
static double before_first(const Reader *r, Summary *s, const Expr *first)
{
    const double lo = end_of_summed(r->v, 0)->number, hi = end_of_summed(r->v, 1)->number;
    for (int k = 0; k <= 2 * MOST_STATES; k++) {
        bool same = true;
        s->before = k % 2 ? -(k + 1) / 2 : k / 2;
        for (double z = lo; z <= hi && same; z++) same = number_after(r, s->next, z, NULL) == number_after(r, first, z, NULL);
        if (same) return s->before;
    }
    return NAN;
}

static const Summary *recursion_of(Reader *r, const Var *h);

// An element of a recursion where `at` is the subscript along the chain of the element that is added: the mark, or what the definition
// makes of it and of that element. NULL: neither.
static Expr *in_marks(Reader *r, const Expr *e, Expr *at)
{
    const Summary *s = recursion_of(r, e->var);
    const Expr *apart = s ? ex_sub(e->args[r->along], at) : NULL;
    if (!s || apart->kind != EX_NUM) return NULL;
    const double behind = apart->number + s->with;
    return behind == 0 ? s->mark : behind == 1 ? s->next : NULL;
}

typedef struct Inside {
    Reader *r;
    Expr *at;
    bool failed;
} Inside;

static Expr *others_in_marks(Expr *e, void *with)
{
    Inside *in = with;
    if (e->kind != EX_REF || e->var->kind != VAR_SERIES || !ex_reads(e, in->r->v)) return NULL;
    Expr *is = in_marks(in->r, e, in->at);
    in->failed |= !is;
    return is ? is : e;
}

// The summary of a recursion along the chain, h[t] in h[t-1] and z[t-1], or in h[t-1] and z[t]. NULL: it is none.
static const Summary *recursion_of(Reader *r, const Var *h)
{
    Recursion c;
    for (int i = 0; i < r->n; i++)
        if (r->s[i].series == h) return r->s[i].next ? &r->s[i] : NULL;  // else it is being looked at: it needs itself
    const Series *s = h->rank == r->v->rank && h->series && h->series->n == 1 ? series_along(r->g, (Var *)h, r->along) : NULL;
    if (!s || r->n == MOST_SUMMARIES || !first_order(s, &c) || c.along != r->along) return NULL;
    Expr *key = c.next->subscript[c.along], *args[MAX_RANK], *next = NULL, *first = NULL;
    memcpy(args, c.next->subscript, sizeof *args * (size_t)h->rank);
    Summary *is = &r->s[r->n++];
    *is = (Summary){.kind = BY_RECURSION,
                    .series = h,
                    .most = INFINITY,
                    .before = NAN,
                    .mark = ex_ref(var_new(r->g, r->v->name, VAR_ELEMENT), 0, NULL)};
    is->stand = var_unique(r->g, arena_printf(r->g->arena, "history_%s", r->v->name), VAR_ELEMENT);
    is->stand->rank = r->v->rank;
    memcpy(is->stand->dim, r->v->dim, sizeof is->stand->dim);
    for (int with = 0; with < 2 && !next; with++) {
        Inside in = {r, with ? key : ex_sub(key, ex_num(1)), false};
        args[c.along] = in.at;
        next =
            ex_map(ex_replace(ex_replace(c.next->value, c.before, is->mark), ex_ref(r->v, h->rank, args), r->value), others_in_marks, &in);
        if (in.failed || ex_mentions(next, r->v) || ex_mentions(next, h)) next = NULL;
        is->with = with;
    }
    if (!next) return NULL;
    is->next = next;
    memcpy(args, c.first->subscript, sizeof *args * (size_t)h->rank);
    args[c.along] = ex_num(1);
    Inside in = {r, ex_num(is->with), false};
    first = ex_map(ex_replace(c.first->value, ex_ref(r->v, h->rank, args), r->value), others_in_marks, &in);
    if (in.failed) return NULL;
    is->before = is->with ? before_first(r, is, first) : number_at(first, 0, NULL, NULL);
    if (isnan(is->before)) is->next = NULL;
    return is->next ? is : NULL;
}

// The same in a factor.
static Expr *read_recursion(Reader *r, Expr *e)
{
    for (int k = 0; k < e->nargs; k++)
        if (e->nargs != r->v->rank || (k != r->along && e->args[k] != r->here->args[k])) return NULL;
    Expr *is = in_marks(r, e, r->here->args[r->along]);
    for (int q = 0; q < r->n && is; q++)
        if (r->s[q].mark) is = ex_replace(is, r->s[q].mark, stands_for(r, &r->s[q]));
    return is ? ex_replace(is, r->value, r->here) : NULL;
}

static Expr *read_further_back(Reader *r, int distance)
{
    const Summary *s = NULL;
    for (int d = 2; d <= distance && !r->failed; d++)
        s = summary_like(r, (Summary){.kind = BY_DISTANCE, .distance = d, .before = end_of_summed(r->v, 0)->number, .most = INFINITY});
    return s ? stands_for(r, s) : NULL;
}

// Whether each term of a sum is a whole number that is not negative.
static bool counts(const Reader *r, Expr *body)
{
    const double first = end_of_summed(r->v, 0)->number, last = end_of_summed(r->v, 1)->number;
    for (double z = first; z <= last; z++) {
        const double x = number_at(body, 1, &r->value, &z);
        if (!(x >= 0) || x != floor(x)) return false;
    }
    return true;
}

static Expr *read_count(Reader *r, Expr *e, double with)
{
    Expr *from[MAX_RANK];
    Index *k = index_new(intern("k"), e->args[0], e->args[1]);
    memcpy(from, r->here->args, sizeof *from * (size_t)r->v->rank);
    from[r->along] = ex_index(k);
    return counts(r, ex_replace(ex_open(e, k), ex_ref(r->v, r->v->rank, from), r->value)) ? read_reduction(r, e, fmax(floor(with) + 1, 1))
                                                                                          : NULL;
}

static Expr *read_leaf(Expr *e, void *with)
{
    Reader *r = with;
    const bool compares =
        e->kind == EX_CALL && e->nargs == 2 && (e->fn == FN_LE || e->fn == FN_LT || e->fn == FN_EQ || e->fn == FN_NE || e->fn == FN_fmin);
    for (int k = 0; k < 2 && compares; k++) {
        Expr *sum = e->args[k], *number = e->args[1 - k];
        if (sum->kind != EX_REDUCE || sum->fn != FN_sum || !ex_mentions(sum, r->v) || number->kind != EX_NUM || !isfinite(number->number))
            continue;
        Expr *count = read_count(r, sum, number->number);
        if (count) return ex_call2(e->name, k ? number : count, k ? count : number);
    }
    if (e->kind == EX_REDUCE && ex_mentions(e, r->v)) {
        Expr *is = e->loose ? NULL : read_reduction(r, e, INFINITY);
        r->failed |= !is;
        return is ? is : e;
    }
    if (e->kind == EX_REF && e->var->kind == VAR_SERIES && ex_reads(e, r->v)) {
        Expr *is = read_recursion(r, e);
        r->failed |= !is;
        return is ? is : e;
    }
    if (e->kind == EX_REF && e->var == r->v) {
        const int apart = apart_from(r, e->args, e->nargs);
        Expr *is = apart == 0 || apart == -1 ? e : apart < -1 && apart > -MOST_SUMMARIES ? read_further_back(r, -apart) : NULL;
        r->failed |= !is;
        return is ? is : e;
    }
    return NULL;
}

// ---- along which subscript, and up to which element ----

typedef struct Seen {
    Reader *r;
    Expr *any;
} Seen;

static void see(Expr *ref, void *with)
{
    Seen *s = with;
    Reader *r = s->r;
    if (ref->nargs != r->v->rank) {
        r->failed = true;
        return;
    }
    for (int k = 0; k < ref->nargs; k++) {
        const bool loose = ref->args[k]->loose > 0, apart = !loose && s->any && ref->args[k] != s->any->args[k];
        if (!loose && !apart) continue;
        r->failed |= r->along >= 0 && r->along != k;
        r->along = k;
    }
    if (ref->loose) return;
    if (!s->any) {
        s->any = ref;
        return;
    }
    const Expr *d = r->along < 0 ? ex_num(0) : ex_sub(ref->args[r->along], s->any->args[r->along]);
    if (d->kind != EX_NUM) r->failed = true;
    else if (d->number > 0) s->any = ref;
}

// The first or the last value that a subscript takes over the plates.
static Expr *end_over(const Loops *p, Expr *e, int side)
{
    for (int i = p->n - 1; i >= 0; i--) e = ex_replace_index(e, p->index[i], side ? p->index[i]->hi : p->index[i]->lo);
    return e;
}

typedef struct Latest {
    Reader *r;
    Expr *ref;
    bool ok;
} Latest;

static Look look_at_series(const Expr *e, void *with)
{
    Latest *l = with;
    if (e->kind != EX_REF || e->var->kind != VAR_SERIES || !ex_reads(e, l->r->v)) return LOOK;
    const Expr *later =
        l->ref && e->nargs == l->ref->nargs && e->nargs > l->r->along ? ex_sub(e->args[l->r->along], l->ref->args[l->r->along]) : NULL;
    l->ok &= !e->loose && e->nargs == l->r->v->rank && (!l->ref || (later && later->kind == EX_NUM));
    if (!l->ref || (later && later->number > 0)) l->ref = (Expr *)e;
    return SKIP;
}

// The element that a factor belongs to which reads definitions alone: the one before which they stand, or the last that is in them.
static Expr *held_by_series(Reader *r, const Factor *f)
{
    Latest l = {r, NULL, true};
    ex_find(f->log_density, look_at_series, &l);
    const Summary *s = l.ref && l.ok ? recursion_of(r, l.ref->var) : NULL;
    if (!s) return NULL;
    Expr *at[MAX_RANK], *t = l.ref->args[r->along];
    memcpy(at, l.ref->args, sizeof *at * (size_t)r->v->rank);
    if (!s->with) {
        double least, most;
        range_of(end_over(&f->plates, t, 0), &least, &most);
        const Expr *past = ex_sub(end_over(&f->plates, t, 1), r->v->dim[r->along]);
        if (least >= 2) at[r->along] = ex_sub(t, ex_num(1));
        else if (past->kind != EX_NUM || past->number > 0) return NULL;
    }
    return ex_ref(r->v, r->v->rank, at);
}

static Expr *last_held(Reader *r, const Factor *f)
{
    Seen s = {r, NULL};
    ex_references(f->log_density, r->v, see, &s);
    return s.any || r->along < 0 ? s.any : held_by_series(r, f);
}

// Where factors have one element each, the recurrence decides.
static void find_along(Reader *r)
{
    Recursion c;
    for (const Series *s = r->g->series; s && r->along < 0; s = s->next) {
        if (s->n != 1 || s->var[0]->hidden || s->var[0]->rank != r->v->rank || !series_reads(s, r->v)) continue;
        for (int k = 0; k < r->v->rank && r->along < 0; k++) {
            const Series *along = series_along(r->g, s->var[0], k);
            if (along && first_order(along, &c)) r->along = c.along;
        }
    }
}

// ---- states ----

static double behind(const Reader *r, const double *summary, int q, double previous, double z)
{
    const Summary *s = &r->s[q];
    const double h = summary ? summary[q] : s->before;
    double x = NAN;
    switch (s->kind) {
    case BY_DISTANCE:
        if (s->distance == 2) return isnan(previous) ? s->before : previous;
        for (int k = 0; k < r->n; k++)
            if (r->s[k].kind == BY_DISTANCE && r->s[k].distance == s->distance - 1) x = summary ? summary[k] : r->s[k].before;
        return x;
    case BY_RECURSION: return number_after(r, s->next, z, summary);
    case BY_REDUCTION: break;
    }
    x = number_at(s->next, 1, &r->value, &z);
    if (isnan(x)) return x;
    switch (s->fn) {
    case FN_sum: return fmin(h + x, s->most);
    case FN_prod: return h == 0 || x == 0 ? 0 : h * x;
    case FN_min: return fmin(h, x);
    case FN_max: return fmax(h, x);
    default: return NAN;
    }
}

// The state of a value with these summaries behind it, from 0; -1: they are no numbers, or too many.
static int state_of(Past *p, double z, const double *summary)
{
    for (int s = 0; s < p->nstates; s++) {
        bool same = p->value[s] == z;
        for (int q = 0; q < p->nsummaries; q++) same &= p->summary[s * p->nsummaries + q] == summary[q];
        if (same) return s;
    }
    if (p->nstates == MOST_STATES) return -1;
    for (int q = 0; q < p->nsummaries; q++) {
        if (isnan(summary[q])) return -1;
        p->summary[p->nstates * p->nsummaries + q] = summary[q];
    }
    p->value[p->nstates] = z;
    return p->nstates++;
}

static bool reach(Past *p, const Reader *r, int from)
{
    double summary[MOST_SUMMARIES];
    for (int k = 0; k < p->nvalues; k++) {
        const double z = p->first + k, *before = from < 0 ? NULL : &p->summary[from * p->nsummaries];
        for (int q = 0; q < p->nsummaries; q++) summary[q] = behind(r, before, q, from < 0 ? NAN : p->value[from], z);
        const int to = state_of(p, z, summary);
        if (to < 0) return false;
        if (from < 0) p->start[k] = to;
        else p->next[from * p->nvalues + k] = to;
    }
    return true;
}

static Past *past_new(Graph *g, double first, int nvalues, int nsummaries)
{
    Past *p = NEW(g->arena, Past);
    *p = (Past){.arena = g->arena,
                .nvalues = nvalues,
                .first = first,
                .nsummaries = nsummaries,
                .value = NEW_N(g->arena, double, MOST_STATES),
                .summary = NEW_N(g->arena, double, MOST_STATES *nsummaries + 1),
                .next = NEW_N(g->arena, int, MOST_STATES *nvalues),
                .start = NEW_N(g->arena, int, nvalues)};
    return p;
}

static Past *states_of(Graph *g, const Reader *r)
{
    const double first = end_of_summed(r->v, 0)->number;
    Past *p = past_new(g, first, (int)(end_of_summed(r->v, 1)->number - first) + 1, r->n);
    p->stand = NEW_N(g->arena, Var *, r->n + 1);
    p->before = NEW_N(g->arena, double, r->n + 1);
    for (int q = 0; q < r->n; q++) {
        p->stand[q] = r->s[q].stand;
        p->before[q] = r->s[q].before;
    }
    for (int s = -1; s < p->nstates; s++)
        if (!reach(p, r, s)) return NULL;
    return p->nstates * p->nvalues <= MOST_PAIRS ? p : NULL;
}

Past *no_past(Graph *g, double first, int nvalues)
{
    Past *p = past_new(g, first, nvalues, 0);
    for (int k = 0; k < nvalues; k++) {
        p->value[k] = first + k;
        p->start[k] = k;
        for (int s = 0; s < nvalues; s++) p->next[s * nvalues + k] = k;
    }
    p->nstates = nvalues;
    return p;
}

// ---- the conditional ----

static Factor *read_factor(Reader *r, Factor *f)
{
    r->here = last_held(r, f);
    if (!r->here || r->along < 0 || r->here->loose) {
        r->failed = true;
        return f;
    }
    Factor *w = arena_copy(r->g->arena, f, sizeof *f);
    w->log_density = ex_map(f->log_density, read_leaf, r);
    // what is remembered, which the element does not change
    if (!ex_mentions(w->log_density, r->v))
        w->log_density = ex_add2(w->log_density, ex_call3("within", r->here, end_of_summed(r->v, 0), end_of_summed(r->v, 1)));
    w->dist = NULL;  // what its arguments allow is weighed already
    w->observed = false;
    return w;
}

// Of a factor that holds z[T] the part of element k counts where k is T: what is remembered before T is that before k.
static Expr *stand_here(Expr *e, void *with)
{
    const Conditional *c = with;
    bool stands = false, apart = false;
    for (int q = 0; q < c->past->nsummaries && e->kind == EX_REF; q++) stands |= e->var == c->past->stand[q];
    for (int k = 0; k < e->nargs && stands; k++) apart |= ex_sub(e->args[k], c->current->args[k])->kind != EX_NUM;
    return apart ? ex_ref(e->var, c->var->rank, c->current->args) : NULL;
}

Conditional *conditional_with_past(Graph *g, Var *v, bool collapsed)
{
    const Expr *first = end_of_summed(v, 0), *last = end_of_summed(v, 1);
    if (!v->rank || v->rank == MAX_RANK || !first || !last || first->kind != EX_NUM || last->kind != EX_NUM ||
        last->number - first->number >= MOST_STATES || last->number < first->number)
        return NULL;
    Reader r = {.g = g, .v = v, .along = -1, .value = ex_ref(var_new(g, v->name, VAR_ELEMENT), 0, NULL)};
    const Reading all = factors_of(g, v);
    Factor **weigh = NEW_N(g->arena, Factor *, all.n + 1), **from = NEW_N(g->arena, Factor *, all.n + 1);
    Reading to = {.factor = NEW_N(g->arena, Factor *, all.n + 1)};
    for (int q = 0; q < all.n; q++) {
        if (!factor_counts(all.factor[q], v, collapsed) || !factor_mentions(all.factor[q], v)) continue;
        from[to.n] = all.factor[q];
        weigh[to.n] = weighed(g, all.factor[q], v);
        last_held(&r, weigh[to.n++]);  // along which subscript
    }
    find_along(&r);
    for (int q = 0; q < to.n && !r.failed; q++) to.factor[q] = read_factor(&r, weigh[q]);
    if (r.failed || r.n == 0) return NULL;
    Past *p = states_of(g, &r);
    if (!p) return NULL;
    Conditional *c = conditional_density_of(g, v, &to, collapsed);
    if (c->whole || c->recursion) return NULL;
    // coupled by what they remember alone
    if (c->nbatch == v->rank || (c->nbatch > r.along && c->nbatch < v->rank)) {
        c->nbatch = r.along;
        c->colours = 2;
    }
    for (Part *q = c->density; q; q = q->next)
        for (int k = 0; k < to.n; k++)
            if (q->factor == to.factor[k]) q->factor = from[k];
    c->past = p;
    for (Part *q = c->density; q; q = q->next) q->value = ex_map(q->value, stand_here, c);
    for (int q = 0; q < r.n; q++) c->closed |= r.s[q].kind == BY_RECURSION;
    return c;
}

// ---- in a draw ----

static Expr *choice(Expr *when, Expr *then, Expr *otherwise)
{
    return then == otherwise ? then : ex_call3("if_else", when, then, otherwise);
}

// The i-th of n numbers, i from 1: what most of them are, but for the others.
static Expr *pick(Expr *i, int n, const double *number)
{
    int often = 0, most = 0;
    for (int a = 0; a < n; a++) {
        int times = 0;
        for (int b = 0; b < n; b++) times += number[b] == number[a];
        if (times > most) {
            most = times;
            often = a;
        }
    }
    Expr *e = ex_num(number[often]);
    for (int a = n - 1; a >= 0; a--)
        if (number[a] != number[often]) e = choice(ex_call2("==", i, ex_num(a + 1)), ex_num(number[a]), e);
    return e;
}

Expr *remembered(const Past *p, int q, Expr *before, Expr *is_first)
{
    double *of = NEW_N(p->arena, double, p->nstates);
    for (int s = 0; s < p->nstates; s++) of[s] = p->summary[s * p->nsummaries + q];
    return choice(is_first, ex_num(p->before[q]), pick(before, p->nstates, of));
}

Expr *state_behind(const Past *p, Expr *before, Expr *value, Expr *is_first)
{
    double *to = NEW_N(p->arena, double, p->nstates);
    Expr *e = NULL;
    for (int k = p->nvalues - 1; k >= 0; k--) {
        for (int s = 0; s < p->nstates; s++) to[s] = p->next[s * p->nvalues + k] + 1;
        Expr *one = choice(is_first, ex_num(p->start[k] + 1), pick(before, p->nstates, to));
        e = e ? choice(ex_call2("==", value, ex_num(p->first + k)), one, e) : one;
    }
    return e;
}
