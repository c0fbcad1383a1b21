// draw_files.c -- files of draws by their names: the NAME of `-o NAME` stands for NAME_1.csv, NAME_2.csv, ...
#include "host.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MOST_CHAINS = 10000 };

bool gm_ends_in_csv(const char *path)
{
    const size_t n = strlen(path);
    return n > 4 && strcmp(path + n - 4, ".csv") == 0;
}

char **gm_draw_files(const char *command, char **given, int n_given, int *n)
{
    char **files = gm_alloc((size_t)n_given + MOST_CHAINS, sizeof *files);
    *n = 0;
    if (n_given > 1 || gm_ends_in_csv(given[0])) {
        for (; *n < n_given; ++*n) files[*n] = gm_copy_text(given[*n]);
        return files;
    }
    for (int c = 1; c < MOST_CHAINS; c++) {
        char *path = gm_format("%s_%d.csv", given[0], c);
        if (access(path, F_OK) == 0) files[(*n)++] = path;
        else {
            free(path);
            if (*n > 0 || c > 100) break;
        }
    }
    if (*n > 0) return files;
    const size_t length = strlen(given[0]);
    const bool ends = length > 3 && strcmp(given[0] + length - 3, ".nc") == 0;
    char *netcdf = gm_format(ends ? "%s" : "%s.nc", given[0]);
    gm_error("%s: there are no draws %s_1.csv%s", command, given[0],
             access(netcdf, F_OK) == 0 ? " (a run with --format both writes them beside NAME.nc)" : "");
    free(netcdf);
    free(files);
    return NULL;
}
