// keyed.c -- statistics by keys that the sweep draws: made before the steps that read them, once for all.
//
//   draw c       statistics_c: count_by_c, sum_y_by_c       draw w       draw mu       draw Sigma
//
// In a sweep they are made before the first step that reads them, and again where something that they are made of was drawn since. A step that is run by
// itself (--check, a method of a competition on its own) makes its own before: `run->kept` says that a sweep takes care of it.
//
// Weights of values (graph/keyed.c) are such a key: made again after the expectations are found.
//
// Needs: the steps lowered.     Gives: a kernel for the statistics of the same keys, launches before steps.
#include <string.h>
#include "lower.h"

enum { MOST_KEYS = 4 };

typedef struct Group { int n; const Var *key[MOST_KEYS]; } Group;

static bool take_weights(const Var *v, void *with)
{
    Group *g = with;
    bool known = !v->weights;
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

static bool is_read(const Sum *s, const Step *by)
{
    for (const Server *t = s->serves; t; t = t->next)
        if (t->step == by) return true;
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
    return a->loops.guard == b->loops.guard && a->loops.n == 1 && b->loops.n == 1 && a->loops.index[0] == b->loops.index[0] && a->n == b->n && memcmp(a->target, b->target, sizeof *a->target * (size_t)a->n) == 0 &&
           a->value->kind != EX_NUM && b->value->kind != EX_NUM && !a->route && !b->route;
}

// The sum, and those after it that add to the same places of other arrays as they go through the rows.
static void put_alike(Lower *p, const Group *g, const Sum *s)
{
    enum { MOST = 4 };                           // arrays that a loop may add to
    const Sum *of[MOST] = {s};
    int n = 1;
    int before = 0;
    for (const Sum *t = p->statistics.first; t != s; t = t->next) before += in_group(t, g) && same_rows(t, s);
    if (before % MOST) return;                   // done with one of those
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
    for (int k = 0; k < n; k++) put_update(p, UPDATE_ADD, place_element(ex_ref(of[k]->var, s->n, s->target)), of[k]->value);
    leave(p, nest);
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
    if (!close_kernel(p)) return;
    bool fresh = false;
    for (int i = 0; i < out->nsteps; i++) {
        StepCode *code = &out->steps[i];
        bool reads = false, changes = false;
        for (const Sum *s = p->statistics.first; s; s = s->next) {
            if (!in_group(s, g)) continue;
            reads |= is_read(s, code->step);
            for (int b = 0; b < code->step->nblock; b++) changes |= mentions(s, code->step->block[b]);
            for (int b = 0; b < code->step->nexpected; b++) changes |= mentions(s, code->step->expected[b]);
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

// The statement target += value over the loops, where a key of the target is drawn, as one over places: *at for the targets, *out for the value. False: it stays.
bool hoisted_by_key(Lower *p, const Loops *l, int n, Expr *const *target, Expr *const *extent, Expr *value, Loops *places, Expr **at, Expr **out)
{
    static const char *const names[] = {"a", "b", "c", "e"};
    Keys keys = {0};
    if ((!has_drawn_key(n, target) && !reads_weights(value)) || n > 4) return false;
    *places = (Loops){0};
    for (int k = 0; k < n; k++) {
        int seen = 0;
        while (seen < keys.n && keys.key[seen] != target[k]) seen++;
        at[k] = target[k];
        if (!varies(target[k], l)) continue;
        if (seen == keys.n) {
            Index *i = index_new(intern(names[keys.n]), ex_num(1), extent[k]);
            keys.key[keys.n] = target[k];
            keys.extent[keys.n] = extent[k];
            keys.at[keys.n++] = ex_index(places->index[places->n++] = i);
        }
        at[k] = keys.at[seen];
    }
    *out = hoist_sum(&p->statistics, &keys, l, value);
    return *out != NULL;
}
