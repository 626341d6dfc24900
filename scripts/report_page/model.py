"""Reports, read and told apart."""

import json
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from .ceilings import Rate, implied_rates, told_rates
from .rows import Row, case_name, failure_row, timed_row

TOOL = "convmish-bench"
SCHEMA_MAJOR = "1"
NOT_RIGHT = ("failed", "mistrusted", "crashed", "timed_out")


class InputError(Exception):
    """One line for the user: what is wrong, and where."""


@dataclass
class Source:
    """One report. `label` tells it from the others on the page."""

    path: Path
    device: str
    revision: str
    facts: list[tuple[str, str]]  # of the environment, as far as they are known
    verdicts: Counter
    timed: list[Row]  # one row for each case that passed and was timed
    failures: list[Row]
    untold: list[Row]  # without a time or a failure, for the reason told: skipped, or passed and not timed
    rates: list[Rate]  # that limit the device
    label: str = ""

    @property
    def cases(self) -> int:
        return self.verdicts.total()


def read_all(paths: list[Path]) -> list[Source]:
    sources = [read(path) for path in paths]
    label(sources)
    mark_leaders([row for source in sources for row in source.timed])
    return sources


def read(path: Path) -> Source:
    try:
        report = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from error
    except (ValueError, RecursionError) as error:  # not UTF-8, not JSON, or nested beyond reason
        raise InputError(f"{path}: not JSON: {error}") from error
    place = ""  # JSON pointer
    try:
        if report["tool"]["name"] != TOOL:
            raise InputError(f"{path}: /tool/name is {report['tool']['name']!r}; want a report of {TOOL}")
        if report["schema_version"].split(".")[0] != SCHEMA_MAJOR:
            raise InputError(
                f"{path}: /schema_version is {report['schema_version']!r}; this script reads {SCHEMA_MAJOR}.x"
            )
        environment = report["environment"]
        source = Source(
            path,
            device=environment["device"]["name"] or environment["device"]["kind"],
            revision=report["tool"]["git_revision"],
            facts=facts(environment, path),
            verdicts=Counter(),
            timed=[],
            failures=[],
            untold=[],
            rates=[],
        )
        for index, case in enumerate(report["cases"]):
            place = f" /cases/{index}:"
            add(source, case)
        place = " /ceilings:"
        ceilings = report.get("ceilings")  # since schema 1.2
        source.rates = told_rates(ceilings) if ceilings else implied_rates(source.timed)
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        what = f"no key {error}" if isinstance(error, KeyError) else error
        raise InputError(f"{path}:{place} not what {TOOL} --json writes: {what}") from error
    return source


def facts(environment: dict, path: Path) -> list[tuple[str, str]]:
    known = {
        "device": environment["device"]["name"],
        "driver": environment["driver"],
        "CUDA": environment["cuda_runtime"],
        "cuDNN": environment["cudnn"],
        "oneDNN": environment["onednn"],
        "host CPU": environment["host_cpu"],
        "system": environment["operating_system"],
        "compiler": environment["compiler"],
        "CUDA compiler": environment["cuda_compiler"],
        "build": environment["build_type"],
        "started": environment["started_at"],
        "file": path.name,
        "command": environment["command_line"],
    }
    return [(term, text) for term, text in known.items() if text]


def add(source: Source, case: dict) -> None:
    verdict = case["verdict"]
    # A case that was timed without a check is no evidence of being right.
    source.verdicts["unchecked" if verdict == "passed" and not case["checks"] else verdict] += 1
    if verdict in NOT_RIGHT:
        source.failures.append(failure_row(case))
    elif verdict == "passed" and case["time_ms"]:
        source.timed.append(timed_row(case))
    else:
        source.untold += ({"name": case_name(case), "reason": reason} for reason in reasons(case))


def reasons(case: dict) -> list[str]:
    """Why a case has neither time nor failure."""
    return [case["detail"] or case["reason"]] if case["verdict"] == "skipped" else case.get("remarks", [])


def label(sources: list[Source]) -> None:
    """Device and revision; the file too where they do not tell the reports apart."""
    candidates = (
        lambda source: f"{source.device} @ {source.revision}",
        lambda source: f"{source.device} @ {source.revision}, {source.path.name}",
        lambda source: f"{source.device} @ {source.revision}, {source.path}",
    )
    for candidate in candidates:
        labels = [candidate(source) for source in sources]
        if len(set(labels)) == len(labels):
            break
    else:
        raise InputError("a report is given twice; name each file once")
    for source, text in zip(sources, labels, strict=True):
        source.label = text
        for row in source.timed + source.failures:
            row["source"] = text


def mark_leaders(rows: list[Row]) -> None:
    """The fastest of each class and shape: the ones that a crowded figure names."""
    seen = set()
    for row in sorted(rows, key=lambda row: row["median"]):
        key = (row["shape"], row["class"], row["emulated"])
        row["leader"] = key not in seen
        seen.add(key)
