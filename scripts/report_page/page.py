"""The page and the static figures, from reports."""

from collections import Counter
from pathlib import Path

import altair as alt
import jinja2
import vl_convert
from markupsafe import Markup

from .figures import figures
from .group import COLUMNS, Group, groups, told
from .model import NOT_RIGHT, Source
from .style import Figure

VEGA_LITE = ".".join(alt.SCHEMA_VERSION.lstrip("v").split(".")[:2])
SVG_WIDTH = 760  # px
VERDICTS = ("passed", "unchecked", *NOT_RIGHT, "skipped")  # in the order of the page


def html(sources: list[Source]) -> str:
    folder = Path(__file__).parent
    vega = vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;", vl_version=VEGA_LITE)
    script = f"{vega}\n{(folder / 'page.js').read_text(encoding='utf-8')}"
    parts = groups(sources)
    drawn = {group.id: figures(group) for group in parts}
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(folder), autoescape=True, trim_blocks=True, undefined=jinja2.StrictUndefined
    )
    return environment.get_template("page.html.j2").render(
        css=Markup((folder / "page.css").read_text(encoding="utf-8")),
        script=Markup(script.replace("</script", "<\\/script")),
        sources=sources,
        verdicts=VERDICTS,
        untold=untold(sources),
        groups=parts,
        figures=drawn,
        columns=list(COLUMNS),
        told=told,
        data={name: rows for group in parts for name, rows in group.data.items()},
        specifications={figure.id: specification(figure) for made in drawn.values() for figure in made},
    )


def untold(sources: list[Source]) -> list[tuple[str, list[str]]]:
    """Reason -> the cases that it holds for."""
    by_reason: dict[str, Counter] = {}
    for source in sources:
        for row in source.untold:
            by_reason.setdefault(row["reason"], Counter())[row["name"]] += 1
    return [
        (reason, [f"{name} ({count} cases)" if count > 1 else name for name, count in names.items()])
        for reason, names in by_reason.items()
    ]


def specification(figure: Figure) -> dict:
    """Vega, compiled here: a mistake shows before the page is opened, and the page is quicker."""
    compiled = vl_convert.vegalite_to_vega(figure.chart.to_dict(), vl_version=VEGA_LITE)
    return {**compiled, "background": "transparent"}


def svgs(sources: list[Source]) -> dict[str, str]:
    """Name -> a figure by itself."""
    return {figure.id: svg(figure, group) for group in groups(sources) for figure in figures(group)}


def svg(figure: Figure, group: Group) -> str:
    # Room for labels in a font that is wider than the one they are measured in.
    chart = figure.chart.properties(width=SVG_WIDTH, padding=32).to_dict() | {"datasets": group.data}
    return vl_convert.vegalite_to_svg(chart, vl_version=VEGA_LITE)
