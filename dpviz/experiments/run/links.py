"""Links keep their meaning: an address names the version of the defaults that it leaves out, and older defaults are kept here.

An address holds what differs from the defaults, so a changed default would change what older links mean. Links without a version
were written by hand or before there was one; they mean today's defaults, and `elsewhere` says what they meant before.
"""

from collections.abc import Collection, Mapping
from dataclasses import replace

from dpviz.common.validate import InvalidInput, show
from dpviz.mechanisms import get_mechanism
from dpviz.mechanisms.persons import of_row
from dpviz.models import Setting
from dpviz.privacy.budget import Budget

KEY = "v"
#: what an address of each older version means where it leaves a key out, by version; a change of a default adds an entry
OLD: Mapping[int, Mapping[str, str]] = {
    1: {"lam": "0.001", "row_scaling": "unit", "pair": "worst-case"},
    2: {f"{name}.clip_norm": "1" for name in ("dp-gd", "dp-sgd", "dp-lssgd", "bassily-sgd", "dp-svrg", "dp-agd", "song-sgd")},
    3: {"cms-objective.slack": "balanced"},
    4: {"dp-sgd.sampling_rate": "0.1", "objective-tight.curvature_share": "0.1"},
    5: {},
    6: {},
}
_NOISY_STEPS = ("dp-gd", "dp-sgd", "dp-lssgd", "dp-svrg", "renyi-filter", "input-perturbation", "dbdp", "dbdp-pi")
#: lambda and hyperparameters that other rules set on linear models until a version; no value in an address stands for these
RULES: Mapping[int, Mapping[str, Collection[str]]] = {
    5: dict.fromkeys(_NOISY_STEPS, ("step_size",))
    | dict.fromkeys(("nsgd", "rsgd", "rsgd-ar"), ("batch_size", "epochs", "step_size"))
    | {"outpert-gd": ("steps",)},
    6: dict.fromkeys(("output-gaussian", "cms-output", "bolt-on-psgd"), ("lam",)),
}
VERSION = len(OLD) + 1
#: settings that are gone, by key: the values that nothing stands for now, and what a run has in their place
GONE: Mapping[str, Mapping[str, str]] = {
    "renyi-filter.when_spent": {
        "leave": "",
        "give what is left": "a row that cannot pay for its next gradient leaves, as published; it used up what was left then",
    }
}
#: the last day of version 1, that of links without a version
UNTIL = "25 November 2026"
_MECHANISM = "dp-gd"  # of a link that names none


def signed(query: Mapping[str, str]) -> dict[str, str]:
    """An address of today's defaults with its version; one that holds nothing is the app itself and needs none.

    >>> signed({"epsilon": "0.5"})
    {'epsilon': '0.5', 'v': '7'}
    """
    rest = {key: value for key, value in query.items() if key != KEY}
    return rest | {KEY: str(VERSION)} if rest else {}


def meant(query: Mapping[str, str], problems: list[InvalidInput] | None = None) -> dict[str, str]:
    """An address in today's defaults: what it leaves out and what had another default in its version is written out.

    Args:
        problems: where given, a bad version, which means today's, and a setting of the method that is gone are reported here;
            otherwise the first one raises.

    >>> older = meant({"epsilon": "0.5", "lam": "0.01", "v": "1"})
    >>> [older[key] for key in ("epsilon", "lam", "row_scaling", "dp-gd.clip_norm")]
    ['0.5', '0.01', 'unit', '1']
    """
    rest = {key: value for key, value in query.items() if key != KEY}
    bad = _gone(rest)
    try:
        version = _version(query.get(KEY, str(VERSION)))
    except InvalidInput as problem:
        bad.append(problem.bare())
        version = VERSION
    if bad and problems is None:
        raise bad[0]
    if problems is not None:
        problems += bad
    older: dict[str, str] = {}
    for other in range(version, VERSION):  # a default of its time is the one that was changed first
        older = {**older, **OLD[other], **older}
    return older | rest


def _gone(query: dict[str, str]) -> list[InvalidInput]:
    """Takes settings that are gone out of an address, and says what the run of its method has in their place."""
    found = []
    for key in GONE.keys() & query.keys():
        value = query.pop(key)
        instead = GONE[key].get(value, "it is not known here")
        if instead and key.startswith(f"{query.get('mechanism', _MECHANISM)}."):
            found.append(InvalidInput(key, f"{show(value)} is no setting any more: {instead}", "Leave it out."))
    return found


def _version(text: str) -> int:
    number = int(text[:9]) if text.isascii() and text.isdigit() else 0
    if 1 <= number <= VERSION:
        return number
    cause = "the link is of a newer dpviz, whose defaults may differ" if number else f"{show(text)} is no version of a link"
    raise InvalidInput(KEY, cause, f"Versions 1 to {VERSION} are known here.")


def of_others(query: Mapping[str, str]) -> dict[str, str]:
    """The hyperparameters of other methods than the link's whose defaults were others in its version.

    A link holds the hyperparameters of its own method; others, which a page or command compares with it, have today's defaults.

    >>> of_others({"mechanism": "dp-gd", "v": "2"})["dp-sgd.clip_norm"], "dp-gd.clip_norm" in of_others({"v": "2"})
    ('1', False)
    """
    own = f"{query.get('mechanism', _MECHANISM)}."
    return {key: value for key, value in meant(query, []).items() if "." in key and key not in query and not key.startswith(own)}


def other_rule(query: Mapping[str, str]) -> str:
    """A sentence where an older link's method chose its steps or lambda by another rule; "" where not.

    >>> other_rule({"mechanism": "dp-sgd", "v": "5"})[:60]
    'When this link was made, its automatic steps followed anothe'
    >>> other_rule({"v": "5", "dp-gd.step_size": "1"}), other_rule({"v": "5", "model": "mlp"}), other_rule({"v": "6"})
    ('', '', '')
    >>> [other_rule({"mechanism": "cms-output", "v": "6", "lam": lam})[25:45] for lam in ("0", "0.1")]
    ['its automatic λ foll', '']
    """
    try:
        version = _version(query.get(KEY, str(VERSION)))
    except InvalidInput:  # `meant` says what is wrong with it
        return ""
    name = query.get("mechanism", _MECHANISM)
    knobs = {knob for last, methods in RULES.items() if version <= last for knob in methods.get(name, ())}
    automatic = {knob for knob in knobs if query.get("lam" if knob == "lam" else f"{name}.{knob}", "").strip("0.") == ""}
    if query.get("model") == "mlp" or not automatic:
        return ""
    what = "λ" if automatic == {"lam"} else "steps"
    return f"When this link was made, its automatic {what} followed another rule: results may differ from those of then."


def changed(older: Mapping[str, str], setting: Setting, budget: Budget) -> dict[str, str]:
    """Older defaults that differ from what today's rules give a run with these public facts.

    >>> from dpviz.models import get_model
    >>> facts = [get_model("mlp").setting(n, 9, 0.01) for n in (9_999, 10_000)]
    >>> [changed({"dp-sgd.sampling_rate": "0.1"}, setting, Budget(1.0)) for setting in facts]
    [{}, {'dp-sgd.sampling_rate': '0.1'}]
    """
    row, budget = (
        replace(setting, person_rows=0),
        of_row(budget, setting.person_rows),
    )  # rules for persons need a calibration, which may refuse

    def differs(key: str) -> bool:
        name, _, knob = key.partition(".")
        if not knob:
            return key != "lam" or setting.lam != float(older[key])
        built = get_mechanism(name)()
        return bool(built.value(knob, row, budget) != built.knobs()[knob].parse(key, older[key]))

    return {key: value for key, value in older.items() if differs(key)}


def elsewhere(query: Mapping[str, str], keys: Collection[str]) -> dict[str, str]:
    """The settings of an address without a version when there were none, which is version 1, where defaults are others now.

    `changed` leaves those of them that differ for the run.

    Args:
        keys: those that matter where it is opened, beside the hyperparameters of the address's method.

    >>> elsewhere({"epsilon": "0.5", "lam": "0.01"}, ["lam", "row_scaling"])
    {'row_scaling': 'unit', 'dp-gd.clip_norm': '1'}
    """
    if KEY in query or not query:
        return {}
    own = f"{query.get('mechanism', _MECHANISM)}."
    older = meant({**query, KEY: "1"}).items()
    return {key: value for key, value in older if key not in query and (key in keys or key.startswith(own))}
