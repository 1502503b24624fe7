#!/bin/sh
# What the peers need besides npm packages: PostgreSQL, etcd, and perf to count waits for the disk. Debian, and only what is missing.
set -eu
missing=""
# Its clients alone make such folders too.
ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1 || missing="$missing postgresql"
command -v etcd >/dev/null || missing="$missing etcd-server"
command -v perf >/dev/null || missing="$missing linux-perf"
# shellcheck disable=SC2086 -- a list of packages
exec "$(dirname "$0")/../test/support/setup/apt-install.sh" $missing
