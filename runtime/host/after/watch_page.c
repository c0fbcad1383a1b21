// watch_page.c -- the page of `watch --port`: how far runs are, and their quantities with the fewest effective draws.
#include "../report/report.h"
#include "watch.h"

#include <math.h>
#include <stdlib.h>

// Beyond these the summary of a run warns.
static const double good_rhat = 1.01, good_ess = 100;

static void cell(FILE *to, const char *format, double x, bool bad)
{
    fputs(bad ? "<td class=\"bad\">" : "<td>", to);
    if (isfinite(x)) fprintf(to, format, x);
    else fputs("not known", to);
    fputs("</td>", to);
}

static void quantities(FILE *to, const GmSeenRun *w)
{
    const json_t *list = json_object_get(w->now, "quantities");
    const double chains = gm_watched_number(w->now, "chains");
    if (json_array_size(list) == 0) return;
    fputs("<div class=\"scroll\"><table><thead><tr><th>fewest effective draws</th><th>R-hat</th><th>ESS</th></tr></thead><tbody>\n", to);
    for (size_t k = 0; k < json_array_size(list); k++) {
        const json_t *one = json_array_get(list, k);
        const double rhat = gm_watched_number(one, "rhat"), ess = gm_watched_number(one, "ess");
        fputs("<tr><th class=\"name\">", to);
        gm_html_text(to, gm_watched_text(one, "name"));
        fputs("</th>", to);
        cell(to, "%.3f", rhat, rhat > good_rhat);
        cell(to, "%.0f", ess, ess < good_ess * chains);
        fputs("</tr>\n", to);
    }
    fputs("</tbody></table></div>\n", to);
}

static void one_run(FILE *to, const GmSeenRun *w)
{
    char *line = gm_watched_line(w);
    const bool bad = gm_watched_gone(w) || (gm_watched_over(w) && gm_watched_status(w) != 0);
    fputs("<section>\n<h2 class=\"name\">", to);
    gm_html_text(to, w->name);
    fputs("</h2>\n", to);
    fprintf(to, "<p class=\"verdict%s\">", bad ? " bad" : "");
    gm_html_text(to, line);
    fputs("</p>\n<p class=\"facts\">model ", to);
    gm_html_text(to, gm_watched_text(w->now, "model"));
    fprintf(to, ", %.0f chains, %.0f draws each so far, of %.0f, after %.0f s</p>\n", gm_watched_number(w->now, "chains"),
            gm_watched_number(w->now, "draws"), gm_watched_number(w->now, "samples"), gm_watched_number(w->now, "seconds"));
    fprintf(to, "<p><progress style=\"width:100%%\" value=\"%.0f\" max=\"%.0f\"></progress></p>\n", gm_watched_number(w->now, "sweep"),
            gm_watched_number(w->now, "sweeps"));
    quantities(to, w);
    fputs("</section>\n", to);
    free(line);
}

void gm_watch_page(FILE *to, const GmSeenRun *of, int n)
{
    gm_html_begin(to, n == 1 ? of->name : "Runs");
    fputs("<main>\n", to);
    for (int k = 0; k < n; k++) one_run(to, &of[k]);
    fputs("</main>\n", to);
    gm_html_end(to);
}
