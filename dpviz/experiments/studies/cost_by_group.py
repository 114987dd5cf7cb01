"""Cost of privacy by group: influence, noise, clipping, individual epsilon and changed predictions, side by side.

Of the training rows, because only they have influence, noise and an epsilon. Read from private rows, not covered by epsilon.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dpviz.common.arrays import Floats
from dpviz.common.progress import Monitor, ignore, part
from dpviz.experiments.run.setup import Setup, setup_for
from dpviz.experiments.run.spec import RunSpec
from dpviz.experiments.studies.groups import Grouping, group, measure_groups
from dpviz.experiments.studies.inspected import inspect, row_influence

#: reasons why a group may lose more than another one
SMALL, HARD, CLIPPED = "small", "hard", "clipped more"
_SIGMAS = 2.0  # standard errors by which two values have to differ
_SCORES = 1 << 24  # scores held at once


@dataclass(frozen=True, eq=False)
class GroupCosts:
    """The cost of privacy for each group of the training rows, and possible reasons. G groups, S seeds.

    Attributes:
        table: one row per group, in the order of the groups: group, rows, share (of all training rows), non_private_right and
            private_right (shares of the rows predicted right, over all seeds), lost (their difference), changed (share of
            predictions, over rows and seeds, that differ from the non-private model's), influence (mean of |change of the
            parameters| without the row, by one Newton step), clipped (mean share of a row's gradients that were clipped to
            the clip norm; NaN where the method clips none or records none), times_noised (mean; NaN where noise is not put on
            rows), individual_epsilon (mean; NaN where there is none).
        lost: (S, G) what each group loses in each seed.
    """

    table: pd.DataFrame
    lost: Floats

    @cached_property
    def smallest(self) -> int:
        """Position of the group with the fewest training rows, at least one."""
        return int(self.table["rows"].where(self.table["rows"] > 0, np.inf).argmin())

    @cached_property
    def largest(self) -> int:
        """Position of the group with the most rows."""
        return int(self.table["rows"].argmax())

    @property
    def more(self) -> float:
        """The loss of the smallest group minus that of the largest, in [-1, 1]."""
        return float(self.table["lost"].iloc[self.smallest] - self.table["lost"].iloc[self.largest])

    @property
    def error(self) -> float:
        """Standard error of `more` over the seeds; NaN for one seed."""
        difference = self.lost[:, self.smallest] - self.lost[:, self.largest]
        return float(difference.std(ddof=1) / len(difference) ** 0.5) if len(difference) > 1 else float("nan")

    @property
    def certain(self) -> bool:
        """True where `more` differs from 0 by more than two standard errors."""
        return abs(self.more) > _SIGMAS * self.error

    @property
    def reasons(self) -> tuple[str, ...]:
        """In what the smallest group differs from the largest: `SMALL`, `HARD`, `CLIPPED`, those that hold here.

        Small: less than half as many rows. Hard: fewer rows are right without privacy, by two standard errors. Clipped more:
        a larger share of gradients, by a tenth and by a point.
        """
        small, large = self.table.iloc[self.smallest], self.table.iloc[self.largest]
        p, q = float(small["non_private_right"]), float(large["non_private_right"])
        error = (p * (1 - p) / small["rows"] + q * (1 - q) / large["rows"]) ** 0.5
        holds = {
            SMALL: small["rows"] < 0.5 * large["rows"],
            HARD: q - p > _SIGMAS * error,
            CLIPPED: small["clipped"] > max(1.1 * large["clipped"], large["clipped"] + 0.01),
        }
        return tuple(reason for reason, there in holds.items() if there)


def cost_by_group(spec: RunSpec, grouping: Grouping, monitor: Monitor = ignore) -> GroupCosts:
    """The cost of privacy for each group of a run's training rows.

    Raises:
        InvalidInput: see `group`; or the model has no influence.
    """
    setup = setup_for(spec)
    groups = group(setup.dataset, grouping, len(setup.split.test))
    inspected_run = inspect(spec, part(monitor, 0.0, 0.7))
    influence = row_influence(spec).newton_norm
    rows = inspected_run.instances
    before = rows["margin_non_private"].to_numpy(float)
    right_before = np.where(setup.problem.rows.y > 0, before >= 0, before > 0)  # a score of 0 predicts +1
    right = rows["correct"].to_numpy(float)
    index = groups.index[setup.split.train]
    counts = np.bincount(index, minlength=len(groups.names))

    def mean(values: NDArray[np.float64] | NDArray[np.bool_] | None) -> Floats:
        if values is None:
            return np.full(len(groups.names), np.nan)
        finite = np.isfinite(values)
        with np.errstate(invalid="ignore"):
            return np.bincount(index[finite], values[finite], len(groups.names)) / np.bincount(
                index[finite], minlength=len(counts)
            )

    table = pd.DataFrame({"group": groups.names, "rows": counts, "share": counts / counts.sum()})
    table["non_private_right"], table["private_right"] = mean(right_before), mean(right)
    table["lost"] = table["non_private_right"] - table["private_right"]
    table["changed"] = mean(np.where(right_before, 1 - right, right))
    table["influence"], table["clipped"] = mean(influence), mean(rows["clipped"].to_numpy(float))
    table["times_noised"], table["individual_epsilon"] = mean(inspected_run.noise_count), mean(inspected_run.epsilon)
    private = _right(setup, inspected_run.theta, index, len(counts))
    monitor(1.0)
    return GroupCosts(table, table["non_private_right"].to_numpy() - private)


def _right(setup: Setup, theta: Floats, index: NDArray[np.intp], count: int) -> Floats:
    """(S, G) shares of each group's training rows that each seed's model predicts right."""
    rows, size = setup.problem.rows, max(1, _SCORES // len(index))
    scores = (setup.problem.model.scores(theta[first : first + size], rows).T for first in range(0, len(theta), size))
    return np.concatenate([measure_groups(some, rows.y, index, count)["accuracy"] for some in scores])
