"""The loss threshold: a row whose loss is small was probably trained on (Yeom et al. 2018)."""

from dpviz.auditing.attacks.base import Floats, MembershipAttack, Shadows, Targets
from dpviz.common.progress import Monitor, ignore


class LossThreshold(MembershipAttack):
    """One threshold on the loss for all rows. It needs no shadow models."""

    id = "loss-threshold"
    label = "Loss threshold"
    citation = "Yeom, Giacomelli, Fredrikson, Jha, CSF 2018, threshold on the loss"
    formula = r"-\ell(f(x),y)"
    idea = "A small loss suggests a member."

    def score(self, targets: Targets, shadows: Shadows, monitor: Monitor = ignore) -> Floats:
        return targets.signals  # the loss ln(1 + e^-signal) falls where the signal rises, so that both order rows alike
