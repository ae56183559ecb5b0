"""Requests `/healthz` of a server repeatedly, without waiting for the answer.

Used by the supervisor, which must not block: a hanging server accepts connections and does not
answer.
"""

from __future__ import annotations

import socket

_EVERY_S = 2.0
# After that a new connection may work better.
_PATIENCE_S = 5.0
_REQUEST = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"


class HealthProbe:
    """Sends one request after the other to a server of this machine.

    Args:
        address: where the server listens, as `socket.getsockname` gives it.
    """

    def __init__(self, address: tuple[str, int]) -> None:
        self._address = address
        self._socket: socket.socket | None = None
        self._is_sent = False
        self._began_at = 0.0
        self._next_at = 0.0

    @property
    def is_asking(self) -> bool:
        """Whether a request is pending."""
        return self._socket is not None

    def is_answered(self, now: float) -> bool:
        """Continue the request; return True if the server has answered since the last call."""
        if self._socket is None:
            if now >= self._next_at:
                self._begin(now)
            return False
        try:
            if not self._is_sent:
                self._is_sent = self._socket.send(_REQUEST) == len(_REQUEST)
            answer = self._socket.recv(64)
        except BlockingIOError:
            if now - self._began_at > _PATIENCE_S:
                self.close()
            return False
        except OSError:
            self.close()
            return False
        self.close()
        return answer.startswith(b"HTTP/1.1 200 ")

    def close(self) -> None:
        """Drop the pending request."""
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def _begin(self, now: float) -> None:
        self._began_at, self._next_at, self._is_sent = now, now + _EVERY_S, False
        family = socket.AF_INET6 if ":" in self._address[0] else socket.AF_INET
        try:
            self._socket = socket.socket(family, socket.SOCK_STREAM)
            self._socket.setblocking(False)
            self._socket.connect_ex(self._address)
        except OSError:
            # No descriptor is free, or no memory.
            self.close()
