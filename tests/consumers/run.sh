#!/usr/bin/env bash
# Installs a built cenote into a temporary prefix, static and shared, and builds and runs each consumer against it:
# run.sh SOURCE BUILD CXX
set -euo pipefail
source=$1 build=$2
export CXX=$3
work=$(mktemp -d)
# Beside the build under test, so that a ccache sees the same paths.
shared=$(mktemp -d "$(dirname "$build")/consumers-XXXXXX")
part=$(mktemp -d "$(dirname "$build")/consumers-XXXXXX")
trap 'rm -rf "$work" "$shared" "$part"' EXIT
consumers=$source/tests/consumers

# The flags of the build under test: where there is a ccache, the library's objects come from there.
mapfile -t same_flags < <(sed -nE 's/^((CMAKE_BUILD_TYPE|CENOTE_WARNINGS|CENOTE_WERROR):.*)/-D\1/p' "$build/CMakeCache.txt")
same_flags+=(-G Ninja)
if command -v ccache >/dev/null; then same_flags+=(-DCMAKE_CXX_COMPILER_LAUNCHER=ccache); fi

quietly() {
  if ! "$@" >"$work/log" 2>&1; then
    cat "$work/log"
    echo "failed: $*"
    exit 1
  fi
}

cmake_consumer() {
  local name=$1 out=$2
  shift 2
  quietly cmake -S "$consumers/$name" -B "$out" -G Ninja "$@"
  quietly cmake --build "$out"
  echo "$name: $("$out/consumer")"
}

pkg_config_consumer() {
  local prefix=$1 out=$2
  mkdir -p "$out"
  PKG_CONFIG_PATH=$(dirname "$(find "$prefix" -name cenote.pc)") quietly make -C "$consumers/pkg_config" OUT="$out"
  echo "pkg_config: $(LD_LIBRARY_PATH=$(dirname "$(find "$prefix" -name 'libcenote.*' | head -n 1)") "$out/consumer")"
}

installed_consumers() {
  local kind=$1
  # Moved after it was installed: nothing in it may know its first place.
  quietly mv "$work/first-$kind" "$work/$kind"
  cmake_consumer find_package "$work/find-$kind" -DCMAKE_PREFIX_PATH="$work/$kind"
  pkg_config_consumer "$work/$kind" "$work/pkg-$kind"
}

echo "static, installed from $build"
quietly cmake --install "$build" --prefix "$work/first-static"
installed_consumers static
test "$("$work/static/bin/cenote" --version | grep -o '[0-9.]*')" = "$(pkg-config --modversion "$(find "$work/static" -name cenote.pc)")"

echo "shared"
quietly cmake -S "$source" -B "$shared" "${same_flags[@]}" -DBUILD_SHARED_LIBS=ON -DCENOTE_TOOLS=OFF -DCENOTE_TESTS=OFF
quietly cmake --build "$shared"
quietly cmake --install "$shared" --prefix "$work/first-shared"
installed_consumers shared

echo "as a part of the consumer"
cmake_consumer add_subdirectory "$part" "${same_flags[@]}" -DCENOTE_SOURCE="$source"
