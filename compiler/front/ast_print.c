// ast_print.c -- the tree as text, for --emit=ast, for messages and for tests.
//
// First every declaration with its kind, type and place in the file, then the blocks as source in a normal form: one statement a
// line, parentheses only where the grammar needs them.
#define _GNU_SOURCE
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "front.h"

static const char *const op_text[] = {"+", "-", "*", "/", "^", ".*", "./", "==", "!=", "<", "<=", ">", ">=", "&&", "||", "%", "-", "!"};

// How tightly a node binds; a child that binds less tightly than its place requires gets parentheses.
enum { COND = 1, OR, AND, EQUAL, ORDER, SUM, PRODUCT, SIGN, POWER, POSTFIX };

static int op_level(Op op)
{
    switch (op) {
    case OP_OR: return OR;
    case OP_AND: return AND;
    case OP_EQ:
    case OP_NE: return EQUAL;
    case OP_LT:
    case OP_LE:
    case OP_GT:
    case OP_GE: return ORDER;
    case OP_ADD:
    case OP_SUB: return SUM;
    case OP_MUL:
    case OP_DIV:
    case OP_MOD:
    case OP_ELT_MUL:
    case OP_ELT_DIV: return PRODUCT;
    case OP_NEG:
    case OP_NOT: return SIGN;
    case OP_POW: return POWER;
    }
    return POSTFIX;
}

static int level(const Ast *e)
{
    switch (e->kind) {
    case AST_COND:
    case AST_FUNCTION: return COND;
    case AST_BINARY:
    case AST_UNARY: return op_level(e->op);
    case AST_INT:
    case AST_REAL: return e->number < 0 ? SIGN : POSTFIX;
    case AST_STRING:
    case AST_NAME:
    case AST_INDEX:
    case AST_RANGE:
    case AST_ALL:
    case AST_CALL:
    case AST_TRANSPOSE:
    case AST_REDUCE:
    case AST_ARRAY: return POSTFIX;
    }
    return POSTFIX;
}

static void print(FILE *out, const Ast *e, int place);

static void print_list(FILE *out, Ast *const *kid, int n)
{
    for (int i = 0; i < n; i++) {
        if (i) fputs(", ", out);
        print(out, kid[i], COND);
    }
}

static void print_number(FILE *out, const Ast *e)
{
    char text[40];
    for (int digits = 6; digits <= 17; digits++) {  // the fewest that read back as the same number
        snprintf(text, sizeof text, "%.*g", digits, e->number);
        if (strtod(text, NULL) == e->number) break;
    }
    fputs(text, out);
    if (e->kind == AST_REAL && isfinite(e->number) && !strpbrk(text, ".e")) fputs(".0", out);
}

static void print_node(FILE *out, const Ast *e)
{
    switch (e->kind) {
    case AST_INT:
    case AST_REAL: print_number(out, e); break;
    case AST_STRING: fprintf(out, "\"%s\"", e->name); break;
    case AST_NAME: fputs(e->name, out); break;
    case AST_INDEX:
        print(out, e->kid[0], POSTFIX);
        fputc('[', out);
        for (int i = 1; i < e->nkids; i++) {
            if (i > 1) fputs(e->kid[i]->kind == AST_ALL ? "," : ", ", out);
            print(out, e->kid[i], COND);
        }
        fputc(']', out);
        break;
    case AST_RANGE:
        if (e->kid[0]) print(out, e->kid[0], COND);
        fputc(':', out);
        if (e->kid[1]) print(out, e->kid[1], COND);
        break;
    case AST_ALL: break;
    case AST_CALL:
        fprintf(out, "%s(", e->name);
        print_list(out, e->kid, e->nkids);
        fputc(')', out);
        break;
    case AST_BINARY: {
        int own = op_level(e->op), right = e->op == OP_POW;
        print(out, e->kid[0], own + right);
        bool tight = own >= PRODUCT && e->op != OP_ELT_MUL && e->op != OP_ELT_DIV;  // `2.*x` would read as `2.` and `*x`
        fprintf(out, tight ? "%s" : " %s ", op_text[e->op]);
        if (right && level(e->kid[1]) == SIGN) print(out, e->kid[1], SIGN);  // x^-2
        else print(out, e->kid[1], own + !right);
        break;
    }
    case AST_UNARY:
        fputs(op_text[e->op], out);
        if (level(e->kid[0]) == SIGN) fputc(' ', out);
        print(out, e->kid[0], SIGN);
        break;
    case AST_TRANSPOSE:
        print(out, e->kid[0], POSTFIX);
        fputc('\'', out);
        break;
    case AST_COND:
        print(out, e->kid[0], OR);
        fputs(" ? ", out);
        print(out, e->kid[1], COND);
        fputs(" : ", out);
        print(out, e->kid[2], COND);
        break;
    case AST_REDUCE:
        fprintf(out, "%s(%s in ", e->name, e->decl->name);
        print(out, e->kid[0], COND);
        fputc(':', out);
        print(out, e->kid[1], COND);
        fputs(", ", out);
        print(out, e->kid[2], COND);
        fputc(')', out);
        break;
    case AST_FUNCTION:
        fprintf(out, "(%s, %s) -> ", e->kid[0]->name, e->kid[1]->name);
        print(out, e->kid[2], COND);
        break;
    case AST_ARRAY:
        fputc('[', out);
        print_list(out, e->kid, e->nkids);
        fputc(']', out);
        break;
    }
}

static void print(FILE *out, const Ast *e, int place)
{
    bool wrap = level(e) < place;
    if (wrap) fputc('(', out);
    print_node(out, e);
    if (wrap) fputc(')', out);
}

void ast_print_expr(FILE *out, const Ast *e) { print(out, e, COND); }

void ast_print_type(FILE *out, const Type *t)
{
    fputs(t->base == BASE_INT ? "int" : "real", out);
    for (int i = 0; i < t->rank; i++) {
        fputs(i ? ", " : "[", out);
        if (t->dim[i]) print(out, t->dim[i], COND);
        else fputc('?', out);
    }
    if (t->rank) fputc(']', out);
}

const char *ast_text(Arena *a, const Ast *e)
{
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    if (!out) return "";
    print(out, e, COND);
    fclose(out);
    const char *copy = arena_strdup(a, text);
    free(text);
    return copy;
}

const char *ast_type_text(Arena *a, const Type *t)
{
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    if (!out) return "";
    ast_print_type(out, t);
    fclose(out);
    const char *copy = arena_strdup(a, text);
    free(text);
    return copy;
}

// ---- models ----

static void indent(FILE *out, int depth)
{
    for (int i = 0; i < depth; i++) fputs("  ", out);
}

static void print_bounds(FILE *out, const Decl *d)
{
    if (!d->lower && !d->upper) return;
    fputc('<', out);
    if (d->lower) {
        fputs("lower=", out);
        print(out, d->lower, SUM);
    }
    if (d->lower && d->upper) fputs(", ", out);
    if (d->upper) {
        fputs("upper=", out);
        print(out, d->upper, SUM);
    }
    fputc('>', out);
}

static void print_decl(FILE *out, const Decl *d)
{
    static const char *const kinds[] = {"data", "variable", "definition", "index", "parameter", "pattern"};
    static const char *const constraints[] = {
#define X(id, text) text,
        CONSTRAINTS(X)
#undef X
    };
    fprintf(out, "  %s %s: ", kinds[d->kind], d->name);
    ast_print_type(out, &d->type);
    print_bounds(out, d);
    if (d->constraint != CONSTRAINT_NONE) fprintf(out, " %s", constraints[d->constraint]);
    if (d->init) {
        fputs(" = ", out);
        print(out, d->init, COND);
    }
    fprintf(out, "    # line %d\n", span_line(d->span));
}

static void print_tilde(FILE *out, const Stmt *s)
{
    print(out, s->lhs, COND);
    fputs(" ~ ", out);
    if (s->weights) {
        fputs("mixture(", out);
        print(out, s->weights, COND);
        fputs(", ", out);
    }
    for (const Stmt *part = s; part; part = part == s ? s->more : part->next) {
        fprintf(out, "%s%s(", part == s ? "" : ", ", part->dist);
        print_list(out, part->args, part->nargs);
        fputc(')', out);
    }
    if (s->weights) fputc(')', out);
    if (s->truncated) {
        fputs(s->censored ? " C[" : " T[", out);
        if (s->lower) print(out, s->lower, COND);
        fputs(", ", out);
        if (s->upper) print(out, s->upper, COND);
        fputc(']', out);
    }
    fputs(";\n", out);
}

static void print_stmts(FILE *out, const Stmt *s, int depth);

static void print_body(FILE *out, const Stmt *s, int depth)
{
    if (!s) {
        fputs(" { }\n", out);
        return;
    }
    if (s->kind == STMT_BLOCK) {
        fputs(" {\n", out);
        print_stmts(out, s->body, depth + 1);
        indent(out, depth);
        fputs("}\n", out);
        return;
    }
    fputc('\n', out);
    print_stmts(out, s, depth + 1);
}

static void print_stmt(FILE *out, const Stmt *s, int depth)
{
    indent(out, depth);
    switch (s->kind) {
    case STMT_TILDE: print_tilde(out, s); break;
    case STMT_DEFINE:
        if (s->link) fprintf(out, "%s(", s->link);
        print(out, s->lhs, COND);
        fputs(s->link ? ") = " : " = ", out);
        print(out, s->rhs, COND);
        fputs(";\n", out);
        break;
    case STMT_DECLARE: fprintf(out, "declare %s;\n", s->decl->name); break;
    case STMT_TARGET:
        fputs("target += ", out);
        print(out, s->rhs, COND);
        fputs(";\n", out);
        break;
    case STMT_FOR:
        fprintf(out, "for (%s in ", s->index->name);
        print(out, s->index->lo, COND);
        fputc(':', out);
        print(out, s->index->hi, COND);
        fputs(")", out);
        print_body(out, s->body, depth);
        break;
    case STMT_IF:
        fputs("if (", out);
        print(out, s->cond, COND);
        fputs(")", out);
        print_body(out, s->body, depth);
        break;
    case STMT_BLOCK:
        fputs("{\n", out);
        print_stmts(out, s->body, depth + 1);
        indent(out, depth);
        fputs("}\n", out);
        break;
    }
}

static void print_stmts(FILE *out, const Stmt *s, int depth)
{
    for (; s; s = s->next) print_stmt(out, s, depth);
}

static void print_request(FILE *out, const Request *r)
{
    fputs(r->nnames > 1 ? "  (" : "  ", out);
    for (int i = 0; i < r->nnames; i++) fprintf(out, "%s%s", i ? ", " : "", r->names[i]);
    fprintf(out, "%s by %s", r->nnames > 1 ? ")" : "", r->by);
    for (int i = 0; i < r->nsettings; i++) {
        fprintf(out, "%s%s = ", i ? ", " : "(", r->setting[i].name);
        print(out, r->setting[i].value, COND);
    }
    if (r->nsettings) fputc(')', out);
    if (r->as) fprintf(out, " as %s", r->as);
    fputs(";\n", out);
}

void ast_print(FILE *out, const Model *m)
{
    static const char *const blocks[] = {"data", "let", "prior", "latent", "likelihood", "augment", "infer", "predict"};
    fprintf(out, "model %s\n\ndeclarations\n", m->name ? m->name : "(no name)");
    for (int i = 0; i < m->ndecls; i++) print_decl(out, m->decls[i]);
    for (const Block *b = m->blocks; b; b = b->next) {
        if (b->kind == BLOCK_DATA) continue;  // printed above
        fprintf(out, "\n%s {\n", blocks[b->kind]);
        print_stmts(out, b->body, 1);
        fputs("}\n", out);
    }
    for (BlockKind kind = BLOCK_AUGMENT; kind <= BLOCK_INFER; kind++) {
        bool open = false;
        for (const Request *r = m->requests; r; r = r->next) {
            if (r->block != kind) continue;
            if (!open) fprintf(out, "\n%s {\n", blocks[kind]);
            open = true;
            print_request(out, r);
        }
        if (open) fputs("}\n", out);
    }
}
