// label_order.h -- labels of components (GmLabels): what runs over them, whether they may be permuted, and draws with components in order.
#ifndef GM_LABEL_ORDER_H
#define GM_LABEL_ORDER_H
#include "draws.h"

// The element of a field in which the label along dimension `along` is l; the first dimension that is permuted; whether it is the only one.
long gm_with_label(const GmShape *s, int along, long element, long l);
int gm_label_dimension(unsigned dims);
bool gm_one_dimension(unsigned dims);
// The parameters that run over these labels, as --by names them; those among the draws, if `column_of` is not NULL. The caller frees.
char *gm_label_parameters(const GmModel *model, const GmLabels *l, long *const *column_of);
// Whether two or more components have names that may be permuted, with these data.
bool gm_labels_exchangeable(const GmModel *model, const GmMemory *m, const GmData *data, const GmLabels *l);
// Whether draws of the state's field are about components that have no order, with these data.
bool gm_depends_on_labels(const GmModel *model, const GmMemory *m, const GmData *data, int field);
// R-hat and effective sizes of the columns of the summary that run over labels and are in trouble, once the components of each draw are in
// order; `judged` has those of all columns before. ordered: which these are.
void gm_labels_judge(const GmDraws *d, const GmModel *model, const GmMemory *m, const GmSummary *all, GmSummary *judged, bool *ordered);
// A line for the summary of a run whose components are summarised although permuting them changes nothing. ordered: of gm_labels_judge;
// slow: some quantities are in trouble all the same.
void gm_labels_note(FILE *to, const GmModel *model, const GmMemory *m, const GmDraws *d, const bool *ordered, bool slow);

#endif
