"""Handwritten bundles, and tampered ones."""

import hashlib
import json
from typing import Any

Document = dict[str, Any]


def write_bundle(document: Document) -> bytes:
    """Encode a document as a bundle with its digest."""
    parts = {name: part for name, part in document.items() if name != "sha256"}
    body = json.dumps(parts).removesuffix("}") + ",\n"
    return f'{body}"sha256":"{hashlib.sha256(body.encode()).hexdigest()}"}}\n'.encode()


def step(seq: int, at: str, state: str, *, offering: str = "off_a", quantity: int = 1) -> Document:
    return {
        "seq": seq,
        "at": at,
        "state": state,
        "offering": offering,
        "project": "prj_a",
        "quantity": quantity,
    }


def quote(**changed: Any) -> Document:
    """Return the quote that lse_a redeems: one hour of one unit at €1.34."""
    return {
        "quote": "quo_a",
        "price": 7,
        "offering": "off_a",
        "nano_per_hour": "1340000000",
        "quantity": 1,
        "max_duration_s": 3600,
        "cap": 134,
        "made": "2026-11-10T07:55:00Z",
        "expires": "2026-11-10T08:05:00Z",
        "cited": "2026-11-10T08:00:00Z",
        **changed,
    }


def sample_bundle() -> Document:
    """Return a bundle with two priced lines."""
    price = {"id": 7, "offering": "off_a", "nano_per_hour": "1340000000"}
    return {
        "format": "gpubroker-invoice",
        "version": 1,
        "invoice": {"id": "inv_a", "tenant": "ten_a", "number": "2026-11-0001", "month": "2026-11",
                    "currency": "EUR", "decimals": 2, "total": 223},
        "months": [
            {"label": "2026-10", "start": "2026-09-30T22:00:00Z", "end": "2026-10-31T23:00:00Z",
             "start_zone": "Europe/Berlin", "end_zone": "Europe/Berlin"},
            {"label": "2026-11", "start": "2026-10-31T23:00:00Z", "end": "2026-11-30T23:00:00Z",
             "start_zone": "Europe/Berlin", "end_zone": "Europe/Berlin"},
        ],
        "prices": [{**price, "since": "2026-01-01T00:00:00Z", "until": None}],
        "lines": [{"n": 1, "project": "prj_a", "offering": "off_a", "price": 7, "leases": 2, "unit_seconds": 6000,
                   "exact": str(6000 * 1_340_000_000), "minor": 223}],
        "leases": [
            {"id": "lse_a", "promised": None, "late": [], "steps": [
                step(0, "2026-11-10T08:00:00Z", "queued"), step(1, "2026-11-10T08:00:05Z", "active"),
                step(2, "2026-11-10T09:00:05Z", "releasing")]},
            {"id": "lse_b", "promised": None, "late": [{"seq": 0, "month": "2026-10"}], "steps": [
                step(0, "2026-10-31T22:30:00Z", "active", quantity=2), step(1, "2026-10-31T22:50:00Z", "released")]},
        ],
    }  # fmt: skip


def sample_bundle_with_terms() -> Document:
    """Return the sample bundle in the version that states whose a price is."""
    document = sample_bundle()
    document["version"], document["taxes"] = 3, []
    document["invoice"] |= {"tax": 0, "treatment": ""}
    document["lines"] = [
        {**line, "tax_category": "", "tax": 0, "given_back_s": 0, "given_back": "0"} for line in document["lines"]
    ]
    document["prices"] = [{**price, "own": False, "free_start_s": 0} for price in document["prices"]]
    for lease in document["leases"]:
        lease["steps"] = [{**step, "taken": False} for step in lease["steps"]]
    return document
