"""Any OpenAI-compatible `/embeddings` endpoint as an embedder.

Requests are batched by number and by characters. What fails in passing (no connection, 429, 5xx) is sent
again after a jittered, growing wait, or after what `Retry-After` says; nothing is sent or read for ever. The
key goes into one header, and from there nowhere: not into an error, a log or a repr.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any

import numpy as np
from tenacity import RetryCallState, Retrying, retry_if_exception, stop_after_attempt
from tenacity.wait import wait_exponential, wait_random

from planner.errors import EmbedderError, SettingsError
from planner.ports import Vectors
from planner.settings import HttpEndpoint

if TYPE_CHECKING:
    import httpx

MAX_WAIT_SECONDS = 60.0
"""The longest wait before a retry; an endpoint that asks for a longer one is given up at once."""

CONNECT_SECONDS = 10.0
"""How long a connection may take to be made, where `timeout_s` is not less."""

_BACKOFF = wait_exponential(multiplier=0.5, max=20) + wait_random(0, 0.5)
_BYTES_A_NUMBER, _BYTES_AROUND = 64, 1_000_000
_EXCERPT = 300


class _Passing(Exception):
    """A failure that may be gone the next time; `after` is how many seconds the endpoint asks to wait."""

    def __init__(self, said: str, after: float | None = None) -> None:
        super().__init__(said)
        self.after = after


@dataclass
class HttpEmbedder:
    """Embeds through `endpoint`; its vectors are known by the endpoint's model and revision, not by its URL.

    Made without touching the network, thread-safe, and its connections are kept until `close`. Raises
    SettingsError where the variable of the key is not set, EmbedderError where httpx is not installed.
    """

    endpoint: HttpEndpoint
    environ: Mapping[str, str] = field(default_factory=lambda: os.environ, repr=False)
    sleep: Callable[[float], None] = field(default=time.sleep, repr=False)

    def __post_init__(self) -> None:
        """Read the key, and make the client that sends it."""
        self._key = _key(self.endpoint, self.environ)
        self._client = _client(self.endpoint, self._key)

    @property
    def name(self) -> str:
        """The model's name."""
        return self.endpoint.model

    @property
    def revision(self) -> str:
        """The model's revision, as configured."""
        return self.endpoint.revision

    @property
    def dimensions(self) -> int:
        """The length of each vector, as configured; an answer of another length is refused."""
        return self.endpoint.dimensions

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Return float32 rows of shape (len(texts), dimensions); a blank text is not sent and gives zeros.

        Raises EmbedderError for a service that cannot be reached, refuses, hangs, or answers anything but
        one vector a text of finite numbers and the configured length.
        """
        out = np.zeros((len(texts), self.dimensions), dtype=np.float32)
        asked = [i for i, text in enumerate(texts) if text.strip()]
        for batch in _batches(asked, texts, self.endpoint):
            out[batch] = self._vectors([texts[i] for i in batch])
        return out

    def close(self) -> None:
        """Close the connections; a closed embedder embeds no more."""
        self._client.close()

    def _vectors(self, texts: list[str]) -> Vectors:
        """Embed one batch, as often as it takes and is allowed."""
        sending = Retrying(
            retry=retry_if_exception(_is_worth_waiting_for),
            wait=_wait,
            stop=stop_after_attempt(self.endpoint.retries + 1),
            sleep=self.sleep,
            reraise=True,
        )
        try:
            answer = sending(self._send, texts)
        except _Passing as error:
            tries = sending.statistics["attempt_number"]
            raise self._failed(f"{error} (tried {tries} time{'s' if tries > 1 else ''})") from None
        return self._read(answer, len(texts))

    def _send(self, texts: list[str]) -> bytes:
        """Send one request and return the body of its answer. Raises _Passing, EmbedderError."""
        import httpx  # noqa: PLC0415  # an extra, and half a second

        asked: dict[str, Any] = {"model": self.name, "input": texts}
        if self.endpoint.request_dimensions:
            asked["dimensions"] = self.dimensions
        try:
            with self._client.stream("POST", "embeddings", json=asked) as response:
                body = self._body(response, len(texts))
        except (httpx.ReadTimeout, httpx.WriteTimeout, httpx.PoolTimeout):
            raise self._hangs() from None
        except httpx.TransportError as error:
            raise _Passing(f"cannot be reached: {self._clean(str(error)) or type(error).__name__}") from None
        except httpx.HTTPError as error:
            raise self._failed(f"answered what cannot be read: {self._clean(str(error))}") from None
        if response.status_code == 200:
            return body
        said = f"answered {response.status_code}: {self._clean(body.decode('utf-8', 'replace'))}"
        if response.status_code == 429 or response.status_code >= 500:
            after = _retry_after(response.headers.get("retry-after"))
            raise _Passing(said if after is None else f"{said}, and asks to wait {after:.0f} s", after)
        raise self._failed(said)

    def _body(self, response: httpx.Response, texts: int) -> bytes:
        """Read the body within the request's time, and within what such vectors can take."""
        limit = _BYTES_AROUND + texts * self.dimensions * _BYTES_A_NUMBER
        deadline = time.monotonic() + self.endpoint.timeout_s
        body = bytearray()
        for chunk in response.iter_bytes():
            body += chunk
            if len(body) > limit:
                raise self._failed(f"answered more than {limit} bytes for {texts} texts")
            if time.monotonic() > deadline:
                raise self._hangs()
        return bytes(body)

    def _read(self, body: bytes, texts: int) -> Vectors:
        """Return the vectors of an answer, in the order of their indexes."""
        try:
            items = json.loads(body)["data"]
            by_index = {item["index"]: item["embedding"] for item in items}
        except (ValueError, TypeError, KeyError, RecursionError):
            raise self._failed('answered no JSON of the form {"data": [{"index", "embedding"}]}') from None
        if len(items) != texts or by_index.keys() != set(range(texts)):
            raise self._failed(f"answered {len(items)} vectors, not one for each of {texts} texts by index")
        rows = [by_index[i] for i in range(texts)]
        wrong = next((r for r in rows if not isinstance(r, list) or len(r) != self.dimensions), None)
        if wrong is not None:
            found = f"{len(wrong)} dimensions" if isinstance(wrong, list) else f"a {type(wrong).__name__}"
            raise self._failed(
                f"answered {found}, the configuration says dimensions = {self.dimensions}; "
                "correct it, or set request_dimensions where the model can be shortened"
            )
        return self._finite(rows)

    def _finite(self, rows: list[list[Any]]) -> Vectors:
        numbers = all(type(value) in (int, float) for row in rows for value in row)
        with suppress(OverflowError):  # an integer beyond every float
            values = np.asarray(rows if numbers else np.nan, dtype=np.float64)
            if (np.abs(values) <= np.finfo(np.float32).max).all():
                return values.astype(np.float32)
        raise self._failed("answered a vector with a value that is no finite 32-bit float")

    def _hangs(self) -> EmbedderError:
        return self._failed(f"did not answer within timeout_s = {self.endpoint.timeout_s:g}")

    def _failed(self, said: str) -> EmbedderError:
        return EmbedderError(f"embedder {self.name!r} at {self.endpoint.url} {said}", embedder=self.name)

    def _clean(self, said: str) -> str:
        """Return the beginning of what somebody else said, in one line and without the key."""
        without = said.replace(self._key, "***") if self._key else said
        return " ".join(without[: 4 * _EXCERPT].split())[:_EXCERPT]


def _key(endpoint: HttpEndpoint, environ: Mapping[str, str]) -> str:
    name = endpoint.api_key_env
    if name is None:
        return ""
    key = environ.get(name, "").strip()
    if not key or not key.isascii() or not key.isprintable():
        fault = "holds something else than an API key" if key else "is not set"
        raise SettingsError(
            f"the environment variable {name}, which embedder_http.api_key_env names, {fault}; "
            "it must hold the key, in printable ASCII",
            key="embedder_http.api_key_env",
        )
    return key


def _client(endpoint: HttpEndpoint, key: str) -> httpx.Client:
    try:
        import httpx  # noqa: PLC0415  # an extra, and half a second
    except ImportError as error:
        raise EmbedderError("httpx is not installed; pip install 'evidence-planner[http]'") from error
    return httpx.Client(
        base_url=endpoint.url.removesuffix("/").removesuffix("/embeddings"),
        headers={"Authorization": f"Bearer {key}"} if key else {},
        timeout=httpx.Timeout(endpoint.timeout_s, connect=min(endpoint.timeout_s, CONNECT_SECONDS)),
    )


def _batches(asked: Sequence[int], texts: Sequence[str], endpoint: HttpEndpoint) -> Iterator[list[int]]:
    """Part positions into runs of batch_size texts and batch_chars characters; a longer text is alone."""
    batch: list[int] = []
    chars = 0
    for i in asked:
        if batch and (len(batch) == endpoint.batch_size or chars + len(texts[i]) > endpoint.batch_chars):
            yield batch
            batch, chars = [], 0
        batch.append(i)
        chars += len(texts[i])
    if batch:
        yield batch


def _is_worth_waiting_for(error: BaseException) -> bool:
    return isinstance(error, _Passing) and (error.after is None or error.after <= MAX_WAIT_SECONDS)


def _wait(state: RetryCallState) -> float:
    """Return the seconds until the next attempt: at least what the endpoint asked for."""
    error = state.outcome.exception() if state.outcome else None
    asked = error.after if isinstance(error, _Passing) and error.after is not None else 0.0
    return max(_BACKOFF(state), asked)


def _retry_after(value: str | None) -> float | None:
    """Read a Retry-After header, seconds or a date (RFC 9110, 10.2.3); None for anything else."""
    if value is None:
        return None
    if value.isascii() and value.isdigit():
        return float(value)
    with suppress(ValueError, TypeError):
        return max(0.0, (parsedate_to_datetime(value) - datetime.now(UTC)).total_seconds())
    return None
