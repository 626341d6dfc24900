"""Reports as rows to plot and to list. Reads schema 1.x; the names are those of configs/schema/report.schema.json."""

import json
import math
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .ceilings import Rate, implied_rates, told_rates
from .problem import flops, least_bytes, shape_text

TOOL = "convmish-bench"
SCHEMA_MAJOR = "1"
NOT_RIGHT = ("failed", "mistrusted", "crashed", "timed_out")
ERROR_FIGURES = ("relative_frobenius", "worst_ratio", "max_abs", "max_rel")

Row = dict[str, Any]


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


def case_name(case: dict) -> str:
    """Variant and class, and the layout where it is not that of the tensors as they come."""
    return f"{case['variant']} {case['math_class']}" + (" nhwc" if case["layout"] == "nhwc" else "")


def finite(value: Any) -> float | None:
    """A report's number; none where it is null, "nan" or "inf"."""
    return float(value) if isinstance(value, (int, float)) and math.isfinite(value) else None


def positive(value: Any) -> float:
    """A number that a report must have, and that a log axis can show."""
    if not isinstance(value, (int, float)) or not 0 < value < math.inf:
        raise ValueError(f"{value!r} is not a finite number > 0")
    return float(value)


def timed_row(case: dict) -> Row:
    """One case as the figures use it. Milliseconds, TFLOP/s (1e12) and GB/s (1e9)."""
    shape = {letter: int(positive(case["shape"][letter])) for letter in "nchwk"}
    time = case["time_ms"]
    median, p5, p95 = (positive(time[figure]) for figure in ("median", "p5", "p95"))
    low, high = map(positive, time["ci95"]) if time["ci95"] else (None, None)
    work = positive(flops(shape))
    return {
        "name": case_name(case),
        "variant": case["variant"],
        "class": case["math_class"],
        "emulated": case["emulated"],
        "shape": shape_text(shape),
        **shape,
        "pixels": shape["h"] * shape["w"],
        "gflop": work / 1e9,
        "intensity": work / least_bytes(shape),
        "median": median,
        "low": low,
        "high": high,
        "interval": f"{low:.7g} to {high:.7g}" if low else "too few launches",
        "spread": f"±{50 * (high - low) / median:.2g} %" if low else "",
        "p5": p5,
        "p95": p95,
        "start": min(p5, low or median),  # what is drawn of it
        "end": max(p95, high or median),
        "tflops": work / median / 1e9,
        "gbps": least_bytes(shape) / median / 1e6,
        "floor": finite(case["floor_ms"]),
        "ceiling": case["binding_ceiling"],
        "percent": finite(case["percent_of_floor"]),
        "speedup": finite(case["speedup"]),
        "steady": time["converged"] and not case.get("noisy"),
        "remark": "; ".join(remarks(case)) or None,
        "cache": time.get("cache"),  # since schema 1.2, as all that is asked for by get()
        "launches": len(time["samples"]),
        # float32 on the device's clock: seven digits are all there are.
        "samples": [float(f"{positive(sample):.7g}") for sample in time["samples"]],
        "checks": [
            {"fill": check["fill"], **{figure: finite(check["error"][figure]) for figure in ERROR_FIGURES}}
            for check in case["checks"]
            if check["error"]
        ],
        "clocks": clock_readings(case),
    }


def remarks(case: dict) -> list[str]:
    """What one should know of a time."""
    known = {
        "the interval did not become as narrow as asked": not case["time_ms"]["converged"],
        f"noisy: {case.get('noise')}": case.get("noisy"),
        "measured once more, for the first time was noisy": case.get("remeasured"),
    }
    return [text for text, holds in known.items() if holds] + case.get("remarks", [])


def clock_readings(case: dict) -> list[Row]:
    """SM clock in MHz, power in W and temperature in degrees Celsius.

    A reading holds from half a launch before the one that followed it until the next reading.
    """
    if not case.get("clocks"):
        return []
    trace = case["clocks"]["trace"]
    starts = [before + 0.5 for before in trace["before_sample"]]
    ends = [*starts[1:], len(case["time_ms"]["samples"]) + 0.5]
    columns = (trace[name] for name in ("sm_mhz", "power_w", "temperature_c", "limits"))
    return [
        {
            "from": start,
            "until": end,
            "mhz": mhz,
            "watts": power,
            "celsius": temperature,
            "limits": ", ".join(limits or []),
        }
        for start, end, mhz, power, temperature, limits in zip(starts, ends, *columns, strict=True)
        if start < end
    ]


def failure_row(case: dict) -> Row:
    """A case that is not right: the detail says where, forensics which known mistake gives the same."""
    lines = [case["detail"] or case["reason"]]
    for check in case["checks"]:
        if check["forensics"] and check["forensics"]["matches"]:
            outputs = "outputs" if check["forensics"]["matches_everywhere"] else "wrong outputs"
            lines.append(f"fill {check['fill']}: {' or '.join(check['forensics']['matches'])} gives the same {outputs}")
    return {
        "verdict": case["verdict"],
        "name": case_name(case),
        "shape": shape_text(case["shape"]),
        "lines": lines,
        "repeat": case["repeat"],
    }


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
