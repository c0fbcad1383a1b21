// clusters.c -- what draws of allocations say whatever their labels are: how many components have points, which points go together, a
// partition that represents them all.
//
// Two points are together in a fraction of the draws. The partition nearest to these fractions, sum over pairs of (together in it -
// fraction)^2, is looked for among the draws: the least squares clustering of Dahl 2006, in Do, Mueller and Vannucci, Bayesian Inference
// for Gene Expression and Proteomics. Both take the squares of the sizes of clusters as their work.
#include "messages.h"
#include "relabel.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

// Points in the order of their labels in one draw: label k has member[begin[k]] to member[begin[k + 1] - 1].
static void members(const GmPartitions *p, long draw, long *begin, int32_t *member)
{
    const int32_t *z = p->z + draw * p->points;
    memset(begin, 0, sizeof *begin * (size_t)(p->labels + 2));
    for (long i = 0; i < p->points; i++) begin[z[i] + 2]++;
    for (int k = 0; k < p->labels; k++) begin[k + 2] += begin[k + 1];
    for (long i = 0; i < p->points; i++) member[begin[z[i] + 1]++] = (int32_t)i;  // in ascending order
}

void gm_occupied_print(FILE *to, const GmPartitions *p)
{
    long *times = gm_alloc((size_t)p->labels + 1, sizeof *times);
    bool *has = gm_alloc((size_t)p->labels, sizeof *has);
    for (long d = 0; d < p->draws; d++) {
        int n = 0;
        memset(has, 0, sizeof *has * (size_t)p->labels);
        for (long i = 0; i < p->points; i++) {
            bool *of = &has[p->z[d * p->points + i]];
            n += !*of;
            *of = true;
        }
        times[n]++;
    }
    fprintf(to, "components with points:");
    const char *before = " ";
    double rest = 0;
    for (int n = 0; n <= p->labels; n++) {
        const double percent = 100 * (double)times[n] / (double)p->draws;
        if (percent < 0.1) {
            rest += percent;
            continue;
        }
        fprintf(to, "%s%d (%.3g %%)", before, n, percent);
        before = ", ";
    }
    fprintf(to, rest > 0 ? ", others (%.2g %%) of the draws\n" : " of the draws\n", rest);
    free(times);
    free(has);
}

uint32_t *gm_together(const GmPartitions *p)
{
    uint32_t *together = gm_alloc((size_t)p->points * (size_t)p->points, sizeof *together);
    long *begin = gm_alloc((size_t)p->labels + 2, sizeof *begin);
    int32_t *member = gm_alloc((size_t)p->points, sizeof *member);
    for (long d = 0; d < p->draws; d++) {
        members(p, d, begin, member);
        for (int k = 0; k < p->labels; k++)
            for (long a = begin[k]; a < begin[k + 1]; a++) {
                uint32_t *of = together + (size_t)member[a] * (size_t)p->points;
                for (long b = begin[k]; b < a; b++) of[member[b]]++;
            }
    }
    free(begin);
    free(member);
    return together;
}

long gm_least_squares(const GmPartitions *p, const uint32_t *together)
{
    long *begin = gm_alloc((size_t)p->labels + 2, sizeof *begin), best = 0;
    int32_t *member = gm_alloc((size_t)p->points, sizeof *member);
    double least = INFINITY;
    for (long d = 0; d < p->draws; d++) {
        members(p, d, begin, member);
        double sum = 0;  // of 1 - 2 * fraction over the pairs that are together: the squares but for those of the fractions
        for (int k = 0; k < p->labels; k++)
            for (long a = begin[k]; a < begin[k + 1]; a++) {
                const uint32_t *of = together + (size_t)member[a] * (size_t)p->points;
                double inner = 0;
                for (long b = begin[k]; b < a; b++) inner += of[member[b]];
                sum += (double)(a - begin[k]) - 2 * inner / (double)p->draws;
            }
        if (sum < least) {
            least = sum;
            best = d;
        }
    }
    free(begin);
    free(member);
    return best;
}

int gm_by_size(const GmPartitions *p, long draw, int *of)
{
    const int32_t *z = p->z + draw * p->points;
    long *size = gm_alloc((size_t)p->labels, sizeof *size);
    int *place = gm_alloc((size_t)p->labels, sizeof *place), n = 0;
    for (long i = 0; i < p->points; i++) size[z[i]]++;
    for (;; n++) {
        int most = -1;
        for (int k = 0; k < p->labels; k++)
            if (size[k] > 0 && (most < 0 || size[k] > size[most])) most = k;
        if (most < 0) break;
        place[most] = n;
        size[most] = 0;
    }
    for (long i = 0; i < p->points; i++) of[i] = place[z[i]];
    free(size);
    free(place);
    return n;
}

bool gm_cocluster_write(const char *path, const GmPartitions *p, const uint32_t *together)
{
    GmFile out;
    if (!gm_output_open(&out, path, false)) return false;
    FILE *to = out.to;
    for (long i = 0; i < p->points; i++)
        for (long j = 0; j < p->points; j++) {
            const uint32_t n = i == j ? (uint32_t)p->draws : i > j ? together[i * p->points + j] : together[j * p->points + i];
            fprintf(to, "%.4g%c", (double)n / (double)p->draws, j + 1 < p->points ? ',' : '\n');
        }
    return gm_output_done(&out);
}

bool gm_partition_write(const char *path, const GmPartitions *p, const int *of, const long *element)
{
    GmFile out;
    if (!gm_output_open(&out, path, false)) return false;
    FILE *to = out.to;
    fprintf(to, "point,cluster\n");
    for (long i = 0; i < p->points; i++) fprintf(to, "%ld,%d\n", element[i] + 1, of[i] + 1);
    return gm_output_done(&out);
}

// ---- a picture ----

enum { WIDTH = 640, HEIGHT = 480, LEFT = 70, RIGHT = 130, TOP = 20, BOTTOM = 50 };

// The largest of 1, 2 and 5 times a power of ten that is at most a fifth of the range, or a little more.
static double tick_of(double range)
{
    const double power = pow(10, floor(log10(range / 4)));
    return range / 4 >= 5 * power ? 5 * power : range / 4 >= 2 * power ? 2 * power : power;
}

static void xml_text(FILE *to, const char *text)
{
    for (; *text; text++)
        if (*text == '<' || *text == '&') fputs(*text == '<' ? "&lt;" : "&amp;", to);
        else fputc(*text, to);
}

// Where the axes begin and end, with a margin about all points.
static void find_ends(long points, const double *xy, double *lo, double *hi)
{
    for (long i = 0; i < 2 * points; i++) {
        if (!isfinite(xy[i])) continue;
        lo[i % 2] = fmin(lo[i % 2], xy[i]);
        hi[i % 2] = fmax(hi[i % 2], xy[i]);
    }
    for (int k = 0; k < 2; k++) {
        const double margin = hi[k] > lo[k] ? 0.04 * (hi[k] - lo[k]) : isfinite(lo[k]) ? 0.5 : 0;
        lo[k] = isfinite(lo[k]) ? lo[k] - margin : 0;
        hi[k] = isfinite(hi[k]) ? hi[k] + margin : 1;
    }
}

static void write_axes(FILE *to, const double *lo, const double *hi, const char *x_name, const char *y_name)
{
    const double across = WIDTH - LEFT - RIGHT, up = HEIGHT - TOP - BOTTOM;
    for (int k = 0; k < 2; k++) {
        const double tick = tick_of(hi[k] - lo[k]);
        for (double at = ceil(lo[k] / tick) * tick; at <= hi[k]; at += tick) {
            const double part = (at - lo[k]) / (hi[k] - lo[k]);
            const double shown = fabs(at) < tick / 1e6 ? 0 : at;
            if (k == 0)
                fprintf(to, "<text x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">%g</text>\n", LEFT + part * across, HEIGHT - BOTTOM + 16,
                        shown);
            else fprintf(to, "<text x=\"%d\" y=\"%.1f\" text-anchor=\"end\">%g</text>\n", LEFT - 6, HEIGHT - BOTTOM - part * up + 4, shown);
        }
    }
    fprintf(to, "<text x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">", LEFT + across / 2, HEIGHT - 12);
    xml_text(to, x_name);
    fprintf(to, "</text>\n<text transform=\"translate(16 %.1f) rotate(-90)\" text-anchor=\"middle\">", TOP + up / 2);
    xml_text(to, y_name);
    fprintf(to, "</text>\n");
}

bool gm_scatter_write(const char *path, long points, const double *xy, const char *x_name, const char *y_name, int clusters, const int *of)
{
    // Okabe and Ito 2008: colours that most eyes distinguish; then shades.
    static const char *const colour[] = {"#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00",
                                         "#56b4e9", "#8c6d31", "#000000", "#7b4173", "#637939"};
    enum { COLOURS = sizeof colour / sizeof *colour, LISTED = 20 };
    double lo[2] = {INFINITY, INFINITY}, hi[2] = {-INFINITY, -INFINITY};
    find_ends(points, xy, lo, hi);
    GmFile out;
    if (!gm_output_open(&out, path, false)) return false;
    FILE *to = out.to;
    const double across = WIDTH - LEFT - RIGHT, up = HEIGHT - TOP - BOTTOM;
    fprintf(to,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" width=\"%d\" height=\"%d\" font-family=\"sans-serif\" "
            "font-size=\"12\">\n",
            WIDTH, HEIGHT, WIDTH, HEIGHT);
    fprintf(to,
            "<rect width=\"100%%\" height=\"100%%\" fill=\"white\"/>\n<g stroke=\"#999\" fill=\"none\"><rect x=\"%d\" y=\"%d\" "
            "width=\"%g\" height=\"%g\"/></g>\n",
            LEFT, TOP, across, up);
    write_axes(to, lo, hi, x_name, y_name);
    for (int k = 0; k < clusters; k++) {
        long size = 0;
        fprintf(to, "<g fill=\"%s\" fill-opacity=\"0.6\">\n", colour[k % COLOURS]);
        for (long i = 0; i < points; i++) {
            if (of[i] != k) continue;
            size++;
            if (isfinite(xy[2 * i]) && isfinite(xy[2 * i + 1]))
                fprintf(to, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"%s\"/>\n", LEFT + (xy[2 * i] - lo[0]) / (hi[0] - lo[0]) * across,
                        HEIGHT - BOTTOM - (xy[2 * i + 1] - lo[1]) / (hi[1] - lo[1]) * up, points > 2000 ? "1.5" : "3");
        }
        if (k < LISTED) {
            fprintf(to, "<circle cx=\"%d\" cy=\"%d\" r=\"5\" fill-opacity=\"1\"/>\n", WIDTH - RIGHT + 16, TOP + 12 + 20 * k);
            fprintf(to, "<text x=\"%d\" y=\"%d\" fill=\"black\" fill-opacity=\"1\">%d (%ld points)</text>\n", WIDTH - RIGHT + 27,
                    TOP + 16 + 20 * k, k + 1, size);
        }
        fprintf(to, "</g>\n");
    }
    fprintf(to, "</svg>\n");
    return gm_output_done(&out);
}
