// put.c -- a kernel in the making: its arrays, and its nodes, which are put one after the other where it goes on.
#include <string.h>
#include "lower.h"

static Var *with_size(Lower *p, Var *v, int rank, Expr *const *dim)
{
    v->rank = rank;
    for (int k = 0; k < rank; k++) {
        v->dim[k] = dim[k];
        check_array_size(p->g, dim[k]);
    }
    Program *out = p->out;
    ROOM(p->g->arena, out->work, out->nwork, out->work_size);
    out->work[out->nwork++] = v;
    return v;
}

Var *work_array(Lower *p, ArrayRole role, const char *name, int rank, Expr *const *dim)
{
    return with_size(p, place_array(p->out, fresh_var(&p->names, name, VAR_SUM), role), rank, dim);
}

Var *copy_array(Lower *p, const Var *of, const char *name)
{
    return with_size(p, place_copy(p->out, fresh_var(&p->names, name, VAR_SUM), of), of->rank, of->dim);
}

enum { MOST_NAMES = 3, LONGEST_NAME = 20 };  // of a block that is called by all of its unknowns

static bool is_block(const NamedBlock *b, Var *const *var, int n) { return b->n == n && memcmp(b->var, var, sizeof *var * (size_t)n) == 0; }

static bool is_name_of_model(const Graph *g, const char *name)
{
    for (int i = 0; i < g->nvars; i++)
        if (strcmp(g->vars[i]->name, name) == 0) return true;
    return false;
}

const char *block_name(Lower *p, Var *const *var, int n)
{
    Program *out = p->out;
    const char *names = var[0]->name;
    for (int i = 1; i < n; i++) names = words(p, "%s_%s", names, var[i]->name);
    if (n == 1 || (n <= MOST_NAMES && strlen(names) <= LONGEST_NAME)) return names;
    for (int i = 0; i < out->nblocks; i++)
        if (is_block(&out->block[i], var, n)) return out->block[i].name;
    ROOM(p->g->arena, out->block, out->nblocks, out->blocks_size);
    NamedBlock *b = &out->block[out->nblocks++];
    *b = (NamedBlock){words(p, "block_%d", out->nblocks), n, var};
    while (is_name_of_model(p->g, b->name)) b->name = words(p, "%s_", b->name);
    return b->name;
}

const char *number_of(const Lower *p, const Var *v) { return is_real(p->out, v) ? "real" : "wide"; }

// No function of the program or of the runtime has it. What is called by its name, as compute_x, has the same from function_name.
const char *kernel_name(Lower *p, const char *name)
{
    const char *c = intern(function_name(p->g->arena, name)), *first = c;
    for (int k = 2; map_get(&p->kernel_names, c); k++) c = intern(words(p, "%s_%d", first, k));
    map_put(p->g->arena, &p->kernel_names, c, (void *)c);
    return c;
}

// A trajectory, of a selection or in every sweep.
static bool is_hmc(const Update *s) { return s->kind == UPDATE_NUTS || s->when == WITH_GRADIENTS; }

Kernel *open_kernel(Lower *p, KernelKind kind, const char *name, const char *number)
{
    Kernel *k = NEW(p->g->arena, Kernel);
    k->kind = kind;
    k->name = kernel_name(p, name);
    k->number = number;
    k->update = p->update;
    k->part = k->update && is_hmc(k->update) ? PART_HMC : p->part;
    k->says_law = p->says_law;
    p->says_law = false;
    k->comment = p->comment ? p->comment : "";
    p->comment = NULL;
    p->open = k;
    p->at = &k->body;
    return k;
}

// A kernel that does nothing is left out.
bool close_kernel(Lower *p)
{
    Kernel *k = p->open;
    bool any = false;
    drop_spare(&k->body);
    for (const Node *n = k->body; n; n = n->next) any |= n->kind != NODE_COMMENT;
    p->open = NULL;
    p->at = NULL;
    if (!any) return false;
    if (!p->list->first) p->list->last = &p->list->first;
    *p->list->last = k;
    p->list->last = &k->next;
    return true;
}

Node *put(Lower *p, NodeKind kind)
{
    Node *n = node_new(p->g->arena, kind);
    *p->at = n;
    p->at = &n->next;
    return n;
}

Node *enter(Lower *p, NodeKind kind)
{
    Node *n = put(p, kind);
    p->at = &n->body;
    return n;
}

Node *enter_loop(Lower *p, Sharing how, Index *i)
{
    Node *n = enter(p, NODE_LOOP);
    n->loop.how = how;
    n->loop.n = 1;
    n->loop.index[0] = i;
    n->loop.keeps = true;
    return n;
}

void leave(Lower *p, Node *n) { p->at = &n->next; }

Node *put_let(Lower *p, Expr *key, Var *local, Expr *value, const char *type)
{
    Node *n = put(p, NODE_LET);
    n->let.key = key;
    n->let.local = local;
    n->let.value = value;
    n->let.type = type;
    return n;
}

Place place_local(Var *v) { return (Place){.local = v}; }
Place place_element(Expr *ref) { return (Place){.element = ref}; }

Node *put_assign(Lower *p, AssignOp op, Place at, Expr *value)
{
    Node *n = put(p, NODE_ASSIGN);
    n->assign.op = op;
    n->assign.place = at;
    for (int k = 0; k < at.n; k++)  // the subscripts may be in an array that goes away
        if (at.sub[k].n) n->assign.place.sub[k].at = arena_copy(p->g->arena, at.sub[k].at, sizeof *at.sub[k].at * (size_t)at.sub[k].n);
    n->assign.value = value;
    return n;
}

Node *put_ratio(Lower *p, Expr *value)
{
    Node *n = put(p, NODE_RATIO);
    n->ratio.value = value;
    return n;
}

Node *enter_nest(Lower *p, NodeKind kind, const Loops *l, int n, Expr *const *target, Expr *const *extent)
{
    Node *nest = enter(p, kind);
    nest->nest.loops = *l;
    nest->nest.n = n;
    nest->nest.target = target;
    nest->nest.extent = extent;
    nest->nest.op = ASSIGN_ADD;
    return nest;
}

Var *local_integer(Lower *p, const char *name)
{
    Var *x = local_new(p->g->arena, name);
    x->base = BASE_INT;
    x->discrete = true;
    return x;
}

Node *put_random(Lower *p, Var *v, Expr *element, Var *x, const char *routine, Expr *one, Expr *other)
{
    Node *d = put(p, NODE_DRAW);
    d->draw.var = v;
    d->draw.element = element;
    d->draw.x = x;
    d->draw.type = x->discrete ? "long" : "wide";
    d->draw.routine = routine;
    d->draw.nargs = other ? 2 : 1;
    d->draw.arg = NEW_N(p->g->arena, DrawArg, 2);
    d->draw.arg[0].value = one;
    d->draw.arg[1].value = other;
    d->draw.check = DRAW_UNCHECKED;
    return d;
}

Node *put_fill(Lower *p, Var *array, Count count, bool waits)
{
    Node *n = put(p, NODE_FILL);
    n->fill.array = array;
    n->fill.count = count;
    n->fill.waits = waits;
    return n;
}

void put_skip(Lower *p, Expr *condition)
{
    if (condition) put(p, NODE_SKIP)->skip.condition = condition;
}

void put_barrier(Lower *p)
{
    if (p->open->kind == KERNEL_TEAM) put(p, NODE_BARRIER);
}

void each_kernel(Lower *p, void (*pass)(Lower *, Kernel *))
{
    for (Kernel *k = p->out->setup.first; k; k = k->next) pass(p, k);
    for (Kernel *k = p->out->sweep.first; k; k = k->next) pass(p, k);
}
