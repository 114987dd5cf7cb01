"""Two servers behind nginx with the configuration that ships: path prefix, websockets, what it refuses."""

import os
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from support import until

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
