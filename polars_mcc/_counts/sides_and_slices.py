"""A log → its gold, predicted and other columns → its slices."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl
import polars.selectors as cs

from polars_mcc._base.allowed_values import Role
from polars_mcc._base.errors_and_warnings import Failure, unless
from polars_mcc._base.message_parts import Words, option, refused, renamed, said
from polars_mcc._counts import sliced_log
from polars_mcc._counts.exact_sums import numbers
from polars_mcc._counts.sliced_log import CLASS, EPSILON, GOLD_CLASS, KEY, PRED, OfRow, SlicedLog
from polars_mcc._frame.columns import IntoColumn, NamedColumns, as_expr, check_score, one_column
from polars_mcc._frame.labels import as_compared, common_dtype
from polars_mcc._frame.log_options import Described
from polars_mcc._frame.roles import Roles
from polars_mcc._keys.any_key import IntoKey, keys_of, name_of, twice

SCORE = f"{PRED}score"
"""The column of the one score, made of a score per class."""
_EPSILONS: Mapping[pl.DataType, float] = {pl.Float32(): 2.0**-23, pl.Float16(): 2.0**-10}
NEEDED = "needed:"
"""Begins the other kind of columns, if a row needs both a label and a score."""


@dataclass(frozen=True)
class Sides:
    """The columns of a log whose values are compared in each row. `sides_of` finds them."""

    roles: Roles
    columns: Mapping[str, NamedColumns]
    """By side: `gold`; `pred:`, the label or score of each model; `baseline`, if it is a column;
    `needed:`, the other kind of column, if a row needs both a label and a score."""
    baseline: str | None
    """The name of the model that others are compared with."""
    has_models: bool
    is_of_scores: bool
    is_per_class: bool
    """Whether a row has a score per class."""
    label_dtype: pl.DataType
    pred_dtype: pl.DataType
    of_row: OfRow | None
    by_gold_class: bool

    @property
    def epsilon(self) -> float:
        """The machine epsilon of the scores; the largest, so that models are treated alike."""
        compared = [named for side, named in self.columns.items() if side in {PRED, "baseline"}]
        dtypes = [dtype for named in compared for dtype in named.dtypes.values()]
        return max(_EPSILONS.get(dtype, EPSILON) for dtype in dtypes)

    def selected(self, frame: pl.LazyFrame, others: Iterable[pl.Expr]) -> pl.LazyFrame:
        """Select the sides beside other columns, with equal values equal.

        A row that is not scored has a null.
        """
        columns = [*others]
        for side, named in self.columns.items():
            if side in {PRED, NEEDED}:
                columns += [as_expr(column).name.prefix(side) for column in named.given]
            elif side == "gold" and self.is_of_scores:
                columns.append(_is_positive(self.roles).alias(side))
            else:
                columns.append(named.expr.alias(side))
        frame = frame.select(columns)
        models, needed = self.columns[PRED], self.columns.get(NEEDED)
        sides = {PRED + name: (name, dtype) for name, dtype in models.dtypes.items()}
        for side in ["baseline"] if self.is_of_scores else ["gold", "baseline"]:
            if side in self.columns:
                [sides[side]] = self.columns[side].dtypes.items()
        frame = frame.with_columns(
            as_compared(pl.col(side), name, dtype, self.pred_dtype)
            for side, (name, dtype) in sides.items()
        )
        if needed is not None:
            frame = _with_both(frame, models, needed, self.roles)
        if self.is_per_class:
            frame = _of_classes(self, frame, models)
        if self.baseline is not None:
            frame = frame.rename({PRED + self.baseline: "baseline"})
        return frame


def sides_of(
    log: Described[Any],
    role: Role = "pred",
    *,
    several: bool = False,
    of_row: OfRow | None = None,
    by_gold_class: bool = False,
    both: bool = False,
    baseline: IntoColumn | None = None,
) -> Sides:
    """The gold labels of a log beside the labels, or the scores, of its models.

    Args:
        log: The log. Its own columns are already checked.
        role: "pred" takes the predicted labels of the models. "score" takes their scores; gold
            then says whether a row is positive.
        several: Whether a row may have several labels, in lists, or a score per class. Without
            `of_row`, a row with a score per class becomes a row per class, named by `CLASS`.
        of_row: Makes one score of the scores of a row, if the log has a score per class.
        by_gold_class: Whether a row per class also has `GOLD_CLASS`.
        both: Whether a row needs both a predicted label and a score to be scored.
        baseline: The model that other models are compared with: the name of a model, or a column.
    """
    roles = log.roles
    other: Role = "score" if role == "pred" else "pred"
    asked = (role, other) if both else (role,)
    of_role = {"pred": roles.preds, "score": roles.scores}
    models, needed = of_role[role], of_role[other]
    missing = [name for name in asked if of_role[name] is None]
    if models is None or missing:
        raise ValueError(_no_side(missing[0]))
    if "score" in asked and roles.nulls == "reweight":
        raise refused(
            option("nulls", "reweight"),
            " does not support scores: labelled rows stand for rows with the same predicted label; "
            "leave it out, as in ",
            option("nulls", "drop", of="log"),
        )
    columns = {"gold": roles.gold, PRED: models}
    if both and needed is not None:
        _check_both(roles)
        columns[NEEDED] = needed
    model = None if baseline is None else model_named(baseline, models)
    of_models = [*models.dtypes.items()]
    if baseline is not None and model is None:
        columns["baseline"] = column = one_column(roles.schema, baseline, "baseline")
        of_models += column.dtypes.items()
    labelled = [*roles.gold.dtypes.items(), *of_models]
    if role == "score":
        common_dtype(labelled[:1])  # raises for lists
        for name, dtype in of_models:
            check_score(name, dtype)
        dtypes = {dtype for _, dtype in of_models}
        is_exact = len(dtypes) == 1 or all(dtype.is_integer() for dtype in dtypes)
        # One score is computed of the scores of all classes.
        is_float = bool(roles.score_labels) or not is_exact
        labels: pl.DataType = pl.Boolean()
        preds = pl.Float64() if is_float else common_dtype(of_models)
        if roles.score_labels and of_row is None and not several:
            raise ValueError(
                "this log has a score per class, and here one score is needed: ask for one class, "
                f"as in log(score={models.names[0]!r}, positive={roles.score_labels[0]!r})"
            )
    elif roles.is_multilabel and several:
        labels, preds = roles.label_dtype, pl.List(roles.label_dtype)
    else:
        labels = preds = common_dtype(labelled)  # raises for lists
    return Sides(
        roles=roles,
        columns=columns,
        baseline=model,
        has_models=roles.has_models(asked) or baseline is not None,
        is_of_scores=role == "score",
        is_per_class=role == "score" and bool(roles.score_labels),
        label_dtype=labels,
        pred_dtype=preds,
        of_row=of_row,
        by_gold_class=by_gold_class,
    )


def _no_side(role: Role) -> Words:
    """The message that a log has no predicted labels, or no scores."""
    if role == "pred":
        return said(
            "this log has scores and no predicted labels: cut a score at a threshold, as in ",
            Words("frame.mcc(pred=pl.col('score') >= 0.5)", "--pred 'score >= 0.5'"),
            ", or ask for a metric of scores, such as 'roc_auc'",
        )
    return said(
        "this log has no score: say which column has the model's score for the positive "
        "class, as in ",
        option("score", "probability", of="frame.mcc"),
    )


def model_named(baseline: IntoColumn, models: NamedColumns) -> str | None:
    """The name of the baseline if it is a model of the log, else None."""
    if isinstance(baseline, pl.Expr) and not baseline.meta.has_multiple_outputs():
        named = baseline.meta.is_column_selection()
        baseline = baseline.meta.output_name() if named else baseline
    return baseline if isinstance(baseline, str) and baseline in models.names else None


def _is_positive(roles: Roles) -> pl.Expr:
    """Whether the gold label of a row is positive; with a score per class, the label itself."""
    gold = roles.gold
    label = as_compared(gold.expr, gold.name, gold.dtype, roles.label_dtype)
    if roles.score_labels:
        return label.cast(roles.label_dtype)
    if roles.positive is not None:
        return label == roles.positive
    if roles.label_dtype != pl.Boolean:
        raise refused(
            f"gold '{gold.name}' is {gold.dtype}: say which label is positive, as in ",
            option("positive", 1 if gold.dtype.is_numeric() else "fraud"),
            ", or make gold Boolean",
        )
    return label


def _check_both(roles: Roles) -> None:
    """Raise a ValueError unless each model has both a predicted label and a score."""
    assert roles.preds is not None and roles.scores is not None  # noqa: S101, PT018 - for types
    preds, scores = roles.preds.names, roles.scores.names
    scores = ("the scores of its classes",) if roles.score_labels else scores
    if len(preds) != len(scores):
        listed = " and ".join(", ".join(map(repr, names)) for names in (preds, scores))
        raise ValueError(
            "metrics of labels and of scores in one call need a score for each prediction, but "
            f"there are {listed}; ask for each kind alone"
        )
    reason = "a row is scored by labels and by scores if it has both"
    roles.check_without("by", reason, "nulls")


def _with_both(
    frame: pl.LazyFrame, models: NamedColumns, needed: NamedColumns, roles: Roles
) -> pl.LazyFrame:
    """Make a label null if the score of its row is missing, or a score if the label is.

    A score per class is missing if one of the scores is.
    """
    are_there = [
        as_compared(pl.col(NEEDED + name), name, dtype, dtype).is_not_null()  # NaN is missing.
        for name, dtype in needed.dtypes.items()
    ]
    if roles.score_labels:
        are_there = [pl.all_horizontal(are_there)] * len(models.names)
    labels = {
        PRED + model: pl.when(is_there).then(PRED + model)
        for model, is_there in zip(models.names, are_there, strict=True)
    }
    return frame.with_columns(**labels).drop(cs.starts_with(NEEDED))


def _of_classes(sides: Sides, frame: pl.LazyFrame, models: NamedColumns) -> pl.LazyFrame:
    """One score per row in place of a score per class, or a row per class.

    A row is scored if it has all scores. The query fails if its gold label has no score.
    """
    roles, of_row = sides.roles, sides.of_row
    names, gold = [PRED + name for name in models.names], pl.col("gold")
    scores = [pl.col(name).cast(pl.Float64) for name in names]
    labels = zip(names, roles.score_labels, strict=True)
    are_gold = {name: gold == pl.lit(label, roles.label_dtype) for name, label in labels}
    end = (
        f" has no score: the scores are of {', '.join(map(repr, roles.score_labels))}; add its "
        "score, or filter the rows with this label"
    )
    message = ("gold label ", gold, end)
    known = unless(gold, Failure(~pl.any_horizontal(are_gold.values()), message))
    is_whole = pl.all_horizontal(pl.col("gold", *names).is_not_null())
    scores = [pl.when(is_whole).then(score) for score in scores]
    frame = frame.with_columns(*scores, gold=known)
    if of_row is not None:
        is_positive, score = of_row([(is_gold, pl.col(name)) for name, is_gold in are_gold.items()])
        left = [name for name in names if name != SCORE]
        return frame.with_columns(score.alias(SCORE), gold=is_positive).drop(left)
    if sides.by_gold_class:
        of_gold = [pl.when(is_gold).then(pl.lit(name)) for name, is_gold in are_gold.items()]
        frame = frame.with_columns(pl.coalesce(of_gold).cast(pl.Enum(names)).alias(GOLD_CLASS))
    # The column of a class may be called `score` too.
    each = frame.unpivot(names, index=~cs.by_name(names), variable_name=CLASS)
    each = each.rename({"value": SCORE})
    own = ((pl.col(CLASS) == name) & is_gold for name, is_gold in are_gold.items())
    return each.with_columns(pl.col(CLASS).cast(pl.Enum(names)), gold=pl.any_horizontal(own))


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
    keys_of_rows = [as_expr(key).name.prefix(KEY) for of in of_keys.values() for key in of.given]
    splits = [named.expr.alias(name) for name, named in splitting.items()]
    weights = [weighed.weight.alias("weight"), *map(pl.col, weighed.sums)]
    column = sides.columns.get("baseline")
    baseline = sides.baseline if column is None else column.name
    pair_splits = [*([] if baseline is None else ["baseline"]), *splitting]
    if sides.is_per_class and sides.of_row is None:
        pair_splits += [CLASS, *([GOLD_CLASS] if sides.by_gold_class else [])]
    models = tuple(name for name in sides.columns[PRED].dtypes if name != sides.baseline)
    floats = [KEY + name for name, dtype in dtypes.items() if dtype.is_float()]
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
        baseline=baseline,
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
