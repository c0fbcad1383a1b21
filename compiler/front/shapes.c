// shapes.c -- element type and shape of every declaration, worked out on demand, in the order in which they depend on each other.
//
//   before   for (t in 1:(T - 1)) x[t + 1] ~ normal(x[t], s);
//   after    x: real[T]     s: real
//
// A variable without a written type gets its shape from the left sides of its statements: the subscript t + 1 with t in 1:(T - 1)
// reaches T. A distribution on vectors or an argument that is a vector adds dimensions behind.
//
// Extents are expressions over data, which are compared as sums (extents.c): K - 1 and K - 2 + 1 are the same, K and K - 1 differ, and N
// and M differ because they are two names. What this cannot decide (N and 3) is left to the program's start, when the data are there.
//
// Needs: resolved.     Gives: Decl.type.     Keeps: the tree, apart from the expressions of extents.
#include <string.h>
#include "types.h"

// ---- extents as sums: of names and calls, by the types of what they are about ----

static SizeSum atom(Types *t, Ast *e)
{
    SizeSum l = {0};
    add_size(t, &l, e, 1);
    return l;
}

static SizeSum size_as_sum(Types *t, Ast *e);

// A whole number that a let block defines is replaced by its right side.
static SizeSum linear_name(Types *t, Ast *e)
{
    Decl *d = e->decl;
    const char *culprit;
    if (!d || d->kind != DECL_DEFINITION || d->poisoned || !d->sites || d->sites->next_site || d->sites->link ||
        d->sites->lhs->kind != AST_NAME || !depends_on_data_only(t->a, e, &culprit))
        return atom(t, e);
    Facts *f = facts(t->a, d);
    if (!f->extent) {
        f->extent = NEW(t->a, SizeSum);
        *f->extent = atom(t, e);  // should it be defined by itself
        types_shape(t, d);
        if (!d->poisoned && d->type.rank == 0 && d->type.base == BASE_INT && types_of(t, d->sites->rhs))
            *f->extent = size_as_sum(t, d->sites->rhs);
    }
    return *f->extent;
}

// e with a subscript in place of each index: from[k] is a name, to[k] what stands for it.
static Ast *in_place(Types *t, Ast *e, int n, Ast *const *from, Ast *const *to)
{
    for (int k = 0; k < n && e->kind == AST_NAME; k++)
        if (from[k]->decl == e->decl) return to[k];
    if (!e->nkids) return e;
    Ast *copy = arena_copy(t->a, e, sizeof *e);
    copy->kid = NEW_N(t->a, Ast *, e->nkids);
    for (int i = 0; i < e->nkids; i++) {
        copy->kid[i] = e->kid[i] ? in_place(t, e->kid[i], n, from, to) : NULL;
        if (copy->kid[i] && copy->kid[i]->depth >= copy->depth) copy->depth = copy->kid[i]->depth + 1;
    }
    copy->state = TYPE_UNKNOWN;
    return copy;
}

// Which index a subscript of a left side is, beside a number: i, i + 1; and what it is where the subscript has a value. false: it is none.
static bool index_at(Types *t, Ast *subscript, Ast *value, Ast **index, Ast **at)
{
    SizeSum l = size_as_sum(t, subscript), x = {0}, given = size_as_sum(t, value);
    int which = -1;
    for (int i = 0; i < l.n; i++)
        if (types_has_index(l.term[i].atom)) which = which < 0 ? i : l.n;
    if (which < 0 || which == l.n || l.term[which].k != 1 || l.term[which].atom->kind != AST_NAME) return false;
    *index = l.term[which].atom;
    add_sizes(t, &x, &given, 1);
    add_sizes(t, &x, &l, -1);
    add_size(t, &x, *index, 1);
    if (x.n > MOST_SIZES) return false;
    *at = size_of_sum(t, &x, value->span);
    return true;
}

// The one statement that defines an integer element by element, m[i] = n[i] + 1; else NULL.
static const Stmt *defines_elements(Types *t, const Ast *e)
{
    const char *culprit;
    Decl *d = e->kid[0]->kind == AST_NAME ? e->kid[0]->decl : NULL;
    if (!d || d->kind != DECL_DEFINITION || d->poisoned || facts(t->a, d)->written_out || !d->sites || d->sites->next_site ||
        d->sites->link || !d->sites->rhs)
        return NULL;
    const Ast *lhs = d->sites->lhs;
    if (lhs->kind != AST_INDEX || lhs->nkids != e->nkids || lhs->kid[0]->kind != AST_NAME || !depends_on_data_only(t->a, e, &culprit))
        return NULL;
    types_shape(t, d);
    return !d->poisoned && d->type.base == BASE_INT && d->type.rank == e->nkids - 1 ? d->sites : NULL;
}

// Elements of a definition as well, m[i] by n[i] + 1: what memory is taken by is then known before anything is computed.
static SizeSum linear_element(Types *t, Ast *e)
{
    const Stmt *s = e->nkids <= MAX_RANK + 1 ? defines_elements(t, e) : NULL;
    if (!s) return atom(t, e);
    Facts *f = facts(t->a, e->kid[0]->decl);
    Ast *from[MAX_RANK], *to[MAX_RANK];
    f->written_out = true;
    bool good = true;
    for (int i = 0; i + 1 < e->nkids && good; i++) {
        good = index_at(t, s->lhs->kid[i + 1], e->kid[i + 1], &from[i], &to[i]);
        for (int k = 0; k < i && good; k++) good = from[k]->decl != from[i]->decl;
    }
    Ast *value = good ? in_place(t, s->rhs, e->nkids - 1, from, to) : e;
    good = good && types_of(t, value) && value->type.rank == 0 && value->type.base == BASE_INT;
    const SizeSum l = good ? size_as_sum(t, value) : atom(t, e);
    f->written_out = false;
    return l;
}

// rows(X), size(x), ... of something whose shape is known is that extent.
static SizeSum linear_call(Types *t, Ast *e)
{
    if (e->nkids != 1 || !types_of(t, e->kid[0])) return atom(t, e);
    const Ast *of = e->kid[0];
    bool rows = e->name == intern("rows") || e->name == intern("size");
    bool cols = e->name == intern("cols"), all = e->name == intern("num_elements");
    int k = cols ? 1 : 0;
    if (!(rows || cols || all) || of->type.rank <= k || (all && of->type.rank != 1)) return atom(t, e);
    Ast *dim = of->type.dim[k];
    bool itself = of->kind == AST_NAME && dim->kind == AST_CALL && dim->nkids == 1 && dim->kid[0]->decl == of->decl;
    return itself ? atom(t, dim) : size_as_sum(t, dim);  // a parameter of a distribution: its extent is called rows(mu)
}

static SizeSum size_as_sum(Types *t, Ast *e)
{
    SizeSum l = {0};
    if (e->kind == AST_INT) {
        l.c = e->number;
        return l;
    }
    if (e->kind == AST_NAME) return linear_name(t, e);
    if (e->kind == AST_INDEX) return linear_element(t, e);
    if (e->kind == AST_CALL) return linear_call(t, e);
    if (e->kind == AST_UNARY && e->op == OP_NEG) {
        SizeSum x = size_as_sum(t, e->kid[0]);
        add_sizes(t, &l, &x, -1);
        return l;
    }
    if (e->kind == AST_BINARY && (e->op == OP_ADD || e->op == OP_SUB)) {
        SizeSum x = size_as_sum(t, e->kid[0]), y = size_as_sum(t, e->kid[1]);
        add_sizes(t, &l, &x, 1);
        add_sizes(t, &l, &y, e->op == OP_ADD ? 1 : -1);
        return l.n > MOST_SIZES ? atom(t, e) : l;
    }
    if (e->kind == AST_BINARY && e->op == OP_MUL) {
        SizeSum *before = map_get(&t->linear, e);
        if (before) return *before;
        SizeSum x = size_as_sum(t, e->kid[0]), y = size_as_sum(t, e->kid[1]);
        if (x.n == 0) add_sizes(t, &l, &y, x.c);
        else if (y.n == 0) add_sizes(t, &l, &x, y.c);
        else l = atom(t, e);
        map_put(t->a, &t->linear, e, arena_copy(t->a, &l, sizeof l));
        return l;
    }
    return atom(t, e);
}

Ast *extent_plus(Types *t, Ast *e, double c)
{
    SizeSum l = size_as_sum(t, e);
    l.c += c;
    return size_of_sum(t, &l, e->span);
}

Ast *extent_sum(Types *t, Ast *x, Ast *y)
{
    SizeSum l = {0}, lx = size_as_sum(t, x), ly = size_as_sum(t, y);
    add_sizes(t, &l, &lx, 1);
    add_sizes(t, &l, &ly, 1);
    return l.n > MOST_SIZES ? size_op(t, x->span, OP_ADD, x, y) : size_of_sum(t, &l, x->span);
}

// hi - lo + 1
Ast *extent_between(Types *t, Ast *lo, Ast *hi)
{
    SizeSum l = {.c = 1}, a = size_as_sum(t, lo), b = size_as_sum(t, hi);
    add_sizes(t, &l, &b, 1);
    add_sizes(t, &l, &a, -1);
    return size_of_sum(t, &l, hi->span);
}

// *excess: by how much x exceeds y, where the difference is a number.
SizeRelation compare_sizes(Types *t, Ast *x, Ast *y, double *excess)
{
    *excess = 0;
    if (ast_same(x, y)) return SIZES_SAME;
    SizeSum l = {0}, lx = size_as_sum(t, x), ly = size_as_sum(t, y);
    add_sizes(t, &l, &lx, 1);
    add_sizes(t, &l, &ly, -1);
    if (l.n == 0) {
        *excess = l.c;
        return l.c == 0 ? SIZES_SAME : SIZES_DIFFERENT;
    }
    bool names = lx.n == 1 && ly.n == 1 && lx.c == 0 && ly.c == 0 && lx.term[0].k == 1 && ly.term[0].k == 1 &&
                 lx.term[0].atom->kind == AST_NAME && ly.term[0].atom->kind == AST_NAME;
    return names ? SIZES_DIFFERENT : SIZES_UNDECIDED;
}

// ---- words for messages ----

// An expression, cut short if it is long.
const char *types_text(Types *t, const Ast *e)
{
    enum { LONG = 60 };
    const char *text = ast_text(t->a, e);
    return strlen(text) <= LONG ? text : arena_printf(t->a, "%.*s...", LONG - 3, text);
}

const char *types_describe(Types *t, const Type *type)
{
    switch (type->rank) {
    case 0: return type->base == BASE_INT ? "an integer" : "a real";
    case 1: return arena_printf(t->a, "a vector of %s", type->dim[0] ? types_text(t, type->dim[0]) : "unknown size");
    case 2:
        if (!type->dim[0] || !type->dim[1]) return "a matrix";
        return arena_printf(t->a, "a matrix of %s by %s", types_text(t, type->dim[0]), types_text(t, type->dim[1]));
    }
    return arena_printf(t->a, "an array %s", ast_type_text(t->a, type));
}

const char *types_describe_rank(int rank)
{
    static const char *const words[] = {"a scalar",
                                        "a vector",
                                        "a matrix",
                                        "an array of 3 dimensions",
                                        "an array of 4 dimensions",
                                        "an array of 5 dimensions",
                                        "an array of 6 dimensions"};
    return words[rank < 0 ? 0 : rank > MAX_RANK ? MAX_RANK : rank];
}

bool types_same_size(Types *t, Span at, Ast *x, Ast *y)
{
    double excess;
    if (!x || !y) return true;
    const SizeRelation r = compare_sizes(t, x, y, &excess);
    t->undecided += r == SIZES_UNDECIDED;
    if (r != SIZES_DIFFERENT) return true;
    diag(t->d, at, DIAG_E0302, types_text(t, x), types_text(t, y));
    return false;
}

// ---- shapes of declarations ----

// max(j in 1:J, e), for each index j in e. A size that loops decide, as last[j] - first[j] + 1 elements of slices.
static Ast *largest_over(Types *t, Ast *e)
{
    const char *culprit;
    for (int rounds = 0; rounds < 20; rounds++) {
        Decl *index = types_index(e);
        if (!index) return e;
        if (!types_of(t, index->lo) || !types_of(t, index->hi) || !depends_on_data_only(t->a, index->lo, &culprit) ||
            !depends_on_data_only(t->a, index->hi, &culprit))
            return NULL;
        Ast *most = size_node(t, AST_REDUCE, e->span, 3, index->lo, index->hi);
        if (most->kind != AST_REDUCE) return NULL;  // too deep
        most->name = intern("max");
        most->decl = index;
        most->kid[2] = e;
        if (e->depth >= most->depth) most->depth = e->depth + 1;
        e = most;
    }
    return NULL;
}

static Ast *largest_of(Types *t, Ast *subscript, bool extent);

// A bound for min(n[i], 5), max(n[i], 2) and c ? n[i] : 2, by those of the two; else NULL.
static Ast *largest_of_choice(Types *t, Ast *e)
{
    const bool call = e->kind == AST_CALL && e->nkids == 2 && (e->name == intern("min") || e->name == intern("max"));
    if ((!call && e->kind != AST_COND) || !types_has_index(e)) return NULL;
    Ast *x = largest_of(t, e->kid[call ? 0 : 1], true), *y = largest_of(t, e->kid[call ? 1 : 2], true);
    if (!x || !y) return NULL;
    Ast *most = size_node(t, AST_CALL, e->span, 2, x, y);
    if (most->kind != AST_CALL) return NULL;
    most->name = call ? e->name : intern("max");
    most->state = TYPE_UNKNOWN;
    return types_of(t, most) ? most : NULL;
}

// The largest value that a subscript, or an extent, takes as the indices in it run over their loops; NULL if no expression of data gives
// it.
static Ast *largest_of(Types *t, Ast *subscript, bool extent)
{
    if (!types_of(t, subscript) || subscript->type.rank) return NULL;
    SizeSum l = size_as_sum(t, subscript);
    const SizeSum written = l;
    const Decl *along = subscript->kind == AST_NAME && subscript->decl && subscript->decl->lengths ? subscript->decl : NULL;
    if (along && along->kind == DECL_INDEX) return along->places;
    for (int rounds = 0; rounds < 20; rounds++) {
        int i = 0;
        while (i < l.n && !(l.term[i].atom->kind == AST_NAME && l.term[i].atom->decl && l.term[i].atom->decl->kind == DECL_INDEX)) i++;
        if (i == l.n) break;
        Ast *name = l.term[i].atom, *end = l.term[i].k > 0 ? name->decl->hi : name->decl->lo;
        double k = l.term[i].k;
        if (!types_of(t, end)) return NULL;
        SizeSum next = {0}, at_end = size_as_sum(t, end);
        add_sizes(t, &next, &l, 1);
        add_size(t, &next, name, -k);
        add_sizes(t, &next, &at_end, k);
        if (next.n > MOST_SIZES) return NULL;
        l = next;
    }
    const char *culprit;
    bool apart = true;
    for (int i = 0; i < l.n; i++) apart &= l.term[i].k > 0 || !types_has_index(l.term[i].atom);
    for (int i = 0; i < l.n && apart; i++) {  // slices i in first[j]:last[j] reach max(last)
        const Ast *e = l.term[i].atom;
        if (l.term[i].k < 0 || e->kind != AST_INDEX || e->nkids != 2 || e->kid[0]->kind != AST_NAME || !types_has_index(e->kid[1]) ||
            e->kid[0]->type.rank != 1)
            continue;
        bool end = depends_on_data_only(t->a, e->kid[0], &culprit);
        for (int k = 0; k < written.n; k++) end &= extent || written.term[k].atom != e;  // u[g[i]]: looked up, which decides nothing
        if (!end) continue;
        Ast *most = NEW(t->a, Ast);
        *most = (Ast){.kind = AST_CALL, .span = e->span, .name = intern("max"), .nkids = 1, .kid = e->kid, .depth = e->depth};
        if (types_of(t, most)) l.term[i].atom = most;
    }
    for (int i = 0; i < l.n && apart; i++) {
        Ast *most = l.term[i].k > 0 ? largest_of_choice(t, l.term[i].atom) : NULL;
        for (int k = 0; k < written.n; k++)
            if (written.term[k].atom == l.term[i].atom) most = extent ? most : NULL;
        if (most) l.term[i].atom = most;
    }
    bool loops = extent, looked_up = false, data = true;
    for (int i = 0; i < l.n; i++) data &= depends_on_data_only(t->a, l.term[i].atom, &culprit);
    for (int k = 0; k < written.n; k++)
        loops |= written.term[k].atom->kind == AST_NAME && written.term[k].k > 0 && types_has_index(written.term[k].atom);
    for (int i = 0; i < l.n; i++) {
        if (!types_has_index(l.term[i].atom)) continue;
        looked_up = true;
        for (int k = 0; k < written.n; k++) loops &= extent || l.term[i].k < 0 || !ast_same(written.term[k].atom, l.term[i].atom);
    }
    if (!data || (looked_up && !loops)) return NULL;
    Ast *end = size_of_sum(t, &l, subscript->span);
    return looked_up ? largest_over(t, end) : end;
}

static Ast *largest(Types *t, Ast *subscript) { return largest_of(t, subscript, false); }

// The subscripts of a left side, x[i][j] as x[i, j].
static bool subscripts(Types *t, const Ast *lhs, List *out)
{
    if (lhs->kind == AST_NAME) return true;
    if (!subscripts(t, lhs->kid[0], out)) return false;
    for (int i = 0; i < out->n; i++) {
        const Ast *s = out->item[i];
        if (s->kind == AST_ALL || s->kind == AST_RANGE) return false;
    }
    for (int i = 1; i < lhs->nkids; i++) list_add(t->a, out, lhs->kid[i]);
    return out->n <= MAX_RANK;
}

// An extent of a distribution's value, in terms of the arguments: rows(mu) is the length of mu.
Ast *types_substitute(Types *t, Ast *e, const Distribution *dist, Ast **args)
{
    if (e->kind == AST_CALL && e->nkids == 1 && e->kid[0]->kind == AST_NAME)
        for (int i = 0; i < dist->nparams; i++) {
            int extra = args[i]->type.rank - dist->params[i]->type.rank, k = e->name == intern("cols");
            if (dist->params[i] == e->kid[0]->decl && extra >= 0 && extra + k < args[i]->type.rank) return args[i]->type.dim[extra + k];
        }
    if (e->kind == AST_NAME)
        for (int i = 0; i < dist->nparams; i++)
            if (dist->params[i] == e->decl) return args[i];
    if (!e->nkids) return e;
    Ast *copy = arena_copy(t->a, e, sizeof *e);
    copy->kid = NEW_N(t->a, Ast *, e->nkids);
    for (int i = 0; i < e->nkids; i++) copy->kid[i] = types_substitute(t, e->kid[i], dist, args);
    copy->state = TYPE_UNKNOWN;
    types_of(t, copy);
    return copy;
}

// Whether a left side is one element: all its subscripts are numbers.
static bool is_element(const List *subs)
{
    for (int i = 0; i < subs->n; i++) {
        const Ast *s = subs->item[i];
        if (s->kind == AST_ALL || s->kind == AST_RANGE) return false;
    }
    return subs->n > 0;
}

// The shape that the right side of a statement gives to its left side: the repeated dimensions of the arguments, then the value's.
// Arguments repeat only for a whole: x ~ normal(m, s) has the shape of m, while in x[i] ~ normal(m, s) a vector m is a mistake.
static bool shape_of_right(Types *t, Stmt *s, const List *subs, Type *out)
{
    if (s->kind == STMT_DEFINE) {
        if (!types_of(t, s->rhs)) return false;
        *out = s->rhs->type;
        if (s->link) out->base = BASE_REAL;
        return true;
    }
    if (!s->dist) return false;
    const Distribution *dist = library_distribution(t->lib, s->dist);
    bool good = true;
    for (int i = 0; i < s->nargs; i++) good = types_of(t, s->args[i]) && good;
    if (!good) return false;
    *out = (Type){.base = dist->discrete ? BASE_INT : BASE_REAL};
    for (int i = 0; i < s->nargs; i++) {
        const Type *arg = &s->args[i]->type;
        int extra = is_element(subs) || (s->weights && !s->more) ? 0 : arg->rank - dist->params[i]->type.rank;
        for (int k = out->rank; k < extra; k++) out->dim[out->rank++] = arg->dim[k];
    }
    if (out->rank + dist->value_rank > MAX_RANK) {
        diag(t->d, s->span, DIAG_E0313, MAX_RANK);
        return false;
    }
    Ast *size = dist->size ? types_substitute(t, dist->size, dist, s->args) : NULL;
    for (int k = 0; k < dist->value_rank; k++) out->dim[out->rank++] = size;
    return true;
}

// A loop over unknown many: reported where the loop is checked.
static bool has_unknown_range(Types *t, const Ast *e)
{
    const char *culprit;
    if (e->kind == AST_NAME && e->decl && e->decl->kind == DECL_INDEX)
        return !depends_on_data_only(t->a, e->decl->lo, &culprit) || !depends_on_data_only(t->a, e->decl->hi, &culprit);
    for (int i = 0; i < e->nkids; i++)
        if (e->kid[i] && has_unknown_range(t, e->kid[i])) return true;
    return false;
}

// The shape of a variable that follows from one statement; an extent that it does not decide is NULL.
static bool shape_from_site(Types *t, Stmt *s, const List *subs, const Type *right, Type *out)
{
    int taken = 0;
    *out = (Type){.base = right->base};
    for (int i = 0; i < subs->n; i++) {
        Ast *sub = subs->item[i];
        Ast *dim = NULL;
        if (sub->kind == AST_ALL) dim = taken < right->rank ? right->dim[taken++] : NULL;
        else if (sub->kind == AST_RANGE) {
            if (sub->kid[1]) dim = largest(t, sub->kid[1]);
            taken++;
        } else {
            dim = largest(t, sub);
            bool reported = sub->state == TYPE_POISONED || sub->type.base == BASE_REAL || has_unknown_range(t, sub);
            if (!dim && reported) return false;
        }
        out->dim[out->rank++] = dim;
    }
    if (out->rank + (right->rank > taken ? right->rank - taken : 0) > MAX_RANK) {
        diag(t->d, s->span, DIAG_E0313, MAX_RANK);
        return false;
    }
    for (; taken < right->rank; taken++) {
        Ast *dim = right->dim[taken];
        out->dim[out->rank++] = dim && types_has_index(dim) ? largest_of(t, dim, true) : dim;
    }
    return true;
}

// Both sites are right: the larger extent, where it is known which is larger.
bool types_merge(Types *t, Type *into, const Type *other)
{
    if (into->rank != other->rank) return false;
    for (int k = 0; k < into->rank; k++) {
        double excess, number;
        Ast *x = into->dim[k], *y = other->dim[k];
        if (!x || !y) {
            into->dim[k] = x ? x : y;
            continue;
        }
        switch (compare_sizes(t, x, y, &excess)) {
        case SIZES_SAME: break;
        case SIZES_DIFFERENT:
            if (excess == 0) return false;  // two names
            if (excess < 0) into->dim[k] = y;
            break;
        case SIZES_UNDECIDED:
            if (constant_value(x, NULL, &number)) into->dim[k] = y;
            else if (!constant_value(y, NULL, &number)) return false;
            break;
        }
    }
    if (other->base == BASE_REAL) into->base = BASE_REAL;
    return true;
}

static void suggest_type(Diag *m, const Decl *d, BaseType base)
{
    diag_help(m, base == BASE_INT ? "write its type, for example int %s[N]" : "write its type, for example vector[N] %s", d->name);
}

static void undecided(Types *t, Decl *d, Span at)
{
    Diag *m = diag(t->d, at, DIAG_E0307, d->name);
    suggest_type(m, d, d->type.base);
    d->poisoned = true;
}

static bool names_decl(const Ast *e, const Decl *d)
{
    if (e->decl == d) return true;
    for (int i = 0; i < e->nkids; i++)
        if (e->kid[i] && names_decl(e->kid[i], d)) return true;
    return false;
}

// A statement whose right side does not read the variable decides whether the elements are vectors or matrices, as u[1] ~ multi_normal(m,
// S) beside u[t] ~ multi_normal(A * u[t - 1], S). Adds these dimensions to those of the left sides.
static void start_of_series(Types *t, Decl *d, const List *sites, const List *subs)
{
    const Facts *f = facts(t->a, d);
    bool others = false;
    for (int pass = 0; pass < 2; pass++)
        for (int i = 0; i < sites->n; i++) {
            Stmt *s = sites->item[i];
            bool of_itself = s->kind == STMT_DEFINE && names_decl(s->rhs, d);
            for (int k = 0; k < s->nargs; k++) of_itself |= names_decl(s->args[k], d);
            others |= of_itself;
            Type right, type;
            if (pass == 0 || !others || of_itself || subs[i].n != d->type.rank) continue;
            if (!shape_of_right(t, s, &subs[i], &right) || right.rank == 0 || !shape_from_site(t, s, &subs[i], &right, &type)) continue;
            if (f->provisional_used || type.rank <= d->type.rank) return;
            for (int k = d->type.rank; k < type.rank; k++) d->type.dim[k] = type.dim[k];
            d->type.rank = type.rank;
            return;
        }
}

enum { MOST_ASKED = 32 };  // definitions that a recursion goes through, at most: more are not looked through

static bool has_whole_values(Types *t, Decl *d, List *asked);

// Whether an expression's values are whole numbers as far as is known before what it reads has a type.
static bool is_whole(Types *t, const Ast *e, List *asked)
{
    switch (e->kind) {
    case AST_INT: return true;
    case AST_NAME: return e->decl && has_whole_values(t, e->decl, asked);
    case AST_INDEX:
    case AST_TRANSPOSE: return is_whole(t, e->kid[0], asked);
    case AST_UNARY: return e->op == OP_NOT || is_whole(t, e->kid[0], asked);
    case AST_BINARY:
        return (e->op == OP_ADD || e->op == OP_SUB || e->op == OP_MUL) && is_whole(t, e->kid[0], asked) && is_whole(t, e->kid[1], asked);
    case AST_COND: return is_whole(t, e->kid[1], asked) && is_whole(t, e->kid[2], asked);
    case AST_REDUCE: return is_whole(t, e->kid[2], asked);
    case AST_REAL:
    case AST_STRING:
    case AST_CALL:
    case AST_RANGE:
    case AST_ALL:
    case AST_ARRAY:
    case AST_FUNCTION: return false;
    }
    return false;
}

// The same of all statements of a variable. One that is being examined already occurs in what it is computed from: if all else is whole,
// so is it.
static bool has_whole_values(Types *t, Decl *d, List *asked)
{
    if (d->has_type || d->kind == DECL_DATA || d->kind == DECL_INDEX) return d->kind == DECL_INDEX || d->type.base == BASE_INT;
    for (int i = 0; i < asked->n; i++)
        if (asked->item[i] == d) return true;
    if (asked->n == MOST_ASKED) return false;
    list_add(t->a, asked, d);
    const List *tildes = &facts(t->a, d)->tildes;
    for (int i = 0; i < tildes->n; i++) {
        const Stmt *s = tildes->item[i];
        if (!s->dist || !library_distribution(t->lib, s->dist)->discrete) return false;
    }
    for (const Stmt *s = d->sites; s; s = s->next_site)
        if (s->kind == STMT_DEFINE && (s->link || !is_whole(t, s->rhs, asked))) return false;
    return true;
}

// Whether all indices of loops in e are subscripts of the left side.
static bool at_indices(const Ast *e, const Ast *lhs)
{
    if (!types_has_index(e)) return true;
    if (e->kind == AST_NAME)
        for (int i = 1; i < lhs->nkids; i++)
            if (lhs->kid[i]->decl == e->decl) return true;
    bool all = e->kind != AST_NAME && e->kind != AST_REDUCE;
    for (int i = 0; i < e->nkids && all; i++) all = !e->kid[i] || at_indices(e->kid[i], lhs);
    return all;
}

// The statement, if it defines z[j] for an index j and sizes of the right side depend on j.
static Stmt *ragged(Stmt *s)
{
    if (s->kind != STMT_DEFINE || s->lhs->kind != AST_INDEX || s->lhs->kid[0]->kind != AST_NAME) return NULL;
    for (int i = 1; i < s->lhs->nkids; i++) {
        const Ast *sub = s->lhs->kid[i];
        if (sub->kind != AST_NAME || !sub->decl || sub->decl->kind != DECL_INDEX) return NULL;
        for (int k = 1; k < i; k++)
            if (s->lhs->kid[k]->decl == sub->decl) return NULL;
    }
    bool some = false;
    for (int k = 0; k < s->rhs->type.rank; k++) {
        const Ast *dim = s->rhs->type.dim[k];
        if (!dim || !types_has_index(dim)) continue;
        if (!at_indices(dim, s->lhs)) return NULL;
        some = true;
    }
    return some ? s : NULL;
}

static void infer(Types *t, Decl *d, const List *sites)
{
    Facts *f = facts(t->a, d);
    int widest = 0;
    d->type = (Type){.base = BASE_REAL};
    List *subs = NEW_N(t->a, List, sites->n);
    for (int i = 0; i < sites->n; i++) {  // what follows from the left sides, while the right sides are being typed
        Stmt *s = sites->item[i];
        subs[i] = (List){0};
        if (!subscripts(t, s->lhs, &subs[i])) {
            undecided(t, d, s->lhs->span);
            return;
        }
        if (subs[i].n > widest) widest = subs[i].n;
        if (s->kind == STMT_TILDE && s->dist && library_distribution(t->lib, s->dist)->discrete) d->type.base = BASE_INT;
    }
    for (int i = 0; i < sites->n; i++) {
        Type type;
        if (subs[i].n != widest || !shape_from_site(t, sites->item[i], &subs[i], &(Type){.base = d->type.base}, &type)) continue;
        if (d->type.rank == 0) d->type = type;
        else if (!types_merge(t, &d->type, &type)) break;
    }
    if (has_whole_values(t, d, &(List){0})) d->type.base = BASE_INT;  // for what is computed from it, and it from that
    start_of_series(t, d, sites, subs);
    Type provisional = d->type, all = {0};
    bool some = false;
    for (int i = 0; i < sites->n; i++) {
        Stmt *s = sites->item[i];
        Type right, type;
        if (!shape_of_right(t, s, &subs[i], &right) || !shape_from_site(t, s, &subs[i], &right, &type)) {
            d->poisoned = true;
            continue;
        }
        if (!some) all = type;
        else if (!types_merge(t, &all, &type)) {
            Diag *m = diag(t->d, s->lhs->span, DIAG_E0308, d->name, ast_type_text(t->a, &all), ast_type_text(t->a, &type));
            suggest_type(m, d, all.base);
            d->poisoned = true;
            return;
        }
        some = true;
    }
    if (d->poisoned) return;
    for (int k = 0; k < all.rank; k++)
        if (!all.dim[k]) {
            undecided(t, d, d->span);
            return;
        }
    if (f->from_uses && all.rank == 0) {  // a use has decided the size (sizes.c)
        const BaseType base = all.base;
        all = *f->from_uses;
        all.base = base;
    }
    if (d->kind == DECL_DEFINITION && sites->n == 1) d->ragged = ragged(sites->item[0]);
    if (f->provisional_used && provisional.rank != all.rank) {
        undecided(t, d, d->span);
        return;
    }
    d->type = all;
}

// One bound of all elements, or a bound for each: of the shape of the type. Bounds of data are one number each.
static bool bound_fits(Types *t, const Decl *d, const Ast *bound)
{
    const int leading = d->in_loop ? d->in_loop->nkids - 1 : 0;
    if (bound->type.rank == 0 || d->kind == DECL_DATA || bound->type.rank != d->type.rank - leading)
        return types_need_scalar(t, bound, "a bound");
    for (int k = 0; k < bound->type.rank; k++)
        if (!types_same_size(t, bound->span, bound->type.dim[k], d->type.dim[leading + k])) return false;
    return true;
}

// Does a statement elsewhere name elements that the type in the loop does not give the variable? Reported.
static bool reaches_beyond(Types *t, Decl *d, Ast *const *extent, int leading)
{
    List sites = facts(t->a, d)->tildes;
    for (Stmt *s = d->sites; s; s = s->next_site) list_add(t->a, &sites, s);
    for (int i = 0; i < sites.n; i++) {
        Stmt *s = sites.item[i];
        List subs = {0};
        if (s->lhs == d->in_loop || !subscripts(t, s->lhs, &subs)) continue;
        for (int k = 0; k < leading && k < subs.n; k++) {
            Ast *sub = subs.item[k],
                *end = sub->kind == AST_ALL     ? NULL
                       : sub->kind == AST_RANGE ? sub->kid[1]
                                                : sub,
                *most = end ? largest(t, end) : NULL;
            double excess;
            if (!most || compare_sizes(t, most, extent[k], &excess) != SIZES_DIFFERENT || excess <= 0) continue;
            Diag *m = diag(t->d, s->lhs->span, DIAG_E0308, d->name, ast_text(t->a, d->in_loop), ast_text(t->a, s->lhs));
            diag_help(m,
                      "the type in the loop ends at %s, and this statement reaches %s; what has neither the type nor a distribution of "
                      "that loop has a name of its own",
                      types_text(t, extent[k]), types_text(t, most));
            d->poisoned = true;
            return true;
        }
    }
    return false;
}

// A type in a loop: the largest values of the subscripts are extents before its own.
static void shape_in_loop(Types *t, Decl *d)
{
    const int leading = d->in_loop->nkids - 1;
    Ast *extent[MAX_RANK];
    for (int k = 0; k < leading; k++) {
        extent[k] = largest(t, d->in_loop->kid[k + 1]);
        if (extent[k]) continue;
        if (d->in_loop->kid[k + 1]->state != TYPE_POISONED && !has_unknown_range(t, d->in_loop->kid[k + 1])) undecided(t, d, d->span);
        d->poisoned = true;
        return;
    }
    if (reaches_beyond(t, d, extent, leading)) return;
    memmove(d->type.dim + leading, d->type.dim, sizeof *d->type.dim * (size_t)d->type.rank);
    memcpy(d->type.dim, extent, sizeof *extent * (size_t)leading);
    d->type.rank += leading;
}

// The expressions of a written type: sizes and bounds.
static void check_written(Types *t, Decl *d)
{
    if (d->in_loop) shape_in_loop(t, d);
    if (d->poisoned) return;
    for (int i = 0; i < d->type.rank; i++)
        if (d->type.dim[i] && !(types_need_int(t, d->type.dim[i], "a size") && types_need_data(t, d->type.dim[i], "a size")))
            d->poisoned = true;
    Ast *ends[] = {d->lower, d->upper, d->init};
    static const char *const words[] = {"a bound", "a bound", "a default"};
    for (int i = 0; i < 3; i++)
        if (ends[i] && types_of(t, ends[i]) && (i == 2 ? types_need_scalar(t, ends[i], words[i]) : bound_fits(t, d, ends[i])) &&
            (i == 2 || d->kind == DECL_DATA))
            types_need_data(t, ends[i], words[i]);
    if (d->init && d->init->state == TYPE_KNOWN && d->type.base == BASE_INT && d->init->type.base != BASE_INT)
        diag(t->d, d->init->span, DIAG_E0310, "a default");
    double lo, hi;
    if (d->lower && d->upper && constant_value(d->lower, NULL, &lo) && constant_value(d->upper, NULL, &hi) && lo >= hi &&
        !(lo == hi && d->type.base == BASE_INT))
        diag(t->d, span_join(d->lower->span, d->upper->span), DIAG_E0409, types_text(t, d->lower), types_text(t, d->upper));
}

void types_shape(Types *t, Decl *d)
{
    Facts *f = facts(t->a, d);
    if (f->shape == SHAPE_KNOWN) return;
    if (f->shape == SHAPE_ASKED) {
        f->provisional_used = true;
        return;
    }
    f->shape = SHAPE_ASKED;
    if (d->has_type || d->kind == DECL_DATA) {
        f->shape = SHAPE_KNOWN;
        check_written(t, d);
    } else if (d->kind == DECL_VARIABLE) {
        List all = {0};
        for (int i = 0; i < f->tildes.n; i++) list_add(t->a, &all, f->tildes.item[i]);
        for (Stmt *s = d->sites; s; s = s->next_site) list_add(t->a, &all, s);  // some elements are computed
        infer(t, d, &all);
    } else if (d->kind == DECL_DEFINITION) {
        List sites = {0};
        for (Stmt *s = d->sites; s; s = s->next_site) list_add(t->a, &sites, s);
        infer(t, d, &sites);
    }
    f->shape = SHAPE_KNOWN;
}

// ---- largest values of subscripts ----

bool types_same(Types *t, const Type *x, const Type *y)
{
    double excess;
    if (x->rank != y->rank) return false;
    for (int k = 0; k < x->rank; k++)
        if (compare_sizes(t, x->dim[k], y->dim[k], &excess) != SIZES_SAME) return false;
    return true;
}

static Ast *upper_end(Types *t, Ast *e, int through);

// The largest value of what has this name: its declared bound, the end of its distribution's support, what its only definition computes.
static Ast *upper_end_of(Types *t, Ast *e, const Decl *d, int through)
{
    const char *culprit;
    const List *tildes = d->front ? &((const Facts *)d->front)->tildes : NULL;
    if (d->upper)
        return !types_has_index(d->upper) && depends_on_data_only(t->a, d->upper, &culprit) && types_of(t, d->upper) ? d->upper : NULL;
    if (d->kind == DECL_DEFINITION && d->sites && !d->sites->next_site && !d->sites->link && through > 0) {
        Ast *end = upper_end(t, d->sites->rhs, through - 1);
        if (end) return end;
    }
    if (d->kind == DECL_VARIABLE && tildes->n == 1) {
        const Stmt *s = tildes->item[0];
        const Distribution *dist = s->dist && !s->weights ? library_distribution(t->lib, s->dist) : NULL;
        if (!dist || !dist->discrete || dist->value_rank || !dist->upper) return NULL;
        for (int i = 0; i < s->nargs; i++)
            if (!types_of(t, s->args[i])) return NULL;
        Ast *end = types_substitute(t, dist->upper, dist, s->args);
        return end && !types_has_index(end) && types_of(t, end) && end->type.rank == 0 && end->type.base == BASE_INT &&
                       depends_on_data_only(t->a, end, &culprit)
                   ? end
                   : NULL;
    }
    return e->kind == AST_NAME && e->type.rank == 0 && depends_on_data_only(t->a, e, &culprit) ? e : NULL;
}

static Ast *upper_end(Types *t, Ast *e, int through)
{
    if (!types_of(t, e) || e->type.base != BASE_INT) return NULL;
    Ast *x, *y;
    double number;
    switch (e->kind) {
    case AST_INT: return e;
    case AST_NAME: return e->decl->kind == DECL_INDEX ? largest(t, e) : upper_end_of(t, e, e->decl, through);
    case AST_INDEX: return e->kid[0]->kind == AST_NAME ? upper_end_of(t, e, e->kid[0]->decl, through) : NULL;
    case AST_BINARY:
        if (e->op != OP_ADD && e->op != OP_SUB) return NULL;
        x = upper_end(t, e->kid[0], through);
        if (e->op == OP_ADD) return x && (y = upper_end(t, e->kid[1], through)) ? extent_sum(t, x, y) : NULL;
        return x && constant_value(e->kid[1], NULL, &number) ? extent_plus(t, x, -number) : NULL;
    case AST_COND: {
        Type of = {.rank = 1, .dim = {upper_end(t, e->kid[1], through)}}, other = {.rank = 1, .dim = {upper_end(t, e->kid[2], through)}};
        return of.dim[0] && other.dim[0] && types_merge(t, &of, &other) ? of.dim[0] : NULL;
    }
    case AST_REAL:
    case AST_STRING:
    case AST_RANGE:
    case AST_ALL:
    case AST_CALL:
    case AST_UNARY:
    case AST_TRANSPOSE:
    case AST_REDUCE:
    case AST_ARRAY:
    case AST_FUNCTION: return NULL;
    }
    return NULL;
}

Ast *types_largest(Types *t, Ast *subscript)
{
    Ast *end = upper_end(t, subscript, MOST_ASKED);
    return end ? end : largest(t, subscript);
}
