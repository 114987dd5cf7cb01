"""How long a person waits after moving ε: the first page in Chromium, from the key to the finished picture.

    python benchmarks/page.py [--dataset breast-cancer ...] [--mechanism dp-gd ...] [--metric roc-auc] [--moves 50]

Starts the app, opens the page, and presses an arrow key on the slider again and again, some seconds' reading apart. Every
ten moves the page is opened with another seed, so that no move meets a budget of an earlier one; what the page itself computes
ahead in the pause counts.
The picture is there when the sentence speaks of the new ε, the first figure was drawn anew, and two frames have passed;
the whole page when moreover nothing on it is marked as stale, its script has ended, and two frames have passed. Needs
Chromium and Playwright.
"""

from __future__ import annotations

import argparse
import itertools
import os
import re
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import numpy as np

ROOT = Path(__file__).parents[1]
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
    if (said !== before && said.startsWith('At ε') && plot) {
      if (!plot.seen && plot.querySelector('path')) once('picture');  // drawn anew
      if (!document.querySelector('[data-stale=true]')
          && document.querySelector('[data-testid=stApp][data-test-script-state=notRunning]')) { once('picture'); once('whole'); }
    }
    if (asked.whole) return;
    if (performance.now() - window.pressed > 20000) fail(new Error('no new picture in 20 s')); else requestAnimationFrame(look);
  };
  look();
})""".replace("PICTURE", repr(PICTURE))


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
    """Prints median, 90th percentile and maximum for each mechanism."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--dataset", nargs="*", default=["breast-cancer"])
    parser.add_argument("--mechanism", nargs="*", default=["cms-objective", "dp-gd", "dp-sgd", "rsgd-ar", "objective-tight"])
    parser.add_argument("--metric", default="", help="another metric than the page's own choice")
    parser.add_argument("--moves", type=int, default=50)
    parser.add_argument("--pause", type=float, default=1.0, help="seconds between two moves")
    parser.add_argument("--chromium", default="/usr/bin/chromium")
    given = parser.parse_args()
    from playwright.sync_api import sync_playwright

    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    with tempfile.TemporaryDirectory() as cache:
        environment = os.environ | {"PYTHONPATH": str(ROOT), "DPVIZ_CACHE": cache}
        command = [sys.executable, "-m", "dpviz", "app", "--port", str(port), "--no-browser"]
        quiet = subprocess.DEVNULL
        server = subprocess.Popen(command, cwd=cache, env=environment, stdout=quiet, stderr=quiet)
        try:
            for _ in range(300):
                try:
                    urllib.request.urlopen(f"http://127.0.0.1:{port}/_stcore/health", timeout=1).close()
                    break
                except OSError:
                    time.sleep(0.1)
            with sync_playwright() as playwright:
                browser = playwright.chromium.launch(executable_path=given.chromium, args=["--headless", "--no-sandbox"])
                for dataset, mechanism in itertools.product(given.dataset, given.mechanism):
                    query = {"dataset": dataset, "mechanism": mechanism} | ({"metric": given.metric} if given.metric else {})
                    page = browser.new_page(viewport={"width": 1280, "height": 900})
                    page.add_init_script(KEY)
                    rows: list[list[float]] = []
                    while len(rows) < given.moves:
                        seed = len(rows) // ROUND
                        page.goto(f"http://127.0.0.1:{port}/?{urlencode(query | {'seed': seed})}")
                        page.wait_for_selector(PICTURE, timeout=120_000)
                        page.wait_for_selector("[data-testid=stApp][data-test-script-state=notRunning]", timeout=120_000)
                        page.wait_for_timeout(3000)
                        key = "ArrowLeft" if seed % 2 else "ArrowRight"
                        rows += moves(page, key, min(ROUND, given.moves - len(rows)), given.pause)
                    taken = np.array(rows)
                    said = re.sub(r"\s+", " ", page.locator(".st-key-headline").inner_text())[:60]
                    print(
                        f"{urlencode(query)} ({said} …), load {os.getloadavg()[0]:.1f}, a move every {given.pause:g} s and more"
                    )
                    for name, column in zip(("picture", "whole page"), taken.T, strict=True):
                        print(
                            f"  {name}: median {np.median(column):.3f} s, worst of {len(column)} {max(column):.3f} s", flush=True
                        )
                    page.close()
                browser.close()
        finally:
            server.terminate()
            server.wait(10)


if __name__ == "__main__":
    main()
