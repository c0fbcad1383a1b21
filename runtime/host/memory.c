// memory.c -- State: for each chain one block of zeroed memory that holds all its arrays, and a struct of pointers into it.
//
//   State[c].beta -> block[c] + ...      State[c].y -> the data itself, or (with missing values) a copy in block[c]
//   State[c].XtX  -> the shared block, the same for all chains
//   State[c].precision_u -> of what stands in for a joint normal that is usually taken: room that takes none until it is written
//   State[c].probability_c -> a block of its own that starts of `map` have in turn, where those of all would be large (em.c)
#define _DEFAULT_SOURCE
#include "chains.h"
#include "fields.h"
#include "messages.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include "../backends/sparse.h"

enum { TURNS = 64 << 20 };  // bytes of expectations of all starts above which they have one place
enum { LINE = 64 };         // arrays begin on a cache line, so that no two of them share one

// Where the elements of a data field lie.
static void *data_array(const GmModel *model, const GmData *d, int f)
{
    char *at = (char *)d->data + model->data[f].offset;
    return model->data[f].rank ? *(void **)at : at;
}

static bool aliases_data(const GmModel *model, const GmData *d, int field)
{
    const int f = model->state[field].role == GM_IMPUTED ? gm_data_of_imputed(model, field) : -1;
    return f >= 0 && d->missing[f].count == 0 && !(d->of_chain && d->of_chain[f]);
}

static size_t array_bytes(const GmField *field, const GmShape *shape)
{
    size_t bytes;
    if (__builtin_mul_overflow((size_t)gm_shape_size(shape), gm_size_of_element(field->type), &bytes) || bytes > SIZE_MAX / 4)
        return SIZE_MAX / 4;
    return (bytes + LINE) / LINE * LINE;  // at least one line, so that empty arrays have an address of their own
}

// Sums of data are shared by all chains; those that hold a response only if none of its values is missing, and all chains have the same.
static bool is_shared(const GmModel *model, const GmData *d, const GmField *field)
{
    if (field->shared != 2) return field->shared != 0;
    if (d->of_chain) return false;
    for (int f = 0; f < model->n_data; f++)
        if (d->missing[f].count) return false;
    return true;
}

typedef enum { OF_CHAIN, OF_ALL, IN_TURN, IN_PLACE, IN_PLACE_OF_ALL } Place;

static Place place_of(const GmModel *model, const GmData *d, const GmMemory *m, const GmField *field)
{
    return field->in_place_of              ? is_shared(model, d, field) ? IN_PLACE_OF_ALL : IN_PLACE
           : m->in_turn && field->by_start ? IN_TURN
           : is_shared(model, d, field)    ? OF_ALL
                                           : OF_CHAIN;
}

// Puts the pointers of the arrays of one place into chain c's State, inside `block`; returns the bytes used. With block == NULL it only
// counts.
static size_t lay_out(const GmModel *model, const GmData *d, GmMemory *m, Place place, char *block, int c)
{
    size_t used = 0;
    for (int f = 0; f < model->n_state; f++) {
        const GmField *field = &model->state[f];
        if (place_of(model, d, m, field) != place || aliases_data(model, d, f) || field->part_of) continue;
        if (block) *(void **)((char *)m->state + (size_t)c * model->state_size + field->offset) = block + used;
        if (__builtin_add_overflow(used, array_bytes(field, &m->shape[f]), &used)) return SIZE_MAX / 4;
    }
    for (int f = 0; f < model->n_state && block; f++) {
        const GmField *field = &model->state[f];
        if (field->part_of && place == OF_CHAIN)
            *(void **)((char *)m->state + (size_t)c * model->state_size + field->offset) =
                (double *)gm_state_array(model, m, c, field->part_of - 1) + field->part;
    }
    return used;
}

static char *aligned(void *block) { return (char *)(((uintptr_t)block + LINE - 1) / LINE * LINE); }

// Unknowns whose elements have a sum or a length cannot do without elements.
static bool has_no_value(const GmField *field, const GmShape *s)
{
    if ((field->role != GM_PARAMETER && field->role != GM_LATENT) ||
        (field->constraint != GM_SIMPLEX && field->constraint != GM_UNIT_VECTOR) || s->dim[s->rank - 1] != 0)
        return false;
    for (int k = 0; k < s->rank - 1; k++)
        if (s->dim[k] == 0) return false;
    return true;
}

size_t gm_memory_by_start(const GmModel *model, const GmMemory *m, const char **largest)
{
    size_t all = 0, most = 0;
    for (int f = 0; f < model->n_state; f++) {
        const size_t bytes = model->state[f].by_start ? array_bytes(&model->state[f], &m->shape[f]) : 0;
        if (bytes > most) {
            most = bytes;
            *largest = model->state[f].name;
        }
        if (__builtin_add_overflow(all, bytes, &all)) all = SIZE_MAX / 4;
    }
    return all;
}

// Zeros, of which the system keeps those that are written.
static void *lazily(size_t bytes)
{
    void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p == MAP_FAILED) gm_exhausted(bytes, 1);
    return p;
}

// Gives each joint normal the amount of memory that the updates in its place need; returns the largest number of one.
static int put_joint_memory(const GmModel *model, const GmData *d, const GmMemory *m, int chains)
{
    int n = 0;
    for (int f = 0; f < model->n_state; f++)
        if (model->state[f].in_place_of > n) n = model->state[f].in_place_of;
    for (int k = 1; k <= n; k++) {
        double bytes = 0;
        for (int f = 0; f < model->n_state; f++)
            if (model->state[f].in_place_of == k)
                bytes += (double)array_bytes(&model->state[f], &m->shape[f]) * (is_shared(model, d, &model->state[f]) ? 1 : chains);
        gm_sparse_stand_in(k, bytes);
    }
    return n;
}

// Data of which some are missing are the chain's own, or those of all.
static void begin_imputed(const GmMemory *m, const GmModel *model, const GmData *d, int c)
{
    for (int f = 0; f < model->n_state; f++) {
        const int source = model->state[f].role == GM_IMPUTED ? gm_data_of_imputed(model, f) : -1;
        if (source < 0) continue;
        void **at = (void **)((char *)m->state + (size_t)c * model->state_size + model->state[f].offset);
        void *array = data_array(model, d, source);
        if (aliases_data(model, d, f)) *at = array;
        else memcpy(*at, array, (size_t)gm_shape_size(&d->shape[source]) * gm_size_of_element(model->state[f].type));
    }
}

bool gm_memory_open(GmMemory *m, const GmModel *model, const GmData *d, int chains, int requests, bool may_take_turns)
{
    *m = (GmMemory){.chains = chains};
    m->shape = gm_alloc((size_t)model->n_state, sizeof *m->shape);
    m->state = gm_alloc((size_t)chains, model->state_size);
    m->block = gm_alloc((size_t)chains + 2, sizeof *m->block);
    for (int f = 0; f < model->n_state; f++) {
        const GmField *field = &model->state[f];
        m->shape[f] = gm_field_shape(field, f, model->state_shape, d->data);
        for (int k = 0; k < m->shape[f].rank && field->on_request && !(field->on_request & requests); k++) m->shape[f].dim[k] = 0;
        for (int k = 0; k < m->shape[f].rank; k++)
            if (m->shape[f].dim[k] < 0) {
                if (field->where) {
                    gm_error("data: the size of %s comes out as %ld (%s)", field->name, m->shape[f].dim[k], field->where);
                    return false;
                }
                m->negative = m->shape[f].dim[k];  // what the model says of it is found in setup
                m->shape[f].dim[k] = 0;
            }
        if (has_no_value(field, &m->shape[f])) {
            gm_error("data: %s is a %s of no elements (%s), and there is none: %s", field->name,
                     field->constraint == GM_SIMPLEX ? "simplex" : "unit vector", field->where ? field->where : "",
                     field->constraint == GM_SIMPLEX ? "its sum is 1" : "its length is 1");
            return false;
        }
        if (field->constraint == GM_UNIT_VECTOR && gm_is_drawn(field) && m->shape[f].dim[m->shape[f].rank - 1] == 1) {
            gm_error(
                "data: %s is a unit vector of one element (%s): 1 or -1, and no update leads from one to the other. Write 2 * b - 1 in "
                "its place, b ~ bernoulli(0.5)",
                field->name, field->where ? field->where : "");
            return false;
        }
    }
    const char *largest = NULL;
    m->in_turn = may_take_turns && gm_memory_by_start(model, m, &largest) > (size_t)TURNS / (size_t)chains;
    const int largest_number = put_joint_memory(model, d, m, chains);
    m->standing_in = gm_alloc((size_t)chains + 1, sizeof *m->standing_in);
    for (int all = 0; all < 2 && largest_number; all++) {
        m->standing_in_bytes[all] = lay_out(model, d, m, all ? IN_PLACE_OF_ALL : IN_PLACE, NULL, 0) + LINE;
        for (int c = all ? chains : 0; c < chains + all; c++) m->standing_in[c] = lazily(m->standing_in_bytes[all]);
    }
    const size_t own = lay_out(model, d, m, OF_CHAIN, NULL, 0), shared = lay_out(model, d, m, OF_ALL, NULL, 0),
                 turns = lay_out(model, d, m, IN_TURN, NULL, 0);
    const size_t bytes[] = {own + LINE, shared + LINE, turns + LINE};
    memcpy(m->bytes, bytes, sizeof bytes);
    m->block[chains] = gm_alloc(shared + LINE, 1);
    m->block[chains + 1] = gm_alloc(turns + LINE, 1);
    for (int c = 0; c < chains; c++) {
        m->block[c] = gm_alloc(own + LINE, 1);
        lay_out(model, d, m, OF_CHAIN, aligned(m->block[c]), c);
        lay_out(model, d, m, OF_ALL, aligned(m->block[chains]), c);
        lay_out(model, d, m, IN_TURN, aligned(m->block[chains + 1]), c);
        if (largest_number) lay_out(model, d, m, IN_PLACE, aligned(m->standing_in[c]), c);
        if (largest_number) lay_out(model, d, m, IN_PLACE_OF_ALL, aligned(m->standing_in[chains]), c);
        begin_imputed(m, model, d, c);
    }
    return true;
}

void gm_memory_close(GmMemory *m)
{
    for (int c = 0; c <= m->chains + 1 && m->block; c++) free(m->block[c]);
    for (int c = 0; c <= m->chains && m->standing_in; c++)
        if (m->standing_in[c]) munmap(m->standing_in[c], m->standing_in_bytes[c == m->chains]);
    free(m->standing_in);
    free(m->block);
    free(m->state);
    free(m->shape);
    *m = (GmMemory){0};
}

// ---- before the first sweep ----

struct GmKept {
    void **block;
};

static size_t bytes_of(const GmMemory *m, int block) { return m->bytes[block < m->chains ? 0 : block - m->chains + 1]; }

static void forget(const GmMemory *m, GmKept *kept)
{
    for (int k = 0; k < m->chains + 2; k++) free(kept->block[k]);
    free(kept->block);
    free(kept);
}

GmKept *gm_memory_keep(const GmMemory *m, double most)
{
    if ((double)m->bytes[0] * m->chains + (double)m->bytes[1] + (double)m->bytes[2] > most) return NULL;
    GmKept *kept = gm_alloc(1, sizeof *kept);
    kept->block = gm_alloc((size_t)m->chains + 2, sizeof *kept->block);
    bool good = true;
    for (int k = 0; k < m->chains + 2 && good; k++) {
        good = (kept->block[k] = malloc(bytes_of(m, k))) != NULL;
        if (good) memcpy(kept->block[k], m->block[k], bytes_of(m, k));
    }
    if (good) return kept;
    forget(m, kept);
    return NULL;
}

void gm_memory_back(GmMemory *m, GmKept *kept)
{
    for (int k = 0; k < m->chains + 2; k++) memcpy(m->block[k], kept->block[k], bytes_of(m, k));
    for (int k = 0; k < m->chains && m->standing_in; k++)  // work space: zeros again; that of all chains has sums of data from setup
        if (m->standing_in[k]) madvise(m->standing_in[k], m->standing_in_bytes[0], MADV_DONTNEED);
    forget(m, kept);
}

void gm_memory_save(GmMemory *m, GmSaved *s)
{
    for (int k = 0; k < m->chains + 2; k++) {
        // arrays begin on a cache line of the block, which lies elsewhere in each run
        char *from = aligned(m->block[k]);
        gm_saved_pages(s, from, bytes_of(m, k) - LINE);
    }
    for (int k = 0; k <= m->chains; k++) {
        bool any = m->standing_in[k] != NULL;
        GM_SAVED(s, any);
        if (any && m->standing_in[k]) gm_saved_pages(s, aligned(m->standing_in[k]), m->standing_in_bytes[k == m->chains] - LINE);
    }
}

void *gm_state_array(const GmModel *model, const GmMemory *m, int chain, int field)
{
    return *(void **)((char *)m->state + (size_t)chain * model->state_size + model->state[field].offset);
}
