// launches.c -- what the host launches, in order, and under which conditions.
//
//   launch TEAM draw_mu                       LAUNCH_TEAM(draw_mu, run, d->J);
//   launch CATEGORIES over K                  for (long category = 0; category < d->K; category++) {
//   launch EACH draw_x ... END                    LAUNCH_EACH(draw_x, run, ..); }
#include <math.h>
#include "program.h"

const char *work_text(const Out *o, const Kernel *k)
{
    const char *all = NULL;
    for (int i = 0; i < k->niterations; i++)
        all = all ? text(o, "%s + %s", all, count_text(o, &k->iterations[i])) : count_text(o, &k->iterations[i]);
    return all ? all : "1";
}

// Columns of the matrix, outputs of a row, the arrays.
static const char *product_text(const Out *o, const Product *r)
{
    const char *coefficients = c_name(o, r->coefficients->name), *X = var_text(o, r->matrix), *p = extent_c(o, r->matrix->dim[1], LOOSE);
    const char *k = r->coefficients->rank == 2 ? extent_c(o, r->coefficients->dim[!r->transposed], LOOSE) : "1";
    const char *macro = r->transposed ? "TIMES_TRANSPOSED" : "TIMES";
    const char *eta = c_name(o, r->eta->name);
    if (!r->out) return text(o, "%s(%s, %s, %s, %s, %s)", macro, p, k, X, coefficients, eta);
    if (r->sums)
        return text(o, "%s_AND_SUMS(%s, %s, %s, %s, %s, %s, %s, %s)", macro, p, k, X, coefficients, eta, c_name(o, r->weight->name),
                    c_name(o, r->out->name), c_name(o, r->sums->name));
    return text(o, "%s_AND_BACK(%s, %s, %s, %s, %s, %s, %s)", macro, p, k, X, coefficients, eta, c_name(o, r->weight->name),
                c_name(o, r->out->name));
}

static const char *argument_text(const Out *o, const Launch *l, const LaunchArg *a)
{
    switch (a->kind) {
    case ARG_EXTENT: return extent_c(o, a->extent, LOOSE);
    case ARG_COUNT: return count_text(o, &a->count);
    case ARG_WORK: return work_text(o, l->kernel);
    case ARG_PLACE: return var_text(o, a->var);
    case ARG_NAME: return c_name(o, a->var->name);
    case ARG_FIELD: return text(o, "DATA_%s", a->var->name);
    case ARG_STREAM:
        if (l->kind == LAUNCH_NUTS && !o->in_category) return text(o, "NUTS_STREAM(%s)", c_name(o, a->var->name));
        return text(o, o->in_category ? "GM_STREAM_OF_ITERATION(run, VAR_%s, category, %d)" : "VAR_%s", c_name(o, a->var->name),
                    o->program->nstate + 1);
    case ARG_FUNCTION: return a->string;
    case ARG_STRING: return text(o, "\"%s\"", a->string);
    case ARG_NUMBER: return number_c(o, a->number);
    case ARG_PRODUCT: return product_text(o, a->product);
    }
    return "";
}

// ---- draws of scales ----

// What they are rationed by: their selection, the number of the joint normal's sparse factor, and what a sweep and a trial cost.
static const char *ration_text(const Out *o, const UpdateCode *s)
{
    return text(o, "%d, %d, sweep_of_%s(run), trial_of_%s(run)", s->ration.selection, s->ration.sparse, s->function, s->function);
}

void emit_ration(Out *o, const UpdateCode *s)
{
    const Out in = launching(o), *sizes = &in;
    if (!s->ration.sweep) return;
    line(o, "// Multiply-adds of a sweep, and of a trial of the scales that %s draws with the joint normal integrated out.", s->function);
    for (int trial = 0; trial < 2; trial++) FUNCTION("static double %s_of_%s(const GmRun *run)", trial ? "trial" : "sweep", s->function)
        {
            emit_data(o);
            line(o, "(void)d;");
            line(o, "return %s;", units_c(sizes, trial ? s->ration.trial : s->ration.sweep));
        }
}

static const char *count_of_scale(const Out *o, const Var *v) { return v->rank ? extent_c(o, v->dim[0], LOOSE) : "1"; }

// Those that an update begins with.
static void emit_scales(const Out *o, const UpdateCode *s)
{
    const Update *update = s->update;
    const Scales *of = update->gaussian.scales;
    const char *list = "";
    for (int i = 0; i < of->n; i++) {
        const Var *v = of->var[i];
        const char *lo = isfinite(v->lower_number) ? number_c(o, v->lower_number) : "-INFINITY",
                   *hi = isfinite(v->upper_number) ? number_c(o, v->upper_number) : "INFINITY";
        list = text(o, "%s, {\"%s\", gm_of(%s), %s, %s, %s}", list, v->name, c_name(o, v->name), lo, hi, count_of_scale(o, v));
    }
    line(o, "SCALES(run, %s, VAR_%s, %s, %d, %s%s);", s->density_name,
         c_name(o, update->gaussian.proposal ? update->gaussian.proposal->name->name : update->block[0]->name), s->tuning->name,
         update->gaussian.proposal != NULL, ration_text(o, s), list);
}

static void emit_propose(const Out *o, const Launch *l)
{
    const Scales *of = l->code->update->gaussian.scales;
    const char *n = "0";
    for (int i = 0; i < of->n; i++) n = i ? text(o, "%s + %s", n, count_of_scale(o, of->var[i])) : count_of_scale(o, of->var[i]);
    line(o, "PROPOSE(run, %s, %s, %s);", c_name(o, l->arg[0].var->name), ration_text(o, l->code), n);
}

// ---- one launch ----

static const char *call_text(const Out *o, const Launch *l)
{
    static const char *const macro[] = {
#define LAUNCH(id, macro, help) [LAUNCH_##id] = macro,
#include "../kernel/kernel.def"
    };
    const char *list = "";
    for (int i = 0; i < l->nargs; i++) {
        const LaunchArg *a = &l->arg[i];
        const char *value = argument_text(o, l, a);
        if (!a->setting) list = text(o, "%s, %s", list, value);
        else list = text(o, "%s, .%s = %s", list, a->setting, value);
    }
    const char *where = l->unless_kept ? "if (!run->kept) " : l->once ? "if (!run->again) " : l->unread ? "if (run->auxiliaries) " : "";
    return text(o, "%s%s(%s%srun%s);", where, macro[l->kind], l->kernel ? l->kernel->name : "", l->kernel ? ", " : "", list);
}

static void emit_call(const Out *o, const Launch *l) { line(o, "%s", call_text(o, l)); }

static const Launch *emit_run(Out *o, const Launch *l);

// The launches of a block, and what follows the last of them.
static const Launch *emit_inside(Out *o, const Launch *begin)
{
    const Launch *end = emit_run(o, begin->next);
    return end ? end->next : NULL;
}

Out launching(const Out *o)
{
    Out in = *o;
    in.launching = true;
    return in;
}

void emit_data(const Out *o) { line(o, "const Data *const d = (const Data *)run->data;"); }

// A block of it alone: the launch of one kernel, under no condition.
static bool is_single(const Launch *l)
{
    return l && l->next && l->next->kind == LAUNCH_END && l->when == ALWAYS && !l->stands_in &&
           (l->kind == LAUNCH_TEAM || l->kind == LAUNCH_ONCE || l->kind == LAUNCH_EACH);
}

// A launch, with those of the block that it begins; which is the next.
static const Launch *emit_launch(Out *o, const Launch *l)
{
    const Out sizes = launching(o);
    const Launch *next = l->next;
    switch (l->kind) {
    case LAUNCH_STOP: line(o, "if (gm_found_fault(run)) return;"); break;
    case LAUNCH_PROPOSE: emit_propose(&sizes, l); break;
    case LAUNCH_SCALES: emit_scales(&sizes, l->code); break;
    case LAUNCH_CATEGORIES:
        if (l->arg[0].extent->kind != EX_NUM) emit_data(o);
        BLOCK ("for (long category = 0; category < %s; category++)", extent_c(&sizes, l->arg[0].extent, ADDITIVE)) {
            o->in_category = true;
            next = emit_inside(o, l);
        }
        break;
    case LAUNCH_WHERE:
        emit_data(o);
        line(o, "// where the move is worth its pass over the rows");
        BLOCK ("if (%s)", extent_c(&sizes, l->arg[0].extent, LOOSE)) next = emit_inside(o, l);
        break;
    case LAUNCH_ADAPTS:
        BLOCK ("if (ADAPTS(run, %s))", c_name(o, l->arg[0].var->name)) next = emit_inside(o, l);
        break;
    case LAUNCH_CHECKED: IN_BLOCK(block_begin(o, !is_single(l->next), "if (run->checking)")) next = emit_inside(o, l); break;
    case LAUNCH_DECIDE:
    case LAUNCH_EACH:
    case LAUNCH_MISSING:
    case LAUNCH_COLOURS:
    case LAUNCH_COLOURS_TEAM:
    case LAUNCH_ROWS:
    case LAUNCH_ROWS_AND:
    case LAUNCH_ROWS_ONLY:
    case LAUNCH_TEAM:
    case LAUNCH_ONCE:
    case LAUNCH_SHARED:
    case LAUNCH_SHARED_UNLESS_MISSING:
    case LAUNCH_ROW_SUMS:
    case LAUNCH_PRODUCT:
    case LAUNCH_ROW_PRODUCTS:
    case LAUNCH_GRAM:
    case LAUNCH_WEIGHTED_GRAM:
    case LAUNCH_COLOUR_ELEMENTS:
    case LAUNCH_ORDER_ROWS:
    case LAUNCH_NUTS:
    case LAUNCH_NORMAL_DENSE:
    case LAUNCH_NORMAL_ARROW:
    case LAUNCH_NORMAL_ROWS:
    case LAUNCH_PATTERN:
    case LAUNCH_LIST_ROWS:
    case LAUNCH_NORMAL_SPARSE:
    case LAUNCH_NORMAL_SPARSE_SCALED:
    case LAUNCH_NORMAL_DENSE_SCALED:
    case LAUNCH_NORMAL_ARROW_SCALED:
    case LAUNCH_NORMAL_ROWS_SCALED: emit_call(&sizes, l); break;
    case LAUNCH_END: break;  // emit_inside goes past it
    }
    return next;
}

void emit_one_launch(Out *o, const Launch *l) { emit_launch(o, l); }

const char *launch_alone(Out *o, const Launches *list)
{
    const Launch *l = list->first;
    const bool plain = l && !l->next && l->when == ALWAYS && !l->stands_in &&
                       (l->kind == LAUNCH_TEAM || l->kind == LAUNCH_ONCE || l->kind == LAUNCH_EACH || l->kind == LAUNCH_MISSING ||
                        l->kind == LAUNCH_ROWS || l->kind == LAUNCH_ROWS_AND);
    const Out sizes = launching(o);
    return plain ? call_text(&sizes, l) : NULL;
}

// ---- conditions ----

// What a launch is made under, which depends on rows; after `others`, their condition is false.
static const char *when_c(const Out *o, const Launch *l, bool after_others)
{
    const char *name = l->rows->name;
    switch (l->when) {
    case ALWAYS: return "1";
    case IF_FEW: return text(o, "few_%s(run)", name);
    case IF_MANY: return text(o, "!few_%s(run)", name);
    case IF_SYSTEM: return text(o, after_others ? "few_%s(run)" : "few_%s(run) && !LISTED(%d)", name, l->rows->listed);
    case IF_LISTED: return text(o, "LISTED(%d)", l->rows->listed);
    case UNLESS_LISTED: return text(o, "!LISTED_ALONE(%d)", l->rows->listed);
    }
    return "1";
}

static bool is_otherwise(When when, When before)
{
    return (when == IF_MANY && (before == IF_FEW || before == IF_SYSTEM)) || (when == IF_SYSTEM && before == IF_LISTED);
}

static bool same_condition(const Launch *a, const Launch *b) { return a->when == b->when && a->rows == b->rows; }

static bool is_last(const Launch *l) { return !l || l->kind == LAUNCH_END; }

// Those under one condition.
static const Launch *emit_under(Out *o, const Launch *l)
{
    const Launch *first = l;
    o->under = first;
    while (!is_last(l) && same_condition(l, first)) l = emit_launch(o, l);
    return l;
}

// One launch of a kernel, and none after it for which the condition is false.
static bool is_alone(const Launch *l)
{
    const Launch *next = l->next;
    const bool plain = l->kind == LAUNCH_TEAM || l->kind == LAUNCH_ONCE || l->kind == LAUNCH_EACH || l->kind == LAUNCH_ROWS_ONLY;
    return plain && (is_last(next) || !(same_condition(next, l) || (next->rows == l->rows && is_otherwise(next->when, l->when))));
}

// Launches that depend on how many rows there are come together under their condition, those for the opposite after it.
static const Launch *emit_conditions(Out *o, const Launch *l)
{
    const Launch *before = l;
    IN_BLOCK(block_begin(o, !is_alone(l), "if (%s)", when_c(o, l, false))) l = emit_under(o, l);
    while (!is_last(l) && l->rows == before->rows && is_otherwise(l->when, before->when)) {
        before = l;
        const char *condition = l->when == IF_MANY ? NULL : when_c(o, l, true);
        IN_BLOCK(block_otherwise(o, condition)) l = emit_under(o, l);
    }
    return l;
}

static const Launch *emit_standing_in(Out *o, const Launch *l)
{
    do l = l->when == ALWAYS || (o->under && same_condition(l, o->under)) ? emit_launch(o, l) : emit_conditions(o, l);
    while (!is_last(l) && l->stands_in == o->standing_in);
    return l;
}

// Up to the end of the list, or of the block that a launch has begun.
static const Launch *emit_run(Out *o, const Launch *l)
{
    while (!is_last(l)) {
        if (l->stands_in == o->standing_in || !l->stands_in) l = emit_standing_in(o, l);
        else
            BLOCK ("if (IN_PLACE_OF(run, %d))", l->stands_in) {
                o->standing_in = l->stands_in;
                l = emit_standing_in(o, l);
            }
    }
    return l;
}

void emit_launches(Out *o, const Launches *list) { emit_run(o, list->first); }
