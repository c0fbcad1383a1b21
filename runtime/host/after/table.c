// table.c -- `summary DRAWS`, the table at the end of a run for stored draws, and `diagnose DRAWS`, what is wrong with them.
//
// The table is that of summary.c: arrays of the files stand for fields of a model, of which nothing but names and sizes is known.
#include "../messages.h"
#include "after.h"

#include <getopt.h>
#include <stdlib.h>
#include <string.h>

static void print_table(const GmStored *s, const GmOptions *o)
{
    GmField *field = gm_alloc((size_t)s->n_arrays, sizeof *field);
    GmShape *shape = gm_alloc((size_t)s->n_arrays, sizeof *shape);
    for (int a = 0; a < s->n_arrays; a++) {
        field[a] = (GmField){.name = s->array[a].name, .role = GM_PARAMETER, .rank = s->array[a].rank};
        shape[a].rank = s->array[a].rank;
        memcpy(shape[a].dim, s->array[a].dim, sizeof shape[a].dim);
        memcpy(field[a].extent_of, s->array[a].levels_of, sizeof field[a].extent_of);
    }
    const GmModel model = {.name = s->name, .state = field, .n_state = s->n_arrays};
    const GmMemory memory = {.shape = shape};
    const GmData data = {.levels = s->levels};
    GmDraws d = {.data = &data, .chains = s->chains, .capacity = s->draws, .kept = s->draws, .held = s->draws};
    long *from = gm_alloc((size_t)s->n_columns, sizeof *from);
    d.column = gm_alloc((size_t)s->n_columns, sizeof *d.column);
    for (long c = 0; c < s->n_columns; c++) {
        const int a = s->column[c].array;
        if (s->array[a].kind != STORED_QUANTITY) continue;
        from[d.n_columns] = c;
        d.column[d.n_columns++] = (GmColumn){.field = strcmp(s->array[a].name, "lp__") == 0 ? -1 : a, .element = s->column[c].element};
    }
    d.n_summarised = d.n_columns;
    d.memory = gm_alloc((size_t)s->chains * (size_t)s->draws * (size_t)d.n_columns, sizeof *d.memory);
    for (long k = 0; k < d.n_columns; k++)
        for (long i = 0; i < s->chains * s->draws; i++) d.memory[i * d.n_columns + k] = gm_stored_column(s, from[k])[i];
    gm_summary_table(stdout, &d, &model, &memory, o);
    free(d.memory);
    free(d.column);
    free(from);
    free(shape);
    free(field);
}

static bool take_summary(int option, const char *text, void *to)
{
    return option == OPT_TABLE_QUANTILES ? gm_option_quantiles(text, to) : gm_option_summary(text, to);
}

static bool take_none(int option, const char *text, void *to) { return (void)option, (void)text, (void)to, false; }

int gm_table(const GmModel *model, int argc, char **argv)
{
    GmOptions o = {.summary_rows = 50};
    GmStored s = {0};
    GmFindings f;
    int status = gm_after_options(argc, argv, GROUP_TABLE, "summary [options] DRAWS", take_summary, &o);
    if (status >= 0) return status;
    if (!gm_opened(&s, model, "summary", argv + optind, argc - optind)) return GM_EXIT_USAGE;
    print_table(&s, &o);
    fflush(stdout);
    gm_findings_open(&f, &s);
    const char *first;
    gm_warnings(o.summary_form == GM_SUMMARY_TEXT ? stdout : stderr, GM_WARNINGS_LINES, &s, &f, NULL, 0, &first);
    gm_findings_close(&f);
    gm_stored_close(&s);
    return GM_EXIT_OK;
}

int gm_diagnose(const GmModel *model, int argc, char **argv)
{
    GmStored s = {0};
    GmFindings f;
    int status = gm_after_options(argc, argv, GROUP_DIAGNOSE, "diagnose DRAWS", take_none, NULL);
    if (status >= 0) return status;
    if (!gm_opened(&s, model, "diagnose", argv + optind, argc - optind)) return GM_EXIT_USAGE;
    gm_findings_open(&f, &s);
    const char *first;
    printf("%s: %d chain%s, %ld draws each\n", s.name, s.chains, s.chains > 1 ? "s" : "", s.draws);
    if (gm_warnings(stdout, GM_WARNINGS_LIST, &s, &f, NULL, 0, &first) == 0) puts(gm_no_warnings);
    gm_findings_close(&f);
    gm_stored_close(&s);
    return GM_EXIT_OK;
}
