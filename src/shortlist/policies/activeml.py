"""scikit-activeml's pool strategies as an order of items, a thin adapter (extra `activeml`)."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from shortlist.internal.extras import named_extra
from shortlist.policies.loop import Loop


def next_items(loop: Loop, strategy: Any, count: int) -> NDArray[np.int64]:
    """The rows that a scikit-activeml pool query strategy would ask about next.

    Args:
        loop: the loop, with its model and the answers so far.
        strategy: such as `skactiveml.pool.UncertaintySampling(method="entropy")` or `skactiveml.pool.CoreSet()`.
        count: the number of rows; fewer come back if fewer are open.
    """
    with named_extra():
        from skactiveml.base import SkactivemlClassifier
        from skactiveml.utils import MISSING_LABEL, call_func

    state = loop.state
    y = np.where(state.answer >= 0, state.answer.astype(float), MISSING_LABEL)
    open_rows = loop.open_items()
    if not len(open_rows):
        return open_rows

    class Believer(SkactivemlClassifier):  # type: ignore[misc]
        def fit(self, X: Any, y: Any, sample_weight: Any = None) -> "Believer":
            self.classes_ = np.arange(state.num_classes)
            self._le = None
            return self

        def predict_proba(self, X: Any) -> NDArray[np.float32]:
            return loop.model.probabilities(np.asarray(X, np.float32), loop.pool.temperature)

        def predict(self, X: Any) -> NDArray[np.int64]:
            best: NDArray[np.int64] = self.predict_proba(X).argmax(axis=1)
            return best

    believer = Believer(classes=np.arange(state.num_classes))
    chosen = call_func(
        strategy.query,
        only_mandatory=False,
        X=loop.x.toarray() if hasattr(loop.x, "toarray") else loop.x,
        y=y,
        candidates=open_rows,
        batch_size=min(count, len(open_rows)),
        clf=believer.fit(None, None),
        discriminator=believer,
        fit_clf=False,
    )
    return np.asarray(chosen, np.int64)
