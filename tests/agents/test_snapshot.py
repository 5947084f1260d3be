"""What is kept of a workspace, whatever an agent put there."""

import asyncio
import base64
import json
import random
import tarfile
import zlib
from collections.abc import Sequence
from dataclasses import replace

import pytest

from pytest_upskill.agents import snapshot
from pytest_upskill.agents.sandboxes.sandbox import (
    HOME,
    WORKSPACE,
    SandboxSpec,
    TreeEntry,
)
from pytest_upskill.agents.snapshot import (
    Link,
    Snapshot,
    WorkspaceChanges,
    collect_changes,
    fill,
    pack,
    take_snapshot,
    tree_of,
    unpack,
)
from pytest_upskill.skills.case import WorkspaceFile
from pytest_upskill.trials.answer import MAX_FILE_BYTES, AnswerFile
from support.agents import MemorySandbox
from support.sandboxes import needs_bwrap, opened

PNG = b"\x89PNG\r\n\x1a\n\0\0"


def left(sandbox: MemorySandbox, before: Sequence[TreeEntry] = ()) -> WorkspaceChanges:
    return asyncio.run(collect_changes(sandbox, before))


def made(**files: bytes) -> dict[str, AnswerFile]:
    sandbox = MemorySandbox(
        {name.replace("_", "."): data for name, data in files.items()}
    )
    return {file.path: file for file in left(sandbox).files}


def test_small_images_are_kept_whole_and_other_binaries_by_digest() -> None:
    files = made(
        a_png=PNG, b_bin=PNG, c_svg=b"<svg/>", d_jpeg=PNG * 30_000, e_txt=b"text"
    )
    whole = base64.b64encode(PNG).decode()
    assert [(file.text, file.data, file.size) for file in files.values()] == [
        (None, whole, 10),
        (None, "", 10),
        ("<svg/>", "", 6),
        (None, "", 300_000),
        ("text", "", 4),
    ]


def test_large_texts_are_kept_by_digest() -> None:
    (file,) = made(a_txt=b"x" * (MAX_FILE_BYTES + 1)).values()
    assert (file.text, file.size) == (None, MAX_FILE_BYTES + 1)


def test_new_files_do_not_hide_that_others_changed() -> None:
    sandbox = MemorySandbox({"y.txt": b"old", "z.txt": b"old"})
    before = asyncio.run(sandbox.tree())
    flood = {f"{number:03}.txt": b"" for number in range(300)}
    after = MemorySandbox({"z.txt": b"new", **flood})
    changes = {file.path: file.change for file in left(after, before).files}
    assert (changes["y.txt"], changes["z.txt"], len(changes)) == (
        "deleted",
        "changed",
        200,
    )


def test_large_files_of_the_start_are_not_packed_again() -> None:
    files = {"a.bin": random.Random(1).randbytes(2**21), "b.txt": b"b", "c.txt": b"c"}
    start = [WorkspaceFile(path, data) for path, data in files.items()]
    before = asyncio.run(MemorySandbox(files).tree())
    after = MemorySandbox({"a.bin": files["a.bin"], "b.txt": b"new", "d.txt": b"d"})
    changes = asyncio.run(collect_changes(after, before, files))
    assert len(changes.workspace) < 1000
    whole = {file.path: file.data for file in unpack(changes.workspace, start).files}
    assert whole == {"a.bin": files["a.bin"], "b.txt": b"new", "d.txt": b"d"}


@needs_bwrap
def test_places_are_kept_with_the_workspace() -> None:
    spec = SandboxSpec(workdir="/app", places=("/data", "/app/out"))
    files = [
        WorkspaceFile(path, b"1")
        for path in ("a", "/data/b", "/tmp/c", f"{HOME}/.bashrc")
    ]

    async def main() -> tuple[WorkspaceChanges, bytes]:
        async with opened(spec) as box:
            await fill(box, Snapshot(tuple(files), (Link("/data/link", "b"),)))
            before = await tree_of(box)
            ran = await box.run(
                "echo 2 > /data/d; rm a; find /tmp ~ /app /data -type f", timeout=60
            )
            return await collect_changes(box, before), ran.output

    changes, listed = asyncio.run(main())
    assert {(file.path, file.change) for file in changes.files} == {
        ("a", "deleted"),
        ("/data/d", "made"),
    }
    kept = unpack(changes.workspace)
    assert [file.path for file in kept.files] == ["/data/b", "/data/d"]
    assert (kept.links, kept.folders) == ((Link("/data/link", "b"),), ("out",))
    assert {*listed.split()} == {b"/data/b", b"/data/d"}


def test_what_is_beyond_the_limits_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(snapshot, "MOST_TEXT", 25)
    names = [
        *(f"{number:03}.txt" for number in range(199)),
        ".git/a",
        "node_modules/b",
        "z.txt",
    ]
    found = left(MemorySandbox(dict.fromkeys(names, b"0123456789")))
    assert len(found.files) == 200
    # What tools leave goes first.
    assert "z.txt" in {file.path for file in found.files}
    assert sum(file.text is not None for file in found.files) == 2
    assert found.findings == (
        "2 changed files not kept (limit 200)",
        "the text of 198 files not kept (limit 25 bytes in all)",
    )


def test_a_workspace_that_is_too_large_is_told_and_its_files_are_still_listed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(snapshot, "MOST_BYTES", 100)
    found = left(MemorySandbox({"a.txt": b"x" * 60, "b.txt": b"x" * 60}))
    assert found.workspace == b""
    assert found.findings == (
        "the workspace is too large for checks by a command: 120 bytes (limit 100)",
    )
    assert [file.text for file in found.files] == ["x" * 60] * 2


def test_a_workspace_is_not_compressed_further_once_it_is_too_large(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(snapshot, "MOST_PACKED", 100_000)
    found = left(MemorySandbox({"a.bin": random.Random(1).randbytes(300_000)}))
    assert found.workspace == b""
    assert found.findings == (
        (
            "the workspace is too large for checks by a command: more than 100,000"
            " bytes compressed"
        ),
    )


class Lying(MemorySandbox):
    """A sandbox whose inside tells lies."""

    def __init__(self, *entries: TreeEntry) -> None:
        super().__init__({"a.txt": b"x" * 1000})
        self._entries = entries

    async def tree(self, path: str = WORKSPACE) -> list[TreeEntry]:  # noqa: ARG002
        return list(self._entries)


@pytest.mark.parametrize(
    "path",
    [
        "../a",
        "/etc/passwd",
        "a/../../b",
        "a//b",
        "./a",
        "a\udc80",
        "x" * 5000,
        "a\0b",
        "",
    ],
)
def test_paths_that_lead_out_or_are_no_text_are_not_kept(path: str) -> None:
    found = left(Lying(TreeEntry(path, 3, "0" * 64)))
    assert found.files == ()
    assert unpack(found.workspace) == Snapshot()
    assert found.findings == ("1 file not kept: their names can't be used",)


def test_names_can_not_act_on_a_terminal() -> None:
    (file,) = made(**{"a\x1b[2J\nb": b""}).values()
    assert file.path == "a\\x1b[2J\\nb"


def test_a_file_may_grow_vanish_or_be_a_link() -> None:
    sandbox = Lying(
        TreeEntry("a.txt", 1, "0" * 64),
        TreeEntry("gone.txt", 5, "1" * 64),
        TreeEntry("link", 11, "2" * 64, link="/etc/passwd"),
    )
    found = left(sandbox)
    assert [
        (file.path, file.size, file.text and len(file.text)) for file in found.files
    ] == [
        ("a.txt", 1000, 1000),
        ("gone.txt", 5, None),
        ("link", 11, None),
    ]
    assert unpack(found.workspace).links == (Link("link", "/etc/passwd"),)


WHOLE = Snapshot(
    (
        WorkspaceFile("a/run.sh", b"#!/bin/sh\n", 0o755),
        WorkspaceFile("key", b"secret", 0o600),
        WorkspaceFile("large", bytes(5 * 2**20), 0o400),  # more than one message
        WorkspaceFile("über.txt", b"\0\xff"),
    ),
    (Link("a/link", "../über.txt"), Link("odd $(name)", "no 'where'")),
    ("empty/folder",),
)


def test_a_workspace_is_packed_and_unpacked() -> None:
    assert unpack(pack(WHOLE)) == WHOLE
    assert unpack(b"") == Snapshot()


@needs_bwrap
def test_a_workspace_goes_through_a_sandbox() -> None:
    async def run() -> Snapshot:
        async with opened() as sandbox:
            await fill(sandbox, WHOLE)
            return await take_snapshot(sandbox, await sandbox.tree())

    assert asyncio.run(run()) == WHOLE


def packed(contents: object, data: bytes = b"") -> bytes:
    return zlib.compress(json.dumps(contents).encode() + b"\n" + data)


def listing(*files: tuple[str, object]) -> dict[str, object]:
    listed = [{"path": path, "size": size, "mode": 0o644} for path, size in files]
    return {"files": listed, "links": [], "folders": []}


def test_hostile_paths_give_nothing_outside() -> None:
    paths = ("../up.txt", "/abs.txt", "good.txt", "a/../../b")
    contents = listing(*((path, 1) for path in paths))
    contents["links"] = [{"path": "../link", "target": "/etc/passwd"}]
    contents["folders"] = ["/root", "a"]
    found = unpack(packed(contents, b"abcd"))
    sandbox = MemorySandbox()
    asyncio.run(fill(sandbox, replace(found, folders=())))
    assert sandbox.files == {f"{WORKSPACE}/good.txt": b"c"}
    assert (found.links, found.folders) == ((), ("/root", "a"))


def sparse_tar() -> bytes:
    """64 GB of one file, in 10 kB."""
    info = tarfile.TarInfo("hole.bin")
    info.type, info.size = tarfile.GNUTYPE_SPARSE, 0
    block = bytearray(info.tobuf(tarfile.GNU_FORMAT))
    block[386 : 386 + 24] = b"%011o\0%011o\0" % (0, 0)
    block[483:495] = b"%011o\0" % (2**33 - 1)
    block[148:156] = b" " * 8
    block[148:156] = b"%06o\0 " % sum(block[:512])
    return zlib.compress(bytes(block) + bytes(10_240))


NOT_WORKSPACES = {
    "nothing": b"x",
    "text": zlib.compress(b"no workspace"),
    "cut off": pack(WHOLE)[:-20],
    "two": pack(WHOLE) * 2,
    "sparse": sparse_tar(),
    "claims more": packed(listing(("a", 2**40))),
    "claims less": packed(listing(("a", 1)), b"ab"),
    "negative": packed(listing(("a", 2), ("b", -1)), b"a"),
    "not a number": packed(listing(("a", 1e9))),
    "nested": zlib.compress(b"[" * 100_000),
    "many values": zlib.compress(b"[],[]" * 2_000_000),
    "many files": packed(listing(*((str(number), 0) for number in range(20_001)))),
}


@pytest.mark.parametrize("data", NOT_WORKSPACES.values(), ids=list(NOT_WORKSPACES))
def test_what_is_no_workspace_is_an_error(data: bytes) -> None:
    with pytest.raises(ValueError, match="not a workspace"):
        unpack(data)


def test_an_archive_that_unpacks_to_too_much_is_an_error() -> None:
    bomb = zlib.compress(bytes(200_001))
    with pytest.raises(ValueError, match="more than 200,000 bytes"):
        unpack(bomb, most_bytes=100_000)
