#include "device.h"
#include <stdlib.h>
void gm_device_each(GmRun *run, const char *kernel, long n) { abort(); }
void gm_device_colours(GmRun *run, const char *kernel, long n, long colours) { abort(); }
void gm_device_team(GmRun *run, const char *kernel, long work) { abort(); }
void gm_device_once(GmRun *run, const char *kernel) { abort(); }
void gm_device_shared(GmRun *run, const char *kernel, long work, int chains) { abort(); }
void gm_device_sweeps(GmRun *run, void (*sweep)(GmRun *)) { abort(); }
double gm_device_result(GmRun *run, int chain) { abort(); }
void gm_device_rows(GmRun *run, const char *kernel, long n, long p, const void *X, size_t beta, size_t out) { abort(); }
void gm_device_gram(GmRun *run, long n, long p, double scale, const void *X, void *out) { abort(); }
void gm_device_weighted_gram(GmRun *run, long n, long p, const void *X, size_t w, size_t out) { abort(); }
void gm_device_row_sums(GmRun *run, long n, long p, const void *X, size_t w, size_t out) { abort(); }
void gm_device_normal_dense(GmRun *run, uint32_t var, const char *name, long n, size_t J, size_t h, size_t x, size_t scale) { abort(); }
void gm_device_normal_arrow(GmRun *run, uint32_t var, const char *name, long n, size_t J, size_t h, size_t x, long m, size_t D, size_t E,
                            size_t k, size_t u, size_t scale) { abort(); }
void gm_device_normal_rows(GmRun *run, uint32_t var, const char *name, long n, long p, size_t D, size_t h, size_t rows, size_t y, size_t M,
                           size_t x, size_t scale) { abort(); }
