#!/bin/sh
# The browser that the tests of the examples look through. Debian, and only where it is missing.
set -eu
[ -x /usr/bin/chromium ] || exec "$(dirname "$0")/../debian/apt-install.sh" chromium
