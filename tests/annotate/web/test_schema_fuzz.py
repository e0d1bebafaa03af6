"""schemathesis over the whole API, as an admin and as an annotator: whatever is sent, never a 5xx."""

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import response_schema_conformance, status_code_conformance

from shortlist.annotate.web.limits import Limits

LIMITS = Limits(submits_per_second=1e9, failed_sign_ins_per_minute=1e9)
CHECKS = [not_a_server_error, status_code_conformance, response_schema_conformance]


TAGS = {"admin": {"session", "admin", "data"}, "annotator": {"session", "answering"}}


@pytest.mark.parametrize("mode", [GenerationMode.POSITIVE, GenerationMode.NEGATIVE], ids=["good", "bad"])
@pytest.mark.parametrize("role", ["admin", "annotator"])
def test_no_request_makes_the_server_fail(make_site, database, role, mode):
    site = make_site(database, items=50, options={"limits": LIMITS})
    ada = site.people.invite("ada")[0]
    site.app.state.services.queue.next(ada, hold=4)
    api = schemathesis.openapi.from_asgi("/api/v1/openapi.json", site.app)
    operations = [result.ok() for result in api.get_all_operations()]
    answers: dict[str, list[int]] = {}
    for operation in operations:
        if TAGS[role].isdisjoint(operation.tags):
            continue
        if mode is GenerationMode.NEGATIVE and not (operation.body or operation.path_parameters or operation.query):
            continue  # nothing to get wrong

        # a token for each: the operation before may have been to take the last one back
        headers = {"Authorization": f"Bearer {site.people.make_token('fuzz', None if role == 'admin' else ada)}"}
        answers[operation.label] = fuzz(operation, mode, headers, 6 if database is None else 3)
    if mode is GenerationMode.POSITIVE:
        passed = {label for label, seen in answers.items() if min(seen) < 300}
        assert len(passed) >= len(answers) // 3, "the door was passed"
    else:
        assert {status for seen in answers.values() for status in seen} & {404, 422}


def fuzz(operation, mode: GenerationMode, headers: dict[str, str], examples: int) -> list[int]:
    seen: list[int] = []

    @given(case=operation.as_strategy(generation_mode=mode))
    @settings(
        max_examples=examples,
        deadline=None,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    def send(case):
        if isinstance(case.body, dict) and isinstance(case.body.get("question"), int):
            case.body["question"] %= 6  # some of these exist
        seen.append(case.call_and_validate(headers=headers, checks=CHECKS).status_code)

    send()
    return seen
