// stored.c -- the main function of gmc-stored, which gmc runs for its commands about stored draws: `gmc summary draws` and the like. gmc
// itself links no linear algebra, which the files that read data need.
#include "host/after/commands.h"
#include "host/messages.h"
#include "host/output.h"

int main(int argc, char **argv)
{
    gm_files_start();
    const int status = gm_about_draws(NULL, argc, argv);
    if (status >= 0) return gm_printed(status);
    gm_error("gmc-stored: `gmc --help` lists the commands about stored draws");
    return GM_EXIT_USAGE;
}
