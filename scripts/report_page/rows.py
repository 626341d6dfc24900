"""Cases of a report as rows to plot and to list. Reads schema 1.x, see configs/schema/report.schema.json."""

import math
from typing import Any

from .problem import flops, least_bytes, shape_text

ERROR_FIGURES = ("relative_frobenius", "worst_ratio", "max_abs", "max_rel")

Row = dict[str, Any]


def case_name(case: dict) -> str:
    """Variant and class, and the layout where it is not that of the tensors as they come."""
    return f"{case['variant']} {case['math_class']}" + (" nhwc" if case["layout"] == "nhwc" else "")


def identity(case: dict) -> tuple:
    """What tells a case from the others of its report, as for `convmish-bench compare`."""
    return (*(case[key] for key in ("variant", "math_class", "layout", "device")), shape_text(case["shape"]))


def finite(value: Any) -> float | None:
    """A report's number; none where it is null, "nan" or "inf"."""
    return float(value) if isinstance(value, (int, float)) and math.isfinite(value) else None


def positive(value: float) -> float:
    """A time that a log axis can show."""
    if value <= 0:
        raise ValueError(f"a time of {value} ms; want more than 0")
    return float(value)


def timed_row(case: dict) -> Row:
    """One case as the figures use it. Milliseconds, TFLOP/s (1e12) and GB/s (1e9)."""
    shape = {letter: int(case["shape"][letter]) for letter in "nchwk"}
    time = case["time_ms"]
    median, p5, p95 = (positive(time[figure]) for figure in ("median", "p5", "p95"))
    low, high = map(positive, time["ci95"]) if time["ci95"] else (None, None)
    work = float(flops(shape))
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
        "spread": spread_text(50 * (high - low) / median) if low else "",
        "p5": p5,
        "p95": p95,
        "tflops": work / median / 1e9,
        "gbps": least_bytes(shape) / median / 1e6,
        "floor": finite(case["floor_ms"]),
        "ceiling": case["binding_ceiling"],
        "percent": finite(case["percent_of_floor"]),
        "speedup": finite(case["speedup"]),
        "steady": time["converged"] and not case.get("noisy"),
        "remark": "; ".join(remarks(case)) or None,
        "cache": time.get("cache"),  # since schema 1.2, as all that is asked for by get()
        "duty": time.get("duty_cycle"),  # since schema 1.3
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


def spread_text(percent: float) -> str:
    return f"±{percent:.0f} %" if percent >= 10 else f"±{percent:.2g} %"


def remarks(case: dict) -> list[str]:
    """What one should know of a time."""
    host_gaps = case["time_ms"].get("host_gaps")
    known = {
        f"the device may have waited for the host in {host_gaps} launches": host_gaps,
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
    columns = [trace[name] for name in ("sm_mhz", "power_w", "temperature_c", "limits")]
    if any(len(column) != len(starts) for column in columns):
        raise ValueError("the columns of clocks/trace differ in length; want one element for each reading")
    return [
        {
            "from": start,
            "until": end,
            "mhz": mhz,
            "watts": power,
            "celsius": temperature,
            "limits": ", ".join(limits),
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
            drawn = f"fill {check['fill']}: " if check["fill"] else ""  # else the tensors were given
            lines.append(f"{drawn}{' or '.join(check['forensics']['matches'])} gives the same {outputs}")
    return {
        "verdict": case["verdict"],
        "name": case_name(case),
        "shape": shape_text(case["shape"]),
        "lines": lines,
        "repeat": case["repeat"],
    }
