// option_table.c -- command lines read by a table of options.
#include "option_table.h"

#include <getopt.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_OPTIONS = 100, LONG_ONES = 256 };  // what getopt_long returns is a letter, or an id above all letters

static bool is_last(const GmOption *o) { return !o->id && !o->name; }

static bool is_option(const GmOption *o, unsigned groups) { return o->id && (o->group & groups); }

// Names are written in full: what abbreviates one option today may mean another, or none, when there is one more. After getopt_long has
// found an option by its name: true if that was abbreviated; argv[optind - 1] is then what was written.
static bool is_abbreviated(char **argv, const char *name)
{
    if (optarg && optarg == argv[optind - 1]) optind--;
    if (strcspn(argv[optind - 1] + 2, "=") < strlen(name)) return true;
    if (optarg && optarg == argv[optind]) optind++;
    return false;
}

int gm_option_next(const GmOption *table, unsigned groups, int argc, char **argv)
{
    struct option all[MOST_OPTIONS + 1] = {0};
    char letters[2 * MOST_OPTIONS + 2], *end = letters;
    int n = 0;
    if (!opterr) *end++ = ':';
    for (const GmOption *o = table; !is_last(o); o++) {
        if (!is_option(o, groups)) continue;
        if (n == MOST_OPTIONS) abort();  // a table of more needs a larger limit
        const int argument = !o->argument ? no_argument : *o->argument == '[' ? optional_argument : required_argument;
        if (o->name) all[n++] = (struct option){o->name, argument, NULL, LONG_ONES + o->id};
        if (o->letter) *end++ = o->letter;
        if (o->letter && o->argument) *end++ = ':';
    }
    *end = 0;
    int which = -1;
    const int found = getopt_long(argc, argv, letters, all, &which);
    if (found < 0) return GM_OPTIONS_END;
    if (found == '?') return GM_OPTION_UNKNOWN;
    if (found == ':') return GM_OPTION_WITHOUT_VALUE;
    if (which >= 0 && is_abbreviated(argv, all[which].name)) {
        const char *word = argv[optind - 1];
        if (opterr)
            fprintf(stderr, "%s: options are written in full: --%s, not %.*s\n", argv[0], all[which].name, (int)strcspn(word, "="), word);
        optopt = 0;
        return GM_OPTION_UNKNOWN;
    }
    if (found >= LONG_ONES) return found - LONG_ONES;
    for (const GmOption *o = table; !is_last(o); o++)
        if (is_option(o, groups) && o->letter == found) return o->id;
    return GM_OPTION_UNKNOWN;
}

enum { LONGEST = 40 };

// Characters that are inserted, removed or changed between two names; `_` counts as `-`.
static int distance(const char *a, int n, const char *b)
{
    const int m = (int)strlen(b);
    int row[LONGEST + 1];
    if (n > LONGEST || m > LONGEST) return LONGEST;
    for (int j = 0; j <= m; j++) row[j] = j;
    for (int i = 1; i <= n; i++) {
        int diagonal = row[0];
        row[0] = i;
        for (int j = 1; j <= m; j++) {
            const int change = diagonal + ((a[i - 1] == '_' ? '-' : a[i - 1]) != b[j - 1]);
            diagonal = row[j];
            const int shift = (row[j] < row[j - 1] ? row[j] : row[j - 1]) + 1;
            row[j] = change < shift ? change : shift;
        }
    }
    return row[m];
}

const char *gm_option_near(const GmOption *table, unsigned groups, const char *flag)
{
    const char *best = NULL;
    flag += strspn(flag, "-");
    const int n = (int)strcspn(flag, "=");
    int least = n < 3 ? 1 : n < 6 ? 2 : n < 9 ? 3 : 4, begun = 0;  // below it; names that begin so
    for (const GmOption *o = table; !is_last(o) && n; o++)
        if (is_option(o, groups) && o->name && strncmp(flag, o->name, (size_t)n) == 0) {
            begun++;
            best = o->name;
        }
    if (begun == 1) return best;
    best = NULL;
    for (const GmOption *o = table; !is_last(o); o++) {
        if (!is_option(o, groups) || !o->name) continue;
        const int d = distance(flag, n, o->name);
        if (d < least) {
            least = d;
            best = o->name;
        }
    }
    return best;
}

const GmOption *gm_option(const GmOption *table, int id)
{
    for (const GmOption *o = table; !is_last(o); o++)
        if (o->id == id) return o;
    return NULL;
}

int gm_option_value(const GmOption *o, const char *text)
{
    const size_t length = strlen(text);
    int k = 0;
    for (const char *v = o->values; *v; v += strspn(v, " "), k++) {
        const size_t n = strcspn(v, " ");
        if (n == length && strncmp(v, text, n) == 0) return k;
        v += n;
    }
    return -1;
}

char *gm_option_values(const GmOption *o)
{
    char *text = malloc(2 * strlen(o->values) + 1), *end = text;
    if (!text) abort();
    for (const char *v = o->values; *v; v++) {
        if (*v == ' ') *end++ = ',';
        *end++ = *v;
    }
    *end = 0;
    return text;
}

void gm_option_print(FILE *to, const GmOption *o, int width, int indent)
{
    char left[200];
    const char *argument = o->argument ? o->argument : "";
    if (!o->id) snprintf(left, sizeof left, "%s", o->name);
    else if (!o->name) snprintf(left, sizeof left, "-%c%s%s", o->letter, *argument ? " " : "", argument);
    else {
        const char *between = *argument && *argument != '=' && *argument != '[' ? " " : "";
        if (o->letter) snprintf(left, sizeof left, "-%c, --%s%s%s", o->letter, o->name, between, argument);
        else snprintf(left, sizeof left, "%*s--%s%s%s", indent, "", o->name, between, argument);
    }
    if (!o->help) {
        fprintf(to, "  %s\n", left);
        return;
    }
    fprintf(to, "  %-*s%s", width, left, (int)strlen(left) < width ? " " : "  ");
    for (const char *c = o->help; *c; c++) {
        fputc(*c, to);
        if (*c == '\n') fprintf(to, "%*s", width + 3, "");
    }
    fputc('\n', to);
}
