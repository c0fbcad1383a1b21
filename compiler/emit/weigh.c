// weigh.c -- discrete values that are drawn by their weights, the log density of each being the body of the node.
#include "nodes.h"

static void emit_fault_unless_chosen(Out *o, const char *chosen, const char *name, const char *element)
{
    line(o, "if (%s < 1) FAULT(\"%s\", %s, \"no value has a positive probability\");", chosen, name, element);
}

// What ends a draw by weights: value number `chosen` is stored; `weight` is the logarithm of its weight.
static void emit_chosen(Out *o, const Node *n, const char *place, const char *element, const char *weight)
{
    emit_fault_unless_chosen(o, "chosen", n->weigh.c->var->name, element);
    line(o, "const long x = chosen < 1 ? old : first + chosen - 1;");
    if (n->weigh.marginal) no_ratio(o);
    else checked(o, "if (CHECKING) RATIO(%s - old_weight);", weight);
    line(o, n->weigh.c->var->base == BASE_INT ? "%s = (int)x;" : "%s = x;", place);
    emit_again(o, n->weigh.again);
}

static void emit_choice_of_all(Out *o, const Node *n, const char *place, const char *element)
{
    if (!n->weigh.marginal)
        checked(o, "const wide old_weight = CHECKING%s ? weight[old - first] : 0;",
                n->weigh.varies ? " && old >= first && old - first < values" : "");
    if (!n->weigh.marginal) checked(o, "if (CHECKING) NEW_WEIGHTS(weight, values);");
    line(o, "const long chosen = categorical_log_weights(&g, weight, values);");
    emit_chosen(o, n, place, element, "CHECK_WEIGHT(x - first)");
}

// With an array for the weights of all values: by a team, which shares the sums of each density, and where there are few.
static void emit_weigh_all(Out *o, const Node *n, const char *place, const char *element, bool few)
{
    const Conditional *c = n->weigh.c;
    if (few) line(o, "wide weight[values];");
    else if (n->weigh.weights)
        line(o, "%s *weight = &%s;", n->weigh.expects && is_real(o->program, n->weigh.weights) ? "real" : "wide",
             place_text(o, &(Place){.element = n->weigh.at}));
    else line(o, "wide *weight = TEAM_SCRATCH(%s);", n->weigh.varies ? "values > 0 ? values : 1" : "values");
    if (!n->weigh.expects) line(o, "const long old = %s;", place);
    BLOCK ("for (long value = 0; value < values; value++)") {
        line(o, "const long x = first + value;");
        emit_density(o, n, c, c->whole ? place : NULL, n->weigh.again, NULL);
        line(o, o->team ? "ONE_LANE weight[value] = lp;" : "weight[value] = lp;");
    }
    if (n->weigh.expects) {
        const Count all = count_dims(c->var, 0, c->var->rank);
        const char *evidence = n->weigh.evidence ? text(o, "&%s", place_text(o, &(Place){.element = n->weigh.evidence})) : "NULL";
        line(o, "%sif (expect_values(&g, at, %s, weight, values, %s)) FAULT(\"%s\", %s, \"no value has a positive probability\");",
             o->team ? "ONE_LANE " : "", count_text(o, &all), evidence, c->var->name, element);
        return;
    }
    if (o->team)
        BLOCK ("ONE_LANE") emit_choice_of_all(o, n, place, element);
    else emit_choice_of_all(o, n, place, element);
    if ((o->team || (o->g->lesson && !few)) && !n->weigh.weights) line(o, "TEAM_RELEASE(weight);");
}

// The choice by products of weights in tables, if weights.h can make it: then it is not 0.
static void emit_choose(Out *o, const Node *n)
{
    const ValueWeights *w = n->weigh.weights_of;
    const char *rows = "";
    int count = 0;
    for (; w; w = w->next, count++) {
        const char *row =
            w->n == 0 ? "0" : text(o, "%s * WEIGHTS_WIDTH(values)", paren(o, position_text(o, w->var, 0, w->n, w->key), TIGHT));
        rows = text(o, "%s%s&s->%s[%s]", rows, count ? ", " : "", w->var->name, row);
    }
    line(o, "const real *const weights[] = {%s};", rows);
    line(o, "long chosen = choose_by_weights(&g, values, %d, weights);", count);
    if (!n->weigh.marginal) {
        line(o, "wide new_weight = 0, old_weight = 0;");
        line(o,
             "if (CHECKING && chosen) { new_weight = log_of_weights(%d, weights, chosen); old_weight = log_of_weights(%d, weights, old - "
             "first + 1); }",
             count, count);
    }
}

// The weights come some at a time, and the choice goes with them (discrete.h).
static void emit_values_at_once(Out *o, const Node *n, const char *place)
{
    const Conditional *c = n->weigh.c;
    line(o, "Weighed all = weigh_start();");
    BLOCK ("for (long begin = 0; begin < values; begin += WEIGHED_AT_ONCE)") {
        line(o, "wide weight[WEIGHED_AT_ONCE];");
        line(o, "const long end = begin + WEIGHED_AT_ONCE < values ? begin + WEIGHED_AT_ONCE : values;");
        BLOCK ("for (long value = begin; value < end; value++)") {
            line(o, "const long x = first + value;");
            emit_density(o, n, c, c->whole ? place : NULL, n->weigh.again, NULL);
            line(o, "weight[value - begin] = lp;");
        }
        if (!n->weigh.marginal)
            checked(o, "if (CHECKING && old - first >= begin && old - first < end) old_weight = weight[old - first - begin];");
        line(o, "weigh_values(&all, &g, weight, begin, end - begin);");
    }
}

static void emit_weigh_by_lane(Out *o, const Node *n, const char *place, const char *element)
{
    const bool products = n->weigh.weights_of != NULL;
    line(o, "const long old = %s;", place);
    if (products) {
        emit_choose(o, n);
        BLOCK ("if (!chosen)") {
            emit_values_at_once(o, n, place);
            line(o, "chosen = all.wrong ? 0 : all.chosen;");
            if (!n->weigh.marginal) line(o, "new_weight = all.log_chosen;");
        }
    } else {
        if (!n->weigh.marginal) checked(o, "wide old_weight = 0;");
        emit_values_at_once(o, n, place);
        line(o, "const long chosen = all.wrong ? 0 : all.chosen;");
    }
    emit_chosen(o, n, place, element, products ? "new_weight" : "all.log_chosen");
}

// An end of what is weighed: functions of whole numbers are reals in C.
static const char *end_c(const Out *o, const Expr *e)
{
    bool real = e->kind == EX_CALL || e->kind == EX_POW;
    for (int i = 0; i < e->nargs && e->kind != EX_REF; i++) real |= e->args[i]->kind == EX_CALL || e->args[i]->kind == EX_POW;
    return text(o, "%s%s", real ? "(long)" : "", expr_c(o, e, TIGHT));
}

void emit_weigh(Out *o, const Node *n)
{
    const char *place = place_text(o, &(Place){.element = n->weigh.c->current}), *element = element_text(o, n->weigh.element);
    line(o, "%s", stream_text(o, n->weigh.c->var, element));
    const Expr *first = n->weigh.first, *last = n->weigh.last;
    const bool team = o->team || (o->g->lesson && o->kernel->kind == KERNEL_TEAM);  // by whom it is drawn elsewhere
    const bool few = !team && n->weigh.few;
    if (few) line(o, "enum { first = %.0f, values = %.0f };", first->number, last->number - first->number + 1);
    else line(o, "const long first = %s, values = %s - first + 1;", end_c(o, first), end_c(o, last));
    if ((few && !n->weigh.weights_of) || team || n->weigh.expects) emit_weigh_all(o, n, place, element, few);
    else emit_weigh_by_lane(o, n, place, element);
}

// A table of weights: each row over its largest number, and zeros in the room behind it.
void emit_weights(Out *o, const Node *n)
{
    const ValueWeights *w = n->weights.of;
    SCOPE
    {
        const Count rows = count_dims(w->var, 0, w->n);
        const char *names[MOST_VALUE_KEYS] = {"row"};
        for (int k = 0; k < w->n; k++) names[k] = fresh_index(o, w->index[k]);
        const char *row = w->n == 1 ? names[0] : "row", *values = extent_c(o, w->value->hi, LOOSE);
        BLOCK ("EACH_WEIGHTS (%s, %s)", row, w->n ? count_text(o, &rows) : "1") {
            for (int k = w->n - 1; k >= 0 && w->n > 1; k--) {
                const Count inner = count_dims(w->var, k + 1, w->n - k - 1);
                const char *over = inner.n == 0 ? "" : text(o, " / (%s)", count_text(o, &inner));
                if (k == 0) line(o, "const long %s = row%s;", names[k], over);
                else line(o, "const long %s = row%s %% %s;", names[k], over, extent_c(o, w->index[k]->hi, TIGHT));
            }
            const char *value = fresh_index(o, w->value), *x = expr_c(o, w->weight ? w->weight : w->log, LOOSE);
            line(o, "wide top = %s;", w->weight ? "0" : "-INFINITY");
            line(o, "WEIGHTS_TURNS (%s, %s) top = fmax(top, %s);", value, values, x);
            line(o, "top = WEIGHTS_TOP(top);");
            const char *scaled = w->weight ? text(o, "%s / top", expr_c(o, w->weight, MULTIPLICATIVE))
                                           : text(o, "exp(%s - top)", expr_c(o, w->log, ADDITIVE));
            line(o, "WEIGHTS_TURNS (%s, WEIGHTS_WIDTH(%s)) s->%s[%s%s] = %s < %s ? %s : 0;", value, values, w->var->name,
                 w->n ? text(o, "%s * WEIGHTS_WIDTH(%s) + ", row, values) : "", value, value, extent_c(o, w->value->hi, ADDITIVE), scaled);
        }
    }
}

// On a GPU, where all that depends on row and value is a distance: several rows a lane, which is all of the kernel then.
void emit_classify(Out *o, const Node *n)
{
    const Conditional *c = n->weigh.c;
    const Distances *d = n->weigh.distances;
    const char *rows = extent_c(o, c->var->dim[0], LOOSE), *p = extent_c(o, d->row->dim[1], LOOSE),
               *row = element_c(o, d->row, (Expr *[]){NULL, NULL});
    directive(o, "#ifdef CLASSIFY            // on a GPU");
    BLOCK ("if (CLASSIFY(%s))", p) {
        know(o, c->u, "x");
        line(o, "const auto of_value = [&](long x) -> wide { return %s; };", expr_c(o, d->of_value, LOOSE));
        if (n->weigh.expects)
            line(o, "if (expect_rows(GM, at, VAR_%s, \"%s\", %s, %s, %s, %s, s->%s, s->%s, s->%s, %s, %.17g, of_value)) return;",
                 c_name(o, c->var->name), c->var->name, rows, expr_c(o, n->weigh.first, LOOSE), expr_c(o, n->weigh.last, LOOSE),
                 text(o, "&%s", row), c_name(o, d->centre->name), d->root->name, n->weigh.weights->name,
                 n->weigh.evidence ? text(o, "s->%s", n->weigh.evidence->var->name) : "(wide *)0", d->times);
        else
            line(o, "classify(GM, at, VAR_%s, \"%s\", %s, %s, %s, &%s, s->%s, s->%s, s->%s, %.17g, of_value);", c_name(o, c->var->name),
                 c->var->name, rows, expr_c(o, n->weigh.first, LOOSE), expr_c(o, n->weigh.last, LOOSE), row, c_name(o, d->centre->name),
                 d->root->name, c_name(o, c->var->name), d->times);
        if (!n->weigh.expects) line(o, "return;");
    }
    directive(o, "#endif");
}
