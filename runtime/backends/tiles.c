// tiles.c -- tiles.h: the symbolic factorisation of a matrix of tiles (Liu 1990, The role of elimination trees in sparse factorization,
// SIAM Journal on Matrix Analysis 11).
#include "tiles.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

typedef struct List {
    int *at;
    long n, size;
} List;

static bool push(List *l, int v)
{
    if (l->n == l->size) {
        const long size = l->size ? 2 * l->size : 64;
        int *at = realloc(l->at, sizeof *at * (size_t)size);
        if (!at) return false;
        l->at = at;
        l->size = size;
    }
    l->at[l->n++] = v;
    return true;
}

static int ascending(const void *a, const void *b) { return (*(const int *)a > *(const int *)b) - (*(const int *)a < *(const int *)b); }

static void *room(size_t count, size_t size, bool *good)
{
    void *p = calloc(count + 1, size);
    *good = *good && p;
    return p;
}

// The tree of eliminations of single elements: the parent of each place of the order, or -1 (Liu 1986, ACM Transactions on Mathematical
// Software 12).
static bool find_parents(const GmTiles *t, const int *first, const int *row, const int *at, int *parent)
{
    const long n = t->n;
    bool good = true;
    int *begin = room((size_t)n + 1, sizeof *begin, &good), *before = room((size_t)first[n], sizeof *before, &good),
        *ancestor = room((size_t)n, sizeof *ancestor, &good);
    for (int pass = 0; pass < 2 && good; pass++) {  // those before each place that it shares an entry with
        for (long j = 0; j < n; j++)
            for (long e = first[j]; e < first[j + 1]; e++) {
                const int p = at[row[e]], q = at[j], k = p > q ? p : q, i = p > q ? q : p;
                if (pass == 0) begin[k + 1]++;
                else before[begin[k]++] = i;
            }
        for (long k = 0; k < n && pass == 0; k++) begin[k + 1] += begin[k];
    }
    for (long k = 0; k < n && good; k++) {  // begin[k] is where those of k end
        parent[k] = ancestor[k] = -1;
        for (long e = k ? begin[k - 1] : 0; e < begin[k]; e++)
            for (int i = before[e]; i >= 0 && i < k;) {
                const int next = ancestor[i];
                ancestor[i] = (int)k;
                if (next < 0) parent[i] = (int)k;
                i = next;
            }
    }
    free(begin);
    free(before);
    free(ancestor);
    return good;
}

// Cuts the order, a postorder of the tree, into tiles: subtrees that fit, with siblings of theirs; above them elements one after the other.
// A tile with parts of two larger subtrees would make one wait for the other. Where each tile begins; how many there are.
static long cut(long n, const int *parent, int *descendant, int *begin)
{
    // of the last tile: where it begins; whether what its elements wait for is in it; the parent of its subtrees
    long tiles = 0, a = 0;
    bool closed = true;
    int up = -1;
    for (long k = 0; k < n; k++) descendant[k] = (int)k;
    for (long k = 0; k < n; k++)
        if (parent[k] >= 0 && descendant[k] < descendant[parent[k]]) descendant[parent[k]] = descendant[k];
    for (long k = 0, next; k < n; k = next) {
        const bool leaf = descendant[k] == k;
        next = k + 1;
        bool joins = k > a && k - a < DENSE_TILE;
        if (leaf) {
            long most = joins ? DENSE_TILE - (k - a) : DENSE_TILE, root = k;
            for (int again = 0; again < 2; again++) {
                root = k;
                while (parent[root] >= 0 && descendant[parent[root]] == k && parent[root] - k < most) root = parent[root];
                joins = joins && closed && parent[root] == up;
                if (joins || most == DENSE_TILE) break;
                most = DENSE_TILE;  // a tile of its own
            }
            next = root + 1;
            if (!joins) closed = true;
            up = parent[root];
        } else if (joins && closed && descendant[k] >= a) up = parent[k];
        else {
            joins = joins && (!closed || k - a < DENSE_TILE / 2);
            closed = false;
        }
        if (!joins) begin[tiles++] = (int)(a = k);
    }
    return tiles;
}

// Rows of tiles of each column of the factor, and the parent of each column, its first row under the diagonal.
static bool fill_in(GmTiles *t, const int *first, const int *row, List *column, int *parent)
{
    const int m = (int)t->tiles;
    bool good = true;
    List *given = room((size_t)m, sizeof *given, &good);
    int *seen = room((size_t)m, sizeof *seen, &good), *child = room((size_t)m, sizeof *child, &good),
        *sibling = room((size_t)m, sizeof *sibling, &good);
    for (long j = 0; j < t->n && good; j++)
        for (long e = first[j]; e < first[j + 1] && good; e++) {
            const int p = t->place[row[e]] / DENSE_TILE, q = t->place[j] / DENSE_TILE, i = p > q ? p : q, k = p > q ? q : p;
            List *l = &given[k];
            if (i != k && (l->n == 0 || l->at[l->n - 1] != i)) good = push(l, i);
        }
    for (int k = 0; k < m && good; k++) child[k] = seen[k] = -1;
    for (int k = 0; k < m && good; k++) {
        List *l = &column[k];
        for (long e = 0; e < given[k].n && good; e++)
            if (seen[given[k].at[e]] != k) {
                seen[given[k].at[e]] = k;
                good = push(l, given[k].at[e]);
            }
        for (int c = child[k]; c >= 0; c = sibling[c])
            for (long e = 0; e < column[c].n && good; e++)
                if (column[c].at[e] != k && seen[column[c].at[e]] != k) {
                    seen[column[c].at[e]] = k;
                    good = push(l, column[c].at[e]);
                }
        if (l->n) qsort(l->at, (size_t)l->n, sizeof *l->at, ascending);
        parent[k] = l->n ? l->at[0] : -1;
        if (parent[k] >= 0) {
            sibling[k] = child[parent[k]];
            child[parent[k]] = k;
        }
    }
    for (int k = 0; given && k < m; k++) free(given[k].at);
    free(given);
    free(seen);
    free(child);
    free(sibling);
    return good;
}

// Columns by height above the leaves of the tree, and where each stands among them.
static void by_height(GmTiles *t, const int *parent, int *height, int *columns, int *rank)
{
    const int m = (int)t->tiles;
    for (int k = 0; k < m; k++)
        if (parent[k] >= 0 && height[parent[k]] <= height[k]) height[parent[k]] = height[k] + 1;
    int most = 0;
    for (int k = 0; k < m; k++) most = height[k] > most ? height[k] : most;
    t->height = most + 1;
    int *count = rank;  // of columns of a height
    memset(count, 0, sizeof *count * (size_t)m);
    for (int k = 0; k < m; k++) count[height[k]]++;
    for (int h = 0, at = 0; h <= most; h++) {
        const int these = count[h];
        count[h] = at;
        at += these;
    }
    for (int k = 0; k < m; k++) columns[count[height[k]]++] = k;
    for (int n = 0; n < m; n++) rank[columns[n]] = n;
}

static long tile_of(const GmTiles *t, int i, int k)
{
    if (i == k) return i;
    int low = t->first_row[k], high = t->first_row[k + 1];
    while (high - low > 1) {
        const int middle = (low + high) / 2;
        if (t->row[middle] <= i) low = middle;
        else high = middle;
    }
    return low < high && t->row[low] == i ? t->row_tile[low] : -1;
}

typedef struct Across {
    int j, tile;
} Across;  // a tile of a row, left of the diagonal

// Tasks and updates as they are made.
typedef struct Work {
    SparseTask *task;
    SparseUpdate *update;
    long tasks, updates, task_size, update_size;
} Work;

static bool add_task(Work *w, SparseTask t)
{
    if (w->tasks == w->task_size) {
        const long size = w->task_size ? 2 * w->task_size : 1024;
        SparseTask *more = realloc(w->task, sizeof *more * (size_t)size);
        if (!more) return false;
        w->task = more;
        w->task_size = size;
    }
    w->task[w->tasks++] = t;
    return true;
}

static bool add_update(Work *w, SparseUpdate u)
{
    if (w->updates == w->update_size) {
        const long size = w->update_size ? 2 * w->update_size : 4096;
        SparseUpdate *more = realloc(w->update, sizeof *more * (size_t)size);
        if (!more) return false;
        w->update = more;
        w->update_size = size;
    }
    w->update[w->updates++] = u;
    return true;
}

// The tasks, column by column; updates of a tile in the order of columns. false: there are more updates than `most`, or there is no memory.
static bool make_tasks(const GmTiles *t, const int *columns, const long *first_across, const Across *across, double most, Work *w)
{
    for (int r = 0; r < (int)t->tiles; r++) {
        const int k = columns[r];
        // nothing left of it
        if (first_across[k] == first_across[k + 1] && !add_task(w, (SparseTask){k, -1, -1, SPARSE_FINISHES, (int)w->updates, 0}))
            return false;
        for (int e = t->first_row[k]; e < t->first_row[k + 1]; e++) {
            const int i = t->row[e];
            const bool finishes = across[first_across[i + 1] - 1].j == k;
            const long begin = w->updates;
            // both rows stand in the order of columns
            for (long a = first_across[i]; a < first_across[i + 1] && across[a].j != k; a++) {
                const int j = across[a].j, same = (int)tile_of(t, k, j);
                if (same < 0 && !finishes) continue;
                if (!add_update(w,
                                (SparseUpdate){across[a].tile, same, j, (finishes ? SPARSE_SQUARE : 0) + (same >= 0 ? SPARSE_PRODUCT : 0)}))
                    return false;
            }
            if ((double)w->updates > most || !add_task(w, (SparseTask){i, k, t->row_tile[e], finishes ? SPARSE_FINISHES : SPARSE_TILE,
                                                                       (int)begin, (int)(w->updates - begin)}))
                return false;
        }
    }
    return true;
}

// a tile with more updates than the first has some added up elsewhere, so many a piece; not the last ones, for which it waits anyway
enum { LONG = 32, PIECE = 16, LAST = 8 };

// Updates from[0 .. n - 1] that do `what`, into pieces, of which the tile adds up each. They are to be made after the column of the last of
// their tiles.
static bool cut_pieces(GmTiles *t, Work *to, Work *pieces, const SparseTask *of, const SparseUpdate *from, long n, int what)
{
    long count = 0;
    for (long u = 0; u < n; u++) count += (from[u].what & what) != 0;
    const bool inside = what == SPARSE_PRODUCT && count <= PIECE;
    SparseTask piece = {.count = 0};
    for (long u = 0, done = 0; u < n; u++) {
        if (!(from[u].what & what)) continue;
        SparseUpdate one = from[u];
        one.what = what;
        if (!add_update(inside ? to : pieces, one)) return false;
        done++;
        if (inside) continue;
        if (piece.count++ == 0) piece.first = (int)(pieces->updates - 1);
        if (piece.count < PIECE && done < count) continue;
        // k: the column that it is made after
        piece = (SparseTask){of->i,       from[u].j,  (int)t->stored++, what == SPARSE_SQUARE ? SPARSE_SQUARES : SPARSE_PIECE,
                             piece.first, piece.count};
        if (!add_task(pieces, piece) ||
            !add_update(to, (SparseUpdate){piece.tile, -1, -1, what == SPARSE_SQUARE ? SPARSE_ADD_SQUARES : SPARSE_ADD_PIECE}))
            return false;
        piece.count = 0;
    }
    return true;
}

static _Thread_local const int *rank_of;  // for qsort
static int by_column(const void *a, const void *b)
{
    const SparseTask *x = a, *y = b;
    const int p = rank_of[x->k], q = rank_of[y->k];
    return p != q ? (p > q) - (p < q) : (x->tile > y->tile) - (x->tile < y->tile);
}

// Rows that have tiles in very many columns, as that of a mean, would keep one block busy: most of their updates are pieces.
static bool split_long(GmTiles *t, const Work *w, const int *rank)
{
    Work to = {0}, pieces = {0};
    bool good = true;
    SparseTask *task = room((size_t)w->tasks, sizeof *task, &good);  // as they are to be
    for (long k = 0; k < w->tasks && good; k++) {
        const SparseTask *of = &w->task[k];
        const SparseUpdate *from = w->update + of->first;
        const long head = of->count > LONG ? of->count - LAST : 0;
        task[k] = *of;
        task[k].first = (int)to.updates;
        if (head)
            good = cut_pieces(t, &to, &pieces, of, from, head, SPARSE_PRODUCT) &&
                   (of->kind != SPARSE_FINISHES || cut_pieces(t, &to, &pieces, of, from, head, SPARSE_SQUARE));
        for (long u = head; u < of->count && good; u++) good = add_update(&to, from[u]);
        task[k].count = (int)(to.updates - task[k].first);
        t->longest = task[k].count > t->longest ? task[k].count : t->longest;
    }
    rank_of = rank;
    if (pieces.tasks) qsort(pieces.task, (size_t)pieces.tasks, sizeof *pieces.task, by_column);
    t->updates = to.updates;
    Work all = {0};
    for (long k = 0, next = 0; k < w->tasks && good; k++) {
        const int column = task[k].k >= 0 ? task[k].k : task[k].i;
        for (; next < pieces.tasks && rank[pieces.task[next].k] < rank[column] && good; next++) {
            SparseTask piece = pieces.task[next];
            const long begin = to.updates;
            for (int u = 0; u < piece.count && good; u++) good = add_update(&to, pieces.update[piece.first + u]);
            piece.first = (int)begin;
            good = good && add_task(&all, piece);
        }
        good = good && add_task(&all, task[k]);
    }
    t->task = all.task;
    t->tasks = all.tasks;
    t->update = to.update;
    t->updates = to.updates;
    free(task);
    free(pieces.task);
    free(pieces.update);
    return good;
}

void gm_tiles_close(GmTiles *t)
{
    if (!t) return;
    free(t->place);
    free(t->element);
    free(t->begin);
    free(t->task);
    free(t->update);
    free(t->back);
    free(t->first_below);
    free(t->below);
    free(t->first_row);
    free(t->row);
    free(t->row_tile);
    free(t);
}

// What is needed until the tasks are made.
typedef struct Opening {
    List *column;        // of each column of tiles: those under the diagonal
    int *parent, *height, *columns, *rank;
    long *first_across;  // of each row of tiles, in the order in which columns are made
    Across *across;
    long under;
} Opening;

static void opening_close(Opening *o, long tiles)
{
    for (long k = 0; o->column && k < tiles; k++) free(o->column[k].at);
    free(o->column);
    free(o->parent);
    free(o->height);
    free(o->columns);
    free(o->rank);
    free(o->first_across);
    free(o->across);
}

// Which elements are in which tile.
static bool cut_elements(GmTiles *t, const int *first, const int *row, const int *order)
{
    bool good = true;
    const long n = t->n;
    t->place = room((size_t)n, sizeof *t->place, &good);
    t->element = room((size_t)n, sizeof *t->element, &good);
    t->begin = room((size_t)n + 1, sizeof *t->begin, &good);
    int *up = room((size_t)n, sizeof *up, &good), *descendant = room((size_t)n, sizeof *descendant, &good);
    for (long k = 0; k < n && good; k++) {
        t->element[k] = order ? order[k] : (int)k;
        t->place[t->element[k]] = (int)k;
    }
    if (!order) {
        t->tiles = DENSE_TILES(n);
        for (long k = 0; k < t->tiles && good; k++) t->begin[k] = (int)(k * DENSE_TILE);
    } else {
        good = good && find_parents(t, first, row, t->place, up);
        if (good) t->tiles = cut(n, up, descendant, t->begin);
    }
    free(up);
    free(descendant);
    if (good) t->begin[t->tiles] = (int)n;
    for (long k = 0; k < t->tiles && good; k++)
        for (long e = t->begin[k]; e < t->begin[k + 1]; e++) t->place[t->element[e]] = (int)(k * DENSE_TILE + e - t->begin[k]);
    return good;
}

// The columns of tiles, with all that fill in, and the order in which they are made; and room for the rest.
static bool fill_columns(GmTiles *t, const int *first, const int *row, Opening *o)
{
    bool good = true;
    const long m = t->tiles;
    o->column = room((size_t)m, sizeof *o->column, &good);
    o->parent = room((size_t)m, sizeof *o->parent, &good);
    o->height = room((size_t)m, sizeof *o->height, &good);
    o->columns = room((size_t)m, sizeof *o->columns, &good);
    o->rank = room((size_t)m, sizeof *o->rank, &good);
    o->first_across = room((size_t)m + 1, sizeof *o->first_across, &good);
    good = good && fill_in(t, first, row, o->column, o->parent);
    if (good) by_height(t, o->parent, o->height, o->columns, o->rank);
    for (long k = 0; k < m && good; k++) o->under += o->column[k].n;
    if (!good || (double)(o->under + m) >= 2e9 / (DENSE_TILE * DENSE_TILE)) return false;
    const size_t under = (size_t)o->under;
    t->stored = m + o->under;
    t->first_row = room((size_t)m + 1, sizeof *t->first_row, &good);
    t->first_below = room((size_t)m + 1, sizeof *t->first_below, &good);
    t->row = room(under, sizeof *t->row, &good);
    t->row_tile = room(under, sizeof *t->row_tile, &good);
    t->below = room(under, sizeof *t->below, &good);
    t->back = room((size_t)m, sizeof *t->back, &good);
    o->across = room(under, sizeof *o->across, &good);
    return good;
}

// Tiles by columns and, in the order in which columns are made, by rows; x of what is made last is there first.
static bool list_tiles(GmTiles *t, Opening *o)
{
    bool good = true;
    const long m = t->tiles;
    long *next = room((size_t)m, sizeof *next, &good);
    if (!good) return false;
    int at = 0;
    for (int k = 0; k < m; k++) {
        t->first_row[k] = t->first_below[k] = at;
        for (long e = 0; e < o->column[k].n; e++, at++) {
            t->row[at] = o->column[k].at[e];
            t->row_tile[at] = (int)m + at;
            o->first_across[t->row[at] + 1]++;
        }
    }
    t->first_row[m] = t->first_below[m] = at;
    for (int i = 0; i < m; i++) {
        next[i] = o->first_across[i];
        o->first_across[i + 1] += o->first_across[i];
    }
    for (int r = 0; r < m; r++) {
        const int k = o->columns[r];
        for (int e = t->first_row[k]; e < t->first_row[k + 1]; e++) o->across[next[t->row[e]]++] = (Across){k, t->row_tile[e]};
    }
    free(next);
    for (int k = 0; k < m; k++) {
        t->back[k] = o->columns[m - 1 - k];
        SparseBelow *b = t->below + t->first_below[k];
        const int count = (int)o->column[k].n, last = t->first_row[k] + count - 1;
        for (int e = 0; e < count; e++) b[e] = (SparseBelow){t->row_tile[last - e], t->row[last - e]};
    }
    return true;
}

GmTiles *gm_tiles_open(long n, const int *first, const int *row, const int *order, double most)
{
    bool good = true;
    GmTiles *t = room(1, sizeof *t, &good);
    if (!t) return NULL;
    t->n = n;
    Opening o = {0};
    good = cut_elements(t, first, row, order) && fill_columns(t, first, row, &o) && list_tiles(t, &o);
    if (good) {
        Work w = {0};
        t->factor = t->stored;
        good = make_tasks(t, o.columns, o.first_across, o.across, most, &w) && split_long(t, &w, o.rank);
        free(w.task);
        free(w.update);
    }
    opening_close(&o, t->tiles);
    if (good) return t;
    gm_tiles_close(t);
    return NULL;
}

long gm_tiles_at(const GmTiles *t, int i, int j)
{
    const int p = t->place[i] > t->place[j] ? t->place[i] : t->place[j], q = t->place[i] > t->place[j] ? t->place[j] : t->place[i];
    return (tile_of(t, p / DENSE_TILE, q / DENSE_TILE) * DENSE_TILE + p % DENSE_TILE) * DENSE_TILE + q % DENSE_TILE;
}

GmTileSums gm_tiles_sums(const GmTiles *t, const int *first, const int *rows, const int *slot, long terms, const int *row,
                         const int *column)
{
    GmTileSums s = {0};
    bool good = true;
    const long n = t->n, entries = first[n], places = entries + n;
    long *begin = room((size_t)places + 1, sizeof *begin, &good), listed = 0;
    int *of = room((size_t)terms, sizeof *of, &good);
    s.list = room((size_t)terms, sizeof *s.list, &good);
    for (long k = 0; k < terms && good; k++) {
        of[k] = (int)(row[k] < 0 ? entries + column[k] : slot[listed++]);
        begin[of[k] + 1]++;
    }
    for (long e = 0; e < places && good; e++) {
        const long c = begin[e + 1];
        s.longs += c > SPARSE_PART;
        s.parts += c > SPARSE_PART ? (c + SPARSE_PART - 1) / SPARSE_PART : 0;
        s.sums += c > 0 && c <= SPARSE_PART;
        begin[e + 1] += begin[e];
    }
    s.sums += s.parts;
    s.sum = room((size_t)s.sums, sizeof *s.sum, &good);
    s.longer = room((size_t)s.longs, sizeof *s.longer, &good);
    long part = 0, sum = s.parts, longs = 0;
    for (long e = 0, j = 0; e < places && good; e++) {
        while (e < entries && e >= first[j + 1]) j++;
        const long from = begin[e], c = begin[e + 1] - from;
        if (c == 0) continue;
        const long to = e < entries ? 2 * gm_tiles_at(t, rows[e], (int)j) + (rows[e] == j) : -1 - (long)t->place[e - entries];
        if (c <= SPARSE_PART) {
            s.sum[sum++] = (SparseSum){(int)from, (int)c, to};
            continue;
        }
        s.longer[longs++] = (SparseLong){(int)part, (int)((c + SPARSE_PART - 1) / SPARSE_PART), to};
        for (long k = 0; k < c; k += SPARSE_PART)
            s.sum[part++] = (SparseSum){(int)(from + k), (int)(c - k < SPARSE_PART ? c - k : SPARSE_PART), SPARSE_NOWHERE};
    }
    for (long k = 0; k < terms && good; k++) s.list[begin[of[k]]++] = (int)k;
    free(begin);
    free(of);
    if (!good) gm_tiles_sums_close(&s);
    return s;
}

void gm_tiles_sums_close(GmTileSums *s)
{
    free(s->sum);
    free(s->longer);
    free(s->list);
    *s = (GmTileSums){0};
}

// In ns: tiles that wait for each other forward and back, tiles read and written, updates, which fill the GPU, and the terms (measured:
// tests/bench/gpu.py field).
double gm_tiles_time(const GmTiles *t, long terms)
{
    return 25e3 + 8.5e3 * t->height + 1e3 * t->longest + 6.0 * (double)t->stored + 6.5 * (double)t->updates + 0.1 * (double)terms;
}
