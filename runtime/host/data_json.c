// data_json.c -- JSON files, in CmdStan's conventions.
//
//   { "N": 3, "y": [1, 0, null], "X": [[1, 2.5], [0, "NA"], [4, "Inf"]] }
//
// Arrays are nested row by row. null, "NA" and "NaN" are missing values, "Inf" and "-Inf" infinities. Python writes NaN and Infinity
// without quotes, which JSON has not: they are taken as these. true and false are 1 and 0 where ints are wanted. Other strings may be names
// (levels.c).
// Each member is converted and then freed, so that at no time more than the parsed tree and the arrays read so far are held.
#include "../backends/files.h"
#include "fields.h"
#include "inputs.h"
#include "messages.h"

#include <ctype.h>
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

// The shape of a nested array, read off its first elements; `fill` checks that the rest agrees.
static int measure(const json_t *node, long *dim)
{
    int rank = 0;
    while (json_is_array(node)) {
        if (rank == GM_MAX_RANK) return -1;
        dim[rank++] = (long)json_array_size(node);
        if (json_array_size(node) == 0) break;
        node = json_array_get(node, 0);
    }
    return rank;
}

// One number out of a leaf. On failure *why ends the sentence `y[3] = TEXT ...`.
static bool leaf(const json_t *node, GmType type, double *out, const char **why)
{
    switch (json_typeof(node)) {
    case JSON_INTEGER: *out = (double)json_integer_value(node); return true;
    case JSON_REAL: *out = json_real_value(node); return true;
    case JSON_NULL: *out = NAN; return true;
    case JSON_TRUE:
    case JSON_FALSE:
        *out = json_is_true(node);
        *why = "is not a number: true and false are for ints, 1 and 0";
        return type == GM_INT;
    case JSON_STRING:  // "NaN", "Inf": what JSON has no number for
        if (!gm_parse_number(json_string_value(node), out, why)) return false;
        *why = "is a string, not a number: write it without quotes";
        return !isfinite(*out);
    case JSON_OBJECT: *why = "is an object, not a number"; return false;
    case JSON_ARRAY: *why = "is an array where a number should be: the rows differ in depth"; return false;
    }
    return false;
}

// A string, or what is a number where names may be: --levels may name it, and it may not stand among names.
static GmTextIs text_is(GmValue *v, long at, const json_t *node, const char **why)
{
    char number[32];
    if (json_is_string(node)) return gm_read_text(v, at, json_string_value(node), why);
    if (!v->may_be_names && !gm_dates_are_read()) return GM_TEXT_OTHER;
    if (json_is_integer(node)) snprintf(number, sizeof number, "%lld", (long long)json_integer_value(node));
    else if (json_is_real(node)) snprintf(number, sizeof number, "%.17g", json_real_value(node));
    else if (json_is_boolean(node)) snprintf(number, sizeof number, "%d", json_is_true(node));
    else return GM_TEXT_OTHER;
    return gm_read_text(v, at, number, why);
}

static bool fill(GmValue *v, const json_t *node, int depth, long *at)
{
    const char *why = NULL;
    if (depth == v->rank) {
        double x = 0;
        const GmTextIs is = text_is(v, *at, node, &why);
        if (is == GM_TEXT_STORED ||
            (is == GM_TEXT_OTHER && leaf(node, v->type, &x, &why) && gm_store(v->type, v->elements, *at, x, &why))) {
            ++*at;
            return true;
        }
        if (json_is_string(node)) why = gm_text_why(v, json_string_value(node), why);
        char *name = gm_element_name(v->name, v->rank, v->dim, *at);
        char *text = json_is_object(node) || json_is_array(node) ? NULL : json_dumps(node, JSON_ENCODE_ANY | JSON_REAL_PRECISION(10));
        if (text) gm_error("%s: %s = %s %s", v->source, name, text, why);
        else gm_error("%s: %s %s", v->source, name, why);
        free(text);
        free(name);
        return false;
    }
    const long size = json_is_array(node) ? (long)json_array_size(node) : -1;
    if (size != v->dim[depth]) {
        char *name = gm_element_name(v->name, v->rank, v->dim, *at);
        if (size < 0)
            gm_error("%s: %s is a number where an array of %ld should be: the rows differ in depth", v->source, name, v->dim[depth]);
        else
            gm_error("%s: the rows of %s differ in length: the one that begins at %s has %ld values, the first has %ld", v->source, v->name,
                     name, size, v->dim[depth]);
        free(name);
        return false;
    }
    size_t i;
    const json_t *kid;
    json_array_foreach(node, i, kid) if (!fill(v, kid, depth + 1, at)) return false;
    return true;
}

// [[1, 2], [3]] as [1, 2, 3], and the lengths of its rows; NULL: these are no rows, or a message says what is wrong (*bad).
static json_t *flat_rows(GmValue *v, const json_t *node, bool *bad)
{
    const json_t *row;
    size_t i, arrays = 0;
    json_array_foreach(node, i, row) arrays += json_is_array(row);
    if (!json_is_array(node) || (arrays == 0 && json_array_size(node) > 0)) return NULL;
    json_t *flat = json_array();
    v->n_rows = (long)json_array_size(node);
    v->row = gm_alloc((size_t)v->n_rows + 1, sizeof *v->row);
    json_array_foreach(node, i, row)
    {
        if (!json_is_array(row)) {
            gm_error("%s: row %zu of %s is a number where an array should be", v->source, i + 1, v->name);
            *bad = true;
            break;
        }
        v->row[i] = (int32_t)json_array_size(row);
        json_array_extend(flat, (json_t *)row);
    }
    gm_rows_set(v->name, v->row, v->n_rows);
    return flat;
}

static bool convert(GmValues *values, const char *path, const char *name, const json_t *node)
{
    const GmField *field = gm_values_wanted(values, name);
    if (!field && values->tells) gm_note("%s: %s is not in the model's data, and is not read", path, name);
    if (!field) return true;
    GmValue *v = gm_values_add(values, name, path);
    if (!v) return false;
    v->type = field->type;
    gm_levels_begin(values, v);
    bool bad = false;
    json_t *flat = field->rows_of ? flat_rows(v, node, &bad) : NULL;
    if (flat) node = flat;
    v->rank = bad ? 0 : measure(node, v->dim);
    if (v->rank < 0) {
        gm_error("%s: %s is nested more than %d deep", path, name, GM_MAX_RANK);
        v->rank = 0;
        return false;
    }
    v->elements = gm_alloc((size_t)gm_value_size(v), v->type == GM_INT ? sizeof(int32_t) : sizeof(double));
    long at = 0;
    const bool good = !bad && fill(v, node, 0, &at);
    json_decref(flat);
    return good;
}

// What others write where JSON wants something else; everything besides is for the parser's own words.
static const char *hint_for(const char *said)
{
    static const char number[] = " (JSON has no such number: write null for a missing value, \"Inf\" or \"-Inf\" in quotes)";
    static const struct {
        const char *token, *hint;
    } known[] = {
        {"nan", number},
        {"inf", number},
        {"infinity", number},
        {"na", " (write null for a missing value)"},
        {"none", " (write null for a missing value)"},
        {"null", " (write null for a missing value)"},
        {"true", " (write 1 or 0)"},
        {"false", " (write 1 or 0)"},
        {"-", " (a digit follows a minus; minus infinity is written \"-Inf\", in quotes)"},
        {"+", " (a number begins with a digit or a minus)"},
        {".", " (a number begins with a digit or a minus)"},
        {"'", " (names and texts stand in double quotes)"},
    };
    const char *near = strstr(said, "near '"), *token = near ? near + strlen("near '") : "";
    const size_t n = strlen(token);
    for (size_t k = 0; k < sizeof known / sizeof *known; k++)
        if (strlen(known[k].token) + 1 == n && strncasecmp(known[k].token, token, n - 1) == 0) return known[k].hint;
    return "";
}

// ---- NaN and Infinity without quotes ----

typedef struct Filter {  // of a text on its way to the parser
    FILE *file;
    bool in_string, escaped;
    char before;       // the last character that went on
    char word[16];     // a word that has begun
    int n, ready, at;  // its length; of what goes on in its place, and how much of it has
} Filter;

enum { MOST_WORD = 9 };  // -Infinity

// A word that JSON has not, in one of its own forms of the same length: columns in messages stay what they are.
static void replace_word(Filter *f)
{
    static const struct {
        const char *word, *by;
    } known[] = {{"NaN", "\"\" "}, {"Infinity", "\"Inf\"   "}, {"-Infinity", "\"-Inf\"   "}};
    for (size_t k = 0; k < sizeof known / sizeof *known; k++)
        if ((int)strlen(known[k].word) == f->n && memcmp(known[k].word, f->word, (size_t)f->n) == 0)
            memcpy(f->word, known[k].by, (size_t)f->n);
    f->ready = f->n;
    f->n = f->at = 0;
}

static bool begins_word(const Filter *f, int c)
{
    const bool apart = !isalnum((unsigned char)f->before) && !strchr(".+-_", f->before);
    return (c == 'N' || c == 'I' || c == '-') && (apart || f->before == 0);
}

static size_t filtered(void *buffer, size_t room, void *with)
{
    Filter *f = with;
    char *out = buffer;
    size_t n = 0;
    while (n < room) {
        if (f->at < f->ready) {
            out[n++] = f->before = f->word[f->at++];
            continue;
        }
        f->ready = f->at = 0;
        const int c = getc(f->file);
        if (f->n > 0 && (c == EOF || !isalpha((unsigned char)c) || f->n == MOST_WORD)) {
            if (c != EOF) ungetc(c, f->file);
            replace_word(f);
            continue;
        }
        if (c == EOF) break;
        if (f->n > 0 || (!f->in_string && begins_word(f, c))) {
            f->word[f->n++] = (char)c;
            continue;
        }
        if (c == '"' && !f->escaped) f->in_string = !f->in_string;
        f->escaped = f->in_string && c == '\\' && !f->escaped;
        out[n++] = f->before = (char)c;
    }
    return n;
}

// Passes over a byte order mark. False: what begins there is no JSON, which the parser would not say so that one could mend it.
static bool begin(FILE *file, const char *path)
{
    char mark[3] = "";
    const int first = getc(file);
    if (first != 0xef && first != 0xfe && first != 0xff) {
        if (first != EOF) ungetc(first, file);
        else gm_error("%s: is empty", path);
        return first != EOF;
    }
    mark[0] = (char)first;
    const size_t n = 1 + fread(mark + 1, 1, first == 0xef ? 2 : 1, file);
    if (n == 3 && memcmp(mark, "\xef\xbb\xbf", 3) == 0) return true;
    gm_error(gm_is_utf16(mark, n) ? "%s: is text of 16 bits a character (UTF-16): save it as UTF-8" : "%s: is no JSON text", path);
    return false;
}

bool gm_json_read(GmValues *values, const char *path)
{
    gm_file_is_read(path);
    FILE *file = gm_text_open(path);
    if (!file) return false;
    if (!begin(file, path)) {
        fclose(file);
        return false;
    }
    json_error_t error;
    Filter filter = {.file = file};
    json_t *root = json_load_callback(filtered, &filter, JSON_REJECT_DUPLICATES, &error);
    fclose(file);
    if (!root) {
        const bool nul = strstr(error.text, "JSON_ALLOW_NUL");
        gm_error("%s:%d:%d: %s%s", path, error.line, error.column, nul ? "\\u0000 stands in a text, which may not hold it" : error.text,
                 hint_for(error.text));
        return false;
    }
    bool good = json_is_object(root);
    if (!good) gm_error("%s: the file should hold one object, { \"name\": value, ... }", path);
    while (good) {
        void *member = json_object_iter(root);
        if (!member) break;
        char *name = gm_copy_text(json_object_iter_key(member));
        good = convert(values, path, name, json_object_iter_value(member));
        json_object_del(root, name);
        free(name);
    }
    json_decref(root);
    return good;
}
