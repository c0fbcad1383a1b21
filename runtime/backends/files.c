// files.c -- files that are written: whole or not there at all, and never in the place of what is read.
#include "files.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

static void *room(void *block, size_t bytes)
{
    void *grown = realloc(block, bytes);
    if (!grown) {
        fputs("out of memory\n", stderr);
        exit(4);
    }
    return grown;
}

static char *copy(const char *text) { return strcpy(room(NULL, strlen(text) + 1), text); }

// ---- what is read, or has been written ----

typedef struct FilePlace {
    dev_t device;
    ino_t inode;
    bool written;
} FilePlace;

static FilePlace *place;
static size_t n_places;

static void remember(const char *path, bool written)
{
    struct stat there;
    if (stat(path, &there) != 0) return;  // whoever opens it says so
    place = room(place, (n_places + 1) * sizeof *place);
    place[n_places++] = (FilePlace){there.st_dev, there.st_ino, written};
}

void gm_file_is_read(const char *path) { remember(path, false); }

// ---- names at which nothing was when the program began ----

static char **absent;
static size_t n_absent;

void gm_file_was_absent(const char *path)
{
    absent = room(absent, (n_absent + 1) * sizeof *absent);
    absent[n_absent++] = copy(path);
}

static bool was_absent(const char *path)
{
    for (size_t k = 0; k < n_absent; k++)
        if (strcmp(absent[k], path) == 0) return true;
    return false;
}

const char *gm_file_refused(const char *path)
{
    struct stat there;
    if (stat(path, &there) != 0) {
        if (errno != ENOENT) return strerror(errno);
        return lstat(path, &there) == 0 ? "it is a symbolic link that leads nowhere" : NULL;
    }
    if (S_ISDIR(there.st_mode)) return "it is a folder";
    if (!S_ISREG(there.st_mode)) return "it is a device, a pipe or a socket, which is not replaced by a file";
    for (size_t k = 0; k < n_places; k++)
        if (place[k].device == there.st_dev && place[k].inode == there.st_ino)
            return place[k].written ? "it is written already: give another name" : "it is a file that is read: give another name";
    return faccessat(AT_FDCWD, path, W_OK, AT_EACCESS) == 0 ? NULL : strerror(errno);
}

// ---- temporary files, which signals remove ----

// A handler may come at any time: what it reads is changed by single assignments, and nothing of it is given back.
typedef struct Temporary {
    char *volatile path;
    struct Temporary *next;
} Temporary;

static Temporary *volatile temporary;

void gm_file_temporary(const char *path)
{
    Temporary *t = room(NULL, sizeof *t);
    *t = (Temporary){copy(path), temporary};
    temporary = t;
}

void gm_file_settled(const char *path)
{
    for (Temporary *t = temporary; t; t = t->next)
        if (t->path && strcmp(t->path, path) == 0) t->path = NULL;
}

void gm_files_remove(void)
{
    for (Temporary *t = temporary; t; t = t->next)
        if (t->path && unlink(t->path) != 0) rmdir(t->path);
}

void (*volatile gm_files_ending)(void);

static void end(int number)
{
    if (gm_files_ending) gm_files_ending();
    gm_files_remove();
    signal(number, SIG_DFL);
    raise(number);
}

// A closed descriptor would be that of the next file which is opened, and messages would stand in the draws.
static void open_descriptors(void)
{
    for (int d; (d = open("/dev/null", O_RDWR)) >= 0;)
        if (d > 2) {
            close(d);
            return;
        }
}

void gm_files_start(void)
{
    static const int ends[] = {SIGHUP, SIGINT, SIGQUIT, SIGPIPE, SIGTERM, SIGXCPU};
    n_places = n_absent = 0;
    open_descriptors();
    gm_file_is_read("/proc/self/exe");
    for (size_t k = 0; k < sizeof ends / sizeof *ends; k++) {
        struct sigaction now;
        // nohup and others have it ignored, and it stays so
        if (sigaction(ends[k], NULL, &now) == 0 && now.sa_handler == SIG_DFL) signal(ends[k], end);
    }
    signal(SIGXFSZ, SIG_IGN);  // a file that is too long then cannot be written, which is said
}

// ---- files ----

// Where symbolic links lead: a link stays one, as when it is opened.
char *gm_file_real(const char *path)
{
    char *real = realpath(path, NULL);
    return real ? real : copy(path);
}

static int new_file(const char *path) { return open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666); }

static int new_folder(const char *path) { return mkdir(path, 0700); }

// Something new beside a file, whatever others do in this folder: what is there already, a link included, is never taken. Process ids would
// not do for its name, since machines share folders. What `make` returns, and the name; or -1 with errno.
static int create_beside(const char *path, int (*make)(const char *), char **name)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyz0123456789";
    enum { RANDOM = 6, TRIES = 100 };
    char *part = room(NULL, strlen(path) + RANDOM + sizeof "..part");
    int made = -1, error = EEXIST;
    for (int try = 0; try < TRIES && made < 0 && error == EEXIST; try++) {
        unsigned char random[RANDOM] = {0};
        char tag[RANDOM + 1] = "";
        if (getrandom(random, sizeof random, 0) < 0) break;
        for (int k = 0; k < RANDOM; k++) tag[k] = letters[random[k] % (sizeof letters - 1)];
        sprintf(part, "%s.%s.part", path, tag);
        struct stat there;
        if (lstat(part, &there) == 0)  // somebody else's: no signal may remove it
            continue;
        gm_file_temporary(part);  // before it is there: else a signal could come between
        made = make(part);
        error = errno;
        if (made < 0) gm_file_settled(part);
    }
    if (made < 0) {
        free(part);
        part = NULL;
    }
    errno = error;
    *name = part;
    return made;
}

char *gm_folder_create(const char *beside)
{
    char *real = gm_file_real(beside), *name;
    create_beside(real, new_folder, &name);
    const int error = errno;
    free(real);
    errno = error;
    return name;
}

const char *gm_file_create(GmFile *f, const char *path)
{
    const char *why = gm_file_refused(path);
    *f = (GmFile){.path = copy(path), .real = gm_file_real(path)};
    const int descriptor = why ? -1 : create_beside(f->real, new_file, &f->part);
    f->to = descriptor < 0 ? NULL : fdopen(descriptor, "w");
    if (!why && !f->to) why = strerror(errno);
    if (why) gm_file_drop(f);
    return why;
}

static const char another[] = "another run writes it";

// Its lock stays until it is closed, also under another name. Where there are no locks nothing is known of other runs.
const char *gm_file_create_next(GmFile *f, const char *path)
{
    const char *why = gm_file_refused(path);
    *f = (GmFile){.path = copy(path), .real = gm_file_real(path)};
    f->part = room(NULL, strlen(f->real) + sizeof ".next.part");
    sprintf(f->part, "%s.next.part", f->real);
    if (!why) why = gm_file_refused(f->part);
    if (!why) {
        const int descriptor = open(f->part, O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
        if (descriptor < 0) why = strerror(errno);
        else if (flock(descriptor, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) why = another;
        else if (ftruncate(descriptor, 0) != 0 || !(f->to = fdopen(descriptor, "w"))) why = strerror(errno);
        if (why && descriptor >= 0) close(descriptor);
        if (why) f->kept = true;  // it is not ours
        else gm_file_temporary(f->part);
    } else f->kept = true;
    if (why) gm_file_drop(f);
    return why;
}

const char *gm_file_close(GmFile *f)
{
    errno = 0;
    const bool failed = fflush(f->to) != 0 || ferror(f->to);
    int error = errno;
    if (fclose(f->to) != 0 && !error) error = errno;
    f->to = NULL;
    if (!failed && !error) return NULL;
    gm_file_drop(f);
    return strerror(error ? error : EIO);
}

// Whether a program that goes on has this file locked.
static bool is_locked(const char *path)
{
    const int there = open(path, O_RDONLY | O_CLOEXEC);
    const bool locked = there >= 0 && flock(there, LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
    if (there >= 0) close(there);
    return locked;
}

const char *gm_file_left(const char *path, bool remove)
{
    static const char *const endings[] = {".part", ".next.part"};
    char *real = gm_file_real(path), *part = room(NULL, strlen(real) + sizeof ".next.part");
    const char *why = NULL;
    for (size_t k = 0; k < sizeof endings / sizeof *endings && !why; k++) {
        sprintf(part, "%s%s", real, endings[k]);
        struct stat there;
        if (lstat(part, &there) != 0 || !S_ISREG(there.st_mode)) continue;
        const bool locked = is_locked(part);
        if (locked && k == 0) why = another;
        else if (!locked && remove) unlink(part);
    }
    free(part);
    free(real);
    return why;
}

const char *gm_file_settle(GmFile *f)
{
    char *part = room(NULL, strlen(f->real) + sizeof ".part");
    sprintf(part, "%s.part", f->real);
    const bool written = is_locked(part);
    if (written || rename(f->part, part) != 0) {
        free(part);
        return written ? another : strerror(errno);
    }
    gm_file_settled(f->part);
    free(f->part);
    f->part = part;
    return NULL;
}

const char *gm_file_replace(const char *made, const char *path)
{
    const char *why = gm_file_refused(path);
    if (why) return why;
    char *real = gm_file_real(path);
    // a link, unlike a renamed file, takes the place of nothing; where a disk has no links the name is free as far as can be seen
    if (was_absent(path) && link(made, real) == 0) unlink(made);
    else if (was_absent(path) && (errno == EEXIST || access(real, F_OK) == 0)) why = "another program has made it meanwhile";
    else why = rename(made, real) == 0 ? NULL : strerror(errno);
    if (!why) remember(real, true);
    free(real);
    return why;
}

const char *gm_file_rename(GmFile *f)
{
    const char *why = gm_file_replace(f->part, f->path);
    gm_file_keep(f);
    return why;
}

void gm_file_drop(GmFile *f)
{
    if (f->to) fclose(f->to);
    f->to = NULL;
    if (f->part && !f->kept) {
        unlink(f->part);
        gm_file_settled(f->part);
    }
    free(f->path);
    free(f->real);
    free(f->part);
    *f = (GmFile){0};
}

void gm_file_keep(GmFile *f)
{
    if (f->part) gm_file_settled(f->part);
    f->kept = true;
}
