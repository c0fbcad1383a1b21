// formula.h -- formulas as a page shows them: small trees, made of expressions and printed by mathml.c, latex.c and plain.c.
//
// An Expr says what is computed; a Formula says what stands where: this above that line, these in parentheses.
#ifndef GMC_FORMULA_H
#define GMC_FORMULA_H
#include "../graph/plan.h"

typedef enum {
#define SIGN(id, plain, mathml, latex) SIGN_##id,
#include "signs.def"
} SignId;

typedef enum {
    FORMULA_NUMBER,    // text
    FORMULA_SYMBOL,    // text: a variable of the model, alpha_c
    FORMULA_INDEX,     // text: a loop index
    FORMULA_WORD,      // text: a function, a distribution, a parameter of one
    FORMULA_PROSE,     // text: words between formulas
    FORMULA_SIGN,      // sign
    FORMULA_ROW,       // kids side by side
    FORMULA_FRACTION,  // kid 0 above kid 1
    FORMULA_ROOT,      // of kid 0
    FORMULA_POWER,     // kid 0 with kid 1 above
    FORMULA_INDEXED,   // kid 0 with the others as subscripts
    FORMULA_FENCED,    // kid 0 between `open` and what closes it: ( [ { |
    FORMULA_BIG,       // sign over the range kid 0, to kid 1 unless that is NULL; kid 2 is its body
    FORMULA_CASES,     // value, condition, value, condition, ...; the last condition may be NULL
} FormulaKind;

typedef struct Formula {
    FormulaKind kind;
    const char *text;
    const struct SplitName *split;  // of a SYMBOL
    bool marked;                    // of a SYMBOL: a variable of the model
    SignId sign;
    char open;
    int n;
    const struct Formula **kid;
} Formula;

// How indices are called on a part of a page. Within a part a name has one meaning, whatever the loops were called.
typedef struct Notation {
    Arena *arena;
    Graph *g;
    struct IndexName *names;
    int n, size;
    int parts;  // of the formula that is being made: a longer one is cut
} Notation;

Notation notation_new(Graph *g);
// the index is called `name`, if nothing else is: as the model calls it
void notation_fix(Notation *t, const Index *i, const char *name);
// within the loops: each of their indices has a name of its own, and what is written there no other of that name
void notation_open(Notation *t, const Loops *over);
void notation_close(Notation *t, const Loops *over);

const Formula *formula_of(Notation *t, const Expr *e);
const Formula *formula_condition(Notation *t, const Expr *e);  // a condition as a statement, without 1[...]
const Formula *formula_sum(Notation *t, const Loops *over, const Expr *e);
const Formula *formula_loops(Notation *t, const Loops *over);  // i in 1:N, j in 1:T, where ...; NULL: there are none

const Formula *formula_sign(Notation *t, SignId sign);
const Formula *formula_word(Notation *t, const char *text);
const Formula *formula_letter(Notation *t, const char *text);  // in italics, as an index
const Formula *formula_prose(Notation *t, const char *text);
const Formula *formula_symbol(Notation *t, const Var *v);
const Formula *formula_fenced(Notation *t, char open, const Formula *f);
const Formula *formula_power(Notation *t, const Formula *base, const Formula *exponent);
const Formula *formula_row(Notation *t, int n, const Formula *const *kids);
const Formula *formula_list(Notation *t, int n, const Formula *const *kids);                    // with commas
const Formula *formula_call(Notation *t, const char *name, int n, const Formula *const *kids);  // name(a, b)
#define ROW(t, ...) \
    formula_row(t, (int)(sizeof((const Formula *const[]){__VA_ARGS__}) / sizeof(const Formula *)), (const Formula *const[]){__VA_ARGS__})

// A name of the model as typesetters write it: sigma_alpha is sigma with the subscript alpha.
typedef struct GreekLetter {
    const char *name, *mathml, *latex;
} GreekLetter;
typedef struct SplitName {
    const char *base;
    const GreekLetter *greek;       // base; NULL: it is none
    const struct SplitName *below;  // NULL: there is none
} SplitName;
SplitName split_name(Arena *a, const char *name);

// ---- the printers: mathml.c, latex.c, plain.c ----

void formula_mathml(FILE *out, const Formula *f);  // without <math>; symbols carry data-s, for marking
void mathml_big(FILE *out, const Formula *f);      // of a FORMULA_BIG what stands before its body
void formula_latex(FILE *out, const Formula *f);
void formula_plain(FILE *out, const Formula *f);
void html_text(FILE *out, const char *text);   // with what HTML needs escaped
void latex_text(FILE *out, const char *text);  // the same for LaTeX
#endif
