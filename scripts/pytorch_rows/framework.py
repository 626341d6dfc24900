"""y = mish(mish(conv2d(x, filter) + bias)) by PyTorch: prepared, launched, timed."""

import contextlib
import io
import logging
import re
import time
import types
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy
import torch
from torch.nn import functional

from .cases import Variant

WARM_UP_MS = 50.0  # as src/core/device.hpp has it
SELF_EVICTING = 4  # data beyond this many times the last-level cache evicts itself, see src/run/timing.cpp

LONGEST_KERNEL_NAME = 80  # characters that are told


def operation(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
    return functional.mish(functional.mish(functional.conv2d(x, weight, bias)))


@dataclass
class Operands:
    x: torch.Tensor
    weight: torch.Tensor
    bias: torch.Tensor


class PyTorch:
    """On one device, 'cpu' or 'cuda:INDEX'."""

    def __init__(self, device: str, l2_bytes: int | None) -> None:
        self.device = torch.device(device)
        self.l2_bytes = l2_bytes or 0
        self.flush: torch.Tensor | None = None
        self.allows_tf32: bool | None = None
        warnings.filterwarnings("ignore", category=UserWarning, module="torch")
        logging.getLogger("torch").setLevel(logging.ERROR)
        if self.is_cuda:
            torch.cuda.set_device(self.device)

    @property
    def is_cuda(self) -> bool:
        return self.device.type == "cuda"

    @property
    def warm_up_ms(self) -> float:
        return WARM_UP_MS if self.is_cuda else 0.0

    def allow_tf32(self, allowed: bool) -> None:
        """Convolutions look at it when they are launched, a compiler when it compiles."""
        if self.allows_tf32 != allowed:
            torch.backends.cudnn.allow_tf32 = torch.backends.cuda.matmul.allow_tf32 = self.allows_tf32 = allowed

    def duty_cycle(self, timing: dict) -> float | None:
        return timing["duty_cycle"] if self.is_cuda else None

    def version(self) -> str:
        cudnn = torch.backends.cudnn.version() if self.is_cuda else None
        numbers = f"{cudnn // 10000}.{cudnn // 100 % 100}.{cudnn % 100}" if cudnn else ""
        return f"PyTorch {torch.__version__}" + (f", its cuDNN {numbers}" if numbers else "")

    def uuid(self) -> str | None:
        return f"GPU-{torch.cuda.get_device_properties(self.device).uuid}" if self.is_cuda else None

    def synchronize(self) -> None:
        if self.is_cuda:
            torch.cuda.synchronize()

    def load(self, folder: Path, layout: str, images: int) -> Operands:
        """What `convmish-bench draw` wrote; x repeated up to so many images."""
        x, weight, bias = (torch.from_numpy(numpy.load(folder / f"{name}.npy")) for name in ("x", "filter", "bias"))
        x = x.to(self.device)
        if x.shape[0] < images:
            x = x.repeat(-(-images // x.shape[0]), 1, 1, 1)[:images]
        order = torch.channels_last if layout == "nhwc" else torch.contiguous_format
        return Operands(
            x.contiguous(memory_format=order), weight.to(self.device).contiguous(memory_format=order), bias.to(self.device)
        )

    def cache(self, least_bytes: int, asked: str | None) -> str:
        return asked or ("cold" if self.is_cuda and least_bytes <= SELF_EVICTING * self.l2_bytes else "hot")

    def empty_cache(self) -> None:
        """Gives memory that no tensor uses back to the device, where the tool runs too."""
        if self.is_cuda:
            torch.cuda.empty_cache()

    def time(self, launch: Callable[[], torch.Tensor], cache: str, lead_us: float) -> tuple[float, float | None]:
        """Milliseconds, and what the host took to enqueue, microseconds."""
        if not self.is_cuda:
            start = time.perf_counter()
            launch()
            return 1e3 * (time.perf_counter() - start), None
        if cache == "cold":
            if self.flush is None:
                self.flush = torch.empty(2 * self.l2_bytes, dtype=torch.uint8, device=self.device)
            self.flush.zero_()
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        # Busy meanwhile, the device has all of the launch in its queue when it comes to it: no gap of the host's is timed.
        enqueue = time.perf_counter()
        torch.cuda._sleep(int(lead_us * self.cycles_per_us()))
        begin.record()
        launch()
        end.record()
        enqueued = time.perf_counter()
        end.synchronize()
        return begin.elapsed_time(end), 1e6 * (enqueued - enqueue)

    def cycles_per_us(self) -> float:
        """At the highest clock: at a lower one the device is kept busy for longer."""
        return getattr(torch.cuda.get_device_properties(self.device), "clock_rate", 2_000_000) / 1e3


class Prepared:
    """A variant of one shape, compiled where it is to be: for this very shape, layout and precision."""

    def __init__(self, pytorch: PyTorch, variant: Variant, operands: Operands) -> None:
        self.pytorch = pytorch
        self.variant = variant
        self.function = operation
        if variant.mode:
            # A code object of its own: dynamo keeps what it compiles by that, and only so much for each.
            code = operation.__code__.replace(co_name=re.sub(r"\W", "_", str(variant)))
            own = types.FunctionType(code, operation.__globals__)
            self.function = torch.compile(own, mode=variant.mode, fullgraph=True, dynamic=False)
        start = time.perf_counter()
        with contextlib.redirect_stderr(io.StringIO()):  # tables of what autotuning has tried
            for _ in range(2):  # in the second call a CUDA graph is recorded
                self.launch(operands)
            pytorch.synchronize()
        self.prepare_ms = 1e3 * (time.perf_counter() - start)

    def launch(self, operands: Operands) -> torch.Tensor:
        self.pytorch.allow_tf32(self.variant.math == "tf32")
        return self.function(operands.x, operands.weight, operands.bias)

    def output(self, operands: Operands) -> torch.Tensor:
        """One that no later launch overwrites, as a CUDA graph's next replay would."""
        y = self.launch(operands)
        self.pytorch.synchronize()
        return y.clone() if self.variant.mode == "max-autotune" else y

    def kernels(self, operands: Operands) -> list[str]:
        """Names of what a launch runs on the GPU, in order."""
        if not self.pytorch.is_cuda:
            return []
        from torch.profiler import ProfilerActivity, profile

        with profile(activities=[ProfilerActivity.CUDA]) as profiler:
            self.launch(operands)
            torch.cuda.synchronize()
        on_gpu = [event.name for event in profiler.events() if event.device_type == torch.autograd.DeviceType.CUDA]
        return [name for name in on_gpu if not name.startswith("Mem")]  # Memset, Memcpy


def told(kernel: str) -> str:
    """A kernel's name without its arguments."""
    name = kernel.removeprefix("void ").replace("(anonymous namespace)::", "")
    return re.split(r"[<(]", name)[0][:LONGEST_KERNEL_NAME]


def is_transform(kernels: list[str]) -> bool:
    return any(re.search(r"winograd|fft", kernel, re.IGNORECASE) for kernel in kernels)


def same_bits(one: torch.Tensor, other: torch.Tensor) -> bool:
    return torch.equal(one.view(torch.int32), other.view(torch.int32))


def save(y: torch.Tensor, layout: str, path: Path) -> None:
    """In the memory order of the layout, as `convmish-bench verify` reads it."""
    ordered = y.permute(0, 2, 3, 1) if layout == "nhwc" else y
    path.parent.mkdir(parents=True, exist_ok=True)
    numpy.save(path, ordered.contiguous().cpu().numpy())
