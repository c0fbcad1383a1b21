// If this failed, numbers in the files of draws would not read back to the doubles that were drawn. Or rows would be lost, doubled or out
// of order between the chains and the threads that write them.
#include "toy.h"

#include <pthread.h>

// Many of these: only a failure is worth a line.
#define check_quiet(good, ...) do { if (!(good)) check(false, __VA_ARGS__); } while (0)

// ---- numbers ----

static char *text_of(double x, int digits)
{
    static char text[GM_NUMBER_ROOM + 1];
    const int n = gm_print_number(text, x, digits);
    check_quiet(n > 0 && n <= 24, "the length of %.17g to %d digits: %d", x, digits, n);
    text[n] = 0;
    return text;
}

static void reads(double x, int digits, const char *expected)
{
    const char *text = text_of(x, digits);
    check(strcmp(text, expected) == 0, "%.17g to %d digits: %s", x, digits, text);
}

// 15 digits where they suffice, as C's %.15g writes them.
static void reads_back(double x)
{
    char plain[40];
    snprintf(plain, sizeof plain, "%.15g", x);
    const char *text = text_of(x, 0);
    check_quiet(strtod(text, NULL) == x && signbit(strtod(text, NULL)) == signbit(x), "%.17g is written as %s", x, text);
    check_quiet(fabs(x) < 1e-300 || strtod(plain, NULL) != x || strcmp(plain, text) == 0, "%s is written as %s", plain, text);
}

static void numbers(void)
{
    reads(0, 0, "0");
    reads(-0.0, 0, "-0");
    reads(NAN, 0, "NaN");
    reads(INFINITY, 0, "Inf");
    reads(-INFINITY, 3, "-Inf");
    reads(-2147483648.0, 0, "-2147483648");
    reads(0.1, 0, "0.1");
    reads(0.1 + 0.2, 0, "0.30000000000000004");
    reads(-0.00012345, 0, "-0.00012345");
    reads(1.25e-7, 0, "1.25e-07");
    reads(1e23, 0, "1e+23");
    reads(5e-324, 0, "5e-324");
    reads(-1.7976931348623157e308, 0, "-1.7976931348623157e+308");
    reads(2.0 / 3, 8, "0.66666667");
    reads(-1234567.89, 3, "-1230000");
    reads(9.9996, 4, "10");
    reads(0.5, 8, "0.5");
    reads(7, 1, "7");
    uint64_t bits = 1;
    for (int k = 0; k < 300000; k++) {
        bits = bits * 6364136223846793005u + 1442695040888963407u;
        double x;
        memcpy(&x, &bits, sizeof x);
        if (isfinite(x))
            reads_back(x);
        reads_back((double)(bits >> 40) / 1000);
        reads_back((double)(int64_t)bits * 1e-18);
        const int digits = 1 + (int)(bits >> 60);
        const double y = (double)(bits >> 11) * 1e-10, error = fabs(strtod(text_of(y, digits), NULL) - y);
        check_quiet(error <= 0.51 * y * pow(10, 1 - digits) || digits == 16, "%.17g to %d digits is off by %g", y, digits, error);
    }
    check(true, "random numbers read back");
}

// ---- rows ----

enum { CHAINS = 3, PENS = 2 };

typedef struct Producer {
    GmWriter *writer;
    double   *rows;
    long      draws, held, columns;
    int       chain;
    bool      failed;
} Producer;

static double number_of(int chain, long at, long k) { return (double)(at * 7 + k) / 8 + chain; }

static void *produce(void *argument)
{
    Producer *p = argument;
    for (long at = 0; at < p->draws && !p->failed; at++) {
        p->failed = !gm_writer_room(p->writer, p->chain, at);
        double *row = p->rows + (p->chain * p->held + at % p->held) * p->columns;
        for (long k = 0; k < p->columns && !p->failed; k++)
            row[k] = number_of(p->chain, at, k);
        if (!p->failed)
            gm_writer_stored(p->writer, p->chain, at);
    }
    return NULL;
}

// Is the file what one thread would have written?
static bool is_whole(const char *path, int chain, long draws, long columns)
{
    FILE *from = fopen(path, "r");
    bool good = from != NULL;
    for (long at = 0; at < draws && good; at++)
        for (long k = 0; k < columns && good; k++) {
            char number[40];
            int n = 0;
            for (int c; (c = getc(from)) != EOF && c != ',' && c != '\n' && n < 39;)
                number[n++] = (char)c;
            number[n] = 0;
            good = strcmp(number, text_of(number_of(chain, at, k), 0)) == 0;
        }
    good = good && getc(from) == EOF;
    if (from)
        fclose(from);
    return good;
}

static void rows(long draws, long columns, long held, bool full)
{
    static char *const name[CHAINS] = { "w_1", "w_2", "w_3" };
    FILE *file[CHAINS];
    pthread_t thread[CHAINS];
    Producer p[CHAINS];
    double *memory = gm_alloc((size_t)(CHAINS * held * columns), sizeof *memory);
    for (int c = 0; c < CHAINS; c++)
        file[c] = fopen(full && c == 1 ? "/dev/full" : name[c], "w");
    GmWriter *w = gm_writer_open(memory, CHAINS, held, columns, file, name, PENS, 0);
    for (int c = 0; c < CHAINS; c++) {
        p[c] = (Producer){ .writer = w, .rows = memory, .draws = draws, .held = held, .columns = columns, .chain = c };
        pthread_create(&thread[c], NULL, produce, &p[c]);
    }
    for (int c = 0; c < CHAINS; c++)
        pthread_join(thread[c], NULL);
    gm_writer_close(w);
    bool good = true;
    for (int c = 0; c < CHAINS; c++) {
        fclose(file[c]);
        good = good && ((full && c == 1) || (!p[c].failed && is_whole(name[c], c, draws, columns)));
    }
    check(good, "%ld rows of %ld columns, %ld held: all in their files, in order%s", draws, columns, held,
          full ? ", but those of a full disk" : "");
    if (full)
        check(p[1].failed, "a full disk stops its chain");
    free(memory);
}

static void in_time(void)
{
    FILE *file = fopen("slow", "w");
    char *const name[] = { "slow" };
    double memory[20];
    GmWriter *w = gm_writer_open(memory, 1, 10, 2, &file, name, 1, 0);
    memory[0] = memory[1] = 1.5;
    gm_writer_stored(w, 0, 0);
    struct stat now = { 0 };
    for (int k = 0; k < 100 && now.st_size == 0; k++) {
        nanosleep(&(struct timespec){ .tv_nsec = 50000000 }, NULL);
        stat("slow", &now);
    }
    check(now.st_size == 8, "a row is in its file before long, although no other follows");
    gm_writer_close(w);
    fclose(file);
}

int main(void)
{
    enter_scratch();
    numbers();
    check(gm_writer_held(3, 1000000) >= 2 && gm_writer_held(1000000, 1000000) == 2 && gm_writer_held(1000000, 1) == 1,
          "two rows are held, or all");
    rows(100000, 3, gm_writer_held(3, 100000), false);
    rows(30000, 3, 30000, false);                        // all stay in memory
    rows(40, 30000, 2, false);
    rows(5, 1, 5, false);
    rows(200000, 5, gm_writer_held(5, 200000), true);
    in_time();
    return finish_tests();
}
