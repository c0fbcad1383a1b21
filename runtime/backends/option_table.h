// option_table.h -- command lines read by a table of options, which also prints what --help says of each.
//
// gmc has its table in compiler/driver/options.def, programs theirs in runtime/host/options.def. Manual pages and completion come from the
// same two files (docs/man/pages.c).
#ifndef GM_OPTION_TABLE_H
#define GM_OPTION_TABLE_H

#include <stdio.h>

typedef struct GmOption {
    int id;                // above 0; 0: no option, a line of --help
    char letter;           // 0: none
    const char *name;      // without its dashes, NULL: a letter alone; of a line, all that stands on the left
    const char *argument;  // the name of its argument; NULL: it has none; [=NAME]: it may be left out, else it stands behind a `=`
    const char *values;    // all that the argument may be, "cpu gpu"; NULL: anything
    unsigned group;        // one bit
    const char *help;      // NULL: nothing on the right
} GmOption;

enum { GM_OPTIONS_END = 0, GM_OPTION_UNKNOWN = -1, GM_OPTION_WITHOUT_VALUE = -2 };

// The id of the next option, as getopt_long finds it, or one of these. Only rows of the groups are options; the last row has no name, no
// letter. It reads optind and opterr, and leaves optarg and optopt.
int gm_option_next(const GmOption *table, unsigned groups, int argc, char **argv);
// The name of the option that a mistyped one is next to, `--smaples=3` or without its dashes, in as many edits as its length allows; NULL:
// none of the groups is near.
const char *gm_option_near(const GmOption *table, unsigned groups, const char *flag);
const GmOption *gm_option(const GmOption *table, int id);
// The number of a text among the values of an option, from 0; -1: it is none of them.
int gm_option_value(const GmOption *o, const char *text);
// The values as a message names them, "cpu, gpu". The text is the caller's to free.
char *gm_option_values(const GmOption *o);
// A row as --help shows it: what is on the right begins `width` + 3 columns from the left, or two after what is longer. Options
// without a letter are indented by `indent` more.
void gm_option_print(FILE *to, const GmOption *o, int width, int indent);

#endif
