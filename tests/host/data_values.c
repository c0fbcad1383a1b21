// If this failed, the same numbers would mean something else in JSON, in a table or in a .npy file.
#include "toy.h"

static GmData data;

// Reads the inputs (words separated by blanks) into `data`.
static bool reads(const char *words)
{
    static char copy[1000];
    char *input[20];
    int n = 0;
    snprintf(copy, sizeof copy, "%s", words);
    for (char *w = strtok(copy, " "); w; w = strtok(NULL, " "))
        input[n++] = w;
    return gm_data_open(&data, &toy, input, n, NULL);
}

static bool equal(const double *x, const double *y, long n)
{
    for (long i = 0; i < n; i++)
        if (x[i] != y[i])
            return false;
    return true;
}

static const double y_expected[] = { 1.5, 3, -0.5, 4, 5 };
static const double X_expected[] = { 1, 2, 3, 4, 5, 6, 7, 8, 9, 10 };
static const int32_t group_expected[] = { 1, 2, 1, 2, 2 };

// Reads, compares with the numbers of toy_json, and gives the data back.
static void same_data(const char *words)
{
    bool good = reads(words);
    if (good) {
        const ToyData *d = data.data;
        good = d->N == 5 && d->J == 2 && d->K == 2 && memcmp(d->group, group_expected, sizeof group_expected) == 0 &&
               equal(d->y, y_expected, 5) && equal(d->X, X_expected, 10) && d->w[0] == 0.25 && d->w[1] == 0.75 && d->s == 2;
    }
    check(good, "the same data from: %s", words);
    gm_data_close(&data, &toy);
}

// Writes a .npy file with the header that NumPy writes.
static void put_npy(const char *path, int version, const char *descr, bool fortran, const char *shape, const void *elements, size_t bytes)
{
    char file[1000] = "\x93NUMPY", header[200];
    const size_t begin = version == 1 ? 10 : 12;
    size_t n = (size_t)snprintf(header, sizeof header, "{'descr': '%s', 'fortran_order': %s, 'shape': %s, }", descr,
                                fortran ? "True" : "False", shape);
    while ((begin + n + 1) % 64)
        header[n++] = ' ';
    header[n++] = '\n';
    file[6] = (char)version;
    file[8] = (char)(n & 255);
    file[9] = (char)(n >> 8);
    memcpy(file + begin, header, n);
    memcpy(file + begin + n, elements, bytes);
    put(path, file, begin + n + bytes);
}

static void npy_types(void)
{
    double f8[10], f8_fortran[10];
    float f4[10];
    int64_t i8[5];
    uint8_t u1[5];
    for (int i = 0; i < 10; i++) {
        f8[i] = i + 1;
        f4[i] = (float)(i + 1);
        f8_fortran[i % 2 * 5 + i / 2] = i + 1;
    }
    for (int i = 0; i < 5; i++) {
        i8[i] = group_expected[i];
        u1[i] = (uint8_t)group_expected[i];
    }
    put_text("rest.json", "{ \"group\": [1, 2, 1, 2, 2], \"y\": [1.5, 3, -0.5, 4, 5], \"w\": [0.25, 0.75] }");
    put_text("rest2.json", "{ \"X\": [[1, 2], [3, 4], [5, 6], [7, 8], [9, 10]], \"y\": [1.5, 3, -0.5, 4, 5], \"w\": [0.25, 0.75] }");
    put_npy("f8.npy", 1, "<f8", false, "(5, 2)", f8, sizeof f8);
    put_npy("f8v2.npy", 2, "<f8", false, "(5, 2)", f8, sizeof f8);
    put_npy("f8f.npy", 1, "<f8", true, "(5, 2)", f8_fortran, sizeof f8);
    put_npy("f4.npy", 1, "<f4", false, "(5, 2)", f4, sizeof f4);
    put_npy("i4.npy", 1, "<i4", false, "(5,)", group_expected, sizeof group_expected);
    put_npy("i8.npy", 1, "<i8", false, "(5,)", i8, sizeof i8);
    put_npy("u1.npy", 1, "|u1", false, "(5,)", u1, sizeof u1);
    same_data("rest.json X=f8.npy");
    same_data("rest.json X=f8v2.npy");
    same_data("rest.json X=f8f.npy");
    same_data("rest.json X=f4.npy");
    same_data("rest2.json group=i4.npy");
    same_data("rest2.json group=i8.npy");
    same_data("rest2.json group=u1.npy");
    check(reads("rest.json X=f8.npy") && gm_values_find(&data.values, "X")->map, "<f8 in C order is mapped, not copied");
    gm_data_close(&data, &toy);
}

// Blocks of the reader end anywhere: in a line, between \r and \n, behind the last line.
static void long_tables(void)
{
    enum { ROWS = 30000 };
    static char text[ROWS * 20];
    bool good = true;
    for (int end = 0; end < 3; end++)
        for (int more = 0; more < 4; more++) {
            size_t n = (size_t)sprintf(text, "%.*sgroup,y%s", 9 * more, "# a text\n# a text\n# a text\n",
                                       end == 0   ? "\n"
                                       : end == 1 ? "\r\n"
                                                  : "\r");
            for (int i = 0; i < ROWS; i++)
                n += (size_t)sprintf(text + n, "%d,%d%s", 1 + i % 2, i % 100, end == 0 ? "\n" : end == 1 ? "\r\n" : "\r");
            put("long.csv", text, n - (more == 3));
            GmValues values = { .fields = toy.data, .n_fields = toy.n_data };
            good &= gm_csv_read(&values, "long.csv", NULL, NULL);
            const GmValue *y = gm_values_find(&values, "y"), *group = gm_values_find(&values, "group");
            good = good && y && group && y->dim[0] == ROWS;
            for (int i = 0; i < ROWS && good; i++)
                good = ((const double *)y->elements)[i] == i % 100 && ((const int32_t *)group->elements)[i] == 1 + i % 2;
            gm_values_close(&values);
        }
    check(good, "long tables with each kind of line end");
}

static void tables(void)
{
    put_text("w.json", "{ \"w\": [0.25, 0.75] }");
    put_text("Xw.json", "{ \"w\": [0.25, 0.75], \"X\": [[1, 2], [3, 4], [5, 6], [7, 8], [9, 10]] }");
    put_text("all.csv", "y,X.1,name,X.2,group\n1.5,1,\"a, b\",2,1\n3,3,b,4,2\n-0.5,5,\"say \"\"c\"\"\",6,1.0\n4,7,,8,2\n5,9,e,10,2\n");
    put_text("brackets.csv", "\xef\xbb\xbf"
                             "\"X[2]\",\"X[1]\",group, y \r\n2,1,1,1.5\r\n4,3,2,3\r\n6,5,1,-0.5\r\n8,7,2,4\r\n10,9,2,5e0\r\n\r\n");
    put_text("all.tsv", "# a comment\ngroup\ty\n1\t1.5\n2\t3\n1\t-0.5\n2\t4\n2\t5");
    put_text("X.csv", "a,b\n1,2\n3,4\n5,6\n7,8\n9,10\n");
    put_text("wide.csv", "id,a,b,c\n1,1,2,0\n2,3,4,0\n3,5,6,0\n4,7,8,0\n5,9,10,0\n");
    put_text("gy.csv", "group,y\n1,1.5\n2,3\n1,-0.5\n2,4\n2,5\n");
    put_text("w.csv", "w.1,w.2\n0.25,0.75\n");
    same_data("w.json all.csv");
    same_data("w.json brackets.csv");
    same_data("Xw.json all.tsv");
    same_data("w.json gy.csv X=X.csv");
    same_data("w.json gy.csv X=wide.csv:a,b");
    same_data("w.json gy.csv X=wide.csv:a-b N=5 s=2.0");
    same_data("w.csv gy.csv X=X.csv J=2");
    put_text("returns.csv", "\xef\xbb\xbf# a comment after the mark\rgroup,y\r1,1.5\r2,3\r1,-0.5\r2,4\r2,5\r");
    put_text("from_zero.csv", "X.1,X.0,group,y,X.old,Y.1\n2,1,1,1.5,,\n4,3,2,3,,\n6,5,1,-0.5,,\n8,7,2,4,,\n10,9,2,5,,\n");
    put_text("years.csv", "1990,1991\n1,2\n3,4\n5,6\n7,8\n9,10\n");
    put_text("quoted.csv", "\"group\" ,y\n\"1\" ,1.5\n2,3\n1,-0.5\n# 1, of 2, comments\n# remark\n2,4\n2,5\n#\n");
    put_text("lines.csv", "group,note,y\r\n1,\"two\r\nlines, \"\"quoted\"\"\",1.5\r\n2,5\" pipe,3\r\n1,\"\n# no comment\n\n\",-0.5\r\n"
                          "2,\"\"\"\n\"\"\",4\r\n2,,5\r\n");
    same_data("Xw.json returns.csv");
    same_data("Xw.json lines.csv");
    same_data("w.json from_zero.csv");
    same_data("w.json gy.csv X=years.csv");
    same_data("Xw.json quoted.csv");
}

static void missing_values(void)
{
    const bool good = reads("na.json");
    const ToyData *d = data.data;
    check(good && data.missing[DATA_y].count == 4 && data.missing[DATA_y].index[0] == 0 && data.missing[DATA_y].index[3] == 4 &&
              isnan(d->y[1]) && d->y[2] == 2,
          "null, \"NA\" and \"NaN\" are missing values of y");
    gm_data_close(&data, &toy);
    put_text("na.csv", "group,y,X.1\n1,NA,1\n2,,1\n1,2,1\n1,nan,1\n2,.,1\n");
    check(reads("w.json na.csv") && data.missing[DATA_y].count == 4, "NA, nothing, nan and . are missing values in a table");
    gm_data_close(&data, &toy);
}

int main(void)
{
    enter_scratch();
    gm_quiet = true;
    put_text("data.json", toy_json);
    put_text("other_forms.json",
             "{ \"N\": [5], \"J\": 2.0, \"K\": 2, \"group\": [1, 2.0, 1, 2, 2], \"y\": [1.5, 3, -0.5, 4, 5e0], \"other\": {\"a\": 1},\n"
             "  \"X\": [[1, 2], [3, 4], [5, 6], [7, 8], [9, 10]], \"w\": [0.25, 0.75], \"s\": 2 }\n");
    put_text("na.json", "{ \"J\": 2, \"group\": [1, 2, 1, 2, 2], \"y\": [null, \"NA\", 2, \"NaN\", \"nan\"], \"X\": [[1], [1], [1], [1], "
                        "[1]], \"w\": [0.5, 0.5] }");
    same_data("data.json");
    same_data("other_forms.json");
    put_text("mark.json", "\xef\xbb\xbf");
    FILE *more = fopen("mark.json", "ab");
    check(more && fputs(toy_json, more) > 0 && fclose(more) == 0, "a byte order mark");
    same_data("mark.json");
    npy_types();
    tables();
    long_tables();
    missing_values();
    return finish_tests();
}
