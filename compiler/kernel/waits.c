// waits.c -- lanes of a team wait where one needs what another wrote, and short sums over pairs are shared pair by pair.
//
//   before   loop i in 1:p shared by SUM_ALONG into lp          after   loop i in 1:p, j in 1:K shared by SUM_ALONG into lp
//              loop j in 1:K                                              update lp += f(i, j)
//                update lp += f(i, j)                                   loop i in 1:p shared by LANES
//            barrier                                                      update B[i] = x[i]
//            loop i in 1:p shared by ALONG                              loop i in 1:K shared by LANES
//              update B[i] = x[i]                                         update b[i] = y[i]
//            loop i in 1:K shared by ALONG
//              update b[i] = y[i]
//
// On a GPU each wait of a team of several blocks takes as long as some thousand operations of a lane. Few rows are one block's however much
// is added up for each.
//
//   barriers   A barrier is left out if all have just waited: after ALONG, SUM_ALONG, by one lane, and another barrier. After an array is
//              filled it becomes the wait of that loop: ALONG in place of LANES.
//   ALONG      becomes LANES (nobody waits after it) at the end of a kernel, and before another ALONG, if neither writes what the other
//              reads or writes, nor do those before it since the last wait.
//              Bodies are looked into that consist of updates, lets, loops and conditions; what else there is waits as ever.
//   pairs      The macro decides by the sizes: with many rows a lane takes a row. On the CPU nothing changes, neither the loops nor the
//              order of the sums.
//
// Needs: all nodes that a kernel gets (share, outside, predictors, alone).     Keeps: what is computed.
#include "lower.h"

// ---- what a loop reads and writes ----

typedef struct Touched {  // by loops since the last wait
    Arena *a;
    int nread, nwritten, room_read, room_written;
    const Var **read, **written;
    bool known;
} Touched;

static const Var *whole_of(const Var *v) { return v->part_of ? v->part_of : v; }

static void add(Arena *a, const Var ***list, int *n, int *room, const Var *v)
{
    v = whole_of(v);
    for (int i = 0; i < *n; i++)
        if ((*list)[i] == v) return;
    if (*n == *room) {
        const Var **more = NEW_N(a, const Var *, *room = 2 * *room + 8);
        for (int i = 0; i < *n; i++) more[i] = (*list)[i];
        *list = more;
    }
    (*list)[(*n)++] = v;
}

static bool note_read(const Var *v, void *with)
{
    Touched *t = with;
    if (v->kind != VAR_ELEMENT) add(t->a, &t->read, &t->nread, &t->room_read, v);  // else a lane's own
    return false;
}

static bool note_written(const Var *v, void *with)
{
    Touched *t = with;
    if (v->kind != VAR_ELEMENT) add(t->a, &t->written, &t->nwritten, &t->room_written, v);
    return false;
}

static void note_expr(Expr *e, void *with) { ex_any_var(e, note_read, with); }

static void note_body(Touched *t, const Node *list)
{
    for (const Node *n = list; n; n = n->next) {
        switch (n->kind) {
        case NODE_COMMENT:
        case NODE_KNOW:
        case NODE_SKIP: break;
        case NODE_LET: t->known &= !n->let.log_sum && n->let.value; break;
        case NODE_ASSIGN: t->known &= n->assign.how == STORE_PLAIN && !n->assign.own; break;
        case NODE_LOOP: t->known &= (n->loop.how == SHARE_SERIAL || n->loop.how == SHARE_BACKWARD) && !n->loop.of; break;
        case NODE_IF:
            t->known &= !n->test.few;
            note_body(t, n->otherwise);
            break;
        default: t->known = false;
        }
        each_expr(n, note_expr, t);
        each_array(n, note_read, t);
        note_body(t, n->body);
    }
}

static Touched touched_by(Arena *a, const Node *loop)
{
    Touched t = {.a = a, .known = true};
    each_array(loop, note_read, &t);
    note_body(&t, loop->body);
    writes(loop->body, note_written, &t);
    return t;
}

static bool meet(const Var *const *a, int na, const Var *const *b, int nb)
{
    for (int i = 0; i < na; i++)
        for (int k = 0; k < nb; k++)
            if (a[i] == b[k]) return true;
    return false;
}

// What a loop writes is among what it reads as well (each_array).
static bool apart(const Touched *x, const Touched *y)
{
    return x->known && y->known && !meet(x->written, x->nwritten, y->read, y->nread) &&
           !meet(x->written, x->nwritten, y->written, y->nwritten) && !meet(x->read, x->nread, y->written, y->nwritten);
}

static Touched both(const Touched *x, const Touched *y)
{
    Touched t = *x;
    t.room_read = t.nread;  // copied when it grows
    t.room_written = t.nwritten;
    for (int i = 0; i < y->nread; i++) add(t.a, &t.read, &t.nread, &t.room_read, y->read[i]);
    for (int i = 0; i < y->nwritten; i++) add(t.a, &t.written, &t.nwritten, &t.room_written, y->written[i]);
    t.known &= y->known;
    return t;
}

// ---- waits ----

static bool is_along(const Node *n) { return n && n->kind == NODE_LOOP && n->loop.how == SHARE_ALONG; }

// Whether all lanes of a team have waited when it is done.
static bool ends_with_wait(const Node *n)
{
    return n && (is_along(n) || (n->kind == NODE_LOOP && is_reduced(n->loop.how)) || (n->kind == NODE_LANE && !n->lane.key) ||
                 n->kind == NODE_BARRIER);
}

typedef struct Waits {
    Arena *a;
    const Node *before;  // the last node
    Node *filled;        // the same, if it fills an array
    Node *open;          // a loop ALONG that is the last node
    Touched since;       // by it and the loops before it, after which nobody waits
} Waits;

static void begins(Waits *w, Node *n)
{
    w->before = n;
    if (!is_along(n)) {
        w->open = NULL;
        return;
    }
    const Touched mine = touched_by(w->a, n);
    const bool may = w->open && apart(&w->since, &mine);
    if (may) w->open->loop.how = SHARE_LANES;
    w->since = may ? both(&w->since, &mine) : mine;
    w->open = n;
}

// Whether the barrier after it is one: lanes then wait at its end.
static bool takes_wait(Node *fill)
{
    if (fill) fill->fill.waits = true;
    return fill != NULL;
}

// Of a nest and a sum, what is in them.
static void wait_less(Waits *w, Node **list)
{
    for (Node **at = list; *at;) {
        Node *n = *at;
        if (n->kind == NODE_BARRIER && (ends_with_wait(w->before) || takes_wait(w->filled))) {
            *at = n->next;
            w->before = n;
            w->filled = NULL;
            continue;
        }
        w->filled = n->kind == NODE_FILL ? n : NULL;
        if (n->kind == NODE_NEST || n->kind == NODE_REDUCE) wait_less(w, &n->body);
        else if (n->kind != NODE_COMMENT) begins(w, n);
        at = &n->next;
    }
}

// ---- pairs ----

// Whether each pair can be an iteration by itself: what it writes besides locals that grow is its own.
static bool mentions(const Place *at, const Index *i)
{
    for (int k = 0; at->element && k < at->element->nargs; k++)
        if (ex_mentions_index(at->element->args[k], i)) return true;
    for (int k = 0; k < at->n; k++)
        for (int e = 0; e < at->sub[k].n; e++)
            if (ex_mentions_index(at->sub[k].at[e], i)) return true;
    return false;
}

static bool by_pairs(const Node *list, const Index *i, const Index *j)
{
    for (const Node *n = list; n; n = n->next) {
        switch (n->kind) {
        case NODE_COMMENT:
        case NODE_LET:
        case NODE_KNOW:
        case NODE_SKIP: break;
        case NODE_ASSIGN:
            if (n->assign.own || (!n->assign.place.local && !(mentions(&n->assign.place, i) && mentions(&n->assign.place, j))))
                return false;
            break;
        case NODE_LOOP:
        case NODE_REDUCE:
        case NODE_NEST:
            if (n->kind == NODE_LOOP && n->loop.how != SHARE_SERIAL) return false;
            break;
        default: return false;
        }
        if (!by_pairs(n->body, i, j)) return false;
    }
    return true;
}

static void share_pairs(Node *list)
{
    for (Node *n = list; n; n = n->next) {
        Node *inner = n->body;
        if (n->kind == NODE_NEST || n->kind == NODE_REDUCE) share_pairs(n->body);
        if (n->kind != NODE_LOOP || n->loop.how != SHARE_SUM_ALONG || n->loop.n != 1 || n->loop.of || !inner || inner->next ||
            inner->kind != NODE_LOOP || inner->loop.how != SHARE_SERIAL || inner->loop.n != 1 || inner->loop.of || inner->loop.order)
            continue;
        Index *i = n->loop.index[0], *j = inner->loop.index[0];
        if (!ex_is_num(i->lo, 1) || !ex_is_num(j->lo, 1) || ex_mentions_index(j->hi, i) || needs_array(j->hi) || ex_unknown(j->hi) ||
            !by_pairs(inner->body, i, j))
            continue;
        n->loop.n = 2;
        n->loop.index[1] = j;
        n->body = inner->body;
    }
}

static void look_at(Lower *p, Kernel *k)
{
    Waits w = {.a = p->g->arena};
    if (k->kind != KERNEL_TEAM) return;
    share_pairs(k->body);
    wait_less(&w, &k->body);
    if (w.open) w.open->loop.how = SHARE_LANES;
}

void find_waits(Lower *p) { each_kernel(p, look_at); }
