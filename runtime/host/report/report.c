// report.c -- `fit report draws_*.csv -o report.html`: one page about stored draws, whole in itself.
//
// The page has the warnings, the table of the summary, the figures of the worst unknowns, and where there are any those of divergences,
// energy and replicates. It asks nothing of a network, and reads without JavaScript.
#define _GNU_SOURCE  // open_memstream
#include "../fields.h"
#include "../messages.h"
#include "report.h"

#include <ctype.h>
#include <getopt.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { FIGURES = 12, ROWS = 50 };

typedef struct Options {
    const char *output;
    char **data;
    int n_data;
    long figures, rows;
    bool quiet;
    char **files;
    int n_files;
} Options;

typedef struct Report {
    Options o;
    GmStored stored;
    GmFindings findings;
    GmResponse *response;
    int n_responses;
    long *shown;                   // columns that have figures, the worst first
    long n_shown, n_figures_left;  // and how many that change have none
    char *warnings;
    int n_warnings;
    const char *first_warning;
    int number;  // of the last figure
} Report;

// ---- the command line ----

static bool count(const char *flag, const char *text, long *out)
{
    char *end;
    const long n = strtol(text, &end, 10);
    if (strcmp(text, "all") == 0) *out = LONG_MAX;
    else if (*end || end == text || n < 1) {
        gm_error("%s: `%s` is not a whole number of at least 1, nor `all`", flag, text);
        return false;
    } else *out = n;
    return true;
}

// -1 to go on, else the status.
static int read_options(Options *o, int argc, char **argv)
{
    *o = (Options){.output = "report.html", .figures = FIGURES, .rows = ROWS};
    o->data = gm_alloc((size_t)argc, sizeof *o->data);
    optind = 0;
    opterr = 0;
    for (int option; (option = gm_option_next(gm_option_table, GROUP_PAGE, argc, argv)) != GM_OPTIONS_END;) switch (option) {
        case OPT_PAGE_OUTPUT: o->output = optarg; break;
        case OPT_PAGE_DATA: o->data[o->n_data++] = optarg; break;
        case OPT_PAGE_FIGURES:
            if (!count("--figures", optarg, &o->figures)) return GM_EXIT_USAGE;
            break;
        case OPT_PAGE_SUMMARY:
            if (!count("--summary", optarg, &o->rows)) return GM_EXIT_USAGE;
            break;
        case OPT_PAGE_QUIET: o->quiet = true; break;
        case OPT_PAGE_HELP:
            fputs("usage: fit report [options] DRAWS\n", stdout);
            gm_option_group_print(stdout, GROUP_PAGE);
            return GM_EXIT_OK;
        default:
            if (option == GM_OPTION_WITHOUT_VALUE) gm_error("report: %s: a value is missing; try --help", argv[optind - 1]);
            else gm_option_refused("report: ", GROUP_PAGE, argv[optind - 1]);
            return GM_EXIT_USAGE;
        }
    if (optind >= argc) {
        gm_error("report: no draws are given: report DRAWS, which is the NAME of `-o NAME`, or files; try --help");
        return GM_EXIT_USAGE;
    }
    o->files = argv + optind;
    o->n_files = argc - optind;
    return -1;
}

// ---- parts of the page ----

static void choose_shown(Report *r)
{
    const GmFindings *f = &r->findings;
    r->shown = gm_alloc((size_t)f->n_quantities, sizeof *r->shown);
    for (long k = 0; k < f->n_quantities; k++) {
        const GmSummary *of = &f->summary[f->worst[k]];
        if (of->sd == 0 || isnan(of->mean)) continue;
        if (r->n_shown < r->o.figures) r->shown[r->n_shown++] = f->worst[k];
        else r->n_figures_left++;
    }
}

static bool has_figures(const Report *r, long column)
{
    for (long k = 0; k < r->n_shown; k++)
        if (r->shown[k] == column) return true;
    return false;
}

static bool has_energy(const Report *r, int m)
{
    const GmStored *s = &r->stored;
    const long c = s->moves[m].column[GM_HMC_ENERGY];
    double lo = INFINITY, hi = -INFINITY;
    for (long i = 0; c >= 0 && i < s->chains * s->draws; i++) {
        lo = fmin(lo, gm_stored_column(s, c)[i]);
        hi = fmax(hi, gm_stored_column(s, c)[i]);
    }
    return hi > lo;  // Gibbs updates leave none
}

static bool any_energy(const Report *r)
{
    bool any = false;
    for (int m = 0; m < r->stored.n_moves; m++) any |= has_energy(r, m);
    return any;
}

static bool any_pairs(const Report *r) { return r->findings.n_associated >= 2; }

static void head(FILE *to, const Report *r)
{
    const GmStored *s = &r->stored;
    fputs("<header>\n<h1>", to);
    gm_html(to, "%s: posterior draws", s->name);
    fprintf(to, "</h1>\n<p class=\"facts\">%d chain%s of %ld draws", s->chains, s->chains > 1 ? "s" : "", s->draws);
    if (s->warmup)
        gm_html(to, s->passed_over ? ", after %s draws of warm-up, which are left out" : ", after %s draws of warm-up", s->warmup);
    if (s->thin && strcmp(s->thin, "1") != 0) gm_html(to, ", every %s-th kept", s->thin);
    if (s->seed) gm_html(to, ", seed %s", s->seed);
    fprintf(to, ". Made by %s.</p>\n", s->by_gmc ? "a program of gmc" : "CmdStan or another sampler");
    for (int k = 0; k < s->n_notes; k++) {
        fputs("<p class=\"facts\">", to);
        gm_html_text(to, s->note[k]);
        fputs("</p>\n", to);
    }
    const bool bad = r->n_warnings > 0 && strstr(r->warnings, "class=\"bad\"");
    fprintf(to, "<p class=\"verdict%s\">", bad ? " bad" : r->n_warnings ? " warn" : "");
    char first[100] = "";
    if (r->n_warnings) snprintf(first, sizeof first, "%c%s", tolower((unsigned char)*r->first_warning), r->first_warning + 1);
    if (r->n_warnings == 0) fputs(gm_no_warnings, to);
    else if (r->n_warnings == 1) gm_html(to, "One warning: %s.", first);
    else gm_html(to, "%d warnings, the likeliest cause first: %s.", r->n_warnings, first);
    fputs("</p>\n<nav aria-label=\"Contents\"><ul>\n", to);
    if (r->n_warnings) fputs("<li><a href=\"#warnings\">Warnings</a></li>\n", to);
    fputs("<li><a href=\"#summary\">Summary</a></li>\n", to);
    if (r->n_shown) fputs("<li><a href=\"#unknowns\">Figures</a></li>\n", to);
    if (any_pairs(r)) fputs("<li><a href=\"#pairs\">Divergences</a></li>\n", to);
    if (any_energy(r)) fputs("<li><a href=\"#energy\">Energy</a></li>\n", to);
    if (r->n_responses) fputs("<li><a href=\"#predictive\">Predictive checks</a></li>\n", to);
    fputs("<li><a href=\"#reading\">How to read this</a></li>\n</ul></nav>\n</header>\n<main>\n", to);
}

static void row(FILE *to, const Report *r, long column)
{
    const GmSummary *of = &r->findings.summary[column];
    char cell[GM_SUMMARY_CELLS][GM_CELL_ROOM];
    gm_summary_cells(of, cell);
    fputs("<tr><th scope=\"row\"><span class=\"name\">", to);
    if (has_figures(r, column)) fprintf(to, "<a href=\"#unknown-%ld\">", column + 1);
    gm_html_text(to, r->stored.column[column].label);
    fputs(has_figures(r, column) ? "</a></span></th>" : "</span></th>", to);
    for (int k = 0; k < GM_SUMMARY_CELLS; k++) {
        const double bound = 100.0 * r->stored.chains;
        const bool bad = (k == 6 && of->ess_bulk < bound) || (k == 7 && of->ess_tail < bound) || (k == 8 && of->rhat > 1.01);
        fprintf(to, bad ? "<td class=\"bad\">%s</td>" : "<td>%s</td>", cell[k]);
    }
    fputs("</tr>\n", to);
}

static void table(FILE *to, const Report *r)
{
    const GmFindings *f = &r->findings;
    const bool all = f->n_quantities <= r->o.rows;
    const long n = all ? f->n_quantities : r->o.rows;
    fputs("<section id=\"summary\">\n<h2>Summary</h2>\n<p id=\"summary-text\">", to);
    if (all) fprintf(to, "%ld quantit%s, in the order of the files. ", n, n == 1 ? "y" : "ies");
    else
        fprintf(to, "The worst %ld of %ld quantities by R-hat and effective size, the worst first; %ld are not shown (--summary). ", n,
                f->n_quantities, f->n_quantities - n);
    fputs("What is beyond its bound is marked.</p>\n<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"Summary\">\n"
          "<table aria-describedby=\"summary-text\">\n<thead><tr><th scope=\"col\">quantity</th>",
          to);
    for (int k = 0; k < GM_SUMMARY_CELLS; k++) fprintf(to, "<th scope=\"col\">%s</th>", gm_summary_titles[k]);
    fputs("</tr></thead>\n<tbody>\n", to);
    for (long k = 0; k < n; k++) row(to, r, all ? f->quantity[k] : f->worst[k]);
    fputs("</tbody>\n</table>\n</div>\n</section>\n", to);
}

static void unknowns(FILE *to, Report *r)
{
    const GmStored *s = &r->stored;
    if (r->n_shown == 0) return;
    fputs("<section id=\"unknowns\">\n<h2>Figures, the worst first</h2>\n", to);
    if (r->n_figures_left > 0)
        fprintf(to, "<p>Figures of %ld quantities, those with the worst R-hat and effective size; %ld are not shown (--figures).</p>\n",
                r->n_shown, r->n_figures_left);
    if (s->chains <= GM_COLOURS) {
        fputs("<ul class=\"legend\" aria-label=\"Colours of chains\">\n", to);
        for (int c = 0; c < s->chains; c++) fprintf(to, "<li><i class=\"%s\"></i>chain %ld</li>\n", gm_series_class(c), s->id[c]);
        fputs("</ul>\n", to);
    }
    for (long k = 0; k < r->n_shown; k++) {
        const long c = r->shown[k];
        char cell[GM_SUMMARY_CELLS][GM_CELL_ROOM];
        gm_summary_cells(&r->findings.summary[c], cell);
        fprintf(to, "<article class=\"unknown\" id=\"unknown-%ld\">\n<h3 class=\"name\">", c + 1);
        gm_html_text(to, s->column[c].label);
        fprintf(to, "</h3>\n<p>mean %s, 90 %% between %s and %s; R-hat %s, effective draws %s (bulk) and %s (tails)</p>\n", cell[0],
                cell[3], cell[5], cell[8], cell[6], cell[7]);
        gm_figures_of_quantity(to, s, &r->findings, c, &r->number);
        fputs("</article>\n", to);
    }
    fputs("</section>\n", to);
}

static void sampler(FILE *to, Report *r)
{
    if (any_pairs(r)) {
        fputs("<section id=\"pairs\">\n<h2>Where transitions diverge</h2>\n<ul class=\"legend\"><li><i class=\"div\"></i>draw that ends a "
              "divergent transition</li></ul>\n<div class=\"wide\" tabindex=\"0\" role=\"region\" aria-label=\"Pairs of unknowns\">\n",
              to);
        gm_pairs_figure(to, &r->stored, &r->findings, &r->number);
        fputs("</div>\n</section>\n", to);
    }
    if (!any_energy(r)) return;
    fputs("<section id=\"energy\">\n<h2>Energy</h2>\n<div class=\"one\">\n", to);
    for (int m = 0; m < r->stored.n_moves; m++)
        if (has_energy(r, m)) gm_energy_figure(to, &r->stored, &r->stored.moves[m], &r->number);
    fputs("</div>\n</section>\n", to);
}

static void predictive(FILE *to, Report *r)
{
    if (r->n_responses == 0) return;
    fputs("<section id=\"predictive\">\n<h2>Posterior predictive checks</h2>\n", to);
    for (int k = 0; k < r->n_responses; k++) {
        const GmResponse *of = &r->response[k];
        fputs("<article class=\"unknown\">\n<h3 class=\"name\">", to);
        gm_html_text(to, of->name);
        fputs("</h3>\n<p>", to);
        if (of->y)
            fprintf(to, "%ld observed values; %.0f %% lie within the central 90 %% of their replicates", of->known, 100 * of->covered);
        else if (r->o.n_data) gm_html(to, "none of the data files has %s, so replicates stand alone", of->name);
        else gm_html(to, "replicates stand alone: with --data FILE, the data of the run, they are compared with %s", of->name);
        fputs("</p>\n", to);
        gm_predictive_figures(to, &r->stored, of, &r->number);
        fputs("</article>\n", to);
    }
    fputs("</section>\n", to);
}

static const char reading[] =
    "<section id=\"reading\">\n<h2>How to read this</h2>\n<dl>\n"
    "<dt>Table</dt><dd>MCSE is the Monte Carlo error of the mean. Effective sizes are for means (bulk) and for the 5 % and 95 % quantiles "
    "(tail); 100 a chain or more are wanted. R-hat compares chains, and halves of chains; it should be below 1.01.</dd>\n"
    "<dt>Trace</dt><dd>Draws in their order. Chains should lie over each other, without drift.</dd>\n"
    "<dt>Rank histograms</dt><dd>Where a chain's draws lie among those of all chains. If chains agree bars are level, within the grey "
    "band. A slope is a chain that lies lower or higher than others; a hump or a bowl is one that varies less or more.</dd>\n"
    "<dt>Density</dt><dd>One curve a chain, by a Gaussian kernel. They should agree.</dd>\n"
    "<dt>Autocorrelation</dt><dd>How much a draw says of a later one. The sooner it falls to 0, the more a draw is worth.</dd>\n"
    "<dt>Divergences</dt><dd>Where marked points gather, the log density curves more than the step size can follow.</dd>\n"
    "<dt>Energy</dt><dd>Histograms of the energy, and of its change from draw to draw. If the second is much narrower, tails are reached "
    "slowly. E-BFMI is the ratio of their mean squares.</dd>\n"
    "<dt>Predictive checks</dt><dd>Replicates are data drawn from the fitted model. If it fits, what was observed looks like one of them. "
    "A probability near 0 or 1 is of a statistic that the model does not reproduce.</dd>\n</dl>\n</section>\n</main>\n"
    "<footer>\n<p>R-hat, effective sizes and rank histograms: Vehtari, Gelman, Simpson, Carpenter and Buerkner (2021), Bayesian Analysis "
    "16. "
    "Energy: Betancourt (2016), arXiv:1604.00695. Predictive checks: Gelman, Meng and Stern (1996), Statistica Sinica 6.</p>\n</footer>\n";

static void write_page(FILE *to, Report *r)
{
    char *title = gm_format("%s: posterior draws", r->stored.name);
    gm_html_begin(to, title);
    free(title);
    head(to, r);
    if (r->n_warnings) fprintf(to, "<section id=\"warnings\">\n<h2>Warnings, the likeliest cause first</h2>\n%s</section>\n", r->warnings);
    table(to, r);
    unknowns(to, r);
    sampler(to, r);
    predictive(to, r);
    fputs(reading, to);
    gm_html_end(to);
}

// ---- the command ----

static bool collect_warnings(Report *r)
{
    size_t size;
    FILE *to = open_memstream(&r->warnings, &size);
    if (!to) gm_exhausted(1, 1);
    r->n_warnings = gm_warnings(to, GM_WARNINGS_PAGE, &r->stored, &r->findings, r->response, r->n_responses, &r->first_warning);
    if (fclose(to) != 0) gm_exhausted(1, 1);
    return true;
}

static int make(Report *r, const GmModel *model)
{
    int n = 0;
    char **files = gm_draw_files("report", r->o.files, r->o.n_files, &n);
    bool good = files && gm_stored_open(&r->stored, model, files, n);
    for (int k = 0; k < n && files; k++) free(files[k]);
    free(files);
    good = good && gm_responses_open(&r->response, &r->n_responses, &r->stored, r->o.data, r->o.n_data);
    if (!good || !gm_output_replaces_own(r->o.output, GM_HTML_BEGIN)) return GM_EXIT_USAGE;
    gm_findings_open(&r->findings, &r->stored);
    choose_shown(r);
    collect_warnings(r);
    GmFile out;
    if (!gm_output_open(&out, r->o.output, false)) return GM_EXIT_USAGE;
    write_page(out.to, r);
    if (!gm_output_done(&out)) return GM_EXIT_FAULT;
    if (r->n_warnings)
        gm_note("report: %s (%d warning%s: %s%s)", r->o.output, r->n_warnings, r->n_warnings > 1 ? "s" : "", r->first_warning,
                r->n_warnings > 1 ? ", ..." : "");
    else gm_note("report: %s", r->o.output);
    return GM_EXIT_OK;
}

int gm_report(const GmModel *model, int argc, char **argv)
{
    Report r = {0};
    int status = read_options(&r.o, argc, argv);
    gm_quiet = r.o.quiet;
    if (status < 0) status = make(&r, model);
    gm_responses_close(r.response, r.n_responses);
    gm_findings_close(&r.findings);
    gm_stored_close(&r.stored);
    free(r.shown);
    free(r.warnings);
    free(r.o.data);
    return status;
}
