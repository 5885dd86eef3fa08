"""DSJSON: what its fields mean."""

import gzip
import json

import numpy as np
import pytest

from onlooker import BanditLog, InputError, read_log, write_log
from onlooker.base.errors import SharedFeaturesWarning, SkippedLinesWarning, TimesOutOfOrderWarning

ARMS = [{"ad": {"price": 1}}, {"ad": {"price": 2.5}}, {"ad": {"price": -3}}]


def event(pick=0, arms=ARMS, **fields):
    return {"_label_cost": -1, "_label_probability": 0.5, "_labelIndex": pick, "c": {"_multi": arms}, **fields}


@pytest.fixture
def read(tmp_path):
    def log(*events, name="log.dsjson", **options):
        lines = [one if isinstance(one, str) else json.dumps(one) for one in events]
        (tmp_path / name).write_text("\n".join(lines) + "\n")
        return read_log(tmp_path / name, **options)

    return log


def test_an_event_as_decision_services_log_it(read):
    taken = {
        "_label_cost": -1.0,
        "_label_probability": 0.8,
        "_label_Action": 2,
        "_labelIndex": 1,
        "o": [{"v": 1.0, "EventId": "e7", "ActionTaken": False}],
        "Timestamp": "2024-05-01T10:00:00.1234567Z",
        "Version": "1",
        "EventId": "e7",
        "a": [2, 1],
        "c": {
            "user": {"id": "u5", "age": 30},
            "_multi": [{"ad": {"topic": "ski", "price": 3}}, {"ad": {"topic": "herbs", "price": 4}}],
        },
        "p": [0.8, 0.2],
        "VWState": {"m": "N/A"},
        "pdrop": 0.5,
        "_skipLearn": True,
    }
    with pytest.warns(SharedFeaturesWarning, match=r"'user\^id', 'user\^age'"):
        log = read(taken)
    assert log.feature_names == ("ad^topic=ski", "ad^price")
    assert log.features.tolist() == [[1, 3], [0, 4]]
    assert log.chosen.tolist() == [1]
    assert log.round_ids.tolist() == ["e7"]
    assert dict(log.categories) == {"ad^topic": ("herbs", "ski")}


@pytest.mark.parametrize(
    ("label", "pick"),
    [
        ({"_labelIndex": 2}, 2),
        ({"_label_Action": 2}, 1),
        ({"_label_action": 1, "_label_Cost": 1, "_label_Probability": 1}, 0),
        ({"_label_Action": 3, "_labelIndex": 2}, 2),
    ],
)
def test_the_pick_counts_from_0_or_from_1(read, label, pick):
    assert read({**label, "a": [2, 1, 3], "c": {"_multi": ARMS}}).chosen.tolist() == [pick]


def test_every_kind_of_value(read):
    arm = {
        "n": 2,
        "on": True,
        "off": False,
        "none": None,
        "list": [1.5, 0, 7],
        "deep": {"er": {"x": 4}, "_hidden": 9},
        "many": [{"a": 1}, {"a": 2, "b": 3}],
        "_text": "two words",
        "_tag": "arm 1",
    }
    log = read(event(0, [arm, {"_tag": "arm 2", "deep": {"_text": "words"}}]))
    assert log.feature_names == (
        *("n", "on", "off", "list[0]", "list[1]", "list[2]", "deep^er^x", "many^a", "many^b", "two", "words"),
        "deep^words",
    )
    assert log.features.tolist() == [[2, 1, 0, 1.5, 0, 7, 4, 3, 3, 1, 1, 0], [0] * 11 + [1]]
    assert log.arm_ids.tolist() == ["arm 1", "arm 2"]


def test_shared_namespaces_crossed(read):
    one = event(1, [{"p": 2}, {"p": 3}])
    one["c"]["user"] = {"age": 10, "vip": True}
    log = read(one, cross=True)
    assert log.feature_names == ("p", "user^age x p", "user^vip x p")
    assert log.features.tolist() == [[2, 20, 2], [3, 30, 3]]


def test_rewards_that_come_late_are_counted(read):
    late = {"RewardValue": 1.0, "EnqueuedTimeUtc": "2024-05-01T10:00:00Z", "EventId": "e1"}
    with pytest.warns(SkippedLinesWarning, match="2 lines bring a reward"):
        log = read(late, event(2), "", late, event(1), name="log.json")
    assert log.chosen.tolist() == [2, 1]


def test_ordered_by_time(read):
    times = ["2024-05-01T10:00:00.2Z", "2024-05-01T10:00:00.1000000Z", "2024-05-01T12:00:00.15+02:00", "2024-05-01"]
    events = [event(k % 3, EventId=f"e{k}", Timestamp=time) for k, time in enumerate(times)]
    assert read(*events, order_by="Timestamp").round_ids.tolist() == ["e3", "e1", "e2", "e0"]
    with pytest.warns(TimesOutOfOrderWarning, match="'Timestamp' looks like a time and is not in order"):
        assert read(*events).round_ids.tolist() == ["e0", "e1", "e2", "e3"]
    assert read(events[3], events[1]).n_rounds == 2
    numbered = [event(EventId=f"e{k}", at=at) for k, at in enumerate([2**60 + 1, 2**60, 0.5])]
    assert read(*numbered, order_by="at").round_ids.tolist() == ["e2", "e1", "e0"]
    with pytest.raises(InputError, match="line 2 has 'None' as its 'at'"):
        read(numbered[0], event(), order_by="at")
    with pytest.raises(InputError, match=r"line 2 .* mixes numbers and times"):
        read(numbered[0], event(at=times[0]), order_by="at")


@pytest.mark.parametrize("name", ["log.json", "log.jsonl", "log.ndjson", "log.dsjson"])
def test_known_by_its_content(read, name):
    assert read(event(1), name=name).chosen.tolist() == [1]


def test_a_long_table_stays_one(tmp_path):
    log = BanditLog(np.eye(2), [0, 2], [1], feature_names=["a", "b"])
    write_log(log, tmp_path / "log.jsonl")
    assert read_log(tmp_path / "log.jsonl").feature_names == ("a", "b")


def test_compressed(tmp_path):
    (tmp_path / "log.json.gz").write_bytes(gzip.compress(json.dumps(event(1)).encode()))
    assert read_log(tmp_path / "log.json.gz").chosen.tolist() == [1]


def test_what_is_written_is_an_event(tmp_path):
    log = BanditLog(
        np.array([[0.0, 1.5], [2.0, 0.0]]), [0, 2], [1], feature_names=["n^a", "b"], round_ids=["r"], arm_ids=["x", "y"]
    )
    write_log(log, tmp_path / "log.dsjson")
    assert json.loads((tmp_path / "log.dsjson").read_text()) == {
        "_label_cost": 0,
        "_label_probability": 1,
        "_label_Action": 2,
        "_labelIndex": 1,
        "Version": "1",
        "EventId": "r",
        "a": [2, 1],
        "p": [1, 0],
        "c": {"_multi": [{"n": {"a": 0.0}, "b": 1.5, "_tag": "x"}, {"n": {"a": 2.0}, "_tag": "y"}]},
    }


def test_names_that_do_not_fit_are_refused(tmp_path):
    log = BanditLog(np.eye(2), [0, 2], [0], feature_names=["_a", "b"])
    with pytest.raises(InputError, match="cannot hold a feature called '_a'"):
        write_log(log, tmp_path / "log.dsjson")
    assert not list(tmp_path.iterdir())


def test_slots_are_a_slate(tmp_path):
    arms = [{"a": {"x": float(k * k)}} for k in range(3)]
    event = {
        "EventId": "e",
        "Timestamp": "2024-01-01T00:00:00Z",
        "c": {"shared": {"age": 3}, "_multi": arms, "_slots": [{"s": {"top": 1}}, {"s": {"top": 0}}]},
        "_outcomes": [{"_label_cost": 0, "_a": [2, 0, 1], "_p": [0.5, 0.2, 0.3]}, {"_a": [1, 0], "_p": [0.9, 0.1]}],
    }
    one = {"EventId": "f", "_labelIndex": 1, "c": {"_multi": arms}}
    own = {
        "EventId": "g",
        "c": {"_multi": [arm | {"_slot_id": k % 2} for k, arm in enumerate([*arms, arms[1]])]},
        "_outcomes": [{"_a": [1, 0]}, {"_a": [0, 1]}],
    }
    path = tmp_path / "log.dsjson"
    path.write_text("".join(json.dumps(line) + "\n" for line in (event, one, own)))
    with pytest.warns(SharedFeaturesWarning):
        log = read_log(path)
    assert log.round_ids.tolist() == ["e", "e", "f", "g", "g"]
    assert log.n_arms.tolist() == [3, 2, 3, 2, 2]
    assert log.chosen.tolist() == [2, 1, 1, 1, 0]
    assert log.dense[:, 0].tolist() == [0, 1, 4, 0, 1, 0, 1, 4, 0, 4, 1, 1]
