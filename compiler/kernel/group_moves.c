// group_moves.c -- group moves of all kinds (graph/updates/group.c): c starts at 1, is drawn as any unknown, and is applied to its
// unknowns.
//
//   before_c      c[k] = 1                          a slice starts there, and so does the ratio of an exact draw; 0, of a translation
//   draw_c        its conditional                   as that of any unknown: density.c
//   move_tau      tau = c*tau, theta[j] = mu + c*(theta[j] - mu)
//   add_c         mu = mu + c, theta[j] = theta[j] + c
#include <string.h>
#include "lower.h"

enum { ROWS_THAT_IDENTIFY = 50 };  // of each element: they identify a plate, and its scale, so well that c is close to 1
// rows of responses 0 and 1, whose variance is 1/4 at most, that identify a plate as well as another row does
enum { OF_TWO_VALUES = 4 };

static Expr *product(const Count *c)
{
    Expr *all = ex_num(1);
    for (int i = 0; i < c->n; i++) all = ex_mul2(all, c->factor[i]);
    return all;
}

// How many translations of the same, such as locations of one plate, share what its rows are worth passing over.
static int sharing(const Lower *p, const Update *s)
{
    int n = 1;
    for (const Update *t = p->g->updates; t; t = t->next)
        n += t != s && t->group_move && t->group_move->added && t->kind == UPDATE_SLICE && t->when == s->when &&
             t->group_move->moved[t->group_move->n - 1].var == s->group_move->moved[s->group_move->n - 1].var;
    return n;
}

// The iterations of a loop, unless it goes over elements.
static Expr *of_others(const Loops *l, const Expr *elements)
{
    const Count iterations = iterations_of_loops(l);
    Expr *n = product(&iterations);
    bool own = n->kind == EX_NUM || elements == n;
    for (int i = 0; i < (elements->kind == EX_ADD ? elements->nargs : 0); i++) own |= elements->args[i] == n;
    return own ? ex_num(0) : n;
}

static bool is_binary(const Factor *f)
{
    while (f->original) f = f->original;
    const Ast *most = f->dist && f->dist->discrete ? f->dist->upper : NULL;
    return f->observed && most && most->kind == AST_INT && most->number == 1;
}

// Where the move pays: always, if c is drawn from sums over its unknowns, or over data alone, which leave the sweep. Else each sweep
// passes over the rows of a statement, or over the pairs of two plates: for plates with few rows an element.
static Expr *where_it_pays(Lower *p, const Update *s)
{
    const GroupMove *o = s->group_move;
    if (o->by->discrete || o->by_priors || o->nwindows) return NULL;  // it costs what a draw of either does
    Expr *elements = ex_num(0), *rows = ex_num(0);
    for (int i = 0; i < o->n; i++) {
        const Count n = count_dims(o->moved[i].var, 0, o->moved[i].var->rank);
        if (o->moved[i].plates || o->added) elements = ex_add2(elements, product(&n));
    }
    const Loops *last = NULL;
    for (const BlockTerm *t = s->kind == UPDATE_GAUSSIAN ? s->gaussian.terms : NULL; t; t = t->next) {
        if ((last && memcmp(last, &t->loops, sizeof *last) == 0) || (t->degree == 2 && listed_in(s, t->factor))) continue;
        last = &t->loops;
        rows = ex_add2(rows, of_others(last, elements));
    }
    for (const Part *q = s->kind == UPDATE_EXACT      ? s->conditional->natural
                         : s->kind == UPDATE_GAUSSIAN ? NULL
                                                      : s->conditional->density,
                    *before = NULL;
         q; before = q, q = q->next) {
        // one pass for both
        if (before && before->factor == q->factor && memcmp(&before->loops, &q->loops, sizeof q->loops) == 0) continue;
        if (s->kind == UPDATE_EXACT && leaves_sweep(p, s->conditional, q)) continue;
        rows = ex_add2(rows, ex_mul2(ex_num(!o->added && is_binary(q->factor) ? 1.0 / OF_TWO_VALUES : 1), of_others(&q->loops, elements)));
    }
    if (o->added) rows = ex_mul2(ex_num(sharing(p, s)), rows);
    Expr *few = ex_is_num(rows, 0) ? NULL : ex_call2("<=", rows, ex_mul2(ex_num(ROWS_THAT_IDENTIFY), elements));
    return o->where && few ? ex_call2("&&", o->where, few) : o->where ? o->where : few;
}

// ---- transfers: which elements change against each other, and how far ----

static void find_partners(Lower *p, const Transfer *t)
{
    for (int d = 0; d < t->moved->rank; d++) {
        if (!(t->along >> d & 1)) continue;
        Expr *n = t->moved->dim[d], *distance = ex_ref(t->distance[d], 0, NULL), *phase = ex_ref(t->phase[d], 0, NULL);
        Var *far = local_integer(p, "far"), *begin = local_integer(p, "begin");
        note(p, "How partners are found in this sweep");
        Kernel *k = open_kernel(p, KERNEL_TEAM, words(p, "pair_%s", t->distance[d]->name + strlen("pair_")), "wide");
        Node *lane = enter(p, NODE_LANE);
        put_random(p, t->distance[d], distance, far, "transfer_distance", n, NULL);
        put_random(p, t->distance[d], distance, begin, "transfer_phase", n, local_ref(far))->draw.goes_on = true;
        put_assign(p, ASSIGN_SET, place_element(distance), local_ref(far));
        put_assign(p, ASSIGN_SET, place_element(phase), local_ref(begin));
        leave(p, lane);
        close_kernel(p);
        launch_team(p, k);
        note(p, "Who is whose partner");
        k = open_kernel(p, KERNEL_TEAM, words(p, "find_%s", t->partner[d]->name), "wide");
        Loops l = {.n = 1, .index = {index_new("k", ex_num(1), n)}};
        Expr *at = ex_index(l.index[0]), *partner = ex_ref(t->partner[d], 1, &at);
        Node *nest = enter_nest(p, NODE_NEST, &l, 1, partner->args, NULL);
        put_assign(p, ASSIGN_SET, place_element(partner), ex_call("transfer_partner", 4, (Expr *[]){at, n, distance, phase}));
        leave(p, nest);
        close_kernel(p);
        launch_team(p, k);
    }
}

static void draw_places(Lower *p, const Transfer *t)
{
    const Var *const moved[] = {t->moved, t->other};
    for (int side = 0; side < 2; side++)
        for (int d = t->of->rank; d < moved[side]->rank; d++) {
            Expr *place = ex_ref(t->place[side][d], 0, NULL);
            Var *x = local_integer(p, "x");
            note(p, "Which element of %s changes in this sweep", moved[side]->name);
            Kernel *k = open_kernel(p, KERNEL_TEAM, words(p, "draw_%s", t->place[side][d]->name), "wide");
            Node *lane = enter(p, NODE_LANE);
            put_random(p, t->place[side][d], place, x, "discrete_uniform", ex_num(1), moved[side]->dim[d]);
            put_assign(p, ASSIGN_SET, place_element(place), local_ref(x));
            leave(p, lane);
            close_kernel(p);
            launch_team(p, k);
        }
}

static void find_room(Lower *p, const Transfer *t)
{
    Conditional *c = NEW(p->g->arena, Conditional);
    Arena *a = p->g->arena;
    Var *low = local_new(a, "low"), *high = local_new(a, "high"), *step = local_new(a, "step"), *below = local_new(a, "below"), *of = t->of;
    Expr *at[MAX_RANK];
    for (int d = 0; d < of->rank; d++) at[d] = ex_index(t->element[d]);
    *c = (Conditional){.var = of, .nbatch = of->rank, .current = ex_ref(of, of->rank, at), .u = ex_ref(of, of->rank, at)};
    memcpy(c->element, t->element, sizeof c->element);
    const Update s = {.kind = UPDATE_SLICE, .nblock = 1, .block = &of, .conditional = c};
    note(p, "How far each may change, and among which values it is drawn");
    Kernel *k = of->rank ? open_elements_kernel(p, BY_ELEMENT, &s, words(p, "room_of_%s", of->name))
                         : open_kernel(p, KERNEL_TEAM, words(p, "room_of_%s", of->name), "wide");
    k->number = "wide";
    Opened o = {0};
    Node *lane = of->rank ? NULL : enter(p, NODE_LANE);
    if (of->rank) o = enter_elements(p, &s, BY_ELEMENT);
    put_let(p, NULL, low, t->lowest, "wide");
    put_let(p, NULL, high, t->highest, "wide");
    Expr *to = ex_ref(t->step, of->rank, at);
    put_random(p, t->step, to, step, "transfer_step", local_ref(low), local_ref(high));
    put_random(p, t->step, to, below, "transfer_below", local_ref(low), local_ref(high))->draw.goes_on = true;
    put_assign(p, ASSIGN_SET, place_element(to), local_ref(step));
    put_assign(p, ASSIGN_SET, place_element(ex_ref(t->first, of->rank, at)),
               ex_call3("transfer_first", local_ref(low), local_ref(step), local_ref(below)));
    put_assign(p, ASSIGN_SET, place_element(ex_ref(t->last, of->rank, at)),
               ex_call3("transfer_last", local_ref(high), local_ref(step), local_ref(below)));
    leave_elements(p, &o);
    if (lane) leave(p, lane);
    close_kernel(p);
    if (lane) launch_team(p, k);
    else launch_elements(p, &s, BY_ELEMENT, NULL, k);
}

void before_group_move(Lower *p, const Update *s)
{
    if (s->group_move->transfer) {
        if (s->group_move->transfer->other) draw_places(p, s->group_move->transfer);
        else find_partners(p, s->group_move->transfer);
        find_room(p, s->group_move->transfer);
    }
    Var *c = s->group_move->by;
    Expr *where = where_it_pays(p, s);
    if (where) with_extent(launch(p, LAUNCH_WHERE, NULL), where);
    const bool checked = s->kind == UPDATE_EXACT || (s->kind == UPDATE_GAUSSIAN && !s->gaussian.scales);
    if (checked) launch(p, LAUNCH_CHECKED, NULL);
    note(p, checked ? "Before the move, in runs by --check: it starts from the identity" : "The move starts from the identity");
    Kernel *k = open_kernel(p, KERNEL_TEAM, words(p, "before_%s", c->name), "wide");
    if (checked) k->part = PART_TABLES;
    Loops l = {.n = c->rank};
    Expr *element = var_element(p->g, c, l.index);
    Node *nest = c->rank ? enter_nest(p, NODE_NEST, &l, c->rank, element->args, NULL) : enter(p, NODE_LANE);
    put_assign(p, ASSIGN_SET, place_element(element), ex_num(s->group_move->added ? 0 : 1));
    leave(p, nest);
    close_kernel(p);
    launch_team(p, k);
    if (checked) launch(p, LAUNCH_END, NULL);
    for (int i = 0; i < s->group_move->nwindows; i++) fill_window(p, &s->group_move->window[i]);
}

static bool has_haar(const Update *s) { return s->kind == UPDATE_EXACT && !s->marginal && !s->group_move->added; }

// How many elements change.
static Expr *elements_of(const Carried *m)
{
    Expr *n = ex_num(1);
    for (int d = 0; m->var && d < m->var->rank; d++) n = ex_mul2(n, m->var->dim[d]);
    return n;
}

// Whether as many change as there are, all by one scalar.
static bool all_change(const GroupMove *o)
{
    if (o->by->rank) return false;
    for (int i = 0; i < o->n; i++) {
        const Carried *m = &o->moved[i];
        if (m->where || m->triangle || m->fixed || exists_at(m->var, m->index) ||
            !ex_is_num(m->log_jacobian ? m->log_jacobian : ex_num(0), 0))
            return false;
    }
    return true;
}

// With --check: the ratio of the draw is of the density of c, log p(moved unknowns) + J log c - log c; that of the model has the first
// alone.
//
// All of the move's that depend on one scalar c alone are one sum, `all`; NULL: each is put where its element changes.
static void put_jacobian(Lower *p, const Update *s, const Carried *m, Expr **all)
{
    if (m->log_jacobian && !ex_is_num(m->log_jacobian, 0)) put_ratio(p, ex_neg(m->log_jacobian));
    if (!has_haar(s)) return;
    Expr *value = ex_mul2(ex_num(-m->power), ex_log(m->c));
    if (all) {
        *all = ex_add2(*all, ex_mul2(elements_of(m), value));
        return;
    }
    if (m->where) value = ex_call3("if_else", m->where, value, ex_num(0));
    if (m->triangle) value = ex_call3("if_else", ex_call2("<=", m->element->args[1], m->element->args[0]), value, ex_num(0));
    put_ratio(p, value);
}

// Logarithms that are kept (logs.c), before the element changes, since they are made of its own. Gives what the element becomes.
static Expr *put_moved_logs(Lower *p, Expr *element, Expr *value, Expr *exists, bool multiplied)
{
    if (!element->var->lowered.kept_log) return value;
    Expr *log = ex_call1("log", value);
    if (multiplied) {
        Var *log_moved = local_new(p->g->arena, "log_moved");
        put_let(p, NULL, log_moved, log, "wide");
        log = local_ref(log_moved);
    }
    Node *test = exists && !element->nargs ? enter(p, NODE_IF) : NULL;
    if (test) test->test.condition = exists;
    put_logs(p, element, log, ex_call1("log1m", value), STORE_PLAIN);
    if (test) leave(p, test);
    return multiplied ? ex_call2("value_kept", value, log) : value;
}

// What changes, in terms of these indices in place of its own.
static Carried carried_at(const Carried *m, Index *const *index)
{
    Carried here = *m;
    Expr **const of[] = {&here.element, &here.value, &here.c, &here.log_jacobian, &here.where};
    for (int d = 0; d < m->var->rank; d++)
        for (size_t i = 0; i < sizeof of / sizeof *of; i++)
            if (*of[i]) *of[i] = ex_replace_index(*of[i], m->index[d], ex_index(index[d]));
    return here;
}

// Where it does: the element exists, and is not the one that stays. NULL: everywhere.
static Expr *where_it_moves(const Carried *m, Index *const *index)
{
    Expr *exists = exists_at(m->var, index), *other = NULL;
    for (int d = 0; m->fixed && d < m->var->rank; d++) {
        Expr *differs = ex_call2("!=", ex_index(index[d]), m->fixed->args[d]);
        other = other ? ex_call2("||", other, differs) : differs;
    }
    return exists && other ? ex_call2("&&", exists, other) : exists ? exists : other;
}

static void move_elements(Lower *p, const Update *s, const Carried *m, Expr **all)
{
    Loops l = {.n = m->var->rank};
    for (int d = 0; d < m->var->rank; d++) l.index[d] = index_new(m->index[d]->name, ex_num(1), m->var->dim[d]);
    const Carried here = carried_at(m, l.index);
    l.guard = where_it_moves(m, l.index);
    Node *nest = m->var->rank ? enter_nest(p, NODE_NEST, &l, m->var->rank, here.element->args, NULL) : enter(p, NODE_LANE);
    put_jacobian(p, s, &here, all);
    Expr *value = put_moved_logs(p, here.element, here.value, l.guard, !s->group_move->added);
    Node *exists = !m->var->rank && l.guard ? enter(p, NODE_IF) : NULL;
    if (exists) exists->test.condition = l.guard;
    put_assign(p, ASSIGN_SET, place_element(here.element), value);
    if (exists) leave(p, exists);
    leave(p, nest);
}

#define GROUP_LAW ": its law, moved joint density * Jacobian * Haar measure, keeps the posterior"

void along_group_move(Lower *p, const Update *s)
{
    const GroupMove *o = s->group_move;
    const bool haar = has_haar(s), one = haar && all_change(o);
    Expr *all = ex_num(0);
    for (int i = 0; i < o->nwindows; i++) draw_window(p, &o->window[i]);
    bool plain = o->added || o->by->discrete;
    for (int i = 0; i < o->n; i++) plain &= !o->moved[i].log_jacobian;
    if (p->g->lesson && s->description->measure)
        note(p, "A group move (Liu and Sabatti 2000), %s", s->description->measure);
    else
        note(p, "A group move (Liu and Sabatti 2000) by %s%s", o->by->name,
             !plain            ? GROUP_LAW
             : o->by->discrete ? ", of Jacobian 1 and counting measure"
                               : ", a translation of Jacobian 1 and uniform measure");
    Kernel *k = open_kernel(p, KERNEL_TEAM,
                            o->added ? words(p, "add_%s", o->by->name) : words(p, "move_%s", o->by->name + strlen("scale_")), "wide");
    for (int i = 0; i < o->n; i++) move_elements(p, s, &o->moved[i], one ? &all : NULL);
    if (haar) {
        Loops l = {.n = o->by->rank};
        Expr *element = var_element(p->g, o->by, l.index);
        Node *nest = o->by->rank ? enter_nest(p, NODE_NEST, &l, o->by->rank, element->args, NULL) : enter(p, NODE_LANE);
        const Carried measure = {.power = -1, .c = element};
        put_jacobian(p, s, &measure, one ? &all : NULL);
        if (one) put_ratio(p, all);
        leave(p, nest);
    }
    close_kernel(p);
    launch_team(p, k);
    if (where_it_pays(p, s)) launch(p, LAUNCH_END, NULL);
}
