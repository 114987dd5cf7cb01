"""What every room may use: checks of input, random streams, threads, progress, files, the engine's version."""
