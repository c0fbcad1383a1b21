// relabel_agree.c -- permutations of the labels of each draw, so that they agree.
//
// By allocations, if c is stored: the cost of calling label k of a draw l is the number of points with c = k in the draw that the reference
// does not call l. The reference is at first the draw of the largest lp__. A second attempt, with at most MOST_STARTED points, begins with
// the least squares partition; what costs less counts. Then the reference is the label that most draws give to each point, as often as the
// number of disagreements falls. These are equivalence classes representatives (Papastamoulis and Iliopoulos 2010, Journal of
// Computational and Graphical Statistics 19, in the iterative form of Papastamoulis 2016, Journal of Statistical Software 69). Where
// allocations leave a choice (components without points), parameters decide, by their squared distance to those of the reference draw. By
// parameters, `--by mu,w`: the cost is that squared distance, each element in units of its standard deviation over all labels and draws.
// The reference becomes the mean of the permuted draws as often as the cost falls (as in Stephens 2000, Journal of the Royal Statistical
// Society B 62, with probabilities of allocation).
#include "fields.h"
#include "messages.h"
#include "relabel_inside.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_ROUNDS = 100, MOST_STARTED = 3000 };

// Coordinates of the parameters: coordinate j of label k is column[j * K + k], in units of scale[j].
typedef struct Coordinates {
    long n;
    long *column;
    double *scale;
} Coordinates;

static Coordinates coordinates_of(const GmRelabel *r)
{
    Coordinates c = {0};
    const long k = r->n_labels;
    for (const GmLabelled *v = r->labels->fields; v->field; v++) {
        const int f = v->field - 1;
        const GmShape *s = &r->memory.shape[f];
        const bool wanted = r->by >= 0 ? r->model->state[f].role == GM_PARAMETER : r->wanted[f];
        if (!wanted || v->values || v->apart || v->lost || !gm_one_dimension(v->dims) || !r->column_of[f]) continue;
        const int along = gm_label_dimension(v->dims);
        c.column = gm_grow(c.column, (size_t)(c.n * k + gm_shape_size(s)), sizeof *c.column);
        for (long e = 0; e < gm_shape_size(s); e++) {
            if (gm_with_label(s, along, e, 0) != e) continue;
            for (long l = 0; l < k; l++) c.column[c.n * k + l] = r->column_of[f][gm_with_label(s, along, e, l)];
            c.n++;
        }
    }
    c.scale = gm_alloc((size_t)c.n, sizeof *c.scale);
    for (long j = 0; j < c.n; j++) {
        double mean = 0, square = 0, n = 0;
        for (long d = 0; d < r->draws; d++)
            for (long l = 0; l < k; l++) {
                const double x = r->number[d * r->n_columns + c.column[j * k + l]];
                if (!isfinite(x)) continue;
                const double step = x - mean;
                mean += step / ++n;
                square += step * (x - mean);
            }
        c.scale[j] = square > 0 ? sqrt(square / n) : 1;
    }
    return c;
}

// distance[k * K + l] of the parameters of label k to the reference's of label l, [coordinate][label].
static void distances(const GmRelabel *r, const Coordinates *c, long draw, const double *reference, double *distance)
{
    const long k = r->n_labels;
    memset(distance, 0, sizeof *distance * (size_t)(k * k));
    for (long j = 0; j < c->n; j++)
        for (long a = 0; a < k; a++) {
            const double x = r->number[draw * r->n_columns + c->column[j * k + a]];
            for (long b = 0; b < k; b++) {
                const double off = (x - reference[j * k + b]) / c->scale[j];
                distance[a * k + b] += isfinite(off) ? off * off : 1e6;
            }
        }
}

static long reference_draw(const GmRelabel *r)
{
    long best = 0, column = -1;
    for (long c = 0; c < r->n_columns && column < 0; c++)
        if (r->column[c].field == -1) column = c;
    for (long d = 1; d < r->draws && column >= 0; d++)
        if (r->number[d * r->n_columns + column] > r->number[best * r->n_columns + column]) best = d;
    return best;
}

// One round: the best permutation of each draw. reference: [coordinate][label]; agreed: by point, or NULL. Returns the cost: disagreements,
// or squared distances.
static double assign_all(GmRelabel *r, const Coordinates *c, const double *reference, const int32_t *agreed)
{
    const int k = r->n_labels;
    const size_t square = (size_t)k * (size_t)k;
    double *cost = gm_alloc(square, sizeof *cost), *distance = gm_alloc(square, sizeof *distance), total = 0;
    for (long d = 0; d < r->draws; d++) {
        int *to = r->to + d * k;
        distances(r, c, d, reference, distance);
        if (agreed) {
            double most = 0;
            for (size_t i = 0; i < square; i++) most = fmax(most, distance[i]);
            for (size_t i = 0; i < square; i++)  // all of them together weigh less than one point
                cost[i] = most > 0 ? 0.5 * distance[i] / (most * k) : 0;
            for (long i = 0; i < r->points; i++) cost[(size_t)r->z[d * r->points + i] * (size_t)k + (size_t)agreed[i]] -= 1;
            gm_assign(k, cost, to);
            for (long i = 0; i < r->points; i++) total += to[r->z[d * r->points + i]] != agreed[i];
        } else {
            total += gm_assign(k, distance, to);
        }
    }
    free(cost);
    free(distance);
    return total;
}

// The label that most draws give to each point, as permuted. Of several the one that it has, or that was so often given first: whatever
// labels are called, the same.
static void most_given(const GmRelabel *r, int32_t *agreed)
{
    const int k = r->n_labels;
    long *times = gm_alloc((size_t)k, sizeof *times);
    for (long i = 0; i < r->points; i++) {
        int best = agreed[i];
        memset(times, 0, sizeof *times * (size_t)k);
        for (long d = 0; d < r->draws; d++) {
            const int l = r->to[d * k + r->z[d * r->points + i]];
            if (++times[l] > times[best]) best = l;
        }
        agreed[i] = times[agreed[i]] == times[best] ? agreed[i] : best;
    }
    free(times);
}

static void mean_reference(const GmRelabel *r, const Coordinates *c, double *reference)
{
    const int k = r->n_labels;
    memset(reference, 0, sizeof *reference * (size_t)(c->n * k));
    for (long j = 0; j < c->n; j++)
        for (long d = 0; d < r->draws; d++)
            for (int l = 0; l < k; l++)
                reference[j * k + r->to[d * k + l]] += r->number[d * r->n_columns + c->column[j * k + l]] / (double)r->draws;
}

// Permutations of all draws, from a draw as the reference on. *left: what the last round costs. Returns the rounds made.
static int agree_from(GmRelabel *r, const Coordinates *c, long first, double *left)
{
    const int k = r->n_labels;
    double *reference = gm_alloc((size_t)(c->n * k), sizeof *reference);
    int32_t *agreed = r->by >= 0 ? gm_alloc((size_t)r->points, sizeof *agreed) : NULL;
    for (long j = 0; j < c->n * k; j++) reference[j] = r->number[first * r->n_columns + c->column[j]];
    for (long i = 0; i < r->points; i++) agreed[i] = r->z[first * r->points + i];
    *left = assign_all(r, c, reference, agreed);
    int rounds = 1;
    for (bool better = true; better && rounds < MOST_ROUNDS; rounds++) {
        if (agreed) most_given(r, agreed);
        else mean_reference(r, c, reference);
        const double now = assign_all(r, c, reference, agreed);
        better = now < *left * (1 - 1e-12);
        *left = now;
    }
    free(reference);
    free(agreed);
    return rounds;
}

// Components in the order of the points that they have in all draws, the largest first.
static void by_size(GmRelabel *r)
{
    const int k = r->n_labels;
    long *size = gm_alloc((size_t)k, sizeof *size);
    int *place = gm_alloc((size_t)k, sizeof *place);
    for (long d = 0; d < r->draws; d++)
        for (long i = 0; i < r->points; i++) size[r->to[d * k + r->z[d * r->points + i]]]++;
    for (int l = 0; l < k; l++)
        for (int other = 0; other < k; other++) place[l] += size[other] > size[l] || (size[other] == size[l] && other < l);
    for (long i = 0; i < r->draws * k; i++) r->to[i] = place[r->to[i]];
    free(size);
    free(place);
}

int gm_agree(GmRelabel *r, double *left)
{
    const Coordinates c = coordinates_of(r);
    const size_t size = (size_t)r->draws * (size_t)r->n_labels;
    r->to = gm_alloc(size, sizeof *r->to);
    int rounds = agree_from(r, &c, reference_draw(r), left);
    if (r->by >= 0 && r->points <= MOST_STARTED) {
        const GmPartitions p = {r->draws, r->points, r->n_labels, r->z};
        uint32_t *together = gm_together(&p);
        int *before = r->to;
        double other;
        r->to = gm_alloc(size, sizeof *r->to);
        const int more = agree_from(r, &c, gm_least_squares(&p, together), &other);
        if (other < *left) {
            *left = other;
            rounds = more;
            free(before);
        } else {
            free(r->to);
            r->to = before;
        }
        free(together);
    }
    if (r->by >= 0) by_size(r);
    free(c.column);
    free(c.scale);
    return rounds;
}
