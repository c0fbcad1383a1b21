// library.c -- shared libraries found while the program runs.
#define _GNU_SOURCE
#include "library.h"

#include <dlfcn.h>
#include <glob.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

typedef struct LibrarySearch {
    const char *const *sonames, *const *helpers;
    char *why;
    size_t room;
    void *found;
} LibrarySearch;

static void open_helpers(const LibrarySearch *s, const char *folder)
{
    for (int k = 0; s->helpers && s->helpers[k]; k++) {
        char pattern[PATH_MAX];
        snprintf(pattern, sizeof pattern, "%s/%s", folder, s->helpers[k]);
        glob_t found;
        if (glob(pattern, 0, NULL, &found) == 0) {
            dlopen(found.gl_pathv[0], RTLD_LAZY | RTLD_GLOBAL);
            globfree(&found);
        }
    }
}

static void open_file(LibrarySearch *s, const char *path, const char *folder)
{
    struct stat there;
    if (folder && stat(path, &there) != 0) return;
    if (folder) open_helpers(s, folder);
    s->found = dlopen(path, RTLD_LAZY | RTLD_LOCAL);
    if (!s->found && folder) snprintf(s->why, s->room, "%s", dlerror());  // there, but it cannot be opened
}

static void open_in(LibrarySearch *s, const char *folder)
{
    for (int k = 0; s->sonames[k] && !s->found; k++) {
        char path[PATH_MAX];
        snprintf(path, sizeof path, "%s/%s", folder, s->sonames[k]);
        open_file(s, path, folder);
    }
}

// In every folder that the pattern names, the last in order of name first: newer versions before older ones.
static void open_below(LibrarySearch *s, const char *pattern)
{
    glob_t found;
    if (s->found || glob(pattern, GLOB_BRACE | GLOB_TILDE, NULL, &found) != 0) return;
    for (size_t k = found.gl_pathc; k-- > 0 && !s->found;) open_in(s, found.gl_pathv[k]);
    globfree(&found);
}

void *gm_library_open(const char *const *sonames, const char *const *helpers, const char *variable, const char *wheel, char *why,
                      size_t room)
{
    LibrarySearch s = {sonames, helpers, why, room, NULL};
    const char *named = variable ? getenv(variable) : NULL;
    if (named && *named) {
        struct stat there;
        if (stat(named, &there) == 0 && S_ISDIR(there.st_mode)) {
            snprintf(why, room, "there is no %s in %s (%s)", sonames[0], named, variable);
            open_in(&s, named);
        } else {
            snprintf(why, room, "there is no file %s (%s)", named, variable);
            char folder[PATH_MAX];
            snprintf(folder, sizeof folder, "%s", named);
            char *slash = strrchr(folder, '/');
            if (slash) *slash = 0;
            open_file(&s, named, slash ? folder : ".");
        }
        return s.found;
    }
    snprintf(why, room, "there is no %s on the library path, in /usr/local/cuda or in Python's site-packages", sonames[0]);
    for (int k = 0; sonames[k] && !s.found; k++) open_file(&s, sonames[k], NULL);
    const char *home = getenv("CUDA_HOME");
    char pattern[PATH_MAX];
    if (home && *home) {
        snprintf(pattern, sizeof pattern, "%s/lib{64,}", home);
        open_below(&s, pattern);
    }
    open_below(&s, "/usr/local/cuda/lib{64,}");
    open_below(&s, "/usr/local/cuda-*/lib{64,}");
    open_below(&s, "/opt/cuda/lib{64,}");
    const char *environment[] = {getenv("VIRTUAL_ENV"), getenv("CONDA_PREFIX")};
    for (int k = 0; k < 2; k++) {
        if (!environment[k] || !*environment[k]) continue;
        snprintf(pattern, sizeof pattern, "%s/lib/python3*/site-packages/nvidia/{%s,cu1*}/lib", environment[k], wheel);
        open_below(&s, pattern);
        snprintf(pattern, sizeof pattern, "%s/lib", environment[k]);
        open_below(&s, pattern);
    }
    snprintf(pattern, sizeof pattern, "{~/.local,/usr/local,/usr}/lib/python3*/{site,dist}-packages/nvidia/{%s,cu1*}/lib", wheel);
    open_below(&s, pattern);
    return s.found;
}

bool gm_library_symbol(void *library, const char *name, void *to)
{
    void *symbol = dlsym(library, name);
    memcpy(to, &symbol, sizeof symbol);
    return symbol != NULL;
}
