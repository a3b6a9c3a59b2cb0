from inferometer.record.interception import open_ops
from inferometer.record.interception.open_ops import NONE, OpenOps


def test_innermost_open_op_is_found() -> None:
    ops = OpenOps()
    ops.add(7, [100, 120], [200, 150], [1, 2])
    assert ops.find([7, 7, 7, 7], [110, 130, 160, 200]).tolist() == [1, 2, 1, NONE]


def test_ops_of_other_threads_are_none() -> None:
    ops = OpenOps()
    ops.add(7, [100], [200], [1])
    assert ops.find([8, 7], [150, 150]).tolist() == [NONE, 1]
    assert OpenOps().find([8], [150]).tolist() == [NONE]


def test_batches_may_come_in_any_order() -> None:
    ops = OpenOps()
    ops.add(7, [300], [400], [3])
    ops.add(7, [100], [200], [1])
    assert ops.find([7, 7, 7], [150, 250, 350]).tolist() == [1, NONE, 3]


def test_work_overlaps_an_op_around_it_beside_it_or_within_it() -> None:
    ops = OpenOps()
    ops.add(7, [100, 120, 400], [200, 130, 500], [1, 2, 3])
    starts, ends = [150, 50, 50, 200, 390, 600, 50], [160, 110, 900, 400, 401, 700, 100]
    assert ops.overlaps([7] * 7, starts, ends).tolist() == [True, True, True, False, True, False, False]
    assert ops.overlaps([8], [150], [160]).tolist() == [False]


def test_only_the_latest_ops_are_kept(monkeypatch) -> None:
    monkeypatch.setattr(open_ops, "MOST", 4)
    ops = OpenOps()
    for i in range(4):
        ops.add(7, [i * 100, i * 100 + 50], [i * 100 + 10, i * 100 + 60], [2 * i, 2 * i + 1])
    assert ops.find([7, 7, 7], [105, 205, 355]).tolist() == [NONE, 4, 7]


def test_what_is_held_back_is_asked_for_first() -> None:
    ops = OpenOps()
    ops.settle = lambda: ops.add(7, [100], [200], [5])
    assert ops.find([7], [150]).tolist() == [5]
