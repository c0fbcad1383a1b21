// saved.c -- a file of numbers that a later run of the same program reads again: the same calls, in the same order, write it and read it.
//
//   gm_saved_bytes(s, x, n)      writing: n bytes of x go into the file      reading: n bytes of the file go to x
//
// It ends with a sum of all that stands before, so that a file that is not whole is known by it. A file that is written has its name when
// it is whole and on the disk: a program that is killed leaves the one before.
#define _GNU_SOURCE
#include "messages.h"
#include "output.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PAGE = 4096, BLOCK = 1 << 16 };
static const char MARK[] = "gmc saved 1\n";

struct GmSaved {
    FILE *file;
    bool reads, failed;
    uint64_t sum;  // of the blocks so far
    char *block;   // of a file that is written: what is not yet there
    size_t used;
    long left;          // of a file that is read: bytes
    char *path, *part;  // part: under which it is written
};

uint64_t gm_mix(uint64_t sum, const void *bytes, size_t n)
{
    const unsigned char *at = bytes;
    for (; n >= sizeof(uint64_t); n -= sizeof(uint64_t), at += sizeof(uint64_t)) {
        uint64_t word;
        memcpy(&word, at, sizeof word);
        sum = (sum ^ word) * 0x9E3779B97F4A7C15u;  // odd: a bijection
        sum ^= sum >> 32;
    }
    for (; n > 0; n--, at++) {
        sum = (sum ^ *at) * 0x9E3779B97F4A7C15u;
        sum ^= sum >> 32;
    }
    return sum;
}

bool gm_mix_file(const char *path, uint64_t *sum)
{
    FILE *from = fopen(path, "rb");
    char *text = gm_alloc(BLOCK, 1);
    for (size_t n; from && (n = fread(text, 1, BLOCK, from)) > 0;) *sum = gm_mix(*sum, text, n);
    const bool good = from && !ferror(from);
    if (from) fclose(from);
    free(text);
    return good;
}

bool gm_saved_reads(const GmSaved *s) { return s->reads; }

static void put_block(GmSaved *s)
{
    s->sum = gm_mix(s->sum, s->block, s->used);
    s->failed |= fwrite(s->block, 1, s->used, s->file) != s->used;
    s->used = 0;
}

void gm_saved_bytes(GmSaved *s, void *bytes, size_t n)
{
    if (s->reads) {
        s->failed |= n > (size_t)s->left || fread(bytes, 1, n, s->file) != n;
        if (s->failed) memset(bytes, 0, n);
        else s->left -= (long)n;
        return;
    }
    for (const char *from = bytes; n > 0 && !s->failed;) {
        const size_t room = BLOCK - s->used, some = n < room ? n : room;
        memcpy(s->block + s->used, from, some);
        s->used += some;
        from += some;
        n -= some;
        if (s->used == BLOCK) put_block(s);
    }
}

char *gm_saved_text(GmSaved *s, const char *text)
{
    uint32_t n = text ? (uint32_t)strlen(text) + 1 : 0;
    gm_saved_bytes(s, &n, sizeof n);
    if (s->failed && s->reads) n = 0;
    if (n == 0) return NULL;
    char *copy = s->reads ? gm_alloc(n, 1) : gm_copy_text(text);
    gm_saved_bytes(s, copy, n);
    copy[n - 1] = 0;
    if (s->reads) return copy;
    free(copy);
    return NULL;
}

// Of memory of which the system gives pages when they are written, only those are saved that are not zeros.
void gm_saved_pages(GmSaved *s, void *bytes, size_t n)
{
    static const char zeros[PAGE];
    for (size_t at = 0; at < n; at += PAGE) {
        char *page = (char *)bytes + at;
        const size_t some = n - at < PAGE ? n - at : PAGE;
        bool any = !s->reads && memcmp(page, zeros, some) != 0;
        gm_saved_bytes(s, &any, sizeof any);
        if (any) gm_saved_bytes(s, page, some);
        else if (s->reads && memcmp(page, zeros, some) != 0) memset(page, 0, some);
    }
}

GmSaved *gm_saved_create(const char *path)
{
    GmSaved *s = gm_alloc(1, sizeof *s);
    *s = (GmSaved){.path = gm_file_real(path), .block = gm_alloc(BLOCK, 1)};
    s->part = gm_format("%s.part", s->path);
    s->file = fopen(s->part, "wb");
    s->failed = !s->file;
    char mark[sizeof MARK];
    memcpy(mark, MARK, sizeof mark);
    gm_saved_bytes(s, mark, sizeof mark);
    return s;
}

// Whether the sum at the end is that of what stands before it, and how much that is.
static bool is_whole(FILE *file, long *size)
{
    uint64_t sum = 0, there = 0;
    char *text = gm_alloc(BLOCK, 1);
    bool good = fseek(file, 0, SEEK_END) == 0 && (*size = ftell(file) - (long)sizeof sum) >= (long)sizeof MARK;
    rewind(file);
    for (long left = *size; good && left > 0;) {
        const size_t n = left < BLOCK ? (size_t)left : BLOCK;
        good = fread(text, 1, n, file) == n;
        sum = gm_mix(sum, text, n);
        left -= (long)n;
    }
    good = good && fread(&there, 1, sizeof there, file) == sizeof there && there == sum;
    rewind(file);
    free(text);
    return good;
}

GmSaved *gm_saved_open(const char *path)
{
    FILE *file = fopen(path, "rb");
    if (!file) return NULL;
    GmSaved *s = gm_alloc(1, sizeof *s);
    *s = (GmSaved){.path = gm_copy_text(path), .reads = true, .file = file};
    s->failed = !is_whole(file, &s->left);
    char mark[sizeof MARK];
    gm_saved_bytes(s, mark, sizeof mark);
    s->failed |= memcmp(mark, MARK, sizeof mark) != 0;
    return s;
}

bool gm_saved_good(const GmSaved *s) { return !s->failed; }

// The folder of a file: what has been renamed there is on the disk.
static void settle_folder(const char *path)
{
    char *folder = gm_copy_text(path), *slash = strrchr(folder, '/');
    if (slash) slash[slash == folder] = 0;
    const int d = open(slash ? folder : ".", O_RDONLY | O_CLOEXEC);
    if (d >= 0) {
        fsync(d);
        close(d);
    }
    free(folder);
}

bool gm_saved_close(GmSaved *s)
{
    bool good = !s->failed && (!s->reads || s->left == 0);
    if (!s->reads && s->file) {
        if (good) put_block(s);
        errno = 0;
        good = good && !s->failed && fwrite(&s->sum, 1, sizeof s->sum, s->file) == sizeof s->sum && fflush(s->file) == 0 &&
               fsync(fileno(s->file)) == 0;
    }
    const int error = errno;
    if (s->file) good = fclose(s->file) == 0 && good;
    errno = error;
    if (!s->reads) {
        good = good && rename(s->part, s->path) == 0;
        if (good) settle_folder(s->path);
        else {
            gm_error("%s: cannot be written: %s", s->path, strerror(errno ? errno : EIO));
            unlink(s->part);
        }
    }
    free(s->block);
    free(s->path);
    free(s->part);
    free(s);
    return good;
}
