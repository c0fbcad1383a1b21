// uses.c -- what of the runtime the program uses; its image for GPUs leaves the rest out.
//
// Needs: kernels and launches.     Gives: Program.uses, Program.wild, Program.cpu_only.     Keeps: all else.
#include "lower.h"

static bool launches_any(const Program *p, LaunchKind first, LaunchKind last)
{
    const Launches *const other[] = {&p->before,  &p->prepare, &p->refresh,   &p->again,   &p->finish,     &p->derive,
                                     &p->restore, &p->joint,   &p->log_prior, &p->log_lik, &p->replicates, &p->forward};
    const int nother = (int)(sizeof other / sizeof *other);
    for (int i = 0; i < nother + 3 * p->nupdates; i++) {
        const UpdateCode *s = i < nother ? NULL : &p->updates[(i - nother) / 3];
        const Launches *list = !s ? other[i] : (i - nother) % 3 == 0 ? &s->launches : (i - nother) % 3 == 1 ? &s->density : &s->jacobian;
        for (const Launch *l = list->first; l; l = l->next)
            if (l->kind >= first && l->kind <= last) return true;
    }
    return false;
}

void find_uses(Lower *lower)
{
    Program *p = lower->out;
    RuntimeParts *u = &p->uses;
    for (const Update *s = p->g->updates; s; s = s->next) {
        if (p->g->lesson && s->when == ON_GPU) continue;
        u->hmc |= s->kind == UPDATE_NUTS;
        u->bands |= s->kind == UPDATE_GAUSSIAN && s->gaussian.band;
        u->states |= update_at_once(s);
        u->links |= s->joined && s->nblock > 1 && s->joined->nlinks && s->joined->link[0].of >= 0;
    }
    u->normals = launches_any(p, LAUNCH_NORMAL_DENSE, LAUNCH_NORMAL_ROWS_SCALED);
    u->patterns = launches_any(p, LAUNCH_PATTERN, LAUNCH_PATTERN);
    u->grams = launches_any(p, LAUNCH_WEIGHTED_GRAM, LAUNCH_WEIGHTED_GRAM);
    p->wild = any_wild(p->g);
    p->cpu_only = only_on_cpu(p->g);
}
