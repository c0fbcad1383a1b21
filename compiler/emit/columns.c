// columns.c -- on a GPU, where all that a kernel does is to add up weights times columns: by a product of matrices (device/columns.h), of
// which column m is
//
//   split(m)          which sum, and which place in it
//   column(i, q)      the entry of its row i
//   place(v, q)       where the sum for value v goes
#include "nodes.h"

// Of a sum with a place for each value and each of some subscripts column q gets these as arguments: names for them.
static void name_places(Out *o, const ColumnSum *s)
{
    for (int k = 0; k < s->nplaces; k++) line(o, "const long %s = q.%c;", fresh_index(o, s->place[k]), 'a' + k);
}

static const char *places_text(const Out *o, const ColumnSum *s, int from)
{
    Count places = {0};
    for (int k = from; k < s->nplaces; k++) places.factor[places.n++] = s->place[k]->hi;
    return places.n ? count_text(o, &places) : NULL;
}

// The sum of number n, whose columns begin where those of the one before it end.
static void emit_split_of(Out *o, const ColumnSum *s, int n)
{
    const char *from = n ? text(o, "(m - until%d)", n - 1) : "m", *parts = "";
    for (int k = 0; k < s->nplaces; k++) {
        const char *after = places_text(o, s, k + 1), *over = after ? text(o, "%s / (%s)", from, after) : from;
        parts = text(o, k ? "%s, %s %% %s" : "%s, %s", parts, over, extent_c(o, s->place[k]->hi, TIGHT));
    }
    for (int k = s->nplaces; k < MOST_COLUMN_PLACES; k++) parts = text(o, "%s, 0", parts);
    line(o, "%s q = {%d%s, {}};", s->ngiven ? "Column" : "const Column", n, parts);
    SCOPE
    {
        if (s->ngiven) name_places(o, s);
        for (int k = 0; k < s->ngiven; k++) line(o, "q.given[%d] = (real)(%s);", k, expr_c(o, s->is[k], LOOSE));
    }
    line(o, "return q;");
}

static void emit_split(Out *o, const Columns *c)
{
    for (int n = 0; n < c->n; n++) {
        const char *places = places_text(o, &c->of[n], 0);
        line(o, "const long until%d = %s%s;", n, n ? text(o, "until%d + ", n - 1) : "", places ? places : "1");
    }
    ENDING("};", "const auto split = [&](long m) -> Column")
    {
        for (int n = 0; n + 1 < c->n; n++)
            BLOCK ("if (m < until%d)", n) emit_split_of(o, &c->of[n], n);
        emit_split_of(o, &c->of[c->n - 1], c->n - 1);
    }
}

// What a function of a column is, sum by sum.
static void emit_of_sums(Out *o, const Columns *c, const char *row)
{
    CASES("switch (q.sum)")
    for (int n = 0; n < c->n; n++) {
        const ColumnSum *s = &c->of[n];
        BLOCK ("%s", n + 1 < c->n ? text(o, "case %d:", n) : "default:") {
            if (row) name_index(o, s->row, row);
            else name_index(o, s->value, "v");
            name_places(o, s);
            if (!row) line(o, "return %s;", element_c(o, s->sum->var, (Expr *const *)s->sum->target));
            for (int k = 0; k < s->ngiven && row; k++) line(o, "const real given%d = q.given[%d];", k, k);
            if (row) line(o, "return (real)(%s);", expr_c(o, s->column, LOOSE));
        }
    }
}

void emit_columns(Out *o, const Columns *c)
{
    directive(o, "#ifdef COLUMNS_OF_WEIGHTS  // on a GPU");
    PLAIN_BLOCK
    {
        emit_split(o, c);
        SCOPE
        {
            const char *row = fresh_index(o, c->of[0].row);
            ENDING("};", "const auto column = [&](long %s, const Column &q) -> real", row) emit_of_sums(o, c, row);
        }
        ENDING("};", "const auto place = [&](long v, const Column &q) -> wide &") emit_of_sums(o, c, NULL);
        line(o, "if (columns_of_weights(GM, %s, %s, s->%s, until%d, split, column, place, s->%s, %dL)) return;",
             extent_c(o, c->weights->dim[0], LOOSE), extent_c(o, c->weights->dim[1], LOOSE), c->weights->name, c->n - 1, c->room->name,
             (int)COLUMN_ROOM);
    }
    directive(o, "#endif");
}
