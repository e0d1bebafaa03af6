"""Where a run's data comes from and how it is read; kept with the model, so that other data is read the same way."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from shortlist import data
from shortlist.data import Dataset, Features, as_features, is_table


@dataclass(frozen=True)
class DataSource:
    """A known dataset by name, or the user's own data by path, with what is needed to read it."""

    data: str
    text_column: str | None = None
    image_column: str | None = None
    label_column: str | None = None
    item_column: str | None = None
    test: str | None = None
    image_size: int | Sequence[int] | None = None
    """Own images are resized to it: (height, width), or one number for both."""
    features: str = "tfidf"
    """How texts become features: a word, a folder or a file that `data.as_features` knows."""

    @property
    def known(self) -> bool:
        """Whether it is a dataset of the registry (a file of the same name does not count)."""
        return self.data in data.names()

    def read(self, class_names: Sequence[str] | None = None) -> Dataset:
        """The dataset; `class_names` fixes the classes and their order."""
        if class_names and self.known:
            return self._load().with_classes(class_names)
        return self._load(class_names)

    def _load(self, class_names: Sequence[str] | None = None) -> Dataset:
        options = {key: value for key, value in self.to_dict().items() if key not in ("data", "features")}
        return data.load(self.data, **options, class_names=class_names)

    def to_dict(self) -> dict[str, Any]:
        """As plain values, fit for JSON."""
        return asdict(self)

    def other(self, data: str, **changes: Any) -> "DataSource":
        """Other data in the same form: the same columns and image size, apart from these changes."""
        stated = {key: value for key, value in changes.items() if value is not None}
        plain = DataSource(data, features=self.features)
        if plain.known or Path(data).suffix.lower() == ".npz":
            return replace(plain, **stated)
        base = replace(self, data=data, test=None)
        if not is_table(Path(data)):  # a folder of images has no columns
            base = replace(base, text_column=None, image_column=None, label_column=None, item_column=None)
        return replace(base, **stated)


def with_features(dataset: Dataset, features: Features | str = "tfidf") -> tuple[Dataset, Features | None]:
    """The dataset as features, by a transform, its name, or a file of features; only a file replaces other kinds."""
    if dataset.kind != "text" and features == "tfidf":
        return dataset, None
    return as_features(dataset, features)
