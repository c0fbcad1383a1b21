// joint.c -- steps that draw many elements at once: arrays with a family of their own, and Gaussian blocks.
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "lower.h"

// ---- arrays drawn whole ----

// Zeros in a work array of so many elements; after the last of them, zeros_done.
static void put_zeros(Program *p, const char *count, const Var *v)
{
    put(&p->w, p->w.team ? "LANES (e, %s) s.%s[e] = 0;" : "for (long e = 0; e < %s; e++) s.%s[e] = 0;", count, v->name);
}

static void zeros_done(Program *p)
{
    if (p->w.team) put(&p->w, "TEAM_BARRIER();");
}

typedef struct ArrayPlace { const Var *array; Expr *const *target; } ArrayPlace;

static void add_array(Program *p, Expr *value, void *with)
{
    const ArrayPlace *a = with;
    add_at(p, a->array->name, a->array->rank ? write_position(&p->w, a->array, a->target) : NULL, write_expr(&p->w, value));
}

void step_array(Program *p, const Step *s, int step)
{
    Writer *w = &p->w;
    Conditional *c = s->conditional;
    Var *v = c->var;
    bool simplex = v->constraint == CONSTRAINT_SIMPLEX;
    const char *sums = text(w, "sums_%s", v->name), *name = text(w, "draw_%s", v->name);
    Var *array = work_array(p, text(w, "%s_natural", v->name), v->rank, v->dim), *scalar = NULL;
    if (!simplex) scalar = work_array(p, text(w, "%s_degrees", v->name), c->nbatch, v->dim);
    const char *batch = v->name;
    for (int k = 0; k < c->nbatch; k++) batch = text(w, "%s%s%s", batch, k ? ", " : "[", c->element[k]->name);
    put(w, "// %s%s | the rest  ~  %s", batch, c->nbatch ? "]" : "", c->family->name);
    put(w, "//   %s", line_of(p, v->span));
    bool whole = false;
    for (const Part *q = c->natural; q; q = q->next) {
        whole |= needs_own_array(q->value, &q->loops);
        const char *over = "", *target = "";
        for (int i = 0; i < q->loops.n; i++) over = text(w, "%s%s%s", over, i ? ", " : "  over ", q->loops.index[i]->name);
        for (int k = 0; k < MAX_RANK && q->target[k]; k++) target = text(w, "%s%s%s", target, k ? ", " : "[", math(p, q->target[k]));
        put(w, "//   %s%s%s += %s%s", simplex ? "a" : q->which ? "B" : "d", target, q->target[0] ? "]" : "", math(p, q->value), over);
    }
    begin_kernel(p, whole ? "KERNEL_ONCE" : "KERNEL_TEAM", sums, "wide");
    put_zeros(p, count_of(p, array, v->rank), array);
    if (scalar) put_zeros(p, count_of(p, scalar, c->nbatch), scalar);
    zeros_done(p);
    for (const Part *q = c->natural; q; q = q->next) {
        ArrayPlace place = {q->which == 0 && scalar ? scalar : array, q->target};
        scatter(p, &q->loops, place.array->rank, q->target, place.array->dim, q->value, add_array, &place);
    }
    end_kernel(p);
    if (whole) launch_kernel(p, step, "LAUNCH_ONCE", sums, "%s", "");
    else launch_team(p, step, sums);
    begin_kernel(p, c->nbatch ? "KERNEL" : "KERNEL_ONCE", name, "wide");
    int opened = 0;
    if (c->nbatch) { open_brace(w, "EACH (e, %s)", count_of(p, v, c->nbatch)); opened = 1; }
    const char *e = c->nbatch ? "e" : "0";
    put(w, "%s", stream_text(p, v, e));
    const char *size = write_extent(w, v->dim[v->rank - 1]);
    put(w, "const long n = %s;", size);
    const char *elements = simplex ? "n" : "n * n";
    const char *at = c->nbatch ? text(w, "e * %s", simplex ? "n" : "n * n") : "0";
    put(w, "wide *x = &s.%s[%s];", c_name(w, v->name), at);
    put(w, "SAVE_OLD(x, %s);", elements);
    if (simplex) put(w, "%s(&g, &s.%s[%s], n, x);", c->family->draw->name, array->name, at);
    else {
        put(w, "wide *work = SCRATCH(3 * n * n);");
        put(w, "%s(&g, s.%s[%s], &s.%s[%s], n, x, work);", c->family->draw->name, scalar->name, e, array->name, at);
        put(w, "RELEASE(work);");
    }
    put(w, "VERIFY(x[0], \"%s\", %s);", v->name, e);
    if (simplex) put(w, "if (CHECKING) CLAIM(dirichlet_claim(&s.%s[%s], n, x, OLD));", array->name, at);
    else put(w, "if (CHECKING) CLAIM(%s_claim(s.%s[%s], &s.%s[%s], n, x, OLD));", c->family->name, scalar->name, e, array->name, at);
    if (opened) close_brace(w);
    end_kernel(p);
    if (c->nbatch) launch_kernel(p, step, "LAUNCH", name, "%s", count_of(p, v, c->nbatch));
    else launch_kernel(p, step, "LAUNCH_ONCE", name, "%s", "");
}

// ---- Gaussian blocks ----

typedef struct BlockPlace {
    const Step *step;
    Var *J, *h, *E, *D, *k;      // precision and shift of the dense part; coupling, diagonal precision and shift of the arrow's
    Var *diagonal, *rows, *y;    // with few rows: precision apart from them, rows and targets
    bool few;                    // this route is being written
    const char **offset;
    const Var **var;
    int n;
} BlockPlace;

static int block_position(const BlockPlace *b, const Var *v)
{
    for (int i = 0; i < b->n; i++)
        if (b->var[i] == v) return i;
    return -1;
}

static bool is_arrow(const BlockPlace *b, const Var *v) { return b->step->arrow && b->var[b->n - 1] == v; }

// Position of an element inside its block, and inside its batch for batched blocks.
static const char *inner_position(Program *p, const BlockPlace *b, Expr *ref)
{
    Writer *w = &p->w;
    const Var *v = ref->var;
    int nb = b->step->nbatch;
    const char *pos = NULL;
    for (int k = nb; k < v->rank; k++) {
        const char *i = write_subscript(w, ref->args[k]);
        pos = pos ? text(w, "(%s) * (%s) + %s", pos, write_extent(w, v->dim[k]), i) : i;
    }
    if (!pos) pos = "0";
    const char *off = is_arrow(b, v) ? "" : b->offset[block_position(b, v)];
    if (off[0] == 0 || strcmp(off, "0") == 0) return pos;
    return strcmp(pos, "0") == 0 ? off : text(w, "%s + %s", off, pos);
}

static const char *batch_position(Program *p, const BlockPlace *b, Expr *ref)
{
    const Var *v = ref->var;
    const char *pos = NULL;
    for (int k = 0; k < b->step->nbatch; k++) {
        const char *i = write_subscript(&p->w, ref->args[k]);
        pos = pos ? text(&p->w, "(%s) * (%s) + %s", pos, write_extent(&p->w, v->dim[k]), i) : i;
    }
    return pos ? pos : "0";
}

// One entry of the precision or the shift; in a pair of places off the diagonal if `mirrored`.
typedef struct Entry {
    const BlockPlace *block;
    const BlockTerm *term;
    bool mirrored;
    int  side;                   // 1 and 2: the place and its mirror image only; 0: both
} Entry;

static void add_entry(Program *p, Expr *value, void *with)
{
    const Entry *e = with;
    const BlockPlace *b = e->block;
    const BlockTerm *t = e->term;
    Writer *w = &p->w;
    const char *c = write_expr(w, value);
    if (b->few) {
        add_at(p, t->degree == 1 ? b->h->name : b->diagonal->name, inner_position(p, b, t->ref[0]), c);
        return;
    }
    const bool batched = b->step->nbatch > 0;
    const char *bp = batched ? wrap(p, batch_position(p, b, t->ref[0])) : NULL;
    const char *i = inner_position(p, b, t->ref[0]);
    if (t->degree == 1) {
        const bool arrow = is_arrow(b, t->ref[0]->var);
        add_at(p, arrow ? b->k->name : b->h->name, batched ? text(w, "%s * n + %s", bp, i) : i, c);
        return;
    }
    const bool a0 = is_arrow(b, t->ref[0]->var), a1 = is_arrow(b, t->ref[1]->var);
    const char *j = inner_position(p, b, t->ref[1]);
    if (a0 && a1) { add_at(p, b->D->name, i, c); return; }
    if (a0 || a1) { add_at(p, b->E->name, strcmp(a0 ? j : i, "0") == 0 ? text(w, "%s * n", wrap(p, a0 ? i : j)) : text(w, "%s * n + %s", wrap(p, a0 ? i : j), a0 ? j : i), c); return; }
    if (e->mirrored && !e->side && strpbrk(c, " (")) {
        const char *name = text(w, "t%d", ++w->temporaries);
        put(w, "const wide %s = %s;", name, c);
        c = name;
    }
    for (int side = 0; side <= e->mirrored; side++) {
        if (e->side && e->side != side + 1) continue;
        const char *row = side ? j : i, *column = side ? i : j;
        if (batched) row = text(w, "(%s * n + %s) * n", bp, row);
        else row = strcmp(row, "0") == 0 ? NULL : text(w, "%s * n", wrap(p, row));
        add_at(p, b->J->name, !row ? column : strcmp(column, "0") == 0 ? row : text(w, "%s + %s", row, column), c);
    }
}

// Keys of a term: the different subscripts that vary with its loops.
static bool term_keys(const BlockTerm *t, Keys *keys, Index **fresh)
{
    *keys = (Keys){0};
    for (int r = 0; r < t->degree; r++)
        for (int k = 0; k < t->ref[r]->nargs; k++) {
            Expr *s = t->ref[r]->args[k];
            bool varies = false, seen = false;
            for (int i = 0; i < t->loops.n; i++) varies |= ex_mentions_index(s, t->loops.index[i]);
            for (int i = 0; i < keys->n; i++) seen |= keys->key[i] == s;
            if (!varies || seen) continue;
            if (keys->n == 4) return false;
            static const char *const names[] = {"a", "b", "c", "e"};
            keys->key[keys->n] = s;
            keys->extent[keys->n] = t->ref[r]->var->dim[k];
            fresh[keys->n] = index_new(intern(names[keys->n]), ex_num(1), keys->extent[keys->n]);
            keys->at[keys->n] = ex_index(fresh[keys->n]);
            keys->n++;
        }
    return true;
}

// Whether a statistic of data is the same with its two subscripts exchanged, as X'X is.
static bool symmetric(const Var *v)
{
    const Sum *s = v->kind == VAR_SUM ? v->sum : NULL;
    if (!s || s->n != 2 || s->target[0]->kind != EX_INDEX || s->target[1]->kind != EX_INDEX) return false;
    Index *j = s->target[0]->index, *k = s->target[1]->index;
    if (j->lo != k->lo || j->hi != k->hi || s->loops.guard) return false;
    Index *t = index_new(intern("t"), j->lo, j->hi);
    Expr *e = ex_replace_index(s->value, j, ex_index(t));
    e = ex_replace_index(e, k, ex_index(j));
    return ex_replace_index(e, t, ex_index(k)) == s->value;
}

static Expr *in_order(Expr *e, void *with)
{
    (void)with;
    if (e->kind != EX_REF || e->nargs != 2 || !symmetric(e->var) || e->args[0]->id <= e->args[1]->id) return NULL;
    return ex_ref(e->var, 2, (Expr *[]){e->args[1], e->args[0]});
}

// Two elements of one array, each over all of it: every place of the precision is met once, so entry and mirror image are added there.
static bool both_whole(const BlockTerm *t)
{
    const Expr *a = t->ref[0], *b = t->ref[1];
    if (t->degree != 2 || a == b || a->var != b->var || a->nargs != 1 || t->loops.n != 2 || t->loops.guard) return false;
    if (a->args[0]->kind != EX_INDEX || b->args[0]->kind != EX_INDEX || a->args[0] == b->args[0]) return false;
    for (int i = 0; i < 2; i++)
        if (!ex_is_num(t->loops.index[i]->lo, 1) || t->loops.index[i]->hi != a->var->dim[0]) return false;
    return true;
}

static void accumulate(Program *p, const BlockPlace *b, const BlockTerm *t)
{
    if (!b->few && in_row_pass(p, b->step, t)) return;
    Keys keys;
    Index *fresh[4];
    BlockTerm u = *t;
    bool sums = term_keys(t, &keys, fresh);
    int plain = 0;
    for (int i = 0; i < keys.n; i++) plain += keys.key[i]->kind == EX_INDEX;
    if (sums && !(plain == keys.n && keys.n == t->loops.n)) {            // there is something to sum
        p->g->hoisting_for = b->step->rows && b->step->rows->factor == t->factor ? b->step->rows : NULL;
        Expr *h = hoist_sum(p->g, &keys, &t->loops, t->coefficient);
        p->g->hoisting_for = NULL;
        if (h) {
            for (int r = 0; r < u.degree; r++)
                for (int k = 0; k < keys.n; k++) u.ref[r] = ex_replace(u.ref[r], keys.key[k], keys.at[k]);
            u.coefficient = h;
            u.loops = (Loops){.n = keys.n};
            for (int k = 0; k < keys.n; k++) u.loops.index[k] = fresh[k];
        }
    }
    Expr *value = u.coefficient;
    bool mirrored = u.degree == 2 && u.ref[0] != u.ref[1] && !is_arrow(b, u.ref[0]->var) && !is_arrow(b, u.ref[1]->var);
    if (mirrored && both_whole(&u)) {
        Index *j = u.ref[0]->args[0]->index, *k = u.ref[1]->args[0]->index, *t1 = index_new(intern("t"), j->lo, j->hi);
        Expr *other = ex_replace_index(ex_replace_index(ex_replace_index(value, j, ex_index(t1)), k, ex_index(j)), t1, ex_index(k));
        value = ex_add2(ex_map(value, in_order, NULL), ex_map(other, in_order, NULL));
        mirrored = false;
    }
    if (u.degree == 2) value = ex_mul2(ex_num(u.ref[0] == u.ref[1] || (is_arrow(b, u.ref[0]->var) && is_arrow(b, u.ref[1]->var)) ? -2 : -1), value);
    Expr *target[2 * MAX_RANK], *extent[2 * MAX_RANK];
    int n = 0;
    for (int r = 0; r < u.degree; r++)
        for (int k = 0; k < u.ref[r]->nargs; k++) {
            target[n] = u.ref[r]->args[k];
            extent[n++] = u.ref[r]->var->dim[k];
        }
    // Two elements of one array that both vary, without a gather: one lane's mirror image may be another's place, so all places come first,
    // then all images. With a gather, lanes ask which places are their own.
    bool both = mirrored && u.ref[0]->var == u.ref[1]->var;
    for (int r = 0; r < 2 && both; r++) {
        bool varies = false;
        for (int k = 0; k < u.ref[r]->nargs; k++)
            for (int i = 0; i < u.loops.n; i++)
                if (ex_mentions_index(u.ref[r]->args[k], u.loops.index[i])) {
                    varies = true;
                    both &= u.ref[r]->args[k]->kind == EX_INDEX;
                }
        both &= varies;
    }
    for (int side = both && p->w.team; side <= (both && p->w.team ? 2 : 0); side++) {
        Entry entry = {b, &u, mirrored, side};
        scatter(p, &u.loops, n, target, extent, value, add_entry, &entry);
    }
}

static Expr *size_of(const Var *v, int from)
{
    Expr *n = ex_num(1);
    for (int k = from; k < v->rank; k++) n = ex_mul2(n, v->dim[k]);
    return n;
}

// Where each variable of the dense part begins. Gives the size of all.
static const char *put_offsets(Program *p, BlockPlace *b, int ndense)
{
    Writer *w = &p->w;
    const Step *s = b->step;
    Expr *size = ex_num(0);
    for (int i = 0; i < ndense; i++) size = ex_add2(size, size_of(s->block[i], s->nbatch));
    const char *n = write_extent(w, size), *off = "0";
    put(w, "const long n = %s;", n);
    for (int i = 0; i < ndense; i++) {
        if (i == 0) b->offset[0] = "0";
        else {
            b->offset[i] = text(w, "at_%s", s->block[i]->name);
            put(w, "const long %s = %s;", b->offset[i], off);
        }
        const char *len = write_extent(w, size_of(s->block[i], s->nbatch));
        off = strcmp(off, "0") == 0 ? len : text(w, "%s + %s", off, wrap(p, len));
    }
    return n;
}

// The block's variables into x, end to end, or back.
static void copy_block(Program *p, const BlockPlace *b, const Var *x, int ndense, bool gather)
{
    Writer *w = &p->w;
    const char *off = NULL;
    for (int i = 0; i < ndense; i++) {
        const Var *v = b->var[i];
        const char *len = write_extent(w, size_of(v, 0)), *name = c_name(w, v->name);
        if (v->rank == 0) {
            const char *place = text(w, "s.%s[%s]", x->name, off ? off : "0"), *value = text(w, "*s.%s", name);
            put(w, w->team ? "ONE_LANE %s = %s;" : "%s = %s;", gather ? place : value, gather ? value : place);
        } else {
            const char *place = text(w, "s.%s[%s%se]", x->name, off ? off : "", off ? " + " : ""), *value = text(w, "s.%s[e]", name);
            put(w, w->team ? "ALONG (e, %s) %s = %s;" : "for (long e = 0; e < %s; e++) %s = %s;", len, gather ? place : value, gather ? value : place);
        }
        off = off ? text(w, "%s + %s", off, wrap(p, len)) : len;
    }
}

static void scale_latent(Program *p, Expr *latent, void *with)
{
    put(&p->w, "%s *= s.%s[2];", write_expr(&p->w, latent), ((const Var *)with)->name);
}

// What the row passes added up, into its places.
static void add_row_sums(Program *p, const BlockPlace *b)
{
    for (int i = 0; i < p->nrow_sums; i++) {
        const RowSum *r = &p->row_sum[i];
        if (r->step != b->step) continue;
        Index *j = index_new(intern("j"), ex_num(1), r->vector->dim[0]);
        BlockTerm t = {.degree = r->other ? 2 : 1, .loops = {.n = 1, .index = {j}}};
        t.ref[0] = ex_ref(r->vector, 1, (Expr *[]){ex_index(j)});
        t.ref[1] = r->other;
        Expr *value = ex_ref(r->out, 1, (Expr *[]){ex_index(j)});
        Entry entry = {b, &t, r->other != NULL, 0};
        scatter(p, &t.loops, 1, (Expr *[]){ex_index(j)}, NULL, value, add_entry, &entry);
    }
    for (int i = 0; i < p->nrow_grams; i++) {
        const RowGram *r = &p->row_gram[i];
        if (r->step != b->step) continue;
        Index *j = index_new(intern("j"), ex_num(1), r->vector->dim[0]), *k = index_new(intern("k"), ex_num(1), r->vector->dim[0]);
        BlockTerm t = {.degree = 2, .loops = {.n = 2, .index = {j, k}}};
        t.ref[0] = ex_ref(r->vector, 1, (Expr *[]){ex_index(j)});
        t.ref[1] = ex_ref(r->vector, 1, (Expr *[]){ex_index(k)});
        Expr *value = ex_ref(r->out, 2, (Expr *[]){ex_index(j), ex_index(k)});
        Entry entry = {b, &t, false, 0};
        scatter(p, &t.loops, 2, (Expr *[]){ex_index(j), ex_index(k)}, NULL, value, add_entry, &entry);
    }
}

// What a scale move starts from: the sum of squares of its latents, unless a row pass has made it, and how many they are.
static void put_squares(Program *p, const Step *s, const Var *scale)
{
    Writer *w = &p->w;
    Expr *square = ex_mul2(s->scaled_weight, ex_pow(s->scaled_latent, 2)), *count = ex_num(1);
    Loops l = {0};
    for (int i = 0; i < s->scaled->plates.n; i++) {
        Index *k = s->scaled->plates.index[i];
        l.index[l.n++] = k;
        count = ex_mul2(count, ex_add(3, (Expr *[]){k->hi, ex_neg(k->lo), ex_num(1)}));
    }
    const bool team = w->team, made = fused_squares(p, s) != NULL;
    if (!made) {
        put(w, "wide squares = 0;");
        int m = mark(w);
        open_sum(p, &l, "&squares", 1, &square);
        add_to(p, "squares", square);
        close_loops(p, &l);
        w->team = team;
        forget(w, m);
    }
    open_brace(w, team ? "ONE_LANE" : "%s", "");
    if (!made) put(w, "s.%s[0] = squares;", scale->name);
    put(w, "s.%s[1] = %s;", scale->name, write_expr(w, count));
    close_brace(w);
}

static Expr *row_position(const Factor *f, Expr *const **subscripts)
{
    static Expr *at[MAX_PLATES];
    Expr *count = ex_num(1);
    for (int i = 0; i < f->plates.n; i++) {
        at[i] = ex_index(f->plates.index[i]);
        count = ex_mul2(count, f->plates.index[i]->hi);
    }
    *subscripts = at;
    return count;
}

// Row r of the few: its number, row-major over the plates.
static const char *row_number(Program *p, const Factor *f)
{
    Writer *w = &p->w;
    const char *r = NULL;
    for (int i = 0; i < f->plates.n; i++) {
        const char *k = write_subscript(w, ex_index(f->plates.index[i]));
        r = r ? text(w, "(%s) * %s + %s", r, wrap(p, write_extent(w, f->plates.index[i]->hi)), k) : k;
    }
    return r ? r : "0";
}

typedef struct RowEntry { const BlockPlace *block; const BlockTerm *term; } RowEntry;

static void add_row_entry(Program *p, Expr *value, void *with)
{
    const RowEntry *e = with;
    Writer *w = &p->w;
    const char *r = row_number(p, e->block->step->rows->factor), *i = inner_position(p, e->block, e->term->ref[0]);
    add_at(p, e->block->rows->name, text(w, "%s * n + %s", wrap(p, r), i), write_expr(w, value));
}

static void add_row_target(Program *p, Expr *value, void *with)
{
    const BlockPlace *b = with;
    Writer *w = &p->w;
    const Rows *rows = b->step->rows;
    Expr *root = ex_pow(rows->weight, 0.5);
    if (ex_is_num(root, 1)) {
        put(w, "s.%s[%s] = %s;", b->y->name, row_number(p, rows->factor), write_expr(w, value));
        return;
    }
    put(w, "const wide root = %s;", write_expr(w, root));
    put(w, "s.%s[%s] = root > 0 ? %s / root : 0;", b->y->name, row_number(p, rows->factor), write_factor(w, value));
}

// With fewer rows than coefficients: the diagonal and the shift of everything but the rows, and each row and its target over the square
// root of its variance.
static void collect_rows(Program *p, BlockPlace *b, const char *kernel, const Var *x, int ndense)
{
    Writer *w = &p->w;
    const Step *s = b->step;
    const Factor *f = s->rows->factor;
    put(w, "// The same with fewer rows than coefficients: precision D + R'R, R[i] and y[i] a row and its target over the standard deviation");
    begin_kernel(p, "KERNEL_TEAM", kernel, "wide");
    put_offsets(p, b, ndense);
    b->few = true;
    put_zeros(p, "n", b->diagonal);
    put_zeros(p, "n", b->h);
    put_zeros(p, text(w, "%s * n", wrap(p, write_extent(w, s->rows->count))), b->rows);
    put_zeros(p, write_extent(w, s->rows->count), b->y);
    zeros_done(p);
    for (const BlockTerm *t = s->terms; t; t = t->next)
        if (t->factor != f) accumulate(p, b, t);
    Loops plates = {.guard = f->plates.guard};
    for (int i = 0; i < f->plates.n; i++) plates.index[plates.n++] = f->plates.index[i];
    Expr *const *row;
    row_position(f, &row);
    scatter(p, &plates, f->plates.n, row, NULL, s->rows->shift, add_row_target, b);
    for (const BlockTerm *t = s->rows->phi; t; t = t->next) {
        Loops l = plates;
        Expr *target[MAX_PLATES + MAX_RANK];
        int n = 0;
        for (int i = 0; i < f->plates.n; i++) target[n++] = row[i];
        for (int i = 0; i < t->loops.n; i++) l.index[l.n++] = t->loops.index[i];
        if (t->loops.guard) l.guard = l.guard ? ex_call2("&&", l.guard, t->loops.guard) : t->loops.guard;
        for (int k = 0; k < t->ref[0]->nargs; k++) target[n++] = t->ref[0]->args[k];
        RowEntry entry = {b, t};
        scatter(p, &l, n, target, NULL, ex_mul2(ex_pow(s->rows->weight, 0.5), t->coefficient), add_row_entry, &entry);
    }
    if (ndense > 1) copy_block(p, b, x, ndense, true);
    b->few = false;
}

void step_gaussian(Program *p, const Step *s, int step)
{
    Writer *w = &p->w;
    BlockPlace b = {.step = s, .offset = NEW_N(p->g->arena, const char *, s->nblock), .var = NEW_N(p->g->arena, const Var *, s->nblock)};
    const char *stem = s->block[0]->name, *title = "";
    int ndense = s->nblock - s->arrow;
    Expr *size = ex_num(0);
    for (int i = 0; i < s->nblock; i++) {
        b.var[b.n++] = s->block[i];
        title = text(w, "%s%s%s", title, i ? ", " : "", s->block[i]->name);
        if (i < ndense) size = ex_add2(size, size_of(s->block[i], s->nbatch));
    }
    Var *system = NULL;          // with few rows: the matrix that is factored
    Var *first = s->block[0], *effects = s->arrow ? s->block[s->nblock - 1] : NULL;
    Expr *batch = ex_num(1);
    for (int k = 0; k < s->nbatch; k++) batch = ex_mul2(batch, first->dim[k]);
    b.J = work_array(p, text(w, "precision_%s", stem), 3, (Expr *[]){batch, size, size});
    b.h = work_array(p, text(w, "shift_%s", stem), 2, (Expr *[]){batch, size});
    if (effects) {
        Expr *n = size_of(effects, 0);
        b.E = work_array(p, text(w, "coupling_%s", effects->name), 2, (Expr *[]){n, size});
        b.D = work_array(p, text(w, "precision_%s", effects->name), 1, &n);
        b.k = work_array(p, text(w, "shift_%s", effects->name), 1, &n);
    }
    put(w, "// (%s) | the rest  ~  normal with precision J and shift h, mean J^-1 h     %s", title, s->reason);
    put(w, "//   %s%s", line_of(p, first->span), effects ? text(w, "; the elements of %s are independent given the others: an arrow", effects->name) : "");
    if (s->scaled) put(w, "//   %s is scaled together with it: s^2 ~ gamma(count/2, (sum of squares - h'J^-1 h)/2)  (Liu and Wu 1999)", s->scaled_latent->var->name);
    for (const BlockTerm *t = s->terms; t; t = t->next) {
        const char *over = "";
        for (int i = 0; i < t->loops.n; i++) over = text(w, "%s%s%s", over, i ? ", " : "  over ", t->loops.index[i]->name);
        if (t->degree == 2) put(w, "//   J[%s, %s] += %s%s", math(p, t->ref[0]), math(p, t->ref[1]), math(p, ex_mul2(ex_num(t->ref[0] == t->ref[1] ? -2 : -1), t->coefficient)), over);
        else put(w, "//   h[%s] += %s%s", math(p, t->ref[0]), math(p, t->coefficient), over);
    }
    const char *collect = text(w, "collect_%s", stem), *draw = text(w, "draw_%s", stem);
    const bool direct = ndense == 1;
    Var *x = direct || s->nbatch ? first : work_array(p, text(w, "joint_%s", stem), 1, &size);
    const RowSum *squares = fused_squares(p, s);
    Var *scale = squares ? squares->scale : s->scaled ? work_array(p, text(w, "scale_%s", stem), 1, (Expr *[]){ex_num(3)}) : NULL;
    if (!s->nbatch) b.J->solver = b.h->solver = true;
    bool whole = false;
    for (const BlockTerm *t = s->terms; t; t = t->next) whole |= needs_own_array(t->coefficient, &t->loops);
    if (s->rows) {
        b.rows = work_array(p, text(w, "rows_of_%s", stem), 2, (Expr *[]){s->rows->count, size});
        b.y = work_array(p, text(w, "target_%s", stem), 1, (Expr *[]){s->rows->count});
        b.diagonal = work_array(p, text(w, "diagonal_%s", stem), 1, &size);
        system = work_array(p, text(w, "system_%s", stem), 2, (Expr *[]){s->rows->count, s->rows->count});
        Var *few[] = {b.rows, b.y, b.diagonal, system};
        for (int i = 0; i < 4; i++) { few[i]->rows = s->rows; few[i]->few = true; few[i]->solver = i == 0 || i == 3; }
        b.J->rows = s->rows;
        const char *collect_few = text(w, "collect_rows_%s", stem);
        collect_rows(p, &b, collect_few, x, ndense);
        if (scale) put_squares(p, s, scale);
        end_kernel(p);
        launch(p, step, "if (few_%s(run)) {", stem);
        launch_team(p, step, collect_few);
        launch(p, step, "NORMAL_ROWS%s(run, VAR_%s, \"%s\", %s, %s, %s, %s, %s, %s, %s, %s%s)", scale ? "_SCALED" : "", first->name, stem,
               write_extent(w, s->rows->count), write_extent(w, size), b.diagonal->name, b.h->name, b.rows->name, b.y->name, system->name,
               c_name(w, x->name), scale ? text(w, ", %s", scale->name) : "");
        launch(p, step, "} else {");
    }
    step_row_sums(p, s, step);
    begin_kernel(p, whole ? "KERNEL_ONCE" : "KERNEL_TEAM", collect, "wide");
    const char *n = put_offsets(p, &b, ndense), *nb = write_extent(w, batch);
    const char *times = strcmp(nb, "1") == 0 ? "" : text(w, "%s * ", wrap(p, nb));
    put_zeros(p, text(w, "%sn * n", times), b.J);
    put_zeros(p, text(w, "%sn", times), b.h);
    ROOM(w->arena, p->turns, p->nturns, p->turns_size);
    p->turns[p->nturns++] = text(w, "%s%s * %s", strcmp(nb, "1") == 0 ? "(long)" : text(w, "(long)%s * ", wrap(p, nb)), wrap(p, n), wrap(p, n));
    if (effects) {
        const char *ne = wrap(p, write_extent(w, size_of(effects, 0)));
        put_zeros(p, ne, b.D);
        put_zeros(p, ne, b.k);
        put_zeros(p, text(w, "%s * n", ne), b.E);
        ROOM(w->arena, p->turns, p->nturns, p->turns_size);
        p->turns[p->nturns++] = text(w, "(long)%s * %s", ne, wrap(p, n));
    }
    zeros_done(p);
    for (const BlockTerm *t = s->terms; t; t = t->next) accumulate(p, &b, t);
    add_row_sums(p, &b);
    if (!direct && !s->nbatch) copy_block(p, &b, x, ndense, true);
    if (scale) put_squares(p, s, scale);
    end_kernel(p);
    if (whole) launch_kernel(p, step, "LAUNCH_ONCE", collect, "%s", "");
    else launch_team(p, step, collect);
    if (s->nbatch) {
        begin_kernel(p, "KERNEL", draw, "wide");
        put(w, "const long n = %s;", write_extent(w, size));
        open_brace(w, "EACH (e, %s)", count_of(p, first, s->nbatch));
        put(w, "%s", stream_text(p, first, "e"));
        put(w, "wide *x = &s.%s[e * n];", c_name(w, first->name));
        put(w, "SAVE_OLD(x, n);");
        put(w, "if (CHECKING) CLAIM_QUADRATIC_BEFORE(n, &s.%s[e * n * n], &s.%s[e * n], x);", b.J->name, b.h->name);
        put(w, "if (normal_draw(&g, n, &s.%s[e * n * n], &s.%s[e * n], x)) FAULT(\"%s\", e, NOT_POSITIVE_DEFINITE);", b.J->name, b.h->name, first->name);
        put(w, "if (CHECKING) CLAIM_QUADRATIC_AFTER(x);");
        close_brace(w);
        end_kernel(p);
        launch_kernel(p, step, "LAUNCH", draw, "%s", count_of(p, first, s->nbatch));
        return;
    }
    const char *arguments = text(w, "run, VAR_%s, \"%s\", %s, %s, %s, %s", first->name, stem, n, b.J->name, b.h->name, c_name(w, x->name));
    if (effects)
        arguments = text(w, "%s, %s, %s, %s, %s, %s", arguments, write_extent(w, size_of(effects, 0)), b.D->name, b.E->name, b.k->name, c_name(w, effects->name));
    launch(p, step, "NORMAL_%s%s(%s%s)", effects ? "ARROW" : "DENSE", scale ? "_SCALED" : "", arguments, scale ? text(w, ", %s", scale->name) : "");
    if (s->rows) launch(p, step, "}");
    if (direct && !scale) return;
    const char *place = text(w, "place_%s", stem);
    begin_kernel(p, "KERNEL_TEAM", place, "wide");
    if (!direct) copy_block(p, &b, x, ndense, false);
    if (scale) {
        Loops l = {0};
        for (int i = 0; i < s->scaled->plates.n; i++) l.index[l.n++] = s->scaled->plates.index[i];
        scatter(p, &l, s->scaled_latent->nargs, s->scaled_latent->args, NULL, s->scaled_latent, scale_latent, scale);
    }
    end_kernel(p);
    launch_team(p, step, place);
}
