"""One name for one thing in the API: types, money, and words that are not used."""

import json
import re
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

import pytest

from web.http.openapi import openapi_document

# An invoice bundle is a file with a version of its own, which anybody's copy of the verifier reads.
OF_BUNDLES = re.compile(r"Bundle")
REQUEST = re.compile(r"Request$")
# Names that are no words, or words for what has another name: the name to use instead.
FORBIDDEN = {
    "n": "position, line or a count",
    "seen": "found",
    "per_hour": "price_per_hour",
    "price": "price_per_hour or package_price",
    "per_cent": "percent",
    "why": "reason",
    "what": "kind or text",
    "words": "text",
    "in_words": "description",
    "moves": "relocations",
    "places": "placements",
    "made_at": "created_at",
    "made_by": "created_by",
    "created": "created_at",
    "asked_at": "requested_at",
    "asked_by": "requested_by",
    "start_at": "since",
    "end": "until",
    "ref": "subject_id",
    "idem": "idempotency_key",
    "most": "max_…",
    "at_most": "hold or max_cost",
    "total_cap": "max_cost",
    "by": "group_by, source or actor_label",
    "next_step": "fix",
    "state_at": "state_since",
    "step_at": "step_since",
    "queues_since": "queued_since",
    "attempts": "attempt_count",
    "leases_total": "lease_count",
    "memory_grid": "memory_slices",
}
# Objects named `price` have the price in a field of their own.
OBJECTS = {("LineExplanationOut", "price")}
# Where an operator reads, a reference has id and name or more; elsewhere it is the id.
REFERENCES = {"tenant", "project", "cluster", "node", "gpu", "lease", "offering"}
# A list is of the rows that belong to its object, and has their type.
MONEY = {"MoneyOut", "PriceOut", "ExactAmountOut"}
LISTS = {"items", "lines", "steps", "leases", "quotas", "gpus", "invoices", "accounts", "ports", "tiers"}
OF_SEVERAL_TYPES = {
    "status": "an object of leases and volumes, whose state is in it; of a condition true; of a problem the number",
    "limit": "of a quota in its unit, of a budget an amount",
    "launch": "of a schedule without name, project and dates",
    "fix": "of a problem a text with a link, elsewhere the text",
    "actor": "of a transition without id",
}

MOMENT = re.compile(r"(_at|_since|_until|_before|_date|_start|since|until|as_of|^at|last_sign_in)$")


@pytest.fixture(scope="module")
def schemas() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(openapi_document())["components"]["schemas"]
    return {name: each for name, each in found.items() if not OF_BUNDLES.match(name)}


def properties(schemas: dict[str, Any]) -> Iterator[tuple[str, str, Any]]:
    for schema, described in schemas.items():
        for name, each in described.get("properties", {}).items():
            yield schema, name, each


def type_of(described: Any, schemas: dict[str, Any]) -> str:
    """Return the type of a property: without null, enumerations as strings, dates by their format."""
    for choice in ("allOf", "oneOf", "anyOf"):
        if choice in described:
            known = [each for each in described[choice] if each.get("type") != "null"]
            known = [each for each in known if not re.search(r"(Null|Blank)Enum", str(each))]
            return "|".join(sorted({type_of(each, schemas) for each in known}))
    if "$ref" in described:
        name = described["$ref"].rpartition("/")[2]
        return type_of(schemas[name], schemas) if "enum" in schemas[name] else name
    kind = described.get("type", "any")
    kind = "|".join(each for each in kind if each != "null") if isinstance(kind, list) else kind
    if kind == "array":
        return f"[{type_of(described['items'], schemas)}]"
    return described["format"] if described.get("format") in ("date", "date-time") else kind


def test_forbidden_names_are_nowhere(schemas: dict[str, Any]) -> None:
    found = {
        f"{schema}.{name}": FORBIDDEN[name]
        for schema, name, _ in properties(schemas)
        if name in FORBIDDEN and (schema, name) not in OBJECTS
    }
    assert found == {}


def test_parameters_have_the_names_of_the_fields(schemas: dict[str, Any]) -> None:
    found = {
        f"{method} {path}: {each['name']}"
        for path, item in json.loads(openapi_document())["paths"].items()
        for method, operation in item.items()
        for each in operation.get("parameters", ())
        if each["in"] == "query" and each["name"].partition("__")[0] in FORBIDDEN
    }
    assert found == set()


def test_a_name_has_one_type(schemas: dict[str, Any]) -> None:
    """Requests are compared with requests: they write an amount as text, and name a thing by its id."""
    types: dict[tuple[bool, str], set[str]] = defaultdict(set)
    for schema, name, each in properties(schemas):
        if schema not in MONEY and name not in REFERENCES | LISTS | OF_SEVERAL_TYPES.keys():
            types[bool(REQUEST.search(schema)), name].add(type_of(each, schemas))
    assert {f"{name}: {sorted(kinds)}" for (_, name), kinds in types.items() if len(kinds) > 1} == set()


def test_exceptions_of_one_type_are_needed(schemas: dict[str, Any]) -> None:
    types: dict[str, set[str]] = defaultdict(set)
    for schema, name, each in properties(schemas):
        if schema not in MONEY:
            types[name].add(type_of(each, schemas))
    assert {name for name in OF_SEVERAL_TYPES if len(types[name]) < 2} == set()


def test_every_property_has_a_type(schemas: dict[str, Any]) -> None:
    """What has none is JSON of its own: a partitioning table, what an act recorded."""
    free = {f"{schema}.{name}" for schema, name, each in properties(schemas) if type_of(each, schemas) == "any"}
    assert free == {"AuditEventOut.details", "GpuModelOut.partitioning", "GpuOut.fixed_layout"}


def test_counts_and_percentages_and_moments_are_named_as_such(schemas: dict[str, Any]) -> None:
    for schema, name, each in properties(schemas):
        kind, where = type_of(each, schemas), f"{schema}.{name}"
        if name.endswith("_count"):
            assert kind in ("integer", "number"), where
        if name.endswith("_at"):
            assert kind == "date-time", where
        if kind == "date-time":
            assert re.search(r"(_at|_since|_until|_before|_date|_start|since|until|as_of|^at|last_sign_in)$", name), (
                where
            )
        if "percent" in name:
            assert kind in ("integer", "string", "number"), where
