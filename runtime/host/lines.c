// lines.c -- text files that others made, line by line: tables of data, draws that a run goes on from.
//
// A line ends with \n, \r\n or \r alone (old spreadsheets), and a byte order mark before the first one is passed over. What is no text, or
// has no end, is recognised by its bytes: a zero byte, a line longer than any table has.
#include "inputs.h"
#include "messages.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCK = 1 << 16, LONGEST = 1 << 30 };

bool gm_is_utf16(const char *bytes, size_t n) { return n >= 2 && (memcmp(bytes, "\xff\xfe", 2) == 0 || memcmp(bytes, "\xfe\xff", 2) == 0); }

bool gm_lines_open(GmLines *l, const char *path)
{
    *l = (GmLines){.path = path, .file = gm_text_open(path)};
    l->failed = !l->file;
    return l->file;
}

void gm_lines_close(GmLines *l)
{
    if (l->file) fclose(l->file);
    free(l->text);
    free(l->block);
    *l = (GmLines){0};
}

// The next bytes of the file; false at its end, or after a message.
static bool refill(GmLines *l)
{
    const bool first = !l->block;
    if (first) l->block = gm_alloc(BLOCK, 1);
    errno = 0;
    l->at = 0;
    l->n = fread(l->block, 1, BLOCK, l->file);
    if (ferror(l->file)) {
        gm_error("%s: cannot be read: %s", l->path, strerror(errno));
        l->failed = true;
    } else if (first && gm_is_utf16(l->block, l->n)) {
        gm_error("%s: is text of 16 bits a character (UTF-16): save it as UTF-8", l->path);
        l->failed = true;
    } else if (first && l->n >= 3 && memcmp(l->block, "\xef\xbb\xbf", 3) == 0) l->at = 3;
    return !l->failed && l->at < l->n;
}

static bool append(GmLines *l, const char *from, size_t n)
{
    if ((size_t)l->length + n > LONGEST) {
        gm_error("%s: line %ld is longer than a gigabyte: this is no table", l->path, l->number);
        l->failed = true;
        return false;
    }
    if ((size_t)l->length + n + 1 > l->room) {
        l->room = 2 * ((size_t)l->length + n + 1);
        l->text = gm_grow(l->text, l->room, 1);
    }
    memcpy(l->text + l->length, from, n);
    l->length += (long)n;
    l->text[l->length] = 0;
    return true;
}

// The next line, behind what is there; NULL at the end of the file, or after a message.
static char *read_line(GmLines *l)
{
    const long before = l->length;
    l->number++;
    l->ended = false;
    if (!append(l, "", 0)) return NULL;
    while (!l->ended && (l->at < l->n || refill(l))) {
        const char *from = l->block + l->at;
        size_t k = 0;
        const size_t left = l->n - l->at;
        if (l->after_return && *from == '\n') {  // the second half of \r\n
            l->after_return = false;
            l->at++;
            continue;
        }
        while (k < left && from[k] != '\n' && from[k] != '\r' && from[k]) k++;
        if (k < left && !from[k]) {
            gm_error("%s: line %ld holds a zero byte: this is not a text file", l->path, l->number);
            l->failed = true;
        }
        if (l->failed || !append(l, from, k)) return NULL;
        l->ended = k < left;
        l->after_return = l->ended && from[k] == '\r';
        l->at += k + l->ended;
    }
    return l->failed || (l->length == before && !l->ended) ? NULL : l->text;
}

char *gm_lines_next(GmLines *l)
{
    l->length = 0;
    return read_line(l);
}

char *gm_lines_more(GmLines *l)
{
    if (!l->ended || !append(l, "\n", 1)) return NULL;
    return read_line(l);
}
