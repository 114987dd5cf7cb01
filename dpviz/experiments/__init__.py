"""From a spec to results: run, sweep, grid, curves and observed quantities."""
