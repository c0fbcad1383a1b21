# words.awk -- the names that headers of the runtime declare, as tables for words.c:
#
#     DECLARED(name)              a function, a type, a variable: outside of all braces
#     MACRO(name, 1, "words")     a macro without parameters (0: with), and what its text names beside these
#
# A name between braces is a local variable or a member, and meets nothing.

FNR == 1 { depth = nested = 0; within_comment = 0; head = "" }

{
    line = head $0
    head = ""
    gsub(/"([^"\\]|\\.)*"/, "\"\"", line)
    gsub(/'([^'\\]|\\.)*'/, "0", line)
    sub(/\/\/.*/, "", line)
    gsub(/\/\*([^*]|\*[^\/])*\*\//, " ", line)
    if (within_comment) {
        if (!index(line, "*/")) next
        line = substr(line, index(line, "*/") + 2)
        within_comment = 0
    }
    if (index(line, "/*")) {
        line = substr(line, 1, index(line, "/*") - 1)
        within_comment = 1
    }
    if (line ~ /\\[ \t]*$/) {
        sub(/\\[ \t]*$/, " ", line)
        head = line
        next
    }
    if (line ~ /^[ \t]*#[ \t]*define[ \t]/) define(line)
    else if (line !~ /^[ \t]*#/) declare(line)
}

# The next word of `rest`, which loses all up to its end; "" if there is none. `before` is the text between.
function next_word(    at) {
    at = match(rest, /[A-Za-z_0-9]+/)
    if (!at) return ""
    word = substr(rest, at, RLENGTH)
    before = substr(rest, 1, at - 1)
    rest = substr(rest, at + RLENGTH)
    return word
}

function define(line,    name, parameters, own) {
    rest = line
    next_word()
    name = next_word()
    split("", own)
    if (substr(rest, 1, 1) != "(") plain[name] = 1
    if (substr(rest, 1, 1) == "(") {
        parameters = substr(rest, 2, index(rest, ")") - 2)
        line = substr(rest, index(rest, ")") + 1)
        rest = parameters
        while (next_word() != "") own[word] = 1
        rest = line
    }
    macro[name] = macro[name]
    while (next_word() != "")
        if (word ~ /^[A-Za-z_]/ && before !~ /(->|\.)[ \t]*$/ && !(word in own) && !((name, word) in said)) {
            said[name, word] = 1
            macro[name] = macro[name] " " word
        }
}

function declare(line,    i, c) {
    gsub(/extern ""[ \t]*\{/, "", line)
    rest = line
    while (rest != "") {
        if (next_word() == "") { count(rest); break }
        count(before)
        if (depth == 0 && nested == 0 && word ~ /^[A-Za-z_]/) declared[word] = 1
    }
}

function count(text,    i, c) {
    for (i = 1; i <= length(text); i++) {
        c = substr(text, i, 1)
        if (c == "{") depth++
        else if (c == "}" && depth > 0) depth--
        else if (c == "(") nested++
        else if (c == ")" && nested > 0) nested--
    }
}

END {
    for (name in declared) printf "DECLARED(%s)\n", name
    for (name in macro) printf "MACRO(%s, %d, \"%s\")\n", name, plain[name], substr(macro[name], 2)
}
