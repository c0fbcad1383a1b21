// works.c -- where works appeared that a text names by author and year: a list for its end.
//
//   before   ... slice sampled (Neal 2003) before v ...          after   // Works named: Neal 2003, Annals of Statistics 31.
//
// Most of the stdlib have the journal beside them. tests/emit/works.py finds those that are missing here.
#include <string.h>
#include "program.h"

static const struct Work {
    const char *named, *in;
} works[] = {
    {"Andrews and Mallows 1974", "Journal of the Royal Statistical Society B 36"},
    {"Betancourt 2017", "arXiv:1701.02434"},
    {"Bhattacharya, Chakraborty and Mallick 2016", "Biometrika 103"},
    {"Bhattacharya et al. 2016", "Biometrika 103"},
    {"Brent 1973", "Algorithms for Minimization without Derivatives"},
    {"Cowles 1996", "Statistics and Computing 6"},
    {"Diaconis and Sturmfels 1998", "Annals of Statistics 26"},
    {"Diebolt and Robert 1994", "Journal of the Royal Statistical Society B 56"},
    {"Gamerman 1997", "Statistics and Computing 7"},
    {"Gelman, Roberts and Gilks 1996", "Bayesian Statistics 5"},
    {"Geweke 1996", "Bayesian Statistics 5"},
    {"Ghahramani and Jordan 1997", "Machine Learning 29"},
    {"Gorinova et al. 2020", "International Conference on Machine Learning 37"},
    {"Hassan, Sarkka and Garcia-Fernandez 2021", "IEEE Transactions on Signal Processing 69"},
    {"Hoffman and Gelman 2014", "Journal of Machine Learning Research 15"},
    {"Hoffman, Radul and Sountsov 2021", "International Conference on Artificial Intelligence and Statistics 24"},
    {"Knorr-Held and Rue 2002", "Scandinavian Journal of Statistics 29"},
    {"Liu 1994", "Journal of the American Statistical Association 89"},
    {"Liu and Sabatti 2000", "Biometrika 87"},
    {"Liu and Wu 1999", "Journal of the American Statistical Association 94"},
    {"Murray, Adams and MacKay 2010", "International Conference on Artificial Intelligence and Statistics 13"},
    {"Neal 2003", "Annals of Statistics 31"},
    {"Neal 2011", "Handbook of Markov Chain Monte Carlo"},
    {"Nishimura and Suchard 2022", "Journal of the American Statistical Association 118"},
    {"Papaspiliopoulos et al. 2007", "Statistical Science 22"},
    {"Polson, Scott and Windle 2013", "Journal of the American Statistical Association 108"},
    {"Rue 2001", "Journal of the Royal Statistical Society B 63"},
    {"Rue and Held 2005", "Gaussian Markov Random Fields"},
    {"Scott 2002", "Journal of the American Statistical Association 97"},
    {"Yu and Meng 2011", "Journal of Computational and Graphical Statistics 20"},
    {"Zhang and Poole 1994", "Canadian Conference on Artificial Intelligence 10"},
};

// Named without where it appeared, which would follow a comma.
static bool is_named(const char *text, const char *work)
{
    for (const char *at = text; (at = strstr(at, work)); at += strlen(work))
        if (at[strlen(work)] != ',') return true;
    return false;
}

// With a comment of a program that goes on in the next line as if it did not.
static const char *unwrapped(Arena *a, const char *text)
{
    char *copy = arena_alloc(a, strlen(text) + 1), *to = copy;
    for (const char *c = text; *c; c++) {
        const size_t more = *c == '\n' && strncmp(c + 1, "//  ", 4) == 0 ? 3 + strspn(c + 3, " ") : 0;
        *to++ = more ? ' ' : *c;
        if (more) c += more - 1;
    }
    *to = '\0';
    return copy;
}

const char *works_text(Arena *a, const char *text)
{
    const char *all = NULL;
    text = unwrapped(a, text);
    for (size_t k = 0; k < sizeof works / sizeof *works; k++)
        if (is_named(text, works[k].named))
            all = arena_printf(a, "%s%s, %s", all ? arena_printf(a, "%s; ", all) : "Works named: ", works[k].named, works[k].in);
    return all ? arena_printf(a, "%s.", all) : "";
}

enum { MOST_COLUMNS = 140 };

void write_works(FILE *to, Arena *a, const char *const *text)
{
    const char *all = "";
    for (; *text; text++) all = arena_printf(a, "%s%s\n", all, *text);
    const char *first = "// ";
    for (all = works_text(a, all); *all; first = "//     ") {
        size_t n = strlen(all), room = MOST_COLUMNS - strlen(first);
        for (size_t i = room; n > room && i > 0; i--)
            if (all[i] == ' ') n = i;
        fprintf(to, "%s%.*s\n", first, (int)n, all);
        all += n + strspn(all + n, " ");
    }
}
