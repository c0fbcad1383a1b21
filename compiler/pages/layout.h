// layout.h -- where nodes, plates and edges of a diagram stand.
#ifndef GMC_LAYOUT_H
#define GMC_LAYOUT_H
#include "diagram.h"

// Fills places and sizes, in pixels: no two nodes overlap, and a plate holds its own nodes and no others.
void lay_out(Diagram *d);
#endif
