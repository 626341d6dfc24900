"""Output files that are either whole or not there."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

from .input_error import InputError


@contextmanager
def replacing(path: Path) -> Iterator[TextIO]:
    """A file to write to, which takes the place of `path` at the end; refused at once where it could not."""
    if path.exists() and not path.is_file():
        raise InputError(f"cannot write {path}: it is not a file")
    target = path.resolve()  # behind any symbolic link
    temporary = target.with_name(f".{target.name}.{os.getpid()}")
    try:
        try:
            with temporary.open("w", encoding="utf-8", errors="replace") as file:
                yield file
            temporary.replace(target)
        finally:
            temporary.unlink(missing_ok=True)
    except OSError as error:
        raise InputError(f"cannot write {path}: {error.strerror}") from error


def make_folder(path: Path) -> None:
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"cannot make the folder {path}: {error.strerror}") from error
