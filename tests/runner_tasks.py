"""What the runner's tests run: worker processes import it by name."""

import os
import signal
import threading
import time

from onlooker.base.errors import InputError


def note(log, text):
    """Append a line at once, whichever process it comes from."""
    with open(log, "a", encoding="utf-8") as file:
        file.write(f"{text}\n")


def notes(log):
    return log.read_text(encoding="utf-8").split() if log.exists() else []


def root(number, log):
    note(log, number)
    return {"rows": [{"number": number, "root": number**0.5, "name": None}]}


def slow(number, log, seconds):
    note(log, f"{os.getpid()}:{number}")
    time.sleep(seconds)
    return {"rows": [{"number": number}]}


def busy(number, log, seconds):
    note(log, f"{os.getpid()}:{number}")
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        sum(range(100_000))
    return {"rows": [{"number": number}]}


def fail(number, bad):
    if number in bad:
        if number == 0:
            raise InputError("nothing can be\ndone with 0")
        if number == 1:
            return {"rows": {1, 2}}
        return {"rows": number / 0}
    return {"rows": []}


def die(number, log, times, signal_number=signal.SIGKILL):
    note(log, number)
    if number == 1 and notes_of(log, number) <= times:
        os.kill(os.getpid(), signal_number)
    return {"rows": [{"number": number}]}


def die_late(log, letters, seconds):
    """A result that takes a while to send, and the first time a death meanwhile."""
    note(log, "start")
    if notes_of(log, "start") == 1:
        threading.Timer(seconds, os.kill, (os.getpid(), signal.SIGKILL)).start()
    return "x" * letters


def notes_of(log, number):
    with open(log, encoding="utf-8") as file:
        return file.read().split().count(str(number))


def environment(names):
    return {name: os.environ.get(name) for name in names}


class Counter:
    """A callable object that remembers: no task may see what another left."""

    def __init__(self):
        self.calls = 0

    def __call__(self):
        self.calls += 1
        return self.calls
