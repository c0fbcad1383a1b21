// log_joint.c -- the log joint density, of the model as written and with what was added to it.
//
// Needs: factors.     Gives: kernels that add them up, for lp__ and for --check; long models in parts.
#include "lower.h"

// One function of a thousand statements takes the C compiler longer than forty of twenty-five.
enum { FACTORS_OF_A_PART = 25, FACTORS_OF_A_KERNEL = 100 };

// A program for modes has the density of the parameters alone: all latents integrated out.
static bool counts(const Graph *g, const Factor *f)
{
    return factor_counts_at(f, g->method == METHOD_EM ? g->nsums : 0, g->method == METHOD_EM) && !ex_is_num(f->log_density, 0);
}

static Look test_shared(const Expr *e, void *with)
{
    (void)with;
    return e->kind == EX_REDUCE || e->kind == EX_ARRAY || e->kind == EX_AT || ex_rank(e) > 0 ? FOUND : LOOK;
}

// Whether nothing in it is done together by the lanes of a team: it may become a function.
static bool for_part(const Graph *g, const Factor *f)
{
    return counts(g, f) && !f->original && f->plates.n == 0 && !f->plates.guard && !ex_find(f->log_density, test_shared, NULL);
}

static void put_factor(Lower *p, const Factor *f, Var *lp)
{
    put(p, NODE_COMMENT)->text.lines = words(p, "%s%s", f->id < 0 && !f->dist ? "the Jacobian of the centred form" : factor_text(p, f),
                                             f->rule ? words(p, ", by %s", f->rule->name) : "");
    const Loops l = f->plates;
    Node *sum = enter_nest(p, NODE_REDUCE, &l, 0, NULL, NULL);
    sum->nest.op = ASSIGN_ADD;
    put_assign(p, ASSIGN_ADD, place_local(lp), f->log_density);
    leave(p, sum);
}

static Var *begin_sum(Lower *p)
{
    Var *lp = local_new(p->g->arena, "lp");
    put_let(p, NULL, lp, ex_num(0), "wide")->let.grows = true;
    return lp;
}

// Where there are very many factors, those that have no loops go to functions. Returns how many functions there are, in `part`.
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
            note(p, "Of the log joint density: factors that have no loops.");
            (*part)[n] = k = open_kernel(p, KERNEL_PART, words(p, "some_factors_%d", n + 1), "wide");
            n++;
            lp = begin_sum(p);
        }
        put_factor(p, f, lp);
        of++;
    }
}

// Where HMC of a selection leaves auxiliaries out, the draws have the log density of the model as written, which is there whichever method
// a chain takes; --check compares updates with the augmented one.
static bool auxiliaries_in_selections(const Graph *g)
{
    for (const Selection *c = g->selections; c; c = c->next)
        if (c->auxiliaries) return true;
    return false;
}

// The factors that only one of the two has.
static bool put_either(Lower *p, Var *lp, bool augmented)
{
    bool any = false;
    for (const Factor *f = p->g->factors; f; f = f->next)
        if (factor_counts_at(f, 0, augmented) == false && factor_counts_at(f, 0, !augmented) && !ex_is_num(f->log_density, 0)) {
            put_factor(p, f, lp);
            any = true;
        }
    return any;
}

// With --check, that of elements that no statement has, which joint normals may have.
static void put_absent_density(Lower *p, Var *lp, Expr *element, const Loops *l, Expr *coefficient)
{
    put(p, NODE_COMMENT)->text.lines = words(p, "elements of %s that no statement has", element->var->name);
    Node *sum = enter_nest(p, NODE_REDUCE, l, 0, NULL, NULL);
    put_assign(p, ASSIGN_ADD, place_local(lp), ex_mul2(coefficient, ex_pow(element, 2)));
    leave(p, sum);
}

static bool put_absent(Lower *p, Var *lp)
{
    bool any = false;
    // written already: several blocks may draw a variable, each with the same density of such elements
    bool *absent = NEW_N(p->g->arena, bool, p->g->nvars + 1);
    for (const Update *s = p->g->updates; s; s = s->next)
        for (const BlockTerm *t = s->kind == UPDATE_GAUSSIAN ? s->gaussian.terms : NULL; t; t = t->next) {
            if (!t->absent || absent[t->ref[0]->var->id]) continue;
            any = absent[t->ref[0]->var->id] = true;
            put_absent_density(p, lp, t->ref[0], &t->loops, t->coefficient);
        }
    for (const Update *s = p->g->updates; s; s = s->next)
        for (int i = 0; s->kind == UPDATE_CATEGORIES && i < s->categories->n; i++) {
            Var *v = s->categories->var[i];
            Loops l = {.n = v->rank};
            Expr *element = var_element(p->g, v, l.index), *exists = v->exists;
            if (!exists) continue;
            for (int d = 0; d < v->rank; d++) exists = ex_replace_index(exists, v->own[d], ex_index(l.index[d]));
            l.guard = ex_call1("!", exists);
            put_absent_density(p, lp, element, &l, ex_num(-0.5));
            any = true;
        }
    return any;
}

// What the density has with --check, which compares updates; and what it has without it: a model that has been centred has the density as
// written.
static void put_by_check(Lower *p, Var *lp, bool either)
{
    Expr *checking = local_ref(local_new(p->g->arena, "CHECKING"));
    Node **const before = p->at;
    Node *test = enter(p, NODE_IF);
    test->test.condition = checking;
    bool with = either && put_either(p, lp, true), without = false;
    with |= put_absent(p, lp);
    p->at = &test->otherwise;
    without = either && put_either(p, lp, false);
    for (const Factor *f = p->g->written; f; f = f->next) {
        put_factor(p, f, lp);
        without = true;
    }
    leave(p, test);
    if (with) return;
    if (without) {
        test->test.condition = ex_call1("!", checking);
        test->body = test->otherwise;
        test->otherwise = NULL;
    } else {
        *before = NULL;
        p->at = before;
    }
}

void lower_log_joint(Lower *p)
{
    bool whole = false;
    const bool either = auxiliaries_in_selections(p->g);
    for (const Factor *f = p->g->factors; f; f = f->next) {
        const Loops l = f->plates;
        whole |= (counts(p->g, f) || (either && factor_counts_at(f, 0, true))) && needs_own_array(f->log_density, &l);
    }
    p->out->joint_as_written = true;
    for (const Factor *f = p->g->factors; f && !either; f = f->next)
        if (factor_counts_at(f, 0, true) != factor_counts_at(f, 0, false)) p->out->joint_as_written = false;
    const Kernel **part;
    const int parts = lower_parts(p, &part);
    note(p, p->g->method == METHOD_EM ? "The log density of data and parameters, latents integrated out."
            : either                  ? "The log joint density of data and variables; with --check that of auxiliaries, too."
                                      : "The log joint density of data, variables and auxiliaries.");
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
    put_by_check(p, lp, either);
    put(p, NODE_RESULT)->result.value = local_ref(lp);
    close_kernel(p);
    p->launches = &p->out->joint;
    for (int i = 0; i < p->g->nvars && p->g->method == METHOD_EM && p->messages; i++) {
        const Var *m = p->g->vars[i];
        bool reads = false;
        for (const Factor *f = p->g->factors; f && m->hidden; f = f->next) reads |= counts(p->g, f) && ex_reads(f->log_density, m);
        if (m->kind == VAR_SERIES && reads) launch_messages(p, m);
    }
    launch_kernel(p, &p->out->joint, k);
}
