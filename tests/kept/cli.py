"""Examples of `dpviz.cli`."""

import argparse
import io
import re
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pandas as pd
from support_kept import answer, numbers_in, refusal, shares

import dpviz
import dpviz.dashboard.lessons.view  # the whole list of lessons, before an example cuts it short
from dpviz.cli import answers, main, metrics, own_file, progress, run, show, start, sweep
from dpviz.common.validate import InvalidInput
from dpviz.dashboard.components import lessons
from dpviz.dashboard.components.recorder import Recorder
from dpviz.dashboard.frame import headless
from dpviz.reporting import Text

_SHOWN = re.compile(
    r'(?<=href=")http[^"]*|(?<=\.html">)[^<]+|(?<=<h[12]>)[^<]+|(?<=(?:nce|ect|rge)">)[^<]+|(?<=<p>)(?!Made)[^<]+'
)

#: (file, command whose first whole number it checks): names and limits are kept
LIMITED = (
    ("app", "--port 7"),
    *(("audit", f"audit --{words}") for words in ("runs 40", "pair without --row 3")),
    ("calibrate", "calibrate --n 5 --d 2"),
    ("one_run", "calibrate --mechanism automatic --n 5 --d 2"),
    ("claims", "list claims --test all --seed 3"),
    ("influence", "influence --top 3"),
    ("membership", "audit --membership"),
    *(
        ("sweep", f"sweep --mechanisms dp-gd --{words}")
        for words in ("folds 2 --jobs=-1 --repeats 3", "epsilons 1:4:2", "jobs 2")
    ),
    *(("release", f"release --out m --{words}") for words in ("tried 3", "audit 3", "all-rows --public-n 9")),
    ("gallery", "report --all --out m --figure-rows 9"),
)


def cli_examples() -> Iterator[Any]:
    yield from [
        answer("run --dataset teaching --mechanism output-gaussian --seeds 2 --metric roc-auc --metric f1"),
        answer("run --dataset teaching --mechanism output-gaussian --seeds 2 --metric roc-auc --epsilon 0.5 --json"),
        answer("run --dataset census-500 --mechanism output-gaussian --seeds 2 --class-weight 2"),
        answer("run --dataset census-500 --mechanism majority --json"),
        answer("calibrate --dataset teaching --mechanism output-gaussian --seeds 2"),
        answer("calibrate --dataset teaching --mechanism output-gaussian --seeds 2 --json"),
        answer("calibrate --n 1000 --d 5 --mechanism dp-gd --delta 1e-6"),
        answer("calibrate --dataset teaching --mechanism output-gaussian --seeds 2 --attacker advantage=0.1"),
        answer("calibrate --dataset teaching --mechanism output-gaussian --seeds 2 --accountants --published"),
        answer("calibrate --dataset teaching --mechanism output-gaussian --seeds 2 --accountants --published --json"),
        answer("calibrate --mechanism dp-sgd --dataset teaching --accountants"),
        answer("calibrate --n 300 --d 3 --intercept false"),
        answer("calibrate --dataset teaching --intercept false"),
        answer("audit 'http://127.0.0.1:8501/Audit?dataset=teaching&mechanism=output-gaussian&pair=without&runs=40'"),
        answer("run kept_table.csv --mechanism output-gaussian --seeds 2"),
        answer("calibrate --methods --dataset teaching --epsilon 0.5"),
        answer("calibrate --methods --dataset teaching --metric accuracy --seeds 2 --json"),
        answer("influence --dataset teaching --mechanism output-gaussian --seeds 2 --top 2"),
        answer("influence --dataset teaching --mechanism output-gaussian --seeds 2 --top 2 --retrain --json"),
        answer("audit --dataset teaching --mechanism output-gaussian --seeds 2 --runs 40"),
        answer("audit --dataset teaching --mechanism output-gaussian --seeds 2 --runs 40 --json"),
        answer("groups --dataset teaching --mechanism output-gaussian --seeds 2"),
        answer("list mechanisms"),
        answer("list papers --json"),
        answer("show teaching"),
        answer("show census-500 --json"),
        answer("sweep --dataset teaching --mechanisms output-gaussian,dp-gd --seeds 2 --epsilons 0.5,2 --no-cache -q"),
        answer("sweep --dataset teaching --mechanisms output-gaussian,dp-gd --seeds 2 --epsilons 0.5,2 --no-cache --json"),
        answer("groups --dataset census-500 --mechanism dp-gd --group region --seeds 2 --json"),
        answer("groups --dataset census-500 --mechanism dp-gd --group age --cuts 30,50 --seeds 2"),
        answer(
            "audit --dataset teaching --mechanism output-gaussian --membership --shadows 64 --targets 16 --no-cache --epsilons 1"
        ),
        answer("audit --dataset teaching --mechanism output-gaussian --membership --shadows 64 --targets 16 --no-cache"),
        answer("run kept_table.csv --target outcome --mechanism output-gaussian --seeds 2"),
        answer(
            "run kept_table.csv --target outcome --range age=18,80 --range hours=0,80 --range visits=0,9 --positive yes "
            "--mechanism dp-gd --seeds 2 --json"
        ),
        answer("run kept_table.csv --target outcome --person name --person-rows 2 --mechanism output-gaussian --seeds 2"),
        answer(
            "run kept_table.csv --target outcome --columns age,visits --mechanism output-gaussian --seeds 2 --metric accuracy"
        ),
        answer("run kept_table.csv --target visits --above 4 --mechanism dp-gd --seeds 2"),
        answer("show kept_table.csv --target outcome"),
        answer("show kept_table.csv --target outcome --json"),
        answer("show kept_table.csv --target outcome --range age=18,80 --range hours=0,80 --range visits=0,9 --person name"),
        answer(
            "groups kept_table.csv --target outcome --range age=18,80 --range hours=0,80 --range visits=0,9 --group region "
            "--mechanism dp-gd --seeds 2"
        ),
        answer(
            "calibrate kept_table.csv --target outcome --range age=18,80 --range hours=0,80 --range visits=0,9 --mechanism "
            "output-gaussian --person name --json"
        ),
        answer(
            "influence kept_table.csv --target outcome --range age=18,80 --range hours=0,80 --range visits=0,9 --top 3 --retrain"
        ),
        answer(
            "sweep kept_table.csv --target outcome --range age=18,80 --range hours=0,80 --range visits=0,9 --mechanisms "
            "output-gaussian --epsilons 1:4:2 --seeds 2 --no-cache --json"
        ),
        answer(
            "sweep --dataset teaching --mechanisms output-gaussian --epsilons 1 --seeds 2 --repeats 2 --no-cache "
            "--metric accuracy --metric log-loss"
        ),
        answer(
            "sweep --dataset teaching --mechanisms output-gaussian --epsilons 0.5,2 --seeds 2 --no-cache --metric roc-auc "
            "--metric recall@fpr=0.3 --metric brier"
        ),
        answer("sweep kept_table.csv --target outcome --mechanisms output-gaussian --epsilons 1 --seeds 2 --no-cache"),
        answer("list claims --test dbdp-noise-rate"),
        answer("list claims"),
        mock.patch.multiple(
            "dpviz.papers.claims",
            list_claims=lambda: ["a", "b"],
            check=lambda _: mock.Mock(seconds=1.25, **{"verdict.headline": "holds"}),
        )(mock.patch.multiple("dpviz.papers.saved", save_claims=len, version=lambda: "0")(answer))("list claims --save"),
        answer("audit --dataset teaching --mechanism dbdp-pi --runs 200"),
        answer("run --dataset iris --mechanism ldp-duchi --epsilon 4 --seeds 2 --metric all"),
        answer("run --model svm --mechanism kst-objective --seeds 2 --json"),
        answer("run --model mlp-4 --mechanism dp-sgd --set epochs=2 --seeds 2"),
        answer(
            "sweep --dataset teaching --mechanisms dp-gd --set dp-gd.steps=5 --epsilons 1 --seeds 2 --folds 2 --no-cache --json"
        ),
        answer(
            "audit kept_table.csv --target outcome --range age=18,80 --range hours=0,80 --range visits=0,9 --runs 40 "
            "--mechanism output-gaussian --pair without --row 9 --json"
        ),
        answer("run kept_table.csv --target visits --above 8 --mechanism dp-gd --seeds 2"),
        answer("run kept_table.csv --target visits --above 8 --mechanism dp-gd --seeds 2 --json"),
        " | ".join(
            found.in_words(m)
            for s in (
                dpviz.RunSpec("teaching", mechanism="majority", seeds=2),
                dpviz.RunSpec("teaching", mechanism="dp-gd", seeds=2),
            )
            for c in [metrics.chosen_metrics(["roc-auc", "f1", "recall@precision=0.6", "log-loss"])]
            for found in [run._Measured.measure(dpviz.run(s), c)]
            for m in c
        ),
        [
            answer(f"predict {folder.name} kept_table.csv {words}")
            for folder in [tempfile.TemporaryDirectory()]
            if Path(folder.name, "model.json").write_text(
                '{"format": "dpviz model 1", "model": "logistic", "classes": ["no", "yes"], "constant": 0.5, '
                '"constant_label": null, "encoder": {"scaling": "unit", "largest": 1, "columns": ['
                '{"name": "age", "kind": "number", "low": 18, "high": 80, "clip": true, "levels": [], "default": null, '
                '"gaps": null}, {"name": "region", "kind": "categories", "low": 0, "high": 1, "clip": true, '
                '"levels": ["north", "south", "west"], "default": null, "gaps": null}]}, '
                '"privacy": {}, "theta": [0.7, -1.1, 0.4, 0.9, -0.3]}'
            )
            for words in (
                "--proba --keep visits --keep name --fill age=30",
                "--proba --keep visits --fill age=30 --fill region=west --json",
                f"--out {folder.name}/new.csv",
            )
        ],
        [
            answer(f"ledger {folder.name}/a.toml {words}")
            for folder in [tempfile.TemporaryDirectory()]
            for words in ("--limit 3 --delta 1e-6 --unit person --relation add-remove", "--json")
        ],
        mock.patch.multiple(
            "dpviz.datasets",
            list_datasets=lambda: "ab",
            rows_of=mock.Mock(side_effect=[1234, InvalidInput("file", "is gone", "")]),
        )(mock.patch("dpviz.datasets.sources.remote.is_downloaded", lambda name: name != "adult")(answer))("list datasets"),
        mock.patch("dpviz.datasets.sources.remote.download", lambda _, told: [told(size) for size in (10**5, 10**9)])(
            lambda: shares(
                lambda listen: mock.patch.object(show.Bar, "__call__", lambda _, share: listen(share))(show._download)("adult")
            )
        )(),
        [show._is_file(name) for name in ("-", "teaching", "no/file", "file.csv", "nothing", ".")],
        [
            [len(lines), *numbers_in(lines[-1][1])]
            for count in (run._MOST_LOST, run._MOST_LOST + 1, run._MOST_LOST + 7)
            for lines in [run._lost(mock.Mock(**{"setup.dataset.lost": [mock.Mock(sentence="8 rows")] * count}))]
        ],
        "\n".join(
            f"{printed.call_args.args[0]}"
            for width in (60, 61, 20)
            for printed in [mock.Mock()]
            if [
                mock.patch.object(answers.shutil, "get_terminal_size", mock.Mock(return_value=mock.Mock(columns=width)))(
                    mock.patch("builtins.print", printed)(answers.print_wrapped)
                )("a line of a long-hyphened-and-so-not-broken-word that is broken at the width of-the terminal", 7, mock.Mock())
            ]
        ),
        str(
            answers.json_value(
                {"a": np.float64("nan"), "b": [np.inf, -np.inf, np.int64(3)], "c": np.array([1.5]), "d": Path("x"), "e": True}
            )
        ),
        answers.text(
            {"table": {"a": float("nan"), "b": (float("inf"), -float("inf"), True, None, 3)}, "path": Path("p")}, "run"
        ).replace(dpviz.__version__, "version"),
        [numbers_in(one.format_help()) for one in main.parser()._actions[-1].choices.values()],
        [[action.dest for action in one._actions if not action.help] for one in main.parser()._actions[-1].choices.values()],
        "\n".join(" ".join(one.format_usage().split()) for one in main.parser()._actions[-1].choices.values()),
        "\n".join(
            str(limits.call_args_list)
            for limits in [mock.Mock(side_effect=InvalidInput("a number", "is looked at", ""))]
            if [mock.patch(f"dpviz.cli.{file}.check_integer", limits)(main.main)(words.split()) for file, words in LIMITED]
        ),
        [sweep._jobs(text) for text in ("-1", "1", "3")],
        "\n".join(
            f"{code} {screen.getvalue()}"
            for words in (
                *("calibrate --attacker accuracy=0.6 --epsilon 1", "calibrate --n 5", "calibrate --n 5 --d 2 --dataset teaching"),
                *("calibrate --n 5 --d 2 --class-weight 2", "calibrate --mechanism dbdp --accountants", "run --set steps"),
                *("audit --row 3", "audit --confidence 1", "audit --confidence 0", "run --metric none"),
                *("ledger x.toml --limit 3", "ledger x.toml --delta 0.1"),
                *("run dp-gd", "sweep dp-gd", "run iris", "run kept.csv --dataset iris", "run --seeds x"),
                *("sweep --mechanisms dp-gd --set x", "sweep --mechanisms dp-gd --set nsgd.steps=3"),
                *(f"sweep --mechanisms dp-gd --epsilons {text}" for text in ("3:1:2", "1:1:2", "0:4:2", "1:4", "1:4:x")),
                *("sweep --mechanisms none", "release --seed 3 --out m", "release --out m --try steps=2 --tried 3"),
                *("list claims --full", "list claims --seed 3", "list claims --test none", "list claims --save --json"),
                *("report --all --out none/m --live http://x", "report --all --out m --live x", "report --out m.txt"),
                *("report --out none/m.html", "report --out m.html --figure-rows 9", "groups --group none --dataset census-300"),
            )
            for screen in [io.StringIO()]
            for code in [mock.patch("sys.stderr", screen)(main.main)(words.split())]
        ),
        [
            sorted(
                own_file._by_frame(
                    argparse.Namespace(**{"range": [], "categories": [], "fill": [], "missing": []} | some), t
                ).items()
            )
            for t in [pd.DataFrame({"a": [1.0, 2.0], "b=c": ["x", "y"], 'd"e': [3.0, 4.0]})]
            for some in (
                {"range": ["a=1,9", '"b=c"=-2,3.5', 'd"e=0,1'], "fill": ["a=7", "b=c=z"]},
                {"categories": ['b=c=x|"y|z"|w'], "missing": ["?", '"a=b"', "b=c=x|-", "b=c=n", "", '"b=c"=m']},
                {"missing": ["?"]},
                {},
            )
        ],
        "\n".join(
            refusal(lambda i=item, n=names: own_file._parts("--fill", i, n))
            for item, names in (("a", ["a"]), ("b=1", ["a"]), ('"b"=1', ["a"]), ("a=b=1", ["a", "a=b"]), ("a=b=1", ["a"]))
        ),
        answer("list mechanisms --json"),
        answer("list claims --json"),
        answer(
            "calibrate 'http://127.0.0.1:8501/Privacy?dataset=teaching&compare=output-gaussian' --mechanism dp-gd --accountants"
        ),
        # a connection to a cluster that answers, and one that does not
        "\n".join(
            mock.patch.dict(sys.modules, dict.fromkeys(("distributed", "logging", "dpviz.experiments.sweeps.cluster"), calls))(
                lambda: refusal(lambda: sweep._client("tcp://here:1").__enter__())
            )()
            + re.sub(" id='[0-9]+'", "", f"{calls.mock_calls}")
            for problem in (None, OSError())
            for calls in [
                mock.MagicMock(
                    **{"Client.side_effect": problem, "root.manager.loggerDict": ["tornado.access", "dpviz"], "CRITICAL": 50}
                )
            ]
        ),
        # a progress bar by two clocks, which ends no line that it did not begin, and writes nothing where that is no terminal
        "\n".join(
            str(screen.mock_calls)
            for clock in ([5.0, 50.0, 51.0, 80.0, 99.0], [5.0, 5.1, 5.15, 5.19, 9.0])
            for on in (True, False)
            for screen in [mock.Mock(**{"isatty.return_value": on})]
            for bar in [mock.patch.object(progress.time, "monotonic", mock.Mock(side_effect=clock))(progress.Bar)(screen)]
            if [
                mock.patch.object(progress.time, "monotonic", mock.Mock(side_effect=clock[1:]))(
                    lambda bar=bar: [bar.__exit__(), *map(bar, (0.25, 0.3, 0.55, 1.0)), bar.__exit__(), bar.__exit__()]
                )()
            ]
        ),
        [len(metrics.chosen_metrics(some)) for some in (["all"], ["all", "recall@precision=0.6"], ["f1", "f1"], [])],
    ]


def start_examples() -> Iterator[Any]:
    """Ends of the command: what is called last, with which code, and which of its processes are killed."""
    calls = mock.Mock(**{"active_children.return_value": [mock.Mock(pid=7), mock.Mock(pid=None)]})
    process = mock.patch.multiple(start.os, _exit=calls.exit, kill=calls.kill, write=calls.write, isatty=calls.isatty)
    children = mock.patch.dict(sys.modules, {"multiprocessing": calls, "dpviz.common.files": calls})
    for words in ([], ["app", "--port=1"], ["--help"], ["run", "--json"]):
        command = mock.patch.multiple(main, main=mock.Mock(side_effect=[4 if words else SystemExit(None), 5]))
        signals, line = mock.patch.object(start.signal, "signal", calls.signal), mock.patch.object(sys, "argv", ["dpviz", *words])
        with process, children, command, signals, line:
            calls.left(start.main())
    with process, children:
        start._stop(15, None)
    yield re.sub(" at 0x[0-9a-f]+", "", "\n".join(f"{name} {sent}" for name, sent, _ in calls.mock_calls))


def gallery_examples() -> Iterator[Any]:
    """Files of a gallery whose pages are not drawn."""

    def recorded(script: Path, page: Path, query: Mapping[str, str], *rest: object) -> Recorder:
        return Recorder(
            f"{page.stem} {query}",
            ("all rows", "no row"),
            {"a note": Text("note")},
            run=(dpviz.RunSpec("census-300" if query else "iris"), "rows"),
        )

    draw, some = mock.patch.object(headless, "record_page", recorded), mock.patch.object(lessons, "LESSONS", lessons.LESSONS[8:])
    with draw, some, tempfile.TemporaryDirectory() as folder:
        site = Path(folder)
        yield answer(f"report --all --out {site} --figure-rows 150")[1][-2:-1]
        yield "".join(f"{path.name} {_SHOWN.findall(path.read_text('utf-8'))}\n" for path in sorted(site.iterdir()))
