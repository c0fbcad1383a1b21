// solve.c -- what is computed along a subscript: calls of the functions of series, and the solution of a differential equation
// (runtime/host/ode.c).
#include "nodes.h"

void emit_compute(Out *o, const Node *n)
{
    const Series *s = n->compute.series;
    const char *which = "";
    if (s->chains && n->compute.chain) {
        const char *k = subscript_text(o, n->compute.chain).c;
        which = text(o, ", %s, %s + 1", k, k);
    } else if (s->chains) which = text(o, ", 0, %s", extent_c(o, s->var[0]->dim[0], LOOSE));
    if (o->g->lesson) {
        line(o, "%s(%s);", function_name(o->arena, text(o, "compute_%s", s->var[0]->name)), *which ? which + 2 : "");
        return;
    }
    line(o, "%s(%sd, s%s%s);", function_name(o->arena, text(o, "compute_%s", s->var[0]->name)), o->program->wild ? "GM, " : "",
         s->var[0]->sites->ode ? n->compute.slopes ? ", GM_ODE_SLOPES" : ", GM_ODE_VALUES" : "", which);
}

void emit_again(Out *o, const Node *again)
{
    for (const Node *n = again; n; n = n->next) emit_compute(o, n);
}

void emit_solve(Out *o, const Node *n)
{
    const Ode *ode = n->solve.ode;
    const Site *t = ode->site;
    const char *const name = t->var->name;
    PLAIN_BLOCK
    {
        line(o, "Ode ode = {.data = d, .state = s, .right_side = %s%s};", function_name(o->arena, text(o, "right_side_%s", name)),
             n->solve.derivatives ? text(o, ", .slopes = %s", function_name(o->arena, text(o, "derivatives_%s", name))) : "");
        line(o, "ode.n = %s;", extent_c(o, ex_dim(ode->call, 1), LOOSE));
        line(o, "ode.times = %s;", extent_c(o, ex_dim(ode->call, 0), LOOSE));
        line(o, "ode.ninput = %d;", ode->ninputs);
        line(o, "ode.by = %s;", extent_c(o, n->solve.by, LOOSE));
        line(o, "ode.columns = %s;", extent_c(o, ode->columns, LOOSE));
        if (ode->stiff) line(o, "ode.stiff = 1;");
        line(o, "ode.from = %s;", expr_c(o, ode->from, LOOSE));
        line(o, "ode.relative = %s;", expr_c(o, ode->tolerance[0], LOOSE));
        line(o, "ode.absolute = %s;", expr_c(o, ode->tolerance[1], LOOSE));
        for (int k = 0; k < ode->plates.n; k++) line(o, "ode.at[%d] = %s;", k, index_c(o, ode->plates.index[k]));
        line(o, "gm_ode_begin(&ode, CHECKING);");
        o->write(o, n->body);
        const char *z = text(o, "&%s[%s]", var_text(o, t->var), first_position(o, t->var, t->n - 2, t->subscript)), *S = "NULL";
        if (n->solve.slopes)
            S = text(o, "how == GM_ODE_SLOPES ? &%s[%s] : NULL", var_text(o, ode->slopes),
                     first_position(o, ode->slopes, t->n - 2, t->subscript));
        line(o, "const char *const why = gm_ode_solve(&ode, %s, %s);", z, S);
        line(o, "gm_ode_end(&ode);");
        line(o, "if (why) FAULT(\"%s\", -1, why);", name);
    }
}

// What the functions of a differential equation are given: data, state, the inputs and the indices of the loops around its statement.
void emit_given(Out *o, const Ode *ode)
{
    line(o, "const Data *const d = (const Data *)ode->data;");
    line(o, "const State *const s = (const State *)ode->state;");
    line(o, "const wide *const %s = ode->input;", ode->inputs->name);
    const char *unused = "(void)d, (void)s";
    unused = text(o, "%s, (void)%s, (void)%s, (void)%s", unused, ode->inputs->name, ode->time->name, ode->state->name);
    for (int k = 0; k < ode->plates.n; k++) {
        const char *c = fresh_index(o, ode->plates.index[k]);
        line(o, "const long %s = ode->at[%d];", c, k);
        unused = text(o, "%s, (void)%s", unused, c);
    }
    line(o, "%s;", unused);
}
