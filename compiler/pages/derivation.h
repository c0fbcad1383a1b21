// derivation.h -- what a page says of a model: its unknowns, and how the conditional of each update is derived.
#ifndef GMC_DERIVATION_H
#define GMC_DERIVATION_H
#include "../kernel/kernel.h"
#include "formula.h"

typedef struct Row {         // of a step
    const char *words;       // before the formula; NULL: none
    const Formula *formula;  // NULL: words alone
    const Formula *over;     // the loops it stands in; NULL: none
    int line;                // of the model that it comes from; 0: of none
    const char *note;        // behind it; NULL: none
} Row;

typedef struct DerivationStep {
    const char *title;  // Collect, Complete, Recognise, Names
    const char *words;  // what is done in it
    int n, size;
    Row *row;
} DerivationStep;

enum { MOST_DERIVATION_STEPS = 4 };

typedef struct ShownCode {  // beside a derivation
    const char *name;
    const Kernel *kernel;        // NULL: the function
    const UpdateCode *function;  // that launches the kernels of the update
    bool open;                   // as the page is
} ShownCode;

typedef struct Derivation {  // of an update
    const Update *update;
    const char *id;       // update-3: of the third of the sweep
    const char *subject;  // what it draws
    const char *method, *because, *elements, *cost;
    const char *brief;  // the method in a word or two
    int line;
    const Formula *law;
    int nsteps;
    DerivationStep step[MOST_DERIVATION_STEPS];
    int nchanges, changes_size;
    const char **change;  // what would make it another method
    int ncode, codes_size;
    ShownCode *code;  // its kernels, the function that launches them, kernels that make what these read, where a page first shows them
} Derivation;

typedef struct Unknown {
    const Var *v;
    int line;
    DerivationStep terms;  // the terms of the log joint that it appears in
    int n, size;
    const Derivation **by;  // updates that draw it, in the order of the sweep
} Unknown;

typedef struct Pages {
    const Program *program;
    Graph *g;
    Arena *arena;
    const char *title, *file;  // of the model
    const Source *source;
    int nunknowns, nderivations;
    Unknown *unknown;
    Derivation *derivation;
    DerivationStep computed;  // what is computed of each draw
    Map explained;  // variables that a step has defined, kernels that are shown, distributions that are explained
} Pages;

Pages *pages_new(const Program *p, const char *path);  // after complete_program
// In a line: what is drawn from which law, and how; of the update that draws most of it.
void unknowns_print(FILE *out, const Pages *p);
#endif
