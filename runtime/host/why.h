// why.h -- `fit why NAME --chain C --draw D`: one sweep again, with what each update gave an unknown.
#ifndef GM_WHY_H
#define GM_WHY_H
#include "chains.h"

typedef struct GmWhy {
    char *name, *label;  // "theta", "theta[3]", as the summary has it
    char *asked;         // the command line's
    bool by_number;      // it has no subscripts, or numbers
    int rank;
    long at[GM_MAX_RANK];  // subscripts from 1
    int field;             // of state
    long element;          // row-major
    char *path;            // of the file of draws, or NULL
    struct GmStored *file;  // open, or NULL
    int chain_in_file;      // from 0
    bool has_stored;
    double stored;  // its draw there
} GmWhy;

// Reads the name and the file of draws, from which settings of the run are taken that the command line does not give. false after a
// message.
bool gm_why_open(GmWhy *w, const GmModel *model, GmOptions *o);
void gm_why_close(GmWhy *w);
// Once sizes are known: which element it is. false after a message.
bool gm_why_find(GmWhy *w, const GmModel *model, const GmMemory *m, const GmData *data, const GmOptions *o);
// The sweep at which the run stands, update by update, printed. The status to exit with: GM_EXIT_CHECK if the file has another draw.
int gm_why(const GmWhy *w, const GmModel *model, GmRun *run, const GmMemory *m, const GmOptions *o);

#endif
