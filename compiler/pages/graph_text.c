// graph_text.c -- the diagram as text for programs that lay graphs out: Graphviz (--emit=dot) and Mermaid (--emit=mermaid).
#include "diagram.h"

static void indent(FILE *out, int depth) { fprintf(out, "%*s", 2 * depth + 2, ""); }

static void quoted(FILE *out, const char *text)
{
    for (const char *c = text; *c; c++) {
        if (*c == '"' || *c == '\\') fputc('\\', out);
        fputc(*c, out);
    }
}

static void dot_node(FILE *out, const DiagramNode *v, int number)
{
    static const char *const shape[] = {"ellipse", "ellipse, style=filled, fillcolor=lightgrey", "plaintext", "ellipse, peripheries=2",
                                        "box, style=filled"};
    fprintf(out, "n%d [label=\"", number);
    quoted(out, v->name);
    if (*v->index) {
        fputc('[', out);
        quoted(out, v->index);
        fputc(']', out);
    }
    fprintf(out, "\", shape=%s];\n", shape[v->kind]);
}

static void dot_plate(FILE *out, const Diagram *d, int plate, int depth)
{
    for (int k = 0; k < d->nnodes; k++) {
        if (d->node[k].plate != plate) continue;
        indent(out, depth);
        dot_node(out, &d->node[k], k);
    }
    for (int k = 1; k < d->nplates; k++) {
        if (d->plate[k].parent != plate) continue;
        indent(out, depth);
        fprintf(out, "subgraph cluster_%d {\n", k);
        indent(out, depth + 1);
        fputs("label=\"", out);
        quoted(out, d->plate[k].label);
        fputs("\"; labeljust=r; labelloc=b;\n", out);
        dot_plate(out, d, k, depth + 1);
        indent(out, depth);
        fputs("}\n", out);
    }
}

static void edges(FILE *out, const Diagram *d, const char *arrow, const char *end)
{
    for (int k = 0; k < d->nedges; k++) fprintf(out, "  n%d %s n%d%s\n", d->edge[k].from, arrow, d->edge[k].to, end);
    for (int k = 0; k < d->nnodes; k++)
        if (d->node[k].to_itself) fprintf(out, "  n%d %s n%d%s\n", k, arrow, k, end);
}

void diagram_dot(FILE *out, const Graph *g)
{
    const Diagram *d = diagram_new((Graph *)g);
    fputs("digraph model {\n", out);
    dot_plate(out, d, 0, 0);
    edges(out, d, "->", ";");
    fputs("}\n", out);
}

// Of Mermaid, which has entities in place of escapes.
static void mermaid_text(FILE *out, const char *text)
{
    for (const char *c = text; *c; c++) {
        if (*c == '"') fputs("#quot;", out);
        else if (*c == '#') fputs("#35;", out);
        else fputc(*c, out);
    }
}

static void mermaid_plate(FILE *out, const Diagram *d, int plate, int depth)
{
    static const char *const open[] = {"([\"", "([\"", "[\"", "([\"", "[\""}, *const close[] = {"\"])", "\"]):::observed", "\"]:::data",
                                                                                                "\"]):::defined", "\"]"};
    for (int k = 0; k < d->nnodes; k++) {
        const DiagramNode *v = &d->node[k];
        if (v->plate != plate) continue;
        indent(out, depth);
        fprintf(out, "n%d%s", k, open[v->kind]);
        mermaid_text(out, v->name);
        if (*v->index) {
            fputc('[', out);
            mermaid_text(out, v->index);
            fputc(']', out);
        }
        fprintf(out, "%s\n", close[v->kind]);
    }
    for (int k = 1; k < d->nplates; k++) {
        if (d->plate[k].parent != plate) continue;
        indent(out, depth);
        fprintf(out, "subgraph p%d[\"", k);
        mermaid_text(out, d->plate[k].label);
        fputs("\"]\n", out);
        mermaid_plate(out, d, k, depth + 1);
        indent(out, depth);
        fputs("end\n", out);
    }
}

void diagram_mermaid(FILE *out, const Graph *g)
{
    const Diagram *d = diagram_new((Graph *)g);
    fputs("flowchart TD\n", out);
    mermaid_plate(out, d, 0, 0);
    edges(out, d, "-->", "");
    fputs("  classDef observed fill:#d0d0d0\n  classDef data fill:none,stroke:none\n  classDef defined stroke-dasharray:4 3\n", out);
}
