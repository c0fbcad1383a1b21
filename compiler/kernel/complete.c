// complete.c -- what a program holds beside kernels and launches, found once no pass changes these any more. Emission prints it.
//
//   forms     what nodes are written as           fields    Data and State, as the tables describe them
//   alike     scalars that share a function       starts    factors that chains may not start outside of
//   uses      what of the runtime it uses         prices    what a sweep costs; the selections
//   unread    what nothing reads before it is drawn again
//
// Needs: the passes, all of them. Expressions are made here, and sums keep the order in which their terms were made: what --explain
// prints comes before.
#include "lower.h"

void complete_program(Lower *p)
{
    each_kernel(p, form_kernel);
    if (p->g->lesson) {
        find_fields(p);
        find_starts(p);
        find_lesson(p);
        find_uses(p);
        return;
    }
    share_draws(p);
    find_uses(p);
    find_unread(p);
    find_rations(p);
    find_fields(p);
    find_starts(p);
    find_prices(p);
    price_selections(p);
}
