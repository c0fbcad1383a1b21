// page.c -- HTML: what stands before and after the content of a page, and text with what HTML reads escaped.
//
// A page needs nothing but itself. Colours are variables with a second set for readers who ask for dark pages. Widths follow the window:
// figures stand side by side where there is room, tables scroll by themselves.
#define _GNU_SOURCE  // vasprintf
#include "../messages.h"
#include "report.h"

#include <stdarg.h>
#include <stdlib.h>

static const char style[] =
    ":root{color-scheme:light dark;--page:#fcfcfb;--card:#fff;--ink:#1c2329;--soft:#56616c;--line:#d9dee3;--grid:#e8ecef;--link:#0a5ea8;"
    "--bad:#b3261e;--warn:#8a5a00;--good:#1b6e3c;--badbg:#fdf0ee;--warnbg:#fdf6e6;--goodbg:#edf7f0;--fill:#c9d6e2;--div:#c2185b;"
    "--s1:#0072b2;--s2:#d55e00;--s3:#00855f;--s4:#b8528f;--s5:#a87400;--s6:#2d94cc;--s7:#7a5b2c;--s8:#555b61}\n"
    "@media (prefers-color-scheme:dark){:root{--page:#14181c;--card:#1b2026;--ink:#e4e8ec;--soft:#a2adb8;--line:#39424b;--grid:#2a323a;"
    "--link:#7cc0ff;--bad:#ff8f85;--warn:#f0c060;--good:#7fd6a0;--badbg:#33201f;--warnbg:#302817;--goodbg:#18291f;--fill:#3b4a59;"
    "--div:#ff6f9f;--s1:#56b0ec;--s2:#ff8b4d;--s3:#3ccf9e;--s4:#e59ac6;--s5:#eec04f;--s6:#8fd6ff;--s7:#cfae7a;--s8:#b7bec6}}\n"
    "*{box-sizing:border-box}html{scroll-behavior:smooth;-webkit-text-size-adjust:100%}@media "
    "(prefers-reduced-motion:reduce){html{scroll-behavior:auto}}\n"
    "body{margin:0;background:var(--page);color:var(--ink);font:16px/1.55 system-ui,-apple-system,\"Segoe UI\",Roboto,\"Noto "
    "Sans\",sans-serif}\n"
    "main,header,footer{max-width:66rem;margin:0 auto;padding:0 "
    "1.25rem}header{padding-top:2rem}footer{padding-bottom:3rem;color:var(--soft);"
    "font-size:.875rem}\n"
    "h1{font-size:1.75rem;line-height:1.2;margin:0 0 .25rem}h2{font-size:1.3rem;margin:2.75rem 0 "
    ".75rem;padding-bottom:.3rem;border-bottom:1px "
    "solid var(--line)}h3{font-size:1.05rem;margin:0 0 .35rem}p{margin:.5rem 0;max-width:44rem}a{color:var(--link)}\n"
    ":focus-visible{outline:2px solid var(--link);outline-offset:2px}code,.name{font-family:ui-monospace,SFMono-Regular,Menlo,Consolas,"
    "\"DejaVu Sans Mono\",monospace;font-size:.92em}\n"
    ".facts{color:var(--soft);margin:.15rem 0;max-width:none}nav{margin:1rem 0 0}nav "
    "ul{list-style:none;display:flex;flex-wrap:wrap;gap:.4rem "
    "1.1rem;padding:0;"
    "margin:0}\n"
    ".verdict{margin:1.25rem 0 0;padding:.7rem 1rem;border-radius:.5rem;border:1px solid var(--line);border-left:.35rem solid var(--good);"
    "background:var(--goodbg);max-width:none}.verdict.bad{border-left-color:var(--bad);background:var(--badbg)}.verdict.warn{border-left-"
    "color:"
    "var(--warn);background:var(--warnbg)}\n"
    "ol.warnings{list-style:none;padding:0;margin:0;display:grid;gap:.9rem}ol.warnings>li{background:var(--card);border:1px solid "
    "var(--line);"
    "border-left:.35rem solid var(--warn);border-radius:.5rem;padding:.8rem 1rem}ol.warnings>li.bad{border-left-color:var(--bad)}\n"
    ".kind{font-size:.75rem;font-weight:600;letter-spacing:.04em;text-transform:uppercase;color:var(--warn);margin-right:.5rem}.bad "
    ".kind{color:var(--bad)}li ul{margin:.3rem 0;padding-left:1.2rem;max-width:44rem}\n"
    "ol.warnings>li>h3{grid-column:1/-1}ol.warnings p:first-child{margin-top:0}"
    ".todo>p{margin-top:.1rem!important;font-weight:600;color:var(--soft);font-size:.875rem}"
    "@media (min-width:52rem){ol.warnings>li{display:grid;grid-template-columns:11fr 9fr;column-gap:2rem;align-content:start}}\n"
    ".scroll{overflow-x:auto;border:1px solid "
    "var(--line);border-radius:.5rem;background:var(--card)}table{border-collapse:collapse;width:100%;"
    "font-variant-numeric:tabular-nums;font-size:.9rem}"
    "th,td{padding:.32rem .8rem;text-align:right;white-space:nowrap;border-top:1px solid var(--grid)}thead "
    "th{border-top:0;color:var(--soft);"
    "font-weight:600}th:first-child{text-align:left;position:sticky;left:0;background:var(--card)}td.bad{color:var(--bad);font-weight:600}"
    "\n"
    ".unknown{background:var(--card);border:1px solid var(--line);border-radius:.5rem;padding:1rem;margin:0 0 "
    "1.1rem}.unknown>p{color:var(--soft);"
    "margin:.1rem 0 .6rem;font-size:.9rem;max-width:none}\n"
    ".grid{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,25rem),1fr));gap:.9rem 1.5rem}figure{margin:0;min-width:0}"
    "figcaption{color:var(--soft);font-size:.82rem;line-height:1.4;margin-top:.2rem}svg{display:block;width:100%;height:auto}"
    ".one{max-width:36rem}.wide{overflow-x:auto;max-width:52rem}.wide svg{min-width:34rem}\n"
    ".legend{list-style:none;display:flex;flex-wrap:wrap;gap:.2rem 1.1rem;padding:0;margin:.5rem 0 1rem;font-size:.9rem}.legend i{display:"
    "inline-block;width:1.1rem;height:.28rem;border-radius:.14rem;vertical-align:middle;margin-right:.4rem}\n"
    "details{margin:.6rem 0 1rem}summary{cursor:pointer;color:var(--link)}dl{margin:.5rem "
    "0;max-width:44rem}dt{font-weight:600;margin-top:.5rem}"
    "dd{margin:0;color:var(--soft)}\n"
    "svg text{font:10.5px system-ui,-apple-system,\"Segoe UI\",Roboto,\"Noto Sans\",sans-serif;fill:var(--soft)}svg "
    "text.end{text-anchor:end}svg "
    "text.mid{text-anchor:middle}svg text.head{fill:var(--ink);text-anchor:middle;font-size:11px}svg text.strong{fill:var(--ink)}\n"
    ".axis{stroke:var(--line);fill:none}.grid0{stroke:var(--grid);fill:none}.zero{stroke:var(--soft);fill:none;stroke-dasharray:3 "
    "3;stroke-width:.8}.band{fill:var(--grid)}.all{fill:var(--fill)}.allline{fill:none;stroke:var(--soft);stroke-width:1}.obs{fill:none;"
    "stroke:"
    "var(--ink);stroke-width:1.8}.rep{fill:none;stroke:var(--s1);stroke-width:.6;opacity:.45}.dots{fill:var(--soft);opacity:.35}.div{fill:"
    "var(--div);stroke:none}.divline{stroke:var(--div);stroke-width:1}.line{fill:none;stroke-width:1;stroke-linejoin:round}.thin{stroke-"
    "width:"
    ".6;opacity:.8}.ci{stroke:var(--s1);stroke-width:1.6;opacity:.7}\n"
    ".s1{stroke:var(--s1)}.s2{stroke:var(--s2)}.s3{stroke:var(--s3)}.s4{stroke:var(--s4)}.s5{stroke:var(--s5)}.s6{stroke:var(--s6)}.s7{"
    "stroke:"
    "var(--s7)}.s8{stroke:var(--s8)}.bar{stroke:none;opacity:.8}.bar.s1{fill:var(--s1)}.bar.s2{fill:var(--s2)}.bar.s3{fill:var(--s3)}"
    ".bar.s4{fill:var(--s4)}.bar.s5{fill:var(--s5)}.bar.s6{fill:var(--s6)}.bar.s7{fill:var(--s7)}.bar.s8{fill:var(--s8)}\n"
    "i.s1{background:var(--s1)}i.s2{background:var(--s2)}i.s3{background:var(--s3)}i.s4{background:var(--s4)}i.s5{background:var(--s5)}"
    "i.s6{background:var(--s6)}i.s7{background:var(--s7)}i.s8{background:var(--s8)}i.div{background:var(--div);width:.5rem;height:.5rem;"
    "border-radius:50%}\n"
    "@media "
    "(max-width:34rem){body{font-size:15px}main,header,footer{padding-left:.9rem;padding-right:.9rem}h1{font-size:1.45rem}.unknown{padding:"
    ".8rem .7rem}}\n"
    "@media print{body{background:#fff}.unknown,ol.warnings>li,figure{break-inside:avoid}}\n";

void gm_html_text(FILE *to, const char *text)
{
    for (; *text; text++) switch (*text) {
        case '<': fputs("&lt;", to); break;
        case '>': fputs("&gt;", to); break;
        case '&': fputs("&amp;", to); break;
        case '"': fputs("&quot;", to); break;
        default: fputc(*text, to);
        }
}

void gm_html(FILE *to, const char *format, ...)
{
    va_list args;
    char *text = NULL;
    va_start(args, format);
    if (vasprintf(&text, format, args) < 0) gm_exhausted(1, 1);
    va_end(args);
    gm_html_text(to, text);
    free(text);
}

void gm_html_begin(FILE *to, const char *title)
{
    fputs(GM_HTML_BEGIN "\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
          "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>",
          to);
    gm_html_text(to, title);
    fprintf(to, "</title>\n<style>\n%s</style>\n</head>\n<body>\n", style);
}

void gm_html_end(FILE *to) { fputs("</body>\n</html>\n", to); }
