"""Provisioner of a frozen cluster: every call fails until an operator decides.

A cluster is frozen when it is no longer the one that was registered. Nothing is asked of it and nothing
it says is believed.
"""

from datetime import datetime
from typing import Any

from broker.provisioners.base import (
    ClusterUnreachable,
    HeldPod,
    ImagePresence,
    KeptImage,
    LogRead,
    Observation,
    ProvisionSpec,
    VolumeRef,
)


class FrozenProvisioner:
    """Stands in for a cluster's provisioner until an operator unfreezes the cluster."""

    def __init__(self, why: str) -> None:
        self._why = why

    def ensure(self, spec: ProvisionSpec, *, now: datetime) -> Observation:
        raise self._waits()

    def observe(self, spec: ProvisionSpec, *, now: datetime) -> Observation:
        raise self._waits()

    def let_go(self, spec: ProvisionSpec, remains: tuple[HeldPod, ...]) -> None:
        raise self._waits()

    def run_command(self, spec: ProvisionSpec, command: str, *, now: datetime) -> None:
        raise self._waits()

    def remove(self, spec: ProvisionSpec, *, now: datetime) -> Observation:
        raise self._waits()

    def read_log(self, spec: ProvisionSpec, cursor: dict[str, Any], *, newest_only: bool, now: datetime) -> LogRead:
        raise self._waits()

    def names(self) -> list[str]:
        raise self._waits()

    def remove_named(self, name: str, *, now: datetime) -> None:
        raise self._waits()

    def remove_volume(self, volume: VolumeRef, *, now: datetime) -> Observation:
        raise self._waits()

    def keep_image(self, kept: KeptImage, *, now: datetime) -> ImagePresence:
        raise self._waits()

    def drop_image(self, kept: KeptImage, *, now: datetime) -> bool:
        raise self._waits()

    def _waits(self) -> ClusterUnreachable:
        return ClusterUnreachable(f"the cluster is frozen until an operator decides: {self._why}", again_in_s=30.0)
