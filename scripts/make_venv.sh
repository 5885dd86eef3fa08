#!/bin/sh
# Make a virtual environment with pip in the folder $1, using $PYTHON.
# Debian ships venv without ensurepip: as root the missing package is installed, otherwise its name is said.
set -eu
target=$1
python=${PYTHON:-python3}

if ! command -v "$python" >/dev/null 2>&1; then
    echo "onlooker needs Python 3.11 or newer, and there is no '$python': install it, or run make PYTHON=/path/to/python3" >&2
    exit 2
fi
if ! "$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))'; then
    echo "onlooker needs Python 3.11 or newer, '$python' is $("$python" -V): run make PYTHON=/path/to/python3.11" >&2
    exit 2
fi
if ! "$python" -c 'import ensurepip, venv' 2>/dev/null; then
    package=$("$python" -c 'import sys; print("python3.%d-venv" % sys.version_info[1])')
    if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
        echo "installing $package, which this Python needs to make an environment" >&2
        apt-get update -qq
        DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$package" >/dev/null
    else
        echo "this Python cannot make environments: install $package (apt-get install $package) and run make again" >&2
        exit 2
    fi
fi
exec "$python" -m venv "$target"
