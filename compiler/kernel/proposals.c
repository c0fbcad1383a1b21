// proposals.c -- draws that are proposals (graph/updates/proposals.c): the launches of a joint normal and its scales come between those of
// what accepts them or not.
//
//   adapt_x         in warm-up: the quadratics of the predictors
//   weigh_x         log w(x): densities less quadratics, at the current state; before and after
//   keep_x          what is drawn, as it was, and log w
//   settle_x        as it was, unless the host has accepted what is new (runtime/device/proposals.h)
#include "lower.h"

// Places in the room of an update (runtime/device/proposals.h), from 1.
enum { PROPOSAL_RATE = 1, PROPOSAL_WEIGHT, PROPOSAL_KEPT, PROPOSAL_ACCEPTED, PROPOSAL_REACH = 11, PROPOSAL_ROOM = 11 };

static const double LEAST_BEND = 1e-8;  // a precision of the rows alone that is positive definite in a direction

typedef struct KeptCopy {
    Var *of, *copy;
} KeptCopy;

static Expr *number_in(Var *room, int k) { return ex_ref(room, 1, (Expr *[]){ex_num(k)}); }

// Copies of all that the update draws, and back.
static void copy_all(Lower *p, const KeptCopy *kept, int n, Expr *accepted)
{
    for (int i = 0; i < n; i++) {
        Var *v = kept[i].of;
        Loops l = {.n = v->rank};
        Expr *element = var_element(p->g, v, l.index), *copy = ex_ref(kept[i].copy, v->rank, element->args);
        Node *nest = v->rank ? enter_nest(p, NODE_NEST, &l, v->rank, element->args, NULL) : enter(p, NODE_LANE);
        put_assign(p, ASSIGN_SET, place_element(accepted ? element : copy),
                   accepted ? ex_call3("if_else", accepted, element, copy) : element);
        leave(p, nest);
    }
}

static void put_number(Lower *p, Expr *at, Expr *value)
{
    Node *lane = enter(p, NODE_LANE);
    put_assign(p, ASSIGN_SET, place_element(at), value);
    leave(p, lane);
}

static Kernel *adapt(Lower *p, const Proposal *of, Var *room)
{
    note(p, "The quadratics: slope and bend of each log density by its predictor, about that, on average over warm-up; none has its "
            "maximum far from there");
    Expr *rate = number_in(room, PROPOSAL_RATE), *follows = ex_call2("<", rate, ex_num(1));
    Kernel *k = open_kernel(p, KERNEL_TEAM, words(p, "adapt_%s", of->name->name), "wide");
    for (int i = 0; i < of->n; i++) {
        const Tangent *t = &of->of[i];
        const Loops l = t->factor->plates;
        Expr *now[] = {t->predictor, t->slope, ex_call2("fmax", t->bend, ex_num(LEAST_BEND))};
        Node *nest = l.n ? enter_nest(p, NODE_NEST, &l, l.n, t->at[0]->args, NULL) : enter(p, NODE_LANE);
        for (int q = 0; q < 3; q++)
            put_assign(p, ASSIGN_SET, place_element(t->at[q]),
                       ex_call3("if_else", follows, ex_add2(t->at[q], ex_mul2(rate, ex_sub(now[q], t->at[q]))), now[q]));
        put_assign(p, ASSIGN_MAX, place_element(t->at[2]), ex_div(ex_call1("fabs", t->at[1]), number_in(room, PROPOSAL_REACH)));
        leave(p, nest);
    }
    close_kernel(p);
    return k;
}

static Kernel *weigh(Lower *p, const Proposal *of, Var *room)
{
    note(p, "The log densities less the quadratics: what accepts a proposal has of them");
    Kernel *k = open_kernel(p, KERNEL_TEAM, words(p, "weigh_%s", of->name->name), "wide");
    Var *lp = local_new(p->g->arena, "lp");
    put_let(p, NULL, lp, ex_num(0), "wide")->let.grows = true;
    for (int i = 0; i < of->n; i++) {
        const Factor *f = of->of[i].factor;
        const Loops l = f->plates;
        Expr *e = ex_sub(of->of[i].density, of->of[i].value);
        k->by_one |= needs_own_array(e, &l);
        Node *nest = enter_nest(p, NODE_REDUCE, &l, 0, NULL, NULL);
        put_assign(p, ASSIGN_ADD, place_local(lp), e);
        leave(p, nest);
    }
    put_number(p, number_in(room, PROPOSAL_WEIGHT), local_ref(lp));
    close_kernel(p);
    return k;
}

static Launch *with_room(Launch *l, const Var *room)
{
    with_name(l, room);
    return l;
}

// All launches of the update, of which the draw's are there.
void lower_proposal(Lower *p, const Update *s, UpdateCode *code)
{
    const Proposal *of = s->gaussian.proposal;
    const Scales *scales = s->gaussian.scales;
    const int n = s->nblock + scales->n;
    KeptCopy *kept = NEW_N(p->g->arena, KeptCopy, n);
    for (int i = 0; i < n; i++) {
        Var *v = i < s->nblock ? s->block[i] : scales->var[i - s->nblock];
        kept[i] = (KeptCopy){v, work_array(p, ROLE_BLOCK, words(p, "kept_%s", v->name), v->rank, v->dim)};
    }
    Var *room = work_array(p, ROLE_TUNING, words(p, "room_of_%s", of->name->name), 1, (Expr *[]){ex_num(PROPOSAL_ROOM)});
    const Launches draw = code->launches;
    code->launches = (Launches){0};
    Kernel *adapts = adapt(p, of, room), *weighs = weigh(p, of, room);
    note(p, "What is drawn next, as it is");
    Kernel *keep = open_kernel(p, KERNEL_TEAM, words(p, "keep_%s", of->name->name), "wide");
    copy_all(p, kept, n, NULL);
    put_number(p, number_in(room, PROPOSAL_KEPT), number_in(room, PROPOSAL_WEIGHT));
    close_kernel(p);
    with_room(launch(p, LAUNCH_ADAPTS, NULL), room);
    launch_team(p, adapts);
    launch(p, LAUNCH_END, NULL);
    with_room(launch(p, LAUNCH_PROPOSE, NULL), room)->code = code;
    launch_team(p, weighs);
    launch_team(p, keep);
    *code->launches.last = draw.first;
    code->launches.last = draw.last;
    launch_team(p, weighs);
    Launch *decide = launch(p, LAUNCH_DECIDE, NULL);
    with_stream(decide, of->name);
    with_name(decide, room);
    note(p, "All of it as it was, unless it is accepted");
    Kernel *settle = open_kernel(p, KERNEL_TEAM, words(p, "settle_%s", of->name->name), "wide");
    copy_all(p, kept, n, ex_call2("<", ex_num(0), number_in(room, PROPOSAL_ACCEPTED)));
    close_kernel(p);
    launch_team(p, settle);
}
