// layout.c -- the text of the program: where its lines begin and end, how far they are indented, and which braces are open.
//
// A function, a list or a struct is handed on once its last brace is written: rename.c then knows all words that its indices may not be.
#define _GNU_SOURCE
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include "out.h"

struct Page {
    Arena *arena;
    FILE *to;
    FILE *piece;  // since the last function
    char *text;
    size_t length;
    bool begun;   // a line has begun
    bool plain;   // of a lesson
    bool closed;  // a brace has, whose line may go on with `else`
    bool brief;   // statements share a line
    int open;     // blocks that have begun and not ended
};

static void piece_open(Page *p)
{
    p->piece = open_memstream(&p->text, &p->length);
    if (!p->piece) abort();
}

static void piece_close(Page *p)
{
    char *named;
    size_t length;
    fclose(p->piece);
    FILE *names = open_memstream(&named, &length);
    if (!names) abort();
    write_named(names, p->arena, p->text, p->length, p->plain);
    fclose(names);
    if (p->plain) fwrite(named, 1, length, p->to);  // a lesson is to be typed, in as few lines as it has
    else write_wrapped(p->to, named, length);
    free(named);
    free(p->text);
}

Page *page_new(Arena *a, FILE *to, bool plain)
{
    Page *p = NEW(a, Page);
    p->arena = a;
    p->to = to;
    p->plain = plain;
    piece_open(p);
    return p;
}

static void finish_line(Page *p)
{
    if (p->closed) fputc('\n', p->piece);
    p->closed = false;
}

void page_close(Page *p)
{
    if (p->open) abort();  // one was left by return: our own bug
    finish_line(p);
    piece_close(p);
}

// ---- lines ----

static void write_part(const Out *o, const char *format, va_list ap, const char *end)
{
    Page *p = o->page;
    finish_line(p);
    if (!p->begun) fprintf(p->piece, "%*s", 4 * o->indent, "");
    vfprintf(p->piece, format, ap);
    if (p->brief && *end == '\n') end = " ";
    p->begun = !strchr(end, '\n');
    fputs(end, p->piece);
}

void line(const Out *o, const char *format, ...)
{
    va_list ap;
    va_start(ap, format);
    write_part(o, format, ap, "\n");
    va_end(ap);
}

void part(const Out *o, const char *format, ...)
{
    va_list ap;
    va_start(ap, format);
    write_part(o, format, ap, "");
    va_end(ap);
}

void end_line(const Out *o)
{
    fputc('\n', o->page->piece);
    o->page->begun = false;
}

void blank(const Out *o)
{
    finish_line(o->page);
    fputc('\n', o->page->piece);
}

void begin_brief(const Out *o, const char *head)
{
    part(o, "%s { ", head);
    o->page->brief = true;
}

void end_brief(const Out *o)
{
    o->page->brief = false;
    line(o, "}");
}

void directive(const Out *o, const char *format, ...)
{
    va_list ap;
    va_start(ap, format);
    finish_line(o->page);
    vfprintf(o->page->piece, format, ap);
    fputc('\n', o->page->piece);
    va_end(ap);
}

const char *text(const Out *o, const char *format, ...)
{
    char *s;
    va_list ap;
    va_start(ap, format);
    if (vasprintf(&s, format, ap) < 0) abort();
    va_end(ap);
    const char *copy = arena_strdup(o->arena, s);
    free(s);
    return copy;
}

// ---- blocks ----

// The context of a block in o: that of o, until it changes.
static Out inside(Out *o)
{
    Out in = *o;
    o->page->open++;
    in.outer = o;
    in.known = o->scope->n;
    in.closing = NULL;
    in.braces = false;
    return in;
}

static Out braced(Out *o, const char *closing)
{
    Out in = inside(o);
    in.indent++;
    in.depth++;
    in.braces = true;
    in.closing = closing;
    return in;
}

Out scope_begin(Out *o) { return inside(o); }

Out same_block(Out *o)
{
    Out in = inside(o);
    in.known = -1;
    return in;
}

static Out begin(Out *o, bool braces, const char *closing, const char *format, va_list ap)
{
    write_part(o, format, ap, braces ? " {\n" : " ");
    return braces ? braced(o, closing) : inside(o);
}

Out block_begin(Out *o, bool braces, const char *format, ...)
{
    va_list ap;
    va_start(ap, format);
    const Out in = begin(o, braces, "}", format, ap);
    va_end(ap);
    return in;
}

Out block_ending(Out *o, const char *with, const char *format, ...)
{
    va_list ap;
    va_start(ap, format);
    const Out in = begin(o, true, with, format, ap);
    va_end(ap);
    return in;
}

Out block_noted(Out *o, const char *with, const char *note, const char *format, ...)
{
    va_list ap;
    va_start(ap, format);
    write_part(o, format, ap, " {");
    va_end(ap);
    line(o, "%s", note);
    return braced(o, with);
}

Out block_cases(Out *o, const char *format, ...)
{
    va_list ap;
    va_start(ap, format);
    write_part(o, format, ap, " {\n");
    va_end(ap);
    Out in = braced(o, "}");
    in.indent--;
    return in;
}

Out block_indented(Out *o)
{
    Out in = inside(o);
    in.indent++;
    return in;
}

Out block_plain(Out *o)
{
    line(o, "{");
    return braced(o, "}");
}

Out block_otherwise(Out *o, const char *condition)
{
    o->page->begun = true;  // behind the brace
    o->page->closed = false;
    if (condition) line(o, " else if (%s) {", condition);
    else line(o, " else {");
    return braced(o, "}");
}

Out function_begin(Out *o, const char *format, ...)
{
    va_list ap;
    va_start(ap, format);
    write_part(o, format, ap, " {\n");
    va_end(ap);
    return braced(o, "}\n");
}

void buffer(Out *o, const char *name, const char *size)
{
    line(o, "wide *%s = %sSCRATCH(%s);", name, o->team ? "TEAM_" : "", size);
    Buffer *b = NEW(o->arena, Buffer);
    *b = (Buffer){name, o->team, o->buffers};
    o->buffers = b;
}

Out *block_end(Out *o)
{
    Out *outer = o->outer;
    o->page->open--;
    if (o->braces)
        for (const Buffer *b = o->buffers; b != outer->buffers; b = b->before) line(o, "%sRELEASE(%s);", b->team ? "TEAM_" : "", b->name);
    else outer->buffers = o->buffers;
    if (o->known >= 0) scope_leave(o->scope, o->known);
    if (!o->closing) return NULL;
    Page *p = o->page;
    part(outer, "%s", o->closing);
    p->begun = false;
    p->closed = true;
    if (outer->indent > 0) return NULL;
    finish_line(p);
    piece_close(p);
    piece_open(p);
    return NULL;
}
