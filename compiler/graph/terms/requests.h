// requests.h -- what the model requests.
#ifndef GMC_GRAPH_REQUESTS_H
#define GMC_GRAPH_REQUESTS_H
#include "../graph.h"

const Request *request_of(const Graph *g, const Var *v);      // what `infer` asks for v, alone or with others; NULL: nothing
bool asked_for(const Graph *g, const Var *v, Method method);  // by this method
bool asked_marginal(const Graph *g, const Var *v);            // to be summed out
// the request for weights that are integrated out; NULL: there is none
const Request *asked_collapsed(const Graph *g, const Var *v);
bool is_collapsed(const Graph *g, const Var *v);                        // the model requests it
bool asks_for_gradients(const Request *r);                              // the request asks for HMC or NUTS
bool is_switched_off(const Graph *g, const Var *v, SettingId setting);  // the request for v has this setting off
bool in_turn_asked(const Graph *g, const Var *v);                       // infer { v by gibbs(joint = off); }
// the request for a joint draw of several unknowns that names v; NULL: there is none
const Request *together_asked(const Graph *g, const Var *v);
#endif
