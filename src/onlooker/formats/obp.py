"""Feedback as the Open Bandit Pipeline (obp) holds it: a dictionary of arrays, or the same in an `.npz` file."""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Mapping, Sequence
from typing import Any, BinaryIO, cast

import numpy as np
from numpy.typing import NDArray

from onlooker.base.checks import check_columns
from onlooker.base.errors import InputError, SharedFeaturesWarning, warn
from onlooker.base.memory_limit import check_memory
from onlooker.base.text import one_line
from onlooker.base.types import Features, Ids, Index
from onlooker.formats.format import Format
from onlooker.formats.sparse_log import crossed, products
from onlooker.formats.text_lines import LogFile
from onlooker.logs.log import BanditLog
from onlooker.logs.ragged import as_names

_IDS = ("round_ids", "arm_ids", "feature_names")
"""What `write` adds to the arrays that obp knows."""


def read_obp(
    feedback: Mapping[str, Any],
    *,
    cross: bool = False,
    position: int | None = None,
    features: Sequence[str] | None = None,
) -> BanditLog:
    """Take the dictionary that obp's datasets give: `action` and `action_context`, and with `cross` the `context`.

    Parameters
    ----------
    feedback
        `action`, shape (rounds,), numbers from 0; `action_context`, shape (actions, d), or (rounds, actions, d) where
        it differs between rounds; `context`, shape (rounds, c). Rewards and propensities are ignored. Every
        action is on offer in every round.
    cross
        Multiply every feature of the context with every feature of the actions, called `context_0 x action_context_0`
        and so on. By itself the context is the same for all arms, and so says nothing of the choice.
    position
        Keep the rounds of one position, as `position` numbers them.
    features
        Which features to keep, by name.

    Examples
    --------
    >>> feedback = {"action": np.array([1, 0]), "action_context": np.eye(2), "context": np.array([[3.0], [4.0]])}
    >>> log = read_obp(feedback, cross=True, features=["context_0 x action_context_1"])
    >>> log.chosen, log.features.ravel()
    (array([1, 0]), array([0., 3., 0., 4.]))
    """
    if not isinstance(cross, bool):
        raise InputError(f"option 'cross' is {cross!r}: pass True or False")
    action = _array(feedback, "action", "iu", (1,))
    arms = _array(feedback, "action_context", "fiub", (2, 3))
    if arms.dtype != np.float32:
        arms = arms.astype(np.float64, copy=False)
    _check_sizes(feedback, action, arms)
    kept = _at_position(feedback, position, len(action))
    context = _context(feedback, len(action)) if cross else None
    own = _names(feedback, arms.shape[-1])
    common = [] if context is None else [f"context_{i}" for i in range(context.shape[1])]
    n_arms = arms.shape[-2]
    offsets = np.arange(len(kept) + 1, dtype=np.int64) * n_arms
    check_memory(arms.itemsize * int(offsets[-1]) * len(own) * (1 + len(common)))
    table: Features = np.empty((int(offsets[-1]), len(own) * (1 + len(common))), dtype=arms.dtype)
    rows = arms[kept] if arms.ndim == 3 else np.broadcast_to(arms, (len(kept), *arms.shape))
    table[:, : len(own)] = rows.reshape(-1, len(own))
    if context is not None:
        products(table[:, len(own) :], context[kept], table[:, : len(own)], offsets)
    names = own + crossed(common, own)
    for name in features or ():
        check_columns(names, {"features": name})
    wanted = names if features is None else list(features)
    log = BanditLog(
        table if wanted == names else table[:, [names.index(name) for name in wanted]],
        offsets,
        action[kept].astype(np.int64),
        feature_names=wanted,
        round_ids=_ids(feedback, "round_ids", (len(action),), kept),
        arm_ids=_arm_ids(feedback, (len(action), n_arms), kept),
    )
    if not cross and "context" in feedback and feedback["context"] is not None:
        warn(
            "the context is the same for all arms of a round, so no pick depends on it by itself: left out, cross=True "
            "multiplies it with the features of the actions",
            SharedFeaturesWarning,
        )
    return log


def read(
    file: LogFile, *, cross: bool = False, position: int | None = None, features: Sequence[str] | None = None
) -> BanditLog:
    """See `read_obp`; nothing in the file is run."""
    try:
        with file.plain() as plain, zipfile.ZipFile(cast("BinaryIO", plain)) as archive:
            check_memory(sum(member.file_size for member in archive.infolist()))
        with file.plain() as plain, _named_arrays(np.load(cast("BinaryIO", plain), allow_pickle=False)) as arrays:
            return read_obp(arrays, cross=cross, position=position, features=features)
    except InputError:
        raise
    except MemoryError as error:
        raise InputError("does not fit into memory: keep a part of the rounds") from error
    # An archive that is encrypted, or compressed in a way that is not known, is a RuntimeError.
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile, zlib.error, RuntimeError) as error:
        raise InputError(f"cannot be read as arrays ({one_line(error)}): write it again with numpy.savez") from error


def _named_arrays(found: Any) -> Any:
    if isinstance(found, np.ndarray):
        raise InputError("holds one array without a name: write several with numpy.savez")
    return found


def write(log: BanditLog, file: BinaryIO, more: Mapping[str, NDArray[Any]] | None = None) -> None:
    """Write a log whose rounds all offer as many arms; `action_context` has one entry a round if they differ.

    `more` are arrays to write beside those of the log.
    """
    n_arms = int(log.n_arms[0])
    if (log.n_arms != n_arms).any():
        t = int(np.flatnonzero(log.n_arms != n_arms)[0])
        raise InputError(
            f"obp offers the same actions in every round, but round {t} offers {log.n_arms[t]} arms and round 0 "
            f"{n_arms}: write .parquet"
        )
    arms = log.dense.reshape(log.n_rounds, n_arms, log.n_features)
    arrays: dict[str, NDArray[Any]] = {
        "n_rounds": np.array(log.n_rounds),
        "n_actions": np.array(n_arms),
        "action": log.chosen,
        "action_context": arms[0] if (arms == arms[:1]).all() else arms,
    }
    for name in _IDS:
        # Rows are written out: a log of contexts has a feature for each of its weights.
        values = log.weight_names if name == "feature_names" else getattr(log, name)
        if values is not None:
            arrays[name] = _plain(values, name)
    arrays.update(more or {})
    np.savez(file, allow_pickle=False, **arrays)


def _array(feedback: Mapping[str, Any], name: str, kinds: str, dimensions: tuple[int, ...]) -> NDArray[Any]:
    if name not in feedback or feedback[name] is None:
        hint = "; where actions have no features, numpy.eye(n_actions) tells them apart" if "_" in name else ""
        raise InputError(f"has no array {name!r}: obp's feedback has one{hint}")
    array = np.asarray(feedback[name])
    if array.dtype.kind not in kinds or array.ndim not in dimensions:
        wanted = "whole numbers" if "f" not in kinds else "numbers"
        shapes = " or ".join(map(str, dimensions))
        raise InputError(
            f"array {name!r} has dtype {array.dtype} and {array.ndim} dimensions: give {wanted} in {shapes} dimensions"
        )
    return array


def _check_sizes(feedback: Mapping[str, Any], action: NDArray[Any], arms: NDArray[Any]) -> None:
    n_rounds, n_actions = len(action), arms.shape[-2]
    if not n_rounds:
        raise InputError("array 'action' is empty: nothing was picked")
    for name, size in {"n_rounds": n_rounds, "n_actions": n_actions}.items():
        if name in feedback and np.size(feedback[name]) == 1 and np.asarray(feedback[name]).item() != size:
            found = one_line(str(feedback[name]), 40)
            raise InputError(f"{name!r} is {found}, but the arrays have {size}: make them agree")
    if arms.ndim == 3 and len(arms) != n_rounds:
        raise InputError(f"array 'action_context' has {len(arms)} rounds, but 'action' has {n_rounds}: make them agree")
    wrong = np.flatnonzero((action < 0) | (action >= n_actions))
    if len(wrong):
        t = int(wrong[0])
        raise InputError(f"round {t} picks action {action[t]}, but there are {n_actions} (counted from 0): correct it")


def _at_position(feedback: Mapping[str, Any], position: int | None, n_rounds: int) -> Index:
    """Rounds to keep."""
    if position is None:
        return np.arange(n_rounds)
    found = _array(feedback, "position", "iu", (1,))
    if len(found) != n_rounds:
        raise InputError(f"array 'position' has {len(found)} entries for {n_rounds} rounds: make them agree")
    kept = np.flatnonzero(found == position)
    if not len(kept):
        raise InputError(f"no round has position {position}: there are {np.unique(found)[:10].tolist()}")
    return kept


def _context(feedback: Mapping[str, Any], n_rounds: int) -> NDArray[Any]:
    context = _array(feedback, "context", "fiub", (2,))
    if len(context) != n_rounds:
        raise InputError(f"array 'context' has {len(context)} rows for {n_rounds} rounds: make them agree")
    wrong = np.argwhere(~np.isfinite(context))
    if len(wrong):
        t, j = wrong[0].tolist()
        raise InputError(f"array 'context', round {t}, column {j} is {context[t, j]}: fill it in or leave it out")
    return context


def _names(feedback: Mapping[str, Any], width: int) -> list[str]:
    if "feature_names" in feedback:
        return [*(as_names(_array(feedback, "feature_names", "U", (1,)).tolist(), width) or ())]
    return [f"action_context_{j}" for j in range(width)]


def _ids(feedback: Mapping[str, Any], name: str, shape: tuple[int, ...], kept: Index) -> Ids | None:
    if name not in feedback:
        return None
    ids = np.asarray(feedback[name])
    if ids.size != np.prod(shape):
        raise InputError(f"array {name!r} has {ids.size} entries, but {np.prod(shape)} are needed: make them agree")
    return ids.reshape(shape)[kept].ravel()


def _arm_ids(feedback: Mapping[str, Any], shape: tuple[int, int], kept: Index) -> Ids:
    """Ids of the arms, which are the actions' numbers unless `write` left others."""
    given = _ids(feedback, "arm_ids", shape, kept)
    return np.tile(np.arange(shape[1]), len(kept)) if given is None else given


def _plain(values: Any, name: str) -> NDArray[Any]:
    """An array that needs no pickle."""
    array = np.asarray(values)
    if array.dtype.kind != "O":
        return array
    if not all(isinstance(value, str) for value in array.tolist()):
        raise InputError(f"{name} mixes text and numbers: make them one kind")
    return array.astype(str)


FORMAT = Format(name="obp feedback", suffixes=(".npz",), recognises=lambda _: True, read=read, write=write)
