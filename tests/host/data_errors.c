// If this failed, bad data would be taken as good, crash the program, or be refused in words that do not say where it is wrong.
#include "toy.h"

// The data of toy_json with one member replaced.
static void put_json(const char *path, const char *name, const char *value)
{
    static const char *const names[] = {"N", "J", "K", "group", "y", "X", "w"};
    static const char *const values[] = {
        "5", "2", "2", "[1, 2, 1, 2, 2]", "[1.5, 3, -0.5, 4, 5]", "[[1, 2], [3, 4], [5, 6], [7, 8], [9, 10]]", "[0.25, 0.75]"};
    char text[2000];
    size_t n = (size_t)snprintf(text, sizeof text, "{ \"none\": 0");
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        n += (size_t)snprintf(text + n, sizeof text - n, ", \"%s\": %s", names[i], strcmp(names[i], name) == 0 ? value : values[i]);
    if (strcmp(name, "s") == 0) n += (size_t)snprintf(text + n, sizeof text - n, ", \"s\": %s", value);
    snprintf(text + n, sizeof text - n, " }");
    put_text(path, text);
}

// The inputs must be refused with status 2 and a line that holds `message`; nothing may be written.
static void refused(const char *inputs, const char *message)
{
    char words[1000];
    snprintf(words, sizeof words, "%s --samples 2 --warmup 1 --chains 1 -o draws", inputs);
    const int status = fit(words);
    const bool good = status == 2 && holds("err.txt", message) && system("ls draws* >/dev/null 2>&1") != 0;
    check(good, "%s: status %d, `%s`", inputs, status, message);
    if (!good) {
        char *text = get_text("err.txt");
        printf("      it said: %s", text);
        free(text);
    }
}

static void bad_value(const char *name, const char *value, const char *message)
{
    put_json("d.json", name, value);
    refused("d.json", message);
}

static void values(void)
{
    bad_value("group", "[1, 2, 3, 2, 2]",
              "d.json: group[3] = 3 is above its upper bound 2 (declared int<lower=1, upper=J> group[N], toy.gm:5)");
    bad_value("group", "[1, 2, 0, 2, 2]", "group[3] = 0 is below its lower bound 1");
    bad_value("group", "[1, 2, 1.5, 2, 2]", "d.json: group[3] = 1.5 is not a whole number");
    bad_value("group", "[1, 2, null, 2, 2]", "group[3] is missing");
    bad_value("group", "[1, 2, 3000000000, 2, 2]", "group[3] = 3000000000 does not fit");
    bad_value("group", "[1, 2, 1, 2]", "d.json: group has size 4, but should have 5");
    bad_value("group", "3", "group is a number, but should be 5");
    bad_value("group", "[[1, 2, 1, 2, 2]]", "group has size 1 x 5, but should have 5");
    bad_value("y", "[1, 2, \"three\", 4, 5]", "y[3] = \"three\" is not a number");
    bad_value("y", "[1, 2, {}, 4, 5]", "y[3] is an object");
    bad_value("y", "[1, 2, \"3\", 4, 5]", "y[3] = \"3\" is a string, not a number");
    bad_value("y", "[1, 2, true, 4, 5]", "y[3] = true is not a number: true and false are for ints");
    bad_value("y", "[1, 2, [3], 4, 5]", "y[3] is an array where a number should be");
    bad_value("y", "[1, 2, 1e400, 4, 5]", "d.json:1:");
    bad_value("group", "[1, 2, NaN, 2, 2]", "group[3] is missing");
    bad_value("y", "[1, 2, \"Inf\", 4, 5]", "y[3] = inf is above its upper bound 100");
    bad_value("y", "[1, 2, \"1e999\", 4, 5]", "is too large for a double");
    bad_value("X", "[[1, 2], [3, 4], [5, 6, 7], [7, 8], [9, 10]]",
              "the rows of X differ in length: the one that begins at X[3, 1] has 3 values, the first has 2");
    bad_value("X", "[[1, 2], [3, 4], 5, [7, 8], [9, 10]]", "X[3, 1] is a number where an array of 2 should be");
    bad_value("X", "[[1, 2, 3, 4, 5], [6, 7, 8, 9, 10]]", "X has size 2 x 5, but should have 5 x 2");
    bad_value("X", "[]", "X has size 0, but should have 5 x 2");
    bad_value("X", "[[[[[[[1]]]]]]]", "nested more than 6 deep");
    bad_value("X", "[[1, 2], [3, null], [5, 6], [7, 8], [9, 10]]", "X[2, 2] is missing");
    bad_value("w", "[0.5, 0.6]", "w[1] = 0.5 begins a vector that does not sum to 1");
    bad_value("w", "[1.5, -0.5]", "w[2] = -0.5 is negative, which a simplex cannot be");
    bad_value("N", "[1, 2]", "N has size 2, but should be a number");
    bad_value("N", "0", "N = 0 is below its lower bound 1");
    bad_value("N", "-7", "N = -7 is below its lower bound 1");
    bad_value("N", "2000000000", "has size 5, but should have 2000000000");
    bad_value("s", "-1", "s = -1 is below its lower bound 0");
    bad_value("s", "\"NA\"", "s is missing");
}

static void files(void)
{
    put_text("empty.json", "");
    put_text("blank.json", "  \n");
    put_text("cut.json", "{ \"N\": 5, \"y\": [1, 2");
    put_text("list.json", "[1, 2]");
    put_text("twice.json", "{ \"N\": 5, \"N\": 6 }");
    put("zero.json", "{ \"N\": 5\0 }", 12);
    put_text("data.json", toy_json);
    put_text("part.json", "{ \"Y\": [1, 2], \"grp\": [1, 2] }");
    refused("empty.json", "empty.json: is empty");
    refused("blank.json", "blank.json:");
    refused("cut.json", "cut.json:1:");
    refused("list.json", "list.json: the file should hold one object");
    refused("twice.json", "twice.json:1:");
    refused("zero.json", "zero.json:");
    refused("none.json", "none.json: cannot be read: No such file");
    refused(".", "data files end in");
    refused("data.bin", "data files end in");
    refused("data.json data.json", "data.json: N is given twice, also in data.json");
    refused("data.json N=5", "command line: N is given twice");
    refused("data.json M=5", "the model's data has no M");
    refused("", "names are needed by toy");
    refused("part.json", "there is a `Y`");
    refused("part.json", "there is a `grp`");
    if (mkdir("folder.json", 0700) == 0) refused("folder.json", "folder.json: is a directory");
}

static void tables(void)
{
    put_text("rest.json",
             "{ \"J\": 2, \"group\": [1, 2, 1, 2, 2], \"X\": [[1, 2], [3, 4], [5, 6], [7, 8], [9, 10]], \"w\": [0.25, 0.75] }");
    const struct {
        const char *text, *message;
    } bad[] = {
        {"", "t.csv: is empty"},
        {"y\n1\n2\n", "t.csv: y has size 2, but should have 5"},
        {"y,z\n1,2\n3\n", "t.csv: line 3 has 1 cell, the header has 2"},
        {"y,z\n1,2,3\n", "t.csv: line 2 has 3 cells, the header has 2"},
        {"y\n1\ntwo\n", "t.csv: line 3, column y: `two` is not a number"},
        {"y\n1\n1e999\n", "t.csv: line 3, column y: `1e999` is too large for a double"},
        {"y\n1\n0x10\n", "`0x10` is not a number"},
        {"y,y\n1,2\n", "y is given twice"},
        {"y,z\n1,\"2\n", "line 2: a quote is not closed"},
        {"y,z\n1,\"2\n3,4\n5,6\n", "line 2: a quote is not closed"},
        {"y,z\n1,\"2\n\n\"\ntwo,3\n", "line 5, column y: `two` is not a number"},
        {"\n1\n2\n", "t.csv: line 1 is empty, where the names of the columns are expected"},
        {"y|z\n1|2\n", "t.csv: none of its columns is in the model's data: y|z"},
        {"y\n1\n2\n300\n4\n5\n", "t.csv: y[3] = 300 is above its upper bound 100"},
        {"y\n", "t.csv: y has size 0, but should have 5"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        put_text("t.csv", bad[i].text);
        refused("t.csv rest.json", bad[i].message);
    }
    put("t.csv", "y\n1\0002\n", 6);
    refused("rest.json t.csv", "holds a zero byte");
    put_text("gw.json", "{ \"group\": [1, 2, 1, 2, 2], \"y\": [1, 2, 3, 4, 5], \"w\": [0.25, 0.75] }");
    put_text("t.csv", "X.1,X.3\n1,2\n");
    refused("gw.json t.csv", "column X.3: there are 2 columns of X, so their numbers should be 1 to 2");
    put_text("t.csv", "X.1,X.1\n1,2\n");
    refused("gw.json t.csv", "column X.1 is there twice");
    put_text("t.csv", "a,b\n1,2\n");
    refused("gw.json X=t.csv:a,c", "t.csv: there is no column `c`");
    refused("gw.json X=t.csv:", "names of columns are expected after the colon");
    put_text("t.csv", "a,b,a\n1,2,3\n");
    refused("gw.json X=t.csv:b,a", "column a is there twice");
    put_text("t.csv", "a,b\n1,2\n");
    refused("gw.json X=t.csv:b-a", "the first column stands after the last");
    refused("gw.json X=t.csv:a,a", "column a is chosen twice");
    refused("gw.json Z=t.csv", "the model's data has no Z");
    refused("gw.json X=none.csv", "none.csv: cannot be read");
}

// What is no table of names and numbers, or could be read in two ways.
static void odd_tables(void)
{
    put_text("rest.json",
             "{ \"J\": 2, \"group\": [1, 2, 1, 2, 2], \"X\": [[1, 2], [3, 4], [5, 6], [7, 8], [9, 10]], \"w\": [0.25, 0.75] }");
    put_text("gw.json", "{ \"group\": [1, 2, 1, 2, 2], \"y\": [1, 2, 3, 4, 5], \"w\": [0.25, 0.75] }");
    const struct {
        const char *text, *message;
    } bad[] = {
        {"y,z\n\"1\"7,2\n", "t.csv: line 2: `7,2` follows a quote that is closed"},
        {"y,z\n1,2\n#3,4\n5,6\n", "t.csv: line 3 begins with #, as a comment does, and holds numbers for all columns"},
        {"y\n1\n# 2\n3\n", "t.csv: line 3 begins with #"},
        {"y\n", "t.csv: has no rows below its header, from which N would be 0; if that is meant, write N=0"},
        {"1.5,2\n3,4\n", "t.csv: line 1 holds numbers where the names of the columns are expected"},
        {"\xff\xfe"
         "y",
         "t.csv: is text of 16 bits a character (UTF-16)"},
        {"y\n\x1b[31m1\n", "t.csv: line 2, column y: `\\x1b[31m1` is not a number"},
        {"y\n\xc2\x9b"
         "1\n",
         "column y: `\\x9b1` is not a number"},
    };
    put_text("w.json", "{ \"w\": [0.25, 0.75] }");
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        put_text("t.csv", bad[i].text);
        refused(i == 3 ? "t.csv w.json J=2 K=2" : "t.csv rest.json", bad[i].message);
    }
    const char *const labels[] = {"X.-1", "X[-1]", "X.9223372036854775808", "X.1.2", "X[1,2]"};
    for (size_t i = 0; i < sizeof labels / sizeof *labels; i++) {
        char text[100], message[100];
        snprintf(text, sizeof text, "X.1,\"%s\",X.2\n1,2,3\n4,5,6\n7,8,9\n1,2,3\n4,5,6\n", labels[i]);
        put_text("t.csv", text);
        snprintf(message, sizeof message, "column %s: columns of X are called X.1, X.2, ... (or from 0 on)", labels[i]);
        refused("gw.json t.csv", message);
    }
    put_text("t.csv", "X.0,X.2\n1,2\n");
    refused("gw.json t.csv", "column X.2: there are 2 columns of X, so their numbers should be 0 to 1");
    put_text("t.csv", "X.0,X.1,X.0\n1,2,3\n");
    refused("gw.json t.csv", "column X.0 is there twice");
    put_text("row.csv", "1.5,2\n3,4\n");
    refused("gw.json X=row.csv", "row.csv: line 1 holds numbers where the names of the columns are expected");
}

static void odd_files(void)
{
    put_text("utf16.json", "\xff\xfe{");
    put_text("latin.json", "\xef{");
    refused("utf16.json", "utf16.json: is text of 16 bits a character (UTF-16)");
    refused("latin.json", "latin.json: is no JSON text");
    bad_value("group", "[1, 2, -Infinity, 2, 2]", "does not fit an int");
    bad_value("y", "[1, 2, nan, 4, 5]", "write null for a missing value");
    bad_value("y", "[1, 2, inf, 4, 5]", "\"Inf\" or \"-Inf\" in quotes");
    bad_value("y", "[1, 2, None, 4, 5]", "write null for a missing value");
    bad_value("group", "[1, 2, True, 2, 2]", "write 1 or 0");
    if (symlink("/dev/zero", "zero.csv") == 0 && symlink("/dev/null", "null.json") == 0) {
        refused("zero.csv", "zero.csv: is a device, not a file");
        refused("null.json", "null.json: is a device, not a file");
    }
    if (mkfifo("pipe.npy", 0600) == 0) refused("X=pipe.npy", "pipe.npy: is not a plain file");
    if (mkfifo("pipe.csv", 0600) == 0) {  // waits for its writer, and says so
        const pid_t child = start_fit("pipe.csv");
        for (int k = 0; k < 1000 && !holds("err.txt", "pipe.csv: is a pipe: waiting"); k++) usleep(10000);
        check(holds("err.txt", "pipe.csv: is a pipe: waiting for what is written into it"), "a pipe is waited for, which is said");
        put_text("pipe.csv", "y\n1\n");
        check(wait_fit(child) == 2 && holds("err.txt", "are in no file"), "and read");
    }
}

static void arrays(void)
{
    char npy[128] = "\x93NUMPY\x01";
    npy[8] = 118;
    snprintf(npy + 10, 118, "{'descr': '<f8', 'fortran_order': False, 'shape': (5, 2), }");
    put_text("gw.json", "{ \"group\": [1, 2, 1, 2, 2], \"y\": [1, 2, 3, 4, 5], \"w\": [0.25, 0.75] }");
    put("short.npy", npy, 128);
    refused("gw.json X=short.npy", "short.npy: the file is too short: 5 x 2 elements need 80 bytes, there are 0");
    put("cut.npy", npy, 50);
    refused("gw.json X=cut.npy", "cut.npy: the file ends inside its header");
    put("tiny.npy", npy, 5);
    refused("gw.json X=tiny.npy", "tiny.npy: is not a .npy file");
    put("empty.npy", npy, 0);
    refused("gw.json X=empty.npy", "empty.npy: is empty");
    memcpy(npy + 21, "<c16", 4);
    put("complex.npy", npy, 128);
    refused("gw.json X=complex.npy", "complex.npy:");
    snprintf(npy + 10, 118, "{'descr': '>f8', 'fortran_order': False, 'shape': (5, 2), }");
    put("big.npy", npy, 128);
    refused("gw.json X=big.npy", "element type >f8 is not read");
    snprintf(npy + 10, 118, "{'descr': '<f8', 'fortran_order': False, 'shape': (9223372036854775807, 9223372036854775807), }");
    put("huge.npy", npy, 128);
    refused("gw.json X=huge.npy", "huge.npy: the header is not understood");
    static const char *const shapes[] = {"(4611686018427387904, 4611686018427387904, 0)", "(0, 9223372036854775807, 9223372036854775807)",
                                         "(99999999999999999999,)"};
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        snprintf(npy + 10, 118, "{'descr': '<f8', 'fortran_order': True, 'shape': %s, }", shapes[i]);
        put("beyond.npy", npy, 128);
        refused("gw.json X=beyond.npy", "beyond.npy: the header is not understood");
    }
    snprintf(npy + 10, 118, "{'descr': [('a', '<f8')], 'fortran_order': False, 'shape': (5,), }");
    put("record.npy", npy, 128);
    refused("gw.json X=record.npy", "record.npy:");
    npy[6] = 9;
    put("version.npy", npy, 128);
    refused("gw.json X=version.npy", "version 9 of the .npy format is not known");
    refused("gw.json short.npy", "write NAME=short.npy");
    refused("gw.json Z=short.npy", "the model's data has no Z");
    refused("gw.json X=none.npy", "none.npy: cannot be read");
    if (mkdir("folder.npy", 0700) == 0) refused("gw.json X=folder.npy", "folder.npy: is a directory");
}

int main(void)
{
    enter_scratch();
    values();
    files();
    tables();
    odd_tables();
    odd_files();
    arrays();
    return finish_tests();
}
