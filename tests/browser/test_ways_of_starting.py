"""`dpviz` and `streamlit run app.py` serve the same app from a process that is set up in the same way."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support import until

ROOT = Path(__file__).parents[2]

TELL = """
import gc, json, os, sys, threading, time
from pathlib import Path

def tell():
    while not Path("ask").exists():
        time.sleep(0.1)
    while any(t.name == "dpviz-warm" for t in threading.enumerate()):
        time.sleep(0.1)
    state = {"switch": sys.getswitchinterval(), "frozen": gc.get_freeze_count() > 0}
    Path("told.part").write_text(json.dumps(state))
    os.rename("told.part", "told")

threading.Thread(target=tell, daemon=True).start()
"""
WAYS = {
    "dpviz": "from dpviz.cli.start import main\nraise SystemExit(main())",
    "streamlit run": (
        "from streamlit.web import cli\nport = sys.argv[sys.argv.index('--port') + 1]\n"
        f"cli.main(['run', {str(ROOT / 'app.py')!r}, '--server.port', port, '--server.headless', 'true'])"
    ),
}


@pytest.mark.long
@pytest.mark.parametrize("way", WAYS)
def test_every_way_of_starting_sets_the_process_up(
    way: str, visitor: Callable[[str], Any], server_of: Callable[[str], tuple[str, Path]]
) -> None:
    address, folder = server_of(TELL + WAYS[way])
    reader = visitor(address)
    reader.open("?dataset=teaching&seeds=2")
    reader.page.goto(f"{address}/Data?dataset=teaching")
    reader.page.get_by_text("50MB per file").wait_for()
    (folder / "ask").touch()
    until((folder / "told").exists, "an answer")
    assert json.loads((folder / "told").read_text()) == {"switch": 0.0005, "frozen": True}
    reader.context.close()
