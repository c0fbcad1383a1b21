// launch.h -- how kernels are launched; the host half of kernels.h.
//
//   LAUNCH(draw_theta, run, n)            KERNEL: n elements
//   LAUNCH_MISSING(impute_y, run, field)  KERNEL: the missing elements of a field of Data, counted from 1
//   LAUNCH_COLOURS(draw_x, run, n, 2)     KERNEL: the elements of one class modulo 2 after the other
//   LAUNCH_COLOURS_TEAM(draw_x, run, work, 2)         KERNEL_TEAM: the same
//   LAUNCH_ROWS(draw_z, run, n, p, X, beta, out)      ROW: dot = X[k]*beta for each row, out[p] = sum of weight * X[k]
//   LAUNCH_ROWS_AND(..., out, total)                  the same, and total[0] = the sum of what rows add to it
//   LAUNCH_ROWS_ONLY(draw_z, run, n, p, X, beta)      nothing is added up
//   LAUNCH_TEAM(draw_tau, run, work)      KERNEL_TEAM: `work` is the number of iterations of its loops
//   LAUNCH_ONCE(slice_R, run)             KERNEL_ONCE
//   LAUNCH_SHARED(sums_of_data, run, work)            KERNEL_TEAM, what it computes belongs to all chains
//
// On the CPU, chains run in parallel, each making a batch of sweeps by itself. If there are fewer chains than threads, threads share the
// elements of a launch. If the rows of row passes exceed the caches, chains run in lockstep instead, launch by launch. Then rows are read
// from memory once for all chains. The draws are the same. On a GPU a launch serves all chains of the run.
#ifndef GM_LAUNCH_H
#define GM_LAUNCH_H

#include "launch_base.h"
#include "launch_elements.h"
#include "launch_rows.h"
#include "launch_joint.h"
#include "launch_nuts.h"
#include "launch_updates.h"

#endif
