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
    for (const Node *n = list; n; n = n->next) switch (n->kind) {
        case NODE_COMMENT:
        case NODE_LET:
        case NODE_KNOW:
        case NODE_DRAW:
        case NODE_RATIO:
        case NODE_SKIP: break;
        case NODE_ASSIGN:
            if (n->assign.own || n->assign.how == STORE_ELEMENT || n->assign.how == STORE_SPAN) return false;
            break;
        case NODE_SLICE:
        case NODE_METROPOLIS:
            if (n->slice.c->recursion || n->slice.follows || !for_one_lane(n->body)) return false;
            break;
        case NODE_NEST:
        case NODE_REDUCE:
        case NODE_LOOP:
        case NODE_LANE:
        case NODE_IF:
        case NODE_FILL:
        case NODE_ORDER:
        case NODE_BARRIER:
        case NODE_ARRAY:
        case NODE_MATRIX:
        case NODE_CHOICE:
        case NODE_SAMPLE:
        case NODE_BOUNDS:
        case NODE_CHECK:
        case NODE_WEIGH:
        case NODE_WEIGHTS:
        case NODE_CONSTRAINED:
        case NODE_DRAW_ARRAY:
        case NODE_DRAW_NORMAL:
        case NODE_DRAW_BAND:
        case NODE_DRAW_STATES:
        case NODE_TRANSFORM:
        case NODE_WHITENED:
        case NODE_FACTOR:
        case NODE_ROUTINE:
        case NODE_COPY:
        case NODE_COMPUTE:
        case NODE_SOLVE:
        case NODE_CALL:
        case NODE_RETURN:
        case NODE_RESULT:
        case NODE_ELLIPSE: return false;
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
