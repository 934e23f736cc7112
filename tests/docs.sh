#!/usr/bin/env bash
# Runs the code of README.md and of the pages in docs/, as a reader would: docs.sh SOURCE BUILD CXX [PAGE…]
#
# On each page, in order: a sh block is run; a cpp block with a main is compiled and run (and saved, if its first line
# is "// NAME.cpp"); one that begins with #include stands before all fragments of its page; any other is a fragment, a
# scope of its own in one program per page. A text block after one that runs is what it prints. A block after a comment
# "<!-- not run: WHY -->" is left out. Links between the project's files are checked too.
set -euo pipefail
source=$1 build=$2 cxx=$3
shift 3
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

fail() {
  echo "$*"
  exit 1
}

# A folder that looks like a clone with a finished build, where the pages may write what they like.
make_clone() {
  local clone=$1 entry
  mkdir -p "$clone/build"
  for entry in "$source"/*; do
    case $(basename "$entry") in
      build* | demo | bench) ;;
      *) ln -s "$entry" "$clone/" ;;
    esac
  done
  ln -s "$build" "$clone/build/release"
}

# Cuts a page into files NUMBER.LINE.KIND, in order.
cut_blocks() {
  awk -v out="$2" '
    /^<!-- not run: / { skip = 1; next }
    /^```/ {
      if (inside) { inside = 0; if (file) close(file); next }
      inside = 1; file = ""
      kind = substr($0, 4)
      if (!skip && kind ~ /^(cpp|sh|text)$/) { file = sprintf("%s/%03d.%d.%s", out, ++n, NR + 1, kind); printf "" > file }
      skip = 0; next
    }
    inside && file { print > file }' "$1"
}

# Every link to a file of the project has its file.
check_links() {
  local page=$1 target
  # shellcheck disable=SC2016
  while read -r target; do
    [[ -e $(dirname "$page")/$target ]] || fail "$page: it links to $target, which is not there"
  done < <(sed '/^```/,/^```/d; s/`[^`]*`//g' "$page" | grep -o '](\([^)#:]*\)[)#]' | sed 's/^](//; s/[)#]$//; /^$/d')
}

compile() {
  # shellcheck disable=SC2046
  "$cxx" -std=c++20 "$1" -o "$2" $(pkg-config --cflags --libs cenote)
}

run_page() {
  local page=$1 name blocks clone file line kind code count=0
  name=$(realpath --relative-to="$source" "$page")
  blocks=$work/blocks/$name clone=$work/clones/$name
  mkdir -p "$blocks"
  make_clone "$clone"
  cut_blocks "$page" "$blocks"
  : >"$blocks/before.cpp"
  : >"$blocks/scopes.cpp"
  : >"$blocks/printed"
  for file in "$blocks"/*.*.*; do
    [[ -e $file ]] || continue
    IFS=. read -r _ line kind <<<"$(basename "$file")"
    count=$((count + 1))
    if [[ $kind == text ]]; then
      diff -u "$file" "$blocks/printed" || fail "$page:$line: this is not what the block before it prints"
    elif [[ $kind == sh ]]; then
      (cd "$clone" && bash -euo pipefail "$file" >"$blocks/printed") || fail "$page:$line: this fails"
    elif grep -q 'int main(' "$file"; then
      code=$clone/$(sed -n '1s,^// \([a-z_]*\.cpp\)$,\1,p' "$file")
      [[ $code != "$clone/" ]] || code=$file.cpp
      cp "$file" "$code"
      compile "$code" "$file.out" || fail "$page:$line: this does not compile"
      (cd "$clone" && "$file.out" >"$blocks/printed") || fail "$page:$line: this fails"
    elif [[ $(head -n 1 "$file") == '#include'* ]]; then
      { echo "#line $line \"$page\"" && cat "$file"; } >>"$blocks/before.cpp"
    else
      { echo "{" && echo "#line $line \"$page\"" && cat "$file" && echo "}"; } >>"$blocks/scopes.cpp"
    fi
  done
  if [[ -s $blocks/scopes.cpp ]]; then
    { cat "$blocks/before.cpp" && echo "int main() {" && cat "$blocks/scopes.cpp" && echo "}"; } >"$blocks/page.cpp"
    compile "$blocks/page.cpp" "$blocks/page" || fail "$page: its fragments do not compile"
    (cd "$clone" && "$blocks/page") || fail "$page: its fragments fail"
  fi
  echo "$name: $count blocks"
}

cmake --install "$build" --prefix "$work/prefix" >/dev/null
export PATH=$work/prefix/bin:$PATH
export PKG_CONFIG_PATH=$work/prefix/lib/pkgconfig
if (($#)); then pages=("$@"); else pages=("$source/README.md" "$source"/docs/*.md); fi
for page in "${pages[@]}"; do
  check_links "$page"
  run_page "$page"
done
for page in "$source"/{ARCHITECTURE,CONTRIBUTING,CHANGELOG}.md; do check_links "$page"; done
