"""What every room may use: checks of input, random streams, threads, progress, the engine's fingerprint."""
