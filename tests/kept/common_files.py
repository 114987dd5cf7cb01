"""Examples of `dpviz.common.files`."""

import contextlib
import os
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest import mock

from dpviz.common import files
from dpviz.common.files import FileStore


def _attempt(compute: Callable[[], object]) -> object:
    try:
        return compute()
    except (OSError, files.Untrusted) as error:
        return type(error).__name__


def _names(folder: str = ".") -> str:
    return " ".join(sorted(path.relative_to(folder).as_posix() for path in Path(folder).rglob("*")))


def files_examples() -> Iterator[Any]:
    kind = mock.patch.multiple(
        FileStore, create=True, suffix=".kept", most=75, most_of_all=150, room="room", what="Things", then="they are made anew"
    )
    with tempfile.TemporaryDirectory() as place, contextlib.chdir(place), mock.patch.dict(os.environ, DPVIZ_CACHE="home"), kind:
        store, blocked, path = FileStore("a/b"), FileStore("file/b"), Path("a/b/k.kept")
        Path("file").write_text("x")
        yield from [
            f"{store.read('k')} {store.write('k', b'abc')} {store.read('k')} {store.path('k')} {path.stat().st_mode & 0o777:o}",
            f"{store.write('ten', b'0123456789')} {store.read('ten')} {store.write('more', b'0123456789a')} {store.read('more')}",
            f"{store.path('j').write_bytes(path.read_bytes())} {store.read('j')} {store.notices} {_names('a')}",
            f"{path.chmod(0o620)} {store.read('k')} {path.chmod(0o602)} {store.read('k')} {path.chmod(0o644)} {store.read('k')}",
            f"{blocked.read('k')} {blocked.read('k')} {blocked.write('k', b'a')} {blocked.notices}",
            f"{[one.notices for one in [FileStore('file/d')] if not one.write('k', b'a')]}",
            "; ".join(
                _names("room")
                for most in (None, 139, 138, 70, 0)
                for name, size, age in (("b.kept", 70, 9), ("a.kept", 60, 7), ("c.damaged", 9, 8), ("d.other", 99, 5))
                if [files.write(Path("room", name), b"x" * size), os.utime(Path("room", name), (age, age))]
                if name == "d.other" and not FileStore("room").prune(most)
            ),
            [
                Path("home/room").mkdir(parents=True),
                *(Path("home/room", f"{k}.kept").write_bytes(b"x" * 75) for k in range(3)),
                *(os.utime(f"home/room/{k}.kept", (9 - k, 9 - k)) for k in range(3)),
                FileStore.personal().folder.as_posix(),
                len(_names("home/room")),
            ],
            _names("home"),
            [files.cache_folder().as_posix(), files.find_files(Path("gone"), "*"), len(files.find_files(Path("a/b"), "*.kept"))],
            f"{_attempt(lambda: files.write(Path('a'), b'x'))} {_attempt(lambda: files.write(Path('file/x/y'), b'x'))}",
            f"{files._writing}",
            f"{_attempt(lambda: files.read_own(path, 68))} {_attempt(lambda: files.read_own(path, 67))} "
            f"{_attempt(lambda: files.read_own(Path('a'), 99))} {_attempt(lambda: files.read_own(Path('gone'), 99))}",
            f"{Path('link').symlink_to(path)} {_attempt(lambda: files.read_own(Path('link'), 99))} {Path('link').unlink()}",
            [
                Path(".part-12345678.new").mkdir(),
                _attempt(lambda: files.write_folder(Path("new"), {"one": b"1", "two": b"22"})),
                _attempt(lambda: files.write_folder(Path("new"), {"one": b"3"})),
                Path("new/one").read_text(),
                f"{Path('new/two').stat().st_mode & 0o777:o}",
            ],
            _names(),
            [files.part_folder(Path("p/q")).name.startswith(".part-"), files.part_folder(Path("p/q")).parent.as_posix()],
            [
                Path("p/half").write_text("x") + Path("p/other").write_text("x"),
                files._writing.update({Path("p/half"), Path("p/q"), Path("p/gone")}),
                files.remove_own_parts(),
                files._writing.difference_update({Path("p/half"), Path("p/q"), Path("p/gone")}),
                _names("p"),
            ],
            [
                Path("p/.part-old").mkdir(),
                Path("p/.part-file").write_text("x"),
                Path("p/.part-young").write_text("x"),
                *(os.utime(f"p/.part-{name}", (1, 1)) for name in ("old", "file")),
                files.remove_stale_parts(Path("p"), 1e6),
                _names("p"),
            ],
        ]
