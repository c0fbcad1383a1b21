// placement.c -- where each array lives, of which type its elements are, and whether one route of a joint draw alone needs it.
//
//   before   kernels, launches, and work arrays with what they are for
//   after    precision_beta   work    solve   [1, p, p]   if rows of beta are many
//            y                response real   [N]
//            sum_y_by_g       responses wide  [J]
//
// Home.   Data are where they are read; a response is the data, or a copy for each chain if values are missing. Definitions, and sums that
// read no response,
//         are one for all chains; sums that read one are, too, as long as no value is missing. All else is one for each chain.
// Type.   Data, definitions with an element for each entry of a matrix, and latents with an element for each response are real: they are
// long, read in
//         single precision on a GPU, and errors in them are noise of the data. But what the entries of a matrix are made of that is
//         inverted or factored is wide: a covariance that is nearly singular would have no factor any more. What is drawn jointly, and what
//         is constrained, is wide; so are parameters, sums and work arrays, but for those whose role has another type (placement.def).
// Route.  An array that is read or written under one condition alone, fewer rows than coefficients or not, has elements then only.
//
// Needs: the schedule for variables; for routes, the kernels as all other passes leave them.     Keeps: kernels and graph, untouched.
#include "kernel.h"

static const char *const home_name[] = {
#define HOME(id, name, shared, help) [HOME_##id] = name,
#include "placement.def"
};

static const char *const type_name[] = {
#define ELEMENT_TYPE(id, c, help) [TYPE_##id] = c,
#include "placement.def"
};

static Placement *place(Program *p, const Var *v, ArrayHome home, ElementType type)
{
    Placements *t = &p->placements;
    while (t->n <= v->id) {
        ROOM(p->g->arena, t->at, t->n, t->size);
        t->at[t->n++] = (Placement){0};
    }
    t->at[v->id] = (Placement){.var = v, .home = home, .type = v->base == BASE_INT ? TYPE_INT : type};
    return &t->at[v->id];
}

const Placement *placement_of(const Program *p, const Var *v)
{
    static const Placement local = {.home = HOME_WORK, .type = TYPE_WIDE};
    const Placements *t = &p->placements;
    return v->id < t->n && t->at[v->id].var == v ? &t->at[v->id] : &local;
}

bool is_real(const Program *p, const Var *v) { return !p->g->lesson && placement_of(p, v)->type == TYPE_REAL; }

// ---- variables of the graph ----

// Latents and auxiliaries with an element for each response, by their first dimension.
static bool follows_response(const Graph *g, const Var *v)
{
    if (v->kind != VAR_LATENT && v->kind != VAR_AUXILIARY) return false;
    for (int i = 0; i < g->nvars; i++)
        if (g->vars[i]->kind == VAR_DATA && g->vars[i]->response && g->vars[i]->rank && g->vars[i]->dim[0] == v->dim[0]) return true;
    return false;
}

static bool drawn_whole(const Graph *g, const Var *v)
{
    for (const Update *s = g->updates; s; s = s->next)
        for (int i = 0; i < s->nblock; i++)
            if (s->kind == UPDATE_CATEGORIES &&
                (s->block[i] == v || s->categories->column[i] == v || (s->categories->shift && s->categories->by[i] == v)))
                return true;
            else if (s->block[i] == v && (s->kind == UPDATE_GAUSSIAN || (s->conditional && s->conditional->array))) return true;
    return false;
}

// The log of the sum of weights of each element, for modes: what is added up to the log density.
static bool is_evidence(const Graph *g, const Var *v)
{
    for (const Update *s = g->updates; s; s = s->next)
        if (s->expected && s->expected->evidence == v) return true;
    return false;
}

// The log densities of the values of a window.
static bool are_weights(const Graph *g, const Var *v)
{
    for (const Update *s = g->updates; s; s = s->next)
        for (int i = 0; s->group_move && i < s->group_move->nwindows; i++)
            if (s->group_move->window[i].weights == v) return true;
    return false;
}

// ---- what matrices are made of ----

// Of each variable of the graph, by its id: whether an entry of a matrix reads it that is inverted or factored.
// Responses are only if they are the matrix: in sums of squares of many rows their rounding is noise.
typedef struct Entries {
    int n;
    bool *read, whole;
} Entries;

static Look mark(const Expr *e, void *entries);

static void mark_all(const Expr *e, Entries *entries)
{
    if (e) ex_find(e, mark, entries);
}

static Look mark(const Expr *e, void *with)
{
    Entries *entries = with;
    if (e->kind != EX_REF || e->var->kind == VAR_ELEMENT || (e->var->response && !entries->whole) || e->var->id >= entries->n ||
        entries->read[e->var->id])
        return LOOK;
    entries->read[e->var->id] = true;
    entries->whole = false;  // in what defines it, responses are added up
    for (const Site *t = e->var->kind == VAR_DATA ? NULL : e->var->sites; t; t = t->next) {
        mark_all(t->value, entries);
        for (int i = 0; i < t->nargs; i++) mark_all(t->args[i], entries);
    }
    return LOOK;
}

static Look find_matrix(const Expr *e, void *entries)
{
    for (int i = 0; i < e->nargs && e->kind == EX_CALL; i++) {
        if (ex_rank(e->args[i]) != 2) continue;
        ((Entries *)entries)->whole = e->args[i]->kind == EX_REF;
        mark_all(e->args[i], entries);
    }
    return LOOK;
}

static Entries entries_of_matrices(const Graph *g)
{
    Entries entries = {g->nvars, NEW_N(g->arena, bool, g->nvars + 1), false};
    for (const Factor *f = g->factors; f; f = f->next) {
        if (f->log_density) ex_find(f->log_density, find_matrix, &entries);
        for (int i = 0; i < f->nargs; i++) ex_find(f->args[i], find_matrix, &entries);
    }
    for (int i = 0; i < g->nvars; i++)
        for (const Site *t = g->vars[i]->kind == VAR_DATA ? NULL : g->vars[i]->sites; t; t = t->next) {
            if (t->value) ex_find(t->value, find_matrix, &entries);
            for (int k = 0; k < t->nargs; k++) ex_find(t->args[k], find_matrix, &entries);
        }
    return entries;
}

static ElementType type_of_variable(const Graph *g, const Var *v, const Entries *entries)
{
    if (v->rank == 0 || (v->id < entries->n && entries->read[v->id]) || is_evidence(g, v) || are_weights(g, v)) return TYPE_WIDE;
    if (v->kind == VAR_DATA) return drawn_whole(g, v) ? TYPE_WIDE : TYPE_REAL;
    if (v->constraint != CONSTRAINT_NONE) return TYPE_WIDE;
    return (v->kind == VAR_LET && v->rank >= 2) || (follows_response(g, v) && !drawn_whole(g, v)) ? TYPE_REAL : TYPE_WIDE;
}

static ArrayHome home_of(const Var *v)
{
    switch (v->kind) {
    case VAR_DATA: return v->response ? HOME_RESPONSE : HOME_DATA;
    case VAR_LET: return HOME_SETUP;
    case VAR_PARAMETER:
    case VAR_LATENT:
    case VAR_PART:
    case VAR_AUXILIARY:
    case VAR_DERIVED:
    case VAR_SERIES:
    case VAR_PREDICTED: return HOME_STATE;
    case VAR_SUM:
    case VAR_PATTERN:
    case VAR_ELEMENT: break;
    }
    return HOME_WORK;
}

void place_variables(Program *p)
{
    const Entries entries = entries_of_matrices(p->g);
    for (int i = 0; i < p->g->nvars; i++) {
        const Var *v = p->g->vars[i];
        if (v->kind != VAR_PATTERN && v->kind != VAR_ELEMENT && v->kind != VAR_SUM)
            place(p, v, home_of(v), type_of_variable(p->g, v, &entries));
    }
}

// ---- sums and work arrays ----

void place_sums(Program *p, const Sum *sums)
{
    for (const Sum *s = sums; s; s = s->next) {
        Placement *at = place(p, s->var, !s->data_only ? HOME_WORK : reads_response(s) ? HOME_RESPONSES : HOME_SETUP, TYPE_WIDE);
        at->rows = s->route;
        at->when = s->route ? IF_MANY : ALWAYS;
    }
}

Var *place_array(Program *p, Var *v, ArrayRole role)
{
    static const Placement of[] = {
#define ROLE(id, home_, type_, help) [ROLE_##id] = {.home = HOME_##home_, .type = TYPE_##type_},
#include "placement.def"
    };
    if (of[role].type == TYPE_INT) v->base = BASE_INT;
    place(p, v, of[role].home, of[role].type)->diagnostics = role == ROLE_DIAGNOSTICS;
    return v;
}

Var *place_copy(Program *p, Var *v, const Var *of)
{
    const Placement *from = placement_of(p, of);
    const ElementType type = from->type;
    v->base = of->base;
    place(p, v, from->home == HOME_RESPONSE ? HOME_RESPONSES : HOME_SETUP, type);
    return v;
}

// ---- routes ----

const char *when_text(When when)
{
    return (const char *[]){[ALWAYS] = "any",       [IF_FEW] = "few",
                            [IF_MANY] = "many",     [IF_SYSTEM] = "few and a matrix",
                            [IF_LISTED] = "listed", [UNLESS_LISTED] = "not listed"}[when];
}

// always: whether rows are listed or not, by more than what made it; by_hmc: by HMC of a selection
typedef struct Use {
    When when;
    const Rows *rows;
    bool used, both;
    int stands_in;
    bool always, by_hmc;
} Use;

// of work arrays and statistics, by their number
typedef struct Uses {
    const Program *p;
    Use *of;
    When when;
    const Rows *rows;
    int stands_in;
    bool makes, by_hmc, scales;
} Uses;

static bool used(const Var *v, void *with)
{
    Uses *u = with;
    if ((placement_of(u->p, v)->home != HOME_WORK && v->kind != VAR_SUM) || v->id >= u->p->placements.n ||
        u->p->placements.at[v->id].var != v)
        return false;
    Use *of = &u->of[v->id];
    of->both |= u->when == ALWAYS || (of->used && (of->when != u->when || of->rows != u->rows));
    const bool needed = u->when == ALWAYS && !u->makes && !u->scales;
    *of = (Use){u->when,
                u->rows,
                true,
                of->both,
                !of->used || of->stands_in == u->stands_in ? u->stands_in : 0,
                of->always || (needed && !u->by_hmc),
                of->by_hmc || (needed && u->by_hmc)};
    return false;
}

static void used_in(Expr *e, void *with) { ex_any_var(e, used, with); }

static void use_list(Uses *u, const Node *list)
{
    for (const Node *n = list; n; n = n->next) {
        each_expr(n, used_in, u);
        each_array(n, used, u);
        const Uses outer = *u;
        if (n->kind == NODE_IF && n->test.few && u->when == ALWAYS) {
            u->rows = n->test.few;
            u->when = n->test.negated ? IF_MANY : IF_FEW;
            use_list(u, n->body);
            u->when = n->test.negated ? IF_FEW : IF_MANY;
            use_list(u, n->otherwise);
            *u = outer;
            continue;
        }
        use_list(u, n->body);
        if (n->kind == NODE_CALL) use_list(u, n->call.part->body);
        use_list(u, n->otherwise);
    }
}

static void used_product(Uses *u, const Product *r)
{
    const Var *const part[] = {r->matrix, r->coefficients, r->eta, r->weight, r->out, r->sums};
    for (size_t k = 0; k < sizeof part / sizeof *part; k++)
        if (part[k]) used(part[k], u);
}

static void use_launches(Uses *u, const Update *update, const Launches *list)
{
    for (const Launch *l = list->first; l; l = l->next) {
        u->when = l->when;
        u->rows = l->rows;
        u->makes = l->kind == LAUNCH_GRAM;
        u->stands_in = l->stands_in ? l->stands_in : update && update->joint < 0 ? -update->joint : 0;
        for (int i = 0; i < l->nargs; i++)
            if (l->arg[i].kind == ARG_PLACE || l->arg[i].kind == ARG_NAME) used(l->arg[i].var, u);
            else if (l->arg[i].kind == ARG_PRODUCT) used_product(u, l->arg[i].product);
        if (l->kernel) use_list(u, l->kernel->body);
    }
}

// Arrays of the routes that are not taken where rows are listed: these take memory when they are written.
static int in_place_of_listed(const Placement *at)
{
    return at->rows && (at->when == IF_MANY || at->when == IF_SYSTEM || at->when == UNLESS_LISTED) ? at->rows->listed : 0;
}

// The rows of a matrix that may be listed.
static const Rows *listed_of(const Program *p, const Var *X)
{
    for (int i = 0; i < p->nupdates; i++) {
        const Update *s = p->updates[i].update;
        const Rows *r = s->kind == UPDATE_GAUSSIAN ? s->gaussian.rows : NULL;
        for (const BlockTerm *t = r && r->listed ? r->phi : NULL; t; t = t->next)
            if (matrix_of_entries(t) == X) return r;
    }
    return NULL;
}

// X'X is left out where rows of X are listed, unless more than scales and HMC of a selection reads it: these then wait.
static void leave_out_grams(Program *p, const Uses *u)
{
    for (Launch *l = p->prepare.first; l; l = l->next) {
        if (l->kind != LAUNCH_GRAM || l->when != ALWAYS) continue;
        const Var *X = NULL, *out = NULL;
        for (int i = 0; i < l->nargs; i++)
            if (l->arg[i].kind == ARG_PLACE) X = l->arg[i].var;
            else if (l->arg[i].kind == ARG_NAME) out = l->arg[i].var;
        const Rows *r = listed_of(p, X);
        if (!r || u->of[out->id].always) continue;
        l->when = UNLESS_LISTED;
        l->rows = r;
        Placement *at = &p->placements.at[out->id];
        at->when = UNLESS_LISTED;
        at->rows = r;
        for (int i = 0; i < p->nupdates && u->of[out->id].by_hmc; i++)
            if (p->updates[i].update->kind == UPDATE_NUTS && p->updates[i].update->selection) p->updates[i].waits_for = r;
    }
}

void place_routes(Program *p)
{
    Uses u = {.p = p, .of = NEW_N(p->g->arena, Use, p->placements.n + 1)};
    const Launches *const lists[] = {&p->prepare, &p->refresh,    &p->again,  &p->finish,  &p->before, &p->log_prior,
                                     &p->log_lik, &p->replicates, &p->derive, &p->restore, &p->joint,  &p->forward};
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) use_launches(&u, NULL, lists[i]);
    for (int i = 0; i < p->nupdates; i++) {
        const Update *s = p->updates[i].update;
        u.by_hmc = s->kind == UPDATE_NUTS && s->selection;
        u.scales = s->kind == UPDATE_GAUSSIAN && s->gaussian.rows && s->gaussian.rows->listed;
        use_launches(&u, NULL, &p->updates[i].density);
        use_launches(&u, NULL, &p->updates[i].jacobian);
        u.by_hmc = u.scales = false;
        use_launches(&u, NULL, &p->updates[i].made);
        use_launches(&u, p->updates[i].update, &p->updates[i].launches);
    }
    for (int i = 0; i < p->nwork; i++) {
        const Use *of = &u.of[p->work[i]->id];
        Placement *at = &p->placements.at[p->work[i]->id];
        at->when = of->used && !of->both ? of->when : ALWAYS;
        at->rows = at->when == ALWAYS ? NULL : of->rows;
        at->stands_in = of->used ? of->stands_in : 0;
    }
    leave_out_grams(p, &u);
    for (int i = 0; i < p->nwork; i++) {
        Placement *at = &p->placements.at[p->work[i]->id];
        if (in_place_of_listed(at)) at->stands_in = in_place_of_listed(at);
    }
    for (const Sum *s = p->sums; s; s = s->next) {
        if (s->var->id >= p->placements.n || p->placements.at[s->var->id].var != s->var || !u.of[s->var->id].used) continue;
        Placement *at = &p->placements.at[s->var->id];
        at->stands_in = in_place_of_listed(at) ? in_place_of_listed(at) : u.of[s->var->id].stands_in;
    }
}

// ---- printing, checking ----

void placements_print(FILE *out, const Program *p)
{
    for (int i = 0; i < p->placements.n; i++) {
        const Placement *at = &p->placements.at[i];
        if (!at->var) continue;
        fprintf(out, "%s: %s, %s", at->var->name, home_name[at->home], type_name[at->type]);
        for (int k = 0; k < at->var->rank; k++) {
            fputs(k ? ", " : " [", out);
            ex_print(out, at->var->dim[k]);
        }
        if (at->var->rank) fputc(']', out);
        if (at->when != ALWAYS) fprintf(out, ", if rows of %s are %s", at->rows->name, when_text(at->when));
        if (at->stands_in) fprintf(out, ", in place of joint normal %d", at->stands_in);
        fputc('\n', out);
    }
}

static const char *check_size(const Program *p, const Var *v)
{
    for (int k = 0; k < v->rank; k++)
        if (!is_size(v->dim[k]))
            return arena_printf(p->g->arena, "the size %s of %s is not known when memory is taken", ex_text(p->g->arena, v->dim[k]),
                                v->name);
    return NULL;
}

const char *placements_check(const Program *p)
{
    const char *wrong;
    for (int i = 0; i < p->nwork; i++) {
        const Placement *at = placement_of(p, p->work[i]);
        if (at->var != p->work[i]) return arena_printf(p->g->arena, "the work array %s has no place", p->work[i]->name);
        if (at->when != ALWAYS && !at->rows) return arena_printf(p->g->arena, "the route that needs %s has no rows", p->work[i]->name);
        if ((wrong = check_size(p, p->work[i]))) return wrong;
    }
    for (const Sum *s = p->sums; s; s = s->next) {
        if (placement_of(p, s->var)->var != s->var) return arena_printf(p->g->arena, "the sum %s has no place", s->var->name);
        if ((wrong = check_size(p, s->var))) return wrong;
    }
    return NULL;
}
