// opened.c -- what all commands about stored draws do first: options, and files.
#include "../fields.h"
#include "../messages.h"
#include "after.h"

#include <getopt.h>
#include <stdlib.h>

bool gm_opened(GmStored *s, const GmModel *model, const char *command, char **given, int n_given)
{
    int n = 0;
    char **files = gm_draw_files(command, given, n_given, &n);
    const bool good = files && gm_stored_open(s, model, files, n);
    for (int k = 0; k < n && files; k++) free(files[k]);
    free(files);
    return good;
}

int gm_after_options(int argc, char **argv, unsigned group, const char *usage, bool (*take)(int option, const char *text, void *to),
                     void *to)
{
    optind = 0;
    opterr = 0;
    for (int option; (option = gm_option_next(gm_option_table, group, argc, argv)) != GM_OPTIONS_END;) {
        if (option < 0) {
            char *command = gm_format("%s: ", argv[0]);
            if (option == GM_OPTION_WITHOUT_VALUE) gm_error("%s%s: a value is missing; try --help", command, argv[optind - 1]);
            else gm_option_refused(command, group, argv[optind - 1]);
            free(command);
            return GM_EXIT_USAGE;
        }
        if (gm_option(gm_option_table, option)->letter == 'h') {
            printf("usage: %s\n", usage);
            gm_option_group_print(stdout, group);
            return GM_EXIT_OK;
        }
        if (!take(option, optarg, to)) return GM_EXIT_USAGE;
    }
    if (optind < argc) return -1;
    if (group == GROUP_WATCH) gm_error("watch: no run is given: watch NAME, the NAME of `--status -o NAME`");
    else gm_error("%s: no draws are given: %s DRAWS, which is the NAME of `-o NAME`, or files; try --help", argv[0], argv[0]);
    return GM_EXIT_USAGE;
}
