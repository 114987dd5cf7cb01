"""Sources of datasets: bundled, synthetic, data folder, downloads, uploads."""
