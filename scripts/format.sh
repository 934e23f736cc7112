#!/usr/bin/env bash
# Formats the C++ and CUDA sources; with --check only names those that are not formatted, and fails if there are any.
set -euo pipefail
cd "$(dirname "$0")/.."

mode=(-i)
if [[ ${1-} == --check ]]; then mode=(--dry-run --Werror); fi
find include src reference cli python tests benchmarks examples -type f \
  \( -name '*.h' -o -name '*.cpp' -o -name '*.cu' -o -name '*.cuh' \) -print0 |
  xargs -0 clang-format --style=file "${mode[@]}"
