"""Independent verifier: recomputation, reported differences and unreadable files."""

import ast
import runpy
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo, available_timezones

import pytest

from billing.domain.periods import month_of
from billing.verify import verify
from billing.verify.verify import Unreadable, check, main, midnight_of_first, report_lines, rounded
from tests.billing.verify.written_bundles import (
    Document,
    quote,
    sample_bundle,
    sample_bundle_with_terms,
    step,
    write_bundle,
)

PROGRAM = Path(verify.__file__)
ROOT = PROGRAM.parents[2]


def differences_after(change: Callable[[Document], Any]) -> list[str]:
    """Change a bundle, renew its digest and return the differences."""
    document = sample_bundle()
    change(document)
    return check(write_bundle(document)).differences


def test_the_verifier_imports_only_the_standard_library() -> None:
    imported = set[str]()
    for node in ast.walk(ast.parse(PROGRAM.read_text())):
        if isinstance(node, ast.Import):
            imported |= {alias.name.partition(".")[0] for alias in node.names}
        if isinstance(node, ast.ImportFrom):
            assert not node.level
            imported.add(str(node.module).partition(".")[0])
    assert imported <= sys.stdlib_module_names
    assert not imported & {"socket", "urllib", "http", "ssl", "subprocess", "os", "importlib"}


def test_the_verifier_reports_the_recomputed_figures() -> None:
    report = check(write_bundle(sample_bundle()))
    assert report.equal
    assert list(report_lines(report)) == [
        "invoice 2026-11-0001 of ten_a, 2026-11",
        "  leases       2, with 5 transitions",
        "  stretches    2 of activity",
        "  seconds      6,000, counted per unit",
        "  lines        1 recomputed, 1 on the invoice",
        "  total        2.23 EUR recomputed, 2.23 EUR on the invoice",
        "equal: every amount matches",
    ]


def test_a_tenant_price_precedes_the_list_price_while_valid() -> None:
    """A quarter of an hour at €0.50 that no line mentions."""
    document = sample_bundle_with_terms()
    assert check(write_bundle(document)).equal
    listed = document["prices"][0]
    window = {"since": "2026-11-10T08:15:05Z", "until": "2026-11-10T08:30:05Z"}
    document["prices"].append({**listed, **window, "id": 8, "nano_per_hour": "500000000", "own": True})
    words = check(write_bundle(document)).differences
    assert "line 1, seconds: the invoice says 6,000, recomputed is 5,100" in words
    assert any("used 900 s of off_a at price 8, which is 0.13 EUR" in each for each in words)


def test_the_own_flag_of_a_price_is_a_boolean() -> None:
    document = sample_bundle_with_terms()
    document["prices"][0]["own"] = 1
    with pytest.raises(Unreadable, match="own is neither true nor false"):
        check(write_bundle(document))


@pytest.mark.parametrize("how", [["-m", "billing.verify"], ["-I", "-S", "verify.py"]])
def test_the_verifier_runs_as_a_module_and_as_one_copied_file(how: list[str], tmp_path: Path) -> None:
    (tmp_path / "verify.py").write_bytes(PROGRAM.read_bytes())
    good, bad = tmp_path / "good.json", tmp_path / "bad.json"
    good.write_bytes(write_bundle(sample_bundle()))
    bad.write_bytes(write_bundle(sample_bundle()).replace(b'"minor": 223', b'"minor": 224'))
    for path, code in ((good, 0), (bad, 1), (tmp_path / "none.json", 2)):
        where = ROOT if "-m" in how else tmp_path
        done = subprocess.run([sys.executable, *how, str(path)], cwd=where, capture_output=True, text=True, check=False)
        assert done.returncode == code, done.stdout + done.stderr
        assert ("2.23 EUR recomputed" in done.stdout) == (code < 2)


def test_the_exit_code_tells_equal_different_and_unreadable_apart(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "bundle.json"
    path.write_bytes(write_bundle(sample_bundle()))
    assert main([str(path)]) == 0
    path.write_bytes(write_bundle(sample_bundle()) + b" ")
    assert main([str(path)]) == 1
    assert "DIFFERS      the file: its SHA-256 does not match" in capsys.readouterr().out
    path.write_bytes(b"[]")
    assert main([str(path)]) == 2
    assert "cannot be verified: it is not an invoice bundle" in capsys.readouterr().err
    for arguments in ([], ["--help"], ["a", "b"]):
        assert main(arguments) == 2
        assert capsys.readouterr().err == "usage: python verify.py bundle.json\n"


def test_the_verifier_module_exits_with_its_code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "bundle.json").write_bytes(write_bundle(sample_bundle()))
    monkeypatch.setattr(sys, "argv", ["verify", str(tmp_path / "bundle.json")])
    with pytest.raises(SystemExit) as ended:
        runpy.run_module("billing.verify", run_name="__main__")
    assert ended.value.code == 0


def line(document: Document, **changes: Any) -> None:
    document["lines"][0].update(changes)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda d: d["invoice"].update(total=224), "the total: the invoice says 2.24 EUR, recomputed is 2.23 EUR"),
        (lambda d: line(d, minor=222), "line 1, amount: the invoice says 2.22 EUR, recomputed is 2.23 EUR"),
        (lambda d: line(d, leases=3), "line 1, leases: the invoice says 3, recomputed is 2"),
        (lambda d: line(d, unit_seconds=6001), "line 1, seconds: the invoice says 6,001, recomputed is 6,000"),
        (lambda d: line(d, exact="1"), "line 1, exact amount in 1/3600/10^9: the invoice says 1, recomputed is"
                                       " 8,040,000,000,000"),
        (lambda d: line(d, n=2), "the lines: they are not numbered from 1 without gaps"),
        (lambda d: line(d, project="prj_b"), "a line is missing: prj_a used 6,000 s of off_a at price 7, which is"
                                             " 2.23 EUR"),
        (lambda d: d["lines"].clear(), "a line is missing: prj_a used 6,000 s of off_a at price 7, which is 2.23 EUR"),
        (lambda d: d["prices"][0].update(nano_per_hour="1340000001"),
         "line 1, exact amount in 1/3600/10^9: the invoice says 8,040,000,000,000, recomputed is 8,040,000,006,000"),
        (lambda d: d["prices"][0].update(since="2026-11-10T08:00:06Z"),
         "lse_a: of the 3,600 s from 2026-11-10 08:00:05 UTC to 2026-11-10 09:00:05 UTC, 3,599 s have a price, each"
         " once"),
        (lambda d: d["prices"].append({**d["prices"][0], "id": 8}),
         "lse_a: of the 3,600 s from 2026-11-10 08:00:05 UTC to 2026-11-10 09:00:05 UTC, 7,200 s have a price, each"
         " once"),
        (lambda d: d["prices"].append(d["prices"][0]), "the prices: one occurs twice"),
        (lambda d: d["prices"][0].update(nano_per_hour="-1"), "price 7: it is negative or ends before it starts"),
        (lambda d: d["prices"][0].update(until="2026-01-01T00:00:00Z"),
         "price 7: it is negative or ends before it starts"),
        (lambda d: d["leases"].pop(0), "line 1, leases: the invoice says 2, recomputed is 1"),
        (lambda d: d["leases"].append(d["leases"][0]), "lse_a: it occurs twice"),
        (lambda d: d["leases"][0]["steps"].pop(0), "lse_a: its transitions are incomplete or not numbered from 0"),
        (lambda d: d["leases"][0]["steps"].pop(1), "lse_a: its transitions are incomplete or not numbered from 0"),
        (lambda d: d["leases"][0]["steps"].pop(), "lse_a: it is in the bundle but not on this invoice"),
        (lambda d: d["leases"][0]["steps"][2].update(at="2026-11-10T07:00:00Z"),
         "lse_a: transition 2 is earlier than the one before it"),
        (lambda d: d["leases"][0]["steps"][1].update(quantity=0), "lse_a: transition 1 has 0 units"),
        (lambda d: d["leases"][0]["steps"][1].update(state="stopped"),
         "lse_a: it is in the bundle but not on this invoice"),
        (lambda d: d["leases"][1].update(late=[]), "lse_b: it is in the bundle but not on this invoice"),
        (lambda d: d["leases"][0].update(late=[{"seq": 1, "month": "2026-10"}]),
         "lse_a: transition 1 starts no charged interval in 2026-10"),
        (lambda d: d["months"].pop(), "the months: 2026-10 are not unique or lack the invoice's month"),
        (lambda d: d["months"][1].update(label="2026-10"),
         "the months: 2026-10, 2026-10 are not unique or lack the invoice's month"),
        (lambda d: d["months"][1].update(start="2026-10-31T23:00:01Z"),
         "the month 2026-11: the bundle says it begins at 2026-10-31 23:00:01 UTC; midnight of the first in"
         " Europe/Berlin is 2026-10-31 23:00:00 UTC by the time zones of this computer"),
        (lambda d: d["months"][1].update(end="2026-11-30T22:59:59Z"),
         "the month 2026-11: the bundle says it ends at 2026-11-30 22:59:59 UTC; midnight of the first in"
         " Europe/Berlin is 2026-11-30 23:00:00 UTC by the time zones of this computer"),
    ],
)  # fmt: skip
def test_each_difference_in_a_bundle_is_reported(change: Callable[[Document], Any], words: str) -> None:
    assert words in differences_after(change)


def test_usage_of_a_closed_month_counts_only_if_marked_as_late() -> None:
    def earlier(document: Document) -> None:
        steps = document["leases"][0]["steps"]
        document["leases"][0]["steps"] = [
            step(0, "2026-10-05T00:00:00Z", "active"),
            step(1, "2026-10-06T00:00:00Z", "queued"),
            *({**each, "seq": each["seq"] + 1} for each in steps[1:]),
        ]

    assert differences_after(earlier) == []


def test_a_price_change_splits_usage_and_amounts_stay_exact() -> None:
    document = sample_bundle()
    first, until = document["prices"][0], "2026-11-10T08:00:06Z"
    document["prices"] = [{**first, "until": until}, {**first, "id": 8, "nano_per_hour": "1", "since": until}]
    of = document["lines"][0]
    document["lines"] = [
        {**of, "unit_seconds": 2401, "exact": str(2401 * 1_340_000_000), "minor": 89},
        {**of, "n": 2, "price": 8, "leases": 1, "unit_seconds": 3599, "exact": "3599", "minor": 0},
    ]
    document["invoice"]["total"] = 89
    report = check(write_bundle(document))
    assert report.differences == []
    assert report.sums["prj_a", "off_a", 8].amount == Fraction(3599, 3600 * 10**9)


def test_a_lease_is_verified_at_its_quoted_price() -> None:
    document = sample_bundle()
    price = {**document["prices"][0], "id": 8, "nano_per_hour": "3600000000"}
    document["prices"][0]["until"] = "2026-11-10T07:56:00Z"  # between quote and launch
    document["prices"].append({**price, "since": "2026-11-10T07:56:00Z", "until": "2026-11-10T08:30:00Z"})
    document["prices"].append({**price, "id": 9, "nano_per_hour": "7", "since": "2026-11-10T08:30:00Z"})
    document["leases"][0]["promised"] = quote()
    assert check(write_bundle(document)).differences == []
    document["leases"][0]["promised"] = None
    assert "line 1, seconds: the invoice says 6,000, recomputed is 2,400" in check(write_bundle(document)).differences


def test_a_quote_applies_to_its_own_offering_only() -> None:
    document = sample_bundle()
    document["leases"][0]["promised"] = quote()
    document["leases"][0]["steps"][1]["offering"] = "off_b"  # of which nothing is priced
    assert any("0 s have a price" in words for words in check(write_bundle(document)).differences)


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"price": 8}, "lse_a, quote quo_a: its price 8 is not in the bundle"),
        ({"price": 8}, "line 1, leases: the invoice says 2, recomputed is 1"),
        ({"nano_per_hour": "1340000001"}, "lse_a, quote quo_a: price 7 differs from the quoted price"),
        ({"nano_per_hour": "1340000001"}, "line 1, exact amount in 1/3600/10^9: the invoice says 8,040,000,000,000,"
                                          " recomputed is 8,040,000,003,600"),
        ({"nano_per_hour": "-1"}, "lse_a, quote quo_a: its price is negative or its duration is zero"),
        ({"max_duration_s": 0}, "lse_a, quote quo_a: its price is negative or its duration is zero"),
        ({"max_duration_s": 7200}, "lse_a, quote quo_a, cap: the invoice says 1.34 EUR, recomputed is 2.68 EUR"),
        ({"cap": 135}, "lse_a, quote quo_a, cap: the invoice says 1.35 EUR, recomputed is 1.34 EUR"),
        ({"quantity": 2}, "lse_a, quote quo_a: it is for 2 of off_a, cited 2026-11-10 08:00:00 UTC; requested were 1 of"
                          " off_a, 2026-11-10 08:00:00 UTC"),
        ({"offering": "off_b"}, "lse_a, quote quo_a: it is for 1 of off_b, cited 2026-11-10 08:00:00 UTC; requested"
                                " were 1 of off_a, 2026-11-10 08:00:00 UTC"),
        ({"cited": "2026-11-10T08:00:01Z"}, "lse_a, quote quo_a: it is for 1 of off_a, cited 2026-11-10 08:00:01 UTC;"
                                            " requested were 1 of off_a, 2026-11-10 08:00:00 UTC"),
        ({"made": "2026-11-10T08:00:01Z"}, "lse_a, quote quo_a: it was cited before it was created or after"
                                           " it expired"),
        ({"expires": "2026-11-10T07:59:59Z"}, "lse_a, quote quo_a: it was cited before it was created or after"
                                              " it expired"),
        ({"made": "2025-12-31T23:59:59Z"}, "lse_a, quote quo_a: price 7 started after the quote was created"),
    ],
)  # fmt: skip
def test_an_altered_quote_is_reported(changed: Document, words: str) -> None:
    assert words in differences_after(lambda d: d["leases"][0].update(promised=quote(**changed)))


def test_a_quote_used_by_two_leases_is_reported() -> None:
    def twice(document: Document) -> None:
        for lease in document["leases"]:
            lease["promised"] = quote()

    assert "lse_b: another lease cites quote quo_a too" in differences_after(twice)


def test_a_quote_of_a_lease_without_steps_does_not_stop_the_verification() -> None:
    words = differences_after(lambda d: d["leases"][0].update(promised=quote(), steps=[]))
    assert "lse_a: it is in the bundle but not on this invoice" in words


def test_an_unknown_time_zone_is_reported_as_unchecked() -> None:
    document = sample_bundle()
    document["months"][1].update(start_zone="Mars/Olympus", end_zone="../etc/passwd")
    report = check(write_bundle(document))
    assert report.equal
    assert report.unchecked == [
        "this computer does not know the time zone Mars/Olympus for 2026-11",
        "this computer does not know the time zone ../etc/passwd for 2026-11",
    ]
    assert any("not checked" in words for words in report_lines(report))


@pytest.mark.parametrize("label", ["November", "0001-01", "9999-12", "2026-13"])
def test_an_invalid_month_label_is_reported(label: str) -> None:
    document = sample_bundle()
    document["months"][1]["label"] = label
    assert (
        f"the months: 2026-10, {label} are not unique or lack the invoice's month"
        in check(write_bundle(document)).differences
    )


def test_the_report_states_drafts_currencies_without_decimals_and_differences() -> None:
    document = sample_bundle()
    document["invoice"].update(number=None, currency="JPY", decimals=0, total=-3)
    words = list(report_lines(check(write_bundle(document))))
    assert words[0] == "the draft invoice inv_a of ten_a, 2026-11"
    assert words[5] == "  total        2 JPY recomputed, -3 JPY on the invoice"
    assert words[-1] == "2 differences"


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda d: d.update(version=9), "it has version 9, but this program supports 1 to 8; get a newer program"),
        (lambda d: d.update(format="other"), "it is not an invoice bundle"),
        (lambda d: d.update(credits=[]), "the bundle has missing or unknown names: ['credits']"),
        (lambda d: d.pop("lines"), "the bundle has missing or unknown names: ['lines']"),
        (lambda d: d["leases"][0].update(quote="x"),
         "the bundle: leases, 1 has missing or unknown names: ['quote']"),
        (lambda d: d.update(lines={}), "the bundle: lines is not a list"),
        (lambda d: d.update(lines=[3]), "the bundle: lines, 1 is not an object"),
        (lambda d: line(d, minor=1.5), "1.5 is not a whole number"),
        (lambda d: line(d, minor=float("nan")), "NaN is not a whole number"),
        (lambda d: line(d, minor=True), "the bundle: lines, 1: minor is not a whole number"),
        (lambda d: line(d, minor="2"), "the bundle: lines, 1: minor is not a whole number"),
        (lambda d: line(d, exact=2), "the bundle: lines, 1: exact is not a number written in digits"),
        (lambda d: line(d, exact="1e9"), "the bundle: lines, 1: exact is not a number written in digits"),
        (lambda d: line(d, exact="9" * 41), "the bundle: lines, 1: exact is not a number written in digits"),
        (lambda d: line(d, project=None), "the bundle: lines, 1: project is not plain text"),
        (lambda d: d["invoice"].update(currency="EUR\nequal"), "the bundle: invoice: currency is not plain text"),
        (lambda d: d["invoice"].update(tenant="\x1b[2J"), "the bundle: invoice: tenant is not plain text"),
        (lambda d: d.update({"\x1b[2J": 1}),
         "the bundle has missing or unknown names: ['\\x1b[2J']"),
        (lambda d: d["leases"][0]["steps"][0].update(state=["active"]),
         "the bundle: leases, 1: steps, 1: state is not plain text"),
        (lambda d: d["prices"][0].update(since=None),
         "the bundle: prices, 1: since is not a time like 2026-11-30T23:00:00Z"),
        (lambda d: d["prices"][0].update(since="2026-11-30T23:00:00"),
         "the bundle: prices, 1: since is not a time like 2026-11-30T23:00:00Z"),
        (lambda d: d["prices"][0].update(since="2026-11-31T23:00:00Z"),
         "the bundle: prices, 1: since is not a time like 2026-11-30T23:00:00Z"),
        (lambda d: d["invoice"].update(decimals=-1), "the bundle: invoice: decimals: -1 is not valid for any currency"),
        (lambda d: d["invoice"].update(decimals=10**9),
         "the bundle: invoice: decimals: 1000000000 is not valid for any currency"),
        (lambda d: d["leases"][0]["steps"][0].update(state="resting"),
         "the bundle: leases, 1: steps, 1: state: resting is an unknown state"),
    ],
)  # fmt: skip
def test_a_bundle_with_unknown_values_is_unreadable(change: Callable[[Document], Any], words: str) -> None:
    with pytest.raises(Unreadable) as refused:
        differences_after(change)
    assert str(refused.value) == words


@pytest.mark.parametrize(
    ("raw", "words"),
    [
        (b"", "it is not valid JSON"),
        (b"\xff\xfe", "it is not valid JSON"),
        (b"[" * 100_000, "it is not valid JSON"),
        (b"1" * 5000, "it is not valid JSON"),
        (b"3", "it is not an invoice bundle"),
        (b'{"format":"gpubroker-invoice","format":"gpubroker-invoice"}', "a name occurs twice"),
        (write_bundle(sample_bundle())[:-40], "it is not valid JSON"),
    ],
    ids=["empty", "not UTF-8", "deeply nested", "long number", "a number", "duplicate name", "truncated"],
)
def test_a_file_that_is_no_bundle_is_unreadable(raw: bytes, words: str) -> None:
    with pytest.raises(Unreadable, match=words):
        check(raw)


def test_halves_are_rounded_away_from_zero() -> None:
    halves = [Fraction(n, 2) for n in range(-5, 6)]
    assert [rounded(half) for half in halves] == [-3, -2, -2, -1, -1, 0, 1, 1, 2, 2, 3]
    assert rounded(Fraction(1, 2) - Fraction(1, 10**20)) == 0


def test_the_verifier_computes_month_boundaries_in_every_time_zone() -> None:
    wrong = []
    for name in sorted(available_timezones()):
        zone = ZoneInfo(name)
        for month in range(1, 13):
            middle = datetime(2026, month, 15, tzinfo=UTC)
            span = month_of(name, middle)
            label = f"2026-{month:02d}"
            mine = midnight_of_first(label, 0, zone), midnight_of_first(label, 1, zone)
            wrong += [(name, label)] if mine != (span.start, span.end) else []
    assert wrong == []
