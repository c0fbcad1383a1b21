// rename.c -- names of indices that nothing else has at their place.
//
//   before   wide lp = 0;  SUM_ALONG (@lp, d->N, &lp) lp += s->y[@lp];       an index is written with a mark before it
//   after    wide lp = 0;  SUM_ALONG (lp_, d->N, &lp) lp += s->y[lp_];
//
// What else there is within the reach of an index is known once its function is written: every word, and what macros name in their text. So
// an index meets neither a local variable of emission nor a routine or a macro of the runtime, whatever these are called. Indices of a
// function that are written alike are renamed alike; nested ones were written differently (fresh_index). It is the one place where emission
// reads what it has written: as a linker does, it resolves names, and nothing else depends on the words that it finds.
#include <ctype.h>
#include <string.h>
#include "../base/words.h"
#include "out.h"

// A word, or one of ( ) { } ; as text.
typedef struct Token {
    const char *word;
    bool index, member;
    int braces, parens;
} Token;
typedef struct Function {
    Arena *arena;
    Token *token;
    int n, size;
    Map renamed;  // an index's name -> what it is written as
    Map there;    // all words of the function, and all names of indices
} Function;

static bool begins_word(char c) { return isalpha((unsigned char)c) || c == '_'; }
static size_t word_length(const char *c)
{
    size_t n = 0;
    while (isalnum((unsigned char)c[n]) || c[n] == '_') n++;
    return n;
}

// Where a string, a character or a comment that begins here ends; the same place if none does.
static const char *skip_quoted(const char *c, const char *end)
{
    if (c[0] == '/' && c + 1 < end && c[1] == '/') {
        while (c < end && *c != '\n') c++;
        return c;
    }
    if (*c != '"' && *c != '\'') return c;
    const char quote = *c++;
    while (c < end && *c != quote) c += *c == '\\' ? 2 : 1;
    return c < end ? c + 1 : end;
}

static void add_token(Function *f, Token t)
{
    ROOM(f->arena, f->token, f->n, f->size);
    f->token[f->n++] = t;
    map_put(f->arena, &f->there, t.word, (void *)t.word);
}

static void read_tokens(Function *f, const char *from, const char *end)
{
    int braces = 0, parens = 0;
    for (const char *c = from; c < end;) {
        const char *next = skip_quoted(c, end);
        if (next > c) {
            c = next;
            continue;
        }
        const bool index = *c == INDEX_MARK, member = c > from && (c[-1] == '.' || (c[-1] == '>' && c - 1 > from && c[-2] == '-'));
        c += index;
        const size_t n = isdigit((unsigned char)*c) || begins_word(*c) ? word_length(c) : 1;
        braces += (*c == '{') - (*c == '}');
        parens += (*c == '(') - (*c == ')');
        if (begins_word(*c) || strchr("(){};", *c)) add_token(f, (Token){intern_n(c, n), index, member, braces, parens});
        c += n;
    }
}

static bool is(const Function *f, int k, const char *text) { return k < f->n && strcmp(f->token[k].word, text) == 0; }

// The last token of the block that has token k: its closing brace.
static int end_of_block(const Function *f, int k)
{
    const int inside = f->token[k].braces;
    while (k < f->n && f->token[k].braces >= inside) k++;
    return k < f->n ? k : f->n - 1;
}

static int begin_of_block(const Function *f, int k)
{
    const int inside = f->token[k].braces;
    while (k > 0 && inside > 1 && f->token[k].braces >= inside) k--;
    return inside > 1 ? k : 0;  // parameters of the function belong to its block
}

// Where an index reaches that is named first at token k: in the head of a loop, `for (long i = ...)`, over the statement that follows, and
// else over the block that declares it.
static void reach(const Function *f, int k, int *from, int *to)
{
    int closes = k;
    while (closes < f->n && f->token[closes].parens > 0) closes++;
    *from = k;
    while (*from > 0 && f->token[*from].parens > 0) --*from;  // the word before the parenthesis, a macro
    if (f->token[k].parens == 0 || is(f, closes + 1, ";")) {
        *from = begin_of_block(f, k);
        *to = end_of_block(f, k);
        return;
    }
    const int outside = f->token[k].braces;
    for (*to = closes; *to < f->n - 1; ++*to) {
        const Token *t = &f->token[*to];
        if (t->parens > 0 || t->braces > outside) continue;
        if (is(f, *to, ";") || is(f, *to, "}")) return;
    }
}

// Whether a word, or what a macro of that name has in its text, is the name.
static bool names(Map *seen, Arena *a, const char *word, const char *name)
{
    if (word == name) return true;
    const char *more = macro_words(word);
    if (!more || map_get(seen, word)) return false;
    map_put(a, seen, word, (void *)word);
    for (size_t n; *more; more += n + (more[n] == ' ')) {
        n = strcspn(more, " ");
        if (names(seen, a, intern_n(more, n), name)) return true;
    }
    return false;
}

static bool met(const Function *f, const char *name, int from, int to)
{
    Map seen = {0};
    for (int k = from; k <= to; k++)
        if (!f->token[k].index && !f->token[k].member && names(&seen, f->arena, f->token[k].word, name)) return true;
    return false;
}

static bool is_apart(const Function *f, const char *name)
{
    if (word_reserved(name)) return false;
    for (int k = 0, from, to = -1; k < f->n; k++) {
        if (k <= to || !f->token[k].index || f->token[k].word != name) continue;
        reach(f, k, &from, &to);
        if (met(f, name, from, to)) return false;
    }
    return true;
}

static const char *index_name(Function *f, const char *name)
{
    const char *c = map_get(&f->renamed, name);
    if (c) return c;
    c = name;
    if (!is_apart(f, name)) {
        do c = intern(arena_printf(f->arena, "%s_", c));
        while (map_get(&f->there, c) || met(f, c, 0, f->n - 1));
        map_put(f->arena, &f->there, c, (void *)c);
    }
    map_put(f->arena, &f->renamed, name, (void *)c);
    return c;
}

// In a lesson all numbers are doubles.
static void write_plain(FILE *out, const char *from, const char *end)
{
    for (const char *c = from; c < end;) {
        const char *next = skip_quoted(c, end);
        const bool member = c > from && (c[-1] == '.' || c[-1] == '>');
        const size_t n = next > c ? (size_t)(next - c) : begins_word(*c) ? word_length(c) : 1;
        const bool number = n == 4 && next == c && !member && (strncmp(c, "wide", 4) == 0 || strncmp(c, "real", 4) == 0);
        if (number) fputs("double", out);
        else fwrite(c, 1, n, out);
        c += n;
    }
}

void write_named(FILE *out, Arena *a, const char *function, size_t n, bool plain)
{
    const char *const end = function + n;
    Function f = {.arena = a};
    if (memchr(function, INDEX_MARK, n)) read_tokens(&f, function, end);
    for (const char *c = function, *mark; c < end; c = mark) {
        mark = memchr(c, INDEX_MARK, (size_t)(end - c));
        if (!mark) mark = end;
        if (plain) write_plain(out, c, mark);
        else fwrite(c, 1, (size_t)(mark - c), out);
        if (mark == end) break;
        const size_t length = word_length(mark + 1);
        fputs(index_name(&f, intern_n(mark + 1, length)), out);
        mark += 1 + length;
    }
}
