"""Servers for measurements: nginx in front of any number of them."""

import pytest

from benchmarks.servers import configured


@pytest.mark.parametrize("count", [1, 2, 3])
def test_nginx_has_a_line_for_each_process(count: int) -> None:
    hosts = [f"127.0.0.1:{9000 + k}" for k in range(count)]
    lines = [line.strip() for line in configured(hosts).splitlines() if line.strip().startswith("server ") and ":" in line]
    assert lines == [f"server {host} max_fails=0;" for host in hosts]
