// latex.c -- formulas as LaTeX within $ $, with amsmath and amssymb.
#include <string.h>
#include "formula.h"

void latex_text(FILE *out, const char *text)
{
    for (const char *c = text; *c; c++) switch (*c) {
        case '\\': fputs("\\textbackslash{}", out); break;
        case '~': fputs("\\textasciitilde{}", out); break;
        case '^': fputs("\\textasciicircum{}", out); break;
        case '<': fputs("\\textless{}", out); break;
        case '>': fputs("\\textgreater{}", out); break;
        case '|': fputs("\\textbar{}", out); break;
        case '"': fputs("\\textquotedbl{}", out); break;
        case '\'': fputs("\\textquotesingle{}", out); break;
        case '`': fputs("\\textasciigrave{}", out); break;
        case '-': fputs("{-}", out); break;
        case '_':
        case '&':
        case '%':
        case '$':
        case '#':
        case '{':
        case '}': fprintf(out, "\\%c", *c); break;
        default: fputc((unsigned char)*c < ' ' || (unsigned char)*c > 126 ? '?' : *c, out);
        }
}

static void upright(FILE *out, const char *text)
{
    fputs("\\mathrm{", out);
    for (const char *c = text; *c; c++) {
        if (*c == '_') fputc('\\', out);
        fputc(*c, out);
    }
    fputc('}', out);
}

static void letters(FILE *out, const char *text)
{
    if (text[1]) upright(out, text);
    else fputs(text, out);
}

static void name(FILE *out, const SplitName *s)
{
    if (s->greek) fputs(s->greek->latex, out);
    else letters(out, s->base);
    if (!s->below) return;
    fputs("_{", out);
    name(out, s->below);
    fputc('}', out);
}

static void kids(FILE *out, const Formula *const *kid, int n, const char *between)
{
    for (int i = 0; i < n; i++) {
        if (i) fputs(between, out);
        formula_latex(out, kid[i]);
        fputc(' ', out);
    }
}

static void cases(FILE *out, const Formula *f)
{
    fputs("\\begin{cases}", out);
    for (int i = 0; i < f->n; i += 2) {
        formula_latex(out, f->kid[i]);
        fputs(f->kid[i + 1] ? " & \\text{if }" : " & \\text{otherwise}", out);
        if (f->kid[i + 1]) formula_latex(out, f->kid[i + 1]);
        fputs("\\\\", out);
    }
    fputs("\\end{cases}", out);
}

// What a subscript or an exponent stands at: in braces, so that a second one is not refused, but for a symbol.
static void base(FILE *out, const Formula *f, bool in_braces)
{
    const bool braces = in_braces && f->kind != FORMULA_SYMBOL;
    if (braces) fputc('{', out);
    formula_latex(out, f);
    if (braces) fputc('}', out);
}

void formula_latex(FILE *out, const Formula *f)
{
    static const char *const signs[] = {
#define SIGN(id, plain, mathml, latex) latex,
#include "signs.def"
    };
    switch (f->kind) {
    case FORMULA_NUMBER: fputs(f->text, out); break;
    case FORMULA_SYMBOL: name(out, f->split); break;
    case FORMULA_INDEX: letters(out, f->text); break;
    case FORMULA_WORD: upright(out, f->text); break;
    case FORMULA_PROSE:
        fputs("\\text{", out);
        latex_text(out, f->text);
        fputc('}', out);
        break;
    case FORMULA_SIGN: fputs(signs[f->sign], out); break;
    case FORMULA_ROW: kids(out, f->kid, f->n, ""); break;
    case FORMULA_FRACTION:
        fputs("\\frac{", out);
        formula_latex(out, f->kid[0]);
        fputs("}{", out);
        formula_latex(out, f->kid[1]);
        fputc('}', out);
        break;
    case FORMULA_ROOT:
        fputs("\\sqrt{", out);
        formula_latex(out, f->kid[0]);
        fputc('}', out);
        break;
    case FORMULA_POWER:
        base(out, f->kid[0], f->kid[0]->kind != FORMULA_INDEXED);
        fputs("^{", out);
        formula_latex(out, f->kid[1]);
        fputc('}', out);
        break;
    case FORMULA_INDEXED: {
        const SplitName *s = f->kid[0]->kind == FORMULA_SYMBOL ? f->kid[0]->split : NULL;
        if (s) name(out, &(SplitName){.base = s->base, .greek = s->greek});
        else base(out, f->kid[0], true);
        fputs("_{", out);
        if (s && s->below) {
            name(out, s->below);
            fputc(',', out);
        }
        kids(out, f->kid + 1, f->n - 1, ",");
        fputc('}', out);
        break;
    }
    case FORMULA_FENCED:
        // of a fixed size: between \left and \right no line ends
        fputs(f->open == '{' ? "\\{" : f->open == '|' ? "\\lvert " : f->open == '(' ? "(" : "[", out);
        formula_latex(out, f->kid[0]);
        fputs(f->open == '{' ? "\\}" : f->open == '|' ? "\\rvert " : f->open == '(' ? ")" : "]", out);
        break;
    case FORMULA_BIG:
        fprintf(out, "%s_{", signs[f->sign]);
        formula_latex(out, f->kid[0]);
        fputc('}', out);
        if (f->kid[1]) {
            fputs("^{", out);
            formula_latex(out, f->kid[1]);
            fputc('}', out);
        }
        formula_latex(out, f->kid[2]);
        break;
    case FORMULA_CASES: cases(out, f); break;
    }
}
