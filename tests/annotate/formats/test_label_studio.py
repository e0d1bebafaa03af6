"""Label Studio's tasks, and its answers back."""

import csv
import json
from concurrent.futures import ThreadPoolExecutor
from itertools import count

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlalchemy import select

from shortlist import NONE, StochasticLabels
from shortlist.annotate.db.schema import Annotator, Answer, Question
from shortlist.annotate.formats.label_studio_answers import import_answers, import_file
from shortlist.annotate.project.audit import CommandLine
from shortlist.annotate.project.classes import add_classes
from shortlist.annotate.project.erasing import erase_person
from shortlist.annotate.project.gold_items import mark_gold
from shortlist.annotate.project.review.class_changes import retire_class
from shortlist.annotate.project.stats import Stats
from shortlist.annotate.setup import export_file
from shortlist.errors import InputError

from ..conftest import new_database, people


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


def test_a_class_on_every_list_is_on_those_of_the_tasks(make_project, tmp_path):
    project = make_project(items=3, classes=9, pinned=4)
    tasks = tasks_of(project, tmp_path)
    for asked in (task["data"]["stochastic"] for task in tasks):
        assert (len(asked["classes"]), asked["classes"][-1], asked["inclusion_prob"][-1]) == (4, 4, 1.0)
    assert import_answers(project, json.dumps([annotate(tasks[0], 1, "4")]).encode(), is_csv=False).added == 1


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


@pytest.mark.parametrize("kind", ["min", ",", ";", "\t"])
def test_answers_come_back_flat(make_project, tmp_path, kind):
    """JSON_MIN, or CSV, which a spreadsheet may have saved with separators of its own."""
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
            writer = csv.DictWriter(file, list(flat[0]), delimiter=kind)
            writer.writeheader()
            for row in flat:
                writer.writerow({k: json.dumps(v) if isinstance(v, dict | list) else v for k, v in row.items()})
    report = import_file(project, path)
    assert (report.added, len(report.skipped)) == (2, 1)
    export_file(project, tmp_path / "a.jsonl", None)
    rows = [json.loads(line) for line in (tmp_path / "a.jsonl").read_text().splitlines()]
    assert [(row["answer"], row["seconds"]) for row in rows] == [("", 3.0), (names[1], 3.0)]


def test_two_answers_of_one_person_on_a_gold_item_leave_it_to_be_asked_of_others(make_project, database, tmp_path):
    """The tasks were exported before the item was made gold; its slots bear the ids of those who are asked."""
    project = make_project(database, items=2, overlap=2, gold_every=2)
    tasks = [task for task in tasks_of(project, tmp_path) if task["data"]["stochastic"]["item_id"] == "item 0"]
    mark_gold(project, {"item 0": "class 1"})
    given = [annotate(task, number, "__none__") for number, task in enumerate(tasks)]
    assert import_answers(project, json.dumps(given).encode(), is_csv=False).added == 2
    queue = project.queue(seeds=count(0, 2).__next__)  # every question may be about gold
    for who in people(project, "ada", "bob"):
        assert queue.next(who)[0].item_id == 1


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


def test_a_class_that_was_retired_meanwhile_is_no_answer(make_project, database, tmp_path):
    project = make_project(database, items=1)
    (task,) = tasks_of(project, tmp_path)
    gone = task["data"]["stochastic"]["classes"][0]
    retire_class(project, gone)
    data = json.dumps([annotate(task, 1, str(gone))]).encode()
    for added in (1, 0):
        assert import_answers(project, data, is_csv=False).added == added
        assert (project.status()["progress"]["done"], project.check()) == (0, [])
    (ada,) = people(project, "ada")
    (held,) = project.queue().next(ada)
    project.queue().answer(ada, held.id, held.attempt, held.shortlist[0], 1.0)
    import_answers(project, data, is_csv=False)
    assert project.status()["progress"]["done"] == 1


def test_an_answer_to_what_is_asked_again_after_a_retirement_ends_it(make_project, database, tmp_path):
    """It was taken for the answer before it, whose class had gone, and the item was opened again."""
    project = make_project(database, items=1)
    (ada,) = people(project, "ada")
    (held,) = project.queue().next(ada)
    project.queue().answer(ada, held.id, 0, held.shortlist[0], 1.0)
    assert retire_class(project, held.shortlist[0]) == 1
    (task,) = tasks_of(project, tmp_path)
    right = str(task["data"]["stochastic"]["classes"][0])
    for added in (1, 0):
        data = json.dumps([annotate(task, 1, right)]).encode()
        assert import_answers(project, data, is_csv=False).added == added
        assert (project.status()["progress"]["done"], project.check()) == (1, [])


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


@pytest.mark.parametrize("away", ["take back", "erase"])
def test_whoever_had_several_tasks_about_an_item_is_followed_by_as_many(make_project, database, tmp_path, away):
    """All but the first of their answers have slots that are nobody's, which stayed done with no answer in them."""
    project = make_project(database, items=1, overlap=2)
    tasks = tasks_of(project, tmp_path)
    (old,) = tasks_of(make_project(items=1), tmp_path)
    given = [annotate(task, k, "__none__") for k, task in enumerate([*tasks, old])]
    assert import_answers(project, json.dumps(given).encode(), is_csv=False).added == 3
    with project.store.read() as connection:
        who = connection.execute(select(Annotator.id)).scalar_one()
    assert (project.queue().take_back(who) if away == "take back" else erase_person(project, who, CommandLine())) == 3
    assert project.check() == []
    queue = project.queue()
    for annotator in people(project, "ada", "ben", "cem"):
        (question,) = queue.next(annotator)
        queue.answer(annotator, question.id, 0, None, 1.0)
    assert Stats(project.store).status()["items_done"] == 1


def test_who_holds_an_item_here_may_have_answered_it_there(make_project, tmp_path):
    """Nobody has two slots of an item; the file was refused for it, with the database's own words."""
    project = make_project(items=2)
    first, second = (annotate(task, k, "__none__") for k, task in enumerate(tasks_of(project, tmp_path)))
    import_answers(project, json.dumps([first]).encode(), is_csv=False)
    with project.store.read() as connection:
        who = connection.execute(select(Annotator.id)).scalar_one()
    queue = project.queue()
    (held,) = queue.next(who)
    assert import_answers(project, json.dumps([second]).encode(), is_csv=False).added == 1
    queue.answer(who, held.id, 0, None, 1.0)
    assert project.check() == []


@pytest.mark.postgres
def test_what_somebody_is_being_asked_is_not_taken_from_them(make_project, postgres, tmp_path):
    """At the same moment: the slot was settled twice, and the item waited for -1 answers."""
    project = make_project(new_database(postgres), items=1)
    data = json.dumps([annotate(tasks_of(project, tmp_path)[0], 1, "__none__")]).encode()
    (ada,) = people(project, "ada")
    queue = project.queue()
    with ThreadPoolExecutor(1) as pool, project.store.quick():  # not committed yet
        (held,) = queue.next(ada)
        assert pool.submit(import_answers, project, data, is_csv=False).result(20).added == 1
    queue.answer(ada, held.id, 0, None, 1.0)
    assert (Stats(project.store).progress(), project.check()) == ({"done": 2, "total": 2}, [])


@pytest.mark.parametrize("known", [False, True], ids=["by somebody new", "by somebody known"])
def test_two_imports_of_a_file_at_the_same_moment_are_one(make_project, database, tmp_path, known):
    """On PostgreSQL one of them failed, or what it found was stored twice."""
    project = make_project(database, items=40)
    tasks = tasks_of(project, tmp_path)
    exports = [json.dumps([annotate(task, k, "__none__") for k, task in enumerate(tasks)]).encode()]
    exports.append(json.dumps([*reversed(json.loads(exports[0]))]).encode())
    if known:
        people(project, "label-studio:7")
    with ThreadPoolExecutor(2) as pool:
        found = [
            one.result(60) for one in [pool.submit(import_answers, project, data, is_csv=False) for data in exports]
        ]
    assert sorted((one.added, one.known, one.skipped) for one in found) == [(0, 40, []), (40, 0, [])]
    assert (Stats(project.store).progress(), project.check()) == ({"done": 40, "total": 40}, [])


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
