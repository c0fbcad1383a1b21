// diag.c -- messages, gathered and printed in source order:
//
//   radon.gm:14:40: error[E0203]: `taw` is not defined
//      14 |   for (j in 1:J) theta[j] ~ normal(mu, taw);
//         |                                        ^^^
//      = help: `tau` is defined on line 12
#include "diag.h"
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

typedef struct Note {
    const char *label, *text;
    struct Note *next;
} Note;

struct Diag {
    Arena *arena;
    Span span;
    DiagCode code;
    char *text;
    Note *notes, **last_note;
    int order;  // of arrival; settles ties
    Diag *next;
};

struct Diags {
    Arena *arena;
    Diag *first, **last;
    Diag spare;  // takes the notes of messages not kept
    int count, errors, dropped;
};

static const char *const names[] = {
#define DIAG(code, text) #code,
#include "diag.def"
#undef DIAG
};
static const char *const texts[] = {
#define DIAG(code, text) text,
#include "diag.def"
#undef DIAG
};

enum { MOST = 200, WIDTH = 160 };  // messages kept; columns of a source line shown

Diags *diags_new(Arena *a)
{
    Diags *d = NEW(a, Diags);
    d->arena = a;
    d->last = &d->first;
    return d;
}

// The same mistake can be met twice on different paths through the compiler: the second report is dropped.
static bool known(const Diags *d, Span at, DiagCode code)
{
    for (const Diag *m = d->first; m; m = m->next)
        if (m->code == code && m->span.source == at.source && m->span.from == at.from && m->span.to == at.to) return true;
    return false;
}

Diag *diag(Diags *d, Span at, DiagCode code, ...)
{
    if (known(d, at, code)) return &d->spare;
    bool error = names[code][0] == 'E';
    d->errors += error;
    if (d->count >= MOST) {
        d->dropped += error;
        return &d->spare;
    }
    va_list args;
    va_start(args, code);
    int n = vsnprintf(NULL, 0, texts[code], args);
    va_end(args);
    Diag *m = NEW(d->arena, Diag);
    *m = (Diag){.arena = d->arena, .span = at, .code = code, .text = arena_alloc(d->arena, (size_t)n + 1), .order = d->count++};
    va_start(args, code);
    vsnprintf(m->text, (size_t)n + 1, texts[code], args);
    va_end(args);
    m->last_note = &m->notes;
    *d->last = m;
    d->last = &m->next;
    return m;
}

static void add_note(Diag *m, const char *label, const char *format, va_list args)
{
    if (!m || !m->arena) return;
    va_list again;
    va_copy(again, args);
    int n = vsnprintf(NULL, 0, format, again);
    va_end(again);
    char *text = arena_alloc(m->arena, (size_t)n + 1);
    vsnprintf(text, (size_t)n + 1, format, args);
    Note *note = NEW(m->arena, Note);
    *note = (Note){label, text, NULL};
    *m->last_note = note;
    m->last_note = &note->next;
}

void diag_help(Diag *m, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    add_note(m, "help", format, args);
    va_end(args);
}

void diag_because(Diag *m, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    add_note(m, "because", format, args);
    va_end(args);
}

int diags_errors(const Diags *d) { return d->errors; }

static int by_place(const void *x, const void *y)
{
    const Diag *a = *(Diag *const *)x, *b = *(Diag *const *)y;
    const char *pa = a->span.source ? a->span.source->path : "", *pb = b->span.source ? b->span.source->path : "";
    int c = a->span.source == b->span.source ? 0 : strcmp(pa, pb);
    if (c) return c;
    if (a->span.from != b->span.from) return a->span.from < b->span.from ? -1 : 1;
    return a->order - b->order;
}

// The line a span starts on, tabs as one blank each, with a caret under every byte of the span on that line.
static void show_line(Span s, FILE *out)
{
    const char *text = s.source->text;
    int size = (int)s.source->size, column = span_column(s), from = s.from - column + 1, to = s.from;
    if (s.from > size) return;
    while (to < size && text[to] != '\n' && text[to] != '\r') to++;
    if (to - from > WIDTH) {
        if (s.from - from > WIDTH / 2) from = s.from - WIDTH / 2;
        if (to - from > WIDTH) to = from + WIDTH;
    }
    fprintf(out, "%5d | ", span_line(s));
    for (int i = from; i < to; i++) fputc((unsigned char)text[i] < ' ' ? ' ' : text[i], out);
    fprintf(out, "\n      | ");
    for (int i = from; i < s.from; i++)
        if (((unsigned char)text[i] & 0xC0) != 0x80) fputc(' ', out);  // one column per UTF-8 character
    int last = s.to < to ? s.to : to;
    fputc('^', out);
    for (int i = s.from + 1; i < last; i++)
        if (((unsigned char)text[i] & 0xC0) != 0x80) fputc('^', out);
    fputc('\n', out);
}

// Of what a definition of a function has, where it was called: "= called: radon.gm:9:14: f(x, v)".
static void show_calls(const Span *call, FILE *out)
{
    enum { LONG = 60, MOST_CALLS = 8 };
    for (int n = 0; call && n < MOST_CALLS; call = call->call, n++) {
        const char *text = call->source->text + call->from;
        int length = (int)strcspn(text, "\n");
        if (length > call->to - call->from) length = call->to - call->from;
        fprintf(out, "      = called: %s:%d:%d: %.*s%s\n", call->source->path, span_line(*call), span_column(*call),
                length > LONG ? LONG : length, text, length > LONG ? "..." : "");
    }
}

static const char *severity(DiagCode code) { return names[code][0] == 'E' ? "error" : names[code][0] == 'W' ? "warning" : "note"; }

void diags_print(const Diags *d, FILE *out)
{
    const Diag **sorted = calloc((size_t)d->count + 1, sizeof *sorted);
    if (!sorted) return;
    int n = 0;
    for (const Diag *m = d->first; m; m = m->next) sorted[n++] = m;
    qsort(sorted, (size_t)n, sizeof *sorted, by_place);
    for (int i = 0; i < n; i++) {
        const Diag *m = sorted[i];
        if (m->span.source) fprintf(out, "%s:%d:%d: ", m->span.source->path, span_line(m->span), span_column(m->span));
        fprintf(out, "%s[%s]: %s\n", severity(m->code), names[m->code], m->text);
        if (m->span.source) show_line(m->span, out);
        show_calls(m->span.call, out);
        for (const Note *note = m->notes; note; note = note->next) fprintf(out, "      = %s: %s\n", note->label, note->text);
    }
    if (d->dropped) fprintf(out, "and %d more error%s\n", d->dropped, d->dropped == 1 ? "" : "s");
    free(sorted);
}
