// If this fails, a model that nests deeply, or is very long, ends the compiler by a crash or by minutes of waiting, and not by a message.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "../../compiler/front/front.h"

// Linear work on the texts below takes well under a second; quadratic work on 20,000 statements or 100,000 signs would take minutes.
// 20 seconds leaves room for a slow or a busy machine.
static const double SECONDS = 20;

static int failed;

static char *repeat(Arena *a, const char *before, const char *part, int n, const char *after)
{
    size_t k = strlen(part);
    char *text = arena_alloc(a, strlen(before) + k * (size_t)n + strlen(after) + 1), *at = text;
    at += sprintf(at, "%s", before);
    for (int i = 0; i < n; i++, at += k) memcpy(at, part, k);
    sprintf(at, "%s", after);
    return text;
}

// n lines, the k-th from `format` with k and k - 1 (or, backwards, with the last first).
static char *lines(Arena *a, const char *before, const char *format, int n, bool backwards, const char *after)
{
    char *text = arena_alloc(a, strlen(before) + (strlen(format) + 40) * (size_t)n + strlen(after) + 1), *at = text;
    at += sprintf(at, "%s", before);
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
    for (int i = 1; i <= n; i++) {
        int k = backwards ? n + 1 - i : i;
        at += sprintf(at, format, k, k - 1, k - 1);
    }
#pragma GCC diagnostic pop
    sprintf(at, "%s", after);
    return text;
}

static void check(const char *what, Arena *a, const char *text, bool right)
{
    static const char library_text[] =
        "distribution normal(real mu, real<lower=0> sigma) { support real; log_density = -square((x - mu) / sigma) / 2 - log(sigma); }";
    Diags *d = diags_new(a);
    Library lib = { 0 };
    front_parse_library(a, source_from_string(a, "library.gm", library_text), d, &lib);
    front_resolve_library(a, &lib, d);
    clock_t start = clock();
    Model *m;
    if (front_parse_model(a, source_from_string(a, "limits.gm", text), d, &m)) {
        front_resolve(a, m, &lib, d);
        front_types(a, m, &lib, d);
        FILE *out = fopen("/dev/null", "w");
        ast_print(out, m);
        diags_print(d, out);
        fclose(out);
    }
    double seconds = (double)(clock() - start) / CLOCKS_PER_SEC;
    bool good = (diags_errors(d) == 0) == right && seconds < SECONDS;
    printf("%s: %s: %d errors (%s expected), %.2f s (at most %.0f)\n", good ? "ok" : "FAILED", what, diags_errors(d),
           right ? "none" : "some", seconds, SECONDS);
    failed |= !good;
}

int main(void)
{
    Arena *a = arena_new();
    check("100,000 opening parentheses", a, repeat(a, "prior { a = ", "(", 100000, ""), false);
    check("100,000 signs", a, repeat(a, "prior { a = ", "-", 100000, "1; }"), false);
    check("100,000 opening brackets", a, repeat(a, "prior { a = ", "[", 100000, ""), false);
    check("100,000 subscripts", a, repeat(a, "prior { a = b", "[1]", 100000, "; }"), false);
    check("100,000 powers", a, repeat(a, "prior { a = 2", "^2", 100000, "; }"), false);
    check("100,000 terms", a, repeat(a, "prior { a = 1", " + 1", 100000, "; }"), false);
    check("100,000 conditionals", a, repeat(a, "prior { a = 1", " ? 1 : 1", 100000, "; }"), false);
    check("100,000 loops in each other", a, repeat(a, "prior { ", "for (i in 1:2) ", 100000, "a ~ normal(0, 1); }"), false);
    check("100,000 conditions in each other", a, repeat(a, "prior { ", "if (1) ", 100000, "a ~ normal(0, 1); }"), false);
    check("100,000 opening braces", a, repeat(a, "prior { ", "{", 100000, ""), false);
    check("3900 terms", a, repeat(a, "prior { a = 1", " + 1", 3900, "; }"), true);
    check("3900 parentheses", a, arena_printf(a, "%s1%s", repeat(a, "prior { a = ", "(", 3900, ""), repeat(a, "", ")", 3900, "; }")), true);
    check("20,000 variables", a, lines(a, "prior {\n", "a%d ~ normal(0, 1); # %d %d\n", 20000, false, "}"), true);
    check("20,000 elements of a variable", a, lines(a, "prior {\n", "a[%d] ~ normal(%d, 1); # %d\n", 20000, false, "}"), true);
    check("20,000 elements of a definition", a, lines(a, "prior {\n", "a[%d] = %d; # %d\n", 20000, false, "}"), true);
    check("a chain of 3900 definitions", a, lines(a, "prior { a0 = 1;\n", "a%d = a%d + 2*a%d;\n", 3900, false, "}"), true);
    check("the same backwards", a, lines(a, "prior { a0 = 1;\n", "a%d = a%d + 2*a%d;\n", 500, true, "}"), true);
    check("a chain of 20,000 definitions", a, lines(a, "prior { a0 = 1;\n", "a%d = a%d + 2*a%d;\n", 20000, false, "}"), false);
    check("the same backwards", a, lines(a, "prior { a0 = 1;\n", "a%d = a%d + 2*a%d;\n", 20000, true, "}"), false);
    check("a circle of 400 series", a,
          lines(a, "prior { a0[1] = 1; for (t in 2:3) a0[t] = a400[t - 1];\n", "for (t in 1:3) a%d[t] = a%d[t] + 2*a%d[t];\n", 400, false,
                "}"),
          true);
    check("sizes that double 60 times", a,
          lines(a, "let { a0 = 2;\n", "a%d = a%d + a%d;\n", 60, false, "vector[a60] x = rep_vector(0, a60); }"), true);
    check("sizes that are squared 60 times", a,
          lines(a, "let { a0 = 2;\n", "a%d = a%d * a%d;\n", 60, false, "vector[a60] x = rep_vector(0, a60); }"), true);
    check("matrices of vectors of matrices", a,
          lines(a, "data { int N; }\nlet { a0 = rep_vector(0, N);\n", "a%d = to_vector(rep_matrix(1, size(a%d), size(a%d)));\n", 60, false,
                "b = a60 + a60; }"), true);
    check("sizes of data in a chain", a, lines(a, "data { int a0;\n", "int a%d = a%d + a%d;\n", 20000, true, "}"), false);
    check("40,000 mistakes", a, lines(a, "prior {\n", "a%d ~ nrmal(b%d, 1); # %d\n", 40000, false, "}"), false);
    arena_free(a);
    return failed;
}
