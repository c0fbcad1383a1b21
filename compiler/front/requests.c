// requests.c -- what `infer` and `augment` blocks ask for: names, methods and settings.
//
// Needs: uses.     Gives: Request.decls and settings.     Keeps: the model.
#include <string.h>
#include "resolve.h"

typedef enum { NUMBER, SWITCH, METRIC } SettingKind;

static const struct {
    const char *word;
    int where;
} methods[METHODS] = {
    [METHOD_OTHER] = {"", 0},
#define INFER                   ASKED_BY_INFER
#define OPTION                  ASKED_BY_OPTION
#define AUGMENT                 ASKED_BY_AUGMENT
#define METHOD(id, word, where) [METHOD_##id] = {word, where},
#include "methods.def"
#undef INFER
#undef OPTION
#undef AUGMENT
};

static const struct {
    const char *word;
    SettingKind kind;
} settings[SETTINGS] = {
    [SETTING_OTHER] = {"", NUMBER},
#define SETTING(id, word, kind) [SETTING_##id] = {word, kind},
#include "methods.def"
};

static const bool takes[METHODS][SETTINGS] = {
#define TAKES(method, setting) [METHOD_##method][SETTING_##setting] = true,
#include "methods.def"
};

static const char *const metrics[] = {
#define METRIC(id, word, what) word,
#include "methods.def"
};

Method method_named(const char *word, int where)
{
    for (Method m = METHOD_OTHER + 1; m < METHODS; m++)
        if (methods[m].where & where && strcmp(methods[m].word, word) == 0) return m;
    return METHOD_OTHER;
}

static SettingId setting_named(const char *word)
{
    for (SettingId s = SETTING_OTHER + 1; s < SETTINGS; s++)
        if (strcmp(settings[s].word, word) == 0) return s;
#define SETTING_ALSO(id, older) \
    if (strcmp(older, word) == 0) return SETTING_##id;
#include "methods.def"
    return SETTING_OTHER;
}

// The number of a word that a setting takes; -1: it takes no such word.
static int word_of(SettingKind kind, const Ast *e)
{
    static const char *const switches[] = {"off", "on"};
    const char *const *words = kind == METRIC ? metrics : switches;
    const int n = kind == METRIC ? sizeof metrics / sizeof *metrics : 2;
    for (int k = 0; e->kind == AST_NAME && k < n; k++)
        if (strcmp(e->name, words[k]) == 0) return k;
    return -1;
}

// "gibbs, slice and collapsed"
static const char *words_of_infer(Arena *a)
{
    const char *list = "", *last = NULL;
    for (Method m = METHOD_OTHER + 1; m < METHODS; m++) {
        if (!(methods[m].where & ASKED_BY_INFER)) continue;
        if (last) list = arena_printf(a, "%s%s%s", list, *list ? ", " : "", last);
        last = methods[m].word;
    }
    return arena_printf(a, "%s and %s", list, last);
}

static void check_infer(Resolve *r, Request *q)
{
    if (!q->method) {
        Diag *m = diag(r->d, q->span, DIAG_E0702, q->by);
        Nearest near = {.wanted = q->by};
        for (Method k = METHOD_OTHER + 1; k < METHODS; k++)
            if (methods[k].where & ASKED_BY_INFER) nearest_try(&near, methods[k].word);
        if (near.best) diag_help(m, "is `%s` meant?", near.best);
        else diag_help(m, "methods are %s", words_of_infer(r->a));
    }
    for (int i = 0; i < q->nsettings; i++) {
        Setting *s = &q->setting[i];
        s->id = setting_named(s->name);
        const SettingKind kind = settings[s->id].kind;
        const int word = kind == NUMBER ? 0 : word_of(kind, s->value);
        if (word < 0) {
            Diag *m = diag(r->d, s->value->span, DIAG_E0708, s->name);
            diag_help(m, kind == METRIC ? "diagonal, low_rank, dense, or chosen: of low rank where the warm-up measures that it pays"
                         : s->id == SETTING_GROUP_MOVE
                             ? "on or off: whether a group move also changes it together with others, as a scale with its effects"
                             : "on or off: whether it is also drawn with a joint normal integrated out");
        } else if (kind == NUMBER) resolve_use(r, s->value);
        s->word = word;
        if (q->method && !takes[q->method][s->id]) diag(r->d, s->value->span, DIAG_E0705, q->by, s->name);
        for (int k = 0; k < i; k++)
            if (s->id != SETTING_OTHER && q->setting[k].id == s->id) diag(r->d, s->value->span, DIAG_E0706, s->name);
    }
}

static void check_augment(Resolve *r, Request *q)
{
    const Augmentation *rule = library_augmentation(r->lib, q->by);
    if (!rule && !q->method) {
        Diag *m = diag(r->d, q->span, DIAG_E0701, q->by);
        Nearest near = {.wanted = q->by};
        for (const Augmentation *g = r->lib->augmentations; g; g = g->next) nearest_try(&near, g->name);
        if (near.best) diag_help(m, "is `%s` meant?", near.best);
    }
    for (int i = 0; i < q->nsettings; i++) {
        resolve_use(r, q->setting[i].value);
        diag(r->d, q->setting[i].value->span, DIAG_E0705, q->by, q->setting[i].name);
    }
    if (!q->as) return;
    if (q->method == METHOD_NONE || (rule && rule->nlatents == 0)) diag(r->d, q->span, DIAG_E0707, q->by);
    Decl *other = map_get(&r->names, q->as);
    if (other) declared_twice(r, q->span, other);
}

static bool is_observed(const Resolve *r, const Decl *d) { return map_get(&r->marked, d) != NULL; }

void resolve_request(Resolve *r, Request *q, Map *latents, Map *asked)
{
    q->method = method_named(q->by, q->block == BLOCK_AUGMENT ? ASKED_BY_AUGMENT : ASKED_BY_INFER);
    q->decls = NEW_N(r->a, Decl *, q->nnames);
    for (int i = 0; i < q->nnames; i++) {
        Decl *d = map_get(&r->names, q->names[i]);
        q->decls[i] = d;
        if (!d && map_get(latents, q->names[i])) continue;  // a latent named by `as`: it has no declaration yet
        if (!d) {
            Ast name = {.kind = AST_NAME, .span = q->span, .name = q->names[i]};
            resolve_undefined(r, &name);
            q->decls[i] = name.decl;
            continue;
        }
        bool data = d->kind == DECL_DATA && !((q->block == BLOCK_AUGMENT || q->method == METHOD_MARGINAL) && is_observed(r, d));
        if (data || d->kind == DECL_DEFINITION)
            diag(r->d, q->span, DIAG_E0704, d->name, d->kind == DECL_DATA ? "data" : "a definition",
                 q->block == BLOCK_AUGMENT ? "an augmentation replaces a `~` statement" : "a method draws an unknown");
        const void *key = q->block == BLOCK_AUGMENT ? (void *)d : (void *)&d->name;
        if (map_get(asked, key)) diag(r->d, q->span, DIAG_E0706, d->name);
        map_put(r->a, asked, key, d);
    }
    if (q->block == BLOCK_AUGMENT) check_augment(r, q);
    else check_infer(r, q);
}
