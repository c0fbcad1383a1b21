// nodes.c -- kernels as text: one function a kind of node. Macros are those of runtime/device/kernels.h.
#include <math.h>
#include <string.h>
#include "out.h"

static const char *const sharing_macro[] = {
#define SHARING(id, macro, help) [SHARE_##id] = macro,
#include "../kernel/kernel.def"
};

static void emit_list(Out *o, const Node *list);

typedef struct Mark { int known, named; } Mark;

static Mark enter(const Out *o) { return (Mark){o->scope.n, o->nnamed}; }
static void leave(Out *o, Mark m) { scope_leave(&o->scope, m.known); o->nnamed = m.named; }

static void emit_scope(Out *o, const Node *body, bool team, bool crew)
{
    const bool t = o->team, c = o->crew;
    const Mark m = enter(o);
    o->team = team;
    o->crew = crew;
    emit_list(o, body);
    leave(o, m);
    o->team = t;
    o->crew = c;
}

static const char *element_text(Out *o, const Expr *e)
{
    return !e || e->nargs == 0 ? "0" : o->flat ? o->flat : position_text(o, e->var, 0, e->var->rank, e->args, NULL).c;
}

static void buffer(Out *o, const char *name, const char *size)
{
    line(o, "wide *%s = %sSCRATCH(%s);", name, o->team ? "TEAM_" : "", size);
    if (o->nbuffers == (int)(sizeof o->buffer / sizeof *o->buffer)) return;
    o->buffer[o->nbuffers].name = name;
    o->buffer[o->nbuffers].depth = o->depth;
    o->buffer[o->nbuffers++].team = o->team;
}

// ---- loops ----

static const char *totals_text(Out *o, const Node *n)
{
    const char *t = "";
    for (int k = 0; k < n->loop.ntotals; k++) t = text(o, "%s, &%s", t, n->loop.total[k]->name);
    return t;
}

// Elements of one colour of a lattice: all subscripts but the last, and a turn, the colour and those give the last. A row whose size is no multiple of the colours has turns without an element.
static void begin_lattice(Out *o, const Node *n, const char *macro, const char *more)
{
    const Var *v = n->loop.of;
    const int last = n->loop.n - 1, colours = n->loop.colours;
    const char *size = extent_c(o, v->dim[last], LOOSE), *turns = text(o, "PER_COLOUR(%s, %d)", size, colours), *phase = "COLOUR";
    Count rows = count_dims(v, 0, last);
    const char *count = count_text(o, &rows), *names[MAX_RANK];
    for (int k = 0; k <= last; k++) names[k] = fresh_index(o, n->loop.index[k]);
    begin(o, "%s (e, %s * %s%s)", macro, rows.n > 1 ? text(o, "(%s)", count) : extent_c(o, rows.factor[0], MULTIPLICATIVE), turns, more);
    for (int k = last - 1; k >= 0; k--) {
        Count stride = count_dims(v, k + 1, last - k - 1);
        const char *over = stride.n == 0 ? turns : text(o, "(%s * (%s))", turns, count_text(o, &stride));
        if (k == 0) line(o, "const long %s = e / %s;", names[k], over);
        else line(o, "const long %s = e / %s %% %s;", names[k], over, extent_c(o, v->dim[k], TIGHT));
    }
    for (int k = 0; k < last; k++) {             // strides are taken modulo the number of colours, so that the sum is not negative
        const int step = (colours - n->loop.stride[k] % colours) % colours;
        if (step) phase = text(o, step == 1 ? "%s + %s" : "%s + %s * %d", phase, names[k], step);
    }
    line(o, "const long %s = e %% %s * %d + (%s) %% %d;", names[last], turns, colours, phase, colours);
    line(o, "if (%s >= %s || %s >= %s) continue;", names[0], extent_c(o, v->dim[0], LOOSE), names[last], size);
}

// Elements of a variable by their first subscripts: one number, taken apart.
static void begin_elements(Out *o, const Node *n)
{
    const Var *v = n->loop.of;
    const bool crew = n->loop.how == SHARE_CREW || n->loop.how == SHARE_COLOUR_CREW || n->loop.how == SHARE_MATRICES;
    const Count elements = v ? count_dims(v, 0, n->loop.n) : (Count){0};
    const char *turns = crew ? count_text(o, &n->loop.turns) : "";
    const char *more = !crew ? "" : n->loop.own_rows ? text(o, ", PER_ELEMENT(%s, %s)", turns, count_text(o, &elements)) : text(o, ", %s", turns), *macro = sharing_macro[n->loop.how];
    if (n->loop.how == SHARE_COLOUR || n->loop.how == SHARE_COLOUR_CREW) {
        if (n->loop.n > 1) { begin_lattice(o, n, macro, more); return; }
        const char *size = extent_c(o, v->dim[0], LOOSE), *k = fresh_index(o, n->loop.index[0]);
        begin(o, "%s (turn, OF_COLOUR(%s, %d)%s)", macro, size, n->loop.colours, more);
        line(o, "const long %s = turn * %d + COLOUR;", k, n->loop.colours);
        return;
    }
    if (n->loop.how == SHARE_CLASSES) {
        const char *size = extent_c(o, v->dim[0], LOOSE);
        begin(o, "%s (%s, %s, s->%s, s->%s)", macro, fresh_index(o, n->loop.index[0]), size, n->loop.classes->first->name, n->loop.classes->elements->name);
        return;
    }
    const bool missing = n->loop.how == SHARE_MISSING || n->loop.how == SHARE_IN_TURN;
    const bool apart = missing || n->loop.n > 1;
    Count count = count_dims(v, 0, n->loop.n);
    const char *size = count_text(o, &count), *names[MAX_RANK] = {"e"};
    for (int k = 0; k < n->loop.n; k++) names[k] = fresh_index(o, n->loop.index[k]);
    const char *flat = apart ? "e" : names[0];
    if (missing) begin(o, "%s (e, %d)", macro, n->loop.field);
    else begin(o, "%s (%s, %s%s)", macro, flat, size, more);
    for (int k = n->loop.n - 1; k >= 0 && apart; k--) {
        Count stride = count_dims(v, k + 1, n->loop.n - k - 1);
        const char *over = k + 1 == n->loop.n ? "" : stride.n == 1 ? text(o, " / %s", extent_c(o, stride.factor[0], TIGHT)) : text(o, " / (%s)", count_text(o, &stride));
        if (k == 0) line(o, "const long %s = e%s;", names[k], over);
        else line(o, "const long %s = e%s %% %s;", names[k], over, extent_c(o, v->dim[k], TIGHT));
    }
    if (missing) o->flat = "e";
}

static const char *range_text(Out *o, const Index *i, const char **name)
{
    Text lo = subscript_text(o, i->lo);
    const char *hi = extent_c(o, i->hi, LOOSE), *c = fresh_index(o, i);
    *name = c;
    return strcmp(lo.c, "0") == 0 ? text(o, " (%s, %s", c, hi) : text(o, "_FROM (%s, %s, %s - %s", c, lo.c, hi, paren(o, lo, MULTIPLICATIVE));
}

static void begin_loop(Out *o, const Node *n)
{
    const char *macro = sharing_macro[n->loop.how], *c;
    Index *const *i = n->loop.index;
    switch (n->loop.how) {
    case SHARE_SERIAL:
        if (n->loop.order) {
            const char *element = subscript_text(o, ex_index(i[1])).c;
            begin(o, "ROWS_OF (%s, %s, s->%s, s->%s)", fresh_index(o, i[0]), element, n->loop.order->first->name, n->loop.order->rows->name);
        } else if (n->loop.of) {
            const char *size = extent_c(o, n->loop.of->dim[n->loop.field], ADDITIVE);
            c = fresh_index(o, i[0]);
            begin(o, "for (long %s = 0; %s < %s; %s++)", c, c, size, c);
        } else if (n->loop.given) {
            c = fresh_index(o, i[0]);
            begin(o, "for (long %s = from; %s < to; %s++)", c, c, c);
        } else {
            const char *lo = subscript_text(o, i[0]->lo).c, *hi = extent_c(o, i[0]->hi, ADDITIVE);
            c = fresh_index(o, i[0]);
            begin(o, "for (long %s = %s; %s < %s; %s++)", c, lo, c, hi, c);
        }
        break;
    case SHARE_BACKWARD: {
        const char *lo = subscript_text(o, i[0]->lo).c, *size = extent_c(o, i[0]->hi, ADDITIVE);
        c = fresh_index(o, i[0]);
        begin(o, "for (long %s = %s; %s-- > %s;)", c, size, c, lo);
        break;
    }
    case SHARE_EACH: case SHARE_COLOUR: case SHARE_MISSING: case SHARE_IN_TURN: case SHARE_CREW: case SHARE_COLOUR_CREW: case SHARE_MATRICES: case SHARE_CLASSES: begin_elements(o, n); break;
    case SHARE_ALONG: case SHARE_LANES: case SHARE_TERMS: case SHARE_PLACES: case SHARE_SUM_ALONG:
        if (n->loop.n == 2) {
            const char *a = extent_c(o, i[0]->hi, LOOSE), *b = extent_c(o, i[1]->hi, LOOSE), *first = fresh_index(o, i[0]);
            const char *second = fresh_index(o, i[1]);
            begin(o, "%s2 (%s, %s, %s, %s%s)", macro, first, a, second, b, totals_text(o, n));
            break;
        }
        // fall through
    case SHARE_SUM_TURNS: case SHARE_SPAN: {
        if (n->loop.order) {                     // of the rows of an element
            const Text element = subscript_text(o, ex_index(i[1]));
            const char *first = n->loop.order->first->name, *next = paren(o, element, ADDITIVE);
            c = fresh_index(o, i[0]);
            begin(o, "%s_FROM (%s, s->%s[%s], s->%s[%s + 1] - s->%s[%s]%s)", macro, n->loop.sorted ? c : "row", first, element.c, first, next, first, element.c, totals_text(o, n));
            if (!n->loop.sorted) line(o, "NAMED_ROW(%s, s->%s, row);", c, n->loop.order->rows->name);
            break;
        }
        const char *range = range_text(o, i[0], &c);
        begin(o, "%s%s%s)", macro, range, totals_text(o, n));
        break;
    }
    case SHARE_INTO: case SHARE_KEYED: {
        Text lo = subscript_text(o, i[0]->lo);
        const char *hi = extent_c(o, i[0]->hi, LOOSE), *arrays = "";
        const char *rows = strcmp(lo.c, "0") == 0 ? hi : text(o, "%s - %s", hi, paren(o, lo, MULTIPLICATIVE));
        for (int k = 0; k < n->loop.narrays; k++) {
            Count count = count_dims(n->loop.array[k], 0, n->loop.array[k]->rank);
            arrays = text(o, "%s, %s, %s", arrays, c_name(o, n->loop.array[k]->name), count_text(o, &count));
        }
        begin(o, "%s%d (%s, %s, %s%s)", macro, n->loop.narrays, fresh_index(o, i[0]), lo.c, rows, arrays);
        break;
    }
    case SHARE_COUNTED: {
        const char *range = range_text(o, i[0], &c);
        begin(o, "%s%s)", macro, range);
        break;
    }
    case SHARE_GROUPS: {
        const char *groups = extent_c(o, n->loop.order->extent, LOOSE), *rows = extent_c(o, n->loop.order->row->hi, LOOSE);
        begin(o, "%s (%s, %s, %s)", macro, fresh_index(o, i[0]), groups, rows);
        break;
    }
    case SHARE_SEGMENTS: {
        const char *groups = extent_c(o, n->loop.order->extent, LOOSE), *rows = extent_c(o, n->loop.order->row->hi, LOOSE);
        begin(o, "%s (%s, %s, s->%s, %s)", n->loop.order->spare ? "EACH_KEYED" : macro, groups, rows, n->loop.order->first->name, count_text(o, &n->loop.turns));
        break;
    }
    case SHARE_SEGMENT_PLACES: {
        const Order *order = n->loop.order;
        const char *rows = extent_c(o, order->row->hi, LOOSE), *list = "";
        c = fresh_index(o, i[0]);
        for (int k = 1; k < n->loop.n; k++) {
            const char *extent = extent_c(o, i[k]->hi, LOOSE);
            list = text(o, "%s, %s, %s", list, fresh_index(o, i[k]), extent);
        }
        if (order->spare) begin(o, "KEYED_PLACES%d (%s, %s, %s, s->%s%s)", n->loop.n - 1, c, rows, subscript_text(o, ex_replace_index(order->key, order->row, ex_index(i[0]))).c, order->rows->name, list);
        else begin(o, "%s%d (%s, s->%s%s)", macro, n->loop.n - 1, c, order->rows->name, list);
        break;
    }
    case SHARE_ROWS: {
        const char *group = subscript_text(o, ex_index(i[1])).c;
        if (n->loop.sorted) begin(o, "SUM_SORTED (%s, %s, s->%s%s)", fresh_index(o, i[0]), group, n->loop.order->first->name, totals_text(o, n));
        else begin(o, "%s (%s, %s, s->%s, s->%s%s)", macro, fresh_index(o, i[0]), group, n->loop.order->first->name, n->loop.order->rows->name, totals_text(o, n));
        break;
    }
    }
}

// Whether a scope is one plain statement, which stands on the line that begins it.
static bool one_statement(const Node *body) { return body && body->kind == NODE_UPDATE && !body->next; }

static void emit_classify(Out *o, const Node *n);

// On a GPU, where a row adds the product of a vector and itself to the matrix of its group: by a routine that reads the vector once (keyed_sums.h), and makes the sums of `vector` as well.
static void emit_segment_products(Out *o, const Node *segments)
{
    const Node *rows = segments->body;
    const SymmetricProduct *product = rows->loop.product;
    const Order *order = rows->loop.order;
    fprintf(o->file, "#ifdef SEGMENT_PRODUCTS            // on a GPU\n");
    if (segments->loop.with) line(o, "if (!SEGMENT_PRODUCTS(%s))", extent_c(o, segments->loop.with, LOOSE));
    else {
        const Mark m = enter(o);
        Index *const *i = rows->loop.index;
        const char *row = fresh_index(o, i[0]), *j = fresh_index(o, i[1]), *k = fresh_index(o, i[2]), *size = extent_c(o, i[1]->hi, LOOSE);
        begin(o, "if (SEGMENT_PRODUCTS(%s))", size);
        line(o, "const auto times = [&](long %s) -> wide { return %s; };", row, expr_c(o, product->times, LOOSE));
        line(o, "const auto factor = [&](long %s, long %s) -> wide { return %s; };", row, j, expr_c(o, product->factor, LOOSE));
        line(o, "const auto add = [&](long %s, long %s, long %s, wide x) { %s += x; };", row, j, k, place_text(o, &rows->body->update.place));
        const char *more = "";
        if (product->vector) {
            line(o, "const auto vector_times = [&](long %s) -> wide { return %s; };", row, expr_c(o, product->vector_times, LOOSE));
            name_index(o, product->vector->loop.index[0], row);
            name_index(o, product->vector->loop.index[1], j);
            line(o, "const auto vector_add = [&](long %s, long %s, wide x) { %s += x; };", row, j, place_text(o, &product->vector->body->update.place));
            more = ", vector_times, vector_add";
        }
        line(o, "segment_products(GM, %s, %s, s->%s, s->%s, %s, times, factor, add%s);", extent_c(o, order->extent, LOOSE), extent_c(o, order->row->hi, LOOSE), order->first->name, order->rows->name, size, more);
        end(o);
        line(o, "else");
        leave(o, m);
    }
    fprintf(o->file, "#endif\n");
}

static void emit_loop(Out *o, const Node *n)
{
    for (const Node *w = n->loop.how == SHARE_EACH && o->depth == 1 ? n->body : NULL; w; w = w->next)
        if (w->kind == NODE_WEIGH && w->weigh.distances) emit_classify(o, w);
    const Mark m = enter(o);
    const char *flat = o->flat;
    const Sharing how = n->loop.how;
    scope_written(&o->scope, n->body);           // before the second turn
    if (how == SHARE_SEGMENTS && n->body && (n->body->loop.product || n->loop.with)) emit_segment_products(o, n);
    const bool brief = o->brief = (how == SHARE_SERIAL || how == SHARE_ALONG || how == SHARE_LANES || how == SHARE_TERMS || how == SHARE_PLACES) && one_statement(n->body);
    begin_loop(o, n);
    o->brief = false;
    if (how == SHARE_SERIAL || how == SHARE_BACKWARD) emit_scope(o, n->body, o->team, o->crew);
    else if (how == SHARE_CREW || how == SHARE_COLOUR_CREW) emit_scope(o, n->body, true, true);
    else emit_scope(o, n->body, false, false);
    if (!brief) end(o);
    o->flat = flat;
    leave(o, m);
}

// ---- values ----

static void emit_let(Out *o, const Node *n)
{
    const char *name = n->let.local->name, *type = n->let.type;
    const bool whole = n->let.value && n->let.value->kind == EX_CALL && n->let.value->fn == FN_log_determinant && n->let.key == n->let.value;
    if (whole) {
        const Expr *a = n->let.value->args[0];
        const char *c = text(o, "log_determinant_of(%s, %s)", extent_c(o, ex_dim((Expr *)a, 0), LOOSE), whole_text(o, a));
        line(o, o->team ? "const %s %s = TEAM_VALUE(%s);" : "const %s %s = %s;", type, name, c);
    } else if (n->let.log_sum && n->let.log_sum != n->let.local) line(o, "const %s %s = log_sum_value(&%s);", type, name, n->let.log_sum->name);
    else if (!n->let.value) line(o, "%s %s = log_sum_start();", type, name);
    else if (strcmp(type, "long") == 0) line(o, "const long %s = %s;", name, extent_c(o, n->let.value, LOOSE));
    else line(o, "%s%s %s = %s;", n->let.grows ? "" : "const ", type, name, expr_c(o, n->let.value, LOOSE));
    if (n->let.key) scope_know(&o->scope, n->let.key, n->let.local);
}

// Definitions of integers are stored with 32 bits; what is added or multiplied may need more.
static bool may_overflow(const Place *at, const Expr *value)
{
    const Var *v = at->element ? at->element->var : NULL;
    if (!v || v->base != BASE_INT || (v->kind != VAR_LET && v->kind != VAR_DERIVED && v->kind != VAR_PREDICTED)) return false;
    return value->kind == EX_ADD || value->kind == EX_MUL || value->kind == EX_POW || value->kind == EX_REDUCE || (value->kind == EX_CALL && !function_rows[value->fn].infix && value->fn != FN_NOT && value->fn != FN_MOD);
}

// The condition that a place is there whose subscripts no loop changes, which the model reads under a condition: sums for it are made whatever data say, and are 0 then.
static Expr *place_exists(const Out *o, const Place *at)
{
    Expr *all = NULL;
    const Expr *e = at->element;
    for (int k = 0; e && k < e->nargs; k++) all = ex_both(all, subscript_inside(o->g, e->args[k], e->var->dim[k]));
    for (int i = 0; at->array && i < at->n; i++) {
        const Sub *sub = &at->sub[i];
        for (int k = 0; sub->of && k < sub->n; k++) all = ex_both(all, subscript_inside(o->g, sub->at[k], sub->of->dim[sub->first + k]));
    }
    return all;
}

// Entries of a row of a joint normal that come at once, as many as the row of the matrix that they are.
static bool puts_row(const Node *n) { return n->update.place.array && n->update.place.array->pattern && n->update.place.n == 1 && n->update.op == UPDATE_SET; }

static bool is_drawn(const Expr *value) { return value->kind == EX_REF && value->var->kind == VAR_ELEMENT; }

static void emit_update(Out *o, const Node *n)
{
    const Place *at = &n->update.place;
    const char *place = place_text(o, at), *own = "";
    Text t = expr_text(o, n->update.value);
    if (may_overflow(at, n->update.value)) t = (Text){text(o, "INTEGER(%s, \"%s\")", t.c, at->element->var->name), TIGHT, false};
    else if (at->element && at->element->var->base == BASE_INT && is_drawn(n->update.value)) t = (Text){text(o, "INTEGER_DRAWN(%s)", t.c), TIGHT, false};
    else if (at->element && at->element->var->base == BASE_INT && !ex_is_integer(n->update.value)) t = (Text){text(o, "(int)%s", paren(o, t, TIGHT)), TIGHT, false};       // a state of a chain
    if (n->update.times) t = (Text){text(o, "%s * %s", n->update.times->name, paren(o, t, TIGHT)), MULTIPLICATIVE, false};
    if (n->update.own) {
        const char *open = strchr(place, '[');
        if (open) own = text(o, "if (OWN(%.*s)) ", (int)strlen(open) - 2, open + 1);
    }
    if (at->array && at->array->pattern) {
        if (at->array->rank == 1) line(o, "SPARSE_SHIFT(s->%s, %s, %s);", at->array->name, place, t.c);
        else if (at->n == 0) line(o, "%s(%s);", n->update.op == UPDATE_ADD ? "SPARSE_TARGET" : "SPARSE_ROW", t.c);
        else if (puts_row(n)) line(o, "SPARSE_PUT_ROW(%s, &%s, %s);", place, t.c, extent_c(o, n->update.value->var->dim[1], LOOSE));
        else line(o, "%s(%s, %s);", at->n == 1 ? "SPARSE_PUT" : "SPARSE_ADD", place, t.c);
        return;
    }
    switch (n->update.op) {
    case UPDATE_SET:
        switch (n->update.how) {
        case STORE_PLAIN: line(o, "%s%s = %s;", own, place, t.c); break;
        case STORE_LAST: line(o, "STORE(%s, %s);", place, t.c); break;
        case STORE_WITHIN: line(o, "SET(%s, %s);", place, t.c); break;
        case STORE_ELEMENT: line(o, "ELEMENT_LANE %s = %s;", place, t.c); break;
        case STORE_COUNT: case STORE_TOTAL: break;
        case STORE_SPAN: line(o, "SPAN_TOTAL(%s, %s, %s);", subscript_text(o, at->element->args[0]).c, place, t.c); break;
        }
        break;
    case UPDATE_ADD:
        if (n->update.how == STORE_TOTAL) line(o, "ADD_TOTAL(%d, %s, %s);", n->update.total, place, t.c);
        else if (n->update.how == STORE_COUNT) line(o, "COUNT(%s, %s);", place, t.c);
        else line(o, "%s%s %s= %s;", own, place, t.minus ? "-" : "+", t.minus ? t.c + 1 : t.c);
        break;
    case UPDATE_ADD_LOG: line(o, "%s = add_log(%s, %s);", place, place, t.c); break;
    case UPDATE_MUL: line(o, "%s *= %s;", place, paren(o, t, ADDITIVE)); break;
    case UPDATE_MIN: line(o, "%s = fmin(%s, (%s)%s);", place, place, o->kernel->number, paren(o, t, TIGHT)); break;
    case UPDATE_MAX: line(o, "%s = fmax(%s, (%s)%s);", place, place, o->kernel->number, paren(o, t, TIGHT)); break;
    case UPDATE_LOG_ADD: line(o, "log_sum_add(&%s, %s);", place, t.c); break;
    }
}

static void emit_fill(Out *o, const Node *n)
{
    const char *name = c_name(o, n->fill.array->name), *count = count_text(o, &n->fill.count);
    const char *value = n->fill.value ? n->fill.value : "0";
    if (n->fill.count.n == 0) line(o, o->team ? "ONE_LANE *s->%s = %s;" : "*s->%s = %s;", name, value);
    else if (o->team) line(o, "%s (e, %s) s->%s[e] = %s;", n->fill.waits ? "ALONG" : "LANES", count, name, value);
    else line(o, "for (long e = 0; e < %s; e++) s->%s[e] = %s;", count, name, value);
}

static void emit_array(Out *o, const Node *n)
{
    const char *name = n->array.local->name;
    const int rank = ex_rank(n->array.key);
    Count size = {.n = rank};
    for (int k = 0; k < rank; k++) size.factor[k] = n->array.index[k]->hi;
    buffer(o, name, count_text(o, &size));
    const bool team = o->team;
    const Mark m = enter(o);
    Text at = {"0", TIGHT, false};
    for (int k = 0; k < rank; k++) {
        const Index *i = n->array.index[k];
        const char *extent = extent_c(o, i->hi, ADDITIVE), *c = fresh_index(o, i);
        if (k == 0 && team) begin(o, "TEAM_FILL (%s, %s)", c, extent);
        else begin(o, "for (long %s = 0; %s < %s; %s++)", c, c, extent, c);
        at = k ? (Text){text(o, "%s * %s + %s", paren(o, at, TIGHT), extent_c(o, i->hi, TIGHT), c), ADDITIVE, false} : (Text){c, TIGHT, false};
    }
    o->team = false;
    emit_list(o, n->body);
    line(o, "%s[%s] = %s;", name, at.c, expr_c(o, n->array.value, LOOSE));
    for (int k = 0; k < rank; k++) end(o);
    o->team = team;
    leave(o, m);
    scope_know(&o->scope, n->array.key, n->array.local);
}

static void emit_matrix(Out *o, const Node *n)
{
    const Expr *e = n->matrix.key;
    const char *name = n->matrix.local->name, *size = extent_c(o, ex_dim(e->args[0], 0), LOOSE), *from = whole_text(o, e->args[0]);
    const char *tight_size = extent_c(o, ex_dim(e->args[0], 0), TIGHT);
    buffer(o, name, ex_rank(e) == 1 ? size : text(o, "%s * %s", tight_size, tight_size));
    line(o, "%s%s_into(%s, %s, %s);", o->team ? "TEAM_ONCE " : "", e->name, size, from, name);
    scope_know(&o->scope, e, n->matrix.local);
}

static void emit_choice(Out *o, const Node *n)
{
    line(o, "%s %s;", o->kernel->number, n->choice.local->name);
    begin(o, "if (%s)", expr_c(o, n->choice.key->args[0], LOOSE));
    emit_scope(o, n->body, o->team, o->crew);
    end(o);
    begin(o, "else");
    emit_scope(o, n->choice.otherwise, o->team, o->crew);
    end(o);
    scope_know(&o->scope, n->choice.key, n->choice.local);
}

// ---- draws ----

static const char *stream_text(Out *o, const Var *v, const char *element) { return text(o, "Stream g = stream(at, VAR_%s, %s);", v->name, element); }

static const char *arg_text(Out *o, const DrawArg *a)
{
    if (!a->value) return text(o, "%.17g", a->number);
    if (ex_rank(a->value) > 0) return whole_text(o, a->value);
    return expr_c(o, a->value, LOOSE);
}

// A call of the stdlib with the values of its names.
static const char *rule_text(Out *o, const Ast *a, const Node *n)
{
    switch (a->kind) {
    case AST_NAME:
        for (int i = 0; i < n->draw.nargs; i++)
            if (n->draw.arg[i].name && strcmp(n->draw.arg[i].name, a->name) == 0) return arg_text(o, &n->draw.arg[i]);
        return a->name;
    case AST_INT: case AST_REAL: return text(o, "%.17g", a->number);
    case AST_UNARY: return text(o, "-%s", rule_text(o, a->kid[0], n));
    case AST_BINARY: {
        const char *op = a->op == OP_ADD ? "+" : a->op == OP_SUB ? "-" : a->op == OP_DIV ? "/" : "*";
        return text(o, "(%s %s %s)", rule_text(o, a->kid[0], n), op, rule_text(o, a->kid[1], n));
    }
    case AST_CALL: {
        const char *list = "";
        for (int i = 0; i < a->nkids; i++) list = text(o, "%s%s%s", list, i ? ", " : "", rule_text(o, a->kid[i], n));
        return text(o, "%s(%s)", a->name, list);
    }
    case AST_STRING: case AST_INDEX: case AST_RANGE: case AST_ALL: case AST_TRANSPOSE: case AST_COND: case AST_REDUCE: case AST_ARRAY: case AST_FUNCTION: break;
    }
    return "0";
}

// The arguments of a draw.
static const char *draw_list(Out *o, const Node *n)
{
    const char *list = "&g";
    for (int i = 0; n->draw.call && i < n->draw.call->nkids; i++) list = text(o, "%s, %s", list, rule_text(o, n->draw.call->kid[i], n));
    for (int i = 0; !n->draw.call && i < n->draw.nargs; i++) {
        const Expr *e = n->draw.arg[i].value, *next = i + 1 < n->draw.nargs ? n->draw.arg[i + 1].value : NULL;
        list = text(o, "%s, %s", list, arg_text(o, &n->draw.arg[i]));
        if (e && !n->draw.whole && ex_rank(e) == 1 && (!next || ex_rank(next) == 0)) list = text(o, "%s, %s", list, extent_c(o, ex_dim((Expr *)e, 0), LOOSE));
    }
    return list;
}

static void emit_draw(Out *o, const Node *n)
{
    const char *element = element_text(o, n->draw.element), *list = draw_list(o, n), *routine = n->draw.call ? n->draw.call->name : n->draw.routine;
    if (n->draw.of) {
                const char *of = text(o, "%s%s(%s%s)", routine, n->draw.of, n->draw.expects ? text(o, "%d, ", n->draw.which) : "", strchr(list, ',') ? strchr(list, ',') + 2 : "");
        line(o, "const %s %s = %s;", n->draw.type, n->draw.x->name, of);
        if (n->draw.check == DRAW_FINITE) line(o, "VERIFY(x, \"%s\", %s);", n->draw.var->name, element);
        return;
    }
    if (!n->draw.goes_on) line(o, "%s", stream_text(o, n->draw.var, element));
    const char *x = n->draw.x ? n->draw.x->name : "x";
    if (n->draw.x) line(o, "const %s %s = %s(%s);", n->draw.type, n->draw.x->name, routine, list);
    else if (n->draw.whole) line(o, "%sif (%s(%s, %s, &%s)) FAULT(\"%s\", %s, \"no draw from its prior is possible: an argument is out of range, or a matrix not positive definite\");", o->team ? "ONE_LANE " : "",
                                 routine, list, extent_c(o, n->draw.whole, LOOSE), place_text(o, &n->draw.place), n->draw.var->name, element_text(o, n->draw.vector));
    else line(o, "%s = %s(%s);", place_text(o, &n->draw.place), routine, list);
    switch (n->draw.check) {
    case DRAW_UNCHECKED: break;
    case DRAW_FINITE: line(o, "VERIFY(%s, \"%s\", %s);", x, n->draw.var->name, element); break;
    case DRAW_COUNT: line(o, "if (!(%s >= 0 && %s <= 2147483647)) FAULT(\"%s\", %s, \"its draw is not a count of 32 bits\");", x, x, n->draw.var->name, element); break;
    }
}

static const char *kept_place(Out *o, const Var *kept, const Expr *element)
{
    return place_text(o, &(Place){.element = ex_ref((Var *)kept, element->nargs, element->args)});
}

// While an expression is printed, log and log(1 - x) of the element of c are these texts.
static void know_logs(Out *o, const Conditional *c, const char *log_x, const char *log1m_x)
{
    scope_know(&o->scope, ex_call1("log", c->u), local_new(o->arena, log_x));
    if (c->var->kept_log1m) scope_know(&o->scope, ex_call1("log1m", c->u), local_new(o->arena, log1m_x));
}

// What logarithms are kept of is claimed by these: the value itself may have rounded to an end of its support.
static void know_drawn(Out *o, const Conditional *c, const Var *x)
{
    scope_know(&o->scope, c->u, x);
    if (c->var->kept_log) know_logs(o, c, "log_kept(x, g.log_value)", "log1m_kept(x, g.log_rest)");
}

static void know_former(Out *o, const Conditional *c, const Var *old)
{
    scope_know(&o->scope, c->u, old);
    if (!c->var->kept_log) return;
    const Var *rest = c->var->kept_log1m;
    const char *log = text(o, "log_kept(old, %s)", kept_place(o, c->var->kept_log, c->current));
    know_logs(o, c, log, rest ? text(o, "log1m_kept(old, %s)", kept_place(o, rest, c->current)) : NULL);
}

// The claim of an exact draw: log q at the new value less log q at the old.
static const char *claim_list(Out *o, const Node *n)
{
    const Conditional *c = n->claim.c;
    static const Var x = {.name = "x"}, old = {.name = "old"};
    const char *list = NULL;
    for (int k = 0; k < n->claim.n; k++) {
        const int m = o->scope.n;
        know_drawn(o, c, &x);
        const char *now = expr_c(o, n->claim.statistic[k], ADDITIVE);
        scope_leave(&o->scope, m);
        know_former(o, c, &old);
        const char *then = expr_c(o, n->claim.statistic[k], MULTIPLICATIVE - (n->claim.statistic[k]->kind == EX_POW));
        scope_leave(&o->scope, m);
        // Terms apart, so that their sizes are known; a difference of squares without the squares.
        const Expr *s = n->claim.statistic[k];
        const char *difference = s->kind == EX_POW && s->args[0] == c->u && s->number == 2 ? "((x - old) * (x + old))" : text(o, "(%s - %s)", now, then);
        const char *t = text(o, "%s * %s", n->claim.natural[k]->name, difference);
        list = list ? text(o, "%s, %s", list, t) : t;
    }
    return list;
}

static void emit_claim(Out *o, const Node *n)
{
    if (!n->claim.c && n->claim.value) {
        const char *list = "";
        for (int i = 0; i < (n->claim.value->kind == EX_ADD ? n->claim.value->nargs : 1); i++)
            list = text(o, "%s%s%s", list, i ? ", " : "", expr_c(o, n->claim.value->kind == EX_ADD ? n->claim.value->args[i] : n->claim.value, LOOSE));
        line(o, "if (CHECKING) CLAIM(%s);", list);
    } else if (!n->claim.c) line(o, "NO_CLAIM();");
    else if (n->claim.n == 0) line(o, "CLAIM(0);");
    else line(o, "if (CHECKING) { const %s old = %s; CLAIM(%s); }", o->kernel->number, place_text(o, &(Place){.element = n->claim.c->current}), claim_list(o, n));
}

// ---- scalars that are drawn alike ----

static bool test_other(const Var *v, void *with)
{
    const Conditional *c = with;
    return v != c->var && v != c->u->var;
}

// In a program of many steps a scalar is drawn, looked at and stored by a call of a function that all scalars share whose conditionals are of one family.
// Returns the draw in the kernel from which on this is so, or NULL.
static const Node *drawn_alike(const Out *o, const Kernel *k)
{
    if (k->kind != KERNEL_SCALAR || o->program->nsteps <= MANY_STEPS) return NULL;
    const Node *n = k->body;
    while (n && n->kind != NODE_DRAW) n = n->next;
    if (!n || !n->draw.x || !n->draw.call || n->draw.check != DRAW_FINITE || n->draw.var->rank > 0 || placement_of(o->program, n->draw.var)->type != TYPE_WIDE) return NULL;
    const Node *claim = n->next, *store = claim ? claim->next : NULL;
    if (!store || store->next || claim->kind != NODE_CLAIM || !claim->claim.c || claim->claim.n == 0 || store->kind != NODE_UPDATE) return NULL;
    if (store->update.op != UPDATE_SET || store->update.times || store->update.place.local || store->update.place.element != claim->claim.c->current) return NULL;
    if (claim->claim.c->var != n->draw.var || store->update.value->kind != EX_REF || store->update.value->var != n->draw.x) return NULL;
    for (int i = 0; i < n->draw.nargs; i++) {
        const Expr *value = n->draw.arg[i].value;
        bool natural = !value;
        for (int j = 0; j < claim->claim.n && value; j++) natural |= value->kind == EX_REF && value->var == claim->claim.natural[j];
        if (!natural) return NULL;
    }
    for (int j = 0; j < claim->claim.n; j++)
        if (ex_any_var(claim->claim.statistic[j], test_other, (void *)claim->claim.c)) return NULL;
    return n;
}

// The same nodes with parameters for the names that they read, as a function that is written above the first kernel that calls it.
static void emit_drawn_alike(Out *o, const Node *n)
{
    Node draw = *n, claim = *n->next;
    const char *parameters = "", *arguments = "", *name = NULL;
    draw.draw.arg = NEW_N(o->arena, DrawArg, n->draw.nargs + 1);
    for (int i = 0; i < n->draw.nargs; i++) {
        draw.draw.arg[i] = n->draw.arg[i];
        if (!n->draw.arg[i].value) continue;
        Var *parameter = local_new(o->arena, n->draw.arg[i].name);
        draw.draw.arg[i].value = local_ref(parameter);
        for (int j = 0; j < claim.claim.n; j++)
            if (n->draw.arg[i].value->var == n->next->claim.natural[j]) claim.claim.natural[j] = parameter;
        parameters = text(o, "%s, const %s %s", parameters, n->draw.type, parameter->name);
        arguments = text(o, "%s, %s", arguments, expr_c(o, n->draw.arg[i].value, LOOSE));
    }
    const char *body = text(o, "(GmContext *GM, const Sweep at, const int id, const char *name, wide *place%s)\n{\n    Stream g = stream(at, id, 0);\n    const %s x = %s(%s);\n"
                            "    VERIFY(x, name, 0);\n    if (CHECKING) { const %s old = *place; CLAIM(%s); }\n    *place = x;\n}\n\n",
                            parameters, n->draw.type, n->draw.call->name, draw_list(o, &draw), o->kernel->number, claim_list(o, &claim));
    int same = 0;
    for (int i = 0; i < o->ndrawn && !name; i++) {
        if (strcmp(o->drawn[i].text, body) == 0) name = o->drawn[i].name;
        same += o->drawn[i].of == n->draw.call;
    }
    if (!name) {
        name = text(o, same ? "drawn_by_%s_%d" : "drawn_by_%s", n->draw.call->name, same + 1);
        ROOM(o->arena, o->drawn, o->ndrawn, o->drawn_size);
        o->drawn[o->ndrawn++] = (Drawn){name, body, n->draw.call};
        fprintf(o->file, "// A scalar with a conditional of this family: its draw, what --check is told of it, and where it is kept.\nSHARED_DRAW %s%s", name, body);
    }
    o->alike = n;
    o->alike_call = text(o, "%s(GM, at, VAR_%s, \"%s\", s->%s%s);", name, n->draw.var->name, n->draw.var->name, c_name(o, n->draw.var->name), arguments);
}

static void emit_interval(Out *o, const Factor *f)
{
    const Var *v = f->region ? f->region : f->value->var;
    const char *at = f->region || !v->rank ? "0" : position_text(o, v, 0, v->rank, f->value->args, NULL).c;
    const bool integer = f->dist ? f->dist->discrete : v->discrete;
    line(o, "if (!(%s %s %s)) FAULT(\"%s\", %s, \"no value lies between the ends of its support (%s)\");", expr_c(o, f->from, TIGHT), integer ? "<=" : "<", expr_c(o, f->to, TIGHT), v->name, at,
         source_line(o, f->span));
}

static void emit_check(Out *o, const Node *n)
{
    const Claim *c = n->check.claim;
    const char *fails = expr_c(o, c->fails[0], c->nparts == 2 ? ADDITIVE : LOOSE), *list = "";
    if (c->nparts == 2) fails = text(o, "%s || %s", fails, expr_c(o, c->fails[1], ADDITIVE));
    for (int i = 0; i < c->nnumbers; i++) list = text(o, "%s%s(long)(%s)", list, i ? ", " : "", expr_c(o, c->number[i], LOOSE));
    line(o, "if (%s) { const long found[] = {%s}; FAULT_AT(\"%s\", found, %d, \"%s\"); }", fails, *list ? list : "0", c->name, c->nnumbers, c->says);
}

static void emit_bounds(Out *o, const Node *n)
{
    const Factor *f = n->bounds.factor;
    if (n->bounds.interval) { emit_interval(o, f); return; }
    const Var *v = f->value->var;                // as read from the file: in the state, missing values have been filled in
    const char *at = v->rank ? position_text(o, v, 0, v->rank, f->value->args, NULL).c : NULL, *name = c_name(o, v->name);
    const char *y = at ? text(o, "d->%s[%s]", name, at) : text(o, "d->%s", name);
    if (v->kind == VAR_LET) y = text(o, at ? "s->%s[%s]" : "*s->%s", name, at);
    const char *lo = f->least ? text(o, "%s < %s", y, expr_c(o, f->least, TIGHT)) : NULL, *hi = f->most ? text(o, "%s > %s", y, expr_c(o, f->most, TIGHT)) : NULL;
    const char *outside = text(o, "%s%s%s", lo ? lo : "", lo && hi ? " || " : "", hi ? hi : "");
    if (v->base == BASE_INT) outside = text(o, lo && hi ? "%s != -2147483648.0 && (%s)" : "%s != -2147483648.0 && %s", y, outside);      // a missing int; a missing real is NaN
    const char *from = f->least ? ex_quote(o->arena, f->least) : NULL, *to = f->most ? ex_quote(o->arena, f->most) : NULL;
    line(o, "if (%s) FAULT(\"%s\", %s, \"the value lies outside the support of %s, %s%s%s (%s)\");", outside, v->name, at ? at : "0", f->dist->name, from ? from : "up", !to ? " and up" : " to ", to ? to : "",
         source_line(o, f->span));
}

// ---- draws of the predict block ----

static const char *routine_arguments(Out *o, const Site *t)
{
    const char *list = "&g";
    for (int i = 0; i < t->nsample; i++) {
        const Expr *e = t->args[i];
        list = text(o, "%s, %s", list, ex_rank(e) > 0 ? whole_text(o, e) : expr_c(o, e, LOOSE));
        if (t->n == t->var->rank && ex_rank(e) == 1) list = text(o, "%s, %s", list, extent_c(o, ex_dim((Expr *)e, 0), LOOSE));
    }
    return list;
}

// A number that has to lie between two ends, as x: see within.h. The body computes what the search asks of each value.
static void emit_within(Out *o, const Node *n, const char *pos)
{
    static const Var names[] = {{.name = "lower"}, {.name = "upper"}, {.name = "search.x"}};
    const Site *t = n->sample.site;
    Expr *const *rest = t->args + t->nsample;
    const char *name = t->var->name, *dist = t->dist->name, *where = source_line(o, t->span), *least = expr_c(o, rest[2], LOOSE), *most = expr_c(o, rest[3], LOOSE);
    line(o, "wide lower = %s, upper = %s;", expr_c(o, rest[0], LOOSE), expr_c(o, rest[1], LOOSE));
    if (!ex_is_num(rest[2], -INFINITY)) line(o, "if (lower < %s) lower = %s;", least, least);
    if (!ex_is_num(rest[3], INFINITY)) line(o, "if (upper > %s) upper = %s;", most, most);
    line(o, "if (!(lower <= upper)) FAULT(\"%s\", %s, \"no value of %s lies between its ends (%s)\");", name, pos, dist, where);
    line(o, "wide x = NAN;");
    if (t->exact) {
        for (int side = 0; side < 2; side++) scope_know(&o->scope, t->end[side], &names[side]);
        line(o, "x = %s(%s);", t->sample, routine_arguments(o, t));
        line(o, "if (!is_finite(x)) FAULT(\"%s\", %s, \"its truncated %s could not be drawn: an argument is out of range, or so little of it lies between the ends (%s)\");", name, pos, dist, where);
        return;
    }
    const bool search = t->dist->discrete || t->nargs - t->guarded > t->nsample + 4;
    if (t->sample)
        line(o, "for (long tries = 0; tries < %s && !(x >= lower && x <= upper); tries++) x = %s(%s);", search ? "GM_TRIES" : "GM_MOST_TRIES", t->sample, routine_arguments(o, t));
    begin(o, "if (!(x >= lower && x <= upper))");
    if (search) {
        if (t->dist->discrete) {
            line(o, "Weights search = weights_start(lower, upper);");
            begin(o, "while (weights_next(&g, &search))");
        } else {
            line(o, "Inversion search = inversion_start(&g, lower, upper);");
            begin(o, "while (inversion_next(&search, %s, %s))", least, most);
        }
        const Mark m = enter(o);
        scope_know(&o->scope, t->x, &names[2]);
        emit_list(o, n->body);
        leave(o, m);
        end(o);
        line(o, "x = %s(&search);", t->dist->discrete ? "weights_value" : "inversion_value");
    }
    line(o, "if (!(x >= lower && x <= upper)) FAULT(\"%s\", %s, \"so little of %s lies between its ends that it cannot be drawn (%s)\");", name, pos, dist, where);
    end(o);
}

static void emit_sample(Out *o, const Node *n)
{
    const Site *t = n->sample.site;
    const Var *v = t->var;
    Expr *at[MAX_RANK];
    for (int k = 0; k < v->rank; k++) at[k] = k < t->n ? t->subscript[k] : ex_num(1);
    const char *pos = v->rank ? position_text(o, v, 0, v->rank, at, NULL).c : "0", *place = v->rank ? text(o, "%s[%s]", var_text(o, v), pos) : text(o, "*%s", var_text(o, v));
    const char *name = v->name, *where = source_line(o, t->span);
    const Mark m = enter(o);
    begin(o, "%s", "");                          // a scope for the names of the draw
    if (t->guarded) line(o, "if (!%s) FAULT(\"%s\", %s, \"it cannot be drawn from %s: an argument is out of range (%s)\");", expr_c(o, t->args[t->nargs - 1], TIGHT), name, pos, t->dist->name, where);
    line(o, "%s", stream_text(o, v, pos));
    if (t->n < v->rank) {                        // a vector or a matrix, in its place
        line(o, "if (%s(%s, %s, &%s)) FAULT(\"%s\", %s, \"its draw from %s is not possible: an argument is out of range, or a matrix not positive definite (%s)\");",
             t->sample, routine_arguments(o, t), extent_c(o, v->dim[v->rank - 1], LOOSE), place, name, pos, t->dist->name, where);
    } else {
        if (t->within) emit_within(o, n, pos);
        else line(o, "const wide x = %s(%s);", t->sample, routine_arguments(o, t));
        for (int side = 0; side < 2 && t->dist->discrete && !t->within; side++) {
            const Expr *bound = t->args[t->nsample + side];
            if (bound->kind != EX_NUM || isfinite(bound->number))
                line(o, "if (!(x %s %s)) FAULT(\"%s\", %s, \"it cannot be drawn from %s: an argument is out of range (%s)\");", side ? "<=" : ">=", expr_c(o, bound, TIGHT), name, pos, t->dist->name, where);
        }
        if (v->base == BASE_INT) line(o, "if (!(x >= -2147483647 && x <= 2147483647)) FAULT(\"%s\", %s, \"its draw is not an integer of 32 bits\");", name, pos);
        else line(o, "VERIFY(x, \"%s\", %s);", name, pos);
        line(o, v->base == BASE_INT ? "%s = INTEGER_DRAWN(x);" : "%s = x;", place);
    }
    end(o);
    leave(o, m);
}

// ---- samplers ----

static void emit_compute(Out *o, const Series *s, bool slopes, Expr *chain)
{
    const char *which = "";
    if (s->chains && chain) {
        const char *k = subscript_text(o, chain).c;
        which = text(o, ", %s, %s + 1", k, k);
    } else if (s->chains) which = text(o, ", 0, %s", extent_c(o, s->var[0]->dim[0], LOOSE));
    line(o, "%s(%sd, s%s%s);", function_name(o->arena, text(o, "compute_%s", s->var[0]->name)), any_wild(o->g) ? "GM, " : "", s->var[0]->sites->ode ? slopes ? ", GM_ODE_SLOPES" : ", GM_ODE_VALUES" : "", which);
}

// The series that an element enters, after its value in the state has changed.
static void compute_again(Out *o, const Conditional *c)
{
    for (const Series *s = o->g->series; s && c->recursion; s = s->next)
        if (s->var[0]->kind == VAR_SERIES && !s->apart && series_reads(s, c->var)) emit_compute(o, s, false, c->chain);
}

static void store(Out *o, const char *place, const char *x)
{
    if (o->crew) line(o, "ELEMENT_LANE %s = %s;", place, x);
    else line(o, o->team ? "SET(%s, %s);" : "%s = %s;", place, x);
}

// A slice along log x or logit x, of which the logarithms are kept beside x.
static bool keeps_logs(const Node *n) { return n->kind == NODE_SLICE && n->slice.c->var->kept_log && !n->slice.c->whole && n->slice.c->var->constraint == CONSTRAINT_NONE; }

// The log density lp of the value that is tried: x, which is put in its place if the density reads it there.
static void emit_density_at(Out *o, const Node *n, const Conditional *c, const char *place)
{
    static const Var x = {.name = "x"};
    if (place) store(o, place, "x");
    compute_again(o, c);
    const Mark m = enter(o);
    scope_wrote(&o->scope, n);
    if (!c->whole && c->u) scope_know(&o->scope, c->u, &x);
    if (!c->whole && c->u && keeps_logs(n)) know_logs(o, c, "sl.log_x", "sl.log1m_x");
    line(o, "wide lp = 0;");
    emit_list(o, n->body);
    leave(o, m);
}

// A slice sampler or a Metropolis step: both ask for the log density at sl.x until they have the new value.
static void emit_slice(Out *o, const Node *n)
{
    const bool metropolis = n->kind == NODE_METROPOLIS;
    const char *sampler = o->g->method == METHOD_EM ? "climb" : metropolis ? "metropolis" : "slice";
    const Conditional *c = n->slice.c;
    const Var *v = c->var;
    const char *place = place_text(o, &(Place){.element = c->current}), *element = element_text(o, n->slice.element);
    const char *width = v->rank ? text(o, "s->%s[%s]", n->slice.width->name, position_text(o, v, 0, v->rank, c->current->args, NULL).c) : text(o, "*s->%s", n->slice.width->name);
    const char *lo = n->slice.lo ? expr_c(o, n->slice.lo, LOOSE) : "-INFINITY", *hi = n->slice.hi ? expr_c(o, n->slice.hi, LOOSE) : "INFINITY";
    const bool positive = !v->discrete && v->lower_number == 0 && !isfinite(v->upper_number);
    line(o, "%s", stream_text(o, v, n->slice.stream ? element_text(o, n->slice.stream) : element));
    line(o, "const wide current = %s, width = slice_width(%s, %s);", place, width, n->slice.start ? expr_c(o, n->slice.start, LOOSE) : "1");
    line(o, "wide start = current;");
    if (n->slice.claims) line(o, "wide began = 0;");
    line(o, "%s sl;", o->g->method == METHOD_EM ? "Climb" : metropolis ? "Metropolis" : "Slice");
    begin(o, "for (int attempt = 0; attempt < (WARMING_UP ? 100 : 1); attempt++)");
    line(o, "if (attempt) start = slice_restart(&g, current, attempt, %s, %s);", lo, hi);
    if (keeps_logs(n)) {
        const char *log = text(o, "start == current ? log_kept(current, %s) : log(start)", kept_place(o, v->kept_log, c->current));
        if (positive) line(o, "slice_begin_log_kept(&sl, &g, start, %s, %s, %s, width);", log, lo, hi);
        else line(o, "slice_begin_logit_kept(&sl, &g, start, %s, start == current ? log1m_kept(current, %s) : log1m(start), %s, %s, width);", log, kept_place(o, v->kept_log1m, c->current), lo, hi);
    } else line(o, "%s_begin%s(&sl, &g, start, %s, %s, width);", sampler, positive ? "_log" : "", lo, hi);
    begin(o, "while (%s_next(&sl))", sampler);
    const bool integer = v->discrete && v->base == BASE_INT;
    line(o, "const %s x = %s;", integer ? "long" : "wide", integer ? "(long)floor(sl.x + 0.5)" : v->discrete ? "floor(sl.x + 0.5)" : "sl.x");
    if (keeps_logs(n)) line(o, "(void)x;");              // a density may read its logarithm alone
    emit_density_at(o, n, c, c->whole ? place : NULL);
    line(o, "sl.log_density = lp;");
    if (n->slice.claims) line(o, "if (sl.x == start) began = lp;");
    end(o);
    line(o, "if (!sl.failed) break;");
    end(o);
    store(o, place, integer ? "(int)floor(sl.x + 0.5)" : v->discrete ? "floor(sl.x + 0.5)" : v->hidden ? "sl.failed ? current : sl.x" : "sl.x");
    if (keeps_logs(n)) {
        store(o, kept_place(o, v->kept_log, c->current), "sl.log_x");
        if (v->kept_log1m) store(o, kept_place(o, v->kept_log1m, c->current), "sl.log1m_x");
    }
    if (n->slice.follows) line(o, "const wide change = sl.x - current;");
    compute_again(o, c);
    if (!v->hidden) line(o, "if (sl.failed) FAULT(\"%s\", %s, \"its log density is not finite where the chain stands\");", v->name, element);      // a move along an orbit is left out then
    line(o, "if (WARMING_UP) %s%s = %s_adapt(width, &sl, %s);", o->crew ? "ELEMENT_LANE " : o->team ? "ONE_LANE " : "", width, sampler, metropolis ? "SWEEP" : "start");
    if (n->slice.claims) line(o, "if (CHECKING) CLAIM(sl.failed || sl.x == start ? 0 : sl.log_density - began);");
    else line(o, "NO_CLAIM();");
}


static void emit_fault_unless_chosen(Out *o, const char *chosen, const char *name, const char *element) { line(o, "if (%s < 1) FAULT(\"%s\", %s, \"no value has a positive probability\");", chosen, name, element); }

// What ends a draw by weights: value number `chosen` is stored; `weight` is the logarithm of its weight.
static void emit_chosen(Out *o, const Node *n, const char *place, const char *element, const char *weight)
{
    emit_fault_unless_chosen(o, "chosen", n->weigh.c->var->name, element);
    line(o, "const long x = chosen < 1 ? old : first + chosen - 1;");
    if (n->weigh.marginal) line(o, "NO_CLAIM();");
    else line(o, "if (CHECKING) CLAIM(%s - old_weight);", weight);
    line(o, n->weigh.c->var->base == BASE_INT ? "%s = (int)x;" : "%s = x;", place);
    compute_again(o, n->weigh.c);
}

// With an array for the weights of all values: by a team, which shares the sums of each density, and where there are few.
static void emit_weigh_all(Out *o, const Node *n, const char *place, const char *element, bool few)
{
    const Conditional *c = n->weigh.c;
    const Var *v = c->var;
    if (few) line(o, "wide weight[values];");
    else if (n->weigh.weights) line(o, "%s *weight = &%s;", n->weigh.expects && is_real(o->program, n->weigh.weights) ? "real" : "wide", place_text(o, &(Place){.element = n->weigh.at}));
    else line(o, "wide *weight = TEAM_SCRATCH(%s);", n->weigh.moves ? "values > 0 ? values : 1" : "values");
    if (!n->weigh.expects) line(o, "const long old = %s;", place);
    begin(o, "for (long value = 0; value < values; value++)");
    line(o, "const long x = first + value;");
    emit_density_at(o, n, c, c->whole ? place : NULL);
    line(o, o->team ? "ONE_LANE weight[value] = lp;" : "weight[value] = lp;");
    end(o);
    if (n->weigh.expects) {
        const Count all = count_dims(v, 0, v->rank);
        const char *evidence = n->weigh.evidence ? text(o, "&%s", place_text(o, &(Place){.element = n->weigh.evidence})) : "NULL";
        line(o, "%sif (expect_values(&g, at, %s, weight, values, %s)) FAULT(\"%s\", %s, \"no value has a positive probability\");", o->team ? "ONE_LANE " : "", count_text(o, &all), evidence, v->name, element);
        return;
    }
    if (o->team) begin(o, "ONE_LANE");
    if (!n->weigh.marginal) line(o, "const wide old_weight = CHECKING%s ? weight[old - first] : 0;", n->weigh.moves ? " && old >= first && old - first < values" : "");
    if (!n->weigh.marginal) line(o, "if (CHECKING) NEW_WEIGHTS(weight, values);");
    line(o, "const long chosen = categorical_log_weights(&g, weight, values);");
    emit_chosen(o, n, place, element, "CHECK_WEIGHT(x - first)");
    if (!o->team) return;
    end(o);
    if (!n->weigh.weights) line(o, "TEAM_RELEASE(weight);");
}

// On a GPU, where all that depends on row and value is a distance: several rows a lane, which is all of the kernel then.
static void emit_classify(Out *o, const Node *n)
{
    const Conditional *c = n->weigh.c;
    const Distances *d = n->weigh.distances;
    static const Var x = {.name = "x"};
    Expr *first[] = {ex_num(1), ex_num(1)};
    const char *rows = extent_c(o, c->var->dim[0], LOOSE), *p = extent_c(o, d->row->dim[1], LOOSE), *row = place_text(o, &(Place){.element = ex_ref((Var *)d->row, 2, first)});
    fprintf(o->file, "#ifdef CLASSIFY            // on a GPU\n");
    const Mark m = enter(o);
    scope_know(&o->scope, c->u, &x);
    begin(o, "if (CLASSIFY(%s))", p);
    line(o, "const auto of_value = [&](long x) -> wide { return %s; };", expr_c(o, d->of_value, LOOSE));
    if (n->weigh.expects)
        line(o, "if (expect_rows(GM, at, VAR_%s, \"%s\", %s, %s, %s, %s, s->%s, s->%s, s->%s, %s, %.17g, of_value)) return;", c->var->name, c->var->name, rows, expr_c(o, n->weigh.first, LOOSE),
             expr_c(o, n->weigh.last, LOOSE), text(o, "&%s", row), c_name(o, d->centre->name), d->root->name, n->weigh.weights->name, n->weigh.evidence ? text(o, "s->%s", n->weigh.evidence->var->name) : "(wide *)0", d->times);
    else line(o, "classify(GM, at, VAR_%s, \"%s\", %s, %s, %s, &%s, s->%s, s->%s, s->%s, %.17g, of_value);", c->var->name, c->var->name, rows, expr_c(o, n->weigh.first, LOOSE), expr_c(o, n->weigh.last, LOOSE), row,
         c_name(o, d->centre->name), d->root->name, c_name(o, c->var->name), d->times);
    if (!n->weigh.expects) line(o, "return;");
    end(o);
    leave(o, m);
    fprintf(o->file, "#endif\n");
}

// The choice by products of weights in tables, if it can be made that way (weights.h): then it is not 0.
static void emit_choose(Out *o, const Node *n)
{
    const ValueWeights *w = n->weigh.weights_of;
    const char *rows = "";
    int count = 0;
    for (; w; w = w->next, count++) {
        const char *row = w->n == 0 ? "0" : text(o, "%s * WEIGHTS_WIDTH(values)", paren(o, position_text(o, w->var, 0, w->n, w->key, NULL), TIGHT));
        rows = text(o, "%s%s&s->%s[%s]", rows, count ? ", " : "", w->var->name, row);
    }
    line(o, "const real *const weights[] = {%s};", rows);
    line(o, "long chosen = choose_by_weights(&g, values, %d, weights);", count);
    if (!n->weigh.marginal) {
        line(o, "wide new_weight = 0, old_weight = 0;");
        line(o, "if (CHECKING && chosen) { new_weight = log_of_weights(%d, weights, chosen); old_weight = log_of_weights(%d, weights, old - first + 1); }", count, count);
    }
}

// By one lane: the weights come some at a time, and the choice goes with them (discrete.h).
static void emit_weigh_by_lane(Out *o, const Node *n, const char *place, const char *element)
{
    const Conditional *c = n->weigh.c;
    const bool products = n->weigh.weights_of != NULL;
    line(o, "const long old = %s;", place);
    if (products) {
        emit_choose(o, n);
        begin(o, "if (!chosen)");
    } else if (!n->weigh.marginal) line(o, "wide old_weight = 0;");
    line(o, "Weighed all = weigh_start();");
    begin(o, "for (long begin = 0; begin < values; begin += WEIGHED_AT_ONCE)");
    line(o, "wide weight[WEIGHED_AT_ONCE];");
    line(o, "const long end = begin + WEIGHED_AT_ONCE < values ? begin + WEIGHED_AT_ONCE : values;");
    begin(o, "for (long value = begin; value < end; value++)");
    line(o, "const long x = first + value;");
    emit_density_at(o, n, c, c->whole ? place : NULL);
    line(o, "weight[value - begin] = lp;");
    end(o);
    if (!n->weigh.marginal) line(o, "if (CHECKING && old - first >= begin && old - first < end) old_weight = weight[old - first - begin];");
    line(o, "weigh_values(&all, &g, weight, begin, end - begin);");
    end(o);
    line(o, "%schosen = all.wrong ? 0 : all.chosen;", products ? "" : "const long ");
    if (products) {
        if (!n->weigh.marginal) line(o, "new_weight = all.log_chosen;");
        end(o);
    }
    emit_chosen(o, n, place, element, products ? "new_weight" : "all.log_chosen");
}

// An end of what is weighed: functions of whole numbers are reals in C.
static const char *end_c(Out *o, const Expr *e)
{
    bool real = e->kind == EX_CALL || e->kind == EX_POW;
    for (int i = 0; i < e->nargs && e->kind != EX_REF; i++) real |= e->args[i]->kind == EX_CALL || e->args[i]->kind == EX_POW;
    return text(o, "%s%s", real ? "(long)" : "", expr_c(o, e, TIGHT));
}

static void emit_weigh(Out *o, const Node *n)
{
    const char *place = place_text(o, &(Place){.element = n->weigh.c->current}), *element = element_text(o, n->weigh.element);
    line(o, "%s", stream_text(o, n->weigh.c->var, element));
    const Expr *first = n->weigh.first, *last = n->weigh.last;
    const bool few = !o->team && !n->weigh.expects && first->kind == EX_NUM && last->kind == EX_NUM && last->number - first->number < WEIGHED_AT_ONCE && last->number >= first->number;
    if (few) line(o, "enum { first = %.0f, values = %.0f };", first->number, last->number - first->number + 1);
    else line(o, "const long first = %s, values = %s - first + 1;", end_c(o, first), end_c(o, last));
    if ((few && !n->weigh.weights_of) || o->team || n->weigh.expects) emit_weigh_all(o, n, place, element, few);
    else emit_weigh_by_lane(o, n, place, element);
}

// A table of weights: each row over its largest number, and zeros in the room behind it.
static void emit_weights(Out *o, const Node *n)
{
    const ValueWeights *w = n->weights.of;
    const Mark m = enter(o);
    const Count rows = count_dims(w->var, 0, w->n);
    const char *names[MOST_VALUE_KEYS] = {"row"};
    for (int k = 0; k < w->n; k++) names[k] = fresh_index(o, w->index[k]);
    const char *row = w->n == 1 ? names[0] : "row", *values = extent_c(o, w->value->hi, LOOSE);
    begin(o, "EACH_WEIGHTS (%s, %s)", row, w->n ? count_text(o, &rows) : "1");
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
    const char *scaled = w->weight ? text(o, "%s / top", expr_c(o, w->weight, MULTIPLICATIVE)) : text(o, "exp(%s - top)", expr_c(o, w->log, ADDITIVE));
    line(o, "WEIGHTS_TURNS (%s, WEIGHTS_WIDTH(%s)) s->%s[%s%s] = %s < %s ? %s : 0;", value, values, w->var->name, w->n ? text(o, "%s * WEIGHTS_WIDTH(%s) + ", row, values) : "", value, value, extent_c(o, w->value->hi, ADDITIVE), scaled);
    end(o);
    leave(o, m);
}

static bool is_vector(const Var *v) { return constraint_rank(v) == 1; }

// Elliptical slice sampling. The stream that the draw from the prior has used stays one lane's.
static void emit_ellipse(Out *o, const Node *n)
{
    const Var *v = n->ellipse.c->var;
    const char *element = element_text(o, n->ellipse.vector);
    line(o, "Stream turning = stream(at, VAR_%s, %s);", v->name, element_text(o, n->ellipse.stream));
    line(o, "Ellipse ellipse;");
    line(o, "ellipse_begin(&ellipse, &turning, WARMING_UP ? 100 : 0);");
    begin(o, "while (ellipse_next(&ellipse))");
    if (o->team) line(o, "TEAM_BARRIER();");
    line(o, "const wide %s = ellipse.cosine, %s = ellipse.sine;", n->ellipse.cosine->name, n->ellipse.sine->name);
    const Mark m = enter(o);
    scope_wrote(&o->scope, n);
    line(o, "wide lp = 0;");
    emit_list(o, n->body);
    leave(o, m);
    line(o, "ellipse.log_density = lp;");
    end(o);
    line(o, "if (ellipse.failed) FAULT(\"%s\", %s, \"its log density is not finite where the chain stands\");", v->name, element);
    line(o, "NO_CLAIM();");
}

static void emit_move(Out *o, const Node *n)
{
    const Conditional *c = n->move.c;
    const Var *v = c->var;
    const Constraint k = v->constraint;
    const bool vector = is_vector(v), once = !n->move.inside;
    const char *name = c_name(o, v->name), *width = n->move.width->name;
    Count batches = count_dims(v, 0, v->rank - (vector ? 1 : 2));
    line(o, "const long size = %s;", extent_c(o, v->dim[v->rank - 1], LOOSE));
    begin(o, "for (long batch = 0; batch < %s; batch++)", count_text(o, &batches));
    line(o, "wide *value = &s->%s[batch * size%s], *widths = &s->%s[batch * size%s];", name, vector ? "" : " * size", width, vector ? "" : " * size");
    begin(o, "for (long move = 0; move < %s; move++)", vector ? "size - 1" : "size * size");
    if (v->kept_log) line(o, "ConstrainedMove m = constrained_begin_logs(value, &s->%s[batch * size], size, move);", v->kept_log->name);
    else
        line(o, "ConstrainedMove m = constrained_begin(GM_MOVE_%s, value, size, move);",
             k == CONSTRAINT_SIMPLEX ? o->g->method == METHOD_EM ? "SIMPLEX" : "RATIO" : k == CONSTRAINT_UNIT_VECTOR ? "UNIT" : k == CONSTRAINT_SUM_TO_ZERO ? "SUM_TO_ZERO" : k == CONSTRAINT_COVARIANCE ? "COVARIANCE"
             : k == CONSTRAINT_CORRELATION ? "CORRELATION" : k == CONSTRAINT_CHOLESKY_COV ? "CHOLESKY_COV" : "CHOLESKY_CORR");
    line(o, "if (!m.moves) continue;");
    line(o, "Stream g = stream(at, VAR_%s, batch * size * size + move);", v->name);
    line(o, "const wide width = slice_width(widths[move], %s);", n->move.start ? expr_c(o, n->move.start, LOOSE) : "1");
    const char *sampler = o->g->method == METHOD_EM ? "climb" : "slice";
    if (n->slice.claims) line(o, "wide began = 0;");
    line(o, "%s sl;", o->g->method == METHOD_EM ? "Climb" : "Slice");
    line(o, "%s_begin(&sl, &g, m.start, m.lo, m.hi, width);", sampler);
    begin(o, "while (%s_next(&sl))", sampler);
    if (!once) {
        line(o, "TEAM_BARRIER();");
        line(o, "ONE_LANE *s->%s = constrained_set(&m, sl.x);", n->move.inside->name);
    }
    line(o, "if (!%s) { sl.log_density = -INFINITY; continue; }", once ? "constrained_set(&m, sl.x)" : text(o, "*s->%s", n->move.inside->name));
    emit_density_at(o, n, c, NULL);
    const bool slope = (k == CONSTRAINT_SIMPLEX || k == CONSTRAINT_CHOLESKY_CORR) && o->g->method != METHOD_EM;
    line(o, slope ? "sl.log_density = lp + constrained_slope(&m, sl.x);" : "sl.log_density = lp;");
    end(o);
    if (!once) line(o, "TEAM_BARRIER();");
    line(o, "%sconstrained_set(&m, sl.x);", once ? "" : "ONE_LANE ");
    compute_again(o, c);
    line(o, "if (sl.failed) FAULT(\"%s\", move, \"its log density is not finite where the chain stands\");", v->name);
    line(o, "if (WARMING_UP) %swidths[move] = %s_adapt(width, &sl, m.start);", once ? "" : "ONE_LANE ", sampler);
    line(o, "NO_CLAIM();");
    end(o);
    end(o);
}

// ---- joint draws ----

static void emit_draw_array(Out *o, const Node *n)
{
    const Conditional *c = n->whole.c;
    const Var *v = c->var;
    const bool simplex = v->constraint == CONSTRAINT_SIMPLEX;
    const char *e = c->nbatch ? "e" : "0", *elements = simplex ? "n" : "n * n", *at = c->nbatch ? text(o, "e * %s", elements) : "0";
    const char *array = n->whole.array->name, *scalar = n->whole.scalar ? n->whole.scalar->name : NULL;
    const bool team = o->team && c->nbatch, shared = team && simplex, crew = team && !simplex;      // long simplexes and matrices by more than a lane
    if (team) line(o, "const long n = %s;", extent_c(o, v->dim[v->rank - 1], LOOSE));
    if (c->nbatch) {
        Count count = count_dims(v, 0, c->nbatch);
        if (team) begin(o, "%s (e, %s, n)", simplex ? "EACH_SIMPLEX" : "EACH_MATRIX", count_text(o, &count));
        else begin(o, "EACH (e, %s)", count_text(o, &count));
    }
    if (!shared) line(o, "%s", stream_text(o, v, e));
    if (!team) line(o, "const long n = %s;", extent_c(o, v->dim[v->rank - 1], LOOSE));
    line(o, "wide *x = &s->%s[%s];", c_name(o, v->name), at);
    if (v->kept_log) line(o, "SAVE_OLD_LOGS(x, &s->%s[%s], %s);", v->kept_log->name, at, elements);
    else line(o, "SAVE_OLD(x, %s);", elements);
    const char *first = o->g->method == METHOD_EM ? "" : "&g, ", *mode = o->g->method == METHOD_EM ? "_mode" : "";
    const char *logs = v->kept_log ? text(o, ", &s->%s[%s]", v->kept_log->name, at) : "";
    if (shared) line(o, "DRAW_SIMPLEX%s(%s, VAR_%s, e, &s->%s[%s], n, x%s);", v->kept_log ? "_LOGS" : "", c->family->draw->name, v->name, array, at, logs);
    else if (simplex && v->kept_log) line(o, "%s_logs(&g, &s->%s[%s], n, x%s);", c->family->draw->name, array, at, logs);
    else if (simplex) line(o, "%s%s(%s&s->%s[%s], n, x);", c->family->draw->name, mode, first, array, at);
    else {
        const char *routine = text(o, "%s%s", c->family->draw->name, mode);
        line(o, "wide *work = %sSCRATCH(3 * n * n);", crew ? "CREW_" : "");
        line(o, "%s%ss->%s[%s], &s->%s[%s], n, x, work);", crew ? text(o, "CREW(%s, ", routine) : text(o, "%s(", routine), first, scalar, e, array, at);
        line(o, "%sRELEASE(work);", crew ? "CREW_" : "");
    }
    line(o, "VERIFY(x[0], \"%s\", %s);", v->name, e);
    if (simplex && v->kept_log) line(o, "if (CHECKING) CLAIM(dirichlet_claim_logs(&s->%s[%s], n, x%s, OLD));", array, at, logs);
    else if (simplex) line(o, "if (CHECKING) CLAIM(dirichlet_claim(&s->%s[%s], n, x, OLD));", array, at);
    else line(o, "if (CHECKING) CLAIM(%s_claim(s->%s[%s], &s->%s[%s], n, x, OLD));", c->family->name, scalar, e, array, at);
    if (c->nbatch) end(o);
}

static void emit_draw_normal(Out *o, const Node *n)
{
    const Step *s = n->normal.step;
    const Var *first = s->block[0];
    const char *J = n->normal.J->name, *h = n->normal.h->name;
    Count count = count_dims(first, 0, s->gaussian.nbatch);
    line(o, "const long n = %s;", extent_c(o, n->normal.size, LOOSE));
    if (s->gaussian.scales) line(o, "if (MARGINAL_NORMALS(%s, n, s->%s, s->%s, s->%s)) return;", count_text(o, &count), J, h, c_name(o, first->name));
    begin(o, o->team ? "EACH_MATRIX (e, %s, n)" : "EACH (e, %s)", count_text(o, &count));
    const char *turn = s->in_turns ? place_text(o, &(Place){.element = ex_ref(s->in_turns->turns->turn, 0, NULL)}) : NULL;
    line(o, "%s", stream_text(o, first, turn ? text(o, "e + %s * (long)%s", count_text(o, &count), turn) : "e"));
    line(o, "wide *x = &s->%s[e * n];", c_name(o, first->name));
    line(o, "SAVE_OLD(x, n);");
    if (s->gaussian.diagonal) {
        line(o, "if (normal_diagonal_sum_to_zero(&g, n, &s->%s[e * n], &s->%s[e * n], x)) FAULT(\"%s\", e * n, NOT_POSITIVE_DEFINITE);", J, h, first->name);
        line(o, "if (CHECKING) CLAIM(normal_diagonal_claim(&s->%s[e * n], &s->%s[e * n], n, x, OLD));", J, h);
        end(o);
        return;
    }
    line(o, "if (CHECKING) CLAIM_QUADRATIC_BEFORE(n, &s->%s[e * n * n], &s->%s[e * n], x);", J, h);
    if (s->gaussian.on_plane) {
        line(o, "wide *work = SCRATCH(n);");
        line(o, "if (normal_sum_to_zero(&g, n, &s->%s[e * n * n], &s->%s[e * n], x, work)) FAULT(\"%s\", e * n, NOT_POSITIVE_DEFINITE);", J, h, first->name);
        line(o, "RELEASE(work);");
    } else if (o->team) line(o, "if (CREW(normal_draw, &g, n, &s->%s[e * n * n], &s->%s[e * n], x)) FAULT(\"%s\", e * n, NOT_POSITIVE_DEFINITE);", J, h, first->name);
    else line(o, "if (normal_%s(&g, n, &s->%s[e * n * n], &s->%s[e * n], x)) FAULT(\"%s\", e * n, NOT_POSITIVE_DEFINITE);", o->g->method == METHOD_EM ? "mode" : "draw", J, h, first->name);
    line(o, "if (CHECKING) CLAIM_QUADRATIC_AFTER(x);");
    end(o);
}

// A size of which the program's text says what it is, for which a routine is compiled of its own.
enum { BAND_UNROLLED = 4 };

static int known_size(const Expr *size, int unknown) { return size->kind == EX_NUM && size->number <= BAND_UNROLLED ? (int)size->number : unknown; }

static void emit_draw_band(Out *o, const Node *n)
{
    const Step *s = n->band.step;
    const Band *b = s->gaussian.band;
    const char *name = s->block[0]->name;
    const char *panels = extent_c(o, b->panels, LOOSE), *length = extent_c(o, b->length, LOOSE), *width = extent_c(o, b->width, LOOSE);
    if (n->band.z) line(o, "const Band band = {%s, %s, %s, %d, %s, s->%s, s->%s, s->%s, s->%s, s->%s};", panels, length, width, b->lag, extent_c(o, b->border, LOOSE), n->band.B->name, n->band.k->name, n->band.E->name, n->band.A->name, n->band.h->name);
    else line(o, "const Band band = {%s, %s, %s, %d, 0, s->%s, s->%s, NULL, NULL, NULL};", panels, length, width, b->lag, n->band.B->name, n->band.k->name);
    const int block = known_size(ex_mul2(ex_num(b->lag), b->width), 0), edge = n->band.z ? known_size(b->border, -1) : 0;
    line(o, "DRAW_BAND(%s, \"%s\", %d, %d, &band, s->%s, %s);", name, name, block, edge, c_name(o, n->band.x->name), n->band.z ? text(o, "s->%s", n->band.z->name) : "(wide *)0");
}

bool links_apart(const Graph *g)
{
    for (const Step *s = g->steps; s; s = s->next)
        if (s->joined && s->nblock > 1 && s->joined->nlinks && s->joined->link[0].of >= 0) return true;
    return false;
}

static void emit_draw_states(Out *o, const Node *n)
{
    const char *name = n->states.var->name, *size[6];
    Expr *const of[] = {n->states.panels, n->states.length, n->states.values, n->states.inside, n->states.by_panel, n->states.by_time};
    for (int k = 0; k < 6; k++) size[k] = extent_c(o, of[k], LOOSE);
    const Joined *j = n->states.joined;
    const bool apart = j && j->nlinks && j->link[0].of >= 0;
    const char *together = links_apart(o->g) && !apart ? ", 0, {{0, 0, 0}}" : "";       // of each link stride, values, whether it reads no others
    for (int l = 0; apart && l < j->nlinks; l++) {
        const JoinedLink *one = &j->link[l];
        Expr *stride = ex_num(1);
        for (int i = 0; i < one->of; i++) stride = ex_mul2(stride, j->count[i]);
        together = text(o, "%s{%s, %s, %d}%s", l ? together : text(o, ", %d, {", j->nlinks), extent_c(o, stride, LOOSE), extent_c(o, j->count[one->of], LOOSE), one->alone, l + 1 < j->nlinks ? ", " : "}");
    }
    line(o, "const States states = {%s, %s, %s, %s, %s, %s, s->%s, (Scaled *)s->%s, s->%s%s};", size[0], size[1], size[2], size[3], size[4], size[5], n->states.weight->name, n->states.link->name, n->states.part->name, together);
    line(o, "DRAW_STATES(%s, \"%s\", &states);", name, name);
}

static void emit_transform(Out *o, const Node *n)
{
    static const char *const name[] = {
        [CONSTRAINT_NONE] = "", [CONSTRAINT_SIMPLEX] = "simplex", [CONSTRAINT_ORDERED] = "ordered", [CONSTRAINT_POSITIVE_ORDERED] = "positive_ordered",
        [CONSTRAINT_UNIT_VECTOR] = "unit_vector", [CONSTRAINT_SUM_TO_ZERO] = "sum_to_zero", [CONSTRAINT_COVARIANCE] = "covariance", [CONSTRAINT_CORRELATION] = "correlation",
        [CONSTRAINT_CHOLESKY_COV] = "cholesky_cov", [CONSTRAINT_CHOLESKY_CORR] = "cholesky_corr"};
    const Var *v = n->transform.var;
    const bool ordered = v->constraint == CONSTRAINT_ORDERED, within = (ordered || v->constraint == CONSTRAINT_POSITIVE_ORDERED) && (v->lower_number > (ordered ? -INFINITY : 0) || v->upper_number < INFINITY);
    const char *of = within ? "ordered_within" : name[v->constraint], *size = extent_c(o, v->dim[v->rank - 1], LOOSE);
    if (within) size = text(o, "%s, %s, %s", size, expr_c(o, ex_num(v->lower_number), LOOSE), expr_c(o, ex_num(v->upper_number), LOOSE));
    Expr *const part[] = {n->transform.y, n->transform.x, n->transform.work, n->transform.slope, n->transform.out, n->transform.log_slope};
    enum { Y, X, WORK, SLOPE, OUT, LOG_SLOPE };
    const char *place[6];
    for (int i = 0; i < 6; i++) place[i] = part[i] ? place_text(o, &(Place){.element = part[i]}) : "";
    const char *logs = v->kept_log ? text(o, ", &%s", kept_place(o, v->kept_log, n->transform.x)) : "";
    switch (n->transform.part) {
    case TRANSFORM_FROM: line(o, "%s_from_line%s(%s, &%s, &%s%s);", of, v->kept_log ? "_logs" : "", size, place[Y], place[X], logs); break;
    case TRANSFORM_TO: line(o, "%s_to_line%s(%s, &%s%s, &%s, &%s);", of, v->kept_log ? "_logs" : "", size, place[X], logs, place[Y], place[WORK]); break;
    case TRANSFORM_CHAIN: line(o, "%s = %s_chain(%s, &%s, &%s, &%s, &%s, &%s);", place[LOG_SLOPE], of, size, place[Y], place[X], place[SLOPE], place[OUT], place[WORK]); break;
    }
}

static void emit_copy(Out *o, const Node *n)
{
    const char *off = NULL;
    for (int i = 0; i < n->copy.n; i++) {
        const Var *v = n->copy.var[i];
        Count count = count_dims(v, 0, v->rank);
        const char *len = count_text(o, &count), *name = c_name(o, v->name);
        if (v->rank == 0) {
            const char *place = text(o, "s->%s[%s]", n->copy.joint->name, off ? off : "0"), *value = text(o, "*s->%s", name);
            line(o, o->team ? "ONE_LANE %s = %s;" : "%s = %s;", n->copy.gather ? place : value, n->copy.gather ? value : place);
        } else {
            const char *place = text(o, "s->%s[%s%se]", n->copy.joint->name, off ? off : "", off ? " + " : ""), *value = text(o, "s->%s[e]", name);
            line(o, o->team ? "ALONG (e, %s) %s = %s;" : "for (long e = 0; e < %s; e++) %s = %s;", len, n->copy.gather ? place : value, n->copy.gather ? value : place);
        }
        off = off ? text(o, "%s + %s", off, len) : len;
    }
}

// ---- differential equations ----

static bool has_function(const Program *p, const Ode *ode, int which)
{
    const Kernel *const lists[] = {p->setup.first, p->sweep.first};
    for (int i = 0; i < 2; i++)
        for (const Kernel *k = lists[i]; k; k = k->next)
            if (k->ode == ode && (int)k->of_ode == which) return true;
    return false;
}

static void emit_solve(Out *o, const Node *n)
{
    const Ode *ode = n->solve.ode;
    const Site *t = ode->site;
    Expr *size = ex_dim(ode->call, 1), *at[MAX_RANK], *by = ode->start_moves ? ex_sub(ode->columns, size) : ode->columns;
    const bool slopes = n->solve.asked && ode->slopes && placement_of(o->program, ode->slopes)->var == ode->slopes;
    const char *const name = t->var->name;
    for (int k = 0; k < t->n; k++) at[k] = k < t->n - 2 ? t->subscript[k] : ex_num(1);
    begin(o, "%s", "");
    line(o, "Ode ode = {.data = d, .state = s, .right_side = %s%s};", function_name(o->arena, text(o, "right_side_%s", name)),
         has_function(o->program, ode, ODE_DERIVATIVES) ? text(o, ", .slopes = %s", function_name(o->arena, text(o, "derivatives_%s", name))) : "");
    line(o, "ode.n = %s;", extent_c(o, size, LOOSE));
    line(o, "ode.times = %s;", extent_c(o, ex_dim(ode->call, 0), LOOSE));
    line(o, "ode.ninput = %d;", ode->ninputs);
    line(o, "ode.by = %s;", extent_c(o, by, LOOSE));
    line(o, "ode.columns = %s;", extent_c(o, ode->columns, LOOSE));
    if (ode->stiff) line(o, "ode.stiff = 1;");
    line(o, "ode.from = %s;", expr_c(o, ode->from, LOOSE));
    line(o, "ode.relative = %s;", expr_c(o, ode->tolerance[0], LOOSE));
    line(o, "ode.absolute = %s;", expr_c(o, ode->tolerance[1], LOOSE));
    for (int k = 0; k < ode->plates.n; k++) line(o, "ode.at[%d] = %s;", k, subscript_text(o, ex_index(ode->plates.index[k])).c);
    line(o, "gm_ode_begin(&ode, CHECKING);");
    emit_list(o, n->body);
    at[t->n] = ex_num(1);
    const char *z = text(o, "&%s[%s]", var_text(o, t->var), position_text(o, t->var, 0, t->n, at, NULL).c), *S = "NULL";
    if (slopes) S = text(o, "how == GM_ODE_SLOPES ? &%s[%s] : NULL", var_text(o, ode->slopes), position_text(o, ode->slopes, 0, t->n + 1, at, NULL).c);
    line(o, "const char *const why = gm_ode_solve(&ode, %s, %s);", z, S);
    line(o, "gm_ode_end(&ode);");
    line(o, "if (why) FAULT(\"%s\", -1, why);", name);
    end(o);
}

// What the functions of a differential equation are given: data, state, the inputs and the indices of the loops around its statement.
static void emit_given(Out *o, const Ode *ode)
{
    line(o, "const Data *const d = (const Data *)ode->data;");
    line(o, "const State *const s = (const State *)ode->state;");
    line(o, "const wide *const %s = ode->input;", ode->inputs->name);
    const char *unused = "(void)d, (void)s";
    unused = text(o, "%s, (void)%s, (void)%s, (void)%s", unused, ode->inputs->name, ode->time->name, ode->state->name);
    for (int k = 0; k < ode->plates.n; k++) {
        const char *c = fresh_index(o, ode->plates.index[k]);
        line(o, "const long %s = ode->at[%d];", c, k);
        unused = text(o, "%s, (void)%s", unused, c);
    }
    line(o, "%s;", unused);
}

// ---- all kinds ----

static void emit_lane(Out *o, const Node *n)
{
    if (!o->team && !n->lane.key) {              // alone anyhow
        emit_list(o, n->body);
        return;
    }
    const Expr *group = o->group;
    const char *name = o->group_name;
    if (n->lane.key) {
        o->group_name = subscript_text(o, ex_index(n->lane.group)).c;
        o->group = n->lane.key;
    }
    const bool brief = o->brief = one_statement(n->body);
    begin(o, n->lane.key ? "GROUP_LANE" : "ONE_LANE");
    o->brief = false;
    emit_scope(o, n->body, false, false);
    if (!brief) end(o);
    o->group = group;
    o->group_name = name;
}

static void emit_if(Out *o, const Node *n)
{
    const char *condition = n->test.few ? few_c(o, n->test.few) : expr_c(o, n->test.condition, LOOSE);
    begin(o, n->test.negated ? "if (!(%s))" : "if (%s)", condition);
    emit_scope(o, n->body, o->team, o->crew);
    if (n->test.otherwise) {
        o->indent--;
        begin(o, "} else");
        o->depth--;
        emit_scope(o, n->test.otherwise, o->team, o->crew);
    }
    end(o);
}

static void emit_return(Out *o, const Node *n)
{
    const char *weight = expr_c(o, n->row.weight, LOOSE);
    if (n->row.square) line(o, "return row_weight_and(%s, %s);", weight, expr_c(o, n->row.square, LOOSE));
    else line(o, "return row_weight(%s);", weight);
}

static void emit_nest(Out *o, const Node *n)
{
    const bool careful = o->careful, as_read = o->as_read;
    o->careful |= n->nest.careful;
    o->as_read |= n->nest.as_read;
    emit_list(o, n->body);
    o->careful = careful;
    o->as_read = as_read;
}

static void emit_node(Out *o, const Node *n)
{
    switch (n->kind) {
    case NODE_COMMENT: line(o, "// %s", n->text.lines); break;
    case NODE_LET: emit_let(o, n); break;
    case NODE_KNOW: scope_know(&o->scope, n->let.key, n->let.local); break;
    case NODE_NEST: emit_nest(o, n); break;
    case NODE_REDUCE: emit_list(o, n->body); break;
    case NODE_LOOP: emit_loop(o, n); break;
    case NODE_LANE: emit_lane(o, n); break;
    case NODE_IF: emit_if(o, n); break;
    case NODE_SKIP: {
        const char *what = o->kernel->kind == KERNEL_ROW && o->depth == 1 ? "return row_weight(0)" : o->depth == 1 ? "return" : "continue";
        const Expr *c = n->skip.condition;
        const bool negated = c->kind == EX_CALL && c->fn == FN_NOT;
        line(o, "if (%s) %s;", negated ? expr_c(o, c->args[0], LOOSE) : negated_text(o, c).c, what);
        break;
    }
    case NODE_UPDATE: {
        Expr *exists = puts_row(n) ? NULL : place_exists(o, &n->update.place);
        if (exists) {
            o->brief = true;
            begin(o, "if (%s)", expr_c(o, exists, LOOSE));
            o->brief = false;
        }
        emit_update(o, n);
        break;
    }
    case NODE_FILL: emit_fill(o, n); break;
    case NODE_ORDER: {
        const Order *order = n->order.order;
        const Mark m = enter(o);
        const char *rows = extent_c(o, order->row->hi, LOOSE), *groups = extent_c(o, order->extent, LOOSE), *c = fresh_index(o, order->row);
        line(o, "ORDER_KEYED(%s, %s, %s, %s, s->%s, s->%s, s->%s, s->%s);", c, rows, groups, expr_c(o, order->key, LOOSE), order->keys->name, order->first->name, order->rows->name, order->spare->name);
        leave(o, m);
        break;
    }
    case NODE_BARRIER: line(o, "TEAM_BARRIER();"); break;
    case NODE_ARRAY: emit_array(o, n); break;
    case NODE_MATRIX: emit_matrix(o, n); break;
    case NODE_CHOICE: emit_choice(o, n); break;
    case NODE_DRAW: emit_draw(o, n); break;
    case NODE_SAMPLE: emit_sample(o, n); break;
    case NODE_CLAIM: emit_claim(o, n); break;
    case NODE_BOUNDS: emit_bounds(o, n); break;
    case NODE_CHECK: emit_check(o, n); break;
    case NODE_SLICE: case NODE_METROPOLIS: emit_slice(o, n); break;
    case NODE_WEIGH: emit_weigh(o, n); break;
    case NODE_WEIGHTS: emit_weights(o, n); break;
    case NODE_ELLIPSE: emit_ellipse(o, n); break;
    case NODE_MOVE: emit_move(o, n); break;
    case NODE_DRAW_ARRAY: emit_draw_array(o, n); break;
    case NODE_DRAW_NORMAL: emit_draw_normal(o, n); break;
    case NODE_DRAW_BAND: emit_draw_band(o, n); break;
    case NODE_DRAW_STATES: emit_draw_states(o, n); break;
    case NODE_TRANSFORM: emit_transform(o, n); break;
    case NODE_WHITENED: {
        static const char *const part[] = {[TRANSFORM_FROM] = "from", [TRANSFORM_TO] = "to", [TRANSFORM_CHAIN] = "chain"};
        Expr *const array[] = {n->whitened.shares, n->whitened.mean, n->whitened.from, n->whitened.q, n->whitened.apart, n->whitened.noise, n->whitened.slope, n->whitened.by_mean, n->whitened.left, n->whitened.right, n->whitened.pivot};
        const char *places = "";
        for (size_t i = 0; i < sizeof array / sizeof *array; i++)
            if (array[i]) places = text(o, "%s, &%s", places, place_text(o, &(Place){.element = array[i]}));
        line(o, "whitened_%s%s(%s, s->%s%s);", part[n->whitened.part], n->whitened.precision ? "_precision" : "", extent_c(o, n->whitened.size, LOOSE), n->whitened.root->name, places);
        break;
    }
    case NODE_FACTOR: {
        const char *size = extent_c(o, n->factor.matrix->dim[0], LOOSE);
        const char *of = n->factor.matrix->name;
        if (n->factor.inverse && n->factor.adjoint) line(o, "inverse_adjoint(%s, s->%s, s->%s[0], s->%s, s->%s);", size, n->factor.inverse->name, n->factor.log_det_adjoint->name, n->factor.adjoint->name, of);
        else if (n->factor.inverse) line(o, "inverse_and_log_det%s(%s, s->%s, s->%s, s->%s);", n->factor.unsure ? "_if_symmetric" : "", size, of, n->factor.inverse->name, n->factor.log_det->name);
        else if (n->factor.adjoint) line(o, "chol_adjoint(%s, s->%s, s->%s);", size, of, n->factor.adjoint->name);
        else line(o, "chol_%s(%s, s->%s);", n->factor.unsure ? "if_symmetric" : "in_place", size, of);
        break;
    }
    case NODE_ROUTINE:
        line(o, "CREW(%s_into, %s, %s, &%s);", n->routine.name, extent_c(o, n->routine.size, LOOSE), whole_text(o, n->routine.from), place_text(o, &(Place){.element = n->routine.to}));
        break;
    case NODE_COPY: emit_copy(o, n); break;
    case NODE_COMPUTE: emit_compute(o, n->compute.series, n->compute.slopes, n->compute.chain); break;
    case NODE_SOLVE: emit_solve(o, n); break;
    case NODE_RETURN: emit_return(o, n); break;
    case NODE_CALL: line(o, "%s += %s(GM, d, s);", n->call.into->name, n->call.part->name); break;
    case NODE_RESULT: line(o, o->kernel->kind == KERNEL_PART ? "return %s;" : "RESULT(%s);", expr_c(o, n->result.value, LOOSE)); break;
    }
}

static void emit_list(Out *o, const Node *list)
{
    for (const Node *n = list; n; n = n->next) {
        if (n == o->alike) {
            line(o, "%s", o->alike_call);
            return;
        }
        emit_node(o, n);
        scope_wrote(&o->scope, n);
    }
}

static bool sums_products(const Node *list)
{
    for (const Node *n = list; n; n = n->next)
        if ((n->kind == NODE_LOOP && n->loop.product) || sums_products(n->body) || (n->kind == NODE_IF && sums_products(n->test.otherwise))) return true;
    return false;
}

void emit_header(Out *o, const Kernel *k, const char *end)
{
    static const char *const macro[] = {
#define KERNEL_KIND(id, macro, help) [KERNEL_##id] = macro,
#include "../kernel/kernel.def"
    };
    if (k->ode && k->of_ode != ODE_SOLUTION)
        fprintf(o->file, "%sstatic void %s(const Ode *ode, const wide %s, const wide *%s, %s)%s", k->comment, k->name, k->ode->time->name, k->ode->state->name,
                k->of_ode == ODE_RIGHT_SIDE ? "wide *slope" : "wide *by_state, wide *by_input", end);
    else if (k->ode) fprintf(o->file, "%s%s %s(GmContext *GM, const Data *d, const State *s, const int how%s)%s", k->comment, macro[k->kind], k->name, k->chains ? ", const long from, const long to" : "", end);
    else if (k->kind == KERNEL_FUNCTION) fprintf(o->file, "%s%s %s(%sconst Data *d, const State *s%s)%s", k->comment, macro[k->kind], k->name, k->context ? "GmContext *GM, " : "", k->chains ? ", const long from, const long to" : "", end);
    else if (k->row) fprintf(o->file, "%s%s(%s, %s)%s", k->comment, macro[k->kind], k->name, marked(o, k->row->name), end);
    else if (k->terms) fprintf(o->file, "%sKERNEL_TERMS(%s, %d)%s", k->comment, k->name, k->terms, end);
    else fprintf(o->file, "%s%s(%s)%s", k->comment, k->kind != KERNEL_TEAM ? macro[k->kind] : k->on_request ? "KERNEL_ON_REQUEST" : k->columns || sums_products(k->body) ? "KERNEL_PRODUCTS" : macro[k->kind], k->name, end);
}

// Names of local variables, so that no loop takes one of them for its index.
static void take_names(Out *o, const Node *list)
{
    for (const Node *n = list; n; n = n->next) {
        const Var *v = n->kind == NODE_LET ? n->let.local : n->kind == NODE_ARRAY ? n->array.local : n->kind == NODE_MATRIX ? n->matrix.local : n->kind == NODE_CHOICE ? n->choice.local : NULL;
        if (v) {
            ROOM(o->arena, o->taken, o->ntaken, o->taken_size);
            o->taken[o->ntaken++] = v->name;
        }
        take_names(o, n->body);
        if (n->kind == NODE_IF) take_names(o, n->test.otherwise);
        if (n->kind == NODE_CHOICE) take_names(o, n->choice.otherwise);
    }
}

// What of a sum with a place for each value and each of some subscripts is told of column q: names for these.
static void begin_column(Out *o, const Columns *c, int which)
{
    const ColumnSum *s = &c->of[which];
    line(o, which + 1 < c->n ? "case %d: {" : "default: {", which);
    o->indent++;
    for (int k = 0; k < s->nplaces; k++) line(o, "const long %s = q.%c;", fresh_index(o, s->place[k]), 'a' + k);
}

static void end_column(Out *o)
{
    o->indent--;
    line(o, "}");
}

// On a GPU, where all that the kernel does is to add up weights times columns.
static void emit_columns(Out *o, const Columns *c)
{
    fprintf(o->file, "#ifdef COLUMNS_OF_WEIGHTS  // on a GPU\n");
    const Mark all = enter(o);
    line(o, "{");
    o->indent++;
    for (int n = 0; n < c->n; n++) {
        Count places = {0};
        for (int k = 0; k < c->of[n].nplaces; k++) places.factor[places.n++] = c->of[n].place[k]->hi;
        line(o, "const long until%d = %s%s;", n, n ? text(o, "until%d + ", n - 1) : "", places.n ? count_text(o, &places) : "1");
    }
    line(o, "const auto split = [&](long m) -> Column {");
    o->indent++;
    for (int n = 0; n < c->n; n++) {
        const ColumnSum *s = &c->of[n];
        const char *from = n ? text(o, "(m - until%d)", n - 1) : "m", *parts = "";
        for (int k = 0; k < s->nplaces; k++) {
            Count after = {0};
            for (int j = k + 1; j < s->nplaces; j++) after.factor[after.n++] = s->place[j]->hi;
            const char *over = after.n ? text(o, "%s / (%s)", from, count_text(o, &after)) : from;
            parts = text(o, k ? "%s, %s %% %s" : "%s, %s", parts, over, extent_c(o, s->place[k]->hi, TIGHT));
        }
        for (int k = s->nplaces; k < MOST_COLUMN_PLACES; k++) parts = text(o, "%s, 0", parts);
        if (n + 1 < c->n) begin(o, "if (m < until%d)", n);
        line(o, "%s q = {%d%s, {}};", s->ngiven ? "Column" : "const Column", n, parts);
        const Mark one = enter(o);
        for (int k = 0; k < s->nplaces && s->ngiven; k++) line(o, "const long %s = q.%c;", fresh_index(o, s->place[k]), 'a' + k);
        for (int k = 0; k < s->ngiven; k++) line(o, "q.given[%d] = (real)(%s);", k, expr_c(o, s->is[k], LOOSE));
        leave(o, one);
        line(o, "return q;");
        if (n + 1 < c->n) end(o);
    }
    o->indent--;
    line(o, "};");
    for (int part = 0; part < 2; part++) {
        const Mark m = enter(o);
        const char *i = part ? "" : fresh_index(o, c->of[0].row);
        line(o, part ? "const auto place = [&](long v, const Column &q) -> wide & {" : "const auto column = [&](long %s, const Column &q) -> real {", i);
        o->indent++;
        line(o, "switch (q.sum) {");
        for (int n = 0; n < c->n; n++) {
            const ColumnSum *s = &c->of[n];
            const Mark one = enter(o);
            if (part) name_index(o, s->value, "v");
            else name_index(o, s->row, i);
            begin_column(o, c, n);
            if (part) line(o, "return %s;", place_text(o, &(Place){.element = ex_ref(s->sum->var, s->sum->n, (Expr **)s->sum->target)}));
            for (int k = 0; k < s->ngiven && !part; k++) line(o, "const real given%d = q.given[%d];", k, k);
            if (!part) line(o, "return (real)(%s);", expr_c(o, s->column, LOOSE));
            end_column(o);
            leave(o, one);
        }
        line(o, "}");
        o->indent--;
        line(o, "};");
        leave(o, m);
    }
    line(o, "if (columns_of_weights(GM, %s, %s, s->%s, until%d, split, column, place, s->%s, %dL)) return;", extent_c(o, c->weights->dim[0], LOOSE), extent_c(o, c->weights->dim[1], LOOSE), c->weights->name, c->n - 1, c->room->name, (int)COLUMN_ROOM);
    o->indent--;
    line(o, "}");
    leave(o, all);
    fprintf(o->file, "#endif\n");
}

void emit_kernel(Out *o, const Kernel *k)
{
    o->kernel = k;
    scope_leave(&o->scope, 0);
    o->alike = NULL;
    const Node *alike = drawn_alike(o, k);
    if (alike) emit_drawn_alike(o, alike);
    emit_header(o, k, " {\n");
    o->indent = o->depth = 1;
    scope_leave(&o->scope, 0);
    o->nnamed = o->ntaken = o->nbuffers = 0;
    o->team = k->kind == KERNEL_TEAM;
    o->crew = false;
    o->flat = NULL;
    o->group = NULL;
    take_names(o, k->body);
    if (k->row) name_index(o, k->row, k->row->name);
    if (k->ode && k->of_ode != ODE_SOLUTION) {
        const char *const given[] = {k->ode->time->name, k->ode->state->name, k->ode->inputs->name, "slope", "by_state", "by_input", "ode"};
        for (size_t i = 0; i < sizeof given / sizeof *given; i++) {
            ROOM(o->arena, o->taken, o->ntaken, o->taken_size);
            o->taken[o->ntaken++] = given[i];
        }
        emit_given(o, k->ode);
        if (k->of_ode == ODE_DERIVATIVES) line(o, "(void)by_state, (void)by_input;");
    }
    if (k->ode && k->of_ode == ODE_SOLUTION) line(o, "(void)how;");
    if (k->columns) emit_columns(o, k->columns);
    emit_list(o, k->body);
    while (o->nbuffers > 0) {
        o->nbuffers--;
        line(o, "%sRELEASE(%s);", o->buffer[o->nbuffers].team ? "TEAM_" : "", o->buffer[o->nbuffers].name);
    }
    o->indent = 0;
    fputs("}\n\n", o->file);
}
