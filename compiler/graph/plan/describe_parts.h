// describe_parts.h -- what the files that describe updates offer each other.
#ifndef GMC_GRAPH_DESCRIBE_PARTS_H
#define GMC_GRAPH_DESCRIBE_PARTS_H
#include "../conditional.h"
#include "../update.h"

// ---- describe_text.c ----

const char *shown(const Graph *g, const Expr *e);
const char *shown_over(const Graph *g, const Expr *e, const Loops *l);
Expr *named_expr(Graph *g, const char *name);
Expr *summed_expr(Graph *g, const char *name, const Loops *l, Expr *value);
// the largest of these lower ends, the smallest of these upper ones (side 1); infinite where there is none
Expr *end_expr(Graph *g, const char *name, const Loops *l, Expr *value, int side);
void add_line(Graph *g, Description *d, const char *t, Statement as);
Statement statement_adds(const char *words, Expr *value, const Loops *over, const Factor *f);
Statement statement_is(const char *name, Expr *value);
Statement statement_becomes(const char *words, Expr *left, Expr *value);
Statement statement_words(const char *words);
bool names_variable(const Graph *g, const char *name);
void name_apart(const Graph *g, Loops *l, Expr **e[], int n);
const char *shown_loops(Graph *g, const Loops *l);
Loops plates_of_factor(const Factor *f);
void describe_law(Graph *g, Description *d, const char *what, const char *is);
const char *shown_element(Graph *g, const Conditional *c);
const char *free_letter(const Graph *g, const char *const *letters);

// ---- describe_family.c ----

void describe_family(Graph *g, Description *d, const Conditional *c);

// ---- describe_density.c ----

void describe_density(Graph *g, Description *d, const Update *s);

// ---- describe_normal.c ----

void describe_block(Graph *g, Description *d, const Update *s);
void describe_white(Graph *g, Description *d, const Update *s);
void describe_scales(Graph *g, Description *d, const Update *s);
void describe_proposal(Graph *g, Description *d, const Update *s);

// ---- describe_group.c ----

void describe_group_move(Graph *g, Description *d, const Update *s);
#endif
