// layout.c -- layers from top to bottom, plate by plate, the innermost first.
//
// Within a plate its nodes and the plates in it are items. Each stands a layer below those it depends on; in a layer, items are ordered by
// the mean place of their neighbours (Sugiyama, Tagawa and Toda 1981). An edge over several layers has a place of its own in each, so that
// it passes between the items. Places are found by two sweeps that keep the gaps, one from each side, and their mean keeps them, too.
#include <stdlib.h>
#include <string.h>
#include "layout.h"

enum { GAP_ACROSS = 26, GAP_DOWN = 44, PADDING = 16, LABEL = 18, LANE = 10, NODE_HEIGHT = 40, ROUNDS = 8 };

typedef struct Item {
    int node, plate;  // which it is; -1: neither
    int layer;
    double width, height, x;  // x: its centre
    double wanted;
} Item;

typedef struct Link {
    int from, to;  // items
    bool back;     // it closes a circle
    int edge;      // of the diagram; a link of several edges: the first
} Link;

typedef struct Level {  // the items of one plate
    Diagram *d;
    int plate;
    int nitems, nlinks, nsegments;
    Item *item;
    Link *link;
    Link *segment;  // from layer to layer
    int nlayers;
} Level;

static double width_of(const DiagramNode *v)
{
    double letters = (double)strlen(v->name);
    const char *mark = strchr(v->name, '_');
    if (letters > 3) letters = mark && mark - v->name < 7 ? 1 + 0.7 * (double)strlen(mark) : letters;  // a Greek letter with a subscript
    const double text = 9 * letters + 6 * (double)strlen(v->index) + 18;
    return text < NODE_HEIGHT ? NODE_HEIGHT : text;
}

// The item of a plate that a node is, or is in; -1: it is outside.
static int item_of(const Level *l, int node)
{
    int at = l->d->node[node].plate, below = -1;
    for (; at != l->plate; at = l->d->plate[at].parent) {
        if (at == 0) return -1;
        below = at;
    }
    for (int i = 0; i < l->nitems; i++)
        if (below < 0 ? l->item[i].node == node : l->item[i].plate == below) return i;
    return -1;
}

// Links that lead back to an item from which a way leads to them do not count for layers.
static void find_back(Level *l, int i, char *state)
{
    state[i] = 1;
    for (int k = 0; k < l->nlinks; k++) {
        if (l->link[k].from != i) continue;
        if (state[l->link[k].to] == 1) l->link[k].back = true;
        else if (!state[l->link[k].to]) find_back(l, l->link[k].to, state);
    }
    state[i] = 2;
}

static void find_layers(Level *l)
{
    char *state = arena_alloc(l->d->arena, (size_t)l->nitems + 1);
    for (int i = 0; i < l->nitems; i++)
        if (!state[i]) find_back(l, i, state);
    for (int round = 0; round < l->nitems; round++)
        for (int k = 0; k < l->nlinks; k++) {
            Item *to = &l->item[l->link[k].to];
            const int below = l->item[l->link[k].from].layer + 1;
            if (!l->link[k].back && to->layer < below) to->layer = below;
        }
    // what nothing leads to stands just above what it leads to
    for (int i = 0; i < l->nitems; i++) {
        int least = -1;
        bool led = false;
        for (int k = 0; k < l->nlinks; k++) {
            if (l->link[k].back) continue;
            led |= l->link[k].to == i;
            if (l->link[k].from == i && (least < 0 || l->item[l->link[k].to].layer < least)) least = l->item[l->link[k].to].layer;
        }
        if (!led && least > 0) l->item[i].layer = least - 1;
    }
    for (int i = 0; i < l->nitems; i++)
        if (l->item[i].layer + 1 > l->nlayers) l->nlayers = l->item[i].layer + 1;
}

// Long links become segments through places of their own.
static void find_segments(Level *l)
{
    int more = 0;
    for (int k = 0; k < l->nlinks; k++) more += abs(l->item[l->link[k].to].layer - l->item[l->link[k].from].layer);
    Item *all = NEW_N(l->d->arena, Item, l->nitems + more + 1);
    memcpy(all, l->item, sizeof *all * (size_t)l->nitems);
    l->item = all;
    l->segment = NEW_N(l->d->arena, Link, l->nlinks + more + 1);
    for (int k = 0; k < l->nlinks; k++) {
        int at = l->link[k].from;
        const int to = l->link[k].to;
        const bool down = l->item[to].layer > l->item[at].layer;
        for (int layer = l->item[at].layer + 1; down && layer < l->item[to].layer; layer++) {
            l->item[l->nitems] = (Item){.node = -1, .plate = -1, .layer = layer, .width = LANE};
            l->segment[l->nsegments++] = (Link){at, l->nitems, false, l->link[k].edge};
            at = l->nitems++;
        }
        l->segment[l->nsegments++] = (Link){at, to, false, l->link[k].edge};
    }
}

static const Item *sorted_items;
static int by_wanted(const void *a, const void *b)
{
    const Item *x = &sorted_items[*(const int *)a], *y = &sorted_items[*(const int *)b];
    return x->wanted < y->wanted ? -1 : x->wanted > y->wanted ? 1 : *(const int *)a - *(const int *)b;
}

static int items_of(const Level *l, int layer, int *list)
{
    int n = 0;
    for (int i = 0; i < l->nitems; i++)
        if (l->item[i].layer == layer) list[n++] = i;
    return n;
}

static double gap(const Item *a, const Item *b) { return (a->width + b->width) / 2 + GAP_ACROSS; }

// The items of a layer, in their order, as near to what is wanted as the gaps allow.
static void place_layer(Level *l, const int *list, int n)
{
    double *left = NEW_N(l->d->arena, double, n + 1), *right = NEW_N(l->d->arena, double, n + 1);
    for (int i = 0; i < n; i++) {
        const Item *it = &l->item[list[i]];
        left[i] = it->wanted;
        if (i && left[i] < left[i - 1] + gap(&l->item[list[i - 1]], it)) left[i] = left[i - 1] + gap(&l->item[list[i - 1]], it);
    }
    for (int i = n - 1; i >= 0; i--) {
        const Item *it = &l->item[list[i]];
        right[i] = it->wanted;
        if (i < n - 1 && right[i] > right[i + 1] - gap(it, &l->item[list[i + 1]])) right[i] = right[i + 1] - gap(it, &l->item[list[i + 1]]);
    }
    for (int i = 0; i < n; i++) l->item[list[i]].x = (left[i] + right[i]) / 2;
}

static void order(Level *l)
{
    int *list = NEW_N(l->d->arena, int, l->nitems + 1);
    for (int layer = 0; layer < l->nlayers; layer++) {
        const int n = items_of(l, layer, list);
        double width = 0;
        for (int i = 0; i < n; i++) {
            Item *it = &l->item[list[i]];
            it->x = width + it->width / 2;
            width += it->width + GAP_ACROSS;
        }
        for (int i = 0; i < n; i++) l->item[list[i]].x -= width / 2;
    }
    for (int round = 0; round < ROUNDS; round++)
        for (int step = 0; step < l->nlayers; step++) {
            const bool down = round % 2 == 0;
            const int layer = down ? step : l->nlayers - 1 - step, n = items_of(l, layer, list);
            for (int i = 0; i < n; i++) {
                Item *it = &l->item[list[i]];
                double sum = 0;
                int met = 0;
                for (int k = 0; k < l->nsegments; k++) {
                    const Link *s = &l->segment[k];
                    const int other = s->from == list[i] ? s->to : s->to == list[i] ? s->from : -1;
                    if (other < 0 || l->item[other].layer == layer || ((l->item[other].layer < layer) != down && round < ROUNDS - 2)) continue;
                    sum += l->item[other].x;
                    met++;
                }
                it->wanted = met ? sum / met : it->x;
            }
            sorted_items = l->item;
            qsort(list, (size_t)n, sizeof *list, by_wanted);
            place_layer(l, list, n);
        }
}

// Sizes and places within the plate; bends of edges, relative to it.
static void settle(Level *l)
{
    Diagram *d = l->d;
    double least = 0, most = 0, y = PADDING;
    for (int i = 0; i < l->nitems; i++) {
        const Item *it = &l->item[i];
        if (i == 0 || it->x - it->width / 2 < least) least = it->x - it->width / 2;
        if (i == 0 || it->x + it->width / 2 > most) most = it->x + it->width / 2;
    }
    int *list = NEW_N(d->arena, int, l->nitems + 1);
    double *middle = NEW_N(d->arena, double, l->nitems + 1);
    for (int layer = 0; layer < l->nlayers; layer++) {
        const int n = items_of(l, layer, list);
        double height = 0;
        for (int i = 0; i < n; i++)
            if (l->item[list[i]].height > height) height = l->item[list[i]].height;
        for (int i = 0; i < n; i++) {
            Item *it = &l->item[list[i]];
            it->x += PADDING - least;
            middle[list[i]] = y + height / 2;
            if (it->node >= 0) d->node[it->node].x = it->x, d->node[it->node].y = middle[list[i]];
            if (it->plate >= 0) d->plate[it->plate].x = it->x - it->width / 2, d->plate[it->plate].y = middle[list[i]] - it->height / 2;
        }
        y += height + (layer + 1 < l->nlayers ? GAP_DOWN : 0);
    }
    for (int k = 0; k < l->nsegments; k++) {
        const Item *it = &l->item[l->segment[k].to];
        DiagramEdge *e = &d->edge[l->segment[k].edge];
        if (it->node >= 0 || it->plate >= 0 || e->n == MOST_BENDS) continue;
        e->x[e->n] = it->x;
        e->y[e->n++] = middle[l->segment[k].to];
    }
    DiagramPlate *p = &d->plate[l->plate];
    p->width = most - least + 2 * PADDING;
    p->height = y + PADDING + (l->plate ? LABEL : 0);
    const double label = l->plate ? 7.2 * (double)strlen(p->label) + 2 * PADDING : 0;
    if (p->width < label) {
        const double shift = (label - p->width) / 2;
        for (int i = 0; i < l->nitems; i++) {
            if (l->item[i].node >= 0) d->node[l->item[i].node].x += shift;
            if (l->item[i].plate >= 0) d->plate[l->item[i].plate].x += shift;
        }
        p->width = label;
    }
}

static void lay_out_plate(Diagram *d, int plate)
{
    Level level = {.d = d, .plate = plate}, *l = &level;
    l->item = NEW_N(d->arena, Item, d->nnodes + d->nplates);
    for (int k = 1; k < d->nplates; k++) {
        if (d->plate[k].parent != plate) continue;
        lay_out_plate(d, k);
        l->item[l->nitems++] = (Item){.node = -1, .plate = k, .width = d->plate[k].width, .height = d->plate[k].height};
    }
    for (int k = 0; k < d->nnodes; k++)
        if (d->node[k].plate == plate) {
            d->node[k].width = width_of(&d->node[k]);
            d->node[k].height = d->node[k].kind == NODE_IS_DATA || d->node[k].kind == NODE_IS_TERM ? 28 : NODE_HEIGHT;
            // what depends on itself has a loop on its right
            const double width = d->node[k].width + (d->node[k].to_itself ? 56 : 0);
            l->item[l->nitems++] = (Item){.node = k, .plate = -1, .width = width, .height = d->node[k].height};
        }
    l->link = NEW_N(d->arena, Link, d->nedges + 1);
    for (int k = 0; k < d->nedges; k++) {
        const int from = item_of(l, d->edge[k].from), to = item_of(l, d->edge[k].to);
        if (from >= 0 && to >= 0 && from != to) l->link[l->nlinks++] = (Link){from, to, false, k};
    }
    find_layers(l);
    find_segments(l);
    order(l);
    settle(l);
}

static void move(Diagram *d, int plate, double x, double y)
{
    for (int k = 0; k < d->nnodes; k++)
        if (d->node[k].plate == plate) d->node[k].x += x, d->node[k].y += y;
    for (int k = 1; k < d->nplates; k++) {
        if (d->plate[k].parent != plate) continue;
        d->plate[k].x += x;
        d->plate[k].y += y;
        move(d, k, d->plate[k].x, d->plate[k].y);
    }
}

// The innermost plate that both ends of an edge are in: there its bends were found.
static int plate_around(const Diagram *d, const DiagramEdge *e)
{
    for (int at = d->node[e->from].plate;; at = d->plate[at].parent)
        for (int other = d->node[e->to].plate;; other = d->plate[other].parent) {
            if (at == other) return at;
            if (other == 0) break;
        }
}

void lay_out(Diagram *d)
{
    lay_out_plate(d, 0);
    d->width = d->plate[0].width;
    d->height = d->plate[0].height;
    move(d, 0, 0, 0);
    for (int k = 0; k < d->nedges; k++) {
        DiagramEdge *e = &d->edge[k];
        const DiagramPlate *p = &d->plate[plate_around(d, e)];
        for (int i = 0; i < e->n; i++) e->x[i] += p->x, e->y[i] += p->y;
    }
}
