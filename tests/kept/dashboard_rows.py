"""Examples of `dpviz.dashboard`: the pages of rows and data."""

from dataclasses import replace
from types import SimpleNamespace as ns
from unittest import mock

import numpy as np
import pandas as pd
from support_kept import refusal, view

import dpviz
from dpviz.dashboard.data import dataset, form, upload
from dpviz.dashboard.rows import finder, influence_map, person, rows_with_noise, selection
from dpviz.experiments.studies import inspected
from dpviz.figures import style


def people_examples() -> list[object]:
    runs = [
        (inspected.inspect(s), inspected.row_influence(s))
        for m, seeds in (
            ("dp-gd", 2),
            ("pidp-sgd", 1),
            ("dbdp", 3),
            ("renyi-filter", 2),
            ("input-perturbation", 2),
            ("dp-sgd", 2),
        )
        for s in [dpviz.RunSpec("teaching", mechanism=m, seeds=seeds, epsilon=0.5)]
    ]
    rule = next(view for view in runs[1][0].views or ())
    spec = (specs := {n: dpviz.RunSpec("teaching", mechanism=n, seeds=2) for n in ("dp-gd", "majority")})["dp-gd"]
    return [
        "\n".join(
            " | ".join(
                (
                    influence_map.noisy_rows_in_words(r),
                    influence_map.noisy_rows_in_words(r, brief=True),
                    influence_map.label_of(r, 7),
                    person._why(r, i, 7),
                    person._received(r, 7),
                    person._elsewhere(r),
                    *(f"{name}: {' / '.join(values)}" for name, values in person._verdict(r, [3, 7])),
                    *(f"{name}: {' / '.join(values)}" for name, values in person._noise(r, [3, 7])),
                    *(f"{name}: {' / '.join(values)}" for name, values in person._individual(r, [3, 7])),
                    *(rows_with_noise._why(view) for view in r.views or ()),
                    rows_with_noise._drawn(r, 7),
                )
            )
            for r, i in runs
        ),
        "".join(
            rows_with_noise._why(replace(rule, statistic=np.array(v), low=low, high=high, passes=np.array(v) <= high))
            for v, low, high in (
                ([3.0, 4.0], 0.0, 2.0),
                ([3.0, 4.0], 5.0, 2.0),
                ([3.0, 4.0], 0.0, 9.0),
                ([3.0, 4.0], 0.0, -np.inf),
            )
        ),
        [np.flatnonzero(influence_map.differs(a, b)) for (a, _), (b, _) in ((runs[1], runs[2]), (runs[0], runs[4]))],
        [influence_map.table(*run) for run in runs[:3]],
        "\n".join(
            view(influence_map.other_run, a, b)
            for a, b in ((runs[k][0], runs[j][0]) for k, j in ((1, 2), (1, 3), (0, 1), (4, 0)))
        ),
        view(finder._found, *runs[0], None, np.array([], int)),
        " ".join(map(person._ordinal, (1, 2, 3, 4, 11, 12, 13, 21, 102, 1113))),
        " ".join(person.limits(*ends) for ends in ((-np.inf, 0.5), (0.2, 0.9), (0.0, 0.3), (-np.inf, -np.inf))),
        view(person._most_influential, **{selection._GROUP: np.arange(3)}),
        "\n".join(
            view(selection.from_map, map=ns(selection=ns(points=[{"customdata": i} for i in ids] + [{}], box=box, lasso=[])))
            for ids, box in (([7], []), ([7, 3], []), ([], []), ([4], [1]), ([5, 2, 5], [1]))
        ),
        "\n".join(
            view(selection.from_table, "t", t=ns(selection=ns(rows=rows)), **{selection._SHOWN: {"t": [5, 9]}})
            for rows in ([1], [], [2])
        ),
        "\n".join(
            view(selection.map_rows, "i", ns(group=np.array([True, False, True]), people=[1]), **held)
            for held in ({}, *({selection._HELD: (name, 1, 2), selection._MADE: True} for name in "ij"))
        )
        + view(selection.set_group, np.array([3, 5])),
        view(rows_with_noise.one_step, inspected.inspect(replace(specs["majority"], seeds=1)), style.LIGHT),
        "\n".join(
            " ".join(selection.axis_names(ns(feature_names=names, intercept=constant, d=len(names))))
            for names, constant in (("abc", True), ("ab", False), ("a", False), ("ac", True))
        ),
        "\n".join(
            mock.patch.object(
                finder.tables,
                "frame",
                lambda rows, key, **_: dataset.st.code(
                    f"{rows.shape} {list(rows)} {list(rows.iloc[0, :2])} "
                    f"{key} {len(dataset.st.session_state.pop(selection._SHOWN)[key])}"
                ),
            )(view)(finder._found, run, inspected.row_influence(spec), finder.dataset_of(spec).frame, np.arange(count))
            for run in [inspected.inspect(spec)]
            for count in (200, 201)
        ),
        "\n".join(
            influence_map.noisy_rows_in_words(ns(**usual | more), brief=brief)
            for usual in [
                {"row_ids": np.arange(4), "calibration": ns(noise_scale=0.7), "ever": np.array([True, False, True, False])}
                | {"views": None, "accuracy": [0.1, 0.2], "instances": pd.DataFrame({"visits": [1.0, 2, 0, 1]})}
            ]
            for more in (
                {"calibration": ns(noise_scale=0)},
                *({"ever": ever} for ever in (None, np.ones(4, bool), np.array([True, True, False, True]))),
                {"accuracy": [0.1]},
                *(
                    {"views": (ns(used=False), ns(used=True, name="R", passes=np.array(passes)))}
                    for passes in ([True] * 4, [False] * 4, [True, False, True, True])
                ),
                {"ever": np.ones(4, bool), "views": (ns(used=True, name="R", passes=np.zeros(4, bool)),)},
                *({"instances": pd.DataFrame({"visits": [visits] * 4})} for visits in (np.nan, 1.0)),
            )
            for brief in (True, False)
        ),
        "\n".join(
            person._received(
                ns(
                    instances=pd.DataFrame([{"visits": visits, "times_noised": 1.0, "passed": 0.4}]),
                    calibration=ns(noise_scale=scale),
                    noise_count=count,
                    rms_noise=moved,
                    views=views,
                ),
                0,
            )
            for visits, scale, count, moved, views in (
                *((1, scale, None, moved, None) for scale, moved in ((0, 1), (1, 0.0), (1, 0.3))),
                *((visits, 1, 1, 1, None) for visits in (0.0, np.nan, 2.0)),
                (2.0, 1, 1, 1, [ns(used=False), ns(used=True, statistic=[0.77], low=-np.inf, high=0.5, name="R")]),
            )
        ),
        "\n".join(
            mock.patch.object(influence_map, "table", lambda run, _: pd.DataFrame({"row id": run.row_ids}))(
                mock.patch.multiple(
                    influence_map.tables,
                    frame=lambda rows, key, **_: dataset.st.code(
                        f"{len(rows)} {key} {len(dataset.st.session_state.pop(selection._SHOWN)[key])}"
                    ),
                    download=lambda rows, key: dataset.st.code(f"{len(rows())} {key}"),
                )(view)
            )(influence_map.rows, ns(row_ids=np.arange(len(group))), None, ns(group=group))
            for group in (np.zeros(1000, bool), np.zeros(1001, bool), np.arange(7) > 4)
        ),
        "\n".join(  # a group goes with the split that it was chosen on
            f"{mock.patch.object(selection.st, 'session_state', state)(selection._group)(ns(row_ids=np.arange(4), spec=spec))} "
            f"{sorted(state)}"
            for state in ({}, {selection._GROUP: [1, 3, 9]}, {selection._GROUP: [1], f"{selection._GROUP}.of": "another"})
            for _ in range(2)
        ),
        [selection.tests_of(pd.Series(some)) for some in ([1, 2], [0.5], [True, False], ["a"])],
        "\n".join(
            refusal(lambda rows=rows, those=those: selection.matching_rows(rows, those))
            or f"{selection.matching_rows(rows, those)}"
            for rows in [pd.DataFrame({"age": [20, 61, 75, 61], "status": ["never married", "married", "Never married", "=1+1"]})]
            for some in (
                *("age > 60", "age ≥ 61 age < 75", "age = 20", "age ≤ 20", "age > 60 status contains NEVER", "status is =1+1"),
                *(
                    "status not married",
                    "status contains .*",
                    "",
                    "nobody > 1",
                    "age contains 1",
                    "status > 1",
                    "age > __import__('os')",
                ),
            )
            for those in [
                [selection.Condition(a, b.replace("not", "is not"), c) for a, b, c in np.reshape(some.split(), (-1, 3))]
            ]
        ),
        "\n".join(
            f"{place.mock_calls} {made.mock_calls}"
            for values, test in (
                ([1, 2.5, 4], "="),
                ([*"abb"], "contains"),
                ([*"abb"], "is"),
                ([f"{k}" for k in range(201)], "is"),
            )
            for place in [mock.Mock(selectbox=mock.Mock(side_effect=[test, "b"]), text_input=mock.Mock(return_value="2.5"))]
            for made in [mock.Mock()]
            if mock.patch.multiple(finder.st, multiselect=lambda *_, **__: ["c"], columns=lambda _, place=place: [place, place])(
                mock.patch.multiple(
                    finder,
                    _found=lambda run, influence, table, at, made=made: made(len(table), at.tolist()),
                    dataset_of=lambda _, values=values: ns(frame=pd.DataFrame({"c": values})),
                )(finder.draw)
            )(ns(spec=spec, row_ids=np.arange(len(values))), None)
            is None
        ),
        "\n".join(
            mock.patch.object(
                person.tasks, "current_result", lambda *given, of, **more: [person.st.code(f"{given[:2]} {more}"), None][1]
            )(view)(lambda people=people: person.st.code(f"{person._influence(*runs[0], people)}"))
            for people in ([3], [3, 7])
        ),
        "\n".join(
            view(influence_map.headline, runs[0][0], ns(order=[7, 3], newton_norm=np.arange(9) / 7, leaders=leaders))
            for leaders in (None, ns(norm=np.array([0.77, 0.3])))
        ),
    ]


def data_examples() -> list[object]:
    spec, problem = (
        dpviz.RunSpec("teaching", mechanism="dp-gd", seeds=2),
        dpviz.InvalidInput("steps", "must be *whole*", "Give 3."),
    )
    return [
        "\n".join(
            upload._balance(pd.Series(labels), positive, above)
            for labels, positive, above in (
                ([3, 5, None, 9], (), 5.0),
                (["x", "y", "x"], ("x",), None),
                ([None], (), None),
                ([1] * 19 + [2], ("2",), None),
            )
        )
        + " ".join(upload.counted(number, "row") for number in (0, 1, 2000)),
        "\n".join(
            view(upload._positive, pd.Series(values, name="t"))
            for values in ([*range(21)], [*range(20)], list("bab"), list("bac"))
        ),
        "\n".join(
            view(upload._what_is_left, rows, edited, upload.TableSpec("y", person=person, person_rows=2))
            for rows in (
                pd.DataFrame({"a": [1, None, 3, 4], "b": ["u", None, None, "v"], "p": list("iiji"), "y": [0, 1, None, 1]}),
                pd.DataFrame({"a": [1.0], "b": ["u"], "p": ["i"], "y": [1]}),
            )
            for person in (None, "p")
            for use, fill in (
                ([True] * 3, ["", "", ""]),
                ([True, False, True], ["2", "", ""]),
                ([True, True, False], ["", " v ", ""]),
            )
            for edited in [form.describe(rows.drop(columns="y")).assign(use=use, **{"gap value": fill})]
        ),
        "\n".join(
            mock.patch.object(upload, "doubtful_words", lambda *_, columns=columns: {"?": {c: 1000 + ord(c) for c in columns}})(
                mock.patch.object(
                    upload.st, "radio", lambda *given, answer=answer, **_: [dataset.st.code(f"{given}"), answer][1]
                )(view)
            )(lambda: dataset.st.code(f"{upload._gap_words(None, 'y')}"))
            for columns in ("ay", "abcdef", "abcdefg")
            for answer in ("a gap", "a value")
        ),
        "\n".join(
            str(form.spec_of(table.assign(**chosen), form.TableSpec("y", person="p", missing_in={"b": ("?",)}), ("1",), None))
            for table in [
                form.describe(
                    pd.DataFrame({"a": [1.0, 7.0, None, 44.0] * 30, "b": [*"uvwu"] * 30, "p": "i", "c": np.arange(120)})
                )
            ]
            for chosen in (
                {},
                {"use": True, "round": [True, False, False, False]},
                {"use": True, "low": [0.5, None, None, None], "high": [9.0, None, None, None], "round": True}
                | {
                    "gap value": ["3 ", " u", "", ""],
                    "categories": ["", "u| v|", "", ""],
                    "words for gaps": ["9|", "", "", "-1"],
                },
            )
        ),
        "\n".join(
            [
                mock.patch.object(dataset, "all_cards", list)(view)(dataset.cards, spec, **{dataset._FAILED: problem}),
                *(
                    view(dataset._card, ns(**known | more), replace(spec, dataset=name))
                    for known in [
                        {"title": "A set", "rows": 1234, "variant": "v", "label": "l", "licence": "c", "source": "s"}
                        | {"name": "teaching", "megabytes": 4, "steps": ["one *step*", "two"]}
                    ]
                    for name in ("teaching", "iris")
                    for more in (
                        {"state": "here"},
                        {"state": "here", "name": "census-300"},
                        {"state": "download", "rows": None, "name": "adult"},
                        {"state": "file", "name": None},
                        {"state": "here", "name": None},
                    )
                ),
                *(
                    mock.patch.object(dataset, "dataset_of", mock.Mock(side_effect=error))(view)(
                        lambda: dataset.st.code(f"{dataset.chosen_dataset(spec)}")
                    )
                    for error in (problem, MemoryError)
                ),
                *(
                    mock.patch.object(dataset, "resolve", lambda one: ns(n_train=one.seeds))(view)(
                        dataset.headline,
                        ns(n=n, d=d, intercept=True, name="census-500", published_test=aside),
                        replace(spec, published_split=split),
                    )
                    for n, d, aside, split in (
                        (400, 2, None, False),
                        (1234, 3, np.array([True, False, True]), True),
                        (40, 3, np.array([True, False, False]), False),
                    )
                ),
                view(
                    dataset.describe,
                    ns(y=np.array([1, -1, -1]), description="D.", source="S", d=1234),
                    replace(spec, epsilon=0.7),
                ),
            ]
        ),
        [dataset.majority(ns(y=np.array(some))) for some in ([1.0, -1, -1], [1.0, 1, -1, 1], [1.0])],
        "\n".join(
            mock.patch.object(dataset, "dataset_call", lambda *given: f"{given}")(
                mock.patch.object(dataset.repeat, "python_of", lambda *given: dataset.st.code(f"{given[1:]}"))(view)
            )(dataset.preprocessing, ns(**known | more), spec)
            for known in [
                {"declared": False, "preparations": [], "looked_at": ["a*b"] * 31, "name": "n", "label": ns(sentence="L *x*")}
                | {"remarks": ["R"], "notes": ["N *x*"], "lost": [ns(sentence="S")], "scaling": "largest", "intercept": True}
                | {"constant": 0.5}
            ]
            for more in (
                {},
                {
                    "looked_at": ["a"] * 30,
                    "label": None,
                    "remarks": [],
                    "notes": [],
                    "lost": [],
                    "scaling": "clip",
                    "constant": 1.0,
                },
                {"looked_at": (), "declared": True, "preparations": [ns(id="ranges")], "intercept": False, "scaling": "unit"},
            )
        ),
        "\n".join(
            mock.patch.object(dataset.upload, "forget", lambda name: dataset.st.code(name))(view)(
                dataset.forget, "a", dataset=name
            )
            for name in ("a", "iris")
        ),
        mock.patch.object(dataset, "download", lambda name, progress: [progress(size) for size in (10**6, 10**7)])(view)(
            dataset._download, ns(name="adult", megabytes=4.0)
        ),
        mock.patch.object(upload, "demo", mock.Mock(return_value=True))(view)(upload.draw_upload),
        "\n".join(
            mock.patch.multiple(upload.session, carry=lambda key: dataset.st.code(key), drop=lambda name: dataset.st.code(name))(
                view
            )(
                upload.forget,
                name,
                **{upload.session._KEY: {"a": ns(table=table)}, upload._TABLE: ("f", table), upload._TURN: 3} | more,
            )
            for table in ["rows"]
            for name, more in (
                ("a", {upload._MARKED: 1}),
                ("b", {}),
                ("a", {upload._TABLE: ("f", "others")}),
                ("a", {upload._TABLE: None}),
            )
        ),
        view(upload._next_file),
        mock.patch.object(upload.session, "hold", mock.Mock(return_value=[ns(title="old *one*")]))(
            mock.patch.object(upload.st, "rerun", mock.Mock(side_effect=lambda: dataset.st.code("again")))(view)
        )(upload._use, ns(name="n"), upload="true"),
        "\n".join(
            f"{mock.patch.object(upload.st, 'session_state', state)(upload._once)('k', *given, lambda: 'made')} {state}"
            for given in [("t", "s")]
            for state in ({}, *({"k": (*kept, "kept")} for kept in (given, ("another", "s"), (given[0], "another"))))
        ),
    ]
