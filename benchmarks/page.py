"""Waiting times in Chromium: from moving ε to the finished picture, or (`--cold`) from the command to the first page.

    python -m benchmarks.page [--dataset breast-cancer ...] [--mechanism dp-gd ...] [--metric roc-auc] [--moves 50]
    python -m benchmarks.page --cold 5

Starts the app, opens the page, and presses an arrow key on the slider again and again, some seconds' reading apart. Every
ten moves the page is opened with another seed, so that no move meets a budget of an earlier one.
The picture is there when the sentence speaks of the new ε, the first figure was drawn anew, and two frames have passed;
the whole page when moreover nothing on it is marked as stale, its script has ended, and two frames have passed.

With --cold the time is taken apart: the sources are copied, so that Python has to compile them as it has after installation,
and the browser, which runs already, asks as soon as the server answers. Needs Chromium and Playwright.
"""

import argparse
import itertools
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import numpy as np

from benchmarks.servers import ROOT, Server

ROUND = 10  # moves with one seed
#: when the key was pressed, as the browser saw it: what the driver takes to press it does not count
KEY = "addEventListener('keydown', event => { window.pressed = event.timeStamp }, true)"
#: a chart as SVG; those that plotly draws would be ".js-plotly-plot"
PICTURE = ".dpviz-picture svg"
WAIT = """([before]) => new Promise((done, fail) => {
  const found = {};
  const frames = (name) => requestAnimationFrame(() => requestAnimationFrame(() => {
    found[name] = performance.now() - window.pressed;
    if ('whole' in found && 'picture' in found) done([found.picture, found.whole]);
  }));
  const asked = {};
  const once = (name) => { if (!asked[name]) { asked[name] = true; frames(name); } };
  const look = () => {
    const said = document.querySelector('.st-key-headline')?.innerText ?? '';
    const plot = document.querySelector(PICTURE);
    if (said !== before && said.includes('at ε') && plot) {
      if (!plot.seen && plot.querySelector('path')) once('picture');  // drawn anew
      if (!document.querySelector('[data-stale=true]')
          && document.querySelector('[data-testid=stApp][data-test-script-state=notRunning]')) { once('picture'); once('whole'); }
    }
    if (asked.whole) return;
    if (performance.now() - window.pressed > 20000) fail(new Error('no new picture in 20 s')); else requestAnimationFrame(look);
  };
  look();
})""".replace("PICTURE", repr(PICTURE))


#: what a first page goes through, and how the browser sees that it is there
STAGES = {
    "browser: the app's own scripts": "document.querySelector('[data-testid=stApp]')",
    "first run, until its sentence": "document.querySelector('.st-key-headline')?.innerText.includes('at ε')",
    "picture": f"document.querySelector({PICTURE!r} + ' path')",
    "rest of the page": """!document.querySelector('[data-stale=true]')
        && document.querySelector('[data-testid=stApp][data-test-script-state=notRunning]')""",
}
WATCH = """(stages) => { window.reached = []; const look = () => {
    while (reached.length < stages.length && eval(stages[reached.length]))
      reached.push(performance.timeOrigin + performance.now());
    requestAnimationFrame(look);
  }; look(); }"""


@contextmanager
def app(root: Path) -> Iterator[str]:
    """The app of these sources, from its command until it answers; its address."""
    with tempfile.TemporaryDirectory() as folder:
        server = Server(Path(folder), root=root)
        try:
            yield server.address
        finally:
            server.stop()


def first_pages(browser: Any, count: int) -> None:
    """Prints what the time from the command to a first page goes into, of `count` servers."""
    taken = []
    for _ in range(count):
        with tempfile.TemporaryDirectory() as folder:
            root = Path(folder)
            for name in ("dpviz", "pages", "data", ".streamlit"):
                shutil.copytree(ROOT / name, root / name, ignore=shutil.ignore_patterns("__pycache__"))
            shutil.copy(ROOT / "app.py", root)
            imports = "import streamlit.web.bootstrap, dpviz.cli.main, dpviz.dashboard.frame.server"
            begun = time.time()
            subprocess.run([sys.executable, "-B", "-c", imports], cwd=root, env=os.environ | {"PYTHONPATH": folder}, check=True)
            marks = [time.time() - begun]
            begun = time.time()
            with app(root) as address:
                answered = time.time()
                page = browser.new_page(viewport={"width": 1280, "height": 900})
                page.add_init_script(f"({WATCH})({json.dumps(list(STAGES.values()))})")
                page.goto(address)
                page.wait_for_function(f"window.reached.length === {len(STAGES)}", timeout=120_000)
                reached = [at / 1000 for at in page.evaluate("window.reached")]
                page.close()
            marks += [*np.diff([begun, answered, *reached]).tolist(), reached[-2] - begun, reached[-1] - begun]
            taken.append(marks)
    names = ("imports alone", "interpreter, imports, server", *STAGES, "command to picture", "command to whole page")
    for name, column in zip(names, np.array(taken).T, strict=True):
        print(f"{name}: median {np.median(column):.2f} s, worst of {count} {max(column):.2f} s")


def moves(page: Any, key: str, count: int, pause: float) -> list[list[float]]:
    """(count, 2) seconds from the key to the first picture, and to the whole page, for moves in one direction."""
    slider = page.get_by_role("slider", name="Privacy budget ε")
    slider.focus()
    taken = []
    for _ in range(count):
        before = page.locator(".st-key-headline").inner_text()
        page.evaluate(f"for (const plot of document.querySelectorAll({PICTURE!r})) plot.seen = true")
        page.keyboard.press(key)
        taken.append([milliseconds / 1000 for milliseconds in page.evaluate(WAIT, [before])])
        page.wait_for_timeout(1000 * pause)
    return taken


def main() -> None:
    """Prints medians and worst times."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--dataset", nargs="*", default=["breast-cancer"])
    parser.add_argument("--mechanism", nargs="*", default=["cms-objective", "dp-gd", "dp-sgd", "rsgd-ar", "objective-tight"])
    parser.add_argument("--metric", default="", help="another metric than the page's own choice")
    parser.add_argument("--moves", type=int, default=50)
    parser.add_argument("--pause", type=float, default=1.0, help="seconds between two moves")
    parser.add_argument("--cold", type=int, default=0, help="measure so many first pages instead")
    parser.add_argument("--chromium", default="/usr/bin/chromium")
    given = parser.parse_args()
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=given.chromium, args=["--headless", "--no-sandbox"])
        if given.cold:
            first_pages(browser, given.cold)
        else:
            with app(ROOT) as address:
                for dataset, mechanism in itertools.product(given.dataset, given.mechanism):
                    query = {"dataset": dataset, "mechanism": mechanism} | ({"metric": given.metric} if given.metric else {})
                    measure(browser, address, query, given.moves, given.pause)
        browser.close()


def measure(browser: Any, address: str, query: dict[str, str], count: int, pause: float) -> None:
    """Prints how long one run's page takes to show another budget."""
    page = browser.new_page(viewport={"width": 1280, "height": 900})
    page.add_init_script(KEY)
    rows: list[list[float]] = []
    while len(rows) < count:
        seed = len(rows) // ROUND
        page.goto(f"{address}/?{urlencode(query | {'seed': seed})}")
        page.wait_for_selector(PICTURE, timeout=120_000)
        page.wait_for_selector("[data-testid=stApp][data-test-script-state=notRunning]", timeout=120_000)
        page.wait_for_timeout(3000)
        rows += moves(page, "ArrowLeft" if seed % 2 else "ArrowRight", min(ROUND, count - len(rows)), pause)
    said = re.sub(r"\s+", " ", page.locator(".st-key-headline").inner_text())[:60]
    print(f"{urlencode(query)} ({said} …), load {os.getloadavg()[0]:.1f}, a move every {pause:g} s and more")
    for name, column in zip(("picture", "whole page"), np.array(rows).T, strict=True):
        print(f"  {name}: median {np.median(column):.3f} s, worst of {len(column)} {max(column):.3f} s", flush=True)
    page.close()


if __name__ == "__main__":
    main()
