// mathml.c -- formulas as MathML Core: elements that browsers draw without a script or a style sheet.
//
// A variable of the model is <mi data-s="sigma_alpha">, and the page marks all of one name together (html.c).
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>
#include "formula.h"

void html_text(FILE *out, const char *text)
{
    for (const char *c = text; *c; c++) switch (*c) {
        case '&': fputs("&amp;", out); break;
        case '<': fputs("&lt;", out); break;
        case '>': fputs("&gt;", out); break;
        case '"': fputs("&quot;", out); break;
        default: fputc((unsigned char)*c < ' ' && *c != '\n' && *c != '\t' ? '?' : *c, out);
        }
}

static void element(FILE *out, const char *name, const char *text)
{
    fprintf(out, "<%s>", name);
    html_text(out, text);
    fprintf(out, "</%s>", name);
}

static void name(FILE *out, const SplitName *s)
{
    if (s->below) fputs("<msub>", out);
    if (s->greek) fprintf(out, "<mi>%s</mi>", s->greek->mathml);
    else element(out, "mi", s->base);
    if (!s->below) return;
    name(out, s->below);
    fputs("</msub>", out);
}

static void open_mark(FILE *out, const Formula *f)
{
    if (!f->marked) return;
    fputs("<mrow class=\"s\" data-s=\"", out);
    html_text(out, f->text);
    fputs("\">", out);
}

static void symbol(FILE *out, const Formula *f)
{
    open_mark(out, f);
    name(out, f->split);
    if (f->marked) fputs("</mrow>", out);
}

static void kids(FILE *out, const char *name, const Formula *f)
{
    fprintf(out, "<%s>", name);
    for (int i = 0; i < f->n; i++) formula_mathml(out, f->kid[i]);
    fprintf(out, "</%s>", name);
}

// A base with what stands below it, the rest of its name and subscripts, and above it.
static void scripts(FILE *out, const Formula *f)
{
    const Formula *above = f->kind == FORMULA_POWER ? f->kid[1] : NULL, *inner = above ? f->kid[0] : f;
    const Formula *base = inner->kind == FORMULA_INDEXED ? inner->kid[0] : inner;
    const int n = inner->kind == FORMULA_INDEXED ? inner->n - 1 : 0;
    const SplitName *split = base->kind == FORMULA_SYMBOL ? base->split : NULL, *below = split ? split->below : NULL;
    const bool under = n || below;
    if (base->kind == FORMULA_SYMBOL) open_mark(out, base);
    const char *element = under && above ? "msubsup" : under ? "msub" : "msup";
    fprintf(out, "<%s>", element);
    if (split) name(out, &(SplitName){.base = split->base, .greek = split->greek});
    else formula_mathml(out, base);
    if (under) {
        fputs("<mrow>", out);
        if (below) name(out, below);
        for (int i = 0; i < n; i++) {
            if (i || below) fputs("<mo separator=\"true\">,</mo>", out);
            formula_mathml(out, inner->kid[i + 1]);
        }
        fputs("</mrow>", out);
    }
    if (above) formula_mathml(out, above);
    fprintf(out, "</%s>", element);
    if (base->kind == FORMULA_SYMBOL && base->marked) fputs("</mrow>", out);
}

// A sign of its own, as high as the others of a formula.
static void number(FILE *out, const char *text)
{
    if (*text == '-') fputs("<mrow><mo form=\"prefix\" lspace=\"0\" rspace=\"0\">&#8722;</mo>", out);
    element(out, "mn", text + (*text == '-'));
    if (*text == '-') fputs("</mrow>", out);
}

// Browsers leave out a space at either end, unless lines may not end there.
static void words(FILE *out, const char *text)
{
    const size_t n = strlen(text), last = n > 1 && text[n - 1] == ' ';
    fputs(*text == ' ' ? "<mtext>&#160;" : "<mtext>", out);
    char *middle = strndup(text + (*text == ' '), n - (*text == ' ') - last);
    html_text(out, middle ? middle : text);
    free(middle);
    fputs(last ? "&#160;</mtext>" : "</mtext>", out);
}

// The brace is scaled, as high as its rows: many fonts have none that a browser can stretch.
static void cases(FILE *out, const Formula *f)
{
    const double rows = (f->n + 1) / 2;
    fprintf(out, "<mrow><mo stretchy=\"false\" style=\"transform:scaleY(%.3g)\">{</mo><mtable columnalign=\"left\">", 1.3 * rows);
    for (int i = 0; i < f->n; i += 2) {
        fputs("<mtr><mtd>", out);
        formula_mathml(out, f->kid[i]);
        fputs("</mtd><mtd>", out);
        if (f->kid[i + 1]) {
            fputs("<mtext>if&#160;</mtext>", out);
            formula_mathml(out, f->kid[i + 1]);
        } else fputs("<mtext>otherwise</mtext>", out);
        fputs("</mtd></mtr>", out);
    }
    fputs("</mtable></mrow>", out);
}

// Whether it is higher than a line, so that what stands around it should grow.
static bool is_tall(const Formula *f)
{
    if (f->kind == FORMULA_FRACTION || f->kind == FORMULA_BIG || f->kind == FORMULA_CASES || f->kind == FORMULA_ROOT) return true;
    if (f->kind == FORMULA_POWER || f->kind == FORMULA_INDEXED) return is_tall(f->kid[0]);
    for (int i = 0; i < f->n; i++)
        if (is_tall(f->kid[i])) return true;
    return false;
}

static const char *closing(char open) { return open == '(' ? ")" : open == '[' ? "]" : open == '{' ? "}" : "|"; }

static const char *const signs[] = {
#define SIGN(id, plain, mathml, latex) mathml,
#include "signs.def"
};

void mathml_big(FILE *out, const Formula *f)
{
    fputs(f->kid[1] ? "<munderover>" : "<munder>", out);
    fputs(signs[f->sign], out);
    formula_mathml(out, f->kid[0]);
    if (f->kid[1]) formula_mathml(out, f->kid[1]);
    fputs(f->kid[1] ? "</munderover>" : "</munder>", out);
}

void formula_mathml(FILE *out, const Formula *f)
{
    switch (f->kind) {
    case FORMULA_NUMBER: number(out, f->text); break;
    case FORMULA_SYMBOL: symbol(out, f); break;
    case FORMULA_INDEX: element(out, "mi", f->text); break;
    case FORMULA_WORD: fputs("<mi mathvariant=\"normal\">", out), html_text(out, f->text), fputs("</mi>", out); break;
    case FORMULA_PROSE: words(out, f->text); break;
    case FORMULA_SIGN: fputs(signs[f->sign], out); break;
    case FORMULA_ROW: kids(out, "mrow", f); break;
    case FORMULA_FRACTION: kids(out, "mfrac", f); break;
    case FORMULA_ROOT: kids(out, "msqrt", f); break;
    case FORMULA_POWER:
    case FORMULA_INDEXED: scripts(out, f); break;
    case FORMULA_FENCED:
        fprintf(out, "<mrow><mo form=\"prefix\"%s>%c</mo>", is_tall(f->kid[0]) ? "" : " stretchy=\"false\"", f->open);
        formula_mathml(out, f->kid[0]);
        fprintf(out, "<mo form=\"postfix\"%s>%s</mo></mrow>", is_tall(f->kid[0]) ? "" : " stretchy=\"false\"", closing(f->open));
        break;
    case FORMULA_BIG:
        fputs("<mrow>", out);
        mathml_big(out, f);
        formula_mathml(out, f->kid[2]);
        fputs("</mrow>", out);
        break;
    case FORMULA_CASES: cases(out, f); break;
    }
}
