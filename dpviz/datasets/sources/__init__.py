"""Where datasets come from: bundled, synthetic, data folder, downloads, uploads."""
