"""Dockerfile and compose.yaml step by step where Docker is missing: root directories made by debootstrap, and namespaces.

    sudo python deploy/replay.py [--profile NAME] FOLDER [COMMAND ...]

Builds both stages below FOLDER (2 GB), starts the services, waits for the health check of each app, and runs COMMAND in the
network of the proxy, where http://localhost:8080/dpviz/ is the class's link; without a command it serves until Ctrl-C. Needs
Debian's debootstrap, nginx, iproute2 and util-linux, and PyYAML. Other than with Docker: Debian's own Python in place of
python:3.12-slim, this machine's nginx in place of nginx:stable, and no limits of resources or system calls.
"""

from __future__ import annotations

import argparse
import json
import re
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

HERE = Path(__file__).resolve().parent
SUITE, NET, CERTIFICATES = "bookworm", "10.47.0", Path("/etc/ssl/certs/ca-certificates.crt")
PATHS = "/usr/local/python/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


def sh(*command: object, **options: Any) -> None:
    """Runs a command and shows it."""
    print("+", " ".join(map(str, command))[:200], flush=True)
    subprocess.run([str(part) for part in command], check=True, **options)


def base(folder: Path) -> Path:
    """A Debian with Python, where `pip` and `python` are first on the path as in python:slim."""
    root = folder / "base"
    if not root.exists():
        sh("debootstrap", "--variant=minbase", "--include=python3,python3-venv,ca-certificates", SUITE, root)
        shutil.copy("/etc/resolv.conf", root / "etc")
        if CERTIFICATES.exists():  # of a proxy between this machine and the registry
            shutil.copy(CERTIFICATES, root / "etc/ssl/certs")
        (root / "etc/hosts").touch()
        sh("chroot", root, "python3", "-m", "venv", "/usr/local/python")
    return root


def build(folder: Path) -> tuple[Path, dict[str, str], dict[str, str]]:
    """(root directory, environment, other instructions) of the last stage of the Dockerfile, each step run as it stands."""
    text = re.sub(r"\\\n\s*", "", (HERE / "Dockerfile").read_text())
    root, place, environment, said = folder, "/", dict[str, str](), dict[str, str]()
    for line in (line for line in text.splitlines() if line and not line.startswith("#")):
        name, _, rest = line.partition(" ")
        said[name] = rest
        if name == "FROM":
            root, place, environment, said = folder / (rest.partition(" AS ")[2] or "image"), "/", {"PATH": PATHS}, {}
            sh("rm", "-rf", root)
            sh("cp", "-a", base(folder), root)
        elif name == "WORKDIR":
            place = rest
            (root / place[1:]).mkdir(exist_ok=True)
        elif name == "COPY":  # what git knows: the ignore file leaves out the rest
            sh("sh", "-c", f"git ls-files | tar c -T - | tar x -C {shlex.quote(str(root / place[1:]))}", cwd=HERE.parent)
        elif name == "ENV":
            environment |= dict(part.split("=", 1) for part in shlex.split(rest))
        elif name == "RUN":
            mount = re.match(r"--mount=from=(\w+),source=(\S+),target=(\S+) ", rest)
            bind = ""
            if mount:
                (root / mount[3][1:]).mkdir()
                bind = f"mount --bind {folder / mount[1]}{mount[2]} {root}{mount[3]}; "
            inside = f"cd {place} && {rest[mount.end() if mount else 0 :]}"
            script = f"{bind}mount -t tmpfs tmpfs {root}/tmp; mount -t proc proc {root}/proc; exec chroot {root} sh -c "
            space = ["unshare", "--mount", "--pid", "--fork", "sh", "-ec", script + shlex.quote(inside)]
            sh(*space, env=environment | {"HOME": "/root"})
    return root, environment, said


def network(names: list[str]) -> None:
    """One network namespace for each service, where the services know each other by name."""
    sh("ip", "link", "add", "dpviz", "type", "bridge")
    sh("ip", "link", "set", "dpviz", "up")
    hosts = "127.0.0.1 localhost\n" + "".join(f"{NET}.{number} {name}\n" for number, name in enumerate(names, 1))
    for number, name in enumerate(names, 1):
        space = f"dpviz-{name}"
        sh("ip", "netns", "add", space)
        sh("ip", "link", "add", f"dpviz{number}", "type", "veth", "peer", "name", "eth0", "netns", space)
        sh("ip", "link", "set", f"dpviz{number}", "master", "dpviz", "up")
        sh("ip", "-n", space, "addr", "add", f"{NET}.{number}/24", "dev", "eth0")
        sh("ip", "-n", space, "link", "set", "eth0", "up")
        sh("ip", "-n", space, "link", "set", "lo", "up")
        (Path("/etc/netns") / space).mkdir(parents=True)
        (Path("/etc/netns") / space / "hosts").write_text(hosts)


def container(root: Path, name: str, setup: str, command: list[str], environment: Mapping[str, str]) -> subprocess.Popen[bytes]:
    """A process with mounts and process numbers of its own, a read-only root and the network of its service."""
    script = f"""
mount --make-rprivate /
mkdir -p {root}
{setup}
mount -t tmpfs tmpfs {root}/dev/shm -o mode=1777,size=64m
mount -t proc proc {root}/proc
mount --bind /etc/netns/dpviz-{name}/hosts {root}/etc/hosts
mount -o remount,ro,bind {root}
exec unshare --root={root} {shlex.join(command)}"""
    space = ["ip", "netns", "exec", f"dpviz-{name}", "unshare", "--mount", "--pid", "--fork", "--kill-child"]
    return subprocess.Popen([*space, "sh", "-ec", script], env=dict(environment))


def main() -> int:
    """Builds, serves, and takes everything down. Returns the command's exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--profile")
    parser.add_argument("command", nargs=argparse.REMAINDER)
    options = parser.parse_args()
    folder = options.folder.resolve()
    folder.mkdir(exist_ok=True)
    text = re.sub(r"\$\{\w+:-(\w+)\}", r"\1", (HERE / "compose.yaml").read_text())
    services: dict[str, Any] = {}
    for name, service in yaml.safe_load(text)["services"].items():
        if options.profile in service.get("profiles", [options.profile]):
            for copy in range(service.get("deploy", {}).get("replicas", 1)):
                services[f"{name}{copy + 1 if copy else ''}"] = service
    root, environment, said = build(folder)
    user = [
        "setpriv",
        "--reuid",
        "1000",
        "--regid",
        "1000",
        "--clear-groups",
        "--bounding-set=-all",
        "--no-new-privs",
        "--pdeathsig=KILL",
        "--",
    ]
    app = f"mount --bind {root} {root}\nmount --bind {folder}/cache {root}/cache\nmount -t tmpfs tmpfs {root}/tmp -o mode=1777"
    shutil.copytree(root / "cache", folder / "cache", dirs_exist_ok=True)  # a new volume holds what the image has there
    shutil.chown(folder / "cache", 1000, 1000)
    every = Path("/mnt")
    proxy = f"mount --rbind / {every}\nmount -t tmpfs tmpfs {every}/tmp -o mode=1777\ncp {HERE}/nginx.conf {every}/tmp/nginx.conf"
    nginx = ["nginx", "-e", "stderr", "-c", "/tmp/nginx.conf", "-g", "daemon off;"]
    started = []
    try:
        network(list(services))
        for name, service in services.items():
            if service["image"] == "dpviz":
                entry = service.get("entrypoint") or json.loads(said["ENTRYPOINT"])
                command = [*user, *entry, *service["command"]]
                started.append(container(root, name, app, [f"--wd={said['WORKDIR']}", *command], environment))
        for name, service in services.items():
            for _ in range(120 if "healthcheck" in service else 0):
                check = ["chroot", str(root), *service["healthcheck"]["test"][1:]]
                space = ["ip", "netns", "exec", f"dpviz-{name}"]
                if subprocess.run([*space, *check], env=environment, stderr=subprocess.DEVNULL).returncode == 0:
                    print(name, "is healthy", flush=True)
                    break
                time.sleep(0.5)
            else:
                if "healthcheck" in service:
                    raise SystemExit(f"{name} is not healthy")
        started.append(container(every, "proxy", proxy, nginx, {"PATH": PATHS}))
        time.sleep(1)
        return subprocess.run(["ip", "netns", "exec", "dpviz-proxy", *(options.command or ["sleep", "infinity"])]).returncode
    except KeyboardInterrupt:
        return 0
    finally:
        for process in started:
            process.kill()  # unshare heeds no other signal; its child ends with it
            process.wait()
        for name in services:
            subprocess.run(["ip", "netns", "delete", f"dpviz-{name}"])
            shutil.rmtree(f"/etc/netns/dpviz-{name}", ignore_errors=True)
        subprocess.run(["ip", "link", "delete", "dpviz"])


if __name__ == "__main__":
    sys.exit(main())
