"""Names that people can tell apart, links and sessions that end."""

import time

import pytest

from shortlist.annotate.problems import Conflict, Unauthorized
from shortlist.annotate.project.people import DAY, People
from shortlist.annotate.project.project import SECRET, Project
from shortlist.annotate.web.auth import Auth
from shortlist.errors import InputError

from ..conftest import Clock


def test_names_that_look_alike_are_one_name(make_project):
    people = People(make_project())
    people.invite("Ada Lovelace")
    for same in ("Ada Lovelace ", "ada lovelace", "Ada  Lovelace", "Ada\u00a0Lovelace", "\uff21da Lovelace"):
        with pytest.raises(Conflict, match="already an annotator 'Ada Lovelace'"):
            people.invite(same)
    for unseen in ("Ada\u200bLovelace", "\u202eecalevoL adA", "Bo\u2066b", "\ufeffBob", "Bob\u200f"):
        with pytest.raises(InputError, match="invisible"):
            people.invite(unseen)
    assert people.ensure(" Ada Lovelace ") == 1
    people.invite("نیما\u200cنژاد")  # a joiner that writing needs
    with pytest.raises(Conflict):
        people.invite("نیمانژاد")


def test_a_new_link_ends_the_sessions_of_the_old_one(make_project):
    project = make_project()
    people = People(project)
    auth = Auth(project, people)
    ada, link = people.invite("ada")
    session, _ = auth.sign_in(link)
    other, _ = auth.sign_in(people.invite("ben")[1])
    token = people.make_token("program", ada)
    assert auth.who(session, "session").annotator_id == ada
    people.renew_invite(ada)
    with pytest.raises(Unauthorized):
        auth.who(session, "session")
    assert auth.who(other, "session").name == "ben"
    assert auth.who(token, "token").name == "ada", "a program has no link that could be known to others"


def test_a_link_made_before_the_clock_was_set_back_works(make_project):
    project, clock = make_project(), Clock()
    people = People(project, clock)
    auth = Auth(project, people)
    clock.now = time.time()
    _, link = people.invite("ada")
    clock.now -= 3600
    auth.sign_in(link)
    clock.now += 31 * DAY
    with pytest.raises(Unauthorized):
        auth.sign_in(link)


def test_a_new_secret_ends_every_session_and_token(make_project):
    project = make_project()
    people = People(project)
    session, _ = Auth(project, people).sign_in(people.admin_link())
    token, link = people.make_token("program", None), people.admin_link()
    with Project.open(project.folder) as again:
        assert Auth(again, People(again)).who(session, "session").role == "owner"
    (project.folder / SECRET).unlink()
    with Project.open(project.folder) as again:
        auth = Auth(again, People(again))
        for attempt in (
            lambda: auth.who(session, "session"),
            lambda: auth.who(token, "token"),
            lambda: auth.sign_in(link),
        ):
            with pytest.raises(Unauthorized):
                attempt()
