"""Which driver a cluster has, and what people may say of how it works there."""

import pytest
from django.core.management.base import CommandError

from broker.domain.states import Isolation
from broker.management.commands.kube_doctor import read_driver
from broker.provisioners.kubernetes.drivers.choosing import (
    CHOICES,
    DRIVERS,
    UnknownOption,
    driver_named,
    read_options,
    sold_uncut,
)
from broker.provisioners.kubernetes.drivers.dra import DraDriver
from tests.broker.domain.fleet import MODELS


@pytest.mark.parametrize(
    ("text", "meant"), [("extended=yes", True), (" extended = TRUE", True), ("extended=off", False)]
)
def test_an_option_is_read_as_people_write_it(text: str, meant: bool) -> None:
    options = read_options("dra", [text])
    driver = driver_named("dra", options, MODELS)
    assert isinstance(driver, DraDriver)
    assert driver.extended is meant


@pytest.mark.parametrize(
    ("driver", "text", "words"),
    [
        ("dra", "extended", "is yes or no, not ''"),
        ("dra", "extended=maybe", "is yes or no, not 'maybe'"),
        ("dra", "profiles=1g.10gb", "has no option 'profiles'; it has: extended: pods ask"),
        ("device_plugin", "replicas=2", "has no option 'replicas'; it has none: .* read from them"),
        ("hami", "=", "has no option ''"),
    ],
)
def test_an_option_that_a_driver_does_not_have_is_refused_in_words(
    driver: str, text: str, words: str
) -> None:
    with pytest.raises(UnknownOption, match=words):
        read_options(driver, [text])


def test_what_is_kept_of_a_cluster_is_checked_as_well() -> None:
    with pytest.raises(UnknownOption, match="yes or no, not 'no'"):
        driver_named("dra", {"extended": "no"}, MODELS)
    with pytest.raises(ValueError, match="known are: device_plugin, dra, hami"):
        driver_named("abacus", {}, MODELS)


def test_every_choice_is_one_that_its_driver_takes() -> None:
    for name, choices in CHOICES.items():
        for value in (True, False):
            driver_named(name, dict.fromkeys(choices, value), MODELS)


def test_no_driver_sells_uncut_cards_as_what_it_cannot_ask_for() -> None:
    assert {name: sold_uncut(name) for name in DRIVERS} == {
        "device_plugin": frozenset(),
        "dra": {Isolation.DEVICE, Isolation.HARDWARE},
        "hami": {Isolation.DEVICE, Isolation.HARDWARE, Isolation.SOFT},
    }
    assert sold_uncut("") == frozenset(Isolation)


def test_the_commands_take_options_and_say_what_there_is_instead() -> None:
    chosen, driver = read_driver({"driver": "dra", "option": ["extended=yes"]})
    assert (chosen, driver.name) == ({"extended": True}, "dra")
    assert read_driver({"driver": "device_plugin", "option": None})[0] == {}
    with pytest.raises(CommandError, match="--option: the driver hami has no option 'cores'; it has none"):
        read_driver({"driver": "hami", "option": ["cores=yes"]})
