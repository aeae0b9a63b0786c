"""Find the control plane's programs, built once per pin."""

import hashlib
import os
from pathlib import Path

HERE = Path(__file__).parent
# Which Go module brings which programs. A folder with a go.mod that is not here builds what it calls a tool.
NEEDED = {
    "etcd": ("etcd",),
    "kubernetes": ("kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubectl"),
    "kwok": ("kwok",),
}


def cache() -> Path:
    """Return the folder that keeps what was built."""
    home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(home) / "gpubroker" / "controlplane"


def modules() -> list[str]:
    """Name the Go modules beside this file."""
    return sorted(file.parent.name for file in HERE.glob("*/go.mod"))


def kept(module: str) -> Path:
    """Return the folder of a module's programs: another pin is another folder."""
    pins = b"".join((HERE / module / name).read_bytes() for name in ("go.mod", "go.sum"))
    return cache() / f"{module}-{hashlib.sha256(pins).hexdigest()[:16]}"


def find(program: str) -> Path | None:
    """Return a program's path; None when it is not built."""
    named = os.environ.get("CONTROLPLANE")
    folders = [Path(named)] if named else [kept(module) for module in modules()]
    return next((folder / program for folder in folders if os.access(folder / program, os.X_OK)), None)


def missing() -> list[str]:
    """Name the programs of a control plane that are not there."""
    return [name for names in NEEDED.values() for name in names if find(name) is None]
