// describe.c -- an update in words and formulas, in the parameters of a textbook.
//
//   before   sigma: power_gamma, natural { a: -N - 2, b: -1/nu - 1/2*sum(i in 1:N, (y[i] - mu)^2) }, exponent -2
//   after    sigma^-2 ~ gamma(shape, rate)     shape = 1/2 + 1/2*N     rate = 1/nu + 1/2*sum(i in 1:N, (y[i] - mu)^2)
//
// Needs: the schedule.     Gives: lines for --explain and --emit=schedule, for the banner of an emitted program and for the comments above
// its kernels. Keeps: the graph, untouched. The textbook name of a family is its `law` in the stdlib.
#include "describe.h"
#include "../terms/factor.h"
#include "../terms/reads.h"
#include "../algebra/pairs.h"
#include "../rewrite/joined.h"
#include "../updates/collapsed.h"
#include "../updates/categories.h"
#include "select.h"
#include "show.h"
#include "data_requirements.h"
#include "describe_parts.h"

// Draws all elements along a chain of discrete unknowns together.
static bool along_chain(const Update *s)
{
    return s->kind == UPDATE_ENUM && !s->imputes &&
           (s->enumerate.at_once || (s->enumerate.by_messages && s->conditional->nbatch < s->conditional->var->rank));
}

// Chains that share a factor with that of s, and are given when it is drawn; NULL: none.
static const char *chains_beside(Graph *g, const Update *s)
{
    const char *names = NULL;
    const Var *v = s->block[0], *last = NULL;
    for (const Update *t = g->updates; t && along_chain(s); t = t->next) {
        const Var *w = t->block[0];
        if (w == v || w == last || !along_chain(t) || (t->joined && t->joined == s->joined && (s->nblock > 1 || t->nblock > 1)) ||
            (s->when == ON_CPU && t->when == ON_GPU) || (s->when == ON_GPU && t->when == ON_CPU))
            continue;
        bool both = false;
        for (const Factor *f = g->factors; f && !both; f = f->next)
            both = factor_counts(f, v, s->collapsed) && factor_mentions(f, v) && factor_mentions(f, w);
        if (!both) continue;
        last = w;  // a CPU and a GPU may have updates of their own for it
        names = names ? arena_printf(g->arena, "%s, %s", names, w->name) : w->name;
    }
    return names;
}

// What is summed out of the law of a parent in a tree, in words.
static const char *children_of(Graph *g, Var *v)
{
    Var **list = NEW_N(g->arena, Var *, g->nvars + 1);
    const int n = summed_out_of(g, &v, 1, v->summing.sums, list);
    const char *names = n ? list[0]->name : NULL;
    for (int i = 1; i < n; i++) names = arena_printf(g->arena, i == n - 1 ? "%s and %s" : "%s, %s", names, list[i]->name);
    return names;
}

// Several unknowns by the product of their values.
static void joined(Graph *g, Description *d, const Update *s)
{
    const Joined *j = s->joined;
    const char *names = s->block[0]->name, *elements = shown(g, ex_ref(j->var[0], j->product->rank, s->conditional->current->args));
    const bool chain = s->conditional->before, apart = j->nlinks > 1;
    for (int i = 1; i < s->nblock; i++) {
        names = arena_printf(g->arena, "%s%s%s", names, i + 1 < s->nblock ? ", " : " and ", s->block[i]->name);
        elements = arena_printf(g->arena, "%s, %s", elements, shown(g, ex_ref(j->var[i], j->product->rank, s->conditional->current->args)));
    }
    d->method =
        chain ? arena_printf(g->arena,
                             "all elements of %s together, as one chain of the combinations of their values: %s products of two "
                             "numbers an element%s, against %s for one after the other; on a GPU parallel in time",
                             names, shown(g, apart ? j->products : ex_pow(j->values, 2)),
                             apart ? ", sums over one after the other (Ghahramani and Jordan 1997)" : "", shown(g, j->in_turn))
              : arena_printf(g->arena,
                             "%s jointly: every combination of their values is weighed, %s an element, against %s for one after the other",
                             names, shown(g, j->values), shown(g, j->in_turn));
    if (j->where)
        d->method =
            arena_printf(g->arena, "%s. This is done where %s, on a GPU where %s; elsewhere they are drawn one after the other, below",
                         d->method, shown(g, j->where), shown(g, j->on_gpu));
    d->elements = chain ? "jointly" : "independent elements in parallel";
    d->because = s->reason;
    describe_law(g, d, arena_printf(g->arena, "(%s)", elements),
                 chain ? ": every combination of values weighed by its density, the whole chain together"
                       : ": every combination of values weighed by its density");
    d->law = arena_printf(g->arena, "P(%s = v) is proportional to its density at v, for all combinations v", elements);
    describe_density(g, d, s);
}

// ---- an update of each kind ----

static Description describe(Graph *g, const Update *s);

static void describe_exact(Graph *g, Description *d, const Update *s)
{
    const Conditional *c = s->conditional;
    const Law *law = c->family->law;
    d->method = arena_printf(g->arena, "exact draw: %s%s", c->truncated ? "truncated " : "", law ? law->dist : c->family->name);
    if (c->family->power && c->power != 1 && !c->array) d->method = arena_printf(g->arena, "%s, of its power %g", d->method, c->power);
    d->because = NULL;
    describe_family(g, d, c);
}

static void describe_own(Graph *g, Description *d, const Update *s)
{
    const Conditional *c = s->conditional;
    const Factor *f = c->own->factor;
    d->method = arena_printf(g->arena, "exact draw from its own distribution, %s%s: nothing else depends on it", f->dist->name,
                             f->truncated ? " between its ends" : "");
    d->because = c->because;
    const char *args = "";
    for (int i = 0; i < f->nargs; i++) args = arena_printf(g->arena, "%s%s%s", args, i ? ", " : "", shown(g, f->args[i]));
    const char *ends = "";
    if (f->truncated)
        ends = arena_printf(g->arena, ", from %s to %s", f->lower ? shown(g, f->lower) : "-inf", f->upper ? shown(g, f->upper) : "inf");
    describe_law(g, d, shown(g, f->value), arena_printf(g->arena, "~ %s(%s)%s", f->dist->name, args, ends));
    d->drawn = (DrawnFrom){.of = f->value, .dist = f->dist->name, .nargs = f->nargs, .args = f->args, .truncated = f->truncated};
}

static void describe_values(Graph *g, Description *d, const Update *s)
{
    const Conditional *c = s->conditional;
    if (s->nblock > 1) {
        joined(g, d, s);
        return;
    }
    d->method =
        s->enumerate.at_once
            ? "all elements together, parallel in time: products of matrices, and maps from each element to the next (Hassan, "
              "Sarkka and Garcia-Fernandez 2021)"
        : s->enumerate.by_messages && c->nbatch < c->var->rank
            ? "all elements together (Scott 2002): messages from the last element to the first, then each is drawn given the one before it"
            : "every value is weighed by its density";
    d->because =
        s->when == ON_CPU ? arena_printf(g->arena, "%s; on a CPU", s->reason)
        : s->when == ON_GPU
            ? arena_printf(g->arena, s->enumerate.at_once ? "%s; on a GPU" : "%s; on a GPU, where neighbours are drawn one after the other",
                           c->because)
        : s->enumerate.by_messages ? s->reason
                                   : c->because;
    if (s->enumerate.predictive) {
        d->method = "every value is weighed by its density, weights integrated out: by the counts of all other elements (Liu 1994)";
        d->elements = s->enumerate.group ? arena_printf(g->arena, "one after the other where %s is the same, else in parallel",
                                                        shown(g, s->enumerate.group))
                      : c->nbatch        ? d->elements
                                         : "one after the other";
        for (const Predictive *p = s->enumerate.predictive; p; p = p->next) {
            Expr *weight = ex_replace(p->ref, c->u, c->current);
            static const char counts[] = "the prior plus the counts of all others, over its sum";
            add_line(g, d, arena_printf(g->arena, "in place of %s: %s", shown(g, weight), counts),
                     (Statement){.words = "in place of", .nleft = 1, .left = {weight}, .relation = arena_printf(g->arena, ": %s", counts)});
        }
    }
    const char *below = c->var->summing.parent && s->over_sum ? children_of(g, c->var) : NULL;
    if (below)
        d->method = arena_printf(g->arena, "%s, with %s summed out of its law and drawn after it (Zhang and Poole 1994)", d->method, below);
    const char *beside = chains_beside(g, s);
    if (s->joined) d->because = arena_printf(g->arena, "%s; where sizes do not allow a joint draw with others", d->because);
    if (beside)
        d->method = arena_printf(g->arena, "%s. It alternates with %s: each of these chains whole, given the others", d->method, beside);
    describe_law(g, d, shown_element(g, c),
                 beside  ? arena_printf(g->arena, ": every value weighed by its density; the whole chain, alternating with %s", beside)
                 : below ? arena_printf(g->arena, ": every value weighed by its density, %s summed out", below)
                         : ": every value weighed by its density");
    d->law = arena_printf(g->arena, "P(%s = v) is proportional to its density at v, for v in %s:%s", d->what, shown(g, s->enumerate.lower),
                          shown(g, s->enumerate.upper));
    describe_density(g, d, s);
}

static void describe_pair(Graph *g, Description *d, const Update *s)
{
    const Conditional *c = s->conditional;
    const Pair *p = s->pair;
    const char *b = shown(g, p->coefficient->current);
    d->method = arena_printf(g->arena,
                             "exact draw of both: values are weighed with %s integrated out (Geweke 1996), which is normal given each", b);
    describe_law(g, d, arena_printf(g->arena, "(%s, %s)", shown_element(g, c), b),
                 arena_printf(g->arena, ": %s with %s integrated out, then %s", shown_element(g, c), b, b));
    d->brief = ": drawn together";
    for (const Part *q = p->part; q; q = q->next) {
        Expr *value = ex_replace(ex_mul2(q->value, ex_pow(p->coefficient->u, q->which % 3)), p->coefficient->u, p->coefficient->current);
        const char *at = q->which < 3 ? "" : arena_printf(g->arena, " at %d", p->first + q->which / 3 - 1);
        value = ex_tidy(value);
        add_line(g, d, arena_printf(g->arena, "log density%s += %s%s", at, shown_over(g, value, &q->loops), shown_loops(g, &q->loops)),
                 statement_adds(*at ? at + 1 : NULL, value, &q->loops, q->factor));
    }
}

static void describe_by_density(Graph *g, Description *d, const Update *s)
{
    const Conditional *c = s->conditional;
    const bool slice = s->kind == UPDATE_SLICE;
    d->method = slice ? "slice sampling (Neal 2003)"
                      : "random-walk Metropolis, its width adapted in warm-up towards accepting 0.44 (Gelman, Roberts and Gilks 1996)";
    d->because = c->because;
    const char *without = s->without ? arena_printf(g->arena, ", %s integrated out", s->without->plate->block[0]->name) : "";
    describe_law(g, d, shown_element(g, c),
                 arena_printf(g->arena, "%s%s", slice ? ": slice sampled" : ": random-walk Metropolis", without));
    d->law = arena_printf(g->arena, "%s has the density below, up to a constant", d->what);
    describe_density(g, d, s);
}

static void describe_elliptical(Graph *g, Description *d, const Update *s)
{
    const Conditional *c = s->conditional;
    d->method =
        "elliptical slice sampling (Murray, Adams and MacKay 2010): the vector is rotated towards a draw from its prior, by an angle "
        "from a slice of the rest of its density";
    d->elements = c->var->rank > 1 ? "each vector whole, one vector after the other" : "jointly";
    describe_law(g, d, shown_element(g, c), ": elliptical slice sampled as a whole");
    d->law = arena_printf(g->arena, "%s has its prior times the density below, up to a constant", d->what);
    describe_density(g, d, s);
}

static void describe_gradients(Graph *g, Description *d, const Update *s)
{
    static const char *const words[] = {
#define METRIC(id, word, what) what,
#include "../../front/methods.def"
    };
    const char *metric = words[s->nuts.metric];
    if (s->nuts.steps) {
        d->method = arena_printf(g->arena,
                                 "Hamiltonian Monte Carlo (Neal 2011): trajectories of %d leapfrog steps, in "
                                 "coordinates without bounds; %s in warm-up",
                                 s->nuts.steps,
                                 arena_printf(g->arena, s->nuts.step > 0 ? "the %s is adapted" : "step size and %s are adapted", metric));
        if (s->nuts.anneal > 1)
            d->method = arena_printf(g->arena, "%s, in the first two thirds of which the temperature falls from %g to 1", d->method,
                                     s->nuts.anneal);
    } else if (s->nuts.chees)
        d->method = arena_printf(g->arena,
                                 "ChEES-HMC (Hoffman, Radul and Sountsov 2021): trajectories in "
                                 "coordinates without bounds, of one length for all chains; length, step size and metric are adapted in "
                                 "warm-up from all of them, the step size towards accepting %g",
                                 s->nuts.accept);
    else
        d->method = arena_printf(g->arena,
                                 "NUTS (Hoffman and Gelman 2014; Betancourt 2017): trajectories in "
                                 "coordinates without bounds; step size and %s are adapted in warm-up, towards accepting %g",
                                 metric, s->nuts.accept);
    describe_law(g, d, s->nblock > 1 ? arena_printf(g->arena, "(%s)", d->subject) : d->subject,
                 s->nblock > 1 ? ": drawn jointly by Hamiltonian Monte Carlo" : ": drawn by Hamiltonian Monte Carlo");
    d->law = arena_printf(g->arena, "%s has the density below, up to a constant", d->what);
    for (int i = 0; i < s->nuts.n; i++) {
        const Factor *f = s->nuts.factor[i];
        const Loops l = plates_of_factor(f);
        add_line(g, d, arena_printf(g->arena, "log density += %s%s", shown_over(g, f->log_density, &l), shown_loops(g, &l)),
                 statement_adds(NULL, f->log_density, &l, f));
    }
    d->elements = "jointly";
}

static void describe_categories(Graph *g, Description *d, const Update *s)
{
    const Categories *t = s->categories;
    const Description inner = describe(g, t->draw);
    t->draw->description = arena_copy(g->arena, &inner, sizeof inner);
    d->method = "joint normal, one category after the other, given Polya-Gamma latents that each category draws anew (Polson, Scott and "
                "Windle 2013)";
    describe_law(g, d, s->nblock > 1 ? arena_printf(g->arena, "(%s)", d->subject) : d->subject,
                 ": joint normals, one category after the other");
    d->law = arena_printf(g->arena, "for %s in %s:%s", t->current->name, shown(g, t->lo), shown(g, t->hi));
    for (const Softmax *m = t->softmax; m; m = m->next) {
        const Loops l = plates_of_factor(m->factor);
        Expr *at_row = ex_ref(m->latent, m->offset->nargs, m->offset->args), *tilt = ex_sub(m->own, m->offset);
        add_line(g, d,
                 arena_printf(g->arena, "%s ~ polya_gamma(%s, %s)%s", shown(g, at_row), shown_over(g, m->count, &l),
                              shown_over(g, tilt, &l), shown_loops(g, &l)),
                 (Statement){
                     .nleft = 1, .left = {at_row}, .relation = "~", .dist = "polya_gamma", .right = m->count, .right2 = tilt, .over = l});
    }
    for (int i = 0; i < inner.n; i++) add_line(g, d, inner.line[i], inner.statement[i]);
    if (t->shift) {
        const Description all = describe(g, t->shift);
        t->shift->description = arena_copy(g->arena, &all, sizeof all);
        const char *says =
            arena_printf(g->arena, "then a location move adds %s to all categories (Liu and Sabatti 2000): %s", all.what, t->shift->reason);
        add_line(g, d, says, statement_words(says));
        for (int i = 0; i < all.n; i++) add_line(g, d, all.line[i], all.statement[i]);
    }
    d->elements = inner.elements;
}

static void describe_gaussian(Graph *g, Description *d, const Update *s)
{
    d->method = "joint normal";
    describe_block(g, d, s);
    describe_scales(g, d, s);
}

static Description describe(Graph *g, const Update *s)
{
    static void (*const kinds[])(Graph *, Description *, const Update *) = {
#define UPDATE(id, name, describe, lower, what) [UPDATE_##id] = describe_##describe,
#include "../updates.def"
    };
    Description d = {.subject = "", .because = s->reason};
    for (int i = 0; i < s->nblock; i++) d.subject = arena_printf(g->arena, "%s%s%s", d.subject, i ? ", " : "", s->block[i]->name);
    const Conditional *c = s->conditional;
    if (c && c->var->rank)
        d.elements = c->array || c->nbatch == c->var->rank ? "conditionally independent, in parallel" : "coupled, one after the other";
    if (c) ex_reserve(c->var->rank, c->element);
    ex_reserve_variables(g->nvars, g->vars);
    kinds[s->kind](g, &d, s);
    if (s->group_move) describe_group_move(g, &d, s);
    if (proposal_of(s)) describe_proposal(g, &d, s);
    if (white_of(s)) describe_white(g, &d, s);
    ex_reserve(0, NULL);
    ex_reserve_variables(0, NULL);
    return d;
}

// Of an update that does not draw.
static void for_mode(Graph *g, const Update *s, Description *d)
{
    if (s->does == EXPECTS) {
        d->method = s->kind == UPDATE_ENUM ? "expectation: the probability of each value given the parameters"
                                           : "expectation: of the statistics that the parameters depend on, given these";
        d->because = NULL;
        return;
    }
    if (s->kind == UPDATE_EXACT)
        d->method = arena_printf(g->arena, "maximum in closed form: %s%s", s->conditional->truncated ? "truncated " : "",
                                 s->conditional->family->name);
    else if (s->kind == UPDATE_GAUSSIAN) d->method = "maximum in closed form: the mean of the joint normal";
    else {
        d->method = "maximised numerically, one number at a time (golden sections, Brent 1973)";
        d->is = d->brief = ": maximised numerically";
    }
}

bool describe_updates(Graph *g)
{
    for (Update *s = g->updates; s; s = s->next) {
        Description d = describe(g, s);
        if (s->does != DRAWS) for_mode(g, s, &d);
        s->description = arena_copy(g->arena, &d, sizeof d);
    }
    return true;
}

void plan_print(FILE *out, const Graph *g)
{
    schedule_print(out, g);
    requirements_print(out, g);
}
