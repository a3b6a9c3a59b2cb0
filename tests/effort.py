"""How much the tests do: which ones `make test` leaves to `make test-all`, and how hard property tests search.

A property test draws its own number of examples, fewer in CI and in `make test`, 20 times as many in `make fuzz`.
"""

from fnmatch import fnmatchcase
from typing import Final

from hypothesis import settings

LONG: Final = {
    "tests/truth/*": "recompute sentences about real captures in plain Python",
    "tests/analyses/launched_by/test_truth.py::*": "recompute where launches of real captures come from",
    "tests/findings/test_planted.py::*": "find every planted fault",
    "tests/faults/*": "compare pairs of runs with planted faults",
    "tests/benchmarks/*": "measure small runs, judge real captures",
    "tests/docs/test_pages.py::*": "run every command of the documentation",
    "tests/fuzz/test_campaign.py::*": "damage files of every format",
    "*/test_damage.py::*": "damage files of one format, anywhere",
    "tests/commands/test_hostile.py::*": "open hostile files, some of gigabytes",
    "tests/commands/test_surroundings.py::*": "run commands in odd surroundings",
    "tests/commands/options/test_chat_webgpu.py::*": "chat with small models, in a browser too",
    "tests/record/test_program.py::*": "record programs that end in every way",
    "tests/record/test_journal_processes.py::*": "kill programs that are recorded",
    "tests/record/server/test_server.py::*": "record servers, of which each fails in its own way",
    "tests/tools/test_make_kineto.py::*": "make traces of every kind",
    "*/test_browser.py::*": "open pages in a browser",
    "*::test_a_click_goes_down_to_a_box_and_up_again*": "open a page in a browser",
    "*::test_deep_nesting_*": "read brackets by the million",
    "*::test_any_byte_of_a_file_may_be_any_other": "damage a Parquet file at every byte",
    "*::test_no_byte_makes_polars_end_the_process*": "damage a Parquet file at every byte",
    "*::test_damage_costs_time_in_proportion": "read damaged files of several sizes",
    "*::test_no_table_makes_the_page_too_large": "write pages of huge tables",
    "*::test_a_large_trace_makes_a_small_page_quickly": "write pages of huge tables",
    "*::test_as_many_devices_as_may_be_asked_for_have_room": "write pages of huge tables",
    "*::test_thousands_of_operators_and_contenders_fit_into_8_mb": "write pages of huge tables",
    "*::test_counts_of_draws_fit_the_probabilities*": "draw thousands of tokens",
    "*::test_an_hour_of_forty_counters*": "write an hour of counters",
    "*::test_a_hundred_thousand_*": "analyse a hundred thousand of a thing",
    "*::test_a_reader_that_leaves_early_is_no_failure*": "start commands as processes",
    "*::test_standard_output_is_the_*": "start commands as processes",
    "*::test_a_run_against_itself_and_its_halves_*": "compare recorded runs with themselves",
    "*::test_a_slow_layer_is_found_in_a_generated_run*": "make runs of a model",
    "*::test_nothing_that_we_write_holds_a_secret": "write files of every kind",
}
"""Tests that `make test` leaves out, by pattern, and what they do: `make test-all` and CI run them, with all extras."""


def is_long(test: str) -> bool:
    """Whether `make test` leaves out the test of this node id."""
    return any(fnmatchcase(test, pattern) for pattern in LONG)


def examples(usual: int) -> settings:
    """A decorator: `usual` examples under the profile `dev`, which has 100 by default, fewer under `ci`."""
    return settings(max_examples=max(1, usual * settings().max_examples // 100))
