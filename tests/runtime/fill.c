// If this failed, minutes would go by until a joint normal is refused whose factor is full, or one would be refused whose factor is not.
#include "check.h"
#include "../../runtime/backends/fill.h"

// A pattern, as pairs of elements; its lower triangle by columns.
typedef struct Pairs { long n, count; int (*pair)[2]; int *first, *row; } Pairs;

static Pairs open_pairs(long n, long most)
{
    return (Pairs){n, 0, malloc(sizeof(int[2]) * (size_t)most), calloc((size_t)n + 1, sizeof(int)),
                   malloc(sizeof(int) * (size_t)(most + n))};
}

static void add(Pairs *p, long i, long j)
{
    p->pair[p->count][0] = (int)(i > j ? i : j);
    p->pair[p->count++][1] = (int)(i > j ? j : i);
}

static int by_column(const void *a, const void *b)
{
    const int *x = a, *y = b;
    return x[1] != y[1] ? (x[1] > y[1]) - (x[1] < y[1]) : (x[0] > y[0]) - (x[0] < y[0]);
}

static void close_pairs(Pairs *p)
{
    free(p->pair);
    free(p->first);
    free(p->row);
}

static int reaches(Pairs *p, long block)
{
    int at = 0;
    long k = 0;
    qsort(p->pair, (size_t)p->count, sizeof *p->pair, by_column);
    for (long j = 0; j < p->n; j++) {
        p->first[j] = at;
        p->row[at++] = (int)j;
        for (; k < p->count && p->pair[k][1] == j; k++)
            if (p->row[at - 1] != p->pair[k][0]) p->row[at++] = p->pair[k][0];
    }
    p->first[p->n] = at;
    return gm_fill_reaches(p->n, p->first, p->row, block);
}

// A clique is a full block of its own size, however much hangs on it.
static void cliques(void)
{
    Pairs p = open_pairs(500, 4000);
    for (long i = 0; i < 60; i++)
        for (long j = 0; j < i; j++) add(&p, i, j);
    for (long i = 60; i < 500; i++) add(&p, i, i % 60);
    check("a clique of 60 elements is a full block of 60", "wrong", !reaches(&p, 60), 0);
    check("it is none of 61", "wrong", reaches(&p, 61), 0);
    close_pairs(&p);
}

// Crossed effects: 20000 elements of one kind, each beside 30 of the 400 of the other, which they fill.
static void crossed(void)
{
    Pairs p = open_pairs(20400, 600000);
    srand(1);
    for (long i = 400; i < 20400; i++)
        for (int k = 0; k < 30; k++) add(&p, i, rand() % 400);
    check("crossed effects fill the block of one kind", "wrong", !reaches(&p, 398), 0);
    check("and no more", "wrong", reaches(&p, 401), 0);
    close_pairs(&p);
}

// The factor of a grid of 150 x 150 has few entries: its largest full block is about its side.
static void grids(void)
{
    enum { SIDE = 150 };
    Pairs p = open_pairs(SIDE * SIDE, 2 * SIDE * SIDE);
    for (long i = 0; i < SIDE; i++)
        for (long j = 0; j < SIDE; j++) {
            if (j > 0) add(&p, i * SIDE + j, i * SIDE + j - 1);
            if (i > 0) add(&p, i * SIDE + j, (i - 1) * SIDE + j);
        }
    check("a grid has no full block of more than its side", "wrong", reaches(&p, SIDE + 1), 0);
    close_pairs(&p);
}

static void nothing(void)
{
    Pairs p = open_pairs(3, 1);
    check("a diagonal has no full block", "wrong", reaches(&p, 3), 0);
    check("nor one of more than all", "wrong", reaches(&p, 10), 0);
    close_pairs(&p);
}

int main(void)
{
    cliques();
    crossed();
    grids();
    nothing();
    return finish();
}
