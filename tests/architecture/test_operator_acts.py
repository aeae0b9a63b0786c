"""Every act of operators on a page has an operation of the API, with the verb of its kind."""

import pytest
from django.urls import URLPattern, URLResolver, get_resolver

from tenants.domain.operator_scopes import OPERATOR_AREAS
from tests.architecture.matrix import ROWS
from tests.architecture.operator_acts import OPERATOR_ACTS
from web.api.operators.base_views import IsOperator, OperatorTokenAuthentication


def test_every_page_on_which_operators_act_names_its_operations() -> None:
    pages = {route for route, row in ROWS.items() if row.kind == "ops" and "POST" in row.methods}
    assert pages == set(OPERATOR_ACTS), "add what is missing to tests/architecture/operator_acts.py, and to the API"


@pytest.mark.parametrize("page", OPERATOR_ACTS)
def test_the_operations_of_an_act_are_for_operators(page: str) -> None:
    for method, route in OPERATOR_ACTS[page]:
        row = ROWS[route]
        assert row.kind == "fleet", route
        assert method in row.methods, (method, route)


def test_operators_make_by_post_change_by_patch_and_never_put() -> None:
    puts = [route for route, row in ROWS.items() if row.kind == "fleet" and "PUT" in row.methods]
    assert puts == []


def operator_views(patterns: object = None) -> set[type]:
    """Return the views of the API that only operators may use."""
    found: set[type] = set()
    for pattern in get_resolver().url_patterns if patterns is None else patterns:  # type: ignore[attr-defined]
        if isinstance(pattern, URLResolver):
            found |= operator_views(pattern.url_patterns)
        elif isinstance(pattern, URLPattern):
            view = getattr(pattern.callback, "cls", None)
            if view is not None and IsOperator in getattr(view, "permission_classes", ()):
                found.add(view)
    return found


def test_every_view_of_operators_names_the_area_of_its_scope_and_takes_tokens() -> None:
    views = operator_views()
    assert len(views) > 30
    for view in views:
        assert view.area in OPERATOR_AREAS, view  # type: ignore[attr-defined]
        assert OperatorTokenAuthentication in view.authentication_classes, view  # type: ignore[attr-defined]
