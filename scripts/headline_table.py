#!/usr/bin/env python3
"""The Markdown table of a report's times, so that no figure in the README is typed by hand.

    scripts/headline_table.py REPORT.json                    print the table
    scripts/headline_table.py REPORT.json --update README.md  put it between the README's markers
    scripts/headline_table.py REPORT.json --check README.md   exit 1 if what stands there differs
"""
import argparse
import json
import sys
from pathlib import Path

from report_page.problem import flops, shape_text

BEGIN, END = "<!-- headline table: begin -->\n", "<!-- headline table: end -->\n"


def table(report: dict) -> str:
    environment = report["environment"]
    cases = [case for case in report["cases"] if case["verdict"] == "passed" and case["time_ms"]]
    cases.sort(key=lambda case: case["time_ms"]["median"])
    libraries = ", ".join(
        f"{name} {environment[key]}"
        for name, key in (("CUDA", "cuda_runtime"), ("cuDNN", "cudnn"))
        if environment[key]
    )
    lines = [
        f"{environment['device']['name']}, {libraries}; {shape_text(cases[0]['shape'])}; revision "
        f"{report['tool']['git_revision']}, {environment['started_at'][:10]}; all verified on "
        f"{len(cases[0]['checks'])} fills:",
        "",
        "| variant | class | layout | ms | TFLOP/s | of the floor | largest error | against eager's passes |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for case in cases:
        median = case["time_ms"]["median"]
        error = case["checks"][0]["error"]["max_abs"]
        lines.append(
            f"| `{case['variant']}` | {case['math_class']} | {case['layout']} | {median:.3f} "
            f"| {flops(case['shape']) / median / 1e9:.1f} | {case['percent_of_floor']:.0f} % | {error:.1e} | {case['speedup']:.2f}x |"
        )
    return "\n".join(lines) + "\n"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("report", type=Path)
    action = parser.add_mutually_exclusive_group()
    action.add_argument("--update", type=Path, metavar="README")
    action.add_argument("--check", type=Path, metavar="README")
    arguments = parser.parse_args()

    made = table(json.loads(arguments.report.read_text()))
    readme = arguments.update or arguments.check
    if not readme:
        print(made, end="")
        return 0
    text = readme.read_text()
    before, found, rest = text.partition(BEGIN)
    old, closed, after = rest.partition(END)
    if not found or not closed:
        print(f"{readme}: lacks the markers {BEGIN.strip()} and {END.strip()}", file=sys.stderr)
        return 1
    if arguments.update:
        readme.write_text(before + BEGIN + made + END + after)
    elif old != made:
        print(f"{readme}: its table is not that of {arguments.report}; run "
              f"scripts/headline_table.py {arguments.report} --update {readme}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
