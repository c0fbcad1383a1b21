// distances.c -- rows that are classified by distances: the log density of a value is the square of a distance, and elements of tables.
//
//   weigh c[i] in 1:K                              of_value[x] + times*sum(j, sum(l in j:p, root[x, j, l]*(row[i, l] - centre[x, l]))^2)
//
// Needs: kernels whose densities have become tables.     Gives: node->weigh.distances.     Keeps: the body, which says the same.
#include "lower.h"

// The log density of a value x, when all of it is: of_value[x] + times*sum(j, sum(l in j:p, root[x, j, l]*(row[i, l] - centre[x, l]))^2).
// On a GPU a routine of its own weighs the values of several rows at a time (classify.h).
static bool distance(const Expr *e, Expr *weighed, const Index *i, Distances *out)
{
    if (e->kind != EX_REDUCE || e->fn != FN_sum || !ex_is_num(e->args[0], 1)) return false;
    Index *j = index_new("j", e->args[0], e->args[1]);
    const Expr *square = ex_open(e, j);
    if (square->kind != EX_POW || square->number != 2 || square->args[0]->kind != EX_REDUCE) return false;
    const Expr *z = square->args[0];
    if (z->fn != FN_sum || !is_index(z->args[0], j) || z->args[1] != e->args[1]) return false;
    Index *l = index_new("l", z->args[0], z->args[1]);
    const Expr *product = ex_open(z, l);
    if (product->kind != EX_MUL || product->nargs != 2) return false;
    for (int k = 0; k < 2; k++) {
        const Expr *root = product->args[k], *a = product->args[1 - k];
        if (root->kind != EX_REF || root->nargs != 3 || root->args[0] != weighed || !is_index(root->args[1], j) ||
            !is_index(root->args[2], l) || a->kind != EX_ADD || a->nargs != 2)
            continue;
        for (int m = 0; m < 2; m++) {
            const Expr *row = a->args[m], *minus = a->args[1 - m];
            if (row->kind != EX_REF || row->nargs != 2 || !is_index(row->args[0], i) || !is_index(row->args[1], l) ||
                row->var->dim[1] != e->args[1])
                continue;
            const Expr *centre = minus->kind == EX_MUL && minus->nargs == 2 && ex_is_num(minus->args[0], -1) ? minus->args[1] : NULL;
            if (!centre || centre->kind != EX_REF || centre->nargs != 2 || centre->args[0] != weighed || !is_index(centre->args[1], l) ||
                centre->var->dim[1] != e->args[1])
                continue;
            *out = (Distances){.row = row->var, .centre = centre->var, .root = root->var};
            return true;
        }
    }
    return false;
}

static Look test_not_looked_up(const Expr *e, void *with)
{
    if (e->kind == EX_REF) return e == with || e->nargs == 0 || (e->nargs == 1 && e->args[0] == with) ? SKIP : FOUND;
    return e->kind == EX_NUM || e->kind == EX_ADD || e->kind == EX_MUL ? LOOK : FOUND;
}

void find_distances(Lower *p, const Kernel *kernel, Node *n, const Expr *weighed, const Index *i)
{
    Distances d = {0}, found;
    Expr *rest = ex_num(0);
    const Conditional *c = n->weigh.c;
    if (kernel->kind != KERNEL_ELEMENTS || c->whole || !weighed || n->weigh.varies ||
        (n->weigh.expects && !(n->weigh.weights && is_real(p->out, n->weigh.weights))) || c->var->rank != 1 || c->current->nargs != 1 ||
        !is_index(c->current->args[0], i))
        return;
    for (const Node *m = n->body; m; m = m->next) {
        const Node *u = m->body;
        if (m->kind != NODE_REDUCE || m->nest.loops.n || m->nest.loops.guard || !u || u->next || u->kind != NODE_ASSIGN ||
            u->assign.op != ASSIGN_ADD || u->assign.times)
            return;
        Expr *e = u->assign.value;
        for (int k = 0; k < (e->kind == EX_ADD ? e->nargs : 1); k++) {
            Expr *term = e->kind == EX_ADD ? e->args[k] : e;
            const bool scaled = term->kind == EX_MUL && term->nargs == 2 && term->args[0]->kind == EX_NUM;
            if (!d.row && distance(scaled ? term->args[1] : term, (Expr *)weighed, i, &found)) {
                d = found;
                d.times = scaled ? term->args[0]->number : 1;
            } else rest = ex_add2(rest, term);
        }
    }
    if (!d.row || !is_real(p->out, d.row) || is_real(p->out, d.centre) || is_real(p->out, d.root) ||
        ex_find(rest, test_not_looked_up, (void *)weighed))
        return;
    d.of_value = rest;
    n->weigh.distances = arena_copy(p->g->arena, &d, sizeof d);
    reads_rows(p, d.row->dim[1]);
}
