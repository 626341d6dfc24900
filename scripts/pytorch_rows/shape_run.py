"""All variants of PyTorch on one shape: each checked, then all that passed timed together. As src/run/runner.hpp."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from report_page.problem import least_bytes

from .cases import Variant, adopt_check, fail, new_case, repeat_command, tell_distances
from .framework import Operands, Prepared, PyTorch, is_transform, same_bits, save, told
from .rounds import INPUT_SETS, time_launches
from .tool import Tool

Case = dict[str, Any]
OTHER_X = "other_x"  # folder of the second input set


class ShapeRun:
    """`say` is told of each step that may take long."""

    def __init__(self, pytorch: PyTorch, tool: Tool, report: dict, shape: dict, say: Callable[[str], None]) -> None:
        self.pytorch = pytorch
        self.tool = tool
        self.report = report
        self.plan = report["plan"]
        self.shape = shape
        self.say = say
        self.scratch = tool.scratch / "tensors"
        self.kernels: dict[Variant, list[str]] = {}
        self.prepared: dict[Variant, Prepared] = {}
        self.cases: dict[Variant, Case] = {}

    def run(self, variants: list[Variant]) -> list[Case]:
        device = self.report["environment"]["device"]["kind"]
        for variant in variants:
            repeat = repeat_command(variant, self.shape, self.report)
            self.cases[variant] = new_case(variant, self.shape, self.plan, device, repeat)
        try:
            self.tool.draw(self.scratch / "drawn", self.shape, self.fills(), self.plan["seed"])
            for layout in dict.fromkeys(variant.layout for variant in variants):
                self.prepare_and_check([variant for variant in variants if variant.layout == layout])
            if self.plan["time"]:
                self.time()
        finally:
            shutil.rmtree(self.scratch, ignore_errors=True)
        return list(self.cases.values())

    def fills(self) -> list[str]:
        return self.plan["fills"] if self.plan["check"] else self.plan["fills"][:1]

    def operands(self, fill: str, layout: str) -> Operands:
        return self.pytorch.load(self.scratch / "drawn" / fill, layout, self.shape["n"])

    def guarded(self, variant: Variant, step: Callable[[], None]) -> None:
        """What a step throws is the variant's verdict, and ends it alone."""
        try:
            step()
        except torch.OutOfMemoryError as error:
            self.give_up(variant, "skipped", "out_of_memory", error)
        except Exception as error:  # of whatever kind: compilers and libraries throw their own
            self.give_up(variant, "crashed", "exception", error)

    def give_up(self, variant: Variant, verdict: str, reason: str, error: Exception) -> None:
        lines = str(error).strip().splitlines() or [type(error).__name__]
        fail(self.cases[variant], verdict, reason, f"{type(error).__name__}: {lines[0]}"[:300])
        self.prepared.pop(variant, None)

    # --- Checks

    def prepare_and_check(self, variants: list[Variant]) -> None:
        """Of one layout. They share the operands of a fill, and a process of the tool where its rules are the same."""
        first = self.operands(self.fills()[0], variants[0].layout)
        for variant in variants:
            self.say(f"{variant}: prepare")
            self.guarded(variant, lambda variant=variant: self.prepare(variant, first))
        del first
        if not self.plan["check"]:
            return
        by_rules: dict[tuple[str, str], list[Variant]] = {}
        for variant in self.prepared:
            if variant in variants:
                by_rules.setdefault((variant.math, self.cases[variant]["algorithm"]), []).append(variant)
        for (math, algorithm), alike in by_rules.items():
            self.check(alike, {"math-class": math, "layout": variants[0].layout, "algorithm": algorithm})

    def prepare(self, variant: Variant, operands: Operands) -> None:
        case = self.cases[variant]
        prepared = self.prepared[variant] = Prepared(self.pytorch, variant, operands)
        kernels = prepared.kernels(operands)
        case["prepare_ms"] = prepared.prepare_ms
        case["algorithm"] = "transform" if is_transform(kernels) else "direct"
        names = list(dict.fromkeys(map(told, kernels)))
        case["note"] = "; ".join([self.pytorch.version(), *([", ".join(names)] if names else [])])

    def check(self, variants: list[Variant], rules: dict[str, str]) -> None:
        repeatable: dict[Variant, dict[str, bool]] = {variant: {} for variant in variants}
        for fill in self.fills():
            operands = self.operands(fill, rules["layout"])
            for variant in variants:
                self.say(f"{variant}: check {fill}")
                self.guarded(variant, lambda variant=variant: self.compute(variant, fill, operands, repeatable[variant]))
            del operands
        computed = [variant for variant in variants if variant in self.prepared]
        if not computed:
            return
        self.pytorch.empty_cache()
        self.say(f"{len(computed)} outputs of {rules['math-class']} {rules['layout']}: verify")
        folders = {variant: self.scratch / variant.name for variant in computed}
        judged = self.tool.verify(folders.values(), self.shape, self.fills(), self.plan["seed"], rules)
        for variant, folder in folders.items():
            adopt_check(self.cases[variant], judged[folder.name], repeatable[variant])
            shutil.rmtree(folder)

    def compute(self, variant: Variant, fill: str, operands: Operands, repeatable: dict[str, bool]) -> None:
        """The plan that will be timed, on as many images; those of the check are saved."""
        y = self.prepared[variant].output(operands)
        repeatable[fill] = same_bits(y, self.prepared[variant].output(operands))
        save(y[: self.images(fill)], variant.layout, self.scratch / variant.name / fill / "y.npy")

    def images(self, fill: str) -> int:
        """As many as the tool has drawn."""
        import numpy

        return numpy.load(self.scratch / "drawn" / fill / "x.npy", mmap_mode="r").shape[0]

    # --- Time

    def time(self) -> None:
        passed = [variant for variant in self.prepared if self.cases[variant]["verdict"] == "passed"]
        if not passed:
            return
        fill = self.fills()[0]
        self.tool.draw(self.scratch / OTHER_X, self.shape, [fill], self.plan["seed"] + 1)
        sets = {}
        for layout in dict.fromkeys(variant.layout for variant in passed):
            drawn = self.operands(fill, layout)
            other = self.pytorch.load(self.scratch / OTHER_X / fill, layout, self.shape["n"])
            sets[layout] = [drawn, Operands(other.x, drawn.weight, drawn.bias)]
            assert len(sets[layout]) == INPUT_SETS
        cache = self.pytorch.cache(least_bytes(self.shape), self.plan["timing"]["cache"])
        self.say(f"{len(passed)} variants: time, cache {cache}")
        launches = [self.timed_launch(self.prepared[variant], sets[variant.layout], cache) for variant in passed]
        timing = self.plan["timing"]
        times = time_launches(
            launches, timing, self.plan["seed"], self.pytorch.warm_up_ms, self.pytorch.duty_cycle(timing)
        )
        for variant, time in zip(passed, times, strict=True):
            if isinstance(time, Exception):
                self.give_up(variant, "crashed", "exception", time)
                continue
            self.cases[variant]["time_ms"] = {**time, "cache": cache}
            tell_distances(self.cases[variant], self.report)

    def timed_launch(self, prepared: Prepared, sets: list[Operands], cache: str) -> Callable:
        return lambda input_set, lead_us: self.pytorch.time(lambda: prepared.launch(sets[input_set]), cache, lead_us)
