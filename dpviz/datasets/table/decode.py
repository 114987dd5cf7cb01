"""From bytes to text: UTF-8, UTF-16 and UTF-32 by their marks, others as charset-normalizer finds them."""

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
SAY_ENCODING: str = f"Say its encoding, for example utf-16. {ASK_TEXT}"
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
    elif encoding not in ENCODINGS:
        raise InvalidInput("encoding", f"unknown value {show(encoding)}", f"Choose one of: {', '.join(ENCODINGS)}.")
    else:
        try:
            text = content.decode("utf-8-sig" if encoding == "utf-8" else encoding)
        except UnicodeDecodeError as error:
            raise _not_in(ENCODINGS[encoding], content, error, f"Choose another encoding. {ASK_TEXT}") from error
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
        cause = f"holds a zero byte at position {content.index(0):,}, so it is not text in an encoding that was recognised"
        raise InvalidInput("file", cause, SAY_ENCODING)
    try:
        return content.decode("utf-8-sig"), "utf-8"
    except UnicodeDecodeError as error:
        return _guessed(content, error, notes)


def _not_in(name: str, content: bytes, error: UnicodeDecodeError, fix: str) -> InvalidInput:
    line = content.count(b"\n", 0, error.start) + 1
    return InvalidInput("file", f"is not {name}: byte 0x{content[error.start]:02x} on line {line:,}", fix)


def _guessed(content: bytes, error: UnicodeDecodeError, notes: list[str]) -> tuple[str, str]:
    """(text, encoding) in the most likely encoding. A file that is UTF-8 but for a few bytes is damaged, and is refused."""
    refused = _not_in("UTF-8", content, error, ASK_TEXT)
    good = sum(not char.isascii() for char in content.decode("utf-8", errors="ignore"))
    if good > content.decode("utf-8", errors="replace").count("\ufffd"):
        raise refused from error
    odd = b"\n".join(row for row in content.split(b"\n") if not row.isascii())[:_SAMPLE]
    matches = charset_normalizer.from_bytes(odd, cp_isolation=list(ENCODINGS)[2:])
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
    word, line = next(part for part in text.split() if not part.isascii()), content.count(b"\n", 0, error.start) + 1
    notes.append(
        f"The file is not UTF-8; it was read as {ENCODINGS[chosen]}, the likeliest encoding of its bytes. "
        f"Check {show(word[:40])} on line {line:,}, and choose another encoding if it is wrong."
    )
    return text, chosen
