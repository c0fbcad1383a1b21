// existence.c -- which elements of a variable have a statement: the others do not exist.
//
//   before   z[i] ~ normal(0, 1) over i in 2:N, z of N elements
//   after    z[k] where 2 <= k
//
// Needs: factors.     Gives: a condition for each element; find_domains keeps it in Var.exists.
#include "existence.h"
#include "../terms/var.h"
#include "../terms/conditions.h"
#include "../terms/reads.h"
#include "coverage.h"

bool has_all_elements(Graph *g, const Var *v)
{
    Index *element[MAX_RANK];
    var_element(g, (Var *)v, element);
    return var_domain(g, v, element) == NULL;
}

// Elements of v that exist: those that a `~` statement names, also one whose place an augmentation took. NULL: all.
Expr *var_domain(Graph *g, const Var *v, Index *const *element)
{
    Expr *any = NULL;
    if (v->parts) return NULL;
    for (const Factor *f = g->factors; f; f = f->next) {
        if (!f->value || f->value->kind != EX_REF || f->value->var != v) continue;
        Expr *here = NULL;
        Expr *condition = f->plates.guard;
        bool whole = true;
        for (int k = 0; k < f->value->nargs; k++) {
            Expr *s = f->value->args[k], *key = ex_index(element[k]);
            const Index *plate = NULL;
            Expr *ahead = ex_num(0);  // j + 1 over j in 1:J - 1
            for (int i = 0; i < f->plates.n && !plate; i++) {
                ahead = ex_sub(s, ex_index(f->plates.index[i]));
                if (ahead->kind == EX_NUM) plate = f->plates.index[i];
            }
            bool fixed = false;  // by an earlier subscript: a[j, j + 1]
            for (int i = 0; i < k && plate; i++) {
                if (!ex_mentions_index(f->value->args[i], plate)) continue;
                fixed = ex_sub(f->value->args[i], ex_index((Index *)plate))->kind == EX_NUM;
                plate = NULL;
            }
            if (!plate) {
                bool varies = false;
                for (int i = 0; i < f->plates.n; i++) varies |= ex_mentions_index(s, f->plates.index[i]);
                if (varies && !fixed) return element_exists(g, (Var *)v, element);  // a gather
                here = ex_both(here, ex_call2("==", s, key));
                whole = false;
                continue;
            }
            Expr *tests[2] = {NULL, NULL};
            Expr *first = ex_add2(plate->lo, ahead), *last = ex_add2(plate->hi, ahead);
            if (!ex_is_num(first, 1)) tests[0] = ex_call2("<=", first, s);
            if (last != v->dim[k]) tests[1] = ex_call2("<=", s, last);
            for (int i = 0; i < 2; i++)
                if (tests[i]) {
                    here = ex_both(here, tests[i]);
                    whole = false;
                }
        }
        if (condition) {
            here = ex_both(here, condition);
            whole = false;
        }
        if (whole) return NULL;
        for (int k = 0; k < f->value->nargs; k++)
            for (int i = 0; i < f->plates.n; i++) {
                Expr *s = f->value->args[k], *index = ex_index(f->plates.index[i]), *ahead = ex_sub(s, index);
                if (ahead->kind == EX_NUM)
                    here = ex_replace(ex_replace(here, s, ex_index(element[k])), index, ex_sub(ex_index(element[k]), ahead));
            }
        for (int i = 0; i < f->plates.n; i++)
            // slices of another loop: as a gather
            if (ex_mentions_index(here, f->plates.index[i])) return element_exists(g, (Var *)v, element);
        any = ex_either(any, here);  // once, of a statement and what an augmentation made of it
    }
    return condition_left(any);
}

// Latents of rows that a missing value lets in or leaves out are there in some draws, and have the number of the last of these in the
// others.
static bool test_may_change(const Var *v, void *with)
{
    (void)with;
    return (v->kind != VAR_DATA && v->kind != VAR_LET) || v->response;
}

bool find_domains(Graph *g)
{
    for (int i = 0; i < g->nvars; i++) {
        Var *v = g->vars[i];
        const bool drawn = v->kind == VAR_PARAMETER || v->kind == VAR_LATENT;
        v->partial |= (var_unknown(v) && v->sites) ||
                      ((v->kind == VAR_SERIES || v->kind == VAR_DERIVED || v->kind == VAR_PREDICTED) && v->known.holes);
        if (!(drawn || v->kind == VAR_AUXILIARY || (v->kind == VAR_DATA && v->response)) ||
            (v->rank == 0 && v->known.coverage && !v->known.holes))
            continue;
        var_element(g, v, v->own);
        v->exists = var_domain(g, v, v->own);
        v->partial |= v->exists && (drawn || v->rank == 0 || v->known.holes ||
                                    (v->kind == VAR_AUXILIARY && !ex_any_var(v->exists, test_may_change, NULL)));
    }
    return true;
}

void domains_print(FILE *out, const Graph *g)
{
    for (int i = 0; i < g->nvars; i++) {
        const Var *v = g->vars[i];
        if (!v->exists) continue;
        fprintf(out, "%s%s", v->name, v->rank ? "[" : "");
        for (int k = 0; k < v->rank; k++) fprintf(out, "%s%s", k ? ", " : "", v->own[k]->name);
        fprintf(out, "%s where ", v->rank ? "]" : "");
        ex_print(out, v->exists);
        fputc('\n', out);
    }
}

Expr *exists_at(const Var *v, Index *const *element)
{
    Expr *e = v->exists;
    for (int k = 0; e && k < v->rank; k++) e = ex_replace_index(e, v->own[k], ex_index(element[k]));
    return e;
}
