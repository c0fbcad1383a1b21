// wrap.c -- lines of code that are too long to read: they go on in the next line, indented, from a term or an argument on.
//
//   before   lp += -0.5 * (sum_a_squared - 2 * sum_a_b + ...) / square(*s->sigma) - d->N * log_sigma;
//   after    lp += -0.5 * (sum_a_squared - 2 * sum_a_b + ...) / square(*s->sigma)
//                    - d->N * log_sigma;
//
// A short loop is one line. A line ends where the fewest brackets are open, there where the operator binds least, there as late as there is
// room. Comments keep their lines, as do lines of the preprocessor, and what stands in quotes stays whole.
#include <stdbool.h>
#include <string.h>
#include "out.h"

enum { CODE_COLUMNS = 140, FEWEST = 44, MORE = 8, DEEP = 16, NOWHERE = 1000 };

// How little an operator that begins at c binds: 0, a line does not end before it, or after a comma.
static int rank_before(const char *c)
{
    static const struct {
        const char *word;
        int rank;
    } operators[] = {{" ? ", 2}, {" : ", 2}, {" || ", 3}, {" && ", 4}, {" + ", 6}, {" - ", 6}, {" * ", 7}, {" / ", 7}};
    for (size_t i = 0; i < sizeof operators / sizeof *operators; i++)
        if (strncmp(c, operators[i].word, strlen(operators[i].word)) == 0) return operators[i].rank;
    return 0;
}

// Past a string, a character or a comment within the line that begins at i; i itself if none does.
static size_t past_quoted(const char *c, size_t i, size_t n)
{
    if (c[i] == '/' && i + 1 < n && c[i + 1] == '*') {
        const char *end = strstr(c + i, "*/");
        return end ? (size_t)(end - c) + 2 : n;
    }
    if (c[i] != '"' && c[i] != '\'') return i;
    const char quote = c[i];
    for (i++; i < n && c[i] != quote; i++) i += c[i] == '\\';
    return i + 1;
}

// How long the code of a line is that a comment may end.
static size_t code_length(const char *c, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const size_t past = past_quoted(c, i, n);
        if (past > i) i = past - 1;
        else if (c[i] == '/' && i + 1 < n && c[i + 1] == '/') {
            while (i > 0 && c[i - 1] == ' ') i--;
            return i;
        }
    }
    return n;
}

// Where a line of that code ends; what follows begins the next one. 0: nowhere.
static size_t end_within(const char *c, size_t n, size_t room)
{
    int depth = 0, best = NOWHERE;
    size_t end = 0;
    for (size_t i = 0; i < n && i <= room; i++) {
        const size_t past = past_quoted(c, i, n);
        if (past > i) {
            i = past - 1;
            continue;
        }
        depth += (strchr("([{", c[i]) != NULL) - (strchr(")]}", c[i]) != NULL);
        const int rank = c[i] == ',' && i < room && i + 1 < n && c[i + 1] == ' ' ? 5 : rank_before(c + i);
        if (!rank || i < FEWEST || DEEP * depth + rank > best) continue;
        best = DEEP * depth + rank;
        end = c[i] == ',' ? i + 1 : i;
    }
    return end;
}

// Where the first of two statements ends that share the line. 0: it is one.
static size_t end_of_statement(const char *c, size_t n)
{
    int depth = 0;
    for (size_t i = 0; i + 2 < n; i++) {
        const size_t past = past_quoted(c, i, n);
        if (past > i) i = past - 1;
        else depth += (strchr("([{", c[i]) != NULL) - (strchr(")]}", c[i]) != NULL);
        if (depth == 0 && c[i] == ';') return i + 1;
    }
    return 0;
}

static void write_line(FILE *out, const char *c, size_t n)
{
    const size_t code = code_length(c, n), indent = strspn(c, " ");
    size_t from = code > CODE_COLUMNS ? end_of_statement(c, code) : 0, before = 0;  // before: columns that the next lines begin with
    if (from) {
        fprintf(out, "%.*s\n", (int)from, c);
        before = indent;
        from += strspn(c + from, " ");
    }
    while (code - from + before > CODE_COLUMNS) {
        const size_t end = end_within(c + from, code - from, CODE_COLUMNS - before);
        if (!end) break;
        fprintf(out, "%*s%.*s\n", (int)before, "", (int)end, c + from);
        from += end + strspn(c + from + end, " ");
        before = indent + MORE;
    }
    fprintf(out, "%*s%.*s\n", (int)before, "", (int)(n - from), c + from);
}

// A loop whose body is two short statements, the first of them a name for a value: with them on one line, if they fit there. Returns the
// length of its four lines; 0: it is none.
//
//   before   SUM_ALONG (i, n, &a) {            after   SUM_ALONG (i, n, &a) { const wide x = s->x[i]; a += x * x; }
//                const wide x = s->x[i];
//                a += x * x;
//            }
static size_t short_loop(const char *c, const char *end)
{
    const char *at[5] = {c};
    size_t indent[4], code = 0;
    for (int k = 0; k < 4; k++) {
        if (at[k] >= end) return 0;
        const size_t n = strcspn(at[k], "\n");
        indent[k] = strspn(at[k], " ");
        if (n <= indent[k] || code_length(at[k], n) != n) return 0;
        const char last = at[k][n - 1];
        if (last != (k == 0 ? '{' : k == 3 ? '}' : ';') || (k == 3 && n != indent[k] + 1) || (k < 3 && end_of_statement(at[k], n)))
            return 0;
        code += k ? n - indent[k] + 1 : n;
        at[k + 1] = at[k] + n + 1;
    }
    const bool names = strncmp(at[1] + indent[1], "const ", 6) == 0 && strncmp(at[2] + indent[2], "const ", 6) != 0;
    const bool loop =
        strncmp(c + indent[0], "SUM_ALONG", 9) == 0 || strncmp(c + indent[0], "ALONG", 5) == 0 || strncmp(c + indent[0], "LANES", 5) == 0;
    return names && loop && indent[1] == indent[0] + 4 && indent[2] == indent[1] && indent[3] == indent[0] && code <= CODE_COLUMNS
               ? (size_t)(at[4] - c)
               : 0;
}

static void write_short_loop(FILE *out, const char *c, size_t n)
{
    for (size_t i = 0; i + 1 < n; i++) {
        const bool end = c[i] == '\n';
        fputc(end ? ' ' : c[i], out);
        if (end) i += strspn(c + i + 1, " ");
    }
    fputc('\n', out);
}

void write_wrapped(FILE *out, const char *all, size_t n)
{
    bool directive = false;  // the line is one of the preprocessor, or goes on with one
    for (const char *const end = all + n; all < end;) {
        const size_t length = strcspn(all, "\n");
        directive |= *all == '#';
        const size_t loop = directive ? 0 : short_loop(all, end);
        if (loop) {
            write_short_loop(out, all, loop);
            all += loop;
            continue;
        }
        if (directive) fprintf(out, "%.*s\n", (int)length, all);
        else write_line(out, all, length);
        directive &= length > 0 && all[length - 1] == '\\';
        all += length + 1;
    }
}
