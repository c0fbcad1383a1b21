// map.c -- `fit map`: the mode of the posterior density, by an ascent from each of several random starts (ascent.c).
//
// What is maximised is the density of the unknowns as they are declared: of log p(x(q)) the maximum over coordinates q without bounds, with
// --jacobian that of log p(x(q)) + log |dx/dq|, the density by q. The mode of a scale in (0, inf) is not exp of the mode of its logarithm.
//
// Each HMC update of the program is one ascent. Together they have to include every unknown, and no factor may connect the sets of two of
// them (sets under method selection are such). Then the maximum over each is the maximum over all. A program without such updates is
// refused, with the command that makes one.
//
// Whether an ascent runs off (coefficients under perfect separation, improper densities) is asked after 50, 100, 200, ... evaluations,
// where what an iteration gains becomes small, and at its end. What it runs off along has to lead an unknown to infinity: a scale that
// falls to 0, where the density is finite, has its mode there.
#include "fields.h"
#include "runs.h"
#include "ascent.h"
#include "em.h"
#include "starts.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_EVALUATIONS = 20000, FIRST_LOOK = 50, LEAST_RIDGE = 400, MOST_BLOCKS = 64 };  // of each start

typedef struct BlockClimb {  // of one start in one block
    GmAscentState state;
    long evaluations;
    double log_density, slope;  // slope: the largest derivative by a coordinate
    double by_variables;        // the log density, if that of the coordinates is maximised
    char *runs_off;             // RUNS_OFF: the unknown that does
} BlockClimb;

// summed: discrete unknowns; alone: no factor connects it with another block; constant: what its log density lacks of the log joint
typedef struct Block {
    char *name, *summed;
    bool alone, constant;
} Block;

typedef struct Map {
    const GmModel *model;
    const GmMemory *memory;
    const GmOptions *options;
    int n_blocks, at;  // at: the one that is climbed
    Block block[MOST_BLOCKS];
    BlockClimb *climb;  // by start and block
    double constant;    // of the log density, that no block holds
} Map;

// ---- the density of a block ----

// jacobian: NULL, if it is to count, or there is none
typedef struct Target {
    GmMoving of;
    void (*jacobian)(GmRun *);
} Target;

static double density(void *with, const double *x, double *gradient)
{
    const Target *t = with;
    const GmMoving *m = &t->of;
    memcpy(m->position, x, sizeof *x * (size_t)m->n);
    m->density(m->run);
    const double by_coordinates = m->value[0], by_variables = m->value[1];
    memcpy(gradient, m->gradient, sizeof *gradient * (size_t)m->n);
    if (!t->jacobian || !isfinite(by_coordinates)) return by_coordinates;
    t->jacobian(m->run);
    for (long i = 0; i < m->n; i++) gradient[i] -= m->gradient[i];
    return by_variables;
}

// The unknowns of a start, one after the other, to x[] (NULL: none are taken); how many they are.
static long numbers_of(const Map *map, int chain, double *x)
{
    long n = 0;
    for (int f = 0; f < map->model->n_state; f++) {
        if (!gm_is_drawn_real(&map->model->state[f])) continue;
        const long size = gm_shape_size(&map->memory->shape[f]);
        if (x) memcpy(x + n, gm_state_array(map->model, map->memory, chain, f), sizeof *x * (size_t)size);
        n += size;
    }
    return n;
}

// "b[2] = 38.1 (model.gm:3)": the unknown that has gone farthest from where it stands, if any has gone to infinity; or NULL.
static char *gone_off(const Map *map, int chain, const double *from)
{
    double most = 1e6;
    char *says = NULL;
    for (int f = 0; f < map->model->n_state; f++) {
        const GmField *field = &map->model->state[f];
        if (!gm_is_drawn_real(field)) continue;
        const GmShape *shape = &map->memory->shape[f];
        const double *x = gm_state_array(map->model, map->memory, chain, f);
        for (long i = 0; i < gm_shape_size(shape); i++, from++) {
            if (!(fabs(x[i] - *from) > most * (1 + fabs(*from)))) continue;
            most = fabs(x[i] - *from) / (1 + fabs(*from));
            free(says);
            char *name = gm_element_name(field->name, shape->rank, shape->dim, i);
            says = gm_format("%s = %.3g (%s)", name, *from, field->where);
            free(name);
        }
    }
    return says;
}

typedef struct Out {
    double far;
    int field;
    long element;
} Out;  // far: in powers of e

// The unknown that is closest to an end of its support, or farthest from 0.
static Out farthest_out(const Map *map, int chain)
{
    Out out = {-INFINITY, 0, 0};
    for (int f = 0; f < map->model->n_state; f++) {
        if (!gm_is_drawn_real(&map->model->state[f])) continue;
        const GmShape *shape = &map->memory->shape[f];
        const double *x = gm_state_array(map->model, map->memory, chain, f);
        for (long i = 0; i < gm_shape_size(shape); i++) {
            const double near = fmin(x[i] - shape->lower, shape->upper - x[i]),
                         far = fmax(log(fabs(x[i])), isfinite(near) ? -log(fmax(near, DBL_MIN)) : -INFINITY);
            if (far > out.far) out = (Out){far, f, i};
        }
    }
    return out;
}

// What was seen when it was last looked where an ascent goes.
// next: after so many evaluations; small: or when an iteration gains less
typedef struct Looked {
    long next;
    double small, log_density, rate;
    Out out;
} Looked;

// Whether the log density rises in proportion to the logarithm of what an unknown is away from an end of its support, as evaluations double
// twice: such a ridge (a scale that falls to 0 with its effects) only becomes narrower.
static bool rises_on(const Map *map, int chain, const GmAscent *a, Looked *l)
{
    const Out out = farthest_out(map, chain);
    const double risen = a->log_density - l->log_density, way = out.far - l->out.far,
                 rate = out.field == l->out.field && out.element == l->out.element && risen > 0.2 && way > 0.2 ? risen / way : 0;
    const bool on = a->evaluations >= LEAST_RIDGE && out.far > 10 && rate > 0.5 * l->rate && rate < 2 * l->rate;
    l->out = out;
    l->log_density = a->log_density;
    l->rate = rate;
    return on;
}

// Which unknown the ascent leads to infinity; NULL: none. The unknowns are not where the ascent stands afterwards.
static char *runs_off(const Map *map, const Target *t, GmAscent *a)
{
    const GmAscentState was = a->state;
    const int chain = t->of.run->chain;
    if (!gm_ascent_runs_off(a)) return NULL;
    double *here = gm_alloc((size_t)numbers_of(map, chain, NULL) + 1, sizeof *here),
           *far = memcpy(gm_alloc((size_t)a->n, sizeof *far), a->trial_x, sizeof *far * (size_t)a->n);
    density((void *)t, a->x, a->trial_gradient);
    numbers_of(map, chain, here);
    density((void *)t, far, a->trial_gradient);
    char *says = gone_off(map, chain, here);
    if (!says) a->state = was;
    free(here);
    free(far);
    return says;
}

// In place of an HMC update: an ascent.
static int climb(GmRun *one, const GmHmc *of, void (*density_of)(GmRun *))
{
    Map *map = one->host;
    Target t = {gm_moving(one, of, density_of), map->options->jacobian ? NULL : of->jacobian};
    BlockClimb *c = &map->climb[one->chain * MOST_BLOCKS + map->at];
    if (one->chain == 0)
        map->block[map->at] = (Block){gm_copy_text(of->name), gm_copy_text(of->summed ? of->summed : ""), of->selection != 0,
                                      (!of->marginal || of->selection) && !(of->summed && *of->summed)};
    const long most = map->options->iterations ? map->options->iterations : MOST_EVALUATIONS;
    GmAscent *a = gm_ascent_open(t.of.n, density, &t);
    gm_moving_stands(&t.of);
    char *off = NULL;
    bool on = false;
    Looked looked = {FIRST_LOOK, 1e-3, 0, 0, {0, 0, 0}};
    if (gm_ascent_begin(a, t.of.position))
        while (!off && !on && gm_ascent_step(a) && a->evaluations < most && !gm_interrupted()) {
            const bool small = a->pairs > 0 && a->gain < looked.small, late = a->evaluations >= looked.next;
            if (small) looked.small = 1e-2 * a->gain;
            if (late) {
                looked.next = 2 * a->evaluations;
                on = rises_on(map, one->chain, a, &looked);
            }
            if (small || late) off = runs_off(map, &t, a);
        }
    if (a->state == GM_ASCENT_ON_ITS_WAY && map->options->iterations && !on) a->state = GM_ASCENT_CUT;
    else if (!off) {
        gm_ascent_polish(a, most);
        if (isfinite(a->log_density)) off = runs_off(map, &t, a);
    }
    *c = (BlockClimb){a->state, a->evaluations, a->log_density, 0, 0, off};
    for (long i = 0; i < a->n; i++) c->slope = fmax(c->slope, fabs(a->gradient[i]));
    memcpy(t.of.position, a->x, sizeof *a->x * (size_t)a->n);
    t.of.density(one);  // the variables are where the ascent stands
    c->by_variables = t.of.value[1];
    if ((c->state == GM_ASCENT_STUCK || c->state == GM_ASCENT_ON_ITS_WAY) && farthest_out(map, one->chain).far > 230)  // 1e100
        c->state = GM_ASCENT_UNBOUNDED;
    gm_ascent_close(a);
    return 1;
}

// ---- whether HMC updates include every unknown ----

static bool is_moved(const Map *map, const GmField *field)
{
    for (int b = 0; b < map->n_blocks; b++)
        if (gm_is_moved_by(map->model, field, map->block[b].name, map->block[b].summed)) return true;
    return false;
}

static bool has_missing(const Map *map, const GmData *d)
{
    const GmModel *model = map->model;
    for (int f = 0; f < model->n_data; f++)
        if (d->missing[f].count > 0) {
            gm_error("map: %s has missing values (%s): there is no mode of the unknowns alone. Leave the rows out, or draw: without `map`",
                     model->data[f].name, model->data[f].where);
            return true;
        }
    return false;
}

static bool holds_all(const Map *map, const GmMemory *m, const GmData *d)
{
    const GmModel *model = map->model;
    if (has_missing(map, d)) return false;
    for (int f = 0; f < model->n_state; f++) {
        const GmField *field = &model->state[f];
        if ((field->role != GM_PARAMETER && field->role != GM_LATENT) || gm_shape_size(&m->shape[f]) == 0 || is_moved(map, field)) continue;
        if (field->type == GM_INT)
            gm_error("map: %s is discrete (%s), and this program has no density with it summed out. gmc --method em %s -o modes makes one "
                     "whose `./modes map` finds the mode by expectation-maximisation; or `infer { %s by marginal; }` sums it out here, "
                     "where its values are finitely many",
                     field->name, field->where, model->source, field->name);
        else
            gm_error(
                "map: %s (%s) is drawn by a Gibbs update, and this program has no density of all unknowns with its gradient: gmc --method "
                "nuts %s makes one that has",
                field->name, field->where, model->source);
        return false;
    }
    for (int b = 0; b < map->n_blocks; b++)
        if (map->n_blocks > 1 && !map->block[b].alone) {
            gm_error("map: %s are drawn apart from %s, and there is no density of all unknowns: leave `infer` out, and gmc --method nuts "
                     "%s makes one",
                     map->block[b].name, map->block[b ? 0 : 1].name, model->source);
            return false;
        }
    return true;
}

// ---- what is said ----

static double whole(const Map *map, int start)
{
    double sum = map->constant;
    for (int b = 0; b < map->n_blocks; b++) sum += map->climb[start * MOST_BLOCKS + b].log_density;
    return sum;
}

// The log joint density has constants that HMC has no use for. Where discrete unknowns are summed out it is another density, and the
// constant stays unknown.
static void find_constant(Map *map, GmRun *run)
{
    for (int b = 0; b < map->n_blocks; b++)
        if (!map->block[b].constant) return;
    for (int c = 0; c < run->chains; c++) {
        double here = 0;
        for (int b = 0; b < map->n_blocks; b++) here += map->climb[c * MOST_BLOCKS + b].by_variables;
        const double constant = map->model->log_joint(run, c) - here;
        if (!isfinite(constant)) continue;
        map->constant = constant;
        return;
    }
}

static const char *up_to(const Map *map)
{
    for (int b = 0; b < map->n_blocks; b++)
        if (!map->block[b].constant) return " (up to a constant)";
    return "";
}

// The climb that says most of a start: the one that did not reach a mode, or the steepest.
static const BlockClimb *worst(const Map *map, int start)
{
    const BlockClimb *w = &map->climb[start * MOST_BLOCKS];
    for (int b = 1; b < map->n_blocks; b++) {
        const BlockClimb *c = &map->climb[start * MOST_BLOCKS + b];
        if (w->state == GM_ASCENT_DONE && (c->state != GM_ASCENT_DONE || c->slope > w->slope)) w = c;
    }
    return w;
}

static const char *end_of(const BlockClimb *c)
{
    switch (c->state) {
    case GM_ASCENT_DONE: return "a mode";
    case GM_ASCENT_ON_ITS_WAY: return "still rising";
    case GM_ASCENT_STUCK: return "no step increases the density, but its gradient is not 0: a kink of the density, or an end of its domain";
    case GM_ASCENT_UNBOUNDED: return "the density has no bound";
    case GM_ASCENT_CUT: return "cut after --iterations";
    case GM_ASCENT_LEFT: return "given up: others were higher";
    case GM_ASCENT_RUNS_OFF: return "it rises for ever, more and more slowly";
    case GM_ASCENT_NOWHERE: return "the density is not finite at the start, nor at a hundred random places";
    }
    return "";
}

// The unknown that has come closest to an end of its support, or farthest out: where a density without a bound rises.
static char *outermost(const Map *map, int start)
{
    const Out out = farthest_out(map, start);
    if (!(out.far > 10)) return NULL;
    const GmField *field = &map->model->state[out.field];
    const GmShape *shape = &map->memory->shape[out.field];
    char *name = gm_element_name(field->name, shape->rank, shape->dim, out.element),
         *says = gm_format("%s = %.3g (%s)", name, ((const double *)gm_state_array(map->model, map->memory, start, out.field))[out.element],
                           field->where);
    free(name);
    return says;
}

// Where a start without a mode has been led; or NULL.
static char *where_to(const Map *map, int start)
{
    const char *off = worst(map, start)->runs_off;
    return off ? gm_copy_text(off) : outermost(map, start);
}

static bool rises_without_end(GmAscentState s) { return s == GM_ASCENT_UNBOUNDED || s == GM_ASCENT_RUNS_OFF; }
static bool is_told_as_mode(const BlockClimb *c) { return c->state == GM_ASCENT_DONE || c->state == GM_ASCENT_CUT; }

static void print_starts(const Map *map, int chains)
{
    printf("%5s %16s %12s %12s\n", "start", "log density", "slope", map->model->for_modes ? "iterations" : "evaluations");
    for (int c = 0; c < chains; c++) {
        const BlockClimb *w = worst(map, c);
        long evaluations = 0;
        for (int b = 0; b < map->n_blocks; b++) evaluations += map->climb[c * MOST_BLOCKS + b].evaluations;
        char slope[20] = "-";
        if (!isnan(w->slope)) snprintf(slope, sizeof slope, "%.2g", w->slope);
        printf("%5d %16.10g %12s %12ld  %s\n", c + 1, whole(map, c), slope, evaluations, end_of(w));
    }
}

// Whether a column is a number of the mode: discrete unknowns that are summed out have none, nor what may be defined by them.
static bool is_told(const Map *map, const GmDraws *d, long k)
{
    const int f = d->column[k].field;
    if (f < 0 || gm_draws_diagnostic(d, map->model, k)) return f < 0;
    const GmField *field = &map->model->state[f];
    bool summed = false;
    for (int b = 0; b < map->n_blocks; b++) summed |= map->block[b].summed[0] != 0;
    return gm_is_drawn(field) ? field->type != GM_INT : !summed;
}

// ---- the files ----

static void put(FILE *f, double x, int digits, bool json)
{
    char text[GM_NUMBER_ROOM];
    if (json && !isfinite(x)) {
        fputs(isnan(x) ? "\"NaN\"" : x > 0 ? "\"Inf\"" : "\"-Inf\"", f);
        return;
    }
    text[gm_print_number(text, x, digits)] = 0;
    fputs(text, f);
}

// CmdStan's layout: a line of names and one of numbers.
static bool write_csv(const Map *map, const GmMemory *m, const GmDraws *d, const double *row, const char *path, double slope)
{
    GmFile out;
    if (!gm_output_open(&out, path, false)) return false;
    FILE *f = out.to;
    fprintf(f, "# mode of %s: %s; largest derivative of the log density by a coordinate %.3g\n", map->model->name,
            map->options->jacobian ? "the density of the coordinates without bounds" : "the density of the unknowns as declared", slope);
    for (int line = 0; line < 2; line++) {
        bool first = true;
        for (long k = 0; k < d->n_columns; k++) {
            if (!is_told(map, d, k)) continue;
            if (!first) fputc(',', f);
            first = false;
            if (line) {
                put(f, row[k], map->options->digits, false);
                continue;
            }
            char *label = gm_column_label(d, map->model, m, k, '.');
            fputs(label, f);
            free(label);
        }
        fputc('\n', f);
    }
    return gm_output_done(&out);
}

static void put_array(FILE *f, const GmShape *s, int level, const double **x, int digits)
{
    if (level == s->rank) {
        put(f, *(*x)++, digits, true);
        return;
    }
    fputc('[', f);
    for (long i = 0; i < s->dim[level]; i++) {
        if (i) fputs(", ", f);
        put_array(f, s, level + 1, x, digits);
    }
    fputc(']', f);
}

// Unknowns by name, as --init reads them; what is not one ends in __.
static bool write_json(const Map *map, const GmMemory *m, int start, const char *path, double lp, double slope)
{
    GmFile out;
    if (!gm_output_open(&out, path, false)) return false;
    FILE *f = out.to;
    fputs("{\"lp__\": ", f);
    put(f, lp, map->options->digits, true);
    fputs(", \"slope__\": ", f);
    put(f, slope, map->options->digits, true);
    for (int k = 0; k < map->model->n_state; k++) {
        const GmField *field = &map->model->state[k];
        if (!gm_is_drawn_real(field)) continue;
        const double *x = gm_state_array(map->model, m, start, k);
        fprintf(f, ",\n \"%s\": ", field->name);
        put_array(f, &m->shape[k], 0, &x, map->options->digits);
    }
    fputs("}\n", f);
    return gm_output_done(&out);
}

static void print_mode(const Map *map, const GmMemory *m, const GmDraws *d, const double *row)
{
    long shown = 0;
    for (long k = 0; k < d->n_columns; k++) {
        if (!is_told(map, d, k) || d->column[k].field < 0) continue;
        if (shown++ == map->options->summary_rows) {
            printf("... (--summary all)\n");
            break;
        }
        char *label = gm_column_label(d, map->model, m, k, '[');
        printf("%-20s %14.8g\n", label, row[k]);
        free(label);
    }
}

// Numbers of the mode that are at an end of their support, where expectation-maximisation has cut them back: the density rises towards it
// without reaching a maximum.
static void print_ends(const Map *map, const GmMemory *m, int start)
{
    char *first = NULL;
    long others = -1;
    for (int f = 0; f < map->model->n_state; f++) {
        const GmField *field = &map->model->state[f];
        const GmShape *shape = &m->shape[f];
        if (!gm_is_drawn_real(field) || (field->constraint != GM_ANY && field->constraint != GM_SIMPLEX)) continue;
        const double *x = gm_state_array(map->model, m, start, f), lower = field->constraint == GM_SIMPLEX ? 0 : shape->lower,
                     upper = field->constraint == GM_SIMPLEX ? INFINITY : shape->upper;
        for (long i = 0; i < gm_shape_size(shape); i++) {
            if (!(x[i] - lower < 1e-300) && !(upper - x[i] < 3e-16 * fabs(upper))) continue;
            if (others++ < 0) first = gm_element_name(field->name, shape->rank, shape->dim, i);
        }
    }
    if (first)
        printf("%s%s %s at an end of its support: the density rises towards there (a weight that vanishes is a component cut back), and "
               "the log density counts it as the last number before the end\n",
               first, others > 0 ? " and others, each" : "", others > 0 ? "are" : "is");
    free(first);
}

// The mode with its definitions, to the screen and to files.
static int report(const Map *map, GmRun *run, GmMemory *m, const GmData *data, int start, int reached)
{
    const GmOptions *o = map->options;
    const double lp = whole(map, start), slope = worst(map, start)->slope;
    GmOptions one = *o;
    one.output = NULL;
    one.summary = one.log_joint = true;
    GmDraws draws;
    if (!gm_draws_open(&draws, map->model, m, data, &one)) return GM_EXIT_USAGE;
    GmRun at = *run;
    at.chain = start;
    at.host = NULL;
    if (map->model->derive_chain && gm_draws_need_derived(&draws, map->model)) map->model->derive_chain(&at);
    gm_draws_keep(&draws, map->model, m, start, 0, lp);
    const double *row = draws.memory + (long)start * draws.held * draws.n_columns;
    if (o->summary) {
        if (o->chains > 1) printf("\n");
        printf(worst(map, start)->state == GM_ASCENT_CUT ? "no mode yet after --iterations %ld: " : "", o->iterations);
        printf("mode of the density of %s: log density %.10g%s, largest derivative %.2g, from %d of %d starts\n",
               o->jacobian ? "the coordinates without bounds" : "the unknowns as declared", lp, up_to(map), slope, reached, o->chains);
        print_mode(map, m, &draws, row);
        if (map->model->for_modes) print_ends(map, m, start);
    }
    int status = GM_EXIT_OK;
    if (o->output) {
        char *csv = gm_format("%s.csv", o->output), *json = gm_format("%s.json", o->output);
        if (!write_csv(map, m, &draws, row, csv, slope) || !write_json(map, m, start, json, lp, slope)) status = GM_EXIT_FAULT;
        else gm_note("mode: %s, %s (--init %s starts chains there)", csv, json, json);
        free(csv);
        free(json);
    }
    gm_draws_close(&draws);
    return status;
}

// By expectation-maximisation: all unknowns are one block.
static bool iterate(Map *map, GmRun *run, GmRun *on_device, const GmMemory *m, const GmData *d, int *status)
{
    const GmOptions *o = map->options;
    if (has_missing(map, d)) return false;
    if (o->jacobian) {
        gm_error("map --jacobian: a program made by gmc --method em has the modes of its conditionals by the unknowns as declared; gmc "
                 "--method nuts %s makes one that climbs in coordinates without bounds",
                 map->model->source);
        return false;
    }
    GmEmEnd *end = gm_alloc((size_t)o->chains, sizeof *end);
    *status = (int)gm_em(map->model, run, on_device, m, o, end);
    map->n_blocks = 1;
    map->block[0] = (Block){gm_copy_text(""), gm_copy_text("latents"), true, true};
    for (int c = 0; c < o->chains; c++)
        map->climb[c * MOST_BLOCKS] = (BlockClimb){end[c].state, end[c].iterations, end[c].log_density, end[c].slope, 0, end[c].runs_off};
    free(end);
    return *status == GM_EXIT_OK;
}

// Each HMC update of the program becomes an ascent, of each start.
static void climb_all(Map *map, GmRun *run)
{
    run->host = map;
    run->seeking = 1;
    run->instead = climb;
    for (int k = 0; k < map->model->n_updates && map->n_blocks < MOST_BLOCKS; k++) {
        if (!map->model->update_hmc || !map->model->update_hmc(k)) continue;
        map->at = map->n_blocks;
        map->model->update(run, k);
        map->n_blocks++;
    }
    run->seeking = 0;
}

static void close_map(Map *map)
{
    for (int b = 0; b < map->n_blocks; b++) free(map->block[b].name), free(map->block[b].summed);
    for (int c = 0; c < map->options->chains * MOST_BLOCKS; c++) free(map->climb[c].runs_off);
    free(map->climb);
}

int gm_map_starts(const GmModel *model, GmRun *run, GmMemory *m, const GmData *d, GmOptions *o)
{
    Map map = {.model = model, .memory = m, .options = o};
    int status = GM_EXIT_OK;
    map.climb = gm_alloc((size_t)o->chains * MOST_BLOCKS, sizeof *map.climb);
    climb_all(&map, run);
    run->instead = NULL;
    run->host = NULL;
    if (gm_fault_raised()) {
        gm_fault_print(model, m, NULL);
        status = GM_EXIT_FAULT;
    } else if (!holds_all(&map, m, d)) status = GM_EXIT_USAGE;
    else find_constant(&map, run);
    for (int c = 0; c < o->chains && status == GM_EXIT_OK; c++) {
        const BlockClimb *w = worst(&map, c);
        if (w->state == GM_ASCENT_DONE) {
            gm_note("chain %d starts at a mode: log density %.10g%s", o->first_chain + c, whole(&map, c), up_to(&map));
            continue;
        }
        char *where = where_to(&map, c);
        gm_error("--init map: chain %d has found no maximum: %s%s%s. Without --init map chains start at random", o->first_chain + c,
                 end_of(w), where ? ", and rises towards " : "", where ? where : "");
        free(where);
        status = gm_interrupted() ? GM_EXIT_INTERRUPTED : GM_EXIT_NO_MODE;
    }
    close_map(&map);
    return status;
}

int gm_map(const GmModel *model, GmRun *run, GmRun *on_device, GmMemory *m, const GmData *d, GmOptions *o)
{
    Map map = {.model = model, .memory = m, .options = o};
    map.climb = gm_alloc((size_t)o->chains * MOST_BLOCKS, sizeof *map.climb);
    int status = GM_EXIT_USAGE, best = -1, reached = 0;
    if (model->for_modes && !iterate(&map, run, on_device, m, d, &status)) goto end;
    if (!model->for_modes) climb_all(&map, run);
    if (gm_fault_raised()) {
        gm_fault_print(model, m, NULL);
        status = GM_EXIT_FAULT;
    } else if (model->for_modes || holds_all(&map, m, d)) {
        if (!model->for_modes) find_constant(&map, run);
        if (o->summary && o->chains > 1) print_starts(&map, o->chains);
        for (int c = 0; c < o->chains; c++)
            if (is_told_as_mode(worst(&map, c)) && (best < 0 || whole(&map, c) > whole(&map, best))) best = c;
        const double height = best < 0 ? -INFINITY : whole(&map, best), slack = best < 0 ? 0 : 1e-6 * (1 + fabs(height));
        for (int c = 0; c < o->chains && best >= 0; c++) {
            if (!is_told_as_mode(worst(&map, c)) || whole(&map, c) < height - slack) continue;
            reached++;
            if (whole(&map, c) >= height - 1e-3 * slack && worst(&map, c)->slope < worst(&map, best)->slope)
                best = c;  // as high to within rounding, and closer
        }
        int highest = 0;
        for (int c = 1; c < o->chains; c++)
            if (whole(&map, c) > whole(&map, highest)) highest = c;
        // a component may collapse onto a point; modes that do not are what is asked for
        for (int c = 0; c < o->chains && best >= 0 && model->for_modes; c++)
            if (worst(&map, c)->state == GM_ASCENT_UNBOUNDED) {
                char *where = outermost(&map, c);
                gm_note("start %d: the density has no bound%s%s; what follows is the highest of the modes that were found. With a prior "
                        "that keeps away from there it has one",
                        c + 1, where ? ", and rises towards " : "", where ? where : "");
                free(where);
                break;
            }
        if (best < 0 || (!(model->for_modes && worst(&map, highest)->state == GM_ASCENT_UNBOUNDED) &&
                         !is_told_as_mode(worst(&map, highest)) && whole(&map, highest) > whole(&map, best) + slack)) {
            char *where = where_to(&map, highest), *zero = gm_zero_factor(model, m, d, highest);
            if (!zero && worst(&map, highest)->state == GM_ASCENT_NOWHERE) zero = gm_infinite_log_lik(model, m, d, run, highest);
            gm_error("map: no maximum was found: %s%s%s%s", end_of(worst(&map, highest)), where ? ", and rises towards " : "",
                     where ? where : "",
                     zero || !where ? ""
                     : rises_without_end(worst(&map, highest)->state)
                         ? ". Such a density has no mode; with a prior that keeps away from there it has one"
                         : ". If it rises there without end it has no mode; with a prior that keeps away from there it has one");
            if (zero) gm_error("  there %s", zero);
            free(where);
            free(zero);
            status = gm_interrupted() ? GM_EXIT_INTERRUPTED : GM_EXIT_NO_MODE;
        } else status = report(&map, run, m, d, best, reached);
    }
end:
    close_map(&map);
    return status;
}
