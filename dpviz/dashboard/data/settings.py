"""The field of the page Data in the address."""

from __future__ import annotations

from dpviz.dashboard.shell.fields import Field
from dpviz.mechanisms.knobs import Switch

FIRST: Field[bool] = Field("upload", Switch(label="Your own table first", help="Above the chosen dataset."), False)
