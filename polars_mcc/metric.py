"""Metrics with parameters, as functions. As text they are calls: `metrics="f_beta(2)"`."""

from polars_mcc._metrics.averages_and_f_beta import f_beta
from polars_mcc._metrics.cost_and_weighted_kappa import cost, kappa
from polars_mcc._metrics.roc_auc_top_k_brier_log_loss_ece import ece, top_k

__all__ = ["cost", "ece", "f_beta", "kappa", "top_k"]
