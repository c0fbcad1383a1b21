// source.c -- reads files; turns byte offsets into lines and columns when a message needs them.
#include "source.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LARGEST = 64 * 1024 * 1024 };                   // a model is text written by people; offsets fit an int

Source *source_read(Arena *a, const char *path)
{
    FILE *in = fopen(path, "rb");
    if (!in) return NULL;
    size_t size = 0, room = 16 * 1024;
    char *text = malloc(room);
    for (size_t got; text && (got = fread(text + size, 1, room - 1 - size, in)) > 0; ) {
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
        s->text = arena_alloc(a, size + 1);
        memcpy(s->text, text, size);
        s->size = size;
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
    return s;
}

static int start(Span s)                               // first byte of the span, inside the text
{
    int size = (int)s.source->size;
    return s.from < 0 ? 0 : s.from > size ? size : s.from;
}

int span_line(Span s)
{
    if (!s.source) return 0;
    int line = 1;
    for (int i = 0; i < start(s); i++)
        if (s.source->text[i] == '\n') line++;
    return line;
}

int span_column(Span s)
{
    if (!s.source) return 0;
    int i = start(s);
    while (i > 0 && s.source->text[i - 1] != '\n') i--;
    return start(s) - i + 1;
}

Span span_join(Span a, Span b)
{
    if (!a.source) return b;
    if (!b.source || b.source != a.source) return a;
    return (Span){ a.source, a.from < b.from ? a.from : b.from, a.to > b.to ? a.to : b.to };
}
