// texts.c -- text files as they are opened: by name, from standard input or a pipe, unpacked by zlib.
//
//   data.json      a file          -              standard input, once
//   data.json.gz   unpacked        /dev/fd/63     a pipe, as the shell's <(...) makes it
//
// What comes without a name, or under another one, and begins as gzip's files do is unpacked, too.
#include "inputs.h"
#include "messages.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>
#include "../backends/library.h"

// ---- zlib, found when a file asks for it ----

typedef struct gzFile_s *Packed;

static struct {
    Packed (*open)(const char *, const char *);
    Packed (*open_number)(int, const char *);
    int (*read)(Packed, void *, unsigned);
    int (*close)(Packed);
    unsigned long (*crc)(unsigned long, const unsigned char *, unsigned);
} zlib;

static bool find_zlib(const char *path)
{
    static const char *const sonames[] = {"libz.so.1", "libz.so", NULL};
    char why[400];
    if (zlib.read) return true;
    void *library = gm_library_open(sonames, NULL, "GM_ZLIB", "", why, sizeof why);
    if (library && gm_library_symbol(library, "gzopen", &zlib.open) && gm_library_symbol(library, "gzdopen", &zlib.open_number) &&
        gm_library_symbol(library, "gzclose", &zlib.close) && gm_library_symbol(library, "crc32", &zlib.crc) &&
        gm_library_symbol(library, "gzread", &zlib.read))
        return true;
    gm_error("%s: is packed, and zlib is not found (apt-get install zlib1g, or gunzip the file)", path);
    return false;
}

// A packed file ends with the check sum and the length of what was packed last. What stands behind that zlib would leave out in silence.
static bool ends_packed(FILE *packed, FILE *text)
{
    unsigned char end[8], block[1 << 16];
    const int first = fseek(packed, 0, SEEK_SET) == 0 ? getc(packed) : EOF, second = getc(packed);
    if (first != 0x1f || second != 0x8b) return true;  // it is not packed, whatever its name says
    if (fseek(packed, -8, SEEK_END) != 0 || fread(end, 1, sizeof end, packed) != sizeof end) return false;
    unsigned long sum = 0, is = 0;
    long length = 0;
    for (int k = 3; k >= 0; k--) sum = sum << 8 | end[k];
    for (int k = 7; k >= 4; k--) length = length << 8 | end[k];
    if (fseek(text, 0, SEEK_END) != 0) return false;
    const long whole = ftell(text), more = (whole - length) & 0xffffffff;  // the length is that modulo 2^32
    if (more > whole || fseek(text, whole < 0x100000000 ? more : 0, SEEK_SET) != 0) return false;
    for (size_t n; (n = fread(block, 1, sizeof block, text)) > 0;) is = zlib.crc(is, block, (unsigned)n);
    return is == sum || whole >= 0x100000000;
}

// Unpacks the whole file, into one without a name, so that what is damaged is found before any of it is used.
static FILE *unpack(Packed from, FILE *packed, const char *path)
{
    char block[1 << 16];
    if (!from) {
        gm_error("%s: cannot be read: %s", path, strerror(errno ? errno : ENOMEM));
        return NULL;
    }
    FILE *file = tmpfile();
    bool written = file != NULL;
    int got = 0;
    while (written && (got = zlib.read(from, block, sizeof block)) > 0) written = fwrite(block, 1, (size_t)got, file) == (size_t)got;
    written = written && fflush(file) == 0;
    const int why = errno;
    const bool damaged = zlib.close(from) != 0 || got < 0;
    const bool ends = !written || damaged || !packed || ends_packed(packed, file);
    if (written) rewind(file);
    const int first = written ? getc(file) : EOF, second = first == 0x1f ? getc(file) : EOF;
    if (written && !damaged && ends && second != 0x8b) {
        rewind(file);
        return file;
    }
    if (second == 0x8b) gm_error("%s: is packed more than once: unpack it by gunzip first", path);
    else if (!ends) gm_error("%s: is packed, and something else stands behind what is packed", path);
    else if (written) gm_error("%s: is damaged: gunzip cannot unpack it", path);
    else gm_error("%s: cannot be unpacked: %s", path, strerror(why));
    if (file) fclose(file);
    return NULL;
}

static FILE *open_packed(const char *path)
{
    struct stat info;
    if (!find_zlib(path)) return NULL;
    FILE *packed = stat(path, &info) == 0 && S_ISREG(info.st_mode) ? fopen(path, "rb") : NULL;
    errno = 0;
    FILE *text = unpack(zlib.open(path, "rb"), packed, path);
    if (packed) fclose(packed);
    return text;
}

// Standard input, a pipe or a file whose name does not say that it is packed: its first byte does, which begins no text.
static FILE *unpacked(FILE *file, const char *path)
{
    char block[1 << 16];
    const int first = file ? getc(file) : EOF;
    if (first != EOF) ungetc(first, file);
    if (first != 0x1f || !find_zlib(path)) {
        if (file && first == 0x1f) fclose(file);
        return first == 0x1f ? NULL : file;
    }
    FILE *whole = tmpfile();
    bool written = whole != NULL;
    for (size_t n; written && (n = fread(block, 1, sizeof block, file)) > 0;) written = fwrite(block, 1, n, whole) == n;
    written = written && !ferror(file) && fflush(whole) == 0;
    errno = written ? 0 : errno;
    const int from = written ? dup(fileno(whole)) : -1;
    if (from >= 0) lseek(from, 0, SEEK_SET);
    FILE *text = unpack(from < 0 ? NULL : zlib.open_number(from, "rb"), whole, path);
    if (whole) fclose(whole);
    fclose(file);
    return text;
}

// ---- opening ----

static bool is_standard_input(const char *path) { return strcmp(path, "-") == 0; }

static FILE *open_standard_input(void)
{
    static bool read;
    if (read) gm_error("-: standard input can be read once");
    const int fd = read ? -1 : dup(STDIN_FILENO);
    if (!read && fd < 0) gm_error("-: standard input cannot be read: %s", strerror(errno));
    read = true;
    if (fd >= 0 && isatty(fd)) gm_note("-: data are read from the terminal, up to Ctrl-D");
    return fd < 0 ? NULL : fdopen(fd, "rb");
}

bool gm_text_ends(const char *text, const char *ending)
{
    const size_t n = strlen(text), m = strlen(ending);
    return n >= m && strcasecmp(text + n - m, ending) == 0;
}

static FILE *open_text(const char *path)
{
    struct stat info;
    if (is_standard_input(path)) return unpacked(open_standard_input(), path);
    if (stat(path, &info) != 0) {
        gm_error("%s: cannot be read: %s", path, strerror(errno));
        return NULL;
    }
    if (S_ISDIR(info.st_mode) || S_ISCHR(info.st_mode) || S_ISBLK(info.st_mode)) {
        gm_error("%s: is a %s", path, S_ISDIR(info.st_mode) ? "directory" : "device, not a file");
        return NULL;
    }
    if (gm_text_ends(path, ".gz")) return open_packed(path);
    if (S_ISFIFO(info.st_mode)) gm_note("%s: is a pipe: waiting for what is written into it", path);
    FILE *file = fopen(path, "rb");
    if (!file) gm_error("%s: cannot be read: %s", path, strerror(errno));
    return unpacked(file, path);
}

static struct {
    const char *path;
    FILE *file;
} begun;  // a text that has been looked into

FILE *gm_text_open(const char *path)
{
    if (!begun.file || strcmp(begun.path, path) != 0) return open_text(path);
    FILE *file = begun.file;
    begun.file = NULL;
    return file;
}

int gm_text_begins(const char *path)
{
    FILE *file = open_text(path);
    if (!file) return 0;
    const int first = getc(file);
    if (first == EOF) {
        gm_error("%s: is empty", path);
        fclose(file);
        return 0;
    }
    ungetc(first, file);
    begun.path = path;
    begun.file = file;
    return first;
}

// The length of the name without an ending of packed files.
static size_t without_packing(const char *path) { return strlen(path) - (gm_text_ends(path, ".gz") ? 3 : 0); }

bool gm_text_is(const char *path, const char *ending)
{
    const size_t n = without_packing(path), m = strlen(ending);
    return n >= m && strncasecmp(path + n - m, ending, m) == 0;
}

bool gm_text_without_name(const char *path)
{
    struct stat info;
    return is_standard_input(path) || (stat(path, &info) == 0 && S_ISFIFO(info.st_mode));
}
