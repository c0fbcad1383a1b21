// kernel.h -- kernels: what the lanes of a CPU or a GPU do, as trees; and the lists in which they are launched.
//
// Cut into sections headed by the file that owns them.
#ifndef GMC_KERNEL_H
#define GMC_KERNEL_H
#include "../graph/graph.h"

typedef enum {
#define NODE(id, name, help) NODE_##id,
#include "kernel.def"
} NodeKind;

typedef enum {
#define KERNEL_KIND(id, macro, help) KERNEL_##id,
#include "kernel.def"
} KernelKind;

typedef struct Node Node;
struct Node {
    NodeKind kind;
    Node    *next;
    union {
        struct { const char *lines; } text;      // NODE_TEXT
    };
};

typedef struct Line { const char *text; struct Line *next; } Line;

typedef struct Kernel {
    KernelKind     kind;
    const char    *name;
    const char    *row;          // KERNEL_ROW: the index of the row
    bool           context;      // KERNEL_FUNCTION: it is told of the kernel that calls it
    const char    *comment;      // lines above it: the conditional that it draws from
    Node          *body;
    struct Kernel *next;
} Kernel;

typedef struct Kernels { Kernel *first, **last; } Kernels;

#endif
