#!/usr/bin/env python3
"""Runs `convmish-bench selftest` and holds each mutant to the rule that must catch it: matrix_test.py BINARY DEVICE

A mutant that is caught by another rule than its own, say because it crashes, would prove nothing about its own.
"""

import json
import os
import pathlib
import subprocess
import sys
import tempfile

TOLERANCE, OUTSIDE, STREAM = "outside_tolerance", "wrote_outside_buffers", "work_outside_stream"
TIMED = "wrong_when_timed"

RULES = {
    **dict.fromkeys(
        ("zeros", "nothing_written", "last_column_unwritten", "last_row_unwritten", "last_channel_unwritten",
         "last_image_unwritten", "half_pair_unwritten", "bias_left_out", "bias_of_previous_channel",
         "filter_transposed", "filter_flipped", "last_tap_dropped", "channel_tail_dropped", "tf32_declared_fp32",
         "fp16_accumulation", "mish_once", "mish_thrice", "relu_for_second_mish", "softplus_unclamped",
         "exponential_unclamped", "tail_cut", "polynomial", "missing_barrier", "right_once"), {TOLERANCE}),
    "bf16_declared_tf32": {TOLERANCE, "wrong_class"},
    **dict.fromkeys(("store_past_end", "store_before_start", "store_to_x", "store_to_filter",
                     "store_past_workspace"), {OUTSIDE}),
    **dict.fromkeys(("right_for_six_calls", "idle_when_timed", "caches_by_pointer", "caches_by_digest"), {TIMED}),
    "returns_previous": {TOLERANCE, TIMED},
    "on_another_stream": {STREAM},
    "throws": {"exception"},
    "crashes": {"process_died", "device_error"},
    "exits": {"process_died"},
    "hangs": {"time_limit"},
}  # fmt: skip

# AddressSanitizer stops at the access itself: the worker dies.
IN_GUARD_ZONE = ("store_past_end", "store_before_start", "store_past_workspace")


def main():
    binary, device = sys.argv[1:]
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder) / "selftest.json"
        completed = subprocess.run([binary, "selftest", "--device", device, "--json", file],
                                   capture_output=True, text=True, check=False)
        print(completed.stdout, completed.stderr)
        if device == "cuda" and completed.returncode == 4 and os.environ.get("CONVMISH_REQUIRE_GPU") != "1":
            return 77
        if completed.returncode != 0:
            print(f"exit code {completed.returncode}")
            return 1
        report = json.loads(file.read_text(encoding="utf-8"))

    sanitized = "address" in report["environment"]["build_type"]
    cases = {case["variant"]: case for case in report["cases"]}
    problems = [f"{name}: is no mutant of this build" for name in RULES if name not in cases]
    for name, rules in RULES.items():
        if sanitized and name in IN_GUARD_ZONE:
            rules = {"process_died"}
        if name in cases and cases[name]["reason"] not in rules:
            problems.append(f"{name}: caught as {cases[name]['reason']}; want {' or '.join(sorted(rules))}")
    honest = [name for name, case in cases.items() if name not in RULES]
    problems += [f"{name}: {cases[name]['verdict']}; a mutant without a rule here, or an honest variant"
                 for name in honest if cases[name]["verdict"] not in ("passed", "skipped")]  # fmt: skip
    if not any(cases[name]["verdict"] == "passed" for name in honest):
        problems.append("no honest variant passed")
    print("\n".join(problems))
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
