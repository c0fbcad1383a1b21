// mapped.c -- files that are read where they lie: mapped into memory, and watched for what others do to them meanwhile.
#include "../backends/files.h"
#include "inputs.h"
#include "messages.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

// What is mapped shows what others do to the file meanwhile: bytes that are cut off end the program by a signal, and bytes that are written
// over are other data.
typedef struct Mapped {
    struct Mapped *next;
    char *path;
    const char *begin;
    size_t size;
    int fd;
    struct stat info;
} Mapped;

static Mapped *mapped;

// Writes one line and ends, by what a handler of signals may call.
static void file_was_cut(int number, siginfo_t *at, void *context)
{
    (void)context;
    const Mapped *m = mapped;
    while (m && !((const char *)at->si_addr >= m->begin && (const char *)at->si_addr < m->begin + m->size)) m = m->next;
    if (!m) {  // not ours: as if nobody had caught it
        signal(number, SIG_DFL);
        return;
    }
    static const char says[] =
        ": was cut short while the program ran, which reads the elements where they lie; draws so far stay in files that end in .part\n";
    if (write(STDERR_FILENO, m->path, strlen(m->path)) >= 0 && write(STDERR_FILENO, says, sizeof says - 1) >= 0) _exit(GM_EXIT_FAULT);
    _exit(GM_EXIT_FAULT);
}

static void remember(const char *path, const void *map, int fd, const struct stat *info)
{
    Mapped *m = gm_alloc(1, sizeof *m);
    *m = (Mapped){.next = mapped, .path = gm_copy_text(path), .begin = map, .size = (size_t)info->st_size, .fd = fd, .info = *info};
    mapped = m;
    struct sigaction action = {.sa_sigaction = file_was_cut, .sa_flags = SA_SIGINFO};
    sigemptyset(&action.sa_mask);
    sigaction(SIGBUS, &action, NULL);
}

void *gm_map_file(const char *path, size_t *size)
{
    gm_file_is_read(path);
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);  // of a pipe: does not wait for its writer
    struct stat info;
    if (fd < 0 || fstat(fd, &info) != 0) {
        gm_error("%s: cannot be read: %s", path, strerror(errno));
        if (fd >= 0) close(fd);
        return NULL;
    }
    if (!S_ISREG(info.st_mode) || info.st_size == 0) {
        gm_error("%s: %s", path, S_ISDIR(info.st_mode) ? "is a directory" : S_ISREG(info.st_mode) ? "is empty" : "is not a plain file");
        close(fd);
        return NULL;
    }
    void *map = mmap(NULL, (size_t)info.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (map == MAP_FAILED) {
        gm_error("%s: cannot be mapped: %s", path, strerror(errno));
        close(fd);
        return NULL;
    }
    *size = (size_t)info.st_size;
    remember(path, map, fd, &info);
    return map;
}

void gm_unmap(void *map, size_t size)
{
    for (Mapped **m = &mapped; *m; m = &(*m)->next) {
        Mapped *it = *m;
        if (it->begin != map) continue;
        *m = it->next;
        close(it->fd);
        free(it->path);
        free(it);
        break;
    }
    munmap(map, size);
}

bool gm_files_unchanged(void)
{
    bool good = true;
    for (const Mapped *m = mapped; m; m = m->next) {
        struct stat now;
        if (fstat(m->fd, &now) == 0 && now.st_size == m->info.st_size && now.st_mtim.tv_sec == m->info.st_mtim.tv_sec &&
            now.st_mtim.tv_nsec == m->info.st_mtim.tv_nsec)
            continue;
        gm_error("%s: was written to while the program ran, which reads the elements where they lie: what came out may be of both "
                 "contents; run again",
                 m->path);
        good = false;
    }
    return good;
}
