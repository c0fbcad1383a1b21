// nodes.c -- the body of a kernel, one function a kind of node; here those of values, updates and conditions. Macros are those of
// runtime/device/kernels.h.
#include <string.h>
#include "nodes.h"

// ---- values ----

void emit_comment(Out *o, const Node *n)
{
    const int room = COMMENT_COLUMNS - 4 * o->indent - (int)strlen("//     ");
    for (const char *rest = n->text.lines, *gap = " "; *rest; gap = "     ") {
        const int end = end_of_comment_line(rest, room);
        line(o, "//%s%.*s", gap, end, rest);
        rest += end + strspn(rest + end, " ");
    }
}

// A name whose line others may share: `const double a = .., b = ..;`
static bool is_plain_let(const Node *n)
{
    return n && n->kind == NODE_LET && n->let.value && !n->let.log_sum && strcmp(n->let.type, "long") != 0 &&
           !(n->let.value->kind == EX_CALL && n->let.value->fn == FN_log_determinant);
}

enum { MOST_SHARED = 128 };

// The names from here on that fit on one line; returns the last of them.
static const Node *emit_lets(Out *o, const Node *n)
{
    const char *all = NULL;
    const Node *last = n;
    for (const Node *m = n; is_plain_let(m) && m->let.grows == n->let.grows && strcmp(m->let.type, n->let.type) == 0; m = m->next) {
        if (begins_sum(o, m)) break;
        const char *one = text(o, "%s = %s", m->let.local->name, expr_c(o, m->let.value, LOOSE));
        if (all && strlen(all) + strlen(one) > MOST_SHARED) break;
        all = all ? text(o, "%s, %s", all, one) : text(o, "%s%s %s", m->let.grows ? "" : "const ", m->let.type, one);
        if (m->let.key) scope_know(o->scope, m->let.key, m->let.local);
        scope_wrote(o->scope, m);
        last = m;
    }
    line(o, "%s;", all);
    return last;
}

void emit_let(Out *o, const Node *n)
{
    const char *name = n->let.local->name, *type = n->let.type;
    const bool whole =
        n->let.value && n->let.value->kind == EX_CALL && n->let.value->fn == FN_log_determinant && n->let.key == n->let.value;
    if (whole) {
        const Expr *a = n->let.value->args[0];
        const char *c = text(o, "log_determinant_of(%s, %s)", extent_c(o, ex_dim((Expr *)a, 0), LOOSE), whole_text(o, a));
        line(o, o->team ? "const %s %s = TEAM_VALUE(%s);" : "const %s %s = %s;", type, name, c);
    } else if (n->let.log_sum && n->let.log_sum != n->let.local)
        line(o, "const %s %s = log_sum_value(&%s);", type, name, n->let.log_sum->name);
    else if (!n->let.value) line(o, "%s %s = log_sum_start();", type, name);
    else if (is_sum_of(o, n)) o->sum_of = n->let.local;
    else if (begins_sum(o, n)) part(o, "%s %s = %s; ", type, name, expr_c(o, n->let.value, LOOSE));
    else if (strcmp(type, "long") == 0) line(o, "const long %s = %s;", name, extent_c(o, n->let.value, LOOSE));
    else line(o, "%s%s %s = %s;", n->let.grows ? "" : "const ", type, name, expr_c(o, n->let.value, LOOSE));
    if (n->let.key) scope_know(o->scope, n->let.key, n->let.local);
}

// An entry of a symmetric matrix and its mirror image.
static void emit_twice(const Out *o, const Node *n)
{
    const Place *first = &n->next->assign.place, *other = &n->next->next->assign.place;
    line(o, "ADD_TWICE(s->%s, %s, %s, %s);", first->array->name, position_c(o, first), position_c(o, other),
         expr_c(o, n->let.value, LOOSE));
}

// The chain rule of a standardised effect; returns the last of its nodes.
static const Node *emit_chain(const Out *o, const Node *n)
{
    const Chained *c = n->assign.chain;
    const char *given = "";
    Expr *const of[] = {c->share, c->centre, c->spread, c->scale, c->effect};
    for (int i = 0; i < 5; i++) given = text(o, "%s%s, ", given, expr_c(o, of[i], LOOSE));
    line(o, "%s += standard_chain(%s&%s, &%s, &%s);", n->assign.place.local->name, given, place_text(o, c->slope),
         place_text(o, c->by_centre), place_text(o, c->by_spread));
    return n->next->next->next;
}

void emit_know(Out *o, const Node *n) { scope_know(o->scope, n->let.key, n->let.local); }

// The loops over the subscripts from k on, around the element at `at` for those before.
static void fill_array(Out *o, const Node *n, int k, Text at, bool team)
{
    if (k == ex_rank(n->array.key)) {
        o->team = false;
        emit_list(o, n->body);
        line(o, "%s[%s] = %s;", n->array.local->name, at.c, expr_c(o, n->array.value, LOOSE));
        return;
    }
    const Index *i = n->array.index[k];
    const char *extent = extent_c(o, i->hi, ADDITIVE), *c = fresh_index(o, i);
    at = k ? (Text){text(o, "%s * %s + %s", paren(o, at, TIGHT), extent_c(o, i->hi, TIGHT), c), ADDITIVE, false} : (Text){c, TIGHT, false};
    const char *head =
        k == 0 && team ? text(o, "TEAM_FILL (%s, %s)", c, extent) : text(o, "for (long %s = 0; %s < %s; %s++)", c, c, extent, c);
    BLOCK ("%s", head) fill_array(o, n, k + 1, at, team);
}

void emit_array(Out *o, const Node *n)
{
    Count size = {.n = ex_rank(n->array.key)};
    for (int k = 0; k < size.n; k++) size.factor[k] = n->array.index[k]->hi;
    buffer(o, n->array.local->name, count_text(o, &size));
    SCOPE fill_array(o, n, 0, (Text){"0", TIGHT, false}, o->team);
    scope_know(o->scope, n->array.key, n->array.local);
}

void emit_matrix(Out *o, const Node *n)
{
    const Expr *e = n->matrix.key;
    const char *name = n->matrix.local->name, *size = extent_c(o, ex_dim(e->args[0], 0), LOOSE), *from = whole_text(o, e->args[0]);
    const char *tight_size = extent_c(o, ex_dim(e->args[0], 0), TIGHT);
    buffer(o, name, ex_rank(e) == 1 ? size : text(o, "%s * %s", tight_size, tight_size));
    line(o, "%s%s_into(%s, %s, %s);", o->team ? "TEAM_ONCE " : "", e->name, size, from, name);
    scope_know(o->scope, e, n->matrix.local);
}

void emit_routine(Out *o, const Node *n)
{
    line(o, "CREW(%s_into, %s, %s, &%s);", n->routine.name, extent_c(o, n->routine.size, LOOSE), whole_text(o, n->routine.from),
         place_text(o, &(Place){.element = n->routine.to}));
}

void emit_choice(Out *o, const Node *n)
{
    line(o, "%s %s;", o->kernel->number, n->choice.local->name);
    BLOCK ("if (%s)", expr_c(o, n->choice.key->args[0], LOOSE)) emit_list(o, n->body);
    BLOCK ("else") emit_list(o, n->otherwise);
    scope_know(o->scope, n->choice.key, n->choice.local);
}

// ---- updates ----

// What is stored, as a number of the place's type.
static Text stored_text(const Out *o, const Node *n)
{
    const Text t = expr_text(o, n->assign.value);
    switch (n->assign.integer) {
    case INTEGER_PLAIN: break;
    case INTEGER_CHECKED: return (Text){text(o, "INTEGER(%s, \"%s\")", t.c, n->assign.place.element->var->name), TIGHT, false};
    case INTEGER_DRAWN: return (Text){text(o, "INTEGER_DRAWN(%s)", t.c), TIGHT, false};
    case INTEGER_STATE: return (Text){text(o, "(int)%s", paren(o, t, TIGHT)), TIGHT, false};
    }
    return t;
}

// Of a matrix of which there are only some entries, and of the shift beside it.
static void emit_sparse_update(Out *o, const Node *n, const char *place, const char *value)
{
    const Place *at = &n->assign.place;
    if (at->array->rank == 1) line(o, "SPARSE_SHIFT(s->%s, %s, %s);", at->array->name, place, value);
    else if (at->n == 0) line(o, "%s(%s);", n->assign.op == ASSIGN_ADD ? "SPARSE_TARGET" : "SPARSE_ROW", value);
    else if (n->assign.puts_row) line(o, "SPARSE_PUT_ROW(%s, &%s, %s);", place, value, extent_c(o, n->assign.value->var->dim[1], LOOSE));
    else line(o, "%s(%s, %s);", at->n == 1 ? "SPARSE_PUT" : "SPARSE_ADD", place, value);
}

void emit_assign(Out *o, const Node *n)
{
    if (n->assign.exists) part(o, "if (%s) ", expr_c(o, n->assign.exists, LOOSE));
    if (n->assign.drawn) {
        emit_draw_by_law(o, n->assign.drawn, n);
        return;
    }
    const Place *at = &n->assign.place;
    const char *place = place_text(o, at), *own = n->assign.own ? text(o, "if (OWN(%s)) ", position_c(o, at)) : "";
    Text t = stored_text(o, n);
    if (n->assign.times) t = (Text){text(o, "%s * %s", n->assign.times->name, paren(o, t, TIGHT)), MULTIPLICATIVE, false};
    if (at->array && at->array->lowered.pattern) {
        emit_sparse_update(o, n, place, t.c);
        return;
    }
    switch (n->assign.op) {
    case ASSIGN_SET:
        switch (o->g->lesson ? STORE_PLAIN : n->assign.how) {
        case STORE_PLAIN: line(o, "%s%s = %s;", own, place, t.c); break;
        case STORE_LAST: line(o, "STORE(%s, %s);", place, t.c); break;
        case STORE_WITHIN: line(o, "SET(%s, %s);", place, t.c); break;
        case STORE_ELEMENT: line(o, "ELEMENT_LANE %s = %s;", place, t.c); break;
        case STORE_COUNT:
        case STORE_TOTAL: break;
        case STORE_SPAN: line(o, "SPAN_TOTAL(%s, %s, %s);", subscript_text(o, at->element->args[0]).c, place, t.c); break;
        }
        break;
    case ASSIGN_ADD:
        if (n->assign.how == STORE_TOTAL) line(o, "ADD_TOTAL(%d, %s, %s);", n->assign.total, place, t.c);
        else if (n->assign.how == STORE_COUNT) line(o, "COUNT(%s, %s);", place, t.c);
        else {
            const char *into = at->local && at->local == o->sum_of ? "" : text(o, "%s%s ", own, place);  // the head of its loop names it
            line(o, "%s%s= %s;", into, t.minus ? "-" : "+", t.minus ? t.c + 1 : t.c);
        }
        break;
    case ASSIGN_ADD_LOG: line(o, "%s = add_log(%s, %s);", place, place, t.c); break;
    case ASSIGN_MUL: line(o, "%s *= %s;", place, paren(o, t, ADDITIVE)); break;
    case ASSIGN_MIN: line(o, "%s = fmin(%s, (%s)%s);", place, place, o->kernel->number, paren(o, t, TIGHT)); break;
    case ASSIGN_MAX: line(o, "%s = fmax(%s, (%s)%s);", place, place, o->kernel->number, paren(o, t, TIGHT)); break;
    case ASSIGN_LOG_ADD: line(o, "log_sum_add(&%s, %s);", place, t.c); break;
    }
}

// Arrays of one size that are filled alike, on one line; returns the last. Where lanes wait after one, no other follows there.
static const Node *emit_fills(Out *o, const Node *n)
{
    const Node *last = n;
    const char *count = count_text(o, &n->fill.count), *all = "";
    while (last->next && last->next->kind == NODE_FILL && (!last->fill.waits || last->next->fill.waits) && !last->next->fill.value &&
           strcmp(count_text(o, &last->next->fill.count), count) == 0)
        last = last->next;
    if (n == last || n->fill.value || n->fill.count.n == 0 || o->g->lesson) {
        emit_fill(o, n);
        return n;
    }
    for (const Node *m = n; m != last->next; m = m->next) all = text(o, "%ss->%s[e] = ", all, c_name(o, m->fill.array->name));
    if (o->team) line(o, "%s (e, %s) %s0;", last->fill.waits ? "ALONG" : "LANES", count, all);
    else line(o, "for (long e = 0; e < %s; e++) %s0;", count, all);
    return last;
}

void emit_fill(Out *o, const Node *n)
{
    const char *name = c_name(o, n->fill.array->name), *count = count_text(o, &n->fill.count);
    const char *value = n->fill.value ? n->fill.value : "0";
    if (n->fill.count.n == 0) line(o, "%s%s = %s;", o->team ? "ONE_LANE " : "", scalar_text(o, n->fill.array), value);
    else if (o->team) line(o, "%s (e, %s) s->%s[e] = %s;", n->fill.waits ? "ALONG" : "LANES", count, name, value);
    else if (o->g->lesson && !n->fill.value) line(o, "ZERO(%s, %s);", name, count);
    else line(o, "for (long e = 0; e < %s; e++) s->%s[e] = %s;", count, name, value);
}

void emit_order(Out *o, const Node *n)
{
    const Order *order = n->order.order;
    SCOPE
    {
        const char *rows = extent_c(o, order->row->hi, LOOSE), *groups = extent_c(o, order->extent, LOOSE), *c = fresh_index(o, order->row);
        line(o, "ORDER_KEYED(%s, %s, %s, %s, s->%s, s->%s, s->%s, s->%s);", c, rows, groups, expr_c(o, order->key, LOOSE),
             order->keys->name, order->first->name, order->rows->name, order->spare->name);
    }
}

void emit_call(Out *o, const Node *n) { line(o, "%s += %s(GM, d, s);", n->call.into->name, n->call.part->name); }

// ---- lanes and conditions ----

void emit_barrier(Out *o, const Node *n)
{
    (void)n;
    if (!o->g->lesson) line(o, "TEAM_BARRIER();");
}

void emit_lane(Out *o, const Node *n)
{
    if (!o->team && !n->lane.key) {  // alone anyhow
        bool names = false;
        for (const Node *m = n->body; m; m = m->next) names |= m->kind == NODE_LET;
        if (names && o->g->lesson) PLAIN_BLOCK emit_list(o, n->body);
        else emit_list(o, n->body);
    } else BODY(!is_one_statement(n->body), n->lane.key ? "GROUP_LANE" : "ONE_LANE")
        {
            if (n->lane.key) {
                o->group_name = index_c(o, n->lane.group);
                o->group = n->lane.key;
            }
            o->team = o->crew = false;
            emit_list(o, n->body);
        }
}

void emit_if(Out *o, const Node *n)
{
    if (o->g->lesson && n->test.few) {  // rows are many
        emit_list(o, n->test.negated ? n->body : n->otherwise);
        return;
    }
    const char *condition = n->test.few     ? few_c(o, n->test.few)
                            : n->test.drawn ? text(o, "IS_DRAWN(VAR_%s)", c_name(o, n->test.drawn->name))
                                            : expr_c(o, n->test.condition, LOOSE);
    BLOCK (n->test.negated ? "if (!(%s))" : "if (%s)", condition) emit_list(o, n->body);
    if (n->otherwise) OTHERWISE emit_list(o, n->otherwise);
}

void emit_skip(Out *o, const Node *n)
{
    const char *what = o->kernel->kind == KERNEL_ROW && o->depth == 1 ? "return row_weight(0)" : o->depth == 1 ? "return" : "continue";
    const Expr *c = n->skip.condition;
    const bool negated = c->kind == EX_CALL && c->fn == FN_NOT;
    line(o, "if (%s) %s;", negated ? expr_c(o, c->args[0], LOOSE) : negated_text(o, c).c, what);
}

void emit_return(Out *o, const Node *n)
{
    const char *weight = expr_c(o, n->row.weight, LOOSE);
    if (n->row.square) line(o, "return row_weight_and(%s, %s);", weight, expr_c(o, n->row.square, LOOSE));
    else line(o, "return row_weight(%s);", weight);
}

void emit_result(Out *o, const Node *n)
{
    line(o, o->kernel->kind == KERNEL_PART ? "return %s;" : "RESULT(%s);", expr_c(o, n->result.value, LOOSE));
}

// The loops of a nest are nodes of their own by now; names of its body are valid after it.
void emit_nest(Out *o, const Node *n)
{
    SAME_BLOCK
    {
        o->careful |= n->nest.careful;
        o->as_read |= n->nest.as_read;
        emit_list(o, n->body);
    }
}

void emit_reduce(Out *o, const Node *n) { emit_list(o, n->body); }

// ---- all kinds ----

static void emit_node(Out *o, const Node *n)
{
    static void (*const emit[])(Out *, const Node *) = {
#define NODE(id, name, word, help) [NODE_##id] = emit_##word,
#include "../kernel/kernel.def"
    };
    emit[n->kind](o, n);
}

void emit_list(Out *o, const Node *list)
{
    for (const Node *n = list; n; n = n->next) {
        if (o->kernel->alike && n == o->kernel->alike_from) {  // it, its ratio and its store, which are the last
            call_shared_draw(o, o->kernel);
            return;
        }
        if (n->kind == NODE_LET && n->let.twice) {
            emit_twice(o, n);
            return;
        }
        if (n->kind == NODE_ASSIGN && n->assign.chain) {
            for (const Node *last = emit_chain(o, n); n != last; n = n->next) scope_wrote(o->scope, n);
            scope_wrote(o->scope, n);
            continue;
        }
        if (n->kind == NODE_FILL) {
            for (const Node *last = emit_fills(o, n); n != last; n = n->next) scope_wrote(o->scope, n);
            scope_wrote(o->scope, n);
            continue;
        }
        if (is_plain_let(n) && !begins_sum(o, n)) {
            n = emit_lets(o, n);
            continue;
        }
        o->sole = o->braces && n == list && !n->next;
        emit_node(o, n);
        scope_wrote(o->scope, n);
    }
}
