// series.c -- series: elements that depend on each other, one after the other; solutions of differential equations; messages along chains.
//
// Needs: the order in which elements are computed (graph/model/series.c).     Gives: functions of the program, and what calls them.
#include "lower.h"

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
        for (int k = 1; k <= n->number; k++)
            put_assign(p, ASSIGN_SET, place_element(ex_ref(to, 1, (Expr *[]){ex_num(k)})), ex_at(array, 1, (Expr *[]){ex_num(k)}));
        return;
    }
    const Loops l = {.n = 1, .index = {i}};
    Node *each = enter_nest(p, NODE_NEST, &l, 0, NULL, NULL);
    each->nest.moving = to;
    put_assign(p, ASSIGN_SET, place_element(ex_ref(to, 1, &at)), ex_at(array, 1, &at));
    leave(p, each);
}

// Solutions of a differential equation, one for each iteration of the loops around its statement.
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
    for (int i = 0; i < o->ninputs; i++) put_assign(p, ASSIGN_SET, place_element(ex_ref(input, 1, (Expr *[]){ex_num(i + 1)})), o->input[i]);
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
    for (int i = 0; i < o->ninputs; i++)
        note(p, "  %s = %s", math(p, ex_ref(o->inputs, 1, (Expr *[]){ex_num(i + 1)})), math(p, o->input[i]));
    Kernel *k = open_kernel(p, KERNEL_FUNCTION, words(p, "right_side_%s", name), "wide");
    k->ode = o;
    k->of_ode = ODE_RIGHT_SIDE;
    Var *slope = local_array(p, "slope", n);
    for (int i = 0; i < o->ncomponents; i++) {
        Expr *at = o->each ? ex_index(o->each) : ex_num(i + 1);
        const Loops l = {.n = o->each != NULL, .index = {o->each}};
        Node *each = o->each ? enter_nest(p, NODE_NEST, &l, 0, NULL, NULL) : NULL;
        put_assign(p, ASSIGN_SET, place_element(ex_ref(slope, 1, &at)), o->component[i]);
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
                for (int m = 0; m < d->ref->nargs; m++)
                    place = ex_add2(ex_mul2(place, d->ref->var->dim[m]), ex_sub(d->ref->args[m], ex_num(1)));
                at[1] = ex_add(3, (Expr *[]){at[1], place, ex_num(1)});
            }
            Var *to = d->ref->var == o->state ? by_state : by_input;
            Node *each = d->loops.n || d->loops.guard ? enter_nest(p, NODE_NEST, &d->loops, 0, NULL, NULL) : NULL;
            if (each) each->nest.moving = to;
            put_assign(p, ASSIGN_ADD, place_element(ex_ref(to, 2, at)), ex_mul2(d->weight, d->rest));
            if (each) leave(p, each);
        }
    close_kernel(p);  // left out if they are all 0
}

void lower_odes(Lower *p, bool lets)
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
    s->plates = (Loops){.guard = t->plates.guard ? ex_replace_index(t->plates.guard, was, is) : NULL};
    for (int i = 0; i < t->plates.n; i++)
        if (t->plates.index[i] != was) s->plates.index[s->plates.n++] = t->plates.index[i];
    for (int k = 0; k < t->n; k++) s->subscript[k] = ex_replace_index(t->subscript[k], was, is);
    s->value = ex_replace_index(t->value, was, is);
    return s;
}

void put_series(Lower *p, const Series *s)
{
    if (s->sites->ode || s->var[0]->sites->ode) {
        for (const Site *t = s->var[0]->sites; t; t = t->next) put_solutions(p, t->ode, p->open->kind == KERNEL_FUNCTION, s->chains);
        return;
    }
    const bool whole = s->chains && is_chain_of(s->sites, s->along);  // what is along them is one chain after the other
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
        Loops l = t->plates;
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

static Look test_remainder(const Expr *e, void *with)
{
    (void)with;
    return e->kind == EX_CALL && e->fn == FN_MOD ? FOUND : LOOK;
}

// Whether computing it may divide by a number that is 0: its value, where it is kept, and what it runs over.
static bool site_divides(const Site *t)
{
    bool yes = (t->value && ex_find(t->value, test_remainder, NULL)) || (t->plates.guard && ex_find(t->plates.guard, test_remainder, NULL));
    for (int k = 0; k < t->n; k++) yes |= ex_find(t->subscript[k], test_remainder, NULL);
    for (int k = 0; k < t->plates.n; k++)
        yes |= ex_find(t->plates.index[k]->lo, test_remainder, NULL) || ex_find(t->plates.index[k]->hi, test_remainder, NULL);
    return yes;
}

// Functions in which a subscript may be outside its array have the kernel that calls them as an argument.
bool any_wild(const Graph *g)
{
    for (int i = 0; i < g->nvars; i++)  // a differential equation may have no solution
        if (g->vars[i]->kind == VAR_SERIES && g->vars[i]->sites && g->vars[i]->sites->ode) return true;
    for (int i = 0; i < g->nvars; i++)
        if (g->vars[i]->known.wild) return true;
    for (const Series *s = g->series; s; s = s->next)
        for (const Site *t = s->sites; t; t = t->next)
            if (site_divides(t)) return true;
    return false;
}

// HMC updates of what solutions depend on have an array of their derivatives.
static void place_slopes(Lower *p)
{
    Program *out = p->out;
    for (const Series *s = p->g->series; s; s = s->next) {
        const Ode *o = s->var[0]->sites ? s->var[0]->sites->ode : NULL;
        bool moved = false;
        for (const Update *t = p->g->updates; t; t = t->next)
            for (int i = 0; i < t->nblock && t->kind == UPDATE_NUTS; i++) moved |= series_reads(s, t->block[i]);
        if (!o || !o->slopes || !moved) continue;
        place_array(out, o->slopes, ROLE_BLOCK);
        ROOM(p->g->arena, out->work, out->nwork, out->work_size);
        out->work[out->nwork++] = o->slopes;
    }
}

// The function that computes a series, or a chain of it.
static void lower_function(Lower *p, const Series *s)
{
    const char *names = "";
    for (int i = 0; i < s->n; i++) names = words(p, "%s%s%s", names, i ? ", " : "", s->var[i]->name);
    if (s->var[0]->sites->ode) note(p, "%s: the solution of a differential equation", names);
    else note(p, "%s: each element from those before it", names);
    if (s->chains) note(p, "  where the first subscript, counted from 0, is from .. to - 1: no other reads these");
    for (const Site *t = s->sites; t; t = t->next)
        note(p, "  %s %s %s, %s", math(p, ex_ref(t->var, t->n, t->subscript)), t->adds ? "+=" : "=", math(p, t->value),
             line_of(p, t->span));
    Kernel *k = open_kernel(p, KERNEL_FUNCTION, words(p, "compute_%s", s->var[0]->name), "wide");
    k->context = any_wild(p->g);
    k->series = s;
    k->chains = s->chains;
    k->ode = s->var[0]->sites->ode;
    k->of_ode = ODE_SOLUTION;
    put_series(p, s);
    close_kernel(p);
}

// Messages by themselves, for updates that ask for them.
static void lower_messages(Lower *p, const Series *s)
{
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

bool lower_series(Lower *p)
{
    bool any = false;
    place_slopes(p);
    lower_odes(p, false);
    for (const Series *s = p->g->series; s; s = s->next) {
        if (s->var[0]->kind != VAR_SERIES) continue;
        any = true;
        lower_function(p, s);
    }
    if (!any) return false;
    any = false;
    p->messages = NEW_N(p->g->arena, const Kernel *, p->g->nvars + 1);
    for (const Series *s = p->g->series; s; s = s->next) {
        if (s->var[0]->kind != VAR_SERIES) continue;
        any |= !s->var[0]->hidden;
        if (s->var[0]->hidden) lower_messages(p, s);
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

void launch_messages(Lower *p, const Var *m)
{
    Launch *l = launch(p, m->series->chains ? LAUNCH_EACH : LAUNCH_ONCE, p->messages[m->id]);
    if (m->series->chains) with_extent(l, m->dim[0]);
}
