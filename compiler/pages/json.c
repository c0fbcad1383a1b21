// json.c -- the derivation as data. docs/pages.md has the schema.
#include <stdlib.h>
#include <string.h>
#include "json_text.h"
#include "pages.h"

static void line_member(FILE *out, int line)
{
    if (line) fprintf(out, "\"line\": %d", line);
    else fputs("\"line\": null", out);
}

// ---- formulas, rows, steps ----

static void printed(FILE *out, const char *name, void (*print)(FILE *, const Formula *), const Formula *f)
{
    char *text;
    size_t size;
    FILE *to = open_memstream(&text, &size);
    if (!to) abort();
    print(to, f);
    fclose(to);
    fprintf(out, "\"%s\": ", name);
    json_bytes(out, text, size);
    free(text);
}

static void formula(FILE *out, const char *name, const Formula *f)
{
    fprintf(out, "\"%s\": ", name);
    if (!f) {
        fputs("null", out);
        return;
    }
    fputs("{", out);
    printed(out, "text", formula_plain, f);
    fputs(", ", out);
    printed(out, "latex", formula_latex, f);
    fputs("}", out);
}

static void rows(FILE *out, const DerivationStep *s, const char *indent)
{
    fputs("[", out);
    for (int i = 0; i < s->n; i++) {
        const Row *r = &s->row[i];
        fprintf(out, "%s\n%s  {", i ? "," : "", indent);
        json_member(out, "words", r->words);
        fputs(", ", out);
        formula(out, "formula", r->formula);
        fputs(", ", out);
        formula(out, "over", r->over);
        fputs(", ", out);
        line_member(out, r->line);
        fputs(", ", out);
        json_member(out, "note", r->note);
        fputs("}", out);
    }
    fprintf(out, s->n ? "\n%s]" : "]", indent);
}

static void unknown(FILE *out, const Unknown *u)
{
    fputs("    {", out);
    json_member(out, "name", u->v->name);
    fputs(", ", out);
    line_member(out, u->line);
    fputs(",\n     \"terms\": ", out);
    rows(out, &u->terms, "     ");
    fputs(",\n     \"updates\": [", out);
    for (int i = 0; i < u->n; i++) {
        if (i) fputs(", ", out);
        json_string(out, u->by[i]->id);
    }
    fputs("]}", out);
}

static void update(FILE *out, const Pages *p, const Derivation *d)
{
    fputs("    {", out);
    json_member(out, "id", d->id);
    fputs(", ", out);
    json_member(out, "subject", d->subject);
    fputs(", \"draws\": [", out);
    for (int i = 0; i < d->update->nblock; i++) {
        if (i) fputs(", ", out);
        json_string(out, d->update->block[i]->name);
    }
    fputs("], ", out);
    line_member(out, d->line);
    fputs(",\n     ", out);
    formula(out, "law", d->law);
    static const char *const names[] = {"brief", "method", "because", "elements", "cost"};
    const char *const texts[] = {d->brief, d->method, d->because, d->elements, d->cost};
    for (int i = 0; i < 5; i++) {
        fputs(",\n     ", out);
        json_member(out, names[i], texts[i]);
    }
    fputs(",\n     \"changes\": [", out);
    for (int i = 0; i < d->nchanges; i++) {
        if (i) fputs(", ", out);
        json_string(out, d->change[i]);
    }
    fputs("],\n     \"steps\": [", out);
    for (int i = 0; i < d->nsteps; i++) {
        fputs(i ? ",\n      {" : "\n      {", out);
        json_member(out, "title", d->step[i].title);
        fputs(", ", out);
        json_member(out, "words", d->step[i].words);
        fputs(", \"rows\": ", out);
        rows(out, &d->step[i], "       ");
        fputs("}", out);
    }
    fputs("],\n     \"kernels\": [", out);
    for (int i = 0; i < d->ncode; i++) {
        char *text = code_text(p->program, &d->code[i]);
        fputs(i ? ",\n      {" : "\n      {", out);
        json_member(out, "name", d->code[i].name);
        fputs(", ", out);
        json_member(out, "text", text ? text : "");
        fputs("}", out);
        free(text);
    }
    fputs("]}", out);
}

static void model(FILE *out, const Pages *p)
{
    fputs("  \"model\": {", out);
    json_member(out, "name", p->g->model->name);
    fputs(", ", out);
    json_member(out, "file", p->file);
    fputs(", \"lines\": [", out);
    for (int k = 0; p->source && k < p->source->nlines; k++) {
        const int from = p->source->line[k];
        int to = k + 1 < p->source->nlines ? p->source->line[k + 1] - 1 : (int)p->source->size;
        if (from == to && k + 1 == p->source->nlines) break;  // behind the last end of a line
        if (to > from && p->source->text[to - 1] == '\r') to--;
        fputs(k ? ",\n    " : "\n    ", out);
        json_bytes(out, p->source->text + from, (size_t)(to - from));
    }
    fputs("]},\n", out);
}

static void diagram(FILE *out, const Pages *p)
{
    static const char *const kinds[] = {"unknown", "observed", "data", "computed", "term"};
    const Diagram *d = diagram_new(p->g);
    fprintf(out, "  \"diagram\": {\"laid_out\": %s, \"width\": %.1f, \"height\": %.1f,\n   \"nodes\": [", d->laid_out ? "true" : "false",
            d->width, d->height);
    for (int k = 0; k < d->nnodes; k++) {
        const DiagramNode *v = &d->node[k];
        fputs(k ? ",\n    {" : "\n    {", out);
        json_member(out, "name", v->name);
        fputs(", ", out);
        json_member(out, "index", v->index);
        fprintf(out, ", \"kind\": \"%s\", \"plate\": %d, \"to_itself\": %s, \"x\": %.1f, \"y\": %.1f, \"width\": %.1f, \"height\": %.1f}",
                kinds[v->kind], v->plate, v->to_itself ? "true" : "false", v->x, v->y, v->width, v->height);
    }
    fputs("],\n   \"plates\": [", out);
    for (int k = 1; k < d->nplates; k++) {
        const DiagramPlate *q = &d->plate[k];
        fprintf(out, "%s\n    {\"id\": %d, ", k > 1 ? "," : "", k);
        json_member(out, "label", q->label);
        fprintf(out, ", \"parent\": %d, \"x\": %.1f, \"y\": %.1f, \"width\": %.1f, \"height\": %.1f}", q->parent, q->x, q->y, q->width,
                q->height);
    }
    fputs("],\n   \"edges\": [", out);
    for (int k = 0; k < d->nedges; k++) fprintf(out, "%s{\"from\": %d, \"to\": %d}", k ? ", " : "", d->edge[k].from, d->edge[k].to);
    fputs("]},\n", out);
}

void page_json(FILE *out, const Pages *p)
{
    fputs("{\n  \"format\": \"gmc-explain-1\",\n", out);
    model(out, p);
    diagram(out, p);
    fputs("  \"unknowns\": [\n", out);
    for (int i = 0; i < p->nunknowns; i++) {
        if (i) fputs(",\n", out);
        unknown(out, &p->unknown[i]);
    }
    fputs("],\n  \"updates\": [\n", out);
    for (int i = 0; i < p->nderivations; i++) {
        if (i) fputs(",\n", out);
        update(out, p, &p->derivation[i]);
    }
    fputs("]\n}\n", out);
}
