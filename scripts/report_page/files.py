"""Output files that are either whole or not there."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

from .input_error import InputError


@contextmanager
def replacing(path: Path, inputs: list[Path]) -> Iterator[TextIO]:
    """A file to write to, which takes the place of `path` at the end; refused at once where it could not.

    Nor does it take the place of one of `inputs`, by whatever name.
    """
    with beside(path, inputs) as temporary:
        with temporary.open("w", encoding="utf-8", errors="replace") as file:
            yield file
        temporary.replace(behind_links(path))


def check_replaceable(path: Path, inputs: list[Path]) -> None:
    """Whether `replacing` could, before work that would be lost. Changes nothing."""
    with beside(path, inputs) as temporary:
        temporary.touch()


@contextmanager
def beside(path: Path, inputs: list[Path]) -> Iterator[Path]:
    """A name in the folder of `path`; what is there at the end goes."""
    try:
        if path.exists():
            if not path.is_file():
                raise InputError(f"cannot write {path}: it is not a file")
            if any(path.samefile(file) for file in inputs):
                raise InputError(f"cannot write {path}: it is a report to read; name another file")
        target = behind_links(path)
        temporary = target.with_name(f".{target.name}.{os.getpid()}")
        try:
            yield temporary
        finally:
            temporary.unlink(missing_ok=True)
    except OSError as error:
        raise InputError(f"cannot write {path}: {error.strerror}") from error


def behind_links(path: Path) -> Path:
    try:
        return path.resolve()
    except RuntimeError as error:  # of Python before 3.13
        raise InputError(f"cannot write {path}: a loop of symbolic links") from error


def make_folder(path: Path) -> None:
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"cannot make the folder {path}: {error.strerror}") from error
