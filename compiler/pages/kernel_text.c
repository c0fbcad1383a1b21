// kernel_text.c -- the text of one kernel, or of the function that launches those of an update, as emission writes it in the program.
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "../emit/nodes.h"
#include "../emit/program.h"
#include "pages.h"

char *code_text(const Program *p, const ShownCode *c)
{
    char *text;
    size_t size;
    FILE *to = open_memstream(&text, &size);
    if (!to) return NULL;
    Scope scope = {.arena = p->g->arena, .g = p->g};
    Map real = {0};
    Out out = {.program = p, .g = p->g, .arena = p->g->arena, .page = page_new(p->g->arena, to, false), .scope = &scope, .real = &real};
    if (c->kernel) emit_kernel(&out, c->kernel);
    else emit_update(&out, c->function);
    page_close(out.page);
    fclose(to);
    return text;
}

// What stands for unknowns whose names are too many to be part of others: the blocks that the text has.
static const char *blocks_text(const Pages *p, const char *text)
{
    const char *all = "";
    for (int b = 0; b < p->program->nblocks; b++) {
        const NamedBlock *block = &p->program->block[b];
        if (!strstr(text, block->name)) continue;
        all = arena_printf(p->arena, "%s%s`%s` is", all, *all ? " " : "\n", block->name);
        for (int i = 0; i < block->n; i++) all = arena_printf(p->arena, "%s%s %s", all, i ? "," : "", block->var[i]->name);
        all = arena_printf(p->arena, "%s.", all);
    }
    return all;
}

// Of all kernels and functions that are shown.
static const char *all_code(const Pages *p)
{
    const char *all = "";
    for (int i = 0; i < p->nderivations; i++)
        for (int k = 0; k < p->derivation[i].ncode; k++) {
            char *one = code_text(p->program, &p->derivation[i].code[k]);
            if (one) all = arena_printf(p->arena, "%s%s", all, one);
            free(one);
        }
    return all;
}

const char *named_works(const Pages *p)
{
    const char *all = all_code(p);
    for (int i = 0; i < p->nderivations; i++) {
        const Derivation *d = &p->derivation[i];
        const char *const said[] = {d->method, d->because, d->elements};
        for (size_t k = 0; k < sizeof said / sizeof *said; k++) all = arena_printf(p->arena, "%s%s\n", all, said[k] ? said[k] : "");
    }
    return works_text(p->arena, all);
}

const char *words_text(const Pages *p)
{
    const char *all = all_code(p);
    const Out out = {.program = p->program, .g = p->g, .arena = p->arena};
    return arena_printf(p->arena, "%s%s", legend_text(&out, all), blocks_text(p, all));
}
