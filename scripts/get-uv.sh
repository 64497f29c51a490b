#!/usr/bin/env bash
# Prints the path of uv: the one on the PATH, or one installed by pip into .uv/ of this checkout.
set -euo pipefail
cd "$(dirname "$0")/.."
if command -v uv >/dev/null 2>&1; then
    command -v uv
    exit 0
fi
if [ ! -x .uv/bin/uv ]; then
    python=$(command -v python3.11 || command -v python3 || true)
    [ -n "$python" ] || { echo "Install Python 3.11 first: apt-get install python3.11" >&2; exit 1; }
    "$python" -m venv .uv >/dev/null 2>&1 || {
        rm -rf .uv
        echo "Install the package python3-venv first: apt-get install python3-venv" >&2
        exit 1
    }
    echo "Installing uv into .uv/ …" >&2
    .uv/bin/pip install --quiet --disable-pip-version-check uv >&2
fi
echo "$PWD/.uv/bin/uv"
