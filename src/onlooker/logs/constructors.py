"""From arrays and tables to a `BanditLog`, and back to a table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Self, Unpack, cast, overload

import numpy as np
from numpy.typing import ArrayLike

from onlooker.base.errors import InputError
from onlooker.logs.categories import Encoded
from onlooker.logs.ragged import as_index

if TYPE_CHECKING:
    from onlooker.logs.columns import ColumnOptions
    from onlooker.logs.log import BanditLog


class Constructors:
    """Class methods that build a `BanditLog` from arrays and tables, separate from the value itself."""

    __slots__ = ()

    if TYPE_CHECKING:

        def __init__(self, features: Any, offsets: Any, chosen: Any, **names: Any) -> None: ...

    @classmethod
    def from_dense(
        cls,
        X: ArrayLike,
        chosen: ArrayLike,
        mask: ArrayLike | None = None,
        *,
        feature_names: Sequence[str] | None = None,
    ) -> Self:
        """Build a log from an array of shape (N, K, d); `mask` of shape (N, K) is true where an arm was offered.

        `chosen` counts among all K arms. Nothing is copied if every arm was offered.

        Examples
        --------
        >>> from onlooker import BanditLog
        >>> import numpy as np
        >>> X = np.arange(12.0).reshape(2, 3, 2)
        >>> log = BanditLog.from_dense(X, chosen=[2, 0], mask=[[True, False, True], [True, True, True]])
        >>> log.offsets, log.chosen
        (array([0, 2, 5]), array([1, 0]))
        """
        dense = np.asarray(X)
        if dense.ndim != 3:
            raise InputError(f"X has shape {dense.shape}: pass an array of shape (rounds, arms, features)")
        n_rounds, n_arms, n_features = dense.shape
        picks = as_index(chosen, "chosen")
        if len(picks) != n_rounds:
            raise InputError(f"chosen has {len(picks)} entries, but X has {n_rounds} rounds: pass one pick per round")
        rows = dense.reshape(n_rounds * n_arms, n_features)
        if mask is None:
            offsets = np.arange(n_rounds + 1, dtype=np.int64) * n_arms
            return cls(rows, offsets, picks, feature_names=feature_names)
        offered = np.asarray(mask, dtype=bool)
        if offered.shape != (n_rounds, n_arms):
            raise InputError(f"mask has shape {offered.shape}, X offers {(n_rounds, n_arms)}: make them the same")
        outside = np.flatnonzero((picks < 0) | (picks >= n_arms))
        if len(outside):
            t = int(outside[0])
            raise InputError(f"round {t} picks position {picks[t]}, but X has {n_arms} arms: count from 0")
        hidden = np.flatnonzero(~offered[np.arange(n_rounds), picks])
        if len(hidden):
            t = int(hidden[0])
            raise InputError(f"round {t} picks arm {picks[t]}, which the mask says was not offered")
        if offered.all():
            return cls.from_dense(dense, picks, feature_names=feature_names)
        offsets = np.concatenate([[0], np.cumsum(offered.sum(axis=1))]).astype(np.int64)
        positions = np.cumsum(offered, axis=1)[np.arange(n_rounds), picks] - 1
        return cls(rows[offered.ravel()], offsets, positions, feature_names=feature_names)

    @classmethod
    def from_sparse(
        cls,
        rows: Any,
        offsets: ArrayLike,
        chosen: ArrayLike,
        *,
        feature_names: Sequence[str] | None = None,
    ) -> Self:
        """Build a log from a SciPy sparse matrix, one row per offered arm. It stays sparse.

        Examples
        --------
        >>> from onlooker import BanditLog
        >>> from scipy.sparse import csr_array
        >>> rows = csr_array(([1.0, 1.0, 2.0], [0, 4, 4], [0, 1, 2, 3]), shape=(3, 5))
        >>> BanditLog.from_sparse(rows, offsets=[0, 2, 3], chosen=[1, 0])
        BanditLog(2 rounds, 1 to 2 arms, 5 features, sparse float64)
        """
        if not hasattr(rows, "tocsr"):
            raise InputError(f"rows is a {type(rows).__name__}: pass a scipy.sparse matrix, or make a BanditLog of it")
        return cls(rows, offsets, chosen, feature_names=feature_names)

    @classmethod
    def from_contexts(
        cls,
        contexts: Any,
        chosen: Any,
        *,
        arms: Any = None,
        arm_features: Any = None,
        offered: Any = None,
        feature_names: Sequence[str] | None = None,
        times: ArrayLike | None = None,
    ) -> Self:
        """Build a log from one row per round: its context, and which of a fixed set of arms was picked.

        Without `arm_features` every arm has its own weights for the features of the context: `theta` is arm after
        arm, and `theta.reshape(K, p)` has one row per arm. With them, there is a weight for every feature of the arms,
        and for its product with every feature of the context. The rows are never written out: the log takes the memory
        of the contexts, and `log.features` is a layout with `@`, `.T @`, slices and `toarray()`.

        Parameters
        ----------
        contexts
            Shape (N, p), or a table (pandas, polars, pyarrow) whose text columns become categories. A column of ones
            is the weight that an arm has in every context; without one, there is none. Categories get one, called
            "1", because without it nothing would distinguish the arms at their reference levels.
        chosen
            Id of the arm that each round picked, shape (N,): numbers or text.
        arms
            Ids of all arms, in the order of the weights. By default those that are picked or offered, sorted.
        arm_features
            Shape (K, q), one row an arm in the order of `arms`; or a table, whose rows are matched by a column `arm`,
            `item` or `id` (or the index, in pandas) where it has one.
        offered
            What each round offers: None for all arms, a boolean mask of shape (N, K), or a list of ids for every round.
        feature_names
            Names of the p features of the context; of a table, the columns to take.
        times
            Time of each round.

        Examples
        --------
        >>> from onlooker import BanditLog
        >>> contexts = np.array([[1.0, 0.2], [1.0, 0.9], [1.0, 0.4]])
        >>> log = BanditLog.from_contexts(contexts, ["tea", "milk", "tea"], feature_names=["one", "age"])
        >>> log
        BanditLog(3 rounds, 2 arms, 2 features x 2 arms, factored float64)
        >>> log.weight_names
        ('milk: one', 'milk: age', 'tea: one', 'tea: age')
        >>> log.arms(0)
        array([[1. , 0.2, 0. , 0. ],
               [0. , 0. , 1. , 0.2]])
        """
        from onlooker.logs.contexts import parts_of_contexts

        found = parts_of_contexts(
            contexts,
            chosen,
            arms=arms,
            arm_features=arm_features,
            offered=offered,
            feature_names=feature_names,
        )
        return cls(
            found.rows,
            found.offsets,
            found.chosen,
            feature_names=found.feature_names,
            times=times,
            categories=found.categories,
        )

    @overload
    @classmethod
    def from_frame(cls, frame: Any, *, by: None = ..., **columns: Unpack[ColumnOptions]) -> BanditLog: ...

    @overload
    @classmethod
    def from_frame(cls, frame: Any, *, by: str, **columns: Unpack[ColumnOptions]) -> dict[str, BanditLog]: ...

    @classmethod
    def from_frame(
        cls,
        frame: Any,
        *,
        round: str = "round",
        chosen: str = "chosen",
        arm: str | None = None,
        features: Sequence[str] | None = None,
        order_by: str | None = None,
        categories: Sequence[str] | None = None,
        like: Encoded | None = None,
        by: str | None = None,
        context: Sequence[str] = (),
        offered: str | None = None,
        items: Any = None,
        users: Any = None,
        user: str | None = None,
        cross: Sequence[tuple[str, str]] | None = None,
        slate: str | None = None,
        wide: str | None = None,
        candidates: str | None = None,
        possible: str | None = None,
        picked_group: str | None = None,
        offer_probability: str | None = None,
        missing: str | None = None,
    ) -> BanditLog | dict[str, BanditLog]:
        """Build a log from a long table (pandas, polars, pyarrow): one row per offered arm.

        Rounds are in the order of `order_by`, or else of first appearance; the rows of a round need not be
        next to each other. `chosen` is 0/1 or boolean, with exactly one pick per round. `features` defaults to all
        other columns of numbers or text, except rewards, propensities and row numbers.

        Text is a category, and so are the columns that `categories` names: one feature `column=level` for every level
        but the first, which is the reference. Unless it is named, text of more than 32 levels is left out with a
        warning. `like`, a log or a policy, encodes exactly as that was encoded, so that the two fit together. `by` is a
        column that names the learner or restart: the result is then a log of each, by its name.

        `cross` lists pairs of columns whose products are features too, called `left:right`: of two numbers, of a number
        and each level of a category, or of the levels of two. `slate` names the position of a pick where a round has
        several: each position is then a round with one pick, among the arms that are left.

        Where only a set is known that holds the pick, `possible` names a column that is 1 for each of its arms; or
        `picked_group` names one with the group of each arm, and `chosen` then has the group of the pick, or is 1 for an
        arm of it. Where offers are a sample, `offer_probability` names the column with what each row is kept with.
        Missing values of features are refused; `missing="leave-out"` leaves their rounds out, and warns how many.

        A table of one row per round names the columns that describe the round with `context` and the picked arm with
        `arm`; `offered` is a column with the ids of the arms on offer, and `items` a table of the arms' features by id.
        `users` is a table of what describes a round's user by id, and `user` the column of these ids.
        See `from_contexts` for what the weights are. Or the columns of the arms are side by side, as `arm1_price` and
        `arm2_price`, and `chosen` names the arm (`wide="{arm}_{feature}"` says how the columns are named, where that is
        not clear); arms whose columns are all missing were not offered. Or the column `candidates` holds a list of
        objects, one per arm, and `chosen` is a position from 0, the id in `arm`, or a flag in the objects.

        Examples
        --------
        >>> from onlooker import BanditLog
        >>> import pyarrow as pa
        >>> table = pa.table({"round": ["a", "a", "b", "b"], "chosen": [0, 1, 1, 0], "price": [9.0, 7.0, 5.0, 8.0]})
        >>> log = BanditLog.from_frame(table)
        >>> log.chosen, log.feature_names
        (array([1, 0]), ('price',))
        >>> table = table.append_column("colour", [["red", "blue", "blue", "red"]])
        >>> BanditLog.from_frame(table).feature_names, BanditLog.from_frame(table).categories["colour"]
        (('price', 'colour=red'), ('blue', 'red'))
        >>> visits = pa.table({"age": [30.0, 45.0], "hour": [9.0, 21.0], "shown": ["news", "sport"]})
        >>> BanditLog.from_frame(visits, context=["age", "hour"], arm="shown").chosen
        array([0, 1])
        >>> visits = pa.table({"user": ["ann", "bob", "ann"], "shown": ["news", "sport", "sport"]})
        >>> users = pa.table({"user": ["ann", "bob"], "age": [30.0, 45.0]})
        >>> BanditLog.from_frame(visits, arm="shown", users=users).features.contexts.ravel()
        array([30., 45., 30.])
        """
        from onlooker.logs.columns import Columns
        from onlooker.logs.frames import parts_of_frame
        from onlooker.logs.log import BanditLog

        columns = Columns(
            round=round,
            chosen=chosen,
            arm=arm,
            features=features,
            order_by=order_by,
            categories=categories,
            like=like,
            by=by,
            cross=cross or (),
            slate=slate,
            wide=wide,
            candidates=candidates,
            context=context,
            offered=offered,
            items=items,
            users=users,
            user=user,
            possible=possible,
            picked_group=picked_group,
            offer_probability=offer_probability,
            missing=missing,
        )
        if columns.per_round:
            from onlooker.logs.round_table import rounds_of_frame

            found = rounds_of_frame(frame, columns)
            return found.log if found.by is None else found.log.split(found.by)
        parts = parts_of_frame(frame, columns)
        log = BanditLog.from_parts(parts)
        return log if parts.by is None else log.split(parts.by)

    def to_frame(self) -> Any:
        """Convert the log to a long table, one row per offered arm; `from_frame` gives the same log back.

        The table is of pandas where that is installed, else of pyarrow.
        Columns are `round`, `chosen`, where the log has them `arm`, `time` and `position` (in a slate), and the
        features: numbers as they are, categories as text. The table carries their meaning in `attrs` or in Arrow's
        metadata; one of another library made of it does not, so pass `arm="arm"`, `order_by="time"` and
        `slate="position"` there.
        Rounds and features without names get some. Layouts that are not dense are written out, or refused where that
        would take too much memory.

        Examples
        --------
        >>> from onlooker import BanditLog
        >>> log = BanditLog(np.eye(3), offsets=[0, 1, 3], chosen=[0, 1], feature_names=["a", "b", "c"])
        >>> list(log.to_frame().columns)
        ['round', 'chosen', 'a', 'b', 'c']
        >>> BanditLog.from_frame(log.to_frame()).chosen
        array([0, 1])
        """
        from onlooker.logs.long_tables import frame_of

        return frame_of(cast("BanditLog", self))
