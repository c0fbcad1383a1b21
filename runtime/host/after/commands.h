// commands.h -- the commands about stored draws, for run.c and for gmc.
#ifndef GM_COMMANDS_H
#define GM_COMMANDS_H

struct GmModel;

// The status of the command argv[1], if it is one about stored draws; -1: it is none. model: NULL in gmc.
int gm_about_draws(const struct GmModel *model, int argc, char **argv);

#endif
