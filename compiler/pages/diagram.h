// diagram.h -- the plate diagram: the model as written, as a graph of its variables.
#ifndef GMC_DIAGRAM_H
#define GMC_DIAGRAM_H
#include "formula.h"

typedef enum { NODE_IS_UNKNOWN, NODE_IS_OBSERVED, NODE_IS_DATA, NODE_IS_COMPUTED, NODE_IS_TERM } DiagramKind;

typedef struct DiagramNode {
    const Var *v;       // NULL: a term of target +=
    const char *name;   // v, or target
    const char *index;  // of its elements, as its statement calls them: "i, j"; "" if there is one
    DiagramKind kind;
    int plate;                   // 0: it is in none
    bool to_itself;              // its elements depend on each other
    double x, y, width, height;  // x, y: the centre
} DiagramNode;

typedef struct DiagramPlate {
    const char *label;  // i in 1:N
    const Expr *lo, *hi;
    int parent;                  // 0: all of the diagram, which is plate 0
    double label_end;            // where the label ends, from x: no edge crosses it
    double x, y, width, height;  // x, y: the upper left corner, of its parent until all is laid out
} DiagramPlate;

enum { MOST_BENDS = 24 };
typedef struct DiagramEdge {
    int from, to;
    int n;
    double x[MOST_BENDS], y[MOST_BENDS];  // what it passes between its ends, from above
    int plate[MOST_BENDS];                // of which these are places, until all is laid out
} DiagramEdge;

enum { MOST_DRAWN = 40 };  // nodes, of a diagram that is laid out

typedef struct Diagram {
    Arena *arena;
    int nnodes, nplates, nedges, nodes_size, plates_size, edges_size;
    DiagramNode *node;
    DiagramPlate *plate;
    DiagramEdge *edge;
    bool laid_out;  // it has at most MOST_DRAWN nodes
    double width, height;
} Diagram;

Diagram *diagram_new(Graph *g);  // of the model as written; laid out, if that is small enough

// ---- the printers: svg.c, graph_text.c ----

void diagram_svg(FILE *out, const Diagram *d, const char *title);  // nodes are links to #unknown-NAME
bool diagram_svg_file(FILE *out, const Graph *g, const char *title);  // the same as a file; false: it has too many nodes
void diagram_dot(FILE *out, const Graph *g);
void diagram_mermaid(FILE *out, const Graph *g);
#endif
