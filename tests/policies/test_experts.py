from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import approx_fprime

from shortlist.errors import InputError
from shortlist.policies.beliefs import softmax
from shortlist.policies.calibration import HeldOut, Pool, _surprise, fit_pool, knowledge
from shortlist.policies.choose import Policy
from shortlist.policies.experts import LinearExpert, experts_from_scores
from shortlist.policies.features.loop_data import LoopData
from shortlist.policies.linear import Linear, fit
from shortlist.policies.loop import GENTLE, TRIED, Loop
from shortlist.policies.names import encoded_similarities, names_expert, spoken_name
from shortlist.policies.noise import Mistakes, simulate_answers
from shortlist.policies.settings import LoopSettings
from shortlist.policies.simulation.simulate import Start, run_loop

QUICK = LoopSettings(policy=Policy("adaptive", max_size=3), retrain_every=300, l2=0.03)


def held_out(rng, count, K, experts, truth_weight):
    """Answers to random lists of 3 whose classes follow the first expert."""
    scores = tuple(rng.standard_normal((count, K)).astype(np.float32) for _ in range(experts))
    logits = rng.standard_normal((count, K)).astype(np.float32)
    chance = softmax(truth_weight * scores[0])
    y = np.array([rng.choice(K, p=row / row.sum()) for row in chance.astype(np.float64)])
    shown = np.zeros((count, K), bool)
    for row in shown:
        row[rng.permutation(K)[:3]] = True
    hit = shown[np.arange(count), y]
    likelihood = np.where(hit[:, None], np.eye(K)[y], ~shown).astype(np.float64)
    return HeldOut(logits, scores, np.ones((count, K), np.float32), likelihood)


def test_the_weights_find_what_knows_and_drop_what_does_not():
    held = held_out(np.random.default_rng(0), 3000, 8, experts=2, truth_weight=1.5)
    found = fit_pool([(held, 1.0)], Pool(1.0, (1.0, 1.0)))
    assert found.weights[0] == pytest.approx(1.5, abs=0.2)
    assert found.weights[1] == pytest.approx(0, abs=0.1)
    assert found.temperature > 3  # the logits are noise
    assert knowledge(held, found) > 0.2
    assert knowledge(held, Pool(1.0, (0.0, 1.0))) < 0


def test_the_surprise_has_the_gradient_it_says():
    rng = np.random.default_rng(1)
    held = held_out(rng, 20, 5, experts=2, truth_weight=1.0)
    answered_otherwise = held.answer_likelihood.sum(axis=1) - held.answer_likelihood[:, 0] > 0
    held.before[answered_otherwise, 0] = 0.0  # refused before
    theta = np.array([0.3, 0.7, 0.2])
    numeric = approx_fprime(theta, lambda t: _surprise(held, t)[0], 1e-6)
    assert _surprise(held, theta)[1] == pytest.approx(numeric, rel=1e-3)


def test_joined_parts_are_one_after_another():
    rng = np.random.default_rng(2)
    a, b = held_out(rng, 4, 5, 1, 1.0), held_out(rng, 3, 5, 1, 1.0)
    both = HeldOut.joined([a, b])
    assert len(both) == 7
    assert (both.scores[0][4:] == b.scores[0]).all()
    assert (both.answer_likelihood[:4] == a.answer_likelihood).all()


def test_probabilities_become_logarithms_and_other_numbers_are_scaled():
    p = np.array([[0.7, 0.2, 0.1], [0.1, 0.8, 0.1]])
    made = experts_from_scores(p)[0].table
    logs = np.log(p) - np.log(p).mean(axis=1, keepdims=True)
    assert made == pytest.approx(logs / np.sqrt(np.square(logs).mean()), rel=1e-4)
    wide, narrow = (experts_from_scores(5 + factor * p)[0].table for factor in (100, 7))
    assert wide == pytest.approx(narrow, rel=1e-4)


@given(st.integers(0, 10_000))
def test_a_missing_score_speaks_neither_for_nor_against(seed):
    rng = np.random.default_rng(seed)
    table = rng.standard_normal((6, 5)).astype(np.float32)
    table[rng.random(table.shape) < 0.4] = np.nan
    table[0] = np.nan
    scores, favourite = experts_from_scores(table)
    made = scores.table
    assert np.isfinite(made).all()
    assert (made[np.isnan(table)] == 0).all()
    assert made.mean(axis=1) == pytest.approx(np.zeros(6), abs=1e-5)
    likeliest = favourite.scores(np.arange(6))
    assert (likeliest[0] == 0).all()
    for row in range(1, 6):
        if not np.isnan(table[row]).all():
            assert likeliest[row].tolist() == (table[row] == np.nanmax(table[row])).tolist()


def test_bad_scores_are_one_line():
    masked = np.zeros((3, 4), np.float32)
    masked[0, 1:3], masked[1, 2] = np.finfo(np.float32).min, 5
    made, favourite = experts_from_scores(masked)
    assert np.isfinite(made.table).all()
    assert made.table[0].argsort(kind="stable").tolist() == [1, 2, 0, 3]
    assert favourite.favourite.tolist() == [0, 2, 0]
    with pytest.raises(InputError, match=r"item 1, class 0 is infinite"):
        experts_from_scores([[0.0, 1.0], [np.inf, 2.0]])
    with pytest.raises(InputError, match="items by classes"):
        experts_from_scores([1.0, 2.0])


def test_matching_probabilities_is_cross_entropy():
    rng = np.random.default_rng(3)
    x = rng.standard_normal((300, 4)).astype(np.float32)
    truth = Linear(rng.standard_normal((4, 3)).astype(np.float32), np.array([0.5, 0, -0.5], np.float32))
    targets = truth.probabilities(x)
    found = fit(x, targets, l2=1e-9, max_iterations=300, tolerance=1e-9, match=True)
    assert found.probabilities(x) == pytest.approx(targets, abs=2e-3)


TOPICS = {
    "card_lost": "my card is lost {}|i lost the card {}|cannot find my card {}",
    "exchangeRate": "what is the exchange rate {}|rate for exchange of euros {}|exchange today {}",
    "pin-blocked": "the pin is blocked {}|blocked my pin {}|unblock pin {}",
    "top_up_failed": "my top up failed {}|top up has failed {}|failed to top up {}",
}


@pytest.fixture(scope="module")
def texts() -> LoopData:
    rng = np.random.default_rng(0)
    fillers = ["please", "help", "today", "again", "why", "now", "sir"]
    rows = [
        (form.format(fillers[rng.integers(len(fillers))]), y)
        for y, forms in enumerate(TOPICS.values())
        for form in forms.split("|")
        for _ in range(20)
    ]
    words = sorted({word for text, _ in rows for word in text.split()})
    x = np.array([[word in text.split() for word in words] for text, _ in rows], np.float32)
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    y = np.array([y for _, y in rows])
    return LoopData("topics", x, y, x, y, tuple(TOPICS), tuple(text for text, _ in rows))


def test_names_know_the_answer_before_anybody_has_said_it(texts):
    expert = names_expert(texts.texts, texts.class_names, texts.x)
    rows = np.arange(len(texts.y))
    assert (expert.scores(rows).argmax(axis=1) == texts.y).mean() > 0.9
    loop = Loop(texts.x, 4, QUICK, experts=[expert])
    asked, questions = loop.ask(40)
    answer = simulate_answers(np.random.default_rng(0), questions.lists, questions.sizes, texts.y[asked], 4, Mistakes())
    assert (answer >= 0).mean() > 0.9


def test_names_without_a_common_letter_say_nothing(texts):
    expert = names_expert(texts.texts, ["☃", "♞", "→", "∮"], texts.x)
    assert np.abs(expert.scores(np.arange(20))).max() < 1e-3


def test_names_are_read_as_words():
    assert spoken_name("card_payment-wrongCharge") == "card payment wrong Charge"


def test_descriptions_count_as_names_do(texts):
    meaning = [name.replace("_", " ") for name in ("card lost", "exchange rate", "pin blocked", "top up failed")]
    expert = names_expert(texts.texts, ["a", "b", "c", "d"], texts.x, descriptions=meaning)
    assert (expert.scores(np.arange(len(texts.y))).argmax(axis=1) == texts.y).mean() > 0.9


def test_a_sentence_encoder_knows_names_that_share_no_letter(texts, encoder_of, tmp_path):
    encoder_of(["☃ card lost find", "♞ exchange rate euros", "→ pin blocked unblock", "∮ top up failed"])
    names = ["☃", "♞", "→", "∮"]
    for word in ("embeddings", str(tmp_path)):
        similar = encoded_similarities(texts.texts, names, word)
        assert np.abs(similar).max() <= 2 + 1e-5
        assert (similar.argmax(axis=1) == texts.y).mean() > 0.9
    expert = names_expert(texts.texts, ["K1", "K2", "K3", "K4"], texts.x, descriptions=names, features=str(tmp_path))
    assert (expert.scores(np.arange(len(texts.y))).argmax(axis=1) == texts.y).mean() > 0.9
    lexical = names_expert(texts.texts, names, texts.x, features="tfidf")
    assert np.abs(lexical.scores(np.arange(20))).max() < 1e-3


def test_typical_items_come_first_only_where_experts_know_nothing(blobs):
    """What the experts are worth is decided by the first answers, not by their presence."""
    K, rng = blobs.num_classes, np.random.default_rng(0)
    useless = LinearExpert(blobs.x, Linear(rng.standard_normal((blobs.x.shape[1], K)).astype(np.float32), np.zeros(K)))
    useful, _ = experts_from_scores(np.eye(K)[blobs.y] * 3 + rng.standard_normal((len(blobs.y), K)))
    for expert, typical in ((useless, True), (useful, False)):
        loop = Loop(blobs.x, K, QUICK, experts=[expert])
        assert not len(loop.first)
        while loop.state.questions < TRIED:
            rows, questions = loop.ask(25)
            answer = simulate_answers(rng, questions.lists, questions.sizes, blobs.y[rows], K, Mistakes())
            loop.record(rows, questions.lists, questions.sizes, answer)
            loop.retrain()
        assert bool(len(loop.first)) == typical


def test_experts_fade_as_the_model_learns(blobs):
    K, rng = blobs.num_classes, np.random.default_rng(1)
    wrong_half = np.where(rng.random(len(blobs.y)) < 0.5, blobs.y, rng.integers(0, K, len(blobs.y)))
    start = Start(experts_from_scores(np.eye(K)[wrong_half] + 0.1 * rng.standard_normal((len(blobs.y), K))))
    curve = run_loop(blobs, QUICK, way="scores", seed=0, start=start)
    assert curve.points[-1].correct == 1.0
    assert curve.points[-1].resolved == 1.0


def test_known_classes_are_learned_from_and_never_asked(blobs):
    K = blobs.num_classes
    known = np.concatenate([np.nonzero(blobs.y == k)[0][:3] for k in range(K)])
    for mistakes in (False, True):
        settings = QUICK if not mistakes else LoopSettings(policy=Policy(max_size=3, deduce=False), learn_mistakes=True)
        loop = Loop(blobs.x, K, settings)
        loop.know(known, blobs.y[known])
        assert (loop.model.predict(blobs.x) == blobs.y).mean() > 0.8
        assert not np.isin(known, loop.open_items()).any()
        assert loop.standing(blobs.y)[0] >= len(known) / len(blobs.y)
        loop.state.remodel(loop.state.mistakes)
        assert (loop.beliefs(known).argmax(axis=1) == blobs.y[known]).all()
        assert loop.beliefs(known).max(axis=1).min() > 0.999
    assert loop.state.questions == 0
    assert loop.state.reads == 0


def test_the_first_questions_are_about_new_items_at_random_where_something_is_known(blobs):
    """Hard items first would earn None after None; where nothing is known the order stays as set."""
    K = blobs.num_classes
    useful, _ = experts_from_scores(
        np.eye(K)[blobs.y] * 3 + np.random.default_rng(0).standard_normal((len(blobs.y), K))
    )
    settings = replace(QUICK, order="uncertainty", representatives=0)
    loop = Loop(blobs.x, K, settings, experts=[useful])
    hardest = set(np.argsort(loop.beliefs(np.arange(len(blobs.y))).max(axis=1))[:30].tolist())
    rows, questions = loop.ask(30)
    assert len(set(rows.tolist()) & hardest) < 20
    none = np.full(len(rows), -1)
    loop.record(rows, questions.lists, questions.sizes, none)
    again, _ = loop.ask(6 * K - 30)
    assert not set(again.tolist()) & set(rows.tolist())  # items not asked yet come before those asked in vain
    loop.state.questions = GENTLE * K
    posterior = loop.beliefs(loop.open_items()).max(axis=1)
    assert set(loop.ask(5)[0].tolist()) == set(loop.open_items()[np.argsort(posterior)[:5]].tolist())


def test_the_first_questions_go_to_the_classes_with_the_fewest_answers(blobs):
    """At random, a class whose items are few or hard to tell would stay unseen for long."""
    K = blobs.num_classes
    loop = Loop(blobs.x, K, QUICK, experts=[experts_from_scores(np.eye(K)[blobs.y])[0]])
    for round_ in range(1, 4):
        rows, questions = loop.ask(K)
        assert np.bincount(blobs.y[rows], minlength=K).tolist() == [1] * K
        loop.record(rows, questions.lists, questions.sizes, blobs.y[rows])
        loop.retrain()
        assert loop.state.counts.tolist() == [round_] * K
    mine = np.nonzero((blobs.y == 0) & (loop.state.asked == 0))[0][:5]
    loop.record(mine, np.zeros((5, 1), np.int32), np.ones(5, np.int64), blobs.y[mine])
    assert 0 not in blobs.y[loop.ask(3 * (K - 1))[0]], "it has five more than the others"


def test_a_model_of_a_few_answers_does_not_speak_over_the_names(blobs):
    K = blobs.num_classes
    knows, _ = experts_from_scores(np.eye(K)[blobs.y] * 3)
    loop = Loop(blobs.x, K, QUICK, experts=[knows])
    rows = np.arange(30)
    shown = np.repeat(np.arange(K, dtype=np.int32)[None], 30, axis=0)
    loop.record(rows, shown, np.full(30, K), (blobs.y[rows] + 1) % K, held_out=False)  # all of them wrong
    loop.retrain()
    others = np.arange(30, len(blobs.y))
    assert (loop.model.predict(blobs.x[others]) == blobs.y[others]).mean() < 0.2
    assert (loop.beliefs(others).argmax(axis=1) == blobs.y[others]).mean() > 0.95


def test_a_few_answers_do_not_move_the_weights_and_old_ones_never(blobs):
    """Live, each of the first answers is a training: fitted to one answer, a weight would be thrown about."""
    K, rng = blobs.num_classes, np.random.default_rng(3)
    useless = LinearExpert(blobs.x, Linear(rng.standard_normal((blobs.x.shape[1], K)).astype(np.float32), np.zeros(K)))
    for held_out, moved in ((True, True), (False, False)):
        loop = Loop(blobs.x, K, replace(QUICK, calibrate_least=20), experts=[useless])
        for count in range(1, 21):
            rows, questions = loop.ask(1)
            answer = simulate_answers(rng, questions.lists, questions.sizes, blobs.y[rows], K, Mistakes())
            loop.record(rows, questions.lists, questions.sizes, answer, held_out=held_out)
            loop.retrain()
            assert count == 20 or loop.pool.weights == (1.0,)
        assert (loop.pool.weights != (1.0,)) == moved
        assert loop.version == 20


def test_known_classes_weigh_the_experts_that_nobody_has_answered_for(blobs):
    """One that misleads goes to 0 before the first question; one that knows more than the labels stays."""
    rng = np.random.default_rng(0)
    known = rng.permutation(len(blobs.y))[:120]
    lies = Linear(rng.standard_normal((blobs.x.shape[1], 12)).astype(np.float32), np.zeros(12, np.float32))
    truth = fit(blobs.x, np.eye(12, dtype=np.float32)[blobs.y], l2=1e-3)
    loop = Loop(blobs.x, 12, QUICK, experts=(LinearExpert(blobs.x, lies), LinearExpert(blobs.x, truth)))
    loop.know(known, blobs.y[known])
    assert loop.pool.weights[0] < 0.3
    assert loop.pool.weights[1] > 0.2
    few = Loop(blobs.x, 12, QUICK, experts=(LinearExpert(blobs.x, lies),))
    few.know(known[:5], blobs.y[known[:5]])
    assert few.pool.weights == (1.0,), "too few to tell"
