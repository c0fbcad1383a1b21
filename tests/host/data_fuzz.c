// If this failed, a damaged data file could crash the program instead of being refused with one line.
#include "toy.h"

static uint64_t state = 2026;

// splitmix64 (Steele, Lea and Flood 2014): damage is the same in every run.
static uint64_t next(void)
{
    uint64_t z = state += 0x9E3779B97F4A7C15u;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
}

// Changes, removes or doubles a few bytes; sometimes cuts the end off. Returns the new length; `room` is never passed.
static size_t damage(char *bytes, size_t n, size_t room)
{
    static const char *const pieces[] = { "[",   "]", "{",  "}",   "\"",   ",", ":", "null",          "-",  "1e999",
                                         ".",   "\n", "NaN", "[[[[", "(", "'", "9999999999999", "\r", "=" };
    for (uint64_t times = 1 + next() % 4; times > 0; times--) {
        const size_t at = n ? next() % n : 0;
        switch (next() % 5) {
        case 0:
            if (n)
                bytes[at] = (char)next();
            break;
        case 1:
            if (n)
                memmove(bytes + at, bytes + at + 1, --n - at);
            break;
        case 2: {
            const char *piece = pieces[next() % (sizeof pieces / sizeof *pieces)];
            const size_t length = strlen(piece);
            if (n + length > room)
                break;
            memmove(bytes + at + length, bytes + at, n - at);
            memcpy(bytes + at, piece, length);
            n += length;
            break;
        }
        case 3:
            n = at;
            break;
        case 4:
            if (n)
                bytes[at] ^= (char)(1 << next() % 8);
            break;
        }
    }
    return n;
}

static void fuzz(const char *path, const char *good, size_t n, int inputs, char **input)
{
    enum { TIMES = 3000, ROOM = 4096 };
    char bytes[ROOM];
    int accepted = 0;
    for (int t = 0; t < TIMES; t++) {
        memcpy(bytes, good, n);
        put(path, bytes, damage(bytes, n, ROOM));
        GmData d;
        accepted += gm_data_open(&d, &toy, input, inputs, NULL);
        gm_data_close(&d, &toy);
    }
    check(accepted < TIMES, "%s: %d damaged files read without a crash (%d were still good)", path, TIMES, accepted);
}

int main(void)
{
    enter_scratch();
    gm_quiet = true;
    if (!freopen("/dev/null", "w", stderr))              // thousands of refusals
        return 1;
    put_text("gw.json", "{ \"group\": [1, 2, 1, 2, 2], \"y\": [1, 2, 3, 4, 5], \"w\": [0.25, 0.75] }");
    char *json[] = { "f.json" }, *csv[] = { "f.csv", "gw.json" }, *npy[] = { "gw.json", "X=f.npy" };
    const char table[] = "id,\"X.1\",X[2]\n1,2.5,3\n2,\"4\",5\n3,6,7\n4,8,-9e3\n5,10,11\n";
    char array[208] = "\x93NUMPY\x01";
    array[8] = 118;
    snprintf(array + 10, 118, "{'descr': '<f8', 'fortran_order': False, 'shape': (5, 2), }");
    fuzz("f.json", toy_json, sizeof toy_json - 1, 1, json);
    fuzz("f.csv", table, sizeof table - 1, 2, csv);
    fuzz("f.npy", array, sizeof array, 2, npy);
    return finish_tests();
}
