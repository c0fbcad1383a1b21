// alone.c -- a kernel in which a team has nothing to share is run by one lane.
//
//   before   kernel draw_tau: all lanes of a team       team draw_tau(1)
//              let a_tau = ...; draw x; store tau, by one lane of the team
//   after    kernel draw_tau: one lane, no loops        once draw_tau
//              let a_tau = ...; draw x; tau = x
//
// Such kernels are most of a program of many scalars. Nobody waits in them, and the C compiler may save its work (kernels_cpu.h).
//
// Needs: sums within expressions apart (outside), predictors kept.     Keeps: the draws.
#include "lower.h"

// Whether one lane can do all of it as it is: no loops, no buffers, nothing that lanes share.
static bool for_one_lane(const Node *list)
{
    for (const Node *n = list; n; n = n->next) {
        bool alone = false;
#define ALONE(id, condition) alone |= n->kind == NODE_##id && (condition);
#include "kernel.def"
        if (!alone || !for_one_lane(n->body)) return false;
    }
    return true;
}

static void store_plainly(Node *list)
{
    for (Node *n = list; n; n = n->next) {
        if (n->kind == NODE_ASSIGN) n->assign.how = STORE_PLAIN;
        store_plainly(n->body);
    }
}

void alone(Lower *p)
{
    for (int i = 0; i < p->out->nupdates; i++)
        for (Launch *l = p->out->updates[i].launches.first; l; l = l->next) {
            Kernel *k = (Kernel *)l->kernel;
            if (l->kind != LAUNCH_TEAM || k->kind != KERNEL_TEAM || !for_one_lane(k->body)) continue;
            k->kind = KERNEL_SCALAR;
            store_plainly(k->body);
            l->kind = LAUNCH_ONCE;
            l->nargs = 0;
        }
}
