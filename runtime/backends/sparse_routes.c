// sparse_routes.c -- how each block is drawn, by the times that are predicted of the routes: dense, by a factor, by conjugate gradients, by
// tiles on a GPU, or by other updates in place of it.
//
// Needs: a pattern (sparse_pattern.c).     Gives: its route, and the line that says so.
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "fill.h"
#include "sparse_inside.h"

// rows: up to the first, no order is worth its search; beyond the second, a dense factor takes seconds
enum { ALWAYS_DENSE = 48, MOST_DENSE = 3000 };
static const double MOST_FACTOR = 1.5e8;  // entries of a factor: 1.2 GB
enum { MOST_DIRECT = 16384 };             // elements of a dense matrix that is made where conjugate gradients fail: 2 GB
enum { GUESSED_STEPS = 60 };              // of conjugate gradients, before any has been made

static int say_rows(char *text, const Pattern *q)
{
    int at = snprintf(text, 300, "%s: %ld elements, %ld rows", q->text, q->n, q->rows);
    if (q->puts || !q->parts) at += snprintf(text + at, 100, " of %ld entries", q->puts);
    for (int k = 0; k < q->parts && k < 4; k++)
        at += snprintf(text + at, 60, "%s %ld columns", k || q->puts ? " and" : " of", q->part[k].p);
    return at;
}

// Times of routes in ns, from 20 multiply-adds a ns in LAPACK and 8 in a sparse factor. An entry of a row takes 1 ns in a pass over the
// rows, and 2 where it is added to its slot (measured: tests/bench/lists.py). An element of a matrix takes 0.3 ns in both passes of an
// iteration (tests/bench/nonzeros.py).
static const double NEVER = 1e300;

typedef struct Times {
    double dense, factor, gradients, few;
} Times;

static double full_time(const Pattern *q, double all_pairs)
{
    return (double)q->n * (double)q->n * (double)q->n / 60 + all_pairs + (double)q->n * (double)q->n;
}

static double few_time(const Pattern *q)
{
    const double n = (double)q->n, N = (double)q->rows;
    return q->diagonal && N < n ? N * N * n / 40 + N * N * N / 60 + 3 * N * n : NEVER;
}

// Whether there is memory for what stands in.
static bool fits(const Pattern *q) { return q->bytes < 0.9 * (double)sysconf(_SC_PHYS_PAGES) * (double)sysconf(_SC_PAGE_SIZE); }

// Whether rows are listed, compared with what the program's other routes take: dense, with X'WX made in each sweep or X'X once, and by few
// rows. If they are not, what was noted of them goes.
static bool list_rows(Pattern *q, const char *asked, double all_pairs)
{
    double elements = 0, squares = 0;
    for (int k = 0; k < q->parts; k++) {
        elements += (double)q->part[k].p;
        squares += (double)q->part[k].p * (double)q->part[k].p;
    }
    const double n = (double)q->n, N = (double)q->rows, gradients = GUESSED_STEPS * q->update_time, few = few_time(q),
                 many = n * n * n / 60 + n * n + (q->weighted ? N * squares / 20 + 2 * all_pairs : 0);
    q->listed = gradients < fmin(few, N < n ? NEVER : many) || !fits(q);
    if (asked) q->listed = strcmp(asked, "sparse") == 0 || strcmp(asked, "gradients") == 0;
    if (q->listed) return true;
    char *text = gm_sparse_room(900);
    const int at = say_rows(text, q);
    snprintf(text + at, 900 - (size_t)at, "; predicted: %s %.2g ms, conjugate gradients %.2g ms (%d iterations): drawn %s",
             N < n ? "by few rows" : "dense", (N < n ? few : many) / 1e6, gradients / 1e6, GUESSED_STEPS, N < n ? "by few rows" : "dense");
    free(q->text);
    q->text = text;
    gm_sparse_forget_rows(q);
    return false;
}

static const char *asked_route(void)
{
    const char *asked = getenv("GM_JOINT");
    if (gm_as_in_lesson()) return "separate";
    if (asked && strcmp(asked, "sparse") != 0 && strcmp(asked, "gradients") != 0 && strcmp(asked, "dense") != 0 &&
        strcmp(asked, "separate") != 0) {
        fprintf(stderr, "the environment variable GM_JOINT is `%s`; it can be sparse, gradients, dense, separate or lesson\n", asked);
        exit(2);
    }
    return asked;
}

int gm_as_in_lesson(void)
{
    const char *asked = getenv("GM_JOINT");
    return asked && strcmp(asked, "lesson") == 0;
}

// The least full block in a factor that takes more than `most` ns; its work and its entries are those of a dense matrix.
static long refused_block(double most)
{
    for (long k = MOST_DENSE;; k++) {
        const double m = (double)k;
        if (m * m / 2 > MOST_FACTOR || m * m * m / 24 + m * m > most) return k;
    }
}

// Whether no order need be looked for. Below so many entries looking is the shorter way.
static bool is_full(const Pattern *q, long block)
{
    enum { MANY_ENTRIES = 1000000 };
    return q->n > MOST_DENSE && q->entries > MANY_ENTRIES && gm_fill_reaches(q->n, q->first, q->row, block);
}

static void say_full(Pattern *q, long block)
{
    char *text = gm_sparse_room(400);
    snprintf(text, 400, "%s: %ld elements, %ld entries, a full block of more than %ld elements in the factor: drawn one after the other",
             q->text, q->n, q->entries, block);
    free(q->text);
    q->text = text;
}

// The routes of a block without rows: dense, sparse, or other updates.
static void choose_plain(Pattern *q, const char *asked)
{
    const long n = q->n;
    const double dense_work = (double)n * (double)n * (double)n / 3, separate = 4.0 * (double)q->terms + 20.0 * (double)n;
    const long refused = refused_block(q->most * separate);
    double work = dense_work;
    if (!asked && is_full(q, refused)) {
        q->analysed = q->dense = q->taken = false;
        q->time = separate;
        say_full(q, refused);
        return;
    }
    const bool small = n == 0 || (n <= ALWAYS_DENSE && !asked);
    const char *missing = small ? NULL : gm_cholmod_open();
    q->analysed = !small && !missing && gm_cholmod_analyse(q, &work, NULL);
    q->dense = !q->analysed || (n <= MOST_DENSE && work > 0.5 * dense_work);
    if (q->dense) {
        work = dense_work;
        q->factor = (double)n * (double)(n + 1) / 2;
    }
    q->taken = q->dense ? n <= MOST_DENSE : q->factor <= MOST_FACTOR;
    q->taken = q->taken && (n <= ALWAYS_DENSE || work / 4 + 2 * q->factor <= q->most * separate);
    if (asked) {
        if (!missing && strcmp(asked, "sparse") == 0) q->dense = !q->analysed;
        if (strcmp(asked, "dense") == 0) q->dense = true;
        q->taken = strcmp(asked, "separate") != 0;
    }
    q->work = (q->dense ? dense_work : work) + 4 * q->factor;
    q->time = q->taken ? work / 4 + 2 * q->factor : separate;
    char *text = gm_sparse_room(400);
    snprintf(text, 400, "%s: %ld elements, %ld entries, %.3g in the factor, %.2g multiply-adds a draw: %s%s%s", q->text, n, q->entries,
             q->factor, work,
             !q->taken  ? "drawn one after the other"
             : q->dense ? "drawn jointly, dense"
                        : "drawn jointly, sparse",
             missing ? "; " : "", missing ? missing : "");
    free(q->text);
    q->text = text;
}

static void choose_with_rows(Pattern *q, const char *asked, double all_pairs)
{
    const double n = (double)q->n, never = NEVER;
    double work = 0;
    const bool small = q->n == 0 || (q->n <= ALWAYS_DENSE && !asked);
    const char *missing = small ? NULL : gm_cholmod_open();
    q->analysed = !small && q->pairs >= 0 && !q->parts && !missing && (asked || !is_full(q, refused_block(INFINITY))) &&
                  gm_cholmod_analyse(q, &work, NULL) && q->factor <= MOST_FACTOR;
    q->direct = q->analysed || (q->parts && q->n <= MOST_DIRECT);
    q->factor_time = q->parts ? n * n * n / 60 + (double)q->rows * n * n / 20
                              : work / 8 + (2 + 4 * (double)q->napart) * q->factor + 2 * (double)q->pairs + 4 * (double)q->terms + 20 * n;
    const double full = full_time(q, all_pairs), dense = q->n <= MOST_DENSE && !q->parts ? full : never,
                 factor = q->analysed ? q->factor_time : never, gradients = q->diagonal ? GUESSED_STEPS * q->update_time : never,
                 few = q->listed ? never : few_time(q), least = fmin(fmin(dense, factor), fmin(gradients, few));
    q->dense = small || dense <= least;
    q->gradients = !q->dense && q->diagonal && gradients <= factor;
    q->only_gradients = false;
    q->taken = small || q->listed || (least < never && few > least);
    if (asked) {
        q->dense = !q->parts && (strcmp(asked, "dense") == 0 || (!q->diagonal && !q->analysed));
        q->only_gradients = strcmp(asked, "gradients") == 0 && q->diagonal;
        q->gradients = !q->dense && (q->only_gradients || !q->analysed);
        q->taken = strcmp(asked, "separate") != 0;
    }
    q->work = 4 * (q->dense ? full : q->factor_time);
    q->time = !q->taken ? fmin(few, full) : q->dense ? full : q->gradients ? gradients : factor;
    char *text = gm_sparse_room(900);
    int at = say_rows(text, q);
    if (q->napart) at += snprintf(text + at, 900 - (size_t)at, ", %ld of them apart", q->napart);
    const struct {
        const char *name;
        double time;
    } route[] = {{"dense", dense}, {"a factor", factor}, {"conjugate gradients", gradients}, {"few rows", few}};
    const char *before = "; predicted: ";
    for (int k = 0; k < 4; k++) {
        if (route[k].time == never) continue;
        at += snprintf(text + at, 900 - (size_t)at, "%s%s %.2g ms", before, route[k].name, route[k].time / 1e6);
        before = ", ";
        if (k == 1) at += snprintf(text + at, 900 - (size_t)at, " (%.3g entries)", q->factor);
        if (k == 2) at += snprintf(text + at, 900 - (size_t)at, " (%d steps)", GUESSED_STEPS);
    }
    snprintf(text + at, 900 - (size_t)at, ": %s%s%s",
             !q->taken      ? "drawn by other updates"
             : q->dense     ? "drawn jointly, dense"
             : q->gradients ? "drawn jointly, by conjugate gradients"
                            : "drawn jointly, sparse",
             missing ? "; " : "", missing ? missing : "");
    free(q->text);
    q->text = text;
}

// As refused_block, in tiles.
static long refused_block_on_gpu(double most_updates, double most_time)
{
    long k = MOST_DENSE / DENSE_TILE;
    for (;; k++) {
        const double m = (double)k, updates = m * m * m / 6;
        if (updates > most_updates || 25e3 + 8.5e3 * m + 6.5 * updates > most_time) return k * DENSE_TILE;
    }
}

// The route of a block without rows on a GPU: by tiles of the factor, in the order of the elements where it is nearly full, or else in the
// better one of CHOLMOD's minimum degree and nested dissection; or other updates.
static void choose_on_gpu(Pattern *q, const char *asked)
{
    static const double most_updates = 4e6;
    const long n = q->n;
    const double dense_work = (double)n * (double)n * (double)n / 3, separate = 60e3 + 0.1 * (double)q->terms;
    double work = dense_work;
    const bool small = n <= ALWAYS_DENSE || (asked && strcmp(asked, "dense") == 0);
    const char *missing = small ? NULL : gm_cholmod_open();
    const long refused = refused_block_on_gpu(most_updates, q->most / 4 * separate);
    gm_tiles_close(q->tiles);
    q->tiles = NULL;
    if (!asked && is_full(q, refused)) {
        q->analysed = q->dense = q->taken = false;
        q->time = separate;
        say_full(q, refused);
        return;
    }
    q->analysed = !small && !missing && gm_cholmod_analyse(q, &work, NULL);
    q->dense = !q->analysed || (n <= MOST_DENSE && work > 0.5 * dense_work);
    if (n > 0 && (!q->dense || (double)n * (double)n * (double)n < 6 * most_updates * DENSE_TILE * DENSE_TILE * DENSE_TILE))
        q->tiles = gm_tiles_open(n, q->first, q->row, q->dense ? NULL : gm_cholmod_order(q), most_updates);
    if (!q->dense && work < 1e5 * most_updates) gm_cholmod_dissect(q, most_updates);
    q->time = q->tiles ? gm_tiles_time(q->tiles, q->terms) : INFINITY;
    q->taken = q->time <= q->most / 4 * separate;  // the other updates are few launches, and take less of a GPU than of a CPU
    if (asked) q->taken = q->tiles && strcmp(asked, "separate") != 0;
    if (!q->taken) q->time = separate;
    char *text = gm_sparse_room(400);
    if (q->tiles)
        snprintf(text, 400,
                 "%s: %ld elements, %ld entries, %ld tiles of the factor of 32 x 32, %ld products of tiles a draw, %d one after the other: "
                 "%s%s%s",
                 q->text, n, q->entries, q->tiles->factor, q->tiles->updates, q->tiles->height,
                 q->taken ? "drawn jointly, by tiles" : "drawn one after the other", missing ? "; " : "", missing ? missing : "");
    else
        snprintf(text, 400, "%s: %ld elements, %ld entries, too many products of tiles a draw: drawn one after the other%s%s", q->text, n,
                 q->entries, missing ? "; " : "", missing ? missing : "");
    free(q->text);
    q->text = text;
    if (q->taken) return;
    gm_tiles_close(q->tiles);
    q->tiles = NULL;
}

const GmTiles *gm_sparse_tiles(int number) { return gm_sparse_pattern(number)->tiles; }

const int *gm_sparse_slots(int number, const int **first, const int **row)
{
    const Pattern *q = gm_sparse_pattern(number);
    *first = q->first;
    *row = q->row;
    return q->slot;
}

static void end_pattern(Pattern *q, const char *asked, int on_gpu)
{
    q->terms = gm_entries.at;
    const long n = q->n;
    const double pairs = gm_sparse_take_rows(q);
    double all_pairs = 0, elements = 0;
    for (long i = 0; i < q->rows; i++) {
        const double m = (double)(q->first_put[i + 1] - q->first_put[i]);
        all_pairs += m * m / 2;
    }
    for (int k = 0; k < q->parts; k++)
        for (long i = 0; i < q->rows; i++) elements += q->part[k].x[i] ? (double)q->part[k].p : 0;
    q->update_time = 2 * (double)q->puts + 0.3 * elements + 4 * (double)n;
    if (n >= INT_MAX / 2 || q->terms + n >= INT_MAX / 2 || q->puts >= INT_MAX) {
        fprintf(stderr, "the joint normal of %s has too many terms: %ld\n", q->text, q->terms + q->puts);
        exit(2);
    }
    q->diagonal = gm_sparse_diagonal(q);
    if (q->may_be_listed && !list_rows(q, asked, all_pairs)) return;
    gm_sparse_place(q, pairs);
    while (q->record) {
        Record *next = q->record->next;
        free(q->record);
        q->record = next;
    }
    q->gradients = q->only_gradients = false;
    if (on_gpu) choose_on_gpu(q, asked);
    else if (q->rows) choose_with_rows(q, asked, all_pairs);
    else choose_plain(q, asked);
    q->version++;
}

void gm_pattern_end(int number, int on_gpu)
{
    Pattern *q = gm_sparse_pattern(number);
    end_pattern(q, asked_route(), on_gpu);
    if (q->taken || on_gpu || fits(q)) return;
    fprintf(stderr, "%s; the arrays of these have %.3g GB\n", q->text, q->bytes / 1e9);
    exit(6);  // GM_EXIT_MEMORY
}

int gm_list_begin(int number, long n, const char *name)
{
    Pattern *q = gm_sparse_pattern(number);
    gm_pattern_begin(number, n, 0, name);
    q->may_be_listed = true;
    q->listed = q->taken = false;
    if (n > ALWAYS_DENSE || asked_route()) return 1;
    snprintf(q->text, 400, "%s: %ld elements: drawn dense", name, n);
    return 0;
}

void gm_list_end(int number, int weighted)
{
    Pattern *q = gm_sparse_pattern(number);
    q->weighted = weighted;
    if (q->n > ALWAYS_DENSE || asked_route()) end_pattern(q, asked_route(), 0);
}

void gm_list_on_gpu(int number, long n, const char *name)
{
    Pattern *q = gm_sparse_pattern(number);
    gm_pattern_in_turn(number, n, name);
    q->listed = q->taken = false;
    snprintf(q->text, 400, "%s: %ld elements: drawn dense, as always on a GPU%s", name, n,
             getenv("GM_JOINT") ? "; GM_JOINT is for CPUs" : "");
}

static bool guessed;

// Before any of it is set up.
static const Pattern *known(int number)
{
    const Pattern *q = gm_sparse_pattern(number);
    if (!q->text) guessed = true;
    return q;
}

int gm_sparse_guessed(void)
{
    const bool was = guessed;
    guessed = false;
    return was;
}

static bool evaluated;

int gm_rows_listed(int number) { return known(number)->listed; }
int gm_rows_listed_alone(int number) { return gm_sparse_pattern(number)->listed && !evaluated; }
void gm_rows_evaluated(void) { evaluated = true; }

static bool checked;  // all routes are drawn

void gm_sparse_stand_in(int number, double bytes) { gm_sparse_pattern(number)->bytes = bytes; }

void gm_sparse_checked(void) { checked = true; }

int gm_sparse_replaced(int number) { return !gm_sparse_pattern(number)->taken || (checked && fits(gm_sparse_pattern(number))); }

double gm_sparse_time(int number) { return known(number)->time; }

int gm_sparse_taken(int number) { return known(number)->taken; }

int gm_sparse_blocks(void) { return MOST_BLOCKS; }

const char *gm_sparse_route(int number)
{
    if (number < 1 || number > MOST_BLOCKS) return NULL;
    Pattern *q = gm_sparse_pattern(number);
    long draws = 0, steps = 0, solved = 0;
    for (const Record *r = q->record; r; r = r->next) {
        draws += r->draws;
        steps += r->steps;
        solved += r->solved;
    }
    if (!draws) return q->text;
    static char text[1000];
    snprintf(text, sizeof text, "%s; %.1f iterations for each of %ld solutions, %ld draws by the factor", q->text,
             solved ? (double)steps / (double)solved : 0, solved, draws - solved);
    return text;
}
