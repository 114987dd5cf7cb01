"""Who pays for privacy: influence, noise, individual epsilon and changed predictions, side by side for each group.

Of the training rows, because only they have influence, noise and an epsilon. Read from private rows, outside every epsilon.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dpviz.common.progress import Monitor, part, silent
from dpviz.experiments.groups import Grouping, group
from dpviz.experiments.inspected import inspect, row_influence
from dpviz.experiments.setup import setup_for
from dpviz.experiments.spec import RunSpec

#: columns of `who_pays` that say why a group may lose more: what each is, for people
REASONS = {
    "share": "share of the training rows",
    "influence": "mean influence on the non-private model",
    "times_noised": "mean number of times that noise was put on a row",
    "individual_epsilon": "mean individual ε",
}


def who_pays(spec: RunSpec, grouping: Grouping, monitor: Monitor = silent) -> pd.DataFrame:
    """One row per group of the training rows, in the order of the groups.

    Returns:
        Columns: group, rows, share (of all training rows), non_private_right and private_right (shares of the rows predicted
        right, over all seeds), lost (their difference), changed (share of predictions, over rows and seeds, that differ
        from the non-private model's), influence (mean of |change of the parameters| without the row, by one Newton step),
        times_noised (mean; NaN where noise is not put on rows), individual_epsilon (mean; NaN where there is none).

    Raises:
        InvalidInput: see `group`; or the model has no influence.
    """
    setup = setup_for(spec)
    groups = group(setup.dataset, grouping)
    seen = inspect(spec, part(monitor, 0.0, 0.7))
    influence = row_influence(spec).newton_norm
    rows = seen.rows
    before = rows["margin_non_private"].to_numpy(float)
    right_before = np.where(setup.problem.rows.y > 0, before >= 0, before > 0)  # a score of 0 predicts +1
    right = rows["correct"].to_numpy(float)
    index = groups.index[setup.split.train]

    def mean(values: NDArray[np.float64] | NDArray[np.bool_] | None) -> NDArray[np.float64]:
        if values is None:
            return np.full(len(groups.names), np.nan)
        with np.errstate(invalid="ignore"):
            return np.bincount(index, values, len(groups.names)) / counts

    counts = np.bincount(index, minlength=len(groups.names))
    table = pd.DataFrame({"group": groups.names, "rows": counts, "share": counts / counts.sum()})
    table["non_private_right"], table["private_right"] = mean(right_before), mean(right)
    table["lost"] = table["non_private_right"] - table["private_right"]
    table["changed"] = mean(np.where(right_before, 1 - right, right))
    table["influence"] = mean(influence)
    table["times_noised"], table["individual_epsilon"] = mean(seen.noised), mean(seen.epsilon)
    monitor(1.0)
    return table
