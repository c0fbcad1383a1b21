// main.c -- the entry of every fit program. Alone in its file, so that a test may bring its own.
#include "host.h"

int main(int argc, char **argv)
{
    return gm_fit(&gm_model, argc, argv);
}
