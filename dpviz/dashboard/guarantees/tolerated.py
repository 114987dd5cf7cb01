"""The tolerated attacker in the place of epsilon, and the table of published deployments."""

import streamlit as st

from dpviz.dashboard.components import panels, tables
from dpviz.dashboard.frame.fields import Group
from dpviz.mechanisms.attack import Attacker
from dpviz.papers.deployments import DEPLOYMENTS, REGISTRY, Deployment
from dpviz.reporting import words

#: attacker as the shell takes it -> in words, after "an attacker who"
ATTACKERS = {
    "accuracy=0.55": "is right 55 % of the time",
    "accuracy=0.65": "is right 65 % of the time",
    "tpr=0.02@fpr=0.01": "finds 2 % at 1 % false alarms",
    "tpr=0.05@fpr=0.01": "finds 5 % at 1 % false alarms",
    "tpr=0.2@fpr=0.01": "finds 20 % at 1 % false alarms",
    "advantage=0.3": "finds 30 points more than false alarms",
}
CHOICES = {"": "set by ε", **ATTACKERS}
HELP = (
    "Instead of one ε for all, each method adds just so much noise that no attacker does better. The search goes through the "
    "method's trade-off curve, so that methods end at different ε."
)


def choose_attacker(own: Group) -> Attacker | None:
    """Draws the control; the attacker that is tolerated, None for the budget on the left."""
    text = own["attacker"].draw()
    return Attacker.parse(text) if text else None


def describe(attacker: Attacker) -> str:
    """ "finds 5 % at 1 % false alarms"."""
    return ATTACKERS[str(attacker)]


def deployments() -> None:
    """All published deployments, in a fold."""
    with st.expander("Which ε do others publish?"):
        tables.table([_row(one) for one in DEPLOYMENTS], ("Deployment", "ε", "δ", "Protects one", "Noise"))
        panels.note(
            f"Values: {REGISTRY}. They compare only roughly: most are counts and not models, and one protects a "
            "single event and another all events of a person."
        )
        sources = " ".join(f"[{one.name}]({one.source})." for one in DEPLOYMENTS)
        st.markdown(sources)


def _row(one: Deployment) -> tuple[str, ...]:
    delta = words.three(one.delta) if one.delta else "0"
    return one.name, words.three(one.epsilon), delta, one.unit, "on each device" if one.local else "by the curator"
