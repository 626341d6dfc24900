"""Counts of y = mish(mish(conv2d(x, filter) + bias)), 3x3, stride 1, no padding, as src/core/shape.hpp has them.

A report holds dimensions and times; rates follow from both.
"""

Shape = dict[str, int]  # n c h w k, as in a report
SPECIAL_FUNCTIONS_PER_OUTPUT = 3  # as src/core/ceiling.cpp counts them


def shape_text(shape: Shape) -> str:
    """The shape as --shape takes it."""
    return "".join(f"{letter}{shape[letter]}" for letter in "nchwk")


def outputs(shape: Shape) -> int:
    return shape["n"] * shape["k"] * (shape["h"] - 2) * (shape["w"] - 2)


def flops(shape: Shape) -> int:
    """Of the direct algorithm; a multiply-add is two."""
    return 2 * 9 * shape["c"] * outputs(shape)


def least_bytes(shape: Shape) -> int:
    """Least DRAM traffic of the fused operation: every fp32 tensor once."""
    x = shape["n"] * shape["c"] * shape["h"] * shape["w"]
    return 4 * (x + 9 * shape["c"] * shape["k"] + shape["k"] + outputs(shape))
