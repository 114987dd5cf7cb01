"""From a file to a model to publish, by the upload form; and two servers behind nginx with the configuration that ships."""

import os
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from support import until

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
