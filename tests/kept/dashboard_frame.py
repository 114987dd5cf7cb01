"""Examples of `dpviz.dashboard`: the frame of every page: address, sidebar, session, server and what else is around a page."""

from dataclasses import replace
from types import SimpleNamespace as ns
from unittest import mock

import numpy as np
import pandas as pd
from support_kept import refusal, view

import dpviz
from dpviz.dashboard.frame import address, fields, guessing, links, page, pinned, ranking, server, session, sidebar
from dpviz.experiments.run.metrics import METRICS
from dpviz.mechanisms.attack import Attacker


def frame_examples() -> list[object]:
    problem, metric = dpviz.InvalidInput("steps", "must be *whole*", "Give 3."), METRICS["accuracy"]
    spec = (specs := {n: dpviz.RunSpec("teaching", mechanism=n, seeds=2) for n in ("dp-gd", "majority")})["dp-gd"]
    return [
        [sidebar._offered(m) for m in ("logistic", "svm", "mlp")],
        [
            f"dpviz.{name}" in loaded
            for loaded in [set[str]()]
            if mock.patch.object(server.importlib, "import_module", loaded.add)(server._load_other_pages)() is None
            for name in ("dashboard.jobs", "dashboard.groups.scores", "papers.claims.catalogue", "cli.run")
        ],
        [
            mock.patch.object(address.st, "session_state", {address._OWN: {"row": "3"}})(address.complete)(query)
            for query in (
                {},
                {"mechanism": "dp-gd", "epsilon": "2", "dp-gd.steps": "7", "row": "4", "want": "70"},
                {"dataset": "iris", "lesson": "attack", "rsgd.epochs": "3"},
            )
        ],
        [address._known(key) for key in ("epsilon", "row", "dp-gd.steps", "dp-gd.epochs", "x.steps", "steps", "v")],
        " ".join(pinned.difference_from(METRICS[m], v, 0.5) for m in ("accuracy", "log-loss") for v in (0.4, 0.5, 0.61)),
        " | ".join(map(sidebar.dataset_label, ("breast-cancer", "census-5000", "data/adult.csv", "wine"))),
        "\n".join(
            view(sidebar._dataset_typed, dataset=name, published_split=True, **{address._WIDGETS: {"dataset": "wine"}})
            for name in ("iris", "census-5")
        ),
        "\n".join(view(sidebar._epsilon_typed, epsilon_typed=text, epsilon=1.0) for text in (" 0.37", " ", "-1")),
        "\n".join(
            [
                view(sidebar._people_typed, dataset="census-500", **{sidebar._PEOPLE: 700}),
                *(view(sidebar._units_typed, **{sidebar._UNITS: units}) for units in (8, None)),
                view(sidebar._refuse, "kst-objective", "mlp", ["dp-sgd", "dp-gd"]),
            ]
        ),
        "\n".join(
            view(one.draw, **state)
            for one, value in (
                (fields.number("q", "Rate", 0.1, 7.0, 0.3, "Help."), "0.7"),
                (fields.number("k", "Count", 2, 9, 3, integer=True), "5"),
                (fields.switch("s", "On", "Help."), "true"),
                (fields.switch("s", "On", "", True), "false"),
                (fields.choice("c", "Which", {"a": "one", "b": "two"}, "a"), "b"),
                (fields.choice("c", "Which", {str(k): f"no. {k}" for k in range(5)}, "3", few=5), "1"),
                (fields.choice("c", "Which", {str(k): f"no. {k}" for k in range(5)}, "3"), "7"),
                (fields.row("r", "Row", spec, "Help."), "1"),
                (fields.Field("r", fields.Several(label="Some", help="", options=("a", "b", "c")), ("a", "c")), "b,a"),
                (fields.Field("t", fields.Typed(label="Text", help=""), ""), " some text "),
            )
            for state in ({}, {one.key: value})
        ),
        "\n".join(
            view(one._changed, **{one._widget: value})
            for one, value in (
                (fields.Field("t", fields.Typed(label="Text", help=""), ""), "  ab "),
                *((fields.number("q", "Rate", 0.1, 7.0, 0.3), rate) for rate in (9.0, 0.3, 2.5)),
                (fields.choice("c", "Which", {"a": "one", "b": "two"}, "a"), "a"),
            )
        ),
        "\n".join(
            refusal(lambda one=one, text=text: one.parse("r", text)) or one.in_words(one.parse("r", text))
            for one in (
                fields.RowId(label="Row", help=""),
                fields.RowId(label="Row", help="", ids=np.array([2, 5, 9]), n=8, names=pd.Series(["u", "v", "v"], [5, 7, 9])),
            )
            for text in ("3", "5", " u", "v", "9", "8", "7", "-1", "x")
        ),
        [one.check("row", value) for one in [fields.RowId(label="Row", help="")] for value in (None, 3, "4")],
        "\n".join(
            mock.patch.multiple(
                links, pages=lambda: {"a.py": "Audit", "c.py": "Claims"}, claims_of=lambda _, count=count: range(count)
            )(mock.patch.object(links.st, "page_link", lambda *given, **more: page.st.code(f"{given} {more}"))(view))(
                links.examine, "dp-gd", name, **state
            )
            for count, name, state in ((0, "", {}), (1, "DP-GD", {}), (2, "", {address._OWN: {"row": "3"}}))
        ),
        "\n".join(
            mock.patch.object(links, "pages", lambda some=some: some)(
                mock.patch.object(links.st, "page_link", lambda *given, **more: page.st.code(f"{given} {more}"))(view)
            )(links.links, {"epsilon": "2", links.TASK: "x"})
            for some in ({"app.py": "Story"}, {"app.py": "Story", "pages/3.py": "Groups", "pages/5.py": "Audit"})
        )
        + " ".join(map(links.title, ("3_Person", "91_Claims", "One_model", "12 a_b"))),
        "\n".join(
            view(lambda error=error: page.st.code(f"{page.report_stop(error)}"))
            for error in (FloatingPointError("no end."), problem, ValueError("x"))
        ),
        "\n".join(
            [
                *(refusal(lambda value=value: pinned.PINNED.knob.check("A", value)) for value in (None, 3, spec)),
                *(
                    refusal(lambda text=text: pinned.PINNED.knob.parse("A", text))
                    for text in ("x" * 50, "dataset=iris&mechanism=dp-gd")
                ),
                pinned.PINNED.knob.text(replace(spec, epsilon=2.0)) + pinned.PINNED.knob.in_words(replace(spec, epsilon=2.0)),
                *(view(pinned.controls, spec, **state) for state in ({}, {"pinned": "dataset=iris"})),
                view(pinned._swap, dpviz.RunSpec("iris", epsilon=3.0), spec),
                view(lambda: page.st.code(f"{pinned.outcome_beside(spec)} {pinned.other_run(spec)}"), pinned="dataset=iris"),
            ]
        ),
        [
            sidebar._trained_on({"dataset": name, "folds": folds, "published_split": split})
            for name, folds, split in (("teaching", 0, False), ("iris", 7, False), ("teaching", -3, False), ("iris", 0, True))
        ],
        str([sidebar._rules(replace(spec, mechanism=name)) for name in ("rsgd", "dp-sgd", "majority")]),
        mock.patch.object(address.st, "switch_page", lambda *given, **more: page.st.code(f"{given} {more}"))(view)(
            address.open_page, "p", {"epsilon": "2", "row": "4", "want": ""}, **{address._OWN: {"row": "3", "x": ""}}
        ),
        [fields.read_or_default(mock.Mock(side_effect=error), "other") for error in (problem, MemoryError, ["value"])],
        ranking.best([], metric, 20),
        "\n".join(
            mock.patch.object(links, "pages", mock.Mock(return_value={"a.py": "Audit"}))(
                mock.patch.object(links.st, "page_link", lambda *given, **more: page.st.code(f"{given} {more}"))(
                    mock.patch.object(links.st, "query_params", ns(to_dict=lambda: {links.TASK: "old", "epsilon": "2"}))(view)
                )
            )(lambda run=run, more=more: links.page_link("Audit", "go", run=run, **more))
            for run in (None, spec)
            for more in ({}, {links.TASK: "new", "row": "3"})
        ),
        "\n".join(
            mock.patch.multiple(
                guessing, majority_baseline=lambda *_, poor=poor: poor, training_loss_note=lambda *_, note=note: note
            )(view)(guessing.say, ns(spec=specs[name], cost=ns(metric=METRICS[m], majority=0.551)))
            for name, m, poor, note in (
                ("majority", "accuracy", None, "x"),
                ("dp-gd", "accuracy", None, None),
                ("dp-gd", "accuracy", None, "loses *much*"),
                ("dp-gd", "accuracy", ns(worse=True, fix="Fix *it*."), None),
                ("dp-gd", "f1", ns(worse=False, fix="Fix it."), None),
            )
        ),
        "\n".join(
            mock.patch.multiple(
                guessing, majority_baseline=lambda *_, poor=poor: poor, training_loss_note=lambda *_, note=note: note
            )(
                mock.patch.object(
                    guessing.tasks,
                    "current_result",
                    lambda *given, ask, trials=trials, **more: [page.st.code(f"{given[:2]} {more['given']} {ask}"), trials][1],
                )(view)
            )(guessing.draw_trial, ns(spec=specs[name], cost=ns(metric=METRICS[m])))
            for better in [ns(helps=True, gain=0.0312, change="λ = 1", mean=0.812, spec=spec)]
            for name, m, poor, note, trials in (
                ("majority", "accuracy", True, "x", []),
                ("dp-gd", "accuracy", None, None, []),
                ("dp-gd", "accuracy", None, "x", None),
                ("dp-gd", "accuracy", True, None, [ns(helps=False)] * 2),
                ("dp-gd", "accuracy", True, "x", [ns(helps=False), better]),
                ("dp-gd", "log-loss", True, "x", [better]),
            )
        ),
        "\n".join(
            [
                *(
                    view(pinned.metric._level, pinned.metric.get_metric(name))
                    for name in ("accuracy", "recall-at-precision=0.62", "recall-at-false-positive-rate")
                ),
                *(
                    view(pinned.metric._level_changed, kind, **{pinned.metric._LEVEL: level})
                    for kind, level in (
                        *(("recall-at-precision", level) for level in (62.5, 90.0)),
                        ("recall-at-false-positive-rate", 150.0),
                    )
                ),
                *(
                    view(lambda: page.st.code(f"{pinned.metric.address_of_choice()}"), **state)
                    for state in ({}, {"metric": ""}, {"metric": "f1"})
                ),
                *(
                    view(pinned.metric.draw, dpviz.RunSpec(name), **state)
                    for name, state in (("teaching", {}), ("census-300", {}), ("census-300", {"metric": "f1"}))
                ),
            ]
        ),
        " | ".join(
            " ".join(
                one.label
                for one in ranking.best(
                    [
                        ns(label=name, status=status, mean=mean, error=error)
                        for name, status, mean, error in (
                            *(("a", "proved", 0.75, 0.0), ("b", "proved if …", 0.8125, 0.01), ("c", "proved", 0.7825, 0.01)),
                            *(("d", "paper's claim", 0.9, 0.0), ("e", "proved", 0.71, 0.05), ("f", "proved", np.nan, 0.0)),
                        )
                    ],
                    METRICS[m],
                    rows,
                )
            )
            for m in ("accuracy", "log-loss")
            for rows in (16, 17, 200)
        ),
        [
            mock.patch.object(server, "_network_address", lambda here=here: here)(
                mock.patch.object(
                    server.st, "get_option", lambda name, options=options: options.get(name.removeprefix("server."))
                )(server.addresses)
            )()
            for here in ("", "10.0.0.7")
            for options in (
                {"port": 8501, "baseUrlPath": ""},
                {"port": 1, "baseUrlPath": "/a/", "address": "0.0.0.0"},
                {"port": 2, "baseUrlPath": "a", "address": "::1", "sslCertFile": "x"},
                {"port": 3, "baseUrlPath": "", "address": "h"},
            )
        ],
        "\n".join(
            view(address.seed, query, own)
            for query, own in (
                ({f"k{k}" * 30: "1" for k in range(6)}, ()),
                ({f"k{k}": "1" for k in range(5)} | {"epsilon": "2", "row": "3"}, ("row", "who")),
            )
        ),
        "\n".join(
            f"{calls.mock_calls}"
            for who, left in (("w", None), ("w", 1000 - 0.99 * session.LINGER), ("w", 1001 - 0.99 * session.LINGER), ("v", 0.0))
            for calls in [mock.Mock()]
            if mock.patch.object(session.time, "monotonic", mock.Mock(return_value=1000.0))(
                mock.patch.multiple(session, _visits={"w": 1}, pool=calls.pool, private=calls, uploads=calls)(session._end)
            )(ns(who=who, left=left, uploads={"u"}, session="s"))
            is None
        ),
        "".join(view(sidebar._dataset_there, dataset=name).partition("Choose")[0] for name in ("iris", "gone")),
        len({ranking._job(spec, a).key for a in (None, None, *map(Attacker.parse, ("advantage=0.3", "advantage=0.4")))}),
        "\n".join(  # an address that is written, read and amended, and controls that the browser has lost or not heard of
            mock.patch.multiple(
                address.private, came_by_history=lambda back=back: back, browser_knows=lambda key: key in ("epsilon", "b")
            )(
                mock.patch.object(
                    address.st,
                    "query_params",
                    ns(to_dict=lambda query=query: query, from_dict=lambda query: page.st.code(f"written {query}")),
                )(mock.patch.object(address.watching, "page", mock.Mock(return_value="P"))(view))
            )(*call, **state)
            for back, query, call, state in (
                (False, {}, (address._write, {"a": "1"}), {}),
                (False, {"b": "1"}, (address._write, {"a": "1"}), {address._LATE: [{"c": "2"}]}),
                (False, {"a": "1"}, (address._write, {"a": "1"}), {address._LATE: [{"a": "1"}]}),
                (False, {"epsilon": "2"}, (address._write, address.links.add_version({"epsilon": "2"})), {}),
                (False, {}, (address._write, {"a": "1"}), {address.HELD: True}),
                (
                    *(False, {"row": "3"}, (address.amend, ("row", "x"))),
                    {address._OWN: {"x": "5", "y": "6"}, address._ADDRESS: {"row": "3", "x": "5", "z": "7"}}
                    | {address._WIDGETS: {"w": 1}, "row": "4"},
                ),
                (False, {}, (address.write, spec, ("epsilon", "gone"), ("row",)), {"epsilon": 0.7, "row": "4"}),
                *(
                    (False, {}, (address.set_widget, key, 3), {address._SENT: sent, address._WIDGETS: {"a": 1}, key: old})
                    for key, old, sent in (
                        ("a", 2, set()),
                        ("a", 3, {"a"}),
                        ("b", 3, {"b"}),
                        ("epsilon", 3, set()),
                        ("c", 3, set()),
                    )
                ),
                (False, {}, (address.set_widget, "a", 3), {}),
                (False, {}, (address.remember_drawn, ("b", "gone"), ("a",)), {"a": 1, "b": 2}),
                (False, {}, (address.remember_drawn, (), ("a",)), {address._SENT: set(), "a": 1}),
                (False, {}, (address.report, problem), {address._PROBLEMS: ["before"]}),
                (
                    False,
                    {},
                    (lambda: page.st.code(f"{[address.previous_value(k, 7) for k in 'ab']}"),),
                    {address._WIDGETS: {"a": 1}},
                ),
                *(
                    (back, query, (address.read, ("row",)), kept | more)
                    for kept in [
                        {address._ADDRESS: {"epsilon": "2"}, address._WIDGETS: {"dataset": "iris", "epsilon": 2.0}}
                        | {"dataset": "iris", "epsilon": 2.0, address._PAGE: "P", address._PROBLEMS: ["old"]}
                    ]
                    for back, query, more in (
                        (False, {"epsilon": "2"}, {}),
                        (False, {"epsilon": "2"}, {"epsilon": 3.0, address._LATE: [{}]}),
                        (False, {"epsilon": "4"}, {"row": "3"}),
                        (False, {"epsilon": "4"}, {"epsilon": 3.0}),
                        (False, {"epsilon": "4"}, {address._LATE: [{"epsilon": "4"}]}),
                        (True, {"epsilon": "4"}, {address._LATE: [{"epsilon": "4"}]}),
                        (False, {"epsilon": "4"}, {address._PAGE: "another", address._TYPED: problem}),
                        (False, {}, {address._PAGE: "another", address.AGAIN: True}),
                        (False, {"epsilon": "2"}, {address._TYPED: problem, address._WIDGETS: {"row": "1", "seeds": 7}}),
                    )
                ),
            )
        ),
        "\n".join(
            view(lambda one=one, what=what: page.st.code(f"{what(one)}"), **state)
            for one in [fields.RunField("q", fields.number("q", "Rate", 0.1, 7.0, 0.3).knob, 0.3, marks=(0.1, 0.5, 7.0))]
            for what, state in (
                *((fields.RunField.start, state) for state in ({}, {"q": 2.5})),
                *((what, {"q": 2.5}) for what in (fields.RunField.text, fields.RunField.value, fields.RunField.draw)),
                (lambda one: one.draw("Other", page.st.container()), {"q": 0.5}),
                (lambda one: one.keep(0.7), {}),
                (lambda one: fields.number("q", "Rate", 0.1, 7.0, 0.3).change_default(0.7).draw(), {}),
            )
        ),
        "\n".join(f"{pinned.metric.FIELD.knob.form(name)}" for name in ("recall-at-precision=0.6", "", "f1")),
        mock.patch.object(fields.inspected, "own_ids", mock.Mock(return_value=pd.Series(["u", "v"], [0, 1])))(fields.row)(
            "row", "Row", spec
        ).knob.parse("row", "v"),
        mock.patch.object(links, "pages", mock.Mock(return_value={"l.py": "Lessons"}))(
            mock.patch.object(links.st, "page_link", lambda *given, **more: page.st.code(f"{given} {more}"))(view)
        )(lambda: [page._lesson(name) for name in ("attack", "none")]),
        [sidebar._published(name) for name in ("gone", "iris")],
        str([sidebar._rules(dpviz.RunSpec("census-300", mechanism=m, ranges="private")) for m in ("dp-gd", "rsgd")]),
        "\n".join(
            view(sidebar._paid, dpviz.RunSpec("census-300", **more))
            for more in (
                {},
                {"ranges": "private"},
                {"row_scaling": "standardised"},
                {"row_scaling": "standardised", "epsilon": 1e-3},
            )
        ),
        "\n".join(
            f"{sorted(visit.uploads)} {sorted(other.uploads)} {visit.carried} {other.carried} {held}"
            for left, browser, secret in ((None, "B", "B"), (3.0, "B", "B"), (3.0, "", ""), (3.0, "B", "C"))
            for visit, other, held in [
                (
                    session._Visit("me", "s", browser, came=0.0, uploads={"a"}, carried={"k": 1}),
                    session._Visit("w", "t", secret, left=left, came=0.0, uploads={"b"}, carried={"k": 2, "l": 3}),
                    {"l": 4},
                )
            ]
            for take_over in [mock.patch.multiple(session, _visits={"w": other})(session._take_over)]
            if mock.patch.object(session.st, "session_state", held)(take_over)(visit) is None
        ),
    ]
