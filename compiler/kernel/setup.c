// setup.c -- what surrounds the sweep: definitions and sums of data, the log joint, quantities for the draws.
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "lower.h"

static bool test_response(const Var *v, void *with) { (void)with; return v->kind == VAR_DATA && v->response; }

bool ex_reads_response(const Expr *e) { return e && ex_any_var(e, test_response, NULL); }

bool reads_response(const Sum *s)
{
    bool yes = ex_reads_response(s->value) || ex_reads_response(s->loops.guard);
    for (int k = 0; k < s->n; k++) yes |= ex_reads_response(s->target[k]);
    for (int k = 0; k < s->loops.n; k++) yes |= ex_reads_response(s->loops.index[k]->lo) || ex_reads_response(s->loops.index[k]->hi);
    return yes;
}

// ---- definitions ----

bool is_searched(const Site *t) { return t->within && (t->dist->discrete || t->nargs - t->guarded > t->nsample + 4); }

// One element that a statement computes or draws.
static void put_element(Lower *p, const Site *t)
{
    Node *n;
    if (t->value) {
        put_update(p, t->adds ? UPDATE_ADD : UPDATE_SET, place_element(ex_ref(t->var, t->n, t->subscript)), t->value);
        return;
    }
    Node *test = t->when ? enter(p, NODE_IF) : NULL;
    if (test) test->test.condition = t->when;
    n = enter(p, NODE_SAMPLE);
    n->sample.site = t;
    Expr *const *rest = t->args + t->nsample;
    if (is_searched(t) && t->dist->discrete) put_update(p, UPDATE_SET, place_local(local_new(p->g->arena, "search.log_weight")), rest[4]);
    else if (is_searched(t)) {
        put_update(p, UPDATE_SET, place_local(local_new(p->g->arena, "search.below")), rest[4]);
        put_update(p, UPDATE_SET, place_local(local_new(p->g->arena, "search.above")), rest[5]);
    }
    leave(p, n);
    if (test) leave(p, test);
}

static bool reads_itself(const Site *t)
{
    if (t->value) return ex_mentions(t->value, t->var);
    for (int i = 0; i < t->nargs; i++)
        if (ex_mentions(t->args[i], t->var)) return true;
    return false;
}

// A statement, and those after it that share its loops; which is the next.
static const Site *put_site(Lower *p, const Site *t)
{
    const Loops l = loops_of(&t->plates);
    Node *lane = p->open->kind == KERNEL_TEAM && l.n > 0 && reads_itself(t) ? enter(p, NODE_LANE) : NULL;      // in order
    Expr **target = NEW_N(p->g->arena, Expr *, l.n + 1);
    for (int k = 0; k < l.n; k++) target[k] = ex_index(l.index[k]);      // each turn computes its own element
    Node *n = enter_nest(p, NODE_NEST, &l, l.n, target, NULL);
    n->nest.moving = t->var;
    n->nest.careful = t->var->kind == VAR_LET && t->var->unsure;
    put_element(p, t);
    const Site *next = t->next;
    for (; next && !lane && l.n && next->plates.index == t->plates.index && next->plates.guard == t->plates.guard && !reads_itself(next); next = next->next) put_element(p, next);
    leave(p, n);
    if (lane) leave(p, lane);
    return next;
}

// ---- series: elements that depend on each other, one after the other ----

static Var *local_array(Lower *p, const char *name, Expr *extent)
{
    Var *v = local_new(p->g->arena, name);
    v->rank = 1;
    v->dim[0] = extent;
    return v;
}

static void put_given(Lower *p, const char *name, Expr *array)
{
    Index *i = index_new(intern("i"), ex_num(1), ex_dim(array, 0));
    Expr *n = ex_dim(array, 0), *at = ex_index(i);
    Var *to = local_array(p, name, n);
    if (array->kind == EX_ARRAY && n->kind == EX_NUM && n->number <= 16) {
        for (int k = 1; k <= n->number; k++) put_update(p, UPDATE_SET, place_element(ex_ref(to, 1, (Expr *[]){ex_num(k)})), ex_at(array, 1, (Expr *[]){ex_num(k)}));
        return;
    }
    const Loops l = {.n = 1, .index = {i}};
    Node *each = enter_nest(p, NODE_NEST, &l, 0, NULL, NULL);
    each->nest.moving = to;
    put_update(p, UPDATE_SET, place_element(ex_ref(to, 1, &at)), ex_at(array, 1, &at));
    leave(p, each);
}

// Solutions of a differential equation, one for each turn of the loops around its statement.
static void put_solutions(Lower *p, const Ode *o, bool asked, bool chains)
{
    Node *loop[MAX_PLATES];
    for (int i = 0; i < o->plates.n; i++) {
        loop[i] = enter(p, NODE_LOOP);
        loop[i]->loop.how = SHARE_SERIAL;
        loop[i]->loop.n = 1;
        loop[i]->loop.index[0] = o->plates.index[i];
        loop[i]->loop.given = chains && i == 0;
    }
    Node *test = o->plates.guard ? enter(p, NODE_IF) : NULL;
    if (test) test->test.condition = o->plates.guard;
    Node *n = enter(p, NODE_SOLVE);
    n->solve.ode = o;
    n->solve.asked = asked;
    Var *input = local_array(p, "ode.input", ex_num(o->ninputs));
    for (int i = 0; i < o->ninputs; i++) put_update(p, UPDATE_SET, place_element(ex_ref(input, 1, (Expr *[]){ex_num(i + 1)})), o->input[i]);
    put_given(p, "ode.start", o->start);
    put_given(p, "ode.time", o->times);
    leave(p, n);
    if (test) leave(p, test);
    for (int i = o->plates.n - 1; i >= 0; i--) leave(p, loop[i]);
}

// The right side of a differential equation as a function, and its derivatives by the state and by the inputs.
static void lower_ode(Lower *p, const Ode *o)
{
    const char *name = o->site->var->name;
    Expr *n = ex_dim(o->call, 1), *by = o->start_moves ? ex_sub(o->columns, n) : o->columns;
    Derivative **terms = NEW_N(p->g->arena, Derivative *, o->ncomponents + 1);
    const char *why;
    bool known = true;
    for (int k = 0; k < o->ncomponents; k++) known = known && ode_derivatives(p->g, o, k, &terms[k], &why);
    note(p, "The right side of the differential equation of %s, %s", name, line_of(p, o->span));
    for (int i = 0; i < o->ninputs; i++) note(p, "  %s = %s", math(p, ex_ref(o->inputs, 1, (Expr *[]){ex_num(i + 1)})), math(p, o->input[i]));
    Kernel *k = open_kernel(p, KERNEL_FUNCTION, words(p, "right_side_%s", name), "wide");
    k->ode = o;
    k->of_ode = ODE_RIGHT_SIDE;
    Var *slope = local_array(p, "slope", n);
    for (int i = 0; i < o->ncomponents; i++) {
        Expr *at = o->each ? ex_index(o->each) : ex_num(i + 1);
        const Loops l = {.n = o->each != NULL, .index = {o->each}};
        Node *each = o->each ? enter_nest(p, NODE_NEST, &l, 0, NULL, NULL) : NULL;
        put_update(p, UPDATE_SET, place_element(ex_ref(slope, 1, &at)), o->component[i]);
        if (each) leave(p, each);
    }
    close_kernel(p);
    if (!known) return;
    note(p, "Its derivatives by the state and by the inputs: added to by_state[i, j] and by_input[i, c]");
    k = open_kernel(p, KERNEL_FUNCTION, words(p, "derivatives_%s", name), "wide");
    k->ode = o;
    k->of_ode = ODE_DERIVATIVES;
    Var *by_state = local_array(p, "by_state", n), *by_input = local_array(p, "by_input", n);
    by_state->rank = by_input->rank = 2;
    by_state->dim[1] = n;
    by_input->dim[1] = by;
    for (int i = 0; i < o->ncomponents; i++)
        for (const Derivative *d = terms[i]; d; d = d->next) {
            Expr *at[2] = {o->each ? ex_index(o->each) : ex_num(i + 1), ex_num(o->ninputs)};
            if (d->ref->var == o->state || d->ref->var == o->inputs) at[1] = d->ref->args[0];
            else {
                Expr *place = ex_num(0);
                for (int a = 0; o->array[a] != d->ref->var; a++) {
                    Expr *size = ex_num(1);
                    for (int m = 0; m < o->array[a]->rank; m++) size = ex_mul2(size, o->array[a]->dim[m]);
                    at[1] = ex_add2(at[1], size);
                }
                for (int m = 0; m < d->ref->nargs; m++) place = ex_add2(ex_mul2(place, d->ref->var->dim[m]), ex_sub(d->ref->args[m], ex_num(1)));
                at[1] = ex_add(3, (Expr *[]){at[1], place, ex_num(1)});
            }
            Var *to = d->ref->var == o->state ? by_state : by_input;
            Node *each = d->loops.n || d->loops.guard ? enter_nest(p, NODE_NEST, &d->loops, 0, NULL, NULL) : NULL;
            if (each) each->nest.moving = to;
            put_update(p, UPDATE_ADD, place_element(ex_ref(to, 2, at)), ex_mul2(d->weight, d->rest));
            if (each) leave(p, each);
        }
    close_kernel(p);                             // left out if they are all 0
}

static void lower_odes(Lower *p, bool lets)
{
    for (int i = 0; i < p->g->nvars; i++) {
        const Var *v = p->g->vars[i];
        for (const Site *t = v->sites; t && (v->kind == VAR_LET) == lets; t = t->next)
            if (t->ode) lower_ode(p, t->ode);
    }
}

static bool is_chain_of(const Site *t, const Index *i) { return t->subscript[0] == ex_index((Index *)i); }

// The site for the elements of one chain, with its index for the plate that was there.
static const Site *in_chain(Lower *p, const Site *t, Index *chain)
{
    Site *s = arena_copy(p->g->arena, t, sizeof *t);
    Index *was = t->subscript[0]->index;
    Expr *is = ex_index(chain);
    s->plates = (Plates){.index = NEW_N(p->g->arena, Index *, t->plates.n + 1), .guard = t->plates.guard ? ex_replace_index(t->plates.guard, was, is) : NULL};
    for (int i = 0; i < t->plates.n; i++)
        if (t->plates.index[i] != was) s->plates.index[s->plates.n++] = t->plates.index[i];
    for (int k = 0; k < t->n; k++) s->subscript[k] = ex_replace_index(t->subscript[k], was, is);
    s->value = ex_replace_index(t->value, was, is);
    return s;
}

static void put_series(Lower *p, const Series *s)
{
    if (s->sites->ode || s->var[0]->sites->ode) {
        for (const Site *t = s->var[0]->sites; t; t = t->next) put_solutions(p, t->ode, p->open->kind == KERNEL_FUNCTION, s->chains);
        return;
    }
    const bool whole = s->chains && is_chain_of(s->sites, s->along);          // what is along them is one chain after the other
    Index *chain = whole ? s->along : s->chains ? index_new(intern("k"), ex_num(1), s->var[0]->dim[0]) : NULL;
    Node *chains = chain && !whole ? enter(p, NODE_LOOP) : NULL, *along = enter(p, NODE_LOOP);
    along->loop.how = s->backward ? SHARE_BACKWARD : SHARE_SERIAL;
    along->loop.n = 1;
    along->loop.index[0] = s->along;
    along->loop.keeps = s->n == 1 && s->chains && p->open->kind == KERNEL_FUNCTION;
    along->loop.moving = s->var[0];
    if (chains) {
        chains->loop.how = SHARE_SERIAL;
        chains->loop.n = 1;
        chains->loop.index[0] = chain;
    }
    if (chain) (whole ? along : chains)->loop.given = true;
    for (const Site *t = s->sites; t; t = t->next) {
        if (chains) t = in_chain(p, t, chain);
        Loops l = loops_of(&t->plates);
        bool carried = false;
        for (int i = 0; i < l.n; i++) carried |= l.guard && ex_mentions_index(l.guard, l.index[i]);
        Node *test = NULL;
        if (l.guard && !carried) {
            test = enter(p, NODE_IF);
            test->test.condition = l.guard;
            l.guard = NULL;
        }
        Node *n = enter_nest(p, NODE_NEST, &l, 0, NULL, NULL);
        n->nest.moving = t->var;
        put_element(p, t);
        leave(p, n);
        if (test) leave(p, test);
    }
    leave(p, along);
    if (chains) leave(p, chains);
}

static Look test_remainder(const Expr *e, void *with) { (void)with; return e->kind == EX_CALL && e->fn == FN_MOD ? FOUND : LOOK; }

// Whether computing it may divide by a number that is 0: its value, where it is kept, and what it runs over.
static bool site_divides(const Site *t)
{
    bool yes = (t->value && ex_find(t->value, test_remainder, NULL)) || (t->plates.guard && ex_find(t->plates.guard, test_remainder, NULL));
    for (int k = 0; k < t->n; k++) yes |= ex_find(t->subscript[k], test_remainder, NULL);
    for (int k = 0; k < t->plates.n; k++) yes |= ex_find(t->plates.index[k]->lo, test_remainder, NULL) || ex_find(t->plates.index[k]->hi, test_remainder, NULL);
    return yes;
}

// Functions in which a subscript may be outside its array are told of the kernel that calls them.
bool any_wild(const Graph *g)
{
    for (int i = 0; i < g->nvars; i++)           // a differential equation may ask for the impossible
        if (g->vars[i]->kind == VAR_SERIES && g->vars[i]->sites && g->vars[i]->sites->ode) return true;
    for (int i = 0; i < g->nvars; i++)
        if (g->vars[i]->wild) return true;
    for (const Series *s = g->series; s; s = s->next)
        for (const Site *t = s->sites; t; t = t->next)
            if (site_divides(t)) return true;
    return false;
}

// Moves along gradients that solutions enter have an array of their derivatives.
static void place_slopes(Lower *p)
{
    Program *out = p->out;
    for (const Series *s = p->g->series; s; s = s->next) {
        const Ode *o = s->var[0]->sites ? s->var[0]->sites->ode : NULL;
        bool moved = false;
        for (const Step *t = p->g->steps; t; t = t->next)
            for (int i = 0; i < t->nblock && t->kind == STEP_NUTS; i++) moved |= series_reads(s, t->block[i]);
        if (!o || !o->slopes || !moved) continue;
        place_array(out, o->slopes, ROLE_BLOCK);
        ROOM(p->g->arena, out->work, out->nwork, out->work_size);
        out->work[out->nwork++] = o->slopes;
    }
}

bool lower_series(Lower *p)
{
    bool any = false;
    place_slopes(p);
    lower_odes(p, false);
    for (const Series *s = p->g->series; s; s = s->next) {
        if (s->var[0]->kind != VAR_SERIES) continue;
        any = true;
        const char *names = "";
        for (int i = 0; i < s->n; i++) names = words(p, "%s%s%s", names, i ? ", " : "", s->var[i]->name);
        if (s->var[0]->sites->ode) note(p, "%s: the solution of a differential equation", names);
        else note(p, "%s: each element from those before it", names);
        if (s->chains) note(p, "  where the first subscript, counted from 0, is from .. to - 1: no other reads these");
        for (const Site *t = s->sites; t; t = t->next) note(p, "  %s %s %s, %s", math(p, ex_ref(t->var, t->n, t->subscript)), t->adds ? "+=" : "=", math(p, t->value), line_of(p, t->span));
        Kernel *k = open_kernel(p, KERNEL_FUNCTION, words(p, "compute_%s", s->var[0]->name), "wide");
        k->context = any_wild(p->g);
        k->chains = s->chains;
        k->ode = s->var[0]->sites->ode;
        k->of_ode = ODE_SOLUTION;
        put_series(p, s);
        close_kernel(p);
    }
    if (!any) return false;
    any = false;
    p->messages = NEW_N(p->g->arena, const Kernel *, p->g->nvars + 1);
    for (const Series *s = p->g->series; s; s = s->next) {
        if (s->var[0]->kind != VAR_SERIES) continue;
        any |= !s->var[0]->hidden;
        if (!s->var[0]->hidden) continue;
        note(p, "%s, from the state as it is.", s->var[0]->name);
        Kernel *k = open_kernel(p, s->chains ? KERNEL_ELEMENTS : KERNEL_ONCE, s->var[0]->name, "wide");
        Node *each = s->chains ? enter(p, NODE_LOOP) : NULL;
        if (each) {
            each->loop.how = SHARE_EACH;
            each->loop.n = 1;
            each->loop.index[0] = index_new(intern("k"), ex_num(1), s->var[0]->dim[0]);
            each->loop.of = s->var[0];
        }
        Node *all = put(p, NODE_COMPUTE);
        all->compute.series = s;
        if (each) {
            all->compute.chain = ex_index(each->loop.index[0]);
            leave(p, each);
        }
        close_kernel(p);
        p->messages[s->var[0]->id] = k;
    }
    if (!any) return false;
    note(p, "All series, from the state as it is.");
    Kernel *k = open_kernel(p, KERNEL_ONCE, "series", "wide");
    for (const Series *s = p->g->series; s; s = s->next)
        if (s->var[0]->kind == VAR_SERIES && !s->var[0]->hidden) put(p, NODE_COMPUTE)->compute.series = s;
    close_kernel(p);
    p->series = k;
    p->launches = &p->out->before;
    launch(p, LAUNCH_ONCE, k);
    return true;
}

static bool site_needs_array(const Var *v)
{
    for (const Site *t = v->sites; t; t = t->next) {
        if (t->value ? needs_array(t->value) : t->n < v->rank) return true;
        for (int i = 0; i < t->nargs; i++)
            if (needs_array(t->args[i]) || (t->sample && ex_rank(t->args[i]) > 0)) return true;
    }
    return false;
}

// All that v is computed with: itself, or its series.
static void mark_done(const Var *v, bool *done, bool is)
{
    done[v->id] = is;
    for (int k = 0; v->series && k < v->series->n; k++) done[v->series->var[k]->id] = is;
}

static void put_sites(Lower *p, const Var *v)
{
    if (!v->series) {
        for (const Site *t = v->sites; t;) t = put_site(p, t);
        return;
    }
    Node *lane = enter(p, NODE_LANE);
    put_series(p, v->series);
    leave(p, lane);
}

// Whether a statement reads what is not computed yet: in its value, its subscripts, its condition or its ranges.
static bool waits(const Site *t, bool (*test)(const Var *, void *), bool *done)
{
    bool yes = (t->value && ex_any_var(t->value, test, done)) || (t->when && ex_any_var(t->when, test, done)) || (t->plates.guard && ex_any_var(t->plates.guard, test, done));
    for (int k = 0; k < t->nargs; k++) yes |= ex_any_var(t->args[k], test, done);
    for (int k = 0; k < t->n; k++) yes |= ex_any_var(t->subscript[k], test, done);
    for (int k = 0; k < t->plates.n; k++) yes |= ex_any_var(t->plates.index[k]->lo, test, done) || ex_any_var(t->plates.index[k]->hi, test, done);
    return yes;
}

// Variables of some kinds in an order in which each is computed after what it reads.
static void put_in_order(Lower *p, bool (*kind)(const Var *), bool (*test)(const Var *, void *), bool titles, bool holes)
{
    const Graph *g = p->g;
    const int n = g->nvars;
    bool *done = NEW_N(g->arena, bool, n + 1);
    for (bool progress = true; progress;) {
        progress = false;
        for (int i = 0; i < n; i++) {
            Var *v = g->vars[i];
            if (!kind(v) || done[v->id]) continue;
            bool ready = true;
            mark_done(v, done, true);            // it may read itself
            for (int k = 0; k < (v->series ? v->series->n : 1); k++)
                for (const Site *t = (v->series ? v->series->var[k] : v)->sites; t; t = t->next) ready &= !waits(t, test, done);
            if (!ready) { mark_done(v, done, false); continue; }
            if (titles) put(p, NODE_COMMENT)->text.lines = words(p, "%s, %s", v->name, line_of(p, v->span));
            if (holes && v->holes && !v->series) put_fill(p, v, count_dims(v, 0, v->rank), true)->fill.value = v->base == BASE_INT ? "-2147483647 - 1" : "NAN";   // elements without a statement
            put_sites(p, v);
            progress = true;
        }
    }
}

// ---- what is computed once: lets and sums of data ----

// A Gram matrix of a data matrix, sum(i, w[i]*X[i,j]*X[i,k]): one library call in place of three loops.
static Launch *launch_gram(Lower *p, const Sum *s)
{
    if (reads_response(s)) return NULL;
    if (s->n != 2 || s->loops.n != 3 || s->loops.guard || s->value->kind != EX_MUL) return NULL;
    Index *i = s->loops.index[0], *j = s->loops.index[1], *k = s->loops.index[2];
    if (s->target[0] != ex_index(j) || s->target[1] != ex_index(k) || s->var->dim[0] != j->hi || s->var->dim[1] != k->hi) return NULL;      // it may have places for more
    Expr *A = NULL, *B = NULL;
    double number = 1;
    for (int f = 0; f < s->value->nargs; f++) {
        Expr *e = s->value->args[f];
        if (e->kind == EX_NUM) number = e->number;
        else if (e->kind == EX_REF && e->nargs == 2 && e->args[0] == ex_index(i) && e->args[1] == ex_index(j) && !A) A = e;
        else if (e->kind == EX_REF && e->nargs == 2 && e->args[0] == ex_index(i) && e->args[1] == ex_index(k) && !B) B = e;
        else return NULL;
    }
    if (!A || !B || A->var != B->var || A->var->base != BASE_REAL || A->var->dim[0] != i->hi || A->var->dim[1] != j->hi || A->var->dim[1] != k->hi || !ex_is_num(i->lo, 1) || !ex_is_num(j->lo, 1) ||
        !ex_is_num(k->lo, 1)) return NULL;
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
    put_update(p, UPDATE_ADD, place_element(ex_ref(s->var, s->n, s->target)), s->value);
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

// More than 0 where something that e reads was missing, so that data do not tell what e is; NULL: never. Branches that are not taken are not asked,
// nor subscripts that are missing themselves. `itself` may be missing: it is what e is about. With `reals`, only missing reals count.
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
    for (int k = 0; k < e->var->rank; k++) at[k] = k < e->nargs ? e->args[k] : ex_index(rest[k] = index_new(e->var->name, ex_num(1), e->var->dim[k]));
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

// What data must satisfy, where data tell whether the statement stands and what its support is.
static void put_check(Lower *p, const Factor *f, bool interval)
{
    Loops l = loops_of(&f->plates);
    l.guard = decided(NULL, f->plates.guard, NULL, false);
    if (f->plates.guard) l.guard = l.guard ? ex_call2("&&", l.guard, f->plates.guard) : f->plates.guard;
    l.guard = decided(l.guard, interval ? f->from : f->least, interval ? NULL : f->value, false);
    l.guard = decided(l.guard, interval ? f->to : f->most, interval ? NULL : f->value, false);
    Expr **target = NEW_N(p->g->arena, Expr *, l.n + 1);
    for (int i = 0; i < l.n; i++) target[i] = ex_index(l.index[i]);
    Node *nest = enter_nest(p, NODE_NEST, &l, l.n, target, NULL), *n = put(p, NODE_BOUNDS);
    nest->nest.careful = p->g->claims != NULL;
    n->bounds.factor = f;
    n->bounds.interval = interval;
    leave(p, nest);
}

// What data must satisfy for every element to exist. Nothing is computed outside a condition. While subscripts are checked, those within them may be wrong.
static void put_claims(Lower *p, bool counted)
{
    for (const Claim *c = p->g->claims; c; c = c->next) {
        if (c->counted != counted) continue;
        Loops l = c->loops;
        for (int i = 0; i < c->nparts; i++)      // a negated comparison would take a missing real for one that fails; missing whole numbers have been seen to
            if (c->fails[i]->kind == EX_CALL && c->fails[i]->fn == FN_NOT) l.guard = decided(l.guard, c->fails[i], NULL, true);
        Node *nest = enter_nest(p, NODE_NEST, &l, 0, NULL, NULL);
        nest->nest.careful = !counted;
        nest->nest.as_read = nest->nest.plain = true;
        put(p, NODE_CHECK)->check.claim = c;
        leave(p, nest);
    }
}

static Kernel *lower_check(Lower *p)
{
    const Graph *g = p->g;
    note(p, "Data must lie in the support of their distributions%s.", g->claims ? ", arguments of these in their domains, and subscripts inside their arrays" : "");
    Kernel *k = open_kernel(p, KERNEL_TEAM, "check_data", "wide");
    for (const Factor *f = g->factors; f; f = f->next) {
        if (f->from && !f->original && (f->region || f->value->kind == EX_REF)) put_check(p, f, true);
        if (f->original || !f->observed || !f->dist || (!f->least && !f->most) || f->value->kind != EX_REF || f->value->nargs < f->value->var->rank) continue;
        put_check(p, f, false);
    }
    put_claims(p, false);
    return close_kernel(p) ? k : NULL;
}

static bool is_made_here(const Sum *s, bool responses, int standing_in)
{
    return s->data_only && reads_response(s) == responses && (responses || stands_in(s) == standing_in);
}

// Those that only what stands in for a sparse block reads are apart.
static Kernel *lower_sums(Lower *p, bool responses, int standing_in)
{
    note(p, responses ? "Sums that hold a response: computed once, or after each imputation if values are missing." : standing_in ? "Sums of data, for steps that stand in for a joint normal." : "Sums of data: computed once.");
    bool whole = false;
    for (const Sum *s = p->statistics.first; s; s = s->next) whole |= is_made_here(s, responses, standing_in) && needs_own_array(s->value, &s->loops);
    Kernel *k = open_kernel(p, whole ? KERNEL_ONCE : KERNEL_TEAM, standing_in ? words(p, "sums_in_place_of_%d", standing_in) : responses ? "sums_of_responses" : "sums_of_data", "wide");
    for (const Sum *s = p->statistics.first; s; s = s->next)
        if (is_made_here(s, responses, standing_in)) put_sum(p, s);
    return close_kernel(p) ? k : NULL;
}

static void launch_shared(Lower *p, LaunchKind kind, const Kernel *k)
{
    if (!k) return;
    Launch *l = launch(p, kind, k);
    l->arg[l->nargs++] = (LaunchArg){.kind = ARG_WORK};
}

// Kernels of setup. Groups come between, since what is summed by them is known only when kernels are shared out: see lower_orders.
void lower_setup(Lower *p)
{
    Program *out = p->out;
    Launches grams = {0};
    p->launches = &grams;
    lower_odes(p, true);
    p->definitions = lower_definitions(p);
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
    put_claims(p, true);
    p->launches = &out->finish;
    if (close_kernel(p)) launch_shared(p, LAUNCH_SHARED, k);
    if (p->responses) {
        p->launches = &out->again;
        if (p->responses->kind == KERNEL_TEAM) launch_team(p, p->responses);
        else launch(p, LAUNCH_ONCE, p->responses);
    }
}

// The pairs of elements that factors hold, one factor after the other.
static void put_pairs(Lower *p, const Classes *k)
{
    Expr *before = ex_num(0);
    for (const Conflict *q = k->conflicts; q; q = q->next) {
        const Plates *plates = &q->factor->plates;
        const Loops l = {.n = plates->n, .index = {plates->index[0], plates->n > 1 ? plates->index[1] : NULL}};
        Expr **at = NEW_N(p->g->arena, Expr *, 1), *place = ex_index(l.index[0]);
        if (l.n > 1) place = ex_add2(ex_mul2(ex_add2(place, ex_num(-1)), l.index[1]->hi), ex_index(l.index[1]));
        *at = ex_add2(before, place);
        Node *n = enter_nest(p, NODE_NEST, &l, 1, at, NULL);
        for (int side = 0; side < 2; side++) {
            Expr *element = side ? q->b : q->a;
            if (plates->guard) element = ex_call3("if_else", plates->guard, element, ex_num(0));
            put_update(p, UPDATE_SET, place_element(ex_ref(side ? k->other : k->one, 1, at)), element);
        }
        leave(p, n);
        before = ex_add2(before, instances(plates));
    }
}

static void append(Launches *to, const Launches *more)
{
    if (!more->first) return;
    if (!to->first) to->last = &to->first;
    *to->last = more->first;
    to->last = more->last;
}

// The group of each row, and the launches of setup in their order.
void lower_orders(Lower *p)
{
    Kernel *k = NULL;
    bool any = false;
    for (int i = 0; i < p->norders; i++) any |= !p->order[i]->spare;
    any |= p->nclasses > 0;
    if (any) {
        note(p, p->nclasses ? "The group of each row, for sums by group, and the elements that meet; 0: in none." : "The group of each row, for sums by group; 0: in none.");
        k = open_kernel(p, KERNEL_TEAM, "groups", "wide");
    }
    for (int i = 0; i < p->norders; i++) {
        const Order *o = p->order[i];
        if (o->spare) continue;
        Expr *row = ex_index(o->row), *inside = o->guard, *key = o->key;
        if (!ex_is_num(o->row->lo, 1)) {
            Expr *from = ex_call2("<=", o->row->lo, row);
            inside = inside ? ex_call2("&&", from, inside) : from;
        }
        Index *all = index_new(o->row->name, ex_num(1), o->row->hi);
        const Loops l = {.n = 1, .index = {all}};
        Expr **at = NEW_N(p->g->arena, Expr *, 1);
        *at = ex_index(all);
        if (inside) key = ex_call3("if_else", inside, key, ex_num(0));
        Node *n = enter_nest(p, NODE_NEST, &l, 1, at, NULL);
        put_update(p, UPDATE_SET, place_element(ex_ref(o->keys, 1, at)), ex_replace_index(key, o->row, *at));
        leave(p, n);
    }
    for (int i = 0; i < p->nclasses; i++) put_pairs(p, p->classes[i]);
    if (k) close_kernel(p);
    p->launches = &p->out->prepare;
    launch_shared(p, LAUNCH_SHARED, p->definitions);
    launch_shared(p, LAUNCH_SHARED, p->check);
    if (p->g->claims) launch(p, LAUNCH_STOP, NULL);
    launch_shared(p, LAUNCH_SHARED, k);
    for (int i = 0; i < p->nclasses; i++) {
        const Classes *q = p->classes[i];
        Launch *l = launch(p, LAUNCH_COLOUR_ELEMENTS, NULL);
        with_extent(l, q->of->dim[0]);
        with_extent(l, q->pairs);
        with_name(l, q->one);
        with_name(l, q->other);
        with_name(l, q->first);
        with_name(l, q->elements);
    }
    for (int i = 0; i < p->norders; i++) {
        const Order *o = p->order[i];
        if (o->spare) continue;
        Launch *l = launch(p, LAUNCH_ORDER_ROWS, NULL);
        with_extent(l, o->row->hi);
        with_extent(l, o->extent);
        with_name(l, o->keys);
        with_name(l, o->first);
        with_name(l, o->rows);
    }
    append(p->launches, &p->told);
    launch_shared(p, LAUNCH_SHARED, p->sums);
    append(p->launches, &p->grams);
    append(p->launches, &p->patterns);
    append(p->launches, &p->standing_in);
}

// ---- the log joint, and quantities for the draws ----

static void launch_kernel(Lower *p, Launches *list, const Kernel *k)
{
    p->launches = list;
    if (k->kind == KERNEL_ONCE) launch(p, LAUNCH_ONCE, k);
    else launch_team(p, k);
}

// One function of a thousand statements takes the C compiler longer than forty of twenty-five.
enum { FACTORS_OF_A_PART = 25, FACTORS_OF_A_KERNEL = 100 };

// A program for modes has the density of the parameters alone: all latents integrated out.
static bool counts(const Graph *g, const Factor *f) { return factor_counts_at(f, g->by_em ? g->nsums : 0, g->by_em) && !ex_is_num(f->log_density, 0); }

static Look test_shared(const Expr *e, void *with)
{
    (void)with;
    return e->kind == EX_REDUCE || e->kind == EX_ARRAY || e->kind == EX_AT || ex_rank(e) > 0 ? FOUND : LOOK;
}

// Whether nothing in it is done together by the lanes of a team: it may be moved to a function.
static bool for_part(const Graph *g, const Factor *f) { return counts(g, f) && !f->original && f->plates.n == 0 && !f->plates.guard && !ex_find(f->log_density, test_shared, NULL); }

static void put_factor(Lower *p, const Factor *f, Var *lp)
{
    put(p, NODE_COMMENT)->text.lines = words(p, "%s%s", f->dist ? f->dist->name : f->id < 0 ? "the Jacobian of the centred form" : "target", f->rule ? words(p, ", by %s", f->rule->name) : "");
    const Loops l = loops_of(&f->plates);
    Node *sum = enter_nest(p, NODE_REDUCE, &l, 0, NULL, NULL);
    sum->nest.op = UPDATE_ADD;
    put_update(p, UPDATE_ADD, place_local(lp), f->log_density);
    leave(p, sum);
}

static Var *begin_sum(Lower *p)
{
    Var *lp = local_new(p->g->arena, "lp");
    put_let(p, NULL, lp, ex_num(0), "wide")->let.grows = true;
    return lp;
}

// Where there are very many factors, those without loops go to functions. Returns how many functions there are, in `part`.
static int lower_parts(Lower *p, const Kernel ***part)
{
    int n = 0, of = 0;
    for (const Factor *f = p->g->factors; f; f = f->next) n += for_part(p->g, f);
    if (n <= FACTORS_OF_A_KERNEL) return 0;
    *part = NEW_N(p->g->arena, const Kernel *, n / FACTORS_OF_A_PART + 1);
    n = 0;
    Kernel *k = NULL;
    Var *lp = NULL;
    for (const Factor *f = p->g->factors;; f = f->next) {
        while (f && !for_part(p->g, f)) f = f->next;
        if (k && (!f || of == FACTORS_OF_A_PART)) {
            put(p, NODE_RESULT)->result.value = local_ref(lp);
            close_kernel(p);
            k = NULL;
        }
        if (!f) return n;
        if (!k) {
            of = 0;
            note(p, "Of the log joint density: factors without loops.");
            (*part)[n] = k = open_kernel(p, KERNEL_PART, words(p, "some_factors_%d", n + 1), "wide");
            n++;
            lp = begin_sum(p);
        }
        put_factor(p, f, lp);
        of++;
    }
}

// Where auxiliaries compete with moves that leave them out, what the draws hold is the log density of the model as written, which is there whichever method a chain takes; --check
// compares steps with the augmented one.
static bool auxiliaries_compete(const Graph *g)
{
    for (const Competition *c = g->competitions; c; c = c->next)
        if (c->auxiliaries) return true;
    return false;
}

// The factors that stand in only one of the two.
static void put_either(Lower *p, Var *lp, bool augmented)
{
    Expr *checking = local_ref(local_new(p->g->arena, "CHECKING"));
    Node *test = enter(p, NODE_IF);
    test->test.condition = augmented ? checking : ex_call1("!", checking);
    for (const Factor *f = p->g->factors; f; f = f->next)
        if (factor_counts_at(f, 0, augmented) == false && factor_counts_at(f, 0, !augmented) && !ex_is_num(f->log_density, 0)) put_factor(p, f, lp);
    leave(p, test);
}

// Of a model that has been centred: the density is that of the model as written, but for --check, which compares steps.
static void put_written(Lower *p, Var *lp)
{
    if (!p->g->written) return;
    Node *test = enter(p, NODE_IF);
    test->test.condition = ex_call1("!", local_ref(local_new(p->g->arena, "CHECKING")));
    for (const Factor *f = p->g->written; f; f = f->next) put_factor(p, f, lp);
    leave(p, test);
}

// With --check, that of elements without a statement, as columns that take turns have them.
static void put_absent_density(Lower *p, Var *lp, Expr *element, const Loops *l, Expr *coefficient)
{
    put(p, NODE_COMMENT)->text.lines = words(p, "elements of %s without a statement", element->var->name);
    Node *test = enter(p, NODE_IF);
    test->test.condition = local_ref(local_new(p->g->arena, "CHECKING"));
    Node *sum = enter_nest(p, NODE_REDUCE, l, 0, NULL, NULL);
    put_update(p, UPDATE_ADD, place_local(lp), ex_mul2(coefficient, ex_pow(element, 2)));
    leave(p, sum);
    leave(p, test);
}

void lower_log_joint(Lower *p)
{
    bool whole = false;
    const bool either = auxiliaries_compete(p->g);
    for (const Factor *f = p->g->factors; f; f = f->next) {
        const Loops l = loops_of(&f->plates);
        whole |= (counts(p->g, f) || (either && factor_counts_at(f, 0, true))) && needs_own_array(f->log_density, &l);
    }
    const Kernel **part;
    const int parts = lower_parts(p, &part);
    note(p, p->g->by_em ? "The log density of data and parameters, latents integrated out." : either ? "The log joint density of data and variables; with --check that of auxiliaries, too." : "The log joint density of data, variables and auxiliaries.");
    Kernel *k = open_kernel(p, KERNEL_TEAM, "log_joint", "wide");
    k->by_one = whole;
    Var *lp = begin_sum(p);
    for (int i = 0; i < parts; i++) {
        Node *n = put(p, NODE_CALL);
        n->call.part = part[i];
        n->call.into = lp;
    }
    for (const Factor *f = p->g->factors; f; f = f->next)
        if (counts(p->g, f) && !(parts && for_part(p->g, f)) && (!either || factor_counts_at(f, 0, true))) put_factor(p, f, lp);
    for (int k = 0; k < 2 && either; k++) put_either(p, lp, k == 0);
    put_written(p, lp);
    bool *absent = NEW_N(p->g->arena, bool, p->g->nvars + 1);          // told already: several blocks may draw a variable, each with the same density of such elements
    for (const Step *s = p->g->steps; s; s = s->next)
        for (const BlockTerm *t = s->kind == STEP_GAUSSIAN ? s->gaussian.terms : NULL; t; t = t->next) {
            if (!t->absent || absent[t->ref[0]->var->id]) continue;
            absent[t->ref[0]->var->id] = true;
            put(p, NODE_COMMENT)->text.lines = words(p, "elements of %s without a statement", t->ref[0]->var->name);
            Node *test = enter(p, NODE_IF);
            test->test.condition = local_ref(local_new(p->g->arena, "CHECKING"));
            Node *sum = enter_nest(p, NODE_REDUCE, &t->loops, 0, NULL, NULL);
            put_update(p, UPDATE_ADD, place_local(lp), ex_mul2(t->coefficient, ex_pow(t->ref[0], 2)));
            leave(p, sum);
            leave(p, test);
        }
    for (const Step *s = p->g->steps; s; s = s->next)
        for (int i = 0; s->kind == STEP_TURNS && i < s->turns->n; i++) {
            Var *v = s->turns->var[i];
            Loops l = {.n = v->rank};
            Expr *element = var_element(p->g, v, l.index), *exists = v->exists;
            if (!exists) continue;
            for (int d = 0; d < v->rank; d++) exists = ex_replace_index(exists, v->own[d], ex_index(l.index[d]));
            l.guard = ex_call1("!", exists);
            put_absent_density(p, lp, element, &l, ex_num(-0.5));
        }
    put(p, NODE_RESULT)->result.value = local_ref(lp);
    close_kernel(p);
    p->launches = &p->out->joint;
    for (int i = 0; i < p->g->nvars && p->g->by_em && p->messages; i++) {
        const Var *m = p->g->vars[i];
        bool reads = false;
        for (const Factor *f = p->g->factors; f && m->hidden; f = f->next) reads |= counts(p->g, f) && ex_reads(f->log_density, m);
        if (m->kind == VAR_SERIES && reads) launch_messages(p, m);
    }
    launch_kernel(p, &p->out->joint, k);
}

static bool is_for_draws(const Var *v) { return (v->kind == VAR_DERIVED || v->kind == VAR_PREDICTED) && !v->on_request; }
static bool is_replicate(const Var *v) { return v->on_request == REQUEST_REPLICATES; }
static bool waits_for_predicted(const Var *v, void *with) { return v->kind == VAR_PREDICTED && !((bool *)with)[v->id]; }

// What the draws hold for an element that does not exist.
static Expr *absent_value(Lower *p, const Var *v)
{
    return v->base == BASE_INT ? ex_num(-2147483648.0) : local_ref(local_new(p->g->arena, "NAN"));
}

// The elements of v without a statement; NULL: there are none.
static Expr *absent_element(const Var *v, Loops *l)
{
    if (v->kind != VAR_PARAMETER && v->kind != VAR_LATENT && v->kind != VAR_AUXILIARY) return NULL;
    if (v->kind == VAR_AUXILIARY && v->rank > 0 && !v->partial) return NULL;
    if (v->coverage && !v->holes) return NULL;
    l->n = v->rank;
    if (!v->exists) return NULL;
    Expr *at[MAX_RANK];
    for (int k = 0; k < v->rank; k++) at[k] = ex_index(l->index[k] = v->own[k]);
    l->guard = ex_call1("!", v->exists);
    return ex_ref((Var *)v, v->rank, at);
}

// They do not exist in the draws either.
static void put_absent(Lower *p, Var *v)
{
    Loops l = {0};
    Expr *element = absent_element(v, &l);
    if (!element) return;
    Node *nest = enter_nest(p, NODE_NEST, &l, v->rank, element->args, NULL), *test = enter(p, NODE_IF);
    test->test.condition = ex_call1("!", local_ref(local_new(p->g->arena, "CHECKING")));
    put_update(p, UPDATE_SET, place_element(element), absent_value(p, v));
    leave(p, test);
    leave(p, nest);
}

// A value that an element which does not exist may hold while chains are swept: nothing reads it but sums that take 0 times it or a function of it.
static Expr *harmless(const Var *v, Expr *const *at)
{
    Expr *lo = isfinite(v->lower_number) ? ex_num(v->lower_number) : v->lower && !ex_unknown(v->lower) ? v->lower : NULL;
    Expr *hi = isfinite(v->upper_number) ? ex_num(v->upper_number) : v->upper && !ex_unknown(v->upper) ? v->upper : NULL;
    Expr *last = v->rank ? at[v->rank - 1] : NULL, *size = v->rank ? v->dim[v->rank - 1] : NULL;
    switch (v->constraint) {
    case CONSTRAINT_SIMPLEX: return ex_pow(size, -1);
    case CONSTRAINT_UNIT_VECTOR: return ex_pow(size, -0.5);
    case CONSTRAINT_SUM_TO_ZERO: return ex_num(0);
    case CONSTRAINT_ORDERED: case CONSTRAINT_POSITIVE_ORDERED: return last;
    case CONSTRAINT_COVARIANCE: case CONSTRAINT_CORRELATION: case CONSTRAINT_CHOLESKY_COV: case CONSTRAINT_CHOLESKY_CORR:
        return ex_call2("==", at[v->rank - 2], last);
    case CONSTRAINT_NONE: break;
    }
    if (v->base == BASE_INT) return lo ? lo : hi ? hi : ex_num(0);
    if (lo && hi) return ex_mul2(ex_num(0.5), ex_add2(lo, hi));
    return lo ? ex_add2(lo, ex_num(1)) : hi ? ex_sub(hi, ex_num(1)) : ex_num(0);
}

// Missing values that no statement draws: the draws do not show what stands in their place while chains are swept (hide), which comes back afterwards.
static void lower_undrawn(Lower *p, const Var *v, bool hide)
{
    if (!v->rank || !v->exists || (v->coverage && !v->holes)) return;
    bool imputed = false;
    for (const Step *s = p->g->steps; s; s = s->next) imputed |= s->imputes && s->block[0] == v;
    if (!imputed) return;
    Expr *at[MAX_RANK];
    for (int k = 0; k < v->rank; k++) at[k] = ex_index(v->own[k]);
    Expr *element = ex_ref((Var *)v, v->rank, at);
    note(p, hide ? "Missing elements of %s that no statement draws have no value in the draws." : "They have one again.", v->name);
    Kernel *k = open_kernel(p, KERNEL_ELEMENTS, words(p, hide ? "hide_%s" : "restore_%s", v->name), "wide");
    Node *loop = enter(p, NODE_LOOP);
    loop->loop.how = SHARE_MISSING;
    loop->loop.of = v;
    loop->loop.field = missing_field(p, v);
    for (int i = 0; i < v->rank; i++) loop->loop.index[loop->loop.n++] = v->own[i];
    Expr *undrawn = ex_call1("!", v->exists);
    put(p, NODE_SKIP)->skip.condition = hide ? ex_call2("&&", ex_call1("!", local_ref(local_new(p->g->arena, "CHECKING"))), undrawn) : undrawn;
    put_update(p, UPDATE_SET, place_element(element), hide ? absent_value(p, v) : harmless(v, element->args));
    leave(p, loop);
    if (close_kernel(p)) with_number(launch(p, LAUNCH_MISSING, k), missing_field(p, v));
}

// After a draw is stored: what put_absent made NaN is a number again.
static void lower_restore(Lower *p)
{
    note(p, "Elements that do not exist are numbers again, once a draw is stored.");
    Kernel *k = open_kernel(p, KERNEL_TEAM, "restore_absent", "wide");
    for (int i = 0; i < p->g->nvars; i++) {
        Loops l = {0};
        Var *v = p->g->vars[i];
        Expr *element = absent_element(v, &l);
        if (!element) continue;
        Node *nest = enter_nest(p, NODE_NEST, &l, v->rank, element->args, NULL);
        put_update(p, UPDATE_SET, place_element(element), harmless(v, element->args));
        leave(p, nest);
    }
    p->launches = &p->out->restore;
    if (close_kernel(p)) launch_team(p, k);
    for (int i = 0; i < p->g->nvars; i++) lower_undrawn(p, p->g->vars[i], false);
}

// Of each variable that is observed, for runs that ask: they come before `derive`, which makes elements that do not exist NaN.
void lower_observed(Lower *p)
{
    for (int once = 0; once < 2; once++) {               // what needs matrices of its own is computed by one lane
        note(p, "The log-likelihood, point by point, in runs that ask for it.");
        Kernel *k = open_kernel(p, KERNEL_TEAM, once ? "log_likelihood_by_one" : "log_likelihood", "wide");
        k->by_one = once;
        k->on_request = true;
        for (int i = 0; i < p->g->nvars; i++) {
            Var *v = p->g->vars[i];
            if (v->on_request != REQUEST_LOG_LIK) continue;
            bool own = false;
            for (const Site *t = v->sites; t; t = t->next) {
                const Loops l = loops_of(&t->plates);
                own |= needs_own_array(t->value, &l);
            }
            if (own != (once != 0)) continue;
            if (v->holes) put_fill(p, v, count_dims(v, 0, v->rank), true)->fill.value = "NAN";
            put_sites(p, v);
        }
        if (close_kernel(p)) launch_kernel(p, &p->out->log_lik, k);
    }
    bool whole = false;
    for (int i = 0; i < p->g->nvars; i++) whole |= is_replicate(p->g->vars[i]) && site_needs_array(p->g->vars[i]);
    note(p, "Replicates of what is observed, in runs that ask for them.");
    Kernel *k = open_kernel(p, whole ? KERNEL_ONCE : KERNEL_TEAM, "replicate", "wide");
    k->on_request = true;
    put_in_order(p, is_replicate, waits_for_predicted, false, true);
    if (close_kernel(p)) launch_kernel(p, &p->out->replicates, k);
}

void lower_derive(Lower *p)
{
    p->launches = &p->out->derive;
    for (int i = 0; i < p->g->nvars; i++) lower_undrawn(p, p->g->vars[i], true);
    note(p, "Quantities for the draws, computed after each kept sweep.");
    bool whole = false;
    for (int i = 0; i < p->g->nvars; i++) whole |= is_for_draws(p->g->vars[i]) && site_needs_array(p->g->vars[i]);
    Kernel *k = open_kernel(p, whole ? KERNEL_ONCE : KERNEL_TEAM, "derived", "wide");
    for (int i = 0; i < p->g->nvars; i++) put_absent(p, p->g->vars[i]);
    for (int i = 0; i < p->g->nvars; i++) {              // elements that are computed, of variables whose others are drawn
        const Var *v = p->g->vars[i];
        if (!var_unknown(v) || !v->sites) continue;
        put_sites(p, v);
    }
    put_in_order(p, is_for_draws, waits_for_predicted, false, true);
    if (close_kernel(p)) launch_kernel(p, &p->out->derive, k);
    lower_restore(p);
}
