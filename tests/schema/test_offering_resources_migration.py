"""Migration 0004 gives existing offerings the share that their pods requested so far."""

import pytest
from django.core.management import call_command

from tests.database import OwnDatabase

MODELS = """
INSERT INTO broker_gpumodel (name, memory_gb, memory_grid, compute_slices, spec) VALUES
  ('H100-80GB', 80, 8, 7, '{"profiles": [{"name": "1g.10gb", "memory": 1}, {"name": "3g.40gb", "memory": 4}]}'),
  ('OLD', 16, 0, 1, '{}')
"""
OFFERING = """
INSERT INTO broker_offering (id, gpu_model_id, profile, isolation, price_class, region, label, milli_units, memory_gb,
                             state, created_at, version)
VALUES (%(id)s, %(model)s, %(profile)s, %(isolation)s, 'on_demand', 'eu', '', 1, 1, %(state)s, now(), 1)
"""
EXPECTED = {
    ("H100-80GB", "whole-gpu", "device"): (12_000, 98_304, 204_800),
    ("H100-80GB", "1g.10gb", "hardware"): (1500, 12_288, 25_600),
    ("H100-80GB", "3g.40gb", "hardware"): (6000, 49_152, 102_400),
    ("H100-80GB", "half", "soft"): (6000, 49_152, 102_400),
    ("OLD", "whole-gpu", "device"): (12_000, 98_304, 204_800),
    ("OLD", "quarter", "none"): (3000, 24_576, 51_200),
    (None, "volume", "device"): (0, 0, 0),
}


@pytest.mark.deep
def test_existing_offerings_keep_the_amounts_that_their_pods_requested(own_database: OwnDatabase) -> None:
    call_command("migrate", "broker", "0003", database="owner", interactive=False, verbosity=0)
    with own_database.server.as_administrator(own_database.name) as connection:
        connection.execute("DELETE FROM broker_gpumodel")
        connection.execute(MODELS)
        for number, (model, profile, isolation) in enumerate(EXPECTED):
            row = {"model": model, "profile": profile, "isolation": isolation}
            connection.execute(OFFERING, {**row, "id": f"off_{number}", "state": "draft" if model else "metered"})
        connection.commit()
    call_command("migrate", "broker", database="owner", interactive=False, verbosity=0)
    with own_database.server.as_administrator(own_database.name) as connection:
        rows = connection.execute(
            "SELECT gpu_model_id, profile, isolation, cpu_milli, host_memory_mib, scratch_mib FROM broker_offering"
        ).fetchall()
    assert {(model, profile, isolation): tuple(amounts) for model, profile, isolation, *amounts in rows} == EXPECTED
