// info.c -- `gmc --info`: what a program asks for and gives, as data for other programs. docs/pages.md has the schema.
#include "../graph/plan/observed.h"
#include "../graph/plan/priors.h"
#include "json_text.h"
#include "pages.h"

#include <math.h>
#include <string.h>

static const char *type_of(const Var *v)
{
    static const char *const constrained[] = {
#define X(id, text) [CONSTRAINT_##id] = text,
        CONSTRAINTS(X)
#undef X
    };
    return v->constraint != CONSTRAINT_NONE ? constrained[v->constraint] : v->base == BASE_INT ? "int" : "real";
}

static void dims(FILE *out, const Pages *p, const Var *v)
{
    fputs("\"dims\": [", out);
    for (int k = 0; k < v->rank; k++) {
        if (k) fputs(", ", out);
        json_string(out, ex_text(p->arena, v->dim[k]));
    }
    fputc(']', out);
}

// A number, or an expression in sizes and data; none: null.
static void bound(FILE *out, const Pages *p, const char *name, const FieldBound *b)
{
    fprintf(out, ", \"%s\": ", name);
    if (b->value) json_string(out, ex_text(p->arena, b->value));
    else if (isfinite(b->number)) fprintf(out, "%.17g", b->number);
    else fputs("null", out);
}

static void begin(FILE *out, const Pages *p, const Var *v, bool *any)
{
    fputs(*any ? ",\n    {" : "\n    {", out);
    *any = true;
    json_member(out, "name", v->name);
    fputs(", ", out);
    json_member(out, "type", type_of(v));
    fputs(", ", out);
    dims(out, p, v);
}

static const char *truth(bool x) { return x ? "true" : "false"; }

// Values may be names of levels where gmc's runtime takes them (runtime/host/levels.c): int<lower=1, upper=...>, int<upper=J>.
static bool takes_names(const Field *f)
{
    return f->var->base == BASE_INT && f->var->rank > 0 && !f->lower.value &&
           (f->lower.number == 1 ? f->upper_of || isfinite(f->upper.number) : f->upper_of && isinf(f->lower.number));
}

static bool counts_unknowns(const Program *p, int size)
{
    bool any = false;
    for (int k = 0; k < p->nstate; k++)
        for (int r = 0; var_unknown(p->state[k].var) && r < p->state[k].var->rank; r++) any |= p->state[k].extent_of[r] == size + 1;
    return any;
}

// Whether other data give it (runtime/host/data.c): an extent, the lengths of rows, a number of levels that counts unknowns.
static bool may_be_found(const Program *p, int i)
{
    bool found = false;
    for (int k = 0; k < p->ndata; k++) {
        for (int r = 0; r < p->data[k].var->rank; r++) found |= p->data[k].extent_of[r] == i + 1;
        found |= p->data[k].rows_of == i + 1;
        found |= takes_names(&p->data[k]) && p->data[k].upper_of == i + 1 && counts_unknowns(p, i);
    }
    return found;
}

static void inputs(FILE *out, const Pages *p)
{
    const Program *program = p->program;
    bool any = false;
    for (int i = 0; i < program->ndata; i++) {
        const Field *f = &program->data[i];
        begin(out, p, f->var, &any);
        bound(out, p, "lower", &f->lower);
        bound(out, p, "upper", &f->upper);
        const Expr *init = f->var->init;
        bound(out, p, "default",
              init && init->kind == EX_NUM ? &(FieldBound){.number = init->number} : &(FieldBound){.value = init, .number = NAN});
        fprintf(out, ", \"response\": %s, \"missing\": %s, \"names\": %s, \"size\": %s}", truth(f->var->response),
                truth(f->may_miss && !f->needed_for), truth(takes_names(f)), truth(may_be_found(program, i)));
    }
}

static const char *kind_of(const Var *v)
{
    switch (v->kind) {
    case VAR_PARAMETER: return v->parts ? NULL : "parameter";
    case VAR_PART: return "parameter";
    case VAR_LATENT: return "latent";
    case VAR_AUXILIARY: return v->hidden ? NULL : "auxiliary";
    case VAR_DERIVED:
    case VAR_SERIES: return v->hidden ? NULL : "definition";
    case VAR_PREDICTED:
        return v->hidden                             ? NULL
               : v->on_request == REQUEST_LOG_LIK    ? "log_lik"
               : v->on_request == REQUEST_REPLICATES ? "replicate"
               : v->on_request == REQUEST_LOG_PRIOR  ? "log_prior"
                                                     : "prediction";
    case VAR_DATA: return v->response ? "missing" : NULL;
    case VAR_LET:
    case VAR_SUM:
    case VAR_PATTERN:
    case VAR_ELEMENT: return NULL;
    }
    return NULL;
}

static bool is_unknown(const char *kind)
{
    return strcmp(kind, "parameter") == 0 || strcmp(kind, "latent") == 0 || strcmp(kind, "auxiliary") == 0;
}

static void unknowns(FILE *out, const Pages *p)
{
    bool any = false;
    for (int i = 0; i < p->program->nstate; i++) {
        const Field *f = &p->program->state[i];
        const char *kind = placement_of(p->program, f->var)->diagnostics ? NULL : kind_of(f->var);
        if (!kind || !is_unknown(kind)) continue;
        begin(out, p, f->var, &any);
        bound(out, p, "lower", &f->lower);
        bound(out, p, "upper", &f->upper);
        fprintf(out, ", \"kind\": \"%s\"}", kind);
    }
}

// The variable whose log-likelihood, log prior or replicate this is.
static const char *observed_by(const Graph *g, const Var *v)
{
    for (const PriorTerm *t = g->priors; t; t = t->next)
        if (t->term == v) return t->of ? t->name : NULL;
    for (const Observed *o = g->observed; o; o = o->next)
        if (o->log_lik == v || o->replicate == v) return o->name;
    return NULL;
}

static void outputs(FILE *out, const Pages *p)
{
    bool any = false;
    for (int i = 0; i < p->program->nstate; i++) {
        const Field *f = &p->program->state[i];
        const char *kind = placement_of(p->program, f->var)->diagnostics ? NULL : kind_of(f->var);
        if (!kind) continue;
        const char *option = strcmp(kind, "log_lik") == 0                                  ? "--log-lik"
                             : strcmp(kind, "log_prior") == 0                              ? "--log-prior"
                             : strcmp(kind, "replicate") == 0                              ? "--predict"
                             : strcmp(kind, "auxiliary") == 0                              ? "--params all,auxiliaries"
                             : strcmp(kind, "latent") == 0 || strcmp(kind, "missing") == 0 ? "--params all"
                                                                                           : NULL;
        begin(out, p, f->var, &any);
        fputs(", ", out);
        json_member(out, "kind", kind);
        fputs(", ", out);
        json_member(out, "of", f->var->kind == VAR_DATA ? f->var->name : observed_by(p->g, f->var));
        fputs(", ", out);
        json_member(out, "option", option);
        fputc('}', out);
    }
}

static void methods(FILE *out, const Pages *p)
{
    for (int i = 0; i < p->nderivations; i++) {
        const Derivation *d = &p->derivation[i];
        fputs(i ? ",\n    {\"draws\": [" : "\n    {\"draws\": [", out);
        for (int k = 0; k < d->update->nblock; k++) {
            if (k) fputs(", ", out);
            json_string(out, d->update->block[k]->name);
        }
        fputs("], ", out);
        json_member(out, "method", d->brief);
        fputc('}', out);
    }
}

void page_info(FILE *out, const Pages *p, const char *version)
{
    static const struct {
        const char *name;
        void (*print)(FILE *, const Pages *);
    } parts[] = {{"inputs", inputs}, {"unknowns", unknowns}, {"outputs", outputs}, {"methods", methods}};
    fputs("{\n  \"format\": \"gmc-info-1\",\n  ", out);
    json_member(out, "model", p->g->model->name);
    fputs(", ", out);
    json_member(out, "file", p->file);
    fputs(", ", out);
    json_member(out, "gmc", version);
    for (size_t k = 0; k < sizeof parts / sizeof *parts; k++) {
        fprintf(out, ",\n  \"%s\": [", parts[k].name);
        parts[k].print(out, p);
        fputs("]", out);
    }
    fputs("\n}\n", out);
}
