"""Shadow models in PyTorch, one after the other: rows from a shuffling DataLoader, SGD, then a signal of every row."""

from typing import Any

import numpy as np
import torch
from serving import clock, serve
from torch.utils.data import DataLoader, Subset, TensorDataset


def load(arrays: dict[str, np.ndarray]) -> dict[str, Any]:
    x, x_test = (torch.from_numpy(arrays[name].astype(np.float32)) for name in ("x", "x_test"))
    y, y_test = (torch.from_numpy((arrays[name] > 0).astype(np.float32)) for name in ("y", "y_test"))
    rows = TensorDataset(x, y)

    def shadow(models: int, epochs: int, batch: int, rate: float, momentum: float, threads: int, seed: int) -> dict[str, Any]:
        """Models on random halves of the rows.

        Args:
            rate: step size of SGD.
        """
        torch.set_num_threads(threads)
        torch.manual_seed(seed)
        begun = clock()
        criterion, right = torch.nn.BCEWithLogitsLoss(), []
        for _ in range(models):
            half = torch.randperm(len(rows))[: len(rows) // 2].tolist()
            model = torch.nn.Linear(x.shape[1], 1, bias=False)
            optimizer = torch.optim.SGD(model.parameters(), lr=rate, momentum=momentum)
            data = DataLoader(Subset(rows, half), batch_size=batch, shuffle=True)
            for _ in range(epochs):
                for rows_now, labels in data:
                    optimizer.zero_grad()
                    criterion(model(rows_now).squeeze(1), labels).backward()
                    optimizer.step()
            with torch.no_grad():
                _ = (2 * y - 1) * model(x).squeeze(1)  # the signals of all rows
                right.append(float(((model(x_test).squeeze(1) >= 0) == (y_test > 0)).float().mean()))
        wall, cpu = clock() - begun
        return {"wall": wall, "cpu": cpu, "accuracy": float(np.mean(right))}

    return {"shadow": shadow, "versions": lambda: {"torch": torch.__version__, "numpy": np.__version__}}


if __name__ == "__main__":
    serve(load)
