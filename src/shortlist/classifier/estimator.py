"""ShortlistClassifier: training from shortlists, with scikit-learn's interface."""

import copy
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted
from torch import Tensor, nn

from shortlist import methods, models
from shortlist.classifier.answers import Shown, answers_in, read_answers
from shortlist.classifier.classes import Classes, stated_classes
from shortlist.classifier.features import check_features, check_weight, dataset_of
from shortlist.classifier.scores import answered_accuracy
from shortlist.errors import InputError, unknown_name
from shortlist.internal.arguments import truth
from shortlist.internal.streams import stream_seed
from shortlist.training import Engine, Interrupted, Normalise, RunConfig, fit, logits_of, one_pass, prepare

FloatArray = NDArray[np.float64]
AUTO_BATCHES = 32
"""`batch_size="auto"` aims at this many batches per epoch, with 32 to 256 items each."""


class ShortlistClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A classifier that learns from short lists of classes and the answers to them.

    Args:
        method: a name of `shortlist.methods.METHODS`, or your own as "package.module:Class".
        model: `linear`, `mlp`, `lenet`, `resnet32`; your own as "package.module:function", a function or an nn.Module.
        method_options: options of the method, such as `{"form": "paper"}` of `sl`.
        model_options: options of the model, such as `{"hidden": (512,)}` of `mlp`.
        epochs: passes over the data in `fit`.
        batch_size: items per step; `auto`: a 32nd of the items, but 32 to 256.
        optimiser: `adam`, which suits all methods at one learning rate; `sgd`; or `lbfgs`, for linear models, whose
            epochs are steps on all items (`partial_fit` then uses `adam`). `auto` is `lbfgs` for a linear model trained
            by the likelihood on sparse features, else `adam`.
        lr: learning rate.
        weight_decay: L2.
        momentum: of `sgd`.
        schedule: of the learning rate: `constant`, `step` or `cosine`; in `partial_fit` it is constant.
        augment: random crops of images.
        strong: every image twice in a step, cropped and strongly changed; takes twice the time.
        holdout: the share of items held out in `fit`; `history_` has their scores.
        classes: all class labels in their order, needed if some never occur.
        random_state: decides everything random. As `RunConfig.seed`, the same number gives the same run.
        device: `auto`, `cpu`, `cuda`, ...
        dtype: `float32` or `float64`, in which the network is trained; they differ by rounding only.

    Attributes:
        classes_: (K,) class labels: the order of masks, probabilities and decisions.
        network_: the trained network, normalisation included; on the CPU.
        history_: one dict per epoch (or call of `partial_fit`): risk, seconds, scores of held-out items.
        n_features_in_: features of an item (of an image: all its values).
        feature_names_in_: names of the columns, if `X` was a DataFrame.
        in_shape_: (D,) or (C, H, W).
        smoothing_: the label smoothing that `predict_proba` undoes.
        temperature_: what `predict_proba` divides the decisions by, fitted to held-out answers; 1 without a holdout.

    Example:
        >>> from sklearn.datasets import load_digits
        >>> from shortlist import ShortlistClassifier, StochasticLabels
        >>> X, y = load_digits(return_X_y=True)
        >>> labels = StochasticLabels.draw(y, num_classes=10, size=3, seed=0)
        >>> clf = ShortlistClassifier(random_state=0).fit(X, shown=labels)
        >>> bool(clf.score(X, y) > 0.95)
        True
    """

    # scikit-learn's metadata routing passes `shown` on without a request, since no other estimator takes it
    __metadata_request__fit = {"shown": True}  # noqa: RUF012 (scikit-learn's own form)
    __metadata_request__partial_fit = {"shown": True}  # noqa: RUF012
    __metadata_request__score = {"shown": True}  # noqa: RUF012

    def __init__(
        self,
        method: str = "likelihood",
        model: "str | Callable[..., nn.Module] | nn.Module" = "mlp",
        *,
        method_options: Mapping[str, Any] | None = None,
        model_options: Mapping[str, Any] | None = None,
        epochs: int = 30,
        batch_size: int | Literal["auto"] = "auto",
        optimiser: str = "auto",
        lr: float = 0.003,
        weight_decay: float = 1e-5,
        momentum: float = 0.9,
        schedule: str = "cosine",
        augment: bool = False,
        strong: bool = False,
        holdout: float = 0.0,
        classes: Iterable[Any] | None = None,
        random_state: Any = None,
        device: str = "auto",
        dtype: Literal["float32", "float64"] = "float32",
    ) -> None:
        self.method = method
        self.model = model
        self.method_options = method_options
        self.model_options = model_options
        self.epochs = epochs
        self.batch_size = batch_size
        self.optimiser = optimiser
        self.lr = lr
        self.weight_decay = weight_decay
        self.momentum = momentum
        self.schedule = schedule
        self.augment = augment
        self.strong = strong
        self.holdout = holdout
        self.classes = classes
        self.random_state = random_state
        self.device = device
        self.dtype = dtype

    # -- training -----------------------------------------------------------------------------------------------------

    def fit(
        self, X: Any, y: ArrayLike | None = None, shown: Shown = None, sample_weight: ArrayLike | None = None
    ) -> Self:
        """Train from scratch.

        Args:
            X: (N, D) features, dense, sparse or a DataFrame; or (N, C, H, W) uint8 images.
            y: (N,) answers: class labels and NONE (-1).
            shown: the shortlists: an (N, K) boolean mask in the order of `classes_` (or in any order, as a DataFrame
                whose columns are the class labels); N lists of class labels; or a `StochasticLabels`, whose answers can
                replace `y`. None: ordinary labels.
            sample_weight: (N,) how much each item counts.
        """
        with self._all_or_nothing():
            x = check_features(self, X, reset=True)
            labels, self.classes_ = read_answers(y, shown, self.classes, x.shape[0])
            weight = check_weight(sample_weight, x)
            self._seed = self._draw_seed()
            config = self._config(len(labels), sparse=hasattr(x, "tocsr"))
            engine = Engine(device=self.device)
            network = self._fresh_network()
            data = dataset_of(x, labels.num_classes)
            prepared = prepare(data, config, labels=labels, weight=weight, engine=engine, model=network)
            self._cast(prepared.run.model.get_submodule("0"))  # the normalisation that `prepare` put first
            try:
                history = fit(prepared)
            except Interrupted as interrupted:
                raise KeyboardInterrupt from interrupted
            self.history_ = [asdict(row) for row in history]
            self.smoothing_, self.temperature_ = prepared.smoothing, prepared.calibrate()
            self._items = len(labels)
            return self._keep(prepared.run.model, prepared.run.optimiser_state(), new=True)

    def partial_fit(
        self,
        X: Any,
        y: ArrayLike | None = None,
        classes: Iterable[Any] | None = None,
        shown: Shown = None,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """Go on with new answers: one pass over them at a constant learning rate.

        The first call needs all classes (here or in the constructor) and measures the features for normalisation.

        Args:
            X: as in `fit`.
            y: as in `fit`.
            classes: all class labels in their order; later calls may repeat them.
            shown: as in `fit`.
            sample_weight: as in `fit`.
        """
        first = not hasattr(self, "network_")
        with self._all_or_nothing():
            x = check_features(self, X, reset=first)
            known = self._known_classes(classes, first)
            labels, _ = read_answers(y, shown, known, x.shape[0])
            weight = check_weight(sample_weight, x)
            start = self._begin(x, known, weight) if first else self.network_
            config = self._config(len(labels))
            passes = len(self.history_)
            run, risk = one_pass(start, self._optimiser, passes, config, x, labels, weight, self.device)
            before, now = self._items, len(labels)
            self.smoothing_ = (before * self.smoothing_ + now * run.method.smoothing(labels)) / (before + now)
            self._items = before + now
            self.history_ = [*self.history_, {"epoch": passes + 1, "risk": risk}]
            return self._keep(run.model, run.optimiser_state(), new=first)

    def _begin(self, x: Any, classes: Classes, weight: NDArray[np.float64] | None) -> nn.Module:
        """Everything as it is before the first answers; the untrained network."""
        self.classes_, self._seed, self._items = classes, self._draw_seed(), 0
        self._optimiser: dict[str, Tensor] = {}
        self.history_, self.smoothing_, self.temperature_ = [], 0.0, 1.0
        return nn.Sequential(self._cast(Normalise(x, None, weight)), self._fresh_network())

    @contextmanager
    def _all_or_nothing(self) -> Iterator[None]:
        """If training fails, the classifier stays as it was: an old network with new class labels would be wrong."""
        before = self.__dict__.copy()
        try:
            yield
        except BaseException:
            self.__dict__ = before
            raise

    def _keep(self, network: nn.Module, optimiser: Mapping[str, Tensor], *, new: bool) -> Self:
        self.network_ = _detached(network)
        self._optimiser = {name: tensor.detach().cpu().clone() for name, tensor in optimiser.items()}
        self._remember(new=new)
        return self

    def _remember(self, *, new: bool) -> None:
        """Note what the network (if it is new) and its outputs are: `set_params` may change that for the next fit."""
        names = ("method", "method_options", *(("model", "model_options", "dtype") if new else ()))
        self._trained = {**getattr(self, "_trained", {}), **{name: getattr(self, name) for name in names}}

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        if hasattr(self, "network_") and not hasattr(
            self, "_trained"
        ):  # pickled by 0.1.0, which went by the parameters
            self._remember(new=True)

    def _known_classes(self, classes: Iterable[Any] | None, first: bool) -> Classes:
        given = self.classes if classes is None else classes
        if first:
            if given is None:
                raise InputError("classes must be passed on the first call to partial_fit")
            return stated_classes(given)
        if classes is not None and not np.array_equal(stated_classes(classes), self.classes_):
            raise InputError("classes: not the same as on the first call to partial_fit, which decides them")
        known: Classes = self.classes_
        return known

    def _draw_seed(self) -> int:
        if isinstance(self.random_state, int | np.integer):
            return int(self.random_state)
        return int(check_random_state(self.random_state).randint(2**31 - 1))

    def _options(self, name: str) -> dict[str, Any]:
        options = getattr(self, name)
        if not isinstance(options, Mapping | None):
            raise InputError(f"{name}: expected a dict of options by their names, got {options!r}")
        return dict(options or {})

    def _fresh_network(self) -> nn.Module:
        options, seed = self._options("model_options"), stream_seed(self._seed, "weights")
        return self._cast(models.build(self.model, self.in_shape_, len(self.classes_), seed=seed, **options))

    def _cast(self, module: nn.Module) -> nn.Module:
        """In the precision of `dtype`."""
        if self.dtype not in ("float32", "float64"):
            raise unknown_name("dtype", self.dtype, ("float32", "float64"))
        return module.double() if self.dtype == "float64" else module

    def _config(self, items: int, sparse: bool = False) -> RunConfig:
        solved = sparse and self.model == "linear" and self.method == "likelihood" and self.dtype == "float32"
        auto = min(max(items // AUTO_BATCHES, 32), 256)
        return RunConfig(
            method=self.method,
            method_options=self._options("method_options"),
            model=self.model if isinstance(self.model, str) else "own",
            model_options=self._options("model_options"),
            epochs=self.epochs,
            batch_size=auto if self.batch_size == "auto" else self.batch_size,
            optimiser=("lbfgs" if solved else "adam") if self.optimiser == "auto" else self.optimiser,  # type: ignore[arg-type]
            lr=self.lr,
            weight_decay=self.weight_decay,
            momentum=self.momentum,
            schedule=self.schedule,  # type: ignore[arg-type]
            augment=truth("augment", self.augment),
            strong=truth("strong", self.strong),
            holdout=self.holdout,
            seed=self._seed,
        )

    # -- using it -----------------------------------------------------------------------------------------------------

    def _logits(self, X: Any) -> Any:
        """(N, K) float64 tensor."""
        check_is_fitted(self, "network_")
        x = check_features(self, X, reset=False)
        device = Engine(device=self.device).resolve(0).device
        network = _detached(self.network_).to(device)
        if x.ndim == 2:  # in float64: not one digit of an item's outputs may depend on the other items
            network = network.double()
        return logits_of(network, x, device).cpu().double()

    def predict(self, X: Any) -> NDArray[Any]:
        """(N,) the class label with the highest decision."""
        best = self._logits(X).argmax(-1).numpy()
        labels: NDArray[Any] = self.classes_[best]
        return labels

    def decision_function(self, X: Any) -> FloatArray:
        """(N, K) logits; with two classes (N,), the logit of the second minus that of the first."""
        logits: FloatArray = self._logits(X).numpy()
        return logits[:, 1] - logits[:, 0] if len(self.classes_) == 2 else logits

    def predict_proba(self, X: Any) -> FloatArray:
        """(N, K) class probabilities, with the label smoothing of the method undone."""
        logits = self._logits(X) / self.temperature_
        method = methods.get(self._trained["method"], **(self._trained["method_options"] or {}))
        p: FloatArray = method.class_probabilities(logits, self.smoothing_).numpy()
        return p

    def predict_log_proba(self, X: Any) -> FloatArray:
        """(N, K) log of `predict_proba`."""
        with np.errstate(divide="ignore"):  # of a probability cut off at 0 it is -inf, as it should be
            log_p: FloatArray = np.log(self.predict_proba(X))
        return log_p

    def score(
        self, X: Any, y: ArrayLike | None = None, sample_weight: ArrayLike | None = None, shown: Shown = None
    ) -> float:
        """Accuracy on the answered items (`answered_accuracy`); on ordinary labels the accuracy.

        Args:
            X: as in `fit`.
            y: class labels and NONE, which is not counted.
            sample_weight: under a policy, 1 / the probability that the item's class was shown makes this fair.
            shown: a StochasticLabels, if `y` is left out; otherwise ignored.
        """
        predicted = self.predict(X)
        y = answers_in(shown, self.classes_) if y is None else y
        return answered_accuracy(y, predicted, sample_weight=sample_weight)

    # -- keeping it ---------------------------------------------------------------------------------------------------

    def save(self, folder: str | os.PathLike[str]) -> None:
        """Write the trained classifier into a folder, whole or not at all, without pickle."""
        from shortlist.classifier.saving import save

        check_is_fitted(self, "network_")
        save(self, folder)

    @classmethod
    def load(cls, folder: str | os.PathLike[str], *, model: Any = None) -> Self:
        """Read what `save` wrote; nothing in the folder is executed.

        A method of your own is not saved: import its module first.

        Args:
            folder: where it was saved.
            model: your own model (function, "package.module:function" or module), if it was trained with one.

        Raises:
            InputError: the folder holds no classifier, or a damaged one.
        """
        from shortlist.classifier.saving import load

        return load(cls, folder, model)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


def _detached(network: nn.Module) -> nn.Module:
    """A copy on the CPU, in evaluation mode, that shares no memory with anything."""
    free = copy.deepcopy(network).cpu().eval()
    for parameter in free.parameters():
        parameter.grad = None
        parameter.data = parameter.data.contiguous().clone()
    return free
