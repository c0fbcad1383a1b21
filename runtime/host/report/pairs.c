// pairs.c -- where transitions diverge: the unknowns that go with that most, in pairs, with the divergent draws marked.
#include "../messages.h"
#include "report.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { SIDE = 150, GAP = 14, LEFT = 52, TOP = 8, BOTTOM = 40, MOST_DOTS = 500, MOST_MARKED = 300, BINS = 24 };

typedef struct Axis {
    const char *label;
    char *name;  // with what the axis shows of it
    double *x;   // of all draws: the values, or their logarithms
    double lo, hi;
    bool log;
} Axis;

// What is positive and goes over two orders of magnitude shows its small values by logarithms alone.
static Axis axis_of(const GmStored *s, long column)
{
    const long n = s->chains * s->draws;
    const double *x = gm_stored_column(s, column);
    Axis a = {.label = s->column[column].label, .x = gm_alloc((size_t)n, sizeof *a.x)};
    double lo, hi;
    gm_range(x, n, &lo, &hi);
    a.log = lo > 0 && hi / lo > 100;
    for (long i = 0; i < n; i++) a.x[i] = a.log ? log10(x[i]) : x[i];
    if (a.log) gm_range(a.x, n, &a.lo, &a.hi);
    else gm_shown_range(a.x, n, &a.lo, &a.hi);
    a.name = a.log ? gm_format("%s, log scale", a.label) : gm_copy_text(a.label);
    return a;
}

// Every k-th of the draws that are (or are not) divergent, so that at most `most` are shown.
static void dots(FILE *to, const GmPanel *p, const GmStored *s, const GmFindings *f, const Axis *x, const Axis *y, bool divergent,
                 long most, double radius)
{
    const long n = s->chains * s->draws, all = divergent ? f->divergent : n - f->divergent, step = (all + most - 1) / most;
    long k = 0;
    fprintf(to, "<g class=\"%s\">\n", divergent ? "div" : "dots");
    for (long i = 0; i < n; i++) {
        if (f->diverged[i] != divergent || k++ % step) continue;
        if (!(x->x[i] >= x->lo && x->x[i] <= x->hi && y->x[i] >= y->lo && y->x[i] <= y->hi)) continue;
        fprintf(to, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"%g\"/>\n", gm_panel_x(p, x->x[i]), gm_panel_y(p, y->x[i]), radius);
    }
    fputs("</g>\n", to);
}

static void histogram(FILE *to, GmPanel *p, const GmStored *s, const Axis *a)
{
    double count[BINS];
    gm_histogram(a->x, s->chains * s->draws, a->lo, a->hi, BINS, count);
    for (int b = 0; b < BINS; b++) p->hi[1] = fmax(p->hi[1], 1.25 * count[b]);
    if (p->hi[1] <= 0) p->hi[1] = 1;
    fprintf(to, "<path class=\"all\" d=\"M%.1f %.1f", p->left, p->top + p->height);
    for (int b = 0; b < BINS; b++) fprintf(to, "V%.1fh%.2f", gm_panel_y(p, count[b]), p->width / BINS);
    fprintf(to, "V%.1fz\"/>\n", p->top + p->height);
}

void gm_pairs_figure(FILE *to, const GmStored *s, const GmFindings *f, int *number)
{
    const int n = f->n_associated;
    Axis axis[sizeof f->associated / sizeof *f->associated];
    char *names = gm_copy_text("");
    for (int k = 0; k < n; k++) {
        axis[k] = axis_of(s, f->associated[k]);
        char *more = gm_format("%s%s%s", names, k == 0 ? "" : k + 1 < n ? ", " : " and ", axis[k].label);
        free(names);
        names = more;
    }
    const double side = n <= 2 ? 1.5 * SIDE : n == 3 ? SIDE : 0.8 * SIDE;
    const double width = LEFT + n * side + (n - 1) * GAP + 8, height = TOP + n * side + (n - 1) * GAP + BOTTOM;
    char *text =
        gm_format("Scatter plots of %s for each pair, with histograms on the diagonal; %ld of %ld draws end a divergent transition "
                  "and are marked.",
                  names, f->divergent, s->chains * s->draws);
    gm_figure_begin(to, ++*number, width, height, "Where transitions diverge", text);
    for (int i = 0; i < n; i++)
        for (int j = 0; j <= i; j++) {
            GmPanel p = {.left = LEFT + j * (side + GAP), .top = TOP + i * (side + GAP), .width = side, .height = side};
            p.lo[0] = axis[j].lo;
            p.hi[0] = axis[j].hi;
            p.log[0] = axis[j].log;
            const char *x_name = i == n - 1 ? axis[j].name : NULL;
            if (i == j) {
                histogram(to, &p, s, &axis[i]);
                gm_panel_axes(to, &p, x_name, NULL);
                gm_svg_text(to, p.left + p.width / 2, p.top + 12, "head", axis[i].name);
                continue;
            }
            p.lo[1] = axis[i].lo;
            p.hi[1] = axis[i].hi;
            p.log[1] = axis[i].log;
            gm_panel_axes(to, &p, x_name, j == 0 ? axis[i].name : NULL);
            dots(to, &p, s, f, &axis[j], &axis[i], false, MOST_DOTS, 1.3);
            dots(to, &p, s, f, &axis[j], &axis[i], true, MOST_MARKED, 2);
        }
    char *caption = gm_format("%s: the unknowns whose values go with divergences most%s. Where marked points gather, the sampler could not "
                              "follow the posterior.",
                              names, s->chains * s->draws - f->divergent > MOST_DOTS ? "; of the other draws a part is shown" : "");
    gm_figure_end(to, caption);
    for (int k = 0; k < n; k++) {
        free(axis[k].x);
        free(axis[k].name);
    }
    free(caption);
    free(text);
    free(names);
}
