// html.c -- the page: the model, its diagram, the sweep, and for each unknown its terms, its conditional in steps, and the kernels beside
// it.
//
// It loads nothing and needs no script. Every name carries data-s, and one rule of style for each name marks all of it where one is under
// the pointer. A line of the model links to the updates it declares, a derivation and a kernel to the lines they come from.
#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include "pages.h"
#include "style.css.h"

typedef struct HtmlPage {
    FILE *out;
    const Pages *p;
} HtmlPage;

static void tag_text(FILE *out, const char *tag, const char *text)
{
    fprintf(out, "<%s>", tag);
    html_text(out, text);
    fprintf(out, "</%s>", tag);
}

// Words, in which `this` is code. No line ends within an option, `--method nuts`.
static void prose(FILE *out, const char *text)
{
    char piece[400];
    for (bool code = false; *text;) {
        size_t n = strcspn(text, "`");
        if (n >= sizeof piece) n = sizeof piece - 1;
        memcpy(piece, text, n);
        piece[n] = 0;
        if (code && strncmp(piece, "--", 2) == 0) {
            fputs("<span class=\"of\">", out);
            tag_text(out, "code", piece);
            fputs("</span>", out);
        } else if (code) tag_text(out, "code", piece);
        else html_text(out, piece);
        text += n;
        if (*text == '`') code = !code, text++;
    }
}

// ---- text with names in it: the model and kernels ----

static bool is_name(const Pages *p, const char *word, size_t n)
{
    for (int i = 0; i < p->g->nvars; i++) {
        const Var *v = p->g->vars[i];
        if (v->kind != VAR_ELEMENT && v->kind != VAR_SUM && strlen(v->name) == n && strncmp(v->name, word, n) == 0) return true;
    }
    return false;
}

// Of the language of the text.
static bool is_keyword(const char *word, size_t n)
{
    static const char *const words[] = {"model",  "data",  "let",    "prior",  "latent", "likelihood", "predict", "augment",
                                        "infer",  "for",   "in",     "if",     "else",   "int",        "real",    "vector",
                                        "matrix", "const", "return", "double", "while",  "simplex",    NULL};
    for (int i = 0; words[i]; i++)
        if (strlen(words[i]) == n && strncmp(words[i], word, n) == 0) return true;
    return false;
}

static void bytes(FILE *out, const char *text, size_t n)
{
    char piece[2] = {0};
    for (size_t i = 0; i < n; i++) {
        piece[0] = text[i];
        html_text(out, piece);
    }
}

static void marked_text(const HtmlPage *h, const char *text, size_t n, bool code);

// How long the word is that a sign is part of: -x, or 5e-07. 0: it is none.
static size_t signed_word(const char *text, size_t i, size_t n)
{
    size_t to = i;
    while (to < n && (isalnum((unsigned char)text[to]) || text[to] == '_' || text[to] == '.')) to++;
    const bool number = isdigit((unsigned char)text[i]) && to > i && text[to - 1] == 'e';
    if (!(number || to == i) || n - to < 2 || text[to] != '-' || !(isalnum((unsigned char)text[to + 1]) || text[to + 1] == '_')) return 0;
    if (to == i && i > 0 && text[i - 1] != ' ' && text[i - 1] != '(') return 0;
    to++;
    while (to < n && (isalnum((unsigned char)text[to]) || text[to] == '_')) to++;
    return to - i;
}

// No line of the page ends behind its sign.
static void write_signed(const HtmlPage *h, const char *text, size_t n, bool code)
{
    const char *sign = memchr(text, '-', n);
    const size_t before = (size_t)(sign - text) + 1;
    fputs("<span class=\"of\">", h->out);
    bytes(h->out, text, before);
    marked_text(h, text + before, n - before, code);
    fputs("</span>", h->out);
}

// Names are marked; places in the model, file.gm:12, are links.
static void marked_text(const HtmlPage *h, const char *text, size_t n, bool code)
{
    const size_t file = strlen(h->p->file);
    for (size_t i = 0; i < n;) {
        if (file && n - i > file && strncmp(text + i, h->p->file, file) == 0 && text[i + file] == ':' &&
            isdigit((unsigned char)text[i + file + 1])) {
            size_t to = i + file + 1;
            while (to < n && isdigit((unsigned char)text[to])) to++;
            fprintf(h->out, "<a href=\"#L%d\">", atoi(text + i + file + 1));
            bytes(h->out, text + i, to - i);
            fputs("</a>", h->out);
            i = to;
            continue;
        }
        const size_t word = signed_word(text, i, n);
        if (word) {
            write_signed(h, text + i, word, code);
            i += word;
            continue;
        }
        size_t to = i;
        while (to < n && (isalnum((unsigned char)text[to]) || text[to] == '_')) to++;
        if (to == i && n - i > 1 && text[i] == '-' && text[i + 1] == '>') {
            fputs("<span class=\"of\">-&gt;</span>", h->out);  // no line ends within it
            i += 2;
            continue;
        }
        if (to == i) {
            bytes(h->out, text + i++, 1);
            continue;
        }
        if (is_name(h->p, text + i, to - i)) {
            fputs("<span class=\"s\" data-s=\"", h->out);
            bytes(h->out, text + i, to - i);
            fputs("\">", h->out);
            bytes(h->out, text + i, to - i);
            fputs("</span>", h->out);
        } else if (code && is_keyword(text + i, to - i)) {
            fputs("<span class=\"word\">", h->out);
            bytes(h->out, text + i, to - i);
            fputs("</span>", h->out);
        } else bytes(h->out, text + i, to - i);
        i = to;
    }
}

// A line of a program: up to the comment, and the comment.
static void code_line(const HtmlPage *h, const char *text, size_t n, const char *comment)
{
    size_t code = 0;
    const size_t mark = strlen(comment);
    for (bool quoted = false; code < n; code++) {
        if (text[code] == '"') quoted = !quoted;
        if (!quoted && n - code >= mark && strncmp(text + code, comment, mark) == 0) break;
    }
    marked_text(h, text, code, true);
    if (code == n) return;
    fputs("<span class=\"comment\">", h->out);
    marked_text(h, text + code, n - code, false);
    fputs("</span>", h->out);
}

static const char *number_of(const Derivation *d) { return d->id + strlen("update-"); }

// Whether an update of a joint normal samples v with the joint normal integrated out.
static bool samples_before(const Update *u, const Var *v)
{
    const Scales *of = u->kind == UPDATE_GAUSSIAN ? u->gaussian.scales : NULL;
    for (int i = 0; of && i < of->n; i++)
        if (of->var[i] == v) return true;
    return false;
}

// Whether the update draws an unknown that is declared on the line, or what an augmentation has brought in there.
static bool draws_of_line(const Pages *p, const Derivation *d, int line)
{
    for (int i = 0; i < p->nunknowns; i++)
        for (int k = 0; k < p->unknown[i].n && p->unknown[i].line == line; k++)
            if (p->unknown[i].by[k] == d || samples_before(d->update, p->unknown[i].v)) return true;
    return d->line == line;
}

static void model(const HtmlPage *h)
{
    FILE *out = h->out;
    const Source *s = h->p->source;
    fputs("<section id=\"model\" aria-label=\"The model\"><h2>The model</h2><pre class=\"listing\">", out);
    for (int k = 0; s && k < s->nlines; k++) {
        int to = k + 1 < s->nlines ? s->line[k + 1] - 1 : (int)s->size;
        if (s->line[k] == to && k + 1 == s->nlines) break;  // behind the last end of a line
        if (to > s->line[k] && s->text[to - 1] == '\r') to--;
        fprintf(out, "<span class=\"row-of-code\" style=\"--in:%zu\" id=\"L%d\"><a class=\"no\" href=\"#L%d\">%d</a>",
                strspn(s->text + s->line[k], " "), k + 1, k + 1, k + 1);
        code_line(h, s->text + s->line[k], (size_t)(to - s->line[k]), "#");
        bool any = false;
        for (int i = 0; i < h->p->nderivations; i++) {
            const Derivation *d = &h->p->derivation[i];
            if (!draws_of_line(h->p, d, k + 1)) continue;
            fprintf(out, "%s<a href=\"#%s\" aria-label=\"update %s: ", any ? " " : "<span class=\"to\">&#8594;&#160;", d->id, number_of(d));
            html_text(out, d->subject);
            fprintf(out, "\">%s</a>", number_of(d));
            any = true;
        }
        fputs(any ? "</span></span>" : "</span>", out);
    }
    fputs("</pre><p class=\"note\">Numbers behind a line are the updates of the sweep that draw what the line declares, or what "
          "augmentations add to it.</p></section>\n",
          out);
}

// ---- formulas ----

static bool begins_part(const Formula *f)
{
    return f->kind == FORMULA_SIGN && (f->sign == SIGN_PLUS || f->sign == SIGN_MINUS || f->sign == SIGN_EQUALS || f->sign == SIGN_GROWS ||
                                       f->sign == SIGN_FOLLOWS || f->sign == SIGN_PROPORTIONAL || f->sign == SIGN_SPACE);
}

static void open_math(FILE *out) { fputs("<math displaystyle=\"true\"><mrow>", out); }
static void close_math(FILE *out) { fputs("</mrow></math>", out); }

static void part(FILE *out, bool *begun)
{
    if (*begun) {
        close_math(out);
        fputs("<wbr>", out);
        open_math(out);
    }
    *begun = true;
}

enum { LONG_SUM = 6, LONG = 16 };  // signs and terms of a sum whose terms are parts, too; signs, names and numbers of any formula

static int count_leaves(const Formula *f)
{
    int n = f->n == 0;
    for (int i = 0; i < f->n; i++) n += f->kid[i] ? count_leaves(f->kid[i]) : 0;
    return n;
}

static bool is_long_sum(const Formula *f)
{
    const Formula *body = f->kid[2];
    return body->kind == FORMULA_BIG
               ? is_long_sum(body)
               : body->kind == FORMULA_FENCED && body->open == '(' && body->kid[0]->kind == FORMULA_ROW && body->kid[0]->n >= LONG_SUM;
}

static void parts(FILE *out, const Formula *f, bool *begun);

static void fenced_parts(FILE *out, const Formula *f, bool *begun)
{
    fputs("<mo form=\"prefix\" stretchy=\"false\">(</mo>", out);
    *begun = true;
    parts(out, f->kid[0], begun);
    fputs("<mo form=\"postfix\" stretchy=\"false\">)</mo>", out);
}

static void parts(FILE *out, const Formula *f, bool *begun)
{
    if (f->kind == FORMULA_ROW) {
        for (int i = 0; i < f->n; i++) {
            const bool times = f->kid[i]->kind == FORMULA_SIGN && f->kid[i]->sign == SIGN_TIMES;
            if (times && i + 1 < f->n && count_leaves(f->kid[i + 1]) >= LONG) part(out, begun);  // before a long factor
            else parts(out, f->kid[i], begun);
        }
        return;
    }
    const bool is_long = (f->kind == FORMULA_BIG || (f->kind == FORMULA_FENCED && f->open == '(')) && count_leaves(f) >= LONG;
    if (f->kind == FORMULA_BIG && (is_long || is_long_sum(f))) {
        *begun = true;
        mathml_big(out, f);
        if (f->kid[2]->kind == FORMULA_FENCED && f->kid[2]->open == '(') fenced_parts(out, f->kid[2], begun);
        else parts(out, f->kid[2], begun);
        return;
    }
    if (is_long) {
        fenced_parts(out, f, begun);
        return;
    }
    if (begins_part(f)) part(out, begun);
    formula_mathml(out, f);
    *begun = true;
}

// One after the other the parts that signs begin: browsers end lines between them, not within.
static void formula(FILE *out, const Formula *f)
{
    bool begun = false;
    open_math(out);
    parts(out, f, &begun);
    close_math(out);
}

static void rows(FILE *out, const DerivationStep *s)
{
    for (int i = 0; i < s->n; i++) {
        const Row *r = &s->row[i];
        fputs("<div class=\"line-of-step\"><span class=\"from\">", out);
        if (r->line) fprintf(out, "<a href=\"#L%d\">line %d</a>", r->line, r->line);
        fputs("</span><div class=\"says\">", out);
        if (r->words) {
            fputs("<span class=\"soft\">", out);
            prose(out, r->words);
            fputs("</span> ", out);
        }
        if (r->formula) formula(out, r->formula);
        if (r->over) {
            fputs(" <span class=\"over\">for ", out);
            open_math(out);
            formula_mathml(out, r->over);
            close_math(out);
            fputs("</span>", out);
        }
        if (r->note) {
            fputs(" <span class=\"note\">", out);
            prose(out, r->note);
            fputs("</span>", out);
        }
        fputs("</div></div>\n", out);
    }
}

// ---- the sweep ----

// Which runs make it, behind its method.
static const char *when_made(const Update *u)
{
    if (u->when == WITH_GRADIENTS && (u->collapsed || u->over_sum))
        return u->collapsed ? ", auxiliaries integrated out, in place of those marked * where a trial in warm-up prefers it"
                            : ", discrete unknowns summed out, in place of those marked * where a trial in warm-up prefers it";
    if (u->when == WITH_GRADIENTS) return ", in place of those marked * where a trial in warm-up prefers it";
    if (u->joint < 0)
        return u->when == WITHOUT_GRADIENTS ? "&#160;*, where these are not drawn jointly" : ", where these are not drawn jointly";
    if (u->when == ON_CPU || u->when == ON_GPU) return u->when == ON_CPU ? ", on a CPU" : ", on a GPU";
    return u->when == WITHOUT_GRADIENTS ? "&#160;*" : "";
}

static const Formula *symbols(Notation *t, Var *const *var, int n)
{
    const Formula **list = NEW_N(t->arena, const Formula *, n + 1);
    for (int i = 0; i < n; i++) list[i] = formula_symbol(t, var[i]);
    return formula_list(t, n, list);
}

// p(sigma, tau | rest without alpha, beta): these are integrated out.
static const Formula *law_before(const Pages *p, const Update *u)
{
    Notation names = notation_new(p->g), *t = &names;
    const Scales *of = u->gaussian.scales;
    const Formula *given =
        ROW(t, symbols(t, of->var, of->n), formula_sign(t, SIGN_GIVEN), formula_prose(t, "rest without "), symbols(t, u->block, u->nblock));
    return ROW(t, formula_letter(t, "p"), formula_fenced(t, '(', given));
}

// What an update of a joint normal slice samples before it, with the joint normal integrated out. false: nothing.
static bool sweep_before(const HtmlPage *h, const Derivation *d)
{
    const Program *p = h->p->program;
    bool sampled = false;
    for (int i = 0; i < p->nupdates; i++) sampled |= p->updates[i].update == d->update && p->updates[i].collapsed;
    if (!sampled) return false;
    const Scales *of = d->update->gaussian.scales;
    FILE *out = h->out;
    fprintf(out, "<tr><td><a href=\"#%s\">%s</a></td><td>", d->id, number_of(d));
    for (int i = 0; i < of->n; i++) {
        if (i) fputs(", ", out);
        html_text(out, of->var[i]->name);
    }
    fputs("</td><td>", out);
    formula(out, law_before(h->p, d->update));
    fprintf(out,
            "</td><td>slice sampling<span class=\"note\">%s, before the joint normal and with it integrated out, on a CPU"
            "</span></td><td>",
            d->update->when == WITHOUT_GRADIENTS ? "&#160;*" : "");
    const int line = span_line(of->var[0]->span);
    fprintf(out, "<a href=\"#L%d\">%d</a></td></tr>\n", line, line);
    return true;
}

static void sweep(const HtmlPage *h)
{
    FILE *out = h->out;
    fputs("<section id=\"sweep\" aria-label=\"The sweep\"><h2>The sweep</h2><div "
          "class=\"wide\"><table><thead><tr><th>update</th><th>draws</th><th>law</th><th>method"
          "</th><th>line</th></tr></thead><tbody>\n",
          out);
    for (int i = 0; i < h->p->nderivations; i++) {
        const Derivation *d = &h->p->derivation[i];
        const bool then = sweep_before(h, d);
        fprintf(out, "<tr><td><a href=\"#%s\">%s</a>%s</td><td>", d->id, number_of(d), then ? ",&#160;then" : "");
        html_text(out, d->subject);
        fputs("</td><td>", out);
        if (d->law) formula(out, d->law);
        fputs("</td><td>", out);
        html_text(out, d->brief);
        fprintf(out, "<span class=\"note\">%s</span>", when_made(d->update));
        fprintf(out, d->line ? "</td><td><a href=\"#L%d\">%d</a></td></tr>\n" : "</td><td></td></tr>\n", d->line, d->line);
    }
    fputs("</tbody></table></div>", out);
    bool chosen = false;
    for (int i = 0; i < h->p->nderivations; i++) chosen |= h->p->derivation[i].update->when == WITH_GRADIENTS;
    if (chosen)
        fputs(
            "<p class=\"note\">Where NUTS is preferred, updates marked * are made after every k-th of its transitions: so seldom that they "
            "have a tenth of the work, or after each if trajectories diverge.</p>",
            out);
    fputs("</section>\n", out);
}

// ---- unknowns ----

static void fact(FILE *out, const char *head, const char *text)
{
    if (!text) return;
    fprintf(out, "<dt>%s</dt><dd>", head);
    prose(out, text);
    fputs("</dd>\n", out);
}

static void code(const HtmlPage *h, const ShownCode *k)
{
    char *text = code_text(h->p->program, k);
    fputs("<details class=\"kernel\" id=\"kernel-", h->out);
    html_text(h->out, k->name);
    fprintf(h->out, "\"%s><summary>%s <code>", k->open ? " open" : "", k->kernel ? "kernel" : "function");
    html_text(h->out, k->name);
    fputs("</code></summary><pre tabindex=\"0\">", h->out);
    for (size_t end = text ? strlen(text) : 0; end && text[end - 1] == '\n'; end--) text[end - 1] = 0;
    for (const char *c = text ? text : ""; *c;) {
        const size_t n = strcspn(c, "\n");
        fprintf(h->out, "<span class=\"l\" style=\"--in:%zu\">", strspn(c, " "));
        code_line(h, c, n, "//");
        fputs("\n</span>", h->out);
        c += n + (c[n] == '\n');
    }
    fputs("</pre></details>\n", h->out);
    free(text);
}

static void derivation(const HtmlPage *h, const Derivation *d)
{
    FILE *out = h->out;
    fprintf(out, "<article class=\"card\" id=\"%s\"><h3>Update %s: ", d->id, number_of(d));
    html_text(out, d->subject);
    fprintf(out,
            d->line ? " <a class=\"from\" href=\"#L%d\">line %d</a></h3><div class=\"beside\"><div>\n"
                    : "</h3><div class=\"beside\"><div>\n",
            d->line, d->line);
    for (int i = 0; i < d->nsteps; i++) {
        fprintf(out, "<h4>%s</h4><p>", d->step[i].title);
        prose(out, d->step[i].words);
        fputs("</p>\n", out);
        rows(out, &d->step[i]);
    }
    fputs("<dl>\n", out);
    fact(out, "method", d->method);
    fact(out, "why", d->because);
    fact(out, "draw", d->elements);
    for (int i = 0; i < d->nchanges; i++) fact(out, i ? "" : "what would change it", d->change[i]);
    fact(out, "cost in a sweep", d->cost);
    fputs("</dl></div><div class=\"kernels\">\n", out);
    for (int i = 0; i < d->ncode; i++) code(h, &d->code[i]);
    if (!d->ncode) fputs("<p class=\"note\">Kernels of another update serve this one.</p>\n", out);
    fputs("</div></div></article>\n", out);
}

static bool shown_before(const Pages *p, int i, const Derivation *d)
{
    for (int j = 0; j < i; j++)
        for (int m = 0; m < p->unknown[j].n; m++)
            if (p->unknown[j].by[m] == d) return true;
    return false;
}

static void unknown(const HtmlPage *h, int i)
{
    FILE *out = h->out;
    const Unknown *u = &h->p->unknown[i];
    const char *kind = u->v->kind == VAR_AUXILIARY ? "brought in by an augmentation"
                       : u->v->kind == VAR_DATA    ? "data, of which values may be missing"
                                                   : NULL;
    fputs("<section class=\"unknown\" id=\"unknown-", out);
    html_text(out, u->v->name);
    fputs("\"><h2><span class=\"s\" data-s=\"", out);
    html_text(out, u->v->name);
    fputs("\">", out);
    html_text(out, u->v->name);
    fputs("</span>", out);
    if (kind) fprintf(out, " <span class=\"note\">%s</span>", kind);
    fputs("</h2>\n", out);
    if (u->terms.n) {
        fputs("<h4>Terms of the log joint</h4>\n", out);
        rows(out, &u->terms);
    }
    for (int k = 0; k < u->n; k++)
        if (!shown_before(h->p, i, u->by[k])) derivation(h, u->by[k]);
    bool any = false;
    for (int k = 0; k < u->n; k++) {
        if (!shown_before(h->p, i, u->by[k])) continue;
        fprintf(out, "%s<a href=\"#%s\">update %s</a>", any ? ", " : "<p>Updated also by ", u->by[k]->id, number_of(u->by[k]));
        any = true;
    }
    fputs(any ? ".</p>\n" : "", out);
    for (int k = 0; k < h->p->nderivations; k++)
        if (samples_before(h->p->derivation[k].update, u->v))
            fprintf(out,
                    "<p>On a CPU, <a href=\"#%s\">update %s</a> slice samples it before its joint normal, which is integrated "
                    "out.</p>\n",
                    h->p->derivation[k].id, number_of(&h->p->derivation[k]));
    fputs("</section>\n", out);
}

// Updates of what is no unknown of the model: of series, of parts.
static void others(const HtmlPage *h)
{
    bool any = false;
    for (int k = 0; k < h->p->nderivations; k++) {
        const Derivation *d = &h->p->derivation[k];
        if (shown_before(h->p, h->p->nunknowns, d)) continue;
        if (!any) fputs("<section id=\"others\"><h2>Other updates</h2>\n", h->out);
        any = true;
        derivation(h, d);
    }
    if (any) fputs("</section>\n", h->out);
}

// What the kernels are written in, which the program explains where its words first stand.
static void words(const HtmlPage *h)
{
    const char *all = words_text(h->p);
    if (!*all) return;
    fputs("<section id=\"words\"><h2>Words of the kernels</h2><details><summary>what is neither C nor of the model</summary>\n", h->out);
    for (; *all; all += strspn(all, "\n")) {
        const int n = (int)strcspn(all, "\n");
        fputs("<p>", h->out);
        prose(h->out, arena_printf(h->p->arena, "%.*s", n, all));
        fputs("</p>\n", h->out);
        all += n;
    }
    fputs("<p>" OF_COSTS "</p>\n</details></section>\n", h->out);
}

// Where works appeared that the page names, and what stands in the program alone.
static void works(const HtmlPage *h)
{
    const char *all = named_works(h->p);
    if (*all) fprintf(h->out, "<p class=\"note\">%s</p>\n", all);
    fputs("<p class=\"note\">The program, which <code>gmc --emit=cuda</code> prints, has besides what makes a sweep of these updates, the "
          "log joint "
          "density, and what is computed of draws.</p>\n",
          h->out);
}

static void marks(const HtmlPage *h)
{
    for (int i = 0; i < h->p->g->nvars; i++) {
        const Var *v = h->p->g->vars[i];
        if (v->kind == VAR_ELEMENT || v->kind == VAR_SUM || v->hidden) continue;
        fprintf(h->out, ":root:has([data-s=\"%s\"]:hover) [data-s=\"%s\"]{background:var(--mark);--lit:var(--mark)}\n", v->name, v->name);
    }
}

// "7 unknowns, 3 auxiliaries, missing values of Y; 13 updates, of which a run makes those that suit its data, device and method."
static void count_unknowns(FILE *out, const Pages *p)
{
    int own = 0, brought_in = 0, imputed = 0;
    for (int i = 0; i < p->nunknowns; i++) {
        const VarKind kind = p->unknown[i].v->kind;
        if (kind == VAR_AUXILIARY) brought_in++;
        else if (kind == VAR_DATA || kind == VAR_LET) imputed++;
        else own++;
    }
    fprintf(out, "%d unknown%s", own, own == 1 ? "" : "s");
    if (brought_in) fprintf(out, ", %d %s", brought_in, brought_in == 1 ? "auxiliary" : "auxiliaries");
    if (imputed) fputs(imputed == 1 ? ", and what is missing of a response" : ", and what is missing of responses", out);
    fprintf(out, "; %d update%s", p->nderivations,
            p->nderivations == 1 ? "." : "s, of which a run makes those that suit its data, device and method.");
}

void page_html(FILE *out, const Pages *p)
{
    const HtmlPage page = {out, p}, *h = &page;
    const Diagram *d = diagram_new(p->g);
    fputs("<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta name=\"viewport\" content=\"width=device-width, "
          "initial-scale=1\">\n<title>",
          out);
    html_text(out, p->title);
    fputs(": how it is drawn from</title>\n<style>\n", out);
    fputs(style, out);
    marks(h);
    fputs("</style>\n</head>\n<body>\n<header><p class=\"soft\">", out);
    html_text(out, p->file);
    fputs(", compiled by gmc</p><h1>", out);
    html_text(out, p->title);
    fputs("</h1><p class=\"soft\">", out);
    count_unknowns(out, p);
    fputs(" Each conditional is derived from the log joint in steps; its kernels stand beside it.</p></header>\n<main>\n<div "
          "class=\"top\">\n",
          out);
    model(h);
    fputs("<section id=\"graph\" aria-label=\"Plate diagram\"><h2>The plate diagram</h2>\n", out);
    if (d->laid_out) {
        fputs("<figure aria-labelledby=\"diagram-title\">\n", out);
        diagram_svg(out, d, p->title);
        bool defined = false;
        for (int i = 0; i < d->nnodes; i++) defined |= d->node[i].kind == NODE_IS_COMPUTED;
        fprintf(out, "<figcaption>Grey: observed. %sWithout a frame: data.</figcaption></figure>\n", defined ? "Double: defined. " : "");
    } else
        fprintf(out, "<p>It has %d nodes, too many to be laid out here: <code>gmc --emit=dot</code> writes it for Graphviz.</p>\n",
                d->nnodes);
    fputs("</section>\n</div>\n", out);
    sweep(h);
    words(h);
    for (int i = 0; i < p->nunknowns; i++) unknown(h, i);
    others(h);
    if (p->computed.n) {
        fputs("<section id=\"computed\"><h2>Computed of each draw</h2>\n", out);
        rows(out, &p->computed);
        fputs("</section>\n", out);
    }
    works(h);
    fputs("</main>\n</body>\n</html>\n", out);
}
