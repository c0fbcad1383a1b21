"""What emission calls of the floors below it, by the symbols of the objects: only questions about what stands in the program, and no
constructor.

    printing.py OBJECTS     OBJECTS: build/obj

compiler/emit prints: what it says is a member of the program that compiler/kernel has completed. So a function of graph or kernel that its
objects ask for is one of ALLOWED, and each of these is asked for; a function that makes, changes or searches an expression, or that costs
or decides, is none."""
import os
import sys

import knots

ALLOWED = {
    "compiler/front": {"function_rows"},                       # how a function is written
    "compiler/graph": {
        "ex_is_num", "ex_rank", "ex_dim",                      # what stands in an expression
        "ex_text", "ex_quote", "ex_formula", "factor_print", "statistic_text",   # in the notation of the model, for comments and messages
        "number_formula", "number_fraction",     # what a computed number comes from
        # which factor of a product may diverge where another is 0: the normal form (expr.h)
        "ex_absorbed",
        "ex_backward", "ex_turned",                            # which way round a difference is written
        "ex_positive",                                         # lgamma of what is positive has a form without branches
        "is_data_total", "has_data_total", "is_longest_slice",         # sizes that are sums or ends of data
    },
    "compiler/kernel": {
        "ex_is_integer", "is_real", "placement_of", "count_dims",      # types and extents
        "end_of_comment_line",                                 # a comment goes on in the next line
        "function_name", "field_of", "total_number",           # names and numbers of what the program has
        "keeps_rows_of_route", "reads_wild", "each_part",
        "scope_find", "scope_find_negative", "scope_know", "scope_leave", "scope_wrote",
        "scope_written",                                       # which expressions have a name where they stand
    },
}


def within(of, folder):
    return {file: found for file, found in sorted(of.items()) if file.startswith(folder + "/")}


def main():
    of = knots.symbols(sys.argv[1])
    asks = {os.path.basename(file) + ".c": asked for file, (_, asked) in within(of, "compiler/emit").items()}
    wrong, asked = 0, 0
    for folder, allowed in ALLOWED.items():
        has = set().union(*(defined for defined, _ in within(of, folder).values()))
        for name in sorted(allowed - has):
            print("%s has no %s" % (folder, name))
            wrong += 1
        for file, names in asks.items():
            for name in sorted(names & has - allowed):
                print("compiler/emit/%s calls %s of %s: emission prints, what it needs is for compiler/kernel to find (kernel/complete.c)"
                      % (file, name, folder))
                wrong += 1
        unused = allowed - set().union(*asks.values())
        for name in sorted(unused):
            print("no file of compiler/emit calls %s of %s any more: it leaves the list" % (name, folder))
        asked += len(allowed - unused)
        wrong += len(unused)
    print("%d files of compiler/emit, %d functions of floors below" % (len(asks), asked))
    return 1 if wrong else 0


sys.exit(main())
