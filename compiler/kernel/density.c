// density.c -- updates that evaluate the density of an element: enumeration, slice sampling, Metropolis updates.
//
//   before   phi[j]: lp = sum(i, f(phi[j], i)) + g(phi[j])       after   kernel draw_phi: for each j, what no value changes is summed;
//                                                                          slice phi[j]: lp += .. for each value that is tried
//
// Needs: conditionals.     Gives: kernels and launches of the update; for other files the pieces that a density is made of.
#include <math.h>
#include <stdlib.h>
#include "lower.h"

static bool reads_tried(const Expr *e, const Conditional *c) { return ex_reads(e, c->var) || (c->carried && ex_reads(e, c->carried)); }

// The terms of a sum that trials change.
static Expr *relevant(Expr *e, const Conditional *c)
{
    if (!reads_tried(e, c)) return ex_num(0);
    if (e->kind == EX_ADD) {
        Expr *keep = ex_num(0);
        for (int i = 0; i < e->nargs; i++) keep = ex_add2(keep, relevant(e->args[i], c));
        return keep;
    }
    if (e->kind == EX_REDUCE && e->fn == FN_sum && !reads_tried(e->args[0], c) && !reads_tried(e->args[1], c)) {
        Index *j = index_new(ex_index_called(e), e->args[0], e->args[1]);
        return ex_reduce("sum", j, j->lo, j->hi, relevant(ex_open(e, j), c));
    }
    return e;
}

// Whether a statistic is the same function of u in every iteration of the part's loops, whatever the state.
static bool is_common(const Part *q, const Conditional *c, Expr *statistic)
{
    for (int k = 0; k < q->loops.n; k++)
        if (ex_mentions_index(statistic, q->loops.index[k])) return false;
    return !ex_unknown(ex_replace(statistic, c->u, ex_num(1)));
}

static bool is_end(const Expr *e) { return e->kind == EX_CALL && e->fn == FN_WITHIN; }

static Look choice_of(const Expr *e, void *u) { return e->kind == EX_CALL && e->fn == FN_if_else && ex_mentions(e, u) ? FOUND : LOOK; }
static Look end_of(const Expr *e, void *with)
{
    (void)with;
    return is_end(e) ? FOUND : LOOK;
}
static bool holds_end(const Expr *e) { return ex_find(e, end_of, NULL); }
static bool holds_choice(const Expr *e, const Var *u) { return ex_find(e, choice_of, (void *)u); }

// The terms of a part that stay whole: with a choice that cannot be made before values are tried, since a branch that is not taken may be
// undefined; and with a coefficient that may be infinite, since z*log(p) + (1 - z)*log1m(p) at p = 1 has values for z = 0 and 1, but not as
// log1m(p) + z*(log(p) - log1m(p)).
static Expr *undivided(Lower *p, const Conditional *c, const Part *q)
{
    Expr *e = q->value, *all = ex_num(0);
    const bool decides = c->var->discrete && ends_decide_all(e);
    for (int i = 0; i < (e->kind == EX_ADD ? e->nargs : 1); i++) {
        Expr *t = e->kind == EX_ADD ? e->args[i] : e;
        const bool choice = holds_choice(t, c->u->var);
        if (!choice && !decides && !(c->var->discrete && ex_mentions(t, c->u->var) && ex_has_pole(t))) continue;
        Statistics s = statistics(p->g->arena, t, c->u);
        bool whole = false;
        for (int k = 0; k < s.n && decides; k++)
            // it is looked at together with the ends
            if (is_common(q, c, s.item[k].statistic) && may_fail(s.item[k].statistic)) return e;
        for (int k = 0; k < s.n; k++)
            whole |= (choice && !is_common(q, c, s.item[k].statistic)) || (c->var->discrete && ex_has_pole(s.item[k].coefficient));
        if (whole) all = ex_add2(all, t);
    }
    return all;
}

static DensityPiece *add_piece(Lower *p, DensityPiece ***last, DensityPiece q)
{
    **last = arena_copy(p->g->arena, &q, sizeof q);
    *last = &(**last)->next;
    return **last;
}

// exp(f(u) + r), f the same in every iteration and r free of u: exp(f(u) - f(u0)) times the sum of exp(f(u0) + r), u0 the current value, so
// that trials make no sum. Far from u0, where one of the two may overflow, the sum is made as it is written.
static bool add_exponentials(Lower *p, const Conditional *c, const Part *q, const Statistic *s, Var *total, DensityPiece ***last)
{
    const Expr *e = s->statistic;
    if (e->kind != EX_CALL || e->fn != FN_exp || e->args[0]->kind != EX_ADD) return false;
    const Expr *sum = e->args[0];
    Expr *of_u = ex_num(0), *rest = ex_num(0);
    for (int i = 0; i < sum->nargs; i++) {
        Expr **side = ex_mentions(sum->args[i], c->u->var) ? &of_u : &rest;
        *side = ex_add2(*side, sum->args[i]);
    }
    if (!is_common(q, c, of_u)) return false;
    Expr *there = ex_replace(of_u, c->u, c->current), *far = ex_sub(of_u, there), *all = local_ref(total);
    put_let(p, NULL, total, ex_num(0), "wide")->let.grows = true;
    Node *n = enter_part(p, &q->loops);
    put_assign(p, ASSIGN_ADD, place_local(total), ex_mul2(s->coefficient, ex_call1("exp", ex_add2(there, rest))));
    leave(p, n);
    add_piece(
        p, last,
        (DensityPiece){.loops = q->loops,
                       .value = ex_call1("exp", far),
                       .once = total,
                       .near = ex_call2("&&", ex_call2("<", ex_pow(far, 2), ex_num(1e5)), ex_call2("<", ex_pow(all, 2), ex_num(1e300))),
                       .far = ex_mul2(s->coefficient, s->statistic)});
    return true;
}

// total = sum of the coefficient over the part's loops, once; trials add total * value.
static void add_once(Lower *p, const Part *q, Var *total, Expr *coefficient, DensityPiece piece, DensityPiece ***last)
{
    put_let(p, NULL, total, ex_num(0), "wide")->let.grows = true;
    Node *n = enter_part(p, &q->loops);
    put_assign(p, ASSIGN_ADD, place_local(total), coefficient);
    leave(p, n);
    piece.once = total;
    add_piece(p, last, piece);
}

enum { MOST_POWER = 4 };

// k where the statistic is u^k, else 0.
static int power_of_u(const Conditional *c, const Expr *stat)
{
    if (stat == c->u) return 1;
    const bool power = stat->kind == EX_POW && stat->args[0] == c->u && stat->number == floor(stat->number);
    return power && stat->number > 0 && stat->number <= MOST_POWER ? (int)stat->number : 0;
}

// The coefficients of (u - u0)^k, u0 the current value, of those of u^k. What is compared with u may be far from zero: a square of it has
// few digits left, and is not made. false: there is no square, or u0 is not what the walk begins from.
static bool around_current(const Conditional *c, const Statistics *s, Expr *of[MOST_POWER + 1])
{
    const VarKind kind = c->var->kind;
    bool square = false;
    for (int k = 0; k <= MOST_POWER; k++) of[k] = ex_num(0);
    if (c->var->discrete || (kind != VAR_PARAMETER && kind != VAR_LATENT && kind != VAR_PART && kind != VAR_DATA)) return false;
    for (int i = 0; i < s->n; i++) {
        const int k = power_of_u(c, s->item[i].statistic);
        double times = 1;  // k over j
        square |= k > 1;
        for (int j = k; j > 0; j--) {
            of[j] = ex_add2(of[j], ex_mul(3, (Expr *[]){ex_num(times), s->item[i].coefficient, ex_pow(c->current, k - j)}));
            times = times * j / (k - j + 1);
        }
    }
    return square;
}

// The log density of the element as a function of x: what does not depend on u is left out, unless all is wanted; sums whose terms are a
// statistic of u times something free of u are made once, before the values are tried. walks: some of all values are tried; tried: by all
// lanes of a team, so that what no trial changes of a row is an array.
DensityPiece *prepare_density(Lower *p, const Conditional *c, bool all, bool walks, bool tried)
{
    DensityPiece *once = NULL, **last_once = &once, *each = NULL, **last = &each;
    int sums = 0;
    for (const Part *q = c->density; q; q = q->next) {
        if (c->whole) {
            Expr *e = relevant(q->value, c);
            add_piece(p, &last, (DensityPiece){.loops = q->loops, .value = tried ? without_rest(p, c, &q->loops, e) : e});
            continue;
        }
        if (q->loops.n == 0 && !q->loops.guard) {
            Expr *e = q->value, *keep = ex_num(0);
            for (int i = 0; i < (e->kind == EX_ADD ? e->nargs : 1); i++) {
                Expr *t = e->kind == EX_ADD ? e->args[i] : e;
                if (all || ex_mentions(t, c->u->var)) keep = ex_add2(keep, t);
            }
            add_piece(p, &last, (DensityPiece){.value = keep});
            continue;
        }
        Expr *rest = undivided(p, c, q);
        Statistics s = statistics(p->g->arena, ex_sub(q->value, rest), c->u);
        Expr *of[MOST_POWER + 1];
        const bool around = walks && around_current(c, &s, of);
        for (int k = 1; k <= MOST_POWER && around; k++)
            if (!ex_is_num(of[k], 0))
                add_once(p, q, local_new(p->g->arena, intern(words(p, "a%d", ++sums))), of[k],
                         (DensityPiece){.value = ex_pow(ex_sub(c->u, c->current), k)}, &last_once);
        for (int i = 0; i < s.n; i++) {
            Expr *stat = s.item[i].statistic;
            if (around && power_of_u(c, stat)) continue;
            Var *total = local_new(p->g->arena, intern(words(p, "a%d", sums + 1)));
            const bool common = is_common(q, c, stat);
            const bool made = common || (walks && add_exponentials(p, c, q, &s.item[i], total, &last_once));
            sums += made;
            if (!made) rest = ex_add2(rest, ex_mul2(s.item[i].coefficient, stat));
            if (!common) continue;
            const bool finite =
                stat == c->u || (stat->kind == EX_POW && stat->args[0] == c->u && stat->number > 0 && stat->number == floor(stat->number));
            add_once(p, q, total, s.item[i].coefficient, (DensityPiece){.value = stat, .guarded = !finite}, &last_once);
        }
        if (!ex_is_num(rest, 0))
            add_piece(p, &last, (DensityPiece){.loops = q->loops, .value = tried ? without_rest(p, c, &q->loops, rest) : rest});
    }
    *last_once = each;
    return once;
}

// Of a value that is weighed, one factor of density 0 makes it impossible, whatever the others are there.
void put_density(Lower *p, const DensityPiece *d, Var *lp, bool weighed)
{
    bool zero = false, fails = false;
    for (const DensityPiece *q = d; q && weighed; q = q->next) {
        zero |= holds_end(q->value) || ex_has_pole(q->value);
        fails |= may_fail(q->value);
    }
    for (; d; d = d->next) {
        Node *test = NULL, *sum = NULL;
        if (d->once) {
            if (d->guarded || d->near) {
                test = enter(p, NODE_IF);
                test->test.condition = d->near ? d->near : ex_call2("!=", local_ref(d->once), ex_num(0));
            }
        } else sum = enter_part(p, &d->loops);
        put_assign(p, zero && fails ? ASSIGN_ADD_LOG : ASSIGN_ADD, place_local(lp), weighed ? ends_decide(d->value) : d->value)
            ->assign.times = d->once;
        if (sum) leave(p, sum);
        if (test) leave(p, test);
        if (!d->near) continue;
        p->at = &test->otherwise;
        sum = enter_part(p, &d->loops);
        put_assign(p, ASSIGN_ADD, place_local(lp), d->far);
        leave(p, sum);
        leave(p, test);
        test->test.rare = true;
    }
}

static Expr *bound_of(const Var *v, int side)
{
    const double most = v->discrete && v->base == BASE_INT ? (double)GM_MOST_INT : INFINITY, shift = v->discrete ? side ? 0.5 : -0.5 : 0;
    Expr *end = end_of_value(v, side);
    if (end->kind != EX_NUM) return ex_add2(end, ex_num(shift));
    const double number = isfinite(end->number) ? end->number : side ? most : -most;
    return isfinite(number) ? ex_num(number + shift) : NULL;
}

// What the elements of a chain remember is kept in an array, as they are drawn (graph/algebra/history.c).
typedef struct KeptStates {
    const Var *state;
    Var *array;
} KeptStates;

static Expr *kept_leaf(Expr *e, void *with)
{
    const KeptStates *k = with;
    return e->kind == EX_REF && e->var == k->state ? ex_ref(k->array, e->nargs, e->args) : NULL;
}

static Conditional *with_states(Lower *p, const Conditional *c)
{
    Conditional *out = arena_copy(p->g->arena, c, sizeof *c);
    KeptStates k = {c->state->var, work_array(p, ROLE_STATES, c->state->var->name, c->var->rank, c->var->dim)};
    Part **last = &out->density;
    for (const Part *q = c->density; q; q = q->next) {
        Part *r = *last = arena_copy(p->g->arena, q, sizeof *q);
        r->value = ex_map(q->value, kept_leaf, &k);
        if (r->loops.guard) r->loops.guard = ex_map(r->loops.guard, kept_leaf, &k);
        last = &r->next;
    }
    out->state = ex_map(c->state, kept_leaf, &k);
    out->state_is = ex_map(c->state_is, kept_leaf, &k);
    return out;
}

// A slice or Metropolis update of the element that is studied, between the ends that its type has; its body is to follow.
// The end of a whole number's slices, if those of its own distribution differ between elements, as those of x[n] ~ discrete_range(first[n],
// last[n]): beyond them what it looks up need not exist.
static Expr *own_end(const Conditional *c, Expr *end, int side)
{
    if (!c->u || c->whole || !c->var->discrete) return end;
    for (const Part *q = c->density; q; q = q->next) {
        if (q->loops.n || q->scatter) continue;
        Expr *const *term = q->value->kind == EX_ADD ? q->value->args : &q->value;
        for (int i = 0; i < (q->value->kind == EX_ADD ? q->value->nargs : 1); i++) {
            const bool ends = term[i]->kind == EX_CALL && term[i]->fn == FN_WITHIN && term[i]->args[0] == c->u &&
                              !ex_mentions(term[i]->args[1 + side], c->var);
            Expr *own = ends ? term[i]->args[1 + side] : NULL, *none = ex_num(side ? INFINITY : -INFINITY);
            if (!own || own == none) continue;
            own = ex_add2(own, ex_num(side ? 0.5 : -0.5));
            if (q->loops.guard) own = ex_call3("if_else", q->loops.guard, own, none);
            end = end ? ex_call2(side ? "fmin" : "fmax", end, own) : own;
        }
    }
    return end;
}

static bool are_few(const Expr *first, const Expr *last)
{
    return first->kind == EX_NUM && last->kind == EX_NUM && last->number - first->number < WEIGHED_AT_ONCE && last->number >= first->number;
}

Node *enter_walk(Lower *p, const Update *s, NodeKind kind, Var *width)
{
    const Conditional *c = s->conditional;
    const Var *v = c->var;
    Node *n = enter(p, kind);
    n->slice.c = c;
    n->slice.element = c->current;
    n->slice.width = width;
    n->slice.start = s->slice.width;
    n->slice.lo = own_end(c, bound_of(v, 0), 0);
    n->slice.hi = own_end(c, bound_of(v, 1), 1);
    n->slice.again = series_again(p->g, c);
    n->slice.climbs = p->g->method == METHOD_EM;
    if (kind == NODE_SLICE && !c->whole && v->constraint == CONSTRAINT_NONE) n->slice.logs = kept_logs(c);
    return n;
}

// Sums over rows of a plate that is integrated out: statistics of data, or made before the update.
static const Update *with_statistics(Lower *p, const Update *s)
{
    const Without *w = s->without;
    if (!w || !w->n) return s;
    const Conditional *plate = w->plate->conditional;
    Arena *a = p->g->arena;
    Expr **is = NEW_N(a, Expr *, w->n);
    Var *array[MAX_NATURAL] = {0};
    PartList made = {0};
    for (int i = 0; i < w->n; i++) {
        const Part *q = w->part[i];
        if ((is[i] = hoisted_part(p, plate, q))) continue;
        if (!q->scatter) abort();  // conjugates.c leaves these alone
        const bool first = !array[q->which];
        if (first)
            array[q->which] = work_array(p, ROLE_TOTALS, words(p, "%s_sum%d_for_%s", plate->var->name, q->which + 1, s->block[0]->name),
                                         plate->var->rank, plate->var->dim);
        is[i] = first ? ex_ref(array[q->which], plate->var->rank, plate->current->args) : ex_num(0);
        add_part(p, &made, q);
    }
    if (made.n) {
        note(p, "Sums over rows for each element of %s, which is integrated out", plate->var->name);
        lower_scattered(p, plate, &made, array, words(p, "sums_%s_for_%s", plate->var->name, s->block[0]->name));
    }
    Conditional *c = arena_copy(a, s->conditional, sizeof *c);
    Part **last = &c->density;
    for (const Part *q = s->conditional->density; q; q = q->next) {
        Part *r = *last = arena_copy(a, q, sizeof *q);
        r->value = in_place_of_sums(w, q->value, is);
        last = &r->next;
    }
    Update *out = arena_copy(a, s, sizeof *s);
    out->conditional = c;
    return out;
}

// The values of an element, each weighed by its density: from which to which, and what keeps the weights.
static Node *enter_weighing(Lower *p, const Update *s, const Conditional *c, Shared how)
{
    Var *v = c->var;
    Node *n = enter(p, NODE_WEIGH);
    n->weigh.c = c;
    n->weigh.element = c->current;
    n->weigh.first = s->enumerate.lower;
    n->weigh.last = s->enumerate.upper;
    n->weigh.marginal = s->marginal;
    Expr *count = ex_add(3, (Expr *[]){s->enumerate.upper, ex_neg(s->enumerate.lower), ex_num(1)});
    n->weigh.varies = ex_unknown(count) || ex_reads_response(count);  // how many values there are is known in the sweep only
    n->weigh.expects = s->does == EXPECTS;
    n->weigh.again = series_again(p->g, c);
    n->weigh.few = !n->weigh.expects && are_few(n->weigh.first, n->weigh.last);
    if (s->does == EXPECTS) {  // an array of probabilities keeps them
        Expr *at[MAX_RANK + 1];
        for (int k = 0; k < v->rank; k++) at[k] = ex_index(c->element[k]);
        at[v->rank] = ex_num(1);
        n->weigh.weights = s->expected->of[0];
        n->weigh.at = ex_ref(s->expected->of[0], v->rank + 1, at);
        if (s->expected->evidence) n->weigh.evidence = ex_ref(s->expected->evidence, v->rank, at);
    } else if (how == BY_TEAM && !n->weigh.varies) {  // else the choice goes along with the weights, and none is kept
        // data may leave no value, which is a fault
        Expr *dim = count->kind == EX_NUM ? count : ex_call2("fmax", count, ex_num(0)), *at = ex_num(1);
        n->weigh.weights = work_array(p, ROLE_TOTALS, words(p, "weights_%s", v->name), 1, &dim);
        n->weigh.at = ex_ref(n->weigh.weights, 1, &at);
    }
    return n;
}

void update_density(Lower *p, const Update *s)
{
    CountChanges changes = {0};
    s = with_statistics(p, s);
    Conditional *c = predictive_of(s)        ? with_counts(p, s, &changes)
                     : s->conditional->state ? with_states(p, s->conditional)
                                             : s->conditional;
    Var *v = c->var;
    // walks: from the value it has
    const bool metropolis = s->kind == UPDATE_METROPOLIS, slice = s->kind == UPDATE_SLICE, walks = slice || metropolis;
    comment_update(p, s);
    Var *width = walks ? work_array(p, ROLE_TUNING, words(p, "width_%s", v->name), v->rank, v->dim) : NULL;
    const Shared how = shared_how(s, NULL);
    Kernel *kernel = open_elements_kernel(p, how, s,
                                          words(p, "%s_%s",
                                                s->imputes                                     ? "impute"
                                                : metropolis                                   ? "walk"
                                                : slice                                        ? "slice"
                                                : update_by_messages(s) && c->nbatch < v->rank ? "draw_together"
                                                                                               : "draw",
                                                v->name));
    kernel->followed = walks ? followed(c, how) : NULL;
    Opened opened = enter_elements(p, s, how);
    put_exists(p, &opened, how, exists_at(v, c->element));
    Var *lp = local_new(p->g->arena, "lp");
    put_count_changes(p, &changes, -1);
    const DensityPiece *pieces =
        prepare_density(p, c, s->expected && s->expected->evidence, walks, slice && (how == BY_TEAM || how == BY_ONE));
    if (walks) {
        Node *n = enter_walk(p, s, metropolis ? NODE_METROPOLIS : NODE_SLICE, width);
        n->slice.ratios = s->group_move && s->group_move->nwindows;
        put_density(p, pieces, lp, false);
        leave(p, n);
    } else {
        Node *n = enter_weighing(p, s, c, how);
        put_density(p, pieces, lp, true);
        leave(p, n);
        if (c->state) put_assign(p, ASSIGN_SET, place_element(c->state), c->state_is);
    }
    put_count_changes(p, &changes, 1);
    leave_elements(p, &opened);
    close_kernel(p);
    launch_elements(p, s, how, NULL, kernel);
}
