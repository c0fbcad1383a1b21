// document.c -- the derivation as a LaTeX document: the model, and for each unknown its terms, its conditional in steps, its method.
#include <string.h>
#include "pages.h"

// Words, in which `this` is code.
static void prose(FILE *out, const char *text)
{
    char piece[400];
    bool code = false;
    while (*text) {
        size_t n = strcspn(text, "`");
        if (n >= sizeof piece) n = sizeof piece - 1;
        memcpy(piece, text, n);
        piece[n] = 0;
        if (code) fputs("\\texttt{", out);
        latex_text(out, piece);
        if (code) fputc('}', out);
        text += n;
        if (*text == '`') {
            code = !code;
            text++;
        }
    }
}

// Inline, so that lines end at signs; in display style.
static void formula(FILE *out, const Formula *f)
{
    fputs("$\\displaystyle ", out);
    formula_latex(out, f);
    fputc('$', out);
}

static void rows(FILE *out, const DerivationStep *s)
{
    for (int i = 0; i < s->n; i++) {
        const Row *r = &s->row[i];
        fputs("\\row{", out);
        if (r->line) fprintf(out, "line %d", r->line);
        fputs("}{", out);
        if (r->words) {
            prose(out, r->words);
            fputs(r->formula ? " " : "", out);
        }
        if (r->formula) formula(out, r->formula);
        if (r->over) {
            fputs("\\quad for ", out);
            formula(out, r->over);
        }
        if (r->note) {
            fputs(" \\quad\\textit{", out);
            prose(out, r->note);
            fputc('}', out);
        }
        fputs("}\n", out);
    }
}

static void paragraph(FILE *out, const char *head, const char *text)
{
    if (!text) return;
    fprintf(out, "\\item[%s] ", head);
    prose(out, text);
    fputc('\n', out);
}

static void derivation(FILE *out, const Derivation *d)
{
    fprintf(out, "\\subsection*{Update %s: \\texttt{", d->id + strlen("update-"));
    latex_text(out, d->subject);
    fprintf(out, "}}\\label{%s}\n", d->id);
    for (int i = 0; i < d->nsteps; i++) {
        fprintf(out, "\\paragraph{%s.} ", d->step[i].title);
        prose(out, d->step[i].words);
        fputs("\n\n", out);
        rows(out, &d->step[i]);
    }
    fputs("\\begin{description}\n", out);
    paragraph(out, "Method", d->method);
    paragraph(out, "Why", d->because);
    paragraph(out, "Draw", d->elements);
    for (int i = 0; i < d->nchanges; i++) paragraph(out, i ? "" : "What would change it", d->change[i]);
    paragraph(out, "Cost", d->cost);
    fputs("\\end{description}\n", out);
}

static void model(FILE *out, const Source *s)
{
    fputs("\\section*{The model}\n{\\small\\raggedright\n", out);
    for (int k = 0; s && k < s->nlines; k++) {
        const int to = k + 1 < s->nlines ? s->line[k + 1] - 1 : (int)s->size;
        fprintf(out, "\\noindent\\makebox[2em][r]{\\scriptsize %d}\\quad\\texttt{", k + 1);
        for (int i = s->line[k]; i < to; i++) {
            const char c[2] = {s->text[i], 0};
            if (c[0] == ' ' || c[0] == '\t') fputs("~", out);
            else latex_text(out, c);
        }
        fputs("}\\par\n", out);
    }
    fputs("}\n", out);
}

void page_latex(FILE *out, const Pages *p)
{
    fputs("\\documentclass[11pt]{article}\n\\usepackage[T1]{fontenc}\n\\usepackage{amsmath}\n\\usepackage[margin=2.3cm]{geometry}\n"
          "\\setlength{\\parindent}{0pt}\n\\sloppy\\allowdisplaybreaks\n"
          "% a line of a step: where it comes from, and a formula whose lines end at its signs\n"
          "\\newcommand{\\row}[2]{\\par\\vspace{4pt}{\\leftskip=4.2em\\rightskip=0pt plus 1fil\\noindent\\hspace*{-4.2em}"
          "\\makebox[3.4em][r]{\\scriptsize #1}\\hspace{0.8em}#2\\par}}\n"
          "\\begin{document}\n\\section*{How \\texttt{",
          out);
    latex_text(out, p->title);
    fputs("} is drawn from}\n", out);
    fputs("Each unknown has the terms of the log joint that it is in, and its updates, numbered in the order of a sweep. "
          "In a law, \\emph{rest} is all else: data and the other unknowns. " OF_COSTS "\n",
          out);
    model(out, p->source);
    for (int i = 0; i < p->nunknowns; i++) {
        const Unknown *u = &p->unknown[i];
        fputs("\\section*{\\texttt{", out);
        latex_text(out, u->v->name);
        fputs("}}\n", out);
        if (u->terms.n) fputs("\\paragraph{Terms of the log joint.} It appears in:\n\n", out);
        rows(out, &u->terms);
        for (int k = 0; k < u->n; k++) {
            bool before = false;
            for (int j = 0; j < i && !before; j++)
                for (int m = 0; m < p->unknown[j].n; m++) before |= p->unknown[j].by[m] == u->by[k];
            if (!before) derivation(out, u->by[k]);
            else {
                fprintf(out, "\n\\medskip Update %s, of \\texttt{", u->by[k]->id + strlen("update-"));
                latex_text(out, u->by[k]->subject);
                fprintf(out, "}, draws it, too: page~\\pageref{%s}.\n", u->by[k]->id);
            }
        }
    }
    if (p->computed.n) fputs("\\section*{Computed of each draw}\n", out);
    rows(out, &p->computed);
    fputs("\\end{document}\n", out);
}
