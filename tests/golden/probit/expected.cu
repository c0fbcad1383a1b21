// model.gm, compiled by gmc.
//
// One sweep updates, in this order, each given all else:
//   y[i]           every value weighed by its density              impute_y            line 7, if values are missing
//   z_y[i]         ~ normal(mean, 1 / sqrt(precision)), truncated  draw_z_y            line 14, an auxiliary *
//   (alpha, beta)  ~ joint normal                                  collect_alpha_beta  line 10 *
// In place of the updates marked *, where a trial in a warm-up of 300 sweeps or more prefers NUTS (Hoffman and Gelman 2014). They are then
// made after every k-th transition, as they lead out of narrow parts that hold trajectories: so seldom that they have a tenth of the
// work, or after each if trajectories diverge. NUTS leaves auxiliaries as they are; a sweep draws them before what reads them.
//   (alpha, beta)  drawn jointly by Hamiltonian Monte Carlo  density_alpha_beta  line 10, auxiliaries integrated out
//
// Above each kernel is what it computes, then what words mean that are neither C nor of the model, where they first stand. Those in
// capitals are macros of kernels.h, which make one text a program for a CPU and for a GPU. Throughout:
//   `wide` is double. `real` is double; on a GPU it is float unless a run has --precision double. `solve` is double; on a GPU it is float
//   where a run has --precision single. KERNEL_ macros declare `d`, the data, `s`, the state of one chain, and `at`: seed, chain and sweep,
//   of which its random numbers are functions. LAUNCH_ macros and their like declare `d`. Subscripts count from 1 in comments, as in the
//   model, and from 0 in the code. *s->x is a number, s->x[k] an element. square(x) is x*x.
//   KERNEL_TEAM: for each chain a team of threads, its lanes, all of which go through the body; local variables are each lane's own.
//   ALONG (j, n): j from 0 to n - 1, shared out among lanes, which then wait for each other, as one may read next what another wrote.
//   LANES (j, n): as ALONG, but nobody waits: each lane has the same j in every loop of n. SUM_ALONG (j, n, &a): as ALONG; then a has
//   grown, in every lane, by the sum of what all lanes add to it. SUM_OF (a, j, n) += x: declares a, the sum of x over j, the same in every
//   lane. LANES2 (i, n, j, m): as LANES, over pairs i, j. ALONG2 (i, n, j, m): as ALONG, over pairs i, j.
#define GM_HMC               // on a GPU kernels.h has Hamiltonian Monte Carlo
#define GM_JOINT_NORMALS     // on a GPU it has joint normals, drawn by kernels of the runtime
#include "gm.h"

// ---- part 1: the model ----

typedef struct Data {  // beside arrays: their extents
    long N, p;
    real *X;                                 // N x p
    int *y;                                  // N
} Data;
enum { DATA_N = 1, DATA_p, DATA_X, DATA_y };  // fields of Data

typedef struct State {  // of one chain; sizes of work arrays are in the tables
    int *y;                                  // responses, with missing values as they are drawn, N
    wide *alpha;                             // unknowns
    wide *beta;                              // unknowns, p
    real *z_y;                               // auxiliaries, N
    wide *log_lik_y;                         // for the draws, N
    int *y_rep;                              // for the draws, N
    wide *lprior_alpha, *lprior_beta;        // terms of the log prior
    wide *lprior_y;                          // of missing values: the host adds up their log_lik_, and writes those of observed ones only
    wide *sum_X_by_column;                   // sums of data, p
    wide *sum_X_X;                           // sums of data, p x p
    wide *rows_beta;                         // sums of rows of X times weights
    wide *scale_of_z_y, *joint_alpha_beta, *target_alpha_beta, *diagonal_alpha_beta, *rows_beta_2; // work arrays
    solve *precision_alpha_beta, *shift_alpha_beta, *rows_of_alpha_beta, *system_alpha_beta; // work arrays
    wide *position, *gradient, *log_density, *nuts, *moves_alpha; // of NUTS
    real *weight_alpha_beta_1;               // work arrays
    real *X_beta;                            // X times beta
} State;
enum { VAR_NONE, VAR_y, VAR_alpha, VAR_beta, VAR_z_y, VAR_y_rep = 6 };  // random streams, by the place in State

#include "kernels.h"

// ---- part 2: the Gibbs updates ----

// y[i] | rest: every value weighed by its density     if values are missing     model.gm:7
//   log density += y[i]*log_Phi(alpha + sum(j in 1:p, beta[j]*X[i, j])) + log_Phi(-alpha - sum(j in 1:p, beta[j]*X[i, j]))*(1 - y[i])
//   categorical_log_weights(&g, w, n): one of n, of probability proportional to exp(w). stream(at, VAR_x, k): the random numbers of x[k],
//   by which normal_mean_sd(&g, ...) and its like draw.
KERNEL(impute_y) {  // KERNEL: a thread for each element and chain
    EACH_MISSING (i, DATA_y) {  // EACH_MISSING (j, DATA_x): places j of x, row by row, without a value
        Stream g = stream(at, VAR_y, i);
        enum { first = 0, values = 2 };
        wide weight[values];
        const long old = s->y[i];
        for (long value = 0; value < values; value++) {
            const long x = first + value;
            wide lp = 0;
            wide sum_beta_X = 0; for (long j = 0; j < d->p; j++) sum_beta_X += s->beta[j] * d->X[i * d->p + j];
            lp += x * log_Phi(*s->alpha + sum_beta_X) + (1 - x) * log_Phi(-*s->alpha - sum_beta_X);
            weight[value] = lp;
        }
        const long chosen = categorical_log_weights(&g, weight, values);
        if (chosen < 1) FAULT("y", i, "no value has a positive probability");  // FAULT(x, k, message) ends the run
        const long x = chosen < 1 ? old : first + chosen - 1;
        NO_RATIO();  // NO_RATIO: none is checked
        s->y[i] = (int)x;
    }
}

// z_y[i] | rest ~ normal(mean, 1 / sqrt(precision)), truncated     in parallel     model.gm:14
//   an auxiliary of albert_chib: Albert and Chib 1993, Journal of the American Statistical Association 88
//   precision = 1, mean = alpha + sum(j in 1:p, beta[j]*X[i, j]), lower = if_else(y[i] == 1, 0, -inf), upper = if_else(y[i] == 1, inf, 0)
//   a pass over the rows of X, of which dot is that times beta; what it returns are weights of the row in sums over rows
//   h: a normal log density in x has two terms, -precision/2 x^2 + h x, so h = mean * precision. NORMAL_WITHIN(h, precision, lower, upper):
//   truncated to lie between these ends.
ROW(draw_z_y, i) {  // ROW(name, k): for row k
    const real h = *s->alpha + dot, precision = 1, lower = (s->y[i] == 1) ? 0 : -INFINITY, upper = (s->y[i] == 1) ? INFINITY : 0;
    DRAW(z_y, i, NORMAL_WITHIN(h, precision, lower, upper));  // DRAW(x, k, LAW) draws and stores x[k]
    return row_weight_and(s->z_y[i], square(s->z_y[i]));  // row_weight_and(w, t): weight w, and t is added to a total
}

// (alpha, beta) with fewer rows than coefficients (Bhattacharya et al. 2016): precision D + R'R, rows of R and targets over their sd
KERNEL_TEAM(collect_rows_alpha_beta) {
    const long n = d->p + 1;
    LANES (e, n) s->diagonal_alpha_beta[e] = s->shift_alpha_beta[e] = 0;
    LANES (e, d->N * n) s->rows_of_alpha_beta[e] = 0;
    ALONG (e, d->N) s->target_alpha_beta[e] = 0;
    ONE_LANE s->diagonal_alpha_beta[0] += 0.04;  // ONE_LANE: by one, while the others wait
    LANES (j, d->p) s->diagonal_alpha_beta[1 + j] += 0.16;
    LANES (i, d->N) s->target_alpha_beta[i] = s->z_y[i];
    ALONG (i, d->N) s->rows_of_alpha_beta[i * n] += 1;
    ALONG2 (i, d->N, j, d->p) s->rows_of_alpha_beta[i * n + 1 + j] += d->X[i * d->p + j];
    ONE_LANE s->joint_alpha_beta[0] = *s->alpha;
    ALONG (e, d->p) s->joint_alpha_beta[1 + e] = s->beta[e];
    ONE_LANE s->scale_of_z_y[1] = d->N;
}

// (alpha, beta) where the matrix has few elements that are not 0, or many columns: the diagonal apart from the rows,
//     then each row over its standard deviation, with its target
KERNEL_ONCE(list_rows_alpha_beta) {  // KERNEL_ONCE: a thread for each chain, with loops of its own
    const long n = d->p + 1;
    for (long e = 0; e < n; e++) s->shift_alpha_beta[e] = 0;
    SPARSE_ADD(0, 0, 0.02);  // SPARSE_ADD(j, k, x) adds x to J[j, k] and J[k, j]; where j = k that is 2 x
    for (long j = 0; j < d->p; j++) SPARSE_ADD(1 + j, 1 + j, 0.08);
    for (long i = 0; i < d->N; i++) {
        SPARSE_ROW(1);  // SPARSE_ROW(root): J gains r r', of a row r of entries times root
        SPARSE_TARGET(s->z_y[i]);  // SPARSE_TARGET(t): h gains t times that row
        SPARSE_PUT(0, 1);  // SPARSE_PUT(j, x): x is entry j of that row
        SPARSE_PUT_ROW(1, &d->X[i * d->p], d->p);  // SPARSE_PUT_ROW(j, x, p): x[p] are its entries from j on
    }
    s->joint_alpha_beta[0] = *s->alpha;
    for (long e = 0; e < d->p; e++) s->joint_alpha_beta[1 + e] = s->beta[e];
    s->scale_of_z_y[1] = d->N;
}

// (alpha, beta) | rest ~ normal with precision J and shift h, mean J^-1 h     normal terms of the log joint couple them     model.gm:10
//   J[alpha, alpha] += 0.04
//   J[beta[j], beta[j]] += 0.16   over j in 1:p
//   J[alpha, alpha] += 1   over i in 1:N
//   J[alpha, beta[j2]] += X[i, j2]   over i in 1:N, j2 in 1:p
//   h[alpha] += z_y[i]   over i in 1:N
//   J[beta[j], beta[j2]] += X[i, j]*X[i, j2]   over i in 1:N, j in 1:p, j2 in 1:p
//   h[beta[j]] += z_y[i]*X[i, j]   over i in 1:N, j in 1:p
//   the scale of z_y is drawn together with it: its square is gamma(count/2, (sum of squares - h'J^-1 h)/2) (Liu and Wu 1999).
//       scale_of_z_y has that sum, the count, and the scale
//   ADD_TWICE(J, e, f, x) adds x at e and at f, an entry and its mirror image.
KERNEL_TEAM(collect_alpha_beta) {
    const long n = d->p + 1;
    LANES (e, n * n) s->precision_alpha_beta[e] = 0;
    ALONG (e, n) s->shift_alpha_beta[e] = 0;
    ONE_LANE s->precision_alpha_beta[0] += 0.04;
    ALONG (j, d->p) s->precision_alpha_beta[(1 + j) * n + 1 + j] += 0.16;
    ONE_LANE s->precision_alpha_beta[0] += d->N;
    ALONG (j, d->p) ADD_TWICE(s->precision_alpha_beta, 1 + j, (1 + j) * n, s->sum_X_by_column[j]);
    SUM_OF (total_z_y, i, d->N) += s->z_y[i];
    ONE_LANE s->shift_alpha_beta[0] += total_z_y;
    LANES2 (j, d->p, j2, d->p) s->precision_alpha_beta[(1 + j) * n + 1 + j2] += s->sum_X_X[j * d->p + j2];
    ALONG (j, d->p) s->shift_alpha_beta[1 + j] += s->rows_beta[j];
    ONE_LANE s->joint_alpha_beta[0] = *s->alpha;
    ALONG (e, d->p) s->joint_alpha_beta[1 + e] = s->beta[e];
    ONE_LANE s->scale_of_z_y[1] = d->N;
}

// The latents, times the scale that was drawn with them
KERNEL_TEAM(rescale_z_y) {
    LANES (i, d->N) s->z_y[i] *= s->scale_of_z_y[2];
}

// ---- part 3: Hamiltonian Monte Carlo: log density and gradient ----

// Unconstrained coordinates q of (alpha, beta): (alpha, beta). kept_coordinate(q, v, x, fresh) is q where x still is v, the value at q,
//     so that no rounding moves it, else (mostly for float x) fresh
//   Of State: position, its coordinates; gradient, the derivatives of lp, the log density, by them; log_density, lp; nuts, its memory;
//   moves_, whose end is its name in the draws, what they report: acceptance, step size, depth, leapfrog steps, divergence, energy.
KERNEL_TEAM(enter_alpha_beta) {
    ONE_LANE s->position[0] = *s->alpha;
    LANES (j, d->p) s->position[j + 1] = s->beta[j];
}

// alpha, beta at these coordinates
KERNEL_TEAM(transform_alpha_beta) {
    ONE_LANE *s->alpha = s->position[0];
    LANES (j, d->p) s->beta[j] = s->position[j + 1];
}

// (alpha, beta): drawn jointly by Hamiltonian Monte Carlo     model.gm:10
//   taken if in a trial what mixes worst has, at equal cost, 1.3 times its effective draws by other updates, 1.6 to 5 times if some diverge
//   its log density, of which the code leaves out constants; that of its coordinates has the log Jacobian besides
//   log density += -log(5) - log(2*pi())/2 - 0.02*alpha^2
//   log density += -log(5/2) - log(2*pi())/2 - 0.08*beta[j]^2   over j in 1:p
//   log density += y[i]*log_Phi(alpha + sum(j in 1:p, beta[j]*X[i, j])) + log_Phi(-alpha - sum(j in 1:p, beta[j]*X[i, j]))*(1 - y[i])
//       over i in 1:N
KERNEL_TEAM(density_alpha_beta) {
    wide lp = 0, slope_alpha = 0;  // slope_x is the derivative of lp by x
    ALONG (e, d->p + 1) s->gradient[e] = 0;
    // alpha ~ normal(0, 5)
    lp -= 0.02 * square(*s->alpha);
    slope_alpha -= 0.04 * *s->alpha;
    // beta[j] ~ normal(0, 5/2)
    SUM_ALONG (j, d->p, &lp) {
        lp -= 0.08 * square(s->beta[j]);
        s->gradient[1 + j] -= 0.16 * s->beta[j];
    }
    // y[i] ~ bernoulli(Phi(alpha + sum(j in 1:p, beta[j]*X[i, j])))
    const wide current_alpha = *s->alpha;  // current_x is x
    SUM_ALONG (i, d->N, &lp, &slope_alpha) {
        const wide sum_beta_X = s->X_beta[i];
        lp += log_Phi((current_alpha + sum_beta_X) * (2L * s->y[i] - 1));
        const wide w1 = (2L * s->y[i] - 1) * log_Phi_dx((current_alpha + sum_beta_X) * (2L * s->y[i] - 1));
        s->weight_alpha_beta_1[i] = w1;
        slope_alpha += w1;
    }
    ONE_LANE {
        s->log_density[BY_UNKNOWNS] = lp;  // BY_COORDINATES, BY_UNKNOWNS: lp with the log Jacobian, for NUTS, and without, for --check
        s->gradient[0] += slope_alpha;
    }
}

// The gradient of the log density of (alpha, beta), from what density_alpha_beta and the passes over rows have left
KERNEL_TEAM(gradient_alpha_beta) {
    wide lp = s->log_density[BY_UNKNOWNS];
    ALONG (j, d->p) s->gradient[1 + j] += s->rows_beta_2[j];
    STORE(s->log_density[BY_COORDINATES], lp);  // STORE(a, x): one lane sets a to x
}

// ---- part 4: the log joint density, and what is computed for the draws ----

// The pointwise log-likelihood, in runs that request it.
KERNEL_ON_REQUEST(log_likelihood) {  // KERNEL_ON_REQUEST: as KERNEL_TEAM, for runs that request it
    LANES (i, d->N) {
        const wide sum_beta_X = s->X_beta[i];
        s->log_lik_y[i] = s->y[i] * log_Phi(*s->alpha + sum_beta_X) + log_Phi(-*s->alpha - sum_beta_X) * (1L - s->y[i]);
    }
}

// Replicates of what is observed, in runs that request them.
KERNEL_ON_REQUEST(replicate) {
    LANES (i, d->N) {
        const wide sum_beta_X = s->X_beta[i];
        {
            Stream g = stream(at, VAR_y_rep, i);
            const wide x = bernoulli(&g, Phi(*s->alpha + sum_beta_X));
            if (!(x >= 0)) FAULT("y_rep", i, "it cannot be drawn from bernoulli: an argument is out of range (model.gm:14)");
            if (!(x <= 1)) FAULT("y_rep", i, "it cannot be drawn from bernoulli: an argument is out of range (model.gm:14)");
            if (!(x >= -2147483647 && x <= 2147483647)) FAULT("y_rep", i, "its draw is not an integer of 32 bits");
            s->y_rep[i] = INTEGER_DRAWN(x);
        }
    }
}

// The log joint density of data and variables; with --check that of auxiliaries, too.
KERNEL_TEAM(log_joint) {
    wide lp = 0;
    // alpha ~ normal(0, 5)
    lp += -0.02 * square(*s->alpha) - (log(5.0) + log(2 * GM_PI) / 2);  // GM_PI is pi
    // beta[j] ~ normal(0, 5/2)
    SUM_ALONG (j, d->p, &lp) lp += -0.08 * square(s->beta[j]) - (log(2.5) + HALF_LOG_2PI);  // HALF_LOG_2PI is log(2*pi)/2
    if (CHECKING) {  // CHECKING: in sweeps, by --check or after the draws, that compare updates with the joint density
        // z_y[i] ~ normal(alpha + sum(j in 1:p, beta[j]*X[i, j]), 1), by albert_chib
        SUM_ALONG (i, d->N, &lp) {
            const wide sum_beta_X = s->X_beta[i];
            lp += -0.5 * square(-*s->alpha - sum_beta_X + s->z_y[i]) - HALF_LOG_2PI;
        }
        // target += within(z_y[i], if_else(y[i] == 1, 0, -inf), if_else(y[i] == 1, inf, 0)), by albert_chib
        SUM_ALONG (i, d->N, &lp) lp += within((wide)s->z_y[i], (s->y[i] == 1) ? 0 : -INFINITY, (s->y[i] == 1) ? INFINITY : 0);
    } else {
        // y[i] ~ bernoulli(Phi(alpha + sum(j in 1:p, beta[j]*X[i, j])))
        SUM_ALONG (i, d->N, &lp) {
            const wide sum_beta_X_2 = s->X_beta[i];
            lp += s->y[i] * log_Phi(*s->alpha + sum_beta_X_2) + log_Phi(-*s->alpha - sum_beta_X_2) * (1L - s->y[i]);
        }
    }
    RESULT(lp);  // RESULT(x): x is what the kernel gives back to the host
}

// ---- part 5: checks and sums of data, launches, tables for the runtime ----

// Data must lie in the support of their distributions.
KERNEL_TEAM(check_data) {
    LANES (i, d->N) {
        if (!IS_MISSING(d->y[i]) && (d->y[i] < 0 || d->y[i] > 1)) FAULT("y", i,
                "the value lies outside the support of bernoulli, 0 to 1 (model.gm:14)");
    }
}

// Sums of data: computed once. Each is set to 0, since terms are added to it.
//   SUM_INTO1 (i, first, n, sums, m): for n iterations i from first on, each of which adds to the m places of `sums`. PLACES (j, m): those
//   of its places, 0 to m - 1, that are this lane's to add to.
KERNEL_TEAM(sums_of_data) {
    // sum_X_by_column[j2] = sum of X[i, j2] over i; serves the conditional of (alpha, beta)
    if (!(FEW_ROWS(1, d->N, d->p + 1))) {
        ALONG (e, d->p) s->sum_X_by_column[e] = 0;
        SUM_INTO1 (i, 0, d->N, sum_X_by_column, d->p) {
            PLACES (j2, d->p) s->sum_X_by_column[j2] += d->X[i * d->p + j2];
        }
        TEAM_BARRIER();  // TEAM_BARRIER: all lanes wait for each other
    }
    // sum_X_X[j, j2] = sum of X[i, j]*X[i, j2] over i; serves the conditional of (alpha, beta); a matrix product, see setup
}

// The linear predictor of each row, sum(j, X[i, j]*beta[j]), for kernels that read it
ROW(predict_X_beta, i) {
    s->X_beta[i] = dot;
    return row_weight(0);
}

// What was drawn jointly, to its places
KERNEL_TEAM(place_alpha_beta) {
    ONE_LANE *s->alpha = s->joint_alpha_beta[0];
    ALONG (e, d->p) s->beta[e] = s->joint_alpha_beta[1 + e];
}

// The log prior, one term for each unknown, in runs that request it.
KERNEL_PRIOR(log_prior) {  // KERNEL_PRIOR: as KERNEL_TEAM, for the log prior
    ONE_LANE *s->lprior_alpha = -0.02 * square(*s->alpha) - (log(5.0) + log(2 * GM_PI) / 2);
    wide total_lprior_beta = 0;
    SUM_ALONG (j, d->p, &total_lprior_beta) total_lprior_beta += -0.08 * square(s->beta[j]) - (log(2.5) + HALF_LOG_2PI);
    ONE_LANE *s->lprior_beta = total_lprior_beta;
}

#ifndef __CUDACC_RTC__       // the host's: NVRTC, CUDA's compiler of kernels, skips it

// alpha from the law of its own statement
KERNEL_FORWARD(forward_alpha) {  // KERNEL_FORWARD: a thread for each chain, on the host, for draws without data
    UNLESS_KEPT(VAR_alpha, 0) {  // UNLESS_KEPT(VAR_x, k): unless the run keeps x[k] as it is
        Stream g = stream(at, VAR_alpha, 0);
        const wide x = normal_mean_sd(&g, 0, 5);
        VERIFY(x, "alpha", 0);  // VERIFY(x, ...) ends the run with a message if x is not finite
        *s->alpha = x;
    }
}

// beta from the law of its own statement
KERNEL_FORWARD(forward_beta) {
    for (long j = 0; j < d->p; j++) {
        UNLESS_KEPT(VAR_beta, j) {
            Stream g = stream(at, VAR_beta, j);
            const wide x = normal_mean_sd(&g, 0, 2.5);
            VERIFY(x, "beta", j);
            s->beta[j] = x;
        }
    }
}

// y from the law of its own statement, as the replicate
KERNEL_FORWARD(forward_y) {
    for (long i = 0; i < d->N; i++) {
        const wide sum_beta_X = s->X_beta[i];
        UNLESS_KEPT(VAR_y_rep, i) {
            Stream g = stream(at, VAR_y_rep, i);
            const wide x = bernoulli(&g, Phi(*s->alpha + sum_beta_X));
            if (!(x >= 0)) FAULT("y_rep", i, "it cannot be drawn from bernoulli: an argument is out of range (model.gm:14)");
            if (!(x <= 1)) FAULT("y_rep", i, "it cannot be drawn from bernoulli: an argument is out of range (model.gm:14)");
            if (!(x >= -2147483647 && x <= 2147483647)) FAULT("y_rep", i, "its draw is not an integer of 32 bits");
            s->y_rep[i] = INTEGER_DRAWN(x);
        }
    }
}

// Bytes of the rows that a row pass reads.
static double row_bytes(const GmRun *run) {
    const Data *const d = (const Data *)run->data;
    return (double)sizeof(real) * d->N * d->p;
}

// Their columns.
static long row_width(const void *data) {
    const Data *const d = (const Data *)data;
    (void)d;
    return d->p;
}

// Whether there are fewer rows than coefficients, or rows are listed one by one.
static int few_alpha(const GmRun *run) {
    const Data *const d = (const Data *)run->data;
    return FEW_ROWS(1, d->N, d->p + 1);
}

//   LAUNCH_...(kernel, run, n) runs a kernel for all chains of `run`, with threads for n elements or terms. LAUNCH_ROWS_ONLY(kernel, run,
//   n, p, X, b): for n rows of X, with their products with b.
static void density_of_alpha_beta(GmRun *run) {
    LAUNCH_TEAM(transform_alpha_beta, run, d->p);
    LAUNCH_ROWS_ONLY(predict_X_beta, run, d->N, d->p, d->X, beta);
    LAUNCH_TEAM(density_alpha_beta, run, d->p + d->N);
    ROW_SUMS(run, d->N, d->p, d->X, weight_alpha_beta_1, rows_beta_2);  // ROW_SUMS(run, n, p, X, w, out): X'w
    LAUNCH_TEAM(gradient_alpha_beta, run, d->p);
}

//   NUTS(run, density, stream, memory, position, lp, gradient, report, ...) makes a transition of NUTS from `position`, in unconstrained
//   coordinates, to its next draw. It calls `density` for lp and gradient at each point; `memory` to `report`, what the draws say of the
//   trajectory, are fields of State. NUTS_STREAM(x): of the stream of x the random numbers from 2^37 on; those before are of elements.
//   .coordinates: how many numbers the position has; .room: the memory, 48 numbers a coordinate (positions, momenta and gradients of points
//   in a trajectory, and estimates of variances, the diagonal of the inverse mass matrix) and 256 besides (the step size, what it is
//   adapted by, the place in a tree); .selection: the number of its selection; .accept: the mean acceptance that the step size aims at;
//   .depth: doublings of a trajectory at most. .alone: whether lp is known where a transition begins, since nothing else has changed what
//   it reads; GM_UNLESS_MISSING: if no values are missing. .marginal: auxiliaries are integrated out.
static void update_alpha_beta_by_hmc(GmRun *run) {
    LAUNCH_TEAM(enter_alpha_beta, run, d->p);
    NUTS(run, density_of_alpha_beta, NUTS_STREAM(alpha), nuts, position, log_density, gradient, moves_alpha, .name = "alpha, beta",
            .coordinates = d->p + 1, .room = 48 * d->p + 304, .alone = GM_UNLESS_MISSING, .marginal = 1, .selection = 1, .accept = 0.8,
            .depth = 10);
    LAUNCH_TEAM(transform_alpha_beta, run, d->p);
}

static void setup(GmRun *run) {
    LAUNCH_SHARED(check_data, run, d->N);  // LAUNCH_SHARED: once, for what all chains share
    LIST_ROWS(list_rows_alpha_beta, run, "alpha, beta", 1, d->p + 1, 0);
    LAUNCH_SHARED(sums_of_data, run, (long)d->N * d->p);
    if (!few_alpha(run)) {
        GRAM(run, d->N, d->p, 1, d->X, sum_X_X);  // GRAM(run, n, p, a, X, out): a X'X
    }
}

static void derive(GmRun *run) {
    if (run->requests & GM_LOG_PRIOR) {  // GM_LOG_PRIOR, GM_LOG_LIK, GM_REPLICATES: what a run may request
        LAUNCH_TEAM(log_prior, run, d->p);
    }
    if (run->requests & GM_LOG_LIK) {
        LAUNCH_ROWS_ONLY(predict_X_beta, run, d->N, d->p, d->X, beta);
        LAUNCH_TEAM(log_likelihood, run, d->N);
    }
    if (run->requests & GM_REPLICATES) {
        LAUNCH_ROWS_ONLY(predict_X_beta, run, d->N, d->p, d->X, beta);
        LAUNCH_TEAM(replicate, run, d->N);
    }
}

GM_FOR_DRAWS(derive)  // GM_FOR_DRAWS(f) makes gm_f, which calls f for every chain

static void joint(GmRun *run) {
    LAUNCH_ROWS_ONLY(predict_X_beta, run, d->N, d->p, d->X, beta);
    LAUNCH_TEAM(log_joint, run, d->p + d->N);
}

// Draws without data, each after what its law reads.
//   LAUNCH_ONCE(kernel, run): with one thread for each chain.
static void forward(GmRun *run) {
    if (!GIVEN(run, alpha)) LAUNCH_ONCE(forward_alpha, run);  // GIVEN(run, x): the run gives or keeps all of x
    if (!GIVEN(run, beta)) LAUNCH_ONCE(forward_beta, run);
    LAUNCH_ROWS_ONLY(predict_X_beta, run, d->N, d->p, d->X, beta);
    LAUNCH_ONCE(forward_y, run);
}

enum {  // fields of State
    STATE_y = 1, STATE_alpha, STATE_beta, STATE_z_y, STATE_log_lik_y, STATE_y_rep, STATE_lprior_alpha, STATE_lprior_beta,
    STATE_lprior_y, STATE_sum_X_by_column, STATE_sum_X_X, STATE_rows_beta, STATE_scale_of_z_y, STATE_precision_alpha_beta,
    STATE_shift_alpha_beta, STATE_joint_alpha_beta, STATE_rows_of_alpha_beta, STATE_target_alpha_beta,
    STATE_diagonal_alpha_beta, STATE_system_alpha_beta, STATE_position, STATE_gradient, STATE_log_density, STATE_nuts,
    STATE_moves_alpha, STATE_weight_alpha_beta_1, STATE_rows_beta_2, STATE_X_beta
};

//   Tables number fields of Data and State from 1; their columns are the structs of model.h: a field's .role is what it is to the
//   draws (GM_SUM: not in them), .rank its number of subscripts, .extent_of the fields that are its extents, .where the line of its
//   declaration.
static const GmField data_fields[] = {
    {.name = "N", .type = GM_INT, .role = GM_DATA, .offset = offsetof(Data, N), BOUNDED(0, INFINITY), .where = "model.gm:5",
     .declared = "int<lower=0> N"},
    {.name = "p", .type = GM_INT, .role = GM_DATA, .offset = offsetof(Data, p), BOUNDED(0, INFINITY), .where = "model.gm:5",
     .declared = "int<lower=0> p"},
    {.name = "X", .type = GM_REAL, .role = GM_DATA, .rank = 2, .offset = offsetof(Data, X), .finite = 1, .where = "model.gm:6",
     .declared = "real X[N, p]", .extent_of = {DATA_N, DATA_p}},
    {.name = "y", .type = GM_INT, .role = GM_DATA, .rank = 1, .offset = offsetof(Data, y), .may_miss = 1, .may_be_left_out = 1,
            .imputed_field = STATE_y, BOUNDED(0, 1), .where = "model.gm:7",
     .declared = "int<lower=0, upper=1> y[N]", .extent_of = {DATA_N}},
};

//   .shared: one for all chains.
static const GmField state_fields[] = {
    {.name = "y", .type = GM_INT, .role = GM_IMPUTED, .rank = 1, .offset = offsetof(State, y), BOUNDED(0, 1), .where = "model.gm:7",
            .extent_of = {DATA_N}},
    {.name = "alpha", .type = GM_WIDE, .role = GM_PARAMETER, .offset = offsetof(State, alpha), .where = "model.gm:10"},
    {.name = "beta", .type = GM_WIDE, .role = GM_PARAMETER, .rank = 1, .offset = offsetof(State, beta), .where = "model.gm:11",
            .extent_of = {DATA_p}},
    {.name = "z_y", .type = GM_REAL, .role = GM_AUXILIARY, .rank = 1, .offset = offsetof(State, z_y), .where = "model.gm:14",
            .extent_of = {DATA_N}},
    {.name = "log_lik_y", .type = GM_WIDE, .role = GM_PREDICTED, .rank = 1, .offset = offsetof(State, log_lik_y), .on_request = GM_LOG_LIK,
            .where = "model.gm:14", .extent_of = {DATA_N}},
    {.name = "y_rep", .type = GM_INT, .role = GM_PREDICTED, .rank = 1, .offset = offsetof(State, y_rep), .on_request = GM_REPLICATES,
            .where = "model.gm:14", .extent_of = {DATA_N}},
    {.name = "lprior_alpha", .type = GM_WIDE, .role = GM_PREDICTED, .offset = offsetof(State, lprior_alpha), .on_request = GM_LOG_PRIOR,
            .where = "model.gm:10"},
    {.name = "lprior_beta", .type = GM_WIDE, .role = GM_PREDICTED, .offset = offsetof(State, lprior_beta), .on_request = GM_LOG_PRIOR,
            .where = "model.gm:11"},
    {.name = "lprior_y", .type = GM_WIDE, .role = GM_PREDICTED, .offset = offsetof(State, lprior_y), .on_request = GM_LOG_PRIOR,
            .where = "model.gm:14"},
    {.name = "sum_X_by_column", .type = GM_WIDE, .role = GM_SUM, .rank = 1, .offset = offsetof(State, sum_X_by_column), .shared = 1,
            .in_place_of = 1},
    {.name = "sum_X_X", .type = GM_WIDE, .role = GM_SUM, .rank = 2, .offset = offsetof(State, sum_X_X), .shared = 1, .in_place_of = 1},
    {.name = "rows_beta", .type = GM_WIDE, .role = GM_SUM, .rank = 1, .offset = offsetof(State, rows_beta)},
    {.name = "scale_of_z_y", .type = GM_WIDE, .role = GM_SUM, .rank = 1, .offset = offsetof(State, scale_of_z_y)},
    {.name = "precision_alpha_beta", .type = GM_SOLVE, .role = GM_SUM, .rank = 3, .offset = offsetof(State, precision_alpha_beta),
            .in_place_of = 1},
    {.name = "shift_alpha_beta", .type = GM_SOLVE, .role = GM_SUM, .rank = 2, .offset = offsetof(State, shift_alpha_beta)},
    {.name = "joint_alpha_beta", .type = GM_WIDE, .role = GM_SUM, .rank = 1, .offset = offsetof(State, joint_alpha_beta)},
    {.name = "rows_of_alpha_beta", .type = GM_SOLVE, .role = GM_SUM, .rank = 2, .offset = offsetof(State, rows_of_alpha_beta),
            .in_place_of = 1},
    {.name = "target_alpha_beta", .type = GM_WIDE, .role = GM_SUM, .rank = 1, .offset = offsetof(State, target_alpha_beta),
            .in_place_of = 1},
    {.name = "diagonal_alpha_beta", .type = GM_WIDE, .role = GM_SUM, .rank = 1, .offset = offsetof(State, diagonal_alpha_beta),
            .in_place_of = 1},
    {.name = "system_alpha_beta", .type = GM_SOLVE, .role = GM_SUM, .rank = 2, .offset = offsetof(State, system_alpha_beta),
            .in_place_of = 1},
    {.name = "position", .type = GM_WIDE, .role = GM_SUM, .rank = 1, .offset = offsetof(State, position)},
    {.name = "gradient", .type = GM_WIDE, .role = GM_SUM, .rank = 1, .offset = offsetof(State, gradient)},
    {.name = "log_density", .type = GM_WIDE, .role = GM_SUM, .rank = 1, .offset = offsetof(State, log_density)},
    {.name = "nuts", .type = GM_WIDE, .role = GM_SUM, .rank = 1, .offset = offsetof(State, nuts)},
    {.name = "moves_alpha", .type = GM_WIDE, .role = GM_DIAGNOSTIC, .rank = 1, .offset = offsetof(State, moves_alpha)},
    {.name = "weight_alpha_beta_1", .type = GM_REAL, .role = GM_SUM, .rank = 1, .offset = offsetof(State, weight_alpha_beta_1)},
    {.name = "rows_beta_2", .type = GM_WIDE, .role = GM_SUM, .rank = 1, .offset = offsetof(State, rows_beta_2)},
    {.name = "X_beta", .type = GM_REAL, .role = GM_SUM, .rank = 1, .offset = offsetof(State, X_beta)},
};

static void data_shape(int field, const void *data, GmShape *shape) {
    const Data *const d = (const Data *)data;
    (void)d;
    switch (field) {
    case DATA_X:
        shape->dim[0] = d->N;
        shape->dim[1] = d->p;
        break;
    case DATA_y:
        shape->dim[0] = d->N;
        break;
    }
}

static void state_shape(int field, const void *data, GmShape *shape) {
    const Data *const d = (const Data *)data;
    (void)d;
    switch (field) {
    case STATE_y: case STATE_z_y: case STATE_log_lik_y: case STATE_y_rep: case STATE_weight_alpha_beta_1: case STATE_X_beta:
        shape->dim[0] = d->N;
        break;
    case STATE_beta: case STATE_rows_beta: case STATE_rows_beta_2:
        shape->dim[0] = d->p;
        break;
    case STATE_sum_X_by_column:
        shape->dim[0] = d->N < d->p + 1 ? 0 : d->p;
        break;
    case STATE_sum_X_X:
        shape->dim[0] = d->N < d->p + 1 ? 0 : d->p;
        shape->dim[1] = d->p;
        break;
    case STATE_scale_of_z_y:
        shape->dim[0] = 3;
        break;
    case STATE_precision_alpha_beta:
        shape->dim[0] = d->N < d->p + 1 ? 0 : 1;
        shape->dim[1] = d->p + 1;
        shape->dim[2] = d->p + 1;
        break;
    case STATE_shift_alpha_beta:
        shape->dim[0] = 1;
        shape->dim[1] = d->p + 1;
        break;
    case STATE_joint_alpha_beta: case STATE_position: case STATE_gradient:
        shape->dim[0] = d->p + 1;
        break;
    case STATE_rows_of_alpha_beta:
        shape->dim[0] = d->N < d->p + 1 ? d->N : 0;
        shape->dim[1] = d->p + 1;
        break;
    case STATE_target_alpha_beta:
        shape->dim[0] = d->N < d->p + 1 ? d->N : 0;
        break;
    case STATE_diagonal_alpha_beta:
        shape->dim[0] = d->N < d->p + 1 ? d->p + 1 : 0;
        break;
    case STATE_system_alpha_beta:
        shape->dim[0] = d->N < d->p + 1 ? d->N : 0;
        shape->dim[1] = d->N;
        break;
    case STATE_log_density:
        shape->dim[0] = 2;
        break;
    case STATE_nuts:
        shape->dim[0] = 48 * d->p + 304;
        break;
    case STATE_moves_alpha:
        shape->dim[0] = 6;
        break;
    }
}

// The terms of the log prior, for runs that request it.
static const GmPrior priors[] = {
    {.field = STATE_lprior_alpha, .name = "alpha"},
    {.field = STATE_lprior_beta, .name = "beta"},
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
    {.field = STATE_alpha, .variable = VAR_alpha, .at_once = 0},  // .at_once: how many subscripts say what is drawn at once
    {.field = STATE_beta, .variable = VAR_beta, .at_once = 1},
    {.field = STATE_y_rep, .variable = VAR_y_rep, .at_once = 1, .data = DATA_y},
    {0},
};

// Sums that updates read, and parameters of their laws, for the command `why` of the program: {update, from 0, field of State or 0,
// 1 if the element that is drawn reads the element of its own number, or there is but one, text}.
static const GmStatistic statistics[] = {
    {1, 0, 0, "precision = 1"},
    {1, 0, 0, "mean = alpha + sum(j in 1:p, beta[j]*X[i, j])"},
    {1, 0, 0, "lower = if_else(y[i] == 1, 0, -inf)"},
    {1, 0, 0, "upper = if_else(y[i] == 1, inf, 0)"},
    {0, 0, 0, NULL}};

// What the unknowns of a selection cost by separate updates and together by HMC, in multiply-adds of a core, counted by gmc from kernels:
// [0] a sweep by separate updates, [1] the fixed cost of HMC, [2] each evaluation of its density. From [3] on the same on a GPU, two
// numbers each, of multiply-adds that wait for each other, some 4 ns: whatever the number of chains, and for each chain.
static void cost_1(const void *data, double *cost) {
    const Data *const d = (const Data *)data;
    (void)d;
    cost[0] = (334 + 65.8 * (double)d->N + 31.4 * (double)d->p + 0.32 * (double)d->N * (double)d->p + 0.4 * (double)d->p * (double)d->p
            + 1.6 * (double)d->p * (double)d->p * (double)(long)(d->p <= 12)
            + 0.05 * (1 + (double)d->p) * (1 + (double)d->p) * (1 + (double)d->p) + 4000 * (double)(long)(12 <= d->p));
    cost[1] = (1420 + 40.4 * (double)d->p);
    cost[2] = (464 + 24.8 * (double)d->N + 9.8 * (double)d->p + 0.32 * (double)d->N * (double)d->p);
    cost[3] = (6827 + 45 * (double)d->p + 40 * pow(fmax((double)d->N, 1), 0.333333));
    cost[4] = (0.0203857 + 0.00581611 * (double)d->N + 0.0027165 * (double)d->p + 0.000419531 * (double)d->N * (double)d->p
            + 0.000424414 * (double)d->p * (double)d->p + 9.76563e-05 * (double)d->p * (double)d->p * (double)(long)(d->p <= 12)
            + 3.05176e-06 * (1 + (double)d->p) * (1 + (double)d->p) * (1 + (double)d->p) + 0.244141 * (double)(long)(12 <= d->p));
    cost[5] = 6752;
    cost[6] = (0.0870699 + 0.00326582 * (double)d->p);
    cost[7] = (7549 + 40 * pow(fmax((double)d->N, 1), 0.333333) + 40 * pow(fmax((double)d->p, 1), 0.333333));
    cost[8] = (0.0291203 + 0.00251367 * (double)d->N + 0.00219814 * (double)d->p + 0.000819531 * (double)d->N * (double)d->p);
    if (gm_rows_listed(1)) {
        cost[0] = (242 + 66 * (double)d->N + 0.4 * (double)d->p + 0.32 * (double)d->N * (double)d->p
                + 1.6 * (double)d->p * (double)(long)(d->p <= 12) + 2.4 * (double)d->N * (double)(long)(d->N <= 12))
                + 0.6 * gm_sparse_time(1);
    }
}

static const int fields_1[] = {STATE_alpha, STATE_beta, 0}, latents_1[] = {STATE_z_y, 0};

//   A selection is a set of unknowns for which warm-up tries both methods: .coupled is 1 where NUTS draws it even if a warm-up is too short
//   for that; .latents, auxiliaries that NUTS leaves as they are; .machine, its memory.
static const GmSelection selections[] = {
    {.name = "alpha, beta", .coupled = 0, .fields = fields_1, .diagnostics = STATE_moves_alpha, .machine = STATE_nuts, .latents = latents_1,
            .cost = cost_1},
};

//   .derive_chain: as .derive, of one chain. .joint_as_written: log_joint has auxiliaries in runs by --check only.
enum { GM_DATA_FIELDS = 4, GM_STATE_FIELDS = 28, GM_UPDATES = 4 };  // how many
#define MODEL_TABLES \
    .derive = gm_derive, .derive_chain = derive, .forward = forward, .laws = laws, .joint_as_written = 1, \
    .row_bytes = row_bytes, .row_width = row_width, .data_shape = data_shape, .state_shape = state_shape, \
    .priors = priors, .observed = observed, .statistics = statistics, .selections = selections, \
    .n_selections = (int)(sizeof selections / sizeof *selections), .cost = cost_1

#endif

// ---- part 6: the sweep ----

//   LAUNCH_ROWS_AND(kernel, run, n, p, X, b, sums, total): for n rows of X, with their products with b.
#ifndef __CUDACC_RTC__       // the host's, which launches kernels: NVRTC, CUDA's compiler of these, skips it
static void update_missing_y(GmRun *run) { LAUNCH_MISSING(impute_y, run, DATA_y); }
static void update_z_y(GmRun *run) { LAUNCH_ROWS_AND(draw_z_y, run, d->N, d->p, d->X, beta, rows_beta, scale_of_z_y); }

//   What NORMAL_ macros draw is J^-1 h + L'^-1 noise, of the precision J = L L' and the shift h from the kernel before; noise is standard
//   normal. `joint_` has the values of the block, before and after. NORMAL_DENSE(run, stream, name, n, J, h, x) draws x[n].
//   NORMAL_ROWS(run, stream, name, r, n, D, h, R, t, M, x): x[n], J = D + R'R, with R't added to h, by the system M of its r < n rows.
//   _SCALED: after the scale move of the kernel's comment. NORMAL_SPARSE(kernel, run, stream, name, k, h, x) draws x, joint normal number
//   k, whose J and h the kernel lists.
static void update_alpha_beta(GmRun *run) {
    if (LISTED(1)) {  // LISTED(k): whether joint normal k is drawn from its rows, as they are listed
        NORMAL_SPARSE_SCALED(list_rows_alpha_beta, run, VAR_alpha, "alpha", 1, shift_alpha_beta, joint_alpha_beta, scale_of_z_y);
    } else if (few_alpha(run)) {
        LAUNCH_TEAM(collect_rows_alpha_beta, run, d->p + d->N + (long)d->N * d->p);
        NORMAL_ROWS_SCALED(run, VAR_alpha, "alpha", d->N, d->p + 1, diagonal_alpha_beta, shift_alpha_beta, rows_of_alpha_beta,
                target_alpha_beta, system_alpha_beta, joint_alpha_beta, scale_of_z_y);
    } else {
        LAUNCH_TEAM(collect_alpha_beta, run, (long)(d->p + 1) * (d->p + 1) + d->p + d->N + (long)d->p * d->p);
        NORMAL_DENSE_SCALED(run, VAR_alpha, "alpha", d->p + 1, precision_alpha_beta, shift_alpha_beta, joint_alpha_beta, scale_of_z_y);
    }
    LAUNCH_TEAM(place_alpha_beta, run, d->p);
    if (run->auxiliaries) LAUNCH_TEAM(rescale_z_y, run, d->N);
}

// What each update draws, its function, and a selection: a set of unknowns for which warm-up takes NUTS, WITH_GRADIENTS, or those WITHOUT.
static const GmUpdate updates[] = {
    UPDATE("missing y", update_missing_y),
    UPDATE_WITHOUT_GRADIENTS("z_y", update_z_y, 1),
    UPDATE_WITHOUT_GRADIENTS("alpha, beta", update_alpha_beta, 1),
    UPDATE_WITH_GRADIENTS("alpha, beta", update_alpha_beta_by_hmc, 1),
};

//   take_updates(run, u, n): n updates, from u on, without those that are not selected.
static void sweep(GmRun *run) {
    if (ANY_MISSING(run)) take_updates(run, updates, 1);      // missing y
    take_updates(run, &updates[1], 3);
}

GM_MODEL("probit", "model.gm", MODEL_TABLES)      // read by the runtime; the tables define MODEL_TABLES
#endif
// Works named: Bhattacharya et al. 2016, Biometrika 103; Hoffman and Gelman 2014, Journal of Machine Learning Research 15; Liu and Wu 1999,
//     Journal of the American Statistical Association 94.
