"""The driver of a cluster, and valid settings for it."""

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
def test_an_option_is_read_as_people_write_it(text: str, meant: bool) -> None:
    options = parse_driver_options("dra", [text])
    driver = create_driver("dra", options, MODELS)
    assert isinstance(driver, DraDriver)
    assert driver.extended is meant


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
def test_an_option_that_a_driver_does_not_have_is_refused_in_words(driver: str, text: str, words: str) -> None:
    with pytest.raises(UnknownOption, match=words):
        parse_driver_options(driver, [text])


def test_what_is_kept_of_a_cluster_is_checked_as_well() -> None:
    with pytest.raises(UnknownOption, match="yes or no, not 'no'"):
        create_driver("dra", {"extended": "no"}, MODELS)
    with pytest.raises(ValueError, match="known are: device_plugin, dra, hami"):
        create_driver("abacus", {}, MODELS)


def test_every_choice_is_one_that_its_driver_takes() -> None:
    for name, choices in DRIVER_OPTIONS.items():
        for value in (True, False):
            create_driver(name, dict.fromkeys(choices, value), MODELS)


def test_no_driver_sells_uncut_gpus_as_what_it_cannot_ask_for() -> None:
    assert {name: dynamic_isolations(name) for name in DRIVERS} == {
        "device_plugin": frozenset(),
        "dra": {Isolation.DEVICE, Isolation.HARDWARE},
        "hami": {Isolation.DEVICE, Isolation.HARDWARE, Isolation.SOFT},
    }
    assert dynamic_isolations("") == frozenset(Isolation)


def test_the_commands_take_options_and_say_what_there_is_instead() -> None:
    chosen, driver = read_driver({"driver": "dra", "option": ["extended=yes"]})
    assert (chosen, driver.name) == ({"extended": True}, "dra")
    assert read_driver({"driver": "device_plugin", "option": None})[0] == {}
    with pytest.raises(CommandError, match="--option: driver hami has no option 'cores'; it has no options"):
        read_driver({"driver": "hami", "option": ["cores=yes"]})
