"""Cases of a report, made of what PyTorch did and what the tool says of it."""

import re
import shlex
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

from report_page.problem import SPECIAL_FUNCTIONS_PER_OUTPUT, least_bytes, outputs

# Name of a variant -> torch.compile's mode; None: not compiled.
MODES = {
    "torch_eager": None,
    "torch_compile": "default",
    "torch_compile_max_autotune": "max-autotune",  # with CUDA graphs, which copy their inputs first
    "torch_compile_max_autotune_no_cudagraphs": "max-autotune-no-cudagraphs",
}
CLASSES = {"cuda": ("tf32", "fp32"), "cpu": ("fp32",)}
LAYOUTS = ("nchw", "nhwc")

UNWATCHED = "judged by its outputs and a second run; what else a launch of PyTorch touches was not watched"


@dataclass(frozen=True)
class Variant:
    name: str
    math: str
    layout: str

    @property
    def mode(self) -> str | None:
        return MODES[self.name]

    def __str__(self) -> str:
        return f"{self.name}:{self.math}:{self.layout}"


def all_variants(device: str) -> list[Variant]:
    return [Variant(name, math, layout) for math in CLASSES[device] for layout in LAYOUTS for name in MODES]


def matches(variant: Variant, pattern: str) -> bool:
    """NAME, NAME:CLASS or NAME:CLASS:LAYOUT; each may be a glob."""
    parts = pattern.split(":")
    return len(parts) <= 3 and all(
        fnmatchcase(word, part) for word, part in zip((variant.name, variant.math, variant.layout), parts)
    )


def new_case(variant: Variant, shape: dict, plan: dict, device: str, repeat: str | None) -> dict[str, Any]:
    """A case of which nothing is known yet, with every key of schema 1.4."""
    unknown = dict.fromkeys(
        ("reason", "detail", "error", "time_ms", "clocks", "noisy", "noise", "floor_ms", "binding_ceiling",
         "percent_of_floor", "speedup", "prepare_ms", "workspace_bytes", "plan_bytes", "launch", "configuration", "note")
    )  # fmt: skip
    return unknown | {
        "variant": variant.name,
        "math_class": variant.math,
        "layout": variant.layout,
        "device": device,
        "emulated": False,
        "algorithm": "direct",
        "shape": shape,
        "fill": plan["fills"][0],
        "fills": plan["fills"],
        "seed": plan["seed"],
        "verdict": "passed",
        "checks": [],
        "tolerances": [],
        "remeasured": False,
        "remarks": [],
        "repeat": repeat,
    }


def adopt_check(case: dict, judged: dict, repeatable: dict[str, bool]) -> None:
    """`judged`: the tool's case of the same outputs. `repeatable`, by fill: whether a second run gave the same bits."""
    for key in ("fill", "verdict", "reason", "detail", "error", "checks"):
        case[key] = judged[key]
    for check in case["checks"]:
        check["repeatable"] = repeatable.get(check["fill"]) if check["verdict"] != "skipped" else None
    case["remarks"].append(UNWATCHED)


def fail(case: dict, verdict: str, reason: str, detail: str) -> None:
    """The first cause stands."""
    if case["verdict"] == "passed":
        case |= {"verdict": verdict, "reason": reason, "detail": detail}


def tell_distances(case: dict, report: dict) -> None:
    """Floor and speed-up of a case that was timed. Of PyTorch's convolution the pipe is not known, as of cuDNN's."""
    median = case["time_ms"]["median"]
    demands = {
        "dram": (least_bytes(case["shape"]), "dram_bytes_per_s"),
        "special_function": (SPECIAL_FUNCTIONS_PER_OUTPUT * outputs(case["shape"]), "special_functions_per_s"),
    }
    floors = {}
    for ceiling, (amount, key) in demands.items():
        rate = (report["ceilings"] or {}).get(key) or {}
        if best := rate.get("measured") or rate.get("data_sheet"):
            floors[ceiling] = 1e3 * amount / best
    if floors:
        binding = max(floors, key=floors.__getitem__)
        case |= {
            "floor_ms": floors[binding],
            "binding_ceiling": binding,
            "percent_of_floor": 100 * floors[binding] / median,
        }
    for other in report["cases"]:
        if is_baseline(other, case, report) and other["verdict"] == "passed" and other["time_ms"]:
            case["speedup"] = other["time_ms"]["median"] / median


def is_baseline(other: dict, case: dict, report: dict) -> bool:
    same = all(other[key] == case[key] for key in ("math_class", "shape", "device"))
    return same and other["variant"] == report["plan"]["baseline"]


def repeat_command(variant: Variant, shape: dict, report: dict) -> str | None:
    """That of a case of the tool on the same shape, which has the options of the run, with this variant beside it."""
    cases = [case for case in report["cases"] if case["shape"] == shape and case["repeat"]]
    cases.sort(key=lambda case: (case["variant"] != report["plan"]["baseline"], case["math_class"] != variant.math))
    if not cases:
        return None
    options = re.sub(r"^convmish-bench ", "", cases[0]["repeat"])
    return f"scripts/pytorch_baseline.py --torch {shlex.quote(str(variant))} {options}"
