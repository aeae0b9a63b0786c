"""`make controlplane`: build etcd, Kubernetes and kwok from pinned Go modules, each once per pin."""

import fcntl
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

from tests.controlplane.binaries import HERE, PROGRAMS_BY_MODULE, build_dir, cache_dir, modules

OLDEST_GO = (1, 26)
KEPT_BUILDS = 3


def need_go() -> str:
    """Return the path of `go`; exit with installation advice if missing or too old."""
    go = shutil.which("go") or shutil.which("go", path="/usr/local/go/bin:/usr/lib/go/bin")
    if go is None:
        sys.exit(
            "make controlplane builds Kubernetes from source, and there is no go command on the path.\n"
            f"Install Go {OLDEST_GO[0]}.{OLDEST_GO[1]} or newer (https://go.dev/doc/install) and try again."
        )
    said = subprocess.run([go, "env", "GOVERSION"], capture_output=True, text=True, cwd="/").stdout
    version = tuple(int(part) for part in re.findall(r"\d+", said)[:2])
    if version < (1, 21):  # from 1.21 on, an older go fetches the version that a module asks for
        sys.exit(
            f"make controlplane needs Go {OLDEST_GO[0]}.{OLDEST_GO[1]} or newer; {go} is {said.strip()}.\n"
            "Install a newer one (https://go.dev/doc/install) and put it first on the path."
        )
    return go


def linker_flags(module: str) -> str:
    """Return linker flags that strip debug data and set the Kubernetes version."""
    pin = re.search(
        r"^\s*(?:require )?k8s\.io/kubernetes v(\d+)\.(\d+)\.(\d+)",
        (HERE / module / "go.mod").read_text(),
        re.M,
    )
    if pin is None:
        return "-s -w"
    name, (major, minor, patch) = "k8s.io/component-base/version.git", pin.groups()
    return f"-s -w -X {name}Version=v{major}.{minor}.{patch} -X {name}Major={major} -X {name}Minor={minor}"


def build(go: str, module: str, target: Path) -> str:
    """Build a module into its final folder; return an error text, empty on success."""
    new = target.with_name(f"{target.name}.new")
    shutil.rmtree(new, ignore_errors=True)
    new.mkdir(parents=True)
    processors = str(len(os.sched_getaffinity(0)))
    command = [go, "install", "-p", processors, "-trimpath", "-ldflags", linker_flags(module), "tool"]
    done = subprocess.run(
        command, cwd=HERE / module, env={**os.environ, "GOBIN": str(new), "CGO_ENABLED": "0", "GOWORK": "off"}
    )
    if done.returncode != 0:
        return (
            f"{module} could not be built; go's own words are above. A Go module proxy must be reachable this\n"
            "once (GOPROXY names it); what is built already is kept, so trying again goes on from here."
        )
    if (new / "server").exists():  # etcd's program, before its distributors rename it
        (new / "server").rename(new / "etcd")
    for program in PROGRAMS_BY_MODULE.get(module, ()):
        if not (new / program).exists():
            return f"{module}/go.mod no longer builds {program}: name it there as a tool."
    shutil.rmtree(target, ignore_errors=True)
    new.rename(target)
    return ""


def delete_old_builds(module: str) -> None:
    """Delete all but the three most recently used builds of a module."""
    built = [each for each in cache_dir().glob(f"{module}-*") if re.fullmatch(rf"{module}-[0-9a-f]{{16}}", each.name)]
    for old in sorted(built, key=lambda folder: folder.stat().st_mtime)[:-KEPT_BUILDS]:
        shutil.rmtree(old, ignore_errors=True)


def main() -> int:
    """Build what is missing, one process at a time."""
    os.nice(5)  # whoever works here meanwhile comes first
    cache_dir().mkdir(parents=True, exist_ok=True)
    wrong = []
    with (cache_dir() / "turn").open("w") as turn:
        fcntl.flock(turn, fcntl.LOCK_EX)
        for module in modules():
            target, began = build_dir(module), time.monotonic()
            if not target.is_dir():
                print(f"Building {module}: minutes the first time, never again for this pin", flush=True)
                if complaint := build(need_go(), module, target):
                    wrong.append(complaint)
                    continue
                delete_old_builds(module)
                print(f"{module} took {time.monotonic() - began:.0f} s", flush=True)
            os.utime(target)
    print("\n".join(wrong) or f"The control plane is in {cache_dir()}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
