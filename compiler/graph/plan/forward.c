// forward.c -- draws of unknowns from their own statements, and of responses after them: the prior, the prior predictive distribution, data
// from given values (fit prior, fit simulate, fit calibrate).
//
//   before   normal(y[i] | mu, s) over i in 1:N, normal(mu | 0, tau), gamma(tau | 2, 1)
//   after    tau ~ gamma(2, 1);    mu ~ normal(0, tau);    y_rep[i] ~ normal(mu, s) over i in 1:N
//
// Draws one after the other are a draw from the joint density of the model as written if three things hold. The density is a product of
// laws, each of another variable. Each law has the integral 1 whatever its arguments are; truncated laws are divided by what is left of
// them, so they have it, too. The statements can be ordered such that each comes after what its arguments read.
//
// All else has a reason here why it is refused: a density without a law (target +=, bounds of definitions), a law of a function of
// unknowns, two that need each other in turn, arguments that may leave their domains. A law that reads a response reads what was drawn of
// it, y_rep, not the data.
//
// Needs: factors, and the replicates of observed.c.     Gives: g->forward, in order.     Keeps: all else.
#include <string.h>
#include "forward.h"
#include "observed.h"
#include "../model/coverage.h"
#include "../model/domains.h"
#include "../model/predict.h"
#include "../model/requirements.h"
#include "../terms/factor.h"
#include "../terms/print.h"
#include "../terms/supports.h"
#include "../terms/var.h"

typedef struct Search {
    Graph *g;
    Forward *first, **last;
    Var **drawn;     // by the number of a response: its replicate, or NULL
    const Var *now;  // the variable at work
    const Forward *waiting;
    const Forward **undrawn;  // by the number of a variable: what will draw it
    unsigned *seen[2], walks;  // by the number of a definition: the last walk that has been there; of walks, and of those within one
} Search;

static Forward *add(Search *s, const Var *of, Var *into, Span at)
{
    Forward *f = NEW(s->g->arena, Forward);
    *f = (Forward){.of = of, .into = into, .span = at};
    *s->last = f;
    s->last = &f->next;
    return f;
}

static const char *line_of(const Search *s, Span at) { return requirements_line(s->g, at); }

static const char *because(Search *s, Span at, const char *why, const char *name)
{
    return arena_printf(s->g->arena, why, name, line_of(s, at));
}

// ---- what laws read of responses ----

static Expr *as_drawn(Expr *e, void *with)
{
    const Search *s = with;
    Expr *at[MAX_RANK];
    if (e->kind != EX_REF || e->var->kind != VAR_DATA || !s->drawn[e->var->id]) return NULL;
    for (int k = 0; k < e->nargs; k++) at[k] = ex_map(e->args[k], as_drawn, with);  // subscripts may read responses, too
    return ex_ref(s->drawn[e->var->id], e->nargs, at);
}

static void read_draws(Search *s, Expr **e)
{
    if (*e) *e = ex_map(*e, as_drawn, s);
}

static bool test_drawn_response(const Var *v, void *with) { return v->kind == VAR_DATA && v->response && ((Search *)with)->drawn[v->id]; }
static bool test_response(const Var *v, void *with)
{
    (void)with;
    return v->kind == VAR_DATA && v->response;
}

// What a definition is made of, to any depth, passes the test.
typedef struct Making {
    Search *s;
    bool (*test)(const Var *, void *);
    int within;
    unsigned walk;
    void *with;  // of the test
} Making;

static bool made_of(const Making *m, const Var *v);

static bool test_making(const Var *v, void *with)
{
    const Making *m = with;
    if (m->test(v, m->with)) return true;
    return (v->kind == VAR_LET || v->kind == VAR_SERIES) && made_of(m, v);
}

static bool loops_any(const Loops *l, bool (*test)(const Var *, void *), void *with)
{
    bool yes = l->guard && ex_any_var(l->guard, test, with);
    for (int i = 0; i < l->n; i++) yes = yes || ex_any_var(l->index[i]->lo, test, with) || ex_any_var(l->index[i]->hi, test, with);
    return yes;
}

static bool site_any(const Site *t, bool (*test)(const Var *, void *), void *with)
{
    bool yes = (t->value && ex_any_var(t->value, test, with)) || (t->when && ex_any_var(t->when, test, with)) ||
               loops_any(&t->plates, test, with);
    for (int k = 0; k < t->nargs; k++) yes = yes || ex_any_var(t->args[k], test, with);
    for (int k = 0; k < t->n; k++) yes = yes || ex_any_var(t->subscript[k], test, with);
    return yes;
}

static bool made_of(const Making *m, const Var *v)
{
    unsigned *const seen = &m->s->seen[m->within][v->id];
    if (*seen == m->walk) return false;
    *seen = m->walk;
    bool yes = false;
    for (int i = 0; i < (v->series ? v->series->n : 1); i++)
        for (const Site *t = (v->series ? v->series->var[i] : v)->sites; t && !yes; t = t->next) yes = site_any(t, test_making, (void *)m);
    return yes;
}

// A site of the law, or what it reads, passes the test.
static bool law_any(Search *s, const Site *t, bool (*test)(const Var *, void *), void *with)
{
    Making m = {s, test, 0, ++s->walks, with};
    return site_any(t, test_making, &m);
}

// A definition that the law reads and that is made of a response: it does not change with what is drawn.
static bool test_fixed_by_response(const Var *v, void *with)
{
    Search *s = with;
    const Making m = {s, test_response, 1, ++s->walks, s};
    return (v->kind == VAR_LET || v->kind == VAR_SERIES) && made_of(&m, v);
}

// ---- elements of one variable that follow from each other ----

static bool test_now(const Var *v, void *with) { return v == ((Search *)with)->now; }

typedef struct Behind {
    const Site *site;
    bool all;
} Behind;

// Whether the element that is read has been drawn before, since the loops go up: x[t - 1] before x[t].
static void look_behind(Expr *e, void *with)
{
    Behind *b = with;
    const Site *t = b->site;
    bool before = false;
    for (int i = 0; i < t->plates.n && !before && b->all; i++) {
        int k = 0;
        while (k < t->n && t->subscript[k] != ex_index(t->plates.index[i])) k++;
        if (k == t->n || k >= e->nargs) break;  // the plate is no subscript
        Expr *behind = ex_sub(t->subscript[k], e->args[k]);
        if (behind->kind != EX_NUM || behind->number < 0) break;
        before = behind->number > 0;
    }
    b->all &= before;
}

static bool reads_itself(Search *s, const Site *t) { return site_any(t, test_now, s); }

static bool reads_behind_alone(const Site *t, const Var *v)
{
    Behind b = {t, true};
    for (int k = 0; k < t->nargs; k++) ex_references(t->args[k], v, look_behind, &b);
    if (t->when) ex_references(t->when, v, look_behind, &b);
    return b.all;
}

static const char *not_clear(Search *s, const Forward *f)
{
    return because(s, f->span, "it is not clear in which order the elements of %s follow from each other (%s)", f->into->name);
}

// Statements that read no other element of the variable come first.
static void order_elements_of(Search *s, Forward *f, bool mixture)
{
    Site *alone = NULL, **last_alone = &alone, *follow = NULL, **last_follow = &follow;
    int n = 0;
    bool behind = true;
    for (Site *t = f->sites; t; t = t->next)
        if (reads_itself(s, t)) {
            n++;
            behind = behind && reads_behind_alone(t, f->into);
        }
    if (n == 0) return;
    if (mixture)
        f->refused = because(s, f->span, "elements of %s are mixtures whose components read others of its elements (%s)", f->into->name);
    else if (f->into->base == BASE_INT && (n > 1 || !behind))
        f->refused = not_clear(s, f);
    else if (n > 1 || !behind) {  // then those read too early show
        if (f->into->known.holes || f->into->partial || f->of->kind == VAR_DATA)
            f->refused = not_clear(s, f);
        f->begins_with_nan = true;
    }
    for (Site *t = f->sites; t;) {
        Site *next = t->next, ***to = reads_itself(s, t) ? &last_follow : &last_alone;
        **to = t;
        *to = &t->next;
        t->next = NULL;
        t = next;
    }
    *last_alone = follow;
    f->sites = alone;
}

// ---- statements ----

static bool counts(const Factor *f) { return !f->original && !f->sums_out && f->made == 0; }

static const char *law_name(const Factor *f) { return f->ncomponents ? "mixture" : f->dist->name; }

// Arguments of the laws may lie outside of their domains, where the density of the model is 0.
static bool may_be_out(Search *s, const Factor *f)
{
    bool out = false;
    for (int i = 0; i < (f->ncomponents ? f->ncomponents : 1); i++) {
        Expr *in = f->ncomponents ? inside_domains(s->g, f->component[i].dist, f->component[i].nargs, f->component[i].args, f->value)
                                  : inside_domains(s->g, f->dist, f->nargs, f->args, f->value);
        out = out || (in && (ex_unknown(in) || ex_any_var(in, test_drawn_response, s)));
    }
    return out;
}

static const char *out_of_domain(Search *s, const Factor *f)
{
    return because(s, f->span, "an argument of %s may lie outside of its domain, where the density of the model is 0 (%s)", law_name(f));
}

static bool is_ordered(const Var *v) { return v->constraint == CONSTRAINT_ORDERED || v->constraint == CONSTRAINT_POSITIVE_ORDERED; }

// Whether all elements of a vector have the same law, given other unknowns, by one statement: then they are sorted draws from it.
static bool is_of_one_law(const Factor *f, const Var *v)
{
    const int k = v->rank - 1;
    if (f->value->nargs != v->rank || f->value->args[k]->kind != EX_INDEX || f->dist->discrete || f->plates.guard) return false;
    const Index *last = f->value->args[k]->index;
    if (!ex_is_num(last->lo, 1) || last->hi != v->dim[k]) return false;
    for (int i = 0; i < k; i++)
        if (ex_mentions_index(f->value->args[i], last)) return false;
    for (int i = 0; i < f->nargs; i++)
        if (ex_mentions_index(f->args[i], last) || ex_mentions(f->args[i], v)) return false;
    const Expr *const end[] = {f->lower, f->upper};
    for (int i = 0; i < 2; i++)
        if (end[i] && (ex_mentions_index(end[i], last) || ex_mentions(end[i], v))) return false;
    return true;
}

// Why the law of the statement draws no values of v; NULL: it does.
static const char *not_a_law(Search *s, const Factor *f, const Var *v)
{
    const Distribution *d = not_drawn(f);
    if (f->value->kind != EX_REF || f->value->var != v)
        return because(s, f->span, "a function of %s has the distribution (%s)", v->name);
    if (d && d->log_density && (d->log_density->kind == AST_INT || d->log_density->kind == AST_REAL))
        return because(s, f->span, "the density %s is the same everywhere, and its integral infinite (%s)", d->name);
    if (d) return because(s, f->span, "there is no routine that draws from %s (%s)", d->name);
    if (is_ordered(v) && !f->ncomponents && is_of_one_law(f, v)) return may_be_out(s, f) ? out_of_domain(s, f) : NULL;
    if (!f->ncomponents && constraint_rank(v) == 1 && support_table[f->dist->support].constraint != v->constraint)
        return arena_printf(s->g->arena, "its elements are constrained together, and %s would draw them as if they were not (%s)",
                            law_name(f), line_of(s, f->span));
    if (f->ncomponents && constraint_rank(v) != 0)
        return because(s, f->span, "the elements of %s are constrained together (%s)", v->name);
    return may_be_out(s, f) ? out_of_domain(s, f) : NULL;
}

static void take_law(Search *s, Forward *f, const Factor *factor, Site **of_component)
{
    Site **last = &f->sites;
    while (*last) last = &(*last)->next;
    draw_as(s->g, factor, ex_ref(f->into, factor->value->nargs, factor->value->args), REQUEST_REPLICATES, of_component, last);
}

static void take_laws(Search *s, Forward *f)
{
    bool mixture = false;
    Site *components = NULL;
    s->now = f->into;
    for (const Factor *q = s->g->factors; q && !f->refused; q = q->next) {
        const Expr *r = counts(q) ? drawn_by(q) : NULL;
        if (!r || r->var != f->of) continue;
        f->refused = not_a_law(s, q, f->of);
        if (f->refused) return;
        mixture |= q->ncomponents > 0;
        if (is_ordered(f->of) && f->sites)
            f->refused = because(s, q->span, "the elements of %s, which are ordered, have several statements (%s)", f->of->name);
        f->sorted = is_ordered(f->of);
        take_law(s, f, q, &components);
    }
    for (int of = 0; of < 2; of++)
        for (Site *t = of ? components : f->sites; t && !f->refused; t = t->next) {
            if (law_any(s, t, test_fixed_by_response, s)) {
                f->refused = because(s, t->span, "the law of %s reads a definition that is computed from a response (%s)", f->of->name);
                return;
            }
            for (int k = 0; k < t->nargs; k++) read_draws(s, &t->args[k]);
            read_draws(s, &t->when);
            read_draws(s, &t->plates.guard);
            for (int k = 0; k < t->n; k++) read_draws(s, &t->subscript[k]);
            if (loops_any(&t->plates, test_response, s))
                f->refused = because(s, t->span, "how many elements of %s are drawn depends on a response (%s)", f->of->name);
        }
    if (f->refused) return;
    if (components) {
        Site **last = &components;
        while (*last) last = &(*last)->next;
        *last = f->sites;
        f->sites = components;
    }
    order_elements_of(s, f, mixture);
}

// A statement that draws no variable.
static const char *no_draw(Search *s, const Factor *f, bool *of_responses)
{
    *of_responses = false;
    if (f->added) return because(s, f->span, "%s, adds to the log density and says nothing of how values are drawn (%s)",
                                   "`target +=`, or a law of a function of unknowns");
    if (f->function) {
        *of_responses = true;
        return because(s, f->span, "%s is a function of an unknown (%s)", f->function->name);
    }
    if (f->ordered) return NULL;  // see `sorted`
    if (f->region) return because(s, f->span, "%s has no distribution: it is flat within its bounds (%s)", f->region->name);
    if (!f->dist || !f->value)
        return ex_is_num(f->log_density, 0)
                   ? NULL
                   : because(s, f->span, "the density is 0 outside of %s that are no truncation of a law (%s)", "bounds or domains");
    if (ex_data_only(f->value)) {
        *of_responses = true;
        return because(s, f->span, "the value on the left of `~` is not one element or vector of a variable: %s (%s)", law_name(f));
    }
    return because(s, f->span, "the value on the left of `~` is a function of unknowns: %s is a factor beside their laws (%s)",
                   law_name(f));
}

typedef struct Mention {
    const Var *v;
} Mention;

static bool test_mention(const Var *v, void *with) { return v == ((Mention *)with)->v; }

static bool factor_any(Search *s, const Factor *f, bool (*test)(const Var *, void *), void *with)
{
    Making m = {s, test, 0, ++s->walks, with};
    return ex_any_var(f->log_density, test_making, &m);
}

// A statement beside the laws is about v, and about no response: then v alone does not have its law either, given all that its law reads.
static void refuse_beside(Search *s, Forward *f)
{
    Mention of = {f->of};
    for (const Factor *q = s->g->factors; q && !f->refused; q = q->next) {
        bool of_responses;
        if (!counts(q) || drawn_by(q) || !factor_any(s, q, test_mention, &of) || factor_any(s, q, test_response, s)) continue;
        f->refused = no_draw(s, q, &of_responses);
    }
}

// ---- sums over rows ----

typedef struct Rows {
    const Graph *g;
    const Expr *size;  // the number of rows
} Rows;

static Look test_sum_over_rows(const Expr *e, void *with)
{
    return e->kind == EX_REDUCE && e->args[1] == ((const Rows *)with)->size && !ex_unknown(e) ? FOUND : LOOK;
}

// A definition of data that is such a sum.
static bool test_sum(const Var *v, void *with)
{
    bool yes = false;
    for (const Site *t = v->kind == VAR_LET ? v->sites : NULL; t && !yes; t = t->next)
        yes = t->value && ex_find(t->value, test_sum_over_rows, with);
    return yes;
}

// What is computed or drawn for each row reads a sum over all rows: other rows have another one.
static const char *sum_over_rows(Search *s, const Var *v, Rows *rows)
{
    for (const Site *t = v->sites; t; t = t->next) {
        bool each = false;
        for (int i = 0; i < t->plates.n; i++) each |= t->plates.index[i]->hi == rows->size;
        if (!each) continue;
        bool inside = t->value && ex_find(t->value, test_sum_over_rows, rows);
        for (int k = 0; k < t->nargs; k++) inside |= ex_find(t->args[k], test_sum_over_rows, rows);
        if (!inside && !law_any(s, t, test_sum, rows)) continue;
        return arena_printf(s->g->arena, "%s reads a sum over all rows, such as a mean (%s)", v->name, line_of(s, t->span));
    }
    return NULL;
}

static void find_sums_over_rows(Search *s)
{
    Graph *g = s->g;
    for (const Observed *o = g->observed; o; o = o->next) {
        if (!o->var || o->var->kind != VAR_DATA || o->var->rank == 0) continue;
        Rows rows = {g, o->var->dim[0]};
        for (int i = 0; i < g->nvars && !g->sum_over_rows; i++)
            if (g->vars[i]->kind == VAR_DERIVED || g->vars[i]->kind == VAR_PREDICTED)
                g->sum_over_rows = sum_over_rows(s, g->vars[i], &rows);
    }
}

// ---- order ----

// What is drawn later, or not at all: the variable itself and its components do not count.
static bool test_undrawn(const Var *v, void *with)
{
    const Search *s = with;
    return v->id < s->g->nvars && s->undrawn[v->id] && s->undrawn[v->id] != s->waiting;
}

static bool waits(Search *s, const Forward *f)
{
    bool yes = false;
    s->waiting = f;
    for (const Site *t = f->sites; t && !yes; t = t->next) yes = law_any(s, t, test_undrawn, s);
    return yes;
}

// The first that waits for no other; then those that are left.
static void put_in_order(Search *s)
{
    Forward *done = NULL, **last = &done;
    s->undrawn = NEW_N(s->g->arena, const Forward *, s->g->nvars + 1);
    for (const Forward *f = s->first; f; f = f->next)
        // an unknown that cannot be drawn has a value from elsewhere, or nothing is drawn
        if (f->into && (!f->refused || f->for_responses)) s->undrawn[f->into->id] = f;
    for (bool progress = true; progress && s->first;) {
        progress = false;
        for (Forward **at = &s->first; *at;) {
            Forward *f = *at;
            // an unknown that has no law here may be given, and others then have theirs
            if (f->into && (f->refused ? f->for_responses : waits(s, f))) {
                at = &f->next;
                continue;
            }
            *at = f->next;
            if (f->into) s->undrawn[f->into->id] = NULL;
            f->next = NULL;
            *last = f;
            last = &f->next;
            progress = true;
        }
    }
    for (Forward *f = s->first; f; f = f->next)
        if (!f->refused) f->refused = because(s, f->span, "%s needs what cannot be drawn, or what needs it in turn (%s)", f->of->name);
    *last = s->first;
    s->first = done;
}

bool find_forward(Graph *g)
{
    if (g->lesson || g->method == METHOD_EM) return true;
    Search s = {.g = g, .drawn = NEW_N(g->arena, Var *, g->nvars + 1)};
    s.last = &s.first;
    // mixtures bring in more variables, which no definition is
    for (int k = 0; k < 2; k++) s.seen[k] = NEW_N(g->arena, unsigned, g->nvars + 1);
    const int n = g->nvars;
    for (const Observed *o = g->observed; o; o = o->next)
        if (o->var && o->replicate) s.drawn[o->var->id] = o->replicate;
    for (const Factor *f = g->factors; f; f = f->next) {
        if (!counts(f) || drawn_by(f)) continue;
        bool of_responses;
        const char *why = no_draw(&s, f, &of_responses);
        if (!why) continue;
        Forward *o = add(&s, NULL, NULL, f->span);
        o->refused = why;
        o->for_responses = of_responses;
    }
    for (int i = 0; i < n; i++) {
        Var *v = g->vars[i];
        if (v->kind != VAR_PARAMETER && v->kind != VAR_LATENT) continue;
        Forward *f = add(&s, v, v, v->span);
        take_laws(&s, f);
        if (!f->sites && !f->refused) f->refused = because(&s, v->span, "%s has no distribution: it is flat (%s)", v->name);
        refuse_beside(&s, f);
    }
    for (const Observed *o = g->observed; o; o = o->next) {
        if (!o->var) continue;
        Forward *f = add(&s, o->var, o->replicate, o->span);
        f->for_responses = true;
        if (!o->replicate) {
            f->refused = o->no_replicate;
            continue;
        }
        f->begins_with_data = o->replicate->known.holes;
        take_laws(&s, f);
    }
    for (int i = 0; i < n; i++) {
        const Making of = {&s, test_drawn_response, 1, ++s.walks, &s};
        if (g->vars[i]->kind != VAR_LET || !made_of(&of, g->vars[i])) continue;
        Forward *f = add(&s, NULL, NULL, g->vars[i]->span);
        f->refused = because(&s, f->span, "%s is computed from a response of the data, and would not follow what is drawn (%s)",
                             g->vars[i]->name);
        f->for_responses = true;
    }
    find_sums_over_rows(&s);
    put_in_order(&s);
    g->forward = s.first;
    return true;
}

void forward_print(FILE *out, const Graph *g)
{
    for (const Forward *f = g->forward; f; f = f->next) {
        for (const Site *t = f->refused ? NULL : f->sites; t; t = t->next) {
            fprintf(out, "%s", t->var->name);
            for (int k = 0; k < t->n; k++) {
                fputs(k ? ", " : "[", out);
                ex_print(out, t->subscript[k]);
            }
            fprintf(out, "%s ~ %s(", t->n ? "]" : "", t->dist->name);
            for (int k = 0; k < t->nsample; k++) {
                if (k) fputs(", ", out);
                ex_print(out, t->args[k]);
            }
            fputs(")", out);
            if (t->when) {
                fputs(" if ", out);
                ex_print(out, t->when);
            }
            plates_print(out, &t->plates);
            fputc('\n', out);
        }
        if (f->refused) fprintf(out, "not drawn%s%s: %s\n", f->of ? ", " : "", f->of ? f->of->name : "", f->refused);
    }
}
