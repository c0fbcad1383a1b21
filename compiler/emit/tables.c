// tables.c -- the Data and State of the program, and what it tells the runtime about them.
#define _GNU_SOURCE
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "tables.h"

// ---- structs and tables ----

static const char *dims_text(Out *o, const Var *v)
{
    if (v->rank == 0) return "";
    const char *t = "";
    for (int k = 0; k < v->rank; k++) t = text(o, "%s%s%s", t, k ? ", " : "[", math_text(o, v->dim[k]));
    return text(o, "%s]", t);
}

static const char *constraint_name(Constraint c)
{
    switch (c) {
    case CONSTRAINT_NONE: return "GM_ANY";
    case CONSTRAINT_SIMPLEX: return "GM_SIMPLEX";
    case CONSTRAINT_ORDERED: return "GM_ORDERED";
    case CONSTRAINT_POSITIVE_ORDERED: return "GM_POSITIVE_ORDERED";
    case CONSTRAINT_UNIT_VECTOR: return "GM_UNIT_VECTOR";
    case CONSTRAINT_SUM_TO_ZERO: return "GM_SUM_TO_ZERO";
    case CONSTRAINT_COVARIANCE: return "GM_COVARIANCE";
    case CONSTRAINT_CORRELATION: return "GM_CORRELATION";
    case CONSTRAINT_CHOLESKY_COV: return "GM_CHOLESKY_COV";
    case CONSTRAINT_CHOLESKY_CORR: return "GM_CHOLESKY_CORR";
    }
    return "GM_ANY";
}

static const char *element_type(const Program *p, const Var *v)
{
    static const char *const name[] = {
#define ELEMENT_TYPE(id, c, help) [TYPE_##id] = c,
#include "../kernel/placement.def"
    };
    return name[placement_of(p, v)->type];
}

static const char *type_id(const Program *p, const Var *v)
{
    static const char *const name[] = {
#define ELEMENT_TYPE(id, c, help) [TYPE_##id] = "GM_" #id,
#include "../kernel/placement.def"
    };
    return name[placement_of(p, v)->type];
}

static int sharing_of(const Program *p, const Var *v)
{
    static const int of[] = {
#define HOME(id, name, shared, help) [HOME_##id] = shared,
#include "../kernel/placement.def"
    };
    return of[placement_of(p, v)->home];
}

void emit_structs(Out *o, const Program *p)
{
    FILE *out = o->file;
    fprintf(out, "typedef struct Data {\n");
    for (int i = 0; i < p->ndata; i++) {
        const Var *v = p->data[i].var;
        fprintf(out, "    %s %s%s;%s%s%s\n", v->base == BASE_INT ? v->rank || v->response ? "int" : "long" : v->rank ? "real" : "double", v->rank ? "*" : "", c_name(o, v->name), v->rank ? "      // " : "",
                v->rank ? v->name : "", v->rank ? dims_text(o, v) : "");
    }
    for (int i = 0; i < p->ntotals; i++) fprintf(out, "    long %s%d;      // %s\n", p->total_name, i + 1, ex_quote(o->arena, p->total[i]));
    fprintf(out, "} Data;\n\ntypedef struct State {          // of one chain\n");
    for (int i = 0; i < p->nstate; i++) {
        const Var *v = p->state[i].var;
        const char *note = v->kind == VAR_AUXILIARY ? "auxiliary " : v->kind == VAR_SUM && v->sum ? "sums of data " : v->kind == VAR_SUM ? "work " : "";
        fprintf(out, "    %s *%s;      // %s%s%s\n", element_type(p, v), c_name(o, v->name), note, v->name, dims_text(o, v));
    }
    fprintf(out, "} State;\n\n");
    const char *none = "VAR_NONE";
    for (int i = 0; i < p->nstate; i++)
        if (strcmp(p->state[i].var->name, "NONE") == 0) none = "VAR_NONE_";
    fprintf(out, "enum {                           // streams of random numbers\n    %s = 0,\n", none);
    for (int i = 0; i < p->nstate; i++)
        if (p->state[i].var->kind != VAR_SUM && p->state[i].var->kind != VAR_LET) fprintf(out, "    VAR_%s = %d,\n", p->state[i].var->name, i + 1);
    fprintf(out, "};\n\n");
}

static const char *role_of(const Program *p, const Var *v)
{
    if (placement_of(p, v)->diagnostics) return "GM_DIAGNOSTIC";
    switch (v->kind) {
    case VAR_DATA: return v->response ? "GM_IMPUTED" : "GM_DATA";
    case VAR_PARAMETER: return v->parts ? "GM_SUM" : "GM_PARAMETER";
    case VAR_PART: return "GM_PARAMETER";
    case VAR_LATENT: return "GM_LATENT";
    case VAR_AUXILIARY: return v->hidden ? "GM_SUM" : "GM_AUXILIARY";        // a step's own
    case VAR_DERIVED: case VAR_SERIES: case VAR_PREDICTED:
        if (v->hidden) break;
        return v->kind == VAR_PREDICTED ? "GM_PREDICTED" : "GM_DERIVED";
    case VAR_LET: case VAR_SUM: case VAR_PATTERN: case VAR_ELEMENT: break;
    }
    return "GM_SUM";
}

static const char *type_and_bounds(Out *o, const Var *v)
{
    static const char *const constrained[] = {
#define X(id, text) [CONSTRAINT_##id] = text,
        CONSTRAINTS(X)
#undef X
    };
    if (v->constraint != CONSTRAINT_NONE) return constrained[v->constraint];
    const char *bounds = "", *base = v->base == BASE_INT ? "int" : "real";
    if (v->lower) bounds = text(o, "<lower=%s%s", math_text(o, v->lower), v->upper ? "" : ">");
    if (v->upper) bounds = text(o, "%s%supper=%s>", bounds, v->lower ? ", " : "<", math_text(o, v->upper));
    return text(o, "%s%s", base, bounds);
}

static const char *row_bounds(Out *o, const Field *f)
{
    const double lo = f->lower.value || isnan(f->lower.number) ? -INFINITY : f->lower.number, hi = f->upper.value || isnan(f->upper.number) ? INFINITY : f->upper.number;
    if (isinf(lo) && isinf(hi)) return "";
    return text(o, "BOUNDED(%s, %s)", number_c(o, lo), number_c(o, hi));
}

// The lines that complete a shape: extents, and bounds that are no numbers. They read data as the files give them.
static void emit_shape(Out *o, const Program *p, const Field *f)
{
    const Var *v = f->var;
    const Placement *at = placement_of(p, v);
    for (int k = 0; k < v->rank; k++) {
        const char *n = extent_c(o, v->dim[k], LOOSE);
        if (k == 0 && keeps_rows_of_route(at))
            n = text(o, at->when == IF_MANY ? "%s < %s ? 0 : %s" : "%s < %s ? %s : 0", extent_c(o, at->rows->count, ADDITIVE), extent_c(o, at->rows->size, ADDITIVE), n);
        line(o, "shape->dim[%d] = %s;", k, n);
    }
    if (f->lower.value) line(o, "shape->lower = %s;", expr_c(o, f->lower.value, LOOSE));
    if (f->upper.value) line(o, "shape->upper = %s;", expr_c(o, f->upper.value, LOOSE));
}

// A function of a field, by cases: fields of the same lines stand together. false: there are no lines at all.
static bool emit_shapes(Out *o, const Program *p, const char *name, const Field *field, int n)
{
    FILE *out = o->file;
    bool any = false;
    for (int i = 0; i < n; i++) any |= field[i].shape >= 0;
    if (!any) return false;
    fprintf(out, "static void %s(int field, const void *data, GmShape *shape)\n{\n    const Data *const d = (const Data *)data;\n    (void)d;\n    switch (field) {\n", name);
    for (int i = 0; i < n; i++) {
        if (field[i].shape != i) continue;
        int count = 0;
        for (int k = i; k < n; k++)
            if (field[k].shape == i) fprintf(out, count++ % 12 ? " case %d:" : count > 1 ? "\n    case %d:" : "    case %d:", k);
        fputs("\n", out);
        o->indent = 2;
        o->nnamed = 0;
        emit_shape(o, p, &field[i]);
        line(o, "break;");
        o->indent = 0;
    }
    fprintf(out, "    }\n}\n\n");
    return true;
}

const char *emit_tables(Out *o, const Program *p)
{
    FILE *out = o->file;
    bool defaults = false;
    fprintf(out, "static const GmField data_fields[] = {\n");
    for (int i = 0; i < p->ndata; i++) {
        const Field *f = &p->data[i];
        const Var *v = f->var;
        fprintf(out, "    {.name = \"%s\", .type = %s, .role = GM_DATA, ", v->name, v->base == BASE_INT ? "GM_INT" : "GM_REAL");
        const Constraint constraint = v->constraint != CONSTRAINT_NONE ? v->constraint : v->asked;
        if (constraint != CONSTRAINT_NONE || v->asked_counts) fprintf(out, ".constraint = %s, ", v->asked_counts ? "GM_COUNTS" : constraint_name(constraint));
        if (v->asked_by) fprintf(out, ".asked_by = \"%s\", ", v->asked_by);
        if (v->rank) fprintf(out, ".rank = %d, ", v->rank);
        fprintf(out, ".offset = offsetof(Data, %s), %s%s", c_name(o, v->name), v->init ? ".has_default = 1, " : "", f->may_miss ? ".may_miss = 1, " : "");
        if (f->needed_for) fprintf(out, ".needed_for = \"%s\", ", f->needed_for);
        if (f->may_be_left_out) fprintf(out, ".may_be_left_out = 1, ");
        if (f->finite) fprintf(out, ".finite = 1, ");
        if (f->imputed) fprintf(out, ".imputed_field = %d, ", f->imputed);
        fprintf(out, "%s%s.where = \"%s\",\n     .declared = \"%s %s%s\"", row_bounds(o, f), *row_bounds(o, f) ? ", " : "", source_line(o, v->span), type_and_bounds(o, v), v->name, dims_text(o, v));
        for (int k = 0; k < v->rank; k++) fprintf(out, "%s%d", k ? ", " : ", .extent_of = {", f->extent_of[k]);
        fprintf(out, v->rank ? "}},\n" : "},\n");
        defaults |= v->init != NULL;
    }
    if (!p->ndata) fprintf(out, "    {0},\n");
    fprintf(out, "};\n\nstatic const GmField state_fields[] = {\n");
    for (int i = 0; i < p->nstate; i++) {
        const Var *v = p->state[i].var;
        const int shared = sharing_of(p, v);
        fprintf(out, "    {.name = \"%s\", .type = %s, .role = %s, ", v->name, type_id(p, v), role_of(p, v));
        if (v->constraint != CONSTRAINT_NONE) fprintf(out, ".constraint = %s, ", constraint_name(v->constraint));
        if (v->rank) fprintf(out, ".rank = %d, ", v->rank);
        fprintf(out, ".offset = offsetof(State, %s)", c_name(o, v->name));
        if (shared) fprintf(out, ", .shared = %d", shared);
        if (v->expectation) fprintf(out, ", .by_start = 1");
        if (placement_of(p, v)->stands_in) fprintf(out, ", .stands_in = %d", placement_of(p, v)->stands_in);
        if (v->partial || (v->kind == VAR_LET && v->holes)) fprintf(out, ", .partial = 1");
        if (v->on_request) fprintf(out, ", .on_request = %s", v->on_request == REQUEST_LOG_LIK ? "GM_LOG_LIK" : "GM_REPLICATES");
        if (v->part_of) fprintf(out, ", .part_of = %d, .part = %d", 1 + field_of(p->state, p->nstate, v->part_of), v->part_at);
        if (*row_bounds(o, &p->state[i])) fprintf(out, ", %s", row_bounds(o, &p->state[i]));
        if (v->span.source) fprintf(out, ", .where = \"%s\"", source_line(o, v->span));
        fprintf(out, "},\n");
    }
    if (!p->nstate) fprintf(out, "    {0},\n");
    fprintf(out, "};\n\n");
    const char *members = "";
    o->careful = o->host = o->as_read = true;
    if (emit_shapes(o, p, "data_shape", p->data, p->ndata)) members = text(o, "%s, .data_shape = data_shape", members);
    if (defaults) {
        fprintf(out, "static double data_default(int field, const void *data)\n{\n    const Data *const d = (const Data *)data;\n    (void)d;\n    switch (field) {\n");
        for (int i = 0; i < p->ndata; i++)
            if (p->data[i].var->init) fprintf(out, "    case %d: return %s;\n", i, expr_c(o, p->data[i].var->init, LOOSE));
        fprintf(out, "    }\n    return 0;\n}\n\n");
        members = text(o, "%s, .data_default = data_default", members);
    }
    if (emit_shapes(o, p, "state_shape", p->state, p->nstate)) members = text(o, "%s, .state_shape = state_shape", members);
    if (p->ntotals) {
        fprintf(out, "static void data_sizes(void *data)\n{\n    Data *const d = (Data *)data;\n");
        o->host = true;
        for (int i = 0; i < p->ntotals; i++) fprintf(out, "    d->%s%d = %s;\n", p->total_name, i + 1, extent_c(o, p->total[i], LOOSE));
        o->host = false;
        fprintf(out, "}\n\n");
        members = text(o, "%s, .data_sizes = data_sizes", members);
    }
    o->careful = o->host = o->as_read = false;
    return members;
}

bool emit_labels(Out *o, const Program *p)
{
    if (!p->g->labels) return false;
    fprintf(o->file, "// Names of components, and the variables that run over them: what `relabel` may permute.\n");
    int n = 0;
    for (const Labels *l = p->g->labels; l; l = l->next) {
        n++;
        if (l->alike) {
            fprintf(o->file, "static const GmAlike alike_%d[] = {", n);
            for (const Alike *a = l->alike; a; a = a->next) {
                fprintf(o->file, "{%d, %d}, ", 1 + field_of(p->data, p->ndata, a->var), a->dim);
            }
            fprintf(o->file, "{0, 0}};\n");
        }
        fprintf(o->file, "static const GmLabelled labelled_%d[] = {\n", n);
        for (const Labelled *v = l->vars; v; v = v->next) {
            const int field = field_of(p->state, p->nstate, v->var);
            if (field < 0) continue;
            fprintf(o->file, "    {.field = %d", 1 + field);
            if (v->dims) fprintf(o->file, ", .dims = %u", v->dims);
            fprintf(o->file, "%s%s%s},      // %s\n", v->values ? ", .values = 1" : "", v->apart ? ", .apart = 1" : "", v->lost ? ", .lost = 1" : "", v->var->name);
        }
        fprintf(o->file, "    {0},\n};\n");
    }
    fprintf(o->file, "\nstatic const GmLabels labels[] = {\n");
    n = 0;
    for (const Labels *l = p->g->labels; l; l = l->next) {
        fprintf(o->file, "    {.by = %d", 1 + field_of(p->state, p->nstate, l->by));
        if (l->told_apart) fprintf(o->file, ", .told_apart = \"%s\"", l->told_apart);
        if (l->not_permuted) fprintf(o->file, ", .not_permuted = \"%s\"", l->not_permuted);
        if (l->alike) fprintf(o->file, ", .alike = alike_%d", n + 1);
        fprintf(o->file, ", .fields = labelled_%d},\n", ++n);
    }
    fprintf(o->file, "    {0},\n};\n\n");
    return true;
}

bool emit_observed(Out *o, const Program *p)
{
    if (!p->g->observed) return false;
    fprintf(o->file, "// What is observed: its log-likelihood and replicates, for runs that ask for them.\nstatic const GmObserved observed[] = {\n");
    for (const Observed *s = p->g->observed; s; s = s->next) {
        const int data = 1 + field_of(p->data, p->ndata, s->var);
        fprintf(o->file, "    {.where = \"%s\"", source_line(o, s->span));
        if (s->name) fprintf(o->file, ", .name = \"%s\"", s->name);
        if (data) fprintf(o->file, ", .data = %d", data);
        if (s->log_lik) fprintf(o->file, ", .log_lik = %d", 1 + field_of(p->state, p->nstate, s->log_lik));
        if (s->replicate) fprintf(o->file, ", .replicate = %d", 1 + field_of(p->state, p->nstate, s->replicate));
        if (s->no_log_lik) fprintf(o->file, ", .no_log_lik = \"%s\"", s->no_log_lik);
        if (s->no_replicate) fprintf(o->file, ", .no_replicate = \"%s\"", s->no_replicate);
        fprintf(o->file, "},\n");
    }
    fprintf(o->file, "    {0},\n};\n\n");
    return true;
}
