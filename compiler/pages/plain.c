// plain.c -- formulas as a line of text, in the notation of the language where it has one: sum(j in 1:J, (theta[j] - mu)^2).
#include <string.h>
#include "formula.h"

static void list(FILE *out, const Formula *const *kid, int n)
{
    for (int i = 0; i < n; i++) {
        if (i) fputs(", ", out);
        formula_plain(out, kid[i]);
    }
}

static bool is_tight(const Formula *f)
{
    return f->kind == FORMULA_NUMBER || f->kind == FORMULA_SYMBOL || f->kind == FORMULA_INDEX || f->kind == FORMULA_INDEXED ||
           f->kind == FORMULA_FENCED || f->kind == FORMULA_POWER || f->kind == FORMULA_WORD || f->kind == FORMULA_ROOT;
}

static void tight(FILE *out, const Formula *f)
{
    if (!is_tight(f)) fputc('(', out);
    formula_plain(out, f);
    if (!is_tight(f)) fputc(')', out);
}

void formula_plain(FILE *out, const Formula *f)
{
    static const char *const signs[] = {
#define SIGN(id, plain, mathml, latex) plain,
#include "signs.def"
    };
    switch (f->kind) {
    case FORMULA_NUMBER:
    case FORMULA_SYMBOL:
    case FORMULA_INDEX:
    case FORMULA_WORD:
    case FORMULA_PROSE: fputs(f->text, out); break;
    case FORMULA_SIGN: fputs(signs[f->sign], out); break;
    case FORMULA_ROW:
        for (int i = 0; i < f->n; i++) {
            const bool words =
                i && f->kid[i - 1]->kind == FORMULA_WORD && f->kid[i]->kind != FORMULA_FENCED && f->kid[i]->kind != FORMULA_SIGN;
            if (words) fputc(' ', out);
            formula_plain(out, f->kid[i]);
        }
        break;
    case FORMULA_FRACTION:
        tight(out, f->kid[0]);
        fputc('/', out);
        tight(out, f->kid[1]);
        break;
    case FORMULA_ROOT:
        fputs("sqrt(", out);
        formula_plain(out, f->kid[0]);
        fputc(')', out);
        break;
    case FORMULA_POWER:
        tight(out, f->kid[0]);
        fputc('^', out);
        tight(out, f->kid[1]);
        break;
    case FORMULA_INDEXED:
        formula_plain(out, f->kid[0]);
        fputc('[', out);
        list(out, f->kid + 1, f->n - 1);
        fputc(']', out);
        break;
    case FORMULA_FENCED:
        fputc(f->open, out);
        formula_plain(out, f->kid[0]);
        fputc(f->open == '(' ? ')' : f->open == '[' ? ']' : f->open == '{' ? '}' : '|', out);
        break;
    case FORMULA_BIG:
        fprintf(out, "%s(", signs[f->sign]);
        if (f->kid[1]) {  // the range is a row: j = 1
            formula_plain(out, f->kid[0]->kid[0]);
            fputs(" in ", out);
            tight(out, f->kid[0]->kid[2]);
            fputc(':', out);
            tight(out, f->kid[1]);
        } else formula_plain(out, f->kid[0]);
        fputs(", ", out);
        formula_plain(out, f->kid[2]);
        fputc(')', out);
        break;
    case FORMULA_CASES:
        fputc('{', out);
        for (int i = 0; i < f->n; i += 2) {
            if (i) fputs("; ", out);
            formula_plain(out, f->kid[i]);
            if (f->kid[i + 1]) {
                fputs(" if ", out);
                formula_plain(out, f->kid[i + 1]);
            } else fputs(" otherwise", out);
        }
        fputc('}', out);
        break;
    }
}
