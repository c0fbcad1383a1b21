// entries.c -- entries of the precision and the shift of joint normals: each term of a block goes to its places, by way of statistics
// where these leave the sweep.
//
//   before   term -1/2 w[i]*x[i]*beta[j]*beta[k] over i, j, k       after   J[j, k] += w[i]*x[i], and its mirror image
//
// Needs: the terms of a block (graph), places of its arrays.     Gives: nodes in the open kernel.
#include "lower.h"

static bool is_arrow(const BlockPlace *b, const Var *v)
{
    return b->update->gaussian.arrow && b->update->block[b->update->nblock - 1] == v;
}

// An element's place in its batch of the block.
Sub inner_sub(const BlockPlace *b, Expr *ref)
{
    int i = 0;
    while (b->update->block[i] != ref->var) i++;
    const int nb = b->update->gaussian.diagonal ? 0 : b->update->gaussian.nbatch;
    return (Sub){.offset = is_arrow(b, ref->var) ? NULL : b->offset[i],
                 .of = ref->var,
                 .first = nb,
                 .n = ref->nargs - nb,
                 .at = ref->args + nb,
                 .extent = local_ref(b->n)};
}

static Sub batch_sub(const BlockPlace *b, Expr *ref) { return (Sub){.of = ref->var, .n = b->update->gaussian.nbatch, .at = ref->args}; }

Place place_at(Var *array, int n, Sub a, Sub b, Sub c) { return (Place){.array = array, .n = n, .sub = {a, b, c}}; }

// One entry of the precision or the shift; in a pair of places off the diagonal if `mirrored`, of which `side` 1 and 2 are the first
// and its mirror image alone.
void put_entry(Lower *p, const BlockPlace *b, const BlockTerm *t, bool mirrored, int side, Expr *value)
{
    const Sub none = {0};
    const bool batched = b->update->gaussian.nbatch > 0;
    const Sub i = inner_sub(b, t->ref[0]);
    if (b->few) {
        put_assign(p, ASSIGN_ADD, place_at(t->degree == 1 ? b->h : b->diagonal, 1, i, none, none), value);
        return;
    }
    if (t->degree == 1) {
        const bool arrow = is_arrow(b, t->ref[0]->var);
        if (batched) put_assign(p, ASSIGN_ADD, place_at(b->h, 2, batch_sub(b, t->ref[0]), i, none), value);
        else put_assign(p, ASSIGN_ADD, place_at(arrow ? b->k : b->h, 1, i, none, none), value);
        return;
    }
    const bool a0 = is_arrow(b, t->ref[0]->var), a1 = is_arrow(b, t->ref[1]->var);
    const Sub j = inner_sub(b, t->ref[1]);
    if (b->entries) {
        put_assign(p, ASSIGN_ADD, place_at(b->entries, 2, i, j, none), value);
        return;
    }
    if (a0 && a1) {
        put_assign(p, ASSIGN_ADD, place_at(b->D, 1, i, none, none), value);
        return;
    }
    if (a0 || a1) {
        put_assign(p, ASSIGN_ADD, place_at(b->E, 2, a0 ? i : j, a0 ? j : i, none), value);
        return;
    }
    for (int image = 0; image <= mirrored; image++) {
        if (side && side != image + 1) continue;
        const Sub row = image ? j : i, column = image ? i : j;
        put_assign(p, ASSIGN_ADD, batched ? place_at(b->J, 3, batch_sub(b, t->ref[0]), row, column) : place_at(b->J, 2, row, column, none),
                   value);
    }
}

// Keys of a term: the different subscripts that vary with its loops.
static bool term_keys(Lower *p, const BlockTerm *t, Keys *keys, Index **fresh)
{
    *keys = (Keys){0};
    for (int r = 0; r < t->degree; r++)
        for (int k = 0; k < t->ref[r]->nargs; k++) {
            Expr *s = t->ref[r]->args[k];
            bool varies = false, seen = false;
            for (int i = 0; i < t->loops.n; i++) varies |= ex_mentions_index(s, t->loops.index[i]);
            for (int i = 0; i < keys->n; i++) seen |= keys->key[i] == s;
            if (!varies || seen) continue;
            if (keys->n == 4) return false;
            keys->key[keys->n] = s;
            keys->extent[keys->n] = t->ref[r]->var->dim[k];
            fresh[keys->n] = index_of_key(p, t->ref[r]->var->called[k], keys->extent[keys->n], fresh, keys->n);
            keys->at[keys->n] = ex_index(fresh[keys->n]);
            keys->n++;
        }
    return true;
}

// Whether a statistic of data is the same with its two subscripts exchanged, as X'X is.
static bool symmetric(const Var *v)
{
    const Sum *s = v->kind == VAR_SUM ? v->sum : NULL;
    if (!s || s->n != 2 || s->target[0]->kind != EX_INDEX || s->target[1]->kind != EX_INDEX) return false;
    Index *j = s->target[0]->index, *k = s->target[1]->index;
    if (j->lo != k->lo || j->hi != k->hi || s->loops.guard) return false;
    Index *t = index_new(intern("t"), j->lo, j->hi);
    Expr *e = ex_replace_index(s->value, j, ex_index(t));
    e = ex_replace_index(e, k, ex_index(j));
    return ex_replace_index(e, t, ex_index(k)) == s->value;
}

static Expr *in_order(Expr *e, void *with)
{
    (void)with;
    if (e->kind != EX_REF || e->nargs != 2 || !symmetric(e->var) || e->args[0]->id <= e->args[1]->id) return NULL;
    return ex_ref(e->var, 2, (Expr *[]){e->args[1], e->args[0]});
}

// Two elements of one array, each over all of it: every place of the precision is met once, so entry and mirror image are added there.
static bool both_whole(const BlockTerm *t)
{
    const Expr *a = t->ref[0], *b = t->ref[1];
    if (t->degree != 2 || a == b || a->var != b->var || a->nargs != 1 || t->loops.n != 2 || t->loops.guard) return false;
    if (a->args[0]->kind != EX_INDEX || b->args[0]->kind != EX_INDEX || a->args[0] == b->args[0]) return false;
    for (int i = 0; i < 2; i++)
        if (!ex_is_num(t->loops.index[i]->lo, 1) || t->loops.index[i]->hi != a->var->dim[0]) return false;
    return true;
}

// Two elements that differ in the index of one loop each, j and k, over the same range, and a coefficient that is the same with j and k
// exchanged: entry and mirror image are met in the same place.
static bool is_symmetric(const BlockTerm *t)
{
    const Expr *a = t->ref[0], *b = t->ref[1];
    if (t->degree != 2 || a->var != b->var || a->nargs != b->nargs || t->loops.guard) return false;
    int at = -1;
    for (int k = 0; k < a->nargs; k++) {
        if (a->args[k] == b->args[k]) continue;
        if (at >= 0 || a->args[k]->kind != EX_INDEX || b->args[k]->kind != EX_INDEX) return false;
        at = k;
    }
    if (at < 0) return false;
    Index *j = a->args[at]->index, *k = b->args[at]->index, *t1 = index_new(intern("t"), j->lo, j->hi);
    if (j->lo != k->lo || j->hi != k->hi) return false;
    int found = 0;
    for (int i = 0; i < t->loops.n; i++) {
        const Index *l = t->loops.index[i];
        found += l == j || l == k;
        if (ex_mentions_index(l->lo, j) || ex_mentions_index(l->hi, j) || ex_mentions_index(l->lo, k) || ex_mentions_index(l->hi, k))
            return false;
    }
    for (int m = 0; m < a->nargs; m++)
        if (m != at && (ex_mentions_index(a->args[m], j) || ex_mentions_index(a->args[m], k))) return false;
    return found == 2 && ex_replace_index(ex_replace_index(ex_replace_index(t->coefficient, j, ex_index(t1)), k, ex_index(j)), t1,
                                          ex_index(k)) == t->coefficient;
}

Node *enter_entries(Lower *p, const Loops *l, int n, Expr *const *target, Expr *const *extent)
{
    Expr **t = arena_copy(p->g->arena, target, sizeof *t * (size_t)n),
         **e = extent ? arena_copy(p->g->arena, extent, sizeof *e * (size_t)n) : NULL;
    return enter_nest(p, NODE_REDUCE, l, n, t, e);
}

// Of a sparse block: the sums over rows by these subscripts are no more than elements of a variable, times those of one with few.
static bool worth_a_table(const BlockPlace *b, const BlockTerm *t)
{
    if (!b->entries || t->degree == 1) return true;
    bool within[2] = {true, true}, few[2];
    for (int r = 0; r < 2; r++) {
        int at = 0;
        while (b->update->block[at] != t->ref[r]->var) at++;
        few[r] = at < b->update->gaussian.ndense;
        for (int k = 0; k < t->ref[r]->nargs; k++) {  // is this subscript one of the other's?
            bool varies = false, there = false;
            for (int i = 0; i < t->loops.n; i++) varies |= ex_mentions_index(t->ref[r]->args[k], t->loops.index[i]);
            for (int m = 0; m < t->ref[!r]->nargs; m++) there |= t->ref[!r]->args[m] == t->ref[r]->args[k];
            within[r] &= !varies || there;
        }
    }
    return few[0] || few[1] || within[0] || within[1];
}

// The term with what can be summed before the sweep in a statistic.
static BlockTerm summed_before(Lower *p, const BlockPlace *b, const BlockTerm *t)
{
    Keys keys = {0};
    Index *fresh[4];
    BlockTerm own = *t;
    bool sums = worth_a_table(b, t) && term_keys(p, t, &keys, fresh);
    int plain = 0;
    for (int i = 0; i < keys.n; i++) plain += keys.key[i]->kind == EX_INDEX;
    if (sums && !(plain == keys.n && keys.n == t->loops.n)) {  // there is something to sum
        p->statistics.route = b->update->gaussian.rows && b->update->gaussian.rows->factor == t->factor ? b->update->gaussian.rows : NULL;
        Expr *h = hoist_sum(&p->statistics, &keys, &t->loops, t->coefficient);
        p->statistics.route = NULL;
        if (h) {
            for (int r = 0; r < own.degree; r++) own.ref[r] = keys_at(&keys, own.ref[r]);
            own.coefficient = h;
            own.loops = (Loops){.n = keys.n};
            for (int k = 0; k < keys.n; k++) own.loops.index[k] = fresh[k];
        }
    }
    return own;
}

// Two elements of one array that both vary, and no gather: one lane's mirror image may be another's place, so all places come first,
// then all images. With a gather, lanes test which places are their own.
static bool both_vary(const BlockTerm *u)
{
    bool both = true;
    for (int r = 0; r < 2 && both; r++) {
        bool varies = false;
        for (int k = 0; k < u->ref[r]->nargs; k++)
            for (int i = 0; i < u->loops.n; i++)
                if (ex_mentions_index(u->ref[r]->args[k], u->loops.index[i])) {
                    varies = true;
                    both &= u->ref[r]->args[k]->kind == EX_INDEX;
                }
        both &= varies;
    }
    return both;
}

void accumulate(Lower *p, const BlockPlace *b, const BlockTerm *t)
{
    if (!b->few && in_row_pass(p, t)) return;
    const BlockTerm u = summed_before(p, b, t);
    Expr *value = u.coefficient;
    bool mirrored = u.degree == 2 && u.ref[0] != u.ref[1] && !is_arrow(b, u.ref[0]->var) && !is_arrow(b, u.ref[1]->var);
    if (b->entries) {  // both places of a pair, and twice the diagonal, are the runtime's to make
        mirrored = false;
        if (u.degree == 2) value = ex_mul2(ex_num(-1), value);
    } else if (mirrored && both_whole(&u)) {
        Index *j = u.ref[0]->args[0]->index, *k = u.ref[1]->args[0]->index, *t1 = index_new(intern("t"), j->lo, j->hi);
        Expr *other = ex_replace_index(ex_replace_index(ex_replace_index(value, j, ex_index(t1)), k, ex_index(j)), t1, ex_index(k));
        value = ex_add2(ex_map(value, in_order, NULL), ex_map(other, in_order, NULL));
        mirrored = false;
    } else if (mirrored && is_symmetric(&u)) {
        value = ex_mul2(ex_num(2), value);
        mirrored = false;
    }
    if (u.degree == 2 && !b->entries)
        value = ex_mul2(ex_num(u.ref[0] == u.ref[1] || (is_arrow(b, u.ref[0]->var) && is_arrow(b, u.ref[1]->var)) ? -2 : -1), value);
    Expr *target[2 * MAX_RANK], *extent[2 * MAX_RANK];
    int n = 0;
    for (int r = 0; r < u.degree; r++)
        for (int k = 0; k < u.ref[r]->nargs; k++) {
            target[n] = u.ref[r]->args[k];
            extent[n++] = u.ref[r]->var->dim[k];
        }
    const bool both = mirrored && u.ref[0]->var == u.ref[1]->var && p->open->kind == KERNEL_TEAM && both_vary(&u);
    for (int side = both; side <= (both ? 2 : 0); side++) {
        Node *sum = enter_entries(p, &u.loops, n, target, extent);
        put_entry(p, b, &u, mirrored, side, value);
        leave(p, sum);
    }
}

BorderPlace border_place(Lower *p, const Update *s, int first, Var *J, Var *h, Expr *size, Expr *const *offset)
{
    BorderPlace b = {s, J, h, NULL, NULL};
    if (!J) return b;
    b.n = local_new(p->g->arena, "n");
    b.n->base = BASE_INT;
    if (!ex_is_num(size, 1)) put_let(p, NULL, b.n, size, "long");  // the place of one element is 0
    b.offset = NEW_N(p->g->arena, Expr *, s->nblock);
    for (int i = first; i < s->nblock; i++) {
        if (ex_is_num(offset[i - first], 0)) continue;
        Var *local = local_named(p->g->arena, words(p, "at_%s", s->block[i]->name));
        local->base = BASE_INT;
        put_let(p, NULL, local, offset[i - first], "long");
        b.offset[i] = local_ref(local);
    }
    return b;
}

void border_entry(Lower *p, const BorderPlace *b, const BlockTerm *t)
{
    const BlockPlace place = {.update = b->update, .J = b->J, .h = b->h, .n = b->n, .offset = b->offset};
    accumulate(p, &place, t);
}
