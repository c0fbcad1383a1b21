// source.h -- files of text, and places in them.
#ifndef GMC_SOURCE_H
#define GMC_SOURCE_H
#include <stdbool.h>
#include <stddef.h>
#include "arena.h"

typedef struct Source {
    const char *path;      // as the user named it
    const char *included;  // of a file that a model includes: its path from the folder of the model, as written; else NULL
    char *text;        // NUL-terminated
    size_t size;
    int order;  // among the files of a model: those that are included come behind it, as they are read
    int nlines;  // line k starts at byte line[k - 1]
    int *line;
} Source;

// Bytes [from, to) of a source. Lines and columns are worked out when a message is printed.
typedef struct Span {
    const Source *source;
    int from, to;
    const struct Span *call;  // of what a function's definition has here: the call that it stands for, or NULL
} Span;

Source *source_read(Arena *a, const char *path);  // NULL if it cannot be read (errno says why)
Source *source_from_string(Arena *a, const char *path, const char *text);
// The last part of a path as a string of C has it between its quotes, and comments too: quotes and backslashes escaped, and what would end
// the line replaced by ?.
const char *source_name(Arena *a, const char *path);
// "file.gm:12", the name likewise; of a file that is included "parts/file.gm:12", as the line that includes it has it
const char *span_place(Arena *a, Span s);
bool span_before(Span a, Span b);          // in the order of files, and within one
int span_line(Span s);                     // 1-based; 0 if the span has no source
int span_column(Span s);                   // 1-based, in bytes
Span span_join(Span a, Span b);
#endif
