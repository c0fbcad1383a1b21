// If this fails, an update could fill members of another kind than its own, which its readers take for their own, and `--check-passes`
// would not say so.
#include <stdio.h>
#include <string.h>
#include "../../compiler/graph/plan.h"

static int failed;
static Arena *a;
static Graph g;
static Var x = {.name = "x", .kind = VAR_AUXILIARY};
static Var *block[] = {&x};

// graph_check of a graph with this update alone.
static void try(const char *what, Update s, const char *says)
{
    s.block = block;
    s.nblock = 1;
    g.updates = &s;
    const char *wrong = graph_check(&g, "schedule");
    const bool right = says ? wrong && strstr(wrong, says) : !wrong;
    printf("%s  %s: %s\n", right ? "ok  " : "FAIL", what, wrong ? wrong : "nothing is wrong");
    failed += !right;
}

int main(void)
{
    a = arena_new();
    expr_start(a);
    g.arena = a;
    Conditional c = {.var = &x}, other = {.var = &x};
    Expr *one = ex_num(1), *two = ex_num(2);
    struct Predictive weights = {.weights = &x};
    Pair pair = {.indicator = &other, .coefficient = &c};
    const Update values = {.kind = UPDATE_ENUM, .conditional = &c, .enumerate = {.lower = one, .upper = two}};
    const Update normal = {.kind = UPDATE_GAUSSIAN, .gaussian.sparse = 1, .joint = 1};

    try("values with both ends", values, NULL);
    Update s = values;
    s.enumerate.upper = NULL;
    try("values without an end", s, "no first or last value");
    s = values;
    s.enumerate.by_messages = s.enumerate.at_once = true;
    try("a chain in two ways", s, "draws a chain in two ways");
    s = values;
    s.enumerate.group = s.enumerate.ngroups = one;
    try("groups of weights that are drawn", s, "not integrated out");
    s.enumerate.predictive = &weights;
    try("groups of weights that are integrated out", s, NULL);
    s = values;
    s.conditional = NULL;
    try("values without a conditional", s, "has no conditional");

    try("a block", normal, NULL);
    s = normal;
    s.joint = 2;
    try("a block with two numbers", s, "another number than its sparse block");
    s = normal;
    s.conditional = &c;
    try("a block of one element", s, "the conditional of one element");
    s = normal;
    s.gaussian.arrow = true;
    try("an arrow of one variable", s, "a diagonal variable and no other");

    try("a slice", (Update){.kind = UPDATE_SLICE, .conditional = &c, .slice.width = one}, NULL);
    try("a family that is not there", (Update){.kind = UPDATE_EXACT, .conditional = &c}, "no family");
    try("the pair of another unknown", (Update){.kind = UPDATE_PAIR, .conditional = &c, .pair = &pair}, "another pair");
    try("expectations without arrays", (Update){.kind = UPDATE_SLICE, .conditional = &c, .does = EXPECTS}, "arrays of expectations");

    // what an update of another kind has not
    s = values;
    s.enumerate.predictive = &weights;
    const bool has = predictive_of(&s) == &weights && !white_of(&s) && !proposal_of(&s) && !all_categories_of(&s);
    s.kind = UPDATE_GAUSSIAN;
    const bool has_not = !predictive_of(&s) && !update_by_messages(&s) && !update_at_once(&s) && !white_of(&s);
    printf("%s  members of other kinds\n", has && has_not ? "ok  " : "FAIL");
    failed += !(has && has_not);
    printf("%d failed\n", failed);
    return failed > 0;
}
