"""The sides of a log and keys → the log, cut into slices."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

import polars as pl

from polars_mcc._base.message_parts import Words, renamed, said
from polars_mcc._counts import sliced_log
from polars_mcc._counts.exact_sums import numbers
from polars_mcc._counts.gold_and_pred import Sides
from polars_mcc._counts.sliced_log import SlicedLog
from polars_mcc._frame.columns import IntoColumn, NamedColumns, as_expr, one_column
from polars_mcc._frame.roles import Roles
from polars_mcc._keys.any_key import IntoKey, keys_of, name_of, twice


def cut(
    sides: Sides,
    keys: Sequence[IntoKey],
    *,
    taken: Iterable[str],
    clusters: bool = False,
    periods: Mapping[str, IntoColumn] | None = None,
    long: bool = False,
    shown: Collection[str] | None = None,
) -> SlicedLog:
    """Cut a log into slices by keys.

    Args:
        sides: What is compared in each row: see `sides_of`.
        keys: The keys to group by.
        taken: The other columns of the answer: no key may have such a name.
        clusters: Whether to count each cluster separately, if the log has clusters.
        periods: A condition per period, by name. Rows in no period are left out.
        long: Whether the answer has slices in the long form.
        shown: The keys that are columns of the answer; None: all, but for the long form.
    """
    roles, taken = sides.roles, [*taken]
    if len({*taken}) < len(taken):
        raise ValueError(
            f"a metric has the name of another column of the answer, '{twice(taken)[0]}'; rename "
            "the metric with .alias(...)"
        )
    columns, sets, windows = keys_of(roles.schema, keys, long=long)
    of_keys = {"key": columns}
    last: tuple[str, ...] = ()
    taken += sliced_log.LONG if long else [sliced_log.SET] if sets is not None else []
    if windows is not None:
        of_keys["index"], last = windows.index, windows.index.names
        taken.append(sliced_log.COMPLETE)
    dtypes = pl.Schema(item for named in of_keys.values() for item in named.dtypes.items())
    taken += ["model"] if sides.has_models else []
    taken += [sliced_log.N_WAITING] if roles.waiting else []
    for name, dtype in dtypes.items():
        if dtype.is_object():
            msg = f"key '{name}' has dtype Object, which cannot be grouped; cast it first"
            raise pl.exceptions.SchemaError(msg)
        is_shown = name in last or not long if shown is None else name in shown
        if name in taken and is_shown:
            message = f"key '{name}' has the name of a column of the answer; rename it, as in "
            raise pl.exceptions.DuplicateError(said(message, renamed(name, f"{name}_key")))
    splitting = {"cluster": roles.cluster} if clusters and roles.cluster is not None else {}
    splitting |= _conditions(roles, periods) if periods else {}
    weighed = roles.weighed({**of_keys, **sides.columns, **splitting})
    frame = weighed.frame
    if periods:  # First, so that Polars pushes the filter into the scan.
        frame = frame.filter(pl.any_horizontal(map(as_expr, periods.values())))
    keys_of_rows = [
        as_expr(key).name.prefix(sliced_log.KEY)
        for named in of_keys.values()
        for key in named.given
    ]
    splits = [named.expr.alias(name) for name, named in splitting.items()]
    weights = [weighed.weight.alias("weight"), *map(pl.col, weighed.sums)]
    has_baseline = sides.baseline is not None or "baseline" in sides.columns
    pair_splits = [*(["baseline"] if has_baseline else []), *splitting]
    if sides.is_per_class and sides.of_row is None:
        pair_splits += [sliced_log.CLASS, *([sliced_log.GOLD_CLASS] if sides.by_gold_class else [])]
    models = tuple(name for name in sides.columns[sliced_log.PRED].dtypes if name != sides.baseline)
    floats = [sliced_log.KEY + name for name, dtype in dtypes.items() if dtype.is_float()]
    # Rows with -0.0 are in the slice 0.0.
    zeros = [pl.when(pl.col(key) == 0).then(0.0).otherwise(key).alias(key) for key in floats]
    rows = sides.selected(frame, [*keys_of_rows, *splits, *weights])
    return SlicedLog(
        frame=rows.with_columns(zeros),
        is_portable=roles.portable,
        keys=(*dtypes,),
        key_dtypes=dtypes,
        models=("score",) if sides.is_per_class else models,
        has_models=sides.has_models,
        has_total=windows is None and (not dtypes if sets is None else () in sets),
        sets=None if sets is None else {name_of(keys): (*keys, *last) for keys in sets},
        windows=windows,
        pair_splits=(*pair_splits,),
        is_long=long,
        label_dtype=sides.label_dtype,
        pred_dtype=sides.pred_dtype,
        nulls="drop" if sides.is_of_scores else roles.nulls,
        zero_division=roles.zero_division,
        is_multilabel=roles.is_multilabel,
        is_of_scores=sides.is_of_scores,
        epsilon=sides.epsilon,
        waiting=roles.waiting,
        weight_name=weighed.name,
        is_frequency=roles.is_frequency,
        numbers=numbers(weighed.dtype),
        weight_sums=weighed.sums,
    )


def _conditions(roles: Roles, periods: Mapping[str, IntoColumn]) -> dict[str, NamedColumns]:
    """The conditions of periods, which must be Boolean."""
    conditions = {}
    for name, period in periods.items():
        conditions[name] = condition = one_column(roles.schema, period, name)
        if condition.dtype != pl.Boolean:
            msg = said(
                f"{name} must be a Boolean condition, as in ",
                Words("pl.col('day') < date(2026, 3, 15)", "day < DATE '2026-03-15'"),
                f", but '{condition.name}' is {condition.dtype}",
            )
            raise pl.exceptions.SchemaError(msg)
    return conditions
