"""schemathesis over the server's own OpenAPI document: whatever is sent, no 5xx."""

import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error

from tests.server.running import running


@pytest.fixture(scope="module")
def here(model):
    with running(lambda: model) as server:
        yield server


def test_no_server_error(here):
    schema = schemathesis.openapi.from_url(f"{here.url}/openapi.json")
    operations = [found.ok() for found in schema.get_all_operations()]
    assert len(operations) >= 10
    for operation in operations:
        right, wrong = (operation.as_strategy(mode) for mode in (GenerationMode.POSITIVE, GenerationMode.NEGATIVE))
        anything = st.one_of(right, wrong) if operation.body or operation.path_parameters else right

        @settings(max_examples=20, deadline=None, suppress_health_check=list(HealthCheck), database=None)
        @given(anything)
        def check(case):
            case.call_and_validate(checks=[not_a_server_error], timeout=60)

        check()
