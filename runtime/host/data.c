// data.c -- values against declarations: what the files hold becomes the model's Data, or a line that says why not.
//
//   files -> values       names, shapes and numbers as they stand
//   infer                 int sizes that no file gives, from arrays declared with them
//   fields, in order      default or value; shape; bounds; constraint; missing values
#include "fields.h"
#include "inputs.h"
#include "messages.h"
#include "output.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "../backends/nonzeros.h"

static const char *place(const GmField *f) { return f->where ? f->where : "the model"; }

// ---- checks of one array ----

static double element(const GmField *f, const void *elements, long i)
{
    if (f->type != GM_INT) return ((const double *)elements)[i];
    const int32_t x = ((const int32_t *)elements)[i];
    return x == GM_MISSING_INT ? NAN : (double)x;
}

// The line for a bad value: `data.json: y[3] = 7 is above its upper bound 1 (declared int<lower=0, upper=1> y[N], model.gm:5)`.
static void refuse(const GmField *f, const GmShape *s, const char *source, long i, const void *elements, const char *why)
{
    char *name = gm_element_name(f->name, s->rank, s->dim, i);
    char *declared = gm_declared_text(f, s);
    const double x = element(f, elements, i);
    const char *also = f->asked_by ? f->asked_by : "", *is = f->asked_by ? "; it is " : "";
    if (isnan(x)) gm_error("%s: %s %s (declared %s, %s%s%s)", source, name, why, declared, place(f), is, also);
    else gm_error("%s: %s = %.10g %s (declared %s, %s%s%s)", source, name, x, why, declared, place(f), is, also);
    free(declared);
    free(name);
}

// A statement with which missing values of a covariate are drawn; "": there is no usual one. The caller frees.
static char *imputing(const GmField *f, const GmShape *s)
{
    const bool unit = s->lower == 0 && s->upper == 1;
    if (f->constraint || f->rank > 2 || (f->type == GM_INT && (f->rank != 1 || s->lower < 0))) return gm_copy_text("");
    const char *law = f->type != GM_INT                       ? unit            ? "beta(a_%s, b_%s)"
                                                                : s->lower >= 0 ? "lognormal(m_%s, s_%s)"
                                                                                : "normal(m_%s, s_%s)"
                      : unit                                  ? "bernoulli(p_%s)"
                      : s->upper < INT32_MAX && s->lower == 1 ? "categorical(w_%s)"
                                                              : "poisson(r_%s)";
    char *name = gm_format(f->rank == 2 ? "%s[j]" : "%s", f->name), *right = gm_format(law, name, name);
    char *level = gm_copy_text("");
    if (gm_takes_levels(f)) {
        free(level);
        level = gm_format("; a level that is called NA is named by --levels %s=A,NA,...", f->name);
    }
    char *text = gm_format(": `%s%s ~ %s;` there, with priors, draws them%s", f->name, f->rank == 2 ? "[i, j]" : "", right, level);
    free(level);
    free(right);
    free(name);
    return text;
}

static bool check_bounds(const GmField *f, const GmShape *s, const void *elements, const char *source, GmMissing *missing)
{
    const long size = gm_shape_size(s);
    long room = 0;
    for (long i = 0; i < size; i++) {
        const double x = element(f, elements, i);
        if (x >= s->lower && x <= s->upper && !(f->finite && isinf(x))) continue;
        if (isnan(x)) {
            if (!missing) {
                char *draws = imputing(f, s);
                char *why = f->needed_for ? gm_format("is missing, but %s", f->needed_for)
                                          : gm_format("is missing, which is only allowed in what the likelihood describes%s", draws);
                refuse(f, s, source, i, elements, why);
                free(why);
                free(draws);
                return false;
            }
            if (missing->count == room) {
                room = room ? 2 * room : 16;
                missing->index = gm_grow(missing->index, (size_t)room, sizeof *missing->index);
            }
            missing->index[missing->count++] = i;
            continue;
        }
        char *why = x < s->lower   ? gm_format("is below its lower bound %.10g", s->lower)
                    : x > s->upper ? gm_format("is above its upper bound %.10g", s->upper)
                                   : gm_copy_text("is infinite: only ends of intervals may be");
        refuse(f, s, source, i, elements, why);
        free(why);
        return false;
    }
    return true;
}

// Stan's tolerance for data that should sum to one or be symmetric: values printed with ten digits pass.
static const double CONSTRAINT_TOLERANCE = 1e-8;

// Why x (a vector of n) violates c, with *bad the element; or NULL.
static const char *vector_fault(GmConstraint c, const double *x, long n, long *bad)
{
    double sum = 0, squares = 0, most = 1;
    for (long i = 0; i < n; i++) {
        *bad = i;
        sum += x[i];
        most = fabs(x[i]) > most ? fabs(x[i]) : most;
        squares += x[i] * x[i];
        if (c == GM_SIMPLEX && x[i] < 0) return "is negative, which a simplex cannot be";
        if ((c == GM_ORDERED || c == GM_POSITIVE_ORDERED) && i > 0 && !(x[i] > x[i - 1])) return "is not above the element before it";
        if (c == GM_POSITIVE_ORDERED && x[i] < 0) return "is negative";
    }
    *bad = 0;
    if (c == GM_SIMPLEX && !(fabs(sum - 1) <= CONSTRAINT_TOLERANCE)) return "begins a vector that does not sum to 1";
    if (c == GM_UNIT_VECTOR && !(fabs(squares - 1) <= CONSTRAINT_TOLERANCE)) return "begins a vector that is not of length 1";
    if (c == GM_SUM_TO_ZERO && !(fabs(sum) <= CONSTRAINT_TOLERANCE * most * (double)n)) return "begins a vector that does not sum to 0";
    return NULL;
}

// The same for an n by n matrix.
static const char *matrix_fault(GmConstraint c, const double *x, long n, long *bad)
{
    const bool factor = c == GM_CHOLESKY_COV || c == GM_CHOLESKY_CORR;
    for (long i = 0; i < n; i++)
        for (long j = 0; j < n; j++) {
            *bad = i * n + j;
            const double scale = fabs(x[i * n + j]) > 1 ? fabs(x[i * n + j]) : 1;
            if (factor && j > i && x[i * n + j] != 0) return "is above the diagonal of a Cholesky factor, so it should be 0";
            if (!factor && j > i && !(fabs(x[i * n + j] - x[j * n + i]) <= CONSTRAINT_TOLERANCE * scale))
                return "differs from its mirror image: the matrix is not symmetric";
            if (factor && j == i && !(x[i * n + j] > 0)) return "is on the diagonal of a Cholesky factor, so it should be positive";
            if (c == GM_CORRELATION && j == i && !(fabs(x[i * n + j] - 1) <= CONSTRAINT_TOLERANCE))
                return "is on the diagonal of a correlation matrix, so it should be 1";
        }
    const char *why = NULL;
    for (long i = 0; i < n && c == GM_CHOLESKY_CORR && !why; i++) {
        double squares = 0;
        for (long j = 0; j <= i; j++) squares += x[i * n + j] * x[i * n + j];
        *bad = i * n;
        if (!(fabs(squares - 1) <= CONSTRAINT_TOLERANCE)) why = "begins a row whose squares do not sum to 1";
    }
    if (factor) return why;
    double *l = gm_alloc((size_t)(n * n), sizeof *l);  // Cholesky, row by row: fails exactly if not positive definite
    for (long i = 0; i < n && !why; i++)
        for (long j = 0; j <= i && !why; j++) {
            double sum = x[i * n + j];
            for (long k = 0; k < j; k++) sum -= l[i * n + k] * l[j * n + k];
            *bad = i * n + i;
            if (i == j && !(sum > 0)) why = "is where the matrix proves not to be positive definite";
            l[i * n + j] = i == j ? sqrt(sum) : sum / l[j * n + j];
        }
    free(l);
    return why;
}

// How many of the last dimensions a constraint speaks of.
static int constraint_rank(GmConstraint c)
{
    switch (c) {
    case GM_ANY:
    case GM_COUNTS: return 0;
    case GM_SIMPLEX:
    case GM_ORDERED:
    case GM_POSITIVE_ORDERED:
    case GM_UNIT_VECTOR:
    case GM_SUM_TO_ZERO: return 1;
    case GM_COVARIANCE:
    case GM_CORRELATION:
    case GM_CHOLESKY_COV:
    case GM_CHOLESKY_CORR: return 2;
    }
    return 0;
}

bool gm_check_values(const GmField *f, const GmShape *s, const void *elements, const char *source, GmMissing *missing)
{
    if (!check_bounds(f, s, elements, source, missing)) return false;
    const int rank = constraint_rank(f->constraint);
    const long size = gm_shape_size(s);
    for (long i = 0; i < size && f->constraint == GM_COUNTS; i++)
        if (element(f, elements, i) < 0) {
            refuse(f, s, source, i, elements, "is negative, which a count cannot be");
            return false;
        }
    if (rank == 0 || s->rank < rank || f->type == GM_INT || size == 0 || (missing && missing->count > 0)) return true;
    const long n = s->dim[s->rank - 1];
    const long block = rank == 2 ? n * n : n;
    if (rank == 2 && s->dim[s->rank - 2] != n) return true;  // a Cholesky factor that is not square: bounds only
    for (long at = 0; at < size; at += block) {
        const double *x = (const double *)elements + at;
        long bad = 0;
        const char *why = rank == 1 ? vector_fault(f->constraint, x, n, &bad) : matrix_fault(f->constraint, x, n, &bad);
        if (why) {
            refuse(f, s, source, at + bad, elements, why);
            return false;
        }
    }
    return true;
}

// ---- inputs ----

static bool is_table(const char *path) { return gm_text_is(path, ".csv") || gm_text_is(path, ".tsv") || gm_text_is(path, ".txt"); }

static bool read_number(GmValues *v, const char *input, const char *name, double x)
{
    const GmField *field = gm_values_wanted(v, name);
    if (!field) {
        char *option = gm_foreign_option(name);
        if (option) gm_error("%s: the model's data has no %s; as an option it is %s", input, name, option);
        else gm_error("%s: the model's data has no %s", input, name);
        free(option);
        return false;
    }
    GmValue *value = gm_values_add(v, name, "command line");
    if (!value) return false;
    const char *why = NULL;
    value->type = field->type;
    value->elements = gm_alloc(1, sizeof(double));
    if (gm_store(field->type, value->elements, 0, x, &why)) return true;
    gm_error("%s: %s %s", input, name, why);
    return false;
}

// Whether it is NAME=...; its `=`.
static bool is_named(const char *input, const char **equals)
{
    *equals = strchr(input, '=');
    bool name = *equals && *equals > input && !isdigit((unsigned char)*input);
    for (const char *c = input; name && c < *equals; c++) name = isalnum((unsigned char)*c) || *c == '_';
    return name;
}

// Of FILE:COLUMNS, FILE is not there under this name: the columns are cut off and returned, or NULL.
static char *cut_columns(char *path)
{
    char *columns = access(path, F_OK) != 0 ? strrchr(path, ':') : NULL;
    if (!columns) return NULL;
    *columns = 0;
    if (access(path, F_OK) == 0) return columns + 1;
    *columns = ':';
    return NULL;
}

char *gm_input_file(const char *input)
{
    const char *equals, *why;
    double x;
    char *path = gm_copy_text(is_named(input, &equals) ? equals + 1 : input);
    cut_columns(path);
    if (*path && (access(path, F_OK) == 0 || !gm_parse_number(path, &x, &why))) return path;
    free(path);
    return NULL;
}

// NAME=FILE, NAME=FILE:COLUMNS or NAME=NUMBER.
static bool read_named(GmValues *v, const char *input, const char *equals)
{
    char *name = gm_copy_text(input);
    name[equals - input] = 0;
    char *path = gm_copy_text(equals + 1);
    char *const columns = cut_columns(path), *option = NULL;
    const char *why;
    double x;
    bool good = false;
    if (*path && access(path, F_OK) != 0 && gm_parse_number(path, &x, &why) && !isnan(x)) good = read_number(v, input, name, x);
    else if (gm_text_ends(path, ".npy") && !columns) good = gm_npy_read(v, path, name);
    else if (gm_text_ends(path, ".npz") && !columns) good = gm_npz_read(v, path, name);
    else if (is_table(path)) good = gm_csv_read(v, path, name, columns);
    else if (!gm_values_wanted(v, name) && (option = gm_foreign_option(name)))
        gm_error("%s: the model's data has no %s; as an option it is %s", input, name, option);
    else gm_error("%s: expected %s=FILE.npy, %s=FILE.npz, %s=FILE.csv[:columns] or %s=NUMBER", input, name, name, name, name);
    free(option);
    free(path);
    free(name);
    return good;
}

bool gm_values_read(GmValues *v, const char *input)
{
    const char *equals;
    if (is_named(input, &equals)) return read_named(v, input, equals);
    if (gm_text_is(input, ".json")) return gm_json_read(v, input);
    if (is_table(input)) return gm_csv_read(v, input, NULL, NULL);
    if (gm_text_without_name(input)) {
        const int first = gm_text_begins(input);
        if (!first) return false;
        return first == '{' || isspace(first) ? gm_json_read(v, input) : gm_csv_read(v, input, NULL, NULL);
    }
    if (gm_text_ends(input, ".npy") || gm_text_ends(input, ".npz"))
        gm_error("%s: a .np%c file holds one array without a name; write NAME=%s", input, tolower((unsigned char)input[strlen(input) - 1]),
                 input);
    else
        gm_error("%s: data files end in .json, .csv, .tsv (or these and .gz), .npy or .npz (then NAME=FILE.npy); - is standard input",
                 input);
    return false;
}

// ---- sizes and names ----

static void infer_as(GmData *d, const GmField *field, int32_t size, const GmValue *array, const char *of, const char *from)
{
    char *source = gm_format("%s (from the %s of %s)", array->source, from, array->name);
    GmValue *value = gm_values_add(&d->values, field->name, source);  // `array` may move
    free(source);
    value->type = GM_INT;
    value->size_of = of;
    value->size_from = from;
    value->elements = gm_alloc(1, sizeof(double));
    *(int32_t *)value->elements = size;
    gm_note("%s = %d, from the %s of %s", field->name, size, from, of);
}

static bool counts_unknowns(const GmModel *m, int f)
{
    for (int k = 0; k < m->n_state; k++)
        for (int r = 0; r < m->state[k].rank; r++)
            if (gm_is_unknown(m->state[k].role) && m->state[k].extent_of[r] == f + 1) return true;
    return false;
}

// The largest of the codes that a size bounds, int<lower=1, upper=J>; 0: there is none. *of, *at: whose it is.
static long largest_code(const GmData *d, const GmModel *m, int f, const GmValue **of, long *at)
{
    long most = 0;
    for (int a = 0; a < m->n_data; a++) {
        const bool codes_of = m->data[a].upper_of == f + 1 && gm_takes_levels(&m->data[a]);
        const GmValue *codes = codes_of ? gm_values_find(&d->values, m->data[a].name) : NULL;
        const long n = codes && codes->type == GM_INT ? gm_value_size(codes) : 0;
        for (long i = 0; i < n; i++) {
            const int32_t x = ((const int32_t *)codes->elements)[i];
            if (x == GM_MISSING_INT || x <= most) continue;
            most = x;
            *of = codes;
            *at = i;
        }
    }
    return most;
}

// A size that counts unknowns, and that no array of the data has: the largest of the codes which it bounds.
static void infer_from_codes(GmData *d, const GmModel *m, int f)
{
    const GmValue *of = NULL;
    long at;
    const long most = counts_unknowns(m, f) ? largest_code(d, m, f, &of, &at) : 0;
    if (most > 0) infer_as(d, &m->data[f], (int32_t)most, of, of->name, "largest value");
}

// Gives every int scalar that no file holds and that has no default the extent of the first array declared with it, or the largest of the
// codes. false after a message: that is no extent to be guessed.
static bool infer(GmData *d, const GmModel *m)
{
    for (int f = 0; f < m->n_data; f++) {
        const GmField *field = &m->data[f];
        if (field->type != GM_INT || field->rank != 0 || field->has_default || gm_values_find(&d->values, field->name)) continue;
        for (int a = 0; a < m->n_data; a++) {
            const GmValue *array = gm_values_find(&d->values, m->data[a].name);
            int k = 0;
            while (k < m->data[a].rank && m->data[a].extent_of[k] != f + 1) k++;
            if (!array || k == m->data[a].rank || array->rank != m->data[a].rank || array->dim[k] > INT32_MAX) continue;
            if (array->table && array->dim[k] == 0) {
                gm_error("%s: has no rows below its header, from which %s would be 0; if that is meant, write %s=0", array->source,
                         field->name, field->name);
                return false;
            }
            infer_as(d, field, (int32_t)array->dim[k], array, m->data[a].name, "size");
            break;
        }
        if (!gm_values_find(&d->values, field->name)) infer_from_codes(d, m, f);
    }
    return true;
}

// ---- rows of different lengths ----

// The lengths of rows that a file has are those that the model names: taken from there if nothing gives them, else compared.
static bool settle_rows(GmData *d, const GmModel *m)
{
    for (int f = 0; f < m->n_data; f++) {
        const GmField *lengths = m->data[f].rows_of ? &m->data[m->data[f].rows_of - 1] : NULL;
        const GmValue *array = lengths ? gm_values_find(&d->values, m->data[f].name) : NULL;
        if (!array || !array->row) continue;
        GmValue *n = gm_values_find(&d->values, lengths->name);
        if (!n) {
            char *const source = gm_copy_text(array->source);
            int32_t *row = array->row;
            const long rows = array->n_rows;
            n = gm_values_add(&d->values, lengths->name, source);  // which may move the values
            free(source);
            n->type = GM_INT;
            n->rank = 1;
            n->dim[0] = rows;
            n->elements = gm_alloc((size_t)rows + 1, sizeof *row);
            memcpy(n->elements, row, (size_t)rows * sizeof *row);
            continue;
        }
        const long given = n->rank == 1 ? n->dim[0] : -1;
        if (given != array->n_rows) {
            gm_error("%s: %s has %ld rows, and %s has %ld lengths", array->source, array->name, array->n_rows, n->name,
                     given < 0 ? gm_value_size(n) : given);
            return false;
        }
        for (long g = 0; g < given; g++) {
            if (((const int32_t *)n->elements)[g] == array->row[g]) continue;
            gm_error("%s: row %ld of %s has %d element%s, and %s[%ld] is %d", array->source, g + 1, array->name, array->row[g],
                     array->row[g] == 1 ? "" : "s", n->name, g + 1, ((const int32_t *)n->elements)[g]);
            return false;
        }
    }
    return true;
}

// Elements of data and unknowns with rows are called by row and place.
static void name_rows(const GmData *d, const GmModel *m)
{
    for (int which = 0; which < 2; which++)
        for (int f = 0; f < (which ? m->n_state : m->n_data); f++) {
            const GmField *field = which ? &m->state[f] : &m->data[f];
            const GmValue *n = field->rows_of ? gm_values_find(&d->values, m->data[field->rows_of - 1].name) : NULL;
            if (n) gm_rows_set(field->name, n->elements, gm_value_size(n));
        }
}

// Edit distance of a and b, capital letters aside (names are short, so a small square table does).
static int distance(const char *a, const char *b)
{
    enum { LONGEST = 40 };
    const int n = (int)strlen(a), m = (int)strlen(b);
    if (n > LONGEST || m > LONGEST) return LONGEST;
    int row[LONGEST + 1];
    for (int j = 0; j <= m; j++) row[j] = j;
    for (int i = 1; i <= n; i++) {
        int diagonal = row[0];
        row[0] = i;
        for (int j = 1; j <= m; j++) {
            const int change = diagonal + (tolower((unsigned char)a[i - 1]) != tolower((unsigned char)b[j - 1]));
            diagonal = row[j];
            const int shift = (row[j] < row[j - 1] ? row[j] : row[j - 1]) + 1;
            row[j] = change < shift ? change : shift;
        }
    }
    return row[m];
}

// The name in the files, declared nowhere, that was probably meant; or NULL.
static const char *near_name(const GmValues *v, const char *name)
{
    const char *best = NULL;
    int least = (int)strlen(name) / 4 + 2;  // y and z are not near, mu and Mu are, sigma and sgma are
    for (int i = 0; i < v->n_unknown; i++) {
        const int d = distance(v->unknown[i], name);
        if (d < least && d < (int)strlen(name)) {
            least = d;
            best = v->unknown[i];
        }
    }
    return best;
}

// True if an int scalar is the extent of some array, and so could be inferred.
static bool is_extent(const GmModel *m, int f)
{
    for (int a = 0; a < m->n_data; a++)
        for (int k = 0; k < m->data[a].rank; k++)
            if (m->data[a].extent_of[k] == f + 1) return true;
    return false;
}

bool gm_is_drawn_response(const GmModel *m, int f)
{
    for (const GmObserved *o = m->observed; o && o->where; o++)
        if (o->data == f + 1 && o->replicate && m->data[f].may_miss) return true;
    return false;
}

// later: a response may be left out.
static bool may_be_absent(const GmData *d, const GmModel *m, int f, bool later)
{
    return m->data[f].has_default || (later && m->data[f].may_miss) || (d->missing_in_files && gm_is_drawn_response(m, f));
}

// What else may give what no file has, for the list of what is missing. The caller frees it.
static char *given_by(const GmData *d, const GmModel *m, int f)
{
    const GmField *field = &m->data[f];
    const GmValue *of = NULL;
    long at;
    const bool number = field->rank == 0, whole = number && field->type == GM_INT;
    for (int a = 0; a < m->n_data; a++)
        if (m->data[a].rows_of == f + 1) return gm_copy_text("; or from an array of arrays");
    if (is_extent(m, f)) return gm_format("; or from the size of an array; or %s=NUMBER on the command line", field->name);
    const long most = whole ? largest_code(d, m, f, &of, &at) : 0;
    if (most > 0)
        return gm_format("; it bounds %s, whose largest value is %ld: %s=%ld on the command line says that there are no more", of->name,
                         most, field->name, most);
    for (int a = 0; a < m->n_data; a++)
        if (m->data[a].upper_of == f + 1 && m->data[a].rank > 0 && gm_takes_levels(&m->data[a]))
            return gm_copy_text(counts_unknowns(m, f) ? "; or from what it bounds" : "; or from names in what it bounds");
    if (whole && counts_unknowns(m, f)) return gm_copy_text("; it would follow from what it bounds, as in int<lower=1, upper=J> g[N]");
    return number ? gm_format("; %s=NUMBER on the command line gives it", field->name) : gm_copy_text("");
}

static bool all_there(const GmData *d, const GmModel *m, int n_inputs, const GmLater *later)
{
    int absent = 0;
    for (int f = 0; f < m->n_data; f++) absent += !may_be_absent(d, m, f, later != NULL) && !gm_values_find(&d->values, m->data[f].name);
    if (absent == 0) return true;
    const char *are = absent == 1 ? "is" : "are";
    if (later)
        gm_error("%d of the names that %s needs %s not in the new data%s:", absent, m->name, are,
                 later->others ? ", and those of the run do not give them" : " (--data DATA gives those of the run)");
    else if (n_inputs) gm_error("data: %d of the names that %s needs %s in no file:", absent, m->name, are);
    else gm_error("data: %d name%s needed by %s:", absent, absent == 1 ? " is" : "s are", m->name);
    for (int f = 0; f < m->n_data; f++) {
        const GmField *field = &m->data[f];
        if (may_be_absent(d, m, f, later != NULL) || gm_values_find(&d->values, field->name)) continue;
        char *declared = gm_declared_text(field, NULL);
        const char *near = near_name(&d->values, field->name);
        if (later && field->needed_for) gm_error("  %-40s %s; it may not be left out: %s", declared, place(field), field->needed_for);
        else {
            char *by = given_by(d, m, f);
            gm_error("  %-40s %s%s%s%s%s", declared, place(field), near ? "; there is a `" : "", near ? near : "", near ? "`" : "", by);
            free(by);
        }
        free(declared);
    }
    if (!n_inputs) gm_error("give them as data.json, table.csv, NAME=file.npy or NAME=number; --help has more");
    return false;
}

// Where other data give these ints: an extent, the largest code of a factor, the lengths of rows. NULL: nowhere.
static const char *found_from(const GmModel *m, int f)
{
    if (m->data[f].type != GM_INT) return NULL;
    if (m->data[f].rank == 0 && is_extent(m, f)) return "it follows from the other data";
    for (int a = 0; a < m->n_data; a++) {
        if (m->data[a].rows_of == f + 1) return "it follows from the rows of the other data";
        if (m->data[a].upper_of == f + 1 && m->data[a].rank > 0 && gm_takes_levels(&m->data[a]) && counts_unknowns(m, f))
            return "it follows from the other data";
    }
    return NULL;
}

void gm_data_template(FILE *to, const GmModel *m)
{
    const char *between = "{";
    for (int f = 0; f < m->n_data; f++) {
        const GmField *field = &m->data[f];
        if (field->has_default || found_from(m, f)) {
            gm_note("%s may be left out: %s", field->name, field->has_default ? "it has a default" : found_from(m, f));
            continue;
        }
        char *declared = gm_declared_text(field, NULL);
        fprintf(to, "%s\n  \"%s\": \"", between, field->name);
        gm_json_text(to, declared);
        fputc('"', to);
        free(declared);
        between = ",";
    }
    fputs(*between == '{' ? "{}\n" : "\n}\n", to);
}

// ---- one field ----

// The same shape; or one that looks the same in a file: a number and an array of size 1, an empty array of any rank, and in tables
// (which know only columns) extents of 1 anywhere.
static bool fits(const GmValue *v, const GmShape *s)
{
    bool same = v->rank == s->rank;
    for (int k = 0; k < s->rank && same; k++) same = v->dim[k] == s->dim[k];
    if (same) return true;
    const long size = gm_value_size(v);
    if (size != gm_shape_size(s)) return false;
    if (size == 0 || (size == 1 && (v->rank == 0 || s->rank == 0))) return true;
    if (!v->table) return false;
    int a = 0, b = 0;
    for (;; a++, b++) {
        while (a < v->rank && v->dim[a] == 1) a++;
        while (b < s->rank && s->dim[b] == 1) b++;
        if (a == v->rank || b == s->rank) return a == v->rank && b == s->rank;
        if (v->dim[a] != s->dim[b]) return false;
    }
}

bool gm_value_fits(const GmField *f, const GmShape *s, const GmValue *v)
{
    if (fits(v, s)) return true;
    char *declared = gm_declared_text(f, s);
    char *has = gm_shape_text(v->rank, v->dim);
    char *wants = gm_shape_text(s->rank, s->dim);
    if (v->rank == 0) gm_error("%s: %s is a number, but should be %s (declared %s, %s)", v->source, f->name, wants, declared, place(f));
    else if (s->rank == 0)
        gm_error("%s: %s has size %s, but should be a number (declared %s, %s)", v->source, f->name, has, declared, place(f));
    else gm_error("%s: %s has size %s, but should have %s (declared %s, %s)", v->source, f->name, has, wants, declared, place(f));
    free(wants);
    free(has);
    free(declared);
    return false;
}

static bool place_field(GmData *d, const GmModel *m, int f)
{
    const GmField *field = &m->data[f];
    GmShape *s = &d->shape[f];
    void *at = (char *)d->data + field->offset;
    *s = gm_field_shape(field, f, m->data_shape, d->data);
    for (int k = 0; k < s->rank; k++)
        if (s->dim[k] < 0) {
            char *declared = gm_declared_text(field, s);
            gm_error("data: the size of %s comes out as %ld (declared %s, %s)", field->name, s->dim[k], declared, place(field));
            free(declared);
            return false;
        }
    GmValue *v = gm_values_find(&d->values, field->name);
    if (!v) {  // then it has a default or is drawn, or all_there would have said so
        const double x = field->has_default ? m->data_default(f + 1, d->data) : NAN;
        const long size = gm_shape_size(s);
        v = gm_values_add(&d->values, field->name, field->has_default ? "default" : "not given");
        v->type = field->type;
        v->rank = s->rank;
        memcpy(v->dim, s->dim, sizeof v->dim);
        v->elements = gm_alloc((size_t)size, sizeof(double));
        const char *why = NULL;
        for (long i = 0; i < size; i++)
            if (isnan(x) && field->type == GM_INT) ((int32_t *)v->elements)[i] = GM_MISSING_INT;
            else if (isnan(x)) ((double *)v->elements)[i] = NAN;
            else if (!gm_store(field->type, v->elements, i, x, &why)) {
                gm_error("default: %s = %g %s (%s)", field->name, x, why, place(field));
                return false;
            }
    }
    if (!gm_value_fits(field, s, v) || !gm_check_values(field, s, v->elements, v->source, field->may_miss ? &d->missing[f] : NULL))
        return false;
    const long whole = field->rank == 0 && field->type == GM_INT ? *(int32_t *)v->elements : 0;
    if (field->rank == 2 && field->type != GM_INT && d->missing[f].count == 0) gm_nonzeros_open(v->elements, s->dim[0], s->dim[1]);
    if (field->rank > 0) memcpy(at, &v->elements, sizeof v->elements);
    else if (field->type == GM_INT && !field->imputed_field) memcpy(at, &whole, sizeof whole);
    else memcpy(at, v->elements, field->type == GM_INT ? sizeof(int32_t) : sizeof(double));
    return true;
}

// The extent that an array which is there has for the int scalar f; -1: there is none.
static long given_extent(const GmData *d, const GmModel *m, int f)
{
    for (int a = 0; a < m->n_data; a++) {
        const GmValue *v = gm_values_find(&d->values, m->data[a].name);
        for (int k = 0; v && k < m->data[a].rank && v->rank == m->data[a].rank; k++)
            if (m->data[a].extent_of[k] == f + 1) return v->dim[k];
    }
    return -1;
}

static bool is_for_others(const GmData *d, const GmModel *m, int f, const GmValue *v)
{
    bool other = m->data[f].rank == 0 && given_extent(d, m, f) >= 0;
    for (int k = 0; k < m->data[f].rank && v->rank == m->data[f].rank; k++) {
        const long n = m->data[f].extent_of[k] ? given_extent(d, m, m->data[f].extent_of[k] - 1) : -1;
        other |= n >= 0 && n != v->dim[k];
    }
    return other;
}

// Of data that come later: what has no place among them. Responses are those of other rows, and so is what runs over the rows that are
// given now; how many levels there are is found anew.
static bool is_of_the_run(const GmData *d, const GmModel *m, int f)
{
    bool of = m->data[f].may_miss || gm_counts_levels(m, f) || (gm_counts_rows(m, f) && given_extent(d, m, f) >= 0);
    for (int k = 0; k < m->data[f].rank; k++) {
        const int size = m->data[f].extent_of[k] - 1;
        of |= size >= 0 && gm_counts_rows(m, size) && (given_extent(d, m, size) >= 0 || gm_values_find(&d->values, m->data[size].name));
    }
    for (int a = 0; a < m->n_data && m->data[f].rows_of; a++)
        of |= (m->data[a].rows_of == m->data[f].rows_of || a + 1 == m->data[f].rows_of) && gm_values_find(&d->values, m->data[a].name);
    return of;
}

static void take_others(GmData *d, const GmModel *m, const GmData *others, bool later)
{
    bool *takes = gm_alloc((size_t)m->n_data, sizeof *takes);
    for (int f = 0; f < m->n_data; f++) {  // all are asked before the first is taken
        const GmValue *v = gm_values_find(&others->values, m->data[f].name);
        takes[f] = v && !gm_values_find(&d->values, m->data[f].name) && !is_for_others(d, m, f, v) && !(later && is_of_the_run(d, m, f));
    }
    for (int f = 0; f < m->n_data; f++) {
        if (!takes[f]) continue;
        const GmValue *from = gm_values_find(&others->values, m->data[f].name);
        GmValue *to = gm_values_add(&d->values, from->name, from->source);
        const size_t bytes = (size_t)gm_value_size(from) * (from->type == GM_INT ? sizeof(int32_t) : sizeof(double));
        to->type = from->type;
        to->rank = from->rank;
        to->table = from->table;
        memcpy(to->dim, from->dim, sizeof to->dim);
        to->elements = gm_alloc(bytes + sizeof(double), 1);
        memcpy(to->elements, from->elements, bytes);
    }
    free(takes);
}

// What is drawn in the place of missing values is said once.
static void tell_missing(const GmData *d, const GmModel *m)
{
    for (int f = 0; f < m->n_data; f++) {
        const long n = d->missing[f].count, size = gm_shape_size(&d->shape[f]);
        if (n == 0) continue;
        gm_note(n == 1 ? "%ld of %ld values of %s is missing, and is drawn" : "%ld of %ld values of %s are missing, and are drawn", n, size,
                m->data[f].name);
    }
}

// The mean and the standard deviation of a column, of about `most` of its values that are there; false: of none, or they are all the same.
static bool moments_of(const double *x, long n, long step, long most, double *mean, double *sd)
{
    const long every = n > most ? n / most : 1;
    double first = NAN, sum = 0, squares = 0, there = 0;
    for (long i = 0; i < n; i += every) {
        const double v = x[i * step];
        if (!isfinite(v)) continue;
        if (isnan(first)) first = v;
        sum += v - first;
        squares += (v - first) * (v - first);
        there++;
    }
    if (there < 2) return false;
    *mean = first + sum / there;
    *sd = sqrt(fmax(squares - sum * sum / there, 0) / (there - 1));
    return *sd > 0;
}

bool gm_data_tell_far(const GmData *d, const GmModel *m, double far, const char *lead, const char *rest)
{
    bool any = false;
    for (int f = 0; f < m->n_data; f++) {
        const GmShape *s = &d->shape[f];
        const GmValue *v = gm_values_find(&d->values, m->data[f].name);
        if (!v || v->type == GM_INT || s->rank == 0 || gm_shape_size(s) == 0) continue;
        const long columns = s->rank > 1 ? s->dim[s->rank - 1] : 1, rows = gm_shape_size(s) / columns;
        const long looked = columns < 1000 ? columns : 1000;  // at a million values in all: a large matrix may not hold up the run
        for (long j = 0; j < looked; j++) {
            double mean, sd;
            const double *column = (const double *)v->elements + j;
            if (!moments_of(column, rows, columns, 1000000 / looked, &mean, &sd) || fabs(mean) < far * sd) continue;
            gm_error("%svalues of %s are near %.4g, with a standard deviation of %.3g, and sums of squares of such numbers have few digits "
                     "left%s: subtract a constant from %s, as %.4g",
                     lead, m->data[f].name, mean, sd, rest, m->data[f].name, mean);
            any = true;
            break;
        }
    }
    return any;
}

// All values of responses are missing, those of the files apart.
static void draw_responses(GmData *d, const GmModel *m)
{
    for (int f = 0; f < m->n_data; f++) {
        GmValue *v = gm_is_drawn_response(m, f) ? gm_values_find(&d->values, m->data[f].name) : NULL;
        if (!v) continue;
        const long size = gm_shape_size(&d->shape[f]);
        if (v->map) {  // it is written to
            void *own = gm_alloc((size_t)size + 1, sizeof(double));
            memcpy(own, v->elements, (size_t)size * (v->type == GM_INT ? sizeof(int32_t) : sizeof(double)));
            gm_unmap(v->map, v->map_size);
            v->map = NULL;
            v->elements = own;
            if (m->data[f].rank > 0) memcpy((char *)d->data + m->data[f].offset, &v->elements, sizeof v->elements);
        }
        d->missing_in_files[f] = d->missing[f];
        if (strcmp(v->source, "not given") == 0) {
            free(d->missing_in_files[f].index);
            d->missing_in_files[f] = (GmMissing){0};
        }
        d->missing[f] = (GmMissing){.count = size, .index = gm_alloc((size_t)size + 1, sizeof(long))};
        for (long i = 0; i < size; i++) d->missing[f].index[i] = i;
    }
}

void gm_data_put_drawn(GmData *d, const GmModel *m, int f, const GmMissing *missing, const void *elements)
{
    GmValue *v = gm_values_find(&d->values, m->data[f].name);
    const size_t each = gm_element_size(&m->data[f]);
    memcpy(v->elements, elements, (size_t)gm_shape_size(&d->shape[f]) * each);
    for (long k = 0; k < missing->count; k++) {
        if (m->data[f].type == GM_INT) ((int32_t *)v->elements)[missing->index[k]] = GM_MISSING_INT;
        else ((double *)v->elements)[missing->index[k]] = NAN;
    }
    if (m->data[f].rank == 0) memcpy((char *)d->data + m->data[f].offset, v->elements, each);
}

void gm_data_take_drawn(GmData *d, const GmModel *m, int f, const void *elements)
{
    gm_data_put_drawn(d, m, f, &d->missing_in_files[f], elements);
    free(d->missing[f].index);
    d->missing[f] = d->missing_in_files[f];
    d->missing_in_files[f] = (GmMissing){0};
}

// ---- data that come after the fit ----

bool gm_counts_rows(const GmModel *m, int f)
{
    bool yes = false;
    for (const GmObserved *o = m->observed; o && o->where; o++) {
        const int lengths = o->data ? m->data[o->data - 1].rows_of : 0;
        yes |= o->data && (lengths ? m->data[lengths - 1].extent_of[0] == f + 1 : m->data[o->data - 1].extent_of[0] == f + 1);
    }
    return yes && !gm_counts_levels(m, f);
}

bool gm_gives_rows(const GmModel *m, const bool *given, int lengths)
{
    bool yes = given[lengths];
    for (int a = 0; a < m->n_data; a++) yes |= given[a] && m->data[a].rows_of == lengths + 1;
    return yes;
}

bool gm_counts_levels(const GmModel *m, int f)
{
    for (int a = 0; a < m->n_data; a++) {
        bool itself = false;  // places in an array itself are no levels
        for (int k = 0; k < m->data[a].rank; k++) itself |= m->data[a].extent_of[k] == f + 1;
        if (m->data[a].upper_of == f + 1 && !itself && gm_takes_levels(&m->data[a]) && counts_unknowns(m, f)) return true;
    }
    return false;
}

static void add_size(GmData *d, const GmModel *m, int f, long size)
{
    GmValue *value = gm_values_add(&d->values, m->data[f].name, "the fit");
    value->type = GM_INT;
    value->elements = gm_alloc(1, sizeof(double));
    *(int32_t *)value->elements = (int32_t)size;
}

// Sizes that the new data do not have are those of the fit; codes beyond the number of levels there are new levels. false after a message.
static bool later_sizes(GmData *d, const GmModel *m, const GmLater *later)
{
    for (int f = 0; f < m->n_data; f++) {
        const GmField *field = &m->data[f];
        if (field->type != GM_INT || field->rank || later->size[f] < 0) continue;
        const GmValue *given = gm_values_find(&d->values, field->name), *of = NULL;
        const bool levels = gm_counts_levels(m, f);
        long at = 0;
        const long old = later->size[f], extent = given_extent(d, m, f), most = levels ? largest_code(d, m, f, &of, &at) : 0;
        const long now = given ? *(const int32_t *)given->elements : extent >= 0 ? extent : most > old ? most : old;
        if (!levels && (given || extent >= 0 || gm_counts_rows(m, f))) continue;
        if (levels && now < old) {
            gm_error("new data: %s is %ld, and %ld in the fit: its levels are those of the fit, in their places, and new ones behind them",
                     field->name, now, old);
            return false;
        }
        if (levels && now > old && !later->grows) {
            char *name = most > old ? gm_element_name(of->name, of->rank, of->dim, at) : gm_copy_text(field->name);
            gm_error("%s: %s = %ld is a level that the fit does not have, whose %s is %ld: --new-levels draw draws what belongs to it from "
                     "its law, given each stored draw",
                     most > old ? of->source : "new data", name, most > old ? most : now, field->name, old);
            free(name);
            return false;
        }
        if (!given && extent < 0) add_size(d, m, f, now);
    }
    return true;
}

static bool open_data(GmData *d, const GmModel *m, char **inputs, int n_inputs, const GmData *others, bool forward, const GmLater *later)
{
    *d = (GmData){.values = {.fields = m->data, .n_fields = m->n_data, .tells = !others && !forward && !later, .reads_names = true}};
    d->data = gm_alloc(1, m->data_size);
    d->missing = gm_alloc((size_t)m->n_data, sizeof *d->missing);
    d->shape = gm_alloc((size_t)m->n_data, sizeof *d->shape);
    if (forward) d->missing_in_files = gm_alloc((size_t)m->n_data, sizeof *d->missing_in_files);
    for (int i = 0; i < n_inputs; i++)
        if (!gm_values_read(&d->values, inputs[i])) return false;
    for (int f = 0; f < m->n_data && later; f++) later->given[f] = gm_values_find(&d->values, m->data[f].name) != NULL;
    if (others) take_others(d, m, others, later != NULL);
    if (!gm_levels_settle(&d->levels, m, &d->values, later ? later->levels : others ? &others->levels : NULL)) return false;
    if (later && !later_sizes(d, m, later)) return false;
    if (!settle_rows(d, m) || !infer(d, m) || !all_there(d, m, n_inputs, later)) return false;
    name_rows(d, m);
    for (int f = 0; f < m->n_data; f++)
        if (!place_field(d, m, f)) return false;
    if (m->data_sizes) m->data_sizes(d->data);
    if (forward) draw_responses(d, m);
    else if (!others && !later) tell_missing(d, m);
    return true;
}

bool gm_data_open(GmData *d, const GmModel *m, char **inputs, int n_inputs, const GmData *others)
{
    return open_data(d, m, inputs, n_inputs, others, false, NULL);
}

bool gm_data_open_forward(GmData *d, const GmModel *m, char **inputs, int n_inputs)
{
    return open_data(d, m, inputs, n_inputs, NULL, true, NULL);
}

bool gm_data_open_later(GmData *d, const GmModel *m, char **inputs, int n_inputs, const GmLater *later)
{
    return open_data(d, m, inputs, n_inputs, later->others, false, later);
}

void gm_data_close(GmData *d, const GmModel *m)
{
    for (int f = 0; f < m->n_data && d->missing; f++) free(d->missing[f].index);
    for (int f = 0; f < m->n_data && d->missing_in_files; f++) free(d->missing_in_files[f].index);
    free(d->missing_in_files);
    for (int k = 0; k < d->values.n; k++) gm_nonzeros_close(d->values.value[k].elements);
    free(d->missing);
    free(d->shape);
    free(d->data);
    gm_levels_close(&d->levels);
    gm_values_close(&d->values);
    *d = (GmData){0};
}
