// If this failed, chains would start outside the support of a variable, all at one place, or elsewhere when chains are added.
#include "toy.h"

// Variables of every constraint, without a model around them.
enum {
    REAL,
    POSITIVE,
    ABOVE,
    INTERVAL,
    NEGATIVE,
    CATEGORY,
    COUNT,
    SIMPLEX,
    ORDERED,
    POSITIVE_ORDERED,
    UNIT,
    COVARIANCE,
    CHOLESKY,
    SIMPLEXES,
    N_VARIABLES
};

typedef struct Supports { void *array[N_VARIABLES]; } Supports;

#define FIELD(id, t, c, r) \
    [id] = {.name = #id, .type = t, .role = GM_LATENT, .constraint = c, .rank = r, .offset = offsetof(Supports, array[id])}
static const GmField supports_state[] = {
    FIELD(REAL, GM_REAL, GM_ANY, 1),        FIELD(POSITIVE, GM_REAL, GM_ANY, 1),       FIELD(ABOVE, GM_REAL, GM_ANY, 1),
    FIELD(INTERVAL, GM_REAL, GM_ANY, 1),    FIELD(NEGATIVE, GM_REAL, GM_ANY, 1),       FIELD(CATEGORY, GM_INT, GM_ANY, 1),
    FIELD(COUNT, GM_INT, GM_ANY, 1),        FIELD(SIMPLEX, GM_REAL, GM_SIMPLEX, 1),    FIELD(ORDERED, GM_REAL, GM_ORDERED, 1),
    FIELD(POSITIVE_ORDERED, GM_REAL, GM_POSITIVE_ORDERED, 1), FIELD(UNIT, GM_REAL, GM_UNIT_VECTOR, 1),
    FIELD(COVARIANCE, GM_REAL, GM_COVARIANCE, 3), FIELD(CHOLESKY, GM_REAL, GM_CHOLESKY_CORR, 2), FIELD(SIMPLEXES, GM_REAL, GM_SIMPLEX, 2),
};

static void supports_shape(int field, const void *data, GmShape *out)
{
    field--;  // counted from 1, as programs do
    (void)data;
    *out = (GmShape){ .rank = supports_state[field].rank, .dim = { 4, 4, 4 }, .lower = -INFINITY, .upper = INFINITY };
    if (out->rank == 1)
        out->dim[0] = 1000;
    switch (field) {
    case POSITIVE: case COUNT: out->lower = 0; break;
    case ABOVE: out->lower = 50; break;
    case INTERVAL: out->lower = -1; out->upper = 3; break;
    case NEGATIVE: out->upper = -2; break;
    case CATEGORY: out->lower = 1; out->upper = 3; break;
    }
}

static const GmModel supports = { .name = "supports", .source = "supports.gm", .state = supports_state, .n_state = N_VARIABLES,
                                  .data_size = 1, .state_size = sizeof(Supports), .state_shape = supports_shape };

typedef struct Start { GmMemory memory; GmData data; GmRun run; GmOptions options; } Start;

static Start started(int chains, int first_chain, double radius)
{
    Start s = {.options = {.init_radius = radius, .chains = chains}, .run = {.seed = 11, .first_chain = first_chain, .chains = chains}};
    gm_memory_open(&s.memory, &supports, &s.data, chains, 0, false);
    gm_initial(&supports, &s.memory, &s.data, &s.options, &s.run);
    return s;
}

static void inside(double radius)
{
    Start s = started(2, 0, radius);
    for (int f = 0; f < N_VARIABLES; f++) {
        bool good = true;
        for (int c = 0; c < 2; c++)
            good =
                good && gm_check_values(&supports_state[f], &s.memory.shape[f], gm_state_array(&supports, &s.memory, c, f), "start", NULL);
        check(good, "radius %g: %s starts inside its support", radius, supports_state[f].name);
    }
    gm_memory_close(&s.memory);
}

static void spread(void)
{
    Start s = started(2, 0, 1), later = started(1, 1, 1);
    for (int f = 0; f < N_VARIABLES; f++) {
        const size_t bytes = (size_t)gm_shape_size(&s.memory.shape[f]) * (supports_state[f].type == GM_INT ? 4 : 8);
        const void *first = gm_state_array(&supports, &s.memory, 0, f), *second = gm_state_array(&supports, &s.memory, 1, f);
        const bool fixed = f == COVARIANCE || f == CHOLESKY || f == COUNT;
        check(fixed == (memcmp(first, second, bytes) == 0), "%s: chains start %s", supports_state[f].name, fixed ? "together" : "apart");
        check(memcmp(second, gm_state_array(&supports, &later.memory, 0, f), bytes) == 0,
              "%s: chain 2 starts alike with and without chain 1", supports_state[f].name);
    }
    // 2000 uniforms on (-1, 1): the mean has sd 1 / sqrt(3 * 2000) = 0.0129; |z| < 6 rings falsely 2 times in 10^9 (seed 11).
    double sum = 0;
    for (int c = 0; c < 2; c++)
        for (int i = 0; i < 1000; i++)
            sum += ((double *)gm_state_array(&supports, &s.memory, c, REAL))[i];
    check(fabs(sum / 2000 / 0.0129) < 6, "REAL: mean of 2000 starts %.4f, |z| = %.2f < 6", sum / 2000, fabs(sum / 2000 / 0.0129));
    // 2000 categories of 3: each count has sd sqrt(2000 * 2 / 9) = 21.1.
    int count[4] = { 0 };
    for (int c = 0; c < 2; c++)
        for (int i = 0; i < 1000; i++)
            count[((int32_t *)gm_state_array(&supports, &s.memory, c, CATEGORY))[i]]++;
    for (int k = 1; k <= 3; k++)
        check(fabs(count[k] - 2000 / 3.0) / 21.1 < 6, "CATEGORY: %d of 2000 start at %d, |z| = %.2f < 6", count[k], k,
              fabs(count[k] - 2000 / 3.0) / 21.1);
    gm_memory_close(&s.memory);
    gm_memory_close(&later.memory);
}

static void zeros(void)
{
    Start s = started(1, 0, 0);
    const double *x = gm_state_array(&supports, &s.memory, 0, REAL), *y = gm_state_array(&supports, &s.memory, 0, INTERVAL);
    check(x[0] == 0 && x[999] == 0 && y[0] == 1, "radius 0: zero, and the middle of an interval");
    gm_memory_close(&s.memory);
}

// Missing values: reals at the mean of the observed ones, and every chain has its own copy; without missing values State holds the data.
static void imputed(void)
{
    GmData d;
    GmMemory m;
    GmOptions o = { .init_radius = 1, .chains = 2 };
    const GmRun run = { .seed = 11, .chains = 2 };
    char *input[] = { "na.json" }, *whole[] = { "data.json" };
    put_text("na.json",
             "{ \"J\": 2, \"group\": [1, 2, 1, 2, 2], \"y\": [null, 1, 2, 6, null], \"X\": [[1], [1], [1], [1], [1]], \"w\": [0.5, 0.5] }");
    put_text("data.json", toy_json);
    const bool good =
        gm_data_open(&d, &toy, input, 1, NULL) && gm_memory_open(&m, &toy, &d, 2, 0, false) && gm_initial(&toy, &m, &d, &o, &run);
    const double *y = gm_state_array(&toy, &m, 0, VAR_y);
    check(good && fabs(y[0] - 3) < 1e-12 && y[0] == y[4] && y[3] == 6,
          "missing reals start at the mean of the others");  // 3 = (1 + 2 + 6) / 3, rounded
    check(y != gm_state_array(&toy, &m, 1, VAR_y) && y != ((ToyData *)d.data)->y, "each chain has its own copy");
    check(gm_state_array(&toy, &m, 0, VAR_count) == gm_state_array(&toy, &m, 1, VAR_count) &&
              gm_state_array(&toy, &m, 0, VAR_total) != gm_state_array(&toy, &m, 1, VAR_total),
          "a shared sum is one array for all chains, others are not");
    gm_memory_close(&m);
    gm_data_close(&d, &toy);
    check(gm_data_open(&d, &toy, whole, 1, NULL) && gm_memory_open(&m, &toy, &d, 2, 0, false) &&
              gm_state_array(&toy, &m, 1, VAR_y) == (void *)((ToyData *)d.data)->y,
          "nothing missing: State holds the data itself");
    gm_memory_close(&m);
    gm_data_close(&d, &toy);
}

int main(void)
{
    enter_scratch();
    gm_quiet = true;
    inside(1);
    inside(0);
    inside(5);
    spread();
    zeros();
    imputed();
    return finish_tests();
}
