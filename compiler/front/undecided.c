// undecided.c -- unknowns whose statements do not decide their size: beta of `beta ~ normal(0, 5)`, one number unless a use says more.
//
// Needs: resolved.     Gives: answers.     Keeps: the tree.
#include "types.h"

bool undecided_size(Arena *a, const Library *lib, Decl *d)
{
    if (d->kind != DECL_VARIABLE || d->has_type || d->sites || d->poisoned) return false;
    const Facts *f = facts(a, d);
    for (int i = 0; i < f->tildes.n; i++) {
        const Stmt *s = f->tildes.item[i];
        const Distribution *dist = s->dist ? library_distribution(lib, s->dist) : NULL;
        if (s->lhs->kind != AST_NAME || !dist || dist->value_rank) return false;
    }
    return f->tildes.n > 0 && !f->from_uses;
}

static const Decl *undecided_in(Arena *a, const Library *lib, const Ast *e, bool ambiguous)
{
    const Decl *d = e->kind == AST_NAME ? e->decl : NULL;
    if (d && d->kind == DECL_DEFINITION && d->sites && !d->sites->next_site && !d->recursive)
        return undecided_in(a, lib, d->sites->rhs, ambiguous);
    if (d) return d->type.rank == 0 && undecided_size(a, lib, e->decl) && (!ambiguous || facts(a, e->decl)->ambiguous) ? d : NULL;
    for (int i = 0; i < e->nkids; i++) {
        const Decl *found = e->kid[i] ? undecided_in(a, lib, e->kid[i], ambiguous) : NULL;
        if (found) return found;
    }
    return NULL;
}

const Decl *undecided_size_in(Arena *a, const Library *lib, const Ast *e)
{
    const Decl *d = undecided_in(a, lib, e, true);
    return d ? d : undecided_in(a, lib, e, false);
}
