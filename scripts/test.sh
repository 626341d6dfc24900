#!/usr/bin/env bash
# Builds and runs the whole test suite twice: the release build, with the CUDA code wherever there is nvcc
# (tests that need a GPU are skipped where there is none), and the CPU part under AddressSanitizer and
# UBSan. The last line counts the tests of both; the exit code is 1 if any failed.
set -euo pipefail
# shellcheck source=scripts/environment.sh
source "$(dirname "${BASH_SOURCE[0]}")/environment.sh"

for option in "$@"; do
  case $option in
    --help) sed -n '2,/^[^#]/s/^# \?//p' "${BASH_SOURCE[0]}"; exit ;;
    *) echo "test.sh: unknown option \"$option\"; there is only --help" >&2; exit 3 ;;
  esac
done

cd "$root"  # ctest stops where the current folder has been removed

passed=0 failed=0 skipped=0 status=0

# count FILE PATTERN: lines of the file that match.
count() { grep -cE "$2" "$1" || true; }

# test_preset PRESET: builds it, runs its tests, adds to the counts above.
test_preset() {
  local preset=$1 results=$root/build/$1/junit.xml
  echo "== $preset"
  if ! build_preset "$preset"; then
    failed=$((failed + 1))  # a preset that does not build counts as one failure
    status=4
    return
  fi
  rm -f "$results"
  # One more than there are cores: some tests wait for a time limit.
  ctest --test-dir "$root/build/$preset" --output-on-failure --no-tests=error --parallel $(($(nproc) + 1)) \
    --output-junit "$results" || status=1
  [ -e "$results" ] || return 0
  local tests skips
  tests=$(count "$results" '<testcase ')
  # CTest also writes <skipped> for a test that it could not start: only SKIP_... is the test's own word.
  skips=$(count "$results" '<skipped message="SKIP_|status="disabled"')
  local passes
  passes=$(count "$results" '<testcase .*status="run"')
  passed=$((passed + passes))
  skipped=$((skipped + skips))
  failed=$((failed + tests - passes - skips))
}

"$root/scripts/setup.sh" --quiet --tests
test_preset release
test_preset host-asan
echo "$passed passed, $failed failed, $skipped skipped"
exit $status
