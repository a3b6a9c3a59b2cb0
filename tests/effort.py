"""How much the tests do: which ones `make test` leaves to `make test-all`, and how hard property tests search.

A property test draws its own number of examples, fewer in CI and in `make test`, 20 times as many in `make fuzz`.
CI runs `make check`, `make test` and `make test-all` one after the other: what passed in one and asks for no extra is
left out of the next.
"""

import re
from collections.abc import Iterable, Mapping
from fnmatch import translate
from functools import cache
from pathlib import Path
from typing import Final

import pytest
from hypothesis import settings
from tests.slow import drawn_out, slow_of

LONG: Final = {
    "tests/truth/*": "recompute sentences about real captures in plain Python",
    "tests/analyses/launched_by/test_truth.py::*": "recompute where launches of real captures come from",
    "tests/findings/test_planted.py::*": "find every planted fault",
    "tests/analyses/memory/test_records.py::test_the_peak_of_a_capture_*": "read real captures, and recount them",
    "tests/analyses/roofline/test_op_work.py::test_of_real_captures_*": "read real captures",
    "tests/formats/kineto/test_real_files.py::*": "read real captures, and recount them",
    "tests/formats/xplane/test_commands.py::*": "ask all commands of real profiles of JAX",
    "tests/analyses/groups/test_captures.py::*": "group the kernels of real captures",
    "tests/analyses/steps/test_real_steps.py::*": "find the steps of real captures",
    "tests/analyses/compare/test_kernels.py::test_totals_of_the_rows_*": "compare real captures",
    "tests/fleet/test_real_traces.py::*": "mine all real captures",
    "tests/fleet/test_mining.py::*": "mine fleets, each by processes",
    "tests/fleet/on_ray/*": "start a Ray cluster",
    "tests/fleet/test_killed_writes.py::*": "kill the writing of a fleet at every change of the disk",
    "tests/faults/*": "compare pairs of runs with planted faults",
    "tests/benchmarks/*": "measure small runs, judge real captures",
    "tests/bench/ranking/test_changes.py::test_the_bars_hold_*": "simulate runs, and rank them",
    "tests/bench/test_samples.py::test_two_of_the_same_*": "draw thousands of samples",
    "tests/bench/test_samples.py::test_the_interval_*": "draw thousands of samples",
    "tests/analyses/ab/test_control.py::test_equal_kernels_*": "simulate runs of two arms",
    "tests/analyses/ab/test_comparison.py::test_equal_arms_*": "simulate runs of two arms",
    "tests/analyses/ab/test_comparison.py::test_a_planted_delay_*": "simulate runs of two arms",
    "tests/analyses/steps/test_drift.py::test_healthy_runs_*": "look for trends in a hundred runs",
    "tests/analyses/compare/test_comparison.py::test_a_fault_of_each_kind_*": "compare recorded runs",
    "tests/analyses/latencyprism/test_comparison.py::test_published_files_agree_*": "compare published runs",
    "tests/findings/test_rules.py::*": "write logs for every rule",
    "tests/findings/evidence/test_idle_kinds.py::test_what_findings_account_for_*": "find idle time of recorded runs",
    "tests/conformance/test_any_steps.py::*": "ask all that tells of steps of traces at random",
    "tests/conformance/test_formats.py::test_a_file_that_ends_early_*": "read files of every format, cut anywhere",
    "tests/conformance/test_every_byte.py::*": "read files of every format, cut at every byte",
    "tests/conformance/test_formats.py::test_a_table_is_the_same_*": "read files of every format for each table",
    "tests/formats/kineto/test_scan.py::test_a_file_cut_short_*": "read a file, cut anywhere",
    "tests/docs/test_pages.py::*": "run every command of the documentation",
    "tests/docs/test_notebooks.py::*": "run the notebooks",
    "tests/docs/test_running_blocks.py::*": "run pages made for it",
    "tests/docs/test_site.py::*": "build the documentation as a site",
    "tests/conformance/test_mutants.py::*[[]*fused_moe]": "try a hundred wrong kernels of slow operators",
    "tests/conformance/test_mutants.py::*[[]*delta_rule*]": "try a hundred wrong kernels of slow operators",
    "tests/conformance/test_mutants.py::test_the_page_*": "try three thousand wrong kernels",
    "tests/bench/test_published_form.py::*": "run a module in the published form for every operator",
    "tests/bench/test_candidates.py::test_sources_in_cpp_*": "compile an extension of PyTorch",
    "tests/fuzz/test_campaign.py::*": "damage files of every format",
    "tests/privacy/test_rocprof.py::*": "write every output of runs with a token",
    "*/test_damage.py::*": "damage files of one format, anywhere",
    "tests/commands/test_hostile.py::*": "open hostile files, some of gigabytes",
    "tests/commands/test_killed.py::*": "kill commands at every change of the disk",
    "tests/commands/test_surroundings.py::*": "run commands in odd surroundings",
    "tests/commands/test_leaderboard.py::test_the_page_is_written_*": "write a page by a process",
    "tests/commands/tools/test_answers.py::test_pages_put_together_*": "ask for a table by pages",
    "tests/commands/tools/test_calls.py::test_answers_on_real_traces_*": "ask every tool of real captures",
    "tests/commands/tools/test_server.py::*[[]stdio]": "start a server as a process",
    "tests/commands/tools/test_server.py::test_stdout_has_*": "start a server as a process",
    "tests/commands/tools/test_server.py::test_progress_*": "compare runs of thousands of launches",
    "tests/engines/gguf/test_real_models.py::*": "load real models of hundreds of megabytes",
    "tests/commands/options/test_chat_webgpu.py::*": "chat with small models, in a browser too",
    "tests/record/interception/*[[]observer*": "compile the observer of ops",
    "tests/record/interception/observer/*": "compile the observer of ops",
    "tests/record/test_program.py::*": "record programs that end in every way",
    "tests/record/test_journal_processes.py::*": "kill programs that are recorded",
    "tests/record/server/test_server.py::*": "record servers, of which each fails in its own way",
    "tests/tools/test_make_kineto.py::*": "make traces of every kind",
    "tests/reports/schemas/*": "hold what every command prints against its type",
    "tests/reports/page/test_comment.py::*": "write comments on recorded runs",
    "tests/reports/page/test_compar*.py::*": "compare recorded runs, for sections of a page",
    "tests/reports/page/test_two_runs.py::*": "write pages of two runs",
    "tests/reports/page/test_beside.py::*": "write pages of two runs",
    "tests/reports/page/test_sections_overview.py::*[[]*": "walk through all moments of real captures",
    "tests/reports/perfetto/test_packets.py::test_a_real_capture_*": "write real captures as others read them",
    "tests/record/workers/test_workers.py::*": "record the workers of launchers, each in its own way",
    "tests/reports/chrome/test_document.py::test_a_real_capture_*": "write real captures, and read them again",
    "tests/reports/screen/test_pictures.py::test_every_row_of_a_real_*": "draw summaries of real captures",
    "tests/reports/serve/test_work.py::test_what_the_list_says_*": "count the launches of a recorded run",
    "tests/reports/views/test_view.py::test_a_command_imports_*": "start commands as processes",
    "tests/analyses/timeline/lanes/test_*.py::test_*of_real_traces_*": "draw the time lines of real captures",
    "tests/analyses/roofline/test_cut.py::test_two_adjoining_*": "cut real captures in two",
    "tests/analyses/compare/test_host_time.py::test_gaps_of_recorded_*": "find the gaps of recorded runs",
    "tests/reports/serve/test_[aeks]*.py::*": "start servers as processes",
    "tests/test_python_calls.py::*": "count calls of every analysis",
    "tests/test_plugins.py::*": "start commands as processes, with a package of others",
    "tests/test_guarded.py::*": "start processes that break their limits",
    "tests/names/test_linear_time.py::*": "read names of a hundred thousand characters",
    "tests/formats/json_text/test_repair.py::test_good_json_*": "cut a file at every byte",
    "tests/formats/kineto/test_scan.py::test_another_process_*": "read files of megabytes",
    "tests/formats/kineto/test_sections.py::*": "read captures in sections, by several processes",
    "tests/formats/kineto/native/test_sections.py::*": "read files of every kind by the library and by Python",
    "tests/formats/kineto/native/test_launches.py::*": "read files of every kind by the library and by Python",
    "tests/formats/test_serving_results.py::test_an_odd_value_*": "put odd values into every field of every file",
    "tests/analyses/compare/test_real_pairs.py::*": "compare real captures",
    "tests/reports/fleet/test_page.py::TestInABrowser*": "open pages in a browser",
    "tests/commands/test_private_files.py::*": "print and write all that may name a file",
    "tests/commands/test_roofline_counters.py::*": "join what was counted of hundreds of metrics",
    "tests/commands/test_screen.py::test_what_a_table_calls_*": "look for every kernel of real captures by its name",
    "tests/commands/test_findings.py::test_summary_leaves_*": "write traces of every fault",
    "tests/record/test_faults.py::*": "compare recorded runs with faults",
    "tests/analyses/compare/test_phases.py::*": "compare runs by phase",
    "tests/analyses/compare/causes/test_granularity.py::*": "compare runs of many kinds",
    "tests/tools/ci/test_compare.py::test_recorded_samples_*": "compare recorded runs by the script of CI",
    "tests/tools/ci/test_compare.py::test_a_program_is_recorded_*": "record two programs by the script of CI",
    "tests/tools/test_release_check.py::test_a_wheel_*": "build a wheel",
    "*/test_browser*.py::*": "open pages in a browser",
    "*::test_a_disk_that_is_full_*": "start commands as processes",
    "*::test_a_full_disk_*": "start commands as processes",
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
    "tests/record/journal/test_rolling.py::test_a_day_*": "write a day of counters",
    "tests/watch/test_cost.py::*": "watch an engine for a quarter of a minute",
    "tests/watch/test_pairs.py::*": "play recorded runs through",
    "*::test_a_hundred_thousand_*": "analyse a hundred thousand of a thing",
    "*::test_a_reader_that_leaves_early_is_no_failure*": "start commands as processes",
    "*::test_standard_output_is_the_*": "start commands as processes",
    "*::test_a_run_against_itself_and_its_halves_*": "compare recorded runs with themselves",
    "*_in_a_generated_run*": "make runs of a model",
    "*::test_nothing_that_we_write_holds_a_secret": "write files of every kind",
}
"""Tests that `make test` leaves out, by pattern, and what they do: `make test-all` and CI run them, with all extras.
It leaves out those that tests/slow.py lists, too."""

EXHAUSTIVE: Final = {
    "tests/fleet/on_ray/test_mining.py::test_a_driver_killed_again_and_again_*": "a driver that is killed once",
    "tests/fleet/on_ray/test_mining.py::test_a_node_that_dies_*": "workers that are killed",
    "tests/record/journal/test_rolling.py::test_a_day_*": "half an hour of it",
    "tests/commands/test_killed.py::*[[]record]": "the same of export and import",
    "tests/commands/test_killed.py::*[[]report]": "the same of export and import",
    "tests/benchmarks/test_growth.py::test_a_small_run_measures_the_chosen_commands": "the other tests of that file",
    "tests/benchmarks/test_harness.py::test_a_small_run_on_exports_*": "the small run on traces",
}
"""Tests that CI leaves out, by pattern, and what it runs in their place. `make mutants` runs them, and `make test-all`
does outside CI."""

SAMPLED: Final = {
    "tests/backends/test_torch_kernels.py::*[[]*": 2,
    "tests/backends/test_triton_*.py::*[[]*": 3,
    "tests/backends/test_wgsl_*.py::*[[]*": 4,
    "tests/analyses/launched_by/test_truth.py::*[[]*": 3,
    "tests/analyses/roofline/test_cut.py::test_two_adjoining_*[[]*": 3,
    "tests/analyses/timeline/lanes/test_*.py::test_*of_real_traces_*[[]*": 3,
    "tests/bench/test_cheats.py::*[!]]": 6,
    "tests/bench/test_cheats.py::test_a_cheat_is_caught[[]*": 3,
    "tests/bench/test_cheats.py::test_what_was_replaced_is_named[[]*": 2,
    "tests/bench/test_cheats.py::test_tolerances_can_t_be_replaced[[]*": 3,
    "tests/bench/test_cheats.py::test_work_can_t_be_hidden[[]*": 6,
    "tests/bench/test_isolation.py::test_it_fails_in_time_and_alone[[]*": 6,
    "tests/bench/test_published_form.py::test_it_is_right_*[[]*": 3,
    "tests/benchmarks/test_real_sentences.py::test_every_text_of_real_*[[]*": 6,
    "tests/commands/options/test_chat_webgpu.py::*[[]*": 3,
    "tests/commands/test_hostile.py::*[[]*": 4,
    "tests/commands/test_killed.py::*[[][ie]*": 3,
    "tests/commands/test_screen.py::test_what_a_table_calls_*[[]*": 3,
    "tests/commands/tools/test_calls.py::test_answers_on_real_*[[]*": 3,
    "tests/conformance/test_damage.py::test_a_whole_sample_*[[]*": 4,
    "tests/conformance/test_damage.py::test_any_damage_is_an_answer_or_an_input_error[[]*": 4,
    "tests/conformance/test_every_byte.py::*[[]*": 24,
    "tests/conformance/test_mutants.py::test_every_right_kernel_is_accepted[[]*": 4,
    "tests/conformance/test_mutants.py::test_every_wrong_kernel_is_refused[[]*": 24,
    "tests/docs/test_pages.py::test_a_page_shows_*[[]*": 8,
    "tests/engines/gguf/test_real_models.py::*[[]*": 2,
    "tests/engines/test_ab_models.py::*[[]tiny-*": 3,
    "tests/engines/test_ab_models.py::*[!]]": 4,
    "tests/engines/webgpu/test_browser.py::test_a_model_makes_the_tokens_*[[]*": 4,
    "tests/engines/webgpu/test_models.py::*[[]*": 3,
    "tests/fuzz/test_campaign.py::test_a_slice_has_no_defect[[]*": 4,
    "tests/fuzz/test_campaign.py::test_a_worker_that_*[[]*": 3,
    "tests/findings/test_rules.py::*": 2,
    "tests/record/test_generate_loops.py::*[[]*": 2,
    "tests/tools/test_make_kineto.py::*": 2,
    "tests/formats/kineto/test_damage.py::*": 3,
    "tests/formats/kineto/test_sections.py::*[[]*": 6,
    "tests/formats/kineto/native/test_sections.py::*[[]*": 6,
    "tests/formats/kineto/native/test_launches.py::*[[]*": 3,
    "tests/formats/test_serving_results.py::test_an_odd_value_*": 4,
    "tests/formats/rocpd/test_rocpd.py::test_odd_rows_*[[]*": 3,
    "tests/formats/test_changed_file.py::test_a_change_behind_*[[]*": 5,
    "tests/formats/kineto/test_real_files.py::*[[]*": 3,
    "tests/names/test_linear_time.py::*[[]*": 4,
    "tests/record/workers/test_workers.py::*": 3,
    "tests/reports/chrome/test_document.py::test_a_real_capture_*[[]*": 3,
    "tests/reports/page/test_browser.py::test_a_sample_shows_on_phone_and_desk_*[[]*": 2,
    "tests/reports/page/test_browser_tables.py::test_no_column_of_a_real_*[[]*": 3,
    "tests/reports/page/test_formats.py::*[[]*": 3,
    "tests/reports/page/test_sections_overview.py::*[[]*": 2,
    "tests/reports/perfetto/test_packets.py::test_a_real_capture_*[[]*": 3,
    "tests/reports/schemas/test_documents.py::test_documents_of_real_*[[]*": 6,
    "tests/reports/screen/test_pictures.py::test_every_row_of_a_real_*[[]*": 3,
    "tests/reports/serve/test_browser.py::*": 2,
    "tests/reports/serve/test_work.py::test_a_file_of_each_format_*[[]*": 3,
}
"""Many tests of one kind, most by their parameters, by pattern, of which CI runs one in so many; the others are
exhaustive, too. Which ones is drawn by `TURN`, that of a commit: in time all are run."""

SAMPLED_GROUPS: Final = {"tests/truth/*[[]*": 3}
"""The same of groups of tests that run together (tests/scheduling.py): to read a capture takes longer than any test
of what it holds, so one in so many captures is read."""

ASK_FOR_EXTRAS: Final = (
    *("tests/backends/*", "tests/bench/*", "tests/conformance/*", "tests/docs/*", "tests/engines/*", "tests/record/*"),
    *("tests/hardware/measure/*", "tests/operators/catalogue/*", "tests/test_plugins.py::*"),
    *("tests/commands/options/*", "tests/commands/test_ab.py::*", "tests/commands/test_bench.py::*"),
    *("tests/commands/test_chat.py::*", "tests/commands/test_command_line.py::*", "tests/commands/test_hardware.py::*"),
    *("tests/commands/test_record.py::*", "tests/commands/test_serve.py::*", "tests/commands/test_surroundings.py::*"),
    *("tests/commands/tools/*", "tests/commands/test_mcp.py::*", "tests/reports/schemas/*"),
)
"""Tests of code that takes another way where an extra is installed, by pattern: CI runs them with and without."""

ASK_FOR_NONE: Final = (
    *("tests/bench/ranking/*", "tests/bench/test_samples.py::*", "tests/conformance/test_any_steps.py::*"),
    *("tests/conformance/test_formats.py::*", "tests/docs/test_glossary.py::*"),
    *("tests/docs/test_tutorial.py::*", "tests/docs/test_coming_from.py::*", "tests/record/journal/*"),
    *("tests/engines/webgpu/plan/*", "tests/engines/webgpu/profile/*", "tests/bench/exchange/test_round_trip.py::*"),
    *("tests/commands/options/test_modelled.py::*", "tests/record/profiler/test_window_tables.py::*"),
    "tests/bench/profiles/test_kernel_times.py::*",
)
"""Exceptions of these, which look for no extra as they run."""


class Passed:
    """Adds to a file the node ids of tests that passed without an extra and ask for none, one per line."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._passed: set[str] = set()
        self._failed: set[str] = set()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self._failed.add(report.nodeid)
        elif report.when == "call" and report.passed and not _asks_for_extras(report.nodeid):
            self._passed.add(report.nodeid)

    def pytest_sessionfinish(self) -> None:
        before = self._path.read_text("utf-8").splitlines() if self._path.exists() else []
        lines = sorted({*before, *(_line(test) for test in self._passed - self._failed)})
        self._path.write_text("".join(f"{line}\n" for line in lines), "utf-8")


def leave_out(items: list[pytest.Item], path: Path) -> list[pytest.Item]:
    """The tests that are noted in the file, taken from `items`."""
    noted = set(path.read_text("utf-8").splitlines())
    passed = [item for item in items if _line(item.nodeid) in noted]
    items[:] = [item for item in items if _line(item.nodeid) not in noted]
    return passed


def _asks_for_extras(test: str) -> bool:
    return _matches(test, ASK_FOR_EXTRAS) and not _matches(test, ASK_FOR_NONE)


def _line(test: str) -> str:
    return repr(test)  # parameters may hold anything


def long_of(tests: Iterable[str]) -> set[str]:
    """Those of all tests, by node id, that `make test` leaves out."""
    tests = set(tests)
    found = {test for test in tests if _matches(test, LONG)}
    return found | slow_of(tests - found)


def exhaustive_of(tests: Iterable[str], turn: int) -> set[str]:
    """Those of all tests, by node id, that CI leaves out in this turn: it runs others like them, or of their file."""
    from tests.scheduling import group_of  # it loads pytest-xdist and the readers

    tests = sorted(tests)
    found = {test for test in tests if _matches(test, EXHAUSTIVE)}
    for number, (pattern, each) in enumerate(SAMPLED.items()):  # whose first tests aren't all of one turn
        alike = [test for test in tests if _matches(test, (pattern,))]
        found |= {test for place, test in enumerate(alike) if (place + number + turn) % each}
    for pattern, each in SAMPLED_GROUPS.items():
        groups = {test: group_of(test) for test in tests if _matches(test, (pattern,))}
        left_out = {group for place, group in enumerate(sorted({*groups.values()})) if (place + turn) % each}
        found |= {test for test, group in groups.items() if group in left_out}
    listed = (*EXHAUSTIVE, *SAMPLED, *SAMPLED_GROUPS)
    return found | drawn_out((test for test in tests if not _matches(test, listed)), turn)


def turn_of(environment: Mapping[str, str]) -> int:
    """`TURN`: hexadecimal, as the name of a commit begins; 0 where it isn't set."""
    return int(environment.get("TURN") or "0", 16)


def _matches(test: str, patterns: Iterable[str]) -> bool:
    return _any_of(tuple(patterns)).match(test) is not None


@cache
def _any_of(patterns: tuple[str, ...]) -> re.Pattern[str]:
    """One expression of all: twelve thousand tests are asked for by sixty patterns."""
    return re.compile("|".join(map(translate, patterns)))


def examples(usual: int) -> settings:
    """A decorator: `usual` examples under the profile `dev`, which has 100 by default, fewer under `ci`."""
    return settings(max_examples=max(1, usual * settings().max_examples // 100))
