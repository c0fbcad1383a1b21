// legend.c -- what the words of the program mean that are neither C nor of the model: those that it has, and no others.
//
//   before   a body in which SUM_ALONG and STORE stand, and nowhere EACH
//   after    // SUM_ALONG (j, n, &a): ... STORE(a, x): a = x, by one lane.
//
// Needs: the text of the body, or of the kernels of a page; of tables in a file of their own, that of the program, which explains its own.
// Gives: comment lines of at most 140 columns, or paragraphs.
#include <ctype.h>
#include <string.h>
#include "program.h"

enum { MOST_WORDS = 10, WIDTH = 140 };

// No words: whether State has sums of data, and the sweep group moves.
#define SUMS        "sums of data"
#define GROUP_MOVES "group moves"

// What is in the language of kernels.h, in the order in which a reader meets it. A row is written where one of its words
// occurs, and a new paragraph begins at "\n".
static const struct Meaning {
    const char *word[MOST_WORDS + 1];
    const char *text;
} meanings[] = {
    {{"s"}, "In kernels `d` is the data, `s` the state of one chain, and `at` the place in the run, the key of its random numbers."},
    {{"s"}, "Subscripts count from 1 in comments, as in the model, and from 0 in the code. *s->x is a number, s->x[k] an element."},
    {{"real", "wide"}, "Types: `wide` is double; `real` and `solve` are, too, unless --precision makes them float on a GPU."},
    {{"KERNEL", "KERNEL_TEAM", "KERNEL_SCALAR"}, "\n"},
    {{"KERNEL"}, "KERNEL: a thread for each element and chain."},
    {{"KERNEL_SCALAR", "KERNEL_ONCE"}, "KERNEL_SCALAR, KERNEL_ONCE: one for each chain."},
    {{"KERNEL_TEAM", "LANES", "ALONG"}, "KERNEL_TEAM, KERNEL_ON_REQUEST, others: for each chain a team of threads, its lanes."},
    {{"KERNEL_PRIOR", "KERNEL_FORWARD"},
     "KERNEL_PRIOR is KERNEL_TEAM for the log prior, KERNEL_FORWARD is KERNEL_ONCE for draws without data, on the host."},
    {{"EACH"}, "EACH (j, n): j from 0 to n - 1, shared out among threads."},
    {{"EACH_MISSING"}, "EACH_MISSING (j, DATA_y): places j of y, row by row, without a value."},
    {{"MISSING_IN_TURN"}, "MISSING_IN_TURN (j, DATA_y): places j of y without a value, one after the other."},
    {{"LANES", "ALONG", "SUM_ALONG", "MIN_ALONG", "MAX_ALONG", "LANES2", "ALONG2", "SUM_ALONG2"},
     "LANES (j, n): j from 0 to n - 1, shared out among lanes. ALONG: so, then all lanes wait for each other."},
    {{"SUM_ALONG"}, "SUM_ALONG (j, n, &a): as ALONG, with all that lanes add to a; then every lane has this sum in its a."},
    {{"SUM_ALONG2", "ALONG2", "LANES2"}, "LANES2 (i, n, j, m), ALONG2, SUM_ALONG2 (i, n, j, m, &a): so, over pairs."},
    {{"MIN_ALONG", "MAX_ALONG"}, "MIN_ALONG (j, n, &a), MAX_ALONG: as ALONG; then every lane has the smallest, the largest in its a."},
    {{"PLACES", "PLACES2"},
     "SUM_INTO (i, first, n, ...): rows from first on, shared out; PLACES (j, m): the places of a sum that are a lane's."},
    {{"SUM_INTO1", "SUM_INTO2"}, "SUM_INTO1 (i, first, n, sums, m): iterations from first on, all of which add to the m places of `sums`."},
    {{"SUM_KEYED1", "SUM_KEYED2", "SUM_KEYED3"},
     "SUM_KEYED1 (i, first, n, sums, m): rows i add to the place of `sums` that each picks; the place k is a lane's where OWN(k)."},
    {{"COUNT", "COUNT_ROWS", "ADD_TOTAL"},
     "COUNT(a, x) and ADD_TOTAL(q, a, x) add x to a, whichever lanes do; COUNT_ROWS (i, n), EACH_KEYED: over rows that are shared out."},
    {{"EACH_GROUP"}, "EACH_GROUP (k, groups, n), SUM_ROWS (i, k, first, rows, ...): groups k, and rows i of each, from rows[first[k]] on."},
    {{"EACH_ELEMENT", "SUM_CREW", "CREW_DRAW"},
     "EACH_ELEMENT (k, n, m): elements k, each by a crew of lanes, for m terms: SUM_CREW and CREW_DRAW are SUM_ALONG and TEAM_DRAW of it."},
    {{"COLOUR", "OF_COLOUR"},
     "COLOUR: elements of one remainder, which do not read each other, are drawn at once; OF_COLOUR(n, m): how many of n, by m."},
    {{"EACH_SIMPLEX", "EACH_MATRIX"}, "EACH_SIMPLEX (k, m, n), EACH_MATRIX: each of m simplexes, or matrices, of size n."},
    {{"TEAM_ONCE", "TEAM_VALUE", "TEAM_FILL"}, "TEAM_ONCE, TEAM_VALUE(x): by one lane for all; TEAM_FILL (j, n): of arrays of the team."},
    {{"SCRATCH", "TEAM_SCRATCH"}, "SCRATCH(n): n numbers, until RELEASE."},
    {{"ONE_LANE"}, "ONE_LANE: by one, while the others wait."},
    {{"TEAM_BARRIER"}, "TEAM_BARRIER: all wait for each other."},
    {{"STORE"}, "STORE(a, x): one lane sets a to x."},
    {{"SET"}, "SET(a, x): one lane sets a to x; before and after, all wait."},
    {{"RESULT"}, "RESULT(x): x is what the kernel computes."},
    {{"DRAW", "TEAM_DRAW"}, "\n"},
    {{"DRAW", "TEAM_DRAW"}, "DRAW(y, k, LAW) draws y[k] from the law and stores it; TEAM_DRAW: by one lane."},
    {{"NORMAL"}, "Laws: NORMAL(mean, precision);"},
    {{"NORMAL_WITHIN"}, "NORMAL_WITHIN(h, precision, lower, upper), h = mean * precision;"},
    {{"POWER_GAMMA"}, "POWER_GAMMA(a, shape, rate), by which y[k]^a ~ gamma(shape, rate)."},
    {{"POWER_GIG"}, "POWER_GIG(a, order, psi, chi), by which y[k]^a is generalised inverse Gaussian."},
    {{"NORMAL", "NORMAL_WITHIN"}, "Of a normal law the log density has terms -precision/2 y^2 + h y: its conditional collects these two."},
    {{GROUP_MOVES},
     "A group move changes several unknowns at once by one number, drawn from its own law: by a factor, `scale_`, or an amount, `shift_`."},
    {{"slice_next"},
     "Slices (Neal 2003): slice_next(&sl) goes to a trial sl.x, for which the loop gives sl.log_density, until sl.x is drawn. It begins "
     "from a start, between ends, with a width; slice_restart: another start, in warm-up; slice_adapt: a better width."},
    {{"categorical_log_weights", "weigh_values"},
     "categorical_log_weights(&g, w, n), weigh_values: one of n, of probability proportional to exp(w)."},
    {{"NORMAL_DENSE", "NORMAL_DENSE_SCALED", "NORMAL_ARROW", "NORMAL_ARROW_SCALED", "NORMAL_SPARSE", "NORMAL_ROWS", "NORMAL_BAND"},
     "NORMAL_DENSE and its like, behind kernels that collect a precision J and a shift h, draw J^-1 h + L'^-1 noise: J = L L', noise "
     "standard normal. `joint_`: the values of the block, before and after."},
    {{"NORMAL_DENSE", "NORMAL_DENSE_SCALED"}, "NORMAL_DENSE(run, stream, name, n, J, h, x) draws x[n]."},
    {{"NORMAL_ROWS", "NORMAL_ROWS_SCALED"},
     "NORMAL_ROWS(run, stream, name, r, n, D, h, R, t, M, x): x[n], J = D + R'R, with R't added to h, by the system M of its r < n rows."},
    {{"NORMAL_DENSE_SCALED", "NORMAL_ROWS_SCALED", "NORMAL_SPARSE_SCALED", "NORMAL_ARROW_SCALED"},
     "_SCALED: after the scale move of the kernel's comment."},
    {{"NORMAL_ARROW", "NORMAL_ARROW_SCALED"},
     "NORMAL_ARROW(run, stream, name, n, J, h, x, m, D, E, k, u): x[n], and u[m] that are independent given x; these have precisions D, "
     "shifts k, and E couples them with x."},
    {{"NORMAL_SPARSE", "NORMAL_SPARSE_SCALED"},
     "NORMAL_SPARSE(kernel, run, stream, name, k, h, x) draws x, number k, whose J the kernel lists."},
    {{"KERNEL_TERMS"}, "KERNEL_TERMS(name, k): for the joint normal with the number k."},
    {{"EACH_TERM"}, "EACH_TERM (i, n): as LANES, for entries of a sparse J."},
    {{"SPARSE_ADD"}, "SPARSE_ADD(j, k, x) adds x to J[j, k] and J[k, j]."},
    {{"SPARSE_SHIFT"}, "SPARSE_SHIFT(h, k, x) adds x to h[k]."},
    {{"ADD_TWICE"}, "ADD_TWICE(J, e, f, x) adds x at e and at f, an entry and its mirror image."},
    {{"ROW"}, "ROW: for row k of a matrix, given its product with the weights; what is returned times the row is added to a sum."},
    {{"row_weight_and"}, "row_weight_and(w, t): the weight is w, and t is added to a total."},
    {{"GM_MODEL", "stream", "VERIFY", "times_log", "CHECKING", "FAULT_AT", "UNLESS_KEPT", "LAUNCH", "LAUNCH_TEAM", "LAUNCH_ONCE"}, "\n"},
    {{"stream"}, "stream(at, VAR_y, k): the random numbers of y[k]; normal_mean_sd(&g, ...) and its like draw by those of g."},
    {{"VERIFY", "FAULT"}, "VERIFY(x, ...) ends the run with a message if x is not finite; so does FAULT."},
    {{"FAULT_AT"}, "FAULT_AT(y, k, n, message) ends the run, too; in the message # stands for each of the n subscripts k."},
    {{"UNLESS_KEPT"},
     "UNLESS_KEPT(VAR_y, k): unless the run keeps y[k] as it is; GIVEN(run, y): the run gives or keeps all of y."},
    {{"times_log"}, "times_log(n, l) is n*l; 0 if n or l is, even where the other is infinite, since 0*log(0) counts as 0."},
    {{"CHECKING"}, "CHECKING: this is a run by --check."},
    {{"RATIO"},
     "RATIO(a, ...) is for such runs alone: a + ... is the log ratio, new value to old, that the joint density must have: of the law's "
     "density, after a group move less the logs of its Jacobian and measure."},
    {{"NO_RATIO"}, "NO_RATIO: none is checked."},
    {{"CHECK_WEIGHT"}, "CHECK_WEIGHT(k): log weight k."},
    {{"OLD"}, "OLD: what was there before the draw."},
    {{"LAUNCH", "LAUNCH_TEAM", "LAUNCH_ONCE", "LAUNCH_MISSING"},
     "LAUNCH and its like run a kernel for the chains of `run`, over so many terms."},
    {{"LAUNCH_ROWS_ONLY", "LAUNCH_ROWS_AND", "LAUNCH_ROWS"},
     "LAUNCH_ROWS_AND(kernel, run, n, p, X, b, sums, total), _ONLY: for rows of X, with their products with b."},
    {{"LAUNCH_SHARED"}, "LAUNCH_SHARED: once, what all chains share."},
    {{"GRAM", "ROW_SUMS"}, "GRAM(run, n, p, a, X, out): a X'X; ROW_SUMS(run, n, p, X, w, out): X'w."},
    {{"PATTERN"}, "PATTERN(kernel, run, name, k, n, ...): the places of entries in the precision of sparse joint normal k, found once."},
    {{"NUTS"},
     "NUTS(run, density, stream, memory, position, lp, gradient, report, ...) makes a transition of NUTS from `position`, in unconstrained "
     "coordinates, to its next draw, by numbers of `stream` that no other update has. It calls `density` for lp and gradient at each "
     "point; `memory` to `report` are fields of State."},
    {{"NUTS"},
     ".coordinates, .room: how many numbers position and memory have; .alone: lp is known where a transition begins if no Gibbs updates "
     "came between; GM_UNLESS_MISSING: and if no missing values are drawn; .marginal: auxiliaries are integrated out; .selection: the "
     "number of its selection; .accept: the mean acceptance that the step size aims at; .depth: doublings of a trajectory at most; "
     ".jacobian: computes the log Jacobian and its gradient; .standardised: the field that each effect's non-centring is written to."},
    {{"GM_FOR_DRAWS"}, "GM_FOR_DRAWS(f) makes gm_f, which calls f for every chain. GM_LOG_PRIOR and its like are what a run may request."},
    {{"UPDATE_JOINT_WITHOUT_GRADIENTS", "UPDATE_JOINT"},
     "UPDATE_JOINT and its like end with k where it is that of joint normal k, with -k where it is one in its place."},
    {{"take_updates"}, "take_updates(run, u, n): n updates, from u on."},
    {{"SCALES"},
     "SCALES(run, density, stream, widths, proposed, selection, k, sweep, trial, ...) slice samples by this density the scales listed: "
     "name, place, ends, number. proposed: for a proposal; k: the sparse joint normal; sweep, trial: their costs, which decide "
     "how often."},
    {{SUMS},
     "Sums over rows are expanded, (a - b)^2 = a^2 - 2 a b + b^2, into sums of data, `sum_` and `count_` of State, computed once."},
    {{"GM_HMC"},
     "Work arrays of NUTS: `position_`, the coordinates; `gradient_`, that of lp by them; `log_density_`, lp; `nuts_`, its memory; "
     "`moves_`, what the draws report of its trajectories."},
    {{"slope_"}, "`slope_x` is the derivative of lp by x, `current_x` is x."},
    {{"to_line", "from_line"},
     "from_line(q, a, b) = x between a and b, to_line(x, a, b) = q = log((x - a)/(b - x)); line_slope, line_log_slope, line_bend: "
     "dx/dq, its log, the slope of this."},
    {{"simplex_to_line", "ordered_to_line", "covariance_to_line"},
     "NAME_to_line, _from_line, _chain: coordinates of a whole array, as constrained_line.h has them, and the chain rule."},
    {{"BY_UNKNOWNS"}, "BY_COORDINATES, BY_UNKNOWNS: the places of lp with the log Jacobian and without it."},
    {{"GmField"}, "\n"},
    {{"GmField"},
     "Tables number fields of Data and State from 1; their columns are the structs of model.h: a field's .role is what it is to the draws, "
     ".extent_of the fields that are its extents, .where the line of its declaration."},
    {{"GmSelection"},
     "A selection is a set of unknowns for which warm-up tries both methods: .coupled, whether NUTS draws it where nothing is measured; "
     ".latents, auxiliaries that NUTS leaves as they are; .machine, its memory."},
    {{"GM_MODEL"}, "What else is in capitals is a macro of kernels.h, or of kernels_cpu.h for a CPU."},
};

static bool in_word(char c) { return isalnum((unsigned char)c) || c == '_'; }

static bool in_comment(const char *body, const char *at)
{
    while (at > body && at[-1] != '\n')
        if (strncmp(--at, "//", 2) == 0) return true;
    return false;
}

// Whether it stands there as a whole word, outside of comments; one that ends with _ may go on.
static bool occurs(const char *body, const char *word)
{
    const size_t n = strlen(word);
    for (const char *at = body; (at = strstr(at, word)); at += n)
        if ((at == body || !in_word(at[-1])) && (word[n - 1] == '_' || !in_word(at[n])) && !in_comment(body, at)) return true;
    return false;
}

// Sentences fill lines, as words of a paragraph do.
static void emit_paragraph(const Out *o, const char *all)
{
    while (*all) {
        size_t n = strlen(all), room = WIDTH - strlen("// ");
        for (size_t i = room; n > room && i > 0; i--)
            if (all[i] == ' ') n = i;
        line(o, "// %.*s", (int)n, all);
        all += n + strspn(all + n, " ");
    }
}

static bool has_sums(const Program *p)
{
    for (int i = 0; i < p->nstate; i++)
        if (p->state[i].var->sum) return true;
    return false;
}

static bool has_group_moves(const Program *p)
{
    for (int i = 0; i < p->nupdates; i++)
        if (p->updates[i].update->group_move) return true;
    return false;
}

static bool is_used(const Out *o, const char *body, const struct Meaning *m)
{
    bool used = false;
    for (int i = 0; m->word[i]; i++)
        used |= strcmp(m->word[i], SUMS) == 0          ? has_sums(o->program)
                : strcmp(m->word[i], GROUP_MOVES) == 0 ? has_group_moves(o->program)
                                                       : occurs(body, m->word[i]);
    return used;
}

const char *legend_text(const Out *o, const char *body, const char *above)
{
    const char *all = "";
    bool begun = false;  // the paragraph has a sentence
    for (size_t k = 0; k < sizeof meanings / sizeof *meanings; k++) {
        const bool ends = *meanings[k].text == '\n';
        if (!is_used(o, body, &meanings[k]) || (!ends && above && is_used(o, above, &meanings[k]))) continue;
        all = text(o, "%s%s%s", all, begun && !ends ? " " : "", ends && !begun ? "" : meanings[k].text);
        begun = !ends;
    }
    return all;
}

void emit_legend(const Out *o, const char *body, const char *above)
{
    for (const char *all = legend_text(o, body, above); *all; all += strspn(all, "\n")) {
        const int n = (int)strcspn(all, "\n");
        emit_paragraph(o, text(o, "%.*s", n, all));
        all += n;
    }
}
