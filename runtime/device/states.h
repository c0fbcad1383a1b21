// states.h -- states of hidden Markov chains, each chain drawn whole, parallel in time.
//
//   density     P(z) proportional to exp(sum(t, weight[t, z[t]]) + sum(t > 0, link[t, z[t - 1], z[t]])), z[t] in 0 .. values - 1, for each
//               chain of a panel
//   parameters  weight: log densities of what holds one element; link: of what holds it and the one before, the same for all elements, or
//               one matrix for each, or for each of a chain. Both may be -infinity: values and transitions that are impossible
//   method      behind[t - 1](i) = sum(j, exp(link[t, i, j] + weight[t, j]) behind[t](j)) is the density of all from t on given z[t - 1] =
//               i (the backward algorithm, Rabiner 1989); z[t] is drawn in proportion to the terms of that sum, i = z[t - 1] (Scott 2002).
//               Time is cut into chunks: the product of the matrices of each, products of 8 of these, and so on, until few are left; on the
//               way back each chunk learns behind[] of its last element (Sarkka and Garcia-Fernandez 2021; Hassan, Sarkka and
//               Garcia-Fernandez 2021). One uniform for each t makes the draw of z[t] a map of z[t - 1]: maps of chunks are composed in the
//               same way, and the first state goes through them. Chunks follow from sizes alone, so draws depend neither on the grid nor on
//               the machine
//   accuracy    numbers are m 2^e, m a double and e a whole number up to 2^53: nothing underflows, however unlikely, and 0 is 0. Nothing is
//               subtracted, so sums have an error of some (values + 1) roundings each
//   together    (GM_STATES_TOGETHER) several chains that depend on each other are one, of the product of their values. A transition is one
//               of each chain after the other. The values of chain c are stride apart in the product. It has a row of `values` for each
//               state of the product, or for each of its own values where it depends on those alone. behind[] is summed over one chain at a
//               time (Ghahramani and Jordan 1997). z[t] is drawn one chain at a time in the other direction, each by a uniform of its own
//   test        tests/stat/states.py; tests/gpu/states.py on a GPU
#ifndef GM_STATES_H
#define GM_STATES_H

typedef struct Scaled {
    wide m, e;
} Scaled;  // m 2^e, m near 1; of 0 the exponent is GM_NEVER, or near it

// matrices made one; values whose vectors are in registers, or a lane's own memory; chains of which each is a lane's; chains in a product
enum { STATES_FAN = 8, STATES_IN_REGISTERS = 4, STATES_IN_LANE = 16, STATES_LEVELS = 16, STATES_MANY = 8192, STATES_TOGETHER = 4 };

// Chain p of panels, element t, values i and j: weight[(p length + t) values + j]; link[p by_panel + t by_time + i values + j], its
// logarithm in the place of e. What z[t] of chain p is, from 0, is left in weight[(p length + t) values]. part: panels (length + 8) values.
// inside: of the elements of z that are numbered one after the other, chains before time goes on.
typedef struct States {
    long panels, length, values, inside, by_panel, by_time;
    wide *weight;
    Scaled *link;
    wide *part;
#ifdef GM_STATES_TOGETHER
    int nlinks;  // 0: one chain
    // in the order of the sums; the rows of each stand behind those of the one before
    struct {
        long stride, values, alone;
    } part_of[STATES_TOGETHER];
#endif
} States;

#define GM_NEVER (-1152921504606846976.0)  // 2^60
#define NO_STATE "no value has a positive probability"

// The number of an element of z.
DEVICE_USUAL long states_element(const States *c, long p, long t)
{
    const long outside = p / c->inside;
    return (outside * c->length + t) * c->inside + p - outside * c->inside;
}

DEVICE_USUAL Scaled scaled(wide m, wide e)
{
    Scaled x;
    x.m = m;
    x.e = e;
    return x;
}

DEVICE_USUAL Scaled scaled_exp(wide x)
{
    if (x == -INFINITY) return scaled(0, GM_NEVER);
    // 2^32 log 2: exponents of a million of such add up to a double's whole numbers
    const wide most = 2977044471.0, v = x < -most ? -most : x, n = floor(v * 1.4426950408889634);
    return scaled(exp(fma(n, -1.9082149292705877e-10, fma(n, -0.6931471803691238, v))), n);
}

// 2^e for whole e <= 0, less than 2^-1022 being 0.
DEVICE_USUAL wide power_of_two(wide e)
{
    return from_bits((int64_t)((uint64_t)bits_of((e > -1023 ? e : -1023) + 4503599627371519.0) << 52));
}

// m 2^e with 0.5 <= m < 1, of a sum of products.
DEVICE_USUAL Scaled scaled_again(wide m, wide e)
{
    if (!(m > 0)) return scaled(m, GM_NEVER);  // 0, or no number
    const int64_t bits = bits_of(m);
    return scaled(from_bits((bits & 0xfffffffffffff) | 0x3fe0000000000000), e + (wide)((int)(bits >> 52) - 1022));
}

// What v sums to under row i of A, and, if u is in (0, 1), which of the terms u picks: 0 .. n - 1, -1: all are 0. `most` is the number that
// loops go to, of which n are there.
DEVICE_USUAL Scaled states_row(const int most, long n, const Scaled *row, const Scaled *v, wide u, wide *picked)
{
    wide top = 2 * GM_NEVER, sum = 0;
    for (int k = 0; k < most; k++)
        if (k < n) {
            const wide e = row[k].e + v[k].e;
            top = e > top ? e : top;
        }
    for (int k = 0; k < most; k++)
        if (k < n) sum = fma(row[k].m * v[k].m, power_of_two(row[k].e + v[k].e - top), sum);
    if (picked) {
        wide left = u * sum;
        long last = -1, more = 1;
        for (int k = 0; k < most; k++)
            if (k < n && more) {
                const wide term = row[k].m * v[k].m * power_of_two(row[k].e + v[k].e - top);
                if (!(term > 0)) continue;
                last = k;
                more = left > term;
                left -= term;
            }
        *picked = sum > 0 ? (wide)last : -1;
    }
    return scaled_again(sum, top);
}

// v becomes A v; `to` is room.
DEVICE_USUAL void states_apply(const int most, long n, const Scaled *A, Scaled *v, Scaled *to)
{
    for (int i = 0; i < most; i++)
        if (i < n) to[i] = states_row(most, n, A + i * n, v, 0, (wide *)0);
    for (int i = 0; i < most; i++)
        if (i < n) v[i] = to[i];
}

// The weights of element t into v: those of the element before are under way meanwhile, if vectors are in registers.
DEVICE_USUAL void states_weigh(const int most, long n, const wide *weight, int more, wide *next, Scaled *v)
{
    for (int k = 0; k < most; k++)
        if (k < n) {
            const Scaled w = scaled_exp(most <= STATES_IN_REGISTERS ? next[k] : weight[k]);
            if (most <= STATES_IN_REGISTERS && more) next[k] = weight[k - n];
            v[k] = scaled(v[k].m * w.m, v[k].e + w.e);
        }
}

DEVICE_USUAL void states_first_weights(const int most, long n, const wide *weight, wide *next)
{
    for (int k = 0; k < most && most <= STATES_IN_REGISTERS; k++) next[k] = k < n ? weight[k] : 0;
}

// ---- chains together ----

#ifdef GM_STATES_TOGETHER

// v summed over one chain, whose value is then that of the element before; picked: which value u picks, given the others.
DEVICE_USUAL void states_sum_one(long n, long stride, long values, long alone, const Scaled *row, const Scaled *v, Scaled *to, wide u,
                                 wide *picked)
{
    for (long m = 0; m < n; m++) {
        const long own = m / stride % values;
        const Scaled *r = row + (alone ? own : m) * values, *x = v + (m - own * stride);
        wide top = 2 * GM_NEVER, sum = 0;
        for (long k = 0; k < values; k++) {
            const wide e = r[k].e + x[k * stride].e;
            top = e > top ? e : top;
        }
        for (long k = 0; k < values; k++) sum = fma(r[k].m * x[k * stride].m, power_of_two(r[k].e + x[k * stride].e - top), sum);
        to[m] = scaled_again(sum, top);
        if (!picked) continue;
        wide left = u * sum;
        long last = -1, more = 1;
        for (long k = 0; k < values && more; k++) {
            const wide term = r[k].m * x[k * stride].m * power_of_two(r[k].e + x[k * stride].e - top);
            if (!(term > 0)) continue;
            last = k;
            more = left > term;
            left -= term;
        }
        picked[m] = sum > 0 ? (wide)last : -1;
    }
}

DEVICE_USUAL int states_each(const States *c) { return c->nlinks; }

// How many numbers a transition has.
DEVICE_USUAL long states_numbers(const States *c)
{
    long all = 0;
    for (int l = 0; l < c->nlinks; l++) all += (c->part_of[l].alone ? c->part_of[l].values : c->values) * c->part_of[l].values;
    return c->nlinks ? all : c->values * c->values;
}

// v becomes A v, A the transition by these rows; map, if there is one: the state that each state of the element before leads to. `to`,
// pick: room.
DEVICE_USUAL void states_apply_each(const States *c, const Scaled *A, Scaled *v, Scaled *to, Stream *g, wide *pick, wide *map)
{
    const long n = c->values;
    for (int l = 0; l < c->nlinks; l++) {
        const long stride = c->part_of[l].stride, values = c->part_of[l].values, alone = c->part_of[l].alone;
        states_sum_one(n, stride, values, alone, A, v, to, map ? uniform_open(g) : 0, map ? pick + l * n : (wide *)0);
        A += (alone ? values : n) * values;
        for (long m = 0; m < n; m++) v[m] = to[m];
    }
    for (long i = 0; i < n && map; i++) {
        long m = i;
        for (int l = c->nlinks - 1; l >= 0 && m >= 0; l--) {
            const long stride = c->part_of[l].stride, own = m / stride % c->part_of[l].values, chosen = (long)pick[l * n + m];
            m = chosen < 0 ? -1 : m + (chosen - own) * stride;
        }
        map[i] = (wide)m;
    }
}
#else
DEVICE_USUAL int states_each(const States *c) { return (void)c, 0; }
DEVICE_USUAL long states_numbers(const States *c) { return c->values * c->values; }
DEVICE_USUAL void states_apply_each(const States *c, const Scaled *A, Scaled *v, Scaled *to, Stream *g, wide *pick, wide *map)
{
    (void)c;
    (void)A;
    (void)v;
    (void)to;
    (void)g;
    (void)pick;
    (void)map;
}
#endif

// ---- chunks ----

// Where the matrices of chunks are: level 0 has those of the chunks, each further one those of STATES_FAN of the one before; one place more
// at the end is room.
typedef struct StatesPlan {
    // size: numbers of a place. room: where in it that of vectors begins, if it has any
    long chunk, count[STATES_LEVELS], at[STATES_LEVELS], size, room;
    int top;
} StatesPlan;

DEVICE StatesPlan states_plan(const States *c)
{
    const long n = c->values, alone = n <= STATES_IN_LANE, chunk = alone ? 4 * n : 12 * n;
    StatesPlan p;
    p.chunk = chunk > 32 ? chunk : 32;
#if !defined(__CUDACC__) && !defined(__CUDACC_RTC__) && !(defined(GM_LIKE_GPU) && GM_LIKE_GPU)
    p.chunk = c->length > 0 ? c->length : 1;  // a lane goes along a chain: products of matrices are for many
#endif
    if (c->length < 8 * p.chunk || c->panels >= STATES_MANY) p.chunk = c->length > 0 ? c->length : 1;
    p.room = 2 * n * n;
    p.size = alone ? 2 * n * n : 6 * n * n;
    p.top = 0;
    p.at[0] = 0;
    p.count[0] = (c->length + p.chunk - 1) / p.chunk;
    while (p.count[p.top] > STATES_FAN) {
        p.at[p.top + 1] = p.at[p.top] + p.count[p.top] * p.size;
        p.count[p.top + 1] = (p.count[p.top] + STATES_FAN - 1) / STATES_FAN;
        p.top++;
    }
    p.at[p.top + 1] = p.at[p.top] + p.count[p.top] * p.size;
    p.count[p.top + 1] = 1;
    return p;
}

DEVICE_USUAL wide *states_place(const States *c, const StatesPlan *plan, int level, long p, long i)
{
    return c->part + p * (c->length + 8) * c->values + plan->at[level] + i * plan->size;
}
DEVICE_USUAL long states_last(long n, long of, long i) { return (i + 1) * n < of ? (i + 1) * n : of; }

// Column j of the product of the matrices of chunk i of chain p. each: a transition is one of each chain after the other.
DEVICE_USUAL void states_chunk(const int most, const int each, long n, const States *c, const StatesPlan *plan, long p, long i, long j,
                               Scaled *v, Scaled *to)
{
    Scaled *own = (Scaled *)states_place(c, plan, 0, p, i);
    for (int k = 0; k < most; k++)
        if (k < n) v[k] = k == j ? scaled(0.5, 1) : scaled(0, GM_NEVER);
    const long last = states_last(plan->chunk, c->length, i) - 1;
    const wide *weight = c->weight + (p * c->length + last) * n;
    wide next[STATES_IN_REGISTERS];
    states_first_weights(most, n, weight, next);
    for (long t = last; t >= i * plan->chunk; t--, weight -= n) {
        states_weigh(most, n, weight, t > i * plan->chunk, next, v);
        const Scaled *link = c->link + p * c->by_panel + t * c->by_time;
        if (each) states_apply_each(c, link, v, to, (Stream *)0, (wide *)0, (wide *)0);
        else states_apply(most, n, link, v, to);
    }
    for (int k = 0; k < most; k++)
        if (k < n) own[k * n + j] = v[k];
}

// The same of the product of STATES_FAN matrices of the level below.
DEVICE_USUAL void states_group(const int most, long n, const States *c, const StatesPlan *plan, int level, long p, long i, long j,
                               Scaled *v, Scaled *to)
{
    Scaled *own = (Scaled *)states_place(c, plan, level, p, i);
    for (int k = 0; k < most; k++)
        if (k < n) v[k] = k == j ? scaled(0.5, 1) : scaled(0, GM_NEVER);
    for (long b = states_last(STATES_FAN, plan->count[level - 1], i) - 1; b >= i * STATES_FAN; b--)
        states_apply(most, n, (const Scaled *)states_place(c, plan, level - 1, p, b), v, to);
    for (int k = 0; k < most; k++)
        if (k < n) own[k * n + j] = v[k];
}

// What is behind each part of group i of a level, from what is behind the group, in place of their matrices.
DEVICE_USUAL void states_behind(const int most, long n, const States *c, const StatesPlan *plan, int level, long p, long i, Scaled *v,
                                Scaled *to)
{
    const Scaled *group = (const Scaled *)states_place(c, plan, level + 1, p, i);
    for (int k = 0; k < most; k++)
        if (k < n) v[k] = level == plan->top ? scaled(0.5, 1) : group[k];
    for (long b = states_last(STATES_FAN, plan->count[level], i) - 1; b >= i * STATES_FAN; b--) {
        Scaled *own = (Scaled *)states_place(c, plan, level, p, b);
        for (int k = 0; k < most; k++)
            if (k < n && b > i * STATES_FAN) to[k] = states_row(most, n, own + k * n, v, 0, (wide *)0);
        for (int k = 0; k < most; k++)
            if (k < n) {
                own[k] = v[k];
                v[k] = to[k];
            }
    }
}

// For each element of chunk i and each state of the one before, the state that it has then, in place of the weights.
DEVICE_USUAL void states_maps(const int most, const int each, long n, const States *c, const StatesPlan *plan, long p, long i, Sweep at,
                              uint32_t var, Scaled *v, Scaled *to, wide *pick)
{
    const Scaled *own = (const Scaled *)states_place(c, plan, 0, p, i);
    for (int k = 0; k < most; k++)
        if (k < n) v[k] = plan->count[0] == 1 ? scaled(0.5, 1) : own[k];
    const long last = states_last(plan->chunk, c->length, i) - 1;
    wide *weight = c->weight + (p * c->length + last) * n, next[STATES_IN_REGISTERS];
    if (last >= i * plan->chunk) states_first_weights(most, n, weight, next);
    for (long t = last; t >= i * plan->chunk; t--, weight -= n) {
        const Scaled *link = c->link + p * c->by_panel + t * c->by_time;
        Stream g = stream(at, var, (uint64_t)states_element(c, p, t));
        const wide u = uniform_open(&g);
        states_weigh(most, n, weight, t > i * plan->chunk, next, v);
        if (t == 0) {
            wide first;
            for (int k = 0; k < most; k++)
                if (k < n) to[k] = scaled(1, 0);
            states_row(most, n, to, v, u, &first);
            for (int k = 0; k < most; k++)
                if (k < n) weight[k] = first;
            continue;
        }
        if (each) {
            Stream own_uniforms = stream(at, var, (uint64_t)states_element(c, p, t));
            states_apply_each(c, link, v, to, &own_uniforms, pick, weight);
            continue;
        }
        for (int k = 0; k < most; k++)
            if (k < n) to[k] = states_row(most, n, link + k * n, v, u, weight + k);
        for (int k = 0; k < most; k++)
            if (k < n) v[k] = to[k];
    }
}

// The work of a lane, with vectors in registers where values are few.
typedef enum StatesWork { STATES_CHUNK, STATES_GROUP, STATES_BEHIND, STATES_MAPS } StatesWork;

DEVICE_USUAL void states_by(const int most, const int each, long n, StatesWork work, const States *c, const StatesPlan *plan, int level,
                            long p, long i, long j, Sweep at, uint32_t var, Scaled *v, Scaled *to, wide *pick)
{
    switch (work) {
    case STATES_CHUNK: states_chunk(most, each, n, c, plan, p, i, j, v, to); break;
    case STATES_GROUP: states_group(most, n, c, plan, level, p, i, j, v, to); break;
    case STATES_BEHIND: states_behind(most, n, c, plan, level, p, i, v, to); break;
    case STATES_MAPS: states_maps(most, each, n, c, plan, p, i, at, var, v, to, pick); break;
    }
}

DEVICE_USUAL void states_work(StatesWork work, const States *c, const StatesPlan *plan, int level, long p, long i, long j, Sweep at,
                              uint32_t var)
{
    const long n = c->values;
    if (n <= STATES_IN_REGISTERS && !states_each(c)) {
        Scaled v[STATES_IN_REGISTERS] = {{0, 0}}, to[STATES_IN_REGISTERS] = {{0, 0}};
        if (n == 2) states_by(2, 0, 2, work, c, plan, level, p, i, j, at, var, v, to, (wide *)0);
        else states_by(STATES_IN_REGISTERS, 0, n, work, c, plan, level, p, i, j, at, var, v, to, (wide *)0);
        return;
    }
    Scaled own[2 * STATES_IN_LANE], *v = own;
    if (n > STATES_IN_LANE && plan->count[0] == 1) v = (Scaled *)states_place(c, plan, 0, p, 0);
    else if (n > STATES_IN_LANE)
        v = (Scaled *)(states_place(c, plan, level + (work == STATES_BEHIND), p, i) + plan->room +
                       (work == STATES_CHUNK || work == STATES_GROUP ? 4 * n * j : 0));
    Scaled *const to = v + (n > STATES_IN_LANE ? n : STATES_IN_LANE);
#ifdef GM_STATES_TOGETHER
    if (c->nlinks) {
        wide picks[STATES_TOGETHER * STATES_IN_LANE];
        states_by((int)n, 1, n, work, c, plan, level, p, i, j, at, var, v, to, n > STATES_IN_LANE ? (wide *)(to + n) : picks);
        return;
    }
#endif
    states_by((int)n, 0, n, work, c, plan, level, p, i, j, at, var, v, to, (wide *)0);
}

// ---- the draw ----

// What lies behind each chunk: products of matrices over chunks, then groups of them, then messages down. What is before the first chunk,
// or the first of a group, nobody asks for.
DEVICE void states_behind_chunks(GmContext *GM, Sweep at, uint32_t var, const States *c, const StatesPlan *plan)
{
    const long n = c->values, panels = c->panels, chunks = plan->count[0] - 1;
    LANES (e, panels * chunks * n) states_work(STATES_CHUNK, c, plan, 0, e / n / chunks, 1 + e / n % chunks, e % n, at, var);
    TEAM_BARRIER();
    for (int l = 1; l <= plan->top; l++) {
        const long groups = plan->count[l] - 1;
        LANES (e, panels * groups * n) states_work(STATES_GROUP, c, plan, l, e / n / groups, 1 + e / n % groups, e % n, at, var);
        TEAM_BARRIER();
    }
    for (int l = plan->top; l >= 0; l--) {
        const long groups = plan->count[l + 1];
        LANES (e, panels * groups) states_work(STATES_BEHIND, c, plan, l, e / groups, e % groups, 0, at, var);
        TEAM_BARRIER();
    }
}

// The state before each chunk: maps of chunks, then of groups, then states down.
DEVICE void states_before_chunks(GmContext *GM, const States *c, const StatesPlan *plan)
{
    const long n = c->values, panels = c->panels, chunks = plan->count[0];
    LANES (e, panels * (chunks - 1) * n) {
        const long p = e / n / (chunks - 1), i = e / n % (chunks - 1);
        wide state = (wide)(e % n);
        for (long t = i * plan->chunk; t < (i + 1) * plan->chunk && state >= 0; t++)
            state = c->weight[(p * c->length + t) * n + (long)state];
        states_place(c, plan, 0, p, i)[e % n] = state;
    }
    TEAM_BARRIER();
    for (int l = 1; l <= plan->top; l++) {
        const long groups = plan->count[l] - 1;
        LANES (e, panels * groups * n) {
            const long p = e / n / groups, i = e / n % groups;
            wide state = (wide)(e % n);
            for (long b = i * STATES_FAN; b < (i + 1) * STATES_FAN && state >= 0; b++)
                state = states_place(c, plan, l - 1, p, b)[(long)state];
            states_place(c, plan, l, p, i)[e % n] = state;
        }
        TEAM_BARRIER();
    }
    for (int l = plan->top; l >= 0; l--) {
        const long groups = plan->count[l + 1];
        LANES (e, panels * groups) {
            const long p = e / groups, i = e % groups, last = states_last(STATES_FAN, plan->count[l], i);
            wide state = l == plan->top ? 0 : states_place(c, plan, l + 1, p, i)[n];
            for (long b = i * STATES_FAN; b < last; b++) {
                wide *own = states_place(c, plan, l, p, b);
                own[n] = state;
                if (state >= 0 && b + 1 < plan->count[l]) state = own[(long)state];
            }
        }
        TEAM_BARRIER();
    }
}

// The states, through the map of each element; -1, or an element without one that this lane found.
DEVICE long states_through_maps(GmContext *GM, const States *c, const StatesPlan *plan)
{
    const long n = c->values, chunks = plan->count[0];
    long failed = -1;
    LANES (e, c->panels * chunks) {
        const long p = e / chunks, i = e % chunks;
        wide state = chunks > 1 ? states_place(c, plan, 0, p, i)[n] : 0;
        for (long t = i * plan->chunk; t < states_last(plan->chunk, c->length, i); t++) {
            wide *map = c->weight + (p * c->length + t) * n;
            if (state >= 0) {
                state = map[(long)state];
                if (state < 0) failed = states_element(c, p, t);
            }
            map[0] = state < 0 ? 0 : state;
        }
    }
    return failed;
}

DEVICE_CALL void draw_states(GmContext *GM, Sweep at, uint32_t var, const char *name, const States *c)
{
    const long matrices = c->by_panel ? c->panels * c->by_panel : c->by_time ? c->length * c->by_time : states_numbers(c);
    const StatesPlan plan = states_plan(c);
    const long chunks = plan.count[0];
    LANES (i, matrices) c->link[i] = scaled_exp(c->link[i].e);
    TEAM_BARRIER();
    if (chunks > 1) states_behind_chunks(GM, at, var, c, &plan);
    LANES (e, c->panels * chunks) states_work(STATES_MAPS, c, &plan, 0, e / chunks, e % chunks, 0, at, var);
    TEAM_BARRIER();
    if (chunks > 1) states_before_chunks(GM, c, &plan);
    const long failed = states_through_maps(GM, c, &plan);
    if (failed >= 0) FAULT(name, failed, NO_STATE);
    ONE_LANE { NO_RATIO(); }
}

#define DRAW_STATES(var, name, states) draw_states(GM, at, VAR_##var, name, states)

#endif
