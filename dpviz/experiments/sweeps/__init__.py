"""Many runs: cells of a sweep, their store, the cluster, tuning grids and cross-validation."""
