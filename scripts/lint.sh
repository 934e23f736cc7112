#!/usr/bin/env bash
# Runs clang-tidy over the sources of a configured build folder: lint.sh BUILD.
set -euo pipefail
cd "$(dirname "$0")/.."
build=${1:?usage: lint.sh BUILD}

# The kernels are Highway text, compiled once per target from one file: clang-tidy sees only the last target.
find src cli examples -name '*.cpp' -not -path 'src/cpu/*' -print0 |
  xargs -0 -n 1 -P "$(nproc)" clang-tidy -p "$build" --quiet
