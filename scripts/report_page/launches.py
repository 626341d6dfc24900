"""The launches of one variant in order, and the clocks beside them."""

import altair as alt

from . import style
from .group import Group
from .style import Figure, told_as

CLOCK_COLOUR = style.COLOURS[4]  # no class's


def launches(group: Group) -> Figure:
    first = next(row["name"] for row in group.rows if row["shape"] == group.shape)
    variant = alt.param("variant", value=first, bind=alt.binding_select(options=group.names, name="variant "))
    layers, caption = (
        [times(group)],
        "Every timed launch of one variant. Line and band: the median and its 95 % interval.",
    )
    if any(row["clocks"] for row in group.rows):
        layers.insert(0, clocks(group))
        caption += " Bars: the clock of the multiprocessors, from one reading to the next."
    caption += " Empty where the variant has no time on the selected shape."
    figure = style.figure(group, "samples", "Launches in order", caption, *layers, height=240, params=(variant,))
    figure.chart = figure.chart.resolve_scale(y="independent")
    return figure


def selected(group: Group) -> alt.Chart:
    return style.rows_of(group).transform_filter("datum.shape === shape && datum.name === variant")


def x(field: str) -> alt.X:
    axis = alt.Axis(tickMinStep=1, tickCount=10, format="d", grid=False)
    return alt.X(f"{field}:Q", title="launch, in order", axis=axis, scale=alt.Scale(nice=False, zero=False))


def y(field: str, title: str, **axis: object) -> alt.Y:
    return alt.Y(f"{field}:Q", title=title, axis=alt.Axis(**axis), scale=alt.Scale(zero=False, padding=6))


def by_report(group: Group) -> dict:
    return {"strokeDash": alt.StrokeDash("source:N", title="report")} if len(group.reports) > 1 else {}


def times(group: Group) -> alt.LayerChart:
    rows = selected(group)
    samples = (
        rows.transform_flatten(["samples"])
        .transform_window(launch="row_number()", groupby=["source"])
        .encode(x=x("launch"), y=y("samples", style.TIME), color=style.by_class(group).legend(None))
    )
    tooltip = {"launch": "datum.launch", "ms": "format(datum.samples, '.7~g')", "report": "datum.source"}
    return alt.layer(
        rows.mark_rect(opacity=0.15, color=style.GREY).encode(y=y("low", style.TIME), y2="high"),
        rows.mark_rule(color=style.GREY).encode(y=y("median", style.TIME)),
        samples.mark_line(strokeWidth=1).encode(**by_report(group)),
        samples.mark_point(size=14, filled=True, opacity=1, tooltip=told_as(tooltip)),
    )


def clocks(group: Group) -> alt.Chart:
    tooltip = {
        "SM clock, MHz": "datum.reading.mhz",
        "power, W": "datum.reading.watts",
        "temperature, °C": "datum.reading.celsius",
        "held down by": "datum.reading.limits",
    }
    return (
        selected(group)
        .transform_flatten(["clocks"], as_=["reading"])
        .transform_calculate(**{field: f"datum.reading.{field}" for field in ("from", "until", "mhz")})
        .transform_filter("isValid(datum.mhz)")
        .mark_rule(color=CLOCK_COLOUR, strokeWidth=2, tooltip=told_as(tooltip))
        .encode(
            x=x("from"),
            x2="until",
            y=y("mhz", "SM clock, MHz", orient="right", format="d", grid=False, titleColor=CLOCK_COLOUR),
            **by_report(group),
        )
    )
