"""The glossary: what a technical term means, in one or two sentences, with a source. A new term is one more entry.

Free of streamlit. `explain` gives the help text of a sentence: the entries of all terms that it uses.
"""

import re
from dataclasses import dataclass
from functools import cached_property


@dataclass(frozen=True)
class Entry:
    """A term.

    Attributes:
        term: as it is listed.
        text: what it means.
        source: where that is defined.
        forms: how it is written in sentences, beside the term itself; upper and lower case count as written where a form
            has a capital or is a single letter.
    """

    term: str
    text: str
    source: str
    forms: tuple[str, ...] = ()

    @cached_property
    def pattern(self) -> re.Pattern[str]:
        """Finds the term in a sentence, as a word of its own and in the plural."""
        parts = []
        for form in (self.term, *self.forms):
            as_written = len(form) == 1 or form != form.lower()
            parts.append(rf"{re.escape(form)}" if as_written else rf"(?i:{re.escape(form)}(?:s|es)?)")
        return re.compile(r"(?<![\w])(?:" + "|".join(parts) + r")(?![\w])")


_DWORK = "Dwork, Roth 2014"
_CMS = "Chaudhuri, Monteleoni, Sarwate 2011"

GLOSSARY = (
    Entry(
        "ε",
        "Privacy budget: exchanging one person’s row changes the probability of any outcome by at most a factor e^ε, up to δ. "
        "Small is strong.",
        f"{_DWORK}, Definition 2.4",
        ("epsilon", "privacy budget"),
    ),
    Entry(
        "δ",
        "Failure probability: how much the bound by ε may be exceeded. It must lie well below one over the number of rows.",
        f"{_DWORK}, Definition 2.4",
        ("delta", "failure probability"),
    ),
    Entry(
        "differential privacy",
        "A promise about a method: what it releases has nearly the same distribution with any one row exchanged.",
        "Dwork, McSherry, Nissim, Smith 2006",
        ("differentially private", "DP"),
    ),
    Entry(
        "replace-one",
        "Two datasets are neighbours when one row is exchanged for any other; the number of rows stays and is public.",
        "Dwork, McSherry, Nissim, Smith 2006",
    ),
    Entry(
        "add-remove",
        "Two datasets are neighbours when one of them has one row more. It fits a person who is there or not.",
        f"{_DWORK}, section 2.3",
    ),
    Entry("neighbour", "Two datasets that differ in one person’s row.", f"{_DWORK}, section 2.3", ("neighbouring",)),
    Entry(
        "sensitivity",
        "The most that a query can change between two neighbouring datasets. The noise must be in proportion to it.",
        f"{_DWORK}, chapter 3",
        ("sensitivities",),
    ),
    Entry(
        "clipping",
        "Gradients or rows longer than the clip norm are shortened to it. This bounds what one person can contribute.",
        "Abadi et al. 2016, Algorithm 1",
        ("clip norm", "clipped", "clip"),
    ),
    Entry(
        "noise multiplier",
        "Standard deviation of the noise on a sum divided by the most that one row contributes to it. Replacing a row moves the "
        "sum by up to twice that.",
        "Abadi et al. 2016, Algorithm 1",
    ),
    Entry("σ", "Standard deviation of the noise, per coordinate.", "Dwork, Roth 2014, appendix A"),
    Entry(
        "noise draw",
        "One training with its own random noise. Several of them show how much a result depends on chance.",
        f"{_DWORK}, chapter 3",
    ),
    Entry(
        "calibration",
        "Finding the noise for a budget from public facts: the smallest that is proved, or that of a published formula.",
        "Balle, Wang 2018",
        ("calibrated", "calibrate"),
    ),
    Entry(
        "accountant", "A procedure that adds up what many releases together cost in ε and δ.", "Abadi et al. 2016, section 3.2"
    ),
    Entry(
        "composition",
        "Several releases about the same people cost more than one. Composition theorems say how much.",
        f"{_DWORK}, section 3.5",
        ("composed",),
    ),
    Entry(
        "RDP",
        "Rényi differential privacy: bounds the Rényi divergence of order α between the outputs on neighbours. It adds up "
        "under composition.",
        "Mironov 2017",
        ("Rényi", "α"),
    ),
    Entry(
        "zCDP",
        "Zero-concentrated differential privacy: the Rényi divergence of every order α is at most ρα.",
        "Bun, Steinke 2016",
        ("ρ",),
    ),
    Entry(
        "PLD",
        "Privacy loss distribution: the distribution of the log ratio of two neighbours’ output densities. Convolving it "
        "composes releases almost exactly.",
        "Sommer, Meiser, Mohammadi 2019",
        ("privacy loss distribution", "privacy loss"),
    ),
    Entry(
        "μ-GDP",
        "Gaussian differential privacy: telling two neighbours apart is at least as hard as telling N(0, 1) from N(μ, 1).",
        "Dong, Roth, Su 2022",
        ("GDP", "μ", "Φ"),
    ),
    Entry(
        "subsampling",
        "Each step uses a random batch. A row that may not be in the batch is better protected.",
        "Balle, Barthe, Gaboardi 2018",
        ("subsampled", "sampling rate"),
    ),
    Entry(
        "shuffling",
        "Reports of single persons are mixed before anybody sees them, which can strengthen the guarantee.",
        "Erlingsson et al. 2019",
        ("shuffled",),
    ),
    Entry(
        "trade-off curve",
        "The share of members that the best attacker detects at each rate of false alarms.",
        "Dong, Roth, Su 2022",
        ("trade-off function",),
    ),
    Entry(
        "best possible attack",
        "The tightest proved upper bound on how often anybody who knows all other rows guesses right about one person.",
        "Kairouz, Oh, Viswanath 2015",
        ("attack accuracy", "attacker", "attack"),
    ),
    Entry(
        "total variation",
        "How far two distributions are apart: the largest difference between their probabilities of an event.",
        "Kairouz, Oh, Viswanath 2015",
        ("TV",),
    ),
    Entry(
        "false alarm", "The attacker says that a person was in the data, and the person was not.", "Kairouz, Oh, Viswanath 2015"
    ),
    Entry(
        "audit",
        "Attacking a method many times: what the attacker achieves is a lower bound on ε. An audit can refute, never prove.",
        "Jagielski, Ullman, Oprea 2020",
        ("audited",),
    ),
    Entry(
        "canary",
        "A row that is put into the data, or left out, to see whether the output tells which.",
        "Steinke, Nasr, Jagielski 2023",
        ("canaries",),
    ),
    Entry(
        "influence",
        "How much the trained model changes when one row is left out, to first order.",
        "Koh, Liang 2017",
        ("influential", "IF"),
    ),
    Entry(
        "leverage",
        "How much a row’s own label decides its own prediction. Rows with unusual features have much of it.",
        "Hoaglin, Welsch 1978; Pregibon 1981",
    ),
    Entry("leave-one-out", "Training again without one row; the exact value that influence approximates.", "Koh, Liang 2017"),
    Entry(
        "Hessian",
        "Matrix of second derivatives of the training objective.",
        "Boyd, Vandenberghe 2004, appendix A.4",
        ("curvature",),
    ),
    Entry(
        "Newton step",
        "A step to the minimum of the quadratic approximation of the objective.",
        "Boyd, Vandenberghe 2004, section 9.5",
    ),
    Entry(
        "EKFAC",
        "Eigenvalue-corrected Kronecker factors: a compact approximation of a network’s curvature.",
        "George et al. 2018",
        ("Kronecker",),
    ),
    Entry("Gauss–Newton", "An approximation of the Hessian without the second derivatives of the network.", "Martens 2020"),
    Entry(
        "individual ε",
        "The ε that holds for one row as it is. It depends on private data and must not be published.",
        "Feldman, Zrnic 2021",
        ("individual budget",),
    ),
    Entry(
        "privacy filter",
        "A rule that drops a row from training once its own budget is used up.",
        "Feldman, Zrnic 2021",
        ("filtered", "filter"),
    ),
    Entry("output perturbation", "Training without noise; noise is added to the finished parameters.", _CMS),
    Entry("objective perturbation", "A random linear term is added to the objective, which is then minimised.", _CMS),
    Entry("gradient perturbation", "Noise is added to the gradient in every step.", "Song, Chaudhuri, Sarwate 2013"),
    Entry(
        "input perturbation", "Noise is added to the rows or their contributions before training.", "Fukuchi, Tran, Sakuma 2017"
    ),
    Entry(
        "local model",
        "Everybody adds noise to their own row, so that nobody has to be trusted.",
        "Kasiviswanathan et al. 2011",
        ("locally private", "local privacy"),
    ),
    Entry(
        "regularisation",
        "λ|θ|²/2 is added to the mean loss. It makes the objective strongly convex and limits the sensitivity.",
        _CMS,
        ("λ", "regularised"),
    ),
    Entry("θ", "The parameters of the model.", _CMS, ("parameter",)),
    Entry("η", "Step size: how far one step goes along the gradient.", "Boyd, Vandenberghe 2004, section 9.2", ("step size",)),
    Entry("ν", "Batch size: how many rows one step uses.", "Abadi et al. 2016", ("batch size", "mini-batch")),
    Entry(
        "gradient", "Direction of steepest ascent of the loss; training goes against it.", "Boyd, Vandenberghe 2004, section 9.3"
    ),
    Entry(
        "Lipschitz constant",
        "A bound on how fast a function can change; here on the norm of one row’s gradient.",
        "Boyd, Vandenberghe 2004, appendix A",
        ("Lipschitz", "gradient bound"),
    ),
    Entry(
        "strongly convex",
        "The objective lies above a parabola at every point, so its minimum is unique and moves little.",
        "Boyd, Vandenberghe 2004, section 9.1.2",
        ("strong convexity", "convex"),
    ),
    Entry(
        "PL",
        "Polyak–Łojasiewicz condition: the squared gradient grows at least like the optimality gap.",
        "Karimi, Nutini, Schmidt 2016",
        ("Polyak–Łojasiewicz",),
    ),
    Entry("τ", "Number of epochs between two averagings or restarts.", "Chen, Lee, Kifer 2019, Algorithm 3"),
    Entry(
        "ζ", "How far one row can move the sum of gradients: 2G for replace-one, G for add-remove.", "Kifer, Smith, Thakurta 2012"
    ),
    Entry("non-private", "Trained to the minimum of the same objective on the same rows, without any noise.", _CMS),
    Entry("majority", "Always the most frequent label of the training rows. A model below it is worse than guessing.", _CMS),
    Entry(
        "optimality gap",
        "Training objective of the private model minus the smallest possible one.",
        "Boyd, Vandenberghe 2004, section 9.3",
    ),
    Entry("excess risk", "Expected loss of the private model above the smallest possible one.", "Bassily, Smith, Thakurta 2014"),
    Entry("bootstrap", "An interval from drawing the observed values again with replacement.", "Efron 1979", ("95 % interval",)),
    Entry("principal component", "A direction in which the rows vary most.", "Pearson 1901"),
    Entry("unit ball", "All rows are scaled to norm at most 1, so that the sensitivity is bounded.", _CMS),
    Entry("intercept", "A constant feature, so that the decision line need not go through the origin.", "Cox 1958"),
    Entry(
        "gamma-sphere",
        "Noise in a random direction with a gamma-distributed length; it gives ε with δ = 0.",
        f"{_CMS}, Algorithm 1",
    ),
    Entry(
        "ROC",
        "Receiver operating characteristic: the share of detections at each rate of false alarms, over all thresholds.",
        "Fawcett 2006",
    ),
    Entry(
        "ARFF",
        "Attribute-relation file: the text format of Weka and OpenML, which names the columns and their values above the rows.",
        "Hall et al. 2009",
    ),
    Entry("AUC", "Area under the ROC curve: how often a positive row has a higher score than a negative one.", "Fawcett 2006"),
    Entry("SVM", "Support vector machine; its loss is smoothed here so that it has a gradient.", f"{_CMS}, section 3.4.2"),
)


def found(text: str) -> list[Entry]:
    """The entries of the terms in a sentence, in the order in which they appear; the longer of two that begin together."""
    hits = [(hit.start(), -len(hit.group()), entry) for entry in GLOSSARY if (hit := entry.pattern.search(text))]
    return [entry for _, _, entry in sorted(hits, key=lambda item: item[:2])]


def explain(*texts: str, most: int = 5) -> str | None:
    """The help text of sentences: a line for each term in them; None where there is none.

    Args:
        most: entries that are shown; ε goes first where there are more.
    """
    entries = found(" ".join(texts))
    if len(entries) > most:
        entries = [entry for entry in entries if entry.term != "ε"][:most]
    return "\n\n".join(line(entry) for entry in entries) or None


def line(entry: Entry) -> str:
    """An entry as Markdown."""
    safe = entry.text.replace("|", "\\|").replace("^", "\\^")
    return f"**{entry.term}**: {safe} ({entry.source})"
