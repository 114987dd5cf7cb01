"""Tools for every room: checks of input, random streams, threads, progress, files, the engine's version."""
