// forward.h -- draws from the model without data: each unknown from the law of its own statement, each response from its law.
#ifndef GMC_GRAPH_FORWARD_H
#define GMC_GRAPH_FORWARD_H
#include "../graph.h"

typedef struct Forward {  // a variable, or a statement that draws none
    const Var *of;        // the unknown, or the response; NULL: a statement
    Var *into;            // what is drawn: the unknown itself, of a response its replicate
    Span span;
    Site *sites;          // in the order in which its elements are drawn
    bool begins_with_data;  // of a response: elements that no statement draws have the values of the data
    bool sorted;             // an ordered vector, whose elements have one law: they are drawn without regard to order, then sorted
    bool begins_with_nan;   // elements that are read before they are drawn are no numbers
    const char *refused;    // why it cannot be drawn forward, and what to do; NULL: it can
    bool for_responses;     // without it the unknowns can be drawn, but not all responses
    struct Forward *next;   // in the order in which they are drawn
} Forward;

bool find_forward(Graph *g);                    // fills g->forward; false after a message
void forward_print(FILE *out, const Graph *g);  // what is drawn from which law, in order
#endif
