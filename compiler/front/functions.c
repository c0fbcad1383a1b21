// functions.c -- the rows of functions.def, found by name.
//
// A name is looked up once, when an expression is made; from then on the number of its row identifies it.
#include "functions.h"
#include "../base/arena.h"
#include <stdint.h>
#include <stddef.h>

enum {
    ANY = SIGN_ANY,
    NOT_NEGATIVE = SIGN_NOT_NEGATIVE,
    POSITIVE = SIGN_POSITIVE,
    UNIT = SIGN_UNIT,
    NOT_POSITIVE = SIGN_NOT_POSITIVE,
    LOG_END = TRAIT_LOG_END,
    POLES = TRAIT_POLES,
    BOUNDED = TRAIT_BOUNDED,
    APART = TRAIT_APART,
    YES_NO = TRAIT_YES_NO
};

const FunctionRow function_rows[NFN] = {
    [FN_OTHER] = {.name = ""},
#define ELEMENT(name, args, result, sign, traits, domain, ranges, dx, dy, dz) \
    [FN_##name] = {#name, RESULT_##result, NULL, (Sign)sign, traits, domain, {dx, dy, dz}},
#define WHOLE(label, args, result) [FN_##label] = {#label, RESULT_##result, NULL, SIGN_ANY, 0, NULL, {NULL}},
#define AGAIN(name, args, result)
#define INTERNAL(id, name, op, args, sign, traits, domain, dx, dy, dz) \
    [FN_##id] = {name, RESULT_EACH, op, (Sign)sign, traits, domain, {dx, dy, dz}},
#include "../../runtime/device/functions.def"
};

// Open addressing by the pointers of the interned names; a fourth of it is in use.
enum { SLOTS = 512 };
static struct {
    const char *name;
    FunctionId id;
} slot[SLOTS];
_Static_assert(NFN <= SLOTS / 2, "the table of functions is too full");

static unsigned place(const char *name)
{
    unsigned h = (unsigned)(((uintptr_t)name * 0x9E3779B97F4A7C15ull) >> 55);
    while (slot[h].name && slot[h].name != name) h = (h + 1) % SLOTS;
    return h;
}

FunctionId function_id(const char *name)
{
    static bool filled;
    if (!filled) {
        for (int i = 1; i < NFN; i++) {
            const char *n = intern(function_rows[i].name);
            const unsigned h = place(n);
            slot[h].name = n;
            slot[h].id = (FunctionId)i;
        }
        filled = true;
    }
    const unsigned h = place(name);
    return slot[h].name ? slot[h].id : FN_OTHER;
}
