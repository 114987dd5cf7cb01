"""`Words`: the type of text that is shown to people and never decides a number.

Labels, help texts, citations, notes, causes and fixes are declared as `Words`. The engine's fingerprint leaves such texts
out, so that a reworded sentence keeps stored results. Ids, names of options and of columns, kinds and file formats are
`str`: they decide what is computed.
"""

from __future__ import annotations

from typing import TypeAlias

Words: TypeAlias = str
