// sites.c -- what one statement computes or draws, in loops of its own or of its neighbours.
#include "lower.h"

bool is_searched(const Site *t) { return t->within && (t->dist->discrete || t->nargs - t->guarded > t->nsample + 4); }

// One element that a statement computes or draws.
void put_element(Lower *p, const Site *t)
{
    Node *n;
    if (t->value) {
        put_assign(p, t->adds ? ASSIGN_ADD : ASSIGN_SET, place_element(ex_ref(t->var, t->n, t->subscript)), t->value);
        return;
    }
    Node *test = t->when ? enter(p, NODE_IF) : NULL;
    if (test) test->test.condition = t->when;
    n = enter(p, NODE_SAMPLE);
    n->sample.site = t;
    n->sample.searches = is_searched(t);
    n->sample.unless_kept = p->part == PART_FORWARD;
    Expr *const *rest = t->args + t->nsample;
    if (is_searched(t) && t->dist->discrete) put_assign(p, ASSIGN_SET, place_local(local_new(p->g->arena, "search.log_weight")), rest[4]);
    else if (is_searched(t)) {
        put_assign(p, ASSIGN_SET, place_local(local_new(p->g->arena, "search.below")), rest[4]);
        put_assign(p, ASSIGN_SET, place_local(local_new(p->g->arena, "search.above")), rest[5]);
    }
    leave(p, n);
    if (test) leave(p, test);
}

static bool reads_itself(const Site *t)
{
    if (t->value) return ex_mentions(t->value, t->var);
    for (int i = 0; i < t->nargs; i++)
        if (ex_mentions(t->args[i], t->var)) return true;
    return false;
}

// A statement, and those after it that share its loops; which is the next.
const Site *put_site(Lower *p, const Site *t)
{
    const Loops l = t->plates;
    Node *lane = p->open->kind == KERNEL_TEAM && l.n > 0 && reads_itself(t) ? enter(p, NODE_LANE) : NULL;  // in order
    Expr **target = NEW_N(p->g->arena, Expr *, l.n + 1);
    for (int k = 0; k < l.n; k++) target[k] = ex_index(l.index[k]);  // each iteration computes its own element
    Node *n = enter_nest(p, NODE_NEST, &l, l.n, target, NULL);
    n->nest.moving = t->var;
    n->nest.careful = t->var->kind == VAR_LET && t->var->known.unsure;
    put_element(p, t);
    const Site *next = t->next;
    for (; next && !lane && l.n && next->plates.index == t->plates.index && next->plates.guard == t->plates.guard && !reads_itself(next);
         next = next->next)
        put_element(p, next);
    leave(p, n);
    if (lane) leave(p, lane);
    return next;
}
