// launch.c -- launches in the making: each is added to the list that is open, and its arguments one after the other.
#include <stdlib.h>
#include "lower.h"

Launch *launch(Lower *p, LaunchKind kind, const Kernel *k)
{
    Launch *l = NEW(p->g->arena, Launch);
    l->kind = kind;
    l->kernel = k;
    l->when = p->when;
    l->rows = p->when == ALWAYS ? NULL : p->when_rows;
    l->stands_in = p->stands_in;
    if (!p->launches->first) p->launches->last = &p->launches->first;
    *p->launches->last = l;
    p->launches->last = &l->next;
    return l;
}

static LaunchArg *argument(Launch *l, ArgKind kind)
{
    if (l->nargs == MOST_LAUNCH_ARGS) abort();  // no launch has as many
    l->arg[l->nargs].kind = kind;
    return &l->arg[l->nargs++];
}

void launch_team(Lower *p, const Kernel *k) { argument(launch(p, LAUNCH_TEAM, k), ARG_WORK); }
void with_extent(Launch *l, Expr *e) { argument(l, ARG_EXTENT)->extent = e; }
void with_count(Launch *l, Count c) { argument(l, ARG_COUNT)->count = c; }
void with_place(Launch *l, const Var *v) { argument(l, ARG_PLACE)->var = v; }
void with_name(Launch *l, const Var *v) { argument(l, ARG_NAME)->var = v; }
void with_stream(Launch *l, const Var *v) { argument(l, ARG_STREAM)->var = v; }
void with_field(Launch *l, const Var *v) { argument(l, ARG_FIELD)->var = v; }
void with_string(Launch *l, const char *s) { argument(l, ARG_STRING)->string = s; }
void with_function(Launch *l, const char *name) { argument(l, ARG_FUNCTION)->string = name; }
void with_number(Launch *l, double v) { argument(l, ARG_NUMBER)->number = v; }
void with_product(Launch *l, const Product *r) { argument(l, ARG_PRODUCT)->product = r; }
void as_setting(Launch *l, const char *name) { l->arg[l->nargs - 1].setting = name; }

void launch_kernel(Lower *p, Launches *list, const Kernel *k)
{
    p->launches = list;
    if (k->kind == KERNEL_ONCE) launch(p, LAUNCH_ONCE, k);
    else launch_team(p, k);
}

void launch_shared(Lower *p, LaunchKind kind, const Kernel *k)
{
    if (k) argument(launch(p, kind, k), ARG_WORK);
}
