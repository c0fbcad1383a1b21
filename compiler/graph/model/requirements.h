// requirements.h -- what data must satisfy.
#ifndef GMC_GRAPH_REQUIREMENTS_H
#define GMC_GRAPH_REQUIREMENTS_H
#include "../graph.h"

typedef struct Requirement {  // checked once, when the data have been read
    Span span;                // the statement
    const char *name;         // of the variable
    Loops loops;              // in no iteration may one of `fails` be true
    int nparts;
    Expr *fails[2];
    Expr *part[2];     // the same as a number that must not be negative; NULL: it has no such form
    const char *says;  // the message, with # for each number
    int nnumbers;
    Expr *number[MAX_RANK + 1];
    bool counted;  // it reads how often elements are named, which are sums of data
    struct Requirement *next;
} Requirement;

typedef struct Edges {  // of a graph that a density is about: each pair of nodes stands once, and no node is joined to itself
    Span span;          // the statement
    const char *law;    // its distribution
    Loops loops;        // around the statement, then over the edges
    Expr *from, *to;    // the nodes that an edge joins, from 1 to:
    Expr *nodes;
    Expr *parts;  // so many, without edges between them; NULL: any number
    struct Edges *next;
} Edges;

typedef struct Coverage Coverage;

typedef struct Requirements {
    Graph *g;
    Requirement **last;
    Var *defining;    // the definition of data being visited, which is computed before requirements are checked; or NULL
    bool predicting;  // in the predict block
    int nindices;
    Index **index;  // of loops, shared by requirements
} Requirements;

void require(Requirements *c, Requirement k);     // adds it, unless it follows from loops, conditions and bounds
const char *requirements_line(Graph *g, Span s);  // file.gm:12

// the condition that a subscript which no loop changes names an element; NULL: data satisfy it in every run, or a loop or a draw changes it
Expr *subscript_inside(const Graph *g, Expr *s, Expr *dim);
// the same for all subscripts in e, regardless of the conditions and sums around them; NULL
Expr *reads_inside(const Graph *g, const Expr *e);
#endif
