// joint.c -- updates that draw many elements at once: arrays with a family of their own, and Gaussian blocks.
#include <stdlib.h>
#include "lower.h"

static Expr *size_of(const Var *v, int from)
{
    Expr *n = ex_num(1);
    for (int k = from; k < v->rank; k++) n = ex_mul2(n, v->dim[k]);
    return n;
}

// Where each variable of the dense part begins.
static void put_offsets(Lower *p, BlockPlace *b, int ndense, Expr *size)
{
    const Update *s = b->update;
    b->n = local_new(p->g->arena, "n");
    b->n->base = BASE_INT;
    b->offset = NEW_N(p->g->arena, Expr *, s->nblock);
    put_let(p, NULL, b->n, size, "long");
    Expr *at = ex_num(0);
    for (int i = 0; i < ndense; i++) {
        if (at->kind == EX_NUM) b->offset[i] = i ? at : NULL;
        else {
            Var *local = local_named(p->g->arena, words(p, "at_%s", s->block[i]->name));
            local->base = BASE_INT;
            put_let(p, NULL, local, at, "long");
            b->offset[i] = local_ref(local);
        }
        at = ex_add2(at, size_of(s->block[i], s->gaussian.diagonal ? 0 : s->gaussian.nbatch));
    }
}

// The block's variables into x, end to end, or back.
static void copy_block(Lower *p, const Update *s, Var *x, int ndense, bool gather)
{
    Node *n = put(p, NODE_COPY);
    n->copy.update = s;
    n->copy.n = ndense;
    n->copy.var = s->block;
    n->copy.joint = x;
    n->copy.gather = gather;
}

// What the row passes added up, into its places.
static void add_row_sums(Lower *p, const BlockPlace *b)
{
    for (const RowSum *r = p->row_sums; r; r = r->next) {
        if (r->update != b->update) continue;
        Expr *j = ex_index(index_new(intern("j"), ex_num(1), r->vector->dim[0]));
        BlockTerm t = {.degree = r->other ? 2 : 1, .loops = {.n = 1, .index = {j->index}}, .ref = {ex_ref(r->vector, 1, &j), r->other}};
        Node *sum = enter_entries(p, &t.loops, 1, &j, NULL);
        put_entry(p, b, &t, r->other != NULL && !b->entries, 0, ex_ref(r->out, 1, &j));
        leave(p, sum);
    }
    for (const RowGram *r = p->row_grams; r; r = r->next) {
        if (r->update != b->update) continue;
        Expr *at[] = {ex_index(index_new(intern("j"), ex_num(1), r->vector->dim[0])),
                      ex_index(index_new(intern("k"), ex_num(1), r->vector->dim[0]))};
        BlockTerm t = {.degree = 2,
                       .loops = {.n = 2, .index = {at[0]->index, at[1]->index}},
                       .ref = {ex_ref(r->vector, 1, &at[0]), ex_ref(r->vector, 1, &at[1])}};
        Node *sum = enter_entries(p, &t.loops, 2, at, NULL);
        Expr *entry = ex_ref(r->out, 2, at);
        put_entry(p, b, &t, false, 0, b->entries ? ex_mul2(ex_num(0.5), entry) : entry);  // each pair is met twice
        leave(p, sum);
    }
}

static Expr *scale_at(Var *scale, int k) { return ex_ref(scale, 1, (Expr *[]){ex_num(k)}); }

// What a scale move starts from: the sum of squares of its latents, unless a row pass has made it, and how many they are.
static void put_squares(Lower *p, const Update *s, Var *scale)
{
    Expr *square = ex_mul2(s->gaussian.scaled_weight, ex_pow(s->gaussian.scaled_latent, 2)), *count = ex_num(1);
    Loops l = s->gaussian.scaled->plates;
    l.guard = NULL;
    for (int i = 0; i < l.n; i++) count = ex_mul2(count, ex_length(l.index[i]->lo, l.index[i]->hi));
    Var *squares = fused_squares(p, s) ? NULL : local_new(p->g->arena, "squares");
    if (squares) {
        put_let(p, NULL, squares, ex_num(0), "wide")->let.grows = true;
        Node *sum = enter_nest(p, NODE_REDUCE, &l, 0, NULL, NULL);
        sum->nest.op = ASSIGN_ADD;
        put_assign(p, ASSIGN_ADD, place_local(squares), square);
        leave(p, sum);
    }
    Node *lane = enter(p, NODE_LANE);
    if (squares) put_assign(p, ASSIGN_SET, place_element(scale_at(scale, 1)), local_ref(squares));
    put_assign(p, ASSIGN_SET, place_element(scale_at(scale, 2)), count);
    leave(p, lane);
}

// The first n unknowns of the block, from the array of all.
static void put_places(Lower *p, const Update *s, Var *x, int n, const char *name)
{
    note(p, "What was drawn jointly, to its places");
    Kernel *place = open_kernel(p, KERNEL_TEAM, name, "wide");
    place->part = PART_TABLES;
    copy_block(p, s, x, n, false);
    for (int i = 0; i < n; i++)
        if (s->block[i]->rank) note_count(p, place, count_dims(s->block[i], 0, s->block[i]->rank));
    close_kernel(p);
    launch_team(p, place);
}

// The latents are multiplied by the scale of the draw.
static void put_rescale(Lower *p, const Update *s, Var *scale, const char *stem)
{
    note(p, "The latents, times the scale that was drawn with them");
    Kernel *rescale = open_kernel(p, KERNEL_TEAM, words(p, "%s_%s", stem, s->gaussian.scaled_latent->var->name), "wide");
    Loops plates = s->gaussian.scaled->plates;
    plates.guard = NULL;
    Node *nest = enter_nest(p, NODE_NEST, &plates, s->gaussian.scaled_latent->nargs, s->gaussian.scaled_latent->args, NULL);
    put_assign(p, ASSIGN_MUL, place_element(s->gaussian.scaled_latent), scale_at(scale, 3));
    leave(p, nest);
    close_kernel(p);
    launch_team(p, rescale);
}

// 1/s of positive s: it is 0 for no finite s. A weight that is drawn may be 0, as that of a binomial without trials.
static bool is_over_positive(const Expr *root)
{
    return root->kind == EX_POW && root->number < 0 && root->args[0]->kind == EX_REF && root->args[0]->var->kind == VAR_PARAMETER &&
           ex_positive(root->args[0]);
}

// The target of a row over the root of its variance; *root, the root of its weight, gets a name.
static Expr *put_target(Lower *p, const Rows *r, Expr **root)
{
    if (ex_is_num(*root, 1) || ex_is_num(r->shift, 0)) return r->shift;
    if (is_over_positive(*root)) return ex_mul2(r->shift, ex_pow(*root, -1));
    Var *local = local_new(p->g->arena, "root");
    put_let(p, NULL, local, *root, "wide");
    *root = local_ref(local);
    return ex_call3("if_else", ex_call2("<", ex_num(0), *root), ex_mul2(r->shift, ex_pow(*root, -1)), ex_num(0));
}

// With fewer rows than coefficients: the diagonal and the shift of everything but the rows, and each row and its target over the
// square root of its variance.
static void collect_rows(Lower *p, BlockPlace *b, Var *x, int ndense, Expr *size)
{
    const Update *s = b->update;
    const Factor *f = s->gaussian.rows->factor;
    put_offsets(p, b, ndense, size);
    b->few = true;
    Expr *n = local_ref(b->n);
    put_fill(p, b->diagonal, (Count){1, {n}}, false);
    put_fill(p, b->h, (Count){1, {n}}, false);
    put_fill(p, b->rows, (Count){2, {s->gaussian.rows->count, n}}, false);
    put_fill(p, b->y, (Count){1, {s->gaussian.rows->count}}, false);
    put_barrier(p);
    for (const BlockTerm *t = s->gaussian.terms; t; t = t->next)
        if (t->factor != f) accumulate(p, b, t);
    const Loops plates = f->plates;
    Expr **row = NEW_N(p->g->arena, Expr *, plates.n + 1);
    b->row = local_new(p->g->arena, "row");
    for (int i = 0; i < plates.n; i++) {
        row[i] = ex_index(plates.index[i]);
        b->row->dim[b->row->rank++] = plates.index[i]->hi;
    }
    const Sub at_row = {.of = b->row, .n = b->row->rank, .at = row}, none = {0};
    Expr *root = ex_pow(s->gaussian.rows->weight, 0.5), *named = root;
    Node *nest = enter_nest(p, NODE_NEST, &plates, plates.n, row, NULL);
    Expr *target = put_target(p, s->gaussian.rows, &named);
    put_assign(p, ASSIGN_SET, place_at(b->y, 1, at_row, none, none), target);
    leave(p, nest);
    for (const BlockTerm *t = s->gaussian.rows->phi; t; t = t->next) {
        Loops l = plates;
        Expr **to = NEW_N(p->g->arena, Expr *, plates.n + t->ref[0]->nargs + 1);
        int k = 0;
        for (int i = 0; i < plates.n; i++) to[k++] = row[i];
        for (int i = 0; i < t->loops.n; i++) l.index[l.n++] = t->loops.index[i];
        if (t->loops.guard) l.guard = l.guard ? ex_call2("&&", l.guard, t->loops.guard) : t->loops.guard;
        for (int i = 0; i < t->ref[0]->nargs; i++) to[k++] = t->ref[0]->args[i];
        Node *sum = enter_nest(p, NODE_REDUCE, &l, k, to, NULL);
        put_assign(p, ASSIGN_ADD, place_at(b->rows, 2, at_row, inner_sub(b, t->ref[0]), none), ex_mul2(root, t->coefficient));
        leave(p, sum);
    }
    if (ndense > 1) copy_block(p, s, x, ndense, true);
    b->few = false;
}

// A draw for each element of the leading dimensions: a matrix for each by a crew of lanes, else by one lane.
static void draw_each(Lower *p, const Update *s, Var *J, Var *h, Expr *size, const char *collected)
{
    note(p,
         s->gaussian.nbatch ? "A joint normal for each element of the leading dimensions, from what %s has collected"
                            : "A joint normal, from what %s has collected",
         collected);
    const bool crew = s->gaussian.nbatch && !s->gaussian.diagonal && !s->gaussian.on_plane && s->does == DRAWS;
    Kernel *draw = open_kernel(p, crew ? KERNEL_TEAM : KERNEL_ELEMENTS, words(p, "draw_%s", s->block[0]->name), "wide");
    Node *d = put(p, NODE_DRAW_NORMAL);
    d->normal.update = s;
    d->normal.J = J;
    d->normal.h = h;
    d->normal.size = size;
    d->normal.mode = p->g->method == METHOD_EM;
    if (crew) {
        Count work = count_dims(s->block[0], 0, s->gaussian.nbatch);
        for (int k = 0; k < 2; k++) work.factor[work.n++] = size;
        note_count(p, draw, work);
    }
    close_kernel(p);
    if (crew) launch_team(p, draw);
    else with_count(launch(p, LAUNCH_EACH, draw), count_dims(s->block[0], 0, s->gaussian.nbatch));
}

static Launch *launch_normal(Lower *p, LaunchKind kind, const Var *first)
{
    Launch *l = launch(p, kind, NULL);
    with_stream(l, first);
    with_string(l, first->name);
    return l;
}

// A variable whose vectors have the sum 0 and whose elements are independent but for that: two numbers for each element.
static void update_diagonal(Lower *p, const Update *s)
{
    BlockPlace b = {.update = s, .few = true};
    const Var *v = s->block[0];
    Expr *size = size_of(v, 0);
    b.diagonal = work_array(p, ROLE_BLOCK, words(p, "precision_%s", v->name), 1, &size);
    b.h = work_array(p, ROLE_BLOCK, words(p, "shift_%s", v->name), 1, &size);
    bool whole = false;
    for (const BlockTerm *t = s->gaussian.terms; t; t = t->next) whole |= needs_own_array(t->coefficient, &t->loops);
    comment_update(p, s);
    Kernel *collect = open_kernel(p, whole ? KERNEL_ONCE : KERNEL_TEAM, words(p, "collect_%s", v->name), "wide");
    put_offsets(p, &b, 1, size);
    Expr *n = local_ref(b.n);
    put_fill(p, b.diagonal, (Count){1, {n}}, false);
    put_fill(p, b.h, (Count){1, {n}}, false);
    put_barrier(p);
    for (const BlockTerm *t = s->gaussian.terms; t; t = t->next) accumulate(p, &b, t);
    close_kernel(p);
    if (whole) launch(p, LAUNCH_ONCE, collect);
    else launch_team(p, collect);
    draw_each(p, s, b.diagonal, b.h, v->dim[v->rank - 1], collect->name);
}

// The rows of a factor: each begins with the root of its weight, by which its entries are multiplied. Where the joint normal is row-listed,
// its target follows; entries that are a row of a matrix come at once.
static void put_listed(Lower *p, const BlockPlace *b, const Rows *r)
{
    const Loops *plates = &r->factor->plates;
    Node *loop[MAX_LOOPS + 1];
    int n = 0;
    for (int i = 0; i < plates->n; i++) {
        loop[n] = enter(p, NODE_LOOP);
        loop[n]->loop.how = SHARE_SERIAL;
        loop[n]->loop.n = 1;
        loop[n++]->loop.index[0] = plates->index[i];
    }
    if (plates->guard) (loop[n++] = enter(p, NODE_IF))->test.condition = plates->guard;
    Expr *root = ex_pow(r->weight, 0.5), *target = r->listed ? put_target(p, r, &root) : NULL;
    put_assign(p, ASSIGN_SET, (Place){.array = b->entries}, root);
    if (target) put_assign(p, ASSIGN_ADD, (Place){.array = b->entries}, target);
    for (const BlockTerm *t = r->phi; t; t = t->next) {
        const Var *X = r->listed ? matrix_of_entries(t) : NULL;
        if (X) {
            Expr *first[] = {ex_num(1)}, *of_row[] = {t->coefficient->args[0], ex_num(1)};
            put_assign(p, ASSIGN_SET, place_at(b->entries, 1, inner_sub(b, ex_ref(t->ref[0]->var, 1, first)), (Sub){0}, (Sub){0}),
                       ex_ref((Var *)X, 2, of_row));
            continue;
        }
        Node *sum = enter_nest(p, NODE_NEST, &t->loops, 0, NULL, NULL);
        put_assign(p, ASSIGN_ADD, place_at(b->entries, 1, inner_sub(b, t->ref[0]), (Sub){0}, (Sub){0}), t->coefficient);
        leave(p, sum);
    }
    while (n > 0) leave(p, loop[--n]);
}

// Rows that may be listed one by one: in place of the routes by few rows and by many.
static void update_listed(Lower *p, BlockPlace *b, Var *x, Var *scale, int ndense, Expr *size)
{
    const Update *s = b->update;
    const Rows *r = s->gaussian.rows;
    Var *first = s->block[0];
    b->entries = fresh_var(&p->names, words(p, "entries_%s", block_name(p, s->block, s->nblock)), VAR_SUM);
    b->entries->rank = 2;
    b->entries->dim[0] = b->entries->dim[1] = size;
    b->entries->lowered.pattern = r->listed;
    note(p,
         "%s where the matrix has few elements that are not 0, or many columns: the diagonal apart from the rows, then each row over its "
         "standard deviation, with its target",
         s->description->what);
    Kernel *list = open_kernel(p, KERNEL_ONCE, words(p, "list_rows_%s", block_name(p, s->block, s->nblock)), "wide");
    put_offsets(p, b, ndense, size);
    put_fill(p, b->h, (Count){1, {local_ref(b->n)}}, false);
    for (const BlockTerm *t = s->gaussian.terms; t; t = t->next)
        if (t->factor != r->factor) accumulate(p, b, t);
    put_listed(p, b, r);
    if (ndense > 1) copy_block(p, s, x, ndense, true);
    if (scale) put_squares(p, s, scale);
    close_kernel(p);
    b->entries = NULL;
    p->when_rows = r;
    p->when = IF_LISTED;
    Launch *l = launch(p, scale ? LAUNCH_NORMAL_SPARSE_SCALED : LAUNCH_NORMAL_SPARSE, list);
    with_stream(l, first);
    with_string(l, first->name);
    with_number(l, r->listed);
    with_name(l, b->h);
    with_name(l, x);
    if (scale) with_name(l, scale);
    p->when = ALWAYS;
    const char *names = first->name;
    for (int i = 1; i < ndense; i++) names = words(p, "%s, %s", names, s->block[i]->name);
    bool each = false;  // whether the weights of rows differ and change
    for (int i = 0; i < r->factor->plates.n; i++) each |= ex_mentions_index(r->weight, r->factor->plates.index[i]);
    Launches *of_update = p->launches;
    p->launches = &p->row_lists;
    l = launch(p, LAUNCH_LIST_ROWS, list);
    with_string(l, names);
    with_number(l, r->listed);
    with_extent(l, size);
    with_number(l, each && ex_unknown(r->weight));
    p->launches = of_update;
}

// Where the scale of the block's own law is drawn with it: a scale move's, or that of squares which its rows return; NULL: nowhere.
static Var *scale_of(Lower *p, const Update *s)
{
    const RowSum *squares = fused_squares(p, s);
    if (squares) return squares->scale;
    if (!s->gaussian.scaled) return NULL;
    return work_array(p, ROLE_TUNING, words(p, "scale_of_%s", s->gaussian.scaled_latent->var->name), 1, (Expr *[]){ex_num(3)});
}

static void note_scale(Lower *p, const Update *s)
{
    if (!s->gaussian.scaled) return;
    note(p, "  the scale of %s is drawn together with it: its square is gamma(count/2, (sum of squares - %s'%s^-1 %s)/2) (Liu and Wu 1999)"
         ". scale_of_%s has that sum, the count, and the scale",
         s->gaussian.scaled_latent->var->name, s->description->h, s->description->J, s->description->h,
         s->gaussian.scaled_latent->var->name);
}

static bool any_own_array(const Update *s)
{
    bool any = false;
    for (const BlockTerm *t = s->gaussian.terms; t; t = t->next) any |= needs_own_array(t->coefficient, &t->loops);
    return any;
}

// Several plates: the kernel goes through the entries of the precision, which the runtime keeps (runtime/backends/sparse.h).
static void update_sparse(Lower *p, const Update *s)
{
    BlockPlace b = {.update = s};
    const Var *first = s->block[0];
    const char *stem = block_name(p, s->block, s->nblock);
    Expr *size = ex_num(0);
    for (int i = 0; i < s->nblock; i++) size = ex_add2(size, size_of(s->block[i], 0));
    b.entries = fresh_var(&p->names, words(p, "entries_%s", stem), VAR_SUM);
    b.entries->rank = 2;
    b.entries->dim[0] = b.entries->dim[1] = size;
    b.entries->lowered.pattern = s->gaussian.sparse;
    b.h = work_array(p, ROLE_SYSTEM, words(p, "joint_shift_%s", stem), 1, &size);
    Var *x = s->nblock == 1 ? s->block[0] : work_array(p, ROLE_BLOCK, words(p, "joint_%s", stem), 1, &size);
    Var *scale = scale_of(p, s);
    update_row_sums(p, s);
    comment_update(p, s);
    note(p, "  its precision is sparse: each entry is listed with its place, one on the diagonal by its half");
    note_scale(p, s);
    b.h->lowered.pattern = s->gaussian.sparse;
    const bool by_lanes = !any_own_array(s) && !s->gaussian.listed && !s->gaussian.proposal;  // on a GPU
    Kernel *collect = open_kernel(p, by_lanes ? KERNEL_TEAM : KERNEL_ONCE, words(p, "entries_%s", stem), "wide");
    collect->terms = by_lanes ? s->gaussian.sparse : 0;
    put_offsets(p, &b, s->nblock, size);
    put_fill(p, b.h, (Count){1, {local_ref(b.n)}}, false);
    for (const BlockTerm *t = s->gaussian.terms; t; t = t->next)
        if (t->degree == 1 || !listed_in(s, t->factor)) accumulate(p, &b, t);
    add_row_sums(p, &b);
    for (const Rows *r = s->gaussian.listed; r; r = r->next) put_listed(p, &b, r);
    if (s->nblock > 1) copy_block(p, s, x, s->nblock, true);
    if (scale) put_squares(p, s, scale);
    close_kernel(p);
    Launch *l = launch(p, scale ? LAUNCH_NORMAL_SPARSE_SCALED : LAUNCH_NORMAL_SPARSE, collect);
    with_stream(l, s->gaussian.proposal ? s->gaussian.proposal->name : first);
    with_string(l, first->name);
    with_number(l, s->gaussian.sparse);
    with_name(l, b.h);
    with_name(l, x);
    if (scale) with_name(l, scale);
    const char *names = first->name;
    for (int i = 1; i < s->nblock; i++) names = words(p, "%s, %s", names, s->block[i]->name);
    Launches *of_update = p->launches;
    p->launches = &p->patterns;
    l = launch(p, LAUNCH_PATTERN, collect);
    with_string(l, names);
    with_number(l, s->gaussian.sparse);
    with_extent(l, size);
    with_number(l, s->gaussian.most_work);
    with_number(l, by_lanes);
    p->launches = of_update;
    if (s->nblock > 1) put_places(p, s, x, s->nblock, words(p, "place_all_%s", stem));
    if (scale) put_rescale(p, s, scale, "rescale_all");
}

// A block whose precision is an array: the sizes of its parts, and the arrays beside those of BlockPlace.
typedef struct DenseBlock {
    BlockPlace b;
    const char *stem;
    int ndense;          // variables before the effects
    Expr *batch, *size;  // how many matrices, how large
    const Var *effects;  // of an arrow: independent given the others; or NULL
    Expr *neffects;
    bool by_lanes, direct;  // a matrix for each element; the first variable is the vector that is drawn
    Var *x, *scale;
} DenseBlock;

// Blocks in place of a larger one may have their first variables in common: each has the name and the random numbers of its plate.
static const Var *streams_of(const Update *s) { return s->joint < 0 && s->gaussian.arrow ? s->block[s->nblock - 1] : s->block[0]; }

static DenseBlock dense_block(Lower *p, const Update *s)
{
    DenseBlock d = {.b = {.update = s}, .stem = block_name(p, s->block, s->nblock), .ndense = s->nblock - s->gaussian.arrow};
    BlockPlace *b = &d.b;
    d.size = ex_num(0);
    for (int i = 0; i < d.ndense; i++) d.size = ex_add2(d.size, size_of(s->block[i], s->gaussian.nbatch));
    Var *first = s->block[0];
    d.effects = s->gaussian.arrow ? s->block[s->nblock - 1] : NULL;
    d.batch = ex_num(1);
    d.neffects = d.effects ? size_of(d.effects, 0) : NULL;
    for (int k = 0; k < s->gaussian.nbatch; k++) d.batch = ex_mul2(d.batch, first->dim[k]);
    d.by_lanes = s->gaussian.nbatch || s->gaussian.on_plane;
    const ArrayRole matrices = d.by_lanes ? ROLE_BLOCK : ROLE_SYSTEM;  // one for each element is factored by a lane
    b->J = work_array(p, matrices, words(p, "precision_%s", d.stem), 3, (Expr *[]){d.batch, d.size, d.size});
    b->h = work_array(p, matrices, words(p, "shift_%s", d.stem), 2, (Expr *[]){d.batch, d.size});
    if (d.effects) {
        b->E = work_array(p, ROLE_BLOCK, words(p, "coupling_%s", d.effects->name), 2, (Expr *[]){d.neffects, d.size});
        b->D = work_array(p, ROLE_BLOCK, words(p, "precision_%s", d.effects->name), 1, &d.neffects);
        b->k = work_array(p, ROLE_BLOCK, words(p, "shift_%s", d.effects->name), 1, &d.neffects);
    }
    d.direct = d.ndense == 1;
    d.x = d.direct || d.by_lanes ? first : work_array(p, ROLE_BLOCK, words(p, "joint_%s", d.stem), 1, &d.size);
    d.scale = scale_of(p, s);
    return d;
}

// The draw where rows are fewer than coefficients: by a matrix of the rows.
static void update_few_rows(Lower *p, DenseBlock *d)
{
    BlockPlace *b = &d->b;
    const Update *s = b->update;
    const Rows *rows = s->gaussian.rows;
    b->rows = work_array(p, ROLE_SYSTEM, words(p, "rows_of_%s", d->stem), 2, (Expr *[]){rows->count, d->size});
    b->y = work_array(p, ROLE_BLOCK, words(p, "target_%s", d->stem), 1, (Expr *[]){rows->count});
    b->diagonal = work_array(p, ROLE_BLOCK, words(p, "diagonal_%s", d->stem), 1, &d->size);
    const Var *system = work_array(p, ROLE_SYSTEM, words(p, "system_%s", d->stem), 2, (Expr *[]){rows->count, rows->count});  // is factored
    note(p, "%s with fewer rows than coefficients (Bhattacharya et al. 2016): precision D + R'R, rows of R and targets over their sd",
         s->description->what);
    Kernel *collect = open_kernel(p, KERNEL_TEAM, words(p, "collect_rows_%s", d->stem), "wide");
    collect_rows(p, b, d->x, d->ndense, d->size);
    if (d->scale) put_squares(p, s, d->scale);
    close_kernel(p);
    if (rows->listed) update_listed(p, b, d->x, d->scale, d->ndense, d->size);
    p->when_rows = rows;
    p->when = rows->listed ? IF_SYSTEM : IF_FEW;
    launch_team(p, collect);
    Launch *l = launch_normal(p, d->scale ? LAUNCH_NORMAL_ROWS_SCALED : LAUNCH_NORMAL_ROWS, s->block[0]);
    with_extent(l, rows->count);
    with_extent(l, d->size);
    const Var *names[] = {b->diagonal, b->h, b->rows, b->y, system, d->x, d->scale};
    for (int i = 0; i < 7 && names[i]; i++) with_name(l, names[i]);
    p->when = IF_MANY;
}

// The precision and the linear part: zeros, terms, sums that rows have made.
static Kernel *put_collect(Lower *p, DenseBlock *d)
{
    BlockPlace *b = &d->b;
    const Update *s = b->update;
    Kernel *collect = open_kernel(p, KERNEL_TEAM, words(p, "collect_%s", d->stem), "wide");
    collect->by_one = any_own_array(s);
    put_offsets(p, b, d->ndense, d->size);
    Expr *n = local_ref(b->n);
    put_fill(p, b->J, (Count){3, {d->batch, n, n}}, false);
    put_fill(p, b->h, (Count){2, {d->batch, n}}, false);
    note_count(p, collect, (Count){3, {d->batch, d->size, d->size}});
    if (d->effects) {
        put_fill(p, b->D, (Count){1, {d->neffects}}, false);
        put_fill(p, b->k, (Count){1, {d->neffects}}, false);
        put_fill(p, b->E, (Count){2, {d->neffects, n}}, false);
        note_count(p, collect, (Count){2, {d->neffects, d->size}});
    }
    put_barrier(p);
    for (const BlockTerm *t = s->gaussian.terms; t; t = t->next) accumulate(p, b, t);
    add_row_sums(p, b);
    if (!d->direct && !d->by_lanes) copy_block(p, s, d->x, d->ndense, true);
    if (d->scale) put_squares(p, s, d->scale);
    close_kernel(p);
    return collect;
}

static void launch_dense(Lower *p, const DenseBlock *d)
{
    static const LaunchKind kinds[2][2] = {{LAUNCH_NORMAL_DENSE, LAUNCH_NORMAL_DENSE_SCALED},
                                           {LAUNCH_NORMAL_ARROW, LAUNCH_NORMAL_ARROW_SCALED}};
    const BlockPlace *b = &d->b;
    Launch *l = launch_normal(p, kinds[d->effects != NULL][d->scale != NULL], streams_of(b->update));
    with_extent(l, d->size);
    with_name(l, b->J);
    with_name(l, b->h);
    with_name(l, d->x);
    if (d->effects) {
        with_extent(l, d->neffects);
        with_name(l, b->D);
        with_name(l, b->E);
        with_name(l, b->k);
        with_name(l, d->effects);
    }
    if (d->scale) with_name(l, d->scale);
}

static void update_dense(Lower *p, const Update *s)
{
    DenseBlock d = dense_block(p, s);
    if (s->gaussian.rows) update_few_rows(p, &d);
    update_row_sums(p, s);
    comment_update(p, s);
    if (d.effects) note(p, "  the elements of %s are independent given the others: an arrow", d.effects->name);
    note_scale(p, s);
    const Kernel *collect = put_collect(p, &d);
    launch_team(p, collect);
    if (d.by_lanes) {
        draw_each(p, s, d.b.J, d.b.h, d.size, collect->name);
        return;
    }
    launch_dense(p, &d);
    p->when = ALWAYS;
    if (!d.direct) put_places(p, s, d.x, d.ndense, words(p, "place_%s", d.stem));
    if (d.scale) put_rescale(p, s, d.scale, "rescale");
}

void update_gaussian(Lower *p, const Update *s)
{
    if (s->gaussian.sparse) update_sparse(p, s);
    else if (s->gaussian.diagonal) update_diagonal(p, s);
    else if (s->gaussian.band) update_band(p, s);
    else update_dense(p, s);
}
