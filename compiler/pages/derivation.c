// derivation.c -- the conditional of each update, derived in steps.
//
//   collect     the terms of the log joint that hold the unknown, statement by statement
//   complete    their sum as coefficients of the statistics of a family; of a normal, the square
//   recognise   the family, in the parameters of a textbook
//
// Where no family has these statistics, the second step says why, and the third how the density is drawn from. Formulas are made of the
// expressions of the graph (describe.c). Needs: a complete program. Keeps: what it needs.
#include <string.h>
#include "../emit/program.h"
#include "../graph/plan/describe.h"
#include "../graph/terms/naming.h"
#include "../graph/terms/requests.h"
#include "derivation.h"

typedef struct Writing {
    const Pages *p;
    Graph *g;
    Notation names;
    const Var *drawn;
} Writing;

static Row *row_new(Arena *a, DerivationStep *s, Row row)
{
    ROOM(a, s->row, s->n, s->size);
    s->row[s->n] = row;
    return &s->row[s->n++];
}

static int line_of_factor(const Factor *f) { return f ? span_line(f->span) : 0; }

// A log density without terms of data alone; NULL: nothing is left. v: what is drawn, which may be missing data.
static Expr *without_constants(Expr *e, const Var *v)
{
    if (!ex_unknown(e) && !(v && ex_mentions(e, v))) return NULL;
    if (e->kind == EX_ADD) {
        Expr *sum = ex_num(0);
        for (int i = 0; i < e->nargs; i++) {
            Expr *term = without_constants(e->args[i], v);
            if (term) sum = ex_add2(sum, term);
        }
        return sum;
    }
    if (e->kind == EX_REDUCE && strcmp(e->name, "sum") == 0) {
        Index *i = index_new(ex_index_called(e), e->args[0], e->args[1]);
        Expr *body = ex_open(e, i), *rest = without_constants(body, v);
        return !rest || rest == body ? e : ex_reduce("sum", i, e->args[0], e->args[1], rest);
    }
    return e;
}

// ---- statements of a description ----

static const Formula *relation(Notation *t, const char *word)
{
    return strcmp(word, "=") == 0    ? formula_sign(t, SIGN_EQUALS)
           : strcmp(word, "+=") == 0 ? formula_sign(t, SIGN_GROWS)
           : strcmp(word, "~") == 0  ? formula_sign(t, SIGN_FOLLOWS)
           : strcmp(word, "<=") == 0 ? formula_sign(t, SIGN_AT_MOST)
           : strcmp(word, ">=") == 0 ? formula_sign(t, SIGN_AT_LEAST)
                                     : formula_prose(t, arena_printf(t->arena, " %s ", word));
}

static const Formula *left_side(Notation *t, const Statement *s)
{
    const Formula *at[2] = {NULL, NULL};
    for (int i = 0; i < s->nleft; i++) at[i] = formula_of(t, s->left[i]);
    if (!s->name) return at[0];
    const Formula *name = formula_word(t, s->name);
    return s->nleft ? ROW(t, name, formula_fenced(t, '[', formula_list(t, s->nleft, at))) : name;
}

static void add_statement(Writing *w, DerivationStep *step, const Statement *s)
{
    Notation *t = &w->names;
    for (; s; s = s->next) {
        Row row = {.words = s->words, .line = line_of_factor(s->factor)};
        const bool density = s->name && strcmp(s->name, "log density") == 0;
        Expr *value = density ? without_constants(s->right, w->drawn) : s->right;
        if (density && !value) continue;
        if (!density) notation_open(t, &s->over);
        if (density) row.formula = formula_sum(t, &s->over, value);
        else if (s->dist) {
            const Formula *args[] = {formula_of(t, s->right), formula_of(t, s->right2)};
            row.formula = ROW(t, left_side(t, s), relation(t, s->relation), formula_call(t, s->dist, 2, args));
            row.over = formula_loops(t, &s->over);
        } else if (s->relation) {
            row.formula = ROW(t, left_side(t, s), relation(t, s->relation), value ? formula_of(t, value) : NULL);
            row.over = formula_loops(t, &s->over);
        }
        if (!density) notation_close(t, &s->over);
        row_new(t->arena, step, row);
    }
}

// ---- the terms of the log joint ----

static const Formula *call_of(Notation *t, const char *dist, int n, Expr *const *args)
{
    const Formula **list = NEW_N(t->arena, const Formula *, n + 1);
    for (int i = 0; i < n; i++) list[i] = formula_of(t, args[i]);
    return formula_call(t, dist, n, list);
}

// A factor as its statement: theta_j ~ normal(mu, tau); of a mixture with its weights; or the term that it adds.
static const Formula *statement_of(Notation *t, const Factor *f)
{
    if (!f->dist || !f->value) {
        Expr *term = without_constants(f->log_density, NULL);
        return formula_of(t, term ? term : f->log_density);
    }
    const Formula *law;
    if (f->ncomponents) {
        const Formula **list = NEW_N(t->arena, const Formula *, f->ncomponents);
        for (int i = 0; i < f->ncomponents; i++) {
            const Component *c = &f->component[i];
            list[i] = ROW(t, formula_of(t, c->weight), formula_prose(t, ": "), call_of(t, c->dist->name, c->nargs, c->args));
        }
        law = formula_call(t, "mixture", f->ncomponents, list);
        if (f->plate) law = ROW(t, law, formula_sign(t, SIGN_SPACE), formula_loops(t, &(Loops){.n = 1, .index = {f->plate}}));
    } else law = call_of(t, f->dist->name, f->nargs, f->args);
    return ROW(t, formula_of(t, f->value), formula_sign(t, SIGN_FOLLOWS), law);
}

static void find_terms(const Pages *p, Unknown *u, const Var *v)
{
    u->terms.title = "Terms of the log joint";
    for (const Factor *f = p->g->factors; f; f = f->next) {
        if (!factor_counts(f, v, false) || f->made || !(factor_mentions(f, v) || factor_draws(f, v))) continue;
        const Loops over = f->plates;
        Notation names = notation_new(p->g), *t = &names;  // a statement has its own indices, as the model writes them
        notation_open(t, &over);
        const char *meaning = f->dist && f->value && !f->ncomponents && map_get(&p->explained, f->dist) == NULL
                                  ? meaning_of(p->g, f->dist, f->nargs, f->args)
                                  : NULL;
        if (meaning) map_put(p->arena, (Map *)&p->explained, f->dist, (void *)f->dist);
        const char *rule = f->rule ? arena_printf(p->arena, "by the augmentation %s%s%s", f->rule->name, f->rule->reference ? ": " : "",
                                                  f->rule->reference ? f->rule->reference : "")
                                   : NULL;
        row_new(p->arena, &u->terms,
                (Row){.formula = statement_of(t, f),
                      .over = formula_loops(t, &over),
                      .line = line_of_factor(f),
                      .note = meaning ? arena_printf(p->arena, "%s: %s%s%s", f->dist->name, meaning, rule ? "; " : "", rule ? rule : "")
                                      : rule});
        Expr *density = without_constants(f->log_density, v);
        if (density && f->dist && f->value)
            row_new(p->arena, &u->terms, (Row){.words = "log density, up to a constant:", .formula = formula_of(t, density)});
        notation_close(t, &over);
    }
}

// ---- steps ----

// Elements are called as where the model declares them: theta[j].
static void name_elements(Writing *w, const Conditional *c)
{
    for (const Factor *f = w->g->factors; f; f = f->next) {
        if (!f->value || f->value->kind != EX_REF || f->value->var != c->var) continue;
        for (int k = 0; k < f->value->nargs; k++)
            if (f->value->args[k]->kind == EX_INDEX && c->element[k])
                notation_fix(&w->names, c->element[k], f->value->args[k]->index->name);
        return;
    }
}

// The terms of each factor: coefficients times statistics of the element.
static void collect_natural(Writing *w, DerivationStep *s, const Conditional *c)
{
    Expr *statistic[MAX_NATURAL];
    for (int k = 0; k < c->nnatural && k < MAX_NATURAL; k++)
        statistic[k] = c->statistic[k] ? ex_replace(c->statistic[k], c->u, c->current) : NULL;
    for (const Part *first = c->natural; first; first = first->next) {
        Expr *sum = ex_num(0);
        bool any = false, before = false;
        for (const Part *p = c->natural; p != first && !before; p = p->next) before = p->factor == first->factor;
        for (const Part *p = first; p && !before; p = p->next) {
            if (p->factor != first->factor || p->which >= MAX_NATURAL || !statistic[p->which]) continue;
            sum = ex_add2(sum, ex_mul2(total_of_part(w->g, c, p), statistic[p->which]));
            any = true;
        }
        if (any) row_new(w->p->arena, s, (Row){.formula = formula_of(&w->names, ex_tidy(sum)), .line = line_of_factor(first->factor)});
    }
}

static const Formula *given_rest(Notation *t, const Formula *what)
{
    return ROW(t, formula_word(t, "log"), formula_sign(t, SIGN_THIN), formula_letter(t, "p"),
               formula_fenced(t, '(', ROW(t, what, formula_sign(t, SIGN_GIVEN), formula_prose(t, "rest"))));
}

static bool is_square_of(const Expr *e, const Expr *u) { return e->kind == EX_POW && e->number == 2 && e->args[0] == u; }

// Of a truncated law: between which ends the formula holds. NULL: everywhere.
static const char *where_it_holds(Arena *a, const Description *says, const char *x)
{
    const char *all = NULL;
    for (int i = 0; i < says->n; i++)
        for (int side = 0; side < 2; side++) {
            const char *end = says->line[i], *name = side ? "upper = " : "lower = ";
            if (strncmp(end, name, strlen(name)) != 0) continue;
            end = strcspn(end, "(") == strlen(end) ? end + strlen(name) : side ? "upper" : "lower";
            all = arena_printf(a, "%s%s %s %s", all ? all : "for ", all ? " and" : x, side ? "<" : ">", end);
        }
    return all;
}

// Coefficients of the statistics of the family, and the square that those of x and x^2 make.
static void complete_natural(Writing *w, DerivationStep *s, const Conditional *c, const Description *says)
{
    Notation *t = &w->names;
    Arena *a = w->p->arena;
    int which = 0;
    bool linear = false, square = false;
    for (const Natural *n = c->family->natural; n; n = n->next, which++) {
        Expr *sum = ex_num(0);
        for (const Part *p = c->natural; p; p = p->next)
            if (p->which == which) sum = ex_add2(sum, total_of_part(w->g, c, p));
        const Expr *statistic = which < MAX_NATURAL ? c->statistic[which] : NULL;
        const Formula *of = NULL;
        if (statistic) of = formula_of(t, ex_replace((Expr *)statistic, c->u, c->current));
        else
            of = formula_word(t, arena_printf(a, "%.*s", n->statistic->span.to - n->statistic->span.from,
                                              n->statistic->span.source->text + n->statistic->span.from));
        linear |= statistic == c->u;
        square |= statistic && is_square_of(statistic, c->u);
        row_new(a, s, (Row){.words = "coefficient of", .formula = ROW(t, of, formula_prose(t, ": "), formula_of(t, ex_tidy(sum)))});
    }
    if (linear && square && which == 2 && c->family->law) {
        const Formula *x = formula_of(t, c->current), *mean = formula_word(t, "mean");
        const Formula *half = ROW(t, formula_sign(t, SIGN_NEGATIVE), formula_of(t, ex_num(0.5)), formula_sign(t, SIGN_TIMES),
                                  formula_word(t, "precision"), formula_sign(t, SIGN_TIMES));
        const Formula *of = formula_fenced(t, '(', ROW(t, x, formula_sign(t, SIGN_MINUS), mean));
        row_new(a, s,
                (Row){.words = "the square completed:",
                      .formula = ROW(t, given_rest(t, x), formula_sign(t, SIGN_EQUALS), half,
                                     formula_power(t, of, formula_of(t, ex_num(2))), formula_sign(t, SIGN_PLUS), formula_word(t, "const")),
                      .note = where_it_holds(a, says, ex_quote(a, c->current))});
    }
}

static bool same_loops(const Loops *a, const Loops *b)
{
    if (a->n != b->n || a->guard != b->guard) return false;
    for (int i = 0; i < a->n; i++)
        if (a->index[i] != b->index[i]) return false;
    return true;
}

static void collect_block(Writing *w, DerivationStep *s, const BlockTerm *t)
{
    while (t) {
        const BlockTerm *first = t;
        Expr *sum = ex_num(0);
        for (; t && t->factor == first->factor && same_loops(&t->loops, &first->loops); t = t->next) {
            Expr *term = ex_mul2(ex_tidy(t->coefficient), t->ref[0]);
            sum = ex_add2(sum, t->degree == 2 ? ex_mul2(term, t->ref[1]) : term);
        }
        row_new(w->p->arena, s,
                (Row){.formula = formula_sum(&w->names, &first->loops, ex_tidy(sum)), .line = line_of_factor(first->factor)});
    }
}

static const Formula *block_formula(Writing *w, const Update *u)
{
    const Formula **list = NEW_N(w->p->arena, const Formula *, u->nblock);
    for (int i = 0; i < u->nblock; i++) list[i] = formula_symbol(&w->names, u->block[i]);
    return u->nblock == 1 ? list[0] : formula_fenced(&w->names, '(', formula_list(&w->names, u->nblock, list));
}

static const Formula *inverse_of(Notation *t, const Formula *J) { return formula_power(t, J, formula_of(t, ex_num(-1))); }

static const char *block_text(Arena *a, const Update *u)
{
    const char *names = u->block[0]->name;
    for (int i = 1; i < u->nblock; i++) names = arena_printf(a, "%s, %s", names, u->block[i]->name);
    return u->nblock > 1 ? arena_printf(a, "(%s)", names) : names;
}

static void complete_block(Writing *w, DerivationStep *s, const Update *u)
{
    Notation *t = &w->names;
    const Description *says = u->description;
    const Formula *x = formula_word(t, says->x), *J = formula_word(t, says->J), *h = formula_word(t, says->h),
                  *turned = formula_sign(t, SIGN_TRANSPOSED);
    row_new(
        w->p->arena, s,
        (Row){.formula = ROW(t, given_rest(t, x), formula_sign(t, SIGN_EQUALS), formula_sign(t, SIGN_NEGATIVE), formula_of(t, ex_num(0.5)),
                             formula_sign(t, SIGN_TIMES), formula_power(t, x, turned), J, x, formula_sign(t, SIGN_PLUS),
                             formula_power(t, h, turned), x, formula_sign(t, SIGN_PLUS), formula_word(t, "const")),
              .note = arena_printf(t->arena, "%s: %s, as one vector; %s: its precision matrix; %s: %s times the mean", says->x,
                                   block_text(t->arena, u), says->J, says->h, says->J)});
}

static DerivationStep *step_new(Derivation *d, const char *title, const char *words)
{
    DerivationStep *s = &d->step[d->nsteps++];
    *s = (DerivationStep){.title = title, .words = words};
    return s;
}

static bool is_density_line(const Statement *s) { return s->name && strcmp(s->name, "log density") == 0; }

static void add_statements(Writing *w, DerivationStep *s, const Description *d, bool densities)
{
    for (int i = 0; i < d->n; i++)
        if (is_density_line(&d->statement[i]) == densities) add_statement(w, s, &d->statement[i]);
}

static const Formula *law_of_draw(Writing *w, const DrawnFrom *d)
{
    Notation *t = &w->names;
    const Formula *law = d->nargs ? call_of(t, d->dist, d->nargs, d->args) : formula_word(t, d->dist);
    const bool power = d->of->kind == EX_POW && d->of->number < 0;  // not as a fraction
    const Formula *of =
        power ? formula_power(t, formula_of(t, d->of->args[0]), formula_of(t, ex_num(d->of->number))) : formula_of(t, d->of);
    return ROW(t, of, formula_sign(t, SIGN_GIVEN), formula_prose(t, "rest"), formula_sign(t, SIGN_FOLLOWS), law,
               d->truncated ? formula_prose(t, ", truncated") : NULL);
}

// x = sigma^-2: log p(x) is log p(sigma) and the logarithm of the derivative, which together are the law's density.
static void change_of_variable(Writing *w, DerivationStep *s, const struct ChangedVariable *c)
{
    Notation *t = &w->names;
    const Formula *x = formula_word(t, c->x->var->name), *of = formula_of(t, c->of),
                  *slope = formula_fenced(t, '|',
                                          ROW(t, formula_letter(t, "d"), formula_sign(t, SIGN_THIN), of, formula_prose(t, " / "),
                                              formula_letter(t, "d"), formula_sign(t, SIGN_THIN), x));
    row_new(
        t->arena, s,
        (Row){.words = "with", .formula = ROW(t, x, formula_sign(t, SIGN_EQUALS), formula_power(t, of, formula_of(t, ex_num(c->power))))});
    row_new(t->arena, s,
            (Row){.formula = ROW(t, given_rest(t, x), formula_sign(t, SIGN_EQUALS), given_rest(t, of), formula_sign(t, SIGN_PLUS),
                                 formula_word(t, "log"), slope, formula_sign(t, SIGN_EQUALS), formula_of(t, c->density),
                                 formula_sign(t, SIGN_PLUS), formula_word(t, "const")),
                  .note = arena_printf(t->arena, "the derivative adds %s times log %s", ex_text(t->arena, ex_num(1 / c->power - 1)),
                                       c->x->var->name)});
}

// The library writes the statistics of a family of arrays as functions of x.
static void says_what_x_is(Writing *w, DerivationStep *s, const Conditional *c)
{
    row_new(w->p->arena, s, (Row){.words = "x has the elements", .formula = formula_of(&w->names, c->current)});
}

static void derive_exact(Writing *w, Derivation *d, DerivationStep *collect)
{
    const Update *u = d->update;
    const Description *says = u->description;
    const Conditional *c = u->conditional;
    collect_natural(w, collect, c);
    if (says->measure) row_new(w->p->arena, collect, (Row){.words = "powers:", .note = says->measure});
    const bool whole = !collect->n;  // of an array, whose statistics are arrays
    if (whole) d->nsteps--;
    DerivationStep *complete = step_new(d, "Complete",
                                        whole ? "The sum of the terms that hold it, as coefficients of statistics of x:"
                                              : "Their sum, as coefficients of its statistics:");
    if (whole) says_what_x_is(w, complete, c);
    complete_natural(w, complete, c, says);
    const bool power = c->family->power && c->power != 1;
    DerivationStep *recognise = step_new(d, "Recognise",
                                         power ? "In this power of it, with the Jacobian of the power, the law of a family:"
                                               : "The law of a family, in its textbook parameters:");
    if (says->changed.of) change_of_variable(w, recognise, &says->changed);
    row_new(w->p->arena, recognise, (Row){.formula = d->law});
    add_statements(w, recognise, says, false);
}

static void derive_block(Writing *w, Derivation *d, DerivationStep *collect)
{
    const Update *u = d->update;
    const Description *says = u->description;
    Notation *t = &w->names;
    collect_block(w, collect, u->gaussian.terms);
    DerivationStep *complete =
        step_new(d, "Complete",
                 arena_printf(t->arena, "They are quadratic in the block: their coefficients make a precision %s and a shift %s.", says->J,
                              says->h));
    complete_block(w, complete, u);
    for (int i = 0; i < says->n; i++)
        if (says->statement[i].name) add_statement(w, complete, &says->statement[i]);
    DerivationStep *recognise = step_new(d, "Recognise", "A joint normal, by its mean and covariance:");
    const Formula *J = formula_word(t, says->J), *args[] = {ROW(t, inverse_of(t, J), formula_word(t, says->h)), inverse_of(t, J)};
    d->law = ROW(t, block_formula(w, u), formula_sign(t, SIGN_GIVEN), formula_prose(t, "rest"), formula_sign(t, SIGN_FOLLOWS),
                 formula_call(t, "multi_normal", 2, args));
    row_new(w->p->arena, recognise, (Row){.formula = d->law});
    for (int i = 0; i < says->n; i++)
        if (!says->statement[i].name) add_statement(w, recognise, &says->statement[i]);
}

static void derive(Writing *w, Derivation *d)
{
    const Update *u = d->update;
    const Description *says = u->description;
    const Conditional *c = u->conditional;
    Notation *t = &w->names;
    if (c) name_elements(w, c);
    DerivationStep *collect = step_new(d, "Collect", "The terms of the log joint that hold it:");
    if (u->group_move)
        collect->words = "The terms of the log joint in which it changes something, with the moved values in place of what was:";
    if (says->drawn.dist) d->law = law_of_draw(w, &says->drawn);
    if (u->kind == UPDATE_EXACT && c->family) {
        derive_exact(w, d, collect);
        return;
    }
    if (u->kind == UPDATE_GAUSSIAN) {
        derive_block(w, d, collect);
        return;
    }
    add_statements(w, collect, says, true);
    if (says->measure) row_new(w->p->arena, collect, (Row){.words = "powers:", .note = says->measure});
    if (!collect->n) d->nsteps--;
    DerivationStep *draw = step_new(d, "Recognise",
                                    says->drawn.dist ? "Nothing else depends on it: its own distribution."
                                                     : "No family is recognised: this density is drawn from as it stands.");
    if (u->kind == UPDATE_NUTS)
        draw->words = u->collapsed
                          ? "Trajectories follow the gradient of the log density of the unconstrained coordinates: this one, in which "
                            "auxiliaries are integrated out, and the log Jacobian."
                          : "Trajectories follow the gradient of the log density of the unconstrained coordinates: this one, and the "
                            "log Jacobian.";
    if (u->kind == UPDATE_ENUM || u->kind == UPDATE_PAIR) draw->words = "Finitely many values: each is weighed by this density.";
    if (!d->law) {
        const Formula *what = u->nblock == 1 && c ? formula_of(t, c->current) : block_formula(w, u);
        // of all unknowns, or of all with auxiliaries integrated out
        const Formula *given = u->kind == UPDATE_NUTS ? what : ROW(t, what, formula_sign(t, SIGN_GIVEN), formula_prose(t, "rest"));
        d->law = ROW(t, formula_letter(t, "p"), u->kind == UPDATE_NUTS && u->nblock > 1 ? given : formula_fenced(t, '(', given),
                     formula_sign(t, SIGN_PROPORTIONAL), formula_word(t, "exp"),
                     formula_fenced(t, '(', formula_prose(t, "the sum of its terms")));
    }
    row_new(w->p->arena, draw, (Row){.formula = d->law});
    add_statements(w, draw, says, false);
    if (u->kind == UPDATE_CATEGORIES) {
        draw->title = "Recognise";
        draw->words = "Given these latents, each category is a joint normal:";
    }
}

// ---- the method, and what would change it ----

static const char *brief_of(const Update *u)
{
    if (u->group_move) return "group move";
    switch (u->kind) {
    case UPDATE_EXACT: return "Gibbs update";
    case UPDATE_OWN: return "Gibbs update";
    case UPDATE_GAUSSIAN: return proposal_of(u) ? "joint proposal" : u->nblock > 1 ? "joint Gibbs update" : "Gibbs update";
    case UPDATE_ENUM: return "Gibbs update";
    case UPDATE_PAIR: return "joint Gibbs update";
    case UPDATE_SLICE: return u->without ? "collapsed slice sampling" : "slice sampling";
    case UPDATE_METROPOLIS: return "random-walk Metropolis";
    case UPDATE_ELLIPTICAL: return "elliptical slice sampling";
    case UPDATE_NUTS: return u->nuts.steps || u->nuts.chees ? "HMC" : "NUTS";
    case UPDATE_CATEGORIES: return "Gibbs updates by category";
    }
    return "";
}

static void change(const Pages *p, Derivation *d, const char *text)
{
    ROOM(p->arena, d->change, d->nchanges, d->changes_size);
    d->change[d->nchanges++] = text;
}

static const char *names_of(const Pages *p, const Update *u) { return block_text(p->arena, u); }

static const Applied *rule_of(const Graph *g, const Update *u)
{
    for (const Applied *a = g->applied; a; a = a->next)
        for (int i = 0; i < u->nblock; i++)
            if (a->latent == u->block[i]) return a;
    return NULL;
}

static void find_changes(const Pages *p, Derivation *d)
{
    const Update *u = d->update;
    const Var *v = u->block[0];
    const Request *asked = u->imputes ? NULL : request_of(p->g, v);
    const Applied *rule = rule_of(p->g, u);
    const bool real = is_real_unknown(v);
    if (asked)
        change(p, d, arena_printf(p->arena, "The model requests it on line %d; without that request gmc chooses.", span_line(asked->span)));
    if (u->selection)
        change(
            p, d,
            "A warm-up of 300 sweeps or more compares Gibbs updates and NUTS for these unknowns; after a shorter one the updates marked * "
            "in the sweep draw them. `--method gibbs` and `--method nuts` decide instead.");
    if (rule)
        change(p, d,
               arena_printf(p->arena, "It is there by the augmentation %s on line %d. `gmc --no-augment` leaves the model as written.",
                            rule->rule->name, span_line(rule->factor->span)));
    if (asked || u->imputes || u->group_move || proposal_of(u) || v->kind == VAR_AUXILIARY || u->does != DRAWS) return;
    const bool gibbs = u->kind == UPDATE_EXACT || u->kind == UPDATE_GAUSSIAN || u->kind == UPDATE_OWN;
    if (gibbs && real) change(p, d, arena_printf(p->arena, "`infer { %s by nuts; }` in the model draws it by NUTS.", names_of(p, u)));
    if (gibbs && real && u->nblock == 1)
        change(p, d, arena_printf(p->arena, "`infer { %s by slice; }` in the model draws it by slice sampling.", v->name));
    if (u->kind == UPDATE_GAUSSIAN && u->nblock > 1)
        change(p, d,
               arena_printf(p->arena, "`infer { %s by gibbs(joint = off); }` in the model draws it alone, outside of the joint normal.",
                            v->name));
    if (u->kind == UPDATE_SLICE && d->because) change(p, d, "Without the reason above, its law would be a family, and the draw exact.");
    if (u->kind == UPDATE_SLICE && real)
        change(p, d, arena_printf(p->arena, "`infer { %s by nuts; }` in the model draws it by NUTS.", names_of(p, u)));
    if (u->kind == UPDATE_ENUM && u->nblock == 1 && v->discrete && !v->summing.summed)
        change(p, d,
               arena_printf(p->arena, "`infer { %s by marginal; }` in the model updates others with it summed out, where that is possible.",
                            v->name));
}

static void derivation_make(const Pages *p, Derivation *d, const UpdateCode *code, int number)
{
    const Update *u = code->update;
    const Description *says = u->description;
    *d = (Derivation){.update = u,
                      .id = arena_printf(p->arena, "update-%d", number),
                      .subject = u->imputes ? arena_printf(p->arena, "%s, if values are missing", says->subject) : says->subject,
                      .method = says->method,
                      .because = says->because,
                      .elements = says->elements,
                      .brief = brief_of(u),
                      .line = span_line(u->span),
                      .cost = u->selection && u->kind == UPDATE_NUTS ? NULL : cost_text(p->program, code)};
    Writing w = {p, p->g, notation_new(p->g), u->block[0]};
    derive(&w, d);
    find_changes(p, d);
}

// ---- code, and the names in it ----

static bool once(const Pages *p, const void *what)
{
    const bool first = !map_get(&p->explained, what);
    map_put(p->arena, (Map *)&p->explained, what, (void *)what);
    return first;
}

static void show(const Pages *p, Derivation *d, ShownCode code)
{
    ROOM(p->arena, d->code, d->ncode, d->codes_size);
    d->code[d->ncode++] = code;
}

typedef struct Reads {
    Arena *arena;
    int n, size;
    const Var **var;
} Reads;

static bool note_var(const Var *v, void *with)
{
    Reads *r = with;
    if (v->spelled) ex_any_var(v->spelled->value, note_var, r);
    for (int i = 0; i < r->n; i++)
        if (r->var[i] == v) return false;
    ROOM(r->arena, r->var, r->n, r->size);
    r->var[r->n++] = v;
    return false;
}

static void note_expr(Expr *e, void *with)
{
    if (e) ex_any_var(e, note_var, with);
}

static void note_nodes(const Node *list, Reads *r)
{
    for (const Node *n = list; n; n = n->next) {
        each_expr(n, note_expr, r);
        note_nodes(n->body, r);
        note_nodes(n->otherwise, r);
    }
}

static bool is_this(const Var *v, void *with) { return v == with; }

// The kernel that makes it; NULL: a routine of the runtime does.
static const Kernel *maker_of(const Program *p, const Var *v)
{
    const Kernel *const lists[] = {p->setup.first, p->sweep.first};
    for (int i = 0; i < 2; i++)
        for (const Kernel *k = lists[i]; k; k = k->next)
            if (writes(k->body, is_this, (void *)v)) return k;
    return NULL;
}

enum { MOST_SITES = 4 };  // statements of a definition that are written

static void define(const Pages *p, DerivationStep *s, const Var *v, const char *by)
{
    if (v->sum) {
        const char *all = statistic_text(p->g, v->sum), *end = strstr(all, "; serves");
        row_new(p->arena, s, (Row){.words = arena_printf(p->arena, "`%.*s`", (int)(end ? end - all : (long)strlen(all)), all), .note = by});
        return;
    }
    int n = 0;
    for (const Site *t = v->sites; t && n < MOST_SITES; t = t->next, n++) {
        if (!t->value || ex_rank(t->value) || t->n < v->rank) continue;
        Notation names = notation_new(p->g);
        notation_open(&names, &t->plates);
        row_new(p->arena, s,
                (Row){.formula = ROW(&names, formula_of(&names, ex_ref((Var *)v, t->n, (Expr **)t->subscript)),
                                     formula_sign(&names, SIGN_EQUALS), formula_of(&names, t->value)),
                      .over = formula_loops(&names, &t->plates),
                      .line = span_line(t->span),
                      .note = n ? NULL : by});
        notation_close(&names, &t->plates);
    }
}

// Sums and definitions that its formulas and its kernels read: each is defined where a page first has it, beside the kernel that makes it.
static void find_names(const Pages *p, Derivation *d)
{
    const Update *u = d->update;
    const Description *says = u->description;
    Reads r = {.arena = p->arena};
    for (int i = 0; i < says->n; i++)
        for (const Statement *s = &says->statement[i]; s; s = s->next) {
            note_expr(s->right, &r);
            note_expr(s->right2, &r);
        }
    for (const Kernel *k = p->program->sweep.first; k; k = k->next)
        if (k->update == u) note_nodes(k->body, &r);
    DerivationStep *names = step_new(d, "Names", "Sums and definitions that its formulas and kernels read:");
    const char *before = NULL;
    for (int i = 0; i < r.n; i++) {
        const Var *v = r.var[i];
        if (!v->sum && v->kind != VAR_LET && v->kind != VAR_SERIES) continue;
        if (!once(p, v)) {
            before = arena_printf(p->arena, "%s%s`%s`", before ? before : "defined above: ", before ? ", " : "", v->name);
            continue;
        }
        const Kernel *k = maker_of(p->program, v);
        const int n = names->n;
        define(p, names, v, k ? arena_printf(p->arena, "by the kernel `%s`", k->name) : NULL);
        if (names->n > n && k && k->update != u && once(p, k)) show(p, d, (ShownCode){.name = k->name, .kernel = k});
    }
    if (before) row_new(p->arena, names, (Row){.words = before});
    if (!names->n) d->nsteps--;
}

// What a routine of the runtime does after the kernels.
static const char *routine_of(const Pages *p, const Update *u, const Launch *l)
{
    const char *x = u->description->x, *J = u->description->J, *h = u->description->h;
    switch (l->kind) {
    case LAUNCH_NORMAL_DENSE:
    case LAUNCH_NORMAL_DENSE_SCALED:
        return arena_printf(p->arena,
                            "`NORMAL_DENSE` draws it, with the Cholesky factor %s = L L': %s = %s^-1 %s + L'^-1 e, e standard normal", J, x,
                            J, h);
    case LAUNCH_NORMAL_ARROW:
    case LAUNCH_NORMAL_ARROW_SCALED:
        return arena_printf(
            p->arena,
            "`NORMAL_ARROW` integrates the independent elements out of %s and %s, draws the others by the Cholesky factor of "
            "what is left, and then each of these elements given the others",
            J, h);
    case LAUNCH_NORMAL_SPARSE:
    case LAUNCH_NORMAL_SPARSE_SCALED:
        return arena_printf(p->arena,
                            "`NORMAL_SPARSE` draws it, with a sparse Cholesky factor %s = L L': %s = %s^-1 %s + L'^-1 e, e standard normal",
                            J, x, J, h);
    case LAUNCH_NORMAL_ROWS:
    case LAUNCH_NORMAL_ROWS_SCALED:
        return "`NORMAL_ROWS` draws it from a matrix of rows by rows, where these are fewer (Bhattacharya et al. 2016)";
    case LAUNCH_NUTS: return "`NUTS` makes the trajectory: it calls the density at each leapfrog step";
    default: return NULL;
    }
}

static void find_code(const Pages *p, Derivation *d, const UpdateCode *code)
{
    const Update *u = d->update;
    bool shown = false, any = false;
    for (const Kernel *k = p->program->sweep.first; k; k = k->next) shown |= k->update == u && draws_unknowns(k->body);
    for (const Kernel *k = p->program->sweep.first; k; k = k->next) {
        if (k->update != u || !once(p, k)) continue;
        show(p, d, (ShownCode){.name = k->name, .kernel = k, .open = shown ? draws_unknowns(k->body) : !any});
        any = true;
    }
    if (has_function(code)) show(p, d, (ShownCode){.name = code->function, .function = code, .open = u->kind == UPDATE_GAUSSIAN && !shown});
    for (const Launch *l = u->kind == UPDATE_GAUSSIAN || u->kind == UPDATE_NUTS ? code->launches.first : NULL; l; l = l->next) {
        const char *routine = routine_of(p, u, l);
        if (routine) row_new(p->arena, &d->step[d->nsteps - 1], (Row){.words = routine});
    }
}

// What stands on a page before it is written: each derivation with its code, in the order of the page.
static void find_rest(const Pages *p, const Derivation *d)
{
    if (!once(p, d)) return;
    Derivation *own = &p->derivation[d - p->derivation];
    find_code(p, own, &p->program->updates[d - p->derivation]);
    find_names(p, own);
}

// ---- all of it ----

static bool draws_it(const Update *u, const Var *v)
{
    const Var *drawn = v->kind == VAR_PART ? v->part_of : v;
    for (int i = 0; i < u->nblock; i++)
        if (u->block[i] == drawn) return true;
    for (int i = 0; u->group_move && i < u->group_move->n; i++)
        if (u->group_move->moved[i].var == drawn) return true;
    return white_of(u) && white_of(u)->vector == drawn;
}

static bool is_shown(const Pages *p, const Var *v)
{
    if (v->lost || v->parts) return false;
    if (v->kind == VAR_PARAMETER || v->kind == VAR_LATENT || v->kind == VAR_PART || v->kind == VAR_AUXILIARY) {
        for (int i = 0; i < p->nderivations; i++) {
            const Update *u = p->derivation[i].update;
            if (draws_it(u, v) && !(u->group_move && u->group_move->by == v)) return true;
        }
        return false;
    }
    for (int i = 0; i < p->nderivations; i++)
        if (p->derivation[i].update->imputes && p->derivation[i].update->block[0] == v) return true;
    return false;
}

// What the draws have besides unknowns: definitions of unknowns, and predictions.
static void find_computed(Pages *p)
{
    for (int i = 0; i < p->g->nvars; i++) {
        const Var *v = p->g->vars[i];
        const bool shown = (v->kind == VAR_DERIVED || v->kind == VAR_PREDICTED) && !v->on_request && !v->hidden;
        for (const Site *s = shown ? v->sites : NULL; s; s = s->next) {
            if (s->when || s->again || (!s->value && (s->within || !s->dist))) continue;
            const Loops over = s->plates;
            Notation names = notation_new(p->g), *t = &names;
            notation_open(t, &over);
            const Formula *law = s->value ? formula_of(t, s->value) : call_of(t, s->dist->name, s->nsample, s->args);
            row_new(p->arena, &p->computed,
                    (Row){.formula = ROW(t, formula_of(t, ex_ref(s->var, s->n, s->subscript)),
                                         formula_sign(t, s->value ? SIGN_EQUALS : SIGN_FOLLOWS), law),
                          .over = formula_loops(t, &over),
                          .line = span_line(s->span)});
            notation_close(t, &over);
        }
    }
}

Pages *pages_new(const Program *program, const char *path)
{
    Graph *g = (Graph *)program->g;  // formulas make expressions, nothing else
    Pages *p = NEW(g->arena, Pages);
    *p = (Pages){.program = program, .g = g, .arena = g->arena, .file = source_name(g->arena, path), .nderivations = program->nupdates};
    p->title = g->model->name && strcmp(g->model->name, "model") != 0 ? g->model->name : p->file;  // a model without a name is called so
    p->derivation = NEW_N(p->arena, Derivation, p->nderivations);
    for (int i = 0; i < p->nderivations; i++) derivation_make(p, &p->derivation[i], &program->updates[i], i + 1);
    p->unknown = NEW_N(p->arena, Unknown, g->nvars);
    enum { OWN, BROUGHT_IN, IMPUTED, GROUPS };
    for (int group = 0; group < GROUPS; group++)
        for (int i = 0; i < g->nvars; i++) {
            const Var *v = g->vars[i];
            const int of = v->kind == VAR_AUXILIARY ? BROUGHT_IN : v->kind == VAR_DATA || v->kind == VAR_LET ? IMPUTED : OWN;
            if (of != group || !is_shown(p, v)) continue;
            Unknown *u = &p->unknown[p->nunknowns++];
            u->v = v;
            u->line = span_line(v->span);
            find_terms(p, u, v->kind == VAR_PART ? v->part_of : v);
            for (int k = 0; k < p->nderivations; k++) {
                if (!draws_it(p->derivation[k].update, v)) continue;
                ROOM(p->arena, u->by, u->n, u->size);
                u->by[u->n++] = &p->derivation[k];
                if (!u->line) u->line = p->derivation[k].line;
            }
        }
    find_computed(p);
    for (int i = 0; i < p->nunknowns; i++)
        for (int k = 0; k < p->unknown[i].n; k++) find_rest(p, p->unknown[i].by[k]);
    for (int i = 0; i < p->nderivations; i++) find_rest(p, &p->derivation[i]);
    return p;
}

// The update that draws it in each sweep, without a choice of NUTS; or the first that draws it at all.
static const Derivation *main_update(const Unknown *u)
{
    for (int i = 0; i < u->n; i++) {
        const Update *s = u->by[i]->update;
        if (s->when != WITH_GRADIENTS && !s->group_move && !proposal_of(s)) return u->by[i];
    }
    return u->by[0];
}

void unknowns_print(FILE *out, const Pages *p)
{
    int name = 0, law = 0;
    enum { WIDEST = 60 };
    for (int i = 0; i < p->nunknowns; i++) {
        const Description *d = main_update(&p->unknown[i])->update->description;
        const int n = (int)strlen(p->unknown[i].v->name), m = (int)(strlen(d->what) + 1 + strlen(d->brief));
        if (n > name) name = n;
        if (m > law && m <= WIDEST) law = m;
    }
    for (int i = 0; i < p->nunknowns; i++) {
        const Unknown *u = &p->unknown[i];
        const Derivation *by = main_update(u);
        const Description *d = by->update->description;
        const char *text = arena_printf(p->arena, "%s%s%s", d->what, *d->brief == ':' ? "" : " ", d->brief);
        bool selected = false, moved = false;
        for (int k = 0; k < u->n; k++) {
            selected |= u->by[k]->update->when == WITH_GRADIENTS;
            moved |= u->by[k]->update->group_move != NULL;
        }
        fprintf(out, "%-*s   %-*s   %s%s%s%s\n", name, u->v->name, law, text, by->brief, moved ? ", group moves" : "",
                selected && by->update->when != WITH_GRADIENTS ? ", or NUTS" : "", by->update->imputes ? ", if values are missing" : "");
    }
}
