// loops.c -- loops: which lanes take which iterations, by the macros of runtime/device/kernels.h. `before` of kernel.def's SHARING rows is
// `after` here:
//
//   loop j in 1:J shared by ALONG          ALONG (j, d->J) {
//     update ..                                ..
//                                          }
#include <string.h>
#include "nodes.h"

static const char *const sharing_macro[] = {
#define SHARING(id, macro, help) [SHARE_##id] = macro,
#include "../kernel/kernel.def"
};

enum { MOST_LINES = MAX_RANK + 2 };

typedef struct Head {  // of a loop, whose indices have names now
    const char *c;
    int nlines;
    const char *line[MOST_LINES];  // its body begins with these
    const char *flat;              // position of the element that the loop gives, or NULL
} Head;

static void add_line(Head *h, const char *c) { h->line[h->nlines++] = c; }

static const char *totals_text(const Out *o, const Node *n)
{
    const char *t = "";
    for (int k = 0; k < n->loop.ntotals; k++) t = text(o, "%s, &%s", t, n->loop.total[k]->name);
    return t;
}

// ---- elements of a variable ----

// Elements of one colour of a lattice: all subscripts but the last, and an iteration; the colour and those give the last. A row whose size
// is no multiple of the colours has iterations that have no element.
static Head lattice_head(Out *o, const Node *n, const char *macro, const char *more)
{
    const Var *v = n->loop.of;
    const int last = n->loop.n - 1, colours = n->loop.colours;
    const char *size = extent_c(o, v->dim[last], LOOSE), *iterations = text(o, "PER_COLOUR(%s, %d)", size, colours), *phase = "COLOUR";
    Count rows = count_dims(v, 0, last);
    const char *count = count_text(o, &rows), *names[MAX_RANK];
    for (int k = 0; k <= last; k++) names[k] = fresh_index(o, n->loop.index[k]);
    Head h = {.c = text(o, "%s (e, %s * %s%s)", macro, rows.n > 1 ? text(o, "(%s)", count) : extent_c(o, rows.factor[0], MULTIPLICATIVE),
                        iterations, more)};
    for (int k = last - 1; k >= 0; k--) {
        Count stride = count_dims(v, k + 1, last - k - 1);
        const char *over = stride.n == 0 ? iterations : text(o, "(%s * (%s))", iterations, count_text(o, &stride));
        if (k == 0) add_line(&h, text(o, "const long %s = e / %s;", names[k], over));
        else add_line(&h, text(o, "const long %s = e / %s %% %s;", names[k], over, extent_c(o, v->dim[k], TIGHT)));
    }
    for (int k = 0; k < last; k++) {  // strides are taken modulo the number of colours, so that the sum is not negative
        const int step = (colours - n->loop.stride[k] % colours) % colours;
        if (step) phase = text(o, step == 1 ? "%s + %s" : "%s + %s * %d", phase, names[k], step);
    }
    add_line(&h, text(o, "const long %s = e %% %s * %d + (%s) %% %d;", names[last], iterations, colours, phase, colours));
    add_line(&h, text(o, "if (%s >= %s || %s >= %s) continue;", names[0], extent_c(o, v->dim[0], LOOSE), names[last], size));
    return h;
}

// In a lesson: a loop for each of the first subscripts.
static Head nested_head(Out *o, const Node *n)
{
    const char *all = "";
    for (int k = 0; k < n->loop.n; k++) {
        const char *size = extent_c(o, n->loop.of->dim[k], ADDITIVE), *c = fresh_index(o, n->loop.index[k]);
        all = text(o, "%s%sfor (long %s = 0; %s < %s; %s++)", all, k ? " " : "", c, c, size, c);
    }
    return (Head){.c = all};
}

// In a lesson: elements of a vector, one colour after the other.
static Head coloured_head(Out *o, const Node *n)
{
    const int colours = n->loop.colours;
    const char *size = extent_c(o, n->loop.of->dim[0], ADDITIVE), *k = fresh_index(o, n->loop.index[0]);
    return (Head){.c = text(o, "for (long colour = 0; colour < %d; colour++) for (long %s = colour; %s < %s; %s += %d)", colours, k, k,
                            size, k, colours)};
}

// Elements of a variable by their first subscripts: one number, taken apart.
static Head elements_head(Out *o, const Node *n)
{
    const Var *v = n->loop.of;
    const bool colours = n->loop.how == SHARE_COLOUR || n->loop.how == SHARE_COLOUR_CREW;
    if (o->g->lesson && v) return colours ? coloured_head(o, n) : nested_head(o, n);
    const bool crew = n->loop.how == SHARE_CREW || n->loop.how == SHARE_COLOUR_CREW || n->loop.how == SHARE_MATRICES;
    const Count elements = v ? count_dims(v, 0, n->loop.n) : (Count){0};
    const char *iterations = crew ? count_text(o, &n->loop.iterations) : "";
    const char *more = !crew              ? ""
                       : n->loop.own_rows ? text(o, ", PER_ELEMENT(%s, %s)", iterations, count_text(o, &elements))
                                          : text(o, ", %s", iterations),
               *macro = sharing_macro[n->loop.how];
    if (n->loop.how == SHARE_COLOUR || n->loop.how == SHARE_COLOUR_CREW) {
        if (n->loop.n > 1) return lattice_head(o, n, macro, more);
        const char *size = extent_c(o, v->dim[0], LOOSE), *k = fresh_index(o, n->loop.index[0]);
        Head h = {.c = text(o, "%s (iteration, OF_COLOUR(%s, %d)%s)", macro, size, n->loop.colours, more)};
        add_line(&h, text(o, "const long %s = iteration * %d + COLOUR;", k, n->loop.colours));
        return h;
    }
    if (n->loop.how == SHARE_CLASSES) {
        const char *size = extent_c(o, v->dim[0], LOOSE), *k = fresh_index(o, n->loop.index[0]);
        return (Head){
            .c = text(o, "%s (%s, %s, s->%s, s->%s)", macro, k, size, n->loop.classes->first->name, n->loop.classes->elements->name)};
    }
    const bool missing = n->loop.how == SHARE_MISSING || n->loop.how == SHARE_IN_TURN;
    const bool apart = missing ? n->loop.n != 1 : n->loop.n > 1;
    const char *size = count_text(o, &elements), *names[MAX_RANK] = {"e"};
    for (int k = 0; k < n->loop.n; k++) names[k] = fresh_index(o, n->loop.index[k]);
    const char *flat = apart ? "e" : names[0];
    Head h = {.c = missing ? text(o, "%s (%s, DATA_%s)", macro, flat, v->name)
                           : text(o, "%s (%s, %s%s)", macro, apart ? "e" : names[0], size, more),
              .flat = missing ? flat : NULL};
    for (int k = n->loop.n - 1; k >= 0 && apart; k--) {
        if (n->loop.unnamed[k]) continue;
        Count stride = count_dims(v, k + 1, n->loop.n - k - 1);
        const char *over = k + 1 == n->loop.n ? ""
                           : stride.n == 1    ? text(o, " / %s", extent_c(o, stride.factor[0], TIGHT))
                                              : text(o, " / (%s)", count_text(o, &stride));
        if (k == 0) add_line(&h, text(o, "const long %s = e%s;", names[k], over));
        else add_line(&h, text(o, "const long %s = e%s %% %s;", names[k], over, extent_c(o, v->dim[k], TIGHT)));
    }
    return h;
}

// ---- ranges ----

static bool from_first(const Index *i) { return ex_is_num(i->lo, 1); }

// The range of an index as arguments of a macro, which has `_FROM` in its name if it does not begin at the first.
static const char *range_text(Out *o, const Index *i, const char **name)
{
    Text lo = subscript_text(o, i->lo);
    const char *hi = extent_c(o, i->hi, LOOSE), *c = fresh_index(o, i);
    *name = c;
    return from_first(i) ? text(o, " (%s, %s", c, hi) : text(o, "_FROM (%s, %s, %s - %s", c, lo.c, hi, paren(o, lo, MULTIPLICATIVE));
}

static const char *for_text(const Out *o, const char *c, const char *from, const char *to)
{
    return text(o, "for (long %s = %s; %s < %s; %s++)", c, from, c, to, c);
}

static Head serial_head(Out *o, const Node *n)
{
    Index *const *i = n->loop.index;
    if (n->loop.order) {
        const char *element = index_c(o, i[1]), *c = fresh_index(o, i[0]);
        return (Head){.c = text(o, "ROWS_OF (%s, %s, s->%s, s->%s)", c, element, n->loop.order->first->name, n->loop.order->rows->name)};
    }
    if (n->loop.of) {
        const char *size = extent_c(o, n->loop.of->dim[n->loop.field], ADDITIVE);
        return (Head){.c = for_text(o, fresh_index(o, i[0]), "0", size)};
    }
    if (n->loop.given) return (Head){.c = for_text(o, fresh_index(o, i[0]), "from", "to")};
    const char *lo = subscript_text(o, i[0]->lo).c, *hi = extent_c(o, i[0]->hi, ADDITIVE);
    return (Head){.c = for_text(o, fresh_index(o, i[0]), lo, hi)};
}

// Rows of an element, in the order of their groups.
static Head rows_of_element_head(Out *o, const Node *n, const char *macro)
{
    const Order *order = n->loop.order;
    const char *element = index_c(o, n->loop.index[1]), *first = order->first->name, *c = fresh_index(o, n->loop.index[0]);
    Head h = {.c = text(o, "%s_FROM (%s, s->%s[%s], s->%s[%s + 1] - s->%s[%s]%s)", macro, n->loop.sorted ? c : "row", first, element, first,
                        element, first, element, totals_text(o, n))};
    if (!n->loop.sorted) add_line(&h, text(o, "NAMED_ROW(%s, s->%s, row);", c, order->rows->name));
    return h;
}

// ---- groups of rows ----

static const char *groups_and_rows(const Out *o, const Order *order)
{
    return text(o, "%s, %s", extent_c(o, order->extent, LOOSE), extent_c(o, order->row->hi, LOOSE));
}

static Head places_head(Out *o, const Node *n, const char *macro)
{
    const Order *order = n->loop.order;
    const char *rows = extent_c(o, order->row->hi, LOOSE), *list = "", *c = fresh_index(o, n->loop.index[0]);
    for (int k = 1; k < n->loop.n; k++) {
        const char *extent = extent_c(o, n->loop.index[k]->hi, LOOSE);
        list = text(o, "%s, %s, %s", list, fresh_index(o, n->loop.index[k]), extent);
    }
    if (!order->spare) return (Head){.c = text(o, "%s%d (%s, s->%s%s)", macro, n->loop.n - 1, c, order->rows->name, list)};
    name_index(o, order->row, c);  // the key of this row
    return (Head){.c = text(o, "KEYED_PLACES%d (%s, %s, %s, s->%s%s)", n->loop.n - 1, c, rows, subscript_text(o, order->key).c,
                            order->rows->name, list)};
}

static Head arrays_head(Out *o, const Node *n, const char *macro)
{
    const Index *i = n->loop.index[0];
    Text lo = subscript_text(o, i->lo);
    const char *hi = extent_c(o, i->hi, LOOSE), *arrays = "";
    const char *rows = from_first(i) ? hi : text(o, "%s - %s", hi, paren(o, lo, MULTIPLICATIVE));
    for (int k = 0; k < n->loop.narrays; k++) {
        Count count = count_dims(n->loop.array[k], 0, n->loop.array[k]->rank);
        arrays = text(o, "%s, %s, %s", arrays, c_name(o, n->loop.array[k]->name), count_text(o, &count));
    }
    return (Head){.c = text(o, "%s%d (%s, %s, %s%s)", macro, n->loop.narrays, fresh_index(o, i), lo.c, rows, arrays)};
}

// In a lesson: loops of C, one within the other.
static Head plain_head(Out *o, const Node *n)
{
    const char *all = "";
    for (int k = 0; k < n->loop.n; k++) {
        const Index *i = n->loop.index[k];
        const char *from = subscript_text(o, i->lo).c, *to = extent_c(o, i->hi, ADDITIVE);
        all = text(o, "%s%s%s", all, k ? " " : "", for_text(o, fresh_index(o, i), from, to));
    }
    return (Head){.c = all};
}

// Whether it adds to this number alone.
static bool is_loop_of(const Node *loop, const Var *total)
{
    return loop && loop->kind == NODE_LOOP && loop->loop.ntotals == 1 && loop->loop.total[0] == total;
}

static Head totals_head(Out *o, const Node *n, const char *macro)
{
    const char *c, *range = range_text(o, n->loop.index[0], &c);
    if (is_loop_of(n, o->sum_of)) {
        const int from = (int)strcspn(range, "(") + 1;
        return (Head){.c = text(o, "SUM_OF%.*s%s, %s)", from, range, o->sum_of->name, range + from)};
    }
    return (Head){.c = text(o, "%s%s%s)", macro, range, totals_text(o, n))};
}

static Head pairs_head(Out *o, const Node *n, const char *macro)
{
    Index *const *i = n->loop.index;
    const char *a = extent_c(o, i[0]->hi, LOOSE), *b = extent_c(o, i[1]->hi, LOOSE), *first = fresh_index(o, i[0]);
    if (is_loop_of(n, o->sum_of))
        return (Head){.c = text(o, "SUM_OF2 (%s, %s, %s, %s, %s)", o->sum_of->name, first, a, fresh_index(o, i[1]), b)};
    return (Head){.c = text(o, "%s2 (%s, %s, %s, %s%s)", macro, first, a, fresh_index(o, i[1]), b, totals_text(o, n))};
}

static Head loop_head(Out *o, const Node *n)
{
    const bool shared = n->loop.how != SHARE_SERIAL && n->loop.how != SHARE_BACKWARD && !n->loop.of && !n->loop.order;
    if (o->g->lesson && shared) return plain_head(o, n);
    const char *macro = sharing_macro[n->loop.how], *c;
    Index *const *i = n->loop.index;
    const Order *order = n->loop.order;
    switch (n->loop.how) {
    case SHARE_SERIAL: return serial_head(o, n);
    case SHARE_BACKWARD: {
        const char *lo = subscript_text(o, i[0]->lo).c, *size = extent_c(o, i[0]->hi, ADDITIVE);
        c = fresh_index(o, i[0]);
        return (Head){.c = text(o, "for (long %s = %s; %s-- > %s;)", c, size, c, lo)};
    }
    case SHARE_EACH:
    case SHARE_COLOUR:
    case SHARE_MISSING:
    case SHARE_IN_TURN:
    case SHARE_CREW:
    case SHARE_COLOUR_CREW:
    case SHARE_MATRICES:
    case SHARE_CLASSES: return elements_head(o, n);
    case SHARE_ALONG:
    case SHARE_LANES:
    case SHARE_TERMS:
    case SHARE_PLACES:
    case SHARE_SUM_ALONG:
        if (n->loop.n == 2) return pairs_head(o, n, macro);
        // fall through
    case SHARE_MIN_ALONG:
    case SHARE_MAX_ALONG:
    case SHARE_SUM_CREW:
    case SHARE_SPAN:
        if (order) return rows_of_element_head(o, n, macro);
        return totals_head(o, n, macro);
    case SHARE_INTO:
    case SHARE_KEYED: return arrays_head(o, n, macro);
    case SHARE_COUNTED: return (Head){.c = text(o, "%s%s)", macro, range_text(o, i[0], &c))};
    case SHARE_GROUPS: {
        const char *sizes = groups_and_rows(o, order);
        return (Head){.c = text(o, "%s (%s, %s)", macro, fresh_index(o, i[0]), sizes)};
    }
    case SHARE_SEGMENTS:
        return (Head){.c = text(o, "%s (%s, s->%s, %s)", order->spare ? "EACH_KEYED" : macro, groups_and_rows(o, order), order->first->name,
                                count_text(o, &n->loop.iterations))};
    case SHARE_SEGMENT_PLACES: return places_head(o, n, macro);
    case SHARE_ROWS: {
        const char *group = index_c(o, i[1]);
        c = fresh_index(o, i[0]);
        if (n->loop.sorted) return (Head){.c = text(o, "SUM_SORTED (%s, %s, s->%s%s)", c, group, order->first->name, totals_text(o, n))};
        return (Head){
            .c = text(o, "%s (%s, %s, s->%s, s->%s%s)", macro, c, group, order->first->name, order->rows->name, totals_text(o, n))};
    }
    }
    return (Head){.c = ""};
}

// ---- loops ----

// On a GPU, where a row adds the product of a vector and itself to the matrix of its group: by a routine that reads the vector once
// (keyed_sums.h), and makes the sums of `vector` as well.
static void emit_segment_products(Out *o, const Node *segments)
{
    const Node *rows = segments->body;
    const SymmetricProduct *product = rows->loop.product;
    const Order *order = rows->loop.order;
    directive(o, "#ifdef SEGMENT_PRODUCTS            // on a GPU");
    if (segments->loop.with) line(o, "if (!SEGMENT_PRODUCTS(%s))", extent_c(o, segments->loop.with, LOOSE));
    else SCOPE
        {
            Index *const *i = rows->loop.index;
            const char *row = fresh_index(o, i[0]), *j = fresh_index(o, i[1]), *k = fresh_index(o, i[2]),
                       *size = extent_c(o, i[1]->hi, LOOSE);
            BLOCK ("if (SEGMENT_PRODUCTS(%s))", size) {
                line(o, "const auto times = [&](long %s) -> wide { return %s; };", row, expr_c(o, product->times, LOOSE));
                line(o, "const auto factor = [&](long %s, long %s) -> wide { return %s; };", row, j, expr_c(o, product->factor, LOOSE));
                line(o, "const auto add = [&](long %s, long %s, long %s, wide x) { %s += x; };", row, j, k,
                     place_text(o, &rows->body->assign.place));
                const char *more = "";
                if (product->vector) {
                    line(o, "const auto vector_times = [&](long %s) -> wide { return %s; };", row, expr_c(o, product->vector_times, LOOSE));
                    name_index(o, product->vector->loop.index[0], row);
                    name_index(o, product->vector->loop.index[1], j);
                    line(o, "const auto vector_add = [&](long %s, long %s, wide x) { %s += x; };", row, j,
                         place_text(o, &product->vector->body->assign.place));
                    more = ", vector_times, vector_add";
                }
                line(o, "segment_products(GM, %s, s->%s, s->%s, %s, times, factor, add%s);", groups_and_rows(o, order), order->first->name,
                     order->rows->name, size, more);
            }
            line(o, "else");
        }
    directive(o, "#endif");
}

// Whether its body, if it is one plain statement, is on the line that begins it.
static bool may_be_brief(Sharing how)
{
    return how == SHARE_SERIAL || how == SHARE_ALONG || how == SHARE_LANES || how == SHARE_TERMS || how == SHARE_PLACES ||
           how == SHARE_SUM_ALONG || how == SHARE_MIN_ALONG || how == SHARE_MAX_ALONG || how == SHARE_SUM_CREW || how == SHARE_ROWS;
}

// Lanes that go through the body: all that are here, those of a crew, or each iteration is one lane's.
static void share_body(Out *o, Sharing how)
{
    if (how == SHARE_SERIAL || how == SHARE_BACKWARD) return;
    o->team = o->crew = !o->g->lesson && (how == SHARE_CREW || how == SHARE_COLOUR_CREW);
}

static bool is_plain_statement(const Node *body)
{
    return is_one_statement(body) || (body && !body->next && (body->kind == NODE_CHECK || body->kind == NODE_BOUNDS));
}

static bool is_one_loop(const Node *body)
{
    return body && body->kind == NODE_LOOP && !body->next && (body->loop.how == SHARE_SERIAL) && !body->loop.order && !body->loop.given;
}

// Whether the loop and all of its body are on one line.
static bool is_brief(const Out *o, const Node *n)
{
    if (o->g->lesson) return is_plain_statement(n->body);
    const bool named_rows = n->loop.order && (n->loop.how == SHARE_SUM_ALONG || n->loop.how == SHARE_SUM_CREW) && !n->loop.sorted;
    return may_be_brief(n->loop.how) && is_one_statement(n->body) && !named_rows;
}

enum { SHORT_TERM = 25, BRIEF_TERM = 6 };  // of an expression

// A sum from 0 that a team adds up by one statement: SUM_OF (a, j, d->J) += ..;
bool is_sum_of(const Out *o, const Node *n)
{
    const Node *loop = n->next;
    if (n->kind != NODE_LET || o->g->lesson || !n->let.value || !ex_is_num(n->let.value, 0) || strcmp(n->let.type, "wide") != 0 ||
        !is_loop_of(loop, n->let.local) || loop->loop.how != SHARE_SUM_ALONG || loop->loop.order || !is_brief(o, loop))
        return false;
    const Node *add = loop->body;
    return add->kind == NODE_ASSIGN && add->assign.op == ASSIGN_ADD && !add->assign.drawn && !add->assign.exists && !add->assign.own &&
           !add->assign.chain && add->assign.place.local == n->let.local && add->assign.how != STORE_TOTAL &&
           add->assign.how != STORE_COUNT;
}

// A sum and the loop that adds it up are one line, if that is short: `real a = 0; for (..) a += ..;`, or begin on one.
bool begins_sum(const Out *o, const Node *n)
{
    const Node *loop = n->next;
    if (n->kind != NODE_LET || !n->let.grows || !n->let.value || !is_loop_of(loop, n->let.local)) return false;
    if (is_sum_of(o, n)) return true;
    if (!is_brief(o, loop)) return loop->loop.how == SHARE_SUM_ALONG && !loop->loop.order && !o->g->lesson;
    return loop->body->kind == NODE_ASSIGN && !loop->body->assign.drawn && loop->body->assign.value->size <= SHORT_TERM;
}

static bool is_short_store(const Node *n)
{
    return n && n->kind == NODE_ASSIGN && n->assign.op == ASSIGN_SET && n->assign.how == STORE_PLAIN && !n->assign.drawn &&
           !n->assign.exists && !n->assign.own && !n->assign.chain && !n->assign.place.array && n->assign.value->size <= BRIEF_TERM;
}

// Whether a loop and the two short statements of its body are one line.
static bool is_pair(const Out *o, const Node *n)
{
    const Node *first = n->body;
    return !o->g->lesson && (n->loop.how == SHARE_ALONG || n->loop.how == SHARE_LANES) && !n->loop.order && is_short_store(first) &&
           is_short_store(first->next) && !first->next->next;
}

static void emit_pair(Out *o, const Node *n, const char *head)
{
    begin_brief(o, head);
    share_body(o, n->loop.how);
    o->write(o, n->body);
    end_brief(o);
}

void emit_loop(Out *o, const Node *n)
{
    const Sharing how = n->loop.how;
    if (o->g->lesson && n->body && only_ratios(n->body)) return;
    for (const Node *w = how == SHARE_EACH && o->depth == 1 ? n->body : NULL; w; w = w->next)
        if (w->kind == NODE_WEIGH && w->weigh.distances) emit_classify(o, w);
    SCOPE
    {
        scope_written(o->scope, n->body);  // before the second iteration
        if (how == SHARE_SEGMENTS && n->body && (n->body->loop.product || n->loop.with)) emit_segment_products(o, n);
        Head h = loop_head(o, n);
        while (o->g->lesson && is_one_loop(n->body)) {  // loops that share their body share their line
            n = n->body;
            const Head inner = loop_head(o, n);
            h.c = text(o, "%s %s", h.c, inner.c);
        }
        if (!h.nlines && is_pair(o, n)) emit_pair(o, n, h.c);
        else BODY(h.nlines || !is_brief(o, n), "%s", h.c)
            {
                for (int k = 0; k < h.nlines; k++) line(o, "%s", h.line[k]);
                if (h.flat) o->flat = h.flat;
                share_body(o, how);
                o->write(o, n->body);
            }
    }
    o->sum_of = NULL;
}
