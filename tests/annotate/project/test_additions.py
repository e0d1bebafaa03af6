"""What is added to a project that has items already: other columns, odd names, two imports at once."""

from concurrent.futures import ThreadPoolExecutor

import pytest
from PIL import Image
from sqlalchemy import func, select

from shortlist.annotate.db.schema import Item, Slot
from shortlist.annotate.project.additions import Additions, add_to_project, preview
from shortlist.annotate.project.classes import add_classes
from shortlist.annotate.project.gold_items import mark_gold
from shortlist.annotate.project.importing import add_items
from shortlist.annotate.project.known_items import mark_known
from shortlist.annotate.project.sources import Source, find_sources
from shortlist.errors import InputError


def test_an_item_with_a_space_that_does_not_break_in_its_name_is_known_again(make_project, database, tmp_path):
    """The whole file was refused: an item had been added in the meantime, it said."""
    path = tmp_path / "items.csv"
    path.write_text("item,text\ncaf\u00a0e,hello\n\u3000b,again\n", encoding="utf-8")
    project = make_project(database, items=0)
    assert add_items(project, find_sources(path)).added == 2
    report = add_items(project, find_sources(path))
    assert (report.added, {reason for _, reason in report.skipped}) == (0, {"the project has an item of this name"})


@pytest.mark.parametrize("name", ["a\x00b", "\ud800", "a\nb"])
def test_a_name_that_no_item_can_have_is_left_out_and_said(make_project, database, name):
    """Databases cannot even be asked for some of them."""
    project = make_project(database, items=1)
    known = {name: "class 1", "item 0": "class 1"}
    marked = mark_gold(project, known)
    assert (marked.added, [one for one, _ in marked.skipped]) == (1, [name])
    assert mark_known(project, known) == (0, [("item 0", "a gold item: it is not learned from")])
    assert [where for where, _ in add_items(project, [Source("row 1", name, text="?")]).skipped] == ["row 1"]


def test_a_table_of_pictures_is_added_to_texts_of_a_stated_column(make_project, tmp_path):
    """It was refused with the hint to state --text-column, by which paths would have become texts."""
    Image.new("L", (8, 8)).save(tmp_path / "a.png")
    project = make_project(items=0, text_column="message", item_column="key")
    tables = {
        "pictures": "key,image\nx,a.png\n",
        "texts": "key,message,text,image\ny,as usual,not this,nor this\n",
        "other": "key,text\nz,another column\n",
    }
    for name, content in tables.items():
        path = tmp_path / f"{name}.csv"
        path.write_text(content)
        assert preview(project, Additions(path)).added == 1
        assert add_to_project(project, Additions(path)).added == 1
    with project.store.read() as connection:
        found = connection.execute(select(Item.name, Item.kind, Item.text).order_by(Item.id)).all()
    assert [tuple(row) for row in found] == [
        ("x", "image", None),
        ("y", "text", "as usual"),
        ("z", "text", "another column"),
    ]
    (tmp_path / "neither.csv").write_text("key,body\nq,?\n")
    with pytest.raises(InputError, match=r"no column 'message' \(its columns: key, body\): give --text-column"):
        add_to_project(project, Additions(tmp_path / "neither.csv"))
    with pytest.raises(InputError, match="no column 'msg'"):
        add_to_project(project, Additions(tmp_path / "pictures.csv", text_column="msg"))


def test_two_imports_at_the_same_moment_are_each_whole_or_refused_in_one_line(make_project, database):
    """On PostgreSQL they waited for each other until the database ended one of them."""
    project = make_project(database, items=0, classes=0)
    sources = [Source(str(k), f"item {k}", text="?") for k in range(300)]
    names = [f"class {k}" for k in range(3)]

    def refusal(call, *arguments, **options) -> str:
        try:
            call(project, *arguments, **options)
        except InputError as error:
            return str(error)
        return ""

    with ThreadPoolExecutor(2) as pool:
        said = [one.result(60) for one in [pool.submit(refusal, add_classes, names) for _ in range(2)]]
    assert sorted(said) == ["", "the project has the class 'class 0' already: give new ones only"]
    with ThreadPoolExecutor(2) as pool:
        orders = (sources, sources[::-1])
        said = [one.result(60) for one in [pool.submit(refusal, add_items, order, strict=True) for order in orders]]
    assert "" in said
    assert any("in the meantime" in one or "an item of this name" in one for one in said)
    with project.store.read() as connection:
        counts = [connection.execute(select(func.count()).select_from(table)).scalar_one() for table in (Item, Slot)]
        assert counts == [300, 300]
        assert len(set(connection.execute(select(Slot.rank)).scalars())) == 300
