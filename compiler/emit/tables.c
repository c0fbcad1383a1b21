// tables.c -- the Data and State of the program, and the tables that describe them to the runtime.
#include <math.h>
#include <string.h>
#include "program.h"
#include "../graph/plan/forward.h"

// ---- structs and tables ----

// Beside a field: N x p.
static const char *dims_text(const Out *o, const Var *v)
{
    if (v->rank == 0) return "";
    const char *t = "";
    for (int k = 0; k < v->rank; k++) {
        if (v->kind == VAR_SUM && ex_is_num(v->dim[k], 1) && (*t || k + 1 < v->rank)) continue;  // of a work array
        const bool apart = v->rank > 1 && v->dim[k]->kind != EX_NUM && v->dim[k]->kind != EX_REF;
        t = text(o, apart ? "%s%s(%s)" : "%s%s%s", t, *t ? " x " : "", math_text(o, v->dim[k]));
    }
    return t;
}

// As a declaration has them: [N, p]; of rows of different lengths [G, n].
static const char *declared_dims(const Out *o, const Field *f)
{
    const Var *v = f->var;
    const Var *lengths = f->rows_of ? o->program->data[f->rows_of - 1].var : NULL;
    const char *t = lengths ? text(o, "[%s, %s", math_text(o, lengths->dim[0]), lengths->name) : "";
    for (int k = lengths != NULL; k < v->rank; k++) t = text(o, "%s%s%s", t, k ? ", " : "[", math_text(o, v->dim[k]));
    return v->rank ? text(o, "%s]", t) : "";
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

// Arrays of data that a GPU keeps in double precision. Of a response State has the same type: if no value is missing, its array is that of
// Data.
static bool is_wide_data(const Program *p, const Var *v) { return v->rank && v->base == BASE_REAL && !is_real(p, v); }

// ---- members of Data and State, and streams ----

enum {
    ROW = 118,
    NOTES = 40,
    MOST_SHORT = 116,
    BLOCK_ROW = 136
};  // columns: where a list of names goes on in the next row, and where notes begin

// A list of names that are declared together, in rows.
typedef struct Names {
    const char *row, *note;  // the last row; what is said beside the first, "" if nothing
    const char *next;        // what the rows after the first begin with
    bool noted;
} Names;

static void end_row(const Out *o, Names *n, const char *end)
{
    const char *row = text(o, "%s%s", n->row, end);
    if (*n->note && !n->noted) line(o, "%-*s // %s", NOTES, row, n->note);
    else line(o, "%s", row);
    n->noted = true;
}

static void add_name(const Out *o, Names *n, const char *before, const char *name)
{
    if (!n->row) n->row = text(o, "%s%s", before, name);
    else if (strlen(n->row) + strlen(name) < ROW) n->row = text(o, "%s, %s", n->row, name);
    else {
        end_row(o, n, ",");
        n->row = text(o, "%s%s", n->next, name);
    }
}

// A member of a struct. Those of one type and one note are declared together.
typedef struct Member {
    const char *type, *name, *note;
    int sort;  // what comes first has a lower one
    bool done;
} Member;

static void emit_members(const Out *o, Member *member, int n, int sorts)
{
    for (int sort = 0; sort < sorts; sort++)
        for (int i = 0; i < n; i++) {
            const Member *m = &member[i];
            if (m->done || m->sort != sort) continue;
            Names names = {.note = m->note, .next = "    "};
            for (int k = i; k < n; k++) {
                Member *same = &member[k];
                if (same->sort != sort || strcmp(same->type, m->type) != 0 || strcmp(same->note, m->note) != 0) continue;
                add_name(o, &names, text(o, "%s ", m->type), same->name);
                same->done = true;
            }
            end_row(o, &names, ";");
        }
}

static Member data_member(const Out *o, const Program *p, const Var *v)
{
    const char *type = v->base == BASE_INT  ? v->rank || v->response ? "int" : "long"
                       : is_wide_data(p, v) ? "wide"
                       : v->rank            ? "real"
                                            : "double";
    return (Member){.type = type, .name = text(o, v->rank ? "*%s" : "%s", c_name(o, v->name)), .note = dims_text(o, v)};
}

// What State has, in the order in which it is listed there.
typedef enum { RESPONSES, UNKNOWNS, AUXILIARIES, OF_GROUP_MOVES, DEFINITIONS, PREDICTIONS, LOG_PRIOR, OF_MISSING, SUMS, WORK, SORTS } Sort;
static const char *const sort_name[SORTS] = {"responses, with missing values as they are drawn",
                                             "unknowns",
                                             "auxiliaries",
                                             "of group moves",
                                             "definitions",
                                             "for the draws",
                                             "terms of the log prior",
                                             "of missing values: the host adds up their log_lik_, and writes those of observed ones only",
                                             "sums of data",
                                             "work arrays"};

static bool is_of_missing(const Program *p, const Var *v)
{
    for (const PriorTerm *t = p->g->priors; t; t = t->next)
        if (t->term == v) return t->missing;
    return false;
}

static Sort sort_of(const Program *p, const Var *v)
{
    switch (v->kind) {
    case VAR_DATA: return RESPONSES;
    case VAR_PARAMETER:
    case VAR_PART:
    case VAR_LATENT: return UNKNOWNS;
    case VAR_AUXILIARY: return v->hidden ? OF_GROUP_MOVES : AUXILIARIES;
    case VAR_LET:
    case VAR_DERIVED:
    case VAR_SERIES: return DEFINITIONS;
    case VAR_PREDICTED: return v->on_request != REQUEST_LOG_PRIOR ? PREDICTIONS : is_of_missing(p, v) ? OF_MISSING : LOG_PRIOR;
    case VAR_SUM: return v->sum ? SUMS : WORK;
    case VAR_PATTERN:
    case VAR_ELEMENT: break;
    }
    return WORK;
}

// Sizes of work arrays are in the tables.
static Member state_member(const Out *o, const Program *p, const Var *v)
{
    const Sort sort = sort_of(p, v);
    return (Member){.type = element_type(p, v),
                    .name = text(o, "*%s", c_name(o, v->name)),
                    .note = v->lowered.note ? v->lowered.note
                                            : text(o, v->rank && sort != WORK ? "%s, %s" : "%s", sort_name[sort], dims_text(o, v)),
                    .sort = sort};
}

// A list of constants: on one line if they fit there.
typedef struct Constants {
    int n;
    const char **of;
} Constants;

static void emit_enum(Out *o, const Constants *c, const char *note)
{
    size_t length = 0;
    for (int i = 0; i < c->n; i++) length += strlen(c->of[i]) + 2;
    if (length < ROW && length + strlen(note) < BLOCK_ROW - strlen("enum { };  // ")) {
        part(o, "enum {");
        for (int i = 0; i < c->n; i++) part(o, "%s %s", i ? "," : "", c->of[i]);
        line(o, " };  // %s", note);
    } else
        NOTED ("};", text(o, "  // %s", note), "enum") {
            Names names = {.note = "", .next = ""};
            for (int i = 0; i < c->n; i++) add_name(o, &names, "", c->of[i]);
            end_row(o, &names, "");
        }
    blank(o);
}

// Numbers of the fields of Data or State, from 1.
static void emit_numbers(Out *o, const char *stem, const char *of, const Field *field, int n)
{
    if (!n) return;
    Constants c = {.n = n, .of = NEW_N(o->arena, const char *, n)};
    for (int i = 0; i < n; i++) c.of[i] = text(o, i ? "%s_%s" : "%s_%s = 1", stem, field[i].var->name);
    emit_enum(o, &c, of);
}

static void emit_streams(Out *o, const Program *p)
{
    Constants c = {.n = 1, .of = NEW_N(o->arena, const char *, p->nstate + 1)};
    c.of[0] = "VAR_NONE";
    if (o->g->lesson) c.n = 0;
    int last = o->g->lesson ? -1 : 0;
    for (int i = 0; i < p->nstate; i++) {
        const Var *v = p->state[i].var;
        if (strcmp(c_name(o, v->name), "NONE") == 0) c.of[0] = "VAR_NONE_";
        if (v->kind == VAR_SUM || v->kind == VAR_LET || (v->on_request && v->on_request != REQUEST_REPLICATES) ||
            (o->g->lesson && !p->state[i].shown))
            continue;
        c.of[c.n++] = text(o, last == i ? "VAR_%s" : "VAR_%s = %d", c_name(o, v->name), i + 1);
        last = i + 1;
    }
    if (c.n) emit_enum(o, &c, o->g->lesson ? "streams of random numbers" : "random streams, by the place in State");
}

// What stands for unknowns whose names are too many, or too long, to be part of others: those that a member is called by.
static void emit_block_names(const Out *o, const Program *p, bool shown)
{
    for (int b = 0; b < p->nblocks; b++) {
        const NamedBlock *block = &p->block[b];
        bool any = false;
        for (int i = 0; i < p->nstate; i++) any |= (!shown || p->state[i].shown) && strstr(p->state[i].var->name, block->name);
        for (int i = 0; i < p->nupdates; i++) any |= (!shown || p->updates[i].shown) && strstr(p->updates[i].function, block->name);
        if (!any) continue;
        const char *row = text(o, "// %s:", block->name);
        for (int i = 0; i < block->n; i++) {
            const char *more = text(o, "%s %s%s", row, c_name(o, block->var[i]->name), i + 1 < block->n ? "," : "");
            const bool full = strlen(more) > BLOCK_ROW;
            if (full) line(o, "%s", row);
            row = full ? text(o, "//     %s%s", c_name(o, block->var[i]->name), i + 1 < block->n ? "," : "") : more;
        }
        line(o, "%s", row);
    }
}

void emit_structs(Out *o, const Program *p)
{
    Member *member = NEW_N(o->arena, Member, p->ndata + p->ntotals + p->nstate + 1);
    NOTED ("} Data;", "  // beside arrays: their extents", "typedef struct Data") {
        for (int i = 0; i < p->ndata; i++) member[i] = data_member(o, p, p->data[i].var);
        for (int i = 0; i < p->ntotals; i++)
            member[p->ndata + i] =
                (Member){.type = "long", .name = text(o, "%s%d", p->total_name, i + 1), .note = ex_quote(o->arena, p->total[i])};
        emit_members(o, member, p->ndata + p->ntotals, 1);
    }
    emit_numbers(o, "DATA", "fields of Data", p->data, p->ndata);
    NOTED ("} State;", "  // of one chain; sizes of work arrays are in the tables", "typedef struct State") {
        for (int i = 0; i < p->nstate; i++) member[i] = state_member(o, p, p->state[i].var);
        emit_block_names(o, p, false);
        emit_members(o, member, p->nstate, SORTS);
    }
    emit_streams(o, p);
}

// ---- the same for a lesson: what it shows, scalars as values ----

static const char *lesson_name(const Out *o, const Var *v) { return text(o, v->rank ? "*%s" : "%s", c_name(o, v->name)); }

static const char *lesson_type(const Program *p, const Var *v, bool data)
{
    if (v->base != BASE_INT) return "double";
    return data ? v->rank ? "int" : "long" : strcmp(element_type(p, v), "int") == 0 ? "int" : "double";
}

// Those of one type and one shape beside each other; the shape is a note.
static int lesson_members(const Out *o, const Program *p, const Field *field, int n, bool data, Member *member)
{
    int count = 0;
    for (int i = 0; i < n; i++) {
        const Var *v = field[i].var;
        if (field[i].shown) member[count++] = (Member){.type = lesson_type(p, v, data), .name = lesson_name(o, v), .note = dims_text(o, v)};
    }
    return count;
}

// Its members on one line, if they fit there.
static void emit_short_struct(Out *o, const char *name, const char *pointer, Member *member, int n)
{
    const char *all = "";
    for (int i = 0; i < n; i++) {
        if (member[i].done) continue;
        all = text(o, "%s %s %s", all, member[i].type, member[i].name);
        for (int k = i + 1; k < n; k++) {
            if (strcmp(member[k].type, member[i].type) != 0 || (*member[k].name == '*') != (*member[i].name == '*')) continue;
            all = text(o, "%s, %s", all, member[k].name);
            member[k].done = true;
        }
        all = text(o, "%s;", all);
    }
    const char *whole = text(o, "static struct {%s } %s, *const %s = &%s;", all, name, pointer, name);
    if (strlen(whole) <= MOST_SHORT) {
        line(o, "%s", whole);
        return;
    }
    for (int i = 0; i < n; i++) member[i].done = false;
    ENDING(text(o, "} %s, *const %s = &%s;", name, pointer, name), "static struct") emit_members(o, member, n, 1);
}

void emit_lesson_structs(Out *o, const Program *p)
{
    Member *member = NEW_N(o->arena, Member, p->ndata + p->ntotals + p->nstate + 1);
    int n = lesson_members(o, p, p->data, p->ndata, true, member);
    for (int i = 0; i < p->ntotals; i++)
        member[n++] = (Member){.type = "long", .name = text(o, "%s%d", p->total_name, i + 1), .note = ex_quote(o->arena, p->total[i])};
    if (n) emit_short_struct(o, "data", "d", member, n);
    emit_block_names(o, p, true);
    n = lesson_members(o, p, p->state, p->nstate, false, member);
    emit_short_struct(o, "state", "s", member, n);
    emit_streams(o, p);
}

static const char *role_of(const Program *p, const Var *v)
{
    if (placement_of(p, v)->diagnostics) return "GM_DIAGNOSTIC";
    switch (v->kind) {
    case VAR_DATA: return v->response ? "GM_IMPUTED" : "GM_DATA";
    case VAR_PARAMETER: return v->parts ? "GM_SUM" : "GM_PARAMETER";
    case VAR_PART: return "GM_PARAMETER";
    case VAR_LATENT: return "GM_LATENT";
    case VAR_AUXILIARY: return v->hidden ? "GM_SUM" : "GM_AUXILIARY";  // an update's own
    case VAR_DERIVED:
    case VAR_SERIES:
    case VAR_PREDICTED:
        if (v->hidden) break;
        return v->kind == VAR_PREDICTED ? "GM_PREDICTED" : "GM_DERIVED";
    case VAR_LET:
    case VAR_SUM:
    case VAR_PATTERN:
    case VAR_ELEMENT: break;
    }
    return "GM_SUM";
}

static const char *type_and_bounds(const Out *o, const Var *v)
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

static const char *row_bounds(const Out *o, const Field *f)
{
    const double lo = f->lower.value || isnan(f->lower.number) ? -INFINITY : f->lower.number,
                 hi = f->upper.value || isnan(f->upper.number) ? INFINITY : f->upper.number;
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
            n = text(o, at->when == IF_MANY ? "%s < %s ? 0 : %s" : "%s < %s ? %s : 0", extent_c(o, at->rows->count, ADDITIVE),
                     extent_c(o, at->rows->size, ADDITIVE), n);
        line(o, "shape->dim[%d] = %s;", k, n);
    }
    if (f->lower.value) line(o, "shape->lower = %s;", expr_c(o, f->lower.value, LOOSE));
    if (f->upper.value) line(o, "shape->upper = %s;", expr_c(o, f->upper.value, LOOSE));
}

// The cases of fields with the lines of number i, some on a line.
static void emit_cases(Out *o, const char *stem, const Field *field, int n, int i)
{
    int count = 0;
    for (int k = i; k < n; k++) {
        if (field[k].shape != i) continue;
        if (count && count % 6 == 0) end_line(o);
        part(o, "%scase %s_%s:", count % 6 ? " " : "", stem, field[k].var->name);
        count++;
    }
    end_line(o);
}

// The data, as a function finds them that is called before there is a run.
static void emit_data_there(const Out *o)
{
    line(o, "const Data *const d = (const Data *)data;");
    line(o, "(void)d;");
}

// A function of a field: fields of the same lines come together. false: there are no lines at all.
static bool emit_shapes(Out *o, const Program *p, const char *name, const char *stem, const Field *field, int n)
{
    bool any = false;
    for (int i = 0; i < n; i++) any |= field[i].shape >= 0;
    if (!any) return false;
    FUNCTION("static void %s(int field, const void *data, GmShape *shape)", name)
    {
        emit_data_there(o);
        CASES("switch (field)")
        for (int i = 0; i < n; i++) {
            if (field[i].shape != i) continue;
            emit_cases(o, stem, field, n, i);
            INDENTED
            {
                emit_shape(o, p, &field[i]);
                line(o, "break;");
            }
        }
    }
    return true;
}

static bool emit_defaults(Out *o, const Program *p)
{
    bool any = false;
    for (int i = 0; i < p->ndata; i++) any |= p->data[i].var->init != NULL;
    if (!any) return false;
    FUNCTION("static double data_default(int field, const void *data)")
    {
        emit_data_there(o);
        CASES("switch (field)")
        for (int i = 0; i < p->ndata; i++)
            if (p->data[i].var->init) line(o, "case DATA_%s: return %s;", p->data[i].var->name, expr_c(o, p->data[i].var->init, LOOSE));
        line(o, "return 0;");
    }
    return true;
}

static bool emit_sizes(Out *o, const Program *p)
{
    if (!p->ntotals) return false;
    FUNCTION("static void data_sizes(void *data)")
    {
        line(o, "Data *const d = (Data *)data;");
        for (int i = 0; i < p->ntotals; i++) line(o, "d->%s%d = %s;", p->total_name, i + 1, extent_c(o, p->total[i], LOOSE));
    }
    return true;
}

// ---- fields ----

static const char *data_field_number(const Out *o, int number)  // counted from 1; 0: none
{
    return number ? data_number(o, o->program, o->program->data[number - 1].var) : "0";
}

static void emit_extents(const Out *o, const Field *f)
{
    for (int k = 0; k < f->var->rank; k++) part(o, "%s%s", k ? ", " : ", .extent_of = {", data_field_number(o, f->extent_of[k]));
    if (f->var->rank) part(o, "}");
}

static void emit_data_field(const Out *o, const Field *f)
{
    const Var *v = f->var;
    const Constraint constraint = v->constraint != CONSTRAINT_NONE ? v->constraint : v->asked;
    const char *bounds = row_bounds(o, f);
    part(o, "{.name = \"%s\", .type = %s, .role = GM_DATA, ", v->name,
         v->base == BASE_INT           ? "GM_INT"
         : is_wide_data(o->program, v) ? "GM_WIDE"
                                       : "GM_REAL");
    if (constraint != CONSTRAINT_NONE || v->asked_counts)
        part(o, ".constraint = %s, ", v->asked_counts ? "GM_COUNTS" : constraint_name(constraint));
    if (v->asked_by) part(o, ".asked_by = \"%s\", ", v->asked_by);
    if (v->rank) part(o, ".rank = %d, ", v->rank);
    part(o, ".offset = offsetof(Data, %s), %s%s", c_name(o, v->name), v->init ? ".has_default = 1, " : "",
         f->may_miss ? ".may_miss = 1, " : "");
    if (f->needed_for) part(o, ".needed_for = \"%s\", ", f->needed_for);
    if (f->may_be_left_out) part(o, ".may_be_left_out = 1, ");
    if (f->finite) part(o, ".finite = 1, ");
    if (f->imputed) part(o, ".imputed_field = %s, ", state_number(o, o->program, v));
    if (*bounds) part(o, "%s, ", bounds);
    line(o, ".where = \"%s\",", source_line(o, v->span));
    part(o, " .declared = \"%s %s%s\"", type_and_bounds(o, v), v->name, declared_dims(o, f));
    emit_extents(o, f);
    if (f->rows_of) part(o, ", .rows_of = %s", data_field_number(o, f->rows_of));
    if (f->upper_of) part(o, ", .upper_of = %s", data_field_number(o, f->upper_of));
    line(o, "},");
}

static void emit_state_field(const Out *o, const Program *p, const Field *f)
{
    const Var *v = f->var;
    const Placement *at = placement_of(p, v);
    const int shared = sharing_of(p, v);
    const char *bounds = row_bounds(o, f);
    part(o, "{.name = \"%s\", .type = %s, .role = %s, ", v->name, type_id(p, v), role_of(p, v));
    if (v->constraint != CONSTRAINT_NONE) part(o, ".constraint = %s, ", constraint_name(v->constraint));
    if (v->rank) part(o, ".rank = %d, ", v->rank);
    part(o, ".offset = offsetof(State, %s)", c_name(o, v->name));
    if (shared) part(o, ", .shared = %d", shared);
    if (v->em.expectation) part(o, ", .by_start = 1");
    if (at->stands_in) part(o, ", .in_place_of = %d", at->stands_in);
    if (v->partial || (v->kind == VAR_LET && v->known.holes)) part(o, ", .partial = 1");
    static const char *const requests[] = {
        [REQUEST_LOG_LIK] = "GM_LOG_LIK", [REQUEST_REPLICATES] = "GM_REPLICATES", [REQUEST_LOG_PRIOR] = "GM_LOG_PRIOR"};
    if (v->stored != STORED_BY_KIND) part(o, ", .stored = %s", v->stored == STORED_IF_SMALL ? "GM_IF_SMALL" : "GM_IF_ASKED");
    if (v->on_request) part(o, ", .on_request = %s", requests[v->on_request]);
    if (v->part_of) part(o, ", .part_of = %s, .part = %d", state_number(o, p, v->part_of), v->part_at);
    if (*bounds) part(o, ", %s", bounds);
    if (v->span.source) part(o, ", .where = \"%s\"", source_line(o, v->span));
    bool any = false;
    for (int k = 0; k < v->rank; k++) any |= f->extent_of[k] != 0;
    if (any && v->span.source && !v->part_of) emit_extents(o, f);
    if (f->rows_of && !v->part_of) part(o, ", .rows_of = %s", data_field_number(o, f->rows_of));
    line(o, "},");
}

const char *emit_tables(Out *o, const Program *p)
{
    emit_numbers(o, "STATE", "fields of State", p->state, p->nstate);
    ENDING("};", "static const GmField data_fields[] =")
    {
        for (int i = 0; i < p->ndata; i++) emit_data_field(o, &p->data[i]);
        if (!p->ndata) line(o, "{0},");
    }
    blank(o);
    ENDING("};", "static const GmField state_fields[] =")
    {
        for (int i = 0; i < p->nstate; i++) emit_state_field(o, p, &p->state[i]);
        if (!p->nstate) line(o, "{0},");
    }
    blank(o);
    const char *members = "";
    SCOPE
    {
        o->careful = o->host = o->as_read = true;
        if (emit_shapes(o, p, "data_shape", "DATA", p->data, p->ndata)) members = ", .data_shape = data_shape";
        if (emit_defaults(o, p)) members = text(o, "%s, .data_default = data_default", members);
        if (emit_shapes(o, p, "state_shape", "STATE", p->state, p->nstate)) members = text(o, "%s, .state_shape = state_shape", members);
        if (emit_sizes(o, p)) members = text(o, "%s, .data_sizes = data_sizes", members);
    }
    return members;
}

// ---- labels ----

static const char *alike_text(const Out *o, const Program *p, const Labels *l)
{
    const char *t = "";
    for (const Alike *a = l->alike; a; a = a->next) t = text(o, "%s{%s, %d}, ", t, data_number(o, p, a->var), a->dim);
    return t;
}

static void emit_labelled(Out *o, const Program *p, const Labels *l, int n)
{
    ENDING("};", "static const GmLabelled labelled_%d[] =", n)
    {
        for (const Labelled *v = l->vars; v; v = v->next) {
            if (field_of(p->state, p->nstate, v->var) < 0) continue;
            part(o, "{.field = %s", state_number(o, p, v->var));
            if (v->dims) part(o, ", .dims = %u", v->dims);
            line(o, "%s%s%s},      // %s", v->values ? ", .values = 1" : "", v->apart ? ", .apart = 1" : "", v->lost ? ", .lost = 1" : "",
                 v->var->name);
        }
        line(o, "{0},");
    }
}

bool emit_labels(Out *o, const Program *p)
{
    if (!p->g->labels) return false;
    line(o, "// Names of components, and the variables that run over them: what `relabel` may permute.");
    int n = 0;
    for (const Labels *l = p->g->labels; l; l = l->next) {
        n++;
        if (l->alike) line(o, "static const GmAlike alike_%d[] = {%s{0, 0}};", n, alike_text(o, p, l));
        emit_labelled(o, p, l, n);
    }
    blank(o);
    ENDING("};", "static const GmLabels labels[] =")
    {
        n = 0;
        for (const Labels *l = p->g->labels; l; l = l->next) {
            n++;
            part(o, "{.by = %s", state_number(o, p, l->by));
            if (l->identified) part(o, ", .identified = \"%s\"", l->identified);
            if (l->not_permuted) part(o, ", .not_permuted = \"%s\"", l->not_permuted);
            if (l->alike) part(o, ", .alike = alike_%d", n);
            line(o, ", .fields = labelled_%d},", n);
        }
        line(o, "{0},");
    }
    blank(o);
    return true;
}

// ---- statistics ----

static void begin_statistics(Out *o)
{
    line(o,
         "// Sums that updates read, and parameters of their laws, for the command `why` of the program: {update, from 0, field of State "
         "or 0,");
    line(o, "// 1 if the element that is drawn reads the element of its own number, or there is but one, text}.");
    line(o, "static const GmStatistic statistics[] = {");
}

static const char *sum_text(const Out *o, const Sum *s)
{
    const char *all = statistic_text(o->g, s), *from = strstr(all, " = "), *end = strstr(all, "; serves");
    if (!from) return all;
    return end ? text(o, "%.*s", (int)(end - from - 3), from + 3) : from + 3;
}

// Whether its subscripts are those of the element that the update draws, each for each.
static bool is_by_element(const Sum *s, const Conditional *c)
{
    bool own = c && s->n == c->var->rank;
    for (int k = 0; own && k < s->n; k++) own = s->var->dim[k] == c->var->dim[k] && s->at[k] && s->at[k]->kind == EX_INDEX;
    return own;
}

bool emit_statistics(Out *o, const Program *p)
{
    bool any = false;
    for (int f = 0; f < p->nstate; f++) {
        const Sum *s = p->state[f].var->kind == VAR_SUM ? p->state[f].var->sum : NULL;
        for (const Server *t = s ? s->serves : NULL; t; t = t->next)
            for (int i = 0; i < p->nupdates; i++) {
                const bool own = is_by_element(s, t->update->conditional);
                if (p->updates[i].update != t->update || (s->n && !own)) continue;
                if (!any) begin_statistics(o);
                any = true;
                line(o, "    {%d, %s, %d, \"%s\"},", i, state_number(o, p, s->var), own, sum_text(o, s));
            }
    }
    for (int i = 0; i < p->nupdates; i++) {
        const Update *u = p->updates[i].update;
        const Description *d = u->description;
        for (int k = 0; u->kind == UPDATE_EXACT && !u->imputes && k < d->n; k++) {
            if (!any) begin_statistics(o);
            any = true;
            line(o, "    {%d, 0, 0, \"%s\"},", i, d->line[k]);
        }
    }
    if (!any) return false;
    line(o, "    {0, 0, 0, NULL}};");
    blank(o);
    return true;
}

// ---- what is observed ----

bool emit_observed(Out *o, const Program *p)
{
    if (!p->g->observed) return false;
    line(o, "// What is observed: its log-likelihood and replicates, for runs that request them.");
    ENDING("};", "static const GmObserved observed[] =")
    {
        for (const Observed *s = p->g->observed; s; s = s->next) {
            part(o, "{.where = \"%s\"", source_line(o, s->span));
            if (s->name) part(o, ", .name = \"%s\"", s->name);
            if (field_of(p->data, p->ndata, s->var) >= 0) part(o, ", .data = %s", data_number(o, p, s->var));
            if (s->log_lik) part(o, ", .log_lik = %s", state_number(o, p, s->log_lik));
            if (s->replicate) part(o, ", .replicate = %s", state_number(o, p, s->replicate));
            if (s->no_log_lik) part(o, ", .no_log_lik = \"%s\"", s->no_log_lik);
            if (s->no_replicate) part(o, ", .no_replicate = \"%s\"", s->no_replicate);
            line(o, "},");
        }
        line(o, "{0},");
    }
    blank(o);
    return true;
}

// ---- the log prior ----

bool emit_priors(Out *o, const Program *p)
{
    if (!p->g->priors) return false;
    line(o, "// The terms of the log prior, for runs that request it.");
    ENDING("};", "static const GmPrior priors[] =")
    {
        for (const PriorTerm *t = p->g->priors; t; t = t->next) {
            if (t->missing && field_of(p->data, p->ndata, t->of) < 0) continue;
            part(o, "{.field = %s, .name = \"%s\"", state_number(o, p, t->term), t->name);
            if (t->missing) part(o, ", .missing_of = %s", data_number(o, p, t->of));
            line(o, "},");
        }
        line(o, "{0},");
    }
    blank(o);
    return true;
}

// ---- laws ----

// So many subscripts say what is drawn at once: the others are of vectors and matrices.
static int drawn_at_once(const Forward *f)
{
    int n = f->into->rank - f->sorted;
    for (const Site *t = f->sites; t; t = t->next)
        if (t->var == f->into && t->n < n) n = t->n;
    return n;
}

void emit_laws(Out *o, const Program *p)
{
    if (!p->g->forward) return;
    line(o, "// What can be drawn from the law of its own statement, in order.");
    ENDING("};", "static const GmLaw laws[] =")
    {
        for (const Forward *f = p->g->forward; f; f = f->next) {
            if (!f->into || field_of(p->state, p->nstate, f->into) < 0) continue;
            part(o, "{.field = %s, .variable = VAR_%s, .at_once = %d", state_number(o, p, f->into), c_name(o, f->into->name),
                 drawn_at_once(f));
            if (field_of(p->data, p->ndata, f->of) >= 0) part(o, ", .data = %s", data_number(o, p, f->of));
            if (f->begins_with_nan) part(o, ", .whole = 1");
            if (f->refused) part(o, ", .refused = \"%s\"", f->refused);
            line(o, "},");
        }
        line(o, "{0},");
    }
    blank(o);
}
