"""Find the control plane's programs, built once per version of go.mod and go.sum."""

import hashlib
import os
from pathlib import Path

HERE = Path(__file__).parent
# Which Go module brings which programs. A folder with a go.mod that is not here builds what it calls a tool.
PROGRAMS_BY_MODULE = {
    "etcd": ("etcd",),
    "kubernetes": ("kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubectl"),
    "kwok": ("kwok",),
}


def cache_dir() -> Path:
    """Return the folder that keeps what was built."""
    home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(home) / "gpubroker" / "controlplane"


def modules() -> list[str]:
    """Name the Go modules beside this file."""
    return sorted(file.parent.name for file in HERE.glob("*/go.mod"))


def build_dir(module: str) -> Path:
    """Return the folder of a module's programs: one folder per version of go.mod and go.sum."""
    versions = b"".join((HERE / module / name).read_bytes() for name in ("go.mod", "go.sum"))
    return cache_dir() / f"{module}-{hashlib.sha256(versions).hexdigest()[:16]}"


def find_binary(program: str) -> Path | None:
    """Return a program's path; None when it is not built."""
    override = os.environ.get("CONTROLPLANE")
    folders = [Path(override)] if override else [build_dir(module) for module in modules()]
    return next((folder / program for folder in folders if os.access(folder / program, os.X_OK)), None)


def missing_binaries() -> list[str]:
    """Name the programs of a control plane that are not there."""
    return [name for names in PROGRAMS_BY_MODULE.values() for name in names if find_binary(name) is None]
