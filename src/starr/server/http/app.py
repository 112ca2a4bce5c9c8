"""The application: routes, and errors in OpenAI's form."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from importlib.metadata import version
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.middleware.cors import CORSMiddleware
from starlette.exceptions import HTTPException
from starlette.responses import HTMLResponse, JSONResponse, Response

from starr.errors import StarrError
from starr.model.load import Model
from starr.server.errors import Full, error_body, error_object
from starr.server.http.bodies import ChatBody, CompletionBody, DetokenizeBody, InfillBody, TokenizeBody
from starr.server.http.guard import Guard
from starr.server.http.pages import list_members, read_live_page, write_reference
from starr.server.http.responses import ResponsesBody
from starr.server.http.service import Service
from starr.server.settings import Settings


def create_app(load: Callable[[], Model], settings: Settings) -> FastAPI:
    """An application that answers at once, with 503 until ``load`` has returned in a thread of its own."""
    service = Service(load, settings)

    @contextlib.asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        service.begin()
        yield
        await asyncio.to_thread(service.end)

    app = FastAPI(title="STaRR", version=version("starr-dlm"), lifespan=lifespan, docs_url=None, redoc_url=None)
    app.state.service = service
    add_errors(app)
    add_decoding(app, service)
    add_information(app, service)
    app.add_middleware(Guard, settings=settings)
    if settings.cors:  # outermost, so that a page can read the guard's refusals too
        app.add_middleware(CORSMiddleware, allow_origins=list(settings.cors), allow_methods=["*"], allow_headers=["*"])
    return app


def add_decoding(app: FastAPI, service: Service) -> None:
    """The endpoints that decode."""

    @app.post("/v1/chat/completions", responses=REFUSALS)
    async def chat(body: ChatBody, request: Request) -> Response:
        return await service.answer(body, request)

    @app.post("/v1/completions", responses=REFUSALS)
    async def completions(body: CompletionBody, request: Request) -> Response:
        return await service.answer(body, request)

    @app.post("/v1/responses", responses=REFUSALS)
    async def responses(body: ResponsesBody, request: Request) -> Response:
        return await service.answer(body, request)

    @app.post("/v1/infill", responses=REFUSALS)
    async def infill(body: InfillBody, request: Request) -> Response:
        return await service.answer(body, request)


def add_information(app: FastAPI, service: Service) -> None:
    """The endpoints for model, strategies, health and metrics."""

    @app.get("/v1/models", responses=REFUSALS)
    async def models() -> dict[str, Any]:
        return {"object": "list", "data": [service.card()]}

    @app.get("/v1/models/{name:path}", responses=REFUSALS)
    async def one_model(name: str) -> dict[str, Any]:
        return service.card(name)

    @app.get("/v1/strategies")
    async def strategies() -> dict[str, Any]:
        return list_members(service.settings.defaults)

    @app.post("/tokenize", responses=REFUSALS)
    async def tokenize(body: TokenizeBody) -> dict[str, Any]:
        return await service.tokenize(body)

    @app.post("/detokenize", responses=REFUSALS)
    async def detokenize(body: DetokenizeBody) -> dict[str, Any]:
        return await service.detokenize(body)

    @app.get("/docs", include_in_schema=False)
    async def docs() -> HTMLResponse:
        return HTMLResponse(write_reference(app.openapi()))

    @app.get("/health", responses=REFUSALS)
    async def health() -> Response:
        service.check_health()
        return Response()

    @app.get("/health/ready", responses=REFUSALS)
    async def ready() -> Response:
        service.check_health()
        service.ready.pool.check_room()
        return Response()

    @app.get("/version")
    async def versions() -> dict[str, str]:
        return {"version": version("starr-dlm")}

    @app.get("/metrics", responses=REFUSALS)
    async def metrics() -> Response:
        return Response(service.ready.metrics.page(), media_type="text/plain; version=0.0.4; charset=utf-8")

    @app.get("/trace/{id}", responses=REFUSALS)
    async def trace(id: str) -> HTMLResponse:
        return HTMLResponse(await asyncio.to_thread(service.traces.page, id))

    @app.get("/", include_in_schema=False)
    async def page() -> HTMLResponse:
        return HTMLResponse(read_live_page())


REFUSALS: dict[int | str, dict[str, Any]] = {
    status: {"description": meaning}
    for status, meaning in {
        400: "A field breaks a rule; the error names it.",
        401: "The key is missing or wrong.",
        403: "The page's origin or the Host name is not allowed.",
        404: "No such model or page.",
        408: "The body did not arrive, or the answer was not finished, in time.",
        413: "The body is too large.",
        415: "The Content-Type is not JSON.",
        429: "The queue is full; see Retry-After.",
        500: "The forward failed.",
        503: "The model is still loading, the server is full or shutting down, or an engine is stuck.",
    }.items()
}


def add_errors(app: FastAPI) -> None:
    """Every error is sent in one form."""

    @app.exception_handler(StarrError)
    async def ours(request: Request, error: StarrError) -> JSONResponse:
        again = {"Retry-After": str(error.retry_after)} if isinstance(error, Full) else {}
        return JSONResponse(error_body(error), error.status, again)

    @app.exception_handler(RequestValidationError)
    async def invalid(request: Request, error: RequestValidationError) -> JSONResponse:
        first = error.errors()[0]
        where = [str(part) for part in first["loc"] if part not in ("body", "path", "query")]
        param = where[0] if where and first["type"] != "json_invalid" else None
        message = f"{'.'.join(where)}: {first['msg']}." if param else f"The body must be JSON: {first['msg']}."
        return JSONResponse(error_object(message, 400, param), 400)

    @app.exception_handler(HTTPException)
    async def http(request: Request, error: HTTPException) -> JSONResponse:
        return JSONResponse(error_object(str(error.detail), error.status_code), error.status_code, error.headers)

    @app.exception_handler(Exception)
    async def unexpected(request: Request, error: Exception) -> JSONResponse:
        return JSONResponse(error_object(f"The server failed ({type(error).__name__}).", 500), 500)
