// keyed.c -- statistics by keys that the sweep draws: made before the updates that read them, once for all.
//
//   draw c       statistics_c: count_by_c, sum_y_by_c       draw w       draw mu       draw Sigma
//
// In a sweep they are made before the first update that reads them, and again where something that they are made of was drawn since. An
// update that is run by itself (--check, a method of a selection on its own) makes its own before: `run->kept` means that a sweep takes
// care of it.
//
// Weights of values (graph/plan/keyed.c) are such a key: made again after the expectations are found.
//
// Needs: the updates lowered.     Gives: a kernel for the statistics of the same keys, launches before updates.
#include <string.h>
#include "lower.h"

enum { MOST_KEYS = 4 };

typedef struct Group {
    int n;
    const Var *key[MOST_KEYS];
} Group;

static bool take_weights(const Var *v, void *with)
{
    Group *g = with;
    bool known = !v->em.weights;
    for (int i = 0; i < g->n; i++) known |= g->key[i] == v;
    if (!known && g->n < MOST_KEYS) g->key[g->n++] = v;
    return false;
}

static Group group_of(const Sum *s)
{
    Group g = {0};
    ex_any_var(s->value, take_weights, &g);
    for (int k = 0; k < s->n; k++) {
        const Var *v = is_drawn_key(s->target[k]) ? s->target[k]->var : NULL;
        for (int i = 0; i < g.n && v; i++)
            if (g.key[i] == v) v = NULL;
        if (v && g.n < MOST_KEYS) g.key[g.n++] = v;
    }
    return g;
}

static bool in_group(const Sum *s, const Group *g)
{
    const Group of = group_of(s);
    return !s->data_only && of.n == g->n && memcmp(of.key, g->key, sizeof of.key) == 0;
}

static bool is_read(const Sum *s, const Update *by)
{
    for (const Server *t = s->serves; t; t = t->next)
        if (t->update == by) return true;
    return false;
}

static bool mentions(const Sum *s, const Var *v)
{
    bool yes = ex_mentions(s->value, v) || (s->loops.guard && ex_mentions(s->loops.guard, v));
    for (int k = 0; k < s->n; k++) yes |= ex_mentions(s->target[k], v);
    for (int i = 0; i < s->loops.n; i++) yes |= ex_mentions(s->loops.index[i]->lo, v) || ex_mentions(s->loops.index[i]->hi, v);
    return yes;
}

static bool same_rows(const Sum *a, const Sum *b)
{
    return a->loops.guard == b->loops.guard && a->loops.n == 1 && b->loops.n == 1 && a->loops.index[0] == b->loops.index[0] &&
           a->n == b->n && memcmp(a->target, b->target, sizeof *a->target * (size_t)a->n) == 0 && a->value->kind != EX_NUM &&
           b->value->kind != EX_NUM && !a->route && !b->route;
}

// The sum, and those after it that add to the same places of other arrays as they go through the rows.
static void put_alike(Lower *p, const Group *g, const Sum *s)
{
    enum { MOST = 4 };  // arrays that a loop may add to
    const Sum *of[MOST] = {s};
    int n = 1;
    int before = 0;
    for (const Sum *t = p->statistics.first; t != s; t = t->next) before += in_group(t, g) && same_rows(t, s);
    if (before % MOST) return;  // done with one of those
    for (const Sum *t = s->next; t; t = t->next)
        if (in_group(t, g) && same_rows(s, t)) {
            if (n == MOST) break;
            of[n++] = t;
        }
    if (n == 1) {
        put_sum(p, s);
        return;
    }
    for (int k = 0; k < n; k++) {
        put(p, NODE_COMMENT)->text.lines = words(p, "%s", statistic_text(p->g, of[k]));
        put_fill(p, of[k]->var, count_dims(of[k]->var, 0, of[k]->n), true);
    }
    Node *nest = enter_nest(p, NODE_REDUCE, &s->loops, s->n, s->target, s->var->dim);
    nest->nest.statistic = true;
    for (int k = 0; k < n; k++) put_assign(p, ASSIGN_ADD, place_element(ex_ref(of[k]->var, s->n, s->target)), of[k]->value);
    leave(p, nest);
}

// ---- sums of weights times columns ----

static Look test_loops(const Expr *e, void *with)
{
    (void)with;
    return e->kind == EX_REDUCE || e->kind == EX_AT || e->kind == EX_ARRAY || ex_rank(e) > 0 ? FOUND : LOOK;
}

typedef struct Given {
    const Index *row;
    Expr *found;
} Given;

static Index *as_index(const Expr *e) { return e->kind == EX_INDEX ? (Index *)e->index : NULL; }

static bool is_weight(const Expr *e, const Var *weights) { return e->kind == EX_REF && e->var == weights && e->nargs == 2 && !e->loose; }

static Look find_given(const Expr *e, void *with)
{
    Given *g = with;
    if (e->kind == EX_INDEX || e->kind == EX_NUM || e->kind == EX_REF) return g->found ? SKIP : LOOK;
    if (g->found || e->loose || ex_mentions_index(e, g->row)) return LOOK;
    g->found = (Expr *)e;
    return FOUND;
}

// What of a column is the same for all rows, such as a mean, is computed once.
static void take_given(Lower *p, ColumnSum *s)
{
    for (Given g = {.row = s->row}; s->ngiven < MOST_GIVEN; g.found = NULL) {
        if (!ex_find(s->column, find_given, &g)) return;
        Var *v = s->given[s->ngiven] = local_new(p->g->arena, words(p, "given%d", s->ngiven));
        s->is[s->ngiven++] = g.found;
        s->column = ex_replace(s->column, g.found, local_ref(v));
    }
}

// weights[row, value] times what does not depend on the value, over all rows, values and places; each place has a subscript of its own, and
// so has the value.
static bool column_sum(const Sum *s, const Var *weights, ColumnSum *out)
{
    *out = (ColumnSum){.sum = s, .column = ex_num(1)};
    const Expr *weight = NULL;
    for (int k = 0; k < (s->value->kind == EX_MUL ? s->value->nargs : 1); k++) {
        Expr *factor = s->value->kind == EX_MUL ? s->value->args[k] : s->value;
        if (!weight && is_weight(factor, weights)) weight = factor;
        else out->column = ex_mul2(out->column, factor);
    }
    if (!weight || s->loops.guard || s->route || s->n != s->loops.n - 1 || s->n > MOST_COLUMN_PLACES + 1) return false;
    out->row = as_index(weight->args[0]);
    out->value = as_index(weight->args[1]);
    if (!out->row || !out->value || out->row == out->value || ex_mentions(out->column, weights) ||
        ex_mentions_index(out->column, out->value) || ex_find(out->column, test_loops, NULL))
        return false;
    bool valued = false;
    for (int k = 0; k < s->n; k++) {
        Index *at = as_index(s->target[k]);
        if (!at || at == out->row) return false;
        for (int j = 0; j < k; j++)
            if (s->target[j] == s->target[k]) return false;
        valued |= at == out->value;
        if (at != out->value) out->place[out->nplaces++] = at;
    }
    bool looped = false;
    for (int k = 0; k < s->loops.n; k++) {
        const Index *i = s->loops.index[k];
        looped |= i == out->row;
        if (!ex_is_num(i->lo, 1) || !ex_data_only(i->hi) || i->hi->indices) return false;
    }
    return valued && looped && out->nplaces == s->n - 1 && out->row->hi == weights->dim[0] && out->value->hi == weights->dim[1];
}

// All sums of a group, or NULL.
static const Columns *columns_of(Lower *p, const Group *g)
{
    Columns c = {.weights = g->key[0]};
    if (g->n != 1 || !c.weights->em.weights || c.weights->rank != 2 || !is_real(p->out, c.weights)) return NULL;
    for (const Sum *s = p->statistics.first; s; s = s->next) {
        if (!in_group(s, g)) continue;
        if (c.n == MOST_COLUMN_SUMS || !column_sum(s, c.weights, &c.of[c.n])) return NULL;
        take_given(p, &c.of[c.n]);
        c.n++;
    }
    Expr *size = ex_num(COLUMN_ROOM);
    c.room = work_array(p, ROLE_TOTALS, words(p, "chunks_%s", c.weights->name), 1, &size);
    return arena_copy(p->g->arena, &c, sizeof c);
}

static void lower_group(Lower *p, const Group *g)
{
    Program *out = p->out;
    const char *names = "", *list = "";
    for (int i = 0; i < g->n; i++) {
        names = words(p, "%s_%s", names, g->key[i]->name);
        list = words(p, "%s%s%s", list, i ? ", " : "", g->key[i]->name);
    }
    bool whole = false;
    for (const Sum *s = p->statistics.first; s; s = s->next) whole |= in_group(s, g) && needs_own_array(s->value, &s->loops);
    note(p, "Statistics by %s: made again after that was drawn", list);
    Kernel *k = open_kernel(p, whole ? KERNEL_ONCE : KERNEL_TEAM, words(p, "statistics%s", names), "wide");
    for (const Sum *s = p->statistics.first; s; s = s->next)
        if (in_group(s, g)) put_alike(p, g, s);
    if (!whole) k->columns = columns_of(p, g);
    if (!close_kernel(p)) return;
    bool fresh = false;
    for (int i = 0; i < out->nupdates; i++) {
        UpdateCode *code = &out->updates[i];
        bool reads = false, changes = false;
        for (const Sum *s = p->statistics.first; s; s = s->next) {
            if (!in_group(s, g)) continue;
            reads |= is_read(s, code->update);
            for (int b = 0; b < code->update->nblock; b++) changes |= mentions(s, code->update->block[b]);
            for (int b = 0; code->update->expected && b < code->update->expected->n; b++)
                changes |= mentions(s, code->update->expected->of[b]);
        }
        for (int own = 0; own < 2 && reads; own++) {
            if (!own && fresh) continue;
            Launches list = {0};
            p->launches = &list;
            if (whole) launch(p, LAUNCH_ONCE, k);
            else launch_team(p, k);
            list.first->unless_kept = own;
            Launches *to = own ? &code->launches : &code->made;
            list.first->next = to->first;
            to->first = list.first;
            if (!list.first->next) to->last = &list.first->next;
        }
        fresh = (fresh || reads) && !changes;
    }
}

void lower_keyed(Lower *p)
{
    for (const Sum *s = p->statistics.first; s; s = s->next) {
        if (s->data_only) continue;
        const Group g = group_of(s);
        bool first = true;
        for (const Sum *t = p->statistics.first; t != s; t = t->next) first &= !in_group(t, &g);
        if (first) lower_group(p, &g);
    }
}

// The statement target += value over the loops, where a key of the target is drawn, as one over places: *at for the targets, *out for the
// value. False: it stays.
bool hoisted_by_key(Lower *p, const Loops *l, int n, Expr *const *target, Expr *const *extent, Expr *value, Loops *places, Expr **at,
                    Expr **out)
{
    Keys keys = {0};
    if ((!has_drawn_key(n, target) && !reads_weights(value)) || n > 4) return false;
    *places = (Loops){0};
    for (int k = 0; k < n; k++) {
        int seen = 0;
        while (seen < keys.n && keys.key[seen] != target[k]) seen++;
        at[k] = target[k];
        if (!varies(target[k], l)) continue;
        if (seen == keys.n) {
            Index *i = index_of_key(p, index_written(target[k]), extent[k], places->index, keys.n);
            keys.key[keys.n] = target[k];
            keys.extent[keys.n] = extent[k];
            keys.at[keys.n++] = ex_index(places->index[places->n++] = i);
        }
        at[k] = keys.at[seen];
    }
    *out = hoist_sum(&p->statistics, &keys, l, value);
    return *out != NULL;
}
