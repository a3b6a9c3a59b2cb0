"""Launches without an op in the file, by those that are alike: which call each belongs to."""

import polars as pl

from inferometer.analyses.roofline.inferred import infer_signatures

KNOWN, UNKNOWN = "call", "launch_before_window"


def launches(*rows: tuple[str, int | None, int | None]) -> pl.DataFrame:
    """Kernel, signature and call of each launch, in the order of one stream."""
    return pl.DataFrame(
        [
            {
                "kernel": kernel,
                "signature": signature,
                "call": call,
                "how": UNKNOWN if signature is None else KNOWN,
                "start_ns": at,
                "kind": "kernel",
                "grid": [1, 1, 1],
                "block": [1, 1, 1],
            }
            for at, (kernel, signature, call) in enumerate(rows)
        ],
        schema_overrides={"signature": pl.UInt32, "call": pl.Int64},
    ).with_columns(
        *(pl.lit(None, dtype=pl.Int64).alias(name) for name in ("rank", "stream", "registers", "shared_bytes")),
        pl.lit("gpu:0").alias("device"),
    )


def calls(*rows: tuple[str, int | None, int | None]) -> list[int | None]:
    return infer_signatures(launches(*rows))["call"].to_list()


def test_as_many_launches_of_a_kind_as_a_call_has_are_one_call() -> None:
    known = [(kernel, 0, call) for call in (7, 8) for kernel in "ab"]
    found = calls(("a", None, None), ("b", None, None), ("a", None, None), ("b", None, None), *known)

    assert found[:2] == [found[0]] * 2
    assert found[2:4] == [found[2]] * 2
    assert len({*found[::2]}) == 4


def test_a_call_of_several_alike_launches_stays_one() -> None:
    found = calls(*[("a", None, None)] * 4, ("a", 0, 7), ("a", 0, 7))

    assert len({*found[:4]}) == 2


def test_a_launch_whose_host_call_was_lost_belongs_to_the_call_next_to_it() -> None:
    found = calls(("a", 0, 6), ("b", 0, 6), ("a", 0, 7), ("b", 0, 7), ("a", 0, 8), ("b", None, None), ("c", 1, 9))

    assert found == [6, 6, 7, 7, 8, 8, 9]


def test_a_call_that_has_all_of_its_launches_gets_no_more() -> None:
    found = calls(("a", 0, 6), ("b", 0, 6), ("a", 0, 7), ("b", 0, 7), ("b", None, None))

    assert found[4] not in (None, 6, 7)


def test_kernels_of_two_ops_are_told_by_their_neighbours_or_not_at_all() -> None:
    told = infer_signatures(
        launches(("x", 5, 1), ("a", 0, 2), ("y", 6, 3), ("a", 1, 4), ("x", None, None), ("a", None, None), ("x", 5, 5))
    )
    untold = infer_signatures(launches(("a", 0, 1), ("a", 1, 2), ("a", None, None)))

    assert told["signature"].to_list()[4:6] == [5, None]
    assert untold["signature"].to_list()[2] is None


def test_one_launch_that_is_alike_tells_nothing() -> None:
    once = infer_signatures(launches(("a", None, None), ("b", 1, 2), ("a", 0, 1)))
    twice = infer_signatures(launches(("a", None, None), ("b", 1, 2), ("a", 0, 1), ("a", 0, 3)))

    assert (once["signature"][0], twice["signature"][0]) == (None, 0)


def in_turn(periods: int) -> list[tuple[str, int | None, int | None]]:
    """Calls of four signatures in turn, all of one kernel."""
    return [("a", at % 4, at) for at in range(4 * periods)]


def test_launches_of_one_kernel_in_turn_are_told_by_what_follows() -> None:
    unknown = [("a", None, None)] * 5
    told = infer_signatures(launches(*unknown, *in_turn(3)))

    assert told["signature"].to_list()[:5] == [3, 0, 1, 2, 3]
    assert told["inferred"].to_list() == [True] * 5 + [False] * 12


def test_what_follows_must_have_been_seen_twice_with_one_before_it() -> None:
    once = infer_signatures(launches(("a", None, None), *in_turn(2)))
    other_kernel = infer_signatures(launches(("b", None, None), *in_turn(3)))
    disagreeing = infer_signatures(launches(("a", None, None), *in_turn(3), ("a", 9, 50), *in_turn(2)))

    assert [each["signature"][0] for each in (once, other_kernel, disagreeing)] == [None] * 3
