// If this failed, the transform of a scalar for HMC would leave an interval, forget its Jacobian, or follow a wrong slope near an end.
#include "check.h"
#include "../../runtime/device/line.h"

// from_line and to_line are inverse; slope, its log and the log's slope are derivatives, by central differences (error h^2, rounding eps/h:
// 1e-8 in all).
static void check_at(double y, double lo, double hi)
{
    char what[100];
    snprintf(what, sizeof what, "y = %g in (%g, %g)", y, lo, hi);
    const double h = 1e-5, x = from_line(y, lo, hi), slope = line_slope(y, lo, hi);
    check(what, "inside", !(x >= lo && x <= hi), 0);
    if (fabs(y) < 15) check(what, "inverse", fabs(to_line(x, lo, hi) - y), 1e-7 * exp(fabs(y) / 2));
    check(what, "slope", fabs((from_line(y + h, lo, hi) - from_line(y - h, lo, hi)) / (2 * h) - slope), 1e-8 * (1 + fabs(slope) + fabs(x)));
    check(what, "log slope", fabs(line_log_slope(y, lo, hi) - log(fabs(slope))), 1e-12 * (1 + fabs(y)));
    check(what, "bend", fabs((line_log_slope(y + h, lo, hi) - line_log_slope(y - h, lo, hi)) / (2 * h) - line_bend(y, lo, hi)),
          1e-9 * (1 + fabs(y)));
}

// What an end changes: f = slope * x + log |dT/dy| by differences, y staying where it is.
static void check_ends(double y, double lo, double hi)
{
    char what[100];
    snprintf(what, sizeof what, "ends at y = %g in (%g, %g)", y, lo, hi);
    const double h = 1e-6, slope = -1.7;
#define F(lo, hi) (slope * from_line(y, lo, hi) + line_log_slope(y, lo, hi))
    if (lo > -INFINITY)
        check(what, "lower", fabs((F(lo + h, hi) - F(lo - h, hi)) / (2 * h) - line_by_lower(y, lo, hi, slope)),
              1e-7 * (1 + fabs(y)) + 1e-9 * fabs(from_line(y, lo, hi)));
    if (hi < INFINITY)
        check(what, "upper", fabs((F(lo, hi + h) - F(lo, hi - h)) / (2 * h) - line_by_upper(y, lo, hi, slope)),
              1e-7 * (1 + fabs(y)) + 1e-9 * fabs(from_line(y, lo, hi)));
#undef F
}

// Effects: the two maps are inverse; derivatives of slope * u + log |du/dq| by coordinate, centre and spread, by differences.
static void check_effect(double q, double c, double m, double s)
{
    char what[100];
    snprintf(what, sizeof what, "q = %g, share %g, centre %g, spread %g", q, c, m, s);
    const double h = 1e-6 * s, slope = -1.7, scale = standard_scale(c, s), u = from_standard(q, c, m, scale),
                 size = 1 + fabs(u) + fabs(m) + 1 / s;
#define F(q, m, s) (slope * from_standard(q, c, m, standard_scale(c, s)) + c * log(s))
    check(what, "inverse", fabs(to_standard(u, c, m, scale) - q), 1e-13 * (1 + fabs(q)) * (1 + fabs(m) / scale));
    check(what, "by coordinate", fabs((F(q + h, m, s) - F(q - h, m, s)) / (2 * h) - scale * slope), 1e-8 * size);
    check(what, "by centre", fabs((F(q, m + h, s) - F(q, m - h, s)) / (2 * h) - standard_by_centre(c, scale, slope)), 1e-8 * size);
    check(what, "by spread", fabs((F(q, m, s + h) - F(q, m, s - h)) / (2 * h) - standard_by_spread(u, c, m, s, slope)),
          1e-8 * size * (1 + fabs(q)) / s);
#undef F
    double by_u = slope, by_m, by_s;
    const double log_slope = standard_chain(c, m, s, scale, u, &by_u, &by_m, &by_s);
    check(what, "chain rule", fabs(by_u - scale * slope) + fabs(by_m - standard_by_centre(c, scale, slope)), 0);
    check(what, "and by spread", fabs(by_s - standard_by_spread(u, c, m, s, slope)) + fabs(log_slope - c * log(s)), 0);
    check(what, "kept", fabs(kept_coordinate(q, u, u, 7) - q) + fabs(kept_coordinate(q, u, u + 1, 7) - 7), 0);
    if (c == 0) check(what, "as written", fabs(u - q), 0);
    if (c == 1) check(what, "standardised", fabs((u - m) / s - q), 1e-14 * (1 + fabs(q)) * (1 + fabs(m) / s));
}

int main(void)
{
    const double y[] = { -300, -40, -8, -1, -0.01, 0, 0.3, 2, 12, 35, 300 };
    const double end[][2] = {{-INFINITY, INFINITY}, {0, INFINITY}, {-2, INFINITY}, {-INFINITY, 3}, {0, 1}, {-5, 7}, {1e-3, 2e-3}};
    for (size_t i = 0; i < sizeof y / sizeof *y; i++)
        for (size_t k = 0; k < sizeof end / sizeof *end; k++) check_at(y[i], end[k][0], end[k][1]);
    for (size_t i = 2; i < 9; i++)
        for (size_t k = 0; k < 6; k++) check_ends(y[i], end[k][0], end[k][1]);
    const double share[] = { 0, 0.2, 0.7, 1 }, spread[] = { 0.01, 0.5, 1, 30 };
    for (size_t i = 0; i < 4; i++)
        for (size_t k = 0; k < 4; k++)
            for (double q = -4; q < 5; q += 2.5)
                for (double m = -3; m < 4; m += 3) check_effect(q, share[i], m, spread[k]);
    return finish();
}
