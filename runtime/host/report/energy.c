// energy.c -- the energy of NUTS: how it is distributed, and how it changes from one draw to the next.
//
// Betancourt 2016, "Diagnosing suboptimal cotangent disintegrations in Hamiltonian Monte Carlo", arXiv:1604.00695: momenta are drawn anew
// for each transition, which changes the energy by so much. Where that is far less than what the energy ranges over, tails are reached
// slowly.
#include "../messages.h"
#include "report.h"

#include <math.h>
#include <stdlib.h>

enum { WIDTH = 420, HEIGHT = 220, BINS = 50 };

static void outline(FILE *to, const GmPanel *p, const char *class, const double *count)
{
    fprintf(to, "<path class=\"%s\" d=\"M%.1f %.1f", class, p->left, p->top + p->height);
    for (int b = 0; b < BINS; b++) fprintf(to, "V%.1fh%.2f", gm_panel_y(p, count[b]), p->width / BINS);
    fprintf(to, "V%.1f%s\"/>\n", p->top + p->height, "");
}

void gm_energy_figure(FILE *to, const GmStored *s, const GmStoredMoves *m, int *number)
{
    const double *energy = gm_stored_column(s, m->column[GM_HMC_ENERGY]);
    const long n = s->chains * s->draws;
    double *level = gm_alloc((size_t)n, sizeof *level), *change = gm_alloc((size_t)n, sizeof *change);
    char *by_chain = gm_copy_text("");
    for (int c = 0; c < s->chains; c++) {
        const double *e = energy + c * s->draws;
        double mean = 0;
        for (long i = 0; i < s->draws; i++) mean += e[i] / (double)s->draws;
        for (long i = 0; i < s->draws; i++) {
            level[c * s->draws + i] = e[i] - mean;
            change[c * s->draws + i] = i ? e[i] - e[i - 1] : NAN;
        }
        if (c >= GM_COLOURS) continue;
        char *more = gm_format("%s%s%.2f", by_chain, c ? ", " : "", gm_energy_ratio(e, s->draws));
        free(by_chain);
        by_chain = more;
    }
    double lo[2], hi[2], count[2][BINS];
    gm_shown_range(level, n, &lo[0], &hi[0]);
    gm_shown_range(change, n, &lo[1], &hi[1]);
    GmPanel p = {.left = 16, .top = 26, .width = WIDTH - 32, .height = HEIGHT - 66};
    p.lo[0] = fmin(lo[0], lo[1]);
    p.hi[0] = fmax(hi[0], hi[1]);
    gm_histogram(level, n, p.lo[0], p.hi[0], BINS, count[0]);
    gm_histogram(change, n, p.lo[0], p.hi[0], BINS, count[1]);
    for (int k = 0; k < 2; k++)
        for (int b = 0; b < BINS; b++) p.hi[1] = fmax(p.hi[1], 1.04 * count[k][b]);
    char *text = gm_format("Two histograms about zero: of the energy, within %.3g to %.3g, and of its change between draws, within %.3g to "
                           "%.3g. E-BFMI by chain: %s.",
                           lo[0], hi[0], lo[1], hi[1], by_chain);
    gm_figure_begin(to, ++*number, WIDTH, HEIGHT, *m->of ? "Energy and its transitions, of a second update" : "Energy and its transitions",
                    text);
    outline(to, &p, "all", count[0]);
    outline(to, &p, "line s2", count[1]);
    gm_panel_axes(to, &p, "energy about its mean", NULL);
    fprintf(to, "<rect class=\"all\" x=\"%g\" y=\"7\" width=\"14\" height=\"9\"/>\n", p.left);
    gm_svg_text(to, p.left + 20, 15, "strong", "energy");
    fprintf(to, "<path class=\"line s2\" d=\"M%g 11.5h14\"/>\n", p.left + 80);
    gm_svg_text(to, p.left + 100, 15, "strong", "change between draws");
    char *caption = gm_format("E-BFMI %s%s. The outline should be about as wide as the filled histogram; E-BFMI is the ratio of their "
                              "squares, and below 0.3 it is low.",
                              by_chain, s->chains > GM_COLOURS ? ", ... by chain" : " by chain");
    gm_figure_end(to, caption);
    free(caption);
    free(text);
    free(by_chain);
    free(level);
    free(change);
}
