"""The two operators of the gated delta rule in chunks, one after the other, against the rule token by token."""

import numpy as np
import pytest
from tests.operators.agreement import as_float64, error_of

torch = pytest.importorskip("torch", reason="torch isn't installed")

from inferometer.operators.catalogue import chunk_delta_rule_output, chunk_gated_delta_rule_state  # noqa: E402
from inferometer.operators.catalogue.delta_rule import (  # noqa: E402
    draw_chunk_gates,
    draw_states,
    draw_unit_rows,
    draw_values,
    in_chunks,
)
from inferometer.operators.catalogue.draws import Draws  # noqa: E402

B, T, HEADS, K, V, CHUNK = 2, 70, 2, 32, 24, 32


def test_both_halves_give_what_the_rule_gives_token_by_token() -> None:
    draw = Draws(5)
    q, k = (draw_unit_rows(draw, B, T, 1, K) for _ in range(2))
    v, beta = draw_values(draw, B, T, HEADS, V), draw.uniform(B, T, HEADS)
    g = draw_chunk_gates(draw, B, T, HEADS, CHUNK)
    pool, rows = draw_states(draw, B, 5, HEADS, K, V)
    w, u = in_chunks(k, v, beta, g, CHUNK)
    h, v_new, after = chunk_gated_delta_rule_state.reference(k, w, u, g, pool, rows, chunk_size=CHUNK)
    out = chunk_delta_rule_output.reference(q, k, v_new, h, g, chunk_size=CHUNK)

    wanted, states = np.zeros(v.shape), as_float64(pool).copy()
    q64, k64, v64, beta64, g64 = map(as_float64, (q, k, v, beta, g))
    for batch, head in np.ndindex(B, HEADS):
        state = states[rows[batch], head]
        for t in range(T):
            state *= np.exp(g64[batch, t, head] - (g64[batch, t - 1, head] if t % CHUNK else 0))
            key = k64[batch, t, 0]
            state += np.outer(key, beta64[batch, t, head] * (v64[batch, t, head] - key @ state))
            wanted[batch, t, head] = q64[batch, t, 0] @ state / np.sqrt(K)
    assert error_of(as_float64(out), wanted) < 1e-2
    assert error_of(as_float64(after), states) < 1e-2


def test_states_that_no_sequence_has_stay_to_the_bit() -> None:
    operator = chunk_gated_delta_rule_state.OPERATOR
    tensors = operator.inputs(**operator.tiny[0], seed=1)
    found = operator.answer(tensors, operator.tiny[0])["final_state"]
    used = tensors["initial_state_indices"].tolist()
    for row in range(len(found)):
        assert torch.equal(found[row], tensors["initial_state"][row]) == (row not in used)


def test_gates_never_increase_within_a_chunk() -> None:
    g = draw_chunk_gates(Draws(2), 1, 130, 3, 64)
    for part in g.split(64, 1):
        assert (part.diff(dim=1) <= 0).all()
        assert (part <= 0).all()
