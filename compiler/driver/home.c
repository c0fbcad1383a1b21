// home.c -- where gmc's own files are, and the library that is read from there.
#include "home.h"
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "../../runtime/backends/files.h"

bool home_find(Home *h)
{
    char self[PATH_MAX - 64];
    ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    if (n <= 0) return false;
    self[n] = 0;
    char *slash = strrchr(self, '/');
    *slash = 0;
    snprintf(h->stdlib, sizeof h->stdlib, "%s/../stdlib", self);
    snprintf(h->runtime, sizeof h->runtime, "%s/../runtime", self);
    snprintf(h->archive, sizeof h->archive, "%s/libgmhost.a", self);
    snprintf(h->stored, sizeof h->stored, "%s/gmc-stored", self);
    if (access(h->archive, R_OK) == 0) return true;
    snprintf(h->stdlib, sizeof h->stdlib, "%s/../share/gmc/stdlib", self);
    snprintf(h->runtime, sizeof h->runtime, "%s/../share/gmc/runtime", self);
    snprintf(h->archive, sizeof h->archive, "%s/../lib/libgmhost.a", self);
    snprintf(h->stored, sizeof h->stored, "%s/../lib/gmc/gmc-stored", self);
    return access(h->archive, R_OK) == 0;
}

void home_missing(void)
{
    fprintf(stderr, "gmc: its runtime (libgmhost.a) is not where it should be; build it with make, or install it with make install\n");
}

static int by_name(const void *a, const void *b) { return strcmp(*(char *const *)a, *(char *const *)b); }

enum { DEEPEST_FOLDER = 16 };  // deeper ones are links in a circle

Source *home_source(Arena *a, const char *path)
{
    gm_file_is_read(path);
    return source_read(a, path);
}

bool home_library(Arena *a, const char *folder, Library *lib, Diags *d, int depth)
{
    DIR *dir = opendir(folder);
    if (!dir) {
        fprintf(stderr, "gmc: cannot read the folder %s: %s\n", folder, strerror(errno));
        return false;
    }
    char **names = NULL;
    int n = 0, size = 0;
    for (struct dirent *e; (e = readdir(dir));) {
        if (e->d_name[0] == '.') continue;
        ROOM(a, names, n, size);
        names[n++] = arena_printf(a, "%s/%s", folder, e->d_name);
    }
    closedir(dir);
    if (n) qsort(names, (size_t)n, sizeof *names, by_name);
    for (int i = 0; i < n; i++) {
        struct stat st;
        if (stat(names[i], &st) != 0) continue;
        if (S_ISDIR(st.st_mode)) {
            if (depth == DEEPEST_FOLDER) {
                fprintf(stderr, "gmc: %s: a library has at most %d folders within each other\n", names[i], DEEPEST_FOLDER);
                return false;
            }
            if (!home_library(a, names[i], lib, d, depth + 1)) return false;
        } else {
            size_t len = strlen(names[i]);
            if (len < 3 || strcmp(names[i] + len - 3, ".gm") != 0) continue;
            if (!S_ISREG(st.st_mode)) {
                fprintf(stderr, "gmc: %s: not a file\n", names[i]);
                return false;
            }
            Source *s = home_source(a, names[i]);
            if (!s) {
                fprintf(stderr, "gmc: cannot read %s: %s\n", names[i], strerror(errno));
                return false;
            }
            front_parse_library(a, s, d, lib);
        }
    }
    return true;
}
