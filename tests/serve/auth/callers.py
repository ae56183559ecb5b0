"""Callers: tenants, admins, and all that are refused."""

from __future__ import annotations

from datetime import timedelta

from livemart.serve.auth.signing_key import SessionSigner
from tests.serve.apps import Site, bearer

# No caller learns what is wrong with a token, or with a cookie's session.
WRONG = ("malformed", "unknown", "expired", "revoked")
WRONG_COOKIES = (
    "cookie malformed",
    "cookie forged",
    "cookie expired",
    "cookie revoked",
    "cookie over",
)
REFUSED = ("none", *WRONG, *WRONG_COOKIES)
CALLERS = ("own", "several", "admin", "cookie", *REFUSED)


def headers_of(one: Site, caller: str) -> dict[str, str]:
    """Return the headers of a caller; the token's restaurant is r1, of `several` r1 and r4."""
    match caller:
        case "none":
            return {}
        case "malformed":
            return bearer("lm_nonsense")
        case "unknown":
            return bearer("lm_0123456789ab_" + "A" * 43)
        case "expired":
            return bearer(one.make_token("r1", lasts=timedelta(seconds=-1)))
        case "revoked":
            text, made = one.tokens.create("gone", tenants=["r1"])
            one.tokens.revoke(made.token_id)
            one.learn_tokens()
            return bearer(text)
        case "cookie":
            return session(one)
        case "cookie malformed":
            return {"Cookie": "livemart_session=nonsense"}
        case "cookie forged":
            return session(one, key="of another store")
        case "cookie over":
            return session(one, back=timedelta(hours=12))
        case "cookie expired" | "cookie revoked":
            lasts = timedelta(seconds=-1) if caller == "cookie expired" else None
            _, made = one.tokens.create("gone", tenants=["r1"], lasts=lasts)
            if lasts is None:
                one.tokens.revoke(made.token_id)
            one.learn_tokens()
            return session(one, token_id=made.token_id)
        case "admin":
            return one.bearer()
        case "ingest":
            text, _ = one.tokens.create("till", sources=["orders"])
            one.learn_tokens()
            return bearer(text)
        case "several":
            return one.bearer("r1", "r4")
    return one.bearer("r1")


def session(
    one: Site, *, token_id: str = "", key: str = "", back: timedelta = timedelta()
) -> dict[str, str]:
    """Return a session's cookie as the server signs it, of r1 unless of another token."""
    if not token_id:
        known = [token.token_id for token in one.tokens.tokens() if token.name == "owner"]
        token_id = known[0] if known else one.tokens.create("owner", tenants=["r1"])[1].token_id
        one.learn_tokens()

    class Signer(SessionSigner):
        def get_timestamp(self) -> int:
            return super().get_timestamp() - int(back.total_seconds())

    signer = Signer(key or one.session_key)
    began = signer.get_timestamp()
    return {"Cookie": f"livemart_session={signer.sign(f'{token_id}.a.{began}').decode()}"}
