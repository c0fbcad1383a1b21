// If this failed, a device header would not be valid CUDA: models would run on the CPU and not compile for the GPU.
//
// Compiles all device headers, and a kernel that calls a routine of each, with NVRTC (found at run time) and with nvcc for sm_80, both
// unoptimised to save time.
// Either is skipped, with a line that says so, where it is not installed. Needs no GPU.
#include "check.h"
#include <dlfcn.h>
#include <unistd.h>

static const char source[] =
    "#include \"special.h\"\n#include \"rng.h\"\n#include \"normal.h\"\n#include \"exponential.h\"\n#include \"truncated.h\"\n"
    "#include \"gamma.h\"\n#include \"beta.h\"\n#include \"inverse_gaussian.h\"\n#include \"gig.h\"\n#include \"polya_gamma.h\"\n"
    "#include \"discrete.h\"\n#include \"student.h\"\n#include \"others.h\"\n#include \"dirichlet.h\"\n#include \"chol.h\"\n"
    "#include \"multivariate.h\"\n#include \"slice.h\"\n#include \"truncated_single.h\"\n#include \"polya_gamma_single.h\"\n#include "
    "\"nuts.h\"\n"
    "extern \"C\" __global__ void all(double *x, int32_t *count, long n)\n"
    "{\n"
    "    Sweep at; at.seed = 1; at.chain = 0; at.sweep = 2;\n"
    "    Stream s = stream(at, 3, threadIdx.x), *g = &s;\n"
    "    x[0] = normal_natural(g, x[0], x[1]) + normal_natural_truncated(g, x[0], x[1], x[2], INFINITY);\n"
    "    x[1] = gamma_shape_rate(g, x[0], 1) + power_gamma_natural_truncated(g, -2, x[0], x[1], 0, 1) + beta_natural_truncated(g, x[0], "
    "x[1], 0, x[2]);\n"
    "    x[2] = inverse_gaussian_mean_shape(g, x[0], 1) + gig_p_a_b(g, x[0], x[1], x[2]) + polya_gamma_natural(g, x[0], x[1]);\n"
    "    x[3] = (double)(poisson(g, x[0]) + binomial(g, n, x[1]) + hypergeometric(g, n, n, n) + neg_binomial_2(g, x[0], x[1]));\n"
    "    x[4] = student_t(g, x[0], 0, 1) + von_mises_natural(g, x[0], x[1]) + skew_normal(g, 0, 1, x[0]) + log_bessel_k(x[0], x[1]);\n"
    "    x[5] = (double)categorical_log_weights(g, x + 6, n) + trigamma(x[0]) + log_Phi(x[1]) + log_bessel_i0(x[2]) + lchoose(x[0], "
    "x[1]);\n"
    "    dirichlet(g, x, n, x + n);\n"
    "    multinomial(g, n, x, n, count);\n"
    "    count[0] += (int32_t)(normal_precision_shift(g, n, x, x + n * n, x) + wishart_natural(g, x[0], x, n, x + n, x + 9 * n)\n"
    "                + inv_wishart(g, x[0], x, n, x + n, x + 9 * n));\n"
    "    lkj_corr(g, x[0], n, x, x + n * n);\n"
    "    Slice sl;\n"
    "    slice_begin_log(&sl, g, x[0], 0, INFINITY, 1);\n"
    "    while (slice_next(&sl)) sl.log_density = -sl.x;\n"
    "    x[0] = sl.x;\n"
    "    x[1] = normal_natural_truncated(g, (float)x[0], -0.5f, 0, INFINITY) + polya_gamma_natural(g, 1, (float)x[0]) + polya_gamma(g, n, "
    "(float)x[0]);\n"
    "    NutsSettings how;\n"
    "    how.steps = how.max_depth = how.same_density = 0; how.metric = NUTS_ADAPTED; how.step = how.target = how.temperature = 0;\n"
    "    Nuts *m = nuts_of(x + 100, n);\n"
    "    nuts_begin(m, g, x, &how, 3, 10);\n"
    "    while (nuts_next(m)) {\n"
    "        m->log_density = -nuts_position(m)[0];\n"
    "        nuts_gradient(m)[0] = -1;\n"
    "    }\n"
    "}\n"
    // A row pass, with what kernels.h gives an emitted program; the shapes for one width.
    "struct Data { long n; };\nstruct State { wide *beta, *out; };\n"
    "struct GmPlace { uint64_t seed; int32_t *going; };\nstruct GmContext { GmPlace *place; int chain, half; };\nstruct RowWeight { real "
    "shift, more; };\n"
    "DEVICE Sweep gm_sweep_place(const GmPlace *p, int chain) { Sweep at; at.seed = p->seed; at.chain = chain; at.sweep = 1; return at; }\n"
    "#define GM_ROWS_WIDTH 1000\n#include \"row_pass.h\"\n"
    "DEVICE RowWeight rows_row(GmContext *, const Data *, const State *s, const Sweep, const long, const real dot)\n"
    "{\n"
    "    RowWeight w; w.shift = w.more = dot + (real)*s->beta; return w;\n"
    "}\n"
    "ROW_PASS_KERNELS(rows)\n";

// Where the headers are, seen from the root of the repository or from this folder.
static const char *header_folder(void) { return access("runtime/device/base.h", R_OK) == 0 ? "runtime/device" : "../../runtime/device"; }

static void with_nvrtc(void)
{
    static const char *const names[] = { "libnvrtc.so", "libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so.11.2",
                                         "/usr/local/cuda/lib64/libnvrtc.so" };
    void *library = NULL;
    for (unsigned k = 0; k < sizeof names / sizeof *names && !library; k++) library = dlopen(names[k], RTLD_NOW);
    if (!library) {
        printf("skip NVRTC is not installed here\n");
        return;
    }
    int (*create)(void **, const char *, const char *, int, const char *const *, const char *const *);
    int (*compile)(void *, int, const char *const *);
    int (*log_size)(void *, size_t *);
    int (*get_log)(void *, char *);
    *(void **)&create = dlsym(library, "nvrtcCreateProgram");
    *(void **)&compile = dlsym(library, "nvrtcCompileProgram");
    *(void **)&log_size = dlsym(library, "nvrtcGetProgramLogSize");
    *(void **)&get_log = dlsym(library, "nvrtcGetProgramLog");
    int (*version)(int *, int *);
    int major = 0, minor = 0;
    *(void **)&version = dlsym(library, "nvrtcVersion");
    if (version) version(&major, &minor);
    if (!create || !compile || !log_size || !get_log) {
        check("NVRTC has the functions it documents", "missing", 1, 0);
        return;
    }
    void *program = NULL;
    char  include[64];
    snprintf(include, sizeof include, "-I%s", header_folder());
    // Unoptimised where NVRTC can, from 12.8 on.
    const char *options[] = { "--gpu-architecture=compute_80", include, "--Ofast-compile=max" };
    const int count = major * 100 + minor >= 1208 ? 3 : 2;
    int failed = create(&program, source, "all.cu", 0, NULL, NULL);
    if (!failed) failed = compile(program, count, options);
    size_t size = 0;
    if (log_size(program, &size) == 0 && size > 1) {
        char *text = malloc(size);
        if (get_log(program, text) == 0) printf("%s\n", text);
        free(text);
    }
    check("NVRTC compiles the headers, without a warning", "result", failed || size > 1, 0);
}

static void with_nvcc(void)
{
    const char *nvcc = system("nvcc --version >/dev/null 2>&1") == 0 ? "nvcc"
                     : access("/usr/local/cuda/bin/nvcc", X_OK) == 0 ? "/usr/local/cuda/bin/nvcc" : NULL;
    if (!nvcc) {
        printf("skip nvcc is not installed here\n");
        return;
    }
    char folder[] = "/tmp/gmc_cuda_XXXXXX", path[64], command[256];
    if (!mkdtemp(folder)) {
        check("a temporary folder", "missing", 1, 0);
        return;
    }
    snprintf(path, sizeof path, "%s/all.cu", folder);
    FILE *f = fopen(path, "w");
    if (f) {
        fputs(source, f);
        fclose(f);
    }
    snprintf(command, sizeof command, "%s -arch=sm_80 -G -Werror all-warnings -I%s -ptx -o %s/all.ptx %s", nvcc, header_folder(), folder,
             path);
    check("nvcc compiles the headers for sm_80", "status", system(command) != 0, 0);
    snprintf(command, sizeof command, "%s/all.ptx", folder);
    remove(command);
    remove(path);
    rmdir(folder);
}

int main(void)
{
    with_nvrtc();
    with_nvcc();
    return finish();
}
