// updates.c -- what the host does: a function for each update of the schedule, the sweep that makes one after the other, setup before it
// and what a run requests after it.
#include "program.h"

// ---- sizes of rows ----

static void emit_row_sizes(Out *o, const Program *p)
{
    const Out sizes = launching(o);
    if (p->row_bytes[0]) {
        line(o, "// Bytes of the rows that a row pass reads.");
        FUNCTION("static double row_bytes(const GmRun *run)")
        {
            emit_data(o);
            line(o, "return (double)sizeof(real) * %s * %s;", extent_c(&sizes, p->row_bytes[0], TIGHT),
                 extent_c(&sizes, p->row_bytes[1], TIGHT));
        }
    }
    if (p->row_width) {
        line(o, "// Their columns.");
        FUNCTION("static long row_width(const void *data)")
        {
            line(o, "const Data *const d = (const Data *)data;");
            line(o, "(void)d;");
            line(o, "return %s;", p->row_widths ? "-1" : extent_c(o, p->row_width, LOOSE));
        }
    }
    for (const Update *s = o->g->updates; s; s = s->next) {
        const Rows *r = s->kind == UPDATE_GAUSSIAN ? s->gaussian.rows : NULL;
        if (!r) continue;
        line(o, "// Whether there are fewer rows than coefficients%s.", r->listed ? ", or rows are listed one by one" : "");
        FUNCTION("static int few_%s(const GmRun *run)", r->name)
        {
            emit_data(o);
            line(o, "return %s;", few_c(&sizes, r));
        }
    }
}

// ---- updates ----

static bool constant(const Count *c)
{
    for (int i = 0; i < c->n; i++)
        if (c->factor[i]->kind != EX_NUM) return false;
    return true;
}

// An update that launches one kernel, whatever the data: its row in the table of updates is enough.
static bool one_kernel(const UpdateCode *s)
{
    const Launch *l = s->launches.first;
    if (s->update->when != EVERY_SWEEP || s->update->joint || (s->update->joined && s->update->joined->where) || !l || l->next ||
        l->when != ALWAYS || (l->kind != LAUNCH_TEAM && l->kind != LAUNCH_ONCE))
        return false;
    for (int i = 0; i < l->nargs; i++) {
        if (l->arg[i].kind != ARG_WORK) return false;
        for (int k = 0; k < l->kernel->niterations; k++)
            if (!constant(&l->kernel->iterations[k])) return false;
    }
    return true;
}

// Sizes decide whether unknowns are drawn together or one after the other.
static void emit_where_joined(Out *o, const Update *s)
{
    const Joined *j = s->joined;
    if (!j || !j->where) return;
    const Out sizes = launching(o);
    emit_data(o);
    line(o, "(void)d;");
    line(o, "if (%s(TAKES_GPU_UPDATES(run) ? %s : %s)) return;", s->nblock > 1 ? "!" : "", expr_c(&sizes, j->on_gpu, TIGHT),
         expr_c(&sizes, j->where, TIGHT));
}

// A function of a run with its launches.
static void emit_stage(Out *o, const char *name, const Launches *list)
{
    FUNCTION("static void %s(GmRun *run)", name) emit_launches(o, list);
}

// The row of an update in their table.
static const char *update_row(const Out *o, const UpdateCode *code)
{
    static const char *const macro[] = {[EVERY_SWEEP] = "UPDATE",
                                        [WITHOUT_GRADIENTS] = "UPDATE_WITHOUT_GRADIENTS",
                                        [WITH_GRADIENTS] = "UPDATE_WITH_GRADIENTS",
                                        [ON_CPU] = "UPDATE_ON_CPU",
                                        [ON_GPU] = "UPDATE_ON_GPU"};
    const Launch *l = code->launches.first;
    const Update *s = code->update;
    const char *which = text(o, "\"%s\", %s", code->name, code->function);
    if (s->joint && s->selection) return text(o, "UPDATE_JOINT_WITHOUT_GRADIENTS(%s, %d, %d)", which, s->selection->number, s->joint);
    if (s->joint) return text(o, "UPDATE_JOINT(%s, %d)", which, s->joint);
    if (s->selection) return text(o, "%s(%s, %d)", macro[s->when], which, s->selection->number);
    if (s->when != EVERY_SWEEP) return text(o, "%s(%s)", macro[s->when], which);
    if (!one_kernel(code)) return text(o, "%s(%s)", s->kind == UPDATE_NUTS ? "UPDATE_HMC" : "UPDATE", which);
    if (l->kind == LAUNCH_TEAM) return text(o, "UPDATE_TEAM(\"%s\", %s, %s)", code->name, l->kernel->name, work_text(o, l->kernel));
    return text(o, "UPDATE_ONCE(\"%s\", %s)", code->name, l->kernel->name);
}

bool has_function(const UpdateCode *s) { return !one_kernel(s); }

static bool by_gradients(const UpdateCode *s) { return s->update->kind == UPDATE_NUTS; }

// Its function is one line.
static bool is_alone(Out *o, const UpdateCode *s)
{
    return !s->density.first && !s->jacobian.first && !(s->update->joined && s->update->joined->where) && launch_alone(o, &s->launches);
}

void emit_update(Out *o, const UpdateCode *s)
{
    if (s->collapsed)
        line(o, "// What SCALES calls, with v integrated out: by `run` it has NORMAL_ macros draw nothing and add (h - J v)'J^-1 (h - J "
                "v)/2 - log|J|/2");
    if (s->density.first) emit_stage(o, s->density_name, &s->density);
    if (s->jacobian.first) emit_stage(o, s->jacobian_name, &s->jacobian);
    if (is_alone(o, s)) {
        line(o, "static void %s(GmRun *run) { %s }", s->function, launch_alone(o, &s->launches));
        return;
    }
    FUNCTION("static void %s(GmRun *run)", s->function)
    {
        emit_where_joined(o, s->update);
        emit_launches(o, &s->launches);
    }
}

static void emit_updates(Out *o, const Program *p)
{
    bool row = false;  // of functions of one line
    for (int i = 0; i < p->nupdates; i++) {
        const UpdateCode *s = &p->updates[i];
        if (!has_function(s) || by_gradients(s)) continue;
        const bool alone = is_alone(o, s);
        if (row && !alone) blank(o);
        emit_update(o, s);
        row = alone;
    }
    if (row) blank(o);
    bool selects = false;
    for (int i = 0; i < p->nupdates; i++) selects |= p->updates[i].update->when == WITH_GRADIENTS;
    line(o, selects ? "// What each update draws, its function, and a selection: a set of unknowns for which warm-up takes NUTS, "
                      "WITH_GRADIENTS, or "
                      "those WITHOUT."
                    : "// What each update draws, and its function.");
    ENDING("};", "static const GmUpdate updates[] =")
    {
        for (int i = 0; i < p->nupdates; i++) line(o, "%s,", update_row(o, &p->updates[i]));
        if (!p->nupdates) line(o, "{0},");
    }
    blank(o);
}

// ---- the sweep ----

static void for_draws(Out *o, const char *name)
{
    line(o, "GM_FOR_DRAWS(%s)", name);
    blank(o);
}

// Where the sweep maximises: expectations, and what the log density reads of them. The first updates make them; how many.
static int emit_expect(Out *o, const Program *p)
{
    int n = 0;
    while (n < p->nupdates && p->updates[n].update->does == EXPECTS) n++;
    line(o, "// Expectations, and what the log density reads of them.");
    FUNCTION("static void expect(GmRun *run)")
    {
        emit_launches(o, &p->before);
        if (n) line(o, "take_updates(run, updates, %d);", n);
    }
    for_draws(o, "expect");
    return n;
}

// The updates from i on that are made at one go: none of them needs launches before it; which is the next.
static int emit_updates_from(Out *o, const Program *p, int i)
{
    const bool imputes = p->updates[i].update->imputes;
    for (const Launch *l = p->updates[i].again ? p->again.first : NULL; l; l = l->next) {
        part(o, "if (ANY_MISSING(run)) ");
        emit_one_launch(o, l);
    }
    emit_launches(o, &p->updates[i].made);
    int next = i + 1;
    while (next < p->nupdates && p->updates[next].update->imputes == imputes && !(p->updates[next].again && p->again.first) &&
           !p->updates[next].made.first)
        next++;
    const char *from = i ? text(o, "&updates[%d]", i) : "updates", *name = next - i == 1 ? text(o, "      // %s", p->updates[i].name) : "";
    line(o, "%stake_updates(run, %s, %d);%s", imputes ? "if (ANY_MISSING(run)) " : "", from, next - i, name);
    return next;
}

void emit_sweep(Out *o, const Program *p)
{
    emit_updates(o, p);
    bool keeps = false;
    for (int i = 0; i < p->nupdates; i++) keeps |= p->updates[i].made.first != NULL;
    const int first = o->g->method == METHOD_EM ? emit_expect(o, p) : 0;
    if (o->g->method == METHOD_EM) line(o, "// It maximises, then finds the expectations where that has led.");
    FUNCTION("static void sweep(GmRun *run)")
    {
        if (keeps) line(o, "run->kept = 1;");
        emit_launches(o, &p->before);
        for (int i = first; i < p->nupdates;) i = emit_updates_from(o, p, i);
        if (keeps) line(o, "run->kept = 0;");
        if (o->g->method == METHOD_EM) line(o, "expect(run);");
    }
}

// ---- before and after it ----

static void emit_setup(Out *o, const Program *p)
{
    if (p->refresh.first) {
        line(o, "// After missing values were drawn.");
        emit_stage(o, "refresh", &p->refresh);
    }
    FUNCTION("static void setup(GmRun *run)")
    {
        emit_launches(o, &p->prepare);
        if (p->refresh.first) line(o, "refresh(run);");
        emit_launches(o, &p->finish);
    }
}

static void emit_request(Out *o, const char *flag, const Launches *list)
{
    if (list->first)
        BLOCK ("if (run->requests & %s)", flag) emit_launches(o, list);
}

static bool has_derive(const Program *p)
{
    return p->before.first || p->log_prior.first || p->log_lik.first || p->replicates.first || p->derive.first;
}

// Quantities for the draws; before them, what runs request.
static void emit_derive(Out *o, const Program *p)
{
    if (!has_derive(p)) return;
    FUNCTION("static void derive(GmRun *run)")
    {
        emit_launches(o, &p->before);
        emit_request(o, "GM_LOG_PRIOR", &p->log_prior);
        emit_request(o, "GM_LOG_LIK", &p->log_lik);
        emit_request(o, "GM_REPLICATES", &p->replicates);
        emit_launches(o, &p->derive);
    }
    for_draws(o, "derive");
}

static void emit_joint(Out *o, const Program *p)
{
    if (!p->joint.first && !p->before.first) return;
    FUNCTION("static void joint(GmRun *run)")
    {
        emit_launches(o, &p->before);
        emit_launches(o, &p->joint);
    }
}

static void emit_forward(Out *o, const Program *p)
{
    if (!p->forward.first) return;
    line(o, "// Draws without data, each after what its law reads.");
    FUNCTION("static void forward(GmRun *run)")
    {
        for (const Launch *l = p->forward.first; l; l = l->next) {
            const Var *v = l->kernel ? l->kernel->unless_given : NULL;
            if (v) part(o, "if (!GIVEN(run, %s)) ", c_name(o, v->name));
            emit_one_launch(o, l);
        }
    }
}

void emit_host(Out *o, const Program *p)
{
    emit_row_sizes(o, p);
    for (int i = 0; i < p->nupdates; i++) emit_ration(o, &p->updates[i]);
    for (int i = 0; i < p->nupdates; i++)
        if (has_function(&p->updates[i]) && by_gradients(&p->updates[i])) emit_update(o, &p->updates[i]);
    emit_setup(o, p);
    emit_derive(o, p);
    if (p->restore.first) {
        emit_stage(o, "restore", &p->restore);
        for_draws(o, "restore");
    }
    emit_joint(o, p);
    emit_forward(o, p);
}

// What an `infer` block leaves out (graph/updates/nuts.c).
static const double USUAL_ACCEPT = 0.8;
enum { USUAL_DEPTH = 10 };

// Whether options for HMC mean something else than what the runtime has without them.
static bool sets_hmc(const Graph *g)
{
    for (const Update *s = g->updates; s; s = s->next)
        if (s->kind == UPDATE_NUTS && (s->nuts.accept != USUAL_ACCEPT || s->nuts.depth != USUAL_DEPTH)) return true;
    return false;
}

const char *host_members(const Out *o, const Program *p)
{
    const char *all = "";
    if (has_derive(p)) all = ", .derive = gm_derive, .derive_chain = derive";
    if (p->forward.first) all = text(o, "%s, .forward = forward", all);
    if (p->g->forward) all = text(o, "%s, .laws = laws", all);
    if (p->g->sum_over_rows) all = text(o, "%s, .sum_over_rows = \"%s\"", all, p->g->sum_over_rows);
    if (p->joint_as_written) all = text(o, "%s, .joint_as_written = 1", all);
    if (p->not_forward[0]) all = text(o, "%s, .not_forward = \"%s\"", all, p->not_forward[0]);
    if (p->not_forward[1]) all = text(o, "%s, .not_simulated = \"%s\"", all, p->not_forward[1]);
    if (p->not_as_data) all = text(o, "%s, .not_as_data = \"%s\"", all, p->not_as_data);
    if (p->restore.first) all = text(o, "%s, .restore = gm_restore, .restore_chain = restore", all);
    if (p->refresh.first) all = text(o, "%s, .refresh = refresh", all);
    if (p->row_bytes[0]) all = text(o, "%s, .row_bytes = row_bytes", all);
    if (p->row_width) all = text(o, "%s, .row_width = row_width", all);
    const char *together = NULL;
    for (const Update *s = p->g->updates; s; s = s->next)
        for (int i = 0; s->kind == UPDATE_NUTS && s->nuts.chees && i < s->nblock; i++)
            together = together ? text(o, "%s, %s", together, s->block[i]->name) : s->block[i]->name;
    if (together) all = text(o, "%s, .by_chees = \"%s\"", all, together);
    if (p->g->method == METHOD_EM)
        all = text(o, "%s, .for_modes = 1, .expect = gm_expect, .expect_chain = expect, .iterate_chain = sweep", all);
    if (p->cpu_only) all = text(o, "%s, .cpu_only = \"%s\"", all, p->cpu_only);
    if (sets_hmc(p->g)) all = text(o, "%s, .own_hmc = 1", all);
    return all;
}
