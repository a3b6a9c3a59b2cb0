//! op: linear_split
//! reference: linear_split
// Part of x · weight of one row (the first, or the last of the pass: LAST_ROW): split s of SPLITS takes an equal piece
// of K, and linear_sum adds up. For few columns and a long K, where a thread a column leaves a device idle.
// Grid (ceil(N / (THREADS * COLUMNS)), SPLITS); columns of a thread: linear_thread.wgsl.
// Memory: N * K f16 and K f32 read, SPLITS * N f32 written; K is a multiple of 8.
override K: u32;
override N: u32;
override SPLITS: u32;
override LAST_ROW: u32 = 0u;
override THREADS: u32 = 64u;
override COLUMNS: u32 = 1u;

@group(0) @binding(0) var<storage, read> state: array<u32>;
@group(0) @binding(1) var<storage, read> x: array<vec4<f32>>;
@group(0) @binding(2) var<storage, read> weight: array<vec4<u32>>;
@group(0) @binding(3) var<storage, read_write> partials: array<f32>;

//! include: products

fn write(split: u32, column: vec4<u32>, sums: vec4<f32>) {
    for (var c = 0u; c < min(COLUMNS, 4u); c++) {
        if (column[c] < N) {
            partials[split * N + column[c]] = sums[c];
        }
    }
}

@compute @workgroup_size(THREADS)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
    if (state[1] == 0u) {
        return;
    }
    let words = K / 8u;
    let piece = (words + SPLITS - 1u) / SPLITS;
    let last = min((group.y + 1u) * piece, words);
    let first = group.x * THREADS * COLUMNS + thread;
    let row = select(0u, 2u * words * (state[1] - 1u), LAST_ROW == 1u);
    for (var block = 0u; block < COLUMNS; block += 8u) {
        let column = first + (block + vec4(0u, 1u, 2u, 3u)) * THREADS;
        let near = min(column, vec4(N - 1u)) * words;
        let far = min(column + 4u * THREADS, vec4(N - 1u)) * words;
        var sums = vec4(0.0);
        var more = vec4(0.0);
        for (var i = group.y * piece; i < last; i++) {
            let low = x[row + 2u * i];
            let high = x[row + 2u * i + 1u];
            sums += products(near + i, low, high);
            if (COLUMNS > 4u) {
                more += products(far + i, low, high);
            }
        }
        write(group.y, column, sums);
        if (COLUMNS > 4u) {
            write(group.y, column + 4u * THREADS, more);
        }
    }
}
