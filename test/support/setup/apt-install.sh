#!/bin/sh
# Installs Debian packages, and starts none of the services in them: what needs a server here starts one of its own.
# usage: apt-install.sh [package...]
set -eu
[ $# -gt 0 ] || exit 0
[ "$(id -u)" = 0 ] || exec sudo "$0" "$@"
# Debian asks this program before a package starts its service; 101 is no.
policy=/usr/sbin/policy-rc.d
if [ ! -e "$policy" ]; then
  trap 'rm -f "$policy"' EXIT
  trap 'exit 1' HUP INT TERM
  printf '#!/bin/sh\nexit 101\n' >"$policy"
  chmod +x "$policy"
fi
echo "installing $*"
# Another installation may be under way.
apt="apt-get -qq -o DPkg::Lock::Timeout=300"
$apt update
DEBIAN_FRONTEND=noninteractive $apt install --yes --no-install-recommends "$@" >/dev/null
