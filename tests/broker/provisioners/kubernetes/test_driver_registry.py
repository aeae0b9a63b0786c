"""Slice drivers of clusters and their options."""

import pytest
from django.core.management.base import CommandError

from broker.domain.lifecycle.states import Isolation
from broker.management.commands.kube_doctor import read_driver
from broker.provisioners.kubernetes.drivers.dra import DraDriver
from broker.provisioners.kubernetes.drivers.driver_registry import (
    DRIVER_OPTIONS,
    DRIVERS,
    UnknownOption,
    create_driver,
    dynamic_isolations,
    parse_driver_options,
)
from tests.broker.domain.fleet import MODELS


@pytest.mark.parametrize(
    ("text", "meant"), [("extended=yes", True), (" extended = TRUE", True), ("extended=off", False)]
)
def test_boolean_driver_options_accept_common_spellings(text: str, meant: bool) -> None:
    options = parse_driver_options("dra", [text])
    driver = create_driver("dra", options, MODELS)
    assert driver.by_name["dra"] == DraDriver(MODELS, extended=meant)


@pytest.mark.parametrize(
    ("driver", "text", "words"),
    [
        ("dra", "extended", "must be yes or no, not ''"),
        ("dra", "extended=maybe", "must be yes or no, not 'maybe'"),
        ("dra", "profiles=1g.10gb", "has no option 'profiles'; its options: extended: pods use"),
        ("device_plugin", "replicas=2", "has no option 'replicas'; it has no options: .* read from the nodes"),
        ("hami", "=", "has no option ''"),
    ],
)
def test_an_unknown_or_invalid_driver_option_is_refused_with_a_message(driver: str, text: str, words: str) -> None:
    with pytest.raises(UnknownOption, match=words):
        parse_driver_options(driver, [text])


def test_create_driver_refuses_invalid_stored_options_and_unknown_drivers() -> None:
    with pytest.raises(UnknownOption, match="yes or no, not 'no'"):
        create_driver("dra", {"extended": "no"}, MODELS)
    with pytest.raises(ValueError, match="known are: automatic, device_plugin, dra, hami"):
        create_driver("abacus", {}, MODELS)


def test_every_driver_accepts_its_listed_options() -> None:
    for name, choices in DRIVER_OPTIONS.items():
        for value in (True, False):
            create_driver(name, dict.fromkeys(choices, value), MODELS)


def test_each_driver_lists_the_isolations_it_creates_on_unpartitioned_gpus() -> None:
    assert {name: dynamic_isolations(name) for name in DRIVERS} == {
        "cpu": {Isolation.HARDWARE},
        "device_plugin": frozenset(),
        "dra": {Isolation.DEVICE, Isolation.HARDWARE},
        "hami": {Isolation.DEVICE, Isolation.HARDWARE, Isolation.SOFT},
    }
    assert dynamic_isolations("") == frozenset(Isolation)
    assert dynamic_isolations("automatic") == frozenset()  # each GPU has a driver of its own


def test_the_option_argument_is_parsed_and_its_errors_list_valid_options() -> None:
    chosen, driver = read_driver({"driver": "dra", "option": ["extended=yes"]})
    assert (chosen, driver.name) == ({"extended": True}, "dra")
    assert read_driver({"driver": "device_plugin", "option": None})[0] == {}
    with pytest.raises(CommandError, match="--option: driver hami has no option 'cores'; it has no options"):
        read_driver({"driver": "hami", "option": ["cores=yes"]})
