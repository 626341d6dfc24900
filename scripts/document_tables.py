#!/usr/bin/env python3
"""The tables of measured figures in Markdown documents, so that none is typed by hand.

    scripts/document_tables.py --update README.md results/h200/questions.md
    scripts/document_tables.py --check README.md     exit 1 if a table is not what its source says

A document says what stands where; paths are relative to it:

    <!-- table: headline REPORT.json -->              every passed case, fastest first
    <!-- table: origin REPORT.json -->                where and when it was measured
    <!-- table: ratios REPORT.json NAME NAME... -->   each against the first, by name or name:class
    <!-- table: shapes REPORT.json NAME NAME... -->   a row a shape: times, and how much longer than the first's
    <!-- table: tolerances REPORT.json -->            what other rules say of each case
    <!-- table: channels REPORT.json FIGURE [FILL] --> by input channels: ms, or one of a check's error figures on a fill
    <!-- table: wavefronts NAME NAME... -->            of shared memory, as --tool explains them; against the first
    <!-- end of table -->
"""
import argparse
import json
import re
import subprocess
import sys
from pathlib import Path

from report_page.problem import flops, shape_text

BLOCK = re.compile(r"(<!-- table: (\S+) ([^\n]+) -->\n)(.*?)(<!-- end of table -->\n)", re.DOTALL)
BEGIN = "<!-- table:"


class Mistake(Exception):
    """What is wrong with a document or a report, in a line."""


def markdown(columns: list[str], rows: list[list[str]]) -> str:
    """Columns that are empty in every row are left out."""
    kept = [i for i in range(len(columns)) if any(row[i] for row in rows)]
    lines = ["| " + " | ".join(line[i] for i in kept) + " |\n" for line in [columns, *rows]]
    return "".join([lines[0], "|" + "---|" * len(kept) + "\n", *lines[1:]])


def origin(report: dict) -> str:
    environment = report["environment"]
    libraries = [
        f"{name} {environment[key]}"
        for name, key in (("CUDA", "cuda_runtime"), ("cuDNN", "cudnn"))
        if environment[key]
    ]
    notes = (case.get("note") or "" for case in report["cases"])  # pytorch_baseline.py tells its version there
    libraries += sorted({found[0] for note in notes if (found := re.match(r"PyTorch [^ ,;]+", note))})
    shape = shape_text(report["cases"][0]["shape"])
    return (
        f"{', '.join([environment['device']['name'], *libraries])}; {shape}; revision "
        f"{report['tool']['git_revision']}, {environment['started_at'][:10]}"
    )


def told(value: float | None, form: str, unit: str) -> str:
    return "" if value is None else f"{value:{form}}{unit}"


def headline(report: dict) -> str:
    cases = [case for case in report["cases"] if case["verdict"] == "passed" and case["time_ms"]]
    cases.sort(key=lambda case: case["time_ms"]["median"])
    rows = []
    for case in cases:
        median = case["time_ms"]["median"]
        rows.append([
            f"`{case['variant']}`", case["math_class"], case["layout"], f"{median:.3f}",
            f"{flops(case['shape']) / median / 1e9:.1f}", told(case["percent_of_floor"], ".0f", " %"),
            f"{case['checks'][0]['error']['max_abs']:.1e}", told(case["speedup"], ".2f", "x"),
        ])
    columns = ["variant", "class", "layout", "ms", "TFLOP/s", "of the floor", "largest error", "against eager's passes"]
    return f"{origin(report)}; all verified on {len(cases[0]['checks'])} fills:\n\n" + markdown(columns, rows)


def find_case(cases: list[dict], name: str) -> dict:
    """The case of `name` or `name:class`."""
    variant, _, math = name.partition(":")
    found = [case for case in cases if case["variant"] == variant and math in ("", case["math_class"])]
    if len(found) != 1:
        raise Mistake(f"{len(found)} cases of {name}; want one")
    return found[0]


def ratio_text(case: dict, reference: dict) -> str:
    """Of the medians; in brackets between which ratios both 95 % intervals let it lie."""
    time, base = case["time_ms"], reference["time_ms"]
    ratio = f"{time['median'] / base['median']:.3f}"
    if not time["ci95"] or not base["ci95"]:
        return f"{ratio} (too few samples for an interval)"
    least, most = time["ci95"][0] / base["ci95"][1], time["ci95"][1] / base["ci95"][0]
    return f"{ratio} ({least:.3f} ... {most:.3f})"


def ratios(report: dict, names: list[str]) -> str:
    cases = [find_case(report["cases"], name) for name in names]
    rows = []
    for case in cases:
        time, launch = case["time_ms"], case["launch"] or {}

        def of_launch(key: str) -> str:
            return "" if launch.get(key) is None else str(launch[key])

        rows.append([
            f"`{case['variant']}`",
            f"{time['median']:.3f}" if time else case["verdict"],
            "1" if case is cases[0] else ratio_text(case, cases[0]) if time else "",
            f"{case['checks'][0]['error']['max_abs']:.2e}" if case["checks"] else "",
            f"{case['error']['worst_ratio']:.2f}" if case["checks"] else "",
            of_launch("registers"), of_launch("local_bytes"), of_launch("shared_bytes"),
            of_launch("blocks_per_multiprocessor"),
        ])
    return markdown(
        ["variant", "ms", f"of `{names[0]}`'s time", "largest error", "of the allowed", "registers", "spilled bytes",
         "shared bytes", "blocks a multiprocessor"], rows)


def shapes(report: dict, names: list[str]) -> str:
    of_shape: dict[str, list[dict]] = {}
    for case in report["cases"]:
        of_shape.setdefault(shape_text(case["shape"]), []).append(case)
    rows = []
    for shape, cases in of_shape.items():
        row, first = [shape], None
        for name in names:
            case = find_case(cases, name)
            median = case["time_ms"] and case["time_ms"]["median"]
            text = f"{median:.4g}" if median else case["verdict"]
            if median and first:
                text += f" ({median / first:.2f}x)"
            first = first or median
            row.append(text)
        rows.append(row)
    return markdown(["shape", *(f"`{name}`, ms" for name in names)], rows)


def tolerances(report: dict) -> str:
    rows = [
        [f"`{case['variant']}`", case["math_class"], case["verdict"], f"{case['error']['worst_ratio']:.2f}",
         answer["name"], answer["against"], f"{answer['max_abs']:.2e}", f"{answer['violations']} of {answer['compared']}", answer["verdict"]]
        for case in report["cases"] for answer in case["tolerances"]
    ]
    return markdown(["variant", "class", "strict", "of the allowed", "rule", "against", "largest error", "outside the rule",
                     "its answer"], rows)


def channels(report: dict, figure: str, fill: str | None = None) -> str:
    """A row a variant, a column a number of input channels."""
    found = {}
    for case in report["cases"]:
        if fill is None:
            value = f"{case['time_ms']['median']:.3f}" if case["time_ms"] else case["verdict"]
        else:
            errors = [check["error"] for check in case["checks"] if check["fill"] == fill]
            value = f"{errors[0][figure]:.2g}" if errors else case["verdict"]
        found.setdefault((case["math_class"], case["variant"]), {})[case["shape"]["c"]] = value
    counts = sorted({c for values in found.values() for c in values})
    rows = [[f"`{variant}`", math, *(values.get(c, "") for c in counts)] for (math, variant), values in sorted(found.items())]
    return markdown(["variant", "class", *(f"c {c}" for c in counts)], rows)


def wavefronts(tool: Path | None, names: list[str]) -> str:
    if tool is None:
        raise Mistake("wants --tool")
    rows = []
    for name in names:
        card = subprocess.run([tool, "explain", name, "--device", "cpu"], capture_output=True, text=True, check=False)
        found = re.search(r"^(\d+) of (\d+) wavefronts, (\S+), are bank conflicts", card.stdout, re.MULTILINE)
        if not found:
            raise Mistake(f"{tool} explain {name} tells no wavefronts: {card.stderr.strip()}")
        conflicts, every, share = found.groups()
        rows.append([f"`{name}`", every, conflicts, share, f"{int(every) / int(rows[0][1]):.3f}" if rows else "1"])
    return markdown(["variant", "wavefronts a block", "of them conflicts", "share", f"of `{names[0]}`'s wavefronts"], rows)


def table(kind: str, source: list[str], folder: Path, tool: Path | None) -> str:
    def report() -> dict:
        return json.loads((folder / source[0]).read_text())

    makers = {
        "headline": lambda: headline(report()),
        "origin": lambda: origin(report()) + "\n",
        "ratios": lambda: ratios(report(), source[1:]),
        "shapes": lambda: shapes(report(), source[1:]),
        "tolerances": lambda: tolerances(report()),
        "channels": lambda: channels(report(), *source[1:]),
        "wavefronts": lambda: wavefronts(tool, source),
    }
    if kind not in makers:
        raise Mistake(f"no table is called {kind}; there are {', '.join(makers)}")
    return makers[kind]()


def with_tables(document: Path, tool: Path | None) -> str:
    """The document's text, its tables made anew. Throws Mistake."""
    def make(block: re.Match) -> str:
        begin, kind, source, _old, end = block.groups()
        try:
            return begin + table(kind, source.split(), document.parent, tool) + end
        except (Mistake, OSError, ValueError) as error:
            raise Mistake(f"{document}: {begin.strip()}: {error}") from error

    try:
        text = document.read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise Mistake(f"{document}: cannot be read: {error}") from error
    if BEGIN not in text:
        raise Mistake(f"{document}: holds no table; want one that begins as --help says")
    made, count = BLOCK.subn(make, text)
    if count != text.count(BEGIN):
        raise Mistake(f"{document}: {text.count(BEGIN)} tables begin as the help says, of which {count} end so")
    return made


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    action = parser.add_mutually_exclusive_group(required=True)
    action.add_argument("--update", type=Path, metavar="DOCUMENT", nargs="+")
    action.add_argument("--check", type=Path, metavar="DOCUMENT", nargs="+")
    parser.add_argument("--tool", type=Path, metavar="CONVMISH_BENCH", help="for what needs no GPU, and so no report")
    arguments = parser.parse_args()
    status = 0
    for document in arguments.update or arguments.check:
        try:
            made = with_tables(document, arguments.tool)
        except Mistake as mistake:
            print(mistake, file=sys.stderr)
            status = 1
            continue
        if arguments.update:
            document.write_text(made)
        elif made != document.read_text():
            print(f"{document}: its tables are not those of its reports; run "
                  f"scripts/document_tables.py --update {document}", file=sys.stderr)
            status = 1
    return status


if __name__ == "__main__":
    sys.exit(main())
