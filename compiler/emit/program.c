// program.c -- the emitted program: data, state, a kernel or more per step, the sweep, what the runtime asks.
//
// Needs: a Program, complete (kernel/complete.c).     Gives: CUDA C text that includes runtime/device/gm.h. Nothing is decided here.
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
static const char *rations_text(Out *o, const Ration *r) { return text(o, "%d, %d, %s, %s", r->competition, r->sparse, units_c(o, r->sweep), units_c(o, r->trial)); }

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
    line(o, "SCALES(run, %s, VAR_%s, %s, %d, %s%s);", s->density_name, step->proposal ? step->proposal->name->name : step->block[0]->name, s->tuning->name, step->proposal != NULL, rations_text(o, &s->ration), list);
    o->launching = false;
}

static void emit_propose(Out *o, const Launch *l)
{
    const Scales *of = l->code->step->gaussian.scales;
    o->launching = true;
    const char *n = "0";
    for (int i = 0; i < of->n; i++) n = i ? text(o, "%s + %s", n, count_of_scale(o, of->var[i])) : count_of_scale(o, of->var[i]);
    line(o, "PROPOSE(run, %s, %s, %s);", c_name(o, l->arg[0].var->name), rations_text(o, &l->code->ration), n);
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
    while (expects < p->nsteps && p->steps[expects].step->expects) expects++;
    if (o->g->by_em) {
        begin_function(o, "expect", "      // expectations, and what the log density reads of them");
        emit_launches(o, &p->before);
        if (expects) fprintf(o->file, "    take_steps(run, steps, %d);\n", expects);
        fprintf(o->file, "}\n\nGM_FOR_DRAWS(expect)\n\n");
    }
    begin_function(o, "sweep", o->g->by_em ? "      // maximises, then finds the expectations where that has led" : "");
    if (keeps) fprintf(o->file, "    run->kept = 1;\n");
    emit_launches(o, &p->before);
    for (int i = o->g->by_em ? expects : 0, next; i < p->nsteps; i = next) {
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
    if (o->g->by_em) fprintf(o->file, "    expect(run);\n");
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
static void emit_counted_rows(Out *o, const Var *v)
{
    fprintf(o->file, "    const double %s = gm_different_rows(%s, %d, (const GmDataRows[]){", c_name(o, v->rows_counted->name), extent_c(o, v->dim[0], LOOSE), v->nrows);
    for (int k = 0; k < v->nrows; k++) {
        const char *name = c_name(o, v->rows[k]->name);
        fprintf(o->file, "%s{d->%s, sizeof *d->%s * (size_t)(%s)}", k ? ", " : "", name, name, v->rows[k]->rank == 2 ? extent_c(o, v->rows[k]->dim[1], LOOSE) : "1");
    }
    fprintf(o->file, "});\n");
}

// What it takes to draw scales with their joint normals integrated out, in every sweep, each by as many trials as is usual (GM_SCALES_FEW_TRIALS).
static void emit_price_of_scales(Out *o, const ScalesPrice *s)
{
    const Scales *of = s->scales;
    const char *n = "", *trial = units_c(o, s->trial);
    for (int k = 0; k < of->n; k++) n = text(o, "%s%s%s", n, k ? " + " : "", of->var[k]->rank ? units_c(o, of->var[k]->dim[0]) : "1");
    if (s->sparse) trial = text(o, "(%s + %g * gm_sparse_time(%d))", trial, SPARSE_SHARE, s->sparse);
    fprintf(o->file, "    cost[9] += GM_SCALES_FEW_TRIALS * (%s) * %s;\n", n, trial);
}

static void emit_price_of_sparse(Out *o, const SparsePrice *s)
{
    FILE *out = o->file;
    for (int way = 0; way <= s->both_ways; way++) fprintf(out, "    cost[%d] += %g * gm_sparse_time(%d);\n", way, SPARSE_SHARE, s->number);
    fprintf(out, "    if (gm_sparse_taken(%d)) {                      // in place of steps that stand in: three launches and what the flow of tiles takes, of multiply-adds that wait for each other some 4 ns\n", s->number);
    for (int way = 0; way <= s->both_ways; way++) {
        fprintf(out, "        cost[%d] += %d + %g * gm_sparse_time(%d) - (%s);\n", 3 + 2 * way, SPARSE_LAUNCHES_GPU, SPARSE_SHARE_GPU, s->number, units_c(o, s->standing_in.alone));
        fprintf(out, "        cost[%d] -= %s;\n", 4 + 2 * way, units_c(o, s->standing_in.work));
    }
    fprintf(out, "    }\n");
}

static void emit_price_where_told(Out *o, const SparsePrice *s)
{
    FILE *out = o->file;
    fprintf(out, "    if (gm_rows_told(%d)) {\n", s->number);
    for (int way = 0; way <= s->both_ways; way++) fprintf(out, "        cost[%d] = %s + %g * gm_sparse_time(%d);\n", way, units_c(o, way ? s->move : s->steps), SPARSE_SHARE, s->number);
    if (s->no_move) fprintf(out, "        cost[2] = INFINITY;      // it reads X'X, which is not made\n");
    fprintf(out, "    }\n");
}

static void emit_price(Out *o, const Price *p)
{
    fprintf(o->file, "static void cost_%d(const void *data, double *cost)\n{\n    const Data *const d = (const Data *)data;\n    (void)d;\n", p->number);
    for (int i = 0; i < p->ncounted; i++) emit_counted_rows(o, p->counted[i]);
    for (int i = 0; i < NUMBERS_OF_COST; i++)
        if (p->of[i]) fprintf(o->file, "    cost[%d] = %s;\n", i, units_c(o, p->of[i]));
    for (const SparsePrice *s = p->sparse; s; s = s->next) emit_price_of_sparse(o, s);
    for (const SparsePrice *s = p->told; s; s = s->next) emit_price_where_told(o, s);
    for (const ScalesPrice *s = p->scales; s; s = s->next) emit_price_of_scales(o, s);
    fprintf(o->file, "}\n\n");
}

static const char only[] = "What a sweep costs, by which a run takes a GPU or the CPU (--device auto)";

// What a sweep costs; the number of the function that says so of all of it.
static int emit_prices(Out *o, const Program *p)
{
    if (p->contests) fprintf(o->file, "// Unknowns that may be drawn step by step or moved together along gradients, and what that costs in multiply-adds: a sweep by steps; a move, and each evaluation of its density.\n"
                 "// On a GPU each of these is two numbers: what takes its time whatever the number of chains, and the work of a chain.\n");
    for (const Price *c = p->prices;; c = c->next) {
        if (!c->number) fprintf(o->file, p->contests ? "// %s: the same of all together.\n" : "// %s, in multiply-adds: [0] on the CPU; on a GPU [3] what takes\n// its time whatever the number of chains, [4] the work of a chain.\n", only);
        emit_price(o, c);
        if (!c->next) return c->number;
    }
}

// What competes, and what a run needs to know to choose.
static bool emit_contests(Out *o, const Program *p)
{
    FILE *out = o->file;
    if (!p->contests) return false;
    for (const Contest *c = p->contests; c; c = c->next) {
        fprintf(out, "static const int fields_%d[] = {", c->of->number);
        for (int i = 0; i < p->nstate; i++)
            for (int k = 0; k < c->of->n; k++)
                if (c->of->block[k] == p->state[i].var) fprintf(out, "%d, ", 1 + i);
        fprintf(out, "0}, latents_%d[] = {", c->of->number);
        for (int i = 0; i < c->nlatents; i++) fprintf(out, "%d, ", 1 + field_of(p->state, p->nstate, c->latent[i]));
        fprintf(out, "0};\n");
    }
    fprintf(out, "\nstatic const GmCompetition competitions[] = {\n");
    for (const Contest *c = p->contests; c; c = c->next) {
        const int number = c->of->number, told = field_of(p->state, p->nstate, c->diagnostics), kept = field_of(p->state, p->nstate, c->machine);
        const char *names = "";
        for (int k = 0; k < c->of->n; k++) names = text(o, "%s%s%s", names, k ? ", " : "", c->of->block[k]->name);
        fprintf(out, "    {.name = \"%s\", .coupled = %d, .fields = fields_%d, .told = %d, .machine = %d, .latents = latents_%d, .cost = cost_%d},\n", names, c->of->coupled, number, 1 + told, 1 + kept, number, number);
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
    if (p->g->by_em) all = text(o, "%s, .for_modes = 1, .expect = gm_expect, .expect_chain = expect, .iterate_chain = sweep", all);
    if (p->cpu_only) all = text(o, "%s, .cpu_only = \"%s\"", all, p->cpu_only);
    return all;
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
    o->nstreams = p->nstate + 1;
    emit_banner(o, source);
    emit_structs(o, p);
    if (p->uses.moves) fputs("#define GM_MOVES             // along gradients\n", file);
    if (p->uses.normals) fputs("#define GM_JOINT_NORMALS     // drawn by kernels of the runtime\n", file);
    if (p->uses.patterns) fputs("#define GM_SPARSE_NORMALS    // and of those whose precision has few entries\n", file);
    if (p->uses.grams) fputs("#define GM_WEIGHTED_GRAMS    // made by them\n", file);
    if (g->by_em) fputs("#define GM_MODES             // no draws: joint normals are at their means\n", file);
    fputs("#include \"kernels.h\"\n", file);
    if (p->uses.bands) fputs("#include \"band.h\"\n", file);
    if (p->uses.links) fputs("#define GM_STATES_TOGETHER   // of several unknowns\n", file);
    if (p->uses.states) fputs("#include \"states.h\"\n", file);
    fputs(g->by_em ? "#include \"modes.h\"\n\n" : "\n", file);
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
    const char *members = emit_tables(o, p);
    if (emit_factors(o)) members = text(o, "%s, .factors = factors, .definitions = of_factors", members);
    if (emit_observed(o, p)) members = text(o, "%s, .observed = observed", members);
    if (emit_labels(o, p)) members = text(o, "%s, .labels = labels", members);
    const int costs = emit_prices(o, p);
    if (emit_contests(o, p)) members = text(o, "%s, .competitions = competitions, .n_competitions = (int)(sizeof competitions / sizeof *competitions)", members);
    members = text(o, "%s%s, .cost = cost_%d", optional_members(o, p), members, costs);
    fprintf(file, "GM_MODEL(\"%s\", \"%s\", %d, %d, %d%s%s)\n\n#endif\n", g->model->name ? g->model->name : "model", source_name(o->arena, source), p->ndata, p->nstate, p->nsteps,
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
