// model.gm, compiled by gmc.
//
// One sweep updates, in this order, each given all else:
//   y[t]   ~ normal(mean, 1 / sqrt(precision))  impute_y  line 6, if values are missing
//   phi    ~ normal(mean, 1 / sqrt(precision))  draw_phi  line 9 *
//   s2^-1  ~ gamma(shape, rate)                 draw_s2   line 10 *
// In place of the updates marked *, where a trial in a warm-up of 300 sweeps or more prefers NUTS (Hoffman and Gelman 2014). They are then
// made after every k-th transition, as they lead out of narrow parts that hold trajectories: so seldom that they have a tenth of the
// work, or after each if trajectories diverge.
//   (phi, s2)  drawn jointly by Hamiltonian Monte Carlo  density_phi_s2  line 9
//
// Above each kernel is what it computes, then what words mean that are neither C nor of the model, where they first stand. Those in
// capitals are macros of kernels.h, which make one text a program for a CPU and for a GPU. Throughout:
//   `wide` is double. `real` is double; on a GPU it is float unless a run has --precision double. KERNEL_ macros declare `d`, the data,
//   `s`, the state of one chain, and `at`: seed, chain and sweep, of which its random numbers are functions. LAUNCH_ macros and their like
//   declare `d`. Subscripts count from 1 in comments, as in the model, and from 0 in the code. *s->x is a number, s->x[k] an element.
//   square(x) is x*x.
//   KERNEL_TEAM: for each chain a team of threads, its lanes, all of which go through the body; local variables are each lane's own.
//   ALONG (j, n): j from 0 to n - 1, shared out among lanes, which then wait for each other, as one may read next what another wrote.
//   SUM_OF (a, j, n) += x: declares a, the sum of x over j, the same in every lane.
#define GM_HMC               // on a GPU kernels.h has Hamiltonian Monte Carlo
#include "gm.h"

// ---- part 1: the model ----

typedef struct Data {  // beside arrays: their extents
    long T;
    real *y;                                 // T
} Data;
enum { DATA_T = 1, DATA_y };  // fields of Data

typedef struct State {  // of one chain; sizes of work arrays are in the tables
    real *y;                                 // responses, with missing values as they are drawn, T
    wide *phi, *s2;                          // unknowns
    wide *log_lik_y, *y_rep;                 // for the draws, T
    wide *lprior_phi, *lprior_s2;            // terms of the log prior
    wide *lprior_y;                          // of missing values: the host adds up their log_lik_, and writes those of observed ones only
    wide *sum_y_y_before, *sum_y_before_squared, *sum_y_observed, *count_observed, *sum_y_before_observed, // sums of data
        *count_observed_2, *sum_y_before_centred_squared, *sum_y_before_centred, *sum_y_before_centred_y_centred,
        *sum_y_centred, *sum_y_centred_squared;
    wide *position, *gradient, *log_density, *nuts, *moves_phi; // of NUTS
} State;
enum { VAR_NONE, VAR_y, VAR_phi, VAR_s2, VAR_y_rep = 5 };  // random streams, by the place in State

#include "kernels.h"

// ---- part 2: the Gibbs updates ----

// y[t] | rest ~ normal(mean, 1 / sqrt(precision))     if values are missing     model.gm:6
//   precision = 0.01*(1 where (1 == t)) + (1/s2 where (2 <= t)) + (phi^2/s2 where (t < T))
//   mean = ((phi*y[t - 1]/s2 where (2 <= t)) + (phi*y[1 + t]/s2 where (t < T)))/precision
KERNEL_ONCE(impute_y) {  // KERNEL_ONCE: a thread for each chain, with loops of its own
    const real inverse_s2 = 1 / *s->s2, phi_squared = square(*s->phi);
    MISSING_IN_TURN (t, DATA_y) {  // MISSING_IN_TURN (j, DATA_x): places j of x without a value, one after the other
        wide h = 0, precision = 0;  // h: a normal log density in x has two terms, -precision/2 x^2 + h x, so h = mean * precision
        if (t == 0) {
            precision += 0.01;
        }
        if (t >= 1) {
            precision += inverse_s2;
            h += *s->phi * inverse_s2 * s->y[t - 1];
        }
        if (t + 1 < d->T) {
            precision += phi_squared * inverse_s2;
            h += *s->phi * inverse_s2 * s->y[t + 1];
        }
        const wide mean = h / precision;
        DRAW(y, t, NORMAL(mean, precision));  // DRAW(x, k, LAW) draws and stores x[k]. NORMAL(mean, precision): precision is 1/sd^2
    }
}

// phi | rest ~ normal(mean, 1 / sqrt(precision))     model.gm:9
//   precision = 1 + sum(t in 2:T, y[t - 1]^2/s2), mean = sum(t in 2:T, y[t]*y[t - 1]/s2)/precision
KERNEL_SCALAR(draw_phi) {  // KERNEL_SCALAR: a thread for each chain
    const wide precision = *s->sum_y_before_squared / *s->s2 + 1, mean = *s->sum_y_y_before / *s->s2 / precision;
    DRAW(phi, 0, NORMAL(mean, precision));
}

// s2^-1 | rest ~ gamma(shape, rate)     model.gm:10
//   shape = 2 + 1/2*sum(t in 2:T, 1), rate = 1 + 1/2*sum(t in 2:T, (y[t] - phi*y[t - 1])^2)
//   with u = s2^-1: log p(u) = log p(s2) - 2*log(u), by |d s2/du|, = log(u)*(shape - 1) - rate*u + const
KERNEL_SCALAR(draw_s2) {
    const wide shape = 0.5 * d->T + 1.5, mean_y_observed = *s->sum_y_observed / fmax(*s->count_observed, 1.0);
    const wide rate = 0.5 * square(*s->phi) * *s->sum_y_before_centred_squared
            + *s->phi * (*s->phi * *s->sum_y_before_observed / fmax(*s->count_observed_2, 1.0) - mean_y_observed) * *s->sum_y_before_centred
            - *s->phi * *s->sum_y_before_centred_y_centred
            + 0.5 * (d->T - 1) * square(mean_y_observed - *s->phi * *s->sum_y_before_observed / fmax(*s->count_observed_2, 1.0))
            + (mean_y_observed - *s->phi * *s->sum_y_before_observed / fmax(*s->count_observed_2, 1.0)) * *s->sum_y_centred
            + 0.5 * *s->sum_y_centred_squared + 1;
    DRAW(s2, 0, POWER_GAMMA(-1, shape, rate));  // POWER_GAMMA(a, shape, rate): x[k]^a ~ gamma(shape, rate)
}

// ---- part 3: Hamiltonian Monte Carlo: log density and gradient ----

// Unconstrained coordinates q of (phi, s2): (phi, log(s2)). kept_coordinate(q, v, x, fresh) is q where x still is v, the value at q,
//     so that no rounding moves it, else (mostly for float x) fresh
//   Of State: position, its coordinates; gradient, the derivatives of lp, the log density, by them; log_density, lp; nuts, its memory;
//   moves_, whose end is its name in the draws, what they report: acceptance, step size, depth, leapfrog steps, divergence, energy.
KERNEL_TEAM(enter_phi_s2) {
    ONE_LANE s->position[0] = *s->phi;  // ONE_LANE: by one, while the others wait
    ONE_LANE s->position[1] = kept_coordinate(s->position[1], exp(s->position[1]), *s->s2, log(*s->s2));
}

// phi, s2 at these coordinates
KERNEL_TEAM(transform_phi_s2) {
    ONE_LANE *s->phi = s->position[0];
    ONE_LANE *s->s2 = exp(s->position[1]);
}

// (phi, s2): drawn jointly by Hamiltonian Monte Carlo     model.gm:9
//   taken if in a trial what mixes worst has, at equal cost, 1.3 times its effective draws by other updates, 1.6 to 5 times if some diverge
//   its log density, of which the code leaves out constants; that of its coordinates has the log Jacobian besides
//   log density += -log(2*pi())/2 - 1/2*phi^2
//   log density += -3*log(s2) - (1/s2)
//   log density += -log(2*pi())/2 - 1/2*log(s2) - 1/2*(y[t] - phi*y[t - 1])^2/s2   over t in 2:T
//   Here a sum of squares over rows, (a - b)^2 = a^2 - 2 a b + b^2, is made of `sum_` and `count_` of State, over data. Any constant may
//   first be subtracted from a and b; a mean_ keeps rounding small.
KERNEL_TEAM(density_phi_s2) {
    wide lp = 0, slope_phi = 0, slope_s2 = 0;  // slope_x is the derivative of lp by x
    ALONG (e, 2) s->gradient[e] = 0;
    // phi ~ normal(0, 1)
    lp -= 0.5 * square(*s->phi);
    slope_phi -= *s->phi;
    // s2 ~ inv_gamma(2, 1)
    lp += -1 / *s->s2 - 3 * s->position[1];
    slope_s2 += 1 / square(*s->s2) - 3 / *s->s2;
    // y[t] ~ normal(phi*y[t - 1], sqrt(s2))
    const wide mean_y_observed = *s->sum_y_observed / fmax(*s->count_observed, 1.0);
    lp += -0.5 * (square(*s->phi) * *s->sum_y_before_centred_squared
            + 2 * *s->phi * (*s->phi * *s->sum_y_before_observed / fmax(*s->count_observed_2, 1.0) - mean_y_observed)
            * *s->sum_y_before_centred - 2 * *s->phi * *s->sum_y_before_centred_y_centred
            + (d->T - 1) * square(mean_y_observed - *s->phi * *s->sum_y_before_observed / fmax(*s->count_observed_2, 1.0))
            + 2 * (mean_y_observed - *s->phi * *s->sum_y_before_observed / fmax(*s->count_observed_2, 1.0)) * *s->sum_y_centred
            + *s->sum_y_centred_squared) / *s->s2 - 0.5 * (d->T - 1) * s->position[1];
    slope_phi += *s->sum_y_before_centred_y_centred / *s->s2;
    slope_phi += *s->sum_y_before_observed * (*s->sum_y_centred / *s->s2
            + (d->T - 1) * (mean_y_observed - *s->phi * *s->sum_y_before_observed / fmax(*s->count_observed_2, 1.0)) / *s->s2
            - *s->phi * *s->sum_y_before_centred / *s->s2) / fmax(*s->count_observed_2, 1.0);
    slope_s2 += (0.5 * square(*s->phi) * *s->sum_y_before_centred_squared
            + *s->phi * (*s->phi * *s->sum_y_before_observed / fmax(*s->count_observed_2, 1.0) - mean_y_observed) * *s->sum_y_before_centred
            - *s->phi * *s->sum_y_before_centred_y_centred
            + 0.5 * (d->T - 1) * square(mean_y_observed - *s->phi * *s->sum_y_before_observed / fmax(*s->count_observed_2, 1.0))
            + (mean_y_observed - *s->phi * *s->sum_y_before_observed / fmax(*s->count_observed_2, 1.0)) * *s->sum_y_centred
            + 0.5 * *s->sum_y_centred_squared) / square(*s->s2) + 0.5 * (1 - d->T) / *s->s2;
    TEAM_BARRIER();  // TEAM_BARRIER: all lanes wait for each other
    ONE_LANE {
        s->log_density[BY_UNKNOWNS] = lp;  // BY_COORDINATES, BY_UNKNOWNS: lp with the log Jacobian, for NUTS, and without, for --check
        s->gradient[0] += slope_phi;
        s->gradient[1] += slope_s2;
    }
    ONE_LANE s->gradient[0] += (mean_y_observed - *s->phi * *s->sum_y_before_observed / fmax(*s->count_observed_2, 1.0))
            * *s->sum_y_before_centred / *s->s2 - *s->phi * *s->sum_y_before_centred_squared / *s->s2;
    // from unknowns x to coordinates q: d lp/dq = d lp/dx * dx/dq + d log|dx/dq|/dq; lp gains log|dx/dq|
    lp += s->position[1];
    ONE_LANE s->gradient[1] = *s->s2 * s->gradient[1] + 1;
    STORE(s->log_density[BY_COORDINATES], lp);  // STORE(a, x): one lane sets a to x
}

// ---- part 4: the log joint density, and what is computed for the draws ----

// The pointwise log-likelihood, in runs that request it.
//   _FROM (j, first, n): n of them, from first on.
KERNEL_ON_REQUEST(log_likelihood) {  // KERNEL_ON_REQUEST: as KERNEL_TEAM, for runs that request it
    ONE_LANE s->log_lik_y[0] = -0.005 * square(s->y[0]) - (log(10.0) + HALF_LOG_2PI);  // HALF_LOG_2PI is log(2*pi)/2
    const wide log_s2 = log(*s->s2), inverse_s2 = 1 / *s->s2;
    LANES_FROM (t, 1, d->T - 1) s->log_lik_y[t] = -0.5 * log_s2 - 0.5 * inverse_s2 * square(s->y[t] - *s->phi * s->y[t - 1]) - HALF_LOG_2PI;
}

// Replicates of what is observed, in runs that request them.
//   stream(at, VAR_x, k): the random numbers of x[k], by which normal_mean_sd(&g, ...) and its like draw.
KERNEL_ON_REQUEST(replicate) {
    ONE_LANE {
        Stream g = stream(at, VAR_y_rep, 0);
        const wide x = normal_mean_sd(&g, 0, 10);
        VERIFY(x, "y_rep", 0);  // VERIFY(x, ...) ends the run with a message if x is not finite
        s->y_rep[0] = x;
    }
    const wide root_s2 = sqrt(*s->s2);
    LANES_FROM (t, 1, d->T - 1) {
        Stream g = stream(at, VAR_y_rep, t);
        const wide x = normal_mean_sd(&g, *s->phi * s->y[t - 1], root_s2);
        VERIFY(x, "y_rep", t);
        s->y_rep[t] = x;
    }
}

// The log joint density of data, variables and auxiliaries.
KERNEL_TEAM(log_joint) {
    wide lp = 0;
    // phi ~ normal(0, 1)
    lp += -0.5 * square(*s->phi) - HALF_LOG_2PI;
    // s2 ~ inv_gamma(2, 1)
    lp += -3 * log(*s->s2) - 1 / *s->s2;
    // y[1] ~ normal(0, 10)
    lp += -0.005 * square(s->y[0]) - (log(10.0) + HALF_LOG_2PI);
    // y[t] ~ normal(phi*y[t - 1], sqrt(s2))
    const wide log_s2 = log(*s->s2), inverse_s2 = 1 / *s->s2;
    SUM_ALONG_FROM (t, 1, d->T - 1, &lp) lp += -0.5 * log_s2 - 0.5 * inverse_s2 * square(s->y[t] - *s->phi * s->y[t - 1]) - HALF_LOG_2PI;
    RESULT(lp);  // RESULT(x): x is what the kernel gives back to the host
}

// ---- part 5: checks and sums of data, launches, tables for the runtime ----

// Sums of a response: computed once, or after each imputation if values are missing.
KERNEL_TEAM(sums_of_responses) {
    // sum_y_y_before = sum of y[t]*y[t - 1] over t; serves the conditional of phi
    ONE_LANE *s->sum_y_y_before = 0;
    SUM_OF_FROM (total_y_y_before, t, 1, d->T - 1) += s->y[t] * s->y[t - 1];
    ONE_LANE *s->sum_y_y_before += total_y_y_before;
    // sum_y_before_squared = sum of y[t - 1]^2 over t; serves the conditional of phi
    ONE_LANE *s->sum_y_before_squared = 0;
    SUM_OF_FROM (total_y_before_squared, t, 1, d->T - 1) += square(s->y[t - 1]);
    ONE_LANE *s->sum_y_before_squared += total_y_before_squared;
    // sum_y_observed = sum of y[t] over t where y[t] is observed; serves the conditionals of s2, (phi, s2)
    ONE_LANE *s->sum_y_observed = 0;
    SUM_OF_FROM (total_y_observed, t, 1, d->T - 1) += IS_NAN(d->y[t]) ? 0 : s->y[t];
    ONE_LANE *s->sum_y_observed += total_y_observed;
    // count_observed = sum of 1 over t where y[t] is observed; serves the conditionals of s2, (phi, s2)
    ONE_LANE *s->count_observed = 0;
    SUM_OF_FROM (total_observed, t, 1, d->T - 1) += IS_NAN(d->y[t]) ? 0 : 1;
    ONE_LANE *s->count_observed += total_observed;
    // sum_y_before_observed = sum of y[t - 1] over t where y[t - 1] is observed; serves the conditionals of s2, (phi, s2)
    ONE_LANE *s->sum_y_before_observed = 0;
    SUM_OF_FROM (total_y_before_observed, t, 1, d->T - 1) += IS_NAN(d->y[t - 1]) ? 0 : s->y[t - 1];
    ONE_LANE *s->sum_y_before_observed += total_y_before_observed;
    // count_observed_2 = sum of 1 over t where y[t - 1] is observed; serves the conditionals of s2, (phi, s2)
    ONE_LANE *s->count_observed_2 = 0;
    SUM_OF_FROM (total_observed_2, t, 1, d->T - 1) += IS_NAN(d->y[t - 1]) ? 0 : 1;
    ONE_LANE *s->count_observed_2 += total_observed_2;
    // sum_y_before_centred_squared = sum of (y[t - 1] - sum_y_before_observed/count_observed_2)^2 over t;
    //     serves the conditionals of s2, (phi, s2)
    ONE_LANE *s->sum_y_before_centred_squared = 0;
    wide total_centred_squared = 0;
    const wide inverse_count_observed_2 = 1 / fmax(*s->count_observed_2, 1.0);
    SUM_ALONG_FROM (t, 1, d->T - 1, &total_centred_squared) total_centred_squared += square(s->y[t - 1]
            - *s->sum_y_before_observed * inverse_count_observed_2);
    ONE_LANE *s->sum_y_before_centred_squared += total_centred_squared;
    // sum_y_before_centred = sum of y[t - 1] - sum_y_before_observed/count_observed_2 over t; serves the conditionals of s2, (phi, s2)
    ONE_LANE *s->sum_y_before_centred = 0;
    SUM_OF_FROM (total_centred, t, 1, d->T - 1) += s->y[t - 1] - *s->sum_y_before_observed * inverse_count_observed_2;
    ONE_LANE *s->sum_y_before_centred += total_centred;
    // sum_y_before_centred_y_centred = sum of (y[t - 1] - sum_y_before_observed/count_observed_2)*(y[t]
    //     - sum_y_observed/count_observed) over t; serves the conditionals of s2, (phi, s2)
    ONE_LANE *s->sum_y_before_centred_y_centred = 0;
    wide total_centred_centred = 0;
    const wide inverse_count_observed = 1 / fmax(*s->count_observed, 1.0);
    SUM_ALONG_FROM (t, 1, d->T - 1, &total_centred_centred) total_centred_centred += (s->y[t - 1]
            - *s->sum_y_before_observed * inverse_count_observed_2) * (s->y[t] - *s->sum_y_observed * inverse_count_observed);
    ONE_LANE *s->sum_y_before_centred_y_centred += total_centred_centred;
    // sum_y_centred = sum of y[t] - sum_y_observed/count_observed over t; serves the conditionals of s2, (phi, s2)
    ONE_LANE *s->sum_y_centred = 0;
    SUM_OF_FROM (total_centred_2, t, 1, d->T - 1) += s->y[t] - *s->sum_y_observed * inverse_count_observed;
    ONE_LANE *s->sum_y_centred += total_centred_2;
    // sum_y_centred_squared = sum of (y[t] - sum_y_observed/count_observed)^2 over t; serves the conditionals of s2, (phi, s2)
    ONE_LANE *s->sum_y_centred_squared = 0;
    SUM_OF_FROM (total_centred_squared_2, t, 1, d->T - 1) += square(s->y[t] - *s->sum_y_observed * inverse_count_observed);
    ONE_LANE *s->sum_y_centred_squared += total_centred_squared_2;
}

// The log Jacobian and its gradient: what the log density of the coordinates has besides that of phi, s2
KERNEL_TEAM(jacobian_phi_s2) {
    wide lp = 0;
    ALONG (e, 2) s->gradient[e] = 0;
    // from unknowns x to coordinates q: d lp/dq = d lp/dx * dx/dq + d log|dx/dq|/dq; lp gains log|dx/dq|
    lp += s->position[1];
    ONE_LANE s->gradient[1] = *s->s2 * s->gradient[1] + 1;
    STORE(s->log_density[BY_COORDINATES], lp);
}

// The log prior, one term for each unknown, in runs that request it.
KERNEL_PRIOR(log_prior) {  // KERNEL_PRIOR: as KERNEL_TEAM, for the log prior
    ONE_LANE *s->lprior_phi = -0.5 * square(*s->phi) - HALF_LOG_2PI;
    ONE_LANE *s->lprior_s2 = -3 * log(*s->s2) - 1 / *s->s2;
}

#ifndef __CUDACC_RTC__       // the host's: NVRTC, CUDA's compiler of kernels, skips it

// phi from the law of its own statement
KERNEL_FORWARD(forward_phi) {  // KERNEL_FORWARD: a thread for each chain, on the host, for draws without data
    UNLESS_KEPT(VAR_phi, 0) {  // UNLESS_KEPT(VAR_x, k): unless the run keeps x[k] as it is
        Stream g = stream(at, VAR_phi, 0);
        const wide x = normal_mean_sd(&g, 0, 1);
        VERIFY(x, "phi", 0);
        *s->phi = x;
    }
}

// s2 from the law of its own statement
KERNEL_FORWARD(forward_s2) {
    UNLESS_KEPT(VAR_s2, 0) {
        Stream g = stream(at, VAR_s2, 0);
        const wide x = inv_gamma_shape_scale(&g, 2, 1);
        VERIFY(x, "s2", 0);
        *s->s2 = x;
    }
}

// y from the law of its own statement, as the replicate
KERNEL_FORWARD(forward_y) {
    UNLESS_KEPT(VAR_y_rep, 0) {
        Stream g = stream(at, VAR_y_rep, 0);
        const wide x = normal_mean_sd(&g, 0, 10);
        VERIFY(x, "y_rep", 0);
        s->y_rep[0] = x;
    }
    const wide root_s2 = sqrt(*s->s2);
    for (long t = 1; t < d->T; t++) {
        UNLESS_KEPT(VAR_y_rep, t) {
            Stream g = stream(at, VAR_y_rep, t);
            const wide x = normal_mean_sd(&g, *s->phi * s->y_rep[t - 1], root_s2);
            VERIFY(x, "y_rep", t);
            s->y_rep[t] = x;
        }
    }
}

//   LAUNCH_...(kernel, run, n) runs a kernel for all chains of `run`, with threads for n elements or terms.
static void density_of_phi_s2(GmRun *run) {
    LAUNCH_TEAM(transform_phi_s2, run, 1);
    LAUNCH_TEAM(density_phi_s2, run, 1);
}

static void jacobian_of_phi_s2(GmRun *run) {
    LAUNCH_TEAM(jacobian_phi_s2, run, 1);
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
static void update_phi_s2_by_hmc(GmRun *run) {
    LAUNCH_TEAM(enter_phi_s2, run, 1);
    NUTS(run, density_of_phi_s2, NUTS_STREAM(phi), nuts, position, log_density, gradient, moves_phi, .name = "phi, s2", .coordinates = 2,
            .room = 352, .alone = GM_UNLESS_MISSING, .selection = 1, .accept = 0.8, .depth = 10, .jacobian = jacobian_of_phi_s2);
    LAUNCH_TEAM(transform_phi_s2, run, 1);
}

// After missing values were drawn.
static void refresh(GmRun *run) {
    LAUNCH_SHARED_UNLESS_MISSING(sums_of_responses, run, d->T);
}

static void setup(GmRun *run) {
    refresh(run);
}

static void derive(GmRun *run) {
    if (run->requests & GM_LOG_PRIOR) {  // GM_LOG_PRIOR, GM_LOG_LIK, GM_REPLICATES: what a run may request
        LAUNCH_TEAM(log_prior, run, 1);
    }
    if (run->requests & GM_LOG_LIK) {
        LAUNCH_TEAM(log_likelihood, run, d->T);
    }
    if (run->requests & GM_REPLICATES) {
        LAUNCH_TEAM(replicate, run, d->T);
    }
}

GM_FOR_DRAWS(derive)  // GM_FOR_DRAWS(f) makes gm_f, which calls f for every chain

static void joint(GmRun *run) {
    LAUNCH_TEAM(log_joint, run, d->T);
}

// Draws without data, each after what its law reads.
//   LAUNCH_ONCE(kernel, run): with one thread for each chain.
static void forward(GmRun *run) {
    if (!GIVEN(run, phi)) LAUNCH_ONCE(forward_phi, run);  // GIVEN(run, x): the run gives or keeps all of x
    if (!GIVEN(run, s2)) LAUNCH_ONCE(forward_s2, run);
    LAUNCH_ONCE(forward_y, run);
}

enum {  // fields of State
    STATE_y = 1, STATE_phi, STATE_s2, STATE_log_lik_y, STATE_y_rep, STATE_lprior_phi, STATE_lprior_s2, STATE_lprior_y,
    STATE_sum_y_y_before, STATE_sum_y_before_squared, STATE_sum_y_observed, STATE_count_observed,
    STATE_sum_y_before_observed, STATE_count_observed_2, STATE_sum_y_before_centred_squared, STATE_sum_y_before_centred,
    STATE_sum_y_before_centred_y_centred, STATE_sum_y_centred, STATE_sum_y_centred_squared, STATE_position, STATE_gradient,
    STATE_log_density, STATE_nuts, STATE_moves_phi
};

//   Tables number fields of Data and State from 1; their columns are the structs of model.h: a field's .role is what it is to the
//   draws (GM_SUM: not in them), .rank its number of subscripts, .extent_of the fields that are its extents, .where the line of its
//   declaration.
static const GmField data_fields[] = {
    {.name = "T", .type = GM_INT, .role = GM_DATA, .offset = offsetof(Data, T), BOUNDED(1, INFINITY), .where = "model.gm:5",
     .declared = "int<lower=1> T"},
    {.name = "y", .type = GM_REAL, .role = GM_DATA, .rank = 1, .offset = offsetof(Data, y), .may_miss = 1, .finite = 1,
            .imputed_field = STATE_y, .where = "model.gm:6",
     .declared = "real y[T]", .extent_of = {DATA_T}},
};

//   .shared: one for all chains.
static const GmField state_fields[] = {
    {.name = "y", .type = GM_REAL, .role = GM_IMPUTED, .rank = 1, .offset = offsetof(State, y), .where = "model.gm:6",
            .extent_of = {DATA_T}},
    {.name = "phi", .type = GM_WIDE, .role = GM_PARAMETER, .offset = offsetof(State, phi), .where = "model.gm:9"},
    {.name = "s2", .type = GM_WIDE, .role = GM_PARAMETER, .offset = offsetof(State, s2), BOUNDED(0, INFINITY), .where = "model.gm:10"},
    {.name = "log_lik_y", .type = GM_WIDE, .role = GM_PREDICTED, .rank = 1, .offset = offsetof(State, log_lik_y), .on_request = GM_LOG_LIK,
            .where = "model.gm:13", .extent_of = {DATA_T}},
    {.name = "y_rep", .type = GM_WIDE, .role = GM_PREDICTED, .rank = 1, .offset = offsetof(State, y_rep), .on_request = GM_REPLICATES,
            .where = "model.gm:13", .extent_of = {DATA_T}},
    {.name = "lprior_phi", .type = GM_WIDE, .role = GM_PREDICTED, .offset = offsetof(State, lprior_phi), .on_request = GM_LOG_PRIOR,
            .where = "model.gm:9"},
    {.name = "lprior_s2", .type = GM_WIDE, .role = GM_PREDICTED, .offset = offsetof(State, lprior_s2), .on_request = GM_LOG_PRIOR,
            .where = "model.gm:10"},
    {.name = "lprior_y", .type = GM_WIDE, .role = GM_PREDICTED, .offset = offsetof(State, lprior_y), .on_request = GM_LOG_PRIOR,
            .where = "model.gm:13"},
    {.name = "sum_y_y_before", .type = GM_WIDE, .role = GM_SUM, .offset = offsetof(State, sum_y_y_before), .shared = 2},
    {.name = "sum_y_before_squared", .type = GM_WIDE, .role = GM_SUM, .offset = offsetof(State, sum_y_before_squared), .shared = 2},
    {.name = "sum_y_observed", .type = GM_WIDE, .role = GM_SUM, .offset = offsetof(State, sum_y_observed), .shared = 2},
    {.name = "count_observed", .type = GM_WIDE, .role = GM_SUM, .offset = offsetof(State, count_observed), .shared = 2},
    {.name = "sum_y_before_observed", .type = GM_WIDE, .role = GM_SUM, .offset = offsetof(State, sum_y_before_observed), .shared = 2},
    {.name = "count_observed_2", .type = GM_WIDE, .role = GM_SUM, .offset = offsetof(State, count_observed_2), .shared = 2},
    {.name = "sum_y_before_centred_squared", .type = GM_WIDE, .role = GM_SUM, .offset = offsetof(State, sum_y_before_centred_squared),
            .shared = 2},
    {.name = "sum_y_before_centred", .type = GM_WIDE, .role = GM_SUM, .offset = offsetof(State, sum_y_before_centred), .shared = 2},
    {.name = "sum_y_before_centred_y_centred", .type = GM_WIDE, .role = GM_SUM, .offset = offsetof(State, sum_y_before_centred_y_centred),
            .shared = 2},
    {.name = "sum_y_centred", .type = GM_WIDE, .role = GM_SUM, .offset = offsetof(State, sum_y_centred), .shared = 2},
    {.name = "sum_y_centred_squared", .type = GM_WIDE, .role = GM_SUM, .offset = offsetof(State, sum_y_centred_squared), .shared = 2},
    {.name = "position", .type = GM_WIDE, .role = GM_SUM, .rank = 1, .offset = offsetof(State, position)},
    {.name = "gradient", .type = GM_WIDE, .role = GM_SUM, .rank = 1, .offset = offsetof(State, gradient)},
    {.name = "log_density", .type = GM_WIDE, .role = GM_SUM, .rank = 1, .offset = offsetof(State, log_density)},
    {.name = "nuts", .type = GM_WIDE, .role = GM_SUM, .rank = 1, .offset = offsetof(State, nuts)},
    {.name = "moves_phi", .type = GM_WIDE, .role = GM_DIAGNOSTIC, .rank = 1, .offset = offsetof(State, moves_phi)},
};

static void data_shape(int field, const void *data, GmShape *shape) {
    const Data *const d = (const Data *)data;
    (void)d;
    switch (field) {
    case DATA_y:
        shape->dim[0] = d->T;
        break;
    }
}

static void state_shape(int field, const void *data, GmShape *shape) {
    const Data *const d = (const Data *)data;
    (void)d;
    switch (field) {
    case STATE_y: case STATE_log_lik_y: case STATE_y_rep:
        shape->dim[0] = d->T;
        break;
    case STATE_position: case STATE_gradient: case STATE_log_density:
        shape->dim[0] = 2;
        break;
    case STATE_nuts:
        shape->dim[0] = 352;
        break;
    case STATE_moves_phi:
        shape->dim[0] = 6;
        break;
    }
}

// The terms of the log prior, for runs that request it.
static const GmPrior priors[] = {
    {.field = STATE_lprior_phi, .name = "phi"},
    {.field = STATE_lprior_s2, .name = "s2"},
    {.field = STATE_lprior_y, .name = "y", .missing_of = DATA_y},
    {0},
};

// What is observed: its log-likelihood and replicates, for runs that request them.
static const GmObserved observed[] = {
    {.where = "model.gm:13", .name = "y", .data = DATA_y, .log_lik = STATE_log_lik_y, .replicate = STATE_y_rep},
    {0},
};

// What can be drawn from the law of its own statement, in order.
static const GmLaw laws[] = {
    {.field = STATE_phi, .variable = VAR_phi, .at_once = 0},  // .at_once: how many subscripts say what is drawn at once
    {.field = STATE_s2, .variable = VAR_s2, .at_once = 0},
    {.field = STATE_y_rep, .variable = VAR_y_rep, .at_once = 1, .data = DATA_y},
    {0},
};

// Sums that updates read, and parameters of their laws, for the command `why` of the program: {update, from 0, field of State or 0,
// 1 if the element that is drawn reads the element of its own number, or there is but one, text}.
static const GmStatistic statistics[] = {
    {1, STATE_sum_y_y_before, 1, "sum of y[t]*y[t - 1] over t"},
    {1, STATE_sum_y_before_squared, 1, "sum of y[t - 1]^2 over t"},
    {2, STATE_sum_y_observed, 1, "sum of y[t] over t where y[t] is observed"},
    {3, STATE_sum_y_observed, 0, "sum of y[t] over t where y[t] is observed"},
    {2, STATE_count_observed, 1, "sum of 1 over t where y[t] is observed"},
    {3, STATE_count_observed, 0, "sum of 1 over t where y[t] is observed"},
    {2, STATE_sum_y_before_observed, 1, "sum of y[t - 1] over t where y[t - 1] is observed"},
    {3, STATE_sum_y_before_observed, 0, "sum of y[t - 1] over t where y[t - 1] is observed"},
    {2, STATE_count_observed_2, 1, "sum of 1 over t where y[t - 1] is observed"},
    {3, STATE_count_observed_2, 0, "sum of 1 over t where y[t - 1] is observed"},
    {2, STATE_sum_y_before_centred_squared, 1, "sum of (y[t - 1] - sum_y_before_observed/count_observed_2)^2 over t"},
    {3, STATE_sum_y_before_centred_squared, 0, "sum of (y[t - 1] - sum_y_before_observed/count_observed_2)^2 over t"},
    {2, STATE_sum_y_before_centred, 1, "sum of y[t - 1] - sum_y_before_observed/count_observed_2 over t"},
    {3, STATE_sum_y_before_centred, 0, "sum of y[t - 1] - sum_y_before_observed/count_observed_2 over t"},
    {2, STATE_sum_y_before_centred_y_centred, 1,
            "sum of (y[t - 1] - sum_y_before_observed/count_observed_2)*(y[t] - sum_y_observed/count_observed) over t"},
    {3, STATE_sum_y_before_centred_y_centred, 0,
            "sum of (y[t - 1] - sum_y_before_observed/count_observed_2)*(y[t] - sum_y_observed/count_observed) over t"},
    {2, STATE_sum_y_centred, 1, "sum of y[t] - sum_y_observed/count_observed over t"},
    {3, STATE_sum_y_centred, 0, "sum of y[t] - sum_y_observed/count_observed over t"},
    {2, STATE_sum_y_centred_squared, 1, "sum of (y[t] - sum_y_observed/count_observed)^2 over t"},
    {3, STATE_sum_y_centred_squared, 0, "sum of (y[t] - sum_y_observed/count_observed)^2 over t"},
    {1, 0, 0, "precision = 1 + sum(t in 2:T, y[t - 1]^2/s2)"},
    {1, 0, 0, "mean = sum(t in 2:T, y[t]*y[t - 1]/s2)/precision"},
    {2, 0, 0, "shape = 2 + 1/2*sum(t in 2:T, 1)"},
    {2, 0, 0, "rate = 1 + 1/2*sum(t in 2:T, (y[t] - phi*y[t - 1])^2)"},
    {0, 0, 0, NULL}};

// What the unknowns of a selection cost by separate updates and together by HMC, in multiply-adds of a core, counted by gmc from kernels:
// [0] a sweep by separate updates, [1] the fixed cost of HMC, [2] each evaluation of its density. From [3] on the same on a GPU, two
// numbers each, of multiply-adds that wait for each other, some 4 ns: whatever the number of chains, and for each chain.
static void cost_1(const void *data, double *cost) {
    const Data *const d = (const Data *)data;
    (void)d;
    cost[0] = 376;
    cost[1] = 1477;
    cost[2] = 504;
    cost[3] = 3756;
    cost[4] = 0.0229492;
    cost[5] = 6767;
    cost[6] = 0.0917489;
    cost[7] = 4218;
    cost[8] = 0.0331617;
}

static const int fields_1[] = {STATE_phi, STATE_s2, 0}, latents_1[] = {0};

//   A selection is a set of unknowns for which warm-up tries both methods: .coupled is 1 where NUTS draws it even if a warm-up is too short
//   for that; .latents, auxiliaries that NUTS leaves as they are; .machine, its memory.
static const GmSelection selections[] = {
    {.name = "phi, s2", .coupled = 0, .fields = fields_1, .diagnostics = STATE_moves_phi, .machine = STATE_nuts, .latents = latents_1,
            .cost = cost_1},
};

//   .derive_chain: as .derive, of one chain. .joint_as_written: log_joint has auxiliaries in runs by --check only.
enum { GM_DATA_FIELDS = 2, GM_STATE_FIELDS = 24, GM_UPDATES = 4 };  // how many
#define MODEL_TABLES \
    .derive = gm_derive, .derive_chain = derive, .forward = forward, .laws = laws, .joint_as_written = 1, \
    .refresh = refresh, .data_shape = data_shape, .state_shape = state_shape, .priors = priors, \
    .observed = observed, .statistics = statistics, .selections = selections, \
    .n_selections = (int)(sizeof selections / sizeof *selections), .cost = cost_1

#endif

// ---- part 6: the sweep ----

#ifndef __CUDACC_RTC__       // the host's, which launches kernels: NVRTC, CUDA's compiler of these, skips it
static void update_phi(GmRun *run) { LAUNCH_ONCE(draw_phi, run); }
static void update_s2(GmRun *run) { LAUNCH_ONCE(draw_s2, run); }

// What each update draws, its function, and a selection: a set of unknowns for which warm-up takes NUTS, WITH_GRADIENTS, or those WITHOUT.
static const GmUpdate updates[] = {
    UPDATE_ONCE("missing y", impute_y),
    UPDATE_WITHOUT_GRADIENTS("phi", update_phi, 1),
    UPDATE_WITHOUT_GRADIENTS("s2", update_s2, 1),
    UPDATE_WITH_GRADIENTS("phi, s2", update_phi_s2_by_hmc, 1),
};

//   take_updates(run, u, n): n updates, from u on, without those that are not selected.
static void sweep(GmRun *run) {
    if (ANY_MISSING(run)) take_updates(run, updates, 1);      // missing y
    if (ANY_MISSING(run)) LAUNCH_TEAM(sums_of_responses, run, d->T);
    take_updates(run, &updates[1], 3);
}

GM_MODEL("ar1", "model.gm", MODEL_TABLES)      // read by the runtime; the tables define MODEL_TABLES
#endif
// Works named: Hoffman and Gelman 2014, Journal of Machine Learning Research 15.
