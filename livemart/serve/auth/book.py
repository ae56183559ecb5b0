"""The tokens in memory, as requests are judged by them."""

from __future__ import annotations

import hmac
import re
import threading
import time
from collections.abc import Callable, Mapping

from livemart.serve.auth.tokens import Token, TokenStore, hash_secret

_FORM = re.compile(r"lm_([0-9a-f]{12})_([A-Za-z0-9_-]{43})")
# Longer without an answer of the store, and nobody is let in: a revoked token might be.
_TRUSTED_FOR_S = 60.0


class TokenBook:
    """The tokens of a store: a request is judged without asking the store.

    `refresh` brings it up to date; what another process changed holds from the next call on.

    Args:
        store: the tokens.
        clock: seconds that only ever rise. The wall clock may be set back, and then what was read
            long ago would be believed for as long as it takes to catch up.
    """

    def __init__(self, store: TokenStore, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._store = store
        self._clock = clock
        self._lock = threading.Lock()
        self._version = -1
        self._tokens: Mapping[str, Token] = {}
        self._read_at: float | None = None
        self._had_tokens = False
        self.session_key = ""

    @property
    def version(self) -> int:
        """The version of the tokens that are held; -1 before the first reading."""
        return self._version

    @property
    def is_empty(self) -> bool:
        """True if no token was ever made. Revoked ones count: who made one wants a door.

        A store that is lost together with its tokens does not open the door of this process.
        """
        return self._version >= 0 and not self._had_tokens

    @property
    def is_trusted(self) -> bool:
        """True if the store was asked lately enough to believe what is held."""
        return self._read_at is not None and self._clock() - self._read_at < _TRUSTED_FOR_S

    def refresh(self) -> None:
        """Read the tokens again if they changed.

        Raises:
            PublishError: STORE_UNREACHABLE.
        """
        with self._lock:
            # Of before the question: the answer may be long in coming.
            asked_at = self._clock()
            version = self._store.version()
            if version != self._version:
                self.session_key = self._store.session_key()
                self._tokens = {token.token_id: token for token in self._store.tokens()}
                self._version = version
                self._had_tokens = self._had_tokens or bool(self._tokens)
            self._read_at = asked_at

    def find(self, text: str) -> Token | None:
        """Return the token of this text, valid or not; None if there is none."""
        form = _FORM.fullmatch(text)
        token = self._tokens.get(form[1]) if form else None
        # The comparison takes the same time for an unknown id.
        given = hash_secret(form[2]) if form else hash_secret(text)
        is_same = hmac.compare_digest(given, token.token_hash if token else "0" * 64)
        return token if is_same else None

    def is_unknown(self, text: str) -> bool:
        """Return True if the text has the form of a token, and no token has its id."""
        form = _FORM.fullmatch(text)
        return form is not None and form[1] not in self._tokens

    def by_id(self, token_id: str) -> Token | None:
        """Return the token of this id, valid or not."""
        return self._tokens.get(token_id)
