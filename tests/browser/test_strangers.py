"""Pages of strangers in a real browser: a name that was bound to this machine anew, and a page of another origin."""

import pytest

from tests.server.conftest import folder, model, writer  # noqa: F401
from tests.server.running import running

pytestmark = pytest.mark.browser
SEND = """async ([url, kind, mode]) => {
    const how = kind ? {method: "POST", mode, headers: {"Content-Type": kind}, body: '{"prompt": "a"}'} : {mode};
    try { const answer = await fetch(url, how); return [answer.type, answer.status]; } catch { return "refused"; }
}"""


def test_a_rebound_name_reads_nothing(browser, model):  # noqa: F811
    with running(lambda: model) as here:
        page, port = browser.new_page(), here.url.rpartition(":")[2]
        for path in ("/", "/v1/models", "/health", "/live"):
            assert page.goto(f"http://evil.example:{port}{path}").status == 403
        page.goto(here.url)
        assert page.evaluate(SEND, ["/v1/models", "", "cors"]) == ["basic", 200]
        page.close()
    with running(lambda: model, allow_host=("evil.example",)) as here:  # the browser does get there
        page, port = browser.new_page(), here.url.rpartition(":")[2]
        assert page.goto(f"http://evil.example:{port}/v1/models").status == 200
        page.close()


def test_a_page_of_another_origin_runs_nothing(browser, model):  # noqa: F811
    with running(lambda: model) as here:
        page, seen = browser.new_page(), []
        page.route("http://page.example/**", lambda route: route.fulfill(body="<p>hello", content_type="text/html"))
        page.on("response", lambda answer: seen.append(answer.status) if here.url in answer.url else None)
        page.goto("http://page.example/")
        for kind in ("", "application/json"):
            assert (
                page.evaluate(SEND, [f"{here.url}/tokenize" if kind else f"{here.url}/v1/models", kind, "cors"])
                == "refused"
            )
        page.evaluate(SEND, [f"{here.url}/tokenize", "text/plain", "no-cors"])  # what a form may send without asking
        assert 200 not in seen
        page.close()
