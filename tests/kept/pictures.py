"""Examples of `dpviz.figures` and its SVG with artificial traces."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
from support_kept import drawn

from dpviz.figures import curves, style
from dpviz.figures.svg import scales


def curves_examples() -> Iterator[Any]:
    """Shares, and gaps of which some lie below the axis; a wanted value, run A, and a method of which nothing is proved."""
    e, ids = np.array([0.1, 0.5, 1.0, 4.0]), {"draws": 4, "exact": False, "proved_epsilon": [0.1, 0.5, 1.0, np.nan]}
    rising = pd.DataFrame(
        {"epsilon": e, "mean": [0.5, 0.7, 0.8, 0.9], "low": [0.4, 0.65, 0.7, 0.88], "high": [0.6, 0.8, 0.9, 0.95]}
    )
    gaps = pd.DataFrame(
        {"epsilon": e, "mean": [2.0, 0.1, 1e-3, 0.0], "low": [1.0, 0.05, -1e-3, -0.1], "high": [3.0, 0.2, 0.01, 1e-9]}
    )
    looks = [
        style.look(style.THEMES["light"], name, family, rank) for name, family, rank in (("a", "output", 0), ("b", "gradient", 2))
    ]
    yield [
        drawn(
            curves.trade_off(
                [
                    curves.Curve("dp-gd", looks[0], some.assign(**ids), False, "proved", needs=0.6, banded=True),
                    curves.Curve("dbdp", looks[1], some.assign(**ids, mean=some["high"]), True, "claimed", dim=quantity == "gap"),
                ],
                style.THEMES["light"],
                quantity=quantity,
                title="t",
                baselines={"none": 0.93, "majority": 0.55},
                wanted=wanted,
                span=(0.1, 4.0),
                **more,
            )
        )
        for quantity, some, wanted in (("accuracy", rising, 0.75), ("optimality_gap", gaps, None))
        for more in (
            {"here": 0.5, "overlay": (2.0, 0.6)},
            {"narrow": True, "odds": [(0.1, 0.52), (1.0, 0.6), (4.0, 0.9)], "attacked": "a person", "here": 9.0},
        )
    ]


def svg_examples() -> Iterator[Any]:
    """Legends with names of two lines, colour bars, and symbols of every kind."""
    line, size = {"color": "#204060", "width": 2, "dash": "dash"}, [4, 9, 22]
    symbols = [
        {"symbol": one, "size": size, "color": "#a02020", "line": line}
        for one in ("circle", "square-open", "diamond-dot", "x", "cross-thin", "star", "triangle-up", "pentagon")
    ]
    traces: list[style.Trace] = [
        {"x": [1, 2, 3], "y": [k, k + 1.5, k - 1], "mode": "lines+markers", "name": f"{name}{k}", "marker": symbol}
        | {"line": line | {"shape": shape}}
        for name, shape in (("one", "linear"), ("of two<br>lines ", "hvh"))
        for k, symbol in enumerate(symbols)
    ]
    bar = {"tickvals": [0, 0.5, 1, 2], "title": {"text": "a title"}, "len": 0.8}
    scale = {"cmin": 0, "cmax": 1, "colorscale": [[0, "#ffffff"], [1, "#204060"]]}
    yield from [
        [
            drawn(style.figure(style.THEMES["light"], some, x={"title": "x"}, y=y, height=360, legend=legend, **more))
            for some in (
                traces,
                traces[:1],
                [one | {"fill": "tozeroy", "fillcolor": "#c0c0c0", "mode": "lines"} for one in traces[7:10]],
            )
            for y in ({"title": "y"}, {"title": "y", "scaleanchor": "x"})
            for legend, more in (
                ({"orientation": "h", "y": 1, "yanchor": "bottom"}, {"coloraxis": scale | {"colorbar": bar}}),
                ({"orientation": "h", "x": 0.3, "y": 0.5, "yanchor": "middle", "font": {"size": 11}}, {"showlegend": True}),
                (
                    {"x": 0.1, "xref": "container", "y": 0.9},
                    {"coloraxis": scale | {"colorbar": bar | {"orientation": "h", "thickness": 9}}},
                ),
            )
        ],
        [
            scales.limits(axis, np.array(units), loose=loose, zero=zero)
            for axis in ({}, {"range": ["1.5", 2]}, {"rangemode": "tozero"}, {"type": "log"})
            for units in ([], [3.0, 3.0], [2.0, 5.5, np.nan], [-4.0, -1.5])
            for loose in (True, False)
            for zero in (True, False)
        ],
        [
            [[at, text.replace(" ", "_")] for at, text in scales.ticks(axis, scales.Scale(*ends, *more), across)]
            for across in (True, False)
            for axis, ends, more in (
                ({}, (0.3, 7.1, 40.0, 640.0), ()),
                ({"ticksuffix": " %"}, (7.1, -0.3, 40.0, 240.0), ()),
                ({"nticks": 3}, (0.0, 0.0037, 300.0, 20.0), ()),
                ({"dtick": 0.25, "tickformat": ".1f"}, (-1.0, 0.5, 0.0, 400.0), ()),
                ({"tickvals": [1, 2.5, 9]}, (0.0, 8.0, 0.0, 100.0), ()),
                ({"tickvals": [0.5, 20], "ticktext": ["half", "twenty"]}, (-1.0, 2.0, 0.0, 100.0), (True,)),
                ({}, (-0.5, 2.5, 10.0, 310.0), (False, ("a", "b", "c"))),
                ({"exponentformat": "power"}, (-2.0, 2.0, 0.0, 400.0), (True,)),
                ({"ticksuffix": " s"}, (-1.2, 0.0, 0.0, 400.0), (True,)),
                ({}, (0.1, 0.9, 0.0, 400.0), (True,)),
                ({}, (-1.3, -0.2, 0.0, 400.0), (True,)),
                ({}, (-0.4, 0.4, 0.0, 400.0), (True,)),
                ({"exponentformat": "power"}, (-12.0, 7.0, 0.0, 400.0), (True,)),
            )
        ],
        [
            drawn(style.figure(style.THEMES["light"], some, x={}, y=y))
            for y in ({}, {"type": "log"}, {"rangemode": "tozero"})
            for some in (
                [{"y": [3, 1, 2], "mode": "markers", "name": "one"}],
                [
                    {
                        "type": "bar",
                        "x": [1, 2, 3],
                        "y": [3, None, 2],
                        "name": "b",
                        "marker": {"pattern": {"shape": [".", "/", "."]}},
                    }
                ],
                [{"type": "heatmap", "z": [[1, 2, 3], [4, None, 6]], "coloraxis": "coloraxis"}],
            )
        ],
    ]
