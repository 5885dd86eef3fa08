#!/bin/sh
# Open the report in headless Chromium, which is installed where it is missing: as root with apt-get, else its name is said.
# SHOTS=folder keeps the screenshots to be looked at.
set -eu
cd "$(dirname "$0")/.."

if ! command -v "${CHROMIUM:-chromium}" >/dev/null 2>&1; then
    if [ -z "${CHROMIUM:-}" ] && [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
        echo "installing chromium, which these tests open pages in" >&2
        apt-get update -qq
        DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends chromium fonts-dejavu-core >/dev/null
    else
        echo "the browser tests need Chromium: install it (apt-get install chromium), or set CHROMIUM to its path" >&2
        exit 2
    fi
fi
exec "${PYTHON:-.venv/bin/python}" -m pytest tests/browser -n auto --dist loadfile "$@"
