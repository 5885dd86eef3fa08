"""Valid inputs, small: what the mutations start from."""

import io
import json
import warnings
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from onlooker import (
    AdditivePolicy,
    BanditLog,
    BoostedPolicy,
    LinearPolicy,
    NeuralPolicy,
    ProductsPolicy,
    TrackingObserver,
    write_log,
)
from onlooker.base.documents import sealed
from onlooker.base.errors import OnlookerWarning
from onlooker.imitation.scores.splines import Spline
from onlooker.imitation.scores.terms import Term
from onlooker.imitation.scores.trees import Tree
from onlooker.observers.tracking import UCB

CSV: tuple[bytes, ...] = (
    b"round,arm,chosen,price,colour\n1,a,1,9.5,red\n1,b,0,8,blue\n2,a,0,7.25,red\n2,b,1,4,green\n3,a,1,1e3,blue\n",
    b"time,round,chosen,x0,x1\n2024-05-01T10:00:00Z,7,0,1,2\n2024-05-01T10:00:00Z,7,1,3,4\n2024-05-02,8,1,5,6\n",
    b'"round";"chosen";"x";"reward"\r\n"a;b";1;5;1,5\r\n"a;b";0;15;0,5\r\nc;1;25;0\r\n',
    b"by,round,chosen,code,n\nu,1,1,007,1\nu,1,0,019,2\nv,3,1,007,3\nv,4,1,020,4\n",
    b"round\tchosen\tflag\tx\n1\t1\ttrue\t1\n1\t0\tfalse\t2\n2\t1\ttrue\t3\n",
)
JSONL: tuple[bytes, ...] = (
    (
        b'{"round":1,"arm":"a","chosen":1,"x":0.5,"c":"r"}\n{"round":1,"arm":"b","chosen":0,"x":2,"c":"g"}\n'
        b'{"round":2,"arm":"a","chosen":1,"x":1.5,"c":"g"}\n'
    ),
    b'{"round":"a","chosen":true,"t":"2024-05-01","x":1}\n{"round":"a","chosen":false,"t":"2024-05-01","x":2}\n',
    b'{"round":18446744073709551615,"chosen":1,"x":-1e3,"y":null}\n{"round":18446744073709551615,"chosen":0,"x":1}\n',
)
VW: tuple[bytes, ...] = (
    (
        b"shared 'r1| user age:30\na1| ad price:2 new colour:red\n1:0.5:0.25 a2| ad price:3 colour:blue\n\n"
        b"shared 'r2| user age:40\n0:1:0.5 a1| ad price:1 colour:red\na2| ad:2 price:4 new\n"
    ),
    b"|a x:1 y:2 |b z\n2:1:0.5 |a x:3 y:4 |b:0.5 z w\n\n| :1 :2\n1:1 | q:1e3\n| q:-2.5 q:1\n",
)
DSJSON: tuple[bytes, ...] = (
    (
        b'{"_labelIndex":1,"_label_Action":2,"Timestamp":"2024-05-01T10:00:00Z","EventId":"e1","c":{"u":{"age":30},'
        b'"_multi":[{"ad":{"price":2,"new":true,"colour":"red","v":[1,2]},"_tag":"a"},{"ad":{"price":3},"_tag":"b"}]}}'
        b'\n{"RewardValue":1,"EventId":"e1"}\n'
        b'{"_label_Action":1,"Timestamp":"2024-05-01T11:00:00.5Z","EventId":"e2","c":{"u":{"age":40,"_text":"a b"},'
        b'"_multi":[{"ad":{"price":1,"colour":"blue"},"_tag":"a"},{"ad":{"price":4},"_tag":"b"}]}}\n'
    ),
    b'{"_labelIndex":0,"c":{"_multi":[{"x":1,"y":-2.5},{"x":2,"y":1e3}]}}\n',
)
_USER = b"|user 2:0.1 3:0.2 4:0.3 5:0.3 6:0.1 1:1"
R6A: tuple[bytes, ...] = (
    b"1241160900 109513 0 %b |109498 2:0.3 3:0 4:0 5:0.6 6:0.1 1:1 |109513 2:0.1 3:0.5 4:0.2 5:0 6:0.2 1:1\n" % _USER
    + b"1241160901 109498 1 %b |109498 2:0.3 3:0 4:0 5:0.6 6:0.1 1:1\n" % _USER,
)
SPLIT = b"\n%%%% item_context.csv above, the log below %%%%\n"
"""Between the two files of the Open Bandit Dataset."""
OPEN_BANDIT: tuple[bytes, ...] = (
    b",item_id,item_feature_0,item_feature_1,item_feature_2\n0,0,-0.5,a1,b1\n1,1,0.25,a2,b1\n2,2,0.75,a1,b2\n"
    + SPLIT
    + b",timestamp,item_id,position,click,propensity_score,user_feature_0,user-item_affinity_0,user-item_affinity_1,"
    b"user-item_affinity_2\n0,2019-11-24 00:00:00.1+00:00,1,3,0,0.3,x,0,0.5,1\n"
    b"1,2019-11-24 00:00:01.2+00:00,0,1,0,0.3,x,0,0,2\n2,2019-11-24 00:00:02+00:00,2,2,1,0.3,y,1,0,0\n",
)
CELL: tuple[bytes, ...] = (
    b'{"key": "cell", "arguments": {"seed": 0, "d": [20, 50], "rate": 0.5}, "result": {"rows": [{"x": 1.5}]}}\n',
)


def log(n_rounds: int = 3, *, ids: bool = True) -> BanditLog:
    """A small log."""
    rng = np.random.default_rng(n_rounds)
    sizes = rng.integers(1, 4, n_rounds)
    return BanditLog(
        rng.standard_normal((sizes.sum(), 2)),
        np.concatenate([[0], np.cumsum(sizes)]),
        rng.integers(0, sizes),
        feature_names=["price", "colour=red"],
        round_ids=[f"r{t}" for t in range(n_rounds)] if ids else None,
        arm_ids=np.arange(sizes.sum()) if ids else None,
        categories={"colour": ["blue", "red"]},
    )


@cache
def parquet() -> tuple[bytes, ...]:
    """Nested Parquet as onlooker writes it."""
    return tuple(_written(one, ".parquet") for one in (log(), log(2, ids=False)))


@cache
def npz() -> tuple[dict[str, Any], ...]:
    """Arrays as obp has them."""
    rng = np.random.default_rng(0)
    fixed = {"n_rounds": np.array(4), "n_actions": np.array(3), "action": np.array([0, 2, 1, 1])}
    return (
        fixed
        | {"action_context": rng.random((3, 2)), "context": rng.random((4, 2)), "position": np.array([0, 1, 0, 1])},
        fixed
        | {
            "action_context": rng.random((4, 3, 2)).astype(np.float32),
            "feature_names": np.array(["a", "b"]),
            "round_ids": np.array(["w", "x", "y", "z"]),
            "arm_ids": np.arange(12),
        },
    )


@cache
def policies() -> tuple[Any, ...]:
    """Documents of saved policies."""
    made = (
        LinearPolicy([0.5, -1.0], ["price", "colour=red"], {"colour": ["blue", "red"]}),
        LinearPolicy([1e-3, 2.0, 3.0]),
        ProductsPolicy([0.5, 1.0, 2.0, 3.0, 4.0], ["price", "speed"]),
        *_scored(),
    )
    return tuple(json.loads(_saved(one)) for one in made)


def _scored() -> list[Any]:
    """Policies whose scores are curves, a network and trees."""
    spline, leaf = Spline(np.array([0.0, 1.0, 4.0])), np.array([-1])
    curve = Term((0,), (spline,), np.arange(5.0), np.eye(5), np.zeros(5))
    tree = Tree(np.array([1]), np.array([0.5]), leaf, np.array([-2]), np.array([1.0, -1.0]))
    rows = [[1.0, 2.0], [0.0, 4.0]]
    layers = {"means": np.zeros(2), "spreads": np.ones(2), "linear": np.ones(2), "inner": np.ones((2, 3))}
    return [
        AdditivePolicy([0.0, 1.0], ["price", "speed"], None, [curve]),
        NeuralPolicy(rows, **layers, shifts=np.zeros(3), outer=np.ones(3)),
        BoostedPolicy(rows, ["price", "speed"], None, [tree]),
    ]


@cache
def states() -> tuple[Any, ...]:
    """Documents of saved tracking states, the rounds still in one of them."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((2010, 3, 2))
    picks = (X @ [1.0, -0.5] + 0.1 * rng.standard_normal((2010, 3))).argmax(axis=1)
    offsets, ids = 3 * np.arange(2011), [f"r{t}" for t in range(2010)]
    seen = BanditLog(X.reshape(-1, 2), offsets, picks, round_ids=ids, feature_names=["price", "speed"])
    with warnings.catch_warnings():
        # Five rounds tell little, which is said.
        warnings.simplefilter("ignore", OnlookerWarning)
        few = TrackingObserver(exploration=UCB(1.0)).fit(seen[:5])
    many = TrackingObserver(exploration=UCB(1.0), checkpoints=[10, 40]).fit(seen)
    return tuple(json.loads(_saved(one)) for one in (few, many))


@cache
def sealed_states() -> tuple[bytes, ...]:
    """The same as they are saved, with their digests, and how they are read back."""
    return tuple(sealed({name: one[name] for name in one if name != "digest"}).encode() for one in states())


def _saved(one: Any) -> bytes:
    with TemporaryDirectory() as folder:
        one.save(f"{folder}/saved.json")
        return (Path(folder) / "saved.json").read_bytes()


def _written(one: BanditLog, suffix: str) -> bytes:
    with TemporaryDirectory() as folder:
        write_log(one, f"{folder}/log{suffix}")
        return (Path(folder) / f"log{suffix}").read_bytes()


def archive(arrays: dict[str, Any], *, compress: bool) -> bytes:
    """Arrays as an `.npz` file."""
    file = io.BytesIO()
    (np.savez_compressed if compress else np.savez)(file, **arrays)
    return file.getvalue()
