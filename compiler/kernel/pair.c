// pair.c -- the update that draws an indicator with its coefficient integrated out, then the coefficient (graph/algebra/pairs.c).
//
//   for each element      constant, linear, square at each value of the indicator: sums that leave the sweep where they can
//                         weight at m = constant + linear^2/(2 J) - log(J)/2,  J = -2 square
//                         the indicator; the coefficient, normal given it
#include <math.h>
#include <string.h>
#include "lower.h"

// The element at the value that was drawn (or is there).
static Expr *at_value(const Pair *q, Expr *value, Expr *const *each)
{
    Expr *e = each[q->n - 1];
    for (int m = q->n - 2; m >= 0; m--) e = ex_call3("if_else", ex_call2("==", value, ex_num(q->first + m)), each[m], e);
    return e;
}

static Expr *named(Lower *p, const char *name, Expr *value)
{
    Var *local = local_named(p->g->arena, name);
    put_let(p, NULL, local, value, "wide");
    return local_ref(local);
}

static bool is_sum(const Part *t) { return t->loops.n || t->loops.guard; }

static bool same_loops(const Part *a, const Part *b) { return a->factor == b->factor && memcmp(&a->loops, &b->loops, sizeof(Loops)) == 0; }

// The sums at each value. What leaves the sweep is a closed form; the others are added up, those over the same loops together.
static void put_sums(Lower *p, const Update *s, Expr *(*at)[3])
{
    static const char *const words_for[] = {"constant", "linear", "square"};
    const Pair *q = s->pair;
    enum { MOST = 3 * (MOST_OF_PAIR + 1) };
    Expr *closed[MOST];
    Var *grows[MOST] = {0};
    int nrows = 0, n = 0;
    for (int k = 0; k < MOST; k++) closed[k] = ex_num(0);
    for (const Part *t = q->part; t; t = t->next) nrows++;
    const Part **rows = NEW_N(p->g->arena, const Part *, nrows + 1);
    for (const Part *t = q->part; t; t = t->next) {
        Expr *h = is_sum(t) ? hoisted_part(p, q->indicator, t) : t->value;
        if (h) closed[t->which] = ex_add2(closed[t->which], h);
        else rows[n++] = t;
    }
    for (int m = -1; m < q->n; m++)
        for (int k = 0; k < 3; k++) {
            const int which = pair_part(m, k);
            const char *name = m < 0 ? words(p, "%s_always", words_for[k]) : words(p, "%s_at_%d", words_for[k], m);
            bool any = false;
            for (int i = 0; i < n; i++) any |= rows[i]->which == which;
            if (any) {
                grows[which] = local_named(p->g->arena, name);
                put_let(p, NULL, grows[which], closed[which], "wide")->let.grows = true;
            } else if (closed[which]->kind != EX_NUM && closed[which]->kind != EX_REF) closed[which] = named(p, name, closed[which]);
        }
    bool *done = NEW_N(p->g->arena, bool, n + 1);
    for (int i = 0; i < n; i++) {
        if (done[i]) continue;
        Node *sum = enter_part(p, &rows[i]->loops);
        int total[GM_MOST_TOTALS], ntotals = 0;
        for (int j = i; j < n; j++) {
            if (done[j] || !same_loops(rows[j], rows[i])) continue;
            int k = 0;
            while (k < ntotals && total[k] != rows[j]->which) k++;
            if (k == GM_MOST_TOTALS) continue;  // in a loop of its own
            if (k == ntotals) total[ntotals++] = rows[j]->which;
            done[j] = true;
            put_assign(p, ASSIGN_ADD, place_local(grows[rows[j]->which]), rows[j]->value);
        }
        leave(p, sum);
    }
    for (int m = 0; m < q->n; m++)
        for (int k = 0; k < 3; k++)  // of the same at all values and that at this one
            for (int i = 0; i < 2; i++) {
                const int which = pair_part(i ? m : -1, k);
                at[m][k] = ex_add2(at[m][k], grows[which] ? local_ref(grows[which]) : closed[which]);
            }
    for (int m = 0; m < q->n; m++)
        for (int k = 0; k < 3; k++)
            if (at[m][k]->kind != EX_NUM && at[m][k]->kind != EX_REF) at[m][k] = named(p, words(p, "%s_%d", words_for[k], m), at[m][k]);
}

// Elements are shared out as those of an exact draw whose natural parameters are the sums that stay in the sweep.
static Part *sums_that_stay(Lower *p, const Pair *q)
{
    Part *stay = NULL, **last = &stay;
    for (Part *t = q->part; t; t = t->next) {
        if (!is_sum(t) || hoisted_part(p, q->indicator, t)) continue;
        *last = arena_copy(p->g->arena, t, sizeof *t);
        (*last)->next = NULL;
        last = &(*last)->next;
    }
    return stay;
}

// The log weights of the indicator's values, the coefficient integrated out; column[k]: the k-th sum at each value.
static void put_weights(Lower *p, const Update *s, Expr **weight, Expr *(*column)[MOST_OF_PAIR])
{
    const Pair *q = s->pair;
    Expr *at[MOST_OF_PAIR][3];
    for (int m = 0; m < q->n; m++)
        for (int k = 0; k < 3; k++) at[m][k] = ex_num(0);
    put_sums(p, s, at);
    for (int m = 0; m < q->n; m++) {
        Expr *J = ex_mul2(ex_num(-2), at[m][2]);
        if (J->kind != EX_NUM) J = named(p, words(p, "precision_%d", m), J);
        weight[m] = named(p, words(p, "weight_%d", m),
                          ex_add(3, (Expr *[]){at[m][0], ex_mul(3, (Expr *[]){ex_num(0.5), ex_pow(at[m][1], 2), ex_pow(J, -1)}),
                                               ex_mul2(ex_num(-0.5), ex_log(J))}));
        for (int k = 0; k < 3; k++) column[k][m] = at[m][k];
    }
}

// The draw of the indicator; gives: its value.
static Var *put_indicator(Lower *p, const Pair *q, Expr *const *weight)
{
    const Conditional *z = q->indicator;
    Var *drawn = local_new(p->g->arena, intern("drawn"));
    Node *d = put(p, NODE_DRAW);
    d->draw.var = z->var;
    d->draw.element = z->current;
    d->draw.x = drawn;
    d->draw.type = "wide";
    d->draw.arg = NEW_N(p->g->arena, DrawArg, MOST_OF_PAIR);
    if (q->n == 2) {
        d->draw.routine = "bernoulli";
        d->draw.nargs = 1;
        d->draw.arg[0].value = ex_call1("inv_logit", ex_sub(weight[1], weight[0]));
    } else {
        d->draw.routine = "one_of_8";
        d->draw.nargs = MOST_OF_PAIR;
        for (int m = 0; m < MOST_OF_PAIR; m++) d->draw.arg[m].value = m < q->n ? weight[m] : ex_num(-INFINITY);
    }
    d->draw.check = DRAW_COUNT;
    if (q->first == 0) return drawn;
    Var *value = local_new(p->g->arena, intern("value"));
    put_let(p, NULL, value, ex_add2(local_ref(drawn), ex_num(q->first)), "wide");
    return value;
}

static void put_coefficient(Lower *p, const Conditional *b, Var *x, Expr *linear, Expr *square)
{
    Node *e = put(p, NODE_DRAW);
    e->draw.var = b->var;
    e->draw.element = b->current;
    e->draw.x = x;
    e->draw.type = "wide";
    e->draw.routine = "normal_natural";
    e->draw.nargs = 2;
    e->draw.arg = NEW_N(p->g->arena, DrawArg, 2);
    e->draw.arg[0].value = linear;
    e->draw.arg[1].value = square;
    e->draw.goes_on = true;
    e->draw.check = DRAW_FINITE;
}

void update_pair(Lower *p, const Update *s)
{
    const Pair *q = s->pair;
    const Conditional *z = q->indicator, *b = q->coefficient;
    Conditional like = *z;
    like.natural = sums_that_stay(p, q);
    Update shared = *s;
    shared.kind = UPDATE_EXACT;
    shared.conditional = &like;
    comment_update(p, s);
    const Shared how = shared_how(&shared, NULL);
    Kernel *kernel = open_elements_kernel(p, how, &shared, words(p, "draw_%s_and_%s", z->var->name, b->var->name));
    Opened opened = enter_elements(p, &shared, how);
    if (opened.n) opened.loop[0]->loop.moving = b->var;
    put_exists(p, &opened, how, exists_at(z->var, z->element));
    Expr *weight[MOST_OF_PAIR], *column[3][MOST_OF_PAIR];
    put_weights(p, s, weight, column);
    Var *value = put_indicator(p, q, weight), *x = local_new(p->g->arena, "x");
    Expr *linear = named(p, words(p, "h_%s", b->var->name), at_value(q, local_ref(value), column[1])),
         *square = named(p, words(p, "q_%s", b->var->name), at_value(q, local_ref(value), column[2]));
    put_coefficient(p, b, x, linear, square);
    Expr *now = local_ref(x), *then = b->current;
    put_ratio(p,
              ex_add(3, (Expr *[]){ex_sub(at_value(q, local_ref(value), column[0]), at_value(q, z->current, column[0])),
                                   ex_sub(ex_mul2(linear, now), ex_mul2(at_value(q, z->current, column[1]), then)),
                                   ex_sub(ex_mul2(square, ex_pow(now, 2)), ex_mul2(at_value(q, z->current, column[2]), ex_pow(then, 2)))}));
    put_store(p, how, z, value);
    put_store(p, how, b, x);
    leave_elements(p, &opened);
    close_kernel(p);
    launch_elements(p, &shared, how, NULL, kernel);
}
