"""Where a checkout keeps its state on this machine, and who may use it at a time."""

import errno
import fcntl
import hashlib
import os
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from deploy.embedded.account import Account, give
from deploy.embedded.complaint import Complaint

CHECKOUT = Path(__file__).resolve().parents[2]
NEEDED_BYTES = 300_000_000  # a new cluster, its write-ahead log and some room to work
ROOM = "Free some room, or choose another disk: make run DATA=<folder>"
LONGEST_SOCKET_FOLDER = 80  # a unix socket's path ends at 107 bytes
# What a start makes in its data folder, and all that a fresh one takes away.
OURS = (
    "administrator",
    "demo.json",
    "demo.new",
    "files",
    "logs",
    "postgres",
    "postgres.new",
    "run",
    "secrets",
    "valkey",
)
MARK = "gpubroker.txt"
MARKED = "gpubroker keeps its state in this folder. `make run FRESH=1` deletes it: " + ", ".join(OURS) + ".\n"
BEFORE_THE_MARK = {
    "lock",
    "secrets",
    "valkey",
}  # what every start of an earlier version left, whole or cut short


def home() -> Path:
    """Return the folder for the state of every checkout of this user."""
    if os.geteuid() == 0:
        return Path("/var/lib/gpubroker")
    share = os.environ.get("XDG_DATA_HOME") or Path.home() / ".local/share"
    return Path(share) / "gpubroker"


def usual() -> Path:
    """Return this checkout's own folder: two checkouts never share state."""
    return home() / f"{CHECKOUT.name}-{hashlib.sha256(str(CHECKOUT).encode()).hexdigest()[:8]}"


@dataclass(frozen=True)
class Folders:
    """The places inside one data folder."""

    data: Path
    sockets: Path

    @property
    def postgres(self) -> Path:
        return self.data / "postgres"

    @property
    def valkey(self) -> Path:
        return self.data / "valkey"

    @property
    def logs(self) -> Path:
        return self.data / "logs"

    @property
    def secrets(self) -> Path:
        return self.data / "secrets"

    @property
    def files(self) -> Path:
        """What the product itself keeps as files."""
        return self.data / "files"


def sockets_for(data: Path) -> Path:
    """Return where the sockets go: beside the data, or in /tmp when that path is too long for a socket."""
    beside = data / "run"
    if len(str(beside)) <= LONGEST_SOCKET_FOLDER:
        return beside
    short = hashlib.sha256(str(data).encode()).hexdigest()[:12]
    return Path(tempfile.gettempdir()) / f"gpubroker-{os.geteuid()}-{short}"


def prepare(data: Path, *, servers: Account | None, products: Account | None) -> Folders:
    """Make the data folder whole, or say why it cannot be."""
    folders = Folders(data.absolute(), sockets_for(data.absolute()))
    try:
        folders.data.mkdir(parents=True, exist_ok=True)
        for place, owner in (
            (folders.valkey, servers),
            (folders.sockets, servers),
            (folders.logs, None),
            (folders.secrets, products),
            (folders.files, products),
        ):
            place.mkdir(exist_ok=True)
            give(place, owner)
            place.chmod(0o700)
        for file in (*folders.secrets.rglob("*"), *folders.files.rglob("*")):
            give(file, products)  # an earlier start may have run as another user
        folders.sockets.chmod(0o755 if products != servers else 0o700)
        probe = folders.logs / ".probe"
        probe.write_bytes(b"gpubroker")
        probe.unlink()
    except OSError as failure:
        raise Complaint(describe(failure, folders.data)) from failure
    if servers and not servers.can("test", "-w", str(folders.valkey)):
        raise Complaint(
            f"The user {servers.name}, whom PostgreSQL runs as, cannot reach {folders.data}.\n"
            "A folder above it is closed to others. Choose another: make run DATA=/var/lib/gpubroker/mine"
        )
    free = shutil.disk_usage(folders.data).free
    if free < NEEDED_BYTES:
        raise Complaint(
            f"The disk of {folders.data} is nearly full: {free // 1_000_000} MB are free, "
            f"{NEEDED_BYTES // 1_000_000} MB are needed.\n{ROOM}"
        )
    return folders


def describe(failure: OSError, data: Path) -> str:
    """Turn an operating system's error into what happened, why, what next."""
    where = failure.filename or data
    if failure.errno == errno.ENOSPC:
        return f"The disk is full: {where} could not be written.\n{ROOM}"
    if failure.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
        return (
            f"No permission to write {where}.\n"
            f"gpubroker keeps its state in {data}.\n"
            "Make that folder yours, or choose another: make run DATA=<folder>"
        )
    return f"{where} cannot be used: {failure.strerror}.\nChoose another folder: make run DATA=<folder>"


def take(data: Path) -> IO[str]:
    """Hold the data folder for this process, or say who holds it. Keep the answer open as long as needed."""
    try:
        need_own(data)
        data.mkdir(parents=True, exist_ok=True)
        if not (data / MARK).exists():
            (data / MARK).write_text(MARKED)
        held = (data / "lock").open("a+")
    except OSError as failure:
        raise Complaint(describe(failure, data)) from failure
    try:
        fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        held.seek(0)
        owner = held.read().strip() or "unknown"
        held.close()
        raise Complaint(
            f"gpubroker already runs from this data folder (process {owner}): {data}\n"
            "Use that one, stop it with Ctrl-C, or start another beside it: make run DATA=<folder> PORT=8100"
        ) from None
    held.truncate(0)
    held.write(f"{os.getpid()}\n")
    held.flush()
    return held


def need_own(data: Path) -> None:
    """Pass when a folder is new, empty or ours: in anybody else's a start would mingle and FRESH=1 would delete."""
    if not data.exists() or (data / MARK).exists():
        return
    names = {place.name for place in data.iterdir()}
    if names >= BEFORE_THE_MARK:
        return
    foreign = sorted(names - {"lost+found"})
    if foreign:
        named = ", ".join(foreign[:3]) + (" and more" if len(foreign) > 3 else "")
        raise Complaint(
            f"{data} is not empty and not gpubroker's: it holds {named}.\n"
            "Nothing in it was touched. Choose a new or an empty folder: make run DATA=<folder>"
        )


def forget(data: Path) -> None:
    """Take our own state out of the data folder, for a start from nothing; whatever else lies there stays."""
    for place in (data / name for name in OURS):
        if place.is_dir() and not place.is_symlink():
            shutil.rmtree(place)
        else:
            place.unlink(missing_ok=True)
