"""convmish-bench as a program: it expands configs, draws inputs and judges outputs."""

import json
import shlex
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NoReturn

from report_page.input_error import InputError
from report_page.problem import shape_text

OK, WRONG, USAGE, ENVIRONMENT = 0, 1, 3, 4


class ToolFailure(Exception):
    """The tool could not do what it was asked to. It has said so itself."""

    def __init__(self, code: int) -> None:
        super().__init__(f"exit code {code}")
        self.code = code


class Tool:
    def __init__(self, command: Path, scratch: Path) -> None:
        self.command = command.resolve()  # one without a folder would be looked for in PATH
        self.scratch = scratch
        self.device = "auto"  # once known, that of the run's report

    def run(self, arguments: list[str]) -> tuple[dict[str, Any], int]:
        """The report of a run with these arguments, and its exit code."""
        report = self.scratch / "run.json"
        code = subprocess.run([self.command, *arguments, "--json", report], check=False).returncode
        if code in (USAGE, ENVIRONMENT):
            raise ToolFailure(code)
        if code < 0 or not report.exists():
            print(f"{self.command}: ended with exit code {code}", file=sys.stderr)
            raise ToolFailure(ENVIRONMENT)
        return json.loads(report.read_text(encoding="utf-8")), code

    def draw(self, folder: Path, shape: dict, fills: list[str], seed: int) -> None:
        self.quietly("draw", "--tensors", folder, *self.operands(shape, fills, seed))

    def verify(
        self, folders: Iterable[Path], shape: dict, fills: list[str], seed: int, rules: dict[str, str]
    ) -> dict[str, dict[str, Any]]:
        """Cases by the folders' names. `rules`: math-class, layout and algorithm."""
        report = self.scratch / "verify.json"
        options = [word for name, value in rules.items() for word in (f"--{name}", value)]
        named = [word for folder in folders for word in ("--tensors", folder)]
        self.quietly("verify", *named, *self.operands(shape, fills, seed), *options, "--json", report)
        cases = json.loads(report.read_text(encoding="utf-8"))["cases"]
        return {case["variant"]: case for case in cases}

    def operands(self, shape: dict, fills: list[str], seed: int) -> list[str]:
        return ["--shape", shape_text(shape), "--fill", ",".join(fills), "--seed", str(seed), "--device", self.device]

    def quietly(self, *arguments: Any) -> None:
        command = [str(self.command), *map(str, arguments)]
        completed = subprocess.run(command, capture_output=True, text=True, check=False)
        if completed.returncode not in (OK, WRONG):
            refuse(f"{shlex.join(command)}: {completed.stderr.strip() or f'exit code {completed.returncode}'}")


def refuse(why: str) -> NoReturn:
    raise InputError(why)
