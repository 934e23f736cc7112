#!/usr/bin/env bash
# The layer rule: a folder under src/ includes only from itself and from those before it; public headers include nothing
# of src/; the reference includes nothing of cenote. layers.sh [SOURCE]
set -euo pipefail
cd "${1:-$(dirname "$0")/..}"
layers=(core reduce plan sparse cpu cuda ops autodiff io)
broken=0

complain() {
  echo "$*"
  broken=1
}

# What the sources in a folder include, as FILE:LINE PATH.
includes_of() {
  grep -rnE --include='*.h' --include='*.cpp' --include='*.cu' --include='*.cuh' \
    '^[[:space:]]*#[[:space:]]*include[[:space:]]*["<]' "$1" |
    sed -E 's/^([^:]+:[0-9]+):[^"<]*["<]([^">]*)[">].*/\1 \2/'
}

rank_of() {
  local i
  for i in "${!layers[@]}"; do
    if [[ ${layers[i]} == "$1" ]]; then
      echo "$i"
      return
    fi
  done
  echo -1
}

for folder in src/*/; do
  name=$(basename "$folder")
  own=$(rank_of "$name")
  if ((own < 0)); then
    complain "src/$name: not one of the layers ${layers[*]}"
    continue
  fi
  while read -r where path; do
    head=${path%%/*}
    other=$(rank_of "$head")
    if [[ $path == ../* || $head == tests || $head == cli || $head == reference ]]; then
      complain "$where includes $path, which is outside src/"
    elif [[ $path == */* ]] && ((other > own)); then
      complain "$where includes $path: $head comes after $name"
    fi
  done < <(includes_of "$folder")
done

while read -r where path; do
  if [[ $path == */* && $path != cenote/* ]]; then complain "$where includes $path: public headers include only each other"; fi
done < <(includes_of include)

while read -r where path; do
  if [[ $path == */* ]]; then complain "$where includes $path: the reference needs the standard library alone"; fi
done < <(includes_of reference)

((broken == 0)) && echo "every include goes up the layers: ${layers[*]}"
exit "$broken"
