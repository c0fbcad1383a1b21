// setup.c -- what is computed once: definitions and sums of data, and what the data have to meet.
//
// Needs: statistics that updates have requested.     Gives: the kernels of setup, and their launches.
#include "lower.h"

// A Gram matrix of a data matrix, sum(i, w[i]*X[i,j]*X[i,k]): one library call in place of three loops.
static Launch *launch_gram(Lower *p, const Sum *s)
{
    if (reads_response(s)) return NULL;
    if (s->n != 2 || s->loops.n != 3 || s->loops.guard || s->value->kind != EX_MUL) return NULL;
    Index *i = s->loops.index[0], *j = s->loops.index[1], *k = s->loops.index[2];
    // it may have places for more
    if (s->target[0] != ex_index(j) || s->target[1] != ex_index(k) || s->var->dim[0] != j->hi || s->var->dim[1] != k->hi) return NULL;
    Expr *A = NULL, *B = NULL;
    double number = 1;
    for (int f = 0; f < s->value->nargs; f++) {
        Expr *e = s->value->args[f];
        if (e->kind == EX_NUM) number = e->number;
        else if (e->kind == EX_REF && e->nargs == 2 && e->args[0] == ex_index(i) && e->args[1] == ex_index(j) && !A) A = e;
        else if (e->kind == EX_REF && e->nargs == 2 && e->args[0] == ex_index(i) && e->args[1] == ex_index(k) && !B) B = e;
        else return NULL;
    }
    if (!A || !B || A->var != B->var || !is_real(p->out, A->var) || A->var->base != BASE_REAL || A->var->dim[0] != i->hi ||
        A->var->dim[1] != j->hi || A->var->dim[1] != k->hi || !ex_is_num(i->lo, 1) || !ex_is_num(j->lo, 1) || !ex_is_num(k->lo, 1))
        return NULL;
    p->when = s->route ? IF_MANY : ALWAYS;
    p->when_rows = s->route;
    Launch *l = launch(p, LAUNCH_GRAM, NULL);
    p->when = ALWAYS;
    with_extent(l, i->hi);
    with_extent(l, j->hi);
    with_number(l, number);
    with_place(l, A->var);
    with_name(l, s->var);
    return l;
}

void put_sum(Lower *p, const Sum *s)
{
    Launch *gram = launch_gram(p, s);
    put(p, NODE_COMMENT)->text.lines = words(p, "%s%s", statistic_text(p->g, s), gram ? "; a matrix product, see setup" : "");
    if (gram) return;
    Node *test = s->route ? enter(p, NODE_IF) : NULL;
    if (test) {
        test->test.few = s->route;
        test->test.negated = true;
    }
    put_fill(p, s->var, count_dims(s->var, 0, s->n), true);
    const Loops loops = loops_where_chosen(&s->loops, s->value, s->n, s->target);
    Node *n = enter_nest(p, NODE_REDUCE, &loops, s->n, s->target, s->var->dim);
    n->nest.statistic = !s->data_only;
    n->nest.counts = s->value->kind == EX_NUM && s->value->number == (long)s->value->number;
    put_assign(p, ASSIGN_ADD, place_element(ex_ref(s->var, s->n, s->target)), s->value);
    leave(p, n);
    if (test) leave(p, test);
}

static bool is_let(const Var *v) { return v->kind == VAR_LET; }
static bool waits_for_let(const Var *v, void *with) { return v->kind == VAR_LET && !((bool *)with)[v->id]; }

static Kernel *lower_definitions(Lower *p)
{
    bool whole = false;
    for (int i = 0; i < p->g->nvars; i++) whole |= is_let(p->g->vars[i]) && site_needs_array(p->g->vars[i]);
    note(p, "Quantities that follow from the data alone, computed once.");
    Kernel *k = open_kernel(p, whole ? KERNEL_ONCE : KERNEL_TEAM, "definitions", "wide");
    put_in_order(p, is_let, waits_for_let, true, false);
    return close_kernel(p) ? k : NULL;
}

// More than 0 where something that e reads was missing, so that data do not determine e; NULL: never. Branches that are not taken do not
// count, nor subscripts that are missing themselves. `itself` may be missing: it is what e is about. With `reals`, only missing reals
// count.
static Expr *undecided(Expr *e, const Expr *itself, bool reals)
{
    if (!e || !e->vars || e == itself) return NULL;
    if (e->kind == EX_CALL && (e->fn == FN_if_else || e->fn == FN_AND)) {
        Expr *none = ex_num(0), *first = undecided(e->args[0], itself, reals), *then = undecided(e->args[1], itself, reals),
             *otherwise = e->fn == FN_AND ? NULL : undecided(e->args[2], itself, reals);
        Expr *rest = then || otherwise ? ex_call3("if_else", e->args[0], then ? then : none, otherwise ? otherwise : none) : NULL;
        return first && rest ? ex_call3("if_else", ex_call2("<", none, first), ex_num(1), rest) : first ? first : rest;
    }
    Expr *count = NULL;
    for (int i = 0; i < e->nargs; i++) {
        Expr *of = undecided(e->args[i], itself, reals);
        if (of && i + 1 == e->nargs && e->kind == EX_REDUCE) of = ex_reduce("sum", e->index, e->args[0], e->args[1], of);
        if (of && i + 1 == e->nargs && e->kind == EX_ARRAY) of = ex_reduce("sum", e->index, ex_num(1), e->args[0], of);
        if (of) count = count ? ex_add2(count, of) : of;
    }
    if (e->kind != EX_REF || e->var->kind != VAR_DATA || !e->var->response || (reals && e->var->base == BASE_INT)) return count;
    Expr *at[MAX_RANK], *of;
    Index *rest[MAX_RANK];
    for (int k = 0; k < e->var->rank; k++)
        at[k] = k < e->nargs ? e->args[k] : ex_index(rest[k] = index_new(e->var->name, ex_num(1), e->var->dim[k]));
    of = ex_call1("missing", ex_ref(e->var, e->var->rank, at));
    for (int k = e->var->rank - 1; k >= e->nargs; k--) of = ex_reduce("sum", rest[k], ex_num(1), e->var->dim[k], of);
    return count ? ex_call3("if_else", ex_call2("<", ex_num(0), count), ex_num(1), of) : of;
}

static Expr *decided(Expr *guard, Expr *e, const Expr *itself, bool reals)
{
    Expr *count = undecided(e, itself, reals);
    if (!count) return guard;
    Expr *none = count->kind == EX_CALL && count->fn == FN_MISSING ? ex_call1("!", count) : ex_call2("<", count, ex_num(1));
    return guard ? ex_call2("&&", guard, none) : none;
}

// What data must satisfy, where data determine whether the statement is there and what its support is.
static void put_check(Lower *p, const Factor *f, bool interval)
{
    Loops l = f->plates;
    l.guard = decided(NULL, f->plates.guard, NULL, false);
    if (f->plates.guard) l.guard = l.guard ? ex_call2("&&", l.guard, f->plates.guard) : f->plates.guard;
    l.guard = decided(l.guard, interval ? f->from : f->least, interval ? NULL : f->value, false);
    l.guard = decided(l.guard, interval ? f->to : f->most, interval ? NULL : f->value, false);
    Expr **target = NEW_N(p->g->arena, Expr *, l.n + 1);
    for (int i = 0; i < l.n; i++) target[i] = ex_index(l.index[i]);
    Node *nest = enter_nest(p, NODE_NEST, &l, l.n, target, NULL), *n = put(p, NODE_BOUNDS);
    nest->nest.careful = p->g->requirements != NULL;
    n->bounds.factor = f;
    n->bounds.interval = interval;
    leave(p, nest);
}

// What data must satisfy for every element to exist. Nothing is computed outside a condition. While subscripts are checked, those within
// them may be wrong.
static void put_requirements(Lower *p, bool counted)
{
    for (const Requirement *c = p->g->requirements; c; c = c->next) {
        if (c->counted != counted) continue;
        Loops l = c->loops;
        // a negated comparison would take a missing real for one that fails; missing whole numbers have been seen to
        for (int i = 0; i < c->nparts; i++)
            if (c->fails[i]->kind == EX_CALL && c->fails[i]->fn == FN_NOT) l.guard = decided(l.guard, c->fails[i], NULL, true);
        Node *nest = enter_nest(p, NODE_NEST, &l, 0, NULL, NULL);
        nest->nest.careful = !counted;
        nest->nest.as_read = nest->nest.plain = true;
        put(p, NODE_CHECK)->check.requirement = c;
        leave(p, nest);
    }
}

static Kernel *lower_check(Lower *p)
{
    const Graph *g = p->g;
    if (!g->lesson)
        note(p, "Data must lie in the support of their distributions%s.",
             g->requirements ? ", arguments of these in their domains, and subscripts inside their arrays" : "");
    Kernel *k = open_kernel(p, KERNEL_TEAM, "check_data", "wide");
    for (const Factor *f = g->factors; f; f = f->next) {
        if (f->from && !f->original && (f->region || f->value->kind == EX_REF)) put_check(p, f, true);
        if (f->original || !f->observed || !f->dist || (!f->least && !f->most) || f->value->kind != EX_REF ||
            f->value->nargs < f->value->var->rank)
            continue;
        put_check(p, f, false);
    }
    put_requirements(p, false);
    return close_kernel(p) ? k : NULL;
}

static bool is_made_here(const Sum *s, bool responses, int standing_in)
{
    return s->data_only && reads_response(s) == responses && (responses || stands_in(s) == standing_in);
}

// Those that only updates in place of a sparse block read are apart.
static Kernel *lower_sums(Lower *p, bool responses, int standing_in)
{
    note(p, responses     ? "Sums of a response: computed once, or after each imputation if values are missing."
            : standing_in ? "Sums of data, for updates in place of a joint normal."
                          : "Sums of data: computed once. Each is set to 0, since terms are added to it.");
    bool whole = false;
    for (const Sum *s = p->statistics.first; s; s = s->next)
        whole |= is_made_here(s, responses, standing_in) && needs_own_array(s->value, &s->loops);
    Kernel *k = open_kernel(p, whole ? KERNEL_ONCE : KERNEL_TEAM,
                            standing_in ? words(p, "sums_in_place_of_%d", standing_in)
                            : responses ? "sums_of_responses"
                                        : "sums_of_data",
                            "wide");
    for (const Sum *s = p->statistics.first; s; s = s->next)
        if (is_made_here(s, responses, standing_in)) put_sum(p, s);
    return close_kernel(p) ? k : NULL;
}

// Kernels of setup. Groups come between, since what is summed by them is known only when kernels are shared out: see lower_orders.
void lower_setup(Lower *p)
{
    Program *out = p->out;
    Launches grams = {0};
    p->launches = &grams;
    p->part = PART_MODEL;
    lower_odes(p, true);
    p->definitions = lower_definitions(p);
    p->part = PART_TABLES;
    p->check = lower_check(p);
    p->sums = lower_sums(p, false, 0);
    p->responses = lower_sums(p, true, 0);
    p->grams = grams;
    p->launches = &p->standing_in;
    for (int k = 1; k <= p->g->njoint; k++) {
        p->stands_in = k;
        launch_shared(p, LAUNCH_SHARED, lower_sums(p, false, k));
    }
    p->stands_in = 0;
    p->launches = &out->refresh;
    launch_shared(p, LAUNCH_SHARED_UNLESS_MISSING, p->responses);
    note(p, "Elements that are read must have a statement, and no element two.");
    Kernel *k = open_kernel(p, KERNEL_TEAM, "check_elements", "wide");
    put_requirements(p, true);
    p->launches = &out->finish;
    if (close_kernel(p)) launch_shared(p, LAUNCH_SHARED, k);
    if (p->responses) {
        p->launches = &out->again;
        if (p->responses->kind == KERNEL_TEAM) launch_team(p, p->responses);
        else launch(p, LAUNCH_ONCE, p->responses);
    }
}
