"""The tables of options against what gmc and a program parse, --help, the manual pages, the completion and the tables of docs/.

    options.py ROOT GMC FOLDER

What is in a table must be in each of these, and what one of these names must be in the table."""
import os
import re
import subprocess
import sys

ROW = re.compile(r'^OPTION\((?:(\w+), )?(\w+), (?:\'(\w)\'|0), (?:NULL|"([\w-]+)"), (?:NULL|"([^"]+)"), (?:NULL|"([^"]+)"),', re.M)
MODEL = "data { real y[3]; }\nprior { m ~ normal(0, 1); }\nlikelihood { for (i in 1:3) y[i] ~ normal(m, 1); }\n"
wrong = []


def read(*path):
    with open(os.path.join(*path)) as f:
        return f.read()


def table(path):
    """(group, option as it is typed, its argument or "", values) of each row; an option with a letter has two names"""
    text, rows = read(path), []
    for group, _, letter, name, argument, values in ROW.findall(text):
        rows += [(group, typed, argument, values.split()) for typed in (letter and "-" + letter, name and "--" + name) if typed]
    if len(ROW.findall(text)) != len(re.findall(r"^OPTION\(", text, re.M)):
        wrong.append("%s: a row of another form" % path)
    return rows


def output(*command):
    done = subprocess.run(command, capture_output=True, text=True)
    return done.stdout + done.stderr


def options(text):
    """The options that a text names, not as parts of other words"""
    return set(re.findall(r"(?<![\w-])--?[a-zA-Z][\w-]*(?<!-)", text))


def left_of(text):
    """Of --help: what stands on the left, where lines begin."""
    return "\n".join(re.split(r"(?<=\S)  +", line.strip())[0] for line in text.splitlines() if re.match(r" +-", line))


def compare(where, names, found):
    wrong.extend("%s lacks %s" % (where, o) for o in sorted(names - found))
    wrong.extend("%s names %s, which is no option" % (where, o) for o in sorted(found - names))


def parsed(command, rows):
    """Each option is known, has an argument or none, and takes its values and no others."""
    for _, o, argument, values in rows:
        if o in ("-h", "--help", "--version"):
            continue
        optional = argument.startswith("[")                      # it may be left out: else it stands behind a =
        typed = lambda value: [o + "=" + value] if optional else [o, value]
        said = output(*command, *([o] if not argument else typed(values[0] if values else "1")), "--no-such-option")
        if "no-such-option" not in said or "--no-such-option: no such" not in said and "unrecognized option" not in said:
            if not re.match(r"(gmc: )?-", said):                 # the value was wrong: it was read
                wrong.append("%s is not parsed: %s" % (o, said.strip()))
        if optional and "no-such-option" not in output(*command, o, "--no-such-option"):
            wrong.append("%s cannot be without its argument" % o)
        if argument and not optional and not re.search(r"missing|requires an argument", output(*command, o)):
            wrong.append("%s takes no argument" % o)
        for v in values:
            if v.isalpha() and "is none of" in output(*command, *typed(v), "--no-such-option"):
                wrong.append("%s does not take %s" % (o, v))
        if values and not all(v in output(*command, *typed("nonesuch")) for v in values):
            wrong.append("%s does not name its values" % o)
        short = o[:-1]
        if o.startswith("--") and short not in (other for _, other, _, _ in rows):
            said = [output(*command, *abbreviated) for abbreviated in ([[short + "=1"], [short, "1"]] if argument else [[short]])]
            if not all(re.search(r"in full: --|ambiguous|no such option|unrecognized option", text) for text in said):
                wrong.append("%s is taken for %s: %s" % (short, o, said))


def manual(page):
    return options("\n".join(re.sub(r"\\f[BRI]", "", line).replace("\\-", "-") for line in read(page).splitlines()
                             if line.startswith("\\fB\\-")))


def completed(text, function):
    body = text[text.index("%s()\n" % function):]
    body = body[:body.index("\n}\n")]
    return options(" ".join(re.findall(r'-\* \]\]; then words="([^"]*)"', body)))


def first_cells(text):
    return options("\n".join(line.split("|")[1] for line in text.splitlines() if line.startswith("| `-")))


def main():
    root, gmc, folder = sys.argv[1:]
    os.makedirs(folder, exist_ok=True)
    model, program = os.path.join(folder, "options.gm"), os.path.join(folder, "options")
    with open(model, "w") as f:
        f.write(MODEL)
    said = output(gmc, model, "-o", program, "--no-device", "-q")
    if said:
        wrong.append(said)
    compiler = table(os.path.join(root, "compiler/driver/options.def"))
    programs = table(os.path.join(root, "runtime/host/options.def"))
    of_runs = [r for r in programs if r[0] not in ("RELABEL", "LATER", "PAGE", "TABLE", "DIAGNOSE", "LOO", "COMPARE", "WATCH")]
    relabel = [r for r in programs if r[0] == "RELABEL"]
    later = [r for r in programs if r[0] == "LATER"]
    page = [r for r in programs if r[0] == "PAGE"]
    names = lambda rows: {o for _, o, _, _ in rows}
    stored = {command: [r for r in programs if r[0] == group]
              for command, group in (("summary", "TABLE"), ("diagnose", "DIAGNOSE"), ("loo", "LOO"), ("compare", "COMPARE"),
                                     ("watch", "WATCH"))}

    compare("gmc --help", names(compiler), options(left_of(output(gmc, "--help"))))
    compare("--help of a program", names(of_runs), options(left_of(output(program, "--help"))))
    compare("relabel --help", names(relabel), options(left_of(output(program, "relabel", "--help"))))
    compare("predict --help", names(later), options(left_of(output(program, "predict", "--help"))))
    compare("report --help", names(page), options(left_of(output(program, "report", "--help"))))
    for command, rows in stored.items():
        for made in (gmc, program):
            compare(command + " --help", names(rows), options(left_of(output(made, command, "--help"))))
        parsed([gmc, command], rows)
    parsed([gmc, model], compiler)
    parsed([program], of_runs)
    parsed([program, "relabel"], relabel)
    parsed([program, "predict"], later)
    parsed([program, "report"], page)
    compare("gmc.1", names(compiler), manual(os.path.join(root, "build/gmc.1")))
    compare("gmc-program.1", names(programs), manual(os.path.join(root, "build/gmc-program.1")))
    completion = read(root, "build/gmc.bash")
    compare("gmc.bash", names(compiler), completed(completion, "_gmc"))
    compare("gmc.bash, of programs", names(programs), completed(completion, "_gmc_program"))
    manual_text = read(root, "docs/fit.md")
    language = read(root, "docs/language.md")
    compare("the table of docs/language.md", names(compiler), first_cells(language[language.index("## Options of gmc"):]))
    compare("the tables of docs/fit.md", names(of_runs), first_cells(manual_text) - (names(later) - names(of_runs)))
    part = manual_text[manual_text.index("## Labels of components"):manual_text.index("## The mode")]
    wrong.extend("docs/fit.md: relabelling lacks %s" % o for o in sorted(names(relabel) - options(part)) if not o[1:] in ("q", "h"))
    part = manual_text[manual_text.index("## A report"):manual_text.index("## Checking the sampler")]
    wrong.extend("docs/fit.md: the report lacks %s" % o for o in sorted(names(page) - options(part)) if not o[1:] in ("q", "h"))
    part = manual_text[manual_text.index("## Tables of stored draws"):manual_text.index("## One draw again")]
    wrong.extend("docs/fit.md: stored draws lack %s" % o for rows in stored.values() for o in sorted(names(rows) - options(part))
                 if not o[1:] in ("h", "-help"))
    print("\n".join(wrong) or "%d options of gmc, %d of programs: all agree" % (len(compiler), len(programs)))
    return 1 if wrong or len(compiler) < 20 or len(programs) < 40 else 0


sys.exit(main())
