#!/usr/bin/env python3
"""Every relative link of a page leads somewhere: the file is there and, behind `#`, a heading of it has that anchor (as GitHub makes them).

    links.py ROOT          all *.md that git knows, or all below ROOT; exit status 1 if a link is broken
"""
import os
import re
import subprocess
import sys

LINK = re.compile(r"(?<!!)\[(?:[^\[\]]|\[[^\]]*\])*\]\(([^()\s]+(?:\([^()]*\)[^()\s]*)?)\)|!\[[^\]]*\]\(([^()\s]+)\)")
FENCE = re.compile(r"^```.*?^```", re.M | re.S)


def text_of(path):
    """A page without what is code."""
    with open(path, encoding="utf-8") as f:
        text = FENCE.sub(lambda m: "\n" * m.group(0).count("\n"), f.read())
    return "\n".join("" if re.match(r"    |\t", line) else re.sub(r"`[^`]*`", lambda m: m.group(0) if line.startswith("#") else "", line)
                     for line in text.split("\n"))


def anchors(path):
    """What the headings of a page are called in links; a heading that is there twice has -1 behind the second."""
    found, times = set(), {}
    for heading in re.findall(r"^#{1,6} +(.*?) *#*$", text_of(path), re.M):
        words = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).lower()
        name = re.sub(r"[^\w\- ]", "", words).replace(" ", "-")
        k = times.get(name, 0)
        times[name] = k + 1
        found.add(name if k == 0 else "%s-%d" % (name, k))
    return found | set(re.findall(r'<a (?:id|name)="([^"]+)"', text_of(path)))


def pages_of(root):
    listed = subprocess.run(["git", "-C", root, "ls-files", "-co", "--exclude-standard", "*.md"], capture_output=True, text=True)
    if listed.returncode == 0:
        return [p for p in sorted(set(listed.stdout.split("\n")) - {""}) if os.path.exists(os.path.join(root, p))]
    return sorted(os.path.relpath(os.path.join(a, f), root) for a, _, fs in os.walk(root) for f in fs
                  if f.endswith(".md") and not a.startswith(os.path.join(root, "build")))


def main():
    root, wrong, n, known = os.path.abspath(sys.argv[1]), 0, 0, {}
    for page in pages_of(root):
        text = text_of(os.path.join(root, page))
        for m in LINK.finditer(text):
            target = m.group(1) or m.group(2)
            if re.match(r"[a-z]+:", target):
                continue
            n += 1
            file, _, anchor = target.partition("#")
            path = os.path.normpath(os.path.join(root, os.path.dirname(page), file)) if file else os.path.join(root, page)
            why = None
            if not os.path.exists(path):
                why = "there is no such file"
            elif anchor and path.endswith(".md"):
                if path not in known:
                    known[path] = anchors(path)
                why = None if anchor in known[path] else "no heading has this anchor"
            if why:
                print("%s:%d: %s: %s" % (page, text.count("\n", 0, m.start()) + 1, target, why))
                wrong += 1
    print("%d links, %d broken" % (n, wrong))
    return 1 if wrong or n == 0 else 0


sys.exit(main())
