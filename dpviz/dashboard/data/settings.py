"""The fields of the page Data in the address."""

from dpviz.dashboard.shell.fields import Field
from dpviz.mechanisms.knobs import Switch

FIRST: Field[bool] = Field("upload", Switch(label="Your own table first", help="Above the chosen dataset."), False)

COMPARED: Field[bool] = Field(
    "bounds",
    Switch(
        label="Compare declared, read and private ranges, and other widths",
        help="The sidebar’s run, about 20 times; ranges that are found privately take a tenth of ε.",
    ),
    False,
)
