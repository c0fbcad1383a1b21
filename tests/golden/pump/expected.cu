// model.gm, compiled by gmc.
//
// One sweep updates, in this order, each given all else:
//   y[i]      ~ poisson(t[i]*theta[i])  impute_y      line 7, if values are missing
//   b         ~ gamma(shape, rate)      draw_b        line 10 *
//   theta[i]  ~ gamma(shape, rate)      draw_theta    line 11 *
//   scale_b   ~ gig(order, psi, chi)    draw_scale_b  line 10, a group move *
// In place of the updates marked *, where a trial in a warm-up of 300 sweeps or more prefers NUTS (Hoffman and Gelman 2014). They are then
// made after every k-th transition, as they lead out of narrow parts that hold trajectories: so seldom that they have a tenth of the
// work, or after each if trajectories diverge.
//   (b, theta)  drawn jointly by Hamiltonian Monte Carlo  density_b_theta  line 10
//
// Above each kernel is what it computes, then what words mean that are neither C nor of the model, where they first stand. Those in
// capitals are macros of kernels.h, which make one text a program for a CPU and for a GPU. Throughout:
//   `wide` is double. `real` is double; on a GPU it is float unless a run has --precision double. KERNEL_ macros declare `d`, the data,
//   `s`, the state of one chain, and `at`: seed, chain and sweep, of which its random numbers are functions. LAUNCH_ macros and their like
//   declare `d`. Subscripts count from 1 in comments, as in the model, and from 0 in the code. *s->x is a number, s->x[k] an element.
//   KERNEL_TEAM: for each chain a team of threads, its lanes, all of which go through the body; local variables are each lane's own.
//   ALONG (j, n): j from 0 to n - 1, shared out among lanes, which then wait for each other, as one may read next what another wrote.
//   LANES (j, n): as ALONG, but nobody waits: each lane has the same j in every loop of n. SUM_ALONG (j, n, &a): as ALONG; then a has
//   grown, in every lane, by the sum of what all lanes add to it. SUM_OF (a, j, n) += x: declares a, the sum of x over j, the same in every
//   lane.
#define GM_HMC               // on a GPU kernels.h has Hamiltonian Monte Carlo
#include "gm.h"

// ---- part 1: the model ----

typedef struct Data {  // beside arrays: their extents
    long N;
    real *t;                                 // N
    int *y;                                  // N
} Data;
enum { DATA_N = 1, DATA_t, DATA_y };  // fields of Data

typedef struct State {  // of one chain; sizes of work arrays are in the tables
    int *y;                                  // responses, with missing values as they are drawn, N
    wide *b;                                 // unknowns
    wide *theta;                             // unknowns, N
    wide *scale_b;                           // of group moves
    wide *log_lik_y;                         // for the draws, N
    int *y_rep;                              // for the draws, N
    wide *lprior_b, *lprior_theta;           // terms of the log prior
    wide *lprior_y;                          // of missing values: the host adds up their log_lik_, and writes those of observed ones only
    wide *sum_y;                             // sums of data
    wide *position, *gradient, *log_density, *nuts, *moves_b; // of NUTS
} State;
enum { VAR_NONE, VAR_y, VAR_b, VAR_theta, VAR_scale_b, VAR_y_rep = 6 };  // random streams, by the place in State

#include "kernels.h"

// ---- part 2: the Gibbs updates ----

// y[i] | rest ~ poisson(t[i]*theta[i])     if values are missing     model.gm:7
//   stream(at, VAR_x, k): the random numbers of x[k], by which normal_mean_sd(&g, ...) and its like draw.
KERNEL(impute_y) {  // KERNEL: a thread for each element and chain
    EACH_MISSING (i, DATA_y) {  // EACH_MISSING (j, DATA_x): places j of x, row by row, without a value
        Stream g = stream(at, VAR_y, i);
        const wide x = poisson(&g, d->t[i] * s->theta[i]);
        if (!(x >= 0 && x <= 2147483647)) FAULT("y", i, "its draw is not a count of 32 bits");  // FAULT(x, k, message) ends the run
        NO_RATIO();  // NO_RATIO: none is checked
        s->y[i] = INTEGER_DRAWN(x);
    }
}

// b | rest ~ gamma(shape, rate)     model.gm:10
//   shape = 1/10 + 9/5*N, rate = 1 + sum(i in 1:N, theta[i])
//   POWER_GAMMA(a, shape, rate): x[k]^a ~ gamma(shape, rate).
KERNEL_TEAM(draw_b) {
    const wide shape = 1.8 * d->N + 0.1;
    wide rate = 1;
    SUM_ALONG (i, d->N, &rate) rate += s->theta[i];
    TEAM_DRAW(b, 0, POWER_GAMMA(1, shape, rate));  // TEAM_DRAW(x, k, LAW): one lane draws and stores x[k]
}

// theta[i] | rest ~ gamma(shape, rate)     in parallel     model.gm:11
//   shape = 9/5 + y[i], rate = b + t[i]
KERNEL(draw_theta) {
    EACH (i, d->N) {  // EACH (j, n): j from 0 to n - 1, shared out among threads
        const wide shape = s->y[i] + 1.8, rate = *s->b + d->t[i];
        DRAW(theta, i, POWER_GAMMA(1, shape, rate));  // DRAW(x, k, LAW) draws and stores x[k]
    }
}

// scale_b | rest ~ gig(order, psi, chi)     model.gm:10
//   order = sum(i in 1:N, y[i]) - 1/10, psi = 2*sum(i in 1:N, t[i]*theta[i]), chi = 2*b, then b = b/scale_b,  theta[i] = theta[i]*scale_b
//   gig: its density is proportional to x^(order - 1)*exp(-(psi*x + chi/x)/2)
//   powers of c = scale_b beside exponentials: c^(sum(i in 1:N, y[i]) + 0.9 - N) in the moved densities, c^(N - 1) the Jacobian
//       (b c^-1, theta c^N), 1/c from dc/c (the Haar measure, invariant to rescaling): c^(sum(i in 1:N, y[i]) - 1.1) is left
KERNEL_TEAM(draw_scale_b) {
    const wide order = *s->sum_y - 0.1;
    wide psi = 0;
    const wide chi = 2 * *s->b;
    SUM_ALONG (i, d->N, &psi) psi += 2 * d->t[i] * s->theta[i];
    TEAM_DRAW(scale_b, 0, POWER_GIG(1, order, psi, chi));  // POWER_GIG(a, order, psi, chi): x[k]^a ~ gig(order, psi, chi)
}

// A group move (Liu and Sabatti 2000) by scale_b: its law, moved joint density * Jacobian * Haar measure, keeps the posterior
//   times_log(n, l) is n*l, and 0 if n or l is, since 0*log(0) counts as 0. CHECKING: in sweeps, by --check or after the draws, that
//   compare updates with the joint density. RATIO(a, ...) adds a + ... to a sum of the update, to which draws add log q(new) - log q(old)
//   of their law q; --check compares it with the rise of the log joint density. A group move begins at the identity, by `before_` kernels
//   of the tables; then a + ... is -log(Jacobian * measure).
KERNEL_TEAM(move_b) {
    ONE_LANE *s->b = *s->b / *s->scale_b;  // ONE_LANE: by one, while the others wait
    ALONG (i, d->N) s->theta[i] = *s->scale_b * s->theta[i];
    ONE_LANE if (CHECKING) RATIO(2 * log(*s->scale_b), -times_log(d->N, log(*s->scale_b)));
}

// ---- part 3: Hamiltonian Monte Carlo: log density and gradient ----

// Unconstrained coordinates q of (b, theta): (log(b), log(theta[i])). kept_coordinate(q, v, x, fresh) is q where x still is v,
//     the value at q, so that no rounding moves it, else (mostly for float x) fresh
//   Of State: position, its coordinates; gradient, the derivatives of lp, the log density, by them; log_density, lp; nuts, its memory;
//   moves_, whose end is its name in the draws, what they report: acceptance, step size, depth, leapfrog steps, divergence, energy.
KERNEL_TEAM(enter_b_theta) {
    ONE_LANE s->position[0] = kept_coordinate(s->position[0], exp(s->position[0]), *s->b, log(*s->b));
    LANES (i, d->N) s->position[i + 1] = kept_coordinate(s->position[i + 1], exp(s->position[i + 1]), s->theta[i], log(s->theta[i]));
}

// b, theta at these coordinates
KERNEL_TEAM(transform_b_theta) {
    ONE_LANE *s->b = exp(s->position[0]);
    LANES (i, d->N) s->theta[i] = exp(s->position[i + 1]);
}

// (b, theta): drawn jointly by Hamiltonian Monte Carlo     model.gm:10
//   taken if in a trial what mixes worst has, at equal cost, 1.3 times its effective draws by other updates, 1.6 to 5 times if some diverge
//   its log density, of which the code leaves out constants; that of its coordinates has the log Jacobian besides
//   log density += -lgamma(1/10) - b - 9/10*log(b)
//   log density += 9/5*log(b) + 4/5*log(theta[i]) - lgamma(9/5) - b*theta[i]   over i in 1:N
//   log density += y[i]*(log(t[i]) + log(theta[i])) - t[i]*theta[i] - lgamma(1 + y[i])   over i in 1:N
KERNEL_TEAM(density_b_theta) {
    wide lp = 0, slope_b = 0;  // slope_x is the derivative of lp by x
    ALONG (e, d->N + 1) s->gradient[e] = 0;
    // b ~ gamma(1/10, 1)
    lp += -*s->b - 0.9 * s->position[0];
    slope_b += -0.9 / *s->b - 1;
    // theta[i] ~ gamma(9/5, b)
    const wide current_log_b = s->position[0], current_b = *s->b;  // current_x is x
    const wide inverse_b = 1 / current_b;
    SUM_ALONG (i, d->N, &lp, &slope_b) {
        lp += 1.8 * current_log_b - current_b * s->theta[i] + 0.8 * s->position[i + 1];
        s->gradient[1 + i] += 0.8 / s->theta[i] - current_b;
        slope_b += 1.8 * inverse_b - s->theta[i];
    }
    // y[i] ~ poisson(t[i]*theta[i])
    SUM_ALONG (i, d->N, &lp) {
        lp += times_log(s->y[i], log((wide)d->t[i]) + s->position[i + 1]) - d->t[i] * s->theta[i];
        s->gradient[1 + i] += ((s->y[i] == 0) ? 0 : s->y[i] / s->theta[i]) - d->t[i];
    }
    ONE_LANE {
        s->log_density[BY_UNKNOWNS] = lp;  // BY_COORDINATES, BY_UNKNOWNS: lp with the log Jacobian, for NUTS, and without, for --check
        s->gradient[0] += slope_b;
    }
    // from unknowns x to coordinates q: d lp/dq = d lp/dx * dx/dq + d log|dx/dq|/dq; lp gains log|dx/dq|
    SUM_ALONG (i, d->N, &lp) {
        lp += s->position[i + 1];
        s->gradient[i + 1] = s->theta[i] * s->gradient[i + 1] + 1;
    }
    lp += current_log_b;
    ONE_LANE s->gradient[0] = current_b * s->gradient[0] + 1;
    STORE(s->log_density[BY_COORDINATES], lp);  // STORE(a, x): one lane sets a to x
}

// ---- part 4: the log joint density, and what is computed for the draws ----

// The pointwise log-likelihood, in runs that request it.
KERNEL_ON_REQUEST(log_likelihood) {  // KERNEL_ON_REQUEST: as KERNEL_TEAM, for runs that request it
    LANES (i, d->N) s->log_lik_y[i] = times_log(s->y[i], log((wide)d->t[i]) + log(s->theta[i])) - d->t[i] * s->theta[i]
            - lgamma_positive((wide)((long)s->y[i] + 1));
}

// Replicates of what is observed, in runs that request them.
KERNEL_ON_REQUEST(replicate) {
    LANES (i, d->N) {
        Stream g = stream(at, VAR_y_rep, i);
        const wide x = poisson(&g, d->t[i] * s->theta[i]);
        if (!(x >= 0)) FAULT("y_rep", i, "it cannot be drawn from poisson: an argument is out of range (model.gm:14)");
        if (!(x >= -2147483647 && x <= 2147483647)) FAULT("y_rep", i, "its draw is not an integer of 32 bits");
        s->y_rep[i] = INTEGER_DRAWN(x);
    }
}

// The log joint density of data, variables and auxiliaries.
KERNEL_TEAM(log_joint) {
    wide lp = 0;
    // b ~ gamma(1/10, 1)
    lp += -*s->b - 0.9 * log(*s->b) - 2.2527126517342055 /* lgamma(1/10) */;
    // theta[i] ~ gamma(9/5, b)
    const wide log_b = log(*s->b);
    SUM_ALONG (i, d->N, &lp) lp += 1.8 * log_b + 0.8 * log(s->theta[i]) - *s->b * s->theta[i] + 0.07108387291437215 /* -lgamma(9/5) */;
    // y[i] ~ poisson(t[i]*theta[i])
    SUM_ALONG (i, d->N, &lp) lp += times_log(s->y[i], log((wide)d->t[i]) + log(s->theta[i])) - d->t[i] * s->theta[i]
            - lgamma_positive((wide)((long)s->y[i] + 1));
    RESULT(lp);  // RESULT(x): x is what the kernel gives back to the host
}

// ---- part 5: checks and sums of data, launches, tables for the runtime ----

// Data must lie in the support of their distributions.
KERNEL_TEAM(check_data) {
    LANES (i, d->N) {
        if (!IS_MISSING(d->y[i]) && d->y[i] < 0) FAULT("y", i, "the value lies outside the support of poisson, 0 and up (model.gm:14)");
    }
}

// Sums of a response: computed once, or after each imputation if values are missing.
KERNEL_TEAM(sums_of_responses) {
    // sum_y = sum of y[i] over i; serves the conditional of scale_b
    ONE_LANE *s->sum_y = 0;
    SUM_OF (total_y, i, d->N) += s->y[i];
    ONE_LANE *s->sum_y += total_y;
}

// Before the move, in runs by --check: it starts from the identity
KERNEL_TEAM(before_scale_b) {
    ONE_LANE *s->scale_b = 1;
}

// The log Jacobian and its gradient: what the log density of the coordinates has besides that of b, theta
KERNEL_TEAM(jacobian_b_theta) {
    wide lp = 0;
    ALONG (e, d->N + 1) s->gradient[e] = 0;
    // from unknowns x to coordinates q: d lp/dq = d lp/dx * dx/dq + d log|dx/dq|/dq; lp gains log|dx/dq|
    SUM_ALONG (i, d->N, &lp) {
        lp += s->position[i + 1];
        s->gradient[i + 1] = s->theta[i] * s->gradient[i + 1] + 1;
    }
    lp += s->position[0];
    ONE_LANE s->gradient[0] = *s->b * s->gradient[0] + 1;
    STORE(s->log_density[BY_COORDINATES], lp);
}

// The log prior, one term for each unknown, in runs that request it.
KERNEL_PRIOR(log_prior) {  // KERNEL_PRIOR: as KERNEL_TEAM, for the log prior
    ONE_LANE *s->lprior_b = -*s->b - 0.9 * log(*s->b) - 2.2527126517342055 /* lgamma(1/10) */;
    wide total_lprior_theta = 0;
    const wide log_b = log(*s->b);
    SUM_ALONG (i, d->N, &total_lprior_theta) total_lprior_theta += 1.8 * log_b + 0.8 * log(s->theta[i]) - *s->b * s->theta[i]
            + 0.07108387291437215 /* -lgamma(9/5) */;
    ONE_LANE *s->lprior_theta = total_lprior_theta;
}

#ifndef __CUDACC_RTC__       // the host's: NVRTC, CUDA's compiler of kernels, skips it

// b from the law of its own statement
KERNEL_FORWARD(forward_b) {  // KERNEL_FORWARD: a thread for each chain, on the host, for draws without data
    UNLESS_KEPT(VAR_b, 0) {  // UNLESS_KEPT(VAR_x, k): unless the run keeps x[k] as it is
        Stream g = stream(at, VAR_b, 0);
        const wide x = gamma_shape_rate(&g, 0.1, 1);
        VERIFY(x, "b", 0);  // VERIFY(x, ...) ends the run with a message if x is not finite
        *s->b = x;
    }
}

// theta from the law of its own statement
KERNEL_FORWARD(forward_theta) {
    for (long i = 0; i < d->N; i++) {
        UNLESS_KEPT(VAR_theta, i) {
            Stream g = stream(at, VAR_theta, i);
            const wide x = gamma_shape_rate(&g, 1.8, *s->b);
            VERIFY(x, "theta", i);
            s->theta[i] = x;
        }
    }
}

// y from the law of its own statement, as the replicate
KERNEL_FORWARD(forward_y) {
    for (long i = 0; i < d->N; i++) {
        UNLESS_KEPT(VAR_y_rep, i) {
            Stream g = stream(at, VAR_y_rep, i);
            const wide x = poisson(&g, d->t[i] * s->theta[i]);
            if (!(x >= 0)) FAULT("y_rep", i, "it cannot be drawn from poisson: an argument is out of range (model.gm:14)");
            if (!(x >= -2147483647 && x <= 2147483647)) FAULT("y_rep", i, "its draw is not an integer of 32 bits");
            s->y_rep[i] = INTEGER_DRAWN(x);
        }
    }
}

//   LAUNCH_...(kernel, run, n) runs a kernel for all chains of `run`, with threads for n elements or terms.
static void density_of_b_theta(GmRun *run) {
    LAUNCH_TEAM(transform_b_theta, run, d->N);
    LAUNCH_TEAM(density_b_theta, run, d->N);
}

static void jacobian_of_b_theta(GmRun *run) {
    LAUNCH_TEAM(jacobian_b_theta, run, d->N);
}

//   NUTS(run, density, stream, memory, position, lp, gradient, report, ...) makes a transition of NUTS from `position`, in unconstrained
//   coordinates, to its next draw. It calls `density` for lp and gradient at each point; `memory` to `report`, what the draws say of the
//   trajectory, are fields of State. NUTS_STREAM(x): of the stream of x the random numbers from 2^37 on; those before are of elements.
//   .coordinates: how many numbers the position has; .room: the memory, 48 numbers a coordinate (positions, momenta and gradients of points
//   in a trajectory, and estimates of variances, the diagonal of the inverse mass matrix) and 256 besides (the step size, what it is
//   adapted by, the place in a tree); .selection: the number of its selection; .accept: the mean acceptance that the step size aims at;
//   .depth: doublings of a trajectory at most. .alone: whether lp is known where a transition begins, since nothing else has changed what
//   it reads; GM_UNLESS_MISSING: if no values are missing. .jacobian: computes the log Jacobian alone, with its gradient, for `map`, which
//   finds the mode of the unknowns.
static void update_b_theta_by_hmc(GmRun *run) {
    LAUNCH_TEAM(enter_b_theta, run, d->N);
    NUTS(run, density_of_b_theta, NUTS_STREAM(b), nuts, position, log_density, gradient, moves_b, .name = "b, theta",
            .coordinates = d->N + 1, .room = 48 * d->N + 304, .alone = GM_UNLESS_MISSING, .selection = 1, .accept = 0.8, .depth = 10,
            .jacobian = jacobian_of_b_theta);
    LAUNCH_TEAM(transform_b_theta, run, d->N);
}

// After missing values were drawn.
static void refresh(GmRun *run) {
    LAUNCH_SHARED_UNLESS_MISSING(sums_of_responses, run, d->N);
}

static void setup(GmRun *run) {
    LAUNCH_SHARED(check_data, run, d->N);  // LAUNCH_SHARED: once, for what all chains share
    refresh(run);
}

static void derive(GmRun *run) {
    if (run->requests & GM_LOG_PRIOR) {  // GM_LOG_PRIOR, GM_LOG_LIK, GM_REPLICATES: what a run may request
        LAUNCH_TEAM(log_prior, run, d->N);
    }
    if (run->requests & GM_LOG_LIK) {
        LAUNCH_TEAM(log_likelihood, run, d->N);
    }
    if (run->requests & GM_REPLICATES) {
        LAUNCH_TEAM(replicate, run, d->N);
    }
}

GM_FOR_DRAWS(derive)  // GM_FOR_DRAWS(f) makes gm_f, which calls f for every chain

static void joint(GmRun *run) {
    LAUNCH_TEAM(log_joint, run, d->N);
}

// Draws without data, each after what its law reads.
//   LAUNCH_ONCE(kernel, run): with one thread for each chain.
static void forward(GmRun *run) {
    if (!GIVEN(run, b)) LAUNCH_ONCE(forward_b, run);  // GIVEN(run, x): the run gives or keeps all of x
    if (!GIVEN(run, theta)) LAUNCH_ONCE(forward_theta, run);
    LAUNCH_ONCE(forward_y, run);
}

enum {  // fields of State
    STATE_y = 1, STATE_b, STATE_theta, STATE_scale_b, STATE_log_lik_y, STATE_y_rep, STATE_lprior_b, STATE_lprior_theta,
    STATE_lprior_y, STATE_sum_y, STATE_position, STATE_gradient, STATE_log_density, STATE_nuts, STATE_moves_b
};

//   Tables number fields of Data and State from 1; their columns are the structs of model.h: a field's .role is what it is to the
//   draws (GM_SUM: not in them), .rank its number of subscripts, .extent_of the fields that are its extents, .where the line of its
//   declaration.
static const GmField data_fields[] = {
    {.name = "N", .type = GM_INT, .role = GM_DATA, .offset = offsetof(Data, N), BOUNDED(0, INFINITY), .where = "model.gm:5",
     .declared = "int<lower=0> N"},
    {.name = "t", .type = GM_REAL, .role = GM_DATA, .rank = 1, .offset = offsetof(Data, t), .finite = 1, BOUNDED(0, INFINITY),
            .where = "model.gm:6",
     .declared = "real<lower=0> t[N]", .extent_of = {DATA_N}},
    {.name = "y", .type = GM_INT, .role = GM_DATA, .rank = 1, .offset = offsetof(Data, y), .may_miss = 1, .may_be_left_out = 1,
            .imputed_field = STATE_y, BOUNDED(0, INFINITY), .where = "model.gm:7",
     .declared = "int<lower=0> y[N]", .extent_of = {DATA_N}},
};

static const GmField state_fields[] = {
    {.name = "y", .type = GM_INT, .role = GM_IMPUTED, .rank = 1, .offset = offsetof(State, y), BOUNDED(0, INFINITY), .where = "model.gm:7",
            .extent_of = {DATA_N}},
    {.name = "b", .type = GM_WIDE, .role = GM_PARAMETER, .offset = offsetof(State, b), BOUNDED(0, INFINITY), .where = "model.gm:10"},
    {.name = "theta", .type = GM_WIDE, .role = GM_PARAMETER, .rank = 1, .offset = offsetof(State, theta), BOUNDED(0, INFINITY),
            .where = "model.gm:11", .extent_of = {DATA_N}},
    {.name = "scale_b", .type = GM_WIDE, .role = GM_SUM, .offset = offsetof(State, scale_b), BOUNDED(0, INFINITY), .where = "model.gm:10"},
    {.name = "log_lik_y", .type = GM_WIDE, .role = GM_PREDICTED, .rank = 1, .offset = offsetof(State, log_lik_y), .on_request = GM_LOG_LIK,
            .where = "model.gm:14", .extent_of = {DATA_N}},
    {.name = "y_rep", .type = GM_INT, .role = GM_PREDICTED, .rank = 1, .offset = offsetof(State, y_rep), .on_request = GM_REPLICATES,
            .where = "model.gm:14", .extent_of = {DATA_N}},
    {.name = "lprior_b", .type = GM_WIDE, .role = GM_PREDICTED, .offset = offsetof(State, lprior_b), .on_request = GM_LOG_PRIOR,
            .where = "model.gm:10"},
    {.name = "lprior_theta", .type = GM_WIDE, .role = GM_PREDICTED, .offset = offsetof(State, lprior_theta), .on_request = GM_LOG_PRIOR,
            .where = "model.gm:11"},
    {.name = "lprior_y", .type = GM_WIDE, .role = GM_PREDICTED, .offset = offsetof(State, lprior_y), .on_request = GM_LOG_PRIOR,
            .where = "model.gm:14"},
    {.name = "sum_y", .type = GM_WIDE, .role = GM_SUM, .offset = offsetof(State, sum_y), .shared = 2},  // .shared: one for all chains
    {.name = "position", .type = GM_WIDE, .role = GM_SUM, .rank = 1, .offset = offsetof(State, position)},
    {.name = "gradient", .type = GM_WIDE, .role = GM_SUM, .rank = 1, .offset = offsetof(State, gradient)},
    {.name = "log_density", .type = GM_WIDE, .role = GM_SUM, .rank = 1, .offset = offsetof(State, log_density)},
    {.name = "nuts", .type = GM_WIDE, .role = GM_SUM, .rank = 1, .offset = offsetof(State, nuts)},
    {.name = "moves_b", .type = GM_WIDE, .role = GM_DIAGNOSTIC, .rank = 1, .offset = offsetof(State, moves_b)},
};

static void data_shape(int field, const void *data, GmShape *shape) {
    const Data *const d = (const Data *)data;
    (void)d;
    switch (field) {
    case DATA_t: case DATA_y:
        shape->dim[0] = d->N;
        break;
    }
}

static void state_shape(int field, const void *data, GmShape *shape) {
    const Data *const d = (const Data *)data;
    (void)d;
    switch (field) {
    case STATE_y: case STATE_theta: case STATE_log_lik_y: case STATE_y_rep:
        shape->dim[0] = d->N;
        break;
    case STATE_position: case STATE_gradient:
        shape->dim[0] = d->N + 1;
        break;
    case STATE_log_density:
        shape->dim[0] = 2;
        break;
    case STATE_nuts:
        shape->dim[0] = 48 * d->N + 304;
        break;
    case STATE_moves_b:
        shape->dim[0] = 6;
        break;
    }
}

// The terms of the log prior, for runs that request it.
static const GmPrior priors[] = {
    {.field = STATE_lprior_b, .name = "b"},
    {.field = STATE_lprior_theta, .name = "theta"},
    {.field = STATE_lprior_y, .name = "y", .missing_of = DATA_y},
    {0},
};

// What is observed: its log-likelihood and replicates, for runs that request them.
static const GmObserved observed[] = {
    {.where = "model.gm:14", .name = "y", .data = DATA_y, .log_lik = STATE_log_lik_y, .replicate = STATE_y_rep},
    {0},
};

// What can be drawn from the law of its own statement, in order.
static const GmLaw laws[] = {
    {.field = STATE_b, .variable = VAR_b, .at_once = 0},  // .at_once: how many subscripts say what is drawn at once
    {.field = STATE_theta, .variable = VAR_theta, .at_once = 1},
    {.field = STATE_y_rep, .variable = VAR_y_rep, .at_once = 1, .data = DATA_y},
    {0},
};

// Sums that updates read, and parameters of their laws, for the command `why` of the program: {update, from 0, field of State or 0,
// 1 if the element that is drawn reads the element of its own number, or there is but one, text}.
static const GmStatistic statistics[] = {
    {3, STATE_sum_y, 1, "sum of y[i] over i"},
    {1, 0, 0, "shape = 1/10 + 9/5*N"},
    {1, 0, 0, "rate = 1 + sum(i in 1:N, theta[i])"},
    {2, 0, 0, "shape = 9/5 + y[i]"},
    {2, 0, 0, "rate = b + t[i]"},
    {3, 0, 0, "order = sum(i in 1:N, y[i]) - 1/10"},
    {3, 0, 0, "psi = 2*sum(i in 1:N, t[i]*theta[i])"},
    {3, 0, 0, "chi = 2*b"},
    {3, 0, 0, "then b = b/scale_b,  theta[i] = theta[i]*scale_b"},
    {0, 0, 0, NULL}};

// What the unknowns of a selection cost by separate updates and together by HMC, in multiply-adds of a core, counted by gmc from kernels:
// [0] a sweep by separate updates, [1] the fixed cost of HMC, [2] each evaluation of its density. From [3] on the same on a GPU, two
// numbers each, of multiply-adds that wait for each other, some 4 ns: whatever the number of chains, and for each chain.
static void cost_1(const void *data, double *cost) {
    const Data *const d = (const Data *)data;
    (void)d;
    cost[0] = (659 + 164.6 * (double)d->N);
    cost[1] = (1437 + 48.5 * (double)d->N);
    cost[2] = (302 + 22.3 * (double)d->N);
    cost[3] = (5990 + 80 * pow(fmax((double)d->N, 1), 0.333333));
    cost[4] = (0.0402222 + 0.0122464 * (double)d->N);
    cost[5] = 6786;
    cost[6] = (0.0889075 + 0.00496021 * (double)d->N);
    cost[7] = (4677 + 120 * pow(fmax((double)d->N, 1), 0.333333));
    cost[8] = (0.0200326 + 0.00756108 * (double)d->N);
}

static const int fields_1[] = {STATE_b, STATE_theta, 0}, latents_1[] = {0};

//   A selection is a set of unknowns for which warm-up tries both methods: .coupled is 1 where NUTS draws it even if a warm-up is too short
//   for that; .latents, auxiliaries that NUTS leaves as they are; .machine, its memory.
static const GmSelection selections[] = {
    {.name = "b, theta", .coupled = 0, .fields = fields_1, .diagnostics = STATE_moves_b, .machine = STATE_nuts, .latents = latents_1,
            .cost = cost_1},
};

//   .derive_chain: as .derive, of one chain. .joint_as_written: log_joint has auxiliaries in runs by --check only.
enum { GM_DATA_FIELDS = 3, GM_STATE_FIELDS = 15, GM_UPDATES = 5 };  // how many
#define MODEL_TABLES \
    .derive = gm_derive, .derive_chain = derive, .forward = forward, .laws = laws, .joint_as_written = 1, \
    .refresh = refresh, .data_shape = data_shape, .state_shape = state_shape, .priors = priors, \
    .observed = observed, .statistics = statistics, .selections = selections, \
    .n_selections = (int)(sizeof selections / sizeof *selections), .cost = cost_1

#endif

// ---- part 6: the sweep ----

#ifndef __CUDACC_RTC__       // the host's, which launches kernels: NVRTC, CUDA's compiler of these, skips it
static void update_missing_y(GmRun *run) { LAUNCH_MISSING(impute_y, run, DATA_y); }
static void update_b(GmRun *run) { LAUNCH_TEAM(draw_b, run, d->N); }
static void update_theta(GmRun *run) { LAUNCH(draw_theta, run, d->N); }

static void update_scale_b(GmRun *run) {
    if (run->checking) LAUNCH_TEAM(before_scale_b, run, 1);
    LAUNCH_TEAM(draw_scale_b, run, d->N);
    LAUNCH_TEAM(move_b, run, d->N);
}

// What each update draws, its function, and a selection: a set of unknowns for which warm-up takes NUTS, WITH_GRADIENTS, or those WITHOUT.
static const GmUpdate updates[] = {
    UPDATE("missing y", update_missing_y),
    UPDATE_WITHOUT_GRADIENTS("b", update_b, 1),
    UPDATE_WITHOUT_GRADIENTS("theta", update_theta, 1),
    UPDATE_WITHOUT_GRADIENTS("group move of b, theta", update_scale_b, 1),
    UPDATE_WITH_GRADIENTS("b, theta", update_b_theta_by_hmc, 1),
};

//   take_updates(run, u, n): n updates, from u on, without those that are not selected.
static void sweep(GmRun *run) {
    if (ANY_MISSING(run)) take_updates(run, updates, 1);      // missing y
    if (ANY_MISSING(run)) LAUNCH_TEAM(sums_of_responses, run, d->N);
    take_updates(run, &updates[1], 4);
}

GM_MODEL("pump", "model.gm", MODEL_TABLES)      // read by the runtime; the tables define MODEL_TABLES
#endif
// Works named: Hoffman and Gelman 2014, Journal of Machine Learning Research 15; Liu and Sabatti 2000, Biometrika 87.
