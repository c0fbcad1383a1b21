// tables.c -- the Data and State of the program, and what it tells the runtime about them.
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "tables.h"

// ---- structs and tables ----

static bool in_state(const Var *v)
{
    switch (v->kind) {
    case VAR_DATA: return v->response;
    case VAR_LET: case VAR_PARAMETER: case VAR_LATENT: case VAR_AUXILIARY: case VAR_DERIVED: case VAR_SERIES: case VAR_PREDICTED: return true;
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

void emit_structs(Out *o, const Program *p, const Var *const *state, int nstate)
{
    FILE *out = o->file;
    fprintf(out, "typedef struct Data {\n");
    for (int i = 0; i < p->g->nvars; i++) {
        const Var *v = p->g->vars[i];
        if (v->kind != VAR_DATA) continue;
        fprintf(out, "    %s %s%s;%s%s%s\n", v->base == BASE_INT ? v->rank || v->response ? "int" : "long" : v->rank ? "real" : "double", v->rank ? "*" : "", c_name(o, v->name), v->rank ? "      // " : "",
                v->rank ? v->name : "", v->rank ? dims_text(o, v) : "");
    }
    fprintf(out, "} Data;\n\ntypedef struct State {          // of one chain\n");
    for (int i = 0; i < nstate; i++) {
        const Var *v = state[i];
        const char *note = v->kind == VAR_AUXILIARY ? "auxiliary " : v->kind == VAR_SUM && v->sum ? "sums of data " : v->kind == VAR_SUM ? "work " : "";
        fprintf(out, "    %s *%s;      // %s%s%s\n", element_type(p, v), c_name(o, v->name), note, v->name, dims_text(o, v));
    }
    fprintf(out, "} State;\n\n");
    fprintf(out, "enum {                           // streams of random numbers\n    VAR_NONE = 0,\n");
    for (int i = 0; i < nstate; i++)
        if (state[i]->kind != VAR_SUM && state[i]->kind != VAR_LET) fprintf(out, "    VAR_%s = %d,\n", state[i]->name, i + 1);
    fprintf(out, "};\n\n");
}

static const char *role_of(const Var *v)
{
    switch (v->kind) {
    case VAR_DATA: return v->response ? "GM_IMPUTED" : "GM_DATA";
    case VAR_PARAMETER: return "GM_PARAMETER";
    case VAR_LATENT: return "GM_LATENT";
    case VAR_AUXILIARY: return "GM_AUXILIARY";
    case VAR_DERIVED: case VAR_SERIES: return "GM_DERIVED";
    case VAR_PREDICTED:
        if (v->hidden) break;
        return "GM_PREDICTED";
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

void emit_tables(Out *o, const Program *p, const Var *const *state, int nstate)
{
    FILE *out = o->file;
    const Graph *g = p->g;
    int ndata = 0;
    fprintf(out, "static const GmField data_fields[] = {\n");
    for (int i = 0; i < g->nvars; i++) {
        const Var *v = g->vars[i];
        if (v->kind != VAR_DATA) continue;
        ndata++;
        const char *bounds = "";
        if (v->lower) bounds = text(o, "<lower=%s%s", math_text(o, v->lower), v->upper ? "" : ">");
        if (v->upper) bounds = text(o, "%s%supper=%s>", bounds, v->lower ? ", " : "<", math_text(o, v->upper));
        const char *extents = "";
        for (int k = 0; k < v->rank; k++) {
            int scalar = 0, at = 0;
            for (int j = 0; j < g->nvars; j++) {
                if (g->vars[j]->kind != VAR_DATA) continue;
                at++;
                if (v->dim[k]->kind == EX_REF && v->dim[k]->var == g->vars[j] && g->vars[j]->rank == 0) scalar = at;
            }
            extents = text(o, "%s%s%d", extents, k ? ", " : "", scalar);
        }
        fprintf(out, "    {.name = \"%s\", .type = %s, .role = GM_DATA, .constraint = %s, .rank = %d, .offset = offsetof(Data, %s), .has_default = %d, .may_miss = %d, %s%s.imputed_field = %d, .where = \"%s\",\n     .declared = \"%s%s %s%s\", .extent_of = {%s}},\n",
                v->name, v->base == BASE_INT ? "GM_INT" : "GM_REAL", constraint_name(v->constraint), v->rank, c_name(o, v->name), v->init != NULL,
                v->response && imputable(p, v), v->response && v->needed_for ? text(o, ".needed_for = \"%s\", ", v->needed_for) : "",
                must_be_finite(g, v) ? ".finite = 1, " : "", v->response ? field_of(state, nstate, v) : -1, source_line(o, v->span),
                v->base == BASE_INT ? "int" : "real", bounds, v->name, dims_text(o, v), *extents ? extents : "0");
    }
    if (!ndata) fprintf(out, "    {0},\n");
    fprintf(out, "};\n\nstatic const GmField state_fields[] = {\n");
    for (int i = 0; i < nstate; i++) {
        const Var *v = state[i];
        fprintf(out, "    {.name = \"%s\", .type = %s, .role = %s, .constraint = %s, .rank = %d, .offset = offsetof(State, %s), .imputed_field = -1, .shared = %d, %s.where = \"%s\"},\n",
                v->name, type_id(p, v), role_of(v), constraint_name(v->constraint), v->rank, c_name(o, v->name), sharing_of(p, v), v->partial ? ".partial = 1, " : "",
                v->span.source ? source_line(o, v->span) : "");
    }
    if (!nstate) fprintf(out, "    {0},\n");
    fprintf(out, "};\n\n");
    // Shapes. Sizes read data only; a bound may read data too, and responses as the files give them.
    o->careful = o->host = o->as_read = true;
    for (int which = 0; which < 2; which++) {
        fprintf(out, "static void %s_shape(int field, const void *data, GmShape *shape)\n{\n    const Data *const d = (const Data *)data;\n    (void)d;\n    shape->lower = -INFINITY;\n    shape->upper = INFINITY;\n    switch (field) {\n", which ? "state" : "data");
        int field = 0;
        int n = which ? nstate : g->nvars;
        for (int i = 0; i < n; i++) {
            const Var *v = which ? state[i] : g->vars[i];
            if (!which && v->kind != VAR_DATA) continue;
            fprintf(out, "    case %d:        // %s\n", field++, v->name);
            o->indent = 2;
            o->nnamed = 0;
            begin(o, "%s", "");
            line(o, "shape->rank = %d;", v->rank);
            for (int k = 0; k < v->rank; k++) {
                const char *n = extent_c(o, v->dim[k], LOOSE);
                const Placement *at = placement_of(p, v);
                if (at->when != ALWAYS && k == 0) n = text(o, at->when == IF_FEW ? "%s ? %s : 0" : "%s ? 0 : %s", text(o, "%s < %s", extent_c(o, at->rows->count, ADDITIVE), extent_c(o, at->rows->size, ADDITIVE)), n);
                line(o, "shape->dim[%d] = %s;", k, n);
            }
            bool bounds_data = v->kind == VAR_DATA;
            if (bounds_data && v->lower) line(o, "shape->lower = %s;", expr_c(o, v->lower, LOOSE));
            else if (isfinite(v->lower_number)) line(o, "shape->lower = %.17g;", v->lower_number);
            else if (v->lower && !ex_unknown(v->lower)) line(o, "shape->lower = %s;", expr_c(o, v->lower, LOOSE));
            if (bounds_data && v->upper) line(o, "shape->upper = %s;", expr_c(o, v->upper, LOOSE));
            else if (isfinite(v->upper_number)) line(o, "shape->upper = %.17g;", v->upper_number);
            else if (v->upper && !ex_unknown(v->upper)) line(o, "shape->upper = %s;", expr_c(o, v->upper, LOOSE));
            line(o, "break;");
            end(o);
        }
        o->indent = 0;
        fprintf(out, "    }\n}\n\n");
    }
    fprintf(out, "static double data_default(int field, const void *data)\n{\n    const Data *const d = (const Data *)data;\n    (void)d;\n    switch (field) {\n");
    int field = 0;
    for (int i = 0; i < g->nvars; i++) {
        const Var *v = g->vars[i];
        if (v->kind != VAR_DATA) continue;
        if (v->init) fprintf(out, "    case %d: return %s;\n", field, expr_c(o, v->init, LOOSE));
        field++;
    }
    o->careful = o->host = o->as_read = false;
    fprintf(out, "    }\n    return 0;\n}\n\n");
}

