#!/bin/sh
# Installs the Debian packages that the benchmark needs and that are missing: PostgreSQL, etcd, and perf,
# which counts disk waits.
set -eu
missing=""
# Checks for initdb, because PostgreSQL's client packages create the folder too.
ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1 || missing="$missing postgresql"
command -v etcd >/dev/null || missing="$missing etcd-server"
command -v perf >/dev/null || missing="$missing linux-perf"
# shellcheck disable=SC2086 -- a list of packages
exec "$(dirname "$0")/../test/support/setup/apt-install.sh" $missing
