// sparse.c -- sparse.h: draws from joint normals whose precision has few entries, by a factor or by conjugate gradients; their densities,
// and the checks of both.
//
// The factor is CHOLMOD's where columns are long, else that of simplicial.c, and J = B + U S U' where some rows are apart from it.
#include "sparse.h"

#include <math.h>
#include <omp.h>
#include <stdlib.h>
#include <string.h>
#include "../device/gamma.h"
#include "sparse_inside.h"

// of conjugate gradients: of one solution where there is no factor
enum { MOST_STEPS = 20000 };
enum { GM_FOR_FACTOR = -2 };           // beside what gm_normal_sparse returns
enum { FIRST_DRAWS = 8, AGAIN = 64 };  // draws of a chain by either preconditioner in turn, and then one of so many

static double noise_of(const Stream *g, long k)
{
    if (g->has_spare == GM_NO_NOISE) return 0;
    Stream part = stream_part(g, (uint64_t)k);
    return normal_standard(&part);
}

// ---- by a factor ----

#ifdef HAS_CHOLMOD
// J = B + U S U' and P B P' = L L'. U has the rows that are apart, of sign 1, and columns with one element, of sign -1, for what was added
// to pivots that were lost. Let L^-1 P U = Q R, Q'Q = I, and T = I + R S R' = G G'. Then J^-1 = P'L'^-1 (I + Q (T^-1 - I) Q') L^-1 P, of
// which I + Q (G'^-1 - I) Q' is a root.
typedef struct Apart {
    long n, K;
    double *Q, *R, *T;  // the lower triangle of T: that, and then G
    double *a, *b;      // work space
} Apart;

static Apart apart_open(const Pattern *q, const Record *r)
{
    Apart A = {.n = q->n, .K = q->napart + r->npushed};
    const size_t n = (size_t)A.n, K = (size_t)A.K;
    A.Q = gm_sparse_room(sizeof *A.Q * K * n);
    A.R = calloc(K * K, sizeof *A.R);
    A.T = gm_sparse_room(sizeof *A.T * K * K);
    A.a = gm_sparse_room(sizeof *A.a * 2 * K);
    A.b = A.a + K;
    if (!A.R) gm_sparse_no_room();
    memset(A.Q, 0, sizeof *A.Q * K * n);
    return A;
}

static void apart_close(Apart *A)
{
    free(A->Q);
    free(A->R);
    free(A->T);
    free(A->a);
}

// Q and R, by Gram and Schmidt.
static bool factor_columns(Apart *A, const Pattern *q, Numbers *m, const Record *r)
{
    const long n = A->n, K = A->K;
    double *const Q = A->Q, *const R = A->R;
    const GmRows rows = gm_sparse_rows(q, m);
    bool good = true;
    long k = 0;
    for (long i = 0; i < q->rows; i++)
        if (q->apart[i]) gm_row_added(&rows, i, 1, Q + k++ * n);
    for (int i = 0; i < r->npushed; i++) Q[k++ * n + r->pushed[i]] = sqrt(m->value[q->first[r->pushed[i]]]);
    for (k = 0; k < K && good; k++) {
        double *v = Q + k * n, norm = 0;
        good = gm_sparse_solve(q, m, CHOLMOD_P, v, n) && gm_sparse_solve(q, m, CHOLMOD_L, v, n);
        for (int again = 0; again < 2; again++)  // twice for the digits
            for (long l = 0; l < k; l++) {
                double c = 0;
                for (long j = 0; j < n; j++) c += Q[l * n + j] * v[j];
                for (long j = 0; j < n; j++) v[j] -= c * Q[l * n + j];
                R[l * K + k] += c;
            }
        for (long j = 0; j < n; j++) norm += v[j] * v[j];
        R[k * K + k] = norm = sqrt(norm);
        for (long j = 0; j < n; j++) v[j] = norm > 0 ? v[j] / norm : 0;
    }
    return good;
}

// T and its factor G, of napart rows of sign 1.
static bool factor_apart(Apart *A, long napart)
{
    const long K = A->K;
    const double *const R = A->R;
    double *const T = A->T;
    bool good = true;
    for (long k = 0; k < K; k++)
        for (long l = 0; l <= k; l++) {
            double sum = k == l;
            for (long i = k; i < K; i++) sum += (i < napart ? 1 : -1) * R[k * K + i] * R[l * K + i];
            T[k * K + l] = sum;
        }
    for (long k = 0; k < K && good; k++)
        for (long l = 0; l <= k; l++) {
            double sum = T[k * K + l];
            for (long i = 0; i < l; i++) sum -= T[k * K + i] * T[l * K + i];
            good = good && (k != l || sum > 0);
            T[k * K + l] = k == l ? sqrt(sum) : sum / T[l * K + l];
        }
    return good;
}

// v <- the root times v; of_mean: v <- (I + Q (T^-1 - I) Q') v, and gives v' times that.
static double times_root(const Apart *A, double *v, bool of_mean)
{
    const long n = A->n, K = A->K;
    const double *const Q = A->Q, *const T = A->T;
    double *const a = A->a, *const b = A->b, quadratic = 0;
    for (long j = 0; j < n; j++) quadratic += of_mean ? v[j] * v[j] : 0;
    for (long k = 0; k < K; k++) {
        a[k] = 0;
        for (long j = 0; j < n; j++) a[k] += Q[k * n + j] * v[j];
        b[k] = a[k];
        for (long i = 0; i < k && of_mean; i++) b[k] -= T[k * K + i] * b[i];
        if (of_mean) b[k] /= T[k * K + k];
    }
    for (long k = K - 1; k >= 0; k--) {
        for (long i = k + 1; i < K; i++) b[k] -= T[i * K + k] * b[i];
        b[k] /= T[k * K + k];
        for (long j = 0; j < n; j++) v[j] += (b[k] - a[k]) * Q[k * n + j];
        quadratic += of_mean ? a[k] * (b[k] - a[k]) : 0;
    }
    return quadratic;
}

// *exponent, unless it is NULL: h'J^-1 h/2 - log|J|/2, and no draw. x from the factor, with the rows that are apart.
static long draw_apart(Stream *g, const Pattern *q, Numbers *m, const Record *r, const double *h, double *x, GmScale *scale,
                       double *exponent)
{
    const long n = q->n;
    const Stream parts = *g;
    Apart A = apart_open(q, r);
    double *mean = gm_sparse_room(sizeof *mean * (size_t)n), *z = m->vector, quadratic = 0;
    bool good = factor_columns(&A, q, m, r) && factor_apart(&A, q->napart);
    memcpy(mean, h, sizeof *mean * (size_t)n);
    good = good && gm_sparse_solve(q, m, CHOLMOD_P, mean, n) && gm_sparse_solve(q, m, CHOLMOD_L, mean, n);
    for (long j = 0; j < n; j++) z[j] = noise_of(&parts, j);
    if (good) times_root(&A, z, false);
    if (good) quadratic = times_root(&A, mean, true);
    if (exponent) {
        *exponent = quadratic / 2;
        for (long j = 0, super = 0; j < n; j++) *exponent -= log(gm_sparse_pivot(q, m, j, &super));
        for (long k = 0; k < A.K && good; k++) *exponent -= log(A.T[k * A.K + k]);
    }
    if (good && scale) {
        const double rest = scale->Q - quadratic;
        scale->scale = rest > 0 && scale->count > 0 ? sqrt(gamma_shape_rate(g, scale->count / 2, rest / 2)) : 1;
    }
    for (long j = 0; j < n; j++) z[j] += (scale ? scale->scale : 1) * mean[j];
    good = good && (exponent || (gm_sparse_solve(q, m, CHOLMOD_Lt, z, n) && gm_sparse_solve(q, m, CHOLMOD_Pt, z, n)));
    if (good && !exponent) memcpy(x, z, sizeof *x * (size_t)n);
    apart_close(&A);
    free(mean);
    return good ? 0 : 1;
}
#endif

// ---- conjugate gradients ----

// x = J^-1 b by a factor, sparse or dense, of the same numbers; b is destroyed. false: there is none.
static bool solved_directly(const Pattern *q, Numbers *m, Record *r, double *b, double *x)
{
    Stream none = {0};
    none.has_spare = GM_NO_NOISE;
    if (!q->direct) return false;
    if (!q->analysed) {
        gm_sparse_make_dense(q, m);
        const bool good = gm_normal_dense(&none, q->n, m->dense, b, x, NULL) == 0;
        free(m->dense);
        m->dense = NULL;
        return good;
    }
#ifdef HAS_CHOLMOD
    if (!m->complete) gm_sparse_complete(q, m);
    if (gm_sparse_factor(q, m, q->napart ? r : NULL)) return false;
    if (q->napart) return draw_apart(&none, q, m, r, b, x, NULL, NULL) == 0;
    memcpy(x, b, sizeof *x * (size_t)q->n);
    return gm_sparse_solve(q, m, CHOLMOD_A, x, q->n);
#else
    (void)r;
    return false;
#endif
}

// One draw by conjugate gradients: by which preconditioner, and how many iterations it may take.
typedef struct Gradients {
    const Pattern *q;
    Numbers *m;
    Record *r;
    GmRows R;
    double *D, *J, *b, *mean, *work;  // J: all of the diagonal
    int by;
    long most, steps;
    bool good;  // it came close enough
} Gradients;

// From b to x. false: it was not close enough.
static bool solved(Gradients *s, const double *b, double *x)
{
    const long taken = gm_conjugate_gradients(&s->R, s->q->n, s->D, s->by ? s->J : s->D, b, x, s->work, s->most);
    s->steps += taken < 0 ? s->most : taken;
    return taken >= 0;
}

// The diagonal and b = h + D^1/2 e1 + R'e2, less h. 0, or as draw_by_gradients.
static long make_target(Gradients *s, const Stream *parts)
{
    const Pattern *q = s->q;
    const long n = q->n;
    double *const D = s->D;
    for (long j = 0; j < n; j++) {
        D[j] = s->m->value[q->first[j]];
        if (D[j] == 0 && q->direct) return GM_FOR_FACTOR;  // rows alone know of it: whether they suffice is what a factor sees
        if (!(D[j] > 0) || !isfinite(D[j])) return j + 1;
    }
    gm_rows_diagonal(&s->R, n, D, s->J);
    for (long j = 0; j < n; j++) s->b[j] = sqrt(D[j]) * noise_of(parts, j);
    for (long i = 0; i < q->rows; i++) s->m->of_rows[i] = noise_of(parts, n + i);
    gm_rows_added(&s->R, s->m->of_rows, s->b);
    return 0;
}

// The mean by itself, and the scale, as in linalg.h. false: there is none.
static bool draw_scale(Gradients *s, const Stream *g, const double *h, GmScale *scale)
{
    const long n = s->q->n;
    memset(s->mean, 0, sizeof *s->mean * (size_t)n);
    s->good = solved(s, h, s->mean);
    if (!s->good) {
        memcpy(s->work, h, sizeof *s->work * (size_t)n);
        if (!solved_directly(s->q, s->m, s->r, s->work, s->mean)) return false;
    }
    double rest = scale->Q;
    for (long j = 0; j < n; j++) rest -= h[j] * s->mean[j];
    Stream own = *g;
    scale->scale = rest > 0 && scale->count > 0 ? sqrt(gamma_shape_rate(&own, scale->count / 2, rest / 2)) : 1;
    return true;
}

// h goes into b; the present x is where it begins, if it can.
static void add_mean(Gradients *s, const double *h, double *x)
{
    const long n = s->q->n;
    bool finite = true;
    for (long j = 0; j < n; j++) {
        s->b[j] += h[j];
        finite &= isfinite(x[j]) != 0;
    }
    if (!finite) memset(x, 0, sizeof *x * (size_t)n);
}

// What it has cost: a draw that took a factor as well counts double.
static void note_cost(Gradients *s)
{
    Record *const r = s->r;
    const double counted = s->good ? (double)s->steps : 2.0 * (double)s->steps;
    r->mean[s->by] = r->mean[s->by] > 0 ? 0.8 * r->mean[s->by] + 0.2 * counted : counted;
    if (!s->good) {
        r->failed++;
        return;
    }
    r->solved++;
    r->steps += s->steps;
}

// The draw by conjugate gradients. If they do not come close enough the same b is solved for by a factor: whether they do may depend on its
// noise, of which the draw then is the same function. GM_NOT_SOLVED: there is none; GM_FOR_FACTOR: this draw is better made by it, h is as
// it was.
static long draw_by_gradients(Stream *g, Pattern *q, Numbers *m, const double *h, double *x, GmScale *scale)
{
    const long n = q->n;
    Record *const r = gm_sparse_record(q, m->chain);
    const long draw = r->draws++;
    const bool trial = draw < FIRST_DRAWS || draw % AGAIN == 0;
    const int by = draw < FIRST_DRAWS ? (int)(draw & 1) : trial ? (int)(draw / AGAIN & 1) : r->mean[1] < r->mean[0];
    if (!trial && q->direct && !q->only_gradients && r->mean[by] * q->update_time > q->factor_time) return GM_FOR_FACTOR;
    // no more iterations than these: then there is the factor
    const double worth = 20 + 4 * q->factor_time / (q->update_time + 1);
    if (!m->solving) m->solving = gm_sparse_room(sizeof(double) * 8 * (size_t)n);
    Gradients s = {.q = q,
                   .m = m,
                   .r = r,
                   .R = gm_sparse_rows(q, m),
                   .D = m->solving,
                   .J = m->solving + n,
                   .b = m->solving + 2 * n,
                   .mean = m->solving + 3 * n,
                   .work = m->solving + 4 * n,
                   .by = by,
                   .most = q->direct && worth < MOST_STEPS ? (long)worth : MOST_STEPS,
                   .good = true};
    const Stream parts = *g;
    const long bad = make_target(&s, &parts);
    if (bad) return bad;
    if (scale) {
        if (!draw_scale(&s, g, h, scale)) return GM_NOT_SOLVED;
        memset(x, 0, sizeof *x * (size_t)n);
    } else add_mean(&s, h, x);
    s.good = s.good && solved(&s, s.b, x);
    if (!s.good && !solved_directly(q, m, r, s.b, x)) return GM_NOT_SOLVED;
    note_cost(&s);
    for (long j = 0; j < n && scale; j++) x[j] += scale->scale * s.mean[j];
    stream_pass(g);
    for (long j = 0; j < n; j++)
        if (!isfinite(x[j])) return j + 1;
    return 0;
}

static long draw_sparse(Stream *g, int number, double *h, double *x, GmScale *scale)
{
    Pattern *q = gm_sparse_pattern(number);
    Numbers *m = gm_sparse_numbers(number);
    const long n = q->n;
    gm_sparse_collected(q, m, h);
    for (long i = 0; i < q->rows && q->parts; i++)
        if (!isfinite(m->root[i])) return 1;
    for (long k = 0; k < q->puts; k++)
        if (!isfinite(m->put[k])) return q->column[k] + 1;
    if (q->dense) {
        gm_sparse_make_dense(q, m);
        return gm_normal_dense(g, n, m->dense, h, x, scale);
    }
    if (q->gradients) {
        const long bad = draw_by_gradients(g, q, m, h, x, scale);
        if (bad != GM_FOR_FACTOR) return bad;
    }
    if (q->parts) {
        gm_sparse_make_dense(q, m);
        const long bad = gm_normal_dense(g, n, m->dense, h, x, scale);
        free(m->dense);
        m->dense = NULL;
        return bad;
    }
#ifdef HAS_CHOLMOD
    const Stream parts = *g;
    gm_sparse_complete(q, m);
    Record *const record = q->napart ? gm_sparse_record(q, m->chain) : NULL;
    const long bad = gm_sparse_factor(q, m, record);
    if (bad) return bad;
    if (record) {
        if (draw_apart(g, q, m, record, h, x, scale, NULL)) return 1;
    } else {
        double *v = m->vector;
        memcpy(v, h, sizeof *v * (size_t)n);
        if (!gm_sparse_solve(q, m, CHOLMOD_P, v, n) || !gm_sparse_solve(q, m, CHOLMOD_L, v, n)) return 1;
        if (scale) {  // as in linalg.h
            double rest = scale->Q;
            for (long k = 0; k < n; k++) rest -= v[k] * v[k];
            scale->scale = rest > 0 && scale->count > 0 ? sqrt(gamma_shape_rate(g, scale->count / 2, rest / 2)) : 1;
            for (long k = 0; k < n; k++) v[k] *= scale->scale;
        }
        for (long k = 0; k < n; k++) v[k] += noise_of(&parts, k);
        if (!gm_sparse_solve(q, m, CHOLMOD_Lt, v, n) || !gm_sparse_solve(q, m, CHOLMOD_Pt, v, n)) return 1;
        memcpy(x, v, sizeof *x * (size_t)n);
    }
    stream_pass(g);
    for (long i = 0; i < n; i++)
        if (!isfinite(x[i])) return i + 1;
    return 0;
#else
    return 1;
#endif
}

long gm_normal_sparse(Stream *g, int number, double *h, double *x, GmScale *scale)
{
    const int levels = omp_get_max_active_levels();
    omp_set_max_active_levels(0);  // CHOLMOD's own teams of four would spend the time on waiting for each other
    const long bad = draw_sparse(g, number, h, x, scale);
    omp_set_max_active_levels(levels);
    return bad;
}

static double marginal_sparse(int number, double *h, const double *x)
{
    Pattern *q = gm_sparse_pattern(number);
    Numbers *m = gm_sparse_numbers(number);
    const long n = q->n;
    gm_sparse_collected(q, m, h);
    if (q->dense) {
        gm_sparse_make_dense(q, m);
        return gm_marginal_dense(n, m->dense, h, x);
    }
#ifdef HAS_CHOLMOD
    gm_sparse_complete(q, m);
    Record *const record = q->napart ? gm_sparse_record(q, m->chain) : NULL;
    if (gm_sparse_factor(q, m, record)) return -INFINITY;
    for (long j = 0; j < n; j++)  // h - Jx
        for (long k = q->first[j]; k < q->first[j + 1]; k++) {
            const long i = q->row[k];
            h[i] -= m->value[k] * x[j];
            if (i != j) h[j] -= m->value[k] * x[i];
        }
    const GmRows R = gm_sparse_rows(q, m);
    if (q->napart) gm_rows_times(&R, x, m->of_rows);
    for (long i = 0; i < q->rows && q->napart; i++)
        if (q->apart[i]) gm_row_added(&R, i, -m->of_rows[i], h);
    if (record) {
        Stream none = {0};
        double exponent;
        none.has_spare = GM_NO_NOISE;
        return !draw_apart(&none, q, m, record, h, NULL, NULL, &exponent) && isfinite(exponent) ? exponent : -INFINITY;
    }
    double log_det = 0, quadratic = 0, *mean = m->vector;
    const int *order = gm_cholmod_order(q);
    for (long k = 0, s = 0; k < n; k++) {
        const double pivot = gm_sparse_pivot(q, m, k, &s);
        if (pivot * pivot < GM_PIVOT_POOR * m->value[q->first[order[k]]]) return -INFINITY;
        log_det += log(pivot);
    }
    memcpy(mean, h, sizeof *mean * (size_t)n);
    if (!gm_sparse_solve(q, m, CHOLMOD_A, mean, n)) return -INFINITY;
    for (long k = 0; k < n; k++) quadratic += h[k] * mean[k];
    const double v = quadratic / 2 - log_det;
    return isfinite(v) ? v : -INFINITY;
#else
    return -INFINITY;
#endif
}

double gm_marginal_sparse(int number, double *h, const double *x)
{
    const int levels = omp_get_max_active_levels();
    omp_set_max_active_levels(0);
    const double v = marginal_sparse(number, h, x);
    omp_set_max_active_levels(levels);
    return v;
}

double gm_sparse_work(int number)
{
    const Pattern *q = gm_sparse_pattern(number);
    return q->may_be_listed ? -q->listed : q->gradients ? -1 : q->work;
}

// ---- checks ----

void gm_sparse_before(int number, double *h, const double *x)
{
    const Pattern *q = gm_sparse_pattern(number);
    Numbers *m = gm_sparse_numbers(number);
    gm_sparse_collected(q, m, h);
    if (!m->kept) m->kept = gm_sparse_room(sizeof(double) * (size_t)(2 * q->n));
    memcpy(m->kept, h, sizeof(double) * (size_t)q->n);
    memcpy(m->kept + q->n, x, sizeof(double) * (size_t)q->n);
}

long gm_sparse_dense(int number, double *h, long most, double *J)
{
    const Pattern *q = gm_sparse_pattern(number);
    Numbers *m = gm_sparse_numbers(number);
    const long n = q->n;
    if (n > most || q->rows > most * most / (n > 0 ? n : 1)) return 0;
    gm_sparse_collected(q, m, h);
    for (long i = 0; i < n * n; i++) J[i] = 0;
    for (long j = 0; j < n; j++)
        for (long k = q->first[j]; k < q->first[j + 1]; k++) J[(long)q->row[k] * n + j] += m->value[k];
    const GmRows R = gm_sparse_rows(q, m);
    double *column = gm_sparse_room(sizeof *column * (size_t)(n * q->rows)), *unit = gm_sparse_room(sizeof *unit * (size_t)n);
    for (long j = 0; j < n && q->rows > 0; j++) {
        for (long i = 0; i < n; i++) unit[i] = i == j;
        gm_rows_times(&R, unit, column + j * q->rows);
    }
    for (long i = 0; i < n; i++)
        for (long j = 0; j <= i; j++)
            for (long r = 0; r < q->rows; r++)
                if (!m->complete || q->apart[r]) J[i * n + j] += column[i * q->rows + r] * column[j * q->rows + r];
    free(column);
    free(unit);
    return n;
}

double gm_sparse_after(int number, const double *x)
{
    const Pattern *q = gm_sparse_pattern(number);
    const Numbers *m = gm_sparse_numbers(number);
    const double *h = m->kept, *old = h + q->n;
    double v = 0, size = 0;
    for (long j = 0; j < q->n; j++) {  // d'(h - J m) with d = x - old, m = (x + old)/2
        const double d = x[j] - old[j], mean = (x[j] + old[j]) / 2;
        v += d * h[j];
        size += fabs(d * h[j]);
        for (long k = q->first[j]; k < q->first[j + 1]; k++) {
            const long i = q->row[k];
            const double one = d * m->value[k] * (x[i] + old[i]) / 2, other = i == j ? 0 : (x[i] - old[i]) * m->value[k] * mean;
            v -= one + other;
            size += fabs(one) + fabs(other);
        }
    }
    const GmRows R = gm_sparse_rows(q, m);
    double *now_of = m->of_rows, *then_of = gm_sparse_room(sizeof *then_of * (size_t)q->rows);
    gm_rows_times(&R, x, now_of);
    gm_rows_times(&R, old, then_of);
    for (long i = 0; i < q->rows; i++) {
        if (m->complete && !q->apart[i]) continue;
        const double now = now_of[i], then = then_of[i];
        v -= (now - then) * (now + then) / 2;
        size += now * now / 2 + then * then / 2;
    }
    free(then_of);
    gm_kept_size(size);
    return v;
}
