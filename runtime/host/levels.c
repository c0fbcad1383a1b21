// levels.c -- names as data: the levels of a factor, coded from 1.
//
//   county                 int<lower=1, upper=J> county[N]      J: 3, the levels of county from Aitkin to Becker
//   Anoka        -> 2
//   Aitkin       -> 1      codes are places in the order of the levels: that of their bytes, which in UTF-8 is that of characters,
//   Becker       -> 3      or that of --levels county=...
//
// As files are read, a name is coded by its first appearance. Once all are there the levels are sorted, and names become codes. Variables
// with the same size as their upper bound share levels. What could be meant in two ways is refused: names among numbers; an array by place
// beside levels whose order nobody has given.
#include "fields.h"
#include "inputs.h"
#include "messages.h"
#include "output.h"

#include <ctype.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { MOST_SLOTS_USED = 2, FIRST_SLOTS = 64 };  // one in so many

// ---- what is given on the command line ----

typedef struct Given {
    char *variable;
    char **name;
    long n;
    bool numbers;  // some of them read as numbers, or as marks of missing values
} Given;

static Given *given;
static int n_given;
static bool as_days;
static double first_day;

void gm_levels_forget(void)
{
    for (int k = 0; k < n_given; k++) {
        for (long i = 0; i < given[k].n; i++) free(given[k].name[i]);
        free(given[k].name);
        free(given[k].variable);
    }
    free(given);
    given = NULL;
    n_given = 0;
    as_days = false;
}

static const Given *given_for(const char *variable)
{
    for (int k = 0; k < n_given; k++)
        if (strcmp(given[k].variable, variable) == 0) return &given[k];
    return NULL;
}

// Without spaces at its ends; the caller frees.
static char *trimmed(const char *text)
{
    while (*text == ' ' || *text == '\t') text++;
    size_t n = strlen(text);
    while (n > 0 && strchr(" \t\r", text[n - 1])) n--;
    char *copy = gm_copy_text(text);
    copy[n] = 0;
    return copy;
}

// Cuts a,"b, c",d in place, as a row of a table. NULL: the end; *bad: a quote is wrong.
static char *next_item(char **at, bool *bad)
{
    char *from = *at, *item = from, *to = from;
    if (!from) return NULL;
    while (*from == ' ') from++;
    if (*from == '"') {
        item = to = ++from;
        for (; *from && !(from[0] == '"' && from[1] != '"'); from++) {
            from += *from == '"';
            *to++ = *from;
        }
        *bad = *from != '"';
        from += *from == '"';
        while (*from == ' ') from++;
        *bad |= *from && *from != ',';
    } else {
        from += strcspn(from, ",");
        to = from;
    }
    *at = *from && !*bad ? from + 1 : NULL;
    *to = 0;
    return item;
}

static bool ask(const char *text)
{
    const char *equals = strchr(text, '=');
    if (!equals || equals == text) {
        gm_error("--levels: `%s` is not NAME=A,B,C, the levels of a variable of the data in their order", text);
        return false;
    }
    char *variable = gm_copy_text(text), *list = gm_copy_text(equals + 1), *at = list;
    variable[equals - text] = 0;
    bool good = !given_for(variable), bad = false;
    if (!good) gm_error("--levels: %s is given twice", variable);
    given = gm_grow(given, (size_t)n_given + 1, sizeof *given);
    Given *g = &given[n_given++];
    *g = (Given){.variable = variable};
    for (char *item; good && (item = next_item(&at, &bad));) {
        char *name = trimmed(item);
        g->name = gm_grow(g->name, (size_t)g->n + 1, sizeof *g->name);
        g->name[g->n++] = name;
        good = *name && !bad;
        double x;
        const char *why;
        g->numbers |= gm_parse_number(name, &x, &why);
        if (!good) gm_error(bad ? "--levels %s: a quote is not closed, or text follows it" : "--levels %s: a level has no name", text);
        for (long i = 0; i + 1 < g->n && good; i++) {
            good = strcmp(g->name[i], name) != 0;
            if (!good) gm_error("--levels %s: %s is there twice", variable, name);
        }
    }
    free(list);
    return good;
}

void gm_levels_ask_as(const GmLevelSets *sets, const GmModel *m)
{
    for (int k = 0; k < sets->n; k++) {
        const GmLevels *l = &sets->set[k];
        const char *variable = m->data[l->field].name, *why;
        bool as_usual = true, numbers = false;
        double x;
        for (long i = 0; i < l->n; i++) {
            as_usual &= i == 0 || strcmp(l->name[i - 1], l->name[i]) < 0;
            numbers |= gm_parse_number(l->name[i], &x, &why);
        }
        if ((as_usual && !numbers) || given_for(variable)) continue;
        given = gm_grow(given, (size_t)n_given + 1, sizeof *given);
        Given *g = &given[n_given++];
        *g = (Given){.variable = gm_copy_text(variable), .n = l->n, .numbers = numbers};
        g->name = gm_alloc((size_t)l->n, sizeof *g->name);
        for (long i = 0; i < l->n; i++) g->name[i] = gm_copy_text(l->name[i]);
    }
}

// ---- dates ----

// Days from 1 March of year 0 to a date of the Gregorian calendar: years begin in March, so that the day that leap years add is their last.
static long day_number(long year, long month, long day)
{
    const long y = month < 3 ? year - 1 : year, m = month < 3 ? month + 9 : month - 3;
    return 365 * y + y / 4 - y / 100 + y / 400 + (153 * m + 2) / 5 + day - 1;
}

// Two digits behind a mark, below an end. false: they are not there.
static bool two_digits(const char **at, char mark, int end, double *x)
{
    const char *t = *at;
    if (*t != mark || !isdigit((unsigned char)t[1]) || !isdigit((unsigned char)t[2])) return false;
    *x = 10 * (t[1] - '0') + t[2] - '0';
    *at = t + 3;
    return *x < end;
}

// The time of day behind a date, as a part of a day: " 10:30", "T10:30:15.5Z", or nothing. false: it is something else.
static bool time_of_day(const char *at, double *part, const char **why)
{
    double hours = 0, minutes = 0, seconds = 0;
    const bool timed = (*at == 'T' || *at == ' ') && isdigit((unsigned char)at[1]);
    bool good = !timed || (two_digits(&at, *at, 24, &hours) && two_digits(&at, ':', 60, &minutes));
    if (timed && good && *at == ':') good = two_digits(&at, ':', 60, &seconds);
    if (timed && good && *at == '.' && isdigit((unsigned char)at[1])) {
        char *end;
        seconds += strtod(at, &end);
        at = end;
    }
    if (timed && good && *at == 'Z') at++;
    const bool zone = timed && good && (*at == '+' || *at == '-');
    good = good && !at[strspn(at, " \r")];
    if (timed && !good)
        *why = zone ? "has a time zone: times are read without one, or with Z" : "has no time of day such as 10:30 or 10:30:15";
    *part = ((hours * 60 + minutes) * 60 + seconds) / 86400;
    return good;
}

// A date as 2024-03-01, maybe with a time of day: false, it is none, and *why says what is wrong if it looks like one.
static bool is_date(const char *text, double *number, const char **why)
{
    static const char form[] = "dddd-dd-dd";
    static const int days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    while (*text == ' ') text++;
    for (size_t k = 0; k < sizeof form - 1; k++)
        if (form[k] == 'd' ? !isdigit((unsigned char)text[k]) : text[k] != form[k]) return false;
    double part;
    if (!time_of_day(text + sizeof form - 1, &part, why)) return false;
    const long year = strtol(text, NULL, 10), month = strtol(text + 5, NULL, 10), day = strtol(text + 8, NULL, 10);
    const bool leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    if (month < 1 || month > 12 || day < 1 || day > days[month - 1] + (month == 2 && leap)) {
        *why = "is no day of the calendar";
        return false;
    }
    *number = (double)day_number(year, month, day) + part;
    return true;
}

bool gm_levels_ask(const GmOptions *o)
{
    const char *why = "is not a day such as 2024-03-01";
    as_days = o->dates && is_date(o->dates, &first_day, &why);
    if (o->dates && !as_days) gm_error("--dates: `%s` %s", o->dates, why);
    bool good = as_days || !o->dates;
    for (int k = 0; k < o->n_levels && good; k++) good = ask(o->levels[k]);
    return good;
}

// ---- reading ----

// Whether a field's values may be names: int<lower=1, upper=J> or int<upper=J>, or with numbers as both bounds.
bool gm_takes_levels(const GmField *f)
{
    if (f->type != GM_INT) return false;
    if (f->upper_of) return f->declared && (strstr(f->declared, "<lower=1, upper=") || strstr(f->declared, "<upper="));
    return f->bounded && f->lower == 1 && isfinite(f->upper);
}

void gm_levels_begin(const GmValues *values, GmValue *v)
{
    for (int k = 0; k < values->n_fields && values->reads_names; k++)
        if (strcmp(values->fields[k].name, v->name) == 0) v->may_be_names = gm_takes_levels(&values->fields[k]);
    v->first_number = -1;
}

// Whether --levels names this text, which looks like a number, or like a missing value.
static bool is_given(const GmValue *v, const char *text)
{
    const Given *g = given_for(v->name);
    for (long k = 0; g && g->numbers && k < g->n; k++)
        if (strcmp(g->name[k], text) == 0) return true;
    return false;
}

static uint64_t hash(const char *text)  // FNV-1a
{
    uint64_t h = 14695981039346656037u;
    for (; *text; text++) h = (h ^ (unsigned char)*text) * 1099511628211u;
    return h;
}

static void put(GmNames *n, long k)
{
    long at = (long)(hash(n->name[k]) % (uint64_t)n->n_slots);
    while (n->slot[at]) at = (at + 1) % n->n_slots;
    n->slot[at] = k + 1;
}

// The place of a name, from 0; it is added if it is new.
static long place_of(GmNames *n, const char *name)
{
    if (n->n > 0 && strcmp(n->name[n->last], name) == 0) return n->last;
    for (long at = n->n_slots ? (long)(hash(name) % (uint64_t)n->n_slots) : 0; n->n_slots && n->slot[at]; at = (at + 1) % n->n_slots)
        if (strcmp(n->name[n->slot[at] - 1], name) == 0) return n->last = n->slot[at] - 1;
    if (n->n == n->room) {
        n->room = n->room ? 2 * n->room : 16;
        n->name = gm_grow(n->name, (size_t)n->room, sizeof *n->name);
    }
    n->name[n->n++] = gm_copy_text(name);
    if (MOST_SLOTS_USED * n->n < n->n_slots) put(n, n->n - 1);
    else {
        free(n->slot);
        n->n_slots = n->n_slots ? 4 * n->n_slots : FIRST_SLOTS;
        n->slot = gm_alloc((size_t)n->n_slots, sizeof *n->slot);
        for (long k = 0; k < n->n; k++) put(n, k);
    }
    return n->last = n->n - 1;
}

// Well-formed UTF-8 without control characters (The Unicode Standard, table 3-7): NULL, or why a text is no name.
static const char *unfit(const char *text)
{
    for (const unsigned char *c = (const unsigned char *)text; *c;) {
        if (*c < 0x20 || *c == 0x7f) return "holds a control character, which a name may not";
        const int more = *c < 0x80 ? 0 : *c >= 0xc2 && *c < 0xe0 ? 1 : *c >= 0xe0 && *c < 0xf0 ? 2 : *c >= 0xf0 && *c < 0xf5 ? 3 : -1;
        bool good = more >= 0;
        for (int k = 1; k <= more && good; k++) good = (c[k] & 0xc0) == 0x80;
        if (good && more == 2) good = !(c[0] == 0xe0 && c[1] < 0xa0) && !(c[0] == 0xed && c[1] > 0x9f);  // no longer form, no surrogate
        if (good && more == 3) good = !(c[0] == 0xf0 && c[1] < 0x90) && !(c[0] == 0xf4 && c[1] > 0x8f);
        if (!good) return "is not UTF-8: save the file in that encoding";
        c += more + 1;
    }
    return NULL;
}

bool gm_dates_are_read(void) { return as_days; }

// A number among dates could be meant in another unit, or as days from another day. NULL: there is none.
static const char *date_or_number(GmValue *v, const char *text, bool date)
{
    double x;
    const char *why;
    const bool number = !date && gm_parse_number(text, &x, &why) && !isnan(x);
    v->has_dates |= date;
    v->has_numbers |= number;
    if (!v->has_dates || !v->has_numbers) return NULL;
    if (date) return "is a date, and numbers stand above it: all are dates, or none";
    return number ? "is a number, and dates stand above it: all are dates, or none" : NULL;
}

GmTextIs gm_read_text(GmValue *v, long at, const char *text, const char **why)
{
    double x, day;
    const char *not_date = NULL;
    const bool date = as_days && is_date(text, &day, &not_date);
    if (as_days && !not_date && (*why = date_or_number(v, text, date))) return GM_TEXT_REFUSED;
    if (date) {
        if (v->names) {
            *why = "is a date, and names stand above it: all are names, or none";
            return GM_TEXT_REFUSED;
        }
        if (v->first_number < 0) v->first_number = at;
        if (gm_store(v->type, v->elements, at, day - first_day, why)) return GM_TEXT_STORED;
        return GM_TEXT_REFUSED;
    }
    if (not_date) {
        *why = not_date;
        return GM_TEXT_REFUSED;
    }
    if (!v->may_be_names) return GM_TEXT_OTHER;
    char *name = trimmed(text);
    const bool number = gm_parse_number(name, &x, why) && !is_given(v, name);
    GmTextIs is = GM_TEXT_OTHER;
    if (number && (isnan(x) || !v->names)) {
        if (!isnan(x) && v->first_number < 0) v->first_number = at;
    } else if (number || v->first_number >= 0) {
        *why = number ? "is a number, and names stand above it: all are names, or none (--levels names all)"
                      : "is a name, and numbers stand above it: all are names, or none (--levels names all)";
        is = GM_TEXT_REFUSED;
    } else if ((*why = unfit(name))) is = GM_TEXT_REFUSED;
    else {
        if (!v->names) v->names = gm_alloc(1, sizeof *v->names);
        v->names->occurred++;
        ((int32_t *)v->elements)[at] = (int32_t)place_of(v->names, name) + 1;
        is = v->names->n < INT32_MAX ? GM_TEXT_STORED : GM_TEXT_REFUSED;
    }
    free(name);
    return is;
}

// Digits with a comma among them, as 1,5 is written in many countries.
static bool has_decimal_comma(const char *text)
{
    const char *comma = strchr(text, ',');
    return comma && comma > text && isdigit((unsigned char)comma[1]) && !strchr(comma + 1, ',') &&
           strspn(text, "+-0123456789, ") == strlen(text);
}

// What a text that is neither a number nor a name looks like, and what to do.
static const char *no_number(const GmValue *v, const char *text)
{
    static const char *const words[] = {"T", "F", "yes", "no", "y", "n", "on", "off"};
    double day;
    const char *why = NULL;
    if (!as_days && is_date(text, &day, &why)) return "is a date: --dates DAY reads dates as numbers, days from DAY on";
    const char *slash = strchr(text, '/');
    if (slash && isdigit((unsigned char)*text) && strchr(slash + 1, '/') && strspn(text, "0123456789/") == strlen(text))
        return "is not a number: dates are read as 2024-03-01, with --dates DAY";
    for (size_t k = 0; k < sizeof words / sizeof *words && v->type == GM_INT; k++)
        if (strcasecmp(text, words[k]) == 0) return "is not a number: truth values are written true and false, or 1 and 0";
    if (has_decimal_comma(text)) return "is not a number: decimals have a point";
    const bool letters = isalpha((unsigned char)*text) || (unsigned char)*text >= 0x80;
    if (v->type == GM_INT && v->rank > 0 && !v->may_be_names && letters)
        return "is not a number; names are read where both bounds are declared, int<lower=1, upper=J>";
    return "is not a number";
}

const char *gm_text_why(const GmValue *v, const char *text, const char *why)
{
    if (strcmp(why, "is not a number") != 0) return why;
    char *cut = trimmed(text);
    why = no_number(v, cut);
    free(cut);
    return why;
}

// ---- levels of all variables ----

static int by_bytes(const void *a, const void *b) { return strcmp(*(char *const *)a, *(char *const *)b); }

// The place of a name among levels in any order; -1: it is not there. `sorted` are places in ascending order of names.
static long find_level(const GmLevels *l, const char *name, const long *sorted)
{
    for (long low = 0, high = l->n; low < high;) {
        const long middle = (low + high) / 2;
        const int order = strcmp(name, l->name[sorted[middle]]);
        if (order == 0) return sorted[middle];
        if (order < 0) high = middle;
        else low = middle + 1;
    }
    return -1;
}

static const GmLevels *ordered;  // for qsort
static int by_name(const void *a, const void *b) { return strcmp(ordered->name[*(const long *)a], ordered->name[*(const long *)b]); }

static long *sort_places(const GmLevels *l)
{
    long *places = gm_alloc((size_t)l->n, sizeof *places);
    for (long k = 0; k < l->n; k++) places[k] = k;
    ordered = l;
    qsort(places, (size_t)l->n, sizeof *places, by_name);
    return places;
}

static bool in_set(const GmLevels *l, const GmModel *m, int f) { return l->size ? m->data[f].upper_of == l->size : f == l->field; }

static GmLevels *set_for(GmLevelSets *sets, const GmModel *m, int f)
{
    for (int k = 0; k < sets->n; k++)
        if (in_set(&sets->set[k], m, f)) return &sets->set[k];
    sets->set = gm_grow(sets->set, (size_t)sets->n + 1, sizeof *sets->set);
    sets->set[sets->n] = (GmLevels){.size = m->data[f].upper_of, .field = f};
    return &sets->set[sets->n++];
}

static void copy_names(GmLevels *l, char *const *name, long n)
{
    l->name = gm_alloc((size_t)n, sizeof *l->name);
    for (long k = 0; k < n; k++) l->name[l->n++] = gm_copy_text(name[k]);
}

// What --levels gives. false after a message.
static bool take_given(GmLevelSets *sets, const GmModel *m)
{
    for (int k = 0; k < n_given; k++) {
        int f = 0;
        while (f < m->n_data && strcmp(m->data[f].name, given[k].variable) != 0) f++;
        if (f == m->n_data || !gm_takes_levels(&m->data[f])) {
            gm_error(f == m->n_data ? "--levels: the model's data has no %s"
                                    : "--levels: %s has no levels: they are for data declared int<lower=1, upper=J>",
                     given[k].variable);
            return false;
        }
        GmLevels *l = set_for(sets, m, f);
        if (l->given) {
            gm_error("--levels: %s and %s have the same levels, those of %s: give them once", m->data[l->field].name, m->data[f].name,
                     m->data[l->size - 1].name);
            return false;
        }
        l->field = f;
        l->given = true;
        copy_names(l, given[k].name, given[k].n);
    }
    return true;
}

// The union of the names of all variables of a set, sorted.
static void collect(GmLevels *l, const GmModel *m, const GmValues *values)
{
    char **all = NULL;
    long n = 0;
    for (int f = 0; f < m->n_data; f++) {
        const GmValue *v = in_set(l, m, f) ? gm_values_find(values, m->data[f].name) : NULL;
        if (!v || !v->names) continue;
        all = gm_grow(all, (size_t)(n + v->names->n), sizeof *all);
        memcpy(all + n, v->names->name, (size_t)v->names->n * sizeof *all);
        n += v->names->n;
    }
    qsort(all, (size_t)n, sizeof *all, by_bytes);
    long kept = 0;
    for (long k = 0; k < n; k++)
        if (k == 0 || strcmp(all[k], all[kept - 1]) != 0) all[kept++] = all[k];
    copy_names(l, all, kept);
    free(all);
}

// The code point at *at, which goes on behind it. Names are UTF-8; other bytes are taken one by one.
static unsigned code_point(const char **at)
{
    const unsigned char *s = (const unsigned char *)*at;
    const int more = s[0] >= 0xf0 ? 3 : s[0] >= 0xe0 ? 2 : s[0] >= 0xc0 ? 1 : 0;
    unsigned c = more ? s[0] & (0x3f >> more) : s[0];
    int k = 1;
    for (; k <= more && (s[k] & 0xc0) == 0x80; k++) c = c << 6 | (s[k] & 0x3f);
    *at += k;
    return c;
}

static bool is_accent(unsigned c) { return c >= 0x300 && c <= 0x36f; }

// Whether two names may look alike: a letter with accents behind it stands in one where the other has one letter for both, as Unicode
// has for most. Which letter is not looked up.
static bool may_look_alike(const char *a, const char *b)
{
    bool apart = false;
    while (*a && *b) {
        const unsigned x = code_point(&a), y = code_point(&b);
        bool accents[2] = {false, false};
        for (const char *next = a; *next && is_accent(code_point(&next)); a = next) accents[0] = true;
        for (const char *next = b; *next && is_accent(code_point(&next)); b = next) accents[1] = true;
        if (x == y && accents[0] == accents[1]) continue;
        if (accents[0] == accents[1] || (accents[0] ? y : x) < 0xc0) return false;
        apart = true;
    }
    return apart && !*a && !*b;
}

static bool has_accent(const char *name)
{
    while (*name)
        if (is_accent(code_point(&name))) return true;
    return false;
}

// Names become codes. false after a message: one is none of the levels.
static bool code(GmValue *v, const GmLevels *l, const char *whose)
{
    long *sorted = sort_places(l), *to = gm_alloc((size_t)v->names->n, sizeof *to), absent = -1;
    for (long k = 0; k < v->names->n; k++) {
        to[k] = find_level(l, v->names->name[k], sorted);
        if (to[k] < 0 && absent < 0) absent = k;
    }
    int32_t *code = v->elements;
    const long size = gm_value_size(v);
    for (long i = 0; i < size; i++) {
        if (code[i] == GM_MISSING_INT) continue;
        if (code[i] == absent + 1) {
            const char *is = v->names->name[absent];
            char *name = gm_element_name(v->name, v->rank, v->dim, i);
            long like = 0;
            while (like < l->n && !may_look_alike(is, l->name[like])) like++;
            gm_error("%s: %s = \"%s\" is none of the %ld levels %s%s%s%s", v->source, name, is, l->n, whose, like < l->n ? "; \"" : "",
                     like < l->n ? l->name[like] : "",
                     like < l->n ? "\" there may be the same name in another way (Unicode: a letter and an accent, or one letter)" : "");
            free(name);
            break;
        }
        if (to[code[i] - 1] >= 0) code[i] = (int32_t)to[code[i] - 1] + 1;
    }
    free(to);
    free(sorted);
    return absent < 0;
}

// Levels that a run does not have, sorted, behind those that it has.
static void add_new(GmLevels *l, const GmModel *m, const GmValues *values)
{
    GmLevels all = {.size = l->size, .field = l->field};
    collect(&all, m, values);
    long *sorted = sort_places(l), n = 0;
    l->old = l->n;
    for (long k = 0; k < all.n; k++) {
        if (find_level(l, all.name[k], sorted) >= 0) free(all.name[k]);
        else all.name[n++] = all.name[k];
    }
    l->name = gm_grow(l->name, (size_t)(l->n + n), sizeof *l->name);
    for (long k = 0; k < n; k++) l->name[l->n++] = all.name[k];
    free(sorted);
    free(all.name);
}

// Beside levels in the order of their names nothing may be given by place: who wrote it cannot have meant that order.
static bool by_place(const GmLevels *l, const GmModel *m, const GmValues *values)
{
    for (int f = 0; f < m->n_data; f++) {
        const GmValue *v = gm_values_find(values, m->data[f].name);
        bool place = v && in_set(l, m, f) && !v->names && gm_value_size(v) > 0;
        for (int k = 0; k < m->data[f].rank && v && l->size; k++) place |= m->data[f].extent_of[k] == l->size;
        if (!place) continue;
        gm_error("%s: %s is given by number, and %s by name: --levels %s=... says in which order the levels are meant", v->source,
                 m->data[f].name, m->data[l->field].name, m->data[l->field].name);
        return true;
    }
    return false;
}

// The size that counts levels, or the number that bounds them.
static bool count(const GmLevels *l, const GmModel *m, GmValues *values)
{
    const char *of = m->data[l->field].name;
    GmValue *size = l->size ? gm_values_find(values, m->data[l->size - 1].name) : NULL;
    const double declared = size ? *(int32_t *)size->elements : l->size ? (double)l->n : m->data[l->field].upper;
    if (declared != (double)l->n) {
        gm_error("%s: %s has %ld levels, and %s %.10g: --levels %s=A,B,... names all", size ? size->source : "data", of, l->n,
                 size ? m->data[l->size - 1].name : "its upper bound is", declared, of);
        return false;
    }
    if (size || !l->size) return true;
    size = gm_values_add(values, m->data[l->size - 1].name, of);
    size->type = GM_INT;
    size->elements = gm_alloc(1, sizeof(double));
    *(int32_t *)size->elements = (int32_t)l->n;
    size->size_of = of;
    size->size_from = "levels";
    return true;
}

static const double MOST_PAIRS = 4e6;  // that are compared, in some tenths of a second

// Names that are written in two ways are two levels, which is seldom meant. Of more pairs nothing is said.
static void say_alike(const GmLevels *l)
{
    long accented = 0;
    for (long i = 0; i < l->n; i++) accented += has_accent(l->name[i]);
    if ((double)accented * (double)l->n > MOST_PAIRS) return;
    for (long i = 0; i < l->n; i++)
        for (long k = 0; has_accent(l->name[i]) && k < l->n; k++)
            if (may_look_alike(l->name[i], l->name[k])) {
                gm_note("%s and %s are two levels, %ld and %ld, and may be one name that is written in two ways (Unicode: a letter and an "
                        "accent, or one letter): write one of them in the data",
                        l->name[i], l->name[k], i + 1, k + 1);
                return;
            }
}

static void say(const GmLevels *l, const GmModel *m, const GmValues *values)
{
    char *of = gm_copy_text("");
    for (int f = 0; f < m->n_data; f++) {
        const GmValue *v = in_set(l, m, f) ? gm_values_find(values, m->data[f].name) : NULL;
        if (!v || !v->names) continue;
        char *more = gm_format("%s%s%s", of, *of ? ", " : "", v->name);
        free(of);
        of = more;
        if (!l->given && v->names->n > 1 && 2 * v->names->n > v->names->occurred)
            gm_note("%s: %s has %ld different names in %ld places: is it a factor?", v->source, v->name, v->names->n, v->names->occurred);
    }
    if (*of) {
        say_alike(l);
        char *size = l->size ? gm_format("%s: %ld, ", m->data[l->size - 1].name, l->n) : gm_copy_text("");
        const char *given = l->given ? " as --levels has them" : "";
        if (l->n == 1) gm_note("%sthe one level of %s, %s%s", size, of, l->name[0], given);
        else gm_note("%sthe levels of %s, from %s to %s%s", size, of, l->name[0], l->name[l->n - 1], given);
        free(size);
    }
    free(of);
}

bool gm_levels_settle(GmLevelSets *sets, const GmModel *m, GmValues *values, const GmLevelSets *others)
{
    const bool again = others != NULL;
    if (again) {
        for (int k = 0; k < others->n; k++) {
            const GmLevels *from = &others->set[k];
            GmLevels *l = set_for(sets, m, from->field);
            l->given = true;
            copy_names(l, from->name, from->n);
            if (others->grows) add_new(l, m, values);
            if (l->n > from->n) say_alike(l);
        }
    } else if (!take_given(sets, m)) return false;
    for (int f = 0; f < m->n_data; f++) {
        const GmValue *v = gm_values_find(values, m->data[f].name);
        if (v && v->names) set_for(sets, m, f);
    }
    for (int k = 0; k < sets->n; k++) {
        GmLevels *l = &sets->set[k];
        if (!l->given && again) {
            gm_error(others->of_a_fit
                         ? "%s is given by name, and NAME_levels.json beside the draws does not have its levels: the fit had numbers, or "
                           "the file has moved"
                         : "%s is given by name, and was given by number in the run",
                     m->data[l->field].name);
            return false;
        }
        if (!l->given) {
            collect(l, m, values);
            if (by_place(l, m, values)) return false;
        }
        if (!again) say(l, m, values);
        for (int f = 0; f < m->n_data; f++) {
            GmValue *v = in_set(l, m, f) ? gm_values_find(values, m->data[f].name) : NULL;
            if (again && v && !v->names && v->may_be_names && v->first_number >= 0) {
                gm_error("%s: %s is given by number, and was given by name in the run", v->source, v->name);
                return false;
            }
            const char *whose = "that --levels names";
            if (again)
                whose =
                    others->of_a_fit ? "of the fit: with --new-levels draw what belongs to a new one is drawn from its law" : "of the run";
            if (v && v->names && !code(v, l, whose)) return false;
        }
        if (!count(l, m, values)) return false;
    }
    return true;
}

bool gm_levels_write(const GmLevelSets *sets, const GmModel *m, const char *output)
{
    char *path = gm_format("%s_levels.json", output);
    GmFile out;
    const bool open = gm_output_open(&out, path, false);
    free(path);
    if (!open) return false;
    json_t *root = json_object();
    for (int k = 0; k < sets->n; k++)
        for (int f = 0; f < m->n_data; f++) {
            if (!in_set(&sets->set[k], m, f)) continue;
            json_t *names = json_array();
            for (long i = 0; i < sets->set[k].n; i++) json_array_append_new(names, json_string(sets->set[k].name[i]));
            json_object_set_new(root, m->data[f].name, names);
        }
    json_dumpf(root, out.to, JSON_INDENT(1));
    fputc('\n', out.to);
    json_decref(root);
    return gm_output_done(&out);
}

bool gm_levels_read(GmLevelSets *sets, const GmModel *m, const char *path)
{
    json_error_t wrong;
    json_t *root = json_load_file(path, 0, &wrong);
    bool good = json_is_object(root);
    gm_file_is_read(path);
    for (int f = 0; f < m->n_data && good; f++) {
        json_t *names = json_object_get(root, m->data[f].name);
        if (!names) continue;
        good = json_is_array(names) && gm_takes_levels(&m->data[f]);
        GmLevels *l = good ? set_for(sets, m, f) : NULL;
        const bool known = l && l->given;  // another variable has the same levels
        for (size_t k = 0; k < json_array_size(names) && good && !known; k++) {
            char *name = (char *)json_string_value(json_array_get(names, k));
            good = name != NULL;
            if (!good) break;
            l->name = gm_grow(l->name, k + 1, sizeof *l->name);
            l->name[l->n++] = gm_copy_text(name);
        }
        if (l) l->given = true;
    }
    if (!good) gm_error("%s: these are no levels of data of this model, as a run writes them", path);
    json_decref(root);
    return good;
}

void gm_levels_close(GmLevelSets *sets)
{
    for (int k = 0; k < sets->n; k++) {
        for (long i = 0; i < sets->set[k].n; i++) free(sets->set[k].name[i]);
        free(sets->set[k].name);
    }
    free(sets->set);
    *sets = (GmLevelSets){0};
}

// ---- labels ----

const GmLevels *gm_levels_of_size(const GmLevelSets *sets, int size)
{
    for (int k = 0; k < sets->n && size; k++)
        if (sets->set[k].size == size) return &sets->set[k];
    return NULL;
}

static bool is_plain(const char *name) { return !strpbrk(name, ",[]\"'"); }

char *gm_labelled_name(const GmLevelSets *sets, const GmField *field, const GmShape *s, long linear)
{
    bool any = false;
    for (int k = 0; k < s->rank; k++) any |= gm_levels_of_size(sets, field->extent_of[k]) != NULL;
    if (!any) return gm_element_name(field->name, s->rank, s->dim, linear);
    long index[GM_MAX_RANK];
    for (int k = s->rank - 1; k >= 0; linear /= s->dim[k], k--) index[k] = linear % s->dim[k];
    char *text = gm_format("%s[", field->name);
    for (int k = 0; k < s->rank; k++) {
        const GmLevels *l = gm_levels_of_size(sets, field->extent_of[k]);
        char *label = l ? gm_format(is_plain(l->name[index[k]]) ? "%s" : "'%s'", l->name[index[k]]) : gm_format("%ld", index[k] + 1);
        char *more = gm_format("%s%s%s", text, k ? ", " : "", label);
        free(label);
        free(text);
        text = more;
    }
    char *whole = gm_format("%s]", text);
    free(text);
    return whole;
}

int gm_columns_of(const char *text)
{
    int n = 0;
    for (; *text; text++) n += ((unsigned char)*text & 0xc0) != 0x80;  // all bytes of a character but its first are 10......
    return n;
}
