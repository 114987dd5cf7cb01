"""Examples of `dpviz.dashboard`: components and jobs, and of the pages story, lessons and claims."""

from dataclasses import replace
from types import SimpleNamespace as ns
from unittest import mock

import numpy as np
from support_kept import refusal, shares, view

import dpviz
from dpviz.dashboard.claims import views as claims
from dpviz.dashboard.components import charts, panels
from dpviz.dashboard.frame import fields, page, server, sidebar
from dpviz.dashboard.jobs import cached_runs, job, tasks, watching
from dpviz.dashboard.lessons import view as lessons
from dpviz.dashboard.story import playing, scenes
from dpviz.dashboard.trade_off import presets
from dpviz.experiments.studies import answers
from dpviz.figures import style


def components_examples() -> list[object]:
    """Elements of views in states that no kept page has, and what callbacks leave in the session's state."""
    problem, theme, chosen, listed = (
        dpviz.InvalidInput("steps", "must be *whole*", "Give 3."),
        style.LIGHT,
        ns(value=lambda: "100", draw=lambda *_: "100"),
        lambda values: [
            one.to_query()
            if isinstance(one, dpviz.RunSpec)
            else (one if isinstance(one, int | float | str | tuple) and "engine" not in f"{one}" else type(one).__name__)
            for one in values
        ],
    )
    spec = (specs := {n: dpviz.RunSpec("teaching", mechanism=n, seeds=2) for n in ("dp-gd", "majority")})["dp-gd"]
    return [
        "\n".join(
            view(charts._tell, "k", lambda data: panels.text(f"{data}"), k=ns(selection=ns(points=some)))
            for some in ([], [{"customdata": [3]}, {}])
        ),
        "\n".join(
            [
                view(lambda: panels.problem(problem, "It is ignored.", grave=True), mechanism="dp-gd"),
                view(panels.problem, problem),
                view(panels.failure, "too *much*", "Take less."),
                *(
                    view(draw, "words of *one* line")
                    for draw in (panels.title, panels.text, panels.warning, panels.note, panels.empty)
                ),
            ]
        ),
        "\n".join(
            f"{now} {watching.text(now, 'so far')}"
            for one in [job.Job("key", None)]
            for state, done in (("RUNNING", 0.02), ("RUNNING", 0.03), ("RUNNING", 0.25), ("QUEUED", 0.25), ("DONE", 0.25))
            if one.__dict__.update(_state=job.State[state], _share=done, _since=100.0) is None
            for now in [mock.patch("time.monotonic", mock.Mock(return_value=107.0))(one.status)()]
        ),
        "\n".join(
            mock.patch.multiple(tasks.watching, state=lambda one: one.state, message=lambda _, doing: doing)(view)(
                tasks.controls, ns(state=job.State[state], done=0.37, results=results, problem=failed), "Training"
            )
            for state, results, failed in (
                *(("RUNNING", [], None), ("CANCELLED", [], None), ("CANCELLED", [1], None), ("FAILED", [], ("no end", "Stop."))),
                ("DONE", [3], None),
            )
        ),
        "\n\n".join(
            f"{charts.glossary.explain(text, most=most)}"
            for text, most in (
                ("ε and δ, clipping and noise", 2),
                ("ε and δ", 2),
                ("Two attackers at δ = 1e-5, replace-one: sensitivities.", 9),
                ("nothing here", 5),
                ("ε and δ, clipping", 1),
                ("N rows, mlp, clip norms and pld", 9),
                ("n rows, MLP, Clip norm, PLD", 9),
            )
        ),
        "\n".join(
            view(
                lambda rows=rows, closed=closed, record=charts.recorder: [
                    record.begin("Before"),
                    record.badge("gone"),
                    record.begin("Page"),
                    record.keep("a", record.Text("row"), rows=True, of=spec),
                    record.keep("b", lambda: record.Text("late")),
                    *map(record.badge, ("one", "one", "two")),
                    *(record.code(text, "python") for text in "ab"),
                    record.code("a", "python"),
                    record.answer("with rows", "without", replace(spec, epsilon=2.0)),
                    closed and record.close("why"),
                    closed and record.keep("c", record.Text("too late")),
                    *(
                        page.st.code(f"{made.question} {made.sentence} {made.subject} {made.badges} {made.parts} {made.repeat}")
                        for made in [page.st.session_state.pop(record._KEY).document(spec, "a set", rows=rows)]
                    ),
                ]
            )
            for rows, closed in ((True, False), (False, False), (False, True))
        ),
        " ".join(
            mock.patch.object(watching, "session_name", mock.Mock(return_value="me"))(watching.state)(
                ns(state=state, declined=some)
            )
            for state in job.State
            for some in ((), ("me",))
        ),
        "\n".join(
            mock.patch.object(watching, "pool", mock.Mock(return_value=ns(busy=busy)))(
                mock.patch.object(watching.time, "monotonic", mock.Mock(side_effect=[100.0, 100.0 + took]))(view)
            )(lambda: page.st.code(f"{watching.wait(ns(wait=lambda s: [page.st.code(f'{s}'), True][1]), 0.6)}"), **state)
            for busy, took, state in (
                (0, 0.125, {}),
                *((busy, took, {watching._PATIENCE: 0.5}) for busy, took in ((3, 0.25), (1, 0.875))),
            )
        ),
        "\n".join(
            view(one.draw)
            for name in (
                *("claims.views", "one_run.views", "sensitivity.settings", "story.settings", "audit.attack"),
                *("accounting.comparison", "groups.over_epsilon", "guarantees.table"),
            )
            for one in server.importlib.import_module(f"dpviz.dashboard.{name}").fields_of(spec)
        ),
        "\n".join(
            view(playing.step, **{playing._LEFT: left, playing._SHOWN: shown, "epsilon": 1.0})
            for left in ((), (2.0, 3.0))
            for shown in (None, 1.0, 0.5)
        ),
        "\n".join(view(playing._move, by, epsilon=e) for by in (-1, 1) for e in (sidebar.EPSILONS[0], 1.0, sidebar.EPSILONS[-1])),
        "\n".join(
            mock.patch.multiple(
                scenes.charts, still_chart=lambda key, make, _, *rest, **__: page.st.code(f"{key} {rest} {make(0)}")
            )(
                mock.patch.object(scenes.pictures, "total_bars", lambda sums, count, one, *_: (len(sums), count, one))(
                    mock.patch.object(scenes.tasks, "current_result", lambda *_, sums=sums, **__: sums)(view)
                )
            )(scenes.composition_scene, cached_runs.outcome(replace(specs[name], epsilon=0.5)), theme, trainings=count)
            for name, sums, count in (
                ("dp-gd", (0.5, 0.71, 0.9, *range(1, 8)), "3"),
                ("dp-gd", (0.5, *[np.inf] * 9), "2"),
                ("dp-gd", None, "2"),
                ("majority", (0.5,), ""),
            )
        ),
        "\n".join(
            mock.patch.multiple(scenes.inspected, row_influence=lambda _, a=a: ns(at_minimum=a), cheap=lambda _, b=b: b)(view)(
                scenes.one_leaves, ns(spec=spec), theme
            )
            for a, b in ((False, True), (True, False))
        ),
        "\n".join(
            lessons.sentence(
                ns(options={"a": "One", "b": "Two", "c": "Three"}, unit=unit), ns(value=value, low=low, high=high, right=right)
            )
            for unit, value, low, high, right in (
                ("", "a", 0, 0, ["a"]),
                ("", "a", 0, 0, ["a", "b", "c"]),
                ("%", 0.5, 0.499, 0.501, ()),
                ("%", 0.5, 0.4991, 0.5009, ()),
                ("", 500.0, 499.2, 500.1, ()),
                ("", 500.0, 499.0, 500.1, ()),
            )
        ),
        "\n".join(
            view(playing.controls, **state)
            for state in ({}, {playing._LEFT: (1.0,)}, *({"present": "1", "scene": scene} for scene in ("", "1", "3", "5")))
        ),
        "\n".join(
            mock.patch.object(playing.time, "sleep", lambda seconds: page.st.code(f"{seconds}"))(
                mock.patch.object(playing.watching, "is_over", lambda over: over)(
                    mock.patch.object(playing.st, "rerun", mock.Mock(side_effect=lambda: page.st.code("again")))(view)
                )
            )(lambda fresh=fresh: playing.advance(fresh=fresh), **{playing._LEFT: left, "watched.run": over})
            for left, fresh, over in (
                ((), True, True),
                *(((1.0, 2.0), fresh, over) for fresh, over in ((True, False), (False, True), (False, False))),
            )
        ),
        "\n".join(
            view(
                claims.test_again,
                [ns(claim=1, task=None, at_work=False)] * count,
                {"thorough": fields.choice("thorough", "Thorough", {"": "a", "yes": "b"}, "")},
                3,
            )
            for count in (1, 2)
        ),
        [
            claims._weight(ns(finding=finding, claim=ns(privacy=privacy)))
            for finding in (None, *(ns(verdict=ns(outcome=outcome)) for outcome in presets.Outcome))
            for privacy in (True, False)
        ],
        "\n".join(  # what each long computation asks of the engine
            f"{where} {name} {told}"
            for where, home, name, run, state in (
                ("story.scenes", "", "watch_run", lambda m: m.attacker_scene(cached_runs.outcome(spec), theme), {"bets": "true"}),
                ("audit.attack", "", "watch_run", lambda m: m.attack(spec, m.Asked("two-rows", 1, 2, 40)), {}),
                ("audit.one_training", "", "one_run_of", lambda m: m.show(spec, {"canaries": chosen}), {}),
                ("audit.ordinary_rows", "", "watch_attacks", lambda m: m.attack(spec, 64), {}),
                ("audit.ordinary_rows", "", "attack_over_epsilon", lambda m: m._over(ns(spec=spec), spec, theme, 64), {}),
                ("audit.ordinary_rows", "", "exposure", lambda m: m.predicts(ns(spec=spec, shadows=64), spec, theme), {}),
                ("audit.all_mechanisms", "survey", "survey", lambda m: m.board(replace(spec, seed=7, lam=0.03), theme), {}),
                (
                    *("trade_off.method_comparison", "", "cross_validate"),
                    lambda m: m.cross_validation(
                        ns(spec=spec, choices=ns(metric=None), sweep=presets.settings.Choices(("dp-gd",), {}).sweep(spec))
                    ),
                    {"repeats": "3"},
                ),
                *(
                    (
                        "sensitivity.recursion",
                        "observed",
                        f"observed_{what}",
                        lambda m, b=b: m._observed(replace(spec, seed=7), "m", bounded=b),
                        {},
                    )
                    for what, b in (("sensitivity", True), ("movement", False))
                ),
                (
                    *("sensitivity.scaling", "scaling", "observe"),
                    lambda m: m._retrained(
                        replace(spec, mechanism="cms-output"), m.scaling.axis(replace(spec, mechanism="cms-output"), "n")
                    ),
                    {},
                ),
                ("data.bounds", "", "compare", lambda m: m.section(None, spec, {"bounds": chosen}, theme), {}),
                (
                    "one_run.sections",
                    "",
                    "release",
                    lambda m: m.publish(replace(spec, seed=7)),
                    {"dpviz.release": (replace(spec, seed=7), "p", {"tried": 3})},
                ),
                ("frame.ranking", "", "watch", lambda m: m._job(spec, "attacker")._stream("listen"), {}),
                ("claims.views", "", "check", lambda m: m.submit([ns(id="c"), ns(id="d")], True, 3), {}),
            )
            for m in [server.importlib.import_module(f"dpviz.dashboard.{where}")]
            for told in [[]]
            for engine in [
                lambda *a, told=told, **more: [
                    told.append((listed(a), [*more], listed(more.values()))),
                    mock.MagicMock(__iter__=lambda _: iter([charts.pd.DataFrame()])),
                ][1]
            ]
            for asked in [
                lambda *a, told=told, **more: [told.append((listed(a), [*more], listed(more.values()))), a[2]("listen"), None][2]
            ]
            if mock.patch.object(getattr(m, home) if home else m, name, engine)(
                mock.patch.multiple(
                    tasks,
                    current_result=asked,
                    observe=lambda *a, asked=asked, **more: (asked(*a, **more), False),
                    attack_job=lambda *a, told=told: told.append((listed(a), [*a[1]("listen")] and a[2:])),
                    find=lambda key, told=told: told.append(key) or True,
                    follow=lambda *_: None,
                )(
                    mock.patch.object(watching, "start", lambda job: [*job._stream("listen")])(
                        mock.patch.multiple(m, ranges_matter=lambda _: True, create=True)(view)
                    )
                )
            )(run, m, **state)
        ),
        f"{charts.glossary.explain('ε, δ, clipping, noise multiplier, accountant, audit, influence')}",
        "\n".join(  # the record of a page, and of the one before
            f"{before.title} {before.parts} {kept.answers} {kept.drew} {kept.run} {'late' in kept.html(spec, 'a set', rows=rows)}"
            for rows, state in ((True, {}), (False, {}))
            for record in [charts.recorder]
            if mock.patch.object(record.st, "session_state", state)(
                lambda record=record, state=state: [
                    record.begin("Before"),
                    record.keep("gone", record.Text("gone")),
                    state.update(before=state[record._KEY]),
                    record.begin("Page"),
                    panels.headline("One row.", "And more.", of=replace(spec, seed=7), without_rows="No row."),
                    record.keep("a", record.Text("late"), rows=True),
                    record.button(spec, "a set"),
                ]
            )()
            for before, kept in [(state["before"], state[record._KEY])]
        ),
        f"{charts.tables.csv(charts.pd.DataFrame({'a,b': ['=1', 'x', '-3'], 'c': [1, 2.5, None]}, [7, 8, 9]))} "
        f"{charts.tables.unique_names([*'abab'])}",
        "\n".join(
            refusal(lambda text=text: lessons.GIVEN.read(text)) or lessons.GIVEN.write(lessons.GIVEN.read(text))
            for text in ("cost:11.0,attack:60.25", "best:dp-gd", "none:3", "cost", "cost:x", "best:none", "")
        ),
        "\n".join(  # a lesson that is asked, answered rightly or wrongly, shown and handed in
            mock.patch.multiple(
                lessons.tasks,
                last_result=lambda section, known=known, answer=answer: {"cost": answer} if section in known else None,
                current_result=lambda *given, answered=answered, answer=answer, **more: [
                    page.st.code(f"{given[:2]} {more} {shares(given[2]) if given[0] == 'handed-in' else ''}"),
                    {"cost": answer} if answered else None,
                ][1],
            )(
                mock.patch.multiple(lessons.address, amend=lambda _: page.st.code("amended"))(
                    mock.patch.multiple(
                        lessons.charts, chart=lambda figure, key, text, data: page.st.code(f"{key} {text} {figure.data[0].x}")
                    )(
                        mock.patch.object(
                            lessons.links, "page_link", lambda *given, run, **more: page.st.code(f"{given} {more}")
                        )(mock.patch.object(lessons.tables, "table", lambda rows, heads: page.st.code(f"{rows} {heads}"))(view))
                    )
                )
            )(
                lambda: [
                    lessons._lesson({"lesson": lessons.GIVEN}, lessons.BY_ID["cost"], theme),
                    page.st.code(f"{[lessons._mark(name, lessons.GIVEN.value()) for name in ('cost', 'attack')]}"),
                    lessons._progress(page.st.empty(), lessons.GIVEN.value()),
                ],
                **{lessons.GIVEN.key: replies, lessons._ASKED: asked},
            )
            for answer in [
                answers.Answer(
                    11.0,
                    10.5,
                    11.5,
                    (),
                    charts.pd.DataFrame([("p", 3.0, True), ("q", 4.0, False)], columns=["name", "value", "chosen"]),
                    "x",
                )
            ]
            for replies, asked, answered, known in (
                ("", ("", None), False, ()),
                ("", ("attack", None), True, ()),
                ("", ("cost", None), True, ()),
                ("", ("cost", 11.0), True, ("lesson-cost",)),
                ("cost:11.0,attack:7.0", ("cost", 11.0), True, ("handed-in",)),
                ("cost:9.0", ("cost", 9.0), True, ("lesson-cost",)),
                ("attack:9.0", ("cost", 11.0), False, ()),
            )
        ),
        "\n".join(
            f"{made.finding} {made.again} {made.at_work} {cancelled.mock_calls}"
            for state in (None, *job.State)
            for task in [state and ns(results=["first", "last"])]
            for cancelled in [mock.Mock()]
            for made in [
                mock.patch.multiple(claims.saved, load=lambda: ns(findings={"c": "saved"}))(
                    mock.patch.multiple(claims.tasks, find=lambda _, task=task: task)(
                        mock.patch.object(claims.watching, "state", lambda _, state=state: state)(claims._shown)
                    )
                )(ns(id="c"), False, 3)
            ]
            if mock.patch.object(claims.watching, "cancel", cancelled)(claims.cancel)([1, 2]) is None
        ),
        "\n".join(
            claims.sentence(some)
            for one in presets.Outcome
            for some in ([one], [one, one], [one, None, one, *presets.Outcome], [None])
        ),
    ]
