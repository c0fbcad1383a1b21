// program.c -- the emitted program: data, state, a kernel per step, the sweep.
//
// Needs: the schedule.     Gives: CUDA C text that includes runtime/device/gm.h.
// Emission decides which sums leave the sweep (hoist.c) and in which order loops nest; everything else was decided before.
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "program.h"

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
        fprintf(out, "//   %-28s %s%s%s\n", names, how, s->imputes ? " (missing values only)" : "", text(&p->w, "     %s", line_of(p, s->span)));
    }
    fprintf(out, "//\n// In kernels d is the data, s the state of one chain, at the place in the run that keys the random numbers.\n");
    fprintf(out, "// Subscripts count from 1 in comments, as in the model, and from 0 in the code.\n\n#include \"gm.h\"\n\n");
}

// Data and what has an element per observation are of type real, so that a GPU may keep them in single precision; parameters, sums
// and whatever is drawn as a vector or a matrix are wide.
static void choose_types(Graph *g)
{
    for (int i = 0; i < g->nvars; i++) {
        Var *v = g->vars[i];
        v->narrow = v->solver = false;
        if (v->base == BASE_INT || v->rank == 0 || (v->constraint != CONSTRAINT_NONE && v->kind != VAR_DATA)) continue;
        if (v->kind == VAR_DATA || (v->kind == VAR_LET && v->rank >= 2)) v->narrow = true;
        for (int j = 0; j < g->nvars && (v->kind == VAR_LATENT || v->kind == VAR_AUXILIARY); j++)
            if (g->vars[j]->kind == VAR_DATA && g->vars[j]->response && g->vars[j]->rank && g->vars[j]->dim[0] == v->dim[0]) v->narrow = true;
    }
    for (const Step *s = g->steps; s; s = s->next)
        for (int i = 0; i < s->nblock; i++)
            if (s->kind == STEP_GAUSSIAN || (s->conditional && s->conditional->array)) s->block[i]->narrow = false;
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
    Program *p = NEW(g->arena, Program);
    p->g = g;
    Writer *w = &p->w;
    w->g = g;
    w->arena = g->arena;
    w->predicted = predicted;
    w->program = p;
    size_t size;
    w->out = open_memstream(&p->kernels, &size);
    choose_types(g);
    plan_rows(p);
    const bool series = emit_series(p);
    int n = 0;
    for (const Step *s = g->steps; s && n < 512; s = s->next, n++) {
        const char *names = "";
        for (int i = 0; i < s->nblock; i++) names = text(w, "%s%s%s", names, i ? ", " : "", s->block[i]->name);
        p->step = s;
        memset(p->there, 0, sizeof p->there);
        p->step_name[n] = text(w, "%s%s", s->imputes ? "missing " : "", names);
        switch (s->kind) {
        case STEP_EXACT:
            if (s->conditional->array) step_array(p, s, n);
            else step_exact(p, s, n);
            break;
        case STEP_OWN: step_own(p, s, n); break;
        case STEP_GAUSSIAN: step_gaussian(p, s, n); break;
        case STEP_ENUM: case STEP_SLICE: {
            Constraint k = s->block[0]->constraint;
            if (k == CONSTRAINT_NONE || k == CONSTRAINT_ORDERED || k == CONSTRAINT_POSITIVE_ORDERED) step_density(p, s, n);
            else step_constrained(p, s, n);
            break;
        }
        }
    }
    p->nsteps = n;
    p->step = NULL;
    emit_derive(p);
    emit_log_joint(p);
    fclose(w->out);
    // Setup comes first in the file, but knows its sums only now.
    char *setup;
    w->out = open_memstream(&setup, &size);
    emit_setup(p);
    emit_predictors(p);
    fclose(w->out);
    Var **state = NEW_N(g->arena, Var *, g->nvars + p->nwork + 1024);
    int nstate = state_fields(p, state);
    emit_banner(p, out, source);
    emit_structs(p, out, state, nstate);
    fputs("#include \"kernels.h\"\n\n", out);
    fputs(setup, out);
    fputs(p->kernels, out);
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
    for (int i = 0; i < n; i++) {
        fprintf(out, "static void step_%d(GmRun *run)            // %s\n{\n%s}\n\n", i + 1, p->step_name[i], p->launches[i] ? p->launches[i] : "");
    }
    fprintf(out, "static void sweep(GmRun *run)\n{\n%s", series ? "    LAUNCH_ONCE(series, run);\n" : "");
    bool imputing = false, responses = false;
    for (const Sum *s = g->sums; s; s = s->next) responses |= reads_response(s);
    int k = 0;
    for (const Step *s = g->steps; s && k < n; s = s->next, k++) {
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
    if (p->norders) fprintf(out, "    %s;\n", team_launch(p, "LAUNCH_SHARED", "groups", p->work_of_groups));
    for (int i = 0; i < p->norders; i++) {
        const Order *o = &p->order[i];
        fprintf(out, "    ORDER_ROWS(run, %s, %s, %s, %s, %s);\n", write_extent(w, o->row->hi), write_extent(w, o->extent), o->keys->name, o->first->name, o->rows->name);
    }
    fprintf(out, "    %s;\n%s    refresh(run);\n}\n\n", team_launch(p, "LAUNCH_SHARED", "sums_of_data", p->work_of_setup[2]), p->grams ? p->grams : "");
    fprintf(out, "static void derive(GmRun *run)\n{\n%s%s    %s;\n}\n\n", series ? "    LAUNCH_ONCE(series, run);\n" : "", passes_before(p, "derived"), p->work_of_derived ? team_launch(p, "LAUNCH_TEAM", "derived", p->work_of_derived) : "LAUNCH_ONCE(derived, run)");
    fprintf(out, "static void joint(GmRun *run)\n{\n%s%s    %s;\n}\n\n", series ? "    LAUNCH_ONCE(series, run);\n" : "", passes_before(p, "log_joint"), p->work_of_joint ? team_launch(p, "LAUNCH_TEAM", "log_joint", p->work_of_joint) : "LAUNCH_ONCE(log_joint, run)");
    fprintf(out, "// ---- what the runtime asks ----\n\n");
    emit_tables(p, out, state, nstate);
    fprintf(out, "static const char *const step_names[] = {");
    for (int i = 0; i < n; i++) fprintf(out, "\"%s\", ", p->step_name[i]);
    fprintf(out, "NULL};\n\nstatic void (*const steps[])(GmRun *) = {");
    for (int i = 0; i < n; i++) fprintf(out, "step_%d, ", i + 1);
    fprintf(out, "NULL};\n\n");
    int ndata = 0;
    for (int i = 0; i < g->nvars; i++) ndata += g->vars[i]->kind == VAR_DATA;
    const char *slash = strrchr(source, '/');
    fprintf(out, "GM_MODEL(\"%s\", \"%s\", %d, %d, %d)\n\n#endif\n", g->model->name ? g->model->name : "model", slash ? slash + 1 : source, ndata, nstate, n);
    free(setup);
    free(p->kernels);
}

// The kernels alone: the comment above each, and its name.
void emit_kernels(FILE *out, Graph *g, const char *source)
{
    static const char *const kinds[] = {"KERNEL(", "KERNEL_TEAM(", "KERNEL_ONCE(", "ROW("};
    char *program;
    size_t size;
    FILE *f = open_memstream(&program, &size);
    emit_program(f, g, source);
    fclose(f);
    char *comment = program, *next;
    bool open = false;
    for (char *line = strstr(program, "#include \"kernels.h\""); line && *line; line = next) {
        next = strchr(line, '\n');
        if (!next) break;
        *next++ = 0;
        if (strncmp(line, "//", 2) == 0) {
            if (!open) comment = line;
            open = true;
        } else {
            bool kernel = false;
            for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) kernel |= strncmp(line, kinds[i], strlen(kinds[i])) == 0;
            if (kernel) {
                for (char *c = comment; open && c < line; c += strlen(c) + 1) fprintf(out, "%s\n", c);
                char *brace = strrchr(line, '{');
                if (brace) *brace = 0;
                fprintf(out, "%s\n\n", line);
            }
            open = false;
        }
    }
    free(program);
}

