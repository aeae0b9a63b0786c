"""Trace replays: accounting, month close, comparison and reproducibility."""

import itertools
import json
from datetime import timedelta
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db import transaction

from billing.models import Invoice
from billing.services.demo.replay import replay_environment
from billing.services.demo.replay.replay_environment import usable_models
from billing.services.ledger import ledger_balances
from broker.domain.lifecycle.states import LeaseState
from broker.models import Gpu, Lease, Offering
from broker.services.inventory.gpu_catalogue import gpu_model_specs
from ports import clock
from ports.clock import DatabaseClock
from tenants.services.rls import staff_scope, system_scope
from tests.billing.tax.taxed_tenants import LUMEN, SWISS

HEAD = "created,scheduled,deleted,num_gpu,gpu_milli\n"
MONTH = 31 * 86_400
# Four whole GPUs at once on three, slices, a gang of two, one of no length, and one across the month's end.
TRACE = HEAD + (
    "0,0,1000,1,1000\n0,0,900,1,1000\n5,5,800,1,1000\n10,10,300,1,1000\n20,20,500,1,150\n30,,90,1,400\n"
    "40,40,40,1,100\n1000,1000,2000,2,1000\n2000,,2100,1,580\n"
    f"{MONTH - 100},{MONTH - 100},{MONTH + 100_000},1,440\n"
)

pytestmark = pytest.mark.django_db


def run_replay(folder: Path, trace: str = TRACE, **options: Any) -> dict[str, Any]:
    path = folder / "trace.csv"
    path.write_text(trace)
    call_command("replay", str(path), out=folder / "out", stdout=StringIO(), **options)
    report: dict[str, Any] = json.loads((folder / "out" / "replay.json").read_text())
    return report


def test_a_replay_accounts_for_every_gpu_second_and_every_cent(tmp_path: Path) -> None:
    report = run_replay(tmp_path, fleet="3xH100-80GB", tenants=3)
    assert (report["leases"], report["accepted"], report["refused"]) == (10, 10, 0)
    assert report["queued"] == 5
    assert report["unexplained_gpu_seconds"] == 0
    assert report["charged_minus_active_seconds"] == 0
    assert report["lines_minus_charges"] == 0
    assert sum(float(seconds) for seconds in report["conservation"].values()) == pytest.approx(
        report["total_gpu_seconds"]
    )


def test_a_request_with_free_gpus_starts_and_ends_at_the_times_in_the_trace(tmp_path: Path) -> None:
    run_replay(tmp_path, HEAD + "7,9,1000,1,1000\n30,,90,1,400\n", fleet="3xH100-80GB", tenants=1)
    with system_scope():
        lives = Lease.objects.order_by("name").values_list("active_at", "ended_at")
        since = [
            [(moment - replay_environment.REPLAY_START).total_seconds() for moment in life if moment] for life in lives
        ]
    assert since == [[9, 1000], [30, 90]]


def test_a_queued_request_runs_for_its_full_trace_duration_once_started(tmp_path: Path) -> None:
    run_replay(tmp_path, fleet="3xH100-80GB", tenants=1)
    with system_scope():
        waited = Lease.objects.get(name="openb-0003")
        assert waited.state == LeaseState.RELEASED
        assert waited.active_at is not None
        assert waited.ended_at is not None
        assert (waited.active_at - waited.created_at).total_seconds() == 795 - 10 + 5
        assert (waited.ended_at - waited.active_at).total_seconds() == 290


@pytest.mark.deep
def test_a_replay_without_options_uses_the_defaults_and_prints_its_figures(tmp_path: Path) -> None:
    said = StringIO()
    call_command("replay", "openb", first=40, out=tmp_path, stdout=said)
    report = json.loads((tmp_path / "replay.json").read_text())
    assert (report["gpus"], report["model"], report["seed"]) == (64, "H100-80GB", "1")
    assert (report["requests"], report["refused"], report["accepted"]) == (40, 0, 40)
    values = dict(line.split(maxsplit=1) for line in said.getvalue().splitlines())
    for name in (
        "leases",
        "accepted",
        "refused",
        "queued",
        "queued_p50_s",
        "queued_p95_s",
        "gpu_hours",
        "unexplained_gpu_seconds",
        "charged_minus_active_seconds",
        "lines_minus_charges",
        "digest",
    ):
        assert values[name] == str(report[name])
    for kind in ("sold", "idle", "fragmented", "reserved", "unhealthy"):
        assert values[kind] == f"{report['conservation'][kind]} GPU-seconds"


def test_queue_waits_are_reported_as_percentiles(tmp_path: Path) -> None:
    """One GPU and five requests: four wait 100 to 400 seconds."""
    report = run_replay(tmp_path, HEAD + "0,0,100,1,1000\n" * 5, fleet="1xH100-80GB", tenants=2)
    waits = ("queued", "queued_p50_s", "queued_p95_s", "wait_p95_s", "longest_wait_s")
    assert [report[name] for name in waits] == [4, 200, 400, 400, 400]


def test_revenue_is_reported_per_tenant_and_offering_and_charted_per_day(tmp_path: Path) -> None:
    trace = HEAD + "0,0,3600,1,1000\n0,0,7200,1,1000\n0,0,3600,1,150\n"
    report = run_replay(tmp_path, trace, fleet="3xH100-80GB", tenants=1)
    revenue = {(row["tenant"], row["offering"]): (row["unit_seconds"], row["minor"]) for row in report["revenue"]}
    gpu, slice_ = (
        replay_environment.LIST_PRICES_CENTS["H100-80GB"]["whole-gpu"],
        replay_environment.LIST_PRICES_CENTS["H100-80GB"]["1g.10gb"],
    )
    labels = {offering.profile: offering.label for offering in Offering.objects.all()}
    assert revenue == {
        ("Tenant 1", labels["whole-gpu"]): (10_800, 3 * gpu),
        ("Tenant 1", labels["1g.10gb"]): (3600, slice_),
    }
    page = (tmp_path / "out" / "replay.html").read_text()
    assert page.count('<svg viewBox="0 0 1000') == 2  # where every second went, and how many GPUs each day
    assert [page.count(f'class="fill-{kind}"') for kind in report["conservation"]] == [2] * 5
    assert f"<td>Tenant 1</td><td>{labels['whole-gpu']}</td>" in page
    assert "<polyline" in page


def test_months_close_during_the_replay_and_contain_all_revenue(tmp_path: Path) -> None:
    report = run_replay(tmp_path, fleet="3xH100-80GB", tenants=2)
    with system_scope():
        january = Invoice.objects.filter(period__label="2026-01")
        assert {invoice.finalized_at for invoice in january} == {
            replay_environment.REPLAY_START.replace(month=2, hour=13)
        }
    assert {row["month"] for row in report["months"]} == {"2026-01", "2026-02"}
    assert sum(row["minor"] for row in report["months"]) == sum(row["minor"] for row in report["revenue"])
    assert "Every GPU-second of the fleet" in (tmp_path / "out" / "replay.html").read_text()


def test_months_with_a_taxable_supplier_close_with_tax(tmp_path: Path, settings: Any) -> None:
    settings.SUPPLIER = LUMEN.as_dict()
    report = run_replay(tmp_path, fleet="3xH100-80GB", tenants=2)
    net, gross = (sum(row[name] for row in report["months"]) for name in ("net_minor", "minor"))
    assert (report["not_final"], net) == ([], sum(row["minor"] for row in report["revenue"]))
    assert abs(100 * gross - 119 * net) <= 100 * sum(row["invoices"] for row in report["months"])
    assert report["wrong_invoice_totals"] == 0


def test_a_replay_whose_months_cannot_close_fails_with_the_reason(tmp_path: Path, settings: Any) -> None:
    settings.SUPPLIER = SWISS.as_dict()
    with pytest.raises(CommandError, match="There is no standard tax rate on the last day of 2026-01"):
        run_replay(tmp_path, fleet="3xH100-80GB", tenants=1)
    report = json.loads((tmp_path / "out" / "replay.json").read_text())
    assert report["months"] == []


def test_the_ledger_of_a_replay_balances_and_contains_all_revenue(tmp_path: Path) -> None:
    report = run_replay(tmp_path, fleet="3xH100-80GB", tenants=2)
    with staff_scope():
        (euros,), drifts = ledger_balances.recomputed_trial_balance()
        assert (
            euros.balanced,
            drifts,
            ledger_balances.uncleared_invoices(),
            ledger_balances.missing_events(),
        ) == (True, (), [], [])
    sums = {line.type: line.debit + line.credit for line in euros.lines}
    invoiced = sum(row["minor"] for row in report["months"])
    assert sums == {"receivable": invoiced, "accrued": 0, "revenue": invoiced}


def test_usage_after_the_last_month_of_the_trace_is_charged(tmp_path: Path) -> None:
    long = 20 * 86_400
    trace = HEAD + "".join(f"0,0,{long},1,1000\n" for _ in range(4))
    report = run_replay(tmp_path, trace, fleet="1xH100-80GB", tenants=1)
    assert report["longest_wait_s"] == 3 * long
    assert report["charged_minus_active_seconds"] == 0
    assert {row["month"] for row in report["months"]} == {"2026-01", "2026-02", "2026-03"}


def test_the_same_seed_gives_identical_report_bytes(tmp_path: Path) -> None:
    reports = []
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        with transaction.atomic():
            run_replay(tmp_path / name, fleet="3xH100-80GB", tenants=3, seed="7")
            transaction.set_rollback(True)
        written = [tmp_path / name / "out" / file for file in ("replay.json", "replay.html")]
        reports.append([file.read_bytes() for file in written])
    assert reports[0] == reports[1]


def test_the_duration_of_a_replay_does_not_change_its_report(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    digests = set()
    for length_s in (0, 3):
        now, passed = clock.now(), itertools.count(step=length_s)
        monkeypatch.setattr(
            DatabaseClock, "now", lambda _, now=now, passed=passed: now + timedelta(seconds=next(passed))
        )
        with transaction.atomic():
            digests.add(run_replay(tmp_path, fleet="3xH100-80GB", tenants=3)["digest"])
            transaction.set_rollback(True)
    assert len(digests) == 1


def test_another_seed_assigns_the_requests_to_other_tenants(tmp_path: Path) -> None:
    digests = set()
    for seed in ("1", "2"):
        with transaction.atomic():
            digests.add(run_replay(tmp_path, fleet="3xH100-80GB", tenants=3, seed=seed)["digest"])
            transaction.set_rollback(True)
    assert len(digests) == 2


def test_a_gang_takes_a_whole_node_and_the_next_request_waits(tmp_path: Path) -> None:
    report = run_replay(tmp_path, HEAD + "0,0,100,8,1000\n0,0,100,1,1000\n", fleet="8xH100-80GB", tenants=1)
    assert (report["leases"], report["refused"], report["queued"]) == (2, 0, 1)
    assert report["longest_wait_s"] == 100


def test_a_gang_waits_for_a_single_node_with_enough_free_gpus(tmp_path: Path) -> None:
    trace = HEAD + "0,0,100,5,1000\n0,0,100,5,1000\n0,0,50,4,1000\n"
    report = run_replay(tmp_path, trace, fleet="16xH100-80GB", tenants=1)
    assert (report["refused"], report["queued"], report["longest_wait_s"]) == (0, 1, 100)


def test_a_gang_larger_than_the_fleet_is_refused(tmp_path: Path) -> None:
    report = run_replay(tmp_path, HEAD + "0,0,100,8,1000\n0,0,100,1,1000\n", fleet="4xH100-80GB", tenants=1)
    assert (report["leases"], report["refused"]) == (1, 1)


def test_a_replay_into_a_database_with_leases_is_refused(tmp_path: Path) -> None:
    run_replay(tmp_path, fleet="3xH100-80GB", tenants=1)
    with pytest.raises(CommandError, match="already contains GPUs or leases"):
        run_replay(tmp_path, fleet="3xH100-80GB", tenants=1)


# A slice on each of two GPUs; one ends. By first fit the next goes to the GPU that is empty again, and
# the whole GPU that is asked for then has to wait.
SPREAD = HEAD + "0,0,100,1,500\n0,0,900,1,500\n200,200,700,1,100\n300,300,900,1,1000\n"


def replay_with_each_engine(folder: Path, trace: str, **options: Any) -> list[dict[str, Any]]:
    """Replay with the other placement engines, then with ours for comparison."""
    reports: list[dict[str, Any]] = []
    for rule in ("first-fit", "best-fit", "bid-price"):
        earlier = [folder / report["engine"] / "out" / "replay.json" for report in reports]
        (folder / rule).mkdir()
        with transaction.atomic():
            beside = earlier if rule == "bid-price" else []
            reports.append(run_replay(folder / rule, trace, engine=rule, compare_with=beside, **options))
            transaction.set_rollback(True)
    return reports


def test_placement_engines_are_compared_in_the_report_and_on_its_page(tmp_path: Path) -> None:
    *_, ours = replay_with_each_engine(tmp_path, SPREAD, fleet="2xH100-80GB", tenants=1)
    first, best, own = ours["beside"]
    assert [its["engine"] for its in ours["beside"]] == ["first-fit", "best-fit", "bid-price"]
    assert first["figures"]["queued"] == 1
    assert first["figures"]["gpus.mean_wait_s"] == 400
    assert (first["figures"]["gpus.at_once_percent"], own["figures"]["gpus.at_once_percent"]) == (
        "0.00",
        "100.00",
    )
    assert best["figures"] == own["figures"]
    assert own["figures"]["gangs.at_once_percent"] is None
    assert first["figures"]["slices.at_once_percent"] == "100.00"
    # While the whole GPU waited, a 4g and a 1g lay on one GPU each.
    assert first["figures"]["sold_percent_while_waiting"] == "31.25"
    assert own["figures"]["sold_percent_while_waiting"] is None
    assert first["digest"] != own["digest"] == ours["digest"]
    page = (tmp_path / "bid-price" / "out" / "replay.html").read_text()
    assert "The same requests, placed by other rules" in page
    assert '<td class="numeric">31.25</td><td class="numeric">–</td>' in page
    assert "placed by other rules" not in (tmp_path / "best-fit" / "out" / "replay.html").read_text()


def test_sold_share_until_the_last_request_refers_to_the_whole_fleet(tmp_path: Path) -> None:
    trace = HEAD + "0,0,100,1,1000\n50,50,60,1,1000\n200,200,300,1,1000\n"
    report = run_replay(tmp_path, trace, fleet="2xH100-80GB", tenants=1)
    assert report["sold_percent_until_last_request"] == "27.50"  # 110 seconds of 400
    assert report["placed"]["gpus"] == {
        "placed": 3,
        "at_once": 3,
        "at_once_percent": "100.00",
        "mean_wait_s": 0,
    }
    assert report["placed"]["gangs"]["mean_wait_s"] is None


def test_replays_with_different_settings_cannot_be_compared(tmp_path: Path) -> None:
    with transaction.atomic():
        run_replay(tmp_path, SPREAD, fleet="2xH100-80GB", tenants=1)
        transaction.set_rollback(True)
    earlier = tmp_path / "earlier.json"
    (tmp_path / "out" / "replay.json").rename(earlier)
    with pytest.raises(CommandError, match="differs in its gpus: 2, not 3"):
        run_replay(tmp_path, SPREAD, fleet="3xH100-80GB", tenants=1, compare_with=[earlier])
    with pytest.raises(CommandError, match="cannot be read: No such file"):
        run_replay(tmp_path, SPREAD, fleet="2xH100-80GB", tenants=1, compare_with=[tmp_path / "none"])
    for text in ("{", "{}", "[]"):
        earlier.write_text(text)
        with pytest.raises(CommandError, match=r"is not a replay report"):
            run_replay(tmp_path, SPREAD, fleet="2xH100-80GB", tenants=1, compare_with=[earlier])


UNPRICED = sorted(gpu_model_specs().keys() - set(usable_models()))


def test_every_gpu_model_with_a_list_price_can_be_replayed(tmp_path: Path) -> None:
    assert {"H100-80GB", "H200-141GB", "A100-80GB"} <= set(usable_models())
    assert "B200-180GB" in UNPRICED
    for model in usable_models():
        with transaction.atomic():
            report = run_replay(tmp_path, HEAD + "0,0,100,1,1000\n0,0,50,1,200\n", fleet=f"2x{model}", tenants=1)
            assert (report["accepted"], report["unexplained_gpu_seconds"]) == (2, 0)
            transaction.set_rollback(True)


def test_a_failed_replay_setup_is_rolled_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(replay_environment.LIST_PRICES_CENTS, "H100-80GB", {"whole-gpu": 289})
    with pytest.raises(KeyError):
        replay_environment.build_environment(model="H100-80GB", gpus=2, tenant_count=1)
    assert (Gpu.objects.count(), Offering.objects.count()) == (0, 0)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"fleet": "64"}, "--fleet must be"),
        ({"fleet": "0xH100-80GB"}, "--fleet must be"),
        ({"fleet": "3xRTX 9999"}, "--fleet must be"),
        ({"fleet": "\N{SUPERSCRIPT TWO}xH100-80GB"}, "--fleet must be"),
        ({"fleet": "9" * 5000 + "xH100-80GB"}, "--fleet must be"),
        *(({"fleet": f"2x{model}"}, "with a list price: ") for model in UNPRICED),
        ({"tenants": 0}, "--tenants must be"),
    ],
)
def test_an_invalid_fleet_or_tenant_count_is_refused(tmp_path: Path, options: Any, says: str) -> None:
    with pytest.raises(CommandError, match=says):
        run_replay(tmp_path, **options)


def test_an_unreadable_trace_is_refused_with_its_line_number(tmp_path: Path) -> None:
    with pytest.raises(CommandError, match="Line 2"):
        run_replay(tmp_path, HEAD + "x\n", fleet="3xH100-80GB")
