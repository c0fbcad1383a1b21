// image.c -- the half of a fit program that runs on GPUs.
//
//   emitted text + headers  ->  one text without #include  ->  NVRTC  ->  PTX, cubin  ->  an object with all three
//
// The text goes along so that the program can compile itself for another GPU or precision. Headers of the runtime have no
// #include "..." under a condition that differs between two places, which is what makes it right to put each in once.
#include "image.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "../../runtime/backends/cuda.h"
#include "../base/source.h"

typedef struct Flat {
    Arena *arena;
    const char *runtime;  // .../runtime/device, where headers are looked for
    FILE *out;
    const char **seen;
    int nseen, seen_size;
    bool failed;
} Flat;

static void flatten(Flat *f, const char *path, const char *shown);

// The file that #include "name" in `from` means: beside it, or in runtime/device.
static const char *find(Flat *f, const char *from, const char *name)
{
    const char *slash = strrchr(from, '/');
    char beside[PATH_MAX], real[PATH_MAX];
    snprintf(beside, sizeof beside, "%.*s%s", slash ? (int)(slash - from + 1) : 0, from, name);
    if (access(beside, R_OK) != 0) snprintf(beside, sizeof beside, "%s/device/%s", f->runtime, name);
    return realpath(beside, real) ? arena_printf(f->arena, "%s", real) : NULL;
}

static void include(Flat *f, const char *from, const char *name, const char *shown, int line)
{
    const char *path = find(f, from, name);
    if (!path) {
        fprintf(stderr, "gmc: %s:%d: cannot read \"%s\"\n", shown, line, name);
        f->failed = true;
        return;
    }
    for (int k = 0; k < f->nseen; k++)
        if (strcmp(f->seen[k], path) == 0) {
            fputc('\n', f->out);
            return;
        }
    ROOM(f->arena, f->seen, f->nseen, f->seen_size);
    f->seen[f->nseen++] = path;
    flatten(f, path, name);
    fprintf(f->out, "#line %d \"%s\"\n", line + 1, shown);
}

static void flatten(Flat *f, const char *path, const char *shown)
{
    Source *s = source_read(f->arena, path);
    if (!s) {
        fprintf(stderr, "gmc: cannot read %s: %s\n", path, strerror(errno));
        f->failed = true;
        return;
    }
    fprintf(f->out, "#line 1 \"%s\"\n", shown);
    int line = 0;
    for (const char *at = s->text, *end; *at && !f->failed; at = *end ? end + 1 : end) {
        end = at + strcspn(at, "\n");
        line++;
        char name[PATH_MAX];
        if (*at == '#' && sscanf(at, "# include \"%4095[^\"\n]\"", name) == 1) include(f, path, name, shown, line);
        else fprintf(f->out, "%.*s\n", (int)(end - at), at);
    }
}

char *image_text(Arena *a, const char *path, const char *runtime)
{
    char *text = NULL;
    size_t size = 0;
    Flat f = {.arena = a, .runtime = runtime, .out = open_memstream(&text, &size)};
    if (!f.out) return NULL;
    const char *slash = strrchr(path, '/');
    flatten(&f, path, slash ? slash + 1 : path);
    if (!f.failed) include(&f, path, "runtime_cuda.h", "runtime", 0);
    if (fclose(f.out) != 0 || f.failed) {
        free(text);
        return NULL;
    }
    char *kept = arena_printf(a, "%s", text);
    free(text);
    return kept;
}

static bool put_file(const char *stem, const char *suffix, const void *bytes, size_t size)
{
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s.%s", stem, suffix);
    FILE *f = fopen(path, "wb");
    const bool good = f && fwrite(bytes, 1, size, f) == size;
    if ((f && fclose(f) != 0) || !good) {
        fprintf(stderr, "gmc: cannot write %s: %s\n", path, strerror(errno));
        return false;
    }
    return true;
}

// A string of C, which is one of the assembler too.
static void put_quoted(FILE *to, const char *text)
{
    fputc('"', to);
    for (; *text; text++) {
        if (*text == '"' || *text == '\\') fputc('\\', to);
        fputc(*text, to);
    }
    fputc('"', to);
}

bool image_write(const char *stem, const char *runtime, const char *name, const char *text, GmPrecision precision, const char *arch,
                 const GmImage *image)
{
    char path[PATH_MAX];
    const bool with = image && image->ptx, cubin = with && image->cubin;
    if (!put_file(stem, "text", text, strlen(text))) return false;
    if (with && !put_file(stem, "ptx", image->ptx, image->ptx_size)) return false;
    if (cubin && !put_file(stem, "cubin", image->cubin, image->cubin_size)) return false;
    snprintf(path, sizeof path, "%s.c", stem);
    FILE *f = fopen(path, "w");
    if (!f) {
        fprintf(stderr, "gmc: cannot write %s: %s\n", path, strerror(errno));
        return false;
    }
    fprintf(f, "#include ");
    snprintf(path, sizeof path, "%s/host/device_code.h", runtime);
    put_quoted(f, path);
    fprintf(f, "\n#define BYTES(name, file) __asm__(\".section .rodata\\n.balign 64\\n\" #name \":\\n.incbin \\\"\" file \"\\\"\\n.byte "
               "0\\n.previous\\n\"); extern const char name[] __attribute__((visibility(\"hidden\")))\n");
    const char *const parts[] = {"text", with ? "ptx" : NULL, cubin ? "cubin" : NULL};
    for (int k = 0; k < 3; k++) {
        if (!parts[k]) continue;
        fprintf(f, "BYTES(gm_device_%s, ", parts[k]);
        const char *slash = strrchr(stem, '/');  // it is compiled in its folder
        snprintf(path, sizeof path, "%s.%s", slash ? slash + 1 : stem, parts[k]);
        put_quoted(f, path);
        fprintf(f, ");\n");
    }
    fprintf(f, "const GmDeviceCode gm_device_code = {.name = ");
    put_quoted(f, name);
    fprintf(f, ", .text = gm_device_text, .precision = %d", precision);
    if (with) fprintf(f, ", .arch = \"%s\", .ptx = gm_device_ptx, .ptx_size = %zu", arch, image->ptx_size);
    if (cubin) fprintf(f, ", .cubin = gm_device_cubin, .cubin_size = %zu", image->cubin_size);
    fprintf(f, "};\n");
    if (fclose(f) != 0) {
        fprintf(stderr, "gmc: cannot write %s.c: %s\n", stem, strerror(errno));
        return false;
    }
    return true;
}

const char *image_arch_found(Arena *a)
{
    const int capability = gm_cuda_capability(0);
    return capability ? arena_printf(a, "sm_%d", capability) : NULL;
}
