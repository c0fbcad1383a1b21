// prices.c -- what a sweep costs, in functions for the runtime: the formulas are those of kernel/prices.c.
#include "program.h"

// A number of multiply-adds, in doubles: sums of products of sizes.
const char *units_c(const Out *o, const Expr *e)
{
    const char *all = NULL;
    switch (e->kind) {
    case EX_NUM: return text(o, "%.6g", e->number);
    case EX_ADD:
    case EX_MUL:
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
        if (e->var->summing.counts_rows) return c_name(o, e->var->name);
        break;
    case EX_CALL:
    case EX_REDUCE:
    case EX_INDEX:
    case EX_ARRAY:
    case EX_AT: break;
    }
    return text(o, "(double)%s", extent_c(o, e, TIGHT));
}

// How many different rows of data there are, where chains with the same data are summed over once.
static void emit_counted_rows(const Out *o, const Var *v)
{
    const char *list = "";
    for (int k = 0; k < v->summing.nrows; k++) {
        const char *name = c_name(o, v->summing.rows[k]->name);
        list = text(o, "%s%s{d->%s, sizeof *d->%s * (size_t)(%s)}", list, k ? ", " : "", name, name,
                    v->summing.rows[k]->rank == 2 ? extent_c(o, v->summing.rows[k]->dim[1], LOOSE) : "1");
    }
    line(o, "const double %s = gm_different_rows(%s, %d, (const GmDataRows[]){%s});", c_name(o, v->summing.rows_counted->name),
         extent_c(o, v->dim[0], LOOSE), v->summing.nrows, list);
}

// What it takes to draw scales with their joint normals integrated out, in every sweep, each by as many trials as is usual
// (GM_SCALES_FEW_TRIALS).
static void emit_price_of_scales(const Out *o, const ScalesPrice *s)
{
    const Scales *of = s->scales;
    const char *n = "", *trial = units_c(o, s->trial);
    for (int k = 0; k < of->n; k++) n = text(o, "%s%s%s", n, k ? " + " : "", of->var[k]->rank ? units_c(o, of->var[k]->dim[0]) : "1");
    if (s->sparse) trial = text(o, "(%s + %g * gm_sparse_time(%d))", trial, SPARSE_SHARE, s->sparse);
    line(o, "cost[9] += GM_SCALES_FEW_TRIALS * (%s) * %s;", n, trial);
}

static void emit_price_of_sparse(Out *o, const SparsePrice *s)
{
    for (int method = 0; method <= s->with_hmc; method++) line(o, "cost[%d] += %g * gm_sparse_time(%d);", method, SPARSE_SHARE, s->number);
    NOTED ("}",
           "                      // less the updates in its place: three launches and what the flow of tiles takes, of multiply-adds "
           "that wait for each other some 4 ns",
           "if (gm_sparse_taken(%d))", s->number) {
        for (int method = 0; method <= s->with_hmc; method++) {
            line(o, "cost[%d] += %d + %g * gm_sparse_time(%d) - (%s);", 3 + 2 * method, SPARSE_LAUNCHES_GPU, SPARSE_SHARE_GPU, s->number,
                 units_c(o, s->standing_in.alone));
            line(o, "cost[%d] -= %s;", 4 + 2 * method, units_c(o, s->standing_in.work));
        }
    }
}

static void emit_price_where_listed(Out *o, const SparsePrice *s)
{
    BLOCK ("if (gm_rows_listed(%d))", s->number) {
        for (int method = 0; method <= s->with_hmc; method++)
            line(o, "cost[%d] = %s + %g * gm_sparse_time(%d);", method, units_c(o, method ? s->hmc : s->updates), SPARSE_SHARE, s->number);
        if (s->no_hmc) line(o, "cost[2] = INFINITY;      // it reads X'X, which is not made");
    }
}

static void emit_price(Out *o, const Price *p)
{
    FUNCTION("static void cost_%d(const void *data, double *cost)", p->number)
    {
        line(o, "const Data *const d = (const Data *)data;");
        line(o, "(void)d;");
        for (int i = 0; i < p->ncounted; i++) emit_counted_rows(o, p->counted[i]);
        for (int i = 0; i < NUMBERS_OF_COST; i++)
            if (p->of[i]) line(o, "cost[%d] = %s;", i, units_c(o, p->of[i]));
        for (const SparsePrice *s = p->sparse; s; s = s->next) emit_price_of_sparse(o, s);
        for (const SparsePrice *s = p->listed; s; s = s->next) emit_price_where_listed(o, s);
        for (const ScalesPrice *s = p->scales; s; s = s->next) emit_price_of_scales(o, s);
    }
}

static const char only[] = "What a sweep costs, by which a run takes a GPU or the CPU (--device auto)";

int emit_prices(Out *o, const Program *p)
{
    if (p->priced) {
        line(o, "// What the unknowns of a selection cost by separate updates and together by HMC, in multiply-adds of a core, counted by "
                "gmc from kernels:");
        line(o, "// [0] a sweep by separate updates, [1] the fixed cost of HMC, [2] each evaluation of its density. From [3] on the same "
                "on a GPU, two");
        line(o,
             "// numbers each, of multiply-adds that wait for each other, some 4 ns: whatever the number of chains, and for each chain.");
    }
    for (const Price *c = p->prices;; c = c->next) {
        if (!c->number && p->priced) line(o, "// %s: the same of all together.", only);
        else if (!c->number) {
            line(o, "// %s, in multiply-adds: [0] on the CPU; on a GPU", only);
            line(o, "// [3] the time that does not depend on the number of chains, [4] the work of a chain.");
        }
        emit_price(o, c);
        if (!c->next) return c->number;
    }
}

// ---- selections ----

// Numbers of fields of State, from 1, and a 0 at the end.
static void emit_fields(Out *o, const Program *p, const PricedSelection *c)
{
    const char *fields = "", *latents = "";
    for (int i = 0; i < p->nstate; i++)
        for (int k = 0; k < c->of->n; k++)
            if (c->of->block[k] == p->state[i].var) fields = text(o, "%s%s, ", fields, state_number(o, p, p->state[i].var));
    for (int i = 0; i < c->nlatents; i++) latents = text(o, "%s%s, ", latents, state_number(o, p, c->latent[i]));
    line(o, "static const int fields_%d[] = {%s0}, latents_%d[] = {%s0};", c->of->number, fields, c->of->number, latents);
}

bool emit_selections(Out *o, const Program *p)
{
    if (!p->priced) return false;
    for (const PricedSelection *c = p->priced; c; c = c->next) emit_fields(o, p, c);
    blank(o);
    ENDING("};", "static const GmSelection selections[] =")
    for (const PricedSelection *c = p->priced; c; c = c->next) {
        const int number = c->of->number;
        const char *names = "";
        for (int k = 0; k < c->of->n; k++) names = text(o, "%s%s%s", names, k ? ", " : "", c->of->block[k]->name);
        line(o,
             "{.name = \"%s\", .coupled = %d, .fields = fields_%d, .diagnostics = %s, .machine = %s, .latents = latents_%d, .cost = "
             "cost_%d},",
             names, c->of->coupled, number, state_number(o, p, c->diagnostics), state_number(o, p, c->machine), number, number);
    }
    blank(o);
    return true;
}
