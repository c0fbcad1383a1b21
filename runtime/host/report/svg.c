// svg.c -- figures with axes, as SVG within a page. Colours come from the page's style, by class.
#include "report.h"

#include <math.h>
#include <string.h>

const char *gm_series_class(int series)
{
    static const char *const class[GM_COLOURS] = {"s1", "s2", "s3", "s4", "s5", "s6", "s7", "s8"};
    return class[series % GM_COLOURS];
}

void gm_figure_begin(FILE *to, int number, double width, double height, const char *title, const char *description)
{
    fprintf(to,
            "<figure id=\"figure-%d\">\n<svg viewBox=\"0 0 %g %g\" role=\"img\" aria-labelledby=\"figure-%d-title figure-%d-text\">\n"
            "<title id=\"figure-%d-title\">",
            number, width, height, number, number, number);
    gm_html_text(to, title);
    fprintf(to, "</title>\n<desc id=\"figure-%d-text\">", number);
    gm_html_text(to, description);
    fputs("</desc>\n", to);
}

void gm_figure_end(FILE *to, const char *caption)
{
    fputs("</svg>\n<figcaption>", to);
    gm_html_text(to, caption);
    fputs("</figcaption>\n</figure>\n", to);
}

double gm_panel_x(const GmPanel *p, double x) { return p->left + (x - p->lo[0]) / (p->hi[0] - p->lo[0]) * p->width; }
double gm_panel_y(const GmPanel *p, double y) { return p->top + p->height - (y - p->lo[1]) / (p->hi[1] - p->lo[1]) * p->height; }

void gm_svg_text(FILE *to, double x, double y, const char *class, const char *text)
{
    fprintf(to, "<text x=\"%.1f\" y=\"%.1f\" class=\"%s\">", x, y, class);
    gm_html_text(to, text);
    fputs("</text>\n", to);
}

// The largest of 1, 2 and 5 times a power of ten of which `wanted` fit into the range.
static double tick_of(double range, double wanted)
{
    const double each = range / wanted, power = pow(10, floor(log10(each)));
    return each <= power ? power : each <= 2 * power ? 2 * power : each <= 5 * power ? 5 * power : 10 * power;
}

// So many digits after the point that ticks differ; large and small numbers have an exponent.
static void number(char *to, size_t room, double x, double tick)
{
    const double size = fmax(fabs(x), tick);
    if (fabs(x) < tick / 1e6) x = 0;
    if (size >= 1e6 || tick < 1e-5) {
        snprintf(to, room, "%.4g", x);
        return;
    }
    const int digits = tick >= 1 ? 0 : (int)ceil(-log10(tick) - 1e-9);
    snprintf(to, room, "%.*f", digits, x);
}

static void ticks(FILE *to, const GmPanel *p, int axis)
{
    const double range = p->hi[axis] - p->lo[axis], room = axis == 0 ? p->width / 62 : p->height / 32;
    double tick = tick_of(range, room < 2 ? 2 : room);
    if (p->log[axis] && tick < 1) tick = 1;
    for (double k = ceil(p->lo[axis] / tick - 1e-9); k * tick <= p->hi[axis] + tick * 1e-9; k++) {
        const double at = k * tick, where = axis == 0 ? gm_panel_x(p, at) : gm_panel_y(p, at);
        char text[40];
        if (p->log[axis]) snprintf(text, sizeof text, at < -3 || at > 4 ? "1e%.0f" : "%g", at < -3 || at > 4 ? at : pow(10, at));
        else number(text, sizeof text, at, tick);
        if (axis == 0) {
            fprintf(to, "<path class=\"axis\" d=\"M%.1f %.1fv4\"/>\n", where, p->top + p->height);
            gm_svg_text(to, where, p->top + p->height + 14, "mid", text);
        } else {
            fprintf(to, "<path class=\"grid0\" d=\"M%.1f %.1fh%.1f\"/>\n", p->left, where, p->width);
            gm_svg_text(to, p->left - 5, where + 3.5, "end", text);
        }
    }
}

void gm_panel_axes(FILE *to, const GmPanel *p, const char *x_name, const char *y_name)
{
    if (y_name) ticks(to, p, 1);
    fprintf(to, "<path class=\"axis\" d=\"M%.1f %.1fh%.1f\"/>\n", p->left, p->top + p->height, p->width);
    if (x_name) ticks(to, p, 0);
    if (x_name && *x_name) gm_svg_text(to, p->left + p->width / 2, p->top + p->height + 28, "mid", x_name);
    if (y_name && *y_name) {
        fprintf(to, "<text transform=\"translate(11 %.1f) rotate(-90)\" class=\"mid\">", p->top + p->height / 2);
        gm_html_text(to, y_name);
        fputs("</text>\n", to);
    }
}
