"""From bytes to text: UTF-8, UTF-16 and UTF-32 by their marks, UTF-16 without one, others as charset-normalizer finds them."""

import codecs
import unicodedata

import charset_normalizer

from dpviz.common.validate import InvalidInput, show
from dpviz.datasets.table.cell_text import ASK_TEXT

#: encodings that can be chosen, in words
ENCODINGS: dict[str, str] = {
    "utf-8": "UTF-8",
    "utf-16": "UTF-16 (Excel's Unicode text)",
    "cp1252": "Western European (Windows-1252, Latin-1)",
    "cp1250": "Central European (Windows-1250)",
    "cp1251": "Cyrillic (Windows-1251)",
    "cp1253": "Greek (Windows-1253)",
    "cp1254": "Turkish (Windows-1254)",
    "koi8_r": "Cyrillic (KOI8-R)",
    "shift_jis": "Japanese (Shift JIS)",
    "gb18030": "Chinese (GB 18030)",
    "euc_kr": "Korean (EUC-KR)",
}
_MARKS = (
    (codecs.BOM_UTF32_LE, "utf-32", "UTF-32"),  # before UTF-16, whose mark is its beginning
    (codecs.BOM_UTF32_BE, "utf-32", "UTF-32"),
    (codecs.BOM_UTF16_LE, "utf-16", "UTF-16"),
    (codecs.BOM_UTF16_BE, "utf-16", "UTF-16"),
)
SAY_ENCODING: str = (
    'Say its encoding: --encoding utf-16 on the command line, encoding = "utf-16" in the TOML file beside the table, or “The '
    f"text is in” on the page Data. {ASK_TEXT}"
)
_UNMARKED = ("utf-16-le", "utf-16-be")
_SAMPLE = 50_000  # bytes of lines that are not ASCII, enough to tell encodings apart


def decode(content: bytes, encoding: str | None, notes: list[str]) -> tuple[str, str | None]:
    """(the text of a file with line breaks as "\\n", its encoding as one of `ENCODINGS`, None where it is another one).

    Args:
        content: the bytes.
        encoding: one of `ENCODINGS`; None finds it.
        notes: what was found is added where it is not UTF-8.

    Raises:
        InvalidInput: the bytes are not text in that encoding, or in any that was found.
    """
    if encoding is None:
        text, encoding = _found(content, notes)
    else:
        if encoding not in ENCODINGS:
            raise InvalidInput("encoding", f"unknown value {show(encoding)}", f"Choose one of: {', '.join(ENCODINGS)}.")
        codec = "utf-8-sig" if encoding == "utf-8" else _utf16(content) if encoding == "utf-16" else encoding
        try:
            text = content.decode(codec)
        except UnicodeDecodeError as error:
            line = content.count(b"\n", 0, error.start) + 1
            cause = f"is not {ENCODINGS[encoding]}: byte 0x{content[error.start]:02x} on line {line:,}"
            raise InvalidInput("file", cause, f"Choose another encoding. {ASK_TEXT}") from error
    return text.replace("\r\n", "\n").replace("\r", "\n"), encoding


def _found(content: bytes, notes: list[str]) -> tuple[str, str | None]:
    for mark, encoding, name in _MARKS:
        if content.startswith(mark):
            try:
                text = content.decode(encoding)
            except UnicodeDecodeError as error:
                raise InvalidInput("file", f"begins as {name} but is not ({error.reason})", ASK_TEXT) from error
            notes.append(f"The file is in {name}.")
            return text, encoding if encoding in ENCODINGS else None
    if b"\x00" in content:
        codec = _utf16(content)
        if codec in _UNMARKED:
            notes.append("The file has no byte-order mark and was read as UTF-16, the only encoding in which it is text.")
            return content.decode(codec), "utf-16"
        cause = f"holds a zero byte at position {content.index(0):,}, so it is not text in an encoding that was recognised"
        raise InvalidInput("file", cause, SAY_ENCODING)
    try:
        return content.decode("utf-8-sig"), "utf-8"
    except UnicodeDecodeError as error:
        return _guessed(content, error, notes)


def _utf16(content: bytes) -> str:
    """The codec of UTF-16: by the mark, else by the only byte order in which it is text; "utf-16" where neither tells."""
    if not content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        readable = [codec for codec in _UNMARKED if _is_text(content, codec)]
        if len(readable) == 1:
            return readable[0]
    return "utf-16"


def _is_text(content: bytes, codec: str) -> bool:
    """True where bytes are lines of text in a codec: no control characters, and no code points without a character.

    A line feed read in the wrong byte order is U+0A00, which is no character.
    """
    try:
        text = content.decode(codec)
    except UnicodeDecodeError:
        return False
    odd = {char for char in set(text) - set("\t\n\r\f") if unicodedata.category(char) in ("Cc", "Cn", "Co")}
    return not odd and ("\n" in text or "\r" in text)


def _guessed(content: bytes, error: UnicodeDecodeError, notes: list[str]) -> tuple[str, str]:
    """(text, encoding) in the most likely encoding. A file that is UTF-8 but for a few bytes is damaged, and is refused."""
    line = content.count(b"\n", 0, error.start) + 1
    refused = InvalidInput("file", f"is not UTF-8: byte 0x{content[error.start]:02x} on line {line:,}", ASK_TEXT)
    good = sum(not char.isascii() for char in content.decode("utf-8", errors="ignore"))
    if good > content.decode("utf-8", errors="replace").count("\ufffd"):
        raise refused from error
    odd = b"\n".join(row for row in content.split(b"\n") if not row.isascii())[:_SAMPLE]
    matches = charset_normalizer.from_bytes(odd, cp_isolation=list(ENCODINGS)[2:], enable_fallback=False)
    best = matches.best()
    if best is None:
        raise refused from error
    # short samples fit several encodings equally well, and most files that are not UTF-8 are Western European
    alike = {name for match in matches if match.chaos <= best.chaos for name in match.could_be_from_charset}
    chosen = "cp1252" if "cp1252" in alike else best.encoding
    try:
        text = content.decode(chosen)
    except UnicodeDecodeError:
        raise refused from error
    if any(unicodedata.category(char) == "Cc" and char not in "\t\n\r\f" for char in set(text)):
        raise refused from error
    first = next(row for row in text.split("\n") if not row.isascii())
    word = next(part for part in first.split() if not part.isascii())
    notes.append(
        f"The file is not UTF-8; it was read as {ENCODINGS[chosen]}, the likeliest encoding of its bytes. "
        f"Check {show(word[:40])} on line {line:,}, and choose another encoding if it is wrong."
    )
    return text, chosen
