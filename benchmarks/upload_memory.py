"""Memory that a person's table takes until the first model is trained, in units of its encoded rows.

    python -m benchmarks.upload_memory [--rows 200000] [--columns 5] [--levels 95]

It is to stay near 5: rows as uploaded, scaled, split, and times their labels. `dpviz.datasets.sources.uploads.COPIES` is what an
upload is counted with.
"""

import argparse
import resource
import threading
import time
from pathlib import Path

import numpy as np

import dpviz
from dpviz.datasets.process.reading import read_table
from dpviz.datasets.sources.uploads import Upload
from dpviz.datasets.table.spec import TableSpec, last_column


def resident() -> int:
    """Memory of this process in bytes, as Linux counts it."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


class Peak(threading.Thread):
    """Watches the resident memory until it is stopped."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.most, self.going = resident(), True

    def run(self) -> None:
        """Looks every 2 ms."""
        while self.going:
            self.most = max(self.most, resident())
            time.sleep(0.002)


def table(rows: int, columns: int, levels: int) -> bytes:
    """A CSV of short categories and a label."""
    rng = np.random.default_rng(0)
    codes = rng.integers(0, levels, (rows, columns))
    label = rng.integers(0, 2, rows)
    head = ",".join([*(f"c{k}" for k in range(columns)), "y"])
    return "\n".join([head, *(",".join(f"v{c}" for c in row) + f",{y}" for row, y in zip(codes, label, strict=True))]).encode()


def measure(rows: int, columns: int, levels: int) -> dict[str, float]:
    """Peaks of reading, encoding and first training, above what the process had before, over the encoded rows."""
    content = table(rows, columns, levels)
    dpviz.run(dpviz.RunSpec(dataset="teaching", seeds=2))  # the libraries
    before, found = resident(), {}
    encoded = 8 * rows * (columns * levels + 1)

    def step(name: str, work: object) -> object:
        watch = Peak()
        watch.start()
        done = work()  # type: ignore[operator]
        watch.going = False
        watch.join()
        found[name] = (watch.most - before) / encoded
        return done

    read = step("reading", lambda: read_table(content))
    upload = step("encoding", lambda: Upload(read, TableSpec(last_column(read.frame))))  # type: ignore[attr-defined,arg-type]
    step("training", lambda: dpviz.run(dpviz.RunSpec(dataset=upload.name)))  # type: ignore[attr-defined]
    return found | {"encoded MB": encoded / 1e6}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    for option, default in (("rows", 200_000), ("columns", 5), ("levels", 95)):
        parser.add_argument(f"--{option}", type=int, default=default)
    given = parser.parse_args()
    for name, value in measure(given.rows, given.columns, given.levels).items():
        print(f"{name:12}{value:8.2f}")
