#!/usr/bin/env python3
"""Makes one page, with figures, of one or more reports: scripts/report.py REPORT.json [MORE.json ...] -o report.html

The page needs no network. Exit codes: 0 made, 3 a report or an output path is wrong, 4 Python packages are missing.
"""

import argparse
import importlib
import os
import sys
from pathlib import Path
from types import ModuleType
from typing import NoReturn

from report_page.files import make_folder, replacing
from report_page.input_error import InputError

VENV = Path(__file__).resolve().parent.parent / ".deps" / "venv"  # where setup.sh installs requirements.txt


class Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        print(f"report.py: {message}; --help shows what it takes", file=sys.stderr)
        sys.exit(3)


def path(text: str) -> Path:
    if not text:
        raise argparse.ArgumentTypeError("want a path, not an empty text")
    return Path(text)


def arguments_of(parser: argparse.ArgumentParser) -> argparse.Namespace:
    parser.add_argument("report", type=path, nargs="+", help="what convmish-bench --json wrote")
    parser.add_argument("-o", "--output", type=path, metavar="FILE", help="the page, one HTML file")
    parser.add_argument("--svg", type=path, metavar="DIR", help="a folder for each figure as an SVG file")
    arguments = parser.parse_args()
    if not arguments.output and not arguments.svg:
        parser.error("nothing to make: give -o FILE, --svg DIR or both")
    return arguments


def needing_packages(name: str) -> ModuleType:
    """A module of report_page. Where this interpreter lacks packages, the one that setup.sh has made takes over."""
    try:
        return importlib.import_module(f"report_page.{name}")
    except ModuleNotFoundError as missing:
        python = VENV / "bin" / "python"
        if Path(sys.prefix) != VENV and python.exists():
            os.execv(python, [str(python), *sys.argv])
        print(f"report.py: needs the Python package {missing.name}; ./scripts/setup.sh installs it", file=sys.stderr)
        sys.exit(4)


def main() -> int:
    arguments = arguments_of(Parser(prog="report.py", description=__doc__.splitlines()[0]))
    try:
        sources = needing_packages("model").read_all(arguments.report)
        page = needing_packages("page")
        if arguments.output:
            with replacing(arguments.output, arguments.report) as file:
                file.write(page.html(sources))
        if arguments.svg:
            make_folder(arguments.svg)
            for name, figure in page.svgs(sources).items():
                with replacing(arguments.svg / f"{name}.svg", arguments.report) as file:
                    file.write(figure)
    except InputError as error:
        print(f"report.py: {error}", file=sys.stderr)
        return 3
    return 0


if __name__ == "__main__":
    sys.exit(main())
