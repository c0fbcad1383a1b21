// If this failed, predictions between two ends would have the wrong law far out, where the distribution's own draws never come.
#include "check.h"
#include "../../runtime/device/within.h"
#include <gsl/gsl_cdf.h>

// A standard normal by its distribution functions.
static double inverted(Stream *g, double lo, double hi)
{
    Inversion v = inversion_start(g, lo, hi);
    while (inversion_next(&v, -INFINITY, INFINITY)) {
        v.below = log_Phi(v.x);
        v.above = log_Phi(-v.x);
    }
    return inversion_value(&v);
}

static void normal_case(double lo, double hi)
{
    char what[80];
    snprintf(what, sizeof what, "normal on [%g, %g] by inversion", lo, hi);
    DRAW(inverted(g, lo, hi));
    check_range(what, lo, hi);
    if (lo > 0) CHECK_KS(what, -expm1(log_Phi(-x) - log_Phi(-lo)) / -expm1(log_Phi(-hi) - log_Phi(-lo)));
    else CHECK_KS(what, (Phi(x) - Phi(lo)) / (Phi(hi) - Phi(lo)));
}

// A Poisson by its probabilities.
static double weighed(Stream *g, double rate, double lo, double hi)
{
    Weights v = weights_start(lo, hi);
    while (weights_next(g, &v)) v.log_weight = (double)v.x * log(rate) - rate - lgamma((double)v.x + 1);
    return weights_value(&v);
}

static void poisson_case(double rate, double lo, double hi)
{
    char what[80];
    double mass = 0, mean = 0, square = 0, first = lgamma(lo + 1) - lo * log(rate);
    for (double k = lo; k <= hi && k < lo + 3000; k++) {
        const double p = exp(k * log(rate) - lgamma(k + 1) + first);
        mass += p;
        mean += k * p;
        square += k * k * p;
    }
    mean /= mass;
    snprintf(what, sizeof what, "poisson(%g) on [%g, %g] by weights", rate, lo, hi);
    DRAW(weighed(g, rate, lo, hi));
    check_range(what, lo, hi);
    check_moments(what, mean, square / mass - mean * mean);
}

int main(void)
{
    normal_case(-INFINITY, 1);
    normal_case(30, INFINITY);
    poisson_case(2, 0, 5);
    poisson_case(30, 0, 20);                     // from the upper end downwards
    DRAW((double)isnan(weighed(g, 2, 5, 4)));
    check_range("a poisson on an empty interval is NaN", 1, 1);
    DRAW(inverted(g, 5, 5));
    check_range("a normal on [5, 5]", 5, 5);
    check("order_of at 0", "differs", order_of(0.0) != order_of(-0.0) || of_order(order_of(-3.5)) != -3.5, 0);
    return finish();
}
