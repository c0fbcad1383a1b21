// placement.h -- where each array of the emitted program lives, and of which type its elements are. The rule stands at the head of
// placement.c.
#ifndef GMC_PLACEMENT_H
#define GMC_PLACEMENT_H
#include "../graph/plan.h"

typedef enum {
#define HOME(id, name, shared, help) HOME_##id,
#include "placement.def"
} ArrayHome;

typedef enum {
#define ELEMENT_TYPE(id, c, help) TYPE_##id,
#include "placement.def"
} ElementType;

typedef enum {
#define ROLE(id, home, type, help) ROLE_##id,
#include "placement.def"
} ArrayRole;

// Fewer rows than coefficients, or rows that are told one by one (Rows.told): rows are read as they are; or not. Of the first: those of one
// kind and of the other. Statistics that only what is not done then reads.
typedef enum { ALWAYS, IF_FEW, IF_MANY, IF_SYSTEM, IF_LISTED, UNLESS_LISTED } When;
const char *when_text(When when);

typedef struct Placement {
    const Var *var;
    ArrayHome home;
    ElementType type;
    When when;         // with how many rows it has elements
    const Rows *rows;  // of `when`
    int stands_in;     // only what stands in for the sparse block of this number uses it; 0: other steps do, too
    bool diagnostics;  // ROLE_DIAGNOSTICS
} Placement;

typedef struct Placements {
    int n, size;
    Placement *at;
} Placements;  // by the number of the variable

struct Program;
void place_variables(struct Program *p);                               // those of the graph
void place_sums(struct Program *p, const Sum *sums);                   // statistics
Var *place_copy(struct Program *p, Var *v, const Var *of);             // of data or a definition; returns it
Var *place_array(struct Program *p, Var *v, ArrayRole role);           // a work array; returns it
void place_routes(struct Program *p);                                  // the pass `placement`: which arrays one route alone needs
const Placement *placement_of(const struct Program *p, const Var *v);  // of a local variable: wide
bool is_real(const struct Program *p, const Var *v);                   // a GPU may keep it in single precision
void placements_print(FILE *out, const struct Program *p);             // --dump=placement
const char *placements_check(const struct Program *p);                 // what is wrong, or NULL
#endif
