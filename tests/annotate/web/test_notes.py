"""What annotators say beside their answers: stored once, about their own questions only, on both databases."""

from sqlalchemy import select

from shortlist.annotate.db.schema import Answer, Note


def rows(site, table):
    with site.project.store.read() as connection:
        return list(connection.execute(select(table.__table__).order_by(table.id)).mappings())


def ask(client) -> dict:
    (question,) = client.post("/api/v1/next", json={"hold": 1}).json()["questions"]
    return question


def test_comments_and_flags_are_kept_with_the_item_and_who_said_it(make_site, database):
    site = make_site(database)
    ada, ben = site.annotator("ada"), site.annotator("ben")
    question = ask(ada)

    def say(client=ada, **body):
        return client.post("/api/v1/notes", json={"question": question["id"], **body})

    first = say(text=" Two birds at once. ")
    assert first.status_code == 200, first.text
    assert say(text="Two birds at once.").json() == first.json(), "sent again, stored once"
    assert say(kind="flag").json() != first.json()
    assert say(kind="flag").status_code == 200
    found = rows(site, Note)
    assert [(row["kind"], row["text"], row["author"]) for row in found] == [
        ("comment", "Two birds at once.", "ada"),
        ("flag", "", "ada"),
    ]
    assert {row["item_id"] for row in found} == {1}
    assert [row["closed_at"] for row in found] == [None, None]
    assert say().json()["message"] == "a comment without words"
    assert say(text="a\x00b").status_code == 422
    assert say(text="a" * 2001).status_code == 422
    assert say(kind="praise", text="a").status_code == 422
    assert say(ben, text="Not asked.").status_code == 404, "somebody else's question"
    assert say(site.admin(), text="Not asked.").status_code == 403
    assert say(site.client(), text="Nobody.").status_code == 401
    assert len(rows(site, Note)) == 2
    with site.project.store.write() as connection:
        connection.execute(Note.__table__.update().values(closed_at=1.0, closed_by="owner"))
    say(kind="flag")
    assert len(rows(site, Note)) == 3, "what was dealt with may be said again"


def test_a_skip_has_a_reason_that_can_be_changed(make_site, database):
    site = make_site(database)
    ada, ben = site.annotator("ada"), site.annotator("ben")
    question = ask(ada)
    body = {"question": question["id"], "attempt": question["attempt"]}

    def explain(reason, client=ada, **more):
        return client.post("/api/v1/skips/reason", json={**body, "reason": reason, **more})

    assert explain("unclear").status_code == 404, "not skipped yet"
    assert ada.post("/api/v1/skips", json=body).status_code == 200
    for reason in ("unclear", "broken", "unlisted", "mine", None, "broken"):
        assert explain(reason).status_code == 204
        assert [row["reason"] for row in rows(site, Answer)] == [reason]
    assert explain("bored").status_code == 422
    assert explain("mine", ben).status_code == 404
    assert explain("mine", attempt=1).status_code == 404
    answered = ask(ada)
    ada.post("/api/v1/answers", json={"question": answered["id"], "answer": None})
    assert explain("mine", question=answered["id"]).status_code == 404, "an answer is no skip"
    assert [row["reason"] for row in rows(site, Answer)] == ["broken", None]
