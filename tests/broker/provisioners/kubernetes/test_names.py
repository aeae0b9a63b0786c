"""Names of Kubernetes objects: valid, unique and derived from ids."""

import re
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.provisioners.kubernetes import names

LABEL = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?", re.ASCII)
CROCKFORD = "0123456789abcdefghjkmnpqrstvwxyz"
tails = st.text(CROCKFORD, min_size=26, max_size=26)
slugs = st.text(max_size=80)
generations = st.integers(1, 10**9)


@given(tails, slugs)
def test_a_namespace_name_is_valid_and_ends_with_the_project_id(tail: str, slug: str) -> None:
    name = names.namespace_name(f"prj_{tail}", slug)
    assert LABEL.fullmatch(name)
    assert len(name) <= 63
    assert name.endswith(f"-{tail}")


@given(tails, tails, slugs, slugs)
def test_two_projects_never_share_a_namespace(one: str, other: str, slug: str, another: str) -> None:
    same = names.namespace_name(f"prj_{one}", slug) == names.namespace_name(f"prj_{other}", another)
    assert not same or one == other


@given(tails, generations, st.integers(0, 511), st.integers(1, 512))
def test_all_object_names_of_a_lease_are_valid(tail: str, generation: int, rank: int, ranks: int) -> None:
    lease = f"lse_{tail}"
    on_node = names.controller_name(lease, generation, rank, ranks)
    every = [
        names.anchor_name(lease, generation),
        on_node,
        names.peers_name(lease, generation),
        names.secret_name(lease, generation),
        names.resource_claim_name(lease, generation, rank),
        names.volume_name(f"vol_{tail}"),
    ]
    assert all(LABEL.fullmatch(name) and len(name) <= 63 for name in every)
    assert len(on_node) <= 52


things = st.tuples(tails, generations, st.integers(0, 600))


@given(things, things)
def test_two_pods_never_share_a_name(one: tuple[str, int, int], other: tuple[str, int, int]) -> None:
    names_of = [names.controller_name(f"lse_{tail}", generation, rank, 601) for tail, generation, rank in (one, other)]
    assert (names_of[0] == names_of[1]) == (one == other)


def test_names_of_different_kinds_never_collide() -> None:
    lease = "lse_01m7yexample00000000000000"
    every = [
        make(lease, generation, *rest)
        for generation in (1, 11, 111)
        for make, rests in (
            (names.anchor_name, [()]),
            (names.peers_name, [()]),
            (names.secret_name, [()]),
            (names.controller_name, product((0, 1, 11), (2,))),
            (names.resource_claim_name, [(0,), (1,), (11,)]),
        )
        for rest in rests
    ]
    assert len(every) == len(set(every))


@given(st.text(CROCKFORD + "-", min_size=1, max_size=90), st.text(CROCKFORD + "-", min_size=1, max_size=90))
def test_shortened_names_stay_unique(one: str, other: str) -> None:
    plain = "--" in one + other  # the names that we make have no two dashes
    assert plain or (names.shorten_name(one, 52) == names.shorten_name(other, 52)) == (one == other)


def test_a_shortened_name_has_the_maximum_length_and_a_hash() -> None:
    assert names.shorten_name("a" * 60, 52) != names.shorten_name("a" * 61, 52)
    assert len(names.shorten_name("a" * 60, 52)) == 52


@pytest.mark.parametrize("foreign_id", ["", "lse", "lse_", "LSE_01", "lse_a.b", "lse_" + "a" * 41, "lse_a\n"])
def test_a_foreign_id_cannot_name_an_object(foreign_id: str) -> None:
    with pytest.raises(ValueError, match="not a valid ID"):
        names.anchor_name(foreign_id, 1)
