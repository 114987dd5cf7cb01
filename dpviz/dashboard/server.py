"""Starts Streamlit on the app."""

from __future__ import annotations

from pathlib import Path

from streamlit.web import cli


def serve(script: Path, port: int | None = None, *, browser: bool = True) -> None:
    """Serves the app until it is stopped.

    Streamlit reads .streamlit/config.toml beside the script after those of the working and the home folder, so the
    configuration that ships with the app holds wherever it is started; flags and STREAMLIT_* variables still win.
    """
    arguments = ["run", str(script)]
    if port is not None:
        arguments += ["--server.port", str(port)]
    if not browser:
        arguments += ["--server.headless", "true"]
    cli.main(arguments, standalone_mode=False, prog_name="streamlit")
