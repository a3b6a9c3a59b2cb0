"""How the next token is chosen on a device: kernels, their NumPy counterparts, and independent definitions."""

from typing import Any

import numpy as np
import pytest
from tests.backends.wgsl_running import run_on_device, run_on_numpy

from inferometer.backends.wgsl.numpy_kernels.sample_draw import uniform

BOTH = pytest.mark.parametrize("run", [run_on_numpy, run_on_device])
F32 = np.float32


def _sampling(
    *,
    temperature: float = 0.0,
    top_k: int = 0,
    top_p: float = 1.0,
    seed: int = 0,
    penalty: float = 1.0,
    stop: tuple[int, ...] = (),
) -> Any:
    """The buffer, as `SAMPLING_WORDS` says."""
    words = np.zeros(32, np.uint32)
    words[[0, 2, 4]] = np.array([temperature, top_p, penalty], F32).view(np.uint32)
    words[[1, 3, 5]] = top_k, seed, len(stop)
    words[6 : 6 + len(stop)] = stop
    return words


def _best(run: Any, logits: Any, *, seen: Any = None, groups: int = 4, penalty: float = 1.0, **settings: float) -> Any:
    """[groups, 2] of argmax_partial."""
    arrays = {
        "logits": np.asarray(logits, F32),
        "seen": np.zeros(len(logits), np.uint32) if seen is None else np.asarray(seen, np.uint32),
        "sampling": _sampling(penalty=penalty),
        "partials": np.full((groups, 2), 77, np.uint32),
    }
    constants = {"V": len(logits), "GROUPS": groups} | settings
    return run("argmax_partial", constants, arrays, (groups, 1, 1))["partials"]


def _after(run: Any, partials: Any, *, state: Any = (5, 3, 2, 0), stop: tuple[int, ...] = (), **settings: float) -> Any:
    """State and tokens after argmax_final."""
    arrays = {
        "state": np.array(state, np.uint32),
        "tokens": np.zeros(12, np.uint32),
        "sampling": _sampling(stop=stop),
        "partials": partials,
    }
    after = run("argmax_final", {"GROUPS": len(partials)} | settings, arrays, (1, 1, 1))
    return after["state"].tolist(), after["tokens"].tolist()


def _greedy(run: Any, logits: Any, **settings: Any) -> int:
    _state, tokens = _after(run, _best(run, logits, **settings))
    return int(tokens[8])


@pytest.mark.parametrize("V", [1, 64, 65, 1000])
@BOTH
def test_greedy_takes_the_first_of_the_largest(run: Any, V: int) -> None:
    logits = np.random.default_rng(V).integers(-3, 3, V).astype(F32)
    assert _greedy(run, logits) == int(np.argmax(logits))


@BOTH
def test_greedy_knows_zeros_of_both_signs_infinities_and_nan(run: Any) -> None:
    assert _greedy(run, [-1.0, -0.0, 0.0, -2.0, -3.0]) == 1
    assert _greedy(run, [-np.inf, -np.inf, -3e38, -np.inf, np.nan]) == 2
    assert _greedy(run, [0.0, 5.0, np.inf, 3e38, 1.0]) == 2
    assert _greedy(run, [-np.inf] * 5) == 0
    assert _greedy(run, [np.nan] * 5) == 0
    assert _greedy(run, [np.nan, np.nan, -np.inf, np.nan, -np.inf]) == 2


@pytest.mark.parametrize("threads", [1, 8, 256])
def test_greedy_is_the_same_by_any_number_of_threads_and_groups(threads: int) -> None:
    logits = np.random.default_rng(1).normal(size=777).astype(F32)
    for groups in (1, 5, 64):
        partials = _best(run_on_device, logits, groups=groups, THREADS=threads)
        assert np.array_equal(partials, _best(run_on_numpy, logits, groups=groups))
        assert _after(run_on_device, partials, THREADS=threads)[1][8] == int(np.argmax(logits))


@BOTH
def test_seen_tokens_are_penalised_on_both_sides_of_zero(run: Any) -> None:
    # seen and positive: over the penalty; seen and negative: times it; unseen: as they are
    assert _greedy(run, [4.0, 3.0, 0.0, 0.0, 0.0], seen=[1, 0, 0, 0, 0], penalty=2.0) == 1
    assert _greedy(run, [-2.0, -3.0, -5.0, -5.0, -5.0], seen=[1, 0, 0, 0, 0], penalty=2.0) == 1
    assert _greedy(run, [4.0, 3.0, 0.0, 0.0, 0.0], seen=[1, 1, 0, 0, 0], penalty=2.0) == 0
    assert _greedy(run, [4.0, 3.0, 0.0, 0.0, 0.0], seen=[1, 0, 0, 0, 0], penalty=1.0) == 0


@BOTH
def test_the_state_moves_behind_the_rows_and_the_next_step_has_one(run: Any) -> None:
    state, tokens = _after(run, _best(run, [0, 1, 9, 2]), state=(5, 3, 2, 0))
    assert state == [8, 1, 3, 0]
    assert tokens == [0] * 8 + [2] + [0] * 3


@BOTH
def test_a_stop_token_is_written_and_every_step_after_it_writes_the_first_one(run: Any) -> None:
    best, other = _best(run, [0, 1, 9, 2]), _best(run, [0, 9, 1, 2])
    state, tokens = _after(run, best, state=(5, 1, 0, 0), stop=(7, 2))
    assert (state, tokens[6]) == ([6, 1, 1, 1], 2)
    state, tokens = _after(run, other, state=state, stop=(7, 2))
    assert (state, tokens[7]) == ([7, 1, 2, 1], 7)
    state, tokens = _after(run, other, state=(5, 1, 0, 0), stop=(7, 2))
    assert (state, tokens[6]) == ([6, 1, 1, 0], 1)


def _draw(
    run: Any, logits: Any, *, seen: Any = None, step: int = 0, stopped: int = 0, threads: int = 256, **sampling: Any
) -> int:
    """The token of one dispatch of sample_draw behind argmax_partial."""
    words, groups = _sampling(**sampling), 3
    V = len(logits)
    seen = np.zeros(V, np.uint32) if seen is None else np.asarray(seen, np.uint32)
    penalty = float(sampling.get("penalty", 1.0))
    arrays = {
        "state": np.array([5, 3, step, stopped], np.uint32),
        "tokens": np.zeros(12, np.uint32),
        "logits": np.asarray(logits, F32),
        "seen": seen,
        "sampling": words,
        "partials": _best(run_on_numpy, logits, seen=seen, groups=groups, penalty=penalty),
    }
    after = run("sample_draw", {"V": V, "GROUPS": groups, "THREADS": threads}, arrays, (1, 1, 1))
    assert after["state"][:3].tolist() == [8, 1, step + 1]
    return int(after["tokens"][8])


def _kept(logits: Any, *, temperature: float, top_k: int = 0, top_p: float = 1.0) -> Any:
    """[V] float64: probabilities of the tokens that are drawn from, 0 elsewhere; by a stable sort."""
    probability = np.exp((np.asarray(logits, np.float64) - np.nanmax(logits)) / temperature)
    probability = np.nan_to_num(probability / np.nansum(probability))
    order = np.argsort(-probability, kind="stable")[: top_k or None]
    running = probability[order].cumsum() / probability[order].sum()
    order = order[: int(np.searchsorted(running, top_p * (1 - 1e-12))) + 1]
    kept = np.zeros_like(probability)
    kept[order] = probability[order] / probability[order].sum()
    return kept


SETTINGS: list[dict[str, Any]] = [
    {"temperature": 1.0},
    {"temperature": 0.3, "top_k": 5},
    {"temperature": 2.5, "top_p": 0.8},
    {"temperature": 1.0, "top_k": 40, "top_p": 0.6},
    {"temperature": 1.0, "top_k": 5000, "top_p": 0.999},
    {"temperature": 50.0, "top_k": 299},
    {"temperature": 0.01, "top_p": 1e-6},
]


@BOTH
@pytest.mark.parametrize("V", [7, 300])
def test_draws_follow_the_definition_in_float64(run: Any, V: int) -> None:
    rng = np.random.default_rng(V)
    checked = 0
    for settings in SETTINGS:
        for step in range(8):
            logits = (rng.normal(size=V) * 3).astype(F32)
            running = _kept(logits, **settings).cumsum()
            drawn = float(uniform(9, step)) * running[-1]
            if np.abs(running - drawn).min() < 1e-5:
                continue  # float32 may round to the token next to it
            checked += 1
            wanted = int(np.argmax(running > drawn))
            assert _draw(run, logits, step=step, seed=9, **settings) == wanted, (settings, step)
    assert checked > 40


@pytest.mark.parametrize("threads", [1, 8, 64])
def test_draws_by_any_number_of_threads_are_numpys(threads: int) -> None:
    rng = np.random.default_rng(threads)
    for settings in SETTINGS:
        logits = (rng.normal(size=300) * 3).astype(F32)
        wanted = _draw(run_on_numpy, logits, seed=4, threads=threads, **settings)
        assert _draw(run_on_device, logits, seed=4, threads=threads, **settings) == wanted


@BOTH
def test_top_k_keeps_the_first_of_equals(run: Any) -> None:
    logits = [1.0, 2.0, 1.0, 2.0, 1.0, -1.0, 1.0, 2.0]
    for k, wanted in [
        (1, {1}),
        (2, {1, 3}),
        (3, {1, 3, 7}),
        (4, {0, 1, 3, 7}),
        (5, {0, 1, 2, 3, 7}),
        (8, set(range(8))),
    ]:
        drawn = {_draw(run, logits, temperature=2.0, top_k=k, step=step) for step in range(60)}
        assert drawn == wanted
        assert set(np.flatnonzero(_kept(logits, temperature=2.0, top_k=k))) == wanted


@BOTH
def test_top_p_keeps_the_fewest_that_reach_it_of_what_top_k_left(run: Any) -> None:
    logits = np.log([0.1, 0.2, 0.1, 0.3, 0.1, 0.1, 0.1, 1e-9])
    cases: list[tuple[int, float, set[int]]] = [
        (0, 0.29, {3}),
        (0, 0.31, {1, 3}),
        (0, 0.55, {0, 1, 3}),
        (0, 0.65, {0, 1, 2, 3}),
        (3, 0.84, {0, 1, 3}),  # of 0.3, 0.2 and 0.1, the first of its equals: 0.83 with two of them
        (3, 0.82, {1, 3}),
        (5, 0.99, {0, 1, 2, 3, 4}),
        (0, 0.9999, {0, 1, 2, 3, 4, 5, 6}),
    ]
    for k, p, wanted in cases:
        drawn = {_draw(run, logits, temperature=1.0, top_k=k, top_p=p, step=step) for step in range(60)}
        assert drawn == wanted, (k, p)


@pytest.mark.parametrize(("run", "draws"), [(run_on_numpy, 1500), (run_on_device, 400)])
def test_counts_of_draws_fit_the_probabilities(run: Any, draws: int) -> None:
    logits = np.random.default_rng(3).normal(size=7)
    settings: dict[str, Any] = {"temperature": 1.5, "top_k": 6, "top_p": 0.97}
    wanted = _kept(logits, **settings) * draws
    found = np.zeros(7)
    for number in range(draws):  # seeds and steps in turn: both must mix
        found[_draw(run, logits, seed=number // 50, step=number % 50, **settings)] += 1
    kept = wanted > 0
    assert kept.sum() == 6
    assert not found[~kept].any()
    chi_square = ((found - wanted)[kept] ** 2 / wanted[kept]).sum()
    assert 0.2 < chi_square < 20.5  # 99.8 of 100 draws at 5 degrees of freedom lie between; seeds are fixed


def test_draws_agree_with_the_eager_operator_of_the_engine() -> None:
    torch = pytest.importorskip("torch", reason="needs torch: pip install 'inferometer[torch]'")
    from inferometer.backends.torch.decoder import top_k_top_p

    rng = np.random.default_rng(8)
    for step, settings in enumerate(SETTINGS * 6):
        logits = (rng.normal(size=300) * 3).astype(F32)
        probability = torch.softmax(torch.from_numpy(logits)[None] / settings["temperature"], -1)
        number = torch.tensor([float(uniform(2, step))])
        k, p = settings.get("top_k", 0), settings.get("top_p", 1.0)
        assert _draw(run_on_numpy, logits, seed=2, step=step, **settings) == int(
            top_k_top_p(probability, number, k=k, p=p)
        )


@BOTH
def test_a_penalty_acts_before_the_draw(run: Any) -> None:
    logits, seen = [8.0, 6.0, 0.0], [1, 0, 0]
    assert _draw(run, logits, seen=seen, temperature=0.01, penalty=2.0) == 1
    assert _draw(run, logits, seen=seen, temperature=0.01, penalty=1.1) == 0


@BOTH
def test_no_temperature_takes_the_largest(run: Any) -> None:
    assert {_draw(run, [0.0, 1.0, 1.0, 0.9], temperature=0.0, step=step) for step in range(5)} == {1}


@BOTH
def test_masked_logits_and_nan_are_never_drawn(run: Any) -> None:
    logits = [np.nan, 1.0, -np.inf, 1.5, np.nan, -3e38]
    for settings in ({}, {"top_k": 4}, {"top_p": 0.99}, {"top_k": 5, "top_p": 0.999}):
        drawn = {_draw(run, logits, temperature=2.0, step=step, **settings) for step in range(25)}
        assert drawn == {1, 3}
    assert _draw(run, [np.nan] * 6, temperature=1.0) == 0
    assert _draw(run, [np.nan] * 6, temperature=1.0, top_k=2, top_p=0.5) == 0


@BOTH
def test_a_draw_after_a_stop_writes_the_first_stop_token(run: Any) -> None:
    assert _draw(run, [0.0, 50.0], temperature=1.0, stopped=1, stop=(0, 1)) == 0
    assert _draw(run, [0.0, 50.0], temperature=1.0, stopped=0, stop=(0, 1)) == 1


def test_uniform_numbers_are_in_range_even_and_unlike_from_step_to_step() -> None:
    numbers = np.array([[float(uniform(seed, step)) for step in range(64)] for seed in range(64)])
    assert 0 <= numbers.min() < 0.002
    assert 0.998 < numbers.max() < 1
    counts = np.histogram(numbers, bins=16, range=(0, 1))[0]
    assert ((counts - 256) ** 2 / 256).sum() < 37.7  # 99.9 of 100 at 15 degrees of freedom
    for one, other in [(numbers[:, :-1], numbers[:, 1:]), (numbers[:-1], numbers[1:])]:
        assert abs(np.corrcoef(one.reshape(-1), other.reshape(-1))[0, 1]) < 0.05
