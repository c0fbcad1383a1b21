// If this crashes, some text makes the front end read memory that is not its own, run out of stack or never end; it should only give
// messages.
//
// A libFuzzer target. The first byte picks model or library file; the rest is the text. Everything up to types and printing runs,
// with a small library parsed once. Build and run: see tests/fuzz/README.md.
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include "../../compiler/front/front.h"

static const char library_text[] =
    "distribution normal(real mu, real<lower=0> sigma) { support real; log_density = -square((x - mu) / sigma) / 2 - log(sigma);"
    " log_cdf = log_Phi((x - mu) / sigma); sample = normal_mean_sd(mu, sigma); }\n"
    "distribution bernoulli(real<lower=0, upper=1> theta) { support integer(0, 1);"
    " log_density = x * log(theta) + (1 - x) * log1m(theta); }\n"
    "distribution poisson(real<lower=0> lambda) { support integer(0, infinity());"
    " log_density = x * log(lambda) - lambda - lgamma(x + 1); }\n"
    "distribution dirichlet(vector<lower=0> alpha) { support simplex(rows(alpha));"
    " log_density = sum(k in 1:rows(alpha), (alpha[k] - 1) * log(x[k])); }\n"
    "distribution multi_normal(vector mu, matrix S) { support vector(rows(mu)); log_density = -quad_form(inverse(S), x - mu) / 2; }\n"
    "distribution wishart(real<lower=0> nu, matrix S) { support covariance(rows(S)); log_density = log_determinant(x); }\n"
    "distribution flat() { support real; log_density = 0; }\n"
    "augmentation albert_chib { match y ~ bernoulli(Phi(eta)); where linear(eta); replace { z ~ normal(eta, 1); y = z > 0; } }\n";

static const Library *library_once(void)
{
    static Library lib;
    if (lib.distributions) return &lib;
    Arena *a = arena_new();                            // kept
    Diags *d = diags_new(a);
    front_parse_library(a, source_from_string(a, "library.gm", library_text), d, &lib);
    if (!front_resolve_library(a, &lib, d)) abort();
    return &lib;
}

static void model(Arena *a, const Source *s, Diags *d, FILE *out)
{
    const Library *lib = library_once();
    Model *m;
    if (!front_parse_model(a, s, d, &m)) return;
    bool names = front_resolve(a, m, lib, d);
    bool types = front_types(a, m, lib, d);
    if (names && types != (diags_errors(d) == 0)) abort();
    ast_print(out, m);
}

static void library(Arena *a, const Source *s, Diags *d)
{
    Library lib = { 0 };
    if (front_parse_library(a, s, d, &lib)) front_resolve_library(a, &lib, d);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 1) return 0;
    static FILE *out;
    if (!out) out = fopen("/dev/null", "w");
    Arena *a = arena_new();
    Diags *d = diags_new(a);
    char *text = malloc(size);
    for (size_t i = 1; i < size; i++) text[i - 1] = data[i] ? (char)data[i] : '\1';     // a byte of 0 would end the text
    text[size - 1] = '\0';
    Source *s = source_from_string(a, "fuzz.gm", text);
    free(text);
    if (data[0] == 'L') library(a, s, d);
    else model(a, s, d, out);
    diags_print(d, out);
    arena_free(a);
    return 0;
}
