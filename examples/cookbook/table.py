#!/usr/bin/env python3
"""table.py NAME: the expected results of a model of the cookbook, NAME/expect.json, as the page has them."""
import json
import os
import sys

with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), sys.argv[1], "expect.json")) as f:
    expect = json.load(f)
print("%-16s %10s %10s" % ("", "mean", "sd"))
for name, (mean, _) in expect["means"].items():
    head, *rest = name.split(".")
    print("%-16s %10.4g %10.3g" % (head + ("[%s]" % ", ".join(rest) if rest else ""), mean, expect["sds"][name][0]))
print("\n" + expect["note"])
