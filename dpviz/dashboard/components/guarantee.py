"""The badge of a guarantee: how far an epsilon is proved, under which relation, by which accountant."""

import streamlit as st

from dpviz.dashboard.components import folds, glossary, recorder
from dpviz.mechanisms import Calibration, Mechanism
from dpviz.mechanisms.persons import privacy_unit
from dpviz.papers.saved import refutation
from dpviz.reporting import words

ABOUT = "About this guarantee"
#: what every proof here takes for granted
ALWAYS = (
    "The proof takes noise to be real numbers. Training draws it in floating point, which can leak (Mironov 2012). dpviz release "
    "rounds what it publishes; where noise is added to a finished model (the output family) it draws and adds it exactly.",
    "Scaling, ranges and categories must be public or chosen without looking at the rows; so must the number of rows where the "
    "noise depends on it.",
)


def badge(cal: Calibration, of: Mechanism, *, fold: bool = True) -> None:
    """The label that goes with every epsilon: how far it is proved, under which relation, by which accountant.

    Args:
        of: the mechanism, so that an audit that refuted its claim at this budget is named.
        fold: whether remarks are folded away; they cannot be inside a fold.
    """
    recorder.badge(words.guarantee(cal, of))
    if folds.in_closed_fold():
        return
    st.badge(words.markdown(words.guarantee(cal, of)), color=words.label(cal, of)[2])  # type: ignore[arg-type]
    unit = f". ε is for {privacy_unit(cal.person_rows)}, instead of one row" if cal.person_rows else ""
    lines = [f"{words.RELATIONS[cal.neighbouring]}{unit}. Accountant: {cal.accountant}"]
    if cal.claimed_budget is not None and cal.claimed_budget != cal.proved_budget:
        proved = f"{words.budget(cal.proved_budget)} is proved" if cal.proved_budget else "nothing is proved"
        lines.append(f"{words.claim(cal, of)}; {proved}")
    audited = refutation(of, cal)
    if audited is not None:
        lines.append(audited.words[0].upper() + audited.words[1:])
    message = ". ".join(lines) + "."
    st.caption(words.markdown(message), help=glossary.explain(words.guarantee(cal, of), message))
    for condition in cal.conditions:
        st.markdown(f"- only if {words.markdown(condition)}")
    notes = (*cal.notes, *(ALWAYS if cal.proved_budget is not None else ()))
    if notes:
        with st.expander(ABOUT) if fold else st.container():
            for note in notes:
                st.markdown(f"- {words.markdown(note)}")
