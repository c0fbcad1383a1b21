// words.c -- which words a name of the model must not be in the program.
//
// The headers of the runtime are read when gmc is built (words.awk), so a routine that is added there needs nothing here.
#include <stdlib.h>
#include <string.h>
#include "words.h"

// Keywords of C, of C++ and of CUDA, which the program is, too; macros in small letters of the compilers and of the headers of C.
static const char *const reserved[] = {
    "I",
    "alignas",
    "alignof",
    "and",
    "and_eq",
    "asm",
    "auto",
    "bitand",
    "bitor",
    "bool",
    "break",
    "case",
    "catch",
    "char",
    "char16_t",
    "char32_t",
    "char8_t",
    "class",
    "co_await",
    "co_return",
    "co_yield",
    "compl",
    "complex",
    "concept",
    "const",
    "const_cast",
    "consteval",
    "constexpr",
    "constinit",
    "continue",
    "decltype",
    "default",
    "delete",
    "do",
    "dot",
    "double",
    "dynamic_cast",
    "else",
    "enum",
    "errno",
    "explicit",
    "export",
    "extern",
    "false",
    "float",
    "for",
    "friend",
    "goto",
    "i386",
    "if",
    "imaginary",
    "inline",
    "int",
    "linux",
    "long",
    "math_errhandling",
    "mutable",
    "namespace",
    "new",
    "noexcept",
    "not",
    "not_eq",
    "nullptr",
    "operator",
    "or",
    "or_eq",
    "private",
    "protected",
    "public",
    "real",
    "register",
    "reinterpret_cast",
    "requires",
    "restrict",
    "return",
    "short",
    "signed",
    "sizeof",
    "solve",
    "static",
    "static_assert",
    "static_cast",
    "stderr",
    "stdin",
    "stdout",
    "struct",
    "switch",
    "template",
    "this",
    "thread_local",
    "throw",
    "true",
    "try",
    "typedef",
    "typeid",
    "typename",
    "typeof",
    "typeof_unqual",
    "union",
    "unix",
    "unsigned",
    "using",
    "virtual",
    "void",
    "volatile",
    "wchar_t",
    "while",
    "wide",
    "xor",
    "xor_eq",
};

// plain: without parameters, so that its name alone is one
typedef struct Macro {
    const char *name;
    bool plain;
    const char *words;
} Macro;

#define DECLARED(name) #name,
#define MACRO(name, plain, words)
static const char *const declared[] = {
#include "runtime_words.def"
};
#undef DECLARED
#undef MACRO
#define DECLARED(name)
#define MACRO(name, plain, words) {#name, plain, words},
static const Macro macros[] = {
#include "runtime_words.def"
};

// a Macro begins with its name
static int by_name(const void *word, const void *of) { return strcmp(word, *(const char *const *)of); }

#define FIND(word, table) bsearch(word, table, sizeof table / sizeof *table, sizeof *table, by_name)

// Headers of C and of the runtime define names of capitals: NULL, HUGE_VAL, EACH.
static bool spelled_as_macro(const char *word)
{
    if (strncmp(word, "gm_", 3) == 0) return true;
    const size_t n = strlen(word);
    return n > 2 && strspn(word, "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_") == n && strpbrk(word, "ABCDEFGHIJKLMNOPQRSTUVWXYZ");
}

bool word_reserved(const char *word)
{
    const Macro *m = FIND(word, macros);
    return spelled_as_macro(word) || FIND(word, reserved) || (m && m->plain);
}

const char *macro_words(const char *word)
{
    const Macro *m = FIND(word, macros);
    return m ? m->words : NULL;
}

bool word_declared(const char *word) { return word_reserved(word) || FIND(word, declared) || macro_words(word); }

const char *word_apart(Arena *a, const char *name, bool (*taken)(const char *))
{
    char *stem = arena_strdup(a, name);
    for (size_t n = strlen(stem);; stem[--n] = 0) {
        if (taken(stem)) return arena_printf(a, "%s_", name);
        if (n < 2 || stem[n - 1] != '_') return name;
    }
}
