"""The boundary at which unforeseen errors stop."""

import logging

import pytest

import dpviz
from dpviz.common.boundary import Boundary
from dpviz.common.validate import InvalidInput


def stopped_by(error: BaseException, **through: tuple[type[Exception], ...]) -> Boundary:
    with Boundary("the test", **through) as work:
        raise error
    return work


def test_what_nobody_foresaw_is_logged_with_its_traceback_and_told(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.ERROR):
        work = stopped_by(KeyError("row"))
    assert work.problem("less", "Try another.") == ("'row'", "Try another.")
    (record,) = caplog.records
    assert "the test failed" in record.message
    assert record.exc_info[0] is KeyError
    assert stopped_by(ValueError()).problem("less", "Try another.") == ("ValueError", "Try another.")


def test_what_a_person_can_mend_is_told_and_not_logged(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG):
        assert stopped_by(InvalidInput("steps", "is 0", "Take one.")).problem("less", "") == ("steps: is 0", "Take one.")
        assert stopped_by(MemoryError()).problem("Fewer rows.", "") == ("this needs more memory than there is", "Fewer rows.")
        with Boundary("the test") as work:
            pass
        assert work.problem("", "") is None
    assert not caplog.records


def test_signals_and_what_is_let_through_are_raised() -> None:
    for error in (KeyboardInterrupt(), SystemExit(1)):
        with pytest.raises(type(error)):
            stopped_by(error)
    with pytest.raises(LookupError):
        stopped_by(KeyError(), through=(LookupError,))


def test_no_hash_of_rows_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    """A run's key holds one; an attacker who knows all rows but one could try values for the last against it."""
    run = dpviz.resolve(dpviz.RunSpec("census-100"))
    key, digest = run.key(), dpviz.setup_for(run.spec).dataset.sha256
    assert digest in key
    with caplog.at_level(logging.ERROR), Boundary(f"the run {key}"):
        raise KeyError("row")
    assert "census-100" in caplog.records[0].message
    assert digest not in caplog.records[0].message
