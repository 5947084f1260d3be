"""Whether a kind of sandbox works here, found by opening one."""

import asyncio
import threading

from ..port import Room, SandboxError, SandboxKind

_SECONDS = 60.0


def why_it_fails(kind: SandboxKind, image: str = "") -> str:
    """The reason in a line; empty if a command runs in it. Also within a running event loop."""
    reasons = list[str]()

    def try_it() -> None:
        try:
            reasons.append(asyncio.run(asyncio.wait_for(_problem(kind, image), _SECONDS)))
        except (SandboxError, OSError) as error:
            reasons.append(str(error).rstrip("."))
        except TimeoutError:
            reasons.append(f"it did not start within {_SECONDS:.0f} s")

    thread = threading.Thread(target=try_it)
    thread.start()
    thread.join()
    return reasons[0] if reasons else "it could not be tried"


async def _problem(kind: SandboxKind, image: str) -> str:
    sandbox = await kind.open(Room(image=image))
    try:
        ran = await sandbox.run("true", timeout=_SECONDS)
        return "" if ran.exit == 0 else f"the command true ended with {ran.exit}"
    finally:
        await sandbox.close()
