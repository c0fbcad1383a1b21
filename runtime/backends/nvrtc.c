// nvrtc.c -- device code by NVRTC. The prototypes are written out here, so that no header of CUDA is needed.
#define _GNU_SOURCE
#include "nvrtc.h"
#include "library.h"

#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

const char *const gm_precision_names[GM_PRECISIONS] = {"double", "mixed", "single"};

typedef void *Program;

static struct {
    int (*Version)(int *, int *);
    int (*GetNumSupportedArchs)(int *);
    int (*GetSupportedArchs)(int *);
    int (*CreateProgram)(Program *, const char *, const char *, int, const char *const *, const char *const *);
    int (*DestroyProgram)(Program *);
    int (*CompileProgram)(Program, int, const char *const *);
    int (*GetPTXSize)(Program, size_t *);
    int (*GetPTX)(Program, char *);
    int (*GetCUBINSize)(Program, size_t *);
    int (*GetCUBIN)(Program, char *);
    int (*GetProgramLogSize)(Program, size_t *);
    int (*GetProgramLog)(Program, char *);
    const char *(*GetErrorString)(int);
} nvrtc;

static int version;
static char missing[600];

static bool load(void)
{
    static const char *const names[] = {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so.11.2", "libnvrtc.so", NULL};
    static const char *const helpers[] = {"libnvrtc-builtins.so.1*", NULL};
    char why[400];
    void *library = gm_library_open(names, helpers, "GMC_NVRTC", "cuda_nvrtc", why, sizeof why);
    if (!library) {
        snprintf(missing, sizeof missing,
                 "NVRTC is not installed: %s (install the CUDA Toolkit, or: pip install nvidia-cuda-nvrtc; GMC_NVRTC names its folder)",
                 why);
        return false;
    }
    const struct {
        const char *name;
        void *to;
    } wanted[] = {
        {"nvrtcVersion", &nvrtc.Version},
        {"nvrtcGetNumSupportedArchs", &nvrtc.GetNumSupportedArchs},
        {"nvrtcGetSupportedArchs", &nvrtc.GetSupportedArchs},
        {"nvrtcCreateProgram", &nvrtc.CreateProgram},
        {"nvrtcDestroyProgram", &nvrtc.DestroyProgram},
        {"nvrtcCompileProgram", &nvrtc.CompileProgram},
        {"nvrtcGetPTXSize", &nvrtc.GetPTXSize},
        {"nvrtcGetPTX", &nvrtc.GetPTX},
        {"nvrtcGetCUBINSize", &nvrtc.GetCUBINSize},
        {"nvrtcGetCUBIN", &nvrtc.GetCUBIN},
        {"nvrtcGetProgramLogSize", &nvrtc.GetProgramLogSize},
        {"nvrtcGetProgramLog", &nvrtc.GetProgramLog},
        {"nvrtcGetErrorString", &nvrtc.GetErrorString},
    };
    for (size_t k = 0; k < sizeof wanted / sizeof *wanted; k++)
        if (!gm_library_symbol(library, wanted[k].name, wanted[k].to)) {
            snprintf(missing, sizeof missing, "the NVRTC found here is older than CUDA 11.2: it lacks %s", wanted[k].name);
            return false;
        }
    int major = 0, minor = 0;
    nvrtc.Version(&major, &minor);
    version = 1000 * major + 10 * minor;
    return true;
}

bool gm_nvrtc_found(int *out, const char **why)
{
    static int found = -1;
    if (found < 0) found = load();
    if (out) *out = version;
    if (!found && why) *why = missing;
    return found;
}

// The architectures it knows, in rising order; the caller frees.
static int *known(int *n)
{
    *n = 0;
    if (!gm_nvrtc_found(NULL, NULL) || nvrtc.GetNumSupportedArchs(n) != 0 || *n <= 0) return NULL;
    int *list = calloc((size_t)*n, sizeof *list);
    if (list && nvrtc.GetSupportedArchs(list) == 0) return list;
    free(list);
    *n = 0;
    return NULL;
}

bool gm_nvrtc_knows(const char *arch, char *list, size_t room)
{
    int n;
    int *archs = known(&n);
    const char *number = strchr(arch, '_');
    bool found = false;
    size_t used = 0;
    if (room) *list = 0;
    for (int k = 0; k < n; k++) {
        char text[16];
        snprintf(text, sizeof text, "%d", archs[k]);
        const size_t digits = strlen(text);
        found |= number && strncmp(number + 1, text, digits) == 0 &&
                 (number[1 + digits] == 0 || number[1 + digits] == 'a' || number[1 + digits] == 'f');
        if (used + 8 < room) used += (size_t)snprintf(list + used, room - used, "%ssm_%d", k ? " " : "", archs[k]);
    }
    free(archs);
    return found;
}

static char *print(const char *format, ...)
{
    char *text = NULL;
    va_list args;
    va_start(args, format);
    if (vasprintf(&text, format, args) < 0) text = NULL;
    va_end(args);
    return text;
}

enum { MOST_OPTIONS = 8 };

static int set_options(const char **options, char *arch_option, size_t room, GmPrecision precision, const char *arch)
{
    int n = 0;
    snprintf(arch_option, room, "--gpu-architecture=%s", arch);
    options[n++] = arch_option;
    options[n++] = "--std=c++17";
    options[n++] = "--disable-warnings";
    if (version >= 13000) options[n++] = "--split-compile=0";  // on all cores
    if (precision != GM_DOUBLE) options[n++] = "-DGM_PRECISION=float";
    if (precision == GM_SINGLE) options[n++] = "-DGM_SOLVE_PRECISION=float";
    return n;
}

const char *gm_nvrtc_oldest(char *to, size_t room)
{
    int n;
    int *archs = known(&n);
    snprintf(to, room, "compute_%d", n > 0 ? archs[0] : 75);
    free(archs);
    return to;
}

bool gm_nvrtc_compile(const char *text, const char *name, GmPrecision precision, const char *arch, GmImage *out)
{
    *out = (GmImage){0};
    const char *why;
    if (!gm_nvrtc_found(NULL, &why)) {
        out->log = print("%s", why);
        return false;
    }
    char arch_option[64];
    const char *options[MOST_OPTIONS];
    const int n = set_options(options, arch_option, sizeof arch_option, precision, arch);
    Program program = NULL;
    int status = nvrtc.CreateProgram(&program, text, name, 0, NULL, NULL);
    if (status == 0) {
        status = nvrtc.CompileProgram(program, n, options);
        size_t size = 0;
        if (nvrtc.GetProgramLogSize(program, &size) == 0 && size > 1 && (out->log = calloc(size + 1, 1)))
            nvrtc.GetProgramLog(program, out->log);
    }
    if (status == 0) status = nvrtc.GetPTXSize(program, &out->ptx_size);
    if (status == 0 && (out->ptx = calloc(out->ptx_size + 1, 1))) status = nvrtc.GetPTX(program, out->ptx);
    size_t size = 0;
    if (status == 0 && nvrtc.GetCUBINSize(program, &size) == 0 && size > 0 && (out->cubin = malloc(size))) {
        out->cubin_size = size;
        status = nvrtc.GetCUBIN(program, out->cubin);
    }
    if (program) nvrtc.DestroyProgram(&program);
    if (status != 0 && !out->log) out->log = print("NVRTC for %s: %s", arch, nvrtc.GetErrorString(status));
    return status == 0;
}

void gm_image_free(GmImage *image)
{
    free(image->ptx);
    free(image->cubin);
    free(image->log);
    *image = (GmImage){0};
}

// ---- the cache: one file a program, precision and architecture, written under another name and then renamed ----

static uint64_t hash(uint64_t h, const char *text)  // FNV-1a
{
    for (; *text; text++) h = (h ^ (unsigned char)*text) * 0x100000001b3u;
    return (h ^ 0xff) * 0x100000001b3u;
}

// The folder, made if it is not there; false: there is no place for one, or it belongs to somebody else.
static bool folder(char *to, size_t room)
{
    const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    if (cache && *cache == '/') snprintf(to, room, "%s", cache);
    else if (home && *home == '/') snprintf(to, room, "%s/.cache", home);
    else return false;
    mkdir(to, 0700);
    const size_t used = strlen(to);
    snprintf(to + used, room - used, "/gmc");
    mkdir(to, 0700);
    struct stat there;
    return stat(to, &there) == 0 && S_ISDIR(there.st_mode) && there.st_uid == geteuid() && (there.st_mode & 022) == 0;
}

static uint64_t hash_bytes(uint64_t h, const void *bytes, size_t n)
{
    for (size_t k = 0; k < n; k++) h = (h ^ ((const unsigned char *)bytes)[k]) * 0x100000001b3u;
    return h;
}

static uint64_t hash_of(const GmImage *image)
{
    return hash_bytes(hash_bytes(0xcbf29ce484222325u, image->ptx, image->ptx_size), image->cubin, image->cubin_size);
}

// "gmc2 PTX-size cubin-size hash\n", then both.
static bool take(const char *path, GmImage *out)
{
    FILE *f = fopen(path, "rb");
    if (!f) return false;
    size_t ptx = 0, cubin = 0;
    unsigned long long sum = 0;
    bool good =
        fscanf(f, "gmc2 %zu %zu %llx", &ptx, &cubin, &sum) == 3 && fgetc(f) == '\n' && ptx > 0 && ptx < (1u << 30) && cubin < (1u << 30);
    *out = (GmImage){.ptx_size = ptx, .cubin_size = cubin};
    good = good && (out->ptx = calloc(ptx + 1, 1)) && fread(out->ptx, 1, ptx, f) == ptx;
    good = good && (cubin == 0 || ((out->cubin = malloc(cubin)) && fread(out->cubin, 1, cubin, f) == cubin)) && fgetc(f) == EOF;
    good = good && hash_of(out) == sum;
    fclose(f);
    if (!good) gm_image_free(out);
    return good;
}

static void keep(const char *path, const GmImage *image)
{
    char *part = print("%s.%ld", path, (long)getpid());
    FILE *f = part ? fopen(part, "wb") : NULL;
    if (f) {
        fprintf(f, "gmc2 %zu %zu %llx\n", image->ptx_size, image->cubin_size, (unsigned long long)hash_of(image));
        fwrite(image->ptx, 1, image->ptx_size, f);
        if (image->cubin_size) fwrite(image->cubin, 1, image->cubin_size, f);
        const bool failed = ferror(f) != 0;
        if (fclose(f) != 0 || failed || rename(part, path) != 0) unlink(part);  // a cache that cannot be written is no fault
    }
    free(part);
}

// Where the cache has, or would have, a program. false: there is no cache.
static bool place_of(const char *text, GmPrecision precision, const char *arch, char path[PATH_MAX])
{
    char place[PATH_MAX - 64], arch_option[64], number[32];
    const char *options[MOST_OPTIONS];
    if (!gm_nvrtc_found(NULL, NULL) || !arch || !folder(place, sizeof place)) return false;
    const int n = set_options(options, arch_option, sizeof arch_option, precision, arch);
    snprintf(number, sizeof number, "%d", version);
    uint64_t a = hash(0xcbf29ce484222325u, number), b = hash(0x84222325cbf29ce4u, number);
    for (int k = 0; k < n; k++) {
        a = hash(a, options[k]);
        b = hash(b, options[k]);
    }
    snprintf(path, PATH_MAX, "%s/%016llx%016llx", place, (unsigned long long)hash(a, text), (unsigned long long)hash(b, text));
    return true;
}

bool gm_nvrtc_is_cached(const char *text, GmPrecision precision, const char *arch)
{
    char path[PATH_MAX];
    return place_of(text, precision, arch, path) && access(path, R_OK) == 0;
}

bool gm_nvrtc_cached(const char *text, const char *name, GmPrecision precision, const char *arch, bool afresh, GmImage *out)
{
    char path[PATH_MAX];
    const bool usable = place_of(text, precision, arch, path);
    if (usable && !afresh && take(path, out)) return true;
    if (!gm_nvrtc_compile(text, name, precision, arch, out)) return false;
    if (usable) keep(path, out);
    return true;
}
