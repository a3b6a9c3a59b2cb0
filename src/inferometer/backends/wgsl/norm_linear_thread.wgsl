//! op: norm_linear
//! reference: norm_linear
// out = rms_norm(x; norm) · weight + bias of the first row, in one launch. Every thread adds up the squares of x along
// with its products, from numbers that it loads anyway, so that this takes no barrier; the norm's factor comes last.
// Costs two more loads and a multiply per thread for 8 numbers of K, saves a launch: worth it where launches are
// expensive and columns few.
// Grid (ceil(N / (THREADS * COLUMNS))), also over y; columns of a thread: linear_thread.wgsl.
// Memory: N * K f16, 2K f32 read, N f32 written; K is a multiple of 8.
override K: u32;
override N: u32;
override EPS: f32;
override OFFSET: f32 = 0.0;
override HAS_BIAS: u32 = 0u;
override OUT0: u32 = 0u;
override STRIDE: u32;
override THREADS: u32 = 64u;
override COLUMNS: u32 = 1u;

@group(0) @binding(0) var<storage, read> state: array<u32>;
@group(0) @binding(1) var<storage, read> x: array<vec4<f32>>;
@group(0) @binding(2) var<storage, read> norm: array<vec4<f32>>;
@group(0) @binding(3) var<storage, read> weight: array<vec4<u32>>;
@group(0) @binding(4) var<storage, read> bias: array<f32>;
@group(0) @binding(5) var<storage, read_write> out: array<f32>;

//! include: products

fn write(column: vec4<u32>, sums: vec4<f32>) {
    for (var c = 0u; c < min(COLUMNS, 4u); c++) {
        if (column[c] < N) {
            var value = sums[c];
            if (HAS_BIAS == 1u) {
                value += bias[column[c]];
            }
            out[OUT0 + column[c]] = value;
        }
    }
}

@compute @workgroup_size(THREADS)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) thread: u32,
) {
    if (state[1] == 0u) {
        return;
    }
    let words = K / 8u;
    let first = (group.y * groups.x + group.x) * THREADS * COLUMNS + thread;
    for (var block = 0u; block < COLUMNS; block += 8u) {
        let column = first + (block + vec4(0u, 1u, 2u, 3u)) * THREADS;
        let near = min(column, vec4(N - 1u)) * words;
        let far = min(column + 4u * THREADS, vec4(N - 1u)) * words;
        var sums = vec4(0.0);
        var more = vec4(0.0);
        var squares = 0.0;
        for (var i = 0u; i < words; i++) {
            let x_low = x[2u * i];
            let x_high = x[2u * i + 1u];
            squares += dot(x_low, x_low) + dot(x_high, x_high);
            let low = x_low * (OFFSET + norm[2u * i]);
            let high = x_high * (OFFSET + norm[2u * i + 1u]);
            sums += products(near + i, low, high);
            if (COLUMNS > 4u) {
                more += products(far + i, low, high);
            }
        }
        let scale = inverseSqrt(squares / f32(K) + EPS);
        write(column, sums * scale);
        if (COLUMNS > 4u) {
            write(column + 4u * THREADS, more * scale);
        }
    }
}
