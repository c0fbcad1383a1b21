// home.h -- gmc's own files: beside the program (build/gmc) or installed (PREFIX/bin/gmc).
#ifndef GMC_HOME_H
#define GMC_HOME_H

#include <limits.h>
#include "../front/front.h"

typedef struct Home {
    char stdlib[PATH_MAX], runtime[PATH_MAX], archive[PATH_MAX], stored[PATH_MAX];
} Home;

bool home_find(Home *h);  // false: they are not there
void home_missing(void);  // the message
Source *home_source(Arena *a, const char *path);
// Every .gm file below a folder, in order of name. depth: 0. false after a message.
bool home_library(Arena *a, const char *folder, Library *lib, Diags *d, int depth);

#endif
