"""Looking at what is no API server at all: it is said, and nobody's examination dies of it."""

from typing import Any

import pytest

from broker.provisioners.kubernetes.doctor import judging
from broker.provisioners.kubernetes.doctor.findings import Outcome
from broker.provisioners.kubernetes.doctor.snapshot import Unseen
from broker.provisioners.kubernetes.doctor.taking import Known, take
from broker.provisioners.kubernetes.drivers.choosing import driver_named
from tests.broker.provisioners.kubernetes.doctor.healthy import NOW
from tests.broker.provisioners.kubernetes.wire import Say, Serve

KUBECONFIG: dict[str, Any] = {"users": [{"name": "u", "user": {"token": "secret"}}]}
VERSION = Say(body={"gitVersion": "v1.36.3"})
STRANGERS = {
    "a page": Say(body=b"<html>Sign in</html>"),
    "other JSON": Say(body={"hello": "world"}),
    "a list": Say(body=b"[1]"),
    "a number where a name belongs": Say(body={"gitVersion": 5}),
    "somewhere else": Say(302, b"", {"Location": "https://elsewhere.example/"}),
    "a date of its own": Say(body={"gitVersion": "v1.36.3"}, headers={"Date": "Caturday"}),
}


@pytest.mark.parametrize("answer", STRANGERS.values(), ids=STRANGERS)
def test_what_is_no_api_server_is_one_finding_that_says_so(serve: Serve, answer: Say) -> None:
    seen = take(
        KUBECONFIG, driver_named("dra", {}, ()), known=Known(), now=NOW, transport=serve(answer).transport
    )
    assert isinstance(seen.version, Unseen)
    (only,) = judging.examine(seen)
    assert (only.name, only.outcome) == ("reachable", Outcome.BAD)
    assert "does not answer like Kubernetes" in only.seen
    assert "look at `server`" in only.fix


def test_one_question_answered_by_a_stranger_is_not_answered(serve: Serve) -> None:
    wire = serve(VERSION, VERSION, Say(body={"groups": None, "metadata": {"resourceVersion": "5"}}))
    seen = take(KUBECONFIG, driver_named("dra", {}, ()), known=Known(), now=NOW, transport=wire.transport)
    assert seen.version.git_version == "v1.36.3"  # type: ignore[union-attr]
    for unseen in (seen.groups, seen.rights):
        assert isinstance(unseen, Unseen)
        assert "does not answer like Kubernetes" in unseen.why
    assert len(judging.examine(seen)) > 25
