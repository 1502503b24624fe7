#!/bin/sh
# Installs Debian packages without starting the services in them: a test starts its own server.
# usage: apt-install.sh [package...]
set -eu
[ $# -gt 0 ] || exit 0
[ "$(id -u)" = 0 ] || exec sudo "$0" "$@"
# Debian asks this program before a package starts its service; 101 means no.
policy=/usr/sbin/policy-rc.d
if [ ! -e "$policy" ]; then
  trap 'rm -f "$policy"' EXIT
  trap 'exit 1' HUP INT TERM
  printf '#!/bin/sh\nexit 101\n' >"$policy"
  chmod +x "$policy"
fi
# Waits up to 300 s for another installation that is running.
apt="apt-get -qq -o DPkg::Lock::Timeout=300"
$apt update
DEBIAN_FRONTEND=noninteractive $apt install --yes --no-install-recommends "$@" >/dev/null
