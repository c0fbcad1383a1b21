// source.c -- reads files; converts byte offsets to lines and columns when a message needs them.
#include "source.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LARGEST = 64 * 1024 * 1024 };  // a model is text written by people; offsets fit an int

static void find_lines(Arena *a, Source *s)
{
    s->nlines = 1;
    for (size_t i = 0; i < s->size; i++) s->nlines += s->text[i] == '\n';
    s->line = NEW_N(a, int, s->nlines);
    for (size_t i = 0, k = 1; i < s->size; i++)
        if (s->text[i] == '\n') s->line[k++] = (int)i + 1;
}

Source *source_read(Arena *a, const char *path)
{
    FILE *in = fopen(path, "rb");
    if (!in) return NULL;
    size_t size = 0, room = 16 * 1024;
    char *text = malloc(room);
    for (size_t got; text && (got = fread(text + size, 1, room - 1 - size, in)) > 0;) {
        size += got;
        if (size > LARGEST) break;
        if (size == room - 1) {
            char *larger = realloc(text, room *= 2);
            if (!larger) free(text);
            text = larger;
        }
    }
    int fault = !text ? ENOMEM : ferror(in) ? errno : size > LARGEST ? EFBIG : 0;
    fclose(in);
    Source *s = NULL;
    if (!fault) {
        s = NEW(a, Source);
        s->path = arena_strdup(a, path);
        const size_t mark = size >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0 ? 3 : 0;  // a byte order mark is no part of the text
        s->text = arena_alloc(a, size - mark + 1);
        memcpy(s->text, text + mark, size - mark);
        s->size = size - mark;
        find_lines(a, s);
    }
    free(text);
    errno = fault;
    return s;
}

Source *source_from_string(Arena *a, const char *path, const char *text)
{
    Source *s = NEW(a, Source);
    s->path = arena_strdup(a, path);
    s->size = strlen(text);
    s->text = arena_copy(a, text, s->size + 1);
    find_lines(a, s);
    return s;
}

static const char *in_quotes(Arena *a, const char *path)
{
    char *name = arena_alloc(a, 2 * strlen(path) + 1), *to = name;
    for (const char *c = path; *c; c++) {
        const bool control = (unsigned char)*c < ' ' || *c == 127;
        if (*c == '"' || *c == '\\') *to++ = '\\';
        *to++ = control ? '?' : *c;
    }
    *to = 0;
    return name;
}

const char *source_name(Arena *a, const char *path)
{
    const char *slash = strrchr(path, '/');
    return in_quotes(a, slash ? slash + 1 : path);
}

const char *span_place(Arena *a, Span s)
{
    const char *included = s.source ? s.source->included : NULL;
    return arena_printf(a, "%s:%d", included ? in_quotes(a, included) : source_name(a, s.source ? s.source->path : ""), span_line(s));
}

int span_line(Span s)
{
    if (!s.source) return 0;
    int low = 0, high = s.source->nlines;  // line[low] <= from < line[high]
    while (high - low > 1) {
        int middle = low + (high - low) / 2;
        if (s.source->line[middle] <= s.from) low = middle;
        else high = middle;
    }
    return low + 1;
}

int span_column(Span s)
{
    if (!s.source) return 0;
    return s.from - s.source->line[span_line(s) - 1] + 1;
}

bool span_before(Span a, Span b)
{
    if (a.source != b.source && a.source && b.source) return a.source->order < b.source->order;
    return a.from < b.from;
}

Span span_join(Span a, Span b)
{
    if (!a.source) return b;
    if (!b.source || b.source != a.source) return a;
    return (Span){a.source, a.from < b.from ? a.from : b.from, a.to > b.to ? a.to : b.to, a.call};
}
