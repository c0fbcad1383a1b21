// If this failed, the transform for HMC of a vector with a normal prior would give other values than its coordinates mean, forget its
// Jacobian, or follow a wrong slope.
#include "check.h"
#include "../../runtime/device/whitened.h"
#include <string.h>

enum { N = 5 };

typedef struct Case { int precision; double L[N * N], m[N], q[N], c[N], slope[N], z[N]; } Case;

static void from(Case *k, double *r)
{
    if (k->precision) whitened_from_precision(N, k->L, k->c, k->m, k->q, r);
    else whitened_from(N, k->L, k->c, k->m, k->q, r, k->z);
}

static void to(Case *k, const double *u, double *q, double *r)
{
    if (k->precision) whitened_to_precision(N, k->L, k->c, k->m, u, q, r);
    else whitened_to(N, k->L, k->c, k->m, u, q, r, k->z);
}

// A function of u that is linear, and log |du/dq|.
static double f(Case *k)
{
    double r[N], sum = 0;
    from(k, r);
    for (int i = 0; i < N; i++) sum += k->slope[i] * (k->m[i] + r[i]) + (k->precision ? -1 : 1) * k->c[i] * log(k->L[i * N + i]);
    return sum;
}

static double difference(Case *k, double *at)
{
    const double x = *at, h = 1e-6;
    *at = x + h;
    const double above = f(k);
    *at = x - h;
    const double below = f(k);
    *at = x;
    return (above - below) / (2 * h);
}

// shares: c for all, or below 0 for each its own
static void check_case(int precision, double c)
{
    char what[100];
    snprintf(what, sizeof what, "by %s, share %g", precision ? "precision" : "covariance", c);
    Case k = {.precision = precision};
    for (int i = 0; i < N; i++) {
        k.m[i] = sin(3 + i);
        k.q[i] = cos(1 + 2 * i);
        k.slope[i] = 1.3 * cos(4 + 5 * i);
        k.c[i] = c >= 0 ? c : (3 * i % 5) / 4.0;
        for (int j = 0; j < N; j++) k.L[i * N + j] = j < i ? sin(1.0 + i + 7 * j) : j == i ? 0.4 + 0.3 * i : NAN;
    }
    double r[N], u[N], q[N], again[N], noise[N], by[N], by_mean[N], left[N], right[N], pivot[N];
    from(&k, r);
    for (int i = 0; i < N; i++) {
        u[i] = k.m[i] + r[i];
        q[i] = 0.1 * i;
        by[i] = k.slope[i];
        double standard = 0;
        if (precision)
            for (int j = i; j < N; j++) standard += k.L[j * N + i] * r[j];
        else {
            for (int j = 0; j < i; j++) standard -= k.L[i * N + j] * noise[j];
            standard = (r[i] + standard) / k.L[i * N + i];
        }
        noise[i] = standard;
        if (k.c[i] == 1) check(what, "white noise", fabs(noise[i] - k.q[i]), 1e-13);
        if (k.c[i] == 0) check(what, "as it is", fabs(u[i] - k.q[i]), 1e-15);
    }
    to(&k, u, q, again);
    for (int i = 0; i < N; i++) check(what, "inverse", fabs(q[i] - k.q[i]), 1e-12);
    for (int i = 0; i < N; i++) check(what, "difference from the mean", fabs(again[i] - r[i]), 1e-14);
    memcpy(q, k.q, sizeof q);
    to(&k, u, q, again);
    check(what, "stays", memcmp(q, k.q, sizeof q) != 0, 0);
    if (precision) whitened_chain_precision(N, k.L, k.c, r, by, by_mean, left, right, pivot);
    else whitened_chain(N, k.L, k.c, memcpy(right, k.z, sizeof right), by, by_mean, left, pivot);
    double determinant = 1, moved[N], sum = 0;           // of a triangle
    for (int i = 0; i < N; i++) {
        k.q[i] += 1;
        from(&k, moved);
        k.q[i] -= 1;
        determinant *= moved[i] - r[i];
        sum += (precision ? -1 : 1) * k.c[i] * log(k.L[i * N + i]);
    }
    check(what, "log |du/dq|", fabs(log(determinant) - sum), 1e-13);
    for (int i = 0; i < N; i++) check(what, "by coordinate", fabs(by[i] - difference(&k, &k.q[i])), 2e-8);
    for (int i = 0; i < N; i++) check(what, "by mean", fabs(by_mean[i] - difference(&k, &k.m[i])), 2e-8);
    for (int i = 0; i < N; i++)
        for (int j = 0; j <= i; j++)
            check(what, "by factor", fabs((i == j ? pivot[i] : left[i] * right[j]) - difference(&k, &k.L[i * N + j])), 2e-7);
}

int main(void)
{
    for (int precision = 0; precision < 2; precision++)
        for (int i = -1; i <= 4; i++) check_case(precision, 0.25 * i);
    return finish();
}
