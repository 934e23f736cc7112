#!/usr/bin/env bash
# Every case of refused.cpp must fail to compile, with the words that it names: refused.sh SOURCE CXX
set -uo pipefail
source=$1 cxx=$2
file=$source/tests/static_graph/refused.cpp
broken=0 count=0

compile() { "$cxx" -std=c++20 -fsyntax-only -I"$source/include" -DCASE="$1" "$file" 2>&1; }

if ! compile 0 >/dev/null; then
  echo "case 0 must compile"
  exit 1
fi
while read -r number expected; do
  count=$((count + 1))
  if text=$(compile "$number"); then
    echo "case $number compiles, but must not: $expected"
    broken=1
  elif ! grep 'error' <<<"$text" | grep -qF "$expected"; then
    echo "case $number: no error says \"$expected\" but:"
    head -n 5 <<<"$text"
    broken=1
  fi
done < <(awk '/^#(el)?if CASE == / { number = $NF } /EXPECT/ { sub(/.*EXPECT /, ""); print number, $0 }' "$file" |
  awk '$1 ~ /^[0-9]+$/')
((broken == 0)) && echo "$count graphs are refused"
exit "$broken"
