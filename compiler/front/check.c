// check.c -- questions of both resolve and types: facts of declarations, left sides, names of the library and of functions, slips in names.
#include <ctype.h>
#include <string.h>
#include "check.h"

Facts *facts(Arena *a, Decl *d)
{
    if (!d->front) d->front = NEW(a, Facts);
    return d->front;
}

Ast *place_root(Ast *e)
{
    while (e->kind == AST_INDEX) e = e->kid[0];
    return e->kind == AST_NAME ? e : NULL;
}

const char *plural(Arena *a, int n, const char *one, const char *many)
{
    return n == 0 ? arena_printf(a, "no %s", many) : arena_printf(a, "%d %s", n, n == 1 ? one : many);
}

typedef struct Foreign {
    const char *name, *text;
} Foreign;
static const Foreign foreign_distributions[] =
    {
#define BLOCK(name, text)
#define NAME(name, text)
#define STATEMENT(name, text)
#define DISTRIBUTION(name, text) {#name, text},
#define FUNCTION(name, text)
#include "hints.def"
#undef DISTRIBUTION
#undef FUNCTION
},
                     foreign_functions[] =
                         {
#define DISTRIBUTION(name, text)
#define FUNCTION(name, text) {#name, text},
#include "hints.def"
#undef FUNCTION
#undef NAME
#undef STATEMENT
},
                     foreign_names[] =
                         {
#define FUNCTION(name, text)
#define STATEMENT(name, text)
#define NAME(name, text) {#name, text},
#include "hints.def"
#undef NAME
#undef STATEMENT
},
                     foreign_statements[] =
                         {
#define NAME(name, text)
#define STATEMENT(name, text) {#name, text},
#include "hints.def"
#undef BLOCK
#undef STATEMENT
},
                     foreign_blocks[] = {
#define BLOCK(name, text) {name, text},
#define STATEMENT(name, text)
#include "hints.def"
#undef BLOCK
#undef STATEMENT
#undef NAME
#undef DISTRIBUTION
#undef FUNCTION
};

// The same word, written with other capitals or underscores: StudentT, student_t.
static bool same_word(const char *x, const char *y)
{
    for (;; x++, y++) {
        while (*x == '_') x++;
        while (*y == '_') y++;
        if (tolower((unsigned char)*x) != tolower((unsigned char)*y)) return false;
        if (!*x) return true;
    }
}

static const char *foreign(const Foreign *list, size_t n, const char *name)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(list[i].name, name) == 0) return list[i].text;
    for (size_t i = 0; i < n; i++)
        if (same_word(list[i].name, name)) return list[i].text;
    return NULL;
}

const char *foreign_block(const char *words) { return foreign(foreign_blocks, sizeof foreign_blocks / sizeof *foreign_blocks, words); }
const char *foreign_name(const char *name) { return foreign(foreign_names, sizeof foreign_names / sizeof *foreign_names, name); }
const char *foreign_statement(const char *name)
{
    return foreign(foreign_statements, sizeof foreign_statements / sizeof *foreign_statements, name);
}

const char *foreign_distribution(const char *name)
{
    return foreign(foreign_distributions, sizeof foreign_distributions / sizeof *foreign_distributions, name);
}
const char *foreign_function(const char *name)
{
    return foreign(foreign_functions, sizeof foreign_functions / sizeof *foreign_functions, name);
}

const char *without_suffix(const char *name, const char **suffix)
{
    static const char *const suffixes[] = {"_lpdf", "_lpmf", "_lupdf", "_lupmf", "_lcdf", "_lccdf", "_cdf", "_rng", NULL};
    const size_t n = strlen(name);
    for (int i = 0; suffixes[i]; i++) {
        const size_t k = strlen(suffixes[i]);
        if (n <= k || strcmp(name + n - k, suffixes[i]) != 0) continue;
        *suffix = suffixes[i];
        return intern_n(name, n - k);
    }
    return NULL;
}

// Edits (insert, delete, change, swap neighbours) from one name to the other; Damerau 1964. Long names are never close.
enum { LONGEST = 40 };

static int distance(const char *x, const char *y)
{
    int n = (int)strlen(x), m = (int)strlen(y), d[LONGEST + 1][LONGEST + 1];
    if (n > LONGEST || m > LONGEST) return LONGEST;
    for (int i = 0; i <= n; i++) d[i][0] = i;
    for (int j = 0; j <= m; j++) d[0][j] = j;
    for (int i = 1; i <= n; i++)
        for (int j = 1; j <= m; j++) {
            int best = d[i - 1][j - 1] + (x[i - 1] != y[j - 1]);
            if (d[i - 1][j] + 1 < best) best = d[i - 1][j] + 1;
            if (d[i][j - 1] + 1 < best) best = d[i][j - 1] + 1;
            if (i > 1 && j > 1 && x[i - 1] == y[j - 2] && x[i - 2] == y[j - 1] && d[i - 2][j - 2] + 1 < best) best = d[i - 2][j - 2] + 1;
            d[i][j] = best;
        }
    return d[n][m];
}

// The same letters in another order: epx, exp.
static bool swapped(const char *x, const char *y)
{
    int n[256] = {0};
    for (; *x; x++) n[(unsigned char)*x]++;
    for (; *y; y++) n[(unsigned char)*y]--;
    for (int i = 0; i < 256; i++)
        if (n[i]) return false;
    return true;
}

void nearest_try(Nearest *n, const char *candidate)
{
    int length = (int)strlen(n->wanted), limit = length < 3 ? 0 : length < 6 ? 1 : length < 9 ? 2 : 3;
    const bool same = same_word(n->wanted, candidate);
    if (!same && n->is_function && length <= 3 && (int)strlen(candidate) == length && !swapped(n->wanted, candidate)) return;
    int k = same ? 0 : distance(n->wanted, candidate);
    if (k <= limit && (!n->best || k < n->distance)) {
        n->best = candidate;
        n->distance = k;
    }
}

const Distribution *library_distribution(const Library *lib, const char *name)
{
    for (const Distribution *d = lib->distributions; d; d = d->next)
        if (d->name == name && !d->is_family) return d;
    return NULL;
}

const Distribution *library_family(const Library *lib, const char *name)
{
    for (const Distribution *d = lib->distributions; d; d = d->next)
        if (d->name == name && d->is_family) return d;
    return NULL;
}

const Distribution *law_function(const Library *lib, const char *name, LawPart *part)
{
    // integers: 1 only those, 0 only others, -1 both
    static const struct {
        const char *suffix;
        LawPart part;
        int integers;
    } laws[] = {{"_lpdf", LAW_DENSITY, 0},    {"_lpmf", LAW_DENSITY, 1},  {"_lupdf", LAW_DENSITY, 0}, {"_lupmf", LAW_DENSITY, 1},
                {"_lccdf", LAW_LOG_CCDF, -1}, {"_lcdf", LAW_LOG_CDF, -1}, {"_cdf", LAW_CDF, -1}};
    if (function_exists(name)) return NULL;  // std_normal_lcdf is a function of its own
    const size_t n = strlen(name);
    for (size_t i = 0; i < sizeof laws / sizeof *laws; i++) {
        const size_t m = strlen(laws[i].suffix);
        if (n <= m || strcmp(name + n - m, laws[i].suffix) != 0) continue;
        for (const Distribution *d = lib->distributions; d; d = d->next) {
            if (d->is_family || strlen(d->name) != n - m || strncmp(d->name, name, n - m) != 0 || !d->log_density) continue;
            const bool counts = d->discrete || d->support == SUPPORT_COUNTS;
            if (laws[i].integers >= 0 && laws[i].integers != counts) continue;
            if (laws[i].part != LAW_DENSITY && !(laws[i].part == LAW_LOG_CCDF ? d->ccdf : d->cdf)) continue;
            *part = laws[i].part;
            return d;
        }
    }
    return NULL;
}

const FunctionDecl *function_named(const Model *m, const Library *lib, const char *name, int nargs)
{
    for (const FunctionDecl *f = m ? m->functions : NULL; f; f = f->next)
        if (f->name == name && (nargs < 0 || f->nparams == nargs)) return f;
    for (const FunctionDecl *f = m && nargs >= 0 ? m->functions : NULL; f; f = f->next)
        if (f->name == name) return NULL;  // the model's functions hide the library's of the same name
    for (const FunctionDecl *f = lib->functions; f; f = f->next)
        if (f->name == name && (nargs < 0 || f->nparams == nargs)) return f;
    return NULL;
}

const Augmentation *library_augmentation(const Library *lib, const char *name)
{
    for (const Augmentation *r = lib->augmentations; r; r = r->next)
        if (r->name == name) return r;
    return NULL;
}

bool ast_names(const Ast *e, const char *name)
{
    if (!e) return false;
    if (e->kind == AST_NAME && e->name == name) return true;
    for (int i = 0; i < e->nkids; i++)
        if (ast_names(e->kid[i], name)) return true;
    return false;
}

bool ast_same(const Ast *x, const Ast *y)
{
    if (x == y) return true;
    if (!x || !y || x->kind != y->kind || x->nkids != y->nkids || x->depth != y->depth) return false;
    switch (x->kind) {
    case AST_INT:
    case AST_REAL: return x->number == y->number;
    case AST_NAME: return x->decl ? x->decl == y->decl : x->name == y->name;
    case AST_FUNCTION: return false;  // the names are two declarations
    case AST_REDUCE:                  // a size makes one of a loop, and has its index
        if (x->name != y->name || x->decl != y->decl) return false;
        break;
    case AST_STRING:
    case AST_CALL:
        if (x->name != y->name) return false;
        break;
    case AST_BINARY:
    case AST_UNARY:
        if (x->op != y->op) return false;
        break;
    case AST_INDEX:
    case AST_RANGE:
    case AST_ALL:
    case AST_TRANSPOSE:
    case AST_COND:
    case AST_ARRAY: break;
    }
    for (int i = 0; i < x->nkids; i++)
        if (!ast_same(x->kid[i], y->kid[i])) return false;
    return true;
}

// ---- functions of the language ----

static const char *const functions[] = {
#define FUNCTION(name, args, result) #name,
#include "../../runtime/device/functions.def"
#undef FUNCTION
};
enum { NFUNCTIONS = sizeof functions / sizeof *functions };

bool function_exists(const char *name)
{
    for (int i = 0; i < NFUNCTIONS; i++)
        if (strcmp(functions[i], name) == 0) return true;
    return false;
}

Condition condition_of(const Ast *e)
{
    if (e->kind != AST_CALL || e->nkids != 1) return CONDITION_OTHER;
#define X(id, word) \
    if (strcmp(e->name, word) == 0) return CONDITION_##id;
    CONDITIONS(X)
#undef X
    return CONDITION_OTHER;
}

bool is_solver(const char *name) { return name == intern("ode_rk45") || name == intern("ode_bdf"); }

const char *nearest_function(const char *name)
{
    Nearest near = {.wanted = name, .is_function = true};
    for (int i = 0; i < NFUNCTIONS; i++) nearest_try(&near, functions[i]);
    return near.best;
}

static bool is_size(const char *name)
{
    return name == intern("rows") || name == intern("cols") || name == intern("size") || name == intern("num_elements");
}

// ---- data only ----

bool decl_data_only(Arena *a, Decl *d, const char **culprit)
{
    switch (d->kind) {
    case DECL_DATA:
    case DECL_INDEX: return true;
    case DECL_VARIABLE:
        if (d->poisoned) return true;  // an error already
        *culprit = d->name;
        return false;
    case DECL_PARAMETER:
    case DECL_PATTERN: return true;  // library: what these are is not known here
    case DECL_DEFINITION: {
        static int depth, met;  // met: definitions that were being examined already, in a circle
        static Facts *unsure;   // within circles: certain when the first question is answered
        Facts *f = facts(a, d);
        if (f->data_only == DATA_UNKNOWN) {
            if (depth++ == 0) unsure = NULL;
            const int before = met;
            f->data_only = DATA_ASKED;
            bool yes = true;
            const char *inner;
            for (const Stmt *s = d->sites; s && yes; s = s->next_site) {
                yes = depends_on_data_only(a, s->rhs, &inner);
                for (int i = 1; i < s->lhs->nkids && yes; i++) yes = depends_on_data_only(a, s->lhs->kid[i], &inner);
            }
            f->data_only = yes ? DATA_ONLY : DATA_NOT;
            if (yes && depth > 1 && met != before) {
                f->unsure = unsure;
                unsure = f;
            }
            if (--depth == 0 && !yes)
                for (Facts *u = unsure; u; u = u->unsure)
                    if (u->data_only == DATA_ONLY) u->data_only = DATA_UNKNOWN;
        } else if (f->data_only == DATA_ASKED) met++;
        if (f->data_only == DATA_NOT) *culprit = d->name;
        return f->data_only != DATA_NOT;
    }
    }
    return true;
}

bool depends_on_data_only(Arena *a, const Ast *e, const char **culprit)
{
    if (!e) return true;
    if (e->kind == AST_NAME) return !e->decl || decl_data_only(a, e->decl, culprit);
    if (e->kind == AST_CALL && is_size(e->name)) return true;  // sizes of unknowns are made of data
    for (int i = 0; i < e->nkids; i++)
        if (!depends_on_data_only(a, e->kid[i], culprit)) return false;
    return true;
}
