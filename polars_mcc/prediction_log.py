"""The main class of the package: a described frame, with the verbs as methods."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import nullcontext
from datetime import datetime
from functools import wraps
from pathlib import Path
from typing import Any, TypeVar, cast

import polars as pl

from polars_mcc._base.errors_and_warnings import in_own_words, warn_of
from polars_mcc._base.message_parts import Words, as_code, refused
from polars_mcc._base.unstable_polars import deferred
from polars_mcc._counts.label_hashes import SEEN, Seen, seen
from polars_mcc._counts.warnings_on_labels_and_keys import LogLabels, key_is_gold, remarks
from polars_mcc._counts.warnings_on_missing_labels import seldom_of_late, sooner_for_some
from polars_mcc._frame.columns import Frame, FrameT
from polars_mcc._frame.log_options import Described
from polars_mcc._frame.missing_and_likely_columns import MissingColumn, did_you_mean
from polars_mcc._frame.roles import GivenRoles
from polars_mcc._keys.any_key import IntoKey, Key, settled
from polars_mcc._metrics.registry import needs_two_classes
from polars_mcc._report.report import report as _report
from polars_mcc._verbs.by_and_score import by as _by
from polars_mcc._verbs.by_and_score import score as _score
from polars_mcc._verbs.calibration_and_curve_and_best_threshold import (
    best_threshold as _best_threshold,
)
from polars_mcc._verbs.calibration_and_curve_and_best_threshold import calibration as _calibration
from polars_mcc._verbs.calibration_and_curve_and_best_threshold import curve as _curve
from polars_mcc._verbs.changes import changes as _changes
from polars_mcc._verbs.check import CheckError
from polars_mcc._verbs.check import check as _check
from polars_mcc._verbs.classes import classes as _classes
from polars_mcc._verbs.compare_and_drift import compare as _compare
from polars_mcc._verbs.compare_and_drift import drift as _drift
from polars_mcc._verbs.confusion import confusion as _confusion
from polars_mcc._verbs.contrast import contrast as _contrast
from polars_mcc._verbs.counts_and_engine_counts import counts as _counts
from polars_mcc._verbs.counts_and_engine_counts import engine_counts as _engine_counts
from polars_mcc._verbs.gaps import gaps as _gaps
from polars_mcc._verbs.worst import worst as _worst

VerbT = TypeVar("VerbT", bound=Callable[..., Any])


def _as_method(verb: VerbT) -> VerbT:
    """Make a verb a method: it warns about labels, and its errors show how to call it."""
    parameters = inspect.signature(verb).parameters.values()
    defaults = {
        option.name: option.default for option in parameters if option.kind is option.KEYWORD_ONLY
    }

    has_keys = any(option.kind is option.VAR_POSITIONAL for option in parameters)

    @wraps(verb)
    def method(log: Described[Any], *given: Any, **options: object) -> Any:  # noqa: ANN401
        for name in options:
            if name not in defaults:
                raise TypeError(_no_option(name, verb.__name__, defaults, has_keys=has_keys))
        # They are read by the verb, and again for warnings.
        options = {
            name: [*value] if isinstance(value, Iterator) else value
            for name, value in options.items()
        }
        # Else the answer is lazy, and warns when it is collected: see `interval_options.inferred`.
        is_answered_here = isinstance(log.frame, pl.DataFrame) or verb is _check
        labels = Seen()
        try:
            counting = seen(log.roles.positive_label) if is_answered_here else nullcontext(labels)
            with counting as labels, in_own_words():
                answer = _answered(log, verb, given, options)
        except MissingColumn as error:
            named = (f"{name}={_as_pasted(value)}" for name, value in options.items())
            error.question = f".{verb.__name__}({', '.join([*map(_as_pasted, given), *named])})"
            raise
        except CheckError:
            warn_of(_warnings(log, verb, given, {**defaults, **options}, labels))
            raise
        warn_of(_warnings(log, verb, given, {**defaults, **options}, labels))
        return answer

    # Where pickle finds it.
    method.__module__, method.__qualname__ = __name__, f"PredictionLog.{verb.__name__}"
    return cast("VerbT", method)


def _answered(
    log: Described[Any],
    verb: Callable[..., Any],
    keys: Sequence[IntoKey],
    options: Mapping[str, Any],
) -> Any:  # noqa: ANN401 - of any verb
    """Ask a verb. If a key must read a lazy log first, all of it happens on `collect`."""
    within = options.get("within")
    inside = [within] if isinstance(within, (str, pl.Expr, Key)) else within or []
    kinds = [key for key in (*keys, *inside) if isinstance(key, Key)]
    if not kinds:  # The rows do not change what columns are.
        return verb(log, *keys, **options)

    def ask(*, unread: bool = False) -> Any:  # noqa: ANN401 - of any verb
        changed = {"within": settled(log, inside, unread=unread)} if inside else {}
        return verb(log, *settled(log, keys, unread=unread), **{**options, **changed})

    reads_anyway = verb in (_check, _report)
    if reads_anyway or all(key.is_settled for key in kinds) or not log.roles.is_lazy:
        return ask()
    if log.roles.portable:
        cuts = Words("bins('age', [18, 65])", '--by "bins(age, [18, 65])"')
        raise refused(
            "where to cut a key follows from the rows, which a plan for another engine has not "
            "read: give the cuts, as in ",
            cuts,
        )
    schema = ask(unread=True).collect_schema()
    return deferred(lambda: ask().collect().cast(dict(schema)), schema)


def _warnings(
    log: Described[Any],
    verb: Callable[..., Any],
    keys: Sequence[Any],
    options: Mapping[str, object],
    labels: Seen,
) -> Iterator[str]:
    """Sentences on labels that make scores wrong, 0 or 0/0, and how to mend them.

    The rows of a lazy log are not read, but `check` of rows of some age looks at their labels by
    day. `check` itself refuses scores that are 0 or 0/0.
    """
    if verb is _check and SEEN.get() is not None:
        return  # A command looks at labels later.
    is_read = isinstance(log.frame, pl.DataFrame) and verb not in (_changes, _report)
    if isinstance(log.frame, Frame) and (is_read or verb is _check):
        frame = log.frame.lazy()
        yield from seldom_of_late(log, lambda query: query(frame).collect(engine="streaming"))
    if verb is _check:
        if isinstance(log.frame, Frame):
            yield from remarks(LogLabels.of(log), labels, is_sound=True)
        return
    if needs_two_classes(options):
        yield from key_is_gold(log, keys)
    if isinstance(log.frame, pl.DataFrame) and not log.frame.is_empty():
        rows = log.frame.lazy()
        yield from sooner_for_some(log, lambda ages: ages(rows).collect())
        needs_two = needs_two_classes(options, or_positive=True)
        yield from remarks(LogLabels.of(log), labels, of_two_classes=needs_two)


def _no_option(name: str, verb: str, known: Collection[str], *, has_keys: bool) -> str:
    """Say that a verb does not have an option, and which options it has."""
    hint = did_you_mean(name, known, "{}=...")
    if name in GivenRoles._fields:
        hint = f", but the log has, as in log({name}=...).{verb}(...)."
    listed = f"The options are {', '.join(known)}." if known else "It has none."
    keys = f" Keys come first, without a name, as in {verb}('country')." if has_keys else ""
    return f"{verb}() has no option '{name}'{hint} {listed}{keys}"


def _as_pasted(value: object) -> str:
    """A value as Python code, or "..." if it has no short code, such as a frame."""
    if isinstance(value, pl.Expr):
        return as_code(value) if str(value).startswith("col(") else "..."
    if isinstance(value, list):
        return f"[{', '.join(map(_as_pasted, value))}]"
    is_short = value is None or isinstance(value, (str, int, float, Key))
    return as_code(value) if is_short else "..."


class PredictionLog(Described[FrameT]):
    """A prediction log: a frame, the meaning of its columns, and the verbs as methods.

    A DataFrame gives DataFrames, a LazyFrame gives LazyFrames. `frame.mcc` is
    `PredictionLog(frame)`, and `frame.mcc(gold="label")` is `PredictionLog(frame, gold="label")`.
    Type checkers know only the class.

    Examples:
        >>> import polars as pl
        >>> from polars_mcc import PredictionLog
        >>> frame = pl.DataFrame({"label": ["a", "b", "b"], "one": ["a", "b", "a"], "two": "b"})
        >>> log = PredictionLog(frame, gold="label", pred=["one", "two"])
        >>> log.score().rows()
        [('one', 3, 0.5, 0), ('two', 3, 0.0, 0)]
        >>> log(pred="two")
        PredictionLog(DataFrame, gold="label", pred="two")
    """

    by = _as_method(_by)
    score = _as_method(_score)
    compare = _as_method(_compare)
    contrast = _as_method(_contrast)
    gaps = _as_method(_gaps)
    worst = _as_method(_worst)
    drift = _as_method(_drift)
    changes = _as_method(_changes)
    curve = _as_method(_curve)
    best_threshold = _as_method(_best_threshold)
    calibration = _as_method(_calibration)
    check = _as_method(_check)
    counts = _as_method(_counts)
    engine_counts = _as_method(_engine_counts)
    classes = _as_method(_classes)
    confusion = _as_method(_confusion)
    report = _as_method(_report)

    @classmethod
    def from_store(
        cls,
        path: str | Path,
        *,
        version: int | datetime | None = None,
        storage_options: Mapping[str, str] | None = None,
    ) -> PredictionLog[pl.LazyFrame]:
        """Open a store of counts as a lazy log.

        The store knows the meaning of its columns, and how many rows each count stands for. The log
        has the counts of one version of the store, without counts that are added later.

        Args:
            path: The folder, or its URL.
            version: The version to open: a number, or a time, for the version that was the newest
                then. A time without a time zone is local. None: the newest version.
            storage_options: Credentials and settings of the object storage, as in Polars. None:
                they come from the environment.

        Returns:
            A lazy log with the keys of the store, with `gold` and `pred` under the names that the
            store was made with, and with `weight="n"`.

        Raises:
            ValueError: The folder is not a store, has no counts yet, or has no such version.
            TypeError: `version` is neither a number nor a datetime.
            ModuleNotFoundError: deltalake is not installed.

        Examples:
            >>> import tempfile
            >>> from polars_mcc import PredictionLog, keep_counts
            >>> store = tempfile.mkdtemp()
            >>> done = keep_counts("data/digits.parquet", store, "fold", pred=["knn", "logistic"])
            >>> PredictionLog.from_store(store).score().collect()["model"].to_list()
            ['knn', 'logistic']
            >>> PredictionLog.from_store(store, version=1).score().collect()["n"].to_list()
            [1797, 1797]
        """
        from polars_mcc._store.delta_table import open_store  # noqa: PLC0415 - few need it
        from polars_mcc._store.stored_columns import log_options_of  # noqa: PLC0415 - as above

        kept = open_store(str(path), storage_options, version)
        return PredictionLog(kept.scan(), **log_options_of(kept.about))
