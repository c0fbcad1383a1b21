// node.c -- kernels as trees: making them and walking them.
#include <math.h>
#include "../base/words.h"
#include "kernel.h"

Node *node_new(Arena *a, NodeKind kind)
{
    Node *n = NEW(a, Node);
    n->kind = kind;
    return n;
}

// A name made of names of the model may be one of the runtime's, as at_end of a variable `end`. Its own words are met by nothing.
const char *function_name(Arena *a, const char *name) { return word_apart(a, name, word_declared); }

Var *local_named(Arena *a, const char *name) { return local_new(a, intern(function_name(a, name))); }

Var *local_new(Arena *a, const char *name)
{
    Var *v = NEW(a, Var);
    *v = (Var){.name = name, .kind = VAR_ELEMENT, .id = 63, .base = BASE_REAL};
    return v;
}

Expr *local_ref(Var *local) { return ex_ref(local, 0, NULL); }

Count count_dims(const Var *v, int first, int n)
{
    Count c = {0};
    for (int k = first; k < first + n; k++) c.factor[c.n++] = v->dim[k];
    return c;
}

// ---- what a node has ----

// The array of derivatives of the solution that a series is; NULL: it is none, or they are not known.
static const Var *solution_slopes(const Series *s)
{
    const Ode *o = s->var[0]->sites ? s->var[0]->sites->ode : NULL;
    return o ? o->slopes : NULL;
}

bool each_part(const Node *n, bool (*f)(const NodePart *, void *), void *with)
{
#define GIVE(id, member, of) \
    if ((of) != NULL && f(&(NodePart){.kind = HAS_##id, .member = of}, with)) return true;
#define VALUE(of)  GIVE(VALUE, e, of)
#define AT(of)     GIVE(AT, e, of)
#define PLACE(of)  GIVE(PLACE, place, of)
#define SIZE(of)   GIVE(SIZE, e, of)
#define COUNT(of)  REPEAT((of)->n, SIZE((of)->factor[i]))
#define WITHIN(of) GIVE(WITHIN, e, of)
#define INDEX(of)  GIVE(INDEX, index, of)
#define KEY(of)    GIVE(KEY, e, of)
#define ARRAY(of)  GIVE(ARRAY, v, of)
#define WRITES(of) GIVE(WRITTEN, v, of)
#define CHANGES(of) \
    if ((of) != NULL) WRITES((of)->var)
#define DRAWS(of) WRITES((of)->var) WRITES((of)->recursion)
#define INSIDE(of, is, grown) \
    if (f(&(NodePart){.kind = HAS_INSIDE, .name = of, .type = is, .grows = grown}, with)) return true;
#define AFTER(of, is) \
    if (f(&(NodePart){.kind = HAS_AFTER, .name = of, .type = is}, with)) return true;
#define TRIES(about, is, of) \
    if (f(&(NodePart){.kind = HAS_TRIES, .times = about, .type = is, .e = of}, with)) return true;
#define AGAIN(of) GIVE(AGAIN, list, of)
#define DRAWN \
    if (f(&(NodePart){.kind = HAS_DRAWN}, with)) return true;
#define FOLLOWED(of) GIVE(FOLLOWED, c, of)
#define REPEAT(count, ...) \
    for (int i = 0; i < (count); i++) { __VA_ARGS__ }
#define WHERE(condition, ...) \
    if (condition) { __VA_ARGS__ }
#define TABLES(list, ...) \
    for (const ValueWeights *w = list; w; w = w->next) { __VA_ARGS__ }
#define LOOPS(of) REPEAT((of)->n, KEY((of)->index[i]->lo) KEY((of)->index[i]->hi)) KEY((of)->guard)
#define PARTS(id, ...) \
    case NODE_##id: __VA_ARGS__ break;
    switch (n->kind) {
#include "kernel.def"
    }
    return false;
}

static const Var *var_of(const Place *at) { return at->local ? at->local : at->element ? at->element->var : at->array; }

void each_subscript(const Place *at, void (*f)(Expr *, void *), void *with)
{
    for (int i = 0; at->element && i < at->element->nargs; i++) f(at->element->args[i], with);
    for (int k = 0; k < at->n; k++)
        for (int i = 0; i < at->sub[k].n; i++) f(at->sub[k].at[i], with);
}

typedef struct OfVars {
    bool (*f)(const Var *, void *);
    void *with;
} OfVars;

static bool written(const NodePart *part, void *with)
{
    const OfVars *of = with;
    const Var *v = part->kind == HAS_WRITTEN ? part->v : part->kind == HAS_PLACE ? var_of(part->place) : NULL;
    return v && of->f(v, of->with);
}

bool writes(const Node *list, bool (*f)(const Var *, void *), void *with)
{
    OfVars of = {f, with};
    for (const Node *n = list; n; n = n->next)
        if (each_part(n, written, &of) || writes(n->otherwise, f, with) || writes(n->body, f, with)) return true;
    return false;
}

typedef struct OfExprs {
    void (*f)(Expr *, void *);
    void *with;
} OfExprs;

static bool computed(const NodePart *part, void *with)
{
    const OfExprs *of = with;
    if (part->kind == HAS_VALUE || part->kind == HAS_AT) of->f(part->e, of->with);
    if (part->kind == HAS_PLACE) each_subscript(part->place, of->f, of->with);
    return false;
}

void each_expr(const Node *n, void (*f)(Expr *, void *), void *with) { each_part(n, computed, &(OfExprs){f, with}); }

static void reads(const Expr *e, bool (*f)(const Var *, void *), void *with)
{
    if (e) ex_any_var(e, f, with);
}

static bool is_drawn(const NodePart *part, void *with)
{
    (void)with;
    return part->kind == HAS_DRAWN;
}

bool draws_unknowns(const Node *list)
{
    for (const Node *n = list; n; n = n->next)
        if (each_part(n, is_drawn, NULL) || draws_unknowns(n->body) || draws_unknowns(n->otherwise)) return true;
    return false;
}

static bool touched(const NodePart *part, void *with)
{
    const OfVars *of = with;
    const Var *v = part->kind == HAS_PLACE ? var_of(part->place) : part->v;
    if (part->kind == HAS_KEY || part->kind == HAS_WITHIN) reads(part->e, of->f, of->with);
    if (v) of->f(v, of->with);
    return false;
}

void each_array(const Node *n, bool (*f)(const Var *, void *), void *with) { each_part(n, touched, &(OfVars){f, with}); }

typedef struct Reader {
    const Var *local;
    bool found;
} Reader;

static bool is_local(const Var *v, void *with)
{
    Reader *r = with;
    return r->found |= v == r->local;
}

static void look_for_local(Expr *e, void *with) { reads(e, is_local, with); }

bool reads_local(const Node *list, const Var *local)
{
    Reader r = {local, false};
    for (const Node *n = list; n && !r.found; n = n->next) {
        each_expr(n, look_for_local, &r);
        each_array(n, is_local, &r);
        const Place *place = n->kind == NODE_ASSIGN ? &n->assign.place : n->kind == NODE_DRAW ? &n->draw.place : NULL;
        for (int k = 0; place && k < place->n; k++) reads(place->sub[k].offset, is_local, &r);
        r.found |= reads_local(n->body, local) || reads_local(n->otherwise, local);
    }
    return r.found;
}

void drop_spare(Node **list)
{
    if (!*list) return;
    drop_spare(&(*list)->next);  // from the last: what only a spare one reads is spare
    const Node *n = *list;
    if (n->kind == NODE_LET && n->let.spare && !reads_local(n->next, n->let.local)) *list = n->next;
}

// ---- matrices that are computed within expressions ----

static Look array(const Expr *e, void *with)
{
    (void)with;
    return e->kind == EX_AT || (e->kind == EX_CALL && e->fn == FN_log_determinant) ? FOUND : LOOK;
}

bool needs_array(const Expr *e) { return e && ex_find(e, array, NULL); }

static Look own_array(const Expr *e, void *with)
{
    const Loops *l = with;
    if (array(e, NULL) != FOUND) return LOOK;
    if (e->args[0]->loose) return FOUND;
    for (int i = 0; i < l->n; i++)
        if (ex_mentions_index(e->args[0], l->index[i])) return FOUND;
    return LOOK;
}

bool needs_own_array(const Expr *e, const Loops *l) { return e && ex_find(e, own_array, (void *)l); }

static Look no_integer(const Expr *e, void *with)
{
    (void)with;
    switch (e->kind) {
    case EX_NUM: return e->number == floor(e->number) && fabs(e->number) < 1e9 ? SKIP : FOUND;
    case EX_INDEX: return SKIP;
    case EX_REF: return e->var->base == BASE_INT ? SKIP : FOUND;
    case EX_ADD:
    case EX_MUL: return LOOK;
    case EX_POW:
    case EX_CALL:
    case EX_REDUCE:
    case EX_ARRAY:
    case EX_AT: break;
    }
    return FOUND;
}

// Whether C computes e in whole numbers.
bool ex_is_integer(const Expr *e) { return !ex_find(e, no_integer, NULL); }

static bool test_response(const Var *v, void *with)
{
    (void)with;
    return v->kind == VAR_DATA && v->response;
}

bool ex_reads_response(const Expr *e) { return e && ex_any_var(e, test_response, NULL); }

bool reads_response(const Sum *s)
{
    bool yes = ex_reads_response(s->value) || ex_reads_response(s->loops.guard);
    for (int k = 0; k < s->n; k++) yes |= ex_reads_response(s->target[k]);
    for (int k = 0; k < s->loops.n; k++) yes |= ex_reads_response(s->loops.index[k]->lo) || ex_reads_response(s->loops.index[k]->hi);
    return yes;
}
