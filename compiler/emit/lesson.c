// lesson.c -- one chain of Gibbs updates as plain C: what a lecturer types through (gmc --lesson).
//
//   data and state       two structs, whose scalars are values
//   updates              a function for each kernel, whose loops are loops of C
//   main                 data are read, unknowns start, the sweep
//
// Needs: a Program completed for a lesson (kernel/lesson.c).     Gives: C that includes runtime/device/lesson.h. Nothing is decided here.
#include <math.h>
#include <string.h>
#include "emit.h"
#include "nodes.h"
#include "program.h"

static bool has_text(const Launch *l) { return l->shown && l->kernel && l->kernel->body; }

// The routine that draws a joint normal; NULL: the launch is none.
static const char *routine_name(const Launch *l)
{
    switch (l->shown ? l->kind : LAUNCH_END) {
    case LAUNCH_NORMAL_DENSE: return "draw_joint_normal";
    case LAUNCH_NORMAL_ARROW: return "draw_arrow";
    case LAUNCH_NORMAL_DENSE_SCALED: return "draw_joint_normal_scaled";
    case LAUNCH_NORMAL_ARROW_SCALED: return "draw_arrow_scaled";
    default: return NULL;
    }
}

// Past what only --check launches.
static const Launch *unchecked(const Launch *l)
{
    while (l && l->kind == LAUNCH_CHECKED) {
        while (l && l->kind != LAUNCH_END) l = l->next;
        if (l) l = l->next;
    }
    return l;
}

// ---- calls of routines ----

static const char *argument(const Out *o, const LaunchArg *a)
{
    switch (a->kind) {
    case ARG_EXTENT: return extent_c(o, a->extent, LOOSE);
    case ARG_COUNT: return count_text(o, &a->count);
    case ARG_PLACE:
    case ARG_NAME: return text(o, a->var->rank ? "%s" : "&%s", var_text(o, a->var));
    case ARG_STREAM: return text(o, "VAR_%s", c_name(o, a->var->name));
    case ARG_STRING: return text(o, "\"%s\"", a->string);
    case ARG_NUMBER: return number_c(o, a->number);
    case ARG_WORK:
    case ARG_FIELD:
    case ARG_FUNCTION:
    case ARG_PRODUCT: break;
    }
    return "0";
}

static const char *routine(const Out *o, const Launch *l)
{
    const char *list = "";
    for (int i = 0; i < l->nargs; i++) list = text(o, "%s%s%s", list, i ? ", " : "", argument(o, &l->arg[i]));
    return text(o, "%s(%s);", routine_name(l), list);
}

// ---- functions ----

static bool is_drawn(const NodePart *part, void *with)
{
    (void)with;
    return part->kind == HAS_DRAWN;
}

// Whether a body may declare a name that one before it has declared in the same function; name NULL: any. What is drawn other than by DRAW
// has names that its text declares.
static bool declares(const Node *list, const char *name)
{
    for (const Node *n = list; n; n = n->next) {
        if (n->kind == NODE_LET && (!name || strcmp(n->let.local->name, name) == 0)) return true;
        if (n->kind == NODE_DRAW ? !n->draw.law : each_part(n, is_drawn, NULL)) return true;
        if (n->kind != NODE_LOOP && declares(n->body, name)) return true;
    }
    return false;
}

// Whether a body declares a name that one of the launches before has declared in the same function.
static bool meets(const Node *list, const Launch *before, const Launch *l)
{
    for (const Node *n = list; n; n = n->next) {
        const bool let = n->kind == NODE_LET, drawn = n->kind == NODE_DRAW ? !n->draw.law : each_part(n, is_drawn, NULL);
        if (n->kind != NODE_LOOP && meets(n->body, before, l)) return true;
        for (const Launch *b = before; (let || drawn) && b != l; b = b->next)
            if (has_text(b) && declares(b->kernel->body, let ? n->let.local->name : NULL)) return true;
    }
    return false;
}

static const char *first_law(const Out *o, const Launches *list)
{
    for (const Launch *l = unchecked(list->first); l; l = unchecked(l->next))
        if (has_text(l)) return law_text(o, l->kernel);
    return "";
}

static void emit_law(const Out *o, const Kernel *k)
{
    for (const char *law = law_text(o, k); *law; law += strcspn(law, "\n") + 1) line(o, "%.*s", (int)strcspn(law, "\n"), law);
}

// All that the launches do, in one function.
static void emit_function(Out *o, const char *name, const Launches *list)
{
    bool first = true;
    FUNCTION("%sstatic void %s(void)", first_law(o, list), name)
    {
        for (const Launch *l = unchecked(list->first); l; l = unchecked(l->next)) {
            if (l->kind == LAUNCH_WHERE) line(o, "if (!(%s)) return;", extent_c(o, l->arg[0].extent, LOOSE));
            if (routine_name(l)) line(o, "%s", routine(o, l));
            if (!has_text(l)) continue;
            if (!first) emit_law(o, l->kernel);
            const bool apart = meets(l->kernel->body, list->first, l);
            first = false;
            if (apart) PLAIN_BLOCK emit_body(o, l->kernel);
            else SAME_BLOCK emit_body(o, l->kernel);
        }
    }
}

static void emit_apart(Out *o, const Launches *list)
{
    for (const Launch *l = unchecked(list->first); l; l = unchecked(l->next))
        if (has_text(l)) emit_kernel(o, l->kernel);
}

// ---- calls, some on a line ----

enum { WIDE = 134 };

typedef struct Row {
    const char *text;
    bool whole;  // it does not end, however long it is
} Row;

static void end_row(const Out *o, Row *r)
{
    if (r->whole) return;
    if (r->text) line(o, "%s", r->text);
    r->text = NULL;
}

static void add_call(const Out *o, Row *r, const char *call)
{
    if (r->text && !r->whole && strlen(r->text) + strlen(call) > WIDE) end_row(o, r);
    r->text = r->text ? text(o, "%s %s", r->text, call) : call;
}

static void add_functions(const Out *o, Row *r, const Launches *list)
{
    for (const Launch *l = unchecked(list->first); l; l = unchecked(l->next))
        if (has_text(l)) add_call(o, r, text(o, "%s();", l->kernel->name));
}

// ---- main ----

static const char *bound_c(const Out *o, const FieldBound *b, const char *none)
{
    if (b->value) return expr_c(o, b->value, LOOSE);
    return isnan(b->number) || isinf(b->number) ? none : number_c(o, b->number);
}

static const char *dims_c(const Out *o, const Var *v)
{
    const char *all = "";
    for (int k = 0; k < v->rank; k++) all = text(o, "%s, %s", all, extent_c(o, v->dim[k], LOOSE));
    return all;
}

static const char *field_c(const Out *o, const char *macro, const Field *f)
{
    static const char *const constraint[] = {
#define X(id, text) [CONSTRAINT_##id] = #id,
        CONSTRAINTS(X)
#undef X
    };
    const Var *v = f->var;
    const char *name = c_name(o, v->name), *array = v->rank ? "_ARRAY" : "";
    const char *lo = bound_c(o, &f->lower, "-INFINITY"), *hi = bound_c(o, &f->upper, "INFINITY");
    const Constraint asked = v->constraint != CONSTRAINT_NONE ? v->constraint : v->kind == VAR_DATA ? v->asked : CONSTRAINT_NONE;
    const char *what = asked != CONSTRAINT_NONE ? text(o, "GM_%s", constraint[asked]) : v->asked_counts ? "GM_COUNTS" : NULL;
    if (what) return text(o, "%s_THAT(%s, %s, %s, %s%s);", macro, what, name, lo, hi, dims_c(o, v));
    return text(o, "%s%s(%s, %s, %s%s);", macro, array, name, lo, hi, dims_c(o, v));
}

// A size that the files may leave out: an array is declared with it.
static const char *size_c(const Out *o, const Program *p, const Field *f)
{
    const int number = 1 + (int)(f - p->data);
    for (int i = 0; i < p->ndata; i++)
        for (int k = 0; k < p->data[i].var->rank; k++)
            if (p->data[i].shown && p->data[i].extent_of[k] == number)
                return text(o, "SIZE(%s, %s, %s, %s, %d, %d);", c_name(o, f->var->name), bound_c(o, &f->lower, "-INFINITY"),
                            bound_c(o, &f->upper, "INFINITY"), c_name(o, p->data[i].var->name), k + 1, p->data[i].var->rank);
    return field_c(o, "INT", f);
}

static const char *data_c(const Out *o, const Program *p, const Field *f)
{
    if (f->var->init) {
        const char *otherwise = expr_c(o, f->var->init, LOOSE);
        return text(o, "%s_OR(%s, %s, %s, %s);", f->var->base == BASE_INT ? "INT" : "REAL", c_name(o, f->var->name), otherwise,
                    bound_c(o, &f->lower, "-INFINITY"), bound_c(o, &f->upper, "INFINITY"));
    }
    if (f->var->base == BASE_INT && !f->var->rank) return size_c(o, p, f);
    return field_c(o, f->var->base == BASE_INT ? "INT" : "REAL", f);
}

static bool starts(const Var *v) { return v->kind == VAR_PARAMETER || v->kind == VAR_LATENT || (v->kind == VAR_AUXILIARY && !v->hidden); }

static bool is_shown_to_user(const Var *v)
{
    return (v->kind == VAR_DERIVED || v->kind == VAR_PREDICTED || v->kind == VAR_SERIES) && !v->hidden;
}

static void emit_start(const Out *o, const Program *p, Row *r)
{
    for (int i = 0; i < p->nstate; i++) {
        const Field *f = &p->state[i];
        const Var *v = f->var;
        if (!f->shown) continue;
        if (starts(v)) add_call(o, r, field_c(o, v->kind == VAR_PARAMETER ? "START" : "START_LATENT", f));
        else if (v->rank) add_call(o, r, text(o, "ROOM(%s%s);", c_name(o, v->name), dims_c(o, v)));
    }
    for (int i = 0; i < p->nstate; i++)
        if (p->state[i].shown && is_shown_to_user(p->state[i].var)) {
            const Var *v = p->state[i].var;
            add_call(o, r, text(o, "SHOW%s(%s%s);", v->rank ? "_ARRAY" : "", c_name(o, v->name), dims_c(o, v)));
        }
}

static void add_sweep(const Out *o, const Program *p, Row *r)
{
    add_functions(o, r, &p->restore);
    add_functions(o, r, &p->before);
    end_row(o, r);
    for (int i = 0; i < p->nupdates; i++)
        if (p->updates[i].shown) add_call(o, r, text(o, "%s();", p->updates[i].function));
    end_row(o, r);
    add_functions(o, r, &p->before);
    add_functions(o, r, &p->derive);
    end_row(o, r);
}

static void emit_main(Out *o, const Program *p)
{
    Row row = {0}, sweep = {.whole = true};
    add_sweep(o, p, &sweep);
    ENDING("}", "int main(int argc, char **argv)")
    {
        line(o, "begin(argc, argv);");
        for (int i = 0; i < p->ndata; i++)
            if (p->data[i].shown) add_call(o, &row, data_c(o, p, &p->data[i]));
        end_row(o, &row);
        emit_start(o, p, &row);
        add_functions(o, &row, &p->prepare);
        add_functions(o, &row, &p->finish);
        end_row(o, &row);
        if (sweep.text && strlen(sweep.text) <= WIDE) line(o, "while (next_sweep()) { %s }", sweep.text);
        else
            BLOCK ("while (next_sweep())") add_sweep(o, p, &row);
        line(o, "return end();");
    }
}

// A path without folders and without its last ending.
static const char *stem(const Out *o, const char *path)
{
    const char *name = strrchr(path, '/') ? strrchr(path, '/') + 1 : path, *dot = strrchr(name, '.');
    return text(o, "%.*s", dot ? (int)(dot - name) : (int)strlen(name), name);
}

void emit_lesson(FILE *to, const Program *p, const char *source, const char *output)
{
    Scope scope = {.arena = p->g->arena, .g = p->g};
    Map real = {0};
    Out out = {.program = p, .g = p->g, .arena = p->g->arena, .page = page_new(p->g->arena, to, true), .scope = &scope, .real = &real},
        *o = &out;
    const char *name = stem(o, output ? output : source);
    line(o, "// %s: one chain of Gibbs updates.   cc -O2 %s.c $(gmc --lesson-flags) -o %s; ./%s data.json > draws.csv",
         source_name(o->arena, source), name, name, name);
    if (p->starts)
        line(o, "// Starts may lie where the density is 0. The full program then looks for others; this takes them as they are.");
    directive(o, "#include \"lesson.h\"  // NORMAL(mean, precision); NORMAL_WITHIN(h, precision, ends): of mean h/precision; "
                 "POWER_GAMMA(a, ...): x^a is gamma");
    if (p->uses.bands) directive(o, "#include \"band.h\"");
    if (p->uses.links) directive(o, "#define GM_STATES_TOGETHER   // of several unknowns");
    if (p->uses.states) directive(o, "#include \"states.h\"");
    emit_lesson_structs(o, p);
    for (const Kernel *k = p->setup.first; k; k = k->next)
        if (k->shown) emit_kernel(o, k);
    emit_apart(o, &p->prepare);
    emit_apart(o, &p->finish);
    for (const Kernel *k = p->sweep.first; k; k = k->next)
        if (k->shown) emit_kernel(o, k);
    emit_apart(o, &p->before);
    for (int i = 0; i < p->nupdates; i++)
        if (p->updates[i].shown) emit_function(o, p->updates[i].function, &p->updates[i].launches);
    emit_apart(o, &p->derive);
    emit_apart(o, &p->restore);
    emit_main(o, p);
    page_close(out.page);
}
