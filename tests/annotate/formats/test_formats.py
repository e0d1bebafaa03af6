import csv
import json
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlalchemy import insert, select

from shortlist import NONE, StochasticLabels
from shortlist.annotate.db.schema import Annotator, Answer, Item, Question, Slot, answers, questions
from shortlist.annotate.db.statements import insert_id
from shortlist.annotate.formats import EXPORTS
from shortlist.annotate.formats.answers import standing_answers
from shortlist.annotate.formats.label_studio_answers import import_answers, import_file
from shortlist.annotate.project.classes import add_classes
from shortlist.annotate.project.importing import add_items
from shortlist.annotate.project.sources import Source
from shortlist.annotate.project.stats import Stats
from shortlist.annotate.setup import export_file
from shortlist.errors import InputError

from ..conftest import people

ODD = ["plain", "a|b", "back\\slash", 'quo"te', "comma, too", "ünïcode ☃", "=1+1"]


def answered(project, count: int = 6) -> list[tuple[str, list[str], str | None]]:
    """Let two people answer; returns what they said."""
    queue, said = project.queue(), []
    for who in people(project, "ada", "bob, the second"):
        for turn in range(count // 2):
            (q,) = queue.next(who)
            choice = None if turn % 3 == 0 else q.shortlist[0]
            queue.answer(who, q.id, 0, choice, 1.5)
            with project.store.read() as connection:
                item = connection.execute(select(Item.name).where(Item.id == q.item_id)).scalar_one()
            said.append((item, q.names, None if choice is None else q.names[0]))
    return said


@pytest.mark.parametrize("ending", [".csv", ".jsonl", ".parquet"])
def test_an_export_is_a_file_of_labels(make_project, database, tmp_path, ending):
    project = make_project(database, items=0, classes=0)
    add_classes(project, ODD)
    add_items(project, [Source(name, name, text="x") for name in ["i, 1", 'i "2"', "i|3", "i4", "i5", "ï6", "i7"]])
    said = answered(project)
    path = tmp_path / f"answers{ending}"
    assert export_file(project, path, None) == len(said)
    labels = StochasticLabels.read(path)
    assert labels.class_names == tuple(ODD)
    rows = zip(labels.item_ids.tolist(), labels.offsets[:-1], labels.offsets[1:], labels.answer.tolist(), strict=True)
    again = [
        (item, [ODD[k] for k in labels.classes[a:b]], None if answer == NONE else ODD[answer])
        for item, a, b, answer in rows
    ]
    assert again == said


def test_the_columns_say_who_how_fast_and_how_chosen(make_project, tmp_path):
    project = make_project(items=4)
    answered(project, 2)
    export_file(project, tmp_path / "a.csv", None)
    with (tmp_path / "a.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["annotator"] for row in rows] == ["ada", "bob, the second"]
    assert rows[0]["seconds"] == "1.5"
    assert rows[0]["policy"] == "uniform/1"
    assert [float(p) for p in rows[0]["probabilities"].split("|")] == [0.5] * 3
    assert float(rows[0]["served_at"]) <= float(rows[0]["answered_at"])


@pytest.mark.parametrize("ending", [".csv", ".jsonl", ".parquet"])
def test_none_to_a_list_of_all_classes_does_not_spoil_the_file(make_project, tmp_path, ending):
    """Five classes on a list are usual, and there may be no more than that."""
    project = make_project(items=4, classes=3, size=5)
    (ada,) = people(project, "ada")
    queue = project.queue()
    for choice in (None, 1, None, 2):
        (q,) = queue.next(ada)
        queue.answer(ada, q.id, 0, choice, 1.0)
    path = tmp_path / f"answers{ending}"
    assert export_file(project, path, None) == 2
    labels = StochasticLabels.read(path)
    assert labels.class_names == ("class 0", "class 1", "class 2")
    assert labels.answer.tolist() == [1, 2]


def test_undone_and_skipped_are_not_exported(make_project, tmp_path):
    project = make_project(items=4)
    (ada,) = people(project, "ada")
    queue = project.queue()
    (q,) = queue.next(ada)
    queue.answer(ada, q.id, 0, None, 1.0)
    queue.undo(ada)
    queue.answer(ada, q.id, 1, q.shortlist[2], 1.0)
    (q2,) = queue.next(ada)
    queue.skip(ada, q2.id, 0)
    assert export_file(project, tmp_path / "a.csv", None) == 1
    assert StochasticLabels.read(tmp_path / "a.csv").answer.tolist() == [q.shortlist[2]]


def test_crowd_kit_reads_its_table(make_project, tmp_path):
    aggregation = pytest.importorskip("crowdkit.aggregation")
    pandas = pytest.importorskip("pandas")
    project = make_project(items=3, overlap=2, classes=3)
    answered(project, 6)
    assert export_file(project, tmp_path / "crowd.csv", "crowd-kit") == 6
    table = pandas.read_csv(tmp_path / "crowd.csv")
    assert list(table.columns) == ["task", "worker", "label"]
    assert len(aggregation.MajorityVote().fit_predict(table)) == 3


def test_crowd_kits_table_has_no_gold_items(make_project, tmp_path):
    project = make_project(items=20, classes=3, gold=20, gold_every=2)
    (ada,) = people(project, "ada")
    queue = project.queue()
    while held := queue.next(ada):
        queue.answer(ada, held[0].id, 0, None, 1.0)
    assert export_file(project, tmp_path / "votes.csv", "crowd-kit") == 20
    assert "gold " not in (tmp_path / "votes.csv").read_text()


def test_a_new_format_is_one_function_and_one_line(make_site, tmp_path, monkeypatch):
    """Protects the registry: command line and API know an export by its line in `EXPORTS` alone."""

    def write_counts(project, path):
        with project.store.read() as connection:
            counts = Counter(row["annotator"] for row in standing_answers(connection))
        path.write_text("".join(f"{name}\t{count}\n" for name, count in counts.items()))
        return len(counts)

    monkeypatch.setitem(EXPORTS, "counts.tsv", write_counts)
    site = make_site(items=3)
    (ada,) = people(site.project, "ada")
    for _ in range(2):
        (question,) = site.project.queue().next(ada)
        site.project.queue().answer(ada, question.id, 0, None, 1.0)
    assert export_file(site.project, tmp_path / "out.tsv", "counts") == 1
    assert (tmp_path / "out.tsv").read_text() == "ada\t2\n"
    reply = site.admin().get("/api/v1/export/counts.tsv")
    assert (reply.status_code, reply.text) == (200, "ada\t2\n")
    assert site.admin().get("/api/v1/export/poem.txt").status_code == 422


def test_an_unknown_ending_is_refused(make_project, tmp_path):
    project = make_project()
    for path, kind in ((tmp_path / "a.xlsx", None), (tmp_path / "a.json", None), (tmp_path / "no" / "a.csv", None)):
        with pytest.raises(InputError):
            export_file(project, path, kind)
    assert list(tmp_path.glob("*.xlsx")) == []


# -- Label Studio


def tasks_of(project, tmp_path) -> list[dict]:
    export_file(project, tmp_path / "tasks.json", "label-studio")
    return json.loads((tmp_path / "tasks.json").read_text())


def annotate(task: dict, number: int, choice: str, by: object = 7, **extra) -> dict:
    """A task as Label Studio's JSON export gives it back."""
    result = [{"value": {"choices": [choice]}, "from_name": "answer", "to_name": "txt", "type": "choices"}]
    annotation = {"id": number, "completed_by": by, "result": result, "was_cancelled": False, "lead_time": 2.5, **extra}
    return {"id": number, "data": task["data"], "annotations": [annotation]}


def test_what_a_class_means_is_a_hint_in_label_studio(make_project, tmp_path):
    project = make_project(items=1, classes=3, size=3)
    add_classes(project, {"class 1": "the <second>"})
    (task,) = tasks_of(project, tmp_path)
    hints = {option["value"]: option.get("hint") for option in task["data"]["options"]}
    assert hints == {"class 0": None, "class 1": "the <second>", "class 2": None, "None of these": None}
    assert not any("html" in option for option in task["data"]["options"])


def test_tasks_are_as_label_studio_wants_them(make_project, tmp_path):
    project = make_project(items=3)
    tasks = tasks_of(project, tmp_path)
    assert len(tasks) == 3
    data = tasks[0]["data"]
    assert data["text"] == "text 0"
    assert [option["hotkey"] for option in data["options"]] == ["1", "2", "3", "0"]
    assert data["options"][-1] == {"value": "None of these", "alias": "__none__", "hotkey": "0"}
    shown = data["stochastic"]["classes"]
    assert [option["alias"] for option in data["options"][:-1]] == [str(k) for k in shown]
    assert data["stochastic"]["item_id"] == "item 0"
    assert data["stochastic"]["inclusion_prob"] == [0.5] * 3
    assert all("html" not in option for option in data["options"])
    export_file(project, tmp_path / "config.xml", "label-studio")
    assert (tmp_path / "config.xml").read_text().strip() == (
        '<View><Text name="txt" value="$text"/><Choices name="answer" toName="txt" choice="single-radio" '
        'required="true" value="$options"/></View>'
    )


def test_answers_come_back_from_json(make_project, database, tmp_path):
    project = make_project(database, items=4)
    tasks = tasks_of(project, tmp_path)
    shown = tasks[1]["data"]["stochastic"]["classes"]
    given = [
        annotate(tasks[0], 1, "__none__", by={"id": 3, "email": "eve@example.org"}),
        annotate(tasks[1], 2, str(shown[0])),
        annotate(tasks[2], 3, str(99)),
        annotate(tasks[3], 4, "__none__", was_cancelled=True),
    ]
    path = tmp_path / "export.json"
    path.write_text(json.dumps(given))
    report = import_file(project, path)
    assert (report.added, report.known, [where for where, _ in report.skipped]) == (3, 0, ["task 3"])
    again = import_file(project, path)
    assert (again.added, again.known) == (0, 3), "twice is once"
    export_file(project, tmp_path / "a.csv", None)
    labels = StochasticLabels.read(tmp_path / "a.csv")
    assert labels.item_ids.tolist() == ["item 0", "item 1"]
    assert labels.answer.tolist() == [NONE, shown[0]]
    assert Stats(project.store).progress() == {"done": 2, "total": 4}
    with project.store.read() as connection:
        assert set(connection.execute(select(Annotator.name)).scalars()) == {
            "label-studio:eve@example.org",
            "label-studio:7",
        }
        assert (
            connection.execute(select(Question.seed).order_by(Question.id)).scalars().first()
            == (tasks[0]["data"]["stochastic"]["seed"])
        )
    (ada,) = people(project, "ada")
    assert len(project.queue().next(ada, hold=4)) == 2, "answered items are not asked again"


@pytest.mark.parametrize("kind", ["min", "csv"])
def test_answers_come_back_flat(make_project, tmp_path, kind):
    project = make_project(items=3)
    tasks = tasks_of(project, tmp_path)
    names = [f"class {k}" for k in tasks[1]["data"]["stochastic"]["classes"]]
    flat = [
        {**task["data"], "id": i, "annotator": 5, "annotation_id": i, "answer": answer, "lead_time": 3.0}
        for i, (task, answer) in enumerate(zip(tasks, ["__none__", names[1], ""], strict=True))
    ]
    if kind == "min":
        path = tmp_path / "min.json"
        path.write_text(json.dumps(flat))
    else:
        path = tmp_path / "flat.csv"
        with path.open("w", newline="") as file:
            writer = csv.DictWriter(file, list(flat[0]))
            writer.writeheader()
            for row in flat:
                writer.writerow({k: json.dumps(v) if isinstance(v, dict | list) else v for k, v in row.items()})
    report = import_file(project, path)
    assert (report.added, len(report.skipped)) == (2, 1)
    export_file(project, tmp_path / "a.jsonl", None)
    rows = [json.loads(line) for line in (tmp_path / "a.jsonl").read_text().splitlines()]
    assert [(row["answer"], row["seconds"]) for row in rows] == [("", 3.0), (names[1], 3.0)]


def test_a_changed_answer_is_reported_and_strict_refuses_all(make_project, tmp_path):
    project = make_project(items=2)
    one, two = tasks_of(project, tmp_path)
    import_answers(project, json.dumps([annotate(one, 1, "__none__")]).encode(), is_csv=False)
    changed = annotate(one, 1, str(one["data"]["stochastic"]["classes"][0]))
    data = json.dumps([annotate(two, 2, "__none__"), changed]).encode()
    with pytest.raises(InputError, match="nothing imported: task 1"):
        import_answers(project, data, is_csv=False, strict=True)
    report = import_answers(project, data, is_csv=False)
    assert (report.added, [where for where, _ in report.skipped]) == (1, ["task 1"])


def test_more_answers_than_slots_are_kept(make_project, tmp_path):
    project = make_project(items=1)
    (task,) = tasks_of(project, tmp_path)
    data = json.dumps([annotate(task, i, "__none__", by=i) for i in range(3)]).encode()
    assert import_answers(project, data, is_csv=False).added == 3
    assert Stats(project.store).status()["items_done"] == 1
    assert Stats(project.store).progress() == {"done": 3, "total": 3}


def test_times_skips_and_both_answers_of_an_overlap_come_back(make_project, database, tmp_path):
    """With an overlap of 2, one person may get both tasks about an item, each with its own list."""
    project = make_project(database, items=3, overlap=2)
    tasks = tasks_of(project, tmp_path)
    assert len(tasks) == 6
    at = "2026-03-01T12:00:00.500000Z"
    by = {"id": 1, "email": "eve@example.org"}
    given = [annotate(task, i, "__none__", by=by, created_at=at) for i, task in enumerate(tasks[:5])]
    given.append(annotate(tasks[5], 5, "__none__", by=by, was_cancelled=True, created_at=at))
    lists = [json.dumps(task["data"]["stochastic"]) for task in tasks]
    assert len(set(lists)) > 3
    report = import_answers(project, json.dumps(given).encode(), is_csv=False)
    assert (report.added, report.skipped) == (6, [])
    assert import_answers(project, json.dumps(given).encode(), is_csv=False).known == 6
    with project.store.read() as connection:
        rows = connection.execute(select(Answer.kind, Answer.answered_at)).all()
        (eve,) = connection.execute(select(Annotator.answers, Annotator.skips)).all()
    assert sorted(row.kind for row in rows) == ["answer"] * 5 + ["skip"]
    assert {row.answered_at for row in rows} == {1772366400.5}
    assert tuple(eve) == (5, 1)
    assert project.check() == []
    assert Stats(project.store).progress() == {"done": 5, "total": 6}, "what was skipped waits for others"
    changed = [annotate(tasks[0], 0, str(tasks[0]["data"]["stochastic"]["classes"][0]), by=by)]
    refused = import_answers(project, json.dumps(changed).encode(), is_csv=False)
    assert refused.skipped[0][1].startswith("'eve@example.org' answered the same list")


def test_two_tasks_that_got_the_same_list_by_chance_are_two_voices(make_project, tmp_path):
    project = make_project(items=1, classes=3, overlap=2)
    tasks = tasks_of(project, tmp_path)
    for task in tasks:
        task["data"]["stochastic"]["classes"] = [0, 1, 2]
    for second in ("0", "1"):
        fresh = make_project(items=1, classes=3, overlap=2)
        data = json.dumps([annotate(tasks[0], 1, "0"), annotate(tasks[1], 2, second)]).encode()
        report = import_answers(fresh, data, is_csv=False)
        assert (report.added, report.known, report.skipped) == (2, 0, [])
        assert import_answers(fresh, data, is_csv=False).known == 2


@pytest.mark.parametrize("first", ["numbers", "addresses"])
def test_an_export_with_numbers_and_one_with_addresses_are_the_same_answers(make_project, database, tmp_path, first):
    """Label Studio's page exports people by number, its snapshots by e-mail address as well."""
    project = make_project(database, items=2)
    task, other = tasks_of(project, tmp_path)
    at = "2026-03-01T12:00:00.500000Z"

    def export(*people: object) -> bytes:
        said = [annotate(task, 1, "__none__", by=by, updated_at=at) for by in people]
        return json.dumps([*said, annotate(other, 2, "__none__", by=people[0], updated_at=at)]).encode()

    # both at the same instant, as a bulk action may leave it: still two people
    numbers = export(1, 2)
    addresses = export(*({"id": i, "email": f"{i}@example.org"} for i in (1, 2)))
    given, again = (numbers, addresses) if first == "numbers" else (addresses, numbers)
    assert import_answers(project, given, is_csv=False).added == 3
    report = import_answers(project, again, is_csv=False)
    assert (report.added, report.known, report.skipped) == (0, 3, [])
    with project.store.read() as connection:
        assert len(connection.execute(select(Annotator.name)).all()) == 2


def test_a_task_that_nobody_answered_yet_is_no_bad_answer(make_project, tmp_path):
    """JSON_MIN and CSV of all tasks have a row for each of these, without an annotation."""
    project = make_project(items=2)
    tasks = tasks_of(project, tmp_path)
    row = {"id": 1, "annotation_id": None, "annotator": None, "answer": None, "lead_time": None}
    report = import_answers(project, json.dumps([{**task["data"], **row} for task in tasks]).encode(), is_csv=False)
    assert (report.added, report.known, report.skipped) == (0, 0, [])


JSONISH = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@pytest.mark.slow
def test_whatever_is_in_the_file_is_skipped_or_refused_in_one_line(make_project):
    project = make_project(items=2)
    stochastic = {"item_id": "item 0", "classes": [0, 1], "policy": "u", "inclusion_prob": [0.5, 0.5], "seed": 1}

    @settings(max_examples=80, deadline=None)
    @given(st.sampled_from(sorted(stochastic)), JSONISH, st.sampled_from(["id", "data", "annotations", "x"]), JSONISH)
    def damage(key, value, part, other):
        task = annotate({"data": {"stochastic": {**stochastic, key: value}}}, 1, "0")
        for damaged in (task, {**task, part: other}):
            assert "\n" not in refusal(project, json.dumps([damaged]).encode())

    damage()


@pytest.mark.parametrize("data", [b"", b"{}", b"[1]", b"\xff", b'[{"id": 1, "annotations": 5}]'])
def test_what_is_no_export_is_refused_or_empty(make_project, data):
    assert "\n" not in refusal(make_project(), data)


def refusal(project, data: bytes) -> str:
    """Import; what it was refused for, if it was. Any other exception is a failure."""
    try:
        import_answers(project, data, is_csv=False)
    except InputError as error:
        return str(error)
    return ""


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("truth.csv", "item,label\na,cat\nb,dog\n", "no task here is one of ours"),
        ("min.json", '[{"id": 1, "text": "hello", "intent": "cat"}]', "no task here is one of ours"),
        ("broken.json", "{", "not JSON"),
    ],
)
def test_a_file_of_something_else_is_refused_in_one_line_with_its_name(make_project, tmp_path, name, content, message):
    path = tmp_path / name
    path.write_text(content)
    with pytest.raises(InputError, match=message) as error:
        import_file(make_project(items=1), path)
    assert str(error.value).startswith(f"{path}: ")
    assert "\n" not in str(error.value)


def _say(project, who, item, shown, answer):
    """A question about an item and its answer, as if a policy had asked it."""
    with project.store.write() as connection:
        slot = connection.execute(select(Slot.id).where(Slot.item_id == item).order_by(Slot.number)).scalars().all()
        values = {"slot_id": slot[0], "item_id": item, "annotator_id": who, "turn": 0, "shortlist": shown, "seed": 0}
        values |= {"policy": "top", "policy_version": "1", "probabilities": [1.0] * len(shown), "state": "answered"}
        question = insert_id(connection, questions, {**values, "attempt": 0, "served_at": 0.0})
        values = {"question_id": question, "attempt": 0, "kind": "answer", "class_id": answer, "answered_at": 0.0}
        insert_id(connection, answers, values)


def test_labels_are_a_row_an_item_and_each_person_one_vote(make_project, database, tmp_path):
    project = make_project(database, items=6, classes=3, overlap=3, gold=1)
    with project.store.write() as connection:
        connection.execute(insert(Slot).values(item_id=7, number=1, gold=True, state="done", rank=-1, turn=0))
    ada, bob, cem = people(project, "ada", "bob", "cem")
    for who, item, shown, answer in (
        *((ada, 1, [0, 1], None), (ada, 1, [2], 2), (bob, 1, [1, 2], 2), (cem, 1, [0, 2], 0)),  # two of three
        *((ada, 2, [0, 1], 0), (bob, 2, [0, 1], 1)),  # one against one
        *((ada, 3, [0], None), (bob, 3, [0], None)),  # nobody picked
        *((ada, 4, [0], None), (ada, 4, [2], None)),  # one class is left
        *((bob, 5, [0, 1], 1), (bob, 7, [0, 1], 1)),
    ):
        _say(project, who, item, shown, answer)
    path = tmp_path / "labels.csv"
    assert export_file(project, path, "labels") == 5
    with path.open(newline="") as file:
        assert [tuple(row.values()) for row in csv.DictReader(file)] == [
            ("item 0", "class 2", "2", "1"),
            ("item 1", "", "1", "1"),
            ("item 2", "", "0", "0"),
            ("item 3", "class 1", "0", "0"),
            ("item 4", "class 1", "1", "0"),
        ]
    export_file(project, tmp_path / "votes.csv", "crowd-kit")
    with (tmp_path / "votes.csv").open(newline="") as file:
        votes = [(row["worker"], row["label"]) for row in csv.DictReader(file) if row["task"] == "item 0"]
    assert votes == [("ada", "class 2"), ("bob", "class 2"), ("cem", "class 0")]
