"""Answers → what the names in a report mean, and in which direction metrics are better."""

from __future__ import annotations

import re

from polars_mcc._base.values_as_text_or_markdown import label_text
from polars_mcc._metrics.metric_type import Metric
from polars_mcc._metrics.registry import find_metric
from polars_mcc._report.report_data import TABLE_METRICS, Answers

_OF_ALL = {
    "mcc": "how well predictions and labels agree: 1 without errors, and 0 for guessing, whatever "
    "the mix of labels",
    "accuracy": "the share of the rows that are predicted right",
    "balanced_accuracy": "the share of a label's rows that are predicted right, on average over "
    "the labels",
    "f1_macro": "whether each label is found, and only where it is: F1, on average over the labels",
}
_OF_POSITIVE = {
    "tpr recall": "of the rows labelled {0}, the share that is predicted {0}",
    "fnr": "of the rows labelled {0}, the share that is not predicted {0}",
    "fpr": "of the rows not labelled {0}, the share that is predicted {0}",
    "tnr specificity": "of the rows not labelled {0}, the share that is not predicted {0}",
    "ppv precision": "of the rows predicted {0}, the share that is labelled {0}",
    "fdr": "of the rows predicted {0}, the share that is not labelled {0}",
    "npv": "of the rows not predicted {0}, the share that is not labelled {0}",
    "selection_rate": "the share of the rows that is predicted {0}",
    "prevalence": "the share of the rows that is labelled {0}",
}
_CELLS = {
    "fn": "labelled {0} and not predicted {0}",
    "fp": "predicted {0} and not labelled {0}",
    "tp": "labelled and predicted {0}",
    "tn": "neither labelled nor predicted {0}",
}


def in_words(answers: Answers) -> dict[str, str]:
    """What each name means that the report uses, in the order in which a reader meets them."""
    scored = answers.settings.scored
    others = {*answers.error_rates, *TABLE_METRICS} - {metric.name for metric in scored}
    metrics = [*scored, *map(find_metric, sorted(others))]
    level = f"{100 * answers.settings.ci:.10g}\u00a0%"
    least = f"{1 - answers.settings.ci:.3g}"
    return {metric.name: _of_metric(metric, answers) for metric in metrics} | {
        "low to high": f"the {level} confidence interval of the number before it",
        "p": "how often chance alone would make so large a difference, were there none; below "
        f"{least} it is significant",
        "gold": "the true label of a row",
        "n": "the number of rows; n_null rows are not scored",
    }


def _of_metric(metric: Metric, answers: Answers) -> str:
    """A metric in words, with its direction; its formula, if there are no words for it."""
    roles, labels = answers.log.roles, answers.two_labels
    positive = True if roles.positive is None and not labels else roles.positive_label
    positive = labels[0] if labels and roles.positive is None else positive
    named = {name: text for names, text in _OF_POSITIVE.items() for name in names.split()}
    words = (_OF_ALL | named).get(metric.name, metric.formula or "a metric of your own")
    cells = re.findall(r"([^\s(]+)·(fn|fp|tp|tn)", metric.formula) if metric.name == "cost" else []
    if cells:
        each = " and ".join(f"{number} for each {_CELLS[cell]}" for number, cell in cells)
        words = f"what errors cost, on average over all rows: {each}"
    direction = {True: "less is better", False: "more is better", None: "neither is better"}
    words = words.replace("{0}", label_text(positive))
    return f"{words}; {direction[metric.less_is_better]}"
