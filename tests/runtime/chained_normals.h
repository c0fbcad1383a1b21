// chained_normals.h -- the law that tests of HMC sample: x_0 ~ normal(0, 1), x_i ~ normal(RHO x_(i-1), sqrt(1 - RHO^2)). Every x_i is
// standard normal.
#ifndef CHAINED_NORMALS_H
#define CHAINED_NORMALS_H

#include "../../runtime/device/base.h"

#define RHO 0.8

// The log density of n of them up to a constant; its gradient in g.
DEVICE double chained(long n, const double *x, double *g)
{
    const double q = 1 / (1 - RHO * RHO);
    double lp = -0.5 * x[0] * x[0];
    g[0] = -x[0];
    for (long i = 1; i < n; i++) {
        const double e = x[i] - RHO * x[i - 1];
        lp -= 0.5 * q * e * e;
        g[i] = -q * e;
        g[i - 1] += q * RHO * e;
    }
    return lp;
}

#endif
