// columns.c -- files of draws for tests that are written in Python, which takes ten times as long to read numbers.
//
//   columns FILE.csv ...     for each file a line with the names; a line with the number of draws and the bytes of the comments
//                            below the names; these comments; the draws as doubles, column after column
//
// Numbers are right to the last bit but one. Exit status 1 if a row is longer or shorter than the names.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DIGITS = 19, POWERS = 28 };      // that fit 64 bits; powers of ten that a long double holds exactly

static double number(char **at)
{
    static long double power[POWERS];
    if (power[0] == 0)
        for (int k = 0; k < POWERS; k++) power[k] = k ? 10 * power[k - 1] : 1;
    char *p = *at;
    const int negative = *p == '-';
    uint64_t digits = 0;
    int count = 0, exponent = 0, point = 0;
    for (p += negative; (*p >= '0' && *p <= '9') || (*p == '.' && !point); p++)
        if (*p == '.') point = 1;
        else {
            digits = 10 * digits + (uint64_t)(*p - '0');
            count += digits > 0;
            exponent -= point;
        }
    if (*p == 'e') exponent += (int)strtol(p + 1, &p, 10);
    if (p == *at + negative || count > DIGITS || exponent >= POWERS || exponent <= -POWERS) return strtod(*at, at);
    *at = p;
    const long double x = exponent < 0 ? digits / power[-exponent] : digits * power[exponent];
    return (double)(negative ? -x : x);
}

static char *read_all(const char *path)
{
    FILE *f = fopen(path, "rb");
    if (!f || fseek(f, 0, SEEK_END) != 0) return NULL;
    const long size = ftell(f);
    char *text = calloc((size_t)size + 1, 1);
    rewind(f);
    if (fread(text, 1, (size_t)size, f) != (size_t)size) return NULL;
    fclose(f);
    return text;
}

static char *next_line(char *p)
{
    p += strcspn(p, "\n");
    return *p ? p + 1 : p;
}

// The next line of names or draws; comments on the way are copied.
static char *after_comments(char *p, char **comments)
{
    while (*p == '#' || *p == '\n') {
        char *const end = next_line(p);
        if (comments) {
            memcpy(*comments, p, (size_t)(end - p));
            *comments += end - p;
        }
        p = end;
    }
    return p;
}

static int print_columns(const char *path)
{
    char *text = read_all(path);
    if (!text) return 0;
    char *names = after_comments(text, NULL), *first = next_line(names), *comments = malloc(strlen(first) + 1), *said = comments, *p;
    long columns = 1, rows = 0, row = 0;
    for (p = names; p < first; p++) columns += *p == ',';
    for (p = after_comments(first, &said); *p; p = after_comments(next_line(p), &said)) rows++;
    double *x = malloc(((size_t)(rows * columns) + 1) * sizeof *x);
    for (p = after_comments(first, NULL); *p; p = after_comments(p, NULL), row++)
        for (long k = 0; k < columns; k++, p++) {
            x[k * rows + row] = number(&p);
            if (*p != (k + 1 < columns ? ',' : '\n')) return 0;
        }
    printf("%.*s\n%ld %zu\n", (int)strcspn(names, "\n"), names, rows, (size_t)(said - comments));
    fwrite(comments, 1, (size_t)(said - comments), stdout);
    fwrite(x, sizeof *x, (size_t)(rows * columns), stdout);
    free(comments);
    free(x);
    free(text);
    return 1;
}

int main(int argc, char **argv)
{
    for (int k = 1; k < argc; k++)
        if (!print_columns(argv[k])) {
            fprintf(stderr, "columns: %s: no table of numbers\n", argv[k]);
            return 1;
        }
    return fflush(stdout) != 0;
}
