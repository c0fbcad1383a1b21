// table.c -- the table of all expressions: each is there once, so that equal ones are the same pointer. Loop indices; numbers, references.
#include <string.h>
#include "table.h"
#include "questions.h"

enum { FIRST_SMALL = -16, SMALL = 64 };  // whole numbers that are found without a look into the table: most that are asked for

static struct {
    Arena *arena;
    Expr *small[SMALL];
    Expr **slot;
    unsigned size, count;
    int next_id, next_index, nbound, bound_size;
    Index **bound;
} table;

void expr_start(Arena *a)
{
    table.arena = a;
    table.size = 1u << 12;
    table.slot = NEW_N(a, Expr *, table.size);
    table.count = 0;
    table.next_id = table.next_index = table.nbound = table.bound_size = 0;
    table.bound = NULL;
    memset(table.small, 0, sizeof table.small);
    questions_start();
}

ExprMark expr_mark(void) { return (ExprMark){table.count, table.next_id, table.next_index}; }

void expr_forget(ExprMark since)
{
    for (unsigned i = 0; i < table.size && table.next_id > since.next_id; i++)
        for (Expr **at = &table.slot[i]; *at;) {
            Expr *e = *at;
            if (e->formula && e->formula->id >= since.next_id) e->formula = NULL;
            if (e->id >= since.next_id) *at = e->chain;
            else at = &e->chain;
        }
    for (int k = 0; k < SMALL; k++)
        if (table.small[k] && table.small[k]->id >= since.next_id) table.small[k] = NULL;
    for (int k = 0; k < table.nbound; k++)
        if (table.bound[k] && table.bound[k]->id >= since.next_index) table.bound[k] = NULL;
    table.count = since.count;
    table.next_id = since.next_id;
    table.next_index = since.next_index;
}

static unsigned mix(unsigned h, uint64_t v)
{
    v *= 0x9E3779B97F4A7C15ull;  // of a double like 0.5 only the first bits are not 0: they reach all places
    v = (v ^ v >> 32) * 0x9E3779B97F4A7C15ull;
    return (h ^ (unsigned)(v >> 32)) * 0x01000193u + (unsigned)v;
}

static unsigned hash_of(const Expr *e)
{
    uint64_t bits;
    memcpy(&bits, &e->number, sizeof bits);
    unsigned h = mix(17u + (unsigned)e->kind, bits);
    h = mix(h, (uintptr_t)e->name);
    h = mix(h, (uintptr_t)e->var);  // not its number: local variables of kernels have one for all
    h = mix(h, e->index ? (uint64_t)e->index->id + 1 : 0);
    for (int i = 0; i < e->nargs; i++) h = mix(h, (uint64_t)e->args[i]->id);
    return h;
}

static bool same(const Expr *a, const Expr *b)
{
    if (a->hash != b->hash || a->kind != b->kind || a->nargs != b->nargs || a->name != b->name || a->var != b->var ||
        a->index != b->index || memcmp(&a->number, &b->number, sizeof a->number) != 0)
        return false;
    for (int i = 0; i < a->nargs; i++)
        if (a->args[i] != b->args[i]) return false;
    return true;
}

static void grow(void)
{
    unsigned size = table.size * 2;
    Expr **slot = NEW_N(table.arena, Expr *, size);
    for (unsigned i = 0; i < table.size; i++)
        for (Expr *e = table.slot[i], *next; e; e = next) {
            next = e->chain;
            e->chain = slot[e->hash & (size - 1)];
            slot[e->hash & (size - 1)] = e;
        }
    table.slot = slot;
    table.size = size;
}

// The one expression equal to `draft`; draft's arguments are copied.
Expr *expr_cons(Expr draft)
{
    draft.hash = hash_of(&draft);
    for (Expr *e = table.slot[draft.hash & (table.size - 1)]; e; e = e->chain)
        if (same(e, &draft)) return e;
    if (++table.count > table.size) grow();
    Expr *e = NEW(table.arena, Expr);
    Expr **args = draft.args;
    *e = draft;
    e->id = table.next_id++;
    e->args = NEW_N(table.arena, Expr *, draft.nargs + 1);
    e->vars = draft.var ? 1ull << (draft.var->id & 63) : 0;
    e->indices = draft.kind == EX_INDEX ? 1ull << (draft.index->id & 63) : 0;
    e->size = 1;
    e->seen = e->met[0] = e->met[1] = e->met[2] = e->kept = 0;
    e->formula = NULL;
    e->extent = false;
    e->known = e->diverges[0] = e->diverges[1] = 0;
    e->loose = draft.kind == EX_INDEX ? draft.index->height : 0;
    e->height = 0;
    for (int i = 0; i < draft.nargs; i++) {
        e->args[i] = args[i];
        e->vars |= args[i]->vars;
        e->indices |= args[i]->indices;
        e->size += args[i]->size;
        if (args[i]->height > e->height) e->height = args[i]->height;
        const bool binds =
            (draft.kind == EX_REDUCE || draft.kind == EX_ARRAY) && i == draft.nargs - 1 && args[i]->loose == draft.index->height;
        if (!binds && args[i]->loose > e->loose) e->loose = args[i]->loose;
    }
    if (e->kind == EX_REDUCE || e->kind == EX_ARRAY) e->height = e->index->height;
    e->chain = table.slot[e->hash & (table.size - 1)];
    table.slot[e->hash & (table.size - 1)] = e;
    return e;
}

// What an index that begins at lo is never below. Dimensions of arrays (NULL) begin at 1.
int index_least(const Expr *lo)
{
    if (!lo) return 1;
    if (lo->kind == EX_NUM) return lo->number >= 1 ? 1 : lo->number >= 0 ? 0 : -1;
    if (lo->kind == EX_INDEX) return lo->index->least;
    if (!ex_positive(lo)) return -1;
    const bool one =
        lo->kind == EX_ADD ? lo->args[0]->kind == EX_NUM && lo->args[0]->number >= 1 : lo->kind == EX_REF && lo->var->lower_number >= 1;
    return one ? 1 : 0;
}

Index *index_new(const char *name, Expr *lo, Expr *hi)
{
    Index *i = NEW(table.arena, Index);
    *i = (Index){.name = name, .lo = lo, .hi = hi, .id = table.next_index++, .least = index_least(lo)};
    return i;
}

bool begins_below(const Expr *lo)
{
    if (lo->kind != EX_ADD)
        return lo->kind == EX_NUM ? lo->number < 1 : lo->kind == EX_MUL && lo->args[0]->kind == EX_NUM && lo->args[0]->number < 0;
    bool all = true;
    for (int i = lo->args[0]->kind == EX_NUM; i < lo->nargs; i++) all &= begins_below(lo->args[i]);
    return all;
}

// The canonical index of reductions of this height, over values from `least` on.
Index *index_bound(int height, int least)
{
    static const char *const names[] = {"", "j", "k", "l", "m", "n"};
    const int at = 3 * height + least + 1;
    while (table.nbound <= at) {
        ROOM(table.arena, table.bound, table.nbound, table.bound_size);
        table.bound[table.nbound++] = NULL;
    }
    if (!table.bound[at]) {
        Index *i = index_new(height <= 5 ? intern(names[height]) : intern(arena_printf(table.arena, "j%d", height)), NULL, NULL);
        i->height = height;
        i->least = least;
        table.bound[at] = i;
    }
    return table.bound[at];
}

// ---- leaves ----

Expr *ex_num(double v)
{
    const int k = v >= FIRST_SMALL && v < FIRST_SMALL + SMALL ? (int)v - FIRST_SMALL : -1;
    const bool small = k >= 0 && v == k + FIRST_SMALL;
    if (small && table.small[k]) return table.small[k];
    Expr *e = expr_cons((Expr){.kind = EX_NUM, .number = v == 0 ? 0 : v});
    if (small) table.small[k] = e;
    return e;
}

Expr *ex_index(Index *i) { return expr_cons((Expr){.kind = EX_INDEX, .index = i}); }

Expr *ex_ref(Var *v, int n, Expr *const *subscripts)
{
    return expr_cons((Expr){.kind = EX_REF, .var = v, .nargs = n, .args = (Expr **)subscripts});
}
