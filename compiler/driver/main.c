// main.c -- the command `gmc`: the order of the passes, the C compiler at the end. Options and exit statuses are in options.def.
#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "../../runtime/backends/files.h"
#include "../../runtime/backends/option_table.h"
#include "../emit/emit.h"
#include "../front/front.h"
#include "../pages/pages.h"
#include "explain.h"
#include "home.h"
#include "image.h"

enum {
#define STATUS(id, number, meaning) EXIT_##id = number,
#include "options.def"
};

#ifndef GMC_VERSION
#define GMC_VERSION "0.1"
#endif

typedef struct Options {
    const char *model, *output, *emit, *dump;
    int status;  // of the compilation
    const char *include[32];
    int ninclude;
    bool no_augment, time, check_passes, keep, verbose, quiet, lesson;
    // --explain, as in options.def. What is written as a file goes to the output, and no program is made
    enum { EXPLAIN_NOT, EXPLAIN_BRIEF, EXPLAIN_FULL, EXPLAIN_HTML, EXPLAIN_LATEX, EXPLAIN_JSON, EXPLAIN_INFO } explain;
    Method method;           // for all unknowns; METHOD_OTHER: gmc chooses for each
    bool no_device, device;  // leave code for GPUs out; insist on it
    const char *arch;        // of that code, "sm_90"; NULL: that of the GPU found here, else PTX for the oldest known
    GmPrecision precision;
} Options;

enum {
    OPT_NONE,
#define OPTION(id, letter, name, argument, values, help) OPT_##id,
#include "options.def"
};

static const GmOption option_table[] = {
#define OPTION(id, letter, name, argument, values, help) {OPT_##id, letter, name, argument, values, 1, help},
#define LINE(left, help)                                 {OPT_NONE, 0, left, NULL, NULL, 1, help},
#include "options.def"
    {0}};

static void usage(FILE *out)
{
    enum { WIDTH = 16 };
    fputs("usage: gmc MODEL.gm -o PROGRAM [options]\n       gmc MODEL.gm [options]                 check the model only\n", out);
#define COMMAND(name, function, arguments, help) fputs("       gmc " name " " arguments "  " help "\n", out);
#include "../../runtime/host/after/commands.def"
    fputc('\n', out);
    for (const GmOption *o = option_table; o->id || o->name; o++) {
        gm_option_print(out, o, WIDTH, 0);
        if (o->id == OPT_EMIT) {
#define PASS(name, stage, help) \
    if (strcmp(#stage, "none") != 0) fprintf(out, "                     %-10s after %s\n", #stage, #name);
#include "passes.def"
        }
        if (o->id == OPT_DUMP) {
#define PASS(name, stage, help) fprintf(out, "                     %-10s %s\n", #name, help);
#include "passes.def"
            fputs("                     all        each of them, under its name\n", out);
        }
    }
}

static double seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static const char *current_pass = "start", *current_model = "";

static void internal_fault(int signal)
{
    gm_files_remove();
    static const char head[] = "gmc: internal error in pass ", tail[] = "; please keep the model and report it\n";
    (void)signal;
    if (write(2, head, sizeof head - 1) < 0 || write(2, current_pass, strlen(current_pass)) < 0 || write(2, tail, sizeof tail - 1) < 0) {}
    _exit(EXIT_INTERNAL);
}

// ---- the C compiler ----

static volatile pid_t compiler;       // that runs, or 0
static volatile sig_atomic_t ending;  // a signal has come

// Before a signal ends gmc: what the compiler would still write would stay.
static void end_compiler(void)
{
    ending = 1;
    if (compiler <= 0) return;
    kill(compiler, SIGTERM);
    waitpid(compiler, NULL, 0);
}

// A word of CC that names a file by a path is made absolute, since the compiler runs in another folder.
static const char *command_word(Arena *a, const char *word)
{
    char real[PATH_MAX];
    return *word != '-' && strchr(word, '/') && realpath(word, real) ? arena_printf(a, "%s", real) : word;
}

enum { MOST_WORDS = 16 };  // of CC

// CC as words, "ccache gcc -m64", or one file whose name may have blanks. How many there are.
static int command_words(Arena *a, const char **word)
{
    const char *cc = getenv("CC");
    int n = 0;
    if (!cc || !cc[strspn(cc, " \t")]) cc = "cc";
    if (strchr(cc, '/') && access(cc, X_OK) == 0) word[n++] = command_word(a, cc);
    else
        for (char *rest = arena_printf(a, "%s", cc), *w; n < MOST_WORDS && (w = strtok_r(rest, " \t", &rest));)
            word[n++] = command_word(a, w);
    return n;
}

// Starts the compiler in a folder, with arguments after the words of CC; -1 if no process can be made.
static pid_t start_compiler(const Options *o, Arena *a, const char *folder, const char *const *arguments)
{
    int n = 0;
    while (arguments[n]) n++;
    const char **argv = NEW_N(a, const char *, MOST_WORDS + n + 1);
    const int words = command_words(a, argv);
    memcpy(argv + words, arguments, (size_t)(n + 1) * sizeof *argv);
    if (o->verbose) {
        for (int i = 0; argv[i]; i++) fprintf(stderr, "%s%s", i ? " " : "", argv[i]);
        fputc('\n', stderr);
    }
    const pid_t pid = fork();
    if (pid == 0) {
        if (chdir(folder) == 0) execvp(argv[0], (char *const *)argv);
        fprintf(stderr, "gmc: cannot run the C compiler `%s`: %s (apt-get install gcc, or set CC)\n", argv[0], strerror(errno));
        _exit(127);
    }
    return compiler = pid;
}

static int wait_for(pid_t pid)
{
    int status = 0;
    if (pid < 0) return -1;
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {}
    while (ending) pause();  // the handler, in another thread, has waited for it too, and ends gmc
    compiler = 0;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128;
}

// Code for GPUs, written as `stem`.c and what it needs: its text always, an image if NVRTC is here. 0, or an exit status after a message;
// *made: whether there is anything to link.
static int make_image(const Options *o, const Home *h, Arena *a, const char *source, const char *stem, bool *made)
{
    *made = false;
    char *text = image_text(a, source, h->runtime);
    if (!text) return EXIT_DEVICE;
    const char *why, *slash = strrchr(source, '/'), *arch = o->arch ? o->arch : image_arch_found(a);
    GmImage image = {0};
    bool compiled = false;
    if (!gm_nvrtc_found(NULL, &why)) {
        if (o->device || o->arch || o->verbose) fprintf(stderr, "gmc: no code for GPUs: %s\n", why);
        if (o->device || o->arch) return EXIT_DEVICE;
    } else if (arch || o->device) {  // otherwise the program compiles itself, for the GPU that it finds
        const double begun = seconds();
        char lowest[32];
        if (!arch) arch = gm_nvrtc_oldest(lowest, sizeof lowest);
        // Row passes of any width only: with the data there, the program compiles those of the right one.
        compiled =
            gm_nvrtc_compile(arena_printf(a, "#define GM_ROWS_ANY\n%s", text), slash ? slash + 1 : source, o->precision, arch, &image);
        if (o->verbose)
            fprintf(stderr, "gmc: NVRTC, %s, %s precision: %.2f s, %zu bytes\n", arch, gm_precision_names[o->precision], seconds() - begun,
                    image.cubin ? image.cubin_size : image.ptx_size);
        if (!compiled) {
            fprintf(stderr,
                    "%s\ngmc: NVRTC does not compile the half of the program that runs on GPUs; please keep the model and report it "
                    "(--keep writes the program's text)\n",
                    image.log ? image.log : "");
            gm_image_free(&image);
            return EXIT_DEVICE;
        }
    }
    *made = image_write(stem, h->runtime, slash ? slash + 1 : source, text, o->precision, arch, compiled ? &image : NULL);
    gm_image_free(&image);
    return *made ? 0 : EXIT_USAGE;
}

// Files in the folder where a program is made. The compiler runs in it and sees these names, whatever the program and its folder are
// called.
#define FILES(X)            \
    X(SOURCE, "program.cu") \
    X(OBJECT, "program.o")  \
    X(PROGRAM, "program")   \
    X(KEPT, "kept.cu")      \
    X(TABLES, "tables.h")   \
    X(DEVICE_C, "program.gpu.c") X(DEVICE_TEXT, "program.gpu.text") X(DEVICE_PTX, "program.gpu.ptx") X(DEVICE_CUBIN, "program.gpu.cubin")
enum {
#define NUMBER(name, file) MADE_##name,
    FILES(NUMBER) MADE
};
static const char *const made_name[] = {
#define NAME(name, file) file,
    FILES(NAME)};

// What a program is linked with besides the archive of the runtime.
#define LIBRARIES(X)   X("-ljansson") X("-lm") X("-ldl")
#define ARGUMENT(flag) flag,
#define AS_TEXT(flag)  " " flag

typedef struct Workshop {
    char *folder;
    const char *path[MADE];
} Workshop;

static bool workshop_open(Workshop *w, Arena *a, const char *output)
{
    w->folder = gm_folder_create(output);
    for (int k = 0; k < MADE && w->folder; k++) gm_file_temporary(w->path[k] = arena_printf(a, "%s/%s", w->folder, made_name[k]));
    return w->folder != NULL;
}

static void workshop_close(Workshop *w)
{
    for (int k = 0; k < MADE; k++) {
        unlink(w->path[k]);
        gm_file_settled(w->path[k]);
    }
    rmdir(w->folder);
    gm_file_settled(w->folder);
    free(w->folder);
}

// Whether the compiler has made its output: one that makes none, and reports no error, is no C compiler.
static bool was_made(const Workshop *w, int what)
{
    if (access(w->path[what], R_OK) == 0) return true;
    fprintf(stderr, "gmc: the C compiler `%s` ended well, and has not written what it was asked for: is it a C compiler?\n",
            getenv("CC") ? getenv("CC") : "cc");
    return false;
}

// The program's text to the program: the C compiler makes an object of the half for the CPU while NVRTC compiles the other. 0, or an exit
// status; *failed: a compiler did, and has said so.
static int build_program(const Options *o, const Home *h, Arena *a, int updates, bool for_cpu, const Workshop *w, bool *failed)
{
    const char *runtime = arena_printf(a, "-I%s/device", h->runtime);
    const bool many = updates > MANY_UPDATES;
    // With expensive optimisations by -O1, too, and without allocation of registers that knows what a called function uses: gcc else leaves
    // the upper halves of vector registers in use where it calls the C library, whose functions then take ten times as long. Without thread
    // jumps: gcc doubles the loop of a slice sampler for each condition in it that does not change (nine seconds for a dozen of them).
    // Without partial redundancy elimination: it computes in each branch of a row's condition what the row adds to a sum, and then does not
    // vectorise the row. A condition with several branches, as for the categories of an ordered probit, is turned into arithmetic where
    // more than 4 branches meet, too.
    const char *compile[] = {"-x",
                             "c",
                             "-std=gnu11",
                             many ? "-O1" : "-O2",
                             many ? "-fno-inline" : "-ftree-vectorize",
                             many ? "-DGM_MANY_UPDATES" : "-UGM_MANY_UPDATES",
                             "-fexpensive-optimizations",
                             "-fno-ipa-ra",
                             "-march=native",
                             "-fno-math-errno",
                             "-fno-trapping-math",
                             "-fassociative-math",
                             "-fno-signed-zeros",
                             "-fno-thread-jumps",
                             "-fno-tree-pre",
                             "--param",
                             "max-tree-if-conversion-phi-args=16",
                             "-fopenmp",
                             "-w",
                             runtime,
                             "-c",
                             made_name[MADE_SOURCE],
                             "-o",
                             made_name[MADE_OBJECT],
                             NULL};
    const pid_t pid = start_compiler(o, a, w->folder, compile);
    bool made = false;
    const int device =
        o->no_device || for_cpu ? 0 : make_image(o, h, a, w->path[MADE_SOURCE], arena_printf(a, "%s.gpu", w->path[MADE_PROGRAM]), &made);
    int status = wait_for(pid);
    if (status == 0 && !was_made(w, MADE_OBJECT)) return EXIT_COMPILER;
    if (status == 0 && device == 0) {
        const char *link[] = {"-fopenmp",
                              "-w",
                              made_name[MADE_OBJECT],
                              "-x",
                              "c",
                              made ? made_name[MADE_DEVICE_C] : "/dev/null",
                              "-x",
                              "none",
                              h->archive,
                              "-o",
                              made_name[MADE_PROGRAM],
                              LIBRARIES(ARGUMENT) NULL};
        status = wait_for(start_compiler(o, a, w->folder, link));
        if (status == 0 && !was_made(w, MADE_PROGRAM)) return EXIT_COMPILER;
    }
    *failed = status != 0 && status != 127;
    return status == 0 ? device : EXIT_COMPILER;
}

// The text on which a compiler has failed is kept, beside the output and under a name that nothing else has.
static void keep_failed(const Workshop *w, Arena *a)
{
    const char *kept = arena_printf(a, "%.*scu", (int)(strlen(w->folder) - strlen("part")), w->folder);
    if (rename(w->path[MADE_SOURCE], kept) != 0) kept = "";
    fprintf(stderr,
            "gmc: the C compiler failed, and says why above. If disk and memory suffice, and CC names gcc or a compiler that takes its "
            "options, please keep %s%sthe model and report it\n",
            kept, *kept ? " and " : "");
}

static bool cannot_write(const char *path, const char *why)
{
    if (why) fprintf(stderr, "gmc: cannot write %s: %s\n", path, why);
    return why != NULL;
}

// What is compiled is one file.
static bool write_source(const Workshop *w, const Program *p, const char *model)
{
    FILE *f = fopen(w->path[MADE_SOURCE], "wx");
    if (f) emit_program(f, NULL, NULL, p, model);
    const bool good = f && !ferror(f);
    return (!f || fclose(f) == 0) && good;
}

// ---- the text for the user: the mathematics, and beside it the tables ----

typedef struct Text {
    const char *program, *tables, *tables_name;
} Text;

// Of fit.cu these are fit.cu and fit_tables.h.
static Text text_beside(Arena *a, const char *program)
{
    const size_t n = strlen(program);
    const char *tables = arena_printf(a, "%.*s_tables.h", (int)(n > 3 && strcmp(program + n - 3, ".cu") == 0 ? n - 3 : n), program),
               *slash = strrchr(tables, '/');
    return (Text){program, tables, slash ? slash + 1 : tables};
}

static bool refuses_text(const Text *t)
{
    return cannot_write(t->program, gm_file_refused(t->program)) || cannot_write(t->tables, gm_file_refused(t->tables));
}

static bool write_text(const Workshop *w, const Text *t, const Program *p, const char *model)
{
    FILE *f = fopen(w->path[MADE_KEPT], "wx"), *tables = fopen(w->path[MADE_TABLES], "wx");
    if (f && tables) emit_program(f, tables, t->tables_name, p, model);
    const bool good = f && tables && !ferror(f) && !ferror(tables), closed = !f || fclose(f) == 0;
    if (((!tables || fclose(tables) == 0) && closed && good) == false) return !cannot_write(t->program, strerror(errno));
    return !cannot_write(t->tables, gm_file_replace(w->path[MADE_TABLES], t->tables)) &&
           !cannot_write(t->program, gm_file_replace(w->path[MADE_KEPT], t->program));
}

static int compile(const Options *o, const Home *h, const Program *p)
{
    Arena *a = p->g->arena;
    // the program's text is the user's with --keep alone: then it replaces PROGRAM.cu
    const Text text = text_beside(a, arena_printf(a, "%s.cu", o->output));
    if (cannot_write(o->output, gm_file_refused(o->output)) || (o->keep && refuses_text(&text))) return EXIT_USAGE;
    Workshop w;
    if (!workshop_open(&w, a, o->output)) {
        cannot_write(o->output, strerror(errno));
        return EXIT_USAGE;
    }
    int status = EXIT_USAGE;
    bool failed = false;
    if (!write_source(&w, p, o->model)) cannot_write(o->output, strerror(errno));
    else {
        current_pass = "C compiler";
        status = build_program(o, h, a, p->nupdates, only_on_cpu(p->g) != NULL, &w, &failed);
        if (status == 0 && cannot_write(o->output, gm_file_replace(w.path[MADE_PROGRAM], o->output))) status = EXIT_USAGE;
        if (o->keep && !write_text(&w, &text, p, o->model) && status == 0) status = EXIT_USAGE;
        if (failed && !o->keep) keep_failed(&w, a);
        else if (failed) fprintf(stderr, "gmc: the C compiler failed on %s, and says why above\n", text.program);
    }
    workshop_close(&w);
    return status;
}

// ---- pages and lessons ----

static void print_page(FILE *to, const Options *o, const Program *p, const Source *s)
{
    Pages *pages = pages_new(p, o->model);
    pages->source = s;
    if (o->explain == EXPLAIN_HTML) page_html(to, pages);
    else if (o->explain == EXPLAIN_LATEX) page_latex(to, pages);
    else if (o->explain == EXPLAIN_JSON) page_json(to, pages);
    else page_info(to, pages, GMC_VERSION);
}

static void print_lesson(FILE *to, const Options *o, const Program *p, const Source *s)
{
    (void)s;
    emit_lesson(to, p, o->model, o->output);
}

// To standard output, or whole into the file that is asked for.
static int write_output(const Options *o, const Program *p, const Source *s,
                        void (*print)(FILE *, const Options *, const Program *, const Source *))
{
    if (!o->output) {
        print(stdout, o, p, s);
        return 0;
    }
    GmFile f = {0};
    const char *why = gm_file_create(&f, o->output);
    if (!why) {
        print(f.to, o, p, s);
        why = gm_file_close(&f);
    }
    if (!why) why = gm_file_rename(&f);
    gm_file_drop(&f);
    return cannot_write(o->output, why) ? EXIT_USAGE : 0;
}

// What was printed is all there, or that is said.
static int printed(int status)
{
    if (fflush(stdout) == 0 && !ferror(stdout)) return status;
    fprintf(stderr, "gmc: standard output cannot be written: %s\n", strerror(errno ? errno : EIO));
    return status ? status : EXIT_USAGE;
}

// What cc needs for a lesson besides its text.
static int print_lesson_flags(void)
{
    Home home;
    if (!home_find(&home)) {
        home_missing();
        return EXIT_USAGE;
    }
    printf("-I%s/device -fopenmp -w %s" LIBRARIES(AS_TEXT) "\n", home.runtime, home.archive);
    return printed(0);
}

// --lesson: to the output, or to standard output.
static int write_lesson(const Options *o, const Program *p)
{
    const char *why = lesson_refused(p);
    if (why) {
        fprintf(stderr, "gmc: --lesson: %s\n", why);
        return EXIT_USAGE;
    }
    current_pass = "lesson";
    return write_output(o, p, NULL, print_lesson);
}

// --emit=cuda -o fit.cu
static int write_cuda(const Options *o, const Program *p)
{
    Arena *a = p->g->arena;
    const Text text = text_beside(a, o->output);
    Workshop w;
    if (refuses_text(&text)) return EXIT_USAGE;
    if (!workshop_open(&w, a, o->output)) {
        cannot_write(o->output, strerror(errno));
        return EXIT_USAGE;
    }
    const bool written = write_text(&w, &text, p, o->model);
    workshop_close(&w);
    return written ? 0 : EXIT_USAGE;
}

// ---- the passes ----

typedef struct GraphPass {
    const char *name, *stage;
    bool (*run)(Graph *);
    void (*print)(FILE *, const Graph *);
    unsigned except;
} GraphPass;
typedef struct KernelPass {
    const char *name, *stage;
    void (*run)(Lower *);
    void (*print)(FILE *, const Program *);
    bool except_lesson;
} KernelPass;

static bool any_unknown(Graph *g)
{
    for (int i = 0; i < g->nvars; i++)
        if (var_unknown(g->vars[i]) || g->vars[i]->kind == VAR_PREDICTED || g->vars[i]->response) return true;
    fprintf(stderr, "%s: there is nothing to draw: no variable stands on the left of `~` in a prior, latent or predict block\n",
            current_model);
    return false;
}

static const GraphPass graph_passes[] = {
#define ALL                                                      0
#define GIBBS                                                    (1u << METHOD_GIBBS)
#define NUTS                                                     (1u << METHOD_NUTS)
#define EM                                                       (1u << METHOD_EM)
#define GRAPH_PASS(name, function, printer, stage, except, help) {#name, #stage, function, printer, except},
#include "passes.def"
#undef ALL
#undef GIBBS
#undef NUTS
#undef EM
};

static const KernelPass kernel_passes[] = {
#define ALL                                                       false
#define LESSON                                                    true
#define KERNEL_PASS(name, function, printer, stage, except, help) {#name, #stage, function, printer, except},
#include "passes.def"
#undef ALL
#undef LESSON
};

static double pass_begun;

static void begin_pass(const char *name)
{
    current_pass = name;
    pass_begun = seconds();
}

static bool all_dumped(const Options *o) { return o->dump && strcmp(o->dump, "all") == 0; }

static bool printer;        // this process prints the text of --explain
static int printer_failed;  // exit status of one that did not

// A process of its own explains: that makes expressions, which later passes would find. So a program is the same whether or not it is
// explained.
static bool becomes_printer(const Options *o, const char *name)
{
    fflush(stdout);
    const pid_t pid = fork();
    int how = 0;
    if (pid < 0) {
        fprintf(stderr, "gmc: no process can be started to print %s: %s\n", name, strerror(errno));
        printer_failed = EXIT_USAGE;
    }
    if (pid > 0 && waitpid(pid, &how, 0) == pid && how) printer_failed = WIFEXITED(how) ? WEXITSTATUS(how) : EXIT_INTERNAL;
    printer = pid == 0;
    if (printer && all_dumped(o)) printf("==== %s\n", name);
    return printer;
}

static ExprMark before_dump;

static bool begin_dump(const char *name)
{
    printf("==== %s\n", name);
    before_dump = expr_mark();
    return true;
}

// After a dump: whether there are more. Each of all dumps is as if it were asked for alone: expressions that printing made are forgotten.
static bool more_dumps(const Options *o)
{
    if (all_dumped(o)) expr_forget(before_dump);
    return all_dumped(o);
}

// After a pass: what it has left wrong is our fault. True: what it left is to be printed, and gmc ends unless there are more dumps.
static bool end_pass(const Options *o, const char *name, const char *stage, const char *wrong)
{
    if (o->time) fprintf(stderr, "%-10s %.3f s\n", name, seconds() - pass_begun);
    if (wrong) {
        fprintf(stderr, "gmc: internal error after pass %s: %s; please keep the model and report it\n", name, wrong);
        exit(EXIT_INTERNAL);
    }
    return (all_dumped(o) && begin_dump(name)) || (o->dump && strcmp(o->dump, name) == 0) || (o->emit && strcmp(o->emit, stage) == 0);
}

static bool known_pass(const char *name)
{
#define PASS(pass, stage, help) \
    if (strcmp(name, #pass) == 0) return true;
#include "passes.def"
    return false;
}

static int finish(Diags *d, const Options *o, int status)
{
    if ((!o->quiet || status == EXIT_MODEL) && !printer) diags_print(d, stderr);
    return status;
}

enum { GO_ON = -1 };  // no exit status: what was asked for is still to come

// The library and the model, checked, up to pass `parse`; *s is its text.
static int read_model(const Options *o, const Home *home, Library *lib, Diags *d, Arena *a, Source **s, Model **m)
{
    gm_file_is_read(home->archive);
    if (!home_library(a, home->stdlib, lib, d, 0)) return EXIT_USAGE;
    for (int i = 0; i < o->ninclude; i++)
        if (!home_library(a, o->include[i], lib, d, 0)) return EXIT_USAGE;
    if (diags_errors(d) > 0 || !front_resolve_library(a, lib, d)) return finish(d, o, EXIT_MODEL);
    front_read = home_source;
    *s = home_source(a, o->model);
    if (!*s) {
        fprintf(stderr, "gmc: cannot read %s: %s\n", o->model, strerror(errno));
        return EXIT_USAGE;
    }
    begin_pass("parse");
    if (!front_parse_model(a, *s, d, m)) return finish(d, o, EXIT_MODEL);
    bool names = front_resolve(a, *m, lib, d), types = front_types(a, *m, lib, d);
    if (!names || !types || diags_errors(d) > 0) return finish(d, o, EXIT_MODEL);
    front_advise(a, *m, lib, d);
    if (!end_pass(o, "parse", "ast", NULL)) return GO_ON;
    ast_print(stdout, *m);
    return more_dumps(o) ? GO_ON : 0;
}

static int run_graph_passes(const Options *o, Graph *g)
{
    for (size_t i = 0; i < sizeof graph_passes / sizeof *graph_passes; i++) {
        const GraphPass *pass = &graph_passes[i];
        begin_pass(pass->name);
        if (!(pass->except & 1u << g->method) && !pass->run(g)) return finish(g->diags, o, EXIT_MODEL);
        if (end_pass(o, pass->name, pass->stage,
                     o->check_passes || strcmp(pass->name, "schedule") == 0 ? graph_check(g, pass->name) : NULL)) {
            pass->print(stdout, g);
            if (!more_dumps(o)) return 0;
        }
    }
    return GO_ON;
}

static int run_kernel_passes(const Options *o, Lower *lowering, const Program *p)
{
    for (size_t i = 0; i < sizeof kernel_passes / sizeof *kernel_passes; i++) {
        const KernelPass *pass = &kernel_passes[i];
        if (o->lesson && pass->except_lesson) continue;
        begin_pass(pass->name);
        pass->run(lowering);
        if (diags_errors(p->g->diags) > 0) return finish(p->g->diags, o, EXIT_MODEL);
        if (end_pass(o, pass->name, pass->stage,
                     o->check_passes || strcmp(pass->name, "placement") == 0 ? kernels_check(p, pass->name) : NULL)) {
            pass->print(stdout, p);
            if (!more_dumps(o)) return 0;
        }
    }
    return GO_ON;
}

// What --explain prints, and the pictures of the graph.
static int explained(const Options *o, const Graph *g, const Program *p)
{
    if (o->explain && o->explain <= EXPLAIN_FULL && (!(all_dumped(o) || o->output) || becomes_printer(o, "explain"))) {
        explain(stdout, p, o->explain == EXPLAIN_FULL, o->model);
        return finish(g->diags, o, 0);
    }
    begin_pass("dot");
    if (end_pass(o, "dot", "dot", NULL)) {
        diagram_dot(stdout, g);
        if (!more_dumps(o)) return finish(g->diags, o, 0);
    }
    begin_pass("mermaid");
    if (end_pass(o, "mermaid", "mermaid", NULL)) {
        diagram_mermaid(stdout, g);
        if (!more_dumps(o)) return finish(g->diags, o, 0);
    }
    const char *const alone = o->emit ? o->emit : o->dump;  // --dump=all has the same diagram as text
    if (!alone || strcmp(alone, "svg") != 0) return GO_ON;
    if (diagram_svg_file(stdout, g, g->model->name ? g->model->name : o->model)) return finish(g->diags, o, 0);
    fprintf(stderr, "gmc: --emit=svg: a diagram of more than %d nodes is not laid out; --emit=dot is its text for Graphviz\n", MOST_DRAWN);
    return finish(g->diags, o, 1);
}

// What is written of a complete program: a lesson, a page, its text or itself.
static int written(const Options *o, const Home *home, Diags *d, const Program *p, Source *s)
{
    if (o->lesson && !o->dump) return finish(d, o, write_lesson(o, p));
    if (o->explain > EXPLAIN_FULL && !o->emit && !o->dump) {
        current_pass = "pages";
        return finish(d, o, write_output(o, p, s, print_page));
    }
    begin_pass("headers");
    if (end_pass(o, "headers", "kernels", NULL)) {
        emit_kernels(stdout, p);
        if (!more_dumps(o)) return finish(d, o, 0);
    }
    begin_pass("emit");
    if (end_pass(o, "emit", "cuda", NULL)) {
        if (o->emit && o->output && strcmp(o->output, "-") != 0) return finish(d, o, write_cuda(o, p));
        emit_program(stdout, NULL, NULL, p, o->model);
        return finish(d, o, 0);
    }
    if (all_dumped(o)) return finish(d, o, 0);
    int status = compile(o, home, p);
    if (o->time) fprintf(stderr, "%-10s %.3f s\n", "compiler", seconds() - pass_begun);
    return finish(d, o, status);
}

static int compile_model(const Options *o)
{
    Home home;
    if (!home_find(&home)) {
        home_missing();
        return EXIT_USAGE;
    }
    Arena *a = arena_new();
    expr_start(a);
    Diags *d = diags_new(a);
    Library lib = {0};
    Source *s = NULL;
    Model *m = NULL;
    int status = read_model(o, &home, &lib, d, a, &s, &m);
    if (status != GO_ON) return status;
    Graph g = {.arena = a, .diags = d, .model = m, .stdlib = &lib, .no_augment = o->no_augment, .method = o->method, .lesson = o->lesson};
    if ((status = run_graph_passes(o, &g)) != GO_ON) return status;
    if (!o->output && !o->emit && !o->dump && !o->explain && !o->lesson) {
        if (!o->quiet) fprintf(stderr, "%s: no errors; -o PROGRAM writes the program\n", o->model);
        return finish(d, o, 0);
    }
    Lower *lowering = lower_new(&g);
    const Program *p = lowered(lowering);
    if ((status = run_kernel_passes(o, lowering, p)) != GO_ON || (status = explained(o, &g, p)) != GO_ON) return status;
    complete_program(lowering);
    status = written(o, &home, d, p, s);
    arena_free(a);
    return status;
}

static bool known_stage(const char *name)
{
#define PASS(pass, stage, help) \
    if (strcmp(name, #stage) == 0) return strcmp(name, "none") != 0;
#include "passes.def"
    return false;
}

enum { STACK_SIZE = 512 << 20 };

static void *compile_thread(void *options)
{
    Options *o = options;
    o->status = compile_model(o);
    if (printer) exit(printed(0));  // the thread that waits for this one is the other process's
    return NULL;
}

// The number of an option's argument among its values, from 0; -1 after a message.
static int option_value(int option)
{
    const GmOption *o = gm_option(option_table, option);
    const int k = gm_option_value(o, optarg);
    if (k >= 0) return k;
    char *values = gm_option_values(o);
    fprintf(stderr, "gmc: --%s: `%s` is none of %s\n", o->name, optarg, values);
    free(values);
    return -1;
}

// Whether the first argument is a command about stored draws.
static bool about_draws(int argc, char **argv)
{
#define COMMAND(name, function, arguments, help) \
    if (argc > 1 && strcmp(argv[1], name) == 0) return true;
#include "../../runtime/host/after/commands.def"
    return false;
}

// Becomes gmc-stored; the status of a failure, after a message.
static int run_stored(char **argv)
{
    Home home;
    if (!home_find(&home)) home_missing();
    else {
        execv(home.stored, argv);
        fprintf(stderr, "gmc: cannot run %s: %s\n", home.stored, strerror(errno));
    }
    return EXIT_USAGE;
}

// An option that there is not, with the one that is nearest, or one without its value.
static void refuse_option(int found, char **argv)
{
    const char letter[] = {'-', (char)optopt, 0};
    const char *flag = optopt > 0 && optopt < 128 ? letter : argv[optind - 1];
    const char *near = flag == letter ? NULL : gm_option_near(option_table, 1, flag);
    if (found == GM_OPTION_WITHOUT_VALUE) fprintf(stderr, "gmc: %s: a value is missing; gmc --help lists the options\n", flag);
    else if (near) fprintf(stderr, "gmc: %s: no such option; is --%s meant? gmc --help lists the options\n", flag, near);
    else fprintf(stderr, "gmc: %s: no such option; gmc --help lists the options\n", flag);
}

// The options before the model; an exit status after a message, or where an option is all that is asked.
static int read_options(Options *o, int argc, char **argv)
{
    opterr = 0;
    for (int c; (c = gm_option_next(option_table, 1, argc, argv)) != GM_OPTIONS_END;) switch (c) {
        case OPT_OUTPUT: o->output = optarg; break;
        case OPT_INCLUDE:
            if (o->ninclude == 32) {
                fprintf(stderr, "gmc: at most 32 -I folders\n");
                return EXIT_USAGE;
            }
            o->include[o->ninclude++] = optarg;
            break;
        case OPT_QUIET: o->quiet = true; break;
        case OPT_VERBOSE: o->verbose = true; break;
        case OPT_EMIT: o->emit = optarg; break;
        case OPT_DUMP: o->dump = optarg; break;
        case OPT_CHECK_PASSES: o->check_passes = true; break;
        case OPT_EXPLAIN:
            o->explain = EXPLAIN_BRIEF;
            if (!optarg) break;
            if (option_value(OPT_EXPLAIN) < 0) return EXIT_USAGE;
            o->explain += (unsigned)option_value(OPT_EXPLAIN);  // in the order of its values
            break;
        case OPT_INFO: o->explain = EXPLAIN_INFO; break;
        case OPT_NO_AUGMENT: o->no_augment = true; break;
        case OPT_LESSON: o->lesson = true; break;
        case OPT_LESSON_FLAGS: return print_lesson_flags();
        case OPT_METHOD:
            o->method = method_named(optarg, ASKED_BY_OPTION);
            if (!o->method) {
                fprintf(stderr, "gmc: --method %s: there are `nuts`, `gibbs` and `em`; without it gmc chooses for each unknown\n", optarg);
                return EXIT_USAGE;
            }
            break;
        case OPT_TIME: o->time = true; break;
        case OPT_KEEP: o->keep = true; break;
        case OPT_NO_DEVICE: o->no_device = true; break;
        case OPT_DEVICE:
            if (option_value(OPT_DEVICE) < 0) return EXIT_USAGE;
            o->device = *optarg == 'g';
            o->no_device = *optarg == 'c';
            break;
        case OPT_ARCH: o->arch = optarg; break;
        case OPT_PRECISION:
            if (option_value(OPT_PRECISION) < 0) return EXIT_USAGE;
            o->precision = (GmPrecision)option_value(OPT_PRECISION);
            break;
        case OPT_VERSION: puts("gmc " GMC_VERSION); return printed(0);
        case OPT_HELP: usage(stdout); return printed(0);
        default: refuse_option(c, argv); return EXIT_USAGE;
        }
    return GO_ON;
}

// Whether a lesson is asked for with nothing beside it; else a message.
static bool lesson_alone(const Options *o)
{
    if (o->lesson && o->method != METHOD_OTHER && o->method != METHOD_GIBBS) {
        fprintf(stderr, "gmc: --lesson: a lesson has Gibbs updates; leave --method out\n");
        return false;
    }
    const char *idle = !o->lesson                  ? NULL
                       : o->emit                   ? "emit"
                       : o->explain                ? "explain"
                       : o->keep                   ? "keep"
                       : o->device || o->no_device ? "device"
                       : o->arch                   ? "arch"
                       : o->precision != GM_MIXED  ? "precision"
                                                   : NULL;
    if (idle) {
        fprintf(stderr, "gmc: --lesson writes the lesson and nothing else; leave --%s out\n", idle);
        return false;
    }
    return true;
}

// Whether there are such a stage and such a pass; else a message with all of them.
static bool names_known(const Options *o)
{
    if (o->emit && !known_stage(o->emit)) {
        fprintf(stderr, "gmc: there is no stage `%s`; stages:", o->emit);
#define PASS(name, stage, help) \
    if (strcmp(#stage, "none") != 0) fprintf(stderr, " %s", #stage);
#include "passes.def"
        fputc('\n', stderr);
        return false;
    }
    if (o->dump && !all_dumped(o) && !known_pass(o->dump)) {
        fprintf(stderr, "gmc: --dump: there is no pass `%s`; passes:", o->dump);
#define PASS(pass, stage, help) fprintf(stderr, " %s", #pass);
#include "passes.def"
        fputc('\n', stderr);
        return false;
    }
    return true;
}

// The model, and whether options fit each other; else a message.
static bool options_fit(Options *o, int argc, char **argv)
{
    if (optind >= argc) {
        fprintf(stderr, "gmc: no model given (gmc MODEL.gm -o PROGRAM; gmc --help)\n");
        return false;
    }
    if (optind + 1 < argc) {
        fprintf(stderr, "gmc: one model at a time: `%s` is left over\n", argv[optind + 1]);
        return false;
    }
    o->model = current_model = argv[optind];
    if (!names_known(o) || !lesson_alone(o)) return false;
    if (o->lesson) o->method = METHOD_GIBBS;
    char list[300];
    if (o->arch && gm_nvrtc_found(NULL, NULL) && !gm_nvrtc_knows(o->arch, list, sizeof list)) {
        fprintf(stderr, "gmc: --arch: `%s` is none that the NVRTC found here compiles for: %s\n", o->arch, list);
        return false;
    }
    return true;
}

int main(int argc, char **argv)
{
    Options o = {.precision = GM_MIXED};
    gm_files_start();
    gm_files_ending = end_compiler;
    signal(SIGSEGV, internal_fault);
    signal(SIGABRT, internal_fault);
    signal(SIGFPE, internal_fault);
    if (about_draws(argc, argv)) return run_stored(argv);
    const int status = read_options(&o, argc, argv);
    if (status != GO_ON) return status;
    if (!options_fit(&o, argc, argv)) return EXIT_USAGE;
    // Passes recurse as deep as expressions and definitions are nested: they have a stack for that. Pages that are not touched cost
    // nothing.
    pthread_attr_t attributes;
    pthread_t compiler;
    pthread_attr_init(&attributes);
    const bool deep =
        pthread_attr_setstacksize(&attributes, STACK_SIZE) == 0 && pthread_create(&compiler, &attributes, compile_thread, &o) == 0;
    if (deep) pthread_join(compiler, NULL);
    else compile_thread(&o);
    return printed(o.status ? o.status : printer_failed);
}
