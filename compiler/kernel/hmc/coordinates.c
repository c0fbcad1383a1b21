// coordinates.c -- the coordinates of a block, end to end, and where derivatives by its elements are added.
#include "hmc.h"

int at_block(const HmcBlock *m, const Var *v)
{
    int i = 0;
    while (m->update->block[i] != v) i++;
    return i;
}

// Of a variable of a series; else NULL.
Var *adjoint_of(const HmcBlock *m, const Var *v)
{
    for (int i = m->update->nblock; i < m->moving.n; i++)
        if (m->moving.var[i] == v) return m->adjoint[i];
    return NULL;
}

const Tied *tied_of(const HmcBlock *m, const Var *v) { return &m->tied[at_block(m, v)]; }

Expr *coordinates_of(const HmcBlock *m, const Var *v)
{
    const Tied *t = tied_of(m, v);
    Expr *n = t->slope ? t->length : ex_num(1);
    for (int k = 0; k < (t->slope ? t->nbatch : v->rank); k++) n = ex_mul2(n, v->dim[k]);
    return n;
}

// In each kernel, where the variables begin in the coordinates.
void put_offsets(HmcBlock *m)
{
    Lower *p = m->p;
    Expr *at = ex_num(0);
    for (int i = 0; i < m->update->nblock; i++) {
        m->offset[i] = at;
        if (at->kind != EX_NUM) {
            Var *local = local_named(p->g->arena, words(p, "at_%s", m->update->block[i]->name));
            local->base = BASE_INT;
            put_let(p, NULL, local, at, "long")->let.spare = true;
            m->offset[i] = local_ref(local);
        }
        at = ex_add2(m->offset[i], coordinates_of(m, m->update->block[i]));
    }
}

// The element of an array over the coordinates that belongs to v[at...].
Expr *coordinate(const HmcBlock *m, Var *array, const Var *v, Expr *const *at)
{
    Expr *flat = v->rank ? at[0] : ex_num(1);
    for (int k = 1; k < v->rank; k++) flat = ex_add2(ex_mul2(ex_sub(flat, ex_num(1)), v->dim[k]), at[k]);
    Expr *sub = ex_add2(m->offset[at_block(m, v)], flat);
    return ex_ref(array, 1, &sub);
}

Expr *of_ref(const HmcBlock *m, Var *array, const Expr *ref) { return coordinate(m, array, ref->var, ref->args); }

// The same, to be written to: its subscripts stay apart, since one may be the group of a loop.
Place gradient_place(const HmcBlock *m, const Expr *ref)
{
    Var *own = adjoint_of(m, ref->var);
    if (!own) own = tied_of(m, ref->var)->slope;
    if (own) return (Place){.array = own, .n = 1, .sub = {{.of = own, .n = ref->nargs, .at = ref->args}}};
    Expr *offset = m->offset[at_block(m, ref->var)];
    if (ref->nargs && ex_is_num(offset, 0)) offset = NULL;
    return (Place){.array = m->gradient, .n = 1, .sub = {{.offset = offset, .of = ref->var, .n = ref->nargs, .at = ref->args}}};
}

// All elements of v that exist, as loops; returns the element.
Expr *all_elements(const Var *v, Loops *l)
{
    *l = (Loops){.n = v->rank, .guard = v->exists};
    Expr *at[MAX_RANK];
    for (int k = 0; k < v->rank; k++) at[k] = ex_index(l->index[k] = v->own[k]);
    return ex_ref((Var *)v, v->rank, at);
}

Node *each_element(HmcBlock *m, const Expr *element, const Loops *l)
{
    return enter_nest(m->p, NODE_NEST, l, element->nargs, element->args, NULL);
}

// What an element's coordinate is made of must be known, by derivatives too, before the element is.
bool is_simple(const HmcBlock *m, const Factor *f, Expr *e)
{
    const Loops l = f->plates;
    for (int i = m->update->nblock; i < m->moving.n; i++)
        if (ex_reads(e, m->moving.var[i])) return false;
    Factor of = *f;
    Derivative *terms;
    const char *why;
    of.log_density = e;
    return !needs_own_array(e, &l) && derivatives(m->p->g, &of, m->update->block, m->update->nblock, &terms, &why);
}

bool has_derivatives(const HmcBlock *m, const Factor *f, Expr *e)
{
    Factor of = *f;
    Derivative *terms;
    const char *why;
    of.log_density = e;
    return derivatives(m->p->g, &of, m->update->block, m->update->nblock, &terms, &why);
}

Expr *like(Var *array, const Expr *element) { return ex_ref(array, element->nargs, element->args); }

bool reads_block(const HmcBlock *m, const Expr *e)
{
    for (int i = 0; i < m->update->nblock; i++)
        if (ex_reads(e, m->update->block[i])) return true;
    return false;
}

bool is_one_element(const Expr *ref)
{
    for (int k = 0; k < ref->nargs; k++)
        if (ref->args[k]->kind != EX_NUM) return false;
    return true;
}

// An instance of the plates has this element for its own: each index of the plates is one subscript, and there are no others.
bool is_own(const Expr *ref, const Loops *plates)
{
    if (ref->nargs != plates->n || plates->n == 0) return false;
    for (int i = 0; i < plates->n; i++) {
        int found = 0;
        for (int k = 0; k < ref->nargs; k++) found += ref->args[k]->kind == EX_INDEX && ref->args[k]->index == plates->index[i];
        if (found != 1) return false;
    }
    return true;
}

bool is_moved(const HmcBlock *m, const Var *v)
{
    for (int i = 0; i < m->update->nblock; i++)
        if (m->update->block[i] == v) return true;
    return false;
}

// An array of the block: where no other block is updated by HMC, it needs no names of unknowns.
const char *array_name(const HmcBlock *m, const char *what)
{
    int blocks = 0;
    for (const Update *o = m->p->g->updates; o; o = o->next) blocks += o->kind == UPDATE_NUTS;
    return blocks == 1 ? what : words(m->p, "%s_%s", what, m->stem);
}
