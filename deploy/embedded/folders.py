"""Data directory of a checkout on this machine."""

import errno
import hashlib
import os
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path

from deploy.embedded.account import UnprivilegedAccount, give_ownership
from deploy.embedded.startup_error import StartupError

CHECKOUT = Path(__file__).resolve().parents[2]
NEEDED_BYTES = 300_000_000  # a new cluster, its write-ahead log and working space
FREE_SPACE_HINT = "Free some disk space, or choose another disk: make run DATA=<folder>"
LONGEST_SOCKET_FOLDER = 80  # a unix socket's path has at most 107 bytes
# What a start creates in its data directory, and what FRESH=1 deletes.
OWN_ENTRIES = (
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
MARKER_FILE = "gpubroker.txt"
MARKER_TEXT = (
    "gpubroker keeps its state in this folder. `make run FRESH=1` deletes it: " + ", ".join(OWN_ENTRIES) + ".\n"
)
ENTRIES_BEFORE_MARKER = {
    "lock",
    "secrets",
    "valkey",
}  # left by every start of an earlier version, even an aborted one


def state_directory() -> Path:
    """Return the directory for the state of all checkouts of this user."""
    if os.geteuid() == 0:
        return Path("/var/lib/gpubroker")
    share = os.environ.get("XDG_DATA_HOME") or Path.home() / ".local/share"
    return Path(share) / "gpubroker"


def default_data_directory() -> Path:
    """Return this checkout's own directory; two checkouts never share state."""
    return state_directory() / f"{CHECKOUT.name}-{hashlib.sha256(str(CHECKOUT).encode()).hexdigest()[:8]}"


@dataclass(frozen=True)
class DataDirectories:
    """Subdirectories of a data directory."""

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
        """Files of the product itself."""
        return self.data / "files"


def socket_directory(data: Path) -> Path:
    """Return the directory of the sockets.

    It is beside the data, or in /tmp if that path is too long for a socket.
    """
    beside = data / "run"
    if len(str(beside)) <= LONGEST_SOCKET_FOLDER:
        return beside
    short = hashlib.sha256(str(data).encode()).hexdigest()[:12]
    return Path(tempfile.gettempdir()) / f"gpubroker-{os.geteuid()}-{short}"


def create_directories(
    data: Path, *, servers: UnprivilegedAccount | None, products: UnprivilegedAccount | None
) -> DataDirectories:
    """Create the data directory, or raise a StartupError that says why it cannot be."""
    folders = DataDirectories(data.absolute(), socket_directory(data.absolute()))
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
            give_ownership(place, owner)
            place.chmod(0o700)
        for file in (*folders.secrets.rglob("*"), *folders.files.rglob("*")):
            give_ownership(file, products)  # an earlier start may have run as another user
        folders.sockets.chmod(0o755 if products != servers else 0o700)
        probe = folders.logs / ".probe"
        probe.write_bytes(b"gpubroker")
        probe.unlink()
    except OSError as failure:
        raise StartupError(describe_os_error(failure, folders.data)) from failure
    if servers and not servers.can("test", "-w", str(folders.valkey)):
        raise StartupError(
            f"The user {servers.name}, whom PostgreSQL runs as, cannot reach {folders.data}.\n"
            "A folder above it is closed to others. Choose another: make run DATA=/var/lib/gpubroker/mine"
        )
    free = shutil.disk_usage(folders.data).free
    if free < NEEDED_BYTES:
        raise StartupError(
            f"The disk of {folders.data} is nearly full: {free // 1_000_000} MB are free, "
            f"{NEEDED_BYTES // 1_000_000} MB are needed.\n{FREE_SPACE_HINT}"
        )
    return folders


def describe_os_error(failure: OSError, data: Path) -> str:
    """Return a message for an OSError: what happened, why, and what to do next."""
    where = failure.filename or data
    if failure.errno == errno.ENOSPC:
        return f"The disk is full: {where} could not be written.\n{FREE_SPACE_HINT}"
    if failure.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
        return (
            f"No permission to write {where}.\n"
            f"gpubroker keeps its state in {data}.\n"
            "Make that folder yours, or choose another: make run DATA=<folder>"
        )
    return f"{where} cannot be used: {failure.strerror}.\nChoose another folder: make run DATA=<folder>"


def require_own_directory(data: Path) -> None:
    """Raise unless a directory is new, empty or ours.

    In any other, a start would mix files and FRESH=1 would delete some.
    """
    if not data.exists() or (data / MARKER_FILE).exists():
        return
    names = {place.name for place in data.iterdir()}
    if names >= ENTRIES_BEFORE_MARKER:
        return
    foreign = sorted(names - {"lost+found"})
    if foreign:
        named = ", ".join(foreign[:3]) + (" and more" if len(foreign) > 3 else "")
        raise StartupError(
            f"{data} is not empty and not gpubroker's: it holds {named}.\n"
            "Nothing in it was changed. Choose a new or an empty folder: make run DATA=<folder>"
        )


def delete_state(data: Path) -> None:
    """Delete our own state from the data directory, and nothing else in it."""
    for place in (data / name for name in OWN_ENTRIES):
        if place.is_dir() and not place.is_symlink():
            shutil.rmtree(place)
        else:
            place.unlink(missing_ok=True)
