// If this failed, method selection would depend on how a run is cut into batches, chains would take different methods, or all of them the
// worse of two.
//
// Rows of two chains are made here: autoregressions, whose effective draws are known ((1 - r)/(1 + r) a sweep), and trajectories of a given
// length. A model of nothing but a selection says what sweeps cost. Effective draws of 260 sweeps are known to a factor of 1.5 or so; what
// must win here wins by a factor of 5: no choice would change with other numbers more often than once in 10^6.
#include "toy.h"
#include "../../runtime/device/normal.h"

enum { WARMUP = 1560, CHAINS = 2, MANY = 3, ELEMENTS = 5, COLUMNS = ELEMENTS + 4 };

typedef struct State { double *x, *diagnostics, *machine; } State;

static GmField state[] = {
    { .name = "x", .type = GM_WIDE, .role = GM_PARAMETER, .rank = 1, .offset = offsetof(State, x) },
    { .name = "diagnostics", .type = GM_WIDE, .role = GM_DIAGNOSTIC, .rank = 1, .offset = offsetof(State, diagnostics) },
    { .name = "machine", .type = GM_WIDE, .role = GM_SUM, .rank = 1, .offset = offsetof(State, machine) },
};

#define check_quiet(good, ...) do { if (!(good)) check(false, __VA_ARGS__); } while (0)

static double price[GM_COSTS];

static void cost_of(const void *data, double *cost)
{
    (void)data;
    memcpy(cost, price, sizeof price);
}

static const int fields[] = { 1, 0 }, latents[] = { 0 };
static const GmSelection selections[] = {
    {.name = "x", .coupled = 1, .fields = fields, .diagnostics = 2, .machine = 3, .latents = latents, .cost = cost_of}};

static void shape(int field, const void *data, GmShape *out)
{
    (void)data;
    out->dim[0] = field == 1 ? ELEMENTS : field == 2 ? 6 : 8;  // fields are counted from 1
}

static const GmModel model = {.name = "selection",
                              .source = "selection.gm",
                              .state = state,
                              .n_state = 3,
                              .state_size = sizeof(State),
                              .state_shape = shape,
                              .selections = selections,
                              .n_selections = 1};

// Correlation of neighbouring draws by Gibbs updates and by NUTS; evaluations of a trajectory; the sweep from which transitions fail, or 0.
// By how many standard deviations the chains differ during Gibbs updates, or NUTS; one transition in so many diverges, or none. Correlation
// of neighbouring energies, and of neighbouring draws of the first element by Gibbs updates, if it is not that of all. Whether NUTS leaves
// the first element unchanged, in each chain at another value; how far Gibbs updates are from where NUTS is, in all chains.
typedef struct Truth {
    double gibbs, nuts;
    int length, fails_at;
    double gibbs_apart, nuts_apart;
    int diverges;
    double sticks, first_sticks;
    bool first_left;
    double gibbs_off;
} Truth;

typedef struct Outcome {
    bool gradients;
    long first, last, also;
    int forms;
    char said[400];
} Outcome;  // sweeps with NUTS transitions; forms that sweeps had

// A warm-up in batches of at most `most` sweeps.
static Outcome run_warmup(Truth t, long warmup, long most)
{
    GmOptions o = { .chains = CHAINS, .warmup = warmup, .samples = 50000, .thin = 1 };
    GmData data = { 0 };
    GmDraws draws = { .chains = CHAINS };
    GmMemory m;
    Outcome out = { .first = -1 };
    if (!gm_memory_open(&m, &model, &data, CHAINS, 0, false)) exit(1);
    GmTrials *w = gm_trials_open(&model, &m, &data, &draws, &o, true);
    const GmSelected *c = gm_trials_of(w);
    const long columns = gm_trials_columns(w, NULL);
    double *rows = malloc(sizeof *rows * GM_WATCHED * CHAINS * COLUMNS), x[CHAINS][ELEMENTS] = { { 0 } }, energy[CHAINS] = { 0 };
    uint64_t seen[10];
    Stream g = stream((Sweep){ .seed = 3 }, 1, 0);
    long n = 0;
    for (long sweep = 0; sweep < warmup;) {
        if (gm_trials_due(w, sweep)) {
            gm_trials_watched(w, sweep, n, rows);
            n = 0;
        }
        const long batch = gm_trials_until(w, sweep, most < warmup - sweep ? most : warmup - sweep);
        check_quiet(batch >= 1 && batch <= most, "a batch of %ld sweeps", batch);
        for (long end = sweep + batch; sweep < end; sweep++) {
            const uint64_t form = gm_trials_form(w, sweep);
            int k = 0;
            while (k < out.forms && seen[k] != form) k++;
            if (k == out.forms && k < 10) seen[out.forms++] = form;
            for (int chain = 0; chain < CHAINS; chain++) {
                for (int i = 0; i < ELEMENTS; i++) {
                    const double r = c[chain].gradients ? t.nuts : i == 0 && t.first_sticks > 0 ? t.first_sticks : t.gibbs;
                    x[chain][i] = r * x[chain][i] + sqrt(1 - r * r) * normal_standard(&g);
                    if (i == 0 && t.first_left && c[chain].gradients) x[chain][i] = chain;
                }
                check_quiet(c[chain].gradients == c[0].gradients && c[chain].first == c[0].first, "chains take the same");
            }
            if (c[0].gradients && out.first < 0) out.first = sweep;
            if (c[0].gradients) out.last = sweep;
            out.also += c[0].also;
            if (!gm_trials_watch(w, sweep)) continue;
            check_quiet(n < GM_WATCHED, "rows between two meetings: at most %d", GM_WATCHED);
            for (int chain = 0; chain < CHAINS; chain++) {
                double *row = rows + (n * CHAINS + chain) * COLUMNS;
                for (int i = 0; i < ELEMENTS; i++)
                    row[i] =
                        x[chain][i] + chain * (c[chain].gradients ? t.nuts_apart : t.gibbs_apart) + (c[chain].gradients ? 0 : t.gibbs_off);
                row[ELEMENTS] = t.length;
                row[ELEMENTS + 1] = t.diverges && sweep % t.diverges == 0;
                row[ELEMENTS + 2] = t.fails_at && sweep >= t.fails_at;
                row[ELEMENTS + 3] = energy[chain] = t.sticks * energy[chain] + sqrt(1 - t.sticks * t.sticks) * normal_standard(&g);
            }
            n++;
        }
    }
    check_quiet(columns == 0 || columns == COLUMNS, "columns: %ld", columns);
    out.gradients = c[0].gradients;
    FILE *said = fmemopen(out.said, sizeof out.said, "w");
    gm_trials_print(said, w);
    fclose(said);
    gm_trials_close(w);
    gm_memory_close(&m);
    free(rows);
    return out;
}

// Chains that are not in step, on a CPU: trajectories are of a length for each chain. From which sweep on each uses NUTS to the
// end; WARMUP: none. The sweep after which it gave a trial up; the last of its transitions.
typedef struct Apart { long from[MANY], tried[MANY], last[MANY]; char said[400]; } Apart;

// diverges, careful: one transition in so many does, or none; the same with smaller steps.
static Apart run_apart(double gibbs, const int *length, int diverges, int careful)
{
    GmOptions o = { .chains = MANY, .warmup = WARMUP, .samples = 50000, .thin = 1 };
    GmData data = { 0 };
    GmDraws draws = { .chains = MANY };
    GmMemory m;
    Apart out = { .from = { 0 } };
    if (!gm_memory_open(&m, &model, &data, MANY, 0, false)) exit(1);
    GmTrials *w = gm_trials_open(&model, &m, &data, &draws, &o, false);
    GmSelected *c = gm_trials_of(w);
    Stream g = stream((Sweep){ .seed = 5 }, 1, 0);
    for (long sweep = 0; sweep < WARMUP; sweep++) {
        for (int chain = 0; chain < MANY; chain++) {
            const double r = c[chain].gradients ? 0.3 : gibbs;
            double *x = gm_state_array(&model, &m, chain, 0);
            for (int i = 0; i < ELEMENTS; i++) x[i] = r * x[i] + sqrt(1 - r * r) * normal_standard(&g);
            const bool by_nuts = c[chain].gradients;
            const int one_in = c[chain].target > 0 ? careful : diverges;
            if (by_nuts) gm_selected_moved(&c[chain], length[chain], one_in && sweep % one_in == 0, 0, normal_standard(&g), 0);
            else out.from[chain] = sweep + 1;
            if (by_nuts) out.last[chain] = sweep;
            gm_trials_after(w, chain, sweep);
            if (by_nuts && !c[chain].gradients) out.tried[chain] = sweep;
        }
        gm_trials_meet(w, sweep + 1);
    }
    FILE *said = fmemopen(out.said, sizeof out.said, "w");
    gm_trials_print(said, w);
    fclose(said);
    gm_trials_close(w);
    gm_memory_close(&m);
    return out;
}

// On a GPU: Gibbs updates, a transition and an evaluation wait so long; their work is nothing beside that.
static void set_price(double gibbs, double transition, double evaluation)
{
    const double p[GM_COSTS] = { 1, 1, 1, gibbs, 0, transition, 0, evaluation, 0 };
    memcpy(price, p, sizeof price);
}

int main(void)
{
    enum { QUARTER = WARMUP / 4, TRIED = WARMUP * 13 / 20, AGAIN = WARMUP * 16 / 20 };
    set_price(100, 100, 100);
    const Outcome sticky = run_warmup((Truth){ .gibbs = 0.99, .nuts = 0, .length = 7 }, WARMUP, 100000);
    check(sticky.gradients && sticky.first == QUARTER && sticky.last == WARMUP - 1,
          "Gibbs updates that mix slowly lose: NUTS from sweep %ld to %ld", sticky.first, sticky.last);
    check(sticky.also > (TRIED - QUARTER) / 2 && sticky.also < WARMUP - QUARTER,
          "Gibbs updates after every second transition once these are measured, for a tenth of the work: %ld", sticky.also);
    check(strstr(sticky.said, "Sampler: NUTS with a Gibbs sweep after every 2 transitions for x; in warm-up more than 10 times as many "
                              "effective draws for the same work") != NULL,
          "what is said: %s", sticky.said);
    for (long most = 1; most < 1000; most *= 7) {
        const Outcome same = run_warmup((Truth){ .gibbs = 0.99, .nuts = 0, .length = 7 }, WARMUP, most);
        check(same.gradients && same.first == sticky.first && same.also == sticky.also && strcmp(same.said, sticky.said) == 0,
              "batches of %ld sweeps: the same choice", most);
    }
    const Outcome moving = run_warmup((Truth){ .gibbs = 0, .nuts = 0, .length = 7 }, WARMUP, 100000);
    check(!moving.gradients && moving.first < 0 && strstr(moving.said, "NUTS was not tried, since even independent draws"),
          "Gibbs updates that mix: no trial; %s", moving.said);
    // They are measured until each chain has 20 effective draws, some 60 sweeps here.
    set_price(1000, 10, 10);
    const Outcome soon = run_warmup((Truth){ .gibbs = 0.5, .nuts = 0, .length = 7 }, WARMUP, 100000);
    check(soon.gradients && soon.first > WARMUP / 12 && soon.first < QUARTER - WARMUP / 12,
          "Gibbs updates that have enough effective draws early: NUTS from sweep %ld; %s", soon.first, soon.said);
    set_price(100, 10, 10);
    const Outcome worse = run_warmup((Truth){ .gibbs = 0.9, .nuts = 0.98, .length = 3 }, WARMUP, 100000);
    check(!worse.gradients && worse.last == TRIED - 1 && strstr(worse.said, "Sampler: Gibbs for x. NUTS was tried: about 0."),
          "NUTS that mixes worse: tried until %ld; %s", worse.last, worse.said);
    set_price(100, 100, 100);
    const Outcome slow = run_warmup((Truth){ .gibbs = 0.9, .nuts = 0, .length = 1023 }, WARMUP, 100000);
    check(!slow.gradients && slow.last == QUARTER + 19 && strstr(slow.said, "was not tried to the end"),
          "trajectories that are too long: tried until %ld; %s", slow.last, slow.said);
    const Outcome failing = run_warmup((Truth){ .gibbs = 0.99, .nuts = 0, .length = 7, .fails_at = QUARTER + 30 }, WARMUP, 100000);
    check(!failing.gradients && failing.last == QUARTER + 39 && strstr(failing.said, "no finite density"),
          "transitions that fail: tried until %ld; %s", failing.last, failing.said);
    set_price(100, 20, 20);
    const Outcome one = run_warmup((Truth){ .gibbs = 0.5, .nuts = 0, .length = 7, .first_sticks = 0.99 }, WARMUP, 100000);
    check(one.gradients, "Gibbs updates that hardly change one of five elements: NUTS; %s", one.said);
    const Outcome left = run_warmup((Truth){ .gibbs = 0.8, .nuts = 0, .length = 1, .first_left = true }, WARMUP, 100000);
    check(!left.gradients, "NUTS that leaves one of five elements where it is: Gibbs; %s", left.said);
    state[0].partial = 1;
    const Outcome absent = run_warmup((Truth){ .gibbs = 0.8, .nuts = 0, .length = 1, .first_left = true }, WARMUP, 100000);
    check(absent.gradients, "that does so where some elements do not exist: NUTS; %s", absent.said);
    state[0].partial = 0;
    set_price(100, 40, 40);
    const Outcome modes = run_warmup((Truth){ .gibbs = 0.8, .nuts = 0.5, .length = 7, .gibbs_apart = 100 }, WARMUP, 100000);
    check(modes.gradients, "Gibbs updates that mix in each chain, and do not lead from one to the other: NUTS; %s", modes.said);
    const Outcome together = run_warmup((Truth){ .gibbs = 0.8, .nuts = 0.5, .length = 7 }, WARMUP, 100000);
    check(!together.gradients, "the same where chains are in one place: Gibbs; %s", together.said);
    const Outcome both =
        run_warmup((Truth){.gibbs = 0.98, .nuts = 0, .length = 7, .gibbs_apart = 100, .nuts_apart = 100}, WARMUP, 100000);
    check(both.gradients, "where neither method leads from one mode to the other, what mixes within them: NUTS; %s", both.said);
    // A random walk that goes a short way in the window seems to have an effective draw or two, however slow it is, and however cheap.
    set_price(400, 1, 1);
    const Outcome walk = run_warmup((Truth){ .gibbs = 0.9, .nuts = 0.9999, .length = 3 }, WARMUP, 100000);
    check(!walk.gradients && walk.last == TRIED - 1, "NUTS that hardly gets around, at a hundredth of the cost: Gibbs; %s", walk.said);
    set_price(10, 20, 20);
    const Outcome walking = run_warmup((Truth){ .gibbs = 0.9999, .nuts = 0, .length = 15 }, WARMUP, 100000);
    check(walking.gradients, "Gibbs updates that hardly get around, at a 34th of the cost: NUTS; %s", walking.said);
    // Elements that follow one that mixes slowly are no evidence.
    set_price(100, 100, 100);
    const Outcome follow =
        run_warmup((Truth){.gibbs = 0.3, .nuts = 0.3, .length = 3, .first_sticks = 0.9999, .gibbs_off = 2}, WARMUP, 100000);
    check(follow.gradients, "Gibbs updates that hardly change one element and are beside the others: NUTS; %s", follow.said);
    // Where Gibbs updates have few effective draws they are measured again before NUTS wins: none of its transitions is made until 16W/20.
    const Outcome again = run_warmup((Truth){ .gibbs = 0.95, .nuts = 0.2, .length = 7 }, WARMUP, 100000);
    check(again.gradients && again.also <= WARMUP - QUARTER - (AGAIN - TRIED),
          "7 effective draws of a chain by Gibbs updates: measured again; %s", again.said);
    // Where NUTS alone gets around, it is taken though Gibbs updates seem to give as many effective draws for the same work: 1.2 in their
    // window.
    set_price(10, 60, 100);
    const Outcome behind = run_warmup((Truth){ .gibbs = 0.995, .nuts = 0, .length = 3 }, WARMUP, 100000);
    check(behind.gradients && strstr(behind.said, "hardly changed"),
          "NUTS that gets around, where Gibbs updates hardly do, at 37 times the cost: NUTS; %s", behind.said);
    set_price(10, 10, 20);
    const Outcome known = run_warmup((Truth){ .gibbs = 0.9, .nuts = 0.8, .length = 3 }, WARMUP, 100000);
    check(!known.gradients && strstr(known.said, "about 0."), "half the gain where Gibbs updates get around: Gibbs; %s", known.said);
    // Divergent transitions: 8 % where NUTS gives some 4 times the effective draws, 0.5 % where 11 times, 20 % where Gibbs updates hardly
    // move; and energies that hardly change.
    static const struct { double gibbs; int diverges; double sticks; bool gradients; } border[] = {
        { 0.95, 12, 0, false }, { 0.98, 200, 0, true }, { 0.999, 5, 0, true }, { 0.999, 70, 0.99, true }, { 0.95, 0, 0.99, false },
    };
    set_price(100, 150, 150);
    for (size_t i = 0; i < sizeof border / sizeof *border; i++) {
        const Outcome way = run_warmup(
            (Truth){.gibbs = border[i].gibbs, .length = 7, .diverges = border[i].diverges, .sticks = border[i].sticks}, WARMUP, 100000);
        check(way.gradients == border[i].gradients,
              "Gibbs updates with a correlation of %g, one transition in %d diverges, energies with one of %g: %s; %s", border[i].gibbs,
              border[i].diverges, border[i].sticks, border[i].gradients ? "NUTS" : "Gibbs", way.said);
    }
    // The evaluations of all chains together are those of the chain that makes most; what is spent alone is shared.
    set_price(100, 0, 1000);
    const Outcome dear = run_warmup((Truth){ .gibbs = 0.5, .nuts = 0, .length = 7 }, WARMUP, 100000);
    check(!dear.gradients && dear.first < 0, "an evaluation that costs more than the effective draws of 10 sweeps: no trial");
    const Outcome shorter = run_warmup((Truth){ .gibbs = 0.99, .nuts = 0, .length = 7 }, 299, 100000);
    check(shorter.gradients && shorter.first == 20 && shorter.said[0], "short warm-ups: NUTS from sweep %ld on, unmeasured", shorter.first);
    const Outcome shortest = run_warmup((Truth){ .gibbs = 0.99, .nuts = 0, .length = 7 }, 99, 100000);
    check(!shortest.gradients && shortest.first < 0, "the shortest: Gibbs");
    // In a long warm-up there are more rows than fit between two meetings (check_quiet above).
    set_price(100, 40, 40);
    const Outcome longer = run_warmup((Truth){ .gibbs = 0.99, .nuts = 0, .length = 7 }, 20000, 100000);
    check(longer.gradients, "a warm-up of 20,000 sweeps: NUTS; %s", longer.said);
    // On a CPU, too, chains decide together.
    set_price(100, 100, 100);
    const Apart same = run_apart(0.99, (int[]){ 3, 7, 11 }, 0, 0);
    check(same.from[0] == QUARTER && same.from[1] == QUARTER && same.from[2] == QUARTER,
          "three chains: NUTS from sweep %ld, %ld and %ld on; %s", same.from[0], same.from[1], same.from[2], same.said);
    const Apart endless = run_apart(0.8, (int[]){ 3, 3, 1023 }, 0, 0);
    check(endless.from[0] == WARMUP && endless.from[1] == WARMUP && endless.from[2] == WARMUP && strstr(endless.said, "Sampler: Gibbs"),
          "one of three goes on and on: all take Gibbs updates; %s", endless.said);
    // A trial may cost what 1170 sweeps of Gibbs updates do: 20 such trajectories cost more, and it ends after 5; 20 of the others do not.
    const Apart dear_on_cpu = run_apart(0.8, (int[]){ 1023, 1023, 1023 }, 0, 0), bearable = run_apart(0.8, (int[]){ 31, 31, 31 }, 0, 0);
    check(dear_on_cpu.last[0] == QUARTER + 4 && strstr(dear_on_cpu.said, "cost too much for a trial"),
          "trajectories of which 20 cost more than a trial may: tried until %ld; %s", dear_on_cpu.last[0], dear_on_cpu.said);
    check(bearable.last[0] >= QUARTER + 19, "trajectories of which 20 cost less: tried until %ld; %s", bearable.last[0], bearable.said);
    // NUTS that diverges where Gibbs updates have 7 effective draws of a chain is tried again with smaller steps; where they have 20 (30
    // here), it is not.
    set_price(100, 50, 100);
    const Apart careful = run_apart(0.93, (int[]){ 3, 3, 3 }, 6, 0);
    check(careful.from[0] == QUARTER && careful.from[2] == QUARTER && strstr(careful.said, "acceptance of 0.95"),
          "transitions that diverge no more: NUTS from sweep %ld on; %s", careful.from[0], careful.said);
    const Apart still = run_apart(0.93, (int[]){ 3, 3, 3 }, 6, 6);
    check(still.last[0] == WARMUP * 19 / 20 - 1 && strstr(still.said, "Sampler: Gibbs"),
          "transitions that still diverge: tried until %ld; %s", still.last[0], still.said);
    const Apart once = run_apart(0.7, (int[]){ 3, 3, 3 }, 6, 0);
    check(once.last[0] < TRIED && strstr(once.said, "Sampler: Gibbs"), "where Gibbs updates get around: tried until %ld; %s", once.last[0],
          once.said);
    return failures > 0;
}
