// If this failed, a joint normal draw on a GPU, dense or from few rows, would come from the wrong law for some size or number of
// chains. Or it would depend on which block does what. Or it would accept a matrix that is not positive definite, or never end.
//
// Needs a GPU. `joint_draws quick`: for a run under compute-sanitizer.
//
// nvcc: -Xcompiler -fopenmp -DGM_SOLVE_PRECISION=double
// nvcc: -Xcompiler -fopenmp -DGM_SOLVE_PRECISION=float
// nvcc: -Xcompiler -fopenmp -DGM_SOLVE_PRECISION=double -DDENSE_PLAIN
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
        for (int c = 0; c < chains; c++)
            other += memcmp(on_host(b.state[c].x, (size_t)n).data(), x[c].data(), sizeof(double) * (size_t)n) != 0;
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

// ---- few rows ----

__global__ void expected_part(const GmPlace *place, int chain, long n, double *noise)
{
    const Stream g = stream(gm_sweep_of(place, chain), VAR_x, 0);
    for (long j = threadIdx.x; j < n; j += blockDim.x) noise[j] = gm_noise(&g, j);
}

// gm_normal_rows of linalg.h by plain loops in double: D to D^-1/2, h and rows times that, M = I + rows rows', and the solves.
static std::vector<double> few_reference(const State &k, const GmPlace *place, int chain, long n, long p, const double *scale, double *s)
{
    const std::vector<solve> h = on_host(k.h, (size_t)p), rows = on_host(k.rows, (size_t)(n * p));
    const std::vector<double> D = on_host(k.D, (size_t)p), y = on_host(k.y, (size_t)n);
    std::vector<double> R(rows.begin(), rows.end()), M((size_t)(n * n)), x((size_t)p), t((size_t)n), left((size_t)n);
    double *noise = on_device<double>((size_t)(n + p + 1)), rest = scale ? scale[0] : 0;
    expected_part<<<1, 256>>>(place, chain, n + p, noise);
    const std::vector<double> e = on_host(noise, (size_t)(n + p));
    for (long i = 0; i < n; i++)
        for (long j = 0; j < p; j++) R[i * p + j] /= sqrt(D[j]);
    for (long i = 0; i < n; i++)
        for (long k2 = 0; k2 <= i; k2++) {
            double sum = i == k2;
            for (long j = 0; j < p; j++) sum += R[i * p + j] * R[k2 * p + j];
            M[i * n + k2] = sum;
        }
    for (long i = 0; i < n; i++)
        for (long j = 0; j <= i; j++) {
            for (long m = 0; m < j; m++) M[i * n + j] -= M[i * n + m] * M[j * n + m];
            M[i * n + j] = i == j ? sqrt(M[i * n + i]) : M[i * n + j] / M[j * n + j];
        }
    auto forward = [&](std::vector<double> &v) {
        for (long i = 0; i < n; i++) {
            for (long j = 0; j < i; j++) v[i] -= M[i * n + j] * v[j];
            v[i] /= M[i * n + i];
        }
    };
    for (long i = 0; i < n; i++) {
        left[i] = y[i];
        for (long j = 0; j < p; j++) left[i] -= R[i * p + j] * h[j] / sqrt(D[j]);
        rest -= y[i] * y[i];
    }
    forward(left);
    for (long i = 0; i < n; i++) rest += left[i] * left[i];
    for (long j = 0; j < p; j++) rest -= h[j] * (double)h[j] / D[j];
    *s = 1;
    if (scale) {
        expected_scale<<<1, 1>>>(place, chain, scale[1], rest, noise + n + p);
        *s = on_host(noise + n + p, 1)[0];
    }
    cudaFree(noise);
    for (long j = 0; j < p; j++) x[j] = *s * h[j] / sqrt(D[j]) + e[j];
    for (long i = 0; i < n; i++) {
        t[i] = *s * y[i] + e[p + i];
        for (long j = 0; j < p; j++) t[i] -= R[i * p + j] * x[j];
    }
    forward(t);
    for (long i = n - 1; i >= 0; i--) {
        t[i] /= M[i * n + i];
        for (long j = 0; j < i; j++) t[j] -= M[i * n + j] * t[i];
    }
    for (long j = 0; j < p; j++) {
        for (long i = 0; i < n; i++) x[j] += R[i * p + j] * t[i];
        x[j] /= sqrt(D[j]);
    }
    return x;
}

static void few(long n, long p, int chains, bool scaled)
{
    char what[80];
    snprintf(what, sizeof what, "%ld rows of %ld, %d chains%s", n, p, chains, scaled ? ", scaled" : "");
    std::vector<State> state, kept;
    const double scale[3] = { 50.0 * (double)(n + p), 3.0 * (double)n + 4, NAN };
    for (int c = 0; c < chains; c++) {
        std::vector<double> D((size_t)p), y((size_t)n), z((size_t)(n * p + n + p + 1));
        std::vector<solve> rows((size_t)(n * p)), h((size_t)p);
        double *numbers = on_device<double>(z.size());
        joint_numbers<<<64, 256>>>(3, (uint32_t)(100 + c), (long)z.size(), numbers);
        z = on_host(numbers, z.size());
        cudaFree(numbers);
        for (long e = 0; e < n * p; e++) rows[e] = (solve)z[e];
        for (long j = 0; j < p; j++) {
            h[j] = (solve)z[n * p + j];
            D[j] = exp(z[n * p + j] * 0.7) * (j == 2 ? 1e-4 : 1);          // one vague prior
        }
        for (long i = 0; i < n; i++) y[i] = 2 * z[n * p + p + i];
        State s = {}, k = {};
        for (State *each : { &s, &k }) {
            each->D = on_device<wide>((size_t)p);
            each->h = on_device<solve>((size_t)p);
            each->rows = on_device<solve>((size_t)(n * p));
            each->y = on_device<wide>((size_t)n);
            CK(cudaMemcpy(each->D, D.data(), sizeof(wide) * (size_t)p, cudaMemcpyHostToDevice));
            CK(cudaMemcpy(each->h, h.data(), sizeof(solve) * (size_t)p, cudaMemcpyHostToDevice));
            CK(cudaMemcpy(each->rows, rows.data(), sizeof(solve) * (size_t)(n * p), cudaMemcpyHostToDevice));
            CK(cudaMemcpy(each->y, y.data(), sizeof(wide) * (size_t)n, cudaMemcpyHostToDevice));
        }
        s.M = on_device<solve>((size_t)(n * n));
        s.x = on_device<wide>((size_t)p);
        s.scale = on_device<wide>(3);
        CK(cudaMemcpy(s.scale, scale, sizeof scale, cudaMemcpyHostToDevice));
        state.push_back(s);
        kept.push_back(k);
    }
    State *states = on_device<State>((size_t)chains);
    CK(cudaMemcpy(states, state.data(), sizeof(State) * (size_t)chains, cudaMemcpyHostToDevice));
    GmPlace at = {}, *place = on_device<GmPlace>(1);
    at.seed = 7;
    at.sweep = 11;
    CK(cudaMemcpy(place, &at, sizeof at, cudaMemcpyHostToDevice));
    DenseRows r = dense_rows(n, p, (long)sizeof(solve));
    r.D = offsetof(State, D);
    r.h = offsetof(State, h);
    r.rows = offsetof(State, rows);
    r.y = offsetof(State, y);
    r.scratch = on_device<unsigned char>((size_t)(r.chain * chains));
    const uint64_t at_scale = scaled ? offsetof(State, scale) : (size_t)-1;
    const unsigned y_chains = (unsigned)chains;
    const size_t bytes = (size_t)DENSE_BYTES(n, (long)chains, 8L);
    unsigned char *scratch = on_device<unsigned char>(bytes);
    gm_rows_prior<<<dim3((unsigned)(p + 255) / 256, y_chains), 256>>>(states, place, VAR_x, "x", r);
    if (n > 0) {
        gm_rows_products<<<dim3((unsigned)(n + r.chunks * DENSE_PAIRS(DENSE_TILES(n))), y_chains), DENSE_THREADS>>>(states, place, VAR_x,
                                                                                                                    r);
        const unsigned blocks = (unsigned)dense_blocks(n, chains, 132);
        if (sizeof(solve) == 8)
            gm_dense_tiles<<<blocks, DENSE_THREADS>>>(states, place, VAR_x, "x", n, chains, offsetof(State, M), (size_t)-1, (size_t)-1,
                                                      at_scale, scratch, r);
        else
            gm_rows_tiles<<<blocks, DENSE_THREADS>>>(states, place, VAR_x, "x", n, chains, offsetof(State, M), (size_t)-1, (size_t)-1,
                                                     at_scale, scratch, r);
    } else if (scaled) gm_rows_scale<<<dim3(1, y_chains), DENSE_THREADS>>>(states, place, VAR_x, at_scale, r);
    gm_rows_place<<<dim3((unsigned)(p + 31) / 32, y_chains), DENSE_THREADS>>>(states, place, "x", offsetof(State, x), at_scale, scratch, r);
    CK(cudaGetLastError());
    CK(cudaDeviceSynchronize());
    double worst = 0, worst_scale = 0;
    for (int c = 0; c < chains; c++) {
        double s, size = 0, error = 0;
        const std::vector<double> right = few_reference(kept[c], place, c, n, p, scaled ? scale : NULL, &s),
                                  x = on_host(state[c].x, (size_t)p);
        for (long j = 0; j < p; j++) {
            size = std::max(size, fabs(right[j]));
            if (!(fabs(x[j] - right[j]) <= error)) error = fabs(x[j] - right[j]);
        }
        if (!(error / size <= worst)) worst = error / size;
        if (scaled) worst_scale = std::max(worst_scale, fabs(on_host(state[c].scale, 3)[2] / s - 1));
    }
    check(what, "draw", worst, 1e-9);                    // in single precision too: it is the data that are
    if (scaled) check(what, "scale", worst_scale, 1e-9);
    check(what, "faults", on_host(place, 1)[0].fault, 0);
    for (int c = 0; c < chains; c++)
        for (State s : { state[c], kept[c] })
            for (void *array : {(void *)s.D, (void *)s.h, (void *)s.rows, (void *)s.y, (void *)s.M, (void *)s.x, (void *)s.scale})
                cudaFree(array);
    for (void *array : { (void *)states, (void *)place, (void *)r.scratch, (void *)scratch }) cudaFree(array);
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
    static const long fews[][2] = {{0, 5}, {1, 1}, {1, 40}, {31, 33}, {40, 150}, {64, 64}, {65, 300}, {130, 500}, {425, 700}};
    for (size_t k = 0; k < sizeof fews / sizeof *fews; k++) {
        if (quick && fews[k][0] > 65) break;
        few(fews[k][0], fews[k][1], 1, k % 2 == 0);
        few(fews[k][0], fews[k][1], 4, k % 2 == 1);
    }
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
