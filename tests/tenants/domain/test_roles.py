"""Roles and their inheritance along the project tree."""

from hypothesis import given
from hypothesis import strategies as st

from tenants.domain.roles import (
    ACTIONS,
    ADMIN_SCOPE,
    ALLOWED,
    ROLE_DESCRIPTIONS,
    SCOPES,
    NodePath,
    Role,
    RoleGrant,
    RoleGrants,
    covers,
    scope_allows,
)

TREE: list[NodePath] = [(), ("a",), ("a", "b"), ("a", "b", "c"), ("a", "d")]
paths = st.sampled_from(TREE)
grants = st.lists(st.builds(RoleGrant, st.sampled_from(Role), paths), max_size=3).map(tuple)
scopes = st.none() | st.frozensets(st.sampled_from(sorted(SCOPES)), max_size=4)
powers = st.builds(RoleGrants, grants, scopes, paths)
actions = st.sampled_from(sorted(ACTIONS))


def test_an_owner_has_all_actions_and_a_viewer_writes_only_what_is_its_own() -> None:
    assert ALLOWED[Role.OWNER] == ACTIONS
    assert {a for a in ALLOWED[Role.VIEWER] if not a.endswith(".read")} == {"tokens.write", "ssh_keys.write"}


def test_every_role_has_a_description() -> None:
    assert set(ROLE_DESCRIPTIONS) == set(Role) == set(ALLOWED)


@given(powers, actions, paths, paths)
def test_an_action_allowed_on_a_project_is_allowed_below_it(
    power: RoleGrants, action: str, upper: NodePath, lower: NodePath
) -> None:
    if covers(upper, lower) and power.may(action, upper):
        assert power.may(action, lower)


@given(powers, actions)
def test_the_reachable_projects_are_exactly_the_allowed_ones(power: RoleGrants, action: str) -> None:
    reach = power.projects(action)
    for path in TREE[1:]:
        inside = reach is None or bool(reach & set(path))
        assert inside == power.may(action, path)
    assert (reach is None) == power.may(action)
    assert power.anywhere(action) == any(power.may(action, path) for path in TREE)


@given(powers, actions, paths)
def test_a_token_never_allows_more_than_the_role_of_its_owner(power: RoleGrants, action: str, path: NodePath) -> None:
    if power.may(action, path):
        assert RoleGrants(power.grants).may(action, path)


@given(powers, st.sampled_from(Role), paths)
def test_a_role_can_be_granted_only_with_all_its_actions(power: RoleGrants, role: Role, path: NodePath) -> None:
    if power.may_give(role, path):
        assert all(power.may(action, path) for action in ALLOWED[role])


def test_a_write_scope_includes_reading_and_nothing_else() -> None:
    assert scope_allows(frozenset({"leases:write"}), "leases.read")
    assert not scope_allows(frozenset({"leases:read"}), "leases.write")
    assert not scope_allows(frozenset({"leases:write"}), "billing.read")
    assert not scope_allows(frozenset({"tokens:write"}), "tokens.all")
    assert all(scope_allows(frozenset({ADMIN_SCOPE}), action) for action in ACTIONS)


def test_a_tenant_role_precedes_project_roles_as_the_highest() -> None:
    assert RoleGrants((RoleGrant(Role.OWNER, ("a",)), RoleGrant(Role.VIEWER))).highest == Role.VIEWER
    assert RoleGrants((RoleGrant(Role.MEMBER, ("a",)), RoleGrant(Role.ADMIN, ("d",)))).highest == Role.ADMIN
    assert RoleGrants().highest is None
