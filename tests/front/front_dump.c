// If this fails on a right model, or passes a wrong one, the front end reads the language differently from docs/language.md.
//
// front_dump model.gm... [-I folder]...: parses, resolves and types each model with the .gm files below the folders (default: stdlib),
// and prints its tree, or its messages to stderr. Exits 1 if any model has an error. Without a model, checks the library alone.
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include "../../compiler/front/front.h"

static int by_name(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name);
}

static bool load(Arena *a, const char *path, Library *lib, Diags *d)
{
    struct stat st;
    if (stat(path, &st) != 0) return true;
    size_t n = strlen(path);
    if (!S_ISDIR(st.st_mode)) {
        if (n < 3 || strcmp(path + n - 3, ".gm") != 0) return true;
        Source *s = source_read(a, path);
        return s && front_parse_library(a, s, d, lib);
    }
    struct dirent **entry;
    int count = scandir(path, &entry, NULL, by_name);
    bool good = true;
    for (int i = 0; i < count; i++) {
        if (entry[i]->d_name[0] != '.') good = load(a, arena_printf(a, "%s/%s", path, entry[i]->d_name), lib, d) && good;
        free(entry[i]);
    }
    if (count >= 0) free(entry);
    return good;
}

static bool dump(Arena *a, const char *path, const Library *lib)
{
    Diags *d = diags_new(a);
    Source *s = source_read(a, path);
    if (!s) {
        perror(path);
        return false;
    }
    Model *m;
    bool good = front_parse_model(a, s, d, &m);
    if (good) {
        bool names = front_resolve(a, m, lib, d);
        good = front_types(a, m, lib, d) && names;
    }
    diags_print(d, stderr);
    if (good) ast_print(stdout, m);
    return good;
}

int main(int argc, char **argv)
{
    Arena *a = arena_new();
    Diags *d = diags_new(a);
    Library lib = { 0 };
    bool good = true, folders = false;
    for (int i = 1; i + 1 < argc; i++)
        if (strcmp(argv[i], "-I") == 0) {
            good = load(a, argv[i + 1], &lib, d) && good;
            folders = true;
        }
    if (!folders) good = load(a, "stdlib", &lib, d) && good;
    good = good && front_resolve_library(a, &lib, d);
    diags_print(d, stderr);
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "-I") == 0) i++;
        else good = dump(a, argv[i], &lib) && good;
    }
    arena_free(a);
    return good ? 0 : 1;
}
