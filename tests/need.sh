#!/bin/sh
# need.sh PACKAGE... -- installs the Debian packages that are missing if it may, or says which command does.
missing=""
for p in "$@"; do
    dpkg -s "$p" >/dev/null 2>&1 || missing="$missing $p"
done
[ -z "$missing" ] && exit 0
if [ "$(id -u)" = 0 ]; then
    echo "installing$missing"
    { apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $missing; } >/tmp/gmc-apt.$$ 2>&1 && { rm -f /tmp/gmc-apt.$$; exit 0; }
    tail -5 /tmp/gmc-apt.$$
    rm -f /tmp/gmc-apt.$$
fi
echo "missing packages: sudo apt-get install$missing"
exit 1
