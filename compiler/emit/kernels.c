// kernels.c -- a kernel: the comment with what it draws from, its head, its body.
#include <string.h>
#include "nodes.h"

static const char *const kernel_macro[] = {
#define KERNEL_KIND(id, macro, help) [KERNEL_##id] = macro,
#include "../kernel/kernel.def"
};

static const char *head_text(const Out *o, const Kernel *k)
{
    if (o->g->lesson) return text(o, "static void %s(%s)", k->name, k->chains ? "long from, long to" : "void");
    const char *macro = kernel_macro[k->kind], *chains = k->chains ? ", const long from, const long to" : "";
    if (k->ode && k->of_ode != ODE_SOLUTION)
        return text(o, "static void %s(const Ode *ode, const wide %s, const wide *%s, %s)", k->name, k->ode->time->name,
                    k->ode->state->name, k->of_ode == ODE_RIGHT_SIDE ? "wide *slope" : "wide *by_state, wide *by_input");
    if (k->ode) return text(o, "%s %s(GmContext *GM, const Data *d, const State *s, const int how%s)", macro, k->name, chains);
    if (k->kind == KERNEL_FUNCTION)
        return text(o, "%s %s(%sconst Data *d, const State *s%s)", macro, k->name, k->context ? "GmContext *GM, " : "", chains);
    if (k->row) return text(o, "%s(%s, %s)", macro, k->name, marked(o, k->row->name));
    if (k->terms) return text(o, "KERNEL_TERMS(%s, %d)", k->name, k->terms);
    return text(o, "%s(%s)",
                k->part == PART_FORWARD     ? "KERNEL_FORWARD"
                : k->kind != KERNEL_TEAM    ? macro
                : k->on_request             ? k->part == PART_TABLES ? "KERNEL_PRIOR" : "KERNEL_ON_REQUEST"
                : k->columns || k->products ? "KERNEL_PRODUCTS"
                                            : macro,
                k->name);
}

// In a lesson the law alone, with the lines that it goes on in: the code says the rest in the same words.
const char *law_text(const Out *o, const Kernel *k)
{
    const char *end = strchr(k->comment, '\n');
    while (end && strncmp(end + 1, "//     ", 7) == 0) end = strchr(end + 1, '\n');
    return o->g->lesson && end ? text(o, "%.*s", (int)(end + 1 - k->comment), k->comment) : k->comment;
}

const char *header_text(const Out *o, const Kernel *k) { return text(o, "%s%s", law_text(o, k), head_text(o, k)); }

// Names of local variables, so that no loop takes one of them for its index.
static void take_names(Out *o, const Node *list)
{
    for (const Node *n = list; n; n = n->next) {
        const Var *v = n->kind == NODE_LET      ? n->let.local
                       : n->kind == NODE_ARRAY  ? n->array.local
                       : n->kind == NODE_MATRIX ? n->matrix.local
                       : n->kind == NODE_CHOICE ? n->choice.local
                                                : NULL;
        if (v) take_name(o, v->name);
        take_names(o, n->body);
        take_names(o, n->otherwise);
    }
}

// The function of a differential equation that the solver calls.
static void begin_ode_function(Out *o, const Kernel *k)
{
    const char *const given[] = {k->ode->time->name, k->ode->state->name, k->ode->inputs->name, "slope", "by_state", "by_input", "ode"};
    for (size_t i = 0; i < sizeof given / sizeof *given; i++) take_name(o, given[i]);
    emit_given(o, k->ode);
    if (k->of_ode == ODE_DERIVATIVES) line(o, "(void)by_state, (void)by_input;");
}

void emit_body(Out *o, const Kernel *k)
{
    o->kernel = k;
    o->write = emit_list;
    take_names(o, k->body);
    emit_list(o, k->body);
}

void emit_kernel(Out *o, const Kernel *k)
{
    SCOPE
    {
        o->kernel = k;
        o->write = emit_list;
        if (k->alike && k->alike->first == k) emit_shared_draw(o, k->alike);
        FUNCTION("%s", header_text(o, k))
        {
            o->team = k->kind == KERNEL_TEAM && !o->g->lesson;
            take_names(o, k->body);
            if (k->row) name_index(o, k->row, k->row->name);
            if (k->ode && k->of_ode != ODE_SOLUTION) begin_ode_function(o, k);
            if (k->ode && k->of_ode == ODE_SOLUTION) line(o, "(void)how;");
            if (k->columns) emit_columns(o, k->columns);
            emit_list(o, k->body);
        }
    }
}
