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
    switch (n->kind) {
    case NODE_COMMENT: fputs(n->text.lines, out); break;
    case NODE_LET:
        fprintf(out, "%s", n->let.local->name);
        if (n->let.value) {
            fputs(" = ", out);
            ex_print(out, n->let.value);
        } else if (n->let.key) {
            fputs(" = ", out);
            ex_print(out, n->let.key);
        }
        if (n->let.grows) fputs(", which grows", out);
        break;
    case NODE_KNOW:
        ex_print(out, n->let.key);
        fprintf(out, " is %s", n->let.local->name);
        break;
    case NODE_NEST:
    case NODE_REDUCE:
        for (int i = 0; i < n->nest.loops.n; i++) {
            fputs(i ? ", " : "over ", out);
            print_range(out, n->nest.loops.index[i]);
        }
        if (n->nest.loops.guard) {
            fputs(" where ", out);
            ex_print(out, n->nest.loops.guard);
        }
        break;
    case NODE_LOOP: print_loop(out, n); break;
    case NODE_LANE:
        if (n->lane.key) fprintf(out, "of the group %s", n->lane.group->name);
        break;
    case NODE_IF:
        if (n->test.negated) fputs("not ", out);
        if (n->test.few) fprintf(out, "few rows of %s", n->test.few->name);
        else ex_print(out, n->test.condition);
        break;
    case NODE_SKIP: ex_print(out, n->skip.condition); break;
    case NODE_ASSIGN:
        print_place(out, &n->assign.place);
        fprintf(out, " %s ", sign[n->assign.op]);
        if (n->assign.times) fprintf(out, "%s * ", n->assign.times->name);
        ex_print(out, n->assign.value);
        if (n->assign.own) fputs(", by the lane whose place it is", out);
        break;
    case NODE_FILL:
        fprintf(out, "%s, ", n->fill.array->name);
        print_count(out, &n->fill.count);
        break;
    case NODE_ARRAY:
        fprintf(out, "%s = ", n->array.local->name);
        ex_print(out, n->array.key);
        break;
    case NODE_MATRIX:
        fprintf(out, "%s = ", n->matrix.local->name);
        ex_print(out, n->matrix.key);
        break;
    case NODE_CHOICE:
        fprintf(out, "%s = ", n->choice.local->name);
        ex_print(out, n->choice.key);
        break;
    case NODE_DRAW:
        if (n->draw.x) fputs(n->draw.x->name, out);
        else print_place(out, &n->draw.place);
        fprintf(out, " from %s(", n->draw.call ? n->draw.call->name : n->draw.routine);
        for (int i = 0; i < n->draw.nargs; i++) {
            if (i) fputs(", ", out);
            if (n->draw.arg[i].value) ex_print(out, n->draw.arg[i].value);
            else fprintf(out, "%g", n->draw.arg[i].number);
        }
        fprintf(out, "), stream of %s", n->draw.var->name);
        break;
    case NODE_SAMPLE: fprintf(out, "%s from %s", n->sample.site->var->name, n->sample.site->dist->name); break;
    case NODE_RATIO: fputs(n->ratio.c ? n->ratio.c->var->name : "nothing", out); break;
    case NODE_BOUNDS: fprintf(out, "of line %d", span_line(n->bounds.factor->span)); break;
    case NODE_CHECK: fprintf(out, "of line %d", span_line(n->check.requirement->span)); break;
    case NODE_SLICE:
    case NODE_METROPOLIS: ex_print(out, n->slice.c->current); break;
    case NODE_WEIGH:
        ex_print(out, n->weigh.c->current);
        fputs(" in ", out);
        ex_print(out, n->weigh.first);
        fputc(':', out);
        ex_print(out, n->weigh.last);
        for (const ValueWeights *w = n->weigh.weights_of; w; w = w->next)
            fprintf(out, "%s %s", w == n->weigh.weights_of ? " by" : " *", w->var->name);
        break;
    case NODE_WEIGHTS: {
        const ValueWeights *w = n->weights.of;
        fprintf(out, "%s [", w->var->name);
        for (int i = 0; i < w->n; i++) fprintf(out, "%s, ", w->index[i]->name);
        fprintf(out, "%s] of %s", w->value->name, w->weight ? "" : "exp of ");
        ex_print(out, w->weight ? w->weight : w->log);
        break;
    }
    case NODE_ELLIPSE: fputs(n->ellipse.c->var->name, out); break;
    case NODE_CONSTRAINED: fputs(n->constrained.c->var->name, out); break;
    case NODE_DRAW_ARRAY: fprintf(out, "%s from %s", n->whole.c->var->name, n->whole.array->name); break;
    case NODE_DRAW_STATES: fprintf(out, "%s from %s and %s", n->states.var->name, n->states.weight->name, n->states.link->name); break;
    case NODE_DRAW_BAND:
        fprintf(out, "%s from %s and %s%s%s", n->band.x->name, n->band.B->name, n->band.k->name, n->band.E ? ", with border " : "",
                n->band.E ? n->band.E->name : "");
        break;
    case NODE_DRAW_NORMAL: fprintf(out, "%s from %s and %s", n->normal.update->block[0]->name, n->normal.J->name, n->normal.h->name); break;
    case NODE_TRANSFORM:
        fprintf(out, "%s %s",
                n->transform.part == TRANSFORM_FROM ? "into"
                : n->transform.part == TRANSFORM_TO ? "from"
                                                    : "chain rule of",
                n->transform.var->name);
        break;
    case NODE_WHITENED:
        fprintf(out, "%s %s",
                n->whitened.part == TRANSFORM_FROM ? "into"
                : n->whitened.part == TRANSFORM_TO ? "from"
                                                   : "chain rule of",
                n->whitened.root->name);
        break;
    case NODE_FACTOR: fputs(n->factor.adjoint ? n->factor.adjoint->name : n->factor.matrix->name, out); break;
    case NODE_ROUTINE:
        fprintf(out, "%s of ", n->routine.name);
        ex_print(out, n->routine.from);
        fprintf(out, " into %s", n->routine.to->var->name);
        break;
    case NODE_COPY: fprintf(out, "%s %s", n->copy.gather ? "into" : "from", n->copy.joint->name); break;
    case NODE_COMPUTE: fputs(n->compute.series->var[0]->name, out); break;
    case NODE_SOLVE: fputs(n->solve.ode->site->var->name, out); break;
    case NODE_CALL: fprintf(out, "%s += %s", n->call.into->name, n->call.part->name); break;
    case NODE_RETURN: ex_print(out, n->row.weight); break;
    case NODE_RESULT: ex_print(out, n->result.value); break;
    case NODE_ORDER: ex_print(out, n->order.order->key); break;
    case NODE_BARRIER: break;
    }
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
