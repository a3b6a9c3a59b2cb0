// Uses the kernel's K, N, OUT0, ACTIVATION, THREADS, COLUMNS, x, out, gate_sums and up_sums; and its gate_product and
// up_product: eight weights, by their place in units of eight, times eight numbers.
//! include: activate

struct GateUp {
    gate: vec4<f32>,
    up: vec4<f32>,
}

// The thread's sums for four columns, whose weights begin at these places: every THREADS-th part of K.
fn own_sums(at: vec4<u32>, thread: u32) -> GateUp {
    var of_gate = vec4(0.0);
    var of_up = vec4(0.0);
    for (var i = thread; i < K / 8u; i += THREADS) {
        let low = x[2u * i];
        let high = x[2u * i + 1u];
        of_gate.x += gate_product(at.x + i, low, high);
        of_up.x += up_product(at.x + i, low, high);
        if (COLUMNS > 1u) {
            of_gate.y += gate_product(at.y + i, low, high);
            of_up.y += up_product(at.y + i, low, high);
        }
        if (COLUMNS > 2u) {
            of_gate.z += gate_product(at.z + i, low, high);
            of_up.z += up_product(at.z + i, low, high);
            of_gate.w += gate_product(at.w + i, low, high);
            of_up.w += up_product(at.w + i, low, high);
        }
    }
    return GateUp(of_gate, of_up);
}

// Up to four columns from `first` on: of each, the sums of its first `count` partials, by one thread.
fn write_columns(first: u32, count: u32, thread: u32) {
    for (var c = thread; c < min(COLUMNS, 4u); c += THREADS) {
        let column = first + c;
        if (column >= N) {
            break;
        }
        var gated = 0.0;
        var value = 0.0;
        for (var i = 0u; i < count; i++) {
            gated += gate_sums[i][c];
            value += up_sums[i][c];
        }
        out[OUT0 + column] = activate(gated) * value;
    }
}
