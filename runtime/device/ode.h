// ode.h -- differential equations, as emitted programs put them to the host's solvers (host/ode.c). On the CPU alone.
//
//   problem    y' = f(t, y; p), y(from) = start[n];  the solution at time[0] <= time[1] <= ...
//   gives      z[i * n + k], component k at time i;  slopes[(i * n + k) * columns + c], its derivative by input c: first the parts of p by
//              which f is differentiated, then, if they are asked for, the n components of the start
//   method     ode_rk45: explicit Runge-Kutta of order 5(4) (Dormand and Prince 1980) with continuous output, after DOPRI5 of Hairer,
//              Norsett and Wanner 1993, section II.5 ode_bdf: backward differentiation, by CVODES of SUNDIALS (Hindmarsh and others 2005),
//              found while the program runs
//   slopes     the sensitivity equations S' = df/dy S + df/dp are solved with the equation itself, in the same steps
//   accuracy   local errors of each component within absolute + relative * its size; of derivatives about as well
//   tests      tests/host/ode.c
#ifndef GM_ODE_H
#define GM_ODE_H

enum { GM_ODE_INDICES = 12 };           // loops around a statement
enum { GM_ODE_VALUES, GM_ODE_SLOPES };  // what a step asks for: the solution; its derivatives, too

typedef struct Ode {
    const void *data, *state;  // of the program
    void (*right_side)(const struct Ode *, double t, const double *y, double *slope);
    // adds to by_state[i * n + j] and by_input[i * by + c]
    void (*slopes)(const struct Ode *, double t, const double *y, double *by_state, double *by_input);
    long n, times, ninput;  // of the state, of the solution; numbers in `input`
    long by, columns;       // inputs by which f is differentiated; with the components of the start, if they count
    int stiff;
    double from, relative, absolute;
    double *input, *start, *time;  // gm_ode_begin makes room
    long at[GM_ODE_INDICES];       // indices of the loops, from 0
} Ode;

void gm_ode_begin(Ode *ode, int checking);  // checking: small tolerances, so that differences of solutions approximate derivatives
void gm_ode_end(Ode *ode);

// NULL: solved, or not to be solved with these inputs: then z and slopes are no numbers. Else why it cannot be solved for any. slopes may
// be NULL.
const char *gm_ode_solve(const Ode *ode, double *z, double *slopes);

// Why an equation could not be solved last; NULL: all were.
const char *gm_ode_failure(void);

#endif
