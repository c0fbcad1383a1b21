// device_image.c -- the compiled code of a program: what gmc put in, if it suits; else what NVRTC makes of its text, or has made before.
//
// The kernels of HMC take longer to compile than those of most models, and do not depend on them. Where NVRTC compiles at the start of a
// run they are a module of their own. It is loaded at the first HMC update, and from then on in the cache for every program. An image made
// by gmc contains them, too.
#include "device_inside.h"

#include <stdlib.h>
#include <string.h>

static bool load(CUmodule *to, const void *image, char *why, size_t room)
{
    char log[500] = "";
    int names[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
    void *values[] = {log, (void *)(uintptr_t)sizeof log};
    const int result = gm_cuda.cuModuleLoadDataEx(to, image, 2, names, values);
    for (char *c = log; *c; c++)
        if (*c == '\n') *c = ' ';
    if (result != 0) snprintf(why, room, "its code cannot be loaded: %s%s%.200s", gm_cuda_error(result), *log ? ": " : "", log);
    return result == 0;
}

// "compute_90": the newest architecture up to `capability` for which this NVRTC compiles. false: there is none.
static bool older_known(int capability, char *to, size_t room)
{
    char list[200];
    for (; capability >= 50; capability--) {
        snprintf(to, room, "compute_%d", capability);
        if (gm_nvrtc_knows(to, list, sizeof list)) return true;
    }
    return false;
}

// What NVRTC compiles for, "sm_90", or an older one that it knows. false: there is none; `list` is what it knows.
static bool architecture(int capability, char *to, size_t room, char *list, size_t list_room)
{
    snprintf(to, room, "sm_%d", capability);
    return gm_nvrtc_knows(to, list, list_room) || older_known(capability, to, room);
}

// The text, compiled for this GPU or taken from the cache.
static bool compile(const GmDevice *d, const char *text, const char *name, CUmodule *to, char *why, size_t room)
{
    char arch[32], list[200];
    GmImage image;
    if (!architecture(d->capability, arch, sizeof arch, list, sizeof list)) {
        snprintf(why, room, "NVRTC knows no architecture up to its sm_%d: %s (an NVRTC of CUDA 12 knows sm_70; GMC_NVRTC names its folder)",
                 d->capability, list);
        return false;
    }
    bool loaded = false;
    for (int afresh = 0; afresh < 2 && !loaded; afresh++) {  // what a cache holds may be of no use
        const bool compiled = gm_nvrtc_cached(text, name, d->precision, arch, afresh, &image);
        if (compiled) loaded = load(to, image.cubin ? image.cubin : (void *)image.ptx, why, room);
        else {
            for (char *c = image.log; c && *c; c++)
                if (*c == '\n') *c = ' ';
            snprintf(why, room, "NVRTC does not compile %s: %.400s", name, image.log ? image.log : "");
        }
        gm_image_free(&image);
        if (!compiled) break;
    }
    return loaded;
}

// ---- HMC ----

// The headers of a program's text, without what it was emitted itself: the lines of a file stand behind a line `#line N "file"`, and the
// first is the program's.
static char *text_of_headers(const char *text)
{
    const char *name = strchr(text, '"'), *end = name ? strchr(name + 1, '"') : NULL;
    const size_t length = end ? (size_t)(end - name) + 1 : 0;
    char *out = gm_alloc(strlen(text) + 1, 1), *to = out;
    bool header = false;
    for (const char *at = text; *at;) {
        const char *stop = strchr(at, '\n');
        const size_t n = stop ? (size_t)(stop - at) + 1 : strlen(at);
        if (strncmp(at, "#line ", 6) == 0) {
            const char *file = strchr(at, '"');
            header = !(length && file && strncmp(file, name, length) == 0);
        }
        if (header) {
            memcpy(to, at, n);
            to += n;
        }
        at += n;
    }
    *to = 0;
    return out;
}

static char *text_of_moves(void)
{
    char *headers = text_of_headers(gm_device_code.text);
    char *text = gm_format(
        "#define GM_HMC\n#define GM_HMC_ALONE\ntypedef struct Data { long n; } Data;\ntypedef struct State { void *first; } State;\n%s",
        headers);
    free(headers);
    return text;
}

bool gm_device_hmc_image(GmDevice *d)
{
    char why[900];
    if (!d->moves_apart || d->moves_module) return !d->failed;
    char *text = text_of_moves();
    if (!compile(d, text, "HMC", &d->moves_module, why, sizeof why)) gm_device_refuse(d, why);
    free(text);
    return !d->failed;
}

// ---- the program ----

// With row passes of this width, if it is above 0.
static char *text_of_program(long width)
{
    return width > 0 ? gm_format("#define GM_HMC_APART\n#define GM_ROWS_WIDTH %ld\n%s", width, gm_device_code.text)
                     : gm_format("#define GM_HMC_APART\n%s", gm_device_code.text);
}

// A cubin suits GPUs of its major number that are not older.
static bool suits(const GmDeviceCode *code, int capability)
{
    const char *number = strchr(code->arch, '_');
    const int arch = number ? atoi(number + 1) : 0;
    return arch / 10 == capability / 10 && arch <= capability;
}

int gm_device_to_compile(const GmModel *model, const void *data, int capability, GmPrecision precision, bool moves)
{
    char arch[32], list[200];
    if (!&gm_device_code || !gm_device_code.text || !gm_nvrtc_found(NULL, NULL) ||
        !architecture(capability, arch, sizeof arch, list, sizeof list))
        return 0;
    const GmDeviceCode *code = &gm_device_code;
    const long width = model->row_width ? model->row_width(data) : 0;
    if (code->arch && code->precision == precision && width == 0 && code->cubin && suits(code, capability)) return 0;
    char *text = text_of_program(width), *of_moves = text_of_moves();
    bool made = false;
    for (int k = 0; k < model->n_updates && model->update_hmc; k++) made |= moves && model->update_hmc(k);
    const int n = !gm_nvrtc_is_cached(text, precision, arch) + (made && !gm_nvrtc_is_cached(of_moves, precision, arch));
    free(text);
    free(of_moves);
    return n;
}

// The image put in by gmc, if it suits; else one compiled now.
bool gm_device_image(GmDevice *d, char *why, size_t room)
{
    if (!&gm_device_code || !gm_device_code.text) {
        snprintf(why, room, "this program holds no code for GPUs: it was made with --no-device");
        return false;
    }
    const GmDeviceCode *code = &gm_device_code;
    // row passes are compiled for the width of the data
    const long width = d->model->row_width ? d->model->row_width(d->host_data) : 0;
    d->rows_any = width != 0 && !gm_nvrtc_found(NULL, NULL);
    if (code->arch && code->precision == d->precision && (width == 0 || d->rows_any)) {
        const char *number = strchr(code->arch, '_');
        const int arch = number ? atoi(number + 1) : 0;
        if (code->cubin && suits(code, d->capability) && load(&d->module, code->cubin, why, room)) return true;
        if (!code->cubin && arch <= d->capability && gm_nvrtc_found(NULL, NULL) == false && load(&d->module, code->ptx, why, room))
            return true;
    }
    const char *absent;
    if (!gm_nvrtc_found(NULL, &absent)) {
        if (code->arch && code->precision == d->precision && load(&d->module, code->ptx, why, room)) return true;
        snprintf(why, room, "code for sm_%d in %s precision has to be compiled, and %s", d->capability, gm_precision_names[d->precision],
                 absent);
        return false;
    }
    char *text = text_of_program(width);
    d->moves_apart = true;
    const bool loaded = compile(d, text, code->name, &d->module, why, room);
    free(text);
    return loaded;
}
