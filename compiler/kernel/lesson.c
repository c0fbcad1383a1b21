// lesson.c -- what a lesson shows: one chain of Gibbs updates as plain C (--lesson).
//
//   updates     those of a sweep in which all data are there and joint normals that a library would factor are drawn one after the other
//   kernels     that these launch, and those before the first sweep and for the draws
//   fields      that a kernel reads or writes
//
// Needs: kernels in which one lane does everything (Graph.lesson).     Gives: what is shown of fields, launches and updates.     Keeps: all
// else.
#include "lower.h"

static bool is_shown(const UpdateCode *code) { return !code->update->imputes && code->update->joint <= 0 && code->update->when != ON_GPU; }

// Whether launches follow those under this condition, without which a function returns.
static bool launches_follow(const Launch *where)
{
    int depth = 0;
    for (const Launch *l = where; l; l = l->next) {
        depth += l->kind == LAUNCH_WHERE || l->kind == LAUNCH_CHECKED || l->kind == LAUNCH_ADAPTS || l->kind == LAUNCH_CATEGORIES;
        depth -= l->kind == LAUNCH_END;
        if (depth == 0) return l->next != NULL;
    }
    return false;
}

// What the host does besides launching kernels; NULL: a lesson does it, or needs it not.
static const char *refused(const Launch *l)
{
    switch (l->kind) {
    case LAUNCH_SCALES:
        return proposal_of(l->code->update) ? "is a proposal that warm-up adapts" : NULL;  // else scales have updates of their own
    case LAUNCH_WHERE: return launches_follow(l) ? "has launches after those under a condition" : NULL;
    case LAUNCH_STOP:
    case LAUNCH_CHECKED:
    case LAUNCH_END:
    case LAUNCH_EACH:
    case LAUNCH_TEAM:
    case LAUNCH_ONCE:
    case LAUNCH_SHARED:
    case LAUNCH_SHARED_UNLESS_MISSING:
    case LAUNCH_NORMAL_DENSE:
    case LAUNCH_NORMAL_ARROW: return l->kernel && l->kernel->kind == KERNEL_ROW ? "needs passes over the rows of a matrix" : NULL;
    case LAUNCH_CATEGORIES: return "is drawn category by category";
    case LAUNCH_COLOURS:
    case LAUNCH_COLOURS_TEAM: return NULL;
    case LAUNCH_COLOUR_ELEMENTS: return "is drawn colour by colour";
    case LAUNCH_PROPOSE:
    case LAUNCH_ADAPTS:
    case LAUNCH_DECIDE: return "is a proposal that warm-up adapts";
    case LAUNCH_NUTS: return "is drawn by Hamiltonian Monte Carlo";
    case LAUNCH_PATTERN:
    case LAUNCH_LIST_ROWS:
    case LAUNCH_NORMAL_SPARSE:
    case LAUNCH_NORMAL_SPARSE_SCALED: return "is a joint normal whose precision a library factors";
    case LAUNCH_NORMAL_DENSE_SCALED:
    case LAUNCH_NORMAL_ARROW_SCALED: return NULL;
    case LAUNCH_NORMAL_ROWS_SCALED: return "is a joint normal with a scale of its own";
    case LAUNCH_MISSING: return "is drawn where data are missing";
    case LAUNCH_ROWS:
    case LAUNCH_ROWS_AND:
    case LAUNCH_ROWS_ONLY:
    case LAUNCH_ROW_SUMS:
    case LAUNCH_PRODUCT:
    case LAUNCH_ROW_PRODUCTS:
    case LAUNCH_GRAM:
    case LAUNCH_WEIGHTED_GRAM:
    case LAUNCH_ORDER_ROWS:
    case LAUNCH_NORMAL_ROWS: return "needs products of matrices";
    }
    return NULL;
}

// The function that computes a series; NULL: definitions do.
static Kernel *function_of(const Program *p, const Series *s)
{
    Kernel *const lists[] = {p->setup.first, p->sweep.first};
    for (int i = 0; i < 2; i++)
        for (Kernel *k = lists[i]; k; k = k->next)
            if (k->kind == KERNEL_FUNCTION && k->series == s) return k;
    return NULL;
}

static const char *refused_nodes(const Program *p, const Node *list)
{
    static const char *const kinds[NODE_RESULT + 1] = {
#define REFUSED(id, why) [NODE_##id] = why,
#include "kernel.def"
    };
    for (const Node *n = list; n; n = n->next) {
        const bool colours = n->kind == NODE_LOOP && (n->loop.how == SHARE_COLOUR || n->loop.how == SHARE_COLOUR_CREW);
        if ((colours && n->loop.n > 1) || (n->kind == NODE_LOOP && n->loop.how == SHARE_CLASSES)) return "is drawn colour by colour";
        const char *why = kinds[n->kind] ? kinds[n->kind] : refused_nodes(p, n->body);
        if (!why) why = refused_nodes(p, n->otherwise);
        const Kernel *function = n->kind == NODE_COMPUTE ? function_of(p, n->compute.series) : NULL;
        if (!why && n->kind == NODE_COMPUTE) why = function ? refused_nodes(p, function->body) : "needs what a recursion computes";
        if (why) return why;
    }
    return NULL;
}

static bool is_data(const Var *v, void *with)
{
    (void)with;
    return v->kind == VAR_DATA;
}

// What hides responses that have no distribution from the draws is left out: a lesson does not show responses.
static bool in_lesson(const Launch *l)
{
    if (l->kernel && writes(l->kernel->body, is_data, NULL)) return false;
    return l->kind != LAUNCH_SCALES && l->kind != LAUNCH_PATTERN && l->kind != LAUNCH_LIST_ROWS &&
           (l->when == ALWAYS || l->when == IF_MANY || l->when == UNLESS_LISTED);
}

static const char *refused_launches(const Program *p, const Launches *list)
{
    for (const Launch *l = list->first; l; l = l->next) {
        const char *why = in_lesson(l) || l->kind == LAUNCH_SCALES ? refused(l) : NULL;
        if (!why && l->kernel) why = refused_nodes(p, l->kernel->body);
        if (why) return why;
    }
    return NULL;
}

const char *lesson_refused(const Program *p)
{
    Arena *a = p->g->arena;
    for (int i = 0; i < p->nupdates; i++) {
        const UpdateCode *code = &p->updates[i];
        const char *why = is_shown(code) ? refused_launches(p, &code->launches) : NULL;
        if (!why && is_shown(code) && code->made.first) why = "needs statistics of its own";
        if (why) return arena_printf(a, "%s %s", code->name, why);
    }
    const char *series = refused_launches(p, &p->before);
    if (series) return arena_printf(a, "a definition %s", series);
    if (p->ntotals) return "sizes are sums of data";
    if (refused_launches(p, &p->prepare) || refused_launches(p, &p->finish)) return "data are prepared by routines of the runtime";
    return NULL;
}

// ---- fields ----

static bool note_use(const Var *v, void *with)
{
    const Program *p = with;
    const int data = field_of(p->data, p->ndata, v), state = field_of(p->state, p->nstate, v);
    if (data >= 0) p->data[data].shown = true;
    else if (state >= 0) p->state[state].shown = true;
    Var *const logs[] = {v->lowered.kept_log, v->lowered.kept_log1m};  // that a draw of v writes
    for (int i = 0; i < 2; i++)
        if (logs[i]) note_use(logs[i], with);
    return false;
}

static void note_uses(Expr *e, void *with) { ex_any_var(e, note_use, with); }

static void use_nodes(Program *p, const Node *list)
{
    for (const Node *n = list; n; n = n->next) {
        each_expr(n, note_uses, p);
        each_array(n, note_use, p);
        Kernel *function = n->kind == NODE_COMPUTE ? function_of(p, n->compute.series) : NULL;
        if (function && !function->shown) {
            function->shown = true;
            use_nodes(p, function->body);
        }
        use_nodes(p, n->body);
        use_nodes(p, n->otherwise);
    }
    writes(list, note_use, p);
}

static void use_launches(Program *p, const Launches *list)
{
    for (Launch *l = list->first; l; l = l->next) {
        if (!in_lesson(l)) continue;
        l->shown = true;
        for (int i = 0; i < l->nargs; i++)
            if (l->arg[i].var && (l->arg[i].kind == ARG_PLACE || l->arg[i].kind == ARG_NAME)) note_use(l->arg[i].var, p);
        if (l->kernel) use_nodes(p, l->kernel->body);
    }
}

void find_lesson(Lower *lower)
{
    Program *p = lower->out;
    use_launches(p, &p->prepare);
    use_launches(p, &p->finish);
    use_launches(p, &p->before);
    use_launches(p, &p->derive);
    use_launches(p, &p->restore);
    for (int i = 0; i < p->nupdates; i++)
        if (is_shown(&p->updates[i])) {
            p->updates[i].shown = true;
            use_launches(p, &p->updates[i].launches);
        }
    for (int i = 0; i < p->ndata; i++) {
        Field *f = &p->data[i];
        f->shown |= f->var->base == BASE_INT && f->var->rank == 0;  // a size
    }
}
