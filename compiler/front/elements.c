// elements.c -- which elements of an array a statement is about, from the text of its subscripts: whether two are about the same ones, one
// about all those of another, and elements that equal others.
//
//   S[2, 1] = S[1, 2]; S[1, 2] = r*a*b;    S[2, 1] is r*a*b: no recursion
//
// Needs: names with their declarations.     Gives: answers; elements_known puts what is known in its place.     Keeps: all else.
#include "check.h"

bool mentions_decl(const Ast *e, const Decl *d)
{
    if (!e) return false;
    if (e->kind == AST_NAME) return e->decl == d;
    for (int i = 0; i < e->nkids; i++)
        if (mentions_decl(e->kid[i], d)) return true;
    return false;
}

// Subscripts that run over the same elements: equal, or indices of loops with equal ranges.
bool same_elements(const Ast *x, const Ast *y)
{
    if (!x || !y) return x == y;
    if (x->kind == AST_NAME && y->kind == AST_NAME && x->decl && y->decl && x->decl->kind == DECL_INDEX && y->decl->kind == DECL_INDEX)
        return x->decl == y->decl || (same_elements(x->decl->lo, y->decl->lo) && same_elements(x->decl->hi, y->decl->hi));
    if (x->kind != y->kind || x->nkids != y->nkids) return false;
    if (!x->nkids) return ast_same(x, y) || (x->kind == AST_ALL);
    if (x->op != y->op || x->name != y->name) return false;
    for (int i = 0; i < x->nkids; i++)
        if (!same_elements(x->kid[i], y->kid[i])) return false;
    return true;
}

// Subscripts that take no other values than those of `all` do.
static bool among(const Ast *sub, const Ast *all)
{
    if (same_elements(sub, all)) return true;
    if (all->kind != AST_NAME || !all->decl || all->decl->kind != DECL_INDEX || !all->decl->lo) return false;
    const Ast *lo = sub, *hi = sub;
    if (sub->kind == AST_NAME && sub->decl && sub->decl->kind == DECL_INDEX) {
        lo = sub->decl->lo;
        hi = sub->decl->hi;
    }
    const bool from = same_elements(lo, all->decl->lo) || (all->decl->lo->kind == AST_INT && all->decl->lo->number <= 1);
    const bool to =
        same_elements(hi, all->decl->hi) || (hi->kind == AST_INT && all->decl->hi->kind == AST_INT && hi->number <= all->decl->hi->number);
    return from && (to || (lo == hi && all->decl->lo->kind == AST_INT && all->decl->lo->number <= 1 && sub->kind == AST_INT));
}

// Does a definition cover all elements that a `~` draws?
bool elements_cover(const Stmt *site, const Stmt *drawn)
{
    for (const Stmt *o = site->outer; o; o = o->outer) {  // a condition may leave elements out
        bool shared = o->kind != STMT_IF;
        for (const Stmt *i = drawn->outer; i && !shared; i = i->outer) shared = i == o;
        if (!shared) return false;
    }
    if (site->lhs->kind == AST_NAME) return true;
    if (drawn->lhs->kind == AST_NAME || site->lhs->kind != AST_INDEX || drawn->lhs->kind != AST_INDEX ||
        site->lhs->kid[0]->kind != AST_NAME)
        return false;
    for (int i = 1; i < site->lhs->nkids; i++) {
        Ast *const *at = site->lhs->kid, *const *sub = drawn->lhs->kid;
        if (i >= drawn->lhs->nkids || !(at[i]->kind == AST_ALL || among(sub[i], at[i]))) return false;
        for (int k = 1; k < i; k++)  // W[i, i] is the diagonal alone
            if (at[k]->kind == AST_NAME && ast_same(at[k], at[i]) && !ast_same(sub[k], sub[i])) return false;
    }
    return true;
}

static bool is_constant_element(const Ast *e)
{
    if (e->kind != AST_INDEX || e->kid[0]->kind != AST_NAME) return false;
    for (int i = 1; i < e->nkids; i++)
        if (e->kid[i]->kind != AST_INT) return false;
    return true;
}

// What element e of d is by a statement of its own, reading no other element of d but one that is known: S[3, 1] = S[1, 3], S[1, 3] =
// r*a*b. NULL: it is not known, or they are defined by each other in a circle.
static Ast *known_element(const Decl *d, Ast *e)
{
    for (int on = 0; on < MANY_SITES && is_constant_element(e) && e->kid[0]->decl == d; on++) {
        const Stmt *s = d->sites;
        while (s && (s->link || !ast_same(s->lhs, e))) s = s->next_site;
        for (const Stmt *o = s ? s->outer : NULL; o; o = o->outer)
            if (o->kind != STMT_BLOCK) return NULL;
        if (!s) return NULL;
        e = s->rhs;
    }
    return mentions_decl(e, d) ? NULL : e;
}

// Each element of d that e reads, by what it is. False: one is not known, or it gets too deep; nothing is changed by asking.
static bool put_known(const Decl *d, Ast **e, int above, bool asks)
{
    if (!*e) return true;
    if ((*e)->kind == AST_NAME) return (*e)->decl != d;
    if ((*e)->kind == AST_INDEX && (*e)->kid[0]->decl == d) {
        Ast *known = known_element(d, *e);
        if (!known || above + known->depth > MAX_DEPTH) return false;
        if (!asks) *e = known;
        return true;
    }
    bool all = true;
    for (int i = 0; i < (*e)->nkids && all; i++) all = put_known(d, &(*e)->kid[i], above + 1, asks);
    return all;
}

// A definition written element by element, of which some equal others, S[2, 1] = S[1, 2], is no recursion.
void elements_known(const Decl *d)
{
    int sites = 0;
    for (const Stmt *s = d->sites; s; s = s->next_site) sites++;
    if (sites > MANY_SITES) return;
    for (int asks = 1; asks >= 0; asks--)
        for (Stmt *s = d->sites; s; s = s->next_site)
            if (!put_known(d, &s->rhs, 0, asks)) return;
}
