"""Examples of `dpviz.figures`: curves, influence, lines, membership, the story, and SVG with artificial traces."""

from dataclasses import replace

import numpy as np
import pandas as pd
from support_kept import drawn, numbers_in, picture

from dpviz.figures import curves, influence, lines, membership, story, style
from dpviz.figures.svg import scales

lk = style.Look("DP-GD", "#1f77b4", "dash", "diamond")


def curves_examples() -> list[object]:
    """Shares, and gaps of which some lie below the axis; a wanted value, run A, and a method of which nothing is proved."""
    e, ids = np.array([0.1, 0.5, 1.0, 4.0]), {"draws": 4, "exact": False, "proved_epsilon": [0.1, 0.5, 1.0, np.nan]}
    rising = pd.DataFrame(
        {"epsilon": e, "mean": [0.5, 0.7, 0.8, 0.9], "low": [0.4, 0.65, 0.7, 0.88], "high": [0.6, 0.8, 0.9, 0.95]}
    )
    gaps = pd.DataFrame(
        {"epsilon": e, "mean": [2.0, 0.1, 1e-3, 0.0], "low": [1.0, 0.05, -1e-3, -0.1], "high": [3.0, 0.2, 0.01, 1e-9]}
    )
    looks = [style.look(style.LIGHT, name, family, rank) for name, family, rank in (("a", "output", 0), ("b", "gradient", 2))]
    return [
        *(
            drawn(
                curves.trade_off(
                    [
                        curves.Curve("dp-gd", looks[0], some.assign(**ids), False, "proved", needs=0.6, banded=True),
                        curves.Curve(
                            "dbdp", looks[1], some.assign(**ids, mean=some["high"]), True, "claimed", dim=quantity == "gap"
                        ),
                    ],
                    style.LIGHT,
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
        ),
        *(  # many curves, one or none; settings that have changed; budgets at the ends of the axis and outside it
            drawn(
                curves.trade_off(
                    [
                        curves.Curve(f"m{k}", replace(looks[0], name=f"a name of two lines, no. {k}"), some, k > 0, "l", **how)
                        for k in range(count)
                        for some in [points[points["epsilon"].between(*span)].assign(draws=1 + k, exact=k == 0)]
                        for how in [{"dim": k > 0, "banded": k < 2}]
                    ],
                    style.DARK,
                    quantity=quantity,
                    title="t",
                    baselines=levels,
                    wanted=None,
                    span=span,
                    here=here,
                    tall=tall,
                )
            )
            for proved in [{"proved_epsilon": [0.0302, 0.306, 3.09, 29.8]}]
            for quantity, points in (
                (
                    "accuracy",
                    pd.DataFrame(
                        {"epsilon": [0.03, 0.3, 3, 30], "mean": [0.17, 0.4, 0.6, 0.7], "low": 0.156, "high": 0.8} | proved
                    ),
                ),
                (
                    "log_loss",
                    pd.DataFrame({"epsilon": [0.03, 0.3, 3, 30], "mean": [0.7, 0.6, 0.4, 0.2], "low": 0.1, "high": 0.9}),
                ),
            )
            for count, levels, span, here, tall in (
                (9, {}, (0.03, 30.0), 30.0, 0),
                (10, {}, (0.03, 30.0), 0.3, 900),
                (2, {"none": 0.0, "majority": 0.5}, (1.0, 1000.0), 0.95, 0),
                (1, {}, (0.28, 0.31), 0.27, 1),
                (0, {"none": 0.93}, (0.01, 200.0), None, 0),
                (0, {}, (0.9, 30.0), 30.5, 0),
            )
        ),
    ]


def svg_examples() -> list[object]:
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
    flat = style.figure(style.LIGHT, [{"x": [0, 10], "y": [0, 3]}], x={"range": [0, 10]}, y={"range": [0, 3]})
    bar = {"tickvals": [0, 0.5, 1, 2], "title": {"text": "a title"}, "len": 0.8}
    scale = {"cmin": 0, "cmax": 1, "colorscale": [[0, "#ffffff"], [1, "#204060"]]}
    return [
        [
            drawn(style.figure(style.LIGHT, some, x={"title": "x"}, y=y, height=360, legend=legend, **more))
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
            drawn(style.figure(style.LIGHT, some, x={}, y=y))
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
        [numbers_in(picture(flat, "a", "w", wide)) for wide in (330, 440)],
    ]


def influence_examples() -> list[object]:
    rng = np.random.default_rng(3)
    return [
        [
            drawn(
                influence.training_map(
                    rng.normal(size=(40, 2)),
                    rng.random(40),
                    np.arange(40),
                    style.LIGHT,
                    names=("a", "b"),
                    with_noise=w,
                    chosen=c,
                    group=g,
                    scaled=s,
                    used=u,
                    named=c,
                    overlay=o,
                    narrow=n,
                    shade=h,
                    classes=k,
                )
            )
            for m in [np.arange(40)]
            for w, c, g, s, u, o, n, h, k in (
                (None, None, None, False, None, None, False, None, None),
                (
                    m % 3 == 0,
                    m == 4,
                    m < 9,
                    True,
                    m > 5,
                    m % 7 == 0,
                    True,
                    ("noise", rng.random(40)),
                    (m % 2 == 0, ("no", "yes")),
                ),
            )
        ],
        [
            drawn(
                influence.against_truth(
                    np.geomspace(0.1, 1, 9),
                    np.geomspace(0.11, 1.3, 9),
                    np.full(9, 0.02),
                    np.arange(9),
                    style.LIGHT,
                    bound=b,
                    names=("a", "b"),
                )
            )
            for b in (np.inf, 0.05, 100.0, 1.17e8)
        ],
        [  # a row that moves nothing, and nothing but such rows
            drawn(influence.against_truth(x, x, np.zeros(2), np.arange(2), style.LIGHT)) for x in (np.r_[0.0, 0.1], np.zeros(2))
        ],
        [  # a bound that is far above the errors, or among them
            drawn(influence.against_truth(truth * 0.98, truth, 0.02 * truth, np.arange(20), style.LIGHT, bound=bound))
            for truth in [np.geomspace(0.01, 0.05, 20)]
            for bound in (0.3, 0.002)
        ],
        [  # equal influences, and one that vanishes
            drawn(influence.training_map(np.zeros((5, 2)), np.array(some), np.arange(5), style.LIGHT, names=("a", "b")))
            for some in ([0.0] * 5, [2.0] * 5, [0.0, 1e-300, 1.0, 2.0, 3.0])
        ],
        [  # so many rows that their density is drawn
            [[len(trace.x), np.asarray(trace.x, float), np.asarray(trace.y, float), trace.showlegend] for trace in made.data]
            + [np.asarray(made.data[0].z), np.asarray(made.data[0].text)]
            for m in [np.arange(influence.DENSE + 9)]
            for more in ({}, {"named": m == 17, "chosen": m == 4}, {"group": m > influence.DENSE - 5})
            for made in [
                influence.training_map(
                    np.column_stack([m % 60 + 0.25, (7 * m) % 50]), (11 * m) % 997 + 1.0, m, style.LIGHT, names=("a", "b"), **more
                )
            ]
        ],
    ]


def membership_examples() -> list[object]:
    b = pd.DataFrame(
        {"false_alarms": [0.0, 0.3, 1.0], "detections_at_most": [0.1, 0.5, 1.0], "by_epsilon_delta_alone": [0.2, 0.6, 1.0]}
    )
    r = pd.DataFrame(
        {
            "false_alarms": np.geomspace(0.001, 1, 9),
            "detections": np.linspace(0.01, 1, 9),
            "low": np.linspace(0, 1, 9),
            "high": np.linspace(0.1, 1, 9),
        }
    )
    return [
        [
            drawn(
                membership.risk(
                    v,
                    np.linspace(0, 2, 30),
                    style.LIGHT,
                    fact="influence",
                    found=np.arange(30) % 4 == 0,
                    names=[f"row {i}" for i in range(30)],
                )
            )
            for v in (np.geomspace(0.1, 90, 30), np.linspace(-1, 1, 30))
        ],
        [drawn(membership.best_attack(b, (0.3, 0.5), style.LIGHT, overlay=o)) for o in (None, b / 2)],
        [
            drawn(membership.guesses(0.6, (0.52, 0.68), a, style.LIGHT, e, o))
            for a, e, o in ((0.7, False, None), (None, True, 0.8), (0.95, True, 0.4))
        ],
        drawn(
            membership.attack(
                pd.DataFrame(
                    {c + e: [0.0, 0.4, 1.0] for c in ("false_positive", "true_positive") for e in ("", "_low", "_high")}
                ),
                style.LIGHT,
                (np.array([0.0, 1.0]), np.array([0.2, 1.0])),
                "the claim",
            )
        ),
        drawn(
            membership.board(
                [("a", 1.0, 0.3, False, True), ("b", float("nan"), 2.5, True, False), ("c", 1.0, float("nan"), False, False)],
                style.LIGHT,
            )
        ),
        drawn(
            membership.roc(
                membership.Roc("Best", r),
                [membership.Roc("o", r)],
                style.LIGHT,
                allowed=(np.geomspace(0.001, 1, 9), np.linspace(0.02, 1, 9)),
                without=membership.Roc("w", r),
            )
        ),
    ]


def story_examples() -> list[object]:
    return [
        drawn(story.total_bars([1.0, 1.4, 1.8], 2, 1.0, lk, style.LIGHT)),
        drawn(story.total_bars([0.7, 1.1, float("inf")], 3, 0.7, lk, style.LIGHT)),
        *(
            drawn(story.cost_over(some, levels, chosen, lk, style.LIGHT, title="t", shares=shares))
            for some in [
                pd.DataFrame(
                    {"epsilon": [0.1, 1.0, 3.0], "mean": [0.6, 0.7, 0.82], "low": [0.55, 0.65, 0.8], "high": [0.7, 0.8, 0.9]}
                ).assign(right=right)
                for right in ([0.52, 0.6, 0.8], [float("nan")] * 3)
            ]
            for levels in [
                [(0.93, style.Look("free", "#101010", "solid", "")), (0.54, style.Look("base", "#707070", "dash", ""))]
            ]
            for chosen, shares in (((0.5, 0.66, 0.57), True), ((9.0, 0.99, None), False))
        ),
        drawn(story.two_histograms(pd.DataFrame({"side": [0, 1] * 20, "u": np.linspace(-2, 2, 40)}), ("a", "b"), style.LIGHT)),
    ]


def lines_examples() -> list[object]:
    return [
        [
            drawn(
                lines.curves(
                    [
                        lines.Line("a", [0.1, 1.0, 10.0], [0.2, 0.4, 0.9], lk, low=[0.1, 0.3, 0.8], high=[0.3, 0.5, 1.0]),
                        lines.Line("b", [1.0, 5.0], [0.5, 0.6], lk, points=True, text=["u", "v"]),
                    ],
                    style.LIGHT,
                    x="ε",
                    y="y",
                    log_y=log_y,
                    marks=((1.0, "here"),),
                    percent=percent,
                    ticks=ticks,
                )
            )
            for log_y, percent, ticks in ((True, False, None), (False, True, {0.1: "low", 10.0: "high"}))
        ],
        drawn(
            lines.bars(
                [lines.Bar("a", 3.0, "3"), lines.Bar("b", float("nan"), "–"), lines.Bar("c", 1.0, "1", strong=True)],
                lk,
                style.LIGHT,
                x="x",
                span=(0.0, 4.0),
                most=3.5,
            )
        ),
        [
            lines.decades(0.03, 4000.0, 4),
            lines.ticks(-2.0, 3.0, " %"),
            lines.wrap("a long name of some method that wraps"),
            lines.powers(np.array([-2.0, 0.0, 3.0])),
            lines.powers(np.array([7.0, 5.0, -1.0])),
        ],
        [  # an axis that begins at 50 and has no tick beyond 100, and a bar that is cut
            drawn(lines.bars(some, lk, style.LIGHT, x="x", span=span, **more))
            for some, span, more in (
                ([lines.Bar("a", 60.0, "60")], (50, 118), {"most": 100.0}),
                ([lines.Bar("in use", 0.7, "0.7"), lines.Bar("any number of epochs", 314.0, "314")], (0, 1.1), {}),
            )
        ],
    ]
