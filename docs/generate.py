"""The pages of the site that are made from declarations and from the numbers in `docs/data` and `benchmarks/panels`.

`sphinx-build` writes them when it reads its settings; `python docs/generate.py` does the same by hand.
"""

import sys
from collections.abc import Iterable
from pathlib import Path

import pandas as pd

DOCS = Path(__file__).parent
sys.path.insert(0, str(DOCS.parent))  # the numbers of figures are read by a module of benchmarks

import dpviz  # noqa: E402
from benchmarks import figures as computed  # noqa: E402
from dpviz.auditing import EXCEEDED  # noqa: E402
from dpviz.figures.membership import board  # noqa: E402
from dpviz.figures.style import LIGHT  # noqa: E402
from dpviz.figures.svg import picture  # noqa: E402
from dpviz.mechanisms.registry import automatic_mechanism  # noqa: E402
from dpviz.models import get_model  # noqa: E402
from dpviz.papers import saved  # noqa: E402
from dpviz.papers.figures.catalogue import FIGURES, PANELS, settings  # noqa: E402


def grid(head: Iterable[str], rows: Iterable[Iterable[object]]) -> str:
    """A table in Markdown."""
    names = list(head)
    lines = [[str(cell).replace("|", "\\|") for cell in row] for row in (names, ["---"] * len(names), *rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n"


def data(name: str) -> pd.DataFrame:
    """A file of `docs/data`, as text."""
    return pd.read_csv(DOCS / "data" / f"{name}.csv", dtype=str, keep_default_na=False)


def mechanisms() -> str:
    """What each mechanism declares."""
    listed = dpviz.list_mechanisms()
    head = ("id", "method", "family", "where the noise goes", "neighbours", "guarantee", "published rate", "citation")
    rows = [
        (f"`{name}`", m.label, m.family, m.noise_enters, m.neighbouring.value, m.guarantee, rate_of(m), m.citation)
        for name, m in listed.items()
    ]
    text = f"# Mechanisms\n\nRates are the published ones; O(·) hides constants.\n\n{grid(head, rows)}\n## Knobs\n"
    for name, m in listed.items():
        knobs = [(f"`{k}`", knob.text(m.defaults()[k]), knob.describe(), knob.help) for k, knob in m.knobs().items()]
        text += f"\n### `{name}`\n\n{grid(('knob', 'default', 'range', 'meaning'), knobs)}" if knobs else ""
    return text


def rate_of(mechanism: type[dpviz.Mechanism]) -> str:
    """The published rate as a formula."""
    return f"${mechanism.rate}$" if mechanism.rate else "none given"


def automatic() -> str:
    """The method "automatic" on every set, beside the best proved default of `docs/data/defaults.csv`."""
    survey = data("survey").set_index("mechanism")["proved"]
    sizes, rows = data("automatic").set_index("dataset"), []
    for (dataset, model, epsilon), cell in data("defaults").groupby(["dataset", "model", "epsilon"], sort=False):
        of, means = sizes.loc[dataset], cell.set_index("method")["mean"].astype(float)
        name, why = automatic_mechanism(get_model(model).setting(int(of["n"]), int(of["d"]), 1.0), float(epsilon))
        best = means[survey[means.index] != ""]
        rows.append((of["part"], dataset, model, epsilon, why, means[name], best.idxmax(), best.max(), best.max() - means[name]))
    head = ("part", "set", "model", "ε", "automatic", "accuracy", "best proved default", "accuracy ", "loss")
    table = pd.DataFrame(rows, columns=head).sort_values("part", kind="stable")
    means = ", ".join(f"{loss:.2f} on sets {part}" for part, loss in table.groupby("part")["loss"].mean().items())
    return f"Mean loss: {means}.\n\n{grid(head, [(*row[:-1], f'{row[-1]:.1f}') for row in table.to_numpy()])}"


def defaults() -> str:
    """The accuracy of every method at its automatic hyperparameters."""
    text = """# Methods at their automatic hyperparameters

Test accuracy in per cent (± standard deviation over noise draws), λ and row scaling automatic; the trials behind the rules are in
[another page](default_rules.md). "Training" is what the same training without noise loses at the largest ε; tables of 30 to 120
test rows jump by whole rows. Bank is of 29 November 2026, with a constant feature of 1. Made by `python -m benchmarks.defaults`.

"""
    text += f"""## The method "automatic"

From n ε/√d = 1,280 on it is objective perturbation, below it DP-GD, as for networks. The bound is the best of 160, 640,
1,280, 2,560 and 5,120 for logistic regression on the sets "chosen"; the SVM would have 0 or 160 there, by Iris at ε = 0.1
alone. The sets "reported" were printed beside them. The accuracies are those of the tables below, which are
of one split and few noise draws: a row of iris is 3 points. Part of the loss is what the best of 26 methods wins by chance.

On 27 tables of R's packages AER and COUNT, which chose no bound (262 to 12,470 training rows, 5 to 69 features, 4 splits × 6
draws, 29 November 2026), where three splits choose the best of 20 proved defaults and the fourth scores it, "automatic" is
2.0, 1.2, 0.3, 0.6 and 0.4 points below that at ε = 0.1, 0.3, 1, 3 and 10 in the mean, and at most 2.5 at ε = 1. The best
single method is DP-GD (2.0, 1.1, 0.2, 0.5 and 0.4); a bound of 2,560 would gain 0.04.

diffprivlib's logistic regression at its own C = 1 (ε-DP) was set beside "automatic" on all 104 tables of R's packages with a
label of two classes on which a model without privacy is 3 points better than the majority (150 to 20,000 rows, up to 60
columns; 4 splits × 8 draws of both; the same ranges; 30 November 2026). It is 9.9 ± 0.8, 12.9 ± 1.0 and 1.8 ± 0.3 points
below at ε = 0.1, 1 and 10 in the mean (± error over tables) where numbers are in [0, 1] and `data_norm` is √k for k columns,
and 7.5 ± 0.7, 6.7 ± 0.7 and 0.4 ± 0.2 where it is given dpviz's centred rows times 3. By more than the error of 95 % of four
splits, which chance alone exceeds in 2 or 3 of 104 tables, it is ahead in 1, 1 and 3 tables on the former rows (at most 1.5
points from ε = 1 on), and in 2, 5 and 14 on the latter: up to 6.1 at ε = 1, on `flchain` with its long tails, where λ is too
large, and 6.6 at ε = 10, on a table of 192 training rows where both are at chance.

On 103 of these tables (two splits, ε = 1 and 10) DP-GD is better than `objective-tight` by 5.3 ± 0.9, 2.7 ± 0.5, 1.0 ± 0.3
and 0.7 ± 0.2 points up to n ε/√d = 80, 320, 640 and 1,280, by 0.2 ± 0.1 up to 5,120, and worse by 0.9 ± 0.6 from there on.
With half or a quarter of its λ `objective-tight` changes by 0.0 where it is chosen.

Against the best of 75 methods and settings (those of the table below), chosen on a quarter of the training rows and scored
on test rows (4 splits × 8 draws, 30 November 2026), on 18 tables of R's packages (196 to 10,000 rows, spam's words among
them), "automatic" loses 1.4 ± 0.8, 0.0 ± 0.2 and 0.2 ± 0.2 points at ε = 0.1, 1 and 10. It is within one point in 45 of 54
cells, and within one point and twice the error in 50. The four others are at ε = 0.1: three tables of 185 to 1,600 training
rows on which unit rows give nearly everyone the larger class, and a table of 281. Unit rows are no rule for few rows: on the
tables above with n ε/√d below 200, DP-GD has 0.5 to 6 points less with them in the mean of each range of n ε/√d, and more
only where over 75 % have the larger label.

`PrivateClassifier` trains a model for each of K > 2 classes, and compares n (ε/K)/√(K d). DP-GD's releases compose exactly, so
that its noise grows with √K, and that of objective perturbation with K. On 11 sets of 3 to 10 classes (digits, wine, KDDCup99,
four of R's and four made; ε = 1, 3 and 10; 30 November 2026), which also chose K√K among K, K√K and K², it takes the better of
both in 31 of 33 cells and loses 0.12 points at most; n ε/√d would lose 28 on digits at ε = 10. On 8 sets of 3 to 7 classes that
chose nothing (four of R's packages and four made) it takes the better in 21 of 24 cells and loses 0.64 at most.

{automatic()}
## The best default beside the best known

Means over noise draws (one split; sets below 5,000 rows 20 splits). Default: the best method whose guarantee is proved, at its
defaults. Known: the best of those, of a grid of methods, λ, steps, clipping and row scalings, and of diffprivlib at 3 values of C
and of `data_norm` (in its own environment, ε-DP, on the same rows with the same declared bounds). Everything is chosen on a
quarter of the training rows and then trained on all of them. Made by `python -m benchmarks.best_known`.

"""
    head = ("set", "ε", "best proved default", "", "best known", "", "diffprivlib, C = 1", "diffprivlib, best C")
    text += grid(head, data("best_known").to_numpy())
    for (dataset, model), part in data("defaults").groupby(["dataset", "model"], sort=False):
        one, budgets = part.iloc[0], list(dict.fromkeys(part["epsilon"]))
        rows = [
            (method, *(f"{m} ± {s}" for m, s in zip(of["mean"], of["spread"], strict=True)), of["training"].iloc[0])
            for method, of in part.groupby("method", sort=False)
        ]
        head = ("method", *(f"ε = {e}" for e in budgets), "training")
        text += f"\n## {dataset}, {model}\n\nNon-private {one['non_private']}, majority {one['majority']}.\n\n{grid(head, rows)}"
    return text


def cost() -> str:
    """What accuracy is lost to, method by method."""
    text = """# What accuracy is lost to

Test accuracy in per cent at the automatic hyperparameters, λ and row scaling: accuracy = non-private − training − noise.
"Training" is what the same training without noise loses, "noise" what the noise loses beside that; below 0 it gained by chance.
Means are exact over the noise where there is a closed form. Made by `python -m benchmarks.cost`, with 10 noise draws.
"""
    for (dataset, model, epsilon), part in data("cost").groupby(["dataset", "model", "epsilon"], sort=False):
        shown = part.drop(columns=["dataset", "model", "epsilon"])
        head = ("method", "accuracy", "non-private", "training", "noise")
        text += f"\n## {dataset}, {model}, ε = {epsilon}\n\n{grid(head, shown.to_numpy())}"
    return text


def figures() -> str:
    """What the papers say about their figures beside the findings of dpviz, figure by figure and panel by panel."""
    text = """# The papers' figures, statement by statement

First the verdicts on whole figures, over all panels that were computed, which the page Claims shows too. Then each figure
with its settings, and its panels whose numbers are kept. Made by `python -m benchmarks.figures`, with the noise draws and points
of the page Trade-off ("Figures of the papers").
"""
    tables, verdicts = computed.kept(), saved.load().figures
    whole = ("the paper says", "dpviz", "numbers", "on")
    for figure in FIGURES:
        rows = [
            (one.text, one.verdict.headline, one.verdict.because, ", ".join(dict.fromkeys(one.datasets)))
            for one in verdicts
            if one.figure == figure.id
        ]
        text += f"\n## {figure.source.name}, {figure.number}\n\n{grid(whole, rows)}"
        names = [name for name, (of, _) in PANELS.items() if of is figure]
        text += "\n" + grid(("method", "hyperparameter", "value or rule", "where it comes from"), settings(names[0]))
        text += "".join(f"\n- {note}" for note in figure.differs) + "\n"
        for name in names:
            if name in tables:
                judged = [(one.text, verdict.headline, verdict.because) for one, verdict in figure.judge(tables[name])]
                panel, on = PANELS[name][1], tables[name]["dataset"].iloc[0]
                text += f"\n### {figure.id}: {panel.title}, {panel.model}\n\nOn `{on}`.\n\n{grid(whole[:3], judged)}"
    return text


def claimed_and_proved() -> str:
    """Claimed, proved and audited ε of every method, as a picture and a table."""
    table = data("survey")
    numbers = table[["claimed", "proved", "audited"]].apply(pd.to_numeric)
    shown = numbers["claimed"].fillna(numbers["proved"])
    exceeded = table["verdict"] == EXCEEDED
    rows = list(zip(table["label"], shown, numbers["audited"], exceeded, numbers["proved"].notna(), strict=True))
    words = f"ε of {len(rows)} methods. An audit exceeds the claim of {', '.join(table.loc[exceeded, 'label'])}."
    svg = picture(board(rows, LIGHT), "claimed", words).replace("<svg ", '<svg xmlns="http://www.w3.org/2000/svg" ', 1)
    (DOCS / "claimed_and_proved.svg").write_text(svg, encoding="utf-8")
    listed = table[["label", "claimed", "proved", "audited", "verdict"]].replace("", "–").to_numpy()
    return f"""# Claimed, proved and audited ε

Every method here is attacked on its worst pair of neighbouring datasets, calibrated for ε = 1 and δ = 10⁻⁵ at its default
hyperparameters. A lower bound above the claim refutes it; one below says little about how much is lost. Made by
`python -m benchmarks.survey`.

![{words}](claimed_and_proved.svg)

{grid(("method", "claimed ε", "proved ε", "audited ε, at least", "verdict"), listed)}"""


PAGES = (mechanisms, defaults, cost, figures, claimed_and_proved)


def write() -> None:
    """Writes all pages beside this file."""
    for page in PAGES:
        (DOCS / f"{page.__name__}.md").write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    write()
