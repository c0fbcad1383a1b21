// team_plan.h -- how the terms of a sum are cut into chunks on a GPU: by the number of terms alone, so that no result depends on the grid.
//
// A chunk is a block's work at a time. Few terms are one block's: blocks that wait for each other cost more. From some thousands on, short
// chunks keep more of the GPU busy. Where there are more chunks than blocks anyway, long ones have fewer sums over a block.
#ifndef GM_TEAM_PLAN_H
#define GM_TEAM_PLAN_H

#define GM_TEAM_CHUNK(n) ((n) <= 2048 ? 2048L : (n) <= 65536 ? 256L : (n) <= 262144 ? 1024L : 2048L)

#endif
