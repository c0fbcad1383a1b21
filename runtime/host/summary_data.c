// summary_data.c -- the summary for programs: a table with a row for each quantity, or an object.
//
//   variable,mean,mcse,sd,5%,50%,95%,ess_bulk,ess_tail,rhat          {"chains": 4, "draws": 1000, "variables":
//   mu,4.41,0.05,3.31,-0.97,4.42,9.73,4012,3514,1.0003                  [{"variable": "mu", "mean": 4.41, ..., "quantiles": {"5%": ..}}]}
//
// Numbers have all their digits. What is not defined, as R-hat of a constant, is an empty cell, or null.
#include "draws.h"
#include "fields.h"

#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { NUMBERS = 6 };
static const char *const names[NUMBERS] = {"mean", "mcse", "sd", "ess_bulk", "ess_tail", "rhat"};
enum { BEFORE_QUANTILES = 3 };

static void numbers_of(const GmSummary *s, double number[NUMBERS])
{
    const double all[NUMBERS] = {s->mean, s->mcse, s->sd, s->ess_bulk, s->ess_tail, s->rhat};
    memcpy(number, all, sizeof all);
}

static void print_cell(FILE *to, double x)
{
    char text[GM_NUMBER_ROOM];
    fputc(',', to);
    if (!isnan(x)) fwrite(text, 1, (size_t)gm_print_number(text, x, 0), to);
}

// A comma, or a quote of a level, makes quotes necessary.
static void print_label(FILE *to, const char *label)
{
    const bool plain = !strpbrk(label, ",\"");
    if (!plain) fputc('"', to);
    for (; *label; label++) fputs((char[]){*label, *label == '"' ? '"' : 0, 0}, to);
    if (!plain) fputc('"', to);
}

static void print_csv(FILE *to, const GmDraws *d, const GmModel *model, const GmMemory *m, const GmSummary *all, const double *quantile,
                      const double *percent, int n)
{
    fputs("variable", to);
    for (int k = 0; k < NUMBERS; k++) {
        for (int i = 0; i < n && k == BEFORE_QUANTILES; i++) fprintf(to, ",%g%%", percent[i]);
        fprintf(to, ",%s", names[k]);
    }
    fputc('\n', to);
    for (long v = 0; v < d->n_summarised; v++) {
        if (gm_draws_diagnostic(d, model, v)) continue;
        char *label = gm_column_label(d, model, m, v, '[');
        double number[NUMBERS];
        numbers_of(&all[v], number);
        print_label(to, label);
        for (int k = 0; k < NUMBERS; k++) {
            for (int i = 0; i < n && k == BEFORE_QUANTILES; i++) print_cell(to, quantile[v * n + i]);
            print_cell(to, number[k]);
        }
        fputc('\n', to);
        free(label);
    }
}

static json_t *number_or_null(double x) { return isfinite(x) ? json_real(x) : json_null(); }

static void print_json(FILE *to, const GmDraws *d, const GmModel *model, const GmMemory *m, const GmSummary *all, const double *quantile,
                       const double *percent, int n)
{
    json_t *root = json_object(), *variables = json_array();
    json_object_set_new(root, "chains", json_integer(d->chains));
    json_object_set_new(root, "draws", json_integer(d->kept));
    for (long v = 0; v < d->n_summarised; v++) {
        if (gm_draws_diagnostic(d, model, v)) continue;
        json_t *one = json_object(), *quantiles = json_object();
        char *label = gm_column_label(d, model, m, v, '[');
        double number[NUMBERS];
        numbers_of(&all[v], number);
        json_object_set_new(one, "variable", json_string(label));
        for (int k = 0; k < NUMBERS; k++) json_object_set_new(one, names[k], number_or_null(number[k]));
        for (int i = 0; i < n; i++) {
            char title[40];
            snprintf(title, sizeof title, "%g%%", percent[i]);
            json_object_set_new(quantiles, title, number_or_null(quantile[v * n + i]));
        }
        json_object_set_new(one, "quantiles", quantiles);
        json_array_append_new(variables, one);
        free(label);
    }
    json_object_set_new(root, "variables", variables);
    json_dumpf(root, to, JSON_INDENT(1) | JSON_REAL_PRECISION(17));
    fputc('\n', to);
    json_decref(root);
}

void gm_summary_data(FILE *to, const GmDraws *d, const GmModel *model, const GmMemory *m, GmSummaryForm form, const GmSummary *all,
                     const double *quantile, const double *percent, int n)
{
    if (form == GM_SUMMARY_CSV) print_csv(to, d, model, m, all, quantile, percent, n);
    else print_json(to, d, model, m, all, quantile, percent, n);
}
