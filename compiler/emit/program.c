// program.c -- the emitted program: data, state, a kernel or more per step, the sweep, what the runtime asks.
//
// Needs: a Program (kernel/lower.c).     Gives: CUDA C text that includes runtime/device/gm.h. Nothing is decided here.
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "emit.h"
#include "tables.h"

static void emit_banner(Out *o, const char *source)
{
    fprintf(o->file, "// %s, compiled by gmc.\n//\n// One sweep draws, in this order:\n", source_name(o->arena, source));
    for (const Step *s = o->g->steps; s; s = s->next) {
        const Description *d = s->description;
        const char *when = s->imputes ? ", if values are missing" : s->when == WITH_GRADIENTS ? ", in place of steps for these, where that is better" : s->joint < 0 ? ", where these are not drawn jointly" : "";
        fprintf(o->file, "//   %s%s%s%s     %s\n", d->what, *d->is == ':' ? "" : " ", d->brief, when, source_line(o, s->span));
    }
    fprintf(o->file, "//\n// In kernels d is the data, s the state of one chain, at the place in the run that keys the random numbers.\n");
    fprintf(o->file, "// Subscripts count from 1 in comments, as in the model, and from 0 in the code.\n\n#include \"gm.h\"\n\n");
}

// ---- launches ----

static const char *work_text(Out *o, const Kernel *k)
{
    const char *all = NULL;
    for (int i = 0; i < k->nturns; i++) all = all ? text(o, "%s + %s", all, count_text(o, &k->turns[i])) : count_text(o, &k->turns[i]);
    return all ? all : "1";
}

// Columns of the matrix, outputs of a row, the arrays.
static const char *product_text(Out *o, const Product *r)
{
    const char *coefficients = c_name(o, r->coefficients->name), *X = var_text(o, r->matrix), *p = extent_c(o, r->matrix->dim[1], LOOSE);
    const char *k = r->coefficients->rank == 2 ? extent_c(o, r->coefficients->dim[!r->transposed], LOOSE) : "1";
    const char *macro = r->transposed ? "TIMES_TRANSPOSED" : "TIMES";
    const char *eta = c_name(o, r->eta->name);
    if (!r->out) return text(o, "%s(%s, %s, %s, %s, %s)", macro, p, k, X, coefficients, eta);
    if (r->sums)
        return text(o, "%s_AND_SUMS(%s, %s, %s, %s, %s, %s, %s, %s)", macro, p, k, X, coefficients, eta, c_name(o, r->weight->name), c_name(o, r->out->name), c_name(o, r->sums->name));
    return text(o, "%s_AND_BACK(%s, %s, %s, %s, %s, %s, %s)", macro, p, k, X, coefficients, eta, c_name(o, r->weight->name), c_name(o, r->out->name));
}

static const char *launch_arg(Out *o, const Launch *l, const LaunchArg *a)
{
    switch (a->kind) {
    case ARG_EXTENT: return extent_c(o, a->extent, LOOSE);
    case ARG_COUNT: return count_text(o, &a->count);
    case ARG_WORK: return work_text(o, l->kernel);
    case ARG_PLACE: return var_text(o, a->var);
    case ARG_NAME: return c_name(o, a->var->name);
    case ARG_STREAM: return text(o, o->in_turns ? "GM_STREAM_OF_TURN(run, VAR_%s, turn, %d)" : "VAR_%s", a->var->name, o->nstreams);
    case ARG_FUNCTION: return a->string;
    case ARG_STRING: return text(o, "\"%s\"", a->string);
    case ARG_NUMBER: return number_c(o, a->number);
    case ARG_PRODUCT: return product_text(o, a->product);
    }
    return "";
}

static const char *units_c(Out *o, const Expr *e);

// What draws of scales are rationed by: their competition, the number of the joint normal's sparse factor, and what a sweep and a trial cost.
static const char *rations_text(Out *o, const StepCode *s)
{
    const Step *step = s->step;
    Expr *sweep, *trial;
    cost_of_scales(o->program, s, &sweep, &trial);
    for (int i = 0; i < o->g->nvars; i++) {      // at most: they are not counted in each sweep
        const Var *v = o->g->vars[i];
        if (!v->nrows) continue;
        sweep = ex_replace(sweep, ex_ref(v->rows_counted, 0, NULL), v->dim[0]);
        trial = ex_replace(trial, ex_ref(v->rows_counted, 0, NULL), v->dim[0]);
    }
    return text(o, "%d, %d, %s, %s", step->competition ? step->competition->number : 0, step->gaussian.rows && step->gaussian.rows->told ? step->gaussian.rows->told : step->gaussian.sparse, units_c(o, sweep), units_c(o, trial));
}

static const char *count_of_scale(Out *o, const Var *v) { return v->rank ? extent_c(o, v->dim[0], LOOSE) : "1"; }

// The draws of scales that a step begins with.
static void emit_scales(Out *o, const StepCode *s)
{
    const Step *step = s->step;
    const Scales *of = step->gaussian.scales;
    o->launching = true;
    const char *list = "";
    for (int i = 0; i < of->n; i++) {
        const Var *v = of->var[i];
        const char *lo = isfinite(v->lower_number) ? number_c(o, v->lower_number) : "-INFINITY", *hi = isfinite(v->upper_number) ? number_c(o, v->upper_number) : "INFINITY";
        list = text(o, "%s,\n           {\"%s\", gm_of(%s), %s, %s, %s}", list, v->name, c_name(o, v->name), lo, hi, count_of_scale(o, v));
    }
    line(o, "SCALES(run, %s, VAR_%s, %s, %d, %s%s);", s->density_name, step->proposal ? step->proposal->name->name : step->block[0]->name, s->tuning->name, step->proposal != NULL, rations_text(o, s), list);
    o->launching = false;
}

static void emit_propose(Out *o, const Launch *l)
{
    const Scales *of = l->code->step->gaussian.scales;
    o->launching = true;
    const char *n = "0";
    for (int i = 0; i < of->n; i++) n = i ? text(o, "%s + %s", n, count_of_scale(o, of->var[i])) : count_of_scale(o, of->var[i]);
    line(o, "PROPOSE(run, %s, %s, %s);", c_name(o, l->arg[0].var->name), rations_text(o, l->code), n);
    o->launching = false;
}

static void emit_launch(Out *o, const Launch *l)
{
    static const char *const macro[] = {
#define LAUNCH(id, macro, help) [LAUNCH_##id] = macro,
#include "../kernel/kernel.def"
    };
    if (l->kind == LAUNCH_STOP) {
        line(o, "if (gm_found_fault(run)) return;");
        return;
    }
    if (l->kind == LAUNCH_TURNS) {
        if (l->arg[0].extent->kind != EX_NUM) line(o, "const Data *const d = (const Data *)run->data;");
        o->launching = true;
        begin(o, "for (long turn = 0; turn < %s; turn++)", extent_c(o, l->arg[0].extent, ADDITIVE));
        o->launching = false;
        o->in_turns = true;
        return;
    }
    if (l->kind == LAUNCH_WHERE) {
        line(o, "const Data *const d = (const Data *)run->data;");
        o->launching = true;
        begin(o, "if (%s)", extent_c(o, l->arg[0].extent, LOOSE));
        o->launching = false;
        return;
    }
    if (l->kind == LAUNCH_PROPOSE) {
        emit_propose(o, l);
        return;
    }
    if (l->kind == LAUNCH_ADAPTS) {
        begin(o, "if (ADAPTS(run, %s))", c_name(o, l->arg[0].var->name));
        return;
    }
    if (l->kind == LAUNCH_CHECKED) {
        begin(o, "if (run->checking)");
        o->in_checked = true;
        return;
    }
    if (l->kind == LAUNCH_END) {
        if (!o->in_checked) o->in_turns = false;
        o->in_checked = false;
        end(o);
        return;
    }
    if (l->kind == LAUNCH_SCALES) {
        emit_scales(o, l->code);
        return;
    }
    const char *list = "";
    o->launching = true;
    for (int i = 0; i < l->nargs; i++) {
        const LaunchArg *a = &l->arg[i];
        const char *value = launch_arg(o, l, a);
        if (!a->setting) list = text(o, "%s, %s", list, value);
        else list = text(o, "%s,%s.%s = %s", list, i > 0 && !l->arg[i - 1].setting ? "\n         " : " ", a->setting, value);
    }
    o->launching = false;
    line(o, "%s%s(%s%srun%s);", l->unless_kept ? "if (!run->kept) " : "", macro[l->kind], l->kernel ? l->kernel->name : "", l->kernel ? ", " : "", list);
}

// What a launch is made under, which depends on rows; after `others`, their condition does not hold.
static const char *when_c(Out *o, const Launch *l, bool after_others)
{
    const char *name = l->rows->name;
    switch (l->when) {
    case ALWAYS: return "1";
    case IF_FEW: return text(o, "few_%s(run)", name);
    case IF_MANY: return text(o, "!few_%s(run)", name);
    case IF_SYSTEM: return text(o, after_others ? "few_%s(run)" : "few_%s(run) && !TOLD(%d)", name, l->rows->told);
    case IF_TOLD: return text(o, "TOLD(%d)", l->rows->told);
    case UNLESS_TOLD: return text(o, "!TOLD_ALONE(%d)", l->rows->told);
    }
    return "1";
}

static bool is_otherwise(When when, When before) { return (when == IF_MANY && (before == IF_FEW || before == IF_SYSTEM)) || (when == IF_SYSTEM && before == IF_TOLD); }

// Launches that depend on how many rows there are stand together under their condition.
static void emit_launches_at(Out *o, const Launches *list, int indent)
{
    o->indent = indent;
    int standing_in = 0;                         // the condition that is open
    for (const Launch *l = list->first; l;) {
        if (l->stands_in != standing_in) {
            if (standing_in) end(o);
            if (l->stands_in) begin(o, "if (STANDS_IN(run, %d))", l->stands_in);
            standing_in = l->stands_in;
        }
        if (l->when == ALWAYS) {
            emit_launch(o, l);
            l = l->next;
            continue;
        }
        begin(o, "if (%s)", when_c(o, l, false));
        for (;;) {
            const Launch *one = l;
            for (; l && l->when == one->when && l->rows == one->rows; l = l->next) emit_launch(o, l);
            if (!l || l->rows != one->rows || !is_otherwise(l->when, one->when)) break;
            o->indent--;
            o->depth--;
            begin(o, l->when == IF_MANY ? "} else" : "} else if (%s)", when_c(o, l, true));
        }
        end(o);
    }
    if (standing_in) end(o);
    o->indent = 0;
}

static void emit_launches(Out *o, const Launches *list) { emit_launches_at(o, list, 1); }

static void begin_function(Out *o, const char *name, const char *comment)
{
    fprintf(o->file, "static void %s(GmRun *run)%s\n{\n", name, comment);
}

static void emit_row_sizes(Out *o, const Program *p)
{
    Count bytes = {2, {(Expr *)p->row_bytes[0], (Expr *)p->row_bytes[1]}};
    o->launching = true;
    if (p->row_bytes[0])
        fprintf(o->file, "// Bytes of the rows that a row pass reads.\nstatic double row_bytes(const GmRun *run)\n{\n    const Data *const d = (const Data *)run->data;\n    return (double)sizeof(real) * %s * %s;\n}\n\n",
                extent_c(o, bytes.factor[0], TIGHT), extent_c(o, bytes.factor[1], TIGHT));
    o->launching = false;
    if (p->row_width)
        fprintf(o->file, "// Their columns.\nstatic long row_width(const void *data)\n{\n    const Data *const d = (const Data *)data;\n    (void)d;\n    return %s;\n}\n\n",
                p->row_widths ? "-1" : extent_c(o, p->row_width, LOOSE));
    o->launching = true;
    for (const Step *s = o->g->steps; s; s = s->next)
        if (s->kind == STEP_GAUSSIAN && s->gaussian.rows)
            fprintf(o->file, "// Whether there are fewer rows than coefficients%s.\nstatic int few_%s(const GmRun *run)\n{\n    const Data *const d = (const Data *)run->data;\n    return %s;\n}\n\n",
                    s->gaussian.rows->told ? ", or rows are told one by one" : "", s->gaussian.rows->name, few_c(o, s->gaussian.rows));
    o->launching = false;
}

static bool constant(const Count *c)
{
    for (int i = 0; i < c->n; i++)
        if (c->factor[i]->kind != EX_NUM) return false;
    return true;
}

// A step that launches one kernel, whatever the data: its row in the table of steps says all.
static bool one_kernel(const StepCode *s)
{
    const Launch *l = s->launches.first;
    if (s->step->when != EVERY_SWEEP || s->step->joint || (s->step->joined && s->step->joined->where) || !l || l->next || l->when != ALWAYS || (l->kind != LAUNCH_TEAM && l->kind != LAUNCH_ONCE)) return false;
    for (int i = 0; i < l->nargs; i++) {
        if (l->arg[i].kind != ARG_WORK) return false;
        for (int k = 0; k < l->kernel->nturns; k++)
            if (!constant(&l->kernel->turns[k])) return false;
    }
    return true;
}

// Sizes say whether unknowns are drawn together or in turn.
static void emit_where_joined(Out *o, const Step *s)
{
    const Joined *j = s->joined;
    if (!j || !j->where) return;
    o->launching = true;
    fprintf(o->file, "    const Data *const d = (const Data *)run->data;\n    (void)d;\n    if (%s(TAKES_GPU_STEPS(run) ? %s : %s)) return;\n", s->nblock > 1 ? "!" : "", expr_c(o, j->on_gpu, TIGHT), expr_c(o, j->where, TIGHT));
    o->launching = false;
}

static void emit_steps(Out *o, const Program *p)
{
    static const char *const macro[] = {[EVERY_SWEEP] = "STEP", [WITHOUT_GRADIENTS] = "STEP_WITHOUT_GRADIENTS", [WITH_GRADIENTS] = "STEP_WITH_GRADIENTS", [ON_CPU] = "STEP_ON_CPU", [ON_GPU] = "STEP_ON_GPU"};
    for (int i = 0; i < p->nsteps; i++) {
        if (one_kernel(&p->steps[i])) continue;
        if (p->steps[i].density.first) {
            begin_function(o, p->steps[i].density_name, "");
            emit_launches(o, &p->steps[i].density);
            fprintf(o->file, "}\n\n");
        }
        if (p->steps[i].jacobian.first) {
            begin_function(o, p->steps[i].jacobian_name, "");
            emit_launches(o, &p->steps[i].jacobian);
            fprintf(o->file, "}\n\n");
        }
        begin_function(o, text(o, "step_%d", i + 1), text(o, "            // %s", p->steps[i].name));
        emit_where_joined(o, p->steps[i].step);
        emit_launches(o, &p->steps[i].launches);
        fprintf(o->file, "}\n\n");
    }
    fprintf(o->file, "// What each step draws, and what it launches.\nstatic const GmStep steps[] = {\n");
    for (int i = 0; i < p->nsteps; i++) {
        const Launch *l = p->steps[i].launches.first;
        const Step *s = p->steps[i].step;
        if (s->joint && s->competition) fprintf(o->file, "    STEP_JOINT_WITHOUT_GRADIENTS(\"%s\", step_%d, %d, %d),\n", p->steps[i].name, i + 1, s->competition->number, s->joint);
        else if (s->joint) fprintf(o->file, "    STEP_JOINT(\"%s\", step_%d, %d),\n", p->steps[i].name, i + 1, s->joint);
        else if (s->competition) fprintf(o->file, "    %s(\"%s\", step_%d, %d),\n", macro[s->when], p->steps[i].name, i + 1, s->competition->number);
        else if (s->when != EVERY_SWEEP) fprintf(o->file, "    %s(\"%s\", step_%d),\n", macro[s->when], p->steps[i].name, i + 1);
        else if (!one_kernel(&p->steps[i])) fprintf(o->file, "    %s(\"%s\", step_%d),\n", s->kind == STEP_NUTS ? "STEP_MOVE" : "STEP", p->steps[i].name, i + 1);
        else if (l->kind == LAUNCH_TEAM) fprintf(o->file, "    STEP_TEAM(\"%s\", %s, %s),\n", p->steps[i].name, l->kernel->name, work_text(o, l->kernel));
        else fprintf(o->file, "    STEP_ONCE(\"%s\", %s),\n", p->steps[i].name, l->kernel->name);
    }
    fprintf(o->file, "%s};\n\n", p->nsteps ? "" : "    {0},\n");
}

static bool has_derive(const Program *p) { return p->before.first || p->log_lik.first || p->replicates.first || p->derive.first; }

// A function with its launches, if there are any.
static bool emit_stage(Out *o, const char *name, const char *comment, const Launches *before, const Launches *list)
{
    if (!list->first && !(before && before->first)) return false;
    begin_function(o, name, comment);
    if (before) emit_launches(o, before);
    emit_launches(o, list);
    fprintf(o->file, "}\n\n");
    return true;
}

static void emit_request(Out *o, const char *flag, const Launches *list)
{
    if (!list->first) return;
    fprintf(o->file, "    if (run->requests & %s) {\n", flag);
    emit_launches_at(o, list, 2);
    fprintf(o->file, "    }\n");
}

// Quantities for the draws; before them, what runs ask for.
static void emit_derive(Out *o, const Program *p)
{
    if (!has_derive(p)) return;
    begin_function(o, "derive", "");
    emit_launches(o, &p->before);
    emit_request(o, "GM_LOG_LIK", &p->log_lik);
    emit_request(o, "GM_REPLICATES", &p->replicates);
    emit_launches(o, &p->derive);
    fprintf(o->file, "}\n\nGM_FOR_DRAWS(derive)\n\n");
}

static void emit_sweep(Out *o, const Program *p)
{
    emit_steps(o, p);
    bool keeps = false;
    for (int i = 0; i < p->nsteps; i++) keeps |= p->steps[i].made.first != NULL;
    int expects = 0;
    while (expects < p->nsteps && p->steps[expects].step->does == EXPECTS) expects++;
    if (o->g->method == METHOD_EM) {
        begin_function(o, "expect", "      // expectations, and what the log density reads of them");
        emit_launches(o, &p->before);
        if (expects) fprintf(o->file, "    take_steps(run, steps, %d);\n", expects);
        fprintf(o->file, "}\n\nGM_FOR_DRAWS(expect)\n\n");
    }
    begin_function(o, "sweep", o->g->method == METHOD_EM ? "      // maximises, then finds the expectations where that has led" : "");
    if (keeps) fprintf(o->file, "    run->kept = 1;\n");
    emit_launches(o, &p->before);
    for (int i = o->g->method == METHOD_EM ? expects : 0, next; i < p->nsteps; i = next) {
        const bool imputes = p->steps[i].step->imputes;
        for (const Launch *l = p->steps[i].again ? p->again.first : NULL; l; l = l->next) {
            fprintf(o->file, "    if (ANY_MISSING(run)) ");
            emit_launch(o, l);
        }
        emit_launches(o, &p->steps[i].made);
        for (next = i + 1; next < p->nsteps && p->steps[next].step->imputes == imputes && !(p->steps[next].again && p->again.first) && !p->steps[next].made.first;) next++;
        fprintf(o->file, "    %stake_steps(run, %s, %d);%s%s\n", imputes ? "if (ANY_MISSING(run)) " : "", i ? text(o, "&steps[%d]", i) : "steps", next - i,
                next - i == 1 ? "      // " : "", next - i == 1 ? p->steps[i].name : "");
    }
    if (keeps) fprintf(o->file, "    run->kept = 0;\n");
    if (o->g->method == METHOD_EM) fprintf(o->file, "    expect(run);\n");
    fprintf(o->file, "}\n\n");
    emit_stage(o, "refresh", "      // after missing values were drawn", NULL, &p->refresh);
    begin_function(o, "setup", "");
    emit_launches(o, &p->prepare);
    if (p->refresh.first) fprintf(o->file, "    refresh(run);\n");
    emit_launches(o, &p->finish);
    fprintf(o->file, "}\n\n");
    emit_derive(o, p);
    if (emit_stage(o, "restore", "", NULL, &p->restore)) fprintf(o->file, "GM_FOR_DRAWS(restore)\n\n");
    emit_stage(o, "joint", "", &p->before, &p->joint);
}

// A number of multiply-adds, in doubles: sums of products of sizes.
static const char *units_c(Out *o, const Expr *e)
{
    const char *all = NULL;
    switch (e->kind) {
    case EX_NUM: return text(o, "%.6g", e->number);
    case EX_ADD: case EX_MUL:
        for (int i = 0; i < e->nargs; i++) {
            const char *one = units_c(o, e->args[i]);
            all = all ? text(o, e->kind == EX_ADD ? "%s + %s" : "%s * %s", all, one) : one;
        }
        return e->kind == EX_ADD ? text(o, "(%s)", all) : all;
    case EX_POW: {
        const char *base = units_c(o, e->args[0]);
        if (e->number == 2 || e->number == 3) return text(o, e->number == 2 ? "%s * %s" : "%s * %s * %s", base, base, base);
        return text(o, "pow(fmax(%s, 1), %g)", base, e->number);
    }
    case EX_REF:
        if (e->var->counts_rows) return c_name(o, e->var->name);
        return text(o, "(double)%s", extent_c(o, e, TIGHT));
    default: return text(o, "(double)%s", extent_c(o, e, TIGHT));
    }
}

// How many different rows of data there are, where chains with the same data are summed over once.
static void emit_counted_rows(Out *o, const Expr *number)
{
    for (int i = 0; i < o->g->nvars; i++) {
        const Var *v = o->g->vars[i];
        if (!v->nrows || !ex_mentions(number, v->rows_counted)) continue;
        fprintf(o->file, "    const double %s = gm_different_rows(%s, %d, (const GmDataRows[]){", c_name(o, v->rows_counted->name), extent_c(o, v->dim[0], LOOSE), v->nrows);
        for (int k = 0; k < v->nrows; k++) {
            const char *name = c_name(o, v->rows[k]->name);
            fprintf(o->file, "%s{d->%s, sizeof *d->%s * (size_t)(%s)}", k ? ", " : "", name, name, v->rows[k]->rank == 2 ? extent_c(o, v->rows[k]->dim[1], LOOSE) : "1");
        }
        fprintf(o->file, "});\n");
    }
}

// What it takes to draw all scales with their joint normals integrated out, in every sweep, each by as many trials as is usual (GM_SCALES_FEW_TRIALS).
static void emit_cost_of_scales(Out *o, const Program *p, const Competition *c)
{
    for (int i = 0; i < p->nsteps; i++) {
        const Step *s = p->steps[i].step;
        const Scales *of = s->kind == STEP_GAUSSIAN ? s->gaussian.scales : NULL;
        Expr *sweep, *trial;
        if (!of || s->proposal || s->joint < 0 || s->when == ON_GPU || (c && s->competition && s->competition != c)) continue;
        const char *n = "";
        for (int k = 0; k < of->n; k++) n = text(o, "%s%s%s", n, k ? " + " : "", of->var[k]->rank ? units_c(o, of->var[k]->dim[0]) : "1");
        cost_of_scales(p, &p->steps[i], &sweep, &trial);
        const char *all = s->joint > 0 ? text(o, "(%s + 0.6 * gm_sparse_time(%d))", units_c(o, trial), s->joint) : units_c(o, trial);
        fprintf(o->file, "    cost[9] += GM_SCALES_FEW_TRIALS * (%s) * %s;\n", n, all);
    }
}

// What a competition costs, or, c being NULL, the whole program: numbers as GmCompetition has them.
static void emit_cost(Out *o, const Program *p, const Competition *c)
{
    FILE *out = o->file;
    const CompetitionCost cost = cost_of_competition(p, c);
    const bool moves = o->g->competitions != NULL;       // else there is one way to make a sweep
    fprintf(out, "static void cost_%d(const void *data, double *cost)\n{\n    const Data *const d = (const Data *)data;\n    (void)d;\n", c ? c->number : 0);
    Expr *const number[] = {cost.steps, cost.move, cost.evaluation, cost.on_gpu.steps.alone, cost.on_gpu.steps.work, cost.on_gpu.move.alone, cost.on_gpu.move.work, cost.on_gpu.evaluation.alone, cost.on_gpu.evaluation.work};
    Expr *all = ex_add(9, (Expr **)number);  // and what may take the place of some
    for (const Step *s = o->g->steps; s; s = s->next) {
        const CostOnGpu others = s->joint > 0 ? cost_standing_in(p, s->joint) : (CostOnGpu){ex_num(0), ex_num(0)};
        const Rows *r = s->kind == STEP_GAUSSIAN ? s->gaussian.rows : NULL;
        const CompetitionCost told = r && r->told ? cost_where_told(p, c) : cost;
        all = ex_add(5, (Expr *[]){all, others.alone, others.work, told.steps, told.move});
    }
    emit_counted_rows(o, all);
    for (int i = 0; i < 9; i++)
        if (moves || i == 0 || i == 3 || i == 4) fprintf(out, "    cost[%d] = %s;\n", i, units_c(o, number[i]));
    for (const Step *s = o->g->steps; s; s = s->next) {          // what data alone tell
        if (s->joint <= 0 || (c && s->competition && s->competition != c)) continue;
        fprintf(out, "    cost[0] += 0.6 * gm_sparse_time(%d);\n", s->joint);
        if (moves && !s->competition) fprintf(out, "    cost[1] += 0.6 * gm_sparse_time(%d);\n", s->joint);
        const CostOnGpu others = cost_standing_in(p, s->joint);
        fprintf(out, "    if (gm_sparse_taken(%d)) {                      // in place of steps that stand in: three launches and what the flow of tiles takes, of multiply-adds that wait for each other some 4 ns\n", s->joint);
        for (int move = 0; move <= (moves && !s->competition); move++) {
            fprintf(out, "        cost[%d] += 2250 + 0.25 * gm_sparse_time(%d) - (%s);\n", 3 + 2 * move, s->joint, units_c(o, others.alone));
            fprintf(out, "        cost[%d] -= %s;\n", 4 + 2 * move, units_c(o, others.work));
        }
        fprintf(out, "    }\n");
    }
    for (const Step *s = o->g->steps; s; s = s->next) {
        const Rows *r = s->kind == STEP_GAUSSIAN && (!c || !s->competition || s->competition == c) ? s->gaussian.rows : NULL;
        if (!r || !r->told) continue;
        const CompetitionCost told = cost_where_told(p, c);
        fprintf(out, "    if (gm_rows_told(%d)) {\n        cost[0] = %s + 0.6 * gm_sparse_time(%d);\n", r->told, units_c(o, told.steps), r->told);
        if (moves && !s->competition) fprintf(out, "        cost[1] = %s + 0.6 * gm_sparse_time(%d);\n", units_c(o, told.move), r->told);
        for (int i = 0; i < p->nsteps; i++)
            if (c && p->steps[i].step->competition == c && p->steps[i].waits_for) {
                fprintf(out, "        cost[2] = INFINITY;      // it reads X'X, which is not made\n");
                break;
            }
        fprintf(out, "    }\n");
    }
    emit_cost_of_scales(o, p, c);
    fprintf(out, "}\n\n");
}

static const char only[] = "What a sweep costs, by which a run takes a GPU or the CPU (--device auto)";

// What a sweep costs. Where one competition holds all moves, its table does; the number of the function.
static int emit_costs(Out *o, const Program *p)
{
    bool asked = false;
    for (const Step *s = o->g->steps; s; s = s->next) asked |= s->kind == STEP_NUTS && !s->competition;
    if (o->g->competitions) fprintf(o->file, "// Unknowns that may be drawn step by step or moved together along gradients, and what that costs in multiply-adds: a sweep by steps; a move, and each evaluation of its density.\n"
                 "// On a GPU each of these is two numbers: what takes its time whatever the number of chains, and the work of a chain.\n");
    for (const Competition *c = o->g->competitions; c; c = c->next) emit_cost(o, p, c);
    if (o->g->competitions && !o->g->competitions->next && !asked) return o->g->competitions->number;
    fprintf(o->file, o->g->competitions ? "// %s: the same of all together.\n" : "// %s, in multiply-adds: [0] on the CPU; on a GPU [3] what takes\n// its time whatever the number of chains, [4] the work of a chain.\n", only);
    emit_cost(o, p, NULL);
    return 0;
}

// What competes, and what a run needs to know to choose.
static bool emit_competitions(Out *o, const Program *p, const Var *const *state, int nstate)
{
    FILE *out = o->file;
    if (!o->g->competitions) return false;
    for (const Competition *c = o->g->competitions; c; c = c->next) {
        fprintf(out, "static const int fields_%d[] = {", c->number);
        for (int i = 0; i < nstate; i++)
            for (int k = 0; k < c->n; k++)
                if (c->block[k] == state[i]) fprintf(out, "%d, ", 1 + i);
        fprintf(out, "0}, latents_%d[] = {", c->number);
        for (const Step *s = o->g->steps; s; s = s->next)
            for (int i = 0; i < nstate && s->competition == c && s->when == WITHOUT_GRADIENTS; i++)
                if (s->block[0]->kind == VAR_AUXILIARY && !s->orbit && state[i] == s->block[0]) fprintf(out, "%d, ", 1 + i);
        fprintf(out, "0};\n");
    }
    fprintf(out, "\nstatic const GmCompetition competitions[] = {\n");
    for (const Competition *c = o->g->competitions; c; c = c->next) {
        const char *names = "";
        for (int k = 0; k < c->n; k++) names = text(o, "%s%s%s", names, k ? ", " : "", c->block[k]->name);
        const Var *told = NULL, *machine = NULL;
        for (int i = 0; i < p->nsteps; i++)
            for (const Launch *l = p->steps[i].step->competition == c ? p->steps[i].launches.first : NULL; l; l = l->next)
                for (int a = 0; a < l->nargs && l->kind == LAUNCH_NUTS; a++)
                    if (l->arg[a].kind == ARG_NAME) {
                        if (!machine) machine = l->arg[a].var;                   // the first one
                        told = l->arg[a].var;                                    // the last one
                    }
        int at = 0, kept = 0;
        while (state[at] != told) at++;
        while (state[kept] != machine) kept++;
        fprintf(out, "    {.name = \"%s\", .coupled = %d, .fields = fields_%d, .told = %d, .machine = %d, .latents = latents_%d, .cost = cost_%d},\n", names, c->coupled, c->number, 1 + at, 1 + kept, c->number, c->number);
    }
    fprintf(out, "};\n\n");
    return true;
}

// Members of gm_model that the model has a use for, in their order.
static const char *optional_members(Out *o, const Program *p)
{
    const char *all = "";
    if (has_derive(p)) all = ", .derive = gm_derive, .derive_chain = derive";
    if (p->restore.first) all = text(o, "%s, .restore = gm_restore, .restore_chain = restore", all);
    if (p->refresh.first) all = text(o, "%s, .refresh = refresh", all);
    if (p->row_bytes[0]) all = text(o, "%s, .row_bytes = row_bytes", all);
    if (p->row_width) all = text(o, "%s, .row_width = row_width", all);
    const char *together = NULL;
    for (const Step *s = p->g->steps; s; s = s->next)
        for (int i = 0; s->kind == STEP_NUTS && s->nuts.chees && i < s->nblock; i++) together = together ? text(o, "%s, %s", together, s->block[i]->name) : s->block[i]->name;
    if (together) all = text(o, "%s, .by_chees = \"%s\"", all, together);
    if (p->g->method == METHOD_EM) all = text(o, "%s, .for_modes = 1, .expect = gm_expect, .expect_chain = expect, .iterate_chain = sweep", all);
    const char *cpu = only_on_cpu(p->g);
    if (cpu) all = text(o, "%s, .cpu_only = \"%s\"", all, cpu);
    return all;
}

// Whether the program launches something of these kinds: what it does not, its image for GPUs does without.
static bool launches_any(const Program *p, LaunchKind first, LaunchKind last)
{
    const Launches *const other[] = {&p->before, &p->prepare, &p->refresh, &p->again, &p->finish, &p->derive, &p->restore, &p->joint, &p->log_lik, &p->replicates};
    const int nother = (int)(sizeof other / sizeof *other);
    for (int i = 0; i < nother + 3 * p->nsteps; i++) {
        const StepCode *s = i < nother ? NULL : &p->steps[(i - nother) / 3];
        const Launches *list = !s ? other[i] : (i - nother) % 3 == 0 ? &s->launches : (i - nother) % 3 == 1 ? &s->density : &s->jacobian;
        for (const Launch *l = list->first; l; l = l->next)
            if (l->kind >= first && l->kind <= last) return true;
    }
    return false;
}

void emit_program(FILE *out, const Program *p, const char *source)
{
    const Graph *g = p->g;
    Out *o = NEW(g->arena, Out);
    char *program;
    size_t length;
    FILE *file = open_memstream(&program, &length);
    o->program = p;
    o->g = g;
    o->arena = o->scope.arena = g->arena;
    o->scope.g = g;
    o->file = file;
    int nsums = 0, ndata = 0;
    for (const Sum *s = p->sums; s; s = s->next) nsums++;
    const Var **state = NEW_N(g->arena, const Var *, g->nvars + p->nwork + nsums + 1);
    const int nstate = state_fields(p, state);
    o->nstreams = nstate + 1;
    emit_banner(o, source);
    emit_structs(o, p, state, nstate);
    for (const Step *s = g->steps; s; s = s->next)
        if (s->kind == STEP_NUTS) {
            fputs("#define GM_MOVES             // along gradients\n", file);
            break;
        }
    if (launches_any(p, LAUNCH_NORMAL_DENSE, LAUNCH_NORMAL_ROWS_SCALED)) fputs("#define GM_JOINT_NORMALS     // drawn by kernels of the runtime\n", file);
    if (launches_any(p, LAUNCH_PATTERN, LAUNCH_PATTERN)) fputs("#define GM_SPARSE_NORMALS    // and of those whose precision has few entries\n", file);
    if (launches_any(p, LAUNCH_WEIGHTED_GRAM, LAUNCH_WEIGHTED_GRAM)) fputs("#define GM_WEIGHTED_GRAMS    // made by them\n", file);
    if (g->method == METHOD_EM) fputs("#define GM_MODES             // no draws: joint normals are at their means\n", file);
    fputs("#include \"kernels.h\"\n", file);
    bool chains = false, states = false;
    for (const Step *s = g->steps; s; s = s->next) {
        chains |= s->kind == STEP_GAUSSIAN && s->gaussian.band;
        states |= s->at_once;
    }
    if (chains) fputs("#include \"band.h\"\n", file);
    if (links_apart(g)) fputs("#define GM_STATES_TOGETHER   // of several unknowns\n", file);
    if (states) fputs("#include \"states.h\"\n", file);
    fputs(g->method == METHOD_EM ? "#include \"modes.h\"\n\n" : "\n", file);
    for (const Kernel *k = p->setup.first; k; k = k->next) emit_kernel(o, k);
    bool competing = false;
    for (const Kernel *k = p->sweep.first; k; k = k->next) {
        const bool moves = k->step && k->step->when == WITH_GRADIENTS;
        if (moves && !competing) fprintf(file, "// ---- what competes with these steps: the same unknowns, moved together along gradients ----\n\n");
        if (!moves && competing) fprintf(file, k->step ? "// ---- after either ----\n\n" : "// ---- for the draws ----\n\n");
        competing = moves;
        emit_kernel(o, k);
    }
    scope_leave(&o->scope, 0);
    o->nnamed = 0;
    fprintf(file, "#ifndef __CUDACC_RTC__       // what follows runs on the host\n\n// ---- the sweep ----\n\n");
    emit_row_sizes(o, p);
    emit_sweep(o, p);
    fprintf(file, "// ---- what the runtime asks ----\n\n");
    const char *members = emit_tables(o, p, state, nstate);
    if (emit_factors(o)) members = text(o, "%s, .factors = factors, .definitions = of_factors", members);
    for (int i = 0; i < g->nvars; i++) ndata += g->vars[i]->kind == VAR_DATA;
    if (emit_observed(o, p, state, nstate)) members = text(o, "%s, .observed = observed", members);
    if (emit_labels(o, p, state, nstate)) members = text(o, "%s, .labels = labels", members);
    const int costs = emit_costs(o, p);
    if (emit_competitions(o, p, state, nstate)) members = text(o, "%s, .competitions = competitions, .n_competitions = (int)(sizeof competitions / sizeof *competitions)", members);
    members = text(o, "%s%s, .cost = cost_%d", optional_members(o, p), members, costs);
    fprintf(file, "GM_MODEL(\"%s\", \"%s\", %d, %d, %d%s%s)\n\n#endif\n", g->model->name ? g->model->name : "model", source_name(o->arena, source), ndata, nstate, p->nsteps,
            *members ? ",\n         " : "", *members ? members + 2 : "");
    fclose(file);
    write_named(out, g->arena, program);
    free(program);
}

// The kernels alone: the comment above each, and its name.
void emit_kernels(FILE *file, const Program *p)
{
    Out o = {.program = p, .g = p->g, .arena = p->g->arena, .file = file};
    for (const Kernel *k = p->setup.first; k; k = k->next) emit_header(&o, k, "\n\n");
    for (const Kernel *k = p->sweep.first; k; k = k->next)
        if (k->kind != KERNEL_FUNCTION && k->kind != KERNEL_PART) emit_header(&o, k, "\n\n");
}
