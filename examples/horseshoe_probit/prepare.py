#!/usr/bin/env python3
"""Makes emails.csv of spambase.csv: `python3 prepare.py`, in this folder.

spambase.csv is the data set spam of R's package kernlab: for 4601 e-mails 54 frequencies (percent of the words or characters) and three
lengths of runs of capitals.

- A word counts as present (1) or absent (0). The frequencies are zero in most e-mails and long-tailed in the others; a probit linear in
them is
  decided by a few extreme rows.
- A length enters as its natural logarithm.
- What names the receiver is left out: his name, employer, laboratory and telephone numbers. All wanted mail came from his and his
  colleagues' files, so these words tell whose mail it is, not what spam is (the documentation of the data says so too).
- A word in fewer than 5 e-mails of either kind is left out (`cs`: one spam, 142 others): it nearly separates, and the size of its effect is
the prior's. - 391 rows that repeat an earlier one in all columns are the same message again, and are left out.
"""
import csv
import math

LENGTHS = ("capitalAve", "capitalLong", "capitalTotal")
RECEIVER = ("george", "hp", "hpl", "lab", "labs", "telnet", "num650", "num857", "num415", "num85")
FEWEST = 5


def prepared(name, text):
    if name == "y":
        return text
    if name in LENGTHS:
        return "%.4f" % math.log(float(text))
    return "1" if float(text) > 0 else "0"


def kept(name, column, kind):
    if name == "y" or name in LENGTHS:
        return True
    present = [k for k, value in zip(kind, column) if value == "1"]
    return name not in RECEIVER and min(present.count("0"), present.count("1")) >= FEWEST


def main():
    with open("spambase.csv", newline="") as f:
        names, *rows = csv.reader(f)
    rows = list(dict.fromkeys(map(tuple, rows)))                # distinct, in their order
    columns = [[prepared(name, text) for text in column] for name, column in zip(names, zip(*rows))]
    chosen = [j for j, name in enumerate(names) if kept(name, columns[j], columns[0])]
    with open("emails.csv", "w", newline="") as f:
        out = csv.writer(f, lineterminator="\n")
        out.writerow([names[j] for j in chosen])
        out.writerows(zip(*[columns[j] for j in chosen]))


main()
