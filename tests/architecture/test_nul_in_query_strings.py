"""No address breaks on a NUL in its query string."""

from collections.abc import Iterator

import pytest
from django.conf import settings

from broker.models import Offering
from tests.architecture.visitors import SAFE, VisitorRequest, Visitors, address_with_own_ids, rows
from tests.tiers import by_fifths

pytestmark = pytest.mark.django_db

QUERIES = ("?tag.x=a%00b", "?tag.x%00y=1", "?project=%00&limit=1")
OF_PAGES = tuple(f"?{name}=a%00b" for name in ("q", "project", "by", "class", "after", "line", "actor", "x%00y"))


@pytest.fixture
def who() -> Iterator[Visitors]:
    settings.OPERATORS_REQUIRE_MFA, before = False, settings.OPERATORS_REQUIRE_MFA
    try:
        yield Visitors()
    finally:
        settings.OPERATORS_REQUIRE_MFA = before


@by_fifths
def test_the_api_refuses_a_nul_in_any_query_parameter(who: Visitors, fifth: int) -> None:
    for kind, visitor in (("api", "owner"), ("shared", "owner"), ("fleet", "staff")):
        for route, row in rows(kind, fifth=fifth):
            for method in row.methods:
                for query in QUERIES:
                    response = VisitorRequest(who, row, visitor, method, address_with_own_ids(who, route, row) + query)
                    response.expect(response.status == 400, why="no column holds a NUL")
                    response.expect(b"NUL" in response.content, why="it has to say what is wrong")
                    response.expect(not response.written, why="nothing may be written")


@by_fifths
def test_no_page_fails_on_a_nul_in_a_query_parameter(who: Visitors, fifth: int) -> None:
    for kind, visitor in (("page", "owner"), ("ops", "staff")):
        for route, row in rows(kind, fifth=fifth):
            path = address_with_own_ids(who, route, row)
            Offering.objects.filter(gpu_model="H200-141GB").update(state="draft")  # of histories: no real shape
            for method in set(row.methods) & set(SAFE):
                for query in OF_PAGES:
                    response = VisitorRequest(who, row, visitor, method, path + query)
                    response.expect(response.status < 500, why="nothing may break")
