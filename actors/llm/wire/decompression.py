"""Decompresses bodies that come compressed although that was not requested: piece by piece, up to a size limit."""

import zlib

_GZIP, _DEFLATE = b"\x1f\x8b", "deflate"
"""The first bytes of a gzip body; the name of the other encoding that is supported."""

_WITH_HEADER, _RAW = zlib.MAX_WBITS | 32, -zlib.MAX_WBITS
"""What ``zlib.decompressobj`` takes for a body with gzip's or zlib's header, and for one without."""


class BadEncoding(ValueError):
    """A body is compressed in a way that is not supported."""


class Decompressor:
    """Undoes the compression of a body, recognised by its first bytes, not by its header.

    A proxy may decompress a body and keep the header, or compress one without a header.

    Args:
        encoding: The header ``Content-Encoding``.
        most: Most bytes of the decompressed body: a small body may decompress to any size.
    """

    def __init__(self, encoding: str, most: int) -> None:
        self._encoding = encoding.strip().lower()
        self._most = most
        self._size = 0
        self._beginning = b""
        self._started = False
        self._engine: zlib._Decompress | None = None

    def take(self, piece: bytes) -> bytes:
        """Return the decompressed bytes of a piece.

        Raises:
            BadEncoding: it cannot be decompressed.
            OverflowError: the decompressed body is too large.
        """
        if not self._started:
            self._beginning += piece
            if len(self._beginning) < len(_GZIP):
                return b""
            piece, self._beginning, self._started = self._beginning, b"", True
            self._engine = self._engine_for(piece)
        return self._counted(self._decompressed(piece))

    def end(self) -> bytes:
        """Return the rest of a body that is too short to be recognised."""
        first, self._beginning = self._beginning, b""
        return self._counted(first)

    def _engine_for(self, beginning: bytes) -> "zlib._Decompress | None":
        if beginning.startswith(_GZIP):
            return zlib.decompressobj(_WITH_HEADER)
        # The body is plain if it begins as JSON, as HTML, or as an event stream (":", "data", "event") does.
        if beginning.lstrip(b"\xef\xbb\xbf \t\r\n")[:1] in (b"{", b"[", b"<", b":", b"d", b"e", b""):
            return None
        if self._encoding == _DEFLATE:
            # With zlib's header as the standard demands, or without it as some servers send it.
            has_header = beginning[0] & 0x0F == 8 and int.from_bytes(beginning[:2], "big") % 31 == 0
            return zlib.decompressobj(_WITH_HEADER if has_header else _RAW)
        if self._encoding in ("", "identity", "gzip", "x-gzip"):
            return None
        raise BadEncoding(self._encoding)

    def _decompressed(self, piece: bytes) -> bytes:
        if self._engine is None:
            return piece
        found = []
        try:
            while piece:
                found.append(self._engine.decompress(piece, self._most - self._size + 1))
                if self._engine.unconsumed_tail:
                    raise OverflowError
                piece = self._engine.unused_data if self._engine.eof else b""
                if piece:
                    self._engine = zlib.decompressobj(_WITH_HEADER)  # a body may be compressed in several parts
        except zlib.error as wrong:
            raise BadEncoding(self._encoding or "gzip") from wrong
        return b"".join(found)

    def _counted(self, piece: bytes) -> bytes:
        self._size += len(piece)
        if self._size > self._most:
            raise OverflowError
        return piece
