// If this failed, --device auto would take a device that is slower than the other by more than was known, or start a GPU for runs that end
// sooner. Or it would not say what it does.
#include "toy.h"
#include "../../runtime/host/device_auto.h"

static const char *const names[] = { "CPU", "GPU", "not clear" };

// seconds of a sweep, predicted to a factor of 2 unless said
static void verdicts(void)
{
    static const struct { const char *what; GmOutlook x; GmVerdict verdict, likely; int worth;
    } rows[] = {
        {"a tiny model", {2e6, 1e-6, 1e-4, 2, 2, 0.5, false}, GM_CPU_ENDS_FIRST, GM_CPU_ENDS_FIRST, 1},
        {"a short run, which a GPU would sweep faster", {1000, 1e-4, 2e-5, 2, 2, 0.5, false}, GM_CPU_ENDS_FIRST, GM_CPU_ENDS_FIRST, 0},
        {"a large model", {2000, 0.3, 3e-3, 2, 2, 0.5, false}, GM_GPU_ENDS_FIRST, GM_GPU_ENDS_FIRST, 1},
        {"a large model, not compiled yet", {2000, 0.3, 3e-3, 2, 2, 5.5, false}, GM_GPU_ENDS_FIRST, GM_GPU_ENDS_FIRST, 1},
        {"five times as fast on the GPU", {1e5, 5e-4, 1e-4, 2, 2, 0.5, false}, GM_GPU_ENDS_FIRST, GM_GPU_ENDS_FIRST, 1},
        {"three times", {1e5, 3e-4, 1e-4, 2, 2, 0.5, false}, GM_NOT_CLEAR, GM_GPU_ENDS_FIRST, 1},
        {"three times, the CPU being measured", {1e5, 3e-4, 1e-4, 1.2, 2, 0.5, false}, GM_GPU_ENDS_FIRST, GM_GPU_ENDS_FIRST, 1},
        {"a third, the CPU being measured", {1e5, 1e-4, 3e-4, 1.2, 2, 0.5, false}, GM_CPU_ENDS_FIRST, GM_CPU_ENDS_FIRST, 1},
        {"a second by the CPU, measured", {1e4, 1e-4, 5e-5, 1.2, 2, 0.5, false}, GM_NOT_CLEAR, GM_CPU_ENDS_FIRST, 0},
        {"four seconds, not compiled yet", {1e4, 4e-4, 5e-5, 1.2, 2, 5.5, false}, GM_CPU_ENDS_FIRST, GM_CPU_ENDS_FIRST, 0},
        {"both measured", {1e5, 1.1e-4, 1e-4, 1.2, 1.2, 0, false}, GM_NOT_CLEAR, GM_GPU_ENDS_FIRST, 1},
        {"costs of a CPU that may be more", {1e5, 1e-6, 1e-3, 2, 2, 0.5, true}, GM_NOT_CLEAR, GM_CPU_ENDS_FIRST, 0},
        {"and are enough as they are", {1e5, 1e-2, 1e-4, 2, 2, 0.5, true}, GM_GPU_ENDS_FIRST, GM_GPU_ENDS_FIRST, 1},
        {"a cost that is no number", {1e5, NAN, 1e-3, 2, 2, 0.5, false}, GM_NOT_CLEAR, GM_CPU_ENDS_FIRST, 0},
    };
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        const GmVerdict v = gm_outlook_verdict(&rows[k].x), likely = gm_outlook_likely(&rows[k].x);
        const bool good = v == rows[k].verdict && likely == rows[k].likely && gm_outlook_worth_measuring(&rows[k].x) == rows[k].worth;
        check(good, "%s: %s, likely %s", rows[k].what, names[v], names[likely]);
    }
}

// Whatever the true times are within the factors that are known, the device that is clear is not slower; nor is the likelier one by 1.5
// once both are measured.
static void no_slower(void)
{
    int wrong = 0, all = 0;
    for (double cpu = 1e-6; cpu < 1; cpu *= 3)
        for (double gpu = 1e-5; gpu < 1; gpu *= 3)
            for (double sweeps = 10; sweeps < 1e6; sweeps *= 10)
                for (int c = -1; c <= 1; c += 2)
                    for (int g = -1; g <= 1; g += 2, all++) {
                        const GmOutlook x = { sweeps, cpu, gpu, 2, 2, 0.5, false }, both = { sweeps, cpu, gpu, 1.2, 1.2, 0, false };
                        const double on_cpu = sweeps * cpu * pow(2, c), on_gpu = 0.5 + sweeps * gpu * pow(2, g);
                        const GmVerdict v = gm_outlook_verdict(&x);
                        if (v == GM_CPU_ENDS_FIRST && on_cpu > on_gpu * 1.000001) wrong++;
                        if (v == GM_GPU_ENDS_FIRST && on_gpu > on_cpu * 1.000001) wrong++;
                        const bool takes_gpu = gm_outlook_likely(&both) == GM_GPU_ENDS_FIRST;
                        const double true_cpu = cpu * pow(1.2, c), true_gpu = gpu * pow(1.2, g),
                                     worse = takes_gpu ? true_gpu / true_cpu : true_cpu / true_gpu;
                        if (worse > 1.45) wrong++;
                    }
    check(wrong == 0, "of %d runs %d are slower than they need be", all, wrong);
}

static void costs(void)
{
    // by Gibbs updates; a trajectory, each evaluation; the same on a GPU: alone, the work of a chain; scales
    const double c[GM_COSTS] = { 1000, 500, 100, 10000, 5, 3000, 2, 1000, 1, 0 };
    const double one = gm_cost_on_cpu(c, true, false, 1, 1);
    check(one > 1e-7 && one < 1e-6, "a sweep of 1000 multiply-adds takes %g s", one);
    const double four = gm_cost_on_cpu(c, true, false, 4, 4), eight = gm_cost_on_cpu(c, true, false, 8, 4),
                 nine = gm_cost_on_cpu(c, true, false, 9, 4);
    check(four == one && eight == 2 * one && nine == 3 * one, "chains share threads");
    check(gm_cost_on_cpu(c, true, false, 2, 16) == 2 * one, "a small model gains nothing by more threads than chains");
    const double large[GM_COSTS] = { 1e8 };
    const double by_one = gm_cost_on_cpu(large, true, false, 1, 1), by_sixteen = gm_cost_on_cpu(large, true, false, 1, 16);
    check(gm_cost_shared(c, true, false, 2, 16) == 1 && gm_cost_shared(large, true, false, 2, 16) == 16 &&
              gm_cost_shared(large, true, false, 16, 16) == 1,
          "threads beyond chains share what is long");
    check(by_sixteen > by_one / 5 && by_sixteen < by_one / 3, "between what they would share and what one of them makes alone: %g of %g s",
          by_sixteen, by_one);
    check(gm_cost_on_cpu(c, true, true, 1, 1) == one && gm_cost_on_cpu(c, false, true, 1, 1) == 2 * one, "the cheaper method counts");
    const double g = gm_cost_on_gpu(c, true, false, 1, false, 132), many = gm_cost_on_gpu(c, true, false, 1000, false, 132);
    check(fabs(g - 4e-9 * 10005) < 1e-15 && fabs(many - 4e-9 * 15000) < 1e-12, "1000 chains take %.2f times as long as one on a GPU",
          many / g);
    check(gm_cost_on_gpu(c, true, false, 1000, true, 132) > 900 * g, "unless chains run one after another");
    check(gm_cost_on_gpu(c, true, false, 1000, false, 66) > many, "half a GPU takes longer");
    const double scales[GM_COSTS] = { 1000, [GM_COST_OF_SCALES] = 1e9 };
    check(gm_cost_on_cpu(scales, true, false, 1, 1) < 1100 * one, "draws of scales are rationed: %g s",
          gm_cost_on_cpu(scales, true, false, 1, 1));
}

static void words(void)
{
    static const struct { GmOutlook x; bool on_gpu; const char *says;
    } rows[] = {
        {{1e6, 1e-6, 1.23e-5, 2, 2, 0.5, false},
         false,
         "CPU: about 12 times as fast as this GPU for these data; --device gpu takes the GPU"},
        {{1e6, 1e-6, 1.263e-3, 2, 2, 0.5, false},
         false,
         "CPU: about 1300 times as fast as this GPU for these data; --device gpu takes the GPU"},
        {{1e3, 1e-3, 2.3e-4, 2, 2, 0.5, false}, true, "GPU: about 4.3 times as fast as the CPU for these data; --device cpu takes the CPU"},
        {{1e3, 1e-3, 1e-3, 2, 2, 0.5, false}, true, "GPU: about as fast as the CPU for these data; --device cpu takes the CPU"},
        {{10, 1e-3, 1e-4, 2, 2, 0.5, false},
         false,
         "CPU: the run is over before a GPU would have started and done it; --device gpu takes the GPU"},
    };
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        char said[200];
        gm_outlook_say(said, sizeof said, &rows[k].x, rows[k].on_gpu);
        check(strcmp(said, rows[k].says) == 0, "%s", said);
    }
}

// The state of chains is put back after sweeps that are measured.
static void kept(void)
{
    char one[] = "0123456789", two[] = "abcdefghij", shared[] = "shared", third[] = "third";
    void *block[] = { one, two, shared, third };
    GmMemory m = { .chains = 2, .block = block, .bytes = { sizeof one, sizeof shared, sizeof third } };
    check(gm_memory_keep(&m, 10) == NULL, "more than there is room for");
    GmKept *k = gm_memory_keep(&m, 1000);
    one[3] = two[9] = shared[0] = third[1] = '!';
    gm_memory_back(&m, k);
    const bool same =
        strcmp(one, "0123456789") == 0 && strcmp(two, "abcdefghij") == 0 && strcmp(shared, "shared") == 0 && strcmp(third, "third") == 0;
    check(same, "%s %s %s %s", one, two, shared, third);
}

int main(void)
{
    verdicts();
    no_slower();
    costs();
    words();
    kept();
    return failures > 0;
}
