// If this failed, a row pass on a GPU would give wrong predictors, draws or sums for some width of the matrix, or results that depend on
// what runs beside them; or latents in single precision would come from the wrong law.
//
// Needs a GPU. Seeds are fixed; false alarms: 7e-10 for a Kolmogorov-Smirnov bound of 3.3, 2e-9 for a mean at 6.
// nvcc: -DROWS_KEEP_DOT
// nvcc: -DROWS_KEEP_DOT -DGM_PRECISION=double
#include "rows.h"
#include <algorithm>
#include <vector>
#include "../runtime/normal_law.h"

static int failures;

static void check(const char *what, const char *statistic, double value, double bound)
{
    const int ok = value <= bound;
    failures += !ok;
    printf("%s %-58s %-14s %10.3g  bound %.3g\n", ok ? "ok    " : "failed", what, statistic, value, bound);
}

template <class T> static T *on_device(const std::vector<T> &v)
{
    T *p;
    CK(cudaMalloc(&p, (v.size() * sizeof(T) + 16 + 255) / 256 * 256));
    CK(cudaMemcpy(p, v.data(), v.size() * sizeof(T), cudaMemcpyHostToDevice));
    return p;
}

template <class T> static std::vector<T> on_host(const T *p, size_t n)
{
    std::vector<T> v(n);
    CK(cudaMemcpy(v.data(), p, n * sizeof(T), cudaMemcpyDeviceToHost));
    return v;
}

static uint64_t state_of_host = 20240607;
static double host_uniform(void)
{
    state_of_host = state_of_host * 6364136223846793005ull + 1442695040888963407ull;
    return (double)(state_of_host >> 11) * 1.11022302462515654e-16;
}

static double ks(std::vector<double> &u)
{
    std::sort(u.begin(), u.end());
    double distance = 0;
    const double n = (double)u.size();
    for (size_t i = 0; i < u.size(); i++) {
        distance = std::max(distance, std::max(u[i] - i / n, (i + 1) / n - u[i]));
        if (u[i] != u[i]) return NAN;
    }
    return distance * sqrt(n);
}

// One matrix: dots and sums against plain loops, the law of all draws, and that chains read together or alone give the same bits.
static void one_matrix(long n, long p, int chains)
{
    char what[100];
    const double fine = sizeof(real) == 4 ? 1e-5 : 1e-13;
    std::vector<real> X((size_t)(n * p));
    std::vector<unsigned char> y((size_t)n);
    for (real &x : X) x = (real)(2 * host_uniform() - 1);
    for (unsigned char &v : y) v = host_uniform() < 0.6;
    Data d;
    d.N = n;
    d.p = p;
    d.X = on_device(X);
    d.y = on_device(y);
    std::vector<State> states((size_t)chains);
    std::vector<std::vector<double> > beta((size_t)chains), alpha((size_t)chains);
    for (int c = 0; c < chains; c++) {
        alpha[c].assign(1, 0.3 * c);
        for (long j = 0; j < p; j++) beta[c].push_back((2 * host_uniform() - 1) * 3 / sqrt((double)p));
        states[c].alpha = on_device(alpha[c]);
        states[c].beta = on_device(beta[c]);
        states[c].z = on_device(std::vector<real>((size_t)n, (real)NAN));
        states[c].dot = on_device(std::vector<real>((size_t)n, (real)NAN));
        states[c].shift = on_device(std::vector<double>((size_t)p, NAN));
        states[c].squares = on_device(std::vector<double>(1, NAN));
    }
    State *on = on_device(states);
    std::vector<int32_t> all(1, chains);
    for (int c = 0; c < chains; c++) all.push_back(c);
    int32_t *going = on_device(all);
    const GmPlace where = { 7, 11, 0, chains, going };
    GmPlace *place = on_device(std::vector<GmPlace>(1, where));
    long most = 0;
    for (int c = 1; c <= 4; c++) most = std::max(most, row_plan(n, p, c, (int)sizeof(real), 227 * 1024).partial);
    double *partial;
    CK(cudaMalloc(&partial, (size_t)most * sizeof(double)));

    launch_rows(d, on, place, chains, 4, 3, partial);
    CK(cudaDeviceSynchronize());
    double worst_dot = 0, worst_sum = 0, worst_total = 0;
    std::vector<double> law;
    std::vector<std::vector<real> > z((size_t)chains);
    std::vector<std::vector<double> > shift((size_t)chains);
    for (int c = 0; c < chains; c++) {
        const std::vector<real> dot = on_host(states[c].dot, (size_t)n);
        z[c] = on_host(states[c].z, (size_t)n);
        shift[c] = on_host(states[c].shift, (size_t)p);
        std::vector<double> sum((size_t)p, 0.0), size((size_t)p, 0.0);
        for (long i = 0; i < n; i++) {
            double m = 0, s = 0;
            for (long j = 0; j < p; j++) {
                const double x = X[i * p + j], t = x * beta[c][j], w = z[c][i] * x;
                m += t;
                s += fabs(t);
                sum[j] += w;
                size[j] += fabs(w);
            }
            const double error = fabs(dot[i] - m) / (s + 1e-300);
            if (!(error <= worst_dot)) worst_dot = error;
            m += alpha[c][0];
            law.push_back(y[i] == 1 ? normal_between(z[c][i] - m, -m, INFINITY) : normal_between(m - z[c][i], m, INFINITY));
        }
        for (long j = 0; j < p; j++) {
            const double error = fabs(shift[c][j] - sum[j]) / size[j];
            if (!(error <= worst_sum)) worst_sum = error;
        }
        double squares = 0;
        for (long i = 0; i < n; i++) squares += (double)z[c][i] * z[c][i];
        const double error = fabs(on_host(states[c].squares, 1)[0] - squares) / squares;
        if (!(error <= worst_total)) worst_total = error;
    }
    const RowPlan plan = row_plan(n, p, chains, (int)sizeof(real), 227 * 1024);
    snprintf(what, sizeof what, "X[%ld, %ld], %d chains (%s, %ld chunks, %d stages)", n, p, chains, plan.kernel, plan.pass.chunks,
             plan.pass.stages);
    check(what, "dot", worst_dot, fine);
    check(what, "sum", worst_sum, fine);
    check(what, "total", worst_total, fine);
    check(what, "KS of z", ks(law), 3.3);

    // Chains one by one, then two by two, then sums without dots and dots without sums.
    for (int together = 1; together <= 2; together++) {
        for (int c = 0; c < chains; c++) CK(cudaMemset(states[c].z, 255, (size_t)n * sizeof(real)));
        launch_rows(d, on, place, chains, together, 3, partial);
        long other = 0;
        for (int c = 0; c < chains; c++) {
            const std::vector<real> again = on_host(states[c].z, (size_t)n);
            const std::vector<double> shift_again = on_host(states[c].shift, (size_t)p);
            other += memcmp(again.data(), z[c].data(), (size_t)n * sizeof(real)) != 0;
            other += memcmp(shift_again.data(), shift[c].data(), (size_t)p * sizeof(double)) != 0;
        }
        if (chains > 1 || together == 1) check(what, together == 1 ? "bits, alone" : "bits, in twos", (double)other, 0);
    }
    // The last chain alone, as the first of those that go on.
    const int32_t last_chain[] = { 1, chains - 1 };
    long other = 0;
    CK(cudaMemcpy(going, last_chain, sizeof last_chain, cudaMemcpyHostToDevice));
    for (int c = 0; c < chains; c++) CK(cudaMemset(states[c].shift, 255, (size_t)p * sizeof(double)));
    launch_rows(d, on, place, chains, 4, 3, partial);
    for (int c = 0; c < chains; c++) {
        const std::vector<double> again = on_host(states[c].shift, (size_t)p);
        other += c == chains - 1 ? memcmp(again.data(), shift[c].data(), (size_t)p * sizeof(double)) != 0 : again[0] == again[0];
    }
    check(what, "bits, the last alone", (double)other, 0);
    CK(cudaMemcpy(going, all.data(), all.size() * sizeof(int32_t), cudaMemcpyHostToDevice));

    for (int c = 0; c < chains; c++) CK(cudaMemset(states[c].shift, 255, (size_t)p * sizeof(double)));
    launch_rows(d, on, place, chains, 4, 1, partial);
    other = 0;
    for (int c = 0; c < chains; c++) {
        const std::vector<real> again = on_host(states[c].z, (size_t)n);
        other += memcmp(again.data(), z[c].data(), (size_t)n * sizeof(real)) != 0;
        const std::vector<double> untouched = on_host(states[c].shift, (size_t)p);
        for (double v : untouched) other += v == v;
    }
    check(what, "dots alone", (double)other, 0);
    launch_rows(d, on, place, chains, 4, 2, partial);
    double worst = 0;
    for (int c = 0; c < chains; c++) {
        const std::vector<real> dot = on_host(states[c].dot, (size_t)n);
        const std::vector<real> w = on_host(states[c].z, (size_t)n);
        const std::vector<double> s = on_host(states[c].shift, (size_t)p);
        std::vector<double> sum((size_t)p, 0.0), size((size_t)p, 0.0);
        for (long i = 0; i < n; i++) {
            if (!(fabs((double)dot[i]) <= worst)) worst = fabs((double)dot[i]);
            for (long j = 0; j < p; j++) {
                sum[j] += (double)w[i] * X[i * p + j];
                size[j] += fabs((double)w[i] * X[i * p + j]);
            }
        }
        for (long j = 0; j < p; j++)
            if (!(fabs(s[j] - sum[j]) / size[j] <= worst)) worst = fabs(s[j] - sum[j]) / size[j];
    }
    check(what, "sums alone", worst, fine);

    cudaFree(d.X);
    cudaFree(d.y);
    cudaFree(on);
    cudaFree(place);
    cudaFree(going);
    cudaFree(partial);
    for (int c = 0; c < chains; c++) {
        cudaFree(states[c].alpha);
        cudaFree(states[c].beta);
        cudaFree(states[c].z);
        cudaFree(states[c].dot);
        cudaFree(states[c].shift);
        cudaFree(states[c].squares);
    }
}

__global__ void draw_truncated(long n, real h, real q, real lo, real hi, uint32_t variable, real *x)
{
    Sweep at;
    at.seed = 20240607;
    at.chain = 0;
    at.sweep = 1;
    for (long i = blockIdx.x * (long)blockDim.x + threadIdx.x; i < n; i += (long)gridDim.x * blockDim.x) {
        Stream g = stream(at, variable, i);
        x[i] = normal_natural_truncated(&g, h, q, lo, hi);
    }
}

// The law on [a, b] in sd for sd = 1 / sqrt(-2 q).
static void truncated(double h, double q, double lo, double hi)
{
    static uint32_t variable = 100;
    char what[100];
    const long n = 1000000;
    real *x;
    CK(cudaMalloc(&x, n * sizeof(real)));
    draw_truncated<<<1024, 256>>>(n, (real)h, (real)q, (real)lo, (real)hi, variable++, x);
    CK(cudaGetLastError());
    const std::vector<real> v = on_host(x, (size_t)n);
    cudaFree(x);
    const double mean = -h / (2 * q), sd = 1 / sqrt(-2 * q);
    const double a = ((real)lo - mean) / sd, b = ((real)hi - mean) / sd;
    const int mirrored = b < -a;                         // held against the side where the ends are small
    std::vector<double> u;
    long outside = 0;
    double sum = 0, squares = 0;
    for (real r : v) {
        const double t = (r - mean) / sd;
        outside += !(r >= (real)lo && r <= (real)hi);
        u.push_back(mirrored ? normal_between(-t, -b, -a) : normal_between(t, a, b));
        sum += t;
        squares += t * t;
    }
    snprintf(what, sizeof what, "h %g, q %g on [%g, %g]", h, q, lo, hi);
    check(what, "outside", (double)outside, 0);
    check(what, "KS", ks(u), 3.3);
    if (hi == INFINITY && a < 20) {
        const double r = exp(-0.5 * a * a) / (sqrt(2 * GM_PI) * 0.5 * erfc(a / sqrt(2.0)));
        check(what, "z of mean", fabs(sum / n - r) / sqrt((1 + a * r - r * r) / n), 6);
        const double variance = squares / n - (sum / n) * (sum / n);
        check(what, "variance", fabs(variance / (1 + a * r - r * r) - 1), 0.02);
    }
}

int main(int argc, char **argv)
{
    const int quick = argc > 1 && !strcmp(argv[1], "quick");     // for a run under compute-sanitizer
    static const long widths[] = {1,   2,   3,   7,   8,   9,   12,   16,   17,   31,   32,   33,   63,   100,  128,   129,   141,  200,
                                  256, 257, 500, 512, 513, 785, 1000, 1024, 1025, 1500, 3000, 4095, 4097, 6001, 16384, 16385, 20001};
    int k = 0;
    for (long p : widths) {
        const long n = quick ? 40 + k : std::min(20011L, 3000000 / p + 37);
        static const int chains[] = { 4, 1, 7, 2, 3 };
        one_matrix(n, p, chains[k++ % 5]);
        if (quick && p > 3000) break;
    }
    if (!quick) {
        for (long n = 1; n <= 65; n += 8) one_matrix(n, 141, 4);
        one_matrix(1000003, 5, 4);
        one_matrix(300001, 24, 4);
        static const double means[] = { -40, -8, -4.01, -3.99, -3, -1, 0, 0.5, 3, 8, 14 };
        for (double mean : means) {
            truncated(mean, -0.5, 0, INFINITY);
            truncated(-mean, -0.5, -INFINITY, 0);
        }
        static const double ends[][2] = {{-1, 2}, {-0.02, 0.02}, {0.5, 0.6}, {-3, -1}, {2, 30}, {6, 6.2}, {-30, 0.25}, {-9, 9}};
        for (size_t e = 0; e < sizeof ends / sizeof *ends; e++) truncated(12, -2, 3 + 0.5 * ends[e][0], 3 + 0.5 * ends[e][1]);
    }
    printf("%s: %d failed\n", failures ? "failed" : "ok", failures);
    return failures > 0;
}
