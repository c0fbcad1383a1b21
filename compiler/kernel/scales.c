// scales.c -- scales that are drawn with a joint normal integrated out (graph/updates/scales.c).
//
//   scales_density_x   L, the log density of all terms in the scales, at the current x
//   marginal_x         the function that the host calls for each trial: L, then what the joint normal launches up to its draw,
//                      which adds g'J^-1 g/2 - log|J|/2 in place of a draw
//
// Needs: the launches of the joint normal.     Gives: another one before them, and `density` of the update.
#include "lower.h"

enum { ROOM = 18 };  // numbers that draws keep of each scale (runtime/device/scales.h)

static Expr *terms_in(Expr *e, const Scales *of)
{
    bool any = false;
    for (int i = 0; i < of->n; i++) any |= ex_mentions(e, of->var[i]);
    if (!any) return ex_num(0);
    if (e->kind != EX_ADD) return e;
    Expr *sum = ex_num(0);
    for (int i = 0; i < e->nargs; i++) sum = ex_add2(sum, terms_in(e->args[i], of));
    return sum;
}

static bool is_draw(const Launch *l)
{
    switch (l->kind) {
    case LAUNCH_NORMAL_DENSE:
    case LAUNCH_NORMAL_DENSE_SCALED:
    case LAUNCH_NORMAL_ARROW:
    case LAUNCH_NORMAL_ARROW_SCALED:
    case LAUNCH_NORMAL_ROWS:
    case LAUNCH_NORMAL_ROWS_SCALED:
    case LAUNCH_NORMAL_SPARSE:
    case LAUNCH_NORMAL_SPARSE_SCALED: return true;
    default:
        for (const Node *n = l->kernel ? l->kernel->body : NULL; n; n = n->next)
            if (n->kind == NODE_DRAW_BAND || n->kind == NODE_DRAW_NORMAL) return true;
        return false;
    }
}

// Whether a matrix X'WX of the joint normal changes with the scales. Otherwise it is the same for all values that are tried in a sweep.
static bool weights_read(const Lower *p, const Update *s, const Scales *of)
{
    for (const RowGram *r = p->row_grams; r; r = r->next)
        for (int i = 0; i < of->n && r->update == s; i++)
            if (ex_mentions(r->weight, of->var[i])) return true;
    return false;
}

void lower_scales(Lower *p, const Update *s, UpdateCode *code, Launch **own)
{
    const Scales *of = s->gaussian.scales;
    const char *stem = block_name(p, s->block, s->nblock), *names = "";
    for (const RowSum *r = p->row_sums; r; r = r->next)
        for (int i = 0; i < of->n && r->update == s; i++)
            if (ex_mentions(r->weight, of->var[i])) return;  // graph/updates/scales.c leaves such out
    for (int i = 0; i < of->n; i++) names = words(p, "%s%s%s", names, i ? ", " : "", of->var[i]->name);
    const char *J = s->description->J, *h = s->description->h, *x = s->description->x;
    note(p,
         "The log density of all terms in %s where the joint normal, %s, is now. Plus (%s - %s %s)'%s^-1 (%s - %s %s)/2 - log|%s|/2 it is "
         "that with %s integrated out. From this %s slice sampled (Neal 2003) before %s, on a CPU: each trial factors %s",
         names, x, h, J, x, J, h, J, x, J, x, of->n > 1 ? "they are" : "it is", x, J);
    Kernel *k = open_kernel(p, KERNEL_TEAM, words(p, "scales_density_%s", stem), "wide");
    code->collapsed = k;
    Var *lp = local_new(p->g->arena, "lp");
    put_let(p, NULL, lp, ex_num(0), "wide")->let.grows = true;
    int sums = 0;
    for (int i = 0; i < of->nfactors; i++) sums += of->factor[i]->plates.n > 0;
    for (int i = 0; i < of->nfactors; i++) {
        const Factor *f = of->factor[i];
        const Loops l = f->plates;
        Expr *e = terms_in(f->log_density, of);
        if (sums > 1) put(p, NODE_COMMENT)->text.lines = factor_text(p, f);
        const Keys none = {0};
        Expr *sum = l.n ? hoist_sum(&p->statistics, &none, &l, e) : NULL;
        k->by_one |= needs_own_array(e, &l);
        Node *nest = sum ? NULL : enter_nest(p, NODE_REDUCE, &l, 0, NULL, NULL);
        put_assign(p, ASSIGN_ADD, place_local(lp), sum ? sum : e);
        if (nest) leave(p, nest);
    }
    put(p, NODE_RESULT)->result.value = local_ref(lp);
    close_kernel(p);
    const Launch *last = NULL;
    for (const Launch *l = *own; l; l = l->next)
        if (is_draw(l)) last = l;
    p->launches = &code->density;
    launch_team(p, k);
    for (const Launch *l = *own; l; l = l->next) {
        Launch *copy = arena_copy(p->g->arena, l, sizeof *l);
        copy->next = NULL;
        copy->once = l->kind == LAUNCH_WEIGHTED_GRAM && !weights_read(p, s, of);
        *code->density.last = copy;
        code->density.last = &copy->next;
        if (l == last) break;
    }
    code->density_name = kernel_name(p, words(p, "marginal_%s", stem));
    Expr *elements = ex_num(0);
    for (int i = 0; i < of->n; i++) elements = ex_add2(elements, of->var[i]->rank ? of->var[i]->dim[0] : ex_num(1));
    code->tuning = work_array(p, ROLE_TUNING, words(p, "scales_of_%s", stem), 1, (Expr *[]){ex_mul2(ex_num(ROOM), elements)});
    Launches first = {0};
    p->launches = &first;
    launch(p, LAUNCH_SCALES, NULL)->code = code;
    first.first->next = *own;
    *own = first.first;
    p->launches = &code->launches;
}
