"""What a file says of what its run takes: what its keys state, what is counted, what is assumed."""

import pytest

from simcore.workload import open_workload
from tests.strategies import Cell, Row, make_workload
from tests.workload.texts import FIXTURES
from tui.parameters.form_context import origin_of

ROWS = [Row("mlp", Cell(1))]
DEGREES = [("world", "all_gpus"), ("tp", "tp"), ("ep", "ep"), ("pp", "pp"), ("microbatches", "ga")]


@pytest.mark.parametrize(("field", "key"), DEGREES)
def test_a_value_is_stated_where_its_key_has_it_and_assumed_where_it_is_missing_or_another(
    field: str, key: str
) -> None:
    stated, silent = make_workload(ROWS, **{key: 4}), make_workload(ROWS)
    assert origin_of(stated, field, 4, in_blocks=False) == "stated"
    assert origin_of(stated, field, 2, in_blocks=False) == "assumed"
    assert origin_of(silent, field, 1, in_blocks=False) == "assumed"


def test_micro_batches_without_a_key_of_their_number_are_counted() -> None:
    assert origin_of(make_workload(ROWS), "microbatches", 1, in_blocks=True) == "counted"
    assert origin_of(make_workload(ROWS, ga=1), "microbatches", 2, in_blocks=True) == "counted"
    assert origin_of(make_workload(ROWS), "world", 1, in_blocks=True) == "assumed"


def test_an_op_table_tells_no_dialect() -> None:
    table = open_workload(str(FIXTURES / "003_gpt2_large_op_table.txt"))
    assert origin_of(table, "dialect", "simai", in_blocks=False) == "assumed"
    assert origin_of(make_workload(ROWS), "dialect", "simai", in_blocks=True) == "stated"
