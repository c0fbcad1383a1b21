// functions.h -- what is known of each function: the rows of functions.def.
#ifndef GMC_FUNCTIONS_H
#define GMC_FUNCTIONS_H

#include <stdbool.h>

typedef enum {
    FN_OTHER,  // no row: a routine that the stdlib names
#define ELEMENT(name, args, result, sign, traits, domain, ranges, dx, dy, dz) FN_##name,
#define WHOLE(name, args, result)                                             FN_##name,
#define AGAIN(name, args, result)
#define INTERNAL(id, name, op, args, sign, traits, domain, dx, dy, dz) FN_##id,
#include "../../runtime/device/functions.def"
    NFN
} FunctionId;

typedef enum { SIGN_ANY, SIGN_NOT_NEGATIVE, SIGN_POSITIVE, SIGN_UNIT, SIGN_NOT_POSITIVE } Sign;
enum { TRAIT_LOG_END = 1, TRAIT_POLES = 2, TRAIT_BOUNDED = 4, TRAIT_APART = 8, TRAIT_YES_NO = 16 };

// Type and shape of a value, as the head of functions.def has them; the rest by expressions.c.
typedef enum {
    RESULT_EACH,
    RESULT_EACH_SAME,
    RESULT_EACH_INT,
    RESULT_REAL,
    RESULT_INT,
    RESULT_SCALAR,
    RESULT_LIKE,
    RESULT_LIKE_REAL,
    RESULT_LIKE_INT,
    RESULT_CHOICE,
    RESULT_REP_VECTOR,
    RESULT_REP_ARRAY,
    RESULT_REP_ARRAY_REAL,
    RESULT_TO_VECTOR,
    RESULT_APPEND_ROW,
    RESULT_APPEND_COL,
    RESULT_BETWEEN,
    RESULT_LENGTH_2,
    RESULT_LENGTH_3,
    RESULT_LENGTH_ROWS,
    RESULT_LENGTH_COLS,
    RESULT_ONE_MORE,
    RESULT_SQUARE_ROWS,
    RESULT_SQUARE_COLS,
    RESULT_SQUARE_1,
    RESULT_SOLUTION
} Result;

typedef struct FunctionRow {
    const char *name;
    Result result;      // of the first row of the name
    const char *infix;  // an operator's name in C; NULL: a call of the same name
    Sign sign;
    int traits;
    const char *domain;         // a letter an argument; NULL: not known
    const char *derivative[3];  // by each argument, as in functions.def; NULL in rows of whole arrays
} FunctionRow;

extern const FunctionRow function_rows[NFN];

// The row of an interned name.
FunctionId function_id(const char *name);

static inline bool sign_not_negative(Sign s) { return s == SIGN_NOT_NEGATIVE || s == SIGN_POSITIVE || s == SIGN_UNIT; }
static inline bool sign_positive(Sign s) { return s == SIGN_POSITIVE || s == SIGN_UNIT; }

#endif
