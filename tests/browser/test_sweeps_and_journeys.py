"""The trade-off page as people meet it: sweeps that stream, stop, go on, and lead to single runs.

From a file to a model to publish, by the upload form; and two servers behind nginx with the configuration that ships.
"""

import io
import os
import re
import shutil
import subprocess
import tomllib
from collections.abc import Callable, Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlparse

import numpy as np
import pandas as pd
import pytest
from support import until

import dpviz
from dpviz.cli.main import main
from dpviz.experiments.run.links import KEY

Make = Callable[..., Any]
#: long enough to be caught in the middle, many cells
LONG = "dataset=census-5000&seeds=40&points=7&methods=dp-agd,pidp-sgd,input-perturbation,cms-output&mechanism=cms-output"
QUICK = (
    "dataset=teaching&seeds=3&points=3&from=0.1&to=10&methods=cms-output,dp-gd&knobs=dp-gd.steps:20&mechanism=cms-output&lam=0.01"
)
RUN = tuple(f.name for f in fields(dpviz.RunSpec))
POINTS = ".st-key-trade-off .scatterlayer .points path"


def open_page(one: Any, query: str) -> Any:
    one.page.goto(f"{one.address}/Trade-off?{query}")
    one.page.wait_for_selector("h1")
    return one.page


def over(page: Any) -> None:
    """Waits until the sweep is over and all of it is drawn."""
    page.wait_for_selector(POINTS)
    page.wait_for_function(
        "() => !document.querySelector('.st-key-cancel-sweep') && !document.querySelector('.st-key-go-on')"
        " && document.querySelector('[data-testid=stApp][data-test-script-state=notRunning]')"
    )


def query(page: Any) -> dict[str, str]:
    return {k: v[-1] for k, v in parse_qs(urlparse(page.url).query).items() if k != KEY}


def finished(cache: Path) -> dict[str, int]:
    """Finished cells with the time at which they were written."""
    return {path.name: path.stat().st_mtime_ns for path in (cache / "cells").glob("*.cell")}


def saved(page: Any, button: str) -> bytes:
    with page.expect_download() as waiting:
        page.get_by_role("button", name=button).click()
    return Path(waiting.value.path()).read_bytes()


def some_cells(page: Any, cache: Path, before: dict[str, int], least: int = 2) -> None:
    """Waits until the picture has lines and the cache some cells, while the sweep is at work."""
    page.wait_for_selector(POINTS)
    page.wait_for_selector(".st-key-cancel-sweep button")
    until(lambda: len(finished(cache)) >= len(before) + least, "the first cells")


@pytest.mark.long
def test_a_killed_server_goes_on_and_a_damaged_cell_is_one_notice(own_server: Any, reader: Make, tmp_path: Path) -> None:
    page = open_page(reader(address=own_server.address), LONG)
    some_cells(page, tmp_path, {}, 4)
    page.goto("about:blank")  # a page that loses its server says so on the console
    own_server.kill()
    kept = finished(tmp_path)
    assert 4 <= len(kept) < 16, "it was killed in the middle"
    victim = min(kept)
    path = tmp_path / "cells" / victim
    path.write_bytes(path.read_bytes()[:-7])
    own_server.start()
    page = open_page(reader(address=own_server.address), LONG)
    over(page)
    after = finished(tmp_path)
    assert len(after) == 16
    assert {name for name in kept if after[name] == kept[name]} == set(kept) - {victim}
    assert page.get_by_text("A stored result was damaged").count() == 1
    assert path.with_suffix(".damaged").exists()
    assert not list((tmp_path / "cells").glob(".part-*"))


@pytest.mark.long
def test_a_sweep_goes_on_while_another_page_is_open(own_server: Any, reader: Make, tmp_path: Path) -> None:
    one = reader(address=own_server.address)
    page = open_page(one, LONG)
    some_cells(page, tmp_path, {})
    page.get_by_role("link", name="One model", exact=True).click()
    page.wait_for_function(
        "() => location.pathname.includes('One_model') && document.querySelector('.st-key-headline')?.innerText"
    )
    one.settled()
    there = finished(tmp_path)
    until(lambda: len(finished(tmp_path)) >= min(len(there) + 2, 20), "further cells")
    page.get_by_role("link", name="Trade-off", exact=True).click()
    page.wait_for_function("() => location.pathname.includes('Trade-off')")
    assert query(page)["methods"] == "dp-agd,pidp-sgd,input-perturbation,cms-output"
    over(page)
    assert page.get_by_text("Cancelled at").count() == 0
    after = finished(tmp_path)
    assert len(after) == 16
    assert all(after[name] == at for name, at in there.items())


@pytest.mark.long
def test_a_click_on_a_point_opens_that_very_run(one: Any) -> None:
    page = open_page(one, QUICK)
    over(page)
    marks = (
        page.locator(".st-key-trade-off .scatterlayer .trace")
        .filter(has=page.locator(".points path"))
        .nth(1)
        .locator(".points path")
    )
    assert marks.count() == 3
    box = marks.nth(1).bounding_box()
    entries = page.evaluate("history.length")
    page.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    page.wait_for_function("() => location.pathname.includes('One_model')")
    one.settled()
    page.wait_for_function("() => /at ε.=./.test(document.querySelector('.st-key-headline')?.innerText)")
    assert "at ε = 1 " in one.sentence
    asked = dpviz.RunSpec.from_query({k: v for k, v in query(page).items() if k in RUN or "." in k})
    spec = dpviz.RunSpec(dataset="teaching", mechanism="dp-gd", epsilon=1, lam=0.01, seeds=3, params={"steps": 20})
    assert asked == spec
    made = dpviz.run(spec)
    mean = made.accuracy.mean() if made.expected_accuracy is None else made.expected_accuracy
    assert f"{100 * mean:.1f} %" in one.sentence
    assert page.evaluate("history.length") == entries + 2, "the page left, at this run, and the page opened"
    page.go_back()
    page.wait_for_function("() => location.pathname.includes('Trade-off')")
    over(page)
    assert query(page)["methods"] == "cms-output,dp-gd"


@pytest.mark.long
def test_saved_numbers_and_settings_are_those_of_the_shell(reader: Make, tmp_path: Path) -> None:
    one = reader()
    page = open_page(one, QUICK)
    over(page)
    one.unfold("Numbers of these curves, and how they are computed")
    table = pd.read_csv(io.BytesIO(saved(page, "Save every draw (CSV)")))
    path = tmp_path / "sweep.toml"
    path.write_bytes(saved(page, "Save the settings (TOML)"))
    assert tomllib.loads(path.read_text())["mechanisms"]["dp-gd"]["steps"] == 20
    assert main(["sweep", "--spec", str(path), "--no-cache", "--quiet", "--out", str(tmp_path / "sweep.csv")]) == 0
    pd.testing.assert_frame_equal(table, pd.read_csv(tmp_path / "sweep.csv"), rtol=1e-12)
    texts = [v for name in table for v in table[name] if isinstance(v, str)]
    assert texts
    assert not [text for text in texts if text.startswith(("=", "+", "-", "@"))]


@pytest.mark.long
def test_settings_survive_a_sweep_that_is_over_before_the_browser_has_drawn_the_controls(one: Any) -> None:
    # the code of the controls comes late, as on a slow line
    late = re.compile(r"/static/js/(Slider|NumberInput|Selectbox|Checkbox|TextInput)[^/]*\.js")
    one.page.route(late, lambda route: (one.page.wait_for_timeout(3000), route.continue_()))
    page = open_page(one, QUICK)
    one.page.get_by_role("slider", name="Privacy budget ε").wait_for()
    over(page)
    assert query(page)["lam"] == "0.01"
    one.unfold("Which ε gives a wanted value? Methods, range and axes")
    box = page.get_by_role("spinbutton", name="Budgets")
    box.fill("4")
    box.press("Enter")
    page.wait_for_function("() => location.search.includes('points=4')")
    over(page)
    asked = query(page)
    assert (asked["lam"], asked["mechanism"], asked["seeds"]) == ("0.01", "cms-output", "3")


N = 1200


def table(name: str) -> pd.DataFrame:
    """A table in the manner of a public one; the last column is its label."""
    rng = np.random.default_rng(3)
    ids, money = rng.permutation(N) + 10_000, rng.gamma(2.0, 500.0, N).round(2)
    if name == "credit default":
        plan = rng.choice(["rent", "own", "free"], N)
        late = rng.integers(0, 6, N)
        return pd.DataFrame({"id": ids, "limit": money, "home": plan, "late": late, "default": np.where(late > 2, "yes", "no")})
    if name == "churn":
        gaps = pd.Series(money).where(rng.random(N) > 0.02)
        contract = rng.choice(["monthly", "yearly", "two years"], N)
        return pd.DataFrame({"customerID": ids, "total": gaps, "contract": contract, "churn": contract == "monthly"})
    days = rng.integers(1, 14, N)
    return pd.DataFrame({"patient_id": rng.integers(0, 500, N), "days": days, "readmitted": np.where(days > 6, "yes", "no")})


@pytest.mark.long
@pytest.mark.parametrize("name", ["credit default", "churn", "readmissions"])
def test_a_file_becomes_a_person_at_risk_and_a_model(reader: Callable[..., Any], name: str) -> None:
    one, frame = reader(), table(name)
    page = one.page
    page.goto(f"{one.address}/Data?dataset=teaching&seeds=2")
    file = {"name": f"{name}.csv", "mimeType": "text/csv", "buffer": frame.to_csv(index=False).encode()}
    page.locator("input[type=file]").set_input_files(file)
    page.get_by_text("Guessed: no other column has two values.").wait_for()
    if name == "readmissions":
        page.get_by_text("Guessed: it has the name of an id").wait_for()
    page.get_by_role("button", name="Make it my dataset").click()
    page.wait_for_function("location.search.includes('upload-')")
    one.settled()
    page.get_by_role("link", name="Person").first.click()
    page.wait_for_function("location.pathname.includes('Person')")
    one.settled()
    assert "moves the model most" in one.sentence
    page.get_by_role("link", name="One model").first.click()
    one.settled()
    one.unfold("A model to publish")
    page.get_by_text("Publish ranges and categories that were read").click()
    page.get_by_role("button", name="Train a model and spend").click()
    page.get_by_text("Released:").wait_for()
    page.get_by_role("button", name="Download model.json").wait_for()


ROOT = Path(__file__).parents[2]
START = (
    "import sys\nfrom dpviz.cli.start import main\n"
    "sys.argv += ['--base-path', 'dpviz', '--demo', '--frame-ancestors', 'https://school.example']\nraise SystemExit(main())"
)


@pytest.fixture
def proxy(server_of: Callable[[str], tuple[str, Path]], tmp_path: Path) -> Iterator[str]:
    """The address of nginx in front of two servers."""
    nginx = shutil.which("nginx") or "/usr/sbin/nginx"
    if not Path(nginx).exists():
        if os.environ.get("DPVIZ_REQUIRE_BROWSER"):
            pytest.fail("nginx is not installed")
        pytest.skip("nginx is not installed")
    apps = [server_of(START)[0].removeprefix("http://") for _ in range(2)]
    port = 8900 + os.getpid() % 90
    text = (ROOT / "deploy" / "nginx.conf").read_text()
    for name, app in zip(("app1:8501", "app2:8501"), apps, strict=True):
        assert name in text
        text = text.replace(name, app)
    text = text.replace("listen 8080", f"listen 127.0.0.1:{port}").replace("/tmp/", f"{tmp_path}/")
    (tmp_path / "nginx.conf").write_text(text)
    with subprocess.Popen([nginx, "-c", tmp_path / "nginx.conf", "-g", "daemon off;", "-e", tmp_path / "error.log"]) as process:
        try:
            yield f"http://localhost:{port}"
        finally:
            process.terminate()


@pytest.mark.long
def test_a_class_opens_one_link(proxy: str, visitor: Callable[[str], Any]) -> None:
    reader = visitor(proxy)
    page = reader.page
    until(lambda: page.request.get(f"{proxy}/dpviz/_stcore/health").ok, "nginx answers")
    page.goto(proxy)  # leads to the path
    page.get_by_text("Demonstration: no uploads").wait_for()
    assert re.match(rf"{proxy}/dpviz/?(\?|$)", page.url)
    answer = page.request.get(f"{proxy}/dpviz/")
    assert "frame-ancestors https://school.example" in answer.headers["content-security-policy"]
    assert "x-frame-options" not in answer.headers
    assert page.request.get(f"{proxy}/dpviz/", headers={"Host": "evil.example"}).status == 421
    # a deep link, the sidebar's links, and a session that stays with its process
    page.goto(f"{proxy}/dpviz/Data?dataset=breast-cancer")
    page.get_by_text("takes no data").wait_for()
    page.locator(".st-key-pages a").nth(1).click()
    page.wait_for_url(re.compile(rf"{proxy}/dpviz/.+dataset=breast-cancer"))
    page.locator(".st-key-headline").first.wait_for()
    assert page.request.get(f"{proxy}/dpviz/_stcore/metrics").status == 404
    leads = page.request.get(f"{proxy}/", headers={"Host": "evil.example"}, max_redirects=0).headers["location"]
    assert leads == "/dpviz/", "not to the site that the request names"
    assert reader.errors == [], reader.errors
    reader.context.close()
