// json_text.c -- texts within JSON.
#include "json_text.h"

#include <string.h>

// How many bytes of UTF-8 begin here: 0, if these are none.
static int utf8_length(const unsigned char *c)
{
    const int n = *c < 0x80 ? 1 : *c >= 0xf0 && *c < 0xf5 ? 4 : *c >= 0xe0 ? 3 : *c >= 0xc2 ? 2 : 0;
    if (*c >= 0xf5) return 0;
    for (int i = 1; i < n; i++)
        if ((c[i] & 0xc0) != 0x80) return 0;
    return n;
}

void json_bytes(FILE *out, const char *text, size_t size)
{
    fputc('"', out);
    const unsigned char *c = (const unsigned char *)text, *end = c + size;
    while (c < end) {
        const int n = utf8_length(c);
        if (*c == '"' || *c == '\\') fprintf(out, "\\%c", *c);
        else if (*c == '\n') fputs("\\n", out);
        else if (*c < ' ' || *c == 127) fprintf(out, "\\u%04x", *c);
        else if (n) fwrite(c, 1, (size_t)n, out);
        else fputc('?', out);
        c += n > 1 ? n : 1;
    }
    fputc('"', out);
}

void json_string(FILE *out, const char *text)
{
    if (text) json_bytes(out, text, strlen(text));
    else fputs("null", out);
}

void json_member(FILE *out, const char *name, const char *text)
{
    fprintf(out, "\"%s\": ", name);
    json_string(out, text);
}
