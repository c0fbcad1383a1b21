// coordinates.c -- the real unknowns of a chain as coordinates without bounds.
//
//   no bound            x
//   one, or two         log(x - lower), -log(upper - x), log((x - lower)/(upper - x))
//   simplex             log(x[k]), one of them too many; numbers that have vanished stay
//   ordered             x[1] (its log, if positive), log(x[k] - x[k - 1])
//   covariance          rows of the Cholesky factor, logs on the diagonal
#include "fields.h"
#include "messages.h"
#include "coordinates.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>

static const double vanished = 1e-200;

static bool is_unknown(const GmField *f) { return gm_is_drawn_real(f) && !f->part_of; }

static bool is_known(const GmField *f)
{
    return f->constraint == GM_ANY || f->constraint == GM_SIMPLEX || f->constraint == GM_ORDERED || f->constraint == GM_POSITIVE_ORDERED ||
           f->constraint == GM_COVARIANCE;
}

// Numbers that one constraint holds together.
static long group(const GmField *f, const GmShape *s)
{
    const long last = s->rank ? s->dim[s->rank - 1] : 1;
    return f->constraint == GM_ANY ? 1 : f->constraint == GM_COVARIANCE ? last * last : last;
}

bool gm_coordinates_open(GmCoordinates *c, const GmModel *model, const GmMemory *m)
{
    *c = (GmCoordinates){.model = model, .memory = m};
    for (int f = 0; f < model->n_state; f++) {
        if (!is_unknown(&model->state[f])) continue;
        const long n = gm_shape_size(&m->shape[f]);
        if (n > 0 && !is_known(&model->state[f])) return false;
        c->n += n;
    }
    return true;
}

static double log_of(double x) { return log(fmax(x, DBL_MIN)); }
static double exp_of(double q) { return fmax(exp(fmin(q, 700)), DBL_MIN); }

static double take_number(double x, double lower, double upper)
{
    if (!isfinite(lower) && !isfinite(upper)) return x;
    return (isfinite(lower) ? log_of(x - lower) : 0) - (isfinite(upper) ? log_of(upper - x) : 0);
}

static double put_number(double q, double lower, double upper)
{
    if (!isfinite(lower) && !isfinite(upper)) return q;
    const double x = !isfinite(upper)   ? lower + exp_of(q)
                     : !isfinite(lower) ? upper - exp_of(-q)
                                        : lower + (upper - lower) / (1 + exp_of(-q));
    return x <= lower ? nextafter(lower, INFINITY) : x >= upper ? nextafter(upper, -INFINITY) : x;
}

static void take_covariance(const double *x, long n, double *q)
{
    double *L = gm_alloc((size_t)(n * n), sizeof *L);
    for (long i = 0; i < n; i++)
        for (long j = 0; j <= i; j++) {
            double sum = x[i * n + j];
            for (long k = 0; k < j; k++) sum -= L[i * n + k] * L[j * n + k];
            L[i * n + j] = i == j ? sqrt(sum) : sum / L[j * n + j];  // no number, if it is not positive definite
        }
    for (long i = 0; i < n; i++)
        for (long j = 0; j < n; j++) q[i * n + j] = j < i ? L[i * n + j] : j == i ? log(L[i * n + i]) : 0;
    free(L);
}

static void put_covariance(const double *q, long n, double *x)
{
    for (long i = 0; i < n; i++)
        for (long j = 0; j <= i; j++) {
            double sum = 0;
            for (long k = 0; k <= j; k++)
                sum += (k == i ? exp_of(q[i * n + k]) : q[i * n + k]) * (k == j ? exp_of(q[j * n + k]) : q[j * n + k]);
            x[i * n + j] = x[j * n + i] = sum;
        }
}

static void put_simplex(const double *q, long n, double *x)
{
    double top = -INFINITY, sum = 0;
    for (long k = 0; k < n; k++) top = fmax(top, q[k]);
    for (long k = 0; k < n; k++)
        if (x[k] > vanished) sum += x[k] = exp(q[k] - top);
    for (long k = 0; k < n; k++)
        if (x[k] > vanished) x[k] = fmax(x[k] / sum, DBL_MIN);
}

void gm_coordinates_take(const GmCoordinates *c, int chain, double *q)
{
    for (int f = 0; f < c->model->n_state; f++) {
        const GmField *field = &c->model->state[f];
        if (!is_unknown(field)) continue;
        const GmShape *s = &c->memory->shape[f];
        const double *x = gm_state_array(c->model, c->memory, chain, f);
        const long n = gm_shape_size(s), size = group(field, s);
        for (long i = 0; i < n; i += size, x += size, q += size) {
            if (field->constraint == GM_ANY) *q = take_number(*x, s->lower, s->upper);
            else if (field->constraint == GM_COVARIANCE) take_covariance(x, s->dim[s->rank - 1], q);
            else
                for (long k = 0; k < size; k++)
                    q[k] = field->constraint == GM_SIMPLEX   ? log_of(x[k])
                           : k                               ? log_of(x[k] - x[k - 1])
                           : field->constraint == GM_ORDERED ? x[0]
                                                             : log_of(x[0]);
        }
    }
}

void gm_coordinates_put(const GmCoordinates *c, int chain, const double *q)
{
    for (int f = 0; f < c->model->n_state; f++) {
        const GmField *field = &c->model->state[f];
        if (!is_unknown(field)) continue;
        const GmShape *s = &c->memory->shape[f];
        double *x = gm_state_array(c->model, c->memory, chain, f);
        const long n = gm_shape_size(s), size = group(field, s);
        for (long i = 0; i < n; i += size, x += size, q += size) {
            if (field->constraint == GM_ANY) *x = put_number(*q, s->lower, s->upper);
            else if (field->constraint == GM_COVARIANCE) put_covariance(q, s->dim[s->rank - 1], x);
            else if (field->constraint == GM_SIMPLEX) put_simplex(q, size, x);
            else
                for (long k = 0; k < size; k++) x[k] = k ? x[k - 1] + exp_of(q[k]) : field->constraint == GM_ORDERED ? q[0] : exp_of(q[0]);
        }
    }
}

// The field of coordinate *k, which becomes its element.
static int field_at(const GmCoordinates *c, long *k)
{
    for (int f = 0;; f++) {
        const long n = is_unknown(&c->model->state[f]) ? gm_shape_size(&c->memory->shape[f]) : 0;
        if (*k < n) return f;
        *k -= n;
    }
}

bool gm_coordinates_outward(const GmCoordinates *c, long k, double step)
{
    const int f = field_at(c, &k);
    const GmShape *s = &c->memory->shape[f];
    return c->model->state[f].constraint == GM_ANY && (step > 0 ? !isfinite(s->upper) : step < 0 && !isfinite(s->lower));
}

char *gm_coordinates_name(const GmCoordinates *c, int chain, long k)
{
    const int f = field_at(c, &k);
    const GmShape *s = &c->memory->shape[f];
    char *name = gm_element_name(c->model->state[f].name, s->rank, s->dim, k);
    char *says =
        gm_format("%s = %.3g (%s)", name, ((const double *)gm_state_array(c->model, c->memory, chain, f))[k], c->model->state[f].where);
    free(name);
    return says;
}
