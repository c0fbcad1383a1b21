// draw_files.c -- files of draws by their names: the NAME of `-o NAME` stands for NAME_1.csv, NAME_2.csv, ..., or
// for NAME.nc.
#include "fields.h"
#include "messages.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MOST_CHAINS = 10000 };

static bool ends_in(const char *text, const char *end)
{
    const size_t n = strlen(text), m = strlen(end);
    return n > m && strcmp(text + n - m, end) == 0;
}

bool gm_ends_in_csv(const char *path) { return ends_in(path, ".csv"); }

bool gm_is_netcdf(const char *path) { return ends_in(path, ".nc") || ends_in(path, ".nc.part"); }

char *gm_netcdf_name(const char *path)
{
    return gm_format("%.*s", (int)(strlen(path) - strlen(ends_in(path, ".nc") ? ".nc" : ".nc.part")), path);
}

char *gm_levels_beside(const char *file)
{
    size_t n = strlen(file);
    if (gm_is_netcdf(file)) {
        char *name = gm_netcdf_name(file), *path = gm_format("%s_levels.json", name);
        free(name);
        return path;
    }
    if (n < 5 || strcmp(file + n - 4, ".csv") != 0) return NULL;
    n -= 4;
    const size_t end = n;
    while (n > 0 && file[n - 1] >= '0' && file[n - 1] <= '9') n--;
    return n < end && n > 1 && file[n - 1] == '_' ? gm_format("%.*s_levels.json", (int)n - 1, file) : NULL;
}

// What of several that are given is the NAME of a run, whatever else is called so (the program, maybe).
static const char *name_among(char **given, int n_given)
{
    for (int k = 0; k < n_given; k++) {
        char *first = gm_format("%s_1.csv", given[k]), *netcdf = gm_format("%s.nc", given[k]);
        const bool is_file = gm_ends_in_csv(given[k]) || gm_is_netcdf(given[k]),
                   is_name = !is_file && (access(first, F_OK) == 0 || access(netcdf, F_OK) == 0);
        free(first);
        free(netcdf);
        if (is_name) return given[k];
    }
    return NULL;
}

// Whether the file of a chain is missing before one that is there, up to a hundred on.
static bool is_gap(const char *command, const char *name, int missing)
{
    for (int c = missing + 1; c <= missing + 100; c++) {
        char *path = gm_format("%s_%d.csv", name, c);
        const bool there = access(path, F_OK) == 0;
        if (there) gm_error("%s: %s_%d.csv is missing, and %s is there: draws of all chains are wanted", command, name, missing, path);
        free(path);
        if (there) return true;
    }
    return false;
}

char **gm_draw_files(const char *command, char **given, int n_given, int *n)
{
    char **files = gm_alloc((size_t)n_given + MOST_CHAINS, sizeof *files);
    *n = 0;
    const char *among = n_given > 1 ? name_among(given, n_given) : NULL;
    if (among) {
        gm_error("%s: %s is the NAME of a run: give one NAME, or files", command, among);
        free(files);
        return NULL;
    }
    if (n_given > 1 || gm_ends_in_csv(given[0]) || gm_is_netcdf(given[0])) {
        for (; *n < n_given; ++*n) files[*n] = gm_copy_text(given[*n]);
        return files;
    }
    for (int c = 1; c < MOST_CHAINS; c++) {
        char *path = gm_format("%s_%d.csv", given[0], c);
        if (access(path, F_OK) == 0) files[(*n)++] = path;
        else {
            free(path);
            if (*n > 0 && is_gap(command, given[0], c)) {
                while (*n > 0) free(files[--*n]);
                free(files);
                return NULL;
            }
            if (*n > 0 || c > 100) break;
        }
    }
    if (*n > 0) return files;
    char *netcdf = gm_format("%s.nc", given[0]);
    if (access(netcdf, F_OK) == 0) {
        files[(*n)++] = netcdf;
        return files;
    }
    gm_error("%s: there are no draws %s_1.csv or %s", command, given[0], netcdf);
    free(netcdf);
    free(files);
    return NULL;
}
