"""Unpacks bodies that come compressed although that was not requested: piece by piece, up to a size limit."""

import zlib

_GZIP, _DEFLATE = b"\x1f\x8b", "deflate"
_WITH_HEADER, _RAW = zlib.MAX_WBITS | 32, -zlib.MAX_WBITS


class BadEncoding(ValueError):
    """A body is compressed in a way that is not supported."""


class Decompressor:
    """Undoes the compression of a body, recognised by its first bytes, not by its header.

    A proxy may unpack a body and keep the header, or compress one without a header.

    Args:
        encoding: The header ``Content-Encoding``.
        most: Most bytes of the unpacked body: a small body may unpack to any size.
    """

    def __init__(self, encoding: str, most: int) -> None:
        self._encoding = encoding.strip().lower()
        self._most = most
        self._unpacked = 0
        self._first = b""
        self._started = False
        self._engine: zlib._Decompress | None = None

    def take(self, piece: bytes) -> bytes:
        """Return the unpacked bytes of a piece.

        Raises:
            BadEncoding: it cannot be unpacked.
            OverflowError: the unpacked body is too large.
        """
        if not self._started:
            self._first += piece
            if len(self._first) < len(_GZIP):
                return b""
            piece, self._first, self._started = self._first, b"", True
            self._engine = self._chosen(piece)
        return self._counted(self._inflated(piece))

    def end(self) -> bytes:
        """Return the rest of a body that is too short to be recognised."""
        first, self._first = self._first, b""
        return self._counted(first)

    def _chosen(self, beginning: bytes) -> "zlib._Decompress | None":
        if beginning.startswith(_GZIP):
            return zlib.decompressobj(_WITH_HEADER)
        if beginning.lstrip(b"\xef\xbb\xbf \t\r\n")[:1] in (b"{", b"[", b"<", b":", b"d", b"e", b""):
            return None
        if self._encoding == _DEFLATE:
            # With zlib's header as the standard demands, or without it as some servers send it.
            zlibs = beginning[0] & 0x0F == 8 and int.from_bytes(beginning[:2], "big") % 31 == 0
            return zlib.decompressobj(_WITH_HEADER if zlibs else _RAW)
        if self._encoding in ("", "identity", "gzip", "x-gzip"):
            return None
        raise BadEncoding(self._encoding)

    def _inflated(self, piece: bytes) -> bytes:
        if self._engine is None:
            return piece
        found = []
        try:
            while piece:
                found.append(self._engine.decompress(piece, self._most - self._unpacked + 1))
                if self._engine.unconsumed_tail:
                    raise OverflowError
                piece = self._engine.unused_data if self._engine.eof else b""
                if piece:
                    self._engine = zlib.decompressobj(_WITH_HEADER)  # a body may be packed in parts
        except zlib.error as wrong:
            raise BadEncoding(self._encoding or "gzip") from wrong
        return b"".join(found)

    def _counted(self, piece: bytes) -> bytes:
        self._unpacked += len(piece)
        if self._unpacked > self._most:
            raise OverflowError
        return piece
