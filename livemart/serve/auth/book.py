"""Keeps the tokens in memory, so that a request is judged without asking the store.

Used by `callers` for every request, and by the hub, which has them read again. Tokens that could
not be read for a minute let no one in: a revoked one might be among them.
"""

from __future__ import annotations

import asyncio
import hmac
import re
import threading
import time
from collections.abc import Callable, Mapping

from livemart.errors import PublishError
from livemart.serve.auth.tokens import Token, TokenStore, hash_secret
from livemart.serve.http.in_time import Inquiry

_FORM = re.compile(r"lm_([0-9a-f]{12})_([A-Za-z0-9_-]{43})")
_TRUSTED_FOR_S = 60.0
_READ_EVERY_S = 1.0
# However many unknown tokens come.
_READ_AT_MOST_EVERY_S = 0.2


class TokenBook:
    """The tokens of a store, as they were last read.

    `refresh` brings it up to date; what another process changed holds from the next call on.
    `on_change` is called, on the event loop, when `learn` or `learn_soon` found other tokens.

    Args:
        store: the tokens.
        clock: seconds that only ever rise. The wall clock may be set back, and then what was read
            long ago would be believed for as long as it takes to catch up.
    """

    def __init__(self, store: TokenStore, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._store = store
        self._clock = clock
        self._lock = threading.Lock()
        # The version of the held tokens; -1 before the first reading.
        self.version = -1
        self._tokens: Mapping[str, Token] = {}
        self._read_at: float | None = None
        self._tried_at: float | None = None
        self._learning = Inquiry(self._learn)
        self._learning_soon = Inquiry(self._learn_in_time)
        self._had_tokens = False
        self.on_change: Callable[[], None] = lambda: None

    @property
    def is_empty(self) -> bool:
        """True if no token was ever made. Revoked ones count: who made one wants a lock.

        A store that is lost together with its tokens does not open this process to all.
        """
        return self.version >= 0 and not self._had_tokens

    @property
    def is_due(self) -> bool:
        """True if the tokens are to be read again."""
        return self._tried_at is None or self._clock() - self._tried_at >= _READ_EVERY_S

    @property
    def is_trusted(self) -> bool:
        """True if the store was asked lately enough to trust the held tokens."""
        return self._read_at is not None and self._clock() - self._read_at < _TRUSTED_FOR_S

    def refresh(self) -> None:
        """Read the tokens again if they changed.

        A store that had tokens and has none is away or lost: no user revoked them. They are
        believed as long as those of a store that does not answer.

        Raises:
            PublishError: STORE_UNREACHABLE.
        """
        with self._lock:
            # The time before the question: the answer may be long in coming.
            started_at = self._clock()
            version = self._store.version()
            if version == 0 and self._had_tokens:
                raise PublishError(
                    "STORE_UNREACHABLE",
                    "the store has lost its tokens",
                    hint="restore the store, or create new tokens with `livemart token create`",
                )
            if version != self.version:
                self._tokens = {token.token_id: token for token in self._store.tokens()}
                self.version = version
                self._had_tokens = self._had_tokens or bool(self._tokens)
            self._read_at = started_at

    async def learn(self) -> None:
        """Read the tokens again in a thread if they changed.

        Raises:
            PublishError: STORE_UNREACHABLE, also if there is no answer in time.
        """
        await self._learning.answer()

    async def learn_soon(self) -> None:
        """Read the tokens again, soon, and once for all who ask meanwhile: one may be new.

        Raises:
            PublishError: STORE_UNREACHABLE, also if there is no answer in time.
        """
        await self._learning_soon.answer()

    async def _learn(self) -> None:
        version, self._tried_at = self.version, self._clock()
        await asyncio.to_thread(self.refresh)
        if self.version != version:
            self.on_change()

    async def _learn_in_time(self) -> None:
        if self._tried_at is not None:
            rest = _READ_AT_MOST_EVERY_S - (self._clock() - self._tried_at)
            await asyncio.sleep(max(0.0, rest))
        await self._learn()

    def find(self, text: str) -> Token | None:
        """Return the token of this text, valid or not; None if there is none."""
        form = _FORM.fullmatch(text)
        token = self._tokens.get(form[1]) if form else None
        # The comparison takes the same time for an unknown id.
        digest = hash_secret(form[2]) if form else hash_secret(text)
        is_same = hmac.compare_digest(digest, token.token_hash if token else "0" * 64)
        return token if is_same else None

    def is_unknown(self, text: str) -> bool:
        """Return True if the text has the form of a token, and no token has its id."""
        form = _FORM.fullmatch(text)
        return form is not None and form[1] not in self._tokens

    def by_id(self, token_id: str) -> Token | None:
        """Return the token of this id, valid or not."""
        return self._tokens.get(token_id)
