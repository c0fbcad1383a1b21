// band.c -- joint normals along a chain (graph/algebra/band.c): precision and shift of the band, its coupling with the border, and
// the draw (device/band.h).
//
//   band_x[panel, t, a, l, b]   -J between element a of node t and element b of node t - lag + l: rows of the band in order, (lag + 1)*w
//   numbers for each element, the last w of them its own node shift_x[panel, t, a]        h border_x[panel, t, a, j]    -J with element j
//   of the border precision_mu, shift_mu      of the border, as of any joint normal
//
// Needs: an update with a band.     Gives: kernels that collect these, draw, and put the draw in its places if it is made elsewhere.
#include <stdlib.h>
#include "lower.h"

typedef struct BandPlace {
    const Update *update;
    const Band *band;
    Var *B, *k, *E, *A, *h;  // E, A, h: NULL if there is no border
    Var *x, *z;              // what is drawn, of the chains and of the border
    Expr *row;               // numbers of an element in the band
    int nborder;             // variables
} BandPlace;

enum { MOST_SUBS = 3 * MAX_RANK };

typedef struct Subs {
    int n;
    Expr *at[MOST_SUBS], *extent[MOST_SUBS];
} Subs;  // that pick a place

static int place_of(const BandPlace *b, const Expr *ref)
{
    int i = 0;
    while (b->band->var[i] != ref->var) i++;
    return i;
}

static bool on_chain(const BandPlace *b, const Expr *ref) { return place_of(b, ref) < b->band->nchain; }

static int add_sub(Subs *s, const Expr *ref, int k)
{
    s->at[s->n] = ref->args[k];
    s->extent[s->n] = ref->var->dim[k];
    return s->n++;
}

// The place of an element among those of its node, or of the border, from 0, in terms of subscripts first, ... of s.
static Expr *inner_place(const BandPlace *b, const Expr *ref, const Subs *s, int first)
{
    const int i = place_of(b, ref);
    const int n = i < b->band->nchain ? b->band->chain[i].ninner : ref->nargs;
    Expr *at = ex_num(0);
    for (int k = 0; k < n; k++) at = ex_add2(ex_mul2(at, s->extent[first + k]), ex_sub(s->at[first + k], ex_num(1)));
    return ex_add2(b->band->offset[i], at);
}

static void add_inner(const BandPlace *b, Subs *s, const Expr *ref)
{
    const int i = place_of(b, ref);
    if (i < b->band->nchain)
        for (int k = 0; k < b->band->chain[i].ninner; k++) add_sub(s, ref, b->band->chain[i].inner[k]);
    else
        for (int k = 0; k < ref->nargs; k++) add_sub(s, ref, k);
}

// Where an instance of a term adds to: subscripts over the panel, along, then those within the node of the first element and of the second.
typedef struct Entry {
    Subs subs;
    int npanel, second;
} Entry;

static Entry entry_of(const BandPlace *b, const Expr *later, const Expr *other)
{
    Entry e = {0};
    const ChainVar *c = &b->band->chain[place_of(b, later)];
    for (int k = 0; k < c->npanel; k++) add_sub(&e.subs, later, c->panel[k]);
    e.npanel = c->npanel;
    add_sub(&e.subs, later, c->along);
    add_inner(b, &e.subs, later);
    e.second = e.subs.n;
    if (other) add_inner(b, &e.subs, other);
    return e;
}

static Place place_in(Lower *p, const BandPlace *b, Var *array, const Entry *e, Expr *last)
{
    Arena *a = p->g->arena;
    Place at = {.array = array};
    Expr **subs = arena_copy(a, e->subs.at, sizeof *subs * (size_t)e->subs.n);
    // of the panel and along: what a subscript that may be outside is looked at by
    Var *of = local_new(a, b->update->block[0]->name);
    of->rank = e->npanel + 1;
    for (int k = 0; k <= e->npanel; k++) of->dim[k] = e->subs.extent[k];
    if (e->npanel) at.sub[at.n++] = (Sub){.of = of, .first = 0, .n = e->npanel, .at = subs, .extent = array->dim[0]};
    at.sub[at.n++] = (Sub){.of = of, .first = e->npanel, .n = 1, .at = subs + e->npanel, .extent = of->dim[e->npanel]};
    if (!ex_is_num(array->dim[array->rank - 1], 1)) {
        Var *within = local_new(a, b->update->block[0]->name);
        within->rank = 1;
        within->dim[0] = array->dim[array->rank - 1];
        Expr **one = NEW_N(a, Expr *, 1);
        *one = ex_add2(last, ex_num(1));
        at.sub[at.n++] = (Sub){.of = within, .n = 1, .at = one, .extent = within->dim[0]};
    }
    return at;
}

// x[t + 1], t in 1:T - 1, is x[t], t in 2:T: a place for each iteration.
static void offset_loop(BlockTerm *t, const Expr *at)
{
    if (at->kind != EX_ADD || at->nargs != 2 || at->args[0]->kind != EX_NUM || at->args[1]->kind != EX_INDEX) return;
    Index *from = at->args[1]->index;
    int k = 0;
    while (k < t->loops.n && t->loops.index[k] != from) k++;
    if (k == t->loops.n) return;
    for (int i = 0; i < t->loops.n; i++)
        if (ex_mentions_index(t->loops.index[i]->lo, from) || ex_mentions_index(t->loops.index[i]->hi, from)) return;
    Index *to = index_new(from->name, ex_add2(from->lo, at->args[0]), ex_add2(from->hi, at->args[0]));
    Expr *back = ex_sub(ex_index(to), at->args[0]);
    t->loops.index[k] = to;
    t->coefficient = ex_replace_index(t->coefficient, from, back);
    if (t->loops.guard) t->loops.guard = ex_replace_index(t->loops.guard, from, back);
    for (int r = 0; r < t->degree; r++) t->ref[r] = ex_replace_index(t->ref[r], from, back);
}

static bool turns_with(const Expr *e, const Loops *l)
{
    for (int i = 0; i < l->n; i++)
        if (ex_mentions_index(e, l->index[i])) return true;
    return false;
}

// Sums of data leave the sweep: then the loops are over places. false: there are none.
static bool take_sums(Lower *p, BlockTerm *t, Subs *s)
{
    Keys keys = {0};
    Index *fresh[MAX_RANK];
    int plain = 0;
    for (int k = 0; k < s->n; k++) {
        if (!turns_with(s->at[k], &t->loops)) continue;
        bool seen = false;
        for (int i = 0; i < keys.n; i++) seen |= keys.key[i] == s->at[k];
        if (seen) continue;
        if (keys.n == MAX_RANK) return false;
        keys.key[keys.n] = s->at[k];
        keys.extent[keys.n] = s->extent[k];
        fresh[keys.n] = index_of_key(p, index_written(s->at[k]), s->extent[k], fresh, keys.n);
        keys.at[keys.n] = ex_index(fresh[keys.n]);
        plain += s->at[k]->kind == EX_INDEX;
        keys.n++;
    }
    if (plain == keys.n && keys.n == t->loops.n) return false;  // nothing to sum
    Expr *h = hoist_sum(&p->statistics, &keys, &t->loops, t->coefficient);
    if (!h) return false;
    t->coefficient = h;
    t->loops = (Loops){.n = keys.n};
    for (int i = 0; i < keys.n; i++) {
        t->loops.index[i] = fresh[i];
        for (int k = 0; k < s->n; k++)
            if (s->at[k] == keys.key[i]) s->at[k] = keys.at[i];
    }
    return true;
}

static void put_sums(Lower *p, const BlockTerm *t, const Subs *s, Place at, double times)
{
    Expr **target = arena_copy(p->g->arena, s->at, sizeof *target * (size_t)s->n),
         **extent = arena_copy(p->g->arena, s->extent, sizeof *extent * (size_t)s->n);
    Node *sum = enter_nest(p, NODE_REDUCE, &t->loops, s->n, target, extent);
    put_assign(p, ASSIGN_ADD, at, ex_mul2(ex_num(times), t->coefficient));
    leave(p, sum);
}

// lag + 1 nodes in a row of the band: the place of element `second` of the node `lag` before, in the row of element `first`.
static Expr *in_band(const BandPlace *b, Expr *first, Expr *second, Expr *lag)
{
    return ex_add(3, (Expr *[]){ex_mul2(first, b->row), ex_mul2(ex_sub(ex_num(b->band->lag), lag), b->band->width), second});
}

static Expr *along_of(const BandPlace *b, const Expr *ref) { return ref->args[b->band->chain[place_of(b, ref)].along]; }

static void exchange(BlockTerm *t)
{
    Expr *swap = t->ref[0];
    t->ref[0] = t->ref[1];
    t->ref[1] = swap;
}

// x[t - j], t in a:b: places s = t - j in 1:T, each with the iterations of j for which s + j lies in a:b.
static void loop_over_places(const BandPlace *b, BlockTerm *t)
{
    Expr *at = along_of(b, t->ref[0]);
    if (at->kind != EX_ADD) return;
    for (int k = 0; k < t->loops.n; k++) {
        Index *from = t->loops.index[k];
        Expr *rest = ex_sub(at, ex_index(from));
        bool inner = ex_mentions_index(rest, from);
        for (int i = 0; i < t->loops.n; i++)
            inner |= ex_mentions_index(t->loops.index[i]->lo, from) || ex_mentions_index(t->loops.index[i]->hi, from);
        if (inner) continue;
        Index *to = index_new(from->name, ex_num(1), b->band->length);
        Expr *back = ex_sub(ex_index(to), rest);
        t->loops.index[k] = to;
        for (int i = k; i > 0; i--) {  // outside the loops that its bounds depend on
            t->loops.index[i] = t->loops.index[i - 1];
            t->loops.index[i - 1] = to;
        }
        t->coefficient = ex_replace_index(t->coefficient, from, back);
        if (t->loops.guard) t->loops.guard = ex_replace_index(t->loops.guard, from, back);
        for (int r = 0; r < t->degree; r++) t->ref[r] = ex_replace_index(t->ref[r], from, back);
        t->loops.guard = ex_both(ex_both(ex_call2("<=", from->lo, back), ex_call2("<=", back, from->hi)), t->loops.guard);
        return;
    }
}

// Whether the other element of a pair is met with the first in its place: x[t - j]*x[t - k], j and k in the same range.
static bool met_both_ways(const BlockTerm *t)
{
    for (int i = 0; i < t->loops.n; i++)
        for (int k = i + 1; k < t->loops.n; k++) {
            Index *a = t->loops.index[i], *b = t->loops.index[k], *c = index_new(a->name, a->lo, a->hi);
            if (a->lo != b->lo || a->hi != b->hi) continue;
            Expr *const held[] = {t->ref[0], t->ref[1], t->coefficient, t->loops.guard ? t->loops.guard : ex_num(1)}, *other[4];
            for (int m = 0; m < 4; m++)
                other[m] = ex_replace_index(ex_replace_index(ex_replace_index(held[m], a, ex_index(c)), b, ex_index(a)), c, ex_index(b));
            if (other[0] == held[1] && other[1] == held[0] && other[2] == held[2] && other[3] == held[3]) return true;
        }
    return false;
}

// Of two elements of the chain, the first `lag` nodes behind the second: 0, or more than that.
static void put_pair(Lower *p, const BandPlace *b, BlockTerm t, Expr *lag, double times)
{
    const bool fixed = lag->kind == EX_NUM, same = fixed && t.ref[0] == t.ref[1];
    if (fixed) offset_loop(&t, along_of(b, t.ref[0]));
    Entry e = entry_of(b, t.ref[0], same ? NULL : t.ref[1]);
    const int at_lag = e.subs.n;
    if (!fixed) {  // picks a place of the row
        e.subs.at[e.subs.n] = lag;
        e.subs.extent[e.subs.n++] = ex_num(b->band->lag);
    }
    if (!take_sums(p, &t, &e.subs) && !fixed) {
        loop_over_places(b, &t);
        e = entry_of(b, t.ref[0], t.ref[1]);
        e.subs.at[e.subs.n] = ex_sub(along_of(b, t.ref[0]), along_of(b, t.ref[1]));
        e.subs.extent[e.subs.n++] = ex_num(b->band->lag);
    }
    if (!fixed) lag = e.subs.at[at_lag];
    Expr *first = inner_place(b, t.ref[0], &e.subs, e.npanel + 1), *second = same ? first : inner_place(b, t.ref[1], &e.subs, e.second);
    put_sums(p, &t, &e.subs, place_in(p, b, b->B, &e, in_band(b, first, second, lag)), same ? -2 * times : -times);
    if (!same && fixed && lag->number == 0) put_sums(p, &t, &e.subs, place_in(p, b, b->B, &e, in_band(b, second, first, lag)), -times);
}

// Where `apart`, j - k, is 0: k is j; false: their ranges differ, or it is another distance.
static bool meet(BlockTerm *t, Expr *apart)
{
    for (int i = 0; i < t->loops.n; i++)
        for (int k = 0; k < t->loops.n; k++) {
            Index *j = t->loops.index[i], *other = t->loops.index[k];
            if (i == k || j->lo != other->lo || j->hi != other->hi || ex_sub(ex_index(j), ex_index(other)) != apart) continue;
            for (int m = 0; m < t->loops.n; m++)
                if (ex_mentions_index(t->loops.index[m]->lo, other) || ex_mentions_index(t->loops.index[m]->hi, other)) return false;
            t->coefficient = ex_replace_index(t->coefficient, other, ex_index(j));
            if (t->loops.guard) t->loops.guard = ex_replace_index(t->loops.guard, other, ex_index(j));
            for (int r = 0; r < t->degree; r++) t->ref[r] = ex_replace_index(t->ref[r], other, ex_index(j));
            t->loops.n--;
            for (int m = k; m < t->loops.n; m++) t->loops.index[m] = t->loops.index[m + 1];
            return true;
        }
    return false;
}

// A distance that varies: the elements further on and behind, and the same.
static void put_pairs(Lower *p, const BandPlace *b, const BlockTerm *from, int least, int most)
{
    BlockTerm t = *from;
    Expr *apart = ex_sub(along_of(b, t.ref[0]), along_of(b, t.ref[1])), *none = ex_num(0);
    Expr *const guard = t.loops.guard;
    const bool both = least < 0 && most > 0 && met_both_ways(&t);
    if (most > 0) {
        if (least <= 0) t.loops.guard = ex_both(guard, ex_call2("<", none, apart));
        put_pair(p, b, t, apart, both ? 2 : 1);
    }
    if (least <= 0 && most >= 0) {
        BlockTerm same = *from;
        if (!meet(&same, apart)) same.loops.guard = ex_both(guard, ex_call2("==", apart, none));
        // inner subscripts are the same (graph/algebra/band.c)
        if (same.ref[0]->var == same.ref[1]->var) same.ref[1] = same.ref[0];
        put_pair(p, b, same, none, 1);
    }
    if (least < 0 && !both) {
        t.loops.guard = most >= 0 ? ex_both(guard, ex_call2("<", apart, none)) : guard;
        exchange(&t);
        put_pair(p, b, t, ex_neg(apart), 1);
    }
}

static void accumulate_band(Lower *p, const BandPlace *b, const BlockTerm *from)
{
    BlockTerm t = *from;
    if (t.degree == 2 && !on_chain(b, t.ref[0])) exchange(&t);
    if (t.degree == 2 && on_chain(b, t.ref[1])) {
        int least, most;
        // graph/algebra/band.c has looked
        if (!band_apart(along_of(b, t.ref[0]), along_of(b, t.ref[1]), &least, &most)) abort();
        if (least < most) {
            put_pairs(p, b, &t, least, most);
            return;
        }
        if (least < 0) exchange(&t);
        put_pair(p, b, t, ex_num(least < 0 ? -least : least), 1);
        return;
    }
    offset_loop(&t, along_of(b, t.ref[0]));
    Entry e = entry_of(b, t.ref[0], t.degree == 2 ? t.ref[1] : NULL);
    take_sums(p, &t, &e.subs);
    Expr *first = inner_place(b, t.ref[0], &e.subs, e.npanel + 1);
    if (t.degree == 1) put_sums(p, &t, &e.subs, place_in(p, b, b->k, &e, first), 1);
    else
        put_sums(p, &t, &e.subs,
                 place_in(p, b, b->E, &e, ex_add2(ex_mul2(first, b->band->border), inner_place(b, t.ref[1], &e.subs, e.second))), -1);
}

// The variables into the arrays in the order of the draw, or back.
static void copy_chain(Lower *p, const BandPlace *b, Var *x, Var *z, bool gather)
{
    for (int i = 0; i < b->band->nchain + b->nborder; i++) {
        Var *v = b->band->var[i];
        Loops l = {.n = v->rank};
        Expr *element = v->rank ? var_element((Graph *)p->g, v, l.index) : ex_ref(v, 0, NULL);
        Expr *here;
        if (i < b->band->nchain) {
            if (!x) continue;
            const Entry e = entry_of(b, element, NULL);
            Expr *panel = ex_num(0);
            for (int k = 0; k < e.npanel; k++) panel = ex_add2(ex_mul2(panel, e.subs.extent[k]), ex_sub(e.subs.at[k], ex_num(1)));
            here = ex_ref(x, 3,
                          (Expr *[]){ex_add2(panel, ex_num(1)), e.subs.at[e.npanel],
                                     ex_add2(inner_place(b, element, &e.subs, e.npanel + 1), ex_num(1))});
        } else {
            Subs subs = {0};
            add_inner(b, &subs, element);
            here = ex_ref(z, 1, (Expr *[]){ex_add2(inner_place(b, element, &subs, 0), ex_num(1))});
        }
        const Place at = place_element(here);
        if (!v->rank) {
            Node *lane = enter(p, NODE_LANE);
            put_assign(p, ASSIGN_SET, gather ? at : place_element(element), gather ? element : here);
            leave(p, lane);
            continue;
        }
        Expr **target = (Expr **)arena_copy(p->g->arena, element->args, sizeof *target * (size_t)v->rank);
        Node *nest = enter_nest(p, NODE_NEST, &l, v->rank, target, NULL);
        put_assign(p, ASSIGN_SET, gather ? at : place_element(element), gather ? element : here);
        leave(p, nest);
    }
}

// A size that the program's text has as a number, for which a routine is compiled of its own.
enum { BAND_UNROLLED = 4 };

static int known_size(double times, const Expr *size, int unknown)
{
    return size->kind == EX_NUM && times * size->number <= BAND_UNROLLED ? (int)(times * size->number) : unknown;
}

static void make_arrays(Lower *p, BandPlace *b, const char *stem)
{
    const Band *w = b->band;
    Expr *const band[] = {w->panels, w->length, ex_mul2(b->row, w->width)}, *const chain[] = {w->panels, w->length, w->width},
                *const edge[] = {w->panels, w->length, ex_mul2(w->width, w->border)};
    b->B = work_array(p, ROLE_BLOCK, words(p, "band_%s", stem), 3, band);
    b->k = work_array(p, ROLE_BLOCK, words(p, "shift_%s", stem), 3, chain);
    b->x = w->in_place ? w->var[0] : work_array(p, ROLE_BLOCK, words(p, "joint_%s", stem), 3, chain);
    if (b->nborder == 0) return;
    const char *name = w->var[w->nchain]->name;
    b->E = work_array(p, ROLE_BLOCK, words(p, "border_%s", stem), 3, edge);
    b->A = work_array(p, ROLE_BLOCK, words(p, "precision_%s", name), 3, (Expr *[]){ex_num(1), w->border, w->border});
    b->h = work_array(p, ROLE_BLOCK, words(p, "shift_%s", name), 2, (Expr *[]){ex_num(1), w->border});
    b->z = work_array(p, ROLE_BLOCK, words(p, "joint_%s", name), 1, &w->border);
}

// Zeros, then the terms of the chains and of the border.
static void collect_band(Lower *p, BandPlace *b, const char *stem, int ninnovations)
{
    const Update *s = b->update;
    const Band *w = b->band;
    bool whole = false;
    for (const BlockTerm *t = s->gaussian.terms; t; t = t->next) whole |= needs_own_array(t->coefficient, &t->loops);
    Kernel *collect = open_kernel(p, KERNEL_TEAM, words(p, "collect_%s", stem), "wide");
    collect->by_one = whole;
    BorderPlace edges = border_place(p, s, ninnovations, b->A, b->h, w->border, w->offset + w->nchain);
    const Count band = {3, {w->panels, w->length, ex_mul2(b->row, w->width)}};
    put_fill(p, b->B, band, false);
    put_fill(p, b->k, (Count){3, {w->panels, w->length, w->width}}, false);
    note_count(p, collect, band);
    if (b->nborder > 0) {
        put_fill(p, b->E, (Count){3, {w->panels, w->length, ex_mul2(w->width, w->border)}}, false);
        put_fill(p, b->A, (Count){2, {w->border, w->border}}, false);
        put_fill(p, b->h, (Count){1, {w->border}}, false);
    }
    put(p, NODE_BARRIER);
    for (const BlockTerm *t = s->gaussian.terms; t; t = t->next)
        if (on_chain(b, t->ref[0]) || (t->degree == 2 && on_chain(b, t->ref[1]))) accumulate_band(p, b, t);
        else border_entry(p, &edges, t);
    if (!w->in_place || b->nborder > 0) copy_chain(p, b, w->in_place ? NULL : b->x, b->z, true);
    close_kernel(p);
    launch_team(p, collect);
}

static void draw_chains(Lower *p, const BandPlace *b, const char *stem)
{
    const Band *w = b->band;
    Kernel *draw = open_kernel(p, KERNEL_TEAM, words(p, "draw_%s", stem), "wide");
    Node *d = put(p, NODE_DRAW_BAND);
    d->band.update = b->update;
    d->band.B = b->B;
    d->band.k = b->k;
    d->band.E = b->E;
    d->band.A = b->A;
    d->band.h = b->h;
    d->band.x = b->x;
    d->band.z = b->z;
    d->band.block = known_size(w->lag, w->width, 0);
    d->band.edge = b->z ? known_size(1, w->border, -1) : 0;
    note_count(p, draw, (Count){3, {w->panels, w->length, w->width}});
    close_kernel(p);
    launch_team(p, draw);
}

static void place_chains(Lower *p, BandPlace *b, const char *stem)
{
    const Update *s = b->update;
    Kernel *place = open_kernel(p, KERNEL_TEAM, words(p, "place_%s", stem), "wide");
    copy_chain(p, b, b->band->in_place ? NULL : b->x, b->z, false);
    Loops loops;
    Expr *ref, *value;
    for (int k = 0; s->gaussian.innovations && innovation_at(s->gaussian.innovations, k, &loops, &ref, &value); k++) {
        if (k == 0) put(p, NODE_BARRIER);
        Node *n = loops.n ? enter_nest(p, NODE_NEST, &loops, ref->nargs, ref->args, NULL) : enter(p, NODE_LANE);
        put_assign(p, ASSIGN_SET, place_element(ref), value);
        leave(p, n);
    }
    close_kernel(p);
    launch_team(p, place);
}

void update_band(Lower *p, const Update *s)
{
    const Band *w = s->gaussian.band;
    const char *stem = block_name(p, s->block, s->nblock);
    BandPlace b = {.update = s, .band = w, .row = ex_mul2(ex_num(w->lag + 1), w->width)};
    int ninnovations = w->nchain;
    if (s->gaussian.innovations) innovation_vars(s->gaussian.innovations, &ninnovations);
    b.nborder = s->nblock - ninnovations;
    make_arrays(p, &b, stem);
    comment_update(p, s);
    note(p, "  %s", s->description->elements);
    collect_band(p, &b, stem, ninnovations);
    note(p, "The band is factored, the border drawn with the chain integrated out, then the chain given the border");
    draw_chains(p, &b, stem);
    if (w->in_place && b.nborder == 0 && !s->gaussian.innovations) return;
    note(p, "What was drawn jointly, to its places");
    place_chains(p, &b, stem);
}
