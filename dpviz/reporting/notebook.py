"""A run as a notebook: cells that repeat its numbers and pictures when they are executed. Needs nbformat."""

from dpviz.common.validate import InvalidInput
from dpviz.experiments.run.spec import RunSpec
from dpviz.reporting.calls import address, python_call
from dpviz.reporting.run import QUESTION

_TABLE = "result.calibration"
_REPORT = """from dpviz.reporting import Chart, Table, report_of
from IPython.display import display

report = report_of(result.spec)
print(report.sentence)
for part in report.parts:
    if isinstance(part, Chart):
        display(part.figure)
        print(part.words)
    elif isinstance(part, Table):
        display(part.frame)"""


def notebook_of(spec: RunSpec) -> str:
    """The notebook as text in the format of Jupyter, nothing executed yet.

    Raises:
        InvalidInput: nbformat is not installed.
    """
    try:
        import nbformat
        from nbformat import v4
    except ImportError as error:
        raise InvalidInput("notebook", "needs nbformat, which is not installed", "pip install nbformat.") from error
    cells = [
        v4.new_markdown_cell(f"# {QUESTION}\n\nThe run `{address(spec)}`."),
        v4.new_code_cell(python_call(spec)),
        v4.new_markdown_cell("How the noise was set, and how far the guarantee is proved:"),
        v4.new_code_cell(_TABLE),
        v4.new_markdown_cell("The pictures and tables of the report:"),
        v4.new_code_cell(_REPORT),
    ]
    for number, cell in enumerate(cells):
        cell["id"] = f"cell-{number}"  # not at random: the same run gives the same file
    made = v4.new_notebook(
        cells=cells, metadata={"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
    )
    nbformat.validate(made)
    return str(nbformat.writes(made))
