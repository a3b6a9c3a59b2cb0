// Uses the kernel's K, N, HAS_BIAS, OUT0, ADD, THREADS, COLUMNS, x, bias, out and partials; and its weight_product: eight
// weights, by their place in units of eight, times eight numbers.

// The thread's sums for four columns, whose weights begin at these places: every THREADS-th part of K.
fn own_sums(row: u32, at: vec4<u32>, thread: u32) -> vec4<f32> {
    var sum = vec4(0.0);
    for (var i = thread; i < K / 8u; i += THREADS) {
        let low = x[row + 2u * i];
        let high = x[row + 2u * i + 1u];
        sum.x += weight_product(at.x + i, low, high);
        if (COLUMNS > 1u) {
            sum.y += weight_product(at.y + i, low, high);
        }
        if (COLUMNS > 2u) {
            sum.z += weight_product(at.z + i, low, high);
            sum.w += weight_product(at.w + i, low, high);
        }
    }
    return sum;
}

// Up to four columns from `first` on: of each, the sum of its first `count` partials, by one thread.
fn write_columns(first: u32, count: u32, thread: u32) {
    for (var c = thread; c < min(COLUMNS, 4u); c += THREADS) {
        let column = first + c;
        if (column >= N) {
            break;
        }
        var value = 0.0;
        for (var i = 0u; i < count; i++) {
            value += partials[i][c];
        }
        if (HAS_BIAS == 1u) {
            value += bias[column];
        }
        if (ADD == 1u) {
            value += out[OUT0 + column];
        }
        out[OUT0 + column] = value;
    }
}
