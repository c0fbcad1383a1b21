// tables.c -- the Data and State of the program, and what it tells the runtime about them.
#define _GNU_SOURCE
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "tables.h"

// ---- structs and tables ----

static bool in_state(const Var *v)
{
    switch (v->kind) {
    case VAR_DATA: return v->response;
    case VAR_LET: case VAR_PARAMETER: case VAR_LATENT: case VAR_PART: case VAR_AUXILIARY: case VAR_DERIVED: case VAR_SERIES: case VAR_PREDICTED: return true;
    case VAR_SUM: case VAR_PATTERN: case VAR_ELEMENT: break;
    }
    return false;
}

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

int state_fields(const Program *p, const Var **out)
{
    int n = 0;
    for (int i = 0; i < p->g->nvars; i++)
        if (in_state(p->g->vars[i])) out[n++] = p->g->vars[i];
    for (const Sum *s = p->sums; s; s = s->next) out[n++] = s->var;
    for (int i = 0; i < p->nwork; i++) out[n++] = p->work[i];
    return n;
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

static bool begins_a_name(const Graph *g, const char *stem)
{
    for (int i = 0; i < g->nvars; i++)
        if (strncmp(g->vars[i]->name, stem, strlen(stem)) == 0) return true;
    return false;
}

// Arrays of data that a GPU keeps in double precision. Responses are as they are in the file: what is wide is the copy of a chain.
static bool is_wide_data(const Program *p, const Var *v) { return v->rank && !v->response && !is_real(p, v); }

void emit_structs(Out *o, const Program *p, const Var *const *state, int nstate)
{
    FILE *out = o->file;
    fprintf(out, "typedef struct Data {\n");
    for (int i = 0; i < p->g->nvars; i++) {
        const Var *v = p->g->vars[i];
        if (v->kind != VAR_DATA) continue;
        fprintf(out, "    %s %s%s;%s%s%s\n", v->base == BASE_INT ? v->rank || v->response ? "int" : "long" : is_wide_data(p, v) ? "wide" : v->rank ? "real" : "double", v->rank ? "*" : "", c_name(o, v->name), v->rank ? "      // " : "",
                v->rank ? v->name : "", v->rank ? dims_text(o, v) : "");
    }
    for (int i = 0; i < p->g->nvars; i++)
        for (int k = 0; k < p->g->vars[i]->rank; k++) keep_totals(o, p->g->vars[i]->dim[k]);
    for (int i = 0; i < nstate; i++)
        for (int k = 0; k < state[i]->rank; k++) keep_totals(o, state[i]->dim[k]);
    o->total_name = "size_";
    while (begins_a_name(p->g, o->total_name)) o->total_name = text(o, "%s_", o->total_name);
    for (int i = 0; i < o->ntotals; i++) fprintf(out, "    long %s%d;      // %s\n", o->total_name, i + 1, ex_quote(o->arena, o->total[i]));
    fprintf(out, "} Data;\n\ntypedef struct State {          // of one chain\n");
    for (int i = 0; i < nstate; i++) {
        const Var *v = state[i];
        const char *note = v->kind == VAR_AUXILIARY ? "auxiliary " : v->kind == VAR_SUM && v->sum ? "sums of data " : v->kind == VAR_SUM ? "work " : "";
        fprintf(out, "    %s *%s;      // %s%s%s\n", element_type(p, v), c_name(o, v->name), note, v->name, dims_text(o, v));
    }
    fprintf(out, "} State;\n\n");
    const char *none = "VAR_NONE";
    for (int i = 0; i < nstate; i++)
        if (strcmp(state[i]->name, "NONE") == 0) none = "VAR_NONE_";
    fprintf(out, "enum {                           // streams of random numbers\n    %s = 0,\n", none);
    for (int i = 0; i < nstate; i++)
        if (state[i]->kind != VAR_SUM && state[i]->kind != VAR_LET) fprintf(out, "    VAR_%s = %d,\n", state[i]->name, i + 1);
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

static int field_of(const Var *const *list, int n, const Var *v)
{
    for (int i = 0; i < n; i++)
        if (list[i] == v) return i;
    return -1;
}

// Values may be missing if a step draws them.
static bool imputable(const Program *p, const Var *v)
{
    for (const Step *s = p->g->steps; s; s = s->next)
        if (s->imputes && s->block[0] == v) return true;
    return false;
}

// Infinite values make sense as ends of intervals only: not as a value that has a distribution, nor as a parameter of one.
static bool must_be_finite(const Graph *g, const Var *v)
{
    if (v->base != BASE_REAL) return false;
    bool used = v->response;
    for (const Factor *f = g->factors; f; f = f->next) {
        if (f->original || !f->dist) continue;
        if ((f->lower && ex_mentions(f->lower, v)) || (f->upper && ex_mentions(f->upper, v))) return false;
        for (int k = 0; k < f->nargs; k++) used |= ex_mentions(f->args[k], v);
    }
    return used;
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

// 1 + the place among the fields of Data of the number that is the extent as it stands, or 0.
static int extent_field(const Graph *g, const Expr *extent)
{
    int at = 0;
    for (int j = 0; j < g->nvars; j++) {
        if (g->vars[j]->kind != VAR_DATA) continue;
        at++;
        if (extent->kind == EX_REF && extent->var == g->vars[j] && g->vars[j]->rank == 0) return at;
    }
    return 0;
}

// A bound as it is written to the field's row, or to the function of shapes. Of data all that is declared counts, of unknowns what is the same for all elements.
typedef struct Bound { const Expr *value; double number; } Bound;        // value NULL: the number

// What is computed before the first sweep is not there yet when shapes are asked for.
static bool is_computed(const Var *v, void *with) { (void)with; return v->kind != VAR_DATA || v->rank > 0; }

static Bound bound_of(const Var *v, const Expr *declared, double number)
{
    if (declared && ex_any_var(declared, is_computed, NULL)) {
        declared = written_out((Expr *)declared);
        if (ex_any_var(declared, is_computed, NULL)) return (Bound){NULL, number};       // its density has it
    }
    if (v->kind == VAR_DATA && declared) return declared->kind == EX_NUM ? (Bound){NULL, declared->number} : (Bound){declared, number};
    if (isfinite(number)) return (Bound){NULL, number};
    return declared && !ex_unknown(declared) ? (Bound){declared, number} : (Bound){NULL, number};
}

static const char *row_bounds(Out *o, const Var *v)
{
    const Bound lower = bound_of(v, v->lower, v->lower_number), upper = bound_of(v, v->upper, v->upper_number);
    const double lo = lower.value || isnan(lower.number) ? -INFINITY : lower.number, hi = upper.value || isnan(upper.number) ? INFINITY : upper.number;
    if (isinf(lo) && isinf(hi)) return "";
    return text(o, "BOUNDED(%s, %s), ", expr_c(o, ex_num(lo), LOOSE), expr_c(o, ex_num(hi), LOOSE));
}

// The lines that complete a shape: extents, and bounds that are no numbers. They read data as the files give them.
static void emit_shape(Out *o, const Program *p, const Var *v)
{
    const Placement *at = placement_of(p, v);
    for (int k = 0; k < v->rank; k++) {
        const char *n = extent_c(o, v->dim[k], LOOSE);
        if (k == 0 && (at->when == IF_MANY || at->when == IF_SYSTEM || (at->when == IF_FEW && !at->rows->told)))       // rows that may be told are read, or not, however many they are
            n = text(o, at->when == IF_MANY ? "%s < %s ? 0 : %s" : "%s < %s ? %s : 0", extent_c(o, at->rows->count, ADDITIVE), extent_c(o, at->rows->size, ADDITIVE), n);
        line(o, "shape->dim[%d] = %s;", k, n);
    }
    const Bound lower = bound_of(v, v->lower, v->lower_number), upper = bound_of(v, v->upper, v->upper_number);
    if (lower.value) line(o, "shape->lower = %s;", expr_c(o, lower.value, LOOSE));
    if (upper.value) line(o, "shape->upper = %s;", expr_c(o, upper.value, LOOSE));
}

// A function of a field, by cases: fields of the same lines stand together. false: there are no lines at all.
typedef struct Case { char *lines; const char *fields; int n; struct Case *next; } Case;

static bool emit_shapes(Out *o, const Program *p, const char *name, const Var *const *field, int n)
{
    FILE *out = o->file;
    Case *first = NULL, **last = &first;
    for (int i = 0; i < n; i++) {
        char *lines;
        size_t length;
        o->file = open_memstream(&lines, &length);
        if (!o->file) abort();
        o->indent = 2;
        o->nnamed = 0;
        emit_shape(o, p, field[i]);
        fclose(o->file);
        Case *c = first;
        while (c && strcmp(c->lines, lines) != 0) c = c->next;
        if (c || !length) free(lines);
        if (!length) continue;
        if (!c) {
            c = NEW(o->arena, Case);
            *c = (Case){lines, NULL, 0, NULL};
            *last = c;
            last = &c->next;
        }
        c->fields = c->fields ? text(o, c->n % 12 ? "%s case %d:" : "%s\n    case %d:", c->fields, i) : text(o, "    case %d:", i);
        c->n++;
    }
    o->file = out;
    o->indent = 0;
    if (!first) return false;
    fprintf(out, "static void %s(int field, const void *data, GmShape *shape)\n{\n    const Data *const d = (const Data *)data;\n    (void)d;\n    switch (field) {\n", name);
    for (Case *c = first; c; c = c->next) {
        fprintf(out, "%s\n%s        break;\n", c->fields, c->lines);
        free(c->lines);
    }
    fprintf(out, "    }\n}\n\n");
    return true;
}

const char *emit_tables(Out *o, const Program *p, const Var *const *state, int nstate)
{
    FILE *out = o->file;
    const Graph *g = p->g;
    const Var **data = NEW_N(o->arena, const Var *, g->nvars + 1);
    int ndata = 0;
    bool defaults = false;
    for (int i = 0; i < g->nvars; i++)
        if (g->vars[i]->kind == VAR_DATA) data[ndata++] = g->vars[i];
    fprintf(out, "static const GmField data_fields[] = {\n");
    for (int i = 0; i < ndata; i++) {
        const Var *v = data[i];
        fprintf(out, "    {.name = \"%s\", .type = %s, .role = GM_DATA, ", v->name, v->base == BASE_INT ? "GM_INT" : is_wide_data(p, v) ? "GM_WIDE" : "GM_REAL");
        const Constraint constraint = v->constraint != CONSTRAINT_NONE ? v->constraint : v->asked;
        if (constraint != CONSTRAINT_NONE || v->asked_counts) fprintf(out, ".constraint = %s, ", v->asked_counts ? "GM_COUNTS" : constraint_name(constraint));
        if (v->asked_by) fprintf(out, ".asked_by = \"%s\", ", v->asked_by);
        if (v->rank) fprintf(out, ".rank = %d, ", v->rank);
        fprintf(out, ".offset = offsetof(Data, %s), %s%s", c_name(o, v->name), v->init ? ".has_default = 1, " : "", v->response && imputable(p, v) ? ".may_miss = 1, " : "");
        if (v->response && (v->needed_for || g->method == METHOD_EM)) fprintf(out, ".needed_for = \"%s\", ", v->needed_for ? v->needed_for : "with --method em data are whole: leave the rows out, or draw, without it");
        if (v->may_be_left_out && imputable(p, v)) fprintf(out, ".may_be_left_out = 1, ");
        if (must_be_finite(g, v)) fprintf(out, ".finite = 1, ");
        if (v->response) fprintf(out, ".imputed_field = %d, ", field_of(state, nstate, v) + 1);
        fprintf(out, "%s.where = \"%s\",\n     .declared = \"%s %s%s\"", row_bounds(o, v), source_line(o, v->span), type_and_bounds(o, v), v->name, dims_text(o, v));
        for (int k = 0; k < v->rank; k++) fprintf(out, "%s%d", k ? ", " : ", .extent_of = {", extent_field(g, v->dim[k]));
        fprintf(out, v->rank ? "}},\n" : "},\n");
        defaults |= v->init != NULL;
    }
    if (!ndata) fprintf(out, "    {0},\n");
    fprintf(out, "};\n\nstatic const GmField state_fields[] = {\n");
    for (int i = 0; i < nstate; i++) {
        const Var *v = state[i];
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
        if (v->part_of) fprintf(out, ", .part_of = %d, .part = %d", 1 + field_of(state, nstate, v->part_of), v->part_at);
        if (*row_bounds(o, v)) fprintf(out, ", %.*s", (int)strlen(row_bounds(o, v)) - 2, row_bounds(o, v));
        if (v->span.source) fprintf(out, ", .where = \"%s\"", source_line(o, v->span));
        fprintf(out, "},\n");
    }
    if (!nstate) fprintf(out, "    {0},\n");
    fprintf(out, "};\n\n");
    const char *members = "";
    o->careful = o->host = o->as_read = true;
    if (emit_shapes(o, p, "data_shape", data, ndata)) members = text(o, "%s, .data_shape = data_shape", members);
    if (defaults) {
        fprintf(out, "static double data_default(int field, const void *data)\n{\n    const Data *const d = (const Data *)data;\n    (void)d;\n    switch (field) {\n");
        for (int i = 0; i < ndata; i++)
            if (data[i]->init) fprintf(out, "    case %d: return %s;\n", i, expr_c(o, data[i]->init, LOOSE));
        fprintf(out, "    }\n    return 0;\n}\n\n");
        members = text(o, "%s, .data_default = data_default", members);
    }
    if (emit_shapes(o, p, "state_shape", state, nstate)) members = text(o, "%s, .state_shape = state_shape", members);
    if (o->ntotals) {
        fprintf(out, "static void data_sizes(void *data)\n{\n    Data *const d = (Data *)data;\n");
        o->host = true;
        for (int i = 0; i < o->ntotals; i++) fprintf(out, "    d->%s%d = %s;\n", o->total_name, i + 1, extent_c(o, o->total[i], LOOSE));
        o->host = false;
        fprintf(out, "}\n\n");
        members = text(o, "%s, .data_sizes = data_sizes", members);
    }
    o->careful = o->host = o->as_read = false;
    return members;
}

bool emit_labels(Out *o, const Program *p, const Var *const *state, int nstate)
{
    if (!p->g->labels) return false;
    fprintf(o->file, "// Names of components, and the variables that run over them: what `relabel` may permute.\n");
    int n = 0;
    for (const Labels *l = p->g->labels; l; l = l->next) {
        n++;
        if (l->alike) {
            fprintf(o->file, "static const GmAlike alike_%d[] = {", n);
            for (const Alike *a = l->alike; a; a = a->next) {
                int at = 0;
                for (int i = 0; i < p->g->nvars && p->g->vars[i] != a->var; i++) at += p->g->vars[i]->kind == VAR_DATA;
                fprintf(o->file, "{%d, %d}, ", 1 + at, a->dim);
            }
            fprintf(o->file, "{0, 0}};\n");
        }
        fprintf(o->file, "static const GmLabelled labelled_%d[] = {\n", n);
        for (const Labelled *v = l->vars; v; v = v->next) {
            const int field = field_of(state, nstate, v->var);
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
        fprintf(o->file, "    {.by = %d", 1 + field_of(state, nstate, l->by));
        if (l->told_apart) fprintf(o->file, ", .told_apart = \"%s\"", l->told_apart);
        if (l->not_permuted) fprintf(o->file, ", .not_permuted = \"%s\"", l->not_permuted);
        if (l->alike) fprintf(o->file, ", .alike = alike_%d", n + 1);
        fprintf(o->file, ", .fields = labelled_%d},\n", ++n);
    }
    fprintf(o->file, "    {0},\n};\n\n");
    return true;
}

bool emit_observed(Out *o, const Program *p, const Var *const *state, int nstate)
{
    const Graph *g = p->g;
    if (!g->observed) return false;
    fprintf(o->file, "// What is observed: its log-likelihood and replicates, for runs that ask for them.\nstatic const GmObserved observed[] = {\n");
    for (const Observed *s = g->observed; s; s = s->next) {
        int data = 0, at = 0;
        for (int i = 0; i < g->nvars; i++) {
            at += g->vars[i]->kind == VAR_DATA;
            if (g->vars[i] == s->var && s->var->kind == VAR_DATA) data = at;
        }
        fprintf(o->file, "    {.where = \"%s\"", source_line(o, s->span));
        if (s->name) fprintf(o->file, ", .name = \"%s\"", s->name);
        if (data) fprintf(o->file, ", .data = %d", data);
        if (s->log_lik) fprintf(o->file, ", .log_lik = %d", 1 + field_of(state, nstate, s->log_lik));
        if (s->replicate) fprintf(o->file, ", .replicate = %d", 1 + field_of(state, nstate, s->replicate));
        if (s->no_log_lik) fprintf(o->file, ", .no_log_lik = \"%s\"", s->no_log_lik);
        if (s->no_replicate) fprintf(o->file, ", .no_replicate = \"%s\"", s->no_replicate);
        fprintf(o->file, "},\n");
    }
    fprintf(o->file, "    {0},\n};\n\n");
    return true;
}
