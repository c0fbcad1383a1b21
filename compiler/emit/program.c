// program.c -- the emitted program: data and state, a kernel or more per update, the sweep, the tables for the runtime.
//
// Needs: a Program, complete (kernel/complete.c).     Gives: CUDA C text that includes runtime/device/gm.h. Nothing is decided here.
#include <string.h>
#include "emit.h"
#include "nodes.h"
#include "program.h"

static void emit_banner(Out *o, const char *source)
{
    line(o, "// %s, compiled by gmc.", source_name(o->arena, source));
    line(o, "//");
    line(o, "// One sweep draws, in this order:");
    for (const Update *s = o->g->updates; s; s = s->next) {
        const Description *d = s->description;
        const char *when = s->imputes                  ? ", if values are missing"
                           : s->when == WITH_GRADIENTS ? ", in place of the separate updates of these where method selection prefers it"
                           : s->joint < 0              ? ", where these are not drawn jointly"
                                                       : "";
        line(o, "//   %s%s%s%s     %s", d->what, *d->is == ':' ? "" : " ", d->brief, when, source_line(o, s->span));
    }
    line(o, "//");
    line(o, "// In kernels `d` is the data, `s` the state of one chain, and `at` the place in the run, which is the key of the random "
            "numbers.");
    line(o, "// Subscripts count from 1 in comments, as in the model, and from 0 in the code.");
    blank(o);
    directive(o, "#include \"gm.h\"");
    blank(o);
}

// What of the runtime is compiled with the kernels.
static void emit_includes(Out *o, const RuntimeParts *uses)
{
    if (uses->hmc) directive(o, "#define GM_HMC             // Hamiltonian Monte Carlo");
    if (uses->normals) directive(o, "#define GM_JOINT_NORMALS     // drawn by kernels of the runtime");
    if (uses->patterns) directive(o, "#define GM_SPARSE_NORMALS    // and of those whose precision has few entries");
    if (uses->grams) directive(o, "#define GM_WEIGHTED_GRAMS    // made by them");
    if (o->g->method == METHOD_EM) directive(o, "#define GM_MODES             // no draws: joint normals are at their means");
    directive(o, "#include \"kernels.h\"");
    if (uses->bands) directive(o, "#include \"band.h\"");
    if (uses->links) directive(o, "#define GM_STATES_TOGETHER   // of several unknowns");
    if (uses->states) directive(o, "#include \"states.h\"");
    if (o->g->method == METHOD_EM) directive(o, "#include \"modes.h\"");
    blank(o);
}

static void section(Out *o, const char *what)
{
    line(o, "// ---- %s ----", what);
    blank(o);
}

static void emit_all_kernels(Out *o, const Program *p)
{
    for (const Kernel *k = p->setup.first; k; k = k->next) emit_kernel(o, k);
    bool selected = false;
    for (const Kernel *k = p->sweep.first; k; k = k->next) {
        const bool hmc = k->update && k->update->when == WITH_GRADIENTS;
        if (hmc && !selected) section(o, "the alternative to these updates: HMC for the same unknowns together");
        if (!hmc && selected) section(o, k->update ? "after either of the two" : "for the draws");
        selected = hmc;
        emit_kernel(o, k);
    }
}

// The description of the model for the runtime: tables, and the members of gm_model that these and the functions of the host are.
static void emit_model(Out *o, const Program *p, const char *source)
{
    const char *members = emit_tables(o, p);
    if (emit_factors(o, p)) members = text(o, "%s, .factors = factors, .definitions = of_factors", members);
    if (emit_observed(o, p)) members = text(o, "%s, .observed = observed", members);
    if (emit_labels(o, p)) members = text(o, "%s, .labels = labels", members);
    const int cost = emit_prices(o, p);
    if (emit_selections(o, p))
        members = text(o, "%s, .selections = selections, .n_selections = (int)(sizeof selections / sizeof *selections)", members);
    members = text(o, "%s%s, .cost = cost_%d", host_members(o, p), members, cost);  // each begins with a comma
    line(o, "GM_MODEL(\"%s\", \"%s\", %d, %d, %d,", p->g->model->name ? p->g->model->name : "model", source_name(o->arena, source),
         p->ndata, p->nstate, p->nupdates);
    line(o, "         %s)", members + 2);
}

void emit_program(FILE *to, const Program *p, const char *source)
{
    Scope scope = {.arena = p->g->arena, .g = p->g};
    Map real = {0};
    Out out = {.program = p, .g = p->g, .arena = p->g->arena, .page = page_new(p->g->arena, to), .scope = &scope, .real = &real}, *o = &out;
    emit_banner(o, source);
    emit_structs(o, p);
    emit_includes(o, &p->uses);
    emit_all_kernels(o, p);
    directive(o, "#ifndef __CUDACC_RTC__       // what follows runs on the host");
    blank(o);
    section(o, "the sweep");
    emit_host(o, p);
    section(o, "the model for the runtime");
    emit_model(o, p, source);
    blank(o);
    directive(o, "#endif");
    page_close(out.page);
}

// The kernels alone: the comment above each, and its name.
void emit_kernels(FILE *to, const Program *p)
{
    const Out out = {.program = p, .g = p->g, .arena = p->g->arena};
    for (const Kernel *k = p->setup.first; k; k = k->next) fprintf(to, "%s\n\n", header_text(&out, k));
    for (const Kernel *k = p->sweep.first; k; k = k->next)
        if (k->kind != KERNEL_FUNCTION && k->kind != KERNEL_PART) fprintf(to, "%s\n\n", header_text(&out, k));
}
