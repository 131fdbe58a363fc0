"""What people write for a metric: calls such as "f_beta(2)", and names of other libraries."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from typing import Any

from polars_mcc._metrics.averages_and_f_beta import f_beta
from polars_mcc._metrics.cost_and_weighted_kappa import cost, kappa
from polars_mcc._metrics.metric_type import Metric
from polars_mcc._metrics.roc_auc_top_k_brier_log_loss_ece import ece, top_k

_RATIO = ", `ratio` of gaps, which check limits by min_ratio"
_NAMES: Mapping[str, str] = {
    "'accuracy'": "acc overall_accuracy overall_acc accuracy_score",
    "'exact_match'": "subset_accuracy exact_match_ratio emr multilabel_accuracy",
    "'error_rate'": (
        "error errors err misclassification misclassification_rate classification_error"
    ),
    "'error_rate', and of lists 1 - 'exact_match'": "zero_one_loss",
    "'hamming_loss'": "hamming hamming_distance multilabel_hamming_distance",
    "'jaccard_samples'": "samples_jaccard",
    "'f1_samples'": "samples_f1",
    "'balanced_accuracy'": "bacc bal_acc bal_accuracy uar unweighted_average_recall",
    "'recall'": "sensitivity sens hit_rate true_positive_rate detection_rate pod",
    "'specificity'": "spec selectivity true_negative_rate",
    "'precision'": "positive_predictive_value",
    "'npv'": "negative_predictive_value",
    "'fpr'": "false_positive_rate fall_out fallout pofd type_1_error",
    "'fnr'": "false_negative_rate miss_rate type_2_error",
    "'fdr'": "false_discovery_rate false_alarm_ratio",
    "'for'": "false_omission_rate",
    "'lr_pos'": (
        "plr lr lr_plus likelihood_ratio positive_likelihood_ratio likelihood_ratio_positive "
        "class_likelihood_ratios"
    ),
    "'lr_neg'": "nlr lr_minus negative_likelihood_ratio likelihood_ratio_negative",
    "'dor'": "or odds_ratio diagnostic_odds_ratio",
    "'f1'": "f f_measure f_score f_meas fscore dice dsc sorensen_dice",
    "'f1_macro', or 'f1' of the positive class": "f1_score",
    "'precision_macro', or 'precision' of the positive class": "precision_score",
    "'recall_macro', or 'recall' of the positive class": "recall_score",
    "'specificity_macro', or 'specificity' of the positive class": "specificity_score",
    "'f1_macro'": "macro_f1",
    "'f1_micro'": "micro_f1",
    "'f1_weighted'": "weighted_f1",
    "'f_beta(2)', with any number in place of 2": "f2 f0.5 f05 f_2 f_0.5 fbeta f_beta",
    "'jaccard'": (
        "csi critical_success_index ts threat_score iou intersection_over_union jaccard_index "
        "tanimoto"
    ),
    "'jaccard_macro'": "miou mean_iou",
    "'fowlkes_mallows'": "fm g fmi fm_index fowlkes_mallows_index g_measure",
    "'g_mean'": "gm gmean geometric_mean geometric_mean_score",
    "'informedness'": (
        "youden youden_j youdens_j youden_index bm bookmaker_informedness "
        "peirce_skill true_skill_statistic tss"
    ),
    "'informedness', or of several classes 'informedness_macro'": "j_index",
    "'markedness', or of several classes each against the rest 'markedness_macro'": "delta_p mk",
    "'prevalence'": "base_rate",
    "'selection_rate'": "positive_rate acceptance_rate predicted_positive_rate",
    "'mcc'": "matthews matthews_corrcoef r_k overall_mcc",
    "'phi'": "phi_coefficient",
    "'kappa'": "kap cohen cohen_kappa cohens_kappa heidke_skill hss",
    "'roc_auc'": "auc auroc auc_roc aucroc roc roc_auc_score c_index c_statistic",
    "'roc_auc' in a log with a score per class, where it is the mean over classes": (
        "roc_auc_ovr auc_ovr multiclass_auc roc_auc_ovr_macro roc_auc_macro aunu roc_aunu"
    ),
    "'roc_auc_weighted'": "roc_auc_ovr_weighted aunp roc_aunp",
    "'roc_auc_ovo'": "roc_auc_ovo_macro auc_ovo hand_till",
    "'top_k(3)', with any number in place of 3": "top_k top_k_accuracy top3 top_3 top5 top_5",
    "'cost(fn=10, fp=1)', with your own costs": "cost costs classification_cost",
    "'kappa(quadratic)'": (
        "qwk quadratic_kappa kappa_quadratic weighted_kappa quadratic_weighted_kappa"
    ),
    "'kappa(linear)'": "linear_kappa kappa_linear linear_weighted_kappa",
    "'average_precision'": "average_precision_score ap auprc pr_auc prauc auc_pr",
    "'brier'": "brier_score_loss brier_class",
    "'log_loss'": "logloss mn_log_loss cross_entropy binary_cross_entropy nll",
    "'ece', with 10 bins of equal size, or 'ece(15, uniform)', with 15 of equal width": (
        "expected_calibration_error"
    ),
    "'mutual_info'": "mi mutual_information",
    "the gap of 'selection_rate' between slices": (
        "demographic_parity demographic_parity_difference statistical_parity parity "
        "statistical_parity_difference"
    ),
    f"the ratio of 'selection_rate' between slices{_RATIO}": (
        "demographic_parity_ratio disparate_impact disparate_impact_ratio adverse_impact "
        "adverse_impact_ratio statistical_parity_ratio"
    ),
    "the gap of 'tpr' between slices": "equal_opportunity equal_opportunity_difference",
    f"the ratio of 'tpr' between slices{_RATIO}": "equal_opportunity_ratio",
    "the mean of the gaps of 'tpr' and 'fpr' between slices": (
        "average_odds average_odds_difference average_absolute_odds_difference"
    ),
    f"the smaller of the ratios of 'tpr' and 'fpr' between slices{_RATIO}": (
        "equalized_odds_ratio equalised_odds_ratio"
    ),
    "the larger of the gaps of 'tpr' and 'fpr' between slices": (
        "equalized_odds equalised_odds equalized_odds_difference"
    ),
}
ELSEWHERE: Mapping[str, str] = {
    name: ours for ours, names in _NAMES.items() for name in names.split()
}
"""What stands for a name that is used elsewhere, in words."""


def known_elsewhere(name: str) -> str:
    """The end of a clause about an unknown name: what it is called here; "" if nobody knows it."""
    plain = name.partition("(")[0].strip().lower().replace("-", "_").replace(" ", "_")
    ours = ELSEWHERE.get(plain) or ELSEWHERE.get(plain.removesuffix("_score"))
    return f"; here it is {ours}." if ours else ""


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
        call = ast.parse(text.strip(), mode="eval").body
        if not (isinstance(call, ast.Call) and isinstance(call.func, ast.Name)):
            raise TypeError("it is more than a call")  # noqa: TRY301
        options = {str(option.arg): _value(option.value) for option in call.keywords}
        return make(*map(_value, call.args), **options)
    except (SyntaxError, TypeError) as error:
        why = "" if isinstance(error, SyntaxError) else f": {error}"
        raise ValueError(f"'{text}' is no metric{why}; write it as in {example}") from error


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
