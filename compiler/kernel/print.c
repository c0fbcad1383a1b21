// print.c -- kernels as trees, in the notation of the language, for --dump.
#include "kernel.h"

static const char *const sharing_macro[] = {
#define SHARING(id, macro, help) [SHARE_##id] = macro,
#include "kernel.def"
};

static const char *const sign[] = {
#define OP(id, sign, help) [ASSIGN_##id] = sign,
#include "kernel.def"
};

static void print_range(FILE *out, const Index *i)
{
    fprintf(out, "%s in ", i->name);
    ex_print(out, i->lo);
    fputc(':', out);
    ex_print(out, i->hi);
}

static void print_count(FILE *out, const Count *c)
{
    if (c->n == 0) fputc('1', out);
    for (int i = 0; i < c->n; i++) {
        if (i) fputs(" * ", out);
        const bool sum = c->factor[i]->kind == EX_ADD;
        if (sum) fputc('(', out);
        ex_print(out, c->factor[i]);
        if (sum) fputc(')', out);
    }
}

static void print_place(FILE *out, const Place *at)
{
    if (at->local) {
        fputs(at->local->name, out);
        return;
    }
    if (at->element) {
        ex_print(out, at->element);
        return;
    }
    fprintf(out, "%s[", at->array->name);
    for (int k = 0; k < at->n; k++) {
        const Sub *s = &at->sub[k];
        if (k) fputs(", ", out);
        if (s->offset) ex_print(out, s->offset);
        if (s->n == 0) fputs(s->offset ? " + 1" : "1", out);
        for (int i = 0; i < s->n; i++) {
            fputs(i ? "; " : s->offset ? " + " : "", out);
            ex_print(out, s->at[i]);
        }
    }
    fputc(']', out);
}

static void print_loop(FILE *out, const Node *n)
{
    for (int i = 0; i < n->loop.n; i++) {
        if (i) fputs(", ", out);
        if (n->loop.of) fprintf(out, "%s of %s", n->loop.index[i]->name, n->loop.of->name);
        else print_range(out, n->loop.index[i]);
    }
    if (n->loop.sorted) fputs(" in order", out);
    if (n->loop.order && n->loop.how != SHARE_ROWS && n->loop.index[1] && n->loop.n == 1)
        fprintf(out, " of the rows of %s", n->loop.index[1]->name);
    if (n->loop.how != SHARE_SERIAL) fprintf(out, " shared by %s", sharing_macro[n->loop.how]);
    for (int i = 0; i < n->loop.ntotals; i++) fprintf(out, "%s%s", i ? ", " : " into ", n->loop.total[i]->name);
    for (int i = 0; i < n->loop.narrays; i++) fprintf(out, "%s%s", i ? ", " : " into ", n->loop.array[i]->name);
    if (n->loop.colours) fprintf(out, ", %d colours", n->loop.colours);
}

static void print_nest(FILE *out, const Loops *l)
{
    for (int i = 0; i < l->n; i++) {
        fputs(i ? ", " : "over ", out);
        print_range(out, l->index[i]);
    }
    if (!l->guard) return;
    fputs(" where ", out);
    ex_print(out, l->guard);
}

static void print_assign(FILE *out, const Node *n)
{
    print_place(out, &n->assign.place);
    fprintf(out, " %s ", sign[n->assign.op]);
    if (n->assign.times) fprintf(out, "%s * ", n->assign.times->name);
    ex_print(out, n->assign.value);
    if (n->assign.own) fputs(", by the lane whose place it is", out);
}

static void print_draw(FILE *out, const Node *n)
{
    if (n->draw.x) fputs(n->draw.x->name, out);
    else print_place(out, &n->draw.place);
    fprintf(out, " from %s(", n->draw.call ? n->draw.call->name : n->draw.routine);
    for (int i = 0; i < n->draw.nargs; i++) {
        if (i) fputs(", ", out);
        if (n->draw.arg[i].value) ex_print(out, n->draw.arg[i].value);
        else fprintf(out, "%g", n->draw.arg[i].number);
    }
    fprintf(out, "), stream of %s", n->draw.var->name);
}

static const char *way(Transformed part) { return part == TRANSFORM_FROM ? "into " : part == TRANSFORM_TO ? "from " : "chain rule of "; }

static void print_what(FILE *out, const Node *n)
{
#define TEXT(s)   fputs(s, out);
#define NUMBER(n) fprintf(out, "%d", n);
#define NAME(of)  fputs((of)->name, out);
#define EXPR(e)   ex_print(out, e);
#define SIZES(c)  print_count(out, c);
#define WAY(part) fputs(way(part), out);
#define WHERE(condition, ...) \
    if (condition) { __VA_ARGS__ }
#define REPEAT(count, ...) \
    for (int i = 0; i < (count); i++) { __VA_ARGS__ }
#define TABLES(list, ...) \
    for (const ValueWeights *w = list; w; w = w->next) { __VA_ARGS__ }
#define SHOWN(id, ...) \
    case NODE_##id: __VA_ARGS__ break;
    switch (n->kind) {
    case NODE_NEST:
    case NODE_REDUCE: print_nest(out, &n->nest.loops); break;
    case NODE_LOOP: print_loop(out, n); break;
    case NODE_ASSIGN: print_assign(out, n); break;
    case NODE_DRAW: print_draw(out, n); break;
#include "kernel.def"
    }
}

static void print_list(FILE *out, const Node *list, int indent);

static void print_node(FILE *out, const Node *n, int indent)
{
    static const char *const name[] = {
#define NODE(id, name, word, help) [NODE_##id] = name,
#include "kernel.def"
    };
    const bool bare = n->kind == NODE_BARRIER || (n->kind == NODE_LANE && !n->lane.key) ||
                      ((n->kind == NODE_REDUCE || n->kind == NODE_NEST) && !n->nest.loops.n && !n->nest.loops.guard);
    fprintf(out, "%*s%s%s", 2 * indent, "", name[n->kind], bare ? "" : " ");
    print_what(out, n);
    fputc('\n', out);
    print_list(out, n->body, indent + 1);
    if (!n->otherwise) return;
    fprintf(out, "%*selse\n", 2 * indent, "");
    print_list(out, n->otherwise, indent + 1);
}

static void print_list(FILE *out, const Node *list, int indent)
{
    for (const Node *n = list; n; n = n->next) print_node(out, n, indent);
}

static void print_kernels(FILE *out, const Kernel *k)
{
    static const char *const kind[] = {
#define KERNEL_KIND(id, macro, help) [KERNEL_##id] = help,
#include "kernel.def"
    };
    for (; k; k = k->next) {
        fprintf(out, "kernel %s: %s\n", k->name, kind[k->kind]);
        print_list(out, k->body, 1);
        fputc('\n', out);
    }
}

static void print_launches(FILE *out, const char *title, const Launches *list)
{
    static const char *const macro[] = {
#define LAUNCH(id, macro, help) [LAUNCH_##id] = macro,
#include "kernel.def"
    };
    if (!list->first) return;
    fprintf(out, "launches of %s\n", title);
    for (const Launch *l = list->first; l; l = l->next) {
        fprintf(out, "  %s%s%s", l->kind == LAUNCH_STOP ? "stop at a fault" : macro[l->kind], l->kernel ? " " : "",
                l->kernel ? l->kernel->name : "");
        for (int i = 0; i < l->nargs; i++) {
            const LaunchArg *a = &l->arg[i];
            if (a->kind == ARG_STRING || a->kind == ARG_STREAM) continue;
            fputs(i ? ", " : "  ", out);
            if (a->setting) fprintf(out, "%s ", a->setting);
            switch (a->kind) {
            case ARG_EXTENT: ex_print(out, a->extent); break;
            case ARG_COUNT: print_count(out, &a->count); break;
            case ARG_WORK:
                for (int k = 0; k < l->kernel->niterations; k++) {
                    if (k) fputs(" + ", out);
                    print_count(out, &l->kernel->iterations[k]);
                }
                if (!l->kernel->niterations) fputc('1', out);
                break;
            case ARG_PLACE:
            case ARG_FIELD:
            case ARG_NAME: fputs(a->var->name, out); break;
            case ARG_FUNCTION: fputs(a->string, out); break;
            case ARG_NUMBER: fprintf(out, "%g", a->number); break;
            case ARG_PRODUCT:
                fprintf(out, "%s = %s*%s%s", a->product->eta->name, a->product->matrix->name, a->product->coefficients->name,
                        a->product->transposed ? "'" : "");
                if (a->product->out)
                    fprintf(out, ", %s = %s'*%s", a->product->out->name, a->product->matrix->name, a->product->weight->name);
                if (a->product->sums) fprintf(out, ", %s", a->product->sums->name);
                break;
            case ARG_STRING:
            case ARG_STREAM: break;
            }
        }
        if (l->stands_in) fprintf(out, "    if joint normal %d is not taken", l->stands_in);
        if (l->when != ALWAYS) fprintf(out, "    if rows of %s are %s", l->rows->name, when_text(l->when));
        fputc('\n', out);
    }
    fputc('\n', out);
}

void kernels_print(FILE *out, const Program *p)
{
    print_kernels(out, p->setup.first);
    print_kernels(out, p->sweep.first);
    print_launches(out, "setup", &p->prepare);
    print_launches(out, "sums of responses", &p->refresh);
    print_launches(out, "the end of setup", &p->finish);
    print_launches(out, "the start of a sweep", &p->before);
    for (int i = 0; i < p->nupdates; i++) {
        if (p->updates[i].density.first) print_launches(out, p->updates[i].density_name, &p->updates[i].density);
        if (p->updates[i].jacobian.first) print_launches(out, p->updates[i].jacobian_name, &p->updates[i].jacobian);
        if (p->updates[i].made.first)
            print_launches(out, arena_printf(p->g->arena, "statistics before %s", p->updates[i].name), &p->updates[i].made);
        print_launches(out, p->updates[i].name, &p->updates[i].launches);
    }
    print_launches(out, "derived quantities", &p->derive);
    print_launches(out, "absent elements", &p->restore);
    print_launches(out, "the log joint", &p->joint);
}
