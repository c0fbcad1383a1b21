// numbers.h -- computed numbers: freed of their rounding; as fractions; and by the formula that they were computed by.
//
//   -2.528376445638773    is -log(5) - log(2*pi())/2
//
// Expressions have numbers in place of what was computed of numbers alone. Readers see the formula (expr_print.c, emit/numbers.c, pages).
#ifndef GMC_GRAPH_NUMBERS_H
#define GMC_GRAPH_NUMBERS_H
#include "expr.h"

// the decimal or the fraction that it is but for its rounding, or v itself; size: of what it is a sum of, 1 - 0.9 having their rounding
double number_tidy(double v);
double number_tidy_sum(double v, double size);
// whether it is a quotient but for its rounding; `most`: of the divisor. 1: exactly
int number_fraction(double v, long most, long *above, long *below);
Expr *number_formula(double v);  // NULL: it is no computed number, or a short one

// What was computed, so that its result has a formula where one of the parts has one, or a function made it.
void number_sum(double a, double b);
void number_product(double a, double b);
void number_power(double base, double r, double result);
void number_call(const char *name, double x, double result);
void number_pi(void);
#endif
