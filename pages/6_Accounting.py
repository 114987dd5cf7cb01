"""What several releases cost together, the noise that each accountant asks for, and what is left to an attacker."""

import streamlit as st

from dpviz.dashboard.accounting import KEYS, comparison, curves, ledger
from dpviz.dashboard.components import folds
from dpviz.dashboard.frame import fields, guessing, page, pinned, sidebar

theme = page.start("Accounting", "What do several trainings cost together, and how much noise does a proof need?")
own = fields.Group(KEYS, comparison.fields_of)
answer = st.container()
left, right = st.columns(2, gap="large", vertical_alignment="center")
spec = sidebar.Sidebar(own, budget=left.container(key="budget"), measured=True).draw()
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
        ledger.draw(run, calibration, theme)
    with right:
        if released is None:
            comparison.own_noise(subject)
        else:
            comparison.bars(theme, subject, options, kept.calibration if kept is not None and same else None)
    page.top_first()
    curves.attacker(run, theme, attack, None if kept is None else kept.attack)
    of_release = run, theme, released, subject.compared
    known = released is not None

    def curves_of_release() -> None:
        curves.renyi(*of_release)
        curves.delta_curve(*of_release)
        curves.composition(theme, released, run)
        curves.relations(*of_release)

    def sources() -> None:
        comparison.papers(run)
        comparison.guarantee_badge(subject)
        if released is not None:
            comparison.draw_sources(run, options)

    noises = "What each of these noises does to the model"
    folds.sections(
        folds.Section(noises, lambda: comparison.usefulness(subject, theme, options), known, sent="noises"),
        folds.Section("Rényi divergence, δ for every ε, steps and relations", curves_of_release, known, sent="curve"),
        folds.Section("Guarantee, what each paper adds, and how this is computed", sources, sent="papers"),
    )
