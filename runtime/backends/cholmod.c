// cholmod.c -- CHOLMOD (SuiteSparse: its modules Core, Cholesky and Partition are under the LGPL 2.1 or later, Supernodal and MatrixOps
// under the GPL 2 or later), and the order of the elements that it finds for a factor; simplicial.c has factors of short columns.
#include <stdio.h>
#include <stdlib.h>
#include "blas.h"
#include "library.h"
#include "sparse_inside.h"

// entries of a factor that is made here: its pattern takes twice the memory of its numbers
static const double MOST_SIMPLICIAL = 1e7;

#ifdef HAS_CHOLMOD
GmCholmod gm_cholmod;
#endif

// NULL, or why there is none.
const char *gm_cholmod_open(void)
{
#ifdef HAS_CHOLMOD
    static bool tried, found;
    if (!tried) {
        tried = true;
        char soname[40], where[400];
        snprintf(soname, sizeof soname, "libcholmod.so.%d", CHOLMOD_MAIN_VERSION);
        const char *const sonames[] = {soname, NULL};
        gm_blas_found();
        void *library = gm_library_open(sonames, NULL, "GM_CHOLMOD", "", where, sizeof where);
        found = library != NULL;
#define X(type, name, args) found = found && gm_library_symbol(library, #name, &gm_cholmod.name);
        CHOLMOD(X)
#undef X
    }
    return found ? NULL : "CHOLMOD is not found (apt-get install libsuitesparse-dev)";
#else
    return "gmc was built without CHOLMOD (apt-get install libsuitesparse-dev, then build gmc again)";
#endif
}

#ifdef HAS_CHOLMOD
void gm_cholmod_start(cholmod_common *c)
{
    gm_cholmod.cholmod_start(c);
    c->print = 0;
    c->final_ll = 1;
    c->error_handler = NULL;
}

cholmod_sparse gm_cholmod_matrix(const Pattern *q, double *value)
{
    return (cholmod_sparse){.nrow = (size_t)q->n,
                            .ncol = (size_t)q->n,
                            .nzmax = (size_t)q->entries,
                            .p = q->first,
                            .i = q->row,
                            .x = value,
                            .stype = -1,
                            .itype = CHOLMOD_INT,
                            .xtype = value ? CHOLMOD_REAL : CHOLMOD_PATTERN,
                            .dtype = CHOLMOD_DOUBLE,
                            .sorted = 1,
                            .packed = 1};
}
#endif

// order: the elements as they are to stand; NULL: as CHOLMOD finds best.
bool gm_cholmod_analyse(Pattern *q, double *work, const int *order)
{
#ifdef HAS_CHOLMOD
    static cholmod_common common;
    static bool started;
    if (!started) gm_cholmod_start(&common);
    started = true;
    if (q->symbolic) gm_cholmod.cholmod_free_factor(&q->symbolic, &common);
    gm_simplicial_close(q->columns);
    q->columns = NULL;
    cholmod_sparse A = gm_cholmod_matrix(q, NULL);
    common.nmethods = order ? 1 : 0;
    common.method[0].ordering = order ? CHOLMOD_GIVEN : CHOLMOD_AMD;
    common.postorder = !order;
    q->symbolic = order ? gm_cholmod.cholmod_analyze_p(&A, (int *)order, NULL, 0, &common) : gm_cholmod.cholmod_analyze(&A, &common);
    if (!q->symbolic) return false;
    *work = common.fl / 2;
    q->factor = common.lnz;
    if (!q->symbolic->is_super && common.lnz < MOST_SIMPLICIAL) q->columns = gm_simplicial_open(q->n, q->first, q->row, q->symbolic->Perm);
    return true;
#else
    (void)q;
    (void)work;
    (void)order;
    return false;
#endif
}

// The order of what was analysed.
const int *gm_cholmod_order(const Pattern *q)
{
#ifdef HAS_CHOLMOD
    return q->symbolic->Perm;
#else
    (void)q;
    return NULL;
#endif
}

// Tiles in the order of nested dissection, where these take less time: fewer columns wait for each other. CHOLMOD may be built without
// METIS.
void gm_cholmod_dissect(Pattern *q, double most_updates)
{
#ifdef HAS_CHOLMOD
    cholmod_common common;
    gm_cholmod_start(&common);
    cholmod_sparse A = gm_cholmod_matrix(q, NULL);
    common.nmethods = 1;
    common.method[0].ordering = CHOLMOD_METIS;
    cholmod_factor *L = gm_cholmod.cholmod_analyze(&A, &common);
    GmTiles *t = L ? gm_tiles_open(q->n, q->first, q->row, L->Perm, most_updates) : NULL;
    if (t && (!q->tiles || gm_tiles_time(t, q->terms) < gm_tiles_time(q->tiles, q->terms))) {
        GmTiles *other = q->tiles;
        q->tiles = t;
        t = other;
    }
    gm_tiles_close(t);
    if (L) gm_cholmod.cholmod_free_factor(&L, &common);
    gm_cholmod.cholmod_finish(&common);
    double work;
    if (q->tiles) q->analysed = gm_cholmod_analyse(q, &work, q->tiles->element);
#else
    (void)q;
    (void)most_updates;
#endif
}
