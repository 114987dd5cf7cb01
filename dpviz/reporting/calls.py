"""The calls that repeat a run, from Python and from a shell. Each runs as it stands, where the files that it names are there."""

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any
from urllib.parse import quote, urlencode

from dpviz.datasets.sources import own, uploads
from dpviz.datasets.table.delimiters import DELIMITERS, join_words
from dpviz.datasets.table.spec import TableSpec
from dpviz.experiments.run import links
from dpviz.experiments.run.spec import RunSpec, shared_fields
from dpviz.experiments.sweeps.sweep import SweepSpec


def python_call(spec: RunSpec, metric: str = "accuracy") -> str:
    """The call that repeats a run: what differs from the default, and always dataset, mechanism and epsilon.

    Args:
        metric: id of the one whose mean is shown.
    """
    mean = "result.accuracy.mean()" if metric == "accuracy" else f"result.metrics_in([{metric!r}]).mean()"
    return f"import dpviz\n\n{_rows(spec.dataset)}result = dpviz.run({_constructor(spec)})\n{mean}"


def with_spec(spec: RunSpec, code: str, *imports: str) -> str:
    """Code about a run that runs as it stands.

    Args:
        code: may use `spec` and `dpviz`.
        imports: lines before it.
    """
    return "\n".join(["import dpviz", *imports, "", f"{_rows(spec.dataset)}spec = {_constructor(spec)}", code])


def sweep_call(sweep: SweepSpec) -> str:
    """The call that repeats a sweep: what differs from the default, and always dataset, mechanisms and budgets."""
    values = {f.name: getattr(sweep, f.name) for f in fields(sweep)}
    values |= {"mechanisms": {run.mechanism: _knobs(run) for run in sweep.runs()}, "epsilons": list(sweep.epsilons)}
    call = _arguments(values, SweepSpec, ("dataset", "mechanisms", "epsilons"))
    return f"import dpviz\n\n{_rows(sweep.dataset)}table = dpviz.run_sweep(dpviz.SweepSpec({call}))\ntable"


def sweep_shell_call(sweep: SweepSpec) -> str:
    """The same sweep from a shell: what differs from the default, and always dataset, mechanisms and budgets."""
    several = {"mechanisms": ",".join(sweep.named), "epsilons": ",".join(map(repr, sweep.epsilons))}
    knobs = {f"set={key}": value for run in sweep.runs() for key, value in run.to_query().items() if "." in key}
    query = RunSpec(**shared_fields(sweep)).to_query() | several | knobs
    return _shell("sweep", sweep.dataset, query, [*(f"--metric={one}" for one in sweep.metrics), "--out=sweep.csv"])


def dataset_call(name: str, intercept: bool, scaling: str) -> str:
    """The call that gives a dataset's rows as they are trained on."""
    rows = _rows(name) or f"rows = dpviz.load_dataset({name!r}, intercept={intercept}, scaling={scaling!r})\n"
    return f"import dpviz\n\n{rows}rows.X, rows.y"


def _constructor(spec: RunSpec) -> str:
    values = {f.name: getattr(spec, f.name) for f in fields(spec)}
    values["params"] = _knobs(spec)
    return f"dpviz.RunSpec({_arguments(values, RunSpec(spec.dataset), ('dataset', 'mechanism', 'epsilon'))})"


def _knobs(spec: RunSpec) -> dict[str, object]:
    """The hyperparameters that differ from the default."""
    usual = spec.build().defaults()
    return {name: value for name, value in spec.params.items() if value != usual[name]}


def _arguments(values: Mapping[str, object], default: object, always: Sequence[str]) -> str:
    """Those values that are always given or differ from the default, as arguments of a call; a person's own table is `rows`."""
    given = {name: repr(value) for name, value in values.items() if name in always or value != getattr(default, name)}
    if _table(str(values["dataset"])) is not None:
        given["dataset"] = "rows"
    return ", ".join(f"{name}={value}" for name, value in given.items())


def _rows(dataset: str) -> str:
    """Code that makes a person's own table a dataset in another process; "" for datasets that have a name everywhere."""
    table = _table(dataset)
    if table is None:
        return ""
    file, spec, reading = table
    options = _options(spec) | dict(reading)
    return f"rows = dpviz.dataset({', '.join([repr(file), *(f'{name}={value!r}' for name, value in options.items())])})\n"


def _table(dataset: str) -> tuple[str, TableSpec, Mapping[str, Any]] | None:
    """(file, what it means, how its text is read) of an upload, or of rows from a file on the command line."""
    if uploads.is_upload(dataset):
        held = uploads.get(dataset)
        return held.title, held.spec, held.table.reading
    if own.is_own(dataset):
        content = own.get(dataset)
        return ("rows.csv" if content.file is None else content.file), content.spec, content.reading
    return None


def _options(spec: TableSpec) -> dict[str, object]:
    """The arguments of `dpviz.dataset` that differ from the default."""
    plain = TableSpec(spec.target)
    options = {f.name: getattr(spec, f.name) for f in fields(spec)}
    kept = {name: value for name, value in options.items() if name == "target" or value != getattr(plain, name)}
    if by_column := kept.pop("missing_in", None):
        kept["missing"] = by_column if spec.missing is None else {"": spec.missing, **by_column}
    return {name: _plain(value) for name, value in kept.items()}


def _plain(value: object) -> object:
    if isinstance(value, Mapping):
        return {name: _plain(one) for name, one in value.items()}
    return list(value) if isinstance(value, tuple) else value


def shell_call(spec: RunSpec, command: str = "run", metric: str = "accuracy") -> str:
    """The same run from a shell; what a shell would obey is quoted.

    Args:
        command: one of the commands that take a run.
        metric: id of a metric that is printed beside accuracy.
    """
    values = {f"set={key.partition('.')[2]}" if "." in key else key: value for key, value in spec.to_query().items()}
    query = {"mechanism": spec.mechanism, "epsilon": str(spec.epsilon)} | values
    return _shell(command, spec.dataset, query, [] if metric == "accuracy" else [f"--metric={metric}"])


def _shell(command: str, dataset: str, query: Mapping[str, str], more: Sequence[str]) -> str:
    """A command with its options; a person's own table comes first, with the options that say how it is read."""
    table = _table(dataset)
    first = [f"--dataset={dataset}"] if table is None else [_file(table[0]), *_flags(*table[1:])]
    options = [f"--{key if '=' in key else key.replace('_', '-')}={value}" for key, value in query.items() if key != "dataset"]
    return shlex.join(["dpviz", command, *first, *options, *more])


def _flags(spec: TableSpec, reading: Mapping[str, Any]) -> list[str]:
    flags = [f"--target={spec.target}", *(f"--positive={value}" for value in spec.positive)]
    if spec.above is not None:
        flags.append(f"--above={spec.above!r}")
    if spec.columns is not None:
        flags.append(f"--columns={join_words(spec.columns, ',')}")
    flags += [f"--drop={name}" for name in spec.drop]
    flags += [f"--range={_name(name)}={low!r},{high!r}" for name, (low, high) in spec.ranges.items()]
    flags += [f"--round-range={name}" for name in spec.proposed]
    flags += [f"--categories={_name(name)}={join_words(levels, '|')}" for name, levels in spec.categories.items()]
    words: dict[str, dict[Any, str]] = {"header": {True: "names", False: "data", 2: "second"}, "delimiter": DELIMITERS}
    flags += [f"--{name}={words.get(name, {}).get(value, value)}" for name, value in reading.items()]
    flags += ["--missing="] if spec.missing == () else [f"--missing={_name(value)}" for value in spec.missing or ()]
    flags += [f"--missing={_name(name)}={join_words(values, '|')}" for name, values in spec.missing_in.items()]
    return flags + [f"--fill={_name(name)}={value}" for name, value in spec.defaults.items()]


def _name(text: str) -> str:
    """A name or a word as the command line takes it: in double quotes where it could be taken for something else."""
    return '"' + text.replace('"', '""') + '"' if "=" in text or text.startswith('"') else text


def _file(name: str) -> str:
    """A file's name that is taken for no option, link or settings."""
    return f"./{name}" if name.startswith(("-", "?", "http:", "https:")) else name


def address(spec: RunSpec) -> str:
    """The part of the address that holds a run, percent-encoded."""
    return address_text(spec.to_query())


def address_text(query: Mapping[str, str]) -> str:
    """An address as text, with the version of its defaults; "/" for the defaults themselves."""
    return f"?{urlencode(links.add_version(query), quote_via=quote)}" if query else "/"
