// svg.c -- a diagram as SVG, within a page or as a file: circles for unknowns, filled ones for what is observed, double ones for
// definitions, plain names for data.
#include <string.h>
#include "diagram.h"

typedef struct Point {
    double x, y;
} Point;

// Where the line from a node's centre towards a point leaves the node, and a little beyond.
static Point border(const DiagramNode *v, Point to, double beyond)
{
    const double dx = to.x - v->x, dy = to.y - v->y, ax = dx < 0 ? -dx : dx, ay = dy < 0 ? -dy : dy;
    const double w = v->width / 2 + beyond, h = v->height / 2 + beyond;
    if (ax + ay < 1e-9) return (Point){v->x, v->y + h};
    if (ay * w >= ax * h) return (Point){v->x + dx * h / ay, v->y + (dy < 0 ? -h : h)};
    return (Point){v->x + (dx < 0 ? -w : w), v->y + dy * w / ax};
}

static void edge(FILE *out, const Diagram *d, const DiagramEdge *e)
{
    const DiagramNode *a = &d->node[e->from], *b = &d->node[e->to];
    const bool down = b->y - b->height / 2 > a->y + a->height / 2 + 8;
    Point p[MOST_BENDS + 2];
    int n = 0;
    p[n++] = (Point){a->x, a->y + a->height / 2};
    for (int i = 0; i < e->n; i++) p[n++] = (Point){e->x[i], e->y[i]};
    p[n++] = (Point){b->x, b->y - b->height / 2 - 3};
    if (!down) {
        n = 2;
        p[0] = border(a, (Point){b->x, b->y}, 0);
        p[1] = border(b, (Point){a->x, a->y}, 3);
    }
    fprintf(out, "<path class=\"edge\" marker-end=\"url(#arrow)\" d=\"M%.1f %.1f", p[0].x, p[0].y);
    for (int i = 1; i < n; i++) {
        const double half = (p[i].y - p[i - 1].y) / 2;
        if (down) fprintf(out, "C%.1f %.1f %.1f %.1f %.1f %.1f", p[i - 1].x, p[i - 1].y + half, p[i].x, p[i].y - half, p[i].x, p[i].y);
        else fprintf(out, "L%.1f %.1f", p[i].x, p[i].y);
    }
    fputs("\"/>\n", out);
}

static void letters(FILE *out, const SplitName *s)
{
    if (s->greek) fputs(s->greek->mathml, out);
    else html_text(out, s->base);
}

static void label(FILE *out, const Diagram *d, const DiagramNode *v)
{
    const SplitName s = split_name(d->arena, v->name);
    fprintf(out, "<text x=\"%.1f\" y=\"%.1f\">", v->x, v->y + 5);
    letters(out, &s);
    if (s.below || *v->index) {
        fputs("<tspan class=\"below\" dy=\"4\">", out);
        for (const SplitName *b = s.below; b; b = b->below) {
            letters(out, b);
            if (b->below || *v->index) fputs(", ", out);
        }
        html_text(out, v->index);
        fputs("</tspan>", out);
    }
    fputs("</text>", out);
}

static void node(FILE *out, const Diagram *d, const DiagramNode *v, bool linked)
{
    static const char *const class_of[] = {"unknown", "observed", "data", "computed", "term"};
    const bool link = linked && v->kind == NODE_IS_UNKNOWN;
    if (link) {
        fputs("<a href=\"#unknown-", out);
        html_text(out, v->name);
        fputs("\">", out);
    }
    fprintf(out, "<g class=\"node s %s\" data-s=\"", class_of[v->kind]);
    html_text(out, v->name);
    fputs("\">", out);
    if (v->kind == NODE_IS_UNKNOWN || v->kind == NODE_IS_OBSERVED || v->kind == NODE_IS_COMPUTED)
        fprintf(out, "<ellipse cx=\"%.1f\" cy=\"%.1f\" rx=\"%.1f\" ry=\"%.1f\"/>", v->x, v->y, v->width / 2, v->height / 2);
    else
        fprintf(out, "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" rx=\"4\"/>", v->x - v->width / 2, v->y - v->height / 2,
                v->width, v->height);
    if (v->kind == NODE_IS_COMPUTED)
        fprintf(out, "<ellipse class=\"inner\" cx=\"%.1f\" cy=\"%.1f\" rx=\"%.1f\" ry=\"%.1f\"/>", v->x, v->y, v->width / 2 - 4,
                v->height / 2 - 4);
    label(out, d, v);
    if (v->to_itself) {
        const double x = v->x + v->width / 2, y = v->y;
        fprintf(out, "<path class=\"edge\" marker-end=\"url(#arrow)\" d=\"M%.1f %.1fC%.1f %.1f %.1f %.1f %.1f %.1f\"/>", x - 3, y - 8,
                x + 30, y - 26, x + 30, y + 26, x, y + 9);
    }
    fputs(link ? "</g></a>\n" : "</g>\n", out);
}

// What the first line has besides, and a style: of a page they are the page's.
static void drawing(FILE *out, const Diagram *d, const char *title, const char *more, const char *style)
{
    fprintf(out,
            "<svg%s id=\"diagram\" viewBox=\"0 0 %.0f %.0f\" width=\"%.0f\" height=\"%.0f\" role=\"img\" aria-labelledby=\"diagram-title "
            "diagram-desc\">\n",
            more, d->width, d->height, d->width, d->height);
    fputs("<title id=\"diagram-title\">Plate diagram of ", out);
    html_text(out, title);
    fputs("</title>\n<desc id=\"diagram-desc\">", out);
    if (!d->nedges) fprintf(out, d->nnodes == 1 ? "One variable." : "%d variables, none of which depends on another.", d->nnodes);
    for (int k = 0; k < d->nedges; k++) {
        html_text(out, d->node[d->edge[k].to].name);
        fputs(" depends on ", out);
        html_text(out, d->node[d->edge[k].from].name);
        fputs(k + 1 < d->nedges ? "; " : ".", out);
    }
    fprintf(out, "</desc>\n%s", style);
    fputs("<defs><marker id=\"arrow\" viewBox=\"0 0 10 10\" refX=\"9\" refY=\"5\" markerWidth=\"7\" markerHeight=\"7\" "
          "orient=\"auto\"><path class=\"tip\" d=\"M0 0L10 5L0 10z\"/></marker></defs>\n",
          out);
    for (int k = 1; k < d->nplates; k++) {
        const DiagramPlate *p = &d->plate[k];
        fprintf(out, "<rect class=\"plate\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" rx=\"8\"/>\n", p->x, p->y, p->width,
                p->height);
    }
    for (int k = 0; k < d->nedges; k++) edge(out, d, &d->edge[k]);
    for (int k = 1; k < d->nplates; k++) {
        const DiagramPlate *p = &d->plate[k];
        fprintf(out, "<text class=\"plate-label\" x=\"%.1f\" y=\"%.1f\">", p->x + p->label_end, p->y + p->height - 8);
        html_text(out, p->label);
        fputs("</text>\n", out);
    }
    for (int k = 0; k < d->nnodes; k++) node(out, d, &d->node[k], !*style);
    fputs("</svg>\n", out);
}

void diagram_svg(FILE *out, const Diagram *d, const char *title) { drawing(out, d, title, "", ""); }

// Colours are those of a page in the light; programs that draw SVG know no variables.
bool diagram_svg_file(FILE *out, const Graph *g, const char *title)
{
    static const char style[] =
        "<style>.edge{fill:none;stroke:#5c6670;stroke-width:1.3}.tip{fill:#5c6670}.plate{fill:none;stroke:#5c6670}"
        ".plate-label{text-anchor:end;font-size:12px;fill:#5c6670}"
        ".node text{text-anchor:middle;font-size:16px;fill:#1d2126;font-style:italic}"
        ".node .below{font-size:11px}.node ellipse,.node rect{fill:#fff;stroke:#1d2126;stroke-width:1.3}.observed ellipse{fill:#dfe4e9}"
        ".data rect{stroke:none;fill:none}.term rect{fill:#1d2126}.term text{fill:#fff}</style>\n";
    const Diagram *d = diagram_new((Graph *)g);
    if (!d->laid_out) return false;
    fputs("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n", out);
    drawing(out, d, title, " xmlns=\"http://www.w3.org/2000/svg\" font-family=\"serif\"", style);
    return true;
}
