// mentions.c -- the references to a variable in a factor, and the part of the factor that one element sees: plates are solved for its
// subscripts.
//
//   before   normal(y[i] | u[g[i]], s) over i in 1:N,  element u[k]
//   after    the same with u in place of u[g[i]], over i in 1:N where g[i] == k
//
// Needs: a conditional with its element.     Gives: parts.
#include <string.h>
#include "mentions.h"
#include "../terms/conditions.h"

// Whether it holds the index of a sum around it; sums within it, as in u[sum(j, k[j])], have indices of their own.
static bool has_bound_index(const Expr *e) { return e->loose > 0; }

typedef struct MentionSearch {
    Arena *arena;
    const Var *v;
    Mentions *m;
} MentionSearch;

static void find_mention(Expr *e, void *with)
{
    const MentionSearch *f = with;
    Mentions *m = f->m;
    if (e->var != f->v) return;
    if (m->n == MAX_MENTIONS) {
        m->too_many = true;
        return;
    }
    ROOM(f->arena, m->ref, m->n, m->size);
    m->ref[m->n++] = e;
    if (e->nargs < f->v->rank) m->partial = true;
    if (has_bound_index(e)) m->dense = true;
}

void find_mentions(Arena *a, Expr *e, const Var *v, Mentions *m) { ex_references(e, v, find_mention, &(MentionSearch){a, v, m}); }

int plate_of(const Loops *p, const Index *i)
{
    for (int k = 0; k < p->n; k++)
        if (p->index[k] == i) return k;
    return -1;
}

// e as plate + shift.
bool plate_shift(const Loops *p, Expr *e, int *plate, double *shift)
{
    *shift = 0;
    if (e->kind == EX_ADD && e->nargs == 2 && e->args[0]->kind == EX_NUM) {
        *shift = e->args[0]->number;
        e = e->args[1];
    }
    if (e->kind != EX_INDEX) return false;
    *plate = plate_of(p, e->index);
    return *plate >= 0;
}

// Can two references in one instance never be the same element?
bool never_same(Expr *a, Expr *b)
{
    for (int i = 0; i < a->nargs && i < b->nargs; i++) {
        Expr *d = ex_sub(a->args[i], b->args[i]);
        if (d->kind == EX_NUM && d->number != 0) return true;
    }
    return false;
}

// ---- solve subscripts = element for the plates ----

// A sum over elements of v gives up the term of the element: S becomes S - a[k]*v[k] + a[k]*u.
typedef struct Isolate {
    Arena *arena;
    Conditional *c;
    Expr *ref;
    bool failed;
} Isolate;

// e with u for the element ref, and the u of what is studied together with it for that.
static Expr *both_replaced(const Conditional *c, Expr *e, Expr *ref)
{
    e = ex_replace(e, ref, c->u);
    return c->with ? ex_replace(e, ex_ref(c->with->var, ref->nargs, ref->args), c->with->u) : e;
}

static Expr *isolate(Expr *e, void *with)
{
    Isolate *is = with;
    Var *v = is->c->var;
    if (e->kind != EX_REDUCE || !ex_mentions(e, v)) return NULL;
    if (e->fn != FN_sum || ex_mentions(e->args[0], v) || ex_mentions(e->args[1], v)) {
        is->failed = true;
        return e;
    }
    int at = -1, times = 0;  // x[j, j] and x[j, j + 1] have elements that are in no term
    for (int k = 0; k < is->ref->nargs; k++) {
        if (is->ref->args[k]->kind == EX_INDEX && is->ref->args[k]->index == e->index) at = k;
        times += ex_mentions_index(is->ref->args[k], e->index);
    }
    if (at < 0 || times > 1) {
        is->failed = true;
        return e;
    }
    Expr *key = ex_index(is->c->element[at]);
    Expr *body = ex_replace_index(e->args[2], e->index, key), *ref = ex_replace_index(is->ref, e->index, key);
    Mentions m = {0};
    find_mentions(is->arena, body, v, &m);
    if (m.n != 1 || m.ref[0] != ref) {
        is->failed = true;
        return e;
    }
    // Sums within, sum(l, f(sum(j, v[j, l]))), give up the term, too: the element is one of theirs.
    Isolate within = {.arena = is->arena, .c = is->c, .ref = ref};
    Expr *with_element = has_bound_index(ref) ? ex_map(body, isolate, &within) : both_replaced(is->c, body, ref);
    if (within.failed) {
        is->failed = true;
        return e;
    }
    Expr *term = ex_sub(with_element, body);
    if (!ex_is_num(e->args[0], 1) || e->args[1] != v->dim[at])
        term = ex_call3("if_else", ex_call2("&&", ex_call2("<=", e->args[0], key), ex_call2("<=", key, e->args[1])), term, ex_num(0));
    return ex_add2(e, term);
}

// Subscripts of a mention, solved for the plates: what replaces the index of each.
typedef struct Solving {
    Expr *from[MAX_RANK * 2], *to[MAX_RANK * 2];
    int n;
    bool taken[2 * MAX_RANK];
    Expr *guard, *equal;  // where the solutions lie inside; subscripts that are compared
    bool gather;          // one of these moves
} Solving;

static void solve_subscripts(const Conditional *c, const Factor *f, const Expr *ref, Solving *s)
{
    const Var *v = c->var;
    for (int k = 0; k < v->rank; k++) {
        Expr *e = ref->args[k], *key = ex_index(c->element[k]);
        int plate;
        double shift;
        if (e->kind == EX_INDEX && e->index->height > 0) continue;  // the sum's own index: solved by isolate
        if (plate_shift(&f->plates, e, &plate, &shift) && !s->taken[plate]) {
            s->taken[plate] = true;
            Index *i = f->plates.index[plate];
            Expr *value = ex_add2(key, ex_num(-shift));
            s->from[s->n] = ex_index(i);
            s->to[s->n++] = value;
            if (!(ex_is_num(i->lo, 1) && shift == 0)) s->guard = ex_both(s->guard, ex_call2("<=", i->lo, value));
            if (!(i->hi == v->dim[k] && shift == 0)) s->guard = ex_both(s->guard, ex_call2("<=", value, i->hi));
        } else {
            bool varies = ex_unknown(e);
            for (int m = 0; m < f->plates.n; m++) varies |= ex_mentions_index(e, f->plates.index[m]);
            s->gather |= varies;
            s->equal = ex_both(s->equal, ex_call2("==", e, key));
        }
    }
}

// The plates that remain are loops; their indices get fresh ranges if these mention a solved plate.
static void loops_left(const Factor *f, Solving *s, Loops *loops)
{
    for (int m = 0; m < f->plates.n; m++) {
        if (s->taken[m]) continue;
        Index *i = f->plates.index[m];
        Expr *lo = i->lo, *hi = i->hi;
        for (int k = 0; k < s->n; k++) {
            lo = ex_replace(lo, s->from[k], s->to[k]);
            hi = ex_replace(hi, s->from[k], s->to[k]);
        }
        if (lo != i->lo || hi != i->hi) {
            Index *j = index_new(i->name, lo, hi);
            s->from[s->n] = ex_index(i);
            s->to[s->n++] = ex_index(j);
            i = j;
        }
        loops->index[loops->n++] = i;
    }
}

Solved solve(Graph *g, Conditional *c, Factor *f, Expr *ref, bool scatter_allowed)
{
    Expr *e = f->log_density;
    Solved out = {.ok = true};
    if (has_bound_index(ref)) {
        Isolate is = {.arena = g->arena, .c = c, .ref = ref};
        e = ex_map(e, isolate, &is);
        if (is.failed) {
            out.ok = false;
            return out;
        }
    } else e = both_replaced(c, e, ref);
    Solving s = {.guard = f->plates.guard};
    solve_subscripts(c, f, ref, &s);
    out.gather = s.gather;
    Part *part = out.part = NEW(g->arena, Part);
    *part = (Part){.factor = f};
    if (out.gather && scatter_allowed) {  // loop over the whole factor and add to the element it names
        part->scatter = true;
        part->loops = (Loops){.guard = f->plates.guard};
        for (int m = 0; m < f->plates.n; m++) part->loops.index[part->loops.n++] = f->plates.index[m];
        for (int k = 0; k < c->var->rank; k++) part->target[k] = ref->args[k];
        part->value = e;
        return out;
    }
    Expr *guard = ex_both(s.guard, s.equal);
    loops_left(f, &s, &part->loops);
    for (int k = 0; k < s.n; k++) {
        e = ex_replace(e, s.from[k], s.to[k]);
        if (guard) guard = ex_replace(guard, s.from[k], s.to[k]);
    }
    part->loops.guard = condition_left(guard);
    part->value = e;
    return out;
}

// No element is in such a part, whatever the sizes are.
bool stands_nowhere(const Part *p) { return p->loops.guard && ex_is_num(p->loops.guard, 0); }

// ---- factors that are not solved ----

void part_append(Part **list, Part *p)
{
    while (*list) list = &(*list)->next;
    *list = p;
}

// A factor as it stands, over those of its instances that hold the element: where all references have the same plate index in a dimension,
// that index is the element's.
Part *whole_factor(Graph *g, const Conditional *c, Factor *f, const Mentions *m)
{
    Part *p = NEW(g->arena, Part);
    *p = (Part){.factor = f, .value = f->log_density, .loops = {.guard = f->plates.guard}};
    Index *was[2 * MAX_RANK];
    Expr *is[2 * MAX_RANK];
    int n = 0;
    for (int k = 0; m->n && !m->too_many && k < c->var->rank; k++) {
        bool same = m->ref[0]->nargs > k && m->ref[0]->args[k]->kind == EX_INDEX && plate_of(&f->plates, m->ref[0]->args[k]->index) >= 0;
        for (int i = 1; i < m->n && same; i++) same = m->ref[i]->nargs > k && m->ref[i]->args[k] == m->ref[0]->args[k];
        if (!same) break;
        Index *i = m->ref[0]->args[k]->index;
        for (int j = 0; j < n; j++) same &= was[j] != i;
        for (int j = 0; j < n; j++) same &= !ex_mentions_index(i->lo, was[j]) && !ex_mentions_index(i->hi, was[j]);
        if (!same) break;
        Expr *key = ex_index(c->element[k]);
        was[n] = i;
        is[n++] = key;
        if (!ex_is_num(i->lo, 1)) p->loops.guard = ex_both(p->loops.guard, ex_call2("<=", i->lo, key));
        if (i->hi != c->var->dim[k]) p->loops.guard = ex_both(p->loops.guard, ex_call2("<=", key, i->hi));
    }
    for (int k = 0; k < f->plates.n; k++) {
        Index *i = f->plates.index[k];
        bool solved = false;
        Expr *lo = i->lo, *hi = i->hi;
        for (int j = 0; j < n; j++) {
            solved |= was[j] == i;
            lo = ex_replace(lo, ex_index(was[j]), is[j]);
            hi = ex_replace(hi, ex_index(was[j]), is[j]);
        }
        if (solved) continue;
        if ((lo != i->lo || hi != i->hi) && n < 2 * MAX_RANK) {
            was[n] = i;
            i = index_new(i->name, lo, hi);
            is[n++] = ex_index(i);
        }
        p->loops.index[p->loops.n++] = i;
    }
    for (int j = 0; j < n; j++) {
        p->value = ex_replace(p->value, ex_index(was[j]), is[j]);
        if (p->loops.guard) p->loops.guard = ex_replace(p->loops.guard, ex_index(was[j]), is[j]);
    }
    p->loops.guard = condition_left(p->loops.guard);
    return p;
}
