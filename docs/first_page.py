"""Writes docs/first_page.png, the first page of the running app: `python docs/first_page.py` (needs Chromium)."""

import subprocess
import sys
from pathlib import Path

from playwright.sync_api import sync_playwright

PORT = 8599
TARGET = Path(__file__).with_suffix(".png")


def main() -> None:
    command = [sys.executable, "-m", "dpviz", "--port", str(PORT), "--no-browser"]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert server.stdout is not None
    server.stdout.readline()  # its address, once it listens
    try:
        with sync_playwright() as library:
            browser = library.chromium.launch(executable_path="/usr/bin/chromium", args=["--no-sandbox"])
            page = browser.new_page(viewport={"width": 1280, "height": 860})
            page.goto(f"http://127.0.0.1:{PORT}/")
            page.get_by_text("An attacker guesses right at most").first.wait_for(timeout=120_000)
            page.wait_for_timeout(3_000)  # for the last pictures
            page.screenshot(path=TARGET)
            browser.close()
    finally:
        server.terminate()


if __name__ == "__main__":
    main()
