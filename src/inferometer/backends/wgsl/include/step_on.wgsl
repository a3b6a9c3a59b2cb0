// Writes the next token and moves the state on; one thread calls it. Uses the kernel's state, tokens and sampling.
const STOP_COUNT = 5u; // words of `sampling`
const STOPS = 6u;

fn step_on(chosen: u32) {
    var token = chosen;
    if (state[3] != 0u) {
        token = sampling[STOPS];
    } else {
        for (var i = 0u; i < sampling[STOP_COUNT]; i++) {
            if (sampling[STOPS + i] == token) {
                state[3] = 1u;
            }
        }
    }
    let next = state[0] + state[1];
    tokens[next] = token;
    state[0] = next;
    state[1] = 1u;
    state[2] += 1u;
}
