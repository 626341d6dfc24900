"""The lines of a roofline, from what a report holds."""

from .model import Row

PIPES = {"ffma": "FFMA", "tensor_tf32": "TF32 tensor", "tensor_fp16": "FP16 tensor"}
SAME_RATE = 1.01  # floors of one ceiling differ by rounding only; a variant of three products has a third of the rate


def rates(rows: list[Row]) -> tuple[float | None, dict[str, float]]:
    """Bandwidth in TB/s, and TFLOP/s by label.

    A floor is work / rate of the ceiling that binds it, so the floors of the cases hold the rate of each
    ceiling that binds one, and say nothing of the others.
    """
    bandwidth, pipes = None, {}
    for row in rows:
        if not row["floor"]:
            continue
        rate = row["gflop"] / row["floor"]
        if row["ceiling"] == "dram":
            bandwidth = rate / row["intensity"]
        elif row["ceiling"] in PIPES and not any(
            rate / SAME_RATE < known < rate * SAME_RATE for known in pipes.values()
        ):
            pipes[f"{PIPES[row['ceiling']]} {rate:.4g} TFLOP/s"] = rate
    return bandwidth, pipes


def lines(rows: list[Row]) -> list[Row]:
    """The two ends of each line: intensity in FLOP/byte, TFLOP/s.

    The label stands at the right end, `offset` pixels below: over the line of the bandwidth and under those of
    the pipes, one more line away for each report.
    """
    left = min(row["intensity"] for row in rows) / 4
    right = max(row["intensity"] for row in rows) * 4
    ends = []
    for level, source in enumerate(dict.fromkeys(row["source"] for row in rows)):
        bandwidth, pipes = rates([row for row in rows if row["source"] == source])
        made = []  # label, intensity, TFLOP/s, offset
        if bandwidth:  # to the right end: a pipe faster than those known may lie above them
            label = f"DRAM {bandwidth:.4g} TB/s"
            made += [(label, left, bandwidth * left, None), (label, right, bandwidth * right, -8 - 14 * level)]
        for label, rate in pipes.items():
            ridge = rate / bandwidth if bandwidth else left
            made += [(label, min(right, max(left, ridge)), rate, None), (label, right, rate, 10 + 14 * level)]
        names = ("label", "intensity", "tflops", "offset")
        ends += [{"source": source, **dict(zip(names, end, strict=True))} for end in made]
    return ends
