// factors.h -- factors of the model as trees that the runtime can evaluate: at a point, or over ranges of values.
#ifndef GM_FACTORS_H
#define GM_FACTORS_H

#include "chains.h"

typedef struct Range {
    double lo, hi;
} Range;  // all that a number can be; lo == hi: the number

typedef struct Node Node;

typedef struct Formula {  // a factor or a definition
    int n;                // indices that it runs over, each in lo:hi, both in terms of those before it
    Node *lo[2 * GM_MAX_RANK], *hi[2 * GM_MAX_RANK];
    Node *guard, *value;  // guard: NULL if there is none
    int rank;             // of a definition: subscripts
    Node *at[GM_MAX_RANK];
    int field;  // of a definition: in the state
} Formula;

// What the unknowns can be while a formula is evaluated. Elements of a state field whose `lo` is NULL are numbers, as they stand in memory.
typedef struct Box {
    const GmModel *model;
    const GmMemory *memory;
    const GmData *data;
    int chain;
    double **lo, **hi;  // by state field
    long index[64];     // values of the indices, from 1
    bool impossible;    // no value in the ranges gives a number
    double short_by;    // and a matrix is that far from being positive definite, from 0 to 1
    bool empty;         // nothing lies between two ends, whatever the elements are:
    double end[2];
    double looked;  // elements of matrices that were looked at
    bool asked;     // collect the elements that are read:
    int n_read, size_read;
    struct Element {
        int field;
        long at;
    } * read;
} Box;

typedef struct Factors {
    const GmModel *model;
    int n;
    Formula *formula;  // by factor; value is NULL where it cannot be read
    Node *nodes;       // all of them, chained
    bool computed;     // elements of recursions and of solutions are read as they stand in memory; else they may be anything
} Factors;

// Reads the factors and evaluates the definitions of data that they need, into the memory of all chains.
void factors_open(Factors *f, const GmModel *model, const GmMemory *m, const GmData *d, bool computed);
void factors_close(Factors *f);
// Another formula over these indices, in the notation of factors; its value is NULL if it cannot be read. factors_close frees it.
Formula formula_read(Factors *f, const char *over, const char *guard, const char *value);

// Calls `visit` for every place of the indices at which the guard holds, until it returns false.
void formula_visit(const Formula *f, Box *b, bool (*visit)(const Formula *f, Box *b, void *with), void *with);
// The same for a part of the range of the first index, of `parts` that are about equal. Threads may visit parts, each with its own box.
void formula_visit_part(const Formula *f, Box *b, int part, int parts, bool (*visit)(const Formula *f, Box *b, void *with), void *with);
Range formula_range(const Formula *f, Box *b);  // at b->index; b->impossible says whether there is any
// Calls `cut` for every element that a term within(element, lo, hi) of the sum confines, with the ends; stops when it returns false.
bool formula_ends(const Formula *f, Box *b, bool (*cut)(int field, long at, double lo, double hi, void *with), void *with);
bool formula_of_matrix(const Formula *f);    // it asks that a matrix has a factor, or an inverse
bool range_possible(const Box *b, Range r);  // can it be finite?

#endif
