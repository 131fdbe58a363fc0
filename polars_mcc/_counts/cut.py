"""A described log and keys → the log, cut into slices."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, get_args

import polars as pl

from polars_mcc._counts.exact import numbers
from polars_mcc._counts.scores import NEEDED, check_both, of_classes, with_both
from polars_mcc._counts.sliced import CLASS, COMPLETE, KEY, LONG, PRED, SET, OfRow, SlicedLog
from polars_mcc._log import keys as keys_of_question
from polars_mcc._log.choices import Role
from polars_mcc._log.columns import Columns, IntoColumn, Weighed, as_expr, check_score, one
from polars_mcc._log.described import Described, Meaning
from polars_mcc._log.frames import Frame
from polars_mcc._log.keys import IntoKey, twice
from polars_mcc._log.labels import Labelled, as_compared, common_dtype
from polars_mcc._log.messages import Words, option, renamed, said


def cut(
    log: Described[Any],
    keys: Sequence[IntoKey],
    *,
    taken: Iterable[str],
    role: Role = "pred",
    lists: bool = False,
    cluster: bool = False,
    baseline: IntoColumn | None = None,
    periods: Mapping[str, IntoColumn] | None = None,
    long: bool = False,
    both: bool = False,
    of_row: OfRow | None = None,
    per_class: bool = False,
) -> SlicedLog:
    """Cut a log into slices by keys.

    Args:
        log: The log. Its own columns are already checked.
        keys: The keys to group by.
        taken: The other columns of the answer: no key may have such a name.
        role: "pred" takes the predicted labels of the models. "score" takes their scores; gold
            then says whether a row is positive.
        lists: Whether a row may have several labels, in lists.
        cluster: Whether to count each cluster separately, if the log has clusters.
        baseline: The model that other models are compared with: the name of a model, or a column.
        periods: A condition per period, by name. Rows in no period are left out.
        long: Whether the answer has slices in the long form.
        both: Whether a row needs both a predicted label and a score to be scored.
        of_row: If the log has a score per class: makes one score of all scores of a row.
        per_class: If the log has a score per class: makes a row per class, which the extra column
            `CLASS` names.
    """
    meaning = log.meaning
    taken = [*taken]
    if same := twice(taken):
        msg = (
            f"a metric has the name of another column of the answer, '{same[0]}'; rename the "
            "metric with .alias(...)"
        )
        raise ValueError(msg)
    models = _models(meaning, role)
    needed = _models(meaning, "score" if role == "pred" else "pred") if both else None
    if needed is not None:
        check_both(meaning)
    score_labels = meaning.score_labels if role == "score" else ()
    has_models = meaning.has_models(get_args(Role) if both else [role])
    found = keys_of_question.found(meaning.schema, keys, long=long)
    index = None if found.windows is None else found.windows.index
    meaning.check_columns(found.columns, "key")
    meaning.check_columns(index, "index")
    named = (*found.columns.given, *(index.given if index else ()))
    window_dtypes = pl.Schema(index.dtypes if index else {})
    key_dtypes = pl.Schema({**found.columns.dtypes, **window_dtypes})
    taken += LONG if long else [SET] if found.sets is not None else []
    taken += [COMPLETE] if index else []
    taken += ["model"] if has_models else []
    _check_keys(window_dtypes if long else key_dtypes, taken)
    first = model_named(baseline, models)
    extras = _extras(meaning, baseline if first is None else None, periods, cluster=cluster)
    sides = {PRED + name: (name, dtype) for name, dtype in models.dtypes.items()}
    if "baseline" in extras:
        sides["baseline"] = (extras["baseline"].name, extras["baseline"].dtype)
    labels = {"gold": (meaning.gold.name, meaning.gold.dtype), **sides}
    label_dtype, pred_dtype = _dtypes(meaning, [*labels.values()], role, lists=lists)
    read = (meaning.gold, models, *([needed] if needed else []), *extras.values())
    others = (column for columns in read for column in columns.given)
    weighed = _weighed(meaning, [*named, *others])
    frame = weighed.frame
    if periods:  # First, so that Polars pushes the filter into the scan.
        frame = frame.filter(pl.any_horizontal(map(as_expr, periods.values())))
    frame = frame.select(
        *(as_expr(key).name.prefix(KEY) for key in named),
        _gold(meaning, role).alias("gold"),
        weighed.weight.alias("weight"),
        *(as_expr(model).name.prefix(PRED) for model in models.given),
        *(as_expr(other).name.prefix(NEEDED) for other in (needed.given if needed else ())),
        *(columns.expr.alias(name) for name, columns in extras.items()),
        *weighed.sums,
    ).with_columns(
        as_compared(pl.col(side), name, dtype, pred_dtype)
        for side, (name, dtype) in (sides if role == "score" else labels).items()
    )
    if needed is not None:
        frame = with_both(frame, models, needed, is_per_class=bool(meaning.score_labels))
    if score_labels:
        frame = of_classes(meaning, frame, models, of_row, per_class=per_class)
    if first is not None:
        frame = frame.rename({PRED + first: "baseline"})
    return SlicedLog(
        frame=frame,
        keys=(*key_dtypes,),
        key_dtypes=key_dtypes,
        models=("score",) if score_labels else tuple(n for n in models.names if n != first),
        has_models=has_models,
        label_dtype=label_dtype,
        pred_dtype=pred_dtype,
        weight_name=weighed.name,
        is_frequency=meaning.is_frequency,
        numbers=numbers(weighed.dtype),
        nulls="drop" if role == "score" else meaning.nulls,
        zero_division=meaning.zero_division,
        has_total=index is None and (not named if found.sets is None else () in found.sets),
        is_multilabel=meaning.is_multilabel,
        is_of_scores=role == "score",
        is_portable=meaning.portable,
        extras=(
            *(["baseline"] if first is not None else []),
            *extras,
            *([CLASS] if score_labels and of_row is None else []),
        ),
        weight_sums=weighed.sums,
        sets=found.sets,
        always=(*window_dtypes,),
        windows=found.windows,
        is_long=long,
    )


def _extras(
    meaning: Meaning,
    baseline: IntoColumn | None,
    periods: Mapping[str, IntoColumn] | None,
    *,
    cluster: bool,
) -> dict[str, Columns]:
    """The columns to count by besides slices and labels, by their names in pairs."""
    extras = {} if baseline is None else {"baseline": one(meaning.schema, baseline, "baseline")}
    if cluster and meaning.cluster is not None:
        extras["cluster"] = meaning.cluster
    for name, period in (periods or {}).items():
        extras[name] = found = one(meaning.schema, period, name)
        if found.dtype != pl.Boolean:
            msg = said(
                f"{name} must be a Boolean condition, as in ",
                Words("pl.col('day') < date(2026, 3, 15)", "day < DATE '2026-03-15'"),
                f", but '{found.name}' is {found.dtype}",
            )
            raise pl.exceptions.SchemaError(msg)
    for name, columns in extras.items():
        meaning.check_columns(columns, name)
    return extras


def _weighed(meaning: Meaning, columns: Iterable[IntoColumn]) -> Weighed:
    """Return the log. From another engine, return the counts of equal rows in these columns."""
    weight = meaning.weight
    if not isinstance(meaning.source, Frame):
        return meaning.source.counted(columns, weight, is_frequency=meaning.is_frequency)
    if weight is None:
        return Weighed(meaning.source.lazy(), pl.lit(1, pl.Int64), None, pl.Int64())
    return Weighed(meaning.source.lazy(), weight.expr, weight.name, weight.dtype)


def _models(meaning: Meaning, role: str) -> Columns:
    """The columns of predicted labels, or of scores."""
    found = meaning.preds if role == "pred" else meaning.scores
    if found is not None:
        return found
    if role == "pred":
        msg = said(
            "this log has scores and no predicted labels: cut a score at a threshold, as in ",
            Words("frame.mcc(pred=pl.col('score') >= 0.5)", "--pred 'score >= 0.5'"),
            ", or ask for a metric of scores, such as 'roc_auc'",
        )
    else:
        msg = said(
            "this log has no score: say which column has the model's score for the positive "
            "class, as in ",
            option("score", "probability", of="frame.mcc"),
        )
    raise ValueError(msg)


def model_named(baseline: IntoColumn | None, models: Columns) -> str | None:
    """The name of the baseline if it is a model of the log, else None."""
    if isinstance(baseline, pl.Expr) and not baseline.meta.has_multiple_outputs():
        named = baseline.meta.is_column_selection()
        baseline = baseline.meta.output_name() if named else None
    return baseline if isinstance(baseline, str) and baseline in models.names else None


def _dtypes(
    meaning: Meaning, labelled: Labelled, role: str, *, lists: bool
) -> tuple[pl.DataType, pl.DataType]:
    """The dtype of the labels, and the dtype of the predictions."""
    if role == "score":
        common_dtype([*meaning.gold.dtypes.items()])  # raises for lists
        for name, dtype in labelled[1:]:  # all columns but gold
            check_score(name, dtype)
        found = {dtype for _, dtype in labelled[1:]}
        is_exact = len(found) == 1 or all(dtype.is_integer() for dtype in found)
        # One score is computed of the scores of all classes.
        is_float = bool(meaning.score_labels) or not is_exact
        return pl.Boolean(), pl.Float64() if is_float else common_dtype(labelled[1:])
    if meaning.is_multilabel and lists:
        return meaning.label_dtype, pl.List(meaning.label_dtype)
    labels = common_dtype(labelled)  # raises for lists
    return labels, labels


def _gold(meaning: Meaning, role: str) -> pl.Expr:
    """The gold label of a row; for a score, whether it is positive."""
    gold = meaning.gold
    if role == "pred":
        return gold.expr
    label = as_compared(gold.expr, gold.name, gold.dtype, meaning.label_dtype)
    if meaning.score_labels:
        return label.cast(meaning.label_dtype)
    if meaning.positive is not None:
        return label == meaning.positive
    if meaning.label_dtype != pl.Boolean:
        msg = said(
            f"gold '{gold.name}' is {gold.dtype}: say which label is positive, as in ",
            option("positive", 1 if gold.dtype.is_numeric() else "fraud"),
            ", or make gold Boolean",
        )
        raise ValueError(msg)
    return label


def _check_keys(keys: pl.Schema, taken: Sequence[str]) -> None:
    for name, dtype in keys.items():
        if dtype.is_object():
            msg = f"key '{name}' has dtype Object, which cannot be grouped; cast it first"
            raise pl.exceptions.SchemaError(msg)
        if name in taken:
            msg = said(
                f"key '{name}' has the name of a column of the answer; rename it, as in ",
                renamed(name, f"{name}_key"),
            )
            raise pl.exceptions.DuplicateError(msg)
