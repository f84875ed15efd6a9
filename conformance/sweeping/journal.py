"""The journal: a folder with one record a finished chunk, from which a campaign is taken up again."""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import TracebackType

import msgspec

from mlx_assay.conformance.sweeping.chunk import Chunk
from mlx_assay.conformance.sweeping.identity import Identity
from mlx_assay.conformance.sweeping.sweep import Sweep

SCHEMA = "urn:mlx-assay:sweep-journal:1"
HEAD, LOCK = "campaign.json", "lock"
LARGEST = 1 << 20
"""Bytes of a record; the places that a chunk tells are bounded."""


class JournalError(RuntimeError):
    """A folder that cannot serve; the message says why, and what to do."""


class Contradiction(JournalError):
    """A chunk that came to something else than the record that there is of it."""


class Head(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Of which campaign the records are."""

    schema: str
    identity: Identity


class Entry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One record: a chunk as it is written, and SHA-256 over these bytes."""

    sha256: str
    chunk: msgspec.Raw


class Journal:
    """The records of one campaign, held by one process at a time.

    A record is written aside, brought to the disk, and named in one step: it is there as a whole or not at all. One
    that is damaged counts for nothing; its chunk runs again.
    """

    def __init__(self, folder: Path, identity: Identity, *, resume: bool) -> None:
        """Makes the folder, or takes up what it holds. JournalError: it is another campaign's, in use, or not asked."""
        self.folder = folder
        self.identity = identity
        self.damaged: list[str] = []
        try:
            folder.mkdir(parents=True, exist_ok=True)
            self._lock = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        except OSError as error:
            raise JournalError(f"Expected a folder for the journal but {folder} cannot be used: {error}") from None
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            self._open(resume)
        except BlockingIOError:
            os.close(self._lock)
            raise JournalError(
                f"Journal {folder} is in use by another campaign: wait, or name another folder"
            ) from None
        except BaseException:
            os.close(self._lock)
            raise

    def __enter__(self) -> Journal:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        os.close(self._lock)

    def kept(self, sweep: Sweep) -> Iterator[Chunk]:
        """The chunks of a sweep that have a sound record, by number."""
        for path in sorted(_place(self.folder, sweep).glob("*.json")):
            found = self._read(path, sweep)
            if found is None:
                self.damaged.append(str(path))
            else:
                yield found

    def keep(self, sweep: Sweep, chunk: Chunk) -> bool:
        """Writes a record; False where there is a sound one of the same result. Contradiction: of another one."""
        fault = self._foreign(chunk, sweep)
        if fault:
            raise JournalError(fault)
        path = self._path(sweep, chunk.index)
        before = self._read(path, sweep) if path.exists() else None
        if before is not None:
            if _result(before) != _result(chunk):
                raise Contradiction(f"Chunk {chunk.index} of {sweep.id} came to something else than its record {path}")
            return False
        path.parent.mkdir(exist_ok=True)
        raw = msgspec.json.encode(chunk)
        _write(path, msgspec.json.encode(Entry(hashlib.sha256(raw).hexdigest(), msgspec.Raw(raw))))
        return True

    def _open(self, resume: bool) -> None:
        head = self.folder / HEAD
        others = [path.name for path in self.folder.iterdir() if path.name not in (HEAD, LOCK)]
        if not head.exists():
            if others:
                raise JournalError(f"Expected an empty folder or a journal but {self.folder} holds {others[0]!r}")
            _write(head, msgspec.json.format(msgspec.json.encode(Head(schema=SCHEMA, identity=self.identity))))
            return
        if not resume:
            raise JournalError(
                f"Journal {self.folder} holds a campaign: add --resume to go on with it, or name another folder"
            )
        found = _head(head)
        if apart := found.identity.apart(self.identity):
            told = "; ".join(_changed(name, found.identity, self.identity) for name in apart)
            raise JournalError(f"Journal {self.folder} is that of another campaign: {told}; name another folder")

    def _path(self, sweep: Sweep, index: int) -> Path:
        return _place(self.folder, sweep) / f"{index:08d}.json"

    def _read(self, path: Path, sweep: Sweep) -> Chunk | None:
        """A record that is what it should be; None for any other."""
        try:
            if path.is_symlink() or not path.is_file() or path.stat().st_size > LARGEST:
                return None
            entry = msgspec.json.decode(path.read_bytes(), type=Entry)
            raw = bytes(entry.chunk)
            if hashlib.sha256(raw).hexdigest() != entry.sha256:
                return None
            chunk = msgspec.json.decode(raw, type=Chunk)
        except (OSError, msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return None
        named = path == self._path(sweep, chunk.index)
        return chunk if named and not self._foreign(chunk, sweep) else None

    def _foreign(self, chunk: Chunk, sweep: Sweep) -> str:
        """Why a chunk is none of this campaign's; empty where it is one."""
        if chunk.identity != self.identity.digest:
            return (
                f"Expected chunk {chunk.index} of {sweep.id} from a worker with this suite, these versions and this "
                "implementation but it has others: install the same there"
            )
        try:
            span = sweep.span(chunk.index)
        except IndexError as error:
            return str(error)
        shape = (chunk.sweep, chunk.first, chunk.blocks, chunk.inputs)
        if shape != (sweep.id, span.start, len(span), len(span) * sweep.size) or chunk.judged > chunk.inputs:
            return f"Expected chunk {chunk.index} of {sweep.id} but got one of another range"
        return ""


def _changed(name: str, before: Identity, now: Identity) -> str:
    was, is_ = (str(getattr(one, name))[:200] for one in (before, now))
    return f"{name} was {was} and is {is_}"


def _result(chunk: Chunk) -> Sequence[object]:
    return chunk.digest, chunk.verdict, chunk.judged, chunk.differing, chunk.doubtful, chunk.places


def _head(path: Path) -> Head:
    try:
        found = msgspec.json.decode(path.read_bytes()[:LARGEST], type=Head)
    except (OSError, msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise JournalError(f"Expected a journal's head in {path} but got: {error}; name another folder") from None
    if found.schema != SCHEMA:
        raise JournalError(f"Expected the schema {SCHEMA} in {path} but got {found.schema[:100]!r}")
    return found


def _place(folder: Path, sweep: Sweep) -> Path:
    """A folder a sweep: its id as far as a file system takes it, and a digest of the whole."""
    readable = re.sub(r"[^a-z0-9_]+", "-", sweep.id.lower())[:60]
    return folder / f"{readable}-{hashlib.sha256(sweep.id.encode()).hexdigest()[:12]}"


def _write(path: Path, data: bytes) -> None:
    """The whole file or none, also where power fails."""
    unfinished = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with open(unfinished, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(unfinished, path)
    except OSError as error:
        unfinished.unlink(missing_ok=True)
        raise JournalError(f"Record {path} cannot be written: {error}") from None
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
