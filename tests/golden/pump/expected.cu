// model.gm, compiled by gmc.
//
// One sweep draws, in this order:
//   y[i] ~ poisson(t[i]*theta[i]), if values are missing     model.gm:7
//   b ~ gamma(shape, rate)     model.gm:10
//   theta[k] ~ gamma(shape, rate)     model.gm:11
//
// In kernels d is the data, s the state of one chain, at the place in the run that keys the random numbers.
// Subscripts count from 1 in comments, as in the model, and from 0 in the code.

#include "gm.h"

typedef struct Data {
    long N;
    real *t;      // t[N]
    int *y;      // y[N]
} Data;

typedef struct State {          // of one chain
    int *y;      // y[N]
    wide *b;      // b
    wide *theta;      // theta[N]
    wide *log_lik_y;      // log_lik_y[N]
    int *y_rep;      // y_rep[N]
} State;

enum {                           // streams of random numbers
    VAR_NONE = 0,
    VAR_y = 1,
    VAR_b = 2,
    VAR_theta = 3,
    VAR_log_lik_y = 4,
    VAR_y_rep = 5,
};

#include "kernels.h"

// Data must lie in the support of their distributions.
KERNEL_TEAM(check_data) {
    ALONG (i, d->N) {
        if (d->y[i] != -2147483648.0 && d->y[i] < 0) FAULT("y", i, "the value lies outside the support of poisson, 0 and up (model.gm:14)");
    }
}

// y[i] | rest ~ poisson(t[i]*theta[i])     if values are missing     model.gm:7
KERNEL(impute_y) {
    EACH_MISSING (e, 2) {
        const long k = e;
        Stream g = stream(at, VAR_y, e);
        const wide x = poisson(&g, d->t[k] * s->theta[k]);
        if (!(x >= 0 && x <= 2147483647)) FAULT("y", e, "its draw is not a count of 32 bits");
        NO_CLAIM();
        s->y[k] = x;
    }
}

// b | rest ~ gamma(shape, rate)     model.gm:10
//   shape = 1/10 + 9/5*N, rate = 1 + sum(i in 1:N, theta[i])
KERNEL_TEAM(draw_b) {
    const wide a_b = 1.8 * d->N - 0.9;
    wide b_b = -1;
    SUM_ALONG (i, d->N, &b_b) {
        b_b -= s->theta[i];
    }
    Stream g = stream(at, VAR_b, 0);
    const wide x = power_gamma_natural(&g, 1, a_b, b_b);
    VERIFY(x, "b", 0);
    if (CHECKING) { const wide old = *s->b; CLAIM(a_b * (log(x) - log(old)), b_b * (x - old)); }
    STORE(*s->b, x);
}

// theta[k] | rest ~ gamma(shape, rate)     in parallel     model.gm:11
//   shape = 9/5 + y[k], rate = b + t[k]
KERNEL(draw_theta) {
    EACH (k, d->N) {
        const wide a_theta = s->y[k] + 0.8;
        const wide b_theta = -*s->b - d->t[k];
        Stream g = stream(at, VAR_theta, k);
        const wide x = power_gamma_natural(&g, 1, a_theta, b_theta);
        VERIFY(x, "theta", k);
        if (CHECKING) { const wide old = s->theta[k]; CLAIM(a_theta * (log(x) - log(old)), b_theta * (x - old)); }
        s->theta[k] = x;
    }
}

// The log-likelihood, point by point, in runs that ask for it.
KERNEL_ON_REQUEST(log_likelihood) {
    ALONG (i, d->N) s->log_lik_y[i] = times_log(s->y[i], log((wide)d->t[i]) + log(s->theta[i])) - d->t[i] * s->theta[i] - lgamma_positive((wide)((long)s->y[i] + 1));
}

// Replicates of what is observed, in runs that ask for them.
KERNEL_ON_REQUEST(replicate) {
    ALONG (i, d->N) {
        {
            Stream g = stream(at, VAR_y_rep, i);
            const wide x = poisson(&g, d->t[i] * s->theta[i]);
            if (!(x >= 0)) FAULT("y_rep", i, "it cannot be drawn from poisson: an argument is out of range (model.gm:14)");
            if (!(x >= -2147483647 && x <= 2147483647)) FAULT("y_rep", i, "its draw is not an integer of 32 bits");
            s->y_rep[i] = x;
        }
    }
}

// The log joint density of data, variables and auxiliaries.
KERNEL_TEAM(log_joint) {
    wide lp = 0;
    // gamma
    lp += -*s->b - 0.9 * log(*s->b) - 2.2527126517342055;
    // gamma
    const wide c1 = log(*s->b);
    SUM_ALONG (i, d->N, &lp) {
        lp += 1.8 * c1 + 0.8 * log(s->theta[i]) - *s->b * s->theta[i] + 0.07108387291437215;
    }
    // poisson
    SUM_ALONG (i, d->N, &lp) {
        lp += times_log(s->y[i], log((wide)d->t[i]) + log(s->theta[i])) - d->t[i] * s->theta[i] - lgamma_positive((wide)((long)s->y[i] + 1));
    }
    RESULT(lp);
}

#ifndef __CUDACC_RTC__       // what follows runs on the host

// ---- the sweep ----

static void step_1(GmRun *run)            // missing y
{
    LAUNCH_MISSING(impute_y, run, 2);
}

static void step_2(GmRun *run)            // b
{
    LAUNCH_TEAM(draw_b, run, d->N);
}

static void step_3(GmRun *run)            // theta
{
    LAUNCH(draw_theta, run, d->N);
}

// What each step draws, and what it launches.
static const GmStep steps[] = {
    STEP("missing y", step_1),
    STEP("b", step_2),
    STEP("theta", step_3),
};

static void sweep(GmRun *run)
{
    if (ANY_MISSING(run)) take_steps(run, steps, 1);      // missing y
    take_steps(run, &steps[1], 2);
}

static void setup(GmRun *run)
{
    LAUNCH_SHARED(check_data, run, d->N);
}

static void derive(GmRun *run)
{
    if (run->requests & GM_LOG_LIK) {
        LAUNCH_TEAM(log_likelihood, run, d->N);
    }
    if (run->requests & GM_REPLICATES) {
        LAUNCH_TEAM(replicate, run, d->N);
    }
}

GM_FOR_DRAWS(derive)

static void joint(GmRun *run)
{
    LAUNCH_TEAM(log_joint, run, d->N);
}

// ---- what the runtime asks ----

static const GmField data_fields[] = {
    {.name = "N", .type = GM_INT, .role = GM_DATA, .offset = offsetof(Data, N), BOUNDED(0, INFINITY), .where = "model.gm:5",
     .declared = "int<lower=0> N"},
    {.name = "t", .type = GM_REAL, .role = GM_DATA, .rank = 1, .offset = offsetof(Data, t), .finite = 1, BOUNDED(0, INFINITY), .where = "model.gm:6",
     .declared = "real<lower=0> t[N]", .extent_of = {1}},
    {.name = "y", .type = GM_INT, .role = GM_DATA, .rank = 1, .offset = offsetof(Data, y), .may_miss = 1, .imputed_field = 1, BOUNDED(0, INFINITY), .where = "model.gm:7",
     .declared = "int<lower=0> y[N]", .extent_of = {1}},
};

static const GmField state_fields[] = {
    {.name = "y", .type = GM_INT, .role = GM_IMPUTED, .rank = 1, .offset = offsetof(State, y), BOUNDED(0, INFINITY), .where = "model.gm:7"},
    {.name = "b", .type = GM_WIDE, .role = GM_PARAMETER, .offset = offsetof(State, b), BOUNDED(0, INFINITY), .where = "model.gm:10"},
    {.name = "theta", .type = GM_WIDE, .role = GM_PARAMETER, .rank = 1, .offset = offsetof(State, theta), BOUNDED(0, INFINITY), .where = "model.gm:11"},
    {.name = "log_lik_y", .type = GM_WIDE, .role = GM_PREDICTED, .rank = 1, .offset = offsetof(State, log_lik_y), .on_request = GM_LOG_LIK, .where = "model.gm:14"},
    {.name = "y_rep", .type = GM_INT, .role = GM_PREDICTED, .rank = 1, .offset = offsetof(State, y_rep), .on_request = GM_REPLICATES, .where = "model.gm:14"},
};

static void data_shape(int field, const void *data, GmShape *shape)
{
    const Data *const d = (const Data *)data;
    (void)d;
    switch (field) {
    case 1: case 2:
        shape->dim[0] = d->N;
        break;
    }
}

static void state_shape(int field, const void *data, GmShape *shape)
{
    const Data *const d = (const Data *)data;
    (void)d;
    switch (field) {
    case 0: case 2: case 3: case 4:
        shape->dim[0] = d->N;
        break;
    }
}

// What is observed: its log-likelihood and replicates, for runs that ask for them.
static const GmObserved observed[] = {
    {.where = "model.gm:14", .name = "y", .data = 3, .log_lik = 4, .replicate = 5},
    {0},
};

GM_MODEL("pump", "model.gm", 3, 5, 3,
         .derive = gm_derive, .derive_chain = derive, .data_shape = data_shape, .state_shape = state_shape, .observed = observed)

#endif
