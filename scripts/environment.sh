# Sourced by the other scripts: where things are, and how a preset is built.
# shellcheck shell=bash

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
deps=$root/.deps

die() {
  echo "$(basename "$0"): $*" >&2
  exit 4  # the tool's own code for an unusable environment
}

# A cmake that setup.sh installed stands in for one that is too old.
PATH=$deps/venv/bin:$PATH
# The toolkit's usual place, where the shell's profile does not name it.
if ! command -v nvcc >/dev/null && [ -x /usr/local/cuda/bin/nvcc ]; then
  PATH=$PATH:/usr/local/cuda/bin
fi
export PATH

# build_preset PRESET [TARGET...]: configures where needed, builds, and is quiet unless something fails.
build_preset() (
  cd "$root" || exit  # cmake stops where the current folder has been removed
  local preset=$1 build=$root/build/$1
  shift
  local log=$build/build.log
  mkdir -p "$build"
  # Ninja configures again when a CMake file changes. What setup.sh installed since, it cannot see.
  if [ ! -e "$build/build.ninja" ] || [ "$deps/installed" -nt "$build/build.ninja" ]; then
    cmake -S "$root" --preset "$preset" >"$log" 2>&1 || { cat "$log" >&2; die "cannot configure preset $preset"; }
    sed -nE 's/^-- ((CUDA|cuBLAS|cuDNN|oneDNN): )/\1/p' "$log" >&2
    echo "building $build (minutes when it is new)" >&2
  fi
  # nvcc needs up to 2 GiB a job.
  local jobs memory_jobs
  jobs=$(nproc)
  memory_jobs=$(awk '/^MemAvailable/ {print int($2 / 2097152)}' /proc/meminfo)
  if [ "$memory_jobs" -lt "$jobs" ]; then jobs=$((memory_jobs > 0 ? memory_jobs : 1)); fi
  cmake --build "$build" --parallel "$jobs" ${1:+--target "$@"} >"$log" 2>&1 ||
    { cat "$log" >&2; die "cannot build preset $preset"; }
)
