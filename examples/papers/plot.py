"""Curves on logarithmic axes as SVG: nothing but text, lines and marks."""
import math

WIDTH, HEIGHT = 560, 380
LEFT, RIGHT, TOP, BOTTOM = 70, 150, 36, 52
COLOURS = ("#1b6ca8", "#c0392b", "#2e8b57", "#8e44ad", "#b9770e", "#555555")


def decades(values):
    low, high = math.floor(math.log10(min(values)) + 1e-9), math.ceil(math.log10(max(values)) - 1e-9)
    return low, max(high, low + 1)


def label(e):
    return "%g" % 10 ** e if -3 <= e <= 4 else '10<tspan dy="-5" font-size="9">%d</tspan>' % e


def escaped(text):
    return text.replace("&", "&amp;").replace("<", "&lt;")


def curves(path, title, x_name, y_name, lines):
    """lines: (name, [(x, y), ...]), all positive; a name that begins with `*` is dashed, for what others have published."""
    xs, ys = [x for _, points in lines for x, _ in points], [y for _, points in lines for _, y in points]
    (x0, x1), (y0, y1) = decades(xs), decades(ys)
    at_x = lambda x: LEFT + (math.log10(x) - x0) / (x1 - x0) * (WIDTH - LEFT - RIGHT)
    at_y = lambda y: HEIGHT - BOTTOM - (math.log10(y) - y0) / (y1 - y0) * (HEIGHT - TOP - BOTTOM)
    out = ['<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" font-family="sans-serif" font-size="12">' % (WIDTH, HEIGHT),
           '<rect width="100%" height="100%" fill="white"/>',
           '<text x="%d" y="20" font-size="13">%s</text>' % (LEFT, escaped(title))]
    for e in range(x0, x1 + 1):
        out.append('<path d="M%.1f %d V%d" stroke="#ddd"/>' % (at_x(10 ** e), TOP, HEIGHT - BOTTOM))
        out.append('<text x="%.1f" y="%d" text-anchor="middle">%s</text>' % (at_x(10 ** e), HEIGHT - BOTTOM + 18, label(e)))
    for e in range(y0, y1 + 1):
        out.append('<path d="M%d %.1f H%d" stroke="#ddd"/>' % (LEFT, at_y(10 ** e), WIDTH - RIGHT))
        out.append('<text x="%d" y="%.1f" text-anchor="end">%s</text>' % (LEFT - 8, at_y(10 ** e) + 4, label(e)))
    out.append('<text x="%d" y="%d" text-anchor="middle">%s</text>' % ((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 12, escaped(x_name)))
    out.append('<text transform="translate(18 %d) rotate(-90)" text-anchor="middle">%s</text>' % ((TOP + HEIGHT - BOTTOM) / 2,
                                                                                                  escaped(y_name)))
    for k, (name, points) in enumerate(lines):
        colour = COLOURS[k % len(COLOURS)]
        dash = ' stroke-dasharray="5 4"' if name.startswith("*") else ""
        path_of = " ".join("%s%.1f %.1f" % ("L" if i else "M", at_x(x), at_y(y)) for i, (x, y) in enumerate(points))
        out.append('<path d="%s" fill="none" stroke="%s" stroke-width="1.8"%s/>' % (path_of, colour, dash))
        out += ['<circle cx="%.1f" cy="%.1f" r="3" fill="%s"/>' % (at_x(x), at_y(y), colour) for x, y in points]
        at = TOP + 14 + 18 * k
        out.append('<path d="M%d %d h18" stroke="%s" stroke-width="1.8"%s/>' % (WIDTH - RIGHT + 12, at - 4, colour, dash))
        out.append('<text x="%d" y="%d">%s</text>' % (WIDTH - RIGHT + 36, at, escaped(name.lstrip("*"))))
    out.append("</svg>")
    with open(path, "w") as f:
        f.write("\n".join(out) + "\n")
