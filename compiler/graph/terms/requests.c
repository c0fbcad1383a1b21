// requests.c -- what the model requests, in its infer block.
#include "requests.h"
#include "supports.h"

const Request *request_of(const Graph *g, const Var *v)
{
    // how to draw is not how to find a mode
    for (const Request *r = g->method == METHOD_EM ? NULL : g->model->requests; r; r = r->next)
        for (int i = 0; r->block == BLOCK_INFER && i < r->nnames; i++)
            if (r->names[i] == v->name) return r;
    return NULL;
}

bool asked_for(const Graph *g, const Var *v, Method method)
{
    const Request *r = request_of(g, v);
    return r && r->method == method;
}

// For modes all are summed out, where their values are finitely many.
bool asked_marginal(const Graph *g, const Var *v)
{
    if (g->method == METHOD_EM)
        return v->discrete && v->base == BASE_INT && v->kind != VAR_AUXILIARY && end_of_summed(v, 0) && end_of_summed(v, 1);
    return v->kind != VAR_DATA && asked_for(g, v, METHOD_MARGINAL);
}

const Request *asked_collapsed(const Graph *g, const Var *v)
{
    const Request *r = request_of(g, v);
    return r && r->method == METHOD_COLLAPSED ? r : NULL;
}

bool is_collapsed(const Graph *g, const Var *v) { return asked_collapsed(g, v) != NULL; }

bool asks_for_gradients(const Request *r) { return r->method == METHOD_NUTS || r->method == METHOD_CHEES || r->method == METHOD_HMC; }

// The model asks for the scale to be drawn without this: infer { tau by gibbs(group_move = off); }
bool is_switched_off(const Graph *g, const Var *s, SettingId setting)
{
    const Request *asked = request_of(g, s);
    for (int i = 0; asked && i < asked->nsettings; i++)
        if (asked->setting[i].id == setting && !asked->setting[i].word) return true;
    return false;
}

bool in_turn_asked(const Graph *g, const Var *v)
{
    const Request *r = request_of(g, v);
    return r && r->nnames == 1 && r->method == METHOD_GIBBS && r->nsettings == 1 && is_switched_off(g, v, SETTING_JOINT);
}

const Request *together_asked(const Graph *g, const Var *v)
{
    const Request *r = request_of(g, v);
    return r && r->nnames > 1 && r->method == METHOD_GIBBS ? r : NULL;
}
