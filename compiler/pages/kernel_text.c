// kernel_text.c -- the text of one kernel, as emission writes it in the program.
#define _GNU_SOURCE
#include <stdio.h>
#include "../emit/nodes.h"
#include "pages.h"

char *kernel_text(const Program *p, const Kernel *k)
{
    char *text;
    size_t size;
    FILE *to = open_memstream(&text, &size);
    if (!to) return NULL;
    Scope scope = {.arena = p->g->arena, .g = p->g};
    Map real = {0};
    Out out = {.program = p, .g = p->g, .arena = p->g->arena, .page = page_new(p->g->arena, to, false), .scope = &scope, .real = &real};
    emit_kernel(&out, k);
    page_close(out.page);
    fclose(to);
    return text;
}
