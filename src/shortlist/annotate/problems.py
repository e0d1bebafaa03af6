"""Why a request can be refused. The API turns each into its status and {"code", "message"}."""

from shortlist.errors import InputError


class Problem(InputError):  # noqa: N818 - a refusal, not a fault of ours
    """A refusal with a code for programs and a message for people (on the command line, the message alone)."""

    status = 400

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


class NotFound(Problem):
    """There is no such thing, or it is not yours."""

    status = 404


class Conflict(Problem):
    """Too late: answered differently, or taken by somebody else."""

    status = 409


class Unauthorized(Problem):
    """Nobody is signed in."""

    status = 401


class Forbidden(Problem):
    """Signed in, but not allowed to."""

    status = 403


class Invalid(Problem):
    """Well formed but impossible, such as a class that was not shown."""

    status = 422


class TooMany(Problem):
    """Faster than the limit."""

    status = 429


class TooSlow(Problem):
    """The rest of the request did not come."""

    status = 408


class TooLarge(Problem):
    """More than is read."""

    status = 413


class Fault(Problem):
    """Our own mistake."""

    status = 500


class Unavailable(Problem):
    """Nobody's mistake: the disk is full, the database away."""

    status = 503
