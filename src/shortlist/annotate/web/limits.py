"""How much and how fast: the sizes of bodies, the rates of failed sign-ins and of submissions."""

import ipaddress
from dataclasses import dataclass


@dataclass(frozen=True)
class Limits:
    """What a server allows. People answer about once a second at best; programs may be faster.

    A stranger may send `anonymous_bytes`, no more. A body must come within `body_seconds`, plus a second for every
    `body_bytes_per_second` that have come.
    """

    anonymous_bytes: int = 64 * 1024
    body_bytes: int = 1024 * 1024
    upload_bytes: int = 64 * 1024 * 1024
    body_seconds: float = 15
    body_bytes_per_second: float = 32 * 1024
    failed_sign_ins_per_minute: float = 10
    submits_per_second: float = 50


def is_address(host: str) -> bool:
    """Whether `host` is an IP address, not a name."""
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True
