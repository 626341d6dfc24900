"""Times launches in interleaved rounds, by the rules of src/run/timing.hpp."""

import random
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from .summary import relative_half_width, summary

LEAD_US = 30.0  # how long a GPU is kept busy before a launch, so that the host can enqueue it meanwhile
MOST_LEAD_US = 2000.0
INPUT_SETS = 2  # launches take turns with them

# launch(input_set, lead_us) -> milliseconds, and what the host took to enqueue, microseconds; None where it does the work
Launch = Callable[[int, float], tuple[float, float | None]]


@dataclass
class Timed:
    """A launch under way."""

    launch: Launch
    samples: list[float] = field(default_factory=list)
    lead_us: float = LEAD_US
    host_gaps: int = 0  # samples that no lead was long enough for
    total_ms: float = 0  # of the samples
    spent_s: float = 0  # the host's clock
    next_look: int = 0  # at the interval, in samples
    converged: bool = False
    done: bool = False
    error: Exception | None = None


def time_launches(
    launches: list[Launch], timing: dict[str, Any], seed: int, warm_up_ms: float, duty_cycle: float | None
) -> list[dict | Exception]:
    """What summary() gives, with what the rounds know; or what the launch threw, which ended its timing alone.

    `timing` is a report's plan.timing. `duty_cycle`: the share of the time between two launches in which a GPU works;
    None: the device is not let rest.
    """
    every = [Timed(launch) for launch in launches]
    turns = Turns(1 / duty_cycle - 1 if duty_cycle else 0)
    warm_up(every, turns, warm_up_ms)
    order, shuffle = [one for one in every if not one.done], random.Random(seed).shuffle
    while order:
        shuffle(order)
        for one in order:
            attempt(one, lambda one=one: take_sample(one, turns, timing))
        order = [one for one in order if not one.done]
    return [one.error or told(one, duty_cycle) for one in every]


def told(one: Timed, duty_cycle: float | None) -> dict[str, Any]:
    known = {"converged": one.converged, "host_gaps": one.host_gaps, "duty_cycle": duty_cycle}
    return summary(one.samples) | known


class Turns:
    """The input set changes with each launch, whosever it is. Then the device rests, so that power limits no clock."""

    def __init__(self, rest_per_work: float) -> None:
        self.last = 0
        self.rest_per_work = rest_per_work

    def launch(self, one: Timed) -> tuple[float, float | None]:
        self.last = (self.last + 1) % INPUT_SETS
        ms, enqueue_us = one.launch(self.last, one.lead_us)
        if self.rest_per_work:
            time.sleep(self.rest_per_work * (ms + one.lead_us / 1e3) / 1e3)
        return ms, enqueue_us


def attempt(one: Timed, step: Callable[[], None]) -> None:
    try:
        step()
    except Exception as error:  # whatever a framework throws
        one.error, one.done = error, True


def warm_up(every: list[Timed], turns: Turns, least_ms: float) -> None:
    worked = 0.0

    def work(one: Timed) -> None:
        nonlocal worked
        worked += turns.launch(one)[0] + one.lead_us / 1e3

    while True:
        for one in every:
            if not one.done:
                attempt(one, lambda one=one: work(one))
        if worked >= least_ms or all(one.done for one in every):
            return


def take_sample(one: Timed, turns: Turns, timing: dict[str, Any]) -> None:
    start = time.perf_counter()
    one.samples.append(launch_without_gap(one, turns))
    one.total_ms += one.samples[-1]
    one.spent_s += time.perf_counter() - start
    update(one, timing)


def launch_without_gap(one: Timed, turns: Turns) -> float:
    """A launch in which the device may have waited for the host is made again: at once, then with longer leads."""
    again = False
    while True:
        ms, enqueue_us = turns.launch(one)
        if enqueue_us is None or enqueue_us <= one.lead_us:
            return ms
        if one.lead_us >= MOST_LEAD_US:
            one.host_gaps += 1
            return ms
        if again:
            one.lead_us = min(2 * one.lead_us, MOST_LEAD_US)
        again = True


def update(one: Timed, timing: dict[str, Any]) -> None:
    count, fixed = len(one.samples), timing["samples"]
    one.done = count >= fixed if fixed else one.spent_s >= timing["max_time_s"]
    may_stop = not fixed and one.total_ms >= 1e3 * timing["min_time_s"] and count >= one.next_look
    if not may_stop and not one.done:
        return
    one.next_look = count + count // 16 + 1
    width = relative_half_width(summary(one.samples))
    one.converged = width is not None and width <= timing["ci_half_width"]
    one.done |= one.converged
