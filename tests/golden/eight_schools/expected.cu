// model.gm, compiled by gmc.
//
// One sweep updates, in this order, each given all else:
//   y[j]            ~ normal(mean, 1 / sqrt(precision))             impute_y             line 6, if values are missing
//   nu_tau^-1       ~ gamma(shape, rate)                            draw_nu_tau          line 11, an auxiliary *
//   theta[j]        ~ normal(mean, 1 / sqrt(precision))             draw_theta           line 14 *
//   mu              ~ normal(mean, 1 / sqrt(precision))             draw_mu              line 10 *
//   tau^-2          ~ gamma(shape, rate)                            draw_tau             line 11 *
//   scale_tau       ~ normal(mean, 1 / sqrt(precision)), truncated  draw_scale_tau       line 11, a group move *
//   shift_mu_theta  ~ normal(mean, 1 / sqrt(precision))             draw_shift_mu_theta  line 10, a group move *
// In place of the updates marked *, where a trial in a warm-up of 300 sweeps or more prefers NUTS (Hoffman and Gelman 2014). They are then
// made after every k-th transition, as they lead out of narrow parts that hold trajectories: so seldom that they have a tenth of the
// work, or after each if trajectories diverge. NUTS leaves auxiliaries as they are; a sweep draws them before what reads them.
//   (mu, tau, theta)  drawn jointly by Hamiltonian Monte Carlo  density_mu_tau_theta  line 10, auxiliaries integrated out
//
// Above each kernel is what it computes, then what words mean that are neither C nor of the model, where they first stand. Those in
// capitals are macros of kernels.h, which make one text a program for a CPU and for a GPU. Throughout:
//   `wide` is double. `real` is double; on a GPU it is float unless a run has --precision double. KERNEL_ macros declare `d`, the data,
//   `s`, the state of one chain, and `at`: seed, chain and sweep, of which its random numbers are functions. LAUNCH_ macros and their like
//   declare `d`. Subscripts count from 1 in comments, as in the model, and from 0 in the code. *s->x is a number, s->x[k] an element.
//   square(x) is x*x. cube(x) is x*x*x.
//   KERNEL_TEAM: for each chain a team of threads, its lanes, all of which go through the body; local variables are each lane's own.
//   ALONG (j, n): j from 0 to n - 1, shared out among lanes, which then wait for each other, as one may read next what another wrote.
//   LANES (j, n): as ALONG, but nobody waits: each lane has the same j in every loop of n. SUM_ALONG (j, n, &a): as ALONG; then a has
//   grown, in every lane, by the sum of what all lanes add to it. SUM_OF (a, j, n) += x: declares a, the sum of x over j, the same in every
//   lane.
#define GM_HMC               // on a GPU kernels.h has Hamiltonian Monte Carlo
#include "gm.h"

// ---- part 1: the model ----

typedef struct Data {  // beside arrays: their extents
    long J;
    real *y, *sigma;                         // J
} Data;
enum { DATA_J = 1, DATA_y, DATA_sigma };  // fields of Data

typedef struct State {  // of one chain; sizes of work arrays are in the tables
    real *y;                                 // responses, with missing values as they are drawn, J
    wide *mu, *tau;                          // unknowns
    real *theta;                             // unknowns, J
    wide *nu_tau;                            // auxiliaries
    wide *scale_tau, *shift_mu_theta;        // of group moves
    wide *log_lik_y, *y_rep;                 // for the draws, J
    wide *lprior_mu, *lprior_tau, *lprior_theta; // terms of the log prior
    wide *lprior_y;                          // of missing values: the host adds up their log_lik_, and writes those of observed ones only
    wide *sum_inverse_sigma_squared;         // sums of data
    wide *position, *gradient, *log_density, *nuts, *moves_mu; // of NUTS
    wide *non_centring, *next_non_centring, *centre_theta, *spread_theta, *scale_theta, *slope_centre_theta, // work arrays
        *slope_spread_theta;
} State;
enum {  // random streams, by the place in State
    VAR_NONE, VAR_y, VAR_mu, VAR_tau, VAR_theta, VAR_nu_tau, VAR_scale_tau, VAR_shift_mu_theta, VAR_y_rep = 9
};

#include "kernels.h"

// ---- part 2: the Gibbs updates ----

// y[j] | rest ~ normal(mean, 1 / sqrt(precision))     if values are missing     model.gm:6
//   precision = 1/sigma[j]^2, mean = theta[j]
KERNEL(impute_y) {  // KERNEL: a thread for each element and chain
    EACH_MISSING (j, DATA_y) {  // EACH_MISSING (j, DATA_x): places j of x, row by row, without a value
        const real precision = 1 / square(d->sigma[j]), mean = s->theta[j];
        DRAW(y, j, NORMAL(mean, precision));  // DRAW(x, k, LAW) draws and stores x[k]. NORMAL(mean, precision): precision is 1/sd^2
    }
}

// nu_tau^-1 | rest ~ gamma(shape, rate)     model.gm:11
//   an auxiliary of half_cauchy_mixture: Wand et al. 2011, Bayesian Analysis 6; Makalic and Schmidt 2016, IEEE Signal Processing Letters 23
//   by which nu_tau ~ inv_gamma(1/2, 0.04): its inverse is gamma(1/2, 0.04), tau ~ root_inv_gamma(1/2, 1/nu_tau):
//       its square is inv_gamma(1/2, 1/nu_tau); with nu_tau integrated out, tau ~ half_cauchy(0, 5)
//   shape = 1, rate = 0.04 + 1/tau^2
//   with u = nu_tau^-1: log p(u) = log p(nu_tau) - 2*log(u), by |d nu_tau/du|, = log(u)*(shape - 1) - rate*u + const
KERNEL_SCALAR(draw_nu_tau) {  // KERNEL_SCALAR: a thread for each chain
    const wide shape = 1, rate = 1 / square(*s->tau) + 0.04;
    DRAW(nu_tau, 0, POWER_GAMMA(-1, shape, rate));  // POWER_GAMMA(a, shape, rate): x[k]^a ~ gamma(shape, rate)
}

// theta[j] | rest ~ normal(mean, 1 / sqrt(precision))     in parallel     model.gm:14
//   precision = 1/tau^2 + 1/sigma[j]^2, mean = (mu/tau^2 + y[j]/sigma[j]^2)/precision
KERNEL(draw_theta) {
    const real inverse_tau_squared = 1 / square(*s->tau);
    EACH (j, d->J) {  // EACH (j, n): j from 0 to n - 1, shared out among threads
        const real precision = inverse_tau_squared + 1 / square(d->sigma[j]);
        const real mean = (*s->mu * inverse_tau_squared + s->y[j] / square(d->sigma[j])) / precision;
        DRAW(theta, j, NORMAL(mean, precision));
    }
}

// mu | rest ~ normal(mean, 1 / sqrt(precision))     model.gm:10
//   precision = 0.04 + J/tau^2, mean = sum(j in 1:J, theta[j]/tau^2)/precision
KERNEL_TEAM(draw_mu) {
    wide h = 0;  // h: a normal log density in x has two terms, -precision/2 x^2 + h x, so h = mean * precision
    const wide precision = d->J / square(*s->tau) + 0.04;
    const wide inverse_tau_squared = 1 / square(*s->tau);
    SUM_ALONG (j, d->J, &h) h += inverse_tau_squared * s->theta[j];
    const wide mean = h / precision;
    TEAM_DRAW(mu, 0, NORMAL(mean, precision));  // TEAM_DRAW(x, k, LAW): one lane draws and stores x[k]
}

// tau^-2 | rest ~ gamma(shape, rate)     model.gm:11
//   shape = 1/2 + 1/2*J, rate = 1/nu_tau + 1/2*sum(j in 1:J, (theta[j] - mu)^2)
//   with u = tau^-2: log p(u) = log p(tau) - 3/2*log(u), by |d tau/du|, = log(u)*(shape - 1) - rate*u + const
KERNEL_TEAM(draw_tau) {
    const wide shape = 0.5 * d->J + 0.5;
    wide rate = 1 / *s->nu_tau;
    SUM_ALONG (j, d->J, &rate) rate += 0.5 * square(s->theta[j] - *s->mu);
    TEAM_DRAW(tau, 0, POWER_GAMMA(-2, shape, rate));
}

// scale_tau | rest ~ normal(mean, 1 / sqrt(precision)), truncated     model.gm:11
//   precision = 0.08/nu_tau + sum(j in 1:J, (theta[j] - mu)^2/sigma[j]^2)
//   mean = sum(j in 1:J, (theta[j] - mu)*(y[j] - mu)/sigma[j]^2)/precision
//   lower = 0
//   then tau = tau*scale_tau,  theta[j] = mu + (theta[j] - mu)*scale_tau,  nu_tau = nu_tau/scale_tau^2
//   powers of c = scale_tau beside exponentials: c^(2 - J) in the moved densities (of theta c^-J, nu_tau c^3, tau c^-1),
//       c^(J - 1) the Jacobian (tau c, theta c^J, nu_tau c^-2), 1/c from dc/c (the Haar measure, invariant to rescaling): none is left
//   NORMAL_WITHIN(h, precision, lower, upper): truncated to lie between these ends. A group move changes several unknowns at once by one
//   number, drawn from its own law: by a factor, `scale_`, or an amount, `shift_`.
KERNEL_TEAM(draw_scale_tau) {
    wide h = 0, precision = 0.08 / *s->nu_tau;
    SUM_ALONG (j, d->J, &h, &precision) {
        h += (s->y[j] - *s->mu) * (s->theta[j] - *s->mu) / square(d->sigma[j]);
        precision += square(s->theta[j] - *s->mu) / square(d->sigma[j]);
    }
    TEAM_DRAW(scale_tau, 0, NORMAL_WITHIN(h, precision, 0, INFINITY));
}

// A group move (Liu and Sabatti 2000) by scale_tau: its law, moved joint density * Jacobian * Haar measure, keeps the posterior
//   times_log(n, l) is n*l, and 0 if n or l is, since 0*log(0) counts as 0. CHECKING: in sweeps, by --check or after the draws, that
//   compare updates with the joint density. RATIO(a, ...) adds a + ... to a sum of the update, to which draws add log q(new) - log q(old)
//   of their law q; --check compares it with the rise of the log joint density. A group move begins at the identity, by `before_` kernels
//   of the tables; then a + ... is -log(Jacobian * measure).
KERNEL_TEAM(move_tau) {
    ONE_LANE *s->tau = *s->tau * *s->scale_tau;  // ONE_LANE: by one, while the others wait
    ALONG (j, d->J) s->theta[j] = *s->mu + *s->scale_tau * (s->theta[j] - *s->mu);
    ONE_LANE *s->nu_tau = *s->nu_tau / square(*s->scale_tau);
    ONE_LANE if (CHECKING) RATIO(2 * log(*s->scale_tau), -times_log(d->J, log(*s->scale_tau)));
}

// shift_mu_theta | rest ~ normal(mean, 1 / sqrt(precision))     model.gm:10
//   precision = 0.04 + sum(j in 1:J, 1/sigma[j]^2)
//   mean = (sum(j in 1:J, (y[j] - theta[j])/sigma[j]^2) - 0.04*mu)/precision
//   then mu = mu + shift_mu_theta,  theta[j] = theta[j] + shift_mu_theta
KERNEL_TEAM(draw_shift_mu_theta) {
    wide h = -0.04 * *s->mu;
    const wide precision = *s->sum_inverse_sigma_squared + 0.04;
    SUM_ALONG (j, d->J, &h) h += (s->y[j] - s->theta[j]) / square(d->sigma[j]);
    const wide mean = h / precision;
    TEAM_DRAW(shift_mu_theta, 0, NORMAL(mean, precision));
}

// A group move (Liu and Sabatti 2000) by shift_mu_theta, a translation of Jacobian 1 and uniform measure
KERNEL_TEAM(add_shift_mu_theta) {
    ONE_LANE *s->mu = *s->mu + *s->shift_mu_theta;
    LANES (j, d->J) s->theta[j] = *s->shift_mu_theta + s->theta[j];
}

// ---- part 3: Hamiltonian Monte Carlo: log density and gradient ----

// Unconstrained coordinates q of (mu, tau, theta): (mu, log(tau), q of theta). kept_coordinate(q, v, x, fresh) is q where x still is v,
//     the value at q, so that no rounding moves it, else (mostly for float x) fresh
// x, an element of theta, of prior mean m = centre and sd s = spread, is m + scale*(q - (1 - c)*m), scale = s^c: q is x for c = 0, and
//     (x - m)/s for c = 1. c, non_centring of its coordinate, is set in warm-up, as next_non_centring: 1 over the precision of
//     (x - m)/s given all else, the variance of d lp/dq at c = 1 (but 1 if that is below 3, 0 if above 60; Papaspiliopoulos et al. 2007;
//     Gorinova et al. 2020). standard_scale(c, s) is s^c, from_standard(q, c, m, scale) is x, to_standard(x, c, m, scale) is q
//   Of State: position, its coordinates; gradient, the derivatives of lp, the log density, by them; log_density, lp; nuts, its memory;
//   moves_, whose end is its name in the draws, what they report: acceptance, step size, depth, leapfrog steps, divergence, energy.
KERNEL_TEAM(enter_mu_tau_theta) {
    ALONG (e, d->J + 2) s->non_centring[e] = s->next_non_centring[e];
    ONE_LANE s->position[0] = *s->mu;
    ONE_LANE s->position[1] = kept_coordinate(s->position[1], exp(s->position[1]), *s->tau, log(*s->tau));
    ALONG (j, d->J) { s->centre_theta[j] = *s->mu; s->spread_theta[j] = *s->tau; }
    ALONG (j, d->J) s->scale_theta[j] = standard_scale(s->non_centring[j + 2], s->spread_theta[j]);
    LANES (j, d->J) s->position[j + 2] = kept_coordinate(s->position[j + 2],
            from_standard(s->position[j + 2], s->non_centring[j + 2], s->centre_theta[j], s->scale_theta[j]), (wide)s->theta[j],
            to_standard((wide)s->theta[j], s->non_centring[j + 2], s->centre_theta[j], s->scale_theta[j]));
}

// mu, tau, theta at these coordinates
KERNEL_TEAM(transform_mu_tau_theta) {
    ONE_LANE *s->mu = s->position[0];
    ONE_LANE *s->tau = exp(s->position[1]);
    ALONG (j, d->J) { s->centre_theta[j] = *s->mu; s->spread_theta[j] = *s->tau; }
    ALONG (j, d->J) s->scale_theta[j] = standard_scale(s->non_centring[j + 2], s->spread_theta[j]);
    LANES (j, d->J) s->theta[j] = from_standard(s->position[j + 2], s->non_centring[j + 2], s->centre_theta[j], s->scale_theta[j]);
}

// (mu, tau, theta): drawn jointly by Hamiltonian Monte Carlo     model.gm:10
//   taken if in a trial what mixes worst has, at equal cost, 1.3 times its effective draws by other updates, 1.6 to 5 times if some diverge
//   its log density, of which the code leaves out constants; that of its coordinates has the log Jacobian besides
//   log density += -log(5) - log(2*pi())/2 - 0.02*mu^2
//   log density += log(2/pi()) - log(5) - log1p(0.04*tau^2)
//   log density += -log(2*pi())/2 - 1/2*(theta[j] - mu)^2/tau^2 - log(tau)   over j in 1:J
//   log density += -log(2*pi())/2 - 1/2*(y[j] - theta[j])^2/sigma[j]^2 - log(sigma[j])   over j in 1:J
//   standard_chain(c, m, s, scale, x, &slope, &by_m, &by_s): by_m = slope*(1 - (1 - c)*scale) and by_s = (slope*(x - m) + 1)*c/s, since
//   dx/ds = (x - m)*c/s and d log(scale)/ds = c/s; then slope = scale*slope, that by q. It returns log(scale).
KERNEL_TEAM(density_mu_tau_theta) {
    wide lp = 0, slope_mu = 0, slope_tau = 0;  // slope_x is the derivative of lp by x
    ALONG (e, d->J + 2) s->gradient[e] = 0;
    // mu ~ normal(0, 5)
    lp -= 0.02 * square(*s->mu);
    slope_mu -= 0.04 * *s->mu;
    // tau ~ half_cauchy(0, 5)
    lp -= log1p(0.04 * square(*s->tau));
    slope_tau -= 0.08 * *s->tau / (0.04 * square(*s->tau) + 1);
    // theta[j] ~ normal(mu, tau)
    const wide current_tau = *s->tau, current_mu = *s->mu, current_log_tau = s->position[1];  // current_x is x
    const wide inverse_tau_squared = 1 / square(current_tau), inverse_tau = 1 / current_tau, inverse_tau_cubed = 1 / cube(current_tau);
    SUM_ALONG (j, d->J, &lp, &slope_tau, &slope_mu) {
        lp += -0.5 * inverse_tau_squared * square(s->theta[j] - current_mu) - current_log_tau;
        s->gradient[2 + j] -= inverse_tau_squared * (s->theta[j] - current_mu);
        slope_tau += inverse_tau_cubed * square(s->theta[j] - current_mu) - inverse_tau;
        slope_mu += inverse_tau_squared * (s->theta[j] - current_mu);
    }
    // y[j] ~ normal(theta[j], sigma[j])
    SUM_ALONG (j, d->J, &lp) {
        lp -= 0.5 * square(s->y[j] - s->theta[j]) / square(d->sigma[j]);
        s->gradient[2 + j] += (s->y[j] - s->theta[j]) / square(d->sigma[j]);
    }
    ONE_LANE {
        s->log_density[BY_UNKNOWNS] = lp;  // BY_COORDINATES, BY_UNKNOWNS: lp with the log Jacobian, for NUTS, and without, for --check
        s->gradient[0] += slope_mu;
        s->gradient[1] += slope_tau;
    }
    // from unknowns x to coordinates q: d lp/dq = d lp/dx * dx/dq + d log|dx/dq|/dq; lp gains log|dx/dq|. First theta:
    //     by centre and spread lp depends on what these are made of as well
    SUM_ALONG (j, d->J, &lp) lp += standard_chain(s->non_centring[j + 2], s->centre_theta[j], s->spread_theta[j], s->scale_theta[j],
            s->theta[j], &s->gradient[j + 2], &s->slope_centre_theta[j], &s->slope_spread_theta[j]);
    SUM_OF (total_slope_spread_theta, j, d->J) += s->slope_spread_theta[j];
    ONE_LANE s->gradient[1] += total_slope_spread_theta;
    SUM_OF (total_slope_centre_theta, j, d->J) += s->slope_centre_theta[j];
    ONE_LANE s->gradient[0] += total_slope_centre_theta;
    lp += current_log_tau;
    ONE_LANE s->gradient[1] = current_tau * s->gradient[1] + 1;
    STORE(s->log_density[BY_COORDINATES], lp);  // STORE(a, x): one lane sets a to x
}

// ---- part 4: the log joint density, and what is computed for the draws ----

// The pointwise log-likelihood, in runs that request it.
//   HALF_LOG_2PI is log(2*pi)/2.
KERNEL_ON_REQUEST(log_likelihood) {  // KERNEL_ON_REQUEST: as KERNEL_TEAM, for runs that request it
    LANES (j, d->J) s->log_lik_y[j] = -0.5 * square(s->y[j] - s->theta[j]) / square(d->sigma[j]) - log((wide)d->sigma[j]) - HALF_LOG_2PI;
}

// Replicates of what is observed, in runs that request them.
//   stream(at, VAR_x, k): the random numbers of x[k], by which normal_mean_sd(&g, ...) and its like draw.
KERNEL_ON_REQUEST(replicate) {
    LANES (j, d->J) {
        Stream g = stream(at, VAR_y_rep, j);
        const wide x = normal_mean_sd(&g, s->theta[j], d->sigma[j]);
        VERIFY(x, "y_rep", j);  // VERIFY(x, ...) ends the run with a message if x is not finite
        s->y_rep[j] = x;
    }
}

// The log joint density of data and variables; with --check that of auxiliaries, too.
KERNEL_TEAM(log_joint) {
    wide lp = 0;
    // mu ~ normal(0, 5)
    lp += -0.02 * square(*s->mu) - (log(5.0) + log(2 * GM_PI) / 2);  // GM_PI is pi
    // theta[j] ~ normal(mu, tau)
    const wide inverse_tau_squared = 1 / square(*s->tau), log_tau = log(*s->tau);
    SUM_ALONG (j, d->J, &lp) lp += -0.5 * inverse_tau_squared * square(s->theta[j] - *s->mu) - log_tau - HALF_LOG_2PI;
    // y[j] ~ normal(theta[j], sigma[j])
    SUM_ALONG (j, d->J, &lp) lp += -0.5 * square(s->y[j] - s->theta[j]) / square(d->sigma[j]) - log((wide)d->sigma[j]) - HALF_LOG_2PI;
    if (CHECKING) {
        // nu_tau ~ inv_gamma(1/2, 0.04), by half_cauchy_mixture
        lp += -1.5 * log(*s->nu_tau) - 0.04 / *s->nu_tau - 2.1818028553588005 /* log(5) + lgamma(1/2) */;
        // tau ~ root_inv_gamma(1/2, 1/nu_tau), by half_cauchy_mixture
        lp += -2 * log_tau - 0.5 * log(*s->nu_tau) - inverse_tau_squared / *s->nu_tau + 0.1207822376352452 /* log(2) - lgamma(1/2) */;
    } else {
        // tau ~ half_cauchy(0, 5)
        lp += (log(2 / GM_PI) - log(5.0)) - log1p(0.04 * square(*s->tau));
    }
    RESULT(lp);  // RESULT(x): x is what the kernel gives back to the host
}

// ---- part 5: checks and sums of data, launches, tables for the runtime ----

// Data must lie in the support of their distributions, arguments of these in their domains, and subscripts inside their arrays.
//   FAULT_AT(x, k, n, message) ends the run; in the message # stands for each of the n subscripts k.
KERNEL_TEAM(check_data) {
    LANES (j, d->J) {
        if (d->sigma[j] <= 0) { const long found[] = {(long)(j + 1)}; FAULT_AT("sigma", found, 1,
                "sigma[#], the `sigma` of normal, must be above 0 (model.gm:17)"); }
    }
}

// Sums of data: computed once. Each is set to 0, since terms are added to it.
KERNEL_TEAM(sums_of_data) {
    // sum_inverse_sigma_squared = sum of 1/sigma[j]^2 over j; serves the conditional of shift_mu_theta
    ONE_LANE *s->sum_inverse_sigma_squared = 0;
    SUM_OF (total_inverse_sigma_squared, j, d->J) += 1 / square(d->sigma[j]);
    ONE_LANE *s->sum_inverse_sigma_squared += total_inverse_sigma_squared;
}

// Before the move, in runs by --check: it starts from the identity
KERNEL_TEAM(before_scale_tau) {
    ONE_LANE *s->scale_tau = 1;
}

// Before the move, in runs by --check: it starts from the identity
KERNEL_TEAM(before_shift_mu_theta) {
    ONE_LANE *s->shift_mu_theta = 0;
}

// The log Jacobian and its gradient: what the log density of the coordinates has besides that of mu, tau, theta
KERNEL_TEAM(jacobian_mu_tau_theta) {
    wide lp = 0;
    ALONG (e, d->J + 2) s->gradient[e] = 0;
    // from unknowns x to coordinates q: d lp/dq = d lp/dx * dx/dq + d log|dx/dq|/dq; lp gains log|dx/dq|. First theta:
    //     by centre and spread lp depends on what these are made of as well
    SUM_ALONG (j, d->J, &lp) lp += standard_chain(s->non_centring[j + 2], s->centre_theta[j], s->spread_theta[j], s->scale_theta[j],
            s->theta[j], &s->gradient[j + 2], &s->slope_centre_theta[j], &s->slope_spread_theta[j]);
    SUM_OF (total_slope_spread_theta, j, d->J) += s->slope_spread_theta[j];
    ONE_LANE s->gradient[1] += total_slope_spread_theta;
    SUM_OF (total_slope_centre_theta, j, d->J) += s->slope_centre_theta[j];
    ONE_LANE s->gradient[0] += total_slope_centre_theta;
    lp += s->position[1];
    ONE_LANE s->gradient[1] = *s->tau * s->gradient[1] + 1;
    STORE(s->log_density[BY_COORDINATES], lp);
}

// The log prior, one term for each unknown, in runs that request it.
KERNEL_PRIOR(log_prior) {  // KERNEL_PRIOR: as KERNEL_TEAM, for the log prior
    ONE_LANE *s->lprior_mu = -0.02 * square(*s->mu) - (log(5.0) + log(2 * GM_PI) / 2);
    ONE_LANE *s->lprior_tau = (log(2 / GM_PI) - log(5.0)) - log1p(0.04 * square(*s->tau));
    wide total_lprior_theta = 0;
    const wide inverse_tau_squared = 1 / square(*s->tau), log_tau = log(*s->tau);
    SUM_ALONG (j, d->J, &total_lprior_theta) total_lprior_theta += -0.5 * inverse_tau_squared * square(s->theta[j] - *s->mu) - log_tau
            - HALF_LOG_2PI;
    ONE_LANE *s->lprior_theta = total_lprior_theta;
}

#ifndef __CUDACC_RTC__       // the host's: NVRTC, CUDA's compiler of kernels, skips it

// mu from the law of its own statement
KERNEL_FORWARD(forward_mu) {  // KERNEL_FORWARD: a thread for each chain, on the host, for draws without data
    UNLESS_KEPT(VAR_mu, 0) {  // UNLESS_KEPT(VAR_x, k): unless the run keeps x[k] as it is
        Stream g = stream(at, VAR_mu, 0);
        const wide x = normal_mean_sd(&g, 0, 5);
        VERIFY(x, "mu", 0);
        *s->mu = x;
    }
}

// tau from the law of its own statement
KERNEL_FORWARD(forward_tau) {
    UNLESS_KEPT(VAR_tau, 0) {
        Stream g = stream(at, VAR_tau, 0);
        const wide x = half_cauchy(&g, 0, 5);
        VERIFY(x, "tau", 0);
        *s->tau = x;
    }
}

// theta from the law of its own statement
KERNEL_FORWARD(forward_theta) {
    for (long j = 0; j < d->J; j++) {
        UNLESS_KEPT(VAR_theta, j) {
            Stream g = stream(at, VAR_theta, j);
            const wide x = normal_mean_sd(&g, *s->mu, *s->tau);
            VERIFY(x, "theta", j);
            s->theta[j] = x;
        }
    }
}

// y from the law of its own statement, as the replicate
KERNEL_FORWARD(forward_y) {
    for (long j = 0; j < d->J; j++) {
        UNLESS_KEPT(VAR_y_rep, j) {
            Stream g = stream(at, VAR_y_rep, j);
            const wide x = normal_mean_sd(&g, s->theta[j], d->sigma[j]);
            VERIFY(x, "y_rep", j);
            s->y_rep[j] = x;
        }
    }
}

//   LAUNCH_...(kernel, run, n) runs a kernel for all chains of `run`, with threads for n elements or terms.
static void density_of_mu_tau_theta(GmRun *run) {
    LAUNCH_TEAM(transform_mu_tau_theta, run, d->J);
    LAUNCH_TEAM(density_mu_tau_theta, run, d->J);
}

static void jacobian_of_mu_tau_theta(GmRun *run) {
    LAUNCH_TEAM(jacobian_mu_tau_theta, run, d->J);
}

//   NUTS(run, density, stream, memory, position, lp, gradient, report, ...) makes a transition of NUTS from `position`, in unconstrained
//   coordinates, to its next draw. It calls `density` for lp and gradient at each point; `memory` to `report`, what the draws say of the
//   trajectory, are fields of State. NUTS_STREAM(x): of the stream of x the random numbers from 2^37 on; those before are of elements.
//   .coordinates: how many numbers the position has; .room: the memory, 48 numbers a coordinate (positions, momenta and gradients of points
//   in a trajectory, and estimates of variances, the diagonal of the inverse mass matrix) and 256 besides (the step size, what it is
//   adapted by, the place in a tree); .selection: the number of its selection; .accept: the mean acceptance that the step size aims at;
//   .depth: doublings of a trajectory at most. .alone: whether lp is known where a transition begins, since nothing else has changed what
//   it reads; GM_UNLESS_MISSING: if no values are missing. .marginal: auxiliaries are integrated out. .jacobian: computes the log Jacobian
//   alone, with its gradient, for `map`, which finds the mode of the unknowns. .standardised: the field that warm-up writes each effect's
//   non-centring to. gm_of(x): the number of the field x of State.
static void update_mu_tau_theta_by_hmc(GmRun *run) {
    LAUNCH_TEAM(enter_mu_tau_theta, run, d->J + 2 + d->J);
    NUTS(run, density_of_mu_tau_theta, NUTS_STREAM(mu), nuts, position, log_density, gradient, moves_mu, .name = "mu, tau, theta",
            .coordinates = d->J + 2, .room = 48 * d->J + 352, .alone = GM_UNLESS_MISSING, .marginal = 1, .selection = 1, .accept = 0.8,
            .depth = 10, .jacobian = jacobian_of_mu_tau_theta, .standardised = gm_of(next_non_centring));
    LAUNCH_TEAM(transform_mu_tau_theta, run, d->J);
}

static void setup(GmRun *run) {
    LAUNCH_SHARED(check_data, run, d->J);  // LAUNCH_SHARED: once, for what all chains share
    if (gm_found_fault(run)) return;
    LAUNCH_SHARED(sums_of_data, run, d->J);
}

static void derive(GmRun *run) {
    if (run->requests & GM_LOG_PRIOR) {  // GM_LOG_PRIOR, GM_LOG_LIK, GM_REPLICATES: what a run may request
        LAUNCH_TEAM(log_prior, run, d->J);
    }
    if (run->requests & GM_LOG_LIK) {
        LAUNCH_TEAM(log_likelihood, run, d->J);
    }
    if (run->requests & GM_REPLICATES) {
        LAUNCH_TEAM(replicate, run, d->J);
    }
}

GM_FOR_DRAWS(derive)  // GM_FOR_DRAWS(f) makes gm_f, which calls f for every chain

static void joint(GmRun *run) {
    LAUNCH_TEAM(log_joint, run, d->J);
}

// Draws without data, each after what its law reads.
//   LAUNCH_ONCE(kernel, run): with one thread for each chain.
static void forward(GmRun *run) {
    if (!GIVEN(run, mu)) LAUNCH_ONCE(forward_mu, run);  // GIVEN(run, x): the run gives or keeps all of x
    if (!GIVEN(run, tau)) LAUNCH_ONCE(forward_tau, run);
    if (!GIVEN(run, theta)) LAUNCH_ONCE(forward_theta, run);
    LAUNCH_ONCE(forward_y, run);
}

enum {  // fields of State
    STATE_y = 1, STATE_mu, STATE_tau, STATE_theta, STATE_nu_tau, STATE_scale_tau, STATE_shift_mu_theta, STATE_log_lik_y,
    STATE_y_rep, STATE_lprior_mu, STATE_lprior_tau, STATE_lprior_theta, STATE_lprior_y, STATE_sum_inverse_sigma_squared,
    STATE_position, STATE_gradient, STATE_log_density, STATE_nuts, STATE_moves_mu, STATE_non_centring,
    STATE_next_non_centring, STATE_centre_theta, STATE_spread_theta, STATE_scale_theta, STATE_slope_centre_theta,
    STATE_slope_spread_theta
};

//   Tables number fields of Data and State from 1; their columns are the structs of model.h: a field's .role is what it is to the
//   draws (GM_SUM: not in them), .rank its number of subscripts, .extent_of the fields that are its extents, .where the line of its
//   declaration.
static const GmField data_fields[] = {
    {.name = "J", .type = GM_INT, .role = GM_DATA, .offset = offsetof(Data, J), BOUNDED(0, INFINITY), .where = "model.gm:5",
     .declared = "int<lower=0> J"},
    {.name = "y", .type = GM_REAL, .role = GM_DATA, .rank = 1, .offset = offsetof(Data, y), .may_miss = 1, .may_be_left_out = 1,
            .finite = 1, .imputed_field = STATE_y, .where = "model.gm:6",
     .declared = "real y[J]", .extent_of = {DATA_J}},
    {.name = "sigma", .type = GM_REAL, .role = GM_DATA, .rank = 1, .offset = offsetof(Data, sigma), .finite = 1, BOUNDED(0, INFINITY),
            .where = "model.gm:7",
     .declared = "real<lower=0> sigma[J]", .extent_of = {DATA_J}},
};

static const GmField state_fields[] = {
    {.name = "y", .type = GM_REAL, .role = GM_IMPUTED, .rank = 1, .offset = offsetof(State, y), .where = "model.gm:6",
            .extent_of = {DATA_J}},
    {.name = "mu", .type = GM_WIDE, .role = GM_PARAMETER, .offset = offsetof(State, mu), .where = "model.gm:10"},
    {.name = "tau", .type = GM_WIDE, .role = GM_PARAMETER, .offset = offsetof(State, tau), BOUNDED(0, INFINITY), .where = "model.gm:11"},
    {.name = "theta", .type = GM_REAL, .role = GM_LATENT, .rank = 1, .offset = offsetof(State, theta), .where = "model.gm:14",
            .extent_of = {DATA_J}},
    {.name = "nu_tau", .type = GM_WIDE, .role = GM_AUXILIARY, .offset = offsetof(State, nu_tau), BOUNDED(0, INFINITY),
            .where = "model.gm:11"},
    {.name = "scale_tau", .type = GM_WIDE, .role = GM_SUM, .offset = offsetof(State, scale_tau), BOUNDED(0, INFINITY),
            .where = "model.gm:11"},
    {.name = "shift_mu_theta", .type = GM_WIDE, .role = GM_SUM, .offset = offsetof(State, shift_mu_theta), .where = "model.gm:10"},
    {.name = "log_lik_y", .type = GM_WIDE, .role = GM_PREDICTED, .rank = 1, .offset = offsetof(State, log_lik_y), .on_request = GM_LOG_LIK,
            .where = "model.gm:17", .extent_of = {DATA_J}},
    {.name = "y_rep", .type = GM_WIDE, .role = GM_PREDICTED, .rank = 1, .offset = offsetof(State, y_rep), .on_request = GM_REPLICATES,
            .where = "model.gm:17", .extent_of = {DATA_J}},
    {.name = "lprior_mu", .type = GM_WIDE, .role = GM_PREDICTED, .offset = offsetof(State, lprior_mu), .on_request = GM_LOG_PRIOR,
            .where = "model.gm:10"},
    {.name = "lprior_tau", .type = GM_WIDE, .role = GM_PREDICTED, .offset = offsetof(State, lprior_tau), .on_request = GM_LOG_PRIOR,
            .where = "model.gm:11"},
    {.name = "lprior_theta", .type = GM_WIDE, .role = GM_PREDICTED, .offset = offsetof(State, lprior_theta), .on_request = GM_LOG_PRIOR,
            .where = "model.gm:14"},
    {.name = "lprior_y", .type = GM_WIDE, .role = GM_PREDICTED, .offset = offsetof(State, lprior_y), .on_request = GM_LOG_PRIOR,
            .where = "model.gm:17"},
    {.name = "sum_inverse_sigma_squared", .type = GM_WIDE, .role = GM_SUM, .offset = offsetof(State, sum_inverse_sigma_squared),
            .shared = 1},  // .shared: one for all chains
    {.name = "position", .type = GM_WIDE, .role = GM_SUM, .rank = 1, .offset = offsetof(State, position)},
    {.name = "gradient", .type = GM_WIDE, .role = GM_SUM, .rank = 1, .offset = offsetof(State, gradient)},
    {.name = "log_density", .type = GM_WIDE, .role = GM_SUM, .rank = 1, .offset = offsetof(State, log_density)},
    {.name = "nuts", .type = GM_WIDE, .role = GM_SUM, .rank = 1, .offset = offsetof(State, nuts)},
    {.name = "moves_mu", .type = GM_WIDE, .role = GM_DIAGNOSTIC, .rank = 1, .offset = offsetof(State, moves_mu)},
    {.name = "non_centring", .type = GM_WIDE, .role = GM_SUM, .rank = 1, .offset = offsetof(State, non_centring)},
    {.name = "next_non_centring", .type = GM_WIDE, .role = GM_SUM, .rank = 1, .offset = offsetof(State, next_non_centring)},
    {.name = "centre_theta", .type = GM_WIDE, .role = GM_SUM, .rank = 1, .offset = offsetof(State, centre_theta)},
    {.name = "spread_theta", .type = GM_WIDE, .role = GM_SUM, .rank = 1, .offset = offsetof(State, spread_theta)},
    {.name = "scale_theta", .type = GM_WIDE, .role = GM_SUM, .rank = 1, .offset = offsetof(State, scale_theta)},
    {.name = "slope_centre_theta", .type = GM_WIDE, .role = GM_SUM, .rank = 1, .offset = offsetof(State, slope_centre_theta)},
    {.name = "slope_spread_theta", .type = GM_WIDE, .role = GM_SUM, .rank = 1, .offset = offsetof(State, slope_spread_theta)},
};

static void data_shape(int field, const void *data, GmShape *shape) {
    const Data *const d = (const Data *)data;
    (void)d;
    switch (field) {
    case DATA_y: case DATA_sigma:
        shape->dim[0] = d->J;
        break;
    }
}

static void state_shape(int field, const void *data, GmShape *shape) {
    const Data *const d = (const Data *)data;
    (void)d;
    switch (field) {
    case STATE_y: case STATE_theta: case STATE_log_lik_y: case STATE_y_rep: case STATE_centre_theta: case STATE_spread_theta:
    case STATE_scale_theta: case STATE_slope_centre_theta: case STATE_slope_spread_theta:
        shape->dim[0] = d->J;
        break;
    case STATE_position: case STATE_gradient: case STATE_non_centring: case STATE_next_non_centring:
        shape->dim[0] = d->J + 2;
        break;
    case STATE_log_density:
        shape->dim[0] = 2;
        break;
    case STATE_nuts:
        shape->dim[0] = 48 * d->J + 352;
        break;
    case STATE_moves_mu:
        shape->dim[0] = 6;
        break;
    }
}

// The terms of the log prior, for runs that request it.
static const GmPrior priors[] = {
    {.field = STATE_lprior_mu, .name = "mu"},
    {.field = STATE_lprior_tau, .name = "tau"},
    {.field = STATE_lprior_theta, .name = "theta"},
    {.field = STATE_lprior_y, .name = "y", .missing_of = DATA_y},
    {0},
};

// What is observed: its log-likelihood and replicates, for runs that request them.
static const GmObserved observed[] = {
    {.where = "model.gm:17", .name = "y", .data = DATA_y, .log_lik = STATE_log_lik_y, .replicate = STATE_y_rep},
    {0},
};

// What can be drawn from the law of its own statement, in order.
static const GmLaw laws[] = {
    {.field = STATE_mu, .variable = VAR_mu, .at_once = 0},  // .at_once: how many subscripts say what is drawn at once
    {.field = STATE_tau, .variable = VAR_tau, .at_once = 0},
    {.field = STATE_theta, .variable = VAR_theta, .at_once = 1},
    {.field = STATE_y_rep, .variable = VAR_y_rep, .at_once = 1, .data = DATA_y},
    {0},
};

// Sums that updates read, and parameters of their laws, for the command `why` of the program: {update, from 0, field of State or 0,
// 1 if the element that is drawn reads the element of its own number, or there is but one, text}.
static const GmStatistic statistics[] = {
    {6, STATE_sum_inverse_sigma_squared, 1, "sum of 1/sigma[j]^2 over j"},
    {1, 0, 0, "shape = 1"},
    {1, 0, 0, "rate = 0.04 + 1/tau^2"},
    {2, 0, 0, "precision = 1/tau^2 + 1/sigma[j]^2"},
    {2, 0, 0, "mean = (mu/tau^2 + y[j]/sigma[j]^2)/precision"},
    {3, 0, 0, "precision = 0.04 + J/tau^2"},
    {3, 0, 0, "mean = sum(j in 1:J, theta[j]/tau^2)/precision"},
    {4, 0, 0, "shape = 1/2 + 1/2*J"},
    {4, 0, 0, "rate = 1/nu_tau + 1/2*sum(j in 1:J, (theta[j] - mu)^2)"},
    {5, 0, 0, "precision = 0.08/nu_tau + sum(j in 1:J, (theta[j] - mu)^2/sigma[j]^2)"},
    {5, 0, 0, "mean = sum(j in 1:J, (theta[j] - mu)*(y[j] - mu)/sigma[j]^2)/precision"},
    {5, 0, 0, "lower = 0"},
    {5, 0, 0, "then tau = tau*scale_tau,  theta[j] = mu + (theta[j] - mu)*scale_tau,  nu_tau = nu_tau/scale_tau^2"},
    {6, 0, 0, "precision = 0.04 + sum(j in 1:J, 1/sigma[j]^2)"},
    {6, 0, 0, "mean = (sum(j in 1:J, (y[j] - theta[j])/sigma[j]^2) - 0.04*mu)/precision"},
    {6, 0, 0, "then mu = mu + shift_mu_theta,  theta[j] = theta[j] + shift_mu_theta"},
    {0, 0, 0, NULL}};

// What the unknowns of a selection cost by separate updates and together by HMC, in multiply-adds of a core, counted by gmc from kernels:
// [0] a sweep by separate updates, [1] the fixed cost of HMC, [2] each evaluation of its density. From [3] on the same on a GPU, two
// numbers each, of multiply-adds that wait for each other, some 4 ns: whatever the number of chains, and for each chain.
static void cost_1(const void *data, double *cost) {
    const Data *const d = (const Data *)data;
    (void)d;
    cost[0] = (959 + 53.2 * (double)d->J);
    cost[1] = (1477.4 + 53.9 * (double)d->J);
    cost[2] = (393 + 31 * (double)d->J);
    cost[3] = (9370 + 160 * pow(fmax((double)d->J, 1), 0.333333));
    cost[4] = (0.0585327 + 0.00924707 * (double)d->J);
    cost[5] = 6803;
    cost[6] = (0.0925733 + 0.0108898 * (double)d->J);
    cost[7] = (5189 + 200 * pow(fmax((double)d->J, 1), 0.333333));
    cost[8] = (0.0255868 + 0.0138921 * (double)d->J);
}

static const int fields_1[] = {STATE_mu, STATE_tau, STATE_theta, 0}, latents_1[] = {STATE_nu_tau, 0};

//   A selection is a set of unknowns for which warm-up tries both methods: .coupled is 1 where NUTS draws it even if a warm-up is too short
//   for that; .latents, auxiliaries that NUTS leaves as they are; .machine, its memory.
static const GmSelection selections[] = {
    {.name = "mu, tau, theta", .coupled = 0, .fields = fields_1, .diagnostics = STATE_moves_mu, .machine = STATE_nuts, .latents = latents_1,
            .cost = cost_1},
};

//   .derive_chain: as .derive, of one chain. .joint_as_written: log_joint has auxiliaries in runs by --check only.
enum { GM_DATA_FIELDS = 3, GM_STATE_FIELDS = 26, GM_UPDATES = 8 };  // how many
#define MODEL_TABLES \
    .derive = gm_derive, .derive_chain = derive, .forward = forward, .laws = laws, .joint_as_written = 1, \
    .data_shape = data_shape, .state_shape = state_shape, .priors = priors, .observed = observed, \
    .statistics = statistics, .selections = selections, \
    .n_selections = (int)(sizeof selections / sizeof *selections), .cost = cost_1

#endif

// ---- part 6: the sweep ----

#ifndef __CUDACC_RTC__       // the host's, which launches kernels: NVRTC, CUDA's compiler of these, skips it
static void update_missing_y(GmRun *run) { LAUNCH_MISSING(impute_y, run, DATA_y); }
static void update_nu_tau(GmRun *run) { LAUNCH_ONCE(draw_nu_tau, run); }
static void update_theta(GmRun *run) { LAUNCH(draw_theta, run, d->J); }
static void update_mu(GmRun *run) { LAUNCH_TEAM(draw_mu, run, d->J); }
static void update_tau(GmRun *run) { LAUNCH_TEAM(draw_tau, run, d->J); }

static void update_scale_tau(GmRun *run) {
    if (run->checking) LAUNCH_TEAM(before_scale_tau, run, 1);
    LAUNCH_TEAM(draw_scale_tau, run, d->J);
    LAUNCH_TEAM(move_tau, run, d->J);
}

static void update_shift_mu_theta(GmRun *run) {
    if (run->checking) LAUNCH_TEAM(before_shift_mu_theta, run, 1);
    LAUNCH_TEAM(draw_shift_mu_theta, run, d->J);
    LAUNCH_TEAM(add_shift_mu_theta, run, d->J);
}

// What each update draws, its function, and a selection: a set of unknowns for which warm-up takes NUTS, WITH_GRADIENTS, or those WITHOUT.
static const GmUpdate updates[] = {
    UPDATE("missing y", update_missing_y),
    UPDATE_WITHOUT_GRADIENTS("nu_tau", update_nu_tau, 1),
    UPDATE_WITHOUT_GRADIENTS("theta", update_theta, 1),
    UPDATE_WITHOUT_GRADIENTS("mu", update_mu, 1),
    UPDATE_WITHOUT_GRADIENTS("tau", update_tau, 1),
    UPDATE_WITHOUT_GRADIENTS("group move of tau, theta, nu_tau", update_scale_tau, 1),
    UPDATE_WITHOUT_GRADIENTS("group move of mu, theta", update_shift_mu_theta, 1),
    UPDATE_WITH_GRADIENTS("mu, tau, theta", update_mu_tau_theta_by_hmc, 1),
};

//   take_updates(run, u, n): n updates, from u on, without those that are not selected.
static void sweep(GmRun *run) {
    if (ANY_MISSING(run)) take_updates(run, updates, 1);      // missing y
    take_updates(run, &updates[1], 7);
}

GM_MODEL("eight_schools", "model.gm", MODEL_TABLES)      // read by the runtime; the tables define MODEL_TABLES
#endif
// Works named: Gorinova et al. 2020, International Conference on Machine Learning 37; Hoffman and Gelman 2014, Journal of Machine Learning
//     Research 15; Liu and Sabatti 2000, Biometrika 87; Papaspiliopoulos et al. 2007, Statistical Science 22.
