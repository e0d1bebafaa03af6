import json
import math
import sys
import types

import numpy as np
import pytest
from scipy.sparse import issparse

from data.conftest import real_folder
from shortlist import data
from shortlist.data import as_features, load_features
from shortlist.data.text.embeddings import EmbeddingFeatures
from shortlist.data.text.tfidf import DEFAULT_GRAMS, Grams, TfidfFeatures
from shortlist.errors import InputError

TEXTS = ["Where is my card?", "my card is lost", "exchange rates, a rate", "I lost my card card"]


def naive_words(texts, new):
    """(1 + log tf) * (1 + log((1 + n) / (1 + df))), each row of length 1, with loops."""

    def split(text):
        return ["".join(c for c in word if c.isalnum()) for word in text.lower().split()]

    terms = sorted({word for text in texts for word in split(text)})
    rows = []
    for text in new:
        words = split(text)
        row = []
        for term in terms:
            tf = words.count(term)
            df = sum(term in split(t) for t in texts)
            row.append((1 + math.log(tf)) * (1 + math.log((1 + len(texts)) / (1 + df))) if tf else 0.0)
        length = math.sqrt(sum(value**2 for value in row)) or 1.0
        rows.append([value / length for value in row])
    return rows


def test_words_against_loops():
    features = TfidfFeatures.fit(TEXTS, grams=[Grams("word", 1, 1)])
    new = [*TEXTS, "card my card unknown", "nothing known here"]
    got = features.transform(new)
    assert issparse(got)
    assert got.format == "csr"
    assert got.dtype == np.float32
    np.testing.assert_allclose(got.toarray(), naive_words(TEXTS, new), rtol=1e-6)


def test_the_default_has_words_pairs_and_characters():
    features = TfidfFeatures.fit(TEXTS)
    terms = {family.grams.analyzer: family.terms for family in features._families}
    assert {"i", "my card", "a"} <= set(terms["word"])
    assert " ca" in terms["char_wb"]
    assert features.size == sum(len(t) for t in terms.values()) == features.transform(TEXTS).shape[1]


def test_rare_terms_count_only_where_texts_are_few():
    many = TEXTS * 300
    assert "exchange" in TfidfFeatures.fit([*many, "singular"])._families[0].terms
    assert "singular" not in TfidfFeatures.fit([*many, "singular"])._families[0].terms
    assert "singular" in TfidfFeatures.fit([*TEXTS, "singular"])._families[0].terms
    assert TfidfFeatures.fit(TEXTS, grams=[Grams("word", 1, 1, most=2)]).size == 2


def test_saved_and_read_again_it_gives_the_same_bits(tmp_path):
    features = TfidfFeatures.fit([*TEXTS, "ünï – “code”"])
    features.save(tmp_path / "f.json")
    new = ["my lost card", "ünï", "", "zzz"]
    for again in (TfidfFeatures.load(tmp_path / "f.json"), load_features(tmp_path / "f.json")):
        a, b = features.transform(new), again.transform(new)
        assert (a != b).nnz == 0
        assert a.shape == b.shape
        assert again.size == features.size
    assert [path.name for path in tmp_path.iterdir()] == ["f.json"]


@pytest.mark.parametrize("part", [1, 3, 4, 5])
def test_many_texts_are_transformed_part_by_part_to_the_same_bits(part, monkeypatch):
    new = ["lost", "", *TEXTS, "card " * 9, "zzz"]
    features = TfidfFeatures.fit(TEXTS)
    at_once = features.transform(new)
    monkeypatch.setattr("shortlist.data.text.tfidf._PART", part)
    by_parts = features.transform(new)
    for name in ("data", "indices", "indptr"):
        np.testing.assert_array_equal(getattr(by_parts, name), getattr(at_once, name))


def test_no_text_and_empty_texts():
    features = TfidfFeatures.fit(TEXTS)
    assert features.transform([]).shape == (0, features.size)
    assert features.transform([""]).nnz == 0
    with pytest.raises(InputError, match="the 2 texts hold no word"):
        TfidfFeatures.fit(["", " "])
    with pytest.raises(InputError, match="got a single one"):
        features.transform("text")
    with pytest.raises(InputError, match="text 1 is NoneType, expected a string"):
        features.transform(["a", None])


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "is not a saved feature transform"),
        ("[]", "is not a saved feature transform"),
        ('{"format": "other"}', "is not a saved feature transform"),
        ('{"format": "shortlist-features", "version": 9}', "has version 9, this program reads version 1"),
        ('{"format": "shortlist-features", "version": 1}', "is not a saved feature transform: KeyError"),
        ('{"format": "shortlist-features", "version": 1, "kind": "x", "families": []}', "holds x features"),
        (None, "cannot be read: No such file"),
    ],
)
def test_bad_files_are_refused_by_name(tmp_path, content, message):
    if content is not None:
        (tmp_path / "f.json").write_text(content)
    with pytest.raises(InputError, match=message) as caught:
        TfidfFeatures.load(tmp_path / "f.json")
    assert "f.json" in str(caught.value)


def test_weights_must_fit_the_terms(tmp_path):
    TfidfFeatures.fit(TEXTS).save(tmp_path / "f.json")
    content = json.loads((tmp_path / "f.json").read_text())
    content["families"][0]["idf"].pop()
    (tmp_path / "f.json").write_text(json.dumps(content))
    with pytest.raises(InputError, match=r"terms and .* weights"):
        TfidfFeatures.load(tmp_path / "f.json")


def test_words_that_are_not_for_a_dataset_are_told_what_they_are_for(tmp_path):
    dataset = data.Dataset("d", data.Split(TEXTS), None, (), "text")
    np.savez(tmp_path / "a+b.npz", x=np.ones((4, 2)))
    assert as_features(dataset, str(tmp_path / "a+b.npz"))[0].in_shape == (2,)
    for word, said in (
        ("patches", "features: patches are for the labelling loop"),
        ("tfidf+a.npz", "'tfidf\\+a.npz' stand side by side in the labelling loop"),
        ("tfdif", "unknown features 'tfdif': did you mean 'tfidf'"),
        ("a.npz", "no such file of features: a.npz"),
    ):
        with pytest.raises(InputError, match=said):
            as_features(dataset, word)


def test_as_features_fits_on_the_training_texts_alone():
    train = data.Split(TEXTS, np.array([0, 0, 1, 0]))
    dataset = data.Dataset("t", train, data.Split(["unseen words"], np.array([1])), ("a", "b"), "text")
    turned, features = as_features(dataset)
    assert turned.kind == "features"
    assert turned.in_shape == (features.size,)
    assert "unseen" not in features._families[0].terms
    assert turned.test.x.shape == (1, features.size)
    assert turned.train.y is train.y
    again, same = as_features(dataset, features)
    assert same is features
    assert (again.train.x != turned.train.x).nnz == 0
    with pytest.raises(InputError, match="t holds features, not texts"):
        as_features(turned)


@pytest.mark.slow
def test_full_labels_of_banking77_reach_87_percent():
    """The default features are good enough: a linear softmax model, full labels, last epoch, no choice made on test."""
    real_folder("banking77")
    import torch
    from torch.nn.functional import cross_entropy

    dataset, features = as_features(data.load("banking77"))
    assert features.size < 20_000
    x, y = dataset.train.x, torch.from_numpy(dataset.train.y)
    model = torch.nn.Linear(features.size, dataset.num_classes)
    torch.nn.init.zeros_(model.weight)
    torch.nn.init.zeros_(model.bias)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
    order = np.random.default_rng(0)
    for _ in range(3):
        for batch in np.array_split(order.permutation(len(y)), 40):
            loss = cross_entropy(model(torch.from_numpy(x[batch].toarray())), y[batch])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    with torch.no_grad():
        predicted = model(torch.from_numpy(dataset.test.x.toarray())).argmax(1).numpy()
    accuracy = float((predicted == dataset.test.y).mean())
    print(f"accuracy {accuracy:.4f}")
    assert accuracy >= 0.871


def test_the_default_is_what_was_chosen():
    assert [(g.analyzer, g.low, g.high) for g in DEFAULT_GRAMS] == [("word", 1, 2), ("char_wb", 2, 4)]


# --- sentence embeddings ---------------------------------------------------------------------------------------------


def test_without_the_package_it_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)
    features = EmbeddingFeatures()  # nothing is loaded yet
    with pytest.raises(InputError, match=r'pip install "shortlist\[embeddings\]"'):
        features.transform(["a"])


@pytest.fixture
def encoder(monkeypatch):
    """A stand-in for the package, with the calls that we make."""

    class SentenceTransformer:
        def __init__(self, name):
            if name == "absent":
                raise OSError("no such model\nlong story")
            self.name = name

        def get_sentence_embedding_dimension(self):
            return 3

        def encode(self, texts, normalize_embeddings, show_progress_bar):
            assert normalize_embeddings
            assert not show_progress_bar
            return np.array([[len(text), 0, 1] for text in texts], np.float64)

    module = types.ModuleType("sentence_transformers")
    module.SentenceTransformer = SentenceTransformer
    monkeypatch.setitem(sys.modules, "sentence_transformers", module)


def test_embeddings(encoder, tmp_path):
    features = EmbeddingFeatures("mine")
    got = features.transform(["ab", "abcd"])
    assert got.dtype == np.float32
    assert got.tolist() == [[2, 0, 1], [4, 0, 1]]
    assert features.size == 3
    assert features.transform([]).shape == (0, 3)
    features.save(tmp_path / "f.json")
    again = load_features(tmp_path / "f.json")
    assert isinstance(again, EmbeddingFeatures)
    assert again.model_name == "mine"
    with pytest.raises(InputError, match="holds embeddings features, expected tfidf"):
        TfidfFeatures.load(tmp_path / "f.json")
    with pytest.raises(InputError, match=r"the sentence encoder 'absent' cannot be loaded: no such model$"):
        EmbeddingFeatures("absent").transform(["a"])
    TfidfFeatures.fit(TEXTS).save(tmp_path / "t.json")
    with pytest.raises(InputError, match="holds no sentence embeddings"):
        EmbeddingFeatures.load(tmp_path / "t.json")


def sklearn_features(texts, new, grams, few):
    """Family by family: the terms, and the weights of texts and of new ones."""
    from sklearn.feature_extraction.text import TfidfVectorizer

    for family in grams:
        vectorizer = TfidfVectorizer(
            analyzer=family.analyzer,
            ngram_range=(family.low, family.high),
            token_pattern=r"(?u)\b\w+\b" if family.analyzer == "word" else None,
            sublinear_tf=True,
            dtype=np.float32,
            min_df=1 if few else family.min_texts,
            max_features=family.most,
        )
        fitted = vectorizer.fit_transform(texts)
        yield vectorizer.get_feature_names_out().tolist(), fitted, vectorizer.transform(new)


@pytest.mark.parametrize("most", [20_000, 300])
def test_terms_and_weights_are_those_of_scikit_learn(most):
    rng = np.random.default_rng(3)
    letters = np.array(list("aabcdeéßİ’'-_.,?!1  \t\n\u2028½Ωж"))
    texts = ["".join(rng.choice(letters, rng.integers(0, 60))) for _ in range(1200)] + ["I", "", " ", "a" * 80, "ab-cd"]
    new = ["".join(rng.choice(letters, 40)) for _ in range(100)] + ["", "unknown ☃ snowman"]
    grams = [Grams("word", 1, 2, 2, most), Grams("char_wb", 2, 4, 5, most), Grams("word", 2, 3, 1, most)]
    features, x = TfidfFeatures.fit_transform(texts, grams)
    made, start = features.transform(new), 0
    for family, (terms, fitted, transformed) in zip(
        features._families, sklearn_features(texts, new, grams, few=False), strict=True
    ):
        assert list(family.terms) == terms
        own = slice(start, start := start + len(terms))
        assert (x[:, own] != fitted).nnz == 0
        assert (made[:, own] != transformed).nnz == 0
