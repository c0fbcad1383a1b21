// words.h -- the words that an emitted program has before the model adds any.
#ifndef GMC_WORDS_H
#define GMC_WORDS_H
#include <stdbool.h>
#include "arena.h"

bool word_reserved(const char *word);       // a keyword, or what a header of C has as a macro: no name of any kind
bool word_declared(const char *word);       // declared by the runtime for the whole program: no name of a function
const char *macro_words(const char *word);  // what the text of this macro of the runtime names, between spaces; NULL: no macro

// The name itself, or with one `_` more at its end if it is met by `taken` before those at its end: different names stay different.
const char *word_apart(Arena *a, const char *name, bool (*taken)(const char *));
#endif
