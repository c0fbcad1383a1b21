// If this fails, docs/errors.md lacks a message or is wrong about one, or docs/language.md shows a model that does not pass or lacks a
// function.
//
// Every code of diag.def has its section. Each "Wrong" example gives that code and no other error; each "Right" one, and each example of
// the manual, passes the front end.
// Runs in the root of the repository.
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "../../compiler/front/front.h"

static const char *const codes[] = {
#define DIAG(code, text) #code,
#include "../../compiler/base/diag.def"
#undef DIAG
};

static const char header[] = "data { int<lower=1> N, M; vector[N] y; vector[M] z; matrix[N, N] X; int<lower=1> g[N]; }\n";

static int failed, checks;

static void check(bool good, const char *code, const char *what, const char *text)
{
    checks++;
    if (good) return;
    failed = 1;
    printf("FAILED: %s: %s\n%s\n", code, what, text);
}

static void load(Arena *a, const char *folder, Library *lib, Diags *d)
{
    DIR *dir = opendir(folder);
    for (const struct dirent *f; dir && (f = readdir(dir)); ) {
        size_t n = strlen(f->d_name);
        if (n > 3 && strcmp(f->d_name + n - 3, ".gm") == 0)
            front_parse_library(a, source_read(a, arena_printf(a, "%s/%s", folder, f->d_name)), d, lib);
    }
    if (dir) closedir(dir);
}

static bool begins(const char *text, const char *with)
{
    return strncmp(text, with, strlen(with)) == 0;
}

// The messages that an example gives.
static char *messages(Arena *a, const char *example)
{
    Diags *d = diags_new(a);
    Library lib = { 0 };
    load(a, "stdlib/distributions", &lib, d);
    load(a, "stdlib/augment", &lib, d);
    load(a, "stdlib/functions", &lib, d);
    bool is_library = begins(example, "distribution ") || begins(example, "family ") || begins(example, "augmentation ");
    bool own_data = begins(example, "data ") || begins(example, "#");
    const Source *s = source_from_string(a, "example.gm", is_library || own_data ? example : arena_printf(a, "%s%s", header, example));
    if (is_library) front_parse_library(a, s, d, &lib);
    front_resolve_library(a, &lib, d);
    Model *m;
    if (!is_library && front_parse_model(a, s, d, &m)) {
        front_resolve(a, m, &lib, d);
        front_types(a, m, &lib, d);
    }
    char *text;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    diags_print(d, out);
    fclose(out);
    char *copy = arena_strdup(a, text);
    free(text);
    return copy;
}

// The text between the ``` behind `label`, before `end`; NULL if there is none.
static char *example(Arena *a, const char *section, const char *end, const char *label)
{
    const char *at = strstr(section, label);
    if (!at || at > end) return NULL;
    const char *from = strstr(at, "```\n") + 4, *to = strstr(from, "\n```");
    return arena_printf(a, "%.*s\n", (int)(to - from), from);
}

static const char *const functions[] = {
#define FUNCTION(name, args, result) #name,
#include "../../runtime/device/functions.def"
#undef FUNCTION
};

static void check_manual(Arena *a)
{
    const Source *doc = source_read(a, "docs/language.md");
    check(doc != NULL, "docs/language.md", "cannot be read", "");
    if (!doc) return;
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++)
        check(strstr(doc->text, arena_printf(a, "%s(", functions[i])) != NULL, functions[i], "is not in docs/language.md", "");
    for (const char *at = doc->text; (at = strstr(at, "\n```\n")); ) {
        const char *from = at + 5, *to = strstr(from, "\n```\n");
        if (!to) break;
        const char *text = arena_printf(a, "%.*s\n", (int)(to - from), from);
        check(*messages(a, text) == '\0', "docs/language.md", "an example is refused", messages(a, text));
        at = to + 5;
    }
}

int main(void)
{
    Arena *a = arena_new();
    const Source *doc = source_read(a, "docs/errors.md");
    if (!doc) {
        printf("FAILED: docs/errors.md cannot be read\n");
        return 1;
    }
    for (size_t i = 0; i < sizeof codes / sizeof *codes; i++) {
        const char *code = codes[i], *section = strstr(doc->text, arena_printf(a, "\n### %s: ", code));
        check(section != NULL, code, "has no section in docs/errors.md", "");
        if (!section) continue;
        const char *end = strstr(section + 1, "\n### ");
        if (!end) end = doc->text + doc->size;
        char *wrong = example(a, section, end, "\nWrong:\n"), *right = example(a, section, end, "\nRight:\n");
        check(right != NULL, code, "has no right example", "");
        if (right) check(*messages(a, right) == '\0', code, "the right example is refused", messages(a, right));
        if (!wrong) continue;
        char *given = messages(a, wrong);
        bool only = strstr(given, arena_printf(a, "[%s]", code)) != NULL;
        for (const char *at = given; (at = strstr(at, "error[")); at++) only &= strncmp(at + 6, code, 5) == 0;
        check(only, code, "the wrong example gives other messages", given);
    }
    check_manual(a);
    printf("%s: %d checks of docs/errors.md and docs/language.md, all must hold\n", failed ? "FAILED" : "ok", checks);
    arena_free(a);
    return failed;
}
