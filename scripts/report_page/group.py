"""Cases whose times may be compared, and what the figures and the table of them have in common."""

import re
from collections import Counter
from dataclasses import dataclass
from functools import cached_property

from .ceilings import Rate, lines
from .model import Source
from .rows import Row

EMULATED = (
    "GPU kernels run by an executor on the CPU, to check them without a GPU. Their times say nothing of a GPU's, "
    "and are kept apart from the others for that."
)
# Title -> field and format of what is told of a case, in the table and where the mouse is.
COLUMNS = {
    "variant": ("name", ""),
    "shape": ("shape", ""),
    "median, ms": ("median", ".7g"),
    "95 % interval, ms": ("interval", ""),
    "5th percentile, ms": ("p5", ".7g"),
    "95th percentile, ms": ("p95", ".7g"),
    "launches": ("launches", ""),
    "remark": ("remark", ""),
    "cache": ("cache", ""),
    "duty cycle": ("duty", ".0%"),
    "TFLOP/s": ("tflops", ".4g"),
    "GB/s": ("gbps", ".4g"),
    "floor, ms": ("floor", ".4g"),
    "bound by": ("ceiling", ""),
    "% of the floor": ("percent", ".3g"),
    "speed-up": ("speedup", ".4g"),
    "report": ("source", ""),
}
# A shape's text without this is the same for all shapes that differ in this dimension alone.
DIMENSIONS = {"n": r"n\d+", "c": r"c\d+", "pixels": r"h\d+w\d+", "k": r"k\d+"}


def told(row: Row) -> dict[str, str]:
    """What is known of a case, by title of the column."""
    return {title: format(row[field], number) for title, (field, number) in COLUMNS.items() if row[field] is not None}


@dataclass
class Group:
    id: str
    title: str
    note: str
    rows: list[Row]  # the fastest first
    rates: dict[str, list[Rate]]  # by report

    @cached_property
    def ceilings(self) -> list[Row]:
        intensities = [row["intensity"] for row in self.rows]
        return lines(self.rates, min(intensities) / 4, max(intensities) * 4)

    @cached_property
    def shapes(self) -> list[str]:
        dimensions = {row["shape"]: [row[letter] for letter in "nchwk"] for row in self.rows}
        return sorted(dimensions, key=dimensions.__getitem__)

    @cached_property
    def reports(self) -> list[str]:
        return list(dict.fromkeys(row["source"] for row in self.rows))

    @cached_property
    def names(self) -> list[str]:
        return list(dict.fromkeys(row["name"] for row in self.rows))

    def slice_sizes(self, shape: str) -> dict[str, int]:
        """Dimension -> how many shapes differ from this one in it alone, with this one."""
        rest = {name: re.sub(pattern, "", shape) for name, pattern in DIMENSIONS.items()}
        return {name: self.slices[name, rest[name]] for name in DIMENSIONS}

    @cached_property
    def slices(self) -> Counter:
        return Counter(
            (name, re.sub(pattern, "", shape)) for name, pattern in DIMENSIONS.items() for shape in self.shapes
        )

    @cached_property
    def shape(self) -> str:
        """The one to begin with: what a sweep was made around, as far as slices tell; the largest of equals."""
        cases = Counter(row["shape"] for row in self.rows)

        def weight(shape: str) -> tuple[int, int, int]:
            sizes = self.slice_sizes(shape).values()
            return sum(size > 1 for size in sizes), sum(sizes), cases[shape]

        return max(reversed(self.shapes), key=weight)

    @property
    def data(self) -> dict[str, list[Row]]:
        """By the names that the figures use."""
        return {self.id: [row | {"told": told(row)} for row in self.rows], f"{self.id}-ceilings": self.ceilings}


def groups(sources: list[Source]) -> list[Group]:
    """Of real times and of emulated ones, without empty ones."""
    rows = sorted((row for source in sources for row in source.timed), key=lambda row: row["median"])
    rates = {source.label: source.rates for source in sources if source.timed}
    both = [
        Group("measured", "Times", "", [row for row in rows if not row["emulated"]], rates),
        Group("emulated", "Emulated times", EMULATED, [row for row in rows if row["emulated"]], {}),
    ]
    return [group for group in both if group.rows]
