// messages.c -- lines on the terminal, texts that are made, and memory that runs out.
#include "messages.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

bool gm_quiet;

// A line on the terminal. What files hold may be in it: control characters, which terminals obey, are shown as \x1b.
static void say(const char *format, va_list args)
{
    va_list again;
    va_copy(again, args);
    const int n = vsnprintf(NULL, 0, format, args);
    const size_t room = n < 0 ? 0 : (size_t)n + 1;
    char *text = malloc(room), *shown = malloc(4 * room + 1), *to = shown;  // not gm_alloc, which speaks here
    if (text && shown && n >= 0) {
        vsnprintf(text, room, format, again);
        for (const unsigned char *c = (const unsigned char *)text; *c; c++)
            // 0xc2: those of Unicode
            if ((*c < ' ' && *c != '\n' && *c != '\t') || *c == 127 || (*c == 0xc2 && c[1] >= 0x80 && c[1] < 0xa0))
                to += sprintf(to, "\\x%02x", *c == 0xc2 ? *++c : *c);
            else *to++ = (char)*c;
        *to++ = '\n';
        fflush(stdout);  // lines stay in order where both go to one file
        fwrite(shown, 1, (size_t)(to - shown), stderr);
        fflush(stderr);  // whoever waits knows what for
    }
    free(shown);
    free(text);
    va_end(again);
}

void gm_error(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    say(format, args);
    va_end(args);
}

void gm_note(const char *format, ...)
{
    if (gm_quiet) return;
    va_list args;
    va_start(args, format);
    say(format, args);
    va_end(args);
}

void gm_exhausted(size_t count, size_t size)
{
    gm_error("out of memory: %.3g GB more were needed (fewer --chains, --samples or --params need less)",
             (double)count * (double)size / 1e9);
    exit(GM_EXIT_FAULT);
}

void *gm_alloc(size_t count, size_t size)
{
    void *block = calloc(count ? count : 1, size ? size : 1);
    if (!block) gm_exhausted(count, size);
    return block;
}

void *gm_grow(void *block, size_t count, size_t size)
{
    size_t bytes;
    if (__builtin_mul_overflow(count, size, &bytes)) gm_exhausted(count, size);
    void *grown = realloc(block, bytes ? bytes : 1);
    if (!grown) gm_exhausted(count, size);
    return grown;
}

char *gm_copy_text(const char *text)
{
    const size_t n = strlen(text) + 1;
    return memcpy(gm_alloc(n, 1), text, n);
}

char *gm_format(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    const int n = vsnprintf(NULL, 0, format, args);
    va_end(args);
    char *text = gm_alloc((size_t)n + 1, 1);
    va_start(args, format);
    vsnprintf(text, (size_t)n + 1, format, args);
    va_end(args);
    return text;
}
