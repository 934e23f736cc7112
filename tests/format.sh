#!/usr/bin/env bash
# Fails if a source is not formatted as .clang-format says; exits with 77, which ctest counts as skipped, where there is
# no clang-format. format.sh [SOURCE]
set -euo pipefail
cd "${1:-$(dirname "$0")/..}"
if ! command -v clang-format >/dev/null; then
  echo "skipped: clang-format is not installed"
  exit 77
fi
scripts/format.sh --check
