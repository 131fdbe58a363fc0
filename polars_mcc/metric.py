"""Metrics with parameters, as functions. As text they are calls: `metrics="f_beta(2)"`."""

from polars_mcc._metrics.f_beta_and_cost import cost, f_beta
from polars_mcc._metrics.roc_auc_top_k_brier_log_loss_ece import ece, top_k
from polars_mcc._metrics.weighted_kappa import kappa

__all__ = ["cost", "ece", "f_beta", "kappa", "top_k"]
