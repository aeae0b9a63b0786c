"""The table of XIDs beside NVIDIA's catalogue."""

import csv
from pathlib import Path

import pytest

from broker.domain.telemetry.xids import UNKNOWN, XIDS, Effect, find_xid

CATALOGUE = list(csv.DictReader((Path(__file__).parents[3] / "vendors/xids.csv").read_text().splitlines()))


def test_every_code_of_the_catalogue_is_known() -> None:
    assert {int(row["code"]) for row in CATALOGUE} == set(XIDS)


@pytest.mark.parametrize("row", CATALOGUE, ids=[row["code"] for row in CATALOGUE])
def test_effects_follow_the_catalogue(row: dict[str, str]) -> None:
    effect = find_xid(int(row["code"])).effect
    if row["catalogue_action"] in ("RESET_GPU", "RESTART_BM"):
        assert effect.is_providers
    if row["cause_class"] == "application":
        assert effect is Effect.INFORMS
    if effect is Effect.INFORMS:
        assert row["cause_class"] == "application"


def test_a_contained_memory_error_hits_one_program() -> None:
    assert find_xid(94).effect is Effect.LOSES_SLICE


def test_an_unknown_code_is_recorded_only() -> None:
    assert find_xid(9999) == UNKNOWN
    assert UNKNOWN.effect is Effect.RECORDS
