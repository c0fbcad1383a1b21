// host.h -- the fixed half of every fit program: the functions and types that its files share.
//
//   main -> run -> options -> data files -> data -> memory -> initial -> sweep loop -> draws, summary
//
// Each of the headers below has sections by the file that owns them, in the reading order of README.md: a file calls only those before it.
// Nothing here knows the mathematics of a model; that is gm_model (model.h).
#ifndef GM_HOST_H
#define GM_HOST_H

#include "messages.h"
#include "fields.h"
#include "options.h"
#include "output.h"
#include "inputs.h"
#include "chains.h"
#include "warmup.h"
#include "draws.h"
#include "runs.h"

#endif
