// npy.h -- arrays in NumPy's .npy format, wherever their bytes lie (data_npy.c), for files and for what an .npz file holds.
#ifndef GM_NPY_H
#define GM_NPY_H

#include "model.h"

typedef enum { NPY_F8, NPY_F4, NPY_I8, NPY_I4, NPY_I2, NPY_I1, NPY_U4, NPY_U2, NPY_U1, NPY_B1 } NpyType;

typedef struct Npy {
    const unsigned char *bytes;  // the whole file
    size_t size, begin;
    NpyType type;
    bool fortran;
    int rank;
    long dim[GM_MAX_RANK];
} Npy;

// Reads the header of bytes[size]; false after one line. `path`: for messages.
bool gm_npy_header(Npy *npy, const char *path);
// Whether all elements are there; false after one line.
bool gm_npy_whole(const Npy *npy, const char *path);
double gm_npy_element(const Npy *npy, size_t at);  // in the order of the file

#endif
