"""Time against what a sweep varies, on log axes."""

import altair as alt

from . import style
from .group import DIMENSIONS, Group
from .style import Figure

TITLES = {
    "n": ("batch", "batch n, images"),
    "c": ("channels", "input channels c"),
    "pixels": ("size", "pixels of an input image, h · w"),
    "k": ("filters", "output channels k"),
}


def sweeps(group: Group) -> list[Figure]:
    """One for each dimension that varies around the shape to begin with, and one of all shapes."""
    varies = [dimension for dimension, shapes in group.slice_sizes(group.shape).items() if shapes > 1]
    figures = [against_dimension(group, dimension) for dimension in varies]
    return figures + [against_work(group)] if len(group.shapes) > 1 else figures


def against_dimension(group: Group, dimension: str) -> Figure:
    pattern = DIMENSIONS[dimension]
    name, title = TITLES[dimension]
    in_slice = f"replace(datum.shape, /{pattern}/, '') === replace(shape, /{pattern}/, '')"
    rows = style.rows_of(group).transform_filter(in_slice).encode(x=style.log_x(dimension, title))
    line = rows.mark_line(strokeWidth=1.5).encode(detail="source:N")
    caption = "The selected shape, and those that differ from it in this alone."
    return figure(group, name, f"Time against {title}", caption, line, rows)


def against_work(group: Group) -> Figure:
    rows = style.rows_of(group).encode(x=style.log_x("gflop", "GFLOP"))
    caption = "Every shape, by the FLOPs of the direct algorithm."
    return figure(group, "work", "Time against work", caption, rows)


def figure(group: Group, name: str, title: str, caption: str, *layers: alt.Chart) -> Figure:
    """The last layer is that of the points."""
    picked = alt.selection_point("picked", fields=["name"], bind="legend")
    encodings = style.by_variant(group)
    opacity = alt.condition(picked, alt.value(1), alt.value(0.1))
    *lines, points = (
        layer.encode(y=style.log_y("median", style.TIME), color=encodings["color"], opacity=opacity) for layer in layers
    )
    points = points.mark_point(size=50, filled=True, tooltip=style.TOLD).encode(shape=encodings["shape"])
    return style.figure(
        group,
        name,
        title,
        f"{caption} Click a name to single it out.",
        *lines,
        points.add_params(picked),
        height=320,
    )
