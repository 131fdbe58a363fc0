"""Metrics with parameters as calls in text, such as "f_beta(2)"."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

from polars_mcc._metrics.brier_log_loss_ece import ece
from polars_mcc._metrics.f_beta_and_cost import cost, f_beta
from polars_mcc._metrics.metric_type import Metric
from polars_mcc._metrics.roc_auc_top_k import top_k
from polars_mcc._metrics.weighted_kappa import kappa

CALLS: dict[str, tuple[Callable[..., Metric], str]] = {
    "f_beta": (f_beta, "f_beta(2), f_beta(0.5, macro)"),
    "cost": (cost, "cost(fn=10, fp=1), cost('costs.csv'), cost(fn=10, total=True)"),
    "top_k": (top_k, "top_k(3)"),
    "ece": (ece, "ece(15, uniform)"),
    "kappa": (kappa, "kappa(quadratic), kappa(linear, order=[low, mid, high])"),
}
"""The functions that make metrics, by name, each with examples of its call."""


def of_call(text: str) -> Metric | None:
    """The metric of a call in text, such as "f_beta(2)"; None if it is no such call."""
    name, is_call, _ = text.strip().partition("(")
    if not is_call or name.strip() not in CALLS:
        return None
    make, example = CALLS[name.strip()]
    try:
        call = _parsed(text.strip())
        options = {str(option.arg): _value(option.value) for option in call.keywords}
        return make(*map(_value, call.args), **options)
    except (SyntaxError, TypeError) as error:
        why = "" if isinstance(error, SyntaxError) else f": {error}"
        raise ValueError(f"'{text}' is no metric{why}; write it as in {example}") from error


def _parsed(text: str) -> ast.Call:
    call = ast.parse(text, mode="eval").body
    if not (isinstance(call, ast.Call) and isinstance(call.func, ast.Name)):
        raise TypeError("it is more than a call")
    return call


def _value(node: ast.expr) -> Any:  # noqa: ANN401
    """A value that is written as in Python; a word stands for itself."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.List):
        return [*map(_value, node.elts)]
    try:
        return ast.literal_eval(node)
    except ValueError as error:
        raise SyntaxError(ast.unparse(node)) from error
