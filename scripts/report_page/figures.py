"""The figures of a group: times, roofline, accuracy against time, and those of the files beside this one."""

import altair as alt

from . import style
from .group import Group
from .launches import launches
from .style import TIME, TOLD, Figure
from .sweeps import sweeps

FEW_SHAPES = 4  # up to these, each has its own figure of times; beyond, the selected one has
ERRORS = {
    "relative_frobenius": "norm of the error / norm of the output",
    "worst_ratio": "largest error / allowed error",
    "max_abs": "largest absolute error",
    "max_rel": "largest relative error",
}


def figures(group: Group) -> list[Figure]:
    made = [*times(group), launches(group)]
    if group.ceilings:
        made.append(roofline(group))
    if fills := fills_with_errors(group):
        made.append(accuracy(group, fills))
    return made + sweeps(group)


def times(group: Group) -> list[Figure]:
    if len(group.shapes) > FEW_SHAPES:
        return [time(group, "time", "Time per variant", "shape")]
    return [time(group, f"time-{shape}", f"Time per variant, {shape}", f"'{shape}'") for shape in group.shapes]


def time(group: Group, name: str, title: str, shape: str) -> Figure:
    """`shape`: a Vega expression."""
    rows = style.rows_of(group).transform_filter(f"datum.shape === {shape}")
    rows = rows.encode(y=alt.Y("name:N", sort=None, title=None))
    if len(group.reports) > 1:
        rows = rows.encode(yOffset=alt.YOffset("source:N", sort=None))

    def x(field: str) -> alt.X:
        return style.log_x(field, TIME)

    colour = style.by_class(group)
    label = "format(datum.median, '.4~g') + ' ms' + (width < 400 ? '' : ' ' + datum.spread)"
    return style.figure(
        group,
        name,
        title,
        "Dot: the median, with the half width of its 95 % interval; hollow where it did not become as narrow as asked "
        "or the clocks were unsteady. Thick line: that interval. Thin line: 5th to 95th percentile. Tick: the floor, "
        "the least time that the device's ceilings allow.",
        rows.mark_tick(color=style.GREY, thickness=2, size=12).encode(x=x("floor")),
        rows.mark_rule(strokeWidth=1).encode(x=x("p5"), x2="p95", color=colour),
        rows.mark_rule(strokeWidth=5, opacity=0.5).encode(x=x("low"), x2="high", color=colour),
        rows.mark_point(size=70, filled=True, opacity=1, strokeWidth=1.5, tooltip=TOLD).encode(
            x=x("median"),
            fill=style.by_class(group, alt.Fill),
            stroke=style.by_class(group, alt.Stroke),
            fillOpacity=alt.condition("datum.steady", alt.value(1), alt.value(0)),
            **style.by_report(group),
        ),
        rows.transform_calculate(label=label).mark_text(dy=-11, **style.beside("median")).encode(text="label:N"),
        height=alt.Step(32),
    )


def roofline(group: Group) -> Figure:
    x = style.log_x("intensity", "FLOP per byte of least traffic")
    y = style.log_y("tflops", "TFLOP/s")
    lines = alt.Chart(alt.NamedData(f"{group.id}-ceilings"))
    rows = style.rows_of(group)
    return style.figure(
        group,
        "roofline",
        "Roofline",
        "Every case by the rate of the direct algorithm's FLOPs, so that a transform may lie above its pipe. Lines: "
        "the ceilings, as measured where the label says nothing else; of reports before schema 1.2, those that bind a "
        "floor. Named: the fastest of each class on the selected shape.",
        lines.mark_line(color=style.GREY, strokeWidth=1.5).encode(x=x, y=y, detail=["label:N", "source:N"]),
        lines.transform_filter("isValid(datum.offset)")
        .mark_text(
            align="right",
            dy=alt.ExprRef("datum.offset"),
            tooltip=style.told_as({"ceiling": "datum.label", "report": "datum.source"}),
        )
        .encode(x=x, y=y, text="label:N"),
        rows.mark_point(size=60, filled=True, tooltip=TOLD).encode(
            x=x,
            y=y,
            color=style.by_class(group),
            opacity=alt.condition("datum.shape === shape", alt.value(1), alt.value(0.35)),
            **style.by_report(group),
        ),
        rows.transform_filter("datum.shape === shape && datum.leader")
        .mark_text(dy=-7, **style.beside("intensity"))
        .encode(y=y, text="variant:N"),
        height=380,
    )


def fills_with_errors(group: Group) -> list[str]:
    """Those with an error that a log axis can show."""
    checks = (check for row in group.rows for check in row["checks"])
    return list(dict.fromkeys(check["fill"] for check in checks if any(check[error] for error in ERRORS)))


def accuracy(group: Group, fills: list[str]) -> Figure:
    fill = alt.param(
        "fill",
        value="normal" if "normal" in fills else fills[0],
        bind=alt.binding_select(options=fills, name="fill "),
    )
    error = alt.param(
        "error",
        value=next(iter(ERRORS)),
        bind=alt.binding_select(options=list(ERRORS), labels=list(ERRORS.values()), name="error "),
    )
    rows = (
        style.rows_of(group)
        .transform_filter("datum.shape === shape")
        .transform_flatten(["checks"], as_=["check"])
        .transform_calculate(error="datum.check[error]")
        .transform_filter("datum.check.fill === fill && datum.error > 0")
    )
    by_time = {"sort": [alt.SortField("median")], "groupby": ["class", "source"]}
    front = (
        rows.transform_window(least="min(error)", frame=[None, 0], **by_time)
        .transform_window(least_of_faster="lag(least)", **by_time)
        .transform_filter("!isValid(datum.least_of_faster) || datum.error < 0.99 * datum.least_of_faster")
    )
    x, y = style.log_x("median", TIME), style.log_y("error", "error", ".0e")
    colour = style.by_class(group)
    tooltip = alt.ExprRef("merge({'error': format(datum.error, '.4~g')}, datum.told)")
    return style.figure(
        group,
        "accuracy",
        "Accuracy against time",
        "Left is faster, down is more accurate, on the selected shape and fill. Line and names: the Pareto front of "
        "each class, in which errors within 1 % are alike. An error of exactly 0 is left out: the axis has no place "
        "for it.",
        front.mark_line(interpolate="step-after", strokeWidth=1.5).encode(x=x, y=y, color=colour, detail="source:N"),
        rows.mark_point(size=60, filled=True, opacity=1, tooltip=tooltip).encode(
            x=x, y=y, color=colour, **style.by_report(group)
        ),
        front.mark_text(dy=-10, **style.beside("median")).encode(y=y, text="variant:N"),
        height=320,
        params=(error, fill),
    )
