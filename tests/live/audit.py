"""Requests of the broker to an API server, from its audit log."""

import json
import shutil
import tempfile
from collections import Counter
from pathlib import Path
from typing import Self

from broker.provisioners.kubernetes.render.cluster import NAMESPACE
from tests.controlplane.commands import Options

WRITES = {"create", "update", "patch", "delete", "deletecollection"}
READS = {"get", "list"}
POLICY = {
    "apiVersion": "audit.k8s.io/v1",
    "kind": "Policy",
    "omitStages": ["RequestReceived", "ResponseStarted"],
    "rules": [
        {"level": "Metadata", "userGroups": [f"system:serviceaccounts:{NAMESPACE}"]},
        {"level": "None"},
    ],
}


class Audit:
    """Audit log of an API server, with its flags."""

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="gpubroker-audit-"))
        (self.folder / "policy.yaml").write_text(json.dumps(POLICY))
        self._log, self._from = self.folder / "audit.log", 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)

    def options(self) -> Options:
        flags = (
            f"--audit-policy-file={self.folder}/policy.yaml",
            f"--audit-log-path={self._log}",
            "--audit-log-maxsize=2000",
        )
        return Options(more={"kube-apiserver": flags})

    def forget(self) -> None:
        """Reset the count."""
        self._from = self._log.stat().st_size if self._log.exists() else 0

    def made(self) -> Counter[tuple[str, str]]:
        """Count the broker's requests since then, as ("get", "pods").

        The pages of one list count as one.
        """
        counts: Counter[tuple[str, str]] = Counter()
        with self._log.open("rb") as log:
            log.seek(self._from)
            for line in log:
                if line.endswith(b"\n"):
                    event = json.loads(line)
                    if "continue=" in event["requestURI"]:
                        continue
                    what = event.get("objectRef", {})
                    part = f"/{what['subresource']}" if "subresource" in what else ""
                    counts[event["verb"], what.get("resource", event["requestURI"]) + part] += 1
        return counts
