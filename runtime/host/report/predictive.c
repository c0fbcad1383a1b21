// predictive.c -- posterior predictive checks: replicates of each response beside what was observed.
//
// Gelman, Meng and Stern 1996, Statistica Sinica 6: a replicate is drawn as the model draws the data, one for each draw of the unknowns. If
// the model fits, what was observed looks like one of them. The probability beside a statistic is that of a replicate's being at least as
// large.
#include "../fields.h"
#include "../messages.h"
#include "report.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { WIDTH = 380, WIDE = 640, HEIGHT = 230, LINES = 40, MOST_VALUES = 40, BINS = 30, MOST_INTERVALS = 60 };
enum { STATISTICS = 4 };
const char *const gm_response_statistic[STATISTICS] = {"mean", "standard deviation", "least value", "greatest value"};

static int ascending(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

// ---- the responses ----

static char *response_of(const GmStored *s, const GmStoredArray *a)
{
    for (const GmObserved *o = s->model ? s->model->observed : NULL; o && o->where && a->field >= 0; o++)
        if (o->replicate == a->field + 1 && o->name) return gm_copy_text(o->name);
    const size_t n = strlen(a->name), m = strlen("_rep");
    return gm_format("%.*s", (int)(n > m ? n - m : n), a->name);
}

static double number_of(const GmValue *v, long at)
{
    if (v->type != GM_INT) return ((const double *)v->elements)[at];
    const int32_t x = ((const int32_t *)v->elements)[at];
    return x == GM_MISSING_INT ? NAN : x;
}

// The observed values by column. false after a message: they have another shape.
static bool take_observed(GmResponse *r, const GmStored *s, const GmValue *v)
{
    const GmStoredArray *a = r->array;
    bool same = gm_value_size(v) == a->n && (v->table || v->rank == a->rank);
    for (int d = 0; d < a->rank && same && !v->table; d++) same = v->dim[d] == a->dim[d];
    if (!same) {
        char *there = gm_shape_text(v->rank, v->dim), *here = gm_shape_text(a->rank, a->dim);
        gm_error("%s: %s is %s, and its replicates %s are %s: these are not the data of the draws", v->source, v->name, there, a->name,
                 here);
        free(there);
        free(here);
        return false;
    }
    r->y = gm_alloc((size_t)a->n, sizeof *r->y);
    for (long k = 0; k < a->n; k++) {
        r->y[k] = number_of(v, s->column[a->first + k].element);
        r->known += isfinite(r->y[k]);
    }
    if (r->known > 0) return true;
    free(r->y);
    r->y = NULL;
    return true;
}

// Mean, sd, least and greatest of the elements that were observed, of one replicate or of the data.
static void statistics(const GmResponse *r, const GmStored *s, long draw, double *out)
{
    const GmStoredArray *a = r->array;
    double sum = 0, square = 0;
    out[2] = INFINITY;
    out[3] = -INFINITY;
    for (int pass = 0; pass < 2; pass++)
        for (long k = 0; k < a->n; k++) {
            if (!isfinite(r->y[k])) continue;
            const double x = draw < 0 ? r->y[k] : gm_stored_column(s, a->first + k)[draw];
            if (pass) square += (x - out[0]) * (x - out[0]);
            else {
                sum += x;
                out[0] = sum / (double)r->known;
                out[2] = fmin(out[2], x);
                out[3] = fmax(out[3], x);
            }
        }
    out[1] = r->known > 1 ? sqrt(square / (double)(r->known - 1)) : NAN;
}

static void compare(GmResponse *r, const GmStored *s)
{
    const long n = s->chains * s->draws;
    double seen[STATISTICS], one[STATISTICS], *sorted = gm_alloc((size_t)n, sizeof *sorted), inside = 0;
    statistics(r, s, -1, seen);
    for (long i = 0; i < n; i++) {
        statistics(r, s, i, one);
        for (int k = 0; k < STATISTICS; k++) r->probability[k] += (one[k] > seen[k] ? 1 : one[k] == seen[k] ? 0.5 : 0) / (double)n;
    }
    for (long k = 0; k < r->array->n; k++) {
        if (!isfinite(r->y[k])) continue;
        memcpy(sorted, gm_stored_column(s, r->array->first + k), (size_t)n * sizeof *sorted);
        qsort(sorted, (size_t)n, sizeof *sorted, ascending);
        inside += r->y[k] >= gm_quantile(sorted, n, 0.05) && r->y[k] <= gm_quantile(sorted, n, 0.95);
    }
    r->covered = inside / (double)r->known;
    free(sorted);
}

bool gm_responses_open(GmResponse **out, int *n, const GmStored *s, char **data, int n_data)
{
    GmResponse *all = gm_alloc((size_t)s->n_arrays, sizeof *all);
    GmField *fields = gm_alloc((size_t)s->n_arrays, sizeof *fields);
    *out = all;
    *n = 0;
    for (int a = 0; a < s->n_arrays; a++) {
        if (s->array[a].kind != STORED_REPLICATE) continue;
        all[*n] = (GmResponse){.array = &s->array[a], .name = response_of(s, &s->array[a])};
        fields[*n] = (GmField){.name = all[*n].name, .type = GM_REAL, .rank = s->array[a].rank};
        ++*n;
    }
    GmValues values = {.fields = s->model ? s->model->data : fields, .n_fields = s->model ? s->model->n_data : *n, .reads_names = true};
    bool good = true;
    for (int k = 0; k < n_data && good; k++) good = gm_values_read(&values, data[k]);
    for (int k = 0; k < *n && good; k++) {
        const GmValue *v = gm_values_find(&values, all[k].name);
        if (v && v->names)
            gm_error("report: %s: %s is given by name: replicates are codes, and which is which is not known", v->source, v->name);
        good = !v || (!v->names && take_observed(&all[k], s, v));
        if (good && all[k].y) compare(&all[k], s);
    }
    gm_values_close(&values);
    free(fields);
    return good;
}

void gm_responses_close(GmResponse *r, int n)
{
    for (int k = 0; k < n; k++) {
        free(r[k].name);
        free(r[k].y);
    }
    free(r);
}

// ---- values and replicates ----

// What is shown of a replicate: elements that were observed, or all if none were.
static long one_replicate(const GmResponse *r, const GmStored *s, long draw, double *out)
{
    long n = 0;
    for (long k = 0; k < r->array->n; k++)
        if (!r->y || isfinite(r->y[k])) out[n++] = draw < 0 ? r->y[k] : gm_stored_column(s, r->array->first + k)[draw];
    return n;
}

static long shown_draw(const GmStored *s, int k, int lines) { return (long)((double)k * (double)(s->chains * s->draws) / lines); }

static void curve(FILE *to, const GmPanel *p, const char *class, const double *density)
{
    fprintf(to, "<path class=\"%s\" d=\"M", class);
    for (int g = 0; g < GM_GRID; g++)
        fprintf(to, "%s%.1f %.1f", g ? " " : "", gm_panel_x(p, p->lo[0] + (p->hi[0] - p->lo[0]) * g / (GM_GRID - 1)),
                gm_panel_y(p, density[g]));
    fputs("\"/>\n", to);
}

static void densities(FILE *to, GmPanel *p, const GmResponse *r, const GmStored *s, double *work)
{
    const int lines = s->chains * s->draws < LINES ? (int)(s->chains * s->draws) : LINES;
    double *density = gm_alloc((size_t)GM_GRID * (size_t)(lines + 1), sizeof *density);
    for (int k = 0; k <= lines; k++) {
        if (k == lines && !r->y) break;
        const long n = one_replicate(r, s, k == lines ? -1 : shown_draw(s, k, lines), work);
        gm_density(work, n, p->lo[0], p->hi[0], gm_kernel_width(work, 1, n), density + k * GM_GRID);
        for (int g = 0; g < GM_GRID; g++) p->hi[1] = fmax(p->hi[1], 1.04 * density[k * GM_GRID + g]);
    }
    if (p->hi[1] <= 0) p->hi[1] = 1;
    gm_panel_axes(to, p, r->name, NULL);
    for (int k = 0; k < lines; k++) curve(to, p, "rep", density + k * GM_GRID);
    if (r->y) curve(to, p, "obs", density + lines * GM_GRID);
    free(density);
}

// How often each whole number is there: what was observed as bars, replicates as their central 90 %.
static void counts(FILE *to, GmPanel *p, const GmResponse *r, const GmStored *s, double *work)
{
    enum { DRAWS = 400 };
    const int values = (int)(p->hi[0] - p->lo[0]), draws = s->chains * s->draws < DRAWS ? (int)(s->chains * s->draws) : DRAWS;
    double *count = gm_alloc((size_t)values * (size_t)(draws + 1), sizeof *count), *one = gm_alloc((size_t)draws, sizeof *one);
    for (int k = 0; k <= draws; k++) {
        if (k == draws && !r->y) break;
        const long n = one_replicate(r, s, k == draws ? -1 : shown_draw(s, k, draws), work);
        gm_histogram(work, n, p->lo[0], p->hi[0], values, count + k * values);
        for (int v = 0; v < values; v++) p->hi[1] = fmax(p->hi[1], 1.04 * count[k * values + v]);
    }
    gm_panel_axes(to, p, r->name, "observations");
    const double wide = p->width / values;
    for (int v = 0; v < values; v++) {
        const double left = gm_panel_x(p, p->lo[0] + v), seen = count[draws * values + v];
        if (r->y && seen > 0)
            fprintf(to, "<rect class=\"all\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\"/>\n", left + 0.15 * wide,
                    gm_panel_y(p, seen), 0.7 * wide, p->top + p->height - gm_panel_y(p, seen));
        for (int k = 0; k < draws; k++) one[k] = count[k * values + v];
        qsort(one, (size_t)draws, sizeof *one, ascending);
        fprintf(to, "<path class=\"ci\" d=\"M%.1f %.1fV%.1f\"/>\n<circle class=\"bar s1\" cx=\"%.1f\" cy=\"%.1f\" r=\"2.4\"/>\n",
                left + wide / 2, gm_panel_y(p, gm_quantile(one, draws, 0.05)), gm_panel_y(p, gm_quantile(one, draws, 0.95)),
                left + wide / 2, gm_panel_y(p, gm_quantile(one, draws, 0.5)));
    }
    free(count);
    free(one);
}

static void overlay(FILE *to, const GmResponse *r, const GmStored *s, int *number)
{
    const long n = r->array->n, draws = s->chains * s->draws;
    const int lines = draws < LINES ? (int)draws : LINES;
    double *work = gm_alloc((size_t)n * (size_t)(lines + 1), sizeof *work);
    long all = 0;
    for (int k = 0; k < lines; k++) all += one_replicate(r, s, shown_draw(s, k, lines), work + all);
    if (r->y) all += one_replicate(r, s, -1, work + all);
    GmPanel p = {.left = 46, .top = 10, .width = WIDTH - 56, .height = HEIGHT - 50};
    double lo, hi;
    gm_range(work, all, &lo, &hi);
    const bool whole = gm_all_whole(work, all) && hi - lo < MOST_VALUES;
    if (whole) {
        p.lo[0] = ceil(lo) - 0.5;
        p.hi[0] = floor(hi) + 0.5;
    } else gm_shown_range(work, all, &p.lo[0], &p.hi[0]);
    char *title = gm_format("Replicates of %s", r->name);
    char *text = r->y ? gm_format("The distribution of %ld observed values of %s beside that of replicates; %.0f %% of the observed values "
                                  "lie within the central 90 %% of their replicates.",
                                  r->known, r->name, 100 * r->covered)
                      : gm_format("The distribution of replicates of %s; what was observed is not known.", r->name);
    gm_figure_begin(to, ++*number, WIDTH, HEIGHT, title, text);
    free(title);
    free(text);
    if (whole) counts(to, &p, r, s, work);
    else densities(to, &p, r, s, work);
    free(work);
    gm_figure_end(to, !r->y ? whole ? "How often each value is replicated: medians, and the central 90 %." : "Densities of replicates."
                      : whole
                          ? "Filled: how often each value was observed. Points and lines: medians of replicates, and their central 90 %."
                          : "Dark: what was observed. Thin lines: replicates, one for each of some draws.");
}

// ---- statistics, and each value ----

static void panels(FILE *to, const GmResponse *r, const GmStored *s, int *number)
{
    const long n = s->chains * s->draws;
    double seen[STATISTICS], *one = gm_alloc((size_t)n * STATISTICS, sizeof *one), all[STATISTICS];
    statistics(r, s, -1, seen);
    for (long i = 0; i < n; i++) {
        statistics(r, s, i, all);
        for (int k = 0; k < STATISTICS; k++) one[k * n + i] = all[k];
    }
    char *title = gm_format("Statistics of %s and of its replicates", r->name),
         *text = gm_copy_text("Probabilities that a replicate's is larger:");
    for (int k = 0; k < STATISTICS; k++) {
        char *more = gm_format("%s%s %s %.3f", text, k ? "," : "", gm_response_statistic[k], r->probability[k]);
        free(text);
        text = more;
    }
    gm_figure_begin(to, ++*number, WIDTH, 300, title, text);
    for (int k = 0; k < STATISTICS; k++) {
        GmPanel p = {.left = 13 + k % 2 * (WIDTH / 2.0), .top = 26 + k / 2 * 148, .width = WIDTH / 2.0 - 26, .height = 96};
        double count[BINS], *of = one + k * n;
        gm_shown_range(of, n, &p.lo[0], &p.hi[0]);
        if (isfinite(seen[k])) {
            p.lo[0] = fmin(p.lo[0], seen[k]);
            p.hi[0] = fmax(p.hi[0], seen[k]);
        }
        gm_histogram(of, n, p.lo[0], p.hi[0], BINS, count);
        for (int b = 0; b < BINS; b++) p.hi[1] = fmax(p.hi[1], 1.05 * count[b]);
        if (p.hi[1] <= 0) p.hi[1] = 1;
        fprintf(to, "<path class=\"bar s1\" d=\"M%.1f %.1f", p.left, p.top + p.height);
        for (int b = 0; b < BINS; b++) fprintf(to, "V%.1fh%.2f", gm_panel_y(&p, count[b]), p.width / BINS);
        fprintf(to, "V%.1fz\"/>\n", p.top + p.height);
        if (isfinite(seen[k]))
            fprintf(to, "<path class=\"obs\" d=\"M%.1f %.1fv%.1f\"/>\n", gm_panel_x(&p, seen[k]), p.top - 4, p.height + 4);
        gm_panel_axes(to, &p, "", NULL);
        char *head = gm_format("%s (p = %.3f)", gm_response_statistic[k], r->probability[k]);
        gm_svg_text(to, p.left + p.width / 2, p.top - 11, "head", head);
        free(head);
    }
    gm_figure_end(to, "Histograms of replicates, and a line for what was observed. p: how often a replicate's is larger.");
    free(title);
    free(text);
    free(one);
}

static void intervals(FILE *to, const GmResponse *r, const GmStored *s, int *number)
{
    const long n = s->chains * s->draws;
    GmPanel p = {.left = 46, .top = 10, .width = WIDE - 56, .height = HEIGHT - 50};
    double *sorted = gm_alloc((size_t)n, sizeof *sorted), *at = gm_alloc((size_t)(4 * r->array->n), sizeof *at);
    for (long k = 0; k < r->array->n; k++) {
        memcpy(sorted, gm_stored_column(s, r->array->first + k), (size_t)n * sizeof *sorted);
        qsort(sorted, (size_t)n, sizeof *sorted, ascending);
        at[4 * k] = gm_quantile(sorted, n, 0.05);
        at[4 * k + 1] = gm_quantile(sorted, n, 0.95);
        at[4 * k + 2] = at[4 * k + 3] = r->y[k];
    }
    gm_range(at, 4 * r->array->n, &p.lo[1], &p.hi[1]);
    p.lo[0] = 0.3;
    p.hi[0] = (double)r->array->n + 0.7;
    char *title = gm_format("Each value of %s and its replicates", r->name);
    char *text = gm_format("%.0f %% of the observed values lie within the central 90 %% of their replicates.", 100 * r->covered);
    gm_figure_begin(to, ++*number, WIDE, HEIGHT, title, text);
    gm_panel_axes(to, &p, r->array->rank > 1 ? "element, in the order of the files" : "element", "");
    for (long k = 0; k < r->array->n; k++) {
        const double x = gm_panel_x(&p, (double)(k + 1));
        fprintf(to, "<path class=\"ci\" d=\"M%.1f %.1fV%.1f\"/>\n", x, gm_panel_y(&p, at[4 * k]), gm_panel_y(&p, at[4 * k + 1]));
        if (!isfinite(r->y[k])) continue;
        const bool out = r->y[k] < at[4 * k] || r->y[k] > at[4 * k + 1];
        fprintf(to, "<circle class=\"%s\" cx=\"%.1f\" cy=\"%.1f\" r=\"3\"/>\n", out ? "div" : "obs", x, gm_panel_y(&p, r->y[k]));
    }
    gm_figure_end(to, "Lines: the central 90 % of the replicates of each value. Circles: what was observed, filled where it lies outside.");
    free(title);
    free(text);
    free(sorted);
    free(at);
}

void gm_predictive_figures(FILE *to, const GmStored *s, const GmResponse *r, int *number)
{
    fputs("<div class=\"grid\">\n", to);
    overlay(to, r, s, number);
    if (r->y) panels(to, r, s, number);
    fputs("</div>\n", to);
    if (!r->y || r->array->n > MOST_INTERVALS || r->array->n < 2) return;
    fputs("<div class=\"wide\" tabindex=\"0\" role=\"region\" aria-label=\"Each value and its replicates\">\n", to);
    intervals(to, r, s, number);
    fputs("</div>\n", to);
}
