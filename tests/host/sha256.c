// sha256.c (test) -- if this failed, the hash of a file would depend on the processor, or be another than SHA-256.
//
// Messages of FIPS 180-4 and its examples; both ways to add a block agree on random messages of all lengths to 300 bytes, added in pieces.
#include "../../runtime/backends/sha256.c"

#include <stdlib.h>

static int failed;

static void is(const char *what, const char *found, const char *expected)
{
    const bool good = strcmp(found, expected) == 0;
    failed += !good;
    printf("%s %s: %s\n", good ? "ok    " : "FAILED", what, found);
}

static void hash_of(const char *text, size_t times, char hash[GM_SHA256_ROOM])
{
    GmSha256 h;
    gm_sha256_begin(&h);
    for (size_t k = 0; k < times; k++) gm_sha256_add(&h, text, strlen(text));
    gm_sha256_end(&h, hash);
}

static void both_ways(void)
{
#if defined(__x86_64__)
    if (!has_instructions()) {
        printf("skipped: this processor has no instructions for it\n");
        return;
    }
    int differ = 0;
    for (int trial = 0; trial < 1000; trial++) {
        unsigned char block[64];
        uint32_t one[8], other[8];
        for (int k = 0; k < 64; k++) block[k] = (unsigned char)(rand() >> 7);
        for (int k = 0; k < 8; k++) one[k] = other[k] = (uint32_t)rand() << 8 ^ (uint32_t)rand();
        add_block_anywhere(one, block);
        add_block_by_instructions(other, block);
        differ += memcmp(one, other, sizeof one) != 0;
    }
    failed += differ > 0;
    printf("%s 1000 blocks both ways: %d differ\n", differ ? "FAILED" : "ok    ", differ);
#endif
}

static void in_pieces(void)
{
    int differ = 0;
    for (size_t n = 0; n <= 300; n++) {
        unsigned char text[300];
        char whole[GM_SHA256_ROOM], pieces[GM_SHA256_ROOM];
        for (size_t k = 0; k < n; k++) text[k] = (unsigned char)(rand() >> 7);
        GmSha256 h;
        gm_sha256_begin(&h);
        gm_sha256_add(&h, text, n);
        gm_sha256_end(&h, whole);
        gm_sha256_begin(&h);
        for (size_t at = 0, some; at < n; at += some) {
            some = 1 + (size_t)rand() % 150;
            if (some > n - at) some = n - at;
            gm_sha256_add(&h, text + at, some);
        }
        gm_sha256_end(&h, pieces);
        differ += strcmp(whole, pieces) != 0;
    }
    failed += differ > 0;
    printf("%s 301 lengths in pieces: %d differ\n", differ ? "FAILED" : "ok    ", differ);
}

int main(void)
{
    char hash[GM_SHA256_ROOM];
    hash_of("", 1, hash);
    is("no bytes", hash, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    hash_of("abc", 1, hash);
    is("abc", hash, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    hash_of("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq", 1, hash);
    is("56 bytes", hash, "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
    hash_of("aaaaaaaaaa", 100000, hash);
    is("a million a", hash, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
    both_ways();
    in_pieces();
    return failed > 0;
}
