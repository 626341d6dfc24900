#!/usr/bin/env bash
# Builds the tool where needed and runs it with the arguments given:
#
#   ./scripts/run.sh --variant all
set -euo pipefail
# shellcheck source=scripts/environment.sh
source "$(dirname "${BASH_SOURCE[0]}")/environment.sh"

"$root/scripts/setup.sh" --quiet
build_preset release convmish-bench
exec "$root/build/release/convmish-bench" "$@"
