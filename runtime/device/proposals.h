// proposals.h -- joint normals, with the scales that they are given, as proposals for unknowns whose likelihood is not normal
// (compiler/graph/updates/proposals.c).
//
//   target      p(x) = q(x) w(x), q a joint density in which quadratics replace log densities; the program puts log w(x) into the memory of
//               the update
//   method      Hastings 1970: a draw from a kernel that is reversible for q is accepted with probability min(1, w(x')/w(x)). That kernel
//               draws scales one after the other, in an order or its reverse with equal probability (scales.h), and then the joint normal
//               given them.
//   adaptation  in warm-up the quadratics follow the chain, with a rate of 3/(n + 3) in sweep n: an average in which a sweep weighs with
//               the square of n. It begins anew in each of the first 20 sweeps. Later it does so where 3 + n/8 proposals in a row were not
//               accepted, or log w has changed by 10 or more in one that was. That happens where the chain, by itself or by other updates,
//               leaves the region that the average is from. The maximum of a quadratic is at most a distance away from where it is taken.
//               That distance is 1 at first, 1.2 times as much after each proposal that is accepted and 0.7 times after others: a log
//               density may be flat far from its maximum. After warm-up the quadratics stay
//   how often   in each of the first 100 sweeps; later at intervals such that proposals take SHARE of the work of the other updates, or
//               ENOUGH multiply-adds a sweep. Where fewer than 1 in 50 were accepted between the last two powers of 2 from 64 on: every
//               16th sweep in warm-up, and none after it
//   where       on a CPU. A GPU keeps to the other updates, as do a warm-up of fewer than 50 sweeps and chains that run in lockstep
//   --check     the ratios of the draws are of q; an accepted proposal adds log w(x') - log w(x), and after any other nothing has changed
//   test        tests/stat/proposals.py
#ifndef GM_PROPOSALS_H
#define GM_PROPOSALS_H

// The memory of an update, from 0: the rate; log w at the chain's state, and before the draw; whether that was accepted; how many were made
// and accepted since the last power of 2, and whether it rests; sweeps averaged, the last of them; how many proposals in a row were not
// accepted; how far at most the maximum of a quadratic is from where it is taken.
enum {
    GM_PROPOSAL_RATE,
    GM_PROPOSAL_WEIGHT,
    GM_PROPOSAL_KEPT,
    GM_PROPOSAL_ACCEPTED,
    GM_PROPOSAL_MADE,
    GM_PROPOSAL_TAKEN,
    GM_PROPOSAL_RESTS,
    GM_PROPOSAL_SWEEPS,
    GM_PROPOSAL_LAST,
    GM_PROPOSAL_MISSED,
    GM_PROPOSAL_REACH,
    GM_PROPOSAL_ROOM
};

#if !defined(__CUDACC__)

static const double GM_PROPOSALS_LEAST = 0.02, GM_PROPOSALS_WIDEN = 1.2, GM_PROPOSALS_NARROW = 0.7, GM_PROPOSALS_WIDEST = 1e3,
                    GM_PROPOSALS_FAR = 10, GM_PROPOSALS_ENOUGH = 5e4, GM_PROPOSALS_SHARE = 0.5;
enum {
    GM_PROPOSALS_WARMUP = 50,
    GM_PROPOSALS_FIRST = 64,
    GM_PROPOSALS_RARELY = 16,
    GM_PROPOSALS_START = 20,
    GM_PROPOSALS_PATIENCE = 3,
    GM_PROPOSALS_PATIENT = 8,
    GM_PROPOSALS_OFTEN = 100,
    GM_PROPOSALS_TRIALS = 7,
    GM_PROPOSALS_DRAWS = 3
};

GM_HOST_ONLY int gm_may_propose(const GmRun *run)
{
    return !TAKES_GPU_UPDATES(run) && run->chain >= 0 && (run->warmup >= GM_PROPOSALS_WARMUP || run->checking);
}
GM_HOST_ONLY int gm_proposals_warm(const GmRun *run) { return run->sweep < run->warmup || run->checking; }

// Whether the quadratics change in this sweep, by the rate in memory.
GM_HOST_ONLY int gm_adapts(GmRun *run, size_t field)
{
    if (!gm_may_propose(run)) return 0;
    wide *const room = (wide *)gm_at(wide, gm_of_chain(run, run->chain), field);
    const double sweep = (double)run->sweep;
    if (run->sweep == 0)
        for (int k = 0; k < GM_PROPOSAL_ROOM; k++) room[k] = k == GM_PROPOSAL_REACH;
    if (sweep < GM_PROPOSALS_START || room[GM_PROPOSAL_LAST] < sweep - 1 ||
        room[GM_PROPOSAL_MISSED] > GM_PROPOSALS_PATIENCE + room[GM_PROPOSAL_SWEEPS] / GM_PROPOSALS_PATIENT)
        room[GM_PROPOSAL_SWEEPS] = room[GM_PROPOSAL_MISSED] = 0;
    room[GM_PROPOSAL_RATE] = 3 / (room[GM_PROPOSAL_SWEEPS] + 3);
    room[GM_PROPOSAL_SWEEPS]++;
    room[GM_PROPOSAL_LAST] = sweep;
    return gm_proposals_warm(run);
}

// Sweeps from one proposal to the next; sweep, trial: multiply-adds of a sweep and of an evaluation with the joint normal integrated out,
// sparse the number of that.
GM_HOST_ONLY long gm_proposals_every(const GmRun *run, int sparse, double sweep, double trial, double scales)
{
    const double factor = sparse ? gm_sparse_work(sparse) : 0;
    if (factor < 0 || run->sweep < GM_PROPOSALS_OFTEN) return 1;
    return (long)ceil((GM_PROPOSALS_TRIALS * scales + GM_PROPOSALS_DRAWS) * (trial + factor) /
                      fmax(GM_PROPOSALS_SHARE * (sweep + factor), GM_PROPOSALS_ENOUGH));
}

// Whether the chain makes the update in this sweep.
GM_HOST_ONLY int gm_proposes(GmRun *run, size_t field, GmSelected *selected, int sparse, double sweep_work, double trial_work,
                              double scales)
{
    if (!gm_may_propose(run)) return 0;
    if (!run->checking && run->sweep % gm_proposals_every(run, sparse, sweep_work, trial_work, scales) != 0) {
        // which the updates seem to cost in each sweep
        if (selected && run->sweep >= run->warmup / 12) selected->scales -= GM_PROPOSALS_DRAWS * trial_work;
        return 0;
    }
    wide *const room = (wide *)gm_at(wide, gm_of_chain(run, run->chain), field);
    const long sweep = run->sweep;
    if ((sweep >= GM_PROPOSALS_FIRST && sweep < run->warmup && (sweep & (sweep - 1)) == 0) || sweep == run->warmup) {
        if (room[GM_PROPOSAL_MADE] > 0) room[GM_PROPOSAL_RESTS] = room[GM_PROPOSAL_TAKEN] < GM_PROPOSALS_LEAST * room[GM_PROPOSAL_MADE];
        room[GM_PROPOSAL_MADE] = room[GM_PROPOSAL_TAKEN] = 0;
    }
    return run->checking || !(room[GM_PROPOSAL_RESTS] > 0) || (gm_proposals_warm(run) && sweep % GM_PROPOSALS_RARELY == 0);
}

// refused: a fault was met on the way, such as a precision that is not positive definite.
GM_HOST_ONLY void gm_decide(GmRun *run, uint32_t var, size_t field, int refused)
{
    wide *const room = (wide *)gm_at(wide, gm_of_chain(run, run->chain), field);
    Stream g = stream(sweep_place(run, run->chain), var, STREAM_PROPOSAL);
    const double more = room[GM_PROPOSAL_WEIGHT] - room[GM_PROPOSAL_KEPT];
    const int accepted = !refused && more > -exponential_standard(&g);  // not, where it is no number
    room[GM_PROPOSAL_ACCEPTED] = accepted;
    room[GM_PROPOSAL_MADE]++;
    room[GM_PROPOSAL_TAKEN] += accepted;
    room[GM_PROPOSAL_MISSED] = accepted ? 0 : room[GM_PROPOSAL_MISSED] + 1;
    room[GM_PROPOSAL_REACH] = accepted ? fmin(GM_PROPOSALS_WIDEN * room[GM_PROPOSAL_REACH], GM_PROPOSALS_WIDEST)
                                       : fmax(GM_PROPOSALS_NARROW * room[GM_PROPOSAL_REACH], 1);
    if (accepted && fabs(more) > GM_PROPOSALS_FAR) room[GM_PROPOSAL_SWEEPS] = 0;
    if (accepted) gm_ratio(run, run->chain, more, fabs(room[GM_PROPOSAL_WEIGHT]) + fabs(room[GM_PROPOSAL_KEPT]));
    else if (run->checking) run->check_log_q[run->chain] = 0;
}

// As statements of an update's function, in this order: what a chain that adapts does next; the update goes on if the chain proposes, and
// faults are no more than noted; the end of the proposal.
#define ADAPTS(run, room) gm_adapts(run, gm_of(room))
#define PROPOSE(run, room, selection, sparse, sweep, trial, scales)                                                                       \
    int gm_refused = 0, gm_now;                                                                                                           \
    do {                                                                                                                                  \
        gm_data(run);                                                                                                                     \
        gm_now = gm_proposes(run, gm_of(room), selection ? gm_selected(run, selection, run->chain) : NULL, sparse, sweep, trial, scales); \
    } while (0);                                                                                                                          \
    if (!gm_now) return;                                                                                                                  \
    run->tried = &gm_refused
#define DECIDE(run, variable, room)                        \
    do {                                                   \
        gm_data(run);                                      \
        run->tried = NULL;                                 \
        gm_decide(run, variable, gm_of(room), gm_refused); \
    } while (0)

#else

#define ADAPTS(run, room)                                           0
#define PROPOSE(run, room, selection, sparse, sweep, trial, scales) return
#define DECIDE(run, variable, room) \
    do {                            \
    } while (0)

#endif

#endif
