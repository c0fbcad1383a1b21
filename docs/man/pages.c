// pages.c -- the manual pages gmc(1) and gmc-program(1) and the completion of bash, from the tables of options.
//
//   pages gmc | program | bash
//
// make writes them into build/, as gmc.1, gmc-program.1 and gmc.bash.
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

typedef struct Row {
    int group;
    char letter;
    const char *name, *argument, *values, *help;
    bool line;  // no option
} Row;

enum { COMPILER, DATA, RUN, MODE, WHY, FORWARD, REPORT, RELABEL, LATER, PAGE, TABLE, DIAGNOSE, LOO, COMPARE, WATCH, GROUPS };

static const Row rows[] = {
#define OPTION(id, letter, name, argument, values, help) {COMPILER, letter, name, argument, values, help, false},
#define LINE(left, help)                                 {COMPILER, 0, left, NULL, NULL, help, true},
#include "../../compiler/driver/options.def"
#define OPTION(group, id, letter, name, argument, values, help) {group, letter, name, argument, values, help, false},
#define LINE(group, left, help)                                 {group, 0, left, NULL, NULL, help, true},
#include "../../runtime/host/options.def"
};
enum { N_ROWS = sizeof rows / sizeof *rows };
#define EACH_ROW(o, group_) \
    for (const Row *o = rows; o < rows + N_ROWS; o++) \
        if (o->group == (group_))

static const char *const heading[GROUPS] = {
#define GROUP(id, heading) [id] = heading,
#include "../../runtime/host/options.def"
};


typedef struct Status {
    int number;
    const char *meaning;
} Status;
static const Status compiler_statuses[] = {
#define STATUS(id, number, meaning) {number, meaning},
#include "../../compiler/driver/options.def"
    {-1, NULL}};
static const Status program_statuses[] = {
#define STATUS(number, meaning) {number, meaning},
#include "../../runtime/host/options.def"
    {-1, NULL}};

typedef struct Pass {
    const char *name, *stage, *help;
} Pass;
static const Pass passes[] = {
#define PASS(name, stage, help) {#name, #stage, help},
#include "../../compiler/driver/passes.def"
};
enum { N_PASSES = sizeof passes / sizeof *passes };

static bool has_stage(const Pass *p) { return strcmp(p->stage, "none") != 0; }

// ---- manual pages ----

// Text for groff: dashes and the like as they are typed, what stands between backticks in bold.
static void put(const char *text)
{
    bool bold = false;
    for (const char *c = text; *c; c++) switch (*c) {
        case '`':
            bold = !bold;
            fputs(bold ? "\\fB" : "\\fR", stdout);
            break;
        case '-': fputs("\\-", stdout); break;
        case '\\': fputs("\\e", stdout); break;
        case '~': fputs("\\(ti", stdout); break;
        case '^': fputs("\\(ha", stdout); break;
        case '.':
        case '\'': printf("\\&%c", *c); break;
        default: putchar(*c);
        }
}

static void paragraph(const char *text)
{
    put(text);
    putchar('\n');
}

static void option(const Row *o)
{
    if (!o->help) {
        puts(".PP");
        paragraph(o->name);
        return;
    }
    fputs(".TP\n", stdout);
    if (o->line) {
        fputs("\\fB", stdout);
        put(o->name + strspn(o->name, " "));
        fputs("\\fR", stdout);
    }
    if (o->letter) printf("\\fB\\-%c\\fR%s", o->letter, o->name ? ", " : "");
    if (o->name && !o->line) {
        fputs("\\fB\\-\\-", stdout);
        put(o->name);
        fputs("\\fR", stdout);
    }
    if (o->argument) {
        fputs(*o->argument == '=' ? "\\fI" : " \\fI", stdout);
        put(o->argument);
        fputs("\\fR", stdout);
    }
    putchar('\n');
    paragraph(o->help);
}

static void named(const char *name, const char *help)
{
    printf(".TP 14\n\\fB%s\\fR\n", name);
    paragraph(help);
}

static void exit_statuses(const Status *s)
{
    puts(".SH EXIT STATUS");
    for (; s->meaning; s++) {
        printf(".TP 6\n\\fB%d\\fR\n", s->number);
        paragraph(s->meaning);
    }
}

// A line of the synopsis for each command about stored draws.
static void draw_commands(const char *program)
{
#define COMMAND(name, function, arguments, help) printf(".br\n%s \\fB%s\\fR [\\fIoptions\\fR] \\fIDRAWS\\fR\n", program, name);
#include "../../runtime/host/after/commands.def"
}

static void manual_of_gmc(void)
{
    puts(".TH GMC 1\n.SH NAME\ngmc \\- a compiler of Bayesian models into programs that draw from their posterior\n"
         ".SH SYNOPSIS\n\\fBgmc\\fR \\fIMODEL\\fR.gm \\fB\\-o\\fR \\fIPROGRAM\\fR [\\fIoptions\\fR]\n.br\n"
         "\\fBgmc\\fR \\fIMODEL\\fR.gm [\\fIoptions\\fR]");
    draw_commands("\\fBgmc\\fR");
    puts(".SH DESCRIPTION\n"
         "gmc reads a model and writes a program that reads data and draws from the posterior of the unknowns. "
         "Without \\fB\\-o\\fR it checks the model only. Its commands about stored draws have the options of those of programs, "
         "\\fBgmc\\-program\\fR(1).\n.SH OPTIONS");
    EACH_ROW (o, COMPILER) {
        option(o);
        if (o->argument && strcmp(o->argument, "=STAGE") == 0) {
            puts(".RS");
            for (int k = 0; k < N_PASSES; k++) {
                char after[100];
                snprintf(after, sizeof after, "after %s", passes[k].name);
                if (has_stage(&passes[k])) named(passes[k].stage, after);
            }
            puts(".RE");
        }
        if (o->argument && strcmp(o->argument, "=PASS") == 0) {
            puts(".RS");
            for (int k = 0; k < N_PASSES; k++) named(passes[k].name, passes[k].help);
            named("all", "each of them, under its name");
            puts(".RE");
        }
    }
    exit_statuses(compiler_statuses);
    puts(".SH ENVIRONMENT\n.TP\n\\fBCC\\fR\nthe C compiler and its first arguments (cc)\n.SH SEE ALSO\n\\fBgmc\\-program\\fR(1)");
}

static void manual_of_programs(void)
{
    puts(".TH GMC\\-PROGRAM 1\n.SH NAME\ngmc\\-program \\- what gmc makes of a model: draws from its posterior\n"
         ".SH SYNOPSIS\n\\fB./\\fR\\fIPROGRAM\\fR [\\fIoptions\\fR] \\fIdata\\fR...\n.br\n"
         "\\fB./\\fR\\fIPROGRAM\\fR \\fBmap\\fR [\\fIoptions\\fR] \\fIdata\\fR...\n.br\n"
         "\\fB./\\fR\\fIPROGRAM\\fR \\fBprior\\fR [\\fIoptions\\fR] \\fIdata\\fR...\n.br\n"
         "\\fB./\\fR\\fIPROGRAM\\fR \\fBsimulate\\fR [\\fIoptions\\fR] \\fIdata\\fR...\n.br\n"
         "\\fB./\\fR\\fIPROGRAM\\fR \\fBcalibrate\\fR [\\fIoptions\\fR] \\fIdata\\fR...\n.br\n"
         "\\fB./\\fR\\fIPROGRAM\\fR \\fBwhy\\fR \\fINAME\\fR \\fB\\-\\-chain\\fR \\fIC\\fR \\fB\\-\\-draw\\fR \\fID\\fR [\\fIoptions\\fR] "
         "\\fIdata\\fR...\n.br\n"
         "\\fB./\\fR\\fIPROGRAM\\fR \\fBrerun\\fR \\fINAME\\fR_run.json [\\fIoptions\\fR]\n.br\n"
         "\\fB./\\fR\\fIPROGRAM\\fR \\fBrelabel\\fR [\\fIoptions\\fR] \\fIDRAWS\\fR");
    draw_commands("\\fB./\\fR\\fIPROGRAM\\fR");
    puts(".SH DESCRIPTION\n"
         "A program that \\fBgmc\\fR(1) has made reads the data of its model and draws from the posterior. "
         "With \\fBmap\\fR it looks for the mode. With \\fBrelabel\\fR it makes labels of components agree over stored draws. "
         "With \\fBreport\\fR and the other commands about stored draws it reads files of draws. "
         "With \\fBrerun\\fR it makes the draws of a run again and compares them. "
         "With \\fBwhy\\fR it makes the sweep of one draw again and prints its law and its numbers.\n"
         ".SH OPTIONS");
    for (int group = DATA; group < GROUPS; group++) {
        printf(".SS %s\n", heading[group]);
        EACH_ROW (o, group) option(o);
    }
    exit_statuses(program_statuses);
    puts(".SH SEE ALSO\n\\fBgmc\\fR(1)");
}

// ---- completion ----

static void put_options(int from, int to)
{
    for (int group = from; group <= to; group++) EACH_ROW (o, group) {
            if (o->letter) printf(" -%c", o->letter);
            if (o->name && !o->line) printf(" --%s", o->name);
        }
}

// The words that may follow an option, one case each.
static void put_values(int from, int to)
{
    for (int group = from; group <= to; group++) EACH_ROW (o, group) {
            // an argument that may be left out stands behind a =
            const bool behind = o->argument && *o->argument == '[';
            const char *before = behind ? "[[ ${COMP_WORDS[COMP_CWORD]}${COMP_WORDS[COMP_CWORD-1]} == *=* ]] && " : "";
            if (o->values) printf("        --%s) %swords=\"%s\" ;;\n", o->name, before, o->values);
        }
}

static const char start[] = "{\n"
                            "    local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]} words=\n"
                            "    if [[ $word == = ]]; then word=; fi\n"
                            "    if [[ $before == = ]]; then before=${COMP_WORDS[COMP_CWORD-2]}; fi\n"
                            "    case $before in\n";
static const char end[] = "    COMPREPLY=($(compgen -W \"$words\" -- \"$word\"))\n"
                          "}\n";

static void completion(void)
{
    printf("# Completion for gmc. For a program that it has made: complete -o default -F _gmc_program PROGRAM\n_gmc()\n%s", start);
    fputs("        *) if ((COMP_CWORD > 1)); then case ${COMP_WORDS[1]} in", stdout);
#define COMMAND(name, function, arguments, help) fputs(" " name " |", stdout);
#include "../../runtime/host/after/commands.def"
    puts(" '') _gmc_program; return ;; esac; fi ;;\n    esac\n    case $before in");
    fputs("        --emit) words=\"", stdout);
    for (int k = 0; k < N_PASSES; k++)
        if (has_stage(&passes[k])) printf("%s ", passes[k].stage);
    fputs("\" ;;\n        --dump) words=\"", stdout);
    for (int k = 0; k < N_PASSES; k++) printf("%s ", passes[k].name);
    fputs("all\" ;;\n", stdout);
    put_values(COMPILER, COMPILER);
    fputs("        *) if [[ $word == -* ]]; then words=\"", stdout);
    put_options(COMPILER, COMPILER);
    printf("\"; fi ;;\n    esac\n%s\n_gmc_program()\n%s", end, start);
    put_values(DATA, REPORT);
    fputs("        *) if [[ ${COMP_WORDS[1]} == relabel && $word == -* ]]; then words=\"", stdout);
    put_options(RELABEL, RELABEL);
    fputs("\"\n           elif [[ ${COMP_WORDS[1]} == predict && $word == -* ]]; then words=\"", stdout);
    put_options(LATER, LATER);
    fputs("\"\n           elif [[ ${COMP_WORDS[1]} == report && $word == -* ]]; then words=\"", stdout);
    put_options(PAGE, PAGE);
    fputs("\"\n           elif [[ ${COMP_WORDS[1]} == summary && $word == -* ]]; then words=\"", stdout);
    put_options(TABLE, TABLE);
    fputs("\"\n           elif [[ ${COMP_WORDS[1]} == diagnose && $word == -* ]]; then words=\"", stdout);
    put_options(DIAGNOSE, DIAGNOSE);
    fputs("\"\n           elif [[ ${COMP_WORDS[1]} == loo && $word == -* ]]; then words=\"", stdout);
    put_options(LOO, LOO);
    fputs("\"\n           elif [[ ${COMP_WORDS[1]} == compare && $word == -* ]]; then words=\"", stdout);
    put_options(COMPARE, COMPARE);
    fputs("\"\n           elif [[ ${COMP_WORDS[1]} == watch && $word == -* ]]; then words=\"", stdout);
    put_options(WATCH, WATCH);
    fputs("\"\n           elif [[ $word == -* ]]; then words=\"", stdout);
    put_options(DATA, REPORT);
    fputs("\"\n           elif ((COMP_CWORD == 1)); then words=\"map prior predict simulate calibrate relabel rerun why", stdout);
#define COMMAND(name, function, arguments, help) fputs(" " name, stdout);
#include "../../runtime/host/after/commands.def"
    printf("\"; fi ;;\n    esac\n%s\n", end);
    puts("complete -o default -F _gmc gmc");
}

int main(int argc, char **argv)
{
    const char *what = argc == 2 ? argv[1] : "";
    if (strcmp(what, "gmc") == 0) manual_of_gmc();
    else if (strcmp(what, "program") == 0) manual_of_programs();
    else if (strcmp(what, "bash") == 0) completion();
    else return 2;
    return ferror(stdout) || fclose(stdout) != 0;
}
