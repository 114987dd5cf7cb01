"""Examples of `dpviz.figures`."""

import numpy as np
import pandas as pd
from support_kept import drawn

from dpviz.figures import (
    accuracy,
    claims,
    data,
    gauges,
    groups,
    guarantees,
    heat,
    lines,
    plane,
    read_out,
    recursion,
    rows_with_noise,
    style,
)
from dpviz.papers import verdict

lk = style.Look("DP-GD", "#1f77b4", "dash", "diamond")


def accuracy_examples() -> list[object]:
    return [
        drawn(accuracy.optimality_gap(np.array([0.1, 0.3, 0.2]), lk, style.LIGHT)),
        *(
            drawn(accuracy.optimality_gap(np.array(some), lk, style.LIGHT, reference="r"))
            for some in (
                *([-0.1, 0.3, 0.0], [-0.2, -0.1], [0.0, 3e-13, 7.0], [4e-9, 1e3], [5e-13, 250.0]),
                *([0.03] * 9, [-0.1, -0.09, 0.095, 0.107, -0.09]),
            )
        ),
        *(
            drawn(accuracy.accuracy_distribution(values, base, low, lk, style.LIGHT, expected=mean, title="t", shares=shares))
            for values, base, low, mean, shares in (
                (np.array([0.62, 0.731, 0.74]), 0.93, 0.55, None, True),
                (np.linspace(0.71, 0.72, 61), 0.9, float("nan"), 0.714, True),
                (np.linspace(0.3, 0.7, 60), 0.2, 0.69, 0.49, False),
                (np.array([0.02]), 0.01, 0.5, None, True),
                (np.array([0.534, 0.6]), 0.9, 0.536, 0.57, True),
            )
        ),
        drawn(accuracy.weights(np.random.default_rng(0).normal(size=(5, 3)), np.ones(3), ["a", "b", "c"], lk, style.LIGHT)),
    ]


def claims_examples() -> list[object]:
    c = pd.DataFrame(
        {
            "series": ["a"] * 3 + ["b"] * 3,
            "mechanism": ["dp-gd"] * 3 + [""] * 3,
            "x": [0.1, 1.0, 10.0] * 2,
            "y": [1.0, 2.0, 4.0, 3.0, 3.0, 3.0],
            "low": 0.5,
            "high": [2.0, 3.0, 5.0, 3.0, 3.0, 3.0],
        }
    )
    return [
        [
            drawn(claims.panel(d, style.LIGHT, {"dp-gd": lk}, picture=p))
            for d in (c, c.assign(x=["u", "v", "w"] * 2))
            for p in (
                verdict.Picture("x", "y"),
                verdict.Picture("x", "share, %", log_x=True, limit=2.0, limit_label="l"),
                verdict.Picture("x", "y", log_y=True, limit=1.5, limit_label="m"),
            )
            if not (p.log_x and d is not c)
        ],
        drawn(
            claims.board(
                pd.DataFrame(
                    {
                        "claim": ["a", "b", "c"],
                        "meaning": ["m1", "m2", "m3"],
                        "paper": ["p", "p", "q"],
                        "sign": ["✓", "✗", "?"],
                        "kind": ["green", "red", "gray"],
                        "outcome": ["holds", "fails", "not tested"],
                    }
                ),
                style.LIGHT,
                "b",
            )
        ),
        drawn(
            claims.board(
                pd.DataFrame(
                    {"claim": [*"abcdefghijk"], "meaning": "m", "paper": ["q"] * 10 + ["p"], "sign": "✓"}
                    | {"kind": ["green"] * 9 + ["red"] * 2, "outcome": ["holds"] * 9 + ["fails"] * 2}
                ),
                style.LIGHT,
                "none",
            )
        ),
        [  # series of one point, of equal values, with a spread in some places, and on few or many decades
            drawn(claims.panel(c.assign(**changed), style.LIGHT, looks, picture=verdict.Picture("x", *axis)))
            for looks in ({}, {"dp-gd": lk})
            for changed, *axis in (
                ({"y": [0.7] * 6, "high": [0.7, np.nan, 0.9] * 2}, "share, %"),
                ({"y": [0.0] * 6, "mechanism": "dp-gd"}, "share, %"),
                ({"y": [100.0] * 6}, "share, %"),
                ({"y": [100.5] * 6}, "share, %"),
                ({"series": [*"abcdef"], "mechanism": ["dp-gd", *"uvwu", ""]}, "y"),
                ({"series": [*"aabbcc"], "mechanism": ["dp-gd"] * 2 + ["u"] * 4}, "y"),
                ({"y": [0.5, 2.0, 4.0, 0.0, 100.0, 3.0]}, "y", False, True),
                ({"y": [0.5, 2.0, 4.0, 0.0, 10.0, 3.0], "x": [1.0, 2.0, 31.0] * 2}, "y", True, True),
            )
        ],
        drawn(claims.panel(c.assign(x=["u" * 31, "v" * 30, "w"] * 2), style.LIGHT, {}, picture=verdict.Picture("x", "y"))),
    ]


def groups_examples() -> list[object]:
    t = pd.DataFrame({"epsilon": [0.1, 1.0, 10.0], "mean": [0.6, 0.7, 0.9], "low": [0.5, 0.65, 0.85], "high": [0.7, 0.75, 0.95]})
    return [
        [
            drawn(
                groups.groups(
                    [
                        groups.GroupLine("north", t, 0.92, lk),
                        groups.GroupLine("south", t.assign(mean=[0.5, 0.6, 0.8]), 0.88, lk, True),
                    ],
                    style.LIGHT,
                    here=1.0,
                    overlay=o,
                    shares=s,
                    narrow=n,
                )
            )
            for o, s, n in ((None, True, False), ((0.5, [0.6, 0.7]), True, False), ((0.5, [0.6, 0.7]), False, True))
        ],
        [
            drawn(groups.gap(t, n, lk, style.LIGHT, here=1.0, overlay=o, shares=s))
            for n, o, s in ((0.1, (0.5, 0.2), True), (float("nan"), None, False))
        ],
        drawn(
            groups.reasons(
                ["north", "south"],
                [groups.Panel("rows", [3.0, 5.0], ["3", "5"]), groups.Panel("share", [0.3, float("nan")], ["30 %", "–"])],
                lk,
                style.LIGHT,
            )
        ),
    ]


def figures_examples() -> list[object]:
    return [
        [
            drawn(data.label_balance((30, 90), ("no", "yes"), style.LIGHT)),
            *(drawn(data.label_balance(n, ("a" * 10, "b" * k), style.LIGHT)) for n, k in (((3, 1), 14), ((1, 0), 40))),
            drawn(data.feature_ranges(np.random.default_rng(0).normal(size=(40, 3)), ["a", "b", "c"], style.LIGHT)),
        ],
        [
            drawn(
                heat.heat(
                    m, (["1", "2", "3"], ["a", "b"]), ("x", "y"), style.LIGHT, percent=p, best=(1, 0), present=q, hue="#1f77b4"
                )
            )
            for m, p, q in (
                (np.array([[0.5, 0.9, 0.7], [0.4, float("nan"), 0.6]]), True, (0, 1)),
                (np.array([[0.5, 0.0001, 0.7], [0.4, 0.2, float("nan")]]), False, None),
                (np.full((2, 3), 0.5), True, (1, 0)),
            )
        ],
        drawn(
            recursion.trace(
                np.linspace(0, 3, 12), np.random.default_rng(0).random((12, 2)), (1, 4), np.array([1.0, 2.0]), [1.5], style.LIGHT
            )
        ),
        [
            drawn(rows_with_noise.noise_timeline(np.arange(24.0).reshape(2, 12), style.LIGHT)),
            drawn(
                rows_with_noise.row_before_after(
                    np.array([0.1, 0.5]), np.array([0.4, -0.2]), ["a", "b"], style.LIGHT, texts=(["u", "v"], ["w", "x"])
                )
            ),
            drawn(
                rows_with_noise.step_before_after(
                    np.array([0.1, 0.5]), np.array([[0.4, -0.2], [0.3, 0.1]]), ["a", "b"], style.LIGHT, title="t"
                )
            ),
        ],
        drawn(
            rows_with_noise.rule_histogram(np.linspace(0, 3, 90), np.linspace(0, 3, 90) > 1, 0.5, 2.0, style.LIGHT, label="rule")
        ),
        " ".join(
            [
                style.shade("#204060", 0.5),
                style.shade("#204060", -0.25),
                style.fade("#204060", 0.3),
                style.escape("<a & b>"),
                style.shorten("a very long name of a column of a table"),
                *(f"{style.contrast(colour, '#ffffff'):.6f}" for colour in ("#204060", "#000000", "#777777")),  # 21, 4.48 (WCAG)
            ]
        ),
        [
            drawn(
                plane.decision_lines(
                    np.array([[0.0, 0.2], [0.5, -0.5]]),
                    np.array([1.0, -1.0]),
                    np.array([True, False]),
                    (along, along),
                    rise + np.linspace(-0.3, 0.3, k)[:, None, None],
                    rise,
                    style.Look("DP-GD", "#1f77b4", "dash", "diamond"),
                    style.LIGHT,
                    names=("a", "b"),
                    classes=("no", "yes"),
                    **more,
                )
            )
            for along in [np.linspace(-1, 1, 5)]
            for rise in [np.subtract.outer(along, along)]
            for k, more in (
                (20, {}),
                (21, {"overlay": rise[None] + 0.1, "person": 0, "without": rise - 0.2, "noised": np.array([False, True])}),
                (1, {"height": 260, "narrow": True}),
            )
        ],
        [
            drawn(
                gauges.gauges(
                    [
                        gauges.Gauge("accuracy", parts, [gauges.Mark("private", 0.6), gauges.Mark("non-private", 0.93, "dot")]),
                        gauges.Gauge("attack", [gauges.Part("", 0.5, 0.62, "attack")], marks),
                    ],
                    style.Look("DP-GD", "#1f77b4", "dash", "diamond"),
                    style.LIGHT,
                    shares=shares,
                )
            )
            for shares in (True, False)
            for parts in (
                [
                    gauges.Part("", 0.0, 0.6, "base"),
                    gauges.Part("noise", 0.6, 0.85, "noise"),
                    gauges.Part("t", 0.93, 0.8, "training"),
                ],
                [gauges.Part("", 0.0, 0.6, "base")],
            )
            for marks in ([gauges.Mark(f"{at:.0%}", at) for at in (0.5, 0.62)], [gauges.Mark(f"bet {k}", 0.55) for k in range(4)])
        ],
        [
            gauges._place(at, width, [(0, 50.0, 60.0), (1, 52.0, 70.0), (2, 64.0, 99.0)][:k], (40.0, 101.0))
            for at, width in ((90.0, 8.0), (55.0, 8.0), (62.0, 9.0), (41.0, 9.0), (100.5, 4.0), (58.0, 40.0))
            for k in range(4)
        ],
        [f(v, t) for f in (groups._share_range, groups._score_range) for v in ([], [0.52, 0.93]) for t in (True, False)],
        [style.look(style.THEMES["dark"], "a", f, r).dash for f in style.THEMES["dark"].families for r in range(5)]
        + [style.tens(0.3, shares=s) for s in (True, False)]
        + [style.stack(x, w) for x, w in (([0.1, 0.11, 0.5, 0.1], 0.05), ([0.2, 5.0, 0.1, -0.1, 5.3], 1.0), (np.zeros(25), 1.0))]
        + [style.margin(left=3), style.room_for(["abc", "a longer name"]), style.margin()]
        + [style.group_look(style.LIGHT, "g", k) for k in (0, 1, 7, 8, 9, 17)]
        + [style.tens(low, shares=True) for low in (65.0, 65.1)],
        [
            drawn(groups.gap(some, 0.07, style.group_look(style.LIGHT, "g", 2), style.LIGHT, here=0.7))
            for some in [pd.DataFrame({"epsilon": [0.1, 1.0], "mean": [0.2, 0.1], "low": [0.1, 0.05], "high": [0.3, 0.15]})]
        ],
        read_out.table(data.label_balance((300, 100), ("a<b>", "b & c"), style.LIGHT), "What <it> shows."),
        *(
            read_out.table(style.figure(style.LIGHT, traces, x={"title": "ε", **x}, y={"title": "", **y}), "A line.")
            for powers in [{"tickvals": [-1, 0, 2], "ticktext": ["0.1 %", "1 %", "100 %"]}]
            for plain in [{"tickvals": [0, 1, 3], "ticktext": ["1", "10", "three"]}]
            for at in [np.linspace(0, 1, 100)]
            for line in [[{"x": [-1.0, 0.5, 2.0], "y": [0.0, 1.0, 3.0], "name": "line"}]]
            for traces, x, y in (
                ([{"x": at, "y": 2 * at, "name": "line"}, {"x": at, "y": at, "fill": "toself", "name": "band"}], {}, {}),
                (line, powers, plain),
                (line, plain, {}),
            )
        ),
        [lines.wrap(""), lines.wrap("eighteen letters l"), lines.wrap("nineteen letters le"), lines.wrap("a b c d", 3)],
        [  # names of one and of two lines, values near a line, no lines, and losses
            drawn(
                guarantees.ranking(
                    [guarantees.Point(name, status, value, lk) for name, status, value in some],
                    ("p", "<c>", "none"),
                    *lines,
                    style.LIGHT,
                    **more,
                )
            )
            for some, lines, more in (
                (
                    [("a", "p", 0.613), ("b" * 9 + " a long name that takes two lines", "p", 0.72), ("c", "<c>", 0.9)],
                    (0.93, 0.55),
                    {"overlay": 0.66},
                ),
                ([("a", "p", 0.613), ("<b>", "p", 0.72), ("c", "<c>", 0.545)], (0.73, 0.55), {"narrow": True, "title": "t"}),
                ([("a", "p", 0.613), ("b", "none", 0.42)], (float("nan"), 0.6), {"shares": False, "rising": False}),
            )
        ],
        "\n".join(
            guarantees._side(0.5, lines, 0.25)
            for lines in ((), (0.5,), (0.625,), (0.75,), (0.375,), (0.625, 0.375), (float("nan"), 0.3))
        ),
        [guarantees._ends(values) for values in ([0.3], [0.3, 0.5, 0.41])],
        [
            drawn(plane.training(made, (along, along), steps, ["one", "two"], style.LIGHT))
            for along in [np.linspace(-1, 1, 5)]
            for steps in [np.stack([np.subtract.outer(along, along)[None] - shift for shift in (0.3, -0.2)])]
            for made in [
                plane.decision_lines(
                    *(np.array([[0.0, 0.2], [0.5, -0.5]]), np.array([1.0, -1.0]), np.array([True, False]), (along, along)),
                    *(steps[-1], np.add.outer(along, along), lk, style.LIGHT),
                    names=("a", "b"),
                    classes=("no", "yes"),
                )
            ]
        ],
        [  # names that are powers of ten, nearly or not at all
            [read(at) for at in (-1.0, 0.0, 0.5)]
            for names in (["0.1 %", "1 %"], ["0.1", "1.02"], ["0.1", "1.009"], ["0.1", "u"], ["-1", "1"], ["0.1"])
            for read in [
                read_out._reading(
                    style.figure(style.LIGHT, [], x={"tickvals": [-1, 0][: len(names)], "ticktext": names}, y={}).layout.xaxis
                )
            ]
        ],
        [
            read_out._rows(style.figure(style.LIGHT, [trace], x={}, y={}).data[0], lambda x: 10 * x, lambda y: -y)[-2:]
            for trace in (
                {"x": [1, None, 3, 4], "y": [2, 5, None, 7], "name": "s"},
                {"x": [1, 2], "y": [3, 4], "hovertext": ["u", "v"]},
                {"x": [1, 2], "y": [3, 4], "fill": "tozeroy"},
                {
                    "type": "heatmap",
                    "x": np.arange(read_out.MOST),
                    "y": [1, 2, 3],
                    "z": np.arange(3.0 * read_out.MOST).reshape(3, -1),
                    "name": "h",
                },
            )
        ],
        [
            [trace.name, trace.line.width, trace.line.dash, trace.line.color, trace.showlegend]
            for count in (1, 2, 3, 5)
            for trace in recursion.trace(
                *(
                    np.linspace(0, 3, 4),
                    np.linspace(0.1, 0.9, 4 * count).reshape(4, count),
                    range(1, count + 1),
                    np.zeros(4, bool),
                    [],
                ),
                style.LIGHT,
            ).data
        ],
        [groups._cut("a" * k) for k in (26, 27)]
        + [groups._end(groups.GroupLine("g", pd.DataFrame({"mean": [0.3, 0.7]}), v, lk)) for v in (float("nan"), 0.9)],
    ]
