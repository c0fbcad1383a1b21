// figures.c -- the figures of one unknown, chain by chain: trace, ranks, density, autocorrelation.
//
// Ranks: Vehtari, Gelman, Simpson, Carpenter and Buerkner 2021, Bayesian Analysis 16(2), section 4.2: if all chains draw from one law, the
// ranks of a chain's draws among those of all chains are uniform. Of many chains those farthest from that are shown.
#include "../messages.h"
#include "report.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { WIDTH = 360, HEIGHT = 184, RANK_BINS = 20, MOST_VALUES = 40, MOST_LAGS = 200 };
static const GmPanel whole = {.left = 44, .top = 8, .width = WIDTH - 64, .height = HEIGHT - 42};

typedef struct Shown {
    int n;
    int chain[GM_COLOURS];
    bool all;
} Shown;

typedef struct Quantity {
    FILE *to;
    const GmStored *s;
    const GmFindings *f;
    const char *label;
    long column;
    const double *x;  // [chain][draw]
    double *rank;     // the same
    Shown shown;
} Quantity;

// How far a chain's mean rank lies from that of all, without sign.
static double apart(const Quantity *q, int chain)
{
    double sum = 0;
    for (long i = 0; i < q->s->draws; i++) sum += q->rank[chain * q->s->draws + i];
    return fabs(sum / (double)q->s->draws - 0.5 * (double)(q->s->chains * q->s->draws + 1));
}

static Shown choose_chains(const Quantity *q)
{
    const int chains = q->s->chains;
    Shown out = {.all = chains <= GM_COLOURS};
    bool *taken = gm_alloc((size_t)chains, sizeof *taken);
    for (int k = 0; k < GM_COLOURS && k < chains; k++) {
        int best = out.all ? k : -1;
        for (int c = 0; c < chains && !out.all; c++)
            if (!taken[c] && (best < 0 || apart(q, c) > apart(q, best))) best = c;
        taken[best] = true;
    }
    for (int c = 0; c < chains; c++)
        if (taken[c]) out.chain[out.n++] = c;
    free(taken);
    return out;
}

// "Chains 3, 8 and 17 of 200, those that differ most." Of all chains: nothing. The caller frees.
static char *which_chains(const Quantity *q)
{
    char *text = gm_copy_text("");
    for (int k = 0; k < q->shown.n && !q->shown.all; k++) {
        char *more = gm_format("%s%s%ld", text, k == 0 ? " Chains " : k + 1 < q->shown.n ? ", " : " and ", q->s->id[q->shown.chain[k]]);
        free(text);
        text = more;
    }
    if (q->shown.all) return text;
    char *out = gm_format("%s of %d, those that differ most.", text, q->s->chains);
    free(text);
    return out;
}

static void begin(const Quantity *q, int *number, const char *kind, const char *description)
{
    char *title = gm_format("%s of %s", kind, q->label);
    gm_figure_begin(q->to, ++*number, WIDTH, HEIGHT, title, description);
    free(title);
}

static void end(const Quantity *q, const char *caption)
{
    char *which = which_chains(q), *text = gm_format("%s%s", caption, which);
    gm_figure_end(q->to, text);
    free(which);
    free(text);
}

// ---- trace ----

// All draws where there is room for them; else the least and the greatest of each column of the picture.
static void trace_line(const Quantity *q, const GmPanel *p, int k)
{
    enum { COLUMNS = 300 };
    const long n = q->s->draws;
    const double *x = q->x + q->shown.chain[k] * n;
    bool begun = false;
    fprintf(q->to, "<path class=\"line thin %s\" d=\"", gm_series_class(k));
    const long columns = n <= 2 * COLUMNS ? n : COLUMNS;
    for (long b = 0; b < columns; b++) {
        const long from = b * n / columns, to = (b + 1) * n / columns;
        long low = -1, high = -1;
        for (long i = from; i < to; i++) {
            if (!isfinite(x[i])) continue;
            if (low < 0 || x[i] < x[low]) low = i;
            if (high < 0 || x[i] > x[high]) high = i;
        }
        const long in_order[] = {low < high ? low : high, low < high ? high : low};
        for (int e = 0; e < (low == high ? 1 : 2) && low >= 0; e++) {
            fprintf(q->to, "%s%.1f %.1f", begun ? " " : "M", gm_panel_x(p, (double)(in_order[e] + 1)), gm_panel_y(p, x[in_order[e]]));
            begun = true;
        }
    }
    fputs("\"/>\n", q->to);
}

static void trace(const Quantity *q, int *number)
{
    const GmStored *s = q->s;
    GmPanel p = whole;
    p.lo[0] = 1;
    p.hi[0] = s->draws > 1 ? (double)s->draws : 2;
    double lo, hi;
    gm_range(q->x, s->chains * s->draws, &lo, &hi);
    p.lo[1] = lo - (hi - lo) * (q->f->divergent ? 0.06 : 0.02);
    p.hi[1] = hi + (hi - lo) * 0.02;
    char *text = gm_format("%d chains of %ld draws, between %.4g and %.4g; %ld divergent transitions.", s->chains, s->draws, lo, hi,
                           q->f->divergent);
    begin(q, number, "Trace", text);
    free(text);
    gm_panel_axes(q->to, &p, "draw", "");
    for (int k = 0; k < q->shown.n; k++) trace_line(q, &p, k);
    if (q->f->divergent > 0) {
        long last = -1;
        fputs("<path class=\"divline\" d=\"", q->to);
        for (long i = 0; i < s->draws; i++) {
            bool any = false;
            for (int c = 0; c < s->chains; c++) any |= q->f->diverged[c * s->draws + i];
            const long at = lrint(gm_panel_x(&p, (double)(i + 1)));
            if (!any || at == last) continue;
            last = at;
            fprintf(q->to, "M%ld %.1fv-5", at, p.top + p.height);
        }
        fputs("\"/>\n", q->to);
    }
    end(q, q->f->divergent > 0 ? "Trace; ticks below are divergent transitions." : "Trace.");
}

// ---- ranks ----

static void ranks(const Quantity *q, int *number)
{
    const GmStored *s = q->s;
    const double all = (double)(s->chains * s->draws), expected = (double)s->draws / RANK_BINS;
    const double spread = 2 * sqrt(expected * (1 - 1.0 / RANK_BINS));
    double *count = gm_alloc((size_t)q->shown.n * RANK_BINS, sizeof *count), most = expected + spread, farthest = 0;
    for (int k = 0; k < q->shown.n; k++) {
        gm_histogram(q->rank + q->shown.chain[k] * s->draws, s->draws, 0.5, all + 0.5, RANK_BINS, count + k * RANK_BINS);
        for (int b = 0; b < RANK_BINS; b++) {
            most = fmax(most, count[k * RANK_BINS + b]);
            farthest = fmax(farthest, fabs(count[k * RANK_BINS + b] / expected - 1));
        }
    }
    char *text = gm_format("For each chain a histogram of the ranks of its draws among those of all chains, in %d bins of %.4g draws if "
                           "chains agree; the bin that differs most is off by %.0f %%.",
                           RANK_BINS, expected, 100 * farthest);
    begin(q, number, "Rank histograms", text);
    free(text);
    const double row = whole.height / q->shown.n;
    for (int k = 0; k < q->shown.n; k++) {
        GmPanel p = whole;
        char id[30];
        p.top = whole.top + row * k;
        p.height = row - (q->shown.n > 4 ? 2 : 4);
        p.hi[0] = RANK_BINS;
        p.hi[1] = most * 1.02;
        fprintf(q->to, "<rect class=\"band\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\"/>\n", p.left,
                gm_panel_y(&p, expected + spread), p.width, gm_panel_y(&p, fmax(expected - spread, 0)) - gm_panel_y(&p, expected + spread));
        fprintf(q->to, "<path class=\"bar %s\" d=\"", gm_series_class(k));
        for (int b = 0; b < RANK_BINS; b++)
            fprintf(q->to, "M%.1f %.1fV%.1fh%.1fV%.1fz", gm_panel_x(&p, b) + 0.5, p.top + p.height,
                    gm_panel_y(&p, count[k * RANK_BINS + b]), p.width / RANK_BINS - 1, p.top + p.height);
        fprintf(q->to, "\"/>\n<path class=\"zero\" d=\"M%.1f %.1fh%.1f\"/>\n", p.left, gm_panel_y(&p, expected), p.width);
        snprintf(id, sizeof id, "%ld", s->id[q->shown.chain[k]]);
        gm_svg_text(q->to, p.left - 6, p.top + p.height / 2 + 4, "end", id);
    }
    GmPanel axis = whole;
    axis.lo[0] = 0;
    axis.hi[0] = all;
    gm_panel_axes(q->to, &axis, "rank among all draws", NULL);
    end(q, "Ranks by chain; grey: where bars lie if chains agree.");
    free(count);
}

// ---- density ----

static void outline(const Quantity *q, const GmPanel *p, const char *class, const double *density)
{
    fprintf(q->to, "<path class=\"%s\" d=\"M", class);
    for (int g = 0; g < GM_GRID; g++)
        fprintf(q->to, "%s%.1f %.1f", g ? " " : "", gm_panel_x(p, p->lo[0] + (p->hi[0] - p->lo[0]) * g / (GM_GRID - 1)),
                gm_panel_y(p, density[g]));
    fputs("\"/>\n", q->to);
}

static void smooth(const Quantity *q, GmPanel *p)
{
    const GmStored *s = q->s;
    const double width = gm_kernel_width(q->x, s->chains, s->draws);
    double *density = gm_alloc((size_t)GM_GRID * (size_t)q->shown.n, sizeof *density);
    for (int k = 0; k < q->shown.n; k++) {
        gm_density(q->x + q->shown.chain[k] * s->draws, s->draws, p->lo[0], p->hi[0], width, density + k * GM_GRID);
        for (int g = 0; g < GM_GRID; g++) p->hi[1] = fmax(p->hi[1], 1.04 * density[k * GM_GRID + g]);
    }
    if (p->hi[1] <= 0) p->hi[1] = 1;
    gm_panel_axes(q->to, p, q->label, NULL);
    for (int k = 0; k < q->shown.n; k++) {
        char class[20];
        snprintf(class, sizeof class, "line %s", gm_series_class(k));
        outline(q, p, class, density + k * GM_GRID);
    }
    free(density);
}

// Whole numbers: for each value the fractions of the chains, side by side.
static void bars(const Quantity *q, GmPanel *p)
{
    const GmStored *s = q->s;
    const int values = (int)(p->hi[0] - p->lo[0]);
    double *count = gm_alloc((size_t)values * (size_t)q->shown.n, sizeof *count);
    for (int k = 0; k < q->shown.n; k++) {
        gm_histogram(q->x + q->shown.chain[k] * s->draws, s->draws, p->lo[0], p->hi[0], values, count + k * values);
        for (int v = 0; v < values; v++) p->hi[1] = fmax(p->hi[1], count[k * values + v] /= (double)s->draws);
    }
    if (p->hi[1] <= 0) p->hi[1] = 1;
    gm_panel_axes(q->to, p, q->label, "");
    const double each = p->width / values * 0.8 / q->shown.n;
    for (int k = 0; k < q->shown.n; k++) {
        fprintf(q->to, "<path class=\"bar %s\" d=\"", gm_series_class(k));
        for (int v = 0; v < values; v++)
            if (count[k * values + v] > 0)
                fprintf(q->to, "M%.1f %.1fV%.1fh%.1fV%.1fz", gm_panel_x(p, p->lo[0] + v + 0.1) + each * k, p->top + p->height,
                        gm_panel_y(p, count[k * values + v]), each, p->top + p->height);
        fputs("\"/>\n", q->to);
    }
    free(count);
}

static void density(const Quantity *q, int *number)
{
    const long n = q->s->chains * q->s->draws;
    const GmSummary *of = &q->f->summary[q->column];
    GmPanel p = whole;
    double lo, hi;
    gm_range(q->x, n, &lo, &hi);
    const bool counts = gm_all_whole(q->x, n) && hi - lo < MOST_VALUES;
    if (counts) {
        p.lo[0] = ceil(lo) - 0.5;
        p.hi[0] = floor(hi) + 0.5;
    } else gm_shown_range(q->x, n, &p.lo[0], &p.hi[0]);
    char *text = gm_format("Mean %.4g, 90 %% of the draws of all chains between %.4g and %.4g.", of->mean, of->q5, of->q95);
    begin(q, number, counts ? "Probabilities" : "Density", text);
    free(text);
    if (counts) bars(q, &p);
    else smooth(q, &p);
    end(q, counts                         ? "Probabilities, chain by chain."
           : p.lo[0] > lo || p.hi[0] < hi ? "Density, chain by chain; far tails are left out."
                                          : "Density, chain by chain.");
}

// ---- autocorrelation ----

static void autocorrelation(const Quantity *q, int *number)
{
    const GmStored *s = q->s;
    const int most = s->draws - 1 < MOST_LAGS ? (int)s->draws - 1 : MOST_LAGS;
    double *rho = gm_alloc((size_t)q->shown.n * (size_t)(most + 1), sizeof *rho), least = 0;
    int lags = most < 20 ? most : 20;
    for (int k = 0; k < q->shown.n; k++) {
        double *of = rho + k * (most + 1);
        gm_autocorrelations(q->x + q->shown.chain[k] * s->draws, s->draws, most, of);
        int fallen = 0;
        while (fallen < most && of[fallen] > 0.05) fallen++;
        if (fallen * 3 / 2 > lags) lags = fallen * 3 / 2 < most ? fallen * 3 / 2 : most;
    }
    double at_ten = 0;
    for (int k = 0; k < q->shown.n; k++) {
        const double *of = rho + k * (most + 1);
        for (int lag = 0; lag <= lags; lag++) least = fmin(least, of[lag]);
        if (most >= 10 && !isnan(of[10])) at_ten += of[10] / q->shown.n;
    }
    GmPanel p = whole;
    p.hi[0] = lags > 0 ? lags : 1;
    p.lo[1] = fmin(-0.1, least);
    p.hi[1] = 1;
    char *text = gm_format("From 1 at lag 0; at lag 10 the mean of the chains is %.2f. Lags to %d are shown.", at_ten, lags);
    begin(q, number, "Autocorrelation", text);
    free(text);
    gm_panel_axes(q->to, &p, "lag", "");
    const double noise = 2 / sqrt((double)s->draws);
    fprintf(q->to,
            "<rect class=\"band\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\"/>\n<path class=\"zero\" d=\"M%.1f %.1fh%.1f\"/>\n",
            p.left, gm_panel_y(&p, noise), p.width, gm_panel_y(&p, fmax(-noise, p.lo[1])) - gm_panel_y(&p, noise), p.left,
            gm_panel_y(&p, 0), p.width);
    for (int k = 0; k < q->shown.n; k++) {
        if (isnan(rho[k * (most + 1)])) continue;  // a chain that is constant
        fprintf(q->to, "<path class=\"line %s\" d=\"M", gm_series_class(k));
        for (int lag = 0; lag <= lags; lag++)
            fprintf(q->to, "%s%.1f %.1f", lag ? " " : "", gm_panel_x(&p, lag), gm_panel_y(&p, rho[k * (most + 1) + lag]));
        fputs("\"/>\n", q->to);
    }
    free(rho);
    end(q, "Autocorrelation; grey: noise about zero.");
}

void gm_figures_of_quantity(FILE *to, const GmStored *s, const GmFindings *f, long column, int *number)
{
    const long n = s->chains * s->draws;
    Quantity q = {.to = to, .s = s, .f = f, .label = s->column[column].label, .column = column, .x = gm_stored_column(s, column)};
    q.rank = gm_alloc((size_t)n, sizeof *q.rank);
    for (long i = 0; i < n; i++) q.rank[i] = isnan(q.x[i]) ? -INFINITY : q.x[i];
    gm_ranks(q.rank, n);
    q.shown = choose_chains(&q);
    fputs("<div class=\"grid\">\n", to);
    trace(&q, number);
    ranks(&q, number);
    density(&q, number);
    autocorrelation(&q, number);
    fputs("</div>\n", to);
    free(q.rank);
}
