"""Regularised logistic regression over sparse or dense rows, by L-BFGS without randomness."""

from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse
from scipy.optimize import minimize

Numbers = npt.NDArray[np.float64]


def fit_logistic(
    rows: Any,
    labels: npt.NDArray[np.bool_],
    weights: Numbers,
    *,
    penalty: float,
    steps: int,
    start: Numbers | None = None,
) -> Numbers:
    """Return coefficients, the bias last.

    ``rows`` is a matrix (scipy CSR or numpy), ``weights`` has the weight of each row, ``penalty`` is that of the
    squared norm of the coefficients without the bias. ``steps`` bounds the iterations; they start from zero, or from
    ``start``.
    """
    count, width = rows.shape
    sign = np.where(labels, 1.0, -1.0)
    transposed = rows.T.tocsr() if sparse.issparse(rows) else np.ascontiguousarray(rows.T)
    weights = weights / weights.sum()
    ridge = penalty / count

    def loss(theta: Numbers) -> tuple[float, Numbers]:
        margin = sign * (rows @ theta[:-1] + theta[-1])
        slope = -sign * weights / (1.0 + np.exp(np.clip(margin, -500.0, 500.0)))
        value = float(weights @ np.logaddexp(0.0, -margin) + 0.5 * ridge * (theta[:-1] @ theta[:-1]))
        return value, np.append(transposed @ slope + ridge * theta[:-1], slope.sum())

    begin = np.zeros(width + 1) if start is None else start
    found: Numbers = minimize(loss, begin, jac=True, method="L-BFGS-B", options={"maxiter": steps}).x
    return found
