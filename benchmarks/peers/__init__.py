"""dpviz beside scikit-learn, diffprivlib and Opacus: `python -m benchmarks.peers`."""
