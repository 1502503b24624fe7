#!/bin/sh
# The databases that the tests run against: PostgreSQL and MariaDB. Debian, and only what is missing.
set -eu
missing=""
# Their clients alone make such folders too.
ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1 || missing="$missing postgresql"
[ -x /usr/sbin/mariadbd ] || missing="$missing mariadb-server"
# shellcheck disable=SC2086 -- a list of packages
exec "$(dirname "$0")/../debian/apt-install.sh" $missing
