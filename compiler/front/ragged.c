// ragged.c -- arrays with rows of different lengths, as one vector with the rows one behind the other.
//
//   before   data { int G; int n[G]; vector[n] y[G]; }       for (g in 1:G) for (i in 1:n[g]) y[g, i] ~ normal(m[g], s);
//   after    data { int G; int n[G]; vector[sum(n)] y; }     for (g in 1:G) for (i in first[g]:last[g]) y[i] ~ normal(m[g], s);
//            let { last[g] and first[g]: the places of row g }
//
// A size that is the name of an array of integers makes rows: the array has one size, that of the dimension before it. All that comes later
// sees slices (y[g] is y[first[g]:last[g]]), loops over a slice, and single places. A place that the loops around it do not keep within its
// row by themselves is written within_row(place, first, last), which the data are checked for.
//
// Needs: parsed.     Gives: flat declarations, Decl.lengths, a block of definitions.     Keeps: all else.
#include "check.h"

typedef struct Rows {  // the lengths of rows, and the arrays that have them
    const char *lengths, *first, *last;
    Ast *count;  // how many rows
    bool used;
} Rows;

typedef struct Array {
    const char *name;
    Rows *rows;
} Array;

typedef struct Loop {  // an index that goes along a row, and has become a place
    const char *index;
    const Rows *rows;  // NULL: another index of the same name hides it
    const Ast *row;
    struct Loop *outer;
} Loop;

typedef struct Ragged {
    Arena *a;
    Diags *d;
    Model *m;
    List lengths;  // Rows: arrays of integers that may be lengths
    List arrays;   // Array
} Ragged;

// ---- trees, before names are looked up ----

static Ast *node(const Ragged *r, AstKind kind, Span at, int nkids, Ast *const *kid)
{
    Ast *e = NEW(r->a, Ast);
    *e = (Ast){.kind = kind, .span = at, .nkids = nkids, .depth = 1};
    e->kid = NEW_N(r->a, Ast *, nkids + 1);
    for (int i = 0; i < nkids; i++) {
        e->kid[i] = kid[i];
        if (kid[i] && kid[i]->depth >= e->depth) e->depth = kid[i]->depth + 1;
    }
    return e;
}

static Ast *name_of(const Ragged *r, Span at, const char *name)
{
    Ast *e = node(r, AST_NAME, at, 0, NULL);
    e->name = name;
    return e;
}

static Ast *at_row(const Ragged *r, Span at, const char *of, Ast *row)
{
    return node(r, AST_INDEX, at, 2, (Ast *[]){name_of(r, at, of), row});
}

static Ast *places_of(const Ragged *r, Span at, const Rows *rows)
{
    Ast *sum = node(r, AST_CALL, at, 1, (Ast *[]){name_of(r, at, rows->lengths)});
    sum->name = intern("sum");
    return sum;
}

static Ast *binary(const Ragged *r, Op op, Ast *x, Ast *y)
{
    Ast *e = node(r, AST_BINARY, x->span, 2, (Ast *[]){x, y});
    e->op = op;
    return e;
}

static Ast *plus(const Ragged *r, Ast *x, int c)
{
    Ast *number = node(r, AST_INT, x->span, 0, NULL);
    number->number = 1;
    return binary(r, c < 0 ? OP_SUB : OP_ADD, x, number);
}

static bool same_text(const Ast *a, const Ast *b)
{
    if (!a || !b) return a == b;
    if (a->kind != b->kind || a->nkids != b->nkids || a->name != b->name || a->number != b->number || a->op != b->op) return false;
    for (int i = 0; i < a->nkids; i++)
        if (!same_text(a->kid[i], b->kid[i])) return false;
    return true;
}

static bool is_whole(const Ast *e) { return e->kind == AST_ALL || (e->kind == AST_RANGE && !e->kid[0] && !e->kid[1]); }

static void refuse(const Ragged *r, Span at, const char *name, const char *why, const char *help)
{
    Diag *m = diag(r->d, at, DIAG_E0120, name, why);
    if (help) diag_help(m, "%s", help);
}

// ---- declarations ----

static Rows *rows_named(const Ragged *r, const char *name)
{
    for (int i = 0; i < r->lengths.n; i++)
        if (((Rows *)r->lengths.item[i])->lengths == name) return r->lengths.item[i];
    return NULL;
}

static Rows *rows_of(const Ragged *r, const char *array)
{
    for (int i = 0; i < r->arrays.n; i++)
        if (((Array *)r->arrays.item[i])->name == array) return ((Array *)r->arrays.item[i])->rows;
    return NULL;
}

static void find_lengths(Ragged *r, Stmt *s)
{
    for (; s; s = s->next) {
        const Decl *d = s->decl;
        if (d && d->kind == DECL_DATA && d->has_type && d->type.base == BASE_INT && d->type.rank == 1) {
            Rows *rows = NEW(r->a, Rows);
            *rows = (Rows){.lengths = d->name, .count = d->type.dim[0]};
            list_add(r->a, &r->lengths, rows);
        }
        find_lengths(r, s->body);
    }
}

// real y[G, n], vector[n] y[G], matrix[n, p] X[G] with n an array of integers
static void flatten(Ragged *r, Stmt *s)
{
    for (; s; s = s->next) {
        flatten(r, s->body);
        Decl *d = s->decl;
        if (!d || !d->has_type) continue;
        for (int k = 0; k < d->type.rank; k++) {
            const Ast *size = d->type.dim[k];
            Rows *rows = size && size->kind == AST_NAME ? rows_named(r, size->name) : NULL;
            if (!rows) continue;
            const char *why = k == 0                                    ? "and no dimension before it has their number"
                              : k > 1                                   ? "which only the second dimension may have"
                              : !same_text(d->type.dim[0], rows->count) ? "and another number of rows than lengths"
                              : d->constraint != CONSTRAINT_NONE        ? "and a constraint on each row"
                              : s->outer                                ? "and is declared in a loop"
                                                                        : NULL;
            if (why) {
                refuse(r, d->span, d->name, why,
                       arena_printf(r->a, "vector[%s] %s[%s] has a row for each element of `%s`", rows->lengths, d->name,
                                    ast_text(r->a, rows->count), rows->lengths));
                d->type.dim[k] = node(r, AST_INT, size->span, 0, NULL);
                d->type.dim[k]->number = 1;
                continue;
            }
            d->type.dim[0] = places_of(r, size->span, rows);
            for (int l = 1; l + 1 < d->type.rank; l++) d->type.dim[l] = d->type.dim[l + 1];
            d->type.rank--;
            if (d->outer) d->outer = 1;
            d->lengths = rows->lengths;
            rows->used = true;
            Array *array = NEW(r->a, Array);
            *array = (Array){d->name, rows};
            list_add(r->a, &r->arrays, array);
            break;
        }
    }
}

// ---- uses ----

static Ast *rewrite(const Ragged *r, const Ast *e, const Loop *in);

static const Loop *loop_of(const Loop *in, const char *index)
{
    for (; in; in = in->outer)
        if (in->index == index) return in->rows ? in : NULL;
    return NULL;
}

// A place that must not leave its row; an end of a slice may be one beyond, where the slice is empty.
static Ast *within(const Ragged *r, Ast *place, const Rows *rows, Ast *row, const char *array, bool begins, bool ends)
{
    Ast *first = at_row(r, place->span, rows->first, row), *last = at_row(r, place->span, rows->last, row);
    Ast *e = node(r, AST_CALL, place->span, 3, (Ast *[]){place, first, last});
    e->number = begins ? 1 : ends ? -1 : 0;
    e->name = intern("within_row");
    e->row_of = array;
    return e;
}

// The place of element i of a row.
static Ast *place_of(const Ragged *r, const Ast *i, const Rows *rows, const Ast *row, Ast *to_row, const Loop *in, const char *array)
{
    const Ast *index = i->kind == AST_BINARY && (i->op == OP_ADD || i->op == OP_SUB) ? i->kid[0] : i;
    const Loop *l = index->kind == AST_NAME ? loop_of(in, index->name) : NULL;
    if (l && l->rows == rows && same_text(l->row, row)) {
        Ast *place = name_of(r, index->span, index->name);
        if (index == i) return place;
        if (!ast_names(i->kid[1], index->name))
            return within(r, binary(r, i->op, place, rewrite(r, i->kid[1], in)), rows, to_row, array, false, false);
    }
    Ast *place = plus(r, binary(r, OP_ADD, at_row(r, i->span, rows->first, to_row), rewrite(r, i, in)), -1);
    return within(r, place, rows, to_row, array, false, false);
}

// y[g], y[g, i], y[g, a:b], and what follows of further subscripts
static Ast *element(const Ragged *r, const Ast *e, const char *array, const Rows *rows, Ast *const *sub, int n, const Loop *in)
{
    const Ast *row = sub[0];
    if (row->kind == AST_RANGE || row->kind == AST_ALL) {
        refuse(r, e->span, array, "and is looked up by one row",
               arena_printf(r->a, "%s[g] is a row and %s[g, i] an element; for (g in 1:%s) goes through rows", array, array,
                            ast_text(r->a, rows->count)));
        return name_of(r, e->span, array);
    }
    Ast *to_row = rewrite(r, row, in), *kid[MAX_RANK + 2] = {name_of(r, e->kid[0]->span, array)};
    Ast *end[2] = {at_row(r, e->span, rows->first, to_row), at_row(r, e->span, rows->last, to_row)};
    int nkids = 1;
    if (n < 2 || is_whole(sub[1]) || sub[1]->kind == AST_RANGE) {
        for (int side = 0; side < 2 && n > 1 && sub[1]->kind == AST_RANGE; side++)
            if (sub[1]->kid[side]) {
                Ast *place = plus(r, binary(r, OP_ADD, at_row(r, e->span, rows->first, to_row), rewrite(r, sub[1]->kid[side], in)), -1);
                end[side] = within(r, place, rows, to_row, array, side == 0, side == 1);
            }
        kid[nkids++] = node(r, AST_RANGE, e->span, 2, end);
    } else kid[nkids++] = place_of(r, sub[1], rows, row, to_row, in, array);
    for (int i = 2; i < n && nkids < MAX_RANK + 1; i++) kid[nkids++] = rewrite(r, sub[i], in);
    return node(r, AST_INDEX, e->span, nkids, kid);
}

// The subscripts of a name, y[g][i] as y[g, i]; how many.
static int subscripts_of(const Ast *e, const Ast **root, Ast **sub)
{
    if (e->kind != AST_INDEX) {
        *root = e;
        return 0;
    }
    int n = subscripts_of(e->kid[0], root, sub);
    for (int i = 1; i < e->nkids && n >= 0; i++) {
        if (n == MAX_RANK) return -1;
        sub[n++] = e->kid[i];
    }
    return n;
}

static bool goes_along(const Ragged *r, const Ast *lo, const Ast *hi, const Rows **rows)
{
    (void)lo;
    *rows = hi->kind == AST_INDEX && hi->nkids == 2 && hi->kid[0]->kind == AST_NAME ? rows_named(r, hi->kid[0]->name) : NULL;
    return *rows && (*rows)->used && hi->kid[1]->kind != AST_RANGE && hi->kid[1]->kind != AST_ALL;
}

// Does e read an element [row, i...] of an array with these rows?
static bool reads_row(const Ragged *r, const Ast *e, const Rows *rows, const Ast *row, const char *index)
{
    if (!e) return false;
    Ast *sub[MAX_RANK];
    const Ast *root;
    const int n = subscripts_of(e, &root, sub);
    if (n > 1 && root->kind == AST_NAME && rows_of(r, root->name) == rows && same_text(sub[0], row) && ast_names(sub[1], index))
        return true;
    for (int i = 0; i < e->nkids; i++)
        if (reads_row(r, e->kid[i], rows, row, index)) return true;
    return false;
}

// The ends of a loop along a row as places.
static void ends_of(const Ragged *r, const Ast *lo, const Rows *rows, const Ast *row, const Loop *in, Ast **from, Ast **to)
{
    Ast *to_row = rewrite(r, row, in), *first = at_row(r, lo->span, rows->first, to_row);
    *from = lo->kind == AST_INT && lo->number == 1 ? first : plus(r, binary(r, OP_ADD, first, rewrite(r, lo, in)), -1);
    *to = at_row(r, lo->span, rows->last, to_row);
}

static Ast *rewrite_reduce(const Ragged *r, const Ast *e, const Loop *in)
{
    Ast *c = arena_copy(r->a, e, sizeof *e);
    c->kid = NEW_N(r->a, Ast *, e->nkids + 1);
    const Rows *rows;
    Loop l = {.index = e->decl->name, .outer = (Loop *)in};
    const bool along = goes_along(r, e->kid[0], e->kid[1], &rows) && reads_row(r, e->kid[2], rows, e->kid[1]->kid[1], e->decl->name);
    if (along) {
        l.rows = rows;
        l.row = e->kid[1]->kid[1];
        ends_of(r, e->kid[0], rows, l.row, in, &c->kid[0], &c->kid[1]);
    } else {
        c->kid[0] = rewrite(r, e->kid[0], in);
        c->kid[1] = rewrite(r, e->kid[1], in);
    }
    c->kid[2] = rewrite(r, e->kid[2], &l);
    c->decl = arena_copy(r->a, e->decl, sizeof *e->decl);
    c->decl->lo = c->kid[0];
    c->decl->hi = c->kid[1];
    return c;
}

static Ast *rewrite(const Ragged *r, const Ast *e, const Loop *in)
{
    if (!e) return NULL;
    if (e->kind == AST_REDUCE) return rewrite_reduce(r, e, in);
    Ast *sub[MAX_RANK];
    const Ast *root;
    const int n = subscripts_of(e, &root, sub);
    const Rows *rows = root->kind == AST_NAME ? rows_of(r, root->name) : NULL;
    if (n > 0 && rows) return element(r, e, root->name, rows, sub, n, in);
    if (e->kind == AST_CALL && e->nkids == 1 && e->kid[0]->kind == AST_NAME && rows_of(r, e->kid[0]->name)) {
        const Rows *of = rows_of(r, e->kid[0]->name);
        if (e->name == intern("rows") || e->name == intern("size")) return rewrite(r, of->count, in);
        if (e->name == intern("cols")) refuse(r, e->span, e->kid[0]->name, "and no number of columns", NULL);
    }
    const Loop *l = e->kind == AST_NAME ? loop_of(in, e->name) : NULL;
    if (l) {  // its number within the row
        Ast *first = at_row(r, e->span, l->rows->first, rewrite(r, l->row, l->outer));
        return plus(r, binary(r, OP_SUB, name_of(r, e->span, e->name), first), 1);
    }
    Ast *c = arena_copy(r->a, e, sizeof *e);
    c->kid = NEW_N(r->a, Ast *, e->nkids + 1);
    for (int i = 0; i < e->nkids; i++) c->kid[i] = rewrite(r, e->kid[i], in);
    return c;
}

// A left side that has the index and is none of these rows: its own subscripts count from 1.
static bool counts_otherwise(const Ragged *r, const Stmt *s, const Rows *rows, const Ast *row, const char *index)
{
    for (; s; s = s->next) {
        if (s->lhs && ast_names(s->lhs, index) && !reads_row(r, s->lhs, rows, row, index)) return true;
        if (s->body && counts_otherwise(r, s->body, rows, row, index)) return true;
    }
    return false;
}

static bool stmts_read_row(const Ragged *r, const Stmt *s, const Rows *rows, const Ast *row, const char *index)
{
    for (; s; s = s->next) {
        const Ast *part[] = {s->lhs, s->weights, s->lower, s->upper, s->rhs, s->cond};
        for (size_t i = 0; i < sizeof part / sizeof *part; i++)
            if (reads_row(r, part[i], rows, row, index)) return true;
        for (const Stmt *one = s; one; one = one == s ? s->more : one->next)
            for (int i = 0; i < one->nargs; i++)
                if (reads_row(r, one->args[i], rows, row, index)) return true;
        if (stmts_read_row(r, s->body, rows, row, index)) return true;
    }
    return false;
}

static void rewrite_args(const Ragged *r, Stmt *s, const Loop *in)
{
    Ast **args = NEW_N(r->a, Ast *, s->nargs + 1);
    for (int i = 0; i < s->nargs; i++) args[i] = rewrite(r, s->args[i], in);
    s->args = args;
}

static void rewrite_stmts(const Ragged *r, Stmt *s, const Loop *in)
{
    for (; s; s = s->next) {
        Ast **part[] = {&s->lhs, &s->weights, &s->lower, &s->upper, &s->rhs, &s->cond};
        for (size_t i = 0; i < sizeof part / sizeof *part; i++) *part[i] = rewrite(r, *part[i], in);
        rewrite_args(r, s, in);
        for (Stmt *one = s->more; one; one = one->next) rewrite_args(r, one, in);
        if (s->decl && s->decl->has_type && s->kind != STMT_FOR) {
            s->decl->lower = rewrite(r, s->decl->lower, in);
            s->decl->upper = rewrite(r, s->decl->upper, in);
        }
        Loop l = {.outer = (Loop *)in};
        const Rows *rows;
        if (s->index) {
            const Ast *hi = s->index->hi;
            l.index = s->index->name;
            if (goes_along(r, s->index->lo, hi, &rows) && stmts_read_row(r, s->body, rows, hi->kid[1], l.index) &&
                !counts_otherwise(r, s->body, rows, hi->kid[1], l.index)) {
                l.rows = rows;
                l.row = hi->kid[1];
                s->index->places = places_of(r, s->index->span, rows);
                ends_of(r, s->index->lo, rows, l.row, in, &s->index->lo, &s->index->hi);
            } else {
                s->index->lo = rewrite(r, s->index->lo, in);
                s->index->hi = rewrite(r, s->index->hi, in);
            }
        }
        rewrite_stmts(r, s->body, s->index ? &l : in);
    }
}

// ---- places of rows ----

static bool is_taken(const Stmt *s, const char *name)
{
    for (; s; s = s->next) {
        const Ast *root = s->lhs ? place_root(s->lhs) : NULL;
        if ((root && root->name == name) || (s->decl && s->decl->name == name) || is_taken(s->body, name)) return true;
    }
    return false;
}

// A name that the model does not have.
static const char *free_name(const Ragged *r, const char *name)
{
    bool taken = false;
    for (const Block *b = r->m->blocks; b; b = b->next) taken |= is_taken(b->body, name);
    return taken ? free_name(r, arena_printf(r->a, "%s_", name)) : intern(name);
}

static void define_places(Ragged *r)
{
    for (int i = 0; i < r->lengths.n; i++) {
        Rows *rows = r->lengths.item[i];
        if (!rows->used) continue;
        const char *n = rows->lengths, *g = free_name(r, intern("g"));
        rows->first = free_name(r, intern(arena_printf(r->a, "%s_first", n)));
        rows->last = free_name(r, intern(arena_printf(r->a, "%s_last", n)));
        const char *text = arena_printf(r->a,
                                        "let {\n  for (%s in 1:%s) %s[%s] = (%s > 1 ? %s[%s - 1] : 0) + %s[%s];\n"
                                        "  for (%s in 1:%s) %s[%s] = %s[%s] - %s[%s] + 1;\n}\n",
                                        g, ast_text(r->a, rows->count), rows->last, g, g, rows->last, g, n, g, g,
                                        ast_text(r->a, rows->count), rows->first, g, rows->last, g, n, g);
        Model *m = NULL;
        Source *source = source_from_string(r->a, arena_printf(r->a, "rows of %s", n), text);
        source->order = 1 << 20;
        front_parse_model(r->a, source, r->d, &m);
        Block **last = &r->m->blocks;
        while (*last) last = &(*last)->next;
        *last = m->blocks;
    }
}

void front_flatten_rows(Arena *a, Model *m, Diags *d)
{
    Ragged r = {.a = a, .d = d, .m = m};
    for (Block *b = m->blocks; b; b = b->next) find_lengths(&r, b->body);
    if (!r.lengths.n) return;
    for (Block *b = m->blocks; b; b = b->next) flatten(&r, b->body);
    if (!r.arrays.n) return;
    Block *all = m->blocks, *last = all;
    while (last->next) last = last->next;
    define_places(&r);
    Block *made = last->next;
    last->next = NULL;
    for (Block *b = all; b; b = b->next) rewrite_stmts(&r, b->body, NULL);
    last->next = made;
}
