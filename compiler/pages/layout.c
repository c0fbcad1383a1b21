// layout.c -- layers from top to bottom, plate by plate, the innermost first.
//
// Within a plate its nodes and the plates in it are items. Each stands a layer below those it depends on; in a layer, items are ordered by
// the mean place of their neighbours (Sugiyama, Tagawa and Toda 1981). An edge over several layers has a place of its own in each, so that
// it passes between the items. Places are found by two sweeps that keep the gaps, one from each side, and their mean keeps them, too.
#include <stdlib.h>
#include <string.h>
#include "layout.h"

#define LETTER 7.2  // of labels, in the mean
enum { MARGIN = 10, GAP_ACROSS = 26, GAP_DOWN = 44, PADDING = 16, LABEL = 18, LANE = 10, NODE_HEIGHT = 40, ROUNDS = 8 };

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
    int nlanes;
    struct Lane {  // of edges between an item and what is outside of the plate: places that pass the items between
        int item;
        bool from;     // the edges begin at the item
        int n, first;  // so many items from this one on
    } * lane;
} Level;

static double letters(const SplitName *s) { return s->greek ? 1 : (double)strlen(s->base); }

static double width_of(Arena *a, const DiagramNode *v)
{
    const SplitName name = split_name(a, v->name);
    double text = (v->kind == NODE_IS_COMPUTED ? 26 : 18) + 9 * letters(&name) + 6 * (double)strlen(v->index);
    for (const SplitName *s = name.below; s; s = s->below) text += 7 * letters(s) + 7;
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

// An edge from outside passes the layers above its end by a lane, which all edges to this end share; one to the outside those below.
static struct Lane *lane_of(Level *l, int item, bool from)
{
    for (int k = 0; k < l->nlanes; k++)
        if (l->lane[k].item == item && l->lane[k].from == from) return &l->lane[k];
    return NULL;
}

static void find_lanes(Level *l)
{
    Diagram *d = l->d;
    l->lane = NEW_N(d->arena, struct Lane, 2 * l->nitems + 1);
    const int own = l->nitems;
    for (int k = 0; k < d->nedges; k++) {
        const int a = item_of(l, d->edge[k].from), b = item_of(l, d->edge[k].to);
        if ((a < 0) == (b < 0)) continue;
        const bool from = a >= 0;
        const int item = from ? a : b;
        if (item >= own || lane_of(l, item, from)) continue;
        const int begin = from ? l->item[item].layer + 1 : 0, end = from ? l->nlayers : l->item[item].layer;
        if (begin >= end) continue;
        Item *all = NEW_N(d->arena, Item, l->nitems + end - begin);
        memcpy(all, l->item, sizeof *all * (size_t)l->nitems);
        l->item = all;
        Link *segments = NEW_N(d->arena, Link, l->nsegments + end - begin + 1);
        if (l->nsegments) memcpy(segments, l->segment, sizeof *segments * (size_t)l->nsegments);
        l->segment = segments;
        l->lane[l->nlanes++] = (struct Lane){item, from, end - begin, l->nitems};
        int before = from ? item : -1;
        for (int layer = begin; layer < end; layer++) {
            l->item[l->nitems] = (Item){.node = -1, .plate = -1, .layer = layer, .width = LANE};
            if (before >= 0) l->segment[l->nsegments++] = (Link){before, l->nitems, false, -1};
            before = l->nitems++;
        }
        if (!from) l->segment[l->nsegments++] = (Link){before, item, false, -1};
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
                    if (other < 0 || l->item[other].layer == layer || ((l->item[other].layer < layer) != down && round < ROUNDS - 2))
                        continue;
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

static void bend(const Level *l, DiagramEdge *e, double x, double y)
{
    if (e->n == MOST_BENDS) return;
    e->x[e->n] = x;
    e->y[e->n] = y;
    e->plate[e->n++] = l->plate;
}

// An edge passes a layer upright, so that it stays beside what is higher than it.
static void pass(const Level *l, DiagramEdge *e, int item, const double *middle, const double *height)
{
    const double x = l->item[item].x, half = height[l->item[item].layer] / 2 - NODE_HEIGHT / 2;
    bend(l, e, x, middle[item] - half);
    if (half > 0) bend(l, e, x, middle[item] + half);
}

// Where edges from this item to the outside leave the plate.
static double exit_of(Level *l, int item)
{
    const struct Lane *lane = lane_of(l, item, true);
    return l->item[lane ? lane->first + lane->n - 1 : item].x;
}

// Edges leave the plate upright. The label stands right of them, or left, if there is room, else the plate is made wider.
static void leave_and_label(Level *l, DiagramPlate *p)
{
    Diagram *d = l->d;
    const double label = LETTER * (double)strlen(p->label);
    double first = 0, last = 0;
    bool any = false;
    for (int k = 0; k < d->nedges; k++) {
        const int a = item_of(l, d->edge[k].from), b = item_of(l, d->edge[k].to);
        if (a < 0 || b >= 0) continue;
        const double x = exit_of(l, a);
        bend(l, &d->edge[k], x, p->height);
        if (!any || x < first) first = x;
        if (!any || x > last) last = x;
        any = true;
    }
    p->label_end = p->width - MARGIN;
    if (!any || last + MARGIN <= p->label_end - label) return;
    if (first - MARGIN >= MARGIN + label) p->label_end = MARGIN + label;
    else {
        p->label_end = last + MARGIN + label;
        if (p->width < p->label_end + MARGIN) p->width = p->label_end + MARGIN;
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
    double *middle = NEW_N(d->arena, double, l->nitems + 1), *height_of = NEW_N(d->arena, double, l->nlayers + 1);
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
        height_of[layer] = height;
        y += height + (layer + 1 < l->nlayers ? GAP_DOWN : 0);
    }
    for (int k = 0; k < l->nsegments; k++) {
        const Item *it = &l->item[l->segment[k].to];
        if (l->segment[k].edge >= 0 && it->node < 0 && it->plate < 0)
            pass(l, &d->edge[l->segment[k].edge], l->segment[k].to, middle, height_of);
    }
    for (int k = 0; k < d->nedges; k++) {
        const int a = item_of(l, d->edge[k].from), b = item_of(l, d->edge[k].to);
        const struct Lane *lane = (a < 0) == (b < 0) ? NULL : lane_of(l, a >= 0 ? a : b, a >= 0);
        for (int i = 0; lane && i < lane->n; i++) pass(l, &d->edge[k], lane->first + i, middle, height_of);
    }
    DiagramPlate *p = &d->plate[l->plate];
    p->width = most - least + 2 * PADDING;
    p->height = y + PADDING + (l->plate ? LABEL : 0);
    const double label = l->plate ? LETTER * (double)strlen(p->label) + 2 * PADDING : 0;
    if (p->width < label) {
        const double shift = (label - p->width) / 2;
        for (int i = 0; i < l->nitems; i++) {
            l->item[i].x += shift;
            if (l->item[i].node >= 0) d->node[l->item[i].node].x += shift;
            if (l->item[i].plate >= 0) d->plate[l->item[i].plate].x += shift;
        }
        for (int k = 0; k < d->nedges; k++)
            for (int i = 0; i < d->edge[k].n; i++)
                if (d->edge[k].plate[i] == l->plate) d->edge[k].x[i] += shift;
        p->width = label;
    }
    if (l->plate) leave_and_label(l, p);
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
            d->node[k].width = width_of(d->arena, &d->node[k]);
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
    if (plate) find_lanes(l);
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

// Bends were found plate by plate: from above they are in the order of their heights.
static void sort_bends(DiagramEdge *e)
{
    for (int i = 1; i < e->n; i++)
        for (int k = i; k > 0 && e->y[k] < e->y[k - 1]; k--) {
            const double x = e->x[k], y = e->y[k];
            e->x[k] = e->x[k - 1];
            e->y[k] = e->y[k - 1];
            e->x[k - 1] = x;
            e->y[k - 1] = y;
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
        for (int i = 0; i < e->n; i++) e->x[i] += d->plate[e->plate[i]].x, e->y[i] += d->plate[e->plate[i]].y;
        sort_bends(e);
    }
}
