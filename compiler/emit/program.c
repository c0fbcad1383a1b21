// program.c -- the emitted program: data, state, a kernel per step, the sweep.
//
// Needs: the schedule.     Gives: CUDA C text that includes runtime/device/gm.h.
// Emission decides which sums leave the sweep (hoist.c) and in which order loops nest; everything else was decided before.
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "../kernel/lower.h"
#include "emit.h"
#include "tables.h"

// ---- the program ----

static void emit_banner(Program *p, FILE *out, const char *source)
{
    const char *slash = strrchr(source, '/');
    fprintf(out, "// %s, compiled by gmc.\n//\n// One sweep draws, in this order:\n", slash ? slash + 1 : source);
    for (const Step *s = p->g->steps; s; s = s->next) {
        const char *names = "";
        for (int i = 0; i < s->nblock; i++) names = text(&p->w, "%s%s%s", names, i ? ", " : "", s->block[i]->name);
        const char *how = s->kind == STEP_GAUSSIAN ? "joint normal"
                        : s->kind == STEP_ENUM ? "all values weighed"
                        : s->kind == STEP_SLICE ? "slice sampled"
                        : s->kind == STEP_OWN ? s->conditional->own->factor->dist->name
                        : text(&p->w, "%s%s", s->conditional->truncated ? "truncated " : "", s->conditional->family->name);
        fprintf(out, "//   %-28s %s%s%s\n", names, how, s->imputes ? " (if values are missing)" : "", text(&p->w, "     %s", line_of(p, s->span)));
    }
    fprintf(out, "//\n// In kernels d is the data, s the state of one chain, at the place in the run that keys the random numbers.\n");
    fprintf(out, "// Subscripts count from 1 in comments, as in the model, and from 0 in the code.\n\n#include \"gm.h\"\n\n");
}

// ---- kernels ----

static void emit_header(FILE *out, const Kernel *k, const char *end)
{
    static const char *const macro[] = {
#define KERNEL_KIND(id, macro, help) [KERNEL_##id] = macro,
#include "../kernel/kernel.def"
    };
    if (k->kind == KERNEL_FUNCTION && k->context) fprintf(out, "%s%s %s(GmContext *GM, const Data d, const State s)%s", k->comment, macro[k->kind], k->name, end);
    else fprintf(out, k->kind == KERNEL_FUNCTION ? "%s%s %s(const Data d, const State s)%s" : k->row ? "%s%s(%s, %s)%s" : "%s%s(%s)%s", k->comment, macro[k->kind], k->name, k->row ? k->row : end, end);
}

static void emit_kernels_of(FILE *out, const Kernel *k)
{
    for (; k; k = k->next) {
        emit_header(out, k, " {\n");
        for (const Node *n = k->body; n; n = n->next)
            switch (n->kind) {
            case NODE_TEXT: fputs(n->text.lines, out); break;
            }
        fputs("}\n\n", out);
    }
}

// A launch of a kernel that a team runs, or one lane if it has no work to share.
static const char *team_launch(Program *p, const char *how, const char *kernel, const char *work)
{
    return text(&p->w, "%s(%s, run, %s)", how, kernel, work ? work : "1");
}

// The row passes of the predictors that a kernel outside the sweep reads.
static const char *passes_before(Program *p, const char *kernel)
{
    const char *all = "";
    for (int i = 0; i < p->nuses; i++)
        if (strcmp(p->use[i].kernel, kernel) == 0) all = text(&p->w, "%s    %s;\n", all, predictor_pass(p, &p->use[i]));
    return all;
}

void emit_program(FILE *out, Graph *g, const char *source)
{
    Program *p = lower(g);
    Writer *w = &p->w;
    Var **state = NEW_N(g->arena, Var *, g->nvars + p->nwork + 1024);
    int nstate = state_fields(p, state);
    emit_banner(p, out, source);
    emit_structs(p, out, state, nstate);
    fputs("#include \"kernels.h\"\n\n", out);
    emit_kernels_of(out, p->setup.first);
    emit_kernels_of(out, p->sweep.first);
    bool lets = false;
    for (int i = 0; i < g->nvars; i++) lets |= g->vars[i]->kind == VAR_LET;
    fprintf(out, "#ifndef __CUDACC_RTC__       // what follows runs on the host\n\n// ---- the sweep ----\n\n");
    const char *bytes = "0", *width = "0";
    const Expr *columns = NULL;
    bool several = false;
    for (const Step *s = g->steps; s; s = s->next) {
        RowDot dot = {0};
        if (s->kind != STEP_EXACT || !row_dot(s, &dot)) continue;
        bytes = text(w, "(double)sizeof(real) * %s * %s", wrap(p, write_extent(w, dot.matrix->dim[0])), wrap(p, write_extent(w, dot.matrix->dim[1])));
        several |= columns && columns != dot.matrix->dim[1];
        columns = dot.matrix->dim[1];
    }
    for (int k = 0; k < p->npredictors; k++) {
        several |= columns && columns != p->predictor[k].matrix->dim[1];
        columns = p->predictor[k].matrix->dim[1];
    }
    if (columns) width = several ? "-1" : write_extent(w, (Expr *)columns);
    fprintf(out, "// Bytes of the rows that a row pass reads.\nstatic double row_bytes(const GmRun *run)\n{\n    const Data d = *(const Data *)run->data;\n    (void)d;\n    return %s;\n}\n\n", bytes);
    fprintf(out, "// Their columns.\nstatic long row_width(const void *data)\n{\n    const Data d = *(const Data *)data;\n    (void)d;\n    return %s;\n}\n\n", width);
    for (const Step *s = g->steps; s; s = s->next)
        if (s->kind == STEP_GAUSSIAN && s->rows)
            fprintf(out, "// Whether there are fewer rows than coefficients.\nstatic int few_%s(const GmRun *run)\n{\n    const Data d = *(const Data *)run->data;\n    return %s;\n}\n\n",
                    s->rows->name, few_rows(p, s->rows));
    for (int i = 0; i < p->nsteps; i++) {
        fprintf(out, "static void step_%d(GmRun *run)            // %s\n{\n%s}\n\n", i + 1, p->step_name[i], p->launches[i] ? p->launches[i] : "");
    }
    fprintf(out, "static void sweep(GmRun *run)\n{\n%s", p->series ? "    LAUNCH_ONCE(series, run);\n" : "");
    bool imputing = false, responses = false;
    for (const Sum *s = g->sums; s; s = s->next) responses |= reads_response(s);
    int k = 0;
    for (const Step *s = g->steps; s && k < p->nsteps; s = s->next, k++) {
        if (!s->imputes && imputing && responses) {
            fprintf(out, "    if (ANY_MISSING(run)) %s;\n", p->work_of_setup[3] ? team_launch(p, "LAUNCH_TEAM", "sums_of_responses", p->work_of_setup[3])
                                                                                    : "LAUNCH_ONCE(sums_of_responses, run)");
            imputing = false;
        }
        imputing |= s->imputes;
        fprintf(out, "    %sstep_%d(run);\n", s->imputes ? "if (ANY_MISSING(run)) " : "", k + 1);
    }
    fprintf(out, "}\n\nstatic void refresh(GmRun *run)      // after missing values were drawn\n{\n    %s;\n}\n\n",
            team_launch(p, "LAUNCH_SHARED_UNLESS_MISSING", "sums_of_responses", p->work_of_setup[3]));
    fprintf(out, "static void setup(GmRun *run)\n{\n");
    if (lets) fprintf(out, "    %s;\n", team_launch(p, "LAUNCH_SHARED", "definitions", p->work_of_setup[0]));
    fprintf(out, "    %s;\n", team_launch(p, "LAUNCH_SHARED", "check_data", p->work_of_setup[1]));
    if (g->claims) fprintf(out, "    if (gm_found_fault(run)) return;\n");
    if (p->norders) fprintf(out, "    %s;\n", team_launch(p, "LAUNCH_SHARED", "groups", p->work_of_groups));
    for (int i = 0; i < p->norders; i++) {
        const Order *o = &p->order[i];
        fprintf(out, "    ORDER_ROWS(run, %s, %s, %s, %s, %s);\n", write_extent(w, o->row->hi), write_extent(w, o->extent), o->keys->name, o->first->name, o->rows->name);
    }
    fprintf(out, "    %s;\n%s    refresh(run);\n", team_launch(p, "LAUNCH_SHARED", "sums_of_data", p->work_of_setup[2]), p->grams ? p->grams : "");
    if (p->work_of_elements) fprintf(out, "    %s;\n", team_launch(p, "LAUNCH_SHARED", "check_elements", p->work_of_elements));
    fprintf(out, "}\n\n");
    fprintf(out, "static void derive(GmRun *run)\n{\n%s%s    %s;\n}\n\n", p->series ? "    LAUNCH_ONCE(series, run);\n" : "", passes_before(p, "derived"), p->work_of_derived ? team_launch(p, "LAUNCH_TEAM", "derived", p->work_of_derived) : "LAUNCH_ONCE(derived, run)");
    fprintf(out, "static void joint(GmRun *run)\n{\n%s%s    %s;\n}\n\n", p->series ? "    LAUNCH_ONCE(series, run);\n" : "", passes_before(p, "log_joint"), p->work_of_joint ? team_launch(p, "LAUNCH_TEAM", "log_joint", p->work_of_joint) : "LAUNCH_ONCE(log_joint, run)");
    fprintf(out, "// ---- what the runtime asks ----\n\n");
    emit_tables(p, out, state, nstate);
    const bool factors = emit_factors(p, out);
    fprintf(out, "static const char *const step_names[] = {");
    for (int i = 0; i < p->nsteps; i++) fprintf(out, "\"%s\", ", p->step_name[i]);
    fprintf(out, "NULL};\n\nstatic void (*const steps[])(GmRun *) = {");
    for (int i = 0; i < p->nsteps; i++) fprintf(out, "step_%d, ", i + 1);
    fprintf(out, "NULL};\n\n");
    int ndata = 0;
    for (int i = 0; i < g->nvars; i++) ndata += g->vars[i]->kind == VAR_DATA;
    const char *slash = strrchr(source, '/');
    fprintf(out, "GM_MODEL(\"%s\", \"%s\", %d, %d, %d, %s)\n\n#endif\n", g->model->name ? g->model->name : "model", slash ? slash + 1 : source, ndata, nstate, p->nsteps, factors ? "factors, of_factors" : "NULL, NULL");
}

// The kernels alone: the comment above each, and its name.
void emit_kernels(FILE *out, Graph *g)
{
    const Program *p = lower(g);
    for (const Kernel *k = p->setup.first; k; k = k->next) emit_header(out, k, "\n\n");
    for (const Kernel *k = p->sweep.first; k; k = k->next)
        if (k->kind != KERNEL_FUNCTION) emit_header(out, k, "\n\n");
}
