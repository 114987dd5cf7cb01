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
    heat,
    lines,
    plane,
    read_out,
    recursion,
    rows_with_noise,
    story,
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
    ]
