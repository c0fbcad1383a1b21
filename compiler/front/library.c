// library.c -- names, then types, of the distributions, families and augmentations of a library.
#include "check.h"

bool front_resolve_library(Arena *a, Library *lib, Diags *d)
{
    const int errors = diags_errors(d);
    resolve_library(a, lib, d);
    types_library(a, lib, d);
    return diags_errors(d) == errors;
}
