// tables.c -- what a row needs of its component alone is computed once for each component, before the loops over rows.
//
//   before   kernel draw_c: each element by a lane of its own       after   kernel tables_draw_c: each element by a lane of its own
//              weigh c[i] in 1:K                                              loop a in 1:K
//                lp += -1/2*log_determinant(Sigma[c]) - ...                     update table_1[a] = -1/2*log_determinant(Sigma[a])
//                                                                           kernel draw_c
//                                                                             weigh c[i] in 1:K
//                                                                               lp += table_1[c] - ...
//
// A key is an integer of the row, c[i], or the value that is weighed; what is tabulated depends on the row through keys alone. Indices of
// sums around it may be further dimensions.
//
// Where it may be computed elsewhere:
// - Every subscript that has a key or such an index is that alone, over the whole of its dimension: where the table has an entry, there
//   are the elements that it reads. An element may have no statement, or a component be empty. Then its entry is never looked up, and
//   nothing in an expression can fault. Some tables have every value that a latent may have, and no guard around the expression. Only there
//   choices within it may decide (v[c] of K - 1 elements if c < K), and sums may end at a key.
// - One unknown that it reads has all of the table's dimensions. Its elements are drawn in each sweep, at a cost of their own, so that a
//   table costs no more than they do, even where rows are fewer than keys.
// - The kernel writes nothing that it reads. Tables are filled before a launch that reads them, again if a launch between has written what
//   they are made of.
// - A factor that may be infinite beside one that may be 0 stays (ex_absorbed). So do terms in the logarithm of a sum of exponentials,
//   which is computed by its largest term.
// A kernel that computed a matrix for each row, by one lane, is shared by a team if tables have taken all of them.
//
// Needs: kernels as lowered.     Gives: table arrays, a kernel that fills those of a kernel, launches of it.     Keeps: the order of
// launches.
#include <math.h>
#include <string.h>
#include "lower.h"

enum { MAX_KEYS = 3, MAX_SIZE = 1000 };  // keys of a table; parts of the tree of an entry

enum { MOST_UNKNOWNS = 8 };  // that tables of one kernel are made of

typedef struct Fill {  // a kernel that computes tables over the same keys, of the same unknowns
    Kernel *kernel;
    Index *index;  // NULL: of weights of values, by a team
    const ValueWeights *weights;
    int n;
    const Var *of[MOST_UNKNOWNS];
    bool matrices;     // what routines make of a matrix for each key: by a crew of lanes
    bool of_unknowns;  // they are made of these and of data alone
    bool placed;
    struct Fill *next;
} Fill;

typedef struct Table {
    Var *var;
    Expr *value;  // over index
    Expr *entry;  // the same, with tables of matrices in place of what routines make of them
    int n;
    Index *index[MAX_RANK];
    FunctionId routine;  // of a matrix in memory: what makes the entry of a key; or FN_OTHER
    bool transposed;     // the entry is the transpose of what that makes
    Expr *matrix;
    const Fill *fill;
    struct Table *next;
} Table;

typedef struct TableReads {
    const Kernel *kernel;
    const Fill *fill;
    struct TableReads *next;
} TableReads;

typedef struct Tables {
    Lower *p;
    Table *first, **last;
    TableReads *reads;
    int n, nreads;
    Kernel *kernel;  // that is being rewritten
    Fill *fills;
    const Expr *weighed;  // the value that is weighed, within its node; or NULL
    Expr *first_weighed, *last_weighed;
    bool guarded;  // a condition decides whether what is looked at is computed
    int nrows;
    Index *row[2 * MAX_LOOPS];  // loops around
    int nsums;
    Index *sum[MAX_LOOPS];  // sums within the expression around
    Map taken;              // within one expression: a part -> what it has become
} Tables;

// ---- what an expression depends on ----

typedef struct Form {  // of an expression as an entry of a table
    Expr *value;       // over key[0..n-1], then over sum indices as they are
    int n;
    Expr *key[MAX_KEYS];
    Index *at[MAX_KEYS];            // the expression in its place
    bool all[MAX_KEYS + MAX_RANK];  // the table has every value that it may have, and no guard decides what is read
    int ninner;
    Index *inner[MAX_RANK];  // indices of loops and sums that it runs over besides
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

// In a kernel that would have one lane for its matrices, the index of a loop, or of a sum, is a key of theirs, too: inverse(Sigma[a]).
static bool is_iteration(const Tables *t, const Expr *e)
{
    for (int i = 0; i < t->nrows + t->nsums; i++)
        if (e->kind == EX_INDEX && e->index == (i < t->nrows ? t->row[i] : t->sum[i - t->nrows])) return true;
    return false;
}

typedef struct Search {
    const Tables *t;
    Expr *key;
    bool iterations;
} Search;

static Look find_key(const Expr *e, void *with)
{
    Search *s = with;
    for (int k = 0; e->kind == EX_REF && k < e->nargs; k++)
        if (is_key(s->t, e->args[k]) || (s->iterations && is_iteration(s->t, e->args[k]))) {
            s->key = e->args[k];
            return FOUND;
        }
    return LOOK;
}

static const Index *index_of(const Form *f, int i) { return i < f->n ? f->at[i] : f->inner[i - f->n]; }

// Whether e reads an element that may not exist for every key: a subscript has an index of the table, but is not that alone over the
// whole dimension; or a sum ends at a key. If the table has every value of the key, and nothing but e decides what is read of it, a choice
// within e decides it here as there.
static bool elsewhere(const Form *f, const Expr *e, bool chosen)
{
    if (!e->indices) return false;
    if (e->kind == EX_REF) {
        for (int k = 0; k < e->var->rank; k++) {
            if (e->var->dim[k]->indices) return true;
            for (int i = 0; i < f->n + f->ninner && k < e->nargs; i++) {
                const Index *j = index_of(f, i);
                if (ex_mentions_index(e->args[k], j) && (!is_index(e->args[k], j) || e->var->dim[k] != j->hi) && !(chosen && f->all[i]))
                    return true;
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

typedef struct Written {
    const Expr *e;
    const Graph *g;
} Written;

static bool reads_it(const Var *v, void *with)
{
    const Written *w = with;
    return v->kind != VAR_ELEMENT && (w->g->series ? ex_reads(w->e, v) : ex_mentions(w->e, v));
}

static bool test_local(const Var *v, void *with)
{
    (void)with;
    return v->kind == VAR_ELEMENT;
}

// A routine that has no order of its own: series, solutions and the like are no entries of tables.
static bool test_series_var(const Var *v, void *with)
{
    (void)with;
    return v->kind == VAR_SERIES;
}

// Makes e an entry of a table; false: it is none.
static bool form_of(const Tables *t, Expr *e, Form *f)
{
    *f = (Form){.value = e};
    Search s = {.t = t, .iterations = t->kernel->by_one && (ex_rank(e) > 0 || (e->kind == EX_CALL && e->fn == FN_log_determinant))};
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
    if (elsewhere(f, f->value, false) || ex_any_var(f->value, test_local, NULL) || ex_any_var(f->value, test_series_var, NULL))
        return false;
    return !writes(t->kernel->body, reads_it, &(Written){f->value, t->p->g});
}

// ---- what is worth a table ----

// A matrix that is in memory as a whole.
static bool in_memory(const Expr *a) { return a && a->kind == EX_REF && a->nargs + 2 == a->var->rank && !a->loose; }

static FunctionId matrix_routine(const Expr *call)
{
    return ex_is_call(call, FN_inverse) || ex_is_call(call, FN_cholesky_decompose) || ex_is_call(call, FN_log_determinant) ? call->fn
                                                                                                                           : FN_OTHER;
}

static Look test_costly(const Expr *e, void *with)
{
    const bool weighed = with != NULL;
    switch (e->kind) {
    // has a table of its own
    case EX_AT: return in_memory(e->args[0]->kind == EX_CALL ? e->args[0]->args[0] : NULL) && matrix_routine(e->args[0]) ? SKIP : FOUND;
    case EX_CALL:
        if (e->fn == FN_log_determinant && in_memory(e->args[0])) return SKIP;
        return e->nargs == 0 || function_rows[e->fn].infix || e->fn == FN_WITHIN || e->fn == FN_if_else ? LOOK : FOUND;
    case EX_POW: return (weighed && e->number < 0) || e->number != floor(e->number) ? FOUND : LOOK;
    case EX_REDUCE: return e->fn == FN_sum ? FOUND : LOOK;
    case EX_NUM:
    case EX_REF:
    case EX_INDEX:
    case EX_ADD:
    case EX_MUL:
    case EX_ARRAY: break;
    }
    return LOOK;
}

static bool costly(const Tables *t, const Expr *e) { return ex_find(e, test_costly, t->weighed ? (void *)t : NULL); }

// ---- tables ----

typedef struct Made {
    int n;
    const Var *of[MOST_UNKNOWNS];
    bool more, others;
} Made;

static bool note_unknown(const Var *v, void *with)
{
    Made *m = with;
    if (v->kind == VAR_DATA || v->kind == VAR_LET || v->kind == VAR_PATTERN) return false;
    if (!var_unknown(v)) {
        m->others = true;
        return false;
    }
    int i = 0;
    while (i < m->n && m->of[i]->id < v->id) i++;
    if (i < m->n && m->of[i] == v) return false;
    if (m->n == MOST_UNKNOWNS) return m->more = true;
    for (int k = m->n++; k > i; k--) m->of[k] = m->of[k - 1];
    m->of[i] = v;
    return false;
}

static bool same_unknowns(const Fill *f, const Made *m)
{
    if (f->n != m->n || f->of_unknowns == m->others) return false;
    for (int i = 0; i < m->n; i++)
        if (f->of[i] != m->of[i]) return false;
    return true;
}

static Fill *filler(Tables *t, Expr *extent, const Made *m, bool matrices)
{
    Fill **last = &t->fills;
    while (*last && (!(*last)->index || (*last)->index->hi != extent || (*last)->matrices != matrices || !same_unknowns(*last, m)))
        last = &(*last)->next;
    if (*last) return *last;
    const char *name = matrices ? "matrices" : "tables";
    for (int i = 0; i < m->n && i < 3; i++) name = words(t->p, "%s_%s", name, m->of[i]->name);
    if (m->n > 3) name = words(t->p, "%s_and_%d", name, m->n - 3);
    Fill *f = NEW(t->p->g->arena, Fill);
    *f = (Fill){.kernel = NEW(t->p->g->arena, Kernel),
                .index = index_new(intern("a"), ex_num(1), extent),
                .n = m->n,
                .matrices = matrices,
                .of_unknowns = !m->others};
    memcpy(f->of, m->of, sizeof f->of);
    f->kernel->kind = matrices ? KERNEL_TEAM : KERNEL_ELEMENTS;
    f->kernel->name = kernel_name(t->p, name);
    f->kernel->number = "wide";
    while (*last) last = &(*last)->next;
    return *last = f;
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

// The routine that makes the entry of the first key, whole, of a matrix in memory; FN_OTHER: there is none.
static FunctionId routine_of(const Table *of, Expr **matrix, bool *transposed)
{
    const Expr *e = of->value, *call = e->kind == EX_AT ? e->args[0] : e;
    const FunctionId routine = matrix_routine(call);
    if (!routine || !in_memory(call->args[0])) return FN_OTHER;
    *matrix = call->args[0];
    if ((*matrix)->nargs != 1 || !is_index((*matrix)->args[0], of->index[0])) return FN_OTHER;
    if (e->kind != EX_AT) return of->n == 1 && routine == FN_log_determinant ? routine : FN_OTHER;
    if (of->n != 3 || e->nargs != 3) return FN_OTHER;
    if (is_index(e->args[1], of->index[1]) && is_index(e->args[2], of->index[2])) return routine;
    *transposed = routine == FN_cholesky_decompose && is_index(e->args[1], of->index[2]) && is_index(e->args[2], of->index[1]);
    return *transposed ? routine : FN_OTHER;
}

static const char *table_name(Tables *t, const Table *of)
{
    Loops over = {.n = of->n};
    memcpy(over.index, of->index, sizeof *of->index * (size_t)of->n);
    if (of->transposed && of->matrix->var->sum == NULL) return words(t->p, "root_%s", of->matrix->var->name);
    if (of->routine == FN_log_determinant) return words(t->p, "log_det_%s", of->matrix->var->name);
    const char *name = value_name(t->p->g, of->value, &over);
    return *name ? name : words(t->p, "table_%d", ++t->n);
}

static Table *table_of(Tables *t, const Form *f, Expr *value);

static Look test_matrix(const Expr *e, void *with)
{
    (void)with;
    return e->kind == EX_AT || (e->kind == EX_CALL && e->fn == FN_log_determinant) ? FOUND : LOOK;
}

// What routines make of matrices within the value of a table comes from tables of its own.
static Expr *matrices_apart(Tables *t, Table *of, Expr *e)
{
    if (!ex_find(e, test_matrix, NULL)) return e;
    const bool at = e->kind == EX_AT;
    if ((at || (e->kind == EX_CALL && e->fn == FN_log_determinant)) &&
        in_memory((at ? e->args[0] : e)->kind == EX_CALL ? (at ? e->args[0] : e)->args[0] : NULL)) {
        Form g = {.n = 1, .key = {ex_index(of->index[0])}, .at = {index_new(intern("a"), ex_num(1), of->index[0]->hi)}};
        const Expr *matrix = (at ? e->args[0] : e)->args[0];
        if (!matrix_routine(at ? e->args[0] : e) || matrix->nargs != 1 || !is_index(matrix->args[0], of->index[0])) return e;
        Expr *inner[2] = {NULL, NULL}, *subscript[3] = {g.key[0]};
        Expr *whole = ex_replace_index(at ? e->args[0] : e, of->index[0], ex_index(g.at[0]));
        for (int k = 0; at && k < 2; k++) {
            g.inner[g.ninner] = index_new(intern(k ? "k" : "j"), ex_num(1), ex_dim(whole, k));
            inner[k] = ex_index(g.inner[g.ninner++]);
            subscript[1 + k] = e->args[1 + k];
        }
        g.value = at ? ex_at(whole, 2, inner) : whole;
        return ex_ref(table_of(t, &g, g.value)->var, at ? 3 : 1, subscript);
    }
    Expr **args = NEW_N(t->p->g->arena, Expr *, e->nargs + 1);
    switch (e->kind) {
    case EX_ADD:
    case EX_MUL:
    case EX_CALL:
        for (int i = 0; i < e->nargs; i++) args[i] = matrices_apart(t, of, e->args[i]);
        return e->kind == EX_ADD ? ex_add(e->nargs, args) : e->kind == EX_MUL ? ex_mul(e->nargs, args) : ex_call(e->name, e->nargs, args);
    case EX_POW: return ex_pow(matrices_apart(t, of, e->args[0]), e->number);
    case EX_REDUCE: {
        Index *j = index_new(ex_index_called(e), e->args[0], e->args[1]);
        return ex_reduce(e->name, j, e->args[0], e->args[1], matrices_apart(t, of, ex_open(e, j)));
    }
    case EX_NUM:
    case EX_REF:
    case EX_INDEX:
    case EX_ARRAY:
    case EX_AT: break;
    }
    return e;
}

static void reads_fill(Tables *t, const Fill *f)
{
    for (const TableReads *r = t->reads; r; r = r->next)
        if (r->kernel == t->kernel && r->fill == f) return;
    TableReads *r = NEW(t->p->g->arena, TableReads);
    *r = (TableReads){t->kernel, f, t->reads};
    t->reads = r;
    t->nreads++;
}

static bool made_of_matrix(const Table *of, void *with)
{
    const Table *by = with;
    return of->routine && ex_mentions(by->entry, of->var);
}

static Table *table_of(Tables *t, const Form *f, Expr *value)
{
    Table *found = t->first;
    while (found && !same_form(found, f, value)) found = found->next;
    if (!found) {
        Expr *dim[MAX_RANK];
        Made made = {0};
        found = NEW(t->p->g->arena, Table);
        for (int i = 0; i < f->n + f->ninner; i++) {
            const Index *j = i < f->n ? f->at[i] : f->inner[i - f->n];
            found->index[found->n] = index_new(i == 0     ? intern("a")
                                               : i < f->n ? intern(words(t->p, "a%d", i + 1))
                                                          : j->name,
                                               ex_num(1), j->hi);
            value = ex_replace_index(value, (Index *)j, ex_index(found->index[found->n]));
            dim[found->n++] = j->hi;
        }
        ex_any_var(value, note_unknown, &made);
        if (made.more) made.n = 0;
        found->value = value;
        found->routine = routine_of(found, &found->matrix, &found->transposed);
        // the root of an inverse is made of what that is made of
        for (const Table *of = t->first; of && found->matrix; of = of->next)
            if (of->var == found->matrix->var) {
                made = (Made){.n = of->fill->n, .others = !of->fill->of_unknowns};
                memcpy(made.of, of->fill->of, sizeof made.of);
            }
        Fill *fill = filler(t, found->index[0]->hi, &made, found->routine != FN_OTHER);
        Expr *index = ex_index(fill->index);
        found->value = ex_replace_index(value, found->index[0], index);
        if (found->matrix) found->matrix = ex_replace_index(found->matrix, found->index[0], index);
        found->index[0] = fill->index;
        found->fill = fill;
        found->var = work_array(t->p, ROLE_BLOCK, table_name(t, found), found->n, dim);
        found->entry = found->routine ? found->value : matrices_apart(t, found, found->value);
        if (!t->last) t->last = &t->first;
        *t->last = found;
        t->last = &found->next;
    }
    for (Table *of = t->first; of; of = of->next)
        if (made_of_matrix(of, found)) reads_fill(t, of->fill);
    reads_fill(t, found->fill);
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

// sum(l, a[l]*sum(j, P[l, j]*a[j])) with P the inverse of a covariance: the sum of squares of C'a, P = CC', which takes each pair once, and
// is never negative. a is a sum of the terms beside P.
typedef struct Quadratic {
    Expr *inverse, *a;
    Index *l;
} Quadratic;  // a at index l

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

static bool is_sum(Expr *e, void *with)
{
    (void)with;
    return e->kind == EX_REDUCE && e->fn == FN_sum && ex_is_num(e->args[0], 1);
}

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
    Index *l = index_new(ex_index_called(e), e->args[0], e->args[1]);
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

// Of the table of an inverse, element [l, j] of its Cholesky factor, in a table of their transposes [key, j, l]. Both are filled by one
// kernel, one after the other.
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

// Of a sum or a product: terms of the same keys together.
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

static Look test_exp(const Expr *e, void *with)
{
    (void)with;
    return e->kind == EX_CALL && e->fn == FN_exp ? FOUND : LOOK;
}

static Expr *taken(Tables *t, Expr *e)
{
    Form f;
    const bool determinant = e->kind == EX_CALL && e->fn == FN_log_determinant && in_memory(e->args[0]);
    if ((determinant || costly(t, e)) && tabulated(t, e, &f)) return look_up(t, &f);
    switch (e->kind) {
    case EX_ADD:
    case EX_MUL: return take_parts(t, e);
    case EX_POW: return ex_pow(take(t, e->args[0]), e->number);
    case EX_REDUCE: {
        Expr *squares = take_quadratic(t, e);
        if (squares) return squares;
        if (t->nsums == MAX_LOOPS || (e->fn != FN_sum && e->fn != FN_log_sum_exp)) return e;
        Index *j = index_new(ex_index_called(e), e->args[0], e->args[1]);
        Expr *open = ex_open(e, j);
        const Map outside = t->taken;
        t->taken = (Map){0};
        t->sum[t->nsums++] = j;
        Expr *body = take(t, open);
        t->nsums--;
        t->taken = outside;
        return body == open ? e : ex_reduce(e->name, j, e->args[0], e->args[1], body);
    }
    case EX_CALL: {
        if (e->fn == FN_WITHIN || (e->fn == FN_log && ex_find(e->args[0], test_exp, NULL))) return e;
        Expr **args = NEW_N(t->p->g->arena, Expr *, e->nargs);
        for (int i = 0; i < e->nargs; i++) args[i] = take(t, e->args[i]);
        return ex_call(e->name, e->nargs, args);
    }
    case EX_NUM:
    case EX_REF:
    case EX_INDEX:
    case EX_ARRAY:
    case EX_AT: break;
    }
    return e;
}

// A part that occurs in many places is taken once: definitions of each other by products share their parts, and have more places than can
// be counted.
static Expr *take(Tables *t, Expr *e)
{
    if (e->nargs == 0 || e->kind == EX_REF || e->kind == EX_ARRAY || ex_rank(e) > 0) return e;
    if (e->kind == EX_AT) return look_up_matrix(t, e);
    Expr *known = map_get(&t->taken, e);
    if (!known) map_put(t->p->g->arena, &t->taken, e, known = taken(t, e));
    return known;
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
    k->name = kernel_name(t->p, words(t->p, "weights_%s", t->kernel->name));
    k->number = "wide";
    k->update = t->kernel->update;
    k->comment = "// Weights of values, for each key that rows have: each row over its largest\n";
    Node **at = &k->body;
    for (const ValueWeights *w = all; w; w = w->next, at = &(*at)->next) {
        (*at = node_new(t->p->g->arena, NODE_WEIGHTS))->weights.of = w;
        Expr *index[MOST_VALUE_KEYS + 1];
        for (int i = 0; i < w->n; i++) index[i] = ex_index(w->index[i]);
        index[w->n] = ex_index(w->value);
        const char *of = math(t->p, w->weight ? w->weight : w->log);
        k->comment = words(t->p, "%s//   %s = %s\n", k->comment, math(t->p, ex_ref(w->var, w->n + 1, index)),
                           cut_line(t->p, w->weight ? of : words(t->p, "exp(%s)", of)));
    }
    *last = NEW(t->p->g->arena, Fill);
    **last = (Fill){.kernel = k, .weights = all};
    reads_fill(t, *last);
    return true;
}

// ---- kernels ----

static Expr *take_anew(Tables *t, Expr *e)
{
    t->taken = (Map){0};
    return take(t, e);
}

static void take_list(Tables *t, Node *list)
{
    const int rows = t->nrows;
    const bool outer = t->guarded;
    for (Node *n = list; n; n = n->next) {
        const Loops *l = n->kind == NODE_REDUCE || n->kind == NODE_NEST ? &n->nest.loops : NULL;
        const int most = (int)(sizeof t->row / sizeof *t->row), more = l ? l->n : n->kind == NODE_LOOP ? n->loop.n : 0;
        if (t->nrows + more > most) continue;
        if (l && (n->nest.careful || n->nest.as_read)) continue;  // data have not been checked, or not been filled
        const bool guarded = t->guarded;
        t->guarded |= (l && l->guard) || n->kind == NODE_IF;
        for (int i = 0; i < more; i++) t->row[t->nrows++] = l ? l->index[i] : n->loop.index[i];
        if (n->kind == NODE_ASSIGN && t->nrows) n->assign.value = take_anew(t, n->assign.value);
        if (n->kind == NODE_LET && t->nrows && n->let.value && !n->let.key) n->let.value = take_anew(t, n->let.value);
        const Expr *weighed = t->weighed;
        if (n->kind == NODE_WEIGH) {
            t->weighed = t->nrows && !n->weigh.c->whole ? n->weigh.c->u : NULL;
            t->first_weighed = n->weigh.first;
            t->last_weighed = n->weigh.last;
        }
        if (n->kind != NODE_WEIGH || !take_weights(t, n)) take_list(t, n->body);
        if (n->kind == NODE_WEIGH && !n->weigh.weights_of && t->nrows == 1 && !t->guarded)
            find_distances(t->p, t->kernel, n, t->weighed, t->row[0]);
        t->weighed = weighed;
        take_list(t, n->otherwise);
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
        Node *set = node_new(t->p->g->arena, of->routine ? NODE_ROUTINE : NODE_ASSIGN);
        Expr *element = ex_ref(of->var, of->n, at);
        what = words(t->p, "%s//   %s = %s\n", what, math(t->p, element), cut_line(t->p, math(t->p, of->entry)));
        each->loop.of = of->var;
        if (of->routine) {
            for (int i = 1; i < of->n; i++) at[i] = ex_num(1);
            set->routine.fn = of->routine;
            set->routine.name = of->transposed ? "cholesky_transposed" : function_rows[of->routine].name;
            set->routine.size = ex_dim(of->matrix, 0);
            set->routine.from = of->matrix;
            set->routine.to = ex_ref(of->var, of->n, at);
            each->loop.iterations = (Count){1, {set->routine.size}};
            Count work = {3, {f->index->hi, set->routine.size, set->routine.size}};
            if (f->kernel->niterations == 0) note_count(t->p, f->kernel, work);
        } else {
            set->assign.op = ASSIGN_SET;
            set->assign.place = place_element(element);
            set->assign.value = of->entry;
        }
        if (of->n > 1 && !of->routine) {
            Node *nest = *last = node_new(t->p->g->arena, NODE_NEST);
            for (int i = 1; i < of->n; i++) nest->nest.loops.index[nest->nest.loops.n++] = of->index[i];
            nest->nest.op = ASSIGN_SET;
            nest->body = set;
        } else *last = set;
        last = &(*last)->next;
    }
    each->loop.how = f->matrices ? SHARE_MATRICES : SHARE_EACH;
    each->loop.n = 1;
    each->loop.index[0] = f->index;
    each->loop.keeps = true;
    f->kernel->comment = words(t->p,
                               f->matrices ? "// What is made of matrices, for all that read it: once for each\n%s"
                                           : "// What rows need of a value that they have: once for each value\n%s",
                               what);
}

// ---- matrices that are left ----

static bool own_arrays(const Node *list)
{
    for (const Node *n = list; n; n = n->next) {
        const bool sum = n->kind == NODE_REDUCE || n->kind == NODE_NEST;
        for (const Node *u = sum ? n->body : NULL; u; u = u->next)
            if ((u->kind == NODE_ASSIGN && needs_own_array(u->assign.value, &n->nest.loops)) ||
                (u->kind == NODE_LET && needs_own_array(u->let.value, &n->nest.loops)))
                return true;
        if (own_arrays(n->body) || own_arrays(n->otherwise)) return true;
    }
    return false;
}

static void by_one_lane(Kernel *k)
{
    k->kind = KERNEL_ONCE;
    for (Node **n = &k->body; *n;) {
        if ((*n)->kind == NODE_ASSIGN) (*n)->assign.how = STORE_PLAIN;
        if ((*n)->kind == NODE_BARRIER) *n = (*n)->next;
        else n = &(*n)->next;
    }
}

// ---- launches ----

typedef struct Filled {
    const Tables *t;
    const Fill *fill;
} Filled;

static bool is_of(const Var *v, void *with)
{
    const Filled *f = with;
    for (int i = 0; i < f->fill->n; i++)
        if (v == f->fill->of[i] || v->part_of == f->fill->of[i] || f->fill->of[i]->part_of == v) return true;
    return false;
}

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

static void launch_fill(Tables *t, const Fill *f)
{
    if (f->matrices || !f->index) launch_team(t->p, f->kernel);
    else with_extent(launch(t->p, LAUNCH_EACH, f->kernel), f->index->hi);
}

// Before a launch that reads tables, unless they are filled. What an update reads before anything in it may have changed that is filled by
// the sweep, where there is need (`kept`): that of update `code`, or NULL.
static void launch_fills(Tables *t, Launches *list, UpdateCode *code)
{
    Lower *p = t->p;
    Launches all = {0}, *keep = p->launches;
    Filled *filled = NEW_N(p->g->arena, Filled, t->nreads + 1), *written = NEW_N(p->g->arena, Filled, t->nreads + 1);
    int n = 0, nwritten = 0;
    bool library = false;
    p->launches = &all;
    Launch *next;
    for (Launch *l = list->first; l; l = next) {
        next = l->next;
        if (l->kernel && l->kernel->kind == KERNEL_ONCE && l->kind == LAUNCH_TEAM) {
            l->kind = LAUNCH_ONCE;
            l->nargs = 0;
        }
        for (int matrices = 1; matrices >= 0; matrices--)  // other tables may be made of theirs
            for (const TableReads *r = t->reads; r && l->kernel; r = r->next) {
                bool there = r->kernel != l->kernel || r->fill->matrices != matrices, changed = library;
                for (int i = 0; i < n; i++) there |= filled[i].fill == r->fill;
                if (there) continue;
                for (int i = 0; i < nwritten; i++) changed |= written[i].fill == r->fill;
                p->when = l->when;
                p->when_rows = l->rows;
                Launches one = {0};
                p->launches = &one;
                launch_fill(t, r->fill);
                p->launches = &all;
                one.first->unless_kept = code && !changed && l->when == ALWAYS && r->fill->of_unknowns && r->fill->n;
                if (!all.first) all.last = &all.first;
                *all.last = one.first;
                all.last = &one.first->next;
                if (l->when == ALWAYS) filled[n++] = (Filled){t, r->fill};
            }
        p->when = ALWAYS;
        p->when_rows = NULL;
        library |= !l->kernel;
        for (const Fill *f = t->fills; f && l->kernel; f = f->next) {
            Filled of = {t, f};
            if (writes(l->kernel->body, made_of, &of) && nwritten < t->nreads) written[nwritten++] = of;
        }
        for (int i = 0; i < n;) {
            if (l->kernel && !writes(l->kernel->body, made_of, &filled[i])) i++;
            else filled[i] = filled[--n];  // a library call may write anything
        }
        l->next = NULL;
        if (!all.first) all.last = &all.first;
        *all.last = l;
        all.last = &l->next;
    }
    p->launches = keep;
    *list = all;
}

static bool changes(const UpdateCode *code, const Fill *f)
{
    for (int b = 0; b < code->update->nblock; b++)
        for (int i = 0; i < f->n; i++)
            if (code->update->block[b] == f->of[i] || code->update->block[b]->part_of == f->of[i] ||
                f->of[i]->part_of == code->update->block[b])
                return true;
    const Scales *scales = code->update->kind == UPDATE_GAUSSIAN ? code->update->gaussian.scales : NULL;
    for (int b = 0; scales && b < scales->n; b++)
        for (int i = 0; i < f->n; i++)
            if (scales->var[b] == f->of[i]) return true;
    const Launches *const lists[] = {&code->launches, &code->density, &code->jacobian};
    Filled of = {.fill = f};
    for (size_t k = 0; k < sizeof lists / sizeof *lists; k++)
        for (const Launch *l = lists[k]->first; l; l = l->next)
            if (l->kernel && writes(l->kernel->body, is_of, &of)) return true;
    return false;
}

// In a sweep tables are filled before the first update that reads them, and again where an unknown that they are made of was drawn since.
static void fill_in_sweep(Tables *t, const Fill *f)
{
    bool fresh = false;
    for (int i = 0; i < t->p->out->nupdates; i++) {
        UpdateCode *code = &t->p->out->updates[i];
        bool reads = false;
        for (const Launch *l = code->launches.first; l; l = l->next) reads |= l->kernel == f->kernel && l->unless_kept;
        if (reads && !fresh) {
            Launches list = {0}, *keep = t->p->launches;
            t->p->launches = &list;
            launch_fill(t, f);
            t->p->launches = keep;
            list.first->next = code->made.first;
            code->made.first = list.first;
            if (!list.first->next) code->made.last = &list.first->next;
        }
        fresh = (fresh || reads) && !changes(code, f);
    }
}

// Kernels of HMC updates come together.
static bool is_hmc(const Kernel *k) { return k->update && k->update->when == WITH_GRADIENTS; }

void tables(Lower *p)
{
    Tables t = {.p = p};
    Program *out = p->out;
    Kernel **begin = NULL;  // of such kernels
    for (Kernel **at = &out->sweep.first; *at; at = &(*at)->next) {
        Kernel *k = t.kernel = *at;
        if (!is_hmc(k)) begin = NULL;
        else if (!begin) begin = at;
        if (k->kind != KERNEL_FUNCTION && k->kind != KERNEL_PART) take_list(&t, k->body);
        if (k->by_one && own_arrays(k->body)) by_one_lane(k);
        for (Fill *f = t.fills; f; f = f->next) {
            if (f->placed) continue;
            Kernel **here = begin ? begin : at;
            f->placed = true;
            f->kernel->next = *here;
            *here = f->kernel;
            if (begin) begin = &f->kernel->next;
            if (here == at) at = &f->kernel->next;
        }
    }
    for (Fill *f = t.fills; f; f = f->next)
        if (f->index) complete(&t, f);
    for (Kernel *k = out->setup.first; k; k = k->next)
        if (k->by_one && own_arrays(k->body)) by_one_lane(k);
    for (int i = 0; i < out->nupdates; i++) {
        launch_fills(&t, &out->updates[i].launches, &out->updates[i]);
        launch_fills(&t, &out->updates[i].density, NULL);
        launch_fills(&t, &out->updates[i].jacobian, NULL);
    }
    for (int matrices = 0; matrices < 2; matrices++)
        for (const Fill *f = t.fills; f; f = f->next)
            if (f->matrices == matrices) fill_in_sweep(&t, f);
    Launches *const lists[] = {&out->before, &out->log_prior, &out->log_lik, &out->replicates,
                               &out->derive, &out->restore,   &out->joint,   &out->forward};
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) launch_fills(&t, lists[i], NULL);
}
