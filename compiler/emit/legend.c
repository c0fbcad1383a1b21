// legend.c -- what the words of the program mean that are neither C nor of the model: each where it first stands, and no others. Those of
// most kernels are at the top.
//
//   before   KERNEL(draw_theta) {              after   KERNEL(draw_theta) {  // KERNEL: a thread for each element and chain
//                EACH (j, d->J) {                          EACH (j, d->J) {  // EACH (j, n): j from 0 to n - 1, shared out among threads
//
// Where a line has no room, it stands above the block.
//
// Needs: the text of the parts, in which blocks end with an empty line; of tables in a file of their own, that of the program as well,
// which has explained its own.     Gives: the text with comment lines of at most 140 columns; or, for a page, a line for each word.
#include <ctype.h>
#include <string.h>
#include "program.h"

enum { MOST_WORDS = 11, WIDTH = 140, THROUGHOUT = 16, OF_TEAMS = 7 };

_Static_assert(NUTS_VECTORS_ROOM == 48 && NUTS_HEADER_ROOM == 256, "what is said of .room");

// No words: what the text is asked about besides.
#define EXPANDED    "sums of squares, expanded"
#define GROUP_MOVES "group moves"
#define IDENTITY    "ratios of group moves"
#define STREAMS     "streams"  // of a page: a program lists them

// What is in the language of kernels.h, in the order in which a reader meets it. A row is written where one of its words occurs; the first
// THROUGHOUT rows at the top of the program, in two paragraphs.
static const struct Meaning {
    const char *word[MOST_WORDS + 1];
    const char *text;
} meanings[] = {
    {{"wide"}, "`wide` is double."},
    {{"real"}, "`real` is double; on a GPU it is float unless a run has --precision double."},
    {{"solve"}, "`solve` is double; on a GPU it is float where a run has --precision single."},
    {{"s"},
     "KERNEL_ macros declare `d`, the data, `s`, the state of one chain, and `at`: seed, chain and sweep, of which its random numbers "
     "are functions. LAUNCH_ macros and their like declare `d`."},
    {{"s"}, "Subscripts count from 1 in comments, as in the model, and from 0 in the code. *s->x is a number, s->x[k] an element."},
    {{"square"}, "square(x) is x*x."},
    {{"cube"}, "cube(x) is x*x*x."},
    {{"KERNEL_TEAM", "KERNEL_PRODUCTS", "KERNEL_TERMS", "KERNEL_ON_REQUEST", "KERNEL_PRIOR"},
     "KERNEL_TEAM: for each chain a team of threads, its lanes, all of which go through the body; local variables are each lane's own."},
    {{"LANES", "ALONG", "SUM_ALONG", "MIN_ALONG", "MAX_ALONG", "LANES2", "ALONG2", "SUM_ALONG2", "SUM_OF", "SUM_OF2", "EACH_TERM"},
     "ALONG (j, n): j from 0 to n - 1, shared out among lanes, which then wait for each other, as one may read next what another "
     "wrote."},
    {{"LANES", "LANES2", "EACH_TERM"}, "LANES (j, n): as ALONG, but nobody waits: each lane has the same j in every loop of n."},
    {{"SUM_ALONG", "SUM_OF", "SUM_ALONG2", "SUM_OF2"},
     "SUM_ALONG (j, n, &a): as ALONG; then a has grown, in every lane, by the sum of what all lanes add to it."},
    {{"SUM_OF", "SUM_OF_FROM", "SUM_OF2"}, "SUM_OF (a, j, n) += x: declares a, the sum of x over j, the same in every lane."},
    {{"LANES2"}, "LANES2 (i, n, j, m): as LANES, over pairs i, j."},
    {{"ALONG2"}, "ALONG2 (i, n, j, m): as ALONG, over pairs i, j."},
    {{"SUM_ALONG2"}, "SUM_ALONG2 (i, n, j, m, &a): as SUM_ALONG, over pairs i, j."},
    {{"SUM_OF2"}, "SUM_OF2 (a, i, n, j, m): as SUM_OF, over pairs i, j."},
    {{"KERNEL"}, "KERNEL: a thread for each element and chain."},
    {{"KERNEL_SCALAR"}, "KERNEL_SCALAR: a thread for each chain."},
    {{"KERNEL_ONCE"}, "KERNEL_ONCE: a thread for each chain, with loops of its own."},
    {{"KERNEL_ON_REQUEST"}, "KERNEL_ON_REQUEST: as KERNEL_TEAM, for runs that request it."},
    {{"KERNEL_PRODUCTS"}, "KERNEL_PRODUCTS: as KERNEL_TEAM, with products of matrices."},
    {{"KERNEL_PRIOR"}, "KERNEL_PRIOR: as KERNEL_TEAM, for the log prior."},
    {{"KERNEL_FORWARD"}, "KERNEL_FORWARD: a thread for each chain, on the host, for draws without data."},
    {{"EACH"}, "EACH (j, n): j from 0 to n - 1, shared out among threads."},
    {{"EACH_MISSING"}, "EACH_MISSING (j, DATA_x): places j of x, row by row, without a value."},
    {{"MISSING_IN_TURN"}, "MISSING_IN_TURN (j, DATA_x): places j of x without a value, one after the other."},
    {{"SUM_OF_FROM", "SUM_ALONG_FROM", "ALONG_FROM", "LANES_FROM"}, "_FROM (j, first, n): n of them, from first on."},
    {{"MIN_ALONG"}, "MIN_ALONG (j, n, &a): as ALONG; then every lane has the smallest in its a."},
    {{"MAX_ALONG"}, "MAX_ALONG (j, n, &a): as ALONG; then every lane has the largest in its a."},
    {{"SUM_INTO1", "SUM_INTO2"},
     "SUM_INTO1 (i, first, n, sums, m): for n iterations i from first on, each of which adds to the m places of `sums`."},
    {{"PLACES"}, "PLACES (j, m): those of its places, 0 to m - 1, that are this lane's to add to."},
    {{"PLACES2"}, "PLACES2 (j, n, k, m): those of its n*m places, as pairs, that are this lane's to add to."},
    {{"SUM_KEYED1", "SUM_KEYED2", "SUM_KEYED3"},
     "SUM_KEYED1 (i, first, n, sums, m): rows i add to the place of `sums` that each picks; the place k is a lane's where OWN(k)."},
    {{"COUNT", "COUNT_ROWS", "ADD_TOTAL"},
     "COUNT(a, x) and ADD_TOTAL(q, a, x) add x to a, whichever lanes do; COUNT_ROWS (i, n), EACH_KEYED: over rows that are shared out."},
    {{"EACH_GROUP"}, "EACH_GROUP (k, groups, n), SUM_ROWS (i, k, first, rows, ...): groups k, and rows i of each, from rows[first[k]] on."},
    {{"EACH_ELEMENT", "SUM_CREW", "CREW_DRAW"},
     "EACH_ELEMENT (k, n, m): elements k, each by a crew of lanes, for m terms: SUM_CREW and CREW_DRAW are SUM_ALONG and TEAM_DRAW of "
     "it."},
    {{"COLOUR", "OF_COLOUR"},
     "COLOUR: elements of one remainder, which do not read each other, are drawn at once; OF_COLOUR(n, m): how many of n, by m."},
    {{"EACH_SIMPLEX"}, "EACH_SIMPLEX (k, m, n): each of m simplexes of size n."},
    {{"EACH_MATRIX"}, "EACH_MATRIX (k, m, n): each of m matrices of n by n."},
    {{"TEAM_ONCE", "TEAM_VALUE", "TEAM_FILL"}, "TEAM_ONCE, TEAM_VALUE(x): by one lane for all; TEAM_FILL (j, n): of arrays of the team."},
    {{"SCRATCH"}, "SCRATCH(n): n numbers, until RELEASE."},
    {{"TEAM_SCRATCH"}, "TEAM_SCRATCH(n): n numbers that lanes share, until TEAM_RELEASE."},
    {{"WARMING_UP"}, "WARMING_UP: in the sweeps of warm-up."},
    {{"WEIGHED_AT_ONCE"}, "WEIGHED_AT_ONCE: of so many values the weights are in memory at once."},
    {{"INTEGER"}, "INTEGER(x, name): x as an int, which 32 bits have to hold."},
    {{"ONE_LANE"}, "ONE_LANE: by one, while the others wait."},
    {{"TEAM_BARRIER"}, "TEAM_BARRIER: all lanes wait for each other."},
    {{"STORE"}, "STORE(a, x): one lane sets a to x."},
    {{"SET"}, "SET(a, x): one lane sets a to x; before and after, all wait."},
    {{"RESULT"}, "RESULT(x): x is what the kernel gives back to the host."},
    {{"DRAW"}, "DRAW(x, k, LAW) draws and stores x[k]."},
    {{"TEAM_DRAW"}, "TEAM_DRAW(x, k, LAW): one lane draws and stores x[k]."},
    {{"NORMAL"}, "NORMAL(mean, precision): precision is 1/sd^2."},
    {{"POWER_GAMMA"}, "POWER_GAMMA(a, shape, rate): x[k]^a ~ gamma(shape, rate)."},
    {{"BETA"}, "BETA(a, b): beta(a, b)."},
    {{"POWER_GIG"}, "POWER_GIG(a, order, psi, chi): x[k]^a ~ gig(order, psi, chi)."},
    {{"h"}, "h: a normal log density in x has two terms, -precision/2 x^2 + h x, so h = mean * precision."},
    {{"NORMAL_WITHIN"}, "NORMAL_WITHIN(h, precision, lower, upper): truncated to lie between these ends."},
    {{GROUP_MOVES},
     "A group move changes several unknowns at once by one number, drawn from its own law: by a factor, `scale_`, or an amount, "
     "`shift_`."},
    {{"slice_next"},
     "Slices (Neal 2003): slice_next(&sl) goes to a trial sl.x, for which the loop gives sl.log_density, until sl.x is drawn. It "
     "begins from a start, between ends, with a width; slice_restart: another start, in warm-up; slice_adapt: a better width."},
    {{"categorical_log_weights"}, "categorical_log_weights(&g, w, n): one of n, of probability proportional to exp(w)."},
    {{"weigh_values"}, "weigh_values: one of n values, of probability proportional to exp of its weight."},
    {{"NORMAL_DENSE", "NORMAL_DENSE_SCALED", "NORMAL_ARROW", "NORMAL_ARROW_SCALED", "NORMAL_SPARSE", "NORMAL_ROWS", "NORMAL_BAND"},
     "What NORMAL_ macros draw is J^-1 h + L'^-1 noise, of the precision J = L L' and the shift h from the kernel before; noise is "
     "standard normal. `joint_` has the values of the block, before and after."},
    {{"NORMAL_DENSE", "NORMAL_DENSE_SCALED"}, "NORMAL_DENSE(run, stream, name, n, J, h, x) draws x[n]."},
    {{"NORMAL_ROWS", "NORMAL_ROWS_SCALED"},
     "NORMAL_ROWS(run, stream, name, r, n, D, h, R, t, M, x): x[n], J = D + R'R, with R't added to h, by the system M of its r < n "
     "rows."},
    {{"NORMAL_DENSE_SCALED", "NORMAL_ROWS_SCALED", "NORMAL_SPARSE_SCALED", "NORMAL_ARROW_SCALED"},
     "_SCALED: after the scale move of the kernel's comment."},
    {{"NORMAL_ARROW", "NORMAL_ARROW_SCALED"},
     "NORMAL_ARROW(run, stream, name, n, J, h, x, m, D, E, g, u) draws x[n] and u[m]. Elements of u are independent given x: D has "
     "their precisions, g their shifts, E their entries of the precision with x."},
    {{"NORMAL_SPARSE", "NORMAL_SPARSE_SCALED"},
     "NORMAL_SPARSE(kernel, run, stream, name, k, h, x) draws x, joint normal number k, whose J and h the kernel lists."},
    {{"KERNEL_TERMS"}, "KERNEL_TERMS(name, k): a team's kernel that lists J and h of the joint normal with the number k."},
    {{"EACH_TERM"}, "EACH_TERM (i, n): as LANES, for entries of a sparse J."},
    {{"SPARSE_ADD"}, "SPARSE_ADD(j, k, x) adds x to J[j, k] and J[k, j]; where j = k that is 2 x."},
    {{"SPARSE_SHIFT"}, "SPARSE_SHIFT(h, k, x) adds x to h[k]."},
    {{"SPARSE_ROW"}, "SPARSE_ROW(root): J gains r r', of a row r of entries times root."},
    {{"SPARSE_PUT"}, "SPARSE_PUT(j, x): x is entry j of that row."},
    {{"SPARSE_PUT_ROW"}, "SPARSE_PUT_ROW(j, x, p): x[p] are its entries from j on."},
    {{"SPARSE_TARGET"}, "SPARSE_TARGET(t): h gains t times that row."},
    {{"LISTED"}, "LISTED(k): whether joint normal k is drawn from its rows, as they are listed."},
    {{"NOT_POSITIVE_DEFINITE"}, "NOT_POSITIVE_DEFINITE: the message that a precision has no Cholesky factor."},
    {{"ADD_TWICE"}, "ADD_TWICE(J, e, f, x) adds x at e and at f, an entry and its mirror image."},
    {{"ROW"}, "ROW(name, k): for row k."},
    {{"row_weight_and"}, "row_weight_and(w, t): weight w, and t is added to a total."},
    {{STREAMS}, "VAR_x: the number of x, which names its stream of random numbers."},
    {{"stream"}, "stream(at, VAR_x, k): the random numbers of x[k], by which normal_mean_sd(&g, ...) and its like draw."},
    {{"VERIFY"}, "VERIFY(x, ...) ends the run with a message if x is not finite."},
    {{"FAULT"}, "FAULT(x, k, message) ends the run."},
    {{"FAULT_AT"}, "FAULT_AT(x, k, n, message) ends the run; in the message # stands for each of the n subscripts k."},
    {{"UNLESS_KEPT"}, "UNLESS_KEPT(VAR_x, k): unless the run keeps x[k] as it is."},
    {{"GIVEN"}, "GIVEN(run, x): the run gives or keeps all of x."},
    {{"times_log"}, "times_log(n, l) is n*l, and 0 if n or l is, since 0*log(0) counts as 0."},
    {{"GM_PI"}, "GM_PI is pi."},
    {{"HALF_LOG_2PI"}, "HALF_LOG_2PI is log(2*pi)/2."},
    {{"CHECKING"}, "CHECKING: in sweeps, by --check or after the draws, that compare updates with the joint density."},
    {{"RATIO"},
     "RATIO(a, ...) adds a + ... to a sum of the update, to which draws add log q(new) - log q(old) of their law q; --check compares "
     "it with the rise of the log joint density."},
    {{IDENTITY}, "A group move begins at the identity, by `before_` kernels of the tables; then a + ... is -log(Jacobian * measure)."},
    {{"NO_RATIO"}, "NO_RATIO: none is checked."},
    {{"SAVE_OLD"}, "SAVE_OLD(x, n): for --check OLD has the n numbers of x as they were before the draw."},
    {{"NEW_WEIGHTS"}, "NEW_WEIGHTS(w, n): for --check CHECK_WEIGHT(k) has the n log weights."},
    {{"LAUNCH", "LAUNCH_TEAM", "LAUNCH_MISSING"},
     "LAUNCH_...(kernel, run, n) runs a kernel for all chains of `run`, with threads for n elements or terms."},
    {{"LAUNCH_ONCE"}, "LAUNCH_ONCE(kernel, run): with one thread for each chain."},
    {{"LAUNCH_ROWS_AND"}, "LAUNCH_ROWS_AND(kernel, run, n, p, X, b, sums, total): for n rows of X, with their products with b."},
    {{"LAUNCH_ROWS"}, "LAUNCH_ROWS(kernel, run, n, p, X, b, sums): for n rows of X, with their products with b."},
    {{"LAUNCH_ROWS_ONLY"}, "LAUNCH_ROWS_ONLY(kernel, run, n, p, X, b): for n rows of X, with their products with b."},
    {{"LAUNCH_SHARED"}, "LAUNCH_SHARED: once, for what all chains share."},
    {{"WEIGHTED_GRAM"}, "WEIGHTED_GRAM(run, n, p, X, w, out): X'W X, w the diagonal of W."},
    {{"ORDER_ROWS"},
     "ORDER_ROWS(run, n, groups, key, first, rows): the rows of group k, by their keys, are rows[first[k]] and those after it."},
    {{"GRAM"}, "GRAM(run, n, p, a, X, out): a X'X."},
    {{"ROW_SUMS"}, "ROW_SUMS(run, n, p, X, w, out): X'w."},
    {{"PATTERN"}, "PATTERN(kernel, run, name, k, n, ...): the places of entries in the precision of sparse joint normal k, found once."},
    {{"NUTS"},
     "NUTS(run, density, stream, memory, position, lp, gradient, report, ...) makes a transition of NUTS from `position`, in "
     "unconstrained coordinates, to its next draw. It calls `density` for lp and gradient at each point; `memory` to `report`, what "
     "the draws say of the trajectory, are fields of State."},
    {{"NUTS_STREAM"}, "NUTS_STREAM(x): of the stream of x the random numbers from 2^37 on; those before are of elements."},
    {{"NUTS"},
     ".coordinates: how many numbers the position has; .room: the memory, 48 numbers a coordinate (positions, momenta and gradients of "
     "points in a trajectory, and estimates of variances, the diagonal of the inverse mass matrix) and 256 besides (the step size, "
     "what it is adapted by, the place in a tree); .selection: the number of its selection; .accept: the mean acceptance that the step "
     "size aims at; .depth: doublings of a trajectory at most."},
    {{".alone"},
     ".alone: whether lp is known where a transition begins, since nothing else has changed what it reads; GM_UNLESS_MISSING: if no "
     "values are missing."},
    {{".marginal"}, ".marginal: auxiliaries are integrated out."},
    {{".jacobian"}, ".jacobian: computes the log Jacobian alone, with its gradient, for `map`, which finds the mode of the unknowns."},
    {{".standardised"}, ".standardised: the field that warm-up writes each effect's non-centring to."},
    {{"gm_of"}, "gm_of(x): the number of the field x of State."},
    {{"GM_FOR_DRAWS"}, "GM_FOR_DRAWS(f) makes gm_f, which calls f for every chain."},
    {{"GM_LOG_PRIOR", "GM_LOG_LIK", "GM_REPLICATES"}, "GM_LOG_PRIOR, GM_LOG_LIK, GM_REPLICATES: what a run may request."},
    {{"UPDATE_JOINT_WITHOUT_GRADIENTS", "UPDATE_JOINT"},
     "Those of UPDATE_JOINT_ macros end with k for that of joint normal k, with -k for one in its place."},
    {{"take_updates"}, "take_updates(run, u, n): n updates, from u on, without those that are not selected."},
    {{"SCALES"},
     "SCALES(run, density, stream, widths, proposed, selection, k, sweep, trial, {name, field, lower, upper, n}, ...) slice samples n "
     "elements of each by the density, what is positive by its logarithm, whose Jacobian it adds; `widths`: of slices; proposed: 1 "
     "where all is a proposal, accepted or not; k: the sparse joint normal. Early in warm-up a run sets in how many sweeps, by "
     "`sweep_of_` and `trial_of_`, multiply-adds of a sweep and of a trial, and by correlations of draws."},
    {{EXPANDED},
     "Here a sum of squares over rows, (a - b)^2 = a^2 - 2 a b + b^2, is made of `sum_` and `count_` of State, over data. Any constant "
     "may first be subtracted from a and b; a mean_ keeps rounding small."},
    {{"~s->position"},
     "Of State: position, its coordinates; gradient, the derivatives of lp, the log density, by them; log_density, lp; nuts, its "
     "memory; moves_, whose end is its name in the draws, what they report: acceptance, step size, depth, leapfrog steps, divergence, "
     "energy."},
    {{"standard_chain"},
     "standard_chain(c, m, s, scale, x, &slope, &by_m, &by_s): by_m = slope*(1 - (1 - c)*scale) and by_s = (slope*(x - m) + 1)*c/s, "
     "since dx/ds = (x - m)*c/s and d log(scale)/ds = c/s; then slope = scale*slope, that by q. It returns log(scale)."},
    {{"~lp = 0, slope_"}, "slope_x is the derivative of lp by x."},
    {{"current_"}, "current_x is x."},
    {{"to_line", "from_line"},
     "from_line(q, a, b) = x between a and b, to_line(x, a, b) = q = log((x - a)/(b - x)); line_slope, line_log_slope, line_bend: "
     "dx/dq, its log, the slope of this."},
    {{"simplex_to_line", "ordered_to_line", "covariance_to_line"},
     "NAME_to_line, _from_line, _chain: coordinates of a whole array, as constrained_line.h has them, and the chain rule."},
    {{"BY_UNKNOWNS"}, "BY_COORDINATES, BY_UNKNOWNS: lp with the log Jacobian, for NUTS, and without, for --check."},
    {{"GmField"},
     "Tables number fields of Data and State from 1; their columns are the structs of model.h: a field's .role is what it is to the "
     "draws (GM_SUM: not in them), .rank its number of subscripts, .extent_of the fields that are its extents, .where the line of its "
     "declaration."},
    {{".shared"}, ".shared: one for all chains."},
    {{"GmSelection"},
     "A selection is a set of unknowns for which warm-up tries both methods: .coupled is 1 where NUTS draws it even if a warm-up is "
     "too short for that; .latents, auxiliaries that NUTS leaves as they are; .machine, its memory."},
    {{".at_once"}, ".at_once: how many subscripts say what is drawn at once."},
    {{".derive_chain"}, ".derive_chain: as .derive, of one chain."},
    {{".joint_as_written"}, ".joint_as_written: log_joint has auxiliaries in runs by --check only."},
};

static bool in_word(char c) { return isalnum((unsigned char)c) || c == '_'; }

static bool in_comment(const char *body, const char *at)
{
    while (at > body && at[-1] != '\n')
        if (strncmp(--at, "//", 2) == 0) return true;
    return false;
}

// Whether it stands there as a whole word, outside of comments; one that ends with _ may go on. ~ begins a piece of text.
static bool occurs(const char *body, const char *word)
{
    if (*word == '~') return strstr(body, word + 1) != NULL;
    const size_t n = strlen(word);
    for (const char *at = body; (at = strstr(at, word)); at += n)
        if ((at == body || *word == '.' || (!in_word(at[-1]) && at[-1] != '.')) && (word[n - 1] == '_' || !in_word(at[n])) &&
            !in_comment(body, at))
            return true;
    return false;
}

// Where a line ends that has room for so much: at a space, if there is one near the end outside of parentheses and not before them.
static size_t end_of_line(const char *all, size_t room)
{
    enum { NEAR = 24 };
    size_t space = 0, good = 0;
    int depth = 0;
    for (size_t i = 0; i <= room; i++) {
        depth += (all[i] == '(') - (i > 0 && all[i - 1] == ')');
        if (all[i] != ' ') continue;
        space = i;
        if (depth == 0 && all[i + 1] != '(') good = i;
    }
    return good + NEAR > room ? good : space ? space : room;
}

// Sentences fill lines, as words of a paragraph do.
static void write_paragraph(FILE *to, const char *all)
{
    while (*all) {
        const size_t length = strlen(all), room = WIDTH - strlen("//   "), n = length > room ? end_of_line(all, room) : length;
        fprintf(to, "//   %.*s\n", (int)n, all);
        all += n + strspn(all + n, " ");
    }
}

// Sums over rows that are made of others.
static bool is_expanded(const char *body)
{
    return (strstr(body, "s->sum_") || strstr(body, "s->count_")) && (strstr(body, "SUM_OF (sum_") || strstr(body, " - 2 * "));
}

static bool is_used(const char *body, const struct Meaning *m)
{
    bool used = false;
    for (int i = 0; m->word[i]; i++)
        used |= strcmp(m->word[i], EXPANDED) == 0      ? is_expanded(body)
                : strcmp(m->word[i], STREAMS) == 0     ? occurs(body, "VAR_")
                : strcmp(m->word[i], GROUP_MOVES) == 0 ? strstr(body, "\n//   then ") != NULL
                : strcmp(m->word[i], IDENTITY) == 0    ? strstr(body, "// A group move") && occurs(body, "RATIO")
                                                       : occurs(body, m->word[i]);
    return used;
}

enum { ROWS = sizeof meanings / sizeof *meanings };

const char *legend_text(const Out *o, const char *body)
{
    const char *all = "";
    for (int k = 0; k < ROWS; k++)
        if (is_used(body, &meanings[k])) all = text(o, "%s%s%s", all, *all ? "\n" : "", meanings[k].text);
    return all;
}

// ---- where words first stand ----

enum { MOST_LINES = 400 };  // of a block; later ones have no notes

typedef struct Passage {
    const char *comment, *code;    // the comment above it ends where its code begins
    const char *line[MOST_LINES];  // of its code
    const char *note[MOST_LINES];  // behind the line; NULL: none
    int n;
    const char *above;  // what does not fit behind a line
} Passage;

static void split_block(Arena *a, Passage *b, const char *text)
{
    *b = (Passage){.comment = text, .code = text, .above = ""};
    while (strncmp(b->code, "//", 2) == 0) b->code += strcspn(b->code, "\n") + 1;
    for (const char *c = b->code; *c && b->n < MOST_LINES; c += strcspn(c, "\n") + 1)
        b->line[b->n++] = arena_printf(a, "%.*s", (int)strcspn(c, "\n"), c);
}

static bool is_on(const char *line, const struct Meaning *m)
{
    for (int i = 0; m->word[i]; i++)
        if (occurs(line, m->word[i])) return true;
    return false;
}

// Behind the line where the word first stands, if there is room; else above the block.
static void explain(Arena *a, Passage *b, const struct Meaning *m)
{
    int k = 0;
    while (k < b->n && !is_on(b->line[k], m)) k++;
    const char *line = k < b->n ? b->line[k] : NULL, *note = line && b->note[k] ? b->note[k] : "";
    const size_t n = line ? strlen(line) + strlen(note) + strlen(m->text) + strlen("  // ") + 1 : WIDTH + 1;
    if (n > WIDTH || *line == '#' || strstr(line, "//") || line[strlen(line) - 1] == '\\')
        b->above = arena_printf(a, "%s%s%s", b->above, *b->above ? " " : "", m->text);
    else b->note[k] = arena_printf(a, "%s%s%s", note, *note ? " " : "", m->text);
}

static void write_block(FILE *to, const Passage *b)
{
    const char *code = b->code;
    fwrite(b->comment, 1, (size_t)(code - b->comment), to);
    write_paragraph(to, b->above);
    for (int k = 0; k < b->n; k++) {
        const char *note = b->note[k];
        if (note) fprintf(to, "%s  // %.*s\n", b->line[k], (int)strlen(note) - (note[strlen(note) - 1] == '.'), note);
        else fprintf(to, "%s\n", b->line[k]);
        code += strlen(b->line[k]) + 1;
    }
    fputs(code, to);
}

void write_throughout(FILE *to, Arena *a, const char *body)
{
    const char *all = "";
    for (int k = 0; k < THROUGHOUT; k++) {
        if (k == OF_TEAMS) {
            write_paragraph(to, all);
            all = "";
        }
        if (is_used(body, &meanings[k])) all = arena_printf(a, "%s%s%s", all, *all ? " " : "", meanings[k].text);
    }
    write_paragraph(to, all);
}

void write_explained(FILE *to, Arena *a, const char *body, const char *above)
{
    bool said[ROWS] = {false};
    for (int k = 0; k < ROWS; k++)
        said[k] = strcmp(*meanings[k].word, STREAMS) == 0 || (!above && k < THROUGHOUT) || (above && is_used(above, &meanings[k]));
    while (*body) {
        const char *end = strstr(body, "\n\n");
        Passage b;
        const char *text = arena_printf(a, "%.*s", (int)(end ? (size_t)(end + 2 - body) : strlen(body)), body);
        split_block(a, &b, text);
        for (int k = 0; k < ROWS && *b.code && *b.code != '\n'; k++) {
            if (said[k] || !is_used(text, &meanings[k])) continue;
            said[k] = true;
            explain(a, &b, &meanings[k]);
        }
        write_block(to, &b);
        body += strlen(text);
    }
}
