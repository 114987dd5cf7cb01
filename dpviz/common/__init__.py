"""What every room may use: checks of input, random streams, threads, progress, files, the fingerprint of the engine."""
