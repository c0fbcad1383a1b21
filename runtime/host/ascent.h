// ascent.h -- maxima of log densities by L-BFGS (ascent.c). Nothing here knows of models or chains.
#ifndef GM_ASCENT_H
#define GM_ASCENT_H

#include <stdbool.h>

// The log density at x[n], and its derivatives. What is not finite counts as a density of 0.
typedef double GmTarget(void *of, const double *x, double *gradient);

enum { GM_ASCENT_PAIRS = 6 };  // steps that are remembered

typedef enum {
    GM_ASCENT_ON_ITS_WAY,
    GM_ASCENT_DONE,       // what a step could still gain is less than rounding, or than `enough`
    GM_ASCENT_STUCK,      // no step along the direction gains anything
    GM_ASCENT_UNBOUNDED,  // the log density is above 1e300, or a coordinate beyond 1e100
    GM_ASCENT_NOWHERE,    // not finite where it was to begin
    GM_ASCENT_CUT,        // after as many steps as were asked for
    GM_ASCENT_LEFT,       // others are higher, and go on
    GM_ASCENT_RUNS_OFF,   // it rises on the way to infinity, ever less
} GmAscentState;

// An ascent on n coordinates. What the caller may read:
typedef struct GmAscent {
    long n;
    GmTarget *target;
    void *of;
    // gradient' H gradient below which it is done: the squared distance from the maximum in standard deviations of the normal distribution
    // there
    double enough;
    double *x, *gradient;  // where it stands
    double log_density;
    double gain;  // gradient' H gradient
    GmAscentState state;
    long steps, evaluations, level;  // level: of the last steps, those whose gain is below rounding
    int pairs;                       // that are remembered, the last one first: s = change of x, y = change of -gradient, s'y > 0
    double *s[GM_ASCENT_PAIRS], *y[GM_ASCENT_PAIRS];
    double product[GM_ASCENT_PAIRS];  // s'y
    double *last;                     // the last step, remembered or not; NULL: there is none
    double *diagonal;                 // of the estimate of the inverse Hessian that the pairs correct
    double *direction, *trial_x, *trial_gradient;
    double trial_density;
} GmAscent;

GmAscent *gm_ascent_open(long n, GmTarget *target, void *of);
bool gm_ascent_begin(GmAscent *a, const double *x);  // false: NOWHERE
bool gm_ascent_step(GmAscent *a);                    // one step to a higher place; false: there is none, a->state says why
// what L-BFGS takes for the end: Newton's steps from there, of at most so many evaluations
void gm_ascent_polish(GmAscent *a, long most);
// whether the last step leads on to infinity, the log density rising all the way: the state is then RUNS_OFF, or UNBOUNDED. trial_x is the
// place farthest out; up to 10 evaluations, mostly 1
bool gm_ascent_runs_off(GmAscent *a);
void gm_ascent_close(GmAscent *a);

#endif
