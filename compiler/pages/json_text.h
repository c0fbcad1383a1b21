// json_text.h -- texts within JSON. What is no UTF-8 becomes `?`.
#ifndef GMC_JSON_TEXT_H
#define GMC_JSON_TEXT_H
#include <stddef.h>
#include <stdio.h>

void json_bytes(FILE *out, const char *text, size_t size);
void json_string(FILE *out, const char *text);                    // NULL: null
void json_member(FILE *out, const char *name, const char *text);  // "name": "text"
#endif
