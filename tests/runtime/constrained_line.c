// If this failed, a transform for HMC would leave a simplex, an order, a sphere, a plane or the positive definite matrices, forget a
// Jacobian, or follow a wrong slope.
//
// Images satisfy their constraint and come back; log |J| is that of a determinant of central differences; the chain rule is the difference
// of F(x(y)) + log |J| for a function F of all elements. Differences have an error of h^2 and a rounding of eps / h: 1e-7 in all, relative
// to what they come from.
#include "check.h"
#include "../../runtime/device/constrained_line.h"

enum { MOST = 36, LOWER = 1, BELOW = 2, BUT_LAST = 3, ALL = 4, PLANE = 5 };

typedef struct Kind {
    const char *name;
    int         matrix, density;         // of which elements
    void      (*from)(long, const double *, double *);
    void      (*to)(long, const double *, double *, double *);
    double    (*chain)(long, const double *, const double *, const double *, double *, double *);
} Kind;

#define WITHIN(name, lo, hi)                                                                                                        \
    static void name##_from_line(long n, const double *y, double *x) { ordered_within_from_line(n, lo, hi, y, x); }                 \
    static void name##_to_line(long n, const double *x, double *y, double *work) { ordered_within_to_line(n, lo, hi, x, y, work); } \
    static double name##_chain(long n, const double *y, const double *x, const double *slope, double *out, double *work)            \
    {                                                                                                                               \
        return ordered_within_chain(n, lo, hi, y, x, slope, out, work);                                                             \
    }

WITHIN(above_2, 2, INFINITY)
WITHIN(below_1, -INFINITY, 1)
WITHIN(between, -1, 3)

#define KIND(name, matrix, density) { #name, matrix, density, name##_from_line, name##_to_line, name##_chain }

static const Kind kinds[] = {
    KIND(simplex, 0, BUT_LAST), KIND(sum_to_zero, 0, PLANE), KIND(ordered, 0, ALL), KIND(positive_ordered, 0, ALL), KIND(unit_vector, 0, 0),
    KIND(above_2, 0, ALL), KIND(below_1, 0, ALL), KIND(between, 0, ALL),
    KIND(cholesky_corr, 1, BELOW), KIND(correlation, 1, BELOW), KIND(cholesky_cov, 1, LOWER), KIND(covariance, 1, LOWER),
};

static long elements_of_density(const Kind *k, long n, long *at)
{
    long m = 0;
    for (long i = 0; i < (k->matrix ? n * n : n); i++) {
        const long row = i / n, column = i % n;
        if (k->density == ALL || ((k->density == BUT_LAST || k->density == PLANE) && i < n - 1) || (k->density == LOWER && column <= row) ||
            (k->density == BELOW && column < row))
            at[m++] = i;
    }
    return m;
}

static double outside(const Kind *k, long n, const double *x)
{
    double sum = 0, squares = 0, worst = 0, L[MOST];
    for (long i = 0; i < n && !k->matrix; i++) {
        sum += x[i];
        squares += x[i] * x[i];
        if (k->from == simplex_from_line && !(x[i] > 0)) return 1;
        if (k->from == positive_ordered_from_line && !(x[i] > 0)) return 1;
        if ((k->from == ordered_from_line || k->from == positive_ordered_from_line) && i && !(x[i] > x[i - 1])) return 1;
    }
    for (long i = 0; i < n && !k->matrix; i++) {
        if (i && (k->from == above_2_from_line || k->from == below_1_from_line || k->from == between_from_line) && !(x[i] > x[i - 1]))
            return 1;
        if ((k->from == above_2_from_line && !(x[i] > 2)) || (k->from == below_1_from_line && !(x[i] < 1)) ||
            (k->from == between_from_line && !(x[i] > -1 && x[i] < 3)))
            return 1;
    }
    if (k->from == simplex_from_line) return fabs(sum - 1);
    if (k->from == sum_to_zero_from_line) return fabs(sum);
    if (k->from == unit_vector_from_line) return fabs(squares - 1);
    if (!k->matrix) return 0;
    const int factor = k->from == cholesky_corr_from_line || k->from == cholesky_cov_from_line;
    for (long i = 0; i < n; i++) {
        squares = 0;
        for (long j = 0; j < n; j++) {
            squares += x[i * n + j] * x[i * n + j];
            worst = fmax(worst, factor ? (j > i ? fabs(x[i * n + j]) : 0) : fabs(x[i * n + j] - x[j * n + i]));
        }
        if (factor && !(x[i * n + i] > 0)) return 1;
        if (k->from == cholesky_corr_from_line) worst = fmax(worst, fabs(squares - 1));
        if (k->from == correlation_from_line) worst = fmax(worst, fabs(x[i * n + i] - 1));
    }
    for (long i = 0; i < n * n; i++) L[i] = x[i];
    return !factor && chol_factor(L, n) ? 1 : worst;
}

static double log_abs_determinant(long m, double (*A)[MOST])
{
    double sum = 0;
    for (long c = 0; c < m; c++) {
        long best = c;
        for (long r = c; r < m; r++)
            if (fabs(A[r][c]) > fabs(A[best][c])) best = r;
        for (long j = 0; j < m; j++) { const double t = A[c][j]; A[c][j] = A[best][j]; A[best][j] = t; }
        sum += log(fabs(A[c][c]));
        for (long r = c + 1; r < m; r++)
            for (long j = m - 1; j >= c; j--) A[r][j] -= A[r][c] / A[c][c] * A[c][j];
    }
    return sum;
}

// F(x) = sum(a x + b sin(x)), and its derivatives.
static double some_density(long size, const double *x, double *slope)
{
    double sum = 0;
    for (long i = 0; i < size; i++) {
        const double a = sin(1.0 + (double)i), b = cos(2.0 * (double)i);
        sum += a * x[i] + b * sin(x[i]);
        slope[i] = a + b * cos(x[i]);
    }
    return sum;
}

static long coordinates(const Kind *k, long n)
{
    return k->density == BUT_LAST || k->density == PLANE ? n - 1
           : k->density == BELOW                         ? n * (n - 1) / 2
           : k->density == LOWER                         ? n * (n + 1) / 2
                                                         : n;
}

static double target(const Kind *k, long n, const double *y, double *gradient)
{
    double x[MOST], slope[MOST], work[2 * MOST];
    k->from(n, y, x);
    const double f = some_density(k->matrix ? n * n : n, x, slope);
    return f + k->chain(n, y, x, slope, gradient, work);
}

static void check_at(const Kind *k, long n, double scale, long seed)
{
    char what[100];
    snprintf(what, sizeof what, "%s of %ld, y of size %g, case %ld", k->name, n, scale, seed);
    const long m = coordinates(k, n), size = k->matrix ? n * n : n;
    double y[MOST], back[MOST] = {0}, x[MOST], again[MOST], work[2 * MOST], slope[MOST], gradient[MOST], unused[MOST];
    for (long i = 0; i < m; i++) y[i] = scale * sin(12.9898 * (double)(i + 1) + 78.233 * (double)(seed + 1));
    k->from(n, y, x);
    check(what, "outside", outside(k, n, x), 1e-12);
    k->to(n, x, back, work);
    k->from(n, back, again);
    double worst = 0, largest = 1;
    for (long i = 0; i < size; i++) largest = fmax(largest, fabs(x[i]));
    for (long i = 0; i < size; i++) worst = fmax(worst, fabs(again[i] - x[i]) / largest);
    check(what, "there again", worst, 1e-10);
    for (long i = 0; i < m; i++) back[i] = y[i];
    k->to(n, x, back, work);
    check(what, "stays", memcmp(back, y, sizeof *y * (size_t)m) != 0, 0);

    some_density(size, x, slope);
    const double log_jacobian = k->chain(n, y, x, slope, gradient, work), h = 1e-5;
    static double J[MOST][MOST];
    long at[MOST];
    const long selected = elements_of_density(k, n, at);
    worst = 0;
    for (long i = 0; i < m; i++) {
        double up[MOST], down[MOST];
        const double kept = y[i];
        y[i] = kept + h;
        k->from(n, y, up);
        double difference = target(k, n, y, unused);
        y[i] = kept - h;
        k->from(n, y, down);
        difference = (difference - target(k, n, y, unused)) / (2 * h);
        y[i] = kept;
        for (long e = 0; e < selected; e++) J[e][i] = (up[at[e]] - down[at[e]]) / (2 * h);
        worst = fmax(worst, fabs(difference - gradient[i]) / (largest + fabs(gradient[i])));
    }
    check(what, "chain", worst, 1e-6);
    const double slant = k->density == PLANE ? 0.5 * log((double)n) : 0;       // of the plane to that of all elements but one
    if (k->density) check(what, "Jacobian", selected != m ? 1 : fabs(log_abs_determinant(m, J) + slant - log_jacobian), 1e-5);
}

static void check_boundary(const char *what, void (*to)(long, const double *, double *, double *),
                           void (*from)(long, const double *, double *), long n, long size, const double *x)
{
    double y[MOST] = {0}, near[MOST], work[2 * MOST], worst = 0;
    to(n, x, y, work);
    from(n, y, near);
    for (long i = 0; i < size; i++) worst = fabs(near[i] - x[i]) <= worst ? worst : fabs(near[i] - x[i]);
    check(what, "boundary", worst, 1e-4);        // sqrt(1e-10) where an element is the root of a coordinate
    double moved = 0;
    for (long i = 0; i < size; i++) moved += near[i] != x[i];
    check(what, "inside", moved == 0, 0);
}

int main(void)
{
    const long sizes[] = { 1, 2, 5 };
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++)
        for (size_t s = 0; s < 3; s++)
            for (long seed = 0; seed < 3; seed++) {
                check_at(&kinds[k], sizes[s], 0.3, seed);
                check_at(&kinds[k], sizes[s], 1.5, seed);
            }
    // Far out: numbers. exp(1000) is none.
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++)
        for (double scale = 20; scale < 2000; scale *= 3) {
            const long n = 5, m = coordinates(&kinds[k], n), size = kinds[k].matrix ? n * n : n;
            double y[MOST], x[MOST], slope[MOST], out[MOST], work[2 * MOST], bad = 0;
            if ((kinds[k].density == ALL || kinds[k].density == LOWER) && scale > 300) continue;
            for (long i = 0; i < m; i++) y[i] = scale * sin(3.7 * (double)(i + 1));
            kinds[k].from(n, y, x);
            for (long i = 0; i < size; i++) bad += !is_finite(x[i]);
            for (long i = 0; i < size; i++) slope[i] = 1;
            bad += !is_finite(kinds[k].chain(n, y, x, slope, out, work));
            for (long i = 0; i < m; i++) bad += !is_finite(out[i]);
            check(kinds[k].name, "no number", bad, 0);
        }
    // On a boundary: near it, inside.
    check_boundary("simplex", simplex_to_line, simplex_from_line, 3, 3, (double[]){ 0.25, 0, 0.75 });
    check_boundary("simplex", simplex_to_line, simplex_from_line, 3, 3, (double[]){ 0, 0, 1 });
    check_boundary("ordered", ordered_to_line, ordered_from_line, 3, 3, (double[]){ -2, -2, 5 });
    check_boundary("ordered", ordered_to_line, ordered_from_line, 3, 3, (double[]){ 0, 0, 0 });
    check_boundary("positive_ordered", positive_ordered_to_line, positive_ordered_from_line, 2, 2, (double[]){ 0, 0 });
    check_boundary("cholesky_corr", cholesky_corr_to_line, cholesky_corr_from_line, 2, 4, (double[]){ 1, 0, -1, 0 });
    check_boundary("correlation", correlation_to_line, correlation_from_line, 2, 4, (double[]){ 1, 1, 1, 1 });
    check_boundary("cholesky_cov", cholesky_cov_to_line, cholesky_cov_from_line, 2, 4, (double[]){ 2, 0, 3, 0 });
    check_boundary("covariance", covariance_to_line, covariance_from_line, 2, 4, (double[]){ 4, 6, 6, 9 });
    // Off the plane: its nearest point there.
    double y3[2], x3[3], work3[6];
    sum_to_zero_to_line(3, (double[]){ 1, 2, 6 }, y3, work3);
    sum_to_zero_from_line(3, y3, x3);
    check("sum_to_zero", "nearest", fabs(x3[0] + 2) + fabs(x3[1] + 1) + fabs(x3[2] - 3), 1e-14);
    // The length of y is none of x's business.
    double y[2] = { 3, 4 }, work[4];
    unit_vector_to_line(2, (double[]){ 0, -1 }, y, work);
    check("unit_vector", "length", fabs(y[0]) + fabs(y[1] + 5), 1e-14);
    return finish();
}
