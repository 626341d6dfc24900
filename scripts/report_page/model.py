"""Reports, read and told apart."""

from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from . import report_file
from .ceilings import Rate, implied_rates, told_rates
from .input_error import InputError
from .rows import Row, case_name, failure_row, identity, timed_row

NOT_RIGHT = ("failed", "mistrusted", "crashed", "timed_out")


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
    report = report_file.read(path)
    try:
        return source_of(report, path)
    except OverflowError as error:
        raise InputError(f"{path}: a number in it is too large to compute with; want each below 1e60") from error


def source_of(report: dict, path: Path) -> Source:
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
    places: dict[tuple, int] = {}
    for index, case in enumerate(report["cases"]):
        first = places.setdefault(identity(case), index)
        if first != index:
            raise InputError(f"{path}: /cases/{index}: the same case as /cases/{first}; want each case once")
        try:
            add(source, case)
        except ValueError as error:
            raise InputError(f"{path}: /cases/{index}: {error}") from error
    ceilings = report.get("ceilings")  # since schema 1.2
    source.rates = told_rates(ceilings) if ceilings else implied_rates(source.timed)
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
