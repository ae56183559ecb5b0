"""Seals short texts so that only this server reads them, and each only for its purpose.

Used for ids and cursors that clients send back as they came. Equal texts are sealed equally, so
answers that hold them can be shared.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import json
from functools import cached_property
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from livemart.serve.auth.signing_key import SigningKey

_TAG_BYTES = 16


class Seal:
    """Seals with a key that is derived from the signing key. Safe to use from several threads.

    A tag of the plain bytes and the purpose is both the proof and the start of the key stream
    (a synthetic initialization vector, as in RFC 5297). So two texts are sealed with one stream
    only if they are the same.
    """

    def __init__(self, key: SigningKey) -> None:
        self._key = key

    def __getstate__(self) -> dict[str, Any]:
        """Return the key by which a side process seals: not the one that signs sessions."""
        return {"_keys": self._keys}

    @cached_property
    def _keys(self) -> tuple[bytes, bytes]:
        whole = hashlib.blake2b(self._key.text.encode(), person=b"livemart.seal").digest()
        return whole[:32], whole[32:]

    def close(self, plain: bytes, *purpose: object) -> str:
        """Return a text of letters, digits, `-` and `_` that is as long for all plain as long.

        Args:
            plain: what is sealed.
            purpose: JSON values; with others the text cannot be opened.
        """
        tag = self._tag(plain, purpose)
        whole = tag + self._mix(plain, tag)
        return base64.urlsafe_b64encode(whole).rstrip(b"=").decode()

    def open(self, text: str, *purpose: object) -> bytes | None:
        """Return the content that was sealed for this purpose; None if this text was not."""
        try:
            whole = base64.b64decode(text + "=" * (-len(text) % 4), b"-_", validate=True)
        except (binascii.Error, ValueError):
            return None
        tag, mixed = whole[:_TAG_BYTES], whole[_TAG_BYTES:]
        plain = self._mix(mixed, tag)
        is_ours = hmac.compare_digest(self._tag(plain, purpose), tag)
        # The last letter has bits to spare: one text for each, no other.
        return plain if is_ours and self.close(plain, *purpose) == text else None

    def _tag(self, plain: bytes, purpose: tuple[object, ...]) -> bytes:
        of_purpose = hashlib.sha256(json.dumps(purpose).encode()).digest()
        keyed = hashlib.blake2b(of_purpose + plain, key=self._keys[0], digest_size=_TAG_BYTES)
        return keyed.digest()

    def _mix(self, text: bytes, tag: bytes) -> bytes:
        stream = hashlib.shake_256(self._keys[1] + tag).digest(len(text))
        return bytes(one ^ other for one, other in zip(text, stream, strict=True))
