#!/bin/sh
# Read logs from a PostgreSQL and an S3 endpoint, both on loopback, started for the tests and stopped after them.
# PostgreSQL is installed where it is missing: as root with apt-get, else its name is said. MOTO_SERVER is the endpoint.
set -eu
cd "$(dirname "$0")/.."

programs() {
    for found in "${PG_BIN:-}" /usr/lib/postgresql/*/bin /usr/local/bin /usr/bin; do
        if [ -x "$found/initdb" ] && [ -x "$found/postgres" ]; then
            echo "$found"
            return
        fi
    done
}

if [ -z "$(programs)" ]; then
    if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
        echo "installing postgresql, which these tests read logs from" >&2
        apt-get update -qq
        DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends postgresql >/dev/null
    else
        echo "the service tests need PostgreSQL: install it (apt-get install postgresql), or set PG_BIN to its programs" >&2
        exit 2
    fi
fi
PG_BIN="$(programs)" MOTO_SERVER="${MOTO_SERVER:-build/services/bin/moto_server}" \
    exec "${PYTHON:-.venv/bin/python}" -m pytest tests/services "$@"
