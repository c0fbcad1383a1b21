// describe_normal.c -- a joint normal: its precision and its shift term by term, how it is drawn, and what is drawn before it or with it.
#include "../terms/plates.h"
#include "../algebra/band.h"
#include "../algebra/few_rows.h"
#include "../algebra/innovations.h"
#include "../updates/whiten.h"
#include "../updates/scales.h"
#include "describe_parts.h"

// Whether a term of two elements of one array meets each pair twice, as (j, k) and as (k, j), with the same coefficient.
static bool meets_twice(const BlockTerm *t)
{
    const Expr *a = t->ref[0], *b = t->ref[1];
    int at = -1, differ = 0;
    for (int k = 0; a->var == b->var && k < a->nargs; k++)
        if (a->args[k] != b->args[k]) {
            at = k;
            differ++;
        }
    if (differ != 1 || a->args[at]->kind != EX_INDEX || b->args[at]->kind != EX_INDEX || t->loops.guard) return false;
    Index *j = a->args[at]->index, *k = b->args[at]->index;
    if (j->lo != k->lo || j->hi != k->hi) return false;
    Expr *other = ex_index(index_new(j->name, j->lo, j->hi)),
         *e = ex_replace_index(ex_replace_index(t->coefficient, j, other), k, ex_index(j));
    return ex_replace(e, other, ex_index(k)) == t->coefficient;
}

static int innovation_count(const Update *s)
{
    int n;
    innovation_vars(s->gaussian.innovations, &n);
    return n;
}

static const char *band_elements(Graph *g, const Update *s)
{
    const Band *b = s->gaussian.band;
    const char *size = ex_is_num(b->width, 1) ? "" : arena_printf(g->arena, ", %s elements at each", shown(g, b->width));
    const char *panels = b->chain[0].npanel ? arena_printf(g->arena, "; a chain for each of %s", shown(g, b->panels)) : "";
    const int nborder = s->nblock - (s->gaussian.innovations ? innovation_count(s) : b->nchain);
    const char *border = nborder ? arena_printf(g->arena, "; %s integrated over the chain, then the chain given %s",
                                                nborder > 1 ? "the others" : b->var[b->nchain]->name, nborder > 1 ? "them" : "it")
                                 : "";
    const char *lanes = ex_is_num(b->width, 1) && b->lag == 1 ? "" : "; on a GPU one lane for each chain";
    return arena_printf(g->arena, "a band along %s places%s, lag %d: one Cholesky factorisation of the band (Rue 2001)%s%s%s",
                        shown(g, b->length), size, b->lag, panels, border, lanes);
}

// A line for an entry of the precision, or of the shift.
static void term_line(Graph *g, Description *d, const BlockTerm *t)
{
    const char *tail = t->loops.n ? "   over " : t->loops.guard ? "   " : "";
    const bool square = t->degree == 2;
    const double times = !square ? 1 : t->ref[0] == t->ref[1] || meets_twice(t) ? -2 : -1;
    Statement as = {.name = square ? d->J : d->h,
                    .nleft = t->degree,
                    .left = {t->ref[0], t->ref[1]},
                    .relation = "+=",
                    .over = t->loops,
                    .factor = t->factor};
    as.right = ex_tidy(ex_mul2(ex_num(times), t->coefficient));
    name_apart(g, &as.over, (Expr * *[]){&as.left[0], &as.left[1], &as.right}, 3);
    const char *over = loops_text(g, &as.over);
    if (square)
        add_line(g, d,
                 arena_printf(g->arena, "%s[%s, %s] += %s%s%s", d->J, shown(g, as.left[0]), shown(g, as.left[1]),
                              shown_over(g, as.right, &as.over), tail, over),
                 as);
    else
        add_line(g, d,
                 arena_printf(g->arena, "%s[%s] += %s%s%s", d->h, shown(g, as.left[0]), shown_over(g, as.right, &as.over), tail, over), as);
}

// How it is drawn: the first sentence, from the form of the precision.
static const char *block_elements(Graph *g, const Update *s)
{
    const char *last = s->block[s->nblock - 1]->name;
    if (s->gaussian.sparse && s->gaussian.listed)
        return "from rows of few entries, on a CPU: by a factor of the sparse precision (CHOLMOD), by conjugate gradients "
               "(Nishimura and Suchard 2022) or dense, whichever is predicted to take the least time (--profile prints that). "
               "The updates below replace it on a GPU, and where few rows take less";
    if (s->gaussian.sparse)
        return arena_printf(
            g->arena,
            "one Cholesky factorisation of a sparse precision, by CHOLMOD, a library, in an order that keeps it sparse, or dense where "
            "that is less work; on a CPU (Rue 2001). The updates below replace it on a GPU, and where data make it more than %d times "
            "their work",
            s->gaussian.most_work);
    if (s->gaussian.band) return band_elements(g, s);
    if (s->gaussian.arrow)
        return arena_printf(g->arena,
                            "an arrow-shaped precision: the elements of %s are independent given the others; %s is integrated out, "
                            "the others are drawn by Cholesky, then %s in parallel",
                            last, last, last);
    return s->gaussian.nbatch ? "one Cholesky for each element of the leading dimensions, in parallel"
                              : "one Cholesky factorisation, no inverse";
}

// Conditioned on a sum that is 0.
static void plane_line(Graph *g, Description *d, const Update *s)
{
    d->brief = "~ joint normal, their sum 0";
    const char *x = d->x, *J = d->J,
               *plane =
                   arena_printf(g->arena, "conditioned on the sum 0: %s - %s^-1 1 (1'%s^-1 1)^-1 1'%s  (Rue and Held 2005)", x, J, J, x);
    add_line(g, d, plane, statement_words(plane));
    d->elements = arena_printf(g->arena,
                               s->gaussian.diagonal ? "each element, then the correction that makes their sum 0%s"
                                                    : "one Cholesky factorisation%s, no inverse",
                               s->gaussian.nbatch ? "; for each element of the leading dimensions, in parallel" : "");
}

// What is drawn otherwise where rows are few.
static void rows_line(Graph *g, Description *d, const Update *s)
{
    if (s->gaussian.rows)
        d->elements = "one Cholesky factorisation, no inverse; with fewer rows than coefficients a system of rows by rows (Bhattacharya, "
                      "Chakraborty and Mallick 2016)";
    if (s->gaussian.rows && s->gaussian.rows->listed)
        d->elements = arena_printf(g->arena,
                                   "%s; on a CPU, where that is predicted to take less time (--profile prints it), from rows as they are: "
                                   "conjugate gradients (Nishimura and Suchard 2022), or a sparse factor",
                                   d->elements);
    else if (!s->gaussian.arrow && !s->gaussian.sparse && s->gaussian.no_rows)
        d->elements = arena_printf(g->arena, "%s, however few the rows: %s", d->elements, s->gaussian.no_rows);
}

void describe_block(Graph *g, Description *d, const Update *s)
{
    static const char *const precision[] = {"J", "Q", "Prec", NULL}, *const shift[] = {"h", "r", "shift", NULL},
                             *const vector[] = {"v", "b", "block", NULL};
    d->J = free_letter(g, precision);
    d->h = free_letter(g, shift);
    d->x = free_letter(g, vector);
    const char *normal = arena_printf(g->arena, "~ normal with precision %s and shift %s, mean %s^-1 %s", d->J, d->h, d->J, d->h);
    const char *drawn = s->gaussian.innovations ? s->gaussian.band->var[0]->name : NULL;
    for (int i = 1; drawn && i < s->nblock - innovation_count(s) + 1; i++)
        drawn = arena_printf(g->arena, "%s, %s", drawn, s->gaussian.band->var[i]->name);
    describe_law(g, d, s->nblock > 1 ? arena_printf(g->arena, "(%s)", d->subject) : d->subject,
                 drawn ? arena_printf(g->arena, "through (%s) %s", drawn, normal) : normal);
    d->brief = "~ joint normal";
    for (const BlockTerm *t = s->gaussian.terms; t; t = t->next) term_line(g, d, t);
    Loops loops;
    Expr *ref, *value;
    for (int k = 0; s->gaussian.innovations && innovation_at(s->gaussian.innovations, k, &loops, &ref, &value); k++) {
        Statement as = statement_becomes(NULL, ref, ex_tidy(value));
        as.over = loops;
        add_line(g, d,
                 arena_printf(g->arena, "%s = %s%s%s", shown(g, ref), shown_over(g, as.right, &loops), loops.n ? "   over " : "",
                              loops_text(g, &loops)),
                 as);
    }
    d->elements = block_elements(g, s);
    if (s->gaussian.on_plane) plane_line(g, d, s);
    rows_line(g, d, s);
}

// A slice given the white noise of a vector.
void describe_white(Graph *g, Description *d, const Update *s)
{
    const White *w = s->slice.white;
    d->subject = arena_printf(g->arena, "%s, with %s", d->subject, w->vector->name);
    add_line(
        g, d,
        arena_printf(g->arena, w->precision ? "with %s = %s + inverse(root') * noise, root = %s" : "with %s = %s + root * noise, root = %s",
                     shown(g, w->current), shown(g, w->mean), shown(g, w->root)),
        (Statement){.words = w->precision ? "with the mean and the root of the precision" : "with the mean and the root of the covariance",
                    .nleft = 1,
                    .left = {w->mean},
                    .relation = "and",
                    .right = w->root});
    d->method = arena_printf(g->arena, "%s, given the noise that %s is made of in place of %s (Yu and Meng 2011)", d->method,
                             w->vector->name, w->vector->name);
}

// What is drawn before a joint normal, which is integrated out.
void describe_scales(Graph *g, Description *d, const Update *s)
{
    const Scales *of = s->gaussian.scales;
    const char *names = "";
    for (int i = 0; of && i < of->n; i++) names = arena_printf(g->arena, "%s%s%s", names, i ? ", " : "", of->var[i]->name);
    if (of)
        d->method =
            arena_printf(g->arena,
                         "%s. On a CPU %s %s slice sampled before it, with the joint normal integrated out. Each trial takes a "
                         "factorisation; where a run measures, early in warm-up, that this gains little, it is done in fewer sweeps. Their "
                         "own updates follow in each",
                         d->method, names, of->n > 1 ? "are" : "is");
}

// What is accepted or not.
void describe_proposal(Graph *g, Description *d, const Update *s)
{
    const Proposal *of = s->gaussian.proposal;
    const Scales *scales = s->gaussian.scales;
    const char *names = "";
    for (int i = scales->n; i-- > 0;) names = arena_printf(g->arena, "%s%s%s", scales->var[i]->name, *names ? ", " : "", names);
    d->subject = arena_printf(g->arena, "%s, %s, proposed together", names, d->subject);
    d->brief = "~ joint normal, a proposal";
    for (int i = 0; i < of->n; i++) {
        const Loops l = plates_of_factor(of->of[i].factor);
        Expr *value = ex_tidy(of->of[i].value);
        add_line(g, d,
                 arena_printf(g->arena, "%s in place of %s%s", shown_over(g, value, &l), shown_over(g, of->of[i].density, &l),
                              shown_loops(g, &l)),
                 (Statement){.nleft = 1, .left = {value}, .relation = "in place of", .right = of->of[i].density, .over = l});
    }
    d->method = arena_printf(g->arena,
                             "%s; accepted by what the densities have besides the quadratics in their place, whose slopes and bends are "
                             "averages over warm-up (Gamerman 1997; Knorr-Held and Rue 2002)",
                             d->method);
    d->elements = arena_printf(g->arena,
                               "one Cholesky factorisation of a sparse precision, or a dense one where that is less work; on a CPU, unless "
                               "data make it more than %d times the work of going through its terms",
                               s->gaussian.most_work);
}
