"""From a sensitivity to noise: accountants, relations, composition, and what is left to an attacker."""

import streamlit as st

from dpviz.dashboard.accounting import KEYS, comparison, curves, ledger, settings
from dpviz.dashboard.components import folds
from dpviz.dashboard.components.folds import Section
from dpviz.dashboard.frame import fields, guessing, page, pinned, sidebar

theme = page.start("Accounting", "How much noise does a proof need, and what is left to an attacker?")
own = fields.Group(KEYS, settings.fields_of)
answer = st.container()
left, right = st.columns(2, gap="large", vertical_alignment="center")
spec = sidebar.sidebar(own, budget=left.container(key="budget"), measured=True)
page.problems()
with right:
    subject = comparison.subject_of(spec, own["compare"])
found = comparison.compute_options(subject)
if found is not None:
    run, released, calibration = subject.run, subject.released, subject.calibration
    (options, attack), kept = found, pinned.outcome()
    with answer:
        comparison.headline(subject, options, attack)
        guessing.watch(run)
        if kept is not None:
            comparison.other_run(kept, attack, subject)
    same = kept is not None and kept.spec.mechanism == run.mechanism and kept.calibration.noise_scale > 0
    left, right = st.columns(2, gap="large")
    with left:
        if released is None:
            comparison.own_noise(subject)
        else:
            comparison.bars(theme, subject, options, kept.calibration if kept is not None and same else None)
    with right:
        curves.attacker(run, theme, attack, None if kept is None else kept.attack)
    page.top_first()
    comparison.guarantee_badge(subject)
    of_release = run, theme, released, subject.compared
    known = released is not None
    folds.sections(
        Section(
            "What each of these noises does to the model",
            lambda: comparison.usefulness(subject, theme, options),
            known,
            sent="noises",
        ),
        Section("Rényi divergence: ε at each order, and the best order", lambda: curves.renyi(*of_release), known, sent="orders"),
        Section("The whole curve: δ for every ε", lambda: curves.delta_curve(*of_release), known, sent="curve"),
        Section("Composition: ε over steps", lambda: curves.composition(theme, released, run), known, sent="steps"),
        Section(
            "Neighbouring datasets: replace-one or add-remove", lambda: curves.relations(*of_release), known, sent="relations"
        ),
        Section("Ledger: what several releases cost together", lambda: ledger.draw(run, calibration, theme), asked="ledger"),
        Section("What each paper adds, and what is needed", lambda: comparison.papers(run), sent="papers"),
    )
    if released is not None:
        comparison.draw_sources(run, options)
