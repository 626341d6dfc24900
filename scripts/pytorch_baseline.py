#!/usr/bin/env python3
"""Checks and times PyTorch beside convmish-bench: scripts/pytorch_baseline.py --config FILE --json OUT

Eager, torch.compile and its max-autotune; NCHW and channels_last; TF32 on and off. First the tool runs, with the
options that are not this script's own; then PyTorch, on the same device, shapes and inputs, judged by the tool's
`verify` and timed by the same rules. The report holds the cases of both.
"""

import argparse
import json
import shlex
import sys
import tempfile
from pathlib import Path
from typing import Any, NoReturn

from pytorch_rows.cases import Variant, all_variants, matches
from pytorch_rows.tool import ENVIRONMENT, USAGE, Tool, ToolFailure
from report_page.files import check_replaceable, replacing
from report_page.input_error import InputError
from report_page.problem import shape_text
from report_page.rows import case_name, identity

RUN = Path(__file__).resolve().parent / "run.sh"  # builds the tool where needed
CRASHED, WRONG = 5, 1


class Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        stop(USAGE, f"{message}; --help shows what it takes")


def stop(code: int, line: str) -> NoReturn:
    print(f"pytorch_baseline.py: {line}", file=sys.stderr)
    sys.exit(code)


def arguments_of() -> argparse.Namespace:
    parser = Parser(
        prog="pytorch_baseline.py",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog="All other options are those of a run of the tool: --config, --shape, --fill, --device, --samples ...",
        allow_abbrev=False,
    )
    parser.add_argument("--json", type=Path, metavar="OUT", help="write the report there")
    parser.add_argument(
        "--torch", metavar="NAMES", default="*", help="variants of PyTorch, by NAME[:CLASS[:LAYOUT]], separated by commas; "
        "globs are allowed (default: all)")  # fmt: skip
    parser.add_argument("--beside", type=Path, metavar="REPORT", help="a report of the tool to add to, instead of a run")
    parser.add_argument("--tool", type=Path, metavar="FILE", default=RUN, help="convmish-bench (default: scripts/run.sh)")
    parser.add_argument("--scratch", type=Path, metavar="DIR", help="for tensors on their way to the tool, as large as "
                        "four outputs of a shape (default: the system's)")  # fmt: skip
    arguments, arguments.of_tool = parser.parse_known_args()
    if arguments.beside and arguments.of_tool:
        parser.error(f"{arguments.of_tool[0]} is of a run of the tool, and --beside {arguments.beside} stands for one")
    for option in arguments.of_tool:
        if option.split("=")[0] in ("--csv", "--junit", "--baseline"):
            parser.error(f"{option} is not of use here: the report of both comes by --json")
    return arguments


def chosen(arguments: argparse.Namespace, device: str) -> list[Variant]:
    patterns, variants = arguments.torch.split(","), all_variants(device)
    for pattern in patterns:
        if not any(matches(variant, pattern) for variant in variants):
            known = ", ".join(map(str, variants))
            raise InputError(f'--torch: no variant on {device} matches "{pattern}"; there are {known}')
    return [variant for variant in variants if any(matches(variant, pattern) for pattern in patterns)]


def wants_cpu(of_tool: list[str]) -> bool:
    return "--device=cpu" in of_tool or ("--device", "cpu") in zip(of_tool, of_tool[1:])


def read_report(path: Path) -> dict[str, Any]:
    try:
        report = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from error
    except ValueError as error:
        raise InputError(f"{path}: not JSON: {error}") from error
    try:
        if report["tool"]["name"] != "convmish-bench" or not report["schema_version"].startswith("1."):
            raise InputError(f"{path}: not a report of convmish-bench, schema 1.x")
        if report["schema_version"] in ("1.1", "1.2", "1.3"):
            raise InputError(f"{path}: of schema {report['schema_version']}, want 1.4: let the tool run anew")
        if not report["plan"]["fills"]:
            raise InputError(f"{path}: of tensors that were given, not of a run")
    except (KeyError, TypeError, AttributeError) as error:
        raise InputError(f"{path}: not a report of convmish-bench") from error
    return report


def report_of_tool(arguments: argparse.Namespace, tool: Tool) -> tuple[dict[str, Any], int]:
    if not arguments.beside:
        return tool.run(arguments.of_tool)
    return read_report(arguments.beside), 0


def add_plan(report: dict[str, Any], variants: list[Variant], beside: Path | None) -> None:
    """To the report's head, what it holds beyond the tool's run."""
    names = list(dict.fromkeys(variant.name for variant in variants))
    if report["plan"]["variants"]:
        report["plan"]["variants"] += [name for name in names if name not in report["plan"]["variants"]]
    command = shlex.join(["scripts/pytorch_baseline.py", *sys.argv[1:]])
    report["environment"]["command_line"] = f"{report['environment']['command_line']}; {command}" if beside else command


def add_cases(report: dict[str, Any], cases: list[dict[str, Any]]) -> None:
    """In place of earlier ones of the same kind."""
    known = {identity(case) for case in cases}
    report["cases"] = [case for case in report["cases"] if identity(case) not in known] + cases


def tell(cases: list[dict[str, Any]]) -> None:
    print(f"\nPyTorch on {shape_text(cases[0]['shape'])}")
    for case in sorted(cases, key=lambda case: (case["math_class"], case["time_ms"]["median"] if case["time_ms"] else 1e9)):
        time = case["time_ms"]
        told = f"{time['median']:9.4g} ms" if time else f"{case['verdict']}: {case['detail']}" if case["reason"] else "passed"
        speedup = f"  {case['speedup']:.2f}x" if case["speedup"] else ""
        print(f"  {case_name(case):<50} {told}{speedup}   prepared in {(case['prepare_ms'] or 0) / 1e3:.1f} s", flush=True)


def say(line: str) -> None:
    """Progress, where somebody looks."""
    if sys.stderr.isatty():
        print(f"\r\033[K{line}", end="", file=sys.stderr, flush=True)


def exit_code_of(cases: list[dict[str, Any]]) -> int:
    verdicts = {case["verdict"] for case in cases}
    if verdicts <= {"skipped"}:
        stop(ENVIRONMENT, "nothing of PyTorch could be run here: every case was skipped")
    if verdicts & {"crashed", "timed_out"}:
        return CRASHED
    return WRONG if verdicts & {"failed", "mistrusted"} else 0


def files_read(arguments: argparse.Namespace) -> list[Path]:
    """That may not be replaced: a config. The report that is added to may."""
    words = [Path(word.split("=", 1)[-1]) for word in arguments.of_tool]
    return [path for path in words if path.is_file()]


def write(report: dict[str, Any], arguments: argparse.Namespace) -> None:
    if arguments.json:
        with replacing(arguments.json, files_read(arguments)) as file:
            json.dump(report, file, indent=2)
            file.write("\n")


def run(arguments: argparse.Namespace, scratch: Path) -> int:
    import torch

    from pytorch_rows.framework import PyTorch
    from pytorch_rows.shape_run import ShapeRun

    tool = Tool(arguments.tool, scratch)
    report, code = report_of_tool(arguments, tool)
    device = report["environment"]["device"]
    tool.device = device["kind"] if device["kind"] == "cpu" else f"cuda:{device['index']}"
    if device["kind"] == "cuda" and not torch.cuda.is_available():
        stop(ENVIRONMENT, f"PyTorch {torch.__version__} sees no CUDA GPU; --device cpu runs on the CPU")
    pytorch = PyTorch(tool.device, device["l2_bytes"])
    if pytorch.uuid() and device["uuid"] and pytorch.uuid() != device["uuid"]:
        raise InputError(f"the report is of GPU {device['uuid']}, and PyTorch's {tool.device} is {pytorch.uuid()}")
    variants = chosen(arguments, device["kind"])
    add_plan(report, variants, arguments.beside)
    added = []
    with torch.inference_mode():
        for shape in report["plan"]["shapes"]:
            cases = ShapeRun(pytorch, tool, report, shape, say).run(variants)
            say("")
            tell(cases)
            added += cases
            add_cases(report, cases)
            write(report, arguments)
            torch._dynamo.reset()  # what was compiled for this shape
    return max(code, exit_code_of(added))


def main() -> int:
    arguments = arguments_of()
    try:
        if arguments.json:
            check_replaceable(arguments.json, files_read(arguments))
        chosen(arguments, "cuda")  # a wrong name is told before anything runs
        try:
            import numpy  # noqa: F401
            import torch
        except ModuleNotFoundError as missing:
            stop(ENVIRONMENT, f"needs the Python package {missing.name}, which {sys.executable} lacks")
        if not wants_cpu(arguments.of_tool) and not arguments.beside and not torch.cuda.is_available():
            stop(ENVIRONMENT, f"PyTorch {torch.__version__} sees no CUDA GPU; --device cpu runs on the CPU")
        with tempfile.TemporaryDirectory(prefix="pytorch_baseline.", dir=arguments.scratch) as scratch:
            return run(arguments, Path(scratch))
    except ToolFailure as failure:
        return failure.code
    except InputError as error:
        stop(USAGE, str(error))
    except OSError as error:
        stop(USAGE, f"{error.filename or arguments.scratch}: {error.strerror}")


if __name__ == "__main__":
    sys.exit(main())
