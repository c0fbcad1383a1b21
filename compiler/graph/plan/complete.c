// complete.c -- joint normals, completed once it is known which elements exist: absent elements become independent standard normals. Then
// scales that change with a draw are found, and the way in which each block is drawn.
//
// Needs: find_domains.     Gives: absent terms, gaussian.scaled, gaussian.rows or listed, of each update that is a joint normal.
#include <math.h>
#include <string.h>
#include "complete.h"
#include "../conditional.h"
#include "../update.h"
#include "../terms/var.h"
#include "../terms/factor.h"
#include "../terms/reads.h"
#include "../model/existence.h"
#include "../algebra/polynomial.h"
#include "../algebra/block_terms.h"
#include "../algebra/few_rows.h"
#include "../algebra/sets.h"
#include "../updates/categories.h"
#include "../updates/scales.h"

// ---- scales of latents ----

// A bound that leaves the signs alone: 0 or infinite, whatever the data say.
static bool is_cone(const Expr *e)
{
    if (e->kind == EX_NUM) return e->number == 0 || isinf(e->number);
    return e->kind == EX_CALL && e->fn == FN_if_else && !ex_unknown(e->args[0]) && is_cone(e->args[1]) && is_cone(e->args[2]);
}

static Expr *without_bounds(Expr *e, const Var *z, bool *cone)
{
    Expr *rest = ex_num(0);
    for (int i = 0; i < (e->kind == EX_ADD ? e->nargs : 1); i++) {
        Expr *t = e->kind == EX_ADD ? e->args[i] : e;
        if (t->kind == EX_CALL && t->fn == FN_WITHIN && t->args[0]->kind == EX_REF && t->args[0]->var == z)
            *cone &= is_cone(t->args[1]) && is_cone(t->args[2]);
        else rest = ex_add2(rest, t);
    }
    return rest;
}

// What a latent z and the factors that read it are, as it is looked at.
typedef struct Scaled {
    Factor *home;  // of -w z^2/2; NULL: none yet
    Expr *weight, *latent;
    bool bounded;
} Scaled;

// Of z alone a factor may have -w z^2/2, and no linear term in z or the block.
static bool has_only_square(Graph *g, const Update *s, Var *z, Var **all, Factor *f, Scaled *found)
{
    if (!ex_mentions(f->log_density, z)) return false;  // through a series
    bool cone = true;
    Expr *e = without_bounds(f->log_density, z, &cone);
    found->bounded |= e != f->log_density;
    const Terms t = polynomial(g->arena, e, &(Unknowns){all, s->nblock + 1, false}, 2);
    if (!cone || t.failed) return false;
    for (int k = 0; k < t.n; k++) {
        const Term *m = &t.term[k];
        int nz = 0;
        for (int r = 0; r < m->degree; r++) nz += m->ref[r]->var == z;
        if (m->degree == 1) return false;
        if (m->degree != 2 || nz != 2) continue;
        if (found->home || m->ref[0] != m->ref[1] || m->loops.n > 0 || f->value != m->ref[0] || ex_unknown(m->coefficient) ||
            f->plates.guard)
            return false;
        found->home = f;
        found->latent = m->ref[0];
        found->weight = ex_mul2(ex_num(-2), m->coefficient);
    }
    return true;
}

// What a factor does to the block by itself.
typedef enum { UNSEEN, FREE, SHIFTS } ToBlock;

static ToBlock alone_of(Graph *g, const Update *s, const Factor *f)
{
    const Terms t = polynomial(g->arena, f->log_density, &(Unknowns){s->block, s->nblock, false}, 2);
    ToBlock alone = t.failed ? SHIFTS : FREE;
    for (int k = 0; k < t.n; k++)
        if (t.term[k].degree == 1) alone = SHIFTS;
    return alone;
}

// Whether all linear terms of the block are linear in z.
static bool shifts_by_latent(Graph *g, const Update *s, Var *z)
{
    for (const BlockTerm *t = s->gaussian.terms; t; t = t->next) {
        if (t->degree != 1) continue;
        const Terms c = polynomial(g->arena, t->coefficient, &(Unknowns){&z, 1, false}, 1);
        if (c.failed) return false;
        for (int k = 0; k < c.n; k++)
            if (c.term[k].degree != 1) return false;
    }
    return true;
}

// One latent an instance, in a box of plates.
static bool is_plain_box(const Scaled *found)
{
    const Loops *p = &found->home->plates;
    const Expr *z = found->latent;
    if (p->n != z->nargs) return false;
    for (int k = 0; k < z->nargs; k++)
        if (z->args[k] != ex_index(p->index[k]) || ex_mentions_index(p->index[k]->hi, p->index[0])) return false;
    return true;
}

// Latents z may be scaled together with the block's draw. Their only part in the model is then exp(-w z^2/2 + z * (a linear form of the
// block)) and a sign. Nothing else may have a linear term in the block (runtime/backends/linalg.h). It costs a sum of squares and mixes
// better.
static void is_scale_move(Graph *g, Update *s)
{
    const Reading of_block = factors_of_block(g, s->block, s->nblock);
    const int sums = block_sums(s->block, s->nblock);
    ToBlock *alone = arena_alloc(g->arena, sizeof *alone * (size_t)(of_block.n + 1));
    for (int i = 0; i < g->nvars && !s->gaussian.scaled; i++) {
        Var *z = g->vars[i];
        if (!var_unknown(z) || (z->kind != VAR_AUXILIARY && z->kind != VAR_LATENT) || z->discrete || isfinite(z->lower_number) ||
            isfinite(z->upper_number))
            continue;
        bool ok = true;
        Scaled found = {0};
        Var **all = NEW_N(g->arena, Var *, s->nblock + 1);
        for (int k = 0; k < s->nblock; k++) {
            all[k] = s->block[k];
            ok &= s->block[k] != z;
        }
        all[s->nblock] = z;
        const Reading of_z = factors_of(g, z);
        for (int q = 0; q < of_z.n && ok; q++) {
            Factor *f = of_z.factor[q];
            if (factor_counts_at(f, sums, false) && factor_mentions(f, z)) ok = has_only_square(g, s, z, all, f, &found);
        }
        if (!ok || !found.home || !found.bounded) continue;
        for (int q = 0; q < of_block.n && ok; q++) {
            const Factor *f = of_block.factor[q];
            if (!factor_counts_at(f, sums, false) || ex_mentions(f->log_density, z)) continue;
            if (alone[q] == UNSEEN) alone[q] = alone_of(g, s, f);
            ok = alone[q] == FREE;
        }
        if (!ok || !shifts_by_latent(g, s, z) || !is_plain_box(&found)) continue;
        s->gaussian.scaled = found.home;
        s->gaussian.scaled_latent = found.latent;
        s->gaussian.scaled_weight = found.weight;
    }
}

// ---- elements that do not exist ----

// A block holds all elements of its variables, also those without a statement.
static void add_absent(Graph *g, Update *s)
{
    BlockTerm **last = &s->gaussian.terms;
    while (*last) last = &(*last)->next;
    for (int i = 0; i < s->nblock; i++) {
        Var *v = s->block[i];
        Loops l = {.n = v->rank};
        Expr *element = var_element(g, v, l.index), *domain = exists_at(v, l.index);
        if (!domain) continue;
        l.guard = ex_call1("!", domain);
        const Factor *f = g->factors;
        while (!f->value || f->value->kind != EX_REF || f->value->var != v) f = f->next;
        BlockTerm *t = NEW(g->arena, BlockTerm);
        *t = (BlockTerm){
            .factor = f, .degree = 2, .ref = {element, element}, .coefficient = ex_num(-0.5), .loops = l, .span = v->span, .absent = true};
        *last = t;
        last = &t->next;
    }
}

// Slices move all vectors whose sum is 0; those without a statement have to stay somewhere.
static void add_absent_vectors(Graph *g, Update *s)
{
    Var *v = s->block[0];
    Part *p = NEW(g->arena, Part), **last = &s->conditional->density;
    p->loops.n = v->rank;
    Expr *element = var_element(g, v, p->loops.index), *domain = exists_at(v, p->loops.index);
    if (!domain || !*last) return;
    p->loops.guard = ex_call1("!", domain);
    p->factor = (*last)->factor;
    p->value = ex_mul2(ex_num(-0.5), ex_pow(element, 2));
    while (*last) last = &(*last)->next;
    *last = p;
}

bool complete_blocks(Graph *g)
{
    for (Update *s = g->updates; s; s = s->next) {
        if (s->kind == UPDATE_SLICE && s->block[0]->constraint == CONSTRAINT_SUM_TO_ZERO) add_absent_vectors(g, s);
        if (s->kind == UPDATE_CATEGORIES) complete_categories(g, s);
        if (s->kind != UPDATE_GAUSSIAN) continue;
        if (!s->gaussian.innovations) add_absent(g, s);
        const Scales *of = s->gaussian.scales;
        for (int i = 0; of && i < of->n; i++)
            // a slice of an element that is in no statement has no end
            if (of->var[i]->rank && of->var[i]->exists) s->gaussian.scales = NULL;
        if (s->gaussian.on_plane || s->gaussian.band) continue;
        if (s->gaussian.nbatch == 0 && s->does == DRAWS && !s->group_move && !s->gaussian.proposal) is_scale_move(g, s);
        if (s->gaussian.sparse) find_listed(g, s);
        else if (!s->group_move && !s->gaussian.proposal) find_rows(g, s);
    }
    return true;
}
