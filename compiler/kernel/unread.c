// unread.c -- latents that nothing reads before they are drawn again are not multiplied by the scale that was drawn with a joint normal.
//
//   LAUNCH_TEAM(rescale_z, run, d->N)          becomes          if (run->auxiliaries) LAUNCH_TEAM(rescale_z, run, d->N)
//
// With many rows that is a pass over memory. Draws that keep auxiliaries, and --check, read them (model.h).
//
// Needs: kernels and launches.     Gives: Launch.unread.     Keeps: all else.
#include <string.h>
#include "lower.h"

typedef struct Search {
    const Var *var;
    bool found;
} Search;

static bool is_read(const Var *v, void *with)
{
    Search *r = with;
    if (v == r->var) r->found = true;
    return false;
}

static void look_into(Expr *e, void *with) { ex_any_var(e, is_read, with); }

static bool is_checking(const Expr *e) { return e && e->kind == EX_REF && strcmp(e->var->name, "CHECKING") == 0; }

// What --check alone does is left out.
static bool reads(const Node *list, const Var *v)
{
    Search r = {v, false};
    for (const Node *n = list; n && !r.found; n = n->next) {
        if (n->kind == NODE_IF && is_checking(n->test.condition)) {
            r.found = reads(n->otherwise, v);
            continue;
        }
        each_expr(n, look_into, &r);
        each_array(n, is_read, &r);
        r.found = r.found || reads(n->body, v) || reads(n->otherwise, v);
    }
    return r.found;
}

static bool any_reads(const Launches *list, const Var *v)
{
    for (const Launch *l = list->first; l; l = l->next) {
        if (l->kernel && reads(l->kernel->body, v)) return true;
        for (int i = 0; i < l->nargs; i++)
            if (l->arg[i].var == v) return true;
    }
    return false;
}

static bool draws(const Update *s, const Var *v)
{
    for (int i = 0; i < s->nblock; i++)
        if (s->block[i] == v) return true;
    return false;
}

// Whether updates other than that of the latent and `of`, or what is computed for the draws, read it.
static bool read_elsewhere(const Program *p, const UpdateCode *of, const Var *latent)
{
    const Launches *const other[] = {&p->before, &p->refresh,   &p->again,   &p->derive,    &p->restore,
                                     &p->joint,  &p->log_prior, &p->log_lik, &p->replicates};
    for (size_t i = 0; i < sizeof other / sizeof *other; i++)
        if (any_reads(other[i], latent)) return true;
    int drawn = 0;
    for (int i = 0; i < p->nupdates; i++) {
        const UpdateCode *code = &p->updates[i];
        if (code == of) continue;
        if (draws(code->update, latent)) {
            if (code->update->kind != UPDATE_EXACT || code->update->group_move || code->update->nblock > 1 || code->update->imputes)
                return true;
            drawn++;
        } else if (any_reads(&code->made, latent) || any_reads(&code->launches, latent) || any_reads(&code->density, latent) ||
                   any_reads(&code->jacobian, latent) || (code->collapsed && reads(code->collapsed->body, latent)))
            return true;
    }
    return drawn != 1;
}

// The kernel does nothing else.
static bool only_scales(const Kernel *k, const Var *latent)
{
    const Node *n = k ? k->body : NULL;
    while (n && n->body && !n->next) n = n->body;
    return n && !n->next && n->kind == NODE_ASSIGN && n->assign.op == ASSIGN_MUL && n->assign.place.element &&
           n->assign.place.element->var == latent;
}

void find_unread(Lower *lower)
{
    const Program *p = lower->out;
    for (int i = 0; i < p->nupdates; i++) {
        const UpdateCode *code = &p->updates[i];
        const Update *s = code->update;
        if (s->kind != UPDATE_GAUSSIAN || !s->gaussian.scaled) continue;
        const Var *latent = s->gaussian.scaled_latent->var;
        for (Launch *l = code->launches.first; l; l = l->next)
            l->unread = l->kind == LAUNCH_TEAM && !l->next && only_scales(l->kernel, latent) && !read_elsewhere(p, code, latent);
    }
}
