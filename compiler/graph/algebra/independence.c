// independence.c -- which elements of a variable are independent given the others, and so drawn in parallel: those along leading
// dimensions, at multiples of a distance, or of one colour of a lattice.
//
// Needs: the references in each factor.     Gives: nbatch, colours, lattice and conflicts of Conditional.
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "independence.h"

static bool test_late(const Var *v, void *with)
{
    (void)with;
    return v->kind != VAR_DATA || v->response;
}
bool known_from_data(const Expr *e) { return !ex_any_var(e, test_late, NULL); }

// Pairs of elements that an instance of f holds: with one plate, or two whose ranges do not depend on each other, from 1.
static void add_conflicts(Arena *arena, Apartness *d, const Var *v, const Factor *f, const Mentions *m)
{
    const Loops *p = &f->plates;
    d->hidden |= m->dense || m->partial || m->too_many || v->rank != 1 || p->n < 1 || p->n > 2 || m->n > 4 ||
                 (p->guard && !known_from_data(p->guard));
    for (int i = 0; i < p->n && !d->hidden; i++) {
        d->hidden |= !ex_is_num(p->index[i]->lo, 1) || !known_from_data(p->index[i]->hi);
        for (int k = 0; k < p->n; k++) d->hidden |= ex_mentions_index(p->index[i]->hi, p->index[k]);
    }
    for (int i = 0; i < m->n && !d->hidden; i++) {
        bool varies = false;  // what every instance holds meets all others
        for (int k = 0; k < p->n; k++) varies |= ex_mentions_index(m->ref[i]->args[0], p->index[k]);
        d->hidden |= !varies || !known_from_data(m->ref[i]->args[0]);
    }
    for (int i = 0; i < m->n && !d->hidden; i++)
        for (int k = 0; k < i; k++) {
            Conflict *c = NEW(arena, Conflict);
            *c = (Conflict){f, m->ref[k]->args[0], m->ref[i]->args[0], d->conflicts};
            d->conflicts = c;
        }
}

static void add_distances(Apartness *d, const Var *v, const Mentions *m)
{
    d->unknown |= m->dense || m->partial || m->too_many;
    for (int i = 0; i < m->n; i++)
        for (int j = 0; j < i && !d->unknown; j++) {
            if (d->n == MOST_DISTANCES) {
                d->unknown = true;
                return;
            }
            int *by = d->by[d->n], most = 0;
            for (int k = 0; k < v->rank; k++) {
                const Expr *e = ex_sub(m->ref[i]->args[k], m->ref[j]->args[k]);
                if (e->kind != EX_NUM || fabs(e->number) > 1000 || e->number != floor(e->number)) {
                    d->unknown = true;
                    return;
                }
                by[k] = (int)e->number;
                most = abs(by[k]) > most ? abs(by[k]) : most;
            }
            bool seen = most == 0;
            for (int l = 0; l < d->n; l++) seen |= memcmp(d->by[l], by, sizeof *by * (size_t)v->rank) == 0;
            if (!seen) d->n++;
        }
}

// Elements of several subscripts whose colours (stride . subscripts) mod colours differ wherever a factor holds both: those of one colour
// are independent given the others. A chessboard for neighbours on a square lattice. The last stride is 1, so that elements of one colour
// are found without a search. The fewest colours there are, up to MOST_COLOURS.
enum { MOST_COLOURS = 16 };

static bool tells_apart(const Apartness *d, int rank, const int *stride, int colours)
{
    for (int i = 0; i < d->n; i++) {
        int sum = 0;
        for (int k = 0; k < rank; k++) sum += stride[k] * d->by[i][k];
        if (sum % colours == 0) return false;
    }
    return true;
}

void find_lattice(Conditional *c, const Apartness *d)
{
    const Var *v = c->var;
    const int first = c->nbatch, free = v->rank - 1 - first;
    if (c->whole || d->unknown || d->n == 0 || free < 1 || free > 3) return;
    for (int i = 0; i < d->n; i++)
        for (int k = 0; k < first; k++)
            if (d->by[i][k]) return;
    for (int colours = 2; colours <= MOST_COLOURS; colours++) {
        int all = 1;
        for (int k = 0; k < free; k++) all *= colours;
        for (int which = 0; which < all; which++) {
            int stride[MAX_RANK] = {0}, rest = which;
            for (int k = v->rank - 2; k >= first; k--, rest /= colours) stride[k] = rest % colours;
            stride[v->rank - 1] = 1;
            if (!tells_apart(d, v->rank, stride, colours)) continue;
            c->lattice = colours;
            memcpy(c->stride, stride, sizeof stride);
            return;
        }
    }
}

int colours_of(const Conditional *c)
{
    if (c->whole) return 0;
    return c->colours > 1 && c->nbatch == 0 && c->var->rank == 1 ? c->colours : c->lattice;
}

// A factor with several references couples elements. What leading dimensions do all its references share?
void couple_elements(Arena *arena, Conditional *c, const Factor *f, const Mentions *m, Apartness *apart)
{
    const Var *v = c->var;
    if (m->n <= 1 && !m->dense && !m->partial && !m->too_many) return;
    add_distances(apart, v, m);
    if (arena) add_conflicts(arena, apart, v, f, m);
    int shared = 0;
    for (; shared < v->rank && !m->too_many; shared++) {
        bool all = true;
        for (int i = 0; i < m->n; i++) {
            if (m->ref[i]->nargs <= shared) {
                all = false;
                break;
            }
            Expr *s = m->ref[i]->args[shared];
            all &= s == m->ref[0]->args[shared] && s->kind == EX_INDEX && s->index->height == 0 && plate_of(&f->plates, s->index) >= 0;
        }
        if (!all) break;
    }
    int colours = 0;
    if (!m->dense && !m->partial && !m->too_many && shared < v->rank) {  // neighbours at fixed distances in the next dimension
        double least = 0, most = 0;
        int plate0 = -1;
        bool ok = true;
        for (int i = 0; i < m->n && ok; i++) {
            int plate;
            double shift;
            ok = plate_shift(&f->plates, m->ref[i]->args[shared], &plate, &shift);
            if (!ok) break;
            if (i == 0) {
                plate0 = plate;
                least = most = shift;
            }
            ok = plate == plate0;
            if (shift < least) least = shift;
            if (shift > most) most = shift;
            for (int k = shared + 1; k < v->rank; k++)
                ok &= m->ref[i]->args[k] == m->ref[0]->args[k] && m->ref[i]->args[k]->kind == EX_INDEX;
        }
        if (ok && most - least <= 8) colours = (int)(most - least) + 1;
    }
    if (shared < v->rank && !c->couples) c->couples = f;
    if (shared < c->nbatch) {
        c->nbatch = shared;
        c->colours = colours;
    } else if (shared == c->nbatch && shared < v->rank)
        c->colours = colours == 0 || c->colours == 0 ? 0 : colours > c->colours ? colours : c->colours;
}
