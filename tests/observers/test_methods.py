"""Methods by name."""

import inspect

import pytest

import onlooker.observers
from onlooker.base.errors import InputError
from onlooker.observers import Observer
from onlooker.observers.methods import METHODS, find_methods


def test_every_observer_has_a_name():
    kinds = {kind for _, kind in inspect.getmembers(onlooker.observers, inspect.isclass) if issubclass(kind, Observer)}
    assert {type(method.make()) for method in METHODS} == kinds - {Observer}


def test_names_and_titles_differ_and_observers_are_fresh():
    assert len({method.name for method in METHODS}) == len({method.title for method in METHODS}) == len(METHODS)
    assert all(method.make() is not method.make() for method in METHODS)


def test_unknown():
    with pytest.raises(InputError, match="there is no method 'magic': use naive, rule, auto"):
        find_methods(["auto", "magic"])
