"""How every figure looks: colours, markers, axes, and how they are put together."""

from dataclasses import dataclass

import altair as alt

from .group import Group

# Okabe and Ito's colours, told apart by colour-blind people too, without those that fade on white or on black.
COLOURS = ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00"]
CLASSES = ["fp32", "tf32", "fp16", "bf16"]  # each has its colour, whichever are present
MARKERS = ["circle", "square", "triangle-up", "diamond", "cross", "triangle-down"]
GREY = "#808080"  # readable on white and on black

TIME = "time of a launch, ms"
TOLD = alt.ExprRef("datum.told")  # the tooltip of a case

SMALL = {"labelFontSize": 12, "titleFontSize": 12, "titleFontWeight": "normal", "labelLimit": 400}
CONFIG = {
    "background": "white",
    "font": "system-ui, sans-serif",
    "view": {"stroke": None},
    "axis": {**SMALL, "gridColor": "#e4e4e4"},
    "legend": {**SMALL, "orient": "top", "columns": {"expr": "max(1, floor(width / 280))"}, "symbolOpacity": 1},
    "text": {"fontSize": 12},
}


@dataclass
class Figure:
    id: str
    title: str
    caption: str
    chart: alt.LayerChart


def figure(
    group: Group, name: str, title: str, caption: str, *layers: alt.Chart, height: int | alt.Step, params: tuple = ()
) -> Figure:
    chart = alt.layer(*layers).add_params(alt.param(name="shape", value=group.shape), *params)
    chart = chart.properties(width="container", height=height, description=f"{title}. {caption}")
    return Figure(f"{group.id}-{name}", title, caption, chart.configure(**CONFIG))


def rows_of(group: Group) -> alt.Chart:
    """A chart of the group's rows, which stand in the page once, whoever draws them."""
    return alt.Chart(alt.NamedData(group.id))


def log_x(field: str, title: str) -> alt.X:
    axis = alt.Axis(format="~g", tickCount=alt.ExprRef("width / 80"))
    return alt.X(f"{field}:Q", title=title, scale=alt.Scale(type="log", nice=False, padding=20), axis=axis)


def log_y(field: str, title: str, number: str = "~g") -> alt.Y:
    axis = alt.Axis(format=number, tickCount=5)
    return alt.Y(f"{field}:Q", title=title, scale=alt.Scale(type="log", nice=False, padding=20), axis=axis)


def by_class(group: Group, channel: type = alt.Color) -> alt.Color | alt.Fill | alt.Stroke:
    present = [name for name in CLASSES if any(row["class"] == name for row in group.rows)]
    colours = [COLOURS[CLASSES.index(name)] for name in present]
    return channel("class:N", title="class", scale=alt.Scale(domain=present, range=colours))


def by_variant(group: Group) -> dict:
    """Colour, and another marker for each round through the colours."""
    count = len(group.names)
    colours = [COLOURS[index % len(COLOURS)] for index in range(count)]
    markers = [MARKERS[index // len(COLOURS) % len(MARKERS)] for index in range(count)]
    return {
        "color": alt.Color("name:N", title="variant", scale=alt.Scale(domain=group.names, range=colours)),
        "shape": alt.Shape("name:N", title="variant", scale=alt.Scale(domain=group.names, range=markers)),
    }


def by_report(group: Group) -> dict:
    """Markers that tell reports apart, where there are several."""
    if len(group.reports) == 1:
        return {}
    markers = [MARKERS[index % len(MARKERS)] for index in range(len(group.reports))]
    return {"shape": alt.Shape("source:N", title="report", scale=alt.Scale(domain=group.reports, range=markers))}


def told_as(fields: dict[str, str]) -> alt.ExprRef:
    """A tooltip: title -> Vega expression."""
    return alt.ExprRef("{" + ", ".join(f"'{title}': {expression}" for title, expression in fields.items()) + "}")


def beside(field: str) -> dict:
    """Properties of a text mark: to the right of its point, unless there is more room to the left."""
    to_left = f"scale('x', datum.{field}) > width / 2"
    return {
        "x": alt.ExprRef(f"scale('x', datum.{field})"),
        "align": alt.ExprRef(f"{to_left} ? 'right' : 'left'"),
        "dx": alt.ExprRef(f"{to_left} ? -8 : 8"),
    }
