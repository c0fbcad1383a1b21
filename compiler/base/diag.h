// diag.h -- messages: gathered during a run, printed in source order.
#ifndef GMC_DIAG_H
#define GMC_DIAG_H
#include <stdbool.h>
#include <stdio.h>
#include "source.h"

// diag.def has one line per message: DIAG(E0203, "`%s` is not defined")
typedef enum {
#define DIAG(code, text) DIAG_##code,
#include "diag.def"
#undef DIAG
    DIAG_COUNT
} DiagCode;

typedef struct Diags Diags;
typedef struct Diag Diag;

Diags *diags_new(Arena *a);
Diag *diag(Diags *d, Span at, DiagCode code, ...);    // arguments of the text in diag.def
void diag_help(Diag *m, const char *format, ...);     // "= help: ..." under the message
void diag_because(Diag *m, const char *format, ...);  // "= because: ..."
int diags_errors(const Diags *d);                     // number of E messages so far
void diags_print(const Diags *d, FILE *out);          // all, in source order, with line and caret
#endif
