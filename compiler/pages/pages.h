// pages.h -- what --explain writes about a model, in the form that is asked for.
#ifndef GMC_PAGES_H
#define GMC_PAGES_H
#include "derivation.h"
#include "diagram.h"

void page_html(FILE *out, const Pages *p);                       // one page that loads nothing
void page_latex(FILE *out, const Pages *p);                      // a document for pdflatex
void page_json(FILE *out, const Pages *p);                       // docs/pages.md has the schema
void page_info(FILE *out, const Pages *p, const char *version);  // what the program asks for and gives; the same page has the schema

// ---- kernel_text.c ----

char *code_text(const Program *p, const ShownCode *c);  // as in the program; the caller frees it
const char *words_text(const Pages *p);                 // what the words mean that kernels of the page have, a paragraph a line
const char *named_works(const Pages *p);                // where the works appeared that the page names; "": it names none
#define OF_COSTS                                                                                                             \
    "Costs are those of one chain in one sweep: operations of arithmetic, random draws, bytes of arrays, counted each time " \
    "they are read."
#endif
