// If this failed, predictors of several outputs on a GPU, or the sums of rows for their coefficients, would be wrong for some sizes. Or
// they would depend on which chains run together.
//
// Needs a GPU. Seeds are fixed; nothing is random but data.
// nvcc:
#include "products.h"
#include <algorithm>
#include <cmath>

static int failures;

static void check(const char *what, const char *statistic, double value, double bound)
{
    const int ok = value <= bound;
    failures += !ok;
    printf("%s %-72s %-14s %10.3g  bound %.3g\n", ok ? "ok    " : "failed", what, statistic, value, bound);
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

// Predictors against plain loops in double; sums and totals against plain loops over the weights and predictors that came out; chains
// together or alone: the same bits.
static void one(long n, long p, long K, int chains, bool with_e)
{
    char what[160];
    ProductsPlan plan;
    snprintf(what, sizeof what, "X[%ld, %ld], %ld%s outputs, %d chains", n, p, K, with_e ? " + 1" : "", chains);
    if (!products_plan(n, p, K + with_e, chains, 2, PRODUCTS_SHARED, &plan)) {
        check(what, "does not fit", 1, 0);
        return;
    }
    snprintf(what, sizeof what, "X[%ld, %ld], %ld%s outputs, %d chains (%s, %d x %d, tile %d)", n, p, K, with_e ? " + 1" : "", chains,
             plan.kernel, plan.pass.batches, plan.pass.together, 16 * plan.pass.groups);
    std::vector<float> X((size_t)(n * p));
    std::vector<int> y((size_t)n);
    for (float &x : X) x = (float)(2 * host_uniform() - 1);
    for (int &v : y) v = 1 + (int)(host_uniform() * (double)K);
    Data d = { n, p, K, on_device(X), on_device(y) };
    std::vector<State> states((size_t)chains);
    std::vector<std::vector<double> > B((size_t)chains), e((size_t)chains);
    for (int c = 0; c < chains; c++) {
        State *s = &states[c];
        for (long j = 0; j < p * K; j++) B[c].push_back((2 * host_uniform() - 1) * 3 / sqrt((double)p));
        for (long j = 0; j < p; j++) e[c].push_back((2 * host_uniform() - 1) * 3 / sqrt((double)p));
        s->B = on_device(B[c]);
        s->e = on_device(e[c]);
        s->X_B = on_device(std::vector<real>((size_t)(n * K), NAN));
        s->weight_B = on_device(std::vector<real>((size_t)(n * K), NAN));
        s->X_e = with_e ? on_device(std::vector<real>((size_t)n, NAN)) : NULL;
        s->weight_e = with_e ? on_device(std::vector<real>((size_t)n, NAN)) : NULL;
        s->out_B = on_device(std::vector<double>((size_t)(p * K), NAN));
        s->out_e = on_device(std::vector<double>((size_t)p, NAN));
        s->sums = on_device(std::vector<double>((size_t)K, NAN));
        s->totals = on_device(std::vector<double>(2, NAN));
    }
    State *on = on_device(states);
    std::vector<int32_t> all(1, chains);
    for (int c = 0; c < chains; c++) all.push_back(c);
    int32_t *going = on_device(all);
    const GmPlace where = { 7, 11, 0, chains, going };
    GmPlace *place = on_device(std::vector<GmPlace>(1, where));
    products_prepare(&plan, d, with_e);
    products_launch(&plan, d, on, place, 0);
    CK(cudaDeviceSynchronize());
    products_free(&plan);

    double worst_eta = 0, worst_out = 0, worst_sum = 0, worst_total = 0;
    std::vector<std::vector<double> > out((size_t)chains), total((size_t)chains);
    const auto worse = [](double *worst, double error) { if (!(error <= *worst)) *worst = error; };
    for (int c = 0; c < chains; c++) {
        const long all = K + with_e;
        const std::vector<real> eta_B = on_host(states[c].X_B, (size_t)(n * K)), w_B = on_host(states[c].weight_B, (size_t)(n * K));
        const std::vector<real> eta_e = with_e ? on_host(states[c].X_e, (size_t)n) : std::vector<real>(),
                                w_e = with_e ? on_host(states[c].weight_e, (size_t)n) : std::vector<real>();
        out[c] = on_host(states[c].out_B, (size_t)(p * K));
        total[c] = on_host(states[c].totals, 2);
        const std::vector<double> out_e = on_host(states[c].out_e, (size_t)p), sums = on_host(states[c].sums, (size_t)K);
        std::vector<double> sum((size_t)(all * (p + 1)), 0.0), size((size_t)(all * (p + 1)), 0.0);
        double lp = 0, lp_size = 0;
        for (long i = 0; i < n; i++) {
            const float *const x = &X[(size_t)(i * p)];
            double most = -INFINITY, lse = 0;
            for (long k = 0; k < all; k++) {
                double m = 0, s = 0;
                const double w = k < K ? w_B[i * K + k] : w_e[i], eta = k < K ? eta_B[i * K + k] : eta_e[i];
                for (long j = 0; j < p; j++) {
                    const double t = x[j] * (k < K ? B[c][j * K + k] : e[c][j]);
                    m += t;
                    s += fabs(t);
                    sum[k * (p + 1) + j] += w * x[j];
                    size[k * (p + 1) + j] += fabs(w * x[j]);
                }
                sum[k * (p + 1) + p] += w;
                size[k * (p + 1) + p] += fabs(w);
                worse(&worst_eta, fabs(eta - m) / (s + 1e-300));
                if (k < K) most = std::max(most, eta);
            }
            for (long k = 0; k < K; k++) lse += exp(eta_B[i * K + k] - most);
            const double one = eta_B[i * K + y[i] - 1] - most - log(lse), two = with_e ? 0.5 * eta_e[i] * eta_e[i] : 0;
            lp += one - two;
            lp_size += fabs(one) + two;
        }
        for (long k = 0; k < all; k++)
            for (long j = 0; j <= p; j++) {
                if (j == p && k == K) continue;
                const double got = j == p ? sums[k] : k < K ? out[c][j * K + k] : out_e[j];
                worse(j == p ? &worst_sum : &worst_out, fabs(got - sum[k * (p + 1) + j]) / (size[k * (p + 1) + j] + 1e-300));
            }
        worse(&worst_total, fabs(total[c][0] - lp) / (lp_size + 1e-300));
        worse(&worst_total, fabs(total[c][1] - (double)n));
    }
    check(what, "eta", worst_eta, 1e-6);
    check(what, "out", worst_out, 2e-6);
    check(what, "sums", worst_sum, 2e-6);
    check(what, "totals", worst_total, 1e-12);

    // Some chains alone: every other one, then the last. Those that are left out keep what they have.
    long other = 0;
    for (int few = 0; few < 2 && chains > 1; few++) {
        std::vector<int32_t> some(1, 0);
        for (int c = few ? chains - 1 : 1; c < chains; c += 2) some.push_back(c);
        some[0] = (int32_t)some.size() - 1;
        CK(cudaMemcpy(going, some.data(), some.size() * sizeof(int32_t), cudaMemcpyHostToDevice));
        for (int c = 0; c < chains; c++) {
            CK(cudaMemset(states[c].out_B, 255, (size_t)(p * K) * sizeof(double)));
            CK(cudaMemset(states[c].totals, 255, 2 * sizeof(double)));
        }
        products_prepare(&plan, d, with_e);
        products_launch(&plan, d, on, place, 0);
        CK(cudaDeviceSynchronize());
        products_free(&plan);
        for (int c = 0; c < chains; c++) {
            const bool goes = few ? c == chains - 1 : c % 2 == 1;
            const std::vector<double> again = on_host(states[c].out_B, (size_t)(p * K)), total_again = on_host(states[c].totals, 2);
            if (goes)
                other += memcmp(again.data(), out[c].data(), again.size() * sizeof(double)) != 0 ||
                         memcmp(total_again.data(), total[c].data(), 2 * sizeof(double)) != 0;
            else other += total_again[0] == total_again[0] || again[0] == again[0];
        }
    }
    if (chains > 1) check(what, "bits, some of them", (double)other, 0);
    const int32_t one_chain[] = { 1, 0 };
    CK(cudaMemcpy(going, one_chain, sizeof one_chain, cudaMemcpyHostToDevice));

    other = 0;
    for (int c = 0; c < chains && chains > 1; c++) {
        CK(cudaMemset(states[c].out_B, 255, (size_t)(p * K) * sizeof(double)));
        ProductsPlan alone;
        products_plan(n, p, K + with_e, 1, 2, PRODUCTS_SHARED, &alone);
        products_prepare(&alone, d, with_e);
        products_launch(&alone, d, on + c, place, 0);
        CK(cudaDeviceSynchronize());
        products_free(&alone);
        const std::vector<double> again = on_host(states[c].out_B, (size_t)(p * K)), total_again = on_host(states[c].totals, 2);
        other += memcmp(again.data(), out[c].data(), again.size() * sizeof(double)) != 0 ||
                 memcmp(total_again.data(), total[c].data(), 2 * sizeof(double)) != 0;
    }
    if (chains > 1) check(what, "bits, alone", (double)other, 0);

    cudaFree(d.X);
    cudaFree(d.y);
    cudaFree(on);
    cudaFree(place);
    cudaFree(going);
    for (const State &s : states) {
        void *const arrays[] = { s.B, s.e, s.out_B, s.out_e, s.sums, s.totals, s.X_B, s.X_e, s.weight_B, s.weight_e };
        for (void *a : arrays) cudaFree(a);
    }
}

int main(int argc, char **argv)
{
    const int quick = argc > 1 && !strcmp(argv[1], "quick");     // for a run under compute-sanitizer
    static const long widths[] = { 1, 7, 8, 15, 16, 33, 63, 64, 100, 127, 128, 141, 255, 256, 400, 511, 512, 785, 780, 784, 786, 788 };
    static const int chains[] = { 4, 1, 7, 2, 16 }, outputs[] = { 2, 10, 3, 5 };
    int k = 0;
    for (long p : widths) {
        const long n = quick ? 40 + k : std::min(3001L, 400000 / p + 37);
        one(n, p, outputs[k % 4], quick ? 1 + k % 4 : chains[k % 5], k % 3 == 1);
        k++;
    }
    if (!quick) {
        for (long n = 1; n <= 65; n += 16) one(n, 141, 10, 3, true);
        one(300001, 20, 4, 2, false);
        one(20011, 785, 10, 4, false);
        one(500, 100, 80, 1, false);
        one(500, 200, 63, 1, true);
        one(500, 500, 48, 2, false);
    }
    ProductsPlan plan;
    check("a matrix of 900 columns does not fit", "fits", products_plan(1000, 900, 2, 1, 1, PRODUCTS_SHARED, &plan), 0);
    check("41 outputs of 785 columns do not fit", "fits", products_plan(1000, 785, 41, 1, 1, PRODUCTS_SHARED, &plan), 0);
    printf("%s: %d failed\n", failures ? "failed" : "ok", failures);
    return failures > 0;
}
