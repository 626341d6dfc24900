"""Statistics of samples, as src/core/statistics.hpp has them."""

import math
import statistics
from typing import Any

LEAST_FOR_INTERVAL = 6  # 2 * (1/2)^6 = 3.1 %


def summary(samples: list[float]) -> dict[str, Any]:
    """A report's `time_ms`, but for what the rounds alone know: `converged`, `cache`, `host_gaps`, `duty_cycle`."""
    # inclusive: linear interpolation between closest ranks, Hyndman and Fan's type 7
    percentiles = statistics.quantiles(samples, n=20, method="inclusive") if len(samples) > 1 else samples * 19
    return {
        "median": statistics.median(samples),
        "ci95": median_interval(sorted(samples)),
        "min": min(samples),
        "p5": percentiles[0],
        "p95": percentiles[-1],
        "mean": statistics.fmean(samples),
        "stddev": statistics.stdev(samples) if len(samples) > 1 else 0.0,
        "samples": samples,
    }


def median_interval(ordered: list[float]) -> list[float] | None:
    """95 %, by the order statistics that a binomial(n, 1/2) leaves out with at most 2.5 % on either side."""
    n = len(ordered)
    if n < LEAST_FOR_INTERVAL:
        return None
    rank, below = -1, 0.0
    while True:
        log_share = math.lgamma(n + 1) - math.lgamma(rank + 2) - math.lgamma(n - rank) - n * math.log(2)
        below += math.exp(log_share)
        if below > 0.025:
            break
        rank += 1
    return [ordered[rank], ordered[n - 1 - rank]]


def relative_half_width(time: dict[str, Any]) -> float | None:
    return (time["ci95"][1] - time["ci95"][0]) / 2 / time["median"] if time["ci95"] and time["median"] else None
