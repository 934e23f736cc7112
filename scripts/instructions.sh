#!/usr/bin/env bash
# Counts the instructions of the problems in benchmarks/instructions.txt, by callgrind, and compares them with the counts
# there: instructions.sh [--update] [CENOTE]. One thread and AVX2, so that neither noise nor the machine matters much.
# Exits with 1 if a problem takes over 3 % more; --update writes the new counts.
set -euo pipefail
cd "$(dirname "$0")/.."
list=benchmarks/instructions.txt
update=false
if [[ ${1-} == --update ]]; then
  update=true
  shift
fi
cenote=${1:-build/release/bin/cenote}
tolerance=3
runs=20

if ! command -v valgrind >/dev/null; then
  echo "instructions.sh: valgrind is not installed: scripts/setup.sh bench" >&2
  exit 2
fi
if [[ ! -x $cenote ]]; then
  echo "instructions.sh: $cenote is not there: cmake --build --preset release --target cenote_cli" >&2
  exit 2
fi

# collect RUNS PROBLEM: all instructions of a process that solves the problem so many times.
collect() {
  local arguments=(bench "$2")
  if [[ $2 == sparse\ * ]]; then
    read -r _ cloud voxels kernel order channels <<<"$2"
    arguments=(sparse-bench --cloud "$cloud" --voxels "$voxels" --kernel "$kernel" --order "$order" --channels "$channels")
  fi
  CENOTE_SIMD=AVX2 valgrind --tool=callgrind --callgrind-out-file=/dev/null \
    "$cenote" "${arguments[@]}" --threads 1 --runs "$1" 2>&1 | awk '/ Collected : / { print $4; found = 1 } END { exit !found }'
}

new=$(mktemp)
trap 'rm -f "$new"' EXIT
worse=0
printf '%14s %14s %8s  %s\n' before now change problem
while IFS= read -r line; do
  if [[ -z $line || $line == \#* ]]; then
    echo "$line" >>"$new"
    continue
  fi
  read -r before problem <<<"$line"
  # What comes before and after the work, and what only the first run does, is in both; but it is not always the same, by
  # some ten thousand instructions, which many runs make small.
  first=$(collect 1 "$problem") all=$(collect $((1 + runs)) "$problem")
  now=$(((all - first) / runs))
  change=$(awk -v a="$before" -v b="$now" 'BEGIN { if (a > 0) printf "%+.1f%%", 100 * (b - a) / a; else printf "new" }')
  mark=""
  if ((before > 0 && (now - before) * 100 > before * tolerance)); then
    mark="  WORSE"
    worse=1
  fi
  printf '%14d %14d %8s  %s%s\n' "$before" "$now" "$change" "$problem" "$mark"
  printf '%12d  %s\n' "$now" "$problem" >>"$new"
done <"$list"

if $update; then
  cp "$new" "$list"
  echo "$list has the new counts"
  exit 0
fi
((worse == 0)) || echo "more than $tolerance % above $list: if that is meant, scripts/instructions.sh --update"
exit "$worse"
