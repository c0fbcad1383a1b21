// commands.c -- the commands about stored draws, by name.
#include "after.h"
#include "watch.h"

#include <string.h>

typedef struct Command {
    const char *name;
    int (*run)(const GmModel *model, int argc, char **argv);
} Command;

static const Command commands[] = {
#define COMMAND(name, function, arguments, help) {name, function},
#include "commands.def"
};
enum { N_COMMANDS = sizeof commands / sizeof *commands };

int gm_about_draws(const GmModel *model, int argc, char **argv)
{
    for (int k = 0; argc > 1 && k < N_COMMANDS; k++)
        if (strcmp(argv[1], commands[k].name) == 0) return commands[k].run(model, argc - 1, argv + 1);
    return -1;
}
