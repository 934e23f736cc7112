#!/usr/bin/env bash
# Installs the Debian packages that are missing for the parts named: setup.sh [build] [test] [python] [bench] [torch] [lint].
# When nothing is missing it asks dpkg and nobody else: no network, no root.
set -euo pipefail

packages_for() {
  case "$1" in
    build) echo g++ cmake ninja-build ccache pkg-config libhwy-dev libtbb-dev libpng-dev libcli11-dev libfmt-dev ;;
    test) echo libgtest-dev librapidcheck-dev clang-format ;;
    python) echo python3 python3-dev python3-venv ;;
    # What `make bench` and `make instructions` can use. libtorch comes with 130 other packages, so it is a part of its own.
    bench) echo python3 python3-venv libdnnl-dev libopencv-core-dev libopencv-imgproc-dev valgrind ;;
    torch) echo libtorch-dev ;;
    lint) echo clang-tidy ;;
    *) echo "setup.sh: unknown part '$1': build, test, python, bench, torch and lint are known" >&2 && exit 2 ;;
  esac
}

wanted=()
for part in "$@"; do
  names=$(packages_for "$part")
  read -ra found <<<"$names"
  wanted+=("${found[@]}")
done
((${#wanted[@]})) || exit 0

if ! command -v dpkg-query >/dev/null; then
  echo "setup.sh: this is not a Debian system; the build needs what Debian calls: ${wanted[*]}" >&2
  exit 0
fi

missing=()
for package in "${wanted[@]}"; do
  state=$(dpkg-query -W -f='${db:Status-Status}' "$package" 2>/dev/null || true)
  [[ $state == installed* ]] || missing+=("$package")
done
((${#missing[@]})) || exit 0

as_root=()
if [[ $(id -u) -ne 0 ]]; then
  if ! command -v sudo >/dev/null; then
    echo "setup.sh: as root, run: apt-get install ${missing[*]}" >&2
    exit 1
  fi
  as_root=(sudo)
fi
echo "setup.sh: installing ${missing[*]}"
"${as_root[@]}" apt-get update -q
"${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends "${missing[@]}"
