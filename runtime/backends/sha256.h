// sha256.h -- the hash SHA-256 (FIPS 180-4, 2015), by which files of data and of draws are known.
#ifndef GM_SHA256_H
#define GM_SHA256_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct GmSha256 {
    uint32_t state[8];
    uint64_t bytes;
    unsigned char block[64];
} GmSha256;

enum { GM_SHA256_ROOM = 65 };  // 64 hexadecimal digits

void gm_sha256_begin(GmSha256 *h);
void gm_sha256_add(GmSha256 *h, const void *bytes, size_t n);
void gm_sha256_end(GmSha256 *h, char text[GM_SHA256_ROOM]);
// Of a file, and how many bytes it has; false: it cannot be read (errno).
bool gm_sha256_file(const char *path, char text[GM_SHA256_ROOM], long *size);

#endif
