// number.c -- numbers as text: of the draws, where millions are written.
//
//   0.1   -3   1.7976931348623157e+308   Inf   -Inf   NaN      as C's %g writes them, and as ArviZ, pandas and R read them
#include "decimal.h"
#include "fields.h"

#include <math.h>
#include <string.h>

enum { MOST_DIGITS = 17, EIGHT = 100000000 };

// The eight digits of n < 10^8, one a byte, the first lowest: halves, quarters and digits, all at once.
static inline uint64_t eight_digits(uint64_t n)
{
    uint64_t x = n / 10000 | n % 10000 << 32;
    uint64_t high = (x * 10486 >> 20) & 0x0000007f0000007f;  // each half / 100
    x = high | (x - 100 * high) << 16;
    high = (x * 103 >> 10) & 0x000f000f000f000f;  // each quarter / 10
    return high | (x - 10 * high) << 8;
}

// The digits of n, 0 < n < 10^17, as text[first .. 16]; returns first. (Bytes of the machine run from low to high.)
static inline int digits_of(char *text, uint64_t n)
{
    const uint64_t top = n / EIGHT, most = top / EIGHT, middle = eight_digits(top - most * EIGHT), last = eight_digits(n - top * EIGHT);
    const uint64_t characters[2] = {middle + 0x3030303030303030, last + 0x3030303030303030};
    text[0] = (char)('0' + most);
    memcpy(text + 1, characters, sizeof characters);
    return most ? 0 : middle ? 1 + __builtin_ctzll(middle) / 8 : 9 + __builtin_ctzll(last) / 8;
}

// The number to `most` significant digits, without zeros at their end.
static uint64_t rounded(uint64_t significand, int *exponent, int most)
{
    static const uint64_t power[MOST_DIGITS + 1] = {1,
                                                    10,
                                                    100,
                                                    1000,
                                                    10000,
                                                    100000,
                                                    1000000,
                                                    10000000,
                                                    100000000,
                                                    1000000000,
                                                    10000000000,
                                                    100000000000,
                                                    1000000000000,
                                                    10000000000000,
                                                    100000000000000,
                                                    1000000000000000,
                                                    10000000000000000,
                                                    100000000000000000};
    int more = 0;
    while (significand >= power[most + more]) more++;
    if (more == 0) return significand;
    significand = (significand + power[more] / 2) / power[more];
    for (; significand % 10 == 0; significand /= 10) more++;
    *exponent += more;
    return significand;
}

int gm_percent_digits(long part, long all) { return 100 * (double)part >= 99.5 * (double)all ? 3 : 2; }

int gm_print_number(char *to, double x, int digits)
{
    char *const begin = to;
    if (isnan(x)) {
        memcpy(to, "NaN", 3);
        return 3;
    }
    if (signbit(x)) *to++ = '-';
    if (isinf(x)) {
        memcpy(to, "Inf", 3);
        return (int)(to + 3 - begin);
    }
    if (x == 0) {
        *to++ = '0';
        return (int)(to - begin);
    }
    int exponent;
    uint64_t significand = gm_decimal(fabs(x), &exponent);
    if (digits > 0 && digits < MOST_DIGITS) significand = rounded(significand, &exponent, digits);
    char text[2 * MOST_DIGITS];  // digits, and what copies of a fixed size may read beyond them
    const char *const first = text + digits_of(text, significand);
    const int n = (int)(text + MOST_DIGITS - first), power = exponent + n - 1;  // of the first digit
    if (power < -4 || power >= 15) {                                            // 1.25e-07
        *to = *first;
        memcpy(to + 2, first + 1, 16);
        if (n > 1) to[1] = '.';
        to += n > 1 ? n + 1 : 1;
        *to++ = 'e';
        *to++ = power < 0 ? '-' : '+';
        const unsigned size = (unsigned)(power < 0 ? -power : power);
        if (size >= 100) *to++ = (char)('0' + size / 100);
        *to++ = (char)('0' + size / 10 % 10);
        *to++ = (char)('0' + size % 10);
    } else if (power < 0) {  // 0.00125
        memcpy(to, "0.000", 5);
        memcpy(to += 1 - power, first, 17);
        to += n;
    } else if (exponent >= 0) {  // 12500
        memcpy(to, first, 16);
        memset(to += n, '0', 16);
        to += exponent;
    } else {  // 1.25
        memcpy(to, first, 16);
        memcpy(to + power + 2, first + power + 1, 16);
        to[power + 1] = '.';
        to += n + 1;
    }
    return (int)(to - begin);
}
