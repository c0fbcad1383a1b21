// If this failed, a joint normal draw on a GPU would come from the wrong law for some number of elements or chains, depend on which block does what, or
// take a matrix that is not positive definite for one that is, or never end.
//
// Needs a GPU. `joint_draws quick`: for a run under compute-sanitizer.
// nvcc: -Xcompiler -fopenmp -DGM_SOLVE_PRECISION=double
// nvcc: -Xcompiler -fopenmp -DGM_SOLVE_PRECISION=float
#include "joint.h"
#include <algorithm>
#include <math.h>
#include <string.h>

static int failures;

static void check(const char *what, const char *statistic, double value, double bound)
{
    const int ok = value <= bound;
    failures += !ok;
    printf("%s %-44s %-14s %10.3g  bound %.3g\n", ok ? "ok    " : "failed", what, statistic, value, bound);
}

template <class T> static std::vector<T> on_host(const T *p, size_t n)
{
    std::vector<T> v(n);
    CK(cudaMemcpy(v.data(), p, n * sizeof(T), cudaMemcpyDeviceToHost));
    return v;
}

// The standard normals of a chain's draw, and after them the scale for a given rest.
__global__ void expected_noise(const GmPlace *place, int chain, long n, double *noise)
{
    const Stream g = stream(gm_sweep_of(place, chain), VAR_x, 0);
    for (long j = blockIdx.x * (long)blockDim.x + threadIdx.x; j < n; j += (long)gridDim.x * blockDim.x) noise[j] = gm_noise(&g, j);
}

__global__ void expected_scale(const GmPlace *place, int chain, double count, double rest, double *s)
{
    Stream g = stream(gm_sweep_of(place, chain), VAR_x, 0);
    *s = gm_scale_drawn(&g, count, rest);
}

// The draw by plain loops in double: A = L L' in place, w = L^-1 h, L'^-1 (s w + noise).
static std::vector<double> reference(const Joint *b, int chain, const double *scale, double *s)
{
    const long n = b->n;
    const std::vector<solve> J = on_host(b->kept[chain].J, (size_t)(n * n)), h = on_host(b->kept[chain].h, (size_t)n);
    std::vector<double> A(J.begin(), J.end()), x(h.begin(), h.end()), column((size_t)n);
    for (long k = 0; k < n; k++) {
        const double pivot = sqrt(A[k * n + k]);
        A[k * n + k] = pivot;
        for (long i = k + 1; i < n; i++) column[i] = A[i * n + k] /= pivot;
#pragma omp parallel for schedule(static) if (n - k > 200)
        for (long i = k + 1; i < n; i++)
            for (long j = k + 1; j <= i; j++) A[i * n + j] -= column[i] * column[j];
    }
    double *noise = on_device<double>((size_t)n + 1), squares = 0;
    expected_noise<<<64, 256>>>(b->place, chain, n, noise);
    for (long i = 0; i < n; i++) {
        for (long j = 0; j < i; j++) x[i] -= A[i * n + j] * x[j];
        x[i] /= A[i * n + i];
        squares += x[i] * x[i];
    }
    *s = 1;
    if (scale) {
        expected_scale<<<1, 1>>>(b->place, chain, scale[1], scale[0] - squares, noise + n);
        *s = on_host(noise + n, 1)[0];
    }
    const std::vector<double> e = on_host(noise, (size_t)n);
    cudaFree(noise);
    for (long i = 0; i < n; i++) x[i] = *s * x[i] + e[i];
    for (long i = n - 1; i >= 0; i--) {
        x[i] /= A[i * n + i];
        for (long j = 0; j < i; j++) x[j] -= A[i * n + j] * x[i];
    }
    return x;
}

static void draw(Joint *b, const double *scale, long blocks)
{
    for (int c = 0; c < b->chains; c++) {
        CK(cudaMemset(b->state[c].x, 255, sizeof(wide) * (size_t)b->n));
        CK(cudaMemcpy(b->state[c].scale, scale, 3 * sizeof(double), cudaMemcpyHostToDevice));
    }
    joint_restore(b, 0);
    joint_launch(b, 0, blocks);
    CK(cudaDeviceSynchronize());
}

static void one(long n, int chains, bool scaled)
{
    char what[80];
    snprintf(what, sizeof what, "n = %ld, %d chains%s", n, chains, scaled ? ", scaled" : "");
    Joint b = joint_new(n, chains, scaled, 100 + (uint64_t)n);
    const double scale[3] = { 20.0 * (double)n + 5, 2.0 * (double)n, NAN };
    draw(&b, scale, 0);
    double worst = 0, worst_scale = 0, bound = 0;
    std::vector<std::vector<double> > x;
    for (int c = 0; c < chains; c++) {
        double s;
        const std::vector<double> right = reference(&b, c, scaled ? scale : NULL, &s);
        x.push_back(on_host(b.state[c].x, (size_t)n));
        double error = 0, size = 0;
        for (long j = 0; j < n; j++) {
            const double d = fabs(x[c][j] - right[j]);
            if (!(d <= error)) error = d;
            size = std::max(size, fabs(right[j]));
        }
        if (!(error / size <= worst)) worst = error / size;
        if (scaled) {
            const double d = fabs(on_host(b.state[c].scale, 3)[2] / s - 1);
            if (!(d <= worst_scale)) worst_scale = d;
        }
        // In single precision: n roundings, as large as the condition number makes them. The largest row sum bounds the largest eigenvalue.
        const std::vector<solve> J = on_host(b.kept[c].J, (size_t)(n * n));
        for (long i = 0; i < n; i++) {
            double sum = 0;
            for (long j = 0; j < n; j++) sum += fabs((double)J[i * n + j]);
            bound = std::max(bound, ((double)n + 8) * 6e-8 * sum / 0.5);
        }
    }
    check(what, "draw", worst, sizeof(solve) == 8 ? 1e-9 : bound);
    if (scaled) check(what, "scale", worst_scale, sizeof(solve) == 8 ? 1e-9 : 1e-3);
    long other = 0;
    static const long grids[] = { 0, 1, 2, 5, 37, 1000 };
    for (long blocks : grids) {
        if (blocks == 1 && n > 500) continue;
        draw(&b, scale, blocks);
        for (int c = 0; c < chains; c++) other += memcmp(on_host(b.state[c].x, (size_t)n).data(), x[c].data(), sizeof(double) * (size_t)n) != 0;
    }
    check(what, "other bits", (double)other, 0);
    check(what, "faults", on_host(b.place, 1)[0].fault, 0);
    joint_free(&b);
}

// A matrix with one element of its diagonal spoilt: the fault is raised, and the kernel ends.
static void spoilt(long n, long at, double value)
{
    char what[80];
    snprintf(what, sizeof what, "n = %ld with %g at %ld", n, value, at);
    Joint b = joint_new(n, 1, true, 100 + (uint64_t)n);
    const solve v = (solve)value;
    const double scale[3] = { 20.0 * (double)n + 5, 2.0 * (double)n, NAN };
    CK(cudaMemcpy(b.kept[0].J + at * n + at, &v, sizeof v, cudaMemcpyHostToDevice));
    draw(&b, scale, 0);
    check(what, "no fault", !on_host(b.place, 1)[0].fault, 0);
    joint_free(&b);
}

int main(int argc, char **argv)
{
    const bool quick = argc > 1 && !strcmp(argv[1], "quick");
    static const long sizes[] = { 1, 2, 31, 32, 33, 63, 64, 65, 127, 128, 129, 150, 200, 425, 1000, 1777 };
    for (long n : sizes) {
        if (quick && n > 130) break;
        one(n, 1, n % 2 == 0);
        if (n < 1000) one(n, 4, n % 2 == 1);
    }
    if (!quick) one(1000, 4, true);
    static const long spoils[][2] = { { 1, 0 }, { 32, 31 }, { 65, 0 }, { 65, 40 }, { 150, 149 }, { 1000, 500 } };
    for (size_t k = 0; k < sizeof spoils / sizeof *spoils; k++) {
        if (quick && spoils[k][0] > 150) break;
        spoilt(spoils[k][0], spoils[k][1], -1);
        spoilt(spoils[k][0], spoils[k][1], NAN);
        spoilt(spoils[k][0], spoils[k][1], INFINITY);
    }
    printf("%s: %d failed\n", failures ? "failed" : "ok", failures);
    return failures > 0;
}
