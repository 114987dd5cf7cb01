"""The fields of the page Data in the address."""

from dpviz.dashboard.frame import fields

FIRST = fields.switch("upload", "Your own table first", "Above the chosen dataset.")
COMPARED = fields.switch(
    "bounds",
    "Compare declared, read and private ranges, and other widths",
    "The sidebar’s run, about 20 times; ranges that are found privately take a tenth of ε.",
)
