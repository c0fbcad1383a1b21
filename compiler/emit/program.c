// program.c -- the emitted program: a contents page, the mathematics, the tables for the runtime.
//
//   part 1   the model: data, unknowns, definitions              part 3   instead of these, HMC: log density and gradient
//   part 2   the Gibbs updates, a kernel or more for each        part 4   the log joint density, and what is computed for the draws
//   then     checks and sums of data, launches, tables for the runtime; a file of its own on request
//   part 5   the sweep
//
// Needs: a Program, complete (kernel/complete.c).     Gives: CUDA C text that includes runtime/device/gm.h. Nothing is decided here.
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>
#include "emit.h"
#include "nodes.h"
#include "program.h"

// ---- the contents page ----

typedef struct Entry {
    const char *what, *law, *kernel, *where, *note;
} Entry;  // of one update

// The kernel that says the law of the update, or its first one.
static const char *kernel_of(const Program *p, const Update *s)
{
    const Kernel *first = NULL;
    for (const Kernel *k = p->sweep.first; k; k = k->next) {
        if (k->update != s || k->part == PART_TABLES) continue;
        if (k->says_law) return k->name;
        if (!first) first = k;
    }
    return first ? first->name : "";
}

static bool is_instead(const Update *s) { return s->when == WITH_GRADIENTS; }

static const char *line_of(const Out *o, Span at)
{
    const char *place = source_line(o, at), *colon = strrchr(place, ':');
    return colon ? text(o, "line %s", colon + 1) : place;
}

static Entry entry_of(const Out *o, const Program *p, const Update *s)
{
    const Description *d = s->description;
    const char *note = s->imputes                                             ? ", if values are missing"
                       : s->joint < 0                                         ? ", if not drawn jointly"
                       : s->collapsed                                         ? ", auxiliaries integrated out"
                       : s->over_sum                                          ? ", discrete unknowns summed out"
                       : s->when == ON_CPU                                    ? ", on a CPU"
                       : s->when == ON_GPU                                    ? ", on a GPU"
                       : s->group_move                                        ? ", a group move"
                       : s->nblock == 1 && s->block[0]->kind == VAR_AUXILIARY ? ", an auxiliary"
                                                                              : "";
    return (Entry){d->what, *d->is == ':' ? d->brief + 2 : d->brief, kernel_of(p, s), line_of(o, s->span),
                   s->when == WITHOUT_GRADIENTS ? text(o, "%s *", note) : note};
}

// What an update of a joint normal draws before it, with the joint normal integrated out.
static Entry entry_collapsed(const Out *o, const UpdateCode *code, const Entry *joint)
{
    const Scales *of = code->update->gaussian.scales;
    const char *names = "";
    for (int i = 0; i < of->n; i++) names = text(o, "%s%s%s", names, i ? ", " : "", of->var[i]->name);
    return (Entry){names, text(o, "slice sampled, %s integrated out", joint->what), code->collapsed->name, line_of(o, of->var[0]->span),
                   ", on a CPU"};
}

enum { MOST_WIDE = 48 };  // columns of the contents page are no wider; a longer entry goes on beyond its column

static int wider(int width, const char *text)
{
    const int n = (int)strlen(text);
    return n > MOST_WIDE || n < width ? width : n;
}

// Those of the list that are taken instead of others, or those others.
static void emit_entries(const Out *o, const Entry *entry, int n)
{
    int what = 0, law = 0, kernel = 0;
    for (int i = 0; i < n; i++) {
        what = wider(what, entry[i].what);
        law = wider(law, entry[i].law);
        kernel = wider(kernel, entry[i].kernel);
    }
    for (int i = 0; i < n; i++) {
        const char *rest = text(o, "%-*s  %-*s  %s%s", law, entry[i].law, kernel, entry[i].kernel, entry[i].where, entry[i].note);
        const char *whole = text(o, "//   %-*s  %s", what, entry[i].what, rest);
        if (strlen(whole) <= COMMENT_COLUMNS) line(o, "%s", whole);
        else line(o, "//   %s\n//       %s", entry[i].what, rest);
    }
}

// What NUTS is made in place of, and when; an auxiliary that it leaves behind is drawn before another update reads it.
static void emit_instead(Out *o, const Entry *entry, int n, bool auxiliaries)
{
    line(o, "// In place of the updates marked *, where a trial in a warm-up of 300 sweeps or more prefers NUTS (Hoffman and Gelman 2014). "
            "They are "
            "then");
    line(o, "// made after every k-th transition, as they lead out of narrow parts that hold trajectories: so seldom that they have a "
            "tenth of the");
    line(o, "// work, or after each if trajectories diverge.%s",
         auxiliaries ? " NUTS leaves auxiliaries as they are; a sweep draws them before what reads them." : "");
    emit_entries(o, entry, n);
}

static void emit_banner(Out *o, const Program *p, const char *source)
{
    Entry *entry = NEW_N(o->arena, Entry, 2 * p->nupdates + 1);
    int n = 0, separate = 0;
    bool chosen = false, out = false, left = false;  // NUTS may be; something is integrated or summed out; by NUTS, too
    for (int instead = 0; instead < 2; instead++) {
        for (int i = 0; i < p->nupdates; i++) {
            const Update *s = p->updates[i].update;
            if (is_instead(s) != instead) continue;
            const Entry own = entry_of(o, p, s);
            if (p->updates[i].collapsed) entry[n++] = entry_collapsed(o, &p->updates[i], &own);
            entry[n++] = own;
            chosen |= instead;
            left |= instead && s->collapsed;
            out |= !instead && (p->updates[i].collapsed || (!s->imputes && (s->collapsed || s->over_sum)));
        }
        if (!instead) separate = n;
    }
    line(o, "// %s, compiled by gmc.", source_name(o->arena, source));
    line(o, "//");
    line(o,
         "// One sweep updates, in this order, each given all else%s:", out ? " but what its line says is integrated or summed out" : "");
    emit_entries(o, entry, separate);
    if (chosen) emit_instead(o, entry + separate, n - separate, left);
    line(o, "//");
    line(o, "// Above each kernel is what it computes, then what words mean that are neither C nor of the model, where they first stand. "
            "Those in");
    line(o, "// capitals are macros of kernels.h, which make one text a program for a CPU and for a GPU. Throughout:");
}

// What of the runtime is compiled with kernels for a GPU, which takes seconds.
static void emit_switches(Out *o, const RuntimeParts *uses)
{
    if (uses->hmc) directive(o, "#define GM_HMC               // on a GPU kernels.h has Hamiltonian Monte Carlo");
    if (uses->normals) directive(o, "#define GM_JOINT_NORMALS     // on a GPU it has joint normals, drawn by kernels of the runtime");
    if (uses->patterns) directive(o, "#define GM_SPARSE_NORMALS    // and those whose precision has few entries");
    if (uses->grams) directive(o, "#define GM_WEIGHTED_GRAMS    // and weighted products of a matrix with itself");
    directive(o, "#include \"gm.h\"");
    blank(o);
}

static void emit_includes(Out *o, const RuntimeParts *uses)
{
    if (o->g->method == METHOD_EM) directive(o, "#define GM_MODES             // no draws: joint normals are at their means");
    directive(o, "#include \"kernels.h\"");
    if (uses->bands) directive(o, "#include \"band.h\"");
    if (uses->links) directive(o, "#define GM_STATES_TOGETHER   // of several unknowns");
    if (uses->states) directive(o, "#include \"states.h\"");
    if (o->g->method == METHOD_EM) directive(o, "#include \"modes.h\"");
    blank(o);
}

// ---- the parts ----

static const char *const titles[PARTS] = {[PART_MODEL] = "the model",
                                          [PART_GIBBS] = "the Gibbs updates",
                                          [PART_HMC] = "Hamiltonian Monte Carlo: log density and gradient",
                                          [PART_DENSITY] = "the log joint density, and what is computed for the draws",
                                          [PART_TABLES] = "checks and sums of data, launches, tables for the runtime"};

static void emit_title(const Out *o, int number, const char *title)
{
    line(o, "// ---- part %d: %s ----", number, title);
    blank(o);
}

static const Kernel *next_of(const Kernel *k, ProgramPart part)
{
    while (k && k->part != part) k = k->next;
    return k;
}

static bool has_part(const Program *p, ProgramPart part) { return next_of(p->setup.first, part) || next_of(p->sweep.first, part); }

static void emit_kernels_of(Out *o, const Program *p, ProgramPart part)
{
    for (const Kernel *k = next_of(p->setup.first, part); k; k = next_of(k->next, part)) emit_kernel(o, k);
    for (const Kernel *k = next_of(p->sweep.first, part); k; k = next_of(k->next, part)) emit_kernel(o, k);
}

// What a student reads. Returns how many parts these are.
static int emit_mathematics(Out *o, const Program *p)
{
    int number = 1;
    emit_title(o, number, titles[PART_MODEL]);
    emit_structs(o, p);
    emit_includes(o, &p->uses);
    emit_kernels_of(o, p, PART_MODEL);
    for (ProgramPart part = PART_GIBBS; part < PART_TABLES; part++)
        if (has_part(p, part)) {
            emit_title(o, ++number, titles[part]);
            emit_kernels_of(o, p, part);
        }
    return number;
}

// Tables that describe the model to the runtime. Returns the members of gm_model that these and the functions of the host are.
static const char *emit_model(Out *o, const Program *p)
{
    const char *members = emit_tables(o, p);
    members = text(o, "%s%s", members, emit_factors(o, p));
    if (emit_priors(o, p)) members = text(o, "%s, .priors = priors", members);
    if (emit_observed(o, p)) members = text(o, "%s, .observed = observed", members);
    emit_laws(o, p);
    if (emit_statistics(o, p)) members = text(o, "%s, .statistics = statistics", members);
    if (emit_labels(o, p)) members = text(o, "%s, .labels = labels", members);
    const int cost = emit_prices(o, p);
    if (emit_selections(o, p))
        members = text(o, "%s, .selections = selections, .n_selections = (int)(sizeof selections / sizeof *selections)", members);
    return text(o, "%s%s, .cost = cost_%d", host_members(o, p), members, cost);  // each begins with a comma
}

enum { WIDE_MEMBERS = 110 };

// What the sweep's gm_model has besides; each member begins with a comma.
static void emit_members(Out *o, const Program *p, const char *members)
{
    line(o, "enum { GM_DATA_FIELDS = %d, GM_STATE_FIELDS = %d, GM_UPDATES = %d };  // how many", p->ndata, p->nstate, p->nupdates);
    directive(o, "#define MODEL_TABLES \\");
    for (const char *from = members + 2; *from;) {
        size_t n = strlen(from), at = 0;
        bool quoted = false;
        for (size_t i = 0; n > WIDE_MEMBERS && i < n && (i < WIDE_MEMBERS || !at); i++) {
            if (from[i] == '"') quoted = !quoted;
            if (!quoted && strncmp(from + i, ", .", 3) == 0) at = i + 1;
        }
        if (at) n = at;
        directive(o, "    %.*s%s", (int)n, from, from[n] ? " \\" : "");
        from += n + strspn(from + n, " \n");
    }
}

static void emit_for_runtime(Out *o, const Program *p)
{
    emit_kernels_of(o, p, PART_TABLES);
    directive(o, "#ifndef __CUDACC_RTC__       // the host's: NVRTC, CUDA's compiler of kernels, skips it");
    blank(o);
    emit_kernels_of(o, p, PART_FORWARD);
    emit_host(o, p);
    emit_members(o, p, emit_model(o, p));
    blank(o);
    directive(o, "#endif");
}

static void emit_last(Out *o, const Program *p, const char *source, int number)
{
    emit_title(o, number, "the sweep");
    directive(o, "#ifndef __CUDACC_RTC__       // the host's, which launches kernels: NVRTC, CUDA's compiler of these, skips it");
    emit_sweep(o, p);
    line(o, "GM_MODEL(\"%s\", \"%s\", MODEL_TABLES)      // read by the runtime; the tables define MODEL_TABLES",
         p->g->model->name ? p->g->model->name : "model", source_name(o->arena, source));
    directive(o, "#endif");
}

// A text that is kept until what is above it can explain the words that it has.
typedef struct Body {
    FILE *to;
    char *text;
    size_t size;
} Body;

static void body_begin(Body *b)
{
    b->to = open_memstream(&b->text, &b->size);
    if (!b->to) abort();
}

static const char *body_end(const Out *o, Body *b)
{
    fclose(b->to);
    const char *copy = arena_strdup(o->arena, b->text);
    free(b->text);
    return copy;
}

void emit_program(FILE *to, FILE *tables, const char *tables_name, const Program *p, const char *source)
{
    Scope scope = {.arena = p->g->arena, .g = p->g};
    Map real = {0};
    Out out = {.program = p, .g = p->g, .arena = p->g->arena, .scope = &scope, .real = &real}, *o = &out;
    Body rest = {0}, apart = {0}, top = {0};
    body_begin(&rest);
    if (tables) body_begin(&apart);
    out.page = page_new(p->g->arena, rest.to, false);
    int parts = emit_mathematics(o, p);
    Page *page = out.page;
    if (tables) {
        directive(o, "#include \"%s\"      // %s%s", tables_name, titles[PART_TABLES],
                  has_part(p, PART_HMC) ? ", and the update by NUTS" : "");
        blank(o);
        out.page = page_new(p->g->arena, apart.to, false);
    } else emit_title(o, ++parts, titles[PART_TABLES]);
    emit_for_runtime(o, p);
    if (tables) page_close(out.page);
    else blank(o);
    out.page = page;
    emit_last(o, p, source, parts + 1);
    page_close(page);
    const char *body = body_end(o, &rest), *tables_body = tables ? body_end(o, &apart) : NULL;
    body_begin(&top);
    out.page = page_new(p->g->arena, top.to, false);
    emit_banner(o, p, source);
    page_close(out.page);
    const char *banner = body_end(o, &top);
    fputs(banner, to);
    write_throughout(to, o->arena, body);
    out.page = page_new(p->g->arena, to, false);
    emit_switches(o, &p->uses);
    page_close(out.page);
    write_explained(to, o->arena, body, NULL);
    write_works(to, o->arena, (const char *const[]){banner, body, NULL});
    if (!tables) return;
    out.page = page_new(p->g->arena, tables, false);
    line(o, "// %s -- of the program that includes it: %s.", tables_name, titles[PART_TABLES]);
    blank(o);
    page_close(out.page);
    write_explained(tables, o->arena, tables_body, body);
}

// The kernels of the sweep and of what follows it, alone: the comment above each, and its name.
void emit_kernels(FILE *to, const Program *p)
{
    const Out out = {.program = p, .g = p->g, .arena = p->g->arena};
    for (const Kernel *k = p->setup.first; k; k = k->next) fprintf(to, "%s\n\n", header_text(&out, k));
    for (const Kernel *k = p->sweep.first; k; k = k->next)
        if (k->kind != KERNEL_FUNCTION && k->kind != KERNEL_PART && k->part != PART_FORWARD) fprintf(to, "%s\n\n", header_text(&out, k));
}
