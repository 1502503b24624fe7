#!/bin/sh
# What the peers need besides npm packages: PostgreSQL, etcd, and perf to count waits for the disk. Debian, and only what is missing.
set -eu
missing=""
[ -d /usr/lib/postgresql ] || missing="$missing postgresql"
command -v etcd >/dev/null || missing="$missing etcd-server"
command -v perf >/dev/null || missing="$missing linux-perf"
[ -z "$missing" ] && exit 0
as_root=""
[ "$(id -u)" = 0 ] || as_root=sudo
echo "installing$missing"
$as_root apt-get update -qq
# shellcheck disable=SC2086 -- a list of packages
DEBIAN_FRONTEND=noninteractive $as_root apt-get install -y -qq --no-install-recommends $missing >/dev/null
