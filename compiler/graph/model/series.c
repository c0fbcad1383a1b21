// series.c -- definitions whose elements depend on each other: in which order they are computed.
//
//   before   nu[1] = mu;   nu[t] = mu + theta*err[t-1] over t in 2:T;   err[t] = y[t] - nu[t] over t in 1:T
//   after    along t in 1:T:   nu[t] = mu where t == 1;   nu[t] = mu + theta*err[t-1] where 2 <= t;   err[t] = y[t] - nu[t]
//
// Needs: the sites of what is computed.     Gives: g->series, and for each variable in one its series.
// Other definitions are substituted where they are used. These cannot be: they are arrays of the state, and what they depend on is sliced,
// with the array computed again for each value that is tried. A subscript will do to go along if every element needs earlier ones only, or
// later ones only.
#include <math.h>
#include <string.h>
#include "series.h"
#include "../terms/conditions.h"
#include "../terms/ranges.h"
#include "../terms/reads.h"
#include "ode.h"

// ---- what reads what ----

// ---- chains side by side ----

typedef struct Own {
    const Series *s;
    const Var *v;
    const Expr *chain;
} Own;

static Look test_other(const Expr *e, void *with)
{
    const Own *o = with;
    if (e->kind != EX_REF) return LOOK;
    bool of = e->var == o->v;
    for (int i = 0; i < o->s->n; i++) of |= e->var == o->s->var[i];
    return of && (e->nargs == 0 || e->args[0] != o->chain) ? FOUND : LOOK;
}

bool series_reads_own(const Series *s, const Var *v, const Expr *e, Expr *chain) { return !ex_find(e, test_other, &(Own){s, v, chain}); }

// Chains are computed one after the other: the loop over them is the outermost, or can be (kernel/series.c).
static bool tells_chains(const Series *s, const Var *v, const Site *t)
{
    if (!t->value || t->adds || t->n == 0 || t->subscript[0]->kind != EX_INDEX) return false;
    Index *chain = t->subscript[0]->index;
    const Loops *p = t->ode ? &t->ode->plates : &t->plates;
    bool there = !t->ode && chain == s->along;
    for (int i = 0; i < p->n && !there; i++) {
        if (p->index[i] == chain) there = !t->ode || i == 0;
        else if (!t->ode && (ex_mentions_index(p->index[i]->lo, chain) || ex_mentions_index(p->index[i]->hi, chain))) return false;
    }
    if (!t->ode && chain != s->along && (ex_mentions_index(s->along->lo, chain) || ex_mentions_index(s->along->hi, chain))) return false;
    return there && ex_is_num(chain->lo, 1) && chain->hi == t->var->dim[0] && series_reads_own(s, v, t->value, t->subscript[0]) &&
           (!p->guard || series_reads_own(s, v, p->guard, t->subscript[0]));
}

Series *series_in_chains(Graph *g, const Var *v)
{
    Series *only = NULL;
    for (Series *s = g->series; s; s = s->next) {
        if (s->var[0]->kind != VAR_SERIES || !series_reads(s, v)) continue;
        if (only || s->var[0]->hidden || s->apart) return NULL;
        only = s;
    }
    for (const Site *t = !only ? NULL : only->var[0]->sites->ode ? only->var[0]->sites : only->sites; t; t = t->next)
        if (!tells_chains(only, v, t)) return NULL;
    return only;
}

static bool site_mentions(const Site *t, const Var *v)
{
    bool yes = (t->value && ex_mentions(t->value, v)) || (t->when && ex_mentions(t->when, v));
    for (int i = 0; i < t->nargs; i++) yes |= ex_mentions(t->args[i], v);
    return yes;
}

static bool var_mentions(const Var *v, const Var *w)
{
    for (const Site *t = v->sites; t; t = t->next)
        if (site_mentions(t, w)) return true;
    return false;
}

// ---- one group of variables that depend on each other ----

typedef struct SeriesGroup {
    int n, along;
    Var **var;
    bool backward;
    bool *needs;  // needs[a*n + b]: at one value of the subscript, b is computed before a
    bool ok;
} SeriesGroup;

static int member(const SeriesGroup *q, const Var *v)
{
    for (int i = 0; i < q->n; i++)
        if (q->var[i] == v) return i;
    return -1;
}

// The largest (or smallest) value that e takes as the indices of the sums around it run, where that is at an end of their ranges.
static Expr *extreme(Expr *e, int n, Index *const *bound, Expr *const *lo, Expr *const *hi, bool largest)
{
    for (int i = n - 1; i >= 0; i--) {
        if (!ex_mentions_index(e, bound[i])) continue;
        const Expr *slope = ex_sub(ex_replace_index(e, bound[i], ex_add2(ex_index(bound[i]), ex_num(1))), e);
        if (slope->kind != EX_NUM) return NULL;
        e = ex_replace_index(e, bound[i], (slope->number > 0) == largest ? hi[i] : lo[i]);
    }
    return e;
}

// How the references in e, part of a site of variable a, lie to the element that is computed.
static void look(SeriesGroup *q, int a, const Site *t, Expr *e, int n, Index **bound, Expr **lo, Expr **hi)
{
    const int b = e->kind == EX_REF ? member(q, e->var) : -1;
    if (b >= 0) {
        Expr *far = e->nargs > q->along ? extreme(e->args[q->along], n, bound, lo, hi, !q->backward) : NULL;
        const Expr *apart = far ? ex_sub(far, t->subscript[q->along]) : NULL;
        if (!apart || apart->kind != EX_NUM) {
            q->ok = false;
            return;
        }
        const double ahead = q->backward ? -apart->number : apart->number;
        if (ahead > 0) q->ok = false;
        if (ahead == 0 && a != b) q->needs[a * q->n + b] = true;
        if (ahead == 0 && a == b) {  // the same row: an earlier element of it
            bool earlier = false;
            for (int k = 0; k < t->n && !earlier; k++) {
                if (k == q->along) continue;
                Expr *most = k < e->nargs ? extreme(e->args[k], n, bound, lo, hi, true) : NULL;
                const Expr *d = most ? ex_sub(most, t->subscript[k]) : NULL;
                if (!d || d->kind != EX_NUM || d->number > 0) break;
                earlier = d->number < 0;
            }
            q->ok &= earlier;
        }
    }
    if (e->kind == EX_REDUCE || e->kind == EX_ARRAY) {
        const bool reduce = e->kind == EX_REDUCE;
        for (int i = 0; i + 1 < e->nargs; i++) look(q, a, t, e->args[i], n, bound, lo, hi);
        bound[n] = e->index;
        lo[n] = reduce ? e->args[0] : ex_num(1);
        hi[n] = reduce ? e->args[1] : e->args[0];
        look(q, a, t, e->args[e->nargs - 1], n + 1, bound, lo, hi);
        return;
    }
    for (int i = 0; i < e->nargs; i++) look(q, a, t, e->args[i], n, bound, lo, hi);
}

// The plate in subscript `plate + shift`, or NULL if the subscript holds no plate; *ok is false if it is neither.
static Index *plate_in(const Site *t, Expr *e, double *shift, bool *ok)
{
    *shift = 0;
    bool fixed = true;
    for (int i = 0; i < t->plates.n; i++) fixed &= !ex_mentions_index(e, t->plates.index[i]);
    if (fixed) return NULL;
    if (e->kind == EX_ADD && e->nargs == 2 && e->args[0]->kind == EX_NUM) {
        *shift = e->args[0]->number;
        e = e->args[1];
    }
    for (int i = 0; i < t->plates.n; i++)
        if (e == ex_index(t->plates.index[i])) return t->plates.index[i];
    *ok = false;
    return NULL;
}

static void look_all(Graph *g, SeriesGroup *q, int a, const Site *t, Expr *e)
{
    const int deepest = e->height + 1;  // sums within sums
    look(q, a, t, e, 0, NEW_N(g->arena, Index *, deepest), NEW_N(g->arena, Expr *, deepest), NEW_N(g->arena, Expr *, deepest));
}

static bool goes_along(Graph *g, SeriesGroup *q)
{
    q->ok = true;
    memset(q->needs, 0, sizeof *q->needs * (size_t)(q->n * q->n));
    for (int a = 0; a < q->n && q->ok; a++)
        for (const Site *t = q->var[a]->sites; t && q->ok; t = t->next) {
            double shift;
            if (t->n <= q->along) {
                q->ok = false;
                break;
            }
            plate_in(t, t->subscript[q->along], &shift, &q->ok);
            if (t->value) look_all(g, q, a, t, t->value);
            if (t->when) look_all(g, q, a, t, t->when);
            for (int i = 0; i < t->nargs; i++) look_all(g, q, a, t, t->args[i]);
        }
    return q->ok;
}

// A site with `along` in the place of its plate or number; its other plates in the order of their subscripts.
static Site *solved(Graph *g, const SeriesGroup *q, const Site *t, Index *along)
{
    double shift;
    bool ok = true;
    Index *plate = plate_in(t, t->subscript[q->along], &shift, &ok), **was = NEW_N(g->arena, Index *, t->plates.n + 1);
    Expr *key = ex_index(along), **is = NEW_N(g->arena, Expr *, t->plates.n + 1);
    Site *s = NEW(g->arena, Site);
    *s = *t;
    s->next = NULL;
    s->plates = (Loops){.guard = t->plates.guard};
    int n = 0;
    if (plate) {
        Expr *value = ex_add2(key, ex_num(-shift));
        was[n] = plate;
        is[n++] = value;
        if (!(ex_is_num(plate->lo, 1) && shift == 0)) s->plates.guard = ex_both(s->plates.guard, ex_call2("<=", plate->lo, value));
        if (!(plate->hi == along->hi && shift == 0)) s->plates.guard = ex_both(s->plates.guard, ex_call2("<=", value, plate->hi));
    } else s->plates.guard = ex_both(s->plates.guard, ex_call2("==", key, t->subscript[q->along]));
    for (int k = 0; k <= t->n; k++)  // last, plates that no subscript holds
        for (int i = 0; i < t->plates.n; i++) {
            Index *j = t->plates.index[i];
            bool done = j == plate || (k < t->n && !ex_mentions_index(t->subscript[k], j));
            for (int m = 0; m < n; m++) done |= was[m] == j;
            if (done) continue;
            Expr *lo = j->lo, *hi = j->hi;
            for (int m = 0; m < n; m++) {
                lo = ex_replace(lo, ex_index(was[m]), is[m]);
                hi = ex_replace(hi, ex_index(was[m]), is[m]);
            }
            Index *fresh = index_new(j->name, lo, hi);
            was[n] = j;
            is[n++] = ex_index(fresh);
            s->plates.index[s->plates.n++] = fresh;
        }
    s->args = NEW_N(g->arena, Expr *, t->nargs + 1);
    for (int i = 0; i < t->nargs; i++) s->args[i] = t->args[i];
    for (int m = 0; m < n; m++) {
        for (int k = 0; k < t->n; k++) s->subscript[k] = ex_replace(s->subscript[k], ex_index(was[m]), is[m]);
        for (int i = 0; i < t->nargs; i++) s->args[i] = ex_replace(s->args[i], ex_index(was[m]), is[m]);
        if (s->value) s->value = ex_replace(s->value, ex_index(was[m]), is[m]);
        if (s->when) s->when = ex_replace(s->when, ex_index(was[m]), is[m]);
        if (s->plates.guard) s->plates.guard = ex_replace(s->plates.guard, ex_index(was[m]), is[m]);
    }
    if (!plate) s->subscript[q->along] = key;
    s->plates.guard = condition_left(s->plates.guard);
    return s;
}

static Series *series_new(Graph *g, const SeriesGroup *q)
{
    Series *s = NEW(g->arena, Series);
    *s = (Series){.n = q->n, .var = NEW_N(g->arena, Var *, q->n), .backward = q->backward};
    const char *name = NULL;
    Expr *extent = q->var[0]->dim[q->along];
    for (int a = 0; a < q->n; a++) {
        if (q->var[a]->dim[q->along] != extent) extent = ex_call2("fmax", extent, q->var[a]->dim[q->along]);
        for (const Site *t = q->var[a]->sites; t; t = t->next) {
            double shift;
            bool ok = true;
            const Index *plate = plate_in(t, t->subscript[q->along], &shift, &ok);
            if (plate && !name) name = plate->name;
        }
    }
    s->along = index_new(name ? name : intern("t"), ex_num(1), extent);
    bool *placed = NEW_N(g->arena, bool, q->n);
    memset(placed, 0, sizeof *placed * (size_t)q->n);
    Site **last = &s->sites;
    int n = 0;
    for (bool progress = true; progress && n < q->n;) {
        progress = false;
        for (int a = 0; a < q->n; a++) {
            bool ready = !placed[a];
            for (int b = 0; b < q->n && ready; b++) ready = !q->needs[a * q->n + b] || placed[b];
            if (!ready) continue;
            placed[a] = progress = true;
            s->var[n++] = q->var[a];
            for (const Site *t = q->var[a]->sites; t; t = t->next) {
                *last = solved(g, q, t, s->along);
                last = &(*last)->next;
            }
        }
    }
    return n == q->n ? s : NULL;  // else each waits for another at the same place
}

Series *series_along(Graph *g, Var *v, int along)
{
    SeriesGroup q = {.n = 1, .along = along, .var = arena_copy(g->arena, &v, sizeof v), .needs = NEW_N(g->arena, bool, 1)};
    return goes_along(g, &q) ? series_new(g, &q) : NULL;
}

bool add_series(Graph *g, Var *v)
{
    SeriesGroup q = {.n = 1, .var = NEW_N(g->arena, Var *, 1), .needs = NEW_N(g->arena, bool, 1)};
    Series *s = NULL, **last = &g->series;
    q.var[0] = v;
    for (q.along = 0; q.along < MAX_RANK && !s; q.along++)
        for (int way = 0; way < 2 && !s; way++) {
            q.backward = way;
            if (goes_along(g, &q)) s = series_new(g, &q);
        }
    if (!s) return false;
    v->series = s;
    while (*last) last = &(*last)->next;
    *last = s;
    return true;
}

// By induction along the subscript: if no element before is negative, the next one is not.
static bool stays_above_zero(const Series *s, const Var *v)
{
    for (const Site *t = s->sites; t; t = t->next)
        if (t->var == v && (!t->value || !never_negative(t->value))) return false;
    return true;
}

// I[t] = exp(r[t]) * sum(k in 1:K, w[k] * I[t - k]) is not negative where w is not, nor is what is computed of it. Elements that no
// statement computes are read by none. Of several that are computed together all are supposed so, until one is found that may not be.
void suppose_series(Graph *g)
{
    for (const Series *s = g->series; s; s = s->next) {
        for (int i = 0; i < s->n; i++)
            if (s->var[i]->kind == VAR_SERIES && isinf(s->var[i]->lower_number)) s->var[i]->lower_number = 0;
        for (bool again = true; again;) {
            again = false;
            for (int i = 0; i < s->n; i++) {
                if (s->var[i]->kind != VAR_SERIES || s->var[i]->lower_number != 0 || stays_above_zero(s, s->var[i])) continue;
                s->var[i]->lower_number = -INFINITY;
                again = true;
            }
        }
    }
}

static bool recursive(const Var *v) { return v->decl && v->decl->recursive; }

bool find_series(Graph *g)
{
    Var **all = NEW_N(g->arena, Var *, g->nvars + 1);
    int n = 0;
    bool any = false;
    for (int i = 0; i < g->nvars; i++) {
        Var *v = g->vars[i];
        if ((!v->decl && !v->hidden) || !v->sites || (v->kind != VAR_LET && v->kind != VAR_SERIES && v->kind != VAR_PREDICTED)) continue;
        any |= recursive(v);
        all[n++] = v;
    }
    if (!any) return true;
    bool *reach = NEW_N(g->arena, bool, n *n);
    for (int i = 0; i < n; i++)
        for (int j = 0; j < n; j++) reach[i * n + j] = var_mentions(all[i], all[j]);
    for (int k = 0; k < n; k++)
        for (int i = 0; i < n; i++)
            for (int j = 0; j < n && reach[i * n + k]; j++) reach[i * n + j] |= reach[k * n + j];
    Series **last = &g->series;
    bool waiting = true, progress = true;
    while (waiting && progress) {  // series that others read come first
        waiting = progress = false;
        for (int i = 0; i < n; i++) {
            if (!recursive(all[i]) || all[i]->series) continue;
            SeriesGroup q = {.var = NEW_N(g->arena, Var *, n), .needs = NEW_N(g->arena, bool, n *n)};
            for (int j = 0; j < n; j++)
                if (j == i || (reach[i * n + j] && reach[j * n + i])) q.var[q.n++] = all[j];
            bool elsewhere = false;
            for (int j = 0; j < n; j++) elsewhere |= reach[i * n + j] && !reach[j * n + i] && recursive(all[j]) && !all[j]->series;
            if (elsewhere) {
                waiting = true;
                continue;
            }
            Series *s = NULL;
            for (q.along = 0; q.along < MAX_RANK && !s; q.along++)
                for (int way = 0; way < 2 && !s; way++) {
                    q.backward = way;
                    if (goes_along(g, &q)) s = series_new(g, &q);
                }
            if (!s) {
                Diag *m = diag(g->diags, all[i]->span, DIAG_E0208, all[i]->name);
                diag_help(m, "its elements are computed in the order of one subscript: each may depend on those before it, as x[t - 1], or "
                             "on those behind it");
                return false;
            }
            for (int k = 0; k < s->n; k++) s->var[k]->series = s;
            *last = s;
            last = &s->next;
            progress = true;
        }
    }
    return true;
}
