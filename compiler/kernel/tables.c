// tables.c -- what a row needs of its component alone is computed once for each component, before the loops over rows.
//
//   before   kernel draw_c: each element by a lane of its own       after   kernel tables_draw_c: each element by a lane of its own
//              weigh c[i] in 1:K                                              loop a in 1:K
//                lp += -1/2*log_determinant(Sigma[c]) - ...                     update table_1[a] = -1/2*log_determinant(Sigma[a])
//                                                                           kernel draw_c
//                                                                             weigh c[i] in 1:K
//                                                                               lp += table_1[c] - ...
//
// A key is an integer of the row, c[i], or the value that is weighed; what is tabulated holds the row through keys alone. Indices of sums around it may be further dimensions.
//
// Where it may be computed elsewhere:
// - Every subscript that holds a key or such an index is that alone, over the whole of its dimension: where the table has an entry, there are the elements that it reads. An element may have no statement, or a
//   component be empty: then what stands in the table is never looked up, and nothing in an expression can fault. Only where the table has every value that a latent may have, and no guard stands around the
//   expression, choices within it may decide (v[c] of K - 1 elements if c < K), and sums may end at a key.
// - One unknown that it reads has all of the table's dimensions. Its elements are drawn in each sweep, at a cost of their own, so that a table costs no more than they do, even where rows are fewer than keys.
// - The kernel writes nothing that it reads. Tables are filled before a launch that reads them, again if a launch between has written what they are made of.
// - A factor that may be infinite beside one that may be 0 stays (ex_absorbed), and so does what stands in the logarithm of a sum of exponentials, which is computed by its largest term.
// A kernel that computed a matrix for each row, by one lane, is shared by a team if tables have taken all of them.
//
// Needs: kernels as lowered.     Gives: table arrays, a kernel that fills those of a kernel, launches of it.     Keeps: the order of launches.
#include <string.h>
#include "lower.h"

enum { MAX_KEYS = 3, MAX_SIZE = 1000 };      // keys of a table; parts of the tree of an entry

typedef struct Fill {            // a kernel that computes tables over the same keys
    Kernel *kernel;
    Index  *index;               // NULL: of weights of values, by a team
    const ValueWeights *weights;
    struct Fill *next;
} Fill;

typedef struct Table {
    Var   *var;
    Expr  *value;                // over index
    int    n;
    Index *index[MAX_RANK];
    const Fill *fill;
    struct Table *next;
} Table;

typedef struct Reads { const Kernel *kernel; const Fill *fill; struct Reads *next; } Reads;

typedef struct Tables {
    Lower  *p;
    Table  *first, **last;
    Reads  *reads;
    int     n, nreads;
    Kernel *kernel;              // that is being rewritten
    Fill   *fills;               // for it
    int     nfills;
    const Expr *weighed;         // the value that is weighed, within its node; or NULL
    Expr   *first_weighed, *last_weighed;
    bool    guarded;             // a condition decides whether what is looked at is computed
    int     nrows;
    Index  *row[2 * MAX_LOOPS];  // loops around
    int     nsums;
    Index  *sum[MAX_LOOPS];      // sums within the expression around
} Tables;

// ---- what an expression depends on ----

typedef struct Form {            // of an expression as an entry of a table
    Expr  *value;                // over key[0..n-1], then over sum indices as they stand
    int    n;
    Expr  *key[MAX_KEYS];
    Index *at[MAX_KEYS];         // what stands in its place
    bool   all[MAX_KEYS + MAX_RANK];     // the table has every value that it may have, and no guard decides what is read
    int    ninner;
    Index *inner[MAX_RANK];      // indices of loops and sums that it runs over besides
} Form;

static bool mentions_a_row(const Tables *t, const Expr *e)
{
    for (int i = 0; i < t->nrows; i++)
        if (ex_mentions_index(e, t->row[i])) return true;
    return false;
}

static bool is_key(const Tables *t, const Expr *e)
{
    if (e->kind != EX_REF || e->nargs != e->var->rank || e->loose) return false;
    if (t->weighed && e == t->weighed) return true;
    return e->var->base == BASE_INT && e->var->kind != VAR_ELEMENT && e->nargs > 0 && mentions_a_row(t, e);
}

// In a kernel that would have one lane for its matrices, the index of a loop is a key of theirs, too: inverse(Sigma[a]).
static bool is_turn(const Tables *t, const Expr *e)
{
    for (int i = 0; i < t->nrows; i++)
        if (e->kind == EX_INDEX && e->index == t->row[i]) return true;
    return false;
}

typedef struct Search { const Tables *t; Expr *key; bool turns; } Search;

static Look find_key(const Expr *e, void *with)
{
    Search *s = with;
    for (int k = 0; e->kind == EX_REF && k < e->nargs; k++)
        if (is_key(s->t, e->args[k]) || (s->turns && is_turn(s->t, e->args[k]))) {
            s->key = e->args[k];
            return FOUND;
        }
    return LOOK;
}

static bool is_index(const Expr *e, const Index *i) { return e->kind == EX_INDEX && e->index == i; }

static const Index *index_of(const Form *f, int i) { return i < f->n ? f->at[i] : f->inner[i - f->n]; }

// Whether e reads an element that may not exist for every key: a subscript holds an index of the table, but is not that alone over the whole dimension; or a sum ends at a key.
// Where every value that a key may have is a key of the table, and nothing but e decides what is read of it, a choice within e decides it here as there.
static bool elsewhere(const Form *f, const Expr *e, bool chosen)
{
    if (!e->indices) return false;
    if (e->kind == EX_REF) {
        for (int k = 0; k < e->var->rank; k++) {
            if (e->var->dim[k]->indices) return true;
            for (int i = 0; i < f->n + f->ninner && k < e->nargs; i++) {
                const Index *j = index_of(f, i);
                if (ex_mentions_index(e->args[k], j) && (!is_index(e->args[k], j) || e->var->dim[k] != j->hi) && !(chosen && f->all[i])) return true;
            }
        }
    }
    if (e->kind == EX_REDUCE) {
        for (int i = 0; i < f->n + f->ninner; i++)
            if ((ex_mentions_index(e->args[0], index_of(f, i)) || ex_mentions_index(e->args[1], index_of(f, i))) && !f->all[i]) return true;
    }
    const bool choice = e->kind == EX_CALL && (e->fn == FN_if_else || e->fn == FN_AND || e->fn == FN_OR);
    for (int i = 0; i < e->nargs; i++)
        if (elsewhere(f, e->args[i], chosen || (choice && i > 0))) return true;
    return false;
}

// The last value of a key; *all: it may have every value from 1 to there. NULL: not known.
static Expr *last_of(const Tables *t, const Expr *key, const Expr *e, bool *all)
{
    const Var *v = key->var;
    *all = false;
    if (t->weighed && key == t->weighed) {
        *all = !t->guarded && t->first_weighed->kind == EX_NUM && t->first_weighed->number == 1;
        if (*all) return t->last_weighed;
    } else if (key->kind == EX_REF && var_unknown(v) && v->upper && v->lower && ex_is_num(v->lower, 1)) {
        *all = !t->guarded;
        if (*all) return v->upper;
    }
    if (e->kind == EX_CALL && (e->fn == FN_if_else || e->fn == FN_AND || e->fn == FN_OR)) return last_of(t, key, e->args[0], all);
    for (int k = 0; e->kind == EX_REF && k < e->nargs; k++)
        if (e->args[k] == key) return e->var->dim[k];
    Expr *last = NULL;
    for (int k = 0; k < e->nargs && !last; k++) last = last_of(t, key, e->args[k], all);
    return last;
}

// An unknown with all of the indices of the table.
static Look test_covers(const Expr *e, void *with)
{
    const Form *f = with;
    if (e->kind != EX_REF) return LOOK;
    if (!var_unknown(e->var) || e->var->base != BASE_REAL) return SKIP;
    for (int i = 0; i < f->n + f->ninner; i++)
        if (!ex_mentions_index(e, i < f->n ? f->at[i] : f->inner[i - f->n])) return SKIP;
    return FOUND;
}

typedef struct Written { const Expr *e; const Graph *g; } Written;

static bool reads_it(const Var *v, void *with)
{
    const Written *w = with;
    return v->kind != VAR_ELEMENT && (w->g->series ? ex_reads(w->e, v) : ex_mentions(w->e, v));
}

static bool test_local(const Var *v, void *with) { (void)with; return v->kind == VAR_ELEMENT; }

// A routine without an order of its own: series, solutions and the like are no entries of tables.
static bool test_series_var(const Var *v, void *with) { (void)with; return v->kind == VAR_SERIES; }

// Makes e an entry of a table; false: it is none.
static bool form_of(const Tables *t, Expr *e, Form *f)
{
    *f = (Form){.value = e};
    Search s = {.t = t, .turns = t->kernel->by_one && (ex_rank(e) > 0 || (e->kind == EX_CALL && e->fn == FN_log_determinant))};
    while (f->n < MAX_KEYS && ex_find(f->value, find_key, &s)) {
        Expr *last = last_of(t, f->key[f->n] = s.key, f->value, &f->all[f->n]);
        if (!last || !ex_data_only(last) || last->indices) return false;
        f->at[f->n] = index_new(intern("a"), ex_num(1), last);
        f->value = ex_replace(f->value, s.key, ex_index(f->at[f->n]));
        f->n++;
    }
    if (f->n == 0 || f->value->loose || f->value->size > MAX_SIZE) return false;
    for (int i = 0; i < t->nrows + t->nsums; i++) {
        Index *j = i < t->nrows ? t->row[i] : t->sum[i - t->nrows];
        if (!ex_mentions_index(f->value, j)) continue;
        if (f->n + f->ninner == MAX_RANK || !j->lo || !ex_is_num(j->lo, 1) || !ex_data_only(j->hi) || j->hi->indices) return false;
        for (int k = 0; k < f->n; k++)
            if (ex_mentions_index(f->key[k], j)) return false;
        f->inner[f->ninner++] = j;
    }
    if (elsewhere(f, f->value, false) || ex_any_var(f->value, test_local, NULL) || ex_any_var(f->value, test_series_var, NULL)) return false;
    return !writes(t->kernel->body, reads_it, &(Written){f->value, t->p->g});
}

// ---- what is worth a table ----

static Look test_costly(const Expr *e, void *with)
{
    const bool weighed = with != NULL;
    switch (e->kind) {
    case EX_AT: return FOUND;
    case EX_CALL: return e->nargs == 0 || function_rows[e->fn].infix || e->fn == FN_WITHIN || e->fn == FN_if_else ? LOOK : FOUND;
    case EX_POW: return (weighed && e->number < 0) || e->number != (double)(int)e->number ? FOUND : LOOK;
    case EX_REDUCE: return e->fn == FN_sum ? FOUND : LOOK;
    case EX_NUM: case EX_REF: case EX_INDEX: case EX_ADD: case EX_MUL: case EX_ARRAY: break;
    }
    return LOOK;
}

static bool costly(const Tables *t, const Expr *e) { return ex_find(e, test_costly, t->weighed ? (void *)t : NULL); }

// ---- tables ----

static const Fill *filler(Tables *t, Expr *extent)
{
    Fill **last = &t->fills;
    while (*last && (!(*last)->index || (*last)->index->hi != extent)) last = &(*last)->next;
    if (*last) return *last;
    Kernel *k = NEW(t->p->g->arena, Kernel);
    k->kind = KERNEL_ELEMENTS;
    k->name = words(t->p, t->fills ? "tables_%s_%d" : "tables_%s", t->kernel->name, ++t->nfills);
    k->number = "wide";
    k->step = t->kernel->step;
    *last = NEW(t->p->g->arena, Fill);
    **last = (Fill){k, index_new(intern("a"), ex_num(1), extent), NULL, NULL};
    return *last;
}

static void note_read(Tables *t, const Fill *fill)
{
    Reads *r = NEW(t->p->g->arena, Reads);
    *r = (Reads){t->kernel, fill, t->reads};
    t->reads = r;
    t->nreads++;
}

static bool same_form(const Table *of, const Form *f, Expr *value)
{
    if (of->n != f->n + f->ninner) return false;
    for (int i = 0; i < of->n; i++) {
        const Index *j = i < f->n ? f->at[i] : f->inner[i - f->n];
        if (of->index[i]->hi != j->hi) return false;
        value = ex_replace_index(value, (Index *)j, ex_index(of->index[i]));
    }
    return value == of->value;
}

static Table *table_of(Tables *t, const Form *f, Expr *value)
{
    Table *found = t->first;
    while (found && (found->fill->kernel->step != t->kernel->step || !same_form(found, f, value))) found = found->next;      // what competes with other steps may be on a CPU only
    if (!found) {
        Expr *dim[MAX_RANK];
        found = NEW(t->p->g->arena, Table);
        found->fill = filler(t, f->at[0]->hi);
        for (int i = 0; i < f->n + f->ninner; i++) {
            const Index *j = i < f->n ? f->at[i] : f->inner[i - f->n];
            found->index[found->n] = i == 0 ? found->fill->index : index_new(i < f->n ? intern(words(t->p, "a%d", i + 1)) : j->name, ex_num(1), j->hi);
            value = ex_replace_index(value, (Index *)j, ex_index(found->index[found->n]));
            dim[found->n++] = j->hi;
        }
        found->value = value;
        found->var = work_array(t->p, ROLE_BLOCK, words(t->p, "table_%d", ++t->n), found->n, dim);
        if (!t->last) t->last = &t->first;
        *t->last = found;
        t->last = &found->next;
    }
    note_read(t, found->fill);
    return found;
}

static Expr *look_up(Tables *t, const Form *f)
{
    Table *of = table_of(t, f, f->value);
    Expr *at[MAX_RANK];
    for (int i = 0; i < of->n; i++) at[i] = i < f->n ? f->key[i] : ex_index(f->inner[i - f->n]);
    return ex_ref(of->var, of->n, at);
}

// An element of a matrix that a routine makes: the whole of it is one entry.
static Expr *look_up_matrix(Tables *t, Expr *e)
{
    Form f;
    const int rank = e->nargs;
    Expr *at[MAX_RANK], *whole[MAX_RANK];
    if (!form_of(t, e->args[0], &f) || f.ninner || f.n + rank - 1 > MAX_RANK || !ex_find(f.value, test_covers, &f)) return e;
    for (int k = 0; k + 1 < rank; k++) {
        Expr *extent = ex_dim(f.value, k);
        if (extent->indices || !ex_data_only(extent)) return e;
        f.inner[f.ninner++] = index_new(intern(k ? "k" : "j"), ex_num(1), extent);
        whole[k] = ex_index(f.inner[k]);
    }
    Table *of = table_of(t, &f, ex_at(f.value, rank - 1, whole));
    for (int i = 0; i < of->n; i++) at[i] = i < f.n ? f.key[i] : e->args[1 + i - f.n];
    return ex_ref(of->var, of->n, at);
}

// sum(l, a[l]*sum(j, P[l, j]*a[j])) with P the inverse of a covariance: the sum of squares of C'a, P = CC', which takes each pair once, and is never negative. a is a sum of what stands beside P.
typedef struct Quadratic { Expr *inverse, *a; Index *l; } Quadratic;      // a at index l

// Of a product: one factor that f finds, and the rest.
static Expr *without(Expr *e, bool (*f)(Expr *, void *), void *with, Expr **found)
{
    Expr *rest = ex_num(1);
    *found = NULL;
    for (int i = 0; i < (e->kind == EX_MUL ? e->nargs : 1); i++) {
        Expr *part = e->kind == EX_MUL ? e->args[i] : e;
        if (!*found && f(part, with)) *found = part;
        else rest = ex_mul2(rest, part);
    }
    return rest;
}

static bool is_sum(Expr *e, void *with) { (void)with; return e->kind == EX_REDUCE && e->fn == FN_sum && ex_is_num(e->args[0], 1); }

static bool is_inverse(Expr *e, void *with)
{
    Index **i = with;
    if (e->kind != EX_AT || e->nargs != 3 || e->args[0]->kind != EX_CALL || e->args[0]->fn != FN_inverse) return false;
    return (is_index(e->args[1], i[0]) && is_index(e->args[2], i[1])) || (is_index(e->args[1], i[1]) && is_index(e->args[2], i[0]));
}

static bool quadratic(Expr *e, Quadratic *q)
{
    Expr *inner, *at;
    if (!is_sum(e, NULL)) return false;
    Index *l = index_new(e->index->name, e->args[0], e->args[1]);
    Expr *a = without(ex_open(e, l), is_sum, NULL, &inner);
    if (!inner || inner->args[1] != e->args[1]) return false;
    Index *j = index_new("j", inner->args[0], inner->args[1]);
    Expr *b = without(ex_open(inner, j), is_inverse, (Index *[]){l, j}, &at);
    if (!at || ex_mentions_index(b, l) || ex_replace_index(b, j, ex_index(l)) != a) return false;
    const Expr *of = at->args[0]->args[0];
    if (of->kind != EX_REF || of->var->constraint != CONSTRAINT_COVARIANCE || ex_dim(at->args[0], 0) != e->args[1]) return false;
    *q = (Quadratic){at->args[0], a, l};
    return true;
}

// Of the table of an inverse, element [l, j] of its Cholesky factor, in a table of their transposes [key, j, l]. Both are filled by one kernel, one after the other.
static Expr *look_up_root(Tables *t, const Expr *inverse, Expr *l, Expr *j)
{
    Form f = {.n = 1, .key = {inverse->args[0]}, .at = {index_new(intern("a"), ex_num(1), inverse->var->dim[0])}, .ninner = 2};
    Expr *at[MAX_RANK] = {ex_index(f.at[0])};
    for (int k = 0; k < 2; k++) at[1 + k] = ex_index(f.inner[k] = index_new(intern(k ? "k" : "j"), ex_num(1), inverse->var->dim[1 + k]));
    f.value = ex_at(ex_call1("cholesky_decompose", ex_ref(inverse->var, 1, at)), 2, (Expr *[]){at[2], at[1]});
    return ex_ref(table_of(t, &f, f.value)->var, 3, (Expr *[]){f.key[0], j, l});
}

static Expr *take_quadratic(Tables *t, Expr *e)
{
    Quadratic q;
    if (!quadratic(e, &q)) return NULL;
    Expr *l = ex_index(q.l), *at = ex_at(q.inverse, 2, (Expr *[]){l, l}), *entry = look_up_matrix(t, at);
    if (entry == at || entry->nargs != 3) return NULL;
    Index *j = index_new(intern("j"), ex_num(1), e->args[1]);
    Expr *z = ex_reduce("sum", q.l, ex_index(j), e->args[1], ex_mul2(look_up_root(t, entry, l, ex_index(j)), q.a));
    return ex_reduce("sum", j, ex_num(1), e->args[1], ex_pow(z, 2));
}

static bool tabulated(Tables *t, Expr *e, Form *f) { return e->kind != EX_NUM && form_of(t, e, f) && ex_find(f->value, test_covers, f); }

static bool same_keys(const Form *a, const Form *b)
{
    if (a->n != b->n || a->ninner != b->ninner) return false;
    for (int i = 0; i < a->n; i++) {
        bool in = false;
        for (int k = 0; k < b->n; k++) in |= a->key[i] == b->key[k];
        if (!in) return false;
    }
    for (int i = 0; i < a->ninner; i++)
        if (a->inner[i] != b->inner[i]) return false;
    return true;
}

static Expr *operate(const Expr *like, int n, Expr *const *args) { return like->kind == EX_ADD ? ex_add(n, args) : ex_mul(n, args); }

static Expr *take(Tables *t, Expr *e);

// Of a sum or a product: what holds the same keys together.
static Expr *take_parts(Tables *t, Expr *e)
{
    Arena *a = t->p->g->arena;
    Expr **out = NEW_N(a, Expr *, e->nargs), **group = NEW_N(a, Expr *, e->nargs);
    bool *done = NEW_N(a, bool, e->nargs), *stays = NEW_N(a, bool, e->nargs);
    int n = 0;
    for (int i = 0; i < e->nargs; i++) stays[i] = e->kind == EX_MUL && ex_absorbed(e, i);
    for (int i = 0; i < e->nargs; i++) {
        Form f, g;
        if (done[i] || stays[i] || !costly(t, e->args[i]) || e->args[i]->kind == EX_AT || !tabulated(t, e->args[i], &f)) continue;
        int m = 0;
        for (int k = 0; k < e->nargs; k++)
            if (k == i || (!done[k] && !stays[k] && e->args[k]->kind != EX_AT && tabulated(t, e->args[k], &g) && same_keys(&f, &g))) {
                group[m++] = e->args[k];
                done[k] = true;
            }
        if (tabulated(t, operate(e, m, group), &f)) out[n++] = look_up(t, &f);
        else
            for (int k = 0; k < m; k++) out[n++] = group[k];
    }
    for (int i = 0; i < e->nargs; i++)
        if (!done[i]) out[n++] = stays[i] ? e->args[i] : take(t, e->args[i]);
    return operate(e, n, out);
}

static Look test_exp(const Expr *e, void *with) { (void)with; return e->kind == EX_CALL && e->fn == FN_exp ? FOUND : LOOK; }

static Expr *take(Tables *t, Expr *e)
{
    Form f;
    if (e->nargs == 0 || e->kind == EX_REF || e->kind == EX_ARRAY || ex_rank(e) > 0) return e;
    if (e->kind == EX_AT) return look_up_matrix(t, e);
    if (costly(t, e) && tabulated(t, e, &f)) return look_up(t, &f);
    switch (e->kind) {
    case EX_ADD: case EX_MUL: return take_parts(t, e);
    case EX_POW: return ex_pow(take(t, e->args[0]), e->number);
    case EX_REDUCE: {
        Expr *squares = take_quadratic(t, e);
        if (squares) return squares;
        if (t->nsums == MAX_LOOPS || e->fn != FN_sum) return e;
        Index *j = index_new(e->index->name, e->args[0], e->args[1]);
        Expr *open = ex_open(e, j);
        t->sum[t->nsums++] = j;
        Expr *body = take(t, open);
        t->nsums--;
        return body == open ? e : ex_reduce(e->name, j, e->args[0], e->args[1], body);
    }
    case EX_CALL: {
        if (e->fn == FN_WITHIN || (e->fn == FN_log && ex_find(e->args[0], test_exp, NULL))) return e;
        Expr **args = NEW_N(t->p->g->arena, Expr *, e->nargs);
        for (int i = 0; i < e->nargs; i++) args[i] = take(t, e->args[i]);
        return ex_call(e->name, e->nargs, args);
    }
    case EX_NUM: case EX_REF: case EX_INDEX: case EX_ARRAY: case EX_AT: break;
    }
    return e;
}

// ---- rows that are classified by distances ----

// The log density of a value x, when all of it is: of_value[x] + times*sum(j, sum(l in j:p, root[x, j, l]*(row[i, l] - centre[x, l]))^2). On a GPU a routine of its own weighs the values of several rows at a time (classify.h).
static bool distance(const Expr *e, Expr *weighed, const Index *i, Distances *out)
{
    if (e->kind != EX_REDUCE || e->fn != FN_sum || !ex_is_num(e->args[0], 1)) return false;
    Index *j = index_new("j", e->args[0], e->args[1]);
    const Expr *square = ex_open(e, j);
    if (square->kind != EX_POW || square->number != 2 || square->args[0]->kind != EX_REDUCE) return false;
    const Expr *z = square->args[0];
    if (z->fn != FN_sum || !is_index(z->args[0], j) || z->args[1] != e->args[1]) return false;
    Index *l = index_new("l", z->args[0], z->args[1]);
    const Expr *product = ex_open(z, l);
    if (product->kind != EX_MUL || product->nargs != 2) return false;
    for (int k = 0; k < 2; k++) {
        const Expr *root = product->args[k], *a = product->args[1 - k];
        if (root->kind != EX_REF || root->nargs != 3 || root->args[0] != weighed || !is_index(root->args[1], j) || !is_index(root->args[2], l) || a->kind != EX_ADD || a->nargs != 2) continue;
        for (int m = 0; m < 2; m++) {
            const Expr *row = a->args[m], *minus = a->args[1 - m];
            if (row->kind != EX_REF || row->nargs != 2 || !is_index(row->args[0], i) || !is_index(row->args[1], l) || row->var->dim[1] != e->args[1]) continue;
            const Expr *centre = minus->kind == EX_MUL && minus->nargs == 2 && ex_is_num(minus->args[0], -1) ? minus->args[1] : NULL;
            if (!centre || centre->kind != EX_REF || centre->nargs != 2 || centre->args[0] != weighed || !is_index(centre->args[1], l) || centre->var->dim[1] != e->args[1]) continue;
            *out = (Distances){.row = row->var, .centre = centre->var, .root = root->var};
            return true;
        }
    }
    return false;
}

static Look test_not_looked_up(const Expr *e, void *with)
{
    if (e->kind == EX_REF) return e == with || (e->nargs == 1 && e->args[0] == with) ? SKIP : FOUND;
    return e->kind == EX_NUM || e->kind == EX_ADD || e->kind == EX_MUL ? LOOK : FOUND;
}

static void find_distances(Tables *t, Node *n)
{
    Lower *p = t->p;
    const Index *i = t->row[0];
    Distances d = {0}, found;
    Expr *rest = ex_num(0);
    const Conditional *c = n->weigh.c;
    if (t->kernel->kind != KERNEL_ELEMENTS || t->nrows != 1 || t->guarded || c->whole || !t->weighed || n->weigh.moves || n->weigh.expects || c->var->rank != 1 || c->current->nargs != 1 || !is_index(c->current->args[0], i)) return;
    for (const Node *m = n->body; m; m = m->next) {
        const Node *u = m->body;
        if (m->kind != NODE_REDUCE || m->nest.loops.n || m->nest.loops.guard || !u || u->next || u->kind != NODE_UPDATE || u->update.op != UPDATE_ADD || u->update.times) return;
        Expr *e = u->update.value;
        for (int k = 0; k < (e->kind == EX_ADD ? e->nargs : 1); k++) {
            Expr *term = e->kind == EX_ADD ? e->args[k] : e;
            const bool scaled = term->kind == EX_MUL && term->nargs == 2 && term->args[0]->kind == EX_NUM;
            if (!d.row && distance(scaled ? term->args[1] : term, (Expr *)t->weighed, i, &found)) {
                d = found;
                d.times = scaled ? term->args[0]->number : 1;
            } else rest = ex_add2(rest, term);
        }
    }
    if (!d.row || !is_real(p->out, d.row) || is_real(p->out, d.centre) || is_real(p->out, d.root) || ex_find(rest, test_not_looked_up, (void *)t->weighed)) return;
    d.of_value = rest;
    n->weigh.distances = arena_copy(p->g->arena, &d, sizeof d);
    reads_rows(p, d.row->dim[1]);
}

// ---- values whose weights are products of tables ----

// The rest of the node stays as it is: it is for rows whose products leave the range of numbers.
static bool take_weights(Tables *t, Node *n)
{
    const ValueWeights *all = n->weigh.weights_of = weights_of_values(t->p, t->kernel, n, t->nrows, t->row);
    if (!all) return false;
    Fill **last = &t->fills;
    while (*last) last = &(*last)->next;
    Kernel *k = NEW(t->p->g->arena, Kernel);
    k->kind = KERNEL_TEAM;
    k->name = words(t->p, "weights_%s", t->kernel->name);
    k->number = "wide";
    k->step = t->kernel->step;
    k->comment = "// Weights of values, for each key that rows have: each row over its largest\n";
    Node **at = &k->body;
    for (const ValueWeights *w = all; w; w = w->next, at = &(*at)->next) {
        (*at = node_new(t->p->g->arena, NODE_WEIGHTS))->weights.of = w;
        Expr *index[MOST_VALUE_KEYS + 1];
        for (int i = 0; i < w->n; i++) index[i] = ex_index(w->index[i]);
        index[w->n] = ex_index(w->value);
        const char *of = math(t->p, w->weight ? w->weight : w->log);
        k->comment = words(t->p, "%s//   %s = %s\n", k->comment, math(t->p, ex_ref(w->var, w->n + 1, index)), cut_line(t->p, w->weight ? of : words(t->p, "exp(%s)", of)));
    }
    *last = NEW(t->p->g->arena, Fill);
    **last = (Fill){k, NULL, all, NULL};
    note_read(t, *last);
    return true;
}

// ---- kernels ----

static void take_list(Tables *t, Node *list)
{
    const int rows = t->nrows;
    const bool outer = t->guarded;
    for (Node *n = list; n; n = n->next) {
        const Loops *l = n->kind == NODE_REDUCE || n->kind == NODE_NEST ? &n->nest.loops : NULL;
        const int most = (int)(sizeof t->row / sizeof *t->row), more = l ? l->n : n->kind == NODE_LOOP ? n->loop.n : 0;
        if (t->nrows + more > most) continue;
        if (l && (n->nest.careful || n->nest.as_read)) continue;         // data have not been checked, or not been filled
        const bool guarded = t->guarded;
        t->guarded |= (l && l->guard) || n->kind == NODE_IF;
        for (int i = 0; i < more; i++) t->row[t->nrows++] = l ? l->index[i] : n->loop.index[i];
        if (n->kind == NODE_UPDATE && t->nrows) n->update.value = take(t, n->update.value);
        const Expr *weighed = t->weighed;
        if (n->kind == NODE_WEIGH) {
            t->weighed = t->nrows && !n->weigh.c->whole ? n->weigh.c->u : NULL;
            t->first_weighed = n->weigh.first;
            t->last_weighed = n->weigh.last;
        }
        if (n->kind != NODE_WEIGH || !take_weights(t, n)) take_list(t, n->body);
        if (n->kind == NODE_WEIGH && !n->weigh.weights_of) find_distances(t, n);
        t->weighed = weighed;
        if (n->kind == NODE_IF) take_list(t, n->test.otherwise);
        t->nrows -= more;
        t->guarded = guarded || n->kind == NODE_SKIP;
    }
    t->nrows = rows;
    t->guarded = outer;
}

// Of the tables of one kernel: a loop over their keys, and what it computes for each.
static void complete(Tables *t, Fill *f)
{
    Node *each = f->kernel->body = node_new(t->p->g->arena, NODE_LOOP), **last = &each->body;
    const char *what = "";
    for (const Table *of = t->first; of; of = of->next) {
        if (of->fill != f) continue;
        Expr *at[MAX_RANK];
        for (int i = 0; i < of->n; i++) at[i] = ex_index(of->index[i]);
        Node *set = node_new(t->p->g->arena, NODE_UPDATE);
        set->update.op = UPDATE_SET;
        set->update.place = place_element(ex_ref(of->var, of->n, at));
        set->update.value = of->value;
        what = words(t->p, "%s//   %s = %s\n", what, math(t->p, set->update.place.element), cut_line(t->p, math(t->p, of->value)));
        each->loop.of = of->var;
        if (of->n > 1) {
            Node *nest = *last = node_new(t->p->g->arena, NODE_NEST);
            for (int i = 1; i < of->n; i++) nest->nest.loops.index[nest->nest.loops.n++] = of->index[i];
            nest->nest.op = UPDATE_SET;
            nest->body = set;
        } else *last = set;
        last = &(*last)->next;
    }
    each->loop.how = SHARE_EACH;
    each->loop.n = 1;
    each->loop.index[0] = f->index;
    each->loop.keeps = true;
    f->kernel->comment = words(t->p, "// What rows need of a value that they have: once for each value\n%s", what);
}

// ---- matrices that are left ----

static bool own_arrays(const Node *list)
{
    for (const Node *n = list; n; n = n->next) {
        const bool sum = n->kind == NODE_REDUCE || n->kind == NODE_NEST;
        for (const Node *u = sum ? n->body : NULL; u; u = u->next)
            if ((u->kind == NODE_UPDATE && needs_own_array(u->update.value, &n->nest.loops)) || (u->kind == NODE_LET && needs_own_array(u->let.value, &n->nest.loops))) return true;
        if (own_arrays(n->body) || (n->kind == NODE_IF && own_arrays(n->test.otherwise))) return true;
    }
    return false;
}

static void by_one_lane(Kernel *k)
{
    k->kind = KERNEL_ONCE;
    for (Node **n = &k->body; *n;) {
        if ((*n)->kind == NODE_UPDATE) (*n)->update.how = STORE_PLAIN;
        if ((*n)->kind == NODE_BARRIER) *n = (*n)->next;
        else n = &(*n)->next;
    }
}

// ---- launches ----

typedef struct Filled { const Tables *t; const Fill *fill; } Filled;

// Whether a table of the kernel is made of v.
static bool made_of(const Var *v, void *with)
{
    const Filled *f = with;
    for (const ValueWeights *w = f->fill->weights; w; w = w->next)
        if (reads_it(v, &(Written){w->log, f->t->p->g})) return true;
    for (const Table *of = f->t->first; of; of = of->next)
        if (of->fill == f->fill && reads_it(v, &(Written){of->value, f->t->p->g})) return true;
    return false;
}

static void launch_fills(Tables *t, Launches *list)
{
    Lower *p = t->p;
    Launches all = {0}, *keep = p->launches;
    Filled *filled = NEW_N(p->g->arena, Filled, t->nreads + 1);
    int n = 0;
    p->launches = &all;
    Launch *next;
    for (Launch *l = list->first; l; l = next) {
        next = l->next;
        if (l->kernel && l->kernel->kind == KERNEL_ONCE && l->kind == LAUNCH_TEAM) {
            l->kind = LAUNCH_ONCE;
            l->nargs = 0;
        }
        for (const Reads *r = t->reads; r && l->kernel; r = r->next) {
            bool there = r->kernel != l->kernel;
            for (int i = 0; i < n; i++) there |= filled[i].fill == r->fill;
            if (there) continue;
            p->when = l->when;
            p->when_rows = l->rows;
            if (r->fill->index) with_extent(launch(p, LAUNCH_EACH, r->fill->kernel), r->fill->index->hi);
            else launch_team(p, r->fill->kernel);
            if (l->when == ALWAYS) filled[n++] = (Filled){t, r->fill};
        }
        p->when = ALWAYS;
        p->when_rows = NULL;
        for (int i = 0; i < n;) {
            if (l->kernel && !writes(l->kernel->body, made_of, &filled[i])) i++;
            else filled[i] = filled[--n];        // a library call may write anything
        }
        l->next = NULL;
        if (!all.first) all.last = &all.first;
        *all.last = l;
        all.last = &l->next;
    }
    p->launches = keep;
    *list = all;
}

void tables(Lower *p)
{
    Tables t = {.p = p};
    Program *out = p->out;
    for (Kernel **at = &out->sweep.first; *at; at = &(*at)->next) {
        Kernel *k = t.kernel = *at;
        if (k->kind != KERNEL_FUNCTION && k->kind != KERNEL_PART) take_list(&t, k->body);
        if (k->by_one && own_arrays(k->body)) by_one_lane(k);
        for (Fill *f = t.fills; f; f = f->next) {
            if (f->index) complete(&t, f);
            f->kernel->next = *at;
            *at = f->kernel;
            at = &f->kernel->next;
        }
        t.fills = NULL;
        t.nfills = 0;
    }
    for (Kernel *k = out->setup.first; k; k = k->next)
        if (k->by_one && own_arrays(k->body)) by_one_lane(k);
    for (int i = 0; i < out->nsteps; i++) {
        launch_fills(&t, &out->steps[i].launches);
        launch_fills(&t, &out->steps[i].density);
        launch_fills(&t, &out->steps[i].jacobian);
    }
    Launches *const lists[] = {&out->before, &out->log_lik, &out->replicates, &out->derive, &out->restore, &out->joint};
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) launch_fills(&t, lists[i]);
}
