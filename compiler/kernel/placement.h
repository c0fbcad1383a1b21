// placement.h -- where each array of the emitted program lives, and of which type its elements are. The rule is at the head of
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

// Under which condition on rows an array is needed, or a launch made. IF_FEW: there are fewer rows than coefficients, or the rows are
// listed one by one (Rows.listed); rows are then read as they are. IF_MANY: neither. IF_SYSTEM and IF_LISTED: the two cases of IF_FEW.
// UNLESS_LISTED: for statistics that only updates read which are left out where rows are listed.
typedef enum { ALWAYS, IF_FEW, IF_MANY, IF_SYSTEM, IF_LISTED, UNLESS_LISTED } When;
const char *when_text(When when);

typedef struct Placement {
    const Var *var;
    ArrayHome home;
    ElementType type;
    When when;         // with how many rows it has elements
    const Rows *rows;  // of `when`
    int stands_in;     // only updates in place of the sparse block of this number use it; 0: other updates do, too
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
