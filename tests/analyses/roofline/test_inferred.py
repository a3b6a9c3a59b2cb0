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
    found = calls(("a", None, None), ("b", None, None), ("a", None, None), ("b", None, None), ("a", 0, 7), ("b", 0, 7))

    assert found[:2] == [found[0]] * 2
    assert found[2:4] == [found[2]] * 2
    assert len({*found[::2]}) == 3


def test_a_call_of_several_alike_launches_stays_one() -> None:
    found = calls(*[("a", None, None)] * 4, ("a", 0, 7), ("a", 0, 7))

    assert len({*found[:4]}) == 2


def test_a_launch_whose_host_call_was_lost_belongs_to_the_call_next_to_it() -> None:
    found = calls(("a", 0, 7), ("b", 0, 7), ("a", 0, 8), ("b", None, None), ("c", 1, 9))

    assert found == [7, 7, 8, 8, 9]


def test_a_call_that_has_all_of_its_launches_gets_no_more() -> None:
    found = calls(("a", 0, 7), ("b", 0, 7), ("b", None, None))

    assert found[2] not in (None, 7)


def test_kernels_of_two_ops_are_told_by_their_neighbours_or_not_at_all() -> None:
    told = infer_signatures(
        launches(("x", 5, 1), ("a", 0, 2), ("y", 6, 3), ("a", 1, 4), ("x", None, None), ("a", None, None), ("x", 5, 5))
    )
    untold = infer_signatures(launches(("a", 0, 1), ("a", 1, 2), ("a", None, None)))

    assert told["signature"].to_list()[4:6] == [5, None]
    assert untold["signature"].to_list()[2] is None
