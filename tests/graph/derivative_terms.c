// If this fails, what stands in one linear predictor would not share its weight, so that it is computed for each coefficient anew; or the
// weights of softmax would not stand apart from the covariates they multiply.
#include <stdio.h>
#include <string.h>
#include "../../compiler/front/front.h"
#include "../../compiler/graph/plan.h"

static int failed;

static void check(const char *what, bool good)
{
    printf("%s  %s\n", good ? "ok  " : "FAIL", what);
    failed += !good;
}

static const char model[] = "data { int N; int p; int J; int K; matrix[N, p] X; vector[N] x; vector[N] y; int<lower=1, upper=J> g[N]; "
                            "int<lower=1, upper=K> c[N]; }\n"
                            "prior { alpha ~ flat(); b ~ flat(); beta[1:p] ~ flat(); for (j in 1:J) u[j] ~ flat(); for (j in 1:J) v[j] ~ "
                            "flat(); sigma ~ half_flat();\n"
                            "        for (j in 1:p, k in 1:K) B[j, k] ~ flat(); }\n"
                            "likelihood { for (i in 1:N) y[i] ~ normal(alpha + b * x[i] + X[i] * beta + u[g[i]] + v[g[i]] * x[i], sigma); "
                            "for (i in 1:N) c[i] ~ categorical_logit(X[i] * B); }\n";

static bool read_folder(Arena *a, Library *lib, Diags *d)
{
    static const char *const names[] = {"flat", "half_flat", "normal", "categorical_logit"};
    for (int i = 0; i < 4; i++) {
        const Source *s = source_read(a, arena_printf(a, "stdlib/distributions/%s.gm", names[i]));
        if (!s || !front_parse_library(a, s, d, lib)) return false;
    }
    return front_resolve_library(a, lib, d);
}

static Var *named(const Graph *g, const char *name)
{
    for (int i = 0; i < g->nvars; i++)
        if (strcmp(g->vars[i]->name, name) == 0) return g->vars[i];
    return NULL;
}

static const Derivative *of(const Derivative *d, const Var *v)
{
    while (d && d->ref->var != v) d = d->next;
    return d;
}

int main(void)
{
    Arena *a = arena_new();
    expr_start(a);
    Diags *d = diags_new(a);
    Library lib = {0};
    Model *m = NULL;
    if (!read_folder(a, &lib, d) || !front_parse_model(a, source_from_string(a, "model.gm", model), d, &m) ||
        !front_resolve(a, m, &lib, d) || !front_types(a, m, &lib, d)) {
        diags_print(d, stdout);
        return 1;
    }
    Graph g = {.arena = a, .diags = d, .model = m, .stdlib = &lib};
    if (!build(&g) || !read_derivatives(&g)) return 1;
    Var *block[] = {named(&g, "alpha"), named(&g, "b"),     named(&g, "beta"), named(&g, "u"),
                    named(&g, "v"),     named(&g, "sigma"), named(&g, "B")};
    const Factor *normal = NULL, *softmax = NULL;
    for (const Factor *f = g.factors; f; f = f->next) {
        if (f->dist && strcmp(f->dist->name, "normal") == 0) normal = f;
        if (f->dist && strcmp(f->dist->name, "categorical_logit") == 0) softmax = f;
    }
    Derivative *terms, *logits;
    const char *because;
    if (!derivatives(&g, normal, block, 7, &terms, &because) || !derivatives(&g, softmax, block, 7, &logits, &because)) return 1;
    Expr *i = ex_index(normal->plates.index[0]), *w = of(terms, block[0])->weight;
    for (int k = 1; k < 5; k++)
        check(arena_printf(a, "%s has the weight of the intercept", block[k]->name), of(terms, block[k])->weight == w);
    check("the intercept gets it as it is", ex_is_num(of(terms, block[0])->rest, 1));
    check("a coefficient gets it times its covariate", of(terms, block[1])->rest == ex_ref(named(&g, "x"), 1, &i));
    check("so does a coefficient that is looked up", of(terms, block[4])->rest == ex_ref(named(&g, "x"), 1, &i));
    const Derivative *beta = of(terms, block[2]);
    check("a vector gets it times a row",
          beta->loops.n == 2 && beta->rest == ex_ref(named(&g, "X"), 2, (Expr *[]){i, ex_index(beta->loops.index[1])}) && !beta->inner);
    check("the scale has another", of(terms, block[5])->weight != w);

    const Derivative *soft = logits;
    while (soft && !soft->inner) soft = soft->next;
    check("softmax has an inner weight", soft != NULL);
    if (soft) {
        Expr *row = ex_index(softmax->plates.index[0]), *j = ex_index(soft->loops.index[2]);
        check("in the row and the class", soft->loops.n == 3 && soft->ninner == 2 && !ex_mentions_index(soft->inner, soft->loops.index[2]));
        check("which multiplies the row of covariates", soft->last == ex_ref(named(&g, "X"), 2, (Expr *[]){row, j}));
        check("rest is their product", soft->rest == ex_mul2(soft->inner, soft->last));
    }
    printf("%d failed\n", failed);
    return failed > 0;
}
