// plan.h -- all headers of the folder, in the order of reading, for the folders behind it: a graph with its schedule.
#ifndef GMC_PLAN_H
#define GMC_PLAN_H
#include "graph.h"
#include "conditions.h"
#include "domains.h"
#include "law.h"
#include "density.h"
#include "zeros.h"
#include "requirements.h"
#include "arguments.h"
#include "coverage.h"
#include "claims.h"
#include "afresh.h"
#include "neighbours.h"
#include "steps.h"
#endif
