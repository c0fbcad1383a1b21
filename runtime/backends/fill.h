// fill.h -- how full a factor is at least, before an order for it is looked for: that search takes minutes on matrices whose factor nobody
// can use.
#ifndef GM_FILL_H
#define GM_FILL_H

// Whether the factor of a symmetric matrix has a full block of `block` rows or more. Its lower triangle is given by columns: the rows of
// column j are row[first[j]] .. row[first[j + 1] - 1], the first of them j. This holds for every order that begins with the elements of few
// neighbours, as those of minimum degree do. 0 also where that is not found at a glance, or there is no memory to look.
int gm_fill_reaches(long n, const int *first, const int *row, long block);

#endif
