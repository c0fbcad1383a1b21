// blocks.h -- which variables are drawn jointly normal, alone or together.
#ifndef GMC_GRAPH_BLOCKS_H
#define GMC_GRAPH_BLOCKS_H
#include "../algebra/block_terms.h"

typedef enum { NOT_GAUSSIAN, ELEMENTWISE, CHAINED, DENSE } Form;  // CHAINED: neighbours are coupled; DENSE: drawn jointly

typedef struct Candidate {
    Var *var;
    Form form;
    int nbatch;
    bool taken;
    bool listed;  // its elements are named by numbers alone
    const char *because;
    BlockTerm *terms;  // of the variable alone, if it is jointly normal
    int set;           // the sparse block that it belongs to, whose update may replace others; 0: none
} Candidate;

// A block that grows by variables that are coupled with it. More than MAX_BLOCK are drawn in several blocks: the precision has a place for
// each pair.
enum { MAX_BLOCK = 60 };
// inside, near, by the number of a variable: it is in the block; it shares a factor with the block
typedef struct Growing {
    Var **var;
    int n;
    bool *inside, *near;
    bool full;
} Growing;

// of a variable alone, with the leading dimensions over which its elements are independent; its terms, or why it has none
Form form_of(Graph *g, Var *v, int *nbatch, bool *listed, const char **because, BlockTerm **of);
// w shares terms with a jointly normal block, and both together are jointly normal
bool coupled_with(Graph *g, Var *const *block, int n, const bool *inside, Var *w);
void put_inside(Graph *g, Growing *b, Var *v);                        // v is the last one of the block
void grow_from(Graph *g, Growing *b, Var *v);                         // begins a block
bool grow_by(Graph *g, Growing *b, Candidate *w);                     // if it is coupled with the block
const char *shared_reason(Graph *g, const Growing *b);                // why they are drawn together
Candidate *find_candidate(Candidate *list, int n, const char *name);  // NULL: there is none
#endif
