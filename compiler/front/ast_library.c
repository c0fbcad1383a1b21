// ast_library.c -- distributions, families and augmentations of the library, and functions, as the grammar makes them.
#include <string.h>
#include "front.h"
#include "parse.h"

// ---- files of the standard library ----

void distribution_begin(Parse *p, Span at, const char *name, bool is_family)
{
    Distribution *d = NEW(p->arena, Distribution);
    d->name = name;
    d->span = at;
    d->is_family = is_family;
    p->distribution = d;
    p->last_natural = &d->natural;
}

void distribution_parameter(Parse *p, TypeExpr type, const char *name, Span at)
{
    Distribution *d = p->distribution;
    Decl *v = decl_new(p, DECL_PARAMETER, name, at);
    v->has_type = true;
    v->type = type.type;
    v->constraint = type.constraint;
    v->lower = type.lower;
    v->upper = type.upper;
    for (int k = 0; k < v->type.rank; k++) {
        const Ast *size = v->type.dim[k];
        if (size && (size->kind != AST_NAME || k >= 2)) parse_fail(p, size->span, DIAG_E0110, name, "sizes that are names, or none");
        else if (size) v->own_size[k] = size->name;
        v->type.dim[k] = NULL;
    }
    List params = {d->nparams, d->nparams, (void **)d->params};
    list_add(p->arena, &params, v);
    d->params = (Decl **)params.item;
    d->nparams = params.n;
}

const SupportRow support_table[SUPPORTS] = {
#define SUPPORT(id, word, rank, ends, sized, discrete, constraint, from_line, log_jacobian) \
    [SUPPORT_##id] = {word, rank, ends, sized, discrete, CONSTRAINT_##constraint, from_line, log_jacobian},
#include "support.def"
#undef SUPPORT
};

static bool infinite(const Ast *e)
{
    if (e->kind == AST_UNARY && e->op == OP_NEG) e = e->kid[0];
    return e->kind == AST_CALL && (e->name == intern("infinity") || e->name == intern("negative_infinity"));
}

void distribution_support(Parse *p, Span at, const char *word, List args)
{
    Distribution *d = p->distribution;
    for (Support i = SUPPORT_REAL; i < SUPPORTS; i++) {
        const SupportRow *row = &support_table[i];
        if (strcmp(row->word, word) != 0) continue;
        d->support = i;
        d->value_rank = row->rank;
        d->discrete = row->discrete;
        if (row->ends == 2 && args.n == 2) {
            Ast **end = (Ast **)args.item;
            d->lower = infinite(end[0]) ? NULL : end[0];
            d->upper = infinite(end[1]) ? NULL : end[1];
        } else if (row->sized && args.n == 1) {
            d->size = args.item[0];
        } else if (args.n && !d->is_family) {
            parse_fail(p, at, DIAG_E0110, word, row->ends ? "its two ends" : row->sized ? "a size" : "nothing in parentheses");
        }
        return;
    }
    d->support = SUPPORT_REAL;
    parse_fail(p, at, DIAG_E0801, word, NULL);
}

void distribution_part(Parse *p, Span at, const char *part, Ast *value)
{
    Distribution *d = p->distribution;
    const struct {
        const char *name;
        Ast **slot;
        bool of_family;
    } parts[] = {
        {"log_density", &d->log_density, false},
        {"mean", &d->mean, false},
        {"mode", &d->mode, false},
        {"covariance_root", &d->covariance_root, false},
        {"precision_root", &d->precision_root, false},
        {"log_cdf", &d->cdf, false},
        {"log_ccdf", &d->ccdf, false},
        {"sample", &d->sample, false},
        {"sample_truncated", &d->sample_truncated, false},
        {"location", &d->location, false},
        {"scale", &d->scale, false},
        {"near_zero", &d->near_zero, false},
        {"far_end", &d->far_end, false},
        {"requires", &d->require, false},
        {"edge_from", &d->edge_from, false},
        {"edge_to", &d->edge_to, false},
        {"parts", &d->parts, false},
        {"base", &d->base, true},
        {"draw", &d->draw, true},
        {"draw_truncated", &d->draw_truncated, true},
        {"draw_law", &d->draw_law, true},
        {"draw_law_truncated", &d->draw_law_truncated, true},
        {"expectations", &d->expectations, true},
        {"expectations_truncated", &d->expectations_truncated, true},
    };
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        if (strcmp(parts[i].name, part) != 0 || parts[i].of_family != d->is_family) continue;
        if (*parts[i].slot) parse_fail(p, at, DIAG_E0201, part, NULL);
        *parts[i].slot = value;
        return;
    }
    parse_fail(p, at, DIAG_E0802, part, d->is_family ? "family" : "distribution");
}

void distribution_text(Parse *p, Span at, const char *part, const char *text)
{
    Distribution *d = p->distribution;
    if (d->is_family || strcmp(part, "meaning") != 0) parse_fail(p, at, DIAG_E0802, part, d->is_family ? "family" : "distribution");
    else d->meaning = text;
}

void distribution_natural(Parse *p, const char *name, Ast *statistic)
{
    if (!p->distribution->is_family) parse_fail(p, statistic->span, DIAG_E0802, "natural", "distribution");
    Natural *n = NEW(p->arena, Natural);
    *n = (Natural){.name = name, .statistic = statistic};
    *p->last_natural = n;
    p->last_natural = &n->next;
}

void distribution_synonym(Parse *p, Span at, const char *word, const char *of)
{
    Synonym *s = NEW(p->arena, Synonym), **last = &p->distribution->synonyms;
    if (p->distribution->is_family) parse_fail(p, at, DIAG_E0802, "synonyms", "family");
    *s = (Synonym){.word = word, .of = of, .span = at};
    while (*last) last = &(*last)->next;
    *last = s;
}

void distribution_law(Parse *p, Span at, Ast *of, Call call)
{
    Distribution *d = p->distribution;
    if (!d->is_family) parse_fail(p, at, DIAG_E0802, "law", "distribution");
    if (d->law) parse_fail(p, at, DIAG_E0201, "law", NULL);
    Law *l = NEW(p->arena, Law);
    *l = (Law){.of = of, .dist = call.name, .nargs = call.args.n, .args = (Ast **)call.args.item};
    d->law = l;
}

void distribution_law_parameter(Parse *p, const char *name, Ast *value)
{
    Natural *n = NEW(p->arena, Natural), **last = &p->distribution->law->parameter;
    *n = (Natural){.name = name, .statistic = value};
    while (*last) last = &(*last)->next;
    *last = n;
}

void distribution_end(Parse *p)
{
    Distribution *d = p->distribution, **last = &p->stdlib->distributions;
    while (*last) last = &(*last)->next;
    *last = d;
}

void augmentation_begin(Parse *p, Span at, const char *name)
{
    Augmentation *r = NEW(p->arena, Augmentation);
    r->name = name;
    r->span = at;
    p->augmentation = r;
    p->last_pattern = &r->match;
}

void augmentation_match(Parse *p, Span at, Ast *lhs, Call call, Truncation t)
{
    Pattern *m = NEW(p->arena, Pattern);
    m->stmt = stmt_tilde(p, at, NULL, NULL, lhs, call, t).first;
    *p->last_pattern = m;
    p->last_pattern = &m->next;
}

void augmentation_end(Parse *p)
{
    Augmentation *r = p->augmentation, **last = &p->stdlib->augmentations;
    while (*last) last = &(*last)->next;
    *last = r;
}

// ---- functions ----

void formula_begin(Parse *p) { p->function = NEW(p->arena, FunctionDecl); }

// Kinds of arguments alone: sizes are those of what is given, and bounds are not checked.
static void check_kind(Parse *p, const TypeExpr *t)
{
    bool sized = false;
    for (int i = 0; i < t->type.rank; i++) sized |= t->type.dim[i] != NULL;
    if (sized || t->lower || t->upper || t->constraint != CONSTRAINT_NONE)
        parse_fail(p, t->span, DIAG_E0110, "function",
                   "kinds of arguments without sizes and bounds: int, real, vector, matrix, or array[] and one of them");
}

void formula_parameter(Parse *p, const TypeExpr *type, const char *name, Span at)
{
    FunctionDecl *f = p->function;
    Decl *v = decl_new(p, DECL_PARAMETER, name, at);
    v->has_type = type != NULL;
    if (type) {
        check_kind(p, type);
        v->type = type->type;
    }
    for (int i = 0; i < f->nparams; i++)
        if (f->params[i]->name == name) parse_fail(p, at, DIAG_E0201, name, NULL);
    List params = {f->nparams, f->nparams, (void **)f->params};
    list_add(p->arena, &params, v);
    f->params = (Decl **)params.item;
    f->nparams = params.n;
}

void formula_end(Parse *p, Span at, const char *name, const TypeExpr *type, Ast *body)
{
    FunctionDecl *f = p->function, **last = p->stdlib ? &p->stdlib->functions : &p->model->functions;
    f->name = name;
    f->span = at;
    f->typed = type != NULL;
    if (type) {
        check_kind(p, type);
        f->type = type->type;
    }
    f->body = body;
    while (*last) last = &(*last)->next;
    *last = f;
    p->function = NULL;
}
