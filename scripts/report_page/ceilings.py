"""The ceilings of a report, and the lines of a roofline."""

from dataclasses import dataclass
from typing import Any

# As binding_ceiling has it -> key of the report's ceilings, name and unit (1e12) on the page. Special functions are no
# line of a roofline: how many there are to a FLOP depends on the shape.
CEILINGS = {
    "dram": ("dram_bytes_per_s", "DRAM", "TB/s"),
    "ffma": ("ffma_flops_per_s", "FFMA", "TFLOP/s"),
    "tensor_tf32": ("tensor_tf32_flops_per_s", "TF32 tensor", "TFLOP/s"),
    "tensor_fp16": ("tensor_fp16_flops_per_s", "FP16 tensor", "TFLOP/s"),
}
SAME_RATE = 1.01  # floors of one ceiling differ by rounding only; a variant of three products has a third of the rate


@dataclass
class Rate:
    ceiling: str
    tera: float  # 1e12 bytes or FLOPs a second
    from_data_sheet: bool = False

    @property
    def label(self) -> str:
        _, name, unit = CEILINGS[self.ceiling]
        return f"{name} {self.tera:.4g} {unit}" + (", data sheet" if self.from_data_sheet else "")


def told_rates(ceilings: dict) -> list[Rate]:
    """Those that floors are set by: as measured, or by the data sheet where they were not."""
    rates = []
    for ceiling, (key, *_) in CEILINGS.items():
        measured, data_sheet = ceilings[key]["measured"], ceilings[key]["data_sheet"]
        if measured or data_sheet:
            rates.append(Rate(ceiling, (measured or data_sheet) / 1e12, from_data_sheet=not measured))
    return rates


def implied_rates(rows: list[dict[str, Any]]) -> list[Rate]:
    """Of a report before schema 1.2, which has floors only.

    A floor is work / rate of the ceiling that binds it, so the floors of the cases hold the rate of each ceiling
    that binds one, and say nothing of the others.
    """
    rates: list[Rate] = []
    for row in rows:
        if not row["floor"] or row["ceiling"] not in CEILINGS:
            continue
        tera = row["gflop"] / row["floor"] / (row["intensity"] if row["ceiling"] == "dram" else 1)
        known = [rate.tera for rate in rates if rate.ceiling == row["ceiling"]]
        if not any(tera / SAME_RATE < other < tera * SAME_RATE for other in known):
            rates.append(Rate(row["ceiling"], tera))
    return rates


def lines(rates_of: dict[str, list[Rate]], left: float, right: float) -> list[dict[str, Any]]:
    """The two ends of each line of each report: intensity in FLOP/byte, from `left` to `right`, and TFLOP/s.

    The label stands at the right end, `offset` pixels below: over the line of the bandwidth and under those of
    the pipes, one more line away for each report.
    """
    ends = []
    for level, (source, rates) in enumerate(rates_of.items()):
        bandwidth = next((rate.tera for rate in rates if rate.ceiling == "dram"), None)
        for rate in rates:
            if rate.ceiling == "dram":  # to the right end: a pipe faster than those known may lie above them
                points = ((left, rate.tera * left, None), (right, rate.tera * right, -8 - 14 * level))
            else:
                ridge = max(left, rate.tera / bandwidth) if bandwidth else left
                points = ((min(right, ridge), rate.tera, None), (right, rate.tera, 10 + 14 * level))
            for intensity, tflops, offset in points:
                point = {"intensity": intensity, "tflops": tflops, "offset": offset}
                ends.append({"source": source, "label": rate.label, **point})
    return ends
