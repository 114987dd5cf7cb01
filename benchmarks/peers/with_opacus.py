"""Opacus's DP-SGD on a linear model or one hidden layer, one model at a time, as its documentation shows it."""

from typing import Any

import numpy as np
import opacus
import torch
from serving import clock, serve
from torch.utils.data import DataLoader, TensorDataset


class Gathered(TensorDataset):
    """Rows handed out a batch at a time: not in the documentation, but PyTorch allows it and it is much faster."""

    def __getitems__(self, index: list[int]) -> list[torch.Tensor]:
        chosen = torch.as_tensor(index, dtype=torch.long)
        return [tensor[chosen] for tensor in self.tensors]


def as_it_is(batch: Any) -> Any:
    """A batch that needs no collating."""
    return batch


def network(d: int, width: int) -> torch.nn.Module:
    """Scores of a linear model (width 0) or of one hidden layer of tanh; the rows have a constant feature."""
    if not width:
        model: torch.nn.Module = torch.nn.Linear(d, 1, bias=False)
        torch.nn.init.zeros_(model.weight)
        return model
    return torch.nn.Sequential(torch.nn.Linear(d, width), torch.nn.Tanh(), torch.nn.Linear(width, 1))


def load(arrays: dict[str, np.ndarray]) -> dict[str, Any]:
    x, x_test = (torch.from_numpy(arrays[name].astype(np.float32)) for name in ("x", "x_test"))
    y, y_test = (torch.from_numpy((arrays[name] > 0).astype(np.float32)) for name in ("y", "y_test"))

    def train(
        mode: str,
        loader: str,
        threads: int,
        steps: int,
        batch: int,
        rate: float,
        lam: float,
        noise_multiplier: float,
        clip_norm: float,
        width: int,
        seed: int,
    ) -> dict[str, Any]:
        """
        Args:
            mode: "hooks", "functorch", "ew" or "ghost", Opacus's ways to clip.
            loader: "documented" or "gathered".
            batch: the loader's batch size; Opacus samples rows with chance 1/ceil(n/batch).
            rate: learning rate.
            width: of the hidden layer; 0 for a linear model.
        """
        torch.set_num_threads(threads)
        torch.manual_seed(seed)
        begun = clock()
        model = network(x.shape[1], width)
        optimizer = torch.optim.SGD(model.parameters(), lr=rate, weight_decay=lam)
        plain = loader == "documented"
        rows = (TensorDataset if plain else Gathered)(x, y)
        data = DataLoader(rows, batch_size=batch, collate_fn=None if plain else as_it_is)
        criterion: Any = torch.nn.BCEWithLogitsLoss()
        made = opacus.PrivacyEngine().make_private(
            module=model,
            optimizer=optimizer,
            data_loader=data,
            noise_multiplier=noise_multiplier,
            max_grad_norm=clip_norm,
            poisson_sampling=True,
            grad_sample_mode=mode,
            **({"criterion": criterion} if mode == "ghost" else {}),
        )
        if mode == "ghost":
            model, optimizer, criterion, data = made
        else:
            model, optimizer, data = made
        done = 0
        while done < steps:
            for rows_now, labels in data:
                optimizer.zero_grad()
                criterion(model(rows_now).squeeze(1), labels).backward()
                optimizer.step()
                done += 1
                if done == steps:
                    break
        wall, cpu = clock() - begun
        optimizer.zero_grad()  # ew refuses another pass before
        with torch.no_grad():
            accuracy = float(((model(x_test).squeeze(1) >= 0) == (y_test > 0)).float().mean())
        return {"wall": wall, "cpu": cpu, "accuracy": accuracy, "steps": done}

    return {
        "train": train,
        "versions": lambda: {"opacus": opacus.__version__, "torch": torch.__version__, "numpy": np.__version__},
    }


if __name__ == "__main__":
    serve(load)
