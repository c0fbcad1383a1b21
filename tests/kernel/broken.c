// If this fails, a pass could leave a kernel broken and `--check-passes` would not say so.
#include <math.h>
#include <stdio.h>
#include <string.h>
#include "../../compiler/kernel/kernel.h"

static int failed;
static Arena *a;
static Graph g;
static Program p;
static Launch launched;

static Var *variable(const char *name, VarKind kind, int rank)
{
    Var *v = NEW(a, Var);
    *v = (Var){.name = intern(name),
               .kind = kind,
               .id = g.nvars,
               .base = BASE_REAL,
               .rank = rank,
               .lower_number = -INFINITY,
               .upper_number = INFINITY};
    for (int k = 0; k < rank; k++) v->dim[k] = ex_num(10);
    ROOM(a, g.vars, g.nvars, g.vars_size);
    g.vars[g.nvars++] = v;
    return v;
}

static Node *assign(AssignOp op, Place at, Expr *value)
{
    Node *n = node_new(a, NODE_ASSIGN);
    n->assign.op = op;
    n->assign.place = at;
    n->assign.value = value;
    return n;
}

static Node *let(Var *local, Expr *value, const char *type, bool grows)
{
    Node *n = node_new(a, NODE_LET);
    n->let.local = local;
    n->let.value = value;
    n->let.type = type;
    n->let.grows = grows;
    return n;
}

static Node *then(Node *first, Node *second) { first->next = second; return first; }

// A kernel of the sweep with these nodes, launched unless `alone`.
static void try(const char *what, KernelKind kind, Node *body, bool alone, const char *says)
{
    Kernel k = {.kind = kind, .name = "k", .number = "wide", .body = body};
    launched = (Launch){.kind = LAUNCH_TEAM, .kernel = alone ? NULL : &k};
    p.sweep.first = &k;
    p.derive.first = &launched;
    const char *wrong = kernels_check(&p, "outside");
    const bool right = says ? wrong && strstr(wrong, says) : !wrong;
    printf("%s  %s: %s\n", right ? "ok  " : "FAIL", what, wrong ? wrong : "nothing is wrong");
    failed += !right;
}

int main(void)
{
    a = arena_new();
    expr_start(a);
    g.arena = a;
    p.g = &g;
    Var *y = variable("y", VAR_DATA, 1), *mu = variable("mu", VAR_PARAMETER, 0), *b = variable("b", VAR_PARAMETER, 1),
        *c = variable("c", VAR_LET, 1);
    place_variables(&p);
    Var *nowhere = variable("nowhere", VAR_SUM, 0);
    Index *i = index_new(intern("i"), ex_num(1), ex_num(10));
    Expr *at = ex_index(i), *y_i = ex_ref(y, 1, &at), *b_i = ex_ref(b, 1, &at), *c_i = ex_ref(c, 1, &at), *m = ex_ref(mu, 0, NULL);
    Var *t = local_new(a, "t");
    Place to_t = {.local = t}, to_mu = {.element = m};
    Node *loop = node_new(a, NODE_LOOP);
    loop->loop.how = SHARE_SERIAL;
    loop->loop.n = 1;
    loop->loop.index[0] = i;

    loop->body = assign(ASSIGN_ADD, to_t, y_i);
    try("a sum in a loop", KERNEL_TEAM, then(let(t, ex_num(0), "wide", true), then(loop, assign(ASSIGN_SET, to_mu, local_ref(t)))), false,
        NULL);
    try("an index without its loop", KERNEL_TEAM, then(let(t, ex_num(0), "wide", true), assign(ASSIGN_ADD, to_t, y_i)), false,
        "`i` is outside a loop");
    try("the same in a branch of a choice", KERNEL_TEAM,
        assign(ASSIGN_SET, to_mu, ex_call3("if_else", ex_call2("<", m, ex_num(0)), y_i, ex_num(0))), false, "`i` is outside a loop");
    try("a local that is not declared", KERNEL_TEAM, assign(ASSIGN_SET, to_mu, local_ref(t)), false, "`t` is read before it is declared");
    try("a constant that is added to", KERNEL_TEAM, then(let(t, ex_num(0), "wide", false), assign(ASSIGN_ADD, to_t, m)), false,
        "`t` is constant");
    loop->body = assign(ASSIGN_SET, (Place){.element = y_i}, ex_num(0));
    try("data that are written", KERNEL_TEAM, loop, false, "data are written");
    loop->body = assign(ASSIGN_SET, (Place){.element = c_i}, ex_num(0));
    try("what is one for all chains, written by an update", KERNEL_TEAM, loop, false, "one for all chains");
    try("an array without a place", KERNEL_TEAM, assign(ASSIGN_SET, to_mu, ex_ref(nowhere, 0, NULL)), false, "has no place");
    Index *j = index_new(intern("j"), ex_num(1), ex_num(10));
    Expr *of_j = ex_index(j);
    try("a sum without a name", KERNEL_TEAM,
        assign(ASSIGN_SET, to_mu, ex_reduce("sum", j, ex_num(1), ex_num(10), ex_mul2(ex_ref(y, 1, &of_j), ex_ref(b, 1, &of_j)))), false,
        "has no name");
    loop->loop.how = SHARE_SUM_ALONG;
    loop->loop.ntotals = 1;
    loop->loop.total[0] = t;
    loop->body = assign(ASSIGN_ADD, to_t, b_i);
    try("iterations shared by one lane", KERNEL_ONCE, then(let(t, ex_num(0), "wide", true), loop), false, "iterations are shared");
    try("a kernel that nothing launches", KERNEL_TEAM, assign(ASSIGN_SET, to_mu, ex_num(0)), true, "nothing launches it");
    printf("%d failed\n", failed);
    return failed > 0;
}
